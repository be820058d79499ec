"""Fits the tables of `antorcha.devices.math.pair_coefficients`: needs mpmath.

    python tools/fit_pairs.py > src/antorcha/devices/math/pair_coefficients.py

A table is the interpolating polynomial at Chebyshev nodes, in 60 digits, which is within a small
factor of minimax. Its first coefficients, which the result feels most, are written as pairs of
float64, the others are rounded. The comment above a table gives the largest error of the rounded
polynomial in exact arithmetic, relative to the function, at 200 points between the nodes.

The tables of roots hold, for each root, the root in three float64, the Taylor coefficients there
(the first as a pair), and how far they serve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import mpmath as mp

mp.mp.dps = 60
Real = Any
Function = Callable[[Real], Real]


def nodes(low: Real, high: Real, count: int) -> list[Real]:
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    return [middle + half * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]


def parts(x: Real, count: int = 2) -> list[float]:
    """x as a sum of float64."""
    result = []
    for _ in range(count):
        result.append(float(x))
        x -= result[-1]
    return result


def interpolated(f: Function, low: Real, high: Real, terms: int) -> list[Real]:
    at = nodes(low, high, terms)
    with mp.workdps(90):
        matrix = mp.matrix([[v**k for k in range(terms)] for v in at])
        return list(mp.lu_solve(matrix, mp.matrix([f(v) for v in at])))


def lines(values: Iterable[str]) -> str:
    result, line = [], "   "
    for v in values:
        if len(line) + len(v) > 93:
            result.append(line)
            line = "   "
        line += f" {v},"
    return "\n".join([*result, line])


def table(name: str, what: str, f: Function, low: Real, high: Real, terms: int, lead: int) -> None:
    exact = interpolated(f, low, high, terms)
    heads = [parts(c) for c in exact[:lead]]
    rest = [float(c) for c in exact[lead:]]
    used = [mp.mpf(a) + b for a, b in heads] + [mp.mpf(c) for c in rest]
    worst = max(abs(mp.polyval(used[::-1], v) / f(v) - 1) for v in nodes(low, high, 200))
    print(f"\n# {what}\n# error 2**{float(mp.log(worst, 2)):.1f}")
    print(f"{name} = Pairs(\n    (")
    print("".join(f"        ({a!r}, {b!r}),\n" for a, b in heads) + "    ),\n    (")
    text = lines(repr(c) for c in rest)
    print(
        "\n".join(f"    {line}" for line in text.split("\n")) + "\n    ),\n)  # fmt: skip",
        flush=True,
    )


def roots(name: str, what: str, rows: list[list[float]]) -> None:
    print(f"\n# {what}\n{name} = (")
    for row in rows:
        print("    (\n" + "\n".join(f"    {line}" for line in lines(map(repr, row)).split("\n")))
        print("    ),")
    print(")  # fmt: skip", flush=True)


def erfcx(t: Real) -> Real:
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def erfinv_ratio(z: Real) -> Real:
    return mp.erfinv(mp.sqrt(z)) / mp.sqrt(z)


PSI_ROOT = mp.findroot(lambda x: mp.psi(0, x), 1.4616321449683623)


def cotangent(z: Real) -> Real:
    h = mp.sqrt(z)
    return (1 - mp.pi * h * mp.cot(mp.pi * h)) / z


def psi_tail(y: Real) -> Real:
    x = 1 / mp.sqrt(y)
    return (mp.log(x) - 1 / (2 * x) - mp.psi(0, x)) / y


def log_abs_gamma(x: Real) -> Real:
    return mp.log(mp.pi / abs(x * mp.sinpi(x))) - mp.loggamma(-x)


def lgamma_roots() -> list[list[float]]:
    rows = []
    for k in range(4, 33):  # a in k/2 .. (k + 1)/2
        pole = (k + 1) // 2
        side = 1 if k % 2 == 0 else -1  # the root is at pole + side * h
        with mp.workdps(110):
            if k == 4:
                root = mp.findroot(log_abs_gamma, mp.mpf("-2.4570247382208"))
            elif k == 5:
                root = mp.findroot(log_abs_gamma, mp.mpf("-2.7476826467274"))
            else:
                # h = pi h / sin(pi h) / gamma(pole + 1 + side h), again and again
                h = 1 / mp.factorial(pole)
                for _ in range(200):
                    h = mp.pi * h / mp.sinpi(h) / mp.gamma(pole + 1 + side * h)
                root = -(pole + side * h)
            assert abs(log_abs_gamma(root)) < mp.mpf(10) ** -80, k
            near = abs(root + pole)
            terms = [mp.psi(j, root) / mp.factorial(j + 1) for j in range(LGAMMA_TERMS)]
        radius = near / 2**8
        rows.append([*parts(-root, 3), float(radius), *parts(terms[0]), *map(float, terms[1:])])
    return rows


def psi_roots() -> list[list[float]]:
    rows = []
    for n in range(PSI_ROOTS):  # between -n - 1 and -n
        with mp.workdps(90):
            f = lambda x: mp.psi(0, 1 - x) - mp.pi * mp.cot(mp.pi * x)  # noqa: E731
            shift = mp.atan(mp.pi / mp.log(n + 1.5)) / mp.pi if n else mp.mpf("0.504")
            root = mp.findroot(f, -n - shift)
            assert -n - 1 < root < -n, (n, root)
            terms = [mp.psi(j, root) / mp.factorial(j) for j in range(1, PSI_TERMS + 1)]
        rows.append([*parts(-root, 3), *parts(terms[0]), *map(float, terms[1:])])
    return rows


LGAMMA_TERMS, PSI_TERMS, PSI_ROOTS = 7, 10, 32

HEADER = '''"""Tables for float64 whose first terms are pairs. Written by a tool: edit that.

    python tools/fit_pairs.py > src/antorcha/devices/math/pair_coefficients.py

