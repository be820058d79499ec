"""Digits from pen strokes: a data set of small pictures that is drawn, not downloaded.

Each digit has one or more ways of being written: lists of points that a pen passes through on a
smooth curve. `strokes` moves the points, slants, turns and stretches the whole, and draws it with
a pen of some width. A picture of one's own becomes one of the same kind by `paint`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

from antorcha.core.lazy import Array, np
from antorcha.errors import ValueRangeError
from antorcha.ops.kinds.record import T
from antorcha.random import Generator
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.interop import from_numpy

__all__ = ["strokes"]

PenStroke: TypeAlias = Sequence[tuple[float, float]]

POINTS = 64  # that stand for a whole drawing
SPAN = 0.72  # of the picture's side that the larger side of a drawing takes
RADIUS = 0.055  # of the pen, usually, in sides of the picture
_JITTER = 0.035  # how far points move, usually
_BEND = 6  # pieces of the curve from one point to the next

# Ways of writing: of each digit some, of each the strokes, of each the points (x, y), y downwards.
_WAYS: dict[int, list[list[PenStroke]]] = {
    0: [
        [[(0.5, 0), (0.15, 0.2), (0.08, 0.55), (0.25, 0.93), (0.5, 1), (0.78, 0.9), (0.92, 0.5),
          (0.8, 0.12), (0.5, 0)]],
        [[(0.6, 0.02), (0.25, 0.12), (0.1, 0.5), (0.2, 0.85), (0.5, 1), (0.8, 0.82), (0.9, 0.45),
          (0.75, 0.1), (0.45, 0.03)]],
    ],
    1: [
        [[(0.5, 0), (0.5, 0.35), (0.5, 0.7), (0.5, 1)]],
        [[(0.25, 0.25), (0.4, 0.12), (0.55, 0)], [(0.55, 0), (0.54, 0.5), (0.53, 1)]],
        [[(0.25, 0.22), (0.4, 0.12), (0.52, 0)], [(0.52, 0), (0.52, 0.5), (0.52, 1)],
         [(0.22, 1), (0.5, 1), (0.8, 1)]],
    ],
    2: [
        [[(0.12, 0.25), (0.3, 0.03), (0.65, 0.03), (0.82, 0.28), (0.6, 0.6), (0.3, 0.82),
          (0.1, 1)], [(0.1, 1), (0.5, 0.98), (0.9, 1)]],
        [[(0.15, 0.2), (0.4, 0), (0.75, 0.1), (0.75, 0.4), (0.5, 0.7), (0.2, 0.98), (0.08, 0.85),
          (0.25, 0.78), (0.5, 0.92), (0.75, 1), (0.95, 0.9)]],
    ],
    3: [
        [[(0.15, 0.12), (0.45, 0), (0.78, 0.12), (0.75, 0.36), (0.42, 0.47)],
         [(0.42, 0.47), (0.78, 0.55), (0.86, 0.78), (0.6, 0.98), (0.3, 0.98), (0.1, 0.84)]],
        [[(0.12, 0.02), (0.48, 0.01), (0.82, 0.02)], [(0.82, 0.02), (0.62, 0.22), (0.42, 0.42)],
         [(0.42, 0.42), (0.75, 0.5), (0.85, 0.75), (0.6, 0.98), (0.3, 0.98), (0.1, 0.85)]],
        [[(0.15, 0.15), (0.5, 0), (0.8, 0.2), (0.6, 0.43), (0.45, 0.5), (0.7, 0.55), (0.88, 0.78),
          (0.55, 1), (0.12, 0.88)]],
    ],
    4: [
        [[(0.62, 0), (0.35, 0.35), (0.08, 0.66)], [(0.08, 0.66), (0.5, 0.66), (0.92, 0.66)],
         [(0.68, 0.3), (0.68, 0.65), (0.68, 1)]],
        [[(0.65, 0), (0.35, 0.35), (0.08, 0.66)], [(0.08, 0.66), (0.5, 0.66), (0.92, 0.66)],
         [(0.65, 0), (0.66, 0.5), (0.66, 1)]],
        [[(0.22, 0), (0.16, 0.25), (0.14, 0.5)], [(0.14, 0.5), (0.45, 0.52), (0.8, 0.5)],
         [(0.75, 0), (0.74, 0.5), (0.72, 1)]],
    ],
    5: [
        [[(0.82, 0.01), (0.5, 0), (0.22, 0.01)], [(0.22, 0.01), (0.2, 0.22), (0.18, 0.44)],
         [(0.18, 0.44), (0.5, 0.35), (0.82, 0.5), (0.85, 0.76), (0.58, 0.98), (0.12, 0.92)]],
        [[(0.8, 0.03), (0.5, 0.02), (0.28, 0.03)], [(0.28, 0.03), (0.22, 0.25), (0.2, 0.45)],
         [(0.2, 0.45), (0.55, 0.4), (0.8, 0.65), (0.6, 0.95), (0.3, 1), (0.1, 0.85)]],
        [[(0.9, 0.02), (0.5, 0.05), (0.25, 0.1), (0.2, 0.35), (0.5, 0.42), (0.8, 0.6), (0.75, 0.88),
          (0.45, 1), (0.12, 0.9)]],
    ],
    6: [
        [[(0.72, 0.02), (0.4, 0.15), (0.16, 0.5), (0.18, 0.85), (0.5, 1), (0.8, 0.86), (0.78, 0.6),
          (0.5, 0.5), (0.2, 0.68)]],
        [[(0.55, 0), (0.28, 0.25), (0.12, 0.6), (0.25, 0.95), (0.6, 1), (0.82, 0.78), (0.62, 0.55),
          (0.32, 0.6), (0.15, 0.75)]],
    ],
    7: [
        [[(0.1, 0.02), (0.5, 0.02), (0.9, 0.02)], [(0.9, 0.02), (0.62, 0.5), (0.4, 1)]],
        [[(0.1, 0.03), (0.5, 0.02), (0.88, 0.02)], [(0.88, 0.02), (0.6, 0.5), (0.42, 1)],
         [(0.32, 0.52), (0.6, 0.5), (0.85, 0.5)]],
        [[(0.12, 0.18), (0.15, 0.03), (0.5, 0.04), (0.88, 0.02)],
         [(0.88, 0.02), (0.62, 0.4), (0.5, 1)]],
    ],
    8: [
        [[(0.75, 0.12), (0.45, 0), (0.2, 0.16), (0.35, 0.4), (0.66, 0.56), (0.85, 0.8), (0.5, 1),
          (0.15, 0.82), (0.32, 0.57), (0.62, 0.4), (0.78, 0.18), (0.7, 0.08)]],
        [[(0.5, 0), (0.22, 0.12), (0.28, 0.38), (0.5, 0.47), (0.75, 0.35), (0.76, 0.12), (0.5, 0)],
         [(0.5, 0.47), (0.15, 0.65), (0.2, 0.93), (0.5, 1), (0.82, 0.92), (0.84, 0.65),
          (0.5, 0.47)]],
        [[(0.5, 0.5), (0.2, 0.25), (0.48, 0), (0.8, 0.22), (0.52, 0.5), (0.15, 0.76), (0.5, 1),
          (0.85, 0.78), (0.5, 0.5)]],
    ],
    9: [
        [[(0.8, 0.2), (0.55, 0), (0.22, 0.14), (0.22, 0.42), (0.52, 0.52), (0.8, 0.22)],
         [(0.8, 0.2), (0.76, 0.6), (0.68, 1)]],
        [[(0.8, 0.25), (0.55, 0.02), (0.22, 0.14), (0.24, 0.42), (0.55, 0.5), (0.78, 0.3),
          (0.8, 0.6), (0.62, 0.95), (0.25, 0.98)]],
        [[(0.5, 0.5), (0.2, 0.28), (0.48, 0), (0.8, 0.2), (0.5, 0.5)],
         [(0.82, 0.15), (0.74, 0.6), (0.55, 1)]],
    ],
}  # fmt: skip


def strokes(n: int, *, size: int = 16, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Pictures of digits as people write them, and which digit each is.

    They are drawn, each in a way of its own, with numbers that `seed` alone decides: nothing is
    downloaded, and ``torch.manual_seed`` plays no part. The digits come in a random order, each
    about as often as the others; the first pictures of a seed are the same whatever `n` is.

    Args:
        n: how many.
        size: rows and columns of each picture; 8 at least.
        seed: another seed gives other pictures: use two, to train and to test.

    Returns:
        Pictures of shape ``(n, 1, size, size)``, float32 from 0 (paper) to 1 (ink), and their
        digits, of shape ``(n,)``, int64.

    >>> images, digits = torch.data.strokes(500)
    >>> images.shape, images.dtype, digits.shape, digits.dtype
    (torch.Size([500, 1, 16, 16]), torch.float32, torch.Size([500]), torch.int64)
    >>> digits[:8]
    tensor([4, 2, 6, 4, 0, 5, 1, 9])

    Raises:
        ValueError: `n` is negative, or `size` less than 8.
    """
    if n < 0:
        raise ValueRangeError(f"strokes: n is {n}; it is a number of pictures, 0 or more")
    if size < 8:
        raise ValueRangeError(f"strokes: size is {size}; a digit needs 8 rows and columns")
    ways = [(digit, way) for digit, several in _WAYS.items() for way in several]
    most = max([sum([len(each) for each in way]) for _, way in ways])
    # A row of random numbers for each picture: 2 choose, 6 shape the whole, the others each point.
    generator = Generator().manual_seed(seed)
    chance = T.rand(n, 8 + 2 * most, generator=generator).numpy().astype(np.float64)
    digits = np.minimum((chance[:, 0] * 10).astype(np.int64), 9)
    images = np.zeros((n, size, size), np.float32)
    for digit, several in _WAYS.items():
        which = np.minimum((chance[:, 1] * len(several)).astype(np.int64), len(several) - 1)
        for number, way in enumerate(several):
            rows = np.flatnonzero((digits == digit) & (which == number))
            points = _written(way, chance[rows])
            radius = RADIUS + 0.018 * _spread(chance[rows, 2])
            images[rows] = _inked(points, radius, size)
    return from_numpy(images[:, None]), from_numpy(digits)


