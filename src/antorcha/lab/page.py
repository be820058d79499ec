"""The page: its frame, its menu, and what brings its parts to the front.

Wide, the lesson stands beside the editor, and terminal and inspector below that (`layout`); narrow
(under 900 pixels), one of the three shows at a time, and tabs choose it. The styles are in
``style.css``.
"""

from __future__ import annotations

import time
from pathlib import Path

from nicegui import context, ui

from antorcha.inspector.vocabulary import LANGUAGES
from antorcha.lab import lighting, theme
from antorcha.lab.appearance import Appearance, page_header
from antorcha.lab.files import NAME, FileProblem
from antorcha.lab.home import HomePage
from antorcha.lab.layout import PageLayout
from antorcha.lab.lesson import Lesson, LessonError
from antorcha.lab.panes.base import Pane, View, press
from antorcha.lab.panes.editor import Editor
from antorcha.lab.panes.graph import GraphPane
from antorcha.lab.panes.inspector import Inspector
from antorcha.lab.panes.lesson import LessonText
from antorcha.lab.panes.model import ModelPane
from antorcha.lab.panes.results import Loss, Pictures, Profiler
from antorcha.lab.panes.terminal import Terminal
from antorcha.lab.refresher import Refresher
from antorcha.lab.session import Session
from antorcha.lab.words import LabWords
from antorcha.lab.workplace import Workplace

PACE = 0.02  # seconds, at least, between two times that the page is brought up to date
BEAT = 0.5  # and at most: looks at a running program come by themselves
STYLES = [Path(__file__).with_name(name) for name in ("style.css", "views.css", "home.css")]

# Ctrl+Enter runs from anywhere: a button that has the focus would take it for a click. (The editor
# has a key of its own for it.) And the framework's word for a text that is too long is translated.
_SCRIPT = """
document.addEventListener("keydown", event => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  if (event.target.closest?.(".cm-editor")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  emitEvent("lab-run");
}, true);
const [head, body] = document.querySelectorAll("#too_long_message_popup span");
if (body) [head.textContent, body.textContent] = ["%s", ""];
"""
_INSIDE = ("inspector", "model", "graph", "loss", "profiler", "pictures")
_SHORT = ("inspector", "model", "profiler")  # whose tabs have shorter names: all six fit in a row
_PLACES = ("lesson", "code", "inside")


def head() -> str:
    """What every page's head holds: the design system, and the styles that it is used in."""
    rules = "".join([path.read_text(encoding="utf-8") for path in STYLES])
    return f"<style>{theme.rules('.body--dark')}{rules}</style>"


