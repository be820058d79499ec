"""The deprecated names of ``torch.autocast("cuda")`` and what goes with it."""

from __future__ import annotations

from typing import Any

from antorcha.amp import autocast_mode
from antorcha.amp.old_names import warn_old_name
from antorcha.core import dtypes
from antorcha.errors import explain_missing


class autocast(autocast_mode.autocast):
    """Deprecated form of ``torch.amp.autocast("cuda")``."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: dtypes.dtype = dtypes.float16,
        cache_enabled: bool = True,
    ) -> None:
        warn_old_name("cuda", "autocast")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: dtypes.dtype | None = None) -> Any:
    """Deprecated form of ``torch.amp.custom_fwd(device_type="cuda")``."""
    warn_old_name("cuda", "custom_fwd", "args..., device_type='cuda'")
    return autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """Deprecated form of ``torch.amp.custom_bwd(device_type="cuda")``."""
    warn_old_name("cuda", "custom_bwd", "args..., device_type='cuda'")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")


__all__ = ["autocast", "custom_bwd", "custom_fwd"]

explain_missing("torch.cuda.amp.autocast_mode", globals())
