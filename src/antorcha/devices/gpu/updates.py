"""Updates of many sets of tensors on a GPU: a launch for some sets at once.

The blocks of a launch are dealt out to its sets, in order; a block finds its set by the sets'
sizes, and then does what a pointwise kernel does. All addresses are words of the launch: nothing is
copied to the GPU beforehand, so a launch can be part of a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.memo import kept
from antorcha.devices.complexes import in_memory
from antorcha.devices.emit import MOST_KEPT, Body, Unsupported, body_of
from antorcha.devices.gpu.frame import THREADS, GridPlan, GridStep, blocks_for, index_type
from antorcha.devices.gpu.pointwise import (
    PointwiseGrid,
    compute_piece,
    load_piece,
    store_piece,
)
from antorcha.lang.kernels import Updates, lies_alike
from antorcha.lang.native import i64, inline, native, ptr, select, static, void
from antorcha.lang.native.grid import PARAMETER_WORDS, block, device_pointer, thread
from antorcha.runtime.memory.layout import Layout

MOST_ELEMENTS = 8  # of a thread


class UpdatesGrid(PointwiseGrid):
    """What the kernel is compiled for: a set's body and types, and how many sets a launch has.
    ``own``: inputs of a set; those after them are shared. Words: what is shared, the addresses of
    each set's inputs, the sets' numbers of elements."""

    def __init__(
        self, body: Body, outs: Sequence[Layout], ins: Sequence[Any], index: Any, kinds: str,
        lanes: int, own: int, sets: int,
    ) -> None:  # fmt: skip
        super().__init__(body, outs, ins, 0, index, kinds, lanes)
        self.own, self.sets, self.each = own, sets, 1 if lanes > 4 else 2
        shared = self.nin - own
        self.starts = [*[0] * (self.nout + own), *range(shared)]
        self.sets_at, self.sizes_at = shared, shared + sets * own
        self.of_block = self.threads * lanes * self.each  # elements
        self.source = [*range(self.nout), *range(own)]  # the input whose address an operand has

    def __native_key__(self) -> str:
        return f"{super().__native_key__()}|{self.own}|{self.sets}"


@inline
def operand_of_set(P, words, k, addresses):
    """A pointer to operand k; None for a number."""
    if P.is_number[k]:
        return None
    if k >= P.nout + P.own:
        return device_pointer(P.types[k], words[P.starts[k]])
    return device_pointer(P.types[k], addresses[P.source[k]])


@native
def updates_grid(words: ptr[i64], *, P) -> void:
    left = i64(block())
    n, first = i64(0), i64(0)
    addresses = [i64(0) for j in static(range(P.own))]
    for s in static(range(P.sets)):
        size = words[static(P.sizes_at + s)]
        blocks = (size + static(P.of_block - 1)) // P.of_block
        mine = left >= 0 and left < blocks
        n, first = select(mine, size, n), select(mine, left * P.of_block, first)
        for j in static(range(P.own)):
            word = words[static(P.sets_at + s * P.own + j)]
            addresses[j] = select(mine, word, addresses[j])
        left = left - blocks
    bits = i64(0)
    for j in static(range(P.own)):
        if P.wide[P.nout + j]:
            bits = bits | (addresses[j] & static(P.aligned[P.nout + j] - 1))
    places = [operand_of_set(P, words, k, addresses) for k in static(range(P.nops))]
    start = P.I(first) + P.I(thread()) * P.lanes
    from_here = [start + static(u * P.threads * P.lanes) for u in static(range(P.each))]
    rest = [P.I(n) - from_here[u] for u in static(range(P.each))]
    whole = [
        bits == 0 and rest[u] >= P.lanes if P.lanes > 1 else False for u in static(range(P.each))
    ]
    at = [
        [from_here[u] if P.kinds[k] == "c" else P.I(0) for k in static(range(P.nops))]
        for u in static(range(P.each))
    ]  # fmt: skip
    pieces = [
        load_piece(P, words, places, at[u], rest[u], whole[u]) for u in static(range(P.each))
    ]  # fmt: skip
    found = [compute_piece(P, words, pieces[u]) for u in static(range(P.each))]
    for u in static(range(P.each)):
        store_piece(P, places, at[u], rest[u], whole[u], found[u])


# ------------------------------------------------------------------------------------- planning
_templates: dict[Any, UpdatesGrid] = {}


def plan_updates(what: Updates, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    written, shared = len(what.exprs), ins[what.shared]
    own = written + what.read + what.single
    most = (PARAMETER_WORDS - len(shared)) // (own + 1)
    if most < 1:
        raise Unsupported(f"updates of {own} tensors")
    every = [ins[what.inputs_of(k)] for k in range(what.sets)]
    for each in every:
        check_alike(each[: written + what.read])
    sets = min(most, 1 << (what.sets - 1).bit_length())
    first = [*every[0], *shared]
    body = body_of(in_memory(what.exprs, outs[:written], first))
    kinds = "c" * (2 * written + what.read) + "s" * what.single
    kinds += "".join(["s" if isinstance(o, Layout) else "n" for o in shared])
    widest = max([o.itemsize for o in every[0][: written + what.read]])
    lanes = 8 if widest <= 2 else 4 if widest == 4 else 2
    index = index_type((), max([each[0].numel for each in every]) + THREADS * MOST_ELEMENTS)
    types = tuple([o.dtype if isinstance(o, Layout) else o for o in first])
    form = index, kinds, lanes, own, sets
    template = kept(
        _templates, (body, types, written, form),
        lambda _: UpdatesGrid(body, outs[:written], first, *form), MOST_KEPT,
    )  # fmt: skip
    numbers = [k for k in range(what.sets) if every[k][0].numel]
    steps = [
        _step(template, what, len(outs), ins, numbers[k : k + sets])
        for k in range(0, len(numbers), sets)
    ]  # fmt: skip
    return GridPlan(tuple(steps))


def _step(
    template: UpdatesGrid, what: Updates, outs: int, ins: Sequence[Any], numbers: Sequence[int]
) -> GridStep:
    """The launch for the sets of these numbers; further ones that it could have are empty."""
    sizes = [ins[what.inputs_of(k).start].numel for k in numbers]
    more = template.sets - len(numbers)
    sets = [*numbers, *[numbers[0]] * more]
    shared = range(outs, outs + len(ins))[what.shared]
    operands = [*shared]
    for k in sets:
        operands += range(outs, outs + len(ins))[what.inputs_of(k)]
    blocks = sum([-(-n // template.of_block) for n in sizes])
    return GridStep(
        updates_grid, {"P": template}, blocks_for(blocks, 1), THREADS, tuple(operands),
        (*sizes, *[0] * more),
    )  # fmt: skip


def check_alike(layouts: Sequence[Layout]) -> None:
    """Raises where tensors do not lie alike, each in one piece."""
    for each in layouts:
        if not lies_alike(each, layouts[0]):
            raise Unsupported("tensors that lie in different ways")
