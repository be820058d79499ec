"""LKJCholesky: Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

from antorcha.core.dtypes import finfo
from antorcha.core.shapes import Size
from antorcha.distributions import constraints
from antorcha.distributions.beta import Beta
from antorcha.distributions.distribution import Distribution
from antorcha.distributions.utils import broadcast_all
from antorcha.errors import ValueRangeError
from antorcha.ops.kinds.record import T

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """The LKJ distribution of correlation matrices M, ``~ det(M)**(eta - 1)``, by their factor.

    eta = 1 makes all alike; larger ones prefer the identity. Draws follow the onion method of
    Lewandowski, Kurowicka & Joe, "Generating random correlation matrices based on vines and
    extended onion method" (2009).

    Args:
        dim (int): the matrices' size, 2 or more
        concentration (float or Tensor): eta, positive. Default: 1
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.LKJCholesky(3, 0.5).sample().shape
    torch.Size([3, 3])
    """

    arg_constraints: Any = {"concentration": constraints.positive}  # noqa: RUF012
    support: Any = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueRangeError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        # row k of the factor: its length beside the diagonal is the root of a beta number
        offset = T.cat([T.zeros(1, **like), T.arange(dim - 1, **like)])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        shape = self.concentration.shape
        super().__init__(shape, Size((dim, dim)), validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        normal = T.randn(shape, dtype=y.dtype, device=y.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :] = 0.0
        w = y.sqrt() * direction
        diagonal = (1 - (w**2).sum(-1)).clamp(min=finfo(w.dtype).tiny).sqrt()
        return w + diagonal.diag_embed()

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        eta, rows = self.concentration, self.dim - 1
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = T.arange(2, self.dim + 1, device=eta.device)
        order = 2 * (eta - 1).unsqueeze(-1) + self.dim - order
        density = (order * diagonal.log()).sum(-1)
        # the normaliser is that of page 1999 of the paper
        alpha = eta + 0.5 * rows
        numerator = T.mvlgamma(alpha - 0.5, rows)
        return density - (0.5 * rows * math.log(math.pi) + numerator - alpha.lgamma() * rows)
