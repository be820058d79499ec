"""Elementwise ops, sums and rearrangements of sparse tensors.

Each rule takes what the op takes. Those that may change which elements are zero have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.dtypes import dtype as DType
from antorcha.core.dtypes import int64
from antorcha.core.lazy import np
from antorcha.core.shapes import normalize_dim
from antorcha.errors import ArgumentError, GraphError, MissingFeature, OutOfRange, ShapeError
from antorcha.ops.kinds.record import REGISTRY, T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.interop import from_numpy
from antorcha.tensor.sparse.compressed import in_format
from antorcha.tensor.sparse.dispatch import in_place, refuse, rule
from antorcha.tensor.sparse.parts import (
    coalesce,
    from_values,
    terms,
    to_dense,
    values_at,
    values_of,
)
from antorcha.tensor.sparse.tensor import (
    SparseTensor,
    dense_zeros,
    is_sparse,
    keys_of,
    new_sparse,
    sparse_dims,
)


def with_values(x: SparseTensor, values: Tensor) -> SparseTensor:
    """A tensor of the same pattern with other values."""
    return from_values(values, x._parts[:-1], x._layout.shape, x._format, x._coalesced)


# ---------------------------------------------------------------------- functions that keep zeros
KEEP_ZERO = (
    "abs", "asin", "asinh", "atan", "atanh", "ceil", "erf", "erfinv", "expm1", "floor", "frac",
    "isinf", "isnan", "log1p", "neg", "nan_to_num", "positive", "rad2deg", "deg2rad", "relu",
    "round", "sgn", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip


def _unary(name: str) -> Callable[..., Any]:
    def apply(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_sparse(input):
            return refuse(name, next(a for a in args if is_sparse(a)))
        if name != "neg":  # every other one is not linear: sums come first
            input = coalesce(input) if input._format == "coo" else input
        return with_values(input, getattr(T, name)(values_of(input), *args, **kwargs))

    return apply


for _name in KEEP_ZERO:
    if _name in REGISTRY:
        rule(_name)(_unary(_name))


@rule("pow", "pow_scalar")
def _pow(input: Any, exponent: Any) -> Any:
    if not is_sparse(input) or isinstance(exponent, Tensor):
        return refuse("pow", input if is_sparse(input) else exponent)
    if not exponent > 0:
        raise GraphError("pow: cannot raise to zeroth (or negative) power on sparse tensor")
    x = coalesce(input) if input._format == "coo" else input
    return with_values(x, T.pow(values_of(x), exponent))


# ------------------------------------------------------------------------------------- arithmetic
def _is_number(value: Any) -> bool:
    return not isinstance(value, Tensor) or (not is_sparse(value) and not value._layout.ndim)


@rule("mul")
def _mul(input: Any, other: Any) -> Any:
    if not is_sparse(input):
        input, other = other, input
    if _is_number(other):
        return with_values(input, T.mul(values_of(input), other))
    x = coalesce(in_format(input, "coo"))
    if is_sparse(other):
        result = _product(x, coalesce(in_format(other, "coo")))
    else:
        shape = tuple(x._layout.shape)
        if not _same_or_broadcast(shape, tuple(other._layout.shape)):
            raise ShapeError(
                f"mul: a sparse tensor of {shape} cannot be multiplied by a dense one of "
                f"{tuple(other._layout.shape)}"
            )
        wide = T.expand(other, shape)
        result = with_values(x, T.mul(values_of(x), values_at(wide, x._parts[:1], shape, "coo")))
    return in_format(result, input._format)


def _same_or_broadcast(shape: Sequence[int], other: Sequence[int]) -> bool:
    lead = len(shape) - len(other)
    return lead >= 0 and all(m in (1, n) for n, m in zip(shape[lead:], other, strict=True))


def _product(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The elements that both have."""
    _check_shapes("mul", a, b)
    shape = a._layout.shape
    sparse = tuple(shape[: sparse_dims(a)])
    _, left, right = np.intersect1d(
        keys_of(a._parts[0], sparse), keys_of(b._parts[0], sparse), True, return_indices=True
    )
    at, at_b = from_numpy(left.astype(np.int64)), from_numpy(right.astype(np.int64))
    values = T.mul(T.index_select(values_of(a), 0, at), T.index_select(values_of(b), 0, at_b))
    return from_values(values, (T.index_select(a._parts[0], 1, at),), shape, "coo", True)


