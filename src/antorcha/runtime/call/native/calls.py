"""Calls of functions and methods: the one routine that serves any op by a plan.

Each op that has been met has a builtin of its own (``Quick``): the Python function that it stands
for, and a table of *places*, found by the key of the arguments (``keys``). A place is a block of
words, made by ``learn.place_for``, that says what to run on which of the arguments, what comes out,
and how a graph records it. What has no place, Python serves; at the second such call it is asked to
learn one (``teach``), and what cannot be learnt gets a place that says so.

Invariants: a table owns its places, a place owns all that its words name, and both are the same
from the moment when they are found to the end of the call, whatever other threads do. At least half
of a table is empty; it is emptied whole, by ``flush`` or when it would have more than MOST_PLACES.
"""

# Native functions are in the kernel language, whose types are values: mypy cannot read them.
# mypy: disable-error-code="valid-type,arg-type,attr-defined,index,misc"
# mypy: allow-untyped-defs, allow-incomplete-defs, no-warn-return-any, no-warn-no-return
# mypy: no-warn-unreachable

from __future__ import annotations

from antorcha.lang.native import (
    Global,
    array,
    func,
    i64,
    local,
    native,
    ptr,
    raw,
    ref,
    struct,
    u64,
    void,
)
from antorcha.runtime.alloc import allocate, release
from antorcha.runtime.call.native.checking import CHECKED, checked
from antorcha.runtime.call.native.flat import Flat, flatten, run_flat
from antorcha.runtime.call.native.keys import (
    MODE,
    Key,
    add_word,
    is_key,
    read_call,
    read_index,
)
from antorcha.runtime.call.native.keys import MOST as WORDS
from antorcha.runtime.call.native.mode import WATCHED, mode_word
from antorcha.runtime.call.native.operators import NOT_HERE, NOT_KNOWN, SERVED
from antorcha.runtime.call.native.plans import new_plan
from antorcha.runtime.call.native.record import (
    MOST_OPERANDS,
    Recording,
    attach,
    is_constant,
    recording,
)
from antorcha.runtime.call.native.sized import FRESH as SIZED_FRESH
from antorcha.runtime.call.native.sized import (
    MOST_NUMBERS,
    MOST_RESULTS,
    Kind,
    Sized,
    Work,
    drop_parts,
    fill_results,
    fitting,
    forms_of,
    prepare,
    run_filled,
    run_parts,
)
from antorcha.runtime.call.native.sized import PACKED as SIZED_PACKED
from antorcha.runtime.call.native.sized import VIEWS as SIZED_VIEWS
from antorcha.runtime.call.native.tensors import (
    Making,
    TensorObject,
    make_result,
    new_tensor,
    tensor_at,
)
from antorcha.runtime.call.native.views import has_counts, new_view
from antorcha.runtime.call.native.window import view_by_index
from antorcha.runtime.cpython import (
    FALSE,
    NONE,
    Py_DecRef,
    Py_IncRef,
    PyErr_Clear,
    PyObject_Vectorcall,
    PyTuple_GetItem,
    PyTuple_New,
    PyTuple_SetItem,
    complain,
    drop_all,
    drop_one,
    empty_tuple,
    new_reference,
    tuple_of,
    zero,
)
from antorcha.runtime.launch import py_launch, refused
from antorcha.runtime.sequence import play
from antorcha.runtime.storage import NO_MEMORY, StorageObject, make_storage

