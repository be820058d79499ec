"""Exponentials, logarithms, trigonometric, hyperbolic and special functions: a line each.

Integers and bools are computed in the default dtype. What the functions mean, where they have
values and their derivatives stand in the records of their primitives (``lang/expr/primitives``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from antorcha.lang import expr as E
from antorcha.ops.kinds.functions import function
from antorcha.ops.kinds.pointwise import UnsupportedDtype, pointwise
from antorcha.ops.kinds.samples import spread
from antorcha.ops.kinds.types import Tensor

# The name and others that it has; of an example, the numbers given and the results.
TABLE = (
    ("exp", "[0., 1.]", "[1.0000, 2.7183]"),
    ("exp2 special.exp2", "[0., 3.]", "[1., 8.]"),
    ("expm1 special.expm1", "[0., 1.]", "[0.0000, 1.7183]"),
    ("log", "[1., 2.]", "[0.0000, 0.6931]"),
    ("log2", "[1., 8.]", "[0., 3.]"),
    ("log10", "[1., 2.]", "[0.0000, 0.3010]"),
    ("log1p special.log1p", "[0., 1.]", "[0.0000, 0.6931]"),
    ("sqrt", "[4., 2.]", "[2.0000, 1.4142]"),
    ("rsqrt", "[4., 0.25]", "[0.5000, 2.0000]"),
    ("sin", "[0., 1.]", "[0.0000, 0.8415]"),
    ("cos", "[0., 1.]", "[1.0000, 0.5403]"),
    ("tan", "[0., 1.]", "[0.0000, 1.5574]"),
    ("asin arcsin", "[0., 1.]", "[0.0000, 1.5708]"),
    ("acos arccos", "[1., 0.]", "[0.0000, 1.5708]"),
    ("atan arctan", "[0., 1.]", "[0.0000, 0.7854]"),
    ("sinh", "[0., 1.]", "[0.0000, 1.1752]"),
    ("cosh", "[0., 1.]", "[1.0000, 1.5431]"),
    ("tanh", "[0., 1.]", "[0.0000, 0.7616]"),
    ("asinh arcsinh", "[0., 1.]", "[0.0000, 0.8814]"),
    ("acosh arccosh", "[1., 2.]", "[0.0000, 1.3170]"),
    ("atanh arctanh", "[0., 0.5]", "[0.0000, 0.5493]"),
    ("erf special.erf", "[0., 1.]", "[0.0000, 0.8427]"),
    ("erfc special.erfc", "[0., 1.]", "[1.0000, 0.1573]"),
    ("erfinv special.erfinv", "[0., 0.5]", "[0.0000, 0.4769]"),
    ("lgamma special.gammaln", "[1., 0.5]", "[0.0000, 0.5724]"),
    ("digamma special.psi special.digamma", "[1., 0.5]", "[-0.5772, -1.9635]"),
    ("sigmoid special.expit", "[0., 1.]", "[0.5000, 0.7311]"),
)
for _names, _given, _gives in TABLE:
    _name, *_aliases = _names.split()
    _primitive = E.OPS[_name]
    function(_name, _primitive.doc, f"torch.tensor({_given})", f"tensor({_gives})", types="float",
             inplace=True, aliases=_aliases, samples=spread(*_primitive.interior))  # fmt: skip


def _real_only(name: str) -> Callable[[Any], None]:
    def check(input: Any) -> None:
        if input._layout.dtype.kind == "c":
            raise UnsupportedDtype(f"{name}: is not supported for complex tensors")

    return check


@pointwise("float", inplace=True, samples=spread())
def deg2rad(input: Tensor):
    """Degrees as radians.

    >>> torch.deg2rad(torch.tensor([180., 90.]))
    tensor([3.1416, 1.5708])
    """
    return input * (math.pi / 180)


deg2rad.accepts(_real_only("deg2rad"))


@pointwise("float", inplace=True, samples=spread())
def rad2deg(input: Tensor):
    """Radians as degrees.

    >>> torch.rad2deg(torch.tensor([1., 2.]))
    tensor([ 57.2958, 114.5916])
    """
    return input * (180 / math.pi)


rad2deg.accepts(_real_only("rad2deg"))
