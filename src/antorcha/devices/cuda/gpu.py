"""A GPU of this process: its primary context, its streams, its memory, and what it says of itself.

Which GPU and which stream are the current ones is a thread's own affair, as in PyTorch. The driver
has a current context, too, for each thread; ``Gpu.use`` sets it where it is another's.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from antorcha.core.forks import held_over_forks
from antorcha.core.hooks import set_stream_of
from antorcha.devices.cuda import driver
from antorcha.devices.cuda.memory import PORTABLE, DeviceMemory
from antorcha.devices.cuda.streams import StreamHandle, reports
from antorcha.errors import AcceleratorError, MissingFeature
from antorcha.lang.native.machine import PTX_VERSIONS
from antorcha.runtime.memory import device_memory
from antorcha.runtime.memory.device_copies import WINDOW
from antorcha.runtime.memory.device_memory import DeviceHome, ForeignRecord
from antorcha.runtime.memory.storage import Storage, wrap_elsewhere

if TYPE_CHECKING:
    from antorcha.runtime.tensor import Tensor

ATTRIBUTES = {
    "max_threads_per_block": 1, "warp_size": 10, "clock_rate": 13, "multi_processor_count": 16,
    "is_integrated": 18, "pci_bus_id": 33, "pci_device_id": 34, "memory_clock_rate": 36,
    "memory_bus_width": 37, "L2_cache_size": 38, "max_threads_per_multi_processor": 39,
    "unified_addressing": 41, "pci_domain_id": 50, "major": 75, "minor": 76,
    "shared_memory_per_multiprocessor": 81, "regs_per_multiprocessor": 82, "is_multi_gpu_board": 84,
    "shared_memory_per_block_optin": 97, "shared_memory_per_block": 8, "memory_pools": 115,
}  # fmt: skip
"""Numbers of ``CUdevice_attribute``, by PyTorch's names where it has them."""
PTX_OF_CUDA = (
    (13000, 90), (12080, 87), (12070, 86), (12050, 85), (12040, 84), (12030, 83), (12020, 82),
    (12010, 81), (12000, 80), (11080, 78), (11070, 77), (11040, 74), (11030, 73), (11020, 72),
    (11010, 71), (11000, 70), (10020, 65), (10000, 63),
)  # fmt: skip
"""The PTX version that a driver's version takes, the newest first (NVIDIA's PTX manual, 13.1)."""
STREAMS_OF_A_PRIORITY = 32  # as PyTorch: further ones share these


class GpuProperties(NamedTuple):
    """What a GPU says of itself; sizes in bytes, clocks in kHz."""

    name: str
    total_memory: int
    uuid: str
    numbers: dict[str, int]


