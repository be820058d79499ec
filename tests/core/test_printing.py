"""Printed text, compared with PyTorch character for character on random tensors."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from antorcha.core import dtypes
from antorcha.errors import ArgumentError, ValueRangeError
from antorcha.tensor import printing
from antorcha.tensor.printing import PrintOptions, tensor_repr


@pytest.fixture(autouse=True)
def keep_options() -> Iterator[None]:
    with printing.printoptions():
        yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_printoptions(profile="default")


SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.5, 1e-4, 9.9999e-5, 1e8, 1.1e8, 1e30]


def random_values(rng: np.random.Generator, dtype: dtypes.dtype, count: int) -> Any:
    """Values of one style: whole, small, wide-ranging or special, as an array of 64-bit numbers."""
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(bool)
    if dtype.kind in "ui":
        limits = dtypes.iinfo(dtype)
        low, high = max(limits.min, -(2**62)), min(limits.max, 2**62)
        bound = int(rng.choice([2, 11, 130, high + 1]))
        return rng.integers(max(low, -bound), min(high, bound), count)
    style = rng.integers(6)
    if style == 0:
        values = rng.integers(-9, 10, count).astype(np.float64)
    elif style == 1:
        values = rng.standard_normal(count)
    elif style == 2:
        values = rng.standard_normal(count) * 10.0 ** rng.integers(-7, 10)
    elif style == 3:
        values = rng.standard_normal(count) * 10.0 ** rng.integers(-20, 20, count)
    elif style == 4:
        values = rng.integers(-5, 6, count) * 10.0 ** rng.integers(0, 9, count)
    else:
        values = rng.choice(SPECIAL, count)
    if rng.random() < 0.3:
        mask = rng.random(count) < 0.3
        values = np.where(mask, rng.choice(SPECIAL, count), values)
    return values


def random_array(rng: np.random.Generator, dtype: dtypes.dtype, shape: tuple[int, ...]) -> Any:
    count = int(np.prod(shape))
    values = random_values(rng, dtype, count)
    if dtype.is_complex:
        pairs = np.empty(count, np.complex128)
        pairs.real, pairs.imag = values, random_values(rng, dtype, count)
        values = pairs
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(dtype.np).reshape(shape)


def to_torch(torch: Any, array: Any, dtype: dtypes.dtype) -> Any:
    if dtype is dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    if dtype.name in dtypes.FLOAT8:
        return torch.from_numpy(array.view(np.uint8).copy()).view(getattr(torch, dtype.name))
    return torch.from_numpy(array.copy())


def random_shape(rng: np.random.Generator) -> tuple[int, ...]:
    if rng.random() < 0.1:
        return tuple(int(n) for n in rng.choice([5, 7, 20, 60], rng.integers(2, 4)))
    sizes = [0, 1, 2, 3, 6, 7, 11, 25] if rng.random() < 0.2 else [1, 2, 3, 6, 7, 11]
    return tuple(int(n) for n in rng.choice(sizes, rng.integers(0, 4)))


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda dtype: dtype.name)
def test_default_options(torch: Any, dtype: dtypes.dtype) -> None:
    rng = np.random.default_rng(dtype.code)
    for _ in range(150):
        array = random_array(rng, dtype, random_shape(rng))
        assert tensor_repr(array, dtype=dtype) == repr(to_torch(torch, array, dtype))


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda dtype: dtype.name)
def test_random_options(torch: Any, dtype: dtypes.dtype) -> None:
    rng = np.random.default_rng(100 + dtype.code)
    for _ in range(100):
        options = {
            "precision": int(rng.integers(0, 9)),
            "threshold": float(rng.choice([0, 5, 50, 1000, np.inf])),
            "edgeitems": int(rng.integers(0, 5)),
            "linewidth": int(rng.choice([0, 10, 40, 80, 200])),
            "sci_mode": [None, True, False][rng.integers(3)],
        }
        array = random_array(rng, dtype, random_shape(rng))
        torch.set_printoptions(**options)
        with printing.printoptions(**options):
            assert tensor_repr(array, dtype=dtype) == repr(to_torch(torch, array, dtype)), options


def test_suffixes(torch: Any) -> None:
    """grad_fn, requires_grad, names and meta tensors, at widths where they do and do not fit."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        dtype = random.Random(int(rng.integers(1 << 30))).choice(
            [dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.bfloat16]
        )
        array = random_array(rng, dtype, random_shape(rng))
        leaf = to_torch(torch, array, dtype).requires_grad_()
        assert tensor_repr(array, dtype=dtype, requires_grad=True) == repr(leaf)
        node = leaf.view(leaf.shape)
        assert tensor_repr(array, dtype=dtype, grad_fn="ViewBackward0") == repr(node)
        named = torch.nn.Parameter(leaf.detach())
        ours = printing.parameter_repr(tensor_repr(array, dtype=dtype, requires_grad=True))
        assert ours == repr(named)
    for dtype in (dtypes.float32, dtypes.int64, dtypes.bfloat16, dtypes.bool_):
        for shape in ((), (0,), (3, 4)):
            meta = torch.empty(shape, dtype=getattr(torch, dtype.name), device="meta")
            ours = tensor_repr(np.empty(shape), dtype=dtype, device="meta", is_meta=True)
            assert ours == repr(meta)


