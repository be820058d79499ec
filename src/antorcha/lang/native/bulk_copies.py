"""Tiles of tensors that the hardware copies to shared memory, and barriers that count their bytes.

A thread begins the copy of a whole tile (NVIDIA's PTX manual: ``cp.async.bulk.tensor``); a tensor
map, which a kernel makes itself, says where the tensor lies. The bytes arrive at a phase barrier
(``mbarrier``) in shared memory: its phase ends when as many threads have arrived as it was made
for, and as many bytes as they said. Phases have parity 0, 1, 0, ... Rows of a tile have 128 bytes,
swizzled as ``warpgroups`` reads them; what lies outside of the tensor becomes 0. Numbers of f32
are rounded to TF32 on their way.

As in ``grid``, each name has three forms. The simulator copies a tile when no thread of the block
can go on without it: until then its place is poisoned.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from antorcha.lang.native import grid
from antorcha.lang.native.function import native
from antorcha.lang.native.grid import MOST_TILES, GridThread
from antorcha.lang.native.intrinsics import bitcast, memset, static
from antorcha.lang.native.memory import Ptr
from antorcha.lang.native.tensor_cores import _of_warp, to_tf32
from antorcha.lang.native.types import bf16, f16, f32, i32, i64, ptr, raw, u8, u64, void
from antorcha.lang.native.values import V, intrinsic
from antorcha.lang.native.warpgroups import SWIZZLE, _alone, _only_here

MAP_BYTES = 128
ELEMENT_TYPES = {f16: 6, bf16: 10, f32: 11}  # numbers of tensormap.replace's .elemtype
ADDRESS, SIZE, SIZES, STRIDES, BOX = 0, 1, 2, 5, 7  # a simulated map's words
ARRIVED, BYTES, PHASE = 16, 32, 63  # a simulated barrier's bits: arrivals due, bytes due, parity
POISON = 0xFF


# ---- the simulator
@native
def phase_of(p: ptr[u64]) -> i64:
    """The parity of the phase that a barrier is in."""
    return i64(p[0] >> static(PHASE))


@native
def phase_ends(p: ptr[u64]) -> void:
    """Begins the next phase where nothing is due any more."""
    if p[0] << 1 >> 17 == 0:
        count = p[0] & 0xFFFF
        p[0] = p[0] ^ static(1 << PHASE) | count << static(ARRIVED)


@native
def arrive_shown(p: ptr[u64], nbytes: i64) -> void:
    """One of the threads that are due arrives; so many more bytes are due."""
    p[0] = p[0] + (u64(nbytes) << static(BYTES)) - static(1 << ARRIVED)
    phase_ends(p)


@native
def begin_tile(t: ptr[GridThread], to: raw, tensor: raw, bar: raw, x: i64, y: i64, z: i64) -> void:
    """Puts the copy of a tile on its way (``devices/sim/tiles.py`` does it)."""
    at = t.tiles_begun % MOST_TILES * 6
    t.tiles[at], t.tiles[at + 1], t.tiles[at + 2] = i64(to), i64(tensor), i64(bar)
    t.tiles[at + 3], t.tiles[at + 4], t.tiles[at + 5] = x, y, z
    t.tiles_begun += 1
    facts = ptr[i64](tensor)
    memset(to, u8(POISON), facts[BOX] * facts[BOX + 1] * facts[SIZE])


@native
def write_map(
    to: raw, place: raw, size: i64, x: i64, y: i64, z: i64, row: i64, plane: i64, wide: i64,
    high: i64,
) -> void:  # fmt: skip
    facts = ptr[i64](to)
    facts[ADDRESS], facts[SIZE] = i64(place), size
    facts[SIZES], facts[SIZES + 1], facts[SIZES + 2] = x, y, z
    facts[STRIDES], facts[STRIDES + 1] = row, plane
    facts[BOX], facts[BOX + 1] = wide, high


@native
def publish_shown(t: ptr[GridThread], to: raw, room: raw) -> void:
    """The first lane copies the map."""
    if t.number % 32 == 0:
        for k in range(static(MAP_BYTES // 8)):
            ptr[i64](to)[k] = ptr[i64](room)[k]


# ---- plain Python
def _phase(name: str, p: Any) -> list[int]:
    """A barrier's facts: threads of a phase, arrivals due, bytes due, parity."""
    return grid._around(name).phases[p.address]


