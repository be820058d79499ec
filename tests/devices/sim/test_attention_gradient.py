"""The gradient of attention on the simulator beside that of products and a softmax on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import antorcha
import antorcha.nn.functional as F
from antorcha.devices.gpu import fallback
from antorcha.runtime.tensor import Tensor

NODE = "ScaledDotProductFlashAttentionBackward0"
CLOSE = {"float32": 3e-6, "float16": 4e-3, "bfloat16": 3e-2}
Given = list[Tensor]


def given(dtype: str, sizes: Any, seed: int = 0) -> Given:
    """Queries, keys, values, and the gradient of what is found."""
    rng = np.random.default_rng(seed)
    heads, queries, keys, features, width = sizes
    shapes = ((queries, features), (keys, features), (keys, width), (queries, width))
    kind = getattr(antorcha, dtype)
    return [antorcha.tensor(rng.standard_normal((*heads, *s))).to(kind) for s in shapes]


def straight(t: Tensor) -> Tensor:
    return t


def turned(t: Tensor) -> Tensor:
    return t.mT.contiguous().mT


def odd(t: Tensor) -> Tensor:
    """The same at an address that is no multiple of 16 bytes."""
    return antorcha.cat([t.reshape(-1)[:1], t.reshape(-1)])[1:].view(*t.shape)


def wide(t: Tensor) -> Tensor:
    """The same as part of longer rows, of which a piece of 16 bytes has all or nothing."""
    return antorcha.cat([t, t, t[..., :8]], -1)[..., : t.shape[-1]]


def gradients(four: Given, scale: float, causal: bool, lies: Callable[[Tensor], Tensor]) -> Given:
    """What attention finds, and its gradients."""
    q, k, v, g = [lies(t).detach() for t in four]
    q, k, v = [t.requires_grad_() for t in (q, k, v)]
    found = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)
    found.backward(g)
    return [found, *[t.grad for t in (q, k, v)]]


def plainly(four: Given, scale: float, causal: bool) -> list[Any]:
    found = gradients([t.double() for t in four], scale, causal, straight)
    return [t.detach().numpy() for t in found]


WHOLE = [(False, 0.3, straight), (True, 0.2, wide), (True, -0.2, straight), (True, 0.0, odd)]
CASES = [  # (heads, queries, keys, features, features of values), and how they look and lie
    ("float32", ((2,), 40, 70, 64, 64), WHOLE),
    ("bfloat16", ((2, 2), 70, 70, 64, 64), WHOLE[1:]),
    ("bfloat16", ((1,), 20, 33, 128, 104), WHOLE[1:2]),
    ("float16", ((1,), 100, 80, 20, 17), [(True, 0.3, turned)]),
]


def test_gradients() -> None:
    fallback.noted.clear()
    wrong = []
    for dtype, sizes, ways in CASES:
        four = given(dtype, sizes)
        for causal, scale, lies in ways:
            there = gradients([t.to("sim") for t in four], scale, causal, lies)
            wanted = plainly(four, scale, causal)
            case = f"{dtype} {sizes} {causal} {lies.__name__}"
            if type(there[0].grad_fn).__name__ != NODE:
                wrong.append(f"{case}: {there[0].grad_fn}")
            for what, t, w in zip("oqkv", there, wanted, strict=True):
                error = np.abs(t.detach().cpu().double().numpy() - w).max()
                if not error <= CLOSE[dtype] * max(1, np.abs(w).max()):
                    wrong.append(f"{case} {what}: {error:.1e}")
    assert not wrong
    assert not {"Attention", "AttentionGradient"} & set(fallback.noted)


def test_long_sums_of_float32() -> None:
    """What tensor cores cut off does not add up over many keys, or queries."""
    wrong = []
    for sizes in (((1,), 17, 1500, 16, 16), ((1,), 1500, 17, 16, 16)):
        four = given("float32", sizes)
        there = gradients([t.to("sim") for t in four], 0.25, False, straight)
        for what, t, w in zip("oqkv", there, plainly(four, 0.25, False), strict=True):
            error = np.linalg.norm(t.detach().cpu().double().numpy() - w) / np.linalg.norm(w)
            if not error < 1e-6:
                wrong.append(f"{sizes} {what}: {error:.1e}")
    assert not wrong


def test_queries_that_see_nothing_give_no_gradient() -> None:
    found = []
    for device in ("cpu", "sim"):
        q, k, v, g = [t.to(device) for t in given("bfloat16", ((1,), 40, 40, 16, 16))]
        k[0, :20, 0] = -float("inf")
        q[..., 0] = 1
        out, _, dk, dv = gradients([q, k, v, g], 1.0, True, straight)
        found.append([t.detach().cpu().float().numpy() for t in (out, dk, dv)])
    for here, there in zip(*found, strict=True):
        np.testing.assert_allclose(there, here, rtol=3e-2, atol=3e-2)
    assert np.array_equal(there[0, :20], np.zeros((20, 16)))


def test_second_order() -> None:
    """A gradient that is recorded is that of products and a softmax."""
    found = []
    for device in ("cpu", "sim"):
        q, k, v, g = [t.to(device) for t in given("float32", ((2,), 14, 13, 8, 8))]
        q, k, v = [t.requires_grad_() for t in (q, k, v)]
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        first = antorcha.autograd.grad(out, (q, k, v), g, create_graph=True)
        second = antorcha.autograd.grad(sum([(t * t).sum() for t in first]), (q, k, v))
        found.append([t.detach().cpu().numpy() for t in (*first, *second)])
    for here, there in zip(*found, strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-4 * np.abs(here).max())


def test_heads_that_are_repeated() -> None:
    """The gradient of keys that several heads share is their sum."""
    rng = np.random.default_rng(1)
    shapes = ((1, 4, 14, 8), (1, 2, 13, 8), (1, 2, 13, 8))
    three = [antorcha.tensor(rng.standard_normal(s)).float() for s in shapes]
    found = []
    for device in ("cpu", "sim"):
        leaves = [t.to(device).detach().requires_grad_() for t in three]
        F.scaled_dot_product_attention(*leaves, enable_gqa=True).square().sum().backward()
        found.append([t.grad.cpu().numpy() for t in leaves])
    for here, there in zip(*found, strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-5)


def nodes_of(t: Tensor) -> set[str]:
    """The names of the nodes of a graph."""
    names: set[str] = set()
    todo = [t.grad_fn]
    while todo:
        fn = todo.pop()
        if fn is not None:
            names.add(type(fn).__name__)
            todo += [f for f, _ in fn.next_functions]
    return names


def test_layers_get_there() -> None:
    antorcha.manual_seed(0)
    layer = antorcha.nn.TransformerEncoderLayer(32, 2, 32, 0.0, batch_first=True)
    x = antorcha.randn(2, 16, 32)
    found = []
    for device in ("cpu", "sim"):
        here = layer.to(device)
        here.zero_grad()
        out = here(x.to(device))
        out.square().sum().backward()
        found.append([p.grad.cpu().numpy() for p in here.parameters()])
    assert NODE in nodes_of(out)
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-3, atol=1e-3)
