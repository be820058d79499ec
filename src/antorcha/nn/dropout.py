"""Dropout layers: elements or whole channels set to zero at random while training."""

from __future__ import annotations

from typing import Any

from antorcha.errors import ValueRangeError
from antorcha.nn import functional as F
from antorcha.nn.module import Module


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]  # noqa: RUF012
    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueRangeError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


_DOC = """{what}

Only in training mode; in evaluation the input is given back.

Args:
    p (float): the probability of zero. Default: 0.5
    inplace (bool): write the result over the input? Default: False

Shape: {shape}; the output has the input's.
{paper}

>>> torch.nn.{name}(p=0.2).eval()(torch.ones({example})).sum()
tensor(6.)
"""
_HINTON = ('Hinton et al., "Improving neural networks by preventing co-adaptation of feature '
           'detectors"\n(2012).')  # fmt: skip
_TOMPSON = 'Tompson et al., "Efficient object localization using convolutional networks" (2015).'
_KLAMBAUER = 'Klambauer et al., "Self-normalizing neural networks" (2017).'


class Dropout(_DropoutNd):
    __doc__ = _DOC.format(
        what="Sets each element to zero with probability p, and divides the others by 1 - p.",
        shape="any", paper=_HINTON, name="Dropout", example="2, 3",
    )  # fmt: skip

    def forward(self, input: Any) -> Any:
        """The input with some elements zero."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    __doc__ = _DOC.format(
        what="Sets whole channels (1-dimensional) to zero with probability p.",
        shape="(N, C, L) or (C, L)", paper=_TOMPSON, name="Dropout1d", example="1, 2, 3",
    )  # fmt: skip

    def forward(self, input: Any) -> Any:
        """The input with some channels zero."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    __doc__ = _DOC.format(
        what="Sets whole channels (2-dimensional) to zero with probability p.",
        shape="(N, C, H, W)", paper=_TOMPSON, name="Dropout2d", example="1, 1, 2, 3",
    )  # fmt: skip

    def forward(self, input: Any) -> Any:
        """The input with some channels zero."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    __doc__ = _DOC.format(
        what="Sets whole channels (3-dimensional) to zero with probability p.",
        shape="(N, C, D, H, W)", paper=_TOMPSON, name="Dropout3d", example="1, 1, 1, 2, 3",
    )  # fmt: skip

    def forward(self, input: Any) -> Any:
        """The input with some channels zero."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    __doc__ = _DOC.format(
        what="Dropout that keeps mean 0 and variance 1: dropped elements get SELU's lowest value.",
        shape="any", paper=_KLAMBAUER, name="AlphaDropout", example="2, 3",
    )  # fmt: skip

    def forward(self, input: Any) -> Any:
        """The input with some elements at SELU's negative saturation."""
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    __doc__ = _DOC.format(
        what="Alpha dropout of whole channels.", shape="(N, C, ...)", paper=_KLAMBAUER,
        name="FeatureAlphaDropout", example="1, 2, 3",
    )  # fmt: skip

    def forward(self, input: Any) -> Any:
        """The input with some channels at SELU's negative saturation."""
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
