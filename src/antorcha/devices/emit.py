"""Expressions in native code: ``evaluate(body, values)`` writes the instructions of a graph.

It is a compile-time hook of the kernel language: the templates (pointwise, reduce, rows) are native
functions, and where they say ``evaluate`` this file walks the expression graph and asks the
compiler for an instruction, or an inlined math function, per node. Values are vectors of ``n``
lanes, or scalars where n is 0 (a GPU's thread computes one element, and some GPUs' back ends
stumble over vectors of one lane); a complex value is a list of two, its real and imaginary part.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from antorcha.core.dtypes import FLOAT8
from antorcha.core.dtypes import dtype as DType
from antorcha.core.lazy import lazy
from antorcha.core.memo import kept
from antorcha.errors import MissingFeature
from antorcha.lang import expr as E
from antorcha.lang.expr import Expr
from antorcha.lang.native import (
    bf16,
    bool_,
    ceil,
    copysign,
    f16,
    f32,
    f64,
    floor,
    fma,
    i8,
    i16,
    i32,
    i64,
    intrinsic,
    maximum,
    minimum,
    roundeven,
    select,
    sqrt,
    trunc,
    trunc_div,
    trunc_mod,
    u8,
    u16,
    u32,
    u64,
    vec,
)
from antorcha.lang.native.digest import closure_key, describe, digest_of
from antorcha.lang.native.types import Ty
from antorcha.lang.native.values import V
from antorcha.runtime.memory.layout import Layout

if TYPE_CHECKING:
    from antorcha.lang.native.lower.emitter import Value

device_math = lazy("antorcha.devices.math")
integers = lazy("antorcha.devices.math.integers")
TYPES: dict[str, Ty] = {
    "bool": bool_, "uint8": u8, "uint16": u16, "uint32": u32, "uint64": u64, "int8": i8,
    "int16": i16, "int32": i32, "int64": i64, "float16": f16, "bfloat16": bf16, "float32": f32,
    "float64": f64,
}  # fmt: skip

NUMBERS = {**TYPES, "bool": u8}
"""The types in which elements are added and compared in memory: a bool is a byte."""
WORDS = {1: u8, 2: u16, 4: u32, 8: u64}
"""The types in which elements are moved: their size is all that matters."""
_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "and": "and", "or": "or",
           "xor": "xor"}  # fmt: skip
_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
_INTRINSICS: dict[str, Any] = {
    "sqrt": sqrt, "floor": floor, "ceil": ceil, "trunc": trunc, "round": roundeven, "fma": fma,
    "copysign": copysign, "truncdiv": trunc_div,
}  # fmt: skip
_INTEGER = ("pow", "fmod", "mod", "floordiv", "gcd")
_PLAIN = {*_BINARY, *_COMPARE, "neg", "abs", "not", "where", "cast", "minimum", "maximum", "shl",
          "shr", "isnan", "signbit", "gcd", "real", "imag", "complex", *_INTRINSICS}  # fmt: skip
# instructions of the functions that are expanded, about, where they are few; see `Body.cost`
_COSTS = {"reciprocal": 3, "rsqrt": 4, "exp": 20, "exp2": 20, "log": 20, "log2": 20, "log10": 20,
          "tanh": 36, "sigmoid": 36, "sin": 36, "cos": 36}  # fmt: skip


def functions() -> dict[str, Any]:
    """The math functions that are inlined, by node name."""
    found: dict[str, Any] = device_math.FUNCTIONS
    return found


@lru_cache(maxsize=1)
def available() -> frozenset[str]:
    """The node ops that this device computes itself; the others must expand."""
    return frozenset(_PLAIN | set(functions()))


@cache
def function_key(op: str) -> str:
    """The hash of a math function's code, which a kernel that inlines it depends on."""
    used: dict[Any, None] = {}
    text = describe(functions()[op], used)
    return digest_of(text + closure_key(used), 8)


class Unsupported(Exception):
    """This device has no native code for the description; NumPy computes it."""


