"""The page: its frame, how the parts lie in it, and what brings them to the front.

Wide, the lesson stands beside the editor, and terminal and inspector below that; narrow (under 900
pixels), one of the three shows at a time, and tabs choose it. The styles are in ``style.css``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from nicegui import context, ui

from antorcha.inspector.theme import DARK, LIGHT
from antorcha.inspector.vocabulary import LANGUAGES
from antorcha.lab.files import NAME, FileProblem
from antorcha.lab.lesson import Lesson, LessonError
from antorcha.lab.panes.base import ANSWER, Pane, View, press
from antorcha.lab.panes.editor import Editor
from antorcha.lab.panes.graph import Graph
from antorcha.lab.panes.inspector import Inspector
from antorcha.lab.panes.lesson import LessonText
from antorcha.lab.panes.results import Loss, Pictures, Profiler
from antorcha.lab.panes.terminal import Terminal
from antorcha.lab.session import Session
from antorcha.lab.words import Words
from antorcha.lab.workplace import Workplace

REFRESH = 0.1  # seconds between two looks at what has changed
ACCENT = LIGHT["accent"]  # of filled buttons, with white upon it, in both themes
STYLE = Path(__file__).with_name("style.css")

_INSIDE = ("inspector", "graph", "loss", "profiler", "pictures")
_PLACES = ("lesson", "code", "inside")


def head() -> str:
    """What every page's head holds: the styles, and the colours of both themes."""
    light, dark = [
        "".join([f"--ant-{name}:{value};" for name, value in colours.items()])
        for colours in (LIGHT, DARK)
    ]
    colours = f":root{{{light}color-scheme:light}}.body--dark{{{dark}color-scheme:dark}}"
    return f"<style>{colours}{STYLE.read_text(encoding='utf-8')}</style>"


class Page:
    """One browser tab's look at one session.

    Args:
        workplace: where the session is.
        session: what is shown.
        words: in which words.
        lesson: its text, if the session belongs to a lesson.
    """

    def __init__(
        self, workplace: Workplace, session: Session, words: Words, lesson: Lesson | None
    ) -> None:
        self.view = View(workplace, session, words, lesson, show=self.show)
        self.session = session
        self.words = words
        self.lesson = lesson
        self._inside: dict[str, ui.element] = {}
        self._editor = Editor(self.view)
        self._panes: list[Pane] = []

    def build(self) -> None:
        """Make the page, and keep it up to date while it is there."""
        ui.page_title(f"{self.lesson.title if self.lesson else self.session.file.name} · antorcha")
        self._dark = ui.dark_mode()
        ui.colors(primary=ACCENT)
        self.session.greet(self.words)
        ui.label(self.words("offline")).classes("lab-offline").props('role="alert"')
        self._header()
        kind = "lab-with-lesson" if self.lesson else "lab-alone"
        with ui.element("main").classes(f"lab-main {kind}") as self._main:
            if self.lesson is not None:
                with self._place("lesson"):
                    following = _following(self.view.workplace, self.lesson)
                    self._add(LessonText(self.view, self.lesson, following))
            with self._place("code"):
                with ui.element("div").classes("lab-edit"):
                    self._add(self._editor)
                with ui.element("div").classes("lab-below"):
                    self._add(Terminal(self.view))
            with self._place("inside"):
                self._inspectors()
        self._go("lesson" if self.lesson is not None else "code")
        ui.keyboard(self._key, ignore=["input", "select", "textarea"])
        self.session.viewers += 1
        context.client.on_delete(self._left)
        ui.timer(REFRESH, self._refresh)
        ui.timer(0.01, self._choose_theme, once=True)

    # ---- the frame ------------------------------------------------------------------------------

    def _header(self) -> None:
        words = self.words
        with ui.element("header").classes("lab-header"):
            menu = ui.button(icon="menu", color=None)
            menu.props(f'flat dense round aria-label="{words("menu")}"')
            with menu, ui.menu().classes("lab-menu"):
                self._menu()
            ui.label("antorcha lab").classes("lab-brand")
            if self.lesson is not None:
                ui.label(self.lesson.title).classes("lab-name")
            ui.element("div").classes("lab-gap")
            language = ui.select(LANGUAGES, value=words.lang, on_change=self._speak)
            language.props(f'dense borderless options-dense aria-label="{words("language")}"')
            language.classes("lab-language")
            theme = ui.button(icon="contrast", color=None, on_click=self._turn)
            theme.props(f'flat dense round aria-label="{words("theme")}" title="{words("theme")}"')
        with ui.element("nav").classes("lab-places"):
            places = _PLACES if self.lesson is not None else _PLACES[1:]
            self._tabs = ui.tabs(on_change=lambda event: self._go(str(event.value)))
            self._tabs.props("dense no-caps inline-label")
            with self._tabs:
                for name in places:
                    ui.tab(name, words(name))

    def _menu(self) -> None:
        words, workplace = self.words, self.view.workplace
        lang = f"?lang={words.lang}"
        with ui.list().props("dense"):
            ui.item_label(words("course")).props("header")
            for number, lesson in enumerate(workplace.lessons(words.lang), 1):
                text = f"{number}. {lesson.title}"
                if workplace.passed(lesson.slug):
                    text += f" ✓ {words('done')}"
                self._entry(text, f"/lesson/{lesson.slug}{lang}")
            ui.separator()
            ui.item_label(words("files")).props("header")
            for name in workplace.programs():
                self._entry(name, f"/file/{name}{lang}")
        with ui.row().classes("lab-new"):
            wanted = ui.input(words("new_file_name")).props("dense outlined")
            ui.button(words("new_file"), on_click=lambda: self._make(wanted.value or "")).props(
                "no-caps dense unelevated"
            )
        ui.label(words("about")).classes("lab-about")

    def _entry(self, text: str, target: str) -> None:
        ui.menu_item(text, on_click=lambda: ui.navigate.to(target))

    def _make(self, name: str) -> None:
        if NAME.fullmatch(name):
            ui.navigate.to(f"/file/{name}?lang={self.words.lang}")
        else:
            ui.notify(self.words("bad_name"), type="warning")

    def _place(self, name: str) -> ui.element:
        part = ui.element("section").classes(f"lab-place lab-{name}")
        return part.props(f'aria-label="{self.words(name)}"')

    def _inspectors(self) -> None:
        words = self.words
        makers = dict(zip(_INSIDE, (Inspector, Graph, Loss, Profiler, Pictures)))
        with ui.element("div").classes("lab-bar"):
            self._inside_tabs = ui.tabs(on_change=lambda event: self._look(str(event.value)))
            self._inside_tabs.props("dense no-caps outside-arrows mobile-arrows shrink")
            self._inside_tabs.props(f'aria-label="{words("inside")}"')
            with self._inside_tabs:
                for name in _INSIDE:
                    ui.tab(name, words(name))
        for name in _INSIDE:
            label = words(name)
            panel = (
                ui.element("div")
                .classes("lab-panel")
                .props(f'role="tabpanel" aria-label="{label}" tabindex="0"')
            )
            self._inside[name] = panel
            with panel:
                self._add(makers[name](self.view))
        self._inside_tabs.set_value("inspector")
        self._look("inspector")

    def _add(self, pane: Pane) -> None:
        self._panes.append(pane)
        pane.build()

    # ---- what shows -----------------------------------------------------------------------------

    def show(self, name: str) -> None:
        """Bring a part to the front: one of the places, or of what is inside."""
        if name in _PLACES:
            self._tabs.set_value(name)
        else:
            self._inside_tabs.set_value(name)

    def _go(self, place: str) -> None:
        self._tabs.set_value(place)
        self._main.classes(replace=self._classes(place))

    def _classes(self, place: str) -> str:
        kind = "lab-with-lesson" if self.lesson else "lab-alone"
        return f"lab-main {kind} lab-show-{place}"

    def _look(self, name: str) -> None:
        for each, panel in self._inside.items():
            panel.set_visibility(each == name)

    def _refresh(self) -> None:
        for pane in self._panes:
            pane.refresh()

    # ---- choices --------------------------------------------------------------------------------

    async def _choose_theme(self) -> None:
        dark = self.view.workplace.memory.get("dark")
        if not isinstance(dark, bool):
            query = "matchMedia('(prefers-color-scheme: dark)').matches"
            dark = bool(await ui.run_javascript(query, timeout=ANSWER))
        self._set_dark(dark)
        ui.run_javascript(f"document.documentElement.lang = '{self.words.lang}'")

    def _turn(self) -> None:
        self._set_dark(not self.view.dark)
        self.view.workplace.remember(dark=self.view.dark)

    def _set_dark(self, dark: bool) -> None:
        self.view.dark = dark
        self._dark.set_value(dark)
        self._editor.set_dark(dark)
        self._main.props(f'data-theme="{"dark" if dark else "light"}"')

    def _speak(self, event: Any) -> None:
        self.view.workplace.remember(lang=event.value)
        path = context.client.request.url.path
        ui.navigate.to(f"{path}?lang={event.value}")

    def _key(self, event: Any) -> None:
        keys = event.modifiers
        if event.action.keydown and (keys.ctrl or keys.meta) and event.key == "Enter":
            press(self._run)()

    async def _run(self) -> None:
        await self.session.run(self.words)

    def _left(self) -> None:
        self.session.viewers -= 1
        self.session.left = time.monotonic()


