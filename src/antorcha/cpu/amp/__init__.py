"""``torch.cpu.amp``: the older names of what ``torch.amp`` has."""

from antorcha.cpu.amp.autocast_mode import autocast
from antorcha.cpu.amp.grad_scaler import GradScaler
from antorcha.errors import explain_missing

__all__ = ["GradScaler", "autocast"]

explain_missing("torch.cpu.amp", globals())
