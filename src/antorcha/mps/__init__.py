"""``torch.mps``: Apple's GPUs. Where there is none, what asks says so, and what needs one raises.

That is a RuntimeError, as in a PyTorch without MPS.

The device computes by MLX (``pip install mlx`` on a Mac with Apple silicon). Work is noted first,
and done when its result is needed, or after many notes; ``synchronize`` waits for all of it.

See https://docs.pytorch.org/docs/stable/mps.html.
"""

from __future__ import annotations

from typing import Any

from antorcha.absent_device import queries
from antorcha.core import dtypes
from antorcha.core.device import CPU, Device
from antorcha.core.lazy import lazy, np
from antorcha.errors import ArgumentError, GraphError, MissingFeature, explain_missing
from antorcha.runtime import philox
from antorcha.runtime.philox import PhiloxGenerator
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import from_array

library = lazy("antorcha.devices.mps.library")


def _refuse() -> Any:
    raise RuntimeError(
        "Torch not compiled with MPS enabled: there is no device 'mps' here; use device='cpu' "
        "(torch.backends.mps.is_available() tells which)"
    )


globals().update(queries("mps", _refuse))


def is_available() -> bool:
    """Can tensors be put on the device? It takes a Mac with Apple silicon, and MLX.

    >>> torch.mps.is_available()
    False
    """
    return bool(library.kind())


def device_count() -> int:
    """How many there are: 1, or 0."""
    return int(is_available())


def _needed() -> None:
    if not is_available():
        _refuse()


def synchronize() -> None:
    """Waits until everything that the device was asked for is done."""
    _needed()
    library.synchronize()


def empty_cache() -> None:
    """Gives memory that no tensor uses back to the system."""
    if is_available():
        library.mx.clear_cache()


# ---- memory
def current_allocated_memory() -> int:
    """Bytes that tensors hold; what is noted and not yet computed has none."""
    _needed()
    return int(library.mx.get_active_memory())


def driver_allocated_memory() -> int:
    """Bytes that are had of the system: those of tensors, and what is kept for the next ones."""
    _needed()
    return int(library.mx.get_active_memory() + library.mx.get_cache_memory())


def recommended_max_memory() -> int:
    """Bytes that Metal recommends to use at most."""
    _needed()
    found = library.mx.device_info()
    for name in ("max_recommended_working_set_size", "memory_size"):
        if name in found:
            return int(found[name])
    return 0  # (the CPU side, in tests, says nothing)


def set_per_process_memory_fraction(fraction: float) -> None:
    """Limits memory to a part (0 to 2) of what Metal recommends; 0 is no limit."""
    if not isinstance(fraction, float):
        raise ArgumentError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 2:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~2")
    most = int(fraction * recommended_max_memory())
    if most:
        library.mx.set_memory_limit(most)


# ---- random numbers
def _stream() -> PhiloxGenerator:
    _needed()
    return philox.default(Device("mps", 0))


def manual_seed(seed: int) -> None:
    """Seeds the device's generator; nothing to do without one."""
    if is_available():
        _stream().manual_seed(seed)


def seed() -> None:
    """Seeds the device's generator with a number that nobody knows; nothing to do without one."""
    if is_available():
        _stream().seed()


def get_rng_state(device: Any = "mps") -> Tensor:
    """The device's generator as a tensor of 16 bytes on the CPU."""
    return from_array(np.frombuffer(_stream().get_state(), np.uint8), dtypes.uint8, CPU)


def set_rng_state(new_state: Tensor, device: Any = "mps") -> None:
    """Sets the device's generator to what ``get_rng_state`` gave."""
    if new_state.dtype is not dtypes.uint8:
        raise GraphError("RNG state must be a torch.ByteTensor: a uint8 tensor on the CPU")
    _stream().set_state(bytes(new_state.tolist()))


# ---- what MLX gives no way to
class Event:
    """A point in the device's work. Making one raises: MLX has no events to record and wait for."""

    def __init__(self, enable_timing: bool = False) -> None:
        _needed()
        raise MissingFeature(
            "torch.mps.Event: MLX, which the device computes by, has no events; wait for all work "
            "with torch.mps.synchronize()"
        )


def compile_shader(source: str) -> Any:
    """Needs Metal's compiler: raises."""
    _needed()
    raise MissingFeature(
        "torch.mps.compile_shader: kernels of your own are not there yet on device 'mps'; write "
        "the function in tensor ops"
    )


load_metallib = compile_shader

explain_missing("torch.mps", globals())
