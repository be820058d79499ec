"""Gradients at sizes never met, recorded and computed natively: those of the Python path."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import antorcha as torch
from antorcha.core.hooks import hooks
from antorcha.ops.kinds import replay_sizes
from antorcha.runtime.call import native, plan
from antorcha.runtime.memory.alloc import stats

pytestmark = pytest.mark.skipif(not native.ACTIVE, reason=native.why_not())
F = torch.nn.functional
SIZES = (*range(3, 30), 64, 65, 257, 1, 2, 700)
Tensor = torch.Tensor


def attention(x: Tensor, w: Tensor, n: int) -> Tensor:
    q, k, v = [(x @ w).view(n, 2, 4).transpose(0, 1) for _ in range(3)]
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def normalised(x: Tensor, w: Tensor, n: int) -> Tensor:
    return F.layer_norm(x @ w, (8,), w[0], w[1])


CASES: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "linear": lambda x, w, n: F.linear(x, w, w[0]),
    "sum": lambda x, w, n: x.sum(0),
    "mean": lambda x, w, n: (x @ w).mean(),
    "mean of rows": lambda x, w, n: x.mean(-1, keepdim=True),
    "var": lambda x, w, n: x.var(0),
    "std": lambda x, w, n: x.std(),
    "broadcast": lambda x, w, n: x * w[0] + w[1] / 3 - x.t().contiguous().t(),
    "number": lambda x, w, n: torch.clamp(x * 2.5, 0.25, 0.5),
    "relu": lambda x, w, n: F.relu(x @ w),
    "gelu": lambda x, w, n: F.gelu(x),
    "where": lambda x, w, n: torch.where(x > 0.5, x, 0.0),
    "softmax": lambda x, w, n: x.softmax(-1),
    "softmax of columns": lambda x, w, n: x.log_softmax(0),
    "layer_norm": normalised,
    "attention": attention,
    "bmm": lambda x, w, n: torch.bmm(x.view(n, 2, 4), w.view(8, 2, 4)[:1].expand(n, 2, 4).mT),
    "matmul": lambda x, w, n: x @ x.t(),
    "view": lambda x, w, n: x.view(n, 2, 4).permute(1, 0, 2).reshape(2 * n, 4),
    "expand": lambda x, w, n: w[:1].expand(n, 8),
    "cat": lambda x, w, n: torch.cat([x, w, x], 0),
    "stack": lambda x, w, n: torch.stack([x, x * 2]),
    "chunk": lambda x, w, n: x.chunk(2, 1)[1],
    "split": lambda x, w, n: x.tensor_split(3)[0],
    "slice": lambda x, w, n: x[1:, ::2],
    "select": lambda x, w, n: x[0] * x[-1],
    "embedding": lambda x, w, n: F.embedding(torch.arange(n) % 8, w),
    "gather": lambda x, w, n: x.gather(1, (torch.arange(n) % 8)[:, None]),
    "index": lambda x, w, n: x[torch.arange(n) // 2],
    "max": lambda x, w, n: x.max(0)[0],
    "sort": lambda x, w, n: x.sort(0)[0],
    "cumsum": lambda x, w, n: x.cumsum(0),
    "masked_fill": lambda x, w, n: x.masked_fill(x > 0.5, 2.0),
    "pad": lambda x, w, n: F.pad(x, (1, 2)),
    "cross entropy": lambda x, w, n: F.cross_entropy(x, torch.arange(n) % 8),
    "mse": lambda x, w, n: F.mse_loss(x @ w, x.detach()),
    "max_pool": lambda x, w, n: F.max_pool1d(x, 2),
    "conv1d": lambda x, w, n: F.conv1d(x.t()[None], w[:, :, None]),
    "cast": lambda x, w, n: x.double() * 2,
    "half": lambda x, w, n: (x.half() * 2).float(),
    "several results": lambda x, w, n: torch.stack(x.topk(2)[:1]),
    "used twice": lambda x, w, n: x * x + x.sigmoid() * x,
}
NOT_ALL = {
    "conv1d": "its gradient looks at sizes",
    "split": "how many results there are depends on sizes",
}


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    plan.flush()
    yield
    plan.flush()


def gradients(case: Callable[[Tensor, Tensor, int], Tensor], n: int) -> list[Any]:
    torch.manual_seed(n)
    x, w = torch.rand(n, 8).requires_grad_(), torch.rand(8, 8).requires_grad_()
    out = case(x, w, n)
    out.backward(torch.rand(out.shape, dtype=out.dtype) if out.ndim else None)
    found = [t for t in (out, x.grad, w.grad) if t is not None]
    return [(str(t.tolist()), t.stride(), t.dtype) for t in found]  # (nan is not nan)


@pytest.fixture
def by_rule(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ops whose rules have been asked for gradients."""
    torch.ones(2, requires_grad=True).sum().backward()  # the engine is there
    asked: list[str] = []

    def meet(node: Any, grads: Any) -> None:
        asked.append(node.op.name)
        replay_sizes.meet(node, grads)

    monkeypatch.setattr(hooks, "meet_size", meet)
    return asked


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_python_path(name: str, by_rule: list[str]) -> None:
    for n in SIZES:
        by_rule.clear()
        ours = gradients(CASES[name], n)
        assert n != 29 or name in NOT_ALL or not by_rule, (by_rule, replay_sizes.refused)
        with native.off():
            assert ours == gradients(CASES[name], n), n


