"""What a model reads in a drawing: the drawing becomes a picture such as those it was trained on.

The program's own pictures say how: their size, which value is paper and which is ink, and how large
what is drawn stands in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from antorcha.core.lazy import Array, np
from antorcha.data.digits import RADIUS, SPAN, PenStroke, paint
from antorcha.inspector.forms import escaped
from antorcha.inspector.reading import Elements
from antorcha.lab.views import inputs, sheets
from antorcha.lab.views.forward import alone, values_of
from antorcha.lab.words import LabWords
from antorcha.nn.conv import _ConvNd
from antorcha.nn.linear import Linear
from antorcha.nn.module import Module
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.interop import from_numpy

LEAST, LARGEST = 8, 64  # rows of a picture
CLASSES = 100  # outputs at most
SHOWN = 10  # of them
SAMPLE = 64  # pictures that are looked at
_USUAL = 0.81  # of the side of a picture of `strokes` that the ink takes


def find(module: Module, names: dict[str, Any]) -> str | None:
    """The name of the program's pictures that this model reads, if it has some."""
    layers = [each for each in module.modules() if isinstance(each, (Linear, _ConvNd))]
    last = layers[-1] if layers else None
    if not isinstance(last, Linear) or not 2 <= last.out_features <= CLASSES:
        return None
    for name in inputs.fitting(module, names):
        if side(names[name]._layout) and _has_paper(names[name]):
            return name
    return None


def side(layout: Layout) -> int:
    """Rows (and columns) of the pictures that a tensor holds; 0 where it holds none."""
    shape = tuple(layout.shape)
    if layout.dtype.kind != "f":
        return 0
    if (len(shape) == 4 and shape[1] in (1, 3)) or len(shape) == 3:
        rows = shape[-1] if shape[-1] == shape[-2] else 0
    else:
        rows = math.isqrt(shape[-1]) if len(shape) == 2 else 0
        rows = rows if rows * rows == shape[-1] else 0
    return rows if LEAST <= rows <= LARGEST else 0


def _some(tensor: Tensor) -> Array:
    """Some of the pictures, (pictures, rows, columns)."""
    layout = tensor._layout
    steps = [-(-layout.shape[0] // SAMPLE), *[1] * (layout.ndim - 1)]
    values: Array = Elements(tensor).thinned(steps).astype(np.float64)
    rows = side(layout)
    values = values[:, 0] if values.ndim == 4 else values
    return values.reshape(-1, rows, rows)


def _has_paper(tensor: Tensor) -> bool:
    """Do the pictures have much of one value, as paper has?"""
    if Elements(tensor).why_not:
        return False
    some = _some(tensor)
    edge = np.concatenate([some[:, 0].ravel(), some[:, -1].ravel()])
    return bool(np.isfinite(some).all() and (edge == np.median(edge)).mean() > 0.4)


class PadReader:
    """Draws what is drawn as the model knows it, and asks the model.

    Args:
        module: the model.
        name: of the program's pictures.
        names: of the program.
    """

    def __init__(self, module: Module, name: str, names: dict[str, Any]) -> None:
        self.module = module
        tensor = names[name]
        self._shape = (1, *tensor._layout.shape[1:])
        self._dtype = tensor._layout.dtype.np
        self.rows = side(tensor._layout)
        some = _some(tensor)
        edge = np.concatenate([some[:, 0].ravel(), some[:, -1].ravel()])
        self._paper = float(np.median(edge))
        low, high = np.percentile(some, (0.5, 99.5))
        self._ink = float(max(low, high, key=lambda end: abs(end - self._paper)))
        self._span = self._measure(some)

    def _measure(self, some: Array) -> float:
        """How much of a side the pen's way takes in the program's pictures."""
        inked = np.abs(some - self._paper) > 0.5 * abs(self._ink - self._paper)
        high, wide = inked.any(2).sum(1), inked.any(1).sum(1)
        found = float(np.median(np.maximum(high, wide))) / self.rows
        if abs(found - _USUAL) < 0.07:
            return SPAN
        return min(max(found - 2 * RADIUS + 0.03, 0.4), 0.95)

    def picture(self, drawing: list[PenStroke]) -> Array:
        """The drawing as an input of the model."""
        ink = paint(drawing, self.rows, span=self._span)
        values = self._paper + ink * (self._ink - self._paper)
        channels = self._shape[1] if len(self._shape) == 4 else 1
        whole = np.broadcast_to(values, (channels, *values.shape)).reshape(self._shape)
        return whole.astype(self._dtype)

    def shares(self, given: Array) -> Array | None:
        """What the model says of a picture: a share for each class."""
        with alone(self.module):
            made = values_of(self.module(from_numpy(given)))
        if made is None or not 2 <= made.size <= CLASSES:
            return None
        scores = made.reshape(-1).astype(np.float64)
        if (scores >= 0).all() and abs(scores.sum() - 1) < 1e-3:
            return scores
        powers = np.exp(scores - scores.max())
        shares: Array = powers / powers.sum()
        return shares

    def read(
        self, drawing: list[PenStroke], texts: Callable[[int], list[str]], words: LabWords
    ) -> dict[str, Any]:
        """The answer as HTML, and in a sentence; `texts` gives the names of so many classes."""
        given = self.picture(drawing)
        shares = self.shares(given) if drawing else None
        seen = given.reshape(-1, self.rows, self.rows)[:1] - self._paper
        picture, _ = sheets.draw(seen, words("pad_seen"), width=112.0)
        html = f'<figure class="lab-seen">{picture}<figcaption>{escaped(words("pad_seen"))}'
        html += "</figcaption></figure>"
        if shares is None:
            empty = escaped(words("pad_empty" if not drawing else "pad_none"))
            return {"html": f'{html}<p class="lab-empty">{empty}</p>', "said": ""}
        names = texts(len(shares)) or [str(k) for k in range(len(shares))]
        best = int(shares.argmax())
        percent = words.number(f"{100 * shares[best]:.0f}")
        said = words("pad_read", names[best], percent)
        return {"html": html + _bars(shares, names, best, words), "said": said}


def _bars(shares: Array, names: list[str], best: int, words: LabWords) -> str:
    order = range(len(shares))
    if len(shares) > SHOWN:
        order = sorted([int(k) for k in np.argsort(-shares)[:SHOWN]])  # type: ignore[assignment]
    lines = [
        f"<li{' class=lab-best' * (k == best)}><b>{escaped(names[k])}</b>"
        f'<i style="width:{100 * shares[k]:.1f}%"></i>'
        f"<span>{escaped(words.number(f'{100 * shares[k]:.0f}'))} %</span></li>"
        for k in order
    ]
    return f'<ol class="lab-bars">{"".join(lines)}</ol>'
