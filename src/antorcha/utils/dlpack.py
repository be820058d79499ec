"""``torch.utils.dlpack``: see `antorcha.tensor.dlpack`."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.tensor.dlpack import DLDeviceType, from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]

explain_missing("torch.utils.dlpack", globals())
