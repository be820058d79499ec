"""Every derivative that calls ops on tensors is needed by a sample: with zeros in its place the
gradients of that sample, of first or second order, are others.

That they are right as they are, ``test_records.py`` tests by finite differences.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import antorcha
import antorcha.nn.functional as F
from antorcha.ops.kinds.derive import TensorRule, fit
from antorcha.ops.kinds.record import REGISTRY, Op, T
from antorcha.runtime.tensor import Tensor
from tests.ops.records import all_samples, map_tensors, records, results, tensors_in

Sample = Callable[[], "list[np.ndarray[Any, Any]]"]
ZEROS = ("fill", "zero")  # what was there is no part of the result: zeros are the derivative
RULED = sorted(
    {id(op): op for op in REGISTRY.values()
     if isinstance(op.rule, TensorRule) and op.differentiable and op.name not in ZEROS}.values(),
    key=lambda op: op.name,
)  # fmt: skip
REFUSED = (NotImplementedError, antorcha.errors.GraphError)  # by rules that go no further back


def gradients(run: Callable[..., Any], leaves: list[Tensor]) -> list[Any]:
    """Of ``run(*leaves)``, summed up with random weights, to second order; that one of the weights,
    too."""
    antorcha.manual_seed(0)
    random = np.random.default_rng(0)
    found: list[Any] = []
    values: Any = results(run(*leaves))
    for _ in range(2):
        total = antorcha.zeros((), dtype=antorcha.float64)
        weights = []
        for each in values:
            if each is not None and each.requires_grad:
                weight = antorcha.tensor(random.uniform(0.5, 1.5, tuple(each.shape)))
                weights.append(weight.requires_grad_())
                total = total + (each * weight).sum().real
        if not weights:
            break
        leaves = [*leaves, *weights]
        try:
            values = antorcha.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        except REFUSED:
            return [*found, np.nan]
        found += [0.0 if each is None else each.detach().numpy().copy() for each in values]
    return found


def calls(op: Op) -> Iterator[Sample]:
    """What gives the gradients of each of the record's samples."""
    for args, kwargs in all_samples(op):
        yield functools.partial(_of_sample, op, args, kwargs)


def _of_sample(op: Op, args: Any, kwargs: Any) -> list[Any]:
    def wants(each: Tensor) -> bool:
        return each.dtype.is_floating_point or each.dtype.is_complex

    leaves = [t.detach().requires_grad_() for t in tensors_in((args, kwargs)) if wants(t)]

    def run(*given: Tensor) -> Any:
        queue = list(given)
        filled = map_tensors((args, kwargs), lambda t: queue.pop(0) if wants(t) else t)
        return op(*filled[0], **filled[1])

    return gradients(run, leaves)


def lengths(count: int) -> Tensor:
    return antorcha.full((2,), count)


# What has no samples, and no part in others' gradients: a call, and its operands' shapes.
CALLS: dict[str, tuple[Any, ...]] = {
    "_sample_dirichlet": (T._sample_dirichlet, (2, 3)),
    "_standard_gamma": (T._standard_gamma, (3,)),
    "adaptive_avg_windows3d": (lambda x: F.adaptive_avg_pool3d(x, 2), (1, 1, 3, 3, 3)),
    "adaptive_max_windows3d": (lambda x: F.adaptive_max_pool3d(x, 2), (1, 1, 3, 3, 3)),
    "alias": (T.alias, (3,)),
    "attention_with_sums": (
        lambda q, k, v: T.attention_with_sums(q, k, v, 0.5, False)[0], *[(1, 2, 3, 4)] * 3,
    ),
    "ctc_losses": (
        lambda x: F.ctc_loss(x, antorcha.ones(2, 2).long(), lengths(5), lengths(2)), (5, 2, 3),
    ),
    "eigenpairs": (
        lambda x: antorcha.lobpcg(x @ x.mT, X=antorcha.eye(6, 2, dtype=x.dtype))[0], (6, 6),
    ),
    "embed_strided": (lambda x: T.embed_strided(x, 9, (4,), 0), (2,)),
    "embedding_add": (lambda x: F.embedding(antorcha.tensor([0, 2, 0]), x), (3, 2)),
    "igamma": (lambda x: antorcha.igamma(antorcha.ones(3), x), (3,)),
    "igammac": (lambda x: antorcha.igammac(antorcha.ones(3), x), (3,)),
    "imaginary_part": (lambda x: (x * (1 + 2j)).imag, (3,)),
    "full_rank_solution": (lambda a, b: antorcha.linalg.lstsq(a, b).solution, (4, 3), (4, 2)),
    "linalg_eig": (lambda x: antorcha.linalg.eig(x)[0], (3, 3)),
    "max_windows3d": (lambda x: F.max_pool3d(x, 2), (1, 1, 4, 4, 4)),
    "max_windows_backward": (lambda x: F.max_pool2d(x, 2), (1, 1, 4, 4)),
    "scatter_by": (
        lambda x: x.scatter(0, antorcha.tensor([0]), antorcha.ones(1), reduce="add"), (3,),
    ),
    "running_sum": (lambda x: antorcha.cumsum(x, 0), (3,)),
    "to_device": (lambda x: x.to("reference").cpu(), (3,)),
    "view_as_complex": (antorcha.view_as_complex, (3, 2)),
    "view_as_real": (lambda x: antorcha.view_as_real(x * (1 + 2j)), (3,)),
}  # fmt: skip


@functools.cache
def reached() -> dict[str, list[Sample]]:
    """The samples of other records whose gradients a record without samples has a part in."""
    found: dict[str, list[Sample]] = {}
    backward = TensorRule.backward
    seen: set[str] = set()

    def watching(rule: TensorRule, node: Any, grads: Any, create: bool) -> Any:
        seen.add(node.op.name)
        return backward(rule, node, grads, create)

    wanted = {op.name for op in RULED if not op.sample_functions}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TensorRule, "backward", watching)
        for op in records():
            for sample in calls(op):
                seen.clear()
                sample()
                for name in seen & wanted:
                    found.setdefault(name, []).append(sample)
    return found


@pytest.mark.parametrize("op", RULED, ids=lambda op: op.name)
def test_without_its_rule_a_sample_fails(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    def zeros(rule: TensorRule, node: Any, grads: Any, create: bool) -> Any:
        if rule is not op.rule:
            return backward(rule, node, grads, create)
        return fit(node, [None if lay is None else antorcha.zeros(tuple(lay.shape), dtype=lay.dtype)
                          for lay in node.plan.tensors])  # fmt: skip

    backward = TensorRule.backward
    samples = list(calls(op))
    if op.name in CALLS:
        run, *shapes = CALLS[op.name]
        samples.append(lambda: gradients(run, [antorcha.rand(*s).requires_grad_() for s in shapes]))
    samples = samples or reached().get(op.name, [])
    assert samples, f"{op.name}: no sample needs its derivative"
    for sample in samples:
        right = sample()
        with monkeypatch.context() as patch:
            patch.setattr(TensorRule, "backward", zeros)
            wrong = sample()
        if len(right) != len(wrong) or any(
            not np.allclose(a, b, equal_nan=True) for a, b in zip(right, wrong, strict=True)
        ):
            return
    raise AssertionError(f"{op.name}: its derivative may be zeros, no sample sees it")
