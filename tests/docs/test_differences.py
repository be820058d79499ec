"""``docs/differences.md`` names what the tests know to differ."""

from __future__ import annotations

import re
from pathlib import Path

import antorcha as torch
from tests.ops import test_pytorch_errors as refusals
from tests.ops import test_pytorch_samples as samples
from tests.ops import test_second_order as second_order
from tests.ops.parity import needs_torch

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"


def test_every_entry_that_differs_is_named() -> None:
    text = PAGE.read_text()
    listed = {
        *samples.PARTLY, *samples.DEVIATES, *samples.COARSE_HALVES, *samples.STRIDES,
        *[name for name, _ in samples.NO_NUMBERS], *samples.WRONG_GRADIENTS, *samples.UNORDERED,
        *samples.UP_TO_PHASE, *second_order.COARSE,
        *[sample.split()[0] for sample in refusals.KEPT],
    }  # fmt: skip
    between = {f"polygamma.polygamma_n_{k}" for k in range(1, 5)}
    assert not [n for n in sorted(listed - between) if f"`{n}`" not in text]
    rows = text.split("## Results")[1].split("## What is missing")[0]
    named = {n for n in re.findall(r"`([\w.]+)`", rows) if n != "stable"}
    known = {*listed, *between, "cumsum", "sum", "polygamma_n_4"}
    assert not named - known


@needs_torch
def test_every_entry_without_a_name_is_named() -> None:
    text = PAGE.read_text()
    assert not [n for n in samples.lacking() if f"`{n}`" not in text]


def test_what_is_refused_elsewhere() -> None:
    import numpy as np

    x = torch.tensor([1.0, 2.0])
    assert (np.ones(2) + x).tolist() == [2, 3]
    assert torch.vmap(lambda v: v if v > 1 else -v)(x).tolist() == [-1, 2]
    assert np.sum(x, axis=0) == 3
    for name in ("uint16", "uint32", "uint64"):
        assert torch.tensor([2, 1], dtype=getattr(torch, name)).sort()[0].tolist() == [1, 2]
