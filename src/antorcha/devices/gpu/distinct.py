"""Distinct on a GPU: elements, or slices, in order, in groups of equals, which are numbered.

The first stage sorts, and counts the groups' heads in chunks (`compact`). The second one numbers
the groups, notes where each begins, and writes the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.devices.emit import Unsupported
from antorcha.devices.gpu.compact import (
    CHOSEN_EACH,
    CHUNK,
    add_up,
    bytes_of_counts,
    chunks_of,
    leave_count,
    number,
)
from antorcha.devices.gpu.frame import (
    MOST_DIMS,
    THREADS,
    DynamicPlan,
    GridPlan,
    blocks_for,
    load_element,
    offsets_of,
    operand_place,
    position,
    store_element,
)
from antorcha.devices.gpu.sort import LinesToSort
from antorcha.devices.gpu.sort_items import (
    COUNT,
    TOTAL,
    along_line,
    compare_rows,
    element_words_at,
    get_item,
    items_at,
    key_in,
    position_of,
)
from antorcha.devices.sort_keys import key_of
from antorcha.lang.kernels import Distinct
from antorcha.lang.native import i32, i64, inline, native, ptr, static, u8, u16, void
from antorcha.lang.native.grid import block, device_pointer, shared, thread
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout


# ---------------------------------------------------------------------------------------- kernels
@inline
def position_at(P, words, i):
    """The position of the element, or slice, that is number i in order."""
    if P.source == "items":
        return position_of(P, get_item(P, items_at(P, words, P.head), i))
    return i32(i)


@inline
def key_at(P, words, i):
    """The key of the element that is number i in order."""
    if P.source == "items":
        return key_in(P, get_item(P, items_at(P, words, P.head), i))
    return key_of(P.order, element_words_at(P, words)[along_line(P, words, i)])


@inline
def begins_group(P, words, i):
    """Does number i in order differ from the one before? NaN is a group of its own."""
    head = i == 0
    if not head:
        if P.rows is None:
            key = key_at(P, words, i)
            head = key != key_at(P, words, i - 1)
            if P.order.kind == "f":
                head = head or key == static(P.order.ones)
        else:
            a, b = position_at(P, words, i), position_at(P, words, i - 1)
            head = not compare_rows(words, a, b, P=P, EQUAL=True)
    return head


@native
def count_groups_grid(words: ptr[i64], *, P) -> void:
    """Counts the heads of groups in each chunk."""
    n = P.I(words[P.own + COUNT])
    count = i32(0)
    for k in static(range(CHOSEN_EACH)):
        i = P.I(block()) * CHUNK + P.I(thread() + static(k * THREADS))
        if i < n and begins_group(P, words, i):
            count += 1
    leave_count(device_pointer(i64, words[P.buffers]), count)


@native
def number_groups_grid(words: ptr[i64], *, P) -> void:
    """Writes each element's group, and where groups begin; their values where elements are grouped.
    Outputs: values, inverse, counts; buffers: the chunks' sums, the groups' beginnings."""
    n = P.I(words[P.own + COUNT])
    sums = device_pointer(i64, words[P.buffers])
    begins = device_pointer(i32, words[P.buffers + 1])
    flags, ranks = shared(u8, CHUNK), shared(u16, CHUNK)
    base = P.I(block()) * CHUNK
    for k in static(range(CHOSEN_EACH)):
        slot = thread() + static(k * THREADS)
        i = base + P.I(slot)
        flag = u8(0)
        if i < n and begins_group(P, words, i):
            flag = u8(1)
        flags[slot] = flag
    number(flags, ranks)
    before = P.I(sums[1 + i64(block())])
    values, inverse = operand_place(P, words, 0), operand_place(P, words, 1)
    for k in static(range(CHOSEN_EACH)):
        slot = thread() + static(k * THREADS)
        i = base + P.I(slot)
        if i < n:
            group = before + P.I(ranks[slot])
            where = position_at(P, words, i)
            if flags[slot] == 0:
                group -= 1
            else:
                begins[group] = i32(i)
                if P.rows is None:
                    x = operand_place(P, words, P.x)
                    one = load_element(P, words, P.x, x, along_line(P, words, P.I(where)))
                    store_element(P, 0, values, group, one)
            inverse[where] = i64(group)
            if i == n - 1:
                begins[group + 1] = i32(n)


@native
def count_equals_grid(words: ptr[i64], *, P) -> void:
    """The size of each group; buffers: the groups' beginnings."""
    g = position(P, 1)
    if g < P.I(words[P.own + TOTAL]):
        begins = device_pointer(i32, words[P.buffers])
        operand_place(P, words, 2)[g] = i64(begins[g + 1] - begins[g])


