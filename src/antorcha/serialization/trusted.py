"""What ``load(weights_only=False)`` gives besides: objects of classes that the program knows.

Whoever says ``weights_only=False`` trusts the file. Even so nothing is imported because a file says
so, and a file calls nothing but what is listed here: an object is made without its constructor and
gets its attributes, as Python's own pickle does it. The classes are antorcha's own, those listed
here, and those of modules that the program has imported, Python's own library excepted.
"""

from __future__ import annotations

import argparse
import collections
import copyreg
import datetime
import decimal
import enum
import fractions
import functools
import inspect
import pathlib
import sys
import types
import uuid
from typing import Any

import numpy as np

from antorcha.errors import PACKAGE, MissingFeature
from antorcha.random import DeviceGenerator, Generator
from antorcha.serialization import homes
from antorcha.serialization.rebuild import VariableFunctions

_reconstructor: Any = copyreg._reconstructor  # type: ignore[attr-defined]


def _numpy() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for module in ("numpy._core.multiarray", "numpy.core.multiarray"):
        array: Any = np.zeros(0).__reduce__()[0]
        scalar: Any = np.float64(0).__reduce__()[0]
        found |= {f"{module}._reconstruct": array, f"{module}.scalar": scalar}
    for module in ("numpy._core.numeric", "numpy.core.numeric"):
        found[f"{module}._frombuffer"] = _frombuffer
    found["numpy.dtype"] = np.dtype
    return found


def _numpy_generators() -> tuple[dict[str, Any], dict[str, Any]]:
    """(classes, functions) that NumPy's random number generators are pickled with."""
    classes = {
        f"{kind.__module__}.{kind.__name__}": kind
        for kind in (np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox,
                     np.random.SFC64, np.random.SeedSequence, np.random.Generator,
                     np.random.RandomState)
    }  # fmt: skip
    seeded = (np.random.default_rng(0), np.random.PCG64(0), np.random.RandomState(0))
    makers: list[Any] = [each.__reduce__()[0] for each in seeded]
    functions = {f"{maker.__module__}.{maker.__name__}": maker for maker in makers}
    seeds: Any = np.random.SeedSequence(0).__reduce__()[0]
    return classes, {**functions, f"numpy.random.bit_generator.{seeds.__name__}": seeds}


def _frombuffer(buffer: Any, dtype: Any, shape: Any, order: Any) -> Any:
    """An array that NumPy pickled with protocol 5."""
    return np.frombuffer(buffer, dtype=dtype).reshape(shape, order=order)


@functools.cache
def known() -> tuple[dict[str, Any], dict[str, Any]]:
    """(classes, functions that may be called) by full name, of Python's library and NumPy's."""
    paths = (pathlib.PurePosixPath, pathlib.PosixPath, pathlib.PureWindowsPath)
    functions: dict[str, Any] = _numpy()
    for kind in (collections.deque, datetime.date, datetime.datetime, datetime.time,
                 datetime.timedelta, datetime.timezone, decimal.Decimal, fractions.Fraction,
                 functools.partial, *paths):  # fmt: skip
        functions[f"{kind.__module__}.{kind.__qualname__}"] = kind
        functions[f"pathlib._local.{kind.__qualname__}"] = kind  # (Python 3.13's name)
    functions |= {"copyreg._reconstructor": _reconstructor, "copy_reg._reconstructor":
                  _reconstructor, "builtins.range": range, "__builtin__.xrange": range}  # fmt: skip
    classes: dict[str, Any] = {
        "torch._C._VariableFunctionsClass": VariableFunctions, "numpy.ndarray": np.ndarray,
        "argparse.Namespace": argparse.Namespace, "types.SimpleNamespace": types.SimpleNamespace,
        "inspect._empty": inspect._empty, "uuid.UUID": uuid.UUID, "builtins.object": object,
        "__builtin__.object": object,
    }  # fmt: skip
    for each in vars(np.dtypes).values():
        if isinstance(each, type):
            classes[f"numpy.dtypes.{each.__name__}"] = each
    of_generators, makers = _numpy_generators()
    return classes | of_generators, functions | makers


def find(module: str, name: str) -> Any:
    """The class or function of that name; None where a file may not have it."""
    for table in known():
        if f"{module}.{name}" in table:
            return table[f"{module}.{name}"]
    if homes.is_torch(module):
        return homes.resolve(module, name)
    if module.split(".")[0] in sys.stdlib_module_names - {"__main__"} or module.startswith("numpy"):
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    # A module's own things, and not what it has imported from elsewhere.
    is_own = getattr(found, "__module__", None) == module
    return found if is_own and isinstance(found, (type, types.FunctionType)) else None


def is_known(thing: Any) -> bool:
    """Is it a class that objects may be made of?"""
    return isinstance(thing, type) and any(thing is each for each in known()[0].values())


def classes_of(found: Any) -> list[Any]:
    """What a file has named, and the classes of the objects that calling it gives beside."""
    return [found, DeviceGenerator] if found is Generator else [found]


def may_call(fn: Any, arguments: Any) -> bool:
    """May a file call it, with these arguments?"""
    if fn is _reconstructor:
        return len(arguments) == 3 and arguments[1] is object and arguments[2] is None
    if any(fn is each for each in known()[1].values()):
        return True
    if not isinstance(fn, type):  # an object of the program's that makes others when it is called
        home = type(fn).__module__.split(".")[0]
        return callable(fn) and _is_programs(type(fn)) and home not in (PACKAGE, "numpy")
    if issubclass(fn, enum.Enum):
        return True
    # A class of the program's that says itself how it is pickled; Generators and parameters.
    return any(
        "__reduce__" in vars(each) or "__reduce_ex__" in vars(each)
        for each in fn.__mro__
        if _is_programs(each)
    )


def _is_programs(kind: type) -> bool:
    return kind.__module__.split(".")[0] not in sys.stdlib_module_names - {"__main__"}


def refuse(what: str) -> Any:
    """A function that says what cannot be loaded."""

    def refused(*_: Any, **__: Any) -> Any:
        raise MissingFeature(f"load: {what} are not in this version of antorcha")

    return refused
