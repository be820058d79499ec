"""Reductions, scans and normalizations of the elements at which a mask is True.

What the mask leaves out is replaced by the *identity* of the operation, the value that changes no
result; then the operation of ``torch`` computes. A table says both; the mean and the variance,
which have no identity, count the elements instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from antorcha.core import dtypes
from antorcha.core.dtypes import iinfo
from antorcha.core.shapes import normalize_dims
from antorcha.errors import MissingFeature, OutOfRange, ValueRangeError
from antorcha.masked.maskedtensor.core import is_masked_tensor
from antorcha.ops.kinds.record import NAMESPACES, T
from antorcha.runtime.tensor import Tensor

Compute = Callable[..., Any]


# ------------------------------------------------------------------------------------- the mask
def _taken(op: str, input: Any, mask: Any) -> tuple[Tensor, Tensor | None]:
    """The data, and the mask with the shape of it; those of a MaskedTensor are its own."""
    if is_masked_tensor(input):
        return input.get_data(), input.get_mask()
    if str(input.layout) != "torch.strided":
        raise ValueRangeError(f"masked {op} expects strided tensor (got {input.layout} tensor)")
    return input, None if mask is None else _input_mask(input, mask=mask)


def _input_mask(input: Any, *args: Any, mask: Any = None, **kwargs: Any) -> Any:
    """The mask as bools, in the shape of the data. (Libraries call it by PyTorch's name, with the
    arguments of the operation.)"""
    if mask is None:
        raise ValueRangeError("_input_mask requires explicit mask")
    if mask.dim() > input.dim():
        raise OutOfRange(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
            f"input: {tuple(mask.shape)} for {tuple(input.shape)})"
        )
    return T.expand(T.to_dtype(mask, dtypes.bool_), input.shape)


def _output_mask(op: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Which elements of a result have elements that count. (By PyTorch's name, too.)"""
    name = op.__name__
    counts = _input_mask(input, mask=kwargs.get("mask"))
    if name in _ALONG or name == "normalize":
        return counts
    args = args[1:] if name == "norm" else args
    keepdim = bool(kwargs.get("keepdim"))
    for d in reversed(_dims(args[0] if args else kwargs.get("dim"), input)):
        counts = T.any(counts, d, keepdim)
    return counts


def _filled(op: str, input: Tensor, mask: Tensor | None, identity: str) -> Tensor:
    """The data with the identity where the mask is False."""
    if mask is None:
        return input
    value = T.full_layout((), _identity(op, input.dtype, identity), input.dtype, input.device)
    return T.where(mask, input, value)  # type: ignore[no-any-return]


def _identity(op: str, dtype: dtypes.dtype, identity: str) -> Any:
    """The number that an identity is in a dtype."""
    if identity in ("zero", "one"):
        return identity == "one"
    sign = -1 if identity == "least" else 1
    if dtype.kind == "f":
        return math.nan if identity == "nan" else sign * math.inf
    if dtype.kind in "iu":
        return iinfo(dtype).min if sign < 0 else iinfo(dtype).max
    if dtype.kind == "c" and op == "logsumexp":
        return -math.inf
    raise MissingFeature(f"masked {op}: identity of {op} on {dtype} input")


def _dims(dim: Any, input: Tensor) -> tuple[int, ...]:
    """The dims that are meant, in order; None and () are all."""
    ndim = input.dim()
    if dim is None or dim == ():
        return tuple(range(ndim))
    return tuple(sorted(normalize_dims(dim, ndim, op="masked")))


def _whole(dtype: dtypes.dtype) -> dtypes.dtype:
    """What sums of a dtype are: int64 of smaller integers."""
    return dtypes.int64 if dtype.kind in "biu" else dtype


# ------------------------------------------------------------------------------------ reductions
def _prod(x: Tensor, dims: tuple[int, ...], keepdim: bool, dtype: Any) -> Any:
    result: Any = T.to_dtype(x, dtype)
    for d in reversed(dims):
        result = T.prod(result, d, keepdim)
    return result


