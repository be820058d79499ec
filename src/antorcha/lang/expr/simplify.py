"""Rewriting a graph into a cheaper one with the same values, bit for bit.

No rule changes a result for NaN, infinities or -0.0 (so x * 0 stays, and x + 0.0 too: it turns -0.0
into 0.0); only the sign and payload of a NaN are free. The exception is `x ** c` for the constants
that PyTorch itself computes otherwise: 2, 3, 0.5, -0.5, -1, -2.
Halves are not folded: kernels compute them in float32 (`opmath`), where they fold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from antorcha.core import dtypes
from antorcha.core.dtypes import dtype
from antorcha.lang import expr as E
from antorcha.lang.expr.graph import HALVES, LEAVES, OPS, Expr, const, node, walk, with_args
from antorcha.lang.expr.interpret import evaluate
from antorcha.lang.expr.op import cast_node

Rule = Callable[[Expr], Expr | None]


def simplify(expr: Expr) -> Expr:
    """The same value from fewer or cheaper ops."""
    return simplify_all((expr,))[0]


def simplify_all(roots: Sequence[Expr]) -> tuple[Expr, ...]:
    """`simplify` for several graphs, sharing what they share."""
    roots = tuple(roots)
    while True:  # what a rule builds may itself have a simpler form; every rule makes progress
        simpler = _once(roots)
        if all(a is b for a, b in zip(simpler, roots, strict=True)):
            return simpler
        roots = simpler


def _once(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    done: dict[Expr, Expr] = {}
    for expr in walk(*roots):
        new = with_args(expr, tuple(done[a] for a in expr.args))
        better = rewrite(new)
        while better is not None:
            new, better = better, rewrite(better)
        done[expr] = new
    return tuple(done[r] for r in roots)


def rewrite(expr: Expr) -> Expr | None:
    """One step on this node alone, or None when no rule applies."""
    if expr.op in LEAVES:
        return None
    for attempt in (_fold, _shortcut, _by_rule):
        found = attempt(expr)
        if found is not None:
            return found
    return None


def _by_rule(expr: Expr) -> Expr | None:
    rule = RULES.get(expr.op)
    return rule(expr) if rule is not None else None


def _shortcut(expr: Expr) -> Expr | None:
    """The op's own short form: it may apply only now, after an argument changed."""
    record = OPS[expr.op]
    found = record.shortcut(*expr.args) if record.shortcut is not None else None
    return found if isinstance(found, Expr) and found is not expr else None


def _fold(expr: Expr) -> Expr | None:
    """An op on constants, computed now."""
    if not all(a.op == "const" for a in expr.args) or OPS[expr.op].reduction:
        return None
    if expr.op == "detach" or expr.dtype.name in HALVES:
        return None
    if any(a.dtype.name in HALVES for a in expr.args) and expr.op != "cast":
        return None
    if expr.dtype.kind in "ui" and not _foldable_integer(expr):
        return None

    return const(evaluate(expr, ()).item(), expr.dtype)


def _foldable_integer(expr: Expr) -> bool:
    """False where the result depends on the machine: division by zero, floats out of range."""
    if expr.op in ("floordiv", "truncdiv", "mod", "fmod"):
        return _value(expr.args[1]) not in (0, -1)
    if expr.op == "cast":
        value = _value(expr.args[0])
        if isinstance(value, complex):
            value = value.real
        limits = dtypes.iinfo(expr.dtype)
        return not isinstance(value, float) or limits.min <= value <= limits.max  # false for NaN
    return True


def _value(expr: Expr) -> bool | int | float | complex | None:
    """A constant's number, None for anything else."""
    payload = expr.payload
    return payload if expr.op == "const" and not isinstance(payload, str) else None


def _is(expr: Expr, number: float) -> bool:
    """Whether the constant `number`, telling 0.0 from -0.0."""
    value = _value(expr)
    if value is None or isinstance(value, complex) or value != number:
        return False
    return value != 0 or math.copysign(1, value) == math.copysign(1, number)


def _integer(expr: Expr) -> bool:
    return expr.dtype.kind in "biu"


