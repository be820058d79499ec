"""Expression graphs on arrays of MLX's: what one element is, for all elements at once.

Halves are computed in float32 and complex numbers in two real parts, as on other devices; ops that
MLX lacks are expanded. What depends on no tensor (constants, run-time numbers, a count) is computed
by NumPy, in float64 where the graph says so; tensors have no float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from antorcha.core.dtypes import dtype
from antorcha.devices.emit import Unsupported
from antorcha.devices.mps.library import NAMES, fuses, in_mlx, mx
from antorcha.devices.mps.special import SPECIAL
from antorcha.lang import expr as E
from antorcha.lang.expr.interpret import compute as compute_on_host
from antorcha.lang.expr.interpret import convert
from antorcha.lang.kernels import Pointwise
from antorcha.runtime.memory.layout import Layout

Array = Any
Compute = Callable[[list[Any]], Sequence[Any]]


class MLXGraph:
    """Expressions prepared for MLX. ``host``: the inputs that are numbers, by position."""

    def __init__(self, exprs: Sequence[E.Expr], host: Sequence[int] = ()) -> None:
        self.exprs = prepare(tuple(exprs))
        self.nodes = list(E.walk(*self.exprs))
        self.on_host: set[E.Expr] = set()
        for e in self.nodes:
            number = e.op in ("const", "length") or (e.op == "input" and e.payload in host)
            computed = e.args and e.op not in REDUCTIONS
            if number or (computed and all([a in self.on_host for a in e.args])):
                self.on_host.add(e)
            elif e.op == "scalar":
                raise Unsupported("a scalar")
            elif e.dtype.name not in NAMES:
                raise Unsupported(e.dtype.name)
            elif e.args and e.op not in TABLE and e.op not in REDUCTIONS and e.op != "cast":
                raise Unsupported(f"{e.op} of {e.dtype}")
        used = {a for e in self.nodes if e not in self.on_host for a in e.args} | {*self.exprs}
        self.numbers = [e for e in self.nodes if e in used and e in self.on_host]
        leaves = [e for e in self.nodes if e.op == "input" and e not in self.on_host]
        self.reads = sorted({int(e.payload) for e in leaves})  # type: ignore[arg-type]
        work = [e for e in self.nodes if e.args and e not in self.on_host]
        self.fused = None
        if len(work) > 1 and fuses() and not any([e.op in REDUCTIONS for e in work]):
            count = len(self.reads)
            self.fused = mx.compile(lambda *given: self.run(given[:count], given[count:], 0))

    def __call__(self, values: Sequence[Any], length: int = 0) -> list[Array]:
        """The expressions' values; ``values[k]`` (an array, or a number) is cast to input k."""
        known: dict[E.Expr, Any] = {}
        for e in self.nodes:
            if e in self.on_host:
                known[e] = self._on_host(e, known, values, length)
        given = [from_number(known[e], e.dtype) for e in self.numbers]
        arrays = [values[k] for k in self.reads]
        if self.fused is not None and not length:
            return list(self.fused(*arrays, *given))
        return self.run(arrays, given, length)

    def run(self, arrays: Sequence[Array], given: Sequence[Array], length: int) -> list[Array]:
        """The values, of the arrays that are read and the numbers that the host has found."""
        inputs = dict(zip(self.reads, arrays, strict=True))
        done: dict[E.Expr, Array] = dict(zip(self.numbers, given, strict=True))
        for e in self.nodes:
            if e not in self.on_host:
                done[e] = self._on_device(e, done, inputs, length)
        return [done[e] for e in self.exprs]

    def _on_host(self, e: E.Expr, known: dict[E.Expr, Any], values: Any, length: int) -> Any:
        with np.errstate(all="ignore"):
            if e.args:
                return compute_on_host(e, [known[a] for a in e.args])
            found: Any = e.payload
            if e.op == "input":
                found = values[int(found)]
            elif e.op == "length":
                found = length
            return convert(np.asarray(found), e.dtype.np)

    def _on_device(
        self, e: E.Expr, done: dict[E.Expr, Array], inputs: dict[int, Array], length: int
    ) -> Array:
        if e.op == "input":
            return cast(inputs[int(e.payload)], e.dtype)  # type: ignore[arg-type]
        if e.op == "position":
            return mx.arange(length, dtype=mx.int64)
        args = [done[a] for a in e.args]
        if e.op == "cast":
            return cast(args[0], e.dtype)
        if e.op in REDUCTIONS:
            wide = mx.broadcast_to(args[0], (*args[0].shape[:-1], length))
            return cast(REDUCTIONS[e.op](wide), e.dtype)
        found = TABLE[e.op](*args)
        return found if found.dtype == in_mlx(e.dtype) else cast(found, e.dtype)


