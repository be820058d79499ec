"""Layouts made by machine code: the one layout of a shape and strides, new or known.

``layout_of`` is ``runtime.memory.layout.layout`` for sizes that were worked out natively. It looks
into a small cache, then into Python's own table, and only then makes a layout, which that table has
from the second time on that it is asked for: most sizes that are new are met once, and what is kept
of them is what the collector looks at, again and again. Nor does it look into Python's table for
what a filter of bits says is not there, nor ask for memory where the layout that the new one takes
the place of in the cache is nobody else's.

Invariants: the cache owns what it names, and is emptied with the plans (``plan.flush``). The filter
has a bit for every layout of Python's table that could be asked for here. Layouts
that the table was given here are counted; when there are as many as plans may be, all are
forgotten. Making one may run any code (a collection): who asks holds the layout that it is to be
like.
"""

from __future__ import annotations

from typing import Any

from antorcha.core.hooks import hooks
from antorcha.lang.native import (
    Extern,
    Global,
    bind,
    i32,
    i64,
    inline,
    local,
    native,
    ptr,
    raw,
    ref,
    struct,
    u64,
    void,
)
from antorcha.runtime.call import plan as plans
from antorcha.runtime.call.native.keys import size_type
from antorcha.runtime.call.native.layout_sizes import (
    LayoutObject,
    Sizes,
    count_of,
    has_dims,
    highest,
    is_contiguous,
    is_row_major,
    is_that,
    kind_of,
    layout_type,
    read_sizes,
)
from antorcha.runtime.cpython import (
    FALSE,
    HEADER,
    IN_LINE,
    NONE,
    TRUE,
    Py_DecRef,
    Py_IncRef,
    PyErr_Clear,
    PyObject_GC_UnTrack,
    PyObject_Vectorcall,
    PyTuple_New,
    drop_all,
    drop_one,
    failed,
    fast_def,
    filled_tuple,
    int_object,
    int_value,
    is_held_once,
    new_reference,
    put_item,
    tuple_of,
    zero,
)
from antorcha.runtime.memory import layout as layouts
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.objects import PyType_GenericAlloc, field_offset

PyDict_GetItemWithError = Extern("PyDict_GetItemWithError", raw, raw, raw)
PyDict_SetDefault = Extern("PyDict_SetDefault", raw, raw, raw, raw)
MOST_NUMBERS = 24  # sizes and strides of a call's operands
RECENT = 256  # layouts in the cache
KINDS = 64  # families and forms in theirs
FILTER = 1 << 16  # bits that say what Python's table may have
MOST_INTERNED = 20_000  # until all are forgotten, as ``plan.LIMIT``


@struct
class Seat:
    """A place of the cache."""

    layout: raw
    known: i64  # has Python's table it?


@struct
class Kin:
    """A family or a form, and what those have in common that share it."""

    dtype: raw
    device: raw
    kind: i64  # the number of dims of a family's, `kind_of` a form's
    found: raw  # null: there is none here


