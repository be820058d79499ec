"""Nodes in the native backward pass: the gradients of one, by replay or by the Python rule.

A plan's ``replays`` is a table of its ``ops.kinds.replay.Replay``s in words (``promote``), which
owns what it names. A replay is used only where all that arrives and all that was saved lies as it
was noted for, and nothing saved was written to since; else ``gradients_of`` does the work, and
raises what there is to raise.
"""

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
    ref,
    struct,
)
from antorcha.runtime.call.native.dealloc import NodeObject
from antorcha.runtime.call.native.layout_sizes import has_dims
from antorcha.runtime.call.native.layouts import add_form
from antorcha.runtime.call.native.plans import PlanObject, plan_type
from antorcha.runtime.call.native.promote_sizes import sized_of
from antorcha.runtime.call.native.record import MOST_SAVED
from antorcha.runtime.call.native.sized import (
    OutlineWork,
    Sized,
    drop_parts,
    evaluate,
    prepare,
    sizes_of,
)
from antorcha.runtime.call.native.tables import MOST, PendingNode
from antorcha.runtime.call.native.tensors import TensorObject, is_whole, tensor_at
from antorcha.runtime.call.node import RELEASED, Node
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.cpython import (
    FALSE,
    NONE,
    Py_DecRef,
    Py_IncRef,
    PyErr_Clear,
    PyList_GetItem,
    PyList_New,
    PyList_SetItem,
    PyList_Size,
    PyObject_Vectorcall,
    PyTuple_GetItem,
    PyTuple_Size,
    drop_all,
    int_type,
    integer,
    list_type,
    tuple_type,
    type_of,
)
from antorcha.runtime.memory.storage import Storage, StorageObject, storage_type
from antorcha.runtime.objects import padded, words_in_memory
from antorcha.runtime.sequence import (
    SMALL,
    SequenceProgram,
    begin,
    end,
    let_go_of,
    perform,
    places_for,
    result_places,
)

if TYPE_CHECKING:
    from antorcha.ops.kinds.replay import Replay
    from antorcha.ops.kinds.replay_sizes import GradientOutline
    from antorcha.runtime.call.outline import Outline

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
class KnownForms:
    """A GradientOutline, and the nodes that it is for."""

    mask: i64
    forms: array[raw, MOST]  # of the layouts of what arrives; null where nothing does
    sized: raw  # its storage: a Sized
    saved: i64
    saved_at: array[i64, MOST_SAVED]  # operand k, result -1 - k, or NOT_SAVED
    operands: i64
    gradients: array[i64, MOST]  # NOTHING, a result's number, or MADE


@struct
class Gradient:
    what: i64  # NOTHING, a result's number (its gradient as it came), or MADE
    layout: raw


NOTHING, MADE = -1, -2
NOT_SAVED = 1 << 30
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
def replay_for(node: ptr[NodeObject], p: ptr[PendingNode]) -> raw:
    """The replay for what has arrived (borrowed), or null."""
    table = ptr[PlanObject](node.plan).replays
    if table is None or type_of(table) != storage_type[0]:
        return None
    words = ptr[i64](ptr[StorageObject](table).ptr)
    mask = integer(node.mask)
    for k in range(words[0]):
        known = ptr[Known](words + 2) + k
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
def wanted_places(p: ptr[PendingNode], layouts: ptr[raw], saved: i64, values: i64) -> i64:
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
    node: ptr[NodeObject], p: ptr[PendingNode], layouts: ptr[raw], saved: i64, places: ptr[raw],
    given: i64,
) -> bool:  # fmt: skip
    """Puts the arguments of the sequence into its places, of which there are `given`; False: they
    are not as it expects. layouts: of what was saved."""
    kept, values = node.saved, node.values
    if values is None or type_of(values) != raw(tuple_type):
        return False
    if wanted_places(p, layouts, saved, PyTuple_Size(values)) != given:
        return False
    if saved == 0:
        if type_of(kept) != raw(tuple_type) or PyTuple_Size(kept) != 0:
            return False
    elif type_of(kept) != raw(list_type) or PyList_Size(kept) != saved:
        return False
    at = i64(0)
    for k in range(MOST):
        if p.grads[k] is not None:
            g = ptr[TensorObject](p.grads[k])
            at = put_tensor(places, at, g.storage, g.offset)
    for k in range(saved):
        if at >= 0:
            at = put_saved(PyList_GetItem(kept, k), layouts[k], places, at)
    if at < 0:
        return False
    for k in range(PyTuple_Size(values)):
        places[at + k] = PyTuple_GetItem(values, k)
    return True


