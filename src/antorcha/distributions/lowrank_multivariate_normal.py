"""LowRankMultivariateNormal: normal vectors moved by few causes."""

from __future__ import annotations

import math
from typing import Any

from antorcha.core.shapes import Size
from antorcha.distributions import constraints
from antorcha.distributions.distribution import Distribution
from antorcha.distributions.multivariate_normal import log_diagonal, mahalanobis, matrix_vector
from antorcha.distributions.utils import _standard_normal, attribute_of, lazy_property
from antorcha.errors import ValueRangeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

__all__ = ["LowRankMultivariateNormal"]


def _one_plus(matrix: Tensor) -> Any:
    return matrix + T.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


class LowRankMultivariateNormal(Distribution):
    """A multivariate normal distribution of covariance ``W @ W.mT + diag(D)``, W of few columns.

    Determinant and inverse need only the *capacitance* ``I + W.mT @ diag(1 / D) @ W``, a matrix of
    W's columns (the matrix determinant lemma, and the Woodbury identity).

    Args:
        loc (Tensor): the mean, of shape ``(.., n)``
        cov_factor (Tensor): W, of shape ``(.., n, m)``
        cov_diag (Tensor): D, of shape ``(.., n)``, positive
        validate_args (bool, optional): check the arguments?

    >>> d = torch.distributions.LowRankMultivariateNormal(
    ...     torch.zeros(2), torch.tensor([[1.], [0.]]), torch.ones(2))
    >>> d.variance
    tensor([2., 1.])
    """

    arg_constraints: Any = {  # noqa: RUF012
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support: Any = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1:
            raise ValueRangeError("loc must be at least one-dimensional.")
        n = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueRangeError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2:-1] != n:
            raise ValueRangeError(f"cov_factor must be a batch of matrices with shape {n[0]} x m")
        if cov_diag.shape[-1:] != n:
            raise ValueRangeError(f"cov_diag must be a batch of vectors with shape {n}")
        try:
            columns = loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            mean, self.cov_factor, diagonal = T.broadcast_tensors(*columns)
        except RuntimeError as error:
            raise ValueRangeError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = mean[..., 0], diagonal[..., 0]
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = T.linalg_cholesky(_one_plus(self._scaled_factor() @ cov_factor))
        super().__init__(Size(self.loc.shape[:-1]), n, validate_args=validate_args)

    def _scaled_factor(self) -> Any:
        """``W.mT @ diag(1 / D)``."""
        return self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)

    def _whitened_factor(self) -> Any:
        """The same, divided by the capacitance's factor."""
        return T.linalg_solve_triangular(self._capacitance_tril, self._scaled_factor(), upper=False)

    def _log_det(self) -> Any:
        of_diagonal = self._unbroadcasted_cov_diag.log().sum(-1)
        return 2 * log_diagonal(self._capacitance_tril) + of_diagonal

    def _distance(self, x: Tensor) -> Any:
        """The Mahalanobis distance of x from 0."""
        along = mahalanobis(self._capacitance_tril, matrix_vector(self._scaled_factor(), x))
        return (x.pow(2) / self._unbroadcasted_cov_diag).sum(-1) - along

    def _spread(self, matrix: Tensor) -> Any:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    mean = mode = attribute_of("loc")

    @lazy_property
    def variance(self) -> Any:
        of_factor = self._unbroadcasted_cov_factor.pow(2).sum(-1)
        return (of_factor + self._unbroadcasted_cov_diag).expand(self.loc.shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower Cholesky factor of the covariance."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        return self._spread(root * T.linalg_cholesky(_one_plus(scaled @ scaled.mT)))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """``W @ W.mT + diag(D)``."""
        factor = self._unbroadcasted_cov_factor
        return self._spread(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        a = self._whitened_factor()
        return self._spread(self._unbroadcasted_cov_diag.reciprocal().diag_embed() - a.mT @ a)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        like = self.loc.dtype, self.loc.device
        causes = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], *like)
        noise = _standard_normal(shape, *like)
        moved = self.loc + matrix_vector(self._unbroadcasted_cov_factor, causes)
        return moved + self._unbroadcasted_cov_diag.sqrt() * noise

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        normalizer = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (normalizer + self._log_det() + self._distance(value - self.loc))

    def entropy(self) -> Any:
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (0.5 * (constant + self._log_det())).expand(self._batch_shape)
