"""Dropout and its relatives: parts of the input become zero at random, the rest grows.

As in PyTorch the noise is drawn by ``bernoulli_(1 - p)`` into a tensor like the input (or with one
value a channel) and multiplied: the masks are PyTorch's bit for bit; ``grad_fn`` is a product's.
"""

from __future__ import annotations

import math

from antorcha.core import dtypes
from antorcha.errors import RandomError, ShapeError, warn
from antorcha.ops.create import unwritten
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.sampler import unrecorded
from antorcha.ops.kinds.types import Any, Bool, Float, Tensor
from antorcha.ops.memory import strides_of_format

ALPHA = 1.7580993408473766
"""selu's limit at minus infinity, negated: what alpha dropout replaces values by."""
F = "nn.functional."


def check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise RandomError(f"dropout probability has to be between 0 and 1, but got {p}")


def _noise(name: str, input: Tensor, p: float, feature: bool) -> Tensor:
    """What to multiply by, before scaling: one with probability 1 - p, else zero."""
    layout = input._layout
    if feature:
        if layout.ndim < 2:
            raise ShapeError(
                f"{name}: Feature dropout requires at least 2 dimensions in the input, got shape "
                f"{tuple(layout.shape)}"
            )
        shape = (*layout.shape[:2], *[1] * (layout.ndim - 2))
        result = unwritten(shape, layout.dtype, layout.device)
    else:
        strides = strides_of_format(layout.shape, layout.strides, "preserve")
        result = unwritten(layout.shape, layout.dtype, layout.device, strides)
    return T.bernoulli_(result, 1 - p)


def _dropped(
    name: str, input: Tensor, p: float, training: bool, inplace: bool, feature: bool = False,
    alpha: bool = False,
) -> Tensor:  # fmt: skip
    """The one way of all forms."""
    check_probability(p)
    if p == 0 or not training or not input._layout.numel:
        return input
    multiply = T.mul_ if inplace else T.mul
    if p == 1:
        layout = input._layout
        return multiply(input, T.full_layout((), 0, layout.dtype, layout.device))
    shift = None
    with unrecorded():
        noise = _noise(name, input, p, feature)
        if alpha:
            scale = 1.0 / math.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
            shift = T.add_(T.mul_(T.add(noise, -1), ALPHA * scale), ALPHA * scale * p)
            T.mul_(noise, scale)
        else:
            T.div_(noise, 1 - p)
    result = multiply(input, noise)
    return result if shift is None else T.add_(result, shift)


@composite(method=False, out=False, aliases=(F + "dropout",))
def dropout(input: Tensor, p: Float = 0.5, training: Bool = True, inplace: Bool = False):
    """Each element becomes 0 with probability ``p``; the others are divided by ``1 - p``.

    Nothing changes when not ``training``: the result is the input itself.

    >>> _ = torch.manual_seed(42)
    >>> torch.nn.functional.dropout(torch.ones(6))
    tensor([2., 2., 2., 2., 0., 2.])
    """
    return _dropped("dropout", input, p, training, inplace)


@composite(method=False, out=False, page=False)
def feature_dropout(input: Tensor, p: Float, training: Bool, inplace: Bool = False):
    """Dropout of whole channels, the second dim.

    >>> torch.feature_dropout(torch.ones(1, 2, 3), 0.0, True).shape
    torch.Size([1, 2, 3])
    """
    return _dropped("feature_dropout", input, p, training, inplace, feature=True)


def _of_channels(
    name: str, input: Tensor, p: float, training: bool, inplace: bool, plain: tuple[int, ...]
) -> Tensor:
    """dropout2d and 3d: PyTorch warns of shapes that are none of theirs."""
    check_probability(p)
    ndim = input._layout.ndim
    if ndim not in plain:
        warn(
            f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in "
            "an error in a future release. To retain the behavior and silence this warning, please "
            "use dropout instead.",
        )
    return _dropped(name, input, p, training, inplace, feature=True)


@composite(method=False, namespace="nn.functional", out=False)
def dropout1d(input: Tensor, p: Float = 0.5, training: Bool = True, inplace: Bool = False):
    """Dropout of whole channels of a ``(C, L)`` or ``(N, C, L)`` input.

    >>> torch.nn.functional.dropout1d(torch.ones(2, 3), training=False).shape
    torch.Size([2, 3])
    """
    return _maybe_unbatched("dropout1d", input, p, training, inplace, (2, 3))


