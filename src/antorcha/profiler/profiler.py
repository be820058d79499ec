"""``profile``, with schedules: some steps of a long run are recorded, and handed over."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from antorcha.core.files import write_whole
from antorcha.errors import GraphError, MissingFeature, explain_missing, warn
from antorcha.profiler import autograd_profiler as engine
from antorcha.profiler.autograd_profiler import record_function
from antorcha.profiler.events import EventList, FunctionEventAvg
from antorcha.profiler.flame import flame_graph
from antorcha.profiler.memory import export, memory_timeline
from antorcha.profiler.session import prepare


class ProfilerActivity(enum.Enum):
    """What is recorded: that of the CPU. (PyTorch's other devices are accepted: there are none.)"""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What is done in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded on this machine."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Can this module record? (PyTorch's own needs a library for it; programs ask before they use
    it.)"""
    return True


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """What to do in each step: after `skip_first` steps, cycles of `wait` steps without, `warmup`
    steps that get ready, and `active` ones that are recorded.

    Args:
        repeat (int): so many cycles; 0: until the profile ends
        skip_first_wait (int): 1: the first cycle does not wait

    See https://docs.pytorch.org/docs/stable/profiler.html#torch.profiler.schedule.

    >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} "
            f"(need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0), "
            f"skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warn("Profiler won't be using warmup, this can skew profiler results")
    length = wait + warmup + active

    def action_of(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        at = step % length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action_of


def _always(_step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Any], None]:
    """For ``on_trace_ready``: writes each trace into a folder, under the name that TensorBoard's
    plug-in looks for.

    See https://docs.pytorch.org/docs/stable/profiler.html.
    """

    def handler(prof: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name} ({error})") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


