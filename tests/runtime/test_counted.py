"""Results whose sizes depend on the data: machine code gives what Python gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import antorcha as torch
from antorcha.runtime.call import native
from antorcha.runtime.call.native import methods
from antorcha.runtime.call.native.places import Quick
from antorcha.runtime.memory.alloc import stats

pytestmark = pytest.mark.skipif(not native.ACTIVE, reason=native.why_not())
Tensor = torch.Tensor

CALLS: dict[str, Callable[[Tensor], Any]] = {
    "bincount": lambda x: torch.bincount(x),
    "bincount of many": lambda x: torch.bincount(x, minlength=300),
    "weights": lambda x: torch.bincount(x, weights=x * 0.5),
    "unique": lambda x: x.unique(),
    "with all": lambda x: torch.unique(x, return_inverse=True, return_counts=True),
    "consecutive": lambda x: torch.unique_consecutive(x),
    "mask": lambda x: x[x > 5],
    "masked_select": lambda x: torch.masked_select(x, x > 5),
    "gradient": lambda x: gradient(x),
}


def gradient(x: Tensor) -> list[Tensor]:
    leaf = (x * 1.5).requires_grad_()
    taken = torch.masked_select(leaf, x > 5)
    taken.sum().backward()
    assert leaf.grad is not None
    return [taken, leaf.grad]


def samples() -> list[Tensor]:
    torch.manual_seed(0)
    some = [torch.randint(0, most, (20,)) for most in (1, 7, 100, 250)]
    return [*some, torch.randint(0, 9, (40,))[::2], torch.zeros(0, dtype=torch.int64), some[2]]


def outcome(call: Callable[[Tensor], Any], x: Tensor) -> Any:
    try:
        found = call(x)
    except Exception as error:
        return type(error), str(error)
    several = found if isinstance(found, (tuple, list)) else [found]
    return type(found), [(t.tolist(), t.dtype, t.stride(), t.requires_grad) for t in several]


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_the_python_path(name: str) -> None:
    for x in samples() * 3:
        ours = outcome(CALLS[name], x)
        with native.off():
            assert ours == outcome(CALLS[name], x)


def test_what_was_met_is_served() -> None:
    x = torch.tensor([3, 1, 3])
    for _ in range(4):
        x.bincount()
    at = Quick.fields["counts"][0] // 8
    served = lambda: next(memory[at] for name, memory in methods.quicks if name == "bincount")  # noqa: E731
    before = served()
    assert x.bincount().tolist() == [0, 1, 0, 2]
    assert served() == before + 1


def test_what_is_refused_says_so_and_leaves_nothing() -> None:
    for _ in range(4):
        torch.tensor([1, 2]).bincount()
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.tensor([1, -2]).bincount()
    with pytest.raises(RuntimeError):
        torch.tensor([1, 1 << 58]).bincount()
    live = stats().live
    for _ in range(100):
        with pytest.raises(RuntimeError, match="non-negative"):
            torch.tensor([1, -2]).bincount()
        torch.tensor([1, 2]).bincount()
        torch.tensor([1, 2]).unique()
    assert stats().live == live
