"""What distributions share whose parameter is given as probabilities or as their logits."""

from __future__ import annotations

from typing import Any

from antorcha.core.lazy import lazy
from antorcha.distributions import constraints
from antorcha.distributions.distribution import _ABSTRACT, Distribution
from antorcha.distributions.utils import (
    attribute_of,
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from antorcha.errors import ValueRangeError
from antorcha.runtime.tensor import Tensor

distributions_categorical = lazy("antorcha.distributions.categorical")


def check_one_given(probs: Any, logits: Any) -> None:
    """Refuses both and neither."""
    if (probs is None) == (logits is None):
        raise ValueRangeError("Either `probs` or `logits` must be specified, but not both.")


class ProbsOrLogits(Distribution):
    """A distribution of numbers with a probability, or its logit ``log(p / (1 - p))``.

    What was not given is computed when it is first asked for.
    """

    arg_constraints: Any = {  # noqa: RUF012
        "probs": constraints.unit_interval, "logits": constraints.real,
    }  # fmt: skip

    def _set(self, probs: Any, logits: Any) -> None:
        check_one_given(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)

    def _set_with_count(self, total_count: Any, probs: Any, logits: Any) -> None:
        """The same beside a count, which takes the parameter's dtype."""
        check_one_given(probs, logits)
        count, given = broadcast_all(total_count, logits if probs is None else probs)
        self.total_count = count.to(given.dtype)
        setattr(self, "logits" if probs is None else "probs", given)

    @lazy_property
    def logits(self) -> Any:
        """The logarithm of the odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """The probability."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self) -> Tensor:
        given: Tensor | None = self.__dict__.get("probs")
        if given is None:
            given = self.logits
        return given

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)

    @property
    def param_shape(self) -> Any:
        """The parameter's shape."""
        return self._param.shape


class OfCategorical(Distribution):
    """A distribution of vectors, made of a categorical one: its parameters are that one's."""

    arg_constraints: Any = {  # noqa: RUF012
        "probs": constraints.simplex, "logits": constraints.real_vector,
    }  # fmt: skip
    _categorical: Any

    def _set_categorical(self, probs: Any, logits: Any, validate_args: bool | None) -> None:
        self._categorical = distributions_categorical.Categorical(probs, logits)
        shapes = self._categorical.batch_shape, self._categorical.param_shape[-1:]
        Distribution.__init__(self, *shapes, validate_args=validate_args)

    probs = attribute_of("_categorical.probs")
    logits = attribute_of("_categorical.logits")
    param_shape = attribute_of("_categorical.param_shape")
    _param = attribute_of("_categorical._param")
    _new = attribute_of("_categorical._new")


_ABSTRACT |= {ProbsOrLogits, OfCategorical}
