"""Samplers whose every value has parameters of its own: gamma, Poisson and binomial numbers.

They reject and draw again, so a value takes as many draws as it takes. Each is a sampler as in
`samplers`, with the addresses of the parameters, side by side, in its unsigned and its signed
number. The formulas, the precision of each step (float32 parameters keep theirs) and the order of
the draws are PyTorch's (ATen/native/Distributions.h and Distributions.cpp), because the bits must
agree; the algorithms are Marsaglia and Tsang's "A simple method for generating gamma variables"
(2000), and Hörmann's "The transformed rejection method for generating Poisson random variables"
(1993) and "The generation of binomial random variates" (1993).
"""

from __future__ import annotations

from antorcha.lang.native import (
    Extern,
    Global,
    f32,
    f64,
    floor,
    i64,
    inline,
    native,
    ptr,
    raw,
    sqrt,
    u64,
)
from antorcha.runtime.mt19937 import Twister, uniform64
from antorcha.runtime.samplers import c_ceil, c_exp, c_log, c_log1p, normal

c_pow = Extern("pow", f64, f64, f64)
c_lgamma = Extern("lgamma", f64, f64)
c_log1p32 = Extern("log1pf", f32, f32)

TINY = {f32: 1.1754943508222875e-38, f64: 2.2250738585072014e-308}
THIRD = 0.3333333432674408  # a third, rounded to float32 as PyTorch does for every type
SQUEEZE = 0.03310000151395798  # 0.0331, rounded to float32 as well


@native(noinline=True)
def gamma_factor(g: ptr[Twister], scale: f64, d: f64) -> f64:
    """Marsaglia and Tsang's d * v for shape d + 1/3, times `scale`."""
    c = 1.0 / sqrt(9.0 * d)
    accepted = False
    v = 0.0
    while not accepted:
        x = normal(g, 0.0, 1.0)
        y = 1.0 + c * x
        while y <= 0.0:
            x = normal(g, 0.0, 1.0)
            y = 1.0 + c * x
        v = y * y * y
        u = 1.0 - uniform64(g)
        xx = x * x
        accepted = u < 1.0 - SQUEEZE * xx * xx
        if not accepted:
            accepted = c_log(u) < 0.5 * xx + d * (1.0 - v + c_log(v))
    return scale * d * v


@native
def fill_gamma(
    g: ptr[Twister], out: raw, n: i64, _a: f64, _b: f64, shapes: u64, _i: i64, *, T, P
) -> i64:
    """Gamma numbers of the shapes (type P) and rate 1, none below the smallest normal T."""
    data = ptr[T](out)
    given = ptr[P](shapes)
    for i in range(n):
        shape = given[i]
        scale = 1.0
        value = 0.0
        if shape < P(1.0) and shape != P(0.0):  # a larger shape is accepted more often
            scale = c_pow(1.0 - uniform64(g), f64(P(1.0) / shape))
            shape = shape + P(1.0)
        if shape != P(0.0):
            value = f64(P(gamma_factor(g, scale, f64(shape - P(THIRD)))))
        data[i] = max(T(value), T(TINY[T]))
    return 0


# ---- Poisson
@native(noinline=True)
def poisson_by_products(g: ptr[Twister], rate: f64) -> f64:
    """How many uniforms can be multiplied before the product falls below exp(-rate)."""
    least = c_exp(-rate)
    count = 0.0
    product = uniform64(g)
    while product > least:
        count += 1.0
        product *= uniform64(g)
    return count


