"""The rows template for rows that lie side by side: a program along any dim but the closest one.

The elements of one row are far apart, those of its neighbours are next to each other. So each lane
of some vectors is a row, and a pass goes down the rows of all lanes at once: what is read and
written is whole vectors, and a reduction's lanes are those rows' results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.reduce import CASCADE
from antorcha.devices.cpu.rows_in_lanes import WORTH, finals, hoist, join, run_column, starts_of
from antorcha.devices.cpu.template import (
    Work,
    inputs_at,
    odometer,
    outputs_at,
    run_job,
    words_at,
    words_of,
    work_of,
)
from antorcha.lang.native import (
    first,
    i64,
    inline,
    lanes,
    native,
    ptr,
    raw,
    static,
    vec,
    vgather,
    void,
    vscatter,
)

VECTORS = 8  # of rows that are worked on together, at most, so that they share pages


def beside(
    kinds: str,
    is_row: Sequence[bool],
    sizes: Sequence[int],
    columns: Sequence[Sequence[Any]],
    width: int,
) -> tuple[tuple[bool, ...], int] | None:
    """For which operands neighbours have one row, and how many vectors of neighbours there are;
    None: they do not lie side by side. columns: each operand's strides from row to row."""
    if "g" not in [kind for kind, row in zip(kinds, is_row, strict=True) if row]:
        return None
    if not sizes or 2 * sizes[-1] < width:
        return None
    shared = []
    for kind, row, steps in zip(kinds, is_row, columns, strict=True):
        if row and kind != "s" and steps[-1] not in (0, 1):
            return None
        shared.append(row and steps[-1] == 0)
    vectors = 1
    while vectors < VECTORS and vectors * width < sizes[-1]:
        vectors *= 2
    return tuple(shared), vectors


def words_beside(
    length: int, steps: Sequence[int], sizes: Sequence[int], columns: Sequence[Sequence[Any]]
) -> list[int]:
    """The outer dims' rows, the length of a row, the outer dims, neighbours, each operand's steps
    along a row and from neighbour to neighbour, the outer dims' sizes and strides."""
    rows = math.prod(sizes[:-1])
    words = [rows, length, len(sizes) - 1, sizes[-1], *steps, *[c[-1] for c in columns]]
    return words + words_of(sizes[:-1], [c[:-1] for c in columns])


@inline
def run_rows(P, S, places, steps, fixed, seams, masks, n):
    """A pass down the rows; its reductions, sums of sums, are put among the seams."""
    U = static(P.vectors)
    total = [starts_of(P, S) for u in static(range(P.vectors))]
    for outer in range(0, n, CASCADE * CASCADE):
        middle = [starts_of(P, S) for u in static(range(P.vectors))]
        for block in range(outer, min(outer + CASCADE * CASCADE, n), CASCADE):
            acc = [starts_of(P, S) for u in static(range(P.vectors))]
            for at in range(block, min(block + CASCADE, n)):
                for u in static(range(U)):
                    acc[u] = run_column(
                        P, S, places[u], steps, masks[u], fixed[u], seams[u], acc[u], n, at
                    )
            for u in static(range(U)):
                middle[u] = join(P, S, middle[u], acc[u])
        for u in static(range(U)):
            total[u] = join(P, S, total[u], middle[u])
    for u in static(range(U)):
        for j in static(range(len(S.types))):
            seams[u][S.red_at + j] = total[u][j]


@inline
def run_neighbours(P, operands, steps, apart, n, count):
    """Some vectors of rows, of which `count` are there."""
    W = static(P.width)
    U = static(P.vectors)
    masks = [first(W, count - u * W) for u in static(range(P.vectors))]
    places = [
        [operands[k] + (u * W) * apart[k] for k in static(range(P.nops))] for u in static(range(U))
    ]
    fixed = [
        [
            vgather(places[u][P.nout + k], lanes(i64, P.width) * apart[P.nout + k], masks[u])
            if P.in_kinds[k] == "s" and P.used[k]
            else None
            for k in static(range(P.nin))
        ]
        for u in static(range(P.vectors))
    ]
    seams = [[vec[t, P.width](0) for t in static(P.seam_types)] for u in static(range(P.vectors))]
    for S in static(P.stages):
        for u in static(range(U)):
            hoist(P, S, fixed[u], seams[u], n)
        run_rows(P, S, places, steps, fixed, seams, masks, n)
    if P.final is not None:
        for u in static(range(U)):
            values = finals(P, fixed[u], seams[u], n)
            for j in static(range(len(P.finals))):
                k = static(P.finals[j])
                vscatter(places[u][k], lanes(i64, W) * apart[k], values[j], masks[u])


@native
def beside_job(u0: i64, u1: i64, args: raw, *, P) -> void:
    """Units u0..u1: a strip of neighbours each."""
    work = ptr[Work](args)
    desc = work.desc
    many = static(P.width * P.vectors)
    n, dims, neighbours = desc[1], desc[2], desc[3]
    steps, apart = words_at(desc, 4, P.nops), words_at(desc, 4 + P.nops, P.nops)
    strips = (neighbours + many - 1) // many
    for u in range(u0, u1):
        r = u // strips
        lo = (u - r * strips) * many
        _index, offset = odometer(P.nops, desc + (4 + 2 * P.nops), dims, r)
        begin = outputs_at(P, work.bufs, offset) + inputs_at(P, work.bufs, offset)
        operands = [begin[k] + lo * apart[k] for k in static(range(P.nops))]
        run_neighbours(P, operands, steps, apart, n, min(neighbours - lo, i64(many)))


@native
def beside_kernel(bufs: ptr[raw], desc: ptr[i64], *, P) -> i64:
    """All rows, through the pool where there is enough of them."""
    many = static(P.width * P.vectors)
    strips = (desc[3] + many - 1) // many
    least = max(WORTH // (max(desc[1], 1) * many), 1)
    run_job(P, beside_job, work_of(bufs, desc), desc[0] * strips, least)
    return 0
