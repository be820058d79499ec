"""Elements as unsigned keys, which have their order.

Signed integers have the sign turned; floats are ordered by their bits, NaN greatest, -0 as 0; to
descend, every bit is turned.
"""

from __future__ import annotations

from antorcha.core.dtypes import dtype as DType
from antorcha.devices.emit import WORDS
from antorcha.lang.native import inline, select, static

INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F80_0000,
            "float64": 0x7FF0_0000_0000_0000}  # fmt: skip


class KeyOrder:
    """How an element of a dtype becomes a key; ``down`` descends."""

    def __init__(self, dtype: DType, down: bool) -> None:
        self.U = WORDS[dtype.itemsize]
        self.bits = 8 * dtype.itemsize
        self.kind = dtype.kind if dtype.kind in "if" else "u"
        self.sign = 1 << (self.bits - 1)
        self.ones = (1 << self.bits) - 1
        self.infinity = INFINITY.get(dtype.name, 0)
        self.down = down

    def __native_key__(self) -> str:
        return f"{self.bits} {self.kind} {self.infinity} {self.down}"


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
