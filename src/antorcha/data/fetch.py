"""Fetchers: from the indices that a sampler gives to one collated batch.

A loader's iterator has one, which lives as long as it. `create_fetcher` chooses it.

`_RowsFetcher` is a shortcut: where a batch would be rows of tensors stacked by ``default_collate``,
it selects all rows at once. Invariant: its batches have the values, dtypes and strides that the
other way would have, and indices it cannot be sure of go that other way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from antorcha.data import collate
from antorcha.data.dataset import Subset, TensorDataset
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.interop import from_numpy

_SHIPPED = dict(collate.default_collate_fn_map)  # a user who adds to the map means it to be used


class _BaseDatasetFetcher:
    """What fetchers share: the loader's settings."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable[..., Any], drop_last: bool
    ) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The batch at these indices; StopIteration where a stream has ended."""
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Asks a map-style data set, for the whole batch at once if it can answer that."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        if getattr(self.dataset, "__getitems__", None):
            return self.collate_fn(self.dataset.__getitems__(possibly_batched_index))
        return self.collate_fn([self.dataset[index] for index in possibly_batched_index])


class _RowsFetcher(_MapDatasetFetcher):
    """Selects the rows of a TensorDataset's tensors, or of a Subset of one."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        dataset, indices = self.dataset, possibly_batched_index
        while type(dataset) is Subset:
            indices = [dataset.indices[i] for i in indices]
            dataset = dataset.dataset
        plain = set(map(type, indices)) == {int}
        if not plain or min(indices) < 0 or max(indices) >= len(dataset):
            return super().fetch(possibly_batched_index)
        rows = from_numpy(np.array(indices, np.int64))
        return [T.index_select(tensor, 0, rows) for tensor in dataset.tensors]


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Takes samples from a stream; the indices only say how many."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable[..., Any], drop_last: bool
    ) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        data = []
        for _ in possibly_batched_index:
            try:
                data.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not data or (self.drop_last and len(data) < len(possibly_batched_index)):
            raise StopIteration
        return self.collate_fn(data)


class _DatasetKind:
    """The two kinds of data set, under PyTorch's numbers."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> _BaseDatasetFetcher:
        """The fetcher for a data set."""
        result: type[_BaseDatasetFetcher] = _IterableDatasetFetcher
        if kind == _DatasetKind.Map:
            by_rows = (
                auto_collation and collate_fn is collate.default_collate and _has_rows(dataset)
            )
            result = _RowsFetcher if by_rows else _MapDatasetFetcher
        return result(dataset, auto_collation, collate_fn, drop_last)


def _has_rows(dataset: Any) -> bool:
    """Would the batches be plain tensors stacked, outside of any graph?

    Of up to three dims each: stacks of those are always contiguous, as selected rows are.
    """
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return (
        type(dataset) is TensorDataset
        and all(type(t) is Tensor and not t._rg and t._layout.ndim <= 4 for t in dataset.tensors)
        and collate.default_collate_fn_map == _SHIPPED
    )
