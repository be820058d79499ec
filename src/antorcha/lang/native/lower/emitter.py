"""Text of one function being lowered: lines, labels, errors, constants, memory, conversions to V.

Values and labels share one numbering (LLVM gives them one namespace). ``block`` is the label of the
block being written and ``dead`` says that it has ended: nothing may be written until ``start``.
"""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING, Any, NoReturn

from antorcha.errors import NativeError
from antorcha.lang.native.function import Native, Spec
from antorcha.lang.native.types import (
    Ty,
    bool_,
    f64,
    float_literal,
    func,
    i64,
    mangle,
    ptr,
    raw,
    u8,
)
from antorcha.lang.native.values import Extern, ExternData, Global, Lvalue, V

if TYPE_CHECKING:
    from antorcha.lang.native.lower.module import LoweredModule

Value = Any  # a V, or any Python object known at compile time


class Tile(list[Any]):
    """A list in native code: values known by a compile-time index. Assignment copies it.

    ``ident`` names the list itself through the copies that branches make, so that what an inline
    function writes into a list given to it comes back to its caller.
    """

    __slots__ = ("ident",)

    def __init__(self, items: Any, ident: object | None = None) -> None:
        super().__init__(Tile(x) if type(x) is list else x for x in items)
        self.ident = ident if ident is not None else object()

    def branch(self, result: dict[object, Tile]) -> Tile:
        """The same list, for one arm of a branch to write to. ``result`` holds the copies made
        so far: two names of one list stay two names of one."""
        copy = result.get(self.ident)
        if copy is None:
            copy = result[self.ident] = Tile(self, self.ident)
            for k, x in enumerate(copy):
                if isinstance(x, Tile):
                    copy[k] = x.branch(result)
        return copy

    def fresh(self) -> Tile:
        """Another list with the same values."""
        return Tile(x.fresh() if isinstance(x, Tile) else x for x in self)


