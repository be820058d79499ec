"""Samplers: the order in which a loader asks a data set for its samples.

Each draws what PyTorch's sampler draws, in the same order and at the same moment (when the first
index is asked for), so the same seed gives the same epoch, and the same numbers after it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from antorcha.core import dtypes
from antorcha.errors import ArgumentError, ValueRangeError
from antorcha.ops.kinds.record import T
from antorcha.random import Generator
from antorcha.runtime.random import Generator as AnyGenerator
from antorcha.tensor.create import as_tensor

__all__ = [
    "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
    "WeightedRandomSampler",
]  # fmt: skip

IndexCo = TypeVar("IndexCo", covariant=True)
_CHUNK = 32  # how many indices with replacement PyTorch draws at a time


def draw_seed(generator: AnyGenerator | None = None) -> int:
    """A seed from a generator (the default one): one 64-bit draw, as PyTorch makes it."""
    return int(T.empty((), dtype=dtypes.int64).random_(generator=generator).item())


class Sampler(Generic[IndexCo]):
    """Base of samplers: subclasses write ``__iter__`` and, for ``len(loader)``, ``__len__``."""

    def __iter__(self) -> Iterator[IndexCo]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ... to the data source's length."""

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """The indices in random order.

    Args:
        data_source: what is sampled; only its length matters.
        replacement: may an index come again before all have come?
        num_samples: how many indices an epoch has; the data source's length by default.
        generator: draws the order; by default, one that the default generator seeds each epoch.
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: AnyGenerator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        given: Any = replacement
        if not isinstance(given, bool):
            raise ArgumentError(
                f"replacement should be a boolean value, but got replacement={given}"
            )
        count: Any = self.num_samples
        if not isinstance(count, int) or count <= 0:
            raise ValueRangeError(
                f"num_samples should be a positive integer value, but got num_samples={count}"
            )

    @property
    def num_samples(self) -> int:
        """How many indices an epoch has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = Generator().manual_seed(draw_seed())
        rounds, rest = divmod(self.num_samples, _CHUNK if self.replacement else size)
        if self.replacement:
            for _ in range(rounds):
                yield from T.randint(0, size, (_CHUNK,), generator=generator).tolist()
            yield from T.randint(0, size, (rest,), generator=generator).tolist()
        else:
            for _ in range(rounds):
                yield from T.randperm(size, generator=generator).tolist()
            # Drawn even if no index of it is used: PyTorch draws it.
            yield from T.randperm(size, generator=generator).tolist()[:rest]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some given indices, each once, in random order."""

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: AnyGenerator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in T.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given probabilities.

    Args:
        weights: index ``i`` is drawn with a probability proportional to ``weights[i]``.
        num_samples: how many indices to draw.
        replacement: may an index be drawn again?
        generator: draws them.
    """

    weights: Any
    num_samples: int
    replacement: bool

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: AnyGenerator | None = None,
    ) -> None:
        _check_count("num_samples", num_samples)
        _check_flag("replacement", replacement)
        self.weights = as_tensor(weights, dtype=dtypes.float64)
        if self.weights.dim() != 1:
            raise ValueRangeError(
                "weights should be a 1d sequence but given "
                f"weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = T.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` indices of another sampler.

    Args:
        sampler: gives the indices; any iterable.
        batch_size: how many make a batch.
        drop_last: leave out a last batch that would be smaller?

    >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_count("batch_size", batch_size)
        _check_flag("drop_last", drop_last)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        least = self.batch_size if self.drop_last else 1
        while len(batch := list(itertools.islice(indices, self.batch_size))) >= least:
            yield batch

    def __len__(self) -> int:
        sampler: Any = self.sampler
        short = 0 if self.drop_last else self.batch_size - 1
        count: int = (len(sampler) + short) // self.batch_size
        return count


def _check_count(name: str, given: Any) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given <= 0:
        raise ValueRangeError(f"{name} should be a positive integer value, but got {name}={given}")


def _check_flag(name: str, given: Any) -> None:
    if not isinstance(given, bool):
        raise ValueRangeError(f"{name} should be a boolean value, but got {name}={given}")
