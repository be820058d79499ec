"""An inspection as HTML: panels side by side on a wide page, one below the other on a phone."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import replace

from antorcha.inspector import theme
from antorcha.inspector.forms import escaped
from antorcha.inspector.numbers import rounded
from antorcha.inspector.reading import Elements
from antorcha.inspector.tensor import draw_memory, draw_values
from antorcha.inspector.tensor import rows as said
from antorcha.inspector.tensor.facts import TensorFacts
from antorcha.inspector.tensor.grids import HeatMap, shortened
from antorcha.inspector.tensor.images import LARGEST, Image
from antorcha.inspector.tensor.svg import tag
from antorcha.inspector.tensor.values import describe
from antorcha.inspector.tensor.words import WordTable

_STYLE = (
    ".ant-inspect{border:1px solid var(--ant-line);border-radius:6px;padding:8px;"
    "max-width:1180px;box-sizing:border-box;overflow-wrap:anywhere}"
    ".ant-inspect *{box-sizing:border-box}"
    ".ant-head{display:flex;flex-wrap:wrap;gap:2px 12px;align-items:baseline;margin:0 2px 6px}"
    ".ant-head b{font-size:14px}"
    f".ant.ant-inspect .ant-printed{{font:12px/1.4 {theme.MONO};margin:0 2px 8px;padding:0;"
    "border:0;color:inherit;background:none;white-space:pre;overflow:auto;max-height:420px}"
    ".ant-panels{columns:342px 3;column-gap:8px}"
    ".ant-panel{background:var(--ant-panel);border-radius:4px;padding:8px 10px;margin:0 0 8px;"
    "break-inside:avoid}"
    ".ant-panel h4{margin:0 0 4px;font-size:12px;font-weight:600;color:var(--ant-accent)}"
    ".ant-panel p{margin:0 0 6px}"
    # (notebooks have rules for tables and lists that outweigh those of one or two classes)
    ".ant.ant-inspect .ant-facts table{border-collapse:collapse;margin:0;font-size:12px;border:0}"
    ".ant.ant-inspect .ant-facts td,.ant.ant-inspect .ant-facts th{padding:1px 10px 1px 0;"
    "text-align:left;vertical-align:top;font-weight:400;border:0;background:none;color:inherit;"
    "white-space:normal}"
    ".ant.ant-inspect .ant-facts th{color:var(--ant-muted);white-space:nowrap}"
    ".ant.ant-inspect .ant-facts tr{background:none}"
    ".ant-inspect td code{margin-right:6px;padding:0;color:inherit;background:none}"
    ".ant-inspect td span{color:var(--ant-muted)}"
    ".ant-maps{display:flex;flex-wrap:wrap;gap:8px;margin:4px 0}"
    ".ant-maps figure{margin:0}.ant-maps figcaption{font-size:11px}"
    ".ant.ant-inspect .ant-numbers{display:grid;grid-template-columns:repeat(4,1fr);gap:2px 8px;"
    "margin:0 0 6px}"
    ".ant.ant-inspect .ant-numbers dt{color:var(--ant-muted);font-size:11px}"
    ".ant.ant-inspect .ant-numbers dd{font-size:12px}"
    ".ant.ant-inspect .ant-numbers :is(dt,dd){margin:0;padding:0;float:none;width:auto;"
    "font-weight:400}"
    ".ant-image{display:block;image-rendering:pixelated;max-width:100%;"
    "border:1px solid var(--ant-line)}"
)
_BLANK = "\N{NO-BREAK SPACE}"


def page(facts: TensorFacts, words: WordTable, brief: bool, printed: str = "") -> str:
    """The whole ``<div>``; `brief`: only the headline, the text `printed` and the values."""
    if brief:
        shorter = replace(facts, heat=facts.heat and shortened(facts.heat))
        inside = [tag("pre", escaped(printed), class_="ant-printed")] if printed else []
        inside.append(_brief(shorter, words))
    else:
        place = panel(words("Place"), fact_table(said.rows(facts, words)))
        inside = ['<div class="ant-panels">', place, _memory(facts, words)]
        inside += [*_values(facts, words), "</div>"]
    styles = draw_memory.STYLE, draw_values.STYLE
    place = f'data-strides="{",".join(map(str, facts.strides))}" data-offset="{facts.offset}"'
    return frame(_head(facts), inside, words.lang, *styles, place=place)


def frame(head: str, inside: Iterable[str], lang: str, *styles: str, place: str = "") -> str:
    """The ``<div>`` around a headline and what is below it, with its style; `place` says where the
    tensor lies, for a script that lights its elements."""
    # (joined once: heat maps are long, and an inspection is to take little memory)
    opening = f'<div class="ant ant-inspect" lang="{lang}"{" " * bool(place)}{place}>'
    return "".join([opening, theme.style(_STYLE, *styles), head, *inside, "</div>"])


def panels(
    parts: Sequence[tuple[str, Elements, HeatMap]],
    last: str,
    words: WordTable,
    more: tuple[str, str] = ("", ""),
) -> str:
    """Heat maps under their headings and, under the heading `last`, the histogram of the first;
    before them `more`, a heading and a picture."""
    inside = ['<div class="ant-panels">']
    inside += [panel(*more)] if more[1] else []
    inside += [panel(heading, draw_values.draw_heat(heat, words)) for heading, _, heat in parts]
    histogram = describe(parts[0][1]).histogram if parts else None
    if histogram is not None:
        inside.append(panel(last, draw_values.draw_histogram(histogram, words)))
    return frame("", [*inside, "</div>"], words.lang, draw_values.STYLE)


def headline(head: str, rest: str, *more: str) -> str:
    """The first line: what it is, the facts that one wants first, and lesser ones."""
    parts = [tag("b", escaped(head), class_="mono"), tag("span", escaped(rest), class_="mono")]
    parts += [tag("span", escaped(each), class_="mono muted") for each in more]
    return tag("div", "".join(parts), class_="ant-head")


def _head(facts: TensorFacts) -> str:
    autograd = facts.autograd
    if autograd.grad_fn:
        return headline(*said.title(facts), f"grad_fn={autograd.grad_fn}")
    return headline(*said.title(facts), *["requires_grad"] * autograd.requires_grad)


def panel(heading: str, content: str) -> str:
    """A box of the page with its heading."""
    return tag("section", tag("h4", escaped(heading)) + content, class_="ant-panel")


def fact_table(rows: Iterable[said.FactRow]) -> str:
    """Facts below each other: label, value, what it means."""
    lines = [
        tag("tr", tag("th", escaped(row.label) or _BLANK, scope="row")
            + tag("td", f"{tag('code', escaped(row.value))} {tag('span', escaped(row.note))}"))
        for row in rows
    ]  # fmt: skip
    return tag("div", tag("table", "".join(lines)), class_="ant-facts")


def _memory(facts: TensorFacts, words: WordTable) -> str:
    drawn = facts.memory
    if drawn is None or facts.why_no_values == "meta":
        return ""
    text = tag("p", escaped(said.memory_text(facts, drawn, words)))
    return panel(words("Memory"), text + (draw_memory.draw(facts, drawn, words)
                                           if drawn.cells else ""))  # fmt: skip


def _values(facts: TensorFacts, words: WordTable) -> list[str]:
    why = said.why_no_values(facts, words)
    if why:
        return [panel(words("Values"), tag("p", escaped(why)))]
    numbers, heat = facts.statistics, facts.heat
    assert numbers is not None
    assert heat is not None
    part = said.shown_part(facts, words)
    shown = tag("p", escaped(part), class_="muted") if part else ""
    panels = []
    if facts.image is not None:
        panels.append(panel(words("Image"), _image(facts.image, words)))
    panels.append(panel(words("Values"), shown + draw_values.draw_heat(heat, words)))
    pairs = [tag("div", tag("dt", escaped(label)) + tag("dd", escaped(number), class_="mono"))
             for label, number in said.counted(numbers, words)]  # fmt: skip
    content = tag("p", escaped(said.of_what(numbers, words)))
    content += tag("dl", "".join(pairs), class_="ant-numbers")
    if numbers.histogram is not None:
        content += draw_values.draw_histogram(numbers.histogram, words)
    return [*panels, panel(words("Histogram"), content)]


def _brief(facts: TensorFacts, words: WordTable) -> str:
    why = said.why_no_values(facts, words)
    if why:
        return tag("p", escaped(why), class_="muted")
    assert facts.heat is not None
    part = said.shown_part(facts, words)
    shown = tag("div", escaped(part), class_="muted") if part else ""
    image = _image(facts.image, words) if facts.image is not None else ""
    return image or draw_values.draw_heat(facts.heat, words) + shown


def _image(image: Image, words: WordTable) -> str:
    """The picture, small ones enlarged by a whole number."""
    times = max(min(LARGEST * 2 // max(image.height, image.width), 8), 1)
    data = base64.b64encode(image.png).decode("ascii")
    picture = tag(
        "img", src=f"data:image/png;base64,{data}", alt=words("image label"), class_="ant-image",
        width=image.width * times, height=image.height * times,
        style=f"height:auto;aspect-ratio:{image.width}/{image.height}",
    )  # fmt: skip
    size = words("pixels", width=image.width * image.step, height=image.height * image.step)
    size += words("pixel step", step=image.step) if image.step > 1 else ""
    size += words("of batch", index=image.of_batch) if image.of_batch is not None else ""
    if image.stretched is not None:
        low, high = map(rounded, image.stretched)
        size += words("stretched", low=low, high=high)
    return picture + tag("div", escaped(size), class_="muted")
