"""Dropout layers: elements or whole channels set to zero at random while training."""

from __future__ import annotations

import re
from typing import Any

from antorcha.errors import ValueRangeError
from antorcha.nn import functional as F
from antorcha.nn.families import LayerFamily
from antorcha.nn.words import showing

_HINTON = ('Hinton et al., "Improving neural networks by preventing co-adaptation of feature '
           'detectors"\n    (2012).')  # fmt: skip
_TOMPSON = 'Tompson et al., "Efficient object localization using convolutional networks" (2015).'
_KLAMBAUER = 'Klambauer et al., "Self-normalizing neural networks" (2017).'


class _DropoutNd(LayerFamily):
    """{what}

    Only in training mode; in evaluation the input is given back.

    Args:
        p (float): the probability of zero. Default: 0.5
        inplace (bool): write the result over the input? Default: False

    Shape: {shape}; the output has the input's.
    {paper}

    >>> torch.nn.{name}(p=0.2).eval()(torch.ones({example})).sum()
    tensor(6.)
    """

    __constants__ = ["p", "inplace"]  # noqa: RUF012
    _fn: str  # in torch.nn.functional: ``alpha_dropout`` of AlphaDropout
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueRangeError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        if words:
            cls._fn = re.sub("(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    extra_repr = showing("p=", "inplace=")

    def forward(self, input: Any) -> Any:
        """The input with some elements or channels dropped."""
        return getattr(F, self._fn)(input, self.p, self.training, self.inplace)


class Dropout(
    _DropoutNd, shape="any", paper=_HINTON, example="2, 3",
    what="Sets each element to zero with probability p, and divides the others by 1 - p.",
): ...  # fmt: skip


class Dropout1d(
    _DropoutNd, shape="(N, C, L) or (C, L)", paper=_TOMPSON, example="1, 2, 3",
    what="Sets whole channels (1-dimensional) to zero with probability p.",
): ...  # fmt: skip


class Dropout2d(
    _DropoutNd, shape="(N, C, H, W)", paper=_TOMPSON, example="1, 1, 2, 3",
    what="Sets whole channels (2-dimensional) to zero with probability p.",
): ...  # fmt: skip


class Dropout3d(
    _DropoutNd, shape="(N, C, D, H, W)", paper=_TOMPSON, example="1, 1, 1, 2, 3",
    what="Sets whole channels (3-dimensional) to zero with probability p.",
): ...  # fmt: skip


class AlphaDropout(
    _DropoutNd, shape="any", paper=_KLAMBAUER, example="2, 3",
    what="Dropout that keeps mean 0 and variance 1: dropped elements get SELU's lowest value.",
): ...  # fmt: skip


class FeatureAlphaDropout(
    _DropoutNd, shape="(N, C, ...)", paper=_KLAMBAUER, example="1, 2, 3",
    what="Alpha dropout of whole channels.",
): ...  # fmt: skip
