"""The native language: a typed subset of Python, compiled to machine code and kept on disk.

::

    @native(noalias=True)
    def scale(out: ptr[f32], x: ptr[f32], n: i64, by: f32, *, W=16) -> void:
        m = n // W * W
        for i in range(0, m, W):
            vstore(out + i, vload(x + i, W) * by)
        few = first(W, n - m)
        vstore(out + m, vload(x + m, W, few) * by, few)

    scale(a, b, len(a), 2.0)          # compiles (or loads), checks the arguments, runs
    scale.spec(W=8).addr              # the machine address of one instance
    scale.spec(W=8).ir, .asm          # what it became
    with interpreted(): scale(...)    # the same source as plain Python, with bounds checks

The rules
---------
- A name holds a *run-time value* (a typed value) or *any Python object* (a compile-time value).
  Keyword- only parameters are compile time. ``x = 3`` makes a run-time i64 (or x's type before);
  ``x = static(3)`` keeps the number. ``if`` and the other conditions on compile-time values choose
  what is compiled.
- Nothing converts by itself but numbers written in the source, which must fit. ``T(x)`` converts;
  ``bitcast(T, x)`` keeps the bits. A scalar fills a vector of its type. Any pointer is a ``raw``.
- ``for`` goes over ``range(...)`` at run time, or unrolls over ``static(sequence)``. A loop's
  variable has no value after it. A step known at run time is positive; the limit plus the step must
  not overflow.
- A list is a *tile*: values known by a compile-time index, held in registers. Assigning a list
  copies it; giving it to an inline function passes it by reference: what is written there is seen
  here. Values in memory are ``local(T, n)``.
- ``@inline`` functions are expanded where they are called, with whatever types they are given.
- A struct is used through pointers: ``p.field``, ``ref(p.field)``, ``local(S)``.
- Integers wrap. ``//`` and ``%`` round down as in Python; x // 0 and x % 0 are 0, the least integer
  // -1 is itself. A shift by the width or more leaves copies of the sign (``>>`` of signed) or 0.
- ``min`` and ``max`` of floats prefer the number to a NaN; ``minimum`` and ``maximum`` prefer the
  NaN.
- f16 and bf16 travel as 16 bits and compute in f32, rounding after every operation.
- Globals named by a function are read when it is compiled, and are part of its key on disk: they
  must have an exact description (numbers, strings, tuples, types, native functions, or objects with
  ``__native_key__()``, which must never change).
- An error shows the file, the line with a caret, and the chain of "inlined from".

From Python, integers out of a parameter's range raise OverflowError and values of the wrong kind
TypeError. The code runs with the GIL held; ``spec.cfunc`` is a bare ctypes function without checks
that lets go of it.

Extending the language
----------------------
An :class:`Intrinsic` is a name whose call in native code runs a Python function that emits code::

    @intrinsic(lambda e, *xs: e.evaluate(*xs))         # what it does in plain Python
    def evaluate(g, node, e, *xs):                     # what it does compiled
        ...
        return g.binary("add", xs[0], xs[1], node)

``node`` is the call in the syntax tree. A run-time argument is a :class:`V` (``.ty``, ``.ref``);
any other is a compile-time value. The result is a V, a compile-time value, a tuple or list of them,
or None. ``g`` offers these names, which are stable:

- ``g.binary(op, a, b, node)``: add sub mul div floordiv mod shl shr and or xor; ``g.compare(op, a,
  b, node)``: lt le gt ge eq ne; ``g.negate(x, node)``, ``g.invert(x, node)``, ``g.absolute(x,
  node)``, ``g.minmax(low, a, b, node)``, ``g.choose(mask, a, b)``.
- ``g.cast(ty, x, node)`` converts as ``ty(x)`` does; ``g.bitcast(ty, x, node)``; ``g.const(number,
  ty, node)``; ``g.rt(x, node, ty=None)`` makes a run-time value of anything (no conversion but of
  numbers); ``g.same(a, b, node)`` gives both of one type; ``g.splat(vector_type, x)``;
  ``g.widen(x)`` takes a half type to f32 and leaves others, ``g.narrow(ty, x)`` takes f32 to a half
  type.
- ``g.call(f, args, kw, node)`` calls anything callable in native code: an intrinsic, a native
  function, an Extern, a type; ``g.call_inline(native, args, kw, node)`` expands a native function.
- ``g.load(ty, address_ref)``, ``g.store(value, address_ref)``, ``g.gep(pointer, index, node)``,
  ``g.field``...; ``g.alloca(ty, n, align)`` gives the name of memory in the frame.
- ``g.v(ty, text)`` writes one LLVM instruction and gives its result; ``g.op(text)`` gives the name
  only; ``g.do(text)`` writes one without result; ``g.intr(name, ret, args)`` calls an LLVM
  intrinsic, ``g.overloaded(name, ty, *args)`` one that is overloaded on its result;
  ``g.declare(name, text)`` adds a declaration to the module.
- ``g.target`` is the machine (:class:`Target`); ``g.fail(node, message)`` refuses the program.

What an intrinsic emits must be decided by its arguments, the target, and the files that are part of
its description: the one that defines ``emit`` and those in ``sources``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antorcha.core.lazy import lazy
from antorcha.errors import NativeError
from antorcha.lang.native.builtin_function import (
    METH_FASTCALL,
    METH_KEYWORDS,
    METH_NOARGS,
    METH_O,
    METH_VARARGS,
    PyMethodDef,
    bind,
    builtin,
    method_def,
)
from antorcha.lang.native.digest import NoDescription
from antorcha.lang.native.function import Native, Options, Spec, inline, native
from antorcha.lang.native.immortal import make_immortal
from antorcha.lang.native.interpret import interpreted, interpreting
from antorcha.lang.native.intrinsics import (
    address,
    atomic_add,
    atomic_and,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_store,
    atomic_sub,
    atomic_xchg,
    atomic_xor,
    bitcast,
    cas,
    constant,
    cstr,
    cycles,
    fence,
    local,
    memcpy,
    memmove,
    memset,
    pause,
    prefetch,
    ref,
    sizeof,
    static,
)
from antorcha.lang.native.memory import Ptr
from antorcha.lang.native.types import (
    Ty,
    array,
    bf16,
    bool_,
    f16,
    f32,
    f64,
    func,
    i8,
    i16,
    i32,
    i64,
    ptr,
    raw,
    struct,
    u8,
    u16,
    u32,
    u64,
    vec,
    void,
)
from antorcha.lang.native.values import Extern, ExternData, Global, Intrinsic, Lvalue, V, intrinsic
from antorcha.lang.native.vectors import (
    bswap,
    ceil,
    clz,
    copysign,
    ctpop,
    ctz,
    dot_pairs,
    fabs,
    first,
    floor,
    fma,
    insert,
    lanes,
    mask_bits,
    maximum,
    minimum,
    mulhi,
    reduce_add,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_min,
    reduce_mul,
    roundeven,
    select,
    shuffle,
    sqrt,
    trunc,
    trunc_div,
    trunc_mod,
    vgather,
    vload,
    vscatter,
    vstore,
)

if TYPE_CHECKING:
    from antorcha.lang.native.machine import Target

native_machine = lazy("antorcha.lang.native.machine")


def target() -> Target:
    """The machine that code is generated for (imports llvmlite)."""
    found: Target = native_machine.target()
    return found


def __getattr__(name: str) -> Any:
    if name == "Target":
        return native_machine.Target
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "METH_FASTCALL", "METH_KEYWORDS", "METH_NOARGS", "METH_O", "METH_VARARGS", "Extern",
    "ExternData", "Global", "Intrinsic", "Lvalue", "Native", "NativeError", "NoDescription",
    "Options", "Ptr", "PyMethodDef", "Spec", "Target", "Ty", "V", "address", "array", "atomic_add",
    "atomic_and", "atomic_load", "atomic_max", "atomic_min", "atomic_or", "atomic_store",
    "atomic_sub", "atomic_xchg", "atomic_xor", "bf16", "bind", "bitcast", "bool_", "bswap",
    "builtin", "cas", "ceil", "clz", "constant", "copysign", "cstr", "ctpop", "ctz", "cycles",
    "dot_pairs", "f16", "f32", "f64", "fabs", "fence", "first", "floor", "fma", "func", "i8",
    "i16", "i32", "i64", "inline", "insert", "interpreted", "interpreting", "intrinsic", "lanes",
    "local", "make_immortal",
    "mask_bits", "maximum", "memcpy", "memmove", "memset", "method_def", "minimum", "mulhi",
    "native", "pause", "prefetch", "ptr", "raw", "reduce_add", "reduce_all", "reduce_any",
    "reduce_max", "reduce_min", "reduce_mul", "ref", "roundeven", "select", "shuffle", "sizeof",
    "sqrt", "static", "struct", "target", "trunc", "trunc_div", "trunc_mod", "u8", "u16", "u32",
    "u64", "vec", "vgather", "vload", "void", "vscatter", "vstore",
]  # fmt: skip
