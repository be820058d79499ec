"""The lab by the keyboard alone: all that a mouse can do, and the focus is seen on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")
pytest.importorskip("ipykernel", reason="needs antorcha[lab]")

from antorcha.lab.words import LabWords
from tests.lab.audit import connected, reach, step
from tests.lab.learner import AGAIN, Learner
from tests.lab.test_design import PARTS, PICTURED
from tools.draw_lab import MISTAKE

SETTINGS = [(1280, "light", "en"), (400, "dark", "es")]
VIEWS = {
    "pad": ".lab-pad-board",
    "flow": ".lab-view-flow .lab-layer",
    "plane": ".lab-view-plane circle",
    "attention": ".lab-token",
}


class Typist:
    """A learner without a mouse.

    Args:
        learner: whose page it is.
        words: in its language.
    """

    def __init__(self, learner: Learner, words: LabWords) -> None:
        self.learner = learner
        self.page = learner.page
        self.words = words
        self.press = learner.page.keyboard.press

    def open(self, path: str) -> None:
        """By the address, as from outside."""
        lang = self.words.lang
        self.page.goto(re.sub(r"(?<=\d)/.*", f"/{path}?lang={lang}", self.page.url))

    def shows(self, selector: str) -> Any:
        """The first of these, once it shows."""
        found = self.page.locator(f"{selector}:visible").first
        found.wait_for()
        return found

    def use(self, target: str, *keys: str, back: bool = False) -> None:
        """Go there, and press keys."""
        reach(self.learner, target, "Shift+Tab" if back else "Tab")
        for key in keys:
            self.press(key)

    def choose(self, tabs: str, word: str) -> None:
        """Choose one of some tabs, which the arrow keys lead to."""
        wanted = self.page.locator(tabs).get_by_role("tab", name=self.words(word), exact=True)
        self.use(f"{tabs} [role=tab]", back=True)
        for key in (*["ArrowRight"] * len(PARTS), *["ArrowLeft"] * len(PARTS)):
            if wanted.evaluate("each => each === document.activeElement"):
                self.press("Enter")
                chosen = lambda: wanted.get_attribute("aria-selected") == "true"  # noqa: E731
                self.learner.until(chosen, f"{wanted}")
                return
            assert not step(self.learner, key)
        raise AssertionError(f"the arrow keys do not lead to {wanted}")

    def go(self, place: str) -> None:
        """Where the page is narrow, to that part of it."""
        if self.page.viewport_size["width"] < 900:
            self.choose(".lab-places", place)

    def write(self, text: str) -> None:
        """Into the editor, from anywhere."""
        self.go("code")
        self.use(".cm-content", "Control+A")
        self.page.keyboard.insert_text(text)

    def run(self, text: str, ends: str = "ok") -> None:
        """Write a program, and run it to its end."""
        learner, word = self.learner, self.words(f"ended_{ends}", "").split()[1]
        self.write(text)
        learner.until(lambda: not self.page.inner_text(".lab-state"), "the end of the last run")
        learner.rest()
        before = learner.terminal()
        self.press("Control+Enter")
        learner.until(lambda: learner.terminal() != before, "the run")
        learner.until(lambda: learner.ended(word), word)

    def unfold(self, target: str, *, back: bool = False) -> None:
        """Open a menu, which takes the focus."""
        self.use(target, "Enter", back=back)
        inside = "document.activeElement.closest('.q-menu') !== null"
        self.learner.until(lambda: self.page.evaluate(inside), f"the menu of {target}")


@pytest.fixture(params=SETTINGS, ids=str)
def typist(learner: Learner, request: pytest.FixtureRequest) -> Iterator[Typist]:
    width, theme, lang = request.param
    learner.page.set_viewport_size({"width": width, "height": 800})
    learner.page.emulate_media(color_scheme=theme)
    yield Typist(learner, LabWords(lang))
    learner.page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.slow
@AGAIN
def test_a_lesson_by_the_keyboard_alone(typist: Typist) -> None:
    learner, use, shows = typist.learner, typist.use, typist.shows

    # from Home to a lesson: a cell run in place, a tensor opened, a question answered
    typist.open("home")
    shows(".lab-home")
    use(".lab-map-one[href*='/lesson/memory']", "Enter")
    typist.page.wait_for_url("**/lesson/memory*")
    connected(learner)
    use(".lab-cell-run", "Enter")
    shows(".lab-output-run")
    use(".lab-cell .lab-row", "Enter")
    shows(".lab-cell-detail svg")
    use(".lab-option", "Enter")
    shows(".lab-option:is(.lab-right, .lab-wrong)")

    # a program: what every part shows of it, each picture of its models, the film
    typist.run(PICTURED)
    typist.go("inside")
    for part in PARTS:
        typist.choose(".lab-inside", part)
        use(".lab-panel:not(.hidden)")
    typist.choose(".lab-inside", "model")
    for kind, drawn in VIEWS.items():
        use(f".lab-kinds button:has-text({typist.words(f'view_{kind}')!r})", "Enter")
        shows(drawn)
    typist.choose(".lab-inside", "loss")
    place = shows(".lab-film-step")
    last = place.inner_text()
    use(".lab-film .q-slider__track-container", "ArrowLeft")
    learner.until(lambda: place.inner_text() != last, "another step of the film")

    # a number moved by its grip
    typist.write("import torch\nx = torch.ones(5)")
    typist.press("ArrowLeft")
    use(".lab-grip", "ArrowRight", "ArrowRight")
    learner.until(lambda: learner.text().endswith("ones(7)"), "the moved number")

    # an error: a fix applied, and taken back
    typist.run(MISTAKE, "error")
    typist.go("inside")
    typist.choose(".lab-inside", "inspector")
    shows(".lab-apply")
    use(".lab-apply", "Enter")
    shows(".lab-undo")
    use(".lab-undo", "Enter")
    shows(".lab-apply")
    typist.go("code")
    learner.until(lambda: learner.text().strip() == MISTAKE.strip(), "the text as it was")
    assert learner.problems == []


@pytest.mark.slow
@AGAIN
def test_the_menus_by_the_keyboard_alone(typist: Typist) -> None:
    learner, page, words, use = typist.learner, typist.page, typist.words, typist.use
    keys = {key: f"button[aria-label={words(key)!r}]" for key in ("menu", "theme", "reset")}
    typist.open("lesson/memory")
    connected(learner)
    shuts = page.locator(".q-menu")

    # the theme, and what Contents lead to
    dark = "document.body.classList.contains('body--dark')"
    was = page.evaluate(dark)
    use(keys["theme"], "Enter")
    learner.until(lambda: page.evaluate(dark) != was, "the other theme")
    typist.unfold(".lab-contents")
    use(".q-menu .q-item:last-child", "Enter")
    shuts.wait_for(state="hidden")
    seen = "document.querySelector('.lab-challenge').getBoundingClientRect().top < innerHeight"
    learner.until(lambda: page.evaluate(seen), "the challenge")

    # a menu that is left by Escape gives the focus back
    typist.go("code")
    typist.unfold(keys["reset"])
    typist.press("Escape")
    shuts.wait_for(state="hidden")
    held = page.locator(keys["reset"])
    learner.until(lambda: held.evaluate("each => each === document.activeElement"), "the focus")
    typist.unfold(keys["reset"])
    use(".q-menu .q-item", "Enter")
    learner.until(lambda: "> python" not in learner.terminal(), "an empty terminal")

    # a new file by its name, another lesson from the menu
    typist.unfold(keys["menu"], back=True)
    use(".lab-new input")
    page.keyboard.insert_text("try.py")
    use(".lab-new button", "Enter")
    page.wait_for_url("**/file/try.py*")
    connected(learner)
    typist.unfold(keys["menu"])
    use(f".q-menu .q-item:has-text({words('home')!r})", "Enter")
    page.wait_for_url("**/home*")

    # the other language
    use(".lab-language input", "Enter")
    typist.shows(".q-menu")
    typist.press("ArrowDown" if words.lang == "en" else "ArrowUp")
    typist.press("Enter")
    page.wait_for_url(f"**/home?lang={'es' if words.lang == 'en' else 'en'}")
    assert learner.problems == []
