"""Products by warpgroups, from tiles that the hardware copies (capability 9.0): of halves, and of
f32 as TF32.

A block's first warpgroup begins the copies of tiles, stage after stage; the others multiply what
has arrived, 64 rows of results each, and say which stages are free again. Rows of shared memory
have 128 bytes, swizzled. A factor that lies along its depth has a row for each row (or column) of
the tile; one that lies along the other side a row for each depth, in blocks of 128 bytes of that
side. The hardware multiplies f32 along its depth alone: a left factor that lies along its rows goes
through registers, and the planner copies a right factor that lies along its columns.
Blocks take one tile of results after the other, so that stages are filled while results are stored.
A factor that does not begin at a multiple of 16 bytes is copied element by element.
"""

from __future__ import annotations

from typing import Any

from antorcha.devices.gpu.frame import operand_place
from antorcha.devices.gpu.product_fragments import store_fragments
from antorcha.devices.gpu.product_frame import locate, place_of, word
from antorcha.lang.native import (
    bitcast,
    f32,
    i32,
    i64,
    inline,
    native,
    ptr,
    select,
    static,
    u32,
    u64,
    void,
)
from antorcha.lang.native.bulk_copies import (
    MAP_BYTES,
    copy_tile,
    phase_arrive,
    phase_barrier,
    phase_barriers_made,
    phase_wait,
    publish_map,
    tensor_map,
)
from antorcha.lang.native.grid import (
    WARP,
    barrier,
    block,
    blocks,
    device_pointer,
    dynamic_shared,
    load_whole,
    shared,
    thread,
)
from antorcha.lang.native.tensor_cores import to_tf32
from antorcha.lang.native.warpgroups import (
    DEEP,
    SWIZZLE,
    WARPGROUP,
    fence_async,
    matrix_descriptor,
    set_registers,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)

HIGH = 64  # rows of a warpgroup's product
MAP_WORDS = 2 * MAP_BYTES // 8  # of a block's two tensor maps
FEW_REGISTERS, MANY_REGISTERS = 40, 232  # of a thread that copies, of one that multiplies


def shared_bytes(cut: Any) -> int:
    """The dynamic shared memory that a block needs."""
    return int(cut.stages * (cut.rows + cut.columns) * SWIZZLE)


def depth_of(itemsize: int) -> int:
    """The depth of a stage: a row of shared memory."""
    return SWIZZLE // itemsize


def by_registers(P: Any) -> bool:
    """Does the left factor go through registers?"""
    return P.types[P.a.number] is f32 and not P.a.by_depth


