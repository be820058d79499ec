"""Wishart: estimated covariances."""

from __future__ import annotations

import math
from typing import Any

from antorcha.core.dtypes import finfo
from antorcha.core.shapes import Size
from antorcha.distributions import constraints
from antorcha.distributions.chi2 import Chi2
from antorcha.distributions.exp_family import ExponentialFamily
from antorcha.distributions.multivariate_normal import FORMS, WithCovariance
from antorcha.errors import ValueRangeError, warn
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import tensor

__all__ = ["Wishart"]

_LOG_2 = math.log(2)
_TRIES = 10  # to replace draws that are not positive definite


class Wishart(WithCovariance, ExponentialFamily):
    """The Wishart distribution: ``X.mT @ X`` for `df` normal rows of a covariance.

    Density ``~ det(W)**((df - p - 1) / 2) exp(-trace(C^-1 W) / 2)``. Support: positive definite
    ``p x p`` matrices. Draws are made by Bartlett's decomposition.

    Args:
        df (float or Tensor): the degrees of freedom, above ``p - 1``
        covariance_matrix (Tensor): C, positive definite
        precision_matrix (Tensor): its inverse, positive definite
        scale_tril (Tensor): its lower Cholesky factor
        validate_args (bool, optional): check the arguments?

    >>> torch.distributions.Wishart(torch.tensor(3.0), torch.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support: Any = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = dict(zip(FORMS, (covariance_matrix, precision_matrix, scale_tril), strict=True))
        if sum(form is not None for form in given.values()) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        matrix = next(form for form in given.values() if form is not None)
        if not isinstance(df, Tensor):
            df = tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape = self._set_form(given, df.shape)
        self.df = df.expand(batch_shape)
        event_shape = Size(matrix.shape[-2:])
        p = event_shape[-1]
        if self.df.le(p - 1).any():
            raise ValueRangeError(
                f"Value of df={df} expected to be greater than ndim - 1 = {p - 1}."
            )
        if self.df.lt(p).any():
            warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 "
                "< df < ndim."
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._set_factor(given)
        factor = self._unbroadcasted_scale_tril
        index = T.arange(p, dtype=factor.dtype, device=factor.device)
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - index)

    @property
    def arg_constraints(self) -> Any:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def _of_matrices(self, numbers: Any) -> Any:
        """A number for each matrix, as a factor of it."""
        return numbers.view((*self._batch_shape, 1, 1))

    @property
    def mean(self) -> Any:
        return self._of_matrices(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Any:
        factor = self.df - self._event_shape[-1] - 1
        return self._of_matrices(T.where(factor <= 0, math.nan, factor)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._of_matrices(self.df) * (covariance.pow(2) + outer)

    def _bartlett(self, sample_shape: Any) -> Any:
        """Draws: the factor times a triangle of chi numbers on the diagonal, normal ones below."""
        p = self._event_shape[-1]
        chi = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = chi.clamp(min=finfo(chi.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        i, j = T.tril_indices(p, p, offset=-1)
        shape = (*Size(sample_shape), *self._batch_shape, p * (p - 1) // 2)
        noise[..., i, j] = T.randn(shape, dtype=noise.dtype, device=noise.device)
        root = self._unbroadcasted_scale_tril @ noise
        return root @ root.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Any:
        self._bartlett(sample_shape)  # PyTorch draws twice and keeps the second: the same numbers
        sample = self._bartlett(sample_shape)
        singular = ~self.support.check(sample)
        if singular.any():
            warn("Singular sample detected.")
        for _ in range(_TRIES if max_try_correction is None else max_try_correction):
            if not singular.any():
                break
            redrawn = self._bartlett(sample_shape)
            sample = T.where(singular[..., None, None], redrawn, sample)
            singular = ~self.support.check(sample)
        return sample

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        nu, p = self.df, self._event_shape[-1]
        solved = T.cholesky_solve(value, self._unbroadcasted_scale_tril)
        return (
            -nu * (p * _LOG_2 / 2 + self._half_log_det())
            - T.mvlgamma(nu / 2, p)
            + (nu - p - 1) / 2 * T.linalg_slogdet(value).logabsdet
            - solved.diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )

    def entropy(self) -> Any:
        nu, p = self.df, self._event_shape[-1]
        halves = T.arange(p, dtype=nu.dtype, device=nu.device).div(2)
        slope = ((nu / 2).unsqueeze(-1) - halves).digamma().sum(-1)  # that of mvlgamma
        return (
            (p + 1) * (p * _LOG_2 / 2 + self._half_log_det())
            + T.mvlgamma(nu / 2, p)
            - (nu - p - 1) / 2 * slope
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> Any:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        p = self._event_shape[-1]
        power = y + (p + 1) / 2
        log_det = T.linalg_slogdet(-2 * x).logabsdet
        return power * (-log_det + _LOG_2 * p) + T.mvlgamma(power, p)
