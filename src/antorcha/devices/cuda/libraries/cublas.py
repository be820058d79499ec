"""cuBLAS's functions: triangular systems, and LU factors of many matrices, column by column.

A function exists once for each type; the letter of the type stands in its name.
"""

from __future__ import annotations

import ctypes
import threading
from ctypes import c_char_p, c_int, c_void_p
from typing import Any

from antorcha.core.forks import held_over_forks
from antorcha.devices.cuda.libraries.cusolver import LETTERS
from antorcha.devices.cuda.libraries.loader import NvidiaLibrary

_OUT, _HANDLE, _DATA = c_void_p, c_void_p, c_void_p
_TRSM = (_HANDLE, *[c_int] * 6, c_void_p, _DATA, c_int, _DATA, c_int)
_OF_A_TYPE: dict[str, tuple[Any, ...]] = {
    "trsm_v2": _TRSM,
    "trsmBatched": (*_TRSM, c_int),
    "getrfBatched": (_HANDLE, c_int, _DATA, c_int, _DATA, _DATA, c_int),
    "getrsBatched": (
        _HANDLE, c_int, c_int, c_int, _DATA, c_int, _DATA, _DATA, c_int, c_void_p, c_int,
    ),
}  # fmt: skip

PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cublasCreate_v2": (_OUT,),
    "cublasSetStream_v2": (_HANDLE, _HANDLE),
    "cublasGetProperty": (c_int, _OUT),
    "cublasGetStatusName": (c_int,),
    "cublasGetStatusString": (c_int,),
    **{
        f"cublas{letter}{name}": types
        for letter in LETTERS.values()
        for name, types in _OF_A_TYPE.items()
    },
}
"""What is used of cuBLAS: the functions' names, and the types of their arguments."""
RESULTS = {"cublasGetStatusName": c_char_p, "cublasGetStatusString": c_char_p}
LEFT = 0


class Cublas(NvidiaLibrary):
    """cuBLAS, and a handle of it for each GPU. ``lock``: a handle is one thread's at a time."""

    STEM = "cublas"

    def __init__(self, handle: Any) -> None:
        super().__init__("cuBLAS", handle, PROTOTYPES, RESULTS)
        numbers = []
        for which in range(3):
            out = c_int()
            self.call("cublasGetProperty", which, ctypes.byref(out))
            numbers.append(out.value)
        self.version = numbers[0] * 10000 + numbers[1] * 100 + numbers[2]
        self.handles: dict[int, int] = {}
        self.lock = held_over_forks(threading.RLock())

    def text(self, status: int) -> str:
        name = self.functions["cublasGetStatusName"](status) or b"unknown status"
        words = self.functions["cublasGetStatusString"](status) or b""
        return f"{name.decode()} ({words.decode()})"

    def begin(self, gpu: Any) -> int:
        """The handle of a GPU, whose context is current, set to its current stream."""
        found = self.handles.get(gpu.index)
        if found is None:
            found = self.handles[gpu.index] = self.made("cublasCreate_v2")
        self.call("cublasSetStream_v2", found, gpu.stream.handle)
        return found
