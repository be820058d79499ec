"""How a page looks and in which language it speaks: what chooses them, and what they are now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import context, ui

from antorcha.inspector.vocabulary import LANGUAGES
from antorcha.lab.panes.base import ANSWER
from antorcha.lab.theme import ACCENT
from antorcha.lab.words import LabWords
from antorcha.lab.workplace import Workplace


def page_header() -> ui.element:
    """The page's header, before the framework's ``<main>``: whoever goes to that leaves it out."""
    header = ui.element("header").classes("lab-header")
    header.move(context.client.page_container, target_index=0)
    return header


class Appearance:
    """The theme and the language of one page.

    Args:
        workplace: which remembers them.
        words: the page's, in its language.
        follow: called with whether the page is dark, when that is known and when it changes.
    """

    def __init__(
        self, workplace: Workplace, words: LabWords, follow: Callable[[bool], None]
    ) -> None:
        self._workplace = workplace
        self._words = words
        self._follow = follow
        self._dark = ui.dark_mode()
        ui.colors(primary=ACCENT)
        ui.timer(0.01, self._choose, once=True)

    def keys(self) -> None:
        """Make what chooses them."""
        words = self._words
        language = ui.select(LANGUAGES, value=words.lang, on_change=self._speak)
        language.props(f'dense borderless options-dense aria-label="{words("language")}"')
        language.classes("lab-language")
        theme = ui.button(icon="contrast", color=None, on_click=self._turn)
        theme.props(f'flat dense round aria-label="{words("theme")}" title="{words("theme")}"')

    async def _choose(self) -> None:
        dark = self._workplace.memory.get("dark")
        if not isinstance(dark, bool):
            query = "matchMedia('(prefers-color-scheme: dark)').matches"
            dark = bool(await ui.run_javascript(query, timeout=ANSWER))
        self._set(dark)
        ui.run_javascript(f"document.documentElement.lang = '{self._words.lang}'")

    def _turn(self) -> None:
        self._set(not self._dark.value)
        self._workplace.remember(dark=bool(self._dark.value))

    def _set(self, dark: bool) -> None:
        self._dark.set_value(dark)
        self._follow(dark)

    def _speak(self, event: Any) -> None:
        self._workplace.remember(lang=event.value)
        path = context.client.request.url.path
        ui.navigate.to(f"{path}?lang={event.value}")
