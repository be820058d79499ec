"""Convolutions: conv1d to conv3d and their transposes. How they are computed is the device's.

Three ops, each linear in its two operands, are closed under derivation: the results
(``conv_forward``), the images (``conv_data``, which is also what a transposed convolution gives)
and the weights (``conv_weight``) of a convolution. The public ones check the arguments and call
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as _Any

from antorcha.core.shapes import contiguous_strides, strides_in_order
from antorcha.errors import ArgumentError, DtypeError, ShapeError
from antorcha.lang.kernels import Conv
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.record import Composite, T, composite
from antorcha.ops.kinds.types import Any, Bool, Int, Ints, OptTensor, Shape, Tensor
from antorcha.ops.products import conjugate
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout

F = "nn.functional."


# -------------------------------------------------------------------------------- the three ops
def _result(shape: _Any, like: _Any, *others: _Any) -> _Any:
    """The result's layout: channels_last when one of the operands is. (Of one-dimensional images
    only the others than the first count: PyTorch makes that contiguous.)"""
    strides = contiguous_strides(shape)
    for each in (like, *others) if like.ndim > 3 else others:
        if each.ndim in (3, 4, 5) and each.numel and not each.contiguous and (
            tuple(each.strides) == _channels_last(each.shape)
        ):  # fmt: skip
            strides = _channels_last(shape)
    return L.layout(tuple(shape), tuple(strides), like.dtype, like.device)


def _channels_last(shape: _Any) -> tuple[int, ...]:
    """The strides of images, of any number of dims, whose channels lie together."""
    return tuple(strides_in_order(shape, (1, *range(len(shape) - 1, 1, -1), 0)))


def _described(
    kind: str, x: _Any, w: _Any, y: _Any, stride: _Any, padding: _Any, dilation: _Any, groups: int
) -> Conv:
    """The description, once the shapes agree: a kernel trusts it."""
    nd = len(stride)
    agree = (
        len(x) == len(w) == len(y) == nd + 2 and len(padding) == len(dilation) == nd
        and groups > 0 and x[0] == y[0] and x[1] == w[1] * groups and w[0] == y[1]
        and w[0] % groups == 0 and min((*stride, *dilation), default=1) > 0
        and min((*padding, *x, *w, *y), default=0) >= 0
    )  # fmt: skip
    if not agree:
        raise ShapeError(
            f"convolution: images {x}, weights {w}, results {y}, stride {stride}, padding "
            f"{padding}, dilation {dilation} and groups {groups} do not fit together"
        )
    return Conv(kind, x, w, y, tuple(stride), tuple(padding), tuple(dilation), groups)


@kernel(function=False, method=False, out=False, node="convolution")
def conv_forward(
    input: Tensor,
    weight: Tensor,
    bias: OptTensor,
    size: Shape,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: Int,
):
    """The results, of spatial shape ``size``, of a convolution; its padding is the low side's."""
    out = (input.shape[0], weight.shape[0], *size)
    what = _described(
        "forward", tuple(input.shape), tuple(weight.shape), out, stride, padding, dilation, groups
    )
    return Planned(what, [_result(out, input, weight)])


@conv_forward.derivative
def _(g, input, weight, bias_layout, stride, padding, dilation, groups, needs):
    x, w = input._layout.shape, weight._layout.shape
    rest = (stride, padding, dilation, groups)
    return (
        T.conv_data(g, conjugate(weight), None, tuple(x[2:]), *rest) if needs[0] else None,
        T.conv_weight(conjugate(input), g, tuple(w[2:]), *rest) if needs[1] else None,
        _bias_gradient(g, bias_layout) if needs[2] else None,
    )


def _bias_gradient(g: Tensor, bias: Layout | None) -> OptTensor:
    dims = (0, *range(2, g._layout.ndim))
    return None if bias is None else T.sum(g, dims)


