"""Making sparse tensors: ``torch.sparse_coo_tensor``, and from dense ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.lazy import np
from antorcha.errors import GraphError, MissingFeature, ShapeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import as_tensor
from antorcha.tensor.interop import from_numpy
from antorcha.tensor.sparse.compressed import in_format
from antorcha.tensor.sparse.parts import from_values, named, values_at
from antorcha.tensor.sparse.tensor import FORMATS, SparseTensor, keys_of, new_sparse

check_invariants = False
"""Are indices checked when a sparse tensor is made? (``check_sparse_tensor_invariants``)"""


def make_coo(
    args: tuple[Any, ...], dtype: Any, device: Any, requires_grad: bool, checked: bool | None,
    coalesced: bool | None,
) -> SparseTensor:  # fmt: skip
    """A COO tensor from (indices, values[, size]), or an empty one from (size)."""
    if len(args) == 1:
        return _empty(args[0], dtype, device, requires_grad)
    indices, values, *rest = args
    at = as_tensor(indices, device=device).detach()
    if at._layout.dtype.kind not in "iu":
        if at._layout.numel:
            raise GraphError(f"indices must be an int64 tensor, not {at._layout.dtype}")
        at = at.long()
    at = at.long()
    given = as_tensor(values, dtype=dtype, device=device)
    if given._layout.ndim == 0:
        given = T.reshape(given, (1,))
    if at._layout.ndim != 2:
        raise ShapeError(f"indices must be sparse_dim x nnz, but got: {list(at._layout.shape)}")
    count = at._layout.shape[1]
    if given._layout.shape[0] != count:
        raise ShapeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{count}, nnz from values: {given._layout.shape[0]}"
        )
    inner = tuple(given._layout.shape[1:])
    shape = tuple(rest[0]) if rest and rest[0] is not None else _inferred(at, inner)
    dims = at._layout.shape[0]
    if dims + len(inner) != len(shape):
        raise ShapeError(
            f"number of dimensions must be sparse_dim ({dims}) + dense_dim ({len(inner)}), but got "
            f"{len(shape)}"
        )
    if tuple(shape[dims:]) != inner:
        raise ShapeError(
            f"values has incorrect size, expected {[count, *shape[dims:]]}, got "
            f"{list(given._layout.shape)}"
        )
    if check_invariants if checked is None else checked:
        check_bounds(at, shape)
    result = named(
        from_values(given, (at,), shape, "coo", bool(coalesced)),
        "SparseCooTensorWithDimsAndTensorsBackward0",
    )
    if requires_grad:
        result = new_sparse(result._parts, shape, "coo", bool(coalesced))
        result.requires_grad_()
    return result  # type: ignore[no-any-return]


def _empty(size: Any, dtype: Any, device: Any, requires_grad: bool) -> SparseTensor:
    shape = (size,) if isinstance(size, int) else tuple(size)
    indices = T.zeros((len(shape), 0), dtype=as_tensor(0)._layout.dtype, device=device)
    result = new_sparse((indices, T.zeros((0,), dtype=dtype, device=device)), shape, "coo", True)
    result._rg = bool(requires_grad)
    return result


def without_elements(
    size: Any, dtype: Any, device: Any, layout: Any, requires_grad: bool
) -> SparseTensor:
    """``torch.zeros(size, layout=torch.sparse_coo)``."""
    format = next(f for f, each in FORMATS.items() if str(each) == str(layout))
    result = in_format(_empty(size, dtype, device, False), format)
    if requires_grad:
        result.requires_grad_()
    return result


def _inferred(indices: Tensor, inner: Sequence[int]) -> tuple[int, ...]:
    """The smallest shape that holds the indices."""
    array = indices.numpy()
    if not array.shape[1]:
        return (*[0] * array.shape[0], *inner)
    low = array.min(1)
    for d, n in enumerate(low):
        if n < 0:
            raise GraphError(f"found negative index {n} for dim {d}")
    return (*[int(n) + 1 for n in array.max(1)], *inner)


def check_bounds(indices: Tensor, shape: Sequence[int]) -> None:
    """Refuses indices outside of the shape."""
    array = indices.numpy()
    if not array.shape[1]:
        return
    for d, row in enumerate(array):
        if row.min() < 0:
            raise GraphError(f"found negative index {row.min()} for dim {d}")
        if row.max() >= shape[d]:
            raise GraphError(
                f"size is inconsistent with indices: for dim {d}, size is {shape[d]} but found "
                f"index {row.max()}"
            )


def check_coalesced(x: SparseTensor) -> None:
    """Refuses a tensor said to be coalesced whose indices are not in order, each once."""
    if x._coalesced:
        keys = keys_of(x._parts[0], x._layout.shape[: x._parts[0]._layout.shape[0]])
        if (np.diff(keys) <= 0).any():
            raise GraphError("is_coalesced is True, but the indices are not unique and in order")


def from_dense(x: Tensor, dims: int | None = None) -> SparseTensor:
    """The elements of a dense tensor that are not zero, as COO with so many sparse dims."""
    layout = x._layout
    sparse = layout.ndim if dims is None else dims
    if not 0 <= sparse <= layout.ndim or (sparse == 0 and layout.ndim):
        raise GraphError(f"to_sparse: sparse_dim must be 1 to {layout.ndim}, not {sparse}")
    array = x.detach().numpy() if layout.dtype.name != "bfloat16" else x.detach().float().numpy()
    some = array != 0
    if sparse < layout.ndim:
        some = some.any(axis=tuple(range(sparse, layout.ndim)))
    at = from_numpy(np.array(np.nonzero(np.atleast_1d(some)), np.int64))
    if not layout.ndim:
        at = at[:0]
        values = T.reshape(x, (1,)) if at._layout.shape[1] else T.reshape(x, (1,))[:0]
    else:
        values = T.index_at(x, tuple(T.unbind(at, 0)), tuple(range(sparse)))
    return from_values(values, (at,), layout.shape, "coo", True)


def to_sparse(
    self: Tensor, *args: Any, sparse_dim: Any = None, layout: Any = None, blocksize: Any = None,
    dense_dim: Any = None,
) -> SparseTensor:  # fmt: skip
    """The tensor in a sparse layout: COO, or the one given."""
    if args and not isinstance(args[0], int):
        layout = args[0]
    elif args:
        sparse_dim = args[0]
    if dense_dim:
        raise MissingFeature("to_sparse: dense_dim is not supported for compressed layouts")
    format = next((f for f, each in FORMATS.items() if each is layout), None)
    if format is None and layout is not None:
        raise GraphError(f"to_sparse: conversion to {layout} is not supported")
    if isinstance(self, SparseTensor):
        return named(in_format(self, format or "coo", blocksize), "ToSparseBackward0")  # type: ignore[no-any-return]
    result = from_dense(self, sparse_dim)
    if format not in (None, "coo"):
        result = in_format(result, format, blocksize)
    return named(result, "ToSparseBackward0")  # type: ignore[no-any-return]


def masked(self: Tensor, mask: SparseTensor) -> SparseTensor:
    """The elements of a tensor, dense or sparse, where ``mask`` has elements."""
    if not isinstance(mask, SparseTensor):
        raise GraphError("sparse_mask: mask must be a sparse tensor")
    if self._layout.shape != mask._layout.shape:
        raise ShapeError(
            f"sparse_mask(): operands have incompatible sizes; self has size "
            f"{list(self._layout.shape)} but mask has size {list(mask._layout.shape)}"
        )
    values = values_at(self, mask._parts[:-1], tuple(mask._layout.shape), mask._format)
    result = from_values(
        values, mask._parts[:-1], mask._layout.shape, mask._format, mask._coalesced
    )
    return named(result, "SparseMaskBackward0")  # type: ignore[no-any-return]
