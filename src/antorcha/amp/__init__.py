"""``torch.amp``: automatic mixed precision, ``autocast`` and ``GradScaler``.

See https://docs.pytorch.org/docs/stable/amp.html.
"""

from antorcha.amp.autocast_mode import (
    _enter_autocast,
    _exit_autocast,
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)
from antorcha.amp.grad_scaler import GradScaler
from antorcha.errors import explain_missing

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

explain_missing("torch.amp", globals())
