"""Recording an operator's call in the graph: ``node.attach_to`` in machine code.

Owns nothing between calls. A Recording says, for a plan, what the Python path has found out: which
tensors a node saves for each set of operands that want gradients (``plan.keeps``). What it does not
know, the Python path serves, and teaches. The node is made by the recipe of ``node.recorder`` and
has the fields that ``attach_to`` gives it: the same words, tuples and list.
"""

# Native functions are in the kernel language, whose types are values: mypy cannot read them.
# mypy: disable-error-code="valid-type,arg-type,attr-defined,index,misc"
# mypy: allow-untyped-defs, allow-incomplete-defs, no-warn-return-any, no-warn-no-return
# mypy: no-warn-unreachable
from __future__ import annotations

from antorcha.lang.native import (
    Extern,
    Global,
    array,
    i32,
    i64,
    local,
    native,
    ptr,
    raw,
    ref,
    struct,
    void,
)
from antorcha.runtime.call import node
from antorcha.runtime.call.native.tensors import TensorObject, zero
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.cpython import (
    FALSE,
    NONE,
    TRUE,
    Py_DecRef,
    Py_IncRef,
    PyLong_FromLongLong,
    PyTuple_New,
    PyTuple_SetItem,
)
from antorcha.runtime.objects import Recipe, build, words_in_memory
from antorcha.runtime.storage import Storage, StorageObject

PyList_New = Extern("PyList_New", raw, i64)
PyList_SetItem = Extern("PyList_SetItem", i32, raw, i64, raw)
PyIter_Next = Extern("PyIter_Next", raw, raw)
MASKS = 3  # of two operands: 1, 2, 3
MOST_SAVED = 3  # both operands and the result
MOST_OPERANDS = 4
counter = Global("antorcha_node_counter", raw)  # what `node.next_seq` counts with


@struct
class Kept:
    """What a node saves for one mask: 0 and 1 are the operands, below 0 is the result."""

    mask: raw  # the number as an object; null: not known yet
    count: i64  # below 0: what is saved is not for here
    which: array[i64, MOST_SAVED]


@struct
class Recording:
    recipe: raw  # a storage: see `objects.build`
    plan: raw
    operands: i64  # edges of a node
    rule: i64  # the mask of the rule
    kept: array[Kept, MASKS]


@native(export=True)
def recording(how: ptr[Recording], a: raw, b: raw) -> i64:
    """The mask of the operands that want gradients (`b` may be null); -1: not known here, -2: not
    for here."""
    mask = i64(0)
    if not is_plain(a) or (b is not None and not is_plain(b)):
        return -2
    if ptr[TensorObject](a).rg != raw(FALSE):
        mask = 1
    if b is not None and ptr[TensorObject](b).rg != raw(FALSE):
        mask |= 2
    mask &= how.rule
    if mask == 0:
        return 0
    kept = ref(how.kept[mask - 1])
    if kept.mask is None:
        return -1
    if kept.count < 0:
        return -2
    for k in range(kept.count):
        tensor = a
        if kept.which[k] > 0:
            tensor = b
        if tensor is None:
            return -2
        if kept.which[k] >= 0 and ptr[StorageObject](ptr[TensorObject](tensor).storage).version < 0:
            return -2
    return mask


@native
def is_plain(o: raw) -> bool:
    """Is its history what it says: no view, and no later result of several?"""
    x = ptr[TensorObject](o)
    if x.base != raw(NONE) or x.fn is None:
        return False
    return x.rg == raw(FALSE) or (x.rg == raw(TRUE) and x.nr == zero[0])


@native
def edge_to(o: raw) -> raw:
    """A new reference to where the operand's gradient goes."""
    x = ptr[TensorObject](o)
    e = raw(NONE)
    if x.rg != raw(FALSE):
        e = x.fn if x.fn != raw(NONE) else o
    Py_IncRef(e)
    return e


