"""A pointwise record's function, and its derivatives, as expressions."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from antorcha.core import dtypes
from antorcha.core.dtypes import dtype
from antorcha.errors import AntorchaError
from antorcha.lang import expr as E
from antorcha.lang.expr import Expr
from antorcha.ops.kinds.params import NUMBER, STATIC
from antorcha.ops.kinds.pointwise import PointwiseOp
from antorcha.ops.kinds.pointwise_rule import PointwiseRule
from antorcha.ops.kinds.record import Op

NUMBERS = dtypes.float64, dtypes.int64, dtypes.bool_
"""What the operands are taken for: the first that the function takes."""


@dataclass(frozen=True)
class Formula:
    """The results over inputs 0 to n-1, which `names` names; input n + k stands for result k, the
    inputs behind those for the results' gradients."""

    names: tuple[str, ...]
    results: tuple[Expr, ...]
    gradients: tuple[Expr | None, ...]
    written: bool  # is the derivative a rule of the record's own?

    @property
    def input_names(self) -> list[str]:
        """A name for every input."""
        one = len(self.results) == 1
        marks = ["" if one else f"_{k}" for k in range(len(self.results))]
        return [*self.names, *[f"out{m}" for m in marks], *[f"grad{m}" for m in marks]]


def formula_of(op: Op) -> Formula | None:
    """The formula of a pointwise op; None of other kinds, and of what wants its arguments."""
    if not isinstance(op, PointwiseOp):
        return None
    for kind in NUMBERS:
        try:
            return _traced(op, kind)
        except (AntorchaError, TypeError):
            continue
    return None


def _traced(op: PointwiseOp, kind: dtype) -> Formula | None:
    args: dict[str, Expr] = {}
    rest: dict[str, object] = {}
    for param in op.signature.params:
        if param.code < NUMBER:
            is_mask = param.name in ("mask", "condition")
            args[param.name] = E.input_(len(args), dtypes.bool_ if is_mask else kind)
        elif repr(param.default) == "<no default>":
            return None
        elif param.code == STATIC or param.default is None:
            rest[param.name] = param.default
        else:
            rest[param.name] = E.scalar(param.name, kind)
    found = op.fn(**args, **rest)
    several = found if isinstance(found, (tuple, list)) else (found,)
    if not several or not all([isinstance(e, Expr) for e in several]):
        return None
    gradients: list[Expr | None] = [None] * len(args)
    if isinstance(op.rule, PointwiseRule) and kind is dtypes.float64:
        with contextlib.suppress(NotImplementedError):  # a derivative that is refused by name
            slopes = op.rule.expressions(args, rest, len(args), 1)
            gradients = [E.simplify(s) if isinstance(s, Expr) else None for s in slopes]
    results = tuple([E.simplify(e) for e in several])
    return Formula(tuple(args), results, tuple(gradients), op.derive_fn is not None)
