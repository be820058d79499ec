"""What test_subclass.py runs: the cost of plain tensors beside a subclass's instance, and after."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import antorcha as torch
from antorcha.overrides import TorchFunctionMode
from tests.runtime.watch import functions_run

a, b = torch.ones(4), torch.ones(4)
USES: dict[str, Callable[[], Any]] = {
    "a + b": lambda: a + b, "a - 1.0": lambda: a - 1.0, "2 * a": lambda: 2 * a,
    "a < b": lambda: a < b, "-a": lambda: -a, "a.exp()": lambda: a.exp(),
    "a.sum(0)": lambda: a.sum(0), "a.add_(b)": lambda: a.add_(b), "a.view": lambda: a.view(2, 2),
    "torch.add": lambda: torch.add(a, b), "torch.cat": lambda: torch.cat([a, b]),
    "torch.where": lambda: torch.where(a < b, a, b), "a[1]": lambda: a[1], "a.T": lambda: a.T,
    "a.shape": lambda: a.shape, "a.size": lambda: a.size(0), "a.dim": lambda: a.dim(),
    "a.dtype": lambda: a.dtype, "a.detach": lambda: a.detach(), "a[0].item": lambda: a[0].item(),
    "a.requires_grad": lambda: a.requires_grad, "repr": lambda: repr(a),
}  # fmt: skip
LATE: dict[str, Callable[[], Any]] = {  # met for the first time while there is an instance
    "torch.maximum": lambda: torch.maximum(a, b), "a.cos": lambda: a.cos(), "a | b": lambda: a > b,
    "a.mT": lambda: a.view(2, 2).mT, "a.mul_": lambda: a.mul_(1.0),
    "cross entropy": lambda: torch.nn.functional.mse_loss(a, b), "a[:2]": lambda: a[:2],
}  # fmt: skip


class Plain(torch.Tensor):
    pass


class Heard(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def costs(uses: dict[str, Callable[[], Any]]) -> dict[str, int]:
    """How many Python functions each runs, once what there is to learn is learnt."""
    for use in uses.values():
        for _ in range(12):
            use()
    return {name: len(functions_run(use)) - 1 for name, use in uses.items()}


before = costs(USES)
x = torch.ones(4).as_subclass(Plain)
x + a, x.exp(), torch.add(a, x), x[1], x.shape
beside, late = costs(USES), costs(LATE)
assert type(x + a) is type(a + x) is type(x.detach()) is Plain
del x
gc.collect()
after, late_after = costs(USES), costs(LATE)
with Heard():
    a + b, a.shape
last = costs(USES)
assert before == beside == after == last, (before, beside, after, last)
assert late == late_after, (late, late_after)
assert before["a + b"] == before["a.exp()"] == before["torch.add"] == before["a[1]"] == 0
assert set(late.values()) == {0}, late
print("done")
