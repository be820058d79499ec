"""``torch.sparse``: functions of sparse tensors.

A sparse tensor stores the elements that are not zero: in coordinates (``torch.sparse_coo_tensor``,
``Tensor.to_sparse()``) or compressed by rows or columns (``torch.sparse_csr_tensor``, ...). What
has no rule for sparse tensors raises NotImplementedError with its name and the layout.
See https://docs.pytorch.org/docs/stable/sparse.html.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.core.lazy import np
from antorcha.errors import GraphError, MissingFeature, ShapeError, explain_missing
from antorcha.ops.kinds.record import T as _T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import as_tensor
from antorcha.tensor.interop import from_numpy
from antorcha.tensor.sparse import compressed as _compressed
from antorcha.tensor.sparse import create as _create
from antorcha.tensor.sparse import products as _products
from antorcha.tensor.sparse import rules as _rules
from antorcha.tensor.sparse.legacy import SPARSE_TYPES
from antorcha.tensor.sparse.parts import named as _named
from antorcha.tensor.sparse.tensor import is_sparse as _is_sparse

__all__ = [
    "SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS", "addmm", "as_sparse_gradcheck",
    "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "solve",
    "spdiags", "spsolve", "sum", "to_sparse_semi_structured",
]  # fmt: skip


# ------------------------------------------------------------------- what ``torch`` shows of these
def sparse_coo_tensor(
    *args: Any, dtype: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None,
    is_coalesced: bool | None = None, **kwargs: Any,
) -> Tensor:  # fmt: skip
    """A sparse tensor in coordinate format: ``sparse_coo_tensor(indices, values, size=None)``.

    Args:
        indices: where the elements are, ``(sparse dims, elements)``; an index may occur twice: its
            values are added
        values: the elements, or (with dense dims) slices, ``(elements, *dense dims)``
        size: the shape; without it, the smallest that holds the indices
        dtype, device, requires_grad: as of ``torch.tensor``
        check_invariants (bool): are the indices checked? Default: False, or what
            ``torch.sparse.check_sparse_tensor_invariants`` says
        is_coalesced (bool): are the indices known to be unique and in order?

    Raises:
        RuntimeError: sizes that do not fit together, negative indices, or (if checked) indices
            outside of the size

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse_coo_tensor.html.

    >>> torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3., 4., 5.], (2, 3))
    tensor(indices=tensor([[0, 1, 1],
                           [2, 0, 2]]),
           values=tensor([3., 4., 5.]),
           size=(2, 3), nnz=3, layout=torch.sparse_coo)
    """
    names = ("indices", "values", "size")
    given = list(args)
    given += [kwargs.pop(name) for name in names[len(given) :] if name in kwargs]
    if kwargs or not given:
        raise TypeError(
            f"sparse_coo_tensor() got unexpected arguments {sorted(kwargs)}; it takes (indices, "
            "values, size=None) or (size)"
        )
    return _create.make_coo(
        tuple(given), dtype, device, requires_grad, check_invariants, is_coalesced
    )


def _compressed_maker(format: str) -> Callable[..., Tensor]:
    rows = format in ("csr", "bsr")
    first, second = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")

    def make(*args: Any, **kwargs: Any) -> Tensor:
        options = {name: kwargs.pop(name, None) for name in ("dtype", "device", "size")}
        requires_grad = bool(kwargs.pop("requires_grad", False))
        for name in ("pin_memory", "check_invariants", "layout"):
            kwargs.pop(name, None)
        given = list(args)
        names = (first, second, "values")[len(given) :]
        given += [kwargs.pop(name) for name in names if name in kwargs]
        if kwargs or not 3 <= len(given) <= 4:
            raise TypeError(
                f"sparse_{format}_tensor() takes ({first}, {second}, values, size=None), not "
                f"{len(args)} arguments and {sorted(kwargs)}"
            )
        size = given[3] if len(given) == 4 else options["size"]
        return _compressed.make_compressed(
            format, given[0], given[1], given[2], size, options["dtype"], options["device"],
            requires_grad,
        )  # fmt: skip

    make.__name__ = make.__qualname__ = f"sparse_{format}_tensor"
    make.__doc__ = (
        f"A sparse matrix in layout ``torch.sparse_{format}``, from where each line begins, the\n"
        f"other index of each element (or block), and the values: ({first}, {second}, values,\n"
        f"size=None). See https://docs.pytorch.org/docs/stable/generated/torch."
        f"sparse_{format}_tensor.html."
    )
    return make


sparse_csr_tensor = _compressed_maker("csr")
sparse_csc_tensor = _compressed_maker("csc")
sparse_bsr_tensor = _compressed_maker("bsr")
sparse_bsc_tensor = _compressed_maker("bsc")


def sparse_compressed_tensor(*args: Any, layout: Any = None, **kwargs: Any) -> Tensor:
    """A compressed sparse matrix in the layout given: see ``torch.sparse_csr_tensor``."""
    name = getattr(layout, "name", "")
    if name not in ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"):
        raise GraphError(f"sparse_compressed_tensor: layout must be a compressed one, not {layout}")
    given = {"compressed_indices": 0, "plain_indices": 1, "values": 2}
    args = (*args, *[kwargs.pop(key) for key, k in given.items() if k >= len(args)])
    return _compressed_maker(name.removeprefix("sparse_"))(*args, **kwargs)


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one: ``torch.mm``."""
    return mm(input, mat2)


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one, as a sparse matrix."""
    return _create.to_sparse(mm(input, mat))


def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense one, as a tensor with one sparse dim: the rows
    that the sparse matrix has."""
    result = mm(mat1, mat2)
    rows = _compressed.in_format(mat1, "coo").coalesce().indices()[0].unique()  # type: ignore[arg-type]
    return sparse_coo_tensor(rows[None], result[rows], result.shape, is_coalesced=True)


