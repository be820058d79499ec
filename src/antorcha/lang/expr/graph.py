"""The expression graph: what one element of a kernel computes.

An `Expr` is an immutable node: an op's name, its arguments (other nodes), the dtype of its value,
and a payload (a constant's value, an input's number, ...). What every reader may rely on:

- Nodes are interned: two equal graphs are the same object, so `is` compares graphs and a common
  subexpression exists once. A node lives only as long as somebody holds it.
- Typing is explicit: an op's operands already have the dtype that the op computes in; where they
  did not, a "cast" node stands between. No consumer ever promotes.
- A graph may be deep (thousands of nodes in a chain): everything walks it with a loop.

Leaves are "input" (payload: its position), "scalar" (payload: the name of a value given at
launch), "const" (payload: a Python bool, int, float or complex), and in row programs "position"
(the column index) and "length" (of the row). What the other ops mean stands in `primitives`.
"""

from __future__ import annotations

import math
import numbers
import struct
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from antorcha.core import dtypes
from antorcha.core.dtypes import dtype
from antorcha.core.float8 import cast
from antorcha.core.forks import held_over_forks
from antorcha.core.lazy import lazy, np
from antorcha.errors import DtypeError, GraphError, did_you_mean

if TYPE_CHECKING:
    from antorcha.lang.expr.op import ScalarOp

expr_printing = lazy("antorcha.lang.expr.printing")

Number: TypeAlias = bool | int | float | complex
Payload: TypeAlias = Number | str | None

LEAVES = frozenset({"input", "scalar", "const", "position", "length"})
HALVES = frozenset({"float16", "bfloat16"}) | dtypes.FLOAT8

OPS: dict[str, ScalarOp] = {}
"""Every op by its node name; filled by the records in primitives and reductions.py."""

METHODS: dict[str, Callable[..., Any]] = {}
"""The ops by public (PyTorch) name: what an expression also has as methods, `x.exp()`."""


