"""Serve antorcha under PyTorch's name: after ``install()``, ``import torch`` gives antorcha.

``torch`` becomes a module of its own that hands every name on to antorcha, reading and writing, so
that it can differ where it must: its name and its version (``2.13.0+antorcha``; programs compare
it with PyTorch's). Every ``torch.x.y`` is the very module ``antorcha.x.y``: one module object under
two names, so ``torch.nn.functional is antorcha.nn.functional`` and nothing is loaded twice.

A PyTorch that is really installed is not hidden by accident: ``install()`` then raises, and
``install(hide=True)`` is the asking. Modules that imported the real one earlier keep it.

``vars(torch)`` does not list antorcha's names (``dir(torch)`` does). Processes that
``multiprocessing`` starts anew (``spawn``, ``forkserver``) are served as their parent is: what they
are told first, before they import the program's modules, installs this here too.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import pkgutil
import re
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from antorcha.errors import explain_missing, is_importing, no_such_module

PYTORCH_VERSION = "2.13.0"
SERVED_VERSION = f"{PYTORCH_VERSION}+antorcha"

_NAME = "torch"
_FACE = "antorcha"
_SPAWN = "multiprocessing.spawn"


def install(*, hide: bool = False) -> None:
    """Serve ``torch`` and every ``torch.*`` from antorcha, in this process, from now on.

    Raises ImportError when PyTorch is installed or imported, unless `hide` is true.
    A second call changes nothing.
    """
    if _finder() is not None:
        return
    imported = [name for name in sys.modules if name == _NAME or name.startswith(f"{_NAME}.")]
    if not hide and (imported or pytorch_is_installed()):
        raise ImportError(
            "PyTorch is installed here, and antorcha will not take its name unasked. "
            "Write `import antorcha as torch`, or run the program with `antorcha run`, or call "
            "antorcha.torch_alias.install(hide=True).",
            name=_NAME,
        )
    hidden = {name: sys.modules.pop(name) for name in imported}
    sys.meta_path.insert(0, _Finder(hidden))
    if _SPAWN in sys.modules:
        _serve_children(sys.modules[_SPAWN])


def uninstall() -> None:
    """Give the name ``torch`` back, to the PyTorch that `install` hid or to nobody."""
    finder = _finder()
    if finder is None:
        return
    sys.meta_path.remove(finder)
    for name in [name for name in sys.modules if name == _NAME or name.startswith(f"{_NAME}.")]:
        del sys.modules[name]
    sys.modules.update(finder.hidden)


def pytorch_is_installed() -> bool:
    """Whether an ``import torch`` without this module would find a package."""
    spec = importlib.machinery.PathFinder.find_spec(_NAME)
    # A plain folder called "torch" on the path is a namespace package, and nobody's PyTorch.
    return spec is not None and spec.origin is not None


def _finder() -> _Finder | None:
    return next((finder for finder in sys.meta_path if isinstance(finder, _Finder)), None)


class _ServeChild:
    """Unpickled in a child, it serves ``torch`` there."""

    def __reduce__(self) -> Any:
        lines = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            "from antorcha import torch_alias; torch_alias.install(hide=True)"
        )
        return exec, (lines, {})


def _serve_children(spawn: ModuleType) -> None:
    """Has ``multiprocessing.spawn`` tell the processes it starts to serve ``torch``."""
    prepare = spawn.get_preparation_data
    if hasattr(prepare, "serves_torch"):
        return

    def prepare_and_serve(name: str) -> dict[str, Any]:
        data: dict[str, Any] = prepare(name)
        if _finder() is not None:
            data["antorcha"] = _ServeChild()
        return data

    prepare_and_serve.serves_torch = True  # type: ignore[attr-defined]
    spawn.get_preparation_data = prepare_and_serve  # type: ignore[attr-defined]


class TorchVersion(str):
    """PyTorch's version string: it compares as a version, with strings and with tuples.

    >>> TorchVersion("2.13.0+antorcha") > "2.6" and TorchVersion("2.13.0+antorcha") >= (2, 13)
    True
    """

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return self._compare(other) < 0

    def __le__(self, other: object) -> bool:
        return self._compare(other) <= 0

    def __gt__(self, other: object) -> bool:
        return self._compare(other) > 0

    def __ge__(self, other: object) -> bool:
        return self._compare(other) >= 0

    def _compare(self, other: object) -> int:
        mine, theirs = _release(self), _release(other)
        width = max(len(mine), len(theirs))
        padded = [numbers + (0,) * (width - len(numbers)) for numbers in (mine, theirs)]
        return (padded[0] > padded[1]) - (padded[0] < padded[1])


def _release(version: object) -> tuple[int, ...]:
    """The release numbers of ``"2.13.0+cpu"`` or ``(2, 13)``; the rest does not order versions."""
    parts = version if isinstance(version, (tuple, list)) else str(version).split("+")[0].split(".")
    numbers = []
    for part in parts:
        digits = re.match(r"\d+", str(part))
        if digits is None:
            break
        numbers.append(int(digits[0]))
    return tuple(numbers)


class TorchModule(ModuleType):
    """The module ``torch``: antorcha's names under PyTorch's name and version."""

    def __init__(self, face: ModuleType) -> None:
        super().__init__(_NAME, face.__doc__)
        self.__dict__.update(
            __version__=TorchVersion(SERVED_VERSION),
            __path__=face.__path__,
            __file__=face.__file__,
            version=_version_module(),
            _face=face,
            _replaced={},
        )

    def __getattr__(self, name: str) -> Any:
        face: ModuleType = self.__dict__["_face"]
        if name == "__all__" and name not in vars(face):
            return [public for public in dir(face) if not public.startswith("_")]
        return getattr(face, name)

    def __setattr__(self, name: str, value: object) -> None:
        # What the import system writes on a module is this module's own; the rest is antorcha's.
        if name in self.__dict__ or (name.startswith("__") and name.endswith("__")):
            super().__setattr__(name, value)
        else:
            face = self.__dict__["_face"]
            if name in vars(face):
                self.__dict__["_replaced"].setdefault(name, vars(face)[name])
            setattr(face, name, value)

    def __delattr__(self, name: str) -> None:
        # A test that puts a function aside and finds it nowhere in vars(torch) (pytest's
        # monkeypatch) deletes what it has put there: then antorcha's own is back.
        if name in self.__dict__:
            super().__delattr__(name)
        elif name in self.__dict__["_replaced"]:
            setattr(self.__dict__["_face"], name, self.__dict__["_replaced"].pop(name))
        else:
            delattr(self.__dict__["_face"], name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self.__dict__["_face"]), "version"})

    def __repr__(self) -> str:
        return f"<module {_NAME!r} served by {self.__dict__['_face']!r}>"


def _version_module() -> ModuleType:
    """``torch.version``: what programs ask it is the version and whether a GPU build is running."""
    module = ModuleType(f"{_NAME}.version", "The version of PyTorch that antorcha serves.")
    module.__dict__.update(
        __version__=SERVED_VERSION,
        cuda=None,
        hip=None,
        xpu=None,
        debug=False,
        git_version="antorcha",
    )
    explain_missing(module.__name__, module.__dict__)
    return module


class _Finder(importlib.abc.MetaPathFinder):
    """Find ``torch`` and ``torch.*`` in antorcha; `hidden` are the real modules put aside."""

    def __init__(self, hidden: dict[str, ModuleType]) -> None:
        self.hidden = hidden

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec that loads as antorcha's module of the same name."""
        if fullname == _NAME:
            module: ModuleType = TorchModule(importlib.import_module(_FACE))
        elif fullname.startswith(f"{_NAME}."):
            try:
                module = _same_module(fullname)
            except ModuleNotFoundError as error:
                if error.name == fullname and not is_importing():
                    return None
                raise
        elif fullname == _SPAWN:
            return _watched(importlib.machinery.PathFinder.find_spec(fullname, path))
        else:
            return None
        return importlib.machinery.ModuleSpec(
            fullname, _Loader(module), is_package=hasattr(module, "__path__")
        )


