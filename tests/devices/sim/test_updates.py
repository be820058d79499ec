"""Optimizers' steps on the simulator, where a launch updates many parameters, beside the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import antorcha as t
from antorcha.devices.gpu import fallback, templates
from antorcha.devices.sim.device import SimulatedBackend
from antorcha.lang import kernels
from antorcha.runtime.call import plan

optim = t.optim
OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "sgd": lambda p, **kw: optim.SGD(p, **kw),
    "sgd momentum": lambda p, **kw: optim.SGD(p, momentum=0.9, nesterov=True, **kw),
    "adagrad": lambda p, **kw: optim.Adagrad(p, lr_decay=0.1, **kw),
    "adam": lambda p, **kw: optim.Adam(p, weight_decay=0.1, **kw),
    "adam amsgrad": lambda p, **kw: optim.Adam(p, amsgrad=True, maximize=True, **kw),
    "adamw": lambda p, **kw: optim.AdamW(p, weight_decay=0.1, **kw),
    "adamax": lambda p, **kw: optim.Adamax(p, **kw),
    "adadelta": lambda p, lr, **kw: optim.Adadelta(p, lr=lr * 20, **kw),
    "asgd": lambda p, **kw: optim.ASGD(p, lambd=0.01, t0=2, weight_decay=0.1, **kw),
    "nadam": lambda p, **kw: optim.NAdam(p, weight_decay=0.1, decoupled_weight_decay=True, **kw),
    "radam": lambda p, **kw: optim.RAdam(p, **kw),
    "rmsprop": lambda p, **kw: optim.RMSprop(p, momentum=0.9, centered=True, **kw),
    "rprop": lambda p, **kw: optim.Rprop(p, **kw),
}
COUNTING = tuple(OPTIMIZERS)[3:]
"""Those with ``capturable``."""
random = np.random.default_rng(3)


def values_of(shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    return [random.normal(size=shape) for shape in shapes]


SHAPES = [(3, 5), (), (1,), (1030,), (7, 1), (2, 3, 4), (0, 3), *[(k + 1,) for k in range(30)]]


def steps_of(
    make: Callable[..., Any], device: str, dtype: Any, start: Sequence[Any],
    grads: Sequence[Sequence[Any]], **options: Any,
) -> list[Any]:  # fmt: skip
    """The parameters after some steps."""
    params = [t.tensor(x).to(dtype).to(device).requires_grad_() for x in start]
    given = options.pop("lr", 0.05)
    if options.pop("tensor", False):
        given = t.tensor(given, dtype=t.float64, device=device)
    optimizer = make(params, lr=given, **options)
    for every in grads:
        for k, (p, g) in enumerate(zip(params, every, strict=True)):
            grad = t.tensor(g).to(dtype).to(device)
            p.grad = grad.t().contiguous().t() if k == 0 else grad  # one that lies otherwise
        optimizer.step()
    if options.get("capturable"):
        for p in params:
            assert optimizer.state[p]["step"].device.type == device
            assert optimizer.state[p]["step"].item() == len(grads)
    return [p.detach().cpu().to(t.float64).numpy() for p in params]


def worst(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    return max([float(np.max(np.abs(a - b), initial=0)) for a, b in zip(ours, theirs, strict=True)])


def test_steps_as_on_the_cpu() -> None:
    start = values_of(SHAPES)
    grads = [values_of(SHAPES) for _ in range(8)]
    wrong = []
    for name, make in OPTIMIZERS.items():
        for dtype, most in ((t.float32, 3e-6), (t.float64, 1e-13), (t.bfloat16, 0.04)):
            few = start[:12], [g[:12] for g in grads]
            given = (start, grads) if dtype is t.float32 else few
            wanted = steps_of(make, "cpu", dtype, *given)
            fallback.noted.clear()
            ways: dict[str, Any] = {"": {}}
            if name in COUNTING:
                ways["capturable"] = {"capturable": True}
                if name != "rprop":
                    ways["lr a tensor"] = {"capturable": True, "tensor": True}
            for way, options in ways.items():
                found = worst(steps_of(make, "sim", dtype, *given, **options), wanted)
                moved = worst(wanted, given[0])
                # (what nadam and asgd count is float32, and what radam is rectified by nearly 0)
                allowed = max(most, {"nadam": 1e-7, "asgd": 1e-7, "radam": 3e-5}.get(name, 0))
                allowed = allowed if way else most
                if not found <= allowed or not moved > 0.01 or "Updates" in fallback.noted:
                    wrong.append(f"{name} {dtype} {way}: {found} {dict(fallback.noted)}")
    assert not wrong, "\n".join(wrong)


def test_launches_and_what_they_leave() -> None:
    """Few launches; a learning rate that changes; versions; a checkpoint; options as in PyTorch."""
    params = [t.zeros(5).to("sim").requires_grad_() for _ in range(60)]
    lr = t.tensor(0.5).to("sim")
    optimizer = optim.Adam(params, lr=lr, capturable=True)

    def step(of: Any) -> int:
        launched = []
        launch = SimulatedBackend.launch
        for p in params:
            p.grad = t.ones(5).to("sim")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                SimulatedBackend, "launch", lambda *a: (launched.append(a[1]), launch(*a))[1]
            )
            of.step()
        return launched.count("Updates")

    step(optimizer)
    version = params[0]._version
    assert 0 < step(optimizer) <= 6
    assert params[0]._version == version + 1
    assert params[59].tolist() == pytest.approx([-1.0] * 5)
    lr.fill_(0.25)
    step(optimizer)
    assert params[31].tolist() == pytest.approx([-1.25] * 5)
    state = optimizer.state_dict()
    other = optim.Adam(params, lr=lr, capturable=True)
    other.load_state_dict({**state, "state": {
        k: {**s, "step": s["step"].cpu()} for k, s in state["state"].items()
    }})  # fmt: skip
    assert other.state[params[3]]["step"].device.type == "sim"
    step(other)
    assert other.state[params[3]]["step"].item() == 4
    assert params[3].tolist() == pytest.approx([-1.5] * 5)
    plain = optim.Adam(params, lr=0.25)
    plain.load_state_dict({**optim.Adam(params).state_dict(), "state": other.state_dict()["state"]})
    step(plain)
    assert plain.state[params[3]]["step"].item() == 5
    here = [t.zeros(5).requires_grad_()]
    here[0].grad = t.ones(5)
    with pytest.raises(AssertionError, match="capturable=True, params and state_steps must be on"):
        optim.Adam(here, capturable=True).step()
    late = optim.Adam(params, lr=0.25)
    step(late)
    late.param_groups[0]["capturable"] = True
    with pytest.raises(AssertionError, match="capturable=True, params and state_steps must be on"):
        step(late)
    wrong = t.zeros(5).to("sim").requires_grad_()
    wrong.grad = t.ones(5).to("sim")
    bad = optim.SGD([wrong], momentum=0.5)
    bad.state[wrong]["momentum_buffer"] = t.zeros(4).to("sim")
    with pytest.raises(RuntimeError, match="its state"):
        bad.step()


def test_functional_form_and_groups() -> None:
    """The functional form advances counts on the device; groups have settings of their own."""
    p = [t.zeros(3).to("sim"), t.zeros(2, 2).to("sim")]
    grads = [t.ones_like(x) for x in p]
    means, squares = [t.zeros_like(x) for x in p], [t.zeros_like(x) for x in p]
    counts = [t.tensor(2.0).to("sim") for _ in p]
    optim.adam.adam(
        p, grads, means, squares, [], counts, capturable=True, amsgrad=False, beta1=0.9,
        beta2=0.99, lr=0.1, weight_decay=0.0, eps=1e-8, maximize=False,
    )  # fmt: skip
    assert [c.item() for c in counts] == [3.0, 3.0]
    size = 0.1 / (1 - 0.9**3) * 0.1 / (0.01**0.5 / (1 - 0.99**3) ** 0.5)
    assert p[1].flatten().tolist() == pytest.approx([-size] * 4, rel=1e-5)
    both = [t.zeros(3).to("sim").requires_grad_() for _ in range(2)]
    groups = [{"params": both[:1], "lr": 0.1}, {"params": both[1:], "lr": 0.2}]
    optimizer = optim.SGD(groups)
    for x in both:
        x.grad = t.ones(3).to("sim")
    optimizer.step()
    assert both[0].tolist() == pytest.approx([-0.1] * 3)
    assert both[1].tolist() == pytest.approx([-0.2] * 3)


def test_norms_and_scaling_of_many() -> None:
    """Clipping, and a gradient scaler's steps, in few launches and without a wait."""
    shapes = [(3, 5), (), (70, 300), (1,), *[(k + 1, 2) for k in range(70)]]
    wrong = []
    for dtype, most in ((t.float32, 1e-5), (t.float64, 1e-12), (t.bfloat16, 2e-2)):
        grads = [t.tensor(x).to(dtype) for x in values_of(shapes)]
        for ord in (2.0, 1.0, float("inf"), 3.0):
            found = []
            for device in ("cpu", "sim"):
                params = [t.zeros(g.shape, dtype=dtype, device=device) for g in grads]
                for p, g in zip(params, grads, strict=True):
                    p.grad = g.to(device, copy=True)
                params[0].grad = params[0].grad.t().contiguous().t()
                fallback.noted.clear()
                total = t.nn.utils.clip_grad_norm_(params, 0.5, ord)
                every = [p.grad.cpu().to(t.float64).flatten() for p in params]
                found.append(t.cat([total.cpu().to(t.float64).flatten(), *every]).numpy())
            close = np.allclose(found[0], found[1], most, most * 1e-3)
            if not close or fallback.noted:
                worst_at = np.abs(found[0] - found[1]).max()
                wrong.append(f"{dtype} {ord}: {worst_at} {dict(fallback.noted)}")
    assert not wrong, "\n".join(wrong)


