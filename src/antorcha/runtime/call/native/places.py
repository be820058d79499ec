"""Places: what a builtin knows of calls with one key, and the table in which it finds them.

A *place* is a block of words, made by ``learn``, that says what to run on which of the arguments,
what comes out, and how a graph records it.

Invariants: a table owns its places, a place owns all that its words name, and both are the same
from the moment when they are found to the end of the call, whatever other threads do. At least half
of a table is empty; it is emptied whole, by ``flush`` or when it would have more than MOST_PLACES.
"""

from __future__ import annotations

from antorcha.lang.native import (
    Global,
    array,
    func,
    i64,
    native,
    ptr,
    raw,
    struct,
    u64,
    void,
)
from antorcha.runtime.call.native.keys import MOST as WORDS
from antorcha.runtime.call.native.keys import (
    Key,
    is_key,
)
from antorcha.runtime.call.native.record import (
    MOST_OPERANDS,
)
from antorcha.runtime.call.native.sized import (
    MOST_RESULTS,
)
from antorcha.runtime.cpython import (
    NONE,
    Py_DecRef,
    complain,
    drop_all,
    new_reference,
)
from antorcha.runtime.memory.alloc import aligned_alloc, system_free
from antorcha.runtime.memory.storage import NO_MEMORY, StorageObject

NEVER, FRESH, MANY, VIEWS, WRITE, FLAT, SIZED, PACKED, SAME, OUT, SIZES_COUNTED = range(11)
"""What a place says: leave it to Python; a kernel's one result; several results; views; a result
that is written over an operand; a kernel's one result, whatever the size (`flat`); anything
that is made anew, or a view, for sizes that give the same answers (`sized`); results of a sequence
that gives a storage and an offset for each; one of the call's tensors itself; a result that is
written to the tensor given for it, which must share no memory with the others; results whose sizes
are counted first (`counted`)."""
SERVED, NOT_KNOWN, NOT_HERE = range(3)
"""What becomes of a call: it has a result, or an exception; it is to be learnt; it is Python's."""
MOST_ARGUMENTS = 12
SMALLEST = 16  # places of a table
MOST_PLACES = 2048
MISSES = 64
PATIENCE = 4
"""A key is served by what is for many sizes so often before it gets a place of its own, which is
quicker, and takes Python a tenth of a millisecond to make."""
COUNTED = ("native", "arguments", "mode", "new", "never")
"""What is counted of calls: served here; left to Python, for the arguments have no key; in a mode
that is not for here; for there is no place yet; for a place says so."""
NOTHING_LEFT_OUT, THE_SIZE, ALL_SIZES = range(3)
"""What a key may leave out: the size of what lies in a row (`flat`), all sizes (`sized`)."""
CONSTANT, LOOSE = -1, -2
"""An argument of a kernel: k is the call's k-th tensor, LOOSE - k the call's k-th number."""
ALL, FIRST, ONE = 0, 1, 2
"""How results are packed, where `pack` is null: a tuple, the first of several, the only one."""


@struct
class Place:
    """What a call does; its first four fields are those of the key by which it is found."""

    count: i64
    mixed: i64
    kinds: array[i64, WORDS]
    values: array[i64, WORDS]
    what: i64
    run: raw  # storage: a Making (FRESH), a launch or a sequence (MANY, WRITE), a Flat, a Sized
    several: i64  # is that a sequence?
    record: raw  # the storage of a Recording; null: it is not recorded
    operands: i64
    operand_at: array[i64, MOST_OPERANDS]  # which of the call's tensors; -1: none; OUT: the one
    arguments: i64
    argument_at: array[i64, MOST_ARGUMENTS]  # see CONSTANT
    constants: array[raw, MOST_ARGUMENTS]
    numbers: raw  # a tuple for the node, or null: the call's own
    results: i64
    layouts: array[raw, MOST_RESULTS]
    sizes: array[i64, MOST_RESULTS]  # bytes; of views, what to add to the offset
    packing: i64
    pack: raw  # makes what the caller gets of the results; null: see ALL
    straight: i64  # is it FRESH, and takes an operand and another, or a number, in order?


@struct
class Quick:
    """The builtin's own memory."""

    python: raw
    promote: raw  # as `python`, and then makes a place
    loose: i64  # see `keys.read_call`
    shapes: i64  # the same
    any_size: i64  # may there be places for any size of what lies in a row?
    sized: i64  # and for others?
    modes: i64  # the bits of the mode that make a difference
    table: ptr[raw]  # storages of places, or null
    room: i64
    used: i64
    missed: array[i64, MISSES]  # hashes of keys that were looked for in vain
    counts: array[i64, len(COUNTED)]
    label: raw  # the op's name in a profile


call_t = func[i64, ptr[Quick], ptr[raw], i64, raw, ptr[raw]]
profiled_calls = Global("antorcha_profiled_calls", call_t, 2)  # ``watched.try_quick``, by FORM


@native
def find(quick: ptr[Quick], key: ptr[Key]) -> raw:
    """The storage of the place for a key (borrowed), or null."""
    if quick.room == 0:
        return None
    return quick.table[seat_of(quick, key)]


@native
def key_of(place: raw) -> ptr[Key]:
    """A place's own key: its first words."""
    return ptr[Key](ptr[StorageObject](place).ptr)


@native
def seat_of(quick: ptr[Quick], key: ptr[Key]) -> i64:
    """Where the place for a key is in the table, or the empty seat where it belongs."""
    at = key.mixed & (quick.room - 1)
    while quick.table[at] is not None and not is_key(key_of(quick.table[at]), key):
        at = (at + 1) & (quick.room - 1)
    return at


@native(export=True)
def insert(quick: ptr[Quick], place: raw) -> bool:
    """Puts a place into the table, or in the place of one with the same key; False: no memory."""
    if quick.used >= MOST_PLACES:
        empty(quick)
    if 2 * (quick.used + 1) > quick.room and not grow(quick):
        return False
    at = seat_of(quick, key_of(place))
    old = quick.table[at]
    quick.table[at] = new_reference(place)
    if old is None:
        quick.used += 1
    else:
        Py_DecRef(old)
    return True


@native(noinline=True)
def grow(quick: ptr[Quick]) -> bool:
    old, count = quick.table, quick.room
    room = i64(SMALLEST)
    if count > 0:
        room = 2 * count
    block = aligned_alloc(64, 8 * room)  # not by `allocate`: it counts what tensors hold
    if block is None:
        complain(NO_MEMORY, NONE, NONE, 8 * room)
        return False
    quick.table = ptr[raw](block)
    quick.room = room
    for k in range(room):
        quick.table[k] = None
    for k in range(count):
        if old[k] is not None:
            quick.table[seat_of(quick, key_of(old[k]))] = old[k]
    if count > 0:
        system_free(raw(old))
    return True


@native(export=True)
def empty(quick: ptr[Quick]) -> void:
    """Drops every place: last, for that may run any code."""
    old, count = quick.table, quick.room
    quick.room = 0
    quick.used = 0
    drop_all(old, count)
    if count > 0:
        system_free(raw(old))


@native
def times_met(missed: ptr[i64], mixed: i64) -> i64:
    """How often a key of this hash has been looked for in vain not long ago, 7 at most. From now on
    it is one more."""
    met = missed + i64(u64(mixed) >> 32 & (MISSES - 1))
    times = i64(0)
    if met[0] & ~7 == mixed & ~7:
        times = min((met[0] & 7) + 1, i64(7))
    met[0] = mixed & ~7 | times
    return times
