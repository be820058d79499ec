"""Data sets: what can be asked for a sample, by index or one after the other.

A map-style `Dataset` has ``__getitem__`` (and mostly ``__len__``); an `IterableDataset` has
``__iter__``. A data set may also have ``__getitems__``, which takes the indices of a batch and
gives the list of its samples: the loader then asks once for each batch. `Dataset` has none of its
own, so that having it means that it works.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from typing import Any, Generic, Iterable, TypeVar  # noqa: UP035 (PyTorch's bases, in its order)

from antorcha.errors import AntorchaError, MissingFeature, ValueRangeError, warn
from antorcha.ops.kinds.record import T
from antorcha.random import default_generator
from antorcha.runtime.random import Generator
from antorcha.runtime.tensor import Tensor

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset",
    "TensorDataset", "random_split",
]  # fmt: skip

Sample = TypeVar("Sample")
SampleCo = TypeVar("SampleCo", covariant=True)


class DataError(AntorchaError, AssertionError):
    """Data sets or settings that do not go together. PyTorch asserts here."""


class Dataset(Generic[SampleCo]):
    """A map from indices to samples: subclasses write ``__getitem__``, and mostly ``__len__``.

    Indices are whatever the sampler gives: integers from 0, with the loader's own samplers.
    """

    def __getitem__(self, index: Any) -> SampleCo:
        raise MissingFeature("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> Any:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[SampleCo], Iterable[SampleCo]):
    """A stream of samples: subclasses write ``__iter__``; a loader takes them in that order.

    >>> class Countdown(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter([3, 2, 1])
    >>> list(torch.utils.data.DataLoader(Countdown(), batch_size=2))
    [tensor([3, 2]), tensor([1])]
    """

    def __add__(self, other: Any) -> ChainDataset:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of some tensors: sample ``i`` is the tuple of each tensor's ``[i]``.

    Args:
        *tensors: tensors with the same size of the first dimension.

    >>> torch.utils.data.TensorDataset(torch.eye(2), torch.arange(2))[1]
    (tensor([0., 1.]), tensor(1))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Any) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            counts = ", ".join([str(tensor.size(0)) for tensor in tensors])
            raise DataError("Size mismatch between tensors", reason="dataset", counts=counts)
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        tensors: tuple[Any, ...] = self.tensors
        return tuple(tensor[index] for tensor in tensors)

    def __len__(self) -> int:
        first: Any = self.tensors[0]
        return int(first.size(0))


class StackDataset(Dataset[Any]):
    """Data sets of one length side by side: a sample is a tuple of samples, or a dict of them.

    Args:
        *args: data sets; a sample is a tuple.
        **kwargs: data sets by name; a sample is a dict. Not both.

    >>> pairs = torch.utils.data.StackDataset(number=[1, 2], word=["one", "two"])
    >>> pairs[1]
    {'number': 2, 'word': 'two'}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueRangeError(
                "Supported either ``tuple``- (via ``args``) or"
                "``dict``- (via ``kwargs``) like input/output, but both types are given."
            )
        parts = list(args or kwargs.values())
        if not parts:
            raise ValueRangeError("At least one dataset should be passed")
        self._length = len(parts[0])
        if any(len(part) != self._length for part in parts):
            raise ValueRangeError("Size mismatch between datasets")
        self.datasets = args or kwargs

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """The samples of a batch; data sets that know whole batches are asked for them."""
        if isinstance(self.datasets, dict):
            columns = [self._column(part, indices) for part in self.datasets.values()]
            return [dict(zip(self.datasets, row)) for row in zip(*columns)]
        return list(zip(*(self._column(part, indices) for part in self.datasets)))

    @staticmethod
    def _column(part: Any, indices: list[Any]) -> list[Any]:
        items = _samples(part, indices)
        if len(items) != len(indices):
            raise ValueRangeError(
                f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}"
            )
        return items

    def __len__(self) -> int:
        return self._length


