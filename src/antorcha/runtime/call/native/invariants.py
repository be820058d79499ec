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

from antorcha.core import modes
from antorcha.core.forks import held_over_forks
from antorcha.core.shapes import contiguous_strides, extent, is_contiguous
from antorcha.errors import AntorchaError
from antorcha.runtime.call.native import dealloc, keys, methods, mode, places
from antorcha.runtime.call.native.slots import word
from antorcha.runtime.call.node import RELEASED, Node
from antorcha.runtime.cpython import HEADER
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage
from antorcha.runtime.tensor import Tensor

TABLES_EVERY = 64
"""Tables and lists are gone through once in so many calls."""
DEEPEST = 100  # nodes of a graph that are followed from a result


class Broken(AntorchaError, AssertionError):
    """The native path has left something in a state that it must never be in."""


def need(holds: Any, what: str) -> None:
    if not holds:
        raise Broken(what)


# ---- tensors and graphs
def check_layout(layout: Any) -> None:
    need(type(layout) is Layout, f"a layout is {layout!r:.80}")
    count = math.prod(layout.shape)
    need(
        len(layout.shape) == len(layout.strides) == layout.ndim, f"{layout}: ndim is {layout.ndim}"
    )
    need(layout.numel == count, f"{layout}: numel is {layout.numel}")
    need(
        layout.contiguous == is_contiguous(layout.shape, layout.strides),
        f"{layout}: contiguous is wrong",
    )
    low, high = extent(layout.shape, layout.strides)
    need(
        (layout.low, layout.high) == ((low, high + 1) if count else (0, 0)),
        f"{layout}: extent is wrong",
    )
    whole = count > 1 and tuple(layout.strides) == contiguous_strides(layout.shape)
    family = (layout.dtype, layout.device, layout.ndim) if whole else None
    need(layout.family == family, f"{layout}: family is {layout.family}")


def check_storage(storage: Any) -> None:
    need(type(storage) is Storage, f"a storage is {storage!r:.80}")
    need(storage.nbytes >= 0 and storage.ptr >= 0, f"a storage of {storage.nbytes} bytes")
    need(storage.ptr or not storage.flags & 1, "memory of its own that is nowhere")


def check_tensor(tensor: Tensor) -> None:
    layout, storage, offset = tensor._layout, tensor._storage, tensor._offset
    check_layout(layout)
    check_storage(storage)
    need(type(offset) is int and type(tensor._nr) is int, f"offset {offset!r}, nr {tensor._nr!r}")
    need(type(tensor._rg) is bool, f"_rg is {tensor._rg!r}")
    if layout.numel and storage.ptr:
        first, last = (
            (offset + layout.low) * layout.itemsize,
            (offset + layout.high) * layout.itemsize,
        )
        need(
            (first >= 0 and last <= storage.nbytes) or storage.nbytes < layout.nbytes,
            f"{layout} at {offset} lies outside of a storage of {storage.nbytes} bytes",
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
        start = dealloc.lives.addr + what * dealloc.Life.size
        kind, first, count = [word(start + 8 * k).value for k in range(3)]
        need(kind == id(cls) and 0 <= count <= dealloc.KEEP, f"{count} spare objects of {cls}")
        address = first
        for _ in range(count):
            need(address, f"fewer spare objects of {cls.__name__} than {count}")
            rest = [word(address + HEADER + 8 * k).value for k in range(1, dealloc.FIELDS[what])]
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


def check_result(result: Any) -> None:
    """All that can be told after a call: of its results, and now and then of everything."""
    global _count
    for each in result if isinstance(result, (tuple, list)) else (result,):
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
    for name, memory in list(methods.quicks):
        check_quick(name, memory)
    check_lives()
    check_modes()
