"""Random draws on a GPU: numbers by counting, as ``runtime.philox`` lays them out.

A thread makes one block of a lane and of it four numbers (two of 64 bits), which lie LANES apart,
so that neighbouring threads write neighbouring elements. Elements are numbered as they lie in
memory, from the largest stride to the smallest. No thread knows of another: any grid, any GPU and
any order give the same numbers.

What equals PyTorch's CUDA numbers, after the same seed and with the same offset, by its sources
(ATen/native/cuda/DistributionTemplates.h) and cuRAND's, for no GPU was asked yet: the bits drawn,
the lane and the place of each number, and the offset afterwards, on a GPU with 132 multiprocessors
of 2048 threads (H100) at all sizes, on others while there are no more elements than its grid has
threads (16 ... 270 thousand). So uniform numbers, whole numbers and coins (a chance for all) are
equal bit for bit. Normal, exponential, Cauchy and log-normal numbers are made by the same formulas,
but PyTorch takes the GPU's fast approximations of log, sin, cos and tan, and these are rounded
well: they agree to about six digits in float32. Two things are mended: a coin of chance 1 is always
1, and a geometric number never 0. PyTorch numbers the elements otherwise where chances are a
tensor, permutes by another sort, and searches another way where it chooses with replacement. Gamma,
Poisson and binomial numbers (``draw_rejection``) are other ones than PyTorch's.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha.core import dtypes
from antorcha.core.lazy import lazy
from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.devices.emit import MOST_KEPT, Unsupported
from antorcha.devices.gpu.frame import (
    MOST_DIMS,
    THREADS,
    GridPlan,
    GridStep,
    GridTemplate,
    blocks_for,
    dim_words,
    index_type,
    load_element,
    number_of,
    offsets_of,
    operand_place,
)
from antorcha.devices.math.base import exact_product
from antorcha.devices.math.exponential import exp
from antorcha.devices.math.logarithm import log_of_parts, split_normal
from antorcha.devices.math.trigonometric import (
    HALF_PI,
    HALF_PI_LOW,
    reduced_near,
    sine_of,
)
from antorcha.lang.kernels import Draw
from antorcha.lang.native import (
    bitcast,
    ceil,
    f32,
    f64,
    fma,
    i32,
    i64,
    inline,
    maximum,
    native,
    ptr,
    roundeven,
    select,
    sqrt,
    static,
    u32,
    u64,
    void,
)
from antorcha.lang.native.grid import block, thread
from antorcha.runtime.integer_bounds import bounds_of
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.philox import (
    KEY_STEPS,
    LANES,
    MULTIPLIERS,
    REJECTING,
    ROUNDS,
    numbers_of_block,
)

rejection = lazy("antorcha.devices.gpu.draw_rejection")

LANE_BLOCKS = LANES // THREADS
KNOWN = ("uniform", "normal", "log_normal", "exponential", "cauchy", "geometric", "bernoulli",
         "random")  # fmt: skip
NORMAL = ("normal", "log_normal")
PI_32, TURN_32 = 3.14159274101257324, 6.2831854820251465 * 2.0**-32
EPSILON = {f32: 2.0**-23, f64: 2.0**-52}


class DrawGrid(GridTemplate):
    """What a draw's kernel is compiled for. ``each``: numbers of a block; ``dims``: of the elements
    in their order in memory, 0 where they lie in one piece; ``given``: which parameters are
    tensors."""

    def __init__(
        self, out: Layout, ins: Sequence[Any], index: Any, distribution: str, each: int, dims: int,
        given: tuple[bool, ...],
    ) -> None:  # fmt: skip
        super().__init__((out,), ins, index)
        self.distribution, self.each, self.dims, self.given = distribution, each, dims, given
        self.at = [sum(given[:p]) for p in range(len(given))]  # a parameter among the tensors
        self.kind = f64 if out.dtype is dtypes.float64 else f32
        self.half = out.dtype in (dtypes.float16, dtypes.bfloat16)
        self.threads = THREADS

    def __native_key__(self) -> str:
        given = "".join(["ny"[g] for g in self.given])
        return f"{self.distribution}|{self.each}|{self.operands_key()}|{self.dims}|{given}"


# ---- bits
@inline
def block_of(counter, key):
    """The four words of a counter's block."""
    c, k = counter, key
    for _r in static(range(ROUNDS)):
        first = u64(c[0]) * MULTIPLIERS[0]
        second = u64(c[2]) * MULTIPLIERS[1]
        c = [u32(second >> 32) ^ c[1] ^ k[0], u32(second), u32(first >> 32) ^ c[3] ^ k[1],
             u32(first)]  # fmt: skip
        k = [k[0] + u32(KEY_STEPS[0]), k[1] + u32(KEY_STEPS[1])]
    return c


@inline
def seed_and_start(P, words):
    """The seed, and the number of the first block after the offset."""
    offset = u64(number_of(P, words, 2))
    if P.is_number[1]:
        seed = u64(number_of(P, words, 1))
    else:
        state = operand_place(P, words, 1)
        seed = u64(state[0])
        offset += u64(state[1])
    return seed, offset >> 2


