"""What the iterators of a loader share, and the one that makes batches in this process.

Invariant: the random numbers drawn are PyTorch's, at the same moments. Starting an epoch draws one
seed (what workers are seeded with) from ``generator``, or from the default one; the sampler draws
when the first batch is asked for. Workers that persist are seeded once.
"""

from __future__ import annotations

from typing import Any

from antorcha import cuda
from antorcha.data.collate import pinned
from antorcha.data.dataset import DataError
from antorcha.data.fetch import _DatasetKind
from antorcha.data.sampler import draw_seed
from antorcha.errors import warn
from antorcha.profiler.autograd_profiler import record_function


class _BaseDataLoaderIter:
    """An epoch: its settings are the loader's at the time it began."""

    def __init__(self, loader: Any) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._pin_memory = loader.pin_memory and cuda.is_available()
        self._warn_of_pinning(loader)
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = draw_seed(loader.generator)
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"

    @staticmethod
    def _warn_of_pinning(loader: Any) -> None:
        if not loader.pin_memory:
            return
        if loader.pin_memory_device:
            warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the "
                f"device,ignore pin_memory_device='{loader.pin_memory_device}'.",
            )
        if cuda.is_available():
            return
        warn(
            "'pin_memory' argument is set as true but no accelerator is found, "
            "then device pinned memory won't be used.",
        )

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """Begins another epoch, with the workers of the one before."""
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def __next__(self) -> Any:
        with record_function(self._profile_name):
            data = self._next_data()
        self._num_yielded += 1
        said = self._IterableDataset_len_called
        if said is not None and self._num_yielded > said:
            warn(
                f"Length of IterableDataset {self._dataset} was reported to be {said}"
                f"(when accessing len(dataloader)), but {self._num_yielded} samples have been "
                "fetched. ",
            )
        return pinned(data) if self._pin_memory else data

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Makes each batch in this process, when it is asked for."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise DataError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())
