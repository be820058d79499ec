"""``torch.overrides``: what library authors need around ``__torch_function__``.

See https://docs.pytorch.org/docs/stable/torch.overrides.html and `antorcha.tensor.subclass`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import antorcha
from antorcha import basics
from antorcha.errors import explain_missing
from antorcha.ops.kinds.record import NAMESPACES, REGISTRY
from antorcha.runtime.tensor import Tensor
from antorcha.tensor import subclass as _subclass
from antorcha.tensor.create import as_tensor, tensor
from antorcha.tensor.interop import from_numpy
from antorcha.tensor.subclass import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    TorchFunctionMode,
)

__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass",
    "TorchFunctionMode",
    "enable_reentrant_dispatch", "get_default_nowrap_functions", "get_ignored_functions",
    "get_overridable_functions", "handle_torch_function", "has_torch_function",
    "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Does one of the arguments (or an active mode) want to be asked?"""
    state = _subclass._state
    return (bool(state.stack) and not state.modes_off) or any(
        _subclass.overrides(value) for value in relevant_args
    )


def has_torch_function_unary(value: Any) -> bool:
    """``has_torch_function`` of one argument."""
    return has_torch_function((value,))


def has_torch_function_variadic(*values: Any) -> bool:
    """``has_torch_function`` of loose arguments."""
    return has_torch_function(values)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Asks the modes and the arguments in turn; TypeError if none has an answer.

    For functions of your own that should take part in the protocol::

        def func(a):
            if has_torch_function_unary(a):
                return handle_torch_function(func, (a,), a)
            return a + 0
    """
    return _subclass.ask(public_api, _subclass.relevant(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Decorates a function of your own; ``dispatcher`` gives its arguments that may be asked."""

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return fn(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Is it a Tensor, or of a class with ``__torch_function__``?"""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def get_default_nowrap_functions() -> set[Any]:
    """What gives plain tensors also for subclasses: ``_base``, ``grad``."""
    return _subclass.default_nowrap_functions()


def get_ignored_functions() -> set[Any]:
    """Functions that never ask anybody: those that take no tensors are not listed."""
    return {basics.is_tensor, basics.is_storage, tensor, as_tensor, from_numpy}


def get_overridable_functions() -> dict[Any, list[Any]]:
    """The functions and methods that ask, by where they are found."""
    found: dict[Any, list[Any]] = {
        antorcha: list(dict.fromkeys([op for op in REGISTRY.values() if op.is_function])),
        Tensor: [v for v in Tensor.__dict__.values() if callable(v) and hasattr(v, "__name__")],
    }
    for name, functions in NAMESPACES.items():
        found[f"torch.{name}"] = list(functions.values())
    return found


def is_tensor_method_or_property(func: Any) -> bool:
    """Is it a method of Tensor, or the ``__get__`` of a property?"""
    return func in Tensor.__dict__.values() or getattr(func, "__name__", "") == "__get__"


def resolve_name(f: Any) -> str | None:
    """The name of a torch function as people write it, e.g. ``torch.add``."""
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None)
    if name is None:
        return None
    for space, functions in NAMESPACES.items():
        for short in (name, name.removeprefix(f"{space}_")):
            if functions.get(short) is f and REGISTRY.get(short) is not f:
                return f"torch.{space}.{short}"
    module = str(getattr(f, "__module__", "")).replace("antorcha", "torch", 1)
    return f"{module}.{name}" if module == "torch.nn.functional" else f"torch.{name}"


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that computes as usual; for subclasses that only look."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Any:
    """The innermost active TorchFunctionMode; None if there is none."""
    stack = _subclass._state.stack
    return stack[-1] if stack else None


def _get_current_function_mode_stack() -> list[Any]:
    """The active modes, the outermost first."""
    return list(_subclass._state.stack)


class enable_reentrant_dispatch(_subclass._Off):
    """Accepted: there is no dispatcher below ``__torch_function__`` to enter again."""

    def __enter__(self) -> None:
        self.before = (_subclass._state.disabled, _subclass._state.modes_off)


explain_missing("torch.overrides", globals())
