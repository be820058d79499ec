"""Which GPUs there are, what they say of themselves, and which one is the current one."""

from __future__ import annotations

from typing import Any

from antorcha.core.device import Device
from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError, ValueRangeError
from antorcha.lang.native import machine
from antorcha.runtime.tensor import Tensor

driver = lazy("antorcha.devices.cuda.driver")
gpus = lazy("antorcha.devices.cuda.gpu")


def index_of(device: Any = None) -> int:
    """The number of the GPU that an argument means; None means the current one. AssertionError
    where there is no driver."""
    driver.require()
    if device is None:
        return gpus.here.device  # type: ignore[no-any-return]
    if isinstance(device, bool) or not isinstance(device, (int, str, Device)):
        raise ArgumentError(f"a CUDA device is needed, such as 'cuda:0' or 0, not {device!r}")
    if isinstance(device, int):
        index = device
    else:
        found = Device(device)
        if found.type != "cuda":
            raise ValueRangeError(f"Expected a cuda device, but got: {found}")
        index = gpus.here.device if found.index is None else found.index
    gpus.check_index(index)
    return index


def gpu_of(device: Any = None) -> Any:
    """The GPU that an argument means, in use from then on."""
    return gpus.gpu(index_of(device))


def is_available() -> bool:
    """Can tensors be put on a GPU?

    >>> torch.cuda.is_available()
    False
    """
    return device_count() > 0


def is_initialized() -> bool:
    """Has a GPU been used in this process?"""
    return bool(_has_driver() and gpus.in_use())


def _has_driver() -> bool:
    return driver.found() is not None


def _is_in_bad_fork() -> bool:
    return bool(_has_driver() and driver.in_forked_child())


def init() -> None:
    """Puts the current GPU to use, which happens by itself when it is first needed."""
    gpu_of()


def device_count() -> int:
    """How many GPUs there are; 0 where there is no driver.

    >>> torch.cuda.device_count(), torch.cuda.is_available()
    (0, False)
    """
    return driver.found().count if _has_driver() else 0


def current_device() -> int:
    """The number of the current GPU of this thread."""
    return index_of()


def set_device(device: Any) -> None:
    """Makes a GPU the thread's current one; a number below 0 changes nothing."""
    if isinstance(device, int) and device < 0:
        return
    gpus.here.device = index_of(device)


class DeviceProperties:
    """What a GPU says of itself: ``name``, ``major``, ``minor``, ``total_memory``, ..."""

    def __init__(self, found: Any) -> None:
        self.name, self.total_memory, self.uuid = found.name, found.total_memory, found.uuid
        self.__dict__.update(found.numbers)
        self.gcnArchName = found.name

    def __repr__(self) -> str:
        facts: dict[str, Any] = self.__dict__
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={facts['major']}, "
            f"minor={facts['minor']}, total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={facts['multi_processor_count']}, uuid={self.uuid}, "
            f"pci_bus_id={facts['pci_bus_id']}, pci_device_id={facts['pci_device_id']}, "
            f"pci_domain_id={facts['pci_domain_id']}, "
            f"L2_cache_size={facts['L2_cache_size'] >> 20}MB)"
        )


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Name, compute capability, memory and more of a GPU."""
    return DeviceProperties(gpus.properties_of(index_of(device)))


def get_device_name(device: Any = None) -> str:
    """A GPU's name."""
    return get_device_properties(device).name  # type: ignore[no-any-return]


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """A GPU's compute capability: (9, 0) is an H100's."""
    numbers = gpus.properties_of(index_of(device)).numbers
    return numbers["major"], numbers["minor"]


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Can a GPU read another one's memory?"""
    one, other = gpu_of(device), gpu_of(peer_device)
    return bool(one is not other and gpus.can_reach(one, other))


def synchronize(device: Any = None) -> None:
    """Waits for all work on a GPU. Raises what its kernels found wrong, such as a bad index."""
    gpu_of(device).synchronize()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Has the GPU bfloat16? Before compute capability 8.0 it is worked out in float32."""
    if not is_available():
        return False
    return including_emulation or get_device_capability()[0] >= 8


def is_tf32_supported() -> bool:
    """Has the GPU TF32?"""
    return is_available() and get_device_capability()[0] >= 8


def get_arch_list() -> list[str]:
    """The compute capabilities that kernels can be compiled for."""
    return [f"sm_{sm}" for sm in sorted(machine.PTX_VERSIONS)] if is_available() else []


def get_gencode_flags() -> str:
    """The same as flags of NVIDIA's compiler."""
    names = [name.removeprefix("sm_") for name in get_arch_list()]
    return " ".join([f"-gencode compute=compute_{n},code=compute_{n}" for n in names])


class device:
    """A context that makes a GPU the current one: None, or a number below 0, changes nothing."""

    def __init__(self, device: Any) -> None:
        self.chosen = device
        self.before = -1

    def __enter__(self) -> None:
        self.before = -1
        if self.chosen is None or (isinstance(self.chosen, int) and self.chosen < 0):
            return
        index = index_of(self.chosen)
        self.before, gpus.here.device = gpus.here.device, index

    def __exit__(self, *_: object) -> None:
        if self.before >= 0:
            gpus.here.device = self.before


class device_of(device):
    """A context that makes the GPU of a tensor the current one; one on the CPU changes nothing."""

    def __init__(self, obj: Any) -> None:
        where = getattr(obj, "device", None)
        found = None if where is None else Device(where)
        super().__init__(found if found is not None and found.type == "cuda" else None)


def is_on_gpu(value: Any, name: str) -> bool:
    """Is it a tensor of that dtype on a GPU?"""
    if not isinstance(value, Tensor):
        return False
    return value._layout.device.type == "cuda" and value._layout.dtype.name == name
