"""Plans for any size: pointwise ops on tensors of one shape, and folds of all elements to one.

To the kernel of such a call, when the elements lie in a row, its size is a number among others. A
``Flat`` is what remains of a plan when the size is taken out: the kernel, its description words and
where in them the size goes. It serves every size below the one from which kernels run without the
interpreter lock, where the result's layout is an operand's, or always the same. What is to be
recorded, any other size, and whatever is not as it should be is left to plans of one size each.

A layout's *family* is what a key has in its place: shared by all layouts of a dtype, a device and a
number of dims whose elements lie in row-major order without gaps (``layout.Layout.family``).
"""

from __future__ import annotations

from antorcha.lang.native import (
    Extern,
    array,
    f64,
    i32,
    i64,
    local,
    native,
    ptr,
    raw,
    struct,
)
from antorcha.runtime import trace
from antorcha.runtime.call.native.keys import FAMILY, GRAD, Key, add_word, begin_key, size_type
from antorcha.runtime.call.native.keys import TENSOR as TENSOR_WORD
from antorcha.runtime.call.native.layout_sizes import LayoutObject, layout_type
from antorcha.runtime.call.native.tensors import new_tensor
from antorcha.runtime.call.plan import FRESH, Plan
from antorcha.runtime.cpython import (
    NONE,
    Py_DecRef,
    PyErr_Clear,
    PyLong_AsLongLong,
    failed,
    integer,
    type_of,
)
from antorcha.runtime.launch import KINDS, TENSOR, kernel_t, storage_of, take_number, threshold
from antorcha.runtime.memory.alloc import LARGEST
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage, StorageObject, make_storage, storage_type
from antorcha.runtime.objects import padded, words_in_memory

PyObject_RichCompareBool = Extern("PyObject_RichCompareBool", i32, raw, raw, i32)
EQUAL = 2  # C's Py_EQ
MOST_INPUTS = 6
MOST_WORDS = 24
MOST_PLACES = 2


@struct
class Flat:
    kernel: kernel_t  # null: the op is not for here
    like: i64  # which of the call's tensors has the result's layout; -1: it is `layout`
    layout: raw
    itemsize: i64  # of the result
    inputs: i64
    kinds: array[i64, MOST_INPUTS]  # as a launch's operands
    itemsizes: array[i64, MOST_INPUTS]
    whole: array[i64, MOST_INPUTS]  # 1: has as many elements as the size; 0: one
    count: i64
    words: array[i64, MOST_WORDS]  # the description
    places: i64
    place: array[i64, MOST_PLACES]  # where in it the size goes
    launch: raw  # the address of the launch's own description: its name in a profile


@native
def family_of(layout: raw) -> raw:
    """A layout's family, or null: also of what is no layout (a tensor's fields may be set to
    anything)."""
    nothing = raw(0)
    if type_of(layout) != layout_type[0]:
        return nothing
    fields = ptr[LayoutObject](layout)
    if fields.numel is None or fields.shape is None or fields.family == raw(NONE):
        return nothing
    return fields.family


@native
def size_of(layout: raw) -> i64:
    """How many elements a layout that has a family has; 0: too many to serve here."""
    n = PyLong_AsLongLong(ptr[LayoutObject](layout).numel)
    if n == -1 and failed():
        PyErr_Clear()
    return n if n > 1 and n < threshold[0] else 0


@native
def same_shape(a: raw, b: raw) -> bool:
    """Have two layouts the same shape?"""
    if a == b:
        return True
    x, y = ptr[LayoutObject](a).shape, ptr[LayoutObject](b).shape
    if x == y:
        return True
    if type_of(x) != size_type[0] or type_of(y) != size_type[0]:
        return False
    return PyObject_RichCompareBool(x, y, i32(EQUAL)) == 1  # of tuples of int: it cannot fail


@native
def flatten(key: ptr[Key], flat: ptr[Key]) -> i64:
    """The words of a key, with families in the place of layouts, and the size of the tensors that
    have one; 0: there can be no plan for any size."""
    begin_key(flat)
    first = raw(0)
    ok = True
    for k in range(key.count):
        kind, value = key.kinds[k], key.values[k]
        family = raw(0)
        if kind == TENSOR_WORD or kind == GRAD:  # noqa: SIM109 (not in the kernel language)
            family = family_of(raw(value))
        if family is not None:
            if first is None:
                first = raw(value)
            ok = ok and same_shape(first, raw(value))
            kind, value = i64(FAMILY), i64(family)
        ok = ok and add_word(flat, kind, value)
    if not ok or first is None:
        return 0
    return size_of(first)


