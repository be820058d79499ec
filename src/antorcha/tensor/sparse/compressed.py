"""The compressed formats: CSR and CSC (by rows, by columns) and their forms of blocks, BSR and BSC.

A tensor of ``n`` rows stores, in CSR, where each row's elements begin (``n + 1`` numbers), the
column of each, and the values. CSC is the same of the transposed matrix; BSR and BSC store dense
blocks in the place of elements. Ops work on the list of coordinates, to and from which this
converts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.lazy import np
from antorcha.errors import GraphError, MissingFeature, ShapeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import as_tensor
from antorcha.tensor.interop import from_numpy
from antorcha.tensor.sparse.parts import coalesce, from_values, named, values_of
from antorcha.tensor.sparse.tensor import SparseTensor, new_sparse, sparse_dims

BY_ROWS = ("csr", "bsr")
BLOCKS = ("bsr", "bsc")


def coo_indices(parts: Sequence[Tensor], shape: Sequence[int], format: str) -> Tensor:
    """The coordinates of a CSR or CSC tensor's elements (of blocks: of the blocks)."""
    starts, plain = parts[0].numpy(), parts[1].numpy().astype(np.int64)
    lines = np.repeat(np.arange(len(starts) - 1, dtype=np.int64), np.diff(starts))
    pair = (lines, plain) if format in BY_ROWS else (plain, lines)
    return from_numpy(np.stack(pair))


def in_format(x: SparseTensor, format: str, blocksize: Any = None) -> SparseTensor:
    """The same elements in another format, in the graph."""
    if x._format == format and (blocksize is None or block_of(x) == tuple(blocksize)):
        return x
    if x._format in BLOCKS and format in BLOCKS:
        return in_format(in_format(x, "coo"), format, blocksize or block_of(x))
    if x._format != "coo":
        if format != "coo":
            return in_format(in_format(x, "coo"), format, blocksize)
        return _to_coo(x)
    if sparse_dims(x) != 2 or (format in BLOCKS and x._layout.ndim != 2):
        raise MissingFeature(
            f"to_sparse_{format}: only matrices are supported, not a tensor with "
            f"{sparse_dims(x)} sparse and {x._layout.ndim - sparse_dims(x)} dense dims"
        )
    if format in BLOCKS:
        return _to_blocks(coalesce(x), format, blocksize)
    return _compressed(coalesce(x), format)


def _to_coo(x: SparseTensor) -> SparseTensor:
    if x._layout.ndim != 2 and x._format in BLOCKS:
        raise MissingFeature("batches of sparse matrices are not supported")
    indices = coo_indices(x._parts, x._layout.shape, x._format)
    values = values_of(x)
    if x._format in BLOCKS:
        rows, columns = block_of(x)
        at = indices.numpy()
        inner = np.indices((rows, columns)).reshape(2, 1, -1)
        spread = at[:, :, None] * np.array([rows, columns]).reshape(2, 1, 1) + inner
        indices = from_numpy(np.ascontiguousarray(spread.reshape(2, -1)))
        result = from_values(T.reshape(values, (-1,)), (indices,), x._layout.shape)
        return coalesce(result)
    result = from_values(values, (indices,), x._layout.shape, "coo", x._format == "csr")
    return result if x._format == "csr" else coalesce(result)


def _compressed(x: SparseTensor, format: str) -> SparseTensor:
    """A coalesced matrix as CSR or CSC."""
    at = x._parts[0].numpy()
    values = values_of(x)
    lines, plain = (at[0], at[1]) if format == "csr" else (at[1], at[0])
    if format == "csc":
        order = np.argsort(lines, kind="stable")
        lines, plain = lines[order], plain[order]
        values = T.index_select(values, 0, from_numpy(order.astype(np.int64)))
    count = x._layout.shape[0 if format == "csr" else 1]
    starts = from_numpy(_starts(lines, count))
    parts = (starts, from_numpy(np.ascontiguousarray(plain)))
    return from_values(values, parts, x._layout.shape, format)


def _starts(lines: Any, count: int) -> Any:
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(lines, minlength=count), out=starts[1:])
    return starts


def block_of(x: SparseTensor) -> tuple[int, ...]:
    """The shape of a BSR or BSC tensor's blocks."""
    return tuple(x._parts[2]._layout.shape[1:3]) if x._format in BLOCKS else ()


