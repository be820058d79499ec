"""Attention with several heads: the layer, and the function behind it."""

from __future__ import annotations

import math
from typing import Any

from antorcha.core import dtypes
from antorcha.errors import ShapeError, ValueRangeError
from antorcha.nn import functional as F
from antorcha.nn import init
from antorcha.nn.linear import NonDynamicallyQuantizableLinear
from antorcha.nn.module import Module
from antorcha.nn.parameter import add_parameter
from antorcha.ops.kinds.record import T


def _need(condition: Any, message: str) -> None:
    """PyTorch's class for shapes of attention that do not fit."""
    if not condition:
        raise AssertionError(f"multi_head_attention_forward: {message}")


def float_mask(mask: Any, name: str, dtype: Any) -> Any:
    """A mask as what is added to the scores: 0, and -inf where a bool one is True."""
    if mask is None:
        return None
    if mask.dtype is not dtypes.bool_ and not mask.is_floating_point():
        _need(False, f"only bool and floating types of {name} are supported, not {mask.dtype}")
    if mask.is_floating_point():
        return mask
    zeros = T.zeros(tuple(mask.shape), dtype=dtype, device=mask.device)
    return T.masked_fill(zeros, mask, -math.inf)


def _is_batched(query: Any, key: Any, value: Any, padding: Any, mask: Any, heads: int) -> bool:
    """Whether there is a batch; refuses what does not fit together."""
    dims = query.dim()
    _need(dims in (2, 3), f"query has (L, N, E) or (L, E), got {dims} dims: {tuple(query.shape)}")
    _need(
        key.dim() == dims and value.dim() == dims,
        f"query has {dims} dims, so key and value have too; got {key.dim()} and {value.dim()}",
    )
    if padding is not None:
        _need(
            padding.dim() == dims - 1,
            f"beside a query of {dims} dims key_padding_mask has {dims - 1}, got {padding.dim()}",
        )
    if mask is not None:
        _need(mask.dim() in (2, 3), f"attn_mask has 2 or 3 dims, got {mask.dim()}")
        if dims == 2 and mask.dim() == 3:
            shape = heads, query.size(0), key.size(0)
            _need(
                tuple(mask.shape) == shape, f"attn_mask has shape {shape}, got {tuple(mask.shape)}"
            )
    return bool(dims == 3)


def _projected(query: Any, key: Any, value: Any, weights: Any, bias: Any) -> tuple[Any, ...]:
    """Queries, keys and values; ``weights`` is one for all three, or three."""
    if not isinstance(weights, tuple):
        size = query.size(-1)
        if query is key and key is value:
            return tuple(T.split(T.linear(query, weights, bias), size, -1))
        weights = T.split(weights, size, 0)
    biases = (None, None, None) if bias is None else T.chunk(bias, 3)
    return tuple([T.linear(t, w, b) for t, w, b in zip((query, key, value), weights, biases)])


def _mask_for_heads(mask: Any, batch: int, heads: int, length: int, source: int) -> Any:
    """attn_mask with the dim of batch times heads."""
    if mask.dim() == 2:
        shape: tuple[int, ...] = (length, source)
    else:
        shape = (batch * heads, length, source)
    if tuple(mask.shape) != shape:
        raise ShapeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {shape}."
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _one_more(t: Any, masks: list[Any], more: Any, dim: int) -> tuple[Any, list[Any]]:
    """One more key (or value), which no mask hides."""
    masks = [None if m is None else F.pad(m, (0, 1)) for m in masks]
    return T.cat([t, more], dim), masks