NEVER, FRESH, MANY, VIEWS, WRITE, FLAT, SIZED = range(7)
"""What a place says: leave it to Python; a kernel's one result; several results; views; a result
that is written over the first tensor; a kernel's one result, whatever the size (`flat`); anything
that is made anew, or a view, for sizes that give the same answers (`sized`)."""
MOST_ARGUMENTS = 12
SMALLEST = 16  # places of a table
MOST_PLACES = 2048
MISSES = 64
COUNTED = ("native", "arguments", "mode", "new", "never")
"""What is counted of calls: served here; left to Python, for the arguments have no key; in a mode
that is not for here; for there is no place yet; for a place says so."""
NOTHING_LEFT_OUT, THE_SIZE, ALL_SIZES = range(3)
"""What a key may leave out: the size of what lies in a row (`flat`), all sizes (`sized`)."""
CONSTANT, LOOSE = -1, -2
"""An argument of a kernel: k is the call's k-th tensor, LOOSE - k the call's k-th number."""
ALL, FIRST, ONE = 0, 1, 2
"""How results are packed, where `pack` is null: a tuple, the first of several, the only one."""


@struct
class Place:
    """What a call does; its first four fields are those of the key by which it is found."""

    count: i64
    mixed: i64
    kinds: array[i64, WORDS]
    values: array[i64, WORDS]
    what: i64
    run: raw  # storage: a Making (FRESH), a launch or a sequence (MANY, WRITE), a Flat, a Sized
    several: i64  # is that a sequence?
    record: raw  # the storage of a Recording; null: it is not recorded
    operands: i64
    operand_at: array[i64, MOST_OPERANDS]  # which of the call's tensors; -1: none
    arguments: i64
    argument_at: array[i64, MOST_ARGUMENTS]  # see CONSTANT
    constants: array[raw, MOST_ARGUMENTS]
    numbers: raw  # a tuple for the node, or null: the call's own
    results: i64
    layouts: array[raw, MOST_RESULTS]
    sizes: array[i64, MOST_RESULTS]  # bytes; of views, what to add to the offset
    packing: i64
    pack: raw  # makes what the caller gets of the results; null: see ALL


@struct
class Quick:
    """The builtin's own memory."""

    python: raw
    teach: raw  # as `python`, and then teaches
    loose: i64  # see `keys.read_call`
    shapes: i64  # the same
    any_size: i64  # may there be places for any size of what lies in a row?
    sized: i64  # and for others?
    table: ptr[raw]  # storages of places, or null
    room: i64
    used: i64
    missed: array[i64, MISSES]  # hashes of keys that were looked for in vain
    missed_forms: array[i64, MISSES]  # the same of keys without sizes
    counts: array[i64, len(COUNTED)]
    label: raw  # the op's name in a profile


call_t = func[i64, ptr[Quick], ptr[raw], i64, raw, ptr[raw]]
watched_calls = Global("antorcha_watched_calls", call_t, 2)  # ``watched.try_quick``, of x[i], too


# ---- the table
@native
def find(quick: ptr[Quick], key: ptr[Key]) -> raw:
    """The storage of the place for a key (borrowed), or null."""
    if quick.room == 0:
        return None
    return quick.table[seat_of(quick, key)]


@native
def key_of(place: raw) -> ptr[Key]:
    """A place's own key: its first words."""
    return ptr[Key](ptr[StorageObject](place).ptr)


@native
def seat_of(quick: ptr[Quick], key: ptr[Key]) -> i64:
    """Where the place for a key is in the table, or the empty seat where it belongs."""
    at = key.mixed & (quick.room - 1)
    while quick.table[at] is not None and not is_key(key_of(quick.table[at]), key):
        at = (at + 1) & (quick.room - 1)
    return at


@native(export=True)
def insert(quick: ptr[Quick], place: raw) -> bool:
    """Puts a place into the table, or in the place of one with the same key; False: no memory."""
    if quick.used >= MOST_PLACES:
        empty(quick)
    if 2 * (quick.used + 1) > quick.room and not grow(quick):
        return False
    at = seat_of(quick, key_of(place))
    old = quick.table[at]
    quick.table[at] = new_reference(place)
    if old is None:
        quick.used += 1
    else:
        Py_DecRef(old)
    return True


