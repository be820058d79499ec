"""Complex numbers in the CPU's kernels: what PyTorch gives, at infinities and zeros too, in any
layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.devices import cpu
from antorcha.devices.cpu.pointwise import compile_pointwise
from antorcha.lang.kernels import Launch, Pointwise
from antorcha.runtime.call import plan
from tests.ops.parity import needs_torch, pair

BORDERS = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 3e38, 1e-40, 100.0]
GRID = np.array([complex(re, im) for re in BORDERS for im in BORDERS], np.complex64)

UNARY: dict[str, Callable[[Any], Any]] = {
    "abs": lambda z: z.abs(),
    "angle": lambda z: z.angle(),
    "exp": lambda z: z.exp(),
    "isinf": lambda z: z.isinf(),
    "reciprocal": lambda z: z.reciprocal(),
    "sgn": lambda z: z.sgn(),
    "square": lambda z: z * z,
    "bool": lambda z: z.bool(),
    "number": lambda z: (z + (2 - 1j)) * 3,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "eq": lambda a, b: a == b,
    "conj": lambda a, b: a.conj() * b,
    "real": lambda a, b: a.real * b,
    "addcmul": lambda a, b: (a + 1).addcmul(a, b, value=2),
}


def _without_numpy(self: Any, what: Any, outs: Any, ins: Any) -> Launch:
    if isinstance(what, Pointwise):
        return compile_pointwise(what, outs, ins)
    return _compile(self, what, outs, ins)


_compile = cpu.CpuBackend.compile


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed here has kernels: NumPy is not asked."""
    plan.flush()
    monkeypatch.setattr(cpu.CpuBackend, "compile", _without_numpy)


def same(found: Any, wanted: Any, rtol: float = 1e-6) -> None:
    """Equal in both parts; a NaN equals a NaN, and an overflow is one in both."""
    found, wanted = found.resolve_conj().numpy(), wanted.resolve_conj().numpy()
    assert found.dtype == wanted.dtype
    for part in ("real", "imag"):
        np.testing.assert_allclose(getattr(found, part), getattr(wanted, part), rtol, 1e-6)


@needs_torch
@pytest.mark.parametrize("name", UNARY)
def test_unary_at_borders(name: str) -> None:
    z, w = pair(GRID)
    same(UNARY[name](z), UNARY[name](w))


@needs_torch
@pytest.mark.parametrize("name", ["mul", "div", "eq", "conj"])
def test_binary_at_borders(name: str) -> None:
    z, w = pair(GRID)
    same(
        BINARY[name](z.repeat(100), z.repeat_interleave(100)),
        BINARY[name](w.repeat(100), w.repeat_interleave(100)),
    )


def test_sums_at_borders() -> None:
    """PyTorch multiplies the second operand by 1 + 0i first, which makes NaN of infinities."""
    a, b = np.tile(GRID, 100), np.repeat(GRID, 100)
    with np.errstate(all="ignore"):
        same(antorcha.tensor(a) + antorcha.tensor(b), antorcha.tensor(a + b))
        same(antorcha.tensor(a) - antorcha.tensor(b), antorcha.tensor(a - b))


@needs_torch
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", BINARY)
def test_layouts(name: str, dtype: str) -> None:
    """Rows, every third element, columns, one number for all, and whole rows on two threads."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 70, 43)) + 1j * rng.standard_normal((2, 70, 43))
    (a, b), (c, d) = pair(x[0].astype(dtype)), pair(x[1].astype(dtype))
    tight = 2e-6 if dtype == "complex64" else 1e-14
    for move in (
        lambda m, n: (m, n),
        lambda m, n: (m[:, 1::3], n[:, ::3][:, :14]),
        lambda m, n: (m.t(), n.t().contiguous()),
        lambda m, n: (m[:, :1], n[:1]),
        lambda m, n: (m[3, 5], m - n),
        lambda m, n: (m, n.real),
        lambda m, n: (m.repeat(20, 1), n.repeat(20, 1)),
        lambda m, n: (m[:0], n[:0]),
    ):
        same(BINARY[name](*move(a, c)), BINARY[name](*move(b, d)), tight)


def test_constants() -> None:
    """What is the same everywhere, as an operand and as a result."""
    z = antorcha.tensor(GRID[:20])
    ones = antorcha.ones(20, dtype=antorcha.complex64)
    assert ones.tolist() == [1 + 0j] * 20
    assert antorcha.full((3, 5), 1 - 2j).tolist() == [[1 - 2j] * 5] * 3
    assert (ones * 2j).tolist() == [2j] * 20
    assert antorcha.zeros_like(z).tolist() == [0j] * 20
    padded = antorcha.nn.functional.pad(ones, (1, 2), value=3)
    assert padded.tolist() == [3, *[1] * 20, 3, 3]


def test_in_place_and_out() -> None:
    z = antorcha.tensor(GRID[GRID == GRID][:30])
    wanted = (z * z).numpy()
    out = antorcha.empty(60, dtype=antorcha.complex64)[::2]
    np.testing.assert_array_equal(antorcha.mul(z, z, out=out).numpy(), wanted)
    z *= z
    np.testing.assert_array_equal(z.numpy(), wanted)
