"""Nodes in the native backward pass: the gradients of one, by replay or by the Python rule.

A plan's ``replays`` is a table of its ``ops.replay.Replay``s in words (``teach``), which owns what
it names. A replay is used only where all that arrives and all that was saved lies as it was noted
for, and nothing saved was written to since; else ``gradients_of`` does the work, and raises what
there is to raise.
"""

# Native functions are in the kernel language, whose types are values: mypy cannot read them.
# mypy: disable-error-code="valid-type,arg-type,attr-defined,index,misc"
# mypy: allow-untyped-defs, allow-incomplete-defs, no-warn-return-any, no-warn-no-return
# mypy: no-warn-unreachable

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
    struct,
)
from antorcha.runtime.call.native.life import NodeObject
from antorcha.runtime.call.native.plans import PlanObject, plan_type
from antorcha.runtime.call.native.tables import MOST, Pending
from antorcha.runtime.call.native.tensors import TensorObject, is_whole, tensor_at
from antorcha.runtime.call.node import RELEASED, Node
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.cpython import (
    FALSE,
    NONE,
    Py_DecRef,
    Py_IncRef,
    PyList_GetItem,
    PyList_New,
    PyList_SetItem,
    PyList_Size,
    PyObject_Vectorcall,
    PyTuple_GetItem,
    PyTuple_Size,
    int_type,
    integer,
    list_type,
    tuple_type,
    type_of,
)
from antorcha.runtime.objects import words_in_memory
from antorcha.runtime.sequence import (
    SMALL,
    Program,
    begin,
    end,
    let_go_of,
    perform,
    places_for,
    result_places,
)
from antorcha.runtime.storage import Storage, StorageObject, storage_type

if TYPE_CHECKING:
    from antorcha.ops.replay import Replay

PySequence_GetItem = Extern("PySequence_GetItem", raw, raw, i64)
PyObject_IsTrue = Extern("PyObject_IsTrue", i32, raw)
PyType_IsSubtype = Extern("PyType_IsSubtype", i32, raw, raw)


@struct
class Known:
    """A replay, and the nodes of the plan that it is for."""

    mask: i64
    layouts: array[raw, MOST]  # of what arrives; null where nothing does
    replay: raw  # its storage


@struct
class ReplayWords:
    """The head of a replay. Then follow the layouts of what was saved, and a Gradient for each
    operand."""

    program: raw  # the storage of its sequence
    saved: i64
    operands: i64


@struct
class Gradient:
    what: i64  # NOTHING, a result's number (its gradient as it came), or MADE
    layout: raw


NOTHING, MADE = -1, -2
DONE, ERROR, NOT_HERE = 0, 1, 2
node_type = Global("antorcha_node_type", raw)
released = Global("antorcha_released", raw)
python_gradients = Global("antorcha_gradients_of", raw)


@native
def is_node(o: raw) -> bool:
    kind = type_of(o)
    return kind == node_type[0] or PyType_IsSubtype(kind, node_type[0]) != 0


@native
def outs_of(node: ptr[NodeObject]) -> i64:
    """How many results its call had; below 0: not for here."""
    if node.plan is None or type_of(node.plan) != plan_type[0]:
        return -1
    outs = ptr[PlanObject](node.plan).outs
    if outs is None or type_of(outs) != raw(tuple_type) or PyTuple_Size(outs) > MOST:
        return -1
    return PyTuple_Size(outs)


@native
def is_plain_node(node: ptr[NodeObject]) -> bool:
    """Is it one that this engine can run?"""
    if node.hooks != raw(NONE) or node.edges is None or type_of(node.edges) != raw(tuple_type):
        return False
    if node.mask is None or type_of(node.mask) != raw(int_type):
        return False
    return outs_of(node) >= 0 and node.saved is not None