class Page:
    """One browser tab's look at one session.

    Args:
        workplace: where the session is.
        session: what is shown.
        words: in which words.
        lesson: its text, if the session belongs to a lesson.
    """

    def __init__(
        self, workplace: Workplace, session: Session, words: LabWords, lesson: Lesson | None
    ) -> None:
        self.layout = PageLayout(
            workplace, words, lesson is not None, is_quiet=not session.has_spoken
        )
        self.view = View(
            workplace,
            session,
            words,
            lesson,
            show=self.show,
            maximiser=self.layout.maximiser,
            speaks=self.layout.speak,
        )
        self.session = session
        self.words = words
        self.lesson = lesson
        self._inside: dict[str, ui.element] = {}
        self._inspecting: dict[str, Pane] = {}
        self._editor = Editor(self.view)
        self._terminal = Terminal(self.view)
        self._panes: list[Pane] = []

    def build(self) -> None:
        """Make the page, and keep it up to date while it is there."""
        ui.page_title(f"{self.lesson.title if self.lesson else self.session.file.name} · antorcha")
        self._appearance = Appearance(self.view.workplace, self.words, self._follow)
        self.session.greet()
        ui.label(self.words("offline")).classes("lab-offline").props('role="alert"')
        self._header()
        with self.layout.main() as self._main:
            if self.lesson is not None:
                with self._place("lesson"):
                    self._add(LessonText(self.view, self.lesson))
            with self._place("code"):
                with ui.element("div").classes("lab-edit"):
                    self._add(self._editor)
                with ui.element("div").classes("lab-below"):
                    self._add(self._terminal)
            with self._place("inside"):
                self._inspectors()
            self.layout.lines()
        self._go("lesson" if self.lesson is not None else "code")
        ui.on("lab-run", press(self._run))
        ui.timer(0.1, lambda: ui.run_javascript(_SCRIPT % self.words("too_long")), once=True)
        ui.timer(0.1, lambda: ui.run_javascript(lighting.script(self.words)), once=True)
        self.session.viewers += 1
        context.client.on_delete(self._left)
        self._refresher = Refresher(self._refresh, PACE)
        self.session.listeners.append(self._refresher.tell)
        ui.timer(BEAT, self._refresher.tell)
        ui.timer(0.01, self._refresher.tell, once=True)

    # ---- the frame ------------------------------------------------------------------------------

    def _header(self) -> None:
        words = self.words
        with page_header():
            menu = ui.button(icon="menu", color=None)
            menu.props(f'flat dense round aria-label="{words("menu")}"')
            with menu, ui.menu().classes("lab-menu") as opened:
                body = ui.element("div")
            opened.on_value_change(lambda event: self._fill(body) if event.value else None)
            home = ui.link("antorcha lab", f"/home?lang={words.lang}")
            home.classes("lab-brand lab-brand-link").props(f'title="{words("home")}"')
            if self.lesson is not None:
                number, count = self.view.workplace.place_of(self.lesson)
                ui.label(words("lesson_of", number, count)).classes("lab-number")
                ui.label(self.lesson.title).classes("lab-name")
            else:
                ui.label(self.session.file.name).classes("lab-name")
            ui.element("div").classes("lab-gap")
            self._appearance.keys()
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
        lessons = workplace.lessons(words.lang)
        left = [each for each in lessons if not workplace.is_done(each)]
        with ui.list().props("dense"):
            self._entry(words("home"), f"/home{lang}")
            ui.item_label(words("course")).props("header")
            told = words("course_left", len(lessons) - len(left), len(lessons),
                         words.span(sum([each.minutes for each in left])))  # fmt: skip
            ui.label(told).classes("lab-course")
            share = (len(lessons) - len(left)) / max(len(lessons), 1)
            ui.linear_progress(share, show_value=False, size="4px").classes("lab-progress").props(
                f'aria-label="{told}"'
            )
            for number, lesson in enumerate(lessons, 1):
                is_here = self.lesson is not None and lesson.slug == self.lesson.slug
                entry = self._entry(
                    f"{number}. {lesson.title}",
                    f"/lesson/{lesson.slug}{lang}",
                    words("minutes", lesson.minutes),
                    workplace.progress(lesson, words),
                    is_here=is_here,
                )
                entry.classes("lab-entry-done" if workplace.is_done(lesson) else "")
            ui.separator()
            ui.item_label(words("files")).props("header")
            for name in workplace.programs():
                is_here = self.lesson is None and name == self.session.file.name
                self._entry(name, f"/file/{name}{lang}", is_here=is_here)
        with ui.row().classes("lab-new"):
            wanted = ui.input(words("new_file_name")).props("dense outlined")
            make = ui.button(words("new_file"), color=None)
            make.props("no-caps dense outline")
            make.on_click(lambda: self._make(wanted.value or ""))
        ui.label(words("about")).classes("lab-about")

    def _fill(self, body: ui.element) -> None:
        """The menu as it is now: how far the course is, and what files there are."""
        body.clear()
        with body:
            self._menu()
        script = "document.querySelector('.lab-menu [aria-current]')?.scrollIntoView"
        ui.run_javascript(f"setTimeout(() => {script}({{block: 'nearest'}}), 100)")

    def _entry(self, text: str, target: str, *more: str, is_here: bool = False) -> ui.menu_item:
        about = [self.words("here"), *more] if is_here else list(more)
        told = " · ".join([each for each in about if each])
        item = ui.menu_item(on_click=lambda: ui.navigate.to(target))
        with item, ui.element("div").classes("lab-entry"):
            ui.label(text).classes("lab-entry-name")
            if told:
                ui.label(told).classes("lab-entry-more")
        if is_here:
            item.props('aria-current="page"').classes("lab-entry-here")
        return item

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
        makers = dict(zip(_INSIDE, (Inspector, ModelPane, GraphPane, Loss, Profiler, Pictures)))
        with ui.element("div").classes("lab-bar lab-bar-tabs"):
            self._inside_tabs = ui.tabs(on_change=lambda event: self._look(str(event.value)))
            self._inside_tabs.props("dense no-caps shrink")
            self._inside_tabs.props(f'aria-label="{words("inside")}"')
            with self._inside_tabs:
                for name in _INSIDE:
                    shown = words(f"tab_{name}") if name in _SHORT else words(name)
                    ui.tab(name, shown).props(f'aria-label="{words(name)}"')
            ui.element("div").classes("lab-gap")
            self.layout.maximiser("inside")
        for name in _INSIDE:
            label = words(name)
            panel = (
                ui.element("div")
                .classes("lab-panel")
                .props(f'role="tabpanel" aria-label="{label}" tabindex="0"')
            )
            self._inside[name] = panel
            with panel:
                self._inspecting[name] = makers[name](self.view)
                self._add(self._inspecting[name])
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
            self.layout.uncover(*(("edit", "below") if name == "code" else (name,)))
        else:
            self._inside_tabs.set_value(name)
            self.layout.uncover("inside")

    def _go(self, place: str) -> None:
        self._tabs.set_value(place)
        self.layout.go(place)

    def _look(self, name: str) -> None:
        for each, panel in self._inside.items():
            panel.set_visibility(each == name)
            self._inspecting[each].is_seen = each == name
        self._inspecting[name].refresh()

    def _refresh(self) -> None:
        with self._main:
            for pane in self._panes:
                pane.refresh()

    # ---- choices --------------------------------------------------------------------------------

    def _follow(self, dark: bool) -> None:
        self.view.dark = dark
        self._editor.set_dark(dark)
        self._terminal.set_dark(dark)
        self._main.props(f'data-theme="{"dark" if dark else "light"}"')

    async def _run(self) -> None:
        await self.session.run()

    def _left(self) -> None:
        self.session.listeners.remove(self._refresher.tell)
        self._refresher.stop()
        self.session.viewers -= 1
        self.session.left = time.monotonic()


