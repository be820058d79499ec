"""Losses of two tensors, element by element, then averaged or summed. One record per loss.

A loss is one function of an element of each operand. Without reduction it is a pointwise kernel;
with one it is *one* fold that reads both operands and writes one number, and its backward is one
kernel for each operand that wants a gradient. ``cross_entropy`` has a file of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any as _Any

from antorcha.errors import DtypeError, ShapeError, ValueRangeError, warn
from antorcha.lang import expr as E
from antorcha.ops.kinds.pointwise import PointwiseOp, UnsupportedDtype
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.reduction import Folding, ReductionOp
from antorcha.ops.kinds.types import Any, Bool, Float, Number, OptTensor, StaticNumber, Str, Tensor
from antorcha.runtime.tensor import Tensor as TensorType

NN = "nn.functional"


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction, the deprecated arguments considered."""
    if size_average is not None or reduce is not None:
        averaged = size_average is None or size_average
        reduction = "none" if reduce is False else ("mean" if averaged else "sum")
        warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
        )
    if reduction not in ("none", "mean", "sum"):
        raise ValueRangeError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(loss: _Any, reduction: str) -> _Any:
    """A tensor of losses, averaged or summed."""
    if reduction == "none":
        return loss
    return T.mean(loss) if reduction == "mean" else T.sum(loss)


Element = Callable[..., _Any]


class ElementLoss:
    """The kernels of a loss: ``element(input, target, param)`` and what is derived from it.

    ``slopes(input, target, param)`` gives both derivatives where the symbolic ones will not do.
    """

    def __init__(
        self, name: str, element: Element, slopes: Element | None = None, node: str = ""
    ) -> None:
        self.element, self.slopes = element, slopes
        node = node or name
        hidden: dict[str, _Any] = {"function": False, "method": False, "node": node}

        def each(input: Tensor, target: Tensor, param: StaticNumber = None) -> Tensor:
            return element(input, target, param)

        self.each = PointwiseOp(each, "float", name=f"{name}_each", **hidden)

        def total(input: Tensor, target: Tensor, mean: Bool, param: StaticNumber = None) -> Folding:
            return Folding(
                start=0, merge=lambda a, b: a + b, lift=lambda x, t, i: element(x, t, param),
                finish=(lambda s, n: s / E.cast(n, s.dtype)) if mean else None,
            )  # fmt: skip

        self.total = ReductionOp(
            total, "tofloat", name=f"{name}_total", out=False, batching="losses", **hidden
        )
        self.backward = [
            PointwiseOp(self.slope(k), "float", name=f"{name}_backward_{side}",
                        function=False, method=False, out=False)
            for k, side in enumerate(("input", "target"))
        ]  # fmt: skip
        if slopes is not None:
            self.each.derivative(lambda g, input, target, param: tuple(
                [g * s for s in slopes(input, target, param)]
            ))  # fmt: skip
        backward = self.backward

        def rule(
            g: TensorType, input: TensorType, target: TensorType, mean: bool, param: _Any,
            needs: tuple[bool, ...],
        ) -> list[OptTensor]:  # fmt: skip
            scale = 1.0 / max(input._layout.numel, 1) if mean else 1.0
            return [
                backward[k](g, input, target, scale, param) if needs[k] else None for k in (0, 1)
            ]

        self.total.derivative(rule)

    def slope(self, k: int) -> Element:
        """The element function of the gradient of operand k."""

        def fn(g: Tensor, input: Tensor, target: Tensor, scale: Number = 1.0,
               param: StaticNumber = None) -> Tensor:  # fmt: skip
            if self.slopes is not None:
                return self.slopes(input, target, param)[k] * (g * scale)
            value = self.element(input, target, param)
            (found,) = E.vjp((value,), (E.cast(g * scale, value.dtype),), ((input, target)[k],))
            return E.const(0, value.dtype) if found is None else E.simplify(found)

        return fn

    def __call__(self, input: _Any, target: _Any, reduction: str, param: _Any = None) -> _Any:
        if reduction == "none":
            return self.each(input, target, param)
        a, b = input._layout, target._layout
        if a.shape != b.shape or a.dtype is not b.dtype:
            return reduced(self.each(input, target, param), reduction)
        return self.total(input, target, reduction == "mean", param)