def paint(drawing: Sequence[PenStroke], size: int = 16, *, span: float = SPAN) -> Array:
    """A drawing as a picture of `strokes`' kind: (size, size), centred, as large as those are.

    Args:
        drawing: the points of each stroke, (x, y), with y downwards; in any unit.
        size: rows and columns.
        span: of the side that the drawing takes.
    """
    lines = [np.asarray(stroke, np.float64).reshape(-1, 2) for stroke in drawing if len(stroke)]
    if not lines:
        return np.zeros((size, size), np.float32)
    points = _evenly(lines, POINTS)
    whole: Array = _inked(_fitted(points[None], span), np.array([RADIUS]), size)[0]
    return whole


def _spread(chance: Array) -> Array:
    """Numbers from 0 to 1 as numbers from -1 to 1."""
    return 2 * chance - 1


def _written(way: Sequence[PenStroke], chance: Array) -> Array:
    """That way of writing, once for each row of random numbers: points (rows, POINTS, 2)."""
    control = np.concatenate([np.asarray(stroke, np.float64) for stroke in way])
    moves = _spread(chance[:, 8 : 8 + control.size]).reshape(-1, *control.shape)
    moved = control + 2 * _JITTER * moves
    shared = _shared(way)
    moved = moved[:, shared]  # where one stroke ends and the next begins is one place
    curves = moved.transpose(0, 2, 1) @ _bending(tuple([len(stroke) for stroke in way])).T
    points = curves.transpose(0, 2, 1) - 0.5
    turn, slant, wide, high = _spread(chance[:, 3:7]).T
    points[..., 0] *= (0.8 + 0.22 * wide)[:, None]
    points[..., 1] *= (1.0 + 0.15 * high)[:, None]
    points[..., 0] -= (0.1 + 0.22 * slant)[:, None] * points[..., 1]
    cosine, sine = np.cos(0.16 * turn)[:, None], np.sin(0.16 * turn)[:, None]
    x, y = points[..., 0], points[..., 1]
    turned = np.stack([x * cosine - y * sine, x * sine + y * cosine], -1)
    return _fitted(turned)


