"""What the parts of the page have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from nicegui import background_tasks, ui
from nicegui.element import Element

from antorcha.lab.lesson import Lesson
from antorcha.lab.session import Session
from antorcha.lab.words import LabWords
from antorcha.lab.workplace import Workplace

ANSWER = 60.0  # seconds that a browser may take to answer, on a machine with other work


@dataclass
class View:
    """One page that looks at one session: what it shows, in which words."""

    workplace: Workplace
    session: Session
    words: LabWords
    lesson: Lesson | None = None
    dark: bool = False
    picture: str = ""  # the picture of a model that a lesson's button asked for last
    show: Callable[[str], None] = field(default=lambda name: None)  # brings a part to the front
    maximiser: Callable[[str], None] = field(default=lambda part: None)  # makes a part's button
    speaks: Callable[[], None] = field(default=lambda: None)  # told that the terminal has text


class Pane:
    """A part of the page. `watches` names the counters of the session that it shows; one that
    `rests` is brought up to date only while it can be seen."""

    watches: tuple[str, ...] = ()
    rests = False

    def __init__(self, view: View) -> None:
        self.view = view
        self.session = view.session
        self.words = view.words
        self.is_seen = True
        self._seen: tuple[int, ...] | None = None

    def build(self) -> None:
        """Make the elements, inside the one that is being filled."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Show what has changed since the last call."""
        if self._is_behind and (self.is_seen or not self.rests):
            self._seen = self._versions()
            self.update()

    def _versions(self) -> tuple[int, ...]:
        return tuple([self.session.versions[name] for name in self.watches])

    @property
    def _is_behind(self) -> bool:
        """Has something changed that it does not show yet?"""
        return self._versions() != self._seen

    def update(self) -> None:
        """Show the session as it is now."""


def press(work: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """A button's handler: starts the work and is done, so that a closed page cuts nothing off."""

    def start() -> None:
        background_tasks.create(_awaited(work))

    return start


async def _awaited(work: Callable[[], Awaitable[None]]) -> None:
    await work()


class TrustedHtml(Element, component="trusted.js", default_classes="nicegui-html"):
    """HTML that we made or that the child sent: cleaned by the browser's DOMPurify, always."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self._props["innerHTML"] = content

    def set_content(self, content: str) -> None:
        """Show that instead, by a call: an update would render the whole page again."""
        if content != self._props["innerHTML"]:
            with self._props.suspend_updates():
                self._props["innerHTML"] = content
            self.run_method("show", content)


class PromptSlider(ui.slider):
    """A slider that the browser moves by itself. One that waits for our word of where it stands has
    the whole page rendered for that, before what it was moved for can be shown."""

    LOOPBACK = False


def trusted(content: str = "", *, classes: str = "") -> TrustedHtml:
    """A place for such HTML."""
    return TrustedHtml(content).classes(classes)
