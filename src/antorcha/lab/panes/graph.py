"""The autograd graph of a tensor that the last program left.

Which line made each node is not noted in a usual run, which it would slow down: a button runs the
program once more, noting them.
"""

from __future__ import annotations

from typing import Any

from nicegui import background_tasks, ui

from antorcha.lab.panes.base import Pane, press, trusted
from antorcha.lab.panes.empty import EmptyPane
from antorcha.lab.panes.inspector import told


class GraphPane(Pane):
    """A choice of tensors, and the graph of the chosen one."""

    watches = ("result", "state")
    rests = True

    def build(self) -> None:
        self._empty = EmptyPane(self.view, "graph", "graph")
        self._choice = ui.select([], label=self.words("graph_of"), on_change=self._chosen)
        self._choice.props("dense outlined options-dense").classes("lab-input")
        self._lines = ui.button(
            self.words("graph_lines"), icon="notes", color=None, on_click=press(self._run)
        )
        self._lines.props(f'no-caps dense outline title="{self.words("graph_lines_hint")}"')
        self._lines.classes("lab-graph-lines")
        self._shown: dict[str, Any] | None = None  # the result whose graphs can be chosen
        self._picture = trusted(classes="lab-graph")

    async def _run(self) -> None:
        await self.session.run(watched="lines")

    def update(self) -> None:
        result = self.session.result
        self._empty.show(not result.get("graphs"), "no_graph")
        self._lines.set_enabled(not self.session.busy)
        if result is self._shown:
            return
        self._shown = result
        names = result.get("graphs", [])
        self._lines.set_visibility(bool(names) and result.get("watched") != "lines")
        self._choice.set_visibility(bool(names))
        self._picture.set_content("")
        kept = self._choice.value if self._choice.value in names else None
        self._choice.set_options(names, value=kept or (names[0] if names else None))
        if kept:
            self._ask(kept)

    def _chosen(self, event: Any) -> None:
        if event.value:
            self._ask(event.value)

    def _ask(self, name: str) -> None:
        background_tasks.create(self._show(name))

    async def _show(self, name: str) -> None:
        answer = await self.session.child.look("graph", name, self.words.lang)
        if name == self._choice.value:
            self._picture.set_content(told(answer, self.words, name))
