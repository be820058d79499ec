"""LocationScale: what the distributions of ``loc + scale * x`` share."""

from __future__ import annotations

from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.distribution import _ABSTRACT, Distribution
from antorcha.distributions.utils import attribute_of, broadcast_all
from antorcha.runtime.tensor import Tensor


class LocationScale(Distribution):
    """A distribution of real numbers with a location and a scale, which broadcast."""

    arg_constraints: Any = {  # noqa: RUF012
        "loc": constraints.real, "scale": constraints.positive,
    }  # fmt: skip
    support: Any = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mode = attribute_of("loc")

    def _standardized(self, value: Any) -> Any:
        return (value - self.loc) / self.scale


_ABSTRACT.add(LocationScale)
