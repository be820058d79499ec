"""Finalizers inside of calls: ``python -m tests.runtime.finalizer_behaviour KIND..``, for
test_finalizers.py.

CPython 3.11 collects garbage wherever an object is allocated, later ones between two instructions;
what a collection finalizes may do anything to the tensors of a call that is under way. Here a
callback of the collector stands for it: each kind of call is repeated, and the k-th collection of
the k-th call takes the operands' memory away (what lies there then is POISON), gives them other
data, or empties the list in which they came. The call may raise one of antorcha's own errors; else
its result is that of the operands as they were before, or as they are after.
"""

from __future__ import annotations

import contextlib
import gc
import math
import sys
from collections.abc import Callable
from typing import Any

import antorcha as torch
from antorcha.errors import AntorchaError
from antorcha.runtime.memory import alloc

F = torch.nn.functional
POISON = 3e33
MOST = 64  # collections of a call, at most, that are tried
PATIENCE = 6  # times that a call is made before, so that the native path serves it
Call = Callable[..., Any]
kept: list[Any] = []  # what was made does not end, so that nothing new is made of it
BIG = torch.empty(20_000)


def rows() -> list[Any]:
    return [torch.arange(12.0).reshape(3, 4) / 8 + 1, torch.arange(12.0).reshape(3, 4) / 4 + 1]


def square() -> list[Any]:
    return [torch.arange(16.0).reshape(4, 4) / 8, torch.arange(16.0).reshape(4, 4) / 16 + 1]


def leaves() -> list[Any]:
    return [t.requires_grad_() for t in rows()]


def large() -> list[Any]:
    return [torch.ones(40_000) * 2, torch.ones(40_000) * 3]


def indexed() -> list[Any]:
    return [*square(), torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])]


def grads(call: Call) -> Call:
    """The gradients of the first operands of a function of them."""

    def run(a: Any, b: Any) -> Any:
        call(a, b).sum().backward()
        return [a.grad, b.grad]

    return run


def set_first(a: Any, b: Any) -> Any:
    a[0] = b[0]
    return a


def listed(call: Call) -> Call:
    """The operands come in a list, which a finalizer may empty."""

    def run(*operands: Any) -> Any:
        together.extend(operands)
        try:
            return call(together)
        finally:
            together.clear()

    return run


