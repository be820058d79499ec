"""The kernels of Scatter: what becomes of a target when source elements arrive there.

A source element is known by the number of its position, which the index tensors have for it, and
by its place in the target, a slice. The keys say which target each position leads to.
"""

from __future__ import annotations

from typing import Any

from antorcha.devices.emit import Unsupported
from antorcha.devices.gpu.frame import (
    THREADS,
    GridTemplate,
    load_element,
    offsets_of,
    operand_place,
    position,
)
from antorcha.lang.native import (
    atomic_add,
    atomic_max,
    atomic_min,
    bool_,
    f32,
    i64,
    inline,
    maximum,
    minimum,
    native,
    ptr,
    static,
    u64,
    void,
)
from antorcha.lang.native.grid import device_pointer
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout

SET, ADD, MULTIPLY, MAX, MIN, MEAN = "set", "add", "multiply", "max", "min", "mean"


class FoldGrid(GridTemplate):
    """What a kernel is compiled for that writes to targets. Operands are the output and the source.
    ``dims``: how many dims the targets, the slices, and the positions have. ``rows``: does a target
    have more than one element? ``across``: do neighbouring threads have neighbouring positions,
    rather than elements of a slice?"""

    def __init__(
        self, fold: str, out: Layout, source: Any, index: Ty, dims: tuple[int, int, int],
        *, rows: bool = True, across: bool = False, own: bool = True, mode: str = "",
    ) -> None:  # fmt: skip
        super().__init__((out,), (source,), index)
        self.fold, self.own, self.mode = fold, own, mode
        self.target_dims, self.slice_dims, self.position_dims = dims
        self.rows, self.across = rows, across
        self.threads = THREADS
        self.complex = self.parts[0] is not None
        self.T = self.parts[0] or self.types[0]
        self.A = f32 if self.T.half and fold != SET else self.T  # what states are held in
        self.nstate = 2 if self.complex else 1
        self.start = start_of(fold, self.T)
        if self.complex and fold in (MAX, MIN):
            raise Unsupported(f"the {fold} of complex numbers")
        if self.T is bool_ and fold == MEAN:
            raise Unsupported("the mean of bools")

    def __native_key__(self) -> str:
        dims = f"{self.target_dims},{self.slice_dims},{self.position_dims}"
        how = f"{self.fold}{self.own:d}{self.rows:d}{self.across:d}{self.mode}"
        return f"{self.operands_key()}|{dims}|{how}"


def start_of(fold: str, ty: Ty) -> float | int | bool:
    """What a fold begins with, where a target's old value has no part in it."""
    if ty is bool_:
        return fold in (MULTIPLY, MIN)
    if fold in (MAX, MIN):
        if ty.kind == "f":
            return float("-inf") if fold == MAX else float("inf")
        return ty.bounds()[fold == MIN]
    return 1 if fold == MULTIPLY else 0


# --------------------------------------------------------------------------------------- states
@inline
def start_state(P):
    if P.complex:
        return [P.A(P.start), P.A(0)]
    return [P.A(P.start)]


@inline
def source_state(P, words, place, at):
    """The source's element as a state."""
    value = load_element(P, words, 1, place, at)
    if P.complex:
        if P.parts[1] is None:
            return [P.A(value), P.A(0)]
        return [P.A(value[0]), P.A(value[1])]
    return [P.A(value)]


@inline
def target_state(P, place, at):
    """The output's element as a state."""
    if P.complex:
        both = ptr[P.T](place + at)
        return [P.A(both[0]), P.A(both[1])]
    return [P.A(place[at])]


@inline
def store_state(P, place, at, state):
    if P.complex:
        both = ptr[P.T](place + at)
        both[0] = P.T(state[0])
        both[1] = P.T(state[1])
    else:
        place[at] = P.T(state[0])


