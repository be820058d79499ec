"""Transforms of vectors and matrices, and of the parts of a tensor: see ``transforms``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from antorcha.core.dtypes import finfo
from antorcha.core.shapes import Size
from antorcha.distributions import constraints
from antorcha.distributions.transform import Transform, need_dims
from antorcha.distributions.utils import (
    _sum_rightmost,
    clipped_sigmoid,
    lazy_property,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from antorcha.errors import ValueRangeError
from antorcha.ops.kinds.record import T


def _after_one(x: Any) -> Any:
    """x with a 1 before the first element of each row."""
    return T.cat([T.ones_like(x[..., :1]), x], -1)


class CorrCholeskyTransform(Transform):
    """A vector as the Cholesky factor of a correlation matrix.

    The vector of ``D (D - 1) / 2`` numbers becomes, through tanh, partial correlations, and these
    the rows of the factor, each by stick breaking (Lewandowski, Kurowicka & Joe, "Generating random
    correlation matrices based on vines and extended onion method", 2009; Stan's manual).
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = finfo(x.dtype).eps
        r = vec_to_tril_matrix(T.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = (1 - r**2).sqrt().cumprod(-1)
        r = r + T.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * _after_one(rest[..., :-1])

    def _inverse(self, y: Any) -> Any:
        rest = _after_one((1 - (y * y).cumsum(-1))[..., :-1])
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        rest = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        of_tanh = -2 * (x + T.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * rest.log().sum(-1) + of_tanh

    def forward_shape(self, shape: Any) -> Any:
        need_dims(shape, 1)
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueRangeError(
                f"Input is not a flattened lower-diagonal number: its last dim has size {n}"
            )
        return Size((*shape[:-1], d, d))

    def inverse_shape(self, shape: Any) -> Any:
        need_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueRangeError(f"Input is not square: {tuple(shape)}")
        d = shape[-1]
        return Size((*shape[:-2], d * (d - 1) // 2))


class SoftmaxTransform(Transform):
    """``y = softmax(x)``: not one to one, but simple. See :class:`StickBreakingTransform`."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    def _call(self, x: Any) -> Any:
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        need_dims(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """A vector as a point of the simplex of one dimension more, one to one.

    Each number says, through a sigmoid, which share of the rest of a stick the next part takes;
    zeros give the centre.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    def _log_left(self, x: Any, parts: int) -> Any:
        """For each number, the logarithm of how many parts are still to come after it."""
        return (parts + 1 - x.new_ones(parts).cumsum(-1)).log()

    def _call(self, x: Any) -> Any:
        z = clipped_sigmoid(x - self._log_left(x, x.shape[-1]))
        return T.cat([z, T.ones_like(z[..., :1])], -1) * _after_one((1 - z).cumprod(-1))

    def _inverse(self, y: Any) -> Any:
        parts = y[..., :-1]
        rest = T.clamp(1 - parts.cumsum(-1), min=finfo(y.dtype).tiny)
        return parts.log() - rest.log() + self._log_left(y, parts.shape[-1])

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._log_left(x, x.shape[-1])
        return (-x + T.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        need_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        need_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """A square matrix as a lower triangular one with a positive diagonal (its exponential)."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """A square matrix as a positive definite one, ``L @ L.mT`` of its lower Cholesky transform."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(T.linalg_cholesky(y))


class _TransformParts(Transform):
    """A transform for each part of a tensor along a dim: `_parts` splits, `_joined` puts back."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    def _need(self, x: Any, size: int) -> None:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for a tensor of {x.dim()} dimensions"
            )
        if x.shape[self.dim] != size:
            raise AssertionError(f"x.size({self.dim}) = {x.shape[self.dim]} must equal {size}")

    def _parts(self, x: Any) -> Iterator[Any]:
        raise NotImplementedError

    def _joined(self, parts: list[Any]) -> Any:
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        pairs = zip(self.transforms, self._parts(x), strict=True)
        return self._joined([t(part) for t, part in pairs])

    def _inverse(self, y: Any) -> Any:
        pairs = zip(self.transforms, self._parts(y), strict=True)
        return self._joined([t.inv(part) for t, part in pairs])

    def _jacobians(self, x: Any, y: Any) -> list[Any]:
        triples = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return [t.log_abs_det_jacobian(a, b) for t, a, b in triples]


class CatTransform(_TransformParts):
    """Transforms of parts of given lengths, laid end to end along a dim.

    Args:
        tseq (list of Transform): one for each part
        dim (int): along which dim the parts lie. Default: 0
        lengths (list of int): the parts' sizes. Default: 1 each
        cache_size (int): see :class:`Transform`. Default: 0
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @lazy_property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size of the whole dim."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x: Any) -> Iterator[Any]:
        self._need(x, self.length)
        start = 0
        for length in self.lengths:
            yield x.narrow(self.dim, start, length)
            start += length

    def _joined(self, parts: list[Any]) -> Any:
        return T.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        terms = [
            _sum_rightmost(term, self.event_dim - t.event_dim)
            for t, term in zip(self.transforms, self._jacobians(x, y), strict=True)
        ]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return T.cat(terms, dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_TransformParts):
    """A transform for each index of a dim.

    Args:
        tseq (list of Transform): one for each index
        dim (int): along which dim. Default: 0
        cache_size (int): see :class:`Transform`. Default: 0
    """

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, x: Any) -> Iterator[Any]:
        self._need(x, len(self.transforms))
        yield from x.unbind(self.dim)

    def _joined(self, parts: list[Any]) -> Any:
        return T.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self._joined(self._jacobians(x, y))

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
