"""An inspection as text, with rich: coloured in a terminal, complete without colours."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from antorcha.core.lazy import lazy
from antorcha.inspector.numbers import compact, ending, grouped, rounded
from antorcha.inspector.shown import plain_console
from antorcha.inspector.tensor import rows as said
from antorcha.inspector.tensor.facts import TensorFacts
from antorcha.inspector.tensor.grids import Grid
from antorcha.inspector.tensor.memory import Gap, MemoryCell, MemoryPicture
from antorcha.inspector.tensor.words import WordTable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

rich_text = lazy("rich.text")
rich_table = lazy("rich.table")

WIDTH = 80
_CELL, _COMPLEX_CELL = 8, 14  # characters of one cell, with the space before it
_BLOCKS = "▁▂▃▄▅▆▇█"


def text(facts: TensorFacts, words: WordTable, width: int = WIDTH) -> str:
    """The inspection as plain text."""
    return plain_text(renderables(facts, words, width), width)


def plain_text(parts: Iterable[RenderableType], width: int) -> str:
    """What rich prints, without colours and blanks at the ends of lines."""
    console = plain_console(width)
    for part in parts:
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    return "\n".join(lines)


def renderables(facts: TensorFacts, words: WordTable, width: int) -> Iterator[RenderableType]:
    """What rich prints, one after the other."""
    head, rest = said.title(facts)
    yield rich_text.Text.assemble((head, "bold"), "  ", rest)
    yield fact_table(said.rows(facts, words))
    if facts.memory is not None and facts.device != "meta":
        yield heading(words("Memory"), width)
        yield rich_text.Text(said.memory_text(facts, facts.memory, words))
        yield from _memory(facts.memory, words, width, _cell_width(facts))
    yield heading(words("Values"), width)
    why = said.why_no_values(facts, words)
    if why:
        yield rich_text.Text(why)
    else:
        yield from _values(facts, words, width)


def heading(word: str, width: int) -> Text:
    """A line with the name of what is below."""
    found: Text = rich_text.Text(f"\n── {word} ".ljust(width - 1, "─"), "dim")
    return found


def fact_table(rows: Iterable[said.FactRow]) -> RenderableType:
    """Facts below each other: label, value, what it means."""
    table: Table = rich_table.Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", min_width=9, max_width=22)
    table.add_column(overflow="fold", ratio=1)
    for row in rows:
        table.add_row(
            rich_text.Text(row.label, "cyan"),
            rich_text.Text(row.value),
            rich_text.Text(row.note, "dim"),
        )
    return table


# ---- memory
def _memory(drawn: MemoryPicture, words: WordTable, width: int, size: int) -> Iterator[Text]:
    labels = [words("cell"), words("value"), words("order"), words("times")]
    margin = max(map(len, labels))
    per_line = max((width - margin - 1) // size, 1)
    cells = [cell for part in drawn.parts for cell in ([None] if isinstance(part, Gap) else part)]
    for k in range(0, len(cells), per_line):
        yield rich_text.Text("")
        yield from _cell_lines(cells[k : k + per_line], labels, margin, size)
    steps = [words("step", dim=s.dim, stride=grouped(s.stride)) for s in drawn.steps]
    if steps and drawn.cells:
        yield rich_text.Text(f"\n{words('strides')}: {', '.join(steps)}", "dim")


def _cell_lines(
    cells: Sequence[MemoryCell | None], labels: Sequence[str], margin: int, size: int
) -> Iterator[Text]:
    """Three lines: where, what, and which the view reads, and a fourth of how often, where that
    is more than once; a cell that is read stands in []. None stands for cells that are not shown.
    """
    where = rich_text.Text(f"{labels[0]:{margin}} ", "dim")
    what = rich_text.Text(f"{labels[1]:{margin}} ")
    order = rich_text.Text(f"{labels[2]:{margin}} ", "dim")
    times = rich_text.Text(f"{labels[3]:{margin}} ", "dim")
    for cell in cells:
        if cell is None:
            for line in (where, what, order, times):
                line.append(f"{'...' if line is what else '':>{size - 1}} ", "dim")
            continue
        value = compact(cell.value or "?", size - 3)
        is_read = cell.order is not None
        where.append(f"{ending(cell.position, size - 1):>{size - 1}} ")
        what.append(
            f"{f'[{value}]' if is_read else f'{value} ':>{size}}", "bold" if is_read else ""
        )
        number = "" if cell.order is None else ending(cell.order, size - 1)
        order.append(f"{number:>{size - 1}} ")
        times.append(f"{cell.readers or '':>{size - 1}} ")
    yield where
    yield what
    if any(cell is not None and cell.order is not None for cell in cells):
        yield order
    if any(cell is not None and (cell.readers or 0) > 1 for cell in cells):
        yield times


def _cell_width(facts: TensorFacts) -> int:
    return _COMPLEX_CELL if facts.dtype.startswith("complex") else _CELL


# ---- values
def _values(facts: TensorFacts, words: WordTable, width: int) -> Iterator[Text]:
    numbers, heat = facts.statistics, facts.heat
    assert numbers is not None
    assert heat is not None
    yield rich_text.Text(said.of_what(numbers, words))
    pairs = [rich_text.Text.assemble((f"{label} ", "cyan"), value) for label, value in
             said.counted(numbers, words)]  # fmt: skip
    for half in (pairs[:4], pairs[4:]):
        yield rich_text.Text("   ").join(half)
    if numbers.histogram is not None and len(numbers.histogram.counts) > 1:
        counts = numbers.histogram.counts
        tallest = max(max(counts), 1)
        bars = "".join([_BLOCKS[-(-7 * n // tallest)] if n else " " for n in counts])
        ends = rounded(numbers.histogram.low), rounded(numbers.histogram.high)
        yield rich_text.Text.assemble(f"{ends[0]} |", (bars, "yellow"), f"| {ends[1]}")
    part = said.shown_part(facts, words, _MATRICES)
    if part:
        yield rich_text.Text(f"\n{part}", "dim")
    for grid in heat.grids[:_MATRICES]:
        yield rich_text.Text("")
        yield from _grid(grid, width, _cell_width(facts))
    if facts.image is not None:
        picture = facts.image
        size = words("pixels", width=picture.width * picture.step,
                     height=picture.height * picture.step)  # fmt: skip
        yield rich_text.Text(f"\n{words('Image')}: {size}", "dim")


_ROWS, _MATRICES = 8, 2  # rows and columns that fit; matrices that are shown


def _grid(grid: Grid, width: int, size: int) -> Iterator[Text]:
    """The first rows and columns of a matrix, with their indices."""
    is_matrix = bool(grid.rows)
    per_line = min(_ROWS, (width - 8) // (size + 1))
    if is_matrix and len(grid.columns) > per_line:
        per_line -= 1  # (room for "...")
    lines = grid.texts if is_matrix else _lines_of(grid.texts, per_line)
    for k, line in enumerate(lines[:_ROWS]):
        last = grid.rows[k : k + 1] if is_matrix else grid.columns[k * per_line :][:1]
        index = map(str, (*grid.prefix, *last))
        label = f"[{', '.join(index)}]" if grid.columns else ""
        shown = "".join([f"{compact(value, size - 1):>{size + 1}}" for value in line[:per_line]])
        more = " ..." if is_matrix and len(line) > per_line else ""
        yield rich_text.Text.assemble((f"{label:>7}", "dim"), shown, more)
    if len(lines) > _ROWS:
        yield rich_text.Text(f"{'...':>7}")


def _lines_of(texts: tuple[tuple[str, ...], ...], per_line: int) -> list[tuple[str, ...]]:
    flat = [value for line in texts for value in line]
    return [tuple(flat[k : k + per_line]) for k in range(0, len(flat), per_line)]
