"""Views: other shapes, strides and offsets over the same storage. One record per op."""

from __future__ import annotations

import builtins

from antorcha.errors import OutOfRange, ShapeError, ValueRangeError
from antorcha.ops.kernel import view
from antorcha.ops.record import T, composite
from antorcha.ops.types import Dim, Dims, Int, Ints, Shape, Tensor
from antorcha.shapes import (

    expand_strides,
    infer_size,
    normalize_dim,
    normalize_dims,
    view_strides,
)


@view(function=False, name="view", node="view")
def view_(input: Tensor, shape: Shape):
    """The same elements with another shape, sharing memory; one size may be -1.

    Raises RuntimeError when the strides do not allow it (use ``reshape``, which copies then).
    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html.

    >>> torch.arange(6).view(2, 3)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    sizes = infer_size(shape, input.numel, op="view")
    strides = view_strides(input.shape, input.strides, sizes)
    if strides is None:
        raise ShapeError(
            f"view: view size is not compatible with input tensor's size and stride: shape "
            f"{tuple(input.shape)} with strides {input.strides} cannot be seen as {sizes} without "
            "copying. Use .reshape(...) instead."
        )
    return sizes, strides, 0


@view_.derivative
def _(g, input_layout):
    return T.reshape(g, input_layout.shape)


@view_.samples
def _(make):
    yield make(3, 4), (2, 6)
    yield make(3, 4), (-1,)
    yield make(1, 3), (3, 1, 1)


@view_.errors
def _(make):
    yield (make(3, 4), (5, 2)), {}, RuntimeError, "invalid for input of size"
    yield (make(3, 4), (-1, -1)), {}, RuntimeError, "only one dimension can be inferred"


@composite()
def reshape(input: Tensor, shape: Shape):
    """The same elements with another shape: a view if the strides allow it, else a copy.

    See https://docs.pytorch.org/docs/stable/generated/torch.reshape.html.

    >>> torch.arange(4).reshape(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    lay = input._layout
    sizes = infer_size(shape, lay.numel, op="reshape")
    if view_strides(lay.shape, lay.strides, sizes) is not None:
        return T.view(input, sizes)
    return T.view(T.contiguous(input), sizes)


@reshape.samples
def _(make):
    yield make(3, 4), (2, 6)
    yield make(3, 4).t(), (2, -1)
    yield make(0, 4), (4, 0)


@view()
def transpose(input: Tensor, dim0: Dim, dim1: Dim):
    """A view with two dims exchanged.

    See https://docs.pytorch.org/docs/stable/generated/torch.transpose.html.

    >>> torch.transpose(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([[1, 3],
            [2, 4]])
    """
    a = normalize_dim(dim0, input.ndim, op="transpose")
    b = normalize_dim(dim1, input.ndim, op="transpose")
    shape, strides = list(input.shape), list(input.strides)
    if input.ndim:
        shape[a], shape[b] = shape[b], shape[a]
        strides[a], strides[b] = strides[b], strides[a]
    return shape, strides, 0


@transpose.derivative
def _(g, dim0, dim1):
    return T.transpose(g, dim0, dim1)


@transpose.samples
def _(make):
    yield make(3, 4), 0, 1
    yield make(2, 3, 4), -1, 0


@transpose.errors
def _(make):
    yield (make(3, 4), 0, 2), {}, IndexError, "out of range"


@view()
def t(input: Tensor):
    """The transpose of a matrix (a view); tensors of less than two dims are given back.

    >>> torch.t(torch.tensor([[1, 2, 3]])).shape
    torch.Size([3, 1])
    """
    if input.ndim > 2:
        raise ShapeError(
            f"t: t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D: "
            f"{tuple(input.shape)}. Use transpose(dim0, dim1) or .mT."
        )
    return tuple(reversed(input.shape)), tuple(reversed(input.strides)), 0


@t.derivative
def _(g):
    return T.t(g)


@t.samples
def _(make):
    yield (make(3, 4),)
    yield (make(3),)


@view()
def permute(input: Tensor, dims: Ints):
    """A view with its dims in another order.

    See https://docs.pytorch.org/docs/stable/generated/torch.permute.html.

    >>> torch.permute(torch.zeros(2, 3, 5), (2, 0, 1)).shape
    torch.Size([5, 2, 3])
    """
    order = normalize_dims(dims, input.ndim, op="permute")
    if len(order) != input.ndim:
        raise ShapeError(
            f"permute: permute(sparse_coo): number of dimensions in the tensor input does not match"
            f" the length of the desired ordering of dimensions i.e. input.dim() = {input.ndim} is "
            f"not equal to len(dims) = {len(order)}"
        )
    return [input.shape[d] for d in order], [input.strides[d] for d in order], 0


@permute.derivative
def _(g, dims):
    order = [d % len(dims) for d in dims]
    return T.permute(g, tuple(sorted(range(len(order)), key=order.__getitem__)))


@permute.samples
def _(make):
    yield make(2, 3, 4), (2, 0, 1)
    yield make(2, 3), (1, -2)


@view()
def unsqueeze(input: Tensor, dim: Dim):
    """A view with a dim of size 1 put in at ``dim``.

    See https://docs.pytorch.org/docs/stable/generated/torch.unsqueeze.html.

    >>> torch.unsqueeze(torch.tensor([1, 2]), 1)
    tensor([[1],
            [2]])
    """
    at = normalize_dim(dim, input.ndim + 1, op="unsqueeze")
    stride = input.shape[at] * input.strides[at] if at < input.ndim else 1
    shape = (*input.shape[:at], 1, *input.shape[at:])
    return shape, (*input.strides[:at], stride, *input.strides[at:]), 0


@unsqueeze.derivative
def _(g, dim, input_layout):
    return T.squeeze(g, dim if dim >= 0 else dim + input_layout.ndim + 1)


@unsqueeze.samples
def _(make):
    yield make(3, 4), 1
    yield make(3, 4), -1
    yield make(), 0


@view()
def squeeze(input: Tensor, dim: Dims = None):
    """A view without the dims of size 1: all of them, or those named in ``dim``.

    See https://docs.pytorch.org/docs/stable/generated/torch.squeeze.html.

    >>> torch.squeeze(torch.zeros(2, 1, 2, 1)).shape
    torch.Size([2, 2])
    """
    named = range(input.ndim) if dim is None else normalize_dims(dim, input.ndim, op="squeeze")
    keep = [d for d in range(input.ndim) if d not in named or input.shape[d] != 1]
    return [input.shape[d] for d in keep], [input.strides[d] for d in keep], 0


@squeeze.derivative
def _(g, input_layout):
    return T.reshape(g, input_layout.shape)


@squeeze.samples
def _(make):
    yield (make(2, 1, 3, 1),)
    yield make(2, 1, 3), 1
    yield make(2, 1, 3), 0


@view(function=False)
def expand(input: Tensor, size: Shape):
    """A view in which dims of size 1 repeat (stride 0); -1 keeps a size.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.expand.html.

    >>> torch.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return *expand_strides(input.shape, input.strides, size, op="expand"), 0


@expand.derivative
def _(g, input_layout):
    return T.sum_to_size(g, input_layout.shape)


@expand.samples
def _(make):
    yield make(3, 1), (3, 4)
    yield make(3), (2, -1)


@view(function=False)
def slice(input: Tensor, dim: Dim, start: Int, end: Int, step: Int):
    """The elements ``start:end:step`` along a dim, a view: ``x[start:end:step]``."""
    d = normalize_dim(dim, input.ndim, op="slice")
    if step <= 0:
        raise ValueRangeError("slice: slice step must be positive")
    first, last, _ = builtins.slice(start, end, step).indices(input.shape[d])
    count = max(0, -((first - last) // step))
    shape = (*input.shape[:d], count, *input.shape[d + 1 :])
    strides = (*input.strides[:d], input.strides[d] * step, *input.strides[d + 1 :])
    return shape, strides, first * input.strides[d] if count else 0


@slice.derivative
def _(g, dim, start, end, step, input_layout):
    return T.slice_backward(g, input_layout.shape, dim, start, end, step)


@slice.samples
def _(make):
    yield make(5, 4), 0, 1, 4, 2
    yield make(5, 4), 1, 2, 2, 1


@view()
def select(input: Tensor, dim: Dim, index: Int):
    """The slice at ``index`` along ``dim``: a view with one dim less.

    See https://docs.pytorch.org/docs/stable/generated/torch.select.html.

    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([3, 4])
    """
    if input.ndim == 0:
        raise OutOfRange("select: select() cannot be applied to a 0-dim tensor.")
    d = normalize_dim(dim, input.ndim, op="select")
    n = input.shape[d]
    if not -n <= index < n:
        raise OutOfRange(
            f"select: index {index} is out of bounds for dimension {d} with size {n} "
            f"(tensor of shape {tuple(input.shape)})"
        )
    shape = (*input.shape[:d], *input.shape[d + 1 :])
    return shape, (*input.strides[:d], *input.strides[d + 1 :]), index % n * input.strides[d]


@select.derivative
def _(g, dim, index, input_layout):
    return T.select_backward(g, input_layout.shape, dim, index)


@select.samples
def _(make):
    yield make(3, 4), 0, 1
    yield make(3, 4), -1, -1


@composite()
def narrow(input: Tensor, dim: Dim, start: Int, length: Int):
    """``length`` elements from ``start`` along ``dim``: a view.

    >>> torch.narrow(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    lay = input._layout
    d = normalize_dim(dim, lay.ndim, op="narrow")
    n = lay.shape[d]
    if not -n <= start <= n:
        raise OutOfRange(f"narrow: start {start} is out of range for dim {d} of size {n}")
    first = start + n if start < 0 else start
    if length < 0 or first + length > n:
        raise ShapeError(
            f"narrow: start ({start}) + length ({length}) exceeds dimension size ({n})."
        )
    return T.slice(input, d, first, first + length, 1)


@narrow.samples
def _(make):
    yield make(3, 4), 1, 1, 2
    yield make(3, 4), 0, -2, 2


@view()
def as_strided(input: Tensor, size: Ints, stride: Ints, storage_offset: Int = None):
    """A view of the operand's storage with any size, strides and offset (in elements).

    Raises RuntimeError when it would reach outside of the storage.
    See https://docs.pytorch.org/docs/stable/generated/torch.as_strided.html.

    >>> torch.as_strided(torch.arange(9.).reshape(3, 3), (2, 2), (1, 2), 1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    raise NotImplementedError  # planned by AsStrided, which sees the storage


@view(function=False, method=False)
def alias(input: Tensor):
    """The same tensor as a view of itself."""
    return input.shape, input.strides, 0


@alias.derivative
def _(g):
    return g


@composite(method=True)
def flatten(input: Tensor, start_dim: Dim = 0, end_dim: Dim = -1):
    """Dims ``start_dim`` to ``end_dim`` made one; a view where possible.

    >>> torch.flatten(torch.zeros(2, 3, 4), 1).shape
    torch.Size([2, 12])
    """
    lay = input._layout
    if lay.ndim == 0:
        return T.reshape(input, (1,))
    a = normalize_dim(start_dim, lay.ndim, op="flatten")
    b = normalize_dim(end_dim, lay.ndim, op="flatten")
    if a > b:
        raise ShapeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if a == b:
        return input
    middle = 1
    for n in lay.shape[a : b + 1]:
        middle *= n
    return T.reshape(input, (*lay.shape[:a], middle, *lay.shape[b + 1 :]))


@flatten.samples
def _(make):
    yield (make(2, 3, 4),)
    yield make(2, 3, 4), 1
    yield make(2, 3, 4), 0, 1




