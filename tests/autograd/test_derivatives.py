"""gradcheck, functional, the profiler, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def tensors(lib: Any) -> tuple[Any, Any]:
    x = lib.tensor([[1.0, 2.0], [0.5, -1.0]], dtype=lib.float64, requires_grad=True)
    y = lib.tensor([1.5, 2.5], dtype=lib.float64, requires_grad=True)
    return x, y


def wrong(lib: Any) -> Any:
    methods = {
        "forward": staticmethod(lambda ctx, a: a * 2),
        "backward": staticmethod(lambda ctx, g: g * 3),
    }
    return type("Wrong", (lib.autograd.Function,), methods).apply


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck(lib: Any, fast: bool) -> None:
    x, y = tensors(lib)
    check, twice = lib.autograd.gradcheck, lib.autograd.gradgradcheck
    assert check(lambda x, y: (x * y, x.exp(), y.sum()), (x, y), fast_mode=fast)
    assert twice(lambda x, y: (x * y).tanh(), (x, y), fast_mode=fast)
    assert not check(wrong(lib), (x,), raise_exception=False, fast_mode=fast)
    with pytest.raises(RuntimeError, match=r"Jacobian mismatch|Gradients failed"):
        check(wrong(lib), (x,), fast_mode=fast)


def test_gradcheck_of_complex(lib: Any) -> None:
    c = lib.tensor([1 + 2j, 0.5 - 1j], dtype=lib.complex128, requires_grad=True)
    r = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
    assert lib.autograd.gradcheck(lambda c, r: (c * c * r, c.exp()), (c, r))
    assert lib.autograd.gradgradcheck(lambda c: c * c * c, c)
    assert not lib.autograd.gradcheck(wrong(lib), (c,), raise_exception=False)


@pytest.mark.filterwarnings("ignore")
def test_gradcheck_errors(lib: Any) -> None:
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        lib.autograd.gradcheck(lambda x: x, lib.ones(2, dtype=lib.float64))
    x = lib.ones(1, dtype=lib.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="stride 0"):
        lib.autograd.gradcheck(lambda x: x * 2, x.expand(3))


def test_the_error_class(torch: Any) -> None:
    from antorcha.autograd.gradcheck import GradcheckError, gradcheck

    assert gradcheck is torch.autograd.gradcheck
    assert issubclass(GradcheckError, RuntimeError)


def test_functional(lib: Any) -> None:
    functional = lib.autograd.functional
    x, y = tensors(lib)
    ones = lib.ones(2, dtype=lib.float64)
    assert functional.jacobian(lambda x: x * y, x).shape == (2, 2, 2, 2)
    assert functional.jacobian(lambda a: a * a, y).tolist() == [[3.0, 0.0], [0.0, 5.0]]
    pair = functional.jacobian(lambda a, b: (a * b, a.sum()), (y, y))
    assert pair[0][1].tolist() == [[1.5, 0.0], [0.0, 2.5]]
    assert pair[1][1].tolist() == [0.0, 0.0]
    assert functional.hessian(lambda a: (a * a * a).sum(), y).tolist() == [[9.0, 0.0], [0.0, 15.0]]
    mixed = functional.hessian(lambda a, b: (a * b).sum(), (y, y))
    assert mixed[0][1].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert mixed[0][0].tolist() == [[0, 0]] * 2
    for product in (functional.vjp, functional.jvp):
        value, found = product(lambda a: a * a, y, ones)
        assert value.tolist() == [2.25, 6.25]
        assert found.tolist() == [3.0, 5.0]
        assert not found.requires_grad
    for product in (functional.vhp, functional.hvp):
        value, found = product(lambda a: (a * a * a).sum(), y, ones)
        assert value.item() == 19.0
        assert found.tolist() == [9.0, 15.0]
    made = functional.jacobian(lambda a: a * a, y, create_graph=True)
    made.sum().backward()
    assert y.grad.tolist() == [2.0, 2.0]


def test_functional_errors(lib: Any) -> None:
    functional = lib.autograd.functional
    _, y = tensors(lib)
    with pytest.raises(TypeError):
        functional.jacobian(lambda a: 5, y)
    with pytest.raises(RuntimeError, match="v can only be None"):
        functional.vjp(lambda a: a * a, y)
    with pytest.raises(RuntimeError, match="invalid size"):
        functional.vjp(lambda a: a * a, y, lib.ones(3, dtype=lib.float64))
    with pytest.raises(RuntimeError, match="single element"):
        functional.hessian(lambda a: a * a, y)
    with pytest.raises(RuntimeError, match="strict"):
        functional.jacobian(lambda a, b: a * 2, (y, y), strict=True)


@pytest.mark.filterwarnings("ignore")
def test_profile(lib: Any, tmp_path: Path) -> None:
    x = lib.tensor([[1.5]], requires_grad=True)
    profiler = lib.autograd.profiler
    with profiler.profile() as prof:
        for _ in range(10):
            y = x**2
            y.backward()
        with profiler.record_function("mine"):
            (x + 1).detach().mul_(2)
        x.reshape(-1)
    averages = {event.key: event for event in prof.key_averages()}
    for name, count in {"PowBackward0": 10, "torch::autograd::AccumulateGrad": 10, "mine": 1,
                        "aten::mul_": 1, "aten::reshape": 1, "aten::view": 1}.items():  # fmt: skip
        assert averages[name].count == count, name
    assert averages["aten::pow"].count >= 10
    mine = averages["mine"]
    assert 0 <= mine.self_cpu_time_total <= mine.cpu_time_total
    table = prof.key_averages().table(sort_by="self_cpu_time_total")
    assert table.splitlines()[1].split() == (
        "Name Self CPU % Self CPU CPU total % CPU total CPU time avg # of Calls".split()
    )
    assert table.splitlines()[-1].startswith("Self CPU time total: ")
    own = [e.self_cpu_time_total for e in prof.key_averages()]
    assert abs(sum(own) - prof.self_cpu_time_total) < 1
    assert prof.total_average().count == sum(e.count for e in averages.values())
    assert "aten::pow" in str(prof)
    file = tmp_path / "trace.json"
    prof.export_chrome_trace(str(file))
    assert any(e["name"] == "PowBackward0" for e in json.loads(file.read_text())["traceEvents"])


def test_profile_is_off_outside(torch: Any) -> None:
    from antorcha.core import modes

    before = modes.busy
    with torch.autograd.profiler.profile() as prof:
        torch.ones(2) + 1
    count = len(prof.function_events)
    torch.ones(2) + 1
    assert len(prof.function_events) == count
    assert modes.busy == before
    with torch.autograd.profiler.profile(enabled=False) as off:
        torch.ones(2) + 1
    assert off.function_events is None


def test_profile_shapes(torch: Any) -> None:
    with torch.autograd.profiler.profile(record_shapes=True) as prof:
        torch.ones(2, 3) * 2
    (event,) = [e for e in prof.function_events if e.name == "aten::mul"]
    assert event.input_shapes == [[2, 3], []]
    assert "Input Shapes" in prof.key_averages(group_by_input_shape=True).table()