@inline
def block_from(P, words, lane, number, tries):
    """A lane's block so many after the offset, and of its tries the one of that number."""
    seed, first = seed_and_start(P, words)
    start = first + u64(number)
    counter = [u32(start), u32(start >> 32), u32(lane), u32(tries)]
    return block_of(counter, [u32(seed), u32(seed >> 32)])


@inline
def long_word(bits, u):
    """The u-th 64 bits of a block, the high half first."""
    return u64(bits[2 * u]) << 32 | u64(bits[2 * u + 1])


@inline
def crossed(low, high):
    """53 bits of two words, as cuRAND's double has them."""
    return f64(i64(u64(low) ^ (u64(high) << 21)))


# ---- numbers
@inline
def unit(P, bits, u):
    """The u-th number of a block in (0, 1]."""
    if P.kind is f64:
        return fma(crossed(bits[2 * u], bits[2 * u + 1]), f64(2.0**-53), f64(2.0**-54))
    return fma(f32(bits[u]), f32(2.0**-32), f32(2.0**-33))


@inline
def log_of_unit(x):
    """log(x) of a normal number above 0."""
    k, m = split_normal(x)
    return log_of_parts(k, m)


@inline
def turned(P, word, other):
    """An angle of all as likely, as what ``sine_of`` takes."""
    if P.kind is f64:
        half_turns = fma(crossed(word, other), f64(2.0**-52), f64(2.0**-53))
        j = roundeven(half_turns * 2.0)
        quarter = fma(half_turns, f64(2.0), -j)
        r, r_low = exact_product(quarter, f64(HALF_PI))
        return i64(j), r, fma(quarter, f64(HALF_PI_LOW), r_low)
    return reduced_near(fma(f32(word), f32(TURN_32), f32(TURN_32 / 2)))


@inline
def normal_pair(P, bits, pair):
    """Two normal numbers, by G. Box and M. Muller's method, sine first."""
    if P.kind is f64:
        radius = sqrt(-2.0 * log_of_unit(unit(P, bits, 0)))
        j, r, r_low = turned(P, bits[2], bits[3])
    else:
        radius = sqrt(f32(-2.0) * log_of_unit(unit(P, bits, 2 * pair)))
        j, r, r_low = turned(P, bits[2 * pair + 1], None)
    return [radius * sine_of(j, r, r_low), radius * sine_of(j + 1, r, r_low)]


@inline
def raw_numbers(P, bits):
    """The numbers of a block before its parameters: units, normal numbers, or whole ones."""
    if P.distribution in NORMAL:
        if P.kind is f64:
            return normal_pair(P, bits, 0)
        return normal_pair(P, bits, 0) + normal_pair(P, bits, 1)
    if P.distribution == "random":
        if P.each == 2:
            return [long_word(bits, u) for u in static(range(2))]
        return [bits[u] for u in static(range(4))]
    return [unit(P, bits, u) for u in static(range(P.each))]


@inline
def exponential(P, u, rate):
    """Where log(u) is 0 or nearly, half an epsilon takes its place: no number is 0."""
    tiny = static(EPSILON[P.kind] / 2)
    y = select(u >= P.kind(1.0 - tiny), P.kind(-tiny), log_of_unit(u))
    return P.kind(-1.0) / rate * y


@inline
def cauchy(P, u, median, sigma):
    """The ends of (0, 1] are as far away as an epsilon."""
    near = static(EPSILON[P.kind])
    u = min(max(u, P.kind(near)), P.kind(1.0 - near))
    pi = static(2.0 * HALF_PI if P.kind is f64 else PI_32)
    j, r, r_low = reduced_near(P.kind(pi) * (u - P.kind(0.5)))
    return median + sigma * (sine_of(j, r, r_low) / sine_of(j + 1, r, r_low))


@inline
def whole(P, x, base, width):
    """base + x % width, where a width of 0 is that of all of x."""
    T = P.types[0]
    if P.each == 4:
        w = u32(width)
        value = u64(select(w == 0, x, x % select(w == 0, u32(1), w)))
    else:
        value = select(width == 0, x, x % select(width == 0, u64(1), width))
    number = i64(value) + base
    return T(f32(number)) if P.half else T(number)


@inline
def finished(P, x, numbers):
    """A number of the distribution, of the output's type."""
    T = P.types[0]
    name = static(P.distribution)
    if name == "random":
        return whole(P, x, bitcast(i64, numbers[0]), bitcast(u64, numbers[1]))
    if name == "bernoulli":
        return T(x <= P.kind(numbers[0]))
    n = [P.kind(number) for number in numbers]
    if name == "uniform":
        low, end = T(numbers[0]), T(numbers[2])
        y = T(fma(x, n[1], n[0]))
        return select(y == end, low, y)
    if name == "normal":
        if P.given[0] or P.given[1]:  # (each step rounds to T, as if they were ops)
            return T(x) * T(numbers[1]) + T(numbers[0])
        return T(fma(x, n[1], n[0]))
    if name == "log_normal":
        return T(exp(fma(x, n[1], n[0])))
    if name == "exponential":
        return T(exponential(P, x, n[0]))
    if name == "cauchy":
        return T(cauchy(P, x, n[0], n[1]))
    return T(maximum(ceil(log_of_unit(x) / n[0]), P.kind(1.0)))  # geometric


