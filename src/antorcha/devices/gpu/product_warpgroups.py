"""Products of halves by warpgroups: tiles multiplied from shared memory (capability 9.0).

Stages of both factors lie in shared memory, each row of 128 bytes swizzled, as the hardware reads
them by descriptors. A factor that lies along its depth has a row for each row (or column) of the
tile; one that lies along the other side a row for each depth, in blocks of 64 of that side. Pieces
of 16 bytes are copied two stages ahead of the products, which run beside the threads: those of a
stage are waited for when those of the next have begun. A factor whose pieces do not begin at a
multiple of 16 bytes is copied element by element. Results go through shared memory, so that they
are stored in whole pieces.
"""

from __future__ import annotations

from typing import Any

from antorcha.devices.gpu.product_frame import (
    block_place,
    factor_place,
    finish,
    locate,
    result_of,
    word,
)
from antorcha.lang.native import (
    f32,
    i32,
    i64,
    inline,
    insert,
    native,
    ptr,
    select,
    static,
    u64,
    vec,
    void,
)
from antorcha.lang.native.grid import WARP, barrier, store_whole, thread
from antorcha.lang.native.tensor_cores import commit_copies, copy_piece, wait_copies
from antorcha.lang.native.warpgroups import (
    DEEP,
    SWIZZLE,
    WARPGROUP,
    dynamic_shared,
    fence_async,
    matrix_descriptor,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)

PIECE = 8  # halves of 16 bytes
LINE = SWIZZLE // 2  # halves of a row in shared memory, and the depth of a stage
HIGH = 64  # rows of a warpgroup's product
GAP = 8  # numbers between rows of results in shared memory, so that they are in different banks


def shared_bytes(cut: Any) -> int:
    """The shared memory that a block needs."""
    tiles = 2 * cut.stages * (cut.rows + cut.columns) * cut.depth
    return max(tiles, 4 * cut.rows * (cut.columns + GAP))


def lines_at_once(P: Any) -> int:
    """Rows of shared memory that a block's threads fill with a piece each."""
    return int(P.threads) * PIECE // LINE


