"""Writes which public names PyTorch has, and which of them antorcha has.

- ``src/antorcha/pytorch_names.txt``: a line per public module of PyTorch (and for Tensor and
  Module, whose methods programs call): ``torch.linalg: cholesky cond cross ...``. Read when a
  program asks for a name that antorcha lacks, so that the error can say that PyTorch has it. Needs
  PyTorch 2.13.
- ``docs/coverage.md``: the same names with their state. Needs antorcha alone.

Run it after adding a name that PyTorch has::

    python tools/list_pytorch_names.py               # writes the page, and with PyTorch the list
    python tools/list_pytorch_names.py --check page  # exits with 1 if the page is stale; so `list`
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import pkgutil
import subprocess
import sys
import textwrap
import types
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "src" / "antorcha" / "pytorch_names.txt"
FILES = {"list": LIST, "page": ROOT / "docs" / "coverage.md"}
CLASSES = ("torch.Tensor", "torch.nn.Module")
# These need packages that PyTorch does not bring: their names would depend on the machine.
NOT_IMPORTED = (
    "torch.utils.tensorboard",
    "torch.distributed.elastic.rendezvous.etcd",
    "torch.distributed.run",
    "torch.distributed.launch",
    "torch.utils.benchmark.examples",
    "torch.utils.hipify",
    "torch.contrib",
)
INNER = (
    "TYPE_CHECKING", "USE_GLOBAL_DEPS", "USE_RTLD_GLOBAL_WITH_LIBTORCH", "assert_int_or_pair",
    "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "m",
)  # fmt: skip


def main(words: Sequence[str]) -> int:
    """Write, or check; return the exit code."""
    texts = {"list": pytorch_names, "page": page}
    if words[:1] == ["--print"]:
        print(texts[words[1]](), end="")
        return 0
    if words[:1] == ["--check"]:
        path = FILES[words[1]]
        if path.read_text(encoding="utf-8") == _child(words[1]):
            return 0
        print(f"{path.relative_to(ROOT)} is stale: run python tools/list_pytorch_names.py")
        return 1
    for what in ["list", "page"] if importlib.util.find_spec("torch") else ["page"]:
        FILES[what].write_text(_child(what), encoding="utf-8")
    return 0


def _child(what: str) -> str:
    """What this tool prints in a process of its own: PyTorch and antorcha do not share one."""
    done = subprocess.run(
        [sys.executable, __file__, "--print", what],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


# ---- what PyTorch has ---------------------------------------------------------------------------


def pytorch_names() -> str:
    """The text of the list."""
    warnings.simplefilter("ignore")
    lines = []
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        folder = Path(importlib.import_module("torch").__path__[0])
        lines += [_line(name, _names_of(name)) for name in ["torch", *_modules("torch", folder)]]
        for name in CLASSES:
            owner = importlib.import_module(name.rpartition(".")[0])
            lines.append(_line(name, _attributes(getattr(owner, name.rpartition(".")[2]))))
    return "\n".join(sorted(lines)) + "\n"


def _line(module: str, names: list[str]) -> str:
    return f"{module}: {' '.join(names)}".rstrip()


def _modules(package: str, folder: Path) -> Iterator[str]:
    """The public modules in a package, at all depths."""
    for info in pkgutil.iter_modules([str(folder)]):
        name = f"{package}.{info.name}"
        if not info.name.startswith("_"):
            yield name
            if info.ispkg and not name.startswith(NOT_IMPORTED):
                yield from _modules(name, folder / info.name)


def _names_of(module: str) -> list[str]:
    """The public names of a module: those it declares, else those that are its own."""
    if module.startswith(NOT_IMPORTED):
        return []
    found = importlib.import_module(module)
    declared = set(getattr(found, "__all__", ()))
    names = {name for name in declared if not name.startswith("_")}
    if not declared or module == "torch" or module.startswith("torch.backends."):
        # (PyTorch puts objects with properties in the place of some modules, and those in `m`)
        there = {*dir(found), *dir(type(found)), *dir(getattr(found, "m", None))}
        names |= {name for name in there if _is_own(name, getattr(found, name, None), module)}
    return sorted(names)


def _is_own(name: str, value: Any, module: str) -> bool:
    """Is a name that a module does not declare one of its own, not one that it imports?"""
    if name.startswith("_") or isinstance(value, types.ModuleType) or name in INNER:
        return False
    if callable(value):
        home = getattr(value, "__module__", None)
        inside = home is None or home.startswith(module)
        return inside or isinstance(value, types.BuiltinFunctionType)  # these have odd homes
    plain = type(value).__module__ in ("torch", "builtins")
    return plain and (module == "torch" or module.startswith("torch.backends."))


def _attributes(owner: type) -> list[str]:
    return sorted([name for name in dir(owner) if not name.startswith("_")])


# ---- what antorcha has of it --------------------------------------------------------------------

HEAD = """\
# What there is of PyTorch's interface

Every public name of PyTorch 2.13, module by module, and whether antorcha has it. A program that
asks for one that is not there yet gets an error that says so. A name that is there may still refuse
some of its arguments: [from_pytorch.md](from_pytorch.md) tells the differences.

Written by `tools/list_pytorch_names.py`: do not edit.
"""


def page() -> str:
    """The text of the page."""
    sys.path[:0] = [str(ROOT / "src")]
    from antorcha import torch_alias

    torch_alias.install(hide=True)
    owners = listed_names()
    there = {owner: names_there(owner, names) for owner, names in owners.items()}
    known = {owner: have for owner, have in there.items() if have is not None}
    total = sum([len(owners[owner]) for owner in known])
    have = sum([len(names) for names in known.values()])
    rows = [
        f"| [`{owner}`](#{owner.replace('.', '').lower()}) | {len(owners[owner])} | {len(names)} |"
        for owner, names in known.items()
    ]
    parts = [HEAD, f"Of the {total} names of these modules, {have} are there.\n"]
    parts += ["| module or class | PyTorch's names | there |", "|---|---|---|", *rows]
    for owner, names in known.items():
        missing = [name for name in owners[owner] if name not in names]
        parts.append(f"\n## {owner}\n")
        parts += [_paragraph("There", names)] if names else []
        parts += [_paragraph("Not yet", missing)] if missing else []
    lacking = [owner for owner, names in there.items() if names is None]
    parts.append("\n## Modules that are not there yet\n")
    parts.append(_paragraph("Not yet", lacking))
    return "\n".join(parts)


def _paragraph(head: str, names: Sequence[str]) -> str:
    text = f"**{head}** ({len(names)}): " + ", ".join([f"`{name}`" for name in names])
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def listed_names() -> dict[str, list[str]]:
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {line.partition(":")[0]: line.partition(":")[2].split() for line in lines}


def names_there(owner: str, names: list[str]) -> list[str] | None:
    """Those of the names that antorcha has; None where it lacks the module itself. (Names that
    raise when they are used are not there.)"""
    from antorcha.core import absent

    if owner in CLASSES:
        module, _, name = owner.rpartition(".")
        found: Any = getattr(importlib.import_module(module), name)
    else:
        try:
            found = importlib.import_module(owner)
        except ImportError:
            return None
        if absent.is_absent(found):
            return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [name for name in names
                if hasattr(found, name) and not absent.is_absent(getattr(found, name))]  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