@inline
def parameters(P, words, own, places, at):
    """A draw's parameters at an element: words of the launch, or elements of tensors."""
    return [
        load_element(P, words, static(3 + P.at[p]), places[P.at[p]], at[1 + P.at[p]])
        if P.given[p] else bitcast(f64, words[static(own + p)])
        for p in static(range(len(P.given)))
    ]  # fmt: skip


@native
def draw_grid(words: ptr[i64], *, P) -> void:
    """Words: the number of elements, the distribution's numbers; where the elements do not lie in
    one piece, each dim's size and strides, in the order of memory."""
    own = static(P.head + 1)
    columns = static(1 + P.nin - 2)
    n = P.I(words[P.head])
    turn = P.I(block()) // LANE_BLOCKS
    lane = (P.I(block()) - turn * LANE_BLOCKS) * THREADS + P.I(thread())
    out = operand_place(P, words, 0)
    places = [operand_place(P, words, static(3 + k)) for k in static(range(columns - 1))]
    first = turn * static(LANES * P.each) + lane
    if first < n:
        numbers = raw_numbers(P, block_from(P, words, lane, turn, i32(0)))
        for u in static(range(P.each)):
            i = first + static(u * LANES)
            if i < n:
                if P.dims:
                    dims_at = static(own + len(P.given))
                    at = offsets_of(P, words, dims_at, P.dims, columns, i)
                else:
                    at = [i for k in static(range(columns))]
                found = parameters(P, words, own, places, at)
                out[at[0]] = finished(P, numbers[u], found)


# ------------------------------------------------------------------------------------ planning
def plan_draw(what: Draw, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    out, tensors = _in_parts(outs[0]), ins[2:]
    rejects = what.distribution in REJECTING
    if what.distribution not in KNOWN and not rejects:
        raise Unsupported(what.distribution)
    numbers, given = _numbers(what, out)
    each = numbers_of_block(what, out.dtype.name)
    count = out.numel
    if not count:
        return GridPlan(())
    if tensors and out is not outs[0]:
        raise Unsupported("complex numbers with parameters of their own")
    order = sorted(range(out.ndim), key=lambda d: (-out.strides[d], d))
    operands = (out, *tensors)
    sizes, columns = collapse(
        [out.shape[d] for d in order], [[o.strides[d] for d in order] for o in operands]
    )
    together = len(sizes) <= 1 and all([list(c) in ([1], []) for c in columns])
    dims = 0 if together else len(sizes)
    if dims > MOST_DIMS:
        raise Unsupported(f"{dims} dims")
    index = index_type(operands, count + LANES * each)
    types = tuple([o.dtype for o in operands])
    key = what.distribution, types, index, each, dims, given, type(ins[0]) is Layout
    template = kept(
        _templates, key,
        lambda _: DrawGrid(out, ins, index, what.distribution, each, dims, given), MOST_KEPT,
    )  # fmt: skip
    rounds = -(-count // (LANES * each))
    blocks = (rounds * LANE_BLOCKS,) if count > LANES else blocks_for(count)
    words = (count, *numbers, *(dim_words(sizes, columns) if dims else ()))
    operands_at = tuple(range(1 + len(ins)))
    kernel = rejection.rejection_grid if rejects else draw_grid
    return GridPlan((GridStep(kernel, {"P": template}, blocks, THREADS, operands_at, words),))


_templates: dict[Any, DrawGrid] = {}


def _in_parts(layout: Layout) -> Layout:
    """A complex output as its real parts."""
    if layout.dtype.kind != "c":
        return layout
    strides = tuple([2 * s for s in layout.strides])
    return layout.like((*layout.shape, 2), (*strides, 1), layout.dtype.to_real())


def _numbers(what: Draw, out: Layout) -> tuple[list[int], tuple[bool, ...]]:
    """The parameters as a kernel's words, and which of them are tensors."""
    name, given = what.distribution, what.parameters
    if name == "random":
        first, width, _ = bounds_of(out.dtype.name, *given)
        limit = 1 << (64 if numbers_of_block(what, out.dtype.name) == 2 else 32)
        return [first, _word(width % limit)], (False, False)
    tensors = tuple([p is None for p in given])
    if any(tensors) and name not in ("normal", "bernoulli", *REJECTING):
        raise Unsupported(f"{name} with parameters of each element's own")
    if name == "uniform":
        kind = out.dtype.np.type
        with np.errstate(over="ignore"):
            low, high = kind(given[0]), kind(given[1])
            given = float(low), float(kind(high - low)), float(high)
        tensors = (False,) * 3
    if name == "geometric":
        kind = np.float64 if out.dtype is dtypes.float64 else np.float32
        given = (float(np.log1p(-kind(given[0]))),)
    return [_word_of_float(0.0 if p is None else float(p)) for p in given], tensors


def _word(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _word_of_float(number: float) -> int:
    word: int = packing.unpack("<q", packing.pack("<d", number))[0]
    return word
