"""Native sorting and selection against PyTorch, NumPy and the kernels' own source, interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.devices.cpu.select import PART
from antorcha.devices.cpu.sort import sort_kernel
from antorcha.devices.cpu.sort_long import LONGEST
from antorcha.devices.numpy_semantics.sort import compute_sort
from antorcha.lang.native import interpreted
from antorcha.ops.kinds.record import REGISTRY
from antorcha.runtime.memory import layout as L
from tests.ops.parity import needs_torch, pair

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64"]  # fmt: skip
SHAPES = [(), (0,), (1,), (2,), (5,), (16,), (17,), (33,), (70,), (129,), (300,), (3000,),
          (20000,), (3, 4), (4, 3, 5), (0, 3), (3, 0), (20, 150)]  # fmt: skip
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0]


def values(dtype: str, shape: tuple[int, ...], repeated: bool, seed: int = 0) -> Any:
    """Values of a dtype, a few of them special; many repeated, or of the whole range."""
    rng = np.random.default_rng([seed, *shape, repeated])
    if "float" in dtype:
        made = rng.integers(-3, 3, shape) * 1.0 if repeated else rng.normal(0, 50, shape)
        return np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), made)
    if dtype == "bool" or repeated:
        return rng.integers(0, 2 if dtype == "bool" else 50, shape)
    ends = np.iinfo(dtype)
    return rng.integers(ends.min, ends.max, shape, dtype=dtype, endpoint=True)


def looks(x: Any) -> list[Any]:
    """A tensor, and others over its memory."""
    if x.ndim == 0:
        return [x]
    return [x, x.transpose(0, 1), x[::2]] if x.ndim > 1 else [x, x[1::3]]


def bits(tensor: Any) -> Any:
    """An array in which NaN, -0 and 0 are what they are."""
    array = (tensor.float() if "float16" in str(tensor.dtype) else tensor).numpy()
    if array.dtype.kind != "f":
        return array
    return np.where(np.isnan(array), 0, np.signbit(array) * 2 - 1), np.nan_to_num(array, nan=9e9)


def same(ours: Any, theirs: Any, signs: bool = True) -> None:
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype) == str(theirs.dtype)
    a, b = bits(ours), bits(theirs)
    if isinstance(a, tuple):
        if signs:
            np.testing.assert_array_equal(a[0], b[0])
        a, b = a[1], b[1]
    np.testing.assert_array_equal(a, b)


def cases(dtype: str, shape: tuple[int, ...]) -> Any:
    """(ours, PyTorch's, dim) of every look at some values."""
    for repeated in (False, True):
        x, y = pair(values(dtype, shape, repeated), dtype)
        for a, b in zip(looks(x), looks(y), strict=True):
            for dim in range(-1, max(b.ndim - 1, 0)):
                yield a, b, dim


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES)
def test_orders_as_pytorch(dtype: str) -> None:
    import torch

    for shape in SHAPES:
        for a, b, dim in cases(dtype, shape):
            size = b.shape[dim] if b.ndim else 1
            for down in (False, True):
                wanted = torch.sort(b, dim=dim, descending=down, stable=True)
                found = antorcha.sort(a, dim, down)
                for mine, theirs in zip(found, wanted, strict=True):
                    same(mine, theirs)
                    assert not b.numel() or mine.stride() == theirs.stride()
                for k in {0, 1, 3, size // 5, size} & set(range(size + 1)):
                    for mine, theirs in zip(antorcha.topk(a, k, dim, down), wanted, strict=True):
                        same(mine, theirs.narrow(dim, 0, k) if b.ndim else theirs)
            if not b.numel():
                continue
            wanted = torch.sort(b, dim=dim, stable=True)
            for k in {1, 2, size // 3, size} & set(range(1, size + 1)):
                for mine, theirs in zip(antorcha.kthvalue(a, k, dim), wanted, strict=True):
                    same(mine, theirs.select(dim, k - 1) if b.ndim else theirs)


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("name", ["median", "nanmedian", "mode"])
def test_medians_as_pytorch(name: str, dtype: str) -> None:
    import torch

    for shape in SHAPES:
        for a, b, dim in cases(dtype, shape):
            if not b.numel():
                continue
            if name == "mode":  # (PyTorch's order of NaN is none)
                a, b = a.nan_to_num(7), b.nan_to_num(7)
            found, wanted = getattr(a, name)(dim), getattr(torch, name)(b, dim)
            same(found[0], wanted[0], signs=False)
            if b.ndim:  # which of several equal ones is nobody's business
                there = antorcha.gather(a, dim, found[1].unsqueeze(dim)).squeeze(dim)
                same(there, wanted[0], signs=False)
            if name != "mode":
                same(getattr(a, name)(), getattr(torch, name)(b), signs=False)


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
def test_unique_as_pytorch(name: str, dtype: str) -> None:
    import torch

    for shape in SHAPES:
        for a, b, dim in cases(dtype, shape):
            if dim != -1:
                continue
            options = {"return_inverse": True, "return_counts": True}
            found, wanted = getattr(antorcha, name)(a, **options), getattr(torch, name)(
                b, **options)  # fmt: skip
            same(found[0], wanted[0], signs=False)
            same(found[2], wanted[2])
            same(getattr(antorcha, name)(a), wanted[0], signs=False)
            number = ~torch.isnan(b).numpy()  # the order of several NaN is nobody's business
            np.testing.assert_array_equal(found[1].numpy()[number], wanted[1].numpy()[number])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "uint64", "float64"])
