"""A storage as a row of memory cells, and the way a view takes through it.

Of a small storage every cell is shown; of a large one the beginning, where the view begins, where
each of its strides leads, and the end. Which elements of the view a cell serves is worked out from
the strides alone, cell by cell, so the size of the tensor costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from antorcha.core.shapes import is_dense, may_overlap
from antorcha.inspector.numbers import exact
from antorcha.inspector.reading import FREED, Elements, Gone

WHOLE = 64  # a storage of so many cells is shown whole
_FIRST, _AROUND, _END = 8, 4, 3  # cells shown where the view begins, where strides lead, at ends
_DIMS = 3  # the strides of so many dims are followed
_READERS = 100  # elements that share one cell are counted up to here
_EFFORT = 5000  # steps of the search for a cell's readers
_COUNTED = 4096  # distinct cells are counted one by one up to so many elements


@dataclass(frozen=True)
class MemoryCell:
    """One cell: its value's text ("" where nothing can be read) and who reads it.

    ``order`` is the first place in the view's row-major order that reads it, ``index`` the same as
    an index, ``readers`` how many elements do (0: none does, and order and index are None; None:
    strides so entangled that it takes too long to say).
    """

    position: int
    value: str
    order: int | None = None
    index: tuple[int, ...] | None = None
    readers: int | None = 0


@dataclass(frozen=True)
class Gap:
    """Cells that are not shown."""

    first: int
    count: int


@dataclass(frozen=True)
class StrideStep:
    """Where one more along a dim leads: from the view's first cell to ``target``."""

    dim: int
    size: int
    stride: int
    target: int


@dataclass(frozen=True)
class MemoryPicture:
    """What is drawn: runs of cells with gaps between them, in the order of memory."""

    cells: int  # of the whole storage, in elements of the tensor's dtype
    first: int  # the offset: where the view begins
    parts: tuple[tuple[MemoryCell, ...] | Gap, ...]
    steps: tuple[StrideStep, ...]
    read: int | None  # how many different cells the view reads; None: not worked out
    repeats: bool | None  # is some cell read more than once? None: not worked out
    whole: bool  # is every cell shown?
    readable: bool  # do the cells have values?

    def shown(self) -> list[MemoryCell]:
        """All cells that are drawn."""
        return [cell for part in self.parts if not isinstance(part, Gap) for cell in part]


def picture(elements: Elements, whole: int = WHOLE) -> MemoryPicture:
    """The cells to draw of the storage of a tensor."""
    layout, cells = elements.layout, elements.cells
    view = _MemoryView(layout.shape, layout.strides, elements.offset)
    runs = [(0, cells)] if cells <= whole else _merged(_windows(view, cells))
    parts: list[tuple[MemoryCell, ...] | Gap] = []
    at = 0
    for first, last in runs:
        if first > at:
            parts.append(Gap(at, first - at))
        parts.append(_cells(elements, view, first, last))
        at = last
    if cells > at:
        parts.append(Gap(at, cells - at))
    steps = [
        StrideStep(d, layout.shape[d], layout.strides[d], elements.offset + layout.strides[d])
        for d in range(layout.ndim)
        if layout.shape[d] > 1 and layout.numel
    ]
    read = view.distinct()
    return MemoryPicture(
        cells, elements.offset, tuple(part for part in parts if part), tuple(steps), read,
        None if read is None else read != layout.numel,
        cells <= whole, _has_values(elements),
    )  # fmt: skip