class Emitter:
    """The lowest layer of lowering; see the module's docstring."""

    def __init__(self, module: LoweredModule, native: Native, ret: Ty) -> None:
        self.module, self.native, self.ret = module, native, ret
        self.target = module.target
        self.lines: list[str | None] = []
        self.allocas: list[str] = []
        self.env: dict[str, Value] = {}
        self.unset: dict[str, str] = {}  # why a name has no value here
        self.logic: set[str] = set()  # results of and, or, xor of vectors: see `choose`
        self.count = 0
        self.block = "entry"
        self.dead = False
        self.on_grid = False  # is it the body of a GPU's kernel?

    # ---- text
    def op(self, text: str) -> str:
        """Writes an instruction that has a result; gives the result's name."""
        self.count += 1
        name = f"%.{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Writes an instruction that has no result."""
        self.lines.append(f"  {text}")

    def v(self, ty: Ty, text: str) -> V:
        """Writes an instruction; gives its result as a value of this type."""
        return V(ty, self.op(text))

    def label(self) -> str:
        self.count += 1
        return f"L{self.count}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block, self.dead = label, False

    def jump(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")
        self.dead = True

    def branch(self, condition: V, yes: str, no: str) -> None:
        self.lines.append(f"  br i1 {condition.ref}, label %{yes}, label %{no}")
        self.dead = True

    def text(self) -> list[str]:
        return [line for line in self.lines if line is not None]

    def declare(self, name: str, text: str) -> None:
        self.module.declare(name, text)

    def alloca(self, ty: Ty, n: int, align: int) -> str:
        """Memory in this call's frame."""
        self.count += 1
        name = f"%a{self.count}"
        self.allocas.append(f"  {name} = alloca [{ty.size * n} x i8], align {align}")
        return name

    def intr(self, name: str, ret: Ty, args: list[V | str]) -> Any:
        """Calls an LLVM intrinsic; an argument is a V, or literal text such as ``i1 false``."""
        kinds = [a.ty.ll if isinstance(a, V) else a.rpartition(" ")[0] for a in args]
        texts = [f"{a.ty.ll} {a.ref}" if isinstance(a, V) else a for a in args]
        self.declare(name, f"declare {ret.ll} @{name}({', '.join(kinds)})")
        call = f"call {ret.ll} @{name}({', '.join(texts)})"
        return self.do(call) if ret.kind == "void" else self.v(ret, call)

    def overloaded(self, name: str, ty: Ty, *args: V | str) -> V:
        """Calls ``llvm.<name>.<ty>`` with a result of that type."""
        return self.intr(f"llvm.{name}.{mangle(ty)}", ty, list(args))  # type: ignore[no-any-return]

    def overloaded_at(
        self, name: str, ty: Ty, suffix: str, args: list[V | str], ret: Ty | None = None
    ) -> Any:
        """Calls ``llvm.<name>.<ty><suffix>``, of memory intrinsics; the result is `ret`, else
        `ty`."""
        return self.intr(f"llvm.{name}.{mangle(ty)}{suffix}", ret or ty, args)

    # ---- errors
    def fail(self, node: Any, message: str) -> NoReturn:
        """Refuses the program: the message, the file and line, the line itself and a caret."""
        code = self.native.fn.__code__
        line = getattr(node, "lineno", code.co_firstlineno)
        text = linecache.getline(code.co_filename, line, self.native.fn.__globals__).rstrip("\n")
        column = getattr(node, "col_offset", 0) + self.native.source.indent
        caret = " " * max(0, column - (len(text) - len(text.lstrip()))) + "^"
        raise NativeError(
            f'{self.native.__name__}: {message}\n  File "{code.co_filename}", line {line}\n'
            f"    {text.strip()}\n    {caret}"
        )

    # ---- constants and values
    def const(self, x: Any, ty: Ty, node: Any = None) -> V:
        """A Python number as a constant of this type; it must fit."""
        if ty.kind == "v":
            each = self.const(x, ty.elem, node)
            return V(ty, f"splat ({ty.elem.ll} {each.ref})")
        if ty.kind == "p":
            if x is None or (isinstance(x, int) and x == 0):
                return V(ty, "null")
            self.fail(node, f"{x!r} is not a {ty}")
        if ty.kind == "b":
            if isinstance(x, bool):
                return V(ty, "true" if x else "false")
            self.fail(node, f"{x!r} is not a bool")
        if isinstance(x, bool) or not isinstance(x, (int, float)):
            self.fail(node, f"{x!r} is not a number; a {ty} is needed")
        if ty.kind == "f":
            return V(ty, float_literal(x, ty))
        if ty.kind not in "iu":
            self.fail(node, f"{x!r} is not a {ty}")
        if isinstance(x, float):
            self.fail(node, f"the float {x} is used as {ty}; write {ty}({x})")
        low, high = ty.bounds()
        # a negative mask such as ~7 is welcome as an unsigned constant: its bits are meant
        if not (low <= x <= high or (ty.kind == "u" and -(high + 1) // 2 <= x < 0)):
            self.fail(node, f"{x} does not fit in {ty} ({low}..{high})")
        return V(ty, str(ty.wrap(x)))

    def zero(self, ty: Ty) -> V:
        return V(ty, {"p": "null", "b": "false"}.get(ty.kind, "zeroinitializer"))

    def symbol(self, x: Any, node: Any, ty: Ty | None = None) -> V | None:
        """A value that stands for a symbol of the process, as the pointer it is; else None."""
        if isinstance(x, (Global, ExternData)):
            self.declare(x.name, x.declare())
            return V(x.ty, f"@{x.name}")
        if isinstance(x, Extern):
            self.declare(x.name, x.declare())
            return V(func[(x.ret, *x.args)], f"@{x.name}")
        if isinstance(x, Native):
            return self.function_pointer(x, {}, node)
        if isinstance(x, Spec):
            return self.function_pointer(x.native, x.static, node)
        return None

    def function_pointer(self, native: Native, static: dict[str, Any], node: Any) -> V:
        if native.inline:
            self.fail(node, f"{native.__name__} is @inline and has no address")
        spec = native.spec(**static)
        ret, params = spec.signature()
        return V(func[(ret, *(t for _, t in params))], f"@{self.module.symbol_of(spec)}")

    def rt(self, x: Value, node: Any, ty: Ty | None = None) -> V:
        """A value at run time, of this type if one is given. Numbers adapt; nothing else converts,
        but any pointer is a raw one, and a scalar fills a vector."""
        if isinstance(x, Lvalue):
            x = self.load_place(x)
        if not isinstance(x, V):
            named = self.symbol(x, node)
            if named is None:
                return self._number(x, node, ty)
            x = named
        if ty is None or x.ty is ty:
            return x  # type: ignore[no-any-return]
        if ty.kind == "v" and x.ty is ty.elem:
            return self.splat(ty, x)
        if ty.kind == "p" and x.ty.kind == "p" and (ty is raw or (x.ty is raw and ty.is_function)):
            return V(ty, x.ref)
        self.fail(node, f"a {x.ty} where a {ty} is needed; write {ty}(...) to convert")

    def _number(self, x: Value, node: Any, ty: Ty | None) -> V:
        if ty is None:
            kinds = {bool: bool_, int: i64, float: f64, type(None): raw}
            ty = kinds.get(type(x))
        if ty is None or not isinstance(x, (int, float, type(None))):
            what = f"{x!r}" if not isinstance(x, (list, tuple)) else f"a {type(x).__name__}"
            self.fail(node, f"{what} is a compile-time value and cannot be used at run time")
        return self.const(x, ty, node)

    def splat(self, ty: Ty, x: V) -> V:
        if not x.ref.startswith(("%", "@")):
            return V(ty, f"splat ({x.ty.ll} {x.ref})")
        one = self.op(f"insertelement {ty.ll} poison, {x.ty.ll} {x.ref}, i64 0")
        mask = f"<{ty.n} x i32> zeroinitializer"
        return self.v(ty, f"shufflevector {ty.ll} {one}, {ty.ll} poison, {mask}")

    # ---- memory
    def at(self, address: str, size: int, write: bool = False) -> str:
        """Where the bytes lie that a pointer names: there, but in the simulator of a GPU, which is
        told how many are read, or (below 0) written."""
        access = self.target.access
        if access is None:
            return address
        nbytes = -size if write else size
        return self.op(f"call ptr @{self.module.symbol_of(access)}(ptr {address}, i64 {nbytes})")

    def load_place(self, place: Lvalue) -> V:
        ty = place.ty
        if ty.kind == "a":
            return V(ptr[ty.elem], place.ref)
        if ty.kind == "s":
            return V(ptr[ty], place.ref)
        return self.load(ty, place.ref)

    def load(self, ty: Ty, address: str, align: int = 0) -> V:
        align = align or ty.align
        address = self.at(address, ty.size)
        found = self.v(ty, f"load {ty.mem}, ptr {address}, align {align}")
        return self.from_bytes(ty, found.ref) if ty.scalar.kind == "b" else found

    def store(self, value: V, address: str, align: int = 0, extra: str = "") -> None:
        ty = value.ty
        ref = self.to_bytes(value).ref if ty.scalar.kind == "b" else value.ref
        address = self.at(address, ty.size, write=True)
        self.do(f"store {ty.mem} {ref}, ptr {address}, align {align or ty.align}{extra}")

    def from_bytes(self, ty: Ty, ref: str) -> V:
        """Booleans from their bytes in memory; any byte but 0 is true."""
        return self.v(ty, f"icmp ne {ty.mem} {ref}, {'zeroinitializer' if ty.kind == 'v' else '0'}")

    def to_bytes(self, value: V) -> V:
        return self.v(value.ty.with_scalar(u8), f"zext {value.ty.ll} {value.ref} to {value.ty.mem}")