def test_unique_of_many(dtype: str) -> None:
    """Integers that are counted or too far apart for it; in one line or in parts."""
    rng = np.random.default_rng(0)
    most = {"bool": 2, "uint8": 256, "int16": 32000}.get(dtype, 1 << 62)
    least = {"int16": -16000, "int64": -(1 << 62), "uint64": 1 << 63, "float64": -99}.get(dtype, 0)
    failed = []
    for n in (1, 7, 5000, LONGEST - 1, LONGEST, 3 * LONGEST):
        for range_ in (1, 2, 200, n - 1, n, n + 1, 40 * n, 1 << 40):
            ends = min(max(range_, 1), most)
            made = rng.integers(0, ends, n)
            made[-1], made[0] = ends - 1, 0
            x = made.astype(dtype) + np.array(least, dtype) if least else made.astype(dtype)
            wanted = np.unique(x, return_inverse=True, return_counts=True)
            lines = ("unique", x, wanted), (
                "unique_consecutive", np.sort(x), (wanted[0], np.sort(wanted[1]), wanted[2])
            )  # fmt: skip
            failed += [
                (name, n, range_, inverse, counts)
                for name, line, right in lines
                for inverse in (False, True)
                for counts in (False, True)
                if not as_wanted(name, line, right, inverse, counts)
            ]
    assert not failed


def as_wanted(name: str, x: Any, wanted: Any, inverse: bool, counts: bool) -> bool:
    """Does an op give these values, inverse and counts, as far as they are asked for?"""
    found = getattr(antorcha, name)(
        antorcha.tensor(x), return_inverse=inverse, return_counts=counts
    )
    found = found if isinstance(found, tuple) else (found,)
    right = [wanted[0], *([wanted[1]] if inverse else []), *([wanted[2]] if counts else [])]
    return len(found) == len(right) and all([
        np.array_equal(ours.numpy(), each, equal_nan=each.dtype.kind == "f")
        for ours, each in zip(found, right, strict=True)
    ])  # fmt: skip


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float32"])
def test_runs_of_equals(dtype: str) -> None:
    """Runs that begin and end anywhere in the blocks and the parts in which they are counted."""
    rng = np.random.default_rng(1)
    failed = []
    for n in (1, 2, 63, 64, 65, 128, 1000, PART - 1, PART, PART + 1, 3 * PART + 77):
        for share in (0.0, 0.0001, 0.02, 0.5, 1.0):  # of elements that begin a run
            begins = rng.random(n) < share
            begins[0] = True
            x = (np.cumsum(begins) % 2).astype(dtype)
            if dtype.startswith("float"):
                x[x == 0] *= np.where(rng.random((x == 0).sum()) < 0.5, -1, 1).astype(dtype)
                x[rng.random(n) < share / 4] = np.nan
                begins[1:] = x[1:] != x[:-1]
            first = np.nonzero(begins)[0]
            wanted = x[first], np.cumsum(begins) - 1, np.diff([*first, n])
            failed += [
                (n, share, inverse, counts)
                for inverse in (False, True)
                for counts in (False, True)
                if not as_wanted("unique_consecutive", x, wanted, inverse, counts)
            ]
    assert not failed


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float32", "float64"])
def test_kernels_as_plain_python(dtype: str) -> None:
    """The same source, interpreted, which checks every access."""
    for name, rest in (("sort", (0, True, True)), ("topk", (9, 0, True, True)),
                       ("topk", (40, 0, False, True)), ("kthvalue", (77, 0, False)),
                       ("median_dim", (0, False)), ("nanmedian_dim", (0, False)),
                       ("mode", (0, False)), ("sort", (0, False, True))):  # fmt: skip
        repeated = name == "mode"
        x = antorcha.tensor(values(dtype, (150,), repeated)).to(getattr(antorcha, dtype))
        planned = REGISTRY[name].apply_fn([x._layout, *rest])
        lays = [
            each if isinstance(each, L.Layout) else L.contiguous(*each, x._layout.device)
            for each in planned.outs
        ]
        what = sort_kernel(planned.what, lays, [x._layout])
        array = x.numpy()
        wanted = compute_sort(planned.what, lays)([array])
        outs = [np.zeros(w.shape, w.dtype) for w in wanted]
        bufs = np.array([a.ctypes.data for a in (*outs, array)], np.uint64)
        with interpreted():
            assert what.fn(bufs, np.array(what.desc), **what.static) == 0
        for found, right in zip(outs, wanted, strict=True):
            np.testing.assert_array_equal(found, right)