recent = Global("antorcha_recent_layouts", Seat, RECENT)
table = Global("antorcha_layout_table", raw)  # Python's own
filter_bits = Global("antorcha_layout_filter", u64, FILTER // 64)
families = Global("antorcha_layout_families", Kin, KINDS)
family_in_python = Global("antorcha_family_in_python", raw)  # `layout.family_of`
forms = Global("antorcha_layout_forms", Kin, KINDS)
form_in_python = Global("antorcha_form_in_python", raw)  # `layout.form_of`
flush_plans = Global("antorcha_flush_plans", raw)  # `plan.flush`
created = Global("antorcha_layouts_created", i64)
interned_count = Global("antorcha_layouts_interned", i64)  # those that Python's table was given


# ---- families and forms
@native
def seat_of(kins: ptr[Kin], layout: raw, kind: i64) -> ptr[Kin]:
    """Where a family or a form of that kind is, or would be."""
    fields = ptr[LayoutObject](layout)
    mixed = (u64(kind) ^ u64(fields.dtype) >> 4) * 0x9E3779B97F4A7C15
    return kins + i64(mixed >> 40 & (KINDS - 1))


@native
def kin_of(kins: ptr[Kin], layout: raw, kind: i64) -> raw:
    """The family or the form that is known here (borrowed), or null."""
    fields = ptr[LayoutObject](layout)
    seat = seat_of(kins, layout, kind)
    if seat.kind != kind or seat.dtype != fields.dtype or seat.device != fields.device:
        return None
    return seat.found


@native
def keep_kin(kins: ptr[Kin], layout: raw, kind: i64, found: raw) -> void:
    """Puts one where it is found from now on. (What it is of outlives all plans.)"""
    fields = ptr[LayoutObject](layout)
    seat = seat_of(kins, layout, kind)
    old = seat.found
    seat.dtype = fields.dtype
    seat.device = fields.device
    seat.kind = kind
    seat.found = new_reference(found)
    drop_one(old)


@native
def asked(function: raw, layout: raw) -> raw:
    """What a Python function says of a layout; null with an exception."""
    arg = local(raw)
    arg[0] = layout
    return PyObject_Vectorcall(function, arg, 1, None)


# ---- making layouts
@native
def shape_of(sizes: ptr[Sizes]) -> raw:
    """A Size; null with an exception."""
    return filled_tuple(
        PyType_GenericAlloc(size_type[0], sizes.ndim), ref(sizes.shape[0]), sizes.ndim
    )


@native
def fill(
    layout: ptr[LayoutObject], sizes: ptr[Sizes], count: i64, shape: raw, strides: raw
) -> bool:
    """The fields of a new layout, but for its family; False with an exception."""
    like = ptr[LayoutObject](sizes.like)
    high = highest(sizes, count)
    layout.shape = new_reference(shape)
    layout.strides = new_reference(strides)
    layout.dtype = new_reference(like.dtype)
    layout.device = new_reference(like.device)
    layout.itemsize = new_reference(like.itemsize)
    layout.contiguous = new_reference(raw(TRUE) if is_contiguous(sizes, count) else raw(FALSE))
    layout.low = new_reference(zero[0])
    layout.form = new_reference(raw(NONE))
    layout.ndim = int_object(sizes.ndim)
    layout.numel = int_object(count)
    layout.high = int_object(high) if high != count else new_reference(layout.numel)
    layout.nbytes = int_object(high * int_value(like.itemsize))
    one = layout.ndim is not None and layout.numel is not None
    return one and layout.high is not None and layout.nbytes is not None


@native
def find_family(layout: ptr[LayoutObject], sizes: ptr[Sizes], count: i64) -> bool:
    """Gives a new layout its family; False with an exception."""
    found = raw(NONE)
    if count > 1 and is_row_major(sizes):
        found = kin_of(families, raw(layout), sizes.ndim)
        if found is None:
            layout.family = asked(family_in_python[0], raw(layout))
            if layout.family is not None:
                keep_kin(families, raw(layout), sizes.ndim, layout.family)
            return layout.family is not None
    layout.family = new_reference(found)
    return True


@native
def empty_layout(seat: ptr[Seat]) -> raw:
    """A layout without fields: that of a place, if nobody else has it; null with an exception."""
    old = seat.layout
    if old is None or seat.known != 0 or not is_held_once(old):
        return PyType_GenericAlloc(layout_type[0], 0)
    seat.layout = None
    fields = ptr[raw](old + HEADER)
    drop_all(fields, (LayoutObject.size - HEADER) // 8)
    return old


@native
def make(sizes: ptr[Sizes], count: i64, shape: raw, strides: raw, seat: ptr[Seat]) -> raw:
    """A new layout of so many elements, to be put in a place; null with an exception."""
    o = empty_layout(seat)
    if o is not None:
        layout = ptr[LayoutObject](o)
        if fill(layout, sizes, count, shape, strides) and find_family(layout, sizes, count):
            # Nothing leads back to a layout, and thousands of them live long: the collector need
            # not look at them, nor begin to look at everything because of them.
            PyObject_GC_UnTrack(o)
            PyObject_GC_UnTrack(shape)
            return o
        Py_DecRef(o)
    return None


@native
def key_of(like: ptr[LayoutObject], shape: raw, strides: raw) -> raw:
    """What a layout of that dtype and device is found by in Python's table; null with an
    exception."""
    key = PyTuple_New(4)
    if key is not None:
        put_item(key, 0, new_reference(shape))
        put_item(key, 1, new_reference(strides))
        put_item(key, 2, new_reference(like.dtype))
        put_item(key, 3, new_reference(like.device))
    return key


@inline
def filter_word(mixed):
    """The word of the filter, and the bit in it, of what has that hash."""
    at = mixed >> 20 & (FILTER - 1)
    return filter_bits + i64(at >> 6), u64(1) << (at & 63)


@native
def note(mixed: u64) -> void:
    """Python's table has what has that hash, or will."""
    word, bit = filter_word(mixed)
    word[0] |= bit


@native
def found_in_python(like: ptr[LayoutObject], shape: raw, strides: raw, mixed: u64) -> raw:
    """The layout of Python's table; null with an exception, or without where there is none."""
    result = raw(0)
    word, bit = filter_word(mixed)
    if word[0] & bit == 0:
        return result
    key = key_of(like, shape, strides)
    if key is not None:
        result = PyDict_GetItemWithError(table[0], key)
        if result is not None:
            Py_IncRef(result)
        Py_DecRef(key)
    return result


@native
def interned(layout: raw) -> raw:
    """The layout that Python's table has for what this one says: this one, where it had none. Null
    with an exception."""
    fields = ptr[LayoutObject](layout)
    found = raw(0)
    if interned_count[0] >= MOST_INTERNED:
        interned_count[0] = 0
        drop_one(PyObject_Vectorcall(flush_plans[0], ptr[raw](0), 0, None))
    sizes = local(Sizes)
    if read_sizes(layout, sizes):
        note(hash_of(sizes))
    key = key_of(fields, fields.shape, fields.strides)
    if key is not None and not failed():
        found = PyDict_SetDefault(table[0], key, layout)
    if found is not None:
        Py_IncRef(found)
        interned_count[0] += 1
    drop_one(key)
    return found


@native
def intern_seat(seat: ptr[Seat]) -> raw:
    """What a place has, asked for once more: Python's table has it from now on. Null with an
    exception."""
    layout = new_reference(seat.layout)
    seat.known = 1
    found = interned(layout)
    if found is not None:
        put(seat, found, 1)
    Py_DecRef(layout)
    return found


@native
def put(seat: ptr[Seat], layout: raw, known: i64) -> void:
    """Gives a place another layout. The one before, where somebody has it still, is to be found by
    whoever asks for the same."""
    old, was_known = seat.layout, seat.known
    seat.layout = new_reference(layout)
    seat.known = known
    if old is not None and was_known == 0 and not (IN_LINE and ptr[i32](old)[0] == 1):
        drop_one(interned(old))
        if failed():
            PyErr_Clear()
    drop_one(old)


@native
def hash_of(sizes: ptr[Sizes]) -> u64:
    mixed = u64(ptr[LayoutObject](sizes.like).dtype) >> 4
    for k in range(sizes.ndim):
        mixed = (mixed ^ u64(sizes.shape[k])) * 0x9E3779B97F4A7C15
        mixed = (mixed ^ mixed >> 29 ^ u64(sizes.strides[k])) * 0xC2B2AE3D27D4EB4F
    return mixed


@inline
def seat_at(mixed):
    """Where a layout of that hash is among the recent ones, if it is there."""
    return recent + i64(mixed >> 40 & (RECENT - 1))


@native(export=True, level="O2")
def layout_of(sizes: ptr[Sizes]) -> raw:
    """The one layout that says this; null with an exception, or without where they are too large
    for here."""
    mixed = hash_of(sizes)
    seat = seat_at(mixed)
    found = seat.layout
    if found is not None and is_that(found, sizes):
        return new_reference(found) if seat.known != 0 else intern_seat(seat)
    result = raw(0)
    count = count_of(sizes)
    if count < 0:
        return result
    shape = shape_of(sizes)
    strides = raw(0)
    if shape is not None:
        strides = tuple_of(ref(sizes.strides[0]), sizes.ndim)
    if strides is not None:
        result = found_in_python(ptr[LayoutObject](sizes.like), shape, strides, mixed)
    known = i64(result is not None)
    if known == 0 and strides is not None and not failed():
        result = make(sizes, count, shape, strides, seat)
        created[0] += 1
    drop_one(shape)
    drop_one(strides)
    if result is not None:
        put(seat, result, known)
    return result


# ---- forms
@native(export=True, level="O2")
def add_form(layout: raw, numbers: ptr[i64], count: ptr[i64]) -> raw:
    """``layout.form_of`` of what `has_dims` (borrowed), and its `numbers` after those that are
    counted already; null: there is none, or none for here."""
    sizes = local(Sizes)
    if not read_sizes(layout, sizes) or count_of(sizes) < 0:
        return None
    kind = kind_of(sizes)
    known = ptr[LayoutObject](layout).form
    if known == raw(NONE):
        known = kin_of(forms, layout, kind)
    if known is None:
        known = asked(form_in_python[0], layout)
        if known is None:
            PyErr_Clear()
            return None
        keep_kin(forms, layout, kind, known)
        Py_DecRef(known)  # (the layout has it from now on)
    if not add_numbers(sizes, kind >= 0, numbers, count):
        return None
    return known


@native
def add_numbers(
    sizes: ptr[Sizes], row_major: bool, numbers: ptr[i64], count: ptr[i64]
) -> bool:  # fmt: skip
    """Adds what a layout's form leaves out; False: they are too many."""
    if count[0] + (sizes.ndim if row_major else 2 * sizes.ndim) > MOST_NUMBERS:
        return False
    for k in range(sizes.ndim):
        if sizes.shape[k] > 1:
            numbers[count[0]] = sizes.shape[k]
            count[0] += 1
    if not row_major:
        for k in range(sizes.ndim):
            if sizes.strides[k] > 1:
                numbers[count[0]] = sizes.strides[k]
                count[0] += 1
    return True


# ---- setting up
@native
def py_recent(_self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(a layout): the recent one that says the same, which Python's table has from now on; None.
    Python's table is to have one of them."""
    sizes = local(Sizes)
    if has_dims(args[0]) and read_sizes(args[0], sizes):
        mixed = hash_of(sizes)
        note(mixed)
        seat = seat_at(mixed)
        if seat.layout is not None and is_that(seat.layout, sizes):
            seat.known = 1
            return new_reference(seat.layout)
    return new_reference(raw(NONE))


@native
def py_forget(_self: raw, _args: ptr[raw], _nargs: i64) -> raw:
    for k in range(RECENT):
        old = recent[k].layout
        recent[k].layout = None
        drop_one(old)
    for k in range(KINDS):
        old = forms[k].found
        forms[k].found = None
        drop_one(old)
    for k in range(FILTER // 64):
        filter_bits[k] = 0
    return new_reference(raw(NONE))


def why_not() -> str:
    """What of Layout does not lie as `LayoutObject` says; empty when all does."""
    fields: dict[str, Any] = LayoutObject.fields
    for name, (offset, _) in fields.items():
        if name != "head" and field_offset(Layout, name) != offset:
            return f"Layout.{name} is elsewhere"
    return ""


def install() -> None:
    """Tells the machine code what a layout is, and where Python keeps them."""
    layout_type.refer_to(Layout)
    table.refer_to(layouts._table)
    family_in_python.refer_to(layouts.family_of)
    form_in_python.refer_to(layouts.form_of)
    flush_plans.refer_to(plans.flush)
    hooks.recent_layout = recent_layout = bind(
        fast_def("recent", py_recent.spec().addr, "The one that says it.")
    )
    for each in list(layouts._table.values()):
        recent_layout(each)
    plans.on_flush(bind(fast_def("forget", py_forget.spec().addr, "Empties the caches.")))
