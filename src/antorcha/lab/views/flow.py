"""The flow of a model: each layer, the shape of what it makes, and that as sheets; its weights."""

from __future__ import annotations

import math
from collections.abc import Iterator

from antorcha.core.lazy import Array, np
from antorcha.inspector.forms import escaped
from antorcha.inspector.numbers import grouped
from antorcha.inspector.reading import Elements
from antorcha.inspector.tensor import draw_values, html
from antorcha.inspector.tensor.grids import heat_map
from antorcha.inspector.tensor.words import WordTable
from antorcha.lab.hints import told
from antorcha.lab.views import sheets
from antorcha.lab.views.forward import LayerPass, ModelPass
from antorcha.lab.words import LabWords
from antorcha.runtime.tensor import Tensor

NUMBERED = 400  # weights that are shown with their numbers
KERNELS = 256  # kernels that are drawn of a layer


def draw(done: ModelPass, words: LabWords, opened: tuple[int, int]) -> str:
    """The pass as HTML.

    Args:
        done: the pass.
        words: the page's.
        opened: the layer whose weights are shown, by number from 0, and the sheet (-1: all).
    """
    rows = [_row(words("flow_input"), done.given, words)]
    for number, layer in enumerate(done.layers):
        rows.append(_layer(number, layer, words, opened, _image_before(done, number)))
    last = done.layers[-1].made if done.layers else None
    if done.out is not None and not _same(done.out, last):
        rows.append(_row(words("flow_output"), done.out, words))
    return f'<ol class="lab-flow">{"".join(rows)}</ol>'


def _same(out: Array, last: Array | None) -> bool:
    return last is not None and out.shape == last.shape and np.array_equal(out, last)


def _row(title: str, made: Array | None, words: LabWords) -> str:
    """What goes in, or comes out."""
    if made is None:
        return ""
    picture = _picture(made, title, words, None, -1)
    return (
        f'<li class="lab-layer"><div class="lab-layer-head"><b>{escaped(title)}</b>'
        f'<span class="lab-shape">{_shape(made.shape)}</span></div>{picture}</li>'
    )


def _layer(
    number: int,
    layer: LayerPass,
    words: LabWords,
    opened: tuple[int, int],
    before: tuple[int, ...] | None,
) -> str:
    kind = type(layer.module).__name__
    title = f"{layer.name} {kind}" if layer.name else kind
    count = sum([each._layout.numel for each in layer.module.parameters()])
    facts = words("flow_parameters", grouped(count)) if count else ""
    is_open = opened[0] == number and bool(count)
    head = (
        f'<b>{escaped(title)}</b><span class="lab-shape">{_shape(layer.shape)}</span>'
        f'<span class="lab-facts">{escaped(facts)}</span>'
    )
    if count:
        head = (
            f'<button type="button" class="lab-layer-head" data-layer="{number}" '
            f'aria-expanded="{str(is_open).lower()}" '
            f'title="{escaped(words("flow_open"))}">{head}</button>'
        )
    else:
        head = f'<div class="lab-layer-head">{head}</div>'
    picture, weights = "", ""
    if layer.made is not None:
        chosen = opened[1] if is_open else -1
        picture = _picture(layer.made, title, words, number if count else None, chosen)
    if is_open:
        weights = f'<div class="lab-weights">{_weights(layer, words, opened[1], before)}</div>'
    return f'<li class="lab-layer">{head}{picture}{weights}</li>'


