"""Pointwise descriptions on a GPU: a thread computes some neighbouring elements of every output.

Dims are put in the order of the output's strides and collapsed. Where operands lie in one piece
along the last dim, or repeat one element, a thread has the elements of a *vector*, which wide loads
and stores move if the addresses allow it, and finds its place once for all of them. Else a thread
has ``EACH`` elements, a block's length apart, so that a warp's accesses are together. All is loaded
before anything is stored: outputs may be inputs, and loads should be on their way at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.core.memo import kept
from antorcha.devices.complexes import in_memory
from antorcha.devices.emit import MOST_KEPT, Body, body_of, evaluate
from antorcha.devices.gpu.frame import (
    COSTLY,
    THREADS,
    GridPlan,
    GridStep,
    GridTemplate,
    blocks_for,
    dim_words,
    index_type,
    nested,
    number_of,
    offsets_of,
    operand_place,
)
from antorcha.lang import expr as E
from antorcha.lang.kernels import Pointwise
from antorcha.lang.native import bool_, i64, inline, insert, native, ptr, static, u8, vec, void
from antorcha.lang.native.grid import block, load_whole, resident_blocks, store_whole, thread
from antorcha.runtime.memory.layout import Layout

EACH = 4  # elements of a thread that has no vector: enough loads on their way at once
WIDEST = 16  # bytes that one access moves
LIGHT = 32  # a body's cost below which a thread may have 8 elements
HEAVY = 128  # and from which it has one: code is written for each

arrange = lazy("antorcha.devices.gpu.arrange")


class PointwiseGrid(GridTemplate):
    """What a pointwise kernel is compiled for: its body, how many dims the operands have, and how
    each moves along the last: ``c`` in one piece, ``s`` one element repeated, ``g`` in steps; ``n``
    is a number.

    A thread has ``each`` vectors of ``lanes`` elements.
    """

    threads = THREADS

    def __init__(
        self, body: Body, outs: Sequence[Layout], ins: Sequence[Any], dims: int, index: Any,
        kinds: str, lanes: int,
    ) -> None:  # fmt: skip
        super().__init__(outs, ins, index)
        self.body, self.dims, self.kinds, self.lanes = body, dims, kinds, lanes
        self.each = EACH if lanes == 1 and body.cost < HEAVY else 1
        used = E.inputs_used(*body.exprs)
        self.used = [False] * self.nout + [k in used for k in range(self.nin)]
        self.read = [u and not n for u, n in zip(self.used, self.is_number, strict=True)]
        self.scalars = [1 if part is None else 2 for part in self.parts]
        # the types of what is moved: a bool is a byte
        self.moved = [
            part or (u8 if t is bool_ else t)
            for t, part in zip(self.types, self.parts, strict=True)
        ]
        self.wide = [
            lanes > 1 and kinds[k] == "c" and (k < self.nout or self.read[k])
            for k in range(self.nops)
        ]
        # elements of an access, and the bytes that its address is a multiple of
        self.access = [
            min(lanes * n, WIDEST // t.size) for t, n in zip(self.moved, self.scalars, strict=True)
        ]
        self.aligned = [n * t.size for t, n in zip(self.moved, self.access, strict=True)]

    def __native_key__(self) -> str:
        shape = f"{self.dims}|{self.kinds}|{self.lanes}|{self.each}|{self.threads}"
        return f"{self.body.key}|{self.operands_key()}|{shape}"


@inline
def are_aligned(P, words):
    """May all operands in one piece be moved by wide accesses?"""
    bits = i64(0)
    for k in static(range(P.nops)):
        if P.wide[k]:
            bits = bits | (words[P.starts[k]] & static(P.aligned[k] - 1))
    return bits == 0


@inline
def load_vector(P, k, place):
    """A vector of operand k by wide loads, as scalars; of complex numbers part after part."""
    n = static(P.access[k])
    parts = ptr[P.moved[k]](place)
    count = static(P.lanes * P.scalars[k])
    whole = [load_whole(parts + j * n, n) for j in static(range(count // n))]
    return [whole[e // n][e % n] for e in static(range(count))]


@inline
def store_vector(P, k, place, values):
    """Writes the scalars of a vector by wide stores."""
    n = static(P.access[k])
    parts = ptr[P.moved[k]](place)
    for j in static(range(P.lanes * P.scalars[k] // n)):
        whole = vec[P.moved[k], n](P.moved[k](0))
        for e in static(range(n)):
            whole = insert(whole, e, values[j * n + e])
        store_whole(parts + j * n, whole)


@inline
def load_operand(P, k, place, at, values, whole, left):
    """Sets the scalars of a vector of operand k, of which ``left`` elements are inside."""
    n = static(P.scalars[k])
    if whole and P.wide[k]:
        found = load_vector(P, k, place + at)
        for e in static(range(P.lanes * n)):
            values[e] = found[e]
    elif P.kinds[k] == "s":
        if left > 0:
            found = load_scalars(P, k, place + at)
            for e in static(range(P.lanes * n)):
                values[e] = found[e % n]
    else:
        for lane in static(range(P.lanes)):
            if left > lane:
                found = load_scalars(P, k, place + (at + lane))
                for c in static(range(n)):
                    values[lane * n + c] = found[c]


@inline
def load_scalars(P, k, place):
    """One element: a scalar, or the two parts of a complex number."""
    parts = ptr[P.moved[k]](place)
    return [parts[c] for c in static(range(P.scalars[k]))]


@inline
def load_piece(P, words, places, at, left, whole):
    """The scalars of a vector of each operand that is read, None for others."""
    pieces = [
        [P.moved[k](0) for e in static(range(P.lanes * P.scalars[k]))] if P.read[k] else None
        for k in static(range(P.nops))
    ]  # fmt: skip
    if whole:
        for k in static(range(P.nops)):
            if P.read[k]:
                load_operand(P, k, places[k], at[k], pieces[k], True, left)
    else:
        for k in static(range(P.nops)):
            if P.read[k]:
                load_operand(P, k, places[k], at[k], pieces[k], False, left)
    return pieces


@inline
def lane_value(P, words, pieces, k, lane):
    """Operand k's element in a lane, as an expression takes it; None where it is not used."""
    if P.is_number[k]:
        return number_of(P, words, k) if P.used[k] else None
    if not P.read[k]:
        return None
    if P.parts[k] is None:
        return P.types[k](pieces[k][lane])
    return [pieces[k][2 * lane], pieces[k][2 * lane + 1]]


