"""Attention: what a query finds among keys, as a mean of their values."""

from __future__ import annotations

import math
from typing import Any as _Any

from antorcha.core import dtypes, modes
from antorcha.core.device import backend
from antorcha.core.shapes import broadcast_shapes
from antorcha.errors import DtypeError, ShapeError, ValueRangeError
from antorcha.lang import expr as E
from antorcha.lang.kernels import Attention, AttentionGradient
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.operands import expanded
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.rows import rows
from antorcha.ops.kinds.types import Bool, Dim, Dtype, Float, OptTensor, Tensor
from antorcha.ops.softmax import _plan

FEW = 12
"""Queries below which the keys are better read once, as a product of few rows does."""


@rows(method=False)
def _safe_softmax(input: Tensor, dim: Dim, dtype: Dtype = None):
    """softmax that gives zeros where all elements along ``dim`` are -inf (softmax: nan)."""

    def row(x: E.Expr) -> E.Expr:
        top = x.amax()
        e = E.exp(x - E.detach(E.where(top == -math.inf, 0, top)))
        total = e.sum()
        return e / E.where(total == 0, 1, total)

    return _plan("_safe_softmax", row, input, dim, dtype)


_safe_softmax.derivative(lambda g, out, dim: T.softmax_backward(g, out, dim))


@_safe_softmax.samples
def _(make):
    yield make(3, 4), 1
    yield make(2, 3, 4), 0


def _attention_plan(
    query: _Any, key: _Any, value: _Any, scale: float, causal: bool, count: int
) -> Planned:
    """Attention with ``count`` results."""
    lead = tuple(broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2]))
    ins = [expanded(each, (*lead, *each.shape[-2:])) for each in (query, key, value)]
    outs = [((*lead, query.shape[-2], value.shape[-1]), query.dtype)]
    outs.append(((*lead, query.shape[-2]), _wide(query.dtype)))
    return Planned(Attention(float(scale), causal), outs[:count], ins=ins)


def _wide(dtype: _Any) -> _Any:
    """The dtype in which scores are added up."""
    return dtypes.float32 if dtype.itemsize == 2 else dtype


@kernel(function=False, method=False, out=False, batching="matrices")
def attention(query: Tensor, key: Tensor, value: Tensor, scale: Float, causal: Bool):
    """The mean of values by the softmax of ``scale * query @ key.T``, for no gradient."""
    return _attention_plan(query, key, value, scale, causal, 1)


@attention.samples
def _(make):
    yield make(2, 3, 4), make(2, 5, 4), make(2, 5, 6), 0.5, False
    yield make(2, 40, 4), make(40, 4), make(40, 3), 1.0, True


@kernel(
    function=False, method=False, out=False, batching="matrices",
    node="ScaledDotProductFlashAttentionBackward0",
)  # fmt: skip
def attention_with_sums(query: Tensor, key: Tensor, value: Tensor, scale: Float, causal: Bool):
    """attention, and the logarithm of the sum of each query's exp(scores), a constant."""
    return _attention_plan(query, key, value, scale, causal, 2)


@attention_with_sums.derivative
def _(g, query, key, value, scale, causal, out, out1, create):
    if g[0] is None:
        return None, None, None
    if create:
        return _gradients(g[0], query, key, value, scale, causal)
    return T.attention_backward(query, key, value, out, out1, g[0], scale, causal)


def _gradients(
    g: _Any, query: _Any, key: _Any, value: _Any, scale: float, causal: bool
) -> list[_Any]:
    """attention's gradients in ops that have derivatives."""
    dtype = g._layout.dtype
    wide = _wide(dtype)
    g, query, key, value = [T.to_dtype(t, wide) for t in (g, query, key, value)]
    weights = _weights(query * scale, key, _looking_back(query, key) if causal else None)
    toward = T.softmax_backward(T.matmul(g, T.transpose(value, -2, -1)), weights, -1) * scale
    found = (
        T.matmul(toward, key),
        T.matmul(T.transpose(toward, -2, -1), query),
        T.matmul(T.transpose(weights, -2, -1), g),
    )
    return [T.to_dtype(t, dtype) for t in found]


