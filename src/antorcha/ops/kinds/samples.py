"""Sample arguments that many records share, given to them as ``samples=``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from antorcha.ops.kinds.record import T

if TYPE_CHECKING:
    from antorcha.runtime.tensor import Tensor

Samples = Callable[[Any], Iterator[Any]]


def spread(low: float = -2.0, high: float = 2.0) -> Samples:
    """Samples for a function of one tensor: values between two numbers, three shapes."""

    def samples(make: Any) -> Iterator[Any]:
        yield (make(3, 4, low=low, high=high),)
        yield (make(low=low, high=high),)
        yield (make(0, 3, low=low, high=high),)

    return samples


def of_shapes(*shapes: tuple[int, ...]) -> Samples:
    """One sample: a tensor of each shape."""

    def samples(make: Any) -> Iterator[Any]:
        yield tuple([make(*shape) for shape in shapes])

    return samples


def tensor_or_number(number: Any) -> Samples:
    """Samples for a function of a tensor and an operand: another tensor, and a number."""

    def samples(make: Any) -> Iterator[Any]:
        yield make(3, 4), make(4)
        yield make(3, 4), number

    return samples


def integer(make: Any) -> Iterator[Any]:
    """A sample for a function of one integer."""
    yield (make.ints((3, 4), 8),)


def integers(make: Any) -> Iterator[Any]:
    """Samples for a function of two integers."""
    yield make.ints((3, 4), 8), make.ints((4,), 4)
    yield make.ints((3, 4), 8), 2


def positive_definite(make: Any, n: int = 3) -> Tensor:
    """A symmetric matrix of positive eigenvalues."""
    x = make(n, n)
    return (T.matmul(x, T.t(x)) + T.eye(n, dtype=x._layout.dtype) * n).detach()  # type: ignore[no-any-return]