@rule("div", "true_divide")
def _div(input: Any, other: Any, *, rounding_mode: Any = None) -> Any:
    if not is_sparse(input) or not _is_number(other):
        raise GraphError("div: Sparse division requires a scalar or zero-dim dense divisor")
    x = coalesce(input) if rounding_mode and input._format == "coo" else input
    return with_values(x, T.div(values_of(x), other, rounding_mode=rounding_mode))


@rule("floor_divide")
def _floor_divide(input: Any, other: Any) -> Any:
    return _div(input, other, rounding_mode="floor")


@rule("add")
def _add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    if not is_sparse(input):
        return _add_to_dense(input, other, alpha)
    if not is_sparse(other):
        raise GraphError(
            "add: add(sparse, dense) is not supported. Use add(dense, sparse) instead."
        )
    return sum_of(input, other, alpha)


@rule("sub")
def _sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return _add(input, other, alpha=-alpha)


def sum_of(a: SparseTensor, b: SparseTensor, alpha: Any = 1) -> SparseTensor:
    """``a + alpha * b``: the elements of both."""
    _check_shapes("add", a, b)
    if a._format != "coo":
        return in_format(sum_of(in_format(a, "coo"), in_format(b, "coo"), alpha), a._format)
    b = in_format(b, "coo")
    if sparse_dims(a) != sparse_dims(b):
        raise GraphError("add: expected self and other to have the same number of sparse dims")
    more = values_of(b)
    if type(alpha) is bool or alpha != 1:
        more = T.mul(more, alpha)
    mine, theirs = a._parts[0], b._parts[0]
    coalesced = a._coalesced and b._coalesced
    if mine._layout.shape == theirs._layout.shape and np.array_equal(mine.numpy(), theirs.numpy()):
        total = T.add(values_of(a), more)
        return from_values(total, (mine,), a._layout.shape, "coo", coalesced)
    values = T.cat((values_of(a), more), 0)
    both = from_values(values, (T.cat((mine, theirs), 1),), a._layout.shape)
    return coalesce(both) if coalesced else both


def _add_to_dense(input: Any, other: SparseTensor, alpha: Any) -> Tensor:
    if not isinstance(input, Tensor):
        return refuse("add", other)
    _check_shapes("add", input, other)
    x = in_format(other, "coo")
    indices, values = terms(x)
    if type(alpha) is bool or alpha != 1:
        values = T.mul(values, alpha)
    common = T.add(input.new_zeros(()), other._parts[-1].new_zeros(()))._layout.dtype
    result: Tensor = T.index_put(
        T.to_dtype(input, common), tuple(T.unbind(indices, 0)), T.to_dtype(values, common),
        accumulate=True,
    )  # fmt: skip
    return result


def add_into(target: Tensor, x: SparseTensor, alpha: Any = 1) -> None:
    """``target += alpha * x`` for a dense target, in place."""
    _check_shapes("add_", target, x)
    x = in_format(x, "coo")
    values = x._parts[1] if type(alpha) is not bool and alpha == 1 else T.mul(x._parts[1], alpha)
    if sparse_dims(x) == 1:
        target.index_add_(0, x._parts[0].select(0, 0), T.to_dtype(values, target._layout.dtype))
    else:
        target.index_put_(
            tuple(T.unbind(x._parts[0], 0)), T.to_dtype(values, target._layout.dtype),
            accumulate=True,
        )  # fmt: skip


