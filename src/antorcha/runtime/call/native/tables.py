"""What a backward pass keeps while it runs: nodes to come, newest first, and leaves.

A ``Walk`` owns a pool of nodes with the gradients that have arrived for them, a heap of places in
the pool ordered by the nodes' numbers, a list of leaves with their sums, and a table that finds
either by its object. All begin on the machine's stack (``Room``) and move to the allocator's memory
when they grow.

Invariants: every reference in the pool and in the list is the walk's own. A table entry is true
only where the pool, or the list, still has its object at that place; entries of nodes that have
been taken out are left, and go when the table is built anew. At least half of the table is empty.
"""

from __future__ import annotations

from antorcha.lang.native import (
    array,
    i64,
    inline,
    memcpy,
    native,
    ptr,
    raw,
    ref,
    struct,
    u64,
    void,
)
from antorcha.runtime.cpython import NONE, Py_DecRef, Py_IncRef, complain, drop_all, drop_one
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.storage import NO_MEMORY

MOST = 8  # results of a node
NODES, LEAVES, ENTRIES = 16, 24, 64  # that fit on the machine's stack


@struct
class PendingNode:
    """A node to come and what has arrived for its results. In a free place of the pool `node` is
    null and `seq` the next free place."""

    node: raw
    seq: i64
    grads: array[raw, MOST]


@struct
class Leaf:
    leaf: raw
    grad: raw


@struct
class ObjectEntry:
    """Where an object is: a place in the pool, or -1 less a place among the leaves."""

    key: raw  # null in an empty entry
    where: i64


@struct
class Room:
    """What a walk begins with."""

    pool: array[PendingNode, NODES]
    heap: array[i64, NODES]
    leaves: array[Leaf, LEAVES]
    table: array[ObjectEntry, ENTRIES]


@struct
class WalkState:
    pool: ptr[PendingNode]
    pool_room: i64
    pool_used: i64  # places that have ever been taken
    pool_free: i64  # the first free one below; -1: none
    heap: ptr[i64]
    heap_room: i64
    heap_count: i64
    leaves: ptr[Leaf]
    leaves_room: i64
    leaves_count: i64
    table: ptr[ObjectEntry]
    table_room: i64  # a power of two
    table_used: i64  # entries that are not empty
    more: raw  # a list of (edge, gradient) for the Python engine, or null
    keep: i64  # does the graph serve again?


@native
def begin_walk(w: ptr[WalkState], room: ptr[Room], keep: i64) -> void:
    w.pool = ref(room.pool[0])
    w.heap = ref(room.heap[0])
    w.leaves = ref(room.leaves[0])
    w.table = ref(room.table[0])
    w.pool_room = NODES
    w.heap_room = NODES
    w.leaves_room = LEAVES
    w.table_room = ENTRIES
    w.pool_used = 0
    w.pool_free = -1
    w.heap_count = 0
    w.leaves_count = 0
    w.table_used = 0
    w.more = None
    w.keep = keep
    for k in range(ENTRIES):
        (w.table + k).key = None


@native(export=True, level="O2")
def end_walk(w: ptr[WalkState]) -> void:
    """Drops all that is left."""
    for k in range(w.pool_used):
        p = w.pool + k
        if p.node is not None:
            drop_pending(p)
    for k in range(w.leaves_count):
        each = w.leaves + k
        Py_DecRef(each.leaf)
        drop_one(each.grad)
    drop_one(w.more)
    if w.pool_room != NODES:
        release(raw(w.pool))
    if w.heap_room != NODES:
        release(raw(w.heap))
    if w.leaves_room != LEAVES:
        release(raw(w.leaves))
    if w.table_room != ENTRIES:
        release(raw(w.table))


@native
def drop_pending(p: ptr[PendingNode]) -> void:
    drop_all(p.grads, MOST)
    node = p.node
    p.node = None
    Py_DecRef(node)


@native(export=True)
def grown(old: raw, room: i64, size: i64, first: i64) -> raw:
    """A block of twice the room, in items of that size, that begins as the old one does; the old
    one is given back, unless it is the `first`, of the machine's stack. Null with an exception."""
    block = allocate(2 * room * size)
    if block is None:
        complain(NO_MEMORY, NONE, NONE, 2 * room * size)
        return block
    memcpy(block, old, room * size)
    if room != first:
        release(old)
    return block


# ---- the table
@inline
def home(w, key):
    return i64((u64(key) >> 4) * 0x9E3779B97F4A7C15 >> 20) & (w.table_room - 1)


@native
def entry_of(w: ptr[WalkState], key: raw) -> ptr[ObjectEntry]:
    """The object's entry, or the empty one where it belongs."""
    at = home(w, key)
    while (w.table + at).key is not None and (w.table + at).key != key:
        at = (at + 1) & (w.table_room - 1)
    return w.table + at


@native
def is_true(w: ptr[WalkState], e: ptr[ObjectEntry]) -> bool:
    if e.key is None:
        return False
    if e.where < 0:
        return True
    return (w.pool + e.where).node == e.key


