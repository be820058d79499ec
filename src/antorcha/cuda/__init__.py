"""``torch.cuda``: NVIDIA GPUs. Without a driver all questions are answered: there is none.

What needs a GPU then raises AssertionError, as in a PyTorch without CUDA. The driver is looked for
when something is first asked.

See https://docs.pytorch.org/docs/stable/cuda.html.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from antorcha.core.device import Device, backend
from antorcha.core.dtypes import by_name
from antorcha.cuda import devices, graphs, memory, random, streams
from antorcha.cuda.devices import (
    _is_in_bad_fork,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
    synchronize,
)  # fmt: skip
from antorcha.cuda.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)  # fmt: skip
from antorcha.cuda.memory import (
    caching_allocator_alloc,
    caching_allocator_delete,
    device_memory_used,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)  # fmt: skip
from antorcha.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)  # fmt: skip
from antorcha.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)  # fmt: skip
from antorcha.errors import AcceleratorError, MissingFeature, OutOfMemoryError, no_such_name
from antorcha.tensor.legacy import STORAGE_NAMES, TYPE_NAMES, construct

__all__ = [
    "CUDAGraph",
    "CUDAPluggableAllocator",
    "CudaError",
    "DeferredCudaCallError",
    "Event",
    "ExternalStream",
    "MemPool",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "graph",
    "graph_pool_handle",
    "graphs",
    "has_half",
    "has_magma",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "nvtx",
    "profiler",
    "random",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]  # fmt: skip

has_half = True
has_magma = False
CudaError = AcceleratorError


class DeferredCudaCallError(Exception):
    """An error of a call made before CUDA was initialised; nothing raises it here."""


class CUDAPluggableAllocator:
    """An allocator of one's own: not available; without a GPU, AssertionError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _missing(type(self).__name__)


class MemPool(CUDAPluggableAllocator):
    """Memory apart from that of other tensors: not available; without a GPU, AssertionError."""


def _missing(name: str) -> Any:
    backend(Device("cuda"))  # raises where there is no GPU, and says what to use
    raise MissingFeature(f"torch.cuda.{name}: not available yet")


def _not_yet(name: str) -> Any:
    def answer(*args: Any, **kwargs: Any) -> Any:
        return _missing(name)

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = "Not available yet; without a GPU it raises AssertionError."
    return answer


for _name in (
    "clock_rate", "memory_usage", "power_draw", "temperature", "utilization",
    "list_gpu_processes", "cudart", "current_blas_handle", "current_solver_handle",
    "ipc_collect", "get_sync_debug_mode", "set_sync_debug_mode",
):  # fmt: skip
    globals()[_name] = _not_yet(_name)


class _OnGpu(type):
    """The type of ``torch.cuda.FloatTensor`` and its like: tensors of a dtype on a GPU."""

    is_cuda = True
    is_sparse = False
    dtype: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        where = Device("cuda", devices.index_of())
        if cls.__name__.endswith("Storage"):
            return _missing(cls.__name__)
        return construct(args, cls.dtype, None, **kwargs).to(where)

    def __instancecheck__(cls, instance: Any) -> bool:
        return devices.is_on_gpu(instance, cls.dtype.name)


for _name, _type in (*TYPE_NAMES.items(), *STORAGE_NAMES.items()):
    _doc = "The older name of a kind of tensor or storage on a GPU."
    _body = {"__module__": __name__, "__doc__": _doc, "dtype": by_name(_type)}
    globals()[_name] = _OnGpu(_name, (), _body)


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


def _show_whole(module: ModuleType) -> None:
    """Lets a module of ``torch.cuda`` show the names of the others, too."""
    name = f"torch.cuda.{module.__name__.rpartition('.')[2]}"
    vars(module)["__getattr__"] = lambda each: _elsewhere(name, each)


for _module in (memory, random, streams, graphs):
    _show_whole(_module)


def _mark(*args: Any, **kwargs: Any) -> Any:
    """NVTX marks need NVIDIA's library: raises RuntimeError, as in a PyTorch without CUDA."""
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


nvtx = _Part("nvtx", range_push=_mark, range_pop=_mark, range_start=_mark, range_end=_mark,
             mark=_mark, range=_mark)  # fmt: skip
profiler = _Part("profiler", init=_mark, start=_mark, stop=_mark, profile=_mark)
nccl = _Part("nccl", is_available=lambda tensors: False, version=_mark)


def __getattr__(name: str) -> Any:
    if name == "default_generators":
        return random.default_generators()
    if name == "amp":
        return importlib.import_module(f"{__name__}.amp")
    raise no_such_name("torch.cuda", name, globals())
