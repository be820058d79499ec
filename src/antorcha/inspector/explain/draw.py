"""Shapes as rows of boxes, the sizes that do not fit marked: as text, and as SVG."""

from __future__ import annotations

from dataclasses import dataclass, field

from antorcha.inspector import theme
from antorcha.inspector.forms import cut, escaped

_LABEL, _NOTE = 28, 44  # characters beside the boxes
_CELL, _ROW, _CHAR = 44.0, 34.0, 7.9


@dataclass
class ShapeRow:
    """One row: a label, a box for each size (None: a place without one), what is marked, a note."""

    label: str
    cells: list[str | None]
    marked: set[int] = field(default_factory=set)
    note: str = ""
    loud: bool = False  # is the note what does not fit?


@dataclass
class Picture:
    """Shapes one below the other, their boxes in columns: ``right``, the last ones aligned, or
    left. `joint` and `verdict`: two shapes side by side, with the operator between them and what
    is wrong with the sizes that meet there."""

    shapes: list[ShapeRow]
    right: bool = True
    joint: str = ""
    verdict: str = ""

    def columns(self) -> list[list[str | None]]:
        """The boxes of every row, as many in each."""
        count = max([len(shape.cells) for shape in self.shapes], default=0)
        rows = []
        for shape in self.shapes:
            empty: list[str | None] = [None] * (count - len(shape.cells))
            rows.append(empty + shape.cells if self.right else shape.cells + empty)
        return rows

    def shift(self, shape: ShapeRow) -> int:
        """How far to the right a row's boxes stand."""
        count = max([len(each.cells) for each in self.shapes], default=0)
        return count - len(shape.cells) if self.right else 0


# ------------------------------------------------------------------------------------------- text
Piece = tuple[str, str]
"""(style, text): style "plain", "dim" or "bad"."""


def text_lines(picture: Picture) -> list[list[Piece]]:
    """The picture as lines of styled text."""
    if picture.joint:
        return _beside(picture)
    rows = picture.columns()
    count = max(map(len, rows), default=0)
    widths = [max([len(row[k] or "") for row in rows]) + 2 for k in range(count)]
    wide = max([len(cut(shape.label, _LABEL)) for shape in picture.shapes], default=0)
    lines: list[list[Piece]] = []
    for shape, row in zip(picture.shapes, rows, strict=True):
        line: list[Piece] = [("plain", f"{cut(shape.label, _LABEL):<{wide}}  ")]
        shift = picture.shift(shape)
        for k, cell in enumerate(row):
            line.append(_cell(cell, widths[k], k - shift in shape.marked))
        if not shape.cells:
            line.append(("dim", "()"))
        note = f"  {shape.note}{'  ←' if shape.loud else ''}"
        line.append(("bad" if shape.loud else "dim", note.rstrip()))
        lines.append(line)
    return lines


def _cell(cell: str | None, width: int, marked: bool) -> Piece:
    if cell is None:
        return "dim", " " * (width + 2)
    body = f"{cell:^{width}}"
    return ("bad", f"[{body[1:-1]:^{width}}]") if marked else ("plain", f"│{body}│")


