"""The methods of sparse tensors that are no ops: what they hold, conversions, copies, text.

Every method of Tensor that looks at a tensor's memory is replaced here, by one that knows sparse
tensors or by one that refuses.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from antorcha.core import modes
from antorcha.core.shapes import normalize_dim
from antorcha.errors import ArgumentError, GraphError, MissingFeature
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.convert import deepcopy_of, type_name
from antorcha.tensor.convert import to as dense_to
from antorcha.tensor.create import as_tensor
from antorcha.tensor.sparse import parts, printing, rules
from antorcha.tensor.sparse import tensor as sparse
from antorcha.tensor.sparse.compressed import block_of, coo_indices
from antorcha.tensor.sparse.create import to_sparse
from antorcha.tensor.sparse.parts import named
from antorcha.tensor.sparse.tensor import FORMATS, SparseTensor, new_sparse, sparse_dims, stored


# ---------------------------------------------------------------------------------------- contents
def _coo(name: str, x: SparseTensor) -> None:
    if x._format != "coo":
        shown = "".join(part.capitalize() for part in FORMATS[x._format].name.split("_"))
        raise GraphError(f"{name} expected sparse coordinate tensor layout but got {shown}")


def coalesce(self: SparseTensor) -> SparseTensor:
    """Each index once, in order; values at the same index are added."""
    _coo("coalesce", self)
    return parts.coalesce(self)


def is_coalesced(self: SparseTensor) -> bool:
    """Is each index there once, and in order?"""
    _coo("is_coalesced", self)
    return self._coalesced


def indices(self: SparseTensor) -> Tensor:
    """The indices, ``(sparse_dim, nnz)``, of a coalesced tensor."""
    _coo("indices", self)
    if not self._coalesced:
        raise GraphError(
            "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"
        )
    return self._parts[0].detach()


def _indices(self: SparseTensor) -> Tensor:
    """The indices as they are."""
    _coo("_indices", self)
    return self._parts[0].detach()


def values(self: SparseTensor) -> Tensor:
    """The values, of a coalesced or a compressed tensor; gradients flow through them."""
    if self._format == "coo" and not self._coalesced:
        raise GraphError(
            "Cannot get values on an uncoalesced tensor, please call .coalesce() first"
        )
    return parts.values_of(self)


def _line_indices(name: str, formats: tuple[str, str], part: int) -> Any:
    kind = "row" if "csr" in formats else "column"

    def get(self: SparseTensor) -> Tensor:
        if self._format not in formats:
            shown = "Sparse" if self._format == "coo" else FORMATS[self._format]
            raise GraphError(
                f"{name} expected sparse {kind} compressed tensor layout but got {shown}"
            )
        return self._parts[part].detach()

    get.__doc__ = f"The {name.replace('_', ' ')} of a tensor compressed by {kind}s."
    return get


def to_dense(self: SparseTensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The same elements in a dense tensor."""
    if self._format in ("bsr", "bsc") and not self._rg:
        result = _blocks_to_dense(self)
    else:
        result = parts.to_dense(self)
    return result if dtype is None else T.to_dtype(result, dtype)