@native
def take_gradients(
    at: ptr[i64], gradients: ptr[Gradient], count: i64, p: ptr[PendingNode], places: ptr[raw],
    found: ptr[raw],
) -> bool:  # fmt: skip
    """The gradients of so many operands, as tensors, where a sequence has run whose results begin
    at `at`; False with an exception."""
    for k in range(count):
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
def run_program(
    node: ptr[NodeObject], p: ptr[PendingNode], program: ptr[SequenceProgram], layouts: ptr[raw],
    saved: i64, gradients: ptr[Gradient], count: i64, found: ptr[raw],
) -> i64:  # fmt: skip
    """The gradients of the node's operands, in `found`, by a sequence, for what was saved with
    these layouts."""
    small = local(raw, SMALL)
    places = places_for(program, small)
    if places is None:
        return ERROR
    what = i64(NOT_HERE)
    if fill_places(node, p, layouts, saved, places, program.given):
        begin(program, places)
        what = ERROR
        done = perform(program, places)
        if done and take_gradients(result_places(program), gradients, count, p, places, found):
            what = DONE
        end(program, places)
    let_go_of(places, small)
    return what


@native
def run_replay(node: ptr[NodeObject], p: ptr[PendingNode], replay: raw, found: ptr[raw]) -> i64:
    """The gradients of the node's operands, in `found`, by a replay."""
    words = ptr[ReplayWords](ptr[StorageObject](replay).ptr)
    program = ptr[SequenceProgram](ptr[StorageObject](words.program).ptr)
    if words.operands != PyTuple_Size(node.edges):
        return NOT_HERE
    layouts = ptr[raw](words + 1)
    gradients = ptr[Gradient](layouts + words.saved)
    return run_program(node, p, program, layouts, words.saved, gradients, words.operands, found)


# ---- at sizes never met
@native
def forms_and_sizes(
    node: ptr[NodeObject], p: ptr[PendingNode], forms: ptr[raw], work: ptr[OutlineWork]
) -> i64:
    """The forms of what arrives, and how many numbers there are, in `work`: the call's, then what
    arrives has. 0: it is not for here."""
    numbers = ptr[PlanObject](node.plan).numbers
    if numbers is None or type_of(numbers) != raw(tuple_type):
        return 0
    count = local(i64)
    count[0] = sizes_of(numbers, ref(work.values[0]))
    if count[0] < 0:
        return 0
    for k in range(MOST):
        forms[k] = None
        g = p.grads[k]
        if g is not None:
            layout = ptr[TensorObject](g).layout
            if has_dims(layout):
                forms[k] = add_form(layout, ref(work.values[0]), count)
            if forms[k] is None:
                return 0
    return count[0]


@native
def is_for(known: ptr[KnownForms], node: ptr[NodeObject], forms: ptr[raw]) -> bool:
    """Is it for a node's mask, and for what arrives?"""
    same = known.mask == integer(node.mask) and known.operands == PyTuple_Size(node.edges)
    for k in range(MOST):
        same = same and known.forms[k] == forms[k]
    return same


@native
def run_sized(
    node: ptr[NodeObject], p: ptr[PendingNode], known: ptr[KnownForms], work: ptr[OutlineWork],
    found: ptr[raw],
) -> i64:  # fmt: skip
    """The gradients of the node's operands, in `found`, by the words in `work`."""
    sized = ptr[Sized](ptr[StorageObject](known.sized).ptr)
    result = local(raw, MOST)
    if not prepare(sized, work, result):
        return NOT_HERE
    plan = ptr[PlanObject](node.plan)
    layouts = local(raw, MOST_SAVED)
    for k in range(known.saved):
        at = known.saved_at[k]
        layouts[k] = None
        if at < 0:
            layouts[k] = PyTuple_GetItem(plan.outs, -1 - at)
        elif at != NOT_SAVED:
            layouts[k] = PyTuple_GetItem(plan.tensors, at)
    gradients = local(Gradient, MOST)
    next_made = i64(0)
    for k in range(known.operands):
        gradients[k].what = known.gradients[k]
        if known.gradients[k] == MADE:
            gradients[k].layout = result[next_made]
            next_made += 1
    if sized.parts == 0:
        what = ERROR
        if take_gradients(ptr[i64](raw(0)), gradients, known.operands, p, result, found):
            what = DONE
    else:
        program = ptr[SequenceProgram](ptr[StorageObject](work.parts[sized.parts - 1]).ptr)
        what = run_program(node, p, program, layouts, known.saved, gradients, known.operands, found)
        if what == ERROR:  # Python does it again, and says what is wrong
            drop_all(found, known.operands)
            for k in range(known.operands):
                found[k] = None
            PyErr_Clear()
            what = NOT_HERE
    drop_parts(work)
    drop_all(result, sized.results)
    return what


