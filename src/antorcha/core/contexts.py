"""Context managers that also decorate functions: each call, and each step of a generator, runs in a
context of its own.

PyTorch has them, under names with an underscore, in ``torch.utils._contextlib``; libraries derive
their own from them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Self

GENERATOR = 0x20  # of a code object's flags: calling it makes a generator (inspect.CO_GENERATOR)


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`, in that context, or in one that a callable `ctx` makes for each call."""
    make = ctx if callable(ctx) else lambda: ctx
    if getattr(getattr(func, "__code__", None), "co_flags", 0) & GENERATOR:
        return _around_steps(make, func)

    @functools.wraps(func)
    def inner(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return inner


def _around_steps(
    make: Callable[[], AbstractContextManager[Any]], func: Callable[..., Any]
) -> Callable[..., Any]:
    """A generator function whose steps run in contexts, and what is between them outside."""

    @functools.wraps(func)
    def inner(*args: Any, **kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        reply, failure = None, None
        while True:
            try:
                with make():
                    value = result.throw(failure) if failure is not None else result.send(reply)
            except StopIteration as stop:
                return stop.value
            try:
                reply, failure = (yield value), None
            except GeneratorExit:
                with make():
                    result.close()
                raise
            except BaseException as error:  # handed on to the generator, as ``throw`` does
                reply, failure = None, error

    return inner


class DecoratorContextManager:
    """A context manager that also decorates functions, generators and classes' methods. A class
    whose constructor has parameters says in ``clone`` how another one is made."""

    __slots__ = ()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        raise NotImplementedError

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return context_decorator(self.clone, func)

    def clone(self) -> Self:
        return type(self)()


class NoParamDecoratorContextManager(DecoratorContextManager):
    """The same, which decorates without parentheses, too: ``@no_grad`` and ``@no_grad()``."""

    __slots__ = ()

    def __new__(cls, func: Callable[..., Any] | None = None) -> Any:
        result = object.__new__(cls)
        return result if func is None else result(func)
