"""New tensors of random numbers: ``rand``, ``randn``, ``randint``, ``randperm``, ``rand_like``, ...

Each makes a tensor and fills it with one of the draws of ``random``.
"""

from __future__ import annotations

from antorcha.core import dtypes
from antorcha.errors import ArgumentError, ShapeError
from antorcha.ops.create import USUAL, USUAL_LIKE, creating, like, unwritten
from antorcha.ops.kinds.sampler import drawn, new_target, target_of
from antorcha.ops.kinds.types import Any, Int, Shape, Tensor
from antorcha.ops.random import normal, permutation, random, uniform

drawing = creating("generator out " + USUAL, random=True)


@drawing
def rand(size: Shape, *, generator: Any, out: Any, dtype: Any, device: Any):
    """Numbers from [0, 1), all as likely, in a tensor of shape ``size``.

    >>> _ = torch.manual_seed(42)
    >>> torch.rand(1, 5)
    tensor([[0.8823, 0.9150, 0.3829, 0.9593, 0.3904]])
    """
    result = new_target("rand", size, dtype, device, out)
    return drawn(result, out, uniform, (0.0, 1.0), generator)


@rand.errors
def _(make):
    yield (-1,), {}, RuntimeError, "negative"
    yield (2,), {"generator": 3}, TypeError, "generator"


@drawing
def randn(size: Shape, *, generator: Any, out: Any, dtype: Any, device: Any):
    """Normal numbers of mean 0 and deviation 1 in a tensor of shape ``size``.

    >>> _ = torch.manual_seed(42)
    >>> torch.randn(3)
    tensor([0.3367, 0.1288, 0.2345])
    """
    result = new_target("randn", size, dtype, device, out)
    return drawn(result, out, normal, (0.0, 1.0), generator)


def _range(name: str, low: Any, high: Any, size: Any) -> tuple[int, int, tuple[int, ...] | None]:
    """The arguments of randint's forms: (high, size) and (low, high, size)."""
    if size is None and (isinstance(high, (tuple, list)) or getattr(high, "ndim", 0) > 0):
        high, size = None, high
    if high is None:
        low, high = 0, low
    if size is not None:
        size = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    for what, value in (("low", low), ("high", high)):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise ArgumentError(f"{name}(): {what} must be an int, not {type(value).__name__}")
    return int(low), int(high), size


@drawing
def randint(
    low: Any = None, high: Any = None, size: Any = None, *, generator: Any, out: Any, dtype: Any,
    device: Any,
):  # fmt: skip
    """Whole numbers from ``low`` (0 if left out) to ``high - 1``, all as likely; int64.

    >>> _ = torch.manual_seed(42)
    >>> torch.randint(3, 10, (2, 2))
    tensor([[4, 5],
            [7, 8]])
    """
    if low is None and high is not None:
        low, high = (high, None) if not isinstance(high, (tuple, list)) else (low, high)
    low, high, size = _range("randint", low, high, size)
    result = new_target("randint", size, dtype or dtypes.int64, device, out)
    return drawn(result, out, random, (low, high), generator)


@randint.errors
def _(make):
    yield (5, 3, (2,)), {}, RuntimeError, "less than 'to'"
    yield (5,), {}, TypeError, "size"


@like("generator " + USUAL_LIKE, random=True)
def rand_like(input: Tensor, *, generator: Any):
    """``rand`` with the shape, dtype and device of ``input``.

    >>> torch.rand_like(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    return lambda result: uniform.draw(result, (0.0, 1.0), generator)


@like("generator " + USUAL_LIKE, random=True)
def randn_like(input: Tensor, *, generator: Any):
    """``randn`` with the shape, dtype and device of ``input``.

    >>> torch.randn_like(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    return lambda result: normal.draw(result, (0.0, 1.0), generator)


@like("generator " + USUAL_LIKE, random=True)
def randint_like(input: Tensor, low: Any = None, high: Any = None, *, generator: Any):
    """``randint`` with the shape, dtype and device of ``input``.

    >>> torch.randint_like(torch.zeros(2, 3), 1)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if low is None:
        low, high = high, None
    low, high, _ = _range("randint_like", low, high, ())
    return lambda result: random.draw(result, (low, high), generator)


@drawing
def randperm(n: Int, *, generator: Any, out: Any, dtype: Any, device: Any):
    """The numbers 0 to ``n - 1`` in random order.

    >>> _ = torch.manual_seed(42)
    >>> torch.randperm(4)
    tensor([2, 3, 0, 1])
    """
    if n < 0:
        raise ShapeError(f"randperm: n must be non-negative, got {n}")
    chosen = dtype or dtypes.int64
    result = target_of("randperm", out, (n,), lambda: unwritten((n,), chosen, device))
    return drawn(result, out, permutation, (), generator)


@randperm.errors
def _(make):
    yield (-1,), {}, RuntimeError, "negative"
