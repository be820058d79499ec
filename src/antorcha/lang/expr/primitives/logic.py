"""Comparisons, operations on bits, and the choice between two values."""

from __future__ import annotations

from typing import Any

from antorcha.core.lazy import np
from antorcha.lang import expr as E
from antorcha.lang.expr.op import (
    FLAT,
    FLAT2,
    ScalarOp,
    anything,
    comparison,
    integral,
    order,
    shifted,
)

__all__ = [
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "eq", "ge", "gt", "le", "lt", "ne", "where",
]  # fmt: skip

# Comparisons

eq: ScalarOp = ScalarOp(
    "eq", 2, comparison, "equal", FLAT2, "a == b.", compares=True,
    complex_rule=lambda a, b: (a[0] == b[0]) & (a[1] == b[1]),
)  # fmt: skip
ne: ScalarOp = ScalarOp(
    "ne", 2, comparison, "not_equal", FLAT2, "a != b.", compares=True,
    complex_rule=lambda a, b: (a[0] != b[0]) | (a[1] != b[1]),
)  # fmt: skip
lt: ScalarOp = ScalarOp("lt", 2, order, "less", FLAT2, "a < b.", compares=True)
le: ScalarOp = ScalarOp("le", 2, order, "less_equal", FLAT2, "a <= b.", compares=True)
gt: ScalarOp = ScalarOp("gt", 2, order, "greater", FLAT2, "a > b.", compares=True)
ge: ScalarOp = ScalarOp("ge", 2, order, "greater_equal", FLAT2, "a >= b.", compares=True)

# Bits

bitwise_and: ScalarOp = ScalarOp(
    "and", 2, integral, "bitwise_and", FLAT2, "Bitwise and; logical for bool.",
    public="bitwise_and",
)  # fmt: skip
bitwise_or: ScalarOp = ScalarOp(
    "or", 2, integral, "bitwise_or", FLAT2, "Bitwise or; logical for bool.", public="bitwise_or"
)
bitwise_xor: ScalarOp = ScalarOp(
    "xor", 2, integral, "bitwise_xor", FLAT2, "Bitwise exclusive or; logical for bool.",
    public="bitwise_xor",
)  # fmt: skip
bitwise_not: ScalarOp = ScalarOp(
    "not", 1, integral, "invert", FLAT, "All bits turned; logical for bool.",
    public="bitwise_not", expand=lambda x: x ^ (True if x.dtype.kind == "b" else -1),
)  # fmt: skip


def _shl(a: Any, b: Any) -> Any:
    inside = (b >= 0) & (b < 8 * a.dtype.itemsize)
    return np.where(inside, np.left_shift(a, np.where(inside, b, 0)), 0)


def _shr(a: Any, b: Any) -> Any:
    inside = (b >= 0) & (b < 8 * a.dtype.itemsize)
    return np.where(inside, np.right_shift(a, np.where(inside, b, 0)), np.where(a < 0, -1, 0))


bitwise_left_shift: ScalarOp = ScalarOp(
    "shl", 2, shifted, _shl, FLAT2,
    "a << b; 0 where b is negative or not below the width.", public="bitwise_left_shift",
)  # fmt: skip
bitwise_right_shift: ScalarOp = ScalarOp(
    "shr", 2, shifted, _shr, FLAT2,
    "a >> b with the sign; b negative or too large counts as the width.",
    public="bitwise_right_shift",
)  # fmt: skip

# Choice

where: ScalarOp = ScalarOp(
    "where", 3, anything, lambda condition, a, b: np.where(condition, a, b),
    (None, lambda g, c, a, b, y: E.where(c, g, 0), lambda g, c, a, b, y: E.where(c, 0, g)),
    "a where the condition holds, else b.", head=1,
    complex_rule=lambda c, a, b: (E.where(c, a[0], b[0]), E.where(c, a[1], b[1])),
)  # fmt: skip
