"""Transformers: encoder and decoder layers, stacks of them, and both together."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from antorcha.core import modes
from antorcha.errors import ShapeError, warn
from antorcha.nn import functional as F
from antorcha.nn import init
from antorcha.nn.activation import GELU, ReLU
from antorcha.nn.containers import ModuleList
from antorcha.nn.dropout import Dropout
from antorcha.nn.linear import Linear
from antorcha.nn.module import Module
from antorcha.nn.multihead import MultiheadAttention, float_mask
from antorcha.nn.norm import LayerNorm
from antorcha.ops.kinds.record import T


def _generate_square_subsequent_mask(size: int, device: Any = None, dtype: Any = None) -> Any:
    """-inf above the diagonal: no place sees a later one."""
    return T.triu(T.full((size, size), -math.inf, dtype=dtype, device=device), 1)


def _detect_is_causal_mask(mask: Any, hint: bool | None, size: int | None) -> bool:
    """The hint, or whether the mask is a causal one."""
    if hint is not None or mask is None:
        return hint is True
    if mask.dim() != 2 or mask.size(-2) != size or mask.size(-1) != size:
        return False
    return bool(
        (mask == _generate_square_subsequent_mask(mask.size(-2), mask.device, mask.dtype)).all()
    )


def _get_activation_fn(given: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise ShapeError(f"activation should be relu/gelu, not {given}")
    found: Callable[[Any], Any] = getattr(F, given)
    return found


def _get_clones(module: Any, count: int) -> Any:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


class _Layer(Module):
    """What encoder and decoder layers share: attention to itself, and the feed-forward part."""

    __constants__ = ["norm_first"]  # noqa: RUF012
    crossed = False  # is there attention to another sequence?

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        heads: dict[str, Any] = {"dropout": dropout, "batch_first": batch_first, "bias": bias}
        self.self_attn = MultiheadAttention(d_model, nhead, **heads, **where)
        if self.crossed:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **heads, **where)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **where)
        self.norm_first = norm_first
        numbers = (1, 2, 3) if self.crossed else (1, 2)
        for k in numbers:
            setattr(self, f"norm{k}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where))
        for k in numbers:
            setattr(self, f"dropout{k}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool) -> Any:
        """What each place finds among the others."""
        found, _ = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal,
            need_weights=False,
        )  # fmt: skip
        return self.dropout1(found)

    def _feed_forward(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


_LAYER = """{title}

{formula}
Vaswani et al., "Attention is all you need" (2017).

Args:
    d_model (int): features of each place
    nhead (int): heads of attention
    dim_feedforward (int): features between the two linear maps. Default: 2048
    dropout (float): Default: 0.1
    activation (str or callable): between the linear maps: ``"relu"``, ``"gelu"`` or a function.
        Default: relu
    layer_norm_eps (float): Default: 1e-5
    batch_first (bool): ``(N, L, E)`` instead of ``(L, N, E)``. Default: False
    norm_first (bool): normalise before attention and feed-forward instead of after. Default: False
    bias (bool): biases of the linear maps and norms? Default: True

