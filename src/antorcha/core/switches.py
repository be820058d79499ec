"""Switches that say by what, and how exactly, a GPU computes: ``torch.backends`` shows them, and
devices read them when they plan.

When one changes, whoever keeps plans is told, so that none that was made under the old value is
used again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.errors import ValueRangeError

on_change: list[Callable[[], None]] = []
"""Called when a switch has got another value."""
PRECISIONS = ("none", "ieee", "tf32")


class Switches:
    """Some switches of one part of a backend, as attributes."""

    def __init__(self, **settings: object) -> None:
        vars(self).update(settings)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no switch {name!r}; there are {', '.join(vars(self))}")

    def __setattr__(self, name: str, value: Any) -> None:
        if vars(self).get(name) == value and name in vars(self):
            return
        vars(self)[name] = value
        for tell in on_change:
            tell()


class PrecisionSwitches(Switches):
    """Switches with ``fp32_precision`` and ``allow_tf32``, which say the same in two ways."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "fp32_precision":
            if value not in PRECISIONS:
                choices = ", ".join(PRECISIONS)
                raise ValueRangeError(f"fp32_precision must be one of {choices}, not {value!r}")
            if value != "none":
                super().__setattr__("allow_tf32", value == "tf32")
        elif name == "allow_tf32" and value != self.allow_tf32:
            vars(self)["fp32_precision"] = "tf32" if value else "ieee"
        super().__setattr__(name, value)


matmul = PrecisionSwitches(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True, allow_fp16_accumulation=False,
    fp32_precision="none",
)  # fmt: skip
"""Products on a GPU: ``torch.backends.cuda.matmul``."""
cudnn = PrecisionSwitches(
    enabled=True, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True,
    fp32_precision="none",
)  # fmt: skip
"""Convolutions on a GPU: ``torch.backends.cudnn``."""
libraries = Switches(blas="default", linalg="default")
"""Whose products and decompositions run on a GPU: ``torch.backends.cuda.preferred_*_library``."""
