"""``antorcha run``: run a program written for PyTorch as ``python`` would, with antorcha as torch.

What a program can see is as under ``python script.py``: ``sys.argv``, ``__main__`` and its names,
``sys.path[0]``, its own lines (and none of ours) in tracebacks, and the exit code. What differs is
that ``import torch`` gives antorcha, and that under a traceback stands what `antorcha.explain` adds
to it.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import linecache
import os
import re
import sys
import traceback
from collections.abc import Sequence
from importlib.abc import InspectLoader, Loader
from types import CodeType, ModuleType, TracebackType
from typing import Any, cast

from antorcha import torch_alias
from antorcha.core import tracebacks
from antorcha.core.lazy import lazy

explanation = lazy("antorcha.inspector.explain.explanation", before_forks=False)
USAGE = "usage: antorcha run script.py [args] | antorcha run -m module [args]"
INTERRUPTED = 130  # 128 + SIGINT, what a shell shows for a program ended with control-C


class _CannotRun(Exception):
    """There is no program to run; `code` is what ``python`` exits with in that case."""

    def __init__(self, said: str, code: int) -> None:
        super().__init__(said)
        self.code = code


def run(words: Sequence[str]) -> int:
    """Run ``words``: a script (or ``-m`` and a module) and its arguments. Return the exit code.

    A ``SystemExit`` of the program goes on to the caller, who is the interpreter: the code, a
    message in the code's place, and no code at all then mean what they mean to Python.
    """
    torch_alias.install(hide=True)
    try:
        code = _load(words)
    except _CannotRun as error:
        _note(str(error))
        return error.code
    except SyntaxError as error:
        sys.excepthook(type(error), error.with_traceback(None), None)
        return 1
    if torch_alias.pytorch_is_installed():
        version = torch_alias.PYTORCH_VERSION
        _note(f"torch is antorcha here (as PyTorch {version}); the installed PyTorch is not used")
    return _execute(code)


def _note(text: str) -> None:
    print(f"antorcha run: {text}", file=sys.stderr)


# ---- finding the program ------------------------------------------------------------------------


def _load(words: Sequence[str]) -> CodeType:
    """Compile the program, and set ``sys.argv``, ``sys.path`` and ``__main__`` for it."""
    first = words[0]
    if first == "-m":
        if len(words) < 2:
            raise _CannotRun(f"-m needs the name of a module; {USAGE}", 2)
        return _load_module(words[1], words[2:])
    if first.startswith("-") and first != "-":
        raise _CannotRun(f"unknown option {first}; {USAGE}", 2)
    if first == "-":
        return _load_stdin(words)
    return _load_script(words)


def _load_stdin(words: Sequence[str]) -> CodeType:
    sys.argv[:] = words
    _set_first_path("")
    code = compile(sys.stdin.buffer.read(), "<stdin>", "exec", dont_inherit=True)
    _become_main({"__loader__": importlib.machinery.BuiltinImporter})
    return code


def _load_script(words: Sequence[str]) -> CodeType:
    # Python makes __file__ absolute (and no tidier), leaves sys.argv[0] alone, and follows a link
    # for the folder.
    path = os.path.join(os.getcwd(), words[0])
    if os.path.isdir(path):
        raise _CannotRun(f"{path} is a folder; name the script, or use -m with a package", 1)
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        raise _CannotRun(f"can't open file {path!r}: {error.strerror}", 2) from None
    sys.argv[:] = words
    _set_first_path(os.path.dirname(os.path.realpath(path)))
    code = compile(source, path, "exec", dont_inherit=True)
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    _become_main({"__file__": path, "__cached__": None, "__loader__": loader})
    return code


def _load_module(name: str, arguments: Sequence[str]) -> CodeType:
    sys.argv[:] = ["-m", *arguments]  # as it reads while Python looks for the module
    _set_first_path(os.getcwd())
    spec = _find(name)
    if spec.submodule_search_locations is not None:
        try:
            spec = _find(f"{name}.__main__")
        except _CannotRun as error:
            raise _CannotRun(
                f"{error}; {name!r} is a package and cannot be directly executed", 1
            ) from None
    loader = spec.loader
    # Every loader of files and archives can give code; builtin modules cannot, nor can Python's -m.
    code = loader.get_code(spec.name) if isinstance(loader, InspectLoader) else None
    if code is None:
        raise _CannotRun(f"no code object available for {name}", 1)
    sys.argv[0] = spec.origin or name
    _become_main(
        {
            "__file__": spec.origin,
            "__cached__": spec.cached,
            "__loader__": cast(Loader, loader),
            "__package__": spec.parent,
            "__spec__": spec,
        }
    )
    return code


def _find(name: str) -> importlib.machinery.ModuleSpec:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise _CannotRun(f"error while finding module {name!r} ({error})", 1) from None
    if spec is None:
        raise _CannotRun(f"No module named {name}", 1)
    return spec


def _set_first_path(folder: str) -> None:
    """Put the program's folder where the command's own stood, unless Python was told not to."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _become_main(names: dict[str, object]) -> None:
    """Put a fresh module in ``__main__``'s place; what is pickled by name is found in it."""
    main, ours = ModuleType("__main__"), sys.modules["__main__"]
    if "__annotations__" in vars(ours):  # whether a main module has them depends on the version
        names["__annotations__"] = {}
    vars(main).update(names, __builtins__=sys.modules["builtins"])
    _keep.append(ours)
    sys.modules["__main__"] = main


