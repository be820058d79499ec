"""What must hold of tensors, graphs and tables after a call; run by ``ANTORCHA_CALL=checked``.

Each function raises ``Broken``, which says what is not as the files of this folder say. They read
private fields and memory, and call no op.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Iterator
from typing import Any

from antorcha import modes
from antorcha.errors import AntorchaError
from antorcha.forks import held_over_forks
from antorcha.runtime.call.native import keys, life, methods, mode, operators, places
from antorcha.runtime.call.native.flat import Flat
from antorcha.runtime.call.native.slots import word
from antorcha.runtime.call.native.tensors import Making
from antorcha.runtime.call.node import RELEASED, Node
from antorcha.runtime.cpython import HEADER
from antorcha.runtime.layout import Layout
from antorcha.runtime.storage import Storage
from antorcha.runtime.tensor import Tensor
from antorcha.shapes import contiguous_strides, extent, is_contiguous

TABLES_EVERY = 64
"""Tables and lists are gone through once in so many calls."""
DEEPEST = 100  # nodes of a graph that are followed from a result


class Broken(AntorchaError, AssertionError):
    """The native path has left something in a state that it must never be in."""


def need(holds: Any, what: str) -> None:
    if not holds:
        raise Broken(what)


# ---- tensors and graphs
def check_layout(lay: Any) -> None:
    need(type(lay) is Layout, f"a layout is {lay!r:.80}")
    count = math.prod(lay.shape)
    need(len(lay.shape) == len(lay.strides) == lay.ndim, f"{lay}: ndim is {lay.ndim}")
    need(lay.numel == count, f"{lay}: numel is {lay.numel}")
    need(lay.contiguous == is_contiguous(lay.shape, lay.strides), f"{lay}: contiguous is wrong")
    low, high = extent(lay.shape, lay.strides)
    need((lay.low, lay.high) == ((low, high + 1) if count else (0, 0)), f"{lay}: extent is wrong")
    whole = count > 1 and tuple(lay.strides) == contiguous_strides(lay.shape)
    family = (lay.dtype, lay.device, lay.ndim) if whole else None
    need(lay.family == family, f"{lay}: family is {lay.family}")


def check_storage(storage: Any) -> None:
    need(type(storage) is Storage, f"a storage is {storage!r:.80}")
    need(storage.nbytes >= 0 and storage.ptr >= 0, f"a storage of {storage.nbytes} bytes")
    need(storage.ptr or not storage.flags & 1, "memory of its own that is nowhere")


def check_tensor(tensor: Tensor) -> None:
    lay, storage, offset = tensor._layout, tensor._storage, tensor._offset
    check_layout(lay)
    check_storage(storage)
    need(type(offset) is int and type(tensor._nr) is int, f"offset {offset!r}, nr {tensor._nr!r}")
    need(type(tensor._rg) is bool, f"_rg is {tensor._rg!r}")
    if lay.numel and storage.ptr:
        first, last = (offset + lay.low) * lay.itemsize, (offset + lay.high) * lay.itemsize
        need(
            (first >= 0 and last <= storage.nbytes) or storage.nbytes < lay.nbytes,
            f"{lay} at {offset} lies outside of a storage of {storage.nbytes} bytes",
        )
    base = tensor._base
    need(base is None or isinstance(base, Tensor), f"_base is {base!r:.80}")
    if base is not None:
        need(base._base is None and base is not tensor, "a view of a view, or of itself")
        need(type(tensor._seen) is int, f"a view's _seen is {tensor._seen!r}")
    node = tensor._fn
    need(node is None or isinstance(node, Node), f"_fn is {node!r:.80}")
    if node is not None:
        need(tensor._rg or base is not None, "a node, and no gradient wanted")
        outs = 1 if node.plan is None else max(len(node.plan.outs), 1)
        need(0 <= tensor._nr < outs, f"result {tensor._nr} of a node that has {outs}")
        check_graph(node)


def check_graph(node: Node) -> None:
    """The node and those that it leads to, as far as is bearable."""
    seen: set[int] = set()
    todo = [node]
    while todo and len(seen) < DEEPEST:
        each = todo.pop()
        if id(each) not in seen:
            seen.add(id(each))
            check_node(each)
            todo += [edge for edge, _ in leads_to(each)]


def leads_to(node: Node) -> Iterator[tuple[Node, int]]:
    for edge in node.edges:
        if isinstance(edge, Node):
            yield edge, 0
        elif type(edge) is tuple:
            yield edge


def check_node(node: Node) -> None:
    need(type(node.edges) is tuple and type(node.seq) is int, f"a node's edges are {node.edges!r}")
    for edge in node.edges:
        fits = edge is None or isinstance(edge, (Tensor, Node)) or (
            type(edge) is tuple and len(edge) == 2 and isinstance(edge[0], Node)
        )  # fmt: skip
        need(fits, f"an edge is {edge!r:.80}")
    for older, _ in leads_to(node):
        need(older.seq < node.seq, f"node {node.seq} leads to node {older.seq}, which is no older")
    if node.plan is not None and type(node.mask) is int and node.plan.tensors:
        need(node.mask >> len(node.plan.tensors) == 0, f"mask {node.mask} of {len(node.edges)}")
    if type(node.saved) is list and node.saved is not RELEASED:
        for item in node.saved:
            if type(item) is tuple and len(item) == 4:
                check_layout(item[0])
                check_storage(item[1])
                need(type(item[2]) is int and item[3] >= 0, f"what is saved is {item!r:.80}")


# ---- tables
def _object(address: int) -> Any:
    return ctypes.cast(address, ctypes.py_object).value


def check_operators() -> None:
    """Every entry is empty, or whole and where it belongs."""
    size, ways = operators.Entry.size, operators.WAYS
    for at in range(len(operators.NAMES) * operators.ENTRIES):
        a, b, run, record, _ = [
            word(operators.tables.addr + at * size + 8 * k).value for k in range(5)
        ]
        if not (a or b or run or record):
            continue
        need(a and b and run, f"operator entry {at} is half empty")
        mixed = (a >> 4) * 0x9E3779B97F4A7C15 ^ (b >> 4) * 0xC2B2AE3D27D4EB4F
        first = (mixed & (1 << 64) - 1) >> 40 & (operators.ENTRIES - ways)
        need(0 <= at % operators.ENTRIES - first < ways, f"operator entry {at} is misplaced")
        kind, held = type(_object(a)), _object(run)
        need(kind in (Layout, tuple), f"operator entry {at} is of {kind}")
        need(type(held) is Storage, f"operator entry {at} runs {held!r:.80}")
        expected = Making.size if kind is Layout else Flat.size
        need(held.nbytes == expected, f"operator entry {at} runs {held.nbytes} bytes")
        need(not record or type(_object(record)) is Storage, f"operator entry {at}'s record")


def check_quick(name: str, memory: Any) -> None:
    """The places of a builtin's table are found by their keys, and half of the table is empty."""
    at = {field: offset // 8 for field, (offset, _) in places.Quick.fields.items()}
    table, room, used = memory[at["table"]], memory[at["room"]], memory[at["used"]]
    need(room == 0 or room & (room - 1) == 0, f"{name}: a table of {room} places")
    need(2 * used <= room and used <= places.MOST_PLACES, f"{name}: {used} of {room} places")
    found = [word(table + 8 * k).value for k in range(room)]
    need(len([each for each in found if each]) == used, f"{name}: {used} places are not there")
    for seat, address in enumerate(found):
        if not address:
            continue
        place = _object(address)
        need(type(place) is Storage and place.nbytes == places.Place.size, f"{name}: place {seat}")
        words = memoryview(place).cast("B").cast("q")
        count, mixed = words[0], words[1]
        kinds, values = words[2 : 2 + count], words[2 + keys.MOST : 2 + keys.MOST + count]
        need(0 <= count <= keys.MOST, f"{name}: a key of {count} words")
        need(mixed == mix(kinds, values), f"{name}: place {seat} has another key than its hash")
        where = mixed & (room - 1)
        while where != seat:
            need(found[where], f"{name}: place {seat} is not found from {mixed & (room - 1)}")
            where = (where + 1) & (room - 1)


def mix(kinds: Any, values: Any) -> int:
    """A key's hash, as ``keys.add_word`` computes it."""
    full, mixed = (1 << 64) - 1, 0
    for kind, value in zip(kinds, values, strict=True):
        mixed = ((mixed ^ (value * 32 + kind)) & full) * 0x9E3779B97F4A7C15 & full
        mixed ^= mixed >> 29
    return mixed - (1 << 64) if mixed >> 63 else mixed


# ---- lists and modes
def check_lives() -> None:
    """Dead tensors and nodes: as many as are counted, without fields; none waits."""
    for what, cls in enumerate((Tensor, Node)):
        start = life.lives.addr + what * life.Life.size
        kind, first, count = [word(start + 8 * k).value for k in range(3)]
        need(kind == id(cls) and 0 <= count <= life.KEEP, f"{count} spare objects of {cls}")
        address = first
        for _ in range(count):
            need(address, f"fewer spare objects of {cls.__name__} than {count}")
            rest = [word(address + HEADER + 8 * k).value for k in range(1, life.FIELDS[what])]
            need(not any(rest), f"a spare {cls.__name__} has fields")
            address = word(address + HEADER).value
        need(not address, f"more spare objects of {cls.__name__} than {count}")


def check_modes() -> None:
    need(modes.busy >= modes.special >= 0, f"busy is {modes.busy}, special {modes.special}")
    need(modes.special == mode.reasons.special, f"special is counted as {mode.reasons.special}")
    need(modes.busy > 0 or modes.state.word == 0, "a thread in a mode, and none is counted")


# ---- after a call
_lock = held_over_forks(threading.Lock())
_count = 0


def check_result(made: Any) -> None:
    """All that can be told after a call: of its results, and now and then of everything."""
    global _count
    for each in made if isinstance(made, (tuple, list)) else (made,):
        if isinstance(each, Tensor):
            check_tensor(each)
    _count += 1
    if _count % TABLES_EVERY == 0 and _lock.acquire(blocking=False):
        try:
            check_everything()
        finally:
            _lock.release()


def check_everything() -> None:
    """Every table, list and mode."""
    check_operators()
    for name, memory in list(methods.quicks):
        check_quick(name, memory)
    check_lives()
    check_modes()
