"""One run of the learner's program, in the child: compiled, run as `python file.py` would, told of.

Every run begins as a new process does: a module of its own in ``__main__``'s place, the program's
folder in front of the import path, its modules not imported yet, and the rest of the process as it
was before the first of them (`anew`).
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import gc
import itertools
import linecache
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

import antorcha
from antorcha.lab import hints
from antorcha.lab.film import Film
from antorcha.lab.notes import HOOK, Notes, noting
from antorcha.lab.process_reset import Beginning
from antorcha.optim.optimizer import register_optimizer_step_pre_hook
from antorcha.runtime.tensor import Tensor

_FACES = (str(Path(antorcha.__file__).parent) + os.sep, f"{os.sep}ipykernel{os.sep}")
_BEFORE = frozenset(sys.modules)  # what runs programs is never one of their modules
FULL = 100  # every so many programs all of memory is searched for what nobody needs


class ProgramRun:
    """A program and, once it ran, what it left behind.

    Args:
        code: its text.
        name: its file's name, as tracebacks show it.
        folder: where it runs.
        beginning: the process as the program shall find it, and as it is left; as it is now, if
            nothing else is said.
        size: columns and rows of the terminal that shows what it prints.
    """

    def __init__(
        self,
        code: str,
        name: str,
        folder: str,
        beginning: Beginning | None = None,
        size: Sequence[int] = (80, 24),
    ) -> None:
        self.size = size
        self._beginning = beginning or Beginning()
        self.code = code
        self.name = name
        self.folder = folder
        self.module = ModuleType("__main__")
        self._before = frozenset(sys.modules)
        self.notes = Notes((float, Tensor))
        self.hints = hints.ShapeHints()
        self.film = Film(self.notes.newest)
        self.profile: Any = None  # the profiler that watched the run, if one was asked for
        self.seconds = 0.0
        self.explained: Any = None  # what that means, as an Explanation
        self.error: BaseException | None = None  # what ended it early

    @property
    def namespace(self) -> dict[str, Any]:
        """The names that the program has given, its own and the module's."""
        return vars(self.module)

    def run(self, *, watched: str = "") -> BaseException | None:
        """Run it; return what ended it early, or None. `watched` is "profile", "lines" or ""."""
        begin = time.perf_counter()
        try:
            code = self._compile()
            with self._as_main(), no_running_loop():
                if watched == "profile":
                    self._run_profiled(code)
                elif watched == "lines":
                    with antorcha.graph.recording():
                        exec(code, self.namespace)
                else:
                    exec(code, self.namespace)
        except BaseException as error:
            error.__traceback__ = self._own_frames(error.__traceback__)
            self.error = error
            return error
        finally:
            self.seconds = time.perf_counter() - begin
        return None

    def forget(self, folder: str) -> None:
        """Drop everything that the program left, so that its memory is free for the next, which
        runs in `folder`."""
        self.namespace.clear()
        self.error = self.explained = None
        self.film.clear()
        self.profile = None
        if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
            pyplot.close("all")
        self._drop_modules(sys.modules.keys() - self._before)
        if folder != self.folder:  # what lies there may have been imported from elsewhere
            self.folder = folder
            self._drop_modules(sys.modules.keys())
        collect()

    def _drop_modules(self, names: Set[str]) -> None:
        """Let the program's own modules among these be imported anew: they may be edited."""
        own = {top for top in {name.partition(".")[0] for name in names} if self._is_own(top)}
        for name in set(names) - _BEFORE:
            if name.partition(".")[0] in own:
                del sys.modules[name]

    def _is_own(self, name: str) -> bool:
        """Is that top-level module one of the program's: does it lie beside it in its folder?"""
        file = getattr(sys.modules.get(name), "__file__", None)
        if not file:
            return False
        place = os.path.dirname(file)
        if os.path.basename(file).startswith("__init__."):
            place = os.path.dirname(place)
        return bool(os.path.realpath(place) == os.path.realpath(self.folder))

    def _own_frames(self, trace: TracebackType | None) -> TracebackType | None:
        """`trace` from the program's first frame on; a program that is not Python has none."""
        while trace is not None and trace.tb_frame.f_code.co_filename != self.name:
            trace = trace.tb_next
        return trace

    def _compile(self) -> CodeType:
        lines = self.code.splitlines(keepends=True)
        linecache.cache[self.name] = (len(self.code), None, lines, self.name)
        return compile(self._noted(ast.parse(self.code, self.name)), self.name, "exec")

    def _noted(self, tree: ast.Module) -> ast.Module:
        """The tree with what notes losses and shapes."""
        return self.hints.add_to(noting(tree))

    def _run_profiled(self, code: CodeType) -> None:
        with antorcha.profiler.profile(
            record_shapes=True, profile_memory=True, with_stack=True
        ) as self.profile:
            exec(code, self.namespace)

    @contextlib.contextmanager
    def _as_main(self) -> Iterator[None]:
        names = self.namespace
        names.update(
            __builtins__=builtins, __file__=os.path.join(self.folder, self.name), __annotations__={}
        )
        self._beginning.begin()
        # What asks for the terminal's size (shutil, rich, tqdm, pandas) reads it here. Tensors are
        # printed 80 columns wide whatever it is, as PyTorch prints them.
        os.environ["COLUMNS"], os.environ["LINES"] = map(str, self.size)
        setattr(builtins, HOOK, self.notes)
        setattr(builtins, hints.HOOK, self.hints)
        setattr(builtins, hints.SWITCH, self.hints.switches)
        register_optimizer_step_pre_hook(self.film)  # (the next `restore` takes it away)
        before, path = sys.modules["__main__"], list(sys.path)
        sys.modules["__main__"] = self.module
        sys.argv[:] = [self.name]
        sys.path.insert(0, self.folder)
        os.chdir(self.folder)
        try:
            yield
        finally:
            sys.modules["__main__"] = before
            sys.path[:] = path
            with contextlib.suppress(Exception):
                sys.stdout.flush()  # the program's own, if it set one
            self._beginning.restore()  # the telling begins: it needs its builtins and its streams


