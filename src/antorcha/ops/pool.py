"""Pooling: the maximum or the average of windows over the last one, two or three dims.

The records work on any number of spatial dims; the public names check their arguments as PyTorch
does. One-dimensional pooling is two-dimensional pooling of images of height 1, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from antorcha.core import dtypes, modes
from antorcha.core.device import Device
from antorcha.core.shapes import channels_last_strides
from antorcha.errors import ArgumentError, MissingFeature, ShapeError, ValueRangeError
from antorcha.lang import windows as W
from antorcha.lang.kernels import Pooling
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.params import to_int
from antorcha.ops.kinds.record import Composite, Op, T, composite, expose
from antorcha.ops.kinds.types import Any, Bool, Int, Ints, OptInt, Shape, Str, Tensor
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout

F = "nn.functional."
Sizes: TypeAlias = tuple[int, ...]
MOST_BYTES = 1 << 46  # more than a machine has
MOST_WINDOWS = 1 << 24
"""Along a dim: the windows of each are listed in Python."""


# --------------------------------------------------------------------------------- the kernel ops
def _windows(
    layout: Layout, kind: str, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    ceil: bool, include_pad: bool = True, divisor: int | None = None,
) -> W.Windows:  # fmt: skip
    """The windows of op arguments; adaptive ones have their output size as ``kernel``."""
    nd = len(kernel)
    spatial = layout.shape[layout.ndim - nd :]
    _check_count(layout, kind, kernel, stride, padding, dilation, ceil)
    if kind == "adaptive":
        axes = [W.adaptive(n, o) for n, o in zip(spatial, kernel, strict=True)]
    else:
        axes = [
            W.sliding(n, k, s, p, d, ceil)
            for n, k, s, p, d in zip(spatial, kernel, stride, padding, dilation, strict=True)
        ]
    one = [W.Axis(1, [0], [1], [1])] * (3 - nd)
    return W.Windows([*one, *axes], include_pad, divisor)


def _check_count(
    layout: Layout, kind: str, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    ceil: bool,
) -> None:  # fmt: skip
    """Raises before any window is listed where there would be too many of them."""
    if kind == "adaptive":
        sizes: Sequence[int] = kernel
    else:
        if min((*kernel, *stride, *dilation), default=1) <= 0:
            raise ShapeError(
                f"pool: kernel {kernel}, stride {stride} and dilation {dilation} must be positive"
            )
        spatial = layout.shape[layout.ndim - len(kernel) :]
        each = zip(spatial, kernel, stride, padding, dilation, strict=True)
        sizes = [W.out_size(*one, ceil) for one in each]
    if max(sizes, default=0) > MOST_WINDOWS or math.prod(sizes) * layout.itemsize > MOST_BYTES:
        raise ShapeError(
            f"pool: an input of shape {tuple(layout.shape)} with results of shape {tuple(sizes)} "
            f"asks for more windows than fit: at most {MOST_WINDOWS} along a dim"
        )


def _shape(layout: Layout, windows: W.Windows, nd: int) -> Sizes:
    return (*layout.shape[: layout.ndim - nd], *[a.out for a in windows.axes[3 - nd :]])


def _max_plan(
    input: Layout, kind: str, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    ceil: bool, form: str, indices: bool,
) -> Planned:  # fmt: skip
    windows = _windows(input, kind, kernel, stride, padding, dilation, ceil)
    shape = _shape(input, windows, len(kernel))
    outs = [(shape, input.dtype), (shape, dtypes.int64)][: 1 + indices]
    what = Pooling("max", len(kernel), windows)
    return Planned(what, outs, _shown_as(outs, input.device, form))


def _shown_as(
    outs: Sequence[tuple[Sizes, dtypes.dtype]], device: Device, form: str
) -> list[Layout] | None:
    """The results' layouts in a memory format; None for the usual one."""
    if form == "contiguous":
        return None
    return [L.layout(s, tuple(channels_last_strides(s)), t, device) for s, t in outs]


