"""What the native path relies on in CPython's type objects, and the check that it holds.

A type's behaviour is a table of addresses in the type object, whose order has been public and the
same since CPython 3.8. A Python class that defines ``__add__`` has there the address of a function
of the interpreter, the same for all classes, which looks ``__add__`` up and calls it. Putting an
address of ours in its place is what a type written in C does; whenever somebody sets ``__add__`` on
the class again, the interpreter writes its own back, so that monkeypatching works as ever.

(The interpreter's function serves only classes that have it in their own slot: who replaces it has
to call ``__add__`` by itself. ``tp_dealloc`` is left alone: the interpreter's finds by its own
address where a class written in Python ends, and calls itself for ever when it is replaced.)
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from antorcha.runtime.cpython import HAS_GIL, HEADER

WORD = 8
BASICSIZE, AS_NUMBER, CALL, FLAGS, RICHCOMPARE, MAKE = 32, 96, 128, 168, 200, 400
"""Bytes from the beginning of a type object to these fields (PyTypeObject)."""
ITEMS = HEADER + WORD
"""Bytes from the beginning of a tuple to its items."""
NUMBER = {
    "add": 0, "sub": 1, "mul": 2, "and": 13, "xor": 14, "or": 15, "truediv": 30, "matmul": 34,
    "mod": 3, "floordiv": 29, "iadd": 19, "isub": 20, "imul": 21, "imod": 22, "iand": 26,
    "ixor": 27, "ior": 28, "ifloordiv": 31, "itruediv": 32,
}  # fmt: skip
"""Words from the beginning of a number table (PyNumberMethods) to these operators."""


def word(address: int) -> ctypes.c_int64:
    """A word of memory, to be read and written."""
    return ctypes.c_int64.from_address(address)


def number_slot(cls: type, operator: str) -> int:
    """The address of the slot of ``a <operator> b``."""
    return word(id(cls) + AS_NUMBER).value + WORD * NUMBER[operator]


def _probe(*operators: str) -> type:
    """A class that defines these operators and no others."""

    def method(self: Any, _other: Any) -> Any:
        return self

    return type("Probe", (), {f"__{name}__": method for name in operators})


def why_not() -> str:
    """What is not here as this file says; empty when all is."""
    if not HAS_GIL or sys.implementation.name != "cpython":
        return "not CPython with an interpreter lock"
    plain = _probe()
    for cls in (plain, dict):
        if word(id(cls) + BASICSIZE).value != cls.__basicsize__:
            return "the size in type objects is elsewhere"
        if word(id(cls) + FLAGS).value & 0xFFFFFFFF != cls.__flags__ & 0xFFFFFFFF:
            return "the flags in type objects are elsewhere"
    for name in NUMBER:
        ours, twin = _probe(name), _probe(name)
        place = number_slot(ours, name)
        if not word(place).value or word(place).value != word(number_slot(twin, name)).value:
            return f"the slot of {name} is elsewhere"
        if any(
            word(number_slot(cls, name)).value for cls in (plain, _probe(*NUMBER.keys() - {name}))
        ):
            return f"the slot of {name} is elsewhere"
    if not (word(id(list) + MAKE).value and word(id(dict) + MAKE).value) or (
        word(id(plain) + MAKE).value
    ):
        return "the slot of what makes instances is elsewhere"
    parts = (1.5, "stop", ())
    items = slice(*parts)
    if [word(id(items) + HEADER + WORD * k).value for k in range(3)] != [
        id(each) for each in parts
    ]:
        return "the parts of slices are elsewhere"
    pair = (parts, items)
    if [word(id(pair) + ITEMS + WORD * k).value for k in range(2)] != [id(each) for each in pair]:
        return "the items of tuples are elsewhere"
    if word(id(_probe("call")) + CALL).value != word(id(_probe("call")) + CALL).value or (
        word(id(plain) + CALL).value
    ):
        return "the slot of calls is elsewhere"
    comparing = [word(id(_probe("lt", "__hash__")) + RICHCOMPARE).value for _ in range(2)]
    if comparing[0] != comparing[1] or comparing[0] == word(id(plain) + RICHCOMPARE).value:
        return "the slot of comparisons is elsewhere"
    return ""
