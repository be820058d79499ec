"""Fourier transforms by cuFFT, with a fake of it: sizes, strides, scales, streams."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.devices.cuda import libraries
from antorcha.devices.cuda.libraries import transforms
from antorcha.devices.cuda.libraries.transforms import is_faster
from antorcha.lang.kernels import Fourier
from antorcha.runtime.call import plan
from tests.devices.cuda import fake_libraries
from tests.devices.cuda.fake_cufft import FakeCufft
from tests.devices.cuda.fake_driver import FakeLibrary

RNG = np.random.default_rng(0)
Case = Callable[[Any, Any], Any]


@pytest.fixture
def fft(monkeypatch: pytest.MonkeyPatch, library: FakeLibrary) -> Any:
    monkeypatch.setattr(transforms, "is_faster", lambda *_: True)
    return fake_libraries.install(monkeypatch, library, "cufft")["cufft"]


REAL = torch.tensor(RNG.standard_normal((2, 3, 4, 6)))
COMPLEX = REAL * (1 + 0.5j) - 0.25j

CASES: dict[str, Case] = {
    "fft": lambda r, z: torch.fft.fft(z),
    "ifft, scaled": lambda r, z: torch.fft.ifft(z),
    "ortho": lambda r, z: torch.fft.fft(z, norm="ortho"),
    "ifft, not scaled": lambda r, z: torch.fft.ifft(z, norm="forward"),
    "along the first": lambda r, z: torch.fft.fft(z[0, 0], dim=0),
    "along the second of three": lambda r, z: torch.fft.fft(z[0], dim=0),
    "one signal": lambda r, z: torch.fft.fft(z[1, 1, 1]),
    "of one element": lambda r, z: torch.fft.fft(z[..., :1]),
    "every second": lambda r, z: torch.fft.fft(z[..., ::2]),
    "fft2": lambda r, z: torch.fft.fft2(z),
    "fftn": lambda r, z: torch.fft.fftn(z, dim=(1, 2, 3)),
    "fft2 of a part": lambda r, z: torch.fft.fft2(z[:, :, :3, 1:5]),
    "dims that are apart": lambda r, z: torch.fft.fft2(z[0], dim=(0, 2)),
    "rfft": lambda r, z: torch.fft.rfft(r),
    "rfft of an odd length": lambda r, z: torch.fft.rfft(r[..., :5]),
    "rfft that begins inside": lambda r, z: torch.fft.rfft(r[0, 0, 0, 1:]),
    "rfft2": lambda r, z: torch.fft.rfft2(r, norm="ortho"),
    "rfft along the first": lambda r, z: torch.fft.rfft(r[0, 0], dim=0),
    "ihfft": lambda r, z: torch.fft.ihfft(r),
}
BY_OURS: dict[str, Case] = {
    "all of a real transform": lambda r, z: torch.fft.fft(r),
    "irfft": lambda r, z: torch.fft.irfft(z),
    "irfft of an odd length": lambda r, z: torch.fft.irfft(z, 7, norm="forward"),
    "irfft2": lambda r, z: torch.fft.irfft2(z, norm="ortho"),
    "irfftn": lambda r, z: torch.fft.irfftn(z, dim=(1, 2, 3)),
    "four dims": lambda r, z: torch.fft.fftn(z),
    "repeated": lambda r, z: torch.fft.fft(z[:1].expand(3, 3, 4, 6)),
    "no elements": lambda r, z: torch.fft.fft(z[:0]),
    "signals in two strides": lambda r, z: torch.fft.fft(z[:, :2]),
}


def _given(dtype: Any, device: str) -> tuple[Any, Any]:
    return REAL.to(dtype).to(device), COMPLEX.to(dtype.to_complex()).to(device)


def test_transforms_give_what_the_cpu_gives(fft: FakeCufft) -> None:
    wrong = []
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-13)):
        for name, case in {**CASES, **BY_OURS}.items():
            r, z = _given(dtype, "cuda")
            before = fft.calls.count("cufftXtExec")
            ours, theirs = case(r, z), case(*_given(dtype, "cpu"))
            used = fft.calls.count("cufftXtExec") > before
            difference = (ours.cpu() - theirs).abs()
            error = difference.max().item() if theirs.numel() else 0
            if not error <= tolerance * 20 or ours.stride() != theirs.stride():
                wrong.append(f"{name}, {dtype}: {error}, {ours.stride()} {theirs.stride()}")
            if used != (name in CASES):
                noted = libraries.noted.get("Fourier")
                wrong.append(f"{name}, {dtype}: by cuFFT is {used} ({noted})")
            if not torch.equal(z.cpu(), _given(dtype, "cpu")[1]):
                wrong.append(f"{name}, {dtype}: the input has changed")
    assert not wrong, "\n".join(wrong)


def test_gradients_go_through(fft: FakeCufft) -> None:
    found = []
    for device in ("cpu", "cuda"):
        x = REAL.float().to(device).requires_grad_()
        torch.fft.irfft2(torch.fft.rfft2(x) * 2).square().sum().backward()
        found.append(x.grad.cpu())
    assert torch.allclose(*found, atol=1e-4)
    assert "cufftXtExec" in fft.calls


def test_which_are_left_to_our_own_kernels() -> None:
    n = transforms.LEAST

    def by_library(norm: str, *shape: int, dim: int = -1) -> bool:
        x = torch.empty(shape, dtype=torch.complex64)
        out = torch.fft.fft(x, dim=dim)._layout
        return is_faster(Fourier("complex", (dim % len(shape),), True, norm), out, x._layout)

    assert by_library("none", n)
    assert by_library("none", n // 8, 8)
    assert not by_library("none", n - 1)
    assert not by_library("all", n // 8, 8)
    assert by_library("root", n // 8, 8, dim=0)


def test_plans_are_shared_and_given_back(fft: FakeCufft) -> None:
    z = torch.ones(4, 8, dtype=torch.complex64, device="cuda")
    for _ in range(3):
        torch.fft.fft(z)
        torch.fft.fft(z, norm="ortho")
    assert fft.made_plans == 1
    torch.fft.fft(z[:2])
    assert len(fft.plans) == 2
    torch.cuda.synchronize()
    plan.flush()
    gc.collect()
    assert not fft.plans


def test_streams_and_graphs(fft: FakeCufft) -> None:
    z = torch.ones(4, 8, dtype=torch.complex64, device="cuda")
    right = torch.fft.fft(z).cpu()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert torch.equal(torch.fft.fft(z).cpu(), right)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = torch.fft.fft(z)
        again = torch.fft.fft(z.clone(), norm="forward")  # another launch by the same plan
        other = torch.fft.fft(z[:, :5])  # met in the capture first: by our own kernels
    z.mul_(2)
    graph.replay()
    assert torch.equal(found.cpu(), 2 * right)
    assert torch.allclose(again.cpu(), right / 4)
    assert torch.allclose(other.cpu(), torch.fft.fft(z.cpu()[:, :5]))
    assert fft.made_plans == 1


def test_what_it_reports_is_raised(fft: FakeCufft, library: FakeLibrary) -> None:
    z = torch.ones(4, 8, dtype=torch.complex64, device="cuda")
    fft.failing["cufftXtMakePlanMany"] = 5
    assert torch.equal(torch.fft.fft(z).cpu(), torch.fft.fft(z.cpu()))  # by our own kernels
    assert "CUFFT_INTERNAL_ERROR" in libraries.noted["Fourier"]
    fft.failing.clear()
    torch.fft.fft(z[:2])
    fft.failing["cufftXtExec"] = 6
    with pytest.raises(RuntimeError, match="CUFFT_EXEC_FAILED when calling cufftXtExec of cuFFT"):
        torch.fft.fft(z[:2])
    fft.failing.clear()
    assert libraries.used() == ["cuFFT 12000"]
