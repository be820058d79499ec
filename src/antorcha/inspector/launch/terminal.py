"""A launch as text, with rich: coloured in a terminal, complete without colours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.request import pathname2url

from antorcha.core.lazy import lazy
from antorcha.inspector.launch import rows as said
from antorcha.inspector.launch.facts import LaunchFacts, WarpAccess
from antorcha.inspector.launch.words import LaunchWords
from antorcha.inspector.tensor.terminal import fact_table, heading

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

rich_text = lazy("rich.text")
rich_table = lazy("rich.table")

_COLUMNS = 3  # operands side by side in the table of threads


def renderables(facts: LaunchFacts, words: LaunchWords, width: int) -> Iterator[RenderableType]:
    """What rich prints, one after the other. (The headline leads to the kernel's file where a
    terminal can open it.)"""
    head, rest = said.title(facts)
    link = f" link file://{pathname2url(facts.filename)}" if facts.filename else ""
    yield rich_text.Text.assemble((head, f"bold{link}"), "  ", rest)
    yield fact_table(said.rows(facts, words))
    yield heading(words("Warp", block=facts.block), width)
    yield rich_text.Text(said.warp_text(facts, words))
    if not facts.warp:
        return
    yield rich_text.Text("")
    yield _patterns(facts, words)
    yield heading(words("Threads"), width)
    for k in range(0, len(facts.warp), _COLUMNS):
        yield _threads(facts.warp[k : k + _COLUMNS], words, width)
        yield rich_text.Text("")
    idle = said.idle_text(facts, words)
    if idle:
        yield rich_text.Text(idle, "dim")


def _patterns(facts: LaunchFacts, words: LaunchWords) -> RenderableType:
    table: Table = rich_table.Table.grid(padding=(0, 2))
    for access in facts.warp:
        table.add_row(
            rich_text.Text(said.subject(access, words), "cyan"),
            rich_text.Text(said.pattern(access, words)),
        )
    return table


def _threads(part: Sequence[WarpAccess], words: LaunchWords, width: int) -> RenderableType:
    """Which thread touches which elements of these operands."""
    label = words("thread")
    room = (width - len(label)) // len(part) - 2
    table: Table = rich_table.Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    heads = [rich_text.Text(said.subject(access, words), "cyan") for access in part]
    table.add_row(rich_text.Text(label, "cyan"), *heads)
    of_threads = [{own.thread: own for own in access.threads} for access in part]
    for thread in sorted({thread for own in of_threads for thread in own}):
        cells = [
            said.element_list(own[thread], words, room) if thread in own else "-"
            for own in of_threads
        ]
        table.add_row(str(thread), *[rich_text.Text(cell) for cell in cells])
    return table
