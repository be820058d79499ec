"""``x.new_zeros(...)`` and its like: new tensors with the dtype and device of another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.core.device import as_device
from antorcha.errors import ArgumentError
from antorcha.ops.create import finish
from antorcha.ops.kinds.params import to_dtype
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import tensor


def _like(self: Tensor, dtype: Any, device: Any) -> dict[str, Any]:
    layout = self._layout
    return {
        "dtype": layout.dtype if dtype is None else to_dtype("new", "dtype", dtype),
        "device": layout.device if device is None else as_device(device),
    }


def _shape(name: str, size: tuple[Any, ...], named: Any) -> Any:
    """A shape, given as one sequence, as loose numbers, or as ``size=``."""
    if named is not None:
        return named
    if not size:
        raise ArgumentError(f"{name}() missing required argument 'size'")
    only = size[0]
    return only if len(size) == 1 and isinstance(only, (tuple, list)) else tuple(size)


def _maker(name: str, what: str) -> Callable[..., Tensor]:
    def make(
        self: Tensor,
        *size: Any,
        dtype: Any = None,
        device: Any = None,
        layout: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        **kwargs: Any,
    ) -> Tensor:
        shape = _shape(name, size, kwargs.pop("size", None))
        if kwargs:
            strange = next(iter(kwargs))
            raise ArgumentError(f"{name}() got an unexpected keyword argument {strange!r}")
        op = getattr(T, name.removeprefix("new_"))
        return finish(op(shape, **_like(self, dtype, device)), requires_grad)

    make.__name__, make.__qualname__ = name, f"Tensor.{name}"
    make.__doc__ = f"""A new tensor {what}, with this tensor's dtype and device by default.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.{name}.html.
    """
    return make


def new_full(
    self: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor full of one number, with this tensor's dtype and device unless others are given.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.new_full.html.

    >>> torch.ones(2, dtype=torch.float64).new_full((2,), 3)
    tensor([3., 3.], dtype=torch.float64)
    """
    if not isinstance(size, (tuple, list)):
        raise ArgumentError(
            f"new_full(): argument 'size' (position 1) must be tuple of ints, not "
            f"{type(size).__name__}"
        )
    return finish(T.full(tuple(size), fill_value, **_like(self, dtype, device)), requires_grad)


def new_empty_strided(
    self: Tensor,
    size: Any,
    stride: Any,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A new uninitialised tensor of these strides."""
    return finish(T.empty_strided(size, stride, **_like(self, dtype, device)), requires_grad)


def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor with a copy of ``data``, with this tensor's dtype and device unless others are
    given.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.new_tensor.html.

    >>> torch.ones(1, dtype=torch.int8).new_tensor([[0, 1], [2, 3]])
    tensor([[0, 1],
            [2, 3]], dtype=torch.int8)
    """
    if isinstance(data, Tensor) and dtype is None:
        dtype = data._layout.dtype
    return tensor(data, requires_grad=requires_grad, **_like(self, dtype, device))


def bind() -> None:
    """Sets the methods of this file on Tensor."""
    for name, what in {
        "new_zeros": "of zeros", "new_ones": "of ones", "new_empty": "with arbitrary contents",
    }.items():  # fmt: skip
        setattr(Tensor, name, _maker(name, what))
    for fn in (new_full, new_empty_strided, new_tensor):
        setattr(Tensor, fn.__name__, fn)
