"""Transcendental functions in the kernel language: vectors or scalars of float32 and float64.

`FUNCTIONS` gives each expression op's inline native function; the type comes from the argument.
No C library is called, and nothing is used but FMA, square root, division, integer operations and
selections: the same source serves every CPU, with the same results, scalar or vector.

    exponential     exp exp2 expm1 sigmoid tanh sinh cosh
    logarithm       log log2 log10 log1p asinh acosh atanh
    power           pow
    trigonometric   sin cos tan
    inverse         asin acos atan atan2
    error           erf erfc erfinv
    gamma           lgamma digamma
    rounding        reciprocal rsqrt hypot fmod mod
    base            exact sums and products, polynomials, type queries
    pairs           arithmetic of pairs (high, low), for float64 results within an ulp
    coefficients         written by tools/fit_polynomials.py
    pair_coefficients    written by tools/fit_pairs.py

Errors are in units in the last place of the exact result (ulp), measured: for float32 over all
2**32 numbers where a docstring says "all", else over some millions; for float64 over tens of
thousands of samples by exponent, and beside roots, poles and borders, against 60 digits. None is
above 1. NaN, infinities, signed zeros and denormal numbers, in and out, are those of C's Annex F.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.devices.cpu.math.error import erf, erfc, erfinv
from antorcha.devices.cpu.math.exponential import cosh, exp, exp2, expm1, sigmoid, sinh, tanh
from antorcha.devices.cpu.math.gamma import digamma, lgamma
from antorcha.devices.cpu.math.inverse import acos, asin, atan, atan2
from antorcha.devices.cpu.math.logarithm import acosh, asinh, atanh, log, log1p, log2, log10
from antorcha.devices.cpu.math.power import power
from antorcha.devices.cpu.math.rounding import fmod, hypot, reciprocal, remainder, rsqrt
from antorcha.devices.cpu.math.trigonometric import cos, sin, tan
from antorcha.lang.native import ceil, copysign, floor, roundeven, sqrt, trunc

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": exp, "exp2": exp2, "expm1": expm1, "sigmoid": sigmoid, "tanh": tanh, "sinh": sinh,
    "cosh": cosh, "log": log, "log2": log2, "log10": log10, "log1p": log1p, "asinh": asinh,
    "acosh": acosh, "atanh": atanh, "pow": power, "sin": sin, "cos": cos, "tan": tan, "asin": asin,
    "acos": acos, "atan": atan, "atan2": atan2, "erf": erf, "erfc": erfc, "erfinv": erfinv,
    "lgamma": lgamma, "digamma": digamma, "reciprocal": reciprocal, "rsqrt": rsqrt, "hypot": hypot,
    "fmod": fmod, "mod": remainder, "sqrt": sqrt, "floor": floor, "ceil": ceil, "trunc": trunc,
    "round": roundeven, "copysign": copysign,
}  # fmt: skip
