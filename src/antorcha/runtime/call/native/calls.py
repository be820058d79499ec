"""Calls of operators, functions and methods: the one routine that serves any op by a plan.

Each op that has been met has a builtin of its own (``places.Quick``): the Python function that it
stands for, and a table of places, found by the key of the arguments (``keys``). What has no place
is served by one for all sizes, if there is one, and else by Python, which makes a place of what it
did (``promote``); what cannot be learnt gets a place that says so.
"""

from __future__ import annotations

from antorcha.lang.native import (
    i64,
    local,
    native,
    ptr,
    raw,
    ref,
    void,
)
from antorcha.runtime.call.native.checking import CHECKED, checked
from antorcha.runtime.call.native.flat import flatten
from antorcha.runtime.call.native.keys import (
    FUNCTION,
    GRAD,
    INDEX,
    LOOSE_FLOAT,
    LOOSE_INT,
    MODE,
    TENSOR,
    Key,
    add_word,
    mixed_with,
    read_call,
    read_index,
)
from antorcha.runtime.call.native.keys import MOST as WORDS
from antorcha.runtime.call.native.layouts import MOST_NUMBERS
from antorcha.runtime.call.native.mode import WATCHED, mode_word
from antorcha.runtime.call.native.places import (
    COUNTED,
    FRESH,
    NOT_HERE,
    NOT_KNOWN,
    NOTHING_LEFT_OUT,
    PATIENCE,
    SERVED,
    SIZED,
    THE_SIZE,
    Place,
    Quick,
    empty,
    find,
    insert,
    key_of,
    profiled_calls,
    times_met,
)
from antorcha.runtime.call.native.record import MOST_OPERANDS, Recording, attach, recording
from antorcha.runtime.call.native.serving import (
    drop_listed,
    hold_listed,
    make_fresh,
    serve,
    serve_any,
    serve_fresh,
)
from antorcha.runtime.call.native.serving_sizes import (
    serve_sizes,
)
from antorcha.runtime.call.native.sized import (
    Kind,
    OutlineWork,
    fitting,
    forms_of,
    lasting_hash,
)
from antorcha.runtime.call.native.tensors import TensorObject, is_whole
from antorcha.runtime.call.native.window import view_by_index
from antorcha.runtime.cpython import (
    FALSE,
    NONE,
    Py_DecRef,
    Py_IncRef,
    PyObject_Vectorcall,
    PyTuple_New,
    empty_tuple,
    float_type,
    int_type,
    new_reference,
    put_item,
    tuple_of,
    type_of,
    zero,
)
from antorcha.runtime.memory.storage import StorageObject

FEW_INDICES = 16
"""So many indices that no place serves are learnt when they are met first, later ones when they are
met again: a program that indexes by tensors of ever new lengths would learn for nothing."""


@native(export=True, level="O2")
def try_sizes(quick: ptr[Quick], key: ptr[Key], recorded: bool, result: ptr[raw]) -> i64:
    """A call at sizes that have no place, as `try_call` says it; NOT_HERE: it is not worth to be
    learnt at sizes that are met once, for nothing serves others."""
    sized = local(Key)
    work = local(OutlineWork)
    count = forms_of(key, sized, ref(work.values[0]))
    place = raw(0)
    if count > 0:
        place = find(quick, sized)
    if place is None:
        return NOT_KNOWN
    body = ptr[Place](ptr[StorageObject](place).ptr)
    if body.what != SIZED:
        return NOT_HERE
    Py_IncRef(place)
    hold_listed(key)
    kind = ptr[Kind](ptr[StorageObject](body.run).ptr)
    fits = fitting(kind, work, count)
    what = i64(NOT_KNOWN)
    if fits is not None:
        what = serve_sizes(body, fits, key, work, recorded, result)
    elif kind.closed != 0:
        what = NOT_HERE
    drop_listed(key)
    Py_DecRef(place)
    return what