def _picture(made: Array, title: str, words: LabWords, number: int | None, chosen: int) -> str:
    """The sheets of an array; those of a layer with weights are buttons (`number`: its own)."""
    every = sheets.as_sheets(made)
    label = words("flow_sheets", title, " × ".join([str(size) for size in made.shape]))
    few = len(every) <= 2
    picture, places = sheets.draw(every, label, width=220.0 if few else 420.0)
    buttons = ""
    if number is not None and len(every) > 1:
        buttons = "".join([
            f'<button type="button" class="lab-sheet{" lab-sheet-open" * (k == chosen)}" '
            f'tabindex="-1" data-layer="{number}" data-sheet="{k}" '
            f'style="left:{x:.2f}%;top:{y:.2f}%;width:{wide:.2f}%;height:{high:.2f}%" '
            f'aria-label="{escaped(words("flow_sheet", k))}" '
            f'title="{escaped(words("flow_sheet", k))}"></button>'
            for k, (x, y, wide, high) in enumerate(places)
        ])  # fmt: skip
    more = ""
    if len(every) > sheets.SHEETS:
        text = escaped(words("flow_more", sheets.SHEETS, len(every)))
        more = f'<p class="lab-caption">{text}</p>'
    return (
        f'<div class="lab-sheets"><div class="lab-sheets-all">{picture}{buttons}</div></div>{more}'
    )


def _shape(shape: tuple[int, ...]) -> str:
    return escaped("×".join([str(size) for size in shape]) or "()")


def _image_before(done: ModelPass, number: int) -> tuple[int, ...] | None:
    """The shape (channels, rows, columns) that a layer's flat input had before it was flat."""
    layer = done.layers[number]
    if not layer.given or not layer.given[0]:
        return None
    size = layer.given[0][-1]
    shapes = [each.shape for each in done.layers[:number]]
    if done.given is not None:
        shapes.insert(0, done.given.shape)
    for shape in reversed(shapes):
        inner = shape[-3:]
        if len(inner) >= 2 and math.prod(inner) == size and min(inner[-2:]) > 1:
            return (*(1,) * (3 - len(inner)), *inner)
        if len(shape) >= 4:
            break
    side = math.isqrt(size)
    return (1, side, side) if side * side == size >= 64 and number == 0 else None


# ---- weights ------------------------------------------------------------------------------------


def _weights(layer: LayerPass, words: LabWords, chosen: int, before: tuple[int, ...] | None) -> str:
    """The parameters of a layer, or what of them makes one sheet."""
    parts: list[str] = []
    for name, parameter in layer.module.named_parameters():
        parts += _parameter(name, parameter, words, chosen, before)
    return "".join(parts)


def _parameter(
    name: str, parameter: Tensor, words: LabWords, chosen: int, before: tuple[int, ...] | None
) -> Iterator[str]:
    shape = tuple(parameter._layout.shape)
    heading = f"{name}  {told(parameter)}"
    if 0 <= chosen < (shape[0] if shape else 0):
        parameter, shape = parameter.detach()[chosen], shape[1:]
        heading = f"{name}[{chosen}]  {told(parameter)}"
    yield f"<h4>{escaped(heading)}</h4>"
    elements = Elements(parameter)
    if elements.why_not:
        return
    if parameter._layout.numel <= NUMBERED and (chosen >= 0 or len(shape) < 3):
        heat = heat_map(elements, NUMBERED, 16)
        numbers = draw_values.draw_heat(heat, WordTable(words.lang))
        yield html.frame("", [numbers], words.lang, draw_values.STYLE)
        return
    values = elements.thinned([1] * len(shape))
    kernels, per_line = _kernels(values, before if name.endswith("weight") else None)
    picture, _ = sheets.draw(kernels, heading, width=420.0, per_line=per_line, most=KERNELS)
    yield f'<div class="lab-sheets">{picture}</div>'


def _kernels(values: Array, before: tuple[int, ...] | None) -> tuple[Array, int]:
    """Weights as sheets, and how many stand beside each other: a line for each output."""
    if values.ndim == 2 and before is not None and values.shape[1] == math.prod(before):
        values = values.reshape(values.shape[0], *before)
    elif values.ndim == 1 and before is not None and values.size == math.prod(before):
        values = values.reshape(1, *before)
    if values.ndim == 4:
        return values.reshape(-1, *values.shape[2:]), _beside(values.shape[1])
    if values.ndim == 3:
        return values, _beside(len(values)) if len(values) > 1 else 1
    return sheets.as_sheets(values), 1


def _beside(count: int) -> int:
    return count if 1 < count <= 16 else 8
