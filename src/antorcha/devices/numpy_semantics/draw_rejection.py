"""What draws mean that reject and draw again, with NumPy: gamma, Poisson and binomial numbers.

All numbers that have not been accepted yet try again together. A device agrees within rounding, but
for the rare number whose acceptance hangs on it. See ``devices.gpu.draw_rejection``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from antorcha.runtime.philox import LANES, WORD, WORDS, block_of

Array = np.ndarray[Any, Any]
Blocks = Callable[[Array, int], Array]
MOST_TRIES = 128
MOST_TERMS = 512
LARGE = 10.0
TAILS = np.array([
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287,
])  # fmt: skip


def rejected(name: str, seed: int, offset: int, count: int, real: Any, given: list[Any]) -> Array:
    """Numbers of a distribution in their order in memory."""

    def blocks(at: Array, number: int) -> Array:
        k = at.astype(np.uint64)
        start = np.uint64(offset % (1 << 64) // WORDS) + k // np.uint64(LANES)
        tries = np.full_like(k, number)
        counter = start & WORD, start >> np.uint64(32), k % np.uint64(LANES), tries
        key = seed % (1 << 64)
        return np.stack(block_of(counter, (key & WORD, key >> 32)), -1)

    parameters = [np.broadcast_to(np.asarray(g), (count,)) for g in given]
    with np.errstate(all="ignore"):
        if name == "gamma":
            return _gamma(blocks, real, *parameters)
        if name == "poisson":
            return _poisson(blocks, *parameters)
        return _binomial(blocks, *parameters)


def _wide(words: Array, first: int) -> Array:
    bits = words[:, first] ^ (words[:, first + 1] << np.uint64(21))
    unit: Array = bits.astype(np.float64) * 2.0**-53 + 2.0**-54
    return unit


def _narrow(words: Array, at: int) -> Array:
    step = np.float32(2.0**-32)
    return words[:, at].astype(np.float32) * step + step / 2


def _until_accepted(count: int, tries: Callable[[Array, int], tuple[Array, Array]]) -> Array:
    """``tries(places, number)`` gives numbers and which of them are accepted."""
    found = np.zeros(count)
    left = np.arange(count)
    for number in range(MOST_TRIES):
        if not left.size:
            break
        values, accepted = tries(left, number)
        found[left] = values
        left = left[~accepted]
    return found


def _gamma(blocks: Blocks, real: Any, shape: Array) -> Array:
    wide = real == np.float64
    a = shape.astype(real)
    small = a < 1
    d = np.where(small, a + real.type(1), a) - real.type(1 / 3)
    c = real.type(1) / np.sqrt(real.type(9) * d)
    spare = np.ones(len(a), real)

    def tries(at: Array, number: int) -> tuple[Array, Array]:
        if wide:
            bits, more = blocks(at, 2 * number), blocks(at, 2 * number + 1)
            radius, u, other = _wide(bits, 0), _wide(more, 0), _wide(more, 2)
            halves = (bits[:, 2] ^ (bits[:, 3] << np.uint64(21))).astype(np.float64)
            angle = np.pi * (halves * 2.0**-52 + 2.0**-53)
        else:
            bits = blocks(at, number)
            radius, u, other = _narrow(bits, 0), _narrow(bits, 2), _narrow(bits, 3)
            turn = np.float32(6.2831854820251465 * 2.0**-32)
            angle = bits[:, 1].astype(np.float32) * turn + turn / 2
        x = np.sqrt(-2 * np.log(radius)) * np.sin(angle)
        if number == 0:
            spare[at] = other
        y = real.type(1) + c[at] * x
        v = y * y * y
        square = x * x
        bound = real.type(0.5) * square + d[at] * (1 - v + np.log(v))
        quick = u < 1 - real.type(0.0331) * square * square
        return d[at] * v, (y > 0) & (quick | (np.log(u) < bound))

    found = _until_accepted(len(a), tries).astype(real)
    found = np.where(small, found * np.exp(np.log(spare) / a), found)
    least: Array = np.maximum(np.where(a == 0, 0, found), np.finfo(real).tiny)
    return least


def _tail(k: Array) -> Array:
    near = TAILS[np.clip(np.nan_to_num(k), 0, 9).astype(np.int64)]
    square = (k + 1) * (k + 1)
    far = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    found: Array = np.where(k < 10, near, far)
    return found


def _searched(u: Array, term: Array, more: Callable[[Array, Array], Array], most: Array) -> Array:
    """How many terms are added before a running sum reaches u."""
    k, total = np.zeros(len(u)), term.copy()
    for _ in range(MOST_TERMS):
        on = (u > total) & (k < most)
        if not on.any():
            break
        term = np.where(on, more(term, k), term)
        k = np.where(on, k + 1, k)
        total = np.where(on, total + term, total)
    return k


def _poisson(blocks: Blocks, given: Array) -> Array:
    rate = given.astype(np.float64)
    every = np.arange(len(rate))
    few = _searched(
        _wide(blocks(every, 0), 0), np.exp(-rate), lambda term, k: term * rate / (k + 1),
        np.full(len(rate), float(MOST_TERMS)),
    )  # fmt: skip
    b = 0.931 + 2.53 * np.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def tries(at: Array, number: int) -> tuple[Array, Array]:
        bits = blocks(at, number)
        u, v = _wide(bits, 0) - 0.5, _wide(bits, 2)
        us = 0.5 - np.abs(u)
        mean = rate[at]
        k = np.floor((2 * a[at] / us + b[at]) * u + mean + 0.43)
        left = np.log(v) + np.log(inverse_alpha[at]) - np.log(a[at] / (us * us) + b[at])
        factorial = (k + 0.5) * np.log(k + 1) - (k + 1) + 0.5 * np.log(2 * np.pi) + _tail(k)
        slow = ~((k < 0) | ((us < 0.013) & (v > us)))
        slow &= left <= k * np.log(mean) - mean - factorial
        quick = (us >= 0.07) & (v <= v_r[at])
        return k, quick | slow | (mean < LARGE)

    return np.where(rate >= LARGE, _until_accepted(len(rate), tries), few)


def _binomial(blocks: Blocks, count: Array, chance: Array) -> Array:
    n, p = count.astype(np.float64), chance.astype(np.float64)
    mirrored = p > 0.5
    p = np.where(mirrored, 1 - p, p)
    odds = p / (1 - p)
    large = n * p >= LARGE
    whole = np.where(large, n, np.floor(n))
    some = (n > 0) & (p > 0)
    few = _searched(
        _wide(blocks(np.arange(len(n)), 0), 0), np.exp(whole * np.log1p(-p)),
        lambda term, k: term * (whole - k) / (k + 1) * odds, np.minimum(whole, MOST_TERMS),
    )  # fmt: skip
    deviation = np.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    m = np.floor((n + 1) * p)

    def tries(at: Array, number: int) -> tuple[Array, Array]:
        bits = blocks(at, number)
        u, v = _wide(bits, 0) - 0.5, _wide(bits, 2)
        us = 0.5 - np.abs(u)
        size, mode, r = n[at], m[at], odds[at]
        k = np.floor((2 * a[at] / us + b[at]) * u + size * p[at] + 0.5)
        rest = size - k + 1
        bound = (mode + 0.5) * np.log((mode + 1) / (r * (size - mode + 1)))
        bound += (size + 1) * np.log((size - mode + 1) / rest)
        bound += (k + 0.5) * np.log(r * rest / (k + 1))
        bound += _tail(mode) + _tail(size - mode) - _tail(k) - _tail(size - k)
        alpha = (2.83 + 5.1 / b[at]) * deviation[at]
        slow = np.log(v * alpha / (a[at] / (us * us) + b[at])) <= bound
        quick = (us >= 0.07) & (v <= 0.92 - 4.2 / b[at])
        return k, ((k >= 0) & (k <= size) & (quick | slow)) | ~large[at]

    k = np.where(large, _until_accepted(len(n), tries), few)
    k = np.where(some, k, 0)
    k = np.where(mirrored, whole - k, k)
    k = np.where(n <= 0, 0, k)
    return np.where(np.isnan(p), p, k)
