"""Colours and type of every picture that the inspector makes: one place for light and for dark.

What is drawn stands in an element of class ``ant`` and names colours by custom properties, such as
``fill: var(--ant-fg)``. They follow the system, unless an element around it has
``data-theme="light"`` or ``"dark"`` (Jupyter's and VS Code's own marks are known, too). Colours of
data are drawn by opacity over the background, so they need no second set.
"""

from __future__ import annotations

LIGHT = {
    "bg": "#ffffff",  # the page
    "panel": "#f5f6f8",  # boxes upon it
    "fg": "#1b2230",  # text
    "muted": "#566072",  # text of second rank
    "line": "#cdd3dc",  # borders, axes
    "accent": "#b34a06",  # what is looked at: the cells of a view, the current node
    "soft": "#fde8d7",  # its background
    "positive": "#d9650b",  # data above zero, by opacity
    "negative": "#2068b0",  # data below zero
    "nan": "#9c1fb0",  # what is no number, or infinite
    "good": "#1a7f37",
    "bad": "#c0261c",
}
DARK = {
    "bg": "#14181f",
    "panel": "#1c222b",
    "fg": "#e6e9ef",
    "muted": "#a0aaba",
    "line": "#3a4453",
    "accent": "#ffa266",
    "soft": "#4a2e19",
    "positive": "#ff9142",
    "negative": "#5fadf5",
    "nan": "#e58af2",
    "good": "#4ac26b",
    "bad": "#ff7b72",
}
SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif"
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"

_IS_LIGHT = ('[data-theme="light"]', '[data-jp-theme-light="true"]', ".vscode-light")
_IS_DARK = ('[data-theme="dark"]', '[data-jp-theme-light="false"]', ".vscode-dark")


def _values(colours: dict[str, str]) -> str:
    return "".join([f"--ant-{name}:{value};" for name, value in colours.items()])


def _below(marks: tuple[str, ...]) -> str:
    """Our element below, or with, one of these marks."""
    return ",".join([f"{mark} .ant,.ant{mark}" for mark in marks])


COLOURS = (
    f".ant{{{_values(LIGHT)}color-scheme:light}}"
    f"@media(prefers-color-scheme:dark){{.ant{{{_values(DARK)}color-scheme:dark}}}}"
    f"{_below(_IS_LIGHT)}{{{_values(LIGHT)}color-scheme:light}}"
    f"{_below(_IS_DARK)}{{{_values(DARK)}color-scheme:dark}}"
)
"""The custom properties ``--ant-bg``, ``--ant-fg``, ... for both themes."""

TYPE = (
    f".ant{{font:13px/1.45 {SANS};background:var(--ant-bg);color:var(--ant-fg)}}"
    f".ant code,.ant .mono{{font-family:{MONO};font-size:12px}}"
    ".ant .muted{color:var(--ant-muted)}"
    ".ant svg{display:block;max-width:100%;height:auto}"
    ".ant svg text{fill:var(--ant-fg)}"
    f".ant svg .mono{{font-family:{MONO}}}"
    ".ant svg .muted{fill:var(--ant-muted)}"
)
"""Text, in HTML and in SVG: classes ``mono`` and ``muted``."""


def style(*more: str) -> str:
    """The ``<style>`` element that a picture carries with it: theme, type, and its own rules."""
    return f"<style>{COLOURS}{TYPE}{''.join(more)}</style>"
