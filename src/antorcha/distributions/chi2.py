"""Chi2: the sum of squares of normal numbers."""

from __future__ import annotations

from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The chi-squared distribution: a gamma distribution of shape ``df / 2`` and rate 1/2.

    Args:
        df (float or Tensor): the degrees of freedom, positive
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Chi2(3.0).mean
    tensor(3.)
    """

    arg_constraints: Any = {"df": constraints.positive}  # noqa: RUF012

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self.concentration * 2
