"""CPython glue: a Python builtin from the address of machine code."""

from __future__ import annotations

import ctypes
from typing import Any

from antorcha.lang.native.immortal import make_immortal

METH_VARARGS = 0x0001
METH_KEYWORDS = 0x0002
METH_NOARGS = 0x0004
METH_O = 0x0008
METH_FASTCALL = 0x0080
"""How CPython calls a builtin: METH_FASTCALL passes (self, args, nargs), with METH_KEYWORDS also
the tuple of keyword names; METH_O passes (self, arg); METH_NOARGS passes (self, NULL)."""


class PyMethodDef(ctypes.Structure):
    """CPython's record of a builtin."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("address", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )  # fmt: skip


_new = ctypes.pythonapi.PyCMethod_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]


def method_def(name: str, addr: int, flags: int = METH_FASTCALL, doc: str = "") -> PyMethodDef:
    """A PyMethodDef that is never freed: builtins point to it for as long as they live."""
    return make_immortal(PyMethodDef(name.encode(), addr, flags, doc.encode() or None))


def bind(record: PyMethodDef, self_obj: Any = None) -> Any:
    """A builtin of `record`; it owns `self_obj`, which its code receives as its first argument."""
    return _new(ctypes.addressof(record), None if self_obj is None else id(self_obj), None, None)


def builtin(
    name: str, addr: int, flags: int = METH_FASTCALL, self_obj: Any = None, doc: str = ""
) -> Any:
    """A Python builtin from machine code, by default of type func[raw, raw, ptr[raw], i64].

    Its first argument is ``self_obj`` (NULL when that is None; the builtin keeps it alive). The
    code gives a new reference, or NULL with an exception set. It runs with the GIL held.
    """
    return bind(method_def(name, addr, flags, doc), self_obj)
