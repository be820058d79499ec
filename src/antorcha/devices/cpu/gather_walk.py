"""The kernel of Gather and Scatter: one walk over the elements that are read or written.

The walk goes over the dims of the values in row-major order and keeps, beside the offset in the
values, that in the big tensor, without what the indices add to it, and those in the index tensors.
A *line* is the innermost dim. Where no index changes along it, it is a row, moved in vectors.

A Scatter's order decides what is left where two of its elements meet. They can only do so along
the dims of the index tensors, so threads share the others: as lines that belong together, or as
columns of them.

Every index is checked before anything is written; a fresh result, which nobody sees if an index is
bad, is checked as it is filled. A bad index is returned as the kernel's status, together with which
index tensor it is in; ``bad_index`` takes it apart again.
"""

from __future__ import annotations

import copy
import math
from typing import Any

from antorcha.devices.cpu.template import advance, odometer, pass_by, run_of
from antorcha.devices.emit import NUMBERS, WORDS, Unsupported
from antorcha.lang.native import (
    address,
    bool_,
    first,
    i32,
    i64,
    inline,
    local,
    native,
    prefetch,
    ptr,
    raw,
    reduce_max,
    select,
    static,
    u64,
    vec,
    vload,
    void,
    vstore,
)
from antorcha.lang.native import struct as native_struct
from antorcha.lang.native.machine import target
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import pool_run, pool_threads

GET, SET, FILL = "get", "set", "fill"
BEGIN = "begin"  # writes what changes nothing
FOLDS = ("add", "multiply", "max", "min")
NOTHING = -(1 << 62)  # no index: none is skipped
BIAS = 1 << 51
MOST = 1 << 50
PIECE = 2048  # elements whose indices are checked together, before they are read
COLUMNS = 128  # bytes of a row that are worth a thread of their own
ASKED = 16  # elements of a line, for one of which one of the next is asked for
AHEAD = 4  # rows before they are needed, their first lines are asked for
THREAD = 16384  # elements worth waking a thread for


@inline
def status(index, k):
    """A bad index, in the k-th index tensor, as a number that is not 0."""
    kept = index
    if kept > MOST:
        kept = i64(MOST)
    if kept < -MOST:
        kept = i64(-MOST)
    return (kept + BIAS) * 16 + k


def bad_index(code: int) -> tuple[int, int]:
    """The index and the number of its tensor, of a status."""
    return code // 16 - BIAS, code % 16


