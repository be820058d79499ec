"""Calls of functions and methods: the one routine that serves any op by a plan.

Each op that has been met has a builtin of its own (``places.Quick``): the Python function that it
stands for, and a table of places, found by the key of the arguments (``keys``). What has no place
is served by one for all sizes, if there is one, and else by Python; what is met again is learnt
(``teach``), and what cannot be learnt gets a place that says so.
"""

# Native functions are in the kernel language, whose types are values: mypy cannot read them.
# mypy: disable-error-code="valid-type,arg-type,attr-defined,index,misc"
# mypy: allow-untyped-defs, allow-incomplete-defs, no-warn-return-any, no-warn-no-return
# mypy: no-warn-unreachable

from __future__ import annotations

from antorcha.lang.native import (
    i64,
    local,
    native,
    ptr,
    raw,
    ref,
)
from antorcha.runtime.call.native.checking import CHECKED, checked
from antorcha.runtime.call.native.flat import flatten
from antorcha.runtime.call.native.keys import (
    MODE,
    Key,
    add_word,
    read_call,
    read_index,
)
from antorcha.runtime.call.native.keys import MOST as WORDS
from antorcha.runtime.call.native.mode import WATCHED, mode_word
from antorcha.runtime.call.native.operators import NOT_HERE, NOT_KNOWN, SERVED
from antorcha.runtime.call.native.places import (
    NOTHING_LEFT_OUT,
    PATIENCE,
    SIZED,
    THE_SIZE,
    Place,
    Quick,
    empty,
    find,
    insert,
    times_met,
    watched_calls,
)
from antorcha.runtime.call.native.serving import (
    drop_listed,
    hold_listed,
    serve,
    serve_any,
    wants_gradient,
)
from antorcha.runtime.call.native.serving_sizes import (
    serve_sizes,
)
from antorcha.runtime.call.native.sized import (
    MOST_NUMBERS,
    Kind,
    Work,
    fitting,
    forms_of,
)
from antorcha.runtime.call.native.window import view_by_index
from antorcha.runtime.cpython import (
    NONE,
    Py_DecRef,
    Py_IncRef,
    PyObject_Vectorcall,
    new_reference,
    tuple_of,
)
from antorcha.runtime.storage import StorageObject


@native(export=True, level="O2")
def try_sizes(quick: ptr[Quick], key: ptr[Key], recorded: bool, made: ptr[raw]) -> i64:
    """A call at sizes that have no place, as `try_call` says it."""
    sized = local(Key)
    work = local(Work)
    count = forms_of(key, sized, ref(work.values[0]))
    if count <= 0:
        return NOT_HERE
    place = find(quick, sized)
    if place is None:
        met = times_met(ref(quick.missed_forms[0]), sized.mixed)
        return NOT_KNOWN if met > 0 else NOT_HERE
    body = ptr[Place](ptr[StorageObject](place).ptr)
    if body.what != SIZED:
        return NOT_HERE
    Py_IncRef(place)
    hold_listed(key)
    kind = ptr[Kind](ptr[StorageObject](body.run).ptr)
    fits = fitting(kind, work, count)
    what = NOT_HERE
    if fits is None:
        if kind.closed == 0 and times_met(ref(quick.missed_forms[0]), sized.mixed) > 0:
            what = NOT_KNOWN
    else:
        what = serve_sizes(body, fits, key, work, recorded, made)
    drop_listed(key)
    Py_DecRef(place)
    return what


@native
def try_call(
    quick: ptr[Quick], args: ptr[raw], nargs: i64, names: raw, made: ptr[raw], *, INDEX,
    PROFILED=False,
) -> i64:  # fmt: skip
    """The result in `made`, or null with an exception, where it says SERVED. PROFILED: for whoever
    writes down that it runs."""
    key = local(Key)
    word = mode_word()
    if word < 0:
        if not PROFILED and word <= WATCHED:
            which = 1 if INDEX else 0
            return watched_calls[which](quick, args, nargs, names, made)
        if word > WATCHED or not PROFILED:
            quick.counts[2] += 1
            return NOT_HERE
        word = WATCHED - word
    if INDEX:
        known = read_index(key, args, nargs, names)
    else:
        known = read_call(key, args, nargs, names, quick.loose, quick.shapes)
    if not known or not add_word(key, MODE, word):
        quick.counts[1] += 1
        return NOT_HERE
    place = find(quick, key)
    if place is None:
        constant = word != 0 or not wants_gradient(key)
        if INDEX:
            times = times_met(ref(quick.missed[0]), key.mixed)
            again = times > 0
            if times < PATIENCE and constant and view_by_index(key, word == 0, made):
                quick.counts[0] += 1
                return SERVED
        else:
            mixed = key.mixed
            if quick.any_size != 0 and constant:
                flat = local(Key)
                size = flatten(key, flat)
                if size > 0:
                    place = find(quick, flat)
                    if place is None:
                        mixed = flat.mixed
                    elif serve_any(place, key, size, made, PROFILED=PROFILED):
                        quick.counts[0] += 1
                        return SERVED
            times = times_met(ref(quick.missed[0]), mixed)
            again = times > 0
            if quick.sized != 0 and times < PATIENCE and not PROFILED:
                what = try_sizes(quick, key, word == 0, made)
                if what == SERVED:
                    quick.counts[0] += 1
                    return SERVED
                again = again or what == NOT_KNOWN
        quick.counts[3] += 1
        return NOT_KNOWN if again else NOT_HERE
    Py_IncRef(place)
    hold_listed(key)
    what = serve(ptr[Place](ptr[StorageObject](place).ptr), key, word == 0, made)
    drop_listed(key)
    Py_DecRef(place)
    if what == SERVED:
        quick.counts[0] += 1
    else:
        quick.counts[4] += 1
    return what


@native(export=True, level="O2")
def py_quick(self: raw, args: ptr[raw], nargs: i64, names: raw, *, INDEX) -> raw:
    quick = ptr[Quick](ptr[StorageObject](self).ptr)
    made = local(raw)
    what = try_call(quick, args, nargs, names, made, INDEX=INDEX)
    if what == SERVED:
        return checked(made[0]) if CHECKED else made[0]
    if what == NOT_KNOWN:
        return PyObject_Vectorcall(quick.teach, args, nargs, names)
    return PyObject_Vectorcall(quick.python, args, nargs, names)


@native
def py_words(self: raw, args: ptr[raw], nargs: i64, names: raw, *, INDEX, WITHOUT) -> raw:
    """The key of a call as numbers: count, hash, kinds.., values..; None where it has none.
    WITHOUT: the SIZE of what lies in a row, or all SIZES."""
    key = local(Key)
    if INDEX:
        known = read_index(key, args, nargs, names)
    else:
        quick = ptr[Quick](ptr[StorageObject](self).ptr)
        known = read_call(key, args, nargs, names, quick.loose, quick.shapes)
    word = mode_word()
    if word <= WATCHED:
        word = WATCHED - word
    if word < 0 or not known or not add_word(key, MODE, word):
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