def position(error: BaseException, program: ProgramRun) -> dict[str, int] | None:
    """Where in the program the error happened: line and columns, counted from 1 and from 0.

    The innermost place in the program's own file; of a syntax error, the place it speaks of.
    """
    if isinstance(error, SyntaxError) and error.filename == program.name:
        line = error.lineno or 1
        begin = max((error.offset or 1) - 1, 0)
        end_line, end = error.end_lineno or line, (error.end_offset or 0) - 1
        return _place(line, begin, end_line, end if (end_line, end) > (line, begin) else begin + 1)
    found = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == program.name:
            found = _positions(code, trace.tb_lasti) or (trace.tb_lineno, trace.tb_lineno, 0, 0)
        trace = trace.tb_next
    if found is None:
        return None
    line, end_line, begin, end = found
    lines = program.code.splitlines()
    # Python counts columns in bytes, editors in characters
    return _place(line, _column(lines, line, begin), end_line, _column(lines, end_line, end))


def _place(line: int, begin: int, end_line: int, end: int) -> dict[str, int]:
    return {"line": line, "column": begin, "end_line": end_line, "end_column": end}


def _positions(code: CodeType, instruction: int) -> tuple[int, int, int, int] | None:
    for index, place in enumerate(code.co_positions()):
        if index == instruction // 2:
            line, end_line, begin, end = place
            if line is not None and end_line is not None and begin is not None and end is not None:
                return line, end_line, begin, end
    return None


def _column(lines: list[str], line: int, offset: int) -> int:
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return len(text.encode()[:offset].decode(errors="replace"))


def traceback_text(error: BaseException) -> str:
    """The traceback as Python prints it, without the frames inside antorcha and what runs it."""
    shown = traceback.TracebackException.from_exception(error, compact=True)
    pending, seen = [shown], set()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        kept = [f for f in one.stack if not any(face in f.filename for face in _FACES)]
        one.stack = traceback.StackSummary.from_list(kept)
        pending += [each for each in (one.__cause__, one.__context__) if each is not None]
        pending += one.exceptions or []
    return "".join(shown.format())


_collections = itertools.count(1)


def collect() -> None:
    """Free what nobody can reach. What is left is set aside (`gc.freeze`), so that the next search
    goes through what is new alone: all of antorcha's objects take longer than most programs. What
    was set aside and has died since is found by a search of everything, now and then."""
    if next(_collections) % FULL == 0:
        gc.unfreeze()
    gc.collect()
    gc.freeze()


@contextlib.contextmanager
def no_running_loop() -> Iterator[None]:
    """Let a program use ``asyncio.run``: to it, the loop that called us is not there."""
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        if outer is not None:
            asyncio.set_event_loop(outer)
        asyncio._set_running_loop(outer)
