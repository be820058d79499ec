"""Which template plans a kind of description for GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.dtypes import dtype
from antorcha.core.lazy import lazy
from antorcha.devices.emit import Unsupported
from antorcha.devices.gpu.frame import DynamicPlan, GridPlan
from antorcha.devices.gpu.pointwise import plan_pointwise
from antorcha.lang import kernels
from antorcha.lang.kernels import Description
from antorcha.runtime.memory.layout import Layout

attention_plan = lazy("antorcha.devices.gpu.attention_plan")
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
    kernels.Pointwise: plan_pointwise,
    kernels.Updates: _deferred("updates", "plan_updates"),
    kernels.Folds: _deferred("updates", "plan_folds"),
    kernels.Reduce: _deferred("reduce", "plan_reduce"),
    kernels.Rows: _deferred("rows", "plan_rows"),
    kernels.Scan: _deferred("scan", "plan_scan"),
    kernels.MatMul: _deferred("matmul", "plan_matmul"),
    kernels.Conv: _deferred("conv", "plan_conv"),
    kernels.Attention: _deferred("attention", "plan_attention"),
    kernels.AttentionGradient: _deferred("attention_plan", "plan_gradient"),
    kernels.Gather: _deferred("gather", "plan_gather"),
    kernels.Scatter: _deferred("scatter", "plan_scatter"),
    kernels.Sort: _deferred("sort", "plan_sort"),
    kernels.Search: _deferred("search", "plan_search"),
    kernels.Bins: _deferred("bins", "plan_bins"),
    kernels.Select: _deferred("select", "plan_select"),
    kernels.Replace: _deferred("select", "plan_replace"),
    kernels.Distinct: _deferred("distinct", "plan_distinct"),
    kernels.Arrange: _deferred("arrange", "plan_arrange"),
    kernels.Range: _deferred("ranges", "plan_range"),
    kernels.Check: _deferred("check", "plan_check"),
    kernels.Pooling: _deferred("pooling", "plan_pooling"),
    kernels.Resample: _deferred("resample", "plan_resample"),
    kernels.Unfold: _deferred("unfold", "plan_unfold"),
    kernels.Draw: _deferred("draw", "plan_draw"),
    kernels.Fourier: _deferred("fourier", "plan_fourier"),
}


def attends(dtype: dtype, features: int, gradient: bool) -> bool:
    """Does a template cover attention in this dtype, or its ``gradient``, too?"""
    return not gradient or features <= attention_plan.MOST_DERIVED.get(dtype.name, 0)


def plan_for(what: Description, outs: Sequence[Layout], ins: Sequence[Any]) -> AnyPlan:
    """The kernels for a description; Unsupported where no template covers it."""
    planner = PLANNERS.get(type(what))
    if planner is None:
        raise Unsupported(type(what).__name__)
    return planner(what, outs, ins)
