"""The kernel of Fourier transforms on a GPU: a block does some transforms, its threads together.

A transform of length m = R1 * R2 * .. is Stockham's: stage s has butterflies of radix Rs in
registers, and what they give goes through shared memory to the next stage. With S the product of
the radices before, butterfly j takes elements ``j + r * m / R``, turns them by the roots
``exp(-2 pi i r (j % S) / (S R))``, and gives elements ``j // S * S * R + j % S + r * S``. The
result is in order. The first stage reads the operand, and the last writes the result, so that
neighbouring threads have neighbouring addresses there: of a transform, or of transforms side by
side.

The same law makes longer transforms of several passes through the device's memory: a pass is a
stage whose butterflies are the transforms of this kernel. They are then *turned* as they are read.

Lengths with other prime factors go by Bluestein's way: sums over x[e] w[e] / w[k - e], with the
*chirp* w[e] = exp(-pi i e^2 / n), are a cyclic convolution of any greater length: a transform, a
product with the *spectrum* of 1 / w, and a transform back. A transform back is one forwards of
numbers whose parts are swapped, swapped again.

Of an even number of real ones, neighbours are the two parts of half as many complex numbers z. With
Z its transform over m, and r = exp(-pi i k / m), the real ones' is, for k = 0 .. m,
``(Z[k] + conj Z[m - k]) / 2 + r (Z[k] - conj Z[m - k]) / 2i``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from antorcha.core.structs import struct
from antorcha.devices.butterfly import (
    butterfly,
    conjugate,
    minus,
    plus,
    swapped,
    times,
    unpacked,
)
from antorcha.devices.gpu.frame import GridTemplate, offsets_of, operand_place
from antorcha.lang.native import (
    bitcast,
    f32,
    f64,
    i32,
    i64,
    inline,
    insert,
    native,
    ptr,
    select,
    static,
    vec,
    void,
)
from antorcha.lang.native.grid import (
    barrier,
    block,
    device_pointer,
    load_whole,
    shared,
    store_whole,
    thread,
)
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

RADICES = (13, 11, 8, 7, 5, 4, 3, 2)
ITEMS, STEP_IN, STEP_OUT, SCALE, LENGTH, STORED, SPACING, LOW_BITS, PAIR, DIMS = range(10)
"""The step's words: transforms; strides of their elements in both operands; the factor of all
results; the signal's length; how many results are stored; by how much the numbers of a pass's
elements differ in the whole signal; the bits of the low table of roots; the stride between the real
numbers of a pair; the transforms' dims."""
PACKED = "packed half"


@struct
class FourierForm:
    """What a pass does. ``load`` and ``store``: "complex", "real", or "half" of a transform of real
    numbers; "pairs" of real numbers, "packed half" of the transform of what was read so, or will be
    stored so. ``by_item``: which of reading and writing goes along
    transforms side by side. ``flip``: the parts are swapped as they are read, as they are stored.
    ``chirp``: multiplied by the chirp there. ``product``: with the spectrum, "join" between two
    transforms, "end" after the only one. ``placed``: a pass of several."""

    radices: tuple[int, ...]
    count: int  # transforms of a block
    threads: int
    dims: int
    load: str = "complex"
    store: str = "complex"
    by_item: tuple[bool, bool] = (False, False)
    flip: tuple[bool, bool] = (False, False)
    chirp: tuple[bool, bool] = (False, False)
    product: str = ""
    placed: bool = False
    turned: bool = False
    scaled: bool = False


class FourierGrid(GridTemplate):
    """What a pass is compiled for."""

    def __init__(self, form: FourierForm, out: Layout, x: Layout, index: Ty) -> None:
        super().__init__((out,), (x,), index)
        self.form, self.threads, self.dims = form, form.threads, form.dims
        self.m = math.prod(form.radices)
        self.stages = stages_of(form.radices)
        if form.product == "join":
            self.stages = self.stages * 2
        self.T = f64 if f64 in (self.parts[0] or self.types[0], self.parts[1]) else f32
        self.columns = 2 + form.placed
        # of shared memory: an element more in so many, that strides meet all banks
        self.gap = 5 if self.T is f32 else 4
        self.pitch = (self.m + (self.m >> self.gap)) | 1
        self.tables = tables_of(form)
        self.own = self.head + len(self.tables)

    def __native_key__(self) -> str:
        return f"{self.operands_key()}|{self.form}"


