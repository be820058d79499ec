"""Samplers: native loops that fill memory with random numbers, the same numbers as PyTorch's CPU.

Every sampler is func[i64, ptr[Twister], raw, i64, f64, f64, u64, i64]: (generator, memory, count,
two real parameters, an unsigned and a signed one), so that one builtin can run them all.  Which
formula, precision and order of draws is used is PyTorch's (DistributionTemplates.h,
TransformationHelper.h), because the bits must agree; the scalar formulas call the C library, whose
last digits PyTorch's binary has too, and the vector formula of a large float32 normal is the Cephes
logarithm, sine and cosine that PyTorch uses there, fused multiply-adds included.

float16 and bfloat16 are filled as float32 first and rounded afterwards (by `random`).
"""

from __future__ import annotations

from antorcha.lang.native import (
    Extern,
    bitcast,
    f32,
    f64,
    fabs,
    first,
    fma,
    i32,
    i64,
    inline,
    local,
    native,
    ptr,
    raw,
    reduce_all,
    select,
    sqrt,
    static,
    struct,
    u32,
    u64,
    vec,
    vload,
    void,
    vstore,
)
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.mt19937 import Twister, draw, draw64, refill, uniform32, uniform64
from antorcha.runtime.pool import pool_run

c_log = Extern("log", f64, f64)
c_log1p = Extern("log1p", f64, f64)
c_exp = Extern("exp", f64, f64)
c_sin = Extern("sin", f64, f64)
c_cos = Extern("cos", f64, f64)
c_tan = Extern("tan", f64, f64)
c_ceil = Extern("ceil", f64, f64)

PI = 3.141592653589793
TWO_PI = 6.283185307179586
TAU_F32 = 6.2831854820251465  # 2 pi, rounded to float32


f32x16 = vec[f32, 16]


# ---- uniform
@inline
def in_range(x, low, high):
    """x in [0, 1) stretched to [low, high); what would round up to high becomes low."""
    y = fma(x, high - low, low)
    return select(y == high, low, y)


@native
def fill_uniform32(g: ptr[Twister], out: raw, n: i64, low: f64, high: f64, _u: u64, _i: i64) -> i64:
    """float32 in [low, high), 24 random bits each; what would round up to high becomes low."""
    data = ptr[f32](out)
    lo = f32x16(f32(low))
    hi = f32x16(f32(high))
    width = hi - lo
    done = 0
    while done < n:
        if g.left == 1:
            refill(g)
        m = min(g.left - 1, n - done)
        words = g.out + g.next
        for k in range(0, m, 16):
            few = first(16, m - k)
            bits = vload(words + k, 16) & 0xFFFFFF
            x = fma(f32x16(vec[i32, 16](bits)) * f32x16(2.0**-24), width, lo)
            vstore(data + done + k, select(x == hi, lo, x), few)
        g.next += m
        g.left -= m
        done += m
    return 0


@native
def fill_uniform64(g: ptr[Twister], out: raw, n: i64, low: f64, high: f64, _u: u64, _i: i64) -> i64:
    """float64 in [low, high): 53 random bits each, the high word first."""
    data = ptr[f64](out)
    done = 0
    while done < n:
        pairs = (g.left - 1) // 2
        if pairs == 0:  # the state is used up, or ends in the middle of a pair
            data[done] = in_range(uniform64(g), low, high)
            done += 1
        else:
            m = min(pairs, n - done)
            words = g.out + g.next
            for k in range(m):
                bits = u64(words[2 * k]) << 32 | u64(words[2 * k + 1])
                x = f64(i64(bits & ((1 << 53) - 1))) * 2.0**-53
                data[done + k] = in_range(x, low, high)
            g.next += 2 * m
            g.left -= 2 * m
            done += m
    return 0


# ---- normal
@inline
def normal(g, mean, std):
    """Box-Muller in double precision; the second value waits in the generator."""
    x = g.normal
    if g.has_normal != 0:
        g.has_normal = 0
    else:
        u1 = uniform64(g)
        u2 = uniform64(g)
        r = sqrt(-2.0 * c_log1p(-u2))
        theta = TWO_PI * u1
        g.normal = r * c_sin(theta)
        g.has_normal = 1
        x = r * c_cos(theta)
    return fma(x, std, mean)


@native
def fill_normal_few(
    g: ptr[Twister], out: raw, n: i64, mean: f64, std: f64, _u: u64, _i: i64, *, T
) -> i64:
    """Fewer than 16 values, or values that do not lie side by side."""
    data = ptr[T](out)
    for i in range(n):
        data[i] = T(normal(g, mean, std))
    return 0


