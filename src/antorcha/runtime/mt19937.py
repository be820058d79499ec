"""The Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), and draws from it.

The state is a generator's own memory (`Twister`).  `left` and `next` count as PyTorch's do, because
its saved states show them: a new generator has left = 1, next = 0; afterwards left + next = 625.
The 624 words are tempered all at once when they are made, so a draw is a load.

Invariants: between calls 1 <= left <= 624 and next <= 624; `out` is `words` tempered, from `next`
on.
"""

from __future__ import annotations

from antorcha.lang.native import (
    array,
    f32,
    f64,
    i64,
    inline,
    native,
    ptr,
    raw,
    struct,
    u32,
    u64,
    vec,
    vload,
    void,
    vstore,
)

N, M = 624, 397


@struct
class Twister:
    words: array[u32, 640]  # 624, and room for a vector to run over
    out: array[u32, 640]
    seed: u64
    left: i64
    next: i64
    normal: f64  # the second value of the last Box-Muller pair
    has_normal: i64
    held: i64  # is somebody drawing, or changing it, who may not hold the interpreter lock?
    padding: array[i64, 2]


u32x16 = vec[u32, 16]


@inline
def twisted(word, after, far):
    """A new word from an old one, the one after it and the one M further."""
    y = (word & 0x80000000) | (after & 0x7FFFFFFF)
    return far ^ (y >> 1) ^ ((y & 1) * 0x9908B0DF)


@inline
def twist(s, lo, hi, far):
    """words[lo:hi], 16 at a time and then one by one; `far` is where word M further lies."""
    whole = lo + (hi - lo) // 16 * 16
    for i in range(lo, whole, 16):
        vstore(s + i, twisted(vload(s + i, 16), vload(s + i + 1, 16), vload(s + i + far, 16)))
    for i in range(whole, hi):
        s[i] = twisted(s[i], s[i + 1], s[i + far])


@inline
def temper(y):
    y = y ^ (y >> 11)
    y = y ^ ((y << 7) & 0x9D2C5680)
    y = y ^ ((y << 15) & 0xEFC60000)
    return y ^ (y >> 18)


@native
def temper_all(g: ptr[Twister]) -> void:
    for i in range(0, N, 16):
        vstore(g.out + i, temper(vload(g.words + i, 16)))


@native(noinline=True)
def refill(g: ptr[Twister]) -> void:
    """The next 624 words."""
    s = ptr[u32](g.words)
    twist(s, 0, N - M, M)
    twist(s, N - M, N - 1, M - N)
    s[N - 1] = twisted(s[N - 1], s[0], s[M - 1])
    temper_all(g)
    g.next = 0
    g.left = N + 1


@native
def seed_twister(g: ptr[Twister], seed: u64) -> void:
    """init_genrand with the low 32 bits; forgets a cached normal."""
    s = ptr[u32](g.words)
    x = u32(seed)
    s[0] = x
    for i in range(1, N):
        x = u32(1812433253) * (x ^ (x >> 30)) + u32(i)
        s[i] = x
    g.seed = seed
    g.left = 1
    g.next = 0
    g.normal = 0.0
    g.has_normal = 0


@inline
def draw(g):
    """32 random bits."""
    if g.left == 1:
        refill(g)
    y = g.out[g.next]
    g.next += 1
    g.left -= 1
    return y


@inline
def draw64(g):
    """64 random bits; the first draw is the high half."""
    high = u64(draw(g))
    return high << 32 | u64(draw(g))


@inline
def uniform64(g):
    """A double in [0, 1) with 53 random bits."""
    return f64(i64(draw64(g) & ((1 << 53) - 1))) * 2.0**-53


@inline
def uniform32(g):
    """A float in [0, 1) with 24 random bits."""
    return f32(i64(draw(g) & 0xFFFFFF)) * f32(2.0**-24)


@native
def draw_words(g: ptr[Twister], out: raw, n: i64) -> void:
    """n draws as u32."""
    words = ptr[u32](out)
    for i in range(n):
        words[i] = draw(g)
