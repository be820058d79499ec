"""The loss curves, drawn as SVG.

A training that diverges is drawn, too: where a loss is NaN or infinite its line has a gap, and a
mark says so. Curves are told apart by dashes as well as by colours, and named in a legend.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from antorcha.inspector.forms import escaped

WIDTH, HEIGHT = 480, 240
LEFT, RIGHT, TOP, BOTTOM = 76, 12, 12, 34  # margins
LEGEND = 20  # height of a row of the legend, where there is more than one curve
IN_ROW = 3  # curves named in a row of it
POINTS = 60  # places of a curve that tell their value to who points there
LINES = (
    ("var(--ant-accent)", ""),
    ("var(--ant-negative)", "7 4"),
    ("var(--ant-nan)", "2 3"),
    ("var(--ant-good)", "9 3 2 3"),
    ("var(--ant-fg)", "14 3"),
    ("var(--ant-bad)", "4 2 1 2"),
)
"""The colour and the dashes of each curve; so many are drawn."""
GAPS = 6  # gaps marked in a curve; more would hide it
LARGEST = 1e300  # larger numbers are drawn here, so that differences stay finite


def draw(
    curves: dict[str, dict[str, Any]],
    label: str,
    step_word: str,
    value_words: tuple[str, str] = ("", ""),
    number: Callable[[str], str] = str,
    grey: dict[str, dict[str, Any]] | None = None,
    mark: tuple[str, int] | None = None,
) -> str:
    """One picture of all curves; logarithmic where the values span more than a factor of fifty.

    Args:
        curves: name -> values (or the texts "nan", "inf", "-inf"), the steps they are of, and the
            count of all steps.
        label: what the picture says to those who do not see it.
        step_word: the horizontal axis' name.
        value_words: the vertical axis' name, and that of a logarithmic one.
        number: how the language writes a number.
        grey: curves of another run, to compare with.
        mark: a curve, and a step of it to mark.
    """
    shown = {
        name: [*zip(curve["steps"], [float(value) for value in curve["values"]])]
        for name, curve in list(curves.items())[: len(LINES)]
    }
    if not any(shown.values()):
        return ""
    others = [
        [*zip(curve["steps"], [float(value) for value in curve["values"]])]
        for curve in list((grey or {}).values())[: len(LINES)]
    ]
    every = [*shown.values(), *others]
    scale = _Scale([value for points in every for _, value in points if math.isfinite(value)])
    last = [curves[name]["count"] - 1 for name in shown]
    steps = max(*last, *[points[-1][0] for points in others if points], 1)
    parts = [*_grid(scale, steps, step_word, value_words[scale.log], number)]
    parts += [_grey(points, scale, steps) for points in others]
    for place, (name, points) in enumerate(shown.items()):
        colour, dashes = LINES[place]
        parts += _line(points, scale, steps, f'stroke="{colour}"{_dashed(dashes)}', name)
        parts += _gaps(points, steps, place, name)
        parts += _told(points, scale, steps, name, step_word, number)
    if mark is not None and mark[0] in shown:
        parts.append(_marker(shown[mark[0]], mark[1], scale, steps))
    above = LEGEND * math.ceil(len(shown) / IN_ROW) if len(shown) > 1 else 0
    if above:
        parts += _legend(list(shown), above)
    return (
        f'<svg class="ant lab-curve" viewBox="0 {-above} {WIDTH} {HEIGHT + above}" role="img" '
        f'aria-label="{escaped(label)}">{"".join(parts)}</svg>'
    )


def loss_told(name: str, curve: dict[str, Any], words: Any) -> str:
    """How many steps a loss has, and its last value."""
    last = words.number(f"{float(curve['values'][-1]):.4g}")
    told: str = words("loss_curve", name, curve["count"], last)
    return told


def losses_told(losses: dict[str, Any], words: Any) -> tuple[str, str]:
    """The picture of some losses, and what it shows in words; both empty where there are none."""
    label = "; ".join([loss_told(name, curve, words) for name, curve in losses.items()])
    axis = words("loss_axis"), words("loss_axis_log")
    return draw(losses, label, words("step"), axis, words.number) if losses else "", label


def first_gap(curve: dict[str, Any]) -> int | None:
    """The first step whose value is NaN or infinite; None where all are numbers.

    >>> first_gap({"values": [1.0, "inf", "nan"], "steps": [0, 8, 16], "count": 20})
    8
    """
    found = zip(curve["steps"], curve["values"])
    return next((step for step, value in found if not math.isfinite(float(value))), None)


class _Scale:
    """From values to heights."""

    def __init__(self, finite: list[float]) -> None:
        self.empty = not finite
        low, high = self._bounded(min(finite or [0.0])), self._bounded(max(finite or [1.0]))
        self.log = low > 0 and high / 50 > low
        self.low, self.high = self._in(low), self._in(high)
        if self.high - self.low <= max(abs(self.high) * 1e-12, 1 / LARGEST):  # flat
            spread = abs(self.low) * 0.1 or 1.0
            self.low, self.high = self.low - spread, self.high + spread

    @staticmethod
    def _bounded(value: float) -> float:
        return min(max(value, -LARGEST), LARGEST)

    def _in(self, value: float) -> float:
        value = self._bounded(value)
        return math.log10(value) if self.log else value

    def height(self, value: float) -> float:
        share = (self._in(value) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def marks(self) -> list[float]:
        """Round values to draw lines at."""
        if self.empty:
            return []
        if self.log and self.high - self.low >= 2:
            every = math.ceil((self.high - self.low) / 6)
            return [10.0**k for k in range(math.ceil(self.low), math.floor(self.high) + 1, every)]
        if self.log:  # 1, 2, 5, 10, 20, ...
            powers = range(math.floor(self.low), math.ceil(self.high) + 1)
            every_mark = [float(f"{k}e{power}") for power in powers for k in (1, 2, 5)]
            return [mark for mark in every_mark if self.low <= math.log10(mark) <= self.high]
        return round_marks(self.low, self.high)


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


def marked(value: float) -> str:
    """A mark's number, as short as it can be without being another one.

    >>> marked(0.2), marked(1000.0002), marked(1e-7)
    ('0.2', '1000.0002', '1e-07')
    """
    short = f"{value:g}"
    return short if float(short) == value else f"{value:.10g}"


def _grid(
    scale: _Scale, steps: int, step_word: str, value_word: str, number: Callable[[str], str]
) -> list[str]:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts = [
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})" '
        f'class="lab-mark">{escaped(value_word)}</text>',
        f'<path d="M{LEFT},{TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" '
        'stroke="var(--ant-muted)"/>',
    ]
    for mark in scale.marks():
        y = scale.height(mark)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
            'stroke="var(--ant-line)"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" class="lab-mark">'
            f"{number(marked(mark))}</text>"
        )
    parts += [
        f'<text x="{_across(mark, steps):.1f}" y="{HEIGHT - BOTTOM + 16}" '
        f'text-anchor="middle" class="lab-mark">{int(mark)}</text>'
        for mark in round_marks(0, steps, 4)
        if mark == int(mark)
    ]
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 4}" text-anchor="middle" '
        f'class="lab-mark">{escaped(step_word)}</text>'
    )
    return parts


def _told(
    points: Sequence[tuple[int, float]],
    scale: _Scale,
    steps: int,
    name: str,
    step_word: str,
    number: Callable[[str], str],
) -> Iterator[str]:
    """Places that say their step and value when somebody points at them."""
    for step, value in points[:: max(1, math.ceil(len(points) / POINTS))]:
        if math.isfinite(value):
            said = f"{name}: {number(f'{value:.4g}')} ({step_word} {step})"
            yield (
                f'<circle cx="{_across(step, steps):.1f}" cy="{scale.height(value):.1f}" r="5" '
                f'class="lab-point"><title>{escaped(said)}</title></circle>'
            )


def _grey(points: Sequence[tuple[int, float]], scale: _Scale, steps: int) -> str:
    """A curve of another run."""
    way = [f"{_across(step, steps):.1f},{scale.height(value):.1f}"
           for step, value in points if math.isfinite(value)]  # fmt: skip
    return f'<path d="M{" ".join(way)}" class="lab-curve-before"/>' if way else ""


def _marker(points: Sequence[tuple[int, float]], step: int, scale: _Scale, steps: int) -> str:
    """Where the film stands: a line, and a dot on the curve."""
    near = min(points, key=lambda point: abs(point[0] - step), default=(0, math.nan))
    x = _across(step, steps)
    dot = (
        f'<circle cx="{x:.1f}" cy="{scale.height(near[1]):.1f}" r="4"/>'
        if math.isfinite(near[1]) else ""
    )  # fmt: skip
    return f'<g class="lab-curve-mark"><path d="M{x:.1f},{TOP}V{HEIGHT - BOTTOM}"/>{dot}</g>'


def _dashed(dashes: str) -> str:
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _line(
    points: Sequence[tuple[int, float]], scale: _Scale, steps: int, stroke: str, name: str
) -> Iterator[str]:
    """The curve, in as many pieces as gaps leave it; a point alone is a dot."""
    title = f"<title>{escaped(name)}</title>"
    for is_finite, some in itertools.groupby(points, key=lambda point: math.isfinite(point[1])):
        if not is_finite:
            continue
        places = [(_across(step, steps), scale.height(value)) for step, value in some]
        if len(places) == 1:
            x, y = places[0]
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="none" {stroke}>{title}</circle>'
        else:
            way = " ".join([f"{x:.1f},{y:.1f}" for x, y in places])
            yield (
                f'<polyline points="{way}" fill="none" {stroke} stroke-width="1.8" '
                f'stroke-linejoin="round">{title}</polyline>'
            )


def _gaps(points: Sequence[tuple[int, float]], steps: int, place: int, name: str) -> Iterator[str]:
    """A mark where each run of values that are no numbers begins; each curve's at its own height,
    so that they can stand at one step."""
    count, colour = 0, LINES[place][0]
    for word, some in itertools.groupby(points, key=lambda point: _no_number(point[1])):
        if not word:
            continue
        step = next(some)[0]
        x = _across(step, steps)
        down = HEIGHT - BOTTOM - 15 * place if word == "-∞" else TOP + 15 * place
        anchor = "end" if x > WIDTH - 50 else "start"  # (on the right there is no line, mostly)
        yield (
            f'<g class="lab-curve-gap"><title>{escaped(name)}: {word} ({step})</title>'
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="{colour}" '
            'stroke-dasharray="1 3"/>'
            f'<path d="M{x - 4:.1f},{down - 4}l8,8m0,-8l-8,8" stroke="{colour}" '
            'stroke-width="1.8"/>'
            f'<text x="{x + (-8 if anchor == "end" else 8):.1f}" y="{down + 4}" '
            f'text-anchor="{anchor}" class="lab-mark">{word}</text></g>'
        )
        count += 1
        if count == GAPS:
            return


def _no_number(value: float) -> str:
    """What to write of a value that cannot be drawn; "" of others."""
    if math.isfinite(value):
        return ""
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def _legend(names: list[str], above: int) -> Iterator[str]:
    """Which line is which, in rows above the picture."""
    room = (WIDTH - LEFT - RIGHT) / min(len(names), IN_ROW)
    letters = int((room - 34) / 6)
    for place, (name, (colour, dashes)) in enumerate(zip(names, LINES)):
        x = LEFT + place % IN_ROW * room
        y = place // IN_ROW * LEGEND + 10 - above
        text = name if len(name) <= letters else name[: letters - 1] + "…"
        yield (
            f'<g class="lab-curve-legend"><title>{escaped(name)}</title>'
            f'<line x1="{x:.0f}" x2="{x + 26:.0f}" y1="{y - 4}" '
            f'y2="{y - 4}" stroke="{colour}" stroke-width="1.8"{_dashed(dashes)}/>'
            f'<text x="{x + 31:.0f}" y="{y}" class="lab-mark">'
            f"{escaped(text)}</text></g>"
        )