class Body:
    """A tuple of expressions, prepared for this device; a compile-time value of native code."""

    __slots__ = ("cost", "exprs", "key", "lanes", "weight")

    def __init__(self, exprs: Sequence[Expr]) -> None:
        self.exprs = prepare(tuple(exprs))
        inlined = sorted({n.op for n in E.walk(*self.exprs)} & functions().keys())
        self.key = E.key(*self.exprs) + "".join([f" {op} {function_key(op)}" for op in inlined])
        types = [n.dtype.to_real() if n.dtype.kind == "c" else n.dtype for n in E.walk(*self.exprs)]
        sizes = [max(t.itemsize, 1) for t in types]
        self.lanes = max(sizes)
        self.weight = E.count_ops(*self.exprs)
        self.cost = self.weight + sum([
            _COSTS.get(n.op, 48) for n in E.walk(*self.exprs)
            if n.op not in _PLAIN and n.op not in E.LEAVES
        ])  # fmt: skip

    def __native_key__(self) -> str:
        return self.key


_bodies: dict[tuple[Expr, ...], Body] = {}
MOST_KEPT = 4096  # of what is the same for all shapes: bodies, kernels, programs


def body_of(exprs: Sequence[Expr]) -> Body:
    """The Body of expressions: one, however many shapes they are planned for."""
    return kept(_bodies, tuple(exprs), Body, MOST_KEPT)


