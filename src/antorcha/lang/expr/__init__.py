"""Expressions: a Python function over scalars as a graph to simplify, derive, evaluate and render.

>>> from antorcha import dtypes
>>> silu = trace(lambda x: x * sigmoid(x), [dtypes.float32])
>>> silu
x0 * sigmoid(x0)
>>> derivative(silu, 0)
t0 = sigmoid(x0); t0 + x0 * ((1.0 - t0) * t0)
>>> float(evaluate(silu, [0.0]))
0.0

Read `graph.py` (what a node is), then `functions.py` (every op, one record each).
"""

# ruff: noqa: I001, F403  # one import per module, renames included; of primitives, every name

from __future__ import annotations

from antorcha.lang.expr.complexes import split_complex
from antorcha.lang.expr.derivative import derivative, gradient, pullback, vjp
from antorcha.lang.expr.functions import (
    abs_ as abs, acos, acosh, add, angle, asin, asinh, atan, atan2, atanh, bitwise_and,
    bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, cast, ceil,
    conj, copysign, cos, cosh, detach, div, eq, exp, exp2,
    expm1, floor, floor_divide, fma, fmax, fmin, fmod, ge, gt, hypot, imag, isfinite, isinf,
    isnan, le, log, log1p, log2, log10, lt, maximum, minimum, mul, ne, neg, nextafter,
    reciprocal, remainder, rsqrt, sgn, sigmoid, sign, signbit, sin, sinh, sqrt,
    sub, tan, tanh, trunc, trunc_divide, where, complex_ as complex, pow_ as pow, real_
    as real, round_ as round,
)  # fmt: skip
from antorcha.lang.expr.graph import (
    LEAVES, OPS, Expr, const, count_ops, input_, inputs_used, key, node, scalar, scalars_used,
    substitute, substitute_all, walk,
)  # fmt: skip
from antorcha.lang.expr.interpret import evaluate
from antorcha.lang.expr.op import Op, set_dispatch
from antorcha.lang.expr.primitives.special import *
from antorcha.lang.expr.reductions import (
    all_ as all, amax, amin, argmax, argmin, length, logsumexp, mean, position, prod, std, var,
    any_ as any, sum_ as sum,
)  # fmt: skip
from antorcha.lang.expr.rewrite import expand, expand_all, opmath, opmath_all
from antorcha.lang.expr.rows import Pass, RowInput, RowProgram, per_row, trace_rows
from antorcha.lang.expr.shorts import clamp, relu, square
from antorcha.lang.expr.simplify import simplify, simplify_all
from antorcha.lang.expr.trace import trace

__all__ = [  # noqa: RUF022  # by name, whatever the case
    "Expr", "LEAVES", "OPS", "Op", "Pass", "RowInput", "RowProgram", "abs", "acos", "acosh",
    "add", "all", "amax", "amin", "angle", "any", "argmax", "argmin", "asin", "asinh", "atan",
    "atan2", "atanh", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "cast", "ceil", "clamp", "complex", "conj", "const",
    "copysign", "cos", "cosh", "count_ops", "derivative", "detach", "div", "eq",
    "evaluate", "exp", "exp2", "expand", "expand_all", "expm1",
    "floor", "floor_divide", "fma", "fmax", "fmin", "fmod", "ge", "gradient", "gt", "hypot",
    "imag", "input_", "inputs_used", "isfinite", "isinf", "isnan", "key", "le", "length",
    "log", "log10", "log1p", "log2", "logsumexp", "lt", "maximum", "mean", "minimum",
    "mul", "ne", "neg", "nextafter", "node", "opmath", "opmath_all", "per_row",
    "position", "pow", "prod", "pullback", "real", "reciprocal", "relu", "remainder", "round",
    "rsqrt", "scalar", "scalars_used", "set_dispatch", "sgn", "sigmoid", "sign", "signbit",
    "simplify", "simplify_all", "sin", "sinh", "split_complex", "sqrt", "square", "std", "sub",
    "substitute", "substitute_all", "sum", "tan", "tanh", "trace", "trace_rows", "trunc",
    "trunc_divide", "var", "vjp", "walk", "where",
]  # fmt: skip
