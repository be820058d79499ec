"""Run a page of cells as a notebook would, and say how each cell's output compares with the page's.

A file of ``cells/`` is Python text in the percent format::

    # %% [87] marks          a cell, by its number on the page
    code, verbatim
    # >>> expected           what the page shows: printed text, then the last expression's value
    # text                   (a line "# text" stands for "text")

Marks: ``numbers`` (drawn at random: any numbers will do, in the same places), ``contains`` (each
expected line must occur somewhere in the output), ``raises=Class`` (the cell must raise it),
``hint=word`` (and what is shown of antorcha's error must say it), ``raises-without-cuda=Class``.
``# %% setup`` is no cell of the page: it gives what the page takes for granted.
In expected text, «...» is what one machine printed; anything may stand in its place.

``python -m tests.seeds.notebook BACKEND FILE`` prints a JSON list of outcomes. BACKEND is

- ``torch``: PyTorch itself, to check that the cells were copied well;
- ``alias``: ``import torch`` is served by antorcha, as under ``antorcha run``;
- ``face``: every ``import torch`` reads ``import antorcha as torch``.

Where there is no Apple GPU, ``'mps'`` in a cell becomes ``'cuda'``, and without NVIDIA's ``'cpu'``.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

BACKENDS = ("face", "alias", "torch")
WIDTH = 79  # where IPython breaks a displayed tuple or list
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?")


@dataclass
class Cell:
    """One cell of a page; `expected` is None where the page shows nothing."""

    name: str
    code: str
    expected: str | None
    marks: dict[str, str]


@dataclass
class Outcome:
    """What became of a cell: `problem` is empty when it did as the page says; `error` says what it
    raised."""

    name: str
    output: str
    problem: str
    error: str


# ---- reading ------------------------------------------------------------------------------------


def read_cells(path: Path) -> list[Cell]:
    """The cells of a file, in order; what stands before the first one is commentary."""
    blocks = re.split(r"(?m)^# %% ", path.read_text(encoding="utf-8"))[1:]
    return [_cell(block) for block in blocks]


def _cell(block: str) -> Cell:
    header, _, body = block.partition("\n")
    named = re.fullmatch(r"(\[.*\]|setup)((?: [a-z-]+(?:=\w+)?)*)", header)
    if named is None:
        raise ValueError(f"a cell begins `# %% [name] marks`, not `# %% {header}`")
    marks = {word.partition("=")[0]: word.partition("=")[2] for word in named[2].split()}
    code, found, expected = body.partition("# >>> expected\n")
    lines = [re.sub(r"^# ?", "", line) for line in expected.rstrip("\n").split("\n")]
    name = named[1] if named[1] == "setup" else named[1][1:-1]
    return Cell(name, code.strip("\n"), "\n".join(lines) if found else None, marks)


# ---- running ------------------------------------------------------------------------------------


class Notebook:
    """One namespace in which cells run; PyTorch is `backend`'s."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.names: dict[str, Any] = {"__name__": "__main__", "_time_statement": self._time}
        if backend == "alias":
            from antorcha import torch_alias

            torch_alias.install(hide=True)
        if backend == "face":
            import antorcha as torch
        else:
            import torch
        has_mps = _there(lambda: torch.backends.mps.is_available())
        self.has_cuda = _there(lambda: torch.cuda.is_available())
        self.accelerator = "mps" if has_mps else "cuda" if self.has_cuda else "cpu"

    def run(self, cell: Cell) -> Outcome:
        """Run one cell and compare."""
        printed = io.StringIO()
        error: Exception | None = None
        with contextlib.redirect_stdout(printed):
            try:
                self._execute(self._adapt(cell.code), cell.name)
            except Exception as raised:
                error = raised
        output = printed.getvalue()
        said = "" if error is None else f"{type(error).__name__}: {error}"
        return Outcome(cell.name, output, self._problem(cell, output, error), said)

    def _adapt(self, code: str) -> str:
        if self.backend == "face":
            code = re.sub(r"(?m)^import torch$", "import antorcha as torch", code)
        code = code.replace("'mps'", f"'{self.accelerator}'")
        return re.sub(r"(?m)^%time (.*)$", lambda m: f"_time_statement({m[1]!r})", code)

    def _execute(self, code: str, name: str) -> None:
        """Execute `code`; show the value of a last expression, unless a semicolon ends it."""
        tree = ast.parse(code, f"<cell {name}>")
        last: ast.Expression | None = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
            last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
        exec(compile(tree, f"<cell {name}>", "exec"), self.names)
        if last is not None:
            value = eval(compile(last, f"<cell {name}>", "eval"), self.names)
            if value is not None:
                print(displayed(value))

    def _time(self, statement: str) -> None:
        """IPython's ``%time``: run the statement, print what it cost."""
        wall, cpu = time.perf_counter(), time.process_time()
        exec(statement, self.names)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        milliseconds = f"{cpu * 1e3:.0f} ms"
        print(f"CPU times: user {milliseconds}, sys: 0 ms, total: {milliseconds}")
        print(f"Wall time: {wall * 1e3:.1f} ms")

    def _problem(self, cell: Cell, output: str, error: Exception | None) -> str:
        wanted = cell.marks.get("raises")
        if not self.has_cuda:
            wanted = cell.marks.get("raises-without-cuda", wanted)
        if error is not None:
            return self._wrong_error(cell, error, wanted)
        if wanted is not None:
            return f"should have raised {wanted}"
        if cell.expected is None or "raises-without-cuda" in cell.marks:
            return ""
        where = "cpu" if self.accelerator == "cpu" else f"{self.accelerator}:0"
        expected = cell.expected.replace("mps:0", where)
        if matches(output, expected, cell.marks):
            return ""
        return f"the page shows\n{expected}\n--- but here\n{output}"

    def _wrong_error(self, cell: Cell, error: Exception, wanted: str | None) -> str:
        shown = "".join(traceback.format_exception(error)[-3:])
        if wanted is None or wanted not in (kind.__name__ for kind in type(error).__mro__):
            return f"raised {shown}" + (f"--- but should raise {wanted}" if wanted else "")
        hint = cell.marks.get("hint")
        if hint and self.backend != "torch" and f"'{hint}'" not in as_shown(error):
            return f"the message does not name {hint!r}: {error}"
        must_say = "raises-without-cuda" in cell.marks and not self.has_cuda
        must_say = must_say and self.backend != "torch"
        if must_say and "install" not in str(error):
            return f"the message does not say what to install: {error}"
        return ""


