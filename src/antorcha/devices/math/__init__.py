"""Transcendental functions in the kernel language: vectors or scalars of float32 and float64.

`FUNCTIONS` gives the native function of a scalar op, found by its name in the files of this folder
or among the instructions of `lang.native`; the type comes from the argument. The accuracy asked for
stands in the op's record (`lang/expr/primitives`).
No C library is called, and nothing is used but FMA, square root, division, integer operations and
selections: the same source serves every CPU, with the same results, scalar or vector.

    base            exact sums and products, polynomials, type queries
    pairs           arithmetic of pairs (high, low), for float64 results within an ulp
    coefficients         written by tools/fit_polynomials.py
    pair_coefficients    written by tools/fit_pairs.py
    special_coefficients written by tools/fit_special.py

Errors are in units in the last place of the exact result (ulp), measured: for float32 over all
2**32 numbers where a docstring says "all", else over some millions; for float64 over tens of
thousands of samples by exponent, and beside roots, poles and borders, against 60 digits. None is
above 1, but for float64 those of special functions that say so. NaN, infinities, signed zeros and
denormal numbers, in and out, are those of C's Annex F.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.devices.math import (
    bessel,
    error,
    exponential,
    gamma,
    incomplete_gamma,
    inverse,
    logarithm,
    modified_bessel,
    normal,
    orthogonal,
    power,
    rounding,
    trigonometric,
    zeta,
)
from antorcha.lang import native
from antorcha.lang.expr import OPS, ScalarOp

_FILES = (
    bessel, error, exponential, gamma, incomplete_gamma, inverse, logarithm, modified_bessel,
    normal, orthogonal, power, rounding, trigonometric, zeta, native,
)  # fmt: skip


def _function_of(op: ScalarOp) -> Callable[..., Any] | None:
    """What is named as the op, or as PyTorch names it; an underscore keeps Python's own apart."""
    names = (op.name, op.public, f"{op.name}_")
    return next((vars(file)[n] for file in _FILES for n in names if n in vars(file)), None)


_found = {op.name: _function_of(op) for op in OPS.values() if op.accuracy is not None}
FUNCTIONS = {name: function for name, function in _found.items() if function is not None}
