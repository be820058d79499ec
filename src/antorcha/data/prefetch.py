"""The iterator of a loader with worker processes: batches are made before they are asked for.

Each worker has a connection of its own, so that one that is killed in the middle of a message
harms no other, and that its death is seen at once: the connection is closed. A task is given to one
worker after the other, `prefetch_factor` to each at first, and another one for every batch taken.

Invariants: with ``in_order`` only the worker that has the next batch is read from; nobody but a
worker holds its end of the connection, and nobody but this process the other one (forked children
close what they inherit), so either side learns of the other's end.
"""

from __future__ import annotations

import atexit
import itertools
import os
import select
import signal
import threading
import time
import weakref
from typing import Any, Final

from antorcha import multiprocessing
from antorcha.data.iterator import _BaseDataLoaderIter
from antorcha.data.worker import (
    ExceptionWrapper,
    WorkerJob,
    _IterableDatasetStopIteration,
    _ResumeIteration,
    work,
)
from antorcha.errors import GraphError, warn
from antorcha.multiprocessing.parcels import Connection, Pipe

PATIENCE: Final = 5.0  # seconds that workers have to finish what they are at
LOOK_AFTER: Final = 1.0  # seconds without a message until workers are looked after


class _Starting(threading.local):
    """The end that belongs to the worker which this thread is starting."""

    end: Connection | None = None


_starting = _Starting()
_ends: weakref.WeakSet[Connection] = weakref.WeakSet()
_iterators: weakref.WeakSet[_MultiProcessingDataLoaderIter] = weakref.WeakSet()


def _close_inherited() -> None:
    for end in list(_ends):
        if end is not _starting.end:
            end.close()
    _iterators.clear()


def _shut_all_down() -> None:
    for iterator in list(_iterators):
        iterator._shutdown_workers()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_close_inherited)
atexit.register(_shut_all_down)


