"""Grad modes, inference mode, anomaly detection."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest


def test_nesting(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    with lib.no_grad():
        assert not (x * 2).requires_grad
        assert not lib.is_grad_enabled()
        with lib.enable_grad():
            assert (x * 2).requires_grad
            with lib.set_grad_enabled(False):
                assert not (x * 2).requires_grad
            assert lib.is_grad_enabled()
        assert not lib.is_grad_enabled()
    assert lib.is_grad_enabled()
    lib.set_grad_enabled(False)
    assert not lib.is_grad_enabled()
    lib.set_grad_enabled(True)


def test_decorators(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)

    @lib.no_grad()
    def plain(a: Any) -> Any:
        return a * 2

    @lib.no_grad
    def bare(a: Any) -> Any:
        return a * 2

    @lib.set_grad_enabled(False)
    def setting(a: Any) -> Any:
        return a * 2

    @lib.inference_mode()
    def inference(a: Any) -> Any:
        return a * 2

    assert lib.is_grad_enabled()
    assert [f(x).requires_grad for f in (plain, bare, setting, inference)] == [False] * 4
    assert plain.__name__ == "plain"


def test_generators(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    modes: list[bool] = []

    @lib.no_grad()
    def numbers() -> Any:
        got = yield x * 2
        modes.append(lib.is_grad_enabled())
        try:
            yield got
        except ValueError:
            modes.append(lib.is_grad_enabled())
        return 7

    running = numbers()
    first = next(running)
    assert not first.requires_grad
    assert lib.is_grad_enabled()
    assert running.send("sent") == "sent"
    with pytest.raises(StopIteration) as stop:
        running.throw(ValueError())
    assert stop.value.value == 7
    assert modes == [False, False]
    assert lib.is_grad_enabled()


def test_an_error_ends_the_mode(lib: Any) -> None:
    with pytest.raises(ZeroDivisionError), lib.no_grad():
        raise ZeroDivisionError
    assert lib.is_grad_enabled()


def test_each_thread_has_its_own(lib: Any) -> None:
    seen: list[bool] = []
    with lib.no_grad():
        thread = threading.Thread(target=lambda: seen.append(lib.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_tensors(lib: Any) -> None:
    x = lib.ones(3, requires_grad=True)
    with lib.inference_mode():
        assert lib.is_inference_mode_enabled()
        assert not lib.is_grad_enabled()
        i = lib.ones(3)
        flags = [t.is_inference() for t in (i, i[0], x * 2, x[0], i.clone(), i.detach())]
        assert flags == [True, True, True, False, True, True]
        with lib.enable_grad():
            made = x * 2
            assert not made.requires_grad
            assert made.is_inference()
            assert made.grad_fn is None
        view = x.view(-1)
        i.mul_(2)
        assert lib.tensor([1.0]).is_inference()
    assert i.is_inference()
    assert i[0].is_inference()
    assert not view.is_inference()
    assert not i.clone().is_inference()
    assert not (i * 2).is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        i * x
    assert (i + x).requires_grad
    for write in (lambda: i.mul_(2), lambda: lib.add(i, 1, out=i)):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            write()
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor"):
        i.requires_grad_()
    with pytest.raises(RuntimeError, match="do not track version"):
        _ = i._version
    with pytest.raises(RuntimeError):
        view.mul_(2)
    with lib.inference_mode(False):
        assert not lib.ones(1).is_inference()


def test_a_refused_write_changes_nothing(torch: Any) -> None:
    with torch.inference_mode():
        i = torch.ones(3)
    with pytest.raises(RuntimeError):
        i.mul_(2)
    assert i.tolist() == [1.0] * 3


class _Fails:
    @staticmethod
    def forward(ctx: Any, a: Any) -> Any:
        return a * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise ValueError("mine")


def test_anomaly_tells_the_forward_line(lib: Any) -> None:
    fails = type("Fails", (lib.autograd.Function,), dict(vars(_Fails)))
    x = lib.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with lib.autograd.detect_anomaly():
            y = fails.apply(x)  # THE LINE
            with pytest.raises(ValueError, match="mine"):
                y.sum().backward()
    texts = [str(w.message) for w in caught]
    assert any("Anomaly Detection has been enabled" in t for t in texts)
    (told,) = [t for t in texts if "Error detected in FailsBackward" in t]
    assert "Traceback of forward call that caused the error" in told
    assert "THE LINE" in told
    assert not lib.is_anomaly_enabled()


@pytest.mark.filterwarnings("ignore")
def test_anomaly_finds_nan(lib: Any) -> None:
    x = lib.tensor([0.0], requires_grad=True)
    with lib.autograd.set_detect_anomaly(True):
        y = (x.log() * 0).sum()
        with pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
            y.backward()
    with lib.autograd.set_detect_anomaly(True, check_nan=False):
        (x.log() * 0).sum().backward()


@pytest.mark.filterwarnings("ignore")
def test_anomaly_tells_where_an_overwritten_tensor_was_saved(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = x * 1
        z = y * y  # THE LINE
        y.detach().mul_(2)
        with pytest.raises(RuntimeError, match="THE LINE"):
            z.sum().backward()


def test_a_refused_out_is_left_as_it_was() -> None:
    import antorcha

    with antorcha.inference_mode():
        x = antorcha.tensor(2.0)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        antorcha.add(antorcha.ones(3), 1, out=x)
    assert (tuple(x.shape), x.item()) == ((), 2.0)
