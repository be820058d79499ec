"""How tensors and nodes begin and end: dead ones are kept for the next, and nothing recurses.

The interpreter's own way to free an instance of a Python class looks at much that a Tensor or a
Node does not have; it is left to it when one of them does: attributes of its own, a finalizer, a
class of the user's. Everything else is freed here, in the slot ``tp_dealloc`` of the two classes.

Owns, for each of the two, a list of dead objects (untracked, every field null, with their type's
reference), linked by their first field; and the list of those that wait to be freed: when one
object's end ends another, and so on, DEEPEST times, the next ones wait for the outermost, so that a
chain of any length takes no stack. While they wait they are untracked, and the two words of their
collector's header are the link and the kind.

(A subclass's objects are freed by the interpreter, which at the end calls what stands in the slot
of the class that we know: so they come here, too, but are not kept.)
"""

from __future__ import annotations

import weakref
from typing import Any

from antorcha.lang.native import (
    Global,
    array,
    func,
    i64,
    inline,
    memset,
    native,
    ptr,
    raw,
    static,
    struct,
    u8,
    void,
)
from antorcha.runtime.call.native import slots
from antorcha.runtime.call.native.freelist import drop_number, drop_tuple
from antorcha.runtime.call.node import Node
from antorcha.runtime.cpython import (
    HEADER,
    NONE,
    TYPE_WORD,
    Py_DecRef,
    Py_IncRef,
    PyObject_ClearWeakRefs,
    PyObject_GC_Del,
    PyObject_GC_Track,
    PyObject_GC_UnTrack,
    revive,
    type_of,
    unhold,
)
from antorcha.runtime.objects import PyType_GenericAlloc, field_offset, maker
from antorcha.runtime.tensor import Parameter, Tensor

dealloc_t = func[void, raw]
DEALLOC, FINALIZE = 48, 392
"""Bytes from the beginning of a type object to these fields."""
DICT, BESIDE = 24, 32
"""Bytes before an object of a class with a dictionary: two words, null while it has none (the other
is of its attributes or of its weak references)."""
LINK, KIND = 16, 8
"""Bytes before an object: the two words of the collector's header."""
TENSOR, NODE = 0, 1
FIELDS = (10, 9)  # of a Tensor and a Node: they follow the head of the object
OPTIONAL = (0, 1, 2, 3)
"""A Tensor's fields that are None outside of a graph: base, extra, fn, grad."""
EDGES, SEQ = 0, 6
"""A Node's fields that are kept for others: see ``spares``."""
KEEP = 512
DEEPEST = 40


@struct
class NodeObject:
    """A Node's fields, every one an object; null is a field that is not set."""

    head: array[u8, HEADER]
    edges: raw
    hooks: raw
    mask: raw
    op: raw
    plan: raw
    saved: raw
    seq: raw
    stack: raw
    values: raw


@struct
class Life:
    """What is known of one of the two classes."""

    kind: raw
    spare: raw  # the first dead object
    count: i64
    weak: i64  # where the list of weak references is, from the object's beginning
    before: dealloc_t  # the interpreter's own way
    heir: raw  # a subclass, for objects that are to go that way


lives = Global("antorcha_lives", Life, 2)
depth = Global("antorcha_dealloc_depth", i64)
waiting = Global("antorcha_dealloc_waiting", raw)


@native
def new_object(what: i64) -> raw:
    """A new Tensor or Node without fields; null with an exception."""
    life = lives + what
    o = life.spare
    if o is None:
        return PyType_GenericAlloc(life.kind, 0)
    fields = ptr[raw](o + HEADER)
    life.spare = fields[0]
    life.count -= 1
    fields[0] = None
    revive(o)
    PyObject_GC_Track(o)
    return o


@inline
def drop_fields(held):
    """A Tensor's, of which half are most often None."""
    nothing = True
    for k in static(OPTIONAL):
        nothing = nothing and held[k] == raw(NONE)
    if nothing:
        unhold(raw(NONE), len(OPTIONAL))
    else:
        for k in static(OPTIONAL):
            Py_DecRef(held[k])
    for k in static(range(FIELDS[TENSOR])):
        if k not in OPTIONAL:
            Py_DecRef(held[k])


