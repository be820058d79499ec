"""``torch.autograd.anomaly_mode``: PyTorch's name for :mod:`antorcha.autograd.anomaly`."""

from __future__ import annotations

from antorcha.autograd.anomaly import detect_anomaly, set_detect_anomaly
from antorcha.errors import explain_missing

__all__ = ["detect_anomaly", "set_detect_anomaly"]

explain_missing("torch.autograd.anomaly_mode", globals())