f32x8 = vec[f32, 8]
f64x8 = vec[f64, 8]
u32x8 = vec[u32, 8]
i32x8 = vec[i32, 8]
LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
PI_4 = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)  # -pi/4 in three parts
LN2 = (-2.12194440e-4, 0.693359375)  # in two parts, the small one first
SQRT_HALF = 0.707106781186547524


@inline
def polynomial(x, coefficients):
    """Horner's rule, highest power first."""
    y = f32x8(coefficients[0])
    for c in static(coefficients[1:]):
        y = fma(y, x, f32x8(c))
    return y


@inline
def log8(x):
    """Cephes' logf, eight at once, for normal x > 0."""
    bits = bitcast(i32x8, x)
    e = f32x8((bits >> 23) - 126)
    m = bitcast(f32x8, (bits & 0x007FFFFF) | 0x3F000000)  # in [0.5, 1)
    small = m < f32(SQRT_HALF)
    e = select(small, e - f32x8(1.0), e)
    x = select(small, m + m, m) - f32x8(1.0)
    z = x * x
    y = polynomial(x, LOG) * x
    y = fma(y, z, e * f32x8(LN2[0]))
    y = fma(f32x8(-0.5), z, y)
    return fma(e, f32x8(LN2[1]), x + y)


@inline
def sincos8(x):
    """Cephes' sinf and cosf, eight at once, for 0 <= x < 8192."""
    j = (i32x8(x * f32x8(1.27323954473516)) + 1) & -2  # the octant, made even
    y = f32x8(j)
    for part in static(PI_4):
        x = fma(y, f32x8(part), x)
    z = x * x
    c = polynomial(z, COS) * z
    c = fma(c, z, f32x8(-0.5) * z) + f32x8(1.0)
    s = fma(polynomial(z, SIN) * z, x, x)
    swap = (j & 2) != 0
    sign_s = (j & 4) << 29
    sign_c = (~(j - 2) & 4) << 29
    sine = bitcast(f32x8, bitcast(i32x8, select(swap, c, s)) ^ sign_s)
    cosine = bitcast(f32x8, bitcast(i32x8, select(swap, s, c)) ^ sign_c)
    return sine, cosine


@inline
def normal16(data, mean, std):
    """16 uniforms become 16 normals: the pairs are j and j + 8."""
    u1 = f32x8(1.0) - vload(data, 8)
    radius = sqrt(f32x8(-2.0) * log8(u1))
    sine, cosine = sincos8(f32x8(TAU_F32) * vload(data + 8, 8))
    vstore(data, fma(radius * cosine, std, mean))
    vstore(data + 8, fma(radius * sine, std, mean))


@struct
class Blocks:
    """What a piece of a large normal needs to know."""

    data: raw
    mean: f64
    std: f64


@native
def normal_blocks(lo: i64, hi: i64, args: raw) -> void:
    """Blocks lo to hi of 16 float32."""
    blocks = ptr[Blocks](args)
    mean = f32x8(f32(blocks.mean))
    std = f32x8(f32(blocks.std))
    for i in range(lo, hi):
        normal16(ptr[f32](blocks.data) + 16 * i, mean, std)


