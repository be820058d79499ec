"""A call's arguments, sorted for who plans it: operands, what is part of the plan, and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antorcha.core.structs import struct
from antorcha.ops.kinds.params import NUMBER, OPERAND, TENSORS, Signature, is_default
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.ops.kinds.record import Call, Op
    from antorcha.runtime.memory.layout import Layout


@struct
class Arguments:
    """What a planner knows of a call."""

    seen: list[Any]  # what the record's function gets: layouts in place of tensors
    tensors: tuple[Layout | None, ...]  # of each operand that could have a gradient, in order
    ins: list[Any]  # what a kernel gets, in order: layouts, and the types of numbers
    places: dict[str, int]  # where a parameter is among them; a list of tensors is in none
    numbers: tuple[str, ...]  # the parameters whose numbers each call hands over, in order
    statics: dict[str, Any]  # the other parameters' values, which are part of the plan

    @property
    def layouts(self) -> list[Layout]:
        """The layouts of the tensors."""
        return [layout for layout in self.tensors if layout is not None]


def sort(signature: Signature, values: list[Any]) -> Arguments:
    """Sorts what ``Signature.bind`` has bound."""
    seen: list[Any] = []
    tensors: list[Layout | None] = []
    ins: list[Any] = []
    places: dict[str, int] = {}
    numbers: list[str] = []
    statics: dict[str, Any] = {}
    for param, value in zip(signature.params, values, strict=True):
        if param.code == TENSORS:
            layouts = tuple([each._layout for each in value])
            ins += layouts
            tensors += layouts
            seen.append(layouts)
            continue
        is_tensor = isinstance(value, Tensor)
        seen.append(value._layout if is_tensor else value)
        if is_tensor or param.code < NUMBER:
            tensors.append(value._layout if is_tensor else None)
        if is_tensor:
            places[param.name] = len(ins)
            ins.append(value._layout)
        elif (param.code == OPERAND and not param.static and value is not None) or (
            param.code == NUMBER and not is_default(param, value)
        ):
            places[param.name] = len(ins)
            ins.append(type(value))
            numbers.append(param.name)
        else:
            statics[param.name] = value
    return Arguments(seen, tuple(tensors), ins, places, tuple(numbers), statics)


def listed(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    """A call of an op whose last positional parameter are tensors, which may be written one after
    the other, as one with a tuple of them."""
    n = op.signature.positional
    given = len(args) == n and isinstance(args[-1], (tuple, list))
    if given or op.signature.names[n - 1] in kwargs:
        return args, kwargs
    return (*args[: n - 1], tuple(args[n - 1 :])), kwargs
