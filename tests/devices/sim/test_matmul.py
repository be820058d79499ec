"""Products of matrices on the simulator beside NumPy: types, layouts, sizes, and ways to cut."""

from __future__ import annotations

from itertools import product as every
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.core import switches
from antorcha.devices.gpu import fallback
from antorcha.devices.gpu.launcher import launch_of
from antorcha.devices.gpu.matmul import matrix_product
from antorcha.devices.gpu.product import ProductCut, plan_product, tiles_cut
from antorcha.devices.sim import backend
from antorcha.lang.kernels import MatMul
from antorcha.runtime.tensor import Tensor

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "int16",
          "complex64", "complex128")  # fmt: skip
CLOSE = {"float32": 3e-6, "float64": 1e-13, "float16": 2e-3, "bfloat16": 1e-2, "complex64": 3e-6,
         "complex128": 1e-13}  # fmt: skip
SIZES = [(1, 1, 1), (3, 4, 5), (1, 70, 100), (70, 2, 90), (5, 9, 300), (1, 1, 5000), (20, 33, 17),
         (70, 65, 40), (40, 50, 6), (64, 72, 700)]  # fmt: skip


def values(rng: Any, dtype: str, *shape: int) -> Tensor:
    """Random elements; of integers small ones."""
    kind = getattr(antorcha, dtype)
    if kind.is_complex:
        return antorcha.tensor(
            rng.standard_normal(shape) + 1j * rng.standard_normal(shape), dtype=kind
        )
    if kind.is_floating_point:
        return antorcha.tensor(rng.standard_normal(shape)).to(kind)
    return antorcha.tensor(rng.integers(-9, 10, shape)).to(kind)


def wide(t: Tensor) -> np.ndarray[Any, Any]:
    """The elements in a type whose sums round little, or wrap as integers do."""
    t = t.cpu()
    if t.dtype.is_complex:
        return np.asarray(t.numpy(), np.complex128)
    if t.dtype.is_floating_point:
        return np.asarray(t.to(antorcha.float64).numpy())
    return np.asarray(t.numpy())


def lies(t: Tensor, how: str) -> Tensor:
    """The same matrices on the simulator, lying in another way."""
    if how == "columns":
        return t.to("sim").mT.contiguous().mT
    if how == "every other":
        room = antorcha.zeros(*t.shape[:-2], 2 * t.shape[-2], 3 * t.shape[-1], dtype=t.dtype)
        room = room.to("sim")[..., 1::2, ::3]
        room.copy_(t.to("sim"))
        return room
    return t.to("sim")


def report(found: Tensor, wanted: np.ndarray[Any, Any], dtype: str, what: Any) -> list[str]:
    """A line where numbers differ."""
    if dtype not in CLOSE:
        return [] if np.array_equal(wide(found), wanted.astype(wide(found).dtype)) else [str(what)]
    error = np.abs(wide(found) - wanted).max() / max(np.abs(wanted).max(), 1)
    return [] if error < CLOSE[dtype] else [f"{what}: {error:.1e}"]


def test_products_of_all_types_and_layouts() -> None:
    rng = np.random.default_rng(0)
    fallback.noted.clear()
    wrong = []
    for dtype in DTYPES:
        hows = ("rows", "columns") if dtype != "float32" else ("rows", "columns", "every other")
        for m, n, k in SIZES if dtype in ("float32", "bfloat16") else SIZES[1::2]:
            a, b = values(rng, dtype, m, k), values(rng, dtype, k, n)
            c = values(rng, dtype, n)
            wanted = 2 * (wide(a) @ wide(b)) + 3 * wide(c)
            pairs = list(every(hows, hows))
            for one, other in pairs if dtype == "float32" else pairs[1:3]:
                found = antorcha.addmm(c.to("sim"), lies(a, one), lies(b, other), alpha=2, beta=3)
                wrong += report(found, wanted, dtype, (dtype, m, n, k, one, other))
    assert not wrong
    assert "MatMul" not in fallback.noted


