"""Views: other shapes, strides and offsets over the same storage. One record per op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.shapes import (
    expand_strides,
    infer_size,
    normalize_dim,
    normalize_dims,
    view_strides,
)
from antorcha.errors import ShapeError
from antorcha.ops.kinds.kernel import view
from antorcha.ops.kinds.params import to_ints
from antorcha.ops.kinds.record import Composite, Op, T, composite
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.types import Any, Dim, Dims, Ints, Shape, Tensor
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor as TensorType
from antorcha.runtime.tensor import bare


def in_dtype(op: Op, args: tuple[_Any, ...], kwargs: dict[str, _Any]) -> _Any:
    """``view`` takes a dtype, too: then it is not a matter of layouts alone."""
    for each in (args[1] if len(args) == 2 else None, *kwargs.values()):
        if isinstance(each, dtypes.dtype):
            own = type(args[0]).view is not TensorType.view  # an example of a batch has its own way
            return args[0].view(each) if own else view_dtype(args[0], each)
    return NotImplemented


def view_dtype(tensor: TensorType, dtype: dtypes.dtype) -> TensorType:
    """The bytes of ``tensor`` as numbers of another dtype; sizes may change along the last dim."""
    layout = tensor._layout
    old, new = layout.itemsize, dtype.itemsize
    if old == new:
        return bare(layout.like(dtype=dtype), tensor._storage, tensor._offset)
    if layout.ndim == 0:
        raise ShapeError(
            f"view: self.dim() cannot be 0 to view {layout.dtype} as {dtype} (different element "
            "sizes)"
        )
    what = f"view: to see {layout.dtype} as {dtype} (different element sizes), "
    if layout.strides[-1] != 1:
        raise ShapeError(f"{what}self.stride(-1) must be 1, but got {layout.strides[-1]}")
    shape, strides, offset = list(layout.shape), list(layout.strides), tensor._offset
    if new < old:
        ratio = old // new
        shape[-1] *= ratio
        strides = [s * ratio for s in strides[:-1]] + [1]
        offset *= ratio
    else:
        ratio = new // old
        for what_is, value in (("size(-1)", shape[-1]), ("storage_offset()", offset)):
            if value % ratio:
                raise ShapeError(f"{what}self.{what_is} must be divisible by {ratio}, got {value}")
        for d, stride in enumerate(strides[:-1]):
            if stride % ratio:
                raise ShapeError(
                    f"{what}self.stride({d}) must be divisible by {ratio}, but got {stride}"
                )
        shape[-1] //= ratio
        strides = [s // ratio for s in strides[:-1]] + [1]
        offset //= ratio
    result = L.layout(tuple(shape), tuple(strides), dtype, layout.device)
    return bare(result, tensor._storage, offset)


@view(function=False, name="view", other_form=in_dtype)
def view_(input: Tensor, size: Shape):
    """The same elements with another shape, sharing memory; one size may be -1.

    Raises RuntimeError when the strides do not allow it (use ``reshape``, which copies then).
    With a dtype instead, the same bytes as numbers of that dtype (not differentiable).

    >>> torch.arange(6).view(2, 3)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    >>> torch.tensor([1.0]).view(torch.int32)
    tensor([1065353216], dtype=torch.int32)
    """
    sizes = infer_size(size, input.numel, op="view")
    strides = view_strides(input.shape, input.strides, sizes)
    if strides is None:
        raise ShapeError(
            "view: view size is not compatible with input tensor's size and stride: shape "
            "{0.shape} with strides {strides} cannot be seen as {sizes} without copying. Use {fix} "
            "instead.",
            reason="contiguous", op="view", operands=(input,), strides=input.strides, sizes=sizes,
            fix=".reshape(...)",
        )  # fmt: skip
    return sizes, strides, 0


view_.derivative(lambda g, input_layout: T.reshape(g, input_layout.shape))


@view_.batches
def _(batch, run, input, size):
    sizes = infer_size(size, input._layout.numel, op="view")
    return T.view(batch.whole(input), (batch.size, *sizes))


@view_.samples
def _(make):
    yield make(3, 4), (2, 6)
    yield make(3, 4), (-1,)
    yield make(1, 3), (3, 1, 1)
    yield (make(3, 4), (5, 2)), {}, RuntimeError, "has 10 elements"
    yield (make(3, 4), (-1, -1)), {}, RuntimeError, "only one size can be -1"


@view(aliases=("swapaxes", "swapdims"))
def transpose(input: Tensor, dim0: Dim, dim1: Dim):
    """A view with two dims exchanged.

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


