"""The picture of a function of one real number, with its derivative dashed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from antorcha.inspector.tensor import svg
from antorcha.lab.curves import round_marks
from antorcha.lang import expr as E
from antorcha.lang.expr import Expr
from antorcha.ops.kinds.record import Op
from tools.reference.formulas import Formula

WIDTH, HEIGHT, EDGE = 340, 220, 22
SPAN = 5.0  # the horizontal axis goes from -SPAN to SPAN
TALLEST = 5.0  # values beyond it are not drawn
POINTS = 281
Line = list[tuple[float, float]]


def plot(op: Op, formula: Formula) -> str:
    """The picture as SVG; "" where the function is none of one real number."""
    expr = formula.results[0]
    alone = len(formula.names) == 1 and len(formula.results) == 1
    if not alone or expr.dtype.kind != "f" or not any(e.op == "input" for e in E.walk(expr)):
        return ""
    numbers = {p.name: p.default for p in op.signature.params if _is_number(p.default)}
    xs = np.linspace(-SPAN, SPAN, POINTS)
    ys = _values(expr, xs, numbers)
    if ys is None or not np.isfinite(ys).any():
        return ""
    slope = formula.gradients[0]
    slopes = None if slope is None else _slopes(slope, xs, ys, numbers)
    return _drawn(op.name, xs, ys, slopes)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _values(expr: Expr, xs: Any, numbers: dict[str, Any]) -> Any:
    needed = {str(e.payload) for e in E.walk(expr) if e.op == "scalar"}
    if not needed <= numbers.keys():
        return None
    return np.broadcast_to(np.asarray(E.evaluate(expr, [xs], numbers)), xs.shape)


def _slopes(slope: Expr, xs: Any, ys: Any, numbers: dict[str, Any]) -> Any:
    """The derivative: the gradient where that of the result is 1."""
    values = E.evaluate(slope, [xs, ys, np.ones_like(xs)], numbers)
    return np.broadcast_to(np.asarray(values), xs.shape)


def _drawn(name: str, xs: Any, ys: Any, slopes: Any) -> str:
    seen = [v[np.isfinite(v) & (np.abs(v) <= TALLEST)] for v in (ys, slopes) if v is not None]
    every = np.concatenate([*seen, [0.0]])
    low, high = min(float(every.min()), -0.5), max(float(every.max()), 0.5)
    low, high = low - 0.06 * (high - low), high + 0.06 * (high - low)
    frame = _Frame(low, high)
    parts = [*frame.grid()]
    if slopes is not None and np.isfinite(slopes).any():
        parts += frame.line(xs, slopes, "slope")
    parts += frame.line(xs, ys, "value")
    label = f"{name} from {-SPAN:g} to {SPAN:g}" + (", and its derivative" if len(seen) > 1 else "")
    return svg.drawing("".join(parts), WIDTH, HEIGHT, label, "ref-plot")


class _Frame:
    """From numbers to places on the picture."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def x(self, value: float) -> float:
        return EDGE + (value + SPAN) / (2 * SPAN) * (WIDTH - 2 * EDGE)

    def y(self, value: float) -> float:
        return HEIGHT - EDGE - (value - self.low) / (self.high - self.low) * (HEIGHT - 2 * EDGE)

    def grid(self) -> Iterator[str]:
        """Axes through zero, and round marks with their numbers."""
        left, right, top, bottom = EDGE, WIDTH - EDGE, EDGE, HEIGHT - EDGE
        for mark in round_marks(-SPAN, SPAN, 5):
            at = self.x(mark)
            kind = "axis" if mark == 0 else "grid"
            yield svg.tag("path", d=f"M{at:.1f},{top}V{bottom}", class_=kind)
            if mark:
                yield svg.text(f"{mark:g}", at, bottom + 14, text_anchor="middle")
        for mark in round_marks(self.low, self.high, 5):
            at = self.y(mark)
            kind = "axis" if mark == 0 else "grid"
            yield svg.tag("path", d=f"M{left},{at:.1f}H{right}", class_=kind)
            yield svg.text(f"{mark:g}", left - 4, at + 3, text_anchor="end")

    def line(self, xs: Sequence[float], ys: Sequence[float], kind: str) -> Iterator[str]:
        """A curve, in pieces where it leaves the picture, has no value, or jumps."""
        for piece in self._pieces(xs, ys):
            points = " ".join([f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in piece])
            yield svg.tag("polyline", points=points, class_=kind)

    def _pieces(self, xs: Sequence[float], ys: Sequence[float]) -> Iterator[Line]:
        piece: Line = []
        tall = (self.high - self.low) / 8  # a step as high as this between two points is a jump
        for x, y in zip(map(float, xs), map(float, ys), strict=True):
            inside = math.isfinite(y) and self.low <= y <= self.high
            if not inside or (piece and abs(y - piece[-1][1]) > tall):
                if len(piece) > 1:
                    yield piece
                piece = []
            if inside:
                piece.append((x, y))
        if len(piece) > 1:
            yield piece