dsmm, hsmm = spmm, hspmm  # older names


def _convert_indices_from_coo_to_csr(
    input: Tensor, size: int, *, out_int32: bool = False
) -> Tensor:
    """Where each of `size` rows begins among sorted row indices, and the end."""
    rows = _T.arange(0, size + 1, device=input.device)
    return _T.searchsorted(input, rows, out_int32=out_int32)  # type: ignore[no-any-return]


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The indices in coordinates (rows first, but with `transpose`), of shape (2, elements)."""
    rows = _T.arange(0, crow_indices.shape[0] - 1, device=crow_indices.device)
    counts = crow_indices[1:] - crow_indices[:-1]
    indices = _T.stack([_T.repeat_interleave(rows, counts), _T.to_dtype(col_indices, rows.dtype)])
    found: Tensor = indices.flip(0) if transpose else indices
    return found.int() if out_int32 else found


# -------------------------------------------------------------------------------- ``torch.sparse``
def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of two matrices, at least one of them sparse; sparse if both are.

    With `reduce` (``"mean"``, ``"amax"``, ``"amin"``) a compressed sparse ``mat1`` and a dense
    ``mat2`` give, instead of the sum, the mean or an extreme of the products of each row.
    Gradients reach both factors; that of a sparse one is sparse, with the same elements.
    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.mm.html.

    >>> a = torch.tensor([[0., 2.], [1., 0.]]).to_sparse()
    >>> torch.sparse.mm(a, torch.tensor([[1.], [10.]]))
    tensor([[20.],
            [ 1.]])
    """
    if reduce not in (None, "sum"):
        return _named(_reduced(mat1, mat2, reduce), "SparseMmReduceImplBackward0")  # type: ignore[no-any-return]
    if not _is_sparse(mat1) and not _is_sparse(mat2):
        return _T.mm(mat1, mat2)  # type: ignore[no-any-return]
    return _named(_products.mm(mat1, mat2), "SparseMmBackward0")  # type: ignore[no-any-return]


