"""Distances and similarities of vectors along a dim, and the losses made of them."""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.errors import DtypeError, ShapeError, ValueRangeError
from antorcha.lang import expr as E
from antorcha.ops.kinds.pointwise import pointwise
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.types import Any, Bool, Dim, Float, Int, OptFloat, OptTensor, Str, Tensor
from antorcha.ops.loss import reduced, reduction_of
from antorcha.runtime.memory.layout import Layout

NN = "nn.functional"


def norm_along(x: _Any, p: float, dim: _Any, keepdim: bool) -> _Any:
    """The p-norm along a dim."""
    if x._layout.dtype.kind in "bui":
        raise DtypeError(
            "norm: Expected a floating point or complex tensor as input. Got {0.dtype}; cast it to "
            "float.",
            reason="needs float", op="norm", operands=(x._layout,),
        )  # fmt: skip
    return T.linalg_vector_norm(x, p, dim, keepdim)


@composite(namespace=NN, out=False)
def normalize(input: Tensor, p: OptFloat = 2.0, dim: Any = 1, eps: Float = 1e-12,
              out: OptTensor = None):  # fmt: skip
    """``input`` divided by its p-norm along ``dim``, or by ``eps`` where the norm is less.

    >>> torch.nn.functional.normalize(torch.tensor([3., 4.]), dim=0)
    tensor([0.6000, 0.8000])
    """
    size = T.clamp_min(norm_along(input, p, dim, True), eps)
    return input / size if out is None else T.div(input, size, out=out)


@composite(method=False, out=False, aliases=("nn.functional.cosine_similarity",))
def cosine_similarity(x1: Tensor, x2: Tensor, dim: Dim = 1, eps: Float = 1e-8):
    """The cosine of the angle of two vectors along ``dim``; norms below ``eps`` count as ``eps``.

    >>> torch.cosine_similarity(torch.tensor([[1., 0.]]), torch.tensor([[1., 1.]]))
    tensor([0.7071])
    """
    common = dtypes.promote_types(x1._layout.dtype, x2._layout.dtype)
    if common.kind != "f":
        raise DtypeError(
            "cosine_similarity: expected common dtype to be floating point, yet it is "
            f"{common}; cast one to float."
        )
    if not eps >= 0:
        raise ShapeError(f"cosine_similarity: eps must be non-negative, got: {eps}")
    a, b = T.broadcast_tensors(x1, x2)
    a = a / T.clamp_min(norm_along(a, 2, dim, True), eps)
    b = b / T.clamp_min(norm_along(b, 2, dim, True), eps)
    return T.sum(a * b, dim)


@cosine_similarity.samples
def _(make):
    yield make(3, 4), make(3, 4)
    yield make(3, 4), make(4), 1


@composite(method=False, out=False, aliases=("nn.functional.pairwise_distance",))
def pairwise_distance(x1: Tensor, x2: Tensor, p: Float = 2.0, eps: Float = 1e-6,
                      keepdim: Bool = False):  # fmt: skip
    """The p-norm of ``x1 - x2 + eps`` along the last dim.

    >>> torch.pairwise_distance(torch.tensor([[0., 3.]]), torch.tensor([[4., 0.]]))
    tensor([5.])
    """
    return norm_along(x1 - x2 + eps, p, -1, keepdim)


@pairwise_distance.samples
def _(make):
    yield make(3, 4), make(3, 4)
    yield make(3, 4), make(4), 3.0