def _maybe_unbatched(
    name: str, input: Tensor, p: float, training: bool, inplace: bool, dims: tuple[int, int]
) -> Tensor:
    check_probability(p)
    ndim = input._layout.ndim
    if ndim not in dims:
        raise ShapeError(
            f"{name}: Expected {dims[0]}D or {dims[1]}D input, but received a {ndim}D input of "
            f"shape {tuple(input._layout.shape)}"
        )
    if ndim == dims[1]:
        return _dropped(name, input, p, training, inplace, feature=True)
    done = _dropped(name, T.unsqueeze(input, 0), p, training, inplace, feature=True)
    return input if inplace else T.squeeze(done, 0)


@composite(method=False, namespace="nn.functional", out=False)
def dropout2d(input: Tensor, p: Float = 0.5, training: Bool = True, inplace: Bool = False):
    """Dropout of whole channels of a ``(N, C, H, W)`` input.

    >>> torch.nn.functional.dropout2d(torch.ones(1, 2, 3, 3), training=False).shape
    torch.Size([1, 2, 3, 3])
    """
    if input._layout.ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim.",
        )
    return _of_channels("dropout2d", input, p, training, inplace, (3, 4))


@composite(method=False, namespace="nn.functional", out=False)
def dropout3d(input: Tensor, p: Float = 0.5, training: Bool = True, inplace: Bool = False):
    """Dropout of whole channels of a ``(C, D, H, W)`` or ``(N, C, D, H, W)`` input.

    >>> torch.nn.functional.dropout3d(torch.ones(1, 2, 3, 3, 3), training=False).shape
    torch.Size([1, 2, 3, 3, 3])
    """
    ndim = input._layout.ndim
    if ndim in (4, 5):
        return _maybe_unbatched("dropout3d", input, p, training, inplace, (4, 5))
    return _of_channels("dropout3d", input, p, training, inplace, (4, 5))


@composite(method=False, out=False, aliases=(F + "alpha_dropout",))
def alpha_dropout(input: Tensor, p: Float = 0.5, training: Bool = False, inplace: Bool = False):
    """Dropout that keeps the mean and variance of what selu gives.

    >>> torch.nn.functional.alpha_dropout(torch.ones(2))
    tensor([1., 1.])
    """
    return _dropped("alpha_dropout", input, p, training, inplace, alpha=True)


@composite(method=False, out=False, aliases=(F + "feature_alpha_dropout",))
def feature_alpha_dropout(
    input: Tensor, p: Float = 0.5, training: Bool = False, inplace: Bool = False
):
    """Alpha dropout of whole channels, the second dim.

    >>> torch.nn.functional.feature_alpha_dropout(torch.ones(1, 2))
    tensor([[1., 1.]])
    """
    return _dropped("feature_alpha_dropout", input, p, training, inplace, feature=True, alpha=True)


@composite(method=False, out=False, page=False)
def native_dropout(input: Tensor, p: Float, train: Any):
    """Dropout, and which elements it has kept.

    >>> torch.native_dropout(torch.ones(2), 0.5, False)
    (tensor([1., 1.]), tensor([True, True]))
    """
    check_probability(p)
    kept = T.ones_like(input, dtype=dtypes.bool_, memory_format="contiguous")
    if train is not None and not train:
        return T.clone(input), kept
    T.bernoulli_(kept, 1 - p)
    return T.mul(input, kept) * (1 / (1 - p) if p < 1 else 0), kept


for _each in (dropout, feature_dropout, dropout1d, dropout2d, dropout3d, alpha_dropout,
              feature_alpha_dropout, native_dropout):  # fmt: skip
    _each.random = True  # two calls differ


@dropout.errors
def _(make):
    yield (make(3), 1.5), {}, RuntimeError, "between 0 and 1"
    yield (make(3), 1.5), {}, ValueError, "between 0 and 1"


@dropout1d.errors
def _(make):
    yield (make(3),), {}, RuntimeError, "Expected 2D or 3D"
