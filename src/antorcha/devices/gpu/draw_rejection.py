"""Draws that reject and draw again, on a GPU: gamma, Poisson and binomial numbers.

A thread makes one number. Its blocks are those of the number's lane and place (``draw``) with the
number of the try as the counter's last word, so a number depends on the seed, the offset, its place
and its parameters, and takes no part of another's stream. The algorithms are those of the host's
samplers (``runtime.rejection``); where these multiply or add until a bound is passed, here the
running sum of the probabilities is searched, with one uniform number. Poisson and binomial numbers
are worked out in float64 whatever their dtype. After MOST_TRIES, which no number needs, the last
one is taken: parameters that are NaN end there.
"""

from __future__ import annotations

from antorcha.devices.gpu.draw import (
    LANE_BLOCKS,
    block_from,
    crossed,
    normal_pair,
    parameters,
    unit,
)
from antorcha.devices.gpu.frame import THREADS, offsets_of, operand_place
from antorcha.devices.math.exponential import exp
from antorcha.devices.math.logarithm import log, log1p
from antorcha.lang.native import (
    constant,
    f32,
    f64,
    floor,
    fma,
    i32,
    i64,
    inline,
    maximum,
    native,
    ptr,
    select,
    sqrt,
    static,
    void,
)
from antorcha.lang.native.grid import block, thread
from antorcha.runtime.philox import LANES
from antorcha.runtime.rejection import STIRLING

MOST_TRIES = 128
MOST_TERMS = 512  # of a running sum
LARGE = 10.0  # the mean from which numbers are made by rejection
HALF_LOG_TURN = 0.9189385332046727  # log(2 pi) / 2
TINY = {f32: 1.1754943508222875e-38, f64: 2.2250738585072014e-308}


@inline
def block_of_try(P, words, place, number):
    """Four words. ``place``: the lane, and how many numbers it has made before."""
    return block_from(P, words, place[0], place[1], number)


@inline
def wide_unit(low, high):
    """A number in (0, 1] of 53 bits."""
    return fma(crossed(low, high), f64(2.0**-53), f64(2.0**-54))


@inline
def gamma_number(P, words, place, shape):
    """G. Marsaglia and W. Tsang's method. A shape below 1 is made 1 larger, which is accepted more
    often, and its number smaller by a power of a uniform one."""
    K = static(P.kind)
    a = K(shape)
    small = a < K(1.0)
    d = select(small, a + K(1.0), a) - K(1.0 / 3.0)
    c = K(1.0) / sqrt(K(9.0) * d)
    value, spare = K(0.0), K(1.0)
    accepted = False
    tries = i32(0)
    while not accepted and tries < MOST_TRIES:
        if K is f64:
            bits = block_of_try(P, words, place, 2 * tries)
            more = block_of_try(P, words, place, 2 * tries + 1)
            u, other = unit(P, more, 0), unit(P, more, 1)
        else:
            bits = block_of_try(P, words, place, tries)
            u, other = unit(P, bits, 2), unit(P, bits, 3)
        x = normal_pair(P, bits, 0)[0]
        if tries == 0:
            spare = other
        y = K(1.0) + c * x
        v = y * y * y
        value = d * v
        if y > K(0.0):
            square = x * x
            accepted = u < K(1.0) - K(0.0331) * square * square
            if not accepted:
                accepted = log(u) < K(0.5) * square + d * (K(1.0) - v + log(v))
        tries += 1
    if small:
        value = value * exp(log(spare) / a)
    return maximum(select(a == K(0.0), K(0.0), value), K(TINY[K]))


@inline
def stirling_tail(k):
    """log(k!) minus Stirling's formula for it."""
    near = constant(f64, STIRLING)[i32(min(max(k, 0.0), 9.0))]
    square = (k + 1.0) * (k + 1.0)
    far = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1.0)
    return select(k < 10.0, near, far)


