"""In-place changes of what a tensor says of its memory: ``unsqueeze_``, ``t_``, ``resize_``, ...

The elements stay where they are; the tensor gets another layout, and in the graph the history that
the view op would have given a new tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.core import modes
from antorcha.core.device import backend
from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError, DeviceError, GraphError
from antorcha.ops.kinds.params import to_ints
from antorcha.ops.kinds.record import REGISTRY
from antorcha.ops.memory import resize, strides_of_format
from antorcha.ops.slices import check_inside
from antorcha.runtime.call.path import check_inplace
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor

runtime_storage = lazy("antorcha.runtime.memory.storage")

VIEWS = ("unsqueeze", "squeeze", "transpose", "swapaxes", "swapdims", "t", "as_strided")


def in_place(name: str) -> Callable[..., Tensor]:
    """The in-place form of a view op."""
    op = REGISTRY[name]

    def change(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        recorded = modes.grad_enabled()
        if not isinstance(self, Tensor):
            raise ArgumentError(f"{name}_(): expected a Tensor, not {type(self).__name__}")
        if recorded and self._rg:
            check_inplace(f"{name}_", self)
        view = op(self, *args, **kwargs)
        become(self, view, recorded)
        return self

    change.__name__, change.__qualname__ = f"{name}_", f"Tensor.{name}_"
    change.__doc__ = f"In-place form of ``Tensor.{name}``; gives the tensor."
    return change


def become(self: Tensor, view: Tensor, recorded: bool) -> None:
    """Takes over a view's layout and history."""
    self._layout, self._offset = view._layout, view._offset
    if recorded and view._fn is not None:
        self._fn, self._nr, self._rg = view._fn, view._nr, view._rg


def _no_gradients(self: Tensor, name: str) -> None:
    if self._rg:
        raise GraphError(f"cannot resize variables that require grad ({name})")


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Another shape over the same storage, which grows if it must; new elements are arbitrary.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.resize_.html.

    >>> torch.tensor([[1, 2], [3, 4]]).resize_(3)
    tensor([1, 2, 3])
    """
    _no_gradients(self, "resize_")
    memory_format = _format("resize_", memory_format)
    shape = sizes[0] if len(sizes) == 1 and not hasattr(sizes[0], "__index__") else sizes
    wanted = to_ints("resize_", "size", tuple(shape))
    if any(n < 0 for n in wanted):
        raise GraphError(f"resize_: Trying to create tensor with negative dimension: {wanted}")
    if wanted != tuple(self._layout.shape):
        resize(self, wanted)
    if memory_format not in ("contiguous", "preserve"):
        strides = strides_of_format(wanted, self._layout.strides, memory_format)
        self._layout = self._layout.like(shape=wanted, strides=strides)
    return self


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """``resize_`` to the shape of another tensor."""
    _no_gradients(self, "resize_as_")
    if not isinstance(the_template, Tensor):
        raise ArgumentError(
            "resize_as_(): argument '{name}' must be Tensor, not {kind}; resize_(2, 3) takes sizes",
            reason="tensor wanted", op="resize_as_", name="the_template",
            kind=type(the_template).__name__,
        )  # fmt: skip
    wanted = _format("resize_as_", memory_format)
    return resize_(self, tuple(the_template._layout.shape), memory_format=wanted)


def _format(op: str, memory_format: Any) -> str:
    if memory_format is None:
        return "contiguous"
    if not isinstance(memory_format, str):
        raise ArgumentError(
            f"{op}(): argument 'memory_format' must be torch.memory_format, not "
            f"{type(memory_format).__name__}"
        )
    return str(memory_format)


def set_(
    self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Tensor:
    """Makes the tensor share another's (or a storage's) memory, with any size and strides.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.set_.html.
    """
    if self._rg and modes.grad_enabled():
        check_inplace("set_", self)
    if source is None:
        layout = L.contiguous((0,), self._layout.dtype, self._layout.device)
        self._layout, self._storage, self._offset = layout, backend(layout.device).allocate(0), 0
        return self
    place = source.device if hasattr(source, "_storage") else self._layout.device
    if place is not self._layout.device:
        raise DeviceError(
            f"set_: Attempted to set the storage of a tensor on device {self._layout.device} to a "
            f"storage on different device {place}; the devices must match: move it with .to()"
        )
    if isinstance(source, Tensor):
        if source._layout.dtype is not self._layout.dtype:
            raise ArgumentError(
                f"set_: source has dtype {source._layout.dtype}, the tensor {self._layout.dtype}"
            )
        if size is None:
            self._layout, self._storage = source._layout, source._storage
            self._offset = source._offset
            return self
        storage = source._storage
    else:
        storage = getattr(source, "_storage", source)
        if type(storage) is not runtime_storage.Storage:
            raise ArgumentError(
                f"set_: the source must be a tensor or a storage, not {type(source).__name__}"
            )
    if size is None:
        size = (storage.nbytes // self._layout.itemsize,)
    size = to_ints("set_", "size", size)
    strides = L.contiguous(size, self._layout.dtype, self._layout.device).strides
    if stride is not None:
        strides = to_ints("set_", "stride", stride)
    old = self._storage
    self._storage = storage
    try:
        check_inside(self, size, strides, storage_offset)
    except RuntimeError:
        self._storage = old
        raise
    self._layout = L.layout(size, strides, self._layout.dtype, self._layout.device)
    self._offset = storage_offset
    return self


def bind() -> None:
    """Sets the methods of this file on Tensor."""
    for name in VIEWS:
        setattr(Tensor, f"{name}_", in_place(name))
    for fn in (resize_, resize_as_, set_):
        setattr(Tensor, fn.__name__, fn)
