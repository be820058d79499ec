"""Leaves: where gradients are added up when a backward pass has ended.

A gradient that nobody else holds is taken as it is, any other is copied: ``grad`` never shares
memory with something that a later operation could write to.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from antorcha.core import modes
from antorcha.core.device import backend
from antorcha.core.forks import held_over_forks
from antorcha.core.hooks import hooks
from antorcha.core.shapes import is_dense
from antorcha.ops.kinds.record import T
from antorcha.runtime.call import path
from antorcha.runtime.call.plan import remember, table
from antorcha.runtime.memory.layout import same
from antorcha.runtime.tensor import Tensor, bare

_accumulating = held_over_forks(threading.RLock())  # several threads may add to one leaf
_refs: Callable[[Any], int] = getattr(sys, "getrefcount", lambda _: 1 << 30)


def _own_refs() -> tuple[int, int]:
    """What getrefcount says, from inside ``accumulate``, of a gradient that nobody else holds."""

    def probe(g: Any, entry: Any) -> tuple[int, int]:
        return _refs(g), _refs(g._storage)

    class Box:
        __slots__ = ("_storage",)

    def make() -> Any:
        box = Box()
        box._storage = object()  # type: ignore[attr-defined]
        return [None, box]

    entry = make()
    _, g = entry
    entry = None
    return probe(g, None)


_OWN = _own_refs()


_writes: Any = table()  # writers of ``a += b`` by both layouts


def are_sparse(a: Tensor, b: Tensor | None) -> bool:
    """Is one of two gradients sparse?"""
    return modes.sparse and (a._layout.sparse or (b is not None and b._layout.sparse))


def plus(a: Tensor, b: Tensor) -> Tensor:
    """``a + b`` as the user's mode says."""
    total: Tensor = hooks.sparse_gradients.total(a, b) if are_sparse(a, b) else T.add(a, b)
    return total


def sum_of(a: Tensor, b: Tensor) -> Tensor:
    """``a + b`` outside of any graph."""
    if are_sparse(a, b):
        return hooks.sparse_gradients.total(a, b)  # type: ignore[no-any-return]
    total: Tensor = path.run(T.add, (a, b), {}, False)
    return total


def add_to(a: Tensor, b: Tensor) -> None:
    """``a += b`` outside of any graph."""
    key = (a._layout, b._layout)
    write = _writes.get(key)
    if write is None:
        path.run_inplace(T.add, (a, b), {}, False)
        plan = T.add.plans["in place", *T.add.bind((a, b), {})[0]]
        remember(_writes, key, path.writer(plan))
    elif not write(a._storage, a._offset, b._storage, b._offset):
        path.run_inplace(T.add, (a, b), {}, False)


def accumulate(leaf: Tensor, g: Tensor, create: bool) -> None:
    """Adds a gradient to ``leaf.grad``."""
    with _accumulating:
        old = leaf._grad
        if are_sparse(g, old):
            hooks.sparse_gradients.accumulate(leaf, g, create)
        elif old is None:
            layout, want = g._layout, leaf._layout
            fits = layout is want or same(layout, want) or (layout.contiguous and not _plain(want))
            if create and g._rg:
                leaf._grad = g if fits else T.clone(g)
            elif fits and _refs(g) <= _OWN[0] and _refs(g._storage) <= _OWN[1]:
                leaf._grad = g
            else:
                result = copy_like(g, leaf)
                if leaf._grad is None:  # the native engine, in another thread, takes no lock
                    leaf._grad = result
                else:
                    add_to(leaf._grad, result)
        elif create:
            leaf._grad = T.add(old, g)
        else:
            add_to(old, g)


def _plain(layout: Any) -> bool:
    return bool(is_dense(layout.shape, layout.strides))


def copy_like(g: Tensor, leaf: Tensor) -> Tensor:
    """A copy of the gradient that lies as the leaf does."""
    layout = leaf._layout
    if layout.contiguous or not _plain(layout):
        copied: Tensor = path.run(T.clone, (g,), {"memory_format": "contiguous"}, False)
        return copied
    result = bare(layout, backend(layout.device).allocate(layout.nbytes))
    path.run_inplace(T.copy, (result, g), {}, False)
    result._storage.version = 0
    return result
