"""Fourier transforms on the simulator beside NumPy's, in a wider type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.devices.gpu import fallback, fourier
from antorcha.devices.gpu.fourier import convolution_length, passes_of, radices_of, roots_of
from antorcha.lang.native import i64
from antorcha.runtime.call import plan as plans

SIM = torch.device("sim")
UNIT = {"complex64": 3e-7, "complex128": 6e-16, "float32": 3e-7, "float64": 6e-16}
LONG = (256, 384, 1000, 1009, 4096, 6561, 10007, 65536)
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Every transform has kernels."""
    fallback.noted.clear()
    yield
    assert "Fourier" not in fallback.noted


def numbers(shape: Any, dtype: str, seed: int = 0) -> Array:
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape)
    if dtype.startswith("c"):
        x = x + 1j * random.standard_normal(shape)
    return np.asarray(x).astype(dtype)


def wide(x: Array) -> Array:
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def error(found: Any, expected: Array, length: int) -> str:
    """What is wrong with a result; empty if nothing is."""
    y = found.cpu().numpy()
    if y.shape != expected.shape:
        return f"shape {y.shape} is not {expected.shape}"
    if not y.size:
        return ""
    size = np.linalg.norm(expected.ravel()) or 1
    off = float(np.linalg.norm((y - expected).ravel()) / size)
    allowed = UNIT[y.dtype.name] * max(np.log2(length), 1)
    return "" if off <= allowed else f"relative error {off:.2e}, more than {allowed:.2e}"


def report(wrong: dict[str, str]) -> None:
    found = [f"{name}: {text}" for name, text in wrong.items() if text]
    assert not found, "\n".join(found)


# ------------------------------------------------------------------------------- lengths
def test_every_length() -> None:
    wrong = {}
    for n in range(1, 131):
        for dtype in ("complex64", "complex128") if n % 16 in (1, 8) else ("complex64",):
            z = numbers((3, n), dtype, n)
            there = torch.from_numpy(z).to(SIM)
            wrong[f"{n} {dtype}"] = error(torch.fft.fft(there), np.fft.fft(wide(z)), n)
            if n % 21 == 0:
                back = error(torch.fft.ifft(there), np.fft.ifft(wide(z)), n)
                wrong[f"{n} {dtype} back"] = back
    report(wrong)


def test_long() -> None:
    wrong = {}
    for n in LONG:
        for dtype in ("complex64", "complex128"):
            z = numbers((2, n), dtype, n)
            there = torch.from_numpy(z).to(SIM)
            wrong[f"{n} {dtype}"] = error(torch.fft.fft(there), np.fft.fft(wide(z)), n)
    for n in (4096, 10007):
        z = numbers((n, 3), "complex64")  # transforms side by side
        found = torch.fft.ifft(torch.from_numpy(z).to(SIM), dim=0)
        wrong[f"{n} side by side"] = error(found, np.fft.ifft(wide(z), axis=0), n)
    report(wrong)


def test_many() -> None:
    """As many transforms as take larger blocks; the last one is not whole."""
    wrong = {}
    for shape, dim in (((18001, 64), 1), ((400_001, 3), 1), ((64, 17009), 0)):
        z = numbers(shape, "complex64")
        found = torch.fft.fft(torch.from_numpy(z).to(SIM), dim=dim)
        wrong[f"{shape}"] = error(found, np.fft.fft(wide(z), axis=dim), shape[dim])
    report(wrong)


