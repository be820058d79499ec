"""``torch.cuda``: questions about NVIDIA GPUs. This version has no CUDA device: all say so.

What needs a device raises AssertionError, as in a PyTorch without CUDA.

See https://docs.pytorch.org/docs/stable/cuda.html.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from antorcha.absent_device import queries
from antorcha.basics import OutOfMemoryError as OutOfMemoryError
from antorcha.core.device import Device, backend
from antorcha.errors import no_such_name
from antorcha.tensor.legacy import STORAGE_NAMES, TYPE_NAMES

has_half = True
has_magma = False


def _refuse() -> Any:
    backend(Device("cuda"))  # raises, and says what to use
    raise AssertionError


globals().update(queries("cuda", _refuse))


class CudaError(RuntimeError):
    """An error of the CUDA runtime; nothing raises it here."""


class DeferredCudaCallError(Exception):
    """An error of a call made before CUDA was initialised; nothing raises it here."""


class CUDAGraph:
    """A recorded graph of kernels: making one raises AssertionError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse()


class CUDAPluggableAllocator(CUDAGraph):
    """An allocator of one's own: making one raises AssertionError."""


class _Absent(type):
    """The type of ``torch.cuda.FloatTensor`` and its like: no tensor is one."""

    is_cuda = True
    is_sparse = False

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        _refuse()

    def __instancecheck__(cls, instance: Any) -> bool:
        return False


for _name in (*TYPE_NAMES, *STORAGE_NAMES):
    _doc = "The older name of a kind of tensor or storage on a GPU: nothing is an instance."
    globals()[_name] = _Absent(_name, (), {"__module__": __name__, "__doc__": _doc})


def device_count() -> int:
    """How many CUDA devices there are: 0.

    >>> torch.cuda.device_count(), torch.cuda.is_available()
    (0, False)
    """
    return 0


def reset_max_memory_allocated(device: Any = None) -> None:
    """Needs the device: raises, since there is none."""
    _refuse()


reset_max_memory_cached = reset_max_memory_allocated
cudart = current_blas_handle = current_solver_handle = ipc_collect = reset_max_memory_allocated
get_sync_debug_mode = set_sync_debug_mode = reset_max_memory_allocated
caching_allocator_alloc = caching_allocator_delete = reset_max_memory_allocated


def list_gpu_processes(device: Any = None) -> str:
    """The processes that run on the GPU: needs the device, and raises."""
    _refuse()
    raise AssertionError


class _Part(ModuleType):
    """A module of ``torch.cuda`` that shows some of its names."""

    def __init__(self, name: str, **names: Any) -> None:
        super().__init__(f"{__name__}.{name}", f"``torch.cuda.{name}``: names of ``torch.cuda``.")
        self.__path__: list[str] = []
        self.__dict__.update(names)
        self.__dict__["__getattr__"] = lambda each: _elsewhere(f"torch.cuda.{name}", each)
        sys.modules[self.__name__] = self


def _elsewhere(module: str, name: str) -> Any:
    if name[:1] != "_" and name in globals():
        return globals()[name]
    raise no_such_name(module, name, globals())


def _mark(*args: Any, **kwargs: Any) -> Any:
    """NVTX marks need NVIDIA's library: raises RuntimeError, as in a PyTorch without CUDA."""
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


memory, random, streams, graphs = map(_Part, ("memory", "random", "streams", "graphs"))
nvtx = _Part("nvtx", range_push=_mark, range_pop=_mark, range_start=_mark, range_end=_mark,
             mark=_mark, range=_mark)  # fmt: skip
profiler = _Part("profiler", init=_mark, start=_mark, stop=_mark, profile=_mark)
nccl = _Part("nccl", is_available=lambda tensors: False, version=_mark)


def __getattr__(name: str) -> Any:
    if name == "amp":
        return importlib.import_module(f"{__name__}.amp")
    raise no_such_name("torch.cuda", name, globals())
