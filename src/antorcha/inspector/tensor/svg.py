"""The pieces that pictures are put together from: elements of SVG and HTML as text, escaped."""

from __future__ import annotations

from antorcha.inspector.forms import escaped


def tag(name: str, content: str = "", /, **attributes: object) -> str:
    """An element; `content` is markup. An underscore in an attribute's name is a hyphen, at the end
    of it nothing.

    >>> tag("rect", x=1, class_="cell", fill_opacity=0.5)
    '<rect x="1" class="cell" fill-opacity="0.5"/>'
    """
    words = [name]
    for key, value in attributes.items():
        if value is not None:
            text = f"{value:.6g}" if isinstance(value, float) else escaped(str(value))
            words.append(f'{key.rstrip("_").replace("_", "-")}="{text}"')
    head = " ".join(words)
    return f"<{head}>{content}</{name}>" if content else f"<{head}/>"


def text(words: str, x: float, y: float, **attributes: object) -> str:
    """A line of text whose baseline begins at (x, y)."""
    return tag("text", escaped(words), x=x, y=y, **attributes)


def titled(name: str, title: str, **attributes: object) -> str:
    """An element that says `title` when it is pointed at."""
    return tag(name, tag("title", escaped(title)), **attributes)


def drawing(
    content: str, width: float, height: float, label: str, class_: str = "", **more: object
) -> str:
    """An ``<svg>`` of that size, which shrinks with the page; `label` is for those who hear it."""
    return tag(
        "svg", content, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:g} {height:g}",
        width=float(width), height=float(height), role="img", aria_label=label,
        class_=class_ or None, **more,
    )  # fmt: skip