# ------------------------------------------------------------------------------------ their losses
@composite(namespace=NN, out=False)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: Float = 0.0, size_average: Bool = None,
    reduce: Bool = None, reduction: Str = "mean",
):  # fmt: skip
    """``1 - cos`` where ``target`` is 1, ``max(0, cos - margin)`` where it is -1.

    >>> torch.nn.functional.cosine_embedding_loss(
    ...     torch.tensor([[1., 0.]]), torch.tensor([[1., 1.]]), torch.tensor([1]))
    tensor(0.2929)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    a, b = input1._layout.shape, input2._layout.shape
    if target._layout.ndim not in (0, 1) or len(a) != target._layout.ndim + 1 or len(a) != len(b):
        raise ShapeError(
            f"cosine_embedding_loss: {target._layout.ndim}D target tensor expects "
            f"{target._layout.ndim + 1}D input tensors, but found inputs with sizes {tuple(a)} and "
            f"{tuple(b)}."
        )
    epsilon, dim = 1e-12, target._layout.ndim
    dot = T.sum(input1 * input2, dim)
    sizes = (T.sum(input1 * input1, dim) + epsilon) * (T.sum(input2 * input2, dim) + epsilon)
    cos = dot / T.sqrt(sizes)
    same = T.where_self(T.eq(target, 1), 1 - cos, 0)
    other = T.where_self(T.eq(target, -1), T.clamp_min(cos - margin, 0), 0)
    return reduced(same + other, reduction)


def _triplet(near: _Any, far: _Any, swapped: _Any, margin: float, reduction: str) -> _Any:
    if swapped is not None:
        far = T.minimum(far, swapped)
    return reduced(T.clamp_min(margin + near - far, 0), reduction)


@composite(namespace=NN, out=False, samples=of_shapes((3, 4), (3, 4), (3, 4)))
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: Float = 1.0, p: Float = 2.0,
    eps: Float = 1e-6, swap: Bool = False, size_average: Bool = None, reduce: Bool = None,
    reduction: Str = "mean",
):  # fmt: skip
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)``, d a p-norm.

    >>> torch.nn.functional.triplet_margin_loss(
    ...     torch.tensor([[0.]]), torch.tensor([[1.]]), torch.tensor([[0.5]]))
    tensor(1.5000)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueRangeError(f"margin must be greater than 0, got {margin}")
    ndims = [t._layout.ndim for t in (anchor, positive, negative)]
    if len(set(ndims)) != 1:
        raise ShapeError(
            "triplet_margin_loss: The anchor, positive, and negative tensors are expected to have "
            f"the same number of dimensions, but got: {ndims}"
        )
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    swapped = pairwise_distance(positive, negative, p, eps) if swap else None
    return _triplet(near, far, swapped, margin, reduction)


@composite(namespace=NN, out=False)
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Any = None,
    margin: Float = 1.0, swap: Bool = False, reduction: Str = "mean",
):  # fmt: skip
    """``triplet_margin_loss`` with any distance function (default: ``pairwise_distance``).

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.triplet_margin_with_distance_loss.html.
    """
    if margin <= 0:
        raise ValueRangeError(f"margin must be greater than 0, got {margin}")
    reduction = reduction_of(None, None, reduction)
    d = pairwise_distance if distance_function is None else distance_function
    swapped = d(positive, negative) if swap else None
    return _triplet(d(anchor, positive), d(anchor, negative), swapped, margin, reduction)


# ---------------------------------------------------------------------------------- margin losses
@composite(namespace=NN, out=False, samples=of_shapes((3,), (3,), (3,)))
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: Float = 0.0, size_average: Bool = None,
    reduce: Bool = None, reduction: Str = "mean",
):  # fmt: skip
    """``max(0, -target * (input1 - input2) + margin)``.

    >>> torch.nn.functional.margin_ranking_loss(
    ...     torch.tensor([1.]), torch.tensor([2.]), torch.tensor([1.]))
    tensor(1.)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if all([t._layout.dtype.kind in "iu" for t in (input1, input2, target)]):
        gap = T.mul(T.neg(target), T.sub(input1, input2))  # in integers, which wrap around
        return reduced(T.clamp_min(T.add(gap, float(margin)), 0), reduction)
    return reduced(T.margin_ranking_each(input1, input2, target, margin), reduction)


@pointwise("float", function=False, method=False, out=False)
def margin_ranking_each(input1: Tensor, input2: Tensor, target: Tensor, margin: Float):
    """One element of ``margin_ranking_loss``."""
    gap = -target * (input1 - input2) + margin
    return E.where(gap >= 0, gap, E.where(E.isnan(gap), gap, 0))


@pointwise("float", function=False, method=False, out=False)
def hinge_embedding_each(input: Tensor, target: Tensor, margin: Float):
    """One element of ``hinge_embedding_loss``."""
    gap = margin - input
    gap = E.where(gap >= 0, gap, E.where(E.isnan(gap), gap, 0))
    return E.where(target != 1, gap, 0) + E.where(target != -1, input, 0)


@composite(namespace=NN, out=False)
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: Float = 1.0, size_average: Bool = None,
    reduce: Bool = None, reduction: Str = "mean",
):  # fmt: skip
    """``input`` where ``target`` is 1, ``max(0, margin - input)`` where it is -1.

    >>> torch.nn.functional.hinge_embedding_loss(torch.tensor([0.5, 0.2]), torch.tensor([1., -1.]))
    tensor(0.6500)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    return reduced(T.hinge_embedding_each(input, target, margin), reduction)


@hinge_embedding_loss.samples
def _(make):
    yield make(3), make.bools((3,)).long() * 2 - 1


@pointwise("float", function=False, method=False, out=False, node="soft_margin_loss")
def soft_margin_each(input: Tensor, target: Tensor):
    """One element of ``soft_margin_loss``."""
    return E.log1p(E.exp(-target * input))


@composite(namespace=NN, out=False)
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: Bool = None, reduce: Bool = None,
    reduction: Str = "mean",
):  # fmt: skip
    """``log(1 + exp(-target * input))``.

    >>> torch.nn.functional.soft_margin_loss(torch.tensor([0.]), torch.tensor([1.]))
    tensor(0.6931)
    """
    return reduced(T.soft_margin_each(input, target), reduction_of(size_average, reduce, reduction))


@composite(namespace=NN, out=False)
def multi_margin_loss(
    input: Tensor, target: Tensor, p: Int = 1, margin: Float = 1.0, weight: OptTensor = None,
    size_average: Bool = None, reduce: Bool = None, reduction: Str = "mean",
):  # fmt: skip
    """``sum_j max(0, margin - x[y] + x[j])**p / C`` over the classes j other than y.

    >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0.1, 0.8]]), torch.tensor([0]))
    tensor(0.8500)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueRangeError("multi_margin_loss: only p == 1 and p == 2 supported")
    input = T.unsqueeze(input, 0) if not input._layout.ndim else input  # one class
    classes = input._layout.shape[-1]
    _check_margin_weight(input._layout, weight)
    _check_margin_target(input._layout, target._layout)
    here = T.eq(T.unsqueeze(target, -1), T.arange(classes, device=input._layout.device))
    own = T.sum(T.where_self(here, input, 0), -1, True)
    gap = T.clamp_min(margin - own + input, 0)
    gap = gap if p == 1 else gap * gap
    if weight is not None:
        gap = gap * T.sum(T.where_self(here, weight, 0), -1, True)
    return reduced(T.sum(T.where_self(here, 0, gap), -1) / classes, reduction)


