"""What a kernel of a GPU says beyond other native code: a thread's place, barriers, shared memory.

A kernel is run by every thread of a grid: the grid has blocks, a block has threads, and 32 threads
of a block that follow one another are a warp, which exchanges values without memory. Each name here
has three forms: PTX's instruction, the simulator's (a CPU runs the threads of a block in turn,
``lower/grid.py``), and one in plain Python (``run_grid``, where each thread of a block is one of
Python's).

Barriers and exchanges must be reached by all threads of the block, or of the warp. They stand in a
kernel or in what it expands (``@inline``), never in a native function that it calls.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from antorcha.core.lazy import lazy
from antorcha.lang.native.memory import Memory, Ptr, to_pointer
from antorcha.lang.native.types import Ty, array, f32, i32, i64, ptr, raw, struct, u32, u64, vec
from antorcha.lang.native.values import V, intrinsic

native_interpret = lazy("antorcha.lang.native.interpret")

WARP = 32
PARAMETER_WORDS = 128
"""Words of a launch, at most: buffers' addresses, numbers, sizes and strides."""
FOR_BLOCK, FOR_WARP, ENDED, FOR_PHASE = 1, 2, 3, 4
MOST_COPIES = 64
"""Copies of a simulated thread that are on their way at once."""
MOST_PRODUCTS = 32
"""Products of a simulated warpgroup that are on their way at once."""
MOST_TILES = 64
"""Copies of tiles of a simulated thread that are on their way at once."""


@struct
class GridThread:
    """A simulated thread. Those of a block lie side by side, in their order."""

    index: array[i64, 3]
    block: array[i64, 3]
    threads: array[i64, 3]
    blocks: array[i64, 3]
    shared: raw
    shared_bytes: i64
    waits: i64  # FOR_BLOCK, FOR_WARP, FOR_PHASE, or ENDED
    frame: raw
    shown: u64  # to its warp
    number: i64  # in its block
    fragment: array[u32, 6]  # of matrices, shown to its warp (tensor_cores.py)
    product: array[f32, 4]
    copies: array[i64, 3 * MOST_COPIES]  # on their way: to, from, bytes
    copies_begun: i64
    copies_done: i64
    groups: array[i64, MOST_COPIES]  # how many copies had begun when each group ended
    groups_made: i64
    sums: array[f32, 128]  # of the products of its warpgroup (warpgroups.py)
    products: array[i64, 3 * MOST_PRODUCTS]  # on their way: descriptors, form
    lefts: array[f32, 16 * MOST_PRODUCTS]  # their left factors' rows, where these are in registers
    products_begun: i64
    products_done: i64
    product_groups: array[i64, MOST_PRODUCTS]  # how many had begun when each group ended
    product_groups_made: i64
    parity: i64  # of the phase that it waits for, of the barrier whose address is shown
    tiles: array[i64, 6 * MOST_TILES]  # on their way: to, map, barrier, indices (bulk_copies.py)
    tiles_begun: i64
    tiles_done: i64


SIMULATED_THREAD: Ty = GridThread
_AXES = "xyz"


# ---- plain Python
class PythonBlock:
    """A block of threads of Python."""

    def __init__(self, threads: Sequence[int]) -> None:
        self.count = int(np.prod(threads))
        self.whole = threading.Barrier(self.count)
        self.warps = [
            threading.Barrier(min(WARP, self.count - k)) for k in range(0, self.count, WARP)
        ]
        self.shown: list[Any] = [None] * self.count
        self.shared: list[Memory] = []
        self.room: Memory | None = None  # (dynamic_shared)
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.phases: dict[int, list[int]] = {}  # of phase barriers (bulk_copies.py)
        self.maps: dict[int, Any] = {}


class PythonThread(threading.local):
    """Where the thread of Python that asks stands in the grid."""

    place: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]] | None = None
    around: PythonBlock
    number = 0
    shared_seen = 0


_here = PythonThread()


def _outside(name: str) -> NoReturn:
    raise RuntimeError(f"{name}() is for kernels of GPUs; run_grid runs one in plain Python")


def _python_place(which: int, name: str) -> Any:
    def run(axis: int = 0) -> Any:
        if _here.place is None:
            _outside(name)
        return np.int32(_here.place[which][axis])

    return run


def _python_barrier() -> None:
    if _here.place is None:
        _outside("barrier")
    _here.around.whole.wait()


def _python_shared(ty: Ty, n: int, align: int = 16) -> Ptr:
    if _here.place is None:
        _outside("shared")
    around = _here.around
    with around.lock:
        if _here.shared_seen == len(around.shared):
            around.shared.append(Memory.new(ty.size * n))
        memory = around.shared[_here.shared_seen]
    _here.shared_seen += 1
    return Ptr(memory, memory.start, ty)