@inline
def folded(P, a, b):
    """Two states as one."""
    if P.fold == "set":
        return b
    if P.fold == "add" or P.fold == "mean":
        if P.T is bool_:
            return [a[0] | b[0]]
        return [a[k] + b[k] for k in static(range(P.nstate))]
    if P.fold == "multiply":
        if P.complex:
            return [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
        return [a[0] & b[0]] if P.T is bool_ else [a[0] * b[0]]
    if P.fold == "max":
        if P.T is bool_:
            return [a[0] | b[0]]
        return [maximum(a[0], b[0])] if P.T.kind == "f" else [max(a[0], b[0])]
    if P.T is bool_:
        return [a[0] & b[0]]
    return [minimum(a[0], b[0])] if P.T.kind == "f" else [min(a[0], b[0])]


@inline
def finished(P, state, count):
    """The value of a state of so many elements, the target's own among them if it is folded."""
    if P.fold == "mean":
        number = i64(count) + static(int(P.own))
        if P.T.kind == "f":
            return [state[k] / P.A(number) for k in static(range(P.nstate))]
        if P.T is u64:
            return [state[0] // u64(number)]
        return [P.A(i64(state[0]) // number)]
    return state


# --------------------------------------------------------------------------------------- places
@inline
def target_at(P, words, at, key):
    """Where a target begins in the output; words at ``at``: the targets' dims."""
    return offsets_of(P, words, at, P.target_dims, 1, key)[0]


@inline
def item_parts(P, item, positions, slices):
    """Which position (or another thing that there are so many of), and which element of the
    slice, an item is."""
    if not P.rows:
        return item, P.I(0)
    if P.across:
        c = item // positions
        return item - c * positions, c
    j = item // slices
    return j, item - j * slices


# --------------------------------------------------------------------------------- one by one
@native
def line_grid(words: ptr[i64], *, P) -> void:
    """A thread folds the source elements of a line, one after the other, into the output. Those
    that can meet in a target are in the same line.

    Operands: output, source, keys, status; words: lines, elements of each, targets, the targets'
    dims, dims of the lines (source, output, keys), dims along a line (source, keys)."""
    own = static(P.head + 2)
    target_words = static(own + 3)
    line_words = static(target_words + 2 * P.target_dims)
    along_words = static(line_words + 4 * P.slice_dims)
    lines, count, none = P.I(words[own]), P.I(words[own + 1]), P.I(words[own + 2])
    keys, status = device_pointer(P.I, words[P.head]), device_pointer(i64, words[P.head + 1])
    out, source = operand_place(P, words, 0), operand_place(P, words, 1)
    line = position(P, 1)
    if line < lines and status[0] == 0:
        begin = offsets_of(P, words, line_words, P.slice_dims, 3, line)
        for j in range(count):
            off = offsets_of(P, words, along_words, P.position_dims, 2, j)
            key = keys[begin[2] + off[1]]
            if key < none:
                at = begin[1] + target_at(P, words, target_words, key)
                new = source_state(P, words, source, begin[0] + off[0])
                if P.fold != "set":
                    new = folded(P, target_state(P, out, at), new)
                store_state(P, out, at, new)


@native
def each_grid(words: ptr[i64], *, P) -> void:
    """A thread writes one source element. Mode "all": whatever arrives is the same; "winner": if
    the position is the one that the target's voters elected; "atomic": by an atomic fold, for
    integers, whose sums do not depend on the order.

    Operands: output, source, keys, status, winners; words: positions, elements of a slice, targets,
    the targets' dims, dims of slices (source, output), dims of positions (source)."""
    own = static(P.head + 3)
    target_words = static(own + 3)
    slice_words = static(target_words + 2 * P.target_dims)
    position_words = static(slice_words + 3 * P.slice_dims)
    positions, slices, none = P.I(words[own]), P.I(words[own + 1]), P.I(words[own + 2])
    keys, status = device_pointer(P.I, words[P.head]), device_pointer(i64, words[P.head + 1])
    winners = device_pointer(P.I, words[P.head + 2])
    out, source = operand_place(P, words, 0), operand_place(P, words, 1)
    item = position(P, 1)
    if item < positions * slices and status[0] == 0:
        j, c = item_parts(P, item, positions, slices)
        key = keys[j]
        chosen = key < none
        if P.mode == "winner":
            chosen = chosen and winners[min(key, none - 1)] == j
        if chosen:
            slice_off = offsets_of(P, words, slice_words, P.slice_dims, 2, c)
            from_at = slice_off[0] + offsets_of(P, words, position_words, P.position_dims, 1, j)[0]
            at = slice_off[1] + target_at(P, words, target_words, key)
            new = source_state(P, words, source, from_at)
            if P.mode == "atomic":
                if P.fold == "add":
                    atomic_add(out + at, new[0], "monotonic")
                elif P.fold == "max":
                    atomic_max(out + at, new[0], "monotonic")
                else:
                    atomic_min(out + at, new[0], "monotonic")
            else:
                store_state(P, out, at, new)


class VoteGrid:
    """What the election of each target's last position is compiled for: the type of keys."""

    def __init__(self, index: Ty) -> None:
        self.I, self.threads = index, THREADS

    def __native_key__(self) -> str:
        return str(self.I)


@native
def clear_winners(words: ptr[i64], *, P) -> void:
    """No target has a winner. Operands: winners, status; word: targets."""
    winners = device_pointer(P.I, words[0])
    i = position(P, 1)
    if i < P.I(words[2]):
        winners[i] = -1


@native
def elect_winners(words: ptr[i64], *, P) -> void:
    """A target's winner is the last position that leads there. Operands: keys, winners; words:
    positions, targets."""
    keys, winners = device_pointer(P.I, words[0]), device_pointer(P.I, words[1])
    j = position(P, 1)
    if j < P.I(words[2]):
        key = keys[j]
        if key < P.I(words[3]):
            atomic_max(winners + key, j, "monotonic")


# ----------------------------------------------------------------------------------- in segments
@inline
def sorted_places(P, words):
    """Of a step on sorted keys: keys, the positions' numbers, status."""
    return (
        device_pointer(P.I, words[P.head]),
        device_pointer(P.I, words[P.head + 1]),
        device_pointer(i64, words[P.head + 2]),
    )


@inline
def partial_state(P, partials, slot):
    """The state of a piece of a segment."""
    return [partials[slot * P.nstate + k] for k in static(range(P.nstate))]


@native
def last_grid(words: ptr[i64], *, P) -> void:
    """Writes the last element of each segment of the sorted positions to the segment's target.

    Operands: output, source, sorted keys, positions' numbers, status; words: positions, elements of
    a slice, targets, the targets' dims, dims of slices (source, output), of positions (source)."""
    own = static(P.head + 3)
    target_words = static(own + 3)
    slice_words = static(target_words + 2 * P.target_dims)
    position_words = static(slice_words + 3 * P.slice_dims)
    n, slices, none = P.I(words[own]), P.I(words[own + 1]), P.I(words[own + 2])
    keys, numbers, status = sorted_places(P, words)
    out, source = operand_place(P, words, 0), operand_place(P, words, 1)
    item = position(P, 1)
    if item < n * slices and status[0] == 0:
        j, c = item_parts(P, item, n, slices)
        key = keys[j]
        if key < none and (j == n - 1 or keys[min(j + 1, n - 1)] != key):
            slice_off = offsets_of(P, words, slice_words, P.slice_dims, 2, c)
            off = offsets_of(P, words, position_words, P.position_dims, 1, numbers[j])[0]
            at = slice_off[1] + target_at(P, words, target_words, key)
            store_state(P, out, at, source_state(P, words, source, slice_off[0] + off))


@native
def segment_grid(words: ptr[i64], *, P) -> void:
    """Folds each segment of the sorted positions into its target, an element of a slice a thread.
    A segment that reaches from one chunk of positions into another is folded in pieces, one a
    chunk, whose states `join_grid` folds: a chunk has room for two, of the piece that it begins
    with and of the one that it ends with.

    Operands: output, source, sorted keys, positions' numbers, status, partial states; words:
    positions, elements of a slice, targets, positions of a chunk (a power of two), the targets'
    dims, dims of slices (source, output), of positions (source)."""
    own = static(P.head + 4)
    target_words = static(own + 4)
    slice_words = static(target_words + 2 * P.target_dims)
    position_words = static(slice_words + 3 * P.slice_dims)
    n, slices, none = P.I(words[own]), P.I(words[own + 1]), P.I(words[own + 2])
    chunk = P.I(words[own + 3])
    keys, numbers, status = sorted_places(P, words)
    out, source = operand_place(P, words, 0), operand_place(P, words, 1)
    item = position(P, 1)
    if item < n * slices and status[0] == 0:
        j, c = item_parts(P, item, n, slices)
        key = keys[j]
        begins = j == 0 or keys[max(j, P.I(1)) - 1] != key
        in_chunk = j & (chunk - 1)
        if key < none and (begins or in_chunk == 0):
            end = min(j - in_chunk + chunk, n)
            goes_on = end < n and keys[min(end, n - 1)] == key
            whole = begins and not goes_on
            slice_off = offsets_of(P, words, slice_words, P.slice_dims, 2, c)
            at = slice_off[1] + target_at(P, words, target_words, key)
            state = start_state(P)
            if P.own and whole:
                old = target_state(P, out, at)
                for k in static(range(P.nstate)):
                    state[k] = old[k]
            i = j
            inside = bool_(True)
            while inside:
                off = offsets_of(P, words, position_words, P.position_dims, 1, numbers[i])[0]
                new = folded(P, state, source_state(P, words, source, slice_off[0] + off))
                for k in static(range(P.nstate)):
                    state[k] = new[k]
                i += 1
                inside = i < end and keys[min(i, n - 1)] == key
            if whole:
                store_state(P, out, at, finished(P, state, i - j))
            else:
                partials = device_pointer(P.A, words[P.head + 3])
                slot = 2 * (j // chunk)
                if in_chunk != 0:
                    slot += 1
                for k in static(range(P.nstate)):
                    partials[(slot * slices + c) * P.nstate + k] = state[k]


@inline
def bound_of(P, keys, n, key):
    """How many of the sorted keys are less."""
    lo, hi = P.I(0), n
    while lo < hi:
        middle = (lo + hi) >> 1
        if keys[middle] < key:
            lo = middle + 1
        else:
            hi = middle
    return lo


@native
def join_grid(words: ptr[i64], *, P) -> void:
    """Folds the pieces of each segment that is in several chunks, in order: a thread of the chunk
    in which it begins. Operands and words are those of `segment_grid`."""
    own = static(P.head + 4)
    target_words = static(own + 4)
    slice_words = static(target_words + 2 * P.target_dims)
    n, slices, none = P.I(words[own]), P.I(words[own + 1]), P.I(words[own + 2])
    chunk = P.I(words[own + 3])
    keys, _numbers, status = sorted_places(P, words)
    partials = device_pointer(P.A, words[P.head + 3])
    out = operand_place(P, words, 0)
    item = position(P, 1)
    number = item // slices
    c = item - number * slices
    first = number * chunk
    end = first + chunk
    if end < n and status[0] == 0:
        key = keys[end]
        from_start = keys[first] == key
        begins = not from_start or first == 0 or keys[max(first, P.I(1)) - 1] != key
        if key < none and keys[end - 1] == key and begins:
            slice_off = offsets_of(P, words, slice_words, P.slice_dims, 2, c)
            at = slice_off[1] + target_at(P, words, target_words, key)
            slot = 2 * number
            if not from_start:
                slot += 1
            state = target_state(P, out, at) if P.own else start_state(P)
            goes_on = bool_(True)
            while goes_on:
                piece = partial_state(P, partials, slot * slices + c)
                new = folded(P, state, piece)
                for k in static(range(P.nstate)):
                    state[k] = new[k]
                slot = (slot & -2) + 2
                end += chunk
                goes_on = end - chunk < n and keys[min(end - chunk, n - 1)] == key
            count = P.I(0)
            if P.fold == "mean":
                count = bound_of(P, keys, n, key + 1) - bound_of(P, keys, n, key)
            store_state(P, out, at, finished(P, state, count))
