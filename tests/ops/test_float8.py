"""The 8-bit floating types: conversion of every value, storage, refusals, checkpoints."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.core import dtypes

NAMES = sorted(dtypes.FLOAT8)
BYTES = np.arange(256, dtype=np.uint8)


def floats() -> Any:
    """float32 numbers: all upper halves, with three lower ones, and a sweep."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    sweep = np.arange(0, 1 << 32, 65521, dtype=np.uint32)
    return np.concatenate([upper, upper + 0x8000, upper + 1, sweep]).view(np.float32)


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_every_value_is_converted_as_pytorch_does(name: str) -> None:
    import torch as oracle

    ours, theirs = getattr(torch, name), getattr(oracle, name)
    for other in ("float32", "float64", "float16", "bfloat16", "complex64", "bool"):
        mine = torch.from_numpy(BYTES.copy()).view(ours).to(getattr(torch, other))
        want = oracle.from_numpy(BYTES.copy()).view(theirs).to(getattr(oracle, other))
        assert np.array_equal(mine.to(torch.complex128).numpy(),
                              want.to(oracle.complex128).numpy(), equal_nan=True)  # fmt: skip
    bits = np.arange(1 << 16, dtype=np.uint16)
    made = {"float32": floats(), "float64": floats().astype(np.float64)}
    made["int64"] = np.arange(-600, 600)
    for source, array in made.items():
        mine = torch.from_numpy(array.copy()).to(ours).view(torch.uint8)
        want = oracle.from_numpy(array.copy()).to(theirs).view(oracle.uint8)
        assert np.array_equal(mine.numpy(), want.numpy()), source
    for source in ("float16", "bfloat16"):
        mine = torch.from_numpy(bits.copy()).view(getattr(torch, source)).to(ours)
        want = oracle.from_numpy(bits.copy()).view(getattr(oracle, source)).to(theirs)
        assert np.array_equal(mine.view(torch.uint8).numpy(), want.view(oracle.uint8).numpy())
    for source in NAMES:
        mine = torch.from_numpy(BYTES.copy()).view(getattr(torch, source)).to(ours)
        want = oracle.from_numpy(BYTES.copy()).view(getattr(oracle, source)).to(theirs)
        assert np.array_equal(mine.view(torch.uint8).numpy(), want.view(oracle.uint8).numpy())


CALLS: dict[str, Any] = {
    "eq": lambda m, a: a == a, "ne": lambda m, a: a != a, "isnan": lambda m, a: a.isnan(),
    "cat": lambda m, a: m.cat([a, a]), "mask": lambda m, a: a[a == a], "item": lambda m, a:
    a[1].item(), "copy_": lambda m, a: a.copy_(m.full((3,), 3.3)), "ones": lambda m, a:
    m.ones(3, dtype=a.dtype), "zeros": lambda m, a: m.zeros(2, 2, dtype=a.dtype),
    "tensor": lambda m, a: m.tensor([[1, 2], [3, 4.3]], dtype=a.dtype),
    "full": lambda m, a: m.full((2,), 3.0, dtype=a.dtype), "fill_": lambda m, a: a.fill_(2.7),
    "index": lambda m, a: a[[0, 2]], "tolist": lambda m, a: a.tolist(),
    "index_select": lambda m, a: a.index_select(0, m.tensor([1])),
    "where": lambda m, a: m.where(a == a, a, a), "stack": lambda m, a: m.stack([a, a]),
    "requires_grad_": lambda m, a: a.requires_grad_(), "repeat": lambda m, a: a.repeat(2),
    "int": lambda m, a: int(a[1]), "type": lambda m, a: a.type(), "roll": lambda m, a: a.roll(1),
    "contiguous": lambda m, a: m.stack([a, a]).t().contiguous(), "bool": lambda m, a: bool(a[0]),
    "bytes": lambda m, a: a.view(m.uint8), "ones_like": lambda m, a: m.ones_like(a),
    "set": lambda m, a: a.__setitem__(0, 5.0) or a, "result_type": lambda m, a:
    m.result_type(a, 1.0), "finfo": lambda m, a: m.finfo(a.dtype), "empty": lambda m, a:
    m.empty(0, dtype=a.dtype), "element_size": lambda m, a: a.element_size(),
}  # fmt: skip
REFUSED: dict[str, Any] = {
    "add": lambda m, a: a + a, "mul": lambda m, a: a * 2, "sum": lambda m, a: a.sum(),
    "max": lambda m, a: a.max(), "lt": lambda m, a: a < a, "neg": lambda m, a: -a,
    "softmax": lambda m, a: a.softmax(0), "": lambda m, a: a @ a, "sort": lambda m, a: a.sort(),
    "mul_": lambda m, a: a.mul_(2), "cumsum": lambda m, a: a.cumsum(0), "rand": lambda m, a:
    m.rand(3, dtype=a.dtype), "randn": lambda m, a: m.randn(3, dtype=a.dtype),
    "arange": lambda m, a: m.arange(3, dtype=a.dtype), "uniform_": lambda m, a: a.uniform_(),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_what_is_done_and_what_is_refused(name: str) -> None:
    import torch as oracle

    def both(call: Any) -> tuple[str, str]:
        mine, theirs = [call(m, m.tensor([1.0, 2.0, 0.5]).to(getattr(m, name)))
                        for m in (torch, oracle)]  # fmt: skip
        return repr(mine), repr(theirs)

    for what, call in CALLS.items():
        mine, theirs = both(call)
        assert mine == theirs, what
    for call in REFUSED.values():
        for m in (torch, oracle):
            x = m.tensor([1.0, 2.0, 0.5]).to(getattr(m, name))
            with pytest.raises(NotImplementedError):
                call(m, x)
    for m in (torch, oracle):
        with pytest.raises(RuntimeError, match="Promotion for Float8"):
            m.ones(2).to(getattr(m, name)) + m.ones(2)


@pytest.mark.parametrize("name", NAMES)
def test_arithmetic_is_refused_by_name_and_gradients_pass_casts(name: str) -> None:
    dtype = getattr(torch, name)
    x = torch.tensor([1.0, 2.0]).to(dtype)
    with pytest.raises(NotImplementedError, match=r"add.*not implemented for.*x\.float\(\)"):
        x + x
    w = torch.tensor([1.0, 4.0], requires_grad=True)
    w.to(dtype).float().sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]
    again = pickle.loads(pickle.dumps(x))
    assert again.dtype is dtype
    assert again.tolist() == copy.deepcopy(x).tolist() == [1.0, 2.0]


@pytest.mark.oracle
def test_checkpoints_both_ways() -> None:
    import torch as oracle

    for name in NAMES:
        for write, read in ((torch, oracle), (oracle, torch)):
            file = io.BytesIO()
            x = write.arange(6.0).to(getattr(write, name)).view(2, 3)
            write.save({"x": x.t(), "dtype": x.dtype}, file)
            file.seek(0)
            found = read.load(file)
            assert found["dtype"] is getattr(read, name)
            assert repr(found["x"]) == repr(x.t())


def test_names_without_tensors() -> None:
    for name in ("qint8", "quint8", "qint32", "int4", "uint3", "bits8"):
        dtype = getattr(torch, name)
        assert pickle.loads(pickle.dumps(dtype)) is dtype
        with pytest.raises(NotImplementedError, match=name):
            torch.empty(2, dtype=dtype)
        with pytest.raises(RuntimeError):
            torch.promote_types(dtype, torch.float32)