>>> layer = torch.nn.{name}(8, 2, 16, batch_first=True)
>>> layer(torch.zeros(3, 5, 8){memory}).shape
torch.Size([3, 5, 8])
"""


class TransformerEncoderLayer(_Layer):
    __doc__ = _LAYER.format(
        name="TransformerEncoderLayer", memory="",
        title="Attention of a sequence to itself, then a feed-forward network at each place.",
        formula="``x = norm1(x + attention(x))``;\n"
        "``x = norm2(x + linear2(activation(linear1(x))))``.",
    )  # fmt: skip

    @property
    def activation_relu_or_gelu(self) -> int:
        """1: the activation is relu, 2: gelu, 0: another function."""
        known = self.activation
        if known is F.relu or isinstance(known, ReLU):
            return 1
        return 2 if known is F.gelu or isinstance(known, GELU) else 0

    def __getstate__(self) -> dict[str, Any]:
        """With what PyTorch keeps of a pickled module, and this class computes."""
        return {**self.__dict__, "activation_relu_or_gelu": self.activation_relu_or_gelu}

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept = {k: v for k, v in state.items() if k != "activation_relu_or_gelu"}
        super().__setstate__({"activation": F.relu, **kept})

    def forward(
        self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:  # fmt: skip
        """The sequence ``src``, each place having looked at the others."""
        padding = float_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype)
        mask = float_mask(src_mask, "src_mask", src.dtype)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x: Any) -> Any:
        return self.dropout2(self._feed_forward(x))


class TransformerDecoderLayer(_Layer):
    __doc__ = _LAYER.format(
        name="TransformerDecoderLayer", memory=", torch.zeros(3, 4, 8)",
        title="Attention of a sequence to itself, then to a memory, then a feed-forward network.",
        formula="``x = norm1(x + attention(x))``; ``x = norm2(x + attention(x, memory))``;\n"
        "``x = norm3(x + linear2(activation(linear1(x))))``.",
    )  # fmt: skip

    crossed = True

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """The sequence ``tgt``, each place having looked at the others and at ``memory``."""
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        other = memory_mask, memory_key_padding_mask, memory_is_causal
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self, x: Any, memory: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False
    ) -> Any:
        """What each place finds in the memory."""
        found, _ = self.multihead_attn(
            x, memory, memory, attn_mask=attn_mask, key_padding_mask=key_padding_mask,
            is_causal=is_causal, need_weights=False,
        )  # fmt: skip
        return self.dropout2(found)

    def _ff_block(self, x: Any) -> Any:
        return self.dropout3(self._feed_forward(x))


class TransformerEncoder(Module):
    """Encoder layers one after another.

    Args:
        encoder_layer (TransformerEncoderLayer): copied ``num_layers`` times, weights included
        num_layers (int): how many
        norm (Module or None): of the result. Default: None
        enable_nested_tensor (bool): in evaluation without gradients, results at padded places are
            zeros, as where PyTorch leaves them out. Default: True
        mask_check (bool): do so only where padding stands at the end. Default: True

    >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> torch.nn.TransformerEncoder(layer, 2)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    __constants__ = ["norm"]  # noqa: RUF012

    def __init__(
        self, encoder_layer: Any, num_layers: int, norm: Any = None,
        enable_nested_tensor: bool = True, mask_check: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        why_not = _why_not_nested(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not why_not
        if enable_nested_tensor and why_not:
            warn(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                f"encoder_layer.{why_not}"
            )

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:  # fmt: skip
        """The sequence ``src`` through all layers. ``mask`` (L, L) and ``src_key_padding_mask``
        (N, L) are bool (True: do not look there) or are added."""
        padding = float_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype)
        mask = float_mask(mask, "mask", src.dtype)
        size = src.size(1 if src.dim() == 3 and self._batch_first() else 0)
        causal = _detect_is_causal_mask(mask, is_causal, size)
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if padding is not None and mask is None and self._leaves_out(src, padding):
            x = T.masked_fill(x, (padding != 0).unsqueeze(-1), 0.0)
        return x if self.norm is None else self.norm(x)

    def _batch_first(self) -> bool:
        return bool(self.layers[0].self_attn.batch_first)

    def _leaves_out(self, src: Any, padding: Any) -> bool:
        """Where PyTorch computes on the sequences without their padding, and fills in zeros."""
        if not self.use_nested_tensor or self.layers[0].training or src.dim() != 3:
            return False
        if modes.grad_enabled() and (
            src.requires_grad or any(p.requires_grad for p in self.layers[0].parameters())
        ):
            return False
        hidden = (padding != 0).long()
        return not self.mask_check or bool((hidden.diff(dim=1) >= 0).all())


def _why_not_nested(layer: Any) -> str:
    """What about an encoder layer keeps PyTorch from leaving padding out; "" if nothing does."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "was not TransformerEncoderLayer"
    attention: Any = layer.self_attn
    reasons = {
        "norm_first was True": layer.norm_first,
        "self_attn.batch_first was not True(use batch_first for better inference performance)":
            not attention.batch_first,
        "self_attn._qkv_same_embed_dim was not True": not attention._qkv_same_embed_dim,
        "self_attn was passed bias=False": attention.in_proj_bias is None,
        "activation_relu_or_gelu was not True": not layer.activation_relu_or_gelu,
        "norm1.eps was not equal to encoder_layer.norm2.eps": layer.norm1.eps != layer.norm2.eps,
        "self_attn.num_heads is odd": attention.num_heads % 2 == 1,
    }  # fmt: skip
    return next((reason for reason, found in reasons.items() if found), "")


class TransformerDecoder(Module):
    """Decoder layers one after another.

    Args:
        decoder_layer (TransformerDecoderLayer): copied ``num_layers`` times, weights included
        num_layers (int): how many
        norm (Module or None): of the result. Default: None

    >>> layer = torch.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> torch.nn.TransformerDecoder(layer, 2)(torch.zeros(3, 5, 8), torch.zeros(3, 4, 8)).shape
    torch.Size([3, 5, 8])
    """

    __constants__ = ["norm"]  # noqa: RUF012

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """The sequence ``tgt`` through all layers, each looking at ``memory``."""
        batch_first = self.layers[0].self_attn.batch_first
        size = tgt.size(1 if tgt.dim() == 3 and batch_first else 0)
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, size)
        x = tgt
        for layer in self.layers:
            x = layer(
                x, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder of a source sequence, and a decoder of a target that looks at what it found.

    Args:
        d_model (int): features of each place. Default: 512
        nhead (int): heads of attention. Default: 8
        num_encoder_layers, num_decoder_layers (int): Default: 6
        dim_feedforward (int): Default: 2048
        dropout (float): Default: 0.1
        activation (str or callable): ``"relu"``, ``"gelu"`` or a function. Default: relu
        custom_encoder, custom_decoder (Module or None): in the place of the usual ones
        layer_norm_eps (float): Default: 1e-5
        batch_first (bool): ``(N, L, E)`` instead of ``(L, N, E)``. Default: False
        norm_first (bool): Default: False
        bias (bool): Default: True

    Matrices start as ``xavier_uniform_``. Vaswani et al., "Attention is all you need" (2017).

    >>> model = torch.nn.Transformer(8, 2, 1, 1, 16)
    >>> model(torch.zeros(4, 3, 8), torch.zeros(5, 3, 8)).shape
    torch.Size([5, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        given = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
                 norm_first, bias, device, dtype)  # fmt: skip
        norm = {"eps": layer_norm_eps, "bias": bias, "device": device, "dtype": dtype}
        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(*given)
            custom_encoder = TransformerEncoder(
                layer, num_encoder_layers, LayerNorm(d_model, **norm)
            )
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*given)
            custom_decoder = TransformerDecoder(
                layer, num_decoder_layers, LayerNorm(d_model, **norm)
            )
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """What the decoder makes of ``tgt``, looking at the encoder's result for ``src``."""
        if src.dim() == 3 and src.size(0 if self.batch_first else 1) != tgt.size(
            0 if self.batch_first else 1
        ):
            raise ShapeError(
                "Transformer: the batch number of src and tgt must be equal, got shapes "
                f"{tuple(src.shape)} and {tuple(tgt.shape)}"
            )
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise ShapeError(
                "Transformer: the feature number of src and tgt must be equal to d_model = "
                f"{self.d_model}, got shapes {tuple(src.shape)} and {tuple(tgt.shape)}"
            )
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """The mask with which no place sees a later one.

        >>> torch.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)
