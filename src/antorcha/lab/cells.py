"""A lesson's cells, run where they stand: from the top to one of them, in a namespace of their own.

What runs is the lesson and nothing else: no name of the learner's program, and none that an earlier
press left. Of the last cell is told what it printed, which tensors it made or changed, and the
losses that it noted. Files that cells write go into a folder that is removed afterwards.
"""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from antorcha.lab import namespace
from antorcha.lab.child_names import MANY
from antorcha.lab.process_reset import Beginning
from antorcha.lab.program import ProgramRun, no_running_loop, traceback_text

MOST = 40_000  # characters of what a cell prints that are shown


@dataclass(frozen=True)
class CellState:
    """What tells whether a tensor is another one, or holds other numbers."""

    identity: int
    version: int
    row: dict[str, Any]


class CellsRun(ProgramRun):
    """A lesson's first cells, and what they left.

    Args:
        cells: their code, in order.
        name: the file's name that tracebacks show.
        beginning: the process as the lesson shall find it.
    """

    def __init__(self, cells: Sequence[str], name: str, beginning: Beginning) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="antorcha-cells-")
        code = "\n\n".join([cell.rstrip("\n") for cell in cells]) + "\n"
        super().__init__(code, name, self._place.name, beginning)
        self._cells = list(cells)
        self.printed = ""
        self.changed: list[dict[str, Any]] = []
        self.grown: dict[str, Any] = {}  # the losses that the last cell noted

    def run_cells(self) -> dict[str, Any]:
        """Run them; say how it ended, what the last one printed, and what it changed."""
        self._compile()  # tracebacks and native functions read the lines of the whole
        before: dict[str, CellState] = {}
        counts: dict[str, int] = {}
        text = io.StringIO()
        error: BaseException | None = None
        line = 0
        try:
            with (
                self._as_main(),
                no_running_loop(),
                contextlib.redirect_stdout(text),
                contextlib.redirect_stderr(text),
            ):
                for number, cell in enumerate(self._cells, 1):
                    if number == len(self._cells):
                        before = self._states()
                        counts = {k: v["count"] for k, v in self.notes.as_dict().items()}
                        text.seek(0)
                        text.truncate()
                    self._run_cell(cell, line)
                    line += cell.rstrip("\n").count("\n") + 2
        except BaseException as failure:
            error = failure
            error.__traceback__ = self._own_frames(error.__traceback__)
        with contextlib.suppress(OSError):
            self._place.cleanup()
        self._tell_changes(before, counts)
        return {
            "ended": _ending(error),
            "printed": text.getvalue()[:MOST],
            "text": "" if error is None else traceback_text(error),
            "rows": self.changed,
            "losses": self.grown,
        }

    def _run_cell(self, cell: str, line: int) -> None:
        """Run one, whose first line is the so-many-eth of the whole."""
        tree = ast.parse("\n" * line + cell, self.name)
        exec(compile(self._noted(tree), self.name, "exec", dont_inherit=True), self.namespace)

    def _states(self) -> dict[str, CellState]:
        every = itertools.islice(namespace.tensors(self.namespace), MANY)
        return {
            path: CellState(id(tensor), tensor._version, namespace.row(path, tensor))
            for path, tensor in every
        }

    def _tell_changes(self, before: dict[str, CellState], counts: dict[str, int]) -> None:
        with contextlib.suppress(Exception):  # a class of the lesson's own resists
            self.changed = [
                state.row for path, state in self._states().items() if before.get(path) != state
            ]
        losses = self.notes.as_dict()
        self.grown = {
            name: curve
            for name, curve in losses.items()
            if curve["count"] > max(counts.get(name, 0), 1)
        }


def _ending(error: BaseException | None) -> str:
    if error is None or isinstance(error, SystemExit):
        return "ok"
    return "stopped" if isinstance(error, KeyboardInterrupt) else "error"