@native(noinline=True)
def poisson_by_rejection(g: ptr[Twister], rate: f64) -> f64:
    """Hörmann's transformed rejection, for rate >= 10."""
    root = sqrt(rate)
    log_rate = c_log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2.0)
    k = 0.0
    accepted = False
    while not accepted:
        u = uniform64(g) - 0.5
        v = uniform64(g)
        us = 0.5 - abs(u)
        k = floor((2.0 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= v_r:
            accepted = True
        elif not (k < 0.0 or (us < 0.013 and v > us)):
            left = c_log(v) + c_log(inverse_alpha) - c_log(a / (us * us) + b)
            accepted = left <= -rate + k * log_rate - c_lgamma(k + 1.0)
    return k


@native
def fill_poisson(
    g: ptr[Twister], out: raw, n: i64, _a: f64, _b: f64, rates: u64, _i: i64, *, T, P
) -> i64:
    """Poisson numbers of the rates (type P), which must not be negative."""
    data = ptr[T](out)
    given = ptr[P](rates)
    for i in range(n):
        rate = f64(given[i])
        value = 0.0
        if rate >= 10.0:
            value = poisson_by_rejection(g, rate)
        elif rate != 0.0:
            value = poisson_by_products(g, rate)
        data[i] = T(value)
    return 0


# ---- binomial
STIRLING = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip
STIRLING_TABLE = Global("antorcha_stirling_tail", f64, len(STIRLING), STIRLING)


@native(noinline=True)
def stirling_tail(k: f64) -> f64:
    """log(k!) minus Stirling's formula for it."""
    if k < 10.0:
        return STIRLING_TABLE[i64(k)]
    square = (k + 1.0) * (k + 1.0)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1.0)


@inline
def log_of_miss(p, P):
    """log(1 - p) in the precision of P."""
    if P is f32:
        return f64(c_log1p32(-p))
    return c_log1p(-p)


@native
def binomial_by_gaps(g: ptr[Twister], count: f64, log_miss: f64) -> f64:
    """How many hits there are, each a geometric number of tries after the last."""
    hits = 0.0
    tries = c_ceil(c_log(uniform64(g)) / log_miss)
    while tries <= count:
        hits += 1.0
        tries += c_ceil(c_log(uniform64(g)) / log_miss)
    return hits


@native
def binomial_by_rejection(g: ptr[Twister], count: raw, *, P) -> f64:
    """Hörmann's BTRS for count * p >= 10 and p <= 1/2; `count` points at the count and at p."""
    n = ptr[P](count)[0]
    p = ptr[P](count)[1]
    one = P(1.0)
    stddev = f64(sqrt(n * p * (one - p)))
    b = 1.15 + 2.53 * stddev
    a = -0.0873 + 0.0248 * b + 0.01 * f64(p)
    c = f64(n * p) + 0.5
    v_r = 0.92 - 4.2 / b
    r = f64(p / (one - p))
    alpha = (2.83 + 5.1 / b) * stddev
    m = f64(floor((n + one) * p))
    wide = f64(n)
    k = 0.0
    accepted = False
    while not accepted:
        u = uniform64(g) - 0.5
        v = uniform64(g)
        us = 0.5 - abs(u)
        k = f64(P(floor((2.0 * a / us + b) * u + c)))
        if not (k < 0.0 or k > wide):
            if us >= 0.07 and v <= v_r:
                accepted = True
            else:
                rest = f64(n - P(k) + one)
                bound = (
                    (m + 0.5) * c_log((m + 1.0) / (r * (wide - m + 1.0)))
                    + f64(n + one) * c_log((wide - m + 1.0) / rest)
                    + (k + 0.5) * c_log(r * rest / f64(P(k) + one))
                    + stirling_tail(m)
                    + stirling_tail(wide - m)
                    - stirling_tail(k)
                    - stirling_tail(f64(n - P(k)))
                )
                accepted = c_log(v * alpha / (a / (us * us) + b)) <= bound
    return k


@native
def fill_binomial(
    g: ptr[Twister], out: raw, n: i64, _a: f64, _b: f64, pairs: u64, _i: i64, *, T, P
) -> i64:
    """Binomial numbers; at `pairs` lie a count and a probability (type P) for each.

    A probability that is NaN gives NaN."""
    data = ptr[T](out)
    given = ptr[P](pairs)
    for i in range(n):
        count = given[2 * i]
        p = given[2 * i + 1]
        value = 0.0
        if count <= P(0.0) or p <= P(0.0):
            value = 0.0
        elif p >= P(1.0):
            value = f64(count)
        elif p != p:
            value = f64(p)
        else:
            mirrored = p > P(0.5)
            if mirrored:
                given[2 * i + 1] = P(1.0) - p
                p = P(1.0) - p
            if count * p >= P(10.0):
                value = binomial_by_rejection(g, raw(given + 2 * i), P=P)
            else:
                value = binomial_by_gaps(g, f64(count), log_of_miss(p, P))
            if mirrored:
                value = f64(count - P(value))
        data[i] = T(value)
    return 0
