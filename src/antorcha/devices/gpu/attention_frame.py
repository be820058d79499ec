"""What the kernels of attention by tensor cores share: fragments, tiles in shared memory, results.

The rows of a block are its warps', ``16 * P.atoms`` each; their operands stay in registers as left
factors. Tiles of what is beside them, some rows of all features, lie in shared memory with eight
more halves a row, so that the eight rows of a matrix are in different banks. They are read as they
lie for scores, and transposed for results, whose weights are the scores' own fragments.

``P.whole[k]``: do rows of 16 bytes of operand k lie together? Then they are copied by the hardware
if the operand's address is a multiple of 16 bytes, too. ``P.paired[k]``: are its features in pairs?
"""

from __future__ import annotations

from collections.abc import Sequence

from antorcha.devices.gpu.frame import GridTemplate, offsets_of, operand_place
from antorcha.lang.native import bitcast, f32, i32, i64, inline, ptr, select, static, u16, u32
from antorcha.lang.native.approximate import pack_pair
from antorcha.lang.native.grid import WARP, thread
from antorcha.lang.native.tensor_cores import copy_piece, load_matrices, mma
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

PIECE = 8  # halves of 16 bytes
FULL = 16  # features of a fragment


def lies_whole(o: Layout) -> bool:
    """Do rows of 16 bytes of a tensor of halves lie together, from its first element on?"""
    strides = o.strides
    return strides[-1] == 1 and all([s % PIECE == 0 for s in strides[:-1]])


def last_strides(o: Layout, rows: bool = True) -> tuple[int, int]:
    """A tensor's strides from row to row and from feature to feature; without rows, from number to
    number."""
    return (o.strides[-2], o.strides[-1]) if rows else (0, o.strides[-1])


