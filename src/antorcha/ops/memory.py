"""Copies, fills, and the backward of views: ops that move elements without computing on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.device import Device, as_device, backend
from antorcha.core.hooks import hooks
from antorcha.core.lazy import Array, lazy
from antorcha.core.loops import dense_strides
from antorcha.core.shapes import (
    broadcast_shapes,
    channels_last_strides,
    clamped,
    contiguous_strides,
    may_overlap,
    normalize_dim,
    suggests_channels_last,
)
from antorcha.errors import ArgumentError, NumberOverflow, ShapeError, ValueRangeError, warn
from antorcha.lang import expr as E
from antorcha.lang.kernels import Pointwise
from antorcha.ops.kinds import record
from antorcha.ops.kinds.arguments import Arguments
from antorcha.ops.kinds.kernel import Planned, kernel, plan_view
from antorcha.ops.kinds.operands import held
from antorcha.ops.kinds.record import Op, T, composite
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.steps import Steps, in_steps
from antorcha.ops.kinds.types import (
    Any,
    Bool,
    DeviceArg,
    Dtype,
    Int,
    Ints,
    Number,
    OptInt,
    Shape,
    Str,
    Tensor,
)
from antorcha.runtime.call.plan import FRESH, Plan, make
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType
from antorcha.runtime.tensor import bare

runtime_storage = lazy("antorcha.runtime.memory.storage")
storage_changes = lazy("antorcha.runtime.memory.storage_changes")

FORMATS = ("preserve", "contiguous", "channels_last", "channels_last_3d")


def strides_of_format(
    shape: Sequence[int], strides: Sequence[int], memory_format: str
) -> tuple[int, ...]:
    """The strides of a fresh copy in a memory format."""
    if memory_format == "contiguous":
        return tuple(contiguous_strides(shape))
    if memory_format.startswith("channels_last"):
        return tuple(channels_last_strides(shape))
    if memory_format != "preserve":
        raise ArgumentError(
            "memory_format must be a torch.memory_format such as torch.channels_last, not "
            f"{memory_format!r}"
        )
    if len(strides) != len(shape):
        raise ShapeError("unsupported memory format: there are no strides that it could preserve")
    return tuple(dense_strides(shape, strides))


def in_format_of(result: TensorType, layout: Layout) -> TensorType:
    """The tensor, in channels_last if that is how an operand of this layout lies."""
    if not suggests_channels_last(layout.shape, layout.strides):
        return result
    wanted = "channels_last" if layout.ndim == 4 else "channels_last_3d"
    return T.contiguous(result, wanted)  # type: ignore[no-any-return]


@kernel(out=False, batching="copies")
def clone(input: Tensor, *, memory_format: Str = "preserve"):
    """A copy, through which gradients flow.

    ``memory_format``: ``torch.preserve_format`` keeps the order of the strides (default).

    >>> torch.clone(torch.tensor([1, 2]))
    tensor([1, 2])
    """
    strides = strides_of_format(input.shape, input.strides, memory_format)
    out = L.layout(input.shape, strides, input.dtype, input.device)
    return Planned(Pointwise((E.input_(0, input.dtype),)), [out])


clone.derivative(lambda g: g)


@clone.samples
def _(make):
    yield (make(3, 4),)
    yield (make(3, 4).t(),)


@composite(function=False, out=False)
def contiguous(input: Tensor, memory_format: Str = "contiguous"):
    """This tensor if its elements lie in order in memory, else a copy whose elements do.

    >>> torch.zeros(2, 3).t().contiguous().stride()
    (2, 1)
    """
    layout = input._layout
    if memory_format in ("contiguous", "preserve"):
        return input if layout.contiguous else T.clone(input, memory_format="contiguous")
    strides = tuple(channels_last_strides(layout.shape))
    return input if layout.strides == strides else T.clone(input, memory_format=memory_format)


@kernel(function=False, method=False, out=False)
def full_layout(
    size: Shape, fill_value: Number, dtype: Dtype, device: DeviceArg = None, strides: Ints = None
):
    """A fresh tensor filled with one number: what ``full``, ``zeros`` and ``ones`` run, and their
    forms that are like another tensor (row-major unless ``strides`` are given)."""
    device = as_device(device)
    out = L.contiguous(size, dtype, device)
    if strides is not None:
        out = L.layout(out.shape, strides, dtype, device)
    return Planned(Pointwise((E.cast(E.input_(0, number_dtype(fill_value)), dtype),)), [out])


def constant(array: Array, device: Device) -> TensorType:
    """A tensor with a copy of a NumPy array, for tables that an op makes on the host."""
    layout = L.contiguous(tuple(array.shape), dtypes.from_numpy(array.dtype), device)
    return bare(layout, backend(device).from_host(array, layout))


def number_dtype(value: _Any) -> dtypes.dtype:
    """The dtype in which a kernel gets a Python number."""
    kind = value if isinstance(value, type) else type(value)
    return {bool: dtypes.int64, int: dtypes.int64, float: dtypes.float64,
            complex: dtypes.complex128}[kind]  # fmt: skip


@kernel(inplace=True, method=False, batching="leading")
def fill(input: Tensor, value: Number):
    """``value`` everywhere, with the shape and dtype of ``input``; ``fill_`` does it in place.

    >>> torch.empty(2).fill_(3)
    tensor([3., 3.])
    """
    strides = strides_of_format(input.shape, input.strides, "preserve")
    out = L.layout(input.shape, strides, input.dtype, input.device)
    return Planned(Pointwise((E.cast(E.input_(1, number_dtype(value)), input.dtype),)), [out])


def _bind_fill(args: tuple[_Any, ...], kwargs: dict[str, _Any]) -> _Any:
    """Refuses an imaginary part that would be lost: the native path takes no complex numbers."""
    bound = fill.signature.bind(args, kwargs)
    given = args[1] if len(args) > 1 else kwargs.get("value")
    if isinstance(given, int) and not -(1 << 63) <= given < 1 << 63:
        raise NumberOverflow(
            f"fill_: an int of {given.bit_length()} bits is too big to convert; give a float"
        )
    if isinstance(given, complex):
        held("fill_", bound[4][0]._layout.dtype, given)
    return bound


fill.bind = _bind_fill


fill.derivative(lambda g: T.full_layout(g._layout.shape, 0, g._layout.dtype, g._layout.device))


@fill.samples
def _(make):
    yield make(3, 4), 2.5


@kernel(inplace=True, function=False, method=False, samples=of_shapes((3, 4)), batching="leading")
def zero(input: Tensor):
    """Zeros, with the shape and dtype of ``input``; ``zero_`` does it in place.

    >>> torch.ones(2).zero_()
    tensor([0., 0.])
    """
    strides = strides_of_format(input.shape, input.strides, "preserve")
    out = L.layout(input.shape, strides, input.dtype, input.device)
    return Planned(Pointwise((E.const(0, input.dtype),)), [out])


zero.derivative(lambda g: T.full_layout(g._layout.shape, 0, g._layout.dtype, g._layout.device))


def plan_embedding(op: Op, given: Arguments, outs: _Any) -> Plan:
    """Plans zeros with the operand in a part of them. The record's function gives (shape of the
    whole, strides and offset of the part in it)."""
    layout: Layout = given.seen[0]
    shape, strides, delta = op.apply_fn(given.seen)
    where = backend(layout.device)
    out = L.contiguous(tuple(shape), layout.dtype, layout.device) if outs is None else outs[0]
    part = L.layout(layout.shape, tuple(strides), layout.dtype, layout.device)
    zero = where.compile(Pointwise((E.const(0, layout.dtype),)), (out,), ())
    place = where.compile(Pointwise((E.input_(0, layout.dtype),)), (part,), (layout,))

    def write(steps: Steps, outs: list[int], ins: list[int]) -> None:
        steps.into(zero, *outs)
        steps.into(place, *steps.moved(outs, delta), *ins)

    launch = in_steps(where, 1, out.nbytes, 2, write)
    return make(op, FRESH, (out,), fresh=launch.fresh, into=launch.into)


def embed(fn: Callable[..., _Any]) -> Op:
    """Decorates the derivative of a view."""
    op = Op(fn, plan_embedding, function=False, method=False, out=False)
    op.only_moves = True
    return op


@embed
def slice_backward(g: Tensor, size: Shape, dim: Int, start: OptInt, end: OptInt, step: Int):
    """Zeros of shape ``size`` with ``g`` at the places that ``slice`` took."""
    d = normalize_dim(dim, len(size))
    strides = list(contiguous_strides(size))
    first = clamped(start, size[d], 0)
    delta = first * strides[d] if g.numel else 0
    strides[d] *= step
    return size, strides, delta


slice_backward.derivative(lambda g, dim, start, end, step: T.slice(g, dim, start, end, step))


@embed
def select_backward(g: Tensor, size: Shape, dim: Int, index: Int):
    """Zeros of shape ``size`` with ``g`` at ``index`` along ``dim``."""
    d = normalize_dim(dim, len(size))
    strides = list(contiguous_strides(size))
    delta = index % size[d] * strides.pop(d) if g.numel else 0
    return size, strides, delta


select_backward.derivative(lambda g, dim, index: T.select(g, dim, index))


@embed
def embed_view(g: Tensor, size: Shape, op: Str, args: Any):
    """Zeros of shape ``size`` with ``g`` at the places that the view op took."""
    taken = record.REGISTRY.get(op)
    if taken is None or taken.planner is not plan_view:
        raise ValueRangeError(f"embed_view: {op!r} is no view of a part: 'diagonal' is one")
    whole = L.contiguous(size, g.dtype, g.device)
    _, strides, delta = taken.apply_fn([whole, *args])
    return size, strides, delta if g.numel else 0


embed_view.derivative(lambda g, op, args: record.get(op)(g, *args))


@embed
def embed_strided(g: Tensor, size: Int, stride: Ints, delta: Int):
    """``size`` zeros with ``g`` at strides ``stride`` from element ``delta``; no two may meet."""
    return (size,), stride, delta if g.numel else 0


@embed_strided.derivative
def _(g, g_layout, stride, delta):
    return T.strided_view(T.contiguous(g), g_layout.shape, stride, delta)


def strided_gradient(g: TensorType, size: int, stride: tuple[int, ...], delta: int) -> TensorType:
    """``size`` zeros, to which ``g`` is added at the places of a strided view of them."""
    layout = g._layout
    if not may_overlap(layout.shape, stride):
        result: TensorType = T.embed_strided(g, size, stride, delta)
        return result
    places = T.arange(size, device=layout.device)
    places = T.reshape(T.as_strided(places, tuple(layout.shape), stride, delta), (-1,))
    zeros = T.full_layout((size,), 0, layout.dtype, layout.device)
    return T.index_add(zeros, 0, places, T.reshape(g, (-1,)))  # type: ignore[no-any-return]


@composite(function=False, method=False, out=False)
def as_strided_backward(g: Tensor, base: Any, stride: Ints, delta: Int):
    """The gradient of a tensor of layout ``base``, of which ``g``'s was a view: strides ``stride``
    from element ``delta`` (which may lie before or behind the tensor, in the same storage)."""
    layout = g._layout
    if not isinstance(base, Layout):
        raise ArgumentError(
            f"as_strided_backward: base must be a layout, not {type(base).__name__}"
        )
    if len(stride) != layout.ndim:
        raise ShapeError(
            f"as_strided_backward: {len(stride)} strides for a gradient of {layout.ndim} dimensions"
        )
    low = min(0, delta)
    reach = (
        L.layout(layout.shape, stride, layout.dtype, layout.device).high + delta
        if layout.numel
        else 0
    )
    size = max(base.high, reach, 0) - low
    flat = strided_gradient(g, size, stride, delta - low)
    if base.contiguous and size == base.numel:
        return T.view(flat, tuple(base.shape))
    if may_overlap(base.shape, base.strides):  # an expanded operand: each element has its share
        ones = T.full_layout(tuple(base.shape), 1, layout.dtype, layout.device)
        count = strided_gradient(ones, size, base.strides, -low)
        flat = T.div(flat, T.clamp(count, min=1))
    return T.as_strided(flat, tuple(base.shape), base.strides, -low)


def plan_move(op: Op, given: Arguments, outs: _Any) -> Plan:
    """Plans a copy to another device: by a device that copies by itself, else through the host."""
    layout: Layout = given.seen[0]
    device = given.statics["device"]
    if device is None:
        raise ArgumentError("to_device: device must be a device such as 'cpu', not None")
    source: _Any = backend(layout.device)
    target: _Any = backend(device)
    strides = strides_of_format(layout.shape, layout.strides, "preserve")
    out = L.layout(layout.shape, strides, layout.dtype, device)
    wait = not given.statics["non_blocking"]
    receive = getattr(target, "receive", None)
    deliver = getattr(source, "deliver", None) if not wait and target.host_memory else None
    moving = getattr(source if target.host_memory else target, "moving", None)
    if moving is not None and source.host_memory != target.host_memory:
        launch = moving(layout, out, wait)
        if launch is not None:
            return make(op, FRESH, (out,), fresh=launch.fresh)

    def fresh(storage: _Any, offset: int) -> _Any:
        if out.device.type == "meta":
            return target.allocate(out.nbytes)
        if receive is not None:
            return receive(source, layout, storage, offset, out, wait)
        if deliver is not None:
            return deliver(layout, storage, offset, out)
        return target.from_host(source.to_host(layout, storage, offset), out)

    return make(op, FRESH, (out,), fresh=fresh)


def _to_device(input: Tensor, device: DeviceArg, non_blocking: Bool = False) -> None:
    """A copy of ``input`` on another device: what ``Tensor.to(device)`` runs. It need not be there
    when the call returns, where ``non_blocking`` allows it."""


to_device = Op(
    _to_device,
    plan_move,
    name="to_device",
    function=False,
    method=False,
    out=False,
    node="to_copy",
    batching="leading",
)


to_device.derivative(lambda g, input_layout: T.to_device(g, input_layout.device))


@composite(out=False, page=False)
def sum_to_size(input: Tensor, size: Shape):
    """Sums over the dims that broadcasting ``size`` to the input's shape would repeat.

    >>> torch.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    shape = input._layout.shape
    if tuple(shape) == tuple(size):
        # as PyTorch: to no dims it always sums, which makes int64 of small integers
        return T.sum(input) if not size and input._layout.dtype.kind in "biu" else input
    lead = len(shape) - len(size)
    if lead < 0 or tuple(broadcast_shapes(size, shape)) != tuple(shape):
        raise ShapeError(
            f"sum_to_size: size {tuple(size)} is not expandable to size {tuple(shape)}."
        )
    dims = tuple(range(lead)) + tuple(
        [k + lead for k, n in enumerate(size) if n == 1 and shape[k + lead] != 1]
    )
    total = T.sum(input, dims, True) if dims else input
    return T.view(total, size) if lead else total


