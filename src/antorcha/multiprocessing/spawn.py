"""``spawn`` and ``start_processes``: one function in several processes, and what failed there."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import Any

from antorcha.errors import explain_missing, warn
from antorcha.multiprocessing.context import get_context

__all__ = [
    "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "spawn", "start_processes",
]  # fmt: skip

PATIENCE = 30.0  # seconds that a process has to end once it was told to


class ProcessException(Exception):
    """A process failed: which one (`error_index`), and its pid."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised in a process; the message has that traceback."""


class ProcessExitedException(ProcessException):
    """A process ended by a signal, or with an exit code other than 0."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int,
        signal_name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        said = (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)
        return type(self), said


def _run(fn: Callable[..., Any], i: int, args: Sequence[Any], error_file: str) -> None:
    """What a process does."""
    end_with_parent(signal.SIGINT)
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent ended it
    except Exception:
        # Others may write to the folder too: a text is not run, and a file of theirs is not taken.
        with open(error_file, "x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(traceback.format_exc())
        sys.exit(1)


def end_with_parent(number: int) -> None:
    """Asks Linux to send this process a signal when the thread that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG


class ProcessContext:
    """Processes that `start_processes` started."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.error_files = error_files
        self.processes = processes
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Their pids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits for processes to end. Gives True once all have ended, each without an error.

        Args:
            timeout: seconds to wait for the next one that ends.
            grace_period: after a failure, seconds that the others have to end by themselves before
                they are terminated, and again before they are killed.

        Raises ProcessRaisedException with the traceback of a function that raised, and
        ProcessExitedException for a process that ended otherwise, after ending all others.
        """
        if not self.sentinels:
            return True
        for sentinel in connection.wait(list(self.sentinels), timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                self._end_all(grace_period)
                raise self._failure(index)
        return not self.sentinels

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._wait(grace_period)
        for end in ("terminate", "kill"):
            for process in self.processes:
                if process.is_alive():
                    getattr(process, end)()
            self._wait(PATIENCE if grace_period is None else grace_period)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0, deadline - time.monotonic()))

    def _take_words(self) -> list[str]:
        """What each process said of its failure ("": nothing); the files are removed."""
        said = []
        for path in self.error_files:
            try:
                with open(path, encoding="utf-8") as file:
                    said.append(file.read())
                os.unlink(path)
            except OSError:
                said.append("")
        return said

    def _failure(self, index: int) -> ProcessException:
        process = self.processes[index]
        code, pid = process.exitcode, process.pid
        said = self._take_words()[index]
        if said:
            return ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{said}", index, pid
            )
        if code >= 0:
            return ProcessExitedException(
                f"process {index} terminated with exit code {code}", index, pid, code
            )
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        return ProcessExitedException(
            f"process {index} terminated with signal {name}", index, pid, code, name
        )


class SpawnContext(ProcessContext):
    """An old name of ProcessContext."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        warn("SpawnContext is renamed to ProcessContext since 1.4 release.")
        super().__init__(processes, error_files)


def start_processes(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Calls ``fn(i, *args)`` in ``nprocs`` processes, ``i`` from 0.

    Args:
        fn: a function of a module, which the other processes can import.
        args: further arguments; tensors go over in shared memory.
        nprocs: how many processes.
        join: wait for them? Otherwise the ProcessContext is the result.
        daemon: end the processes when this one ends?
        start_method: ``"spawn"``, ``"fork"`` or ``"forkserver"``.

    Raises ProcessRaisedException or ProcessExitedException (`ProcessContext.join`).
    """
    ctx = get_context(start_method)
    folder = tempfile.gettempdir()
    error_files: list[str] = []
    processes: list[Any] = []
    for i in range(nprocs):
        error_file = tempfile.mktemp("-error.txt", "antorcha-process-", folder)
        process = ctx.Process(target=_run, args=(fn, i, args, error_file), daemon=daemon)
        process.start()
        processes.append(process)
        error_files.append(error_file)
    context = ProcessContext(processes, error_files)
    if not join:
        return context
    while not context.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """``start_processes`` with the method ``"spawn"``: calls ``fn(i, *args)`` in new processes.

    See https://docs.pytorch.org/docs/stable/multiprocessing.html#spawning-subprocesses.
    """
    if start_method != "spawn":
        warn(
            f"This method only supports start_method=spawn (got: {start_method}).\n"
            "To use a different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")


explain_missing("torch.multiprocessing.spawn", globals())