def _end_phase(facts: list[int]) -> None:
    if facts[1] == facts[2] == 0:
        facts[1], facts[3] = facts[0], facts[3] ^ 1
        grid._around("phase").changed.notify_all()


def _python_phase_barrier(p: Any, count: Any) -> None:
    grid._around("phase_barrier").phases[p.address] = [int(count), int(count), 0, 0]


def _python_arrive(p: Any, nbytes: Any = 0) -> None:
    with grid._around("phase_arrive").changed:
        facts = _phase("phase_arrive", p)
        facts[1] -= 1
        facts[2] += int(nbytes)
        _end_phase(facts)


def _python_phase_wait(p: Any, parity: Any) -> None:
    around, facts = grid._around("phase_wait"), _phase("phase_wait", p)
    with around.changed:
        while facts[3] == parity:
            around.changed.wait(0.1)
            if around.whole.broken:
                raise threading.BrokenBarrierError


def _python_map(
    room: Any, place: Any, T: Any, sizes: Any, strides: Any, box: Any
) -> None:  # fmt: skip
    facts = place, [int(n) for n in sizes], [int(n) for n in strides], box
    grid._around("tensor_map").maps[room.address] = facts


def _python_publish(to: Any, room: Any) -> None:
    _of_warp(None, "publish_map")
    around = grid._around("publish_map")
    around.maps[to.address] = around.maps[room.address]
    _of_warp(None, "publish_map")


def _python_copy_tile(to: Any, tensor: Any, at: Any, p: Any) -> None:
    around = grid._around("copy_tile")
    place, sizes, strides, (wide, high) = around.maps[tensor.address]
    (x, y, z), room = [int(n) for n in at], grid._room("copy_tile")
    size = place.ty.elem.size
    for row, column in np.ndindex(high, wide):
        byte = to.address - room.start + row * SWIZZLE + column * size
        byte ^= (byte >> 7 & 7) << 4
        inside = 0 <= x + column < sizes[0] and 0 <= y + row < sizes[1] and 0 <= z < sizes[2]
        element = x + column + (y + row) * strides[0] + z * strides[1]
        value = place[element] if inside else 0
        if place.ty.elem is f32:
            value = bitcast(f32, to_tf32(value))
        Ptr(room, room.start + byte, place.ty.elem)[0] = value
    with around.changed:
        facts = _phase("copy_tile", p)
        facts[2] -= wide * high * size
        _end_phase(facts)


# ---- the instructions
def _shared_ref(g: Any, p: V) -> str:
    """An address in shared memory as 32 bits."""
    near = g.op(f"addrspacecast ptr {p.ref} to ptr addrspace(3)")
    return f"i32 {g.op(f'ptrtoint ptr addrspace(3) {near} to i32')}"


def _asm(g: Any, text: str, kinds: str, args: list[str]) -> None:
    limits = ",".join([*kinds, "~{memory}"])
    g.do(f'call void asm sideeffect "{text}", "{limits}"({", ".join(args)}) convergent')


@intrinsic(_python_phase_barrier)
def phase_barrier(g: Any, node: Any, p: Any, count: Any) -> None:
    """Makes a phase barrier of a u64 in shared memory: ``count`` threads arrive in each phase.
    Other threads see it after ``phase_barriers_made`` and a barrier."""
    _only_here(g, node, "phase_barrier")
    p, count = g.rt(p, node), g.rt(count, node, i32)
    if g.target.grid == "ptx":
        text = "mbarrier.init.shared::cta.b64 [$0], $1;"
        _asm(g, text, "rr", [_shared_ref(g, p), f"i32 {count.ref}"])
        return
    wide = g.cast(u64, count, node)
    both = g.binary("or", wide, g.binary("shl", wide, ARRIVED, node), node)
    g.store(both, p.ref)