@native
def finish(o: raw, *, WHAT) -> void:
    """Frees an object that is untracked, and to which no weak reference leads."""
    fields = ptr[raw](o + HEADER)
    held = [fields[k] for k in static(range(FIELDS[WHAT]))]
    memset(fields, 0, 8 * FIELDS[WHAT])
    if WHAT == TENSOR:
        drop_fields(held)
    else:
        for k in static(range(FIELDS[WHAT])):
            if k == EDGES:
                drop_tuple(held[k])
            elif k == SEQ:
                drop_number(held[k])
            else:
                Py_DecRef(held[k])
    life = lives + WHAT
    kind = type_of(o)
    if kind == life.kind and life.count < KEEP:
        fields[0] = life.spare
        life.spare = o
        life.count += 1
    else:
        PyObject_GC_Del(o)
        Py_DecRef(kind)


@native(export=True)
def finish_waiting() -> void:
    while waiting[0] is not None:
        o = waiting[0]
        what = ptr[i64](o - KIND)[0]
        waiting[0] = ptr[raw](o - LINK)[0]
        ptr[raw](o - LINK)[0] = None
        ptr[i64](o - KIND)[0] = 0
        depth[0] += 1
        if what == TENSOR:
            finish(o, WHAT=TENSOR)
        else:
            finish(o, WHAT=NODE)
        depth[0] -= 1


@native
def become(o: raw, kind: raw) -> void:
    """Makes it an object of another class of the same layout."""
    old = type_of(o)
    Py_IncRef(kind)
    ptr[raw](o)[TYPE_WORD] = kind
    Py_DecRef(old)


@native(level="O2")
def dealloc(o: raw, *, WHAT) -> void:
    life = lives + WHAT
    if WHAT == TENSOR and type_of(o) == life.kind:
        own = ptr[raw](o - DICT)[0] is not None or ptr[raw](o - BESIDE)[0] is not None
        if own or ptr[raw](life.kind + FINALIZE)[0] is not None:
            become(o, life.heir)  # whose objects the interpreter frees, all but what is ours
            life.before(o)
            return
    PyObject_GC_UnTrack(o)
    if ptr[raw](o + life.weak)[0] is not None:
        PyObject_ClearWeakRefs(o)
    if depth[0] >= DEEPEST:
        ptr[i64](o - KIND)[0] = WHAT
        ptr[raw](o - LINK)[0] = waiting[0]
        waiting[0] = o
        return
    depth[0] += 1
    finish(o, WHAT=WHAT)
    depth[0] -= 1
    if depth[0] == 0 and waiting[0] is not None:
        finish_waiting()


# ---- setting up
class _Probe:
    __slots__ = ("__dict__", "__weakref__", "field")


def _word(o: Any, offset: int) -> int:
    return slots.word(id(o) + offset).value


def why_not() -> str:
    """What is not as this file says; empty when all is."""
    for name, (offset, _) in NodeObject.fields.items():
        if name != "head" and field_offset(Node, name) != offset:
            return f"Node.{name} is elsewhere"
    make = maker(_Probe, ("field",), {})
    for cls in (_Probe, Node, Tensor):
        if _word(cls, DEALLOC) != _word(Parameter, DEALLOC):
            return "the slot of deallocation is elsewhere"
    ends = type("Ends", (), {"__slots__": (), "__del__": lambda self: None})
    if not _word(ends, FINALIZE) or _word(_Probe, FINALIZE):
        return "the slot of finalizers is elsewhere"
    result = make(1)
    if _word(result, -DICT) or _word(result, -BESIDE):
        return "the dictionary of an object is elsewhere"
    result.attribute = 1
    if not (_word(result, -DICT) or _word(result, -BESIDE)):
        return "the dictionary of an object is elsewhere"
    result = make(1)
    node = maker(Node, (), {})()
    for each in (result, node):
        at = type(each).__weakrefoffset__
        if _word(each, at):
            return "the weak references of an object are elsewhere"
        reference = weakref.ref(each)
        if _word(each, at) != id(reference):
            return "the weak references of an object are elsewhere"
    return ""


def install() -> None:
    """Puts `dealloc` into the classes."""
    for what, (cls, heir) in enumerate(((Tensor, Parameter), (Node, Node))):
        known = {
            "kind": id(cls), "weak": cls.__weakrefoffset__, "heir": id(heir),
            "before": _word(cls, DEALLOC),
        }  # fmt: skip
        for name, value in known.items():
            at = lives.addr + what * Life.size + Life.fields[name][0]
            slots.word(at).value = value
        slots.word(id(cls) + DEALLOC).value = dealloc.spec(WHAT=what).addr