@native
def product_bulk(words: ptr[i64], *, P) -> void:
    """Words: those of ``OWN_WORDS``, then the operands' axes."""
    rows = static(P.cut.rows)
    stages = static(P.cut.stages)
    line = static(P.cut.depth)
    T = static(P.types[P.a.number])
    wide = static(rows == 2 * HIGH and P.cut.columns > 64)  # (few results need few registers)
    room = dynamic_shared(T, static(shared_bytes(P.cut) // T.size))
    others = room + static(stages * rows * line)
    full, free = shared(u64, stages), shared(u64, stages)
    maps = shared(u64, MAP_WORDS, MAP_BYTES)
    a, b = operand_place(P, words, P.a.number), operand_place(P, words, P.b.number)
    aligned = i64(a) % 16 == 0 and i64(b) % 16 == 0
    if thread() == 0:
        for s in static(range(stages)):
            phase_barrier(full + s, select(aligned, i32(1), i32(WARPGROUP)))
            phase_barrier(free + s, i32(rows // HIGH * 4))
        phase_barriers_made()
    barrier()
    if thread() < WARPGROUP:
        if wide:
            set_registers(FEW_REGISTERS, False)
        if aligned:
            fill_stages(P, words, room, others, full, free, a, b, maps)
        else:
            fill_each(P, words, room, others, full, free, a, b)
    else:
        if wide:
            set_registers(MANY_REGISTERS, True)
        multiply(P, words, room, others, full, free)


@inline
def tile_count(P, words):
    """How many tiles of results there are, of all parts of the depth."""
    both = word(P, words, "tiles_m") * word(P, words, "tiles_n")
    return word(P, words, "batch") * word(P, words, "parts") * both


@inline
def next_stage(P, stage, parity):
    """The stage after one, and the parity of its phase."""
    last = stage == static(P.cut.stages - 1)
    return select(last, P.I(0), stage + 1), select(last, parity ^ 1, parity)


# ---- copies
@inline
def map_of(P, words, operand, room, place, across):
    """Writes the tensor map of a factor: along a row in one piece, from row to row, the stack."""
    T = static(P.types[operand.number])
    line = static(P.cut.depth)
    step = word(P, words, operand.name)
    stack = select(step == 0, P.I(1), word(P, words, "batch"))
    plane = select(step == 0, P.I(8), step)
    sides = word(P, words, operand.side), word(P, words, "k")
    if operand.by_depth:
        pitch = words[static(operand.outer.at + 1)]
        sizes, box = [sides[1], sides[0], stack], static((line, across))
    else:
        pitch = words[static(operand.depth.at + 1)]
        sizes, box = [sides[0], sides[1], stack], static((line, line))
    tensor_map(room, place, T, [i64(x) for x in sizes], [i64(pitch), i64(plane)], box)


@inline
def copy_factor(P, words, operand, room, tensor, bar, across, first, at, z):
    """Begins to copy a factor's tile to a stage."""
    line = static(P.cut.depth)
    plane = select(word(P, words, operand.name) == 0, P.I(0), z)
    if operand.by_depth:
        copy_tile(room, tensor, [i32(at), i32(first), i32(plane)], bar)
    else:
        for j in static(range(across // line)):
            x = i32(first + static(j * line))
            copy_tile(room + static(j * line * line), tensor, [x, i32(at), i32(plane)], bar)


@inline
def fill_stages(P, words, room, others, full, free, a, b, maps):
    """One thread begins the copies of tiles."""
    line = static(P.cut.depth)
    rows = static(P.cut.rows)
    columns = static(P.cut.columns)
    if thread() < WARP:
        of_a = device_pointer(u64, words[P.maps]) + i64(block()) * MAP_WORDS
        of_b = of_a + static(MAP_WORDS // 2)
        if thread() == 0:
            map_of(P, words, P.a, maps, a, rows)
            map_of(P, words, P.b, maps + static(MAP_WORDS // 2), b, columns)
        publish_map(of_a, maps)
        publish_map(of_b, maps + static(MAP_WORDS // 2))
        if thread() == 0:
            stage, parity = P.I(0), i32(1)
            tile = P.I(block())
            while tile < tile_count(P, words):
                z, _part, top, side, lo, hi = place_of(P, words, tile)
                at = lo
                while at < hi:
                    bar = full + stage
                    phase_wait(free + stage, parity)
                    phase_arrive(bar, static(SWIZZLE * (P.cut.rows + P.cut.columns)))
                    left = room + stage * static(rows * line)
                    right = others + stage * static(columns * line)
                    copy_factor(P, words, P.a, left, of_a, bar, rows, top, at, z)
                    copy_factor(P, words, P.b, right, of_b, bar, columns, side, at, z)
                    stage, parity = next_stage(P, stage, parity)
                    at = at + line
                tile = tile + P.I(blocks())


@inline
def fill_each(P, words, room, others, full, free, a, b):
    """A warpgroup copies tiles element by element."""
    line = static(P.cut.depth)
    rows = static(P.cut.rows)
    columns = static(P.cut.columns)
    m, n = word(P, words, "m"), word(P, words, "n")
    stage, parity = P.I(0), i32(1)
    tile = P.I(block())
    while tile < tile_count(P, words):
        z, _part, top, side, lo, hi = place_of(P, words, tile)
        left, right = a + z * word(P, words, "a"), b + z * word(P, words, "b")
        at = lo
        while at < hi:
            phase_wait(free + stage, parity)
            to = room + stage * static(rows * line)
            copy_each(P, words, P.a, to, left, rows, top, m, at, hi)
            to = others + stage * static(columns * line)
            copy_each(P, words, P.b, to, right, columns, side, n, at, hi)
            fence_async()
            phase_arrive(full + stage)
            stage, parity = next_stage(P, stage, parity)
            at = at + line
        tile = tile + P.I(blocks())


@inline
def copy_each(P, words, operand, to, place, across, first, limit, at, hi):
    """Copies a tile; zeros from ``limit`` and ``hi`` on."""
    T = static(P.types[operand.number])
    line = static(P.cut.depth)
    piece = static(16 // T.size)
    each = P.I(thread())
    while each < static(across * line):
        row, column = each // line, each % line
        if operand.by_depth:
            outer, depth = first + row, at + column
        else:
            outer, depth = first + row // line * line + column, at + row % line
        x = T(0)
        if outer < limit and depth < hi:
            there = locate(P, words, operand.outer, outer)[0]
            x = place[there + locate(P, words, operand.depth, depth)[0]]
        if T is f32:
            x = bitcast(f32, to_tf32(x))
        to[row * line + (column // piece ^ row % 8) * piece + column % piece] = x
        each = each + WARPGROUP


# ---- products
@inline
def multiply(P, words, room, others, full, free):
    """A warpgroup multiplies its rows of the tiles, and stores results."""
    rows = static(P.cut.rows)
    columns = static(P.cut.columns)
    line = static(P.cut.depth)
    parts = static(2 if by_registers(P) else 1)  # (one is read while the other is multiplied)
    lane = thread() % WARP
    group = P.I(thread()) // WARPGROUP - 1
    stage, parity = P.I(0), i32(0)
    tile = P.I(block())
    while tile < tile_count(P, words):
        z, share, top, side, lo, hi = place_of(P, words, tile)
        totals = [f32(0) for c in static(range(columns // 2))]
        at = lo
        before = stage
        while at < hi:
            phase_wait(full + stage, parity)
            left = room + (stage * static(rows * line) + group * static(HIGH * line))
            right = others + stage * static(columns * line)
            for part in static(range(parts)):
                if by_registers(P):
                    begin_registers(P, left, right, totals, part, parts)
                else:
                    begin_products(P, left, right, totals)
                put(totals, wgmma_wait(1, totals))
                if part == 0 and at > lo and lane == 0:
                    phase_arrive(free + before)
            before = stage
            stage, parity = next_stage(P, stage, parity)
            at = at + line
        put(totals, wgmma_wait(0, totals))
        if hi > lo and lane == 0:
            phase_arrive(free + before)
        row = top + group * HIGH + own_row(P)
        store_fragments(P, words, z, share, row, side, totals, static(1 if by_registers(P) else 8))
        tile = tile + P.I(blocks())


@inline
def own_row(P):
    """The first of this thread's two rows of its warpgroup's."""
    warp, row = P.I(thread()) // WARP % 4, P.I(thread()) % WARP // 4
    if by_registers(P):
        return warp // 2 * P.cut.depth + own_piece(P) * 4 + row % 2 * 2
    return warp * 16 + row


@inline
def begin_products(P, left, right, totals):
    """Begins the products of a warpgroup's rows of the left tile and the right tile."""
    T = static(P.types[P.a.number])
    line = static(P.cut.depth)
    deep = static(DEEP // T.size)
    a_across = static(not P.a.by_depth)
    b_across = static(not P.b.by_depth)
    a = matrix_descriptor(left, static(a_across * SWIZZLE * line))
    b = matrix_descriptor(right, static(b_across * SWIZZLE * line))
    put(totals, wgmma_fence(totals))
    for d in static(range(line // deep)):
        # (16 bytes are 1 in a descriptor: the next depths are 32 bytes on, or 16 rows)
        x = a + u64(static(d * (deep * SWIZZLE if a_across else DEEP) // 16))
        y = b + u64(static(d * (deep * SWIZZLE if b_across else DEEP) // 16))
        put(totals, wgmma(T, x, y, totals, static((a_across, b_across))))
    wgmma_commit()


@inline
def own_piece(P):
    """Where this thread's two rows lie in the 8 pieces of a row of the left tile: what half of a
    warp reads at a time is then in different banks, at any four depths."""
    warp, row = P.I(thread()) // WARP % 4, P.I(thread()) % WARP // 4
    return warp % 2 * 2 + row // 4 + row // 2 % 2 * 4


@inline
def begin_registers(P, left, right, totals, part, parts):
    """Begins the products of a part of a stage, whose left tile lies along its rows: a fragment is
    two rows that are neighbours, at two depths of eight."""
    line = static(P.cut.depth)
    warp, lane = P.I(thread()) // WARP % 4, P.I(thread()) % WARP
    depth = lane % 4
    first = warp // 2 * (line * line) + depth * line + lane // 4 % 2 * 2
    near = left + (first + (own_piece(P) ^ depth) * 4)
    far = left + (first + 4 * line + (own_piece(P) ^ depth ^ 4) * 4)
    each = static(line // 8 // parts)
    fragments = [
        [load_whole(x + static((part * each + d) * 8 * line), 2) for x in (near, far)]
        for d in static(range(each))
    ]
    put(totals, wgmma_fence(totals))
    b = matrix_descriptor(right, 0)
    for d in static(range(each)):
        words = [bitcast(u32, x[c]) for x in fragments[d] for c in static(range(2))]
        y = b + u64(static((part * each + d) * DEEP // 16))
        put(totals, wgmma(f32, words, y, totals, static((False, False))))
    wgmma_commit()


@inline
def put(totals, made):
    for c in static(range(len(totals))):
        totals[c] = made[c]