@native
def take_slices_grid(words: ptr[i64], *, P) -> void:
    """The first slice of each group; buffers: the groups' beginnings. The dims give the offset in
    the values, the number of the group, nothing, and the offset in a slice of the input."""
    e = position(P, 1)
    if e < P.I(words[P.own + TOTAL]):
        begins = device_pointer(i32, words[P.buffers])
        at = offsets_of(P, words, P.line_words, P.line_dims, P.nops, e)
        where = position_at(P, words, P.I(begins[at[1]]))
        along = along_line(P, words, P.I(where))
        if P.parts[P.x] is not None:
            along = along >> 1  # it counts parts
        x = operand_place(P, words, P.x)
        value = load_element(P, words, P.x, x, at[P.x] + along)
        store_element(P, 0, operand_place(P, words, 0), at[0], value)


# --------------------------------------------------------------------------------------- planning
def _as_lines(what: Distinct, x: Layout, outs: Sequence[Layout], others: Any) -> LinesToSort:
    """What is grouped, as one line of elements or of rows (in parts, of complex numbers)."""
    times = 2 if x.dtype.kind == "c" else 1
    parts = ((2,), (1,)) if times == 2 else ((), ())
    along = [d for d in range(x.ndim) if what.dim in (None, d)]
    rest = [d for d in range(x.ndim) if d not in along]
    rows = None
    if what.dim is not None or times == 2:
        sizes = (*[x.shape[d] for d in rest], *parts[0])
        rows = (sizes, [(*[times * x.strides[d] for d in rest], *parts[1])])
    line = (tuple([x.shape[d] for d in along]), [[times * x.strides[d] for d in along]])
    return LinesToSort(outs, (x,), "sort", False, line, others, rows=rows)


def plan_distinct(what: Distinct, outs: Sequence[Layout], ins: Sequence[Any]) -> DynamicPlan:
    (x,) = ins
    if x.ndim > MOST_DIMS:  # (told here, for the second stage cannot turn back)
        raise Unsupported(f"{x.ndim} dims")
    lines = _as_lines(what, x, (), ((), [()]))
    n, shape = lines.n, tuple(x.shape)
    items = () if what.consecutive or not n else lines.sort_items()
    (sums,) = lines.room_of(bytes_of_counts(n))
    options: dict[str, Any] = {"source": "items" if items else "input", "sink": "groups"}
    lines.add(count_groups_grid, lines.grid(**options, buffers=1), chunks_of(n), (*items, sums), n)
    first = GridPlan((*lines.steps, add_up(n, sums)), tuple(lines.temporaries))

    def layouts(numbers: Sequence[int]) -> list[Layout]:
        (groups,) = numbers
        d = what.dim
        sizes = (groups,) if d is None else (*shape[:d], groups, *shape[d + 1 :])
        inverse = shape if d is None else (n,)
        return [
            L.contiguous(size, o.dtype, o.device)
            for size, o in zip((sizes, inverse, (groups,)), outs, strict=True)
        ]

    def rest(numbers: Sequence[int]) -> GridPlan:
        return _writing(what, x, layouts(numbers), options, items, len(first.temporaries))

    return DynamicPlan(first, sums - 1, 1, layouts, rest)


def _writing(
    what: Distinct, x: Layout, outs: Sequence[Layout], options: dict[str, Any],
    items: Sequence[int], before: int,
) -> GridPlan:  # fmt: skip
    """The second stage. ``items``: their numbers in the first, which had ``before`` temporaries."""
    values, d = outs[0], what.dim
    groups = outs[2].numel
    if not groups:
        return GridPlan(())
    none = (0,) * values.ndim
    lines = _as_lines(what, x, outs, ((), [()] * 4))
    n = lines.n
    sources = tuple([3 + k for k in items])  # the outputs stand before
    sums, begins = 4 + before - 1, 4 + before
    numbered = lines.grid(**options, buffers=2)
    lines.add(number_groups_grid, numbered, chunks_of(n), (*sources, sums, begins), n)
    each = lines.grid(**options, buffers=1)
    at = (*sources, begins)
    lines.add(count_equals_grid, each, blocks_for(groups)[0], at, n, total=groups)
    steps = list(lines.steps)
    if lines.rows is not None and values.numel:
        along = 0 if d is None else d
        group = tuple([int(k == along) for k in range(values.ndim)])
        slices = tuple([
            0 if k == along else x.strides[k] for k in range(values.ndim)
        ])  # fmt: skip
        taken = _as_lines(what, x, outs, (values.shape, [values.strides, group, none, slices]))
        grid = taken.grid(**options, buffers=1)
        blocks = blocks_for(values.numel)[0]
        taken.add(take_slices_grid, grid, blocks, at, n, total=values.numel)
        steps += taken.steps
    return GridPlan(tuple(steps), (4 * (groups + 1),))