class Expr:
    """One node of an expression graph; Python's operators on nodes build more nodes."""

    __slots__ = ("__weakref__", "_key", "args", "dtype", "op", "payload")
    op: str
    args: tuple[Expr, ...]
    dtype: dtype
    payload: Payload
    _key: str | None

    __array_ufunc__ = None  # NumPy scalars must leave `np.float32(2) * x` to us
    __hash__ = object.__hash__  # == builds a node; interning makes identity the equality

    def __init__(self, *_: object) -> None:
        raise GraphError("Expr: make nodes with trace(), const() or an op, not with Expr()")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise GraphError(f"Expr is immutable; cannot set .{name}")

    def __reduce__(self) -> NoReturn:
        raise GraphError("an Expr cannot be pickled or copied; trace its function again")

    def __repr__(self) -> str:
        text: str = expr_printing.show(self)
        return text

    def __native_key__(self) -> str:
        return key(self)

    def __getattr__(self, name: str) -> Callable[..., Expr]:
        record = METHODS.get(name)
        if record is None:
            hint = "" if name.startswith("__") else did_you_mean(name, METHODS)
            raise AttributeError(f"an expression has no attribute '{name}'.{hint}")
        return lambda *args, **kwargs: record(self, *args, **kwargs)

    # An expression stands for every element at once, so it has no single value to ask for.

    def __bool__(self) -> NoReturn:
        raise GraphError(
            f"the value of `{self}` is not known while tracing: instead of `if`, `and`, `or`, "
            "`not`, min() or max() use where(condition, a, b), &, |, ~, minimum() or maximum()"
        )

    def _no_value(self) -> NoReturn:
        raise GraphError(
            f"the value of `{self}` is not known while tracing: use the functions of "
            "antorcha.lang.expr (exp, where, cast, ...), not math or NumPy"
        )

    def __float__(self) -> NoReturn:
        self._no_value()

    def __int__(self) -> NoReturn:
        self._no_value()

    def __index__(self) -> NoReturn:
        self._no_value()

    def __complex__(self) -> NoReturn:
        self._no_value()

    def __iter__(self) -> NoReturn:
        raise GraphError("an expression is one scalar; it cannot be iterated or unpacked")

    def __add__(self, other: Any) -> Expr:
        return _operate("add", self, other)

    def __radd__(self, other: Any) -> Expr:
        return _operate("add", other, self)

    def __sub__(self, other: Any) -> Expr:
        return _operate("sub", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return _operate("sub", other, self)

    def __mul__(self, other: Any) -> Expr:
        return _operate("mul", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return _operate("mul", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return _operate("div", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return _operate("div", other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return _operate("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return _operate("floordiv", other, self)

    def __mod__(self, other: Any) -> Expr:
        return _operate("mod", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return _operate("mod", other, self)

    def __pow__(self, other: Any) -> Expr:
        return _operate("pow", self, other)

    def __rpow__(self, other: Any) -> Expr:
        return _operate("pow", other, self)

    def __and__(self, other: Any) -> Expr:
        return _operate("and", self, other)

    def __rand__(self, other: Any) -> Expr:
        return _operate("and", other, self)

    def __or__(self, other: Any) -> Expr:
        return _operate("or", self, other)

    def __ror__(self, other: Any) -> Expr:
        return _operate("or", other, self)

    def __xor__(self, other: Any) -> Expr:
        return _operate("xor", self, other)

    def __rxor__(self, other: Any) -> Expr:
        return _operate("xor", other, self)

    def __lshift__(self, other: Any) -> Expr:
        return _operate("shl", self, other)

    def __rlshift__(self, other: Any) -> Expr:
        return _operate("shl", other, self)

    def __rshift__(self, other: Any) -> Expr:
        return _operate("shr", self, other)

    def __rrshift__(self, other: Any) -> Expr:
        return _operate("shr", other, self)

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return _operate("eq", self, other)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return _operate("ne", self, other)

    def __lt__(self, other: Any) -> Expr:
        return _operate("lt", self, other)

    def __le__(self, other: Any) -> Expr:
        return _operate("le", self, other)

    def __gt__(self, other: Any) -> Expr:
        return _operate("gt", self, other)

    def __ge__(self, other: Any) -> Expr:
        return _operate("ge", self, other)

    def __neg__(self) -> Expr:
        return OPS["neg"](self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return OPS["abs"](self)

    def __invert__(self) -> Expr:
        return OPS["not"](self)


def _operate(name: str, left: Any, right: Any) -> Expr:
    """A binary operator: a node, or NotImplemented if a side is no expression and no number."""
    for operand in (left, right):
        if not isinstance(operand, Expr) and as_number(operand) is None:
            return NotImplemented  # type: ignore[no-any-return]
    return OPS[name](left, right)


def as_number(value: object) -> Number | None:
    """`value` as a plain Python number (NumPy's scalars included), or None if it is not one."""
    if isinstance(value, (bool, int, float, complex)):
        if type(value) in _PLAIN:
            return value
        plain = getattr(value, "item", None)  # NumPy's float64 is a float
        return value if plain is None else _plain(plain())
    if isinstance(value, numbers.Number) or type(value).__name__ in ("bool", "bool_"):
        plain = getattr(value, "item", None)
        return None if plain is None else _plain(plain())
    return None


def _plain(value: object) -> Number | None:
    return value if isinstance(value, (bool, int, float, complex)) else None


_PLAIN = (bool, int, float, complex)

# Making nodes

_nodes: weakref.WeakValueDictionary[tuple[object, ...], Expr] = weakref.WeakValueDictionary()
_lock = held_over_forks(threading.Lock())


def node(op: str, args: tuple[Expr, ...], dtype: dtype, payload: Payload = None) -> Expr:
    """The one node with these fields. Typing is the caller's duty: prefer calling an op."""
    # An argument's id names it for as long as the entry exists, for the node holds the argument.
    identity = (op, dtype.name, payload_text(payload), *map(id, args))
    with _lock:
        found = _nodes.get(identity)
        if found is None:
            found = object.__new__(Expr)
            for name, value in (
                ("op", op), ("args", args), ("dtype", dtype), ("payload", payload), ("_key", None),
            ):  # fmt: skip
                object.__setattr__(found, name, value)
            _nodes[identity] = found
    return found


def input_(position: int, dtype: dtype) -> Expr:
    """The kernel's operand number `position`: one element of it."""
    return node("input", (), dtype, position)


def scalar(name: str, dtype: dtype) -> Expr:
    """A value known only at launch, the same for all elements (an op's `alpha`)."""
    return node("scalar", (), dtype, name)


def const(value: Number, dtype: dtype, *, exact: bool = False) -> Expr:
    """A number of the given dtype: integers wrap, floats are rounded.

    A float16 or bfloat16 constant keeps the number as written unless `exact`: kernels compute
    halves in float32 (`opmath`), and PyTorch reads a Python number at that precision.
    """
    return node("const", (), dtype, normalize(value, dtype, exact=exact))


def normalize(value: Number, dtype: dtype, *, exact: bool = True) -> Number:
    """`value` as the dtype can hold it, in the Python type of its kind."""
    if dtype.kind == "c":
        part = dtype.to_real()
        z = complex(value)
        return complex(_round(z.real, part), _round(z.imag, part))
    if isinstance(value, complex):
        if value.imag != 0:
            raise DtypeError(f"the complex number {value} does not fit {dtype}")
        value = value.real
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind == "f":
        try:
            value = float(value)
        except OverflowError:
            value = math.inf if value > 0 else -math.inf
        return value if dtype.name in HALVES and not exact else _round(value, dtype)
    if isinstance(value, float) and not math.isfinite(value):
        raise DtypeError(f"{value} does not fit {dtype}")
    return wrap(int(value), dtype)


def wrap(value: int, dtype: dtype) -> int:
    """The integer modulo 2**bits, in the dtype's range."""
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


def _round(value: float, dtype: dtype) -> float:
    if dtype.name == "float64" or not math.isfinite(value):
        return value
    if dtype.name == "bfloat16":
        value = _round(value, dtypes.float32)
        if not math.isfinite(value):
            return value
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        bits += 0x7FFF + ((bits >> 16) & 1)  # to nearest, ties to even
        return float(struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0])
    if dtype.name in dtypes.FLOAT8:
        return float(cast(np.asarray(value), dtype.np))
    code = "<e" if dtype.name == "float16" else "<f"
    try:
        return float(struct.unpack(code, struct.pack(code, value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


# Reading graphs


def walk(*roots: Expr) -> Iterator[Expr]:
    """Every node below the roots once, arguments before users, in an order fixed by the graph."""
    seen: set[int] = set()
    for root in roots:
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            expr, ready = stack.pop()
            if ready:
                yield expr
            elif id(expr) not in seen:
                seen.add(id(expr))
                stack.append((expr, True))
                stack.extend((a, False) for a in reversed(expr.args) if id(a) not in seen)


def key(*roots: Expr) -> str:
    """The graph as exact text, the same in every process: equal keys mean equal graphs."""
    if len(roots) == 1 and roots[0]._key is not None:
        return roots[0]._key
    number: dict[Expr, int] = {}
    lines = []
    for expr in walk(*roots):
        number[expr] = len(number)
        fields = [expr.op, expr.dtype.name]
        if expr.payload is not None:
            fields.append(payload_text(expr.payload))
        lines.append(" ".join([*fields, *(f"%{number[a]}" for a in expr.args)]))
    text = "; ".join(lines)
    if len(roots) != 1:
        return f"{text} -> " + " ".join(f"%{number[r]}" for r in roots)
    object.__setattr__(roots[0], "_key", text)
    return text


def payload_text(payload: Payload) -> str:
    """A payload as exact text that tells 1 from 1.0 from True, and 0.0 from -0.0."""
    if isinstance(payload, float):
        return "-nan" if math.isnan(payload) and math.copysign(1, payload) < 0 else payload.hex()
    if isinstance(payload, complex):
        return f"({payload_text(payload.real)},{payload_text(payload.imag)})"
    return repr(payload)


def inputs_used(*roots: Expr) -> tuple[int, ...]:
    """The positions of the inputs the graph reads, in order."""
    return tuple(sorted({int(e.payload) for e in walk(*roots) if e.op == "input"}))  # type: ignore[arg-type]


def scalars_used(*roots: Expr) -> dict[str, dtype]:
    """The launch-time values the graph reads, by name, in the order met."""
    return {str(e.payload): e.dtype for e in walk(*roots) if e.op == "scalar"}


def count_ops(*roots: Expr) -> int:
    """How many nodes compute something: all but the leaves."""
    return sum(e.op not in LEAVES for e in walk(*roots))


def substitute(expr: Expr, mapping: Mapping[Expr, Expr]) -> Expr:
    """The graph with each node in `mapping` replaced (what stands below it is not visited)."""
    return substitute_all((expr,), mapping)[0]


def substitute_all(roots: Sequence[Expr], mapping: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    """`substitute` for several graphs at once, sharing what they share."""
    done: dict[Expr, Expr] = {}
    for old, new in mapping.items():
        if old.dtype is not new.dtype:
            raise DtypeError(f"substitute: `{old}` is {old.dtype} but `{new}` is {new.dtype}")
        done[old] = new
    for root in roots:
        stack = [root]
        while stack:
            expr = stack[-1]
            if expr in done:
                stack.pop()
                continue
            waiting = [a for a in expr.args if a not in done]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            done[expr] = with_args(expr, tuple(done[a] for a in expr.args))
            stack.pop()
    return tuple(done[r] for r in roots)


def with_args(expr: Expr, args: tuple[Expr, ...]) -> Expr:
    """The same op on other arguments of the same dtypes."""
    if all(a is b for a, b in zip(args, expr.args, strict=True)):
        return expr
    return node(expr.op, args, expr.dtype, expr.payload)
