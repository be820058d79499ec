"""Fourier transforms on a GPU: one dim after another, each by a pass or a few.

A pass is a kernel of ``fourier_grid``. What fits in a block's memory takes one, which reads and
writes every element once; longer transforms take passes of about equal lengths, through
temporaries. The tables of roots are worked out in float64 from whole numbers of turns, so they are
exact to the last bit or two, whatever the length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from antorcha.core.lazy import Array
from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.core.structs import replace, struct
from antorcha.devices.emit import MOST_KEPT, Unsupported
from antorcha.devices.gpu.fourier_grid import (
    PACKED,
    RADICES,
    FourierForm,
    FourierGrid,
    fourier_grid,
    stages_of,
    unpack_grid,
)
from antorcha.devices.gpu.frame import (
    MOST_BLOCKS,
    MOST_DIMS,
    THREADS,
    GridPlan,
    GridStep,
    blocks_for,
    dim_words,
    index_type,
    nested,
    position_columns,
)
from antorcha.devices.gpu.pointwise import plan_pointwise
from antorcha.lang import expr as E
from antorcha.lang.kernels import Fourier, Pointwise
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout

EACH = 8  # elements of a thread
ROOM = {4: 4096, 8: 2048}  # numbers that a block keeps, by the bytes of a part
SIDE_BY_SIDE = {4: 4, 8: 2}  # of them fill 32 bytes, what memory moves at least
NEAR = {4: 16, 8: 8}  # and 128 bytes
BUSY = 264  # blocks that keep a GPU busy
LONGEST = 1024  # of several passes, and of transforms side by side
BACKWARDS = "to real"
PACKS = {("real", "half"): ("pairs", PACKED), ("half", "real"): (PACKED, "pairs")}
LEAST_PACKED = 8


# ------------------------------------------------------------------------------------ tables
def roots_of(turns: Array, whole: int) -> Array:
    """``exp(-2 pi i turns / whole)``, by an angle of at most an eighth of a turn."""
    a = 8 * (turns % whole)
    below = a > 4 * whole
    a = np.where(below, 8 * whole - a, a)
    left = a > 2 * whole
    a = np.where(left, 4 * whole - a, a)
    steep = a > whole
    a = np.where(steep, 2 * whole - a, a)
    angle = a * (np.pi / 4 / whole)
    c, s = np.cos(angle), np.sin(angle)
    c, s = np.where(steep, s, c), np.where(steep, c, s)
    result: Array = np.where(left, -c, c) + 1j * np.where(below, s, -s)
    return result


def stage_roots(radices: Sequence[int]) -> Array:
    """The roots of all stages, as ``fourier_grid`` reads them."""
    found = []
    for radix, before, _ in stages_of(radices)[1:]:
        turns = np.outer(np.arange(1, radix), np.arange(before))
        found.append(roots_of(turns, radix * before).ravel())
    return np.concatenate(found)


def chirp_of(n: int) -> Array:
    k = np.arange(n)
    return roots_of(k * k % (2 * n), 2 * n)


def spectrum_of(n: int, m: int) -> Array:
    """The transform of one over the chirp, over m, in the best type that there is."""
    chirp = chirp_of(n).conj()
    around = np.zeros(m, np.clongdouble)
    around[:n] = chirp
    around[m - n + 1 :] = chirp[:0:-1]
    result: Array = np.fft.fft(around) / m
    return result.astype(np.complex128)


@lru_cache(128)
def table(name: str, key: tuple[int, ...], dtype: str) -> Array:
    """A table of complex numbers; ``key`` says of what."""
    if name == "roots":
        found = stage_roots(key)
    elif name == "turns":
        found = roots_of(np.arange(key[0] + 1), 2 * key[0])
    elif name == "chirp":
        found = chirp_of(*key)
    elif name == "spectrum":
        found = spectrum_of(*key)
    else:
        whole, bits = key
        low = np.arange(min(whole, 1 << bits))
        found = roots_of(low if name == "low" else np.arange(0, whole, 1 << bits), whole)
    return found.astype(dtype)


# ------------------------------------------------------------------------------------ lengths
def radices_of(n: int) -> tuple[int, ...] | None:
    """The radices of a transform's stages; None where a prime factor is too large."""
    found = []
    twos = (n & -n).bit_length() - 1
    n >>= twos
    for radix in RADICES:
        while radix % 2 and n % radix == 0:
            found.append(radix)
            n //= radix
    if n > 1:
        return None
    while twos:  # by 8, but two times by 4 rather than by 8 and 2
        step = 2 if twos in (2, 4) else min(twos, 3)
        found.append(1 << step)
        twos -= step
    return tuple(found) or (1,)


