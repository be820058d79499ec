"""The types of the native language: what a value is, how LLVM spells it, how it lies in memory.

Types are interned: two spellings of one type are one object, so they compare with ``is``. A value
of ``f16`` or ``bf16`` travels as its 16 bits (LLVM ``i16``) and is widened to ``f32`` to compute; a
``bool`` is ``i1`` in a register and one byte in memory. Vectors and structs have the alignment of
their most aligned element, never more: loads and stores of vectors take any element address.

Called from plain Python a scalar type is a converting constructor that wraps as the machine does
(``u8(300)`` is ``numpy.uint8(44)``).
"""

from __future__ import annotations

import struct as _struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from antorcha.core.lazy import lazy
from antorcha.errors import NativeError

if TYPE_CHECKING:
    from antorcha.lang.native.inferred import Value

ml_dtypes = lazy("ml_dtypes")  # only programs that run bf16 in plain Python pay for it
native_interpret = lazy("antorcha.lang.native.interpret")


class Ty:
    """One type. ``kind``: i u f b (scalars), p pointer, v vector, a array, s struct, void.

    ``ll`` is LLVM's type of a value, ``mem`` of the same value in memory. ``elem`` and ``n`` belong
    to pointers, vectors and arrays; ``ret`` and ``args`` to function pointers; ``fields`` (name ->
    (byte offset, type)) to structs.
    """

    __slots__ = (
        "_key", "_np", "align", "args", "elem", "fields", "kind", "ll", "mem", "n", "name", "ret",
        "size",
    )  # fmt: skip

    def __init__(
        self, name: str, ll: str, kind: str, size: int, *, align: int = 0, np_type: Any = None,
        elem: Any = None, n: int = 0, mem: str = "",
    ) -> None:  # fmt: skip
        self.name, self.ll, self.kind, self.size = name, ll, kind, size
        self.align, self.mem = align or size, mem or ll
        self.elem: Any = elem
        self.n = n
        self.ret: Any = None
        self.args: tuple[Ty, ...] = ()
        self.fields: dict[str, tuple[int, Ty]] = {}
        self._np: Any = np_type
        self._key = ""

    def __repr__(self) -> str:
        return self.name

    @property
    def scalar(self) -> Ty:
        """The element of a vector; the type itself otherwise."""
        return self.elem if self.kind == "v" else self

    @property
    def np(self) -> Any:
        """The numpy scalar class, or None (pointers, structs, void)."""
        if self._np is None and self is bf16:
            self._np = ml_dtypes.bfloat16
        return self._np

    @property
    def half(self) -> bool:
        """Is it f16 or bf16 (or a vector of them), which compute in f32?"""
        return self.scalar is f16 or self.scalar is bf16

    @property
    def wide(self) -> Ty:
        """The type that arithmetic is done in: f32 for the half types, else the type itself."""
        if not self.half:
            return self
        return vec[f32, self.n] if self.kind == "v" else f32

    @property
    def attr(self) -> str:
        """What the C calling convention wants said of a parameter or result of this type."""
        if self.kind == "b" or self.half or (self.kind == "u" and self.size < 4):
            return "zeroext " if self.kind != "v" else ""
        return "signext " if self.kind == "i" and self.size < 4 else ""

    @property
    def is_function(self) -> bool:
        return self.kind == "p" and self.ret is not None

    def with_scalar(self, elem: Ty) -> Ty:
        """The same shape with other elements: of vec[f32,8] and bool, vec[bool,8]."""
        return vec[elem, self.n] if self.kind == "v" else elem

    def bounds(self) -> tuple[int, int]:
        """Least and greatest value of an integer type (of a vector: of its elements)."""
        bits = self.scalar.size * 8
        if self.scalar.kind == "i":
            return -(1 << bits - 1), (1 << bits - 1) - 1
        return 0, (1 << bits) - 1

    def wrap(self, value: int) -> int:
        """The value as this integer type's bits hold it."""
        low, high = self.bounds()
        return (int(value) - low) % (high - low + 1) + low

    def __native_key__(self) -> str:
        """Everything compiled code depends on: of structs, the fields and where they lie."""
        if not self._key:
            self._key = _type_key(self, [])
        return self._key

    def __call__(self, x: Any = 0) -> Value:
        """A conversion, in plain Python, that gives what the machine would."""
        converted: Value = native_interpret.current().convert(self, x)
        return converted


def _type_key(ty: Ty, outer: list[Ty]) -> str:
    if ty in outer:
        return f"^{len(outer) - outer.index(ty)}"  # a struct that points to itself
    if ty.kind == "s":
        inner = [*outer, ty]
        fields = [f"{k}@{o}:{_type_key(t, inner)}" for k, (o, t) in ty.fields.items()]
        return f"struct {ty.name}({ty.size},{ty.align}){{{','.join(fields)}}}"
    if ty.is_function:
        return f"func[{','.join(_type_key(t, outer) for t in (ty.ret, *ty.args))}]"
    if ty.kind in "pva":
        return f"{ty.kind}{ty.n}[{_type_key(ty.elem, outer)}]"
    return ty.name


