"""Convolutions by cuDNN, with a fake of it: forward and both gradients against the CPU."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.core import switches
from antorcha.devices.cuda.libraries import convolutions, cudnn
from tests.devices.cuda import fake_libraries
from tests.devices.cuda.fake_driver import FakeLibrary
from tests.devices.cuda.fake_libraries import FakeCudnn

F = torch.nn.functional
Make = Callable[[Any], Any]
RNG = np.random.default_rng(0)


@pytest.fixture
def dnn(monkeypatch: pytest.MonkeyPatch, library: FakeLibrary) -> Any:
    monkeypatch.setattr(convolutions, "LEAST", 1)
    return fake_libraries.install(monkeypatch, library, "cudnn")["cudnn"]


def array(*shape: int) -> Any:
    return torch.tensor(RNG.standard_normal(shape))


X, W, BIAS = array(2, 4, 7, 6), array(6, 4, 3, 3), array(6)
LONG = array(1 + 2 * 4 * 7 * 6)
LAST = torch.channels_last
CASES: dict[str, Make] = {
    "plain": lambda t: F.conv2d(t(X), t(W)),
    "biased": lambda t: F.conv2d(t(X), t(W), t(BIAS)),
    "padded": lambda t: F.conv2d(t(X), t(W), padding=(1, 2)),
    "by steps": lambda t: F.conv2d(t(X), t(W), t(BIAS), stride=2, padding=1),
    "steps that leave a rest": lambda t: F.conv2d(t(X), t(W), stride=(3, 2)),
    "dilated": lambda t: F.conv2d(t(X), t(W), padding=2, dilation=2),
    "grouped": lambda t: F.conv2d(t(X), t(W)[:, :2], groups=2),
    "depthwise": lambda t: F.conv2d(t(X), t(W)[:4, :1], groups=4),
    "channels last": lambda t: F.conv2d(
        t(X).to(memory_format=LAST), t(W).to(memory_format=LAST), t(BIAS), padding=1
    ),
    "strided": lambda t: F.conv2d(t(X)[:, :, ::2, 1:], t(W)[::2, :, 1:], padding=1),
    "begins inside": lambda t: F.conv2d(t(X)[1:], t(W)[1:], padding=1),
    "not aligned": lambda t: F.conv2d(t(LONG)[1:].view(2, 4, 7, 6), t(W), t(BIAS)),
    "expanded": lambda t: F.conv2d(t(X)[:1].expand(3, 4, 7, 6), t(W)),
    "same": lambda t: F.conv2d(t(X), t(W)[:, :, :2, :2], padding="same"),
    "one dim": lambda t: F.conv1d(t(X)[:, :, 0], t(W)[:, :, 0], t(BIAS), stride=2, padding=1),
    "three dims": lambda t: F.conv3d(t(X).view(1, 2, 4, 7, 6), t(W).view(3, 2, 4, 3, 3)),
    "transposed": lambda t: F.conv_transpose2d(t(X), t(W)[:4, :3], stride=2, padding=1),
    "transposed, biased": lambda t: F.conv_transpose2d(t(X), t(W)[:4, :3], t(BIAS)[:3]),
}  # fmt: skip
DTYPES = {torch.float32: 1e-5, torch.float64: 1e-12, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def with_gradients(make: Make, device: str, dtype: torch.dtype) -> list[Any]:
    """The result of a case, and the gradients of its operands."""
    leaves = []

    def there(x: Any) -> Any:
        leaves.append(x.detach().clone().to(dtype).to(device).requires_grad_())
        return leaves[-1]

    result = make(there)
    (result * torch.arange(result.shape[-1], device=device)).sum().backward()
    return [result.detach(), *[leaf.grad for leaf in leaves]]


def test_convolutions_are_those_of_the_cpu(dnn: FakeCudnn) -> None:
    wrong = []
    for dtype, tolerance in DTYPES.items():
        for name, make in CASES.items():
            dnn.ran.clear()
            ours = with_gradients(make, "cuda", dtype)
            theirs = with_gradients(make, "cpu", dtype)
            for what, a, b in zip(("result", "x", "w", "bias"), ours, theirs):
                error, size = (a.cpu() - b).abs().max().item(), b.abs().max().item()
                if not error <= tolerance * size or a.stride() != b.stride():
                    wrong.append(f"{name}, {dtype}, {what}: {error} of {size}")
            kinds = {kind for kind, _ in dnn.ran}
            if kinds != {"forward", "data", "weight"}:
                wrong.append(f"{name}, {dtype}: cuDNN computed {kinds}")
    assert not wrong, "\n".join(wrong)


def test_the_way_is_the_best_that_the_switches_allow(dnn: FakeCudnn) -> None:
    x, w = torch.ones(1, 2, 4, 4, device="cuda"), torch.ones(2, 2, 3, 3, device="cuda")

    def notes() -> list[int]:
        F.conv2d(x, w).cpu()
        return dnn.ran[-1][1]

    assert notes() == [cudnn.TENSOR_CORE]
    try:
        torch.backends.cudnn.allow_tf32 = False
        assert notes() == [9]
        assert torch.backends.cudnn.fp32_precision == "ieee"
        with torch.backends.cudnn.flags(allow_tf32=True):
            assert notes() == [cudnn.TENSOR_CORE]
        count = len(dnn.ran)
        with torch.backends.cudnn.flags(enabled=False):
            assert F.conv2d(x, w).cpu().eq(18).all()
        assert len(dnn.ran) == count
        dnn.ways = [[cudnn.NOT_DETERMINISTIC], [cudnn.DOWN_CONVERTS]]
        torch.backends.cudnn.allow_tf32 = True  # (plans are made anew)
        assert F.conv2d(x, w).cpu().eq(18).all()
        assert len(dnn.ran) == count
    finally:
        vars(switches.cudnn).update(allow_tf32=True, fp32_precision="none")


def test_a_benchmark_takes_the_fastest(dnn: FakeCudnn, library: FakeLibrary) -> None:
    dnn.ways = [[9], [-1], [cudnn.NOT_DETERMINISTIC], [8], [7]]
    dnn.ticks = {9: 5, 8: 1, 7: 3}
    x, w = torch.ones(1, 2, 4, 4, device="cuda"), torch.ones(2, 2, 3, 3, device="cuda")
    for limit, fastest in ((10, 8), (1, 9)):
        with torch.backends.cudnn.flags(benchmark=True, benchmark_limit=limit):
            assert F.conv2d(x, w).cpu().eq(18).all()
        assert dnn.ran[-1][1] == [fastest]
    with torch.backends.cudnn.flags(benchmark=True, benchmark_limit=0):
        y = F.conv2d(x, w)
        assert dnn.ran[-1][1] == [8]
        assert y.cpu().eq(18).all()


def test_what_is_there_is_said(dnn: FakeCudnn) -> None:
    assert torch.backends.cudnn.is_available()
    assert torch.backends.cudnn.version() == 91300
    assert torch.backends.cudnn.is_acceptable(torch.ones(1, device="cuda"))
    assert not torch.backends.cudnn.is_acceptable(torch.ones(1))


def test_a_failing_convolution_says_why(dnn: FakeCudnn) -> None:
    dnn.failing["cudnnBackendExecute"] = 5000
    words = r"CUDNN_STATUS_EXECUTION_FAILED \(no engine\) when calling cudnnBackendExecute"
    with pytest.raises(RuntimeError, match=words):
        F.conv2d(torch.ones(1, 2, 4, 4, device="cuda"), torch.ones(2, 2, 3, 3, device="cuda"))


def test_launches_run_in_machine_code(dnn: FakeCudnn, monkeypatch: pytest.MonkeyPatch) -> None:
    by_python: list[Any] = []
    copied: list[Any] = []
    run_copied = convolutions.Convolution.run_copied

    def noted(self: Any, places: Any) -> None:
        copied.append(places)
        run_copied(self, places)

    monkeypatch.setattr(convolutions.Convolution, "run_copied", noted)
    monkeypatch.setattr(convolutions.Convolution, "run", lambda *_: by_python.append(1))
    x, w, bias = X.cuda(), W.cuda(), BIAS.cuda()
    for _ in range(3):
        gc.collect()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
            found = F.conv2d(x, w, bias).cpu()
        assert torch.allclose(found, F.conv2d(X, W, BIAS))
    assert not by_python
    assert not copied
    F.conv2d(LONG.cuda()[1:].view(2, 4, 7, 6), w, bias).cpu()
    assert len(copied) == 1
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = F.conv2d(x, w, bias)
    x.zero_()
    graph.replay()
    assert torch.allclose(y.cpu(), F.conv2d(X * 0, W, BIAS))