def test_tables() -> None:
    """Roots are exact to the last bits; lengths are products of what they are cut into."""
    for whole in (1, 2, 3, 5, 8, 12, 4096, 10007, 1 << 20):
        turns = np.arange(0, 3 * whole, max(whole // 1000, 1))
        angle = (turns % whole).astype(np.longdouble) * (-8 * np.arctan(np.longdouble(1)) / whole)
        found = roots_of(turns, whole)
        assert abs(found.real - np.cos(angle)).max() < 1.2e-16
        assert abs(found.imag - np.sin(angle)).max() < 1.2e-16
    assert roots_of(np.arange(4), 4).tolist() == [1, -1j, -1, 1j]
    for n in range(1, 3000):
        radices = radices_of(n)
        assert radices is None or np.prod(radices) == n
        assert 2 * n - 1 <= convolution_length(n) < 3 * n + 1
    for n in (1 << 13, 3**9, 7**5, 1 << 25, 13**6):
        lengths = passes_of(n, 4096)
        assert np.prod(lengths) == n
        assert max(lengths) <= 1024


# ------------------------------------------------------------------------------- layouts, forms
VIEWS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: x,
    "dims turned": lambda x: x.permute(2, 0, 1),
    "steps": lambda x: x[:, 1::2, ::3],
    "expanded": lambda x: x[:, :1].expand(*x.shape),
    "one": lambda x: x[0, :, 2],
    "four dims": lambda x: x.reshape(2, -1, *x.shape[1:]).transpose(1, 3),
}


def test_forms_and_layouts() -> None:
    """All functions along all dims of views, in all norms."""
    wrong, calls = {}, 0
    x = numbers((4, 6, 10), "float64")
    z = numbers((4, 6, 10), "complex128")
    for name, view in VIEWS.items():
        for form in ("fft", "ifft", "rfft", "ihfft", "irfft", "hfft", "fft2", "ifftn", "rfft2",
                     "rfftn", "irfftn"):  # fmt: skip
            base = x if form in ("rfft", "ihfft", "rfft2", "rfftn") else z
            for k, norm in enumerate((None, "ortho", "forward")):
                there = view(torch.from_numpy(base).to(SIM))
                here = view(torch.from_numpy(base)).numpy()
                if form[-1] in "2n" and here.ndim < 2:
                    continue
                options: dict[str, Any] = {"norm": norm}
                if form[-1] in "2n":
                    dims = ((-2, -1), (0, 1), (1, 0))[k]
                    options |= {"axes": dims} if form != "fft2" or k else {}
                elif here.ndim > 1:
                    options |= {"axis": (-1, 0, 1)[k]}
                expected = getattr(np.fft, form)(here, **options)
                ours = {{"axes": "dim", "axis": "dim"}.get(o, o): v for o, v in options.items()}
                found = getattr(torch.fft, form)(there, **ours)
                wrong[f"{form} {name} {norm}"] = error(found, expected, 64)
                calls += 1
    assert calls > 150
    report(wrong)


def test_real_forms() -> None:
    """Any length, of one pass or several, and of Bluestein's; numbers that are real are so."""
    wrong = {}
    for n in (1, 2, 3, 7, 10, 16, 17, 45, 1009, 5000, 20014):
        for dtype in ("float32", "float64") if n in (16, 45) else ("float32",):
            x = numbers((2, n), dtype, n)
            there = torch.from_numpy(x).to(SIM)
            half = torch.fft.rfft(there)
            wrong[f"rfft {n} {dtype}"] = error(half, np.fft.rfft(wide(x)), n)
            ends = half.cpu().numpy()[:, [0, -1] if n % 2 == 0 else [0]].imag
            wrong[f"ends {n} {dtype}"] = "" if not ends.any() else f"{ends}"
            whole = error(torch.fft.fft(there), np.fft.fft(wide(x)), n)
            wrong[f"whole {n} {dtype}"] = whole
            kind = "complex64" if dtype == "float32" else "complex128"
            z = numbers((2, n // 2 + 1), kind, n)
            found = torch.fft.irfft(torch.from_numpy(z).to(SIM), n)
            wrong[f"irfft {n} {dtype}"] = error(found, np.fft.irfft(wide(z), n), n)
    x = numbers((3, 5, 8, 6), "float32")
    there = torch.from_numpy(x).to(SIM)
    for dims in ((1, 2, 3), (3, 1), (0, 2), (2,)):
        half = torch.fft.rfftn(there, dim=dims)
        wrong[f"rfftn {dims}"] = error(half, np.fft.rfftn(wide(x), axes=dims), 100)
        sizes = [x.shape[d] for d in dims]
        wrong[f"there and back {dims}"] = error(torch.fft.irfftn(half, sizes, dims), x, 100)
    report(wrong)


def test_elements_counted_in_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "index_type", lambda layouts, count: i64)
    plans.flush()
    wrong = {}
    for n, dim in ((6, 0), (64, 1), (38, 1), (6000, 1), (8194, 1)):
        x = numbers((n, 2) if dim == 0 else (2, n), "float32")
        half = torch.fft.rfft(torch.from_numpy(x).to(SIM), dim=dim)
        wrong[f"{n} half"] = error(half, np.fft.rfft(wide(x), axis=dim), n)
        whole = torch.fft.ifft(half, n, dim=dim)
        wrong[f"{n} whole"] = error(whole, np.fft.ifft(wide(half.cpu().numpy()), n, dim), n)
        wrong[f"{n} back"] = error(torch.fft.irfft(half, n, dim), x, n)
    plans.flush()
    report(wrong)


def test_what_is_given_stays_and_results_go_where_asked() -> None:
    z = torch.from_numpy(numbers((6, 8, 5), "complex64")).to(SIM)
    kept, expected = z.clone(), torch.fft.fftn(z)
    assert torch.equal(z, kept)
    for out in (torch.empty_like(z), torch.empty(5, 8, 6, dtype=z.dtype, device=SIM).mT.mT,
                torch.empty(6, 5, 8, dtype=z.dtype, device=SIM)):  # fmt: skip
        into = out.transpose(1, 2) if out.shape == (6, 5, 8) else out
        if into.shape == z.shape:
            torch.fft.fftn(z, out=into)
            assert torch.equal(into, expected)
    into = torch.zeros(12, 16, 5, dtype=z.dtype, device=SIM)[::2, 1::2]
    torch.fft.fftn(z, out=into)
    assert torch.equal(into, expected)
    for shape in ((0, 4), (3, 0, 4)):
        nothing = torch.zeros(shape, dtype=torch.complex64, device=SIM)
        assert torch.fft.fft(nothing).shape == shape
    assert torch.equal(torch.fft.fftn(z, dim=()), z)
    for same in range(3):  # the same numbers in any order of the threads
        assert torch.equal(torch.fft.fftn(z), expected), same


def test_values_that_are_no_numbers() -> None:
    """They stay within their transform."""
    x = numbers((4, 48), "float32")
    x[1, 5], x[2, 7] = np.nan, np.inf
    y = torch.fft.rfft(torch.from_numpy(x).to(SIM)).cpu().numpy()
    assert np.isfinite(y[[0, 3]]).all()
    assert not np.isfinite(y[[1, 2]]).any()
    assert not error(torch.from_numpy(y[3]), np.fft.rfft(wide(x[3])), 48)


def test_gradients() -> None:
    """Those of the CPU, of the first and the second order."""
    calls: dict[str, tuple[Callable[[Any], Any], str]] = {
        "fft": (lambda z: torch.fft.fft(z, norm="ortho"), "complex128"),
        "ifft2": (torch.fft.ifft2, "complex128"),
        "rfft": (torch.fft.rfft, "float64"),
        "rfft odd": (lambda x: torch.fft.rfft(x, 9), "float64"),
        "irfft": (torch.fft.irfft, "complex128"),
        "irfftn": (lambda z: torch.fft.irfftn(z, (3, 7)), "complex128"),
        "hfft": (torch.fft.hfft, "complex128"),
        "ihfft": (torch.fft.ihfft, "float64"),
        "stft": (
            lambda x: torch.stft(x.reshape(-1), 8, return_complex=True,
                                 window=torch.hann_window(8, dtype=torch.float64, device=x.device)),
            "float64",
        ),
    }  # fmt: skip
    wrong = {}
    for name, (call, dtype) in calls.items():
        found = []
        for device in ("cpu", SIM):
            x = torch.from_numpy(numbers((3, 10), dtype)).to(device).requires_grad_()
            y = call(x)
            loss = (torch.view_as_real(y) if y.is_complex() else y).pow(3).sum()
            (g,) = torch.autograd.grad(loss, x, create_graph=True)
            (gg,) = torch.autograd.grad(
                (torch.view_as_real(g) if g.is_complex() else g).pow(2).sum(), x
            )
            found.append([t.detach().cpu().numpy() for t in (y, g, gg)])
        for k, (a, b) in enumerate(zip(*found, strict=True)):
            if not np.allclose(a, b, 1e-11, 1e-11):
                wrong[f"{name} {k}"] = f"{b.ravel()[:3]}, not {a.ravel()[:3]}"
    report(wrong)
