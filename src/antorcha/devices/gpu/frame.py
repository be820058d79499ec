"""What all templates for GPUs share: a launch's plan, its words, and how a thread finds elements.

A kernel has one parameter, ``words: ptr[i64]``. First come the addresses of its buffers (at the
element where each operand begins) and run-time numbers, in the order of ``GridStep.operands``, then
the step's own words: sizes, strides. Buffers are the outputs, the inputs, then temporaries, then
constants.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.lazy import Array
from antorcha.core.loops import collapse
from antorcha.core.structs import struct
from antorcha.devices.complexes import part_of, type_or_pair
from antorcha.devices.emit import Unsupported
from antorcha.lang.native import bitcast, f64, i32, i64, inline, ptr, static, u32, u64
from antorcha.lang.native.grid import PARAMETER_WORDS, block, device_pointer, thread
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

THREADS = 256
"""Threads of a block, where a template has no reason for another number."""
COSTLY = 48
"""The cost of a body of much code, whose registers are many."""
MOST_BLOCKS = (1 << 31) - 1
MOST_DIMS = 12


class Planning(threading.local):
    """For which device plans are made. ``capability``: a compute capability (90) whose own
    instructions kernels may use; 0 where they may not. ``multiprocessors``: of the GPU.
    ``shared_bytes``: of the shared memory of a block, at most."""

    capability = 0
    multiprocessors = 132
    shared_bytes = 48 << 10


planning = Planning()


@struct
class GridStep:
    """A kernel over a grid: ``blocks`` of ``threads``. ``operands``: which of the plan's buffers
    and numbers it gets, by their place among outputs, inputs, temporaries and constants.
    ``shared``: bytes of dynamic shared memory. ``capability``: the only compute capability (90)
    that has the kernel's instructions; 0 where all have them."""

    kernel: Any  # a native function of one parameter, ``words: ptr[i64]``
    static: dict[str, Any]
    blocks: tuple[int, ...]
    threads: int
    operands: tuple[int, ...]
    words: tuple[int, ...] = ()
    shared: int = 0
    capability: int = 0


@struct
class GridPlan:
    """Kernels in order, and the bytes of the temporaries they share (uninitialised at first).

    ``constants`` are arrays of the host's that the kernels read: a device copies them to its memory
    once for the plan.

    ``fail(code)`` makes the exception for what kernels leave in temporary number ``status`` (one
    int64, set to 0 before the first): it is read when they are done, and 0 is success. A plan
    with it is waited for at once, or tells when it is next waited for.

    ``over``: the plan where the outputs are somebody's already, who must not find them half
    written after an error; None where it is the same.
    """

    steps: tuple[GridStep, ...]
    temporaries: tuple[int, ...] = ()
    status: int | None = None
    fail: Callable[[int], BaseException] | None = None
    over: GridPlan | None = None
    constants: tuple[Array, ...] = ()


@struct
class DynamicPlan:
    """Kernels for results whose sizes depend on the data, in two stages.

    The steps of ``first`` see the inputs, then its temporaries, and leave ``count`` numbers (int64)
    in temporary number ``sizes``. ``layouts(numbers)`` gives the outputs' layouts, which are
    allocated, and ``rest(numbers)`` the plan that fills them: its steps see the outputs, the
    inputs, the temporaries of ``first``, then its own.
    """

    first: GridPlan
    sizes: int
    count: int
    layouts: Callable[[Sequence[int]], Sequence[Layout]]
    rest: Callable[[Sequence[int]], GridPlan]


