"""The CUDA driver's functions, by ctypes; found when first asked for.

One table says what of libcuda is used. Every function gives a status, and ``CudaDriver.call``
raises what is not 0, with the name of the function and the driver's own words.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import Any

from antorcha.core.forks import held_over_forks
from antorcha.errors import AcceleratorError, Facts, GraphError, OutOfMemoryError, with_facts

_OUT = c_void_p  # where a result goes
_GPU, _HANDLE, _ADDRESS = c_int, c_void_p, c_uint64
_FLAGS = c_uint

PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cuInit": (_FLAGS,),
    "cuDriverGetVersion": (_OUT,),
    "cuGetErrorName": (c_int, _OUT),
    "cuGetErrorString": (c_int, _OUT),
    "cuDeviceGetCount": (_OUT,),
    "cuDeviceGet": (_OUT, c_int),
    "cuDeviceGetName": (c_void_p, c_int, _GPU),
    "cuDeviceGetUuid_v2": (_OUT, _GPU),
    "cuDeviceTotalMem_v2": (_OUT, _GPU),
    "cuDeviceGetAttribute": (_OUT, c_int, _GPU),
    "cuDeviceCanAccessPeer": (_OUT, _GPU, _GPU),
    "cuDeviceGetDefaultMemPool": (_OUT, _GPU),
    "cuDevicePrimaryCtxRetain": (_OUT, _GPU),
    "cuCtxSetCurrent": (_HANDLE,),
    "cuCtxSynchronize": (),
    "cuCtxEnablePeerAccess": (_HANDLE, _FLAGS),
    "cuCtxGetStreamPriorityRange": (_OUT, _OUT),
    "cuModuleLoadDataEx": (_OUT, c_char_p, c_uint, c_void_p, c_void_p),
    "cuModuleGetFunction": (_OUT, _HANDLE, c_char_p),
    "cuFuncGetAttribute": (_OUT, c_int, _HANDLE),
    "cuFuncSetAttribute": (_HANDLE, c_int, c_int),
    "cuLaunchKernel": (_HANDLE, *[c_uint] * 7, _HANDLE, c_void_p, c_void_p),
    "cuMemGetInfo_v2": (_OUT, _OUT),
    "cuMemAlloc_v2": (_OUT, c_size_t),
    "cuMemFree_v2": (_ADDRESS,),
    "cuMemAllocAsync": (_OUT, c_size_t, _HANDLE),
    "cuMemFreeAsync": (_ADDRESS, _HANDLE),
    "cuMemPoolGetAttribute": (_HANDLE, c_int, _OUT),
    "cuMemPoolSetAttribute": (_HANDLE, c_int, c_void_p),
    "cuMemPoolSetAccess": (_HANDLE, c_void_p, c_size_t),
    "cuMemPoolTrimTo": (_HANDLE, c_size_t),
    "cuMemHostAlloc": (_OUT, c_size_t, _FLAGS),
    "cuMemFreeHost": (c_void_p,),
    "cuMemcpyHtoDAsync_v2": (_ADDRESS, c_void_p, c_size_t, _HANDLE),
    "cuMemcpyDtoHAsync_v2": (c_void_p, _ADDRESS, c_size_t, _HANDLE),
    "cuMemcpyDtoDAsync_v2": (_ADDRESS, _ADDRESS, c_size_t, _HANDLE),
    "cuMemcpyPeerAsync": (_ADDRESS, _HANDLE, _ADDRESS, _HANDLE, c_size_t, _HANDLE),
    "cuMemsetD8Async": (_ADDRESS, c_ubyte, c_size_t, _HANDLE),
    "cuStreamCreateWithPriority": (_OUT, _FLAGS, c_int),
    "cuStreamSynchronize": (_HANDLE,),
    "cuStreamQuery": (_HANDLE,),
    "cuStreamWaitEvent": (_HANDLE, _HANDLE, _FLAGS),
    "cuStreamBeginCapture_v2": (_HANDLE, c_int),
    "cuStreamEndCapture": (_HANDLE, _OUT),
    "cuThreadExchangeStreamCaptureMode": (_OUT,),
    "cuEventCreate": (_OUT, _FLAGS),
    "cuEventDestroy_v2": (_HANDLE,),
    "cuEventRecord": (_HANDLE, _HANDLE),
    "cuEventQuery": (_HANDLE,),
    "cuEventSynchronize": (_HANDLE,),
    "cuEventElapsedTime": (_OUT, _HANDLE, _HANDLE),
    "cuGraphInstantiateWithFlags": (_OUT, _HANDLE, c_uint64),
    "cuGraphLaunch": (_HANDLE, _HANDLE),
    "cuGraphDestroy": (_HANDLE,),
    "cuGraphExecDestroy": (_HANDLE,),
}
"""What is used of libcuda: the symbols' names, and the types of their arguments."""

