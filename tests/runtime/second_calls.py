"""What test_native_call.py runs: the second call of anything runs next to no Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import antorcha as torch
from antorcha.nn import functional as F
from tests.runtime.watch import functions_run

FEWEST = 10  # Python functions that make it too many
x, y, w, b = torch.randn(3, 4), torch.randn(3, 4), torch.randn(5, 4), torch.zeros(5)
g, t, out = torch.randn(3, 4, requires_grad=True), torch.tensor([0, 1, 2]), torch.empty(3, 4)
layer, norm = torch.nn.Linear(4, 5), torch.nn.LayerNorm(4)
image, kernel = torch.randn(1, 2, 5, 5), torch.randn(3, 2, 3, 3, requires_grad=True)


def increase() -> None:
    global x
    x += y


CASES: list[Callable[[], Any]] = [
    lambda: x + y, lambda: x * 2.0, lambda: 2 - x, lambda: x / y, lambda: x / 2, lambda: x // 2.0,
    lambda: x % 2.0, lambda: x**2, lambda: x @ w.t(), lambda: x < y, lambda: -x, lambda: g * y,
    increase, lambda: x.add_(0.5), lambda: x.mul_(y), lambda: torch.add(x, y, out=out),
    lambda: torch.add(x, y), lambda: torch.exp(x), lambda: x.exp(), lambda: g.tanh(),
    lambda: x.sum(), lambda: x.sum(0), lambda: x.mean(-1), lambda: x.max(1), lambda: x.std(),
    lambda: x.norm(), lambda: x.argmax(1), lambda: x.topk(2), lambda: x.sort(), lambda: x.cumsum(0),
    lambda: x.view(4, 3), lambda: x.reshape(12), lambda: x.t(), lambda: x.T, lambda: x.mT,
    lambda: x.unsqueeze(0), lambda: x.expand(2, 3, 4), lambda: x.chunk(2, 1), lambda: g.split(2),
    lambda: x[0], lambda: x[1:, 2], lambda: g[:, 1:], lambda: x[t], lambda: x.clone(),
    lambda: x.detach(), lambda: x.to(torch.float64), lambda: x.sum().item(), lambda: x.shape,
    lambda: torch.cat([x, y]), lambda: torch.stack([x, g]), lambda: torch.where(x > 0, g, y),
    lambda: torch.clamp(g, 0, 1), lambda: torch.maximum(x, y), lambda: torch.zeros(3, 4),
    lambda: torch.arange(5), lambda: torch.randn(3), lambda: torch.einsum("ij,kj->ik", x, y),
    lambda: F.linear(g, w, b), lambda: F.relu(x), lambda: F.softmax(g, -1), lambda: F.gelu(g),
    lambda: F.cross_entropy(g, t), lambda: F.mse_loss(g, y), lambda: F.layer_norm(g, (4,)),
    lambda: F.conv2d(image, kernel), lambda: F.max_pool2d(image, 2), lambda: F.embedding(t, w),
    lambda: layer(x), lambda: norm(g),
]  # fmt: skip

many = {}
for number, case in enumerate(CASES):
    case()
    ran = len(functions_run(case)) - 1
    if ran >= FEWEST:
        many[number] = ran
assert not many, many
print("done")
