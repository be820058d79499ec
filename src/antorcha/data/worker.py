"""What a worker process of a loader does: it fetches the batches that it is asked for.

A task is the number of a batch and its indices; the answer is that number and the batch, or what
happened in its place: an exception with its traceback, or the end of a stream. A worker ends when
its connection is closed, be it that the loader's iterator ended or its whole process.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from antorcha._utils import ExceptionWrapper
from antorcha.data.fetch import _DatasetKind
from antorcha.random import manual_seed
from antorcha.runtime.pool import set_num_threads

__all__ = ["ExceptionWrapper", "WorkerInfo", "get_worker_info"]


@dataclass(frozen=True)
class WorkerInfo:
    """What `get_worker_info` says of a worker.

    Attributes:
        id: which worker this is, from 0.
        num_workers: how many there are.
        seed: what its generators were seeded with.
        dataset: its copy of the data set.
        rng: None: a process has generators of its own.
        worker_method: ``"multiprocessing"``.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process of a loader, which one it is; None in the main process.

    An iterable data set asks it, to give each worker another part of the stream.
    """
    return _worker_info


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """The answer of a worker whose stream has ended."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Tells a worker, and is its answer, that another epoch begins."""

    seed: int | None = None


@dataclass
class WorkerJob:
    """What a worker is told when it starts."""

    dataset_kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Callable[..., Any]
    drop_last: bool
    base_seed: int
    init_fn: Callable[[int], Any] | None
    worker_id: int
    num_workers: int

    def fetcher(self) -> Any:
        """A new fetcher: at the beginning of a stream."""
        return _DatasetKind.create_fetcher(
            self.dataset_kind, self.dataset, self.auto_collation, self.collate_fn, self.drop_last
        )


def seed_all(base_seed: int, worker_id: int) -> int:
    """Seeds the worker's generators as PyTorch does; gives the seed."""
    seed = base_seed + worker_id
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(_generate_state(base_seed, worker_id))
    return seed


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """What NumPy's generator is seeded with: four numbers of 32 bits. (Libraries call it, too.)"""
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(n) for n in np.random.SeedSequence(entropy).generate_state(4)]


def work(job: WorkerJob, connection: Any) -> None:
    """A worker's life."""
    # The iterator closed the connection, or is no more; and at control-C it raises, not we.
    with contextlib.suppress(EOFError, ConnectionError, KeyboardInterrupt):
        _work(job, connection)


def _work(job: WorkerJob, connection: Any) -> None:
    global _worker_info
    set_num_threads(1)
    seed = seed_all(job.base_seed, job.worker_id)
    _worker_info = WorkerInfo(job.worker_id, job.num_workers, seed, job.dataset)
    where = f"in DataLoader worker process {job.worker_id}"
    failure = fetcher = None
    try:
        if job.init_fn is not None:
            job.init_fn(job.worker_id)
        fetcher = job.fetcher()
    except Exception:
        failure = ExceptionWrapper(where=where)
    ended = False
    while True:
        task = connection.recv()
        if isinstance(task, _ResumeIteration):
            connection.send((task, None))
            fetcher, ended = job.fetcher(), False
            continue
        if ended:
            continue
        number, indices = task
        if failure is not None:
            answer, failure = failure, None
        else:
            answer = _answer(job, fetcher, indices, where)
            ended = isinstance(answer, _IterableDatasetStopIteration)
        _send(connection, number, answer, where)
        del answer, task, indices  # or the batch would be kept until the next one is there


def _answer(job: WorkerJob, fetcher: Any, indices: Any, where: str) -> Any:
    try:
        return fetcher.fetch(indices)
    except Exception as error:
        if isinstance(error, StopIteration) and job.dataset_kind == _DatasetKind.Iterable:
            return _IterableDatasetStopIteration(job.worker_id)
        return ExceptionWrapper(where=where)


def _send(connection: Any, number: int, answer: Any, where: str) -> None:
    try:
        connection.send((number, answer))
    except ConnectionError:
        raise
    except Exception:  # nothing was sent: the batch could not be pickled
        connection.send((number, ExceptionWrapper(where=where)))
