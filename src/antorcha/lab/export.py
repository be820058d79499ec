"""Lessons as Jupyter notebooks.

Cells stay cells, with what they print. A quiz becomes text with its answers folded away; a
challenge becomes its start, and for every step a cell for the answer and a cell that checks it.
The format is nbformat 4.5 (https://nbformat.readthedocs.io).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from antorcha.core.files import write_whole
from antorcha.inspector.vocabulary import Vocabulary, spoken
from antorcha.lab.lesson import (
    Cell,
    Challenge,
    Inspect,
    Lesson,
    LessonView,
    Quiz,
    Step,
    Text,
    languages,
    lessons,
)

Notebook: TypeAlias = dict[str, Any]


class NotebookWords(Vocabulary):
    """What a notebook says beside its lesson."""

    table = {  # noqa: RUF012
        "minutes": ("{0} minutes", "{0} minutos"),
        "question": ("Question {0}", "Pregunta {0}"),
        "answer": ("Answer", "Respuesta"),
        "predicted": ("What will it print? Say it first.", "¿Qué imprimirá? Dilo antes."),
        "right": ("Right.", "Correcto."),
        "wrong": ("No.", "No."),
        "challenge": ("Challenge: {0}", "Reto: {0}"),
        "step": ("Step {0}", "Paso {0}"),
        "hint": ("Hint", "Pista"),
        "solution": ("A solution", "Una solución"),
        "here": ("# your code for step {0}", "# tu código para el paso {0}"),
        "passed": ("Step {0}: right.", "Paso {0}: correcto."),
        "view": (
            "*Here `antorcha lab` shows a picture of your model.*",
            "*Aquí `antorcha lab` muestra una imagen de tu modelo.*",
        ),
        "picture": ("torch.inspect({0})", 'torch.inspect({0}, lang="es")'),
    }


def export(folder: str | Path, langs: Sequence[str] | None = None) -> list[Path]:
    """Write every lesson to ``folder/<language>/<lesson>.ipynb``; return the files' paths.

    `langs` are the languages, all of them unless given. A file that is there is replaced, whole or
    not at all. Raises OSError where the folder cannot be written to.
    """
    written = []
    for lang in languages() if langs is None else langs:
        for lesson in lessons(lang):
            path = Path(folder) / lang / lesson.path.with_suffix(".ipynb").name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(notebook(lesson), indent=1, ensure_ascii=False) + "\n")
            written.append(path)
    return written


def notebook(lesson: Lesson) -> Notebook:
    """The lesson as a notebook's JSON."""
    words = NotebookWords(spoken(lesson.lang))
    head = f"# {lesson.title}\n\n*{words('minutes', lesson.minutes)}*"
    cells = [_markdown(head), *_cells(lesson, words)]
    for number, cell in enumerate(cells):
        cell["id"] = f"{lesson.slug[:50]}-{number}"
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cells(lesson: Lesson, words: NotebookWords) -> Iterator[Notebook]:
    questions = 0
    for part in lesson.parts:
        match part:
            case Text():
                yield _markdown(part.markdown)
            case Cell():
                yield _code(part.code, None if part.predict else part.output)
                if part.predict:
                    yield _markdown(folded(words("predicted"), f"```text\n{part.output}```"))
            case Inspect():
                yield _code(words("picture", part.expression))
            case LessonView():
                yield _markdown(words("view"))
            case Quiz():
                questions += 1
                yield _markdown(quiz_text(part, questions, words))
            case Challenge():
                yield from _challenge(part, words)


def quiz_text(quiz: Quiz, number: int, words: NotebookWords) -> str:
    """A question as Markdown, its answers folded away."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    asked, answers = [], []
    for letter, option in zip(letters, quiz.options):
        asked.append(f"- **{letter}.** {option.text}")
        verdict = words("right" if option.right else "wrong")
        answers.append(f"- **{letter}.** **{verdict}** {option.why}")
    title = words("question", number)
    options, hidden = "\n".join(asked), folded(words("answer"), "\n".join(answers))
    return f"### {title}\n\n{quiz.question}\n\n{options}\n\n{hidden}"


def _challenge(challenge: Challenge, words: NotebookWords) -> Iterator[Notebook]:
    title = words("challenge", challenge.title)
    yield _markdown(f"## {title}\n\n{challenge.intro}")
    yield _code(challenge.start)
    for number, step in enumerate(challenge.steps, 1):
        yield _markdown(step_text(step, number, words))
        yield _code(words("here", number))
        passed = words("passed", number)
        yield _code(f"{step.check}\nprint({passed!r})")


def step_text(step: Step, number: int, words: NotebookWords) -> str:
    """A step of a challenge as Markdown, its hints and its solution folded away."""
    folds = [folded(words("hint"), hint) for hint in step.hints]
    folds.append(folded(words("solution"), f"```python\n{step.solution.rstrip()}\n```"))
    title = words("step", number)
    return "\n\n".join([f"### {title}\n\n{step.ask}", *folds])


def folded(summary: str, markdown: str) -> str:
    """Markdown folded away under a line of text."""
    # The blank lines make it Markdown again inside of the HTML.
    return f"<details>\n<summary>{summary}</summary>\n\n{markdown}\n\n</details>"


def _markdown(text: str) -> Notebook:
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def _code(code: str, printed: str | None = None) -> Notebook:
    stream = {"output_type": "stream", "name": "stdout", "text": _lines(printed or "")}
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [stream] if printed else [],
        "source": _lines(code.rstrip("\n")),
    }


def _lines(text: str) -> list[str]:
    """Line by line, as notebooks are kept: a change of one line is one line in a diff."""
    return text.splitlines(keepends=True)