def tables_of(form: FourierForm) -> list[str]:
    """The constants that a pass reads, in the order of its operands."""
    wanted = {
        "roots": len(form.radices) > 1, "chirp": any(form.chirp), "spectrum": bool(form.product),
        "high": form.turned, "low": form.turned, "turns": PACKED in (form.load, form.store),
    }  # fmt: skip
    return [name for name, used in wanted.items() if used]


def stages_of(radices: Sequence[int]) -> list[tuple[int, int, int]]:
    """The radix of each stage, the product of those before it, and where its roots begin."""
    found, before, at = [], 1, 0
    for radix in radices:
        found.append((radix, before, at))
        at += (radix - 1) * before if before > 1 else 0
        before *= radix
    return found


# ------------------------------------------------------------------------------------ words
@inline
def from_table(P, words, name, at):
    """A complex number of a table."""
    table = device_pointer(P.T, words[static(P.head + P.tables.index(name))])
    both = load_whole(table + at * 2, 2)
    return [both[0], both[1]]


@inline
def own_word(P, words, which):
    return P.I(words[static(P.own + which)])


# ------------------------------------------------------------------------------------ operands
@inline
def load_parts(P, x, at):
    """The operand's number at an offset."""
    if P.parts[1] is None:
        return [P.T(x[at]), P.T(0)]
    both = ptr[P.T](x + at)
    return [both[0], both[1]]


@inline
def load_half(P, words, x, begin, index):
    """Number ``index`` of a transform of real numbers, of which the first half is there."""
    n = own_word(P, words, LENGTH)
    mirrored = index * 2 > n
    place = select(mirrored, n - index, index)
    found = load_parts(P, x, begin + place * own_word(P, words, STEP_IN))
    part = select(mirrored, -found[1], found[1])
    return [found[0], select((place == 0) | (place * 2 == n), P.T(0), part)]


@inline
def load_packed(P, words, x, begin, index):
    """Number ``index`` of the transform of pairs, of the half of that of the real numbers."""
    m, step = own_word(P, words, LENGTH), own_word(P, words, STEP_IN)
    one = load_parts(P, x, begin + index * step)
    other = load_parts(P, x, begin + (m - index) * step)
    # (the first and the last are real)
    near = [one[0], select(index == 0, P.T(0), one[1])]
    far = [other[0], select(index == 0, P.T(0), -other[1])]
    odd = times(conjugate(from_table(P, words, "turns", index)), minus(near, far))
    even = plus(near, far)
    return [even[0] - odd[1], even[1] + odd[0]]


@inline
def unpacked_number(P, words, near, far, k):
    """Number k of the transform of real numbers, of numbers k and m - k of that of their pairs."""
    twice, _ = unpacked(near, conjugate(far), from_table(P, words, "turns", k))
    half = P.T(0.5)
    if P.form.scaled:
        half = half * P.T(bitcast(f64, words[static(P.own + SCALE)]))
    found = [twice[0] * half, twice[1] * half]
    return conjugate(found) if P.form.flip[1] else found


@inline
def load_number(P, words, x, begin, origin, e):
    """Element e of a transform, ready to be transformed forwards."""
    e = P.I(e)
    index = origin + e * own_word(P, words, SPACING) if P.form.placed else e
    found = [P.T(0), P.T(0)]
    inside = index < own_word(P, words, LENGTH) if P.form.chirp[0] else True
    if inside:
        if P.form.load == "half":
            given = load_half(P, words, x, begin, index)
        elif P.form.load == PACKED:
            given = load_packed(P, words, x, begin, index)
        elif P.form.load == "pairs":
            at = begin + e * own_word(P, words, STEP_IN)
            given = [x[at], x[at + own_word(P, words, PAIR)]]
        else:
            given = load_parts(P, x, begin + e * own_word(P, words, STEP_IN))
        if P.form.flip[0]:
            given = swapped(given)
        if P.form.chirp[0]:
            given = times(given, from_table(P, words, "chirp", index))
        found[0] = given[0]
        found[1] = given[1]
    if P.form.turned:
        turn = e * origin
        bits = own_word(P, words, LOW_BITS)
        high = turn >> bits
        low = from_table(P, words, "low", turn - (high << bits))
        return times(found, times(from_table(P, words, "high", high), low))
    return found


