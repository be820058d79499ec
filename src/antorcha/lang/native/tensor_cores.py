"""Products of small matrices by a warp, and copies to shared memory that run beside a kernel.

As in ``grid``, each name has three forms. In the simulator the lanes of a warp show each other
their parts of the matrices, in the layouts that NVIDIA's PTX manual gives ("Matrix multiply-
accumulate operation using mma", "ldmatrix"), so that a kernel's own layouts are tested. What they
add up is cut off after 24 bits, not rounded, as tensor cores do (M. Fasi et al., "Numerical
behavior of NVIDIA tensor cores", 2021), so that long sums err there as much. A copy is done no
earlier than its thread waits for it: until then its place is poisoned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from antorcha.lang.native import grid
from antorcha.lang.native.function import native
from antorcha.lang.native.grid import MOST_COPIES, WARP, GridThread
from antorcha.lang.native.intrinsics import bitcast, memcpy, memset, static
from antorcha.lang.native.semantics import convert
from antorcha.lang.native.types import (
    Ty,
    f16,
    f32,
    f64,
    i32,
    i64,
    ptr,
    raw,
    u8,
    u16,
    u32,
    u64,
    void,
)
from antorcha.lang.native.values import V, intrinsic
from antorcha.lang.native.vectors import fabs, fma

PIECE = 16  # bytes of a copy, and of a row of an 8 x 8 matrix of halves
UNALIGNED = 1 << 62  # an address in the simulator's memory, but of no allocation: it is reported
POISON = 0xFF
TF32_BITS = 0xFFFFE000
"""What is read of a float32 that is multiplied as a TF32: 10 bits of its mantissa."""


# ---- the simulator
@native
def cut_off(x: f64) -> f32:
    """The nearest f32 that is no farther from zero."""
    near = f32(x)
    if fabs(f64(near)) > fabs(x) and near - near == f32(0):  # (not infinite)
        near = bitcast(f32, bitcast(u32, near) - 1)
    return near


@native
def multiply_shown(t: ptr[GridThread], *, T: Any) -> void:
    """Adds a lane's share of the product of the fragments that its warp shows to ``product``."""
    lane = t.index[0] % WARP
    row = lane // 4
    quad = lane % 4
    sums = [f64(t.product[k]) for k in static(range(4))]
    for pair in range(8):  # of neighbours along the depth; of TF32, a single number
        left = t + (row * 4 + pair % 4 - lane)
        for column in static(range(2)):
            right = t + ((2 * quad + column) * 4 + pair % 4 - lane)
            y = right.fragment[4 + pair // 4]
            for low in static(range(2)):  # the upper 8 rows, the lower ones
                x = left.fragment[2 * (pair // 4) + low]
                at = static(2 * low + column)
                if T is f32:
                    a = bitcast(f32, x & static(TF32_BITS))
                    b = bitcast(f32, y & static(TF32_BITS))
                    sums[at] = fma(f64(a), f64(b), sums[at])
                else:
                    for odd in static(range(2)):
                        a = f64(bitcast(T, u16(x >> static(16 * odd))))
                        b = f64(bitcast(T, u16(y >> static(16 * odd))))
                        sums[at] = fma(a, b, sums[at])
    for k in static(range(4)):
        t.product[k] = cut_off(sums[k])


@native
def round_bits(x: f32) -> u32:
    """The bits of an f32 rounded to a TF32."""
    bits = bitcast(u32, x)
    if bits & 0x7F800000 == 0x7F800000:  # infinite, or no number
        if bits & 0x7FFFFF != 0:
            bits = u32(0x7FFFFFFF)
    else:
        bits = (bits + 0xFFF + (bits >> 13 & 1)) & static(TF32_BITS)
    return bits


@native
def load_shown(t: ptr[GridThread], *, transposed: Any) -> void:
    """A lane's elements of the four matrices whose rows' addresses its warp shows."""
    lane = t.index[0] % WARP
    for j in range(4):
        word = u32(0)
        for odd in static(range(2)):
            if transposed:
                row, column = lane % 4 * 2 + odd, lane // 4
            else:
                row, column = lane // 4, lane % 4 * 2 + odd
            address = i64((t + (j * 8 + row - lane)).shown)
            if address % PIECE != 0:
                address = i64(UNALIGNED)
            word = word | u32(ptr[u16](raw(address))[column]) << static(16 * odd)
        t.fragment[j] = word


@native
def begin_copy(t: ptr[GridThread], to: raw, source: raw, nbytes: i64) -> void:
    """Puts a copy on its way; the oldest is done first where there are too many."""
    if t.copies_begun - t.copies_done == MOST_COPIES:
        end_copies(t, t.copies_done + 1)
    at = t.copies_begun % MOST_COPIES * 3
    t.copies[at] = i64(to)
    t.copies[at + 1] = i64(source)
    t.copies[at + 2] = nbytes
    if i64(to) % PIECE != 0 or (nbytes > 0 and i64(source) % PIECE != 0):
        t.copies[at + 1] = i64(UNALIGNED)
        t.copies[at + 2] = 1
    t.copies_begun += 1
    for k in range(PIECE):
        ptr[u8](to)[k] = POISON


@native
def end_group(t: ptr[GridThread]) -> void:
    t.groups[t.groups_made % MOST_COPIES] = t.copies_begun
    t.groups_made += 1


@native
def end_copies(t: ptr[GridThread], end: i64) -> void:
    """Does the copies up to number ``end``, and fills the rest of each piece with zeros."""
    while t.copies_done < end:
        at = t.copies_done % MOST_COPIES * 3
        to = ptr[u8](raw(t.copies[at]))
        source = ptr[u8](raw(t.copies[at + 1]))
        for k in range(PIECE):
            byte = u8(0)
            if k < t.copies[at + 2]:
                byte = source[k]
            to[k] = byte
        t.copies_done += 1


@native
def await_groups(t: ptr[GridThread], left: i64) -> void:
    """Does the copies of all groups but the last ``left``."""
    if t.groups_made > left:
        end_copies(t, t.groups[(t.groups_made - 1 - left) % MOST_COPIES])


def _thread(g: Any) -> V:
    return V(ptr[GridThread], "%thread")


def _show(g: Any, field: str, values: list[V]) -> None:
    """Writes values to a field of this thread's record."""
    for k, x in enumerate(values):
        offset = GridThread.fields[field][0] + k * x.ty.size
        g.do(f"store {x.ty.ll} {x.ref}, ptr {g.op(f'getelementptr i8, ptr %thread, i64 {offset}')}")


def _shown(g: Any, field: str, ty: Ty) -> list[V]:
    """The four values of a field of this thread's record."""
    start = GridThread.fields[field][0]
    places = [g.op(f"getelementptr i8, ptr %thread, i64 {start + k * ty.size}") for k in range(4)]
    return [g.v(ty, f"load {ty.ll}, ptr {place}") for place in places]


# ---- plain Python
def _of_warp(x: Any, name: str) -> tuple[list[Any], int]:
    """What all lanes show, and this one's number."""
    here = grid._here
    if here.place is None:
        grid._outside(name)
    around, number = here.around, here.number
    around.shown[number] = x
    around.warps[number // WARP].wait()
    first = number // WARP * WARP
    found = around.shown[first : first + WARP]
    around.warps[number // WARP].wait()
    return found, number - first


def _cut_off(x: Any) -> Any:
    near = np.float32(x)
    if np.isfinite(near) and abs(near) > abs(x):
        near = np.nextafter(near, np.float32(0))
    return near


def _python_mma(T: Ty, a: Any, b: Any, c: Any) -> list[Any]:
    warp, lane = _of_warp(([int(x) for x in a], [int(x) for x in b]), "mma")
    row, quad = divmod(lane, 4)
    result = [np.float64(x) for x in c]
    for pair in range(8):
        left = warp[row * 4 + pair % 4][0]
        for at in range(4):
            x, low = left[2 * (pair // 4) + at // 2], warp[(2 * quad + at % 2) * 4 + pair % 4][1]
            words = x, low[pair // 4]
            if T is f32:
                p, q = [bitcast(f32, np.uint32(w & TF32_BITS)) for w in words]
                result[at] += np.float64(p) * np.float64(q)
                continue
            for shift in (0, 16):
                halves = [np.uint16(w >> shift & 0xFFFF) for w in words]
                p, q = [np.float64(convert(f32, bitcast(T, half))) for half in halves]
                result[at] += p * q
    return [_cut_off(x) for x in result]


def _python_tf32(x: Any) -> Any:
    bits = int(bitcast(u32, np.float32(x)))
    if bits << 1 & 0xFF000000 == 0xFF000000:  # infinite, or no number
        return np.uint32(bits if bits << 9 & 0xFFFFFFFF == 0 else 0x7FFFFFFF)
    return np.uint32(bits + 0xFFF + (bits >> 13 & 1) & TF32_BITS)


def _python_load(p: Any, transposed: bool = False) -> list[Any]:
    warp, lane = _of_warp(ptr[u16](p), "load_matrices")
    words = []
    for j in range(4):
        word = 0
        for odd in range(2):
            at = (lane // 4, lane % 4 * 2 + odd)
            row, column = reversed(at) if transposed else at
            word |= int(warp[j * 8 + row][column]) << 16 * odd
        words.append(np.uint32(word))
    return words


def _python_copy(to: Any, source: Any, nbytes: Any, again: bool = False) -> None:
    memset(raw(to), 0, PIECE)
    if nbytes:
        memcpy(raw(to), raw(source), nbytes)


# ---- the instructions
def _in_space(g: Any, p: V, number: int) -> str:
    kind = f"ptr addrspace({number})"
    return f"{kind} {g.op(f'addrspacecast ptr {p.ref} to {kind}')}"


def _four(g: Any, name: str, ty: Ty, args: list[str]) -> list[V]:
    """Calls an instruction of a warp that gives four values."""
    kinds = "{ " + ", ".join([ty.ll] * 4) + " }"
    given = ", ".join([a.rpartition(" ")[0] for a in args])
    g.declare(name, f"declare {kinds} @{name}({given}) convergent")
    made = g.op(f"call {kinds} @{name}({', '.join(args)}) convergent")
    return [g.v(ty, f"extractvalue {kinds} {made}, {k}") for k in range(4)]


@intrinsic(_python_mma)
def mma(g: Any, node: Any, T: Any, a: Any, b: Any, c: Any) -> list[V]:
    """``c + a @ b`` of halves of type T, 16 x 8 x 16, added up in f32 by a warp; of f32, of which
    the bits of a TF32 are read, 16 x 8 x 8.

    With row r = lane // 4 and q = 2 * (lane % 4), a lane has of a (16 x 16, four words of two
    halves) rows r and r + 8 at columns q and q + 1, then at q + 8 and q + 9; of b (16 x 8, two
    words) rows q and q + 1, then q + 8 and q + 9, of column r; of c (16 x 8) columns q and q + 1 of
    row r, then of row r + 8. Of f32 a word is a number: where a half's would be q and q + 1, it is
    lane % 4, and 4 more where it would be 8 more.
    """
    grid._in_kernel(g, node, "mma")
    a, b = [g.rt(x, node, u32) for x in a], [g.rt(x, node, u32) for x in b]
    c = [g.rt(x, node, f32) for x in c]
    if g.target.grid != "ptx":
        _show(g, "fragment", [*a, *b])
        _show(g, "product", c)
        grid._suspend(g, grid.FOR_WARP)
        g.call(multiply_shown, [_thread(g)], {"T": T}, node)
        grid._suspend(g, grid.FOR_WARP)
        return _shown(g, "product", f32)
    sums = [f"float {x.ref}" for x in c]
    words = [f"i32 {x.ref}" for x in (*a, *b)]
    if T is f32:
        return _four(g, "llvm.nvvm.mma.m16n8k8.row.col.tf32", f32, words + sums)
    if T is not f16:
        return _four(g, "llvm.nvvm.mma.m16n8k16.row.col.bf16", f32, words + sums)
    pairs = [f"<2 x half> {g.op(f'bitcast {w} to <2 x half>')}" for w in words]
    return _four(g, "llvm.nvvm.mma.m16n8k16.row.col.f32.f32", f32, pairs + sums)


@intrinsic(_python_tf32)
def to_tf32(g: Any, node: Any, x: Any) -> V:
    """The bits of an f32 rounded to the nearest TF32, of 10 bits of mantissa. Of two that are as
    near the even one; up to capability 8.9, which has no instruction for that, the larger one."""
    x = g.rt(x, node, f32)
    if g.target.grid == "ptx":
        ties = "rn" if int(g.target.cpu.strip("sm_a")) >= 90 else "rna"
        return g.intr(f"llvm.nvvm.f2tf32.{ties}", u32, [f"float {x.ref}"])  # type: ignore[no-any-return]
    return g.call(round_bits, [x], {}, node)  # type: ignore[no-any-return]


@intrinsic(_python_load)
def load_matrices(g: Any, node: Any, p: Any, transposed: bool = False) -> list[V]:
    """Four 8 x 8 matrices of 16 bits from shared memory; lane i gives the address of row i % 8 of
    matrix i // 8, a multiple of 16 bytes. A lane gets columns q and q + 1 of row lane // 4 of each,
    with q = 2 * (lane % 4); ``transposed``, rows q and q + 1 of column lane // 4."""
    grid._in_kernel(g, node, "load_matrices")
    p = g.rt(p, node)
    if g.target.grid != "ptx":
        _show(g, "shown", [g.v(u64, f"ptrtoint ptr {p.ref} to i64")])
        grid._suspend(g, grid.FOR_WARP)
        g.call(load_shown, [_thread(g)], {"transposed": transposed}, node)
        grid._suspend(g, grid.FOR_WARP)
        return _shown(g, "fragment", u32)
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{'.trans' if transposed else ''}.b16.p3"
    return _four(g, name, u32, [_in_space(g, p, 3)])


@intrinsic(_python_copy)
def copy_piece(
    g: Any, node: Any, to: Any, source: Any, nbytes: Any, again: bool = False
) -> None:  # fmt: skip
    """Begins to copy up to 16 bytes (an i32) of the device's memory to shared memory, where the
    rest of 16 bytes becomes 0. Both addresses are multiples of 16 bytes. What is there is undefined
    until ``wait_copies``. ``again``: the block reads the same again: the nearest cache keeps it."""
    grid._in_kernel(g, node, "copy_piece")
    to, source, nbytes = g.rt(to, node), g.rt(source, node), g.rt(nbytes, node, i32)
    if g.target.grid != "ptx":
        wide = g.cast(i64, nbytes, node)
        g.call(begin_copy, [_thread(g), V(raw, to.ref), V(raw, source.ref), wide], {}, node)
        return
    name = f"llvm.nvvm.cp.async.{'ca' if again else 'cg'}.shared.global.16.s"
    g.declare(name, f"declare void @{name}(ptr addrspace(3), ptr addrspace(1), i32)")
    places = f"{_in_space(g, to, 3)}, {_in_space(g, source, 1)}"
    g.do(f"call void @{name}({places}, i32 {nbytes.ref})")


@intrinsic(lambda: None)
def commit_copies(g: Any, node: Any) -> None:
    """Ends a group of this thread's copies: what it began since the last group, if anything."""
    grid._in_kernel(g, node, "commit_copies")
    if g.target.grid != "ptx":
        g.call(end_group, [_thread(g)], {}, node)
    else:
        g.intr("llvm.nvvm.cp.async.commit.group", void, [])


@intrinsic(lambda left: None)
def wait_copies(g: Any, node: Any, left: Any) -> None:
    """Waits for this thread's groups of copies, all but the last ``left`` (compile time). Other
    threads see what was copied after a barrier."""
    grid._in_kernel(g, node, "wait_copies")
    if not isinstance(left, int):
        g.fail(node, "wait_copies(left) takes a compile-time number")
    if g.target.grid != "ptx":
        g.call(await_groups, [_thread(g), left], {}, node)
    else:
        g.intr("llvm.nvvm.cp.async.wait.group", void, [f"i32 {left}"])


def _python_pack(T: Ty, x: Any, y: Any) -> Any:
    low, high = [int(bitcast(u16, convert(T, np.float32(v)))) for v in (x, y)]
    return np.uint32(low | high << 16)


@intrinsic(_python_pack)
def pack_halves(g: Any, node: Any, T: Any, x: Any, y: Any) -> V:
    """Two f32, rounded to a half type, as a u32: x in the lower 16 bits."""
    x, y = g.rt(x, node, f32), g.rt(y, node, f32)
    if g.target.grid == "ptx":
        kind = "<2 x half>" if T is f16 else "<2 x bfloat>"
        name = f"llvm.nvvm.ff2{'f' if T is f16 else 'bf'}16x2.rn"
        g.declare(name, f"declare {kind} @{name}(float, float)")
        both = g.op(f"call {kind} @{name}(float {y.ref}, float {x.ref})")
        return g.v(u32, f"bitcast {kind} {both} to i32")  # type: ignore[no-any-return]
    low, high = [g.cast(u32, g.bitcast(u16, g.narrow(T, v), node), node) for v in (x, y)]
    return g.binary("or", low, g.binary("shl", high, 16, node), node)  # type: ignore[no-any-return]


__all__ = [
    "commit_copies", "copy_piece", "load_matrices", "mma", "pack_halves", "to_tf32",
    "wait_copies",
]  # fmt: skip
