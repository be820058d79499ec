"""What ops see of a sparse tensor: its indices, and its values as a dense tensor in the graph.

Two operations connect a sparse tensor to autograd: `values_of`, whose gradient is sparse, and
`from_values`, whose gradient is the gradient's elements at the indices. Every other rule is written
in dense ops between the two, so gradients of any order follow. Gradients of sparse tensors exist
where they store elements, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.autograd.function import Function, FunctionOp
from antorcha.core.dtypes import int64
from antorcha.core.lazy import lazy, np
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.interop import from_numpy
from antorcha.tensor.sparse.tensor import (
    SparseTensor,
    dense_zeros,
    keys_of,
    new_sparse,
    same_parts,
    sparse_dims,
)

sparse_compressed = lazy("antorcha.tensor.sparse.compressed")


class _Values(Function):
    """The values of a sparse tensor."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.pattern = (x._parts[:-1], tuple(x._layout.shape), x._format, x._coalesced)
        return x._parts[-1].detach()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return from_values(g, *ctx.pattern)


class _FromValues(Function):
    """A sparse tensor with these values."""

    @staticmethod
    def forward(
        ctx: Any, values: Any, indices: Any, shape: Any, format: str, coalesced: bool
    ) -> Any:
        ctx.pattern = (indices, shape, format)
        return new_sparse((*indices, values), shape, format, coalesced)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return values_at(g, *ctx.pattern), None, None, None, None


class _Coalesce(Function):
    """The same sparse tensor, each index once and in order."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        indices, values = merged(x._parts[0], x._parts[1], x._layout.shape)
        return new_sparse((indices, values), x._layout.shape, "coo", True)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


def values_of(x: SparseTensor) -> Tensor:
    """The values as a dense tensor, in the graph of the sparse one."""
    result: Tensor = _Values.apply(x)
    return result


def from_values(
    values: Tensor,
    indices: Sequence[Tensor],
    shape: Sequence[int],
    format: str = "coo",
    coalesced: bool = False,
) -> SparseTensor:
    """A sparse tensor in the graph of its values."""
    result: SparseTensor = _FromValues.apply(
        values, tuple(indices), tuple(shape), format, coalesced
    )
    return result


def coalesce(x: SparseTensor) -> SparseTensor:
    """Each index once, in order; values at the same index are added."""
    if x._coalesced:
        return x
    result: SparseTensor = _Coalesce.apply(x)
    return result


def terms(x: SparseTensor) -> tuple[Tensor, Tensor]:
    """(indices, values in the graph) for an op that is linear in the values. (Of a tensor that
    requires a gradient each index must be there once, or its gradient would be.)"""
    if x._rg:
        x = coalesce(x)
    return x._parts[0], values_of(x)


def merged(indices: Tensor, values: Tensor, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Indices in order, each once, and the sums of their values."""
    sparse = tuple(shape[: indices._layout.shape[0]])
    keys = keys_of(indices, sparse)
    unique, first, places = np.unique(keys, return_index=True, return_inverse=True)
    order = from_numpy(first.astype(np.int64))
    at = T.index_select(indices, 1, order)
    if len(unique) == len(keys):
        return at, T.index_select(values, 0, order)
    into = from_numpy(places.reshape(-1).astype(np.int64))
    layout = values._layout
    if layout.dtype.kind == "b":
        counts = merged(indices, T.to_dtype(values, int64), shape)[1]
        return at, T.ne(counts, 0)
    zeros = dense_zeros(values, (len(unique), *layout.shape[1:]))
    return at, T.index_add(zeros, 0, into, values)


def values_at(g: Tensor, indices: Sequence[Tensor], shape: Sequence[int], format: str) -> Tensor:
    """The elements of a gradient, dense or sparse, at a sparse tensor's indices."""
    if isinstance(g, SparseTensor):
        if g._format == format and all(
            a is b or a._storage is b._storage for a, b in zip(g._parts[:-1], indices, strict=True)
        ):
            return values_of(g)
        if format in ("csr", "csc"):
            places = (sparse_compressed.coo_indices(indices, shape, format),)
            return values_at(sparse_compressed.in_format(g, "coo"), places, shape,
                             "coo")  # fmt: skip
        if format == "coo":
            return _found_in(coalesce(sparse_compressed.in_format(g, "coo")), indices[0])
        g = to_dense(g)
    if format in ("bsr", "bsc"):
        found: Tensor = sparse_compressed.to_blocks(g, indices, shape, format)
        return found
    at = indices[0] if format == "coo" else sparse_compressed.coo_indices(indices, shape, format)
    return T.index_at(g, tuple(T.unbind(at, 0)), tuple(range(at._layout.shape[0])))  # type: ignore[no-any-return]


def _found_in(g: SparseTensor, wanted: Tensor) -> Tensor:
    """The values of a coalesced tensor at some indices; 0 where it has none."""
    sparse = tuple(g._layout.shape[: sparse_dims(g)])
    have, want = keys_of(g._parts[0], sparse), keys_of(wanted, sparse)
    place = np.searchsorted(have, want)
    there = place < len(have)
    place = np.where(there, place, 0)
    there &= (have[place] == want) if len(have) else False
    values = values_of(g)
    layout = values._layout
    # One row of zeros after the others stands for what is not there.
    padded = T.cat((values, dense_zeros(values, (1, *layout.shape[1:]))), 0)
    at = from_numpy(np.where(there, place, len(have)).astype(np.int64))
    return T.index_select(padded, 0, at)  # type: ignore[no-any-return]


def to_dense(x: SparseTensor) -> Tensor:
    """The same elements in a dense tensor."""
    x = sparse_compressed.in_format(x, "coo")
    indices, values = terms(x)
    shape = x._layout.shape
    result: Tensor
    if values._layout.dtype.kind == "b":
        flags = T.index_put(T.full_layout(tuple(shape), 0, int64, shape_device(x)),
                            tuple(T.unbind(indices, 0)), T.to_dtype(values, int64),
                            accumulate=True)  # fmt: skip
        result = T.ne(flags, 0)
    elif not indices._layout.shape[0]:
        result = T.add(dense_zeros(x, shape), T.sum(values, 0))
    else:
        result = T.index_put(dense_zeros(x, shape), tuple(T.unbind(indices, 0)), values,
                           accumulate=True)  # fmt: skip
    return result


def shape_device(x: Tensor) -> Any:
    return x._layout.device


def detached(x: SparseTensor) -> SparseTensor:
    """The same parts outside of any graph."""
    return same_parts(x)


def named(x: Any, name: str) -> Any:
    """A sparse result's node under the op's own name, as PyTorch shows it."""
    if isinstance(x, SparseTensor) and x._fn is not None and x._fn.op is _FromValues._op:
        op = _ops.get(name)
        if op is None:
            op = _ops[name] = FunctionOp(_FromValues)
            op.node_name = name
        x._fn.op = op
    return x


_ops: dict[str, Any] = {}
_FromValues._op.node_name = "SparseCooTensorWithDimsAndTensorsBackward0"
_Coalesce._op.node_name = "CoalesceBackward0"
_Values._op.node_name = "ValuesBackward0"
