"""The autograd graph of a tensor that the last program left."""

from __future__ import annotations

from typing import Any

from nicegui import background_tasks, ui

from antorcha.lab.panes.base import Pane, trusted
from antorcha.lab.panes.inspector import told


class Graph(Pane):
    """A choice of tensors, and the graph of the chosen one."""

    watches = ("result",)

    def build(self) -> None:
        self._hint = ui.label(self.words("no_graph")).classes("lab-empty")
        self._choice = ui.select([], label=self.words("graph_of"), on_change=self._chosen)
        self._choice.props("dense outlined options-dense").classes("lab-input")
        self._picture = trusted(classes="lab-graph")

    def update(self) -> None:
        names = self.session.result.get("graphs", [])
        self._hint.set_visibility(not names)
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
