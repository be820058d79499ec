"""``torch._subclasses.fake_tensor``: what libraries ask of a tensor while they may be traced."""

from __future__ import annotations

from antorcha.core import absent


def is_fake(x: object) -> bool:
    """False: every tensor has elements, or is on the device ``meta``."""
    return False


__getattr__ = absent.names("torch._subclasses.fake_tensor", globals())
