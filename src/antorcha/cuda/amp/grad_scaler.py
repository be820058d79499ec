"""The deprecated name of ``torch.amp.GradScaler("cuda")``."""

from __future__ import annotations

from antorcha import amp
from antorcha.amp.old_names import warn_old_name
from antorcha.errors import explain_missing

__all__ = ["GradScaler"]


class GradScaler(amp.GradScaler):
    """Deprecated form of ``torch.amp.GradScaler("cuda")``."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        warn_old_name("cuda", "GradScaler")
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


explain_missing("torch.cuda.amp.grad_scaler", globals())
