"""Native code as plain Python: ``with interpreted():``.

The same source runs, statement by statement, under a debugger if wanted: its syntax tree is
rewritten so that operators, conversions and memory go through ``semantics`` and ``memory``, and
compiled by Python itself with its own line numbers. Values are numpy scalars and arrays with the
machine's wrapping, shifts and divisions; a load or store outside of its memory raises IndexError.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from antorcha.core.lazy import lazy
from antorcha.errors import NativeError
from antorcha.lang.native import semantics
from antorcha.lang.native.memory import FunctionPointer, Ptr, pointer, to_pointer
from antorcha.lang.native.semantics import own, type_of
from antorcha.lang.native.types import Ty, bool_
from antorcha.lang.native.values import Extern, ExternData, Global, Intrinsic, c_type

if TYPE_CHECKING:
    from antorcha.lang.native.function import Native

native_function = lazy("antorcha.lang.native.function")
native_entry = lazy("antorcha.lang.native.entry")
native_rewrite = lazy("antorcha.lang.native.rewrite")


class _InterpreterState(threading.local):
    on = False


_state = _InterpreterState()


class _Unset:
    def __repr__(self) -> str:
        return "a name that has no value here"


UNSET = _Unset()


@contextlib.contextmanager
def interpreted() -> Iterator[None]:
    """Inside, native functions called from this thread run as plain Python."""
    before, _state.on = _state.on, True
    try:
        yield
    finally:
        _state.on = before


def interpreting() -> bool:
    return _state.on


class NativeInterpreter:
    """What rewritten code calls. Its methods mirror those of the lowering, on values."""

    UNSET = UNSET
    convert = staticmethod(semantics.convert)
    binary = staticmethod(lambda op, a, b: semantics.binary(op, _plain(a), _plain(b)))
    unary = staticmethod(lambda op, x: semantics.unary(op, _plain(x)))

    # ---- names and tests
    def hold(self, x: Any, old: Any, keep: bool, weak: bool) -> Any:
        """What a name holds after an assignment: numbers become typed, lists are copied."""
        if x is UNSET:
            raise NativeError("a name is used that has no value here")
        if isinstance(x, list):
            return _copied(x)
        if isinstance(x, (Global, ExternData)):
            return to_pointer(x.ty, x)
        before: Any = type_of(old)
        if keep or not isinstance(x, (bool, int, float)):
            return to_pointer(before, None) if x is None and isinstance(old, Ptr) else x
        if before is None and weak:
            return x  # it may take the type of another path's value, which is not known here
        return own(x, before)

    def unpack(self, x: Any, count: int) -> list[Any]:
        items = list(x)
        if len(items) != count:
            raise NativeError(f"{count} names for {len(items)} values")
        return items

    def test(self, x: Any) -> Any:
        ty = type_of(x)
        if ty is not None and ty is not bool_:
            raise NativeError(f"a condition must be a bool, not {ty}; compare it")
        return x

    def compare(self, ops: tuple[str, ...], values: list[Any]) -> Any:
        found: Any = None
        for op, a, b in zip(ops, values, values[1:], strict=False):
            each = self._compare_one(op, _plain(a), _plain(b))
            if found is None:
                found = each
            elif type_of(found) is None:
                found = each if found else False
            else:
                found = found & each if type_of(each) is not None else (found if each else False)
        return found

    def _compare_one(self, op: str, a: Any, b: Any) -> Any:
        if op in ("is", "is not"):
            for x, y in ((a, b), (b, a)):
                if isinstance(x, Ptr) and y is None:
                    return np.bool_((x.address == 0) == (op == "is"))
            return (a is b) == (op == "is")
        if op in ("in", "not in"):
            return (a in b) == (op == "in")
        return semantics.compare(op, a, b)

    def range(self, *limits: Any) -> Iterator[Any]:
        limits = tuple(_plain(x) for x in limits)
        low, high = (0, limits[0]) if len(limits) == 1 else limits[:2]
        step = limits[2] if len(limits) == 3 else 1
        ty = next((t for t in map(type_of, (low, high, step)) if t is not None), None)
        typed = [own(x, ty) for x in (low, high, step)]
        kind: Any = type_of(typed[0])
        if isinstance(step, int) or int(step) > 0:
            for k in range(*map(int, typed)):
                yield kind.np(k)
        else:
            raise NativeError("a step known at run time must be positive")

    # ---- memory
    def attr(self, base: Any, name: str) -> Any:
        base = _plain(base)
        return base.field(name).load() if isinstance(base, Ptr) else getattr(base, name)

    def set_attr(self, base: Any, name: str, value: Any) -> None:
        _plain(base).set_field(name, value)

    def item(self, base: Any, index: Any) -> Any:
        base = _plain(base)
        if isinstance(base, Ptr) and type_of(base) is not None:
            return base[index]
        if isinstance(base, np.ndarray):
            return base[int(index)]
        if type_of(index) is not None:
            raise NativeError("a compile-time sequence needs a compile-time index")
        return base[index]

    def set_item(self, base: Any, index: Any, value: Any) -> None:
        base = _plain(base)
        if isinstance(base, list):
            if type_of(index) is not None:
                raise NativeError("a list of values needs a compile-time index")
            base[index] = (
                _copied(value) if isinstance(value, list) else own(value, type_of(base[index]))
            )
        elif isinstance(base, np.ndarray):
            raise NativeError("a vector's lanes cannot be set; use insert(v, i, x)")
        else:
            base[index] = value

    def place(self, base: Any, key: Any, is_field: bool) -> Any:
        """The address of a field or element, for ``ref``."""
        base = _plain(base)
        if not isinstance(base, Ptr):
            return None
        return base.field(key) if is_field else base.math("add", key)

    # ---- calls
    def call_place(self, f: Any, base: Any, key: Any, is_field: bool) -> Any:
        if isinstance(f, Intrinsic) and f.places:
            at = self.place(base, key, is_field)
            if at is None:
                raise NativeError(f"{f.name} takes a field or an element")
            return f.py(at) if f.py else None
        return self.call(f, self.attr(base, key) if is_field else self.item(base, key))

    def call(self, f: Any, *args: Any, **kw: Any) -> Any:
        f = _plain(f)
        if isinstance(f, native_function.Native):
            return self.call_native(f, args, kw)
        if isinstance(f, native_function.Spec):
            return self.call_native(f.native, args, {**f.static, **kw})
        if isinstance(f, FunctionPointer):
            return self._call_pointer(f, args)
        if isinstance(f, Extern):
            return f(*map(_plain, args))
        if isinstance(f, (Ty, Intrinsic)):
            return (
                f(*args, **kw)
                if isinstance(f, Intrinsic)
                else self.convert(f, *map(_plain, args or (0,)))
            )
        return self._call_python(f, args, kw)

    def _call_python(self, f: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        args = tuple(map(_plain, args))
        if f in (min, max):
            items = list(args[0]) if len(args) == 1 else list(args)
            if any(type_of(x) is not None for x in items):
                found = items[0]
                for each in items[1:]:
                    found = semantics.minmax(f is min, found, each)
                return found
        if f is sum and any(type_of(x) is not None for x in args[0]):
            items = [*args[1:], *args[0]]
            found = items[0]
            for each in items[1:]:
                found = semantics.binary("add", found, each)
            return found
        if f is abs:
            return semantics.absolute(args[0])
        return f(*args, **kw)

    def _call_pointer(self, f: FunctionPointer, args: tuple[Any, ...]) -> Any:
        if f.spec is not None:
            return self.call_native(f.spec.native, args, f.spec.static)
        kinds = [c_type(t) for t in (f.ty.ret, *f.ty.args)]
        return self.call_c(
            ctypes.PYFUNCTYPE(*kinds)(f.address), "function pointer", f.ty.ret, f.ty.args, args
        )

    def call_c(
        self, call: Any, name: str, ret: Ty, kinds: tuple[Ty, ...], args: tuple[Any, ...]
    ) -> Any:
        """A C function, on typed values or plain ones."""
        if len(args) != len(kinds):
            raise NativeError(f"{name} takes {len(kinds)} arguments, not {len(args)}")
        given = []
        for x, ty in zip(args, kinds, strict=True):
            if ty.kind == "p":
                at = to_pointer(ty, x).address
                given.append(at or None)
            else:
                given.append(own(x, ty).item())
        found = call(*given)
        if ret.kind == "void":
            return None
        if not interpreting():
            return found or 0 if ret.kind == "p" else found
        return to_pointer(ret, found or 0) if ret.kind == "p" else ret.np(found)

    def call_native(
        self, f: Native, args: tuple[Any, ...], kw: dict[str, Any], entry: bool = False
    ) -> Any:
        """A native function, run as Python. ``entry``: called from outside, by plain Python."""
        values, static = _bind(f, args, kw)
        if f.inline:
            for k, name in enumerate(f.params):
                if name in f.fn.__annotations__:
                    ty = f.note(name, {**static, **dict(zip(f.params, values, strict=True))})
                    values[k] = self._given(f, name, ty, values[k], entry)
                elif entry and isinstance(values[k], np.ndarray) and values[k].ndim != 1:
                    values[k] = Ptr(values[k])
            return python_form(f)(*values, **static)
        ret, params = f.signature(f.spec(**static).static)
        typed = [
            self._given(f, name, ty, x, entry) for (name, ty), x in zip(params, values, strict=True)
        ]
        found = python_form(f)(*typed, **static)
        if ret.kind == "void":
            return None
        found = own(_plain(found), ret)
        return _outward(found) if entry else found

    def _given(self, f: Native, name: str, ty: Ty, x: Any, entry: bool) -> Any:
        """An argument as the parameter's type; from outside with the checks of a compiled call."""
        x = _plain(x)
        if not entry or type_of(x) is ty:
            return own(x, ty)
        if ty.kind == "p":
            if isinstance(x, np.ndarray):
                native_entry.array_address(f"{f.__name__}: {name}", ty, x)
                return to_pointer(ty, x)
            if isinstance(x, Ptr):
                return own(x, ty) if x.ty is not ty else x
        checked = native_entry._check(f.__name__, name, ty)(x)
        if ty.kind == "p":
            return to_pointer(ty, checked)
        return own(x, ty) if ty.half else self.convert(ty, checked)