def _to_blocks(x: SparseTensor, format: str, blocksize: Any) -> SparseTensor:
    if blocksize is None:
        raise GraphError(f"to_sparse_{format}: a blocksize of two numbers is needed")
    rows, columns = blocksize
    shape = x._layout.shape
    if shape[0] % rows or shape[1] % columns:
        raise ShapeError(
            f"to_sparse_{format}: tensor of {tuple(shape)} must be divisible by blocks of "
            f"{(rows, columns)}"
        )
    at = x._parts[0].numpy()
    block = at // np.array([[rows], [columns]])
    if format == "bsc":
        block = block[::-1]
    grid = (shape[0] // rows, shape[1] // columns)
    lines, width = (grid[0], grid[1]) if format == "bsr" else (grid[1], grid[0])
    keys, places = np.unique(block[0] * width + block[1], return_inverse=True)
    inner = (at[0] % rows) * columns + at[1] % columns
    empty = T.zeros((len(keys) * rows * columns,), dtype=x._layout.dtype)
    spots = from_numpy((places.reshape(-1) * (rows * columns) + inner).astype(np.int64))
    flat = T.index_put(empty, (spots,), values_of(x))
    parts = (from_numpy(_starts(keys // max(width, 1), lines)), from_numpy(keys % max(width, 1)))
    return from_values(T.reshape(flat, (-1, rows, columns)), parts, shape, format)


def to_blocks(g: Tensor, indices: Sequence[Tensor], shape: Sequence[int], format: str) -> Tensor:
    """The blocks of a dense tensor at a BSR or BSC tensor's indices."""
    at = coo_indices(indices, shape, format)
    ends = at.numpy().max(axis=1, initial=0) + 1
    starts = len(indices[0].numpy()) - 1
    lines = starts if format == "bsr" else int(ends[0])
    rows = shape[0] // max(lines, 1) if format == "bsr" else None
    if rows is None or not at._layout.shape[1]:
        raise MissingFeature(f"the gradient of a tensor of layout sparse_{format}")
    columns = rows
    split = T.reshape(g, (shape[0] // rows, rows, shape[1] // columns, columns))
    return T.index_at(T.transpose(split, 1, 2), tuple(T.unbind(at, 0)), (0, 1))  # type: ignore[no-any-return]


# -------------------------------------------------------------------------------- made by the user
def check_compressed(
    starts: Tensor, plain: Tensor, values: Tensor, shape: Sequence[int], format: str
) -> None:
    """Refuses compressed indices that do not describe a matrix of this shape."""
    names = (
        ("crow_indices", "col_indices") if format in BY_ROWS else ("ccol_indices", "row_indices")
    )
    if starts._layout.ndim != 1 or plain._layout.ndim != 1:
        raise MissingFeature(
            f"sparse_{format}_tensor: batches of sparse matrices are not supported: {names[0]} and "
            f"{names[1]} must be 1-D"
        )
    if len(shape) < 2:
        raise ShapeError(f"sparse_{format}_tensor: tensor dimensionality must be 2, got "
                         f"{len(shape)}")  # fmt: skip
    block = tuple(values._layout.shape[1:3]) if format in BLOCKS else (1, 1)
    if len(block) != 2:
        raise ShapeError(f"sparse_{format}_tensor: values must have two block dims")
    if 0 in block or shape[0] % block[0] or shape[1] % block[1]:
        raise ShapeError(f"sparse_{format}_tensor: size {tuple(shape)} is not divisible by blocks "
                         f"of {block}")  # fmt: skip
    grid = (shape[0] // block[0], shape[1] // block[1])
    lines, width = grid if format in BY_ROWS else grid[::-1]
    first, second = starts.numpy(), plain.numpy()
    if len(first) != lines + 1:
        raise ShapeError(
            f"sparse_{format}_tensor: {names[0]}.shape[-1] must be equal to the number of "
            f"compressed lines plus one ({lines + 1}), but got {len(first)}"
        )
    count = len(second)
    if values._layout.shape[0] != count:
        raise ShapeError(
            f"sparse_{format}_tensor: number of elements of {names[1]} must be the same as that of "
            f"values: {count} and {values._layout.shape[0]}"
        )
    steps = np.diff(first)
    if first[0] != 0 or first[-1] != count or (steps < 0).any() or (steps > width).any():
        raise GraphError(
            f"sparse_{format}_tensor: {names[0]} must begin with 0, end with nnz={count}, and grow "
            f"by 0 to {width} at each step"
        )
    if count and not (second.min() >= 0 and second.max() < width):
        raise GraphError(f"sparse_{format}_tensor: {names[1]} must be in [0, {width})")


def make_compressed(
    format: str, starts: Any, plain: Any, values: Any, size: Any, dtype: Any, device: Any,
    requires_grad: bool,
) -> SparseTensor:  # fmt: skip
    """What ``torch.sparse_csr_tensor`` and its like make."""
    starts, plain = as_tensor(starts, device=device), as_tensor(plain, device=device)
    for each in (starts, plain):
        if each._layout.dtype.name not in ("int32", "int64"):
            raise GraphError(
                f"sparse_{format}_tensor: indices must be Int or Long, not {each._layout.dtype}"
            )
    given = as_tensor(values, dtype=dtype, device=device)
    if size is None:
        block = tuple(given._layout.shape[1:3]) if format in BLOCKS else (1, 1)
        lines = starts._layout.shape[-1] - 1
        width = int(plain.max()) + 1 if plain._layout.numel else 0
        grid = (lines, width) if format in BY_ROWS else (width, lines)
        size = (grid[0] * block[0], grid[1] * block[1])
    check_compressed(starts, plain, given, tuple(size), format)
    result = from_values(given, (starts.detach(), plain.detach()), tuple(size), format)
    if requires_grad:
        result = new_sparse(result._parts, tuple(size), format)
        result._rg = True
    return named(result, "SparseCompressedTensorBackward0")  # type: ignore[no-any-return]
