"""Grad modes: context managers, decorators and functions that set the thread's mode word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.core import modes
from antorcha.core.contexts import DecoratorContextManager, NoParamDecoratorContextManager
from antorcha.core.hooks import hooks
from antorcha.errors import ArgumentError
from antorcha.runtime.tensor import Tensor


def is_grad_enabled() -> bool:
    """Are operations recorded in this thread?"""
    return not modes.state.word & modes.NO_GRAD


def is_inference_mode_enabled() -> bool:
    """Is this thread in inference mode?"""
    return bool(modes.state.word & modes.INFERENCE)


class _GradMode(DecoratorContextManager):
    """A context manager, and decorator, that changes the thread's mode word."""

    __slots__ = ("_old",)

    def _word(self, word: int) -> int:
        raise NotImplementedError

    def __enter__(self) -> None:
        word = modes.state.word
        self._old = word
        modes.set_word(self._word(word))

    def __exit__(self, *_: object) -> None:
        modes.set_word(self._old)


class no_grad(_GradMode, NoParamDecoratorContextManager):
    """Operations inside are not recorded: their results require no gradient.

    A context manager and a decorator (with or without parentheses).
    See https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html.

    >>> x = torch.tensor([1.], requires_grad=True)
    >>> with torch.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    __slots__ = ()

    def __enter__(self) -> None:  # (the steps of the general form, in line)
        word = self._old = modes.state.word
        modes.set_word(word | modes.NO_GRAD)

    def _word(self, word: int) -> int:
        return word | modes.NO_GRAD


class enable_grad(_GradMode, NoParamDecoratorContextManager):
    """Operations inside are recorded, also within ``no_grad``."""

    __slots__ = ()

    def _word(self, word: int) -> int:
        return word & ~modes.NO_GRAD


class set_grad_enabled(_GradMode):
    """Turns recording on or off, at once or, as a context manager, inside the block."""

    __slots__ = ("mode",)

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self._old = modes.state.word
        modes.set_word(self._word(self._old))

    def clone(self) -> set_grad_enabled:
        result = object.__new__(set_grad_enabled)
        result.mode = self.mode
        return result

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        modes.set_word(self._old)
        return super().__call__(fn)

    def __enter__(self) -> None:
        if not hasattr(self, "_old"):
            self._old = modes.state.word
        modes.set_word(self._word(modes.state.word))

    def _word(self, word: int) -> int:
        return word & ~modes.NO_GRAD if self.mode else word | modes.NO_GRAD


class set_multithreading_enabled(_GradMode):
    """Accepted: backward runs on the thread that asks for it, whatever the mode."""

    __slots__ = ("mode",)

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)

    def clone(self) -> set_multithreading_enabled:
        return type(self)(self.mode)

    def _word(self, word: int) -> int:
        return word


class inference_mode(_GradMode):
    """Like ``no_grad``; results are inference tensors, which can never enter a graph.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html.
    """

    __slots__ = ("mode",)
    mode: bool

    def __new__(cls, mode: Any = True) -> Any:
        result = object.__new__(cls)
        if callable(mode):
            result.mode = True
            return result(mode)
        result.mode = bool(mode)
        return result

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)  # type: ignore[no-any-return]

    def _word(self, word: int) -> int:
        if self.mode:
            return word | modes.NO_GRAD | modes.INFERENCE
        return word & ~(modes.INFERENCE | modes.NO_GRAD)


INFERENCE_VERSION = -(1 << 62)  # of storages made in inference mode: below 0 whatever is added


def mark_inference(result: Any) -> None:
    """Makes fresh results inference tensors: their storage keeps no version."""
    for each in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(each, Tensor) and each._base is None:
            each._storage.version = INFERENCE_VERSION


def is_inference(tensor: Tensor) -> bool:
    """Was the tensor's memory made in inference mode?

    See https://docs.pytorch.org/docs/stable/generated/torch.is_inference.html.
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"is_inference: input must be a Tensor, not {type(tensor).__name__}")
    return tensor._storage.version < 0


hooks.mark_inference = mark_inference
Tensor.is_inference = is_inference  # type: ignore[assignment,method-assign]
modes.blocks += [(no_grad, modes.NO_GRAD, 0), (enable_grad, 0, modes.NO_GRAD)]