@kernel(function=False, method=False, out=False, dense=("input",), batching="images")
def max_windows(input: Tensor, kind: Any, kernel: Ints, stride: Ints, padding: Ints,
                dilation: Ints, ceil: Bool, form: Str):  # fmt: skip
    """The maximum of each window, where nobody asks which element it was."""
    return _max_plan(input, kind, kernel, stride, padding, dilation, ceil, form, False)


def _max_rule(
    g: Any, input_layout: Layout, out1: Tensor, kind: str, kernel: Sizes, stride: Sizes,
    padding: Sizes, dilation: Sizes, ceil: bool,
) -> Tensor:  # fmt: skip
    shape = tuple(input_layout.shape)
    return T.max_windows_backward(g[0], out1, shape, kind, kernel, stride, padding, dilation, ceil)


def _max_record(name: str, node: str) -> Op:
    """The record of a maximum with indices; PyTorch names the gradient by the number of dims."""

    @kernel(
        function=False,
        method=False,
        out=False,
        dense=("input",),
        name=name,
        node=node,
        batching="images",
    )
    def record(input: Tensor, kind: Any, kernel: Ints, stride: Ints, padding: Ints,
               dilation: Ints, ceil: Bool, form: Str):  # fmt: skip
        """The maximum of each window, and its place in the plane."""
        return _max_plan(input, kind, kernel, stride, padding, dilation, ceil, form, True)

    record.derivative(_max_rule)
    return record


MAX = {
    ("slide", 2): _max_record("max_windows2d", "MaxPool2DWithIndicesBackward0"),
    ("slide", 3): _max_record("max_windows3d", "MaxPool3DWithIndicesBackward0"),
    ("adaptive", 2): _max_record("adaptive_max_windows2d", "AdaptiveMaxPool2DBackward0"),
    ("adaptive", 3): _max_record("adaptive_max_windows3d", "AdaptiveMaxPool3DBackward0"),
}


def _same_planes(op: str, grad: Layout, shape: Sequence[int], nd: int) -> None:
    """A gradient and what it is the gradient of have the same planes: a kernel trusts it."""
    lead = math.prod(shape[: len(shape) - nd])
    if not 0 < nd <= min(grad.ndim, len(shape)) or math.prod(grad.shape[: grad.ndim - nd]) != lead:
        raise ShapeError(f"{op}: a gradient of shape {tuple(grad.shape)} for {tuple(shape)}")


@kernel(function=False, method=False, out=False, dense=("grad", "indices"))
def max_windows_backward(grad: Tensor, indices: Tensor, shape: Shape, kind: Any, kernel: Ints,
                         stride: Ints, padding: Ints, dilation: Ints, ceil: Bool):  # fmt: skip
    """The gradient of a maximum: each result's goes to its element."""
    layout, nd = L.contiguous(shape, grad.dtype, grad.device), len(kernel)
    windows = _windows(layout, kind, kernel, stride, padding, dilation, ceil)
    _same_planes("max_windows_backward", grad, shape, nd)
    if tuple(indices.shape) != tuple(grad.shape) or indices.dtype is not dtypes.int64:
        raise ShapeError(
            f"max_windows_backward: indices {indices.shape} ({indices.dtype}) of a gradient of "
            f"shape {grad.shape}"
        )
    if windows.results != math.prod(grad.shape[grad.ndim - nd :]):
        raise ShapeError(
            f"max_windows_backward: a gradient of shape {tuple(grad.shape)} for windows of "
            f"{tuple(shape)}"
        )
    return Planned(Pooling("max gradient", nd, windows), [(shape, grad.dtype)])


max_windows_backward.derivative(
    lambda g, indices, kernel: (T.pick_windows(g, indices, len(kernel)), None)
)


@composite(function=False, method=False, out=False)
def pick_windows(input: Tensor, indices: Tensor, nd: Int):
    """The elements of each plane that indices name."""
    layout, shape = input._layout, indices._layout.shape
    lead = tuple(layout.shape[: layout.ndim - nd])
    flat = T.reshape(input, (*lead, -1))
    return T.reshape(T.gather(flat, -1, T.reshape(indices, (*lead, -1))), tuple(shape))


