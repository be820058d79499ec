"""The times of all that a GPU ran meanwhile, by NVIDIA's CUPTI: whoever launched it, a graph too.

CUPTI is asked by ctypes, and installed by ``pip install nvidia-cuda-cupti`` (PyTorch brings it).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from antorcha.devices.cuda.libraries import loader

KINDS = {1: "copy", 2: "fill", 10: "kernel"}  # of ``CUpti_ActivityKind``
START, END, NAME = 16, 24, 104  # bytes from where a record begins (cupti_activity.h, 12 and 13)
BUFFER_BYTES = 4 << 20
FORCED = 1
NEWEST, OLDEST = 14, 12
_REQUESTED = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_size_t),
)  # fmt: skip
_COMPLETED = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)


class Traced(NamedTuple):
    """A kernel, or a copy, that ran: when it began and ended, in nanoseconds."""

    name: str
    start: int
    end: int


class GpuTrace:
    """Notes what the GPU runs within. It is to begin before a graph is made whose kernels are to be
    seen one by one; OSError where CUPTI is not installed."""

    def __init__(self) -> None:
        self.cupti = open_cupti()
        self.found: list[Traced] = []
        self._buffers: dict[int, Any] = {}
        self._callbacks = _REQUESTED(self._give_buffer), _COMPLETED(self._take_buffer)
        self._call("cuptiActivityRegisterCallbacks", *self._callbacks)
        for kind in KINDS:
            self._call("cuptiActivityEnable", kind)

    def collect(self) -> list[Traced]:
        """What ran since this was last asked, in the order of its beginning; the GPU is idle."""
        self._call("cuptiActivityFlushAll", FORCED)
        found, self.found = self.found, []
        return sorted(found, key=lambda each: each.start)

    def end(self) -> None:
        """No more is noted."""
        for kind in KINDS:
            self._call("cuptiActivityDisable", kind)
        self._call("cuptiActivityFlushAll", FORCED)

    def _call(self, name: str, *args: Any) -> None:
        status = getattr(self.cupti, name)(*args)
        if status:
            raise OSError(f"{name} gives {status}")

    def _give_buffer(self, buffer: Any, size: Any, most: Any) -> None:
        room = ctypes.create_string_buffer(BUFFER_BYTES + 8)
        address = ctypes.addressof(room) + 7 & ~7
        self._buffers[address] = room
        buffer[0], size[0], most[0] = address, BUFFER_BYTES, 0

    def _take_buffer(self, _: Any, __: int, buffer: int, ___: int, used: int) -> None:
        record = ctypes.c_void_p()
        while self.cupti.cuptiActivityGetNextRecord(
            ctypes.c_void_p(buffer), ctypes.c_size_t(used), ctypes.byref(record)
        ) == 0:  # fmt: skip
            at = record.value or 0
            kind = ctypes.c_uint32.from_address(at).value
            if kind in KINDS:
                start, end = (ctypes.c_uint64.from_address(at + k).value for k in (START, END))
                name = KINDS[kind]
                if name == "kernel":
                    text = ctypes.c_char_p.from_address(at + NAME).value or b""
                    name = text.decode(errors="replace")
                self.found.append(Traced(name, start, end))
        del self._buffers[buffer]


def open_cupti() -> Any:
    """The library; OSError where there is none."""
    versions = range(NEWEST, OLDEST - 1, -1)
    names = [f"libcupti.so.{version}" for version in versions]
    error: OSError | None = None
    for path in [*loader.paths("cupti", versions, loader.folders()), *names]:
        try:
            return ctypes.CDLL(path)
        except OSError as raised:
            error = raised
    raise error or OSError("no CUPTI")


class GpuTimes(NamedTuple):
    """Of work that was run several times: milliseconds of one run. ``busy``: the sum of all that
    ran; ``span``: from the first beginning to the last end; ``table``: launches and milliseconds by
    name."""

    busy: float
    span: float
    table: dict[str, tuple[int, float]]


def times_of(trace: GpuTrace, torch: Any, run: Callable[[], Any], times: int = 5) -> GpuTimes:
    """What each run of some work has the GPU do."""
    torch.cuda.synchronize()
    trace.collect()
    spans, every = [], []
    for _ in range(times):
        run()
        torch.cuda.synchronize()
        seen = trace.collect()
        spans.append(max([each.end for each in seen]) - seen[0].start)
        every += seen
    table: dict[str, tuple[int, float]] = {}
    for each in every:
        count, ms = table.get(each.name, (0, 0.0))
        table[each.name] = count + 1, ms + (each.end - each.start) / 1e6
    by_time = sorted(table.items(), key=lambda item: -item[1][1])
    busy = sum([ms for _, ms in table.values()]) / times
    rows = {name: (count // times, round(ms / times, 4)) for name, (count, ms) in by_time}
    return GpuTimes(busy, sorted(spans)[times // 2] / 1e6, rows)
