"""The way from Python into machine code: arguments are checked before they are passed.

An integer out of its parameter's range raises OverflowError, a value of the wrong kind TypeError; a
pointer parameter takes an address, None, a numpy array of the right element type, a Global, a
ctypes object, or (function pointers) a native function's instance.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from antorcha.lang.native.memory import Ptr
from antorcha.lang.native.types import Ty, half_bits
from antorcha.lang.native.values import ExternData, Global, c_type

if TYPE_CHECKING:
    from antorcha.lang.native.function import Spec

_ADDRESS_LIMIT = 1 << 64


def entry(spec: Spec) -> Callable[..., Any]:
    """A Python callable that checks its arguments and runs the spec's machine code."""
    ret, params = spec.signature()
    name = spec.native.__name__
    # ctypes lets go of the GIL unless told to keep it: code that calls CPython needs it kept
    kinds = [c_type(t) for _, t in params]
    call = ctypes.PYFUNCTYPE(c_type(ret), *kinds)(spec.addr)
    checks = [_check(name, p, t) for p, t in params]
    count = len(checks)
    defaults = spec.native.fn.__defaults__ or ()
    finish = _finish(ret)

    def run(*args: Any) -> Any:
        if len(args) != count:
            missing = count - len(args)
            if not 0 < missing <= len(defaults):
                raise TypeError(f"{name} takes {count} arguments, not {len(args)}")
            args = args + defaults[-missing:]
        result = call(*[check(arg) for check, arg in zip(checks, args, strict=True)])
        return result if finish is None else finish(result)

    return run


def _finish(ret: Ty) -> Callable[[Any], Any] | None:
    if ret.half:
        return lambda bits: float(np.uint16(bits).view(ret.np))
    if ret.kind == "p":
        return lambda address: address or 0
    return None


def _check(fn: str, name: str, ty: Ty) -> Callable[[Any], Any]:
    """The check of one parameter: gives what ctypes is to pass."""
    where = f"{fn}: {name}"
    if ty.kind in "iu":
        return _integer(where, ty)
    if ty.kind == "b":
        return lambda x: _boolean(where, x)
    if ty.half:
        return lambda x: half_bits(_number(where, ty, x), ty)
    if ty.kind == "f":
        return lambda x: _number(where, ty, x)
    return lambda x: _pointer(where, ty, x)


def _integer(where: str, ty: Ty) -> Callable[[Any], int]:
    low, high = ty.bounds()

    def check(x: Any) -> int:
        try:
            value = operator.index(x)
        except TypeError:
            raise TypeError(f"{where} is an {ty}, not a {type(x).__name__}") from None
        if not low <= value <= high:
            raise OverflowError(f"{where}: {value} does not fit in {ty} ({low}..{high})")
        return value

    return check


def _boolean(where: str, x: Any) -> bool:
    if x is True or x is False or isinstance(x, np.bool_):
        return bool(x)
    raise TypeError(f"{where} is a bool, not a {type(x).__name__}")


def _number(where: str, ty: Ty, x: Any) -> float:
    if isinstance(x, (float, int, np.floating, np.integer)) or hasattr(type(x), "__float__"):
        return float(x)
    raise TypeError(f"{where} is an {ty}, not a {type(x).__name__}")


def _pointer(where: str, ty: Ty, x: Any) -> int | None:
    if x is None:
        return None
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        if not 0 <= x < _ADDRESS_LIMIT:
            raise OverflowError(f"{where}: {x} is not an address")
        return int(x)
    if isinstance(x, np.ndarray):
        return array_address(where, ty, x)
    if isinstance(x, Ptr):
        if x.ty is not ty and ty.elem.name != "u8":
            raise TypeError(f"{where} is a {ty}, not a {x.ty}")
        return x.address
    if isinstance(x, (Global, ExternData)):
        if x.ty is not ty and ty.elem.name != "u8":
            raise TypeError(f"{where} is a {ty}, not the {x.ty} {x.name}")
        return x.addr
    if isinstance(x, (ctypes._SimpleCData, ctypes._Pointer, ctypes.Array, ctypes.Structure)):
        if isinstance(x, (ctypes.c_void_p, ctypes._Pointer)):
            return ctypes.cast(x, ctypes.c_void_p).value
        return ctypes.addressof(x)
    if ty.is_function and hasattr(x, "spec"):
        x = x.spec()
    address = getattr(x, "addr", None)
    if isinstance(address, int):
        return address
    hint = ""
    if hasattr(x, "data_ptr") and hasattr(x, "numpy"):
        hint = ": pass its elements, as x.numpy()"
    raise TypeError(f"{where} is a {ty}, not a {type(x).__name__}{hint}")


def array_address(where: str, ty: Ty, x: Any) -> int:
    """The address of a numpy array's first element, if its elements are the pointer's."""
    want = ty.elem.np
    if want is not None and ty.elem.name != "u8" and x.dtype != np.dtype(want):
        raise TypeError(f"{where} is a {ty}, not an array of {x.dtype}")
    if not x.flags.c_contiguous:
        raise TypeError(f"{where}: the array is not contiguous")
    return int(x.ctypes.data)
