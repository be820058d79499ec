"""Matrix products: packed panels and a register tile, any strides, of floats and of integers.

The classic scheme (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
2008): a block of B is packed into panels of NR columns, a block of A into panels of MR rows, and a
tile of MR x NR results stays in registers while both panels stream by. Packing makes every operand
look alike, so transposed views cost nothing; ``pack`` transposes in registers when it must.

Threads each take a part of the rows, the columns or the batch, and pack for themselves.
"""

from __future__ import annotations

import functools
import struct as _struct
from collections.abc import Sequence
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.core.structs import replace
from antorcha.devices.cpu.matmul_thin import THIN, by_dots, by_rows, scale_of
from antorcha.devices.cpu.template import launch, transposed
from antorcha.devices.emit import Unsupported
from antorcha.lang.kernels import Launch, MatMul
from antorcha.lang.native import (
    address,
    f32,
    f64,
    first,
    fma,
    i8,
    i16,
    i32,
    i64,
    inline,
    local,
    native,
    prefetch,
    ptr,
    raw,
    static,
    struct,
    u8,
    vec,
    vload,
    void,
    vstore,
)
from antorcha.lang.native.machine import target
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.pool import get_num_threads, pool_run

_complex = lazy("antorcha.devices.cpu.matmul_complex")
_pairs = lazy("antorcha.devices.cpu.matmul_pairs")

KC, MC, NC = 384, 16, 1024  # depth of a block; its rows (in tiles) and columns
SHALLOW = 16  # depth below which sums of few columns' products are not worth a vector each
DIRECT, DEEPEST = 1 << 18, 1024  # multiply-adds, and depth, up to which A is not packed
SMALL = 1 << 17  # multiply-adds below which one thread does all


class ProductShape:
    """The register tile of a dtype on this machine: a compile-time value."""

    __slots__ = ("A", "L", "MR", "NR", "NV", "T", "WIDE", "parts")

    def __init__(self, T: Any) -> None:
        bits = target().vector_bits
        self.T = T
        self.A = i16 if T.size == 1 else T  # what is added up: bytes have no product
        self.L = bits // 8 // max(T.size, 4)  # (a square of more lanes is too much to transpose)
        self.MR, self.NV = (14, 2) if bits == 512 else (6, 2)
        self.NR = self.L * self.NV
        self.WIDE = 8 if bits == 512 else 4  # rows of two vectors that are in registers at a time
        self.parts = [w for w in (14, 8, 6, 4, 2, 1) if w <= self.MR]

    def __native_key__(self) -> str:
        return f"{self.T.name} {self.L} {self.MR} {self.NV}"


@struct
class ProductTask:
    """The description words of a product."""

    batch: i64
    m: i64
    n: i64
    k: i64
    a_batch: i64
    a_row: i64
    a_col: i64
    b_batch: i64
    b_row: i64
    b_col: i64
    o_batch: i64
    o_row: i64
    o_col: i64  # 1, but where `has_dots`
    bias: i64  # 1 when there is a third operand to start from
    c_batch: i64
    c_row: i64
    c_col: i64
    alpha: f64
    beta: f64
    row_parts: i64
    col_parts: i64
    row_size: i64
    col_size: i64


@struct
class Job:
    bufs: ptr[raw]
    task: ptr[ProductTask]


@inline
def turn(S, p, lane_step, k, b, few, lanes, to, W, mask):
    """A square of ``pack``: lanes b.. of L (or the mask's) by the few steps from k on."""
    L = static(S.L)
    # (a masked load from memory that is not there takes long)
    rows = [
        vload(
            p + min(b + i, lanes - 1) * lane_step + k, L,
            first(L, few if b + i < lanes else i64(0)),
        )
        for i in static(range(S.L))
    ]  # fmt: skip
    rows = transposed(S.L, rows)
    for q in static(range(S.L)):
        if q < few:
            vstore(to + q * W, rows[q], mask)