@intrinsic(lambda: None)
def phase_barriers_made(g: Any, node: Any) -> None:
    """After this thread's ``phase_barrier``."""
    _only_here(g, node, "phase_barriers_made")
    if g.target.grid == "ptx":
        _alone(g, "fence.mbarrier_init.release.cluster;")
        _alone(g, "fence.proxy.async.shared::cta;")


@intrinsic(_python_arrive)
def phase_arrive(g: Any, node: Any, p: Any, nbytes: Any = 0) -> None:
    """This thread arrives; with ``nbytes``, the phase waits for so many bytes, too."""
    _only_here(g, node, "phase_arrive")
    p, nbytes = g.rt(p, node), g.rt(nbytes, node, i32)
    if g.target.grid != "ptx":
        g.call(arrive_shown, [V(ptr[u64], p.ref), g.cast(i64, nbytes, node)], {}, node)
    elif nbytes.literal == 0:
        _asm(g, "mbarrier.arrive.shared::cta.b64 _, [$0];", "r", [_shared_ref(g, p)])
    else:
        text = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;"
        _asm(g, text, "rr", [_shared_ref(g, p), f"i32 {nbytes.ref}"])


@intrinsic(_python_phase_wait)
def phase_wait(g: Any, node: Any, p: Any, parity: Any) -> None:
    """Waits until the barrier's phase of that parity (0 or 1) has ended. Before the first phase
    one of parity 1 counts as ended."""
    _only_here(g, node, "phase_wait")
    p, parity = g.rt(p, node), g.rt(parity, node, i32)
    if g.target.grid == "ptx":
        text = (
            "{ .reg .pred done; again: "
            "mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; "
            "@done bra over; bra again; over: }"
        )
        _asm(g, text, "rr", [_shared_ref(g, p), f"i32 {parity.ref}"])
        return
    g.do(f"store i64 {g.op(f'ptrtoint ptr {p.ref} to i64')}, ptr {grid._field(g, 'shown')}")
    wide = g.cast(i64, parity, node)
    g.do(f"store i64 {wide.ref}, ptr {grid._field(g, 'parity')}")
    grid._suspend(g, grid.FOR_PHASE)


@intrinsic(_python_map)
def tensor_map(
    g: Any, node: Any, room: Any, place: Any, T: Any, sizes: Any, strides: Any, box: Any
) -> None:
    """A thread writes a tensor map to shared memory (128 bytes at a multiple of 128): elements of
    type T from ``place`` on, along three dims, the first in one piece, ``strides`` elements from
    one to the next along the others; tiles of ``box`` (two compile-time numbers, of 128 bytes and
    up to 256 elements) along the first two."""
    _only_here(g, node, "tensor_map")
    room, place = g.rt(room, node), g.rt(place, node)
    sizes = [g.cast(i64, g.rt(x, node, i64), node) for x in sizes]
    strides = [g.cast(i64, g.rt(x, node, i64), node) for x in strides]
    strides = [g.binary("mul", x, T.size, node) for x in strides]
    if g.target.grid != "ptx":
        given = [V(raw, room.ref), V(raw, place.ref), T.size, *sizes, *strides, *box]
        g.call(write_map, given, {}, node)
        return
    at = _shared_ref(g, room)
    four = "{zero, zero, zero, zero};"
    zeros = " ".join([f"st.shared.v4.b32 [$0+{k}], {four}" for k in range(0, MAP_BYTES, 16)])
    _asm(g, f"{{ .reg .b32 zero; mov.b32 zero, 0; {zeros} }}", "r", [at])
    far = g.op(f"addrspacecast ptr {place.ref} to ptr addrspace(1)")
    address = g.op(f"ptrtoint ptr addrspace(1) {far} to i64")

    def put(field: str, order: str, value: str) -> None:
        kind, limit = ("b64", "l") if value.startswith("i64") else ("b32", "r")
        text = f"tensormap.replace.tile.{field}.shared::cta.b1024.{kind} [$0], {order}$1;"
        _asm(g, text, f"r{limit}", [at, value])

    put("global_address", "", f"i64 {address}")
    for field, value in (("rank", 2), ("elemtype", ELEMENT_TYPES[T]), ("interleave_layout", 0),
                         ("swizzle_mode", 3), ("fill_mode", 0)):  # fmt: skip
        _asm(g, f"tensormap.replace.tile.{field}.shared::cta.b1024.b32 [$0], {value};", "r", [at])
    for d in range(3):
        narrow = g.op(f"trunc i64 {sizes[d].ref} to i32")
        put("global_dim", f"{d}, ", f"i32 {narrow}")
        put("box_dim", f"{d}, ", f"i32 {(*box, 1)[d]}")
        put("element_stride", f"{d}, ", "i32 1")
    for d in range(2):
        put("global_stride", f"{d}, ", f"i64 {strides[d].ref}")


