"""Fits the polynomials of the special functions in `antorcha.devices.math`; needs mpmath.

    python tools/fit_special.py > src/antorcha/devices/math/special_coefficients.py

They are for float64 alone, which float32 is computed in. See `fit_polynomials` for how.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
from fit_polynomials import Fit, Function, Real, table, write


def relative(name: str, what: str, f: Function, low: float, high: float, terms: int) -> Fit:
    """f in t itself, errors relative to f."""
    return Fit(name, what, f, lambda t: 1 / f(t), low, high, (0, terms))


# ------------------------------------------------------------------------- modified Bessel
def _after_one(order: int) -> Function:
    """(I(x) / (its first term) - 1) / z of t = z / 16, z = x*x / 4."""

    def f(t: Real) -> Real:
        z = 16 * t
        x = 2 * mp.sqrt(z)
        first = x / 2 if order else mp.mpf(1)
        return (mp.besseli(order, x) / first - 1) / z

    return f


def _after_one_weight(order: int) -> Function:
    def weight(t: Real) -> Real:
        z = 16 * t
        return z / (1 + z * _after_one(order)(t))

    return weight


def i_far(order: int) -> Function:
    """sqrt(x) exp(-x) I(x) of t = 16 / x - 1."""

    def f(t: Real) -> Real:
        x = 16 / (1 + t)
        return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)

    return f


def k_near(order: int) -> Function:
    """K0(x) + log(x / 2) I0(x), or x (K1(x) - log(x / 2) I1(x)), of z = x*x / 4."""

    def f(z: Real) -> Real:
        x = 2 * mp.sqrt(z)
        log = mp.log(x / 2) * mp.besseli(order, x)
        return x * (mp.besselk(1, x) - log) if order else mp.besselk(0, x) + log

    return f


def _k_near_weight(order: int) -> Function:
    def weight(z: Real) -> Real:
        x = 2 * mp.sqrt(z)
        return 1 / (mp.besselk(order, x) * (x if order else 1))

    return weight


def k_far(order: int) -> Function:
    """sqrt(x) exp(x) K(x) of t = 4 / x - 1."""

    def f(t: Real) -> Real:
        x = 4 / (1 + t)
        return mp.sqrt(x) * mp.exp(x) * mp.besselk(order, x)

    return f


# ------------------------------------------------------------------------- Bessel
ROOT_J0, ROOT_J1 = mp.besseljzero(0, 1), mp.besseljzero(1, 1)


def _x_near(t: Real) -> Real:
    return mp.sqrt(8 * (1 + t))


def j0_near(t: Real) -> Real:
    x = _x_near(t)
    return mp.besselj(0, x) / (x * x - ROOT_J0**2)


def j1_near(t: Real) -> Real:
    x = _x_near(t)
    return mp.besselj(1, x) / (x * (x * x - ROOT_J1**2))


def y0_near(t: Real) -> Real:
    x = _x_near(t)
    return mp.bessely(0, x) - 2 / mp.pi * mp.log(x / 2) * mp.besselj(0, x)


def y1_near(t: Real) -> Real:
    x = _x_near(t)
    return (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x / 2) * mp.besselj(1, x) - 1 / x)) / x


def modulus(order: int) -> Function:
    def f(t: Real) -> Real:
        return abs(mp.hankel1(order, _x_near(t)))

    return f


def turned(order: int) -> Callable[[Real], tuple[Real, Real]]:
    """P and x Q of t = 32 / x**2 - 1: J + i Y = sqrt(2 / (pi x)) (P + i Q) exp(i phase)."""

    def f(t: Real) -> tuple[Real, Real]:
        x = mp.sqrt(32 / (1 + t))
        phase = x - mp.pi / 4 - order * mp.pi / 2
        p = mp.hankel1(order, x) * mp.expj(-phase) * mp.sqrt(mp.pi * x / 2)
        return p.real, x * p.imag

    return f


def _far(name: str, order: int) -> list[Fit]:
    f = turned(order)
    return [
        Fit(f"{name}_P", f"the part in phase of order {order}, in 32 / x**2 - 1, x >= 4",
            lambda t: f(t)[0], lambda t: mp.mpf(1), -1, 1, (0, 20)),
        Fit(f"{name}_Q", "the part a quarter ahead, times x",
            lambda t: f(t)[1], lambda t: mp.sqrt((1 + t) / 32), -1, 1, (0, 20)),
    ]  # fmt: skip


# ------------------------------------------------------------------------- normal distribution
def quantile(w: Real) -> Real:
    """y with erfc(y / sqrt(2)) / 2 = exp(-w*w / 2)."""
    y = w - mp.log(w * mp.sqrt(2 * mp.pi)) / w if w > 3 else w / 2
    for _ in range(60):  # Newton, on the logarithm
        tail = mp.erfc(y / mp.sqrt(2)) / 2
        step = (mp.log(tail) + w * w / 2) * tail * mp.sqrt(2 * mp.pi) * mp.exp(y * y / 2)
        y += step
        if abs(step) < mp.mpf(10) ** -60:
            break
    return y


def _quantile(name: str, low: float, high: float, terms: int) -> Fit:
    middle, half = (low + high) / 2, (high - low) / 2
    f = lambda t: quantile(middle + half * t)  # noqa: E731
    what = f"-ndtri(exp(-w*w / 2)) in (w - {middle}) / {half}, {low} <= w <= {high}"
    return relative(name, what, f, -1, 1, terms)


# ------------------------------------------------------------------------- Airy
def airy_decay(t: Real) -> Real:
    """2 sqrt(pi) x**(1/4) exp(s) Ai(x) of t = 2.4 / s - 1, s = 2/3 x**(3/2)."""
    s = mp.mpf("2.4") / (1 + t)
    x = (s * 3 / 2) ** (mp.mpf(2) / 3)
    return 2 * mp.sqrt(mp.pi) * mp.root(x, 4) * mp.exp(s) * mp.airyai(x)


AIRY_FROM = mp.mpf("20.25")


def airy_turned(t: Real) -> tuple[Real, Real]:
    """P and s Q of t = 20.25 / s**2 - 1, s = 2/3 a**(3/2): Ai(-a) is
    (P cos(s - pi/4) + Q sin(s - pi/4)) / (sqrt(pi) a**(1/4))."""
    s = mp.sqrt(AIRY_FROM / (1 + t))
    a = (s * 3 / 2) ** (mp.mpf(2) / 3)
    p = mp.mpc(mp.airyai(-a), mp.airybi(-a)) * mp.sqrt(mp.pi) * mp.root(a, 4)
    p = p * mp.expj(s - mp.pi / 4)  # Ai = P cos + Q sin, Bi = -P sin + Q cos
    return p.real, s * p.imag


FITS = [
    Fit("I0_NEAR", "(I0(x) - 1) / z in z / 16, z = x*x / 4, |x| <= 8",
        _after_one(0), _after_one_weight(0), mp.mpf(10) ** -30, 1, (0, 18)),
    Fit("I1_NEAR", "(2 I1(x) / x - 1) / z in z / 16, |x| <= 8",
        _after_one(1), _after_one_weight(1), mp.mpf(10) ** -30, 1, (0, 18)),
    relative("I0_FAR", "sqrt(x) exp(-x) I0(x) in 16 / x - 1, x >= 8", i_far(0), -1, 1, 24),
    relative("I1_FAR", "sqrt(x) exp(-x) I1(x) in 16 / x - 1, x >= 8", i_far(1), -1, 1, 24),
    Fit("K0_NEAR", "K0(x) + log(x / 2) I0(x) in z, z = x*x / 4, x <= 2",
        k_near(0), _k_near_weight(0), mp.mpf(10) ** -30, 1, (0, 10)),
    Fit("K1_NEAR", "x (K1(x) - log(x / 2) I1(x)) in z, x <= 2",
        k_near(1), _k_near_weight(1), mp.mpf(10) ** -30, 1, (0, 11)),
    relative("K0_FAR", "sqrt(x) exp(x) K0(x) in 4 / x - 1, x >= 2", k_far(0), -1, 1, 26),
    relative("K1_FAR", "sqrt(x) exp(x) K1(x) in 4 / x - 1, x >= 2", k_far(1), -1, 1, 26),
    relative("J0_NEAR", "J0(x) / (x*x - root**2) in x*x / 8 - 1, |x| <= 4", j0_near, -1, 1, 14),
    relative("J1_NEAR", "J1(x) / (x (x*x - root**2)) in x*x / 8 - 1, |x| <= 4", j1_near, -1, 1, 14),
    Fit("Y0_NEAR", "Y0(x) - 2/pi log(x / 2) J0(x) in x*x / 8 - 1, x <= 4",
        y0_near, lambda t: 1 / modulus(0)(t), -1, 1, (0, 16)),
    Fit("Y1_NEAR", "(Y1(x) - 2/pi (log(x / 2) J1(x) - 1 / x)) / x in x*x / 8 - 1, x <= 4",
        y1_near, lambda t: _x_near(t) / modulus(1)(t), -1, 1, (0, 16)),
    *_far("BESSEL0", 0),
    *_far("BESSEL1", 1),
    _quantile("NDTRI_NEAR", 1.625, 3.375, 25),
    _quantile("NDTRI_FAR", 3.375, 8.625, 25),
    _quantile("NDTRI_END", 8.625, 38.625, 35),
    relative("AIRY_RIGHT", "Ai(x) in (x - 0.5) / 1.25, -0.75 <= x <= 1.75",
             lambda t: mp.airyai(mp.mpf("0.5") + mp.mpf("1.25") * t), -1, 1, 20),
    Fit("AIRY_LEFT", "Ai(x) in (x + 2.25) / 1.5, -3.75 <= x <= -0.75",
        lambda t: mp.airyai(mp.mpf("-2.25") + mp.mpf("1.5") * t),
        lambda t: mp.mpf(2), -1, 1, (0, 24)),
    relative("AIRY_DECAY", "2 sqrt(pi) x**(1/4) exp(s) Ai(x) in 2.4 / s - 1, s = 2/3 x**(3/2)",
             airy_decay, -1, 1.1, 28),
    Fit("AIRY_P", "the part of Ai(-a) in phase, in 20.25 / s**2 - 1, s = 2/3 a**(3/2)",
        lambda t: airy_turned(t)[0], lambda t: mp.mpf(1), -1, 1, (0, 26)),
    Fit("AIRY_Q", "the part a quarter behind, times s",
        lambda t: airy_turned(t)[1], lambda t: mp.sqrt((1 + t) / AIRY_FROM), -1, 1, (0, 26)),
]  # fmt: skip


# ------------------------------------------------------------------------- incomplete gamma
GAMMA_ORDERS = (18, 16, 14, 12, 10, 8, 6)


def gamma_orders(terms: tuple[int, ...]) -> list[list[Fraction]]:
    """Taylor coefficients in eta of the functions C_k in N. Temme's expansion of the incomplete
    gamma functions (DLMF 8.12.7 to 8.12.10): eta**2 / 2 = mu - log(1 + mu), mu = x / a - 1."""
    most = terms[0] + 2 * len(terms) + 2
    mu = [Fraction(0), Fraction(1)]  # in eta
    for m in range(2, most + 2):
        rest = sum((mu[i] * mu[m + 1 - i] for i in range(2, m)), Fraction(0))
        mu.append(mu[-1] / (m + 1) - rest / 2)
    inverse = [Fraction(1)]  # eta / mu
    for m in range(1, most):
        inverse.append(-sum((mu[i + 1] * inverse[m - i] for i in range(1, m + 1)), Fraction(0)))
    powers = [Fraction(0)] * (2 * len(terms))  # log(gamma(a) / Stirling's formula), in 1 / a
    for k in range(1, len(terms) + 1):
        powers[2 * k - 1] = Fraction(*mp.bernfrac(2 * k)) / (2 * k * (2 * k - 1))
    ratio = [Fraction(1)]
    for m in range(1, len(terms)):
        ratio.append(sum((k * powers[k] * ratio[m - k] for k in range(1, m + 1)), Fraction(0)) / m)
    orders = [inverse[1:]]
    for k in range(1, len(terms)):
        before, sign = orders[-1], (-1) ** k
        orders.append([(p + 2) * before[p + 2] + sign * ratio[k] * inverse[p + 1]
                       for p in range(len(before) - 2)])  # fmt: skip
    return [row[:n] for row, n in zip(orders, terms, strict=True)]


def write_gamma_orders() -> None:
    print(
        "\n# C_k of the incomplete gamma functions in eta, |x / a - 1| <= 0.3: Taylor coefficients"
    )
    for k, row in enumerate(gamma_orders(GAMMA_ORDERS)):
        print(table(f"GAMMA_ORDER_{k}", [float(c) for c in row], 17))


if __name__ == "__main__":
    write(FITS, "fit_special", "special_coefficients")
    write_gamma_orders()
