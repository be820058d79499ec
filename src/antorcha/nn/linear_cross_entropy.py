"""Cross entropy of a linear layer's outputs: the last layer of a language model and its loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from antorcha.core import dtypes
from antorcha.errors import ShapeError, ValueRangeError
from antorcha.nn import functional as F
from antorcha.nn.linear import Linear
from antorcha.nn.loss import _WeightedLoss

_POLICIES = ("auto", "accurate", "balanced", "compact")


@dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """How PyTorch may compute ``linear_cross_entropy`` in parts, to save memory.

    Checked and kept; here the loss is computed in one part, with the same numbers, gradients of any
    order, and the memory of the logits.

    Args:
        allow_retain_graph (bool): may ``backward`` be called twice? It always may here.
        batch_chunk_size (int, optional): rows of a part
        chunking_method (str, optional): ``'auto'``, ``'aspect_ratio'``, ``'aspect_ratio:N'``
        acc_policy (str): ``'auto'``, ``'accurate'``, ``'balanced'`` or ``'compact'``
        acc_dtype (torch.dtype, optional): of the sums

    Raises ValueError for other values.

    >>> torch.nn.LinearCrossEntropyOptions(batch_chunk_size=64).batch_chunk_size
    64
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise ValueRangeError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, colon, factor = str(self.chunking_method).partition(":")
            by_ratio = name == "aspect_ratio"
            if not by_ratio or (colon and not (factor.isdigit() and int(factor) > 0)):
                raise ValueRangeError(f"invalid chunking_method: {self.chunking_method!r}")
        rows: Any = self.batch_chunk_size
        if rows is not None and not (isinstance(rows, int) and rows > 0):
            raise ValueRangeError(f"batch_chunk_size must be positive int or None, got {rows!r}")
        floating = (None, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
        if self.acc_dtype not in floating:
            raise ValueRangeError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, "
                f"torch.float64}}, got {self.acc_dtype!r}. Pass acc_dtype=None to let the op pick "
                "automatically."
            )


def linear_cross_entropy(
    input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None,
    reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Any:  # fmt: skip
    """``cross_entropy(linear(input, linear_weight, linear_bias), target)``.

    Args:
        input (Tensor): ``(N, in_features)`` or ``(in_features)``
        linear_weight (Tensor): ``(C, in_features)`` or ``(C, d1, ..., dK, in_features)``
        target (Tensor): class numbers ``(N, d1, ..., dK)``, or probabilities of the logits' shape
        linear_bias (Tensor, optional): ``(C, d1, ..., dK)``
        weight (Tensor, optional): a weight for each class ``(C)``
        reduction (str): ``'mean'``, ``'sum'`` or ``'none'``. Default: ``'mean'``
        ignore_index (int, optional): targets with this value do not count. Default: -100
        label_smoothing (float): this share of the target is spread over all classes. Default: 0.0
        options (LinearCrossEntropyOptions, optional): accepted; the numbers do not depend on it

    See https://docs.pytorch.org/docs/stable/generated/
    torch.nn.functional.linear_cross_entropy.html.

    >>> x, w = torch.zeros(1, 3), torch.ones(2, 3)
    >>> torch.nn.functional.linear_cross_entropy(x, w, torch.tensor([1]))
    tensor(0.6931)
    """
    if input.dim() not in (1, 2) or linear_weight.dim() < 2:
        raise ShapeError(
            "linear_cross_entropy: expected input (N, in_features) or (in_features) and "
            f"linear_weight (C, ..., in_features), got {tuple(input.shape)} and "
            f"{tuple(linear_weight.shape)}"
        )
    *batch, features = input.shape
    classes, *more, weight_features = linear_weight.shape
    if weight_features != features:
        raise ShapeError(
            f"linear_cross_entropy: linear_weight {tuple(linear_weight.shape)} does not fit the "
            f"{features} features of the input {tuple(input.shape)}"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *more):
        raise ShapeError(
            f"linear_cross_entropy: expected linear_bias shape {(classes, *more)}, got "
            f"{tuple(linear_bias.shape)}"
        )
    if more and not batch:
        raise ShapeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} "
            f"requires batched input, (N, {features}), got unbatched input with shape "
            f"{tuple(input.shape)}"
        )
    shape = (*batch, classes, *more)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise ShapeError("ignore_index cannot be specified when target contains probabilities")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = F.linear(input, linear_weight.reshape(-1, features), bias).reshape(shape)
    return F.cross_entropy(
        logits, target, weight=weight, reduction=reduction, label_smoothing=label_smoothing,
        ignore_index=-100 if ignore_index is None else ignore_index,
    )  # fmt: skip


class LinearCrossEntropyLoss(_WeightedLoss):
    """``cross_entropy(linear(x), y)``: a linear layer without its own output, and its loss.

    Args:
        in_features (int): size of the input's last dim
        num_classes (int): number of classes C
        out_features (tuple of int): dims ``(d1, ..., dK)`` of a loss for each. Default: ``()``
        bias (bool): does the layer add a learnt bias? Default: False
        weight (Tensor, optional): a weight for each class ``(C)``
        reduction (str): ``'mean'``, ``'sum'`` or ``'none'``. Default: ``'mean'``
        ignore_index (int, optional): targets with this value do not count. Default: -100
        label_smoothing (float): this share of the target is spread over all classes. Default: 0.0
        options (LinearCrossEntropyOptions, optional): accepted; the numbers do not depend on it

    Shape: input ``(N, in_features)``, target ``(N, d1, ..., dK)`` of class numbers; the result is a
    number, or the target's shape with ``'none'``. ``linear.weight`` is initialised as Linear's.

    >>> loss = torch.nn.LinearCrossEntropyLoss(4, 3)
    >>> loss(torch.zeros(2, 4), torch.tensor([0, 2]))
    tensor(1.0986, grad_fn=<NllLossBackward0>)
    """

    __constants__ = [  # noqa: RUF012
        "num_classes", "out_features", "reduction", "ignore_index", "label_smoothing",
    ]  # fmt: skip

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (),
        bias: bool = False, device: Any = None, dtype: Any = None, reduction: str = "mean",
        weight: Any = None, ignore_index: int | None = None, label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:  # fmt: skip
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise ShapeError(
                f"LinearCrossEntropyLoss: expected weight shape to be ({num_classes},), got "
                f"{tuple(weight.shape)}"
            )
        if not 0.0 <= label_smoothing <= 1.0:
            raise ShapeError(
                "LinearCrossEntropyLoss: expected label_smoothing to be in range [0, 1], got "
                f"{label_smoothing}"
            )
        super().__init__(weight, None, None, reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        outputs = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, outputs, bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Any, target: Any) -> Any:
        """The loss."""
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape(*shape, self.linear.in_features), target,
            linear_bias=None if bias is None else bias.reshape(shape), weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
