"""Random numbers: Draw on arrays of MLX's, by counting (see ``runtime.philox``).

They are those of every device that counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha.devices.emit import Unsupported
from antorcha.devices.mps.expressions import Array, Compute, cast
from antorcha.devices.mps.library import mx
from antorcha.lang.kernels import Draw
from antorcha.runtime.integer_bounds import bounds_of
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.philox import (
    KEY_STEPS,
    LANES,
    MULTIPLIERS,
    ROUNDS,
    WORD,
    WORDS,
    numbers_of_block,
)

TINY = 2.0**-24  # half the distance between 1 and the next float32
TURN = 6.2831854820251465  # 2 pi in float32
DISTRIBUTIONS = ("uniform", "normal", "log_normal", "exponential", "cauchy", "geometric",
                 "bernoulli", "random")  # fmt: skip


def number(value: int) -> Array:
    """A word as an array."""
    return mx.array(np.asarray(value % (1 << 64), np.uint64))


def blocks_of(seed: int, offset: int, count: int, each: int) -> tuple[list[Array], Array]:
    """For each of ``count`` numbers the four words of its block, and its place in the block."""
    k = mx.arange(count, dtype=mx.uint64)
    turn = k // number(LANES)
    start = number(offset % (1 << 64) // WORDS) + turn // number(each)
    shift, word = number(32), number(WORD)
    a, b, c, d = start & word, start >> shift, k % number(LANES), mx.zeros_like(k)
    seed %= 1 << 64
    low, high = seed & WORD, seed >> 32
    for _ in range(ROUNDS):
        first, second = a * number(MULTIPLIERS[0]), c * number(MULTIPLIERS[1])
        a, b = (second >> shift) ^ b ^ number(low), second & word
        c, d = (first >> shift) ^ d ^ number(high), first & word
        low, high = (low + KEY_STEPS[0]) & WORD, (high + KEY_STEPS[1]) & WORD
    return [a, b, c, d], turn % number(each)


def chosen(blocks: list[Array], at: Array) -> Array:
    """Of each number's block the word at its place."""
    found = blocks[-1]
    for k in range(len(blocks) - 2, -1, -1):
        found = mx.where(at == number(k), blocks[k], found)
    return found


def compute_draw(what: Draw, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    layout = outs[0]
    t = layout.dtype
    part = t.to_real() if t.kind == "c" else t
    if what.distribution not in DISTRIBUTIONS:
        raise Unsupported(f"a draw of a {what.distribution}")
    each = numbers_of_block(what, part.name)
    order = sorted(range(layout.ndim), key=lambda d: (-layout.strides[d], d))
    back = sorted(range(layout.ndim), key=lambda k: order[k])
    count = layout.numel * (2 if t.kind == "c" else 1)

    def compute(values: list[Any]) -> list[Array]:
        seed, offset, *tensors = values
        blocks, at = blocks_of(seed, offset, count, each)
        if what.distribution == "random":
            flat = _whole(blocks, at, part.name, *what.parameters)
        else:
            left = iter([v.transpose(order).reshape(-1) if v.ndim else v for v in tensors])
            given = [next(left).astype(mx.float32) if p is None else p for p in what.parameters]
            flat = _numbers(what.distribution, blocks, at, given, part)
        if t.kind == "c":
            flat = flat.astype(mx.float32).view(mx.complex64)
        flat = flat.reshape([layout.shape[d] for d in order])
        return [flat.transpose(back) if layout.ndim else flat]

    return compute


def _whole(blocks: list[Array], at: Array, name: str, low: int | None, high: int | None) -> Array:
    first, width, wide = bounds_of(name, low, high)
    if wide:
        pairs = [blocks[0] << number(32) | blocks[1], blocks[2] << number(32) | blocks[3]]
        x = chosen(pairs, at)
    else:
        x = chosen(blocks, at)
    if width % (1 << (64 if wide else 32)):
        x = x % number(width)
    return x.view(mx.int64) + mx.array(first, mx.int64)


def _units(words: Array) -> Array:
    """Numbers in (0, 1]."""
    return words.astype(mx.float32) * 2.0**-32 + 2.0**-33


def _normals(blocks: list[Array], at: Array) -> Array:
    """Box and Muller's: the sine for the first of a pair, the cosine for the second."""
    late = at >= number(2)
    first = mx.where(late, blocks[2], blocks[0])
    second = mx.where(late, blocks[3], blocks[1])
    radius = mx.sqrt(-2.0 * mx.log(_units(first)))
    step = TURN * 2.0**-32
    angle = second.astype(mx.float32) * step + step / 2
    return radius * mx.where(at % number(2) == number(0), mx.sin(angle), mx.cos(angle))


def _numbers(name: str, blocks: list[Array], at: Array, given: list[Any], part: Any) -> Array:
    if name in ("normal", "log_normal"):
        found = _normals(blocks, at) * given[1] + given[0]
        return mx.exp(found) if name == "log_normal" else found
    u = _units(chosen(blocks, at))
    if name == "uniform":
        low, high = given
        start, end = [cast(mx.array(float(v), mx.float32), part) for v in (low, high)]
        found = cast(u * (end - start).astype(mx.float32) + start.astype(mx.float32), part)
        return mx.where(found == end, start, found)
    if name == "bernoulli":
        return u <= given[0]
    if name == "exponential":
        return mx.where(u >= 1 - TINY, -TINY, mx.log(u)) * (-1 / given[0])
    if name == "cauchy":
        near = 2 * TINY
        return given[0] + given[1] * mx.tan(math.pi * (mx.clip(u, near, 1 - near) - 0.5))
    tries = mx.log(u) / mx.log1p(-mx.array(given[0], mx.float32))  # geometric
    return mx.maximum(mx.ceil(tries), 1.0)
