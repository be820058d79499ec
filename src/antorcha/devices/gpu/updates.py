"""Updates of many sets of tensors on a GPU, and folds of many tensors: a launch for some at once.

The blocks of a launch are dealt out to its sets, in order; a block finds its set by the sets'
sizes, and then does what a pointwise kernel does, or folds a part of a tensor. All addresses are
words of the launch: nothing is copied to the GPU beforehand, so a launch can be part of a CUDA
graph. The order of additions depends on the sizes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.memo import kept
from antorcha.devices.complexes import fold_in_parts, in_memory
from antorcha.devices.emit import MOST_KEPT, Body, Unsupported, body_of, evaluate
from antorcha.devices.gpu.folds import FoldTemplate, fresh_state, keep, merged, state_places
from antorcha.devices.gpu.frame import (
    THREADS,
    GridPlan,
    GridStep,
    blocks_for,
    index_type,
    operand_place,
    store_element,
)
from antorcha.devices.gpu.pointwise import (
    PointwiseGrid,
    compute_piece,
    load_piece,
    store_piece,
)
from antorcha.devices.gpu.reduce import fold_team
from antorcha.lang.kernels import Folds, Updates
from antorcha.lang.native import i64, inline, native, ptr, select, static, void
from antorcha.lang.native.grid import PARAMETER_WORDS, block, device_pointer, thread
from antorcha.runtime.memory.layout import Layout, lies_alike

MOST_ELEMENTS = 8  # of a thread
EACH_FOLDED = 64  # elements that a thread folds
AHEAD = 8  # of which it loads so many before it adds them
MOST_OTHERS = 8  # words of a launch that folds, beside two for each tensor


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
def set_of_block(P, words, number):
    """Of the set that a block works on: the elements, which of them is the block's first, and the
    addresses of its inputs."""
    left = number
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
    return n, first, addresses


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
    n, first, addresses = set_of_block(P, words, i64(block()))
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


# ---------------------------------------------------------------------------------------- folds
class FoldsGrid(FoldTemplate):
    """What the kernels of a fold of many tensors are compiled for. Words, after the states' places:
    the tensors' addresses and numbers of elements, the number of the first tensor, and that of its
    first part among all."""

    own, team = 1, THREADS

    def __init__(self, fold: Any, out: Layout, x: Layout, sets: int) -> None:
        super().__init__(fold, (out,), (x,), i64, True)
        self.sets, self.threads = sets, THREADS
        self.sets_at = self.own_words
        self.sizes_at = self.sets_at + sets
        self.tensor_at, self.part_at = self.sizes_at + sets, self.sizes_at + sets + 1
        self.of_block = THREADS * EACH_FOLDED

    def __native_key__(self) -> str:
        return f"{self.fold_key()}|{self.sets}|{self.of_block}"


@native
def fold_parts_grid(words: ptr[i64], *, P) -> void:
    """The state of each block's part of a tensor."""
    n, first, addresses = set_of_block(P, words, i64(block()))
    x = device_pointer(P.types[1], addresses[0])
    hi = min(first + P.of_block, n)
    i = first + i64(thread())
    state = fresh_state(P)
    while i + static((AHEAD - 1) * P.threads) < hi:
        several = [element_of(P, x, i + static(u * P.threads)) for u in static(range(AHEAD))]
        for u in static(range(AHEAD)):
            keep(P, state, merged(P, state, evaluate(P.lift, [several[u]], 0)))
        i += static(AHEAD * P.threads)
    while i < hi:
        keep(P, state, merged(P, state, evaluate(P.lift, [element_of(P, x, i)], 0)))
        i += P.threads
    state = fold_team(P, state)
    if thread() == 0:
        stored = state_places(P, words)
        for k in static(range(P.nstate)):
            stored[k][words[P.part_at] + i64(block())] = state[k]


@inline
def element_of(P, x, i):
    """An element, complex ones as their parts."""
    if P.parts[1] is None:
        return x[i]
    both = ptr[P.parts[1]](x + i)
    return [both[0], both[1]]


@native
def fold_join_grid(words: ptr[i64], *, P) -> void:
    """A block for each tensor folds the states of its parts. The output begins at the first's."""
    number = i64(block())
    start, parts, n = words[P.part_at], i64(0), i64(0)
    for s in static(range(P.sets)):
        size = words[static(P.sizes_at + s)]
        blocks = (size + static(P.of_block - 1)) // P.of_block
        start = select(s < number, start + blocks, start)
        parts, n = select(number == s, blocks, parts), select(number == s, size, n)
    stored = state_places(P, words)
    state = fresh_state(P)
    i = i64(thread())
    while i < parts:
        other = [stored[k][start + i] for k in static(range(P.nstate))]
        keep(P, state, merged(P, state, other))
        i += P.threads
    state = fold_team(P, state)
    if thread() == 0:
        result = evaluate(P.finish, [*state, n], 0)
        store_element(P, 0, operand_place(P, words, 0), words[P.tensor_at] + number, result[0])


_folds: dict[Any, FoldsGrid] = {}


def plan_folds(what: Folds, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    out = outs[0]
    if len(outs) > 1 or not out.contiguous:
        raise Unsupported("folds to tensors that do not lie in one piece")
    for each in ins:
        check_alike([each])
    fold = fold_in_parts(what.start, what.lift, what.merge, what.finish, outs[:1], ins[:1])
    most = (PARAMETER_WORDS - MOST_OTHERS) // 2
    sets = min(most, 1 << (len(ins) - 1).bit_length())
    starts = tuple([(type(s), float(s).hex()) for s in fold[0]])
    template = kept(
        _folds, (starts, fold, out.dtype, ins[0].dtype, sets),
        lambda _: FoldsGrid(fold, out, ins[0], sets), MOST_KEPT,
    )  # fmt: skip
    if template.sets_at + 2 > MOST_OTHERS:
        raise Unsupported(f"folds with {template.nstate} values in a state")
    counts = [-(-each.numel // template.of_block) for each in ins]
    temporaries = tuple([max(sum(counts), 1) * t.size for t in template.state_types])
    steps = []
    static = {"P": template}
    for k in range(0, len(ins), sets):
        numbers = [*range(k, min(k + sets, len(ins)))]
        more = sets - len(numbers)
        places = [1 + j for j in (*numbers, *[k] * more)]
        states = range(1 + len(ins), 1 + len(ins) + template.nstate)
        sizes = [*[ins[j].numel for j in numbers], *[0] * more]
        operands = (0, 1, *states)
        before = sum(counts[:k])
        blocks = sum(counts[k : k + sets])
        for kernel, grid in ((fold_parts_grid, blocks), (fold_join_grid, len(numbers))):
            if grid:
                steps.append(
                    GridStep(
                        kernel,
                        static,
                        blocks_for(grid, 1),
                        THREADS,
                        (*operands, *places),
                        (*sizes, k, before),
                    )
                )
    return GridPlan(tuple(steps), temporaries)
