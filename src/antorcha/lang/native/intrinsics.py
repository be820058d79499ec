"""Names that native code may use beyond Python's own: memory, atomics, and compile-time helpers.

Vectors and math are in ``vectors``. Each has two sides: the function under ``@intrinsic`` emits
LLVM IR, the one named in it does the same in plain Python (see ``memory`` for its pointers).
"""

from __future__ import annotations

import time
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.lang.native import memory as py
from antorcha.lang.native.digest import digest_of
from antorcha.lang.native.types import Ty, bool_, func, i32, i64, ptr, raw, u8, void
from antorcha.lang.native.values import Intrinsic, Lvalue, V, intrinsic

native_function = lazy("antorcha.lang.native.function")


@intrinsic(lambda x: x)
def static(g: Any, node: Any, x: Any) -> Any:
    """``for k in static(seq)`` unrolls; ``x = static(v)`` keeps v a compile-time value."""
    return x


# ---- memory
@intrinsic(py.local)
def local(g: Any, node: Any, ty: Any, n: Any = 1, align: int = 0) -> V:
    """``local(T, n)``: memory for n values in this call's frame, as ptr[T]; contents undefined."""
    if not isinstance(ty, Ty) or not isinstance(n, int):
        g.fail(node, "local(T, n) takes a type and a compile-time count")
    wide = 64 if ty.size * n >= 64 else 16
    return V(ptr[ty], g.alloca(ty, n, align or max(ty.align, wide)))


@intrinsic(py.constant)
def constant(g: Any, node: Any, ty: Any, values: Any) -> V:
    """``constant(T, values)``: a table that is part of the code, as ptr[T]. Never write to it."""
    if not isinstance(ty, Ty) or ty.kind not in "iuf" or not isinstance(values, (tuple, list)):
        g.fail(node, "constant(T, values) takes a type of numbers and a compile-time tuple")
    texts = [f"{ty.ll} {g.const(x, ty, node).ref}" for x in values]
    body = ", ".join(texts)
    # (in its own address space a GPU reads a table through a cache made for it)
    space = {"ptx": "addrspace(4) ", "spirv": "addrspace(1) "}.get(g.target.grid, "")
    name = f"table.{digest_of(body, 8)}"
    kind = f"[{len(texts)} x {ty.ll}]"
    g.declare(name, f"@{name} = private unnamed_addr {space}constant {kind} [{body}], align 16")
    if space:
        return V(ptr[ty], f"addrspacecast (ptr {space}@{name} to ptr)")
    return V(ptr[ty], f"@{name}")


@intrinsic(py.ref, places=True)
def ref(g: Any, node: Any, place: Any) -> V:
    """``ref(p.field)``, ``ref(p[i])``: the address of a field or an element."""
    struct_like = isinstance(place, V) and place.ty.kind == "p" and place.ty.elem.kind in "sa"
    if struct_like and not isinstance(place, Lvalue):
        return place  # type: ignore[no-any-return]  # such an element is its own address
    if not isinstance(place, Lvalue):
        g.fail(node, "ref takes a field or an element")
    ty = place.ty
    return V(ptr[ty.elem] if ty.kind == "a" else ptr[ty], place.ref)


@intrinsic(py.address)
def address(g: Any, node: Any, function: Any, **static_args: Any) -> V:
    """``address(f, T=f32)``: a pointer to a native function."""
    if isinstance(function, native_function.Spec):
        return g.function_pointer(function.native, {**function.static, **static_args}, node)  # type: ignore[no-any-return]
    if not isinstance(function, native_function.Native):
        g.fail(node, "address takes a native function")
    return g.function_pointer(function, static_args, node)  # type: ignore[no-any-return]


@intrinsic(lambda ty: ty.size)
def sizeof(g: Any, node: Any, ty: Any) -> int:
    """Bytes of a value of this type in memory (compile time)."""
    if not isinstance(ty, Ty):
        g.fail(node, "sizeof takes a type")
    return int(ty.size)


@intrinsic(py.bitcast)
def bitcast(g: Any, node: Any, ty: Ty, x: Any) -> V:
    """``bitcast(T, x)``: the same bits as another type of the same size."""
    return g.bitcast(ty, g.rt(x, node), node)  # type: ignore[no-any-return]


