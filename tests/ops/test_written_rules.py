"""A pointwise record states a derivative only where the one found from its function will not do.

What a written rule may have of its own: other values (at a kink, at an end of the range, where the
found one gives NaN), less to save for the backward pass, or less to compute.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.lang import expr as E
from antorcha.ops.kinds.pointwise import PointwiseOp
from antorcha.ops.kinds.record import REGISTRY
from tests.ops.records import Maker

WRITTEN = sorted(
    {id(op): op for op in REGISTRY.values()
     if isinstance(op, PointwiseOp) and op.derive_fn is not None}.values(),
    key=lambda op: op.name,
)  # fmt: skip
NUMBERS = np.array(
    [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 3.0, -3.0, 6.0, 20.5, -20.5, 1e-30, 1e30, -1e30, np.inf,
     -np.inf, np.nan]
)  # fmt: skip


# What parts of composites, which have no samples, are given beside tensors.
GIVEN: dict[str, dict[str, Any]] = {
    "smooth_l1_loss_each": {"param": 1.0},
    "huber_loss_each": {"param": 1.0},
    "gaussian_nll_each": {"full": False, "eps": 1e-6},
}


def calls(op: PointwiseOp) -> Iterator[list[Any]]:
    """The bound arguments of the record's samples."""
    found = [s for fn in op.sample_functions for s in fn(Maker(op.name))]
    if not found:
        tensors = [antorcha.rand(3, dtype=antorcha.float64) for _ in op.rule.names()]
        found = [(tuple(tensors), GIVEN.get(op.name, {}))]
    for sample in found:
        if len(sample) == 4:  # an error's
            continue
        nested = len(sample) == 2 and isinstance(sample[0], tuple)
        args, kwargs = sample if nested else (sample, {})
        yield list(op.signature.bind(tuple(args), kwargs)[4])


def wide(dtype: Any) -> Any:
    return antorcha.float64 if dtype.kind == "f" else dtype


def slopes(op: PointwiseOp, plan: Any, types: list[Any]) -> list[Any]:
    """The gradients of the operands that are floats, simplified; None for the others."""
    args = {name: E.input_(k, types[k]) for name, k in plan.post.where.items()}
    found = op.rule.expressions(args, plan.statics, len(types), op.rule.all_of(plan))
    floats = [
        name in plan.post.where and types[plan.post.where[name]].kind == "f"
        for name in op.rule.names()
    ]
    return [
        E.simplify(s) if isinstance(s, E.Expr) and is_float else None
        for s, is_float in zip(found, floats, strict=True)
    ]


def inputs(op: PointwiseOp, plan: Any, types: list[Any]) -> list[Any]:
    """Numbers for every input of the gradients: operands, results, gradients of results."""
    random = np.random.default_rng(0)
    count = 4000
    kinds = {"f": NUMBERS, "b": np.array([False, True]), "i": np.arange(4), "u": np.arange(4)}
    values = [random.choice(kinds[t.kind], count) for t in types]
    args = {name: E.input_(k, types[k]) for name, k in plan.post.where.items()}
    made = op.fn(**args, **plan.statics)
    made = made if isinstance(made, (tuple, list)) else (made,)
    results = [E.evaluate(m, values) for m in made]
    return [*values, *results, *[random.choice([1.0, 0.7, -2.0], count) for _ in made]]


def differ(written: Any, found: Any, values: list[Any]) -> bool:
    if written is None or found is None:
        return written is not found and not all(is_zero(s) for s in (written, found))
    saved, saves = E.inputs_used(written), E.inputs_used(found)
    if saved != saves or E.count_ops(written) < E.count_ops(found):
        return True
    both = E.evaluate([written, found], values)
    return not np.allclose(*np.broadcast_arrays(*both), rtol=1e-12, atol=0, equal_nan=True)


def is_zero(slope: Any) -> bool:
    return slope is None or (slope.op == "const" and slope.payload == 0)


@pytest.mark.parametrize("op", WRITTEN, ids=lambda op: f"{op.fn.__module__[13:]}.{op.name}")
def test_a_written_rule_is_not_the_found_one(op: PointwiseOp, monkeypatch: Any) -> None:
    unlike = []
    for values in calls(op):
        plan = op.make_plan(values, None)
        if any(t.kind == "c" for t in plan.post.types):
            continue
        types = [wide(t) for t in plan.post.types]
        try:
            written = slopes(op, plan, types)
        except NotImplementedError:
            return  # that is what it says
        with monkeypatch.context() as patch:
            patch.setattr(op, "derive_fn", None)
            try:
                found = slopes(op, plan, types)
            except antorcha.errors.GraphError:
                return  # there is none
        given = inputs(op, plan, types)
        unlike += [differ(w, f, given) for w, f in zip(written, found, strict=True)]
    assert any(unlike), f"{op.name}: the rule says what is found without it"