def _vector_or_matrix(name: str, layout: Layout) -> None:
    """Refuses scores that are not one row or a batch of them."""
    if layout.ndim > 2 or (layout.ndim and not layout.shape[-1]):
        raise ShapeError(
            f"{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(layout.shape)}"
        )


def _check_margin_target(layout: Layout, own: _Any) -> None:
    """Refuses targets that are not one class index for each row."""
    _vector_or_matrix("multi_margin_loss", layout)
    rows = layout.shape[0] if layout.ndim == 2 else 1
    if own.ndim > 1 or own.numel != rows:
        raise ShapeError(
            f"multi_margin_loss: inconsistent target size, expected {rows} but got "
            f"{list(own.shape)}"
        )
    if own.dtype is not dtypes.int64:
        raise DtypeError(
            "multi_margin_loss: expected scalar type Long but found {0.dtype} for the target: "
            "class indices are int64; cast with {fix}.",
            reason="class dtype", op="multi_margin_loss", operands=(own,), fix="target.long()",
        )  # fmt: skip


def _check_margin_weight(layout: Layout, weight: _Any) -> None:
    """Refuses weights that are not one number for each class."""
    if weight is None:
        return
    own, classes = weight._layout, layout.shape[-1] if layout.ndim else 1
    if own.ndim != 1:
        raise ValueRangeError(
            f"multi_margin_loss: weight must be one-dimensional, not {list(own.shape)}"
        )
    if own.numel != classes:
        raise ShapeError(
            f"multi_margin_loss: inconsistent weight size, expected {classes} but got "
            f"{list(own.shape)}"
        )


@composite(namespace=NN, out=False)
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: Bool = None, reduce: Bool = None,
    reduction: Str = "mean",
):  # fmt: skip
    """``sum_ij max(0, 1 - (x[y_i] - x[j])) / C`` over labels y (ended by -1) and all other j.

    >>> torch.nn.functional.multilabel_margin_loss(
    ...     torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """
    _vector_or_matrix("multilabel_margin_loss", input._layout)
    reduction = reduction_of(size_average, reduce, reduction)
    if input._layout.shape != target._layout.shape:
        raise ShapeError(
            f"multilabel_margin_loss: inconsistent target size: {list(target._layout.shape)} for "
            f"input of size: {list(input._layout.shape)}"
        )
    if not input._layout.ndim:  # one class
        input, target = T.unsqueeze(input, 0), T.unsqueeze(target, 0)
    classes = input._layout.shape[-1]
    listed = T.eq(T.cumsum(T.to_dtype(T.lt(target, 0), target._layout.dtype), -1), 0)
    each = T.eq(T.unsqueeze(target, -1), T.arange(classes, device=input._layout.device))
    each = T.logical_and(each, T.unsqueeze(listed, -1))  # (..., label, class)
    is_label = T.any(each, -2)
    scores = T.sum(T.where_self(each, T.unsqueeze(input, -2), 0), -1, True)
    gap = T.clamp_min(1 - scores + T.unsqueeze(input, -2), 0)
    counts = T.logical_and(T.unsqueeze(listed, -1), T.logical_not(T.unsqueeze(is_label, -2)))
    return reduced(T.sum(T.where_self(counts, gap, 0), (-2, -1)) / classes, reduction)


@composite(namespace=NN, out=False)
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: OptTensor = None, size_average: Bool = None,
    reduce: Bool = None, reduction: Str = "mean",
):  # fmt: skip
    """The mean over the classes of binary cross entropies with logits.

    >>> torch.nn.functional.multilabel_soft_margin_loss(torch.zeros(1, 2), torch.ones(1, 2))
    tensor(0.6931)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    loss = -(target * T.logsigmoid(input) + (1 - target) * T.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(T.mean(loss, -1), reduction)


@normalize.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1.0, 0


@multi_margin_loss.samples
def _(make):
    yield make(5, 4), make.ints((5,), 4)


@cosine_embedding_loss.samples
def _(make):
    yield make(3, 4), make(3, 4), make.bools((3,)).long() * 2 - 1