@kernel(function=False, method=False, out=False, batching="matrices")
def attention_backward(
    query: Tensor, key: Tensor, value: Tensor, out: Tensor, sums: Tensor, grad: Tensor,
    scale: Float, causal: Bool,
):  # fmt: skip
    """The gradients of attention's query, key and value, with the heads of its result."""
    lead = tuple(out.shape[:-2])
    q, k, v = [expanded(each, (*lead, *each.shape[-2:])) for each in (query, key, value)]
    outs = [(tuple(each.shape), query.dtype) for each in (q, k, v)]
    what = AttentionGradient(float(scale), causal)
    return Planned(what, outs, ins=[q, k, v, out, sums, expanded(grad, tuple(out.shape))])


def _looking_back(query: _Any, key: _Any) -> _Any:
    """The mask of queries that look at no later place than their own."""
    shape = (query._layout.shape[-2], key._layout.shape[-2])
    return T.tril(T.ones(shape, dtype=dtypes.bool_, device=query._layout.device))


def _weights(query: _Any, key: _Any, mask: _Any) -> _Any:
    """The weights of values, by queries that are scaled already."""
    scores = T.matmul(query, T.transpose(key, -2, -1))
    if mask is None:
        return T.softmax(scores, -1)
    if mask._layout.dtype.kind == "b":
        return T._safe_softmax(T.where(mask, scores, -math.inf), -1)
    return T._safe_softmax(scores + mask, -1)


def _check(query: _Any, key: _Any, value: _Any, mask: _Any, is_causal: bool) -> None:
    name = "scaled_dot_product_attention"
    for what, each in (("query", query), ("key", key), ("value", value)):
        if each._layout.ndim < 2:
            raise ShapeError(
                f"{name}: {what} must have at least 2 dimensions (sequence, features), got shape "
                f"{tuple(each._layout.shape)}"
            )
        if each._layout.dtype is not query._layout.dtype:
            raise DtypeError(
                f"{name}: Expected query, key, and value to have the same dtype, but got "
                f"query.dtype: {query._layout.dtype} and {what}.dtype: {each._layout.dtype}"
            )
    if mask is None:
        return
    if is_causal:
        raise ShapeError(f"{name}: Explicit attn_mask should not be set when is_causal=True")
    if mask._layout.dtype.kind != "b" and mask._layout.dtype is not query._layout.dtype:
        raise DtypeError(
            f"{name}: Expected attn_mask dtype to be bool or to match query dtype, but got "
            f"attn_mask.dtype: {mask._layout.dtype} and query.dtype: {query._layout.dtype}"
        )


