"""cuFFT's functions: Fourier transforms of up to three dims, of many signals at once.

A plan is made for sizes, strides, types and a number of signals; a stream and scratch memory are
told to it before it runs.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Sequence
from ctypes import c_int, c_int64, c_size_t, c_void_p
from typing import Any, NamedTuple

from antorcha.core.forks import held_over_forks
from antorcha.devices.cuda.libraries.cublaslt import DATA_TYPES
from antorcha.devices.cuda.libraries.loader import NvidiaLibrary

_OUT, _PLAN, _HANDLE, _DATA = c_void_p, c_int, c_void_p, c_void_p
_TYPE = c_int

PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cufftGetVersion": (_OUT,),
    "cufftCreate": (_OUT,),
    "cufftDestroy": (_PLAN,),
    "cufftSetAutoAllocation": (_PLAN, c_int),
    "cufftXtMakePlanMany": (
        _PLAN, c_int, c_void_p, c_void_p, c_int64, c_int64, _TYPE, c_void_p, c_int64, c_int64,
        _TYPE, c_int64, _OUT, _TYPE,
    ),
    "cufftSetStream": (_PLAN, _HANDLE),
    "cufftSetWorkArea": (_PLAN, _DATA),
    "cufftXtExec": (_PLAN, _DATA, _DATA, c_int),
}  # fmt: skip
"""What is used of cuFFT: the functions' names, and the types of their arguments."""
FORWARD, INVERSE = -1, 1
STATUS_NAMES = {
    1: "INVALID_PLAN", 2: "ALLOC_FAILED", 3: "INVALID_TYPE", 4: "INVALID_VALUE",
    5: "INTERNAL_ERROR", 6: "EXEC_FAILED", 7: "SETUP_FAILED", 8: "INVALID_SIZE",
    9: "UNALIGNED_DATA", 11: "INVALID_DEVICE", 12: "NO_WORKSPACE", 14: "NOT_IMPLEMENTED",
    16: "NOT_SUPPORTED", 17: "MISSING_DEPENDENCY", 18: "NVRTC_FAILURE", 19: "NVJITLINK_FAILURE",
    20: "NVSHMEM_FAILURE",
}  # fmt: skip


class SignalPlaces(NamedTuple):
    """How signals lie, as cuFFT sees them: element (x, y, z) of signal b is number
    ``b * apart + ((x * embed[1] + y) * embed[2] + z) * step``. ``is_dense``: there are no gaps, and
    the signals follow one another."""

    embed: tuple[int, ...]
    step: int
    apart: int
    dtype: str
    is_dense: bool


class TransformSizes(NamedTuple):
    """What a plan is made for; ``sizes`` are the signals'."""

    sizes: tuple[int, ...]
    signals: int
    source: SignalPlaces
    target: SignalPlaces


class Cufft(NvidiaLibrary):
    """cuFFT, and the plans that are in use. ``lock``: a plan is made by one thread at a time."""

    STEM = "cufft"

    def __init__(self, handle: Any) -> None:
        super().__init__("cuFFT", handle, PROTOTYPES, {})
        out = c_int()
        self.call("cufftGetVersion", ctypes.byref(out))
        self.version = out.value
        self.plans: weakref.WeakValueDictionary[Any, TransformPlan] = weakref.WeakValueDictionary()
        self.lock = held_over_forks(threading.RLock())

    def text(self, status: int) -> str:
        return f"CUFFT_{STATUS_NAMES.get(status, status)}"

    def has_plan(self, gpu: Any, what: TransformSizes) -> bool:
        """Is there such a plan already?"""
        return (gpu.index, what) in self.plans

    def plan(self, gpu: Any, what: TransformSizes) -> TransformPlan:
        """A plan for a GPU, whose context is current."""
        key = gpu.index, what
        with self.lock:
            found = self.plans.get(key)
            if found is None:
                found = self.plans[key] = TransformPlan(self, what)
            return found


class TransformPlan:
    """A plan of the library's, and the bytes of scratch memory that it takes."""

    def __init__(self, fft: Cufft, what: TransformSizes) -> None:
        self.fft = fft
        out, workspace = c_int(), c_size_t()
        fft.call("cufftCreate", ctypes.byref(out))
        self.number = out.value
        fft.call("cufftSetAutoAllocation", self.number, 0)
        source, target = what.source, what.target
        types = [DATA_TYPES[each.dtype] for each in (source, target)]
        rows = [_numbers(each.embed) for each in (source, target)]
        if source.is_dense and target.is_dense:  # (it may be faster then)
            rows = [None, None]
        fft.call(
            "cufftXtMakePlanMany", self.number, len(what.sizes), _numbers(what.sizes), rows[0],
            source.step, source.apart, types[0], rows[1], target.step, target.apart, types[1],
            what.signals, ctypes.byref(workspace), types[1],
        )  # fmt: skip
        self.workspace = workspace.value

    def __del__(self) -> None:
        if hasattr(self, "number"):
            self.fft.functions["cufftDestroy"](self.number)


def _numbers(values: Sequence[int]) -> Any:
    return (c_int64 * len(values))(*values)
