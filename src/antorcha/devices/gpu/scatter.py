"""Scatter on a GPU: the indices are checked and become keys, x is copied, then targets are written.

Threads that write to the same target would make the result depend on their timing. How that is
prevented depends on the sizes and the fold:

- *lines*: only source elements of the same line can meet. Where lines are short, or many, a thread
  folds a line into the output, in order.
- *all the same*: a number, or an element that repeats, is written by whoever comes.
- *atomic*: sums and extremes of integers do not depend on the order.
- *winners*: of the positions that are written to a target, the last one is elected first.
- *segments*: the positions are sorted by target (``segments``), then each target's are folded, or
  the last of them written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.core.shapes import broadcast_strides, contiguous_strides
from antorcha.core.structs import struct
from antorcha.devices.emit import MOST_KEPT, Unsupported
from antorcha.devices.gpu.frame import (
    MOST_DIMS,
    THREADS,
    GridPlan,
    GridStep,
    blocks_for,
    dim_words,
    index_type,
)
from antorcha.devices.gpu.gather import check_steps
from antorcha.devices.gpu.indices import (
    Positions,
    RefusedIndex,
    explain_step,
    key_step,
    positions_of,
)
from antorcha.devices.gpu.moves import as_words, copy_step
from antorcha.devices.gpu.scatter_folds import (
    ADD,
    MAX,
    MEAN,
    MIN,
    SET,
    FoldGrid,
    VoteGrid,
    clear_winners,
    each_grid,
    elect_winners,
    join_grid,
    last_grid,
    line_grid,
    segment_grid,
)
from antorcha.devices.gpu.segments import Workspace, sort_steps
from antorcha.lang.kernels import Scatter
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

SHORT_LINE = 128  # elements that one thread folds, however few lines there are
LONG_LINE = 1024  # that one thread folds where there are
MANY_LINES = 1 << 15
TARGETS_OF_POSITION = 16  # targets that may be cleared for each position, to elect winners
LEAST_CHUNK = 256


@struct
class Writing:
    """A Scatter's operands as its kernels see them. ``shape`` and ``strides``: the positions, and
    the source's strides over them (where x is flat, the source has a shape of its own);
    ``slices``: the source's strides over the kept dims. ``status`` and ``keys`` are operands."""

    fold: str
    own: bool
    where: Positions
    out: Layout
    source: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    slices: tuple[int, ...]
    index: Ty
    data: tuple[int, int]  # operands: output, source
    status: int
    keys: int

    @property
    def slice_size(self) -> int:
        return math.prod(self.where.kept[0])