@inline
def store_number(P, words, out, begin, origin, k, value, wide):
    """Writes result k of a transform."""
    k = P.I(k)
    index = origin + k * own_word(P, words, SPACING) if P.form.placed else k
    at = begin + k * own_word(P, words, STEP_OUT)
    bounded = static(P.form.chirp[1] or P.form.store == "half")
    inside = index < own_word(P, words, STORED) if bounded else True
    if inside:
        if P.form.product == "end":
            value = swapped(times(value, from_table(P, words, "spectrum", index)))
        if P.form.chirp[1]:
            value = times(swapped(value), from_table(P, words, "chirp", index))
        if P.form.flip[1]:
            value = swapped(value)
        if P.form.scaled:
            factor = P.T(bitcast(f64, words[static(P.own + SCALE)]))
            value = [value[0] * factor, value[1] * factor]
        if P.form.store == "half":  # of real numbers: these are real
            own = (index == 0) | (index * 2 == own_word(P, words, LENGTH))
            value = [value[0], select(own, P.T(0), value[1])]
        if P.form.store == "real":
            out[at] = value[0]
        elif P.form.store == "pairs":
            out[at] = value[0]
            out[at + own_word(P, words, PAIR)] = value[1]
        else:
            store_parts(P, out, at, value, wide)


@inline
def store_parts(P, out, at, value, wide):
    both = ptr[P.T](out + at)
    if wide:
        store_whole(both, insert(insert(vec[P.T, 2](P.T(0)), 0, value[0]), 1, value[1]))
    else:
        both[0] = value[0]
        both[1] = value[1]


@inline
def keep_number(P, words, planes, c, k, value, last):
    """Leaves a result for the next stage, or, after the last one, to be unpacked."""
    if last and P.form.chirp[1]:
        value = swapped(value)
        if P.I(k) < own_word(P, words, STORED):
            turned = times(value, from_table(P, words, "chirp", P.I(k)))
            planes[0][spread(P, c, k)] = turned[0]
            planes[1][spread(P, c, k)] = turned[1]
    else:
        planes[0][spread(P, c, k)] = value[0]
        planes[1][spread(P, c, k)] = value[1]


# ------------------------------------------------------------------------------------ stages
@inline
def spread(P, c, e):
    """Where element e of transform c is in shared memory."""
    return c * static(P.pitch) + e + (e >> static(P.gap))