@native(noinline=True)
def grow(quick: ptr[Quick]) -> bool:
    old, count = quick.table, quick.room
    room = i64(SMALLEST)
    if count > 0:
        room = 2 * count
    block = allocate(8 * room)
    if block is None:
        complain(NO_MEMORY, NONE, NONE, 8 * room)
        return False
    quick.table = ptr[raw](block)
    quick.room = room
    for k in range(room):
        quick.table[k] = None
    for k in range(count):
        if old[k] is not None:
            quick.table[seat_of(quick, key_of(old[k]))] = old[k]
    if count > 0:
        release(raw(old))
    return True


@native(export=True)
def empty(quick: ptr[Quick]) -> void:
    """Drops every place: last, for that may run any code."""
    old, count = quick.table, quick.room
    quick.room = 0
    quick.used = 0
    drop_all(old, count)
    if count > 0:
        release(raw(old))


# ---- running a place
@native
def gather(place: ptr[Place], key: ptr[Key], args: ptr[raw]) -> i64:
    """The arguments of the kernel; their number."""
    count = i64(0)
    for k in range(place.arguments):
        which = place.argument_at[k]
        if which == CONSTANT:
            args[count] = place.constants[k]
            count += 1
        elif which <= LOOSE:
            args[count] = key.loose[LOOSE - which]
            count += 1
        else:
            t = ptr[TensorObject](key.given[which])
            args[count] = t.storage
            args[count + 1] = t.offset
            count += 2
    return count


@native
def run_into(place: ptr[Place], args: ptr[raw], count: i64) -> bool:
    """Runs what writes to its first arguments; False with an exception."""
    done = raw(0)
    if place.several != 0:
        done = play(place.run, args, count)
    else:
        done = py_launch(place.run, args, count, FRESH=False)
    drop_one(done)  # None
    return done is not None


@native
def run_many(place: ptr[Place], args: ptr[raw], count: i64, outs: ptr[raw]) -> bool:
    """Several results, in fresh memory; `args` has room for them before the inputs."""
    ok = True
    for k in range(place.results):
        outs[k] = None
        args[2 * k] = None
        args[2 * k + 1] = zero[0]
        if ok:
            args[2 * k] = make_storage(place.sizes[k])
            ok = args[2 * k] is not None
    ok = ok and run_into(place, args, count)
    for k in range(place.results):
        if ok:
            outs[k] = new_tensor(place.layouts[k], args[2 * k])
            ok = outs[k] is not None
        else:
            drop_one(args[2 * k])
    return ok


@native
def run_views(place: ptr[Place], source: raw, recorded: bool, outs: ptr[raw]) -> bool:
    ok = True
    for k in range(place.results):
        outs[k] = None
        if ok:
            outs[k] = new_view(source, place.layouts[k], place.sizes[k], recorded)
            ok = outs[k] is not None
    return ok


@native
def run(place: ptr[Place], key: ptr[Key], recorded: bool, outs: ptr[raw]) -> bool:
    """The results; False with an exception."""
    if place.what == VIEWS:
        return run_views(place, key.given[place.operand_at[0]], recorded, outs)
    args = local(raw, 2 * (MOST_RESULTS + MOST_ARGUMENTS))
    if place.what == FRESH:
        count = gather(place, key, args)
        outs[0] = make_result(ptr[Making](ptr[StorageObject](place.run).ptr), args, count)
        return outs[0] is not None
    count = gather(place, key, args + 2 * place.results)
    return run_many(place, args, count + 2 * place.results, outs)


@native
def is_same(a: ptr[TensorObject], b: ptr[TensorObject]) -> bool:
    """Do two tensors look at the same elements in the same way?"""
    if a.storage != b.storage or a.layout != b.layout:
        return False
    return a.offset == b.offset  # (one object, or small numbers: others are for Python)


@native
def may_write(key: ptr[Key], recorded: bool) -> bool:
    """Is it a write to memory that no other argument shares, but whole and alike (``x.mul_(x)``),
    and nothing to be recorded?"""
    target = ptr[TensorObject](key.given[0])
    memory = ptr[StorageObject](target.storage).ptr
    for k in range(key.tensors):
        t = ptr[TensorObject](key.given[k])
        if ptr[StorageObject](t.storage).version < 0:
            return False
        if recorded and not is_constant(key.given[k]):
            return False
        if k > 0 and ptr[StorageObject](t.storage).ptr == memory and not is_same(t, target):
            return False
    return True


