"""What a name in native code may hold besides Python's own values.

``V`` is a run-time value: a type and the text that names it in LLVM IR. ``Lvalue`` is a spot in
memory (a field or an element) that is loaded when its value is wanted. ``Extern``, ``ExternData``
and ``Global`` are symbols of the process. ``Intrinsic`` is a compile-time hook: a name whose call
is lowered by a Python function.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from antorcha.core.lazy import lazy
from antorcha.errors import NativeError
from antorcha.lang.native.immortal import make_immortal
from antorcha.lang.native.types import Ty, ptr

if TYPE_CHECKING:
    from antorcha.lang.native.inferred import Value

native_types = lazy("antorcha.lang.native.types")
native_engine = lazy("antorcha.lang.native.engine")
native_interpret = lazy("antorcha.lang.native.interpret")
native_memory = lazy("antorcha.lang.native.memory")
native_digest = lazy("antorcha.lang.native.digest")


class V:
    """A run-time value: its type, and its name or literal in the IR."""

    __slots__ = ("ref", "ty")

    def __init__(self, ty: Ty, ref: str) -> None:
        self.ty, self.ref = ty, ref

    def __repr__(self) -> str:
        return f"<{self.ty} {self.ref}>"

    @property
    def literal(self) -> int | None:
        """The integer, if this is an integer constant (or a vector full of one)."""
        if self.ty.scalar.kind not in "iu":
            return None
        text = self.ref
        if text.startswith("splat ("):
            text = text[7:-1].split()[-1]
        return int(text) if text.lstrip("-").isdigit() else None


class Lvalue(V):
    """A spot in memory: ``ref`` names its address, ``ty`` is the type of what lies there."""

    __slots__ = ()


def c_type(ty: Ty) -> Any:
    """The ctypes class that passes a value of this type; half types travel as their bits."""
    if ty.kind == "void":
        return None
    if ty.kind == "p":
        return ctypes.c_void_p
    if ty.kind in "iufb":
        if ty.half:
            return ctypes.c_uint16
        named = {"f32": ctypes.c_float, "f64": ctypes.c_double, "bool": ctypes.c_bool}.get(ty.name)
        return named or getattr(ctypes, f"c_{'u' if ty.kind == 'u' else ''}int{ty.size * 8}")
    raise NativeError(f"a {ty} cannot be passed between Python and native code; pass a pointer")


class Extern:
    """A C function of the process (or an LLVM intrinsic, by its full name): name, result,
    arguments.

    ``attrs`` is text of LLVM function attributes for the declaration.
    """

    def __init__(self, name: str, ret: Ty | None, *args: Ty, attrs: str = "") -> None:
        self.name, self.attrs = name, attrs
        self.ret: Ty = native_types.as_type(ret)
        self.args: tuple[Ty, ...] = tuple(map(native_types.as_type, args))
        self._call: Any = None

    def __repr__(self) -> str:
        return f"Extern({self.name})"

    def __native_key__(self) -> str:
        types = ",".join(t.__native_key__() for t in (self.ret, *self.args))
        return f"extern {self.name}({types}){self.attrs}"

    @property
    def addr(self) -> int:
        address: int = native_engine.address_of(self.name)
        return address

    def __call__(self, *args: Any) -> Value:
        """Calls the C function from Python (also what interpreted code does)."""
        if self._call is None:
            kinds = (c_type(t) for t in (self.ret, *self.args))
            self._call = ctypes.PYFUNCTYPE(*kinds)(self.addr)
        result: Value = native_interpret.current().call_c(
            self._call, self.name, self.ret, self.args, args
        )
        return result

    def declare(self) -> str:
        args = ", ".join(f"{t.ll} {t.attr}" if t.attr else t.ll for t in self.args)
        return f"declare {self.ret.attr}{self.ret.ll} @{self.name}({args}) {self.attrs}".rstrip()


class ExternData:
    """A data symbol of the process, seen as ``ptr[ty]``."""

    def __init__(self, name: str, ty: Ty) -> None:
        self.name, self.ty = name, ptr[ty]

    def __repr__(self) -> str:
        return f"ExternData({self.name})"

    def __native_key__(self) -> str:
        return f"data {self.name}:{self.ty.__native_key__()}"

    @property
    def addr(self) -> int:
        address: int = native_engine.address_of(self.name)
        return address

    def declare(self) -> str:
        return f"@{self.name} = external global i8"


_globals: dict[str, tuple[str, Global]] = {}


class Global:
    """Memory of this process that compiled functions share by name, seen as ``ptr[ty]``.

    It is never freed: compiled functions run, and may lock a lock in it, until the process ends.

    ``np`` is a numpy view of it (scalars only). Names are the process's: one module, one name.
    Fields of a struct and elements of an array are read and written from Python too.
    """

    def __init__(
        self, name: str, ty: Ty, count: int = 1, init: Any = None, align: int = 64
    ) -> None:
        self.name, self.ty, self.count = name, ptr[ty], count
        size = ty.size * count
        self.buf = make_immortal(ctypes.create_string_buffer(size + align))
        start = ctypes.addressof(self.buf)
        self.addr = start + -start % align
        whole: Any = self.buf
        self.bytes = np.frombuffer(whole, np.uint8)[self.addr - start :][:size]
        self.np: Any = None if ty.np is None else self.bytes.view(ty.np)
        if init is not None:
            self.np[:] = init  # type: ignore[index]
        home = sys._getframe(1).f_globals.get("__name__", "")
        other, _ = _globals.get(name, (home, None))
        if other != home:
            raise NativeError(f"Global {name!r} is already defined by module {other}; rename one")
        _globals[name] = (home, self)
        engine = sys.modules.get(f"{__package__}.engine")
        if engine is not None:
            engine.define(name, self.addr)

    def __repr__(self) -> str:
        return f"Global({self.name}: {self.ty})"

    def __native_key__(self) -> str:
        return f"global {self.name}:{self.ty.__native_key__()}"

    def declare(self) -> str:
        return f"@{self.name} = external global i8"

    def pointer(self) -> Any:
        """The interpreter's bounds-checked pointer to it."""
        return native_memory.Ptr(native_memory.Memory.of(self.bytes, self), self.addr, self.ty.elem)

    def __getitem__(self, i: int) -> Value:
        return self.pointer()[i]

    def __setitem__(self, i: int, value: Any) -> None:
        self.pointer()[i] = value

    def __getattr__(self, name: str) -> Value:
        if name.startswith("_") or "ty" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.pointer(), name)

    if TYPE_CHECKING:  # native code moves it as a pointer, and sets the fields of its struct

        def __add__(self, count: int) -> Value: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def refer_to(self, thing: object) -> None:
        """Makes it the address of a Python object, which from now on is never freed."""
        ctypes.c_void_p.from_address(self.addr).value = id(make_immortal(thing))

    def store(self, **fields: Any) -> None:
        """Sets fields of a struct from Python: ``P.store(threads=4, spin=100)``."""
        at = self.pointer()
        for name, value in fields.items():
            at.set_field(name, value)