class _Worker:
    """A worker process, its connection, and how many tasks it has."""

    def __init__(self, context: Any, job: WorkerJob) -> None:
        self.number = job.worker_id
        self.active = True
        self.tasks = 0
        self.connection, theirs = Pipe()
        self.connection.keep = False
        _ends.update((self.connection, theirs))
        self.process = context.Process(target=work, args=(job, theirs))
        self.process.daemon = True
        _starting.end = theirs
        try:
            self.process.start()
        except BaseException:
            self.connection.close()
            raise
        finally:
            _starting.end = None
            theirs.close()

    def how_it_ended(self) -> str | None:
        """What is to be said of a worker that has ended; None if it lives."""
        self.process.join(0)
        code, pid = self.process.exitcode, self.process.pid
        if code is None:
            return None
        if code < 0:
            return f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(-code)}. "
        return (
            f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {code}. Details are "
            "lost due to multiprocessing. Rerunning with num_workers=0 may give better error trace."
        )


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Has worker processes make batches ahead."""

    _workers: list[_Worker]

    def __init__(self, loader: Any) -> None:
        self._workers = []
        self._shutdown = False
        self._failure: str | None = None
        self._pid = os.getpid()
        super().__init__(loader)
        self._num_workers = loader.num_workers
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        context = loader.multiprocessing_context or multiprocessing.get_context()
        _iterators.add(self)
        self._poll = select.poll()
        try:
            for i in range(self._num_workers):
                self._start(context, self._job(loader, i))
        except BaseException as error:
            self._shutdown_workers(0)
            if "pickle" in str(error).lower():
                warn(
                    "Got pickle error when attempting to start a worker Process. This might be "
                    "because the worker Process arguments are not picklable, as the start methods "
                    "'spawn' and 'forkserver' require; 'fork' does not."
                )
            raise
        self._reset(loader, first_iter=True)

    def _job(self, loader: Any, number: int) -> WorkerJob:
        return WorkerJob(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn,
            self._drop_last, self._base_seed, loader.worker_init_fn, number, self._num_workers,
        )  # fmt: skip

    def _start(self, context: Any, job: WorkerJob) -> None:
        worker = _Worker(context, job)
        self._workers.append(worker)
        self._poll.register(worker.connection.fileno(), 0)  # 0: the other end's being closed

    # ---- an epoch
    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._sent = 0  # tasks given out
        self._next = 0  # the task whose batch is to be given next
        self._assigned: dict[int, _Worker] = {}
        self._arrived: dict[int, Any] = {}
        self._cycle = itertools.cycle(self._workers)
        if not first_iter:
            for worker in self._workers:
                self._tell(worker, _ResumeIteration())
            for worker in self._workers:
                while not isinstance(self._receive([worker])[0], _ResumeIteration):
                    pass  # a batch of the epoch before
        for worker in self._workers:
            worker.active, worker.tasks = True, 0
        for _ in range(self._prefetch_factor * self._num_workers):
            self._assign()

    def _assign(self) -> None:
        """Gives the next task to the next worker; none where there is no task or no worker."""
        try:
            indices = self._next_index()
        except StopIteration:
            return
        active = sum(worker.active for worker in self._workers)
        for worker in itertools.islice(self._cycle, self._num_workers):
            if worker.active and (
                self._in_order or worker.tasks < self._prefetch_factor * self._num_workers // active
            ):
                break
        else:
            return
        self._tell(worker, (self._sent, indices))
        self._assigned[self._sent] = worker
        worker.tasks += 1
        self._sent += 1

    def _next_data(self) -> Any:
        if self._failure is not None:
            raise GraphError(self._failure)
        while self._find_next():
            if self._next in self._arrived:
                number, data = self._next, self._arrived.pop(self._next)
            else:
                wanted = [self._assigned[self._next]]
                if not self._in_order:
                    wanted = [worker for worker in self._workers if worker.active]
                number, data = self._receive(wanted)
                if isinstance(data, _IterableDatasetStopIteration):
                    self._end_stream(self._workers[data.worker_id])
                    continue
                if number != self._next and self._in_order:
                    self._arrived[number] = data
                    continue
            self._assigned.pop(number).tasks -= 1
            self._assign()
            if isinstance(data, ExceptionWrapper):
                data.reraise()
            return data
        if not self._persistent_workers:
            self._shutdown_workers()
        raise StopIteration

    def _find_next(self) -> bool:
        """Is there a batch to come? It is number `_next` then; what was taken, and what a worker
        whose stream has ended will never give, is passed over."""
        while self._next < self._sent:
            worker = self._assigned.get(self._next)
            if worker is not None and (worker.active or self._next in self._arrived):
                return True
            self._assigned.pop(self._next, None)
            self._next += 1
        return False

    def _end_stream(self, worker: _Worker) -> None:
        worker.active = False
        if not self._persistent_workers:
            self._poll.unregister(worker.connection.fileno())
            worker.connection.close()
        self._assign()

    # ---- messages
    def _tell(self, worker: _Worker, message: Any) -> None:
        try:
            worker.connection.send(message)
        except ConnectionError:
            self._fail(f"{_exited([worker])}", worker)

    def _receive(self, wanted: list[_Worker]) -> Any:
        """The next message of one of these workers. RuntimeError if any worker has ended."""
        ends = {worker.connection.fileno(): worker for worker in wanted}
        for end in ends:
            self._poll.modify(end, select.POLLIN)
        try:
            ready = self._wait()
        finally:
            for end in ends:
                self._poll.modify(end, 0)
        for end, event in ready:
            if end in ends and event & select.POLLIN:
                return self._read(ends[end])
        return self._lost()

    def _wait(self) -> list[tuple[int, int]]:
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            patience = LOOK_AFTER
            if deadline is not None:
                patience = min(patience, max(deadline - time.monotonic(), 0))
            ready = self._poll.poll(patience * 1000)
            if ready:
                return ready
            if any(not w.process.is_alive() for w in self._workers if self._is_needed(w)):
                return []
            if deadline is not None and time.monotonic() >= deadline:
                self._fail(f"DataLoader timed out after {self._timeout} seconds")

    def _is_needed(self, worker: _Worker) -> bool:
        return worker.active or self._persistent_workers

    def _read(self, worker: _Worker) -> Any:
        try:
            return worker.connection.recv()
        except (EOFError, ConnectionError):
            return self._lost()
        except BaseException:  # the rest of a message may be unread
            self._failure = "DataLoader: the batch before this one was not received to its end"
            self._shutdown_workers(0)
            raise

    def _lost(self) -> Any:
        """A worker has closed its connection: it has ended, or is about to."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            lost = [w for w in self._workers if self._is_needed(w) and not w.process.is_alive()]
            if lost:
                self._fail(_exited(lost), lost[0])
            time.sleep(0.001)
        self._fail("DataLoader: a worker has closed its connection")

    def _fail(self, said: str, worker: _Worker | None = None) -> Any:
        """Ends all workers and raises RuntimeError."""
        cause = None
        if worker is not None:
            worker.process.join(PATIENCE)
            cause = RuntimeError(worker.how_it_ended())
        self._failure = said
        self._shutdown_workers(0)
        raise GraphError(said) from cause

    # ---- the end
    def _shutdown_workers(self, patience: float = PATIENCE) -> None:
        """Closes the connections, which tells workers to end, and ends those that do not."""
        if self._shutdown or os.getpid() != self._pid:
            return
        self._shutdown = True
        for worker in self._workers:
            worker.connection.close()
        deadline = time.monotonic() + patience
        for worker in self._workers:
            worker.process.join(max(deadline - time.monotonic(), 0))
        for end in ("terminate", "kill") if patience else ("kill",):
            late = [worker.process for worker in self._workers if worker.process.is_alive()]
            for process in late:
                getattr(process, end)()
            deadline = time.monotonic() + 1
            for process in late:
                process.join(max(deadline - time.monotonic(), 0))
        _iterators.discard(self)

    def __del__(self) -> None:
        self._shutdown_workers()


def _exited(workers: list[_Worker]) -> str:
    pids = ", ".join(str(worker.process.pid) for worker in workers)
    return f"DataLoader worker (pid(s) {pids}) exited unexpectedly"
