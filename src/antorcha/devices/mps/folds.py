"""Reduce, Rows and Scan on arrays of MLX's.

Merging functions that MLX has as a reduction or as running values (a sum, a product, a maximum ..)
are recognised by their expression. Others are merged pairwise, in log2(n) steps on whole arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.devices.emit import Unsupported
from antorcha.devices.mps.expressions import (
    Array,
    Compute,
    MLXGraph,
    from_number,
    numbers_in,
)
from antorcha.devices.mps.library import in_mlx, mx
from antorcha.devices.narrow import in_float32
from antorcha.lang import expr as E
from antorcha.lang.kernels import Reduce, Rows, Scan
from antorcha.runtime.memory.layout import Layout

KNOWN_FOLDS = {"add", "mul", "maximum", "minimum", "or", "and"}


def known_folds(merge: Sequence[E.Expr]) -> list[str] | None:
    """For each value of a state the op that merges it with its like, if all are known ones."""
    found = []
    for k, e in enumerate(merge):
        places = [a.payload for a in e.args if a.op == "input"]
        if e.op not in KNOWN_FOLDS or sorted(map(str, places)) != sorted(
            [str(k), str(len(merge) + k)]
        ):
            return None
        found.append(e.op)
    return found


# ---- reductions
def compute_reduce(what: Reduce, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    shape = tuple(ins[0].shape)
    dims, ndim = what.dims, len(shape)
    kept = [d for d in range(ndim) if d not in dims]
    count = math.prod([shape[d] for d in dims])
    rows = math.prod([shape[d] for d in kept])
    small = tuple([1 if d in dims else shape[d] for d in range(ndim)])
    lift, merge, finish = _narrow(what)
    lifted = MLXGraph(lift, numbers_in(ins))
    merged = MLXGraph(merge)
    finished = MLXGraph(finish, [len(lift)])
    folds = known_folds(merged.exprs)
    with_position = any([e.payload == len(ins) for e in lifted.nodes if e.op == "input"])

    def compute(values: list[Any]) -> list[Array]:
        flat = [
            mx.broadcast_to(v, shape).transpose((*kept, *dims)).reshape(rows, count) for v in values
        ]
        if with_position:
            flat.append(mx.arange(count, dtype=mx.int64))
        state = [mx.broadcast_to(e, (rows, count)) for e in lifted(flat)]
        if not count or not rows:
            found = [mx.full((rows,), from_number(s, e.dtype), in_mlx(e.dtype))
                     for s, e in zip(what.start, lift, strict=True)]  # fmt: skip
        elif folds is not None:
            found = [_folded(op, s) for op, s in zip(folds, state, strict=True)]
        else:
            found = fold_pairwise(merged, state)
        return [mx.broadcast_to(e, (rows,)).reshape(small) for e in finished([*found, count])]

    return compute


def _narrow(what: Reduce | Scan) -> tuple[tuple[E.Expr, ...], ...]:
    parts = (what.lift, what.merge, what.finish)
    if any([e.dtype is dtypes.complex128 for e in E.walk(*what.merge)]):
        raise Unsupported("complex128")
    return tuple([in_float32(part) for part in parts])


def _folded(op: str, x: Array) -> Array:
    """The values along the last dim in one; it keeps the dtype."""
    if x.dtype == mx.bool_:
        return mx.any(x, -1) if op in ("add", "maximum", "or") else mx.all(x, -1)
    if op in ("or", "and"):
        return _bits(op, x)
    return {"add": mx.sum, "mul": mx.prod, "maximum": mx.max, "minimum": mx.min}[op](x, -1).astype(
        x.dtype
    )


def _bits(op: str, x: Array) -> Array:
    join = mx.bitwise_or if op == "or" else mx.bitwise_and
    return _halved(lambda a, b: [join(a[0], b[0])], [x])[0]


def fold_pairwise(merge: MLXGraph, state: list[Array]) -> list[Array]:
    """Merges neighbours along the last dim until one is left."""
    return _halved(lambda a, b: merge([*a, *b]), state)


def _halved(
    merge: Callable[[list[Array], list[Array]], list[Array]], state: list[Array]
) -> list[Array]:
    while state[0].shape[-1] > 1:
        n = state[0].shape[-1]
        even = n // 2 * 2
        pairs = [s[..., :even].reshape(*s.shape[:-1], n // 2, 2) for s in state]
        merged = merge([p[..., 0] for p in pairs], [p[..., 1] for p in pairs])
        if n % 2:
            merged = [mx.concatenate([m, s[..., -1:]], -1)
                      for m, s in zip(merged, state, strict=True)]  # fmt: skip
        state = merged
    return [s[..., 0] for s in state]


# ---- row programs
def compute_rows(what: Rows, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    program = what.program
    if program.scalars:
        raise Unsupported("a row program with scalars")
    graph = MLXGraph(in_float32(E.opmath_all(program.outputs)), numbers_in(ins))
    lead = tuple(outs[0].shape[:-1])

    def compute(values: list[Any]) -> list[Array]:
        if not (what.length and all([layout.numel for layout in outs])):
            return [mx.zeros(tuple(o.shape), in_mlx(o.dtype)) for o in outs]
        given = [
            v if i.is_row or not hasattr(v, "ndim") or not v.ndim else v[..., :1]
            for v, i in zip(values, program.inputs, strict=True)
        ]
        return [
            mx.broadcast_to(found, (*lead, what.length if is_row else 1))
            for found, is_row in zip(graph(given, what.length), program.rows, strict=True)
        ]

    return compute


# ---- running values
def compute_scan(what: Scan, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    lift, merge, finish = _narrow(what)
    if what.run == 1:
        raise Unsupported("values merged strictly in order")
    lifted, merged, finished = MLXGraph(lift, numbers_in(ins)), MLXGraph(merge), MLXGraph(finish)
    folds = known_folds(merged.exprs)
    shape = tuple(outs[0].shape)
    whole = shape or (1,)
    d = what.dim % len(whole)
    n = whole[d]

    def compute(values: list[Any]) -> list[Array]:
        if not math.prod(whole):
            return [mx.zeros(shape, in_mlx(o.dtype)) for o in outs]
        lines = [mx.moveaxis(v.reshape(whole), d, -1) if hasattr(v, "ndim") else v for v in values]
        across = (*whole[:d], *whole[d + 1 :], n)
        state = [mx.broadcast_to(e, across) for e in lifted([*lines, mx.arange(n, dtype=mx.int64)])]
        if folds is not None and all([op in _RUNNING for op in folds]):
            state = [_running(op, s, what.reverse) for op, s in zip(folds, state, strict=True)]
        else:
            state = scan_pairwise(merged, state, what.reverse)
        return [mx.moveaxis(mx.broadcast_to(e, across), -1, d).reshape(shape)
                for e in finished(state)]  # fmt: skip

    return compute


_RUNNING = {"add": "cumsum", "mul": "cumprod", "maximum": "cummax", "minimum": "cummin"}


def _running(op: str, x: Array, reverse: bool) -> Array:
    kind = x.dtype
    if kind == mx.bool_:
        x = x.astype(mx.int32)
        op = {"add": "maximum", "mul": "minimum"}.get(op, op)
    found = getattr(mx, _RUNNING[op])(x, axis=-1, reverse=reverse)
    return found != 0 if kind == mx.bool_ else found.astype(kind)


def scan_pairwise(merge: MLXGraph, state: list[Array], reverse: bool) -> list[Array]:
    """Merges each element with the one 1, 2, 4 .. places before it."""
    if reverse:
        state = [s[..., ::-1] for s in state]
    n, step = state[0].shape[-1], 1
    while step < n:
        before = [s[..., :-step] for s in state]
        after = [s[..., step:] for s in state]
        merged = merge([*before, *after])
        state = [mx.concatenate([s[..., :step], m], -1)
                 for s, m in zip(state, merged, strict=True)]  # fmt: skip
        step *= 2
    return [s[..., ::-1] for s in state] if reverse else state