def defined_globals() -> Iterator[Global]:
    for _, each in _globals.values():
        yield each


class Intrinsic:
    """A compile-time hook: a call of it in native code runs ``emit(g, node, *args, **kwargs)``.

    ``g`` is the function being lowered (see the package's docstring for what it offers), ``node``
    the call in the syntax tree, for ``g.fail(node, message)``. An argument is a ``V`` (run time) or
    any Python value (compile time); with ``places=True`` fields and elements are an ``Lvalue``. The
    result is a ``V``, a compile-time value, a tuple or list of these, or None. A list that it is
    given must not be changed.

    ``py(*args, **kwargs)`` does the same on numpy values when the code runs interpreted.

    Its exact description is its name and the contents of the file that defines ``emit``, and of
    ``sources``: more files, or modules, that decide what it emits.
    """

    def __init__(
        self, emit: Callable[..., Any], py: Callable[..., Any] | None = None, *,
        name: str = "", places: bool = False, sources: tuple[Any, ...] = (),
    ) -> None:  # fmt: skip
        self.emit, self.py, self.places, self.sources = emit, py, places, sources
        self.name = self.__name__ = name or emit.__name__
        self.__doc__ = (py or emit).__doc__
        self._key = ""

    def __repr__(self) -> str:
        return f"Intrinsic({self.name})"

    def __native_key__(self) -> str:
        if not self._key:
            home = self.emit.__code__.co_filename
            files = [] if home.startswith(native_digest.PACKAGE) else [home]
            files += [
                s if isinstance(s, str) else native_digest.module_file(s) for s in self.sources
            ]
            self._key = (
                "intrinsic " + self.name + "".join(native_digest.file_hash(f) for f in files)
            )
        return self._key

    def __call__(self, *args: Any, **kwargs: Any) -> Value:
        if self.py is None:
            raise NativeError(f"{self.name} has no plain-Python side")
        result: Value = self.py(*args, **kwargs)
        return result


def intrinsic(
    py: Callable[..., Any] | None = None, *, places: bool = False, sources: tuple[Any, ...] = ()
) -> Callable[[Callable[..., Any]], Intrinsic]:
    """``@intrinsic(python_side)`` above the function that emits code makes an Intrinsic."""
    return lambda emit: Intrinsic(emit, py, places=places, sources=sources)