class _Loader(importlib.abc.Loader):
    """Hand out a module that is loaded already, and leave it as it was."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.spec = module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just written the alias's spec on antorcha's module. `torch` itself
        # had none and keeps it: importlib.util.find_spec("torch") is how programs look for PyTorch.
        if self.spec is not None:
            _keep_shadowing_names(module, str(module.__spec__ and module.__spec__.name))
            module.__spec__ = self.spec


def _keep_shadowing_names(package: ModuleType, alias: str) -> None:
    """Where a function stands in the place of a module of its name (``multiprocessing.spawn``), the
    module is known under its alias already: importing it would put it in the function's place."""
    prefix = f"{package.__name__}."
    for name, module in list(sys.modules.items()):
        child = name.removeprefix(prefix)
        if child != name and getattr(package, child, module) is not module:
            sys.modules[f"{alias}.{child}"] = module


def _watched(
    spec: importlib.machinery.ModuleSpec | None,
) -> importlib.machinery.ModuleSpec | None:
    if spec is not None and spec.loader is not None:
        spec.loader = _SpawnLoader(spec.loader)
    return spec


class _SpawnLoader(importlib.abc.Loader):
    """Loads ``multiprocessing.spawn`` as its own loader does, and has it serve children."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self.loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _serve_children(module)


def _same_module(fullname: str) -> ModuleType:
    """Return antorcha's module for ``torch.a.b``; raise ModuleNotFoundError if it has none."""
    torch = sys.modules[_NAME]
    parts = fullname.split(".")[1:]
    # antorcha has packages where PyTorch has functions (`tensor`, `compile`): those are not PyTorch
    # modules, and importing one would put the package in the function's place.
    top = getattr(torch, parts[0], None)
    if top is None or isinstance(top, ModuleType):
        try:
            return importlib.import_module(".".join([_FACE, *parts]))
        except ModuleNotFoundError as error:
            if not f"{_FACE}.{'.'.join(parts)}.".startswith(f"{error.name}."):
                raise  # antorcha has the module; something that it needs is missing
    # A module may also be shown under a second name (`torch.utils.data` is another package here).
    found: Any = torch
    for part in parts:
        found = getattr(found, part, None)
    if isinstance(found, ModuleType):
        return found
    raise _missing(fullname)


def _missing(fullname: str) -> ModuleNotFoundError:
    parent_name, _, child = fullname.rpartition(".")
    parent = sys.modules.get(parent_name)
    siblings = [
        info.name
        for info in pkgutil.iter_modules(getattr(parent, "__path__", ()))
        if info.name != child and not info.name.startswith("_")
    ]
    return no_such_module(fullname, siblings)
