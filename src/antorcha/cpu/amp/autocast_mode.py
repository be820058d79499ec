"""The deprecated names of ``torch.autocast("cpu")`` and what goes with it."""

from __future__ import annotations

from antorcha.amp import autocast_mode
from antorcha.amp.old_names import warn_old_name
from antorcha.core import dtypes
from antorcha.errors import explain_missing


class autocast(autocast_mode.autocast):
    """Deprecated form of ``torch.amp.autocast("cpu")``."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: dtypes.dtype = dtypes.bfloat16,
        cache_enabled: bool = True,
    ) -> None:
        warn_old_name("cpu", "autocast")
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


__all__ = ["autocast"]

explain_missing("torch.cpu.amp.autocast_mode", globals())
