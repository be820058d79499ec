"""What is wrong with a page of the lab as a browser lays it out; walks over it by Tab alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from antorcha.lab.words import LabWords
from tests.lab.learner import Learner

WIDTHS = 1280, 400
MOST = 400  # stops of a walk

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
  const mains = [...document.querySelectorAll("main, [role=main]")].length;
  if (mains !== 1) wrong.push(mains + " main landmarks");
  if (!document.querySelector("header") || document.querySelector("main header"))
    wrong.push("no header before what is main");
  const filled = [...document.querySelectorAll("button")].filter(each => shown(each)
    && each.classList.contains("bg-primary"));
  if (filled.length > 1) wrong.push("filled: " + filled.map(each => each.innerText));
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim(), each = walk.currentNode.parentElement;
    const hidden = "svg, .xterm, .q-icon, script, style, [disabled], [data-stale], "
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
      if (held.textOverflow === "ellipsis") break;  // what is left out is marked
      const across = held.overflowX === "hidden" && box.right > edge.right + 1.5;
      const down = held.overflowY === "hidden" && box.bottom > edge.bottom + 3;
      if (across || down) { wrong.push("cut off: " + text.slice(0, 40)); break; }
    }
  }
  return wrong;
}"""

# Colours change at once, and no frame must be waited for.
STILL = "*, *::before, *::after { transition: none !important; }"
# Is the page dark (or light), with all that the lab itself has to tell of it?
TURNED = """dark => {
  const ground = each => getComputedStyle(each).backgroundColor;
  const editor = document.querySelector(".cm-editor");
  return document.body.classList.contains("body--dark") === dark
    && document.querySelector("[data-theme]").dataset.theme === (dark ? "dark" : "light")
    && (!editor || ground(editor) === ground(document.body));
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


def connected(learner: Learner) -> None:
    """Wait until the page of a lesson or a file has a connection: what is pressed before is lost.
    (Names of the editor come over it.)"""
    learner.page.wait_for_selector(".cm-content[aria-label]", state="attached")


def turn(learner: Learner, words: LabWords) -> None:
    """To the other theme. (Menus that are open stay so: no pointer goes down.)"""
    page = learner.page
    is_dark = page.evaluate("document.body.classList.contains('body--dark')")
    learner.button(words("theme")).evaluate("each => each.click()")
    page.wait_for_function(TURNED, arg=not is_dark, polling=20)


def faults(
    learner: Learner, words: LabWords, view: str, place: str = "", opens: Callable[[], Any] = bool
) -> Iterator[str]:
    """What is wrong with a view at both widths and in both themes.

    Args:
        learner: whose page it is.
        words: in its language.
        view: what it is called in what is found.
        place: which part shows where the page is narrow; "" for a page without parts.
        opens: opens what the next key press closes, at each width.
    """
    page = learner.page
    page.add_style_tag(content=STILL)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        if width < 900 and place:
            page.locator(".lab-places").get_by_role("tab", name=words(place)).click()
        page.mouse.move(0, 0)
        opens()
        for _ in ("light", "dark"):
            turn(learner, words)
            yield from [f"{view}, {width}: {each}" for each in page.evaluate(LOOK)]
        if opens is not bool:
            page.keyboard.press("Escape")
            page.locator(".q-menu").wait_for(state="hidden")
    page.set_viewport_size({"width": 1280, "height": 800})
    yield from [f"{view}: {each}" for each in learner.problems]
    learner.problems.clear()


def step(learner: Learner, key: str = "Tab") -> str:
    """Go on to what is next for whoever has no mouse; gives it, if nothing shows that it has the
    focus. (In the editor Tab indents: Escape first.)"""
    page = learner.page
    if page.evaluate("document.activeElement.closest('.cm-editor') !== null"):
        page.keyboard.press("Escape")
    page.keyboard.press(key)
    if page.evaluate(UNSEEN):  # (the editor marks its focus a moment later)
        page.wait_for_timeout(200)
    return str(page.evaluate(UNSEEN))


def walked(learner: Learner, region: str = "body", most: int = 80) -> Iterator[str]:
    """What Tab leads to in a part of the page, from its beginning, without showing it."""
    page, inside = learner.page, f"document.activeElement.closest({region!r}) !== null"
    first = ":is(button, a[href], input, [tabindex='0']):not([disabled]):visible"
    page.locator(region).locator(first).first.focus()
    for _ in range(most):
        if unseen := step(learner):
            yield unseen
        if not page.evaluate(inside):
            break


def reach(learner: Learner, target: str, key: str = "Tab") -> None:
    """Press a key until what has the focus is one of those that the selector names; the focus shows
    all the way."""
    wanted = learner.page.locator(target)
    for _ in range(MOST):
        if wanted.evaluate_all("all => all.includes(document.activeElement)"):
            return
        unseen = step(learner, key)
        assert not unseen, f"on the way to {target} no focus is seen on {unseen}"
    raise AssertionError(f"{key} does not lead to {target}")
