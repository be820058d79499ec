"""``DataLoader``: batches of a data set, an epoch each time it is iterated.

Batches are made in this process, when they are asked for (`iterator`), or ahead by worker processes
(`prefetch`; what those do: `worker`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from antorcha.config import available_cpus
from antorcha.core.lazy import lazy
from antorcha.data import collate
from antorcha.data.collate import default_collate, default_convert
from antorcha.data.dataset import IterableDataset
from antorcha.data.fetch import _DatasetKind
from antorcha.data.iterator import _BaseDataLoaderIter, _SingleProcessDataLoaderIter
from antorcha.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from antorcha.data.worker import get_worker_info
from antorcha.errors import ArgumentError, ValueRangeError, no_such_name, warn
from antorcha.runtime.random import Generator

contexts = lazy("multiprocessing.context")
multiprocessing = lazy("antorcha.multiprocessing")
prefetch = lazy("antorcha.data.prefetch")

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

SampleCo = TypeVar("SampleCo", covariant=True)


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
        num_workers: how many processes make batches; 0 makes them in this one.
        collate_fn: makes a batch of a list of samples; ``default_collate`` by default.
        pin_memory: are batches to lie in pinned memory, for copies to a GPU? Without one it warns
            and changes nothing.
        drop_last: leave out a last batch that would be smaller?
        timeout: seconds to wait for a batch of a worker, then RuntimeError; 0 waits for ever.
        worker_init_fn: called with the worker's number in each worker, after seeding.
        multiprocessing_context: how workers start: ``"fork"``, ``"spawn"``, ``"forkserver"`` or a
            context of ``torch.multiprocessing``; by default as ``multiprocessing`` does.
        generator: draws the order and the epoch's seed; by default the default generator does.
        prefetch_factor: how many batches each worker makes ahead; 2 by default.
        persistent_workers: keep the workers, and their copies of the data set, between epochs?
        pin_memory_device: deprecated; it warns.
        in_order: give batches in the order of the sampler? Otherwise as workers finish them.

    Tensors come from workers in shared memory. Worker ``i`` seeds ``torch`` and ``random`` with the
    epoch's seed plus ``i``, and NumPy with numbers made of both. What a worker raises is raised
    here, with its traceback in the text; a worker that dies, or takes longer than ``timeout``, is a
    RuntimeError, and all workers are ended then, as they are when the iterator goes.

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
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
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
        self._iterator: Any = None
        self._fixed = True
        self.check_worker_number_rationality()

    def _default_sampler(self, shuffle: bool | None, generator: Generator | None) -> Iterable[Any]:
        if self._dataset_kind == _DatasetKind.Iterable:
            return _InfiniteConstantSampler()
        if shuffle:
            return RandomSampler(self.dataset, generator=generator)
        return SequentialSampler(self.dataset)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not (self.persistent_workers and self.num_workers):
            return self._get_iterator()
        if self._iterator is None or self._iterator._shutdown:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        found: _BaseDataLoaderIter = self._iterator
        return found

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        found: _BaseDataLoaderIter = prefetch._MultiProcessingDataLoaderIter(self)
        return found

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
        """How workers are started; None leaves it to ``multiprocessing``."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            context = _checked_context(context, self.num_workers)
        self._context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def check_worker_number_rationality(self) -> None:
        """Warns of more workers than there are cores."""
        cores = available_cpus()
        if self.num_workers > cores:
            warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our "
                f"suggested max number of worker in current system is {cores}, which is smaller "
                "than what this DataLoader is going to create. Please be aware that excessive "
                "worker creation might get DataLoader running slow or even freeze, lower the "
                "worker number to avoid potential slowness/freeze if necessary."
            )


def _checked_context(context: Any, num_workers: int) -> Any:
    if num_workers == 0:
        raise ValueRangeError(
            "multiprocessing_context can only be used with multi-process loading "
            f"(num_workers > 0), but got num_workers={num_workers}"
        )
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueRangeError(
                f"multiprocessing_context option should specify a valid start method in {methods}, "
                f"but got multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, contexts.BaseContext):
        raise ArgumentError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={context}"
        )
    return context


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


def __getattr__(name: str) -> Any:
    if name == "_MultiProcessingDataLoaderIter":  # libraries ask for it; what it needs loads late
        return prefetch._MultiProcessingDataLoaderIter
    raise no_such_name("torch.utils.data.dataloader", name, globals())