def test_stacks_results_and_weights() -> None:
    rng = np.random.default_rng(1)
    wrong = []
    for dtype in ("float32", "bfloat16", "complex128"):
        a, b = values(rng, dtype, 3, 2, 19, 30), values(rng, dtype, 2, 30, 21)
        there = a.to("sim"), b.to("sim")
        wrong += report(there[0] @ there[1], wide(a) @ wide(b), dtype, (dtype, "a stack"))
        wrong += report(
            there[0].expand(3, 2, 19, 30)[:, :1] @ there[1][0], wide(a)[:, :1] @ wide(b)[0], dtype,
            (dtype, "one matrix"),
        )  # fmt: skip
        out = antorcha.zeros(21, 19, dtype=a.dtype, device="sim").mT
        antorcha.mm(there[0][0, 0], there[1][0], out=out)
        wrong += report(out, wide(a)[0, 0] @ wide(b)[0], dtype, (dtype, "result by columns"))
        vector = values(rng, dtype, 30)
        wrong += report(
            there[0] @ vector.to("sim"), wide(a) @ wide(vector), dtype, (dtype, "vector")
        )
    z = values(rng, "complex64", 20, 20)
    found = antorcha.addmm(z.to("sim"), z.to("sim"), z.to("sim"), alpha=2 + 1j, beta=-1j)
    wrong += report(found, (2 + 1j) * (wide(z) @ wide(z)) - 1j * wide(z), "complex64", "weights")
    assert not wrong


def test_nothing_and_no_numbers() -> None:
    for m, n, k in ((0, 3, 4), (3, 0, 4), (3, 4, 0)):
        a, b = antorcha.ones(m, k, device="sim"), antorcha.ones(k, n, device="sim")
        assert np.array_equal((a @ b).cpu().numpy(), np.zeros((m, n)))
    for size in (5, 40):
        a = antorcha.ones(size, size, device="sim")
        a[1, 2] = float("nan")
        a[3, 3] = float("inf")
        found = (a @ a.mT).cpu().numpy()
        assert np.array_equal(found, a.cpu().numpy() @ a.cpu().numpy().T, equal_nan=True)


def cuts(dtype: str) -> list[ProductCut]:
    """Ways to cut that sizes as small as a test's do not choose."""
    kind = getattr(antorcha, dtype)
    if kind.itemsize == 2:
        return [
            ProductCut("cores", 128, 128, 32, 256, warps=(2, 4)),
            ProductCut("cores", 64, 64, 32, 128, warps=(2, 2), stages=2),
        ]
    return [tiles_cut(kind, True, 1000), tiles_cut(kind, True, 64), tiles_cut(kind, False, 0)]


def run(what: MatMul, a: Tensor, b: Tensor, bias: Tensor | None, cut: ProductCut | None) -> Tensor:
    """A product by one way to cut, into a fresh matrix."""
    out = antorcha.empty(what.m, what.n, dtype=a.dtype, device="sim")
    given = [t for t in (a, b, bias) if t is not None]
    layouts = [t._layout for t in given]
    plan = plan_product(matrix_product(what), [out._layout], layouts, cut)
    flat = [x for t in (out, *given) for x in (t._storage, t._offset)]
    launch_of(backend, "MatMul", plan, [out._layout], layouts).into(*flat)
    return out


def described(a: Tensor, b: Tensor, **more: Any) -> MatMul:
    (m, k), n = a.shape, b.shape[1]
    return MatMul(1, m, n, k, (0, *a.stride()), (0, *b.stride()), (0, n, 1), **more)


def test_ways_to_cut() -> None:
    rng = np.random.default_rng(2)
    wrong = []
    for dtype in ("float32", "float64", "bfloat16"):
        for (m, n, k), how in (((130, 140, 72), "rows"), ((136, 128, 520), "columns")):
            a, b = values(rng, dtype, m, k), values(rng, dtype, k, n)
            there = lies(a, how), lies(b, how)
            for cut in cuts(dtype):
                found = run(described(*there), *there, None, cut)
                wrong += report(found, wide(a) @ wide(b), dtype, (dtype, m, n, k, how, cut))
    assert not wrong


