"""Expressions: a Python function over scalars as a graph to simplify, derive, evaluate and render.

>>> from antorcha.core import dtypes
>>> silu = trace(lambda x: x * sigmoid(x), [dtypes.float32])
>>> silu
x0 * sigmoid(x0)
>>> derivative(silu, 0)
t0 = sigmoid(x0); t0 + x0 * ((1.0 - t0) * t0)
>>> float(evaluate(silu, [0.0]))
0.0

Read `graph.py` (what a node is), then a file of `primitives` (every op, one record each).
"""

# ruff: noqa: I001, F403  # one import per module, renames included; of primitives all public names

from __future__ import annotations

from antorcha.lang.expr.complexes import split_complex
from antorcha.lang.expr.derivative import derivative, gradient, pullback, vjp
from antorcha.lang.expr.graph import (
    LEAVES, OPS, Expr, const, count_ops, input_, inputs_used, key, node, scalar, scalars_used,
    substitute, substitute_all, walk,
)  # fmt: skip
from antorcha.lang.expr.interpret import evaluate
from antorcha.lang.expr.op import ScalarOp, set_dispatch
from antorcha.lang.expr.primitives.arithmetic import *
from antorcha.lang.expr.primitives.bessel import *
from antorcha.lang.expr.primitives.exponential import *
from antorcha.lang.expr.primitives.floats import *
from antorcha.lang.expr.primitives.logic import *
from antorcha.lang.expr.primitives.orthogonal import *
from antorcha.lang.expr.primitives.parts import *
from antorcha.lang.expr.primitives.special import *
from antorcha.lang.expr.primitives.trigonometric import *
from antorcha.lang.expr.primitives.arithmetic import abs_ as abs
from antorcha.lang.expr.primitives.exponential import pow_ as pow
from antorcha.lang.expr.primitives.floats import round_ as round
from antorcha.lang.expr.primitives.parts import complex_ as complex, real_ as real
from antorcha.lang.expr.reductions import (
    all_ as all, amax, amin, argmax, argmin, length, logsumexp, mean, position, prod, std, var,
    any_ as any, sum_ as sum,
)  # fmt: skip
from antorcha.lang.expr.rewrite import expand, expand_all, opmath, opmath_all
from antorcha.lang.expr.rows import Pass, RowInput, RowProgram, per_row, trace_rows
from antorcha.lang.expr.sugar import clamp, relu, square
from antorcha.lang.expr.simplify import simplify, simplify_all
from antorcha.lang.expr.trace import trace

__all__ = [  # noqa: RUF022  # by name, whatever the case; and the primitives
    "Expr", "LEAVES", "OPS", "Pass", "RowInput", "RowProgram", "ScalarOp", "abs", "all", "amax",
    "amin", "any", "argmax", "argmin", "clamp", "complex", "const", "count_ops", "derivative",
    "evaluate", "expand", "expand_all", "gradient", "input_", "inputs_used", "key", "length",
    "logsumexp", "mean", "node", "opmath", "opmath_all", "per_row", "position", "pow", "prod",
    "pullback", "real", "relu", "round", "scalar", "scalars_used", "set_dispatch", "simplify",
    "simplify_all", "split_complex", "square", "std", "substitute", "substitute_all", "sum",
    "trace", "trace_rows", "var", "vjp", "walk",
]  # fmt: skip
