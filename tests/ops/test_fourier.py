"""Fourier transforms of every kind of length and layout, against NumPy's in twice the precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import antorcha

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 9, 15, 16, 30, 49, 64, 100, 105, 128, 512, 1000, 1024]
OTHERS = [11, 13, 26, 1001]  # with greater primes
LONG = [256, 1000, 4096, 30000, 1 << 16]
BATCHES = [(), (1,), (3,), (17,), (2, 9), (40,)]
DTYPES = {"float32": ("complex64", 1e-6), "float64": ("complex128", 4e-15)}
Call = Callable[[Any, Any], Any]


def signals(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def check(call: Call, x: Any, tolerance: float) -> None:
    found = call(antorcha.fft, antorcha.from_numpy(x)).resolve_conj().numpy()
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    wanted = call(np.fft, x.astype(wide))
    assert found.shape == wanted.shape
    assert found.dtype.kind == wanted.dtype.kind
    np.testing.assert_allclose(found, wanted, 0, tolerance * max(np.abs(wanted).max(), 1e-30))


COMPLEX: list[Call] = [
    lambda fft, z: fft.fft(z),
    lambda fft, z: fft.ifft(z),
    lambda fft, z: fft.fft(z, norm="ortho"),
]
REAL: list[Call] = [
    *COMPLEX,
    lambda fft, x: fft.rfft(x),
    lambda fft, x: fft.rfft(x, norm="ortho"),
    lambda fft, x: fft.ihfft(x),
]


def _to_real(fft: Any, z: Any, length: int) -> Any:
    return fft.irfft(z, length) + fft.hfft(z, length, norm="ortho")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [*LENGTHS, *OTHERS])
def test_one_dim(n: int, dtype: str) -> None:
    wide, tolerance = DTYPES[dtype]
    for batch in BATCHES:
        for call in REAL:
            check(call, signals((*batch, n), dtype), tolerance)
        for call in COMPLEX:
            check(call, signals((*batch, n), wide), tolerance)
        for length in (2 * n - 1, 2 * n, n, max(n - 3, 1)):
            check(partial(_to_real, length=length), signals((*batch, n), wide), tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [4, 15, 16, 60])
def test_dims_and_strides(n: int, dtype: str) -> None:
    wide, tolerance = DTYPES[dtype]
    for shape in ((n, 5, 6), (6, n, 37), (2, 20, n)):
        for kind in (dtype, wide):
            x = signals(shape, kind)
            for call in (
                lambda fft, x: fft.fft(x, axis=0) if fft is np.fft else fft.fft(x, dim=0),
                lambda fft, x: fft.fftn(x),
                lambda fft, x: fft.fft2(x),
                lambda fft, x: fft.ifft2(x[:, ::2], norm="ortho"),
                lambda fft, x: fft.fft2(x.swapaxes(0, 2)),
                lambda fft, x: fft.fft(x[1:, 1:3]),
                lambda fft, x: fft.irfftn(x) if x.shape[-1] > 1 else fft.fft(x),
                lambda fft, x: fft.irfft(x, axis=0) if fft is np.fft else fft.irfft(x, dim=0),
                lambda fft, x: fft.irfft2(x.swapaxes(0, 2)),
            ):
                check(call, x, tolerance)
        check(lambda fft, x: fft.rfft2(x), signals(shape, dtype), tolerance)
        check(lambda fft, x: fft.rfft(x.swapaxes(0, 1)), signals(shape, dtype), tolerance)


def test_rows_just_long_enough_to_be_a_matrix() -> None:
    """Either side of the length, with factors that suit and without, few rows and many."""
    for n in (1020, 1024, 1025, 1026, 1050, 1089, 2040, 2048, 2050, 2112, 4099, 6561, 8192, 9409):
        for shape in ((n,), (3, n), (2, 2, n), (17, n)):
            z = signals(shape, "complex64")
            for call in (*COMPLEX, lambda fft, z: fft.ifft(z, norm="forward")):
                check(call, z, 2e-6)
            for call in REAL:
                check(call, signals(shape, "float32"), 2e-6)
        check(lambda fft, x: fft.rfft2(x), signals((20, n), "float32"), 2e-6)
        check(lambda fft, z: fft.ifft2(z), signals((20, n), "complex64"), 2e-6)
        check(lambda fft, z: fft.fft2(z.swapaxes(0, 1)), signals((20, n), "complex64"), 2e-6)
        for shape in ((n, 3), (2, n, 1), (n, 33)):
            z = signals(shape, "complex64")
            check(lambda fft, z: fft.fftn(z, axes=[-2]) if fft is np.fft else fft.fft(z, dim=-2),
                  z, 2e-6)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", LONG)
def test_a_long_signal(n: int, dtype: str) -> None:
    wide, tolerance = DTYPES[dtype]
    for call in COMPLEX:
        check(call, signals((n,), wide), tolerance)
    for call in REAL:
        check(call, signals((1, n), dtype), tolerance)
    check(lambda fft, z: fft.fft(z[::2]), signals((2 * n,), wide), tolerance)
    check(lambda fft, x: fft.rfft(x[::2]), signals((2 * n,), dtype), tolerance)


def test_what_is_no_number_stays_in_its_signal() -> None:
    for n in (30, 2112):
        x = antorcha.randn(40, n)
        x[3, 4] = float("nan")
        for found in (antorcha.fft.fft(x), antorcha.fft.rfft(x), antorcha.fft.irfft(x)):
            assert found.isnan().all(1).nonzero().flatten().tolist() == [3]


def test_a_faint_signal_beside_a_loud_one_keeps_its_digits() -> None:
    for n in (30, 400, 2112):
        x = signals((40, n), "float32")
        x[::2] *= 1e20
        found = antorcha.fft.rfft(antorcha.from_numpy(x)).numpy()
        wanted = np.fft.rfft(x.astype(np.float64))
        worst = np.abs(found - wanted).max(1) / np.abs(wanted).max(1)
        assert worst.max() < 2e-6, n


def test_results_that_are_real_are_just_that() -> None:
    """The first number of a real signal's transform, and the one of its highest frequency."""
    for n in (2, 16, 30, 400, 1024, 2048, 2112, 4374, 10000):
        for shape in ((n,), (40, n)):
            found = antorcha.fft.rfft(antorcha.randn(shape))
            assert not found[..., [0, -1]].imag.any(), (n, shape)


def test_any_number_of_threads_gives_the_same() -> None:
    x, z = antorcha.randn(200, 300), antorcha.randn(1 << 16, dtype=antorcha.complex64)
    wide = antorcha.randn(1 << 21, dtype=antorcha.complex64)  # enough for threads of ours
    calls = (
        lambda: antorcha.fft.fft2(x),
        lambda: antorcha.fft.rfft(x),
        lambda: antorcha.fft.fft(z),
        lambda: antorcha.fft.fft(wide),
    )
    threads, found = antorcha.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            antorcha.set_num_threads(count)
            found.append([call().numpy() for call in calls])
    finally:
        antorcha.set_num_threads(threads)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
