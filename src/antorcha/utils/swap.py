"""``torch.utils.swap_tensors``."""

from __future__ import annotations

import copyreg
import weakref
from typing import Any

from antorcha.errors import GraphError
from antorcha.runtime.tensor import FIELDS, Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Each becomes what the other was, class and attributes too, and stays the same object.

    Graphs that were recorded before lead to the objects: do it where none is waiting for backward.

    >>> a, b = torch.zeros(1), torch.nn.Parameter(torch.ones(2))
    >>> torch.utils.swap_tensors(a, b)
    >>> a
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """
    for name, each in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(each):
            raise GraphError(f"Cannot swap {name} because it has weakref associated with it")
    slots = [set(copyreg._slotnames(type(each))) for each in (t1, t2)]  # type: ignore[attr-defined]
    if slots[0] != slots[1]:
        raise GraphError("Cannot swap t1 and t2 if they have different slots")
    kinds = type(t1), type(t2)
    t1.__class__, t2.__class__ = kinds[1], kinds[0]
    for name in (*FIELDS, "_seen", "__dict__"):
        _swap(t1, t2, name)


def _swap(t1: Any, t2: Any, name: str) -> None:
    absent = object()
    first, second = getattr(t1, name, absent), getattr(t2, name, absent)
    for tensor, value in ((t1, second), (t2, first)):
        if value is not absent:
            setattr(tensor, name, value)
        elif hasattr(tensor, name):
            delattr(tensor, name)