@native(export=True, level="O2")
def gradients_by_sizes(node: ptr[NodeObject], p: ptr[PendingNode], found: ptr[raw]) -> i64:
    """The gradients of the node's operands, in `found`, where its plan knows how to find them from
    its sizes."""
    table = ptr[PlanObject](node.plan).replays
    if table is None or type_of(table) != storage_type[0]:
        return NOT_HERE
    words = ptr[i64](ptr[StorageObject](table).ptr)
    if words[1] == 0:
        return NOT_HERE
    work = local(OutlineWork)
    forms = local(raw, MOST)
    what = i64(NOT_HERE)
    Py_IncRef(table)  # finding a form may run any code
    count = forms_and_sizes(node, p, forms, work)
    first = ptr[KnownForms](ptr[Known](words + 2) + words[0])
    for k in range(words[1]):
        if what == NOT_HERE and count > 0 and is_for(first + k, node, forms):
            sized = ptr[Sized](ptr[StorageObject]((first + k).sized).ptr)
            if sized.given == count and evaluate(sized, work):
                what = run_sized(node, p, first + k, work, found)
    Py_DecRef(table)
    return what


@native(export=True)
def run_python(node: raw, edges: raw, p: ptr[PendingNode], outs: i64, found: ptr[raw]) -> i64:
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
def are_whole(p: ptr[PendingNode]) -> bool:
    whole = True
    for k in range(MOST):
        whole = whole and (p.grads[k] is None or is_whole(p.grads[k]))
    return whole


@native
def gradients(o: raw, edges: raw, p: ptr[PendingNode], found: ptr[raw]) -> i64:
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
        else:
            what = gradients_by_sizes(node, p, found)
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
    saved = [0 if layout is None else id(layout) for layout in replay.layouts]
    words = [id(replay.sequence), len(saved), len(replay.gradients), *saved]
    for what in replay.gradients:
        if what is None:
            words += (NOTHING, 0)
        elif type(what) is int:
            words += (what, 0)
        else:
            words += (MADE, id(what))
    return words_in_memory(words, replay.sequence, replay.layouts, replay.gradients)


def promote(plan: Plan) -> None:
    """Tells the plan's nodes of its replays, as many as are worth looking through."""
    plan.replays = _table(list(plan.vjp.items()), plan.outline)  # (other threads may add to it)


def promote_kind(outline: Outline) -> None:
    """Tells the nodes of plans by outline, from now on, how gradients follow from sizes."""
    outline.plan.replays = _table([], outline)


def _table(replays: list[tuple[Any, Any]], outline: Outline | None) -> Storage:
    """The words that `replay_for` and `gradients_by_sizes` read."""
    words: list[Any] = [0, 0]
    owners: list[Any] = []
    for key, replay in replays:
        if not hasattr(replay, "gradients") or len(key) - 1 > MOST or words[0] == MOST:
            continue
        mask, *layouts = key
        if len(replay.gradients) > MOST:
            continue
        owners += (words_of(replay), *layouts)
        words[0] += 1
        words += [mask, *padded([0 if layout is None else id(layout) for layout in layouts], MOST)]
        words.append(id(owners[-1 - len(layouts)]))
    for key, kind in [] if outline is None else list(outline.gradients.items()):
        for each in kind.found:
            known = _known_forms(key, each)
            if known is not None:
                words[1] += 1
                words += known
                owners += (key, each, each.outline.machine)
    return words_in_memory(words, *owners)


def _known_forms(key: Any, each: GradientOutline) -> list[int] | None:
    """The words of a KnownForms; None: machine code cannot do it."""
    block = sized_of(each.outline)
    mask, *forms = key
    few = len(forms) <= MOST and len(each.saved) <= MOST_SAVED and len(each.gradients) <= MOST
    if block is None or not few or (not each.outline.plan.outs and each.saved):
        return None
    saved = [NOT_SAVED if at is None else at for at in each.saved]
    gradients = [NOTHING if g is None else g if type(g) is int else MADE for g in each.gradients]
    return [
        mask, *padded([0 if form is None else id(form) for form in forms], MOST), id(block),
        len(saved), *padded(saved, MOST_SAVED), len(gradients), *padded(gradients, MOST),
    ]  # fmt: skip


def install(gradients_of: Callable[..., Any]) -> None:
    """Tells the machine code what nodes are."""
    node_type.refer_to(Node)
    released.refer_to(RELEASED)
    python_gradients.refer_to(gradients_of)
