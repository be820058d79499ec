"""The film of a training, under its loss: a slider over the steps, what a parameter was then."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from nicegui import background_tasks, ui

from antorcha.inspector.forms import escaped
from antorcha.lab.panes.base import Pane, PromptSlider, View, trusted
from antorcha.lab.panes.inspector import told

PACE = 0.06  # seconds between two frames while it plays
PLAYED = 120  # frames that are shown of a film


class FilmPane(Pane):
    """Slider, Play, and the picture of the chosen parameter.

    Args:
        view: of the page.
        mark: is told of the curve and the step at which the film stands.
    """

    watches = ("result",)
    rests = True

    def __init__(self, view: View, mark: Callable[[tuple[str, int] | None], None]) -> None:
        super().__init__(view)
        self._mark = mark
        self._film: dict[str, Any] = {}
        self._asked: tuple[int, int] | None = None
        self._looking = False

    def build(self) -> None:
        words = self.words
        with ui.element("section").props(f'aria-label="{words("film")}"') as self._all:
            with ui.element("div").classes("lab-film"):
                self._play = ui.button(icon="play_arrow", color=None, on_click=self._turn)
                self._play.props(f'flat dense round aria-label="{words("film_play")}"')
                self._slider = PromptSlider(min=0, max=1, step=1, value=0, on_change=self._show)
                self._slider.props(f'aria-label="{words("film")}"')
                self._step = trusted(classes="lab-film-step").props('aria-live="polite"')
                self._choice = ui.select({}, label=words("film_of"), on_change=self._show)
                self._choice.props("dense outlined options-dense").classes("lab-input")
            self._picture = trusted(classes="lab-film-frame")
        self._timer = ui.timer(PACE, self._advance, active=False)
        self._all.set_visibility(False)

    def update(self) -> None:
        self._film = film = self.session.result.get("film") or {}
        self._all.set_visibility(bool(film))
        if not film:
            self._set_playing(False)
            self._mark(None)
            return
        last, names = len(film["steps"]) - 1, dict(enumerate(film["names"]))
        is_new = self._slider.props.get("max") != last
        chosen = self._choice.value if self._choice.value in names else 0
        if self._choice.options != names:
            self._choice.set_options(names, value=chosen)
        if is_new:
            self._slider.props(f"max={last}")
            self._slider.set_value(last)
        self._asked = None
        self._show()

    # ---- playing --------------------------------------------------------------------------------

    def _turn(self) -> None:
        last = len(self._film.get("steps", [0])) - 1
        if not self._timer.active and self._place >= last:
            self._slider.set_value(0)
        self._set_playing(not self._timer.active)

    def _set_playing(self, plays: bool) -> None:
        self._timer.active = plays
        self._play.set_icon("pause" if plays else "play_arrow")
        said = self.words("film_pause" if plays else "film_play")
        self._play.props(f'aria-label="{said}"')

    def _advance(self) -> None:
        last = len(self._film.get("steps", [0])) - 1
        self._slider.set_value(min(self._place + math.ceil(last / PLAYED), last))
        if self._place >= last:
            self._set_playing(False)

    # ---- showing --------------------------------------------------------------------------------

    @property
    def _place(self) -> int:
        return int(self._slider.value or 0)

    def _show(self) -> None:
        """Ask for the picture where the slider stands, and meanwhile show where that is."""
        film = self._film
        if not film:
            return
        if not self._looking:
            self._looking = True
            background_tasks.create(self._draw())
        background_tasks.create(self._show_place())

    async def _show_place(self) -> None:
        """Show the step at which the slider stands, and mark it in its curve."""
        film = self._film
        if film:
            place = min(self._place, len(film["steps"]) - 1)
            step = self.words("film_step", film["steps"][place], film["steps"][-1])
            self._step.set_content(escaped(step))
            self._mark(tuple(film["curves"][place]))

    async def _draw(self) -> None:
        """Draw what is wanted, until nothing newer is."""
        try:
            while (wanted := (self._place, int(self._choice.value or 0))) != self._asked:
                self._asked = wanted
                name = f"{wanted[0]} {wanted[1]}"
                answer = await self.session.child.look("film", name, self.words.lang)
                if "html" in answer:
                    self._picture.set_content(told(answer, self.words, name))
        finally:
            self._looking = False