def _there(question: Callable[[], bool]) -> bool:
    """A library without the question has no such device; the cells then run, and say what fails."""
    try:
        return question()
    except (AttributeError, ImportError):
        return False


def as_shown(error: Exception) -> str:
    """What Python prints of an error that nobody catches: the message, and its own suggestion."""
    with contextlib.redirect_stderr(io.StringIO()) as shown:
        sys.__excepthook__(type(error), error, None)
    return shown.getvalue()


def displayed(value: object) -> str:
    """The text IPython shows for a value: ``repr``, but a long or tall tuple gets a line a part."""
    if type(value) not in (tuple, list):
        return repr(value)
    parts = [displayed(part) for part in value]  # type: ignore[attr-defined]
    text = repr(value)
    if len(text) < WIDTH and not any("\n" in part for part in parts):
        return text
    inner = ",\n ".join(part.replace("\n", "\n ") for part in parts)
    return text[0] + inner + text[-1]


# ---- comparing ----------------------------------------------------------------------------------


def matches(output: str, expected: str, marks: dict[str, str]) -> bool:
    """Whether `output` is what the page shows, trailing spaces apart."""
    if "contains" in marks:
        return all(_pattern(line).search(output) for line in expected.split("\n"))
    shown, wanted = _tidy(output), _tidy(expected)
    if "numbers" in marks:
        shown, wanted = _structure(shown), _structure(wanted)
    return _pattern(wanted).fullmatch(shown) is not None


def _pattern(expected: str) -> re.Pattern[str]:
    parts = re.split(r"«.*?»", expected, flags=re.DOTALL)
    return re.compile(".*?".join(re.escape(part) for part in parts), re.DOTALL)


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


def _structure(text: str) -> str:
    """The text with every number as N; its width, its sign and the fill depend on the draw."""
    return re.sub(r" +", " ", _NUMBER.sub("N", text)).replace("[ ", "[")


def main(backend: str, path: str) -> None:
    """Run a page and print its outcomes as JSON, the last line of the output."""
    notebook = Notebook(backend)
    outcomes = [asdict(notebook.run(cell)) for cell in read_cells(Path(path))]
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
