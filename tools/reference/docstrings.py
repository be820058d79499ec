"""A docstring as HTML: its text, its lists of arguments, and its examples, which are run.

Docstrings are plain text with ``code`` between double backquotes, ``Args:`` and the like above
indented items, and examples as Python shows them. Nothing else is markup, so no text can break a
page.
"""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import os
import re
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

import numpy as np
from docutils.utils.math import latex2mathml
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonConsoleLexer, PythonLexer

import antorcha
from antorcha import array_api

Link = Callable[[str], str | None]
"""From a name to the address of what says more of it; None of other words."""

_SECTION = re.compile(r"^(Args|Arguments|Attributes|Returns|Raises|Yields|Keyword args):\s*$")
_LABEL = re.compile(r"^(Shape|Shapes|Returns|Raises|Support|Note|Example|Args):\s+")
_ITEM = re.compile(r"^(\*{0,2}[\w.*]+(?:, \*{0,2}\w+)*)\s*(?:\(([^)]*)\))?: ?(.*)", re.DOTALL)
_BULLET = re.compile(r"^(?:[-*]|\d+\.) +")
_INLINE = re.compile(
    r":math:`(?P<math>[^`]+)`|:\w+:`~?(?P<role>[^`]+)`|``(?P<code>.+?)``|`(?P<word>[^`\n]+)`"
    r"|(?P<url>https?://[^\s<>)]*[^\s<>).,;])", re.DOTALL
)  # fmt: skip
_PAGE = re.compile(r"\s*See (https://docs\.pytorch\.org/\S+?)\.(?=\s|$)")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
TITLES = {"Args": "Arguments", "Keyword args": "Arguments"}
USUAL: dict[str, Any] = {"torch": antorcha, "antorcha": antorcha, "np": np, "xp": array_api}
"""What an example may use without importing it, as readers do with these short names."""
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_FORMATTER = HtmlFormatter(nowrap=True)


class ExampleError(Exception):
    """An example that does not do what its docstring shows."""


def split_page(doc: str) -> tuple[str, str | None]:
    """A docstring without the line that names PyTorch's page, and the page's address."""
    found = _PAGE.search(doc)
    if found is None:
        return doc, None
    return doc[: found.start()] + doc[found.end() :], found[1]


def summary(doc: str | None) -> str:
    """The first sentence of a docstring, or its first paragraph where that is short."""
    first = " ".join(inspect.cleandoc(doc or "").split("\n\n")[0].split())
    if first.startswith(">>>"):
        return ""
    if len(first) > 110:
        ends = [m.end() for m in re.finditer(r"[.;:](?= )", first)]
        first = first[: next((e for e in ends if e > 20), len(first))].rstrip(";:")
    return first


def inline(text: str, link: Link) -> str:
    """A line of text with its code, links and formulas."""
    parts, at = [], 0
    for found in _INLINE.finditer(text):
        parts.append(escape(text[at : found.start()], quote=False))
        at = found.end()
        if found["math"]:
            parts.append(latex2mathml.tex2mathml(found["math"], as_block=False))
        elif found["url"]:
            address = escape(found["url"])
            parts.append(f'<a class="external" href="{address}">{address}</a>')
        else:
            parts.append(code(found["role"] or found["code"] or found["word"], link))
    parts.append(escape(text[at:], quote=False))
    return "".join(parts)


def code(words: str, link: Link) -> str:
    """Words as code, a link where they are a name that has an entry."""
    shown = " ".join(words.split())
    text = f"<code>{escape(shown, quote=False)}</code>"
    address = link(shown.removeprefix("antorcha.").removesuffix("()"))
    return f'<a href="{address}">{text}</a>' if address else text


def html(doc: str | None, link: Link, where: str, home: str = "") -> str:
    """The docstring of what the module `home` defines, whose names its examples may use; `where`
    names it in the error of an example that fails."""
    parts = []
    # (the face's own names would hide Python's: float, int)
    known = vars(sys.modules[home]) if home in sys.modules and home != "antorcha" else {}
    names = {**known, **USUAL}
    for part in _parts(inspect.cleandoc(doc or "")):
        if isinstance(part, str):
            parts += _blocks(part, link)
        else:
            parts.append(console(_run(part, names, where)))
    return "\n".join(parts)


def console(text: str) -> str:
    """A session of Python, coloured."""
    return _fenced(highlight(text, PythonConsoleLexer(), _FORMATTER), "pycon")


def python(text: str) -> str:
    """A program, coloured."""
    return _fenced(highlight(text, PythonLexer(), _FORMATTER), "python")


def _fenced(lines: str, language: str) -> str:
    body = f'<div class="highlight"><pre><span></span>{lines}</pre></div>'
    return f'<div class="highlight-{language} notranslate">{body}</div>'