@pytest.mark.parametrize("name", [*CASES, "max_pool2d"])
def test_who_wants_gradients_gets_them_where_others_did_not(name: str) -> None:
    """A function may run other ops for those who want gradients."""
    pooled = lambda x, w, n: F.max_pool2d(x.view(n, 1, 2, 4), 2)  # noqa: E731
    case = CASES.get(name, pooled)
    for n in range(3, 14):
        case(torch.rand(n, 8), torch.rand(8, 8), n)
    for n in range(14, 24):
        ours = gradients(case, n)
        with native.off():
            assert ours == gradients(case, n), n


def test_a_graph_is_kept_as_ever() -> None:
    """What was written to since, or let go of, is refused at sizes never met, too."""
    w = torch.rand(8, 8).requires_grad_()
    for n in range(3, 40):
        x = torch.rand(n, 8)
        y = (x * w[0]).sigmoid()
        loss = (y * y).sum()
        if n % 5 == 0:
            y.detach().mul_(2)
            with pytest.raises(RuntimeError, match="modified by an inplace"):
                loss.backward()
            continue
        loss.backward(retain_graph=n % 2 == 0)
        if n % 2:
            with pytest.raises(RuntimeError, match="second time"):
                loss.backward()
        else:
            loss.backward()


def test_second_derivatives_are_those_of_the_python_path() -> None:
    def second(n: int) -> list[Any]:
        x = (torch.arange(n * 3.0).view(n, 3) / n).requires_grad_()
        w = torch.ones(3, 3).requires_grad_()
        (first,) = torch.autograd.grad(((x @ w).sin() ** 2).sum(), x, create_graph=True)
        first.pow(2).mean().backward()
        return [first.tolist(), x.grad.tolist(), w.grad.tolist()]

    for n in range(3, 40):
        ours = second(n)
        with native.off():
            assert ours == second(n)


def of_many_kinds(n: int) -> list[Any]:
    x = torch.rand(n, 8).requires_grad_()
    return [x.view(n, 2, 4), x.softmax(-1), x[1:], x.chunk(2, 1)[1], x.expand(2, n, 8), x.t() @ x]


def test_what_a_node_shows_is_true() -> None:
    for n in range(3, 30):
        ours = [out.grad_fn.plan for out in of_many_kinds(n)]
        with native.off():
            theirs = [out.grad_fn.plan for out in of_many_kinds(n)]
        for made, other in zip(ours, theirs, strict=True):
            for field in ("outs", "out", "tensors", "statics", "kind", "delta", "post_names"):
                assert getattr(made, field) == getattr(other, field), (n, field)


def test_nothing_is_left() -> None:
    w = torch.rand(8, 8).requires_grad_()

    def round_of(first: int) -> None:
        for n in range(first, first + 300):
            F.cross_entropy((torch.ones(n, 8) @ w).relu() + w[0], torch.arange(n) % 8).backward()
            w.grad = None

    round_of(1000)
    plan.flush()
    gc.collect()
    before = stats().live
    round_of(3000)
    plan.flush()
    gc.collect()
    assert abs(stats().live - before) < 10_000