def _add(e: Expr) -> Expr | None:
    a, b = e.args
    if e.dtype.kind == "c" or e.dtype.kind == "b":
        return None
    for x, y in ((a, b), (b, a)):
        if _is(y, 0 if _integer(e) else -0.0):
            return x
        if y.op == "neg":
            return node("sub", (x, y.args[0]), e.dtype)
    return None


def _sub(e: Expr) -> Expr | None:
    a, b = e.args
    if e.dtype.kind == "c":
        return None
    if _is(b, 0.0):
        return a
    if _integer(e) and a is b:
        return const(0, e.dtype)
    if b.op == "neg":
        return node("add", (a, b.args[0]), e.dtype)
    return node("neg", (b,), e.dtype) if _is(a, 0 if _integer(e) else -0.0) else None


def _mul(e: Expr) -> Expr | None:
    for x, y in (e.args, e.args[::-1]):
        if e.dtype.kind == "c":
            continue
        if _is(y, 1):
            return x
        if e.dtype.kind == "b":
            continue
        if _is(y, -1) and e.dtype.kind != "u":
            return node("neg", (x,), e.dtype)
        if _integer(e) and _is(y, 0):
            return y
        if y.op == "neg" and x.op == "neg":
            return node("mul", (x.args[0], y.args[0]), e.dtype)
    return None


def _div(e: Expr) -> Expr | None:
    a, b = e.args
    value = _value(b)
    if e.dtype.kind != "f" or not isinstance(value, float):
        return None
    if value == 1:
        return a
    if value and math.isfinite(value) and abs(math.frexp(value)[0]) == 0.5:
        inverse = 1 / value if abs(value) > 1e-300 else math.inf
        if _is_normal(inverse, e.dtype) and _is_normal(value, e.dtype):
            return node("mul", (a, const(inverse, e.dtype)), e.dtype)  # a power of two: exact
    return None


def _is_normal(value: float, t: dtype) -> bool:
    limits = dtypes.finfo(t)
    return limits.tiny <= abs(value) <= limits.max


def _neg(e: Expr) -> Expr | None:
    (x,) = e.args
    return x.args[0] if x.op == "neg" else None


def _abs(e: Expr) -> Expr | None:
    (x,) = e.args
    if x.op == "neg" and x.dtype.kind != "c":
        return node("abs", x.args, e.dtype)
    return x if x.op == "abs" and x.dtype.kind != "i" else None


def _pow(e: Expr) -> Expr | None:
    x, b = e.args
    if e.dtype.kind not in "iuf":
        return None
    if _is(b, 1):
        return x
    if _is(b, 0) or _is(b, -0.0):
        return const(1, e.dtype)
    if _is(b, 2):
        return E.mul.build(x, x)
    if _is(b, 3):
        return E.mul.build(E.mul.build(x, x), x)
    if e.dtype.kind != "f":
        return None
    if _is(b, 0.5):
        return E.sqrt.build(x)
    if _is(b, -0.5):
        return E.rsqrt.build(x)
    if _is(b, -1):
        return E.reciprocal.build(x)
    return E.reciprocal.build(E.mul.build(x, x)) if _is(b, -2) else None


def _not(e: Expr) -> Expr | None:
    (x,) = e.args
    if x.op == "not":
        return x.args[0]
    if x.op in ("eq", "ne"):
        return node("ne" if x.op == "eq" else "eq", x.args, e.dtype)
    opposite = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}.get(x.op)
    if opposite is not None and _integer(x.args[0]):  # not for floats: NaN fails both
        return node(opposite, x.args, e.dtype)
    return None


def _and(e: Expr) -> Expr | None:
    for x, y in (e.args, e.args[::-1]):
        if x is y or _is_ones(y):
            return x
        if _is(y, 0):
            return y
    return None


def _or(e: Expr) -> Expr | None:
    for x, y in (e.args, e.args[::-1]):
        if x is y or _is(y, 0):
            return x
        if _is_ones(y):
            return y
    return None


def _xor(e: Expr) -> Expr | None:
    for x, y in (e.args, e.args[::-1]):
        if _is(y, 0):
            return x
        if _is_ones(y):
            return node("not", (x,), e.dtype)
    return None