@native
def fill_normal32(g: ptr[Twister], out: raw, n: i64, mean: f64, std: f64, _u: u64, _i: i64) -> i64:
    """16 or more float32, side by side."""
    data = ptr[f32](out)
    m = f32x8(f32(mean))
    s = f32x8(f32(std))
    blocks = local(Blocks)
    fill_uniform32(g, out, n, 0.0, 1.0, 0, 0)
    blocks.data = out
    blocks.mean = mean
    blocks.std = std
    pool_run(normal_blocks, n // 16, 2048, raw(blocks))
    if n % 16 != 0:  # the last 16 again, from new draws
        fill_uniform32(g, raw(data + n - 16), 16, 0.0, 1.0, 0, 0)
        normal16(data + n - 16, m, s)
    return 0


@inline
def normal16_double(data, mean, std):
    for j in range(8):
        radius = sqrt(-2.0 * c_log(1.0 - data[j]))
        theta = TWO_PI * data[j + 8]
        data[j] = fma(radius * c_cos(theta), std, mean)
        data[j + 8] = fma(radius * c_sin(theta), std, mean)


@native
def normal_blocks_double(lo: i64, hi: i64, args: raw) -> void:
    """Blocks lo to hi of 16 float64."""
    blocks = ptr[Blocks](args)
    for i in range(lo, hi):
        normal16_double(ptr[f64](blocks.data) + 16 * i, blocks.mean, blocks.std)


@native
def fill_normal64(g: ptr[Twister], out: raw, n: i64, mean: f64, std: f64, _u: u64, _i: i64) -> i64:
    """16 or more float64, side by side."""
    data = ptr[f64](out)
    fill_uniform64(g, out, n, 0.0, 1.0, 0, 0)
    blocks = local(Blocks)
    blocks.data = out
    blocks.mean = mean
    blocks.std = std
    pool_run(normal_blocks_double, n // 16, 64, raw(blocks))
    if n % 16 != 0:
        fill_uniform64(g, raw(data + n - 16), 16, 0.0, 1.0, 0, 0)
        normal16_double(data + n - 16, mean, std)
    return 0


# ---- what is made of one uniform double each
@inline
def exponential(u, rate, _unused):
    return -1.0 / rate * c_log1p(-u)


@inline
def geometric(u, p, _unused):
    return c_ceil(c_log(u) / c_log1p(-p))


@inline
def cauchy(u, median, sigma):
    return fma(sigma, c_tan(PI * (u - 0.5)), median)


@inline
def bernoulli(u, p, _unused):
    return f64(u < p)


BLOCK = 256


@native
def fill_formula(
    g: ptr[Twister], out: raw, n: i64, a: f64, b: f64, _u: u64, _i: i64, *, T, FORMULA
) -> i64:
    """FORMULA(uniform, a, b), computed in double, as T."""
    data = ptr[T](out)
    uniforms = local(f64, BLOCK)
    done = 0
    while done < n:
        m = min(n - done, BLOCK)
        fill_uniform64(g, raw(uniforms), m, 0.0, 1.0, 0, 0)
        for k in range(m):
            data[done + k] = T(FORMULA(uniforms[k], a, b))
        done += m
    return 0


LOG_2 = 0.6931471805599453
HALF_ROOT = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
DOUBT = 2.0**-44  # how far two good logarithms may be apart, of themselves, and much more


@inline
def log_of_part(v):
    """log of vectors of doubles in (0, 1], to some units in the last place."""
    i64x8 = static(vec[i64, 8])
    bits = bitcast(i64x8, v)
    k = (bits - HALF_ROOT) >> 52
    m = bitcast(vec[f64, 8], bits - (k << 52))  # v / 2**k, in sqrt(1/2)..sqrt(2)
    s = (m - 1.0) / (m + 1.0)  # log(m) = 2 (s + s**3 / 3 + s**5 / 5 ..)
    z = s * s
    p = vec[f64, 8](1.0 / 17)
    for n in static((15, 13, 11, 9, 7, 5, 3)):
        p = fma(p, z, vec[f64, 8](1.0 / n))
    return fma(vec[f64, 8](k), vec[f64, 8](LOG_2), 2.0 * fma(s * z, p, s))


@native
def fill_exponential32(
    g: ptr[Twister], out: raw, n: i64, rate: f64, _b: f64, _u: u64, _i: i64, *, T
) -> i64:
    """``exponential`` as float32. Where another good logarithm says for sure which one is nearest,
    the C library's, which is slow, would say the same."""
    data = ptr[T](out)
    uniforms = local(f64, BLOCK)
    scale = vec[f64, 8](-1.0 / rate)
    done = 0
    while done < n:
        m = min(n - done, BLOCK)
        fill_uniform64(g, raw(uniforms), m, 0.0, 1.0, 0, 0)
        for k in range(0, m, 8):
            few = first(8, m - k)
            y = scale * log_of_part(1.0 - vload(uniforms + k, 8, few))
            margin = fabs(y) * DOUBT
            low = vec[T, 8](y - margin)
            vstore(data + done + k, low, few)
            if not reduce_all((low == vec[T, 8](y + margin)) & (y != 0.0)):
                for j in range(k, min(k + 8, m)):
                    data[done + j] = T(exponential(uniforms[j], rate, 0.0))
        done += m
    return 0


@native
def fill_log_normal(
    g: ptr[Twister], out: raw, n: i64, mean: f64, std: f64, _u: u64, _i: i64, *, T
) -> i64:
    """exp of a normal; the normals are always drawn one by one."""
    data = ptr[T](out)
    for i in range(n):
        data[i] = T(c_exp(normal(g, mean, std)))
    return 0


@native
def fill_bernoulli_each(
    g: ptr[Twister], out: raw, n: i64, _a: f64, _b: f64, probabilities: u64, _i: i64, *, T, P
) -> i64:
    """A probability of its own for each value: a P at the address `probabilities`.

    Gives the position, plus one, of the first probability outside [0, 1]; 0 when there is none."""
    data = ptr[T](out)
    p = ptr[P](probabilities)
    for i in range(n):
        if not (p[i] >= P(0.0) and p[i] <= P(1.0)):
            return i + 1
        if P is f64:
            hit = uniform64(g) < p[i]
        else:
            hit = uniform32(g) < p[i]
        data[i] = T(hit)
    return 0


# ---- integers
@inline
def remainders(x, width, inverse):
    """x % width of 8 numbers: the quotients by a multiplication, which may be off by one."""
    multiple = u32x8(f64x8(x) * inverse) * width
    r = x - multiple
    r = select(multiple > x, r + width, r)
    return select(r >= width, r - width, r)


@native
def fill_integers(
    g: ptr[Twister], out: raw, n: i64, _a: f64, _b: f64, width: u64, base: i64, *, T
) -> i64:
    """base + draw % width, from 32-bit draws; width 0 takes the whole draw."""
    data = ptr[T](out)
    w = u32x8(u32(width))
    inverse = f64x8(1.0 / f64(width))
    done = 0
    while done < n:
        if g.left == 1:
            refill(g)
        m = min(g.left - 1, n - done)
        words = g.out + g.next
        for k in range(0, m, 8):
            x = vload(words + k, 8)
            if width >> 32 == 0 and width != 0:
                x = remainders(x, w, inverse)
            vstore(data + done + k, vec[T, 8](vec[i64, 8](x) + base), first(8, m - k))
        g.next += m
        g.left -= m
        done += m
    return 0


@native
def fill_wide_integers(
    g: ptr[Twister], out: raw, n: i64, _a: f64, _b: f64, width: u64, base: i64, *, T
) -> i64:
    """The same from 64-bit draws."""
    data = ptr[T](out)
    for i in range(n):
        x = draw64(g)
        if width != 0:
            x = x % width
        data[i] = T(i64(x) + base)
    return 0


@native
def fill_permutation(
    g: ptr[Twister], out: raw, n: i64, _a: f64, _b: f64, _u: u64, _i: i64, *, T
) -> i64:
    """0 to n - 1 in random order (Fisher-Yates), for n < 2**32 / 20."""
    data = ptr[T](out)
    for i in range(n):
        data[i] = T(i)
    for i in range(n - 1):
        j = i + i64(u64(draw(g)) % u64(n - i))
        held = data[i]
        data[i] = data[j]
        data[j] = held
    return 0


@inline
def running_sums(weights, table, categories, P, ROWS):
    """The running sums of some rows of weights, divided by the last one. (One row's additions wait
    for one another.)"""
    totals = [P(0) for _ in static(range(ROWS))]
    for k in range(categories):
        for r in static(range(ROWS)):
            totals[r] = totals[r] + weights[r * categories + k]
            table[r * categories + k] = totals[r]
    for r in static(range(ROWS)):
        sums = table + r * categories
        for k in range(0, categories, 16):
            few = first(16, categories - k)
            vstore(sums + k, vload(sums + k, 16, few) / vec[P, 16](totals[r]), few)
        sums[categories - 1] = P(1)


@native
def fill_choices(
    g: ptr[Twister], out: raw, n: i64, samples: f64, _b: f64, weights: u64, categories: i64, *, P
) -> i64:
    """For each of n, where a uniform falls in the running sums of its row's weights, of which so
    many samples are drawn. Gives 1 without memory for the sums."""
    data = ptr[i64](out)
    table = ptr[P](allocate(4 * categories * P.size))
    if table is None:
        return 1
    many = i64(samples)
    for row in range(n // many):
        at = row & 3
        w = ptr[P](raw(weights)) + row * categories
        if at == 0 and row + 4 <= n // many:
            running_sums(w, table, categories, P, 4)
        elif at == 0 or row - at + 4 > n // many:
            running_sums(w, table + at * categories, categories, P, 1)
        sums = table + at * categories
        for i in range(row * many, row * many + many):
            u = uniform64(g)
            left = i64(0)
            size = categories + 0
            while size > 0:  # (selects, for a branch would be mispredicted half the time)
                half = size // 2
                behind = f64(sums[left + half]) < u
                left = select(behind, left + half + 1, left)
                size = select(behind, size - half - 1, half)
            data[i] = left
    release(raw(table))
    return 0
