"""Gather and scatter in all the ways that their operands may lie, at any number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import antorcha

# (shape of the big tensor, dim, how many indices): rows, columns, rows of a few, long lines, and
# enough for several threads
CASES = [
    ((50, 64), 0, 700), ((300, 40), 1, 90), ((7, 11, 130), 1, 23), ((40, 3), 0, 5000),
    ((9, 4100), 1, 4500), ((90, 1), 0, 3000), ((6, 5, 4), 2, 9), ((5000,), 0, 30000),
    ((40, 3), 0, 21000), ((3, 8, 6, 5), 1, 900), ((20, 16), 0, 1031),
]  # fmt: skip


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = antorcha.get_num_threads()
    antorcha.set_num_threads(request.param)
    yield request.param
    antorcha.set_num_threads(before)


def drawn(shape: tuple[int, ...], dim: int, count: int) -> tuple[Any, Any, Any]:
    """A tensor, indices along a dim, and values to put there; few numbers, so sums are exact."""
    rng = np.random.default_rng(count)
    there = (*shape[:dim], count, *shape[dim + 1 :])
    x = rng.integers(-9, 9, shape).astype(np.float32)
    return x, rng.integers(0, shape[dim], count), rng.integers(-9, 9, there).astype(np.float32)


def spread(index: Any, like: Any, dim: int) -> Any:
    """One index a slice as an index of every element, of no memory of its own."""
    shape = [1] * like.ndim
    shape[dim] = -1
    return index.reshape(shape).expand(like.shape)


def orders(x: Any) -> list[Any]:
    """A tensor as it is, the other way round in memory, and with gaps."""
    wide = antorcha.zeros(*[2 * n for n in x.shape])
    gaps = wide[tuple([slice(0, 2 * n, 2) for n in x.shape])].copy_(x)
    turned = tuple(reversed(range(x.ndim)))
    return [x.clone(), x.permute(turned).contiguous().permute(turned), gaps]


@pytest.mark.parametrize(("shape", "dim", "count"), CASES)
def test_what_is_read(shape: tuple[int, ...], dim: int, count: int, threads: int) -> None:
    x, index, _ = drawn(shape, dim, count)
    wanted = np.take(x, index, dim)
    i = antorcha.tensor(index)
    for given in orders(antorcha.tensor(x)):
        picked = given.index_select(dim, i)
        np.testing.assert_array_equal(picked.numpy(), wanted)
        for each in (spread(i, picked, dim), spread(i, picked, dim).contiguous()):
            np.testing.assert_array_equal(given.gather(dim, each).numpy(), wanted)
            np.testing.assert_array_equal(given.gather(dim, each.int()).numpy(), wanted)
        key = (slice(None),) * dim
        np.testing.assert_array_equal(given[(*key, i - shape[dim])].numpy(), wanted)
        out = antorcha.empty(*reversed(wanted.shape)).permute(*reversed(range(x.ndim)))
        antorcha.index_select(given, dim, i, out=out)
        np.testing.assert_array_equal(out.numpy(), wanted)


@pytest.mark.parametrize(("shape", "dim", "count"), CASES)
def test_what_is_written(shape: tuple[int, ...], dim: int, count: int, threads: int) -> None:
    x, index, values = drawn(shape, dim, count)
    key = (slice(None),) * dim
    total, last = x.copy(), x.copy()
    np.add.at(total, (*key, index), values)
    for k, at in enumerate(index):  # (NumPy does not promise that the last one stays)
        last[(*key, at)] = values[(*key, k)]
    i, v = antorcha.tensor(index), antorcha.tensor(values)
    for given in orders(antorcha.tensor(x)):
        for source in orders(v):
            every = spread(i, v, dim)
            for wide in (every, every.contiguous()):
                for result, wanted in [
                    (given.clone().scatter_add_(dim, wide, source), total),
                    (given.clone().scatter_(dim, wide, source), last),
                ]:
                    np.testing.assert_array_equal(result.numpy(), wanted)
            np.testing.assert_array_equal(given.index_add(dim, i, source).numpy(), total)
            np.testing.assert_array_equal(given.index_copy(dim, i, source).numpy(), last)
        given.index_put_((*[None] * dim, i), v, accumulate=True)
        np.testing.assert_array_equal(given.numpy(), total)
        filled = given.scatter(dim, spread(i, v, dim), 2.5).numpy()
        np.testing.assert_array_equal(filled, np.where(touched(x, key, index), 2.5, total))


FOLDS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}
STARTS = {"sum": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}


@pytest.mark.parametrize(("shape", "dim", "count"), CASES)
def test_what_is_folded(shape: tuple[int, ...], dim: int, count: int, threads: int) -> None:
    x, index, values = drawn(shape, dim, count)
    key = (*(slice(None),) * dim, index)
    arrived = np.zeros(x.shape, np.float32)
    np.add.at(arrived, key, np.float32(1))
    i, wrong = antorcha.tensor(index), []
    for fold in (*FOLDS, "mean"):
        values.flat[0] = np.nan if fold.startswith("am") else 1
        v = np.sign(values) if fold == "prod" else values
        for own in (True, False):
            wanted = x.copy()
            if not own:
                wanted[arrived > 0] = STARTS.get(fold, 0)
            with np.errstate(invalid="ignore"):
                FOLDS.get(fold, np.add).at(wanted, key, v)
            if fold == "mean":
                wanted /= np.maximum(arrived + own, 1)
            for given in orders(antorcha.tensor(x)):
                for source in orders(antorcha.tensor(v)):
                    every = spread(i, source, dim)
                    options: Any = {"include_self": own}
                    found = given.scatter_reduce(dim, every, source, fold, **options)
                    given_back = given.clone()
                    given_back.scatter_reduce_(dim, every.contiguous(), source, fold, **options)
                    if not all([np.array_equal(each.numpy(), wanted, equal_nan=True)
                                for each in (found, given_back)]):  # fmt: skip
                        wrong.append((fold, own))
    assert not wrong, wrong


def touched(x: Any, key: Any, index: Any) -> Any:
    found = np.zeros(x.shape, bool)
    found[(*key, index)] = True
    return found


@pytest.mark.parametrize("n", [1, 5, 64, 1000])
def test_sums_are_the_same_at_any_number_of_threads(n: int) -> None:
    """To the last bit: each element's are added in the order of the indices."""
    rng = np.random.default_rng(n)
    x = antorcha.zeros(37, n)
    index = antorcha.tensor(rng.integers(0, 37, 40000 // n + 900))
    values = antorcha.tensor(rng.standard_normal((len(index), n)).astype(np.float32))
    before, found = antorcha.get_num_threads(), []
    try:
        for count in (1, 2, 3, 7):
            antorcha.set_num_threads(count)
            found.append(x.index_add(0, index, values).numpy().tobytes())
            found.append(x.scatter_add(0, index[:, None].expand(-1, n), values).numpy().tobytes())
    finally:
        antorcha.set_num_threads(before)
    assert len(set(found)) == 1


@pytest.mark.parametrize("shapes", [((4, 1), (1, 5)), ((5,), (4, 5)), ((), (6,)), ((3,), (3,))])
def test_index_tensors_that_broadcast(shapes: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 9, 3)).astype(np.float32)
    i, j = rng.integers(-8, 8, shapes[0]), rng.integers(-9, 9, shapes[1])
    given, a, b = antorcha.tensor(x), antorcha.tensor(i), antorcha.tensor(j)
    np.testing.assert_array_equal(given[a, b].numpy(), x[i, j])
    np.testing.assert_array_equal(given[:, b % 3, a % 3].numpy(), x[:, j % 3, i % 3])
    wanted = x.copy()
    np.add.at(wanted, (i, j), np.float32(1))
    given.index_put_((a, b), antorcha.tensor(1.0), accumulate=True)
    np.testing.assert_allclose(given.numpy(), wanted, rtol=1e-5)


@pytest.mark.parametrize("bad", [-1, 50, 1 << 60, -(1 << 62)])
@pytest.mark.parametrize("where", [0, 700, 4499])
def test_nothing_is_written_for_a_bad_index(bad: int, where: int, threads: int) -> None:
    x = antorcha.arange(50 * 64).reshape(50, 64).float()
    index = antorcha.arange(4500) % 50
    index[where] = bad
    if where:
        index[-1] = -7  # of several, the first is named
        index[where] = bad
    values = antorcha.ones(4500, 64)
    calls: list[tuple[Any, Any]] = [
        (x.clone(), lambda out: out.index_add_(0, index, values)),
        (x.clone(), lambda out: out.index_copy_(0, index, values)),
        (x.clone(), lambda out: out.scatter_add_(0, spread(index, values, 0), values)),
        (values * 3, lambda out: antorcha.index_select(x, 0, index, out=out)),
        (values * 3, lambda out: antorcha.gather(x, 0, spread(index, values, 0), out=out)),
        (values * 3, lambda out: antorcha.gather(x, 0, spread(index, values, 0))),
        (values * 3, lambda out: antorcha.nn.functional.embedding(index, x)),
    ]
    for out, call in calls:
        before = out.numpy().copy()
        with pytest.raises(IndexError, match=str(bad) if abs(bad) < 1 << 50 else "index"):
            call(out)
        np.testing.assert_array_equal(out.numpy(), before)
