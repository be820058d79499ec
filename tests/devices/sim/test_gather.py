"""Gather and Scatter of the GPU's kernels, on the simulator, beside the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import antorcha as t
from antorcha.devices.gpu import fallback, gather, moves, scatter
from antorcha.lang.native import i64

Case = tuple[str, Callable[..., Any], tuple[Any, ...]]
FLOATS = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")
DTYPES = (*FLOATS, *INTEGERS)
TOLERANCE = {"float32": 2e-5, "complex64": 2e-5, "float16": 2e-2, "bfloat16": 1e-1}
random = np.random.default_rng(5)


def numbers(dtype: str, *shape: int, most: int = 9) -> t.Tensor:
    """Small integers, so that sums are exact in float32, too."""
    values = random.integers(-most if dtype not in ("bool", "uint8") else 0, most + 1, shape)
    return t.tensor(values).to(getattr(t, dtype))


def fractions(dtype: str, *shape: int) -> t.Tensor:
    return t.tensor(random.uniform(0.5, 1.5, shape)).to(getattr(t, dtype))


def places(shape: Any, high: int, low: int = 0, dtype: str = "int64") -> t.Tensor:
    return t.tensor(random.integers(low, high, shape)).to(getattr(t, dtype))


def moved(value: Any) -> Any:
    """The value on the simulator: tensors, with their strides, and those in tuples."""
    if isinstance(value, tuple):
        return tuple([moved(v) for v in value])
    if not isinstance(value, t.Tensor):
        return value
    if value._base is None or not value.numel():
        return value.to("sim")
    base = value._base
    there = base.detach().to("sim")
    strides, offset = value.stride(), value.storage_offset() - base.storage_offset()
    return t.as_strided(there, tuple(value.shape), strides, offset)


def differs(dtype: str, ours: t.Tensor, theirs: t.Tensor) -> str:
    if (ours.shape, ours.dtype, ours.stride()) != (theirs.shape, theirs.dtype, theirs.stride()):
        return f"{theirs.dtype} {theirs.shape} {theirs.stride()}, not {ours.stride()}"
    pair = [x.float() if dtype == "bfloat16" else x for x in (ours, theirs.cpu())]
    a, b = [x.numpy() for x in pair]
    rtol = TOLERANCE.get(dtype, 1e-12)
    if a.dtype.kind in "fc":
        same = np.isclose(b, a, rtol, rtol, equal_nan=True)
    else:
        same = a == b
    if same.all():
        return ""
    return f"{np.argwhere(~same)[:3].tolist()}: {b[~same][:3]}, not {a[~same][:3]}"


def wrong_of(cases: Iterator[Case], dtype: str) -> list[str]:
    found = []
    for name, fn, args in cases:
        fallback.noted.clear()
        there = moved(args)
        try:
            ours = fn(*args)
            theirs = fn(*there)
            text = differs(dtype, ours, theirs)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        if fallback.noted:
            text += f" (left to the host: {fallback.noted})"
        if text:
            found.append(f"{dtype} {name}: {text}")
    return found


# --------------------------------------------------------------------------------------- gather
def gathers(dtype: str) -> Iterator[Case]:
    x = numbers(dtype, 7, 16, 6)
    ways = {
        "plain": x, "permuted": numbers(dtype, 6, 7, 16).permute(1, 2, 0),
        "every second": numbers(dtype, 14, 32, 12)[::2, ::2, ::2], "offset": numbers(
            dtype, 8, 16, 7)[1:, :, 1:], "expanded": numbers(dtype, 7, 1, 6).expand(7, 16, 6),
    }  # fmt: skip
    for way, a in ways.items():
        yield f"index_select 0 {way}", t.index_select, (a, 0, places((5,), 7))
        yield f"index_select 1 {way}", t.index_select, (a, 1, places((40,), 16, dtype="int32"))
        yield f"index_select 2 {way}", t.index_select, (a, 2, places((12,), 6)[::3])
        yield f"gather 1 {way}", t.gather, (a, 1, places((4, 30, 6), 16))
        yield f"gather 2 {way}", t.gather, (a, 2, places((9, 16, 7), 6).permute(2, 1, 0))
        yield f"take {way}", t.take, (a, places((3, 5), 600, -600))
        index = (places((4, 1), 7, -7), places((3,), 6, -6))
        yield f"x[i, :, j] {way}", lambda x, i, j: x[i, :, j], (a, *index)
        yield f"x[:, i, j] {way}", lambda x, i, j: x[:, i, j], (a, index[0] % 4, index[1])
        yield f"x[i] {way}", lambda x, i: x[i], (a, index[0])
    table = numbers(dtype, 50, 64)
    yield "rows", t.embedding, (table, places((130, 9), 50))
    yield "rows of an odd address", t.embedding, (table.view(-1)[1:3137].view(49, 64),
                                                  places((30,), 49))  # fmt: skip
    yield "long rows", t.embedding, (numbers(dtype, 3, 8200), places((4,), 3))
    for size in (31, 48, 100, 768):
        middle = numbers(dtype, 2, 9, size)
        yield f"rows of {size}", t.index_select, (middle, 1, places((11,), 9))
        yield f"columns of {size}", t.index_select, (middle.permute(2, 1, 0), 1, places((5,), 9))
    yield "0 dims", t.gather, (numbers(dtype), 0, t.tensor(0))
    yield "0 dims at 1", t.gather, (numbers(dtype), 0, t.tensor([0]))
    yield "select of 0 dims", t.index_select, (numbers(dtype), 0, t.tensor([0]))
    yield "index of 0 dims", t.index_select, (x, 1, t.tensor(3))
    yield "empty index", t.index_select, (x, 1, places((0,), 1))
    yield "empty rows", t.index_select, (x[:, :0], 0, places((3,), 7))
    yield "empty both", lambda x, i, j: x[i, j], (x, places((0, 1), 7), places((3,), 7))


def test_gathers() -> None:
    wrong = [text for dtype in DTYPES for text in wrong_of(gathers(dtype), dtype)]
    assert not wrong, "\n".join(wrong)


# -------------------------------------------------------------------------------------- scatter
def scatters(dtype: str) -> Iterator[Case]:
    x, wide = numbers(dtype, 7, 16, 6), numbers(dtype, 6, 7, 16).permute(1, 2, 0)
    for way, a in {
        "plain": x,
        "permuted": wide,
        "strided": numbers(dtype, 7, 32, 6)[:, ::2],
    }.items():
        source = numbers(dtype, 7, 4, 6)
        yield f"scatter {way}", t.scatter, (a, 1, places((5, 4, 6), 16), source)
        yield f"scatter_add {way}", t.scatter_add, (a, 1, places((7, 4, 6), 16), source)
        yield f"scatter number {way}", t.scatter, (a, 2, places((7, 4, 6), 6), 1)
        yield f"index_add {way}", t.index_add, (a, 1, places((4,), 16), source)
        yield f"index_copy {way}", t.index_copy, (a, 0, t.tensor([2, 0]), numbers(dtype, 2, 16, 6))
        for accumulate in (False, True):
            index = (places((5, 1), 7, -7), places((3,), 6, -6))
            put = t.index_put
            more = (numbers(dtype, 5, 3, 16), accumulate)
            yield f"x[i, :, j] {way} {accumulate}", _put_around, (a, *index, *more)
            yield f"x[i] {way} {accumulate}", put, (a, index[:1], numbers(dtype, 6), accumulate)
            yield f"x[i] = n {way} {accumulate}", put, (a, index[:1], numbers(dtype), accumulate)
            flat = (places((2, 70), 600, -600), numbers(dtype, 140).view(70, 2).t(), accumulate)
            yield f"put {way} {accumulate}", t.put, (a, *flat)
    yield "0 dims", t.scatter, (numbers(dtype), 0, t.tensor(0), numbers(dtype))
    yield "add of 0 dims", t.index_add, (numbers(dtype), 0, t.tensor([0]), numbers(dtype, 1))
    yield "empty index", t.index_add, (x, 1, places((0,), 1), numbers(dtype, 7, 0, 6))
    yield "empty x", t.index_add, (x[:, :0], 0, places((2,), 7), numbers(dtype, 2, 0, 6))


def _put_around(x: Any, i: Any, j: Any, values: Any, accumulate: bool) -> Any:
    return t.index_put(x, (i, None, j), values, accumulate)


def reductions(dtype: str) -> Iterator[Case]:
    """Many elements meet in few targets; few in many; with and without the old value."""
    kinds = ["sum"] if dtype == "bool" else ["sum", "prod", "mean", "amax", "amin"]
    if dtype.startswith("complex"):
        kinds = ["sum", "prod"]
    for kind in kinds:
        make = numbers if kind != "prod" or dtype in INTEGERS else fractions
        for own in (True, False):
            args = (places((3, 40), 5), make(dtype, 3, 40))
            fn = _reduce(kind, own)
            yield f"{kind} {own}", fn, (make(dtype, 3, 6), 1, *args)
            yield f"{kind} {own} dim 0", fn, (make(dtype, 4, 40), 0, args[0] % 4, args[1])
    few, many = places((700,), 3), places((2500,), 70_000)
    for name, n, at in (("few", 3, few), ("many", 70_000, many)):
        source = numbers(dtype, at.numel(), most=2)
        yield f"add to {name}", t.scatter_add, (numbers(dtype, n), 0, at, source)
        yield f"set of {name}", t.scatter, (numbers(dtype, n), 0, at, source)
        yield f"put to {name}", t.put, (numbers(dtype, n), at, source, True)
    rows, at = numbers(dtype, 300, 12, most=2), places((300,), 5)
    yield "add rows", t.index_add, (numbers(dtype, 5, 12), 0, at, rows)
    yield "copy rows", t.index_copy, (numbers(dtype, 5, 12), 0, at, rows)
    yield "copy rows to many", t.index_copy, (numbers(dtype, 9000, 2), 0, at * 1700, rows[:, :2])
    yield "add columns", t.index_add, (numbers(dtype, 12, 5), 1, at, rows.t())
    yield "add in the middle", t.index_add, (numbers(dtype, 4, 5, 3), 1, at,
                                             rows.view(300, 4, 3).permute(1, 0, 2))  # fmt: skip


def _reduce(kind: str, own: bool) -> Callable[..., Any]:
    return lambda x, d, i, s: t.scatter_reduce(x, d, i, s, kind, include_self=own)


def test_scatters() -> None:
    wrong = [text for dtype in DTYPES for text in wrong_of(scatters(dtype), dtype)]
    assert not wrong, "\n".join(wrong)


def test_folds() -> None:
    wrong = [text for dtype in DTYPES for text in wrong_of(reductions(dtype), dtype)]
    assert not wrong, "\n".join(wrong)


def long_ones() -> Iterator[Case]:
    """Several tiles of the sort, several passes, and segments in many chunks."""
    for n, count in ((40, 9000), (300, 5000), (200, 530_000), (100_000, 5000), (17_000_000, 2100)):
        x = t.zeros(n)
        at = places((count,), n) if n < 1e6 else places((count,), 20) * 849_999
        yield f"add {count} to {n}", t.scatter_add, (x, 0, at, fractions("float32", count))
        yield f"set {count} of {n}", t.index_copy, (x, 0, at, fractions("float32", count))
    for dtype in ("int32", "int64", "uint8"):
        whole = numbers(dtype, 2000)
        for kind in ("sum", "amax", "amin"):
            yield (
                f"{kind} of {dtype}",
                _reduce(kind, True),
                (whole[:50], 0, whole.long() % 50, whole),
            )
    one = t.zeros(5000, dtype=t.int64) + 3
    yield "all to one", t.scatter_add, (t.zeros(8), 0, one, fractions("float32", 5000))
    means = fractions("float32", 3000, 2)
    yield "mean of rows", _reduce("mean", True), (t.ones(6, 2), 0, places((3000, 2), 6), means)
    products = 1 + (means - 1) * 1e-3
    yield "product", _reduce("prod", False), (t.ones(3, 2), 0, places((3000, 2), 3), products)


def test_long_ones() -> None:
    wrong = wrong_of(long_ones(), "float32")
    assert not wrong, "\n".join(wrong)


def test_order() -> None:
    """The same numbers twice; NaN and infinities go where they go on the CPU; the last one wins."""
    at, source = places((3000,), 11).to("sim"), t.randn(3000).to("sim")
    results = [t.scatter_add(t.zeros(11).to("sim"), 0, at, source).tolist() for _ in range(3)]
    assert results[0] == results[1] == results[2]
    x = t.tensor([1.0, float("nan"), -0.0, float("-inf"), 2.0, 3.0])
    index = t.tensor([0, 0, 1, 2, 3, 4] * 100)
    special = t.tensor([float("inf"), 1.0, 5.0, -0.0, float("inf"), float("nan")] * 100)
    cases = [
        (f"{kind} {own}", _reduce(kind, own), (x, 0, index, special))
        for kind in ("sum", "amax", "amin", "mean") for own in (True, False)
    ]  # fmt: skip
    wrong = wrong_of(iter(cases), "float32")
    assert not wrong, "\n".join(wrong)
    last = t.index_copy(t.zeros(11).to("sim"), 0, at, t.arange(3000.0).to("sim"))
    wanted = [max(j for j, k in enumerate(at.tolist()) if k == place) for place in range(11)]
    assert last.tolist() == wanted


# --------------------------------------------------------------------------------------- errors
def test_first_bad_index_is_named_and_nothing_written() -> None:
    big = places((3000,), 50)
    big[[17, 900, 2999]] = t.tensor([-51, 50, 1 << 40])
    x = t.zeros(50, 3)
    rows = t.ones(3000, 3)
    cases = {
        "index": lambda x, i: x[i],
        "second": lambda x, i: x[i.clamp(-50, 49) // 60, i.clamp(-3, 3)],
        "index_select": lambda x, i: t.index_select(x, 0, i),
        "gather": lambda x, i: t.gather(x, 0, i.view(1000, 3)),
        "take": lambda x, i: t.take(x, i * 3),
        "empty rows": lambda x, i: t.index_select(x[:, :0], 0, i),
        "empty": lambda x, i: t.index_select(x[:0], 0, i[:5]),
        "index_put": lambda x, i: x.index_put_((i,), rows.to(x.device)),
        "index_add": lambda x, i: x.index_add_(0, i, rows.to(x.device)),
        "few": lambda x, i: x.index_add_(0, i[900:903], rows[:3].to(x.device)),
        "scatter": lambda x, i: x.scatter_(0, i.view(1000, 3), rows[:1000].to(x.device)),
        "number": lambda x, i: x.scatter_(0, i.view(1000, 3), 5.0),
        "put": lambda x, i: x.put_(i * 3, rows.view(-1)[:3000].to(x.device)),
    }
    for name, fn in cases.items():
        there, at = x.to("sim"), big.to("sim")
        with pytest.raises((IndexError, RuntimeError)) as wanted:
            fn(x.clone(), big)
        with pytest.raises((IndexError, RuntimeError)) as found:
            fn(there, at)
        assert str(found.value) == str(wanted.value), name
        assert not there.any(), name
    given = t.zeros(3000, 3).to("sim")
    with pytest.raises(IndexError):
        t.index_select(t.ones(50, 3).to("sim"), 0, big.to("sim"), out=given)
    assert not given.any()
    t.index_select(t.ones(50, 3).to("sim"), 0, big.to("sim").clamp(0, 49), out=given)
    assert given.all()


def test_wide_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors too large for numbers of 32 bits have numbers of 64."""
    for module in (gather, moves, scatter):
        monkeypatch.setattr(module, "index_type", lambda layouts, count: i64)

    def cases() -> Iterator[Case]:
        x = numbers("float32", 3, 17, 8)
        yield "take", t.take, (x.permute(2, 0, 1), places((55,), 408, -408))
        yield "rows", lambda x, i: x[:, i], (x, places((5,), 17))
        for count in (1500, 4500):
            at, source = places((count,), 70_001), fractions("float32", count)
            for n in (70_001, 9):
                yield f"add {count} to {n}", t.scatter_add, (t.zeros(n), 0, at % n, source)
                yield f"set {count} of {n}", t.scatter, (t.zeros(n), 0, at % n, source)
            whole = (t.zeros(9, dtype=t.int32), 0, at % 9, at.to(t.int32))
            yield f"atomic {count}", t.scatter_add, whole

    wrong = wrong_of(cases(), "float32")
    assert not wrong, "\n".join(wrong)


def test_gradients() -> None:
    """Of rows that are taken often, and of elements along a dim."""
    table, at = t.randn(9, 12), places((40, 10), 9)
    found = []
    for device in ("cpu", "sim"):
        w = table.detach().to(device).requires_grad_()
        index = at.to(device)
        rows = t.nn.functional.embedding(index, w, padding_idx=2)
        along = t.gather(w, 1, index[:9])
        ((rows * rows).sum() + (along * 3).sum()).backward()
        found.append(np.asarray(w.grad.cpu().tolist()))
    assert np.allclose(found[0], found[1], 1e-4, 1e-4)
    assert not np.allclose(found[0], 0)
