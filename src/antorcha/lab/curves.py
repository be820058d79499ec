"""The loss curve, drawn as SVG."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

WIDTH, HEIGHT = 480, 220
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 34  # margins
COLOURS = ("var(--ant-accent)", "var(--ant-negative)", "var(--ant-nan)", "var(--ant-good)")


def draw(curves: dict[str, dict[str, Any]], label: str, step_word: str) -> str:
    """One picture of all curves; logarithmic where the values span more than a factor of fifty.

    Args:
        curves: name -> values, the steps they are of, and the count of all steps.
        label: what the picture says to those who do not see it.
        step_word: the horizontal axis' name.
    """
    shown = dict(list(curves.items())[: len(COLOURS)])
    finite = [v for curve in shown.values() for v in curve["values"] if math.isfinite(v)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    log = low > 0 and high / low > 50
    scale = _Scale(low, high, log)
    steps = max(max(curve["count"] for curve in shown.values()) - 1, 1)
    parts = [*_grid(scale, steps, step_word)]
    for colour, (name, curve) in zip(COLOURS, shown.items()):
        parts += _line(curve, scale, steps, colour, name)
    return (
        f'<svg class="ant lab-curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{html.escape(label)}">{"".join(parts)}</svg>'
    )


class _Scale:
    """From values to heights."""

    def __init__(self, low: float, high: float, log: bool) -> None:
        self.log = log
        self.low, self.high = self._in(low), self._in(high)
        if self.low == self.high:
            spread = abs(self.low) * 0.1 or 1.0
            self.low, self.high = self.low - spread, self.high + spread

    def _in(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def height(self, value: float) -> float:
        share = (self._in(value) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def marks(self) -> list[float]:
        """Round values to draw lines at."""
        if self.log and self.high - self.low >= 2:
            every = math.ceil((self.high - self.low) / 6)
            return [10.0**k for k in range(math.ceil(self.low), math.floor(self.high) + 1, every)]
        low, high = (10**self.low, 10**self.high) if self.log else (self.low, self.high)
        return round_marks(low, high)


def round_marks(low: float, high: float, most: int = 5) -> list[float]:
    """At most `most` + 1 round values between two.

    >>> round_marks(0, 1), round_marks(130, 998)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [200.0, 400.0, 600.0, 800.0])
    """
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [float(f"{k * step:.10g}") for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _across(step: float, steps: int) -> float:
    return LEFT + step / steps * (WIDTH - LEFT - RIGHT)


def _grid(scale: _Scale, steps: int, step_word: str) -> list[str]:
    parts = []
    for mark in scale.marks():
        y = scale.height(mark)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
            'stroke="var(--ant-line)"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" class="lab-mark">'
            f"{mark:g}</text>"
        )
    parts += [
        f'<text x="{_across(mark, steps):.1f}" y="{HEIGHT - BOTTOM + 16}" '
        f'text-anchor="middle" class="lab-mark">{int(mark)}</text>'
        for mark in round_marks(0, steps, 4)
        if mark == int(mark)
    ]
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 4}" text-anchor="middle" '
        f'class="lab-mark">{html.escape(step_word)}</text>'
    )
    return parts


def _line(
    curve: dict[str, Any], scale: _Scale, steps: int, colour: str, name: str
) -> Sequence[str]:
    points: list[str] = []
    lines: list[list[str]] = [points]
    for step, value in zip(curve["steps"], curve["values"]):
        if math.isfinite(value):
            x = _across(step, steps)
            points.append(f"{x:.1f},{scale.height(value):.1f}")
        elif points:  # a NaN or an infinity is a gap
            lines.append(points := [])
    title = f"<title>{html.escape(name)}</title>"
    return [
        f'<circle cx="{one[0].split(",")[0]}" cy="{one[0].split(",")[1]}" r="3" '
        f'fill="{colour}">{title}</circle>'
        if len(one) == 1
        else f'<polyline points="{" ".join(one)}" fill="none" stroke="{colour}" '
        f'stroke-width="1.8" stroke-linejoin="round">{title}</polyline>'
        for one in lines
        if one
    ]