def same_sizes(name: str, input: _Any, target: _Any) -> None:
    """Warns, as PyTorch does, when operands will be broadcast."""
    a, b = input._layout.shape, target._layout.shape
    if a != b:
        warn(
            f"Using a target size ({b}) that is different to the input size ({a}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the "
            "same size.",
        )


_mse = ElementLoss("mse_loss", lambda x, t, _: (x - t) * (x - t),
                   lambda x, t, _: (2 * (x - t), 2 * (t - x)))  # fmt: skip
_l1 = ElementLoss("l1_loss", lambda x, t, _: E.abs(x - t), node="mean")


def weighted(losses: _Any, weight: _Any, reduction: str) -> _Any:
    """Weighted losses; their mean is over the sum of the weights."""
    product = losses * weight
    if reduction == "mean":
        return T.sum(product) / T.sum(T.expand(weight, product._layout.shape))
    return reduced(product, reduction)


@composite(namespace=NN, out=False)
def mse_loss(
    input: Tensor, target: Tensor, size_average: Bool = None, reduce: Bool = None,
    reduction: Str = "mean", weight: OptTensor = None,
):  # fmt: skip
    """The mean (or sum, or each) of ``(input - target)**2``.

    >>> torch.nn.functional.mse_loss(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(2.)
    """
    same_sizes("mse_loss", input, target)
    reduction = reduction_of(size_average, reduce, reduction)
    if weight is not None:
        return weighted(_mse(input, target, "none"), weight, reduction)
    return _mse(input, target, reduction)


@composite(namespace=NN, out=False)
def l1_loss(
    input: Tensor, target: Tensor, size_average: Bool = None, reduce: Bool = None,
    reduction: Str = "mean", weight: OptTensor = None,
):  # fmt: skip
    """The mean (or sum, or each) of ``abs(input - target)``.

    >>> torch.nn.functional.l1_loss(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(1.)
    """
    same_sizes("l1_loss", input, target)
    reduction = reduction_of(size_average, reduce, reduction)
    if weight is not None:
        return weighted(_l1(input, target, "none"), weight, reduction)
    if input._layout.dtype.kind != "f" or target._layout.dtype.kind != "f":
        return reduced(T.abs(input - target), reduction)  # (of integers there is no mean)
    return _l1(input, target, reduction)


def _smooth(x: Tensor, t: Tensor, beta: float) -> Tensor:
    z = E.abs(x - t)
    return E.where(z < beta, 0.5 * z * z / beta, z - 0.5 * beta)


def _smooth_slopes(x: Tensor, t: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    z = x - t
    slope = E.where(z <= -beta, -1.0, E.where(z >= beta, 1.0, z / beta))
    return slope, -slope


_smooth_l1 = ElementLoss("smooth_l1_loss", _smooth, _smooth_slopes)


@composite(namespace=NN, out=False)
def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: Bool = None, reduce: Bool = None,
    reduction: Str = "mean", beta: Float = 1.0,
):  # fmt: skip
    """Squared where ``abs(input - target) < beta`` (``0.5 d**2 / beta``), else ``d - beta / 2``.

    >>> torch.nn.functional.smooth_l1_loss(torch.tensor([1., 2.]), torch.tensor([1.5, 4.]))
    tensor(0.8125)
    """
    same_sizes("smooth_l1_loss", input, target)
    reduction = reduction_of(size_average, reduce, reduction)
    if not beta >= 0:
        raise ShapeError("smooth_l1_loss: does not support negative values for beta.")
    if beta == 0:
        return _l1(input, target, reduction)
    return _smooth_l1(input, target, reduction, beta)


def _huber_element(x: Tensor, t: Tensor, delta: float) -> Tensor:
    z = E.abs(x - t)
    return E.where(z <= delta, 0.5 * z * z, delta * (z - 0.5 * delta))


