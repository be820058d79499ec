"""The lab's design system: every size, space and corner is on its scale, and what is read or
pressed can be told from what it stands on, in both themes (WCAG 2.2, 1.4.3 and 1.4.11)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")

from antorcha.lab import single, theme, way_in
from antorcha.lab.panes.terminal import THEMES
from tests.lab.learner import AGAIN, Learner

TEXT, PARTS = 4.5, 3.0  # the ratios of level AA: of text, and of what marks a control or its state
LAB = Path(theme.__file__).parent
SHEETS = {path.name: path.read_text(encoding="utf-8") for path in sorted(LAB.glob("*.css"))}
SHEETS["way_in.py"] = way_in.STYLE.removeprefix(theme.rules())

# What each property may have, but for 0, inherit and their kin; in `calc` and shorthands each part.
_SPACE = rf"var\(--space-({'|'.join(map(str, theme.SPACES))})\)|-1px|auto"  # edges lie on edges
_CORNER = rf"var\(--corner-({'|'.join(theme.CORNERS)})\)|50%"  # (a circle)
_TYPE = rf"var\(--type-({'|'.join(theme.TYPE_SIZES)})\)"
_LINE = rf"var\(--line-({'|'.join(theme.LINES)})\)"
SCALES = {
    r"(padding|margin|scroll-margin)(-\w+)?|((row|column)-)?gap": _SPACE,
    r"border(-\w+-\w+)?-radius": _CORNER,
    r"font-size": _TYPE,
    r"line-height": rf"{_LINE}|(16|20|32)px",  # (of what holds one line, its height)
    r"font": rf"{_TYPE}/{_LINE} var\(--lab-\w+\)|(600 )?{_TYPE}/{_LINE} var\(--lab-\w+\)",
}
_NEUTRAL = r"0|inherit|initial"


def declarations(sheet: str) -> Iterator[tuple[str, str]]:
    """Properties and their values."""
    for found in re.finditer(r"([\w-]+):\s*([^;{}]+)[;}]", re.sub(r"/\*.*?\*/", "", sheet)):
        yield found[1], " ".join(found[2].split())


def off_scale(name: str, value: str) -> bool:
    """Has that property a value that the design system has not?"""
    value = re.sub(r"calc\(\d \* (var\([\w-]+\))\)", r"\1", value)
    value = value.removesuffix("!important").strip()
    scale = next((each for key, each in SCALES.items() if re.fullmatch(key, name)), None)
    if scale is None:
        return False
    parts = [value] if name == "font" else re.split(r" (?![^(]*\))", value)
    return not all(re.fullmatch(f"{_NEUTRAL}|{scale}", part) for part in parts)


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


def test_the_checks_find_what_they_are_for() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)
    for name, value in {
        "padding": "4px var(--space-8)", "margin-top": "var(--space-10)", "gap": "10px",
        "font-size": "13px", "border-radius": "6px", "line-height": "1.45", "font": "600 12px a",
    }.items():  # fmt: skip
        assert off_scale(name, value), name


def test_every_size_space_and_corner_is_of_the_design_system() -> None:
    wrong = [
        f"{sheet}: {name}: {value}"
        for sheet, text in SHEETS.items()
        for name, value in declarations(text)
        if off_scale(name, value)
    ]
    assert wrong == []
    written = [
        f"{path.name}: {found[0]}"
        for path in LAB.rglob("*.py")
        if path.name not in ("theme.py", "way_in.py")
        for found in re.finditer(
            r"(?:font-size|padding|margin|gap|border-radius|line-height): ?[^\"']*\d(?:px|em)|"
            r"font-size=\"?\d",
            path.read_text(encoding="utf-8"),
        )
    ]
    assert written == []


def test_text_and_edges_are_seen_on_every_ground() -> None:
    wrong = []
    for shades in (theme.LIGHT, theme.DARK):
        bg, panel = shades["bg"], shades["panel"]
        grounds = {bg, panel, mixed(panel, 0.6, bg)}  # the page, bars and rows, questions
        pairs = [(shades[name], ground, TEXT) for ground in grounds
                 for name in ("fg", "muted", "accent", "good", "bad", "negative")]  # fmt: skip
        pairs += [
            (shades["edge"], bg, PARTS),
            (shades["accent"], bg, PARTS),  # the ring around what has the focus
            (shades["accent"], shades["soft"], TEXT),  # what is chosen
            (shades["fg"], shades["soft"], TEXT),
            (shades["bad"], mixed(shades["bad"], 0.08, bg), TEXT),  # a problem
            (shades["good"], mixed(shades["good"], 0.08, bg), TEXT),  # Apply, under the pointer
            ("#ffffff", theme.ACCENT, TEXT),  # filled buttons
        ]
        wrong += [(*pair, contrast(*pair[:2])) for pair in pairs if contrast(*pair[:2]) < pair[2]]
    for shades in THEMES.values():
        for name in set(shades) - {"background", "cursor", "selectionBackground"}:
            assert contrast(shades[name], shades["background"]) >= TEXT, name
        assert contrast(shades["foreground"], shades["selectionBackground"]) >= TEXT
    assert wrong == []


def test_every_colour_and_size_of_the_styles_is_the_theme_s() -> None:
    """What is not named by a theme's colour is checked by nobody."""
    defined = set(re.findall(r"(--(?:ant|type|line|space|corner)-[\w-]+):", theme.rules()))
    assert theme.LIGHT.keys() == theme.DARK.keys()
    for name, text in SHEETS.items():
        used = set(re.findall(r"var\((--(?:ant|type|line|space|corner)-[\w-]+)\)", text))
        assert used <= defined, name
        colours = set(re.findall(r"#[0-9a-f]{3,6}\b", text))
        assert colours <= {"#fff", theme.ACCENT}, name
    assert "prefers-reduced-motion" in SHEETS["style.css"]
    assert theme.rules() in single._page("t", "en", "")
    assert way_in.STYLE.startswith(theme.rules())


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
