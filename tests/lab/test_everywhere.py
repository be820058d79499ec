"""What the lab promises, on a desk and on a phone, light and dark, in both languages, with the
mouse and with the keys alone.

Five settings are enough for any two choices of these four to meet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")

from antorcha.lab.lesson import Lesson, lessons
from antorcha.lab.lesson import find as find_lesson
from antorcha.lab.words import LabWords
from tests.lab.learner import AGAIN, Lab, Learner
from tests.lab.test_cells import cell_of
from tests.lab.test_film import TRAIN as FILMED
from tests.lab.test_film import trained
from tests.lab.test_fixes import SEED
from tests.lab.test_moving import PLACE, SLICE, TRAIN, find, last, pull
from tests.lab.test_views import DIGITS, READER, draw

pytestmark = [pytest.mark.slow, AGAIN]
TABS = 250  # presses of Tab after which nothing is reached any more


@dataclass(frozen=True)
class Setting:
    """How somebody uses the lab."""

    width: int
    theme: str
    lang: str
    hand: str


EVERY = [Setting(1280, "light", "en", "mouse"), Setting(1280, "dark", "es", "keys"),
         Setting(400, "light", "es", "keys"), Setting(400, "dark", "en", "keys"),
         Setting(400, "dark", "es", "mouse")]  # fmt: skip


class Desk:
    """The page in one setting, and what is done on it with the mouse or with the keys alone."""

    def __init__(self, lab: Lab, learner: Learner, setting: Setting, lesson: str) -> None:
        self.learner, self.page, self.setting = learner, learner.page, setting
        self.words = LabWords(setting.lang)
        self.moved = 0  # steps that what is held was moved by keys
        self.is_narrow, self.by_keys = setting.width < 900, setting.hand == "keys"
        self.page.set_viewport_size({"width": setting.width, "height": 800})
        self.page.emulate_media(color_scheme=setting.theme)
        base = re.sub(r"(?<=\d)/.*", "", self.page.url)
        self.page.goto(f"{base}/lesson/{lesson}?lang={setting.lang}")
        self.page.wait_for_selector(".cm-content", state="attached")
        dark = "document.body.classList.contains('body--dark')"
        is_dark = setting.theme == "dark"
        learner.until(lambda: self.page.evaluate(dark) == is_dark, setting.theme)
        self.go("code")
        learner.until(lambda: learner.terminal() != "", "the terminal's first words")

    def press(self, what: Any, key: str = "Enter") -> None:
        """Click it, or reach it and press the key."""
        if not self.by_keys:
            what.click()
            return
        self.reach(what)
        self.page.keyboard.press(key)

    def reach(self, what: Any) -> None:
        """Give it the focus: by Tab, as one does without a mouse."""
        what.wait_for()
        for _ in range(TABS):
            if what.evaluate("each => each === document.activeElement"):
                return
            if self.page.evaluate("document.activeElement.matches('.cm-content')"):
                self.page.keyboard.press("Escape")  # (Tab indents there)
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not lead to {what}")

    def choose(self, name: str) -> None:
        """Choose a tab: click it, or reach the chosen one, and go to the first and on
        from there."""
        tab = self.page.get_by_role("tab", name=self.words(name), exact=True)
        if not self.by_keys:
            tab.click()
            return
        every = tab.locator("xpath=ancestor::*[@role='tablist']")
        self.reach(every.locator("[aria-selected=true]"))
        self.page.keyboard.press("Home")
        for _ in range(8):
            if tab.evaluate("each => each === document.activeElement"):
                break
            self.page.keyboard.press("ArrowRight")
            self.page.wait_for_timeout(100)
        self.page.keyboard.press("Enter")
        self.learner.until(lambda: tab.get_attribute("aria-selected") == "true", name)

    def go(self, place: str) -> None:
        """Bring one of the page's places to the front, where not all are to be seen."""
        if self.is_narrow:
            self.choose(place)

    def look(self, part: str) -> None:
        """Bring a part of the inspector to the front."""
        self.go("inside")
        self.choose(part)

    def run(self, text: str, *, ends: str = "ok") -> None:
        """Write a program and run it."""
        self.go("code")
        learner = self.learner
        if self.by_keys:
            self.reach(self.page.locator(".cm-content"))
            self.page.keyboard.press("Control+A")
            self.page.keyboard.insert_text(text)
            learner.press_run()
        else:
            learner.write(text)
            learner.until(lambda: learner.text() == text, "the text")
            learner.rest()
            before = learner.terminal()
            self.page.locator(".lab-run").click()
            learner.until(lambda: learner.terminal() != before, "the beginning of the run")
        how = self.words(f"ended_{ends}", "").partition("{")[0].strip(" .")
        learner.until(lambda: learner.ended(how), how)

    def fits(self) -> None:
        """Nothing lies beside the window, and nothing was complained of."""
        width = self.page.evaluate("document.documentElement.scrollWidth")
        assert width <= self.setting.width, self.setting
        assert self.learner.problems == [], self.setting


