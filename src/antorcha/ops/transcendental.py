"""Exponentials, logarithms, trigonometric, hyperbolic and special functions: a line each.

Integers and bools are computed in the default dtype. All derivatives are found from the functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from antorcha.ops.functions import function
from antorcha.ops.pointwise import UnsupportedDtype, pointwise
from antorcha.ops.sampled import spread
from antorcha.ops.types import Tensor

# The name and others that it has; the meaning; of an example, the numbers given and the results;
# the limits of the samples.
TABLE: tuple[tuple[str, str, str, str, tuple[float, float]], ...] = (
    ("exp", "``e`` to the power of each element.", "[0., 1.]", "[1.0000, 2.7183]", (-2, 2)),
    ("exp2 special.exp2", "2 to the power of each element.", "[0., 3.]", "[1., 8.]", (-2, 2)),
    ("expm1 special.expm1", "``exp(input) - 1``, accurate near 0.",
     "[0., 1.]", "[0.0000, 1.7183]", (-2, 2)),
    ("log", "The natural logarithm of each element: nan below 0, -inf at 0.",
     "[1., 2.]", "[0.0000, 0.6931]", (0.1, 2)),
    ("log2", "The logarithm to base 2 of each element.", "[1., 8.]", "[0., 3.]", (0.1, 2)),
    ("log10", "The logarithm to base 10 of each element.",
     "[1., 2.]", "[0.0000, 0.3010]", (0.1, 2)),
    ("log1p special.log1p", "``log(1 + input)``, accurate near 0.",
     "[0., 1.]", "[0.0000, 0.6931]", (-0.5, 2)),
    ("sqrt", "The square root of each element: nan below 0.",
     "[4., 2.]", "[2.0000, 1.4142]", (0.1, 2)),
    ("rsqrt", "One divided by the square root of each element.",
     "[4., 0.25]", "[0.5000, 2.0000]", (0.1, 2)),
    ("sin", "The sine of each element, in radians.", "[0., 1.]", "[0.0000, 0.8415]", (-2, 2)),
    ("cos", "The cosine of each element, in radians.", "[0., 1.]", "[1.0000, 0.5403]", (-2, 2)),
    ("tan", "The tangent of each element, in radians.", "[0., 1.]", "[0.0000, 1.5574]", (-1, 1)),
    ("asin arcsin", "The inverse sine of each element: nan outside of -1..1.",
     "[0., 1.]", "[0.0000, 1.5708]", (-0.9, 0.9)),
    ("acos arccos", "The inverse cosine of each element: nan outside of -1..1.",
     "[1., 0.]", "[0.0000, 1.5708]", (-0.9, 0.9)),
    ("atan arctan", "The inverse tangent of each element.",
     "[0., 1.]", "[0.0000, 0.7854]", (-2, 2)),
    ("sinh", "The hyperbolic sine of each element.", "[0., 1.]", "[0.0000, 1.1752]", (-2, 2)),
    ("cosh", "The hyperbolic cosine of each element.", "[0., 1.]", "[1.0000, 1.5431]", (-2, 2)),
    ("tanh", "The hyperbolic tangent of each element.", "[0., 1.]", "[0.0000, 0.7616]", (-2, 2)),
    ("asinh arcsinh", "The inverse hyperbolic sine of each element.",
     "[0., 1.]", "[0.0000, 0.8814]", (-2, 2)),
    ("acosh arccosh", "The inverse hyperbolic cosine of each element: nan below 1.",
     "[1., 2.]", "[0.0000, 1.3170]", (1.1, 3)),
    ("atanh arctanh", "The inverse hyperbolic tangent of each element.",
     "[0., 0.5]", "[0.0000, 0.5493]", (-0.9, 0.9)),
    ("erf special.erf", "The error function of each element.",
     "[0., 1.]", "[0.0000, 0.8427]", (-2, 2)),
    ("erfc special.erfc", "``1 - erf(input)``, accurate where erf is near 1.",
     "[0., 1.]", "[1.0000, 0.1573]", (-2, 2)),
    ("erfinv special.erfinv", "The inverse of ``erf``: nan outside of -1..1.",
     "[0., 0.5]", "[0.0000, 0.4769]", (-0.9, 0.9)),
    ("lgamma special.gammaln", "The logarithm of the absolute value of the gamma function.",
     "[1., 0.5]", "[0.0000, 0.5724]", (0.5, 3)),
    ("digamma special.psi special.digamma", "The derivative of ``lgamma``.",
     "[1., 0.5]", "[-0.5772, -1.9635]", (0.5, 3)),
    ("sigmoid special.expit", "``1 / (1 + exp(-input))``.",
     "[0., 1.]", "[0.5000, 0.7311]", (-2, 2)),
)  # fmt: skip
for _names, _meaning, _given, _gives, _limits in TABLE:
    _name, *_aliases = _names.split()
    function(_name, _meaning, f"torch.tensor({_given})", f"tensor({_gives})", types="float",
             inplace=True, aliases=_aliases, samples=spread(*_limits))  # fmt: skip


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
