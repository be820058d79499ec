"""Recording an operator's call in the graph: ``node.attach_to`` in machine code.

Owns nothing between calls. A Recording says, for a plan, what the Python path has found out: which
tensors a node saves for each set of operands that want gradients (``plan.keeps``). What it does not
know, the Python path serves, and promotes. The node has the fields that ``attach`` gives it: the
same words, tuples and list; its memory comes from ``life``.
"""

from __future__ import annotations

from antorcha.lang.native import (
    array,
    i64,
    inline,
    native,
    ptr,
    raw,
    ref,
    struct,
)
from antorcha.runtime.call.native.dealloc import NODE, NodeObject, new_object
from antorcha.runtime.call.native.freelist import new_number, new_tuple
from antorcha.runtime.call.native.slots import ITEMS
from antorcha.runtime.call.native.tensors import TensorObject, is_whole
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.cpython import (
    FALSE,
    NONE,
    TRUE,
    Py_DecRef,
    Py_IncRef,
    PyList_New,
    PyList_SetItem,
    PyLong_FromLongLong,
    PyTuple_New,
    drop_one,
    empty_tuple,
    hold,
    int_object,
    int_type,
    integer,
    new_reference,
    pair_of,
    type_of,
    zero,
)
from antorcha.runtime.memory.storage import Storage, StorageObject
from antorcha.runtime.objects import words_in_memory

MOST_OPERANDS = 5
MASKS = (1 << MOST_OPERANDS) - 1
MOST_SAVED = 6


@struct
class Kept:
    """What a node saves for one mask: k is operand k, -1 - k is result k."""

    mask: raw  # the number as an object; null: not known yet
    count: i64  # below 0: what is saved is not for here
    which: array[i64, MOST_SAVED]


@struct
class Recording:
    op: raw
    plan: raw
    operands: i64  # edges of a node
    rule: i64  # the mask of the rule
    results: i64  # a bit for each result that has a gradient
    kept: array[Kept, MASKS]


@native(export=True, level="O2")
def recording(how: ptr[Recording], operands: ptr[raw]) -> i64:
    """The mask of the operands that want gradients (some may be null: there is none); -1: not known
    here, -2: not for here."""
    mask = i64(0)
    if how.operands > MOST_OPERANDS:
        return -2
    for k in range(how.operands):
        o = operands[k]
        if o is not None:
            if not is_plain(o):
                return -2
            if ptr[TensorObject](o).rg != raw(FALSE):
                mask |= 1 << k
    mask &= how.rule
    if mask == 0:
        return 0
    kept = ref(how.kept[mask - 1])
    if kept.mask is None:
        return -1
    if kept.count < 0:
        return -2
    for k in range(kept.count):
        if kept.which[k] >= 0:
            o = operands[kept.which[k]]
            if o is not None and ptr[StorageObject](ptr[TensorObject](o).storage).version < 0:
                return -2
    return mask


@native
def is_constant(o: raw) -> bool:
    """Has neither it, nor what it is a view of, to do with gradients?"""
    x = ptr[TensorObject](o)
    if x.rg != raw(FALSE) or x.base is None:
        return False
    if x.base == raw(NONE):
        return True
    return is_whole(x.base) and ptr[TensorObject](x.base).rg == raw(FALSE)


@native
def is_plain(o: raw) -> bool:
    """Is its history what it says? Of a view it is while nothing was written since."""
    x = ptr[TensorObject](o)
    if x.base is None or x.fn is None or x.nr is None:
        return False
    if is_constant(o):
        return True
    if x.base != raw(NONE):
        if not is_whole(x.base):
            return False
        if x.seen is None or type_of(x.seen) != raw(int_type):
            return False
        if integer(x.seen) != ptr[StorageObject](x.storage).version:
            return False
    return x.rg == raw(FALSE) or x.rg == raw(TRUE)


@native
def edge_to(o: raw) -> raw:
    """A new reference to where the operand's gradient goes; null with an exception."""
    e = raw(NONE)
    if o is not None:
        x = ptr[TensorObject](o)
        if x.rg != raw(FALSE):
            e = x.fn if x.fn != raw(NONE) else o
            if x.fn != raw(NONE) and x.nr != zero[0]:
                return pair_of(new_reference(x.fn), new_reference(x.nr))
    return new_reference(e)


@inline
def put_item(result, k, o):
    """The k-th item of a new tuple, whose reference it takes over."""
    ptr[raw](result + ITEMS)[k] = o