@pytest.fixture
def desks(lab: Lab, learner: Learner) -> Iterator[Any]:
    """Gives the page of a lesson in each setting in turn."""

    def every(lesson: str = "fundamentals") -> Iterator[Desk]:
        for setting in EVERY:
            yield Desk(lab, learner, setting, lesson)

    yield every
    learner.page.set_viewport_size({"width": 1280, "height": 800})


# ---- the film -----------------------------------------------------------------------------------

# The first picture of a frame, and the values that the map after it says: [text, texts].
_FRAME = """frame => {
  const [plane, values] = frame.querySelectorAll("svg");
  return [plane.innerHTML, [...values.querySelectorAll("title")].map(each => each.textContent)];
}"""


def weights(said: list[str]) -> list[float]:
    """The numbers of a heat map's cells."""
    found = [re.search(r"\[\d+, \d+\]: (\S+)", text) for text in said]
    return [float(each[1].replace(",", ".").replace("−", "-")) for each in found if each]


def walk_film(desk: Desk, wanted: dict[int, list[float]]) -> None:
    learner, page = desk.learner, desk.page
    desk.run(FILMED.format(30).replace("lr=0.5", "lr=0.05"))
    desk.run(FILMED.format(30))
    desk.look("loss")
    learner.until(lambda: page.locator(".lab-curve-before").count() == 1, "the run before")
    assert page.locator(".lab-curve polyline").count() == 1
    assert desk.words("grey_before") in page.inner_text(".lab-curves")
    slider = page.locator(".lab-film .q-slider__track-container")
    frame, step = page.locator(".lab-film-frame"), page.locator(".lab-film-step")

    def walk(to: int) -> list[Any]:
        """The frame after so many steps, once it is there: it says its weights."""
        told = desk.words("film_step", to, 30)
        if desk.by_keys:
            desk.reach(slider)
            for _ in range(8):
                if step.inner_text() != told:
                    page.keyboard.press("PageDown" if to == 0 else "PageUp")
                    page.wait_for_timeout(150)
        else:
            right = slider.bounding_box()["width"] - 1
            slider.click(position={"x": right if to else 1, "y": 8})
        learner.until(lambda: step.inner_text() == told, told)

        def shown() -> Any:
            found = frame.evaluate(_FRAME)
            values = weights(found[1])
            is_there = values and values == pytest.approx(wanted[to], abs=1e-4)
            return found if is_there else None

        found: list[Any] = learner.until(shown, f"the weights after {to} steps")
        return found

    learner.until(lambda: frame.locator("svg").count() >= 4, "the pictures")
    begin, end = walk(0), walk(30)
    assert begin[0] != end[0], "the plane differs"
    assert walk(0) == begin
    desk.fits()


def test_the_film_is_walked_to_step_0_and_back(desks: Any) -> None:
    wanted = {steps: trained(steps)["model"][0].weight.flatten().tolist() for steps in (0, 30)}
    for desk in desks():
        walk_film(desk, wanted)


# ---- numbers that are moved ---------------------------------------------------------------------


