"""Sorting words: elements as unsigned keys (`devices/sort_keys.py`), and their positions.

Keys of up to 32 bits share a word with the element's position, which makes all words different, so
any sort is stable; wider keys (and lines of 2**32 elements) have their positions beside them.
"""

from __future__ import annotations

from copy import copy

from antorcha.devices.emit import WORDS
from antorcha.devices.sort_keys import KeyOrder, key_of
from antorcha.lang.native import i64, inline, ptr, static, u64
from antorcha.runtime.memory.layout import Layout

SORT, TOP, KTH, MEDIAN, NANMEDIAN = "sort", "top", "kth", "median", "nanmedian"


class Keys(KeyOrder):
    """The compile-time choices of a kernel: how an element becomes a key, and what is wanted."""

    def __init__(self, layout: Layout, down: bool, mode: str, n: int, indices: bool = True) -> None:
        super().__init__(layout.dtype, down)
        self.mode, self.indices = mode, indices
        self.wide = self.bits > 32 or n >= 1 << 32
        self.base = 0 if self.wide else 32  # where the key begins in its word
        self.beside = self.wide  # have words their positions beside them?
        self.room = 32 if self.wide else 16  # bytes of an element: see `words_in`
        self.packed = self  # the same for keys that differ in their last 32 bits alone
        if self.wide and n < 1 << 32:
            self.packed = copy(self)
            self.packed.wide = self.packed.beside = False
            self.packed.base = 32

    @property
    def bare(self) -> Keys:
        """The same of wide keys without positions."""
        result = copy(self)
        result.beside = False
        return result

    def __native_key__(self) -> str:
        choices = self.mode, self.wide, self.beside, self.indices, self.packed is self
        return f"{super().__native_key__()} {choices}"


@inline
def put_word(K, a, p, i, key, position):
    """An element in scratch: its word (and its position, where it has its own)."""
    if K.wide:
        a[i] = u64(key)
        if K.beside:
            p[i] = position
    else:
        a[i] = u64(key) << 32 | u64(position)


@inline
def keys_of_words(K, keys, a, n):
    """The keys of n words side by side."""
    for i in range(n):
        keys[i] = static(K.U)(a[i] >> K.base)


@inline
def words_in(K, space, n):
    """Memory of ``K.room`` bytes an element for its word and its position, and, to move them to,
    the same again."""
    a = ptr[u64](space)
    b = a + n
    p = ptr[i64](b + (n if K.beside else i64(0)))
    return a, p, b, p + (n if K.beside else i64(0))


@inline
def move_word(K, a, p, i, b, q, j):
    a[i] = b[j]
    if K.beside:
        p[i] = q[j]


@inline
def place(K, a, p, i):
    """The position of an element in scratch."""
    return p[i] if K.wide else i64(a[i] & 0xFFFFFFFF)


def has_order(layout: Layout) -> bool:
    """Are there keys for a layout's elements, and elements?"""
    return layout.itemsize in WORDS and layout.dtype.kind != "c" and bool(layout.numel)


__all__ = [
    "KTH", "MEDIAN", "NANMEDIAN", "SORT", "TOP", "Keys", "has_order", "key_of", "keys_of_words",
    "move_word", "place", "put_word", "words_in",
]  # fmt: skip
