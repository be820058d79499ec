"""Ops whose results' sizes depend on the data, and what a mask chooses: native against PyTorch and
NumPy; searchsorted and bincount."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.devices.cpu import select as kernels
from antorcha.devices.cpu.passes import Changed, failed
from antorcha.devices.cpu.tally import SHARE, SMALL
from antorcha.errors import ShapeError
from antorcha.lang.native import interpreted
from antorcha.runtime.memory.alloc import OutOfMemory
from tests.ops.parity import needs_torch, pair

DTYPES = ["bool", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128"]  # fmt: skip
SHAPES = [(), (0,), (1,), (5,), (63,), (64,), (65,), (200,), (3, 4), (7, 1, 9), (0, 3),
          (2, 3, 4, 5), (300, 70), (40000,), (20000, 3)]  # fmt: skip


def numbers(dtype: str, shape: tuple[int, ...], share: float) -> Any:
    """Values of which so many are not zero; -0 and NaN among the floats."""
    rng = np.random.default_rng([len(dtype), *shape])
    made: Any = (rng.random(shape) < share) * rng.integers(1, 5, shape)
    if dtype[0] in "fc":
        made = np.where(rng.random(shape) < 0.1, rng.choice([-0.0, np.nan], shape), made)
    return made


def same(ours: Any, theirs: Any) -> None:
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype) == str(theirs.dtype)
    a, b = [(t.float() if "bfloat16" in str(t.dtype) else t).numpy() for t in (ours, theirs)]
    np.testing.assert_array_equal(a, b)


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES)
def test_nonzero_as_pytorch(dtype: str) -> None:
    for shape in SHAPES:
        for share in (0, 0.3, 1):
            x, y = pair(numbers(dtype, shape, share), dtype)
            for look in ("x", "x.transpose(0, 1)", "x[1:]", "x[::2]", "x[None]"):
                if len(shape) < 2 and look != "x":
                    continue
                a, b = eval(look, {"x": x}), eval(look, {"x": y})
                same(a.nonzero(), b.nonzero())
                assert not b.nonzero().numel() or a.nonzero().stride() == b.nonzero().stride()
                for mine, theirs in zip(
                    a.nonzero(as_tuple=True), b.nonzero(as_tuple=True), strict=True
                ):
                    same(mine, theirs)


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES)
def test_masks_as_pytorch(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        for share in (0, 0.3, 1):
            x, y = pair(rng.integers(0, 9, shape), dtype)
            am, bm = pair(rng.random(shape) < share)
            check_masks(x, am, y, bm)
            if len(shape) < 2:
                continue
            check_masks(*[each.transpose(0, 1) for each in (x, am, y, bm)])
            if not y.numel():
                continue
            for part in (np.s_[:1], np.s_[:, :1], np.s_[0], np.s_[..., :1]):
                same(x.masked_select(am[part]), y.masked_select(bm[part]))
                same(x[part].masked_select(am), y[part].masked_select(bm))
            first = (..., *[0] * (len(shape) - 1))
            same(x[am[first]], y[bm[first]])


def check_masks(x: Any, am: Any, y: Any, bm: Any) -> None:
    same(x.masked_select(am), y.masked_select(bm))
    same(x[am], y[bm])
    a, b = (x == 3).to(x.dtype).contiguous(), (y == 3).to(y.dtype).contiguous()
    same(x.masked_scatter(am, a), y.masked_scatter(bm, b))
    x, y = x.clone(), y.clone()
    x.masked_scatter_(am, a)
    y.masked_scatter_(bm, b)
    same(x, y)


@needs_torch
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "bfloat16", "float16", "float32",
                                   "float64"])  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*non-contiguous")
def test_searchsorted_as_pytorch(dtype: str) -> None:
    import torch

    rng = np.random.default_rng(0)
    for shape in [(), (0,), (1,), (70,), (6000,), (3, 4), (4, 3, 5), (0, 3)]:
        v = rng.integers(0, 20, shape) * 1.0
        e = np.sort(rng.integers(0, 20, 11) * 1.0)
        if "float" in dtype:
            v, e = np.where(rng.random(shape) < 0.1, np.nan, v), np.sort([*e, np.nan, np.nan, -0.0])
        (x, y), (ae, be) = pair(v, dtype), pair(e, dtype)
        order = rng.permutation(len(e))
        back = np.argsort(order)
        for right in (False, True):
            looks = [(x, y)] + ([(x.transpose(0, 1), y.transpose(0, 1))] if v.ndim > 1 else [])
            for a, b in looks:
                same(antorcha.searchsorted(ae, a, right=right, out_int32=right),
                     torch.searchsorted(be, b, right=right, out_int32=right))  # fmt: skip
                same(antorcha.bucketize(a, ae, right=right), torch.bucketize(b, be, right=right))
                same(antorcha.searchsorted(ae[order], a, sorter=antorcha.tensor(back)),
                     torch.searchsorted(be[order], b, sorter=torch.tensor(back)))  # fmt: skip
                same(antorcha.searchsorted(ae[:0], a), torch.searchsorted(be[:0], b))
            if v.ndim > 1:
                lines, theirs = pair(np.sort(rng.integers(0, 20, (*shape[:-1], 9)) * 1.0), dtype)
                same(antorcha.searchsorted(lines, x, right=right),
                     torch.searchsorted(theirs, y, right=right))  # fmt: skip


def test_a_sorter_must_be_positions() -> None:
    x = antorcha.arange(3)
    for bad in ([0, 1, 9], [0, -9, 1]):
        with pytest.raises(ShapeError, match="sorter index out of range"):
            antorcha.searchsorted(x, x, sorter=antorcha.tensor(bad))


@needs_torch
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_bincount_as_pytorch(dtype: str) -> None:
    import torch

    rng = np.random.default_rng(0)
    for n in (1, 5, 70, 3000):
        x, y = pair(rng.integers(0, 50, n), dtype)
        for least in (0, 7, 80):
            same(x.bincount(minlength=least), y.bincount(minlength=least))
            for kind in ("float32", "float64", "int64", "uint8"):
                w, v = pair(rng.integers(0, 9, n), kind)
                same(x.bincount(w, least), y.bincount(v, least))
        same(x[::2].bincount(), y[::2].bincount())
        same(x[:0].bincount(minlength=3), torch.bincount(y[:0], minlength=3))


@needs_torch
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64"])
def test_bincount_in_tables(dtype: str) -> None:
    """In one table or several, of one thread or more: each side of where that changes."""
    rng = np.random.default_rng(0)
    before = antorcha.get_num_threads()
    sides = [SMALL - 1, SMALL, SMALL + 1, 5000] if dtype != "uint8" else []
    try:
        for bins in (1, 2, 9, 255, *sides):
            edges = [4 * bins - 1, 16 * bins, 16 * bins + 1, 3 * SHARE + 5]
            for n, threads in itertools.product(edges, (1, 3)):
                antorcha.set_num_threads(threads)
                x, y = pair(rng.integers(0, bins, n), dtype)
                same(x.bincount(), y.bincount())
                if dtype != "uint8":
                    x[rng.integers(n)] = -1
                    with pytest.raises(ShapeError, match="non-negative"):
                        x.bincount()
    finally:
        antorcha.set_num_threads(before)


def test_bad_counts_are_refused() -> None:
    one = antorcha.tensor([1])
    for bad in ([1, -1], [2**63 - 1], [2**45], [2**60]):
        with pytest.raises((RuntimeError, OutOfMemory)):
            antorcha.tensor(bad).bincount()
    for least in (-1, 2**45, 2**62, 2**70):
        with pytest.raises((RuntimeError, OutOfMemory, OverflowError, TypeError, ValueError)):
            one.bincount(minlength=least)


def test_a_source_too_small_writes_nothing() -> None:
    x = antorcha.zeros(100)
    with pytest.raises(ShapeError, match="100 in the mask, 99"):
        x.masked_scatter_(x == 0, antorcha.ones(99))
    assert not x.any()


def run(what: Any, arrays: list[Any], plain: bool = False) -> int:
    bufs = np.array([a.ctypes.data for a in arrays], np.uint64)
    desc = np.array(what.desc, np.int64)
    if not plain:
        return int(what.fn(bufs, desc, **what.static))
    with interpreted():
        return int(what.fn(bufs, desc, **what.static))


@pytest.mark.parametrize("plain", [False, True])
def test_a_mask_that_changes_between_the_passes(plain: bool) -> None:
    """More or fewer elements than were counted: a status, and nothing written behind the end."""
    mask = np.arange(150) % 3 == 0
    lay, x = antorcha.tensor(mask)._layout, np.arange(150.0)
    fail = failed("nonzero")
    offsets = np.zeros(2, np.int64)
    assert run(kernels.counting(lay, fail), [offsets, mask], plain) == 0
    assert offsets.tolist() == [0, 50]
    at, taken = np.full(60, -7), np.full(60, -7.0)
    positions = kernels.positions(lay, fail)
    taking = kernels.taking(antorcha.tensor(x)._layout, lay, fail)
    assert run(positions, [at, offsets, mask], plain) == 0
    assert run(taking, [taken, offsets, x, mask], plain) == 0
    for found in (at, taken):
        np.testing.assert_array_equal(found[:50], np.nonzero(mask)[0])
        assert (found[50:] == -7).all()
    for other in (np.ones(150, bool), np.zeros(150, bool), np.arange(150) > 120):
        assert run(positions, [at, offsets, other], plain) == kernels.CHANGED
        assert run(taking, [taken, offsets, x, other], plain) == kernels.CHANGED
        assert (at[50:] == -7).all()
        assert (taken[50:] == -7).all()
    assert isinstance(fail(kernels.CHANGED), Changed)
    assert isinstance(fail(kernels.NO_MEMORY), OutOfMemory)


def test_with_numpy_on_several_threads() -> None:
    x = np.random.default_rng(0).normal(size=(500, 400))
    t = antorcha.tensor(x)
    threads = antorcha.get_num_threads()
    try:
        antorcha.set_num_threads(3)
        for low in (-9.0, 0.0, 2.0, 9.0):
            found = t > low
            np.testing.assert_array_equal(found.nonzero().numpy(), np.argwhere(x > low))
            np.testing.assert_array_equal(t[found].numpy(), x[x > low])
            chosen = t.t().masked_select(found.t())
            np.testing.assert_array_equal(chosen.numpy(), x.T[found.t().numpy()])
            put = t.masked_scatter(found, antorcha.arange(2e5).double())
            wanted = x.copy()
            wanted[x > low] = np.arange((x > low).sum())
            np.testing.assert_array_equal(put.numpy(), wanted)
    finally:
        antorcha.set_num_threads(threads)