def hold(desk: Desk, number: str) -> tuple[float, float]:
    """Take hold of the grip of a number; gives the place of the mouse."""
    learner, page = desk.learner, desk.page
    line, column = find(learner.text(), number)
    grip = page.locator(".lab-grip")
    if desk.by_keys:
        desk.reach(page.locator(".cm-content"))
        page.keyboard.press("Control+Home")
        for _ in range(line - 1):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Home")
        for _ in range(column):
            page.keyboard.press("ArrowRight")
    else:
        x, y = page.evaluate(PLACE, [line, column])
        page.mouse.move(x - 30, y)
        page.mouse.move(x - 3, y)
    told = number.rpartition("[")[2]
    grip.wait_for(state="visible")
    learner.until(lambda: grip.get_attribute("aria-valuetext") == told, "the grip")
    if desk.by_keys:
        desk.reach(grip)
        return 0, 0
    box = grip.bounding_box()
    place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*place)
    page.mouse.down()
    return place


def move(desk: Desk, place: tuple[float, float], *steps: int) -> None:
    """Move what is held to that many steps from its beginning; the first is a neighbour of it."""
    if not desk.by_keys:
        pull(desk.learner, place, *steps)
        return
    for step in steps:
        desk.page.keyboard.press("ArrowRight" if step > desk.moved else "ArrowLeft")
        desk.page.wait_for_timeout(40)
        desk.moved = step


def let_go(desk: Desk) -> None:
    if desk.by_keys:
        desk.page.keyboard.press("Enter")
    else:
        desk.page.mouse.up()
    desk.moved = 0
    desk.page.wait_for_timeout(400)


def move_a_rate(desk: Desk) -> None:
    learner = desk.learner
    desk.run(TRAIN + "#\n")  # (the second time nothing is compiled any more)
    desk.run(TRAIN)
    first = last(learner, "last")
    place = hold(desk, "1e-3")
    move(desk, place, *range(1, 31))
    learner.until(lambda: "lr = 1e0" in learner.text(), "the text, 30 steps on")
    let_go(desk)
    learner.until(lambda: last(learner, "last") not in ("", first), "another loss")
    moved, text = last(learner, "last"), learner.text()
    assert text == TRAIN.replace("1e-3", "1e0")
    desk.run(text)
    assert last(learner, "last") == moved, desk.setting
    desk.fits()


def test_a_rate_moved_30_times_ends_as_a_plain_run(desks: Any) -> None:
    for desk in desks():
        move_a_rate(desk)


def move_over_an_error(desk: Desk) -> None:
    learner, page = desk.learner, desk.page
    desk.run(SLICE + "#\n")
    desk.run(SLICE)
    before = re.sub(r"\d+(?:[.,]\d+)? .?s\b", "", learner.terminal())
    problem = page.locator(".lab-moved")
    place = hold(desk, "x[1")
    move(desk, place, 1)
    learner.until(lambda: last(learner, "y") == "y [8, 9, 10, 11]", "the next row")
    move(desk, place, 2)
    learner.until(lambda: "OutOfRange" in problem.inner_text(), "the error in one line")
    move(desk, place, 1, 0)
    learner.until(lambda: last(learner, "y") == "y [4, 5, 6, 7]", "the row as it was")
    learner.until(lambda: not problem.is_visible(), "no error any more")
    let_go(desk)
    assert learner.text() == SLICE
    assert re.sub(r"\d+(?:[.,]\d+)? .?s\b", "", learner.terminal()) == before, desk.setting
    assert page.locator(".lab-error").count() == 0
    if desk.by_keys:
        desk.reach(page.locator(".cm-content"))
    place = hold(desk, "x[1")
    move(desk, place, 1, 0, -1)
    learner.until(lambda: last(learner, "y") == "y [0, 1, 2, 3]", "the first row")
    let_go(desk)
    if not desk.by_keys:
        page.click(".cm-content")
    page.keyboard.press("Control+z")
    learner.until(lambda: learner.text() == SLICE, "all of it undone")
    desk.fits()


def test_over_an_error_and_back_leaves_no_trace_and_undo_restores_once(desks: Any) -> None:
    for desk in desks():
        move_over_an_error(desk)


def move_what_writes(desk: Desk, log: Path, writes: str) -> None:
    log.unlink(missing_ok=True)
    desk.run(writes)
    place = hold(desk, "3")
    move(desk, place, 1, 2, 3)
    assert log.read_text() == "3 ", desk.setting
    let_go(desk)
    desk.learner.until(lambda: log.read_text() == "3 6 ", "one run, on release")
    desk.fits()


