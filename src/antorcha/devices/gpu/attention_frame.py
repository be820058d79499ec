"""What the kernels of attention by tensor cores share: fragments, tiles in shared memory, results.

The rows of a block are its warps', ``16 * P.atoms`` each; their operands stay in registers as left
factors. Tiles of what is beside them, some rows of all features, lie in shared memory with eight
more halves a row, so that the eight rows of a matrix are in different banks. They are read as they
lie for scores, and transposed for results, whose weights are the scores' own fragments.

Halves are multiplied as they are. A float32 is the sum of three bfloat16s, its planes, and a
product the sum of those of six pairs of planes: the other three are less than its last bit. The
planes of the operands are written to temporaries first (``attention_planes``): [head, row, plane,
feature], features padded by zeros.

``P.whole[k]``: do rows of 16 bytes of operand k lie together? Then they are copied by the hardware
if the operand's address is a multiple of 16 bytes, too. ``P.paired[k]``: are its features in pairs?
"""

from __future__ import annotations

from collections.abc import Sequence

from antorcha.devices.gpu.frame import GridTemplate, load_element, offsets_of, operand_place
from antorcha.lang.native import (
    bf16,
    bitcast,
    copysign,
    f32,
    fabs,
    i32,
    i64,
    inline,
    native,
    ptr,
    select,
    static,
    u16,
    u32,
    u64,
    void,
)
from antorcha.lang.native.approximate import pack_pair
from antorcha.lang.native.grid import WARP, block, device_pointer, thread, threads
from antorcha.lang.native.tensor_cores import copy_piece, load_matrices, mma
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

PIECE = 8  # halves of 16 bytes
FULL = 16  # features of a fragment
PLANES = 3  # of float32
PAIRS = ((2, 0), (0, 2), (1, 1), (1, 0), (0, 1), (0, 0))  # of planes, the least first
MOST = 3.38e38  # about the largest bfloat16: infinity stands for it among planes


def lies_whole(o: Layout) -> bool:
    """Do rows of 16 bytes of a tensor of halves lie together, from its first element on?"""
    strides = o.strides
    return strides[-1] == 1 and all([s % PIECE == 0 for s in strides[:-1]])


