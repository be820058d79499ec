"""The lab's views as a browser lays them out: nothing overflows or is cut off, all text can be
read, one button is filled, and whoever has no mouse sees where the focus is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")
pytest.importorskip("ipykernel", reason="needs antorcha[lab]")

from antorcha.inspector.vocabulary import LANGUAGES
from antorcha.lab.layout import QUIET
from antorcha.lab.words import LabWords
from tests.lab.learner import AGAIN, Lab, Learner
from tools.draw_lab import MISTAKE, TRAINING

WIDTHS = 1280, 400
PARTS = ("inspector", "model", "graph", "loss", "profiler", "pictures")

# What is wrong with the page as it shows, in words. (Drawings and the terminal have their own
# tests, and what scrolls is not cut off.)
LOOK = """() => {
  const wrong = [], shown = each => each.checkVisibility({visibilityProperty: true});
  const parts = colour => { const all = colour.match(/[\\d.]+/g).map(Number);
    const scale = colour.startsWith("color(") ? 255 : 1;
    return [...all.slice(0, 3).map(value => value * scale), all[3] ?? 1]; };
  const over = (top, under) => [0, 1, 2].map(k => top[k] * top[3] + under[k] * (1 - top[3]));
  const light = colour => { const all = colour.map(value => value / 255)
      .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * all[0] + 0.7152 * all[1] + 0.0722 * all[2]; };
  const ground = each => { const found = [];
    for (; each; each = each.parentElement)
      found.push(parts(getComputedStyle(each).backgroundColor));
    return found.reverse().reduce((under, top) => over(top, under), [255, 255, 255]); };
  if (document.documentElement.scrollWidth > innerWidth) wrong.push("the page overflows");
  const filled = [...document.querySelectorAll("button")].filter(each => shown(each)
    && each.classList.contains("bg-primary"));
  if (filled.length > 1) wrong.push("filled: " + filled.map(each => each.innerText));
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim(), each = walk.currentNode.parentElement;
    const hidden = "svg, .xterm, .q-icon, script, style, [disabled], .lab-hints-stale, "
      + "[aria-hidden]";
    if (!text || !shown(each) || each.closest(hidden)) continue;
    const range = document.createRange();
    range.selectNodeContents(walk.currentNode);
    const box = range.getBoundingClientRect();
    if (!box.width || box.bottom < 0 || box.top > innerHeight) continue;
    const style = getComputedStyle(each), under = ground(each);
    const [high, low] = [light(over(parts(style.color), under)), light(under)]
      .sort((a, b) => b - a);
    if ((high + 0.05) / (low + 0.05) < 4.5) wrong.push("contrast: " + text.slice(0, 40));
    for (let holder = each; holder !== document.body; holder = holder.parentElement) {
      const held = getComputedStyle(holder), edge = holder.getBoundingClientRect();
      if (["auto", "scroll"].includes(held.overflowX)) break;
      const across = held.overflowX === "hidden" && box.right > edge.right + 1.5;
      const down = held.overflowY === "hidden" && box.bottom > edge.bottom + 3;
      if (across || down) { wrong.push("cut off: " + text.slice(0, 40)); break; }
    }
  }
  return wrong;
}"""

# What has the focus, if nothing shows that it has.
UNSEEN = """() => {
  const held = document.activeElement;
  for (let each = held, k = 0; each && each !== document.body && k < 8; each = each.parentElement) {
    const style = getComputedStyle(each), after = getComputedStyle(each, "::after");
    if (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2) return "";
    if (!k++ && style.boxShadow !== "none") return "";
    if (each.matches(".q-field__control") && parseFloat(after.borderTopWidth) >= 2) return "";
  }
  return held === document.body ? "" : held.outerHTML.slice(0, 160);
}"""


def views(learner: Learner, words: LabWords) -> Iterator[str]:
    """Brings up one view after the other, and names it."""
    page = learner.page
    base = re.sub(r"(?<=\d)/.*", "", page.url)

    def tab(key: str) -> Any:
        return page.get_by_role("tab", name=words(key), exact=True)

    page.goto(f"{base}/home?lang={words.lang}")
    page.get_by_text(words("goal_ready")).wait_for()
    yield "home"
    page.goto(f"{base}/lesson/saving?lang={words.lang}")
    page.wait_for_selector(".cm-content")
    for part in PARTS:
        tab(part).click()
        yield f"empty {part}"
    learner.write(MISTAKE)
    learner.press_run()
    page.locator(".lab-why h3").first.wait_for()
    yield "error"
    quiz = page.locator(".lab-quiz").first
    quiz.locator(".lab-option").first.click()
    quiz.scroll_into_view_if_needed()
    yield "quiz"
    learner.write(TRAINING)
    learner.press_run()
    page.locator(".lab-row").first.wait_for()
    for part in PARTS:
        tab(part).click()
        yield f"filled {part}"


def walked(page: Any, most: int = 80) -> Iterator[str]:
    """The elements that Tab leads to and that do not show it, from the page's beginning."""
    page.evaluate("document.activeElement.blur()")
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('.cm-editor') !== null"):
            page.keyboard.press("Escape")
        if page.evaluate(UNSEEN):  # (the editor marks its focus a moment later)
            page.wait_for_timeout(200)
        if unseen := page.evaluate(UNSEEN):
            yield unseen


@pytest.mark.slow
@AGAIN
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_view_can_be_read_and_walked(learner: Learner, lang: str) -> None:
    page, words, wrong = learner.page, LabWords(lang), []
    for view in views(learner, words):
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            if width < 900 and view != "home":
                place = "lesson" if view == "quiz" else "inside"
                page.locator(".lab-places").get_by_role("tab", name=words(place)).click()
            for _ in ("light", "dark"):
                learner.button(words("theme")).click()
                page.mouse.move(0, 0)
                page.wait_for_timeout(500)
                wrong += [f"{view}, {width}: {each}" for each in page.evaluate(LOOK)]
        page.set_viewport_size({"width": 1280, "height": 800})
        if view in ("home", "error", "filled loss"):
            wrong += [f"{view}: no focus is seen on {each}" for each in walked(page)]
    assert wrong == [], "\n".join(wrong)
    assert learner.problems == []


@pytest.mark.slow
@AGAIN
def test_the_first_start_opens_home_and_the_terminal_grows(tmp_path: Path, context: Any) -> None:
    share = "getComputedStyle(document.querySelector('.lab-main')).getPropertyValue('--lab-rows')"
    lab = Lab(tmp_path, "")
    learner = Learner(context.new_page())
    page = learner.page
    try:
        page.goto(lab.address)
        page.wait_for_url("**/home?lang=en")
        page.locator(".lab-go", has_text="Begin: 1.").press("Enter")
        page.wait_for_selector(".cm-content")
        assert float(page.evaluate(share)) == QUIET
        low = page.locator(".lab-below").bounding_box()
        high = page.locator(".lab-main").bounding_box()
        assert low["height"] == pytest.approx(0.3 * high["height"], abs=2)
        page.locator(".lab-nothing:visible button").press("Enter")
        learner.until(lambda: learner.ended("Done in"), "the run")
        learner.until(lambda: float(page.evaluate(share)) < 60, "a terminal with room")
        page.locator(".lab-row").first.wait_for()
        assert page.locator(".lab-nothing:visible").count() == 0
        page.reload()
        page.wait_for_selector(".cm-content")
        assert float(page.evaluate(share)) < 60
        assert learner.problems == []
    finally:
        page.close()
        lab.close()
    lab = Lab(tmp_path, "")
    lab.close()
    assert "/lesson/fundamentals?" in lab.address