def blocks_for(count: int, each: int = THREADS) -> tuple[int, ...]:
    """A grid with a thread, or ``each`` elements of a block's, for every element."""
    blocks = -(-count // each)
    if blocks > MOST_BLOCKS:
        raise Unsupported(f"{count} elements at once")
    return (max(blocks, 1),)


def index_type(layouts: Sequence[Any], count: int) -> Ty:
    """The type in which elements are counted: i32 where all sizes and offsets fit, for a GPU's
    integers have 32 bits."""
    reach = [max(abs(o.low), abs(o.high)) for o in layouts if isinstance(o, Layout)]
    return i32 if max([count, *reach]) < 1 << 30 else i64


class GridTemplate:
    """What every kernel's code depends on: the operands' types in memory."""

    def __init__(self, outs: Sequence[Layout], ins: Sequence[Any], index: Ty = i64) -> None:
        self.types = [type_or_pair(o) for o in (*outs, *ins)]
        self.parts = [part_of(t) for t in self.types]
        self.is_number = [not isinstance(o, Layout) for o in (*outs, *ins)]
        self.nout, self.nin = len(outs), len(ins)
        self.nops = self.nout + self.nin
        self.I = index
        starts, at = [], 0
        for t, number in zip(self.types, self.is_number, strict=True):
            starts.append(at)
            at += 2 if number and part_of(t) is not None else 1
        self.starts = starts  # of each operand's word
        self.head = at  # words before the step's own

    def operands_key(self) -> str:
        """The operands' part of ``__native_key__``."""
        types = ",".join(t.name + "n" * n for t, n in zip(self.types, self.is_number, strict=True))
        return f"{self.nout}|{types}|{self.I}"

    def __native_key__(self) -> str:
        raise NotImplementedError(f"{type(self).__name__} says not what its code depends on")


# ---- in kernels
@inline
def position(P, each):
    """The number of this thread's first element, where each thread has ``each``."""
    return P.I(block()) * static(P.threads * each) + P.I(thread())


@inline
def operand_place(P, words, k):
    """A pointer to where operand k begins; None for a number."""
    if P.is_number[k]:
        return None
    return device_pointer(P.types[k], words[P.starts[k]])


@inline
def load_element(P, words, k, place, at):
    """Operand k's element at an offset from its place: a scalar, or the two parts of a complex
    number."""
    if P.is_number[k]:
        return number_of(P, words, k)
    if P.parts[k] is None:
        return place[at]
    both = ptr[P.parts[k]](place + at)
    return [both[0], both[1]]


@inline
def number_of(P, words, k):
    """A run-time number's value."""
    w = static(P.starts[k])
    if P.parts[k] is not None:
        return [bitcast(f64, words[w]), bitcast(f64, words[w + 1])]
    return bitcast(f64, words[w]) if P.types[k] is f64 else words[w]


@inline
def store_element(P, k, place, at, value):
    """Writes what an expression gave as operand k's element."""
    if P.parts[k] is None:
        place[at] = P.types[k](value)
    else:
        both = ptr[P.parts[k]](place + at)
        both[0] = P.parts[k](value[0])
        both[1] = P.parts[k](value[1])


@inline
def offsets_of(P, words, at, dims, columns, i, only=None):
    """Offsets of ``columns`` operands at element number i of a shape, whose words begin at ``at``:
    for each dim, the last first, the size and a stride for each operand. ``only``: of one of them
    (the others are 0)."""
    left = i
    unsigned = static(u32 if P.I is i32 else u64)  # whose division is the cheaper one
    found = [P.I(0) for c in static(range(columns))]
    for d in static(range(dims)):
        base = static(at + d * (1 + columns))
        if d == dims - 1:
            step = left
        else:
            size = P.I(words[base])
            before = P.I(unsigned(left) // unsigned(size))
            step = left - before * size
            left = before
        for c in static(range(columns) if only is None else (only,)):
            found[c] = found[c] + step * P.I(words[base + 1 + c])
    return found


def nested(
    shape: Sequence[int], columns: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """Dims in the order of the first column's strides, the least last, then collapsed: sizes, and
    the columns. Neighbouring elements are then neighbours where the first operand lies."""
    order = sorted(range(len(shape)), key=lambda d: -abs(columns[0][d]))
    sizes, found = collapse([shape[d] for d in order], [[c[d] for d in order] for c in columns])
    if len(sizes) > MOST_DIMS:
        raise Unsupported(f"{len(sizes)} dims")
    return list(sizes), [list(c) for c in found]


def position_columns(shape: Sequence[int], dims: Sequence[int]) -> list[list[int]]:
    """Columns whose offsets are an element's positions along some dims."""
    return [[int(d == e) for e in range(len(shape))] for d in dims]


def dim_words(sizes: Sequence[int], columns: Sequence[Sequence[int]]) -> list[int]:
    """The words of ``offsets_of``: for each dim, the last first, its size and the strides."""
    words: list[int] = []
    for d in reversed(range(len(sizes))):
        words += [sizes[d], *[column[d] for column in columns]]
    if len(words) > PARAMETER_WORDS - 32:
        raise Unsupported(f"{len(sizes)} dims of {len(columns)} operands")
    return words
