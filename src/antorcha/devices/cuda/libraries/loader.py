"""Where NVIDIA's libraries are, and their functions, by ctypes.

pip's packages put them in ``site-packages/nvidia/*/lib``; the system's loader finds those of a
toolkit. A library that is missing, or that this driver is too old for, is one that is not used.
"""

from __future__ import annotations

import ctypes
import glob
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_int
from typing import Any

from antorcha import config
from antorcha.core.forks import held_over_forks
from antorcha.devices.cuda import driver
from antorcha.errors import AcceleratorError

VERSIONS: dict[str, dict[int, int]] = {
    "cublasLt": {13: 13, 12: 12},
    "cublas": {13: 13, 12: 12},
    "cusolver": {12: 13, 11: 12},
    "cufft": {12: 13, 11: 12},
    "cudnn": {9: 12},
}
"""The versions that a library's file name ends with, the best first, and the CUDA of each."""
_Functions = Mapping[str, tuple[Any, ...]]


class NvidiaLibrary:
    """A library of NVIDIA's: its functions, each of which gives a status, 0 being success.

    ``text``: what a status means, in the library's own words.
    """

    def __init__(
        self, name: str, handle: Any, prototypes: _Functions, kinds: Mapping[str, Any],
        optional: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.name = name
        self.functions: dict[str, Callable[..., Any]] = {}
        for function, types in prototypes.items():
            if function in optional and not hasattr(handle, function):
                continue
            found = getattr(handle, function)  # AttributeError: a version that is too old
            found.argtypes, found.restype = types, kinds.get(function, c_int)
            self.functions[function] = found

    def text(self, status: int) -> str:
        """What a status means."""
        return f"status {status}"

    def call(self, function: str, *args: Any) -> None:
        """Calls a function; raises what it reports."""
        status = self.functions[function](*args)
        if status:
            raise self.error(function, status)

    def made(self, function: str, *args: Any) -> int:
        """Calls a function whose first argument is where a handle goes; gives that."""
        out = ctypes.c_void_p()
        self.call(function, ctypes.byref(out), *args)
        return out.value or 0

    def error(self, function: str, status: int) -> RuntimeError:
        """What a status says."""
        error = AcceleratorError(
            f"CUDA error: {self.text(status)} when calling {function} of {self.name}"
        )
        error.error_code = status
        return error


class _Found:
    """The libraries that were asked for: None where there is none."""

    def __init__(self) -> None:
        self.libraries: dict[type[NvidiaLibrary], Any] = {}
        self.why: dict[str, str] = {}
        self.lock = held_over_forks(threading.RLock())


_found = _Found()


def library(kind: Any) -> Any:
    """The library of a class, opened when it is first asked for; None where it is not installed or
    is not wanted (``ANTORCHA_LIBRARIES=off``)."""
    try:
        return _found.libraries[kind]
    except KeyError:
        with _found.lock:
            if kind not in _found.libraries:
                _found.libraries[kind] = _open(kind)
            return _found.libraries[kind]


def _open(kind: Any) -> Any:
    name = kind.STEM
    if not config.libraries:
        _found.why[name] = "ANTORCHA_LIBRARIES=off"
        return None
    if driver.found() is None:
        _found.why[name] = driver.missing()
        return None
    try:
        return kind(open_library(name))
    except (OSError, AttributeError, RuntimeError) as error:
        _found.why[name] = str(error)
        return None


def why_not(name: str) -> str:
    """Why a library is not used; "" where it is, or nobody has asked for it."""
    return _found.why.get(name, "")


def open_library(name: str) -> Any:
    """The library ``lib<name>.so`` that suits the driver; OSError where there is none."""
    cuda = driver.require().version // 1000
    versions = [major for major, of in VERSIONS[name].items() if of <= max(cuda, 12)]
    errors = []
    for path in [*paths(name, versions, folders()), *[f"lib{name}.so.{v}" for v in versions]]:
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            errors.append(str(error))
    raise OSError(errors[0])


def folders() -> list[str]:
    """The folders ``nvidia`` of the packages that this Python imports."""
    places = [os.path.join(path, "nvidia") for path in sys.path if path]
    return [place for place in dict.fromkeys(places) if os.path.isdir(place)]


def paths(name: str, versions: Sequence[int], places: Sequence[str]) -> list[str]:
    """The files of a library, the best version first."""
    found = []
    for version in versions:
        for place in places:
            found += sorted(glob.glob(os.path.join(place, "*", "lib", f"lib{name}.so.{version}")))
    return found


def forget() -> None:
    """Every library is looked for again (for tests)."""
    _found.__init__()  # type: ignore[misc]