@kernel(function=False, method=False, out=False, node="convolution")
def conv_data(
    grad: Tensor,
    weight: Tensor,
    bias: OptTensor,
    size: Shape,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: Int,
):
    """The images, of spatial shape ``size``, whose convolution has the gradient ``grad``."""
    x = (grad.shape[0], weight.shape[1] * groups, *size)
    what = _described(
        "data", x, tuple(weight.shape), tuple(grad.shape), stride, padding, dilation, groups
    )
    return Planned(what, [_result(x, grad, weight)])


@conv_data.derivative
def _(g, grad, weight, bias_layout, stride, padding, dilation, groups, needs):
    y, w = grad._layout.shape, weight._layout.shape
    rest = (stride, padding, dilation, groups)
    return (
        T.conv_forward(g, conjugate(weight), None, tuple(y[2:]), *rest) if needs[0] else None,
        T.conv_weight(g, conjugate(grad), tuple(w[2:]), *rest) if needs[1] else None,
        _bias_gradient(g, bias_layout) if needs[2] else None,
    )


def _of_examples(
    batch: _Any, run: _Any, input: _Any, weight: _Any, bias: _Any, size: _Any, stride: _Any,
    padding: _Any, dilation: _Any, groups: int,
) -> _Any:  # fmt: skip
    """The batching rule of the two above: more images, or, where each example has weights of its
    own, more groups of channels."""
    n, rest = batch.size, (size, stride, padding, dilation)
    x = batch.whole(input)
    if not batch.has(weight) and not batch.has(bias):
        found = run(T.flatten(x, 0, 1), weight, bias, *rest, groups)
        return T.unflatten(found, 0, tuple(x._layout.shape[:2]))
    b = None if bias is None else T.flatten(batch.whole(bias))
    found = run(
        T.flatten(T.movedim(x, 0, 1), 1, 2), T.flatten(batch.whole(weight), 0, 1), b, *rest,
        n * groups,
    )  # fmt: skip
    return T.movedim(T.unflatten(found, 1, (n, found._layout.shape[1] // n)), 1, 0)


conv_forward.batches(_of_examples)
conv_data.batches(_of_examples)


@kernel(function=False, method=False, out=False, node="convolution")
def conv_weight(
    input: Tensor,
    grad: Tensor,
    size: Shape,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: Int,
):
    """The gradient of a convolution's weights, whose taps have shape ``size``."""
    w = (grad.shape[1], input.shape[1] // max(groups, 1), *size)
    what = _described(
        "weight", tuple(input.shape), w, tuple(grad.shape), stride, padding, dilation, groups
    )
    return Planned(what, [(w, input.dtype)])


@conv_weight.derivative
def _(g, input, grad, stride, padding, dilation, groups, needs):
    x, y = input._layout.shape, grad._layout.shape
    rest = (stride, padding, dilation, groups)
    return (
        T.conv_data(conjugate(grad), g, None, tuple(x[2:]), *rest) if needs[0] else None,
        T.conv_forward(conjugate(input), g, None, tuple(y[2:]), *rest) if needs[1] else None,
    )


# ------------------------------------------------------------------------------------- arguments
def _per_dim(op: str, name: str, value: _Any, nd: int) -> tuple[int, ...]:
    """A number for every spatial dim."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not all([isinstance(v, int) or hasattr(v, "__index__") for v in given]):
        raise ArgumentError(f"{op}(): {name} must be an int or a tuple of ints, not {value!r}")
    if len(given) not in (1, nd):
        raise ShapeError(
            f"{op}: expected {name} to be a single integer value or a list of {nd} values to match "
            f"the convolution dimensions, but got {name}={list(given)}"
        )
    return given if len(given) == nd else given * nd


def _check(
    op: str, x: _Any, w: _Any, bias: _Any, nd: int, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], groups: int, transposed: bool,
) -> None:  # fmt: skip
    """Every reason for which PyTorch refuses, with the shapes."""
    for name, values, least in (
        ("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1),
        ("groups", (groups,), 1),
    ):  # fmt: skip
        if min(values) < least:
            kind = "negative" if least == 0 else "non-positive"
            raise ShapeError(f"{op}: {kind} {name} is not supported, got {name}={values}")
    xs, ws = list(x.shape), list(w.shape)
    if w.ndim != nd + 2:
        raise ShapeError(
            f"{op}: expected a weight of {nd + 2} dims for {nd}-dimensional convolution, but got "
            f"weight of size {ws}"
        )
    wanted = ws[0] if transposed else ws[1] * groups
    if ws[0] % groups or ws[0] < groups:
        raise ShapeError(
            f"{op}: Given groups={groups}, expected weight to be divisible by {groups} at "
            f"dimension 0, but got weight of size {ws} instead"
        )
    if xs[1] != wanted:
        given = f"transposed={int(transposed)}" if transposed else f"groups={groups}"
        raise ShapeError(
            "{op}: Given {given}, weight of size {weight}, expected input{input} to have {wanted} "
            "channels, but got {got} channels instead",
            reason="channels", op=op, operands=(x, w), given=given, weight=ws, input=xs,
            wanted=wanted, got=xs[1],
        )  # fmt: skip
    outs = ws[1] * groups if transposed else ws[0]
    if bias is not None and tuple(bias.shape) != (outs,):
        raise ShapeError(
            f"{op}: Given weight of size {ws}, expected bias to be 1-dimensional with {outs} "
            f"elements, but got bias of size {list(bias.shape)} instead"
        )
    for name, other in (("weight", w), ("bias", bias)):
        if other is not None and other.dtype is not x.dtype:
            raise DtypeError(
                f"{op}: Input type ({x.dtype}) and {name} type ({other.dtype}) should be the same; "
                f"cast one of them, e.g. input.to({other.dtype})"
            )


def _batched(op: str, input: _Any, nd: int) -> tuple[_Any, bool]:
    ndim = input._layout.ndim
    if ndim not in (nd + 1, nd + 2):
        raise ShapeError(
            "{op}: Expected {one}D (unbatched) or {many}D (batched) input to {op}, but got input "
            "of size: {size}",
            reason="conv dims", op=op, operands=(input._layout,), one=nd + 1, many=nd + 2,
            size=list(input._layout.shape),
        )  # fmt: skip
    return (input, True) if ndim == nd + 2 else (T.unsqueeze(input, 0), False)


def _same(op: str, padding: _Any, w: _Any, nd: int, stride: _Any, dilation: _Any) -> _Any:
    """(low padding, both sides' padding) of the words "same" and "valid"."""
    if padding == "valid":
        return (0,) * nd, (0,) * nd
    if padding != "same":
        raise ShapeError(f"{op}: Invalid padding string: {padding!r}; it is 'same' or 'valid'")
    if any([s != 1 for s in stride]):
        raise ShapeError(f"{op}: padding='same' is not supported for strided convolutions")
    total = tuple([d * (t - 1) for d, t in zip(dilation, w.shape[2:], strict=True)])
    return tuple([t // 2 for t in total]), total


def convolve(op: str, nd: int, input: _Any, weight: _Any, bias: _Any, stride: _Any, padding: _Any,
             dilation: _Any, groups: int) -> _Any:  # fmt: skip
    """conv1d, conv2d and conv3d."""
    w = weight._layout
    stride = _per_dim(op, "stride", stride, nd)
    dilation = _per_dim(op, "dilation", dilation, nd)
    x, batched = _batched(op, input, nd)
    if isinstance(padding, str):
        if w.ndim != nd + 2:
            padding, total = (0,) * nd, (0,) * nd
        else:
            padding, total = _same(op, padding, w, nd, stride, dilation)
    else:
        padding = _per_dim(op, "padding", padding, nd)
        total = tuple([2 * p for p in padding])
    layout = x._layout
    b = None if bias is None else bias._layout
    _check(op, layout, w, b, nd, stride, padding, dilation, groups, False)
    reach = [d * (t - 1) + 1 for d, t in zip(dilation, w.shape[2:], strict=True)]
    room = [n + p for n, p in zip(layout.shape[2:], total, strict=True)]
    if any([r > n for r, n in zip(reach, room, strict=True)]):
        raise ShapeError(
            "{op}: Calculated padded input size per channel: ({room}). Kernel size: ({kernel}). "
            "Kernel size can't be greater than actual input size",
            reason="window", op=op, operands=(layout, w), room=_by(room), kernel=_by(reach),
        )  # fmt: skip
    size = tuple([(n - r) // s + 1 for n, r, s in zip(room, reach, stride, strict=True)])
    y = T.conv_forward(x, weight, bias, size, stride, padding, dilation, groups)
    return y if batched else T.squeeze(y, 0)


def _by(sizes: Sequence[int]) -> str:
    return " x ".join([str(s) for s in sizes])


def convolve_transposed(
    op: str, nd: int, input: _Any, weight: _Any, bias: _Any, stride: _Any, padding: _Any,
    output_padding: _Any, groups: int, dilation: _Any,
) -> _Any:  # fmt: skip
    """conv_transpose1d, 2d and 3d."""
    w = weight._layout
    stride = _per_dim(op, "stride", stride, nd)
    dilation = _per_dim(op, "dilation", dilation, nd)
    padding = _per_dim(op, "padding", padding, nd)
    more = _per_dim(op, "output_padding", output_padding, nd)
    x, batched = _batched(op, input, nd)
    layout = x._layout
    b = None if bias is None else bias._layout
    _check(op, layout, w, b, nd, stride, padding, dilation, groups, True)
    if min(more) < 0:
        raise ShapeError(f"{op}: negative output_padding is not supported, got {more}")
    if any([m >= max(s, d) for m, s, d in zip(more, stride, dilation, strict=True)]):
        raise ShapeError(
            f"{op}: output padding must be smaller than either stride or dilation, but got "
            f"output_padding={more}, stride={stride}, dilation={dilation}"
        )
    size = tuple(
        [(n - 1) * s - 2 * p + d * (t - 1) + m + 1
         for n, s, p, d, t, m in zip(layout.shape[2:], stride, padding, dilation, w.shape[2:], more,
                                     strict=True)]
    )  # fmt: skip
    if min(size) <= 0:
        raise ShapeError(
            "{op}: Given input size per channel: ({given}). Calculated output size per channel: "
            "({size}). Output size is too small",
            reason="window", op=op, operands=(layout, w), given=_by(layout.shape[2:]),
            size=_by(size),
        )  # fmt: skip
    y = T.conv_data(x, weight, bias, size, stride, padding, dilation, groups)
    return y if batched else T.squeeze(y, 0)


# -------------------------------------------------------------------------------------- public
@composite(method=False, page=False)
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: OptTensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: Bool,
    output_padding: Any,
    groups: Int,
):
    """A convolution of any number of spatial dims, or a transposed one.

    >>> torch.convolution(torch.ones(1, 1, 3), torch.ones(1, 1, 2), None, 1, 0, 1, False, 0, 1)
    tensor([[[2., 2.]]])
    """
    nd = input._layout.ndim - 2
    if transposed:
        return convolve_transposed(
            "convolution", nd, input, weight, bias, stride, padding, output_padding, groups,
            dilation,
        )  # fmt: skip
    return convolve("convolution", nd, input, weight, bias, stride, padding, dilation, groups)


def _convolution(nd: int, doc: str) -> Composite:
    """The op ``conv1d``, ``conv2d`` or ``conv3d``."""
    name = f"conv{nd}d"

    def fn(
        input: Tensor,
        weight: Tensor,
        bias: OptTensor = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: Int = 1,
    ) -> Tensor:
        return convolve(name, nd, input, weight, bias, stride, padding, dilation, groups)

    fn.__doc__ = doc
    return composite(method=False, name=name, aliases=(F + name,))(fn)


def _transposed(nd: int, doc: str) -> Composite:
    """The op ``conv_transpose1d``, ``conv_transpose2d`` or ``conv_transpose3d``."""
    name = f"conv_transpose{nd}d"

    def fn(
        input: Tensor,
        weight: Tensor,
        bias: OptTensor = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: Int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        return convolve_transposed(
            name, nd, input, weight, bias, stride, padding, output_padding, groups, dilation
        )

    fn.__doc__ = doc
    return composite(method=False, name=name, aliases=(F + name,))(fn)


conv1d = _convolution(
    1,
    """Slides ``weight`` (out channels, in channels / groups, taps) along ``input`` (N, C, L).

    ``padding``: zeros at both ends, or "same" or "valid".

    >>> torch.nn.functional.conv1d(torch.tensor([[[1., 2., 4.]]]), torch.tensor([[[1., -1.]]]))
    tensor([[[-1., -2.]]])
    """,
)
conv2d = _convolution(
    2,
    """Slides ``weight`` (K, C / groups, R, S) over images ``input`` (N, C, H, W); gives (N, K, ..).

    ``input`` may be one image (C, H, W). ``padding``: zeros at the borders, or "same" or "valid".

    >>> torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2))
    tensor([[[[4., 4.],
              [4., 4.]]]])
    """,
)
conv3d = _convolution(
    3,
    """Slides ``weight`` (K, C / groups, T, R, S) through volumes ``input`` (N, C, D, H, W).

    >>> torch.nn.functional.conv3d(torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 2, 2, 2))
    tensor([[[[[8.]]]]])
    """,
)
conv_transpose1d = _transposed(
    1,
    """The transpose of conv1d: each element of ``input`` adds ``weight`` to the result.

    ``weight`` has shape (in channels, out channels / groups, taps).

    >>> x, w = torch.tensor([[[1., 2.]]]), torch.tensor([[[1., 10.]]])
    >>> torch.nn.functional.conv_transpose1d(x, w)
    tensor([[[ 1., 12., 20.]]])
    """,
)
conv_transpose2d = _transposed(
    2,
    """The transpose of conv2d: what its gradient with respect to the images computes.

    >>> torch.nn.functional.conv_transpose2d(torch.ones(1, 1, 1, 1), torch.ones(1, 1, 2, 2))
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """,
)
conv_transpose3d = _transposed(
    3,
    """The transpose of conv3d.

    >>> torch.nn.functional.conv_transpose3d(torch.ones(1, 1, 1, 1, 1), torch.ones(1, 1, 1, 1, 2))
    tensor([[[[[1., 1.]]]]])
    """,
)


@conv1d.samples
def _(make):
    yield make(2, 4, 9), make(6, 2, 3), make(6), 2, 1, 1, 2
    yield make(4, 9), make(3, 4, 3), None, 1, "same", 2


@conv2d.samples
def _(make):
    yield make(2, 3, 6, 5), make(4, 3, 3, 2), make(4)
    yield make(2, 4, 6, 7), make(6, 2, 3, 3), make(6), (2, 1), (1, 2), (1, 2), 2
    yield make(3, 6, 5), make(4, 3, 2, 2), None, 1, "same"
    yield (make(2, 4, 6, 6), make(6, 2, 3, 3)), {}, RuntimeError, "to have 2 channels, but got 4"
    yield (make(2, 4, 6, 6), make(6, 4, 3, 3), make(5)), {}, RuntimeError, "bias to be 1-dim"
    yield (make(2, 4, 2, 2), make(6, 4, 3, 3)), {}, RuntimeError, "Kernel size can't be greater"
    yield (make(4), make(6, 4, 3, 3)), {}, RuntimeError, "Expected 3D (unbatched) or 4D"
    yield (make(2, 4, 6, 6), make(6, 4, 3, 3)), {"stride": 0}, RuntimeError, "non-positive stride"


@conv3d.samples
def _(make):
    yield make(1, 2, 3, 4, 5), make(3, 2, 2, 2, 3), make(3), 1, 1


@conv_transpose1d.samples
def _(make):
    yield make(2, 4, 5), make(4, 3, 3), make(6), 2, 1, 1, 2


@conv_transpose2d.samples
def _(make):
    yield make(2, 4, 3, 4), make(4, 3, 3, 3), make(6), 2, 1, 1, 2
    yield make(4, 3, 4), make(4, 3, 2, 3)


@conv_transpose3d.samples
def _(make):
    yield make(1, 2, 2, 3, 2), make(2, 3, 2, 2, 2), make(3), 2
