"""The windows of pooling: which elements of a plane go into which result."""

from __future__ import annotations

import math
from collections.abc import Sequence

from antorcha.core.lazy import Array, np
from antorcha.core.structs import struct


@struct
class Axis:
    """The windows along one axis of ``size`` elements: element ``starts[o] + k * step``,
    k < ``counts[o]``; ``spans`` are their lengths, padding included."""

    size: int
    starts: list[int]
    counts: list[int]
    spans: list[int]
    step: int = 1

    @property
    def out(self) -> int:
        return len(self.starts)


def out_size(n: int, k: int, stride: int, pad: int, dilation: int, ceil: bool) -> int:
    """How many windows there are; with ``ceil`` the last may hang over, but must start inside."""
    room = n + 2 * pad - dilation * (k - 1) - 1
    size = (room + (stride - 1 if ceil else 0)) // stride + 1
    return size - 1 if ceil and (size - 1) * stride >= n + pad else size


def sliding(n: int, k: int, stride: int, pad: int, dilation: int, ceil: bool) -> Axis:
    starts, counts, spans = [], [], []
    for o in range(out_size(n, k, stride, pad, dilation, ceil)):
        low = o * stride - pad
        end = min(low + (k - 1) * dilation + 1, n)
        spans.append(min(low + k, n + pad) - low)
        low += -(low // dilation) * dilation if low < 0 else 0
        starts.append(low)
        counts.append(len(range(low, end, dilation)))
    return Axis(n, starts, counts, spans, dilation)


def adaptive(n: int, out: int) -> Axis:
    starts = [o * n // out for o in range(out)]
    counts = [-(-(o + 1) * n // out) - s for o, s in enumerate(starts)]
    return Axis(n, starts, counts, counts)


@struct
class Windows:
    """The windows of one plane, and what an average divides by."""

    axes: list[Axis]  # three
    include_pad: bool = True
    divisor: int | None = None

    @property
    def inside(self) -> int:
        return math.prod([a.size for a in self.axes])

    @property
    def results(self) -> int:
        return math.prod([a.out for a in self.axes])

    @property
    def most(self) -> list[int]:
        return [max(a.counts, default=0) for a in self.axes]

    @property
    def full(self) -> bool:
        """Have all windows the same counts?"""
        return all([len(set(a.counts)) <= 1 for a in self.axes])

    def sizes(self, axis: Axis) -> list[int]:
        return axis.spans if self.include_pad else axis.counts

    def steps(self) -> list[int]:
        """Elements between neighbours of a window along each axis."""
        _, h, w = self.axes
        return [self.axes[0].step * h.size * w.size, h.step * w.size, w.step]

    def outer(self, tables: Sequence[Sequence[int]], weights: Sequence[int]) -> Array:
        """sum of table[o] * weight over the axes, for every result in order."""
        parts = [np.asarray(t, np.int64) * w for t, w in zip(tables, weights, strict=True)]
        return (parts[0][:, None, None] + parts[1][:, None] + parts[2]).reshape(-1)

    def bases(self) -> Array:
        """Where each result's window starts in the plane."""
        _, h, w = self.axes
        return self.outer([a.starts for a in self.axes], [h.size * w.size, w.size, 1])

    def counts(self, k: int) -> Array:
        """The windows' counts along axis k, for every result."""
        weights = [int(j == k) for j in range(3)]
        return self.outer([a.counts for a in self.axes], weights)

    def divisors(self) -> Array:
        if self.divisor is not None:
            return np.full(self.results, self.divisor, np.int64)
        d, h, w = [np.asarray(self.sizes(a), np.int64) for a in self.axes]
        return (d[:, None, None] * h[:, None] * w).reshape(-1)
