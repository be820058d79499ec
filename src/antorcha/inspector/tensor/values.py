"""Numbers about numbers: counts, extremes, mean, deviation and a histogram, in bounded work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from antorcha.core.lazy import Array, np
from antorcha.inspector.reading import Elements, chunks, steps_for

EXACT = 1 << 20  # up to so many elements all are looked at
SAMPLE = 1 << 15  # of more, about so many
BINS = 20
_SAFE = 1e150  # squares of what is larger may overflow


@dataclass(frozen=True)
class Histogram:
    """How many finite values lie in each of equal intervals from ``low`` to ``high``."""

    low: float
    high: float
    counts: tuple[int, ...]
    integral: bool = False  # each interval is one whole number, ``low + k``


@dataclass(frozen=True)
class Statistics:
    """What the values are like. Extremes, mean, std and histogram are of the finite ones.

    ``looked_at`` elements were read of ``count``: fewer means that all numbers are a sample's.
    Of complex values the magnitudes count (``of_magnitude``). `std` is the unbiased one, as of
    ``Tensor.std``; None where there are fewer than two values.
    """

    count: int
    looked_at: int
    nan: int
    posinf: int
    neginf: int
    zeros: int
    finite: int
    min: float | int | None
    max: float | int | None
    mean: float | None
    std: float | None
    histogram: Histogram | None
    of_magnitude: bool = False

    @property
    def sampled(self) -> bool:
        """Is it a sample, not all of them?"""
        return self.looked_at < self.count


def describe(elements: Elements, exact: int = EXACT, sample: int = SAMPLE) -> Statistics:
    """Statistics of all elements, or of an evenly strided sample where there are too many."""
    layout = elements.layout
    steps = (1,) * layout.ndim if layout.numel <= exact else steps_for(layout.shape, sample)
    block = elements.thinned(steps)
    with np.errstate(all="ignore"):
        return _Gatherer(block, layout.numel, layout.dtype.kind).statistics()


class _Gatherer:
    """Two passes over a block: the first counts and finds the extremes, the second the rest.

    Another thread may write in between: then the numbers are of both times, and still numbers.
    """

    def __init__(self, block: Array, count: int, kind: str) -> None:
        self.block, self.count, self.kind = block, count, kind
        self.nan = self.posinf = self.neginf = self.zeros = self.finite = 0
        self.low: Any = None
        self.high: Any = None

    def statistics(self) -> Statistics:
        for part in chunks(self.block):
            self._count(part)
        mean, std, histogram = self._second_pass() if self.finite else (None, None, None)
        return Statistics(
            self.count, int(self.block.size), self.nan, self.posinf, self.neginf, self.zeros,
            self.finite, self.low, self.high, mean, std, histogram, self.kind == "c",
        )  # fmt: skip

    def _finite(self, part: Array) -> Array:
        """The finite ones as numbers that can be compared and counted exactly."""
        if self.kind in "iu":
            return part
        if self.kind == "b":
            return part.astype(np.uint8)
        real = np.abs(part) if self.kind == "c" else part
        real = real.astype(np.float64)
        kept: Array = real[np.isfinite(real)]
        return kept

    def _count(self, part: Array) -> None:
        self.zeros += int(part.size - np.count_nonzero(part))
        if self.kind in "fc":
            real = (np.abs(part) if self.kind == "c" else part).astype(np.float64)
            self.nan += int(np.isnan(real).sum())
            self.posinf += int((real == np.inf).sum())
            self.neginf += int((real == -np.inf).sum())
        kept = self._finite(part)
        self.finite += kept.size
        if kept.size:
            low, high = kept.min().item(), kept.max().item()
            self.low = low if self.low is None else min(low, self.low)
            self.high = high if self.high is None else max(high, self.high)

    def _second_pass(self) -> tuple[float | None, float | None, Histogram]:
        low, high = float(self.low), float(self.high)
        scale = max(abs(low), abs(high))
        scale = scale if scale > _SAFE else 1.0
        mean = math.fsum(float((self._numbers(p) / scale).sum()) for p in chunks(self.block))
        mean /= self.finite
        squares = 0.0
        counts = np.zeros(self._bins(), np.int64)
        for part in chunks(self.block):
            numbers = self._numbers(part)
            squares += float(((numbers / scale - mean) ** 2).sum())
            places = self._places(numbers, low, high, counts.size)
            counts += np.bincount(places, minlength=counts.size)[: counts.size]
        std = scale * math.sqrt(squares / (self.finite - 1)) if self.finite > 1 else None
        histogram = Histogram(self.low, self.high, tuple(counts.tolist()), self._integral())
        return mean * scale, std, histogram

    def _numbers(self, part: Array) -> Array:
        numbers: Array = self._finite(part).astype(np.float64)
        return numbers

    def _integral(self) -> bool:
        return self.kind in "iub" and self.high - self.low < BINS

    def _bins(self) -> int:
        if self._integral():
            return int(self.high - self.low) + 1
        return BINS if self.high > self.low else 1

    def _places(self, numbers: Array, low: float, high: float, bins: int) -> Array:
        """In which interval each number lies."""
        if self._integral():
            found = numbers - low
        else:
            width = high / bins - low / bins  # (high - low may overflow)
            found = numbers / width - low / width if width else np.zeros_like(numbers)
        # A value that another thread has just written may lie outside.
        places: Array = np.nan_to_num(found).clip(0, bins - 1).astype(np.int64)
        return places
