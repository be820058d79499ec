"""Hooks on saved tensors: what backward needs may be kept packed, elsewhere or smaller.

Inside ``saved_tensors_hooks(pack, unpack)`` whatever an op saves goes through ``pack``; backward
gets it back through ``unpack``.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.errors import ArgumentError, GraphError
from antorcha.ops.kinds import derive
from antorcha.runtime.tensor import Tensor, bare

Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]


class _Active(threading.local):
    def __init__(self) -> None:
        self.hooks: list[tuple[Pack, Unpack]] = []
        self.refusal: str | None = None  # why hooks may not be used now


_active = _Active()


class Packed:
    """In a node's ``saved``, what a pack hook returned."""

    __slots__ = ("unpack", "value")

    def __init__(self, value: Any, unpack: Unpack) -> None:
        self.value, self.unpack = value, unpack


def pack(item: Any, tensor: Tensor | None) -> Any:
    """Packs what a node saves by the innermost hook."""
    if item is None or tensor is None:
        return None
    pack_hook, unpack_hook = _active.hooks[-1]
    given = bare(tensor._layout, tensor._storage, tensor._offset)
    version = given._storage.version
    result = Packed(pack_hook(given), unpack_hook)
    if given._storage.version != version:
        raise GraphError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to pack hook can not be modified by in-place operations as this can lead to "
            "unexpected side-effects. Please open an issue if you need to perform in-place "
            "operations on the input to a pack hook."
        )
    return result


def unpack(item: Packed, create: bool) -> Tensor:
    """What was packed, as a tensor again; part of no graph unless one is created."""
    word = derive.in_users_mode(create)
    try:
        result = item.unpack(item.value)
    finally:
        modes.set_word(word)
    if not isinstance(result, Tensor):
        raise ArgumentError(
            "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
            f"{type(result).__name__}"
        )
    if result._rg and not create:
        return bare(result._layout, result._storage, result._offset)
    return result


hooks.pack = pack
hooks.unpack = unpack


class saved_tensors_hooks:
    """Inside, tensors saved for backward are kept as ``pack_hook(tensor)`` gives them.

    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.saved_tensors_hooks.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
    ...     y = x * x
    >>> y.sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, pack_hook: Pack, unpack_hook: Unpack) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if _active.refusal is not None:
            raise GraphError(_active.refusal)
        _active.hooks.append((self.pack_hook, self.unpack_hook))
        modes.set_word(modes.state.word | modes.SAVED_HOOKS)

    def __exit__(self, *_: object) -> None:
        _active.hooks.pop()
        if not _active.hooks:
            modes.set_word(modes.state.word & ~modes.SAVED_HOOKS)


def leave_hooks() -> None:
    """This thread packs nothing from now on, whatever was entered and never left."""
    _active.hooks.clear()
    _active.refusal = None
    modes.set_word(modes.state.word & ~modes.SAVED_HOOKS)


class save_on_cpu(saved_tensors_hooks):
    """Inside, tensors saved for backward are kept in the host's memory.

    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.save_on_cpu.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def to_host(tensor: Tensor) -> tuple[Any, Tensor]:
            return tensor._layout.device, tensor.cpu()

        def back(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            return tensor.to(device)

        super().__init__(to_host, back)


class _Mutable:
    """What ``allow_mutation_on_saved_tensors`` gives; ``clear()`` forgets nothing here, for what is
    kept belongs to the graph."""

    active = True

    def clear(self) -> None:
        """Accepted."""


class allow_mutation_on_saved_tensors:
    """Inside, tensors saved for backward may be written to: copies of them are kept (of all, where
    PyTorch copies those that are written to). The graph's backward passes run inside, too.

    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.allow_mutation_on_saved_tensors.

    >>> a = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     b = a.clone()
    ...     out = (b ** 2).sum()
    ...     _ = b.sin_()
    ...     out.backward()
    >>> a.grad
    tensor([2., 2.])
    """

    def __enter__(self) -> _Mutable:
        context = _Mutable()

        def pack(tensor: Tensor) -> Tensor:
            return tensor.clone()

        def unpack(tensor: Tensor) -> Tensor:
            if not context.active:
                raise AssertionError(
                    "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context "
                    "in which the graph was originally recorded."
                )
            return tensor

        self.context, self.hooks = context, saved_tensors_hooks(pack, unpack)
        self.hooks.__enter__()
        return context

    def __exit__(self, *_: object) -> None:
        self.hooks.__exit__()
        self.context.active = False


class disable_saved_tensors_hooks:
    """Inside, entering ``saved_tensors_hooks`` is an error with this message."""

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    def __enter__(self) -> None:
        if _active.hooks:
            raise GraphError(self.error_message)
        self.before = _active.refusal
        _active.refusal = self.error_message

    def __exit__(self, *_: object) -> None:
        _active.refusal = self.before

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with disable_saved_tensors_hooks(self.error_message):
                return fn(*args, **kwargs)

        return inner
