"""``x[i]`` served natively, for sizes never met: the same views as the Python path makes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.core.hooks import hooks
from antorcha.runtime.call import native, plan
from antorcha.runtime.call.native import layouts as native_layouts
from antorcha.runtime.memory import layout as layouts

pytestmark = pytest.mark.skipif(not native.ACTIVE, reason=native.why_not())


def bases(draw: random.Random) -> torch.Tensor:
    """A tensor that lies in one of many ways."""
    shape = [draw.choice((0, 1, 1, 2, 3, 5, 9)) for _ in range(draw.randrange(1, 5))]
    x = torch.arange(int(np.prod(shape)) + 3)[3:].view(shape)
    way = draw.randrange(4)
    if way == 1:
        x = x.permute(draw.sample(range(x.ndim), x.ndim))
    elif way == 2 and 1 in shape:
        x = x.expand([4 if n == 1 else -1 for n in shape])
    elif way == 3:
        x = x[..., ::2]
    return x


def indices(draw: random.Random, shape: Any) -> Any:
    """Integers, slices and ``...``, some of them outside."""
    items: list[Any] = []
    for n in shape[: draw.randrange(1, len(shape) + 1)]:
        if draw.random() < 0.4:
            items.append(draw.randrange(-n - 1, n + 1))
        else:
            bounds = [draw.choice((None, draw.randrange(-n - 2, n + 3))) for _ in range(2)]
            items.append(slice(*bounds, draw.choice((None, 1, 2, 3, 7))))
    if draw.random() < 0.3:
        items.insert(draw.randrange(len(items) + 1), ...)
    return items[0] if len(items) == 1 and draw.random() < 0.5 else tuple(items)


def facts(x: torch.Tensor, index: Any) -> Any:
    try:
        made = x[index]
    except (IndexError, RuntimeError) as error:
        return type(error), str(error)
    lay = made._layout
    parts = [getattr(lay, name) for name in layouts.Layout.__slots__ if name not in _LATER]
    assert type(lay.shape) is type(x.shape)
    return parts, made.storage_offset(), made._base is (x if x._base is None else x._base)


_LATER = ("form", "numbers")  # (found when somebody asks for them)


def test_views_are_those_of_the_python_path() -> None:
    draw = random.Random(7)
    served = 0
    for _ in range(6000):
        x = bases(draw)
        index = indices(draw, x.shape)
        before = native_layouts.created.np[0]
        ours = facts(x, index)
        served += int(native_layouts.created.np[0] != before)
        with native.off():
            assert ours == facts(x, index), (x.shape, x.stride(), index)
    assert served > 300  # that many layouts were made natively


def test_a_layout_is_one_object_whoever_makes_it() -> None:
    plan.flush()  # (or it comes in between, when the tests before have made many plans)
    x = torch.arange(10_000)
    for n in range(2, 400):
        natively = x[:n]._layout
        with native.off():
            assert x[:n]._layout is natively
        assert layouts.layout((n,), (1,), torch.int64, x.device) is natively


def test_a_layout_that_python_made_first_is_found_by_machine_code() -> None:
    plan.flush()
    x = torch.arange(10_000)
    wrong = []
    for n in range(2, 400):
        by_python = layouts.layout((n,), (1,), torch.int64, x.device)
        if x[:n]._layout is not by_python:
            wrong.append(n)
    assert not wrong


def test_layouts_that_somebody_has_stay_when_others_take_their_place() -> None:
    """A place gives its layout's memory to the next one only where nobody else has it."""
    x = torch.zeros(7000, 3)
    held: list[tuple[int, Any]] = []
    for n in range(2, 7000):
        view = x[:n]
        match n % 5:
            case 0:
                held.append((n, view))
            case 1:
                held.append((n, view._layout))
            case 2:
                held.append((n, view.shape))
            case 3:
                held.append((n, view.stride()))
    wrong = []
    for n, it in held:
        shape = it if n % 5 in (2, 3) else it.shape
        wanted = (3, 1) if n % 5 == 3 else (n, 3)
        if tuple(shape) != wanted or (n % 5 == 1 and (it.numel, it.nbytes) != (3 * n, 12 * n)):
            wrong.append((n, it))
    assert not wrong


def test_a_layout_that_another_thread_makes_first_is_the_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan.flush()
    device, others = torch.zeros(1).device, []

    def meanwhile(_: layouts.Layout) -> None:
        monkeypatch.undo()
        others.append(layouts.layout((3, 977), (977, 1), torch.float32, device))

    monkeypatch.setattr(hooks, "recent_layout", meanwhile)
    assert layouts.layout((3, 977), (977, 1), torch.float32, device) is others[0]


def test_many_layouts_are_forgotten_with_the_plans() -> None:
    plan.flush()
    native_layouts.interned_count.np[0] = native_layouts.MOST_INTERNED - 10
    x = torch.arange(1000)
    for n in range(100, 140):
        first = x[:n]._layout
        assert x[:n]._layout is first  # (and from here on it is kept)
    kept = [x[:n] for n in range(100, 140)]
    assert native_layouts.interned_count.np[0] <= 40
    assert layouts.table_size() <= 60
    assert [len(v) for v in kept] == [*range(100, 140)]
    assert [int(v.sum()) for v in kept] == [n * (n - 1) // 2 for n in range(100, 140)]


def test_a_layout_that_is_met_once_is_not_kept() -> None:
    plan.flush()
    x = torch.arange(100_000)
    for n in range(2, 50_000):
        x[:n]
    assert layouts.table_size() < 100