@native
def write(place: ptr[Place], key: ptr[Key]) -> raw:
    """Writes over the first tensor and gives it; null with an exception."""
    args = local(raw, 2 * (1 + MOST_ARGUMENTS))
    target = key.given[0]
    t = ptr[TensorObject](target)
    memory = new_reference(t.storage)  # other threads may give the tensor another meanwhile
    args[0] = memory
    args[1] = t.offset
    done = run_into(place, args, 2 + gather(place, key, args + 2))
    if done:
        ptr[StorageObject](memory).version += 1
    Py_DecRef(memory)
    return new_reference(target) if done else raw(0)


@native
def packed(place: ptr[Place], outs: ptr[raw], count: i64) -> raw:
    """What the caller gets, of so many results, whose references it takes over."""
    if place.packing == ONE:
        return outs[0]
    made = raw(0)
    if place.pack is not None:
        made = PyObject_Vectorcall(place.pack, outs, count, None)
    elif place.packing == FIRST:
        made = new_reference(outs[0])
    else:
        made = PyTuple_New(count)
        if made is not None:
            for k in range(count):
                PyTuple_SetItem(made, k, new_reference(outs[k]))
    drop_all(outs, count)
    return made


@native
def numbers_of(place: ptr[Place], key: ptr[Key]) -> raw:
    """The numbers that the node keeps, as a new tuple; null with an exception."""
    if place.numbers is not None:
        return new_reference(place.numbers)
    if key.numbers == 0:
        return new_reference(empty_tuple[0])
    made = PyTuple_New(key.numbers)
    if made is not None:
        for k in range(key.numbers):
            PyTuple_SetItem(made, k, new_reference(key.loose[k]))
    return made


@native
def wants_gradient(key: ptr[Key]) -> bool:
    wanted = False
    for k in range(key.tensors):
        wanted = wanted or ptr[TensorObject](key.given[k]).rg != raw(FALSE)
    return wanted


@native
def hold_listed(key: ptr[Key]) -> void:
    """Holds the call's tensors where nobody does but a list."""
    if key.listed != 0:
        for k in range(key.tensors):
            Py_IncRef(key.given[k])


@native
def drop_listed(key: ptr[Key]) -> void:
    if key.listed != 0:
        for k in range(key.tensors):
            Py_DecRef(key.given[k])


@native(noinline=True)
def serve_any(storage: raw, key: ptr[Key], number: i64, made: ptr[raw], *, PROFILED) -> bool:
    """Runs what a place says that is for any size, of which `number` is this one; False: nothing is
    done."""
    place = ptr[Place](ptr[StorageObject](storage).ptr)
    done = False
    Py_IncRef(storage)
    hold_listed(key)
    if place.what == FLAT:
        flat = ptr[Flat](ptr[StorageObject](place.run).ptr)
        args = local(raw, 2 * MOST_ARGUMENTS)
        gather(place, key, args)
        layout = ptr[TensorObject](key.given[max(flat.like, 0)]).layout
        refused[0] = 0
        done = run_flat(flat, args, number, layout, made, PROFILED=PROFILED)
        if done and made[0] is None and refused[0] != 0:  # as in `serve`
            PyErr_Clear()
            done = False
    drop_listed(key)
    Py_DecRef(storage)
    return done


