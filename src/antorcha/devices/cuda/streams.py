"""Streams, events, and what kernels report of the data they read.

Work of one stream is done in its order. A kernel that finds a bad index writes a code to a word of
its stream's page; the page is read when the stream is next waited for, and the first code in it
becomes the error that the launch's plan makes of it.
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from antorcha import config
from antorcha.devices.cuda import driver, frames
from antorcha.errors import AcceleratorError, MissingFeature
from antorcha.runtime.memory.device_memory import (
    REMEMBERED,
    DevicePool,
    ForeignRecord,
    ReportPage,
)

if TYPE_CHECKING:
    from antorcha.devices.cuda.gpu import Gpu
    from antorcha.devices.cuda.graphs import Capture
    from antorcha.devices.cuda.memory import GpuBlock, PinnedBlock

PAGE_WORDS = 1024  # reports of a stream between two waits
MOST_ENDED = 256  # reports that have ended, and may be known
NO_TIMING, BLOCKING = 2, 1


_names: list[str] = []
_numbers: dict[str, int] = {}


def name_number(name: str) -> int:
    """A number for the name of a launch: machine code notes it."""
    if name not in _numbers:
        _names.append(name)
        _numbers[name] = len(_names) - 1
    return _numbers[name]


def pool_of(gpu: Gpu, handle: int) -> ForeignRecord:
    """The memory of a stream of that handle."""
    pool = ForeignRecord(DevicePool)
    pool.word("home").value, pool.word("stream").value = gpu.home.address, handle
    return pool


class Report(NamedTuple):
    """What a word of a page is for: the plan's error, and the launch that wrote it."""

    fail: Callable[[int], BaseException]
    name: str
    operands: Sequence[Any]

    def error(self, code: int, where: str, line: str) -> BaseException:
        """The error of a code, with a note of how it was found, and of the line that asked."""
        error = self.fail(code)
        shapes = ", ".join([str(tuple(o.shape)) for o in self.operands if hasattr(o, "shape")])
        found = f"{self.name} of {shapes} on {where} found it"
        if config.sync:
            error.add_note(f"({found}.)")
            return error
        asked = f"It was asked for at {line}. " if line else ""
        error.add_note(
            f"({found}; it is told when the GPU is waited for. {asked}"
            "ANTORCHA_SYNC=1 in the environment tells it at the line that is wrong.)"
        )
        return error


class Reports:
    """The reports of launches, by numbers that machine code knows them by."""

    def __init__(self) -> None:
        self.known: dict[int, Report] = {}
        self.ended: list[int] = []
        self.pages: weakref.WeakSet[StatusPage] = weakref.WeakSet()
        self._numbers = itertools.count()

    def add(self, report: Report) -> int:
        """A report's number."""
        if len(self.ended) >= MOST_ENDED:  # (waits of machine code forget none)
            self.forget_ended()
        number = next(self._numbers)
        self.known[number] = report
        return number

    def end(self, number: int) -> None:
        """No launch makes that report any more; it is known until no page can have it."""
        self.ended.append(number)

    def forget_ended(self) -> None:
        """Forgets what has ended, if no launch waits to be told of."""
        if not any([page.used for page in self.pages]):
            while self.ended:
                self.known.pop(self.ended.pop(), None)


reports = Reports()


