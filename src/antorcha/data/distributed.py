"""``DistributedSampler``: each of several processes takes its own share of an epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from antorcha.data.sampler import Sampler
from antorcha.errors import ShapeError, ValueRangeError
from antorcha.ops.kinds.record import T
from antorcha.random import Generator

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every ``num_replicas``-th index from ``rank`` on, of an order that all processes share.

    Args:
        dataset: what is sampled; only its length matters.
        num_replicas, rank: how many processes there are, and which this is. antorcha has no process
            groups to ask, so both must be given.
        shuffle: is the order random? Then it depends on ``seed`` and on ``set_epoch`` alone.
        seed: the same number in each process.
        drop_last: leave the tail out that does not divide evenly? Otherwise the first indices come
            again to fill it up.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise ShapeError("Requires distributed package to be available")
        if not 0 <= rank < num_replicas:
            raise ValueRangeError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        whole, tail = divmod(len(dataset), num_replicas)
        self.num_samples: int = whole + (tail > 0 and not drop_last)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        indices = self._order()
        missing = self.total_size - len(indices)
        if missing > 0:  # only without drop_last
            indices += (indices * math.ceil(missing / len(indices)))[:missing]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def _order(self) -> list[int]:
        if not self.shuffle:
            return list(range(len(self.dataset)))
        generator = Generator().manual_seed(self.seed + self.epoch)
        order: list[int] = T.randperm(len(self.dataset), generator=generator).tolist()
        return order

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch begins, before iterating: otherwise each has the same order."""
        self.epoch = epoch
