"""Spare parts of nodes: short tuples and ints of nodes that have ended, kept for the next.

Each node has a tuple of edges and an int that says when it was made, which nobody else holds, most
often: making and freeing them takes longer than what the node itself does. So the tuples of
LONGEST items at most are kept, by their length, untracked and with null items; and the ints, whose
value is written over. Nobody can see either, for what is held twice is not kept.

Owns what it keeps, MOST of each kind, and the number of the next node.
"""

from __future__ import annotations

import gc

from antorcha.lang.native import (
    Global,
    array,
    bind,
    i64,
    inline,
    native,
    ptr,
    raw,
    struct,
    u32,
    void,
)
from antorcha.runtime.call import node
from antorcha.runtime.call.native.slots import ITEMS
from antorcha.runtime.cpython import (
    HEADER,
    ONE_DIGIT,
    Py_DecRef,
    PyLong_FromLongLong,
    PyObject_GC_Track,
    PyObject_GC_UnTrack,
    PyTuple_New,
    fast_def,
    int_type,
    is_held_once,
    tuple_type,
    type_of,
)

LONGEST = 4
MOST = 64
SMALLEST = 1 << 10
"""From here on an int is an object of its own; those below may be everybody's."""
LARGEST = 1 << 30
"""Up to here an int has one digit."""
DIGIT = HEADER + 8
"""Bytes from the beginning of an int to its first digit."""
BARE = tuple.__basicsize__ == ITEMS
"""Has a tuple nothing but its length and its items? (Not where it knows its hash.)"""


@struct
class Spares:
    count: i64
    kept: array[raw, MOST]


tuples = Global("antorcha_spare_tuples", Spares, LONGEST + 1)
ints = Global("antorcha_spare_ints", Spares)
number = Global("antorcha_node_number", i64)  # of the last node


@inline
def pop(spares):
    spares.count -= 1
    return spares.kept[spares.count]


@inline
def push(spares, o):
    spares.kept[spares.count] = o
    spares.count += 1


@native
def new_tuple(count: i64) -> raw:
    """A tuple whose items are to be set; null with an exception."""
    if count <= LONGEST and tuples[count].count > 0:
        result = pop(tuples + count)
        PyObject_GC_Track(result)
        return result
    return PyTuple_New(count)


@native
def drop_tuple(o: raw) -> void:
    """Drops a reference to what is most often a tuple, and kept if nobody else holds it."""
    if o is None:
        return
    if type_of(o) == raw(tuple_type) and is_held_once(o) and BARE:
        count = ptr[i64](o + HEADER)[0]
        if count > 0 and count <= LONGEST and tuples[count].count < MOST:
            PyObject_GC_UnTrack(o)
            items = ptr[raw](o + ITEMS)
            for k in range(count):
                item = items[k]
                items[k] = None
                Py_DecRef(item)  # whose end may run any code: the tuple is nowhere meanwhile
            if tuples[count].count < MOST:
                push(tuples + count, o)
                return
    Py_DecRef(o)


@native
def new_number() -> raw:
    """The next node's number as an object; null with an exception."""
    number[0] += 1
    n = number[0]
    if ints.count > 0 and n < LARGEST:
        result = pop(ints)
        ptr[u32](result + DIGIT)[0] = u32(n)
        return result
    return PyLong_FromLongLong(n)


@native
def drop_number(o: raw) -> void:
    """Drops a reference to what is most often such a number."""
    if o is None:
        return
    if (
        ONE_DIGIT >= 0
        and type_of(o) == raw(int_type)
        and ptr[i64](o + HEADER)[0] == ONE_DIGIT
        and is_held_once(o)
        and ptr[u32](o + DIGIT)[0] >= SMALLEST
        and ints.count < MOST
    ):
        push(ints, o)
        return
    Py_DecRef(o)


@native
def py_next(_self: raw, _args: ptr[raw], _nargs: i64) -> raw:
    number[0] += 1
    return PyLong_FromLongLong(number[0])


def why_not() -> str:
    """What is not as this file says; empty when all is."""
    large = (LARGEST - 1).__sizeof__()
    if ONE_DIGIT >= 0 and not (SMALLEST.__sizeof__() == large < LARGEST.__sizeof__()):
        return "ints have digits of another size"
    if not gc.is_tracked((gc,)):
        return "tuples are not tracked"
    return ""


def install() -> None:
    """Nodes are numbered here from now on, also those that Python makes."""
    number.np[0] = node.next_seq()
    node.next_seq = bind(fast_def("next_seq", py_next.spec().addr), None)
