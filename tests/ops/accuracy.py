"""How far the special functions are from their exact values: what each is compared with, and a
search for the arguments where it is furthest off.

    python -m tests.ops.accuracy NAMES

prints the worst that a search finds, as lines for `worst_points`. Errors are in units in the last
place (ulp) of the exact result, or of `size` where a function has roots that no sum of terms of
that size can hit.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import mpmath as mp
import numpy as np

import antorcha

Array = np.ndarray[Any, Any]
BITS = {"float32": (24, -149, 128), "float64": (53, -1074, 1024)}
BAR = {"float32": 4.0, "float64": 16.0}


class Function(NamedTuple):
    """A function, its exact value, and where arguments are drawn from."""

    call: Callable[..., Any]
    exact: Callable[..., Any]
    domains: Any
    """Of each argument an interval, or the numbers that it may be; or what draws the arguments."""
    size: Callable[..., Any] | None = None
    near: tuple[float, ...] = ()
    """Roots, branch points and borders, beside which arguments are drawn, too."""


t: Any = antorcha
S: Any = antorcha.special
F: Any = antorcha.nn.functional
INF = math.inf
LINE, POSITIVE = (-INF, INF), (0.0, INF)


def _wave(order: int) -> Callable[[Any], Any]:
    def size(x: Any) -> Any:
        x = abs(x)
        return mp.hypot(mp.besselj(order, x), mp.bessely(order, x)) if x > 2 else 0

    return size


def _airy(x: Any) -> Any:
    return mp.hypot(mp.airyai(x), mp.airybi(x)) if x < -1 else 0


def _normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _log_sum(base: Any) -> Callable[[Any, Any], Any]:
    def exact(x: Any, y: Any) -> Any:
        top = max(x, y)
        return top + mp.log1p(mp.power(base, -abs(x - y))) / mp.log(base)

    return exact


def _larger(x: Any, y: Any) -> Any:
    return max(abs(x), abs(y))


def _of_degree(n: int) -> Callable[[Any], Any]:
    return lambda x: t.polygamma(n, x)


def _share(x: Any, y: Any) -> Any:
    return x * mp.log(y) if x else mp.mpf(0)


def _zeta(s: Any, q: Any) -> Any:
    """The sum of (k + q)**-s for s > 1, by Euler and Maclaurin; below 0 for whole s alone."""
    with mp.workprec(mp.mp.prec + 60):
        total = mp.mpf(0)
        while q < 40 + s / 4:
            total += q**-s
            q += 1
        term = q**-s
        total += term * (q / (s - 1) + mp.mpf(1) / 2)
        term *= s / q
        for k in range(1, 60):
            total += term * mp.bernoulli(2 * k) / mp.factorial(2 * k)
            term *= (s + 2 * k - 1) * (s + 2 * k) / q**2
        return +total


def _polygamma(n: int) -> Callable[[Any], Any]:
    return lambda x: (-1) ** (n + 1) * mp.factorial(n) * _zeta(mp.mpf(n + 1), x)


def _beside_pole(n: int) -> Callable[[Any], Any]:
    """The size of a polygamma function beside the nearest pole, which roots are measured by."""
    return lambda x: mp.factorial(n) * abs(x - mp.nint(x)) ** -(n + 1)


def _of_degrees(first: Any, step: Any, shifted: bool = False) -> Callable[[Any, Any], Any]:
    """An orthogonal polynomial by its recurrence, given that of degree 1."""

    def exact(x: Any, n: Any) -> Any:
        with mp.workprec(mp.mp.prec + 200):
            x = 2 * x - 1 if shifted else x
            before, p = mp.mpf(1), first(x)
            for k in range(1, int(n)):
                before, p = p, step(k, x, p, before)
            return p if n else before

    return exact


def _slope_of_share(a: Any, x: Any) -> Any:
    x = x.clone().requires_grad_()
    S.gammainc(a, x).sum().backward()
    return x.grad


def _density(a: Any, x: Any) -> Any:
    return mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))


def _shapes(count: int, dtype: Any, random: Any) -> list[Array]:
    """Arguments of the incomplete gamma functions, most where neither share is nearly all."""
    a = np.exp(random.uniform(np.log(1e-5), np.log(3e4), count))
    steps = random.uniform(-1, 1, count) * np.exp(random.uniform(-5, 3, count))
    x = np.abs(a + steps * np.sqrt(a))
    some = random.random(count) < 0.3
    x[some] = np.exp(random.uniform(-30, 6, some.sum()))
    return [a.astype(dtype), np.maximum(x, 1e-30).astype(dtype)]


def _lower(a: Any, x: Any) -> Any:
    return _incomplete(a, x)[0]


def _upper(a: Any, x: Any) -> Any:
    return _incomplete(a, x)[1]


def _incomplete(a: Any, x: Any) -> tuple[Any, Any]:
    """The two shares, by the series of the lower one, or Legendre's fraction of the upper one."""
    if x == 0 or a == 0:
        return (mp.mpf(0), mp.mpf(1)) if a else (mp.mpf(1), mp.mpf(0))
    with mp.workprec(mp.mp.prec + 200 + max(0, -mp.frexp(a)[1])):
        scale = mp.exp(a * mp.log(x) - x - mp.loggamma(a))
        if x < a + 2:
            term, total, k = 1 / a, 1 / a, a
            while abs(term) > abs(total) * mp.mpf(2) ** -mp.mp.prec:
                k += 1
                term *= x / k
                total += term
            return total * scale, 1 - total * scale
        b = x + 1 - a
        c, d = mp.mpf(2) ** 2000, 1 / b
        h, k = d, 0
        while True:
            k += 1
            step = -k * (k - a)
            b += 2
            d = 1 / (step * d + b)
            c = b + step / c
            h *= d * c
            if abs(d * c - 1) < mp.mpf(2) ** -mp.mp.prec:
                return 1 - h * scale, h * scale


