"""Index tensors on a GPU: where they lead, whether they may, and which one may not.

Positions are the elements of the index tensors' common shape, in row-major order. A *target* is a
place that indices lead to: an element of the big tensor, or a slice of it; its number, the *key*,
counts the targets in row-major order.

Many threads may find an index that is no position. Each notes in the plan's status which one it
is, and the largest note, the first index, stays. Where there is room, a note has the index itself
in its low bits; else the plan's last kernel, a single thread, puts the index in the note's place,
for the exception to name it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.core.shapes import broadcast_strides, contiguous_strides
from antorcha.core.structs import struct
from antorcha.devices.emit import MOST_KEPT, Unsupported
from antorcha.devices.gpu.frame import (
    MOST_DIMS,
    THREADS,
    GridStep,
    GridTemplate,
    blocks_for,
    dim_words,
    offsets_of,
    operand_place,
    position,
)
from antorcha.lang.kernels import Gather, Scatter
from antorcha.lang.native import (
    atomic_max,
    bool_,
    i64,
    inline,
    native,
    ptr,
    select,
    static,
    u64,
    void,
)
from antorcha.lang.native.grid import WARP, block, device_pointer, thread
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

EACH = 4  # positions of a thread
FIRST = 1 << 62  # the note of position 0 of index tensor 0
NOTES = 1 << 61  # what is above is a note
BIAS = 1 << 56
MOST = BIAS - 1  # of an index in a status; there is room for 16 index tensors
MOST_TENSORS = 15
NOTE_BITS = 62
LEAST_INDEX_BITS = 40  # of an index in a note

Columns = tuple[int, ...]


# ------------------------------------------------------------------------------------- the shape
@struct
class Positions:
    """Where the index tensors of a Gather or Scatter lead in the big tensor.

    ``shape`` is their common shape, ``columns`` the strides of each over it. Index k is a position
    in a dim of ``sizes[k]``, whose step in the big tensor is ``steps[k]``, and in the targets'
    numbers ``weights[k]``. What a position adds by itself has the strides ``away`` in the big
    tensor and ``base`` in the numbers. ``target``: sizes and strides of the dims over which targets
    are counted; ``kept``: of the dims that a target's elements have, which stand in the values with
    the position's dims before number ``at``.
    """

    shape: Columns
    columns: tuple[Columns, ...]
    sizes: Columns
    steps: Columns
    weights: Columns
    away: Columns
    base: Columns
    target: tuple[Columns, Columns]
    kept: tuple[Columns, Columns]
    at: int

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def targets(self) -> int:
        return math.prod(self.target[0])

    def spread(self, kept: Sequence[int], positions: Sequence[int]) -> list[int]:
        """Something of the kept dims and something of the positions', as the values have them."""
        return [*kept[: self.at], *positions, *kept[self.at :]]


def positions_of(
    what: Gather | Scatter, big: Layout, indices: Sequence[Layout], shape: Sequence[int]
) -> Positions:
    """``shape``: of the values, which are read from or written to the big tensor."""
    if len(indices) > MOST_TENSORS:
        raise Unsupported(f"{len(indices)} index tensors")
    sizes, strides = tuple(big.shape) or (1,), tuple(big.strides) or (0,)
    if what.at is None:
        return _by_elements(what.dims[0], sizes, strides, indices[0])
    if not what.dims:
        own, count = _shape_and_strides(indices[0]), math.prod(sizes)
        flat, (merged,) = collapse(sizes, [strides])
        step = merged[0] if merged else 0
        none = (0,) * len(own[0])
        return Positions(
            own[0], (own[1],), (count,), (step,), (1,), none, none,
            (tuple(flat), tuple(merged)), ((), ()), 0,
        )  # fmt: skip
    others = [d for d in range(len(sizes)) if d not in what.dims]
    common = _common(indices) if len(shape) < len(others) else None
    if common is None:
        common = tuple(shape[what.at : what.at + len(shape) - len(others)])
    dims = tuple([sizes[d] for d in what.dims])
    steps = tuple([strides[d] for d in what.dims])
    none = (0,) * len(common)
    return Positions(
        common, tuple([_over(index, common) for index in indices]), dims, steps,
        tuple(contiguous_strides(dims)), none, none, (dims, steps),
        (tuple([sizes[d] for d in others]), tuple([strides[d] for d in others])), what.at,
    )  # fmt: skip