# ---- the addresses ------------------------------------------------------------------------------


def register(workplace: Workplace, first: str, default_lang: str) -> None:
    """Tell the framework which pages there are; `first` is where ``/`` leads."""

    def words_of(lang: str) -> LabWords:
        kept = workplace.memory.get("lang", default_lang)
        return LabWords(lang or (kept if kept in LANGUAGES else default_lang))

    @ui.page("/")
    def index(lang: str = "") -> None:
        ui.navigate.to(f"{workplace.last or first}?lang={words_of(lang).lang}")

    @ui.page("/home")
    def home_page(lang: str = "") -> None:
        words = words_of(lang)
        try:
            HomePage(workplace, words).build()
            workplace.remember(last="/home")
        except LessonError as error:
            _message(f"{words('lesson_broken')} {error}")

    @ui.page("/lesson/{slug}")
    def lesson_page(slug: str, lang: str = "") -> None:
        words = words_of(lang)
        try:
            lesson = workplace.lesson(slug, words.lang)
            if lesson is None:
                _message(words("no_lesson"))
                return
            Page(workplace, workplace.of_lesson(lesson), words, lesson).build()
            workplace.remember(last=f"/lesson/{slug}", here=slug, opened={slug: True})
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
            workplace.remember(last=f"/file/{name}")
        except FileProblem as error:
            _message(words(f"problem_{error.kind}", error.path, error.detail))


def _message(text: str) -> None:
    with ui.element("div").classes("lab-message").props('role="alert"'):
        ui.label(text)