def convolution_length(n: int) -> int:
    """The least length of a cyclic convolution in which n terms do not meet: 2 or 3 times a power
    of two."""
    power = 1 << (2 * n - 2).bit_length()
    return power // 4 * 3 if power // 4 * 3 >= 2 * n - 1 else power


def passes_of(m: int, longest: int) -> list[int]:
    """The lengths of some passes, about equal."""
    if m <= longest:
        return [m]
    primes = [p for radix in radices_of(m) or () for p in _primes_of(radix)]
    count = 2
    while True:
        lengths = [1] * count
        for p in sorted(primes, reverse=True):
            lengths.sort()
            lengths[0] *= p
        if max(lengths) <= LONGEST:
            return sorted(lengths, reverse=True)
        count += 1


def _primes_of(radix: int) -> list[int]:
    return {4: [2, 2], 8: [2, 2, 2]}.get(radix, [radix])


# ------------------------------------------------------------------------------------ planning
@struct
class BufferPlace:
    """A tensor of a plan: the number of its buffer; a temporary's is minus one and its slot's."""

    number: int
    layout: Layout


@struct
class Signals:
    """A transform along a dim, from one tensor to another."""

    source: BufferPlace
    target: BufferPlace
    dim: int
    length: int
    load: str = "complex"
    store: str = "complex"
    backwards: bool = False
    scale: float = 1.0