def _around(name: str) -> PythonBlock:
    if _here.place is None:
        _outside(name)
    return _here.around


def _room(name: str) -> Memory:
    """The block's dynamic shared memory."""
    room = _around(name).room
    assert room is not None, f"{name}() is for what lies in dynamic_shared"
    return room


def _python_room(ty: Ty, n: int) -> Ptr:
    around = _around("dynamic_shared")
    with around.lock:
        if around.room is None:
            around.room = Memory.new(ty.size * n)
    return Ptr(around.room, around.room.start, ty)


def _python_swap(x: Any, mask: int) -> Any:
    if _here.place is None:
        _outside("swap_lanes")
    around, warp = _here.around, _here.around.warps[_here.number // WARP]
    around.shown[_here.number] = x
    warp.wait()
    found = around.shown[_here.number ^ mask]
    warp.wait()
    return found


def run_grid(
    kernel: Any, words: np.ndarray[Any, Any], blocks: Sequence[int], threads: Sequence[int],
    **static: Any,
) -> None:  # fmt: skip
    """Runs a kernel as plain Python, block after block, with bounds checks; the first error of a
    thread is raised."""
    errors: list[BaseException] = []

    def run(around: PythonBlock, number: int, place: Any) -> None:
        _here.place, _here.around, _here.number, _here.shared_seen = place, around, number, 0
        try:
            with native_interpret.interpreted():
                kernel(Ptr(words), **static)
        except BaseException as error:
            errors.append(error)
            around.whole.abort()
            for warp in around.warps:
                warp.abort()

    blocks, threads = (*blocks, 1, 1)[:3], (*threads, 1, 1)[:3]
    for block_at in np.ndindex(*reversed(blocks)):
        around = PythonBlock(threads)
        workers = []
        for number, at in enumerate(np.ndindex(*reversed(threads))):
            place = (at[::-1], block_at[::-1], threads, blocks)
            workers.append(threading.Thread(target=run, args=(around, number, place)))
            workers[-1].start()
        for worker in workers:
            worker.join()
        broken = (threading.BrokenBarrierError,)
        for error in sorted(errors, key=lambda e: isinstance(e, broken)):
            raise error


# ---- where a thread stands
def _in_kernel(g: Any, node: Any, name: str) -> None:
    if not g.target.grid:
        g.fail(node, f"{name}() is for kernels of GPUs")
    if not g.on_grid:
        g.fail(node, f"{name}() stands in the kernel itself, or in an @inline function of it")


def _simulated(g: Any) -> None:
    """Refuses, for other targets, what only NVIDIA's GPUs and the simulator do."""
    if g.target.grid != "sim":
        g.fail(None, f"a kernel for {g.target.arch} cannot do what this does")


def _field(g: Any, name: str, word: int = 0) -> str:
    _simulated(g)
    offset = GridThread.fields[name][0] + 8 * word
    return str(g.op(f"getelementptr i8, ptr %thread, i64 {offset}"))


def _place(which: int, name: str, field: str, register: str, opencl: str, doc: str) -> Any:
    def emit(g: Any, node: Any, axis: int = 0) -> V:
        _in_kernel(g, node, name)
        if g.target.grid == "ptx":
            return g.intr(f"llvm.nvvm.read.ptx.sreg.{register}.{_AXES[axis]}", i32, [])  # type: ignore[no-any-return]
        if g.target.grid == "spirv":
            found = g.intr(opencl, i64, [f"i32 {axis}"])
            return g.cast(i32, found, node)  # type: ignore[no-any-return]
        found = g.v(i64, f"load i64, ptr {_field(g, field, axis)}")
        return g.cast(i32, found, node)  # type: ignore[no-any-return]

    emit.__doc__ = doc
    return intrinsic(_python_place(which, name))(emit)


thread = _place(
    0, "thread", "index", "tid", "_Z12get_local_idj",
    "The thread's number in its block, along an axis.",
)  # fmt: skip
block = _place(
    1, "block", "block", "ctaid", "_Z12get_group_idj",
    "The block's number in the grid, along an axis.",
)  # fmt: skip
threads = _place(
    2, "threads", "threads", "ntid", "_Z14get_local_sizej",
    "How many threads a block has, along an axis.",
)  # fmt: skip
blocks = _place(
    3, "blocks", "blocks", "nctaid", "_Z14get_num_groupsj",
    "How many blocks the grid has, along an axis.",
)  # fmt: skip


# ---- waiting
def _suspend(g: Any, what: int) -> None:
    """The simulator's way to wait: back to who runs the block."""
    _simulated(g)
    g.module.suspends = True
    g.declare("llvm.coro.suspend", "declare i8 @llvm.coro.suspend(token, i1)")
    g.do(f"store i64 {what}, ptr {_field(g, 'waits')}")
    state, on = g.op("call i8 @llvm.coro.suspend(token none, i1 false)"), g.label()
    g.do(f"switch i8 {state}, label %co.leave [i8 0, label %{on} i8 1, label %co.free]")
    g.start(on)


@intrinsic(_python_barrier)
def barrier(g: Any, node: Any) -> None:
    """Every thread of the block arrives before one goes on, and sees what the others wrote."""
    _in_kernel(g, node, "barrier")
    if g.target.grid == "ptx":
        g.declare("bar", "declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) convergent")
        g.do("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) convergent")
    elif g.target.grid == "spirv":
        # (3: what was written to shared memory and to the device's)
        g.declare("_Z7barrierj", "declare void @_Z7barrierj(i32) convergent")
        g.do("call void @_Z7barrierj(i32 3) convergent")
    else:
        _suspend(g, FOR_BLOCK)


@intrinsic(_python_shared)
def shared(g: Any, node: Any, ty: Any, n: Any, align: int = 16) -> V:
    """``shared(T, n)``: memory for n values that the block's threads share, as ptr[T]; contents
    undefined."""
    _in_kernel(g, node, "shared")
    if not isinstance(ty, Ty) or not isinstance(n, int):
        g.fail(node, "shared(T, n) takes a type and a compile-time count")
    if g.target.grid == "sim":
        at = g.module.reserve(n * ty.size, align)
        base = g.op(f"load ptr, ptr {_field(g, 'shared')}")
        return V(ptr[ty], g.op(f"getelementptr i8, ptr {base}, i64 {at}"))
    return _shared_global(g, ty, n, align)


def _shared_global(g: Any, ty: Ty, n: int, align: int) -> V:
    at = g.module.reserve(n * ty.size, align)
    name = f"shared.{at}"
    kind = f"[{n * ty.size} x i8]"
    g.declare(name, f"@{name} = internal addrspace(3) global {kind} undef, align {align}")
    return V(ptr[ty], f"addrspacecast (ptr addrspace(3) @{name} to ptr)")


@intrinsic(_python_room)
def dynamic_shared(g: Any, node: Any, ty: Any, n: Any) -> V:
    """``dynamic_shared(T, n)``: as ``shared``, at a multiple of 1024 bytes, for more than the 48 KB
    that every GPU gives; one for a kernel, whose step says how many bytes (``GridStep.shared``)."""
    _in_kernel(g, node, "dynamic_shared")
    if g.target.grid == "spirv":
        return _shared_global(g, ty, n, 1024)
    if g.target.grid == "sim":
        at = g.module.reserve(n * ty.size, 1024)
        base = g.op(f"load ptr, ptr {_field(g, 'shared')}")
        return V(ptr[ty], g.op(f"getelementptr i8, ptr {base}, i64 {at}"))
    g.declare("shared_room", "@shared_room = external addrspace(3) global [0 x i8], align 1024")
    return V(ptr[ty], "addrspacecast (ptr addrspace(3) @shared_room to ptr)")


@intrinsic(lambda n: None)
def resident_blocks(g: Any, node: Any, n: Any) -> None:
    """The kernel's threads shall have no more registers than lets n blocks (compile time) run on a
    multiprocessor at a time."""
    _in_kernel(g, node, "resident_blocks")
    g.module.resident_blocks = n


# ---- what the lanes of a warp show one another
@intrinsic(_python_swap)
def swap_lanes(g: Any, node: Any, x: Any, mask: int) -> V:
    """x of the lane whose number differs from this one's in the bits of ``mask`` (compile time)."""
    _in_kernel(g, node, "swap_lanes")
    x = g.rt(x, node)
    if x.ty.kind not in "iufb" or not isinstance(mask, int):
        g.fail(node, "swap_lanes(x, mask) takes a scalar and a compile-time mask")
    word = u64 if x.ty.size == 8 else u32
    bits = _as_word(g, x, word)
    found = _SWAPS[g.target.grid](g, bits, mask)
    return _from_word(g, found, x.ty)


def _as_word(g: Any, x: V, word: Ty) -> V:
    ty = x.ty
    if ty.kind == "f" and not ty.half:
        return g.v(word, f"bitcast {ty.ll} {x.ref} to {word.ll}")  # type: ignore[no-any-return]
    if ty.kind != "b" and ty.size == word.size:
        return V(word, x.ref)
    return g.v(word, f"zext {ty.ll} {x.ref} to {word.ll}")  # type: ignore[no-any-return]


def _from_word(g: Any, x: V, ty: Ty) -> V:
    if ty.kind == "f" and not ty.half:
        return g.v(ty, f"bitcast {x.ty.ll} {x.ref} to {ty.ll}")  # type: ignore[no-any-return]
    if ty.kind != "b" and ty.size == x.ty.size:
        return V(ty, x.ref)
    return g.v(ty, f"trunc {x.ty.ll} {x.ref} to {ty.ll}")  # type: ignore[no-any-return]


def _swap_shown(g: Any, bits: V, mask: int) -> V:
    """The simulator: each lane writes its word, and reads that of the other's record."""
    wide = bits.ref if bits.ty is u64 else g.op(f"zext i32 {bits.ref} to i64")
    mine = _field(g, "shown")
    g.do(f"store i64 {wide}, ptr {mine}")
    _suspend(g, FOR_WARP)
    lane = g.op(f"load i64, ptr {_field(g, 'index')}")
    away = g.op(f"sub i64 {g.op(f'xor i64 {lane}, {mask}')}, {lane}")
    offset = g.op(f"mul i64 {away}, {GridThread.size}")
    found = g.op(f"load i64, ptr {g.op(f'getelementptr i8, ptr {mine}, i64 {offset}')}")
    _suspend(g, FOR_WARP)
    return V(u64, found) if bits.ty is u64 else g.v(u32, f"trunc i64 {found} to i32")


def _shuffle(g: Any, bits: V, mask: int) -> V:
    name = "llvm.nvvm.shfl.sync.bfly.i32"
    g.declare(name, f"declare i32 @{name}(i32, i32, i32, i32) convergent")

    def swapped(half: str) -> str:
        return str(g.op(f"call i32 @{name}(i32 -1, i32 {half}, i32 {mask}, i32 31) convergent"))

    if bits.ty is u32:
        return V(u32, swapped(bits.ref))
    low = swapped(g.op(f"trunc i64 {bits.ref} to i32"))
    high = swapped(g.op(f"trunc i64 {g.op(f'lshr i64 {bits.ref}, 32')} to i32"))
    low, high = g.op(f"zext i32 {low} to i64"), g.op(f"zext i32 {high} to i64")
    return g.v(u64, f"or i64 {low}, {g.op(f'shl i64 {high}, 32')}")  # type: ignore[no-any-return]


def _sub_group_shuffle(g: Any, bits: V, mask: int) -> V:
    g.module.swaps = True
    name = f"_Z21sub_group_shuffle_xor{'m' if bits.ty is u64 else 'j'}j"
    ty = bits.ty.ll
    g.declare(name, f"declare {ty} @{name}({ty}, i32) convergent")
    return g.v(bits.ty, f"call {ty} @{name}({ty} {bits.ref}, i32 {mask}) convergent")  # type: ignore[no-any-return]


_SWAPS = {"sim": _swap_shown, "ptx": _shuffle, "spirv": _sub_group_shuffle}


# ---- memory of the device
@intrinsic(lambda ty, word: to_pointer(ptr[ty], word))
def device_pointer(g: Any, node: Any, ty: Ty, word: Any) -> V:
    """``device_pointer(T, word)``: a word of the launch as ptr[T] to the device's memory."""
    word = g.rt(word, node, i64)
    if g.target.grid == "sim":
        return g.cast(ptr[ty], word, node)  # type: ignore[no-any-return]
    # (so LLVM knows that it is neither shared memory nor the thread's own)
    known = g.op(f"inttoptr i64 {word.ref} to ptr addrspace(1)")
    return g.v(ptr[ty], f"addrspacecast ptr addrspace(1) {known} to ptr")  # type: ignore[no-any-return]


@intrinsic(lambda p, n: np.array([p[k] for k in range(n)]))
def load_whole(g: Any, node: Any, p: Any, n: int) -> V:
    """n values from an address that is a multiple of their size together: one wide load."""
    p = g.rt(p, node)
    ty = vec[p.ty.elem, n]
    return g.load(ty, p.ref, ty.size)  # type: ignore[no-any-return]


def _python_store(p: Any, v: Any) -> None:
    for k, x in enumerate(v):
        p[k] = x


@intrinsic(_python_store)
def store_whole(g: Any, node: Any, p: Any, v: Any) -> None:
    """The lanes of a vector to an address that is a multiple of its size: one wide store."""
    p, v = g.rt(p, node), g.rt(v, node)
    g.store(v, p.ref, v.ty.size)


__all__ = [
    "PARAMETER_WORDS", "WARP", "GridThread", "barrier", "block", "blocks", "device_pointer",
    "dynamic_shared", "load_whole", "resident_blocks", "run_grid", "shared", "store_whole",
    "swap_lanes", "thread", "threads",
]  # fmt: skip