@sum_to_size.samples
def _(make):
    yield make(3, 4), (1, 4)
    yield make(2, 3, 4), (4,)


def resize_out(name: str, out: TensorType, layout: Layout) -> None:
    """Gives an ``out=`` tensor the result's shape, as PyTorch does (with its warning)."""
    if out._layout.numel:
        warn(
            f"{name}: An output with one or more elements was resized since it had shape "
            f"{list(out._layout.shape)}, which does not match the required output shape "
            f"{list(layout.shape)}. Resize it to zero elements first: out.resize_(0).",
        )
    resize(out, tuple(layout.shape))


def grow_elsewhere(storage: _Any, nbytes: int, device: Device) -> None:
    """Gives a storage in a device's memory more of it; the contents stay."""
    larger = backend(device).allocate(nbytes)
    flat = L.contiguous((storage.nbytes,), dtypes.uint8, device)
    T.copy_(bare(flat, larger), bare(flat, storage))
    storage_changes.exchange(storage, larger)


def resize(tensor: TensorType, shape: tuple[int, ...]) -> TensorType:
    """``Tensor.resize_``: another shape over the same storage, which grows if it must."""
    result = L.contiguous(shape, tensor._layout.dtype, tensor._layout.device)
    need = (tensor._offset + result.high) * result.itemsize
    storage = tensor._storage
    if need > storage.nbytes:
        if storage.flags & runtime_storage.ELSEWHERE:
            grow_elsewhere(storage, need, tensor._layout.device)
        else:
            storage_changes.resize(storage, need)
    tensor._layout = result
    return tensor


hooks.resize_out = resize_out
