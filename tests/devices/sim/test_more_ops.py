"""Ops that are described by others' descriptions: the simulator and the CPU beside NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.devices.gpu import fallback

FLOATS = ("float32", "float64", "float16", "bfloat16")
DTYPES = (*FLOATS, "int64", "int32", "uint8", "bool", "complex64", "complex128")
DEVICES = ("cpu", "sim")


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    fallback.noted.clear()
    yield
    assert not fallback.noted


def given(values: Any, dtype: str, device: str) -> Any:
    return torch.from_numpy(np.asarray(values)).to(getattr(torch, dtype)).to(device)


def array(t: Any) -> np.ndarray[Any, Any]:
    t = t.detach().cpu().resolve_conj()
    return np.array((t.double() if t.dtype in (torch.bfloat16, torch.float16) else t).numpy())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy
def test_nextafter_by_its_bits() -> None:
    """From every number of a kind towards every other."""
    some = [0, 1, 1.5, -2.25, np.inf, np.nan, 1e-45, 1e-40, 6e-8, 65504, 3.38e38, 5e-324,
            1.1754943508222875e-38, 2.2250738585072014e-308]  # fmt: skip
    values = np.array([*some, *[-v for v in some]])
    x, y = (v.ravel().copy() for v in np.meshgrid(values, values))
    for dtype, device in itertools.product(FLOATS, DEVICES):
        a, b = given(x, dtype, device), given(y, dtype, device)
        found, kind = array(torch.nextafter(a, b)), np.dtype(dtype.replace("bfloat16", "float64"))
        if dtype == "bfloat16":  # those of float32 whose lower half is 0
            bits = array(a).astype(np.float32).view(np.int32) >> 16
            towards = array(b)
            away = (towards > array(a)) ^ (array(a) < 0)
            moved = np.where(array(a) == 0, np.where(towards < 0, -0x7FFF, 1),
                             np.where(away, bits + 1, bits - 1))  # fmt: skip
            expected = (moved.astype(np.int32) << 16).view(np.float32).astype(np.float64)
            expected = np.where(array(a) == towards, towards, expected)
            expected = np.where(np.isnan(array(a)) | np.isnan(towards), np.nan, expected)
        else:
            one, other = array(a).astype(kind), array(b).astype(kind)
            expected = np.where(one == other, other, np.nextafter(one, other)).astype(found.dtype)
        same = (found == expected) & (np.signbit(found) == np.signbit(expected))
        same |= np.isnan(found) & np.isnan(expected)
        assert same.all(), (dtype, device, x[~same][:3], y[~same][:3], found[~same][:3])


def test_index_fill() -> None:
    cases: tuple[tuple[tuple[int, ...], int, list[int]], ...] = (
        ((3, 4), 0, [0, -1]), ((3, 4), 1, [2, 2, -4]), ((2, 3, 4), 1, [1]), ((5,), 0, []),
        ((300, 7), 0, [*range(0, 300, 2)]), ((7, 300), 1, [*range(0, 300, 3)]),
    )  # fmt: skip
    wrong = []
    for dtype, (shape, dim, index), form in itertools.product(DTYPES, cases, range(4)):
        numbers = np.arange(np.prod(shape)).reshape(shape) % 100
        x = given(numbers, dtype, "sim")
        at = given(np.array(index, np.int64), "int64", "sim")
        expected = array(x)
        expected[(slice(None),) * dim + (index,)] = 1 if dtype == "bool" else 7
        if form == 0:
            found = x.index_fill(dim, at, 7)
        elif form == 1:
            found = x.index_fill_(dim, at, given(7, dtype, "sim"))
        elif form == 2:
            found = x.mT.contiguous().mT.index_fill(dim, at, 7) if x.ndim == 2 else x
            expected = expected if x.ndim == 2 else array(x)
        else:
            found = torch.index_fill(x, dim, at, 7, out=torch.empty_like(x))
        if not np.array_equal(array(found), expected):
            wrong.append(f"{dtype} {shape} {dim} {index[:4]} form {form}")
    assert not wrong, "\n".join(wrong)
    for device, index in itertools.product(DEVICES, ([0, 3], [-4])):
        x = torch.zeros(3, 2, device=device)
        with pytest.raises(IndexError, match=f"index {index[-1]} is out of bounds"):
            x.index_fill_(0, torch.tensor(index, device=device), 1)
        assert not x.any()
        with pytest.raises(RuntimeError, match="overflow"):
            x.byte().index_fill(0, torch.tensor([0], device=device), 300)
        with pytest.raises(RuntimeError, match="complex"):
            x.index_fill(0, torch.tensor([0], device=device), 1j)


def bisected(line: Any, value: Any, right: bool) -> int:
    """The place of a value, as a Search says it, whatever the line is."""
    low, high = 0, len(line)
    while low < high:
        middle = (low + high) // 2
        if line[middle] > value or (line[middle] == value and not right):
            high = middle
        else:
            low = middle + 1
    return low


def test_isin_and_places() -> None:
    random = np.random.default_rng(0)
    wrong = []
    for dtype, device, size, invert in itertools.product(
        DTYPES[:8], DEVICES, (0, 1, 9, 500), (False, True)
    ):
        x, y = random.integers(0, 70, (30, 7)).astype(float), random.integers(0, 70, size) * 1.0
        if dtype in FLOATS:
            x[0, :3] = np.nan
            y[:1] = np.nan
        a, b = given(x, dtype, device), given(y, dtype, device)
        found = torch.isin(a.t(), b, invert=invert)
        if not np.array_equal(array(found), np.isin(array(a).T, array(b), invert=invert)):
            wrong.append(f"isin {dtype} {device} {size} {invert}")
        # as many as are looked for at once, and fewer; NaN, and lines that are in no order
        lines = np.sort(random.integers(0, 60, (2, size)), -1).astype(float)
        values = random.integers(0, 60, (2, 75)).astype(float)
        if dtype in FLOATS:
            lines[:, -2:], values[:, 1] = np.nan, np.nan
        c, d = given(lines, dtype, device), given(values, dtype, device)
        places = array(torch.searchsorted(c, d, right=invert))
        expected = [
            [bisected(p, v, invert) for v in q] for p, q in zip(array(c), array(d), strict=True)
        ]
        if not np.array_equal(places, expected):
            wrong.append(f"places {dtype} {device} {size} {invert}")
    assert not wrong, "\n".join(wrong)
    for device in DEVICES:
        x = torch.tensor([1, 2, 3], device=device)
        assert torch.isin(x, 2).tolist() == [False, True, False]
        assert torch.isin(2, x, invert=True).tolist() is False


def test_histc() -> None:
    random = np.random.default_rng(1)
    wrong = []
    for dtype, device, shape in itertools.product(FLOATS, DEVICES, ((1000,), (7, 9), (0,), ())):
        a = given(random.standard_normal(shape), dtype, device)
        x = array(a).astype(np.float64).ravel()
        for bins, low, high in ((100, 0, 0), (7, -1, 1), (3, -2, 100), (5, 0.5, 0.5)):
            ends = (low, high) if low != high or not x.size else (x.min(), x.max())
            if ends[0] == ends[1]:
                ends = (ends[0] - 1, ends[1] + 1)
            inside = x[(x >= ends[0]) & (x <= ends[1])]
            place = ((inside - ends[0]) / (ends[1] - ends[0]) * bins).astype(int)
            expected = np.bincount(np.minimum(place, bins - 1), minlength=bins)
            found = torch.histc(a, bins, low, high)
            expected = array(given(expected, dtype, "cpu"))
            if found.dtype is not a.dtype or not np.array_equal(array(found), expected):
                wrong.append(f"{dtype} {device} {shape} {bins} {low} {high}")
    assert not wrong, "\n".join(wrong)
    for device, end in itertools.product(DEVICES, (np.inf, np.nan)):
        with pytest.raises(RuntimeError, match="is not finite"):
            torch.histc(torch.tensor([1.0, end], device=device))


def test_running_sums_and_products_of_complex_numbers() -> None:
    random = np.random.default_rng(2)
    wrong = []
    for dtype, device, (shape, dim) in itertools.product(
        ("complex64", "complex128"), DEVICES,
        (((3, 4), 0), ((3, 4), 1), ((), 0), ((2, 9, 3), 1), ((0, 3), 0), ((20, 130), 1),
         ((130, 20), 0), ((1, 3000), 1)),
    ):  # fmt: skip
        angles = random.uniform(0, 7, shape)
        z = np.asarray(np.exp(1j * angles) * random.uniform(0.98, 1.02, shape)).astype(dtype)
        x = torch.from_numpy(z).to(device).requires_grad_()
        tolerance = 1e-5 if dtype == "complex64" else 1e-12
        for name, y, at in (("", x, z), ("reversed", x.flip(dim) if z.ndim else x,
                                         np.flip(z, dim) if z.ndim else z)):  # fmt: skip
            for op in ("cumsum", "cumprod"):
                wide = np.atleast_1d(at.astype(complex))
                expected = getattr(np, op)(wide, dim).reshape(shape)
                found = getattr(torch, op)(y, dim)
                if not np.allclose(array(found), expected, tolerance, tolerance):
                    wrong.append(f"{op} {dtype} {device} {shape} {dim} {name}")
        if 0 < z.size < 100:
            torch.view_as_real(torch.cumprod(x, dim)).sum().backward()
            flat = np.moveaxis(np.atleast_1d(z.astype(complex)), dim, 0)
            n = len(flat)  # the sum of conj(dy_j / dx_i) (1 + i) over j >= i
            slopes = [
                sum([np.conj(np.prod(np.delete(flat[: j + 1], i, 0), 0)) for j in range(i, n)])
                for i in range(n)
            ]
            slope = np.moveaxis(np.array(slopes), 0, dim).reshape(shape) * (1 + 1j)
            if not np.allclose(array(x.grad), slope, 10 * tolerance, 10 * tolerance):
                wrong.append(f"gradient {dtype} {device} {shape} {dim}")
    assert not wrong, "\n".join(wrong)