def _by_elements(d: int, sizes: Columns, strides: Columns, index: Layout) -> Positions:
    """Of an index that says for each element where it is along dim d."""
    shape, own = _shape_and_strides(index)
    numbers = contiguous_strides(sizes)
    away = tuple([0 if e == d else s for e, s in enumerate(strides)])
    base = tuple([0 if e == d else s for e, s in enumerate(numbers)])
    return Positions(
        shape, (own,), (sizes[d],), (strides[d],), (numbers[d],), away, base, (sizes, strides),
        ((), ()), 0,
    )  # fmt: skip


def _shape_and_strides(layout: Layout) -> tuple[Columns, Columns]:
    return tuple(layout.shape) or (1,), tuple(layout.strides) or (0,)


def _common(indices: Sequence[Layout]) -> Columns:
    """The common shape of index tensors whose values are one number."""
    return tuple(max(indices, key=lambda index: index.ndim).shape)


def _over(index: Layout, common: Columns) -> Columns:
    """An index tensor's strides over the common shape; dims of one element before it go."""
    more = max(index.ndim - len(common), 0)
    return tuple(broadcast_strides(index.shape[more:], index.strides[more:], common))


# -------------------------------------------------------------------------------------- kernels
class IndexGrid(GridTemplate):
    """What a kernel is compiled for that reads index tensors: those from operand ``first`` on."""

    def __init__(
        self, outs: Sequence[Layout], ins: Sequence[Layout], index: Ty, first: int, dims: int,
        negative: bool, skips: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(outs, ins, index)
        self.first, self.K, self.dims = first, self.nops - first, dims
        self.negative, self.skips = negative, skips
        self.threads = THREADS

    def __native_key__(self) -> str:
        shape = f"{self.first}|{self.dims}|{self.negative}|{self.skips}"
        return f"{self.operands_key()}|{shape}"


@inline
def index_places(P, words):
    """Where the index tensors begin."""
    return [operand_place(P, words, P.first + k) for k in static(range(P.K))]


@inline
def checked_position(P, index, size, status, number, bits, last):
    """An index as a position in a dim of ``size``, and whether it is one: else 0, and the status
    says so. ``number`` is that of the index among all those of all index tensors. ``bits``: of an
    index in a note (None: it is not in there), and then ``last``: how many indices there are."""
    at = i64(index)
    if P.negative:
        at = select(at < 0, at + size, at)
    fits = u64(at) < u64(size)
    if not fits:
        if bits is None:
            note = static(FIRST) - number
        else:
            half = i64(1) << (bits - 1)
            note = ((last - number) << bits) + (min(max(i64(index), -half), half - 1) + half)
        atomic_max(status, note, "monotonic")
    return P.I(select(fits, at, i64(0))), fits


@native
def key_grid(words: ptr[i64], *, P) -> void:
    """Checks the index tensors and writes the targets' keys. Operands: the index tensors, keys,
    status; words: positions, the targets' number, which stands for no target, the index that is
    skipped, the number of the first of the index tensors, for each (size, weight), dims of (keys,
    index tensors)."""
    own = static(P.head + 2)
    sizes_at = static(own + 4)
    dims_at = static(sizes_at + 2 * P.K)
    first = position(P, EACH)
    n, none = P.I(words[own]), P.I(words[own + 1])
    places = index_places(P, words)
    keys = device_pointer(P.I, words[P.head])
    status = device_pointer(i64, words[P.head + 1])
    numbers = [min(first + u * P.threads, n - 1) for u in static(range(EACH))]
    offsets = [
        offsets_of(P, words, dims_at, P.dims, 1 + P.K, numbers[u]) for u in static(range(EACH))
    ]
    indices = [
        [i64(places[k][offsets[u][1 + k]]) for k in static(range(P.K))]
        for u in static(range(EACH))
    ]  # fmt: skip
    for u in static(range(EACH)):
        key, chosen = offsets[u][0], bool_(True)
        for k in static(range(P.K)):
            size, weight = words[sizes_at + 2 * k], P.I(words[sizes_at + 2 * k + 1])
            number = (words[own + 3] + k) * i64(n) + i64(numbers[u])
            at, fits = checked_position(P, indices[u][k], size, status, number, None, None)
            key = key + at * weight
            chosen = chosen and fits
            if P.skips:
                chosen = chosen and i64(at) != words[own + 2]
        if first + u * P.threads < n:
            keys[numbers[u]] = select(chosen, key, none)


@native
def explain_grid(words: ptr[i64], *, P) -> void:
    """Puts the first index that is no position into the status. Operands: the index tensors,
    status; words: positions, the number of the first of the index tensors, their dims."""
    status = device_pointer(i64, words[P.head])
    note = status[0]
    if thread() == 0 and block() == 0 and note > static(NOTES):
        number = static(FIRST) - note
        n, before = words[P.head + 1], words[P.head + 2]
        tensor = number // n
        at = offsets_of(P, words, static(P.head + 3), P.dims, P.K, P.I(number - tensor * n))
        places = index_places(P, words)
        index = i64(0)
        for k in static(range(P.K)):
            if tensor == before + k:
                index = i64(places[k][at[k]])
        index = max(min(index, i64(MOST)), i64(-MOST))
        status[0] = (index + static(BIAS)) * 16 + tensor


@struct
class RefusedIndex:
    """The exception for what `explain_grid` leaves in the status."""

    refuse: Callable[[int, int], BaseException]

    def __call__(self, status: int) -> BaseException:
        return self.refuse(status // 16 - BIAS, status % 16)


@struct
class NotedIndex:
    """The same where notes have the index itself in ``bits``. ``positions``: of an index tensor."""

    refuse: Callable[[int, int], BaseException]
    positions: int
    last: int
    bits: int

    def __call__(self, status: int) -> BaseException:
        number = self.last - (status >> self.bits)
        index = (status & ((1 << self.bits) - 1)) - (1 << (self.bits - 1))
        return self.refuse(index, number // self.positions)


def index_bits(last: int) -> int:
    """The bits that an index may have in a note, if there are so many; 0 where they are too few."""
    bits = NOTE_BITS - last.bit_length()
    return bits if bits >= LEAST_INDEX_BITS else 0


# ------------------------------------------------------------------------------------- planning
def key_step(
    what: Gather | Scatter, where: Positions, indices: Sequence[Layout], operands: Columns,
    index: Ty, keys: int, status: int, tensor: int = 0,
) -> GridStep:  # fmt: skip
    """The kernel that checks index tensors, which are those operands, and writes the keys.
    ``tensor``: the number of the first of them."""
    sizes, columns = collapse(where.shape, [where.base, *where.columns])
    skipped = getattr(what, "skipped", None)
    template = _template(indices, index, len(sizes), what.negative, skipped is not None)
    pairs = [w for pair in zip(where.sizes, where.weights, strict=True) for w in pair]
    words = (where.count, where.targets, skipped or 0, tensor, *pairs, *dim_words(sizes, columns))
    blocks = blocks_for(where.count, THREADS * EACH)
    return GridStep(
        key_grid, {"P": template}, blocks, THREADS, (*operands, keys, status), words
    )  # fmt: skip


def explain_step(
    where: Positions, indices: Sequence[Layout], operands: Columns, index: Ty, status: int,
    tensor: int = 0,
) -> GridStep:  # fmt: skip
    """The kernel that names the first index that is no position."""
    sizes, columns = collapse(where.shape, where.columns)
    template = _template(indices, index, len(sizes), False, False)
    words = (where.count, tensor, *dim_words(sizes, columns))
    return GridStep(explain_grid, {"P": template}, (1,), WARP, (*operands, status), words)


def _template(
    indices: Sequence[Layout], index: Ty, dims: int, negative: bool, skips: bool
) -> IndexGrid:
    if dims > MOST_DIMS:
        raise Unsupported(f"index tensors of {dims} dims")
    key = tuple([i.dtype for i in indices]), index, dims, negative, skips
    return kept(
        _templates, key, lambda _: IndexGrid((), indices, index, 0, dims, negative, skips),
        MOST_KEPT,
    )  # fmt: skip


_templates: dict[Any, IndexGrid] = {}
