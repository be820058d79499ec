"""``torch.multiprocessing``: Python's ``multiprocessing``, whose queues carry tensors.

A tensor that goes through a queue, a pipe, a pool or a process's arguments is moved to shared
memory, and whoever receives it sees the same memory: ``tensor.share_memory_()`` and
``module.share_memory()`` do that beforehand. Read `parcels` for how it travels, and
``antorcha.runtime.memory.shared`` for the memory itself.

See https://docs.pytorch.org/docs/stable/multiprocessing.html.

>>> import antorcha.multiprocessing as mp
>>> queue = mp.SimpleQueue()
>>> mine = torch.zeros(2)
>>> queue.put(mine)
>>> queue.get().fill_(7)
tensor([7., 7.])
>>> mine
tensor([7., 7.])
"""

from __future__ import annotations

import multiprocessing
import threading
from multiprocessing import *  # noqa: F403  (every public name)
from typing import Any

from antorcha.errors import explain_missing
from antorcha.multiprocessing.context import get_context
from antorcha.multiprocessing.parcels import Pipe
from antorcha.multiprocessing.reductions import init_reductions
from antorcha.multiprocessing.spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    end_with_parent,
    spawn,
    start_processes,
)

__all__ = [
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy",
    *multiprocessing.__all__,
]  # fmt: skip

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def Queue(maxsize: int = 0) -> Any:  # type: ignore[no-redef]
    """A queue between processes, which carries tensors in shared memory."""
    return get_context().Queue(maxsize)


def JoinableQueue(maxsize: int = 0) -> Any:  # type: ignore[no-redef]
    """A queue that can be joined, which carries tensors in shared memory."""
    return get_context().JoinableQueue(maxsize)


def SimpleQueue() -> Any:  # type: ignore[no-redef]
    """A queue without a limit, which carries tensors in shared memory."""
    return get_context().SimpleQueue()


def Pool(  # type: ignore[no-redef]
    processes: int | None = None, initializer: Any = None, initargs: Any = (),
    maxtasksperchild: int | None = None,
) -> Any:  # fmt: skip
    """Worker processes that calls are handed to; tensors go over in shared memory."""
    return get_context().Pool(processes, initializer, initargs, maxtasksperchild)


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return _STRATEGIES


def get_sharing_strategy() -> str:
    """The name that was set last; ``"file_descriptor"`` to begin with."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Takes PyTorch's names of strategies; AssertionError for others.

    Both mean the same here: memory without a name, which small tensors have a common piece of, so
    that there is neither a name to be left behind nor a descriptor for each tensor.
    """
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}"
        )
    _strategy = new_strategy


def _prctl_pr_set_pdeathsig(signal: int) -> None:
    end_with_parent(signal)


def _set_thread_name(name: str) -> None:
    threading.current_thread().name = name


def _get_thread_name() -> str:
    return threading.current_thread().name


init_reductions()
explain_missing("torch.multiprocessing", globals())
