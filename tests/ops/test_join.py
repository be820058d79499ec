"""Joining tensors: values, dtypes, strides, gradients, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from tests.ops.parity import compare, data, needs_torch

# x, y: (3, 4), c: (2, 3, 4), s: (), i: int64 (3, 4)
CASES = """
torch.cat([x, y])|torch.cat([x, y, x[:1]])|torch.cat((x, y), 1)|torch.cat([x.t(), y.t()], -1)
torch.cat([x[:0].reshape(0), x])|torch.cat([i, x])|torch.cat([i, i])|torch.concat([x, y], dim=1)
torch.cat([x, y[:, :2]], dim=-1)|torch.stack([x, y])|torch.stack([x, y], 1)|torch.stack([x, y], -1)
torch.stack([s, s])|torch.stack([i, x])|torch.hstack([x, y])|torch.hstack([x[0], y[1]])
torch.vstack([x, y[0]])|torch.row_stack([x[0], y[1]])|torch.dstack([x, y])
torch.dstack([x[0], y[0]])
torch.column_stack([x[:, 0], y])|torch.block_diag(x, s, y[0])|torch.cartesian_prod(x[0], y[1, :2])
torch.cartesian_prod(x[0])|torch.combinations(x[0])|torch.combinations(x[0], 3)
torch.combinations(x[0], 2, True)|torch.atleast_1d(s)|torch.atleast_2d(x[0])|torch.atleast_3d(x[0])
torch.atleast_3d(x)|torch.atleast_2d(x, s)|torch.atleast_1d([x, s])
torch.broadcast_tensors(x, c[:, :1])
torch.meshgrid(x[0], y[:, 0], indexing='ij')|torch.meshgrid([x[0], y[:, 0], s], indexing='xy')
torch.cat([x, y[:, :2]])|torch.cat([x, s])|torch.cat([])|torch.cat([x, c])|torch.stack([x, x[0]])
torch.stack([])|torch.cat([x, y], 2)|torch.cat(x)|torch.cat([x, 1])
torch.meshgrid(x, indexing='ij')
torch.cat([c.permute(0, 2, 1)[:, :, None]] * 2, 1)|torch.cat([x, y], out=x.new_empty(6, 4))
""".replace("\n", "|").strip("|").split("|")  # fmt: skip


@needs_torch
@pytest.mark.parametrize("text", CASES)
def test_as_pytorch(text: str) -> None:
    if "new_empty" in text and not hasattr(antorcha.Tensor, "new_empty"):
        pytest.skip("new_empty is not there yet")

    def call(torch: Any, x: Any, y: Any, c: Any, s: Any) -> Any:
        i = torch.arange(12).reshape(3, 4)
        return eval(text, {"torch": torch, "x": x, "y": y, "c": c, "s": s, "i": i})

    arrays = [data(3, 4), data(3, 4, seed=1), data(2, 3, 4), data()]
    compare(call, *arrays, dtype="float32", strides=True)
    compare(call, *arrays, dtype="bool", strides=True)
    compare(call, *arrays, dtype="float64", grad=0 if "out=" in text else 2, strides=True)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_as_numpy(dim: int) -> None:
    a, b = np.arange(12.0).reshape(3, 4), np.arange(12).reshape(3, 4) - 5
    made = antorcha.cat([antorcha.tensor(a), antorcha.tensor(b), antorcha.tensor(a)], dim)
    assert made.tolist() == np.concatenate([a, b, a], dim).tolist()


def test_cat_reads_views_in_place() -> None:
    x = antorcha.arange(24.0).reshape(2, 3, 4)
    made = antorcha.cat([x.permute(2, 0, 1), x.permute(2, 0, 1)[:1]])
    assert made.tolist() == np.concatenate([x.numpy().transpose(2, 0, 1)] * 2)[:5].tolist()


def test_cat_keeps_channels_last() -> None:
    x = antorcha.zeros(2, 4, 5, 3).permute(0, 3, 1, 2)
    assert antorcha.cat([x, x], 1).stride() == (120, 1, 30, 6)
