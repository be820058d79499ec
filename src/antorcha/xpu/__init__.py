"""``torch.xpu``: questions about XPU devices. There is none here: all say so.

What needs a device raises AssertionError, as in a PyTorch without it.

See https://docs.pytorch.org/docs/stable/xpu.html.
"""

from __future__ import annotations

from typing import Any

from antorcha.absent_device import queries
from antorcha.errors import explain_missing


def _refuse() -> Any:
    raise AssertionError(
        "Torch not compiled with XPU enabled: antorcha has no XPU device; use device='cpu'"
    )


globals().update(queries("xpu", _refuse))

explain_missing("torch.xpu", globals())
