"""The questions of ``torch.cuda``, ``torch.xpu``, ``torch.mps`` and ``torch.mtia``, answered where
there is no such device: as PyTorch answers them in a build without it.

What asks gets the honest answer (False, 0, nothing); what needs the device raises the class that
PyTorch raises; what tidies up or seeds has nothing to do.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

_FALSE = {
    "is_available": "Can tensors be put on the device?",
    "is_initialized": "Has the device been used in this process?",
    "is_bf16_supported": "Has the device bfloat16?",
    "is_tf32_supported": "Has the device TF32?",
    "_is_in_bad_fork": "Was the process forked after the device was used?",
}
_ZERO = {
    "device_count": "How many devices there are: 0.",
    "memory_allocated": "Bytes that tensors hold on the device: 0 without one.",
    "max_memory_allocated": "The most bytes that tensors have held: 0 without a device.",
    "memory_reserved": "Bytes that are kept for tensors: 0 without a device.",
    "max_memory_reserved": "The most bytes that were kept for tensors: 0 without a device.",
    "memory_cached": "The older name of ``memory_reserved``.",
    "max_memory_cached": "The older name of ``max_memory_reserved``.",
}
_NOTHING = {
    "manual_seed": "Seeds the current device's generator: nothing to do without one.",
    "manual_seed_all": "Seeds every device's generator: nothing to do without one.",
    "seed": "Seeds the current device's generator: nothing to do without one.",
    "seed_all": "Seeds every device's generator: nothing to do without one.",
    "empty_cache": "Gives unused memory back: nothing to do without a device.",
}
_NEEDS_DEVICE = (
    "init", "current_device", "set_device", "get_device_name", "get_device_properties",
    "get_device_capability", "synchronize", "current_stream", "default_stream", "set_stream",
    "mem_get_info", "initial_seed", "get_rng_state", "set_rng_state", "can_device_access_peer",
    "reset_peak_memory_stats", "reset_accumulated_memory_stats", "set_per_process_memory_fraction",
    "get_per_process_memory_fraction", "get_stream_from_external", "make_graphed_callables",
    "graph_pool_handle", "is_current_stream_capturing", "memory_snapshot", "memory_summary",
    "clock_rate", "device_memory_used", "memory_usage", "power_draw", "temperature", "utilization",
)  # fmt: skip
_CLASSES = ("Event", "Stream", "ExternalStream", "MemPool", "graph")


def queries(module: str, refuse: Callable[[], Any]) -> dict[str, Any]:
    """The functions and classes of PyTorch's `module`; `refuse` raises that there is no device."""
    result: dict[str, Any] = {}
    for table, value in ((_FALSE, False), (_ZERO, 0), (_NOTHING, None)):
        for name, doc in table.items():
            result[name] = _constant(name, value, doc)
    for name in _NEEDS_DEVICE:
        result[name] = _refusing(name, refuse)
    for name in _CLASSES:
        result[name] = _absent_class(name, refuse)
    result.update(
        memory_stats=_constant("memory_stats", OrderedDict, "Statistics of memory: none."),
        memory_stats_as_nested_dict=_constant("memory_stats_as_nested_dict", dict,
                                              "Statistics of memory: none."),
        get_rng_state_all=_constant("get_rng_state_all", list, "Each device's state: none."),
        get_arch_list=_constant("get_arch_list", list, "The architectures built for: none."),
        get_gencode_flags=_constant("get_gencode_flags", "", "The flags built with: none."),
        default_generators=(),
        device=_context("device", refuse), device_of=_context("device_of", refuse),
        StreamContext=_context("StreamContext", refuse),
    )  # fmt: skip

    def set_rng_state_all(new_states: Any) -> None:
        """Sets each device's state: there is none to set."""
        for _ in new_states:
            refuse()

    def stream(stream: Any) -> Any:
        """A context in which work goes to `stream`; None changes nothing."""
        return contextlib.nullcontext() if stream is None else refuse()

    result.update(set_rng_state_all=set_rng_state_all, stream=stream)
    for each in result.values():
        if hasattr(each, "__module__"):
            each.__module__ = f"antorcha.{module}"
    return result


def _constant(name: str, value: Any, doc: str) -> Callable[..., Any]:
    if isinstance(value, type):

        def answer(*args: Any, **kwargs: Any) -> Any:
            return value()
    else:

        def answer(*args: Any, **kwargs: Any) -> Any:
            return value

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = doc
    return answer


def _refusing(name: str, refuse: Callable[[], Any]) -> Callable[..., Any]:
    def answer(*args: Any, **kwargs: Any) -> Any:
        refuse()

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = "Needs the device: raises, since there is none."
    return answer


def _absent_class(name: str, refuse: Callable[[], Any]) -> type:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        refuse()

    doc = "Needs the device: making one raises, since there is none."
    return type(name, (), {"__init__": __init__, "__doc__": doc})


def _context(name: str, refuse: Callable[[], Any]) -> type:
    """A context that chooses a device or stream: None, or an index below 0, changes nothing."""

    def __init__(self: Any, chosen: Any = None) -> None:  # noqa: N807
        index = getattr(chosen, "index", chosen)
        self.none = chosen is None or (isinstance(index, int) and index < 0)
        where = getattr(chosen, "device", None)  # (of a tensor: `device_of`)
        self.none = self.none or (name == "device_of" and getattr(where, "type", "") == "cpu")

    def __enter__(self: Any) -> None:  # noqa: N807
        if not self.none:
            refuse()

    def __exit__(self: Any, *_: object) -> None:  # noqa: N807
        pass

    doc = "A context that chooses among devices: None changes nothing, another raises."
    body = {"__init__": __init__, "__enter__": __enter__, "__exit__": __exit__, "__doc__": doc}
    return type(name, (), body)
