"""``torch.fx.experimental.proxy_tensor``: no graph of aten ops is traced here."""

from __future__ import annotations

from antorcha.core import absent


def get_proxy_mode() -> None:
    """None: nothing is traced."""


__getattr__ = absent.names("torch.fx.experimental.proxy_tensor", globals())
