"""Which template plans a kind of description for GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.devices.emit import Unsupported
from antorcha.devices.gpu.frame import DynamicPlan, GridPlan
from antorcha.devices.gpu.pointwise import plan_pointwise
from antorcha.lang.kernels import Description, Pointwise, Reduce
from antorcha.runtime.memory.layout import Layout

AnyPlan = GridPlan | DynamicPlan
Planner = Callable[[Any, Sequence[Layout], Sequence[Any]], AnyPlan]


def _deferred(module: str, name: str) -> Planner:
    """A planner whose module is imported when it is first needed."""
    found = lazy(f"antorcha.devices.gpu.{module}")

    def planner(what: Any, outs: Sequence[Layout], ins: Sequence[Any]) -> AnyPlan:
        plan: AnyPlan = getattr(found, name)(what, outs, ins)
        return plan

    return planner


PLANNERS: dict[type, Planner] = {
    Pointwise: plan_pointwise,
    Reduce: _deferred("reduce", "plan_reduce"),
}


def plan_for(what: Description, outs: Sequence[Layout], ins: Sequence[Any]) -> AnyPlan:
    """The kernels for a description; Unsupported where no template covers it."""
    planner = PLANNERS.get(type(what))
    if planner is None:
        raise Unsupported(type(what).__name__)
    return planner(what, outs, ins)
