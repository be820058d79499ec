"""CUDA graphs: the launches of a stream, noted once and run again as a whole.

While a stream is captured its kernels do not run, and what they write is undefined until the graph
is replayed. The memory that they take stays the graph's own, so that every replay finds it at the
same place. Nothing may be read by the host meanwhile, and nothing be copied from memory that is not
pinned: such a call raises, and the capture is over.

Random numbers are others at each replay: what draws reads where its generator stands from memory,
which a replay fills in before, and the generator moves on by what the graph draws.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from antorcha.core.forks import held_over_forks
from antorcha.devices.cuda.memory import GpuBlock
from antorcha.devices.cuda.streams import StatusPage, StreamHandle
from antorcha.errors import GraphError, MissingFeature, ValueRangeError
from antorcha.runtime.memory.device_memory import GRAIN
from antorcha.runtime.memory.storage import Storage, wrap_elsewhere
from antorcha.runtime.philox import STATE_BYTES, PhiloxGenerator

if TYPE_CHECKING:
    from antorcha.devices.cuda.gpu import Gpu

MODES = {"global": 0, "thread_local": 1, "relaxed": 2}
GRAPH_PAGE_BYTES = 64 << 10


@contextlib.contextmanager
def relaxed(gpu: Gpu) -> Iterator[None]:
    """Inside, the thread may call what a capture forbids, such as taking memory."""
    gpu.use()
    mode = ctypes.c_int(MODES["relaxed"])
    gpu.driver.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    try:
        yield
    finally:
        gpu.driver.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))


class GraphPool:
    """Memory of graphs: what a tensor gives back during a capture is for a later one of the same
    capture, and all of it goes back when the graphs and the tensors over it are gone."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.free: dict[int, list[int]] = {}
        self.all: list[int] = []
        self.lock = held_over_forks(threading.RLock())

    def allocate(self, nbytes: int, stream: StreamHandle) -> GpuBlock:
        """Memory that stays where it is as long as the graph lives."""
        room = -(-max(nbytes, 1) // GRAIN) * GRAIN
        with self.lock:
            kept = self.free.get(room)
            address = kept.pop() if kept else self._more(room, nbytes)
        self.gpu.memory.count(room)
        return GpuBlock(self, address, room, stream)

    def _more(self, room: int, asked: int) -> int:
        out = ctypes.c_uint64()
        with relaxed(self.gpu):
            status = self.gpu.driver.status("cuMemAlloc_v2", ctypes.byref(out), room)
        if status:
            self.gpu.memory.fail(asked, "; it was asked for during the capture of a graph")
        self.all.append(out.value)
        return out.value

    def release(self, block: GpuBlock) -> None:
        """Takes a block back, for the pool's next."""
        if self.gpu.driver.forked:
            return
        with self.lock:
            self.free.setdefault(block.nbytes, []).append(block.address)
        self.gpu.memory.uncount(block.nbytes)

    def __del__(self) -> None:
        if self.gpu.driver.forked:
            return
        if self.gpu.memory.captures:  # (which it would end: to give memory back waits for the GPU)
            _late.append((self.gpu, self.all))
        else:
            _give_back(self.gpu, self.all)


_late: list[tuple[Gpu, list[int]]] = []
"""Memory of graphs that went during a capture."""


def _give_back(gpu: Gpu, addresses: list[int]) -> None:
    gpu.use()
    for address in addresses:
        gpu.driver.status("cuMemFree_v2", address)


def _give_back_late(gpu: Gpu) -> None:
    """Gives back what had to wait for the end of a capture of this GPU's."""
    for each in [each for each in _late if each[0] is gpu]:
        _late.remove(each)
        _give_back(*each)


class CapturedDraws:
    """A generator that a graph draws from: its seed and offset in memory, as of the last replay.
    ``words``: by how much the graph moves the offset."""

    def __init__(self, generator: PhiloxGenerator, seed: int, offset: int, block: GpuBlock) -> None:
        self.generator, self.seed, self.first, self.block = generator, seed, offset, block
        self.words = 0
        self.storage = wrap_elsewhere(block.address, block.nbytes, block)

    def note(self, seed: int, offset: int, words: int) -> int:
        """Where a draw begins that would have this seed and this offset, after the first."""
        if seed != self.seed:
            raise MissingFeature("manual_seed while a CUDA graph is captured: seed before a replay")
        start = offset - self.first
        self.words = max(self.words, start + words)
        return start

    def begin(self, stream: StreamHandle) -> None:
        """Tells a replay that comes next in a stream where the generator stands."""
        state = np.array(self.generator.take(self.words), np.int64)
        stream.call("cuMemcpyHtoDAsync_v2", self.block.address, state.ctypes.data, state.nbytes)


class Capture:
    """A capture under way, and afterwards the graph that it gave."""

    def __init__(self, stream: StreamHandle, pool: GraphPool, mode: str) -> None:
        self.stream, self.gpu, self.pool = stream, stream.gpu, pool
        self.graph = self.runnable = 0
        self.draws: dict[PhiloxGenerator, CapturedDraws] = {}
        if mode not in MODES:
            names = ", ".join(MODES)
            raise ValueRangeError(f"capture_error_mode must be one of {names}, not {mode!r}")
        if not stream.handle:
            raise GraphError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, "
                "it's ok to replay them on the default stream.) with torch.cuda.graph(g): chooses "
                "one"
            )
        if stream.capture is not None:
            raise GraphError("a graph is captured from this stream already")
        block = pool.allocate(GRAPH_PAGE_BYTES, stream)
        copy = self.gpu.memory.host.allocate(GRAPH_PAGE_BYTES)
        self.page = StatusPage(block, copy, stream)
        stream.call("cuStreamSynchronize")
        self.gpu.use()
        self.gpu.driver.call("cuStreamBeginCapture_v2", stream.handle, MODES[mode])
        self.gpu.memory.capture_begins()
        stream.capture = self
        stream.show_page(self.page)

    def make_page(self) -> StatusPage:
        """The graph's own page, with a word to spare. It is not set to 0 by a replay: what one
        reported is still there when somebody waits."""
        if self.page.is_full:
            raise MissingFeature(
                f"a graph with more than {len(self.page.words)} launches that check their data"
            )
        return self.page

    def held_state(
        self, generator: PhiloxGenerator, seed: int, offset: int, words: int
    ) -> tuple[Storage, int]:
        """Where a draw of the graph finds the generator's state, and what it adds to the offset."""
        draws = self.draws.get(generator)
        if draws is None:
            block = self.pool.allocate(STATE_BYTES, self.stream)
            draws = self.draws[generator] = CapturedDraws(generator, seed, offset, block)
        return draws.storage, draws.note(seed, offset, words)

    def end(self, keep: bool = True) -> None:
        """Ends it; the graph can be replayed from then on, unless it is not kept."""
        d, stream = self.gpu.driver, self.stream
        try:
            if keep and self.page.used:
                self.page.fetch(stream)
            self.gpu.use()
            out = ctypes.c_void_p()
            d.call("cuStreamEndCapture", stream.handle, ctypes.byref(out))
            self.graph = out.value or 0
        finally:
            for draws in self.draws.values():
                draws.generator.rewind(draws.first)
            stream.capture = None
            stream.show_page(stream.page)
            self.gpu.memory.capture_ended()
            if not self.gpu.memory.captures:
                _give_back_late(self.gpu)
        if keep:
            self.runnable = d.number(
                "cuGraphInstantiateWithFlags", self.graph, 0, kind=ctypes.c_void_p
            )

    def replay(self, stream: StreamHandle) -> None:
        """Runs the graph in a stream's order."""
        for draws in self.draws.values():
            draws.begin(stream)
        stream.call("cuGraphLaunch", self.runnable)
        stream.note("a CUDA graph")
        if self.page.used:
            stream.replays(self.page)

    def __del__(self) -> None:
        d = self.gpu.driver
        if d.forked:
            return
        self.gpu.use()
        if getattr(self, "runnable", 0):
            d.status("cuGraphExecDestroy", self.runnable)
        if getattr(self, "graph", 0):
            d.status("cuGraphDestroy", self.graph)
