"""``Pool``: ``multiprocessing.Pool`` whose tasks and results carry tensors in shared memory."""

from __future__ import annotations

from multiprocessing import pool
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.errors import explain_missing

multiprocessing_context = lazy("antorcha.multiprocessing.context")

__all__ = ["Pool"]


class Pool(pool.Pool):
    """``multiprocessing.pool.Pool``; its queues are the context's, which carry tensors."""

    def __init__(
        self, processes: int | None = None, initializer: Any = None, initargs: Any = (),
        maxtasksperchild: int | None = None, context: Any = None,
    ) -> None:  # fmt: skip
        if context is None:
            context = multiprocessing_context.get_context()
        super().__init__(processes, initializer, initargs, maxtasksperchild, context)


explain_missing("torch.multiprocessing.pool", globals())