@native
def edges_of(how: ptr[Recording], operands: ptr[raw]) -> raw:
    result = new_tuple(how.operands)
    if result is not None:
        for k in range(how.operands):
            e = edge_to(operands[k])
            if e is None:
                Py_DecRef(result)
                return e
            put_item(result, k, e)
    return result


@native
def saved_item(o: raw) -> raw:
    """(layout, storage, offset, version); None of what is not there."""
    if o is None:
        Py_IncRef(raw(NONE))
        return raw(NONE)
    x = ptr[TensorObject](o)
    result = PyTuple_New(4)  # which may run any code
    version = int_object(ptr[StorageObject](x.storage).version)
    if version is None or result is None:
        drop_one(version)
        drop_one(result)
        return None
    put_item(result, 0, new_reference(x.layout))
    put_item(result, 1, new_reference(x.storage))
    put_item(result, 2, new_reference(x.offset))
    put_item(result, 3, version)
    return result


@native
def saved_of(kept: ptr[Kept], operands: ptr[raw], outs: ptr[raw]) -> raw:
    """The list of what the node saves; where that is nothing, an empty tuple."""
    if kept.count == 0:
        return new_reference(empty_tuple[0])
    result = PyList_New(kept.count)
    if result is None:
        return result
    for k in range(kept.count):
        which = kept.which[k]
        tensor = operands[which] if which >= 0 else outs[-1 - which]
        item = saved_item(tensor)
        if item is None:
            Py_DecRef(result)
            return None
        PyList_SetItem(result, k, item)
    return result


@native
def put_history(how: ptr[Recording], node: raw, outs: ptr[raw], count: i64) -> bool:
    """Tells the results which node has made them; False with an exception."""
    for k in range(count):
        if how.results >> k & 1 != 0:
            t = ptr[TensorObject](outs[k])
            old_fn, old_rg = t.fn, t.rg
            Py_IncRef(node)
            t.fn = node
            Py_IncRef(raw(TRUE))
            t.rg = raw(TRUE)
            Py_DecRef(old_fn)
            Py_DecRef(old_rg)
            if k > 0:
                number = PyLong_FromLongLong(k)
                if number is None:
                    return False
                old_nr = t.nr
                t.nr = number
                Py_DecRef(old_nr)
    return True


@native(export=True, level="O2")
def attach(
    how: ptr[Recording], plan: raw, operands: ptr[raw], values: raw, mask: i64, outs: ptr[raw],
    count: i64,
) -> bool:  # fmt: skip
    """Records a call by that plan on its results; False with an exception. `values` is a tuple of
    the call's run-time numbers, whose reference it takes over."""
    if mask == 0:
        Py_DecRef(values)
        return True
    kept = ref(how.kept[mask - 1])
    edges = edges_of(how, operands)
    saved = saved_of(kept, operands, outs)
    seq = new_number()
    result = raw(0)
    if edges is not None and saved is not None and seq is not None:
        result = new_object(NODE)
    if result is None:
        drop_one(edges)
        drop_one(saved)
        drop_one(seq)
        Py_DecRef(values)
        return False
    node = ptr[NodeObject](result)
    node.edges = edges
    node.saved = saved
    node.seq = seq
    node.values = values
    node.plan = new_reference(plan)
    node.op = new_reference(how.op)
    node.mask = new_reference(kept.mask)
    hold(raw(NONE), 2)
    node.hooks = raw(NONE)
    node.stack = raw(NONE)
    ok = put_history(how, result, outs, count)
    Py_DecRef(result)
    return ok


def storage_of(plan: Plan) -> Storage | None:
    """A Recording of what is known of the plan by now; None for one that no graph records."""
    if plan.rule is None:
        return None
    results = 1
    if len(plan.outs) > 1:
        kinds = [layout.dtype.kind in "fc" for layout in plan.outs]
        results = sum([1 << k for k, real in enumerate(kinds) if real])
    words = [id(plan.op), id(plan), len(plan.tensors), plan.rule.mask & MASKS, results]
    owners: list[object] = [plan.op, plan]
    few = len(plan.tensors) <= MOST_OPERANDS and len(plan.outs) <= MOST_SAVED
    for mask in range(1, MASKS + 1):
        kept = plan.keeps.get(mask)
        served = few and kept is not None and len(kept) <= MOST_SAVED
        which = kept if kept is not None and served else ()
        owners.append(mask)
        words += [0 if kept is None else id(mask), len(which) if served else -1]
        words += [*which, *[0] * MOST_SAVED][:MOST_SAVED]
    return words_in_memory(words, *owners)
