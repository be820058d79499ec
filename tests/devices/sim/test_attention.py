"""Attention on the simulator beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import antorcha
from antorcha.devices.gpu import fallback
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

SIZES = [
    ((2, 3, 4), (2, 5, 4), (2, 5, 6)),
    ((2, 40, 4), (40, 4), (40, 3)),
    ((1, 2, 70, 20), (1, 2, 100, 20), (1, 2, 100, 64)),
    ((3, 65, 33), (3, 130, 33), (3, 130, 200)),
    ((2, 2, 100, 16), (2, 2, 60, 16), (2, 2, 60, 17)),
]
CLOSE = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 2e-2, "float16": 2e-3}


def means(q: Any, k: Any, v: Any, scale: float, causal: bool) -> Any:
    """What is asked for, in float64."""
    scores = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1 if causal else np.nan, total) @ v


def columns(t: Tensor) -> Tensor:
    return t.mT.contiguous().mT


def test_attention() -> None:
    rng = np.random.default_rng(0)
    fallback.noted.clear()
    wrong = []
    for dtype in CLOSE:
        kind = getattr(antorcha, dtype)
        for shapes in SIZES if dtype == "float32" else SIZES[:3]:
            given = [antorcha.tensor(rng.standard_normal(s)).to(kind) for s in shapes]
            wide = [t.to(antorcha.float64).numpy() for t in given]
            for causal, turned in ((False, False), (True, False), (True, True)):
                there = [t.to("sim") for t in given]
                if turned:
                    there = [columns(t) for t in there]
                found = T.attention(*there, 0.3, causal).cpu().to(antorcha.float64).numpy()
                error = np.abs(found - means(*wide, 0.3, causal)).max()
                if not error < CLOSE[dtype]:
                    wrong.append(f"{dtype} {shapes} {causal} {turned}: {error:.1e}")
    assert not wrong
    assert "Attention" not in fallback.noted


def test_queries_that_see_nothing() -> None:
    """Of scores that are all -inf: zeros where queries look back, else no number."""
    q, v = antorcha.ones(1, 70, 2), antorcha.ones(1, 70, 3)
    k = antorcha.ones(1, 70, 2)
    k[0, :66] = -float("inf")
    for causal in (False, True):
        found = T.attention(q.to("sim"), k.to("sim"), v.to("sim"), 1.0, causal).cpu().numpy()
        wanted = np.ones((1, 70, 3))
        if causal:
            wanted[0, :66] = 0
        assert np.array_equal(found, wanted)
    k[0, 66:] = -float("inf")
    found = T.attention(q.to("sim"), k.to("sim"), v.to("sim"), 1.0, False).cpu().numpy()
    assert np.isnan(found).all()


def test_no_number_stays_in_its_row() -> None:
    q, k = antorcha.ones(1, 5, 2), antorcha.ones(1, 5, 2)
    q[0, 3, 0] = float("nan")
    found = T.attention(q.to("sim"), k.to("sim"), k.to("sim"), 1.0, True).cpu().numpy()
    assert np.array_equal(np.isnan(found[0, :, 0]), np.arange(5) == 3)
