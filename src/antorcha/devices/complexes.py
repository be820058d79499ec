"""Complex numbers in kernels: in memory two parts side by side, in registers two vectors.

The parts are taken apart as they are loaded and joined as they are stored; what is computed between
is real arithmetic (`lang/expr/complexes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.devices.emit import type_of
from antorcha.lang import expr as E
from antorcha.lang.native import (
    f32,
    f64,
    i64,
    inline,
    lanes,
    ptr,
    shuffle,
    struct,
    vec,
    vgather,
    vload,
    vscatter,
    vstore,
)
from antorcha.lang.native.types import Ty
from antorcha.runtime.memory.layout import Layout


@struct
class ComplexFloat:
    re: f32
    im: f32


@struct
class ComplexDouble:
    re: f64
    im: f64


PAIRS: dict[str, Ty] = {"complex64": ComplexFloat, "complex128": ComplexDouble}
"""The types of complex numbers in memory."""


def type_or_pair(what: Any) -> Ty:
    """`type_of`, with complex numbers as pairs, for the templates that load them as such."""
    if what is complex:
        return ComplexDouble
    pair = PAIRS.get(what.dtype.name) if isinstance(what, Layout) else None
    return type_of(what) if pair is None else pair


def part_of(ty: Ty) -> Ty | None:
    """The type of a complex number's parts; None for a real type."""
    return ty.fields["re"][1] if ty.kind == "s" else None


_NUMBERS = {float: dtypes.float64, complex: dtypes.complex128}


def dtype_in_memory(what: Any) -> dtypes.dtype:
    """The dtype of what an operand of a kernel is: a layout, or a Python number type."""
    return what.dtype if isinstance(what, Layout) else _NUMBERS.get(what, dtypes.int64)


def loaded_as(exprs: Sequence[E.Expr], ins: Sequence[Any]) -> tuple[E.Expr, ...]:
    """The expressions over inputs as they lie in memory: real ones may stand for complex numbers.
    Further inputs (a position) stay."""
    own = {
        e: E.cast(E.input_(k, dtype_in_memory(ins[k])), e.dtype)
        for e in E.walk(*exprs)
        if e.op == "input" and isinstance(k := e.payload, int) and k < len(ins)
    }
    return E.substitute_all(exprs, own)


def stored_as(exprs: Sequence[E.Expr], outs: Sequence[Layout]) -> tuple[E.Expr, ...]:
    """The expressions cast to what is stored."""
    return tuple([E.cast(e, o.dtype) for e, o in zip(exprs, outs, strict=True)])


def in_memory(
    exprs: Sequence[E.Expr], outs: Sequence[Layout], ins: Sequence[Any]
) -> Sequence[E.Expr]:
    """Expressions from what is loaded to what is stored, where that has complex numbers."""
    if "c" not in [dtype_in_memory(t).kind for t in (*ins, *outs)]:
        return exprs
    return stored_as(loaded_as(exprs, ins), outs)


def fold_in_parts(
    start: Any, lift: Any, merge: Any, finish: Any, outs: Sequence[Layout], ins: Sequence[Layout]
) -> Any:
    """A fold (`Reduce`'s start, lift, merge, finish) whose states are real: a complex state is two
    of them, its parts. It goes from what is loaded to what is stored."""
    if not any(e.dtype.kind == "c" for e in (*lift, *ins, *outs)):
        return start, lift, merge, finish
    lift, finish = loaded_as(lift, ins), stored_as(finish, outs)
    states = [e.dtype for e in lift]

    def over_parts(exprs: Sequence[E.Expr], times: int) -> Any:
        """The expressions over so many states, which are given in parts."""
        given, at = {}, 0
        for k, kind in enumerate(states * times):
            part = kind.to_real()
            if kind.kind == "c":
                two = (E.input_(at, part), E.input_(at + 1, part))
                given[E.input_(k, kind)] = E.node("complex", two, kind)
            else:
                given[E.input_(k, kind)] = E.input_(at, kind)
            at += 2 if kind.kind == "c" else 1
        count = len(states) * times
        for e in E.walk(*exprs):  # what comes after the states
            if e.op == "input" and e not in given:
                given[e] = E.input_(at + int(e.payload) - count, e.dtype)  # type: ignore[arg-type]
        return E.substitute_all(exprs, given)

    def parts(exprs: Sequence[E.Expr]) -> Any:
        pairs = [(E.real(e), E.imag(e)) if e.dtype.kind == "c" else (e,) for e in exprs]
        return tuple(part for pair in pairs for part in pair)

    zeros = [
        (s.real, s.imag) if k.kind == "c" else (s,) for s, k in zip(start, states, strict=True)
    ]
    return (
        tuple(part for pair in zeros for part in pair), parts(lift),
        parts(over_parts(merge, 2)), over_parts(finish, 1),
    )  # fmt: skip


@inline
def load_pair(T, p, kind, fixed, at, step, width, mask):
    """`load` of complex numbers with parts of type T: the real parts, the imaginary parts."""
    if kind == "s":
        return fixed
    first = ptr[T](p + at * step)
    if kind == "c":
        both = vload(ptr[T](p + at), 2 * width, of_both(mask, width))
        return [shuffle(both, None, evens(width)), shuffle(both, None, odds(width))]
    places = lanes(i64, width) * (2 * step)
    return [vgather(first, places, mask), vgather(first + 1, places, mask)]


@inline
def of_both(mask, width):
    """A mask of complex numbers as one of their parts, which lie side by side."""
    return None if mask is None else shuffle(mask, None, twice(width))


@inline
def store_pair(T, p, kind, at, step, value, width, mask, stream):
    """`store` of complex numbers with parts of type T."""
    re, im = value
    if kind == "c":
        both = shuffle(re, im, in_turns(width))
        vstore(ptr[T](p + at), both, of_both(mask, width), stream=stream)
    else:
        first = ptr[T](p + at * step)
        places = lanes(i64, width) * (2 * step)
        vscatter(first, places, re, mask)
        vscatter(first + 1, places, im, mask)


@inline
def fill_pair(T, p, width):
    """The complex number at p in every lane."""
    parts = ptr[T](p)
    return [vec[T, width](parts[0]), vec[T, width](parts[1])]


# The lanes of pairs


def evens(n: int) -> tuple[int, ...]:
    """Which lanes of n pairs are the first ones."""
    return tuple(range(0, 2 * n, 2))


def odds(n: int) -> tuple[int, ...]:
    return tuple(range(1, 2 * n, 2))


def twice(n: int) -> tuple[int, ...]:
    """Each of n lanes two times."""
    return tuple([k // 2 for k in range(2 * n)])


def in_turns(n: int) -> tuple[int, ...]:
    """A lane of one vector of n, a lane of another one, and so on."""
    return tuple([k // 2 + k % 2 * n for k in range(2 * n)])