_keep: list[ModuleType] = []  # the command's own __main__: its functions are still on the stack


# ---- running it ---------------------------------------------------------------------------------


def _execute(code: CodeType) -> int:
    try:
        exec(code, vars(sys.modules["__main__"]))
    except SystemExit:
        raise
    except BaseException as error:
        _report(error)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _report(error: BaseException) -> None:
    """Show `error` as Python would, through the program's own ``sys.excepthook`` if it set one."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        one = pending.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = _own_frames(one.__traceback__)
        _reword(one)
        pending += [one.__cause__, one.__context__]
    sys.stdout.flush()
    hook = sys.excepthook
    try:
        hook(type(error), error, error.__traceback__)
    except Exception:
        print("Error in sys.excepthook:", file=sys.stderr)
        traceback.print_exc()
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, error.__traceback__)
    if hook in (tracebacks.show, sys.__excepthook__) and isinstance(error, Exception):
        _explain(error)


def _explain(error: Exception) -> None:
    """What fits the shapes on the line, and the fix, where antorcha knows them."""
    advice = explanation.explain(error).advice
    if advice:
        print(f"\n{advice}", file=sys.stderr)


def _reword(error: BaseException) -> None:
    """Say torch where Python's own message says antorcha, and how to set ``requires_grad``."""
    if isinstance(error, (ImportError, AttributeError)):
        # Python names a module as the module itself does, and ours have antorcha's names
        error.args = tuple([_torch_names(word) for word in error.args])
        if isinstance(error, ImportError):
            error.msg = _torch_names(error.msg)
    elif type(error) is TypeError and error.args == ("'bool' object is not callable",):
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        line = "" if trace is None else _line(trace)
        if ".requires_grad(" in line:
            error.args = (f"{error.args[0]}. Did you mean '.requires_grad_('?",)


def _line(trace: TracebackType) -> str:
    return linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno)


def _torch_names(text: Any) -> Any:
    return re.sub(r"'antorcha(\.[\w.]+)?'", r"'torch\1'", text) if isinstance(text, str) else text


def _own_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return `trace` without the frames of this file and of the import hook."""
    kept = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename not in (__file__, torch_alias.__file__):
            kept.append(trace)
        trace = trace.tb_next
    for before, after in zip(kept, [*kept[1:], None]):
        before.tb_next = after
    return kept[0] if kept else None