def _avg_record(name: str, node: str) -> Op:
    """The record of an average."""

    @kernel(
        function=False,
        method=False,
        out=False,
        dense=("input",),
        name=name,
        node=node,
        batching="images",
    )
    def record(input: Tensor, kind: Any, kernel: Ints, stride: Ints, padding: Ints, ceil: Bool,
               include_pad: Bool, divisor: OptInt, form: Str):  # fmt: skip
        """The average of each window."""
        windows = _windows(
            input, kind, kernel, stride, padding, (1,) * len(kernel), ceil, include_pad, divisor
        )
        shape = _shape(input, windows, len(kernel))
        outs = [(shape, input.dtype)]
        what = Pooling("average", len(kernel), windows)
        return Planned(what, outs, _shown_as(outs, input.device, form))

    @record.derivative
    def _(g, input_layout, kind, kernel, stride, padding, ceil, include_pad, divisor):
        return T.avg_windows_backward(
            g, tuple(input_layout.shape), kind, kernel, stride, padding, ceil, include_pad, divisor
        )

    return record


AVG = {
    ("slide", 2): _avg_record("avg_windows2d", "AvgPool2DBackward0"),
    ("slide", 3): _avg_record("avg_windows3d", "AvgPool3DBackward0"),
    ("adaptive", 2): _avg_record("adaptive_avg_windows2d", "AdaptiveAvgPool2DBackward0"),
    ("adaptive", 3): _avg_record("adaptive_avg_windows3d", "AdaptiveAvgPool3DBackward0"),
}


@kernel(function=False, method=False, out=False, dense=("grad",))
def avg_windows_backward(grad: Tensor, shape: Shape, kind: Any, kernel: Ints, stride: Ints,
                         padding: Ints, ceil: Bool, include_pad: Bool,
                         divisor: Int = None):  # fmt: skip
    """The gradient of an average: each result's is shared out among its window."""
    layout = L.contiguous(shape, grad.dtype, grad.device)
    windows = _windows(
        layout, kind, kernel, stride, padding, (1,) * len(kernel), ceil, include_pad, divisor
    )
    _same_planes("avg_windows_backward", grad, shape, len(kernel))
    if windows.results != math.prod(grad.shape[grad.ndim - len(kernel) :]):
        raise ShapeError(
            f"avg_windows_backward: a gradient of shape {tuple(grad.shape)} for windows of "
            f"{tuple(shape)}"
        )
    what = Pooling("average gradient", len(kernel), windows)
    return Planned(what, [(shape, grad.dtype)])


@avg_windows_backward.derivative
def _(g, kind, kernel, stride, padding, ceil, include_pad, divisor):
    op = AVG[kind, max(len(kernel), 2)]
    return op(g, kind, kernel, stride, padding, ceil, include_pad, divisor, "contiguous")


# ------------------------------------------------------------------------------------- arguments
def per_dim(op: str, name: str, value: Any, nd: int) -> Sizes:
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(given) not in (1, nd) or not all([hasattr(v, "__index__") for v in given]):
        kind = ArgumentError if len(given) in (1, nd) else ShapeError
        raise kind(f"{op}: {name} must either be a single int, or a tuple of {nd} ints: {value!r}")
    return tuple([int(v) for v in (given if len(given) == nd else given * nd)])


def _check_input(op: str, layout: Layout, nd: int, kinds: str = "f") -> None:
    if layout.ndim not in (nd + 1, nd + 2) or 0 in layout.shape[layout.ndim - nd - 1 :]:
        raise ShapeError(
            f"{op}: Expected {nd + 1}D or {nd + 2}D (batch mode) tensor with optional 0 dim batch "
            f"size for input, but got:{list(layout.shape)}"
        )
    if layout.dtype.kind not in kinds:
        raise MissingFeature.of_dtype(op, layout.dtype, "cast the input to float")


