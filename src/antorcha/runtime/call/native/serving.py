"""Serving a call by a place: its kernel, views or write, the results, and their history.

Nothing here looks anything up, and nothing is kept: whoever calls holds the place and the arguments
(``calls``). Where a call is not for here nothing has been done, and Python serves it.
"""

# Native functions are in the kernel language, whose types are values: mypy cannot read them.
# mypy: disable-error-code="valid-type,arg-type,attr-defined,index,misc,redundant-expr"
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
    void,
)
from antorcha.runtime.call.native.flat import Flat, run_flat
from antorcha.runtime.call.native.keys import (
    Key,
)
from antorcha.runtime.call.native.operators import NOT_HERE, NOT_KNOWN, SERVED
from antorcha.runtime.call.native.places import (
    CONSTANT,
    FIRST,
    FLAT,
    FRESH,
    LOOSE,
    MOST_ARGUMENTS,
    NEVER,
    ONE,
    PACKED,
    SAME,
    VIEWS,
    WRITE,
    Place,
)
from antorcha.runtime.call.native.record import (
    MOST_OPERANDS,
    Recording,
    attach,
    is_constant,
    recording,
)
from antorcha.runtime.call.native.sized import MOST_RESULTS, Sized, Work, run_parts
from antorcha.runtime.call.native.tensors import (
    Making,
    TensorObject,
    make_result,
    new_tensor,
    tensor_at,
)
from antorcha.runtime.call.native.views import has_counts, new_views
from antorcha.runtime.cpython import (
    FALSE,
    Py_DecRef,
    Py_IncRef,
    PyErr_Clear,
    PyObject_Vectorcall,
    PyTuple_GetItem,
    PyTuple_New,
    PyTuple_SetItem,
    drop_all,
    drop_one,
    empty_tuple,
    new_reference,
    zero,
)
from antorcha.runtime.launch import py_launch, refused
from antorcha.runtime.sequence import play
from antorcha.runtime.storage import StorageObject, make_storage


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
def run_packed(
    sequence: raw, place: ptr[Place], key: ptr[Key], layouts: ptr[raw], results: i64,
    outs: ptr[raw],
) -> bool:  # fmt: skip
    """The results of a sequence that gives a storage and an offset for each."""
    args = local(raw, 2 * MOST_ARGUMENTS)
    given = play(sequence, args, gather(place, key, args))
    ok = given is not None
    for k in range(results):
        outs[k] = None
        if ok:
            outs[k] = tensor_at(
                layouts[k], PyTuple_GetItem(given, 2 * k), PyTuple_GetItem(given, 2 * k + 1)
            )
            ok = outs[k] is not None
    drop_one(given)
    return ok


@native
def run(place: ptr[Place], key: ptr[Key], recorded: bool, outs: ptr[raw]) -> bool:
    """The results; False with an exception."""
    if place.what == VIEWS:
        source, count = key.given[place.operand_at[0]], place.results
        return new_views(
            source, ref(place.layouts[0]), ref(place.sizes[0]), count, recorded, outs
        )  # fmt: skip
    if place.what == PACKED:
        return run_packed(place.run, place, key, ref(place.layouts[0]), place.results, outs)
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
def write(place: ptr[Place], key: ptr[Key], sized: ptr[Sized], work: ptr[Work], *, SIZES) -> raw:
    """Writes over the first tensor and gives it; null with an exception. SIZES: by what was worked
    out for sizes never met."""
    args = local(raw, 2 * (1 + MOST_ARGUMENTS))
    target = key.given[0]
    t = ptr[TensorObject](target)
    memory = new_reference(t.storage)  # other threads may give the tensor another meanwhile
    args[0] = memory
    args[1] = t.offset
    count = 2 + gather(place, key, args + 2)
    if SIZES:
        none = run_parts(sized, work, args, count, FRESH=False)
        drop_one(none)
        done = none is not None
    else:
        done = run_into(place, args, count)
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


@native
def is_refused(made: raw) -> bool:
    """Has a kernel refused, with an exception that is cleared here? Python does the call again, and
    raises it from where the operands can be seen, or waits for what was in use."""
    if made is None and refused[0] != 0:
        PyErr_Clear()
        return True
    return False


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
        done = done and not is_refused(made[0])
    drop_listed(key)
    Py_DecRef(storage)
    return done


@native(export=True, level="O2")
def serve(place: ptr[Place], key: ptr[Key], recorded: bool, made: ptr[raw]) -> i64:
    """Runs a place, which somebody holds: the result in `made`, or null with an exception, where it
    says SERVED."""
    if place.what == NEVER:
        return NOT_HERE
    if place.what == SAME:
        made[0] = new_reference(key.given[place.operand_at[0]])
        return SERVED
    if place.what == WRITE:
        if not may_write(key, recorded):
            return NOT_HERE
        refused[0] = 0
        made[0] = write(place, key, None, None, SIZES=False)
        return NOT_HERE if is_refused(made[0]) else SERVED
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
    if not ok and is_refused(None):
        drop_all(outs, place.results)
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
