"""Apple's GPUs, by MLX: an optional package, imported when somebody first uses the device.

``library``      MLX, its stream and dtypes, and whether it is here
``memory``       storages: a flat array that every write replaces; strides are ours
``expressions``  expression graphs on arrays of MLX's
``special``      functions that MLX lacks
``folds``        reductions, row programs, scans
``products``     products, convolutions, attention, Fourier transforms
``indexing``     gather and scatter, what masks choose
``ordering``     sorting, searching, distinct values, counts
``windows``      pooling, sliding blocks, resampling
``moves``        elements in another order, ranges, checks
``draws``        random numbers
``device``       the device ``mps``: what is not described above is computed by NumPy on the host
"""

from __future__ import annotations

from antorcha.core.device import Device
from antorcha.devices.mps import library
from antorcha.devices.mps.device import MLXBackend, backend_here
from antorcha.errors import DeviceError


def backend_of(device: Device) -> MLXBackend:
    """What runs on the GPU. RuntimeError where there is none, as in a PyTorch without MPS."""
    found = backend_here()
    if device.index:
        raise DeviceError(f"mps: there is one device, 'mps:0'; {device} is none")
    return found


def current_index() -> int | None:
    """The number of the GPU that ``device="mps"`` means: 0; None where there is none."""
    return 0 if library.kind() else None


def device_count() -> int:
    """How many there are."""
    return 1
