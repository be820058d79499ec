"""Elements moved as they are: in units of several that lie side by side, where all lie so.

Only an element's size matters, so kernels see elements as unsigned words. A unit is up to 16 bytes;
it is moved at once where both addresses are multiples of its size, which a kernel asks when it
runs, and piece by piece elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.devices.emit import MOST_KEPT, WORDS, Unsupported
from antorcha.devices.gpu.frame import (
    MOST_DIMS,
    THREADS,
    GridStep,
    GridTemplate,
    blocks_for,
    dim_words,
    index_type,
    offsets_of,
    position,
)
from antorcha.lang.native import i64, inline, native, ptr, static, u32, void
from antorcha.lang.native.grid import device_pointer, load_whole, store_whole
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout

EACH = 4  # units of a thread
UNIT_BYTES = 16
_WORD_DTYPES = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64,
                16: dtypes.complex128}  # fmt: skip


class MoveUnit:
    """A unit of ``wide`` elements: it has ``pieces`` of the type ``piece``."""

    def __init__(self, itemsize: int, wide: int) -> None:
        self.piece = WORDS[min(itemsize, 8)]
        self.of_element = itemsize // self.piece.size
        self.pieces = wide * self.of_element
        self.nbytes = wide * itemsize
        self.word = WORDS.get(self.nbytes)  # that is moved at once; None for 16 bytes

    def __native_key__(self) -> str:
        return f"{self.piece}|{self.of_element}|{self.pieces}"


def as_words(layout: Layout) -> Layout:
    """The layout of the same elements seen as words."""
    dtype = _WORD_DTYPES.get(layout.itemsize)
    if dtype is None:
        raise Unsupported(str(layout.dtype))
    return L.layout(layout.shape, layout.strides, dtype, layout.device)


def elements_of_unit(
    itemsize: int, sizes: Sequence[int], moved: Sequence[Sequence[int]],
    others: Sequence[Sequence[int]] = (), steps: Sequence[int] = (),
) -> int:  # fmt: skip
    """How many elements along the last dim can be a unit. ``moved``: strides of what is moved;
    ``others``: of what must not change within a unit; ``steps``: what else is added to offsets."""
    side_by_side = sizes and all(c[-1] == 1 for c in moved) and not any(c[-1] for c in others)
    wide = UNIT_BYTES // itemsize
    while side_by_side and wide > 1:
        strides = [s for column in moved for s in column[:-1]]
        if not any(s % wide for s in (sizes[-1], *strides, *steps)):
            return wide
        wide //= 2
    return 1


def in_units(sizes: Sequence[int], columns: Sequence[Sequence[int]], wide: int) -> Any:
    """Sizes and strides, the last dim counted in units."""
    if wide == 1:
        return sizes, columns
    return (
        [*sizes[:-1], sizes[-1] // wide],
        [[*column[:-1], column[-1] * wide] for column in columns],
    )


@inline
def move_place(U, words, k):
    """The address in word k, as pieces."""
    return device_pointer(U.piece, words[k])


@inline
def move_units(U, to, to_at, source, source_at, valid):
    """Moves some units; their offsets are counted in elements, and each is read, but only those
    that are ``valid`` are written."""
    count = static(len(valid))
    froms = [source + source_at[u] * U.of_element for u in static(range(count))]
    tos = [to + to_at[u] * U.of_element for u in static(range(count))]
    if U.pieces == 1:
        found = [froms[u][0] for u in static(range(count))]
        for u in static(range(count)):
            if valid[u]:
                tos[u][0] = found[u]
    elif ((i64(to) | i64(source)) & static(U.nbytes - 1)) == 0:
        whole = [load_unit(U, froms[u]) for u in static(range(count))]
        for u in static(range(count)):
            if valid[u]:
                store_unit(U, tos[u], whole[u])
    else:
        for u in static(range(count)):
            if valid[u]:
                for piece in static(range(U.pieces)):
                    tos[u][piece] = froms[u][piece]


@inline
def load_unit(U, p):
    return load_whole(ptr[u32](p), 4) if U.word is None else ptr[U.word](p)[0]


@inline
def store_unit(U, p, value):
    if U.word is None:
        store_whole(ptr[u32](p), value)
    else:
        place = ptr[U.word](p)
        place[0] = value


# ---------------------------------------------------------------------------------------- copies
class CopyGrid(GridTemplate):
    """What a copy is compiled for."""

    def __init__(self, out: Layout, x: Layout, index: Any, dims: int, wide: int) -> None:
        super().__init__((out,), (x,), index)
        self.unit, self.dims, self.threads = MoveUnit(out.itemsize, wide), dims, THREADS

    def __native_key__(self) -> str:
        return f"{self.unit.__native_key__()}|{self.I}|{self.dims}"


@native
def copy_grid(words: ptr[i64], *, P) -> void:
    """Copies x to the output, unless the status says that something is wrong or they are the same
    memory. Operands: output, x, status; words: units, whether the two lie alike, dims."""
    to, source = move_place(P.unit, words, 0), move_place(P.unit, words, 1)
    status = device_pointer(i64, words[2])
    n, alike = P.I(words[3]), words[4]
    if status[0] == 0 and not (alike != 0 and words[0] == words[1]):
        first = position(P, EACH)
        offsets = [
            offsets_of(P, words, 5, P.dims, 2, min(first + u * P.threads, n - 1))
            for u in static(range(EACH))
        ]
        valid = [first + u * P.threads < n for u in static(range(EACH))]
        to_at = [offsets[u][0] for u in static(range(EACH))]
        source_at = [offsets[u][1] for u in static(range(EACH))]
        move_units(P.unit, to, to_at, source, source_at, valid)


def copy_step(out: Layout, x: Layout, operands: tuple[int, int, int]) -> GridStep:
    """The kernel that copies x to the output; operands: output, x, status."""
    out, x = as_words(out), as_words(x)
    order = sorted(range(out.ndim), key=lambda d: -abs(out.strides[d]))
    sizes, columns = collapse(
        [out.shape[d] for d in order], [[o.strides[d] for d in order] for o in (out, x)]
    )
    wide = elements_of_unit(out.itemsize, sizes, columns)
    sizes, columns = in_units(sizes, columns, wide)
    if len(sizes) > MOST_DIMS:
        raise Unsupported(f"{len(sizes)} dims")
    index = index_type((out, x), out.numel)
    key = out.dtype, index, len(sizes), wide
    template = kept(_templates, key, lambda _: CopyGrid(out, x, index, len(sizes), wide), MOST_KEPT)
    count = out.numel // wide
    words = (count, int(out.strides == x.strides), *dim_words(sizes, columns))
    blocks = blocks_for(count, THREADS * EACH)
    return GridStep(copy_grid, {"P": template}, blocks, THREADS, operands, words)


_templates: dict[Any, CopyGrid] = {}
