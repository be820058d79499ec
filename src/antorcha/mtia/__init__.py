"""``torch.mtia``: questions about MTIA devices. There is none here: all say so.

What needs a device raises RuntimeError, as in a PyTorch without it.

See https://docs.pytorch.org/docs/stable/mtia.html.
"""

from __future__ import annotations

from typing import Any

from antorcha.absent_device import queries
from antorcha.errors import explain_missing


def _refuse() -> Any:
    raise RuntimeError(
        "Torch not compiled with MTIA enabled: antorcha has no MTIA device; use device='cpu'"
    )


globals().update(queries("mtia", _refuse))

explain_missing("torch.mtia", globals())
