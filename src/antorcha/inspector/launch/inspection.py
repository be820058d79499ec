"""``antorcha.inspect`` of a launch on the simulated GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from antorcha.inspector.forms import escaped
from antorcha.inspector.launch import draw
from antorcha.inspector.launch import rows as said
from antorcha.inspector.launch.facts import LaunchFacts
from antorcha.inspector.launch.terminal import renderables
from antorcha.inspector.launch.words import LaunchWords
from antorcha.inspector.shown import Shown
from antorcha.inspector.tensor.html import fact_table, frame, headline, panel
from antorcha.inspector.tensor.svg import tag
from antorcha.inspector.tensor.terminal import WIDTH, plain_text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType


class LaunchInspection(Shown):
    """What `inspect` found of a launch: ``print`` shows it as text, a notebook as a picture.

    `facts` are the same as fields, ``as_dict()`` as values that JSON has.
    """

    def __init__(self, facts: LaunchFacts, words: LaunchWords) -> None:
        self.facts = facts
        self.words = words

    def as_dict(self) -> dict[str, Any]:
        """The facts as nested dictionaries and lists."""
        return self.facts.as_dict()

    def plain(self) -> str:
        """The text, 80 characters wide."""
        return plain_text(renderables(self.facts, self.words, WIDTH), WIDTH)

    def html(self) -> str:
        """One ``<div>`` with all it needs in it: no script, nothing loaded; light and dark."""
        facts, words = self.facts, self.words
        panels = [panel(words("Launch"), fact_table(said.rows(facts, words))), self._warp()]
        for access in facts.warp:
            says = tag("p", escaped(said.pattern(access, words)))
            drawn = draw.draw(facts, access, words)
            panels.append(panel(said.subject(access, words), says + drawn))
        inside = ['<div class="ant-panels">', *panels, "</div>"]
        return frame(headline(*said.title(facts)), inside, words.lang, draw.STYLE)

    def _warp(self) -> str:
        """What the panels that follow show."""
        facts, words = self.facts, self.words
        texts = [said.warp_text(facts, words)]
        texts += [f"{said.subject(access, words)}: {said.pattern(access, words)}"
                  for access in facts.warp]  # fmt: skip
        texts += [said.idle_text(facts, words), words("map text") if facts.warp else ""]
        content = "".join([tag("p", escaped(text)) for text in texts if text])
        return panel(words("Warp", block=facts.block), content)

    _repr_html_ = html

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        yield from renderables(self.facts, self.words, options.max_width)