SUCCESS, OUT_OF_MEMORY, DEINITIALISED, NO_DEVICE, NOT_READY = 0, 2, 4, 100, 600
PEER_ACCESS_ALREADY_ENABLED = 704
MISSING = (
    "Torch not compiled with CUDA enabled: there is no device 'cuda' here: {why}. It needs an "
    "NVIDIA GPU and NVIDIA's driver (for CUDA 12 or newer); there is nothing else to install. Use "
    "device='cpu' (torch.cuda.is_available() tells which)."
)
FORKED = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must "
    "use the 'spawn' start method"
)
WINDOWS_LINUX = "/usr/lib/wsl/lib/libcuda.so.1"  # (Linux within Windows)
_Library = Any  # an object whose attributes are the functions


def open_library() -> _Library:
    """libcuda; OSError where there is none."""
    if sys.platform == "win32":
        return ctypes.CDLL("nvcuda.dll")
    if os.path.exists(WINDOWS_LINUX):
        return ctypes.CDLL(WINDOWS_LINUX)
    return ctypes.CDLL("libcuda.so.1")


class CudaDriver:
    """The driver, initialised: its functions, how many GPUs there are, its version (12080 is
    12.8)."""

    def __init__(self, library: _Library) -> None:
        self.functions: dict[str, Callable[..., int]] = {}
        for name, types in PROTOTYPES.items():
            function = getattr(library, name, None)
            if function is None:
                continue  # (an older driver: whoever needs it is told)
            function.argtypes, function.restype = types, c_int
            self.functions[name] = function
        self.process = os.getpid()
        self.forked = False
        self.call("cuInit", 0)
        self.version = self.number("cuDriverGetVersion")
        self.count = self.number("cuDeviceGetCount")
        self.launch_kernel = self.functions["cuLaunchKernel"]

    def call(self, name: str, *args: Any) -> None:
        """Calls a function; raises what it reports."""
        status = self.status(name, *args)
        if status:
            raise self.error(name, status)

    def status(self, name: str, *args: Any) -> int:
        """Calls a function; gives its status."""
        if self.forked:
            raise GraphError(FORKED)
        function = self.functions.get(name)
        if function is None:
            raise AcceleratorError(f"CUDA error: this driver has no {name}; a newer one is needed")
        return function(*args)

    def address_of(self, name: str) -> int:
        """A function's address, for machine code."""
        return ctypes.cast(self.functions[name], c_void_p).value or 0  # type: ignore[arg-type]

    def number(self, name: str, *args: Any, kind: Any = c_int) -> Any:
        """Calls a function whose first argument is where its result goes; gives that."""
        out = kind()
        self.call(name, ctypes.byref(out), *args)
        return out.value

    def error(self, name: str, status: int, more: str = "") -> RuntimeError:
        """What a status says."""
        kind = OutOfMemoryError if status == OUT_OF_MEMORY else AcceleratorError
        error = kind(f"CUDA error: {self.text_of(status)} ({name} gives {status}){more}")
        error.error_code = status
        return error

    def text_of(self, status: int) -> str:
        """The driver's words for a status."""
        words = []
        for name in ("cuGetErrorString", "cuGetErrorName"):
            out = c_char_p()
            if self.functions[name](status, ctypes.byref(out)) == SUCCESS and out.value:
                words.append(out.value.decode(errors="replace"))
        return ": ".join(words) or "unknown error"


# ---- one for the process
class _Process:
    """What is known of the driver: not asked yet, there, or missing and why."""

    def __init__(self) -> None:
        self.driver: CudaDriver | None = None
        self.why = ""
        self.asked = False


_process = _Process()
_lock = held_over_forks(threading.RLock())


def found() -> CudaDriver | None:
    """The driver; None where there is none, or no GPU."""
    if not _process.asked:
        with _lock:
            if not _process.asked:
                _look()
                _process.asked = True
    return _process.driver


def _look() -> None:
    try:
        driver = CudaDriver(open_library())
    except OSError as error:
        _process.why = f"no NVIDIA driver is installed ({error})"
    except RuntimeError as error:
        _process.why = f"the NVIDIA driver does not start ({error})"
    else:
        if driver.count:
            _process.driver = driver
        else:
            _process.why = "the NVIDIA driver shows no GPU (CUDA_VISIBLE_DEVICES may hide it)"


def missing() -> str:
    """Why there is no device; "" where there is one."""
    return "" if found() is not None else _process.why


def require() -> CudaDriver:
    """The driver; AssertionError where there is none, RuntimeError in a forked child."""
    driver = found()
    if driver is None:
        facts = Facts("no device", more={"device": "cuda"})
        raise with_facts(AssertionError(MISSING.format(why=_process.why)), facts)
    if driver.forked:
        raise GraphError(FORKED)
    return driver


def in_forked_child() -> bool:
    """Was the driver in use when this process was forked?"""
    return _process.driver is not None and _process.driver.forked


def forget() -> None:
    """The next question looks for the driver again (for tests)."""
    _process.__init__()  # type: ignore[misc]


def _after_fork() -> None:
    if _process.driver is not None:
        _process.driver.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