def _shared(way: Sequence[PenStroke]) -> Array:
    """For each point of a way the number of the first point at that place."""
    places = [point for stroke in way for point in stroke]
    return np.array([places.index(point) for point in places])


@cache
def _bending(counts: tuple[int, ...]) -> Array:
    """What makes smooth curves of strokes of so many points: weights (POINTS, all points).

    Catmull and Rom's splines (A class of local interpolating splines, 1974), taken at places that
    are about equally far from each other.
    """
    rows = []
    begin, total = 0, sum(counts)
    for count in counts:
        for k in range(count - 1):
            rows += [_spline(begin, count, k, step / _BEND, total) for step in range(_BEND)]
        rows.append(_spline(begin, count, count - 2, 1.0, total))
        begin += count
    chosen: Array = np.stack(rows)[np.rint(np.linspace(0, len(rows) - 1, POINTS)).astype(int)]
    return chosen


def _spline(begin: int, count: int, k: int, t: float, total: int) -> Array:
    """The weights of all points at `t` of the way from the k-th point of a stroke to the next."""
    weights = (
        (-t + 2 * t**2 - t**3) / 2,
        (2 - 5 * t**2 + 3 * t**3) / 2,
        (t + 4 * t**2 - 3 * t**3) / 2,
        (-(t**2) + t**3) / 2,
    )
    row = np.zeros(total)
    for offset, weight in zip((-1, 0, 1, 2), weights):
        row[begin + min(max(k + offset, 0), count - 1)] += weight
    return row


