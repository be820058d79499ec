"""Flips, turns and triangles against PyTorch, over layouts of all sorts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import antorcha
from tests.ops.parity import DTYPES, data, needs_torch, numpy_of, pair

SIZES = (0, 1, 2, 3, 5, 17, 33, 65, 130)


@needs_torch
@pytest.mark.parametrize("dtype", DTYPES)
def test_generated(dtype: str) -> None:
    rng = np.random.default_rng(DTYPES.index(dtype))
    for _ in range(25):
        ndim = int(rng.integers(1, 5))
        shape = [int(rng.choice(SIZES if d < 2 else SIZES[1:4])) for d in range(ndim)]
        both = pair(data(*shape, dtype=dtype), dtype)
        if rng.random() < 0.5:
            order = tuple([int(d) for d in rng.permutation(ndim)])
            both = tuple([x.permute(order) for x in both])
        if rng.random() < 0.3:
            both = tuple([x[::2] for x in both])
        if rng.random() < 0.2:
            both = tuple([x.expand(3, *x.shape) for x in both])
        ndim = both[1].dim()
        some = rng.choice(ndim, int(rng.integers(0, ndim + 1)), replace=False)
        dims = tuple([int(d) for d in some])
        k, diagonal = int(rng.integers(-6, 7)), int(rng.integers(-20, 20))
        calls = [lambda x, dims=dims: x.flip(dims)]
        if ndim >= 2:
            calls += [
                lambda x, n=diagonal: x.tril(n),
                lambda x, n=diagonal: x.triu(n),
                lambda x, n=diagonal: x.clone().tril_(n),
                lambda x, n=diagonal: x.clone().triu_(n),
                lambda x, k=k, d=ndim - 1: x.rot90(k, (0, d)),
                lambda x, k=k: x.rot90(k, (1, 0)),
            ]
        for call in calls:
            ours, theirs = [call(x) for x in both]
            what = (both[0].shape, both[0].stride(), dims, k, diagonal)
            assert tuple(ours.shape) == tuple(theirs.shape), what
            assert np.array_equal(numpy_of(ours), numpy_of(theirs)), what
            if theirs.numel():
                assert ours.stride() == theirs.stride(), what


def test_flip_of_a_long_row() -> None:
    """More than one unit of work."""
    x = antorcha.arange(100_000, dtype=antorcha.int32)
    assert np.array_equal(x.flip(0).numpy(), x.numpy()[::-1])
    assert np.array_equal(x.reshape(2, -1).tril(20_000).numpy(), np.tril(x.numpy().reshape(2, -1),
                                                                        20_000))  # fmt: skip


def test_places_of_triangles() -> None:
    wrong = []
    for rows, columns, diagonal in itertools.product(
        (0, 1, 3, 10, 300), (0, 1, 5, 10, 40), (-50, -9, -1, 0, 1, 9, 50)
    ):
        for name in ("tril_indices", "triu_indices"):
            wanted = getattr(np, name)(rows, diagonal, columns)
            for dtype in (antorcha.int64, antorcha.int32):
                found = getattr(antorcha, name)(rows, columns, diagonal, dtype=dtype)
                if found.dtype is not dtype or not np.array_equal(found.numpy(), wanted):
                    wrong.append((name, rows, columns, diagonal, dtype))
    assert not wrong, wrong


def test_counts_of_repeats() -> None:
    for counts in ([], [0], [3], [0, 0, 2, 0, 1, 0], [1, 2, 3], [0, 0]):
        for dtype in ("int32", "int64"):
            given = np.array(counts, dtype)
            wanted = np.repeat(np.arange(len(counts)), given)
            found = antorcha.repeat_interleave(antorcha.tensor(given)).numpy()
            assert (found.tolist(), found.dtype) == (wanted.tolist(), dtype), counts
