"""Tiles: as many small matrices side by side as a vector has lanes, one matrix to a lane.

Element (i, j) of all of a tile's matrices is one vector, so an algorithm is written as for a single
matrix whose elements are numbers, and where matrices differ in what they need (a pivot, another
sweep) it selects by a mask. No lane depends on another: a matrix's result is the same whatever
stands beside it. Products are not fused with sums, so that a row which is a multiple of another
leaves exact zeros, on every processor.
"""

from __future__ import annotations

from antorcha.lang.native import (
    atomic_max,
    i32,
    i64,
    inline,
    local,
    native,
    ptr,
    raw,
    reduce_any,
    select,
    static,
    struct,
    vec,
    vload,
    void,
    vstore,
)

LATEST = 1 << 62
"""What a matrix's failure is taken from, so that of several the first has the greatest status."""


@struct
class MatrixTask:
    """The description words; what follows them is said by `compile_matrices`."""

    count: i64  # matrices
    m: i64  # rows
    n: i64  # columns
    right: i64  # columns of the right sides, or of Q
    room: i64  # vectors that a tile works in
    grain: i64  # tiles worth another thread
    function: i64  # where LAPACK's is, if it works
    dims: i64  # of the stack


@struct
class MatrixTile:
    """A tile under way: what a kernel's body is told."""

    bufs: ptr[raw]
    task: ptr[MatrixTask]
    steps: ptr[i64]  # from row to row and from column to column, of each operand
    offsets: ptr[i64]  # where each lane's matrix begins, of each operand
    space: raw  # to work in
    failed: ptr[i64]  # the kernel's status
    first: i64  # the number of its first matrix in the stack
    lanes: i64  # lanes that hold matrices


@inline
def place_lanes(W, OPS, tile, index):
    """Tile number ``index``: what matrices it has. Lanes beyond the last matrix repeat that."""
    t = tile.task
    walk = tile.steps + static(2 * OPS)
    tile.first = index * W
    tile.lanes = min(i64(W), t.count - index * W)
    for lane in range(W):
        left = min(index * W + lane, t.count - 1)
        for k in static(range(OPS)):
            tile.offsets[k * W + lane] = 0
        for d in range(t.dims):
            words = walk + d * (1 + OPS)
            at = left + 0
            if d + 1 < t.dims:
                left = left // words[0]
                at = at - left * words[0]
            for k in static(range(OPS)):
                to = tile.offsets + (k * W + lane)
                to[0] = to[0] + at * words[1 + k]


# --------------------------------------------------------------------------------------- elements
@inline
def get(T, W, a, at):
    """Vector number ``at`` of a tile's memory."""
    return vload(a + at * W, W)


@inline
def put(W, a, at, value):
    vstore(a + at * W, value)


@native
def read_matrices(
    a: raw, x: raw, offsets: ptr[i64], rows: i64, cols: i64, row: i64, col: i64, *, T, W
) -> void:
    """Collects an operand's matrices in a tile, row by row."""
    for lane in range(W):
        p = ptr[T](x) + offsets[lane]
        to = ptr[T](a) + lane
        for i in range(rows):
            q = p + i * row
            for j in range(cols):
                to[0] = q[j * col]
                to = to + W


@native
def write_matrices(
    x: raw, a: raw, pitch: i64, offsets: ptr[i64], lanes: i64, rows: i64, cols: i64, row: i64,
    col: i64, *, T, W,
) -> void:  # fmt: skip
    """Puts a tile's matrices, whose rows begin ``pitch`` vectors apart, where an operand has
    them."""
    for lane in range(lanes):
        p = ptr[T](x) + offsets[lane]
        for i in range(rows):
            of = ptr[T](a) + (i * pitch * W + lane)
            q = p + i * row
            for j in range(cols):
                q[j * col] = of[0]
                of = of + W


@inline
def read(T, W, tile, k, a, rows, cols):
    """Operand k of the tile's matrices, row by row from a on."""
    steps = tile.steps + 2 * k
    read_matrices(
        raw(a), tile.bufs[k], tile.offsets + k * W, rows, cols, steps[0], steps[1], T=T, W=W
    )


@inline
def read_columns(T, W, tile, k, a, rows, cols):
    """The same column by column."""
    steps = tile.steps + 2 * k
    read_matrices(
        raw(a), tile.bufs[k], tile.offsets + k * W, cols, rows, steps[1], steps[0], T=T, W=W
    )


@inline
def write(T, W, tile, k, a, rows, cols):
    """The tile's matrices, which lie row by row from a on, to operand k."""
    steps = tile.steps + 2 * k
    write_matrices(
        tile.bufs[k], raw(a), cols, tile.offsets + k * W, tile.lanes, rows, cols, steps[0],
        steps[1], T=T, W=W,
    )  # fmt: skip


@inline
def write_columns(T, W, tile, k, a, pitch, rows, cols):
    """The same where they lie column by column, ``pitch`` vectors apart."""
    steps = tile.steps + 2 * k
    write_matrices(
        tile.bufs[k], raw(a), pitch, tile.offsets + k * W, tile.lanes, cols, rows, steps[1],
        steps[0], T=T, W=W,
    )  # fmt: skip


@inline
def write_vector(T, W, tile, k, value):
    """A number of each matrix to operand k."""
    kept = local(T, W)
    vstore(kept, value)
    write(T, W, tile, k, kept, i64(1), i64(1))


@inline
def report(W, tile, info):
    """Notes the first matrix whose ``info`` is not 0, among all threads' tiles."""
    kept = local(i32, W)
    vstore(kept, info)
    for lane in range(tile.lanes):
        if kept[lane] != 0:
            code = ((tile.first + lane) << 8) + i64(kept[lane])
            atomic_max(tile.failed, i64(LATEST) - code)


@inline
def identity(T, W, a, rows, cols):
    """Ones on the diagonal of a tile, zeros elsewhere."""
    for i in range(rows):
        for j in range(cols):
            put(W, a, i * cols + j, vec[T, W](1) if i == j else vec[T, W](0))


@inline
def exchange_rows(T, W, a, k, row, first, m, cols):
    """Row k with the row that each lane names, of those from ``first`` on."""
    for i in range(first, m):
        chosen = row == vec[i32, W](i32(i))
        if reduce_any(chosen):
            for j in range(cols):
                upper = get(T, W, a, k * cols + j)
                lower = get(T, W, a, i * cols + j)
                put(W, a, k * cols + j, select(chosen, lower, upper))
                put(W, a, i * cols + j, select(chosen, upper, lower))
