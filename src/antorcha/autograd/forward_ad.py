"""``torch.autograd.forward_ad``: forward-mode differentiation, which antorcha does not have yet.

The names are here so that a program that looks for them hears what is missing.
``torch.autograd.functional.jvp`` computes the same products by differentiating twice.
"""

from __future__ import annotations

from typing import Any, NoReturn

from antorcha.errors import MissingFeature, explain_missing

__all__ = ["dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


def _missing(name: str) -> NoReturn:
    raise MissingFeature(
        f"autograd.forward_ad.{name}: antorcha has no forward-mode differentiation (dual numbers) "
        "yet; torch.autograd.functional.jvp gives the same products"
    )


class dual_level:
    """Not supported yet."""

    def __enter__(self) -> NoReturn:
        _missing("dual_level")

    def __exit__(self, *_: object) -> None:
        pass


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> NoReturn:
    """Not supported yet."""
    _missing("make_dual")


def unpack_dual(tensor: Any, *, level: int | None = None) -> NoReturn:
    """Not supported yet."""
    _missing("unpack_dual")


def enter_dual_level() -> NoReturn:
    """Not supported yet."""
    _missing("enter_dual_level")


def exit_dual_level(*, level: int | None = None) -> NoReturn:
    """Not supported yet."""
    _missing("exit_dual_level")


explain_missing("torch.autograd.forward_ad", globals())