def _arguments(
    op: str, layout: Layout, nd: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool,
) -> tuple[Sizes, Sizes, Sizes, Sizes]:  # fmt: skip
    """kernel, stride, padding and dilation for every dim, checked as PyTorch checks them."""
    kernel = per_dim(op, "kernel_size", kernel_size, nd)
    stride = kernel if stride is None or stride == () else per_dim(op, "stride", stride, nd)
    padding = per_dim(op, "padding", padding, nd)
    dilation = per_dim(op, "dilation", dilation, nd)
    for name, values in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if min(values) <= 0:
            raise ShapeError(f"{op}: {name} should be greater than zero, but got {values}")
    for p, k, d in zip(padding, kernel, dilation, strict=True):
        if p < 0:
            raise ShapeError(f"{op}: pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise ShapeError(
                f"{op}: pad should be at most half of effective kernel size, but got pad={p}, "
                f"kernel_size={k} and dilation={d}"
            )
    sizes = [
        W.out_size(n, k, s, p, d, ceil_mode)
        for n, k, s, p, d in zip(layout.shape[-nd:], kernel, stride, padding, dilation, strict=True)
    ]
    if min(sizes) < 1:
        raise ShapeError(
            "{op}: Given input size: {given}, the calculated output size {sizes} is too small for "
            "kernel_size={kernel}",
            reason="window", op=op, operands=(layout,), given=tuple(layout.shape[-nd - 1 :]),
            sizes=tuple(sizes), kernel=kernel,
        )  # fmt: skip
    return kernel, stride, padding, dilation


def _format(input: Tensor) -> str:
    """Results keep the memory format of channels_last images."""
    layout = input._layout
    last = (
        layout.ndim in (4, 5)
        and not layout.contiguous
        and (tuple(layout.strides) == tuple(channels_last_strides(layout.shape)))
    )
    return "channels_last" if last else "contiguous"