@native
def try_call(
    quick: ptr[Quick], args: ptr[raw], nargs: i64, names: raw, result: ptr[raw], *, FORM,
    PROFILED=False,
) -> i64:  # fmt: skip
    """The result in `result`, or null with an exception, where it says SERVED. FORM: how the
    arguments are read. PROFILED: for whoever writes down that it runs."""
    key = local(Key)
    word = mode_word()
    if word < 0:
        if not PROFILED and word <= WATCHED:
            return profiled_calls[FORM](quick, args, nargs, names, result)
        if word > WATCHED or not PROFILED:
            quick.counts[2] += 1
            return NOT_HERE
        word = WATCHED - word
    if FORM == INDEX:
        known = read_index(key, args, nargs, names)
    else:
        known = read_call(key, args, nargs, names, quick.loose, quick.shapes)
    if not known or not add_word(key, MODE, word & quick.modes):
        quick.counts[1] += 1
        return NOT_HERE
    place = find(quick, key)
    if place is None:
        constant = word != 0 or key.graph == 0
        if FORM == INDEX:
            times = times_met(ref(quick.missed[0]), lasting_hash(key))
            if times < PATIENCE and constant and view_by_index(key, word == 0, result):
                quick.counts[0] += 1
                return SERVED
            if times == 0 and quick.counts[3] > FEW_INDICES:
                quick.counts[3] += 1
                return NOT_HERE
        else:
            mixed = i64(0)
            if quick.any_size != 0 and constant:
                flat = local(Key)
                size = flatten(key, flat)
                if size > 0:
                    place = find(quick, flat)
                    if place is None:
                        mixed = flat.mixed
                    elif serve_any(place, key, size, result, PROFILED=PROFILED):
                        quick.counts[0] += 1
                        return SERVED
            if mixed == 0:
                mixed = lasting_hash(key)
            times = times_met(ref(quick.missed[0]), mixed)
            if quick.sized != 0 and times < PATIENCE and not PROFILED:
                what = try_sizes(quick, key, word == 0, result)
                quick.counts[0 if what == SERVED else 3] += 1
                return NOT_KNOWN if what == NOT_HERE and times > 0 else what
        quick.counts[3] += 1
        return NOT_KNOWN
    Py_IncRef(place)
    hold_listed(key)
    body = ptr[Place](ptr[StorageObject](place).ptr)
    if body.what == FRESH:
        what = serve_fresh(body, key, word == 0, result)
    else:
        what = serve(body, key, word == 0, result)
    drop_listed(key)
    Py_DecRef(place)
    if what == SERVED:
        quick.counts[0] += 1
    else:
        quick.counts[4] += 1
    return what


@native
def find_pair(
    quick: ptr[Quick], first: i64, layout: raw, second: i64, value: i64, word: i64
) -> raw:  # fmt: skip
    """`find`, for a tensor and another argument in a mode, whose key is not written down."""
    if quick.room == 0:
        return None
    mixed = mixed_with(mixed_with(i64(0), first, i64(layout)), second, value)
    mixed = mixed_with(mixed, i64(MODE), word)
    at = mixed & (quick.room - 1)
    while quick.table[at] is not None:
        key = key_of(quick.table[at])
        if key.mixed == mixed and key.count == 3 and key.values[0] == i64(layout):
            same = key.values[1] == value and key.values[2] == word and key.kinds[0] == first
            if same and key.kinds[1] == second and key.kinds[2] == MODE:
                return quick.table[at]
        at = (at + 1) & (quick.room - 1)
    return None


@native(export=True, level="O2")
def serve_operands(storage: raw, a: raw, b: raw, result: ptr[raw]) -> i64:
    """`try_call`, of an operator: what is met most, a tensor and another or a number for which
    there is a place with one result, needs no key. What it leaves to Python comes to the op again,
    and is counted there."""
    quick = ptr[Quick](ptr[StorageObject](storage).ptr)
    args = local(raw, 4)
    word = mode_word()  # before anything is read: it may run code, in a thread's first call
    kind, second, value, numbers = type_of(b), i64(0), i64(b == zero[0]), i64(1)
    if kind == raw(float_type) or kind == raw(int_type):
        if quick.loose & 2 != 0:
            second = LOOSE_FLOAT if kind == raw(float_type) else LOOSE_INT
    elif is_whole(b):
        y = ptr[TensorObject](b)
        second, value, numbers = i64(TENSOR), i64(y.layout), i64(0)
        args[2] = y.storage
        args[3] = y.offset
        if y.rg != raw(FALSE):
            second = GRAD
    else:
        return NOT_HERE
    place = raw(0)
    x = ptr[TensorObject](a)
    first = i64(TENSOR)
    if second != 0 and word >= 0 and is_whole(a):
        if x.rg != raw(FALSE):
            first = GRAD
        place = find_pair(quick, first, x.layout, second, value, word & quick.modes)
    if place is None or ptr[Place](ptr[StorageObject](place).ptr).straight == 0:
        args[0] = a
        args[1] = b
        before = local(i64, len(COUNTED))
        for k in range(len(COUNTED)):
            before[k] = quick.counts[k]
        tried = try_call(quick, args, 2, None, result, FORM=FUNCTION)
        if tried == NOT_HERE:
            for k in range(len(COUNTED)):
                quick.counts[k] = before[k]
        return tried
    body = ptr[Place](ptr[StorageObject](place).ptr)
    args[0] = x.storage
    args[1] = x.offset
    if numbers != 0:
        args[2] = b
    operands = local(raw, MOST_OPERANDS)
    mask = i64(0)
    if word == 0 and (first == GRAD or second == GRAD) and body.record is not None:
        operands[0] = a
        for k in range(1, body.operands):
            operands[k] = None
        if numbers == 0:
            operands[1] = b
        mask = recording(ptr[Recording](ptr[StorageObject](body.record).ptr), operands)
    what = NOT_KNOWN if mask == -1 else NOT_HERE
    if mask >= 0:
        Py_IncRef(place)
        what = make_fresh(body, args, 4 - numbers, result)
        if mask != 0 and result[0] is not None:
            record_pair(body, operands, b, numbers, mask, result)
        Py_DecRef(place)
    if what != NOT_HERE:
        quick.counts[0 if what == SERVED else 4] += 1
    return what