def plan_scatter(what: Scatter, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    out, x = outs[0], ins[0]
    numbers = [k for k in range(2, 1 + len(ins)) if k != 1 + what.source]
    indices = [ins[k - 1] for k in numbers]
    source = ins[what.source]
    work = Workspace(1 + len(ins))
    status = work.room(8)
    tensors = tuple(numbers)
    if not indices[0].numel or not out.numel:
        steps = [copy_step(out, x, (0, 1, status))] if out.numel else []
        if indices[0].numel:
            steps = check_steps(what, out, indices, tensors, work, status)
        return GridPlan(tuple(steps), tuple(work.sizes), 0, RefusedIndex(what.refuse))
    values = source.shape if isinstance(source, Layout) else indices[0].shape
    where = positions_of(what, out, indices, values)
    layouts = [o for o in (out, source, *indices) if isinstance(o, Layout)]
    index = index_type(layouts, max(where.count * math.prod(where.kept[0]), out.numel))
    keys = work.room(where.count * index.size)
    writing = _writing(what, where, out, source, index, status, keys)
    plan = [
        key_step(what, where, indices, tensors, index, keys, status),
        copy_step(out, x, (0, 1, status)),
        *_write_steps(writing, what, work),
        explain_step(where, indices, tensors, index, status),
    ]
    return GridPlan(tuple(plan), tuple(work.sizes), 0, RefusedIndex(what.refuse))


def _writing(
    what: Scatter, where: Positions, out: Layout, source: Any, index: Ty, status: int, keys: int
) -> Writing:
    """How the source lies over positions and slices."""
    shape, slices = where.shape, tuple[int, ...]()
    if not isinstance(source, Layout):
        strides: tuple[int, ...] = (0,) * len(shape)
    elif what.at is None:
        strides = tuple(source.strides) or (0,)
    elif not what.dims:
        shape, strides = tuple(source.shape), tuple(source.strides)
    else:
        full = tuple(where.spread(where.kept[0], shape))
        more = max(source.ndim - len(full), 0)
        own, steps = tuple(source.shape[more:]), tuple(source.strides[more:])
        wide = tuple(broadcast_strides(own, steps, full))
        end = where.at + len(shape)
        strides, slices = wide[where.at : end], (*wide[: where.at], *wide[end:])
    same = isinstance(source, Layout) and source.dtype is out.dtype
    if what.fold == SET and same:
        out, source = as_words(out), as_words(source)
    return Writing(
        what.fold, what.own, where, out, source, shape, strides, slices, index,
        (0, 1 + what.source), status, keys,
    )  # fmt: skip


def _write_steps(of: Writing, what: Scatter, work: Workspace) -> list[GridStep]:
    template = _each_template(of, "")
    if of.fold == SET and not any(of.strides):
        return [_each_step(of, "all", of.status)]
    lines, along = _lines(of, what)
    simple = of.fold == SET or (of.own and of.fold != MEAN)
    short = along <= SHORT_LINE or (along <= LONG_LINE and lines >= MANY_LINES)
    if simple and short and (along == 1 or template.A is template.T):
        return [_line_step(of, what, lines, along)]
    if of.fold in (ADD, MAX, MIN) and of.own and template.T.kind in "iu" and template.T.size >= 4:
        return [_each_step(of, "atomic", of.status)]
    if of.fold == SET and of.where.targets <= TARGETS_OF_POSITION * of.where.count:
        return _election_steps(of, work)
    return _segment_steps(of, work, template)


def _election_steps(of: Writing, work: Workspace) -> list[GridStep]:
    count, targets = of.where.count, of.where.targets
    winners = work.room(targets * of.index.size)
    vote = {"P": kept(_voters, of.index, VoteGrid, MOST_KEPT)}
    cleared, elected = (winners, of.status), (of.keys, winners)
    return [
        GridStep(clear_winners, vote, blocks_for(targets), THREADS, cleared, (targets,)),
        GridStep(elect_winners, vote, blocks_for(count), THREADS, elected, (count, targets)),
        _each_step(of, "winner", winners),
    ]


def _segment_steps(of: Writing, work: Workspace, template: FoldGrid) -> list[GridStep]:
    count = of.where.count
    steps, keys, numbers = sort_steps(work, of.keys, count, of.where.targets, of.index)
    if of.fold == SET:
        return [*steps, _fold_step(of, last_grid, count, (keys, numbers, of.status), ())]
    chunk = LEAST_CHUNK
    while chunk * chunk < count:  # so that neither a chunk nor their number is long
        chunk *= 2
    chunks = -(-count // chunk)
    states = 2 * chunks * of.slice_size * template.nstate if chunks > 1 else 1
    operands = (keys, numbers, of.status, work.room(states * template.A.size))
    steps.append(_fold_step(of, segment_grid, count, operands, (chunk,)))
    if chunks > 1:
        steps.append(_fold_step(of, join_grid, chunks - 1, operands, (chunk,)))
    return steps


def _lines(of: Writing, what: Scatter) -> tuple[int, int]:
    """How many lines there are, and how many elements each has."""
    if what.at is None:
        along = of.where.shape[what.dims[0]]
        return of.where.count // along, along
    return of.slice_size, of.where.count


# ---------------------------------------------------------------------------------------- steps
def _line_step(of: Writing, what: Scatter, lines: int, along: int) -> GridStep:
    numbers = contiguous_strides(of.where.shape)
    kept_sizes, kept_strides = of.where.kept
    if what.at is None:
        d = what.dims[0]
        others = [e for e in range(len(of.shape)) if e != d]
        sizes = [of.shape[e] for e in others]
        columns = [
            [of.strides[e] for e in others], [0] * len(others), [numbers[e] for e in others]
        ]  # fmt: skip
        line = collapse(sizes, columns)
        each = collapse([of.shape[d]], [[of.strides[d]], [numbers[d]]])
    else:
        line = collapse(kept_sizes, [of.slices, kept_strides, [0] * len(kept_sizes)])
        each = collapse(of.shape, [of.strides, contiguous_strides(of.shape)])
    target = collapse(of.where.target[0], [of.where.target[1]])
    template = _template(of, (len(target[0]), len(line[0]), len(each[0])))
    words = (
        lines, along, of.where.targets, *dim_words(*target), *dim_words(*line), *dim_words(*each)
    )  # fmt: skip
    operands = (*of.data, of.keys, of.status)
    return GridStep(line_grid, {"P": template}, blocks_for(lines), THREADS, operands, words)


def _each_template(of: Writing, mode: str) -> FoldGrid:
    sizes = [len(part[0]) for part in _parts(of)]
    return _template(of, (sizes[0], sizes[1], sizes[2]), mode)


def _each_step(of: Writing, mode: str, winners: int) -> GridStep:
    count, size = of.where.count, of.slice_size
    words = (count, size, of.where.targets, *[w for p in _parts(of) for w in dim_words(*p)])
    operands = (*of.data, of.keys, of.status, winners)
    static = {"P": _each_template(of, mode)}
    return GridStep(each_grid, static, blocks_for(count * size), THREADS, operands, words)


def _fold_step(
    of: Writing, kernel: Any, items: int, operands: tuple[int, ...], own: tuple[int, ...]
) -> GridStep:
    """A kernel on the sorted positions with a thread for each item and element of a slice."""
    count, size = of.where.count, of.slice_size
    rest = [w for p in _parts(of) for w in dim_words(*p)]
    words = (count, size, of.where.targets, *own, *rest)
    static = {"P": _each_template(of, "")}
    blocks = blocks_for(items * size)
    return GridStep(kernel, static, blocks, THREADS, (*of.data, *operands), words)


def _parts(of: Writing) -> tuple[Any, Any, Any]:
    """Sizes and strides of the targets, of slices (source, output), of positions (source)."""
    kept_sizes, kept_strides = of.where.kept
    return (
        collapse(of.where.target[0], [of.where.target[1]]),
        collapse(kept_sizes, [of.slices, kept_strides]),
        collapse(of.shape, [of.strides]),
    )


def _template(of: Writing, dims: tuple[int, int, int], mode: str = "") -> FoldGrid:
    if sum(dims) > MOST_DIMS:
        raise Unsupported(f"{sum(dims)} dims")
    rows = of.slice_size > 1
    across = rows and _nearest(of.shape, of.strides) < _nearest(of.where.kept[0], of.slices)
    kind = of.source.dtype if isinstance(of.source, Layout) else of.source
    key = of.fold, of.own, of.out.dtype, kind, of.index, dims, rows, across, mode
    return kept(
        _templates, key,
        lambda _: FoldGrid(
            of.fold, of.out, of.source, of.index, dims, rows=rows, across=across, own=of.own,
            mode=mode,
        ),
        MOST_KEPT,
    )  # fmt: skip


def _nearest(sizes: Sequence[int], strides: Sequence[int]) -> float:
    """The least step to another element."""
    return min([abs(s) for n, s in zip(sizes, strides, strict=True) if n > 1], default=math.inf)


_templates: dict[Any, FoldGrid] = {}
_voters: dict[Any, VoteGrid] = {}