def _blocks_to_dense(x: SparseTensor) -> Tensor:
    rows, columns = block_of(x)
    shape = x._layout.shape
    grid = sparse.dense_zeros(x, (shape[0] // rows, shape[1] // columns, rows, columns))
    at = coo_indices(x._parts, shape, x._format)
    filled = T.index_put(grid, tuple(T.unbind(at, 0)), x._parts[2])
    return T.reshape(T.transpose(filled, 1, 2), tuple(shape))  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------ what others do, too
def to(self: SparseTensor, *args: Any, **kwargs: Any) -> Any:
    """Another dtype or device, as for dense tensors."""
    kwargs.pop("memory_format", None)
    result = dense_to(self, *args, **kwargs)
    return named(result, "ToCopyBackward0")


def detach(self: SparseTensor) -> SparseTensor:
    """The same elements (shared) outside of any graph."""
    return parts.detached(self)


def _item(self: SparseTensor) -> Any:
    layout = self._layout
    if layout.numel != 1:
        raise GraphError(
            "a Tensor with {count} elements cannot be converted to Scalar", reason="item",
            count=layout.numel,
        )  # fmt: skip
    return parts.to_dense(detach(self)).item()


def _bool(self: SparseTensor) -> bool:
    if self._layout.numel != 1:
        raise GraphError(
            "Boolean value of Tensor with more than one value is ambiguous", reason="truth",
            count=self._layout.numel,
        )  # fmt: skip
    return bool(_item(self))


def _iter(self: SparseTensor) -> Iterator[Any]:
    return iter([T.select(self, 0, k) for k in range(len(self))])


def _getitem(self: SparseTensor, index: Any) -> Any:
    """An integer, several of them, or an index tensor."""
    result: Any = self
    for each in index if isinstance(index, tuple) else (index,):
        if isinstance(each, Tensor) and each._layout.ndim == 1 and result is self:
            at = each.nonzero().flatten() if each._layout.dtype.kind == "b" else each
            result = rules._index_select(result, 0, at)
        elif isinstance(each, (int, Tensor)) and not isinstance(each, bool):
            result = T.select(result, 0, int(each))
        else:
            raise MissingFeature(
                "indexing: a sparse tensor takes integers, or one tensor of indices; "
                "x.to_dense() takes slices"
            )
    return named(result, "SelectBackward0")


def _copied(self: SparseTensor, memo: dict[int, Any]) -> SparseTensor:
    parts = [copy.deepcopy(part, memo) for part in self._parts]
    return new_sparse(parts, self._layout.shape, self._format, self._coalesced)


def _deepcopy(self: SparseTensor, memo: dict[int, Any]) -> Tensor:
    return deepcopy_of(self, memo, _copied)


def rebuild(parts: Any, shape: Any, format: str, coalesced: bool, rg: bool) -> SparseTensor:
    """Unpickles a sparse tensor."""
    result = new_sparse(parts, shape, format, coalesced)
    result._rg = rg
    return result


def _reduce_ex(self: SparseTensor, protocol: Any) -> Any:
    held = tuple(part.detach() for part in self._parts)
    return rebuild, (held, tuple(self._layout.shape), self._format, self._coalesced,
                     self.requires_grad)  # fmt: skip


def _type(self: SparseTensor, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    if dtype is not None:
        return to(self, dtype)

    return type_name(self).replace("torch.", "torch.sparse.")


def _set_data(self: SparseTensor, value: Any) -> None:
    if not isinstance(value, SparseTensor):
        raise ArgumentError("data of a sparse tensor has to be a sparse tensor")
    sparse.replace(self, detach(value))


def _zero_(self: SparseTensor) -> SparseTensor:
    if self._rg and self._fn is None and modes.grad_enabled():
        raise GraphError(
            "a leaf Variable that requires grad is being used in an in-place operation.",
            reason="leaf",
        )
    sparse.replace(self, rules._zeros_like(self))
    return self


def _sparse_resize(self: SparseTensor, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    if not stored(self):
        result = _no_elements(self, size, sparse_dim)
    elif sparse_dim != sparse_dims(self) or any(
        n < m for n, m in zip(size, self._layout.shape, strict=True)
    ):
        raise GraphError("sparse_resize_: a tensor with elements keeps its dims, and may only grow")
    else:
        result = new_sparse(self._parts, size, "coo", self._coalesced)
    sparse.replace(self, result)
    return self


def _sparse_resize_and_clear(self: SparseTensor, size: Any, sparse_dim: int, dense: int) -> Any:
    sparse.replace(self, _no_elements(self, size, sparse_dim))
    return self


def _no_elements(x: SparseTensor, size: Any, dims: int) -> SparseTensor:
    at = T.zeros((dims, 0), dtype=as_tensor(0)._layout.dtype)
    return new_sparse((at, T.zeros((0, *size[dims:]), dtype=x._layout.dtype)), size, "coo", True)


def _coalesced_(self: SparseTensor, coalesced: bool) -> SparseTensor:
    """Says whether the tensor is coalesced."""
    self._coalesced = bool(coalesced)
    return self


def _refusing(name: str) -> Any:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise MissingFeature(
            f"{name}: a tensor of layout {self.layout} has no storage of its elements; "
            "x.to_dense() has one"
        )

    refuse.__name__ = name
    return refuse


def _numpy(self: SparseTensor, *args: Any, **kwargs: Any) -> Any:
    raise ArgumentError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")


def _no_pointer(self: SparseTensor) -> int:
    raise GraphError("Cannot access data pointer of Tensor that doesn't have storage")


def _not_reshaped(name: str) -> Any:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise GraphError(f"{name} is not implemented for sparse tensors")

    return refuse


def _not_contiguous(self: SparseTensor, memory_format: Any = None) -> SparseTensor:
    raise GraphError("contiguous: unsupported memory format option Contiguous for sparse tensors")


def _size(self: SparseTensor, dim: int | None = None) -> Any:
    shape = self._layout.shape
    return shape if dim is None else shape[normalize_dim(dim, len(shape), op="size")]


def _stride(self: SparseTensor, dim: int | None = None) -> Any:
    zeros = (0,) * self._layout.ndim
    return zeros if dim is None else 0


def _nbytes(self: SparseTensor) -> int:
    raise GraphError(
        "nbytes is not defined for sparse tensors.  If you want the size of the constituent "
        "tensors, add the nbytes of the indices and values."
    )


def bind() -> None:
    """Sets the methods on SparseTensor."""
    for name in (
        "storage", "untyped_storage", "_typed_storage", "share_memory_", "pin_memory", "set_",
        "resize_", "resize_as_", "__dlpack__", "__dlpack_device__", "is_shared",
        "__setitem__", "__array_wrap__", "storage_type", "__contains__", "__reversed__",
        "new_empty_strided", "as_subclass", "is_set_to", "__index__", "copy_to_", "storage_offset",
    ):  # fmt: skip
        setattr(SparseTensor, name, _refusing(name))
    rows, columns = ("csr", "bsr"), ("csc", "bsc")
    methods: dict[str, Any] = {
        "coalesce": coalesce, "is_coalesced": is_coalesced, "indices": indices, "values": values,
        "_indices": _indices,
        "_values": lambda self: self._parts[-1].detach(), "_nnz": stored,
        "sparse_dim": sparse_dims,
        "dense_dim": lambda self: self._layout.ndim - sparse_dims(self),
        "crow_indices": _line_indices("crow_indices", rows, 0),
        "col_indices": _line_indices("col_indices", rows, 1),
        "ccol_indices": _line_indices("ccol_indices", columns, 0),
        "row_indices": _line_indices("row_indices", columns, 1),
        "_dimI": sparse_dims, "_dimV": lambda self: self._layout.ndim - sparse_dims(self),
        "_coalesced_": _coalesced_, "sparse_resize_": _sparse_resize,
        "sparse_resize_and_clear_": _sparse_resize_and_clear, "to_dense": to_dense,
        "smm": lambda self, mat: to_sparse(T.mm(self, mat)),
        "to": to, "detach": detach, "item": _item, "tolist": _no_pointer, "numpy": _numpy,
        "__array__": _numpy, "__bool__": _bool, "__int__": lambda self: int(_item(self)),
        "__float__": lambda self: float(_item(self)),
        "__complex__": lambda self: complex(_item(self)), "__iter__": _iter,
        "__getitem__": _getitem, "__deepcopy__": _deepcopy, "__reduce_ex__": _reduce_ex,
        "__repr__": lambda self, **_: printing.text(self), "__hash__": object.__hash__,
        "__format__": lambda self, spec: object.__format__(self, spec), "type": _type,
        "_repr_html_": lambda self: None, "data_ptr": _no_pointer, "zero_": _zero_,
        "is_contiguous": lambda self, memory_format=None: False, "stride": _stride,
        "reshape": _not_reshaped("reshape"), "view": _not_reshaped("view"),
        "contiguous": _not_contiguous, "size": _size, "is_pinned": lambda self, device=None: False,
        "__radd__": lambda self, other: T.add(other, self),
        "detach_": _detach_, "_is_view": lambda self: False,
    }  # fmt: skip
    for name, method in methods.items():
        setattr(SparseTensor, name, method)
    for name, get in {
        "is_sparse": lambda self: self._format == "coo",
        "is_sparse_csr": lambda self: self._format == "csr",
        "layout": lambda self: FORMATS[self._format], "nbytes": _nbytes,
        "T": lambda self: T.permute(self, tuple(range(self._layout.ndim))[::-1]),
        "mT": lambda self: T.transpose(self, -2, -1),
    }.items():  # fmt: skip
        setattr(SparseTensor, name, property(get))
    SparseTensor.data = property(detach, _set_data)  # type: ignore[assignment,method-assign]


def _detach_(self: SparseTensor) -> SparseTensor:
    """Takes the tensor out of its graph."""
    self._fn, self._nr, self._rg = None, 0, False
    return self