_REDUCTIONS: dict[str, tuple[str, Compute]] = {
    "sum": ("zero", lambda x, dims, keep, dtype: T.sum(x, dims, keep, dtype=dtype)),
    "prod": ("one", _prod),
    "amax": ("least", lambda x, dims, keep, dtype: T.to_dtype(T.amax(x, dims, keep), dtype)),
    "amin": ("greatest", lambda x, dims, keep, dtype: T.to_dtype(T.amin(x, dims, keep), dtype)),
    "logsumexp": (
        "least", lambda x, dims, keep, dtype: T.to_dtype(T.logsumexp(x, dims, keep), dtype),
    ),
}  # fmt: skip
"""The identity, and what folds data without a mask: a function of it, the dims, keepdim, dtype."""

_EXTREMES: dict[str, tuple[str, Compute]] = {
    "argmax": ("least", lambda x, dim, keep: T.argmax(x, dim, keep)),
    "argmin": ("greatest", lambda x, dim, keep: T.argmin(x, dim, keep)),
}


def _reduction(name: str) -> Callable[..., Any]:
    identity, compute = _REDUCTIONS[name]

    def reduce(
        input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
        mask: Any = None,
    ) -> Any:  # fmt: skip
        data, kept = _taken(name, input, mask)
        dtype = dtype or (_whole(data.dtype) if name in ("sum", "prod") else data.dtype)
        dims = _dims(dim, data)
        return compute(_filled(name, data, kept, identity), dims, bool(keepdim), dtype)

    return _documented(reduce, name, "of all elements, or along ``dim`` (an int or a tuple)")


def _extreme(name: str) -> Callable[..., Any]:
    identity, compute = _EXTREMES[name]

    def reduce(
        input: Any, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None,
        mask: Any = None,
    ) -> Any:  # fmt: skip
        data, kept = _taken(name, input, mask)
        found = compute(_filled(name, data, kept, identity), dim, bool(keepdim))
        return T.to_dtype(found, dtype or data.dtype)

    return _documented(reduce, name, "of all elements, or along ``dim``")


def _documented(fn: Callable[..., Any], name: str, of: str) -> Callable[..., Any]:
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"``torch.{name}`` {of}, without those at which ``mask`` is False."
    return fn


def mean(
    input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
    mask: Any = None,
) -> Any:  # fmt: skip
    """The mean of the elements at which ``mask`` is True; NaN where there are none.

    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.mean(torch.tensor([1., 9., 2.]), mask=mask)
    tensor(1.5000)
    """
    data, kept = _taken("mean", input, mask)
    dtype = dtype or data.dtype
    if dtype.kind not in "fc":
        raise ValueRangeError(
            "mean(): Could not infer output dtype. Dtype must be either a floating point or "
            f"complex dtype. Got: {dtype}"
        )
    total = sum(data, dim, keepdim=keepdim, dtype=dtype, mask=kept)
    return total / _count(data, kept, dim, keepdim)


def _count(data: Tensor, kept: Tensor | None, dim: Any, keepdim: bool | None) -> Any:
    """How many elements take part."""
    if kept is None:
        kept = T.ones(data.shape, dtype=dtypes.bool_, device=data.device)
    return T.sum(kept, _dims(dim, data), bool(keepdim))


