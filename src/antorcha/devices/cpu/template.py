"""What the templates share: their operands, the walk over the outer dims, threads, the launch.

A template is a native function that takes a compile-time value P, a subclass of `Template`, and two
arguments at run time: the operands' addresses and the description words. Its inner loop runs along
one dim; how an operand moves along it, its *kind*, is fixed when the kernel is compiled: ``c`` (its
elements follow each other), ``s`` (one element, repeated), ``g`` (any other stride). The rest of
the shape is data, so one kernel serves every shape of the same kind: an *odometer* counts through
the other dims and keeps each operand's offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.devices.complexes import fill_pair, load_pair, part_of, store_pair
from antorcha.devices.emit import Body, Unsupported
from antorcha.lang import expr as E
from antorcha.lang.kernels import Launch
from antorcha.lang.native import (
    address,
    i64,
    inline,
    lanes,
    local,
    ptr,
    raw,
    shuffle,
    static,
    struct,
    vec,
    vgather,
    vload,
    vscatter,
    vstore,
)
from antorcha.lang.native.machine import target
from antorcha.lang.native.types import Ty
from antorcha.runtime.launch import make_launch
from antorcha.runtime.launched import slot_of
from antorcha.runtime.pool import pool_run

MAX_DIMS = 12  # that an odometer has
THREAD = 32768  # elements worth waking a thread for, of a sum
PARTS = 512  # parts that are worked on apart and joined afterwards, at most


class Template:
    """What every template's code depends on."""

    def __init__(
        self, out_types: Sequence[Ty], in_types: Sequence[Ty], out_kinds: str, in_kinds: str
    ) -> None:
        self.out_types, self.in_types = list(out_types), list(in_types)
        self.out_kinds, self.in_kinds = out_kinds, in_kinds
        self.nout, self.nin = len(out_types), len(in_types)
        self.nops = self.nout + self.nin
        self.in_parts = [part_of(t) for t in in_types]
        self.out_parts = [part_of(t) for t in out_types]
        self.used = [True] * self.nin
        self.width = 1

    def operands_key(self) -> str:
        """The operands' part of ``__native_key__``."""
        types = ",".join(t.name for t in (*self.out_types, *self.in_types))
        return f"{types}|{self.out_kinds}|{self.in_kinds}|{self.width}"

    def reads(self, *bodies: Body) -> list[bool]:
        """Which inputs the bodies use."""
        used = E.inputs_used(*[e for body in bodies for e in body.exprs])
        return [k in used for k in range(self.nin)]


