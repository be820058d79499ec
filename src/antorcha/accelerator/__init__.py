"""``torch.accelerator``: the accelerator of this machine, whichever it is: an NVIDIA GPU, Apple's,
or none.

What asks says so; what needs a device raises RuntimeError where there is none, as PyTorch does on
the CPU.

See https://docs.pytorch.org/docs/stable/accelerator.html.
"""

from __future__ import annotations

from typing import Any

from antorcha import cpu, cuda, mps
from antorcha.core import dtypes
from antorcha.core.device import CPU, Device
from antorcha.core.lazy import lazy
from antorcha.errors import DeviceError, MissingFeature, explain_missing, warn

cuda_memory = lazy("antorcha.devices.cuda.memory")
sim_streams = lazy("antorcha.devices.sim.streams")

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream",
    "device_count", "device_index", "empty_cache", "empty_host_cache", "get_device_capability",
    "get_memory_info", "is_available", "max_memory_allocated", "max_memory_reserved",
    "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Has this machine an accelerator that tensors can be put on?

    >>> torch.accelerator.is_available()
    False
    """
    return cuda.is_available() or mps.is_available()


def device_count() -> int:
    """How many there are; 0 where there is none."""
    return cuda.device_count() or mps.device_count()


def current_accelerator(check_available: bool = False) -> Device | None:
    """The accelerator as a ``torch.device``; None where there is none.

    >>> print(torch.accelerator.current_accelerator())
    None
    """
    if not is_available():
        return None
    return Device("cuda" if cuda.is_available() else "mps")


def _refuse(*_: Any, **__: Any) -> Any:
    """Needs an accelerator: raises RuntimeError, since there is none."""
    raise DeviceError(
        "Cannot access accelerator device when none is available. "
        "(torch.accelerator.is_available() tells; use device='cpu'.)"
    )


def _of_cuda(name: str, doc: str) -> Any:
    """``torch.cuda``'s function of that name, where there is a GPU; Apple's have a few of them."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        if cuda.is_available():
            return getattr(cuda, name)(*args, **kwargs)
        if not mps.is_available():
            _refuse()
        if name not in _OF_MPS:
            raise MissingFeature(f"torch.accelerator: device 'mps' has no {name}")
        return _OF_MPS[name](*[a for a in args if not isinstance(a, (str, int, Device))])

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = doc
    return ask


_OF_MPS: dict[str, Any] = {
    "current_device": lambda: 0, "set_device": lambda: None, "synchronize": mps.synchronize,
    "empty_cache": mps.empty_cache, "memory_allocated": mps.current_allocated_memory,
    "memory_reserved": mps.driver_allocated_memory,
}  # fmt: skip
current_device_index = _of_cuda("current_device", "The number of the current device.")
set_device_index = _of_cuda("set_device", "Makes a device the current one.")
current_stream = _of_cuda("current_stream", "The stream that work is given to, in this thread.")
set_stream = _of_cuda("set_stream", "Makes a stream the current one, and its device.")
synchronize = _of_cuda("synchronize", "Waits for all work on a device.")
get_memory_info = _of_cuda("mem_get_info", "Bytes that nobody uses, and all of them.")
empty_cache = _of_cuda("empty_cache", "Gives memory that no tensor uses back to the system.")
memory_stats = _of_cuda("memory_stats", "Counts of bytes and blocks.")
memory_allocated = _of_cuda("memory_allocated", "Bytes that tensors hold.")
memory_reserved = _of_cuda("memory_reserved", "Bytes that are had of the system.")
max_memory_allocated = _of_cuda("max_memory_allocated", "The most bytes that tensors have held.")
max_memory_reserved = _of_cuda("max_memory_reserved", "The most bytes had of the system.")
reset_peak_memory_stats = _of_cuda("reset_peak_memory_stats", "The most is counted from now on.")
reset_accumulated_memory_stats = _of_cuda(
    "reset_accumulated_memory_stats", "What was taken and given back is counted from now on."
)


def empty_host_cache() -> None:
    """Gives pinned memory of the host that no tensor uses back to the system."""
    if not is_available():
        _refuse()
    if not cuda.is_available():
        return  # (Apple's GPUs share the host's memory)
    cuda_memory.pinned.empty_cache()


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """What a device can do: ``supported_dtypes``."""
    if not is_available():
        _refuse()
    lacking: tuple[str, ...] = ("float64", "complex128")
    if cuda.is_available():
        cuda.get_device_capability(device)
        lacking = ()
    kept = {e for e in dtypes.ALL if e.name[:6] != "float8" and e.name not in lacking}
    return {"supported_dtypes": kept}


def current_device_idx() -> int:
    """Deprecated form of ``current_device_index``."""
    warn("Use `current_device_index` instead.", FutureWarning)
    return current_device_index()  # type: ignore[no-any-return]


def set_device_idx(device: Any, /) -> None:
    """Deprecated form of ``set_device_index``."""
    warn("Use `set_device_index` instead.", FutureWarning)
    set_device_index(device)


def _of_device(device: Any) -> Any:
    """The module whose streams and events are those of a device; None for the CPU's."""
    kind = "cpu" if device is None else Device(device).type
    if kind == "cpu":
        return None
    if kind == "sim":
        return sim_streams
    if kind != "cuda" or not cuda.is_available():
        _refuse()
    return cuda


class Stream(cpu.Stream):
    """``torch.Stream``: the order of a device's work; for a GPU a ``torch.cuda.Stream``."""

    def __new__(cls, device: Any = None, *, priority: int = 0) -> Any:
        where = _of_device(device)
        return object.__new__(cls) if where is None else where.Stream(device, priority)

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        super().__init__(priority)
        self.device = CPU


class Event(cpu.Event):
    """``torch.Event``: a point in a device's work; for a GPU a ``torch.cuda.Event``. The CPU's has
    passed when it is recorded."""

    def __new__(cls, device: Any = None, *, enable_timing: bool = False) -> Any:
        where = _of_device(device)
        return object.__new__(cls) if where is None else where.Event(enable_timing)

    def __init__(self, device: Any = None, *, enable_timing: bool = False) -> None:
        self.device = CPU


class device_index(cuda.device):
    """A context that chooses a device by its index: None changes nothing."""

    def __enter__(self) -> None:
        if self.chosen is not None and not is_available():
            _refuse()
        if mps.is_available() and not cuda.is_available():
            return  # (there is one)
        super().__enter__()


explain_missing("torch.accelerator", globals())