def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """(result, weights or None): what :class:`torch.nn.MultiheadAttention` computes.

    ``query`` is (L, N, E), ``key`` and ``value`` (S, N, ..), or all without the batch N. Masks are
    bool (True: do not look there) or are added: ``key_padding_mask`` (N, S), ``attn_mask`` (L, S)
    or (N*num_heads, L, S). ``static_k`` and ``static_v`` stand for projected keys and values.
    """
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same = query is key and key is value
        query, key, value = [t.unsqueeze(1) for t in (query, key, value)]
        key, value = (query, query) if same else (key, value)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    (length, batch, size), source = query.shape, key.size(0)
    head = size // num_heads
    _need(size == embed_dim_to_check, f"was expecting {embed_dim_to_check} features, got {size}")
    _need(head * num_heads == size, f"{size} features are not divisible by {num_heads} heads")
    if use_separate_proj_weight:
        _need(key.shape[:2] == value.shape[:2], f"key {key.shape} beside value {value.shape}")
    else:
        _need(key.shape == value.shape, f"key {key.shape} beside value {value.shape}")
    if is_causal and attn_mask is None:
        raise ShapeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    padding = float_mask(key_padding_mask, "key_padding_mask", query.dtype)
    causal = is_causal and padding is None and not need_weights
    mask = None if causal else float_mask(attn_mask, "attn_mask", query.dtype)
    if mask is not None:
        mask = _mask_for_heads(mask, batch, num_heads, length, source)
    weights: Any = in_proj_weight
    if use_separate_proj_weight:
        weights = q_proj_weight, k_proj_weight, v_proj_weight
    q, k, v = _projected(query, key, value, weights, in_proj_bias)
    _need((bias_k is None) == (bias_v is None), "bias_k and bias_v go together")
    masks = [mask, padding]
    if bias_k is not None:
        _need(static_k is None and static_v is None, "there is no bias for static keys and values")
        v = T.cat([v, bias_v.repeat(1, batch, 1)])
        k, masks = _one_more(k, masks, bias_k.repeat(1, batch, 1), 0)
    q, k, v = [
        t.contiguous().view(t.size(0), batch * num_heads, head).transpose(0, 1) if s is None else s
        for t, s in ((q, None), (k, static_k), (v, static_v))
    ]
    for name, static in (("static_k", k), ("static_v", v)):
        wanted = batch * num_heads, head
        _need((static.size(0), static.size(2)) == wanted, f"{name} has shape {static.shape}")
    if add_zero_attn:
        zeros = T.zeros((batch * num_heads, 1, head), dtype=k.dtype, device=k.device)
        v = T.cat([v, zeros], 1)
        k, masks = _one_more(k, masks, zeros, 1)
    mask, padding = masks
    if padding is not None:
        _need(tuple(padding.shape) == (batch, k.size(1)), f"key_padding_mask is {padding.shape}")
        own = padding.view(batch, 1, 1, -1).expand(-1, num_heads, -1, -1)
        own = own.reshape(batch * num_heads, 1, -1)
        mask = own if mask is None else mask + own
    p = dropout_p if training else 0.0
    if need_weights:
        found, scores = _weighted(q, k, v, mask, p)
        scores = scores.view(batch, num_heads, length, k.size(1))
        scores = scores.mean(1) if average_attn_weights else scores
    else:
        found, scores = _unweighted(q, k, v, mask, p, causal, batch, num_heads), None
    found = found.transpose(0, 1).reshape(length * batch, size)
    result = T.linear(found, out_proj_weight, out_proj_bias)
    result = result.view(length, batch, result.size(1))
    if not batched:
        return result.squeeze(1), None if scores is None else scores.squeeze(0)
    return result, scores


def _weighted(q: Any, k: Any, v: Any, mask: Any, p: float) -> tuple[Any, Any]:
    """(what is found, the weights), heads and batch in the first dim."""
    q = q * math.sqrt(1.0 / q.size(-1))
    scores = T.bmm(q, k.transpose(1, 2))
    weights = T.softmax(scores if mask is None else scores + mask, -1)
    if p > 0.0:
        weights = T.dropout(weights, p, True)
    return T.bmm(weights, v), weights


def _unweighted(
    q: Any, k: Any, v: Any, mask: Any, p: float, causal: bool, batch: int, heads: int
) -> Any:
    """What is found, by attention that need not show its weights."""
    four = [t.reshape(batch, heads, t.size(1), t.size(2)) for t in (q, k, v)]
    if mask is not None:
        one = mask.size(0) == 1
        mask = mask.unsqueeze(0) if one else mask.view(batch, heads, -1, mask.size(-1))
    found = T.scaled_dot_product_attention(*four, mask, p, causal)
    return found.reshape(batch * heads, q.size(1), v.size(2))


