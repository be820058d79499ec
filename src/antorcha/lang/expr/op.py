"""The record of one scalar op, and how calling it builds a node, computes, or dispatches.

`exp(x)` is one record called with three kinds of argument:

- an `Expr`: a node is built. Python numbers among the arguments become constants by PyTorch's
  category rule (bool < int < float < complex; a number changes the dtype only when it is of a
  higher category), operands are cast to their common dtype, and the type rule gives the result's;
- plain Python numbers only: the value is computed now;
- anything else, a tensor say: the hook set with `set_dispatch` is called with the op's public name.

So a derivative rule such as `lambda g, x, y: g * y` serves fused kernels and recorded ops alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

from antorcha.core import dtypes
from antorcha.core.dtypes import dtype, promote_types
from antorcha.core.lazy import np
from antorcha.core.structs import struct
from antorcha.errors import ArgumentError, DtypeError, GraphError
from antorcha.lang.expr.graph import METHODS, OPS, Expr, Number, as_number, const, node, wrap
from antorcha.lang.expr.interpret import evaluate

TypeRule: TypeAlias = Callable[[str, dtype], tuple[dtype, dtype]]
"""(op's name, the operands' common dtype) -> (dtype it computes in, dtype of the result)."""

GradRule: TypeAlias = Callable[..., Any]
"""(cotangent, *arguments, result) -> the contribution to one argument; written in ops."""

ComplexRule: TypeAlias = Callable[..., Any]
"""The value for complex arguments, in real ops: each argument is a pair (real part, imaginary part)
of expressions; gives a pair, or one expression where the value is real or a truth."""


@struct
class Accuracy:
    """How near to the exact value a device's function has to be, and where tests look."""

    float32: float
    """The largest error allowed, in units in the last place of the result (ulp)."""
    float64: float
    within: tuple[float, float] | None = None
    """Arguments that tests draw from; outside of them the value overflows, vanishes or is settled.
    None: the op's domain."""
    exact: str = ""
    """The value as a formula of x (and y) in mpmath's functions; empty: the function of the op's
    name."""
    size: str = ""
    """Beside roots, where waves cancel: the size, as such a formula, in whose last place errors are
    measured; empty: the value's own."""


EXACT = Accuracy(0.5, 0.5)
"""Bit for bit NumPy's."""