def test_what_writes_files_runs_on_release_alone(lab: Lab, desks: Any) -> None:
    log = lab.folder / "log.txt"
    writes = "n = 3\nwith open('log.txt', 'a') as file:\n    file.write(f'{n} ')\nprint('n', n)\n"
    for desk in desks():
        move_what_writes(desk, log, writes)


# ---- drawings -----------------------------------------------------------------------------------


def draw_digits(desk: Desk) -> None:
    learner, page = desk.learner, desk.page
    reads = {"en": "It reads", "es": "Lee"}[desk.setting.lang]
    desk.look("model")
    said, pad = page.locator(".lab-pad-said"), page.locator(".lab-pad")
    page.locator(".lab-pad-board").wait_for()
    page.locator(".lab-pad-read .lab-empty").wait_for()

    def read(digit: str) -> None:
        learner.until(lambda: said.inner_text().startswith(f"{reads} {digit} "), digit)

    if desk.by_keys:
        desk.reach(pad)
        for key in (" ", *["ArrowDown"] * 14):
            page.keyboard.press(key)
        read("1")
        page.keyboard.press("Delete")
    pad.scroll_into_view_if_needed()
    for digit, line in DIGITS.items():
        draw(learner, line)
        read(digit)
        page.locator(".lab-pad-wipe").click()
        learner.until(lambda: not said.inner_text(), "the empty pad")
    desk.fits()


def test_a_3_a_5_and_an_8_are_read(desks: Any) -> None:
    """Drawn with the mouse; a one with the keys alone. One training serves all settings."""
    for number, desk in enumerate(desks()):
        if not number:
            desk.run(READER)
        draw_digits(desk)


# ---- lessons and fixes --------------------------------------------------------------------------


def run_a_cell(desk: Desk, lesson: Lesson, number: int) -> None:
    cell, box = lesson.cells[number - 1], cell_of(desk.learner, number)
    result, key = box.locator(".lab-output-run"), box.locator(".lab-cell-run")
    desk.go("lesson")
    if cell.predict:
        box.locator("textarea").fill("?")
        box.locator("textarea").press("Enter")
    if desk.by_keys:
        key.press("Enter")
    else:
        key.click()
    result.wait_for(state="visible" if cell.varies or cell.output else "attached")
    if not cell.varies:
        wanted = (cell.output or "").rstrip("\n")
        printed = result.evaluate("each => each.textContent")
        assert printed == wanted, (lesson.slug, desk.setting)
    assert not box.locator(".lab-cell-error").is_visible()
    desk.fits()


def test_cell_5_of_each_lesson_run_first_prints_what_is_recorded(
    lab: Lab, learner: Learner
) -> None:
    """The settings take turns. (`test_lessons` has the outputs of all cells in both languages.)"""
    for index, slug in enumerate([lesson.slug for lesson in lessons("en")]):
        setting = EVERY[index % len(EVERY)]
        lesson = find_lesson(slug, setting.lang)
        run_a_cell(Desk(lab, learner, setting, slug), lesson, min(5, len(lesson.cells)))


def apply_a_fix(desk: Desk, mended: str) -> None:
    learner, page, words = desk.learner, desk.page, desk.words
    desk.run(SEED, ends="error")
    desk.look("inspector")
    name = words("apply_code", "C = A @ B.T")
    desk.press(page.get_by_role("button", name=name, exact=True))
    undo = learner.button(words("undo"))
    undo.wait_for()
    desk.go("code")
    learner.until(lambda: learner.text() == mended, "the mended text")
    learner.until(lambda: "torch.Size([3, 3])" in learner.terminal(), "the mended program's end")
    desk.go("inside")
    desk.press(undo)
    desk.go("code")
    learner.until(lambda: learner.text() == SEED, "the text as it was")
    desk.fits()


def test_apply_mends_sizes_that_differ(desks: Any) -> None:
    mended = SEED.replace("A @ B", "A @ B.T")
    for desk in desks():
        apply_a_fix(desk, mended)