@native
def record_pair(
    place: ptr[Place], operands: ptr[raw], number: raw, numbers: i64, mask: i64, result: ptr[raw]
) -> void:  # fmt: skip
    """Records the call on its result; where that fails, the result is dropped."""
    values = tuple_with(number) if numbers != 0 else new_reference(empty_tuple[0])
    how = ptr[Recording](ptr[StorageObject](place.record).ptr)
    if values is None or not attach(how, how.plan, operands, values, mask, result, 1):
        Py_DecRef(result[0])
        result[0] = None


@native
def tuple_with(o: raw) -> raw:
    result = PyTuple_New(1)
    if result is not None:
        put_item(result, 0, new_reference(o))
    return result


@native(export=True, level="O2")
def serve_or(
    self: raw, args: ptr[raw], nargs: i64, names: raw, python: raw, *, FORM
) -> raw:  # fmt: skip
    """The call, by `python` where it is not for here."""
    quick = ptr[Quick](ptr[StorageObject](self).ptr)
    result = local(raw)
    what = try_call(quick, args, nargs, names, result, FORM=FORM)
    if what == SERVED:
        return checked(result[0]) if CHECKED else result[0]
    if what == NOT_KNOWN:
        return PyObject_Vectorcall(quick.promote, args, nargs, names)
    return PyObject_Vectorcall(python, args, nargs, names)


@native
def py_quick(self: raw, args: ptr[raw], nargs: i64, names: raw, *, FORM) -> raw:
    python = ptr[Quick](ptr[StorageObject](self).ptr).python
    return serve_or(self, args, nargs, names, python, FORM=FORM)


@native
def py_words(self: raw, args: ptr[raw], nargs: i64, names: raw, *, FORM, WITHOUT) -> raw:
    """The key of a call as numbers: count, hash, kinds.., values..; None where it has none.
    WITHOUT: the SIZE of what lies in a row, or all SIZES."""
    key = local(Key)
    quick = ptr[Quick](ptr[StorageObject](self).ptr)
    if FORM == INDEX:
        known = read_index(key, args, nargs, names)
    else:
        known = read_call(key, args, nargs, names, quick.loose, quick.shapes)
    word = mode_word()
    if word <= WATCHED:
        word = WATCHED - word
    if word < 0 or not known or not add_word(key, MODE, word & quick.modes):
        return new_reference(raw(NONE))
    if WITHOUT != NOTHING_LEFT_OUT:
        other = local(Key)
        if WITHOUT == THE_SIZE:
            size = flatten(key, other)
        else:
            size = forms_of(key, other, local(i64, MOST_NUMBERS))
        if size <= 0:
            return new_reference(raw(NONE))
        key = other
    words = local(i64, 2 + 2 * WORDS)
    count = key.count
    words[0] = count
    words[1] = key.mixed
    for k in range(count):
        words[2 + k] = key.kinds[k]
        words[2 + count + k] = key.values[k]
    return tuple_of(words, 2 + 2 * count)


@native
def py_put(self: raw, args: ptr[raw], _nargs: i64) -> raw:
    """(the storage of a Place), made by ``learn.place_for``."""
    if not insert(ptr[Quick](ptr[StorageObject](self).ptr), args[0]):
        return None
    return new_reference(raw(NONE))


@native
def py_flush(self: raw, _args: ptr[raw], _nargs: i64) -> raw:
    empty(ptr[Quick](ptr[StorageObject](self).ptr))
    return new_reference(raw(NONE))
