"""``torch.testing.make_tensor``: tensors of random numbers for tests."""

from __future__ import annotations

import math
from typing import Any

from antorcha.core import dtypes
from antorcha.core.dtypes import finfo, iinfo
from antorcha.errors import ArgumentError, ValueRangeError, warn
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor


def make_tensor(
    *shape: Any, dtype: Any, device: Any, low: float | None = None, high: float | None = None,
    requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor of numbers drawn evenly from ``low`` to below ``high``: PyTorch's numbers.

    Args:
        shape (tuple or ints): the shape
        dtype (torch.dtype): the dtype
        device (torch.device): where it is made
        low (number, optional): by default -9, for bools and uint8 0
        high (number, optional): by default 9 for floats, 10 for integers, 2 for bools
        requires_grad (bool): is it a leaf that wants a gradient?
        noncontiguous (bool): do its elements lie apart? (Of one element they cannot.)
        exclude_zero (bool): zeros become 1, or the smallest normal number
        memory_format (torch.memory_format, optional): instead of ``noncontiguous``

    See https://docs.pytorch.org/docs/stable/testing.html.

    >>> torch.testing.make_tensor(2, 3, dtype=torch.float32, device="cpu").shape
    torch.Size([2, 3])
    """
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    floats = dtype.kind in "fc"
    if noncontiguous and memory_format is not None:
        raise ValueRangeError(
            "make_tensor: The parameters `noncontiguous` and `memory_format` are mutually "
            f"exclusive, but got noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    if requires_grad and not floats:
        raise ValueRangeError(
            "make_tensor: `requires_grad=True` is not supported for boolean and integral dtypes, "
            f"but got dtype={dtype}"
        )
    apart = noncontiguous and math.prod(sizes) > 1
    drawn = (*sizes[:-1], 2 * sizes[-1]) if apart else tuple(sizes)
    first, last = _limits(dtype, low, high)
    if floats:
        result = T.empty(drawn, dtype=dtype, device=device)
        _draw(T.view_as_real(result) if dtype.kind == "c" else result, first, last)
    else:
        result = T.randint(first, last, drawn, dtype=dtype, device=device)
    if apart:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = T.clone(result, memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = finfo(dtype).tiny if floats else 1
    return result.requires_grad_(requires_grad) if floats else result  # type: ignore[no-any-return]


def _limits(dtype: Any, low: float | None, high: float | None) -> tuple[Any, Any]:
    """The first number that may be drawn, and the one before which drawing ends."""
    usual: tuple[float, float] = (-9, 9)
    if dtype is dtypes.bool_:
        least, most, usual = 0.0, 2.0, (0, 2)
    elif dtype.kind in "iu":
        kind = iinfo(dtype)
        usual = (-9, 10)
        least, most = kind.min, kind.max + (dtype is not dtypes.int64)
    elif dtype.kind in "fc":
        least, most = finfo(dtype).min, finfo(dtype).max
    else:
        raise ArgumentError(
            f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor()."
        )
    first, last = usual[0] if low is None else low, usual[1] if high is None else high
    if first != first or last != last:
        raise ValueRangeError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if first == last and dtype.kind in "fc":
        warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is "
            "deprecated. Use `torch.full(...)` instead.",
            FutureWarning,
        )
    elif first >= last:
        raise ValueRangeError(f"`low` must be less than `high`, but got {first} >= {last}")
    elif last < least or first >= most:
        raise ValueRangeError(
            f"The value interval specified by `low` and `high` is [{first}, {last}), but {dtype} "
            f"only supports [{least}, {most})"
        )
    first, last = min(max(first, least), most), min(max(last, least), most)
    return (first, last) if dtype.kind in "fc" else (math.ceil(first), math.ceil(last))


def _draw(tensor: Tensor, low: float, high: float) -> None:
    if high - low >= finfo(tensor.dtype).max:  # more than uniform_ spans
        tensor.uniform_(low / 2, high / 2).mul_(2)
    else:
        tensor.uniform_(low, high)
