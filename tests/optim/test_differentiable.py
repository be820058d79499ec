"""``differentiable=True``: gradients through a step, of parameters, state and settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha

CASES: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("SGD", {"lr": 0.9}, ()),
    ("SGD", {"lr": 0.9, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
     ("momentum_buffer",)),
    ("SGD", {"lr": "tensor", "momentum": 0.5, "maximize": True}, ("momentum_buffer",)),
    ("SGD", {"lr": 0.9, "weight_decay": "tensor"}, ()),
    ("Adam", {"lr": 0.9}, ("exp_avg", "exp_avg_sq")),
    ("Adam", {"lr": 0.9, "amsgrad": True, "weight_decay": 0.1},
     ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")),
    ("Adam", {"lr": "tensor", "betas": ("tensor", "tensor")}, ("exp_avg", "exp_avg_sq")),
    ("AdamW", {"lr": "tensor", "weight_decay": 0.1}, ("exp_avg", "exp_avg_sq")),
    ("Adagrad", {"lr": 0.9}, ("sum",)),
    ("RMSprop", {"lr": 0.9, "centered": True, "momentum": 0.1, "weight_decay": 0.1},
     ("square_avg", "momentum_buffer", "grad_avg")),
    ("Adadelta", {"lr": 0.9, "weight_decay": 0.1}, ("square_avg", "acc_delta")),
    ("Adamax", {"lr": 0.9, "weight_decay": 0.1}, ("exp_avg", "exp_inf")),
    ("NAdam", {"lr": 0.9, "weight_decay": 0.1}, ("exp_avg", "exp_avg_sq")),
    ("NAdam", {"lr": 0.9, "weight_decay": 0.1, "decoupled_weight_decay": True},
     ("exp_avg", "exp_avg_sq")),
    ("RAdam", {"lr": 0.9, "weight_decay": 0.1}, ("exp_avg", "exp_avg_sq")),
    ("Rprop", {"lr": 0.9}, ("prev", "step_size")),
]  # fmt: skip


def draw(seed: int) -> Any:
    return np.random.default_rng(seed).uniform(0.2, 1.0, 6)


def gradients(library: Any, name: str, options: dict[str, Any], buffers: tuple[str, ...]) -> Any:
    """Of a sum over the parameter and the state after a step. (After two, PyTorch finds for some
    that its own step wrote over what the derivative needs.)"""
    leaves: list[Any] = []

    def leaf(value: Any) -> Any:
        made = library.tensor(value, dtype=library.float64, requires_grad=True)
        leaves.append(made)
        return made

    def setting(value: Any) -> Any:
        return tuple(map(setting, value)) if isinstance(value, tuple) else (
            leaf(0.6) if value == "tensor" else value)  # fmt: skip

    given = {key: setting(value) for key, value in options.items()}
    p = leaf(draw(0)).clone()
    grad = leaf(draw(1))
    optimizer = getattr(library.optim, name)([p], differentiable=True, **given)
    state = {
        key: leaf(draw(3 + k) * (0.1 if key == "grad_avg" else 1)).clone()
        for k, key in enumerate(buffers)
    }
    if name != "SGD":
        state["step"] = library.tensor(10.0, dtype=library.float64)
    if name == "NAdam":
        state["mu_product"] = library.tensor(0.5, dtype=library.float64)
    optimizer.state[p].update(state)
    p.grad = grad.clone()
    optimizer.step()
    weights = library.tensor(draw(9))
    total = (p * weights).sum()
    for k, key in enumerate(buffers):
        total = total + (k + 2) * (optimizer.state[p][key] * weights).sum()
    found = library.autograd.grad(total, leaves, allow_unused=True)
    return [0.0 if g is None else g.numpy() for g in found], p.detach().numpy()


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "options", "buffers"), CASES)
def test_gradients_through_a_step(
    name: str, options: dict[str, Any], buffers: tuple[str, ...]
) -> None:
    torch = pytest.importorskip("torch")
    mine, p = gradients(antorcha, name, options, buffers)
    theirs, q = gradients(torch, name, options, buffers)
    np.testing.assert_allclose(p, q, rtol=1e-9)
    for k, (x, y) in enumerate(zip(mine, theirs, strict=True)):
        np.testing.assert_allclose(x + 0 * y, y + 0 * x, rtol=1e-6, atol=1e-9, err_msg=str(k))


def test_a_learning_rate_is_learned() -> None:
    torch: Any = antorcha
    rate = torch.tensor(0.01, requires_grad=True)
    for _ in range(20):
        w = torch.ones(3, requires_grad=True).clone()
        optimizer = torch.optim.SGD([w], lr=rate, differentiable=True)
        for _ in range(3):
            copy = w.clone()  # the step writes over w
            (grad,) = torch.autograd.grad((copy * copy).sum(), [copy], create_graph=True)
            w.grad = grad
            optimizer.step()
        (slope,) = torch.autograd.grad((w * w).sum(), [rate])
        with torch.no_grad():
            rate -= 0.005 * slope
    assert rate.item() > 0.05


def test_a_leaf_is_refused_as_any_write_would_be() -> None:
    torch: Any = antorcha
    w = torch.nn.Parameter(torch.ones(1))
    w.grad = torch.ones(1)
    with pytest.raises(RuntimeError, match="leaf"):
        torch.optim.SGD([w], lr=0.1, differentiable=True).step()
    assert w.item() == 1