@native
def replay_for(node: ptr[NodeObject], p: ptr[Pending]) -> raw:
    """The replay for what has arrived (borrowed), or null."""
    table = ptr[PlanObject](node.plan).replays
    if table is None or type_of(table) != storage_type[0]:
        return None
    words = ptr[i64](ptr[StorageObject](table).ptr)
    mask = integer(node.mask)
    for k in range(words[0]):
        known = ptr[Known](words + 1) + k
        same = known.mask == mask
        for j in range(MOST):
            g = p.grads[j]
            if g is None:
                same = same and known.layouts[j] is None
            else:
                same = same and ptr[TensorObject](g).layout == known.layouts[j]
        if same:
            return known.replay
    return None


@native
def put_tensor(places: ptr[raw], at: i64, storage: raw, offset: raw) -> i64:
    places[at] = storage
    places[at + 1] = offset
    return at + 2


@native
def put_saved(item: raw, layout: raw, places: ptr[raw], at: i64) -> i64:
    """Puts a saved tensor into its places; -1: it is not as the replay expects it."""
    if layout is None:
        return at if item == raw(NONE) else -1
    if type_of(item) != raw(tuple_type) or PyTuple_Size(item) != 4:
        return -1
    storage = PyTuple_GetItem(item, 1)
    version = PyTuple_GetItem(item, 3)
    if PyTuple_GetItem(item, 0) != layout or type_of(storage) != storage_type[0]:
        return -1
    if type_of(version) != raw(int_type):
        return -1
    if integer(version) != ptr[StorageObject](storage).version:
        return -1
    return put_tensor(places, at, storage, PyTuple_GetItem(item, 2))


@native
def wanted_places(p: ptr[Pending], layouts: ptr[raw], saved: i64, values: i64) -> i64:
    count = values
    for k in range(MOST):
        if p.grads[k] is not None:
            count += 2
    for k in range(saved):
        if layouts[k] is not None:
            count += 2
    return count


@native
def fill_places(
    node: ptr[NodeObject], p: ptr[Pending], words: ptr[ReplayWords], places: ptr[raw], given: i64
) -> bool:
    """Puts the arguments of the sequence into its places; False: they are not as it expects."""
    layouts = ptr[raw](words + 1)
    saved, values = node.saved, node.values
    if values is None or type_of(values) != raw(tuple_type):
        return False
    if wanted_places(p, layouts, words.saved, PyTuple_Size(values)) != given:
        return False
    if words.saved == 0:
        if type_of(saved) != raw(tuple_type) or PyTuple_Size(saved) != 0:
            return False
    elif type_of(saved) != raw(list_type) or PyList_Size(saved) != words.saved:
        return False
    at = i64(0)
    for k in range(MOST):
        if p.grads[k] is not None:
            g = ptr[TensorObject](p.grads[k])
            at = put_tensor(places, at, g.storage, g.offset)
    for k in range(words.saved):
        if at >= 0:
            at = put_saved(PyList_GetItem(saved, k), layouts[k], places, at)
    if at < 0:
        return False
    for k in range(PyTuple_Size(values)):
        places[at + k] = PyTuple_GetItem(values, k)
    return True


@native
def take_gradients(
    program: ptr[Program], words: ptr[ReplayWords], p: ptr[Pending], places: ptr[raw],
    found: ptr[raw],
) -> bool:  # fmt: skip
    """The gradients of a sequence that has run, as tensors; False with an exception."""
    at = result_places(program)
    gradients = ptr[Gradient](ptr[raw](words + 1) + words.saved)
    for k in range(words.operands):
        each = gradients + k
        if each.what == MADE:
            found[k] = tensor_at(each.layout, places[at[0]], places[at[1]])
            if found[k] is None:
                return False
            at = at + 2
        elif each.what >= 0:
            found[k] = p.grads[each.what]
            if found[k] is not None:
                Py_IncRef(found[k])
    return True


@native
def run_replay(node: ptr[NodeObject], p: ptr[Pending], replay: raw, found: ptr[raw]) -> i64:
    """The gradients of the node's operands, in `found`, by a sequence."""
    words = ptr[ReplayWords](ptr[StorageObject](replay).ptr)
    program = ptr[Program](ptr[StorageObject](words.program).ptr)
    if words.operands != PyTuple_Size(node.edges):
        return NOT_HERE
    small = local(raw, SMALL)
    places = places_for(program, small)
    if places is None:
        return ERROR
    what = i64(NOT_HERE)
    if fill_places(node, p, words, places, program.given):
        begin(program, places)
        what = ERROR
        if perform(program, places) and take_gradients(program, words, p, places, found):
            what = DONE
        end(program, places)
    let_go_of(places, small)
    return what


