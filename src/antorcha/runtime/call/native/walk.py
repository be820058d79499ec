"""The backward pass: ``autograd.engine.Walk`` in machine code, for the common case.

It walks nodes as that does, newest first, in the default mode and without ``create_graph``. Where
a node's gradients can be replayed (``ops.kinds.replay``), it runs the replay's sequence on what the
node saved; otherwise it calls ``gradients_of``. When it meets what only the Python engine does (a
node with hooks, a leaf with hooks, many results), it hands over all that it has so far, and the
Python engine goes on from there.

Owns, for the time of one pass (a ``Walk``, see ``walk``): references to every node that is to come
and every gradient on its way. Invariants: a node is in the heap once, and in the pool at the place
that the table says; what a table entry says holds only while the pool (or the list of leaves) has
that object there; leaves are written to at the very end, or, after an error, not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.lang.native import (
    Extern,
    Global,
    bind,
    i32,
    i64,
    inline,
    local,
    native,
    ptr,
    raw,
    ref,
    u32,
)
from antorcha.runtime import trace
from antorcha.runtime.call.native import nodes
from antorcha.runtime.call.native.checking import CHECKED, checked
from antorcha.runtime.call.native.dealloc import NodeObject
from antorcha.runtime.call.native.nodes import (
    DONE,
    ERROR,
    NOT_HERE,
    gradients,
    is_node,
    is_plain_node,
    release_saved,
)
from antorcha.runtime.call.native.tables import (
    MOST,
    PendingNode,
    Room,
    WalkState,
    add_leaf,
    begin_walk,
    end_walk,
    first_slot,
    leaf_of,
    new_pending,
    pending_of,
    pop_first,
)
from antorcha.runtime.call.native.tensors import TensorObject, is_whole
from antorcha.runtime.cpython import (
    FALSE,
    NONE,
    TRUE,
    Py_DecRef,
    Py_IncRef,
    PyList_New,
    PyList_SetItem,
    PyLong_AsLongLong,
    PyObject_Vectorcall,
    PyTuple_GetItem,
    PyTuple_New,
    PyTuple_SetItem,
    PyTuple_Size,
    complain,
    drop_all,
    drop_one,
    fast_def,
    int_type,
    integer,
    new_reference,
    pair_of,
    tuple_type,
    type_of,
)
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.storage import NO_MEMORY

PyList_Append = Extern("PyList_Append", i32, raw, raw)
PyErr_CheckSignals = Extern("PyErr_CheckSignals", i32)

SIGNALS = 256  # nodes between two looks at whether the user pressed Ctrl+C
python_accumulate = Global("antorcha_accumulate", raw)
python_sum = Global("antorcha_sum_of", raw)
ACCUMULATE = "torch::autograd::AccumulateGrad"
accumulate_label = Global("antorcha_accumulate_label", raw)


# ---- lists
@native
def append(items: raw, item: raw) -> bool:
    """Appends an item, whose reference it takes over; False with an exception."""
    if item is None:
        return False
    code = PyList_Append(items, item)
    Py_DecRef(item)
    return code == 0


@native
def own_or_none(o: raw) -> raw:
    if o is None:
        return new_reference(raw(NONE))
    return new_reference(o)


# ---- gradients on their way
@native
def sum_up(have: ptr[raw], g: raw) -> bool:
    """Adds a gradient, whose reference it takes over, to what is there; False with an exception."""
    if have[0] is None:
        have[0] = g
        return True
    args = local(raw, 2)
    args[0] = have[0]
    args[1] = g
    total = PyObject_Vectorcall(python_sum[0], args, 2, None)
    Py_DecRef(g)
    if total is None:
        return False
    old = have[0]
    have[0] = total
    Py_DecRef(old)
    return True


@native
def set_aside(w: ptr[WalkState], edge: raw, g: raw) -> bool:
    """Leaves a gradient, whose reference it takes over, to the Python engine; False with an
    exception."""
    if w.more is None:
        w.more = PyList_New(0)
    if w.more is None:
        Py_DecRef(g)
        return False
    return append(w.more, pair_of(own_or_none(edge), g))


@native
def add(w: ptr[WalkState], edge: raw, g: raw) -> bool:
    """Brings a gradient, whose reference it takes over, to where an edge leads; False with an
    exception."""
    to = edge
    nr = i64(0)
    if type_of(edge) == raw(tuple_type) and PyTuple_Size(edge) == 2:
        to = PyTuple_GetItem(edge, 0)
        nr = integer(PyTuple_GetItem(edge, 1))
    if not is_node(to):
        leaf = leaf_of(w, to)
        if leaf is None:
            leaf = add_leaf(w, to)
        if leaf is None:
            Py_DecRef(g)
            return False
        return sum_up(ref(leaf.grad), g)
    seq = ptr[NodeObject](to).seq
    if nr < 0 or nr >= MOST or seq is None or type_of(seq) != raw(int_type):
        return set_aside(w, edge, g)
    have = pending_of(w, to)
    if have is None:
        have = new_pending(w, to, PyLong_AsLongLong(seq))
    if have is None:
        Py_DecRef(g)
        return False
    return sum_up(ref(have.grads[nr]), g)


@native
def distribute(w: ptr[WalkState], edges: raw, found: ptr[raw], operands: i64) -> i64:
    """Brings gradients, whose references it takes over, to where the edges lead."""
    ok = True
    for k in range(operands):
        g = found[k]
        if g is not None and ok:
            edge = PyTuple_GetItem(edges, k)
            if edge != raw(NONE):
                found[k] = None
                ok = add(w, edge, g)
    drop_all(found, operands)
    return DONE if ok else ERROR


@native
def gradients_noted(o: raw, edges: raw, p: ptr[PendingNode], found: ptr[raw]) -> i64:
    """``nodes.gradients``, with a record of the profile around it."""
    op = ptr[NodeObject](o).op
    if op is None:
        op = raw(NONE)
    before = trace.held()
    begun = trace.clock()
    what = gradients(o, edges, p, found)
    trace.write(trace.NODE, new_reference(op), None, p.seq, begun, before)
    return what


@native(export=True, level="O2")
def step(w: ptr[WalkState], *, PROFILED) -> i64:
    """Runs the newest node."""
    p = local(PendingNode)
    pop_first(w, p)
    o = p.node
    edges = ptr[NodeObject](o).edges
    Py_IncRef(edges)
    operands = PyTuple_Size(edges)
    small = local(raw, MOST)
    found = small
    room = raw(0)
    what = i64(DONE)
    if operands > MOST:
        room = allocate(8 * operands)
        if room is None:
            complain(NO_MEMORY, NONE, NONE, 8 * operands)
            what = ERROR
        else:
            found = ptr[raw](room)
    if what == DONE:
        for k in range(operands):
            found[k] = None
        if PROFILED:
            what = gradients_noted(o, edges, p, found)
        else:
            what = gradients(o, edges, p, found)
        drop_all(p.grads, MOST)
        if what == DONE and w.keep == 0 and not release_saved(o):
            what = ERROR
        if what == DONE:
            what = distribute(w, edges, found, operands)
        else:
            drop_all(found, operands)
    drop_all(p.grads, MOST)
    if room is not None:
        release(room)
    Py_DecRef(edges)
    Py_DecRef(o)
    return what


# ---- the end
@inline
def references(o):
    """How many there are to an object (all that count: fewer than 2**32)."""
    return ptr[u32](o)[0]


@native
def put_grad(o: raw, g: raw) -> bool:
    """Gives a leaf without a gradient this one, if nobody else holds it; takes it over then."""
    leaf, t = ptr[TensorObject](o), ptr[TensorObject](g)
    if not is_whole(o) or not is_whole(g) or leaf.grad != raw(NONE) or t.layout != leaf.layout:
        return False
    if references(g) != u32(1) or references(t.storage) != u32(1):
        return False
    old = leaf.grad
    leaf.grad = g
    Py_DecRef(old)
    return True


@native(export=True, level="O2")
def deliver(w: ptr[WalkState], *, PROFILED) -> i64:
    """Adds the sums to the leaves."""
    args = local(raw, 3)
    args[2] = raw(FALSE)
    what = i64(DONE)
    for k in range(w.leaves_count):
        each = w.leaves + k
        before = i64(0)
        begun = i64(0)
        if PROFILED:
            before = trace.held()
            begun = trace.clock()
        if what == DONE and not put_grad(each.leaf, each.grad):
            args[0] = each.leaf
            args[1] = each.grad
            done = PyObject_Vectorcall(python_accumulate[0], args, 3, None)
            if done is None:
                what = ERROR
            else:
                Py_DecRef(done)
                Py_DecRef(each.grad)
        if what == DONE:
            each.grad = None
        if PROFILED:
            trace.write(trace.BLOCK, new_reference(accumulate_label[0]), None, -1, begun, before)
    return what


@native
def have_hooks(w: ptr[WalkState]) -> bool:
    """Has a leaf more to it than to add up?"""
    for k in range(w.leaves_count):
        leaf = (w.leaves + k).leaf
        if not is_whole(leaf) or ptr[TensorObject](leaf).extra != raw(NONE):
            return True
    return False


@native(export=True)
def handed_over(w: ptr[WalkState]) -> raw:
    """([(node, [gradient or None, ..]), ..], [(leaf, gradient), ..], [(edge, gradient), ..]); null
    with an exception."""
    nodes = PyList_New(0)
    leaves = PyList_New(0)
    ok = nodes is not None and leaves is not None
    for slot in range(w.pool_used):
        p = w.pool + slot
        if ok and p.node is not None:
            grads = PyList_New(MOST)
            if grads is None:
                ok = False
            else:
                for k in range(MOST):
                    PyList_SetItem(grads, k, own_or_none(p.grads[k]))
                Py_IncRef(p.node)
                ok = append(nodes, pair_of(p.node, grads))
    for k in range(w.leaves_count):
        each = w.leaves + k
        if ok:
            ok = append(leaves, pair_of(own_or_none(each.leaf), own_or_none(each.grad)))
    more = w.more
    w.more = None
    if more is None and ok:
        more = PyList_New(0)
    result = raw(0)
    if ok and more is not None:
        result = PyTuple_New(3)
    if result is None:
        drop_one(nodes)
        drop_one(leaves)
        drop_one(more)
        return result
    PyTuple_SetItem(result, 0, nodes)
    PyTuple_SetItem(result, 1, leaves)
    PyTuple_SetItem(result, 2, more)
    return result


@native
def go(w: ptr[WalkState], *, PROFILED) -> i64:
    """Runs nodes until there are none, or one is not for here (NOT_HERE; it is still to come)."""
    what = i64(DONE)
    count = i64(0)
    while what == DONE and w.heap_count > 0:
        first = first_slot(w)
        if w.more is not None or not is_plain_node(ptr[NodeObject](first.node)):
            return NOT_HERE
        what = step(w, PROFILED=PROFILED)
        count += 1
        if count % SIGNALS == 0 and what == DONE and PyErr_CheckSignals() != 0:
            what = ERROR
    return what


@native(level="O2")
def py_walk(_self: raw, args: ptr[raw], nargs: i64, *, PROFILED=False) -> raw:
    """(keep the graph?, edge, gradient, edge, gradient, ..), checked by ``backward``: None when all
    is done, else what is `handed_over`."""
    w = local(WalkState)
    room = local(Room)
    begin_walk(w, room, i64(args[0] == raw(TRUE)))
    what = i64(DONE)
    k = i64(1)
    while what == DONE and k + 1 < nargs:
        Py_IncRef(args[k + 1])
        if not add(w, args[k], args[k + 1]):
            what = ERROR
        k += 2
    if what == DONE:
        what = go(w, PROFILED=PROFILED)
    if what == DONE and (w.more is not None or have_hooks(w)):
        what = NOT_HERE
    if what == DONE:
        what = deliver(w, PROFILED=PROFILED)
    result = raw(0)
    if what == DONE:
        result = raw(NONE)
        Py_IncRef(result)
    elif what == NOT_HERE:
        result = handed_over(w)
    end_walk(w)
    return checked(result) if CHECKED else result


def profiled() -> Callable[..., Any]:
    """``walk`` while a profile is on."""
    accumulate_label.refer_to(ACCUMULATE)
    result: Callable[..., Any] = bind(fast_def("walk", py_walk.spec(PROFILED=True).addr))
    return result


# ---- setting up
def install(
    gradients_of: Callable[..., Any], accumulate: Callable[..., Any], sum_of: Callable[..., Any]
) -> Callable[..., Any]:
    """Tells the machine code what the Python engine does by hand; gives ``walk``."""
    nodes.install(gradients_of)
    python_accumulate.refer_to(accumulate)
    python_sum.refer_to(sum_of)
    doc = "walk(keep, edge, gradient, ..): see ``py_walk``."
    result: Callable[..., Any] = bind(fast_def("walk", py_walk.spec().addr, doc))
    return result
