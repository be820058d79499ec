"""What the kernels of products share: where elements lie, sums of products, storing results.

A number is a list of its parts: one, or the two of a complex number, of the type ``P.C`` in which
products are added up. ``P`` is a ``ProductGrid`` (``product.py``).
"""

from __future__ import annotations

from antorcha.devices.gpu.frame import load_element, operand_place, store_element
from antorcha.lang.native import (
    bitcast,
    f64,
    fma,
    i64,
    inline,
    insert,
    ptr,
    select,
    static,
    u16,
    vec,
)
from antorcha.lang.native.grid import block, device_pointer, store_whole


@inline
def word(P, words, name):
    """One of a step's first words."""
    return P.I(words[static(P.word[name])])


@inline
def divided(P, x, by):
    """The quotient and the rest of what is not negative."""
    quotient = P.I(P.U(x) // P.U(by))
    return quotient, x - quotient * by


@inline
def locate(P, words, axis, i):
    """The offset of index i along an axis, then what it adds to a window's places."""
    left = i
    found = [P.I(0) for c in static(range(1 + axis.spatial))]
    for d in static(range(axis.dims)):
        at = static(axis.at + 2 * d)
        step = left
        if d < axis.dims - 1:
            if axis.sizes:
                left, step = divided(P, left, static(axis.sizes[d]))
            else:
                left, step = divided(P, left, P.I(words[at]))
        to = static(max(axis.spatial + axis.inner - d, 0) if d >= axis.inner else 0)
        found[to] = found[to] + step * P.I(words[static(at + 1)])
    return found


@inline
def element_at(P, words, operand, outer, depth):
    """An element's offset, and whether there is one (None: always)."""
    at = outer[0] + depth[0]
    if operand.spatial == 0:
        return at, None
    inside = True
    for s in static(range(operand.spatial)):
        w = static(operand.window + 3 * s)
        place = outer[1 + s] + depth[1 + s] + P.I(words[w])
        if operand.steps[s] != 1:
            step = static(operand.steps[s])
            quotient = place // step
            inside = inside & (quotient * step == place)
            place = quotient
        inside = inside & (P.U(place) < P.U(words[static(w + 1)]))
        at = at + place * P.I(words[static(w + 2)])
    return at, inside


@inline
def load_number(P, words, operand, place, outer, depth, inside):
    """A factor's element in its parts, zero where it is not inside."""
    at, exists = element_at(P, words, operand, outer, depth)
    if operand.spatial:
        inside = inside & exists
    x = load_element(P, words, operand.number, place, select(inside, at, P.I(0)))
    if P.planes == 1:
        return [select(inside, P.C(x), P.C(0))]
    return [select(inside, x[c], P.C(0)) for c in static(range(2))]


@inline
def nothing(P):
    """The sum of no products."""
    return [P.C(0) for c in static(range(P.planes))]


@inline
def add_product(P, total, a, b):
    """total + a * b."""
    if P.planes == 2:
        re = fma(-a[1], b[1], fma(a[0], b[0], total[0]))
        im = fma(a[1], b[0], fma(a[0], b[1], total[1]))
        return [re, im]
    if P.of_bool:
        return [total[0] | (a[0] & b[0])]
    if P.C.kind == "f":
        return [fma(a[0], b[0], total[0])]
    return [total[0] + a[0] * b[0]]


@inline
def added(P, a, b):
    """The sum of two sums."""
    if P.of_bool:
        return [a[0] | b[0]]
    return [a[c] + b[c] for c in static(range(P.planes))]


@inline
def weighted(P, words, name, x):
    """A number times alpha or beta."""
    at = static(P.word[name])
    if P.C.kind != "f":
        by = P.C(words[at])
        return [x[0] & by if P.of_bool else x[0] * by]
    re = P.C(bitcast(f64, words[at]))
    if P.planes == 1:
        return [x[0] * re]
    im = P.C(bitcast(f64, words[static(at + 1)]))
    return [x[0] * re - x[1] * im, x[0] * im + x[1] * re]


@inline
def block_place(P, words):
    """This block's place: number in the stack, part of the depth, first row, first column, and the
    part's begin and end."""
    return place_of(P, words, P.I(block()))


@inline
def place_of(P, words, number):
    """The place of a tile of results, as ``block_place`` gives it. Tiles that follow one another go
    down a band of tiles."""
    tiles_m, tiles_n = word(P, words, "tiles_m"), word(P, words, "tiles_n")
    plane, tile = divided(P, number, tiles_m * tiles_n)
    band, tile = divided(P, tile, static(P.cut.band) * tiles_n)
    high = min(P.I(P.cut.band), tiles_m - band * static(P.cut.band))
    across, down = divided(P, tile, high)
    z, part = plane, P.I(0)
    if P.split:
        z, part = divided(P, plane, word(P, words, "parts"))
    each = word(P, words, "each")
    lo = part * each
    hi = min(lo + each, word(P, words, "k"))
    rows = static(P.cut.rows)
    columns = static(P.cut.columns)
    return z, part, (band * static(P.cut.band) + down) * rows, across * columns, lo, hi


@inline
def factor_place(P, words, operand, name, z):
    """A pointer to where a factor of product z begins."""
    return operand_place(P, words, operand.number) + z * word(P, words, name)


@inline
def sums_place(P, words):
    """Where the parts' sums lie."""
    return device_pointer(P.C, words[P.head])


@inline
def sum_place(P, words, z, part, row, column):
    """The number of a part's sum: they lie as the results do, by rows or by columns."""
    m, n = word(P, words, "m"), word(P, words, "n")
    plane = part * word(P, words, "batch") + z
    if P.out.by_depth:
        return (plane * m + row) * n + column
    return (plane * n + column) * m + row


@inline
def finish(P, words, z, part, rows, columns, totals, mine, run=1):
    """Stores sums: ``totals[i][j]`` belongs to ``rows[i]`` and ``columns[j]``, where there are
    these, and ``mine``. Columns are neighbours in runs of ``run``, each from a multiple of it on.
    """
    m, n = word(P, words, "m"), word(P, words, "n")
    if P.split and P.cut.kind != "join":
        stored = sums_place(P, words)
        run = static(run if P.out.by_depth else 1)
        for i in static(range(len(rows))):
            for j in static(range(0, len(columns), run)):
                if mine and rows[i] < m:
                    at = sum_place(P, words, z, part, rows[i], columns[j]) * static(P.planes)
                    if run > 1 and n % run == 0:
                        if columns[j] < n:
                            store_run(P, P.C, stored + at, [x[0] for x in totals[i][j : j + run]])
                    else:
                        for e in static(range(run)):
                            if columns[j + e] < n:
                                for c in static(range(P.planes)):
                                    stored[at + static(e * P.planes + c)] = totals[i][j + e][c]
    else:
        finish_results(P, words, z, rows, columns, totals, mine, run)


@inline
def finish_results(P, words, z, rows, columns, totals, mine, run):
    """Stores results."""
    m, n = word(P, words, "m"), word(P, words, "n")
    place = factor_place(P, words, P.out, "out", z)
    across = [locate(P, words, P.out.depth, c)[0] for c in columns]
    for i in static(range(len(rows))):
        down = locate(P, words, P.out.outer, rows[i])[0]
        for j in static(range(0, len(columns), run)):
            if mine and rows[i] < m and columns[j] < n:
                if static(run > 1 and P.out.pieces) and i64(place) % 16 == 0:
                    results = [
                        result_of(P, words, z, rows[i], columns[j + e], totals[i][j + e])[0]
                        for e in static(range(run))
                    ]
                    store_run(P, P.types[0], place + (down + across[j]), results)
                else:
                    for e in static(range(run)):
                        if columns[j + e] < n:
                            result = result_of(
                                P, words, z, rows[i], columns[j + e], totals[i][j + e]
                            )
                            store_result(P, place, down + across[j + e], result)


@inline
def store_result(P, place, at, result):
    if P.planes == 1:
        store_element(P, 0, place, at, result[0])
    else:
        store_element(P, 0, place, at, result)


@inline
def store_run(P, T, place, values):
    """Stores neighbours, whose first has an address that is a multiple of their size."""
    word = static(u16 if T.half else T)
    whole = vec[word, len(values)](word(0))
    for e in static(range(len(values))):
        whole = insert(whole, e, bitcast(word, T(values[e])))
    store_whole(ptr[word](place), whole)


@inline
def result_of(P, words, z, row, column, total):
    """alpha * total + beta * bias."""
    result = total
    if P.has_alpha:
        result = weighted(P, words, "alpha", total)
    if P.bias is not None:
        place = factor_place(P, words, P.bias, "bias", z)
        at = locate(P, words, P.bias.outer, row)[0] + locate(P, words, P.bias.depth, column)[0]
        x = load_element(P, words, P.bias.number, place, at)
        if P.planes == 1:
            x = [P.C(x)]
        if P.has_beta:
            x = weighted(P, words, "beta", x)
        result = added(P, result, x)
    return result
