"""Constraints: the sets that parameters and samples belong to.

A constraint's ``check(value)`` says for each event of ``value`` whether it is in the set;
``event_dim`` is how many of the last dims make one event; ``is_discrete`` whether the set is.
Constraints without parameters are instances (``constraints.positive``), the others classes
(``constraints.interval(0, 2)``). See https://docs.pytorch.org/docs/stable/distributions.html.

>>> torch.distributions.constraints.positive.check(torch.tensor([1., -1.]))
tensor([ True, False])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.dtypes import bool_, finfo
from antorcha.errors import MissingFeature, ValueRangeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A set of values; see the module's docstring.

    >>> torch.distributions.constraints.unit_interval
    Interval(lower_bound=0.0, upper_bound=1.0)
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """For each event of `value`, whether it is in the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        bounds = [f"{k}={v}" for k, v in self.__dict__.items() if k in _BOUNDS]
        return f"{type(self).__name__.removeprefix('_')}({', '.join(bounds)})"


_BOUNDS = ("lower_bound", "upper_bound")


def _events(result: Any, kept: int) -> Any:
    """Whether all is true beyond the first `kept` dims."""
    return result.reshape((*result.shape[:kept], -1)).all(-1)


def _need_constraint(value: Any) -> None:
    if not isinstance(value, Constraint):
        raise AssertionError(f"base_constraint must be a Constraint, got {type(value).__name__}")


# ------------------------------------------------------------------- known to instances only
class _Dependent(Constraint):
    """A set that depends on other parameters: an instance says which it is."""

    def __init__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:
        known: bool = self._known("is_discrete")
        return known

    @property
    def event_dim(self) -> int:
        known: int = self._known("event_dim")
        return known

    def _known(self, name: str) -> Any:
        value = getattr(self, f"_{name}")
        if value is NotImplemented:
            raise MissingFeature(f".{name} cannot be determined statically")
        return value

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> _Dependent:
        """The same with what is known of it."""
        discrete = self._is_discrete if is_discrete is NotImplemented else is_discrete
        dims = self._event_dim if event_dim is NotImplemented else event_dim
        return _Dependent(is_discrete=discrete, event_dim=dims)

    def check(self, value: Any) -> Any:
        raise ValueRangeError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Is it known to instances only?"""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that is a constraint: on the class a dependent one, on an instance what it is."""

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[[Any], Any]) -> Any:  # type: ignore[override]
        """Decorates, with what is known of it: ``@dependent_property(event_dim=1)``."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


# ------------------------------------------------------------------- made of another
class _OfAnother(Constraint):
    def __init__(self, base_constraint: Constraint) -> None:
        _need_constraint(base_constraint)
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        of_base: bool = self.base_constraint.is_discrete
        return of_base

    def _need_dims(self, value: Any, dims: int, expected: int) -> None:
        if dims < 0:
            raise ValueRangeError(f"Expected value.dim() >= {expected} but got {value.dim()}")


class _IndependentConstraint(_OfAnother):
    """A constraint whose events take some batch dims more: all of their parts must be in it."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: Any) -> None:
        super().__init__(base_constraint)
        if not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise AssertionError(
                f"reinterpreted_batch_ndims must be an int >= 0, got {reinterpreted_batch_ndims!r}"
            )
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def event_dim(self) -> int:
        of_base: int = self.base_constraint.event_dim
        return of_base + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value)
        kept = result.dim() - self.reinterpreted_batch_ndims
        self._need_dims(value, kept, self.event_dim)
        return _events(result, kept)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(_OfAnother):
    """The support of a mixture: a value must be in the support of every component."""

    @property
    def event_dim(self) -> int:
        of_base: int = self.base_constraint.event_dim
        return of_base

    def check(self, value: Any) -> Any:
        kept = value.dim() - self.event_dim
        self._need_dims(value, kept, self.event_dim)
        return _events(self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)), kept)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


# ------------------------------------------------------------------- numbers
class _Above(Constraint):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Below(Constraint):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(Constraint):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _Real(Constraint):
    """Every number but NaN."""

    def check(self, value: Any) -> Any:
        return value == value


class _GreaterThan(_Above):
    def check(self, value: Any) -> Any:
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    def check(self, value: Any) -> Any:
        return self.lower_bound <= value


class _LessThan(_Below):
    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _Interval(_Between):
    """From the lower to the upper bound, both included."""

    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """From the lower bound up to but not including the upper bound."""

    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _IntegerInterval(_Between):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    """Whole numbers from the bound on."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _IntegerLessThan(_Below):
    """Whole numbers up to the bound."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value <= self.upper_bound)


# ------------------------------------------------------------------- vectors
class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return _Boolean().check(value).all(-1) & value.sum(-1).eq(1)


class _Simplex(Constraint):
    """Nonnegative numbers that sum to 1, give or take 1e-6."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(_Below):
    """Nonnegative counts that sum to the bound at most."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return "Multinomial()"


# ------------------------------------------------------------------- matrices
class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular with a positive diagonal."""

    def check(self, value: Any) -> Any:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """The Cholesky factor of a correlation matrix: its rows have length 1."""

    def check(self, value: Any) -> Any:
        tolerance = finfo(value.dtype).eps * value.size(-1) * 10  # 10 ulp for each element of a row
        length = T.linalg_norm(value.detach(), dim=-1)
        return super().check(value) & (length - 1.0).abs().le(tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        is_square = value.shape[-2] == value.shape[-1]
        return T.full(value.shape[:-2], is_square, dtype=bool_, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        square = super().check(value)
        if not square.all():
            return square
        return T.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return T.linalg_eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return T.linalg_cholesky_ex(value).info.eq(0)


# ------------------------------------------------------------------- several, side by side
class _ConstraintParts(Constraint):
    """A constraint for each part of a value, along a dim."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        most: int = max(c.event_dim for c in self.cseq)
        return most

    def _need_dim(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for value with {value.dim()} dimensions"
            )


class _Cat(_ConstraintParts):
    """Constraints of parts of given lengths, laid end to end."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )

    def check(self, value: Any) -> Any:
        self._need_dim(value)
        starts = [sum(self.lengths[:k]) for k in range(len(self.lengths))]
        parts = zip(self.cseq, starts, self.lengths, strict=True)
        return T.cat([c.check(value.narrow(self.dim, at, n)) for c, at, n in parts], self.dim)


class _Stack(_ConstraintParts):
    """A constraint for each index of a dim."""

    @property
    def event_dim(self) -> int:
        dim = super().event_dim
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Any) -> Any:
        self._need_dim(value)
        parts = zip(value.unbind(self.dim), self.cseq, strict=False)
        return T.stack([c.check(v) for v, c in parts], self.dim)


# ------------------------------------------------------------------- the public names
dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
