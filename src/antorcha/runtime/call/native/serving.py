"""Serving a call by a place: its kernel, views or write, the results, and their history.

Nothing here looks anything up, and nothing is kept: whoever calls holds the place and the arguments
(``calls``). Where a call is not for here nothing has been done, and Python serves it.
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
from antorcha.runtime.call.native.counted import (
    MOST_SCRATCH,
    Counting,
    drop_scratch,
    launched,
    make_results,
    scratch_of,
    tensors_around,
)
from antorcha.runtime.call.native.flat import Flat, run_flat
from antorcha.runtime.call.native.keys import (
    Key,
)
from antorcha.runtime.call.native.places import (
    CONSTANT,
    FIRST,
    FLAT,
    LOOSE,
    MOST_ARGUMENTS,
    NEVER,
    NOT_HERE,
    NOT_KNOWN,
    ONE,
    OUT,
    PACKED,
    SAME,
    SERVED,
    SIZES_COUNTED,
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
from antorcha.runtime.call.native.sized import MOST_RESULTS, OutlineWork, Sized, run_parts
from antorcha.runtime.call.native.tensors import (
    TensorMaking,
    TensorObject,
    make_result,
    new_tensor,
    tensor_at,
)
from antorcha.runtime.call.native.views import has_counts, new_views
from antorcha.runtime.cpython import (
    Py_DecRef,
    Py_IncRef,
    PyErr_Clear,
    PyObject_Vectorcall,
    PyTuple_New,
    drop_all,
    drop_one,
    empty_tuple,
    new_reference,
    put_item,
    tuple_item,
    zero,
)
from antorcha.runtime.launch import py_launch, refused
from antorcha.runtime.memory.storage import StorageObject, make_storage
from antorcha.runtime.sequence import play


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
            outs[k] = tensor_at(layouts[k], tuple_item(given, 2 * k), tuple_item(given, 2 * k + 1))
            ok = outs[k] is not None
    drop_one(given)
    return ok


@native
def write_counted(
    place: ptr[Place], key: ptr[Key], c: ptr[Counting], args: ptr[raw], outs: ptr[raw]
) -> bool:  # fmt: skip
    """The results, whose sizes are in the first scratch memory; as `run_counted`."""
    layouts = local(raw, MOST_RESULTS)
    results, scratch = 2 * place.results, 2 * c.scratch
    room = args + results
    numbers = ptr[i64](ptr[StorageObject](room[0]).ptr) + c.first
    ok = make_results(place, c, numbers, layouts, args)
    if not ok:
        refused[0] = 1
    ok = ok and launched(c.write, args, results + scratch + gather(place, key, room + scratch))
    return tensors_around(layouts, args, place.results, ok, outs)


@native
def run_counted(place: ptr[Place], key: ptr[Key], outs: ptr[raw]) -> bool:
    """Results whose sizes are counted first; False with an exception, or where it is for Python,
    which says why."""
    c = ptr[Counting](ptr[StorageObject](place.run).ptr)
    args = local(raw, 2 * (MOST_RESULTS + MOST_SCRATCH + MOST_ARGUMENTS))
    room, scratch = args + 2 * place.results, 2 * c.scratch
    for k in range(place.results):
        outs[k] = None
    ok = scratch_of(c, room)
    ok = ok and launched(c.count, room, scratch + gather(place, key, room + scratch))
    if ok and c.refuses != 0:
        ok = (ptr[i64](ptr[StorageObject](room[0]).ptr) + c.first)[0] >= 0
        if not ok:
            refused[0] = 1
    ok = ok and write_counted(place, key, c, args, outs)
    drop_scratch(c, room)
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
    if place.what == SIZES_COUNTED:
        return run_counted(place, key, outs)
    args = local(raw, 2 * (MOST_RESULTS + MOST_ARGUMENTS))
    count = gather(place, key, args + 2 * place.results)
    return run_many(place, args, count + 2 * place.results, outs)


@native
def is_same(a: ptr[TensorObject], b: ptr[TensorObject]) -> bool:
    """Do two tensors look at the same elements in the same way?"""
    if a.storage != b.storage or a.layout != b.layout:
        return False
    return a.offset == b.offset  # (one object, or small numbers: others are for Python)


@native
def may_write(key: ptr[Key], at: i64, recorded: bool, *, ALIKE) -> bool:
    """Is it a write to memory that no other argument shares, and nothing to be recorded? at: which
    tensor is written. ALIKE: it may be shared as a whole (``x.mul_(x)``)."""
    target = ptr[TensorObject](key.given[at])
    memory = ptr[StorageObject](target.storage).ptr
    for k in range(key.tensors):
        t = ptr[TensorObject](key.given[k])
        if ptr[StorageObject](t.storage).version < 0:
            return False
        if recorded and not is_constant(key.given[k]):
            return False
        shared = k != at and ptr[StorageObject](t.storage).ptr == memory
        if shared and not (ALIKE and is_same(t, target)):
            return False
    return True


@native
def write(
    place: ptr[Place], key: ptr[Key], sized: ptr[Sized], work: ptr[OutlineWork], *, SIZES
) -> raw:
    """Writes over a tensor and gives it; null with an exception. SIZES: by what was worked out for
    sizes never met."""
    args = local(raw, 2 * (1 + MOST_ARGUMENTS))
    target = key.given[place.operand_at[0]]
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
    result = raw(0)
    if place.pack is not None:
        result = PyObject_Vectorcall(place.pack, outs, count, None)
    elif place.packing == FIRST:
        result = new_reference(outs[0])
    else:
        result = PyTuple_New(count)
        if result is not None:
            for k in range(count):
                put_item(result, k, new_reference(outs[k]))
    drop_all(outs, count)
    return result


@native
def numbers_of(place: ptr[Place], key: ptr[Key]) -> raw:
    """The numbers that the node keeps, as a new tuple; null with an exception."""
    if place.numbers is not None:
        return new_reference(place.numbers)
    if key.numbers == 0:
        return new_reference(empty_tuple[0])
    result = PyTuple_New(key.numbers)
    if result is not None:
        for k in range(key.numbers):
            put_item(result, k, new_reference(key.loose[k]))
    return result


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
def is_refused(result: raw) -> bool:
    """Has a kernel refused, with an exception that is cleared here? Python does the call again, and
    raises it from where the operands can be seen, or waits for what was in use."""
    if result is None and refused[0] != 0:
        PyErr_Clear()
        return True
    return False


@native(noinline=True)
def serve_any(storage: raw, key: ptr[Key], number: i64, result: ptr[raw], *, PROFILED) -> bool:
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
        done = run_flat(flat, args, number, layout, result, PROFILED=PROFILED)
        done = done and not is_refused(result[0])
    drop_listed(key)
    Py_DecRef(storage)
    return done


@native
def mask_at(place: ptr[Place], record: raw, key: ptr[Key], operands: ptr[raw]) -> i64:
    """Puts the operands there; the mask of those that want gradients, as ``recording``. record: the
    storage of a Recording."""
    for k in range(place.operands):
        operands[k] = None
        if place.operand_at[k] >= 0:
            operands[k] = key.given[place.operand_at[k]]
    return recording(ptr[Recording](ptr[StorageObject](record).ptr), operands)


@native
def record_at(
    place: ptr[Place], key: ptr[Key], operands: ptr[raw], mask: i64, outs: ptr[raw]
) -> bool:
    """Records the call on its results; False with an exception."""
    numbers = numbers_of(place, key)
    if numbers is None:
        return False
    how = ptr[Recording](ptr[StorageObject](place.record).ptr)
    return attach(how, how.plan, operands, numbers, mask, outs, place.results)


@native
def make_fresh(place: ptr[Place], args: ptr[raw], count: i64, result: ptr[raw]) -> i64:
    """The one new result, as `serve` says it."""
    refused[0] = 0
    result[0] = make_result(ptr[TensorMaking](ptr[StorageObject](place.run).ptr), args, count)
    return NOT_HERE if is_refused(result[0]) else SERVED


@native
def serve_fresh(place: ptr[Place], key: ptr[Key], recorded: bool, result: ptr[raw]) -> i64:
    """Runs a place with one new result, as most have, and as `serve` says it."""
    args = local(raw, 2 * MOST_ARGUMENTS)
    operands = local(raw, MOST_OPERANDS)
    mask = i64(0)
    if recorded and key.graph != 0 and place.record is not None:
        mask = mask_at(place, place.record, key, operands)
        if mask < 0:
            return NOT_KNOWN if mask == -1 else NOT_HERE
    what = make_fresh(place, args, gather(place, key, args), result)
    if result[0] is None:
        return what
    if mask != 0 and not record_at(place, key, operands, mask, result):
        Py_DecRef(result[0])
        result[0] = None
    return SERVED


@native(export=True, level="O2")
def serve(place: ptr[Place], key: ptr[Key], recorded: bool, result: ptr[raw]) -> i64:
    """Runs a place, which somebody holds and which is not FRESH: the result in `result`, or null
    with an exception, where it says SERVED."""
    if place.what == NEVER:
        return NOT_HERE
    if place.what == SAME:
        result[0] = new_reference(key.given[place.operand_at[0]])
        return SERVED
    if place.what == WRITE or place.what == OUT:
        at = place.operand_at[0]
        if place.what == WRITE:
            writes = may_write(key, at, recorded, ALIKE=True)
        else:
            writes = may_write(key, at, recorded, ALIKE=False)
        if not writes:
            return NOT_HERE
        refused[0] = 0
        result[0] = write(place, key, None, None, SIZES=False)
        return NOT_HERE if is_refused(result[0]) else SERVED
    if place.what == VIEWS and not has_counts(key.given[place.operand_at[0]]):
        return NOT_HERE
    operands = local(raw, MOST_OPERANDS)
    mask = i64(0)
    if recorded and key.graph != 0 and place.record is not None:
        mask = mask_at(place, place.record, key, operands)
        if mask < 0:
            return NOT_KNOWN if mask == -1 else NOT_HERE
    outs = local(raw, MOST_RESULTS)
    refused[0] = 0
    ok = run(place, key, recorded, outs)
    if not ok and is_refused(None):
        drop_all(outs, place.results)
        return NOT_HERE
    ok = ok and (mask == 0 or record_at(place, key, operands, mask, outs))
    result[0] = None
    if ok:
        result[0] = packed(place, outs, place.results)
    else:
        drop_all(outs, place.results)
    return SERVED