@intrinsic(py.memset)
def memset(g: Any, node: Any, p: Any, value: Any, n: Any) -> None:
    """Fills n bytes."""
    args = [g.rt(p, node, raw), g.rt(value, node, u8), g.rt(n, node, i64), "i1 false"]
    g.intr("llvm.memset.p0.i64", void, args)


@intrinsic(py.memcpy)
def memcpy(g: Any, node: Any, to: Any, source: Any, n: Any) -> None:
    """Copies n bytes between places that do not overlap."""
    args = [g.rt(to, node, raw), g.rt(source, node, raw), g.rt(n, node, i64), "i1 false"]
    g.intr("llvm.memcpy.p0.p0.i64", void, args)


@intrinsic(py.memcpy)
def memmove(g: Any, node: Any, to: Any, source: Any, n: Any) -> None:
    """Copies n bytes; the places may overlap."""
    args = [g.rt(to, node, raw), g.rt(source, node, raw), g.rt(n, node, i64), "i1 false"]
    g.intr("llvm.memmove.p0.p0.i64", void, args)


@intrinsic(lambda p, write=0, level=3: None)
def prefetch(g: Any, node: Any, p: Any, write: int = 0, level: int = 3) -> None:
    """Asks for the cache line at p, to read or write, in caches of this level (3: all)."""
    where = V(raw, g.rt(p, node).ref)
    g.intr("llvm.prefetch.p0", void, [where, f"i32 {write}", f"i32 {level}", "i32 1"])


@intrinsic(time.perf_counter_ns)
def cycles(g: Any, node: Any) -> V:
    """The processor's own clock: much quicker to read than the system's, in a unit that has to be
    found out by comparing the two. 0 on machines other than x86-64, where programs may not read
    it."""
    if g.target.arch != "x86_64":
        return g.const(0, i64, node)  # type: ignore[no-any-return]
    return g.intr("llvm.readcyclecounter", i64, [])  # type: ignore[no-any-return]


@intrinsic(py.cstr)
def cstr(g: Any, node: Any, text: Any) -> V:
    """A constant C string, as raw."""
    if not isinstance(text, str):
        g.fail(node, "cstr takes a compile-time string")
    data = text.encode() + b"\0"
    name = f"str.{data.hex()}"
    body = "".join(f"\\{c:02X}" for c in data)
    g.declare(name, f'@"{name}" = private constant [{len(data)} x i8] c"{body}"')
    return V(raw, f'@"{name}"')


# ---- atomics
_LOADS = ("monotonic", "acquire", "seq_cst")
_STORES = ("monotonic", "release", "seq_cst")
_ALL = ("monotonic", "acquire", "release", "acq_rel", "seq_cst")


def _atomic(g: Any, node: Any, p: Any, order: str, orders: tuple[str, ...]) -> tuple[V, Ty]:
    p = g.rt(p, node)
    if p.ty.kind != "p" or p.ty.elem.kind not in "iubfp":
        g.fail(node, f"an atomic access takes a pointer to a scalar, not {p.ty}")
    if order not in orders:
        g.fail(node, f"{order!r} is not one of the orders {', '.join(orders)}")
    return p, p.ty.elem


def _memory_form(g: Any, x: V) -> V:
    return g.to_bytes(x) if x.ty.kind == "b" else x


@intrinsic(py.atomic_load)
def atomic_load(g: Any, node: Any, p: Any, order: str = "seq_cst") -> V:
    """Reads; orders: monotonic, acquire, seq_cst."""
    p, ty = _atomic(g, node, p, order, _LOADS)
    found = g.v(ty, f"load atomic {ty.mem}, ptr {g.at(p.ref, ty.size)} {order}, align {ty.align}")
    return g.from_bytes(ty, found.ref) if ty.kind == "b" else found  # type: ignore[no-any-return]


