"""Compiled scans against the interpreted description: dtypes, strides, sizes around a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from antorcha.core import dtypes
from antorcha.core.device import as_device, backend
from antorcha.devices.cpu import scan as template
from antorcha.lang import expr as E
from antorcha.lang.kernels import Scan
from antorcha.ops.scan import scan, wide_dtype
from antorcha.runtime.memory import layout as L

CPU, REFERENCE = backend(as_device("cpu")), backend(as_device("reference"))
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64")  # fmt: skip
SIZES = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100)
CASES = 20  # for each scan and dtype


def dtype_of(name: str) -> Any:
    return dtypes.bool_ if name == "bool" else getattr(dtypes, name)


def sums(dtype: Any, dim: int, reverse: bool) -> Scan:
    acc = wide_dtype(dtype)
    return scan(dim, [dtype], lambda x, i: E.cast(x, acc), lambda a, b: a + b, (0,), (acc,),
                reverse=reverse)  # fmt: skip


def products(dtype: Any, dim: int, reverse: bool) -> Scan:
    acc = wide_dtype(dtype)
    return scan(dim, [dtype], lambda x, i: E.cast(x, acc), lambda a, b: a * b, (1,), (acc,),
                reverse=reverse, run=1)  # fmt: skip


def lasts(dtype: Any, dim: int, reverse: bool) -> Scan:
    """The latest element that is not 0 and its position: merging does not commute."""

    def merge(a: Any, i: Any, b: Any, j: Any) -> Any:
        return E.where(j >= 0, b, a), E.where(j >= 0, j, i)

    return scan(
        dim, [dtype], lambda x, i: (x, E.where(x == 0, -1, i)), merge, (0, -1),
        (dtype, dtypes.int64), reverse=reverse,
    )  # fmt: skip


def lines(dtype: Any, dim: int, reverse: bool) -> Scan:
    """y = x + y_before / 2 of two operands, with a state that nobody reads at the end."""
    acc = dtypes.float64

    def merge(half: Any, y: Any, h: Any, x: Any) -> Any:
        return half * h, x + h * y

    return scan(
        dim, [dtype, dtype], lambda x, z, i: (0.5, E.cast(x, acc) + E.cast(z, acc)), merge,
        (1.0, 0.0), (acc, acc), lambda h, y: (y, y * 2), reverse=reverse,
    )  # fmt: skip


def runs(dtype: Any, dim: int, reverse: bool) -> Scan:
    """Sums of which at most 8 elements are merged among themselves."""
    acc = wide_dtype(dtype)
    return scan(dim, [dtype], lambda x, i: E.cast(x, acc), lambda a, b: a + b, (0,), (acc,),
                reverse=reverse, run=8)  # fmt: skip


SCANS = {
    "runs": (runs, 1),
    "sums": (sums, 1),
    "products": (products, 1),
    "lasts": (lasts, 1),
    "lines": (lines, 2),
}


def spread(rng: Any, shape: tuple[int, ...], dtype: Any, may_repeat: bool) -> tuple[Any, int]:
    """A layout of this shape with strides of all sorts, and the elements that it reaches over."""
    order = list(rng.permutation(len(shape))) if rng.random() < 0.5 else list(range(len(shape)))
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        gap = int(rng.choice((1, 1, 1, 2, 3)))
        repeat = may_repeat and rng.random() < 0.1
        strides[d] = 0 if repeat else step * gap
        step *= 1 if repeat else max(shape[d], 1) * gap
    return L.layout(shape, tuple(strides), dtype, as_device("cpu")), max(step, 1)


def values(rng: Any, name: str, count: int) -> Any:
    if name == "bool":
        return rng.random(count) < 0.5
    if name.startswith(("int", "uint")):
        return rng.integers(0 if name[0] == "u" else -3, 4, count)
    return np.where(rng.random(count) < 0.2, 0, rng.uniform(-1.5, 1.5, count))


def run(where: Any, what: Scan, outs: list[Any], spans: list[int], ins: list[Any]) -> list[Any]:
    launch = where.compile(what, outs, [lay for lay, _ in ins])
    places = []
    for lay, span in zip(outs, spans, strict=True):
        whole = L.contiguous((span,), lay.dtype, lay.device)
        places.append((whole, where.from_host(np.full(span, 1, lay.dtype.np), whole)))
    flat: list[Any] = []
    for _, storage in places:
        flat += (storage, 0)
    for lay, data in ins:
        whole = L.contiguous((len(data),), lay.dtype, lay.device)
        flat += (where.from_host(data, whole), 0)
    launch.into(*flat)
    # all that the storages hold: nothing is written between the elements
    return [where.to_host(whole, storage, 0).copy() for whole, storage in places]


def check(what: Scan, outs: list[Any], spans: list[int], ins: list[Any]) -> None:
    ours = run(CPU, what, outs, spans, ins)
    want = run(REFERENCE, what, outs, spans, ins)
    for a, b, lay in zip(ours, want, outs, strict=True):
        if lay.dtype.kind in "biu":
            assert np.array_equal(a, b), (what, lay, [i[0] for i in ins])
        else:
            close = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-6}.get(lay.dtype.name, 1e-12)
            np.testing.assert_allclose(
                a.astype("f8"), b.astype("f8"), rtol=close, atol=close * 4, err_msg=str(lay)
            )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SCANS)
def test_generated(name: str, dtype: str) -> None:
    rng = np.random.default_rng([sorted(SCANS).index(name), DTYPES.index(dtype)])
    make, operands = SCANS[name]
    own = dtype_of(dtype)
    forms = set()
    for _ in range(CASES):
        ndim = int(rng.integers(0, 4))
        shape = tuple([int(rng.choice(SIZES if d < 2 else SIZES[:6])) for d in range(ndim)])
        what = make(own, int(rng.integers(max(ndim, 1))), bool(rng.integers(2)))
        results = [own] if len(what.finish) == 1 else [own, dtypes.int64]
        if dtype != "bool" and name == "sums" and rng.random() < 0.5:
            results = [dtypes.int64 if own.kind in "iu" else dtypes.float64]
        if name == "lines" or own.kind == "f":
            results = [r if r.kind != "b" else dtypes.float32 for r in results]
        if name == "lines":  # whole numbers are not rounded alike
            results = [dtypes.float64] * len(results)
        made = [spread(rng, shape, r, False) for r in results]
        ins = []
        for _k in range(operands):
            lay, span = spread(rng, shape, own, True)
            ins.append((lay, values(rng, dtype, span).astype(own.np)))
        check(what, [m[0] for m in made], [m[1] for m in made], ins)
        forms.add(len(shape))
    assert forms == {0, 1, 2, 3}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", SCANS)
def test_lines_in_pieces(name: str, reverse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long lines are cut; the pieces' states join in order."""
    monkeypatch.setattr(template, "THREAD", 600)
    make, operands = SCANS[name]
    rng = np.random.default_rng(3)
    for shape in ((4 * template.THREAD + 77,), (3, 5 * template.THREAD - 1)):
        own = dtypes.float64 if name == "lines" else dtypes.int32
        what = make(own, len(shape) - 1, reverse)
        results = [own] if len(what.finish) == 1 else [own, dtypes.float64]
        outs = [L.contiguous(shape, r, as_device("cpu")) for r in results]
        lay = L.contiguous(shape, own, as_device("cpu"))
        sparse = rng.random(lay.numel) < 0.002  # so that pieces without a latest element exist
        data = np.where(sparse, rng.integers(1, 9, lay.numel), 0).astype(own.np)
        check(what, outs, [o.numel for o in outs], [(lay, data)] * operands)


def test_pieces() -> None:
    for lines_, n in ((1, 4 * template.THREAD), (8, 1 << 22), (3, (1 << 20) + 1)):
        parts, piece = template.pieces(lines_, n)
        assert 2 <= parts <= template.PARTS // lines_
        assert piece % template.PIECE == 0
        assert (parts - 1) * piece < n <= parts * piece
    assert template.pieces(9, 1 << 22) == (1, 1 << 22)
    assert template.pieces(1, 1000) == (1, 1000)


def test_meta() -> None:
    lay = L.contiguous((3, 4), dtypes.float32, as_device("meta"))
    launch = backend(as_device("meta")).compile(sums(dtypes.float32, 1, False), [lay], [lay])
    assert launch.fresh(None, 0).nbytes == 48


def test_a_product_after_a_zero_stays_zero() -> None:
    """In order: the product of the later elements alone would overflow."""
    lay = L.contiguous((2, 40), dtypes.float64, as_device("cpu"))
    data = np.full(80, 1e300)
    data[[0, 40]] = 0
    (found,) = run(CPU, products(dtypes.float64, 1, False), [lay], [80], [(lay, data)])
    assert not found.any()