together: list[Any] = []
KINDS: dict[str, list[tuple[Call, Call]]] = {
    "pointwise": [
        (rows, lambda a, b: a + b), (rows, lambda a, b: a * 2.5), (rows, lambda a, b: a.exp()),
        (rows, lambda a, b: torch.add(a, b, alpha=2)), (rows, lambda a, b: a < b),
        (rows, lambda a, b: torch.where(a > b, a, b)), (rows, lambda a, b: a * (1 + 2j)),
        (rows, lambda a, b: torch.clamp(a, 0.5, 1.5)), (large, lambda a, b: a + b),
        (rows, lambda a, b: torch.addcmul(a, a, b, value=0.5)), (rows, lambda a, b: a**2),
        (rows, lambda a, b: a.sigmoid()),
    ],
    "folds": [
        (rows, lambda a, b: a.sum()), (rows, lambda a, b: a.sum(0)), (rows, lambda a, b: a.max(0)),
        (rows, lambda a, b: a.softmax(-1)), (rows, lambda a, b: a.log_softmax(0)),
        (rows, lambda a, b: a.cumsum(1)), (rows, lambda a, b: a.sort()),
        (rows, lambda a, b: a.topk(2)), (rows, lambda a, b: a.var(0)),
        (rows, lambda a, b: a.argmax()), (large, lambda a, b: a.sum()),
        (rows, lambda a, b: a.norm()), (rows, lambda a, b: torch.var_mean(a, 0)),
    ],
    "views": [
        (rows, lambda a, b: a[1:]), (rows, lambda a, b: a[2]), (rows, lambda a, b: a.t()),
        (rows, lambda a, b: a.chunk(2)), (rows, lambda a, b: a.unbind()),
        (rows, lambda a, b: a.T), (rows, lambda a, b: a.view(-1)), (rows, lambda a, b: a[0][1]),
        (rows, lambda a, b: a.reshape(4, 3)), (rows, lambda a, b: a.detach()),
    ],
    "writes": [
        (rows, lambda a, b: a.add_(b)), (rows, lambda a, b: a.mul_(2.5)),
        (rows, lambda a, b: a.exp_()), (rows, set_first), (rows, lambda a, b: a.copy_(b)),
        (rows, lambda a, b: a.zero_()), (rows, lambda a, b: torch.add(a, b, out=b)),
        (rows, lambda a, b: torch.exp(a, out=b)), (large, lambda a, b: a.add_(b)),
        (rows, lambda a, b: torch.max(a, 0, out=(b, torch.empty(0, dtype=torch.int64)))),
        (indexed, lambda a, b, i: a.scatter_(0, i, 2.0)),
        (indexed, lambda a, b, i: a.index_put_((i[0],), b)),
    ],
    "factories": [
        (rows, lambda a, b: torch.zeros_like(a)), (rows, lambda a, b: torch.full_like(a, 2)),
        (rows, lambda a, b: a.clone()), (rows, lambda a, b: a.to(torch.float64)),
        (rows, lambda a, b: a.t().contiguous()), (rows, lambda a, b: torch.tensor(a.tolist())),
        (rows, lambda a, b: a.sum().item()), (rows, lambda a, b: torch.from_numpy(a.numpy())),
        (rows, lambda a, b: torch.from_dlpack(a)), (rows, lambda a, b: a[b > 2]),
        (rows, lambda a, b: a.unique()),
    ],
    "random": [
        (rows, lambda a, b: a.normal_()), (rows, lambda a, b: a.uniform_(1, 2)),
        (rows, lambda a, b: torch.bernoulli(a / 8)), (rows, lambda a, b: F.dropout(a, 0.5)),
        (rows, lambda a, b: torch.rand_like(a)), (rows, lambda a, b: torch.multinomial(a, 2)),
        (rows, lambda a, b: torch.normal(a, b)), (rows, lambda a, b: torch.randn(3, 4)),
        (rows, lambda a, b: a.t().normal_()), (rows, lambda a, b: a.bernoulli_(0.5)),
        (large, lambda a, b: a.normal_()),
    ],
    "products": [
        (square, lambda a, b: a @ b), (rows, lambda a, b: F.linear(a, b)),
        (square, lambda a, b: a.t() @ b), (square, lambda a, b: torch.addmm(a, a, b)),
        (rows, lambda a, b: F.conv1d(a[None], b[None, :, :2])), (square, lambda a, b: a @ b[0]),
        (square, lambda a, b: torch.linalg.inv(b + 9 * torch.eye(4))),
    ],
    "lists": [
        (rows, listed(torch.cat)), (rows, listed(torch.stack)),
        (rows, listed(lambda each: torch.cat(each, 1))), (rows, listed(torch.hstack)),
        (leaves, listed(torch.cat)), (leaves, listed(torch.stack)),
        (indexed, lambda a, b, i: a[i]), (indexed, lambda a, b, i: a.gather(0, i)),
        (indexed, lambda a, b, i: a.index_select(0, i[0])),
        (indexed, lambda a, b, i: torch.scatter(a, 0, i, b)),
        (indexed, lambda a, b, i: F.cross_entropy(a, i[0])), (rows, lambda a, b: F.mse_loss(a, b)),
        (rows, lambda a, b: a[a > 1.5]),
    ],
    "recorded": [
        (leaves, lambda a, b: a + b), (leaves, lambda a, b: a * b), (leaves, lambda a, b: a.exp()),
        (leaves, lambda a, b: a.sum(0)), (leaves, lambda a, b: a.softmax(-1)),
        (leaves, lambda a, b: a[1]), (leaves, lambda a, b: a.max(0)),
        (leaves, lambda a, b: F.mse_loss(a, b)), (leaves, lambda a, b: a.unbind()),
    ],
    "backward": [
        (leaves, grads(lambda a, b: a * b)), (leaves, grads(lambda a, b: (a + b).exp() * b)),
        (leaves, grads(lambda a, b: (a @ b.t()).softmax(-1) * 2)),
        (leaves, grads(lambda a, b: torch.cat([a, b]).max(0)[0])),
        (leaves, grads(F.mse_loss)), (leaves, grads(lambda a, b: (a / b)[1:].cumsum(0))),
        (leaves, grads(lambda a, b: F.layer_norm(a, (4,), b[0]) + a)),
    ],
}  # fmt: skip


# ---- what a finalizer does
def take_memory(operands: list[Any]) -> None:
    """Frees the operands' memory; whoever still reads it reads POISON."""
    for t in operands:
        if t.dtype is torch.float32:
            count = t.numel()
            try:
                t.untyped_storage().resize_(0)
            except (BufferError, RuntimeError):
                continue  # in use: that is what pins are for
            kept.append(torch.full((count,), POISON))


