"""``DataLoader``: batches of a data set, an epoch each time it is iterated.

Batches are made in this process, when they are asked for: there are no worker processes yet.

Invariant: the random numbers drawn are PyTorch's, at the same moments. Starting an epoch draws one
seed (PyTorch's workers would use it) from ``generator``, or from the default one; the sampler draws
when the first batch is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from antorcha.autograd.profiler import record_function
from antorcha.data import collate
from antorcha.data.collate import default_collate, default_convert
from antorcha.data.dataset import DataError, IterableDataset
from antorcha.data.fetch import _DatasetKind
from antorcha.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    draw_seed,
)
from antorcha.errors import MissingFeature, ValueRangeError, warn
from antorcha.runtime.random import Generator

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

SampleCo = TypeVar("SampleCo", covariant=True)


def get_worker_info() -> None:
    """None: this is the main process, as it always is without worker processes."""
    return None


class _InfiniteConstantSampler(Sampler[None]):
    """None without end: a stream needs no indices."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[SampleCo]):
    """Batches of a data set: ``for batch in loader`` is an epoch.

    Args:
        dataset: a map-style Dataset (anything with ``__getitem__``), or an IterableDataset.
        batch_size: samples in a batch; None gives single samples.
        shuffle: a new random order each epoch?
        sampler: the order, as an iterable of indices; not together with ``shuffle``.
        batch_sampler: an iterable of lists of indices, each a batch; not together with
            ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
        num_workers: 0, as there are no worker processes yet: batches are made in this process.
        collate_fn: makes a batch of a list of samples; ``default_collate`` by default.
        pin_memory: accepted; without an accelerator, it warns and changes nothing.
        drop_last: leave out a last batch that would be smaller?
        timeout: 0, as there are no workers to wait for.
        worker_init_fn: accepted, and never called.
        multiprocessing_context: None, as there are no workers.
        generator: draws the order and the epoch's seed; by default the default generator does.
        prefetch_factor: None, as there are no workers.
        persistent_workers: False, as there are no workers.
        pin_memory_device: deprecated; it warns.
        in_order: accepted; batches always come in order.

    >>> data = torch.utils.data.TensorDataset(torch.arange(5))
    >>> [batch for (batch,) in torch.utils.data.DataLoader(data, batch_size=2)]
    [tensor([0, 1]), tensor([2, 3]), tensor([4])]
    """

    dataset: Any
    batch_size: int | None
    sampler: Any
    batch_sampler: Any
    drop_last: bool
    persistent_workers: bool
    _fixed = False  # from the end of __init__ on, the settings that follow from each other
    _FIXED = frozenset(
        ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    )

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            _check_stream(shuffle, sampler, batch_sampler)
        else:
            self._dataset_kind = _DatasetKind.Map
            _check_order(shuffle, sampler)
        _check_batches(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if sampler is None:
            sampler = self._default_sampler(shuffle, generator)
        if batch_sampler is not None:
            batch_size = None
        elif batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:  # looked up in its module, where a program may have replaced it
            collate_fn = (
                collate.default_collate if self._auto_collation else collate.default_convert
            )
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called: int | None = None
        self._fixed = True

    def _default_sampler(self, shuffle: bool | None, generator: Generator | None) -> Iterable[Any]:
        if self._dataset_kind == _DatasetKind.Iterable:
            return _InfiniteConstantSampler()
        if shuffle:
            return RandomSampler(self.dataset, generator=generator)
        return SequentialSampler(self.dataset)

    def __iter__(self) -> _BaseDataLoaderIter:
        return self._get_iterator()

    def _get_iterator(self) -> _BaseDataLoaderIter:
        return _SingleProcessDataLoaderIter(self)

    def __len__(self) -> int:
        """How many batches an epoch has. A stream is believed what it says of its length."""
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._fixed and name in self._FIXED:
            raise ValueRangeError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """None: there are no workers."""
        return None

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            raise ValueRangeError(
                "multiprocessing_context can only be used with multi-process loading "
                f"(num_workers > 0), but got num_workers={self.num_workers}"
            )

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def check_worker_number_rationality(self) -> None:
        """No workers are too many: nothing to warn of."""


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueRangeError(
            "num_workers option should be non-negative; "
            "use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueRangeError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueRangeError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueRangeError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueRangeError("persistent_workers option needs num_workers > 0")
    if num_workers > 0:
        raise MissingFeature(
            f"DataLoader: num_workers={num_workers} asks for worker processes, which antorcha does "
            "not have yet; use num_workers=0"
        )


def _check_stream(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    refused = {"sampler": sampler, "batch_sampler": batch_sampler}
    if shuffle not in (False, None):
        raise ValueRangeError(
            "DataLoader with IterableDataset: expected unspecified shuffle option, "
            f"but got shuffle={shuffle}"
        )
    for name, given in refused.items():
        if given is not None:
            raise ValueRangeError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, "
                f"but got {name}={given}"
            )


def _check_order(shuffle: Any, sampler: Any) -> None:
    if sampler is not None and shuffle:
        raise ValueRangeError("sampler option is mutually exclusive with shuffle")


def _check_batches(
    batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: Any
) -> None:
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueRangeError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                "drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueRangeError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )


class _BaseDataLoaderIter:
    """An epoch: its settings are the loader's at the time it began."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._warn_of_pinning(loader)
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = draw_seed(loader.generator)
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"

    @staticmethod
    def _warn_of_pinning(loader: DataLoader[Any]) -> None:
        if not loader.pin_memory:
            return
        if loader.pin_memory_device:
            warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the "
                f"device,ignore pin_memory_device='{loader.pin_memory_device}'.",
            )
        warn(
            "'pin_memory' argument is set as true but no accelerator is found, "
            "then device pinned memory won't be used.",
        )

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

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
        return data

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

    def __init__(self, loader: DataLoader[Any]) -> None:
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
