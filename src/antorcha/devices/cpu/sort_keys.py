"""Sorting words: elements as unsigned keys, which have their order, and their positions.

An element becomes an unsigned *key* whose order is the element's: signed integers with the sign
turned, floats by their bits, NaN greatest, -0 as 0; to descend, every bit is turned. Keys of up to
32 bits share a word with the element's position, which makes all words different, so any sort is
stable; wider keys (and lines of 2**32 elements) have their positions beside them.
"""

from __future__ import annotations

from antorcha.devices.emit import WORDS
from antorcha.lang.native import i64, inline, select, static, u64
from antorcha.runtime.memory.layout import Layout

INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F80_0000,
            "float64": 0x7FF0_0000_0000_0000}  # fmt: skip
SORT, TOP, KTH, MEDIAN, NANMEDIAN = "sort", "top", "kth", "median", "nanmedian"


class Keys:
    """The compile-time choices of a kernel: how an element becomes a key, and what is wanted."""

    def __init__(self, layout: Layout, down: bool, mode: str, n: int, indices: bool = True) -> None:
        self.U = WORDS[layout.itemsize]
        self.bits = 8 * layout.itemsize
        self.kind = layout.dtype.kind if layout.dtype.kind in "if" else "u"
        self.sign = 1 << (self.bits - 1)
        self.ones = (1 << self.bits) - 1
        self.infinity = INFINITY.get(layout.dtype.name, 0)
        self.down, self.mode, self.indices = down, mode, indices
        self.wide = self.bits > 32 or n >= 1 << 32
        self.base = 0 if self.wide else 32  # where the key begins in its word

    def __native_key__(self) -> str:
        kind = f"{self.bits} {self.kind} {self.infinity} {self.down}"
        return f"{kind} {self.mode} {self.wide} {self.indices}"


@inline
def key_of(K, bits):
    """The key of an element's bits."""
    U = static(K.U)
    key = bits + U(0)
    if K.kind == "i":
        key = bits ^ U(K.sign)
    elif K.kind == "f":
        key = select((bits & U(K.sign)) != U(0), ~bits, bits | U(K.sign))
        size = bits & U(K.sign - 1)
        key = select(size == U(0), U(K.sign), key)
        key = select(size > U(K.infinity), U(K.ones), key)
    if K.down:
        key = ~key
    return key


@inline
def put_word(K, a, p, i, key, position):
    """An element in scratch: its word (and its position, where it has its own)."""
    if K.wide:
        a[i] = u64(key)
        p[i] = position
    else:
        a[i] = u64(key) << 32 | u64(position)


@inline
def move_word(K, a, p, i, b, q, j):
    a[i] = b[j]
    if K.wide:
        p[i] = q[j]


@inline
def place(K, a, p, i):
    """The position of an element in scratch."""
    return p[i] if K.wide else i64(a[i] & 0xFFFFFFFF)


def has_order(layout: Layout) -> bool:
    """Are there keys for a layout's elements, and elements?"""
    return layout.itemsize in WORDS and layout.dtype.kind != "c" and bool(layout.numel)
