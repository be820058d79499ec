"""Kernels to images, and images to functions that can be launched.

llvmlite makes PTX; the driver compiles it for the GPU, and keeps what it has compiled on disk. A
module is loaded once for each GPU.
"""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING

from antorcha.core.forks import held_over_forks
from antorcha.devices.cuda.graphs import relaxed
from antorcha.errors import NativeError
from antorcha.lang.native.machine import nvptx

if TYPE_CHECKING:
    from antorcha.devices.cuda.gpu import Gpu
    from antorcha.devices.gpu.frame import GridStep
    from antorcha.lang.native.function import GridSpec

INFO_LOG, INFO_BYTES, ERROR_LOG, ERROR_BYTES = 3, 4, 5, 6
"""Numbers of ``CUjit_option``."""
LOG_BYTES = 8192
MOST_DYNAMIC_SHARED = 8  # of ``CUfunction_attribute``
_functions: dict[tuple[int, str], int] = {}
_lock = held_over_forks(threading.RLock())


def image_of(spec: GridSpec) -> bytes:
    """What the driver takes of a kernel: PTX."""
    return spec.binary


def function_of(gpu: Gpu, step: GridStep) -> int:
    """The driver's function for a step's kernel on a GPU."""
    to = nvptx(step.capability, True) if step.capability else nvptx(gpu.ptx_capability)
    spec = step.kernel.on_grid(to, step.threads, **step.static)
    key = gpu.index, spec.symbol
    found = _functions.get(key)
    if found is None:
        with _lock:
            image = image_of(spec)
            with relaxed(gpu):  # (a graph may be captured)
                found = _functions.get(key) or load(gpu, spec.symbol, image)
                if step.shared:
                    gpu.driver.call("cuFuncSetAttribute", found, MOST_DYNAMIC_SHARED, step.shared)
            _functions[key] = found
    return found


def load(gpu: Gpu, name: str, image: bytes) -> int:
    """Loads an image; NativeError with the driver's compiler's words where it does not take it."""
    d = gpu.driver
    gpu.use()
    log = ctypes.create_string_buffer(LOG_BYTES)
    options = (ctypes.c_int * 2)(ERROR_LOG, ERROR_BYTES)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
    module = ctypes.c_void_p()
    status = d.status("cuModuleLoadDataEx", ctypes.byref(module), image, 2, options, values)
    if status:
        said = log.value.decode(errors="replace").strip()
        if not said:
            raise gpu.fault("cuModuleLoadDataEx", status)
        raise NativeError(
            f"{name}: the driver does not compile it for cuda:{gpu.index} "
            f"({d.text_of(status)}): {said}"
        )
    return int(d.number("cuModuleGetFunction", module, name.encode(), kind=ctypes.c_void_p))


def function_facts(gpu: Gpu, function: int) -> dict[str, int]:
    """What the driver's compiler made of a kernel: registers, and bytes of local memory."""
    numbers = {"shared bytes": 1, "local bytes": 3, "registers": 4, "ptx": 5, "binary": 6}
    return {key: gpu.driver.number("cuFuncGetAttribute", k, function) for key, k in numbers.items()}


def forget() -> None:
    """Every kernel is loaded again (for tests)."""
    _functions.clear()


def loaded() -> dict[tuple[int, str], int]:
    """The functions that have been loaded, by GPU and name."""
    return dict(_functions)