def _is_ones(x: Expr) -> bool:
    """Whether the constant with all bits set."""
    if x.op != "const":
        return False
    if x.dtype.kind == "b":
        return x.payload is True
    return x.payload == (-1 if x.dtype.kind == "i" else (1 << (8 * x.dtype.itemsize)) - 1)


def _shift(e: Expr) -> Expr | None:
    return e.args[0] if _is(e.args[1], 0) else None


def _where(e: Expr) -> Expr | None:
    c, a, b = e.args
    if c.op == "const":
        return a if c.payload else b
    if a is b:
        return a
    if c.op == "not":
        return node("where", (c.args[0], b, a), e.dtype)
    if a.op == "where" and a.args[0] is c:
        return node("where", (c, a.args[1], b), e.dtype)
    if b.op == "where" and b.args[0] is c:
        return node("where", (c, a, b.args[2]), e.dtype)
    return None


def _same_arms(e: Expr) -> Expr | None:
    """minimum(x, x) and its like."""
    return e.args[0] if e.args[0] is e.args[1] else None


def _reflexive(e: Expr) -> Expr | None:
    """x == x and its like, which only integers decide."""
    if e.args[0] is e.args[1] and _integer(e.args[0]):
        return const(e.op in ("eq", "le", "ge"), dtypes.bool_)
    return None


def _cast(e: Expr) -> Expr | None:
    (x,) = e.args
    if x.dtype is e.dtype:
        return x
    if x.op == "cast":
        source, middle, target = x.args[0].dtype, x.dtype, e.dtype
        narrows = source.kind in "ui" and middle.kind in "ui" and target.kind in "ui"
        if _holds(middle, source) or (narrows and target.itemsize <= middle.itemsize):
            return cast_node(x.args[0], target)
    return None


def _holds(wide: dtype, narrow: dtype) -> bool:
    """Whether `wide` represents every value of `narrow`."""
    if wide is narrow or narrow.kind == "b":
        return True
    if wide.kind == "c":
        return _holds(wide.to_real(), narrow.to_real())
    if narrow.kind == "c" or wide.kind == "b" or wide.name in dtypes.FLOAT8:
        return False  # (the float8 types differ in what else they have: infinity, a sign, zero)
    if wide.kind == "f":
        digits, top = _FLOATS[wide.name]
        if narrow.kind == "f":
            return digits >= _FLOATS[narrow.name][0] and top >= _FLOATS[narrow.name][1]
        bits = 8 * narrow.itemsize - (narrow.kind == "i")
        return digits >= bits and top >= bits
    if narrow.kind == "f":
        return False
    if wide.kind == narrow.kind:
        return wide.itemsize >= narrow.itemsize
    return wide.kind == "i" and wide.itemsize > narrow.itemsize


_FLOATS = {  # significant bits, greatest exponent
    "float16": (11, 15), "bfloat16": (8, 127), "float32": (24, 127), "float64": (53, 1023),
    "float8_e5m2": (3, 15), "float8_e4m3fn": (4, 8), "float8_e5m2fnuz": (3, 15),
    "float8_e4m3fnuz": (4, 7), "float8_e8m0fnu": (1, 127),
}  # fmt: skip


def _part(index: int) -> Rule:
    def rule(e: Expr) -> Expr | None:
        (x,) = e.args
        if x.op == "complex":
            return x.args[index]
        if x.op == "cast" and x.args[0].dtype.kind != "c":
            return cast_node(x.args[0], e.dtype) if index == 0 else const(0, e.dtype)
        return None

    return rule


def _conj(e: Expr) -> Expr | None:
    (x,) = e.args
    return x.args[0] if x.op == "conj" else None


RULES: dict[str, Rule] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "neg": _neg, "abs": _abs, "pow": _pow,
    "not": _not, "and": _and, "or": _or, "xor": _xor, "shl": _shift, "shr": _shift,
    "where": _where, "cast": _cast, "conj": _conj, "real": _part(0), "imag": _part(1),
    "minimum": _same_arms, "maximum": _same_arms, "fmin": _same_arms, "fmax": _same_arms,
    "eq": _reflexive, "ne": _reflexive, "lt": _reflexive,
    "le": _reflexive, "gt": _reflexive, "ge": _reflexive,
}  # fmt: skip