@struct
class ScalarOp:
    """One scalar op: everything that antorcha knows about it. Call it as the function it is."""

    name: str
    """The node's op name."""
    arity: int
    rule: TypeRule
    numpy: str | Callable[..., Any]
    """What it computes: a function over arrays, or the name of one in NumPy."""
    grads: tuple[GradRule | None, ...] | None
    """A rule per argument (None: no gradient flows); None for the whole: no derivative exists."""
    doc: str
    """What it computes, and where it has no value."""
    public: str = ""
    """PyTorch's name, given to the dispatch hook."""
    complex_rule: ComplexRule | None = None
    """Needed where the type rule admits complex numbers (`split_complex`)."""
    domain: tuple[float, float] = (-math.inf, math.inf)
    """An open interval of real numbers on which it is smooth."""
    accuracy: Accuracy | None = None
    """Needed where a device computes it by a function of its own, rather than an instruction."""
    expand: Callable[..., Any] | None = None
    """The same of real numbers in simpler ops, for devices that lack it (`expand`); None: a device
    must have it."""
    shortcut: Callable[..., Any] | None = None
    """Tried before a node is built: arguments -> an equal expression, or None."""
    head: int = 0
    """How many leading arguments are conditions: bool, outside promotion."""
    compares: bool = False
    reduction: bool = False
    """Consumes a row and gives one value (row programs only)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "public", self.public or self.name)
        if self.name in OPS:
            raise GraphError(f"op '{self.name}' is recorded twice")
        OPS[self.name] = self
        METHODS[self.public] = self

    def __repr__(self) -> str:
        return f"<scalar op {self.name}>"

    @property
    def on_arrays(self) -> Callable[..., Any]:
        """The function over NumPy arrays."""
        return getattr(np, self.numpy) if isinstance(self.numpy, str) else self.numpy

    @property
    def interior(self) -> tuple[float, float]:
        """Numbers well inside the domain, between which samples are drawn."""
        low, high = self.domain
        if math.isinf(low):
            return -2.0, 2.0
        margin = 0.1 if math.isinf(high) else (high - low) / 20
        return low + margin, min(low + 2, high - margin)

    def __call__(self, *args: Any) -> Expr:
        if len(args) != self.arity:
            takes = f"{self.arity} argument{'s' * (self.arity != 1)}"
            raise ArgumentError(f"{self.public}: takes {takes}, got {len(args)}")
        symbolic = False
        for a in args:
            if isinstance(a, Expr):
                symbolic = True
            elif as_number(a) is None:
                elsewhere: Expr = dispatch(self.public, args)
                return elsewhere
        result: Expr = self.build(*args) if symbolic else self.compute(*args)
        return result

    def build(self, *args: Expr | Number) -> Expr:
        """The node for these arguments, with the casts that typing asks for."""
        conditions = [_condition(self.public, a) for a in args[: self.head]]
        operands = _promote(self, args[self.head :])
        common, result = self.rule(self.public, operands[0].dtype)
        full = (*conditions, *(cast_node(a, common) for a in operands))
        if self.shortcut is not None:
            found = self.shortcut(*full)
            if found is not None:
                return as_expr(found, result)
        return node(self.name, full, result)

    def compute(self, *args: Number) -> Any:
        """The value for plain Python numbers, with PyTorch's meaning (no Python exceptions)."""
        plain = [as_number(a) for a in args]
        nodes = [const(a, _number_dtype(a)) for a in plain if a is not None]
        return evaluate(self.build(*nodes), ()).item()


def as_expr(value: Expr | Number, like: dtype) -> Expr:
    """An expression as it is; a number as a constant of dtype `like`."""
    return value if isinstance(value, Expr) else const(value, like)


def _condition(name: str, value: Expr | Number) -> Expr:
    if not isinstance(value, Expr):
        return const(bool(value), dtypes.bool_)
    if value.dtype.kind != "b":
        raise DtypeError(
            f"{name}: the condition `{value}` is {value.dtype}; expected bool, as in x > 0"
        )
    return value


def _promote(op: ScalarOp, args: Sequence[Expr | Number]) -> list[Expr]:
    """The operands as expressions of one dtype."""
    exprs = [a for a in args if isinstance(a, Expr)]
    if len(exprs) == len(args) and all(a.dtype is exprs[0].dtype for a in exprs):
        return exprs
    plain = [as_number(a) for a in args if not isinstance(a, Expr)]
    numbers = [a for a in plain if a is not None]
    common = reduce(promote_types, (a.dtype for a in exprs)) if exprs else None
    for number in numbers:
        common = _with_number(common, number, op.compares)
    assert common is not None
    return [
        cast_node(a, common) if isinstance(a, Expr) else const(_plain(a), common, exact=op.compares)
        for a in args
    ]


def _plain(value: Number) -> Number:
    number = as_number(value)
    assert number is not None
    return number


_CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def _with_number(common: dtype | None, number: Number, compares: bool) -> dtype:
    """The common dtype once a Python number has joined."""
    own = _number_dtype(number, default=True)
    if common is None:
        return own
    if _CATEGORY[own.kind] > _CATEGORY[common.kind]:
        return common.to_complex() if own.kind == "c" and common.kind == "f" else own
    fits = not isinstance(number, int) or common.kind not in "ui" or wrap(number, common) == number
    return common if fits or not compares else dtypes.int64  # uint8 < 300 is true, not 0 < 44