def median(
    input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """The median along ``dim`` of the elements at which ``mask`` is True; NaN where there are none.

    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.median(torch.tensor([1., 9., 2.]), mask=mask)
    tensor(1.)
    """
    data, kept = _taken("median", input, mask)
    (d,) = _dims(dim, data) or (0,)
    floats = data.dtype.kind == "f"
    numbers = data if floats else T.to_dtype(data, dtypes.float32)
    found = T.nanmedian(_filled("median", numbers, kept, "nan"), d, keepdim)[0]
    if floats:
        return found
    if bool(T.any(T.isnan(found))):
        raise ValueRangeError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    return T.to_dtype(found, dtype or data.dtype)


def norm(
    input: Any, ord: float | None = 2.0, dim: Any = None, *, keepdim: bool | None = False,
    dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """The vector norm of the elements at which ``mask`` is True.

    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.norm(torch.tensor([3., 9., 4.]), mask=mask)
    tensor(5.)
    """
    data, kept = _taken("norm", input, mask)
    filled = _filled("norm", data, kept, "greatest" if ord == -math.inf else "zero")
    return T.linalg_vector_norm(
        filled, 2.0 if ord is None else ord, _dims(dim, data), bool(keepdim),
        dtype=dtype or data.dtype,
    )  # fmt: skip


def _spread(name: str, root: bool) -> Callable[..., Any]:
    def spread(
        input: Any, dim: Any = None, unbiased: bool | None = None, *,
        correction: float | None = None, keepdim: bool | None = False, dtype: Any = None,
        mask: Any = None,
    ) -> Any:  # fmt: skip
        if unbiased is not None and correction is not None:
            raise AssertionError("Only one of unbiased and correction may be given")
        less = 1.0 if correction is None and unbiased is not False else correction or 0.0
        data, kept = _taken(name, input, mask)
        if dtype is None:
            dtype = data.dtype if data.dtype.kind in "fc" else dtypes.float32
        computed = dtype if dtype.kind in "fc" else dtypes.float32
        count = _count(data, kept, dim, True)
        away = data - sum(data, dim, keepdim=True, dtype=dtype, mask=kept) / count
        total = sum(away * away.conj(), dim, keepdim=keepdim, dtype=computed, mask=kept)
        count = T.reshape(count, total.shape)
        if less:
            real = computed.to_real() if computed.kind == "c" else computed
            count = T.clamp(T.to_dtype(count, real) - less, min=0)
        result = T.to_dtype(total / count, dtype)
        return T.sqrt(result) if root else result

    return _documented(spread, name, "of all elements, or along ``dim`` (an int or a tuple)")


# ------------------------------------------------------------------- results of the operand's shape
_ALONG: dict[str, tuple[str, Compute]] = {
    "cumsum": ("zero", lambda x, d, dtype: T.to_dtype(T.cumsum(x, d, dtype=dtype), dtype)),
    "cumprod": ("one", lambda x, d, dtype: T.to_dtype(T.cumprod(x, d, dtype=dtype), dtype)),
    "softmax": ("least", lambda x, d, dtype: T.softmax(x, d, dtype=dtype)),
    "log_softmax": ("least", lambda x, d, dtype: T.log_softmax(x, d, dtype=dtype)),
    "softmin": (
        "greatest", lambda x, d, dtype: NAMESPACES["nn.functional"]["softmin"](x, d, dtype=dtype),
    ),
}  # fmt: skip
"""The identity, and the function of data without a mask, a dim and a dtype."""


def _along(name: str) -> Callable[..., Any]:
    identity, compute = _ALONG[name]

    def function(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
        data, kept = _taken(name, input, mask)
        (d,) = _dims(dim, data) or (0,)
        return compute(_filled(name, data, kept, identity), d, dtype or data.dtype)

    return _documented(function, name, "along ``dim``")


def normalize(
    input: Any, ord: float, dim: Any, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> Any:
    """The elements divided by their norm along ``dim`` (by ``eps`` where that is greater); zeros
    where ``mask`` is False.

    >>> mask = torch.tensor([True, False, True])
    >>> torch.masked.normalize(torch.tensor([3., 9., 4.]), 2., 0, mask=mask)
    tensor([0.6000, 0.0000, 0.8000])
    """
    data, kept = _taken("normalize", input, mask)
    size = norm(data, ord, dim, keepdim=True, dtype=dtype or data.dtype, mask=kept)
    return _filled("normalize", data, kept, "zero") / T.clamp(size, min=eps)


def logaddexp(
    input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None
) -> Any:
    """``log(exp(input) + exp(other))``, where what is masked out adds nothing.

    >>> mask = torch.tensor([True, False])
    >>> torch.masked.logaddexp(torch.tensor([0., 1.]), torch.tensor([0., 2.]), input_mask=mask)
    tensor([0.6931, 2.0000])
    """
    sides = [_taken("logaddexp", *side) for side in ((input, input_mask), (other, other_mask))]
    filled = [_filled("logaddexp", data, kept, "least") for data, kept in sides]
    return T.to_dtype(T.logaddexp(*filled), dtype or sides[0][0].dtype)


sum, prod, amax, amin, logsumexp = [_reduction(name) for name in _REDUCTIONS]
argmax, argmin = [_extreme(name) for name in _EXTREMES]
var, std = _spread("var", root=False), _spread("std", root=True)
cumsum, cumprod, softmax, log_softmax, softmin = [_along(name) for name in _ALONG]
