"""Window functions beside PyTorch's, within the rounding of a cosine."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import antorcha
from tests.ops.parity import needs_torch

NAMES = ("hann", "hamming", "blackman", "bartlett", "kaiser")
LENGTHS = (0, 1, 2, 3, 4, 7, 8, 400, 1023)


def same(name: str, *args: Any, dtype: str = "float32") -> None:
    """Kaiser's is held against PyTorch's in float64: its Bessel function of float32 is 1e-6 off."""
    import torch

    ours = getattr(antorcha, f"{name}_window")(*args, dtype=getattr(antorcha, dtype))
    wide = "float64" if name == "kaiser" else dtype
    theirs = getattr(torch, f"{name}_window")(*args, dtype=getattr(torch, wide))
    assert ours.is_contiguous()
    assert str(ours.dtype) == f"torch.{dtype}"
    unit = np.finfo(ours.numpy().dtype).eps
    close = 16 * unit if name == "kaiser" else 2 * unit
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), close, 2 * unit, err_msg=f"{args}")


@needs_torch
@pytest.mark.parametrize("name", NAMES)
def test_windows_are_pytorchs(name: str) -> None:
    for length, periodic, dtype in itertools.product(
        LENGTHS, (True, False), ("float32", "float64")
    ):
        same(name, length, periodic, dtype=dtype)
    assert getattr(antorcha, f"{name}_window")(3).dtype == antorcha.float32
    same(name, 50, dtype="float16")
    if name == "hamming":
        same(name, 50, True, 0.6, 0.4)
    if name == "kaiser":
        for beta in (0.0, 1.5, 30.0):
            same(name, 51, False, beta)
    with pytest.raises(NotImplementedError, match="complex"):
        getattr(antorcha, f"{name}_window")(4, dtype=antorcha.complex64)