def padded(features: int) -> int:
    return -(-features // FULL) * FULL


class AttentionCode(GridTemplate):
    """What a kernel is compiled for: ``atoms`` times 16 rows of each of ``warps`` warps, tiles of
    ``columns`` beside them. ``own`` are the names of its words, after ``more`` temporaries."""

    def __init__(
        self, outs: Sequence[Layout], ins: Sequence[Layout], index: Ty, causal: bool, dims: int,
        widths: tuple[int, int], cut: tuple[int, int, int], own: Sequence[str], more: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(outs, ins, index)
        operands = (*outs, *ins)
        self.causal, self.dims = causal, dims
        self.depth, self.wide = widths
        self.warps, self.atoms, self.columns = cut
        self.threads = self.warps * WARP
        self.rows = self.warps * self.atoms * 16
        self.whole = [o.dtype.itemsize == 2 and lies_whole(o) for o in operands]
        self.paired = [
            w and o.shape[-1] % 2 == 0 for w, o in zip(self.whole, operands, strict=True)
        ]
        first = self.head + more
        strides = [f"{side}{k}" for k in range(len(operands)) for side in ("row", "column")]
        self.word = {name: first + k for k, name in enumerate((*own, *strides))}
        self.dim_words = first + len(self.word)

    def __native_key__(self) -> str:
        cut = (self.depth, self.wide, self.warps, self.atoms, self.columns)
        return f"{self.operands_key()}|{self.causal}|{self.dims}|{cut}|{self.whole}{self.paired}"


@inline
def word(P, words, name):
    return P.I(words[static(P.word[name])])


@inline
def places_of(P, words, head):
    """Where each operand's matrix of a head begins."""
    at = offsets_of(P, words, P.dim_words, P.dims, static(P.nops), head)
    return [operand_place(P, words, k) + at[k] for k in static(range(P.nops))]


# ------------------------------------------------------------------------------- shared memory
@inline
def fetch_rows(P, words, k, room, depth, place, begin, limit, size):
    """Begins to copy a tile of operand k's rows from ``begin`` on; zeros from row ``limit`` and
    feature ``size`` on."""
    if P.whole[k]:
        if i64(place) % 16 == 0:
            copy_pieces(P, words, k, room, depth, place, begin, limit, size)
        else:
            copy_each(P, words, k, room, depth, place, begin, limit, size)
    else:
        copy_each(P, words, k, room, depth, place, begin, limit, size)


@inline
def copy_pieces(P, words, k, room, depth, place, begin, limit, size):
    """Begins to copy eight features at a time."""
    pieces = static(P.columns * depth // PIECE)
    for u in static(range(-(-pieces // P.threads))):
        piece = P.I(thread()) + static(u * P.threads)
        if (u + 1) * P.threads <= pieces:
            fetch_piece(P, words, k, room, depth, place, begin, limit, size, piece)
        else:
            if piece < pieces:
                fetch_piece(P, words, k, room, depth, place, begin, limit, size, piece)


@inline
def fetch_piece(P, words, k, room, depth, place, begin, limit, size, piece):
    inner = static(depth // PIECE)
    line = piece // inner
    column = piece % inner * PIECE
    few = select(begin + line < limit, size - column, P.I(0))
    count = max(min(few, P.I(PIECE)), P.I(0))
    at = (begin + line) * word(P, words, static(f"row{k}")) + column
    to = room + (line * static(depth + PIECE) + column)
    copy_piece(to, place + select(count > 0, at, P.I(0)), i32(count * 2))


@inline
def copy_each(P, words, k, room, depth, place, begin, limit, size):
    """Copies features one after another."""
    step, T = word(P, words, static(f"column{k}")), static(P.types[k])
    row = word(P, words, static(f"row{k}"))
    for at in range(thread(), static(P.columns * depth), static(P.threads)):
        line, column = P.I(at) // depth, P.I(at) % depth
        inside = (begin + line < limit) & (column < size)
        x = place[select(inside, (begin + line) * row + column * step, P.I(0))]
        room[line * static(depth + PIECE) + column] = select(inside, x, T(0))


# ------------------------------------------------------------------------------------ fragments
@inline
def row_fragments(P, words, k, place, depth, first, limit, size):
    """This warp's rows of operand k from ``first`` on, as left factors; zeros outside."""
    found = [
        [[u32(0)] * 4 for c in static(range(depth // FULL))] for a in static(range(P.atoms))
    ]
    if P.paired[k]:
        if i64(place) % 16 == 0:
            load_fragments(P, words, k, place, first, limit, size, found, True)
        else:
            load_fragments(P, words, k, place, first, limit, size, found, False)
    else:
        load_fragments(P, words, k, place, first, limit, size, found, False)
    return found


@inline
def load_fragments(P, words, k, place, first, limit, size, found, paired):
    lane = P.I(thread()) % WARP
    step = word(P, words, static(f"column{k}"))
    for a in static(range(P.atoms)):
        for h in static(range(2)):
            row = first + static(a * 16 + h * 8) + lane // 4
            at = row * word(P, words, static(f"row{k}"))
            for c in static(range(len(found[a]))):
                for side in static(range(2)):
                    column = static(c * FULL + side * 8) + lane % 4 * 2
                    inside = (row < limit) & (column < size)
                    number = static(h + 2 * side)
                    if paired:
                        pair = ptr[u32](place + select(inside, at + column, P.I(0)))[0]
                        found[a][c][number] = select(inside, pair, u32(0))
                    else:
                        low = place[select(inside, at + column * step, P.I(0))]
                        both = inside & (column + 1 < size)
                        high = place[select(both, at + (column + 1) * step, P.I(0))]
                        bits = select(inside, u32(bitcast(u16, low)), u32(0))
                        bits = bits | select(both, u32(bitcast(u16, high)), u32(0)) << 16
                        found[a][c][number] = bits


@inline
def product_by_rows(P, T, lefts, room, depth):
    """The products of this warp's rows with a tile's rows: the scores."""
    lane = P.I(thread()) % WARP
    pitch = static(depth + PIECE)
    own = room + ((lane % 8 + lane // 16 * 8) * pitch + lane // 8 % 2 * 8)
    found = [
        [[f32(0)] * 4 for n in static(range(P.columns // 8))] for a in static(range(P.atoms))
    ]
    for c in static(range(depth // FULL)):
        for n in static(range(0, P.columns // 8, 2)):
            y = load_matrices(own + static(n * 8 * pitch + c * FULL))
            for a in static(range(P.atoms)):
                multiply(T, lefts[a][c], y, found[a], n)
    return found


@inline
def add_rows(P, T, weights, room, depth, totals):
    """Adds a tile's rows, by their weights."""
    lane = P.I(thread()) % WARP
    pitch = static(depth + PIECE)
    own = room + ((lane % 8 + lane // 8 % 2 * 8) * pitch + lane // 16 * 8)
    for c in static(range(P.columns // 16)):
        for n in static(range(0, depth // 8, 2)):
            y = load_matrices(own + static(c * 16 * pitch + n * 8), True)
            for a in static(range(P.atoms)):
                multiply(T, weights[a][c], y, totals[a], n)


@inline
def multiply(T, left, right, totals, n):
    """Adds products to a fragment and the one beside it."""
    one = mma(T, left, [right[0], right[1]], totals[n])
    other = mma(T, left, [right[2], right[3]], totals[n + 1])
    for k in static(range(4)):
        totals[n][k] = one[k]
        totals[n + 1][k] = other[k]


@inline
def as_lefts(P, T, x):
    """Sums' fragments, rounded, as those of a left factor."""
    found = [
        [[u32(0)] * 4 for c in static(range(P.columns // 16))] for a in static(range(P.atoms))
    ]
    for a in static(range(P.atoms)):
        for c in static(range(P.columns // 16)):
            for number in static(range(4)):
                of = x[a][2 * c + number // 2]
                at = static(number % 2 * 2)
                found[a][c][number] = pack_pair(T, of[at], of[at + 1])
    return found


# -------------------------------------------------------------------------------------- results
@inline
def store_rows(P, words, k, place, depth, first, limit, size, totals):
    """Writes this warp's rows of result k."""
    if P.paired[k]:
        if i64(place) % 16 == 0:
            store_fragments(P, words, k, place, depth, first, limit, size, totals, True)
        else:
            store_fragments(P, words, k, place, depth, first, limit, size, totals, False)
    else:
        store_fragments(P, words, k, place, depth, first, limit, size, totals, False)


@inline
def store_fragments(P, words, k, place, depth, first, limit, size, totals, paired):
    lane = P.I(thread()) % WARP
    T = static(P.types[k])
    step = word(P, words, static(f"column{k}"))
    for a in static(range(P.atoms)):
        for h in static(range(2)):
            row = first + static(a * 16 + h * 8) + lane // 4
            at = row * word(P, words, static(f"row{k}"))
            for n in static(range(depth // 8)):
                column = static(n * 8) + lane % 4 * 2
                low, high = totals[a][n][2 * h], totals[a][n][2 * h + 1]
                if paired:
                    if row < limit and column < size:
                        ptr[u32](place + (at + column))[0] = pack_pair(T, low, high)
                else:
                    if row < limit and column < size:
                        place[at + column * step] = T(low)
                    if row < limit and column + 1 < size:
                        place[at + (column + 1) * step] = T(high)