@intrinsic(py.atomic_store)
def atomic_store(g: Any, node: Any, p: Any, value: Any, order: str = "seq_cst") -> None:
    """Writes; orders: monotonic, release, seq_cst."""
    p, ty = _atomic(g, node, p, order, _STORES)
    x = _memory_form(g, g.rt(value, node, ty))
    where = g.at(p.ref, ty.size, write=True)
    g.do(f"store atomic {ty.mem} {x.ref}, ptr {where} {order}, align {ty.align}")


def _rmw(name: str) -> Intrinsic:
    def emit(g: Any, node: Any, p: Any, value: Any, order: str = "seq_cst") -> V:
        p, ty = _atomic(g, node, p, order, _ALL)
        word = name
        if ty.half or (ty.kind == "f" and name not in ("add", "sub", "xchg", "max", "min")):
            g.fail(node, f"atomic_{name} does not take {ty}")
        if ty.kind in "bp" and name != "xchg":
            g.fail(node, f"atomic_{name} does not take {ty}")
        if ty.kind == "f" and name != "xchg":
            word = "f" + name
        elif ty.kind == "u" and name in ("max", "min"):
            word = "u" + name
        x = _memory_form(g, g.rt(value, node, ty))
        found = g.v(
            ty, f"atomicrmw {word} ptr {g.at(p.ref, ty.size, write=True)}, {ty.mem} {x.ref} {order}"
        )
        return g.from_bytes(ty, found.ref) if ty.kind == "b" else found  # type: ignore[no-any-return]

    emit.__doc__ = f"Atomic {name}: changes what p points to and gives what was there before."
    result = Intrinsic(emit, py.atomic_rmw(name), name=f"atomic_{name}")
    result.__doc__ = emit.__doc__
    return result


atomic_add, atomic_sub, atomic_and, atomic_or, atomic_xor, atomic_xchg, atomic_max, atomic_min = (
    _rmw(name) for name in ("add", "sub", "and", "or", "xor", "xchg", "max", "min")
)


@intrinsic(py.cas)
def cas(
    g: Any, node: Any, p: Any, old: Any, new: Any, order: str = "acq_rel", fail: str = "monotonic"
) -> V:
    """Compare and swap: writes `new` where `old` is; gives whether it did."""
    p, ty = _atomic(g, node, p, order, _ALL)
    if ty.kind not in "iup":
        g.fail(node, f"cas takes a pointer to an integer or a pointer, not to {ty}")
    if fail not in _LOADS:
        g.fail(node, f"{fail!r} is not one of the orders {', '.join(_LOADS)}")
    a, b = g.rt(old, node, ty), g.rt(new, node, ty)
    where = g.at(p.ref, ty.size, write=True)
    pair = g.op(f"cmpxchg ptr {where}, {ty.ll} {a.ref}, {ty.ll} {b.ref} {order} {fail}")
    return g.v(bool_, f"extractvalue {{ {ty.ll}, i1 }} {pair}, 1")  # type: ignore[no-any-return]


@intrinsic(lambda order="seq_cst": None)
def fence(g: Any, node: Any, order: str = "seq_cst") -> None:
    """A memory fence; orders: acquire, release, acq_rel, seq_cst."""
    if order not in _ALL[1:]:
        g.fail(node, f"{order!r} is not one of the orders {', '.join(_ALL[1:])}")
    g.do(f"fence {order}")


# what a spinning loop should do on each architecture: intrinsic, arguments
_PAUSE: dict[str, tuple[str, list[V | str]]] = {
    "x86_64": ("llvm.x86.sse2.pause", []),
    "aarch64": ("llvm.aarch64.hint", ["i32 1"]),
}


@intrinsic(lambda: None)
def pause(g: Any, node: Any) -> None:
    """Tells the CPU that this is a spinning loop."""
    name, args = _PAUSE.get(g.target.arch, ("", []))
    if name:
        g.intr(name, void, args)


__all__ = [
    "address", "atomic_add", "atomic_and", "atomic_load", "atomic_max", "atomic_min", "atomic_or",
    "atomic_store", "atomic_sub", "atomic_xchg", "atomic_xor", "bitcast", "cas", "constant", "cstr",
    "cycles", "fence", "func", "i32", "local", "memcpy", "memmove", "memset", "pause", "prefetch",
    "ref", "sizeof", "static",
]  # fmt: skip