def _many_gammas(p: int) -> Callable[[Any], Any]:
    def exact(x: Any) -> Any:
        return p * (p - 1) * mp.log(mp.pi) / 4 + sum(mp.loggamma(x - mp.mpf(i) / 2)
                                                     for i in range(p))  # fmt: skip

    return exact


FUNCTIONS = {
    "exp": Function(t.exp, mp.exp, ((-746, 710),)),
    "exp2": Function(t.exp2, lambda x: mp.mpf(2) ** x, ((-1075, 1024),)),
    "expm1": Function(t.expm1, mp.expm1, ((-50, 710),)),
    "log": Function(t.log, mp.log, (POSITIVE,), near=(1,)),
    "log2": Function(t.log2, lambda x: mp.log(x, 2), (POSITIVE,), near=(1,)),
    "log10": Function(t.log10, lambda x: mp.log(x, 10), (POSITIVE,), near=(1,)),
    "log1p": Function(t.log1p, mp.log1p, ((-1, INF),), near=(-1,)),
    "sin": Function(t.sin, mp.sin, (LINE,), near=(math.pi, 2 * math.pi, 1e5)),
    "cos": Function(t.cos, mp.cos, (LINE,), near=(math.pi / 2, 1e5)),
    "tan": Function(t.tan, mp.tan, (LINE,), near=(math.pi / 2, math.pi)),
    "asin": Function(t.asin, mp.asin, ((-1, 1),), near=(-1, 1)),
    "acos": Function(t.acos, mp.acos, ((-1, 1),), near=(-1, 1)),
    "atan": Function(t.atan, mp.atan, (LINE,)),
    "sinh": Function(t.sinh, mp.sinh, ((-711, 711),)),
    "cosh": Function(t.cosh, mp.cosh, ((-711, 711),)),
    "tanh": Function(t.tanh, mp.tanh, (LINE,)),
    "asinh": Function(t.asinh, mp.asinh, (LINE,)),
    "acosh": Function(t.acosh, mp.acosh, ((1, INF),), near=(1,)),
    "atanh": Function(t.atanh, mp.atanh, ((-1, 1),), near=(-1, 1)),
    "rsqrt": Function(t.rsqrt, lambda x: 1 / mp.sqrt(x), (POSITIVE,)),
    "sigmoid": Function(t.sigmoid, lambda x: 1 / (1 + mp.exp(-x)), ((-746, 800),)),
    "logit": Function(t.logit, lambda x: mp.log(x / (1 - x)), ((0, 1),), near=(0.5, 1)),
    "sinc": Function(t.sinc, lambda x: mp.sincpi(x), (LINE,), near=(1, 2, 3.5, 1000)),
    "softplus": Function(F.softplus, lambda x: mp.log1p(mp.exp(x)), ((-746, 20),)),
    "logsigmoid": Function(F.logsigmoid, lambda x: -mp.log1p(mp.exp(-x)), ((-1e30, 746),)),
    "silu": Function(F.silu, lambda x: x / (1 + mp.exp(-x)), ((-760, 800),), near=(-88, -104)),
    "mish": Function(F.mish, lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), ((-760, 800),),
                     near=(-88, -104, 20)),
    "elu": Function(F.elu, lambda x: x if x > 0 else mp.expm1(x), (LINE,)),
    "erf": Function(t.erf, mp.erf, (LINE,)),
    "erfc": Function(t.erfc, mp.erfc, ((-7, 27.3),)),
    "erfcx": Function(S.erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), ((-26.6, 1e8),), near=(28,)),
    "erfinv": Function(t.erfinv, mp.erfinv, ((-1, 1),), near=(-1, 1)),
    "ndtr": Function(S.ndtr, _normal, ((-38.5, 40),)),
    "ndtri": Function(S.ndtri, lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1) if x > 1e-10
                      else mp.findroot(lambda y: mp.log(_normal(y)) - mp.log(x),
                                       mp.mpf(float(_ndtri(float(x))))),
                      ((1e-300, 1),), near=(0.25, 0.5, 0.75, 1)),
    "log_ndtr": Function(S.log_ndtr, lambda x: mp.log(_normal(x)) if x < 3
                         else mp.log1p(-_normal(-x)), ((-1e150, 38.4),), near=(-1,)),
    "lgamma": Function(t.lgamma, lambda x: mp.re(mp.loggamma(x)), ((-100, 1e300),),
                       near=(1, 2, -2.4570247382208006, -0.5)),
    "digamma": Function(t.digamma, mp.digamma, ((-100, INF),), near=(1.4616321449683622, -0.504)),
    "i0": Function(t.i0, lambda x: mp.besseli(0, x), ((-713, 713),), near=(8,)),
    "i0e": Function(S.i0e, lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), ((-1e6, 1e6),)),
    "i1": Function(S.i1, lambda x: mp.besseli(1, x), ((-713, 713),), near=(8,)),
    "i1e": Function(S.i1e, lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), ((-1e6, 1e6),)),
    "modified_bessel_k0": Function(S.modified_bessel_k0, lambda x: mp.besselk(0, x),
                                   ((1e-300, 740),), near=(2,)),
    "modified_bessel_k1": Function(S.modified_bessel_k1, lambda x: mp.besselk(1, x),
                                   ((1e-300, 740),), near=(2,)),
    "scaled_modified_bessel_k0": Function(S.scaled_modified_bessel_k0,
                                          lambda x: mp.exp(x) * mp.besselk(0, x),
                                          ((1e-300, 1e6),), near=(2,)),
    "scaled_modified_bessel_k1": Function(S.scaled_modified_bessel_k1,
                                          lambda x: mp.exp(x) * mp.besselk(1, x),
                                          ((1e-300, 1e6),), near=(2,)),
    "bessel_j0": Function(S.bessel_j0, lambda x: mp.besselj(0, x), ((-1e8, 1e8),), _wave(0),
                          near=(2.404825557695773, 4)),
    "bessel_j1": Function(S.bessel_j1, lambda x: mp.besselj(1, x), ((-1e8, 1e8),), _wave(1),
                          near=(3.8317059702075125, 4)),
    "bessel_y0": Function(S.bessel_y0, lambda x: mp.bessely(0, x), ((1e-300, 1e8),),
                          lambda x: mp.hypot(mp.besselj(0, x), mp.bessely(0, x)), near=(4, 0.9)),
    "bessel_y1": Function(S.bessel_y1, lambda x: mp.bessely(1, x), ((1e-300, 1e8),),
                          lambda x: mp.hypot(mp.besselj(1, x), mp.bessely(1, x)), near=(4, 2.2)),
    "spherical_bessel_j0": Function(S.spherical_bessel_j0, mp.sinc, (LINE,), near=(math.pi,)),
    "airy_ai": Function(S.airy_ai, mp.airyai, ((-1e4, 105),), _airy, near=(-2.338, 1.5)),
    "entr": Function(S.entr, lambda x: -x * mp.log(x), (POSITIVE,), near=(1,)),
    "mvlgamma(1)": Function(lambda x: t.mvlgamma(x, 1), _many_gammas(1), ((0, 1e300),)),
    "mvlgamma(3)": Function(lambda x: t.mvlgamma(x, 3), _many_gammas(3), ((1, 1e300),),
                            near=(1.5, 2)),
    "mvlgamma(10)": Function(lambda x: t.mvlgamma(x, 10), _many_gammas(10), ((4.5, 1e300),)),
    **{f"polygamma({n})": Function(_of_degree(n), _polygamma(n), ((0, 1e30),))
       for n in (1, 2, 3, 10, 30, 100, 170)},
    **{f"polygamma({n}) below 0": Function(_of_degree(n), _polygamma(n), ((-30, 0),),
                                           _beside_pole(n), near=(-1, -2, -0.5, -7.5))
       for n in (1, 2, 3, 10, 31)},
    "atan2": Function(t.atan2, mp.atan2, (LINE, LINE)),
    "hypot": Function(t.hypot, mp.hypot, (LINE, LINE)),
    "pow": Function(t.pow, lambda x, y: x ** y, (POSITIVE, (-1e3, 1e3))),
    "float_power": Function(t.float_power, lambda x, y: x ** y, (POSITIVE, (-1e3, 1e3))),
    "logaddexp": Function(t.logaddexp, _log_sum(mp.e), ((-1e3, 1e3),) * 2, _larger),
    "logaddexp2": Function(t.logaddexp2, _log_sum(2), ((-1e3, 1e3),) * 2, _larger),
    "xlogy": Function(t.xlogy, _share, (LINE, POSITIVE)),
    "xlog1py": Function(S.xlog1py, lambda x, y: x * mp.log1p(y), (LINE, (-1, INF))),
    "ldexp": Function(t.ldexp, lambda x, y: x * mp.mpf(2) ** y, (LINE, tuple(range(-400, 400)))),
    "zeta": Function(S.zeta, _zeta, ((1, 60), (1e-4, 1e4)), near=(1,)),
    "zeta of whole": Function(S.zeta, _zeta, (tuple(range(2, 40)), (1e-8, 1e8))),
    "gammainc": Function(S.gammainc, _lower, _shapes),
    "gammaincc": Function(S.gammaincc, _upper, _shapes),
    "gammainc's slope": Function(_slope_of_share, _density, _shapes),
}  # fmt: skip
Step: TypeAlias = Callable[[int, Any, Any, Any], Any]
CHEBYSHEV: Step = lambda k, x, p, b: 2 * x * p - b  # noqa: E731
POLYNOMIALS: dict[str, tuple[Callable[[Any], Any], Step, Callable[[Any, Any], Any]]] = {
    "chebyshev_polynomial_t": (lambda x: x, CHEBYSHEV, lambda x, n: 1),
    "chebyshev_polynomial_u": (lambda x: 2 * x, CHEBYSHEV, lambda x, n: n + 1),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, CHEBYSHEV, lambda x, n: 2 * n + 1),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, CHEBYSHEV, lambda x, n: 2 * n + 1),
    "hermite_polynomial_h": (
        lambda x: 2 * x, lambda k, x, p, b: 2 * x * p - 2 * k * b,
        lambda x, n: mp.exp(x * x / 2) * mp.sqrt(2**n * mp.factorial(n)),
    ),
    "hermite_polynomial_he": (
        lambda x: x, lambda k, x, p, b: x * p - k * b,
        lambda x, n: mp.exp(x * x / 4) * mp.sqrt(mp.factorial(n)),
    ),
    "laguerre_polynomial_l": (
        lambda x: 1 - x, lambda k, x, p, b: ((2 * k + 1 - x) * p - k * b) / (k + 1),
        lambda x, n: mp.exp(x / 2),
    ),
    "legendre_polynomial_p": (
        lambda x: x, lambda k, x, p, b: ((2 * k + 1) * x * p - k * b) / (k + 1),
        lambda x, n: 1,
    ),
}  # fmt: skip
DEGREES = (*range(40), 100)
for _name, (_first, _step, _size) in POLYNOMIALS.items():
    FUNCTIONS[_name] = Function(
        getattr(S, _name), _of_degrees(_first, _step), ((-8, 8), DEGREES), _size, near=(1, -1)
    )
    if _step is CHEBYSHEV:
        FUNCTIONS[f"shifted_{_name}"] = Function(
            getattr(S, f"shifted_{_name}"), _of_degrees(_first, _step, shifted=True),
            ((-4, 4), DEGREES), _size, near=(1, 1e-9),
        )  # fmt: skip

