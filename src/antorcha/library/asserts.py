"""The operators of ``torch.ops.aten`` that compute nothing and check something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from antorcha.errors import ShapeError
from antorcha.runtime.tensor import Tensor
from antorcha.sym import sym_constrain_range, sym_constrain_range_for_size


def _assert_scalar(self: Any, assert_msg: str) -> None:
    """Raises RuntimeError with that message where a number is 0."""
    if not self:
        raise ShapeError(assert_msg)


def _assert_async(self: Tensor, assert_msg: str = "") -> None:
    """Raises RuntimeError, with that message, unless the tensor's only element is other than 0."""
    if self._layout.numel != 1:
        several = "more than one value" if self._layout.numel else "no values"
        raise ShapeError(f"Boolean value of Tensor with {several} is ambiguous")
    if not self.item():
        raise ShapeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _assert_tensor_metadata(
    a: Tensor,
    size: Any = None,
    stride: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    layout: Any = None,
) -> None:
    """Raises RuntimeError where a tensor differs from what is said of it."""
    its = a._layout
    given = {
        "sizes": (size, list(its.shape)), "strides": (stride, list(its.strides)),
        "dtype": (dtype, its.dtype), "device": (device, its.device),
        "layout": (layout, a.layout),
    }  # fmt: skip
    for name, (wanted, found) in given.items():
        wanted = list(wanted) if isinstance(wanted, tuple) else wanted
        if wanted is not None and str(wanted) != str(found):
            raise ShapeError(f"Tensor {name} mismatch! Expected: {wanted}, Got: {found}")


OPERATORS: Final[dict[str, Callable[..., None]]] = {
    each.__name__: each for each in (_assert_scalar, _assert_async, _assert_tensor_metadata)
}
OPERATORS["sym_constrain_range"] = sym_constrain_range
OPERATORS["sym_constrain_range_for_size"] = sym_constrain_range_for_size