@inline
def compute_lane(P, words, pieces, lane):
    """The scalars of each output in a lane."""
    values = [lane_value(P, words, pieces, static(P.nout + k), lane) for k in static(range(P.nin))]
    results = evaluate(P.body, values, 0)
    return [
        [P.moved[k](P.types[k](results[k]))] if P.parts[k] is None
        else [P.parts[k](results[k][0]), P.parts[k](results[k][1])]
        for k in static(range(P.nout))
    ]  # fmt: skip


@inline
def compute_piece(P, words, pieces):
    """The scalars of a vector of each output."""
    every = [compute_lane(P, words, pieces, lane) for lane in static(range(P.lanes))]
    return [
        [
            every[e // P.scalars[k]][k][e % P.scalars[k]]
            for e in static(range(P.lanes * P.scalars[k]))
        ]
        for k in static(range(P.nout))
    ]


@inline
def store_piece(P, places, at, left, whole, found):
    if whole:
        for k in static(range(P.nout)):
            store_vector(P, k, places[k] + at[k], found[k])
    else:
        for lane in static(range(P.lanes)):
            if left > lane:
                for k in static(range(P.nout)):
                    to = ptr[P.moved[k]](places[k] + (at[k] + lane))
                    for c in static(range(P.scalars[k])):
                        to[c] = found[k][lane * P.scalars[k] + c]


@native
def pointwise_grid(words: ptr[i64], *, P) -> void:
    """Words: the number of elements; where they do not lie in one piece, each dim's size and
    strides."""
    if P.body.cost >= COSTLY:  # (else some registers may go to memory, for a block more)
        resident_blocks(1)
    n = P.I(words[P.head])
    first = P.I(block()) * static(P.threads * P.lanes * P.each) + P.I(thread()) * P.lanes
    places = [operand_place(P, words, k) for k in static(range(P.nops))]
    left = [n - (first + static(u * P.threads)) for u in static(range(P.each))]
    at = [
        offsets_of(P, words, static(P.head + 1), P.dims, P.nops, n - left[u])
        if P.dims else [n - left[u] for k in static(range(P.nops))]
        for u in static(range(P.each))
    ]  # fmt: skip
    whole = are_aligned(P, words) and left[0] >= P.lanes if P.lanes > 1 else False
    pieces = [load_piece(P, words, places, at[u], left[u], whole) for u in static(range(P.each))]
    found = [compute_piece(P, words, pieces[u]) for u in static(range(P.each))]
    for u in static(range(P.each)):
        store_piece(P, places, at[u], left[u], whole, found[u])


# ------------------------------------------------------------------------------------ planning
_templates: dict[Any, PointwiseGrid] = {}


def plan_pointwise(what: Pointwise, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    shape, numel = outs[0].shape, outs[0].numel
    if not numel:
        return GridPlan(())
    if _is_copy(what, outs, ins):
        tiled: GridPlan | None = arrange.transposing_copy(outs[0], ins[0].strides)
        if tiled is not None:
            return tiled
    body = body_of(in_memory(what.exprs, outs, ins))
    operands = [*outs, *ins]
    columns: Any = [o.strides if isinstance(o, Layout) else (0,) * len(shape) for o in operands]
    sizes, columns = nested(shape, columns)
    kinds = "".join([_kind_of(o, c) for o, c in zip(operands, columns, strict=True)])
    dims = 0 if len(sizes) <= 1 and "s" not in kinds and "g" not in kinds else len(sizes)
    lanes = _lanes_of(body, operands, sizes, columns, kinds)
    index = index_type(operands, numel)
    types = tuple([o.dtype if isinstance(o, Layout) else o for o in operands])
    key = body, types, len(outs), dims, index, kinds, lanes
    template = kept(
        _templates, key, lambda _: PointwiseGrid(body, outs, ins, dims, index, kinds, lanes),
        MOST_KEPT,
    )  # fmt: skip
    words = (numel, *(dim_words(sizes, columns) if dims else ()))
    step = GridStep(
        pointwise_grid, {"P": template}, blocks_for(numel, THREADS * lanes * template.each),
        THREADS, tuple(range(len(operands))), words,
    )  # fmt: skip
    return GridPlan((step,))


def _is_copy(what: Pointwise, outs: Sequence[Layout], ins: Sequence[Any]) -> bool:
    """Are the elements moved as they are?"""
    if len(what.exprs) != 1 or len(ins) != 1 or not isinstance(ins[0], Layout):
        return False
    dtype = outs[0].dtype
    return what.exprs[0] is E.input_(0, dtype) and ins[0].dtype is dtype


def _kind_of(what: Any, column: Sequence[int]) -> str:
    """How an operand moves along the last dim: see `PointwiseGrid`."""
    if not isinstance(what, Layout):
        return "n"
    return "c" if not column or column[-1] == 1 else "s" if column[-1] == 0 else "g"


def _lanes_of(
    body: Body, operands: Sequence[Any], sizes: Sequence[int], columns: Sequence[Sequence[int]],
    kinds: str,
) -> int:  # fmt: skip
    """The elements of a thread's vector; 1 where it has none."""
    together = [
        (o.itemsize, c) for o, c, kind in zip(operands, columns, kinds, strict=True) if kind == "c"
    ]
    if "g" in kinds or kinds[0] != "c" or not sizes or body.cost >= HEAVY:
        return 1
    widest = max([size for size, _ in together])
    lanes = 2 if widest == 16 else 8 if widest <= 2 and body.cost < LIGHT else 4
    apart = [s for _, c in together for s in c[:-1]]
    if len(sizes) > 1:  # a vector's elements lie in one row, and rows begin where vectors may
        apart.append(sizes[-1])
    while any([n % lanes for n in apart]):
        lanes //= 2
    return lanes
