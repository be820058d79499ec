"""``torch.cond`` and ``torch.while_loop``: a condition and a loop as functions.

They run at once, as Python's own do: there is no graph that would have to hold both branches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.errors import ShapeError
from antorcha.runtime.tensor import Tensor

__all__ = ["cond", "while_loop"]


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:  # fmt: skip
    """``true_fn(*operands)`` where ``pred`` is true, else ``false_fn(*operands)``.

    See https://docs.pytorch.org/docs/stable/cond.html.

    >>> x = torch.tensor([1., 2.])
    >>> torch.cond(x.sum() > 2, lambda x: x + 1, lambda x: x - 1, (x,))
    tensor([2., 3.])
    """
    _check("cond", pred, (true_fn, false_fn), operands)
    return true_fn(*operands) if pred else false_fn(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]
) -> Any:
    """What is carried, after ``body_fn`` has been applied to it for as long as ``cond_fn`` holds.

    >>> torch.while_loop(lambda k, x: k < 3, lambda k, x: (k + 1, x * 2), (0, torch.tensor(1.)))
    (3, tensor(8.))
    """
    carried = carried_inputs
    _check("while_loop", True, (cond_fn, body_fn), carried)
    while True:
        holds = cond_fn(*carried)
        _check("while_loop", holds, (), carried)
        if not holds:
            return carried
        carried = body_fn(*carried)


def _check(op: str, pred: Any, functions: Sequence[Any], operands: Any) -> None:
    single = isinstance(pred, Tensor) and pred.numel() == 1
    if not (single or isinstance(pred, (bool, int, float))):
        raise ShapeError(f"{op}: Expected pred to be bool or single-element tensor, but got {pred}")
    if not all([callable(each) for each in functions]):
        raise ShapeError(f"{op}: Expect both branches to be callable, but got {functions}")
    if not isinstance(operands, (tuple, list)):
        raise ShapeError(f"{op}: Expect operands to be a tuple, but got {operands!r:.60}")
