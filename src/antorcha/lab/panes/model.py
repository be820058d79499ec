"""Pictures of the learner's own models: which of them fit the program, and the one that is shown.

A lesson may choose the picture (its `view` fence); it shows as soon as the program fits it.
"""

from __future__ import annotations

from nicegui import ui

from antorcha.lab.panes.attention import AttentionPicture
from antorcha.lab.panes.base import Pane
from antorcha.lab.panes.empty import EmptyPane
from antorcha.lab.panes.flow import FlowPicture
from antorcha.lab.panes.model_picture import ModelPicture, PlanePicture
from antorcha.lab.panes.pad import PadPicture

_MAKERS: dict[str, type[ModelPicture]] = {
    "pad": PadPicture,
    "flow": FlowPicture,
    "plane": PlanePicture,
    "attention": AttentionPicture,
}


class ModelPane(Pane):
    """A choice of pictures and of models, and the chosen picture."""

    watches = ("result",)
    rests = True

    def build(self) -> None:
        words = self.words
        self._empty = EmptyPane(self.view, "model", "perceptron")
        with ui.element("div").classes("lab-model-bar") as self._bar:
            self._kind = ui.toggle({}, on_change=self._chosen).props("no-caps dense unelevated")
            # (Of names that the framework has no colours for, ours are those of the style sheet.)
            self._kind.props("toggle-color=chosen toggle-text-color=chosen")
            self._kind.props(f'aria-label="{words("view")}"').classes("lab-kinds")
            self._name = ui.select([], label=words("model_of"), on_change=self._chosen)
            self._name.props("dense outlined options-dense").classes("lab-input")
        self._pictures: dict[str, ModelPicture] = {}
        self._boxes: dict[str, ui.element] = {}
        for kind, maker in _MAKERS.items():
            with ui.element("div").classes(f"lab-view lab-view-{kind}") as box:
                self._pictures[kind] = maker(self.view)
                self._pictures[kind].build()
            self._boxes[kind] = box
        self._offers: dict[str, list[str]] = {}
        self._filling = False
        self._wished = ""  # the name to choose next
        self._wish = ""  # the picture that a lesson's button asked for last: its kind, and of what
        self._wishes = False  # has it not been shown yet?

    def refresh(self) -> None:
        if self.is_seen and self.view.picture != self._wish:
            self._wish = self.view.picture
            self._wishes = True
            self.update()
        super().refresh()

    def update(self) -> None:
        if self.session.busy:
            return
        self._offers = offers = self.session.result.get("views") or {}
        words, kinds = self.words, [kind for kind in _MAKERS if kind in offers]
        wanted, _, name = self._wish.partition(" ")
        misses = bool(wanted) and wanted not in kinds
        self._bar.set_visibility(bool(kinds))
        self._empty.show(misses or not kinds, "view_not_yet" if misses else "no_model",
                         leads=not misses)  # fmt: skip
        kept = self._kind.value if self._kind.value in kinds else self._first(kinds)
        if self._wishes and wanted in kinds:
            self._wishes, kept = False, wanted
            if name in offers[wanted]:
                self._wished = name
        self._filling = True
        self._kind.set_options({kind: words(f"view_{kind}") for kind in kinds}, value=kept)
        self._filling = False
        self._show()

    def _first(self, kinds: list[str]) -> str | None:
        """The picture to begin with: the lesson's own, if it has one that fits."""
        lesson = self.view.lesson
        for part in lesson.views if lesson else []:
            if part.kind in kinds:
                self._wished = part.name
                return part.kind
        return next(iter(kinds), None)

    def _chosen(self) -> None:
        if not self._filling:
            self._show()

    def _show(self) -> None:
        """Show the chosen picture of the chosen model."""
        kind = self._kind.value
        for each, box in self._boxes.items():
            box.set_visibility(each == kind)
        if kind is None:
            return
        names = self._offers.get(kind, [])
        label = self.words("attention_of" if kind == "attention" else "model_of")
        self._name.props(f'label="{label}"')
        self._filling = True
        wanted = [self._wished, self._name.value, *names]
        kept = next((name for name in wanted if name in names), None)
        self._wished = ""
        self._name.set_options(names, value=kept)
        self._name.set_visibility(len(names) > 1)
        self._filling = False
        if kept is not None:
            self._pictures[kind].show(kept, self._offers)