@native(export=True, level="O2")
def serve(place: ptr[Place], key: ptr[Key], recorded: bool, made: ptr[raw]) -> i64:
    """Runs a place, which somebody holds: the result in `made`, or null with an exception, where it
    says SERVED."""
    if place.what == NEVER:
        return NOT_HERE
    if place.what == WRITE:
        if not may_write(key, recorded):
            return NOT_HERE
        made[0] = write(place, key)
        return SERVED
    if place.what == VIEWS and not has_counts(key.given[place.operand_at[0]]):
        return NOT_HERE
    operands = local(raw, MOST_OPERANDS)
    mask = i64(0)
    how = ptr[Recording](raw(0))
    if recorded and place.record is not None and wants_gradient(key):
        how = ptr[Recording](ptr[StorageObject](place.record).ptr)
        for k in range(place.operands):
            operands[k] = None
            if place.operand_at[k] >= 0:
                operands[k] = key.given[place.operand_at[k]]
        mask = recording(how, operands)
        if mask < 0:
            return NOT_KNOWN if mask == -1 else NOT_HERE
    outs = local(raw, MOST_RESULTS)
    refused[0] = 0
    ok = run(place, key, recorded, outs)
    if not ok and refused[0] != 0:  # Python raises it from where the operands can be seen
        drop_all(outs, place.results)
        PyErr_Clear()
        return NOT_HERE
    if ok and mask != 0:
        numbers = numbers_of(place, key)
        ok = numbers is not None and attach(
            how, how.plan, operands, numbers, mask, outs, place.results
        )
    if ok:
        made[0] = packed(place, outs, place.results)
    else:
        drop_all(outs, place.results)
        made[0] = None
    return SERVED


@native
def recording_at(place: ptr[Place], sized: ptr[Sized], key: ptr[Key], operands: ptr[raw]) -> i64:
    """Puts the operands there; the mask of those that want gradients, as ``recording``."""
    if sized.recorded < 0:
        return -2
    for k in range(place.operands):
        operands[k] = None
        if place.operand_at[k] >= 0:
            operands[k] = key.given[place.operand_at[k]]
    return recording(ptr[Recording](ptr[StorageObject](sized.history.how).ptr), operands)


@native
def attach_at(
    place: ptr[Place], sized: ptr[Sized], key: ptr[Key], work: ptr[Work], layouts: ptr[raw],
    operands: ptr[raw], mask: i64, outs: ptr[raw],
) -> bool:  # fmt: skip
    """Records a call on its results, by a plan made for its sizes; False with an exception."""
    history = sized.history
    numbers = tuple_of(ref(work.values[0]), sized.given)
    plan = raw(0)
    if numbers is not None:
        plan = new_plan(history, ref(work.words[0]), numbers, layouts, sized.results, operands)
    ok = plan is not None
    if ok:
        how = ptr[Recording](ptr[StorageObject](history.how).ptr)
        values = numbers_of(place, key)
        ok = values is not None
        ok = ok and attach(how, plan, operands, values, mask, outs, sized.results)
        Py_DecRef(plan)
    return ok


@native
def run_packed(
    place: ptr[Place], sized: ptr[Sized], key: ptr[Key], work: ptr[Work], layouts: ptr[raw],
    outs: ptr[raw],
) -> bool:  # fmt: skip
    """The results of a sequence that gives a storage and an offset for each."""
    args = local(raw, 2 * MOST_ARGUMENTS)
    given = play(work.parts[sized.parts - 1], args, gather(place, key, args))
    ok = given is not None
    for k in range(sized.results):
        if ok:
            outs[k] = tensor_at(
                layouts[k], PyTuple_GetItem(given, 2 * k), PyTuple_GetItem(given, 2 * k + 1)
            )
            ok = outs[k] is not None
    drop_one(given)
    return ok