def _parts(doc: str) -> Iterator[str | list[doctest.Example]]:
    """Text and examples in turns; examples that follow each other are one session."""
    session: list[doctest.Example] = []
    for part in doctest.DocTestParser().parse(doc):
        if isinstance(part, doctest.Example):
            session.append(part)
        elif part.strip():
            if session:
                yield session
                session = []
            yield part
    if session:
        yield session


def _run(session: list[doctest.Example], names: dict[str, Any], where: str) -> str:
    """The session as it goes: code, and what it printed."""
    test = doctest.DocTest(session, names, where, None, 0, None)
    report = io.StringIO()
    runner = _Recorder(optionflags=OPTIONS, verbose=False)
    with _somewhere(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        antorcha.manual_seed(0)
        done = runner.run(test, out=report.write, clear_globs=False)
    names.update(test.globs)
    if done.failed:
        raise ExampleError(f"{where}: an example does not do what it shows\n{report.getvalue()}")
    lines = []
    for example, got in zip(session, runner.printed, strict=True):
        first, *more = example.source.rstrip("\n").split("\n")
        lines += [f">>> {first}", *[f"... {line}".rstrip() for line in more]]
        lines += got.rstrip("\n").split("\n") if got.strip() else []
    return "\n".join(lines)


class _Recorder(doctest.DocTestRunner):
    """Keeps what each example printed; where the docstring leaves something open (`...`), or an
    address in memory stands in it, what the docstring says."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.printed: list[str] = []

    def report_success(self, out: Any, test: Any, example: doctest.Example, got: str) -> None:
        open_ = "..." in example.want or example.exc_msg is not None or _ADDRESS.search(got)
        self.printed.append(example.want if open_ else got)

    def report_failure(self, out: Any, test: Any, example: doctest.Example, got: str) -> None:
        self.printed.append(got)
        super().report_failure(out, test, example, got)

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        self.printed.append("")
        super().report_unexpected_exception(out, test, example, exc_info)


@contextlib.contextmanager
def _somewhere() -> Iterator[None]:
    """A folder for what examples write; the default settings again after them."""
    before, kind, threads = os.getcwd(), antorcha.get_default_dtype(), antorcha.get_num_threads()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
            antorcha.set_default_dtype(kind)
            antorcha.set_num_threads(threads)


def _blocks(text: str, link: Link) -> Iterator[str]:
    """Paragraphs, lists, sections and blocks of code."""
    blocks = [b for b in re.split(r"\n\s*\n", textwrap.dedent(text).strip("\n")) if b.strip()]
    literal = False
    for block in blocks:
        indented = all(line.startswith("    ") for line in block.split("\n"))
        if literal and indented:
            yield python(textwrap.dedent(block))
            continue
        literal = block.rstrip().endswith("::")
        yield from _block(block.rstrip().removesuffix(":") if literal else block, link)


def _block(block: str, link: Link) -> Iterator[str]:
    """One paragraph, which may open with a list or a section."""
    lines = block.split("\n")
    head = _SECTION.match(lines[0])
    if head and len(lines) > 1:
        yield f'<p class="ref-head">{TITLES.get(head[1], head[1])}</p>'
        yield _items(textwrap.dedent("\n".join(lines[1:])), link)
        return
    for at, line in enumerate(lines):  # text, then a list or a section without an empty line
        if at and (_SECTION.match(line) or _BULLET.match(line.lstrip())):
            if not _BULLET.match(lines[0].lstrip()):
                yield from _block("\n".join(lines[:at]), link)
                yield from _block("\n".join(lines[at:]), link)
                return
            break
    if _BULLET.match(lines[0].lstrip()):
        points = re.split(r"\n(?=\s*(?:[-*]|\d+\.) )", textwrap.dedent(block))
        shown = [inline(_BULLET.sub("", point.strip(), count=1), link) for point in points]
        yield "<ul>" + "".join([f"<li>{point}</li>" for point in shown]) + "</ul>"
        return
    label = _LABEL.match(lines[0])
    text = inline("\n".join([line.strip() for line in lines]), link)
    if label:
        word = TITLES.get(label[1], label[1])
        text = f"<strong>{word}:</strong> {text[label.end() :].lstrip()}"
    elif lines[0].startswith("    "):
        yield f"<blockquote><p>{text}</p></blockquote>"
        return
    yield f"<p>{text}</p>"


def _items(text: str, link: Link) -> str:
    """The list below ``Args:``: an item begins where a line is not indented further."""
    parts = []
    for item in re.split(r"\n(?=\S)", text.strip("\n")):
        item = "\n".join([line.strip() for line in item.split("\n")])
        found = _ITEM.match(item)
        if found is None:
            parts.append(f"<dd>{inline(item, link)}</dd>")
            continue
        kind = f' <span class="ref-kind">{escape(found[2])}</span>' if found[2] else ""
        parts.append(f"<dt><code>{escape(found[1])}</code>{kind}</dt>")
        parts.append(f"<dd>{inline(found[3], link)}</dd>")
    return f'<dl class="ref-args">{"".join(parts)}</dl>'