@native
def locate(args: ptr[raw], size: i64, count: i64) -> raw:
    """The address of the elements of (storage, offset), if all of them are there; or null."""
    nowhere = raw(0)
    if type_of(args[0]) != storage_type[0]:
        return nowhere
    s = ptr[StorageObject](args[0])
    offset = integer(args[1])
    if offset == -1 and failed():
        PyErr_Clear()
    if offset < 0 or offset > LARGEST or (offset + count) * size > s.nbytes or s.ptr is None:
        return nowhere
    return s.ptr + offset * size


@native(export=True, level="O2")
def run_flat(
    flat: ptr[Flat], args: ptr[raw], n: i64, layout: raw, made: ptr[raw], *, PROFILED=False
) -> bool:
    """Runs it on the arguments of the kernel: (storage, offset) and numbers. The result, of that
    layout or its own, or null with an exception, in `made`; False: nothing is done. PROFILED: with
    a record of the kernel."""
    bufs = local(raw, MOST_INPUTS + 1)
    numbers = local(f64, 2 * MOST_INPUTS)
    desc = local(i64, MOST_WORDS)
    if flat.kernel is None or n == 0:
        return False
    at = i64(0)
    for k in range(flat.inputs):
        if flat.kinds[k] == TENSOR:
            count = n if flat.whole[k] != 0 else i64(1)
            bufs[k + 1] = locate(args + at, flat.itemsizes[k], count)
            if bufs[k + 1] is None:
                return False
            at += 2
        else:
            number = numbers + 2 * k
            if not take_number(args[at], flat.kinds[k], number):
                PyErr_Clear()
                return False
            bufs[k + 1] = raw(number)
            at += 1
    for k in range(flat.count):
        desc[k] = flat.words[k]
    for k in range(flat.places):
        desc[flat.place[k]] = n
    result, elements = layout, n
    if flat.like < 0:
        result = flat.layout
        elements = i64(1)
    made[0] = None
    out = make_storage(elements * flat.itemsize)
    if out is not None:
        bufs[0] = ptr[StorageObject](out).ptr
        if PROFILED:
            before = trace.held()
            begun = trace.clock()
            code = flat.kernel(bufs, desc)
            trace.write(trace.KERNEL, flat.launch, None, -1, begun, before)
        else:
            code = flat.kernel(bufs, desc)
        if code != 0:  # none of these kernels fails
            Py_DecRef(out)
            return False
        made[0] = new_tensor(result, out)
    return True


# ---- taking the size out of a plan
def flat_of(plan: Plan, given: list[Layout]) -> Storage:
    """What serves calls of any size that are like the one that the plan was made for; `given` are
    the layouts of that call's tensors, in order."""
    words = _words(plan, given) or [0] * (Flat.size // 8)
    return words_in_memory(words, getattr(plan, "fresh", None), plan.out)


def _words(plan: Plan, given: list[Layout]) -> list[int] | None:
    out = plan.out
    launch = storage_of(getattr(plan, "fresh", None), "fresh")
    if plan.kind != FRESH or launch is None or not plan.op.any_size:
        return None
    owner = launch.owner
    slots, desc, places = owner.slots[1:], owner.desc(), owner.sizes
    inputs = [layout for layout in plan.tensors if layout is not None]
    full = next((layout for layout in inputs if layout.family is not None), None)
    if full is None or not places or max(len(desc) - MOST_WORDS, len(slots) - MOST_INPUTS) > 0:
        return None
    if any(
        [layout.ndim and (layout.family is None or layout.shape != full.shape) for layout in inputs]
    ):
        return None
    if out.shape == full.shape:
        like = next((k for k, layout in enumerate(given) if layout is out), -1)
        if like < 0:
            return None
    elif out.numel == 1:
        like = -1
    else:
        return None
    kinds = [KINDS[slot] if isinstance(slot, str) else TENSOR for slot in slots]
    if len(inputs) != kinds.count(TENSOR):
        return None
    each = iter([int(layout.ndim > 0) for layout in inputs])
    whole = [next(each) if kind == TENSOR else 0 for kind in kinds]
    sizes = [0 if isinstance(slot, str) else slot[0] for slot in slots]
    arrays = [padded(words, MOST_INPUTS) for words in (kinds, sizes, whole)]
    return [
        owner.kernel, like, id(out), out.itemsize, len(slots), *arrays[0], *arrays[1], *arrays[2],
        len(desc), *padded(desc, MOST_WORDS), len(places), *padded(places, MOST_PLACES),
        owner.address,
    ]  # fmt: skip