def _number_dtype(number: Number, default: bool = False) -> dtype:
    """A Python number's dtype: full precision, or what a tensor of it would have (`default`)."""
    if isinstance(number, bool):
        return dtypes.bool_
    if isinstance(number, int):
        return dtypes.int64
    if isinstance(number, float):
        return dtypes.get_default_dtype() if default else dtypes.float64
    return dtypes.get_default_dtype().to_complex() if default else dtypes.complex128


def cast_node(x: Expr, to: dtype) -> Expr:
    """`x` converted to a dtype; nothing where it has it already; constants at once."""
    if x.dtype is to:
        return x
    if x.op == "const" and to.kind == "f" and x.dtype.kind in "bui":
        return const(x.payload, to)  # type: ignore[arg-type]  # a const's payload is a number
    return node("cast", (x,), to)


# Duck typing: who computes for values that are neither expressions nor numbers

_dispatch: Callable[[str, tuple[Any, ...]], Any] | None = None


def set_dispatch(
    fn: Callable[[str, tuple[Any, ...]], Any] | None,
) -> Callable[[str, tuple[Any, ...]], Any] | None:
    """Install what computes `name(*args)` for tensors (the ops layer does, once); gives the old."""
    global _dispatch
    old, _dispatch = _dispatch, fn
    return old


def dispatch(name: str, args: tuple[Any, ...]) -> Any:
    """Hand a call on to the hook."""
    if _dispatch is None:
        kinds = ", ".join(type(a).__name__ for a in args)
        raise ArgumentError(f"{name}: expected expressions or numbers, got ({kinds})")
    return _dispatch(name, args)


# What records share

FLAT = (None,)
"""The derivative of a function of one argument that is constant wherever it is smooth."""
FLAT2 = (None, None)


def itself(kinds: str) -> Any:
    """A shortcut: the argument itself when its dtype is of these kinds."""
    return lambda x: x if x.dtype.kind in kinds else None


def always(value: bool, kinds: str) -> Any:
    """A shortcut: a constant when the argument's dtype is of these kinds."""
    return lambda x: const(value, dtypes.bool_) if x.dtype.kind in kinds else None


# Type rules


def takes(
    kinds: str, result: Callable[[dtype], dtype] = lambda t: t, *, floats: bool = False
) -> TypeRule:
    """The rule of an op that takes dtypes of these kinds; with `floats`, integers and bool compute
    in the default dtype. `result` gives the result's dtype from the one that is computed in."""

    def rule(name: str, t: dtype) -> tuple[dtype, dtype]:
        if t.kind not in kinds:
            raise DtypeError(f"{name}: {_refusal(t, kinds)}")
        t = dtypes.get_default_dtype() if floats and t.kind in "biu" else t
        return t, result(t)

    return rule


def _refusal(t: dtype, kinds: str) -> str:
    if kinds == "f":
        return f"defined for floating point only, got {t}; cast the operands first"
    if kinds == "c":
        return f"defined for complex numbers only, got {t}"
    if t.kind == "b":
        return "not defined for bool; use &, |, ^, ~ or cast the operands first"
    if t.kind == "c" and "f" in kinds:
        return f"not defined for complex numbers ({t}); use real(), imag() or abs()"
    return f"defined for integers and bool only, got {t}"


def _truth(t: dtype) -> dtype:
    return dtypes.bool_


def _part(t: dtype) -> dtype:
    return t.to_real() if t.kind == "c" else t


anything = takes("biufc")
arithmetic = takes("iufc")
real = takes("biuf")
ordered = takes("iuf")
floating = takes("biufc", floats=True)
real_floating = takes("biuf", floats=True)
only_floating = takes("f")
integral = takes("biu")
shifted = takes("iu")
comparison = takes("biufc", _truth)
order = takes("biuf", _truth)
magnitude = takes("biufc", _part)
phase = takes("biufc", _part, floats=True)
complex_part = takes("c", _part)


def paired(name: str, t: dtype) -> tuple[dtype, dtype]:
    """Two floats to a complex number."""
    if t.name not in ("float32", "float64"):
        raise DtypeError(f"{name}: the parts must be float32 or float64, got {t}")
    return t, t.to_complex()