def repeats(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Is it known that several elements share a cell?"""
    read = _MemoryView(shape, strides, 0).distinct() if may_overlap(shape, strides) else None
    return read is not None and read != math.prod(shape)


def _has_values(elements: Elements) -> bool:
    """May what is there of the storage be read, even where the tensor needs more of it?"""
    return elements.why_not == "" or (elements.why_not == FREED and elements.cells > 0)


def _cells(elements: Elements, view: _MemoryView, first: int, last: int) -> tuple[MemoryCell, ...]:
    texts = [""] * (last - first)
    if _has_values(elements) and last > first:
        with suppress(Gone):
            texts = [exact(value) for value in elements.run(first, last - first)]
    return tuple([view.cell(first + k, text) for k, text in enumerate(texts)])


def _windows(view: _MemoryView, cells: int) -> list[tuple[int, int]]:
    """Runs of cells that tell the most about a large storage."""
    begin, end = view.offset, view.offset + view.reach
    found = [
        (0, _AROUND),
        (begin - 1, begin + _FIRST),
        (end - _END, end + 1),
        (cells - _END, cells),
    ]
    far = sorted(zip(view.strides, view.shape, strict=True), reverse=True)
    for stride, size in [pair for pair in far if pair[1] > 1][:_DIMS]:
        found.append((begin + stride - 1, begin + stride + _AROUND - 1))
        if size > 2:
            found.append((begin + 2 * stride - 1, begin + 2 * stride + _AROUND - 1))
    inside = [(max(a, 0), min(b, cells)) for a, b in found]
    return [run for run in inside if run[0] < run[1]]


def _merged(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs in order; those that touch, or leave out less than three cells, are one."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if merged and first - merged[-1][1] < 3:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


class _MemoryView:
    """Shape, strides and offset, asked from the side of the memory."""

    def __init__(self, shape: Sequence[int], strides: Sequence[int], offset: int) -> None:
        self.shape, self.strides, self.offset = tuple(shape), tuple(strides), offset
        self.empty = 0 in self.shape
        self.reach = 0 if self.empty else 1 + sum(
            [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
        )  # fmt: skip
        dims = [d for d in range(len(self.shape)) if self.shape[d] > 1 and self.strides[d] > 0]
        self.moving = sorted(dims, key=lambda d: -self.strides[d])
        self.copies = 1 if self.empty else math.prod(
            [n for n, s in zip(shape, strides, strict=True) if s == 0]
        )  # fmt: skip
        # How far the dims after the k-th moving one reach.
        rest, self.rests = 0, []
        for d in reversed(self.moving):
            self.rests.append(rest)
            rest += self.strides[d] * (self.shape[d] - 1)
        self.rests.reverse()

    def cell(self, position: int, value: str) -> MemoryCell:
        """The cell at a position of the storage, with the elements of the view that read it."""
        found = 0
        first: tuple[int, tuple[int, ...]] | None = None
        for index in self._indices(position - self.offset):
            order = 0
            for n, i in zip(self.shape, index, strict=True):
                order = order * n + i
            if first is None or order < first[0]:
                first = order, index
            found += 1
            if found == _READERS:
                break
        if first is None:
            return MemoryCell(position, value, readers=None if self.tired else 0)
        return MemoryCell(position, value, first[0], first[1], found * self.copies)

    def _indices(self, distance: int) -> Iterator[tuple[int, ...]]:
        """The indices at that distance from the first element (0 along dims of stride 0)."""
        self.tired, effort = False, 0
        if self.empty or not 0 <= distance < self.reach:
            return
        stack: list[tuple[int, int, tuple[int, ...]]] = [(0, distance, ())]
        while stack:
            k, left, chosen = stack.pop()
            effort += 1
            if effort > _EFFORT:
                self.tired = True
                return
            if k == len(self.moving):
                if left == 0:
                    index = [0] * len(self.shape)
                    for d, i in zip(self.moving, chosen, strict=True):
                        index[d] = i
                    yield tuple(index)
                continue
            d, rest = self.moving[k], self.rests[k]
            stride = self.strides[d]
            least = max(0, -(-(left - rest) // stride))
            most = min(self.shape[d] - 1, left // stride)
            stack += [
                (k + 1, left - i * stride, (*chosen, i))
                for i in range(min(most, least + _READERS), least - 1, -1)
            ]

    def distinct(self) -> int | None:
        """How many different cells are read; None where counting them would take long."""
        if self.empty:
            return 0
        shape = [self.shape[d] for d in self.moving]
        strides = [self.strides[d] for d in self.moving]
        if is_dense(shape, strides) or not may_overlap(shape, strides):
            return math.prod(shape)
        if math.prod(shape) > _COUNTED:
            return None
        places = {0}
        for n, s in zip(shape, strides, strict=True):
            places = {place + i * s for place in places for i in range(n)}
        return len(places)