def prepare(exprs: tuple[E.Expr, ...]) -> tuple[E.Expr, ...]:
    """Halves in float32, complex numbers in parts, no op that the table lacks."""
    is_complex = any(["c" in (e.dtype.kind, *[a.dtype.kind for a in e.args])
                      for e in E.walk(*exprs)])  # fmt: skip
    try:
        result = E.opmath_all(E.split_complex(exprs) if is_complex else exprs)
        return tuple(E.simplify_all(E.expand_all(result, {*TABLE, *REDUCTIONS, "cast"})))
    except NotImplementedError as error:
        raise Unsupported(str(error)) from None


def from_number(value: Any, t: dtype) -> Array:
    """A number of NumPy's as an array of MLX's."""
    if t.name in ("bfloat16", "float64"):
        return mx.array(np.asarray(value, np.float32)).astype(
            mx.bfloat16 if t.name == "bfloat16" else mx.float32
        )
    return mx.array(np.asarray(value, t.np))


def cast(x: Array, t: dtype) -> Array:
    """An array in another dtype: complex numbers lose the imaginary part, bool is != 0."""
    kind = in_mlx(t)
    if x.dtype == kind:
        return x
    if t.kind == "b":
        return x != 0
    if x.dtype == mx.complex64:
        x = mx.real(x)
    return x.astype(kind)


def is_float(x: Array) -> bool:
    return bool(mx.issubdtype(x.dtype, mx.floating))


def is_bool(x: Array) -> bool:
    return bool(x.dtype == mx.bool_)


# ---- what needs more than one function of MLX's
def _add(a: Array, b: Array) -> Array:
    return mx.logical_or(a, b) if is_bool(a) else a + b


def _mul(a: Array, b: Array) -> Array:
    return mx.logical_and(a, b) if is_bool(a) else a * b


def _neg(x: Array) -> Array:
    return mx.negative(x) if is_float(x) else mx.zeros_like(x) - x


def _safe_divisor(b: Array) -> Array:
    """An integer divisor by which processors can divide anything."""
    one = mx.ones_like(b)
    return mx.where((b == 0) | _is_minus_one(b), one, b)


def _is_minus_one(b: Array) -> Array:
    return (b < 0) & (b + mx.ones_like(b) == 0)


def _floordiv_int(a: Array, b: Array) -> Array:
    q = mx.floor_divide(a, _safe_divisor(b))
    return mx.where(b == 0, mx.zeros_like(a), mx.where(_is_minus_one(b), mx.zeros_like(a) - a, q))


def _floordiv(a: Array, b: Array) -> Array:
    if not is_float(a):
        return _floordiv_int(a, b)
    r = _fmod(a, b)
    q = (a - r) / b
    q = mx.where((r != 0) & ((b < 0) != (r < 0)), q - 1, q)
    low = mx.floor(q)
    low = mx.where(q - low > 0.5, low + 1, low)
    return mx.where(b == 0, a / b, mx.where(q != 0, low, _copysign(mx.zeros_like(a), a / b)))


def _truncdiv(a: Array, b: Array) -> Array:
    if is_float(a):
        return mx.trunc(a / b)
    q = _floordiv_int(a, b)
    off = (a - q * b != 0) & ((a < 0) != (b < 0)) & (b != 0)
    return mx.where(off, q + mx.ones_like(q), q)


def _fmod(a: Array, b: Array) -> Array:
    if not is_float(a):
        return mx.where(b == 0, mx.zeros_like(a), a - _truncdiv(a, b) * b)
    r = mx.remainder(mx.abs(a), mx.abs(b))
    r = mx.where(mx.isinf(b) & mx.isfinite(a), mx.abs(a), r)
    return mx.where(_signbit(a), -r, r)


def _mod(a: Array, b: Array) -> Array:
    if not is_float(a):
        return mx.where(b == 0, mx.zeros_like(a), a - _floordiv_int(a, b) * b)
    r = _fmod(a, b)
    return mx.where((r != 0) & ((b < 0) != (r < 0)), r + b, r)


def _minimum(a: Array, b: Array) -> Array:
    return mx.logical_and(a, b) if is_bool(a) else mx.minimum(a, b)


