"""``torch.utils._python_dispatch``: modes that are told of every op."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from antorcha._ops import overload_of
from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.errors import explain_missing
from antorcha.tensor.subclass import _state

__all__ = [
    "TorchDispatchMode", "is_in_any_mode_without_ignore_compile_internals",
    "is_in_torch_dispatch_mode", "is_traceable_wrapper_subclass",
]  # fmt: skip


class TorchDispatchMode:
    """A context whose ``__torch_dispatch__(self, func, types, args, kwargs)`` is told of every op.

    ``func`` prints as PyTorch's operator, ``aten.mul.Tensor``; calling it computes. An op made of
    others is told of as those others. What is told of are antorcha's ops, with the arguments of the
    call: a linear layer is ``aten.linear.default``, and gradients are recorded inside ``func``.

    >>> from antorcha.utils._python_dispatch import TorchDispatchMode
    >>> class Log(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = torch.ones(2)
    >>> with Log():
    ...     y = (x * x).sum()
    aten.mul.Tensor
    aten.sum.default
    """

    supports_higher_order_operators = False

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError("a TorchDispatchMode needs a __torch_dispatch__")

    def __enter__(self) -> Any:
        hooks.overload_of = overload_of
        modes.hear_every_call(1)
        _state.dispatch = (*_state.dispatch, self)
        return self

    def __exit__(self, *_: object) -> None:
        _state.dispatch = _state.dispatch[:-1]
        modes.hear_every_call(-1)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """A mode of this class; the older way to write it."""
        return cls(*args, **kwargs)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Is a mode active?"""
    return bool(_state.dispatch)


is_in_any_mode_without_ignore_compile_internals = is_in_torch_dispatch_mode


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Is it a tensor that wraps others? antorcha has none."""
    return False


def _get_current_dispatch_mode() -> Any:
    """The innermost active mode; None if there is none."""
    return _state.dispatch[-1] if _state.dispatch else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    return list(_state.dispatch)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """Inside, no mode is told."""
    before = _state.dispatch
    _state.dispatch = ()
    try:
        yield list(before)
    finally:
        _state.dispatch = before


explain_missing("torch.utils._python_dispatch", globals())