class StatusPage:
    """Words of a GPU's memory, and a copy of them that the host reads: 0 where nothing is wrong."""

    def __init__(self, block: GpuBlock, copy: PinnedBlock, stream: StreamHandle) -> None:
        self.block, self.copy = block, copy
        self.words = np.frombuffer(copy.view(), np.int64)
        self.numbers = np.zeros(len(self.words), np.int64)
        self._memory = ctypes.create_string_buffer(ReportPage.size)
        self.record = ForeignRecord(ReportPage, ctypes.addressof(self._memory))
        self._used = self.record.word("used")
        self.record.word("address").value = block.address
        self.record.word("copy").value = copy.address
        self.record.word("room").value = len(self.words)
        self.record.word("reports").value = self.numbers.ctypes.data
        self._codes = (ctypes.py_object * (len(self.words)))()  # (null pointers)
        self._lines = np.zeros(len(self.words), np.int64)
        self.record.word("codes").value = ctypes.addressof(self._codes)
        self.record.word("lines").value = self._lines.ctypes.data
        reports.pages.add(self)
        self.clear(stream)

    def clear(self, stream: StreamHandle) -> None:
        """Sets the words to 0."""
        stream.call("cuMemsetD8Async", self.block.address, 0, self.block.nbytes)
        self.words[:] = 0

    def word(self, report: Report) -> int:
        """The address of a word that is 0."""
        number = reports.add(report)
        reports.end(number)
        at = self._used.value
        self.numbers[at] = number
        frames.note()(self.record.address, at)
        self._used.value = at + 1
        return self.block.address + 8 * at

    @property
    def used(self) -> int:
        """How many words launches have."""
        return self._used.value

    def begin_anew(self) -> None:
        """Every word is free again: all are 0."""
        self._used.value = 0
        reports.forget_ended()

    @property
    def is_full(self) -> bool:
        """Has it no word left?"""
        return self.used == len(self.words)

    def fetch(self, stream: StreamHandle) -> None:
        """Copies the words for the host, in the stream's order."""
        stream.call("cuMemcpyDtoHAsync_v2", self.copy.address, self.block.address, 8 * self.used)

    def first_error(self, where: str) -> BaseException | None:
        """What the first code in the copy says."""
        found = np.flatnonzero(self.words[: self.used])
        if not len(found):
            return None
        at = int(found[0])
        report = reports.known[int(self.numbers[at])]
        return report.error(int(self.words[at]), where, self._line(at))

    def _line(self, at: int) -> str:
        """The line that launched what word number ``at`` is for."""
        if not ctypes.c_void_p.from_buffer(self._codes, 8 * at).value:
            return ""
        code: Any = self._codes[at]
        return frames.place_of(code, int(self._lines[at]))

    def __del__(self) -> None:
        if hasattr(self, "_codes"):
            frames.drop()(self.record.address)


class StreamHandle:
    """A stream of a GPU; ``handle`` is the driver's, 0 for the default one."""

    def __init__(self, gpu: Gpu, handle: int, priority: int = 0) -> None:
        self.gpu, self.handle, self.priority = gpu, handle, priority
        self.pool = pool_of(gpu, handle)
        self.page: StatusPage | None = None
        self._capture: Capture | None = None
        self.replayed: dict[StatusPage, None] = {}  # of graphs, since it was last waited for

    def __repr__(self) -> str:
        return f"<stream {self.handle:#x} of cuda:{self.gpu.index}>"

    @property
    def capture(self) -> Capture | None:
        """The capture of a graph from it that is under way."""
        return self._capture

    @capture.setter
    def capture(self, capture: Capture | None) -> None:
        self._capture = capture
        self.pool.word("captured").value = capture is not None

    def replays(self, page: StatusPage) -> None:
        """A graph runs in it that reports to a page."""
        self.replayed[page] = None
        self.pool.word("replayed").value = 1

    def note(self, name: str) -> None:
        """Notes what was launched, for errors."""
        launches = self.pool.word("launches")
        self.pool.word("last", launches.value % REMEMBERED).value = name_number(name)
        launches.value += 1

    @property
    def last(self) -> list[str]:
        """What was launched last, the latest at the end."""
        count = self.pool.word("launches").value
        each = range(max(0, count - REMEMBERED), count)
        return [_names[self.pool.word("last", k % REMEMBERED).value] for k in each]

    def call(self, name: str, *args: Any) -> None:
        """Calls a function of the driver's whose last argument is the stream."""
        self.gpu.use()
        status = self.gpu.driver.status(name, *args, self.handle)
        if status:
            raise self.gpu.fault(name, status)

    def status_word(self, report: Report) -> int:
        """The address of a word that is 0, for a kernel to report what it finds."""
        return self.make_page().word(report)

    def make_page(self) -> StatusPage:
        """The page that launches report to, with a word to spare."""
        if self.capture is not None:
            return self.capture.make_page()
        if self.page is None:
            memory, nbytes = self.gpu.memory, PAGE_WORDS * 8
            self.page = StatusPage(memory.lasting(nbytes), memory.host.allocate(nbytes), self)
            self.show_page(self.page)
        if self.page.is_full:
            self.synchronize()
        return self.page

    def show_page(self, page: StatusPage | None) -> None:
        """Tells machine code of the page."""
        self.pool.word("page").value = 0 if page is None else page.record.address

    def synchronize(self) -> None:
        """Waits for the stream's work, and raises what its kernels found wrong in data."""
        if self.capture is not None:
            raise MissingFeature(
                "a stream that a CUDA graph is captured from cannot be waited for: what reads "
                "results (item(), .cpu(), printing) stays outside of torch.cuda.graph"
            )
        waiting = self.fetch_reports()
        self.call("cuStreamSynchronize")
        if waiting:
            self.raise_reports()

    def fetch_reports(self) -> bool:
        """Asks for the page's copy; False where nothing can have been reported."""
        if self.capture is not None:
            return False
        own = self.page is not None and self.page.used > 0
        if own and self.page is not None:
            self.page.fetch(self)
        return own or bool(self.replayed)

    def raise_reports(self) -> None:
        """After a wait: raises the first error that was reported, and begins another page."""
        pages = [*self.replayed] if self.page is None else [self.page, *self.replayed]
        self.replayed.clear()
        self.pool.word("replayed").value = 0
        first = None
        for page in pages:
            error = page.first_error(f"cuda:{self.gpu.index}")
            if error is not None:
                page.clear(self)
                first = first or error
        if self.page is not None:
            self.page.begin_anew()
        if first is not None:
            raise first

    def done(self) -> bool:
        """Is all its work done?"""
        self.gpu.use()
        return _is_done(self.gpu, "cuStreamQuery", self.handle)

    def wait_for(self, event: EventHandle) -> None:
        """What comes next in this stream waits for an event."""
        if event.handle:
            self.gpu.use()
            self.gpu.driver.call("cuStreamWaitEvent", self.handle, event.handle, 0)

    def wait_for_stream(self, other: StreamHandle) -> None:
        """What comes next in this stream waits for what another was given so far."""
        event = EventHandle()
        event.record(other)
        self.wait_for(event)