def test_subclass_name(torch: Any) -> None:
    class Picture(torch.Tensor):  # type: ignore[misc]
        pass

    array = np.arange(60.0, dtype=np.float32).reshape(2, 30)
    theirs = repr(torch.from_numpy(array).as_subclass(Picture))
    assert tensor_repr(array, dtype=dtypes.float32, name="Picture") == theirs


@pytest.mark.parametrize("default", ["float64", "bfloat16"])
def test_default_dtype(torch: Any, default: str) -> None:
    arrays = [np.ones(2, kind) for kind in "?bhifdFD"] + [np.ones((0, 2), kind) for kind in "lfdD"]
    ours_before, theirs_before = dtypes.get_default_dtype(), torch.get_default_dtype()
    dtypes.set_default_dtype(dtypes.by_name(default))
    torch.set_default_dtype(getattr(torch, default))
    try:
        for array in arrays:
            dtype = dtypes.from_numpy(array.dtype)
            assert tensor_repr(array, dtype=dtype) == repr(torch.from_numpy(array))
    finally:
        dtypes.set_default_dtype(ours_before)
        torch.set_default_dtype(theirs_before)


def test_known_texts() -> None:
    """What PyTorch prints, for machines that do not have it."""
    array = np.array([[1.0, -2.5], [1e-5, np.nan]], np.float32)
    assert tensor_repr(array, dtype=dtypes.float32) == (
        "tensor([[ 1.0000e+00, -2.5000e+00],\n        [ 1.0000e-05,         nan]])"
    )
    assert tensor_repr(np.zeros((0, 3), np.float32), dtype=dtypes.float32) == (
        "tensor([], size=(0, 3))"
    )
    assert tensor_repr(np.array(3), dtype=dtypes.int64) == "tensor(3)"
    assert tensor_repr(np.array([1 - 2j, 0.5j]), dtype=dtypes.complex128) == (
        "tensor([1.-2.0000j, 0.+0.5000j], dtype=torch.complex128)"
    )
    assert tensor_repr(np.arange(2000), dtype=dtypes.int64) == (
        "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"
    )
    assert tensor_repr(np.ones(2, np.float32), dtype=dtypes.float32, device="cuda:0") == (
        "tensor([1., 1.], device='cuda:0')"
    )
    assert tensor_repr(np.ones(()), dtype=dtypes.float64, tangent="tensor(2.)") == (
        "tensor(1., dtype=torch.float64, tangent=tensor(2.))"
    )


class Recorded:
    """A tensor too large to read whole: notes what is asked of it."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.asked: list[int | None] = []

    def read_edges(self, edgeitems: int | None) -> Any:
        self.asked.append(edgeitems)
        assert edgeitems is not None
        indices = np.ix_(*printing.edge_indices(self.shape, edgeitems))
        return sum(index.astype(np.float32) for index in indices)


def test_only_the_edges_are_read() -> None:
    huge = Recorded((2, 10**9, 10**9))
    text = tensor_repr(huge, dtype=dtypes.float32)
    assert huge.asked == [3]
    assert text.count("...,") == 14
    assert "1.0000e+09,  ..., " in text


def test_options_api(torch: Any) -> None:
    assert list(printing.get_printoptions()) == list(torch._tensor_str.get_printoptions())
    for profile in ("short", "full", "default"):
        torch.set_printoptions(profile=profile, linewidth=60)
        printing.set_printoptions(profile=profile, linewidth=60)
        assert printing.get_printoptions() == torch._tensor_str.get_printoptions()
    with printing.printoptions(precision=1, sci_mode=True):
        assert tensor_repr(np.ones(1, "f"), dtype=dtypes.float32) == "tensor([1.0e+00])"
    printing.set_printoptions(profile="default")
    assert printing.get_printoptions() == PrintOptions()._asdict()
    with pytest.raises(ValueRangeError, match="Did you mean 'default'"):
        printing.set_printoptions(profile="defualt")
    with pytest.raises(ArgumentError, match="edgeitems=-1"):
        printing.set_printoptions(edgeitems=-1)
