"""``torch._utils``: helpers that libraries import, and what pickles of PyTorch's tensors call.

(In checkpoints these names mean the same functions, which the loader finds without this module.)
"""

from __future__ import annotations

import sys
import traceback
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from antorcha.basics import channels_last, channels_last_3d, contiguous_format, preserve_format
from antorcha.compiler import is_compiling
from antorcha.core.device import Device
from antorcha.core.dtypes import dtype as DType
from antorcha.errors import GraphError, ValueRangeError, explain_missing, facts_of, with_facts
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.serialization.rebuild import meta_tensor as _rebuild_meta_tensor_no_storage
from antorcha.serialization.rebuild import on_device as _rebuild_device_tensor_from_cpu_tensor
from antorcha.serialization.rebuild import parameter as _rebuild_parameter
from antorcha.serialization.rebuild import parameter_with_state as _rebuild_parameter_with_state
from antorcha.serialization.rebuild import tensor as _rebuild_tensor_v2
from antorcha.serialization.rebuild import tensor_of_bytes as _rebuild_tensor_v3
from antorcha.serialization.rebuild import tensor_v1 as _rebuild_tensor

__all__ = [
    "ExceptionWrapper", "KeyErrorMessage", "_rebuild_device_tensor_from_cpu_tensor",
    "_rebuild_meta_tensor_no_storage", "_rebuild_parameter",
    "_rebuild_parameter_with_state", "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3",
    "is_compiling",
]  # fmt: skip


class KeyErrorMessage(str):
    """A text that prints as it is where KeyError would print its quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception with its traceback as text, to be raised again in another thread or process."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, value, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))
        self.where = where
        self.facts = facts_of(value)

    def reraise(self) -> None:
        """Raises the exception, with its first traceback in its text."""
        text: Any = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            result = self.exc_type(text)
        except Exception:  # (it wants other arguments)
            raise GraphError(text) from None
        try:
            raise with_facts(result, self.facts)
        finally:
            del result  # it holds this frame, and so whatever is being used here


class classproperty:
    """A property of a class."""

    def __init__(self, func: Any) -> None:
        self.func = func

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self.func(owner)


def _element_size(dtype: DType) -> int:
    """The bytes of an element."""
    return dtype.itemsize


def _import_dotted_name(name: str) -> Any:
    """What a dotted name stands for; its first part is imported already, or can be."""
    first, *others = name.split(".")
    found: Any = __import__(first)
    for part in others:
        found = getattr(found, part)
    return found


def _get_available_device_type() -> str | None:
    """The accelerator's kind: None, there is none."""
    return None


def _get_all_device_indices() -> list[int] | None:
    """The accelerators' indices: None, there are none."""
    return None


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device; -1 for the CPU where `allow_cpu`."""
    if isinstance(device, str):
        device = Device(device)
    if isinstance(device, Device):
        if device.type == "cpu" and not allow_cpu:
            raise ValueRangeError(f"Expected a non cpu device, but got: {device}")
        if device.type == "cpu":
            return -1 if device.index is None else device.index
        device = device.index
    if isinstance(device, int):
        return device
    if optional and device is None:
        return 0
    raise ValueRangeError(f"Expected a torch.device with a specified index, but got: {device}")


# ---- several tensors in one ----------------------------------------------------------------------


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Any:
    """All elements in one tensor of one dim."""
    return T.cat([T.reshape(each, (-1,)) for each in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    """The parts of `flat` in the shapes of `tensors`."""
    parts = T.split(flat, [each._layout.numel for each in tensors])
    return tuple([T.reshape(part, tuple(each._layout.shape))
                  for part, each in zip(parts, tensors, strict=True)])  # fmt: skip


def _take_tensors(tensors: Sequence[Tensor], size_limit: int) -> Any:
    """Groups of tensors of one dtype, each of at most `size_limit` bytes (or one tensor)."""
    groups: dict[Any, list[Tensor]] = OrderedDict()
    held: dict[Any, int] = {}
    for each in tensors:
        kind, nbytes = each._layout.dtype, each._layout.numel * each._layout.dtype.itemsize
        if groups.get(kind) and held[kind] + nbytes > size_limit:
            yield groups.pop(kind)
            held[kind] = 0
        groups.setdefault(kind, []).append(each)
        held[kind] = held.get(kind, 0) + nbytes
    yield from groups.values()


# Memory formats are pickled as names of this module, with a dot in them.
_FORMATS = (channels_last, channels_last_3d, contiguous_format, preserve_format)
globals().update({repr(each): each for each in _FORMATS})

explain_missing("torch._utils", globals())