def _maximum(a: Array, b: Array) -> Array:
    return mx.logical_or(a, b) if is_bool(a) else mx.maximum(a, b)


def _pow(a: Array, b: Array) -> Array:
    if is_float(a):
        return mx.power(a, b)
    one, zero = mx.ones_like(a), mx.zeros_like(a)
    if not mx.issubdtype(a.dtype, mx.signedinteger):
        return mx.power(a, b)
    odd = (b & one) != 0
    below = mx.where(a == one, one, mx.where(_is_minus_one(a), mx.where(odd, -one, one), zero))
    return mx.where(b < 0, below, mx.power(a, mx.maximum(b, zero)))


def _signbit(x: Array) -> Array:
    if not is_float(x):
        return x < 0
    return x.view(mx.int32) < 0 if x.ndim else x[None].view(mx.int32)[0] < 0


def _copysign(a: Array, b: Array) -> Array:
    return mx.where(_signbit(a) != _signbit(b), -a, a)


def _not(x: Array) -> Array:
    return mx.logical_not(x) if is_bool(x) else mx.bitwise_invert(x)


def _shift_count(a: Array, b: Array) -> tuple[Array, Array]:
    """Whether a shift is by as many bits as there are, or more, and a count that is not."""
    width = mx.array(8 * a.dtype.size, b.dtype)
    outside = (b < 0) | (b >= width)
    return outside, mx.where(outside, mx.zeros_like(b), b)


def _shl(a: Array, b: Array) -> Array:
    outside, count = _shift_count(a, b)
    return mx.where(outside, mx.zeros_like(a), mx.left_shift(a, count))


def _shr(a: Array, b: Array) -> Array:
    outside, count = _shift_count(a, b)
    none = mx.zeros_like(a)
    if mx.issubdtype(a.dtype, mx.signedinteger):
        none = mx.where(a < 0, none - mx.ones_like(a), none)
    return mx.where(outside, none, mx.right_shift(a, count))


def _complex(re: Array, im: Array) -> Array:
    re, im = mx.broadcast_arrays(re, im)
    return mx.stack([re, im], -1).view(mx.complex64).reshape(re.shape)


_NAMES = {
    "sub": "subtract", "div": "divide", "eq": "equal", "ne": "not_equal", "lt": "less",
    "le": "less_equal", "gt": "greater", "ge": "greater_equal", "acos": "arccos",
    "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
} | {
    name: name for name in
    "abs ceil cos cosh erf erfinv exp expm1 floor isnan isinf isfinite log log10 log1p log2 "
    "reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc where real imag".split()
}  # fmt: skip


def _named(name: str) -> Callable[..., Array]:
    return lambda *args: getattr(mx, name)(*args)


TABLE: dict[str, Callable[..., Array]] = {
    **{ours: _named(name) for ours, name in _NAMES.items()}, **SPECIAL,
    "add": _add, "mul": _mul, "neg": _neg, "floordiv": _floordiv, "truncdiv": _truncdiv,
    "fmod": _fmod, "mod": _mod, "minimum": _minimum, "maximum": _maximum, "pow": _pow,
    "signbit": _signbit, "copysign": _copysign, "not": _not, "shl": _shl, "shr": _shr,
    "complex": _complex,
}  # fmt: skip
"""A function of MLX arrays for each op of expressions that MLX has."""


# ---- reductions of rows
def _sum(x: Array) -> Array:
    return mx.sum(x, -1, keepdims=True)


REDUCTIONS: dict[str, Callable[[Array], Array]] = {
    "reduce_sum": _sum,
    "reduce_prod": lambda x: mx.prod(x, -1, keepdims=True),
    "reduce_max": lambda x: mx.max(x, -1, keepdims=True),
    "reduce_min": lambda x: mx.min(x, -1, keepdims=True),
    "reduce_any": lambda x: mx.any(x, -1, keepdims=True),
    "reduce_all": lambda x: mx.all(x, -1, keepdims=True),
    "argmax": lambda x: mx.argmax(x, -1, keepdims=True),
    "argmin": lambda x: mx.argmin(x, -1, keepdims=True),
}


def compute_pointwise(what: Pointwise, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    """Each output of a Pointwise, as an array."""
    return MLXGraph(what.exprs, numbers_in(ins))


def numbers_in(ins: Sequence[Any]) -> list[int]:
    """The positions of the inputs that are numbers."""
    return [k for k, each in enumerate(ins) if not isinstance(each, Layout)]
