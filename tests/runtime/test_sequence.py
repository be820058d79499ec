"""Sequences: results, order, what is dropped and when, failures on the way."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from antorcha.lang.native import f32, i64, native, ptr, raw
from antorcha.runtime.launch import make_launch
from antorcha.runtime.memory.storage import Storage, as_numpy, new_storage
from antorcha.runtime.sequence import SMALL, Sequence, sequence_of

N = 6


@native
def add(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    o = ptr[f32](bufs[0])
    a = ptr[f32](bufs[1])
    b = ptr[f32](bufs[2])
    for i in range(desc[0]):
        o[i] = a[i] + b[i]
    return desc[1]


def adding(code: int = 0) -> Any:
    slot = (4, 0, 4 * N)
    return make_launch(add.spec().addr, [N, code], [slot], [slot, slot], N)


def floats(storage: Storage) -> Any:
    return as_numpy(storage, 0, (storage.nbytes // 4,), (4,), np.float32)


def filled(*values: float) -> Storage:
    made = new_storage(4 * len(values))
    floats(made)[:] = values
    return made


def read(storage: Storage) -> list[float]:
    return [float(x) for x in floats(storage)]


ONE = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)


def test_steps_run_in_order() -> None:
    plus = adding()
    steps = Sequence(2)
    zero = steps.constant(0)
    twice = steps.run(plus.fresh, 0, 1, 0, 1)
    room = steps.allocate(4 * N, new_storage)
    steps.into(plus.into, room, zero, twice, zero, 0, 1)
    run = steps.bound(room)
    assert read(run(filled(*ONE), 0)) == [3 * x for x in ONE]
    assert sequence_of(run) is not None
    assert sequence_of(plus.fresh) is None


def test_offsets_move() -> None:
    plus = adding()
    steps = Sequence(2)
    further = steps.move(1, 2)
    assert steps.move(1, 0) == 1
    run = steps.bound(steps.run(plus.fresh, 0, further, 0, further))
    given = filled(0.0, *ONE, 0.0)
    assert read(run(given, -1)) == [2 * x for x in ONE]
    with pytest.raises(IndexError, match="outside its storage"):
        run(given, 1)


def test_a_step_may_be_any_callable() -> None:
    seen: list[Any] = []
    steps = Sequence(1)
    made = steps.run(lambda *given: seen.append(given) or "made", 0, steps.constant("fixed"))
    steps.into(lambda *given: seen.append(given), made)
    assert steps.bound(made)(5) == "made"
    assert seen == [(5, "fixed"), ("made",)]
    assert Sequence(0).bound()() is None


def test_what_is_not_read_again_is_dropped_at_once() -> None:
    class Marked:
        pass

    alive: list[int] = []
    kept: list[Any] = []

    def make(*_: Any) -> Marked:
        made = Marked()
        kept.append(weakref.ref(made))
        return made

    steps = Sequence(0)
    first = steps.run(make)
    second = steps.run(make, first)
    steps.into(lambda *_: alive.append(sum(r() is not None for r in kept)))
    run = steps.bound(second)
    assert isinstance(run(), Marked)
    assert alive == [1]
    assert [r() for r in kept] == [None, None]


@pytest.mark.parametrize("broken", ["code", "callable", "count"])
def test_a_failing_step_leaves_nothing(broken: str) -> None:
    plus, bad = adding(), adding(7 if broken == "code" else 0)

    def explode(*_: Any) -> None:
        raise KeyError("in a step")

    steps = Sequence(2)
    zero = steps.constant(0)
    twice = steps.run(plus.fresh, 0, 1, 0, 1)
    step: Callable[..., Any] = explode if broken == "callable" else bad.fresh
    more = steps.run(step, *((twice, zero) if broken == "count" else (twice, zero, 0, 1)))
    run = steps.bound(steps.run(plus.fresh, twice, zero, more, zero))
    given = filled(*ONE)
    before = sys.getrefcount(given)
    for _ in range(3):
        with pytest.raises((KeyError, RuntimeError, TypeError)):
            run(given, 0)
    assert sys.getrefcount(given) == before
    with pytest.raises(TypeError, match="takes 2 arguments, not 1"):
        run(given)


def test_many_places_take_a_block() -> None:
    plus = adding()
    steps = Sequence(2)
    zero = steps.constant(0)
    at = steps.run(plus.fresh, 0, 1, 0, 1)
    for _ in range(SMALL):
        at = steps.run(plus.fresh, at, zero, 0, 1)
    assert read(steps.bound(at)(filled(*ONE), 0)) == [(SMALL + 2) * x for x in ONE]


def test_it_owns_what_it_runs() -> None:
    def build() -> Callable[..., Any]:
        steps = Sequence(2)
        made = steps.run(adding().fresh, 0, 1, 0, 1)
        return steps.bound(steps.run(adding().fresh, made, steps.constant(0), 0, 1))

    run = build()
    gc.collect()
    assert read(run(filled(*ONE), 0)) == [3 * x for x in ONE]


@pytest.mark.parametrize("device", ["meta", "reference"])
def test_many_sizes_of_ops_of_several_kernels(device: str) -> None:
    """Scratch memory of a device without native kernels has a size of its own in every plan."""
    import antorcha as torch

    def made(*shape: int, **how: Any) -> Any:
        return torch.ones(*shape, device=device, **how)

    F: Any = torch.nn.functional
    for n in range(3, 12):
        labels = made(n, dtype=torch.int64)
        assert F.cross_entropy(made(n, 3), labels, reduction="none").shape == (n,)
        assert F.nll_loss(made(n, 3), labels).shape == ()
        assert torch.var_mean(made(n, 3), 1)[0].shape == (n,)
        assert F.batch_norm(made(n, 3), None, None, training=True).shape == (n, 3)
