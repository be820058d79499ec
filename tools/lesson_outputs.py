"""Run a lesson's cells and write what they print into its `output` fences.

    python tools/lesson_outputs.py src/antorcha/lab/lessons/en/02_memory.md ...

For authors: read the difference before you commit it. Tests run the cells and compare.
"""

from __future__ import annotations

import contextlib
import io
import sys
import types
from pathlib import Path

from antorcha.lab.lesson import Cell, load


def printed(cells: list[Cell], file: str) -> list[str]:
    """What each cell prints, run in order in one new namespace."""
    names = types.ModuleType("__main__").__dict__
    texts = []
    for cell in cells:
        # Blank lines before it: an error shows the line of the lesson.
        code = compile("\n" * (cell.line - 1) + cell.code, file, "exec", dont_inherit=True)
        stdout = io.StringIO()
        with contextlib.redirect_stdout(stdout):
            exec(code, names)
        texts.append(stdout.getvalue())
    return texts


def fill(path: Path) -> None:
    """Rewrite one lesson's outputs. The file is read back, so a mistake in it is shown."""
    lesson = load(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    for cell, text in reversed(list(zip(lesson.cells, printed(lesson.cells, str(path))))):
        begin = end = cell.line + len(cell.code.splitlines())  # the line below the cell's fence
        head = "```output predict: true" if cell.predict else "```output"
        if cell.output is not None:
            begin = lines.index(head, begin)
            end = lines.index("```", begin) + 1
        fence = [head, *text.splitlines(), "```"] if text and not cell.varies else []
        lines[begin:end] = fence
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    load(path)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        fill(Path(name))