def plan_fourier(what: Fourier, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    (out,), (x,) = outs, ins
    if not out.numel:
        return GridPlan(())
    if not what.dims:
        return plan_pointwise(Pointwise((E.cast(E.input_(0, x.dtype), out.dtype),)), outs, ins)
    if any(o.dtype.to_real().name not in ("float32", "float64") for o in (out, x)):
        raise Unsupported(f"a transform of {x.dtype}")
    if what.kind == "real" and x.dtype.kind == "c":
        raise Unsupported("complex numbers as real ones")
    return FourierPlanner(what, out, x).plan()


class FourierPlanner:
    """The steps of a plan, its temporaries and constants."""

    def __init__(self, what: Fourier, out: Layout, x: Layout) -> None:
        self.what, self.out, self.x = what, BufferPlace(0, out), BufferPlace(1, x)
        self.dtype = (out if out.dtype.kind == "c" else x).dtype
        self.part = self.dtype.itemsize // 2
        self.steps: list[tuple[GridStep, list[int]]] = []
        self.slots: dict[int, int] = {}
        self.constants: list[Array] = []

    def plan(self) -> GridPlan:
        what, dims = self.what, self.what.dims
        real = self.out.layout if what.kind == BACKWARDS else self.x.layout
        backwards = what.kind == BACKWARDS or not what.forward
        count = math.prod([real.shape[d] for d in dims])
        scale = {"none": 1.0, "all": 1 / count, "root": 1 / math.sqrt(count)}[what.norm]
        order = list(reversed(dims))
        if what.kind == BACKWARDS:
            order = [*order[1:], order[0]]
        at, between = self.x, self.out
        for k, dim in enumerate(order):
            last = k == len(order) - 1
            load, store, to = "complex", "complex", between
            if what.kind == BACKWARDS:
                if last:
                    load, store, to = "half", "real", self.out
                else:
                    to = BufferPlace(-3, L.contiguous(self.x.layout.shape, self.dtype, real.device))
            elif what.kind == "real" and k == 0:
                load, store = "real", "half" if what.onesided else "complex"
            n = real.shape[dim]
            if load == "half" and self.x.layout.shape[dim] != n // 2 + 1:
                raise Unsupported(f"{self.x.layout.shape[dim]} numbers for {n} real ones")
            factor = scale if last else 1.0
            self.transform(Signals(at, to, dim, n, load, store, backwards, factor))
            at = to
        return self.finished()

    def finished(self) -> GridPlan:
        """The plan: temporaries and constants have their numbers now."""
        slots = sorted(self.slots)
        numbers = {-1 - slot: 2 + k for k, slot in enumerate(slots)}
        first = 2 + len(slots)

        def numbered(step: GridStep, tables: list[int]) -> GridStep:
            operands = [numbers.get(k, k) for k in step.operands] + [first + k for k in tables]
            return replace(step, operands=tuple(operands))

        return GridPlan(
            tuple([numbered(*each) for each in self.steps]),
            tuple([self.slots[s] for s in slots]), constants=tuple(self.constants),
        )  # fmt: skip

    def temporary(self, signals: Signals, m: int, slot: int) -> BufferPlace:
        """Signals of m numbers, whose dims are nested as the source's."""
        source, dim = signals.source.layout, signals.dim
        shape = [m if d == dim else n for d, n in enumerate(signals.target.layout.shape)]
        order = sorted(range(len(shape)), key=lambda d: abs(source.strides[d]))
        strides, step = [0] * len(shape), 1
        for d in order:
            strides[d] = step
            step *= shape[d]
        number = -1 - slot
        return BufferPlace(
            number, L.layout(tuple(shape), tuple(strides), self.dtype, source.device)
        )

    def transform(self, signals: Signals) -> None:
        n, ends = signals.length, (signals.load, signals.store)
        if n % 2 == 0 and n >= LEAST_PACKED and ends in PACKS:
            signals = self.packed(signals)
            n = signals.length
        flip, pairs = signals.backwards, signals.load == "pairs"
        m = n if radices_of(n) else convolution_length(n)
        plain = FourierForm((), 0, 0, 0)
        first = replace(plain, load=signals.load, flip=(flip and not pairs, False))
        last = replace(plain, store=signals.store, flip=(False, flip), scaled=signals.scale != 1.0)
        lengths = passes_of(m, self.longest(signals))
        if pairs and len(lengths) > 1:  # a pass of their own unpacks them
            between = self.temporary(signals, n, 3)
            self.passes(signals, between, lengths, first, plain)
            self.add_unpacking(signals, between, last)
        else:
            self.passes(signals, signals.target, lengths, first, last)

    def passes(
        self, signals: Signals, target: BufferPlace, lengths: Sequence[int], first: FourierForm,
        last: FourierForm,
    ) -> None:  # fmt: skip
        """A transform of some passes, or where they are longer than the signal, by Bluestein's."""
        n, m = signals.length, math.prod(lengths)
        if m == n:
            self.run(signals, signals.source, target, lengths, first, last)
            return
        first = replace(first, chirp=(True, False))
        last = replace(last, chirp=(False, True))
        if len(lengths) == 1:
            last = replace(last, product="join")
            self.run(signals, signals.source, target, lengths, first, last)
            return
        plain = FourierForm((), 0, 0, 0)
        # (the last pass writes where it reads: its results lie as its elements do)
        middle = self.temporary(signals, m, len(lengths) % 2)
        self.run(signals, signals.source, middle, lengths, first, replace(plain, product="end"))
        self.run(signals, middle, target, lengths, plain, last, len(lengths) % 2 + 1)

    def packed(self, signals: Signals) -> Signals:
        """A transform of real numbers, or to such, as one of pairs of them."""
        load, store = PACKS[signals.load, signals.store]
        m = signals.length // 2
        return replace(signals, length=m, load=load, store=store)

    def longest(self, signals: Signals) -> int:
        """The longest transform that takes one pass."""
        side_by_side = [
            _by_item(place.layout.strides, signals.dim, place.layout.shape)
            for place in (signals.source, signals.target)
        ]
        return LONGEST if any(side_by_side) else ROOM[self.part]

    def run(
        self, signals: Signals, source: BufferPlace, target: BufferPlace, lengths: Sequence[int],
        first: FourierForm, last: FourierForm, slot: int = 0,
    ) -> None:  # fmt: skip
        """The passes of a transform of ``prod(lengths)`` numbers."""
        m, before, at = math.prod(lengths), 1, source
        for k, length in enumerate(lengths):
            ends = k == len(lengths) - 1
            to = target if ends else self.temporary(signals, m, (slot + k) % 2)
            form = FourierForm(radices_of(length) or (), 0, 0, 0, placed=len(lengths) > 1)
            if k == 0:
                form = replace(form, load=first.load, flip=first.flip, chirp=first.chirp)
            else:
                form = replace(form, turned=True)
            if ends:
                form = replace(
                    form, store=last.store, flip=(form.flip[0], last.flip[1]),
                    chirp=(form.chirp[0], last.chirp[1]), product=last.product, scaled=last.scaled,
                )  # fmt: skip
            self.add_pass(signals, at, to, m, length, before, form)
            before *= length
            at = to

    def add_pass(
        self, signals: Signals, source: BufferPlace, target: BufferPlace, m: int, length: int,
        before: int, form: FourierForm,
    ) -> None:  # fmt: skip
        """A stage of a transform of m numbers, whose butterflies are of that length."""
        dim, apart, after = signals.dim, m // length, m // length // before
        x, out = source.layout, target.layout
        step_in, step_out = x.strides[dim], out.strides[dim]
        pair = step_in if form.load == "pairs" else step_out
        step_in *= 1 + (form.load == "pairs")
        step_out *= 1 + (form.store == "pairs")
        halves = form.load in ("half", PACKED)
        others = [d for d in range(x.ndim) if d != dim]
        sizes = [out.shape[d] for d in others] + [after, before]
        read = [x.strides[d] for d in others]
        read += [0, 0] if halves else [before * step_in, step_in]
        write = [out.strides[d] for d in others] + [before * length * step_out, step_out]
        numbers = [0] * len(others) + ([1, 0] if before == 1 else [0, 1])
        element_in = step_in if halves else apart * step_in
        element_out = before * step_out
        near = (_nearest(read, sizes) < abs(element_in), _nearest(write, sizes) < abs(element_out))
        columns = [write, read, numbers] if form.placed else [write, read]
        guide = read if near[0] or not near[1] else write
        order = sorted(range(len(sizes)), key=lambda d: -abs(guide[d]))
        sizes, columns = _collapsed([sizes[d] for d in order],
                                    [[c[d] for d in order] for c in columns])  # fmt: skip
        items = math.prod(sizes)
        count, threads = self.team(length, len(form.radices), items, any(near))
        form = replace(form, count=count, threads=threads, dims=len(sizes), by_item=near)
        n = signals.length
        stored = n // 2 + 1 if form.store == "half" else n
        whole = before * length
        bits = (whole.bit_length() + 1) // 2
        spacing = apart if before == 1 else before
        words = (items, element_in, element_out, _bits(signals.scale), n, stored, spacing, bits,
                 pair, *dim_words(sizes, columns))  # fmt: skip
        keys = {
            "roots": form.radices, "chirp": (n,), "spectrum": (n, m), "high": (whole, bits),
            "low": (whole, bits), "turns": (n,),
        }  # fmt: skip
        index = index_type((x, out), max(items * length, m))
        self.add_step(fourier_grid, source, target, form, index, -(-items // count), words, keys)

    def add_unpacking(self, signals: Signals, source: BufferPlace, last: FourierForm) -> None:
        """The transform of real numbers, of that of their pairs."""
        dim, n = signals.dim, signals.length
        x, out = source.layout, signals.target.layout
        read = [0 if d == dim else s for d, s in enumerate(x.strides)]
        sizes, columns = nested(out.shape, [out.strides, read, *position_columns(out.shape, [dim])])
        form = replace(last, threads=THREADS, dims=len(sizes), placed=True)
        items = math.prod(out.shape)
        words = (items, x.strides[dim], 0, _bits(signals.scale), n, 0, 0, 0, 0,
                 *dim_words(sizes, columns))  # fmt: skip
        index = index_type((x, out), items)
        (blocks,) = blocks_for(items)
        self.add_step(
            unpack_grid, source, signals.target, form, index, blocks, words, {"turns": (n,)}
        )

    def add_step(
        self, kernel: Any, source: BufferPlace, target: BufferPlace,
        form: FourierForm, index: Ty, blocks: int,
        words: tuple[int, ...], keys: dict[str, tuple[int, ...]],
    ) -> None:  # fmt: skip
        if blocks > MOST_BLOCKS:
            raise Unsupported(f"{blocks} blocks")
        x, out = source.layout, target.layout
        template = kept(
            _templates, (form, x.dtype, out.dtype, index),
            lambda _: FourierGrid(form, out, x, index), MOST_KEPT,
        )  # fmt: skip
        for place in (source, target):
            if place.number < 0:
                slot = -1 - place.number
                self.slots[slot] = max(self.slots.get(slot, 0), place.layout.nbytes)
        tables = [self.constant(table(t, keys[t], self.dtype.name)) for t in template.tables]
        operands = (target.number, source.number)
        step = GridStep(kernel, {"P": template}, (blocks,), form.threads, operands, words)
        self.steps.append((step, tables))

    def team(self, length: int, stages: int, items: int, near: bool) -> tuple[int, int]:
        """Transforms of a block, and its threads."""
        busy = items * length > ROOM[self.part] * BUSY
        if stages == 1:
            count = 128 if busy else 32
            return count, count
        room = ROOM[self.part] // 2 if busy else 256
        count = 1 << (max(room // length, 1).bit_length() - 1)
        if near:
            most = 1 << (ROOM[self.part] // length).bit_length() - 1
            count = min(max(count, NEAR[self.part]), most)
        count = min(count, 1 << (items - 1).bit_length())
        return count, min(max(-(-count * length // (32 * EACH)), 1), 16) * 32

    def constant(self, array: Array) -> int:
        for k, other in enumerate(self.constants):
            if other is array:
                return k
        self.constants.append(array)
        return len(self.constants) - 1


def _bits(number: float) -> int:
    """A float64 as a word."""
    return int(np.array([number]).view(np.int64)[0])


def _nearest(strides: Sequence[int], sizes: Sequence[int]) -> int:
    """The least step between transforms."""
    steps = [abs(s) for s, n in zip(strides, sizes, strict=True) if n > 1 and s]
    return min(steps, default=1 << 62)


def _by_item(strides: Sequence[int], dim: int, shape: Sequence[int]) -> bool:
    """Do transforms lie side by side, rather than the elements of one?"""
    others = [(strides[d], shape[d]) for d in range(len(shape)) if d != dim]
    return _nearest([s for s, _ in others], [n for _, n in others]) < abs(strides[dim])


def _collapsed(
    shape: Sequence[int], columns: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    sizes, found = collapse(shape, columns)
    if len(sizes) > MOST_DIMS:
        raise Unsupported(f"{len(sizes)} dims")
    return list(sizes), [list(c) for c in found]


_templates: dict[Any, FourierGrid] = {}
