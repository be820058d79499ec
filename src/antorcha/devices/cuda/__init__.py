"""NVIDIA GPUs, by the CUDA driver alone: kernels of ``devices/gpu`` as PTX, which it compiles.

``driver``  the driver's functions (libcuda, found when a GPU is first asked for), and its errors
``gpu``     a GPU of this process: its context, its streams, what it says of itself
``streams`` orders of work, points in them, and errors that kernels find in data
``memory``  allocations in the order of a stream, pinned memory of the host
``modules`` kernels to images, images to functions
``graphs``  work that is noted once and run again as a whole
``device``  the device ``cuda``: plans launched on the current stream

Nothing here is imported by ``import antorcha``.
"""

from __future__ import annotations

from antorcha.core.device import Device
from antorcha.devices.cuda import driver
from antorcha.devices.cuda.device import CudaBackend, backend_of_gpu
from antorcha.devices.cuda.gpu import here


def backend_of(device: Device) -> CudaBackend:
    """What runs on a GPU. AssertionError where there is no driver, as in a PyTorch without CUDA."""
    driver.require()
    return backend_of_gpu(here.device if device.index is None else device.index)


def current_index() -> int | None:
    """The number of the GPU that ``device="cuda"`` means; None where there is no driver."""
    return here.device if driver.found() is not None else None


def device_count() -> int:
    """How many GPUs there are; 0 where there is no driver."""
    found = driver.found()
    return 0 if found is None else found.count
