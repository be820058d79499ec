"""TransformedDistribution: what a distribution's draws become under transforms."""

from __future__ import annotations

from typing import Any

from antorcha.autograd import no_grad
from antorcha.core.shapes import Size
from antorcha.distributions import constraints
from antorcha.distributions.distribution import Distribution
from antorcha.distributions.independent import Independent
from antorcha.distributions.transforms import ComposeTransform, Transform
from antorcha.distributions.utils import _sum_rightmost
from antorcha.errors import ValueRangeError

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of ``t(x)`` for draws x of a base distribution.

    ``log p(y) = log p(x) - log |dy/dx|`` with ``x = t.inv(y)``.

    Args:
        base_distribution (Distribution): of x
        transforms (Transform or list of Transform): applied in order
        validate_args (bool, optional): check the arguments?

    >>> d = torch.distributions
    >>> log_normal = d.TransformedDistribution(d.Normal(0.0, 1.0), d.ExpTransform())
    >>> log_normal.log_prob(torch.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints: Any = {}  # noqa: RUF012

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Any,
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(
            isinstance(t, Transform) for t in self.transforms
        ):
            raise ValueRangeError(
                f"transforms must be a Transform or a list of Transforms, but was {transforms}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        base_dims = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        taken, given = whole.domain.event_dim, whole.codomain.event_dim
        if len(shape) < taken:
            raise ValueRangeError(
                f"base_distribution needs to have shape with size at least {taken}, but got "
                f"{shape}."
            )
        result = whole.forward_shape(shape)
        needed = Size(whole.inverse_shape(result))  # larger where the parameters broadcast
        if shape != needed:
            base_distribution = base_distribution.expand(needed[: len(needed) - base_dims])
        if taken > base_dims:
            base_distribution = Independent(base_distribution, taken - base_dims)
        self.base_dist: Any = base_distribution
        cut = len(result) - max(given, base_dims + given - taken)
        super().__init__(Size(result[:cut]), Size(result[cut:]), validate_args=validate_args)

    def _expand_part(self, name: str, value: Any, batch_shape: Size) -> Any:
        if name != "base_dist":
            return super()._expand_part(name, value, batch_shape)
        shape: Any = batch_shape + self.event_shape
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        return value.expand(shape[: len(shape) - len(value.event_shape)])

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self) -> bool:
        """The base's."""
        of_base: bool = self.base_dist.has_rsample
        return of_base

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Any) -> Any:
        for t in self.transforms:
            x = t(x)
        return x

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        dims = len(self.event_shape)
        result: Any = 0.0
        y = value
        for t in reversed(self.transforms):
            x = t.inv(y)
            dims += t.domain.event_dim - t.codomain.event_dim
            jacobian = t.log_abs_det_jacobian(x, y)
            result = result - _sum_rightmost(jacobian, dims - t.domain.event_dim)
            y = x
        of_base = self.base_dist.log_prob(y)
        return result + _sum_rightmost(of_base, dims - len(self.base_dist.event_shape))

    def _monotonized(self, value: Any) -> Any:
        """A probability, mirrored where the transforms together are decreasing."""
        sign: Any = 1
        for t in self.transforms:
            sign = sign * t.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for t in reversed(self.transforms):
            value = t.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonized(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._forward(self.base_dist.icdf(self._monotonized(value)))