def _evenly(lines: Sequence[Array], count: int) -> Array:
    """Points at equal distances along some lines, (count, 2)."""
    steps = [np.hypot(*np.diff(line, axis=0).T) for line in lines]
    whole = sum([float(each.sum()) for each in steps])
    found = []
    for line, lengths in zip(lines, steps):
        along = np.concatenate([[0.0], np.cumsum(lengths)])
        share = along[-1] / whole if whole else 1 / len(lines)
        wanted = np.linspace(0, along[-1], max(round(count * share), 2))
        found.append(np.stack([np.interp(wanted, along, line[:, d]) for d in (0, 1)], -1))
    return np.concatenate(found)


def _fitted(points: Array, span: float = SPAN) -> Array:
    """Points (rows, points, 2) moved and scaled into the middle of a square of side 1."""
    low, high = points.min(1, keepdims=True), points.max(1, keepdims=True)
    side = (high - low).max(2, keepdims=True)
    fitted: Array = 0.5 + (points - (low + high) / 2) * (span / np.maximum(side, 1e-9))
    return fitted


def _inked(points: Array, radius: Array, size: int) -> Array:
    """Pictures (rows, size, size) of what a pen of that radius leaves that passes points."""
    middles = (np.arange(size, dtype=np.float32) + 0.5) / size
    across = (points[..., 0].astype(np.float32)[..., None] - middles) ** 2  # (rows, points, size)
    down = (points[..., 1].astype(np.float32)[..., None] - middles) ** 2
    nearest = np.full((len(points), size, size), 9, np.float32)
    for k in range(points.shape[1]):
        np.minimum(nearest, down[:, k, :, None] + across[:, k, None, :], out=nearest)
    distance = np.sqrt(nearest)
    ink = (radius.astype(np.float32)[:, None, None] - distance) * size + np.float32(0.5)
    inked: Array = ink.clip(0, 1)
    return inked
