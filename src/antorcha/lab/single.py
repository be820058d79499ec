"""A lesson or a program as one HTML file: text, code with its shapes, outputs, curves and film.

The file needs nothing else: it opens from disk without a network. It is at most `LIMIT` bytes long;
of a film and of drawings as much is kept as fits.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import markdown2
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers.python import PythonLexer

import antorcha
from antorcha.core.files import write_whole
from antorcha.inspector.forms import escaped, shape_text
from antorcha.inspector.vocabulary import spoken
from antorcha.lab import curves, theme, whole
from antorcha.lab.export import NotebookWords, quiz_text, step_text
from antorcha.lab.film import Film
from antorcha.lab.lesson import Cell, Challenge, Inspect, Lesson, Quiz, Text
from antorcha.lab.words import LabWords

LIMIT = 300_000  # bytes
FRAMES = (24, 20, 16, 12, 10, 8, 7, 6, 5, 4, 3, 2, 0)  # of a film: the most that fit
ROWS = 20  # tensors of a program that are listed
STYLE = Path(__file__).with_name("single.css")

_SCRIPT = """
for (const film of document.querySelectorAll(".film")) {
  const frames = [...film.querySelectorAll(".film-frame")];
  const slider = film.querySelector("input"), said = film.querySelector("output");
  const show = () => {
    frames.forEach((frame, place) => { frame.hidden = place !== Number(slider.value); });
    said.textContent = frames[slider.value].dataset.step;
  };
  slider.addEventListener("input", show);
  show();
}
"""
_STYLE_TAG = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_TITLE = re.compile(r"<title>[^<]*</title>")  # of each cell of a heat map: half of a frame
_EXTRAS = ["fenced-code-blocks", "tables", "markdown-in-html"]


def export(folder: Path, lesson: Lesson | None, program: Path | None, lang: str) -> Path:
    """Write the page of a lesson, or else of a program, into the folder; returns its path.

    Raises OSError where the program cannot be read or the folder cannot be written to.
    """
    antorcha.torch_alias.install(hide=True)
    os.environ.setdefault("MPLBACKEND", "agg")
    if lesson is not None:
        text, name = lesson_page(lesson), lesson.slug
    else:
        assert program is not None
        code = program.read_text(encoding="utf-8")
        text, name = program_page(code, program.name, str(program.parent), lang), program.stem
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.html"
    write_whole(path, text)
    return path


def lesson_page(lesson: Lesson) -> str:
    """The page of a lesson, which is run for it."""
    run = whole.WholeLesson(lesson)
    told = run.run_all()
    words = LabWords(lesson.lang)

    def body(frames: int, drawings: bool) -> Iterator[str]:
        pieces = iter(told)
        yield f"<h1>{escaped(lesson.title)}</h1>"
        yield f'<p class="muted">{escaped(words("minutes", lesson.minutes))}</p>'
        book, questions = NotebookWords(spoken(lesson.lang)), 0
        for part in lesson.parts:
            if isinstance(part, Text):
                yield _markdown(part.markdown)
            elif isinstance(part, Cell):
                cell = next(pieces)
                yield from _cell(cell, words, book("predicted") if part.predict else "")
                if cell.trains:
                    yield _film(run.film, frames, run.namespace, words)
            elif isinstance(part, Inspect):
                drawing = next(pieces).drawing
                yield f'<div class="wide">{drawing}</div>' if drawings else ""
            elif isinstance(part, Quiz):
                questions += 1
                asked = _markdown(quiz_text(part, questions, book))
                yield f'<section class="card">{asked}</section>'
            elif isinstance(part, Challenge):
                yield _challenge(part, book)

    return _fitting(lesson.title, lesson.lang, body)


def program_page(code: str, name: str, folder: str, lang: str) -> str:
    """The page of a program, which is run for it."""
    program, told = whole.run_program(code, name, folder, lang)
    words = LabWords(lang)

    def body(frames: int, drawings: bool) -> Iterator[str]:
        yield f"<h1>{escaped(name)}</h1>"
        yield from _cell(told, words)
        if told.explanation:
            yield f'<div class="wide">{told.explanation}</div>'
        for number, picture in enumerate(told.pictures if drawings else [], 1):
            source = base64.b64encode(picture).decode()
            label = escaped(words("picture", number))
            yield f'<img alt="{label}" src="data:image/png;base64,{source}">'
        if told.trains:
            yield _film(program.film, frames, program.namespace, words)
        if told.rows:
            yield f"<h2>{escaped(words('inspector'))}</h2>{_table(told.rows)}"

    return _fitting(name, lang, body)


# ---- the parts ----------------------------------------------------------------------------------


def _cell(told: whole.TextRun, words: LabWords, asked: str = "") -> Iterator[str]:
    """Code with its shapes, what it printed, its error and its curves; where a question is `asked`
    first, what it printed is folded away."""
    yield f'<pre class="code">{_code(told.code, told.hints)}</pre>'
    if told.printed.strip():
        printed = f'<pre class="output">{escaped(told.printed.rstrip())}</pre>'
        summary = f"<summary>{escaped(asked)}</summary>"
        yield f"<details>{summary}{printed}</details>" if asked else printed
    if told.error:
        yield f'<pre class="output bad">{escaped(told.error.rstrip())}</pre>'
    if told.losses:
        shown = dict(list(told.losses.items())[-len(curves.LINES) :])
        picture, label = curves.losses_told(shown, words)
        yield f'<figure>{picture}<figcaption class="muted">{escaped(label)}</figcaption></figure>'


def _code(code: str, hints: dict[int, str]) -> str:
    """Python in colours, line by line, with shapes at the ends of lines."""
    formatter = HtmlFormatter(nowrap=True)
    rows = highlight(code.rstrip("\n"), PythonLexer(), formatter).rstrip("\n").split("\n")
    return "\n".join([
        row + (f'<span class="shape">{escaped(hints[number])}</span>' if number in hints else "")
        for number, row in enumerate(rows, 1)
    ])  # fmt: skip


def _markdown(text: str) -> str:
    return str(markdown2.markdown(text, extras=_EXTRAS))


def _challenge(challenge: Challenge, words: NotebookWords) -> str:
    steps = [step_text(step, number, words) for number, step in enumerate(challenge.steps, 1)]
    head = f"## {words('challenge', challenge.title)}\n\n{challenge.intro}\n\n"
    start = f'<pre class="code">{_code(challenge.start, {})}</pre>'
    rest = _markdown("\n\n".join(steps))
    return f'<section class="card">{_markdown(head)}{start}{rest}</section>'


def _film(film: Film, count: int, names: dict[str, Any], words: LabWords) -> str:
    found = whole.frames(film, count, names, words)
    if not found:
        return ""
    label, name = escaped(words("film")), film.names(names)[0]
    shown = [
        f'<div class="film-frame wide" data-step="{escaped(step)}">{_TITLE.sub("", picture)}</div>'
        for step, picture in found
    ]
    return (
        f'<section class="film card"><h3>{label}: <code>{escaped(name)}</code></h3>'
        f'<p><input type="range" min="0" max="{len(found) - 1}" value="{len(found) - 1}" '
        f'aria-label="{label}"> <output></output></p>{"".join(shown)}</section>'
    )


def _table(rows: list[dict[str, Any]]) -> str:
    cells = [
        f"<tr><th scope='row'><code>{escaped(row['name'])}</code></th>"
        f"<td><code>{escaped(shape_text(row['shape']))}</code></td>"
        f"<td>{escaped(row['dtype'])}</td><td><code>{escaped(row['values'])}</code></td></tr>"
        for row in rows[:ROWS]
    ]
    return f"<div class='wide'><table><tbody>{''.join(cells)}</tbody></table></div>"


# ---- the whole ----------------------------------------------------------------------------------


def _fitting(title: str, lang: str, body: Callable[[int, bool], Iterator[str]]) -> str:
    """The page with as many frames as fit; if need be without drawings, and cut off at last."""
    text = ""
    for drawings in (True, False):
        for frames in FRAMES:
            text = _page(title, lang, "".join(body(frames, drawings)))
            if len(text.encode()) <= LIMIT:
                return text
    return text.encode()[: LIMIT - 100].decode(errors="ignore") + "</main></body></html>"


def _page(title: str, lang: str, body: str) -> str:
    """A whole page. Drawings bring their style with them, each its own copy: one is kept."""
    styles = dict.fromkeys(_STYLE_TAG.findall(body))
    own = STYLE.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'"
    )
    return (
        f'<!doctype html><html lang="{lang}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escaped(title)} · antorcha</title>'
        f"<style>{theme.rules()}{own}{''.join(styles)}</style></head>"
        f"<body><main>{_STYLE_TAG.sub('', body)}</main><script>{_SCRIPT}</script></body></html>\n"
    )