class MultiheadAttention(Module):
    r"""Attention with several heads: each looks with its own projections of queries and keys.

    ``MultiHead(Q, K, V) = concat(head_1, .., head_h) W^O``, where
    ``head_i = softmax(Q W_i^Q (K W_i^K)^T / sqrt(head_dim)) V W_i^V``.
    Vaswani et al., "Attention is all you need" (2017).

    Args:
        embed_dim (int): features of queries and results; divisible by ``num_heads``
        num_heads (int): heads, each with ``embed_dim // num_heads`` features
        dropout (float): of the weights, while training. Default: 0
        bias (bool): biases of all projections? Default: True
        add_bias_kv (bool): add one learnt key and value. Default: False
        add_zero_attn (bool): add a key and value of zeros. Default: False
        kdim, vdim (int or None): features of keys and values. Default: ``embed_dim``
        batch_first (bool): inputs and results have ``(N, L, E)`` instead of ``(L, N, E)``.
            Default: False

    Shape: query ``(L, N, E)``, key ``(S, N, kdim)``, value ``(S, N, vdim)``, or all without ``N``.
    Result ``(L, N, E)``, and with ``need_weights`` the weights ``(N, L, S)``, the mean over heads,
    or ``(N, num_heads, L, S)`` without ``average_attn_weights``.

    Projections start as ``xavier_uniform_``, their biases as zeros.

    >>> attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.zeros(3, 5, 8)
    >>> result, weights = attention(x, x, x)
    >>> result.shape, weights.shape
    (torch.Size([3, 5, 8]), torch.Size([3, 5, 5]))
    """

    __constants__ = ["batch_first"]  # noqa: RUF012
    bias_k: Any
    bias_v: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueRangeError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        self.dropout, self.batch_first = dropout, batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError(
                f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}"
            )
        one, where = self._qkv_same_embed_dim, (device, dtype)
        shapes = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
        if one:
            add_parameter(self, "in_proj_weight", (3 * embed_dim, embed_dim), *where)
        for name, features in shapes.items():
            shape = embed_dim, features
            add_parameter(self, f"{name}_proj_weight", shape, *where, wanted=not one)
        if not one:
            self.register_parameter("in_proj_weight", None)
        add_parameter(self, "in_proj_bias", 3 * embed_dim, *where, wanted=bias)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, *where)
        if add_bias_kv:
            add_parameter(self, "bias_k", (1, 1, embed_dim), *where)
            add_parameter(self, "bias_v", (1, 1, embed_dim), *where)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        names = ("in",) if self._qkv_same_embed_dim else ("q", "k", "v")
        for name in names:
            init.xavier_uniform_(getattr(self, f"{name}_proj_weight"))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """(result, weights or None); see :func:`multi_head_attention_forward`."""
        turned = self.batch_first and query.dim() == 3
        if turned:
            seen: dict[int, Any] = {}  # what is one tensor stays one: it is projected at once
            query, key, value = [
                seen.setdefault(id(t), t.transpose(0, 1)) for t in (query, key, value)
            ]
        separate = not self._qkv_same_embed_dim
        result, weights = multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask,
            need_weights, attn_mask, separate, self.q_proj_weight, self.k_proj_weight,
            self.v_proj_weight, None, None, average_attn_weights, is_causal,
        )  # fmt: skip
        return (result.transpose(0, 1) if turned else result), weights

    def merge_masks(
        self, attn_mask: Any, key_padding_mask: Any, query: Any
    ) -> tuple[Any, int | None]:
        """(both masks as one, its kind): 1 for a padding mask alone, 0 for an attention mask alone,
        2 for both."""
        mask, kind = None, None
        if key_padding_mask is not None:
            mask, kind = key_padding_mask, 1
        if attn_mask is not None:
            batch, length = query.shape[:2]
            kind = 2 if key_padding_mask is not None else 0
            own = attn_mask
            if own.dim() == 3:
                own = own.view(batch, -1, length, length)
            else:
                own = own.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
            mask = own
            if key_padding_mask is not None:
                padding = key_padding_mask.view(batch, 1, 1, length)
                mask = own + padding.expand(-1, self.num_heads, -1, -1)
        return mask, kind