def give_data(operands: list[Any]) -> None:
    """Gives the operands other data; nobody else has the old."""
    for t in operands:
        if t.dtype is torch.float32:
            count = t.numel()
            t.data = torch.full((2, 2), 5.0)
            kept.append(torch.full((count,), POISON))


def give_alike(operands: list[Any]) -> None:
    """The same, of the same shape, but for the order of the elements in memory."""
    for t in operands:
        if t.dtype is torch.float32:
            t.data = torch.full(t.shape[::-1], 5.0).t()
            kept.append(torch.full((t.numel(),), POISON))


def empty_list(operands: list[Any]) -> None:
    """Drops the tensors of a list."""
    together.clear()
    operands.clear()


HARMS = (take_memory, give_data)
MORE_HARMS = {"lists": empty_list, "pointwise": give_alike, "recorded": give_alike}


class Trap:
    """Does harm at one of the collections."""

    def __init__(self) -> None:
        self.left = -1
        self.harm: Callable[[], None] | None = None

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start" and self.harm is not None:
            self.left -= 1
            if self.left < 0:
                harm, self.harm = self.harm, None
                harm()


trap = Trap()


def collecting(call: Call, operands: list[Any], at: int, harm: Call, odd: bool) -> tuple[Any, bool]:
    """A call's outcome, with harm done at one of its collections; was it reached?"""
    given = list(operands)
    trap.left, trap.harm = at, lambda: harm(operands)
    alloc.empty_cache()
    spare = [BIG.detach() for _ in range(600)], [torch.empty(20_000) for _ in range(300)]
    gc.collect(0)
    more = Trap() if odd else None  # the call's collections are one allocation earlier
    gc.enable()
    try:
        result = call(*given) if harm is not empty_list else call(*taken(given))
    except (AntorchaError, BufferError) as error:
        result = error
    finally:
        gc.disable()
    done = trap.harm is None
    trap.harm = None
    kept.extend((result, given, operands))
    del more, spare
    return result, done


def taken(operands: list[Any]) -> Any:
    """The operands, of which the caller's list keeps none."""
    while operands:
        yield operands.pop(0)


# ---- what has come of it
def seen(value: Any) -> Any:
    """The numbers of a result."""
    if isinstance(value, torch.Tensor):
        return [value.shape, value.detach().tolist()]
    if isinstance(value, (tuple, list)):
        return [seen(each) for each in value]
    return value


def numbers(value: Any) -> list[float]:
    if isinstance(value, (tuple, list)):
        return [x for each in value for x in numbers(each)]
    if not isinstance(value, (int, float, complex)):
        return []
    return [POISON if math.isnan(abs(value)) else abs(value)]


def outcome(value: Any) -> Any:
    """The same, or an error's name where they cannot be read (any more)."""
    try:
        return type(value).__name__ if isinstance(value, Exception) else seen(value)
    except AntorchaError as error:
        return type(error).__name__


def check(what: str, value: Any, expected: list[Any]) -> None:
    found = outcome(value)
    if isinstance(found, str):
        return
    worst = max(numbers(found), default=0.0)
    assert worst < 1e6, f"{what}: reads what was freed: {found!r:.300}"
    if expected:
        assert found in expected, f"{what}: {found!r:.300} is not among {expected!r:.600}"


def run(kind: str, which: int, make: Call, call: Call) -> int:
    """Every harm at every collection of a call; how many there were."""
    count = 0
    exact = kind in ("pointwise", "folds", "recorded")  # one plan each; others look twice
    for harm in (*HARMS, *[MORE_HARMS[kind] for _ in range(kind in MORE_HARMS)]):
        expected = []
        if exact:
            expected.append(outcome(call(*make())))
            operands = make()
            harm(operands)
            with contextlib.suppress(AntorchaError, TypeError):
                expected.append(outcome(call(*operands)))
        kept.extend([call(*make()) for _ in range(PATIENCE)])
        for odd in (False, True):
            for at in range(MOST):
                result, reached = collecting(call, make(), at, harm, odd)
                check(f"{kind} {which}, {harm.__name__} at {at}", result, expected)
                count += reached
                if not reached:
                    break
    return count


def main() -> None:
    gc.disable()
    gc.callbacks.append(trap)
    gc.set_threshold(1, 1 << 30, 1 << 30)
    for kind in sys.argv[1:]:
        count = 0
        for which, (make, call) in enumerate(KINDS[kind]):
            count += run(kind, which, make, call)
        assert count, f"{kind}: no collection has come"
    print("done")


if __name__ == "__main__":
    main()
