"""Products by warpgroups on the simulator: layouts of factors, ragged edges, what is stored."""

from __future__ import annotations

from itertools import product as every

import numpy as np

import antorcha
from antorcha.devices.gpu.product import ProductCut
from antorcha.runtime.tensor import Tensor
from tests.devices.sim.test_matmul import described, report, run, values, wide

CUTS = [
    ProductCut("bulk", 128, 256, 64, 384, stages=4, parts=1),
    ProductCut("bulk", 128, 128, 64, 384, stages=3, parts=2),
    ProductCut("bulk", 64, 64, 64, 256, stages=4, parts=1),
]


def lies(t: Tensor, how: str) -> Tensor:
    """The same matrix on the simulator, its rows (or columns) at multiples of 16 bytes."""
    rows, columns = t.shape
    if how == "columns":
        return lies(t.mT, "rows").mT
    room = antorcha.full((rows, -(-columns // 8) * 8), float("nan"), dtype=t.dtype).to("sim")
    room[:, :columns] = t.to("sim")
    return room[:, :columns]


def test_layouts_and_edges() -> None:
    rng = np.random.default_rng(0)
    wrong: list[str] = []
    pairs = list(every(("rows", "columns"), repeat=2))
    for number, (m, n, k) in enumerate(((128, 256, 64), (130, 264, 200), (72, 137, 401))):
        for dtype, (one, other) in zip(("bfloat16", "float16") * 2, pairs, strict=True):
            a, b = values(rng, dtype, m, k), values(rng, dtype, k, n)
            there = lies(a, one), lies(b, other)
            for cut in CUTS[number % 3 :: 2]:
                found = run(described(*there), *there, None, cut)
                wrong += report(found, wide(a) @ wide(b), dtype, (dtype, m, n, k, one, other, cut))
    assert not wrong, "\n".join(wrong)