def test_a_gradient_scaler() -> None:
    """Scale, count and parameters as on the CPU, over steps with and without an overflow."""
    seen = []
    for device in ("cpu", "sim"):
        params = [t.ones(k + 1, device=device, requires_grad=True) for k in range(5)]
        scaler = t.amp.GradScaler(device, init_scale=8.0, growth_interval=3)
        optimizer = optim.SGD(params, lr=0.5)
        found = []
        for bad in (0, 0, 1, 0, 0, 0, 0, 1):
            optimizer.zero_grad()
            scaler.scale(sum([p.sum() for p in params])).backward()
            if bad:
                params[3].grad[2] = float("nan" if len(found) > 3 else "inf")
            scaler.step(optimizer)
            scaler.update()
            found.append((scaler.get_scale(), scaler._get_growth_tracker(), params[3].tolist()))
        seen.append(found)
    assert seen[0] == seen[1]
    assert {scale for scale, _, _ in seen[0]} == {4.0, 8.0}


def test_a_scaler_with_a_fused_optimizer_and_cleared_gradients() -> None:
    seen = []
    for device in ("cpu", "sim"):
        params = [t.ones(k + 1, device=device, requires_grad=True) for k in range(5)]
        params.append(t.ones(2, device=device, dtype=t.float64, requires_grad=True))
        scaler = t.amp.GradScaler(device, init_scale=8.0)
        optimizer = optim.AdamW(params, lr=0.1, fused=True)
        for _ in range(2):
            optimizer.zero_grad(set_to_none=False)
            assert all([p.grad is None or not p.grad.any() for p in params])
            scaler.scale(sum([(p * p).sum() for p in params])).backward()
            scaler.step(optimizer)
            scaler.update()
        seen.append([x for p in params for x in (*p.tolist(), *p.grad.tolist())])
        params[2].grad[1] = float("inf")
        optimizer.zero_grad(set_to_none=False)
        assert params[2].grad.tolist() == [0.0] * 3
    assert seen[1] == pytest.approx(seen[0], rel=1e-6)


def test_what_is_asked_of_many_means_the_same_to_numpy() -> None:
    """The descriptions by NumPy on copies, where there is no template."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in (kernels.Updates, kernels.Folds):
            patch.delitem(templates.PLANNERS, kind)
        plan.flush()
        fallback.noted.clear()
        x, y = t.tensor([3.0, 0.0]).to("sim"), t.tensor([[4.0]]).to("sim")
        for p in (x, y):
            p.grad = p.clone()
        assert t.nn.utils.clip_grad_norm_([x, y], 1.0).item() == 5.0
        assert x.grad.tolist() == pytest.approx([0.6, 0.0])
        optim.SGD([x, y], lr=1.0).step()
        assert y.item() == pytest.approx(3.2)
        assert set(fallback.noted) == {"Updates", "Folds"}
    plan.flush()