def prepare(exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Lowers graphs to what this device has: half arithmetic in float32, no op that it lacks."""
    for e in E.walk(*exprs):
        if e.dtype.name in FLOAT8 or e.dtype.name == "complex32":
            raise Unsupported(e.dtype.name)
    result = E.opmath_all(_in_real_numbers(exprs))
    try:
        result = E.expand_all(result, available())
    except NotImplementedError as error:
        raise Unsupported(str(error)) from None
    result = E.simplify_all(result)
    for e in E.walk(*result):
        if e.op not in E.LEAVES and e.op not in available():
            raise Unsupported(e.op)
        if e.dtype.kind in "iub" and e.op in functions() and e.op not in _INTEGER:
            raise Unsupported(f"{e.op} of {e.dtype}")
    return tuple(result)


def _in_real_numbers(exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Complex arithmetic as real arithmetic on parts; graphs without it as they are."""
    of_complex = [
        e for e in E.walk(*exprs) if "c" in (e.dtype.kind, *[a.dtype.kind for a in e.args])
    ]
    if not of_complex:
        return exprs
    for e in of_complex:
        if e.op in E.OPS and E.OPS[e.op].reduction:
            raise Unsupported(f"{e.op} of complex numbers")
    try:
        return E.split_complex(exprs)
    except MissingFeature as error:
        raise Unsupported(str(error)) from None


def type_of(what: Any) -> Ty:
    """The native type in memory of an input: a layout's dtype, or a Python number's slot."""
    if isinstance(what, Layout):
        found = TYPES.get(what.dtype.name)
        if found is None:
            raise Unsupported(str(what.dtype))
        return found
    if what is complex:
        raise Unsupported("complex")
    return f64 if what is float else i64


def vector_type(dtype: DType, n: int) -> Ty:
    ty = TYPES[dtype.name]
    return vec[ty, n] if n else ty


@intrinsic(None)
def evaluate(g: Any, node: Any, body: Any, values: Any, n: int) -> list[V]:
    """The expressions of ``body`` on vectors of n lanes, or scalars where n is 0 (inputs in order;
    None where unused)."""
    known: dict[Expr, Any] = {}
    for e in E.walk(*body.exprs):
        known[e] = _emit(g, node, e, known, values, n)
    return [known[e] for e in body.exprs]


def _emit(g: Any, node: Any, e: Expr, known: dict[Expr, Any], values: Any, n: int) -> Any:
    op = e.op
    if e.dtype.kind == "c":
        return _parts(g, node, e, known, values, n)
    if op in ("real", "imag"):
        return known[e.args[0]][("real", "imag").index(op)]
    ty = vector_type(e.dtype, n)
    if op == "input":
        return g.cast(ty, values[e.payload], node)  # a list may hold None where nothing is read
    if op == "const":
        return g.const(e.payload, ty, node)
    args = [known[a] for a in e.args]
    if op in _BINARY:
        return _arithmetic(g, node, op, ty, *args)
    if op in _COMPARE:
        return g.compare(op, *args, node)
    if op == "where":
        return select.emit(g, node, *args)
    if op == "cast":
        return g.cast(ty, args[0], node)
    if op == "neg":
        return g.negate(args[0], node)
    if op == "abs":
        return g.absolute(args[0], node)
    if op == "not":
        return g.invert(args[0], node)
    if op == "isnan":
        return g.compare("ne", args[0], args[0], node)
    if op == "signbit":
        return _signbit(g, node, args[0])
    if op in ("minimum", "maximum"):
        return _extremum(g, node, op, ty, *args)
    if op in ("shl", "shr"):
        return _shift(g, node, op, e, *args)
    kind = e.dtype.kind
    if op == "truncdiv" and kind == "f":
        return trunc.emit(g, node, g.binary("div", *args, node))
    if kind in "iu" and op in _INTEGER:
        return _integer(g, node, op, *args)
    found = _INTRINSICS.get(op)
    if found is not None and (kind == "f" or op == "truncdiv"):
        return found.emit(g, node, *args)
    return g.call_inline(functions()[op], args, {}, node)


def _parts(g: Any, node: Any, e: Expr, known: dict[Expr, Any], values: Any, n: int) -> Any:
    """The two parts of a complex number that is loaded, stored, or constant."""
    if e.op == "input":
        return values[e.payload]
    if e.op == "const":
        number, ty = complex(e.payload), vector_type(e.dtype.to_real(), n)  # type: ignore[arg-type]
        return [g.const(number.real, ty, node), g.const(number.imag, ty, node)]
    return [known[a] for a in e.args]


def _integer(g: Any, node: Any, op: str, a: V, b: V) -> Value:
    """The functions that integers have too. A divisor of 0 gives 0: the op refuses it before."""
    if op == "pow":
        return g.call_inline(integers.power, [a, b], {"signed": a.ty.scalar.kind == "i"}, node)
    if op == "gcd":
        return g.call_inline(integers.gcd, [a, b], {}, node)
    if op == "fmod":
        return trunc_mod.emit(g, node, a, b)
    return g.binary(op, a, b, node)


def _arithmetic(g: Any, node: Any, op: str, ty: Ty, a: V, b: V) -> Value:
    if ty.scalar.kind == "b":
        op = {"add": "or", "mul": "and"}.get(op, op)
    return g.binary(op, a, b, node)


def _signbit(g: Any, node: Any, a: V) -> Value:
    """Of a number; of NaN, too, which a comparison would not see."""
    if a.ty.scalar.kind == "f":
        a = copysign.emit(g, node, g.const(1.0, a.ty, node), a)
    return g.compare("lt", a, g.const(0, a.ty, node), node)


def _extremum(g: Any, node: Any, op: str, ty: Ty, a: V, b: V) -> Value:
    """NaN wins. To compare and select is one instruction that lets a NaN of b through, and one of a
    takes two more; the IEEE operation is several."""
    if ty.scalar.kind == "b":
        return g.binary("or" if op == "maximum" else "and", a, b, node)
    if ty.scalar.kind != "f":
        result = maximum if op == "maximum" else minimum
        return result.emit(g, node, a, b)
    better = g.compare("gt" if op == "maximum" else "lt", a, b, node)
    nan = g.compare("ne", a, a, node)
    found = select.emit(g, node, better, a, b)
    if not found.ty.half:
        found = g.overloaded("arithmetic.fence", found.ty, found)
    return select.emit(g, node, nan, a, found)


def _shift(g: Any, node: Any, op: str, e: Expr, a: V, b: V) -> Value:
    """A shift by at least the width gives 0 (or the sign), as in PyTorch."""
    bits = e.dtype.itemsize * 8
    far = g.compare("ge", g.cast(a.ty.with_scalar(i64), b, node), bits, node)
    low = g.compare("lt", g.cast(a.ty.with_scalar(i64), b, node), 0, node)
    out = g.binary("or", far, low, node)
    inside = select.emit(g, node, out, g.const(0, b.ty, node), b)
    result = g.binary(op, a, inside, node)
    over = g.const(0, a.ty, node)
    if op == "shr" and e.dtype.kind == "i":
        over = g.binary("shr", a, g.const(bits - 1, a.ty, node), node)
    return select.emit(g, node, out, over, result)