@intrinsic(_python_publish)
def publish_map(g: Any, node: Any, to: Any, room: Any) -> None:
    """A warp copies the map that its first lane wrote to the device's memory (128 bytes at a
    multiple of 128), for its own copies of tiles."""
    _only_here(g, node, "publish_map")
    to, room = g.rt(to, node), g.rt(room, node)
    if g.target.grid == "ptx":
        far = g.op(f"addrspacecast ptr {to.ref} to ptr addrspace(1)")
        address = f"i64 {g.op(f'ptrtoint ptr addrspace(1) {far} to i64')}"
        text = (
            "bar.warp.sync 0xffffffff; "
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu"
            ".sync.aligned [$0], [$1], 128; "
            "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;"
        )
        _asm(g, text, "lr", [address, _shared_ref(g, room)])
        return
    grid._suspend(g, grid.FOR_WARP)
    thread = V(ptr[GridThread], "%thread")
    g.call(publish_shown, [thread, V(raw, to.ref), V(raw, room.ref)], {}, node)
    grid._suspend(g, grid.FOR_WARP)


@intrinsic(_python_copy_tile)
def copy_tile(g: Any, node: Any, to: Any, tensor: Any, at: Any, p: Any) -> None:
    """Begins to copy the tile at three indices to shared memory (at a multiple of 1024 bytes);
    its bytes arrive at a phase barrier."""
    _only_here(g, node, "copy_tile")
    to, tensor, p = g.rt(to, node), g.rt(tensor, node), g.rt(p, node)
    at = [g.cast(i32, g.rt(x, node, i32), node) for x in at]
    if g.target.grid == "ptx":
        far = g.op(f"addrspacecast ptr {tensor.ref} to ptr addrspace(1)")
        map_ref = f"i64 {g.op(f'ptrtoint ptr addrspace(1) {far} to i64')}"
        text = (
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[$0], [$1, {$2, $3, $4}], [$5];"
        )
        args = [_shared_ref(g, to), map_ref, *[f"i32 {x.ref}" for x in at], _shared_ref(g, p)]
        _asm(g, text, "rlrrrr", args)
        return
    wide = [g.cast(i64, x, node) for x in at]
    given = [V(ptr[GridThread], "%thread"), V(raw, to.ref), V(raw, tensor.ref), V(raw, p.ref)]
    g.call(begin_tile, [*given, *wide], {}, node)


__all__ = [
    "MAP_BYTES", "copy_tile", "phase_arrive", "phase_barrier", "phase_barriers_made", "phase_wait",
    "publish_map", "tensor_map",
]  # fmt: skip
