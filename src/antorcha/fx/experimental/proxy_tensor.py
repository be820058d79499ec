"""``torch.fx.experimental.proxy_tensor``: no graph of aten ops is traced here."""

from __future__ import annotations


def get_proxy_mode() -> None:
    """None: nothing is traced."""