transpose.derivative(lambda g, dim0, dim1: T.transpose(g, dim0, dim1))


@transpose.samples
def _(make):
    yield make(3, 4), 0, 1
    yield make(2, 3, 4), -1, 0
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


t.derivative(lambda g: T.t(g))


@t.batches
def _(batch, run, input):
    if input._layout.ndim > 2:
        return T.t(batch.whole(input))  # raises
    return T.transpose(batch.whole(input), 1, 2) if input._layout.ndim == 2 else batch.whole(input)


@t.samples
def _(make):
    yield (make(3, 4),)
    yield (make(3),)


@view()
def permute(input: Tensor, dims: Ints):
    """A view with its dims in another order.

    >>> torch.permute(torch.zeros(2, 3, 5), (2, 0, 1)).shape
    torch.Size([5, 2, 3])
    """
    order = normalize_dims(dims, input.ndim, op="permute")
    if len(order) != input.ndim:
        raise ShapeError(
            "permute: permute(sparse_coo): number of dimensions in the tensor input does not match "
            "the length of the desired ordering of dimensions i.e. input.dim() = {ndim} is not "
            "equal to len(dims) = {given}",
            reason="permute", op="permute", operands=(input,), ndim=input.ndim, given=len(order),
        )  # fmt: skip
    return [input.shape[d] for d in order], [input.strides[d] for d in order], 0


@permute.derivative
def _(g, dims):
    order = [d % len(dims) for d in dims]
    return T.permute(g, tuple(sorted(range(len(order)), key=order.__getitem__)))


@permute.batches
def _(batch, run, input, dims):
    order = normalize_dims(dims, input._layout.ndim, op="permute")
    return T.permute(batch.whole(input), (0, *[d + 1 for d in order]))


@permute.samples
def _(make):
    yield make(2, 3, 4), (2, 0, 1)
    yield make(2, 3), (1, -2)


@view()
def unsqueeze(input: Tensor, dim: Dim):
    """A view with a dim of size 1 put in at ``dim``.

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


def squeeze_node(values: list[_Any], inplace: bool) -> str:
    """PyTorch names the node by the form of ``dim``."""
    number = 0 if values[1] is None else 1 if isinstance(values[1], int) else 2
    return f"SqueezeBackward{number}"


@view(nodes=squeeze_node)
def squeeze(input: Tensor, dim: Dims = None):
    """A view without the dims of size 1: all of them, or those named in ``dim``.

    >>> torch.squeeze(torch.zeros(2, 1, 2, 1)).shape
    torch.Size([2, 2])
    """
    if dim == ():
        named: _Any = ()
    else:
        named = range(input.ndim) if dim is None else normalize_dims(dim, input.ndim, op="squeeze")
    keep = [d for d in range(input.ndim) if d not in named or input.shape[d] != 1]
    return [input.shape[d] for d in keep], [input.strides[d] for d in keep], 0


squeeze.derivative(lambda g, input_layout: T.reshape(g, input_layout.shape))


@squeeze.batches
def _(batch, run, input, dim):
    ndim = input._layout.ndim
    named = range(ndim) if dim is None else normalize_dims(dim, ndim, op="squeeze")
    return T.squeeze(batch.whole(input), tuple([d + 1 for d in named]))


@squeeze.samples
def _(make):
    yield (make(2, 1, 3, 1),)
    yield make(2, 1, 3), 1
    yield make(2, 1, 3), 0
    yield make(2, 1, 3, 1), (1, 3)
    yield (make(3, 4), 2), {}, IndexError, "out of range"


@view(function=False)
def expand(input: Tensor, size: Shape):
    """A view in which dims of size 1 repeat (stride 0); -1 keeps a size.

    >>> torch.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return *expand_strides(input.shape, input.strides, size, op="expand"), 0


