"""Every op, called again and again: what the native path serves is what the Python path gives.

The first call of each is by ``in_python``; the following ones meet the same key often enough to be
learnt and then served natively. Gradients are held against the Python engine's, which
``create_graph=True`` always takes.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.errors import MissingFeature
from antorcha.ops.kinds.record import Op
from antorcha.runtime.call import native, plan
from antorcha.runtime.tensor import Tensor
from tests.ops.records import everything, map_tensors, records, results, samples, tensors_in
from tests.ops.test_records import is_random

TIMES = 5
pytestmark = pytest.mark.skipif(not native.ACTIVE, reason="the native path does not run")


def looks(value: Any) -> list[Any]:
    """What can be seen of a result's tensors, besides their elements."""
    return [
        (
            t.dtype, t.shape, t.stride(), t.storage_offset(), t.requires_grad, type(t.grad_fn),
            t.output_nr, t._is_view(), t.is_leaf, t._version, t.is_inference(),
        )
        for t in results(value)
    ]  # fmt: skip


def same_elements(ours: Any, theirs: Any, what: str) -> None:
    for a, b in zip(results(ours), results(theirs), strict=True):
        x, y = a.detach().resolve_conj(), b.detach().resolve_conj()
        if x.dtype is antorcha.bfloat16:
            x, y = x.float(), y.float()
        np.testing.assert_array_equal(x.numpy(), y.numpy(), err_msg=what)


def watched(value: Any, wants: bool) -> Any:
    """The arguments, their floats wanting gradients, or not."""

    def one(t: Tensor) -> Tensor:
        real = t.dtype.is_floating_point or t.dtype.is_complex
        return t.detach().clone().requires_grad_(wants and real)

    return map_tensors(value, one)


def gradients(value: Any, inputs: list[Tensor], by_python: bool) -> list[Any]:
    """The gradients of the sum of all results."""
    total = sum([t.abs().sum() for t in results(value) if t.requires_grad])
    if not isinstance(total, Tensor) or not total.requires_grad:
        return []
    for t in inputs:
        t.grad = None
    try:
        if by_python:
            return list(antorcha.autograd.grad(total, inputs, create_graph=True, allow_unused=True))
        total.backward()
    except MissingFeature:  # (floor_divide requires a gradient, and has no derivative)
        return []
    return [t.grad for t in inputs]


@everything
@pytest.mark.each_op
def test_calls(op: Op) -> None:
    """Plain, with gradients wanted, and where nothing is recorded."""
    random = is_random(op) or op.random  # their elements differ, and so may their slopes
    for args, kwargs in samples(op, antorcha.float32):
        what = f"{op.name}{args}{kwargs}"
        for wants, recorded in ((False, True), (True, True), (True, False)):
            given, named = watched((args, kwargs), wants)
            inputs = [t for t in results([*given, *named.values()]) if t.requires_grad]
            with antorcha.set_grad_enabled(recorded):
                expected = op.in_python(*given, **named)
            compared = recorded and not random
            slopes = gradients(expected, inputs, True) if compared else []
            for _ in range(TIMES):
                with antorcha.set_grad_enabled(recorded):
                    result = op(*given, **named)
                assert looks(result) == looks(expected), what
                if not random:
                    same_elements(result, expected, what)
                assert type(result) is type(expected), what
                found = gradients(result, inputs, False) if compared else []
                assert [g is None for g in found] == [g is None for g in slopes], what
                for g, slope in zip(found, slopes, strict=True):
                    if g is not None:
                        a, b = g.resolve_conj().numpy(), slope.detach().resolve_conj().numpy()
                        np.testing.assert_allclose(a, b, 2e-5, 2e-6, err_msg=what)


@everything
def test_nothing_leaks(op: Op) -> None:
    """The memory of a call returns when its result goes, without the collector; what is learnt on
    the way is no tensor's memory."""
    if is_random(op) or op.random:
        pytest.skip("random")
    plan.flush()
    gc.disable()
    try:
        for args, kwargs in samples(op, antorcha.float32):
            given, named = watched((args, kwargs), True)
            live = antorcha.runtime.memory.alloc.stats().live
            for k in range(TIMES + 4):
                op(*given, **named)
                assert antorcha.runtime.memory.alloc.stats().live == live, (op.name, k)
    finally:
        gc.enable()


def outcome(run: Any) -> Any:
    """A result, or the class of the error."""
    try:
        return run()
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return type(error)


@everything
def test_writes(op: Op) -> None:
    """In-place forms: the same elements, versions and errors, time after time."""
    if op.inplace is None or is_random(op) or op.random:
        pytest.skip("no in-place form, or a random one")
    for args, kwargs in samples(op, antorcha.float32):
        what = f"{op.name}_{args}{kwargs}"
        for wants, recorded in ((False, True), (True, True), (True, False)):
            for turn in range(2 * TIMES):
                given, named = watched((args, kwargs), wants)
                if wants and recorded:
                    given = (given[0] * 1, *given[1:])  # a leaf must not be written to
                mine = map_tensors(given, lambda t: t.clone())
                if not (wants and recorded):  # leaves again
                    mine = map_tensors(mine, lambda t: t.detach().requires_grad_(t.requires_grad))
                with antorcha.set_grad_enabled(recorded):
                    expected = outcome(lambda: op.inplace.in_python(*given, **named))  # noqa: B023
                    result = outcome(lambda: op.inplace(*mine, **named))  # noqa: B023
                if not isinstance(expected, Tensor):
                    assert result == expected, what
                    continue
                assert result is mine[0], (what, turn)
                seen = [(t.dtype, t.shape, t.stride(), t.requires_grad) for t in (result, expected)]
                assert seen[0] == seen[1], what
                assert result._version == expected._version, what
                same_elements(result, expected, what)
                same_elements(mine[1:], given[1:], what)


def test_each_operand_alone_is_recorded_at_every_call() -> None:
    """Where one operand wants a gradient and the others do not, what is learnt is recorded, too."""
    failures = []
    for op in records():
        for k, (args, kwargs) in enumerate(() if op.random else samples(op)):
            tensors = tensors_in((args, kwargs))
            for which, wanting in enumerate(tensors):
                if not wanting.dtype.is_floating_point:
                    continue
                seen = [recorded(op, args, kwargs, which) for _ in range(TIMES)]
                if seen.count(seen[0]) < TIMES:
                    failures.append(f"{op.name}, sample {k}, operand {which}: {seen}")
    assert not failures, "\n".join(failures)


def recorded(op: Op, args: Any, kwargs: Any, which: int) -> Any:
    """Which results want gradients, where an operand does."""
    numbers = iter(range(1000))

    def fresh(t: Tensor) -> Tensor:
        return t.detach().clone().requires_grad_(next(numbers) == which)

    values, named = map_tensors((args, kwargs), fresh)
    try:
        return [t.requires_grad for t in results(op(*values, **named))]
    except (RuntimeError, NotImplementedError) as error:
        return type(error).__name__
