"""The bare Tensor: its fields, and nothing that computes. ``antorcha.tensor`` gives it methods.

Fields (all private; the public names are properties and methods bound at floor 4):

- ``_layout``, ``_storage``, ``_offset``: where the elements are. The offset counts elements.
- ``_rg``: does it require a gradient? ``_fn``, ``_nr``: the node that made it and which result of
  it this is; a leaf has ``_fn is None``.
- ``_grad``: the accumulated gradient of a leaf (or of one that retains it).
- ``_base``: the tensor that this is a view of, never itself a view. ``_seen``: of a view, the
  storage's version when ``_fn`` was made (a write through another view makes ``_fn`` stale), or,
  below 0, when the view was made in no_grad mode, its complement or CONSTANT; of others, how many
  views there have been (unset: none; from 2 on there may have been more).
- ``_extra``: what few tensors have (hooks, name, flags); None otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections import OrderedDict

    from antorcha.runtime.call.node import Node
    from antorcha.runtime.memory.layout import Layout
    from antorcha.runtime.memory.storage import Storage
    from antorcha.tensor.tensor import Methods  # what floor 4 binds: generated, for type checkers
else:
    Methods = object

new = object.__new__


class Extra:
    """The seldom used part of a tensor."""

    __slots__ = (
        "accumulate_hooks", "hooks", "name", "node_hooks", "retained_nr", "retains",
    )  # fmt: skip

    def __init__(self) -> None:
        self.hooks: OrderedDict[int, Any] | None = None
        self.accumulate_hooks: OrderedDict[int, Any] | None = None
        self.node_hooks: Any = None  # the hooks registered on that node
        self.name: str | None = None
        self.retains: dict[int, Any] | None = None  # where its node knows of retain_grad()
        self.retained_nr = 0


class Tensor(Methods):
    """A multi-dimensional array of one dtype: a layout, a storage and an offset into it.

    See https://docs.pytorch.org/docs/stable/tensors.html.
    """

    __slots__ = (
        "__dict__", "__weakref__", "_base", "_extra", "_fn", "_grad", "_layout", "_nr", "_offset",
        "_rg", "_seen", "_storage",
    )  # fmt: skip
    _layout: Layout
    _storage: Storage
    _offset: int
    _rg: bool
    _fn: Node | None
    _nr: int
    _grad: Tensor | None
    _base: Tensor | None
    _seen: int
    _extra: Extra | None


class ParameterType(type):
    """Makes ``isinstance(tensor, Parameter)`` look at the mark of a subclass's instance, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (
            cls is Parameter
            and isinstance(instance, Tensor)
            and bool(getattr(instance, "_is_param", False))
        )


class Parameter(Tensor, metaclass=ParameterType):
    """A tensor that a Module counts among its parameters. ``antorcha.nn`` gives it its methods."""

    __slots__ = ()


PLAIN: dict[str, Any] = {
    "_offset": 0, "_rg": False, "_fn": None, "_nr": 0, "_grad": None, "_base": None, "_extra": None,
}  # fmt: skip
"""The fields of a fresh tensor, besides its layout and storage."""


FIELDS = ("_layout", "_storage", *PLAIN)
"""The fields that every tensor has; ``_seen`` not all."""


def take_fields(result: Tensor, tensor: Tensor) -> None:
    """Makes one tensor the same as another: its memory, its history, its gradient."""
    for name in FIELDS:
        setattr(result, name, getattr(tensor, name))
    if hasattr(tensor, "_seen"):
        result._seen = tensor._seen


def bare(layout: Layout, storage: Storage | None, offset: int = 0) -> Tensor:
    """A plain tensor over a storage, outside of any graph."""
    result = new(Tensor)
    result._layout = layout
    result._storage = storage  # type: ignore[assignment]  # None where only the layout is read
    result._offset = offset
    result._rg = False
    result._fn = None
    result._nr = 0
    result._grad = None
    result._base = None
    result._extra = None
    return result


def extra(tensor: Tensor) -> Extra:
    """The tensor's extra part, made when it has none."""
    found = tensor._extra
    if found is None:
        found = tensor._extra = Extra()
    return found