expand.derivative(lambda g, input_layout: T.sum_to_size(g, input_layout.shape))


@expand.batches
def _(batch, run, input, size):
    whole = batch.beside(input, len(size))
    return T.expand(whole, (batch.size, *size))


@expand.samples
def _(make):
    yield make(3, 1), (3, 4)
    yield make(3), (2, -1)


# ---------------------------------------------------------------------------- shapes by other names
def reshaping(**options: _Any) -> Callable[[Callable[..., _Any]], Composite]:
    """Decorates a function of a layout that gives a shape (None: the same) as the op that gives the
    elements that shape: a view if the strides allow it, else a copy."""

    def declare(shape_of: Callable[..., _Any]) -> Composite:
        op = Composite(shape_of, **options)

        def reshape(input: TensorType, *args: _Any) -> _Any:
            sizes = shape_of(input._layout, *args)
            return input if sizes is None else reshaped(input, sizes)

        op.fn = reshape
        return op

    return declare


def reshaped(input: TensorType, sizes: _Any) -> _Any:
    layout = input._layout
    if view_strides(layout.shape, layout.strides, sizes) is not None:
        return T.view(input, sizes)
    return copied(input, sizes)


def copied(input: TensorType, sizes: _Any) -> _Any:
    """A copy, in order, with another shape."""
    result = T.unsafe_view(T.clone(input, memory_format="contiguous"), sizes)
    result._base = None  # nobody else sees the copy
    return result


@view(function=False, method=False)
def unsafe_view(input: Tensor, shape: Shape):
    """``view`` of a copy that nobody else sees."""
    strides = view_strides(input.shape, input.strides, shape)
    if strides is None:
        raise ShapeError(f"unsafe_view: {tuple(input.shape)} does not lie as {tuple(shape)}")
    return shape, strides, 0


unsafe_view.derivative(lambda g, input_layout: T.reshape(g, input_layout.shape))
unsafe_view.batches(lambda batch, run, input, shape: run(batch.whole(input), (batch.size, *shape)))


@reshaping(out=False)
def reshape(input: Tensor, shape: Shape):
    """The same elements with another shape: a view if the strides allow it, else a copy.

    >>> torch.arange(4).reshape(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    return infer_size(shape, input.numel, op="reshape")


@reshape.samples
def _(make):
    yield make(3, 4), (2, 6)
    yield make(3, 4).t(), (2, -1)
    yield make(0, 4), (4, 0)
    yield (make(3, 4), (5, 2)), {}, RuntimeError, "has 10 elements"


@reshaping(out=False)
def flatten(input: Tensor, start_dim: Dim = 0, end_dim: Dim = -1):
    """Dims ``start_dim`` to ``end_dim`` made one; a view where possible.

    >>> torch.flatten(torch.zeros(2, 3, 4), 1).shape
    torch.Size([2, 12])
    """
    a = normalize_dim(start_dim, input.ndim, op="flatten")
    b = normalize_dim(end_dim, input.ndim, op="flatten")
    if a > b:
        raise ShapeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if input.ndim == 0:
        return (1,)
    if a == b:
        return None
    middle = 1
    for n in input.shape[a : b + 1]:
        middle *= n
    return (*input.shape[:a], middle, *input.shape[b + 1 :])


@flatten.samples
def _(make):
    yield (make(2, 3, 4),)
    yield make(2, 3, 4), 1
    yield make(2, 3, 4), 0, 1
    yield (make(),)
    yield (make(2, 3, 4), 2, 1), {}, RuntimeError, "start_dim cannot come after end_dim"


@composite(out=False)
def ravel(input: Tensor):
    """The elements in one dim, in order; a view of a contiguous tensor.

    >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return T.view(T.contiguous(input), (input._layout.numel,))


