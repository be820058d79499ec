"""What a network of two inputs says of every point of the plane, as a picture.

It is offered where it fits: a module whose first layer takes two numbers, and a tensor of points of
two numbers each in the program. One output colours by its sign and size, several by the largest.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

from antorcha.autograd import no_grad
from antorcha.core.lazy import Array, np
from antorcha.func import functional_call
from antorcha.inspector.tensor import draw_values, svg
from antorcha.nn.linear import Linear
from antorcha.nn.module import Module
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.interop import from_numpy

CELLS = 48  # on a side
SIZE = 300.0  # of the picture
POINTS = 300  # drawn at most
COLOURS = ("negative", "positive", "good", "nan", "accent", "bad")  # of the classes, in turn


class Plane:
    """A module of two inputs in a program, and the points that it is about."""

    def __init__(self, module: Module, points: Array, classes: Array | None) -> None:
        self.module = module
        every = max(-(-len(points) // POINTS), 1)
        self._points = points[::every]
        self._classes = classes[::every] if classes is not None else None
        low, high = points.min(0), points.max(0)
        margin = (high - low) * 0.08 + 1e-9
        self._low, self._high = low - margin, high + margin

    def draw(self, parameters: dict[str, Tensor], label: str) -> str:
        """The plane as the module sees it with these parameters, as SVG."""
        answers = self._answers(parameters)
        place = {"x": 0.0, "y": 0.0, "width": SIZE, "height": SIZE}
        pieces = []
        for colour, strength in _regions(answers):
            strength = strength.reshape(CELLS, CELLS)[::-1]  # (upwards is up)
            pieces.append(draw_values.dots(
                np.rint(150 * strength).astype(np.uint8), place, style=f"fill:var(--ant-{colour})",
            ))  # fmt: skip
        pieces += [self._dot(number) for number in range(len(self._points))]
        pieces.append(svg.tag("rect", class_="frame", **place))
        return svg.drawing("".join(pieces), SIZE + 1, SIZE + 1, label)

    def _answers(self, parameters: dict[str, Tensor]) -> Array:
        """What the module gives for each cell of the plane: a row of outputs."""
        across = np.linspace(self._low[0], self._high[0], CELLS)
        up = np.linspace(self._low[1], self._high[1], CELLS)
        grid = np.stack(np.meshgrid(across, up), -1).reshape(-1, 2).astype(np.float32)
        modes = [(each, each.training) for each in self.module.modules()]
        try:
            self.module.eval()
            with no_grad(), contextlib.redirect_stdout(io.StringIO()):
                found = functional_call(self.module, parameters, (from_numpy(grid),))
        finally:
            for each, training in modes:
                each.training = training
        answers: Array = found.detach().numpy().reshape(CELLS * CELLS, -1)
        return answers

    def _dot(self, number: int) -> str:
        share = (self._points[number] - self._low) / (self._high - self._low)
        kind = 0 if self._classes is None else int(self._classes[number])
        colour = "fg" if self._classes is None else COLOURS[kind % len(COLOURS)]
        return svg.tag(
            "circle", cx=float(share[0] * SIZE), cy=float((1 - share[1]) * SIZE), r=3,
            style=f"fill:var(--ant-{colour});stroke:var(--ant-bg)",
        )  # fmt: skip


def find(namespace: dict[str, Any]) -> tuple[str, Plane] | None:
    """The module of two inputs of a program, by name, if there are one and points for it."""
    return next(iter(every(namespace).items()), None)


def every(namespace: dict[str, Any]) -> dict[str, Plane]:
    """All modules of two inputs of a program, by name, if there are points for them."""
    modules = [(name, value) for name, value in list(namespace.items())
               if isinstance(value, Module) and not name.startswith("__")]  # fmt: skip
    first = [(name, each, next((inner for inner in each.modules() if isinstance(inner, Linear)),
                               None)) for name, each in modules]  # fmt: skip
    fitting = [(name, each) for name, each, layer in first if layer and layer.in_features == 2]
    points = _points(namespace) if fitting else None
    if points is None:
        return {}
    classes = _classes(namespace, len(points))
    return {name: Plane(module, points, classes) for name, module in fitting}


def _regions(answers: Array) -> list[tuple[str, Array]]:
    """Colours, and how strong each is in each cell, from 0 to 1."""
    answers = np.nan_to_num(answers.astype(np.float64))
    if answers.shape[1] == 1:
        sure = np.abs(np.tanh(answers[:, 0]))
        return [("positive", np.where(answers[:, 0] > 0, sure, 0)),
                ("negative", np.where(answers[:, 0] < 0, sure, 0))]  # fmt: skip
    largest = answers.argmax(1)
    return [(COLOURS[kind % len(COLOURS)], (largest == kind) * 0.7)
            for kind in range(min(answers.shape[1], 2 * len(COLOURS)))]  # fmt: skip


def _points(namespace: dict[str, Any]) -> Array | None:
    for value in list(namespace.values()):
        if isinstance(value, Tensor) and not value.requires_grad:
            shape, kind = value._layout.shape, value._layout.dtype.kind
            if len(shape) == 2 and shape[1] == 2 and shape[0] > 2 and kind == "f":
                found: Array = value.detach().numpy().astype(np.float64)
                return found if np.isfinite(found).all() else None
    return None


def _classes(namespace: dict[str, Any], count: int) -> Array | None:
    """What each point is said to be: whole numbers, one for each."""
    for value in list(namespace.values()):
        if isinstance(value, Tensor) and value._layout.numel == count and not value.requires_grad:
            found: Array = value.detach().numpy().reshape(-1)
            if found.dtype.kind in "iub" or np.isin(found, (0.0, 1.0)).all():
                return found.astype(np.int64)
    return None