def _reduced(mat1: Tensor, mat2: Tensor, reduce: str) -> Tensor:
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("mean", "amax", "amin"):
        raise GraphError(f"sparse.mm: reduce must be sum, mean, amax or amin, not {reduce!r}")
    if not _is_sparse(mat1) or mat1._format != "csr" or _is_sparse(mat2):  # type: ignore[attr-defined]
        raise MissingFeature(
            f"sparse.mm: reduce={reduce!r} takes a sparse_csr mat1 and a dense mat2; use "
            "mat1.to_sparse_csr()"
        )
    _products.check_product("sparse.mm", mat1, mat2)
    return _products.sparse_by_dense(mat1, mat2, reduce)  # type: ignore[arg-type]


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0) -> Tensor:
    """``beta * mat + alpha * (mat1 @ mat2)`` for a sparse ``mat1``.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.addmm.html.
    """
    return _products.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)  # type: ignore[no-any-return]


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0,
    out: Any = None,
) -> Tensor:  # fmt: skip
    """``beta * input + alpha * (mat1 @ mat2)`` at the elements of the sparse ``input`` only.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.sampled_addmm.html.

    >>> x = torch.eye(2).to_sparse_csr()
    >>> torch.sparse.sampled_addmm(x, torch.ones(2, 3), torch.ones(3, 2)).values()
    tensor([4., 4.])
    """
    if out is not None:
        raise MissingFeature("sampled_addmm: out= is not supported")
    if not _is_sparse(input) or mat1.dim() != 2 or mat2.dim() != 2:
        raise GraphError("sampled_addmm: expected a sparse input and two dense matrices")
    if (mat1.shape[0], mat2.shape[1]) != tuple(input.shape) or mat1.shape[1] != mat2.shape[0]:
        raise ShapeError(
            f"sampled_addmm: {tuple(mat1.shape)} @ {tuple(mat2.shape)} does not fit an input of "
            f"{tuple(input.shape)}"
        )
    result = _products.sampled(input, mat1, mat2, beta, alpha)  # type: ignore[arg-type]
    return _named(result, "SparseSampledAddmmBackward0")  # type: ignore[no-any-return]


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of a sparse tensor: over some dims sparse, while sparse dims are left.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.sum.html.

    >>> x = torch.tensor([[0., 2.], [1., 3.]]).to_sparse()
    >>> torch.sparse.sum(x), torch.sparse.sum(x, 0).to_dense()
    (tensor(6.), tensor([1., 5.]))
    """
    return _named(_rules.sparse_sum(input, dim, dtype), "SparseSumBackward0")  # type: ignore[arg-type,no-any-return]


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Softmax along a dim, over the elements that are there: the others count as minus infinity.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.softmax.html.

    >>> x = torch.tensor([[0., 2.], [1., 1.]]).to_sparse()
    >>> torch.sparse.softmax(x, 1).to_dense()
    tensor([[0.0000, 1.0000],
            [0.5000, 0.5000]])
    """
    result = _rules.softmax(input, dim, dtype, False)  # type: ignore[arg-type]
    return _named(result, "SparseSoftmaxBackward0")  # type: ignore[no-any-return]


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of ``softmax``, over the elements that are there.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.log_softmax.html.
    """
    result = _rules.softmax(input, dim, dtype, True)  # type: ignore[arg-type]
    return _named(result, "SparseLogSoftmaxBackward0")  # type: ignore[no-any-return]


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix with rows of ``diagonals`` along the diagonals ``offsets``.

    The j-th element of a row stands in column j, as in SciPy.
    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.spdiags.html.

    >>> torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0, -1]), (3, 3)).to_dense()
    tensor([[1., 0., 0.],
            [1., 1., 0.],
            [0., 1., 1.]])
    """
    bands, at = as_tensor(diagonals), as_tensor(offsets)
    bands = bands[None] if bands.dim() == 1 else bands
    at = at[None] if at.dim() == 0 else at
    if bands.dim() != 2 or at.dim() != 1 or len(bands) != len(at):
        raise ShapeError(
            f"spdiags: number of diagonals ({len(bands)}) does not match the number of offsets "
            f"({at.numel()})"
        )
    offset = at.numpy().astype(np.int64)
    if len(np.unique(offset)) != len(offset):
        raise GraphError("spdiags: Offset tensor contains duplicate values")
    rows, columns = shape
    column = np.arange(bands.shape[1])[None].repeat(len(offset), 0)
    row = column - offset[:, None]
    inside = (row >= 0) & (row < rows) & (column < columns)
    indices = from_numpy(np.stack((row[inside], column[inside])).astype(np.int64))
    result = sparse_coo_tensor(indices, bands[from_numpy(inside)], (rows, columns))
    name = getattr(layout, "name", "sparse_coo").removeprefix("sparse_")
    return _compressed.in_format(result.coalesce() if name != "coo" else result, name)  # type: ignore[arg-type]