@inline
def poisson_number(P, words, place, given):
    """W. Hormann's transformed rejection where the rate is large."""
    rate = f64(given)
    k = f64(0.0)
    if rate >= LARGE:
        log_rate = log(rate)
        b = 0.931 + 2.53 * sqrt(rate)
        a = -0.059 + 0.02483 * b
        inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
        v_r = 0.9277 - 3.6224 / (b - 2.0)
        accepted = False
        tries = i32(0)
        while not accepted and tries < MOST_TRIES:
            bits = block_of_try(P, words, place, tries)
            u = wide_unit(bits[0], bits[1]) - 0.5
            v = wide_unit(bits[2], bits[3])
            us = 0.5 - abs(u)
            k = floor((2.0 * a / us + b) * u + rate + 0.43)
            if us >= 0.07 and v <= v_r:
                accepted = True
            elif not (k < 0.0 or (us < 0.013 and v > us)):
                left = log(v) + log(inverse_alpha) - log(a / (us * us) + b)
                factorial = (k + 0.5) * log(k + 1.0) - (k + 1.0) + HALF_LOG_TURN + stirling_tail(k)
                accepted = left <= k * log_rate - rate - factorial
            tries += 1
    else:
        bits = block_of_try(P, words, place, i32(0))
        u = wide_unit(bits[0], bits[1])
        term = exp(-rate)
        total = term
        while u > total and k < static(float(MOST_TERMS)):
            k = k + 1.0
            term = term * rate / k
            total = total + term
    return k


@inline
def binomial_number(P, words, place, count, chance):
    """W. Hormann's BTRS where many hits are to be expected; for a chance above one half the misses
    are drawn."""
    n, p = f64(count), f64(chance)
    mirrored = p > 0.5
    p = select(mirrored, 1.0 - p, p)
    k = f64(0.0)
    if n > 0.0 and p > 0.0:
        if n * p >= LARGE:
            k = binomial_by_rejection(P, words, place, n, p)
        else:
            n = floor(n)
            bits = block_of_try(P, words, place, i32(0))
            u = wide_unit(bits[0], bits[1])
            odds = p / (1.0 - p)
            term = exp(n * log1p(-p))
            total = term
            while u > total and k < min(n, f64(MOST_TERMS)):
                term = term * (n - k) / (k + 1.0) * odds
                k = k + 1.0
                total = total + term
    k = select(mirrored, n - k, k)
    k = select(n <= 0.0, f64(0.0), k)
    return select(p != p, p, k)


@inline
def binomial_by_rejection(P, words, place, n, p):
    deviation = sqrt(n * p * (1.0 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / (1.0 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = floor((n + 1.0) * p)
    k = f64(0.0)
    accepted = False
    tries = i32(0)
    while not accepted and tries < MOST_TRIES:
        bits = block_of_try(P, words, place, tries)
        u = wide_unit(bits[0], bits[1]) - 0.5
        v = wide_unit(bits[2], bits[3])
        us = 0.5 - abs(u)
        k = floor((2.0 * a / us + b) * u + c)
        if k >= 0.0 and k <= n:
            if us >= 0.07 and v <= v_r:
                accepted = True
            else:
                rest = n - k + 1.0
                bound = (
                    (m + 0.5) * log((m + 1.0) / (odds * (n - m + 1.0)))
                    + (n + 1.0) * log((n - m + 1.0) / rest)
                    + (k + 0.5) * log(odds * rest / (k + 1.0))
                    + stirling_tail(m)
                    + stirling_tail(n - m)
                    - stirling_tail(k)
                    - stirling_tail(n - k)
                )
                accepted = log(v * alpha / (a / (us * us) + b)) <= bound
        tries += 1
    return k


@native
def rejection_grid(words: ptr[i64], *, P) -> void:
    """Words as `draw_grid`'s."""
    own = static(P.head + 1)
    columns = static(1 + P.nin - 2)
    n = P.I(words[P.head])
    turn = P.I(block()) // LANE_BLOCKS
    lane = (P.I(block()) - turn * LANE_BLOCKS) * THREADS + P.I(thread())
    out = operand_place(P, words, 0)
    places = [operand_place(P, words, static(3 + k)) for k in static(range(columns - 1))]
    i = turn * LANES + lane
    if i < n:
        if P.dims:
            at = offsets_of(P, words, static(own + len(P.given)), P.dims, columns, i)
        else:
            at = [i for k in static(range(columns))]
        given = parameters(P, words, own, places, at)
        if P.distribution == "gamma":
            out[at[0]] = P.types[0](gamma_number(P, words, [lane, turn], given[0]))
        elif P.distribution == "poisson":
            out[at[0]] = P.types[0](poisson_number(P, words, [lane, turn], given[0]))
        else:
            found = binomial_number(P, words, [lane, turn], given[0], given[1])
            out[at[0]] = P.types[0](found)