def test_products_of_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers that a TF32 holds exactly, then others; sizes that are no multiples of pieces."""
    monkeypatch.setattr(switches.matmul, "allow_tf32", True)
    rng = np.random.default_rng(5)
    wrong = []

    def whole(*shape: int) -> Tensor:
        return antorcha.tensor(rng.integers(-99, 100, shape), dtype=antorcha.float32)

    for (m, n, k), *hows in (
        ((21, 36, 20), "rows", "rows"), ((64, 200, 300), "columns", "rows"),
        ((40, 17, 24), "rows", "columns"), ((132, 130, 68), "columns", "columns"),
        ((33, 35, 37), "rows", "columns"), ((24, 40, 1028), "every other", "rows"),
    ):  # fmt: skip
        a, b, c = whole(m, k), whole(k, n), whole(n)
        found = antorcha.addmm(c.to("sim"), lies(a, hows[0]), lies(b, hows[1]), alpha=2, beta=3)
        if not np.array_equal(wide(found), 2 * (wide(a) @ wide(b)) + 3 * wide(c)):
            wrong.append((m, n, k, hows))
    a, b = whole(3, 40, 36), whole(3, 32, 24)
    found = a.to("sim")[..., 1:33] @ b.to("sim")  # rows that begin between two pieces
    assert np.array_equal(wide(found), wide(a)[..., 1:33] @ wide(b))
    for dtype, cut in (
        ("float32", ProductCut("pieces", 128, 128, 32, 128, together=2, warps=(2, 2))),
        ("float32", ProductCut("pieces", 64, 192, 16, 256, warps=(2, 4), stages=3)),
        ("bfloat16", ProductCut("pieces", 64, 192, 32, 256, warps=(2, 4), stages=3)),
        ("bfloat16", ProductCut("pieces", 128, 64, 32, 128, warps=(4, 1), stages=3)),
    ):
        a, b = values(rng, dtype, 136, 72), values(rng, dtype, 72, 200)
        for how in ("rows", "columns"):
            there = lies(a, how), lies(b, how)
            found = run(described(*there), *there, None, cut)
            error = np.abs(wide(found) - wide(a) @ wide(b)).max()
            if not 1e-5 < error < (5e-2 if dtype == "float32" else 0.3):
                wrong.append((how, cut, error))
    assert not wrong


def test_pieces_that_are_not_aligned() -> None:
    """Operands that begin between two multiples of 16 bytes, or whose rows do."""
    rng = np.random.default_rng(3)
    wrong = []
    a, b = values(rng, "bfloat16", 48, 81), values(rng, "bfloat16", 81, 56)
    room = a.to("sim")
    for first, last in ((0, 80), (1, 81), (8, 40), (3, 20)):
        left, right = room[:, first:last], b.to("sim")[first:last]
        wanted = wide(a)[:, first:last] @ wide(b)[first:last]
        wrong += report(left @ right, wanted, "bfloat16", (first, last))
    even = a[:, :80].contiguous().to("sim")  # rows of whole pieces, that begin at any half
    for first in (1, 4, 8):
        found = even[:, first:] @ b.to("sim")[first:80]
        wrong += report(found, wide(a)[:, first:80] @ wide(b)[first:80], "bfloat16", first)
    assert not wrong


def test_wide_indices_and_bools() -> None:
    """Offsets of 64 bits where 32 might not do, and what is not asked for by any op."""
    rng = np.random.default_rng(4)
    wrong = []
    for dtype, (m, n, k) in every(("float32", "bfloat16"), [(20, 30, 40), (3, 30, 90)]):
        a, b = values(rng, dtype, m, k).to("sim"), values(rng, dtype, k, n).to("sim")
        c = values(rng, dtype, m, n).to("sim")
        what = MatMul(1, m, n, k, (1 << 31, k, 1), (0, n, 1), (0, n, 1), (0, n, 1), 0.5, 2.0)
        wanted = 0.5 * (wide(a) @ wide(b)) + 2 * wide(c)
        wrong += report(run(what, a, b, c, None), wanted, dtype, (dtype, m, n, k))
    a, b = [antorcha.tensor(rng.integers(0, 4, s) == 0).to("sim") for s in ((20, 9), (9, 32))]
    found = run(described(a, b), a, b, None, None)
    assert np.array_equal(found.cpu().numpy(), a.cpu().numpy() @ b.cpu().numpy())
    assert not wrong