class ExecutionTraceObserver:
    """PyTorch's execution traces: not supported, raises NotImplementedError when one is made."""

    def __init__(self) -> None:
        raise MissingFeature(
            "ExecutionTraceObserver: execution traces are not written; export_chrome_trace() "
            "writes what ran, and when"
        )


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Records what runs, in all threads: ops, forward and backward, and the kernels they launch.

    Args:
        activities (iterable of ProfilerActivity): what to record. Default: all there is
        schedule (callable): the ProfilerAction of each step; :meth:`step` says that one ends.
            Default: everything is recorded
        on_trace_ready (callable): gets the profile whenever a recording is complete
        record_shapes (bool): shapes and dtypes of the operands
        profile_memory (bool): what tensors allocate and free
        with_stack (bool): the lines of source that called
        with_flops (bool): floating point operations of products of matrices, convolutions, and
            arithmetic
        with_modules (bool): the modules that calls are part of
        experimental_config, execution_trace_observer, acc_events, use_cuda,
            custom_trace_id_callback, post_processing_timeout_s: accepted

    There can be one at a time in a process; raises RuntimeError where another runs.

    See https://docs.pytorch.org/docs/stable/profiler.html.

    >>> def work():
    ...     return torch.ones(8, 8) @ torch.ones(8, 8)
    >>> seen = []
    >>> with torch.profiler.profile(
    ...     schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
    ...     on_trace_ready=lambda p: seen.append(p.key_averages()),
    ... ) as prof:
    ...     for _ in range(6):
    ...         _ = work()
    ...         prof.step()
    >>> {row.key: row.count for row in seen[0]}["aten::matmul"]
    2
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        chosen = supported_activities() if activities is None else set(activities)
        if not chosen:
            raise AssertionError("No valid profiler activities found")
        for each in chosen:
            if not isinstance(each, ProfilerActivity):
                raise TypeError(
                    "profile: activities are of torch.profiler.ProfilerActivity, e.g. "
                    f"ProfilerActivity.CPU, not {each!r:.60}"
                )
        if chosen - supported_activities() or use_cuda:
            names = sorted({each.name for each in chosen - supported_activities()} or {"CUDA"})
            warn(f"profile: {', '.join(names)} is not available here; the CPU is profiled")
        self.activities = chosen
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.schedule = schedule or _always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.step_rec_fn: record_function | None = None
        self.profiler: engine.profile | None = None
        self._started = False
        self._metadata: dict[str, Any] = {}
        self._trace_id = custom_trace_id_callback

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.stop()

    # ------------------------------------------------------------------------------------- running
    def start(self) -> None:
        """Begins with the first step."""
        if self._is_recording():
            raise GraphError(
                "profile: this profile is already running; stop() ends it, step() goes on"
            )
        self._started = True
        self._enter(self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """Ends the profile; what was recorded is handed to ``on_trace_ready``."""
        self._started = False
        self._end_step()
        if self._is_recording():
            self._stop_recording()
            self._hand_over()

    def step(self) -> None:
        """Says that a step of the program has ended, and the next one begins. Of a profile that
        was not started it only counts."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before in _RECORDING:
            complete = before is ProfilerAction.RECORD_AND_SAVE
            if complete or self.current_action not in _RECORDING:
                if not complete:
                    warn(
                        "profile: the schedule goes from RECORD to "
                        f"{self.current_action.name} without RECORD_AND_SAVE"
                    )
                self._stop_recording()
                if complete:
                    self._hand_over()
        if self._started:
            self._enter(self.current_action)
            self._begin_step()

    def start_trace(self) -> None:
        """Starts recording, whatever the schedule."""
        self._start_recording()

    def stop_trace(self) -> None:
        """Stops recording."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self._stop_recording()

    def prepare_trace(self) -> None:
        """Compiles what recording needs."""
        prepare()

    def _is_recording(self) -> bool:
        return self.profiler is not None and self.profiler.running

    def _enter(self, action: ProfilerAction) -> None:
        if action is ProfilerAction.WARMUP:
            self.prepare_trace()
        elif action in _RECORDING and not self._is_recording():
            self._start_recording()

    def _start_recording(self) -> None:
        result = engine.profile(
            record_shapes=self.record_shapes, profile_memory=self.profile_memory,
            with_stack=self.with_stack, with_flops=self.with_flops, with_modules=self.with_modules,
        )  # fmt: skip
        result.metadata = self._metadata
        result.start()
        self.profiler = result

    def _stop_recording(self) -> None:
        if self.profiler is not None:
            self.profiler.stop()

    def _hand_over(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _begin_step(self) -> None:
        if self.record_steps and self._is_recording():
            self.step_rec_fn = record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__()
            self.step_rec_fn = None

    # ------------------------------------------------------------------------------------- results
    def _done(self, what: str) -> engine.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def events(self) -> EventList:
        """The events of the last recording, in the order in which they began."""
        return self._done("accessing events").ended()

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        *,
        kernels: bool = False,
    ) -> EventList:
        """The events of each name added up; ``.table(sort_by=...)`` shows them.

        Args:
            group_by_input_shape (bool): a row for each set of shapes
            group_by_stack_n (int): a row for each set of so many lines of source
            kernels (bool): rows for kernels, too; an op's own time is then without theirs
        """
        done = self._done("getting key averages")
        return done.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name, kernels=kernels
        )

    def total_average(self) -> FunctionEventAvg:
        """All events added up."""
        return self._done("getting the total").total_average()

    def export_chrome_trace(self, path: str) -> None:
        """Writes a trace for ``chrome://tracing`` or https://ui.perfetto.dev; compressed where the
        name ends in ``.gz``."""
        self._done("exporting chrome trace").export_chrome_trace(str(path))

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes a line for each stack with its microseconds; needs ``with_stack=True``."""
        self._done("exporting stacks").export_stacks(path, metric)

    def flame_graph(self) -> str:
        """A picture of where the time went, as SVG: of the lines of source with
        ``with_stack=True``, else of what ran inside of what."""
        return flame_graph(self.events())

    def export_flame_graph(self, path: str) -> None:
        """Writes :meth:`flame_graph` to a file, for a browser."""
        write_whole(path, self.flame_graph())

    def memory_timeline(self) -> str:
        """A picture of what tensors hold over time, as SVG; needs ``profile_memory=True``."""
        return memory_timeline(self.events())

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Writes what tensors hold over time; needs ``profile_memory=True``.

        Args:
            path (str): ``.html`` or ``.svg``: :meth:`memory_timeline`; ``.json`` (or ``.json.gz``):
                ``[times, rows]`` in microseconds and bytes; ``.raw.json.gz``: a list of ``[time,
                action, bytes, category]`` in nanoseconds. As in PyTorch's files a row has a column
                for each of eight categories (after a 0); they are not told apart here, so all
                is in the last one, the unknown
            device (str): "cpu"

        Raises ValueError where the profile has no memory, or the file has another ending.
        """
        export(self._done("exporting the memory timeline").ended(), str(path), device)

    # ------------------------------------------------------------------------------------ metadata
    def add_metadata(self, key: str, value: str) -> None:
        """Puts a text into the trace, beside the events."""
        self._metadata[str(key)] = str(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Puts a value, written as JSON, into the trace. Raises ValueError where it is no JSON."""
        self._metadata[str(key)] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """What :meth:`get_trace_id` asks."""
        self._trace_id = callback

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Not supported: raises NotImplementedError."""
        raise MissingFeature(
            "toggle_collection_dynamic: a profile is not switched off and on in its middle; a "
            "schedule, or start_trace() and stop_trace(), choose what is recorded"
        )

    def get_trace_id(self) -> str | None:
        """What ``custom_trace_id_callback`` gives, if there is one."""
        return None if self._trace_id is None else str(self._trace_id())


explain_missing("torch.profiler", globals())