@native(export=True)
def pack(K: i64, lanes: i64, src: raw, lane_step: i64, k_step: i64, dst: raw, *, S, W) -> void:
    """``dst[k][lane] = src[lane * lane_step + k * k_step]`` for W lanes, 0 from ``lanes`` on."""
    T = static(S.T)
    L = static(S.L)
    p = ptr[T](src)
    to = ptr[T](dst)
    if lane_step == 1:
        for k in range(K):
            for b in static(range(0, W, S.L)):
                v = vload(p + k * k_step + b, L, first(L, lanes - b))
                vstore(to + k * W + b, v, None if b + S.L <= W else first(L, W - b))
    elif k_step == 1:
        whole = static(W // S.L * S.L)
        for k in range(0, K, L):
            if whole > 0:
                for b in range(0, whole, L):
                    turn(S, p, lane_step, k, b, K - k, lanes, to + (k * W + b), W, None)
            if whole < W:
                turn(
                    S, p, lane_step, k, i64(whole), K - k, lanes, to + (k * W + whole), W,
                    first(L, W - whole),
                )  # fmt: skip
    else:
        for k in range(K):
            for i in range(W):
                to[k * W + i] = p[i * lane_step + k * k_step] if i < lanes else T(0)


@native
def tile(
    K: i64, A: raw, B: raw, b_row: i64, C: raw, c_row: i64, D: raw, d_row: i64, n: i64, alpha: f64,
    *, S, MR, masked,
) -> void:  # fmt: skip
    """MR x NR results C from a packed panel A[k][S.MR] and NR columns of B, which lies by rows.
    They are added to D where there is one: C itself, or a bias."""
    T = static(S.T)
    L = static(S.L)
    NV = static(S.NV)
    a = ptr[T](A)
    b = ptr[T](B)
    c = ptr[T](C)
    d = ptr[T](D)
    acc = [vec[S.A, S.L](0) for _ in static(range(MR * S.NV))]
    if D is not None:  # it has not been touched for long: it is on its way meanwhile
        for i in static(range(MR)):
            for j in static(range(S.NV)):
                prefetch(d + i * d_row + L * j)
    for _k in range(K):
        right = [
            vec[S.A, S.L](vload(b + L * j, L, first(L, n - L * j) if masked else None))
            for j in static(range(S.NV))
        ]
        prefetch(a + 16 * S.MR)
        for i in static(range(MR)):
            left = vec[S.A, S.L](S.A(a[i]))
            for j in static(range(S.NV)):
                acc[i * NV + j] = fma(left, right[j], acc[i * NV + j])
        a += S.MR
        b += b_row
    scale = scale_of(alpha, S.A)
    for i in static(range(MR)):
        for j in static(range(S.NV)):
            few = first(L, n - L * j) if masked else None
            result = vec[T, S.L](acc[i * NV + j] * scale)
            if D is not None:
                result = result + vload(d + i * d_row + L * j, L, few)
            vstore(c + i * c_row + L * j, result, few)


@native(export=True)
def tiles(
    K: i64, A: raw, B: raw, b_row: i64, C: raw, c_row: i64, D: raw, d_row: i64, m: i64, n: i64,
    alpha: f64, *, S,
) -> void:  # fmt: skip
    """A panel of up to MR rows: whole, or in parts of 8, 4, 2 and 1 rows. Like ``pack`` it is
    compiled once for a dtype, and linked by every kernel that multiplies."""
    size = static(S.T.size)
    if m >= S.MR and n >= S.NR:
        tile(K, A, B, b_row, C, c_row, D, d_row, n, alpha, S=S, MR=S.MR, masked=False)
    elif m >= S.MR:
        tile(K, A, B, b_row, C, c_row, D, d_row, n, alpha, S=S, MR=S.MR, masked=True)
    else:
        at = i64(0)
        for w in static(S.parts):
            while m - at >= w:
                below = D
                if D is not None:
                    below = D + at * d_row * size
                tile(
                    K, A + at * size, B, b_row, C + at * c_row * size, c_row, below, d_row, n,
                    alpha, S=S, MR=w, masked=True,
                )  # fmt: skip
                at += w


@native
def start(
    C: raw, c_row: i64, c_col: i64, bias: raw, b_row: i64, b_col: i64, m: i64, n: i64, beta: f64,
    *, T
) -> void:  # fmt: skip
    """C = beta * bias, the value to which the product is added."""
    c = ptr[T](C)
    b = ptr[T](bias)
    scale = scale_of(beta, T)
    for i in range(m):
        for j in range(n):
            c[i * c_row + j * c_col] = b[i * b_row + j * b_col] * scale


@native
def copy_rows(m: i64, k: i64, A: raw, a_row: i64, a_col: i64, to: raw, *, T) -> void:
    a = ptr[T](A)
    t = ptr[T](to)
    for i in range(m):
        for p in range(k):
            t[i * k + p] = a[i * a_row + p * a_col]


@native
def fill_zero(C: raw, c_row: i64, c_col: i64, m: i64, n: i64, *, T) -> void:
    c = ptr[T](C)
    for i in range(m):
        for j in range(n):
            c[i * c_row + j * c_col] = T(0)


@inline
def lies_well(m, b_col, S):
    """Is B read where it lies? To pack what few rows of A are multiplied by is no gain."""
    return b_col == 1 and m <= 6 * S.MR


@native
def product(
    m: i64, n: i64, k: i64, A: raw, a_row: i64, a_col: i64, B: raw, b_row: i64, b_col: i64,
    C: raw, c_row: i64, D: raw, d_row: i64, alpha: f64, space: raw, *, S,
) -> void:  # fmt: skip
    """One thread's product, added to D where there is one. ``space`` holds a packed block of A,
    then one of B."""
    size = static(S.T.size)
    MR = static(S.MR)
    NR = static(S.NR)
    packed_b = space + KC * MC * S.MR * S.T.size
    whole = lies_well(m, b_col, S)
    for jc in range(0, n, NC):
        nc = min(n - jc, NC)
        for pc in range(0, k, KC):
            kc = min(k - pc, KC)
            right = packed_b
            b_step = i64(S.NR)
            b_next = kc * size
            if whole:
                right = B + (pc * b_row + jc) * size
                b_step = b_row
                b_next = size
            else:
                for jr in range(0, nc, NR):
                    pack(
                        kc, min(nc - jr, NR), B + (pc * b_row + (jc + jr) * b_col) * size, b_col,
                        b_row, packed_b + jr * kc * size, S=S, W=S.NR,
                    )  # fmt: skip
            for ic in range(0, m, MC * MR):
                mc = min(m - ic, MC * MR)
                for ir in range(0, mc, MR):
                    pack(
                        kc, min(mc - ir, MR), A + ((ic + ir) * a_row + pc * a_col) * size, a_row,
                        a_col, space + ir * kc * size, S=S, W=S.MR,
                    )  # fmt: skip
                for jr in range(0, nc, NR):
                    for ir in range(0, mc, MR):
                        to = C + ((ic + ir) * c_row + jc + jr) * size
                        below = to
                        down = c_row
                        if pc == 0:
                            below = D
                            down = d_row
                            if D is not None:
                                below = D + ((ic + ir) * d_row + jc + jr) * size
                        tiles(
                            kc, space + ir * kc * size, right + jr * b_next, b_step, to, c_row,
                            below, down, mc - ir, nc - jr, alpha, S=S,
                        )  # fmt: skip


@inline
def strip(m, k, A, a_row, a_col, b, b_row, C, c_row, few, alpha, add, S, rows, wide):
    """Up to ``rows`` rows of ``wide`` vectors of results (``few``: None, or the mask of one); of
    rows beyond m the last one is computed again."""
    L = static(S.L)
    a = [A + min(i64(q), m - 1) * a_row for q in static(range(rows))]
    acc = [vec[S.A, S.L](0) for _ in static(range(rows * wide))]
    for p in range(k):
        right = [vec[S.A, S.L](vload(b + p * b_row + L * w, L, few)) for w in static(range(wide))]
        for q in static(range(rows)):
            left = vec[S.A, S.L](S.A(a[q][p * a_col]))
            for w in static(range(wide)):
                acc[q * wide + w] = fma(left, right[w], acc[q * wide + w])
    for q in static(range(rows)):
        if q < m:
            for w in static(range(wide)):
                result = vec[S.T, S.L](acc[q * wide + w] * scale_of(alpha, S.A))
                if add:
                    result = result + vload(C + q * c_row + L * w, L, few)
                vstore(C + q * c_row + L * w, result, few)


@inline
def strips(m, k, A, a_row, a_col, b, b_row, C, c_row, few, alpha, add, S, most, wide):
    """All rows of as many columns: ``most`` at a time, the last two more quickly."""
    i = i64(0)
    while i < m:
        a = A + i * a_row
        c = C + i * c_row
        if m - i > 2:
            strip(m - i, k, a, a_row, a_col, b, b_row, c, c_row, few, alpha, add, S, most, wide)
            i += most
        else:
            strip(m - i, k, a, a_row, a_col, b, b_row, c, c_row, few, alpha, add, S, 2, wide)
            i += 2


@native(export=True)
def direct(
    m: i64, n: i64, k: i64, A: raw, a_row: i64, a_col: i64, B: raw, b_row: i64, b_col: i64,
    C: raw, c_row: i64, alpha: f64, add: bool, space: raw, *, S,
) -> void:  # fmt: skip
    """A small product: to pack A, and what of B lies by rows, would take longer than the product
    itself. Sums are in the same order. ``space`` is for L columns of B."""
    T = static(S.T)
    a = ptr[T](A)
    c = ptr[T](C)
    j = i64(0)
    if b_col == 1:
        while n - j >= 2 * S.L:
            strips(
                m, k, a, a_row, a_col, ptr[T](B) + j, b_row, c + j, c_row, None, alpha, add, S,
                S.WIDE, 2,
            )  # fmt: skip
            j += 2 * S.L
    while j < n:
        few = first(S.L, n - j)
        right = ptr[T](B) + j * b_col
        down = b_row
        if b_col != 1:
            pack(k, min(n - j, S.L), raw(right), b_col, b_row, space, S=S, W=S.L)
            right = ptr[T](space)
            down = i64(S.L)
        strips(m, k, a, a_row, a_col, right, down, c + j, c_row, few, alpha, add, S, 8, 1)
        j += S.L


# How a product is computed says in what order its terms are added. The choice is made so that the
# order is that of the whole product, into however many parts threads cut it.
@inline
def is_direct(t):
    """Of depths up to KC both ways add in one order: there each part may choose."""
    part = min(t.m, t.row_size) * min(t.n, t.col_size) * t.k <= DIRECT
    return part and (t.k <= KC or (t.k <= DEEPEST and t.m * t.n * t.k <= DIRECT))


@inline
def has_dots(t):
    return t.m <= THIN and t.b_row == 1


@inline
def has_rows(t):
    return t.m <= THIN and t.b_col == 1 and t.o_col == 1


@native
def job(u0: i64, u1: i64, args: raw, *, S) -> void:
    """Parts u0..u1 of the whole: a batch's block of rows and columns each."""
    work = ptr[Job](args)
    t = work.task
    size = static(S.T.size)
    small = is_direct(t)
    thin = has_rows(t) or has_dots(t)
    wide = not (small or thin)
    words = t.k * S.L
    if has_dots(t) and not has_rows(t) and t.a_col != 1:
        words = t.m * t.k
    elif thin or (small and t.b_col == 1):
        words = i64(0)
    elif not small:
        width = (min(t.n, NC) + S.NR - 1) // S.NR * S.NR
        words = KC * MC * S.MR + min(t.k, KC) * width + 64
        if lies_well(t.row_size, t.b_col, S):
            words = i64(KC * MC * S.MR)
    space = work.bufs[0]
    if words > 0:
        space = allocate(words * size)
    if space is not None:
        for u in range(u0, u1):
            part = u % (t.row_parts * t.col_parts)
            b = u // (t.row_parts * t.col_parts)
            i0 = part % t.row_parts * t.row_size
            j0 = part // t.row_parts * t.col_size
            m = min(t.m - i0, t.row_size)
            n = min(t.n - j0, t.col_size)
            if m > 0 and n > 0:
                A = work.bufs[1] + (b * t.a_batch + i0 * t.a_row) * size
                B = work.bufs[2] + (b * t.b_batch + j0 * t.b_col) * size
                C = work.bufs[0] + (b * t.o_batch + i0 * t.o_row + j0 * t.o_col) * size
                D = raw(0)
                d_row = t.o_row
                if t.bias != 0:
                    bias = work.bufs[3] + (b * t.c_batch + i0 * t.c_row + j0 * t.c_col) * size
                    there = bias == C and t.c_row == t.o_row and t.c_col == t.o_col
                    D = C
                    if wide and t.c_col == 1 and t.beta == 1.0:
                        D = bias
                        d_row = t.c_row
                    elif not (there and t.beta == 1.0):
                        start(C, t.o_row, t.o_col, bias, t.c_row, t.c_col, m, n, t.beta, T=S.T)
                elif t.k == 0:
                    fill_zero(C, t.o_row, t.o_col, m, n, T=S.T)
                if has_rows(t):
                    by_rows(
                        m, n, t.k, A, t.a_row, t.a_col, B, t.b_row, C, t.o_row, t.alpha,
                        t.bias != 0, S=S,
                    )  # fmt: skip
                elif has_dots(t):
                    a_row = t.a_row
                    if t.a_col != 1:
                        copy_rows(m, t.k, A, t.a_row, t.a_col, space, T=S.T)
                        A = space
                        a_row = t.k
                    by_dots(
                        m, n, t.k, A, a_row, B, t.b_col, C, t.o_row, t.o_col, t.alpha, t.bias != 0,
                        S=S,
                    )  # fmt: skip
                elif small:
                    direct(
                        m, n, t.k, A, t.a_row, t.a_col, B, t.b_row, t.b_col, C, t.o_row, t.alpha,
                        t.bias != 0, space, S=S,
                    )  # fmt: skip
                else:
                    product(
                        m, n, t.k, A, t.a_row, t.a_col, B, t.b_row, t.b_col, C, t.o_row, D, d_row,
                        t.alpha, space, S=S,
                    )  # fmt: skip
        if words > 0:
            release(space)


@native(export=True)
def matmul_kernel(bufs: ptr[raw], desc: ptr[i64], *, S) -> i64:
    """The whole, through the pool where it is large."""
    work = local(Job)
    work.bufs = bufs
    work.task = ptr[ProductTask](desc)
    t = work.task
    parts = t.batch * t.row_parts * t.col_parts
    each = max(t.m * t.n * t.k // max(t.row_parts * t.col_parts, 1), 1)
    pool_run(address(job, S=S), parts, max(131072 // each, 1), raw(work))
    return 0


def split(m: int, n: int, k: int, batch: int, S: ProductShape) -> tuple[int, int, int, int]:
    """Into how many blocks of rows and columns a product is cut, and their sizes."""
    threads = get_num_threads()
    if m * n * k < SMALL or threads == 1 or batch >= 2 * threads:
        return 1, 1, max(m, 1), max(n, 1)
    most = threads if m * n * k < 1 << 24 else 2 * threads
    if n >= m:
        size = block(n, S.NR, most, threads)
        return 1, -(-n // size), m, size
    size = block(m, S.MR, most, threads)
    return -(-m // size), 1, size, n


def block(count: int, tile: int, most: int, threads: int) -> int:
    """The size of each of up to `most` parts of `count` that are whole tiles, so that all threads
    are done soonest; of two such, the smaller, which evens out how fast threads are."""
    tiles = -(-count // tile)

    def rounds(size: int) -> int:
        parts = -(-tiles // size)
        return -(-parts // threads) * size

    sizes = [-(-tiles // parts) for parts in (threads, most)]
    return min(sizes, key=lambda size: (rounds(size), size)) * tile


@functools.cache
def shape_of(T: Any) -> ProductShape:
    return ProductShape(T)


@functools.cache
def kernel_for(T: Any, swapped: bool) -> Any:
    return (matmul_swapped if swapped else matmul_kernel).spec(S=shape_of(T))


def bits(x: float) -> int:
    """A float64's bits as an integer."""
    return int(_struct.unpack("<q", _struct.pack("<d", x))[0])


def rows_in_order(what: MatMul) -> tuple[MatMul, bool]:
    """The product whose result lies by rows, and whether its factors are exchanged for that:
    o' = b' a'."""
    o = what.out
    if o[2] == 1 or what.n <= 1:
        return what, False
    if o[1] != 1 and what.m > 1:
        raise Unsupported("a result whose rows and columns both stride")
    return exchanged(what), True


def exchanged(what: MatMul) -> MatMul:
    """The product o' = b' a'."""
    a, b, o, bias = what.a, what.b, what.out, what.bias
    return replace(
        what, m=what.n, n=what.m, a=(b[0], b[2], b[1]), b=(a[0], a[2], a[1]),
        out=(o[0], o[2], o[1]), bias=None if bias is None else (bias[0], bias[2], bias[1]),
    )  # fmt: skip


def few_as_rows(what: MatMul) -> tuple[MatMul, bool]:
    """The product whose second factor, of few columns, is the first one, and whether it is."""
    alone = what.n == 1 and (what.out[1] == 1 or what.a[2] == 1)
    if what.m > THIN >= what.n and (alone or (what.a[2] == 1 and what.k >= SHALLOW)):
        return exchanged(what), True
    return what, False


def block_words(what: MatMul, parts: tuple[int, int, int, int]) -> list[int]:
    """A ProductTask."""
    column = 1 if what.n <= 1 else what.out[2]
    return [
        what.batch, what.m, what.n, what.k, *what.a, *what.b, *what.out[:2], column,
        int(what.bias is not None), *(what.bias or (0, 0, 0)),
        bits(what.alpha.real), bits(what.beta.real), *parts,
    ]  # fmt: skip


_NAMES = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8")
NUMBERS: dict[str, Any] = dict(zip(_NAMES, (f32, f64, i64, i32, i16, i8, u8), strict=True))


def compile_matmul(what: MatMul, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    T = NUMBERS.get(outs[0].dtype.name)
    if any(i.dtype is not outs[0].dtype for i in ins):
        raise Unsupported("a matrix product of several dtypes")
    if T is None:
        other = _complex.compile_complex if outs[0].dtype.kind == "c" else _pairs.compile_pairs
        launch_of_other: Launch = other(what, outs, ins)
        return launch_of_other
    what, swapped = rows_in_order(what)
    what, turned = few_as_rows(what)
    swapped = swapped is not turned
    b, m, n, k = what.batch, what.m, what.n, what.k
    words = block_words(what, split(m, n, k, b, shape_of(T)))
    return launch(kernel_for(T, swapped), words, outs, ins, b * m * n * k // 64, what)


@native
def matmul_swapped(bufs: ptr[raw], desc: ptr[i64], *, S) -> i64:
    """``matmul_kernel`` with the factors in the other order."""
    order = local(raw, 4)
    order[0] = bufs[0]
    order[1] = bufs[2]
    order[2] = bufs[1]
    task = ptr[ProductTask](desc)
    if task.bias != 0:
        order[3] = bufs[3]
    return matmul_kernel(order, desc, S=S)