def _flat(fn: Callable[..., Any]) -> Callable[..., Any]:
    """One-dimensional pooling by the two-dimensional one: height 1."""

    def run(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        result = fn(T.unsqueeze(input, -2), *args, **kwargs)
        if isinstance(result, tuple):
            return tuple([T.squeeze(each, -2) for each in result])
        return T.squeeze(result, -2)

    return run


def _max_pool(
    op: str, nd: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool, indices: bool,
) -> Any:  # fmt: skip
    layout = input._layout
    _check_input(op, layout, nd, "fiu")
    kernel, stride, padding, dilation = _arguments(
        op, layout, nd, kernel_size, stride, padding, dilation, ceil_mode
    )
    return _maximum(input, "slide", kernel, stride, padding, dilation, ceil_mode, indices)


def _maximum(
    input: Tensor, kind: str, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    ceil_mode: bool, indices: bool,
) -> Any:  # fmt: skip
    args = (kind, kernel, stride, padding, dilation, ceil_mode, _format(input))
    wanted = modes.wants_gradient(input)
    if len(kernel) == 1:
        wide = [(1, *kernel), (1, *stride), (0, *padding), (1, *dilation)]
        if kind == "slide" and not indices and not wanted:  # as PyTorch's kernel for the values
            input = T.contiguous(input)
        return _flat(_maximum)(input, kind, *wide, ceil_mode, indices)
    if not indices and not wanted:
        return T.max_windows(input, *args)
    values, places = MAX[kind, len(kernel)](input, *args)
    return (values, places) if indices else values


def _avg_pool(
    op: str, nd: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
    include_pad: bool, divisor: int | None = None,
) -> Tensor:  # fmt: skip
    layout = input._layout
    _check_input(op, layout, nd, "f" if layout.dtype is not dtypes.int64 else "i")
    if divisor == 0:
        raise ShapeError(f"{op}: divisor must be not zero")
    kernel, stride, padding, _ = _arguments(
        op, layout, nd, kernel_size, stride, padding, 1, ceil_mode
    )
    return _average(input, "slide", kernel, stride, padding, ceil_mode, include_pad, divisor)


def _average(
    input: Tensor, kind: str, kernel: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool,
    include_pad: bool, divisor: int | None,
) -> Tensor:  # fmt: skip
    if len(kernel) == 1:
        wide = [(1, *kernel), (1, *stride), (0, *padding)]
        return _flat(_average)(input, kind, *wide, ceil_mode, include_pad, divisor)
    op = AVG[kind, len(kernel)]
    form = _format(input)
    return op(input, kind, kernel, stride, padding, ceil_mode, include_pad, divisor, form)


def _adaptive_size(op: str, layout: Layout, nd: int, output_size: Any) -> Sizes:
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * nd
    if len(given) == 1:
        given *= nd
    if len(given) != nd:
        raise ShapeError(f"{op}: output_size must be {nd} numbers, got {output_size!r}")
    spatial = layout.shape[layout.ndim - nd :]
    size = tuple(
        [n if o is None else to_int(op, "output_size", o)
         for o, n in zip(given, spatial, strict=True)]
    )  # fmt: skip
    if max(size) >= 1 << 63:
        raise ValueRangeError(f"{op}: output_size {size}: Overflow when unpacking long long")
    if min(size) < 0:
        raise ShapeError(
            f"{op}: elements of output_size must be greater than or equal to 0, got {size}"
        )
    return size


def _enough_dims(op: str, layout: Layout, nd: int) -> None:
    """Refuses an input without a dim beside the pooled ones. As in PyTorch, pooling along one dim
    leaves that to the check of its input."""
    if nd > 1 and layout.ndim <= nd:
        raise ValueRangeError(
            f"{op}: Input dimension should be at least {nd + 1}, got shape {list(layout.shape)}"
        )


def _adaptive_avg(op: str, nd: int, input: Tensor, output_size: Any) -> Tensor:
    layout = input._layout
    _enough_dims(op, layout, nd)
    _check_input(op, layout, nd)
    size = _adaptive_size(op, layout, nd, output_size)
    if nd > 1 and set(size) == {1}:
        return T.mean(input, tuple(range(-nd, 0)), True)
    if nd == 1 and size == (1,):
        return T.squeeze(T.mean(T.unsqueeze(input, -2), (-1, -2), True), -2)
    zero = (0,) * nd
    return _average(input, "adaptive", size, zero, zero, False, True, None)


def _adaptive_max(op: str, nd: int, input: Tensor, output_size: Any, indices: bool) -> Any:
    layout = input._layout
    _enough_dims(op, layout, nd)
    _check_input(op, layout, nd, "fiu")
    size = _adaptive_size(op, layout, nd, output_size)
    zero = (0,) * nd
    if nd == 1:
        size, zero = (1, *size), (0, 0)
        return _flat(_maximum)(input, "adaptive", size, zero, zero, zero, False, indices)
    return _maximum(input, "adaptive", size, zero, zero, zero, False, indices)


# ---------------------------------------------------------------------------------- public names
def _public_max(nd: int) -> Composite:
    name = f"max_pool{nd}d"

    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: Bool = False,
        return_indices: Bool = False,
    ) -> Any:
        return _max_pool(
            name, nd, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
        )

    pool.__doc__ = f"""The maximum of each window of ``kernel_size`` over the last {nd} dim(s).

    ``stride`` is the kernel size if left out; the ``padding`` counts as minus infinity; with
    ``return_indices`` also which element of the plane each maximum was. NaN wins.

    >>> torch.nn.functional.{name}({_input(nd)}, {_last(2, nd)})
    {_shown("1., 3.", nd)}
    """
    result = composite(method=False, out=False, name=name, aliases=(F + name,))(pool)

    def with_indices(
        input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        """The same, always with the indices."""
        return result(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    expose(f"{F}{name}_with_indices", with_indices)
    return result


def _published(name: str, nd: int, pool: Callable[..., Any]) -> Composite:
    """The record of a public name: of these, PyTorch has the one-dimensional in torch too."""
    if nd == 1:
        return composite(method=False, out=False, name=name, aliases=(F + name,))(pool)
    return composite(method=False, out=False, name=name, namespace="nn.functional")(pool)


def _last(n: int, nd: int) -> Sizes:
    return (*[1] * (nd - 1), n)


def _input(nd: int) -> str:
    return f"torch.arange(4.).reshape({(1, *_last(4, nd))})"


def _shown(values: str, nd: int) -> str:
    return "tensor(" + "[" * (nd + 1) + values + "]" * (nd + 1) + ")"


def _public_avg(nd: int) -> Composite:
    name = f"avg_pool{nd}d"

    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: Bool = False,
        count_include_pad: Bool = True,
        divisor_override: Int = None,
    ) -> Tensor:
        return _avg_pool(
            name,
            nd,
            input,
            kernel_size,
            stride,
            padding,
            ceil_mode,
            count_include_pad,
            divisor_override,
        )

    pool.__doc__ = f"""The average of each window of ``kernel_size`` over the last {nd} dim(s).

    The padding counts as zeros, or not at all without ``count_include_pad``.

    >>> torch.nn.functional.{name}({_input(nd)}, {_last(2, nd)})
    {_shown("0.5000, 2.5000", nd)}
    """
    return _published(name, nd, pool)


def _public_adaptive(nd: int) -> None:
    average, maximum = f"adaptive_avg_pool{nd}d", f"adaptive_max_pool{nd}d"

    def adaptive_avg(input: Tensor, output_size: Any) -> Tensor:
        return _adaptive_avg(average, nd, input, output_size)

    adaptive_avg.__doc__ = f"""The averages of windows cut so that ``output_size`` results come out.

    >>> torch.nn.functional.{average}({_input(nd)}, {_last(2, nd)})
    {_shown("0.5000, 2.5000", nd)}
    """

    def adaptive_max(input: Tensor, output_size: Any, return_indices: Bool = False) -> Any:
        return _adaptive_max(maximum, nd, input, output_size, return_indices)

    adaptive_max.__doc__ = f"""The maxima of windows cut so that ``output_size`` results come out.

    >>> torch.nn.functional.{maximum}({_input(nd)}, {_last(2, nd)})
    {_shown("1., 3.", nd)}
    """
    _published(average, nd, adaptive_avg)
    result = _published(maximum, nd, adaptive_max)
    expose(f"{F}{maximum}_with_indices", lambda input, size, *_: result(input, size, True))


for _nd in (1, 2, 3):
    _public_max(_nd)
    _public_avg(_nd)
    _public_adaptive(_nd)


@T.max_pool2d.samples
def _(make):
    yield make(2, 3, 6, 7), 2
    yield make(2, 3, 6, 7), 3, 2, 1, 1, True
    yield make(3, 6, 7), (2, 3), 1, 0, 2


@T.avg_pool2d.samples
def _(make):
    yield make(2, 3, 6, 7), 2
    yield make(2, 3, 6, 7), 3, 2, 1, True, False
    yield make(3, 6, 7), (2, 3), 1, 0, False, True, 5


@T.max_pool1d.samples
@T.avg_pool1d.samples
def _(make):
    yield make(2, 3, 9), 3, 2, 1


@T.adaptive_avg_pool2d.samples
def _(make):
    yield make(2, 3, 6, 7), (3, 2)
    yield make(2, 3, 6, 7), 1


@T.adaptive_max_pool2d.samples
def _(make):
    yield make(2, 3, 6, 7), (3, 2)


@T.max_pool2d.errors
def _(make):
    yield (make(2, 4, 6, 6), 7), {}, RuntimeError, "too small"
    yield (make(2, 4, 6, 6), 2, None, 2), {}, RuntimeError, "at most half"
    yield (make(6, 6), 2), {}, RuntimeError, "Expected 3D or 4D"
    yield (make(2, 4, 6, 6), (2, 2, 2)), {}, RuntimeError, "kernel_size"
