"""Updates of many parameters at once, and counts of steps in a GPU's memory.

On a device that runs many updates in few launches the updates of a group are collected and then
asked for together. With ``capturable=True`` the counts of steps (and a learning rate that is a
tensor) stay in the device's memory, where kernels read and advance them: nothing waits for the
device, and a step that was captured in a CUDA graph counts on with each replay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.errors import GraphError, warn
from antorcha.ops.kinds.record import T
from antorcha.ops.update_step import UpdateSet, UpdateStep
from antorcha.runtime.tensor import Tensor

cuda_graphs = lazy("antorcha.cuda.graphs")

CAPTURING = ("cuda", "sim")
"""Devices on which a step can be ``capturable``."""


class JoinedSteps:
    """Collects updates, and asks for them together: first what counts, then the updates, then what
    is for the next step. Called as :func:`~antorcha.optim.frame.in_place`."""

    def __init__(self, capturable: bool) -> None:
        self.capturable = capturable
        self.rounds: tuple[dict[Any, list[UpdateSet]], ...] = ({}, {}, {})
        self.numbers: dict[Any, Sequence[Any]] = {}
        self.last: Any = None  # what was asked for last, and the sets of it
        self.known: Any = None  # what numbers were derived from last, and they

    def __call__(
        self, step: UpdateStep, tensors: Sequence[Tensor], numbers: Sequence[Any], flags: int,
        counts: Sequence[Tensor] = (), turn: int = 1,
    ) -> None:  # fmt: skip
        if tensors[0]._layout.dtype.kind == "c":
            tensors = [T.view_as_real(t.detach()) for t in tensors]
        device = tensors[0]._layout.device
        last = self.last
        same = last is not None and last[0] is step and last[1] is numbers and last[2] is device
        if same and last[3] == flags and last[4] == turn:
            last[5].append(UpdateSet(tensors, counts))
            return
        shared = tuple([id(n) if isinstance(n, Tensor) else n for n in numbers])
        key = step, flags, device, *shared
        found = self.rounds[turn].get(key)
        if found is None:
            found = self.rounds[turn][key] = []
            self.numbers[key] = numbers
        found.append(UpdateSet(tensors, counts))
        self.last = step, numbers, device, flags, turn, found

    def derived(self, step: UpdateStep, known: Any, settings: Sequence[Any]) -> Sequence[Any]:
        """The numbers of an update that follow from counts which the host knows: most parameters
        of a group have the same."""
        last = self.known
        if last is None or last[0] is not step or last[1] != known or last[2] is not settings:
            assert step.derived is not None
            last = self.known = step, known, settings, step.derived(*known, *settings)
        numbers: Sequence[Any] = last[3]
        return numbers

    def before(
        self, step: UpdateStep, tensors: Sequence[Tensor], numbers: Sequence[Any] = ()
    ) -> None:
        """What counts the step."""
        self(step, tensors, numbers, 0, turn=0)

    def after(
        self, step: UpdateStep, tensors: Sequence[Tensor], numbers: Sequence[Any],
        counts: Sequence[Tensor],
    ) -> None:  # fmt: skip
        """What is for the next step."""
        self(step, tensors, numbers, 0, counts, 2)

    def run(self) -> None:
        """Runs all that was collected."""
        for waiting in self.rounds:
            for key, sets in waiting.items():
                key[0].together(sets, self.numbers[key], key[1])
            waiting.clear()
        self.numbers.clear()
        self.last = None


def check_capture(optimizer: Any, group: dict[str, Any], params: Sequence[Tensor]) -> None:
    """Refuses to capture a step in a CUDA graph whose counts the host has, and warns, once, where
    counts are on a GPU for no capture."""
    if params[0]._layout.device.type != "cuda" or "capturable" not in group:
        return
    capturing = cuda_graphs.is_current_stream_capturing()
    if capturing and not group["capturable"]:
        raise GraphError(
            "Attempting CUDA graph capture of step() for an instance of "
            f"{type(optimizer).__name__} but param_groups' capturable is False."
        )
    warned = getattr(optimizer, "_warned_capturable_if_run_uncaptured", False)
    if group["capturable"] and not capturing and not warned:
        optimizer._warned_capturable_if_run_uncaptured = True
        warn(
            "This instance was constructed with capturable=True or some of all the param_groups "
            "came with capturable=True, but step() is running without CUDA graph capture. If you "
            "never intend to graph-capture this instance, capturable=True can impair performance, "
            "and you should set capturable=False."
        )


def on_device(value: Any, group: dict[str, Any]) -> bool:
    """Is a setting a tensor that stays where it is?"""
    return (
        isinstance(value, Tensor) and bool(group.get("capturable"))
        and value._layout.device.type in CAPTURING
    )  # fmt: skip


def log_of(beta: Any, group: dict[str, Any]) -> float | None:
    """The logarithm of a setting, for counts on a device; else None."""
    if not group.get("capturable"):
        return None
    return math.log(beta) if beta > 0 else -math.inf