class EventHandle:
    """A point in a stream; the driver's event is made when it is first recorded."""

    def __init__(self, timing: bool = False, blocking: bool = False) -> None:
        self.flags = (0 if timing else NO_TIMING) | (BLOCKING if blocking else 0)
        self.handle = 0
        self.gpu: Gpu | None = None
        self.stream: StreamHandle | None = None

    def record(self, stream: StreamHandle) -> None:
        """Marks the end of what the stream was given so far."""
        if self.gpu is None:
            stream.gpu.use()
            self.gpu = stream.gpu
            self.handle = self.gpu.driver.number("cuEventCreate", self.flags, kind=ctypes.c_void_p)
        elif self.gpu is not stream.gpu:
            raise AcceleratorError(
                f"Event device {self.gpu.index} does not match recording stream's device "
                f"{stream.gpu.index}"
            )
        self.gpu.use()
        self.gpu.driver.call("cuEventRecord", self.handle, stream.handle)
        self.stream = stream

    def done(self) -> bool:
        """Has the work before it been done? True where it was never recorded."""
        if self.gpu is None:
            return True
        self.gpu.use()
        return _is_done(self.gpu, "cuEventQuery", self.handle)

    def synchronize(self) -> None:
        """Waits for the work before it."""
        if self.gpu is None:
            return
        self.gpu.use()
        status = self.gpu.driver.status("cuEventSynchronize", self.handle)
        if status:
            raise self.gpu.fault("cuEventSynchronize", status)

    def milliseconds_to(self, end: EventHandle) -> float:
        """The time from this event to another."""
        assert self.gpu is not None
        self.gpu.use()
        return float(
            self.gpu.driver.number(
                "cuEventElapsedTime", self.handle, end.handle, kind=ctypes.c_float
            )
        )

    def __del__(self) -> None:
        if self.handle and self.gpu is not None and not self.gpu.driver.forked:
            self.gpu.use()
            self.gpu.driver.status("cuEventDestroy_v2", self.handle)


def _is_done(gpu: Gpu, name: str, handle: int) -> bool:
    status = gpu.driver.status(name, handle)
    if status not in (driver.SUCCESS, driver.NOT_READY):
        raise gpu.fault(name, status)
    return status == driver.SUCCESS