def padded(features: int) -> int:
    return -(-features // FULL) * FULL


class AttentionCode(GridTemplate):
    """What a kernel is compiled for: ``atoms`` times 16 rows of each of ``warps`` warps, tiles of
    ``columns`` beside them. After the operands' words come those of ``more`` temporaries, where
    there are planes those of the operands ``sources``, then the words that ``own`` names."""

    def __init__(
        self, outs: Sequence[Layout], ins: Sequence[Layout], index: Ty, causal: bool, dims: int,
        widths: tuple[int, int], cut: tuple[int, int, int], *, sources: Sequence[int],
        own: Sequence[str], more: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(outs, ins, index)
        operands = (*outs, *ins)
        self.causal, self.dims = causal, dims
        self.depth, self.wide = widths
        self.warps, self.atoms, self.columns = cut
        self.threads = self.warps * WARP
        self.rows = self.warps * self.atoms * 16
        self.split = self.types[0] is f32
        self.planes = PLANES if self.split else 1
        self.T = bf16 if self.split else self.types[0]
        self.U = u32 if index is i32 else u64
        self.whole = [o.dtype.itemsize == 2 and lies_whole(o) for o in operands]
        self.paired = [
            w and o.shape[-1] % 2 == 0 for w, o in zip(self.whole, operands, strict=True)
        ]
        self.planes_at = {k: self.head + more + n for n, k in enumerate(sources)}
        first = self.head + more + self.split * len(sources)
        strides = [f"{side}{k}" for k in range(len(operands)) for side in ("row", "column")]
        self.word = {name: first + k for k, name in enumerate((*own, *strides))}
        self.dim_words = first + len(self.word)

    def tile_size(self, depth: int) -> int:
        """The halves of a plane of a tile in shared memory."""
        return self.columns * (depth + PIECE)

    def __native_key__(self) -> str:
        cut = (self.depth, self.wide, self.warps, self.atoms, self.columns)
        return f"{self.operands_key()}|{self.causal}|{self.dims}|{cut}|{self.whole}{self.paired}"


@inline
def word(P, words, name):
    return P.I(words[static(P.word[name])])


@inline
def place_of(P, words, k, head):
    """Where operand k lies, and how far on its matrix of a head begins. (The compiler would keep
    their sum in two registers.)"""
    at = offsets_of(P, words, P.dim_words, P.dims, static(P.nops), head, k)
    return operand_place(P, words, k), at[k]


@inline
def beginning(place):
    """Where the matrix of a head begins."""
    return place[0] + place[1]


@inline
def source_of(P, words, k, depth, rows, head):
    """The place that operand k's matrix of a head is read from: its own, or that of its planes."""
    if not P.split:
        return place_of(P, words, k, head)
    own = device_pointer(bf16, words[static(P.planes_at[k])])
    return own, head * rows * static(PLANES * depth)


@inline
def row_step(P, words, k, depth):
    """From a row of what operand k is read from to the next."""
    return P.I(static(PLANES * depth)) if P.split else word(P, words, static(f"row{k}"))


# --------------------------------------------------------------------------------------- planes
class PlanesCode(GridTemplate):
    """What ``attention_planes`` is compiled for."""

    def __init__(self, of: Layout, index: Ty, dims: int, depth: int) -> None:
        super().__init__((), (of,), index)
        self.dims, self.depth = dims, depth
        self.threads = 256

    def __native_key__(self) -> str:
        return f"{self.operands_key()}|{self.dims}|{self.depth}"


@inline
def planes_of_pair(P, low, high):
    """The planes of two neighbours, each pair in a word."""
    found = [u32(0)] * P.planes
    for p in static(range(P.planes)):
        both = pack_pair(P.T, low, high)
        found[p] = both
        if p + 1 < P.planes:
            low = low - bitcast(f32, both << 16)
            high = high - bitcast(f32, both & u32(0xFFFF0000))
    return found


@inline
def bounded(x):
    """A number that is finite, or none."""
    return select(fabs(x) > MOST, copysign(f32(MOST), x), x)


@native
def attention_planes(words: ptr[i64], *, P) -> void:
    """Words: where the planes go, heads, rows, features, strides of rows and of features, then the
    heads' dims."""
    pairs = static(P.depth // 2)
    heads, rows, features = P.I(words[2]), P.I(words[3]), P.I(words[4])
    count = heads * rows * pairs
    i = P.I(block()) * static(P.threads) + P.I(thread())
    if i < count:
        line = i // pairs
        column = (i - line * pairs) * 2
        head = line // rows
        at = offsets_of(P, words, 7, P.dims, 1, head)[0] + (line - head * rows) * P.I(words[5])
        place = operand_place(P, words, 0)
        x = [f32(0), f32(0)]
        for k in static(range(2)):
            inside = column + k < features
            offset = select(inside, at + (column + k) * P.I(words[6]), P.I(0))
            x[k] = select(inside, bounded(load_element(P, words, 0, place, offset)), f32(0))
        to = device_pointer(u32, words[1]) + (line * static(PLANES * pairs) + column // 2)
        low, high = x[0], x[1]
        for p in static(range(PLANES)):
            both = pack_pair(bf16, low, high)
            to[static(p * pairs)] = both
            low = low - bitcast(f32, both << 16)
            high = high - bitcast(f32, both & u32(0xFFFF0000))


# ------------------------------------------------------------------------------- shared memory
@inline
def fetch_rows(P, words, k, room, depth, source, begin, limit, size):
    """Begins to copy a tile of operand k's rows from ``begin`` on; zeros from row ``limit`` and
    feature ``size`` on."""
    row = row_step(P, words, k, depth)
    if P.split:
        copy_pieces(P, room, depth, source, row, begin, limit, P.I(depth))
    elif P.whole[k]:
        if i64(beginning(source)) % 16 == 0:
            copy_pieces(P, room, depth, source, row, begin, limit, size)
        else:
            copy_each(P, words, k, room, depth, beginning(source), begin, limit, size)
    else:
        copy_each(P, words, k, room, depth, beginning(source), begin, limit, size)


@inline
def copy_pieces(P, room, depth, source, row, begin, limit, size):
    """Begins to copy eight features of each plane at a time."""
    inner = static(depth // PIECE)
    t = P.I(thread())
    line = P.I(P.U(t) // inner)
    column = (t - line * inner) * PIECE
    place, start = source
    if P.threads % inner == 0 and P.columns * inner % P.threads == 0:
        to = room + (line * static(depth + PIECE) + column)
        lines = static(P.threads // inner)
        at = start + (begin + line) * row + column
        if begin + static(P.columns) <= limit and size == static(depth):
            for u in static(range(P.columns // lines)):
                for p in static(range(P.planes)):
                    room_at = to + static(u * lines * (depth + PIECE) + p * P.tile_size(depth))
                    copy_piece(room_at, place + at + static(p * depth), i32(2 * PIECE))
                at = at + row * lines
        else:
            for u in static(range(P.columns // lines)):
                few = select(begin + line + static(u * lines) < limit, size - column, P.I(0))
                room_at = to + static(u * lines * (depth + PIECE))
                copy_few(P, room_at, depth, place, at, few)
                at = at + row * lines
    else:
        for piece in range(t, static(P.columns * inner), static(P.threads)):
            own = P.I(piece) // inner
            at = P.I(piece) % inner * PIECE
            few = select(begin + own < limit, size - at, P.I(0))
            to = room + (own * static(depth + PIECE) + at)
            copy_few(P, to, depth, place, start + (begin + own) * row + at, few)


@inline
def copy_few(P, to, depth, place, at, few):
    """Begins to copy a piece of each plane, of which ``few`` features are there."""
    count = max(min(few, P.I(PIECE)), P.I(0))
    at = select(count > 0, at, P.I(0))
    for p in static(range(P.planes)):
        room_at = to + static(p * P.tile_size(depth))
        copy_piece(room_at, place + at + static(p * depth), i32(count * 2))


@inline
def copy_each(P, words, k, room, depth, place, begin, limit, size):
    """Copies features one after another."""
    step, T = word(P, words, static(f"column{k}")), static(P.types[k])
    row = word(P, words, static(f"row{k}"))
    at = P.I(thread())
    while at < static(P.columns * depth):
        line = P.I(P.U(at) // depth)
        column = at - line * depth
        inside = (begin + line < limit) & (column < size)
        x = place[select(inside, (begin + line) * row + column * step, P.I(0))]
        room[line * static(depth + PIECE) + column] = select(inside, x, T(0))
        at = at + P.I(threads())  # (not known to the compiler, which would unroll the loop)


# ------------------------------------------------------------------------------------ fragments
@inline
def row_fragments(P, words, k, source, depth, first, limit, size):
    """This warp's rows of operand k from ``first`` on, as left factors; zeros outside."""
    found = [
        [[[u32(0)] * 4 for p in static(range(P.planes))] for c in static(range(depth // FULL))]
        for a in static(range(P.atoms))
    ]
    row = row_step(P, words, k, depth)
    if P.split:
        load_pairs(P, depth, source, row, first, limit, P.I(depth), found)
    elif P.paired[k]:
        if i64(beginning(source)) % 16 == 0:
            load_pairs(P, depth, source, row, first, limit, size, found)
        else:
            load_each(P, words, k, beginning(source), first, limit, size, found)
    else:
        load_each(P, words, k, beginning(source), first, limit, size, found)
    return found


@inline
def load_pairs(P, depth, source, row, first, limit, size, found):
    """Fragments of neighbours that lie together."""
    lane = P.I(thread()) % WARP
    place, start = source
    column = lane % 4 * 2
    for a in static(range(P.atoms)):
        for h in static(range(2)):
            own = first + static(a * 16 + h * 8) + lane // 4
            left = select(own < limit, size - column, P.I(0))
            at = place + (start + own * row + column)
            for c in static(range(len(found[a]))):
                for side in static(range(2)):
                    for p in static(range(P.planes)):
                        pair = u32(0)
                        if left > static(c * FULL + side * 8):
                            pair = ptr[u32](at + static(p * depth + c * FULL + side * 8))[0]
                        found[a][c][p][h + 2 * side] = pair


@inline
def load_each(P, words, k, place, first, limit, size, found):
    """Fragments of elements that lie anywhere."""
    lane = P.I(thread()) % WARP
    step = word(P, words, static(f"column{k}"))
    for a in static(range(P.atoms)):
        for h in static(range(2)):
            row = first + static(a * 16 + h * 8) + lane // 4
            left = select(row < limit, size - lane % 4 * 2, P.I(0))
            at = row * word(P, words, static(f"row{k}")) + lane % 4 * 2 * step
            for c in static(range(len(found[a]))):
                for side in static(range(2)):
                    bits = u32(0)
                    if left > static(c * FULL + side * 8):
                        bits = u32(bitcast(u16, place[at]))
                    if left > static(c * FULL + side * 8 + 1):
                        bits = bits | u32(bitcast(u16, place[at + step])) << 16
                    found[a][c][0][h + 2 * side] = bits
                    at = at + step * 8


@inline
def no_sums(P, columns):
    """Fragments of sums of this warp's rows: zeros."""
    return [[[f32(0)] * 4 for n in static(range(columns // 8))] for a in static(range(P.atoms))]


@inline
def product_by_rows(P, lefts, room, depth):
    """The products of this warp's rows with a tile's rows: the scores. The least products of planes
    are added up apart, where little is cut off."""
    lane = P.I(thread()) % WARP
    pitch = static(depth + PIECE)
    own = room + ((lane % 8 + lane // 16 * 8) * pitch + lane // 8 % 2 * 8)
    found, least = no_sums(P, P.columns), no_sums(P, static(P.columns if P.split else 0))
    for c in static(range(depth // FULL)):
        for n in static(range(0, P.columns // 8, 2)):
            y = [
                load_matrices(own + static(p * P.tile_size(depth) + n * 8 * pitch + c * FULL))
                for p in static(range(P.planes))
            ]
            for a in static(range(P.atoms)):
                if P.split:
                    multiply(P, static(PAIRS[:-1]), lefts[a][c], y, least[a], n)
                multiply(P, static(PAIRS[-1:]), lefts[a][c], y, found[a], n)
    if P.split:
        for a in static(range(P.atoms)):
            for n in static(range(P.columns // 8)):
                add_sums(found[a][n], least[a][n])
    return found


@inline
def add_rows(P, weights, room, depth, totals):
    """Adds a tile's rows, by their weights. Products of planes are added up apart, then added by
    operations that round: what tensor cores add to a long sum they cut off each time."""
    lane = P.I(thread()) % WARP
    pitch = static(depth + PIECE)
    own = room + ((lane % 8 + lane // 8 % 2 * 8) * pitch + lane // 16 * 8)
    for c in static(range(P.columns // 16)):
        for n in static(range(0, depth // 8, 2)):
            y = [
                load_matrices(own + static(p * P.tile_size(depth) + c * 16 * pitch + n * 8), True)
                for p in static(range(P.planes))
            ]
            for a in static(range(P.atoms)):
                if P.split:
                    found = no_sums(P, 16)[0]
                    multiply(P, PAIRS, weights[a][c], y, found, 0)
                    for m in static(range(2)):
                        add_sums(totals[a][static(n + m)], found[m])
                else:
                    multiply(P, static(PAIRS[-1:]), weights[a][c], y, totals[a], n)


@inline
def add_sums(sums, more):
    for k in static(range(4)):
        sums[k] = sums[k] + more[k]


@inline
def multiply(P, pairs, lefts, rights, totals, n):
    """Adds products of pairs of planes to a fragment and the one beside it."""
    for i, j in static(pairs):
        y = rights[j]
        one = mma(P.T, lefts[i], [y[0], y[1]], totals[n])
        other = mma(P.T, lefts[i], [y[2], y[3]], totals[n + 1])
        for k in static(range(4)):
            totals[n][k] = one[k]
            totals[n + 1][k] = other[k]


@inline
def as_lefts(P, x):
    """Sums' fragments, rounded, as those of a left factor."""
    found = [
        [[[u32(0)] * 4 for p in static(range(P.planes))] for c in static(range(P.columns // 16))]
        for a in static(range(P.atoms))
    ]
    for a in static(range(P.atoms)):
        for c in static(range(P.columns // 16)):
            for number in static(range(4)):
                of = x[a][2 * c + number // 2]
                at = static(number % 2 * 2)
                both = planes_of_pair(P, of[at], of[at + 1])
                for p in static(range(P.planes)):
                    found[a][c][p][number] = both[p]
    return found


# -------------------------------------------------------------------------------------- results
@inline
def store_rows(P, words, k, place, depth, first, limit, size, totals):
    """Writes this warp's rows of result k."""
    place = beginning(place)
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