@native
def run_sizes(
    place: ptr[Place], sized: ptr[Sized], key: ptr[Key], work: ptr[Work], layouts: ptr[raw],
    recorded: bool, outs: ptr[raw],
) -> bool:  # fmt: skip
    """The results; False with an exception, or where it is not for here."""
    for k in range(sized.results):
        outs[k] = None
    args = local(raw, 2 * (MOST_RESULTS + MOST_ARGUMENTS))
    if sized.kind == SIZED_VIEWS:
        source = key.given[place.operand_at[0]]
        ok = has_counts(source)
        for k in range(sized.results):
            if ok:
                outs[k] = new_view(source, layouts[k], work.words[sized.deltas + k], recorded)
                ok = outs[k] is not None
        return ok
    if sized.kind == SIZED_FRESH:
        out = run_parts(sized, work, args, gather(place, key, args), FRESH=True)
        if out is not None:
            outs[0] = new_tensor(layouts[0], out)
        return outs[0] is not None
    if sized.kind == SIZED_PACKED:
        return run_packed(place, sized, key, work, layouts, outs)
    ok = fill_results(sized, work, layouts, args, outs) and run_filled(
        sized, work, args, gather(place, key, args + 2 * sized.results)
    )
    for k in range(sized.results):
        if ok:
            outs[k] = new_tensor(layouts[k], outs[k])
            ok = outs[k] is not None
    return ok


@native(noinline=True)
def serve_sizes(
    place: ptr[Place], sized: ptr[Sized], key: ptr[Key], work: ptr[Work], recorded: bool,
    made: ptr[raw],
) -> i64:  # fmt: skip
    """Runs what a place says for sizes whose words are in `work`, as `try_call` says it."""
    operands = local(raw, MOST_OPERANDS)
    mask = i64(0)
    if recorded and sized.recorded != 0 and wants_gradient(key):
        mask = recording_at(place, sized, key, operands)
        if mask < 0:
            return NOT_KNOWN if mask == -1 else NOT_HERE
    layouts = local(raw, MOST_RESULTS)
    outs = local(raw, MOST_RESULTS)
    if not prepare(sized, work, layouts):
        return NOT_HERE
    ok = run_sizes(place, sized, key, work, layouts, recorded, outs)
    if ok and mask != 0:
        ok = attach_at(place, sized, key, work, layouts, operands, mask, outs)
    drop_parts(work)
    drop_all(layouts, sized.results)
    if not ok:
        drop_all(outs, sized.results)
        PyErr_Clear()  # Python does it again, and says what is wrong
        return NOT_HERE
    made[0] = packed(place, outs, sized.results)
    return SERVED


@native(noinline=True)
def try_sizes(quick: ptr[Quick], key: ptr[Key], recorded: bool, made: ptr[raw]) -> i64:
    """A call at sizes that have no place, as `try_call` says it."""
    sized = local(Key)
    work = local(Work)
    count = forms_of(key, sized, ref(work.values[0]))
    if count <= 0:
        return NOT_HERE
    place = find(quick, sized)
    if place is None:
        return NOT_KNOWN if is_met(ref(quick.missed_forms[0]), sized.mixed) else NOT_HERE
    body = ptr[Place](ptr[StorageObject](place).ptr)
    if body.what != SIZED:
        return NOT_HERE
    Py_IncRef(place)
    hold_listed(key)
    kind = ptr[Kind](ptr[StorageObject](body.run).ptr)
    fits = fitting(kind, work, count)
    what = NOT_HERE
    if fits is None:
        if kind.closed == 0 and is_met(ref(quick.missed_forms[0]), sized.mixed):
            what = NOT_KNOWN
    else:
        what = serve_sizes(body, fits, key, work, recorded, made)
    drop_listed(key)
    Py_DecRef(place)
    return what


@native
def is_met(missed: ptr[i64], mixed: i64) -> bool:
    """Has a key of this hash been looked for in vain not long ago? From now on it has."""
    met = missed + i64(u64(mixed) >> 32 & (MISSES - 1))
    again = met[0] == mixed
    met[0] = mixed
    return again


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
            again = is_met(ref(quick.missed[0]), key.mixed)
            if not again and constant and view_by_index(key, word == 0, made):
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
            again = is_met(ref(quick.missed[0]), mixed)
            if quick.sized != 0 and not again and not PROFILED:
                what = try_sizes(quick, key, word == 0, made)
                if what == SERVED:
                    quick.counts[0] += 1
                    return SERVED
                again = what == NOT_KNOWN
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


# ---- filling the tables
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