@ravel.samples
def _(make):
    yield (make(2, 3),)
    yield (make(2, 3).t(),)


@reshaping(out=False)
def unflatten(input: Tensor, dim: Dim, sizes: Ints):
    """Dim ``dim`` spread over dims of the given sizes, one of which may be -1.

    >>> torch.unflatten(torch.zeros(3, 4), 1, (2, -1)).shape
    torch.Size([3, 2, 2])
    """
    d = normalize_dim(dim, input.ndim, op="unflatten")
    if not sizes:
        raise ShapeError("unflatten: sizes must be non-empty")
    n = input.shape[d] if input.ndim else 1
    try:
        inferred = infer_size(sizes, n, op="unflatten")
    except ShapeError:
        raise ShapeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} "
            f"({n}) in the input tensor"
        ) from None
    return (*input.shape[:d], *inferred, *input.shape[d + 1 :])


@unflatten.samples
def _(make):
    yield make(3, 4), 1, (2, 2)
    yield make(6, 2), 0, (-1, 3)
    yield (make(3, 4), 1, (3, 2)), {}, RuntimeError, "multiply up to"


@composite(function=False, out=False, samples=of_shapes((3, 4), (2, 6)))
def view_as(input: Tensor, other: Tensor):
    """``input.view(other.size())``.

    >>> torch.arange(4).view_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return T.view(input, tuple(other._layout.shape))


@composite(function=False, out=False, samples=of_shapes((3, 4), (2, 6)))
def reshape_as(input: Tensor, other: Tensor):
    """``input.reshape(other.size())``.

    >>> torch.arange(4).reshape_as(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return T.reshape(input, tuple(other._layout.shape))


@composite(function=False, out=False, samples=of_shapes((3, 1), (3, 4)))
def expand_as(input: Tensor, other: Tensor):
    """``input.expand(other.size())``.

    >>> torch.tensor([1, 2]).expand_as(torch.zeros(2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return T.expand(input, tuple(other._layout.shape))


@composite(out=False)
def broadcast_to(input: Tensor, size: Shape):
    """``input`` broadcast to ``size``, a view.

    >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return T.expand(input, size)


@broadcast_to.samples
def _(make):
    yield make(3, 1), (2, 3, 4)


@composite(out=False, aliases=("moveaxis",))
def movedim(input: Tensor, source: Any, destination: Any):
    """A view with dims ``source`` at the places ``destination``; the others keep their order.

    >>> torch.movedim(torch.zeros(2, 3, 5), 0, 2).shape
    torch.Size([3, 5, 2])
    """
    ndim = input._layout.ndim
    taken = normalize_dims(to_ints("movedim", "source", source), ndim, op="movedim")
    placed = normalize_dims(to_ints("movedim", "destination", destination), ndim, op="movedim")
    if len(taken) != len(placed):
        raise ShapeError(
            f"movedim: Invalid source or destination dims: source ({list(taken)} dims) should "
            f"contain the same number of dims as destination ({list(placed)} dims)"
        )
    if ndim == 0 or not taken:
        return T.alias(input)
    order = [-1] * ndim
    for s, d in zip(taken, placed, strict=True):
        order[d] = s
    rest = iter([d for d in range(ndim) if d not in taken])
    return T.permute(input, tuple([next(rest) if o < 0 else o for o in order]))


@movedim.samples
def _(make):
    yield make(2, 3, 4), 0, 2
    yield make(2, 3, 4), (0, 1), (-1, 0)
    yield (make(2, 3), (0, 1), (0,)), {}, RuntimeError, "same number of dims"