def _following(workplace: Workplace, lesson: Lesson) -> Lesson | None:
    every = workplace.lessons(lesson.lang)
    places = [index for index, each in enumerate(every) if each.slug == lesson.slug]
    rest = every[places[0] + 1 :] if places else []
    return rest[0] if rest else None


# ---- the addresses ------------------------------------------------------------------------------


def register(workplace: Workplace, first: str, default_lang: str) -> None:
    """Tell the framework which pages there are; `first` is where ``/`` leads."""

    def words_of(lang: str) -> Words:
        kept = workplace.memory.get("lang", default_lang)
        return Words(lang or (kept if kept in LANGUAGES else default_lang))

    @ui.page("/")
    def index(lang: str = "") -> None:
        ui.navigate.to(f"{first}?lang={words_of(lang).lang}")

    @ui.page("/lesson/{slug}")
    def lesson_page(slug: str, lang: str = "") -> None:
        words = words_of(lang)
        try:
            lesson = workplace.lesson(slug, words.lang)
            if lesson is None:
                _message(words("no_lesson"))
                return
            Page(workplace, workplace.of_lesson(lesson), words, lesson).build()
        except LessonError as error:
            _message(f"{words('lesson_broken')} {error}")
        except FileProblem as error:
            _message(words(f"problem_{error.kind}", error.path, error.detail))

    @ui.page("/file/{name}")
    def file_page(name: str, lang: str = "") -> None:
        words = words_of(lang)
        try:
            session = workplace.of_file(name)
            if session is None:
                _message(words("no_file"))
                return
            Page(workplace, session, words, None).build()
        except FileProblem as error:
            _message(words(f"problem_{error.kind}", error.path, error.detail))


def _message(text: str) -> None:
    with ui.element("main").classes("lab-message").props('role="alert"'):
        ui.label(text)