def _huber_slopes(x: Tensor, t: Tensor, delta: float) -> tuple[Tensor, Tensor]:
    z = x - t
    slope = E.where(z <= -delta, -delta, E.where(z >= delta, delta, z))
    return slope, -slope


_huber = ElementLoss("huber_loss", _huber_element, _huber_slopes)


@composite(namespace=NN, out=False)
def huber_loss(
    input: Tensor, target: Tensor, reduction: Str = "mean", delta: Float = 1.0,
    weight: OptTensor = None,
):  # fmt: skip
    """``0.5 d**2`` where ``d = abs(input - target) <= delta``, else ``delta * (d - delta / 2)``.

    >>> torch.nn.functional.huber_loss(torch.tensor([1., 2.]), torch.tensor([1.5, 4.]))
    tensor(0.8125)
    """
    same_sizes("huber_loss", input, target)
    reduction = reduction_of(None, None, reduction)
    if not delta > 0:
        raise ShapeError("huber_loss: does not support non-positive values for delta.")
    if weight is not None:
        return reduced(_huber(input, target, "none", delta) * weight, reduction)
    return _huber(input, target, reduction, delta)


# ---------------------------------------------------------------------------- binary cross entropy
def _bce_element(x: Tensor, t: Tensor, _: None) -> Tensor:
    low = -100.0  # PyTorch's bound on the logarithms
    return (t - 1) * E.maximum(E.log1p(-x), low) - t * E.maximum(E.log(x), low)


def _bce_slopes(x: Tensor, t: Tensor, _: None) -> tuple[Tensor, Tensor]:
    return (
        (x - t) / E.maximum((1 - x) * x, 1e-12),
        E.maximum(E.log1p(-x), -100.0) - E.maximum(E.log(x), -100.0),
    )


_bce = ElementLoss("binary_cross_entropy", _bce_element, _bce_slopes)