def _beside(picture: Picture) -> list[list[Piece]]:
    a, b = picture.shapes
    line: list[Piece] = []
    heads: list[Piece] = []
    at = 0
    marks: list[int] = []
    for n, shape in enumerate((a, b)):
        if n:
            line.append(("plain", f" {picture.joint} "))
            heads.append(("plain", " " * (len(picture.joint) + 2)))
            at += len(picture.joint) + 2
        begin = at
        for k, cell in enumerate(shape.cells):
            style, text = _cell(cell or "", len(cell or "") + 2, k in shape.marked)
            if k in shape.marked:
                marks.append(at + len(text) // 2)
            line.append((style, text))
            at += len(text)
        label = cut(shape.label, _LABEL)
        width = max(at - begin, len(label))
        line.append(("plain", " " * (width - (at - begin))))
        at = begin + width
        heads.append(("plain", f"{label:^{width}}"))
    lines = [heads, line]
    if len(marks) == 2 and picture.verdict:
        left, right = marks
        middle = f" {picture.verdict} "
        if right - left - 1 >= len(middle) + 2:
            under = " " * left + "└" + middle.center(right - left - 1, "─") + "┘"
        else:
            room = right - left - 1
            under = " " * left + "└" + "─" * room + "┘" + f"  {picture.verdict}"
        lines.append([("bad", under)])
    if a.note != b.note:
        notes = [f"{cut(shape.label, _LABEL)}: {shape.note}" for shape in (a, b)]
        lines.append([("dim", "; ".join(notes))])
    return lines


# -------------------------------------------------------------------------------------------- SVG
STYLE = (
    f".ant-shapes text{{font:13px {theme.MONO};fill:var(--ant-fg)}}"
    ".ant svg.ant-shapes{max-width:none;margin:8px 0;height:auto}"
    ".ant-shapes .dim{fill:var(--ant-muted);font-size:12px}"
    ".ant-shapes .mid{text-anchor:middle}"
    ".ant-shapes rect{fill:var(--ant-panel);stroke:var(--ant-line)}"
    ".ant-shapes .bad rect{fill:var(--ant-bad);fill-opacity:.14;stroke:var(--ant-bad);"
    "stroke-width:1.6}.ant-shapes .plate{fill:var(--ant-bg);stroke:none}"
    ".ant-shapes .bad text,.ant-shapes text.bad{fill:var(--ant-bad);font-weight:700}"
    ".ant-shapes path{fill:none;stroke:var(--ant-bad);stroke-width:1.6}"
    ".ant mark{background:var(--ant-bad);color:var(--ant-bg);padding:1px 2px;border-radius:2px}"
    ".ant h3 .bad{color:var(--ant-bad)}.ant code.fix{color:var(--ant-good)}"
)


def as_svg(picture: Picture, label: str) -> str:
    """The picture as an ``<svg>``, which needs STYLE around it."""
    out, width, height = _svg_beside(picture) if picture.joint else _svg_rows(picture)
    return (
        f'<svg class="ant-shapes" role="img" aria-label="{escaped(label)}" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">{"".join(out)}</svg>'
    )


def _svg_rows(picture: Picture) -> tuple[list[str], float, float]:
    rows = picture.columns()
    count = max(map(len, rows), default=0)
    label = max([len(cut(shape.label, _LABEL)) for shape in picture.shapes], default=0) * _CHAR + 14
    widths = [max([_width(row[k]) for row in rows]) for k in range(count)]
    out: list[str] = []
    for n, (shape, row) in enumerate(zip(picture.shapes, rows, strict=True)):
        y = 4 + n * _ROW
        out.append(_text(shape.label, 2, y + 19))
        x = label
        shift = picture.shift(shape)
        for k, cell in enumerate(row):
            if cell is not None:
                out.append(_svg_cell(cell, x, y, widths[k], k - shift in shape.marked))
            x += widths[k] + 4
        if not shape.cells:
            out.append(_text("()", x, y + 19, "dim"))
            x += 24
        out.append(_text(shape.note, x + 8, y + 19, "dim bad" if shape.loud else "dim"))
    notes = max([len(cut(shape.note, _NOTE)) for shape in picture.shapes], default=0)
    width = label + sum(widths) + 4 * count + 16 + notes * 7.3 + 24
    return out, width, 6 + _ROW * len(rows)


def _width(cell: str | None) -> float:
    return max(_CELL, len(cell or "") * _CHAR + 16)


def _text(text: str, x: float, y: float, style: str = "") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escaped(cut(text, _NOTE))}</text>'


def _svg_cell(cell: str, x: float, y: float, width: float, marked: bool) -> str:
    return (
        f'<g class="{"bad" if marked else "size"}"><rect x="{x:.1f}" y="{y:.1f}" '
        f'width="{width:.1f}" height="26" rx="3"/><text class="mid" x="{x + width / 2:.1f}" '
        f'y="{y + 18:.1f}">{escaped(cell)}</text></g>'
    )


def _svg_beside(picture: Picture) -> tuple[list[str], float, float]:
    out: list[str] = []
    x = 4.0
    marks: list[float] = []
    differ = len({shape.note for shape in picture.shapes}) > 1
    for n, shape in enumerate(picture.shapes):
        if n:
            out.append(_text(picture.joint, x + 8, 44))
            x += 26 + len(picture.joint) * _CHAR
        begin = x
        widths = [_width(cell) for cell in shape.cells]
        boxes = sum(widths) + 4 * max(len(widths) - 1, 0)
        label = cut(shape.label, _LABEL)
        room = max(boxes, len(label) * _CHAR)
        x += (room - boxes) / 2
        for k, cell in enumerate(shape.cells):
            out.append(_svg_cell(cell or "", x, 26, widths[k], k in shape.marked))
            if k in shape.marked:
                marks.append(x + widths[k] / 2)
            x += widths[k] + 4
        middle = begin + room / 2
        out.append(f'<text class="mid" x="{middle:.1f}" y="16">{escaped(label)}</text>')
        if shape.note and differ:
            note = escaped(cut(shape.note, _NOTE))
            out.append(f'<text class="dim mid" x="{middle:.1f}" y="92">{note}</text>')
            room = max(room, len(note) * 7.3)
        x = begin + max(room, boxes)
    height = 60.0
    if len(marks) == 2:
        left, right = marks
        out.append(f'<path d="M{left:.1f} 55v12H{right:.1f}V55"/>')
        at = (left + right) / 2
        verdict = escaped(picture.verdict)
        out.append(f'<rect x="{at - 24:.1f}" y="58" width="48" height="18" class="plate"/>')
        out.append(f'<text class="bad mid" x="{at:.1f}" y="72">{verdict}</text>')
        height = 80.0
    if differ:
        height = 98.0
    return out, x + 8, height
