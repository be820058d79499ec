"""The class of sparse tensors.

A sparse tensor has a `SparseLayout` (its shape, dtype and device) and a storage of no bytes: a
kernel that were given it by mistake would find that its elements lie outside of their storage. No
plan is ever kept for such a layout, so every op comes to the general way of a call (`path.call`),
which asks `dispatch`. What the tensor holds is in ``_parts``, dense tensors outside of any graph:
(indices, values) in COO, (compressed indices, plain indices, values) in the compressed formats. Its
own ``_rg``, ``_fn`` and ``_grad`` are those of any tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.lazy import np
from antorcha.core.shapes import Size, contiguous_strides
from antorcha.core.shapes import numel as count_of
from antorcha.ops.kinds.record import T
from antorcha.runtime.memory.layout import Layout, contiguous
from antorcha.runtime.memory.storage import Storage, new_storage
from antorcha.runtime.tensor import Tensor
from antorcha.tensor import layouts
from antorcha.tensor.subclass import disabled_torch_function

FORMATS = {
    "coo": layouts.sparse_coo, "csr": layouts.sparse_csr, "csc": layouts.sparse_csc,
    "bsr": layouts.sparse_bsr, "bsc": layouts.sparse_bsc,
}  # fmt: skip


class SparseLayout(Layout):
    """The shape, dtype and device of one sparse tensor; never in the table of layouts."""

    __slots__ = ()
    sparse = True

    def __init__(self, shape: Sequence[int], dtype: Any, device: Any) -> None:
        self.shape, self.dtype, self.device = Size(shape), dtype, device
        self.strides = tuple(contiguous_strides(self.shape))
        self.numel, self.ndim = count_of(self.shape), len(self.shape)
        self.itemsize, self.contiguous = dtype.itemsize, False
        self.family = self.form = None
        self.low, self.high, self.nbytes = 0, max(self.numel, 1), 0

    def like(self, *args: Any, **kwargs: Any) -> Layout:
        """As a dense layout."""
        return contiguous(self.shape, self.dtype, self.device).like(*args, **kwargs)


class SparseTensor(Tensor):
    """A sparse tensor, as ``torch.sparse_coo_tensor`` and ``Tensor.to_sparse`` make it."""

    __slots__ = ("_coalesced", "_format", "_parts")
    _parts: tuple[Tensor, ...]
    _format: str
    _coalesced: bool

    __torch_function__ = classmethod(disabled_torch_function)


def new_sparse(
    parts: Sequence[Tensor], shape: Sequence[int], format: str = "coo", coalesced: bool = False
) -> SparseTensor:
    """A sparse tensor over dense parts, outside of any graph."""
    result: SparseTensor = object.__new__(SparseTensor)
    values = parts[-1]._layout
    result._layout = SparseLayout(shape, values.dtype, values.device)
    result._storage = _empty()
    result._offset, result._nr = 0, 0
    result._rg = False
    result._fn = result._grad = result._base = result._extra = None
    result._parts = tuple([part.detach() for part in parts])
    result._format, result._coalesced = format, coalesced
    return result


def _empty() -> Storage:
    return new_storage(0)


def is_sparse(value: Any) -> bool:
    """Is it a sparse tensor?"""
    return isinstance(value, SparseTensor)


def same_parts(x: SparseTensor) -> SparseTensor:
    """Another sparse tensor over the same parts, outside of any graph."""
    return new_sparse(x._parts, x._layout.shape, x._format, x._coalesced)


def replace(target: SparseTensor, source: SparseTensor) -> None:
    """Gives a sparse tensor the contents of another, in place."""
    target._layout, target._parts = source._layout, source._parts
    target._format, target._coalesced = source._format, source._coalesced
    target._storage.version += 1


def sparse_dims(x: SparseTensor) -> int:
    """How many dims the indices name."""
    return int(x._parts[0]._layout.shape[0]) if x._format == "coo" else 2


def stored(x: SparseTensor) -> int:
    """How many elements (or blocks) are stored."""
    values = x._parts[-1]._layout
    if x._format == "coo":
        return int(values.shape[0])
    return int(x._parts[1]._layout.shape[-1])


def keys_of(indices: Tensor, shape: Sequence[int]) -> Any:
    """The place of each index in row-major order, as a NumPy array."""
    array = indices.numpy()
    keys = np.zeros(array.shape[1], np.int64)
    for row, n in zip(array, shape, strict=True):
        keys = keys * n + row
    return keys


def dense_zeros(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Dense zeros of a tensor's dtype and device."""
    result: Tensor = T.full_layout(tuple(shape), 0, x._layout.dtype, x._layout.device)
    return result
