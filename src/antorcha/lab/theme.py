"""The one design system of the lab's pages: colours, sizes of type, spaces, corners.

Style sheets name them as custom properties: ``var(--ant-fg)``, ``var(--type-code)``,
``var(--space-8)``, ``var(--corner-box)``. The colours are those of the inspector's drawings.
"""

from __future__ import annotations

from antorcha.inspector import theme

LIGHT = {**theme.LIGHT, "edge": "#8791a1"}
DARK = {**theme.DARK, "edge": "#6b7688"}
"""The colours of each theme. ``edge`` is round what can be pressed or filled in: 3:1 on the page
(WCAG 2.2, 1.4.11)."""
ACCENT = LIGHT["accent"]  # of filled buttons, with white upon it, in both themes

TYPE_SIZES = {"note": 12, "code": 13.5, "text": 16, "part": 20, "title": 28}
"""Pixels: notes; code and controls; reading; titles of parts; the title."""
LINES = {"text": 1.5, "title": 1.2}
"""Heights of lines, in sizes of their type."""
SPACES = (4, 8, 12, 16, 24, 40)
"""Pixels between things."""
CORNERS = {"small": 4, "box": 8}
"""Pixels: corners of controls, and of what holds others."""


def _properties(prefix: str, values: dict[str, str]) -> str:
    return "".join([f"--{prefix}-{name}:{value};" for name, value in values.items()])


def _pixels(values: dict[str, float]) -> dict[str, str]:
    return {name: f"{value:g}px" for name, value in values.items()}


_SIZES = (
    _properties("type", _pixels({**TYPE_SIZES}))
    + _properties("line", {name: f"{value:g}" for name, value in LINES.items()})
    + _properties("space", _pixels({f"{space}": space for space in SPACES}))
    + _properties("corner", _pixels({**CORNERS}))
    + f"--lab-sans:{theme.SANS};--lab-mono:{theme.MONO};"
)


def rules(dark: str = "") -> str:
    """The rules that define the custom properties; dark is the page where the selector `dark`
    holds, and without one where the system is."""
    shades = f"{_properties('ant', DARK)}color-scheme:dark"
    begin = f":root{{{_SIZES}{_properties('ant', LIGHT)}color-scheme:light}}"
    if dark:
        return f"{begin}{dark}{{{shades}}}"
    return f"{begin}@media(prefers-color-scheme:dark){{:root{{{shades}}}}}"
