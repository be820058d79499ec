"""Products of complex matrices by the kernel for real ones, however the operands lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.devices import cpu
from antorcha.lang.kernels import MatMul

SIZES = [(1, 1, 1), (3, 4, 5), (1, 7, 9), (9, 1, 4), (40, 50, 60), (70, 65, 130)]
WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda a, b: a @ b,
    "columns": lambda a, b: a.mT.contiguous().mT @ b.mT.contiguous().mT,
    "every other": lambda a, b: a.repeat_interleave(2, 1)[:, ::2] @ b.repeat(2, 1)[: len(b)],
    "conjugates": lambda a, b: (a.conj() @ b.conj()).conj(),
    "result by columns": lambda a, b: antorcha.mm(
        a, b, out=antorcha.empty(b.shape[1], a.shape[0], dtype=a.dtype).mT
    ),
    "a stack": lambda a, b: (antorcha.stack([b * 0, b]).mT @ a.mT)[1].mT,
    "weights": lambda a, b: (
        antorcha.addmm(antorcha.zeros(len(a), b.shape[1], dtype=a.dtype), a, b, alpha=2j, beta=0)
        / 2j
    ),
    "a third operand": lambda a, b: antorcha.addmm(b[:1], a, b) - b[:1],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_products(dtype: str, way: str) -> None:
    rng = np.random.default_rng(0)
    for m, n, k in SIZES:
        a, b = (
            (rng.standard_normal(s) + 1j * rng.standard_normal(s)).astype(dtype)
            for s in ((m, k), (k, n))
        )
        wanted = a.astype(np.complex128) @ b
        found = WAYS[way](antorcha.tensor(a), antorcha.tensor(b)).resolve_conj().numpy()
        assert found.dtype == a.dtype
        tight = (3e-6 if dtype == "complex64" else 1e-14) * max(np.abs(wanted).max(), 1)
        np.testing.assert_allclose(found, wanted, 0, tight)


def test_the_kernel_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    compiled = cpu.TEMPLATES[MatMul]

    def noted(*args: Any) -> Any:
        launch = compiled(*args)  # raises where NumPy is to do it
        found.append(launch)
        return launch

    monkeypatch.setitem(cpu.TEMPLATES, MatMul, noted)
    z = antorcha.randn(2, 1, 3, 1, 5, 5, dtype=antorcha.complex64)  # dims that no other test has
    antorcha.matmul(z, z)
    assert found
