"""Updates: one kernel that rewrites several tensors of one shape in place.

An optimizer's step is such a thing: parameter, momentum and second moment are read, combined with
the gradient, and written, in one pass over memory. The function under ``update`` computes one
element: from the targets, the operands and run-time numbers, the targets' new values. Numbers are
run-time, so a learning rate that changes every step compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha import dtypes
from antorcha.device import backend
from antorcha.errors import DeviceError, ShapeError
from antorcha.lang import expr as E
from antorcha.lang.kernels import Pointwise
from antorcha.runtime.call.plan import Plan, make, remember, table
from antorcha.runtime.tensor import Tensor


class Update:
    """A fused in-place update; call it with (targets, operands, numbers, flags)."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.name = self.__name__ = fn.__name__
        self.__doc__ = fn.__doc__
        self.plans = table()

    def __call__(
        self,
        targets: Sequence[Tensor],
        operands: Sequence[Tensor] = (),
        numbers: Sequence[float] = (),
        flags: tuple[Any, ...] = (),
    ) -> None:
        """Writes the new values over the targets. ``flags`` are part of the kernel."""
        tensors = (*targets, *operands)
        key = (*[t._layout for t in tensors], flags)
        plan = self.plans.get(key)
        if plan is None:
            plan = remember(self.plans, key, self.plan(len(targets), tensors, len(numbers), flags))
        places: list[Any] = []
        for t in tensors:
            places.append(t._storage)
            places.append(t._offset)
        plan.into(*places[: 2 * len(targets)], *places, *numbers)
        for t in targets:
            t._storage.version += 1

    def plan(self, count: int, tensors: Sequence[Tensor], numbers: int, flags: Any) -> Plan:
        lays = [t._layout for t in tensors]
        first = lays[0]
        for lay in lays[1:]:
            if lay.shape != first.shape:
                raise ShapeError(
                    f"{self.name}: shapes {tuple(first.shape)} and {tuple(lay.shape)} differ: a "
                    "parameter, its gradient and its state must have one shape"
                )
            if lay.device is not first.device:
                raise DeviceError(f"{self.name}: operands on {first.device} and {lay.device}")
        wide = dtypes.float32 if first.dtype.name in ("float16", "bfloat16") else first.dtype
        wants = [E.input_(k, wide) for k in range(len(lays) + numbers)]
        made = self.fn(*wants, *flags)
        exprs = tuple(made if isinstance(made, tuple) else (made,))
        ins = [*lays, *[float] * numbers]
        launch = backend(first.device).compile(Pointwise(exprs), lays[:count], ins)
        return make(self, 0, tuple(lays[:count]), into=launch.into, fresh=launch.fresh)


def update(fn: Callable[..., Any]) -> Update:
    """Decorates an element function as an update."""
    return Update(fn)