def _samples(dataset: Any, indices: list[Any]) -> list[Any]:
    """The samples at these indices, asked for at once where the data set can."""
    if callable(getattr(dataset, "__getitems__", None)):
        found: list[Any] = dataset.__getitems__(indices)
        return found
    return [dataset[index] for index in indices]


class ConcatDataset(Dataset[SampleCo]):
    """Data sets one after the other.

    >>> torch.utils.data.ConcatDataset(["ab", "cde"])[3]
    'd'
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Where each part ends."""
        return list(itertools.accumulate(len(part) for part in sequence))

    def __init__(self, datasets: Iterable[Any]) -> None:
        super().__init__()
        self.datasets = list(datasets)
        if not self.datasets:
            raise DataError("datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise DataError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> SampleCo:
        if idx < 0:
            if -idx > len(self):
                raise ValueRangeError("absolute value of index should not exceed dataset length")
            idx += len(self)
        part = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[part - 1] if part else 0
        sample: SampleCo = self.datasets[part][idx - start]
        return sample

    @property
    def cummulative_sizes(self) -> list[int]:
        """An old misspelling of ``cumulative_sizes``."""
        warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`",
            FutureWarning,
        )
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Streams one after the other; each is opened when the one before it has ended."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        super().__init__()
        self.datasets = datasets

    def __iter__(self) -> Any:
        for part in self._streams():
            yield from part

    def __len__(self) -> int:
        return sum(len(part) for part in self._streams())

    def _streams(self) -> Any:
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise DataError("ChainDataset only supports IterableDataset")
            yield part


class Subset(Dataset[SampleCo]):
    """The samples of a data set at some indices.

    Sample ``i`` is ``dataset[indices[i]]``. A subclass that writes its own ``__getitem__`` must
    write ``__getitems__`` too: the loader asks for whole batches.
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        kind = type(self)
        own_item = kind.__getitem__ is not Subset.__getitem__
        if own_item and kind.__getitems__ is Subset.__getitems__:
            raise MissingFeature(
                f"{kind.__name__} overrides __getitem__ but not __getitems__. "
                "When subclassing Subset and overriding __getitem__, you must also override "
                "__getitems__ to ensure DataLoader works correctly with your custom logic. "
                "A simple implementation:\n\n"
                "def __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, idx: Any) -> SampleCo:
        chosen = [self.indices[i] for i in idx] if isinstance(idx, list) else self.indices[idx]
        sample: SampleCo = self.dataset[chosen]
        return sample

    def __getitems__(self, indices: list[Any]) -> list[SampleCo]:
        """The samples of a batch, asked for at once where the data set can."""
        return _samples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any,
    lengths: Sequence[int | float],
    generator: Generator | None = default_generator,
) -> list[Subset[Any]]:
    """Splits a data set at random into parts that share no sample.

    Args:
        dataset: the data set to split.
        lengths: the parts' lengths; or fractions that sum to 1: each is rounded down, and what is
            left over goes, one sample each, to the first parts.
        generator: draws the permutation.

    >>> g = torch.Generator().manual_seed(42)
    >>> [len(part) for part in torch.utils.data.random_split(range(10), [0.75, 0.25], g)]
    [8, 2]
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        sizes = _sizes_of_fractions(lengths, len(dataset))
    else:
        sizes = list(lengths)  # type: ignore[arg-type]  # a float fails in randperm
    if sum(sizes) != len(dataset):
        raise ValueRangeError(
            "Sum of input lengths does not equal the length of the input dataset!"
        )
    order = T.randperm(sum(sizes), generator=generator).tolist()
    ends = itertools.accumulate(sizes)
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes)]


def _sizes_of_fractions(fractions: Sequence[float], total: int) -> list[int]:
    for index, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueRangeError(f"Fraction at index {index} is not between 0 and 1")
    sizes = [math.floor(total * fraction) for fraction in fractions]
    for rest in range(total - sum(sizes)):
        sizes[rest % len(sizes)] += 1
    for index, size in enumerate(sizes):
        if size == 0:
            warn(
                f"Length of split at index {index} is 0. This might result in an empty dataset.",
            )
    return sizes