class Gpu:
    """A GPU, in use: there is one object for each."""

    def __init__(self, index: int) -> None:
        self.driver = d = driver.require()
        self.index = index
        self.number = d.number("cuDeviceGet", index)
        self.context = d.number("cuDevicePrimaryCtxRetain", self.number, kind=ctypes.c_void_p)
        self.use()
        self.properties = properties_of(index)
        numbers = self.properties.numbers
        self.capability = (numbers["major"], numbers["minor"])
        self.home = home_of(d, index, bool(numbers["memory_pools"]))
        self.default = StreamHandle(self, 0)
        self.streams: dict[int, list[StreamHandle]] = {}
        self.external: dict[int, StreamHandle] = {}
        self.turns: dict[int, int] = {}
        self.memory = DeviceMemory(self, bool(numbers["memory_pools"]))
        self.peers: set[int] = set()
        window = d.number("cuMemHostAlloc", WINDOW, PORTABLE, kind=ctypes.c_void_p)
        self.home.word("window").value = window  # (which stays for good)

    def use(self) -> None:
        """Makes this GPU's context the thread's."""
        if here.context is not self:
            self.driver.call("cuCtxSetCurrent", self.context)
            here.context = self
            device_memory.leave()

    def make_ready(self) -> None:
        """Lets machine code use this GPU in this thread, on its current stream."""
        self.use()
        device_memory.enter(self.home.address, self.stream.pool.address)

    @property
    def stream(self) -> StreamHandle:
        """The thread's current stream of this GPU."""
        return here.streams.get(self.index, self.default)

    def all_streams(self) -> list[StreamHandle]:
        """Every stream that was used here."""
        own = [stream for streams in self.streams.values() for stream in streams]
        return [self.default, *own, *self.external.values()]

    def new_stream(self, priority: int) -> StreamHandle:
        """A stream beside the others; of a priority there are 32, which take turns."""
        set_stream_of("cuda", on_stream_of)
        with _lock:
            self.use()
            least, greatest = ctypes.c_int(), ctypes.c_int()
            refs = ctypes.byref(least), ctypes.byref(greatest)
            self.driver.call("cuCtxGetStreamPriorityRange", *refs)
            priority = max(min(priority, 0, least.value), greatest.value)
            streams = self.streams.setdefault(priority, [])
            turn = self.turns.get(priority, 0)
            self.turns[priority] = turn + 1
            if len(streams) < STREAMS_OF_A_PRIORITY:
                handle = self.driver.number(
                    "cuStreamCreateWithPriority", 1, priority, kind=ctypes.c_void_p
                )
                streams.append(StreamHandle(self, handle, priority))
            return streams[turn % STREAMS_OF_A_PRIORITY]

    def stream_at(self, address: int) -> StreamHandle:
        """The stream with that handle of the driver's, which somebody else may have made."""
        for stream in self.all_streams():
            if stream.handle == address:
                return stream
        set_stream_of("cuda", on_stream_of)
        return self.external.setdefault(address, StreamHandle(self, address))

    def synchronize(self) -> None:
        """Waits for all work on this GPU, and raises what its kernels found wrong in data."""
        self.use()
        waiting = [stream for stream in self.all_streams() if stream.fetch_reports()]
        status = self.driver.status("cuCtxSynchronize")
        if status:
            raise self.fault("cuCtxSynchronize", status)
        for stream in waiting:
            stream.raise_reports()

    def fault(self, name: str, status: int) -> RuntimeError:
        """A status that work of before may have caused: the error says which kernels ran last."""
        last = [each for stream in self.all_streams() for each in stream.last]
        more = f" on cuda:{self.index}"
        if last:
            more += f". Kernels of {', '.join(last)} ran last; ANTORCHA_SYNC=1 shows which failed"
        return self.driver.error(name, status, more)

    def reach(self, other: Gpu) -> None:
        """Lets this GPU's copies read another one's memory, where the hardware can."""
        if other.index in self.peers:
            return
        self.peers.add(other.index)
        if not can_reach(self, other):
            return
        self.use()
        status = self.driver.status("cuCtxEnablePeerAccess", other.context, 0)
        if status not in (driver.SUCCESS, driver.PEER_ACCESS_ALREADY_ENABLED):
            raise self.driver.error("cuCtxEnablePeerAccess", status)
        other.memory.show_to(self)

    @property
    def own_capability(self) -> int:
        """The compute capability, where kernels may use its own instructions; 0 elsewhere."""
        own = 10 * self.capability[0] + self.capability[1]
        return own if own == 90 and self.driver.version >= 12050 else 0

    @property
    def ptx_capability(self) -> int:
        """The compute capability to compile for: the newest that the GPU and its driver know."""
        own = 10 * self.capability[0] + self.capability[1]
        takes = next((ptx for cuda, ptx in PTX_OF_CUDA if self.driver.version >= cuda), 0)
        fitting = [sm for sm, ptx in PTX_VERSIONS.items() if sm <= own and ptx <= takes]
        if not fitting:
            oldest = min(PTX_VERSIONS)
            raise MissingFeature(
                f"cuda:{self.index}, {self.properties.name}, has compute capability {own / 10} and "
                f"a driver for CUDA {version_text(self.driver.version)}; antorcha compiles for "
                f"{oldest / 10} and newer, which takes a driver for CUDA 10.0 or newer"
            )
        return max(fitting)


class _Here(threading.local):
    """A thread's current GPU and streams, and whose context the driver has for it."""

    def __init__(self) -> None:
        self.device = 0
        self.streams: dict[int, StreamHandle] = {}
        self.context: Gpu | None = None


here = _Here()


@contextlib.contextmanager
def on_stream_of(tensor: Tensor) -> Iterator[None]:
    """See ``hooks.stream_of``. What is captured stays on the stream that it is captured from."""
    device = gpu(tensor._layout.device.index)
    before, stream = device.stream, device.memory.stream_of(tensor._storage)
    if stream is None or stream is before or device.memory.captures:
        yield
        return
    kept = here.streams.get(device.index)
    stream.wait_for_stream(before)
    set_stream(device.index, stream)
    try:
        yield
    finally:
        set_stream(device.index, kept)
    before.wait_for_stream(stream)


