"""What the older names in ``torch.cpu.amp`` and ``torch.cuda.amp`` say when they are used."""

from __future__ import annotations

from antorcha.errors import warn


def warn_old_name(device: str, name: str, given: str = "") -> None:
    """Warns that ``torch.amp`` has what is used by its older name; ``given``: its arguments."""
    given = given or f"{device!r}, args..."
    warn(
        f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use "
        f"`torch.amp.{name}({given})` instead.",
        FutureWarning,
    )
