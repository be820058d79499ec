"""What a part of the page shows while it has nothing: a picture of what will be there, a sentence,
and one action."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise

from nicegui import ui

from antorcha.lab.panes.base import View, press, trusted

_LIT = ' class="lit"'


def _cells(x: int, y: int, columns: int, rows: int, lit: int) -> str:
    """A grid of cells, one of them lit."""
    return "".join([
        f'<rect x="{x + 16 * (k % columns)}" y="{y + 16 * (k // columns)}" width="16" height="16"'
        f"{_LIT * (k == lit)}/>"
        for k in range(columns * rows)
    ])  # fmt: skip


def _layers() -> str:
    """Nodes in three layers, each joined with all of the next."""
    layers = [[(24, y) for y in (12, 32, 52)], [(72, y) for y in (12, 32, 52)], [(120, 32)]]
    edges = [(a, b) for before, after in pairwise(layers) for a in before for b in after]
    lines = [f'<path d="M{a[0]} {a[1]}L{b[0]} {b[1]}"/>' for a, b in edges]
    dots = [
        f'<circle cx="{x}" cy="{y}" r="7"{_LIT * (x == 120)}/>'
        for layer in layers for x, y in layer
    ]  # fmt: skip
    return "".join(lines + dots)


def _bars() -> str:
    """Calls inside of calls, as bars."""
    bars = [(4, 48, 136), (4, 28, 88), (96, 28, 44), (4, 8, 40)]
    return "".join([
        f'<rect x="{x}" y="{y}" width="{wide}" height="14" rx="2"{_LIT * (wide == 40)}/>'
        for x, y, wide in bars
    ])  # fmt: skip


_PICTURES = {
    "inspector": _cells(48, 0, 3, 2, 4) + _cells(24, 44, 6, 1, 4) + '<path d="M72 32L96 44"/>',
    "model": _layers(),
    "graph": (
        '<path d="M44 14H60L74 28M44 50H60L74 36M104 32H118"/>'
        '<rect x="4" y="4" width="40" height="20" rx="4"/>'
        '<rect x="4" y="40" width="40" height="20" rx="4"/>'
        '<circle cx="88" cy="32" r="14"/><circle class="lit" cx="130" cy="32" r="10"/>'
    ),
    "loss": (
        '<path d="M16 4V56H136"/><path class="lit" d="M22 10C34 44 60 48 132 50"/>'
    ),
    "profiler": _bars(),
    "pictures": (
        '<rect x="24" y="4" width="96" height="56" rx="4"/>'
        '<circle class="lit" cx="98" cy="20" r="7"/>'
        '<path d="M26 52L54 26L74 44L88 34L118 56"/>'
    ),
}  # fmt: skip
"""Drawings of 144 by 64, in lines; what is ``lit`` has the accent."""


class EmptyPane:
    """The picture, the sentence and the action of a part that is empty.

    Before a run the action is the run; after one that left the part empty it is the way to the
    lesson that tells how to fill it.

    Args:
        view: of the page.
        part: the part's name.
        lesson: the name of the lesson about it.
        act: the word, the icon and the work of an action in the place of both.
    """

    def __init__(
        self,
        view: View,
        part: str,
        lesson: str = "",
        act: tuple[str, str, Callable[[], Awaitable[None]]] | None = None,
    ) -> None:
        self._view = view
        words = view.words
        word, icon, work = act or ("run_program", "play_arrow", view.session.run)
        found = view.workplace.lesson(lesson, words.lang) if lesson else None
        is_here = view.lesson is not None and view.lesson.slug == lesson
        with ui.element("div").classes("lab-nothing") as self._all:
            trusted(f'<svg viewBox="0 0 144 64" aria-hidden="true">{_PICTURES[part]}</svg>')
            self._said = ui.label().classes("lab-empty")
            self._run = ui.button(words(word), icon=icon, color=None, on_click=press(work))
            self._run.props("no-caps dense outline")
            self._way: ui.link | None = None
            if found is not None and not is_here:
                target = f"/lesson/{lesson}?lang={words.lang}"
                self._way = ui.link(words("empty_lesson", found.title), target)

    def show(self, is_empty: bool, key: str, *, leads: bool = True) -> None:
        """Show it, or not, with that word. `leads`: after a run, to the lesson."""
        session = self._view.session
        self._all.set_visibility(is_empty)
        self._said.set_text(self._view.words(key))
        leads_on = self._way is not None and leads and bool(session.result)
        self._run.set_visibility(not leads_on)
        self._run.set_enabled(not session.busy)
        if self._way is not None:
            self._way.set_visibility(leads_on)