def lanes_of(widest: int) -> int:
    """The lanes of vectors whose widest element has so many bytes."""
    return max(target().vector_bits // 8 // widest, 4)


# ---------------------------------------------------------------------------------------- operands
@inline
def load(p, kind, fixed, at, step, width, mask):
    """One vector of an operand at position ``at`` of the row."""
    if kind == "s":
        return fixed
    if kind == "c":
        return vload(p + at, width, mask)
    if mask is not None:
        return vgather(p + at * step, lanes(i64, width) * step, mask)
    if step == 2:
        found = every_second(p + 2 * at, width)
    else:
        found = vgather(p + at * step, lanes(i64, width) * step, None)
    return found


@inline
def every_second(p, width):
    """Every second element from p on: two loads take less time than one by its places. The second
    one ends where the last of these elements does."""
    order = static([2 * k if 2 * k < width else 2 * k + 1 for k in range(width)])
    return shuffle(vload(p, width), vload(p + (width - 1), width), order)


@inline
def load_inputs(P, used, ins, fixed, steps, at, mask):
    """One vector of each input that is used (complex numbers: two); ``steps`` are the inputs'."""
    return [
        load_input(P, k, ins[k], fixed[k], steps[k], at, mask) if used[k] else None
        for k in static(range(P.nin))
    ]


@inline
def load_input(P, k, p, fixed, step, at, mask):
    if P.in_parts[k] is None:
        return load(p, P.in_kinds[k], fixed, at, step, P.width, mask)
    return load_pair(P.in_parts[k], p, P.in_kinds[k], fixed, at, step, P.width, mask)


@inline
def store_output(P, k, p, at, step, value, mask, stream):
    """What an expression gave to position ``at`` of output k's row; ``stream``: past the caches."""
    if P.out_parts[k] is not None:
        store_pair(P.out_parts[k], p, P.out_kinds[k], at, step, value, P.width, mask, stream)
    elif stream and P.out_kinds[k] == "c":
        vstore(p + at, vec[P.out_types[k], P.width](value), None, stream=True)
    else:
        result = vec[P.out_types[k], P.width](value)
        store(p, P.out_kinds[k], at, step, result, P.width, mask)


@inline
def store(p, kind, at, step, value, width, mask):
    """One vector to position ``at`` of an output's row."""
    if kind == "c":
        vstore(p + at, value, mask)
    else:
        vscatter(p + at * step, lanes(i64, width) * step, value, mask)


@inline
def transposed(count, rows, each=1):
    """A square of as many vectors as they have elements, of some lanes `each`, transposed: stages
    of shuffles, each of which exchanges one bit of row and column."""
    for d in static([1 << s for s in range(count.bit_length() - 1)]):
        low = static(lanes_from([c if not c & d else count + (c ^ d) for c in range(count)], each))
        high = static(lanes_from([c | d if not c & d else count + c for c in range(count)], each))
        result = [rows[0] for i in static(range(count))]
        for i in static([i for i in range(count) if not i & d]):
            result[i] = shuffle(rows[i], rows[i | d], low)
            result[i | d] = shuffle(rows[i], rows[i | d], high)
        rows = result
    return rows


def lanes_from(elements: Sequence[int], each: int) -> tuple[int, ...]:
    """The lanes of elements that have so many each."""
    return tuple([c * each + lane for c in elements for lane in range(each)])


@inline
def repeated(P, ins):
    """The inputs that stay the same along the row, as vectors."""
    return [
        fill(P, k, ins[k], P.width) if P.in_kinds[k] == "s" and P.used[k] else None
        for k in static(range(P.nin))
    ]


@inline
def fill(P, k, p, width):
    """Input k's element at p in every lane."""
    if P.in_parts[k] is None:
        return vec[P.in_types[k], width](p[0])
    return fill_pair(P.in_parts[k], p, width)


@inline
def outputs_at(P, bufs, offset):
    """Where each output's row begins."""
    return [ptr[P.out_types[k]](bufs[k]) + offset[k] for k in static(range(P.nout))]


@inline
def inputs_at(P, bufs, offset):
    """Where each input's row begins; the operands' offsets have the outputs' first."""
    return [ptr[P.in_types[k]](bufs[P.nout + k]) + offset[P.nout + k] for k in static(range(P.nin))]


@inline
def of_inputs(P, steps):
    """The inputs' part of what is given for all operands."""
    return [steps[P.nout + k] for k in static(range(P.nin))]


@inline
def words_at(desc, start, count):
    """So many description words."""
    return [desc[start + k] for k in static(range(count))]


# ------------------------------------------------------------------------------------ the odometer
@inline
def odometer(per, outer, dims, r):
    """An odometer at row r: an index a dim, and the offsets of as many operands as `per`."""
    index = local(i64, MAX_DIMS)
    offset = local(i64, per)
    seek(per, outer, dims, r, index, offset)
    return index, offset


@inline
def rows_of(per, outer, dims):
    """How many rows an odometer has."""
    rows = i64(1)
    for d in range(dims):
        rows = rows * outer[d * (1 + per)]
    return rows


@inline
def seek(per, outer, dims, r, index, offset):
    """Sets an odometer to row r."""
    for k in static(range(per)):
        offset[k] = 0
    left = r
    for d in range(dims):
        words = outer + d * (1 + per)
        i = i64(0)
        if left != 0:
            i = left % words[0]
            left = left // words[0]
        index[d] = i
        for k in static(range(per)):
            offset[k] += i * words[1 + k]


@inline
def advance(per, outer, dims, index, offset):
    """Sets an odometer to the next row."""
    d = i64(0)
    while d < dims:
        words = outer + d * (1 + per)
        i = index[d] + 1
        if i < words[0]:
            index[d] = i
            for k in static(range(per)):
                offset[k] += words[1 + k]
            break
        index[d] = 0
        for k in static(range(per)):
            offset[k] -= (i - 1) * words[1 + k]
        d += 1


@inline
def run_of(outer, dims, index, most):
    """How many rows from here on differ by the first of the outer dims alone."""
    return min(most, outer[0] - index[0]) if dims > 0 else i64(1)


@inline
def pass_by(per, outer, dims, index, offset, run):
    """Sets an odometer behind a run of rows."""
    if run > 1:
        index[0] += run - 1
        for k in static(range(per)):
            offset[k] += (run - 1) * outer[1 + k]
    advance(per, outer, dims, index, offset)


# ----------------------------------------------------------------------------------------- threads
@struct
class Work:
    bufs: ptr[raw]
    desc: ptr[i64]
    partial: raw  # where threads leave what is joined afterwards


@inline
def work_of(bufs, desc):
    """What a job is told."""
    work = local(Work)
    work.bufs = bufs
    work.desc = desc
    return work


@inline
def run_job(P, job, work, units, least):
    """A job over its units, through the pool; another thread is woken for ``least`` of them."""
    pool_run(address(job, P=P), units, least, raw(work))


# ---------------------------------------------------------------------------------------- planning
def kind_of(step: int) -> str:
    """An operand's kind by its stride along the inner dim; see the module's docstring."""
    return "c" if step == 1 else "s" if step == 0 else "g"


def kinds_of(steps: Sequence[int]) -> str:
    return "".join([kind_of(s) for s in steps])


def words_of(sizes: Sequence[int], columns: Sequence[Any]) -> list[int]:
    """Nested dims (outermost first) and each operand's strides as description words, for `seek`."""
    if len(sizes) > MAX_DIMS:
        raise Unsupported("more dims than the odometer has")
    words: list[int] = []
    for d in reversed(range(len(sizes))):
        words += [sizes[d], *[c[d] for c in columns]]
    return words


def launch(
    kernel: Any, words: Sequence[int], outs: Sequence[Any], ins: Sequence[Any], work: int,
    what: Any, fail: Any = None, sizes: Sequence[int] = (),
) -> Launch:  # fmt: skip
    """The launch of a compiled kernel; the arguments are those of `make_launch`."""
    slots = [slot_of(o) for o in outs], [slot_of(i) for i in ins]
    result = make_launch(kernel.addr, words, *slots, work, fail, what, sizes)
    return Launch(result.fresh, result.into, (result, kernel))