@composite(namespace=NN, out=False)
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: OptTensor = None, size_average: Bool = None,
    reduce: Bool = None, reduction: Str = "mean",
):  # fmt: skip
    """``-(t * log(input) + (1 - t) * log(1 - input))`` for probabilities ``input``.

    >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.5, 0.9]), torch.tensor([0., 1.]))
    tensor(0.3993)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if target._layout.shape != input._layout.shape:
        raise ValueRangeError(
            "binary_cross_entropy: Using a target size ({target}) that is different to the input "
            "size ({input}) is deprecated. Please ensure they have the same size.",
            reason="same size", op="binary_cross_entropy",
            operands=(input._layout, target._layout), target=target._layout.shape,
            input=input._layout.shape,
        )  # fmt: skip
    if target._layout.dtype is not input._layout.dtype:
        raise DtypeError(
            f"binary_cross_entropy: Found dtype {target._layout.dtype} for the target but expected "
            f"{input._layout.dtype}; cast one of them."
        )
    if input._layout.dtype.kind != "f":
        raise UnsupportedDtype.of_dtype("binary_cross_entropy", input._layout.dtype)
    if input._layout.numel:
        low, high = float(T.amin(input.detach()).item()), float(T.amax(input.detach()).item())
        if not (low >= 0 and high <= 1):
            raise ShapeError(
                "binary_cross_entropy: all elements of input should be between 0 and 1",
                reason="probabilities", op="binary_cross_entropy", low=low, high=high,
            )  # fmt: skip
    if weight is None:
        return _bce(input, target, reduction)
    return reduced(_bce(input, target, "none") * weight, reduction)


def _bce_logits(x: Tensor, t: Tensor, _: None) -> Tensor:
    return (1 - t) * x + E.maximum(-x, 0) + E.log1p(E.exp(-E.abs(x)))


_bce_with_logits = ElementLoss(
    "binary_cross_entropy_with_logits", _bce_logits, lambda x, t, _: (E.sigmoid(x) - t, -x)
)


def _bce_positive(input: Tensor, target: Tensor, pos_weight: Tensor) -> Tensor:
    rest = E.log1p(E.exp(-E.abs(input))) + E.maximum(-input, 0)
    return (1 - target) * input + ((pos_weight - 1) * target + 1) * rest


_bce_weighted = PointwiseOp(
    _bce_positive, "float", name="binary_cross_entropy_with_logits_positive", function=False,
    method=False, node="binary_cross_entropy_with_logits",
)  # fmt: skip


@_bce_weighted.derivative
def _(g: E.Expr, input: E.Expr, target: E.Expr, pos_weight: E.Expr) -> tuple[E.Expr, ...]:
    positive = pos_weight * target
    rest = E.log1p(E.exp(-E.abs(input))) + E.maximum(-input, 0)
    to_input = g * ((positive + 1 - target) * E.sigmoid(input) - positive)
    return to_input, g * ((pos_weight - 1) * rest - input), g * target * rest


@composite(namespace=NN, out=False)
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: OptTensor = None, size_average: Bool = None,
    reduce: Bool = None, reduction: Str = "mean", pos_weight: OptTensor = None,
):  # fmt: skip
    """``binary_cross_entropy(sigmoid(input), target)``, without overflow.

    ``pos_weight`` multiplies the losses of positive targets.

    >>> torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor([0.]), torch.tensor([1.]))
    tensor(0.6931)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if target._layout.shape != input._layout.shape:
        raise ValueRangeError(
            "binary_cross_entropy_with_logits: Target size ({target}) must be the same as input "
            "size ({input})",
            reason="same size", op="binary_cross_entropy_with_logits",
            operands=(input._layout, target._layout), target=target._layout.shape,
            input=input._layout.shape,
        )  # fmt: skip
    if target._layout.dtype.kind not in "fc":
        raise DtypeError(
            "binary_cross_entropy_with_logits: result type Float can't be cast to the target's "
            f"{target._layout.dtype}; cast it with target.float()."
        )
    if input._layout.dtype.kind not in "f":
        raise UnsupportedDtype.of_dtype("binary_cross_entropy_with_logits", input._layout.dtype)
    if weight is None and pos_weight is None:
        return _bce_with_logits(input, target, reduction)
    if pos_weight is None:
        losses = _bce_with_logits(input, target, "none")
    else:
        losses = _bce_weighted(input, target, pos_weight)
    return reduced(losses if weight is None else losses * weight, reduction)


# ------------------------------------------------------------------------------------ divergences
def _kl(x: Tensor, t: Tensor, log_target: bool) -> Tensor:
    if log_target:
        return E.exp(t) * (t - x)
    return E.where(E.isnan(t), t, E.where(t == 0, 0.0, t * E.log(t))) - t * x


_kl_div = ElementLoss("kl_div", _kl, node="mean")


@composite(namespace=NN, out=False)
def kl_div(
    input: Tensor, target: Tensor, size_average: Bool = None, reduce: Bool = None,
    reduction: Str = "mean", log_target: Bool = False,
):  # fmt: skip
    """The Kullback-Leibler divergence ``target * (log(target) - input)``; ``input`` is in logs.

    ``reduction="batchmean"`` divides the sum by the batch size, the mathematical definition.

    >>> torch.nn.functional.kl_div(torch.tensor([-1.]), torch.tensor([0.5]), reduction="sum")
    tensor(0.1534)
    """
    for layout in (input._layout, target._layout):
        if layout.dtype.kind != "f":
            raise DtypeError(
                f"kl_div: {layout.dtype} inputs are not supported; cast them to float."
            )
    if reduction == "batchmean":
        total = _kl_div(input, target, "sum", log_target)
        return total / input._layout.shape[0] if input._layout.ndim else total
    reduction = reduction_of(size_average, reduce, reduction)
    if reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
        )
    return _kl_div(input, target, reduction, log_target)


def _poisson_element(x: Tensor, t: Tensor, how: tuple[bool, bool, float]) -> Tensor:
    log_input, full, eps = how
    loss = E.exp(x) - t * x if log_input else x - t * E.log(x + eps)
    if full:
        stirling = t * E.log(t) - t + 0.5 * E.log(2 * math.pi * t)
        loss = loss + E.where(t <= 1, 0.0, stirling)
    return loss


