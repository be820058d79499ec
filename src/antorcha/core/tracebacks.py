"""Tracebacks that show the program's lines, and of antorcha's own at most the one that failed.

Installed when antorcha is imported, as ``sys.excepthook`` and ``threading.excepthook`` where nobody
has set another, in the IPython that runs, and as ``__tracebackhide__`` under pytest. Python itself
prints: it gets the exception with shorter tracebacks, and the exception has its own back afterwards
(debuggers, ``traceback.print_exc`` and ``sys.last_traceback`` see all frames).

``ANTORCHA_TRACEBACK=full`` leaves everything to Python.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from types import FrameType, TracebackType
from typing import Any

from antorcha.core.lazy import imported, lazy
from antorcha.errors import PACKAGE, AntorchaError, missing_attribute_text, ours

opcode = lazy("opcode")


def install() -> None:
    """Show errors shortly from now on, unless somebody shows them in another way already."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = show
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _show_in_thread
    if "IPython" in sys.modules:
        _join_ipython(sys.modules["IPython"])
    if "_pytest" in sys.modules and not _is_full():
        _hide_from_pytest()


def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What ``sys.excepthook`` does, with the tracebacks shortened."""
    with shortened(error):
        sys.__excepthook__(kind, error, error.__traceback__)


def _show_in_thread(args: Any) -> None:
    with shortened(args.exc_value):
        threading.__excepthook__(args)


def _is_full() -> bool:
    try:
        shown: str = imported("antorcha.config").traceback
    except Exception:  # a wrong setting is the error that is to be shown
        return False
    return shown == "full"


# ---- shorter tracebacks -------------------------------------------------------------------------


@contextmanager
def shortened(error: BaseException | None) -> Iterator[None]:
    """Within it, `error` and what it came from have shorter tracebacks."""
    undo: list[Callable[[], None]] = []
    try:
        if error is not None and not _is_full():
            for each in _chain(error):
                _shorten(each, each is error, undo)
    except Exception:  # nothing that an exception carries may hide it
        _undo(undo)
    try:
        yield
    finally:
        _undo(undo)


def _undo(steps: list[Callable[[], None]]) -> None:
    while steps:
        steps.pop()()


def _chain(error: BaseException) -> list[BaseException]:
    """An exception, its causes and contexts, and the members of groups."""
    found: dict[int, BaseException] = {}
    todo = [error]
    while todo:
        one = todo.pop()
        if id(one) not in found:
            found[id(one)] = one
            todo += [each for each in (one.__cause__, one.__context__) if each is not None]
            if isinstance(one, BaseExceptionGroup):
                todo += one.exceptions
    return list(found.values())


def _shorten(error: BaseException, is_head: bool, undo: list[Callable[[], None]]) -> None:
    trace, context, suppressed = error.__traceback__, error.__context__, error.__suppress_context__
    undo.append(lambda: error.__setattr__("__traceback__", trace))
    error.__traceback__ = _kept(trace, is_head, isinstance(error, AntorchaError))
    if context is not None and error.__cause__ is None and _is_internal(context):
        undo.append(lambda: error.__setattr__("__suppress_context__", suppressed))
        error.__suppress_context__ = True
    if type(error) is AttributeError and (text := missing_attribute_text(error)):
        args, name = error.args, error.name
        undo.append(lambda: _restore(error, args, name))
        error.args, error.name = (text,), None  # (without a name Python adds no hint of its own)


def _restore(error: AttributeError, args: tuple[Any, ...], name: str | None) -> None:
    error.args, error.name = args, name


def _kept(trace: TracebackType | None, is_head: bool, is_meant: bool) -> TracebackType | None:
    """A traceback without antorcha's frames. Where antorcha did not mean to raise, the innermost
    frame stays: it says where. One without any line of a program stays whole."""
    steps = _steps(trace)
    last = max([k for k, step in enumerate(steps) if _is_users(step.tb_frame)], default=-1)
    if not any(ours(step.tb_frame) for step in steps) or (last < 0 and is_head):
        return trace
    kept = [step for step in steps[: last + 1] if not ours(step.tb_frame)]
    inner = steps[last + 1 :]
    if not any(ours(step.tb_frame) for step in inner):
        kept += inner
    elif not is_meant and not (ours(inner[-1].tb_frame) and _is_at_raise(inner[-1])):
        kept.append(inner[-1])
    result = None
    for step in reversed(kept):
        result = TracebackType(result, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return result


def _steps(trace: TracebackType | None) -> list[TracebackType]:
    found = []
    while trace is not None:
        found.append(trace)
        trace = trace.tb_next
    return found


def _is_internal(error: BaseException) -> bool:
    """Was an exception raised and caught within antorcha?"""
    steps = _steps(error.__traceback__)
    return bool(steps) and ours(steps[0].tb_frame) and not any(
        [_is_users(step.tb_frame) for step in steps]
    )  # fmt: skip


_STDLIB = os.path.dirname(os.__file__) + os.sep


def _is_users(frame: FrameType) -> bool:
    """Does a frame run the program, or a library that it uses; not antorcha, not Python's own?"""
    file = frame.f_code.co_filename
    if ours(frame) or file.startswith("<frozen "):
        return False
    return not file.startswith(_STDLIB) or "-packages" in file[len(_STDLIB) :]


def _is_at_raise(step: TracebackType) -> bool:
    """Did the frame's own ``raise`` end it?"""
    raising: int = opcode.opmap["RAISE_VARARGS"]
    return step.tb_frame.f_code.co_code[step.tb_lasti] == raising


# ---- IPython and pytest -------------------------------------------------------------------------


def _join_ipython(module: Any) -> None:
    """IPython looks for ``__tracebackhide__`` only among a frame's local names, so antorcha shows
    the exceptions of cells itself: by IPython's own means."""
    shell = getattr(module, "get_ipython", lambda: None)()
    if shell is not None and not getattr(shell, "custom_exceptions", True):
        shell.set_custom_exc((Exception,), _show_in_ipython)


def _show_in_ipython(
    shell: Any, kind: type[BaseException], error: BaseException, trace: TracebackType | None,
    tb_offset: int | None = None,
) -> None:  # fmt: skip
    with shortened(error):
        shell.showtraceback(
            (kind, error, error.__traceback__), tb_offset=tb_offset, running_compiled_code=True
        )
    sys.last_traceback = trace  # %debug and %tb go into all frames


def _hide_from_pytest() -> None:
    """Mark antorcha's modules, those imported later too: pytest hides the frames of such."""
    for name, module in list(sys.modules.items()):
        if name == PACKAGE or name.startswith(f"{PACKAGE}."):
            vars(module)["__tracebackhide__"] = True
    if _MarkingFinder not in sys.meta_path:
        sys.meta_path.insert(0, _MarkingFinder)


class _MarkingFinder:
    """Finds antorcha's modules as ever; they are marked when they are loaded."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> Any:
        if not fullname.startswith(f"{PACKAGE}."):
            return None

        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                vars(module)["__tracebackhide__"] = True
                execute(module)

            vars(spec.loader)["exec_module"] = exec_module
        return spec
