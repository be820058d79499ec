"""Complex numbers and their parts."""

from __future__ import annotations

import math
from typing import Any

from antorcha.core.lazy import np
from antorcha.lang import expr as E
from antorcha.lang.expr.op import ScalarOp, anything, complex_part, itself, magnitude, paired, phase
from antorcha.lang.expr.primitives.trigonometric import over_square

__all__ = ["angle", "complex_", "conj", "imag", "real_"]

real_: ScalarOp = ScalarOp(
    "real", 1, magnitude, "real", (lambda g, x, y: g,), "The real part; a real number itself.",
    shortcut=itself("buif"),
)  # fmt: skip
imag: ScalarOp = ScalarOp(
    "imag", 1, complex_part, "imag", (lambda g, x, y: g * 1j,), "The imaginary part."
)
conj: ScalarOp = ScalarOp(
    "conj", 1, anything, "conjugate", (lambda g, x, y: E.conj(g),),
    "The complex conjugate; a real number itself.",
    complex_rule=lambda z: (z[0], -z[1]), shortcut=itself("buif"),
)  # fmt: skip


def _complex(re: Any, im: Any) -> Any:
    re, im = np.broadcast_arrays(re, im)
    out = np.empty(re.shape, np.result_type(re.dtype, np.complex64))
    out.real, out.imag = re, im
    return out


complex_: ScalarOp = ScalarOp(
    "complex", 2, paired, _complex,
    (lambda g, a, b, y: E.real(g), lambda g, a, b, y: E.imag(g)),
    "a + 1j * b without arithmetic: infinite parts stay apart.",
)  # fmt: skip


def _angle(x: Any) -> Any:
    if x.dtype.kind == "c":
        return np.angle(x)
    return np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0))


def _angle_slope(g: Any, x: Any, y: Any) -> Any:
    if x.dtype.kind != "c":
        return None
    re, im = E.real(x), E.imag(x)
    return E.complex(-over_square(g, im, re), over_square(g, re, im))


angle: ScalarOp = ScalarOp(
    "angle", 1, phase, _angle, (_angle_slope,), "The argument of a complex number; 0 or pi.",
    complex_rule=lambda z: E.atan2(z[1], z[0]),
    expand=lambda x: E.where(x < 0, math.pi, E.where(E.isnan(x), x, 0)),
)  # fmt: skip
