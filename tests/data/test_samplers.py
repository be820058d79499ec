"""Samplers: PyTorch's orders for a seed, and its refusals."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import pytest

from tests.data.side_by_side import same

pytestmark = pytest.mark.oracle

SAMPLERS = {
    "sequential": lambda d, g: d.SequentialSampler(range(7)),
    "random": lambda d, g: d.RandomSampler(range(70)),
    "random, own generator": lambda d, g: d.RandomSampler(range(70), generator=g),
    "random, fewer": lambda d, g: d.RandomSampler(range(10), num_samples=4),
    "random, more": lambda d, g: d.RandomSampler(range(10), num_samples=25, generator=g),
    "replacement": lambda d, g: d.RandomSampler(range(10), replacement=True),
    "replacement, chunks": lambda d, g: d.RandomSampler(range(9), True, 64, generator=g),
    "replacement, rest": lambda d, g: d.RandomSampler(range(9), True, 71),
    "subset": lambda d, g: d.SubsetRandomSampler([5, 3, 8, 1]),
    "subset, own generator": lambda d, g: d.SubsetRandomSampler("abcdef", generator=g),
    "weighted": lambda d, g: d.WeightedRandomSampler([0.1, 0.9, 0.4, 0.7, 3.0], 9),
    "weighted, once each": lambda d, g: d.WeightedRandomSampler([1, 2, 3, 4], 3, False, g),
    "batches": lambda d, g: d.BatchSampler(range(7), 3, False),
    "batches, exact": lambda d, g: d.BatchSampler(range(6), 3, False),
    "batches, drop last": lambda d, g: d.BatchSampler(d.RandomSampler(range(7)), 3, True),
    "distributed": lambda d, g: d.DistributedSampler(range(10), 3, 1),
    "distributed, in order": lambda d, g: d.DistributedSampler(range(10), 4, 3, shuffle=False),
    "distributed, drop last": lambda d, g: d.DistributedSampler(range(10), 4, 0, drop_last=True),
    "distributed, fewer than ranks": lambda d, g: d.DistributedSampler(range(2), 5, 4),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_same_order(name: str) -> None:
    def program(torch: Any) -> Any:
        sampler = SAMPLERS[name](torch.utils.data, torch.Generator().manual_seed(7))
        return len(sampler), list(sampler), list(sampler)

    same(program)


def test_epochs_of_a_distributed_sampler() -> None:
    def program(torch: Any) -> Any:
        sampler = torch.utils.data.DistributedSampler(range(20), 2, 0, seed=5)
        sampler.set_epoch(3)
        return list(sampler)

    same(program)


def test_draws_only_when_an_index_is_asked_for() -> None:
    def program(torch: Any) -> Any:
        d = torch.utils.data
        iter(d.RandomSampler(range(5)))
        iter(d.WeightedRandomSampler([1, 2], 4))
        next(iter(d.RandomSampler(range(5), True, 40)))
        return torch.rand(1)

    same(program)


class _Many:
    """A data set of more samples than any list has room for."""

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: int) -> int:
        return index


LONG = {
    "sequential": lambda d: d.SequentialSampler(_Many()),
    "replacement": lambda d: d.RandomSampler(range(100), True, 10**10),
    "replacement of many": lambda d: d.RandomSampler(_Many(), True),
    "more than there are": lambda d: d.RandomSampler(range(100), False, 10**10),
    "batches": lambda d: d.BatchSampler(range(1 << 40), 5, False),
    "batches of a sampler": lambda d: d.BatchSampler(d.SequentialSampler(_Many()), 5, True),
    "a great batch": lambda d: d.BatchSampler(range(3), 1 << 40, False),
    "loader": lambda d: d.DataLoader(_Many(), 3),
    "loader, shuffled": lambda d: d.DataLoader(range(100), 2, sampler=LONG["replacement"](d)),
    "loader of a part": lambda d: d.DataLoader(d.Subset(_Many(), range(1 << 39)), 3),
    "loader of two": lambda d: d.DataLoader(d.ConcatDataset([_Many(), _Many()]), 3),
    "loader of pairs": lambda d: d.DataLoader(d.StackDataset(_Many(), _Many()), 3),
}


@pytest.mark.parametrize("name", LONG)
def test_an_epoch_may_be_longer_than_memory(name: str) -> None:
    def program(torch: Any) -> Any:
        sampler = LONG[name](torch.utils.data)
        return len(sampler), list(itertools.islice(iter(sampler), 70))

    tracemalloc.start()
    try:
        same(program)
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


REFUSED = {
    "replacement": lambda d: d.RandomSampler(range(3), replacement=1),
    "none to draw": lambda d: d.RandomSampler([]),
    "no integer": lambda d: d.RandomSampler(range(3), num_samples=1.5),
    "weights": lambda d: d.WeightedRandomSampler([[1.0, 2.0]], 2),
    "weighted count": lambda d: d.WeightedRandomSampler([1.0], True),
    "weighted flag": lambda d: d.WeightedRandomSampler([1.0], 1, None),
    "batch size": lambda d: d.BatchSampler(range(3), 0, False),
    "batch size flag": lambda d: d.BatchSampler(range(3), True, False),
    "drop last": lambda d: d.BatchSampler(range(3), 2, None),
    "rank": lambda d: d.DistributedSampler(range(3), 2, 2),
    "abstract": lambda d: iter(d.Sampler()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_same_refusal(name: str) -> None:
    same(lambda torch: REFUSED[name](torch.utils.data))