@rule("add_")
def _add_in_place(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    if not is_sparse(input):
        if isinstance(other, SparseTensor) and other._rg:
            input.add_(to_dense(other), alpha=alpha)
        else:
            add_into(input, other, alpha)
        return input

    return in_place("add_", (input, other), {"alpha": alpha})


@rule("sub_")
def _sub_in_place(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return _add_in_place(input, other, alpha=-alpha)


@rule("mul_")
def _mul_in_place(input: Any, other: Any) -> Any:
    if not is_sparse(input):
        return input.copy_(T.mul(input, to_dense(other)))

    return in_place("mul_", (input, other), {})


def _check_shapes(name: str, a: Tensor, b: Tensor) -> None:
    if a._layout.shape != b._layout.shape:
        raise ShapeError(
            "{op}: expected 'self' and 'other' to have same sizes, but {0.shape} != {1.shape} "
            "(sparse tensors do not broadcast)",
            reason="broadcast", op=name, operands=(a._layout.shape, b._layout.shape),
        )  # fmt: skip


# ----------------------------------------------------------------------------------------- copies
@rule("clone")
def _clone(input: SparseTensor, *, memory_format: Any = None) -> SparseTensor:
    parts = [T.clone(part) for part in input._parts[:-1]]
    return from_values(T.clone(values_of(input)), parts, input._layout.shape, input._format,
                       input._coalesced)  # fmt: skip


@rule("to_dtype")
def to_dtype(input: SparseTensor, dtype: DType) -> SparseTensor:
    return with_values(input, T.to_dtype(values_of(input), dtype))


@rule("to_device")
def _to_device(input: SparseTensor, device: Any, non_blocking: bool = False) -> SparseTensor:
    parts = [T.to_device(part, device) for part in input._parts[:-1]]
    values = T.to_device(values_of(input), device)
    return from_values(values, parts, input._layout.shape, input._format, input._coalesced)


@rule("copy")
def _copy(input: Any, src: Any, non_blocking: bool = False) -> Any:
    if not (is_sparse(input) and is_sparse(src)):
        raise GraphError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{input.type()} and src type = {src.type()}"
        )
    return to_dtype(_clone(in_format(src, input._format)), input._layout.dtype)


@rule("zeros_like", "zero", "empty_like")
def _zeros_like(input: SparseTensor, *args: Any, dtype: Any = None, **_: Any) -> SparseTensor:
    dims, shape = sparse_dims(input), input._layout.shape
    values = T.zeros((0, *shape[dims:]), dtype=dtype or input._layout.dtype)
    result = new_sparse((T.zeros((dims, 0), dtype=int64), values), shape, "coo", True)
    return in_format(result, input._format)


@rule("conj", "conj_physical", "conjugate")
def _conj(input: SparseTensor) -> SparseTensor:
    return with_values(input, T.conj(values_of(input)))


@rule("contiguous")
def _contiguous(input: SparseTensor, memory_format: Any = None) -> SparseTensor:
    return input


# ----------------------------------------------------------------------------------- arrangements
@rule("transpose", "swapaxes", "swapdims")
def _transpose(input: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    ndim = input._layout.ndim
    order = list(range(ndim))
    a, b = [normalize_dim(d, ndim, op="transpose") for d in (dim0, dim1)]
    order[a], order[b] = order[b], order[a]
    return permuted("transpose", input, order)


@rule("t", "adjoint")
def _t(input: SparseTensor) -> SparseTensor:
    if input._layout.ndim > 2:
        raise ShapeError(f"t() expects a tensor with <= 2 dimensions, but self is "
                         f"{input._layout.ndim}D")  # fmt: skip
    return permuted("t", input, list(range(input._layout.ndim))[::-1])


@rule("permute")
def _permute(input: SparseTensor, *dims: Any) -> SparseTensor:
    order = list(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else list(dims)
    ndim = input._layout.ndim
    return permuted("permute", input, [normalize_dim(d, ndim, op="permute") for d in order])


_TURNED = {"csr": "csc", "csc": "csr", "bsr": "bsc", "bsc": "bsr"}


def permuted(name: str, x: SparseTensor, order: Sequence[int]) -> SparseTensor:
    """The dims in another order; sparse and dense ones do not mix."""
    shape = x._layout.shape
    sizes = [shape[d] for d in order]
    if x._format != "coo":
        if order != [1, 0]:
            return refuse(name, x)
        values = values_of(x)
        if x._format in ("bsr", "bsc"):
            values = T.transpose(values, -1, -2)
        return from_values(values, x._parts[:2], sizes, _TURNED[x._format])
    sparse = sparse_dims(x)
    if any((d < sparse) != (k < sparse) for k, d in enumerate(order)):
        raise ShapeError(f"{name}: transposing sparse and dense dims of a sparse tensor is not "
                         "supported")  # fmt: skip
    indices, values = x._parts[0], values_of(x)
    at = T.index_select(indices, 0, from_numpy(np.array(order[:sparse], np.int64)))
    if len(order) > sparse:
        values = T.permute(values, (0, *[d - sparse + 1 for d in order[sparse:]]))
    coalesced = x._coalesced and list(order[:sparse]) == list(range(sparse))
    return from_values(values, (at,), sizes, "coo", coalesced)


@rule("unsqueeze")
def _unsqueeze(input: SparseTensor, dim: int) -> SparseTensor:
    x = in_format(input, "coo")
    shape, sparse = list(x._layout.shape), sparse_dims(x)
    dim = normalize_dim(dim, len(shape) + 1, op="unsqueeze")
    shape.insert(dim, 1)
    if dim > sparse:
        values = T.unsqueeze(values_of(x), dim - sparse + 1)
        return from_values(values, x._parts[:1], shape, "coo", x._coalesced)
    rows = list(T.unbind(x._parts[0], 0))
    rows.insert(dim, T.zeros_like(rows[0]) if rows else T.zeros((1,), dtype=int64))
    return from_values(values_of(x), (T.stack(rows),), shape, "coo", x._coalesced)


@rule("index_select")
def _index_select(input: Any, dim: int, index: Any) -> Any:
    if is_sparse(index):
        return refuse("index_select", index)
    x = in_format(input, "coo")
    shape, sparse = list(x._layout.shape), sparse_dims(x)
    dim = normalize_dim(dim, len(shape), op="index_select")
    wanted = index.numpy().reshape(-1).astype(np.int64)
    if wanted.size and not (wanted.min() >= -shape[dim] and wanted.max() < shape[dim]):
        raise OutOfRange(f"index_select(): index out of range for dimension of size {shape[dim]}")
    wanted = np.where(wanted < 0, wanted + shape[dim], wanted)
    shape[dim] = len(wanted)
    if dim >= sparse:
        values = T.index_select(values_of(x), dim - sparse + 1, from_numpy(wanted))
        return from_values(values, x._parts[:1], shape, "coo", x._coalesced)
    indices = x._parts[0].numpy()
    column = indices[dim]
    order = np.argsort(column, kind="stable")
    low = np.searchsorted(column[order], wanted, "left")
    counts = np.searchsorted(column[order], wanted, "right") - low
    starts = np.repeat(low - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
    taken = order[starts + np.arange(counts.sum())] if counts.size else np.zeros(0, np.int64)
    found = indices[:, taken].copy()
    found[dim] = np.repeat(np.arange(len(wanted)), counts)
    values = T.index_select(values_of(x), 0, from_numpy(taken.astype(np.int64)))
    return from_values(values, (from_numpy(found),), shape)


@rule("select")
def _select(input: SparseTensor, dim: int, index: int) -> Any:
    x = in_format(input, "coo")
    shape, sparse = list(x._layout.shape), sparse_dims(x)
    dim = normalize_dim(dim, len(shape), op="select")
    if not -shape[dim] <= index < shape[dim]:
        raise OutOfRange(
            f"select(): index {index} out of range for tensor of size {shape} at dimension {dim}"
        )
    index = index % shape[dim]
    rest = shape[:dim] + shape[dim + 1 :]
    if dim >= sparse:
        values = T.select(values_of(x), dim - sparse + 1, index)
        return from_values(values, x._parts[:1], rest, "coo", x._coalesced)
    indices = x._parts[0].numpy()
    at = from_numpy(np.flatnonzero(indices[dim] == index).astype(np.int64))
    values = T.index_select(values_of(x), 0, at)
    if sparse == 1:
        return T.sum(values, 0)
    others = from_numpy(np.delete(indices, dim, 0))
    return from_values(values, (T.index_select(others, 1, at),), rest, "coo", x._coalesced)


@rule("unbind")
def _unbind(input: SparseTensor, dim: int = 0) -> tuple[Any, ...]:
    return tuple([_select(input, dim, k) for k in range(input._layout.shape[dim])])


@rule("cat", "concat", "concatenate")
def _cat(tensors: Any, dim: int = 0) -> SparseTensor:
    if not all(is_sparse(t) for t in tensors):
        raise GraphError("cat: Concatenating sparse tensors, but found a dense tensor among them")
    parts = [in_format(t, "coo") for t in tensors]
    first = parts[0]
    shape, sparse = list(first._layout.shape), sparse_dims(first)
    dim = normalize_dim(dim, len(shape), op="cat")
    for each in parts[1:]:
        other = list(each._layout.shape)
        if sparse_dims(each) != sparse or shape[:dim] + shape[dim + 1 :] != (
            other[:dim] + other[dim + 1 :]
        ):
            raise ShapeError(f"cat: sparse tensors of {tuple(shape)} and {tuple(other)} differ in "
                             f"another dim than {dim}")  # fmt: skip
    if dim >= sparse:
        raise MissingFeature("cat: sparse tensors are joined along sparse dims only")
    indices, before = [], 0
    for each in parts:
        at = each._parts[0].numpy().copy()
        at[dim] += before
        before += each._layout.shape[dim]
        indices.append(from_numpy(at))
    shape[dim] = before
    values = T.cat([values_of(each) for each in parts], 0)
    return from_values(values, (T.cat(indices, 1),), shape)


@rule("stack")
def _stack(tensors: Any, dim: int = 0) -> SparseTensor:
    return _cat([_unsqueeze(t, dim) for t in tensors], dim)  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------------------- sums
@rule("sum")
def _sum(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if dim is None or dim == ():
        return T.sum(terms(in_format(input, "coo"))[1], dtype=dtype)
    result = sparse_sum(input, dim, dtype)
    if keepdim:
        ndim = input._layout.ndim
        dims = [dim] if isinstance(dim, int) else dim
        for d in sorted(normalize_dim(d, ndim, op="sum") for d in dims):
            result = _unsqueeze(result, d) if is_sparse(result) else T.unsqueeze(result, d)
    return result


def sparse_sum(input: SparseTensor, dim: Any = None, dtype: Any = None) -> Any:
    """The sum over some dims: sparse while sparse dims are left, else dense."""
    x = in_format(input, "coo")
    if dtype is not None:
        x = to_dtype(x, dtype)
    if dim is None:
        return T.sum(terms(x)[1])
    shape, sparse = x._layout.shape, sparse_dims(x)
    given = [dim] if isinstance(dim, int) else list(dim)
    dims = {normalize_dim(d, len(shape), op="sum") for d in given}
    if len(dims) != len(given):
        raise GraphError(f"sum: dim appears multiple times in the list of dims {given}")
    indices, values = terms(x)
    inner = [d - sparse + 1 for d in dims if d >= sparse]
    if inner:
        values = T.sum(values, tuple(inner))
    rest = [n for d, n in enumerate(shape) if d not in dims]
    kept = [d for d in range(sparse) if d not in dims]
    if not kept:
        return T.sum(values, 0)
    at = T.index_select(indices, 0, from_numpy(np.array(kept, np.int64)))
    result = from_values(values, (at,), rest)
    return (
        coalesce(result)
        if len(kept) < sparse
        else from_values(values, (indices,), rest, "coo", x._coalesced)
    )


@rule("any")
def _any(input: SparseTensor, *dims: Any, **_: Any) -> Tensor:
    if dims:
        return refuse("any", input)
    return T.any(coalesce(in_format(input, "coo"))._parts[1])  # type: ignore[no-any-return]


@rule("norm", "linalg_vector_norm", "linalg_norm")
def _norm(input: SparseTensor, p: Any = 2, dim: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    if dim not in (None, ()) or args:
        return refuse("norm", input)
    x = coalesce(input) if input._format == "coo" else input
    return T.norm(values_of(x), 2 if p in (None, "fro") else p)  # type: ignore[no-any-return]


def _softmax_rule(log: bool) -> Callable[..., Any]:
    def apply(input: SparseTensor, dim: int, dtype: Any = None, **_: Any) -> SparseTensor:
        return softmax(input, dim, dtype, log)

    return apply


rule("softmax")(_softmax_rule(False))
rule("log_softmax")(_softmax_rule(True))


def softmax(input: SparseTensor, dim: int, dtype: Any, log: bool) -> SparseTensor:
    """Softmax along a dim over the elements that are there: the others count as minus infinity."""
    x = coalesce(in_format(input, "coo"))
    if dtype is not None:
        x = to_dtype(x, dtype)
    shape, sparse = x._layout.shape, sparse_dims(x)
    dim = normalize_dim(dim, len(shape), op="softmax")
    values = values_of(x)
    if dim >= sparse:
        inner = (T.log_softmax if log else T.softmax)(values, dim - sparse + 1)
        return with_values(x, inner)
    others = [d for d in range(sparse) if d != dim]
    rows = x._parts[0].numpy()[others]
    keys = np.zeros(rows.shape[1], np.int64)
    for row, d in zip(rows, others, strict=True):
        keys = keys * shape[d] + row
    _, group = np.unique(keys, return_inverse=True)
    at = from_numpy(group.reshape(-1).astype(np.int64))
    pools = int(group.max()) + 1 if group.size else 0
    rest = tuple(values._layout.shape[1:])
    low = T.full((pools, *rest), -math.inf, dtype=values._layout.dtype)
    wide = T.expand(T.reshape(at, (-1, *[1] * len(rest))), tuple(values._layout.shape))
    top = T.scatter_reduce(low, 0, wide, values.detach(), "amax")
    shifted = T.sub(values, T.index_select(top, 0, at))
    powers = T.exp(shifted)
    total = T.index_add(dense_zeros(values, (pools, *rest)), 0, at, powers)
    if log:
        return with_values(x, T.sub(shifted, T.log(T.index_select(total, 0, at))))
    return with_values(x, T.div(powers, T.index_select(total, 0, at)))


def check_format(name: str, x: Any, wanted: str) -> None:
    """Refuses a tensor of another layout."""
    if not is_sparse(x) or x._format != wanted:
        shown = "Strided" if not is_sparse(x) else x.layout
        raise ArgumentError(f"{name}: expected a tensor of layout sparse_{wanted}, got {shown}")
