"""The methods by which a dense tensor meets sparse ones, and what it answers to theirs.

The sparse tensors themselves are loaded at the first use (``antorcha.tensor.sparse``).
"""

from __future__ import annotations

from typing import Any

from antorcha.core.lazy import lazy
from antorcha.errors import GraphError, MissingFeature
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor import layouts
from antorcha.tensor.methods import set_methods

sparse_create = lazy("antorcha.tensor.sparse.create")


def to_sparse(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor in a sparse layout: ``to_sparse(sparse_dim)`` or ``to_sparse(layout=...)``.

    Without arguments, all dims are sparse, in coordinate format (``torch.sparse_coo``).
    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to_sparse.html.

    >>> torch.eye(2).to_sparse()
    tensor(indices=tensor([[0, 1],
                           [0, 1]]),
           values=tensor([1., 1.]),
           size=(2, 2), nnz=2, layout=torch.sparse_coo)
    """
    return sparse_create.to_sparse(self, *args, **kwargs)  # type: ignore[no-any-return]


def _to_format(format: str) -> Any:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        blocksize = kwargs.pop("blocksize", args[0] if args else None)
        dense = kwargs.pop("dense_dim", args[1] if len(args) > 1 else None)
        result = sparse_create.to_sparse(
            self, layout=layouts.by_name(f"sparse_{format}"), blocksize=blocksize, dense_dim=dense
        )
        return result  # type: ignore[no-any-return]

    method.__doc__ = f"The tensor in layout ``torch.sparse_{format}``; see ``to_sparse``."
    return method


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The same elements in a dense tensor: itself, if it is one.

    >>> torch.eye(2).to_sparse().to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    return self if dtype is None else T.to_dtype(self, dtype)


def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements of the tensor where the sparse tensor ``mask`` has elements, sparse."""
    return sparse_create.masked(self, mask)  # type: ignore[no-any-return]


def _only_sparse(name: str, kind: str) -> Any:
    def method(self: Tensor) -> Any:
        raise GraphError(f"{name} expected {kind} tensor layout but got Strided")

    method.__doc__ = f"Of a sparse tensor only: see ``torch.sparse``. ({kind} layout)"
    return method


def _no_elements(self: Tensor) -> int:
    """How many elements a sparse tensor stores."""
    raise MissingFeature("_nnz: not for tensors of layout torch.strided")


def bind() -> None:
    """Sets these methods on Tensor."""
    coordinate, row, column = (
        "sparse coordinate",
        "sparse row compressed",
        ("sparse column compressed"),
    )
    set_methods({
        "to_sparse": to_sparse, "to_dense": to_dense, "sparse_mask": sparse_mask,
        "to_sparse_coo": lambda self: to_sparse(self),
        **{f"to_sparse_{f}": _to_format(f) for f in ("csr", "csc", "bsr", "bsc")},
        "coalesce": _only_sparse("coalesce", coordinate),
        "is_coalesced": _only_sparse("is_coalesced", coordinate),
        "indices": _only_sparse("indices", coordinate),
        "values": _only_sparse("values", "sparse"),
        "_indices": _only_sparse("_indices", coordinate),
        "_values": _only_sparse("_values", "sparse"),
        "crow_indices": _only_sparse("crow_indices", row),
        "col_indices": _only_sparse("col_indices", row),
        "ccol_indices": _only_sparse("ccol_indices", column),
        "row_indices": _only_sparse("row_indices", column), "_nnz": _no_elements,
        "sparse_dim": lambda self: 0, "dense_dim": lambda self: self._layout.ndim,
    })  # fmt: skip
    Tensor.is_sparse_csr = property(lambda self: False)  # type: ignore[method-assign,assignment]
