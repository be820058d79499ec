"""Attention without a graph: one kernel gives what the ops with a graph give."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.devices import cpu
from antorcha.devices.cpu import attention as kernels
from antorcha.devices.cpu.matmul import ProductShape
from antorcha.devices.cpu.template import words_of
from antorcha.devices.numpy_semantics.attention import compute_attention
from antorcha.lang.kernels import Attention
from antorcha.lang.native import f64, interpreted
from antorcha.ops import attention as ops

F = antorcha.nn.functional
SIZES = [(12, 12, 8, 8), (17, 40, 33, 5), (130, 130, 64, 64), (40, 17, 20, 70), (250, 31, 3, 33)]


def operands(*sizes: int, dtype: Any = None) -> list[Any]:
    """Queries, keys and values of 2 times 3 heads."""
    antorcha.manual_seed(sum(sizes))
    length, source, features, width = sizes
    shapes = ((length, features), (source, features), (source, width))
    return [antorcha.randn(2, 3, *shape, dtype=antorcha.float64).to(dtype) for shape in shapes]


def by_ops(q: Any, k: Any, v: Any, **options: Any) -> Any:
    """By what a graph records, in float64."""
    wide = [t.detach().double().clone().requires_grad_() for t in (q, k, v)]
    return F.scaled_dot_product_attention(*wide, **options).detach()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [antorcha.float32, antorcha.float64], ids=str)
def test_sizes(sizes: tuple[int, ...], causal: bool, dtype: Any) -> None:
    q, k, v = operands(*sizes, dtype=dtype)
    tight = 5e-6 if dtype is antorcha.float32 else 1e-13
    for options in ({}, {"scale": 0.3}):
        wanted = by_ops(q, k, v, is_causal=causal, **options)
        found = F.scaled_dot_product_attention(q, k, v, is_causal=causal, **options)
        assert found.dtype is dtype
        assert found.is_contiguous()
        np.testing.assert_allclose(found.double().numpy(), wanted.numpy(), 10 * tight, tight)


def test_the_kernel_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []

    def noted(*args: Any) -> Any:
        found.append(args)
        return kernels.compile_attention(*args)

    monkeypatch.setitem(cpu.TEMPLATES, Attention, noted)
    with antorcha.no_grad():
        q = antorcha.randn(1, 2, 1, 2, 13, 7, requires_grad=True)  # dims that no other test has
        F.scaled_dot_product_attention(q, q, q)
    assert found


@pytest.mark.parametrize("dtype", [antorcha.float16, antorcha.bfloat16], ids=str)
def test_halves_are_rounded_once(dtype: Any) -> None:
    q, k, v = operands(20, 20, 16, 16, dtype=dtype)
    found = F.scaled_dot_product_attention(q, k, v).double()
    error = (found - by_ops(q, k, v)).abs()
    assert (error <= by_ops(q, k, v).abs() * antorcha.finfo(dtype).eps + 1e-6).all()


def test_strides() -> None:
    q, k, v = operands(20, 30, 16, 24, dtype=antorcha.float32)
    wanted = by_ops(q, k, v).numpy()
    turned = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in (q, k, v)]
    columns = [t.mT.contiguous().mT for t in (q, k, v)]
    one = [q[:1, :1].expand(2, 3, -1, -1), k[:1, :1].expand(2, 3, -1, -1), v]
    for each in (turned, columns, [q, columns[1], turned[2]]):
        found = F.scaled_dot_product_attention(*each).numpy()
        np.testing.assert_allclose(found, wanted, 1e-5, 2e-6)
    found = F.scaled_dot_product_attention(*one).numpy()
    np.testing.assert_allclose(found, by_ops(*one).numpy(), 1e-5, 2e-6)


def test_each_of_a_batch() -> None:
    q, k, v = operands(20, 30, 16, 24, dtype=antorcha.float32)
    call = partial(F.scaled_dot_product_attention, is_causal=True)
    found = antorcha.func.vmap(call, (0, None, 0))(q, k[0], v)
    wanted = antorcha.stack([call(q[i], k[0], v[i]) for i in range(2)])
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), 1e-5, 2e-6)


def test_what_is_no_number() -> None:
    """A query that is none finds none, the others find what they did; infinite scores, too."""
    q, k, v = operands(20, 20, 8, 8, dtype=antorcha.float32)
    q[0, 1, 3, 0] = float("nan")
    for causal in (False, True):
        found = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        places = found.isnan().all(-1).nonzero().tolist()
        assert places == [[0, 1, 3]]
        assert found.isnan().sum().item() == 8
    nowhere = antorcha.full((1, 20, 8), float("-inf"))
    ones = antorcha.ones(1, 20, 8)
    assert F.scaled_dot_product_attention(nowhere, ones, ones).isnan().all()
    assert (F.scaled_dot_product_attention(nowhere, ones, ones, is_causal=True) == 0).all()


def test_any_number_of_threads_gives_the_same() -> None:
    q, k, v = operands(250, 250, 64, 64, dtype=antorcha.float32)
    threads, found = antorcha.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            antorcha.set_num_threads(count)
            found.append(F.scaled_dot_product_attention(q, k, v, is_causal=True).numpy())
    finally:
        antorcha.set_num_threads(threads)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_few_queries_and_graphs_take_the_ops() -> None:
    q, k, v = operands(ops.FEW - 1, 20, 8, 8, dtype=antorcha.float64)
    wanted = by_ops(q, k, v)
    np.testing.assert_allclose(F.scaled_dot_product_attention(q, k, v), wanted, 1e-12)
    q.requires_grad_()
    F.scaled_dot_product_attention(q, k, v).sum().backward()
    assert q.grad.abs().sum() > 0


@pytest.mark.parametrize("causal", [False, True])
def test_the_kernel_and_numpy(causal: bool) -> None:
    sizes = (19, 23, 5, 9)
    q, k, v = [t[0, :2].numpy() for t in operands(*sizes, dtype=antorcha.float64)]
    what = Attention(0.4, causal)
    wanted = compute_attention(what, [])([q, k, v])[0]
    (length, source, features, width), S = sizes, ProductShape(f64)
    parts = -(-length // (kernels.PANELS * S.MR))
    task = [parts, 2 * parts, *sizes, kernels.bits(0.4), width, features, 1, features, 1, width, 1]
    heads = [[length * width], [length * features], [source * features], [source * width]]
    desc = np.array([*task, *words_of([2], heads)])
    run = partial(kernels.attention_kernel, P=kernels.AttentionProgram(S, causal))
    for plain in (False, True):
        out = np.zeros((2, length, width))
        bufs = np.array([x.ctypes.data for x in (out, q, k, v)], np.uint64)
        if plain:
            with interpreted():
                assert run(bufs, desc) == 0
        else:
            assert run(bufs, desc) == 0
        np.testing.assert_allclose(out, wanted, 1e-12)
