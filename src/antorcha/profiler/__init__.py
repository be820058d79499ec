"""``torch.profiler``: where a program's time and memory go.

See docs/profiling.md, and https://docs.pytorch.org/docs/stable/profiler.html.

>>> model, x = torch.nn.Linear(4, 2), torch.ones(3, 4)
>>> with torch.profiler.profile(record_shapes=True) as prof:
...     with torch.profiler.record_function("forward"):
...         y = model(x)
>>> [event.name for event in prof.events()]
['forward', 'aten::linear']
>>> table = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)
"""

from antorcha.errors import explain_missing
from antorcha.profiler.autograd_profiler import record_function
from antorcha.profiler.events import DeviceType
from antorcha.profiler.flame import flame_graph
from antorcha.profiler.memory import memory_timeline
from antorcha.profiler.profiler import (
    ExecutionTraceObserver,
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "flame_graph",
    "kineto_available", "memory_timeline", "profile", "record_function", "schedule",
    "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip

explain_missing("torch.profiler", globals())
