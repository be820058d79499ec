"""GradScaler beside PyTorch's: scales, steps left out, growth, messages, state."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import pytest

import antorcha

LIBRARIES = ["antorcha", pytest.param("torch", marks=pytest.mark.oracle)]


def train(lib: Any, name: str, **options: Any) -> list[Any]:
    """Twelve steps, two of which overflow; what the scaler, the weights and the states say."""
    lib.manual_seed(0)
    model = lib.nn.Linear(3, 2)
    optimizer = getattr(lib.optim, name)(model.parameters(), lr=0.1, **options)
    scaler = lib.amp.GradScaler("cpu", init_scale=16.0, growth_interval=3)
    seen: list[Any] = []
    for step in range(12):
        x = lib.ones(4, 3) * (step + 1)
        if step in (4, 9):
            x[0, 0] = float("inf")
        optimizer.zero_grad()
        loss = model(x).square().mean()
        scaler.scale(loss).backward()
        if step % 3 == 1:
            scaler.unscale_(optimizer)
            lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        seen += [scaler.get_scale(), scaler._get_growth_tracker(), model.weight.sum().item()]
    seen.append(scaler.state_dict())
    return seen


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {}), ("Adam", {}), ("AdamW", {"fused": True}), ("SGD", {"fused": True})],
)
def test_training_as_pytorch_does(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = train(antorcha, name, **options), train(torch, name, **options)
    assert ours.pop() == theirs.pop()
    assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.fixture(params=LIBRARIES)
def lib(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param)


def test_order_of_calls(lib: Any) -> None:
    p = lib.nn.Parameter(lib.ones(2))
    optimizer = lib.optim.SGD([p], lr=1.0)
    scaler = lib.amp.GradScaler("cpu", init_scale=4.0)
    for call in (lambda: scaler.step(optimizer), lambda: scaler.update()):
        with pytest.raises(AssertionError, match="_scale is None"):
            call()
    scaler.scale(p.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    assert p.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="already been called since the last"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="being called after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="may only be pickled"):
        pickle.dumps(scaler)
    scaler.update(new_scale=8.0)
    assert pickle.loads(pickle.dumps(scaler)).get_scale() == 8.0
    scaler.update(lib.tensor(2.0))
    assert scaler.get_scale() == 2.0
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(optimizer, closure=lambda: 1)
    with pytest.raises(ValueError, match="Tensor or an iterable"):
        scaler.scale(3)


def test_several_outputs_and_no_gradients(lib: Any) -> None:
    scaler = lib.amp.GradScaler("cpu", init_scale=4.0)
    a, (b,) = scaler.scale([lib.ones(1), (lib.ones(1),)])
    assert (a.item(), b.item()) == (4.0, 4.0)
    optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(2))], lr=1.0)
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.step(optimizer)
    half = lib.nn.Parameter(lib.ones(2, dtype=lib.float16))
    half.grad = lib.ones(2, dtype=lib.float16)
    with pytest.raises(ValueError, match="unscale FP16"):
        lib.amp.GradScaler.unscale_(scaler_of(lib), lib.optim.SGD([half], lr=1.0))


def scaler_of(lib: Any) -> Any:
    scaler = lib.amp.GradScaler("cpu")
    scaler.scale(lib.ones(1))
    return scaler


def test_a_disabled_one_does_nothing(lib: Any) -> None:
    p = lib.nn.Parameter(lib.ones(2))
    optimizer = lib.optim.SGD([p], lr=0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        absent = lib.amp.GradScaler("cuda")
    assert "Disabling" in str(caught[0].message)
    for scaler in (lib.amp.GradScaler("cpu", enabled=False), absent):
        loss = p.sum()
        assert scaler.scale(loss) is loss
        loss.backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)
        scaler.load_state_dict({})
    assert p.tolist() == [-0.5, -0.5]


def test_state_and_settings(lib: Any) -> None:
    scaler = lib.amp.GradScaler("cpu", init_scale=4.0)
    assert scaler.state_dict() == {
        "scale": 4.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000,
        "_growth_tracker": 0,
    }  # fmt: skip
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.1)
    scaler.set_growth_interval(7)
    other = scaler_of(lib)
    other.load_state_dict(scaler.state_dict() | {"_growth_tracker": 5})
    assert (other.get_growth_factor(), other.get_backoff_factor()) == (3.0, 0.1)
    assert (other.get_growth_interval(), other._get_growth_tracker()) == (7, 5)
    assert other.get_scale() == 4.0
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict({})
    with pytest.raises(AssertionError, match="growth factor"):
        lib.amp.GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor"):
        lib.amp.GradScaler("cpu", backoff_factor=1.0)
