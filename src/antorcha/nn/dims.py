"""Layers of which there is one for each number of dims: ``Conv1d``, ``Conv2d``, ``Conv3d``."""

from __future__ import annotations

from typing import Any, ClassVar

from antorcha.nn.module import Module

_BY_NDIM = {
    1: {"dims": "one dim", "shape": "(N, C, L)"},
    2: {"dims": "two dims", "shape": "(N, C, H, W)"},
    3: {"dims": "three dims", "shape": "(N, C, D, H, W)"},
}


class LayerNd(Module):
    """What the layers of a family share.

    The docstring of the family's class is the frame of theirs. A member says ``ndim=`` and what
    stands in braces there (``{d}``, ``{dims}`` and ``{shape}`` follow from ``ndim``); ``_words``
    are those that all members say.
    """

    ndim: int = 0
    _words: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, ndim: int = 0, **words: Any) -> None:
        super().__init_subclass__()
        if ndim:
            cls.ndim = ndim
            family = next(base for base in cls.__mro__[1:] if base.__doc__)
            every = {"d": ndim, **_BY_NDIM[ndim], **cls._words, **words}
            cls.__doc__ = (family.__doc__ or "").format(**every)
