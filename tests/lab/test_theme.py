"""The lab's colours: text is readable on what it stands on, in both themes (WCAG 2.2, 1.4.3)."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")

from antorcha.inspector.theme import DARK, EDGE_DARK, EDGE_LIGHT, LIGHT, RADII, TYPE_SIZES
from antorcha.lab import appearance, page
from antorcha.lab.panes.terminal import THEMES
from tests.lab.learner import AGAIN, Learner

TEXT, PARTS = 4.5, 3.0  # the ratios of level AA: of text, and of what marks a control or its state
STYLE = "".join([path.read_text(encoding="utf-8") for path in page.STYLES])


def luminance(colour: str) -> float:
    """WCAG's relative luminance of a colour such as #1b2230."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def mixed(colour: str, share: float, other: str) -> str:
    """CSS's color-mix in srgb."""
    pairs = [(int(colour[k : k + 2], 16), int(other[k : k + 2], 16)) for k in (1, 3, 5)]
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in pairs)


def test_the_ratio_is_wcag_s() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_is_readable_on_every_ground(theme: dict[str, str]) -> None:
    quiz = mixed(theme["panel"], 0.6, theme["bg"])
    problem = mixed(theme["bad"], 0.08, theme["bg"])
    for ground in (theme["bg"], theme["panel"], quiz):
        for name in ("fg", "muted", "accent", "good", "bad", "negative"):
            assert contrast(theme[name], ground) >= TEXT, (name, ground)
    assert contrast(theme["bad"], problem) >= TEXT
    assert contrast(theme["accent"], theme["bg"]) >= PARTS  # the ring around what has the focus


def test_filled_buttons_are_readable() -> None:
    assert contrast("#ffffff", appearance.ACCENT) >= TEXT


def test_the_terminal_s_colours_are_readable() -> None:
    for theme in THEMES.values():
        for name in set(theme) - {"background", "cursor", "selectionBackground"}:
            assert contrast(theme[name], theme["background"]) >= TEXT, name
        assert contrast(theme["foreground"], theme["selectionBackground"]) >= TEXT


def test_edges_of_controls_are_seen() -> None:
    for edge, theme in ((EDGE_LIGHT, LIGHT), (EDGE_DARK, DARK)):
        assert contrast(edge, theme["bg"]) >= PARTS


def test_sizes_and_corners_are_of_one_system() -> None:
    sizes = {float(size) for size in re.findall(r"font(?:-size)?: (?:600 )?([\d.]+)px", STYLE)}
    assert sizes <= {*TYPE_SIZES}
    corners = re.findall(r"border-radius: ([\d.]+)px;", STYLE)
    assert {float(corner) for corner in corners} <= {2, *RADII, 9, 16}  # bars; pills


def test_every_colour_of_the_styles_is_the_theme_s() -> None:
    """What is not named by a theme's colour is checked by nobody."""
    used = set(re.findall(r"var\(--ant-(\w+)\)", STYLE))
    assert used <= {*LIGHT, "edge"}
    assert LIGHT.keys() == DARK.keys()
    assert set(re.findall(r"#[0-9a-f]{3,6}\b", STYLE)) <= {"#fff"}
    assert "prefers-reduced-motion" in STYLE


# Colours of a word of the lesson's first cell, in the lesson and in the editor.
_SHADES = """word => [".lab-text .codehilite span", ".lab-editor .cm-line span"].map(place => {
  const found = [...document.querySelectorAll(place)].find(each => each.textContent === word);
  return found && getComputedStyle(found).color;
})"""


def _is_one_shade(page: Any, word: str) -> bool:
    return len({*page.evaluate(_SHADES, word)}) == 1


@pytest.mark.slow
@AGAIN
def test_code_has_one_palette_in_lesson_and_editor(learner: Learner) -> None:
    page = learner.page
    for _ in range(2):  # in both themes
        for word in ("import", "11.0", "temps", "print"):
            learner.until(partial(_is_one_shade, page, word), word)
        ground = "each => getComputedStyle(each).backgroundColor"
        grounds = [page.locator(each).first.evaluate(ground) for each in ("body", ".cm-editor")]
        assert grounds[0] == grounds[1]
        learner.button("Light or dark").click()
    assert learner.problems == []
