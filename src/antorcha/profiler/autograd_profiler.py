"""``torch.autograd.profiler``: which ops ran, forward and backward, and how long they took.

The engine is in ``profiling/``; ``torch.profiler`` (with schedules, and more to export) is built on
what is here. Off, it costs nothing; see docs/profiling.md.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from antorcha.core import modes
from antorcha.errors import GraphError, MissingFeature, explain_missing, warn
from antorcha.profiler.build import build
from antorcha.profiler.events import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
    MemRecordsAcc,
)
from antorcha.profiler.session import (
    ProfileOptions,
    ProfileSession,
    begin_block,
    end_block,
)

if TYPE_CHECKING:
    from antorcha.profiler.session import ProfileSession, Recorded

__all__ = [
    "EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel", "MemRecordsAcc",
    "emit_itt", "emit_nvtx", "load_nvprof", "profile", "record_function",
]  # fmt: skip


class profile:
    """Records the ops that run inside the block, in all threads.

    Args:
        enabled (bool): False: does nothing
        use_cuda, use_device, use_kineto, use_cpu, experimental_config, acc_events,
            custom_trace_id_callback, post_processing_timeout_s, activity_filters: accepted;
            there is one device, the CPU
        record_shapes (bool): of the operands of each call
        with_flops (bool): estimates floating point operations
        profile_memory (bool): what tensors allocate and free
        with_stack (bool): the lines that called
        with_modules (bool): the modules that calls are part of

    Raises RuntimeError where another profile runs.

    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.profiler.profile.

    >>> with torch.autograd.profiler.profile() as prof:
    ...     y = torch.ones(2) * 2
    >>> table = prof.key_averages().table(sort_by="self_cpu_time_total")
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:
        if use_cuda or use_device not in (None, "cpu"):
            warn(f"profiler: there is no {use_device or 'cuda'} here; the CPU is profiled")
        self.enabled, self.record_shapes, self.with_flops = enabled, record_shapes, with_flops
        self.profile_memory, self.with_stack = profile_memory, with_stack
        self.with_modules = with_modules
        self.entered = False
        self.metadata: dict[str, Any] = {}
        self._session: ProfileSession | None = None
        self._recorded: Recorded | None = None
        self._events: EventList | None = None

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            raise GraphError("Profiler context manager is not reentrant")
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.enabled:
            self.stop()

    def start(self) -> None:
        """Starts recording; raises RuntimeError where a profile runs."""
        session = ProfileSession(
            ProfileOptions(
                self.record_shapes or self.with_flops, self.with_stack, self.with_modules
            )
        )
        session.start()
        self.entered, self._session = True, session

    def stop(self) -> None:
        """Stops recording. In a forked child nothing was recorded, and there is nothing to stop."""
        if self._session is not None:
            self._recorded, self._session = self._session.stop(), None

    @property
    def running(self) -> bool:
        """Is it recording now?"""
        return self._session is not None and self._session.is_on()

    @property
    def function_events(self) -> EventList | None:
        """The events; None until the profile is over."""
        if self._events is None and self._recorded is not None:
            if self._recorded.lost:
                warn(f"profiler: there was no room for the last {self._recorded.lost} events")

            self._events = build(
                self._recorded, memory=self.profile_memory, flops=self.with_flops,
                shapes=self.record_shapes, metadata={"user": self.metadata},
            )  # fmt: skip
            self._recorded = None
        return self._events

    def ended(self) -> EventList:
        """The events; raises RuntimeError until the profile is over."""
        events = self.function_events
        if events is None:
            raise GraphError("Profiler didn't finish running")
        return events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        *,
        kernels: bool = False,
    ) -> EventList:
        """The events of each name added up: see :meth:`EventList.key_averages`."""
        return self.ended().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name, kernels=kernels
        )

    def total_average(self) -> FunctionEventAvg:
        """All events added up."""
        return self.ended().total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """Every event, as a text table: see :meth:`EventList.table`."""
        return self.ended().table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for ``chrome://tracing`` or Perfetto."""
        self.ended().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes the stacks for flame graph tools; the profile needs ``with_stack=True``."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.ended().export_stacks(path, metric)

    @property
    def self_cpu_time_total(self) -> float:
        return self.ended().self_cpu_time_total

    def __str__(self) -> str:
        events = self.function_events
        return "<unfinished torch.autograd.profile>" if events is None else str(events)

    __repr__ = __str__


class record_function:
    """Names a block of code, or a function, in the profile.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.profiler.record_function.html.

    >>> with torch.autograd.profiler.profile() as prof:
    ...     with torch.autograd.profiler.record_function("double"):
    ...         y = torch.ones(2) * 2
    >>> [event.name for event in prof.function_events if event.is_user_annotation]
    ['double']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._record = -1

    def __enter__(self) -> record_function:
        if modes.profiled:
            self._record = begin_block(self.name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        where: TracebackType | None = None,
    ) -> None:
        if self._record >= 0:
            end_block(self._record)
            self._record = -1

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return fn(*args, **kwargs)

        return inner


class _Emit:
    """Marks for the profiler of another vendor: there is none that could read them here."""

    tool = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self) -> Any:
        if self.enabled:
            raise MissingFeature(
                f"{type(self).__name__}: marks for {self.tool} are not written; "
                "torch.profiler.profile() records ops and kernels, and export_chrome_trace() "
                "writes them for a browser"
            )
        return self

    def __exit__(self, *_: object) -> None:
        pass


class emit_nvtx(_Emit):
    """Marks for NVIDIA's Nsight: not supported, raises NotImplementedError where it is entered."""

    tool = "Nsight (NVTX)"


class emit_itt(_Emit):
    """Marks for Intel's VTune: not supported, raises NotImplementedError where it is entered."""

    tool = "VTune (ITT)"


def load_nvprof(path: str) -> EventList:
    """Reads a trace of nvprof: not supported, raises NotImplementedError."""
    raise MissingFeature("load_nvprof: traces of nvprof are not read")


explain_missing("torch.autograd.profiler", globals())
