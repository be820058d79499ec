"""``torch._utils``: what Python's own pickles of PyTorch's tensors call.

(In checkpoints these names mean the same functions, which the loader finds without this module.)
"""

from __future__ import annotations

from typing import Any

from antorcha.basics import channels_last, channels_last_3d, contiguous_format, preserve_format
from antorcha.serialization.rebuild import meta_tensor as _rebuild_meta_tensor_no_storage
from antorcha.serialization.rebuild import on_device as _rebuild_device_tensor_from_cpu_tensor
from antorcha.serialization.rebuild import parameter as _rebuild_parameter
from antorcha.serialization.rebuild import parameter_with_state as _rebuild_parameter_with_state
from antorcha.serialization.rebuild import tensor as _rebuild_tensor_v2
from antorcha.serialization.rebuild import tensor_of_bytes as _rebuild_tensor_v3
from antorcha.serialization.rebuild import tensor_v1 as _rebuild_tensor

__all__ = [
    "_rebuild_device_tensor_from_cpu_tensor", "_rebuild_meta_tensor_no_storage",
    "_rebuild_parameter", "_rebuild_parameter_with_state", "_rebuild_tensor", "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
]  # fmt: skip

_ALL = (channels_last, channels_last_3d, contiguous_format, preserve_format)
_FORMATS = {repr(each): each for each in _ALL}


def __getattr__(name: str) -> Any:
    if name in _FORMATS:  # memory formats are pickled as names with a dot in this module
        return _FORMATS[name]
    raise AttributeError(f"module 'torch._utils' has no attribute {name!r}")