@composite(method=False, out=False, page=False)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: OptTensor = None,
    dropout_p: Float = 0.0,
    is_causal: Bool = False,
    *,
    scale: Float = None,
    enable_gqa: Bool = False,
):
    """``softmax(query @ key.T * scale + attn_mask) @ value``, over the last two dims.

    ``query`` is (..., L, E), ``key`` (..., S, E), ``value`` (..., S, Ev), the result (..., L, Ev).
    ``attn_mask``, which broadcasts to (..., L, S), says where to look (bool) or is added (float);
    ``is_causal`` looks at no later place than its own. ``scale`` is 1/sqrt(E) unless it is given.
    A query that may look nowhere finds zeros. With ``enable_gqa`` the third last dim of key and
    value divides that of query, and each of theirs serves as many heads.

    See torch.nn.functional.scaled_dot_product_attention in PyTorch's documentation, and Vaswani et
    al., "Attention is all you need" (2017).

    >>> q = k = torch.eye(2)
    >>> v = torch.tensor([[1.], [2.]])
    >>> torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.0)
    tensor([[1.5000],
            [1.5000]])
    """
    _check(query, key, value, attn_mask, is_causal)
    if not 0 <= dropout_p <= 1:
        raise ValueRangeError(
            "scaled_dot_product_attention: dropout probability has to be between 0 and 1, but got "
            f"{dropout_p}"
        )
    if enable_gqa:
        key, value = _for_all_heads(query, key), _for_all_heads(query, value)
    dtype = query._layout.dtype
    features = query._layout.shape[-1]
    if scale is None:
        scale = 1.0 / math.sqrt(features) if features else 1.0
    bare = attn_mask is None and not dropout_p and dtype.kind == "f"
    fits = bare and _fits(query, key, value)
    wants = modes.wants_gradient(query, key, value)
    if fits and not modes.duals and _attends(query, value, wants):
        if wants:
            return T.attention_with_sums(query, key, value, scale, is_causal)[0]
        return T.attention(query, key, value, scale, is_causal)
    if dtype.itemsize == 2:  # halves meet as float32, and are rounded once
        query, key, value = [T.to_dtype(t, dtypes.float32) for t in (query, key, value)]
        if attn_mask is not None and attn_mask._layout.dtype is dtype:
            attn_mask = T.to_dtype(attn_mask, dtypes.float32)
    if fits and not wants:
        found = T.attention(query, key, value, scale, is_causal)
        return found if found._layout.dtype is dtype else T.to_dtype(found, dtype)
    if is_causal:
        attn_mask = _looking_back(query, key)
    weights = _weights(query * scale, key, attn_mask)
    if dropout_p:
        weights = T.dropout(weights, dropout_p, True)
    found = T.matmul(weights, value)
    return found if found._layout.dtype is dtype else T.to_dtype(found, dtype)


def _attends(query: _Any, value: _Any, gradient: bool) -> bool:
    """Has the device a kernel for these, or for their gradient, too?"""
    layout = query._layout
    features = max(layout.shape[-1], value._layout.shape[-1])
    return bool(backend(layout.device).attends(layout.dtype, features, gradient))


def _fits(query: _Any, key: _Any, value: _Any) -> bool:
    """Have all the same heads, and elements; and is it worth it to pack the keys?"""
    shapes = [t._layout.shape for t in (query, key, value)]
    q, k, v = (tuple(shape) for shape in shapes)
    same = q[:-2] == k[:-2] == v[:-2] and q[-1] == k[-1] and k[-2] == v[-2]
    return (
        same
        and q[-2] >= FEW
        and bool(query._layout.numel and key._layout.numel and value._layout.numel)
    )


def _for_all_heads(query: _Any, t: _Any) -> _Any:
    """Keys or values repeated for the heads that share them."""
    heads, own = query._layout.shape[-3], t._layout.shape[-3]
    if not own or heads % own:
        raise ShapeError(
            "scaled_dot_product_attention: with enable_gqa the number of heads of query must be a "
            f"multiple of those of key and value, got {heads} and {own}"
        )
    return T.repeat_interleave(t, heads // own, -3) if heads != own else t


@scaled_dot_product_attention.samples
def _(make):
    yield make(2, 3, 4), make(2, 5, 4), make(2, 5, 6)
    yield make(2, 3, 4), make(2, 5, 4), make(2, 5, 6), make(3, 5)
    yield make(3, 4), make(3, 4), make(3, 2), None, 0.0, True
    yield (make(2, 4, 3, 2), make(2, 2, 3, 2), make(2, 2, 3, 2)), {"enable_gqa": True, "scale": 0.3}
    q = make(3, 4)
    yield (q, q, q, make(3, 3), 0.0, True), {}, RuntimeError, "should not be set when is_causal"
    yield (make(4), q, q), {}, RuntimeError, "at least 2 dimensions"
    yield (q, q, q.float()), {}, RuntimeError, "same dtype"
