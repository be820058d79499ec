"""A CUDA driver without a GPU: the functions of libcuda that antorcha uses, over the simulator.

It is a library object for ``devices/cuda/driver.py``: every function is a C function of the type
that ``PROTOTYPES`` gives, so that arguments go through C as they do with the real one. Memory is
the simulator's (addresses mean nothing to the host, accesses are checked); a launch runs the kernel
thread by thread. Like a GPU it is lazy, and more so: what is given to a stream is done when
somebody waits for it. Copies from memory that is not pinned are read at once, as the real driver
reads them.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from antorcha.devices.cuda import device, driver, gpu, memory, modules
from antorcha.devices.cuda.libraries import loader
from antorcha.devices.gpu.frame import GridStep
from antorcha.devices.sim import device as sim
from antorcha.devices.sim.memory import TAG
from antorcha.devices.sim.memory import memory as arena
from antorcha.lang.native.grid import PARAMETER_WORDS
from antorcha.runtime.call import plan

SUCCESS, INVALID, NO_MEMORY, UNINITIALISED, BAD_CONTEXT, NOT_READY = 0, 1, 2, 3, 201, 600
ILLEGAL_ADDRESS, LAUNCH_FAILED, IN_CAPTURE = 700, 719, 900
NAMES = {
    1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    719: "CUDA_ERROR_LAUNCH_FAILED", 900: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
}  # fmt: skip
TEXTS = {
    1: "invalid argument", 2: "out of memory", 700: "an illegal memory access was encountered",
    719: "unspecified launch failure", 900: "operation not permitted when stream is capturing",
}  # fmt: skip
ATTRIBUTES = {
    1: 1024, 8: 48 << 10, 10: 32, 13: 1_980_000, 16: 132, 18: 0, 33: 26, 34: 0, 36: 2_619_000,
    37: 5120, 38: 50 << 20, 39: 2048, 41: 1, 50: 0, 75: 9, 76: 0, 81: 228 << 10, 82: 65536, 84: 0,
    97: 227 << 10, 115: 1,
}  # fmt: skip
ANYWHERE = ("cuInit", "cuDriver", "cuGetError", "cuDevice", "cuCtxSetCurrent", "cuMemPool",
            "cuThreadExchange")  # fmt: skip
"""How the functions begin that need no context in the thread which calls them."""
Work = Callable[[], None]


class FakeStream:
    """What was given to a stream and is not done."""

    def __init__(self, number: int) -> None:
        self.gpu = number
        self.queue: list[Work] = []
        self.graph: list[Work] | None = None  # while it is captured


class FakeEvent:
    """A point in a stream; done where it was never recorded."""

    def __init__(self) -> None:
        self.stream: FakeStream | None = None
        self.point = [True]  # one for each time that it is recorded
        self.time = 0


class FakeLibrary:
    """libcuda over the simulator. ``capacity``: bytes of each GPU."""

    def __init__(self, gpus: int = 1, capacity: int = 1 << 30, version: int = 12080) -> None:
        self.gpus, self.capacity, self.version = gpus, capacity, version
        self.attributes = dict(ATTRIBUTES)
        self.used = [0] * gpus
        self.sizes: dict[int, tuple[int, int]] = {}  # address -> GPU, bytes
        self.pinned: dict[int, Any] = {}
        self.handles: dict[int, Any] = {}
        self.kernels: dict[str, Any] = {}
        self.current = threading.local()
        self.running = threading.RLock()
        self.calls: list[str] = []
        self.most_shared: dict[int, int] = {}  # dynamic shared memory that kernels may have
        self.shared_bytes: list[int] = []  # what launches asked for
        self.errors: list[BaseException] = []
        self.failing: dict[str, int] = {}  # functions that are to fail
        self.fault = 0  # of a kernel: every later wait reports it
        self.clock = 0
        self.streams = [FakeStream(k) for k in range(gpus)]  # the default ones
        self.kept: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        if name not in driver.PROTOTYPES:
            raise AttributeError(name)
        own = getattr(type(self), "do_" + name.split("_v2")[0], None)
        if own is None:
            raise AttributeError(name)

        def run(*args: Any) -> int:
            self.calls.append(name)
            if name in self.failing:
                return self.failing[name]
            if not name.startswith(ANYWHERE) and not hasattr(self.current, "gpu"):
                return BAD_CONTEXT
            try:
                return own(self, *args) or SUCCESS
            except BaseException as error:  # (C cannot pass it on: the fixture raises it)
                self.errors.append(error)
                return LAUNCH_FAILED

        found = ctypes.CFUNCTYPE(ctypes.c_int, *driver.PROTOTYPES[name])(run)
        self.kept.append(found)
        return found

    # ---- helpers
    def put(self, out: int, kind: Any, value: Any) -> None:
        kind.from_address(out).value = value

    def handle(self, thing: Any) -> int:
        number = 0x1000 + 16 * len(self.handles)
        self.handles[number] = thing
        return number

    def stream(self, handle: int | None) -> FakeStream:
        """The stream of a handle; it must be of the thread's current GPU."""
        number = getattr(self.current, "gpu", None)
        assert number is not None, "no current context"
        found = self.streams[number] if not handle else self.handles[handle]
        assert found.gpu == number, f"a stream of GPU {found.gpu} while GPU {number} is current"
        return found

    def waiting(self, handle: int) -> int:
        """How many things a stream of the current GPU has not done yet."""
        return len(self.stream(handle).queue)

    def give(self, stream: FakeStream, work: Work) -> None:
        (stream.queue if stream.graph is None else stream.graph).append(work)

    def run_stream(self, stream: FakeStream) -> None:
        with self.running:  # (of two threads that wait, one runs what comes next)
            while stream.queue:
                stream.queue.pop(0)()

    def all_streams(self) -> list[FakeStream]:
        return [*self.streams, *[h for h in self.handles.values() if isinstance(h, FakeStream)]]

    def capturing(self) -> bool:
        relaxed = getattr(self.current, "mode", 0) == 2
        return not relaxed and any([s.graph is not None for s in self.all_streams()])

    def host(self, address: int, nbytes: int) -> Any:
        assert address < TAG, f"{address:#x} is no address of the host's"
        return np.frombuffer((ctypes.c_char * nbytes).from_address(address), np.uint8)

    def is_pinned(self, address: int) -> bool:
        return any([start <= address < start + len(b) for start, b in self.pinned.items()])

    def check(self, address: int, nbytes: int) -> None:
        """Is it inside an allocation?"""
        for start, (_, size) in self.sizes.items():
            if start <= address and address + nbytes <= start + size:
                return
        raise AssertionError(f"{nbytes} bytes at {address:#x} are in no allocation")

    # ---- the driver, its GPUs
    def do_cuInit(self, flags: int) -> None:
        self.started = True

    def do_cuDriverGetVersion(self, out: int) -> None:
        self.put(out, ctypes.c_int, self.version)

    def do_cuGetErrorName(self, status: int, out: int) -> int:
        return self._text(NAMES, status, out)

    def do_cuGetErrorString(self, status: int, out: int) -> int:
        return self._text(TEXTS, status, out)

    def _text(self, table: dict[int, str], status: int, out: int) -> int:
        if status not in table:
            return INVALID
        buffer = ctypes.create_string_buffer(table[status].encode())
        self.kept.append(buffer)
        self.put(out, ctypes.c_void_p, ctypes.addressof(buffer))
        return SUCCESS

    def do_cuDeviceGetCount(self, out: int) -> None:
        self.put(out, ctypes.c_int, self.gpus)

    def do_cuDeviceGet(self, out: int, index: int) -> int:
        self.put(out, ctypes.c_int, index)
        return SUCCESS if 0 <= index < self.gpus else 101

    def do_cuDeviceGetName(self, out: int, size: int, number: int) -> None:
        ctypes.memmove(out, b"Simulated GPU\0", 14)

    def do_cuDeviceGetUuid(self, out: int, number: int) -> None:
        ctypes.memmove(out, bytes(range(16)), 16)

    def do_cuDeviceTotalMem(self, out: int, number: int) -> None:
        self.put(out, ctypes.c_size_t, self.capacity)

    def do_cuDeviceGetAttribute(self, out: int, which: int, number: int) -> None:
        self.put(out, ctypes.c_int, self.attributes[which])

    def do_cuDeviceCanAccessPeer(self, out: int, one: int, other: int) -> None:
        self.put(out, ctypes.c_int, int(one != other))

    def do_cuDeviceGetDefaultMemPool(self, out: int, number: int) -> None:
        self.put(out, ctypes.c_void_p, 0x900 + number)

    def do_cuDevicePrimaryCtxRetain(self, out: int, number: int) -> None:
        self.put(out, ctypes.c_void_p, 0x100 + number)

    def do_cuCtxSetCurrent(self, context: int) -> None:
        self.current.gpu = context - 0x100

    def do_cuCtxSynchronize(self) -> int:
        if self.capturing():
            return IN_CAPTURE
        for stream in self.all_streams():
            if stream.gpu == self.current.gpu:
                self.run_stream(stream)
        return self.fault

    def do_cuCtxEnablePeerAccess(self, context: int, flags: int) -> None:
        assert context - 0x100 != self.current.gpu

    def do_cuCtxGetStreamPriorityRange(self, least: int, greatest: int) -> None:
        self.put(least, ctypes.c_int, 0)
        self.put(greatest, ctypes.c_int, -5)

    # ---- kernels
    def do_cuModuleLoadDataEx(
        self, out: int, image: bytes, n: int, options: int, values: int
    ) -> int:
        name = image.decode()
        if name not in self.kernels:
            words = (ctypes.c_void_p * n).from_address(values)
            ctypes.memmove(words[0], b"ptxas fatal: no such kernel\0", 28)
            return 218
        self.put(out, ctypes.c_void_p, self.handle(self.kernels[name]))
        return SUCCESS

    def do_cuModuleGetFunction(self, out: int, module: int, name: bytes) -> int:
        assert self.handles[module][0] == name.decode()
        self.put(out, ctypes.c_void_p, module)
        return SUCCESS

    def do_cuFuncGetAttribute(self, out: int, which: int, function: int) -> None:
        self.put(out, ctypes.c_int, 0)

    def do_cuFuncSetAttribute(self, function: int, which: int, value: int) -> None:
        assert which == 8
        assert value <= self.attributes[97]
        self.most_shared[function] = value

    def do_cuLaunchKernel(
        self, function: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, nbytes: int,
        stream: int, params: int, extra: int,
    ) -> None:  # fmt: skip
        _, spec = self.handles[function]
        assert min(gx, gy, gz) > 0
        assert bx <= spec.threads
        assert nbytes <= self.most_shared.get(function, self.attributes[8])
        self.shared_bytes.append(nbytes)
        where = (ctypes.c_void_p * 1).from_address(params)[0]
        words = self.host(where, 8 * PARAMETER_WORDS).view(np.int64).copy()
        step = GridStep(None, {}, (gx, gy, gz), bx, ())

        def work() -> None:
            if self.fault:
                return
            try:
                sim.grid_runner().launch(spec.native.__name__, spec.addr, words, step)
            except IndexError as error:
                self.errors.append(error)
                self.fault = ILLEGAL_ADDRESS

        self.give(self.stream(stream), work)

    # ---- memory
    def do_cuMemGetInfo(self, free: int, total: int) -> None:
        self.put(free, ctypes.c_size_t, self.capacity - self.used[self.current.gpu])
        self.put(total, ctypes.c_size_t, self.capacity)

    def do_cuMemAlloc(self, out: int, nbytes: int) -> int:
        assert nbytes > 0
        if self.capturing():
            return IN_CAPTURE
        number = self.current.gpu
        if self.used[number] + nbytes > self.capacity:
            return NO_MEMORY
        address = arena.allocate(nbytes)
        self.used[number] += nbytes
        self.sizes[address] = number, nbytes
        self.put(out, ctypes.c_uint64, address)
        return SUCCESS

    def do_cuMemFree(self, address: int) -> int:
        assert not self.capturing(), "memory is given back, which waits, during a capture"
        self.do_cuCtxSynchronize()
        self._free(address)
        return SUCCESS

    def _free(self, address: int) -> None:
        number, nbytes = self.sizes.pop(address)
        self.used[number] -= nbytes
        arena.release(address)

    def do_cuMemAllocAsync(self, out: int, nbytes: int, stream: int) -> int:
        assert self.stream(stream).graph is None, "memory is taken within a graph"
        return self.do_cuMemAlloc(out, nbytes)

    def do_cuMemFreeAsync(self, address: int, stream: int) -> None:
        assert self.stream(stream).graph is None, "memory is given back within a graph"
        self.give(self.stream(stream), lambda: self._free(address))

    def do_cuMemPoolGetAttribute(self, pool: int, which: int, out: int) -> None:
        self.put(out, ctypes.c_uint64, self.used[pool - 0x900])

    def do_cuMemPoolSetAttribute(self, pool: int, which: int, value: int) -> None:
        assert which in (4, 6)

    def do_cuMemPoolSetAccess(self, pool: int, access: int, count: int) -> None:
        assert count == 1

    def do_cuMemPoolTrimTo(self, pool: int, nbytes: int) -> None:
        pass

    def do_cuMemHostAlloc(self, out: int, nbytes: int, flags: int) -> None:
        block = ctypes.create_string_buffer(nbytes)
        self.pinned[ctypes.addressof(block)] = block
        self.put(out, ctypes.c_void_p, ctypes.addressof(block))

    def do_cuMemFreeHost(self, address: int) -> None:
        del self.pinned[address]

    def do_cuMemcpyHtoDAsync(self, to: int, source: int, nbytes: int, stream: int) -> int:
        self.check(to, nbytes)
        given = self.host(source, nbytes)
        if not self.is_pinned(source):
            if self.stream(stream).graph is not None:
                return IN_CAPTURE
            given = given.copy()

        def work() -> None:
            arena.bytes_at(to, nbytes)[:] = given

        self.give(self.stream(stream), work)
        return SUCCESS

    def do_cuMemcpyDtoHAsync(self, to: int, source: int, nbytes: int, stream: int) -> int:
        self.check(source, nbytes)
        target = self.host(to, nbytes)
        where = self.stream(stream)

        def work() -> None:
            target[:] = arena.bytes_at(source, nbytes)

        self.give(where, work)
        if not self.is_pinned(to):  # the real one returns when it is done
            if where.graph is not None:
                return IN_CAPTURE
            self.run_stream(where)
        return self.fault

    def do_cuMemcpyDtoDAsync(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.check(to, nbytes)
        self.check(source, nbytes)

        def work() -> None:
            arena.bytes_at(to, nbytes)[:] = arena.bytes_at(source, nbytes)

        self.give(self.stream(stream), work)

    def do_cuMemcpyPeerAsync(
        self, to: int, theirs: int, source: int, ours: int, nbytes: int, stream: int
    ) -> None:
        assert self.sizes[to][0] == theirs - 0x100
        self.do_cuMemcpyDtoDAsync(to, source, nbytes, stream)

    def do_cuMemsetD8Async(self, to: int, value: int, nbytes: int, stream: int) -> None:
        self.check(to, nbytes)

        def work() -> None:
            arena.bytes_at(to, nbytes)[:] = value

        self.give(self.stream(stream), work)

    # ---- streams and events
    def do_cuStreamCreateWithPriority(self, out: int, flags: int, priority: int) -> None:
        assert flags == 1
        assert -5 <= priority <= 0
        self.put(out, ctypes.c_void_p, self.handle(FakeStream(self.current.gpu)))

    def do_cuStreamSynchronize(self, stream: int) -> int:
        found = self.stream(stream)
        if found.graph is not None:
            return IN_CAPTURE
        self.run_stream(found)
        return self.fault

    def do_cuStreamQuery(self, stream: int) -> int:
        return NOT_READY if self.stream(stream).queue else SUCCESS

    def do_cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        found: FakeEvent = self.handles[event]
        awaited, done = found.stream, found.point

        def work() -> None:
            while awaited is not None and not done[0]:
                awaited.queue.pop(0)()

        self.give(self.stream(stream), work)

    def do_cuEventCreate(self, out: int, flags: int) -> None:
        self.put(out, ctypes.c_void_p, self.handle(FakeEvent()))

    def do_cuEventDestroy(self, event: int) -> None:
        self.handles[event] = None

    def do_cuEventRecord(self, event: int, stream: int) -> None:
        found, where = self.handles[event], self.stream(stream)
        point = [False]
        found.stream, found.point = where, point

        def work() -> None:
            self.clock += 1
            found.time, point[0] = self.clock, True

        self.give(where, work)

    def do_cuEventQuery(self, event: int) -> int:
        return SUCCESS if self.handles[event].point[0] else NOT_READY

    def do_cuEventSynchronize(self, event: int) -> int:
        found = self.handles[event]
        with self.running:
            while not found.point[0]:
                found.stream.queue.pop(0)()
        return self.fault

    def do_cuEventElapsedTime(self, out: int, first: int, last: int) -> int:
        one, other = self.handles[first], self.handles[last]
        if not (one.point[0] and other.point[0]):
            return NOT_READY
        self.put(out, ctypes.c_float, float(other.time - one.time))
        return SUCCESS

    # ---- graphs
    def do_cuThreadExchangeStreamCaptureMode(self, mode: int) -> None:
        before = getattr(self.current, "mode", 0)
        self.current.mode = ctypes.c_int.from_address(mode).value
        self.put(mode, ctypes.c_int, before)

    def do_cuStreamBeginCapture(self, stream: int, mode: int) -> None:
        assert stream
        self.stream(stream).graph = []

    def do_cuStreamEndCapture(self, stream: int, out: int) -> None:
        found = self.stream(stream)
        self.put(out, ctypes.c_void_p, self.handle(found.graph))
        found.graph = None

    def do_cuGraphInstantiateWithFlags(self, out: int, graph: int, flags: int) -> None:
        self.put(out, ctypes.c_void_p, self.handle(list(self.handles[graph])))

    def do_cuGraphLaunch(self, runnable: int, stream: int) -> None:
        for work in self.handles[runnable]:
            self.give(self.stream(stream), work)

    def do_cuGraphDestroy(self, graph: int) -> None:
        self.handles[graph] = None

    def do_cuGraphExecDestroy(self, runnable: int) -> None:
        self.handles[runnable] = None

    # ---- images that carry a kernel's name
    def image_of(self, spec: Any) -> bytes:
        """In the place of PTX: the name under which `cuModuleLoadDataEx` finds the kernel for the
        simulator."""
        simulated = spec.native.on_grid(sim.target(), spec.threads, **spec.static)
        self.kernels[spec.symbol] = spec.symbol, simulated
        return spec.symbol.encode()


def forget() -> None:
    """The process knows no driver, no GPU, and no kernel on one."""
    gpu.forget()
    device.forget()
    modules.forget()
    loader.forget()
    memory.pinned.forget()
    plan.flush()


def no_library(name: str) -> Any:
    raise OSError(f"lib{name}.so: cannot open shared object file")


def install(monkeypatch: Any, library: FakeLibrary) -> FakeLibrary:
    """Puts the fake in libcuda's place; NVIDIA's libraries are not installed beside it."""
    forget()
    monkeypatch.setattr(loader, "open_library", no_library)
    monkeypatch.setattr(driver, "open_library", lambda: library)
    monkeypatch.setattr(modules, "image_of", library.image_of)
    return library