def _int(bits: int, kind: str) -> Ty:
    name = f"{kind}{bits}"
    np_type = getattr(np, f"{'u' if kind == 'u' else ''}int{bits}")
    return Ty(name, f"i{bits}", kind, bits // 8, np_type=np_type)


i8, i16, i32, i64 = (_int(bits, "i") for bits in (8, 16, 32, 64))
u8, u16, u32, u64 = (_int(bits, "u") for bits in (8, 16, 32, 64))
f16 = Ty("f16", "i16", "f", 2, np_type=np.float16)
bf16 = Ty("bf16", "i16", "f", 2)
f32 = Ty("f32", "float", "f", 4, np_type=np.float32)
f64 = Ty("f64", "double", "f", 8, np_type=np.float64)
bool_ = Ty("bool", "i1", "b", 1, np_type=np.bool_, mem="i8")
void = Ty("void", "void", "void", 0, align=1)
SCALARS = (i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, bool_)
_STAND_INS: dict[Any, Ty] = {bool: bool_, int: i64, float: f64, None: void, type(None): void}
_SELF: Any = Ty("Self", "i8", "void", 1)  # ptr["Self"] until its struct is known


def as_type(x: Any) -> Any:
    """A type from an annotation's value: Python's bool, int, float and None have native
    meanings."""
    if isinstance(x, Ty):
        return x
    if isinstance(x, type) or x is None:
        return _STAND_INS.get(x, x)
    return x


class _Maker:
    """``ptr[T]``, ``vec[T, n]``, ``array[T, n]``, ``func[ret, *args]``: interned by their parts."""

    def __init__(self, name: str, make: Callable[..., Ty]) -> None:
        self.name, self.make = name, make
        self.made: dict[Any, Ty] = {}

    def __repr__(self) -> str:
        return self.name

    def __getitem__(self, key: Any) -> Ty:
        found = self.made.get(key)
        if found is None:
            parts = tuple(as_type(k) for k in (key if isinstance(key, tuple) else (key,)))
            found = self.made.get(parts)
            if found is None:
                found = self.made[parts] = self.make(*parts)
            self.made[key] = found
        return found

    def __native_key__(self) -> str:
        return self.name


def _need_type(where: str, t: Any) -> None:
    if not isinstance(t, Ty):
        raise NativeError(f"{where}: {t!r} is not a type of the native language")


def _ptr(t: Any) -> Ty:
    t = _SELF if t in ("Self", _SELF) else t
    _need_type("ptr[T]", t)
    return Ty(f"ptr[{t}]", "ptr", "p", 8, np_type=None, elem=t)


def _vec(t: Any, n: Any) -> Ty:
    _need_type("vec[T, n]", t)
    if t.kind not in "iufbp" or not isinstance(n, int) or not 1 <= n <= 4096:
        raise NativeError(f"vec[{t}, {n}]: a vector has 1 to 4096 scalars")
    mem = f"<{n} x {t.mem}>"
    return Ty(
        f"vec[{t},{n}]", f"<{n} x {t.ll}>", "v", t.size * n, align=t.align, elem=t, n=n, mem=mem
    )


def _array(t: Any, n: Any) -> Ty:
    _need_type("array[T, n]", t)
    if t.kind == "void" or not isinstance(n, int) or n < 0:
        raise NativeError(f"array[{t}, {n}]: an array has a whole number of values")
    size = t.size * n
    return Ty(f"array[{t},{n}]", f"[{size} x i8]", "a", size, align=t.align, elem=t, n=n)


def _func(ret: Any, *args: Any) -> Ty:
    for t in (ret, *args):
        _need_type("func[ret, *args]", t)
    ty = Ty(f"func[{','.join(map(str, (ret, *args)))}]", "ptr", "p", 8, elem=u8)
    ty.ret, ty.args = ret, args
    return ty


ptr = _Maker("ptr", _ptr)
vec = _Maker("vec", _vec)
array = _Maker("array", _array)
func = _Maker("func", _func)
raw = ptr[u8]


def struct(cls: Any) -> Ty:
    """A class of annotations becomes a struct type with C's layout.

    A field may point to the struct itself: ``next: ptr[Self]``, or its own name (as a string or
    under ``from __future__ import annotations``).
    """
    ty = Ty(cls.__name__, "i8", "s", 0, align=1)
    frame = sys._getframe(1)
    names = {**globals(), **vars(sys.modules[cls.__module__]), **frame.f_locals}
    names |= {"Self": ty, cls.__name__: ty}
    offset, align = 0, 1
    for name, note in getattr(cls, "__annotations__", {}).items():
        t = as_type(eval(note, names) if isinstance(note, str) else note)
        if isinstance(t, Ty) and t.kind == "p" and t.elem is _SELF:
            t = ptr[ty]
        if not isinstance(t, Ty) or t.kind == "void" or t is ty:
            raise NativeError(f"struct {ty.name}: field {name!r} has no size: {note!r}")
        offset += -offset % t.align
        ty.fields[name] = (offset, t)
        offset += t.size
        align = max(align, t.align)
    ty.size, ty.align = offset + -offset % align, align
    ty.ll = ty.mem = f"[{ty.size} x i8]"
    return ty


def float_literal(value: Any, ty: Ty) -> str:
    """LLVM's exact spelling of a float constant, rounded to the type once."""
    if ty.half:
        return str(half_bits(value, ty))
    with np.errstate(over="ignore"):
        value = float(np.float32(value)) if ty is f32 else float(value)
    return f"0x{_struct.unpack('<Q', _struct.pack('<d', value))[0]:016X}"


def half_bits(value: Any, ty: Ty) -> int:
    """The 16 bits of a number as f16 or bf16; it is rounded to f32 first, as conversions are."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
        if ty is f16:
            return int(np.float16(single).view(np.uint16))
    if np.isnan(single):
        return 0x7FC0
    bits = int(single.view(np.uint32))
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def mangle(ty: Ty) -> str:
    """The type's name inside the name of an overloaded LLVM intrinsic."""
    if ty.kind == "v":
        return f"v{ty.n}{mangle(ty.elem)}"
    if ty.kind == "p":
        return "p0"
    return {"float": "f32", "double": "f64"}.get(ty.ll, ty.ll)