class check_sparse_tensor_invariants:
    """Are the indices of new sparse tensors checked? A context manager and a decorator.

    ``enable()``, ``disable()`` and ``is_enabled()`` set it for the rest of the program.
    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.check_sparse_tensor_invariants.html.

    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     x = torch.sparse_coo_tensor([[0]], [1.], (2,))
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """Are they?"""
        return _create.check_invariants

    @staticmethod
    def enable() -> None:
        """From now on they are."""
        _create.check_invariants = True

    @staticmethod
    def disable() -> None:
        """From now on they are not."""
        _create.check_invariants = False

    def __enter__(self) -> None:
        self.before.append(_create.check_invariants)
        _create.check_invariants = self.state

    def __exit__(self, *_: object) -> None:
        _create.check_invariants = self.before.pop()

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return fn(*args, **kwargs)

        return checked


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """``gradcheck`` for functions of sparse tensors: their values are what is varied.

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.as_sparse_gradcheck.html.
    """

    def check(func: Callable[..., Any], inputs: Any, **kwargs: Any) -> bool:
        """``gradcheck`` over the values of sparse inputs."""
        kwargs.pop("masked", None)
        given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        starts = [each.coalesce() if _is_sparse(each) and each.is_sparse else each
                  for each in given]  # fmt: skip
        dense = [each.detach()._values().clone().requires_grad_(each.requires_grad)
                 if _is_sparse(each) else each for each in starts]  # fmt: skip

        def over_values(*values: Any) -> Any:
            rebuilt = [
                _rules.with_values(start.detach(), value) if _is_sparse(start) else value
                for start, value in zip(starts, values, strict=True)
            ]
            found = func(*rebuilt)
            many = found if isinstance(found, tuple) else (found,)
            return tuple([each.to_dense() if _is_sparse(each) else each for each in many])

        return gradcheck(over_values, tuple(dense), **kwargs)

    return check


def _no_structure(name: str) -> Any:
    def make(*args: Any, **kwargs: Any) -> Any:
        raise MissingFeature(
            f"{name}: semi-structured (2:4) sparsity needs a GPU with sparse tensor cores"
        )

    make.__name__ = make.__qualname__ = name
    make.__doc__ = "Refused: semi-structured (2:4) sparsity needs a GPU with sparse tensor cores."
    return make


to_sparse_semi_structured = _no_structure("to_sparse_semi_structured")


class SparseSemiStructuredTensor:
    """Semi-structured (2:4) sparsity needs a GPU with sparse tensor cores: making one raises."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_structure(type(self).__name__)()


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """As its base."""


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """As its base."""


def spsolve(input: Tensor, other: Tensor, *, left: bool = True) -> Tensor:
    """Refused, as in PyTorch on the CPU: use ``torch.linalg.solve`` of the dense matrix."""
    raise MissingFeature("spsolve: not implemented; use torch.linalg.solve(a.to_dense(), b)")


solve = spsolve
globals().update(SPARSE_TYPES)

explain_missing("torch.sparse", globals())