@native
def edges_of(how: ptr[Recording], a: raw, b: raw) -> raw:
    made = PyTuple_New(how.operands)
    if made is None:
        return made
    for k in range(how.operands):
        e = raw(NONE)
        if k == 0:
            e = edge_to(a)
        elif k == 1 and b is not None:
            e = edge_to(b)
        else:
            Py_IncRef(e)
        PyTuple_SetItem(made, k, e)
    return made


@native
def saved_item(o: raw) -> raw:
    """(layout, storage, offset, version)."""
    x = ptr[TensorObject](o)
    version = PyLong_FromLongLong(ptr[StorageObject](x.storage).version)
    made = PyTuple_New(4)
    if version is None or made is None:
        drop_both(version, made)
        return None
    Py_IncRef(x.layout)
    PyTuple_SetItem(made, 0, x.layout)
    Py_IncRef(x.storage)
    PyTuple_SetItem(made, 1, x.storage)
    Py_IncRef(x.offset)
    PyTuple_SetItem(made, 2, x.offset)
    PyTuple_SetItem(made, 3, version)
    return made


@native
def drop_both(a: raw, b: raw) -> void:
    if a is not None:
        Py_DecRef(a)
    if b is not None:
        Py_DecRef(b)


@native
def saved_of(kept: ptr[Kept], a: raw, b: raw, out: raw) -> raw:
    """The list of what the node saves; where that is nothing, an empty tuple."""
    if kept.count == 0:
        return PyTuple_New(0)
    made = PyList_New(kept.count)
    if made is None:
        return made
    for k in range(kept.count):
        tensor = out
        if kept.which[k] == 0:
            tensor = a
        elif kept.which[k] > 0:
            tensor = b
        item = saved_item(tensor)
        if item is None:
            Py_DecRef(made)
            return None
        PyList_SetItem(made, k, item)
    return made


@native
def values_of(number: raw) -> raw:
    """The run-time numbers of the call."""
    if number is None:
        return PyTuple_New(0)
    made = PyTuple_New(1)
    if made is not None:
        Py_IncRef(number)
        PyTuple_SetItem(made, 0, number)
    return made


@native(export=True)
def attach(how: ptr[Recording], a: raw, b: raw, number: raw, mask: i64, out: raw) -> raw:
    """Records the call on its result and gives that; null with an exception, the result dropped.
    `b` and `number` may be null."""
    if mask == 0:
        return out
    kept = ref(how.kept[mask - 1])
    args = local(raw, 6)
    args[0] = how.plan
    args[1] = edges_of(how, a, b)
    args[2] = kept.mask
    args[3] = saved_of(kept, a, b, out)
    args[4] = values_of(number)
    args[5] = PyIter_Next(counter[0])
    made = raw(0)
    if args[1] is not None and args[3] is not None and args[4] is not None and args[5] is not None:
        made = build(ptr[Recipe](ptr[StorageObject](how.recipe).ptr), args)
    drop_both(args[1], args[3])
    drop_both(args[4], args[5])
    if made is None:
        Py_DecRef(out)
        return made
    t = ptr[TensorObject](out)
    Py_DecRef(t.fn)
    t.fn = made
    Py_DecRef(t.rg)
    Py_IncRef(raw(TRUE))
    t.rg = raw(TRUE)
    return out


def storage_of(plan: Plan) -> Storage | None:
    """A Recording of what is known of the plan by now; None for one that no graph records."""
    if plan.rule is None:
        return None
    recorder = getattr(plan.record or node.recorder(plan), "__self__", None)
    words = [id(recorder), id(plan), len(plan.tensors), plan.rule.mask & MASKS]
    owners: list[object] = [recorder, plan]
    for mask in range(1, MASKS + 1):
        kept = plan.keeps.get(mask)
        served = kept is not None and len(kept) <= MOST_SAVED and all([k <= 1 for k in kept])
        served = served and len(plan.tensors) <= MOST_OPERANDS
        which = kept if kept is not None and served else ()
        owners.append(mask)
        words += [0 if kept is None else id(mask), len(which) if served else -1]
        words += [*which, 0, 0, 0][:MOST_SAVED]
    return words_in_memory(words, *owners)


def install() -> None:
    """Looks up what counts the nodes."""
    counter.refer_to(node.next_seq.__self__)
