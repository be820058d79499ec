"""Sorts, searches, masks and distinct elements on the simulated GPU, beside the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import antorcha as torch
from antorcha.devices.gpu import fallback
from antorcha.runtime.tensor import Tensor

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
REAL = (*FLOATS, torch.int8, torch.uint8, torch.int16, torch.int64, torch.bool)
FEW = (torch.float32, torch.float16, torch.uint8, torch.int64)
ALL = {"return_inverse": True, "return_counts": True}


class Compared:
    """Functions run on both devices, and what was wrong. Nothing may be left to the host."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        fallback.noted.clear()

    def __call__(self, name: str, f: Callable[..., Any], *tensors: Tensor) -> None:
        want, got = outcome(f, *tensors), outcome(f, *[t.to("sim") for t in tensors])
        shown = f"{name} of {[(str(t.dtype), tuple(t.shape)) for t in tensors]}"
        if isinstance(want, Exception) or isinstance(got, Exception):
            if (type(want), str(want)) != (type(got), str(got)):
                self.wrong.append(f"{shown}: {got!r}, not {want!r}")
            return
        for k, (a, b) in enumerate(zip(want, got, strict=True)):
            if not same(a, b):
                self.wrong.append(f"{shown}: result {k} differs")

    def check(self) -> None:
        assert not self.wrong, "\n".join(self.wrong)
        assert not fallback.noted, fallback.noted


def outcome(f: Callable[..., Any], *tensors: Tensor) -> Any:
    try:
        found = f(*tensors)
    except Exception as error:
        return error
    return found if isinstance(found, (tuple, list)) else (found,)


