"""``ModuleTracker``: which modules run now, forwards or backwards."""

from __future__ import annotations

import weakref
from typing import Any

from antorcha.autograd import engine
from antorcha.autograd.graph import register_multi_grad_hook
from antorcha.errors import explain_missing
from antorcha.nn.hooks import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from antorcha.runtime.tensor import Tensor

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """Inside, ``parents`` are the names of the modules that run: their class and, below the
    outermost, their names in it; always with ``"Global"``.

    A module runs backwards from the gradients of its results to those of its arguments.

    >>> from torch.utils.module_tracker import ModuleTracker
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    >>> with ModuleTracker() as tracker:
    ...     handle = net[0].register_forward_pre_hook(lambda *_: print(sorted(tracker.parents)))
    ...     y = net(torch.ones(2))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self._forwards: set[str] = set()
        self._backwards: set[str] = set()
        self._walk: weakref.ref[Any] | None = None  # the backward pass that ``_backwards`` is of
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._hooks: list[Any] = []

    @property
    def parents(self) -> set[str]:
        """The modules that run."""
        return {"Global", *self._forwards, *(self._backwards if self.is_bw else ())}

    @property
    def is_bw(self) -> bool:
        """Does a backward pass run?"""
        return engine.running.inside

    def _name(self, module: Any) -> str:
        if module not in self._names:
            self._names[module] = type(module).__name__
            self._name_children(module)
        return self._names[module]

    def _name_children(self, module: Any) -> None:
        for name, child in module.named_children():
            self._names[child] = f"{self._names[module]}.{name}"
            self._name_children(child)

    def _begin(self, module: Any, args: Any) -> None:
        name = self._name(module)
        self._forwards.add(name)
        self._when_known(args, lambda _: self._backwards.discard(name))

    def _end(self, module: Any, args: Any, result: Any) -> None:
        name = self._name(module)
        self._forwards.discard(name)
        self._when_known(result, lambda _: self._enter_backwards(name))

    def _enter_backwards(self, name: str) -> None:
        walk = engine.running.walk
        if self._walk is None or self._walk() is not walk:
            self._backwards.clear()
            self._walk = weakref.ref(walk)
        self._backwards.add(name)

    def _when_known(self, values: Any, call: Any) -> None:
        tensors = [each for each in _tensors(values) if each.requires_grad]
        if tensors:
            self._hooks.append(register_multi_grad_hook(tensors, call))

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._begin),
            register_module_forward_hook(self._end),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in (*self._handles, *self._hooks):
            handle.remove()
        self._hooks.clear()


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for each in value for tensor in _tensors(each)]
    return []


explain_missing("torch.utils.module_tracker", globals())
