"""``torch.utils.dlpack``: see `antorcha.tensor.dlpack`."""

from __future__ import annotations

from antorcha.tensor.dlpack import DLDeviceType, from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
