"""Independent: batch dims of a distribution taken as dims of its events."""

from __future__ import annotations

from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.distribution import Distribution
from antorcha.distributions.utils import _sum_rightmost, attribute_of
from antorcha.errors import MissingFeature, ValueRangeError

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last batch dims count as dims of one event.

    ``log_prob`` sums over them: a batch of numbers becomes one vector with independent parts.

    Args:
        base_distribution (Distribution): what it is made of
        reinterpreted_batch_ndims (int): how many batch dims become event dims
        validate_args (bool, optional): check the arguments?

    >>> d = torch.distributions.Independent(torch.distributions.Normal(torch.zeros(3), 1.0), 1)
    >>> d.batch_shape, d.event_shape
    (torch.Size([]), torch.Size([3]))
    """

    arg_constraints: Any = {}  # noqa: RUF012

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        dims = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > dims:
            raise ValueRangeError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {dims}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = dims - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def __class_getitem__(cls, base: Any) -> Any:
        return cls  # annotations say Independent[Normal]

    @property
    def has_rsample(self) -> bool:
        """The base's."""
        of_base: bool = self.base_dist.has_rsample
        return of_base

    @property
    def has_enumerate_support(self) -> bool:
        """The base's, where no dim is taken."""
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        result = self.base_dist.support
        if self.reinterpreted_batch_ndims:
            result = constraints.independent(result, self.reinterpreted_batch_ndims)
        return result

    mean = attribute_of("base_dist.mean")
    mode = attribute_of("base_dist.mode")
    variance = attribute_of("base_dist.variance")

    def sample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        if self.reinterpreted_batch_ndims > 0:
            raise MissingFeature("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
