"""Distribution: what all distributions share.

A distribution has a *batch shape* (independent distributions, each with its own parameters) and an
*event shape* (the shape of one draw); ``sample(shape)`` gives draws of shape
``shape + batch_shape + event_shape``.
"""

from __future__ import annotations

from typing import Any

from antorcha.autograd import no_grad
from antorcha.core.shapes import Size
from antorcha.distributions import constraints
from antorcha.distributions.utils import lazy_property
from antorcha.errors import MissingFeature, ValueRangeError, warn
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

__all__ = ["Distribution"]


class Distribution:
    """The base class of distributions.

    A subclass sets its parameters as attributes and then calls ``super().__init__`` with its batch
    and event shapes; ``arg_constraints`` and ``support`` say what is allowed, and both are checked
    unless ``validate_args`` is false.
    See https://docs.pytorch.org/docs/stable/distributions.html.

    >>> d = torch.distributions.Normal(torch.zeros(3), 1.0)
    >>> d.batch_shape, d.event_shape, d.sample((2,)).shape
    (torch.Size([3]), torch.Size([]), torch.Size([2, 3]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__
    _batch_shape: Size
    _event_shape: Size
    _expanded: tuple[str, ...] | None = None  # what `expand` expands, where not the parameters

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions check their arguments (they do, but under ``python -O``)."""
        if value not in [True, False]:
            raise ValueRangeError(f"set_default_validate_args: {value!r} is neither True nor False")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = Size(),  # noqa: B008  (a Size never changes)
        event_shape: Any = Size(),  # noqa: B008
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = batch_shape, event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _validate_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints "
                "= {}` or initialize the distribution with `validate_args=False` to turn off "
                "validation."
            )
            return
        for name, constraint in arg_constraints.items():
            computed = name not in self.__dict__ and self._is_lazy(name)
            if constraints.is_dependent(constraint) or computed:
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueRangeError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def _is_lazy(self, name: str) -> bool:
        return isinstance(getattr(type(self), name, None), lazy_property)

    # --------------------------------------------------------------- shapes
    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with its parameters expanded to a larger batch shape.

        >>> torch.distributions.Normal(0.0, 1.0).expand((2, 3)).batch_shape
        torch.Size([2, 3])
        """
        home = _library_class(type(self))
        if home in _ABSTRACT:
            raise NotImplementedError
        new = self._get_checked_instance(home, _instance)
        batch_shape = Size(batch_shape)
        for name, value in self.__dict__.items():
            if name not in new.__dict__ and not (self._is_lazy(name) and not self._is_given(name)):
                new.__dict__[name] = self._expand_part(name, value, batch_shape)
        new._batch_shape = batch_shape
        return new

    def _is_given(self, name: str) -> bool:
        return name in (self.arg_constraints if self._expanded is None else self._expanded)

    def _expand_part(self, name: str, value: Any, batch_shape: Size) -> Any:
        """An attribute of the expanded distribution: parameters and inner distributions grow."""
        batch_dims = len(self._batch_shape)
        if isinstance(value, Distribution):
            return value.expand(batch_shape + value.batch_shape[batch_dims:])
        if isinstance(value, Tensor) and self._is_given(name):
            return value.expand(batch_shape + value.shape[batch_dims:])
        return value

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """A bare instance to fill; a subclass with an ``__init__`` of its own must make it."""
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise MissingFeature(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom "
                "__init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of independent distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(sample_shape) + self._batch_shape + self._event_shape

    # --------------------------------------------------------------- what subclasses say
    @property
    def arg_constraints(self) -> Any:
        """The constraint of each parameter, by name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that all draws satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The most likely value."""
        raise MissingFeature(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws, outside of any graph: of shape ``sample_shape + batch_shape + event_shape``."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws that are differentiable functions of the parameters, where `has_rsample`."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """`n` draws; deprecated."""
        warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning)
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, at a value."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """The probability of a draw up to a value."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """The value that draws stay below with a probability: the inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values of a discrete distribution, along a first dim."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """``exp(entropy)``."""
        return self.entropy().exp()

    # --------------------------------------------------------------- checks
    def _check(self, value: Any) -> None:
        """Refuses a value outside of the support, where arguments are validated."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueRangeError("The value argument to log_prob must be a Tensor")
        if value.shape[len(value.shape) - len(self._event_shape) :] != self._event_shape:
            raise ValueRangeError(
                f"The right-most size of value must match event_shape: {value.shape} vs "
                f"{self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        pairs = zip(reversed(value.shape), reversed(expected), strict=False)
        if any(1 not in (i, j) and i != j for i, j in pairs):
            raise ValueRangeError(
                f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs "
                f"{expected}."
            )
        try:
            support = self.support
        except NotImplementedError:
            warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation."
            )
            return
        if not support.check(value).all():
            raise ValueRangeError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        given = {k: self.__dict__[k] for k in self.arg_constraints if k in self.__dict__}
        shown = [f"{k}: {v if v.numel() == 1 else v.shape}" for k, v in given.items()]
        return f"{self.__class__.__name__}({', '.join(shown)})"

    # --------------------------------------------------------------- for subclasses
    def _full(self, value: float, like: Tensor) -> Tensor:
        """One number for the whole batch."""
        shape = self._extended_shape()
        found: Tensor = T.full(shape, value, dtype=like.dtype, device=like.device)
        return found

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """Values along the first dim, before the batch's dims."""
        values = values.view((-1, *[1] * len(self._batch_shape)))
        return values.expand((-1, *self._batch_shape)) if expand else values


def _library_class(cls: type) -> type:
    """The nearest class of this package: what `expand` knows how to rebuild."""
    package = __name__.rpartition(".")[0]
    return next(c for c in cls.__mro__ if c.__module__.startswith(package))


_ABSTRACT: set[type] = {Distribution}