@inline
def butterfly_place(P, number, radix, by_item):
    """Which transform of the block a butterfly belongs to, its number there, and whether it is."""
    each = static(P.m // radix)
    full = static(P.form.count * each % P.threads == 0)
    inside = True if full else number < static(P.form.count * each)
    if by_item:
        return number % static(P.form.count), number // static(P.form.count), inside
    return number // static(each), number % static(each), inside


@inline
def turned_inputs(P, words, values, j, before, at):
    """A butterfly's inputs, turned by the roots of its stage."""
    low = j % static(before)
    found = [values[0]]
    for r in static(range(1, len(values))):
        root = from_table(P, words, "roots", low + static(at + (r - 1) * before))
        found = [*found, times(values[r], root)]
    return found


@inline
def item_origin(P, begins, c):
    return begins[2][c] if P.form.placed else P.I(0)


@inline
def stage_inputs(P, words, x, begins, planes, s, numbers, by_item):
    """What this thread's butterflies of stage s are given."""
    radix = static(P.stages[s][0])
    values = [[[P.T(0), P.T(0)] for r in static(range(radix))] for u in static(numbers)]
    for u in static(range(len(numbers))):
        c, j, inside = butterfly_place(P, numbers[u], radix, by_item)
        if inside:
            for r in static(range(radix)):
                e = j + static(r * (P.m // radix))
                if s == 0:
                    value = load_number(P, words, x, begins[1][c], item_origin(P, begins, c), e)
                else:
                    value = [planes[k][spread(P, c, e)] for k in static(range(2))]
                values[u][r][0] = value[0]
                values[u][r][1] = value[1]
    return values


@inline
def stage_results(P, words, s, values, j):
    """A butterfly's results, and the number of the first in the transform."""
    radix, before, at = static(P.stages[s])
    given = turned_inputs(P, words, values, j, before, at) if before > 1 else values
    first = j // static(before) * static(before * radix) + j % static(before)
    results = butterfly(P.T, given)
    if P.form.product == "join" and s == len(P.stages) // 2 - 1:
        for r in static(range(radix)):
            by = from_table(P, words, "spectrum", first + static(r * before))
            results[r] = swapped(times(results[r], by))
    return results, first


@native
def fourier_grid(words: ptr[i64], *, P) -> void:
    """Words: the tables' addresses; what ``ITEMS`` .. ``DIMS`` name; the dims of the transforms:
    sizes, strides of output and input, and the number in the whole of each one's first element."""
    count, stages = static((P.form.count, len(P.stages)))
    unpacks = static(P.form.store == PACKED)
    t = i32(thread())
    first = P.I(block()) * count
    items = own_word(P, words, ITEMS)
    out, x = operand_place(P, words, 0), operand_place(P, words, 1)
    wide = words[0] & static(2 * P.T.size - 1) == 0
    begins = [shared(P.I, count) for k in static(range(P.columns))]
    room = static(count * P.pitch)
    planes = [shared(P.T, room) for k in static(range(2 if stages > 1 or unpacks else 0))]
    if t < count:
        item = min(first + P.I(t), items - 1)
        found = offsets_of(P, words, static(P.own + DIMS), P.dims, P.columns, item)
        for k in static(range(P.columns)):
            begins[k][t] = found[k]
    barrier()
    for s in static(range(stages)):
        radix, before, _at = static(P.stages[s])
        last = static(s == stages - 1)
        stores = static(last and not unpacks)
        by_item = static(P.form.by_item[0] if s == 0 else P.form.by_item[1] and stores)
        some = static(-(-count * (P.m // radix) // P.threads))
        numbers = [t + static(u * P.threads) for u in static(range(some))]
        values = stage_inputs(P, words, x, begins, planes, s, numbers, by_item)
        if s > 0 and not stores:
            barrier()
        for u in static(range(some)):
            c, j, inside = butterfly_place(P, numbers[u], radix, by_item)
            if inside:
                results, k0 = stage_results(P, words, s, values[u], j)
                for r in static(range(radix)):
                    k = k0 + static(r * before)
                    if not stores:
                        keep_number(P, words, planes, c, k, results[r], last)
                    elif first + P.I(c) < items:
                        origin = item_origin(P, begins, c)
                        store_number(P, words, out, begins[0][c], origin, k, results[r], wide)
        if not stores:
            barrier()
    if unpacks:
        m = i32(own_word(P, words, LENGTH)) if P.form.product else i32(P.m)
        q = t + 0
        while q < (m + 1) * count:
            c = q % count if P.form.by_item[1] else q // (m + 1)
            k = q // count if P.form.by_item[1] else q - c * (m + 1)
            near, far = select(k == m, 0, k), select(k == 0, 0, m - k)
            if first + P.I(c) < items:
                both = [
                    [planes[i][spread(P, c, e)] for i in static(range(2))]
                    for e in static((near, far))
                ]
                value = unpacked_number(P, words, both[0], both[1], P.I(k))
                at = begins[0][c] + P.I(k) * own_word(P, words, STEP_OUT)
                store_parts(P, out, at, value, wide)
            q += P.threads


@native
def unpack_grid(words: ptr[i64], *, P) -> void:
    """A number of the transform of real numbers, of that of their pairs in a temporary. Words as of
    ``fourier_grid``; the dims are those of the results, with columns of output, input, number."""
    i = P.I(block()) * static(P.threads) + P.I(thread())
    if i < own_word(P, words, ITEMS):
        out, x = operand_place(P, words, 0), operand_place(P, words, 1)
        at = offsets_of(P, words, static(P.own + DIMS), P.dims, 3, i)
        m, step, k = own_word(P, words, LENGTH), own_word(P, words, STEP_IN), at[2]
        near = load_parts(P, x, at[1] + select(k == m, P.I(0), k) * step)
        far = load_parts(P, x, at[1] + select(k == 0, P.I(0), m - k) * step)
        wide = words[0] & static(2 * P.T.size - 1) == 0
        store_parts(P, out, at[0], unpacked_number(P, words, near, far, k), wide)
