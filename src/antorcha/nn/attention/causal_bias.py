"""CausalBias: a causal mask that knows its kind.

In a file of its own: a subclass of Tensor makes every later call look at its arguments, so this one
is made when a program first asks for it.
"""

from __future__ import annotations

from typing import Any

from antorcha.core import dtypes
from antorcha.errors import ValueRangeError, warn
from antorcha.nn import functional as F
from antorcha.nn.attention.bias import CausalVariant
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor


class CausalBias(Tensor):
    """A causal mask ``(queries, keys)`` as ``attn_mask`` of ``scaled_dot_product_attention``.

    Args:
        variant (CausalVariant): with which corner of the scores the diagonal is aligned
        seq_len_q (int): number of queries
        seq_len_kv (int): number of keys

    Its own elements mean nothing: attention makes the mask.
    See https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.bias.CausalBias.html.

    Example::

        bias = CausalBias(CausalVariant.LOWER_RIGHT, 1, cached + 1)
        scaled_dot_product_attention(query, key, value, bias)
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        result: CausalBias = T.empty(variant, seq_len_q, seq_len_kv).as_subclass(cls)
        return result

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > "
                "seq_len_kv!"
            )

    def _materialize(self, device: Any = None) -> Any:
        """The mask: True where a query may look."""
        lower = self.variant is CausalVariant.LOWER_RIGHT
        shift = self.seq_len_kv - self.seq_len_q if lower else 0
        ones = T.ones(self.seq_len_q, self.seq_len_kv, dtype=dtypes.bool_, device=device)
        return ones.tril(shift)

    @staticmethod
    def _attend(
        query: Any, key: Any, value: Any, attn_mask: CausalBias, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> Any:  # fmt: skip
        if is_causal:
            raise ValueRangeError("CausalBias should not be used with causal=True")
        mask = attn_mask._materialize(query.device)
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout_p, scale=scale,
            enable_gqa=enable_gqa,
        )  # fmt: skip

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            return cls._attend(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]

    def __repr__(self) -> str:  # type: ignore[override]
        return repr(self._materialize())


CausalBias.__module__ = "antorcha.nn.attention.bias"  # where programs find it
