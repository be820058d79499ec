"""Products of halves by warpgroups, from tiles that the hardware copies (capability 9.0).

A block's first warpgroup begins the copies of tiles, stage after stage; the others multiply what
has arrived, 64 rows of results each, and say which stages are free again. Rows of shared memory
have 128 bytes, swizzled. A factor that lies along its depth has a row for each row (or column) of
the tile; one that lies along the other side a row for each depth, in blocks of 64 of that side.
Blocks take one tile of results after the other, so that stages are filled while results are stored.
A factor that does not begin at a multiple of 16 bytes is copied element by element.
"""

from __future__ import annotations

from typing import Any

from antorcha.devices.gpu.frame import operand_place
from antorcha.devices.gpu.product_fragments import store_fragments
from antorcha.devices.gpu.product_frame import locate, place_of, word
from antorcha.lang.native import (
    f32,
    i32,
    i64,
    inline,
    native,
    ptr,
    select,
    static,
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
    shared,
    thread,
)
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

LINE = SWIZZLE // 2  # halves of a row in shared memory, and the depth of a stage
HIGH = 64  # rows of a warpgroup's product
MAP_WORDS = 2 * MAP_BYTES // 8  # of a block's two tensor maps
FEW_REGISTERS, MANY_REGISTERS = 40, 232  # of a thread that copies, of one that multiplies


def shared_bytes(cut: Any) -> int:
    """The dynamic shared memory that a block needs."""
    return int(2 * cut.stages * (cut.rows + cut.columns) * cut.depth)


@native
def product_bulk(words: ptr[i64], *, P) -> void:
    """Words: those of ``OWN_WORDS``, then the operands' axes."""
    rows = static(P.cut.rows)
    stages = static(P.cut.stages)
    T = static(P.types[P.a.number])
    room = dynamic_shared(T, static(shared_bytes(P.cut) // 2))
    others = room + static(stages * rows * LINE)
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
        if rows == 2 * HIGH:
            set_registers(FEW_REGISTERS, False)
        if aligned:
            fill_stages(P, words, room, others, full, free, a, b, maps)
        else:
            fill_each(P, words, room, others, full, free, a, b)
    else:
        if rows == 2 * HIGH:
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
    step = word(P, words, operand.name)
    stack = select(step == 0, P.I(1), word(P, words, "batch"))
    plane = select(step == 0, P.I(8), step)
    sides = word(P, words, operand.side), word(P, words, "k")
    if operand.by_depth:
        pitch = words[static(operand.outer.at + 1)]
        sizes, box = [sides[1], sides[0], stack], static((LINE, across))
    else:
        pitch = words[static(operand.depth.at + 1)]
        sizes, box = [sides[0], sides[1], stack], static((LINE, LINE))
    tensor_map(room, place, T, [i64(x) for x in sizes], [i64(pitch), i64(plane)], box)


@inline
def copy_factor(P, words, operand, room, tensor, bar, across, first, at, z):
    """Begins to copy a factor's tile to a stage."""
    plane = select(word(P, words, operand.name) == 0, P.I(0), z)
    if operand.by_depth:
        copy_tile(room, tensor, [i32(at), i32(first), i32(plane)], bar)
    else:
        for j in static(range(across // LINE)):
            x = i32(first + static(j * LINE))
            copy_tile(room + static(j * LINE * LINE), tensor, [x, i32(at), i32(plane)], bar)


@inline
def fill_stages(P, words, room, others, full, free, a, b, maps):
    """One thread begins the copies of tiles."""
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
                    phase_arrive(bar, static(2 * LINE * (P.cut.rows + P.cut.columns)))
                    left = room + stage * static(rows * LINE)
                    right = others + stage * static(columns * LINE)
                    copy_factor(P, words, P.a, left, of_a, bar, rows, top, at, z)
                    copy_factor(P, words, P.b, right, of_b, bar, columns, side, at, z)
                    stage, parity = next_stage(P, stage, parity)
                    at = at + LINE
                tile = tile + P.I(blocks())


@inline
def fill_each(P, words, room, others, full, free, a, b):
    """A warpgroup copies tiles element by element."""
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
            to = room + stage * static(rows * LINE)
            copy_each(P, words, P.a, to, left, rows, top, m, at, hi)
            to = others + stage * static(columns * LINE)
            copy_each(P, words, P.b, to, right, columns, side, n, at, hi)
            fence_async()
            phase_arrive(full + stage)
            stage, parity = next_stage(P, stage, parity)
            at = at + LINE
        tile = tile + P.I(blocks())


@inline
def copy_each(P, words, operand, to, place, across, first, limit, at, hi):
    """Copies a tile; zeros from ``limit`` and ``hi`` on."""
    T = static(P.types[operand.number])
    for u in range(static(across * LINE // WARPGROUP)):
        each = P.I(u) * WARPGROUP + P.I(thread())
        line, column = each // LINE, each % LINE
        if operand.by_depth:
            outer, depth = first + line, at + column
        else:
            outer, depth = first + line // LINE * LINE + column, at + line % LINE
        x = T(0)
        if outer < limit and depth < hi:
            there = locate(P, words, operand.outer, outer)[0]
            x = place[there + locate(P, words, operand.depth, depth)[0]]
        to[line * LINE + (column // 8 ^ line % 8) * 8 + column % 8] = x


# ---- products
@inline
def multiply(P, words, room, others, full, free):
    """A warpgroup multiplies its rows of the tiles, and stores results."""
    rows = static(P.cut.rows)
    columns = static(P.cut.columns)
    lane = thread() % WARP
    group = P.I(thread()) // WARPGROUP - 1
    stage, parity = P.I(0), i32(0)
    tile = P.I(block())
    while tile < tile_count(P, words):
        z, part, top, side, lo, hi = place_of(P, words, tile)
        totals = [f32(0) for c in static(range(columns // 2))]
        at = lo
        before = stage
        while at < hi:
            phase_wait(full + stage, parity)
            put(totals, wgmma_fence(totals))
            left = room + (stage * static(rows * LINE) + group * static(HIGH * LINE))
            begin_products(P, left, others + stage * static(columns * LINE), totals)
            put(totals, wgmma_wait(1, totals))
            if at > lo and lane == 0:
                phase_arrive(free + before)
            before = stage
            stage, parity = next_stage(P, stage, parity)
            at = at + LINE
        put(totals, wgmma_wait(0, totals))
        if hi > lo and lane == 0:
            phase_arrive(free + before)
        row = top + group * HIGH + P.I(thread()) // WARP % 4 * 16 + P.I(lane) // 4
        store_fragments(P, words, z, part, row, side, totals)
        tile = tile + P.I(blocks())


@inline
def begin_products(P, left, right, totals):
    """Begins the products of a warpgroup's rows of the left tile and the right tile."""
    T = static(P.types[P.a.number])
    a_across = static(not P.a.by_depth)
    b_across = static(not P.b.by_depth)
    a = matrix_descriptor(left, static(a_across * SWIZZLE * LINE))
    b = matrix_descriptor(right, static(b_across * SWIZZLE * LINE))
    for d in static(range(LINE // DEEP)):
        # (16 bytes are 1 in a descriptor: 16 depths are 32 bytes on, or 16 rows)
        x = a + u64(static(d * (DEEP * SWIZZLE if a_across else DEEP * 2) // 16))
        y = b + u64(static(d * (DEEP * SWIZZLE if b_across else DEEP * 2) // 16))
        put(totals, wgmma(T, x, y, totals, static((a_across, b_across))))
    wgmma_commit()


@inline
def put(totals, made):
    for c in static(range(len(totals))):
        totals[c] = made[c]
