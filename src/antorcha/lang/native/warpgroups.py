"""Products of matrices in shared memory by a warpgroup: the instructions of capability 9.0 alone.

A warpgroup is four warps, 128 threads that follow one another. Its products run beside it: they are
begun, and waited for. As in ``grid``, each name has three forms. The simulator reads shared memory
through the same descriptors as the hardware (NVIDIA's PTX manual, "Asynchronous warpgroup level
matrix instructions"), so that a kernel's layouts are tested, and no earlier than the products are
waited for: until then their sums are NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from antorcha.lang.native import grid
from antorcha.lang.native.function import inline, native
from antorcha.lang.native.grid import MOST_PRODUCTS, WARP, GridThread
from antorcha.lang.native.intrinsics import bitcast, local, static
from antorcha.lang.native.semantics import convert
from antorcha.lang.native.tensor_cores import TF32_BITS, _of_warp, _show
from antorcha.lang.native.types import Ty, bf16, f16, f32, i32, i64, ptr, raw, u16, u32, u64, void
from antorcha.lang.native.values import V, intrinsic
from antorcha.lang.native.vectors import fma

WARPGROUP = 128
DEEP = 32  # bytes along the depth of one product: 16 halves, or 8 numbers of TF32
SWIZZLE = 128
"""Bytes of a row in shared memory. The eight pieces of 16 bytes of a row change places: piece p of
row r lies where piece p ^ (r % 8) would."""
UNALIGNED = 1 << 62  # an address in the simulator's memory, but of no allocation: it is reported
_ROWS, _ACROSS_A, _ACROSS_B, _IS_F16 = 0x1FF, 1 << 10, 1 << 11, 1 << 12  # parts of a form
_IS_TF32, _GIVEN = 1 << 13, 1 << 14  # (given: the left factor, in registers)


# ---- descriptors
@inline
def matrix_descriptor(p, apart):
    """What a product must know of a tile in shared memory that begins at p.

    A tile's rows have 128 bytes (64 halves, or 32 numbers of f32) and are swizzled; its first byte
    is at a multiple of 1024. ``apart`` (compile time): 0 for a tile that lies along the depth, each
    row an index of the other side. A tile of halves that lies along the other side has 64 of it in
    a row, a row for each depth; the next 64 are ``apart`` bytes on.
    """
    start = u64(shared_offset(p)) >> 4 & 0x3FFF
    return start | static((apart // 16 or 1) << 16 | (8 * SWIZZLE // 16) << 32 | 1 << 62)


# ---- the simulator
@native
def number_in_shared(
    t: ptr[GridThread], descriptor: u64, form: i64, across: i64, i: i64, k: i64
) -> f32:
    """The element at index i of a side and depth k."""
    place = i64(descriptor & 0x3FFF) << 4
    leading = i64(descriptor >> 16 & 0x3FFF) << 4
    stride = i64(descriptor >> 32 & 0x3FFF) << 4
    size = 4 if form & static(_IS_TF32) != 0 else 2
    if across != 0:
        place += i // 64 * leading + i % 64 * 2 + k // 8 * stride + k % 8 * SWIZZLE
    else:
        place += i // 8 * stride + i % 8 * SWIZZLE + k * size
    place = place ^ (place >> 7 & 7) << 4
    address = i64(t.shared) + place
    if place >= t.shared_bytes or descriptor >> 62 != 1:
        address = i64(UNALIGNED)
    if form & static(_IS_TF32) != 0:
        return bitcast(f32, ptr[u32](raw(address))[0] & static(TF32_BITS))
    bits = ptr[u16](raw(address))[0]
    if form & static(_IS_F16) != 0:
        return f32(bitcast(f16, bits))
    return f32(bitcast(bf16, bits))


@native
def add_product(t: ptr[GridThread], number: i64) -> void:
    """Adds a thread's share of a product that is on its way to its sums."""
    at = number % MOST_PRODUCTS
    a, b = u64(t.products[at * 3]), u64(t.products[at * 3 + 1])
    form = t.products[at * 3 + 2]
    lane = t.number % WARP
    row = t.number // WARP % 4 * 16 + lane // 4
    deep = 8 if form & static(_IS_TF32) != 0 else 16
    left = local(f32, 32)
    for k in range(deep):
        for low in range(2):
            if form & static(_GIVEN) != 0:
                left[low * 16 + k] = t.lefts[at * 16 + low * 8 + k]
            else:
                across = form & static(_ACROSS_A)
                left[low * 16 + k] = number_in_shared(t, a, form, across, row + low * 8, k)
    for j in range((form & static(_ROWS)) // 8):
        for odd in range(2):
            column = j * 8 + lane % 4 * 2 + odd
            for k in range(deep):
                y = number_in_shared(t, b, form, form & static(_ACROSS_B), column, k)
                for low in range(2):
                    at = j * 4 + low * 2 + odd
                    t.sums[at] = fma(left[low * 16 + k], y, t.sums[at])


@native
def take_left(t: ptr[GridThread]) -> void:
    """Takes a thread's two rows of the fragments that its warp shows, for the next product."""
    make_room(t)
    at = t.products_begun % MOST_PRODUCTS * 16
    first = t - t.number % 4
    for k in range(8):
        for low in range(2):
            bits = (first + k % 4).fragment[k // 4 * 2 + low]
            t.lefts[at + low * 8 + k] = bitcast(f32, bits & static(TF32_BITS))


@native
def make_room(t: ptr[GridThread]) -> void:
    """Does the oldest product where there are too many on their way."""
    if t.products_begun - t.products_done == MOST_PRODUCTS:
        end_products(t, t.products_done + 1)


@native
def begin_product(t: ptr[GridThread], a: u64, b: u64, form: i64) -> void:
    """Puts a product on its way."""
    make_room(t)
    at = t.products_begun % MOST_PRODUCTS * 3
    t.products[at] = i64(a)
    t.products[at + 1] = i64(b)
    t.products[at + 2] = form
    t.products_begun += 1


@native
def end_products(t: ptr[GridThread], end: i64) -> void:
    while t.products_done < end:
        add_product(t, t.products_done)
        t.products_done += 1


@native
def end_product_group(t: ptr[GridThread]) -> void:
    t.product_groups[t.product_groups_made % MOST_PRODUCTS] = t.products_begun
    t.product_groups_made += 1


@native
def await_products(t: ptr[GridThread], left: i64) -> void:
    """Does the products of all groups but the last ``left``."""
    if t.product_groups_made > left:
        end_products(t, t.product_groups[(t.product_groups_made - 1 - left) % MOST_PRODUCTS])


@native
def sum_given(t: ptr[GridThread], k: i64, x: f32) -> void:
    """Takes a sum as products begin, unless earlier ones are on their way: theirs goes on."""
    if t.products_begun == t.products_done:
        t.sums[k] = x


@native
def sum_found(t: ptr[GridThread], k: i64) -> f32:
    """A sum; NaN while products are on their way."""
    if t.products_begun == t.products_done:
        return t.sums[k]
    return bitcast(f32, i32(-1))


# ---- plain Python
def _python_offset(p: Any) -> Any:
    return np.int32(p.address - grid._room("shared_offset").start)


def _python_number(T: Ty, data: Any, descriptor: int, across: bool, i: int, k: int) -> Any:
    place, leading, stride = [(descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32)]
    if across:
        place += i // 64 * leading + i % 64 * 2 + k // 8 * stride + k % 8 * SWIZZLE
    else:
        place += i // 8 * stride + i % 8 * SWIZZLE + k * T.size
    place ^= (place >> 7 & 7) << 4
    if T is f32:
        return _as_tf32(data[place : place + 4].view(np.uint32)[0])
    return convert(f32, bitcast(T, data[place : place + 2].view(np.uint16)[0]))


def _as_tf32(bits: Any) -> Any:
    return bitcast(f32, np.uint32(bits & TF32_BITS))


def _python_wgmma(T: Ty, a: Any, b: Any, c: Any, across: tuple[bool, bool]) -> list[Any]:
    data, number = grid._room("wgmma").data, grid._here.number
    lane, result = number % WARP, list(c)
    row = number // WARP % 4 * 16 + lane // 4
    warp = _of_warp(a, "wgmma")[0] if isinstance(a, list) else []
    for at in range(len(result)):
        low, j = at % 4 // 2, at // 4 * 8 + lane % 4 * 2 + at % 2
        for k in range(DEEP // T.size):
            if warp:
                x = _as_tf32(warp[lane // 4 * 4 + k % 4][k // 4 * 2 + low])
            else:
                x = _python_number(T, data, int(a), across[0], row + low * 8, k)
            y = _python_number(T, data, int(b), across[1], j, k)
            result[at] = fma(x, y, result[at])
    return result


# ---- the instructions
def _only_here(g: Any, node: Any, name: str) -> None:
    grid._in_kernel(g, node, name)
    if g.target.grid == "ptx" and g.target.cpu != "sm_90a":
        g.fail(node, f"{name}() is an instruction of sm_90a alone, not of {g.target.cpu}")


def _on_sums(g: Any, text: str, c: list[V], words: list[V] = ()) -> list[V]:  # type: ignore[assignment]
    """An instruction that changes sums in registers; ``$0`` ... are the sums, then the words."""
    n = len(c)
    kinds = "{ " + ", ".join(["float"] * n) + " }"
    given = [f"{w.ty.ll} {w.ref}" for w in words] + [f"float {x.ref}" for x in c]
    limits = (
        ["=f"] * n
        + ["l" if w.ty.size == 8 else "r" for w in words]
        + [str(k) for k in range(n)]
        + ["~{memory}"]
    )
    asm = f'asm sideeffect "{text}", "{",".join(limits)}"({", ".join(given)}) convergent'
    made = g.op(f"call {kinds} {asm}")
    return [g.v(f32, f"extractvalue {kinds} {made}, {k}") for k in range(n)]


def _alone(g: Any, text: str) -> None:
    g.do(f'call void asm sideeffect "{text}", "~{{memory}}"() convergent')


@intrinsic(_python_offset)
def shared_offset(g: Any, node: Any, p: Any) -> V:
    """Where a place in shared memory is, in bytes from its begin (an i32)."""
    grid._in_kernel(g, node, "shared_offset")
    p = g.rt(p, node)
    if g.target.grid == "ptx":
        near = g.op(f"addrspacecast ptr {p.ref} to ptr addrspace(3)")
        offset: V = g.v(i32, f"ptrtoint ptr addrspace(3) {near} to i32")
        return offset
    base = g.op(f"load i64, ptr {grid._field(g, 'shared')}")
    here = g.op(f"ptrtoint ptr {p.ref} to i64")
    offset = g.v(i32, f"trunc i64 {g.op(f'sub i64 {here}, {base}')} to i32")
    return offset


@intrinsic(lambda: None)
def fence_async(g: Any, node: Any) -> None:
    """What this thread wrote to shared memory is seen by products that begin after a barrier."""
    _only_here(g, node, "fence_async")
    if g.target.grid == "ptx":
        _alone(g, "fence.proxy.async.shared::cta;")


@intrinsic(lambda c: list(c))
def wgmma_fence(g: Any, node: Any, c: Any) -> list[V]:
    """The sums, before the first product that is to change them."""
    _only_here(g, node, "wgmma_fence")
    sums: list[V] = [g.rt(x, node, f32) for x in c]
    if g.target.grid == "ptx":
        return _on_sums(g, "wgmma.fence.sync.aligned;", sums)
    return sums


@intrinsic(_python_wgmma)
def wgmma(g: Any, node: Any, T: Any, a: Any, b: Any, c: Any, across: Any) -> list[V]:
    """Begins ``c + a @ b`` of halves of type T, 64 x n x 16, added up in f32 by a warpgroup; of
    f32, of which the bits of a TF32 are read, 64 x n x 8.

    a and b are descriptors; ``across`` says of each whether it lies along its other side, as
    halves may. A thread has of c (64 x n, n / 2 numbers), with q = 2 * (lane % 4), row
    r = 16 * (warp % 4) + lane // 4: columns q and q + 1 of rows r and r + 8, then those 8 columns
    on, and so on. Of f32 a may be in registers, four words (u32): columns lane % 4 of rows r and
    r + 8, then those 4 columns on; they change no more until ``wgmma_wait``. Only the products of
    one list c are on their way at a time; its values are undefined until ``wgmma_wait``.
    """
    _only_here(g, node, "wgmma")
    given = [g.rt(x, node, u32) for x in a] if isinstance(a, list) else []
    a, b = None if given else g.rt(a, node, u64), g.rt(b, node, u64)
    c = [g.rt(x, node, f32) for x in c]
    left, right = [bool(x) for x in across]
    if (T is f32 and (left or right)) or (given and T is not f32):
        g.fail(node, "wgmma() takes halves across from shared memory, f32 along or from registers")
    if g.target.grid != "ptx":
        return _shown_wgmma(g, node, T, given or [a], b, c, left, right)
    kind = "tf32" if T is f32 else "f16" if T is f16 else "bf16"
    n, flags = len(c), "" if T is f32 else f", {left:d}, {right:d}"
    regs = [f"${k}" for k in range(n + len(given or [a]) + 1)]
    first = f"{{{', '.join(regs[n:-1])}}}" if given else regs[n]
    text = (
        f"wgmma.mma_async.sync.aligned.m64n{2 * n}k{DEEP // T.size}.f32.{kind}.{kind} "
        f"{{{', '.join(regs[:n])}}}, {first}, {regs[-1]}, 1, 1, 1{flags};"
    )
    return _on_sums(g, text, c, [*(given or [a]), b])


def _shown_wgmma(
    g: Any, node: Any, T: Any, a: list[V], b: V, c: list[V], left: bool, right: bool
) -> list[V]:  # fmt: skip
    """The simulator's; a: a descriptor, or a fragment."""
    thread = V(ptr[GridThread], "%thread")
    for k, x in enumerate(c):
        g.call(sum_given, [thread, k, x], {}, node)
    given = len(a) > 1
    if given:
        _show(g, "fragment", a)
        grid._suspend(g, grid.FOR_WARP)
        g.call(take_left, [thread], {}, node)
        grid._suspend(g, grid.FOR_WARP)
    form = 2 * len(c) | left * _ACROSS_A | right * _ACROSS_B | given * _GIVEN
    form |= (T is f16) * _IS_F16 | (T is f32) * _IS_TF32
    g.call(begin_product, [thread, 0 if given else a[0], b, form], {}, node)
    return [g.call(sum_found, [thread, k], {}, node) for k in range(len(c))]


@intrinsic(lambda: None)
def wgmma_commit(g: Any, node: Any) -> None:
    """Ends a group of products: those that this warpgroup began since the last group."""
    _only_here(g, node, "wgmma_commit")
    if g.target.grid == "ptx":
        _alone(g, "wgmma.commit_group.sync.aligned;")
    else:
        g.call(end_product_group, [V(ptr[GridThread], "%thread")], {}, node)


@intrinsic(lambda left, c: list(c))
def wgmma_wait(g: Any, node: Any, left: Any, c: Any) -> list[V]:
    """Waits for this warpgroup's groups of products, all but the last ``left`` (compile time), and
    gives the sums c; they have values when no group is left."""
    _only_here(g, node, "wgmma_wait")
    if not isinstance(left, int):
        g.fail(node, "wgmma_wait(left, c) takes a compile-time number")
    c = [g.rt(x, node, f32) for x in c]
    if g.target.grid == "ptx":
        return _on_sums(g, f"wgmma.wait_group.sync.aligned {left};", c)
    thread = V(ptr[GridThread], "%thread")
    g.call(await_products, [thread, left], {}, node)
    return [g.call(sum_found, [thread, k], {}, node) for k in range(len(c))]


@intrinsic(lambda count, more: None)
def set_registers(g: Any, node: Any, count: Any, more: Any) -> None:
    """From here on each thread of this warpgroup has ``count`` registers (a multiple of 8), more
    than before or fewer; of a kernel whose warpgroups do different work."""
    _only_here(g, node, "set_registers")
    if g.target.grid == "ptx":
        _alone(g, f"setmaxnreg.{'inc' if more else 'dec'}.sync.aligned.u32 {count};")


__all__ = [
    "DEEP", "SWIZZLE", "WARPGROUP", "fence_async", "matrix_descriptor",
    "set_registers", "shared_offset", "wgmma", "wgmma_commit", "wgmma_fence", "wgmma_wait",
]  # fmt: skip
