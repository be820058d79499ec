"""MultivariateNormal: normal vectors with a covariance."""

from __future__ import annotations

import math
from typing import Any

from antorcha.core.shapes import Size, broadcast_shapes
from antorcha.distributions import constraints
from antorcha.distributions.distribution import Distribution
from antorcha.distributions.utils import _standard_normal, attribute_of, lazy_property
from antorcha.errors import ValueRangeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

__all__ = ["MultivariateNormal"]

FORMS = ("covariance_matrix", "precision_matrix", "scale_tril")


class WithCovariance(Distribution):
    """A distribution with a covariance, given itself, by its inverse or by its Cholesky factor.

    The forms that were not given are computed when they are first asked for. The factor is kept as
    it was given, too, without the batch's dims: most formulas need no more.
    """

    _unbroadcasted_scale_tril: Tensor

    def _set_form(self, given: dict[str, Any], shape: Any) -> Size:
        """Sets the one that is not None, expanded to `shape` beside its own batch dims."""
        ((name, matrix),) = [(k, v) for k, v in given.items() if v is not None]
        if matrix.dim() < 2:
            raise ValueRangeError(
                f"{name} matrix must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        batch_shape = Size(broadcast_shapes(matrix.shape[:-2], shape, op=type(self).__name__))
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        return batch_shape

    def _set_factor(self, given: dict[str, Any]) -> None:
        if given["scale_tril"] is not None:
            self._unbroadcasted_scale_tril = given["scale_tril"]
        elif given["covariance_matrix"] is not None:
            self._unbroadcasted_scale_tril = T.linalg_cholesky(given["covariance_matrix"])
        else:
            self._unbroadcasted_scale_tril = factor_of_inverse(given["precision_matrix"])

    def _spread(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Any:
        """The lower Cholesky factor L of the covariance ``L @ L.mT``."""
        return self._spread(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._spread(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return self._spread(T.cholesky_inverse(self._unbroadcasted_scale_tril))

    def _half_log_det(self) -> Any:
        return log_diagonal(self._unbroadcasted_scale_tril)


def log_diagonal(factor: Tensor) -> Any:
    """Half the logarithm of the determinant of ``factor @ factor.mT``."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def matrix_vector(matrix: Tensor, vector: Tensor) -> Any:
    """The product, both with batch dims."""
    return T.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def mahalanobis(factor: Tensor, x: Tensor) -> Any:
    """``x @ inverse(factor @ factor.mT) @ x``."""
    if factor.dim() == 2:  # one matrix: the vectors are columns of one system
        columns = x.reshape(-1, x.shape[-1]).mT
        solved = T.linalg_solve_triangular(factor, columns, upper=False)
        return solved.pow(2).sum(0).reshape(x.shape[:-1])
    solved = T.linalg_solve_triangular(factor, x.unsqueeze(-1), upper=False)
    return solved.pow(2).sum((-2, -1))


def factor_of_inverse(precision: Tensor) -> Any:
    """The lower Cholesky factor of a precision's inverse."""
    # Cholesky of the flipped matrix gives an upper factor U U^T of the precision; L is its inverse
    flipped = T.linalg_cholesky(T.flip(precision, (-2, -1)))
    upper = T.flip(flipped, (-2, -1)).mT
    identity = T.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return T.linalg_solve_triangular(upper, identity, upper=False)


class MultivariateNormal(WithCovariance):
    """The multivariate normal distribution, ``~ exp(-(x - loc)^T C^-1 (x - loc) / 2)``.

    Support: vectors. Of covariance_matrix, precision_matrix and scale_tril one is given; a Cholesky
    factor (scale_tril) saves a factorisation.

    Args:
        loc (Tensor): the mean
        covariance_matrix (Tensor): C, positive definite
        precision_matrix (Tensor): its inverse, positive definite
        scale_tril (Tensor): its lower Cholesky factor
        validate_args (bool, optional): check the arguments?

    >>> d = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    >>> d.log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints: Any = {  # noqa: RUF012
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support: Any = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueRangeError("loc must be at least one-dimensional.")
        given = dict(zip(FORMS, (covariance_matrix, precision_matrix, scale_tril), strict=True))
        if sum(form is not None for form in given.values()) != 1:
            raise ValueRangeError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        batch_shape = self._set_form(given, loc.shape[:-1])
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._set_factor(given)

    mean = mode = attribute_of("loc")

    @property
    def variance(self) -> Any:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self.loc.shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + matrix_vector(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Any) -> Any:
        self._check(value)
        distance = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        normalizer = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (normalizer + distance) - self._half_log_det()

    def entropy(self) -> Any:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (constant + self._half_log_det()).expand(self._batch_shape)