def _outward(x: Any) -> Any:
    """A result as a compiled call gives it to Python."""
    if isinstance(x, Ptr):
        return x.address
    return float(x) if type_of(x) is not None and type_of(x).half else x.item()  # type: ignore[union-attr]


def _plain(x: Any) -> Any:
    if x is UNSET:
        raise NativeError("a name is used that has no value here")
    return pointer(x) if isinstance(x, (Global, ExternData)) else x


def _copied(x: list[Any]) -> list[Any]:
    return [_copied(y) if isinstance(y, list) else y for y in x]


def _bind(f: Native, args: tuple[Any, ...], kw: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Values of the parameters in order, and of the compile-time ones."""
    if len(args) > len(f.params):
        raise TypeError(f"{f.__name__} takes {len(f.params)} arguments, not {len(args)}")
    given = dict(zip(f.params, args, strict=False))
    static = {**(f.fn.__kwdefaults__ or {}), **kw}
    given.update({name: static.pop(name) for name in f.params if name in static})
    for name, x in zip(reversed(f.params), reversed(f.fn.__defaults__ or ()), strict=False):
        given.setdefault(name, x)
    missing = [n for n in f.params if n not in given] + [n for n in f.statics if n not in static]
    unknown = [n for n in static if n not in f.statics]
    if missing or unknown:
        what = f"needs {', '.join(missing)}" if missing else f"has no parameter {unknown[0]!r}"
        raise TypeError(f"{f.__name__} {what}")
    return [given[name] for name in f.params], static


def python_form(f: Native) -> Any:
    """The function rewritten to run on the interpreter's values; made once."""
    if f.python is None:
        f.python = native_rewrite.rewrite(f, current())
    return f.python


@cache
def current() -> NativeInterpreter:
    return NativeInterpreter()