def same(a: Tensor, b: Tensor) -> bool:
    """The same to the last bit but a NaN's: -0 is not 0."""
    x, y = np.asarray(a.tolist()), np.asarray(b.cpu().tolist())
    if b.device.type != "sim" or (a.dtype, a.stride(), x.shape) != (b.dtype, b.stride(), y.shape):
        return False
    signs = x.dtype.kind != "f" or np.array_equal(np.signbit(x), np.signbit(y))
    return bool(signs and np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"))


def data(shape: tuple[int, ...], dtype: Any, special: bool = True, few: int = 40) -> Tensor:
    """Elements of which many are equal; among floats NaN, infinities and -0, where ``special``."""
    rng = np.random.default_rng(sum(shape) + len(str(dtype)))
    n = int(np.prod(shape))
    whole = rng.integers(0 if not dtype.is_signed else -few, few, n)
    if dtype is torch.bool:
        whole = rng.integers(0, 2, n)
    if not (dtype.is_floating_point or dtype.is_complex):
        return torch.tensor(whole.tolist(), dtype=torch.int64).reshape(shape).to(dtype)
    real = whole / 4.0
    if special and n > 4:
        for value in (np.nan, -0.0, np.inf, -np.inf):
            real[rng.integers(0, n, max(n // 20, 1))] = value
    x = torch.tensor(real.tolist(), dtype=torch.float64).reshape(shape)
    return (torch.complex(x, x.flip(0) if shape else x) if dtype.is_complex else x).to(dtype)


def test_orders_and_ranks() -> None:
    compare = Compared()
    for x, dim in lines_to_sort():
        n = x.shape[dim] if x.ndim else 1
        for down in (False, True):
            compare("sort", lambda t, d=dim, down=down: torch.sort(t, d, down), x)
        for k in sorted({0, min(n, 40), n}):
            compare(f"topk {k}", lambda t, d=dim, k=k: torch.topk(t, k, d), x)
        if x.dtype not in (torch.float32, torch.int64) and n != 7:
            continue
        for k in sorted({1, n}):
            compare(f"kthvalue {k}", lambda t, d=dim, k=k: torch.kthvalue(t, k, d), x)
        for f in (torch.median, torch.nanmedian, torch.mode):
            compare(f"{f} along {dim}", lambda t, f=f, d=dim: f(t, d), x)
        compare("median", torch.median, x)
    for dtype in (torch.float32, torch.float16):
        compare("median of nothing", torch.median, data((0,), dtype))
    compare.check()


def lines_to_sort() -> Iterator[tuple[Tensor, int]]:
    """One in registers, one of a warp, one of a block, ones of several blocks; columns; views."""
    for dtype in REAL:
        yield data((7, 300), dtype), 0 if dtype in FEW else 1
    yield data((), torch.float32), 0
    yield data((4, 3, 2), torch.int64)[:, ::2].permute(2, 0, 1), 1
    yield data((2, 9), torch.float32)[:1].expand(3, 9), 1
    yield data((2, 4000), torch.float32), 1
    yield data((2, 4000), torch.float64), 1
    yield data((4000, 2), torch.float16), 0
    yield data((8000,), torch.float32), 0


def test_places_and_counts() -> None:
    compare = Compared()
    for dtype in (torch.float32, torch.float16, torch.int64):
        edges, values = torch.sort(data((4, 50), dtype))[0], data((4, 300), dtype)
        loose = data((4, 50), dtype)
        order = torch.argsort(loose)
        bad = order.clone()
        bad[:, 25] = 50
        for right in (False, True):

            def search(e: Tensor, v: Tensor, s: Any = None, right: bool = right) -> Tensor:
                return torch.searchsorted(e, v, right=right, sorter=s)

            compare("searchsorted", search, edges, values)
            compare("searchsorted, one line", search, edges[0], values.T)
            compare("searchsorted, strided", lambda e, v, f=search: f(e[::2], v[::2, ::3]), edges,
                    values)  # fmt: skip
            compare("searchsorted, sorter", search, loose, values, order)
            compare("searchsorted, bad sorter", search, loose, values, bad)
        compare("searchsorted in nothing", torch.searchsorted, edges[0, :0], values)
        compare("searchsorted of nothing", torch.searchsorted, edges, values[:, :0])
    for dtype in (torch.int64, torch.int8):
        for n in (0, 1, 3000):
            x = data((n,), dtype).abs()
            for least in (0, 300, 9000):
                compare(f"bincount {least}", lambda t, m=least: torch.bincount(t, minlength=m), x)
            for weight in (torch.float32, torch.float64, torch.bool):
                w = data((n,), weight, special=False)  # (quarters: their sums are exact)
                compare("bincount of weights", lambda t, w: torch.bincount(t, w, 200), x, w)
    compare("bincount of a negative", torch.bincount, data((9,), torch.int64))
    compare("bincount of many", torch.bincount, data((9000,), torch.int64, few=30000).abs())
    compare.check()


def test_masks() -> None:
    compare = Compared()
    for dtype in (torch.float32, torch.bfloat16, torch.bool, torch.complex64):
        for shape in ((), (0,), (5,), (3, 0), (40, 90), (2, 1, 2100)):
            x, mask = data(shape, dtype), data(shape, torch.bool)
            source = x.flatten().flip(0)
            compare("nonzero", torch.nonzero, x * mask)
            compare("nonzero as a tuple", lambda t: torch.nonzero(t, as_tuple=True), x)
            compare("masked_select", torch.masked_select, x, mask)
            compare("masked_scatter", torch.masked_scatter, x, mask, source)
            compare("masked_scatter of too few", torch.masked_scatter, x, mask,
                    source[: x.numel() // 4])  # fmt: skip
        x, mask = data((40, 90), dtype), data((40, 90), torch.bool)
        source = data((90, 40), dtype).T
        compare("masked_select, turned", lambda t, m: torch.masked_select(t.T, m.T), x, mask)
        compare("masked_select, broadcast", lambda t, m: torch.masked_select(t, m[0]), x, mask)
        compare("masked_scatter, broadcast", lambda t, m, s: torch.masked_scatter(t[:1], m, s), x,
                mask, source)  # fmt: skip
        compare("masked_scatter_, turned", written_in_place, x, mask, source)
        compare("masked_scatter_ of too few", left_alone, x, mask, source)
    compare.check()


def written_in_place(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    y = x.clone().T
    y.masked_scatter_(mask.T, source)
    return y


def left_alone(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """What is written where the source has too few: nothing."""
    y = x.clone()
    try:
        y.masked_scatter_(mask, source[:1])
    except RuntimeError:
        return y
    raise AssertionError("masked_scatter_ took a source that is too small")


def test_distinct() -> None:
    compare = Compared()
    for dtype in (*FEW, torch.float64, torch.bool, torch.complex64):
        for shape in ((), (0,), (3, 0), (40, 50), (6000,)):
            if shape == (6000,) and dtype not in (torch.float32, torch.int64):
                continue
            x = data(shape, dtype, special=not dtype.is_complex)
            compare("unique", lambda t: torch.unique(t, **ALL), x)
            compare("runs", lambda t: torch.unique_consecutive(t, **ALL), x)
            compare("runs, turned", lambda t: torch.unique_consecutive(t.T, **ALL), x)
        if dtype not in (torch.float32, torch.uint8, torch.complex64):
            continue
        x = data((9, 4, 5), dtype, special=False)[torch.arange(30) * 7 % 9]
        for d in (0, 2):
            compare(f"unique along {d}", lambda t, d=d: torch.unique(t, dim=d, **ALL), x)
            compare(f"runs along {d}", lambda t, d=d: torch.unique_consecutive(t, dim=d, **ALL), x)
        compare("unique, turned", lambda t: torch.unique(t.permute(2, 0, 1), dim=1, **ALL), x)
        compare("unique of empty slices", lambda t: torch.unique(t[:, :, :0], dim=0, **ALL), x)
    wide = data((3000, 2), torch.int64, few=9)
    compare("many slices", lambda t: torch.unique(t, dim=0, **ALL), wide)
    compare.check()


def test_slices_with_nan_come_last() -> None:
    """NaN is the greatest and equals nothing (NumPy's order of such slices is no order)."""
    nan = float("nan")
    x = torch.tensor([[1.0, nan], [nan, 0.0], [1.0, 3.0], [1.0, nan], [-0.0, 5.0], [0.0, 5.0]])
    values, inverse, counts = torch.unique(x.to("sim"), dim=0, **ALL)
    want = np.array([[0, 5], [1, 3], [1, nan], [1, nan], [nan, 0]])
    np.testing.assert_array_equal(values.cpu().numpy(), want)
    assert inverse.tolist() == [2, 4, 1, 3, 0, 0]
    assert counts.tolist() == [2, 1, 1, 1, 1]
