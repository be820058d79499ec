"""A lesson or a program run from the top to its end, for a page that shows all that came of it."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass, field
from typing import Any

import antorcha
from antorcha.lab import namespace
from antorcha.lab.cells import MOST, CellsRun
from antorcha.lab.film import Film
from antorcha.lab.lesson import Cell, Inspect, Lesson
from antorcha.lab.process_reset import Beginning
from antorcha.lab.program import ProgramRun, no_running_loop, traceback_text
from antorcha.lab.words import LabWords


@dataclass
class TextRun:
    """What came of one piece of code: what it printed, and what it showed."""

    code: str
    printed: str = ""
    error: str = ""
    drawing: str = ""  # of a tensor, as HTML
    explanation: str = ""
    hints: dict[int, str] = field(default_factory=dict)  # by line of the code, from 1
    losses: dict[str, Any] = field(default_factory=dict)
    trains: bool = False  # is the film's last step one of its?
    pictures: list[bytes] = field(default_factory=list)  # PNG
    rows: list[dict[str, Any]] = field(default_factory=list)


class WholeLesson(CellsRun):
    """A lesson's cells, and the tensors that it shows, in order."""

    def __init__(self, lesson: Lesson) -> None:
        super().__init__([cell.code for cell in lesson.cells], lesson.file, Beginning())
        self._lesson = lesson

    def run_all(self) -> list[TextRun]:
        """Run it; gives what came of each cell and of each tensor that is shown."""
        self._compile()
        told: list[TextRun] = []
        begins: dict[int, int] = {}  # of a cell among `told`: the line before its first
        line = 0
        with self._as_main(), no_running_loop():
            for part in self._lesson.parts:
                if isinstance(part, Cell):
                    begins[len(told)] = line
                    told.append(self._tell(part, line))
                    line += part.code.rstrip("\n").count("\n") + 2
                elif isinstance(part, Inspect):
                    told.append(TextRun(part.expression, drawing=self._draw(part)))
        self.film.finish()
        _share_hints(told, begins, self.hints.as_list())
        _mark_last([each for number, each in enumerate(told) if number in begins])
        return told

    def _tell(self, cell: Cell, line: int) -> TextRun:
        text, steps = io.StringIO(), self.film.count
        before = {name: curve["count"] for name, curve in self.notes.as_dict().items()}
        result = TextRun(cell.code)
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            try:
                self._run_cell(cell.code, line)
            except Exception as error:  # the lesson goes on without it
                result.error = traceback_text(error)
        result.printed = text.getvalue()[:MOST]
        result.trains = self.film.count > steps
        result.losses = {
            name: curve
            for name, curve in self.notes.as_dict().items()
            if curve["count"] > max(before.get(name, 0), 1)
        }
        return result

    def _draw(self, part: Inspect) -> str:
        names, lang = self.namespace, self._lesson.lang
        with contextlib.suppress(Exception):
            tensor = eval(part.expression, names)
            shown = antorcha.inspect(tensor, name=part.expression, lang=lang, names=names)
            return str(shown.html())
        return ""


def run_program(code: str, name: str, folder: str, lang: str) -> tuple[ProgramRun, TextRun]:
    """Run a program; gives it, and what came of it."""
    program = ProgramRun(code, name, folder)
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        error = program.run()
    program.film.finish()
    result = TextRun(code, text.getvalue()[:MOST], trains=program.film.count > 0)
    if error is not None and not (isinstance(error, SystemExit) and not error.code):
        result.error = traceback_text(error)
        if isinstance(error, Exception):
            result.explanation = antorcha.explain(error, lang=lang).html()
    result.losses = {k: v for k, v in program.notes.as_dict().items() if v["count"] > 1}
    result.rows = namespace.rows(program.namespace)
    result.pictures = _pictures()
    _share_hints([result], {0: 0}, program.hints.as_list())
    return program, result


def frames(film: Film, count: int, names: dict[str, Any], words: LabWords) -> list[tuple[str, str]]:
    """So many frames of a film, from its first to its last: what each is of, and its picture."""
    last = len(film.frames) - 1
    if count < 2 or last < 1:
        return []
    chosen = sorted({round(last * place / (count - 1)) for place in range(count)})
    headings = (words("film_weight"), words("film_gradient"), words("film_histogram"),
                words("film_plane"))  # fmt: skip
    end = film.frames[-1].step
    return [
        (words("film_step", film.frames[index].step, end),
         film.draw(index, 0, words.lang, headings, names))
        for index in chosen
    ]  # fmt: skip


def _share_hints(told: list[TextRun], begins: dict[int, int], hints: list[dict[str, Any]]) -> None:
    """Give each text the shapes beside its lines; `begins`: the line before its first."""
    for number, begin in begins.items():
        count = told[number].code.rstrip("\n").count("\n") + 1
        told[number].hints = {
            hint["line"] - begin: hint["text"]
            for hint in hints
            if begin < hint["line"] <= begin + count
        }


def _mark_last(cells: list[TextRun]) -> None:
    """Only the last cell that trains is followed by the film."""
    trained = [cell for cell in cells if cell.trains]
    for cell in trained[:-1]:
        cell.trains = False


def _pictures() -> list[bytes]:
    """What the program drew with matplotlib."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    found = []
    for number in pyplot.get_fignums() if pyplot is not None else ():
        image = io.BytesIO()
        pyplot.figure(number).savefig(image, format="png", dpi=80)
        found.append(image.getvalue())
    return found
