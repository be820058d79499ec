"""From constraints to transforms: ``biject_to`` and ``transform_to``.

Both give, for a constraint, a transform from unconstrained numbers to what satisfies it:
``biject_to`` a one-to-one one with a Jacobian, ``transform_to`` a simple one, for optimisers.

>>> torch.distributions.transform_to(torch.distributions.constraints.positive)(torch.zeros(2))
tensor([1., 1.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.distributions import constraints
from antorcha.distributions import transforms as t
from antorcha.errors import ArgumentError, MissingFeature

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table of functions that make a transform for a constraint, by the constraint's class."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Registers a function for a constraint's class (or an instance's); also a decorator."""
        if factory is None:
            return lambda result: self.register(constraint, result)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise ArgumentError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint}"
            )
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise MissingFeature(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _above(c: Any) -> Any:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(c.lower_bound, 1)])


def _below(c: Any) -> Any:
    return t.ComposeTransform([t.ExpTransform(), t.AffineTransform(c.upper_bound, -1)])


def _between(c: Any) -> Any:
    low, high = c.lower_bound, c.upper_bound
    numbers = isinstance(low, (int, float)) and isinstance(high, (int, float))
    if numbers and (low, high) == (0, 1):
        return t.SigmoidTransform()
    return t.ComposeTransform([t.SigmoidTransform(), t.AffineTransform(low, high - low)])


def _of_parts(registry: ConstraintRegistry) -> dict[Any, Callable[[Any], Any]]:
    """Constraints made of others: the registry is asked for each part."""
    return {
        constraints.independent: lambda c: t.IndependentTransform(
            registry(c.base_constraint), c.reinterpreted_batch_ndims
        ),
        constraints.cat: lambda c: t.CatTransform([registry(k) for k in c.cseq], c.dim, c.lengths),
        constraints.stack: lambda c: t.StackTransform([registry(k) for k in c.cseq], c.dim),
    }


_BOTH: dict[Any, Callable[[Any], Any]] = {
    constraints.real: lambda c: t.identity_transform,
    constraints.greater_than: _above,
    constraints.greater_than_eq: _above,
    constraints.less_than: _below,
    constraints.interval: _between,
    constraints.half_open_interval: _between,
    constraints.corr_cholesky: lambda c: t.CorrCholeskyTransform(),
}
_ONE_TO_ONE: dict[Any, Callable[[Any], Any]] = {
    constraints.simplex: lambda c: t.StickBreakingTransform(),
}
_SIMPLE: dict[Any, Callable[[Any], Any]] = {
    constraints.simplex: lambda c: t.SoftmaxTransform(),
    constraints.lower_cholesky: lambda c: t.LowerCholeskyTransform(),
    constraints.positive_definite: lambda c: t.PositiveDefiniteTransform(),
    constraints.positive_semidefinite: lambda c: t.PositiveDefiniteTransform(),
}
for _registry, _own in ((biject_to, _ONE_TO_ONE), (transform_to, _SIMPLE)):
    for _constraint, _factory in {**_BOTH, **_own, **_of_parts(_registry)}.items():
        _registry.register(_constraint, _factory)