class GatherWalk:
    """What the kernel is compiled for. ``at``, ``values`` and ``first`` are the buffers of the big
    tensor, the values and the first of the index tensors. ``row``: no index changes along a line;
    ``cut``: its elements never meet in the big tensor. ``own``: the big tensor's elements are
    folded, too; else what changes nothing is written in their place first."""

    def __init__(
        self, mode: str, big: Layout, index: Layout, count: int, *, at: int, values: int,
        first: int, row: bool, cut: bool,
        negative: bool = False, skips: bool = False, number: Any = None, own: bool = True,
    ) -> None:  # fmt: skip
        folds = mode not in (GET, SET)  # moving needs no more than an element's size
        element = NUMBERS.get(big.dtype.name) if folds else WORDS.get(big.itemsize)
        if element is None:
            raise Unsupported
        self.T, self.I = element, i32 if index.dtype.name == "int32" else i64
        self.mode, self.K, self.N = mode, count, number
        self.at, self.values, self.index = at, values, first
        self.logical = big.dtype.kind == "b"
        self.negative, self.skips = negative, skips
        self.row, self.cut = row, cut
        self.begin = None if own else neutral(mode, element, self.logical)
        self.W = max(target().vector_bits // 8 // self.T.size, 4)
        self.per = 2 + count  # offsets: of the big tensor, the values, the index tensors
        self.phases = [self]  # of a unit
        if self.begin is not None:
            first_phase = copy.copy(self)
            first_phase.mode = BEGIN
            self.phases = [first_phase, self]

    def __native_key__(self) -> str:
        number = None if self.N is None else self.N.name
        return (
            f"{self.T.name} {self.I.name} {self.mode} {self.K} {number} {self.at} {self.values} "
            f"{self.index} {self.logical} {self.negative} {self.skips} {self.row} {self.cut} "
            f"{self.W} {self.begin}"
        )


def neutral(mode: str, element: Ty, logical: bool) -> float | int | None:
    """The number that folded with another one gives that."""
    if mode in ("add", "multiply"):
        return int(mode == "multiply")
    if mode not in ("max", "min"):
        return None
    if logical:
        return int(mode == "min")
    if element.kind == "f":
        return -math.inf if mode == "max" else math.inf
    least, most = element.bounds()
    return least if mode == "max" else most


# Description words. Then the steps along a line (of the big tensor, the values, each index tensor);
# for each index tensor (size, step in the big tensor); the outer dims, for an odometer.
@native_struct
class WalkShape:
    early: i64  # are all indices checked before anything is written?
    dims: i64  # outer ones
    n: i64  # elements of a line
    together: i64  # lines after one another that may meet in the big tensor
    skipped: i64  # an index


WORDS_OF_SHAPE = 5


@native_struct
class WalkWork:
    bufs: ptr[raw]
    big: raw
    values: raw
    desc: ptr[i64]
    failed: i64  # is an index bad?
    lines: i64
    together: i64  # lines of a unit
    piece: i64  # elements of a line that are a unit's
    pieces: i64  # of a line


@inline
def parts_of(P, desc):
    """The description: the shape, steps along a line, the index tensors' sizes and steps, dims."""
    steps = desc + WORDS_OF_SHAPE
    sizes = steps + P.per
    return ptr[WalkShape](raw(desc)), steps, sizes, sizes + 2 * P.K


@inline
def indices_at(P, bufs, offset):
    """Where a line begins in each of the index tensors."""
    return [ptr[P.I](bufs[P.index + k]) + offset[2 + k] for k in static(range(P.K))]


@inline
def step_of(shape, outer, k):
    """From a line of a run to the next, in the k-th of what has offsets."""
    return outer[1 + k] if shape.dims > 0 else i64(0)


# ------------------------------------------------------------------------------------- checking
@inline
def from_low(P, index, size):
    """Of an index that is a position less than ``reach``, and no other."""
    return u64(index + size) if P.negative else u64(index)


@inline
def reach(P, size):
    return u64(2 * size) if P.negative else u64(size)


@inline
def all_fit(P, p, lo, hi, step, size):
    """Are the indices lo..hi of a line positions in a dim of that size?"""
    W = static(8)
    most = u64(0)
    at = lo + 0
    if step == 1:
        wide = vec[u64, W](0)
        least = vec[i64, W](size if P.negative else i64(0))
        at = lo + (hi - lo) // W * W
        for j in range(lo, at, W):
            wide = max(wide, vec[u64, W](vec[i64, W](vload(p + j, W)) + least))
        most = reduce_max(wide)
    for j in range(at, hi):
        most = max(most, from_low(P, i64(p[j * step]), size))
    return most < reach(P, size)


@native
def check_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """The indices of lines u0..u1."""
    work = ptr[WalkWork](args)
    shape, steps, sizes, outer = parts_of(P, work.desc)
    index, offset = odometer(P.per, outer, shape.dims, u0)
    u = u0 + 0
    while u < u1:
        indices = indices_at(P, work.bufs, offset)
        run = run_of(outer, shape.dims, index, u1 - u) if P.row else i64(1)
        n = run if P.row else shape.n
        for k in static(range(P.K)):
            step = step_of(shape, outer, 2 + k) if P.row else steps[2 + k]
            if not all_fit(P, indices[k], i64(0), n, step, sizes[2 * k]):
                work.failed = 1
        pass_by(P.per, outer, shape.dims, index, offset, run)
        u += run


@native
def first_bad(bufs: ptr[raw], desc: ptr[i64], lines: i64, *, P) -> i64:
    """The status for the first bad index of the first index tensor that has one."""
    shape, steps, sizes, outer = parts_of(P, desc)
    for k in static(range(P.K)):
        index, offset = odometer(P.per, outer, shape.dims, i64(0))
        for _r in range(lines):
            p = ptr[P.I](bufs[P.index + k]) + offset[2 + k]
            for j in range(shape.n):
                i = i64(p[j * steps[2 + k]])
                if from_low(P, i, sizes[2 * k]) >= reach(P, sizes[2 * k]):
                    return status(i, k)
            advance(P.per, outer, shape.dims, index, offset)
    return status(i64(NOTHING), 0)  # another thread has changed it meanwhile


# --------------------------------------------------------------------------------------- moving
@inline
def number(P, at):
    """The Python number at an address as an element."""
    value = ptr[P.N](at)[0]
    if P.logical:
        return P.T(1) if value != P.N(0) else P.T(0)
    return P.T(value)


@inline
def folded(P, old, new):
    """What an element, or a vector of them, becomes. NaN is both the greatest and the least."""
    if P.mode == "add":
        return old | new if P.logical else old + new
    if P.mode == "multiply":
        return old & new if P.logical else old * new
    if P.mode == "max":
        return select((new > old) | (new != new), new, old)
    if P.mode == "min":
        return select((new < old) | (new != new), new, old)
    return new


@inline
def put(P, a, v, filling):
    """One element: a is the big tensor's, v the other's."""
    if P.mode == "get":
        v[0] = a[0]
    elif P.mode == "fill":
        a[0] = filling
    elif P.mode == "begin":
        a[0] = P.T(P.begin)
    else:
        a[0] = folded(P, a[0], v[0])


@inline
def put_vector(P, a, v, filling, mask):
    if P.mode == "get":
        vstore(v, vload(a, P.W, mask), mask)
    elif P.mode == "fill":
        vstore(a, vec[P.T, P.W](filling), mask)
    elif P.mode == "begin":
        vstore(a, vec[P.T, P.W](P.begin), mask)
    elif P.mode == "set":
        vstore(a, vload(v, P.W, mask), mask)
    else:
        vstore(a, folded(P, vload(a, P.W, mask), vload(v, P.W, mask)), mask)


@inline
def move_row(P, a, v, lo, hi, step_a, step_v, filling):
    """Elements lo..hi of a row whose place in the big tensor is a."""
    if step_a == 1 and (P.mode == "fill" or step_v == 1):
        at = lo + 0
        for j in range(lo, lo + (hi - lo) // (4 * P.W) * (4 * P.W), 4 * P.W):
            for u in static(range(4)):
                put_vector(P, a + j + u * P.W, v + j + u * P.W, filling, None)
            at = j + 4 * P.W
        whole = at + (hi - at) // P.W * P.W  # masks cost a store that misses the caches too much
        for j in range(at, whole, P.W):
            put_vector(P, a + j, v + j, filling, None)
        if whole < hi:
            put_vector(P, a + whole, v + whole, filling, first(P.W, hi - whole))
    else:
        for j in range(lo, hi):
            put(P, a + j * step_a, v + j * step_v, filling)


@inline
def position(P, i, size):
    """An index that fits as a position."""
    if P.negative and i < 0:
        i += size
    return i


@inline
def get_dense(P, a, v, p, lo, hi, size, step, coming):
    """Elements lo..hi of a line, of what lies in order but for the big tensor's, whose next line at
    ``coming`` is asked for meanwhile: processors foresee no jumps to and fro."""
    at = lo + 0
    for j in range(lo, lo + (hi - lo) // ASKED * ASKED, ASKED):
        if j < size:
            prefetch(coming + j * step)
        for u in static(range(ASKED)):
            v[j + u] = a[position(P, i64(p[j + u]), size) * step]
        at = j + ASKED
    for j in range(at, hi):
        v[j] = a[position(P, i64(p[j]), size) * step]


@inline
def put_dense(P, a, v, p, lo, hi, size, step, filling):
    """Elements lo..hi of a line, of what lies in order but for the big tensor's, which are written
    to."""
    at = lo + 0
    for j in range(lo, lo + (hi - lo) // 4 * 4, 4):
        to = [a + position(P, i64(p[j + u]), size) * step for u in static(range(4))]
        for u in static(range(4)):
            put(P, to[u], v + (j + u), filling)
        at = j + 4
    for j in range(at, hi):
        put(P, a + position(P, i64(p[j]), size) * step, v + j, filling)


@inline
def move_each(P, a, v, indices, lo, hi, steps, sizes, skipped, filling):
    """Elements lo..hi of a line whose indices change along it."""
    step_a, step_v = steps[0], steps[1]
    step_i = [steps[2 + k] for k in static(range(P.K))]
    size = [sizes[2 * k] for k in static(range(P.K))]
    step_at = [sizes[2 * k + 1] for k in static(range(P.K))]
    for j in range(lo, hi):
        to = a + j * step_a
        keep = bool_(True)
        for k in static(range(P.K)):
            i = i64(indices[k][j * step_i[k]])
            if P.skips:
                keep = keep and i != skipped
            to = to + position(P, i, size[k]) * step_at[k]
        if P.skips:
            if keep:
                put(P, to, v + j * step_v, filling)
        else:
            put(P, to, v + j * step_v, filling)


@inline
def row_at(P, shape, big, indices, sizes):
    """Where the row that the indices choose is in the big tensor, and whether it is moved."""
    keep = bool_(True)
    for k in static(range(P.K)):
        i = i64(indices[k][0])
        if P.mode == "get":
            keep = keep and from_low(P, i, sizes[2 * k]) < reach(P, sizes[2 * k])
        if P.skips:
            keep = keep and i != shape.skipped
        big = big + position(P, i, sizes[2 * k]) * sizes[2 * k + 1]
    return big, keep


@inline
def ask_for_row(P, big, indices, steps, sizes, lo, hi):
    """Asks for the first lines of the cache of the row that the indices choose, if they fit;
    ``steps``: from the first of the indices to those."""
    for k in static(range(P.K)):
        at = position(P, i64(indices[k][steps[k]]), sizes[2 * k])
        big = big + at * sizes[2 * k + 1]
    line = static(64 // P.T.size)
    for j in range(lo, min(hi, lo + 4 * line), line):
        prefetch(big + j)


@inline
def move_line(P, shape, steps, sizes, big, v, indices, lo, hi, coming, filling):
    """Elements lo..hi of a line; ``coming``: where the next line is in the big tensor. False, and
    nothing done, where an index is bad that was not checked before."""
    fit = bool_(True)
    if P.row:
        a, keep = row_at(P, shape, big, indices, sizes)
        if keep:
            move_row(P, a, v, lo, hi, steps[0], steps[1], filling)
        elif P.mode == "get":
            fit = bool_(False)
    else:
        if P.mode == "get":
            for k in static(range(P.K)):
                fit = fit and all_fit(P, indices[k], lo, hi, steps[2 + k], sizes[2 * k])
        dense = P.K == 1 and steps[0] == 0 and steps[1] == 1 and steps[2] == 1
        if fit and P.mode == "get" and dense:
            get_dense(P, big, v, indices[0], lo, hi, sizes[0], sizes[1], coming)
        elif fit and not P.skips and P.mode != "get" and dense:
            put_dense(P, big, v, indices[0], lo, hi, sizes[0], sizes[1], filling)
        elif fit:
            move_each(P, big, v, indices, lo, hi, steps, sizes, shape.skipped, filling)
    return fit


@inline
def move_unit(P, work, big, filling, begin, end, lo, hi):
    """Elements lo..hi of the lines begin..end. False if an index is bad that was not checked
    before."""
    shape, steps, sizes, outer = parts_of(P, work.desc)
    fit = bool_(True)
    index, offset = odometer(P.per, outer, shape.dims, begin)
    r = begin + 0
    while r < end:
        a = big + offset[0]
        v = ptr[P.T](work.values) + offset[1]
        indices = indices_at(P, work.bufs, offset)
        run = run_of(outer, shape.dims, index, end - r)
        step = [step_of(shape, outer, k) for k in static(range(P.per))]
        pass_by(P.per, outer, shape.dims, index, offset, run)
        for left in range(run):
            coming = a + step[0]
            if P.row:
                ahead = min(run - 1 - left, i64(AHEAD))
                further = [ahead * step[2 + k] for k in static(range(P.K))]
                ask_for_row(P, a + ahead * step[0], indices, further, sizes, lo, hi)
            elif left == run - 1:
                coming = big + offset[0]
            if not move_line(P, shape, steps, sizes, a, v, indices, lo, hi, coming, filling):
                fit = bool_(False)
            a, v = a + step[0], v + step[1]
            for k in static(range(P.K)):
                indices[k] = indices[k] + step[2 + k]
        r += run
    return fit


@native
def move_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Units u0..u1. A unit is a piece of each of some lines."""
    work = ptr[WalkWork](args)
    shape = ptr[WalkShape](raw(work.desc))
    big = ptr[P.T](work.big)
    filling = number(P, work.values) if P.mode == "fill" else P.T(0)
    for u in range(u0, u1):
        group = u // work.pieces
        lo = (u - group * work.pieces) * work.piece
        hi = min(lo + work.piece, shape.n)
        begin = group * work.together
        end = min(begin + work.together, work.lines)
        for Q in static(P.phases):
            if not move_unit(Q, work, big, filling, begin, end, lo, hi):
                work.failed = 1


@inline
def divide(P, work, shape):
    """Says what a unit is; gives the number of units."""
    n = shape.n
    if P.mode == "get":
        work.together = max((THREAD if P.row else PIECE) // n, 1)
        work.piece = min(n, i64(PIECE))
    else:
        work.together = shape.together
        work.piece = n
        shares = min(pool_threads(), n * P.T.size // COLUMNS)
        if P.cut and work.lines // work.together < shares:
            line = static(64 // P.T.size)  # of the cache
            work.piece = ((n + shares - 1) // shares + line - 1) // line * line
    work.pieces = (n + work.piece - 1) // work.piece
    return (work.lines + work.together - 1) // work.together * work.pieces


@native
def walk_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """See the module's docstring."""
    shape, _steps, _sizes, outer = parts_of(P, desc)
    work = local(WalkWork)
    work.bufs = bufs
    work.big = bufs[P.at]
    work.values = bufs[P.values]
    work.desc = desc
    work.failed = 0
    work.lines = 1
    for d in range(shape.dims):
        work.lines *= outer[d * (1 + P.per)]
    n = shape.n
    if shape.early != 0:
        lines_of_share = max(THREAD // (1 if P.row else n), 1)
        pool_run(address(check_job, P=P), work.lines, lines_of_share, raw(work))
    if work.failed == 0:
        units = divide(P, work, shape)
        of_share = max(THREAD // (work.together * work.piece), 1)
        pool_run(address(move_job, P=P), units, of_share, raw(work))
    if work.failed != 0:
        return first_bad(bufs, desc, work.lines, P=P)
    return 0