@native
def enter(w: ptr[WalkState], key: raw, where: i64) -> bool:
    """Says where an object is; False with an exception."""
    if 2 * (w.table_used + 1) > w.table_room and not rebuild(w):
        return False
    e = entry_of(w, key)
    if e.key is None:
        e.key = key
        w.table_used += 1
    e.where = where
    return True


@native(export=True)
def rebuild(w: ptr[WalkState]) -> bool:
    """Leaves out what is no longer true, in a table at least a quarter of which is to be used."""
    old, count = w.table, w.table_room
    live = i64(0)
    for k in range(count):
        live += i64(is_true(w, old + k))
    room = i64(2 * ENTRIES)
    while room < 4 * (live + 1):
        room = 2 * room
    block = allocate(room * ObjectEntry.size)
    if block is None:
        complain(NO_MEMORY, NONE, NONE, room * ObjectEntry.size)
        return False
    w.table = ptr[ObjectEntry](block)
    w.table_room = room
    w.table_used = 0
    for k in range(room):
        (w.table + k).key = None
    for k in range(count):
        if is_true(w, old + k):
            e = entry_of(w, (old + k).key)
            e.key = (old + k).key
            e.where = (old + k).where
            w.table_used += 1
    if count != ENTRIES:
        release(raw(old))
    return True


# ---- nodes
@native
def pending_of(w: ptr[WalkState], node: raw) -> ptr[PendingNode]:
    """A node that is to come, or null."""
    e = entry_of(w, node)
    if not is_true(w, e):
        return ptr[PendingNode](raw(0))
    return w.pool + e.where


@native
def new_pending(w: ptr[WalkState], node: raw, seq: i64) -> ptr[PendingNode]:
    """A node, with that number, is to come; null with an exception."""
    none = ptr[PendingNode](raw(0))
    slot = w.pool_free
    if slot < 0:
        if w.pool_used == w.pool_room:
            block = grown(raw(w.pool), w.pool_room, PendingNode.size, NODES)
            if block is None:
                return none
            w.pool = ptr[PendingNode](block)
            w.pool_room = 2 * w.pool_room
        slot = w.pool_used
        (w.pool + slot).node = None
    if w.heap_count == w.heap_room:
        block = grown(raw(w.heap), w.heap_room, 8, NODES)
        if block is None:
            return none
        w.heap = ptr[i64](block)
        w.heap_room = 2 * w.heap_room
    if not enter(w, node, slot):
        return none
    p = w.pool + slot
    if slot == w.pool_free:
        w.pool_free = p.seq
    else:
        w.pool_used += 1
    Py_IncRef(node)
    p.node = node
    p.seq = seq
    for k in range(MOST):
        p.grads[k] = None
    rise(w, slot, seq)
    return p


@native
def rise(w: ptr[WalkState], slot: i64, seq: i64) -> void:
    """Puts a place into the heap."""
    at = w.heap_count
    w.heap_count += 1
    while at > 0 and (w.pool + w.heap[(at - 1) // 2]).seq < seq:
        w.heap[at] = w.heap[(at - 1) // 2]
        at = (at - 1) // 2
    w.heap[at] = slot


@native
def first_slot(w: ptr[WalkState]) -> ptr[PendingNode]:
    """The newest node (there is one)."""
    return w.pool + w.heap[0]


@native
def pop_first(w: ptr[WalkState], taken: ptr[PendingNode]) -> void:
    """Takes out the newest node, with all references."""
    slot = w.heap[0]
    p = w.pool + slot
    taken.node = p.node
    taken.seq = p.seq
    for k in range(MOST):
        taken.grads[k] = p.grads[k]
    p.node = None
    p.seq = w.pool_free
    w.pool_free = slot
    w.heap_count -= 1
    last = w.heap[w.heap_count]
    seq = (w.pool + last).seq
    count = w.heap_count
    at = i64(0)
    child = i64(1)
    while child < count:
        if child + 1 < count and (w.pool + w.heap[child]).seq < (w.pool + w.heap[child + 1]).seq:
            child += 1
        if (w.pool + w.heap[child]).seq <= seq:
            child = count
        else:
            w.heap[at] = w.heap[child]
            at = child
            child = 2 * at + 1
    if count > 0:
        w.heap[at] = last


# ---- leaves
@native
def leaf_of(w: ptr[WalkState], leaf: raw) -> ptr[Leaf]:
    """A leaf that has had a gradient, or null."""
    e = entry_of(w, leaf)
    if e.key is None or e.where >= 0:
        return ptr[Leaf](raw(0))
    return w.leaves + (-1 - e.where)


@native
def add_leaf(w: ptr[WalkState], leaf: raw) -> ptr[Leaf]:
    """A leaf that has its first gradient; null with an exception."""
    none = ptr[Leaf](raw(0))
    if w.leaves_count == w.leaves_room:
        block = grown(raw(w.leaves), w.leaves_room, Leaf.size, LEAVES)
        if block is None:
            return none
        w.leaves = ptr[Leaf](block)
        w.leaves_room = 2 * w.leaves_room
    if not enter(w, leaf, -1 - w.leaves_count):
        return none
    each = w.leaves + w.leaves_count
    w.leaves_count += 1
    Py_IncRef(leaf)
    each.leaf = leaf
    each.grad = None
    return each
