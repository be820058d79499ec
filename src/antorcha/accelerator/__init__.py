"""``torch.accelerator``: the accelerator of this machine, whichever it is. There is none here.

What asks says so; what needs a device raises RuntimeError, as PyTorch does on the CPU.

See https://docs.pytorch.org/docs/stable/accelerator.html.
"""

from __future__ import annotations

from typing import Any

from antorcha import cpu
from antorcha.core.device import CPU, Device
from antorcha.errors import DeviceError, explain_missing

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream",
    "device_count", "device_index", "empty_cache", "empty_host_cache", "get_device_capability",
    "get_memory_info", "is_available", "max_memory_allocated", "max_memory_reserved",
    "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Has this machine an accelerator that tensors can be put on? False.

    >>> torch.accelerator.is_available()
    False
    """
    return False


def device_count() -> int:
    """How many there are: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> Device | None:
    """The accelerator as a ``torch.device``; None: there is none.

    >>> print(torch.accelerator.current_accelerator())
    None
    """
    return None


def _refuse(*_: Any, **__: Any) -> Any:
    """Needs an accelerator: raises RuntimeError, since there is none."""
    raise DeviceError(
        "Cannot access accelerator device when none is available. "
        "(torch.accelerator.is_available() tells; use device='cpu'.)"
    )


current_device_index = current_device_idx = set_device_index = set_device_idx = _refuse
current_stream = set_stream = synchronize = get_device_capability = get_memory_info = _refuse
empty_cache = empty_host_cache = memory_stats = memory_allocated = memory_reserved = _refuse
max_memory_allocated = max_memory_reserved = reset_peak_memory_stats = _refuse
reset_accumulated_memory_stats = _refuse


class Stream(cpu.Stream):
    """``torch.Stream``: the order of a device's work. The CPU's is the one there is."""

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        if device is not None and Device(device).type != "cpu":
            _refuse()
        super().__init__(priority)
        self.device = CPU


class Event(cpu.Event):
    """``torch.Event``: a point in a device's work. The CPU's has passed when it is recorded."""

    def __init__(self, device: Any = None, *, enable_timing: bool = False) -> None:
        if device is not None and Device(device).type != "cpu":
            _refuse()
        self.device = CPU


class device_index:
    """A context that chooses a device by its index: None changes nothing, another raises."""

    def __init__(self, device: int | None, /) -> None:
        self.index = device

    def __enter__(self) -> None:
        if self.index is not None:
            _refuse()

    def __exit__(self, *_: object) -> None:
        """Leaves; nothing has changed."""


explain_missing("torch.accelerator", globals())
