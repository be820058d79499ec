"""Operands together: the device, dtype and shape they agree on, and the plan of an expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from antorcha.core import dtypes
from antorcha.core.device import CPU, Device, backend
from antorcha.core.loops import result_strides
from antorcha.core.shapes import broadcast_shapes, broadcast_strides
from antorcha.errors import DeviceError, DtypeError, NumberOverflow, ShapeError
from antorcha.lang.kernels import Pointwise
from antorcha.runtime.call.plan import FRESH, MANY, Plan, make
from antorcha.runtime.memory import layout as L

if TYPE_CHECKING:
    from antorcha.core.dtypes import dtype as DType
    from antorcha.lang.expr import Expr
    from antorcha.lang.kernels import Launch
    from antorcha.runtime.memory.layout import Layout

    Guard = Callable[[Launch, Sequence[Any], Layout, DType], Launch]
    """Of a launch, its inputs, result and dtype: the launch that looks at the inputs first."""


def common_device(op: str, layouts: Sequence[Layout | None]) -> Any:
    """The one device of the operands; a 0-dim tensor on the CPU goes with any."""
    found: Layout | None = None
    for layout in layouts:
        if layout is None:
            continue
        if found is None or (found.ndim == 0 and found.device is CPU and layout.device is not CPU):
            if found is not None and found.ndim:
                _two_devices(op, found, layout)
            found = layout
        elif layout.device is not found.device and not (layout.ndim == 0 and layout.device is CPU):
            _two_devices(op, found, layout)
    return CPU if found is None else found.device


def _two_devices(op: str, a: Layout, b: Layout) -> None:
    raise DeviceError(
        "{op}: Expected all tensors to be on the same device, but found at least two devices, "
        "{0.device} and {1.device}! The operands are {0.shape} on {0.device} and {1.shape} on "
        "{1.device}: move one with {fix}.",
        reason="device", op=op, operands=(a, b), fix=f".to({str(a.device)!r})",
    )  # fmt: skip


def common_dtype(values: Sequence[Any]) -> DType:
    """PyTorch's result_type of layouts and Python numbers' types."""
    sized: list[DType] = []
    zero_dim: list[DType] = []
    numbers: list[Any] = []
    for value in values:
        if isinstance(value, L.Layout):
            (sized if value.ndim else zero_dim).append(value.dtype)
        else:
            numbers.append(value)
    return dtypes.result_type(sized, zero_dim, numbers)


def held(op: str, dtype: DType, value: Any) -> Any:
    """A Python number as the dtype holds it: wrapped around in an unsigned one, a complex number's
    real part in a real one. Refuses one that it does not hold."""
    if not isinstance(value, (int, float, complex)):
        return value
    wide = isinstance(value, int) and not -(1 << 63) <= value < 1 << 64
    if wide or not dtypes.holds(dtype, value):
        shown = f"an int of {value.bit_length()} bits" if wide else value  # type: ignore[union-attr]
        raise NumberOverflow(
            f"{op}: value cannot be converted to type {dtype} without overflow: {shown}"
        )
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind != "c" and isinstance(value, complex):
        value = value.real
    if dtype.kind in "iu":
        value = int(value)
        return value + (1 << 8 * dtype.itemsize) if dtype.kind == "u" and value < 0 else value
    return float(value) if isinstance(value, int) else value


def as_word(number: Any) -> Any:
    """A number that a dtype holds, as a kernel gets it: those of uint64 from 2 ** 63 on as the
    int64 of the same bits."""
    return number - (1 << 64) if type(number) is int and number >= 1 << 63 else number


def result_layout(
    shape: tuple[int, ...], dtype: DType, device: Device, ins: Sequence[Any]
) -> Layout:
    """How a fresh result lies: as its operands do where they agree (PyTorch's TensorIterator)."""
    strides = result_strides(
        shape, [(i.shape, i.strides) if isinstance(i, L.Layout) else ((), ()) for i in ins]
    )
    return L.layout(shape, strides, dtype, device)


def expanded(layout: Layout, shape: tuple[int, ...]) -> Layout:
    """The layout broadcast to a shape (stride 0 where it repeats)."""
    if layout.shape == shape:
        return layout
    return L.layout(shape, tuple(broadcast_strides(layout.shape, layout.strides, shape)),
                    layout.dtype, layout.device)  # fmt: skip


def check_outs(op: str, result: Sequence[Layout], outs: Sequence[Layout]) -> None:
    """Refuses outputs that have not the shapes of the results."""
    for want, have in zip(result, outs, strict=True):
        if tuple(want.shape) != tuple(have.shape):
            raise ShapeError(
                f"{op}: output with shape {list(have.shape)} doesn't match the result's shape "
                f"{list(want.shape)}"
            )


def plan_exprs(
    op: Any,
    exprs: tuple[Expr, ...],
    ins: Sequence[Any],
    outs: tuple[Layout, ...] | None,
    guard: Guard | None = None,
    row_major: bool = False,
    **fields: Any,
) -> Plan:
    """A plan that computes expressions over layouts and number types, broadcast together."""
    tensors = [layout for layout in ins if isinstance(layout, L.Layout)]
    shape = tuple(broadcast_shapes(*[layout.shape for layout in tensors], op=op.name))
    device = common_device(op.name, tensors)
    if outs is None:
        like = () if row_major else ins
        result = tuple([result_layout(shape, e.dtype, device, like) for e in exprs])
    else:
        result = outs
        for expr, out in zip(exprs, outs, strict=True):
            _check_out(op.name, shape, expr.dtype, out)
            if out.device is not device:
                _two_devices(op.name, out, next(i for i in tensors if i.device is device))
    wide = [expanded(i, result[0].shape) if isinstance(i, L.Layout) else i for i in ins]
    launch = backend(device).compile(Pointwise(exprs), result, wide)
    if guard is not None:
        launch = guard(launch, ins, result[0], exprs[0].dtype)
    kind = FRESH if len(result) == 1 else MANY
    return make(op, kind, result, fresh=launch.fresh, into=launch.into, **fields)


def _check_out(op: str, shape: tuple[int, ...], dtype: DType, out: Layout) -> None:
    """Refuses an output that a result of this shape and dtype cannot be written to."""
    if not dtypes.can_cast(dtype, out.dtype):
        raise DtypeError(
            "{op}: result type {dtype} can't be cast to the desired output type {0.dtype}",
            reason="keeps dtype", op=op, operands=(out,), dtype=dtype,
        )  # fmt: skip
    if tuple(out.shape) != shape:
        raise ShapeError(
            f"{op}: output with shape {list(out.shape)} doesn't match the broadcast shape "
            f"{list(shape)}"
        )
