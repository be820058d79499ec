"""Blocks in which somebody sees every plan before it runs, and may do without it.

That is below autograd and below composites: what is seen are the ops that compute, those of a
backward pass too, and their results get their history as always. In-place forms are not seen.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.tensor import Tensor

Results: TypeAlias = tuple[Tensor, ...]
Run: TypeAlias = Callable[[], Results]


class _Intercepting(threading.local):
    stack: tuple[Interceptor, ...] = ()


_state = _Intercepting()


class Interceptor:
    """Base of such blocks: ``see`` runs the plan by ``run()``, or gives other results."""

    def see(self, plan: Plan, operands: Any, run: Run) -> Results:
        raise NotImplementedError

    def __enter__(self) -> Any:
        _state.stack = (*_state.stack, self)
        modes.set_word(modes.state.word | modes.INTERCEPT)
        return self

    def __exit__(self, *_: object) -> None:
        _state.stack = _state.stack[:-1]
        if not _state.stack:
            modes.set_word(modes.state.word & ~modes.INTERCEPT)


def _intercept(plan: Plan, operands: Any, run: Run) -> Results:
    """Asks the innermost block, whose ``run`` asks the next one; inside, nobody is asked."""
    stack = _state.stack
    for each in stack:
        run = _step(each, plan, operands, run)
    word = modes.set_word(modes.state.word & ~modes.INTERCEPT)
    _state.stack = ()
    try:
        return run()
    finally:
        _state.stack = stack
        modes.set_word(word)


def _step(each: Interceptor, plan: Plan, operands: Any, run: Run) -> Run:
    return lambda: each.see(plan, operands, run)


def aten_name(plan: Plan) -> str:
    """What PyTorch calls the op that it would run: ``addmm`` for ``linear`` with a bias.

    It is that of the node that the result would get (AddmmBackward0).
    """
    name = re.sub(r"Backward\d*$", "", plan.op.node_name)
    return re.sub(r"(?<=.)([A-Z])", r"_\1", name).lower()


hooks.intercept = _intercept
