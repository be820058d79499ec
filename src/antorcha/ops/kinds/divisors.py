"""Integers divided by 0: refused before anything is written, with PyTorch's ``ZeroDivisionError``.

A Python number is looked at as it is bound (``native.keys`` tell 0 from other integers). Of a
tensor, a fold says whether it has zeros, and a check stops there, both before the division, in one
launch (``steps``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.core.device import backend
from antorcha.core.structs import struct
from antorcha.errors import ZeroDivisor
from antorcha.lang import expr as E
from antorcha.lang.kernels import Check, Launch, Reduce
from antorcha.ops.kinds.params import no_quick_bind
from antorcha.ops.kinds.pointwise import PointwiseOp
from antorcha.ops.kinds.steps import Steps, in_steps
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor


def refuse_zero_divisor(op: PointwiseOp) -> None:
    """Integers divided by zeros raise, in this op of a dividend, a divisor and a rounding mode."""
    bind = op.signature.bind

    def checked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bound = bind(args, kwargs)
        a, b = bound[4][:2]
        if type(b) in (int, bool) and not b and isinstance(a, Tensor) and a._layout.numel:
            mode = bound[4][2] if len(bound[4]) > 2 else "floor"
            if a._layout.dtype.kind in "ui" and mode is not None:
                raise _refusal(op.name, f"{a._layout.dtype} divided by 0")
        return bound

    def guard(launch: Launch, ins: Sequence[Any], out: L.Layout, computed: dtypes.dtype) -> Launch:
        divisor = ins[1]
        if computed.kind not in "ui" or not isinstance(divisor, L.Layout) or out.numel == 0:
            return launch
        return _checked(op.name, launch, ins, out)

    op.bind, op.quick_bind = checked, no_quick_bind
    op.guard = guard


def _refusal(op: str, what: str) -> ZeroDivisor:
    return ZeroDivisor(f"{op}: ZeroDivisionError: {what}")


def _checked(op: str, launch: Launch, ins: Sequence[Any], out: L.Layout) -> Launch:
    """The launch, after a look at its second input."""
    device, divisor = backend(out.device), ins[1]
    if not divisor.ndim:
        divisor = L.layout((1,), (1,), divisor.dtype, divisor.device)
    flag = L.layout(divisor.shape, (0,) * divisor.ndim, dtypes.uint8, out.device)
    byte = L.contiguous((1,), dtypes.uint8, out.device)
    a, b = E.input_(0, dtypes.uint8), E.input_(1, dtypes.uint8)
    nought = E.cast(E.eq(E.input_(0, divisor.dtype), 0), dtypes.uint8)
    look = device.compile(
        Reduce(tuple(range(divisor.ndim)), (0,), (nought,), (a | b,), (a,)), [flag], [divisor]
    )
    stop = device.compile(Check(0, 1, HasZeros(op, str(divisor.dtype))), [], [byte])
    places = [2 if isinstance(i, L.Layout) else 1 for i in ins]  # among the arguments

    def write(steps: Steps, outs: list[int], given: list[int]) -> None:
        found = steps.room(byte.nbytes)
        steps.into(look, *found, *given[places[0] : places[0] + 2])
        steps.into(stop, *found)
        steps.into(launch, *outs, *given)

    return in_steps(device, 1, out.nbytes, sum(places), write)


@struct
class HasZeros:
    """The exception for a divisor that has zeros."""

    op: str
    dtype: str

    def __call__(self, found: int) -> BaseException:
        return _refusal(self.op, f"the divisor, of {self.dtype}, has zeros; replace them first")
