"""``torch.mps``: questions about MPS devices. There is none here: all say so.

What needs a device raises RuntimeError, as in a PyTorch without it.

See https://docs.pytorch.org/docs/stable/mps.html.
"""

from __future__ import annotations

from typing import Any

from antorcha.absent_device import queries
from antorcha.errors import explain_missing


def _refuse() -> Any:
    raise RuntimeError(
        "Torch not compiled with MPS enabled: antorcha has no MPS device; use device='cpu'"
    )


globals().update(queries("mps", _refuse))


def current_allocated_memory() -> int:
    """Needs the device: raises RuntimeError, since there is none."""
    _refuse()
    raise RuntimeError


driver_allocated_memory = recommended_max_memory = current_allocated_memory
compile_shader = load_metallib = current_allocated_memory

explain_missing("torch.mps", globals())
