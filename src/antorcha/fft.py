"""``torch.fft``: Fourier transforms, by their public names. The records are in ``ops.fourier``."""

from __future__ import annotations

from typing import Any

from antorcha.errors import no_such_name
from antorcha.ops.kinds.record import NAMESPACES
from antorcha.runtime.tensor import Tensor

_PUBLIC: dict[str, Any] = {**NAMESPACES["fft"], "Tensor": Tensor}
globals().update(_PUBLIC)


def __getattr__(name: str) -> Any:
    raise no_such_name("torch.fft", name, _PUBLIC)


def __dir__() -> list[str]:
    return sorted(_PUBLIC)
