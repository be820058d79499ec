"""Fits the polynomials of `antorcha.devices.math`: a developer's tool, needs mpmath.

    python tools/fit_polynomials.py > src/antorcha/devices/math/coefficients.py

Each fit is a weighted least-squares polynomial over Chebyshev nodes, in 80 digits, which is within
a small factor of minimax. The coefficients are rounded to the type one after the other, lowest
first, and the rest fitted again each time: later ones make good the rounding of earlier ones.
The comment above a table gives the largest error measured at 400 points between the nodes, of
the rounded polynomial in exact arithmetic, relative to the function that it serves.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import mpmath as mp

mp.mp.dps = 80
Real = mp.mpf
Function = Callable[[Real], Real]


@dataclass(frozen=True)
class Fit:
    """A polynomial of `terms` terms for target(v) on low..high, errors counted times weight(v)."""

    name: str
    what: str
    target: Function
    weight: Function
    low: float | Real
    high: float | Real
    terms: tuple[int, int]  # for float32 and float64; 0: no table
    fixed: dict[int, float] = field(default_factory=dict)


def rounded(x: Real, single: bool) -> Real:
    if not single:
        return mp.mpf(float(x))
    return mp.mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def nodes(low: Real, high: Real, count: int) -> list[Real]:
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle + half * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]


def fit(f: Fit, single: bool, terms: int) -> tuple[list[float], float]:
    low, high = mp.mpf(f.low), mp.mpf(f.high)
    at = nodes(low, high, 4 * terms + 2)
    weights = [f.weight(v) for v in at]
    rest = [f.target(v) for v in at]
    coefficients: list[Real] = []
    for k in range(terms):
        if k in f.fixed:
            c = mp.mpf(f.fixed[k])
        else:
            free = [j for j in range(k, terms) if j == k or j not in f.fixed]
            rows = mp.matrix([[w * v**j for j in free] for v, w in zip(at, weights)])
            right = mp.matrix([w * g for g, w in zip(rest, weights)])
            c = rounded(mp.lu_solve(rows.T * rows, rows.T * right)[0], single)
        coefficients.append(c)
        rest = [g - c * v**k for g, v in zip(rest, at)]
    worst = mp.mpf(0)
    for v in nodes(low, high, 400):
        error = mp.polyval(coefficients[::-1], v) - f.target(v)
        worst = max(worst, abs(error * f.weight(v)))
    return [float(c) for c in coefficients], float(mp.log(worst, 2))


def odd(name: str, f: Function, high: float, terms: tuple[int, int]) -> Fit:
    """f(x) = x + x^3 P(x^2) for |x| <= high."""

    def target(z: Real) -> Real:
        x = mp.sqrt(z)
        return (f(x) - x) / (x * z)

    def weight(z: Real) -> Real:
        x = mp.sqrt(z)
        return x * z / f(x)

    what = f"({name.lower()}(x) - x) / x**3 in x*x, |x| <= {float(high):.6g}"
    return Fit(name, what, target, weight, 0, mp.mpf(high) ** 2, terms)


def _log_pair(z: Real) -> Real:
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s - 2 * s**3 / 3) / s**5


def _erfcx(t: Real) -> Real:
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def _erfinv_ratio(w: Real) -> Real:
    x = mp.sqrt(-mp.expm1(-w))
    y = mp.sqrt(w) if w > 1 else x * mp.sqrt(mp.pi) / 2
    for _ in range(40):  # Newton, on erfc where erf is near 1
        gap = mp.exp(-w) / (1 + x) - mp.erfc(y) if w > 1 else mp.erf(y) - x
        step = gap * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        y -= step / (1 + y * step)
        if abs(step) < mp.mpf(10) ** -60:
            break
    return y / x


def _stirling(y: Real) -> Real:
    x = 1 / mp.sqrt(y)
    return x * (mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def _psi_tail(y: Real) -> Real:
    x = 1 / mp.sqrt(y)
    return (mp.log(x) - 1 / (2 * x) - mp.psi(0, x)) / y


PSI_ROOT = mp.findroot(lambda x: mp.psi(0, x), 1.4616321449683623)
HALF_LN2, QUARTER_PI = mp.log(2) / 2 * 1.001, mp.pi / 4 * 1.001
THIRD = mp.mpf(1) / 3
FITS = [
    Fit("EXP", "(exp(r) - 1 - r) / r**2, |r| <= ln(2)/2",
        lambda r: (mp.expm1(r) - r) / r**2, lambda r: r * r / mp.exp(r),
        -HALF_LN2, HALF_LN2, (5, 11), {0: 0.5}),
    Fit("EXP_LONG", "the same, nearer",
        lambda r: (mp.expm1(r) - r) / r**2, lambda r: r * r / mp.exp(r),
        -HALF_LN2, HALF_LN2, (6, 12), {0: 0.5}),
    Fit("EXP_SHORT", "the same, for float32 computed in float64",
        lambda r: (mp.expm1(r) - r) / r**2, lambda r: r * r / mp.exp(r),
        -HALF_LN2, HALF_LN2, (0, 7), {0: 0.5}),
    Fit("EXP2", "(2**r - 1 - r ln(2)) / r**2, |r| <= 0.5",
        lambda r: (mp.power(2, r) - 1 - r * mp.log(2)) / r**2, lambda r: r * r / mp.power(2, r),
        -0.5005, 0.5005, (6, 11)),
    Fit("LOG", "(log(1 + f) - f) / f**2, |f| <= 1/3",
        lambda f: (mp.log1p(f) - f) / f**2, lambda f: f * f / mp.log1p(f),
        -THIRD, THIRD, (10, 21), {0: -0.5}),
    Fit("LOG_CUBE", "(log(1 + f) - f + f*f/2) / f**3, |f| <= 1/3",
        lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, lambda f: f**3 / mp.log1p(f),
        -THIRD, THIRD, (9, 20)),
    Fit("LOG_SHORT", "the same, for float32 computed in float64",
        lambda f: (mp.log1p(f) - f) / f**2, lambda f: f * f / mp.log1p(f),
        -THIRD, THIRD, (0, 14), {0: -0.5}),
    Fit("LOG_PAIR", "(log((1 + s) / (1 - s)) - 2 s - 2/3 s**3) / s**5 in s*s, |s| <= 0.2",
        _log_pair, lambda z: z * z, 0, 0.0402, (0, 10)),
    odd("SIN", mp.sin, QUARTER_PI, (4, 7)),
    Fit("COS", "(cos(r) - 1 + r*r/2) / r**4 in r*r, |r| <= pi/4",
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z * z / mp.cos(mp.sqrt(z)),
        0, QUARTER_PI**2, (3, 7)),
    odd("TAN", mp.tan, QUARTER_PI, (7, 15)),
    Fit("ATAN", "(atan(x) - x) / x**3 in x*x - 0.5, |x| <= 1",
        lambda t: (mp.atan(mp.sqrt(t + 0.5)) / mp.sqrt(t + 0.5) - 1) / (t + 0.5),
        lambda t: mp.sqrt(t + 0.5) * (t + 0.5) / mp.atan(mp.sqrt(t + 0.5)),
        -0.5, 0.5, (9, 21)),
    odd("ASIN", mp.asin, 0.5, (6, 13)),
    odd("TANH", mp.tanh, 1, (8, 18)),
    odd("SINH", mp.sinh, 1, (4, 8)),
    odd("ASINH", mp.asinh, 0.5, (6, 13)),
    odd("ATANH", mp.atanh, 0.5, (7, 14)),
    Fit("ERF", "(erf(x) - x) / x in x*x, |x| <= 1 (float32: 0.9375)",
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), 0, 1, (7, 15)),
    Fit("ERF_SHORT", "the same, |x| <= 0.5, for float32 computed in float64",
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), 0, 0.2501, (0, 6)),
    Fit("ERF_TAIL", "-log(erfc(x)) - x in x, 0.93 <= x <= 3.95",
        lambda x: -mp.log(mp.erfc(x)) - x, lambda x: mp.erfc(x) / mp.erf(x),
        0.93, 3.95, (8, 0)),
    Fit("ERFCX", "(1 + 2 x) exp(x*x) erfc(x) in (x - 4) / (x + 4), 0 <= x <= 28",
        _erfcx, lambda t: 1 / _erfcx(t), -1, 0.75, (0, 28)),
    Fit("ERFCX_SHORT", "the same, 0 <= x <= 10.1, for float32 computed in float64",
        _erfcx, lambda t: 1 / _erfcx(t), -1, 0.433, (0, 14)),
    Fit("ERFINV_NEAR", "erfinv(x) / x in w - 3.125, w = -log(1 - x*x) <= 6.25",
        lambda t: _erfinv_ratio(t + 3.125), lambda t: 1 / _erfinv_ratio(t + 3.125),
        -3.125, 3.126, (0, 26)),
    Fit("ERFINV_NEAR_SHORT", "the same, for float32 computed in float64",
        lambda t: _erfinv_ratio(t + 3.125), lambda t: 1 / _erfinv_ratio(t + 3.125),
        -3.125, 3.126, (0, 15)),
    Fit("ERFINV_FAR", "the same in sqrt(w) - 3, 6.25 <= w <= 16",
        lambda t: _erfinv_ratio((t + 3) ** 2), lambda t: 1 / _erfinv_ratio((t + 3) ** 2),
        -0.501, 1.001, (0, 22)),
    Fit("ERFINV_FAR_SHORT", "the same, for float32 computed in float64",
        lambda t: _erfinv_ratio((t + 3) ** 2), lambda t: 1 / _erfinv_ratio((t + 3) ** 2),
        -0.501, 1.001, (0, 12)),
    Fit("ERFINV_END", "the same in sqrt(w) - 5, 16 <= w <= 37",
        lambda t: _erfinv_ratio((t + 5) ** 2), lambda t: 1 / _erfinv_ratio((t + 5) ** 2),
        -1.001, 1.09, (0, 21)),
    Fit("LGAMMA_ONE", "lgamma(1 + t) / t, |t| <= 0.5",
        lambda t: mp.loggamma(1 + t) / t, lambda t: t / mp.loggamma(1 + t),
        -0.5, 0.5, (0, 30)),
    Fit("LGAMMA_TWO", "lgamma(2 + t) / t, -0.5 <= t <= 1",
        lambda t: mp.loggamma(2 + t) / t, lambda t: t / mp.loggamma(2 + t),
        -0.5, 1, (0, 24)),
    Fit("STIRLING", "x (lgamma(x) - (x - 1/2) log(x) + x - log(2 pi)/2) in 1/x**2, x >= 8",
        _stirling, lambda y: mp.sqrt(y) / 8, mp.mpf(10) ** -12, mp.mpf(1) / 64, (0, 7)),
    Fit("DIGAMMA", "digamma(1.5 + t) / (1.5 + t - root), |t| <= 0.5",
        lambda t: mp.psi(0, 1.5 + t) / (1.5 + t - PSI_ROOT),
        lambda t: (1.5 + t - PSI_ROOT) / mp.psi(0, 1.5 + t), -0.5, 0.5, (0, 24)),
    Fit("PSI_TAIL", "x**2 (log(x) - 1/(2 x) - digamma(x)) in 1/x**2, x >= 8",
        _psi_tail, lambda y: y / 2, mp.mpf(10) ** -12, mp.mpf(1) / 64, (0, 8)),
]  # fmt: skip


HEADER = '''"""Polynomial coefficients, lowest power first. Written by a tool: edit that.

    python tools/{tool}.py > src/antorcha/devices/math/{file}.py

The error above each table is that of the rounded polynomial in exact arithmetic, relative to the
function that it serves.
"""

from __future__ import annotations'''


def table(name: str, values: list[float], digits: int) -> str:
    lines, line = [f"{name} = ("], "   "
    for v in values:
        text = f" {v!r}," if digits == 17 else f" {float(f'{v:.9g}')!r},"
        if len(line + text) > 99:
            lines.append(line)
            line = "   "
        line += text
    return "\n".join([*lines, line, ")  # fmt: skip"])


def write(fits: list[Fit], tool: str, file: str) -> None:
    print(HEADER.format(tool=tool, file=file))
    for f in fits:
        print(f"\n# {f.what}")
        for terms, bits, single in ((f.terms[0], "32", True), (f.terms[1], "64", False)):
            if terms:
                values, error = fit(f, single, terms)
                print(f"# error 2**{error:.1f}")
                print(table(f"{f.name}_{bits}", values, 9 if single else 17), flush=True)


if __name__ == "__main__":
    write(FITS, "fit_polynomials", "coefficients")