@native
def run_python(node: raw, edges: raw, p: ptr[Pending], outs: i64, found: ptr[raw]) -> i64:
    """The same by ``gradients_of(node, [gradient, ..], False)``."""
    given = PyList_New(outs)
    if given is None:
        return ERROR
    for k in range(outs):
        g = p.grads[k]
        if g is None:
            g = raw(NONE)
        Py_IncRef(g)
        PyList_SetItem(given, k, g)
    args = local(raw, 3)
    args[0] = node
    args[1] = given
    args[2] = raw(FALSE)
    results = PyObject_Vectorcall(python_gradients[0], args, 3, None)
    Py_DecRef(given)
    if results is None:
        return ERROR
    ok = True
    for k in range(PyTuple_Size(edges)):
        if ok and PyTuple_GetItem(edges, k) != raw(NONE):
            each = PySequence_GetItem(results, k)
            if each is None:
                ok = False
            elif each == raw(NONE):
                Py_DecRef(each)
            else:
                found[k] = each
    Py_DecRef(results)
    return DONE if ok else ERROR


@native
def are_whole(p: ptr[Pending]) -> bool:
    whole = True
    for k in range(MOST):
        whole = whole and (p.grads[k] is None or is_whole(p.grads[k]))
    return whole


@native
def gradients(o: raw, edges: raw, p: ptr[Pending], found: ptr[raw]) -> i64:
    """The gradients of a node's operands, in `found`."""
    node = ptr[NodeObject](o)
    outs = outs_of(node)
    plan = node.plan
    Py_IncRef(plan)  # while kernels run, another thread may do anything
    what = i64(NOT_HERE)
    if PyTuple_Size(edges) <= MOST and are_whole(p):
        replay = replay_for(node, p)
        if replay is not None:
            Py_IncRef(replay)
            what = run_replay(node, p, replay, found)
            Py_DecRef(replay)
    if what == NOT_HERE:
        what = run_python(o, edges, p, outs, found)
    Py_DecRef(plan)
    return what


@native
def release_saved(o: raw) -> bool:
    """The node serves once; False with an exception."""
    node = ptr[NodeObject](o)
    if node.saved is None:
        return True
    full = PyObject_IsTrue(node.saved)
    if full > 0:
        old = node.saved
        Py_IncRef(released[0])
        node.saved = released[0]
        Py_DecRef(old)
    return full >= 0


# ---- setting up
def words_of(replay: Replay) -> Storage:
    """A replay as this engine reads it."""
    saved = [0 if lay is None else id(lay) for lay in replay.layouts]
    words = [id(replay.sequence), len(saved), len(replay.gradients), *saved]
    for what in replay.gradients:
        if what is None:
            words += (NOTHING, 0)
        elif type(what) is int:
            words += (what, 0)
        else:
            words += (MADE, id(what))
    return words_in_memory(words, replay.sequence, replay.layouts, replay.gradients)


def teach(plan: Plan) -> None:
    """Tells the plan's nodes of its replays, as many as are worth looking through."""
    words = [0]
    owners: list[Any] = []
    for key, replay in list(plan.vjp.items()):  # (other threads may add to it)
        if not hasattr(replay, "gradients") or len(key) - 1 > MOST or words[0] == MOST:
            continue
        mask, *layouts = key
        if len(replay.gradients) > MOST:
            continue
        owners += (words_of(replay), *layouts)
        words[0] += 1
        words += [mask, *[0 if lay is None else id(lay) for lay in layouts]]
        words += [0] * (MOST - len(layouts))
        words.append(id(owners[-1 - len(layouts)]))
    plan.replays = words_in_memory(words, *owners)


def install(gradients_of: Callable[..., Any]) -> None:
    """Tells the machine code what nodes are."""
    node_type.refer_to(Node)
    released.refer_to(RELEASED)
    python_gradients.refer_to(gradients_of)
