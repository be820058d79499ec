"""``torch.cuda``: questions about NVIDIA GPUs. This version has no CUDA device: all say so."""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.device import Device, backend
from antorcha.errors import no_such_name


def is_available() -> bool:
    """Can tensors be put on a CUDA device?"""
    return False


def is_initialized() -> bool:
    """Has CUDA been used in this process?"""
    return False


def is_bf16_supported() -> bool:
    """Has the GPU bfloat16?"""
    return False


def device_count() -> int:
    """How many CUDA devices there are."""
    return 0


def _absent() -> Any:
    return backend(Device("cuda"))  # raises, and says what to install


def current_device() -> int:
    """The index of the current device; raises AssertionError: there is none."""
    _absent()
    raise AssertionError


def get_device_name(device: Any = None) -> str:
    """A device's name; raises AssertionError: there is none."""
    _absent()
    raise AssertionError


def synchronize(device: Any = None) -> None:
    """Waits for the device; raises AssertionError: there is none."""
    _absent()


def set_device(device: Any) -> None:
    """Chooses the current device; raises AssertionError: there is none."""
    _absent()


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator: nothing to do without one."""


def manual_seed_all(seed: int) -> None:
    """Seeds every device's generator: nothing to do without one."""


def empty_cache() -> None:
    """Gives unused memory back: nothing to do without a device."""


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold on the device: 0 without one."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have held: 0 without a device."""
    return 0


def __getattr__(name: str) -> Any:
    if name == "amp":
        return importlib.import_module("antorcha.cuda.amp")
    raise no_such_name("torch.cuda", name, globals())
