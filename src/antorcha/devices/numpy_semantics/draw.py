"""What a ``Draw`` means on a device that draws by counting, with NumPy. See ``runtime.philox``.

Bits, uniform numbers, whole numbers and coins are what devices must give to the last bit; the
others are within rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from antorcha.devices.numpy_semantics.draw_rejection import rejected
from antorcha.lang.kernels import Draw
from antorcha.runtime.integer_bounds import bounds_of
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.philox import (
    LANES,
    REJECTING,
    WORD,
    WORDS,
    block_of,
    numbers_of_block,
)

Array = np.ndarray[Any, Any]


def words_of(seed: int, offset: int, count: int, each: int) -> Array:
    """The words of ``count`` numbers, of which a block gives ``each``: an array of (count, words),
    the words of a number being ``WORDS // each``; where each is 4, beside the number's word stand
    those of its pair, first word and second, and which of the two it is."""
    seed, offset = seed % (1 << 64), offset % (1 << 64)
    k = np.arange(count, dtype=np.uint64)
    turn = k // np.uint64(LANES)
    start = np.uint64(offset // WORDS) + turn // np.uint64(each)
    zero = np.zeros_like(k)
    counter = start & WORD, start >> np.uint64(32), k % np.uint64(LANES), zero
    block = np.stack(block_of(counter, (seed & WORD, seed >> 32)), -1)
    at = (turn % np.uint64(each)).astype(np.int64)
    rows = np.arange(count)
    if each == 4:
        pair = at // 2 * 2
        return np.stack([block[rows, at], block[rows, pair], block[rows, pair + 1],
                         (at % 2).astype(np.uint64)], -1)  # fmt: skip
    return np.stack(
        [block[rows, 2 * at], block[rows, 2 * at + 1], *[block[rows, j] for j in range(4)],
         at.astype(np.uint64)], -1,
    )  # fmt: skip


def units(words: Array, wide: bool) -> Array:
    """Numbers in (0, 1]: float32 of one word, float64 of two."""
    if wide:
        return _crossed(words[:, 0], words[:, 1]) * 2.0**-53 + 2.0**-54
    step = np.float32(2.0**-32)
    return words[:, 0].astype(np.float32) * step + step / 2


def _crossed(low: Array, high: Array) -> Array:
    found: Array = (low ^ (high << np.uint64(21))).astype(np.float64)
    return found


def normals(words: Array, wide: bool) -> Array:
    """Box and Muller's: the sine for the first of a pair, the cosine for the second."""
    radius: Array
    angle: Array
    if wide:
        radius = np.sqrt(-2 * np.log(_crossed(words[:, 2], words[:, 3]) * 2.0**-53 + 2.0**-54))
        angle = np.pi * (_crossed(words[:, 4], words[:, 5]) * 2.0**-52 + 2.0**-53)
    else:
        step, turn = np.float32(2.0**-32), np.float32(6.2831854820251465 * 2.0**-32)
        radius = np.sqrt(-2 * np.log(words[:, 1].astype(np.float32) * step + step / 2))
        angle = words[:, 2].astype(np.float32) * turn + turn / 2
    return radius * np.where(words[:, -1] == 0, np.sin(angle), np.cos(angle))


def _whole(words: Array, name: str, low: int | None, high: int | None) -> Array:
    first, width, wide = bounds_of(name, low, high)
    x = words[:, 0] << np.uint64(32) | words[:, 1] if wide else words[:, 0]
    if width % (1 << (64 if wide else 32)):
        x = x % np.uint64(width)
    found: Array = x.view(np.int64) + np.int64(first)
    return found


def _uniform(u: Array, kind: Any, low: float, high: float) -> Array:
    start, end = kind(low), kind(high)
    width = u.dtype.type(kind(end - start))
    # (a device rounds once, which a wider type comes near)
    wide = u.astype(np.longdouble) * width + np.longdouble(start)
    y = wide.astype(u.dtype).astype(kind)
    found: Array = np.where(y == end, start, y)
    return found


def _exponential(u: Array, rate: float) -> Array:
    tiny = np.finfo(u.dtype).eps / 2
    y: Array = u.dtype.type(-1) / u.dtype.type(rate) * np.where(u >= 1 - tiny, -tiny, np.log(u))
    return y


def _cauchy(u: Array, median: float, sigma: float) -> Array:
    near = np.finfo(u.dtype).eps
    y: Array = median + sigma * np.tan(np.pi * (np.clip(u, near, 1 - near) - 0.5))
    return y


def compute_draw(
    what: Draw, outs: Sequence[Layout], ins: Sequence[Any]
) -> Callable[[list[Any]], Sequence[Any]]:
    layout = outs[0]
    complex_ = layout.dtype.kind == "c"
    out = layout.dtype.to_real() if complex_ else layout.dtype
    order = sorted(range(layout.ndim), key=lambda d: (-layout.strides[d], d))
    each, wide = numbers_of_block(what, out.name), out.name == "float64"
    real = np.dtype(np.float64 if wide else np.float32)

    def compute(values: list[Any]) -> Sequence[Any]:
        state, offset, *tensors = values
        seed = int(np.ravel(state)[0])
        if isinstance(ins[0], Layout):
            offset += int(state[1])
        if what.distribution in REJECTING:
            own = [np.transpose(t, order).ravel() for t in tensors]
            found = rejected(what.distribution, seed, offset, layout.numel, real, own)
            return (_in_memory_order(found),)
        words = words_of(seed, offset, layout.numel * (2 if complex_ else 1), each)
        left = iter([np.transpose(t, order).ravel() for t in tensors])
        given = list(what.parameters)
        if tensors:
            given = [next(left).astype(real) if p is None else p for p in given]
        with np.errstate(all="ignore"):
            flat = _numbers(what.distribution, words, given)
        if complex_:
            flat = flat.astype(out.np).view(layout.dtype.np)
        return (_in_memory_order(flat),)

    def _numbers(name: str, words: Array, given: list[Any]) -> Array:
        found: Array
        if name == "random":
            return _whole(words, out.name, *given)
        if name in ("normal", "log_normal"):
            found = normals(words, wide) * given[1] + given[0]
            return found if name == "normal" else np.exp(found, out=found)
        u = units(words, wide)
        if name == "uniform":
            return _uniform(u, out.np.type, *given)
        if name == "bernoulli":
            return u <= np.asarray(given[0], real)
        if name == "exponential":
            return _exponential(u, *given)
        if name == "cauchy":
            return _cauchy(u, *given)
        chance = real.type(given[0])  # geometric
        found = np.maximum(np.ceil(np.log(u) / np.log1p(-chance)), 1)
        return found

    def _in_memory_order(flat: Array) -> Array:
        shape = [layout.shape[d] for d in order]
        return np.transpose(flat.reshape(shape), np.argsort(order))

    return compute
