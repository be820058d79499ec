"""Products of float16 and bfloat16: of the same numbers as float32, rounded once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import antorcha as torch
from antorcha.devices.cpu import matmul_pairs
from antorcha.devices.cpu.matmul import ProductShape, block_words
from antorcha.devices.cpu.matmul_pairs import PairsShape
from antorcha.lang.kernels import MatMul
from antorcha.lang.native import f32, interpreted
from antorcha.lang.native.machine import target

PRODUCTS: list[Callable[[Any, Any, Any], Any]] = [
    lambda a, w, b: torch.nn.functional.linear(a, w, b),
    lambda a, w, b: a @ w.T,
    lambda a, w, b: torch.addmm(b, a, w.T, alpha=0.5, beta=2.0),
    lambda a, w, b: torch.mv(a, w[0]),
    lambda a, w, b: torch.dot(a[0], w[0]),
    lambda a, w, b: a[::2] @ w[:5, :].T,
    lambda a, w, b: a[:, ::3] @ w[:, ::3].T,
    lambda a, w, b: torch.stack([a, a * 2]) @ w.T,
    lambda a, w, b: a.expand(3, -1, -1) @ w.T.expand(3, -1, -1),
    lambda a, w, b: a.unflatten(0, (2, 4)).transpose(0, 1) @ w.T.expand(4, -1, -1),
    lambda a, w, b: torch.mm(a, w.T, out=torch.empty(9, 8, dtype=a.dtype).T),
]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_products_are_rounded_once(dtype: Any) -> None:
    torch.manual_seed(0)
    a, w, b = [torch.randn(*shape).to(dtype) for shape in ((8, 33), (9, 33), (9,))]
    for number, product in enumerate(PRODUCTS):
        wide = product(a.float(), w.float(), b.float())
        found = product(a, w, b)
        assert found.dtype is dtype
        assert torch.equal(found, wide.to(dtype)), number


SIZES = [(64, 96, 64), (65, 70, 91), (33, 500, 1026), (200, 40, 2301)]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_large_products(size: tuple[int, int, int]) -> None:
    """Sums of float32 in whatever order: within what their rounding and the result's may do."""
    torch.manual_seed(0)
    m, n, k = size
    a, w, b = [torch.randn(*s).to(torch.bfloat16) for s in ((m, k), (n, k), (n,))]
    turned = a.T.contiguous().T, w.T.contiguous().T
    for x, y in ((a, w), turned, (torch.stack([a, a])[:, :, ::2], w[:, ::2])):
        for run in (
            lambda x, y, b: x @ y.mT,
            lambda x, y, b: torch.nn.functional.linear(x, y, b),
            lambda x, y, b: torch.baddbmm(b[:1], x.expand(2, m, -1), y.mT.expand(2, -1, n), beta=2,
                                          alpha=0.5),
        ):  # fmt: skip
            wide = run(x.double(), y.double(), b.double())
            terms = run(x.double().abs(), y.double().abs(), b.double().abs())
            error = (run(x, y, b).double() - wide).abs()
            assert (error <= wide.abs() * 2**-8 + terms * 2**-18).all()


def test_pairs_by_rows_and_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the CPU multiplies pairs: what the kernel gives interpreted, for every way that its
    operands may lie, and for sums that go on over several blocks."""
    monkeypatch.setattr(matmul_pairs, "DEEP", 8)
    m, n, k = 17, 35, 37
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, s).astype(np.float32) for s in ((m, k), (k, n)))
    bias = rng.integers(-8, 9, n).astype(np.float32)
    bits = [(x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, b, bias)]
    wanted = (0.5 * (a @ b) + 2 * bias).astype(ml_dtypes.bfloat16).view(np.uint16)
    S = ProductShape(f32)
    S.L, S.MR, S.NV, S.NR = 16, 14, 2, 32
    for ways in itertools.product((False, True), repeat=2):
        held = [np.asfortranarray(x) if way else x for x, way in zip(bits, ways, strict=False)]
        steps = [[s // 2 for s in x.strides] for x in held]
        out = np.zeros((m, n), np.uint16)
        what = MatMul(1, m, n, k, (0, *steps[0]), (0, *steps[1]), (0, n, 1), (0, 0, 1), 0.5, 2.0)
        desc = np.array(block_words(what, (1, 1, m, n)))
        bufs = np.array([x.ctypes.data for x in (out, *held, bits[2])], np.uint64)
        run = partial(matmul_pairs.pairs_kernel, bufs, desc, S=PairsShape(S, False))
        with interpreted():
            assert run() == 0
        np.testing.assert_array_equal(out, wanted)
        if target().has("avx512bf16"):
            out[:] = 0
            assert run() == 0
            np.testing.assert_array_equal(out, wanted)


def test_gradients_have_the_dtype_of_the_operands() -> None:
    a = torch.ones(2, 3, dtype=torch.bfloat16, requires_grad=True)
    w = torch.ones(4, 3, dtype=torch.bfloat16, requires_grad=True)
    torch.nn.functional.linear(a, w).sum().backward()
    assert torch.equal(a.grad, torch.full((2, 3), 4.0, dtype=torch.bfloat16))
    assert torch.equal(w.grad, torch.full((4, 3), 2.0, dtype=torch.bfloat16))
