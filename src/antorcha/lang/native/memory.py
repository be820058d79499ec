"""Memory as interpreted code sees it: pointers that know where their memory ends.

A ``Ptr`` is an address, the type of what it points to, and the ``Memory`` it was made from; a load
or store outside of that memory raises IndexError. Addresses are real: a pointer can be given to a C
function, stored in a struct, or made from an integer. A pointer into memory that Python does not
own (from malloc, say) has no bounds.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from antorcha.core.lazy import lazy
from antorcha.errors import NativeError
from antorcha.lang.native.semantics import binary, minmax, own, scalar_type, type_of
from antorcha.lang.native.types import Ty, i64, ptr, raw, u8
from antorcha.lang.native.values import ExternData, Global

native_types = lazy("antorcha.lang.native.types")
native_function = lazy("antorcha.lang.native.function")
native_values = lazy("antorcha.lang.native.values")


class Memory:
    """A piece of memory that Python owns."""

    _live: ClassVar[weakref.WeakValueDictionary[int, Memory]] = weakref.WeakValueDictionary()

    def __init__(self, data: np.ndarray[Any, Any], owner: Any = None) -> None:
        self.data, self.owner = data, owner
        self.start: int = data.ctypes.data
        self.end = self.start + data.nbytes
        self.writable = data.flags.writeable

    @classmethod
    def of(cls, array: np.ndarray[Any, Any], owner: Any = None) -> Memory:
        """The memory of an array, whose bytes lie in one piece."""
        if not array.flags.c_contiguous:
            raise TypeError("the array is not contiguous")
        start, size = array.ctypes.data, array.nbytes
        found = cls._live.get(start)
        if found is None or found.end - found.start != size or found.owner is not (owner or array):
            data = array.reshape(-1).view(np.uint8) if size else np.zeros(0, np.uint8)
            found = cls(data, owner if owner is not None else array)
            cls._live[found.start] = found
        return found

    @classmethod
    def new(cls, size: int) -> Memory:
        """Fresh memory, filled with a pattern that shows when it is read unset."""
        room = np.full(size + 64, 0xCD, np.uint8)
        offset = -room.ctypes.data % 64
        return cls.of(room[offset : offset + size], room)

    @classmethod
    def at(cls, address: int) -> Memory | None:
        """The live memory that holds an address; one that only ends there, if no other."""
        ends = None
        for each in list(cls._live.values()):
            if each.start <= address < each.end:
                return each
            if address == each.end:
                ends = each
        return ends


class Ptr:
    """A pointer in interpreted code; ``Ptr(array)`` points to a numpy array's first element."""

    __slots__ = ("_address", "_memory", "_ty")

    def __init__(self, memory: Any, address: int | None = None, elem: Ty | None = None) -> None:
        if isinstance(memory, np.ndarray):
            elem = elem or scalar_type(memory.dtype)
            if elem is None:
                raise TypeError(f"an array of {memory.dtype} has no native element type")
            memory = Memory.of(memory)
            address = memory.start
        object.__setattr__(self, "_memory", memory)
        object.__setattr__(self, "_address", address or 0)
        object.__setattr__(self, "_ty", ptr[elem])

    @property
    def address(self) -> int:
        return self._address  # type: ignore[no-any-return]

    @property
    def ty(self) -> Ty:
        return self._ty  # type: ignore[no-any-return]

    @property
    def memory(self) -> Memory | None:
        return self._memory  # type: ignore[no-any-return]

    def native_type(self) -> Ty:
        return self.ty

    def __repr__(self) -> str:
        if self._memory is None:
            return f"<{self._ty} {self._address:#x}>"
        offset, size = self._address - self._memory.start, self._memory.end - self._memory.start
        return f"<{self._ty} byte {offset} of {size}>"

    def as_type(self, ty: Ty) -> Any:
        """The same address as another pointer type."""
        if ty.is_function:
            return FunctionPointer.at(ty, self._address)
        return Ptr(self._memory, self._address, ty.elem)

    def moved(self, size: int) -> Ptr:
        return Ptr(self._memory, self._address + size, self._ty.elem)

    def math(self, op: str, other: Any) -> Any:
        """Pointer + index, pointer - index, pointer - pointer."""
        if isinstance(other, (Global, ExternData)):
            other = to_pointer(other.ty, other)
        size = self._ty.elem.size
        if isinstance(other, Ptr):
            if op != "sub" or other.ty is not self._ty:
                raise NativeError(f"{op} of {self._ty} and {other.ty}")
            return np.int64((self._address - other.address) // max(size, 1))
        if op not in ("add", "sub"):
            raise NativeError(f"{op} does not take {self._ty}")
        step = _index(other)
        return self.moved(size * (step if op == "add" else -step))

    def __add__(self, k: Any) -> Any:
        return self.math("add", k)

    def __sub__(self, k: Any) -> Any:
        return self.math("sub", k)

    def __eq__(self, other: object) -> bool:
        if other is None:
            return bool(self._address == 0)
        return isinstance(other, Ptr) and bool(self._address == other.address)

    def __hash__(self) -> int:
        return hash(self._address)

    # ---- access
    def window(self, size: int, what: str = "load") -> np.ndarray[Any, Any]:
        """The bytes from here on; IndexError when they are not all in the pointer's memory."""
        address = self._address
        if self._memory is None:
            if address < 4096:
                raise IndexError(f"{what} through a null pointer ({self._ty})")
            block: Any = (ctypes.c_uint8 * size).from_address(address)
            return np.frombuffer(block, np.uint8)
        start, end = self._memory.start, self._memory.end
        if not (start <= address and address + size <= end):
            raise IndexError(
                f"{what} of {size} bytes at byte {address - start} of {end - start} ({self._ty})"
            )
        return self._memory.data[address - start : address - start + size]  # type: ignore[no-any-return]

    def __getitem__(self, index: Any) -> Any:
        return self.moved(self._ty.elem.size * _index(index)).load()

    def __setitem__(self, index: Any, value: Any) -> None:
        self.moved(self._ty.elem.size * _index(index)).store(value)

    def load(self) -> Any:
        elem = self._ty.elem
        if elem.kind in "sa":
            return self if elem.kind == "s" else Ptr(self._memory, self._address, elem.elem)
        if elem.kind == "v":
            return vector_from(elem, self.window(elem.size))
        if elem.kind == "b":
            return np.bool_(self.window(1)[0] != 0)
        if elem.kind == "p":
            return to_pointer(elem, int(self.window(8).copy().view(np.uint64)[0]))
        return self.window(elem.size).copy().view(elem.np)[0]

    def store(self, value: Any) -> None:
        elem = self._ty.elem
        value = own(value, elem)
        if elem.kind == "p":
            data = np.array([value.address], np.uint64).view(np.uint8)
        else:
            data = np.atleast_1d(np.asarray(value)).view(np.uint8)
        room = self.window(elem.size, "store")
        if self._memory is not None and not self._memory.writable:
            raise IndexError(f"store into read-only memory ({self._ty})")
        room[:] = data

    def field(self, name: str) -> Ptr:
        """A pointer to a field of the struct."""
        elem = self._ty.elem
        if elem.kind != "s" or name not in elem.fields:
            raise NativeError(f"{self._ty} has no field {name!r}")
        offset, ty = elem.fields[name]
        return Ptr(self._memory, self._address + offset, ty)

    def set_field(self, name: str, value: Any) -> None:
        self.field(name).store(value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self.field(name).load()
        except NativeError as err:
            raise AttributeError(str(err)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self.set_field(name, value)


class FunctionPointer(Ptr):
    """A function pointer in interpreted code: of a native function, or of anything by address."""

    __slots__ = ("_native_spec",)
    _known: ClassVar[dict[int, Any]] = {}  # address -> spec

    def __init__(self, ty: Ty, address: int, spec: Any = None) -> None:
        object.__setattr__(self, "_memory", None)
        object.__setattr__(self, "_address", address)
        object.__setattr__(self, "_ty", ty)
        object.__setattr__(self, "_native_spec", spec)

    @property
    def spec(self) -> Any:
        return self._native_spec

    @property
    def address(self) -> int:
        """The real address; of a native function it is compiled for that."""
        if self._native_spec is not None:
            object.__setattr__(self, "_address", self._native_spec.addr)
            FunctionPointer._known[self._address] = self._native_spec
        return self._address  # type: ignore[no-any-return]

    @classmethod
    def of(cls, spec: Any) -> FunctionPointer:
        ret, params = spec.signature()
        return cls(native_types.func[(ret, *(t for _, t in params))], 0, spec)

    @classmethod
    def at(cls, ty: Ty, address: int) -> FunctionPointer:
        return cls(ty, address, cls._known.get(address))

    def as_type(self, ty: Ty) -> Any:
        if ty.is_function:
            return FunctionPointer(ty, self._address, self._native_spec)
        return Ptr(None, self.address, ty.elem)

    def __repr__(self) -> str:
        return f"<{self._ty} {self._native_spec or hex(self._address)}>"


def _index(x: Any) -> int:
    if isinstance(x, (bool, np.bool_)) or not isinstance(x, (int, np.integer)):
        raise NativeError(f"an index must be an integer, not {x!r}")
    return int(x)


def to_pointer(ty: Ty, x: Any) -> Any:
    """Anything that can be a pointer as one of this type."""
    if isinstance(x, Ptr):
        return x.as_type(ty)
    if isinstance(x, Global):
        return x.pointer().as_type(ty)
    if isinstance(x, (ExternData, native_values.Extern)):
        return Ptr(None, x.addr, u8).as_type(ty)
    if isinstance(x, (native_function.Native, native_function.Spec)):
        return FunctionPointer.of(x if isinstance(x, native_function.Spec) else x.spec()).as_type(
            ty
        )
    if isinstance(x, np.ndarray):
        return Ptr(x).as_type(ty)
    if x is None:
        return Ptr(None, 0, ty.elem).as_type(ty)
    if isinstance(x, (int, np.integer)):
        address = int(x) % (1 << 64)
        if ty.is_function:
            return FunctionPointer.at(ty, address)
        return Ptr(Memory.at(address) if address else None, address, ty.elem)
    raise NativeError(f"{x!r} does not become a {ty}")


def symbol(x: Any) -> Any:
    """What stands for a symbol of the process as a typed pointer; anything else as it is."""
    if isinstance(x, (Global, ExternData)):
        return to_pointer(x.ty, x)
    if isinstance(x, (native_function.Native, native_function.Spec)):
        return FunctionPointer.of(x if isinstance(x, native_function.Spec) else x.spec())
    if isinstance(x, native_values.Extern):
        return to_pointer(native_types.func[(x.ret, *x.args)], x)
    return x


def vector_from(ty: Ty, data: np.ndarray[Any, Any]) -> Any:
    return data != 0 if ty.elem.kind == "b" else data.copy().view(ty.elem.np)


# ---- the plain-Python sides of the intrinsics of memory
def pointer(p: Any) -> Ptr:
    return to_pointer(p.ty, p) if isinstance(p, (Global, ExternData)) else p  # type: ignore[no-any-return]


def local(ty: Ty, n: int = 1, align: int = 0) -> Ptr:
    memory = Memory.new(ty.size * n)
    return Ptr(memory, memory.start, ty)


def constant(ty: Ty, values: Any) -> Ptr:
    """A read-only table; one for the same numbers."""
    key = ty, tuple(values)
    if key not in _tables:
        table = _tables[key] = np.array(values, ty.np)
        table.flags.writeable = False
    return Ptr(_tables[key])


_tables: dict[Any, np.ndarray[Any, Any]] = {}


def ref(place: Any) -> Any:
    if isinstance(place, Ptr):  # the interpreter gives places as pointers
        return place.load() if place.ty.elem.kind == "a" else place
    raise NativeError("ref takes a field or an element")


def address(function: Any, **static: Any) -> Any:
    return FunctionPointer.of(function.spec(**static) if hasattr(function, "spec") else function)


def bitcast(ty: Ty, x: Any) -> Any:
    x = own(x)
    have = type_of(x)
    if have is None or have.size != ty.size or "b" in (have.scalar.kind, ty.scalar.kind):
        raise NativeError(f"the bits of a {have} are not those of a {ty}")
    found = np.atleast_1d(np.asarray(x)).view(ty.scalar.np)
    return found if ty.kind == "v" else found[0]


def memset(p: Any, value: Any, n: Any) -> None:
    pointer(p).window(int(n), "memset")[:] = own(value, u8)


def memcpy(to: Any, source: Any, n: Any) -> None:
    data = pointer(source).window(int(n), "memcpy from").copy()
    pointer(to).window(int(n), "memcpy to")[:] = data


def cstr(text: str) -> Ptr:
    data = np.frombuffer(text.encode() + b"\0", np.uint8)
    found = _strings.setdefault(text, data)
    return Ptr(found)


_strings: dict[str, np.ndarray[Any, Any]] = {}


def atomic_load(p: Any, order: str = "") -> Any:
    return pointer(p).load()


def atomic_store(p: Any, value: Any, order: str = "") -> None:
    pointer(p).store(value)


def atomic_rmw(name: str) -> Callable[..., Any]:
    def run(p: Any, value: Any, order: str = "") -> Any:
        p = pointer(p)
        old, value = p.load(), own(value, p.ty.elem)
        if name in ("max", "min"):
            p.store(minmax(name == "min", old, value))
        else:
            p.store(value if name == "xchg" else binary(name, old, value))
        return old

    return run


def cas(p: Any, old: Any, new: Any, order: str = "", fail: str = "") -> Any:
    p = pointer(p)
    if bool(p.load() != own(old, p.ty.elem)):
        return np.bool_(False)
    p.store(new)
    return np.bool_(True)


__all__ = ["FunctionPointer", "Memory", "Ptr", "i64", "pointer", "raw", "to_pointer"]
