"""cuSOLVER's functions for dense matrices, which lie column by column.

The newer functions take the type of the elements as an argument, sizes of 64 bits, and scratch
memory both on the GPU and on the host. The older ones exist once for each type: their names have
``{}`` in the place of its letter.
"""

from __future__ import annotations

import ctypes
import threading
from ctypes import c_int, c_int64, c_size_t, c_void_p
from typing import Any

from antorcha.core.forks import held_over_forks
from antorcha.devices.cuda.libraries.cublaslt import DATA_TYPES
from antorcha.devices.cuda.libraries.loader import NvidiaLibrary

_OUT, _HANDLE, _DATA, _TYPE, _SIZE = c_void_p, c_void_p, c_void_p, c_int, c_int64
_START = (_HANDLE, _HANDLE)  # the handle, and options
_MATRIX = (_TYPE, _DATA, _SIZE)  # type, address, from one column to the next
_ROOMS = (_OUT, _OUT)  # bytes on the GPU, bytes on the host
_SCRATCH = (_DATA, c_size_t, c_void_p, c_size_t, _OUT)  # both scratch memories, the info
_MORE = (_TYPE, _DATA)  # another array's type and address

_OF_EVERY_TYPE: dict[str, tuple[Any, ...]] = {
    "potrf": (c_int, _SIZE, *_MATRIX, _TYPE),
    "getrf": (_SIZE, _SIZE, *_MATRIX, _DATA, _TYPE),
    "geqrf": (_SIZE, _SIZE, *_MATRIX, *_MORE, _TYPE),
    "syevd": (c_int, c_int, _SIZE, *_MATRIX, *_MORE, _TYPE),
}
_OF_A_TYPE: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "orgqr": ((c_int,) * 3, (_DATA, c_int, _DATA)),
    "ormqr": ((c_int,) * 5, (_DATA, c_int, _DATA, _DATA, c_int)),
    "gesvdj": ((c_int,) * 4, (_DATA, c_int, _DATA, _DATA, c_int, _DATA, c_int)),
}
"""Sizes, and arrays, of functions that exist for each type."""
LETTERS = {"float32": "S", "float64": "D", "complex64": "C", "complex128": "Z"}


def function_name(name: str, dtype: str) -> str:
    """The name of a function that exists for each type."""
    if dtype.startswith("complex") and name.startswith("or"):
        name = "un" + name[2:]
    return f"cusolverDn{LETTERS[dtype]}{name}"


def _prototypes() -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {
        "cusolverDnCreate": (_OUT,),
        "cusolverDnSetStream": (_HANDLE, _HANDLE),
        "cusolverDnCreateParams": (_OUT,),
        "cusolverDnCreateGesvdjInfo": (_OUT,),
        "cusolverGetProperty": (c_int, _OUT),
        "cusolverDnXgetrs": (
            *_START, c_int, _SIZE, _SIZE, *_MATRIX, _DATA, *_MATRIX, _OUT,
        ),
        "cusolverDnXpotrs": (*_START, c_int, _SIZE, _SIZE, *_MATRIX, *_MATRIX, _OUT),
    }  # fmt: skip
    for name, types in _OF_EVERY_TYPE.items():
        asked = (*types[:5], types[-1]) if name == "getrf" else types  # (without its pivots)
        found[f"cusolverDnX{name}_bufferSize"] = (*_START, *asked, *_ROOMS)
        found[f"cusolverDnX{name}"] = (*_START, *types, *_SCRATCH)
    batched = (*_START, *_OF_EVERY_TYPE["syevd"])
    found["cusolverDnXsyevBatched_bufferSize"] = (*batched, *_ROOMS, c_int64)
    found["cusolverDnXsyevBatched"] = (*batched, *_SCRATCH, c_int64)
    for dtype in LETTERS:
        found[function_name("potrfBatched", dtype)] = (
            _HANDLE, c_int, c_int, _DATA, c_int, _DATA, c_int,
        )  # fmt: skip
    for name, (sizes, arrays) in _OF_A_TYPE.items():
        last = (_HANDLE,) if name == "gesvdj" else ()
        for dtype in LETTERS:
            full = function_name(name, dtype)
            found[f"{full}_bufferSize"] = (_HANDLE, *sizes, *arrays, _OUT, *last)
            found[full] = (_HANDLE, *sizes, *arrays, _DATA, c_int, _OUT, *last)
    return found


PROTOTYPES = _prototypes()
"""What is used of cuSOLVER: the functions' names, and the types of their arguments."""
NEWER = ("cusolverDnXsyevBatched", "cusolverDnXsyevBatched_bufferSize")
"""Functions that older versions lack."""
LOWER, UPPER = 0, 1
TRANSPOSED, ADJOINT = 1, 2
WITH_VECTORS = 1
STATUS_NAMES = {
    1: "NOT_INITIALIZED", 2: "ALLOC_FAILED", 3: "INVALID_VALUE", 4: "ARCH_MISMATCH",
    5: "MAPPING_ERROR", 6: "EXECUTION_FAILED", 7: "INTERNAL_ERROR", 8: "MATRIX_TYPE_NOT_SUPPORTED",
    9: "NOT_SUPPORTED", 10: "ZERO_PIVOT", 11: "INVALID_LICENSE", 31: "INVALID_WORKSPACE",
}  # fmt: skip


class Cusolver(NvidiaLibrary):
    """cuSOLVER, and handles of it for each GPU. ``lock``: a handle is one thread's at a time."""

    STEM = "cusolver"

    def __init__(self, handle: Any) -> None:
        super().__init__("cuSOLVER", handle, PROTOTYPES, {}, NEWER)
        self.handles: dict[int, int] = {}
        self.lock = held_over_forks(threading.RLock())
        numbers = []
        for which in range(3):
            out = c_int()
            self.call("cusolverGetProperty", which, ctypes.byref(out))
            numbers.append(out.value)
        self.version = numbers[0] * 1000 + numbers[1] * 100 + numbers[2]
        self.options = self.made("cusolverDnCreateParams")
        self.of_gesvdj = self.made("cusolverDnCreateGesvdjInfo")

    def text(self, status: int) -> str:
        return f"CUSOLVER_STATUS_{STATUS_NAMES.get(status, status)}"

    def begin(self, gpu: Any) -> int:
        """The handle of a GPU, whose context is current, set to its current stream."""
        found = self.handles.get(gpu.index)
        if found is None:
            found = self.handles[gpu.index] = self.made("cusolverDnCreate")
        self.call("cusolverDnSetStream", found, gpu.stream.handle)
        return found


def type_of(dtype: str) -> int:
    """The number of a type of elements."""
    return DATA_TYPES[dtype]
