"""``torch.cuda.amp``: the older names of what ``torch.amp`` has."""

from antorcha.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from antorcha.cuda.amp.common import amp_definitely_not_available
from antorcha.cuda.amp.grad_scaler import GradScaler
from antorcha.errors import explain_missing

__all__ = [
    "GradScaler",
    "amp_definitely_not_available",
    "autocast",
    "custom_bwd",
    "custom_fwd",
]

explain_missing("torch.cuda.amp", globals())
