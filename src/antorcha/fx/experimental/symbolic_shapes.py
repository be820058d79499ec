"""``torch.fx.experimental.symbolic_shapes``: questions about sizes that may be symbols.

Sizes are plain ints here, so every question has its answer at once, and there are no symbols to
guard. What keeps symbols (``ShapeEnv`` and its contexts) is absent: it raises when it is used.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

from antorcha.core import absent
from antorcha.errors import warn
from antorcha.sym import SymBool, SymFloat, SymInt


class GuardOnDataDependentSymNode(RuntimeError):
    """A decision that depends on a tensor's values; programs catch it, and it is never raised."""


def _require(value: Any, *kinds: type) -> Any:
    """`value`, if it is of one of `kinds` (a bool is no int)."""
    if type(value) not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise AssertionError(f"Expected {wanted}, got {type(value)}")
    return value


def guard_bool(a: bool) -> bool:
    """`a` itself."""
    return bool(_require(a, bool))


def guard_int(a: int) -> int:
    """`a` itself."""
    return int(_require(a, int))


def guard_float(a: float) -> float:
    """`a` itself."""
    return float(_require(a, float))


def guard_scalar(a: bool | int | float) -> bool | int | float:
    """`a` itself."""
    found: bool | int | float = _require(a, bool, int, float)
    return found


def guard_or_false(a: bool) -> bool:
    """`a` itself: it is known.

    >>> from antorcha.fx.experimental.symbolic_shapes import guard_or_false
    >>> guard_or_false(torch.ones(2, 3).size(1) == 3)
    True
    """
    return guard_bool(a)


def guard_or_true(a: bool) -> bool:
    """`a` itself: it is known."""
    return guard_bool(a)


def guard_size_oblivious(expr: bool) -> bool:
    """`expr` itself; PyTorch is about to remove the name."""
    warn(
        "guard_size_oblivious will be removed. Consider using explicit unbacked handling "
        "potentially utilizing guard_or_false, guard_or_true, or statically_known_true",
        FutureWarning,
    )
    return guard_bool(expr)


def statically_known_true(x: bool) -> bool:
    """Is `x` true?"""
    return guard_bool(x)


def statically_known_false(x: bool) -> bool:
    """Is `x` false?"""
    return not guard_bool(x)


def guarding_hint_or_throw(a: int | bool) -> int | bool:
    """`a` itself."""
    found: int | bool = _require(a, bool, int)
    return found


def optimization_hint(a: int, fallback: int | None = None) -> int:
    """`a` itself."""
    return guard_int(a)


def sym_and(x: bool, *others: bool) -> bool:
    """The conjunction of all."""
    return functools.reduce(operator.and_, others, x)


def sym_or(x: bool, *others: bool) -> bool:
    """The disjunction of all."""
    return functools.reduce(operator.or_, others, x)


def sym_eq(x: Any, y: Any) -> bool:
    """Are two ints, or two nested sequences of ints, equal?

    >>> torch.fx.experimental.symbolic_shapes.sym_eq((2, [3]), [2, (3,)])
    True
    """
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return len(x) == len(y) and all([sym_eq(a, b) for a, b in zip(x, y)])
    if isinstance(x, int) and isinstance(y, int):
        return x == y
    raise AssertionError(f"unexpected sym_eq between {type(x)} {type(y)}")


def free_symbols(val: Any) -> set[Any]:
    """The symbols in `val`: none."""
    return set()


def free_unbacked_symbols(x: Any) -> set[Any]:
    """The symbols without a value in `x`: none."""
    return set()


def has_free_symbols(val: Any) -> bool:
    """False: there are no symbols."""
    return False


def has_free_unbacked_symbols(x: Any) -> bool:
    """False: there are no symbols."""
    return False


def has_symbolic_sizes_strides(elem: Any) -> bool:
    """False: sizes and strides are ints."""
    return False


def has_static_value(a: Any) -> bool:
    """True: `a` is a number."""
    _require(a, bool, int, float)
    return True


def is_symbolic(val: Any) -> bool:
    """False: `val` is a number."""
    return isinstance(val, (SymInt, SymFloat, SymBool))


def is_nested_int(s: Any) -> bool:
    """False: no size stands for those of a nested tensor."""
    return False


def is_concrete_int(a: int) -> bool:
    """True: an int is a value."""
    if not isinstance(a, int):
        raise AssertionError(f"Expected SymInt or int, got {type(a)}")
    return True


def is_concrete_bool(a: bool) -> bool:
    """True: a bool is a value."""
    if not isinstance(a, bool):
        raise AssertionError(f"Expected SymBool or bool, got {type(a)}")
    return True


def is_concrete_float(a: float) -> bool:
    """True: a float is a value."""
    if not isinstance(a, float):
        raise AssertionError(f"Expected SymFloat or float, got {type(a)}")
    return True


__getattr__ = absent.names("torch.fx.experimental.symbolic_shapes", globals())
