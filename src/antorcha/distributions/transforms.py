"""Transforms: functions of tensors that know their inverse and the logarithm of their Jacobian.

``t(x)`` goes forward, ``t.inv(y)`` back, ``t.log_abs_det_jacobian(x, y)`` gives ``log |dy/dx|``.
This file has those that work element by element; ``transform`` has what all are made of,
``vector_transforms`` those of vectors, matrices and parts of a tensor.
See https://docs.pytorch.org/docs/stable/distributions.html#module-torch.distributions.transforms.
"""

from __future__ import annotations

import math
from typing import Any

from antorcha.core.dtypes import finfo
from antorcha.core.shapes import Size, broadcast_shapes
from antorcha.distributions import constraints
from antorcha.distributions.transform import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    _InverseTransform,  # noqa: F401  (libraries ask for it here)
    identity_transform,
    with_event_dim,
)
from antorcha.distributions.utils import (
    _sum_rightmost,
    attribute_of,
    broadcast_all,
    clipped_sigmoid,
    lazy_property,
)
from antorcha.distributions.vector_transforms import (
    CatTransform,
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform",
    "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


class _Elementwise(Transform):
    """A bijection of numbers without parameters, increasing; equal to all of its class."""

    domain = constraints.real
    bijective: Any = True
    sign: Any = +1

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)


class ExpTransform(_Elementwise):
    """``y = exp(x)``."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class _Broadcast(Transform):
    """A transform with parameters, named by `_parameters`, that broadcast against the input."""

    _parameters: tuple[str, ...]

    def _broadcast_shape(self, shape: Any) -> Any:
        shapes = [getattr(getattr(self, name), "shape", ()) for name in self._parameters]
        return Size(broadcast_shapes(shape, *shapes, op=type(self).__name__))

    def forward_shape(self, shape: Any) -> Any:
        return self._broadcast_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._broadcast_shape(shape)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        return all(_same(getattr(self, n), getattr(other, n)) for n in self._parameters)


def _same(a: Any, b: Any) -> bool:
    equal = a == b
    return bool(equal.all()) if isinstance(equal, Tensor) else bool(equal)


class PowerTransform(_Broadcast):
    """``y = x ** exponent`` for positive numbers.

    Args:
        exponent (float or Tensor): the power
        cache_size (int): see :class:`Transform`. Default: 0
    """

    domain = codomain = constraints.positive
    bijective = True
    _parameters = ("exponent",)

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self) -> Any:
        return self.exponent.sign()

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(_Elementwise):
    """``y = 1 / (1 + exp(-x))``."""

    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Any:
        return clipped_sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        info = finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -T.softplus(-x) - T.softplus(x)


class SoftplusTransform(_Elementwise):
    """``y = log(1 + exp(x))``; from x = 20 on, x itself."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return T.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -T.softplus(-x)


class TanhTransform(_Elementwise):
    """``y = tanh(x)``; the cache (``cache_size=1``) avoids the inverse's poles."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        # log(1 - tanh(x)**2), written so that it does not cancel
        return 2.0 * (math.log(2.0) - x - T.softplus(-2.0 * x))


class AbsTransform(Transform):
    """``y = |x|``; the inverse is the positive one."""

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(_Broadcast):
    """``y = loc + scale * x``.

    Args:
        loc (float or Tensor): what is added
        scale (float or Tensor): what is multiplied by
        event_dim (int): how many dims make one event. Default: 0
        cache_size (int): see :class:`Transform`. Default: 0

    >>> torch.distributions.AffineTransform(1.0, 2.0).inv(torch.tensor([5.]))
    tensor([2.])
    """

    bijective = True
    _parameters = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale = loc, scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return with_event_dim(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self.domain

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if isinstance(self.scale, Tensor):
            result = self.scale.abs().log()
        else:
            result = T.full_like(x, math.log(abs(self.scale)))
        kept = x.dim() - self.event_dim
        return _sum_rightmost(result, self.event_dim).expand(x.shape[:kept])


class CumulativeDistributionTransform(Transform):
    """``y = cdf(x)`` of a distribution of numbers.

    Args:
        distribution (Distribution): whose cdf and icdf it is
        cache_size (int): see :class:`Transform`. Default: 0
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = attribute_of("distribution.support")

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)