@inline
def own_pieces(P, words, operand, across, first, limit):
    """Where this thread's pieces of a tile begin in the factor, at depth 0, and how many elements
    of each there are along the side that the factor lies along."""
    t = P.I(thread())
    at_once = static(lines_at_once(P))
    line, column = t // PIECE, t % PIECE * PIECE
    places = [P.I(0) for u in static(range(across // at_once))]
    counts = [P.I(PIECE) for u in static(range(across // at_once))]
    for u in static(range(across // at_once)):
        if operand.by_depth:
            # (rows beyond the last give results that nobody stores)
            row = min(first + line + static(u * at_once), limit - 1)
            places[u] = locate(P, words, operand.outer, row)[0] + column
        else:
            beside = first + static(u * at_once // LINE * LINE) + column
            depth = line + static(u * at_once % LINE)
            counts[u] = max(min(limit - beside, P.I(PIECE)), P.I(0))
            places[u] = locate(P, words, operand.depth, depth)[0] + beside
    return places, counts


@inline
def fetch_tile(P, words, operand, room, place, aligned, pieces, across, first, limit, at, hi):
    """Begins to copy the tile from row (or column) ``first`` and depth ``at`` on; zeros from
    ``hi`` on."""
    if aligned:
        fetch_pieces(P, words, operand, room, place, pieces, across, at, hi)
    else:
        fetch_each(P, words, operand, room, place, across, first, limit, at, hi)


@inline
def fetch_pieces(P, words, operand, room, place, pieces, across, at, hi):
    """Begins to copy a tile whose pieces begin at multiples of 16 bytes."""
    t = P.I(thread())
    at_once = static(lines_at_once(P))
    line, column = t // PIECE, t % PIECE * PIECE
    to = room + (line * LINE + (t % PIECE ^ line % 8) * PIECE)
    places, counts = pieces
    moved = locate(P, words, operand.depth, at)[0]
    for u in static(range(across // at_once)):
        if operand.by_depth:
            few = max(min(hi - at - column, P.I(PIECE)), P.I(0))
        else:
            few = select(at + line + static(u * at_once % LINE) < hi, counts[u], P.I(0))
        copy_piece(to + static(u * at_once * LINE), place + (places[u] + moved), i32(few * 2))


@inline
def fetch_each(P, words, operand, room, place, across, first, limit, at, hi):
    """Copies a tile element by element."""
    T = static(P.types[operand.number])
    for u in range(static(across // lines_at_once(P))):
        line = P.I(u) * static(lines_at_once(P)) + P.I(thread()) // PIECE
        column = P.I(thread()) % PIECE * PIECE
        to = room + (line * LINE + (P.I(thread()) % PIECE ^ line % 8) * PIECE)
        if operand.by_depth:
            outer, depth = first + line, at + column
        else:
            outer, depth = first + line // LINE * LINE + column, at + line % LINE
        for e in range(PIECE):
            i = outer if operand.by_depth else outer + P.I(e)
            k = depth + P.I(e) if operand.by_depth else depth
            x = T(0)
            if i < limit and k < hi:
                x = place[
                    locate(P, words, operand.outer, i)[0] + locate(P, words, operand.depth, k)[0]
                ]
            to[e] = x


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


@native
def product_warpgroups(words: ptr[i64], *, P) -> void:
    """Words: those of ``OWN_WORDS``, then the operands' axes."""
    rows = static(P.cut.rows)
    columns = static(P.cut.columns)
    stages = static(P.cut.stages)
    T = static(P.types[P.a.number])
    room = dynamic_shared(T, static(shared_bytes(P.cut) // 2))
    others = room + static(stages * rows * LINE)
    z, part, top, side, lo, hi = block_place(P, words)
    m, n = word(P, words, "m"), word(P, words, "n")
    a, b = factor_place(P, words, P.a, "a", z), factor_place(P, words, P.b, "b", z)
    aligned = i64(a) % 16 == 0 and i64(b) % 16 == 0
    from_a = own_pieces(P, words, P.a, rows, top, m)
    from_b = own_pieces(P, words, P.b, columns, side, n)
    for s in static(range(stages - 2)):
        left, right = room + static(s * rows * LINE), others + static(s * columns * LINE)
        ahead = lo + static(s * LINE)
        fetch_tile(P, words, P.a, left, a, aligned, from_a, rows, top, m, ahead, hi)
        fetch_tile(P, words, P.b, right, b, aligned, from_b, columns, side, n, ahead, hi)
        commit_copies()
    totals = [f32(0) for c in static(range(columns // 2))]
    group = P.I(thread()) // WARPGROUP
    at = lo
    stage = P.I(0)
    while at < hi:
        wait_copies(static(stages - 3))
        fence_async()
        barrier()
        put(totals, wgmma_fence(totals))
        left = room + (stage * static(rows * LINE) + group * static(HIGH * LINE))
        begin_products(P, left, others + stage * static(columns * LINE), totals)
        # the products of the stage before the last have been waited for by all
        free = select(stage < 2, stage + static(stages - 2), stage - 2)
        ahead = at + static((stages - 2) * LINE)
        left, right = room + free * static(rows * LINE), others + free * static(columns * LINE)
        fetch_tile(P, words, P.a, left, a, aligned, from_a, rows, top, m, ahead, hi)
        fetch_tile(P, words, P.b, right, b, aligned, from_b, columns, side, n, ahead, hi)
        commit_copies()
        put(totals, wgmma_wait(1, totals))
        stage = select(stage == static(stages - 1), P.I(0), stage + 1)
        at = at + LINE
    put(totals, wgmma_wait(0, totals))
    wait_copies(0)
    barrier()
    store_results(P, words, z, part, top, side, ptr[f32](room), totals)


@inline
def store_results(P, words, z, part, top, side, room, totals):
    """Stores a block's results: each warp its 16 rows, through shared memory."""
    columns = static(P.cut.columns)
    pitch = static(columns + GAP)
    t = P.I(thread())
    lane, first = t % WARP, t // WARP * 16
    mine = room + ((first + lane // 4) * pitch + lane % 4 * 2)
    for j in static(range(columns // 8)):
        for c in static(range(4)):
            mine[static(c // 2 * 8 * pitch + j * 8 + c % 2)] = totals[static(j * 4 + c)]
    barrier()
    in_row = static(columns // PIECE)
    for u in range(16 * columns // PIECE // WARP):
        piece = P.I(u) * WARP + lane
        row, column = first + piece // in_row, piece % in_row * PIECE
        sums = [[room[row * pitch + column + e]] for e in static(range(PIECE))]
        store_piece(P, words, z, part, top + row, side + column, sums)


@inline
def store_piece(P, words, z, part, row, column, sums):
    """Stores neighbouring results of a row, in one piece where they lie in one."""
    m, n = word(P, words, "m"), word(P, words, "n")
    each = [column + static(e) for e in static(range(PIECE))]
    if P.split:
        finish(P, words, z, part, [row], each, [sums], True)
    else:
        if P.out.whole and P.out.by_depth:
            place = factor_place(P, words, P.out, "out", z)
            if i64(place) % 16 == 0 and column + PIECE <= n:
                if row < m:
                    T = static(P.types[0])
                    found = vec[T, PIECE](T(0))
                    for e in static(range(PIECE)):
                        x = result_of(P, words, z, row, each[e], sums[e])
                        found = insert(found, e, T(x[0]))
                    store_whole(place + (locate(P, words, P.out.outer, row)[0] + column), found)
            else:
                finish(P, words, z, part, [row], each, [sums], True)
        else:
            finish(P, words, z, part, [row], each, [sums], True)