def test_with_numpy_on_several_threads() -> None:
    x = np.random.default_rng(0).normal(size=(300, 400)).astype("float32")
    t = antorcha.tensor(x)
    threads = antorcha.get_num_threads()
    try:
        antorcha.set_num_threads(3)
        for dim in (0, 1):
            np.testing.assert_array_equal(t.sort(dim)[0].numpy(), np.sort(x, dim))
            np.testing.assert_array_equal(t.argsort(dim).numpy(), np.argsort(x, dim, "stable"))
            np.testing.assert_array_equal(t.median(dim)[0].numpy(), np.sort(x, dim).take(
                (x.shape[dim] - 1) // 2, dim))  # fmt: skip
            np.testing.assert_array_equal(t.topk(20, dim)[0].numpy(), np.flip(
                np.sort(x, dim), dim).take(range(20), dim))  # fmt: skip
    finally:
        antorcha.set_num_threads(threads)


def test_lines_of_equal_and_of_sorted_elements() -> None:
    for n in (3, 40, 130, 700, 17000):
        for made in (np.zeros(n), np.arange(n), -np.arange(n), np.arange(n) // 7):
            for dtype in ("int16", "int32", "int64", "float64"):
                t = antorcha.tensor(made).to(getattr(antorcha, dtype))
                x = t.numpy()
                np.testing.assert_array_equal(t.sort()[1].numpy(), np.argsort(x, kind="stable"))
                np.testing.assert_array_equal(t.topk(3)[0].numpy(), np.sort(x)[::-1][:3])
                assert t.kthvalue(n // 2 + 1)[0].item() == np.sort(x)[n // 2]


def test_gradients_go_where_the_values_came_from() -> None:
    x = antorcha.tensor(values("float64", (6, 200), False, 1)).nan_to_num(0, 5, -5)
    x.requires_grad_()
    g = antorcha.arange(1200.0).double().reshape(6, 200)
    found, index = x.sort(1, descending=True)
    (grad,) = antorcha.autograd.grad(found, x, g)
    np.testing.assert_array_equal(grad.gather(1, index).numpy(), g.numpy())
    (grad,) = antorcha.autograd.grad(x.kthvalue(50, 0 - 1)[0].sum(), x)
    assert grad.sum().item() == 6
    assert ((grad == 0) | (grad == 1)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_long_line_is_sorted_in_parts(dtype: str) -> None:
    threads = antorcha.get_num_threads()
    try:
        for count, repeated in ((1, True), (3, False)):
            antorcha.set_num_threads(count)
            x = antorcha.tensor(values(dtype, (65541,), repeated)).to(getattr(antorcha, dtype))
            wide = (x.double() if "float" in dtype else x).numpy()
            order = np.argsort(wide, kind="stable")
            found = x.reshape(1, -1).sort(1)
            np.testing.assert_array_equal(found[1][0].numpy(), order)
            same(found[0][0], x[antorcha.tensor(order)])
            apart, index = antorcha.stack([x, x], 1)[:, 1].sort()
            np.testing.assert_array_equal(index.numpy(), order)
            same(apart, found[0][0])
            down = len(x) - 1 - np.argsort(wide[::-1], kind="stable")[::-1]
            np.testing.assert_array_equal(x.argsort(descending=True).numpy(), down)
    finally:
        antorcha.set_num_threads(threads)


def test_long_lines_of_keys_that_differ_in_few_bits() -> None:
    """Each side of where the words have room for the position, and of each number of digits."""
    rng = np.random.default_rng(0)
    n = LONGEST + 5
    for least in (-(1 << 63), -7, 1 << 40):
        for bits in (0, 1, 10, 11, 12, 22, 23, 31, 32, 33, 44, 62):
            x = rng.integers(0, 1 << bits, n) + least
            x[[3, -3]] = least, least + (1 << bits) - 1
            t = antorcha.tensor(x)
            order = np.argsort(x, kind="stable")
            found = t.sort()
            np.testing.assert_array_equal(found[1].numpy(), order)
            np.testing.assert_array_equal(found[0].numpy(), x[order])
            down = n - 1 - np.argsort(x[::-1], kind="stable")[::-1]
            found = t.sort(descending=True)
            np.testing.assert_array_equal(found[1].numpy(), down)
            np.testing.assert_array_equal(found[0].numpy(), x[down])


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_top_of_long_lines_is_the_head_of_the_sort(dtype: str) -> None:
    """In lines that are read against the last of the top so far: of few values, in order, ..."""
    for n, k in ((1024, 1), (1025, 128), (1091, 17), (5001, 64), (5001, 600), (9000, 50)):
        mixed = values(dtype, (n,), repeated=False)
        lines = np.stack([mixed, values(dtype, (n,), repeated=True), np.sort(mixed),
                          np.sort(mixed)[::-1], np.full(n, mixed[3])])  # fmt: skip
        given = antorcha.tensor(lines.copy()).to(getattr(antorcha, dtype))
        for largest in (True, False):
            top, where = given.topk(k, largest=largest)
            whole, order = given.sort(-1, descending=largest, stable=True)
            same(where, order[:, :k])
            same(top, whole[:, :k])