The error above each table is that of the rounded polynomial in exact arithmetic, relative to the
function that it serves.
"""

from __future__ import annotations

from typing import NamedTuple


class Pairs(NamedTuple):
    """A polynomial, lowest power first: coefficients as (high, low), then single ones."""

    lead: tuple[tuple[float, float], ...]
    rest: tuple[float, ...]'''


def main() -> None:
    print(HEADER + "\n")
    table("ERFCX", "(1 + 2 x) exp(x*x) erfc(x) in t = (x - 4) / (x + 4), 0 <= x <= 28",
          erfcx, -1, 0.75, 30, 2)  # fmt: skip
    slope = interpolated(lambda t: mp.diff(erfcx, t), -1, 0.75, 9)
    print("\n# its slope in t, roughly\nERFCX_SLOPE = (")
    print(lines(f"{float(c):.6g}" for c in slope) + "\n)  # fmt: skip")
    table("ERFINV", "erfinv(x) / x in x*x, |x| <= 0.5", erfinv_ratio, mp.mpf(10) ** -9, 0.25, 22, 2)
    table("LGAMMA_ONE", "lgamma(1 + t) / t, |t| <= 0.5",
          lambda t: mp.loggamma(1 + t) / t, -0.5, 0.5, 36, 8)  # fmt: skip
    table("PSI_NEAR", "digamma(1 + t) / (1 + t - root) in t - 0.5, 0 <= t <= 1",
          lambda t: mp.psi(0, 1.5 + t) / (1.5 + t - PSI_ROOT), -0.5, 0.5, 30, 5)  # fmt: skip
    table("COTANGENT", "(1 - pi h cot(pi h)) / h**2 in h*h, |h| <= 0.25",
          cotangent, mp.mpf(10) ** -9, 0.0625, 13, 3)  # fmt: skip
    table("COTANGENT_LONG", "the same, nearer", cotangent, mp.mpf(10) ** -9, 0.0625, 20, 15)
    table("LOG_LONG", "(atanh(s) / s - 1) / s**2 in s*s, |s| <= 0.2",
          lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
          mp.mpf(10) ** -9, 0.0402, 17, 10)  # fmt: skip
    table("PSI_LONG", "x**2 (log(x) - 1/(2 x) - digamma(x)) in 1/x**2, x >= 31",
          psi_tail, mp.mpf(10) ** -9, 1 / mp.mpf(31) ** 2, 10, 4)  # fmt: skip
    roots("LGAMMA_ROOTS", "-root in three parts, radius, and lgamma's Taylor terms: two parts, ...",
          lgamma_roots())  # fmt: skip
    roots("PSI_ROOTS", "-root in three parts, and digamma's Taylor terms there: two parts, ...",
          psi_roots())  # fmt: skip


if __name__ == "__main__":
    main()