def set_stream(index: int, stream: StreamHandle | None) -> None:
    """Makes a stream the thread's current one of its GPU; None: the default one."""
    if stream is None:
        here.streams.pop(index, None)
    else:
        here.streams[index] = stream
    device_memory.leave()


_gpus: dict[int, Gpu] = {}
_lock = held_over_forks(threading.RLock())


def home_of(d: driver.CudaDriver, index: int, has_pool: bool) -> ForeignRecord:
    """What machine code knows of a GPU: its memory, and how to launch kernels."""
    home = ForeignRecord(DeviceHome)
    home.word("number").value = index
    functions = {
        "take": "cuMemAllocAsync", "give": "cuMemFreeAsync", "launch": "cuLaunchKernel",
        "send": "cuMemcpyHtoDAsync_v2", "fetch": "cuMemcpyDtoHAsync_v2",
        "wait": "cuStreamSynchronize",
    }  # fmt: skip
    for field, name in functions.items():
        if name in d.functions:
            home.word(field).value = d.address_of(name)
    if not has_pool:
        home.word("special").value = 1
    device_memory.install(_switch, _take)
    device_memory.put_home(index, home.address)
    return home


def _switch(index: int) -> None:
    gpu(index).make_ready()


def _take(index: int, nbytes: int) -> Storage:
    block = gpu(index).memory.allocate(nbytes)
    return wrap_elsewhere(block.address, nbytes, block)


def gpu(index: int | None = None) -> Gpu:
    """The GPU of that number; the thread's current one where none is given."""
    if index is None:
        index = here.device
    found = _gpus.get(index)
    if found is None or found.driver.forked:
        check_index(index)
        with _lock:
            found = _gpus.get(index)
            if found is None:
                found = _gpus[index] = Gpu(index)
    return found


def check_index(index: int) -> None:
    """Raises where there is no such GPU."""
    count = driver.require().count
    if not 0 <= index < count:
        error = AcceleratorError(
            f"CUDA error: invalid device ordinal: there is no cuda:{index}; this machine has "
            f"{count}: " + ", ".join([f"cuda:{k}" for k in range(count)])
        )
        error.error_code = 101
        raise error


def in_use() -> bool:
    """Has a GPU been used in this process?"""
    return bool(_gpus)


def used() -> list[Gpu]:
    """The GPUs that have been used in this process."""
    return list(_gpus.values())


def forget() -> None:
    """The next question starts anew (for tests)."""
    _end_homes()
    _gpus.clear()
    reports.pages.clear()
    set_stream_of("cuda", None)
    here.__init__()  # type: ignore[misc]
    driver.forget()


def _end_homes() -> None:
    """No driver's function is called for the GPUs any more, whatever is given back."""
    device_memory.leave()
    for each in _gpus.values():
        each.home.word("dead").value = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_homes)


def properties_of(index: int) -> GpuProperties:
    """What a GPU says of itself; its context is not needed for it."""
    check_index(index)
    d = driver.require()
    number = d.number("cuDeviceGet", index)
    name = ctypes.create_string_buffer(256)
    d.call("cuDeviceGetName", name, 256, number)
    uuid = (ctypes.c_ubyte * 16)()
    if "cuDeviceGetUuid_v2" in d.functions:  # (from CUDA 11.4 on)
        d.call("cuDeviceGetUuid_v2", uuid, number)
    text = bytes(uuid).hex()
    parts = (text[:8], text[8:12], text[12:16], text[16:20], text[20:])
    return GpuProperties(
        name.value.decode(errors="replace"),
        d.number("cuDeviceTotalMem_v2", number, kind=ctypes.c_size_t),
        "-".join(parts),
        {key: d.number("cuDeviceGetAttribute", k, number) for key, k in ATTRIBUTES.items()},
    )


def can_reach(one: Gpu, other: Gpu) -> bool:
    """Can a GPU read another one's memory?"""
    return bool(one.driver.number("cuDeviceCanAccessPeer", one.number, other.number))


def version_text(version: int) -> str:
    """12080 as 12.8."""
    return f"{version // 1000}.{version % 1000 // 10}"