COMPLEX: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(mp, name) for name in (
        "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan",
        "asinh", "acosh", "atanh",
    )},
    "log1p": lambda z: mp.log(1 + z), "log2": lambda z: mp.log(z) / mp.log(2),
    "log10": lambda z: mp.log10(z), "exp2": lambda z: mp.power(2, z),
    "expm1": lambda z: mp.exp(z) - 1, "rsqrt": lambda z: 1 / mp.sqrt(z),
    "sigmoid": lambda z: 1 / (1 + mp.exp(-z)), "reciprocal": lambda z: 1 / z,
}  # fmt: skip
"""Functions of complex numbers; each part is measured on its own."""
ANGLES = ("exp2",)  # whose angle is a rounded product
CANCELS = ("expm1", "sigmoid")  # with a curve of roots of the real part


def _ndtri(x: float) -> float:
    return float(S.ndtri(t.tensor(x, dtype=t.float64)))


def draw(domain: Any, near: tuple[float, ...], count: int, dtype: Any, random: Any) -> Array:
    """Numbers of the domain: evenly, by exponent, beside its ends, and beside what is near."""
    info = np.finfo(dtype)
    if len(domain) != 2:
        return random.choice(np.array(domain, dtype), count)  # type: ignore[no-any-return]
    low, high = max(domain[0], -float(info.max)), min(domain[1], float(info.max))
    size = max(abs(low), abs(high))
    least = max(float(info.smallest_subnormal), 5e-324)
    parts = [random.uniform(max(low, -scale), min(high, scale), count)
             for scale in (3.0, 40.0, 1000.0) if max(low, -scale) < min(high, scale)]  # fmt: skip
    logs = np.exp(random.uniform(math.log(least), math.log(size), count))
    parts += [logs * random.choice([-1, 1], count), np.exp(random.uniform(-12, 12, count))]
    for place in {*near, *(e for e in (low, high) if abs(e) < float(info.max))}:
        gap = max(abs(place), 1e-3) * np.exp2(-random.uniform(0, info.nmant + 1, count // 2))
        parts.append(place + gap * random.choice([-1, 1], count // 2))
    with np.errstate(over="ignore"):
        x = np.concatenate(parts).astype(dtype)
        x = x[np.isfinite(x) & (x > domain[0]) & (x < domain[1])]
    return random.choice(x, count)  # type: ignore[no-any-return]


def values(f: Function, points: list[Array]) -> Array:
    return np.asarray(f.call(*[t.tensor(p) for p in points]).numpy())


def error(f: Function, got: float, point: tuple[float, ...], dtype: str) -> float:
    """The distance from the exact value, in ulp; infinite where only one of them overflows."""
    with mp.workprec(160):
        numbers = [mp.mpf(float(x)) for x in point]
        return distance(got, f.exact(*numbers), f.size(*numbers) if f.size else 0, dtype)


def distance(got: float, exact: Any, least_size: Any, dtype: str) -> float:
    """The distance in ulp of the exact value, or of a size where that is less."""
    bits, least, top = BITS[dtype]
    with mp.workprec(max(mp.mp.prec, 160)):
        size = max(abs(exact), least_size)
        ulp = mp.mpf(2) ** max(mp.frexp(size)[1] - bits if size else least, least)
        limit = mp.mpf(2) ** top
        if mp.isnan(exact):
            return 0.0 if math.isnan(got) else INF
        if math.isinf(got):
            return 0.0 if abs(exact) >= limit - ulp and (got > 0) == (exact > 0) else INF
        if math.isnan(got):
            return INF
        return float(min(abs(mp.mpf(got) - exact) / ulp, mp.mpf(10) ** 300))


def draw_points(f: Function, count: int, dtype: Any, random: Any) -> list[Array]:
    if callable(f.domains):
        return f.domains(count, dtype, random)  # type: ignore[no-any-return]
    return [draw(domain, f.near, count, dtype, random) for domain in f.domains]


def moved(f: Function, row: tuple[float, ...], random: Any) -> list[float] | None:
    """A point nearby, if it is in the domain."""
    domains = [(0.0, INF)] * len(row) if callable(f.domains) else f.domains
    near = [x * (1 + random.standard_normal() * 2.0 ** -random.uniform(2, 50))
            if len(d) == 2 else x for x, d in zip(row, domains, strict=True)]  # fmt: skip
    inside = [len(d) != 2 or d[0] < x < d[1] for x, d in zip(near, domains, strict=True)]
    return near if all(inside) else None


def search(name: str, dtype: str, count: int, seed: int = 0) -> tuple[float, tuple[float, ...]]:
    """The largest error that is found, and where: drawn at random, then beside the worst."""
    f, random = FUNCTIONS[name], np.random.default_rng(seed)
    kind = np.dtype(dtype)

    def measured(points: list[Array]) -> list[tuple[float, tuple[float, ...]]]:
        rows = [tuple([float(v) for v in row]) for row in zip(*points, strict=True)]
        got = values(f, points)
        return [(error(f, float(g), row, dtype), row) for g, row in zip(got, rows, strict=True)]

    found = measured(draw_points(f, count, kind, random))
    if dtype == "float32":  # many more, beside our own float64
        many = draw_points(f, 100 * count, kind, random)
        with np.errstate(all="ignore"):
            exact = values(f, [m.astype(np.float64) for m in many])
            ulps = np.abs(values(f, many) - exact)
            ulps /= np.exp2(np.maximum(np.frexp(np.abs(exact))[1] - 24.0, -149))
        worst = np.argsort(-np.where(np.isfinite(ulps), ulps, 0))[:30]
        found += measured([m[worst] for m in many])
    for _ in range(3):
        found = sorted(found, key=lambda pair: -pair[0])[:6]
        around = [moved(f, row, random) for _, row in found for _ in range(count // 40)]
        inside = [row for row in around if row is not None]
        if inside:
            found += measured([np.array(column, kind) for column in zip(*inside, strict=True)])
    return max(found)


def complex_points(count: int, dtype: str, random: Any) -> Array:
    """Complex numbers of all sizes, on and beside axes and branch points, beside unit circles."""
    kind, reach = np.dtype(dtype), 60 if dtype == "complex64" else 300
    real = f"float{4 * kind.itemsize}"

    def parts() -> Array:
        beside = random.choice([-1.0, 0.5, 1.0], count) + np.exp(-random.uniform(0, 40, count))
        whole = random.choice([0.0, 1.0, -1.0, 2.0, -0.5], count)
        many = random.choice([-1, 1], count) * np.exp(random.uniform(-reach, reach, count))
        sizes = [random.standard_normal(count) * s for s in (1, 10, 300)]
        return random.permutation(np.concatenate([beside, whole, many, *sizes]).astype(real))

    circle = np.exp(1j * random.uniform(-4, 4, count))
    both = parts() + 1j * parts()
    return np.concatenate([both.astype(kind), circle.astype(kind), (circle - 1).astype(kind)])


def complex_errors(name: str, points: Array) -> list[tuple[float, complex]]:
    """The larger error of both parts, for each point."""
    part = {"complex64": "float32", "complex128": "float64"}[points.dtype.name]
    got = np.asarray(getattr(t, name)(t.tensor(points)).numpy())
    found = []
    with mp.workprec(2200):  # parts may be far apart
        for z, w in zip(points.tolist(), got.tolist(), strict=True):
            if z in (0, 1, -1, 1j, -1j):
                continue  # poles and branch points
            exact = mp.mpc(COMPLEX[name](mp.mpc(z)))
            least = abs(exact) if name in CANCELS else 0
            on_axis = 0 in (z.real, z.imag)  # mpmath has no signed zero to tell a cut's sides
            pairs = [(w.real, exact.real, least), (w.imag, exact.imag, 0)]
            ulps = [min(distance(v, e, s, part), distance(-v, e, s, part) if on_axis else INF)
                    for v, e, s in pairs]  # fmt: skip
            found.append((max(ulps), z))
    return found


if __name__ == "__main__":
    for each in sys.argv[1:] or FUNCTIONS:
        for dtype in BAR:
            ulps, place = search(each, dtype, 400)
            flag = "" if ulps <= BAR[dtype] else "  # above"
            print(f"    ({each!r}, {dtype!r}, {place}),  # {ulps:.2f} ulp{flag}", flush=True)
