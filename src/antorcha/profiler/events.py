"""What a profile has seen: events, lists of them, and their averages.

Times are in microseconds since the profile began. An event's own ("self") time and memory are what
its children do not account for. The kernels that an event has launched itself hang on it, as
``kernels``; their time is part of its own, as PyTorch counts it on a CPU.
"""

from __future__ import annotations

import enum
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any, NamedTuple

from antorcha.core.files import write_whole
from antorcha.core.lazy import lazy
from antorcha.errors import MissingName, ValueRangeError, explain_missing

profiling_table = lazy("antorcha.profiler.table")
profiling_chrome = lazy("antorcha.profiler.chrome")

__all__ = [
    "DeviceType", "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg",
    "Interval", "Kernel", "MemRecordsAcc",
]  # fmt: skip


class DeviceType(enum.Enum):
    """Where an event ran."""

    CPU = 0
    CUDA = 1


class Interval(NamedTuple):
    """When something ran, in microseconds since the profile began."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        return self.end - self.start


class Kernel(NamedTuple):
    """A kernel that an event has launched: its name, device, microseconds, and when it began."""

    name: str
    device: int
    duration: float
    start: float = 0.0
    details: Mapping[str, Any] = MappingProxyType({})


class FormattedTimesMixin:
    """Times per call, and their texts."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total = self_device_time_total = 0.0  # of another device: there is none yet
    cuda_time_total = self_cuda_time_total = 0.0

    @property
    def cpu_time(self) -> float:
        """Microseconds per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def cuda_time(self) -> float:
        return self.device_time

    @property
    def cpu_time_str(self) -> str:
        return time_text(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return time_text(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return time_text(self.self_cpu_time_total)

    @property
    def device_time_str(self) -> str:
        return time_text(self.device_time)

    @property
    def device_time_total_str(self) -> str:
        return time_text(self.device_time_total)

    @property
    def self_device_time_total_str(self) -> str:
        return time_text(self.self_device_time_total)


class FunctionEvent(FormattedTimesMixin):
    """One call of an op, one run of a node, one ``record_function`` block, or one kernel.

    Attributes:
        name, thread, time_range: which, where and when
        cpu_parent, cpu_children: the event that it ran inside of, and those inside of it
        kernels (list of Kernel): what it has launched itself
        input_shapes, input_dtypes, concrete_inputs: with ``record_shapes=True``
        stack (list of str): the user's lines, innermost first, with ``with_stack=True``; of a node,
            those of the call that it belongs to
        module_hierarchy (str): with ``with_modules=True``
        sequence_nr (int): the number of the node that the call has made, or that runs; -1: none
        fwd_thread (int or None): of a node, the thread of that call
        cpu_memory_usage (int): bytes allocated less bytes freed while it ran
        bytes_allocated, bytes_freed (int): both, without those of its children
        flops (int): with ``with_flops=True``
    """

    is_async = is_remote = is_legacy = is_python_function = False
    device_type = DeviceType.CPU
    device_index = 0
    device_memory_usage = self_device_memory_usage = cuda_memory_usage = self_cuda_memory_usage = 0
    node_id = -1
    count = 1
    overload_name = ""

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        input_shapes: Any = None,
        stack: list[str] | None = None,
        scope: int = 0,
        sequence_nr: int = -1,
        is_user_annotation: bool = False,
    ) -> None:
        self.id, self.name, self.trace_name, self.thread = id, name, name, thread
        self.time_range = Interval(start_us, end_us)
        self.input_shapes: list[Any] = input_shapes or []
        self.input_dtypes: list[str] = []
        self.concrete_inputs: list[Any] = []
        self.stack: list[str] = stack or []
        self.scope, self.sequence_nr, self.is_user_annotation = (
            scope,
            sequence_nr,
            is_user_annotation,
        )
        self.fwd_thread: int | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.kernels: list[Kernel] = []
        self.module_hierarchy = ""
        self.cpu_memory_usage = self.bytes_allocated = self.bytes_freed = 0
        self.flops = 0
        self.is_kernel = False

    @property
    def key(self) -> str:
        return "ProfilerStep*" if self.name.startswith("ProfilerStep#") else self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        start, end = self.time_range
        inside = 0.0
        for child in self.cpu_children:  # (one that outlives its parent counts as far as it goes)
            inside += max(min(child.time_range.end, end) - max(child.time_range.start, start), 0.0)
        return max(end - start - inside, 0.0)

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage - sum([c.cpu_memory_usage for c in self.cpu_children])

    @property
    def kernel_time_total(self) -> float:
        """Microseconds in the kernels that it has launched itself."""
        return sum([kernel.duration for kernel in self.kernels], 0.0)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} "
            f"cpu_time={self.cpu_time_str} start_us={self.time_range.start:.3f} "
            f"end_us={self.time_range.end:.3f} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """The sum of the events of one name (and one set of shapes, one stack)."""

    is_async = is_remote = is_legacy = False
    device_type = DeviceType.CPU
    device_memory_usage = self_device_memory_usage = cuda_memory_usage = self_cuda_memory_usage = 0
    overload_name = ""

    def __init__(self) -> None:
        self.key: str = ""
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = self.kernel_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.bytes_allocated = self.bytes_freed = self.flops = 0
        self.input_shapes: Any = None
        self.stack: list[str] = []
        self.module_hierarchy = ""
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.scope, self.is_user_annotation, self.is_kernel = 0, False, False

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Adds an event, or a sum of others."""
        if not self.key:
            for name in ("key", "input_shapes", "stack", "module_hierarchy", "cpu_parent", "scope",
                         "cpu_children", "is_user_annotation", "is_kernel"):  # fmt: skip
                setattr(self, name, getattr(other, name))
        for name in ("count", "cpu_time_total", "self_cpu_time_total", "kernel_time_total",
                     "cpu_memory_usage", "self_cpu_memory_usage", "bytes_allocated", "bytes_freed",
                     "flops"):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list[Any]):
    """Events, or their averages.

    See https://docs.pytorch.org/docs/stable/autograd.html#profiler.
    """

    def __init__(
        self,
        events: Iterable[Any] = (),
        *,
        profile_memory: bool = False,
        with_flops: bool = False,
        kernels: Sequence[FunctionEvent] = (),
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(events)
        self.profile_memory, self.with_flops = profile_memory, with_flops
        self.kernels = list(kernels)
        """The kernels as events, in the order in which they began; their parents launched them.
        (Those that no op has launched are also among the events.)"""
        self.metadata = metadata or {}

    @property
    def self_cpu_time_total(self) -> float:
        return float(sum([event.self_cpu_time_total for event in self]))

    @property
    def supported_export_stacks_metrics(self) -> list[str]:
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total",
                "self_privateuse1_time_total"]  # fmt: skip

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        *,
        kernels: bool = False,
    ) -> EventList:
        """The events of one name added up; with the groupings, of one name and one set of shapes,
        or the same innermost lines.

        Args:
            kernels (bool): give kernels rows of their own, and take their time off that of the
                ops which launched them (what is left is the cost of the call)
        """
        found: OrderedDict[Any, FunctionEventAvg] = OrderedDict()
        events = [e for e in self if not e.is_kernel] + self.kernels if kernels else list(self)
        for event in events:
            lines = tuple(event.stack[:group_by_stack_n])
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            key = (event.key, event.is_kernel, shapes, lines)
            if key not in found:
                found[key] = FunctionEventAvg()
            found[key].add(event)
            if kernels and not event.is_kernel:
                found[key].self_cpu_time_total -= min(
                    event.kernel_time_total, event.self_cpu_time_total
                )
        for each in found.values():
            each.stack = each.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                each.input_shapes = ""
        return self._like(found.values())

    def _like(self, events: Iterable[Any]) -> EventList:
        return EventList(
            events, profile_memory=self.profile_memory, with_flops=self.with_flops,
            metadata=self.metadata,
        )  # fmt: skip

    def total_average(self) -> FunctionEventAvg:
        """All events added up; nested ones count once in the total."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = ""
        total.cpu_time_total = total.self_cpu_time_total
        total.key = "Total"
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a text table.

        Args:
            sort_by (str): ``cpu_time``, ``cpu_time_total``, ``self_cpu_time_total``, ``count``,
                ``cpu_memory_usage``, ``self_cpu_memory_usage``, ``kernel_time_total`` or any other
                attribute. Default: as they began
            row_limit (int): of so many rows; -1: all
            header (str): a line above
            top_level_events_only (bool): only those that are part of no other
            time_unit (str): ``"s"``, ``"ms"`` or ``"us"``. Default: what suits each number
        """
        events = list(self)
        if sort_by is not None and events:
            if not hasattr(events[0], sort_by):
                raise MissingName(
                    f"table: {type(events[0]).__name__!r} object has no attribute {sort_by!r} to "
                    "sort by; 'cpu_time_total', 'self_cpu_time_total' and 'count' are some",
                    sort_by,
                    lambda: "",
                )
            events.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        text: str = profiling_table.build_table(
            self._like(events), row_limit, (max_name_column_width, max_shapes_column_width,
            max_src_column_width), header, top_level_events_only, time_unit,
        )  # fmt: skip
        return text

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for ``chrome://tracing`` or Perfetto; compressed if `path` ends in
        ``.gz``."""
        profiling_chrome.write(self, path)

    def export_stacks(self, path: str, metric: str) -> None:
        """Writes a line for each stack, ``outermost;..;innermost number``, as flame graph tools
        read them. `metric`: one of ``supported_export_stacks_metrics``."""
        if metric not in self.supported_export_stacks_metrics:
            raise ValueRangeError(
                f"metric should be one of: {self.supported_export_stacks_metrics}, not {metric!r}"
            )

        sums: dict[str, float] = {}
        clean = str.maketrans(" ;\t\n", "____")
        for event in self:
            value = getattr(event, metric, 0.0)
            if event.stack and int(value) > 0:
                words = [line.translate(clean) for line in (*event.stack[::-1], event.name)]
                line = ";".join(words)
                sums[line] = sums.get(line, 0.0) + value
        write_whole(path, "".join([f"{line} {int(value)}\n" for line, value in sums.items()]))

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """What a notebook shows: the table, of the rows that take the most time."""
        text = self.table(sort_by="self_cpu_time_total", row_limit=30)
        return f'<pre style="white-space:pre;overflow-x:auto;font-size:12px">{escape(text)}</pre>'


class MemRecordsAcc:
    """Memory records by time: those within an interval are found without looking at all."""

    def __init__(self, mem_records: Sequence[Any]) -> None:
        self._records = sorted(mem_records, key=lambda r: r[0].start_ns())
        self._starts = [r[0].start_ns() for r in self._records]

    def in_interval(self, start_us: float, end_us: float) -> Iterable[Any]:
        low = bisect_left(self._starts, start_us * 1000)
        return self._records[low : bisect_right(self._starts, end_us * 1000)]


def time_text(us: float, unit: str | None = None) -> str:
    """Microseconds with the unit that suits, or the given one."""
    scales = {"s": 1e6, "ms": 1e3, "us": 1.0}
    if unit is None:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    if unit not in scales:
        raise ValueRangeError(f"time_unit must be 's', 'ms' or 'us', not {unit!r}")
    return f"{us / scales[unit]:.3f}{unit}"


explain_missing("torch.autograd.profiler_util", globals())
