"""A picture of a model, as the page shows it: asked for anew whenever something has changed."""

from __future__ import annotations

import json
from typing import Any

from nicegui import background_tasks, ui

from antorcha.inspector.forms import escaped
from antorcha.lab.panes.base import View, trusted


class ModelPicture:
    """One kind of picture. It asks the child; while it waits, only the newest question counts.

    Args:
        view: of the page.
    """

    kind = ""

    def __init__(self, view: View) -> None:
        self.view = view
        self.words = view.words
        self.name = ""  # of the model, or the tensor, that is shown
        self.others: dict[str, list[str]] = {}  # what else the program offers
        self._wanted: dict[str, Any] | None = None
        self._asking = False

    def build(self) -> None:
        """Make the elements, inside the one that is being filled."""
        self.picture = trusted(classes="lab-model-picture")

    def show(self, name: str, others: dict[str, list[str]]) -> None:
        """Show that model, as the last run has left it."""
        self.name, self.others = name, others
        self.ask()

    def request(self) -> dict[str, Any]:
        """What the child is asked for besides the model's name."""
        return {}

    def take(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """Show the answer."""
        self.picture.set_content(shown(answer, self.words, request["name"]))

    def ask(self) -> None:
        """Ask for the picture as it is wanted now."""
        self._wanted = {"view": self.kind, "name": self.name, **self.request()}
        if not self._asking:
            self._asking = True
            background_tasks.create(self._work())

    async def _work(self) -> None:
        try:
            while (request := self._wanted) is not None:
                self._wanted = None
                answer = await self.look(request)
                if request["name"] == self.name and answer:
                    self.take(request, answer)
        finally:
            self._asking = False

    async def look(self, request: dict[str, Any]) -> dict[str, Any]:
        """The child's answer; {} where there is nothing new to show."""
        child = self.view.session.child
        answer = await child.look("model", json.dumps(request), self.words.lang)
        return {} if "wait" in answer or answer.get("gone") else answer


class PlanePicture(ModelPicture):
    """The plane of a network of two inputs, and the program's points."""

    kind = "plane"

    def build(self) -> None:
        super().build()
        ui.label(self.words("view_says_plane")).classes("lab-caption")


def shown(answer: dict[str, Any], words: Any, name: str) -> str:
    """An answer as HTML: the picture, or why there is none."""
    if "html" in answer:
        return str(answer["html"])
    problem = answer.get("problem") or words("no_answer")
    return f'<p class="lab-empty">{escaped(words("cannot_show", problem))}</p>'