@composite(namespace=NN, out=False)
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: Bool = True, full: Bool = False,
    size_average: Bool = None, eps: Float = 1e-8, reduce: Bool = None, reduction: Str = "mean",
):  # fmt: skip
    """The negative log likelihood of counts ``target`` from Poisson rates ``exp(input)``.

    ``log_input=False``: ``input`` is the rate. ``full`` adds Stirling's term.

    >>> torch.nn.functional.poisson_nll_loss(torch.tensor([0.5]), torch.tensor([2.]))
    tensor(0.6487)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    return reduced(T.poisson_nll_each(input, target, log_input, full, eps), reduction)


def poisson_nll_each(
    input: Tensor, target: Tensor, log_input: Bool, full: Bool, eps: Float
) -> Tensor:
    return _poisson_element(input, target, (log_input, full, eps))


PointwiseOp(poisson_nll_each, "float", function=False, method=False, out=False)


def gaussian_nll_each(input: Tensor, target: Tensor, var: Tensor, full: Bool, eps: Float) -> Tensor:
    safe = E.where(var < eps, eps, var)
    loss = 0.5 * (E.log(safe) + (input - target) * (input - target) / safe)
    return loss + 0.5 * math.log(2 * math.pi) if full else loss


_gaussian = PointwiseOp(gaussian_nll_each, "float", function=False, method=False, out=False)


@_gaussian.derivative
def _(g: E.Expr, input: E.Expr, target: E.Expr, var: E.Expr, eps: float) -> tuple[E.Expr, ...]:
    safe = E.where(var < eps, eps, var)  # the bound is not derived through: PyTorch clamps a copy
    d = (input - target) / safe
    return g * d, -g * d, g * 0.5 * (1 / safe - d * d)


@composite(namespace=NN, out=False)
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: Bool = False, eps: Float = 1e-6,
    reduction: Str = "mean",
):  # fmt: skip
    """The negative log likelihood of ``target`` under normal ``input`` of variance ``var``.

    >>> torch.nn.functional.gaussian_nll_loss(
    ...     torch.tensor([0.]), torch.tensor([1.]), torch.tensor([1.]))
    tensor(0.5000)
    """
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueRangeError("gaussian_nll_loss: var has negative entry/entries")
        var = T.full_like(input, var)
    shape = input._layout.shape
    own = var._layout.shape
    if own != shape:
        if shape[:-1] == own:
            var = T.unsqueeze(var, -1)
        elif len(own) != len(shape) or any(a not in (b, 1) for a, b in zip(own, shape)):
            raise ValueRangeError("gaussian_nll_loss: var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueRangeError(f"{reduction} is not valid")
    if var._layout.numel and float(T.amin(var.detach()).item()) < 0:
        raise ValueRangeError("gaussian_nll_loss: var has negative entry/entries")
    return reduced(T.gaussian_nll_each(input, target, var, full, eps), reduction)


@mse_loss.samples
@l1_loss.samples
@smooth_l1_loss.samples
@huber_loss.samples
def _(make):
    yield make(3, 4), make(3, 4)
    yield (make(3, 4), make(3, 4)), {"reduction": "sum"}
    yield (make(3, 4), make(3, 4)), {"reduction": "none"}


@kl_div.samples
@binary_cross_entropy.samples
@binary_cross_entropy_with_logits.samples
@poisson_nll_loss.samples
def _(make):
    for reduction in ("mean", "sum", "none"):
        pair = make(3, 4, low=0.1, high=0.9), make(3, 4, low=0.1, high=0.9)
        yield pair, {"reduction": reduction}


@gaussian_nll_loss.samples
def _(make):
    yield make(3, 4), make(3, 4), make(3, 4, low=0.5)


@mse_loss.errors
def _(make):
    yield (make(3), make(3)), {"reduction": "average"}, ValueError, "not a valid value"
