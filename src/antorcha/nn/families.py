"""Families of layers, whose members differ by a name or by their number of dims: ``Conv1d`` ..."""

from __future__ import annotations

from typing import Any, ClassVar

from antorcha.nn.module import Module

_BY_NDIM = {
    1: {"dims": "one dim", "shape": "(N, C, L)"},
    2: {"dims": "two dims", "shape": "(N, C, H, W)"},
    3: {"dims": "three dims", "shape": "(N, C, D, H, W)"},
}


class LayerFamily(Module):
    """What the layers of a family share.

    The docstring of the family's class is the frame of theirs. A member's ``class`` statement has
    what stands in braces there: ``{name}`` is its name, ``{d}``, ``{dims}`` and ``{shape}`` follow
    from ``ndim=``, ``_words`` are those that all members say.
    """

    ndim: int = 0
    _words: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, ndim: int = 0, **words: Any) -> None:
        super().__init_subclass__()
        if ndim:
            cls.ndim = ndim
            words = {"d": ndim, **_BY_NDIM[ndim], **words}
        if words:
            family = next(base for base in cls.__mro__[1:] if base.__doc__)
            every = {"name": cls.__name__, **cls._words, **words}
            cls.__doc__ = (family.__doc__ or "").format(**every)
