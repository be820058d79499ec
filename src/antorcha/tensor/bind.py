"""Gives Tensor its methods and operators, from the op records.

A record named ``add`` with a method and an in-place form becomes ``Tensor.add`` and
``Tensor.add_``; the operators are the same ops. Nothing here computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError
from antorcha.ops.create import scalar_like
from antorcha.ops.kinds.pointwise import PointwiseOp
from antorcha.ops.kinds.record import REGISTRY
from antorcha.runtime.call import bound
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.methods import set_methods
from antorcha.tensor.subclass import asking

interop = lazy("antorcha.tensor.interop")
BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}  # fmt: skip
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
UNARY = {"neg": "neg", "invert": "bitwise_not", "abs": "abs"}
COMMUTES = ("add", "mul", "and", "or", "xor")


def method(op: Any, name: str) -> Callable[..., Any]:
    """The op, or its in-place form, as a method."""

    def form(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        # (once the op has a builtin, it is that which has left the call to this function)
        return (op if op.native is None else op.in_python)(self, *args, **kwargs)

    op.methods.append(name)
    return named(form, name, op)


def named(fn: Callable[..., Any], name: str, op: Any) -> Callable[..., Any]:
    """The method of that name, which asks its arguments' classes first."""
    result = asking(fn, name)
    result.__name__ = name
    result.__qualname__ = f"Tensor.{name}"
    result.__module__ = "antorcha"
    result.__doc__ = op.__doc__
    return result


def is_operand(value: Any) -> bool:
    """May the value stand beside a tensor in an expression?"""
    return isinstance(value, (Tensor, bool, int, float, complex)) or (
        getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    )


def operator(op: Any, name: str) -> Callable[..., Any]:
    """``a <op> b``; other types get their chance to answer."""

    def left(self: Tensor, other: Any) -> Any:
        check_self(self, name)
        try:
            return op(self, other)
        except ArgumentError:
            if is_operand(other):
                raise
        return with_array(op, self, other) if name in COMPARE else NotImplemented

    return left


def with_array(op: Any, tensor: Tensor, array: Any, first: bool = False) -> Any:
    """``tensor <op> array``, or the array first, if it is one, and can be a tensor."""
    if not hasattr(array, "__array_interface__"):
        return NotImplemented
    try:
        other = interop.share(array)
    except ArgumentError:
        return NotImplemented
    return op(other, tensor) if first else op(tensor, other)


def check_self(value: Any, name: str) -> None:
    """Refuses ``Tensor.__add__(1, x)``, as Python does for classes of its own."""
    if not isinstance(value, Tensor):
        raise ArgumentError(
            f"descriptor '__{name}__' for 'Tensor' objects doesn't apply to a "
            f"{type(value).__name__!r} object"
        )


def reflected(op: Any, name: str, commutes: bool) -> Callable[..., Any]:
    """``b <op> a``. NumPy's arrays leave it to tensors (``__array_priority__``)."""

    def right(self: Tensor, other: Any) -> Any:
        check_self(self, f"r{name}")
        if not is_operand(other):
            return with_array(op, self, other, first=True)
        if commutes:
            return op(self, other)
        return op(other, self) if isinstance(other, Tensor) else number_first(op, other, self)

    return right


def number_first(op: Any, number: Any, tensor: Tensor) -> Any:
    """``number <op> tensor`` for ops whose record wants a tensor first."""
    if op.name == "sub":
        return REGISTRY["rsub"](tensor, number)
    if op.name == "div" and isinstance(number, (int, float)) and not isinstance(number, bool):
        return REGISTRY["mul"](REGISTRY["reciprocal"](tensor), number)
    if op.name == "pow":
        return op(number, tensor)
    return op(scalar_like(number, tensor), tensor)


def reciprocal_times(self: Tensor, other: Any) -> Any:
    """``other / self`` by its name of Python 2's days."""
    return self.reciprocal() * other


def inplace_operator(inplace: Any) -> Callable[..., Any]:
    def write(self: Tensor, other: Any) -> Any:
        return inplace(self, other) if is_operand(other) else NotImplemented

    return write


def bind_methods() -> None:
    """Sets every method that comes from a record on Tensor; called once, at import."""
    for name, op in list(REGISTRY.items()):
        if op.is_method and name not in Tensor.__dict__:
            set_methods({name: op.is_method if callable(op.is_method) else method(op, name)})
        inplace = op.inplace if op.namespace == "torch" else None
        if inplace is not None and f"{name}_" not in Tensor.__dict__:
            set_methods({f"{name}_": method(inplace, f"{name}_")})
    for name, target in BINARY.items():
        found = REGISTRY.get(target)
        if found is None:
            continue
        commutes = name in COMMUTES and isinstance(found, PointwiseOp)
        bind_operator(name, found, operator(found, name))
        set_methods(
            {f"__r{name}__": named(reflected(found, name, commutes), f"__r{name}__", found)}
        )
        if found.inplace is not None:
            bind_operator(f"i{name}", found.inplace, inplace_operator(found.inplace))
    for name in COMPARE:
        if name in REGISTRY:
            bind_operator(name, REGISTRY[name], operator(REGISTRY[name], name))
    bound.operators["rsub"] = REGISTRY["rsub"]
    for name, target in UNARY.items():
        if target in REGISTRY:
            setattr(Tensor, f"__{name}__", method(REGISTRY[target], f"__{name}__"))
    set_methods({"__pos__": lambda self: self, "__rdiv__": reciprocal_times})
    Tensor.__hash__ = object.__hash__  # type: ignore[method-assign]


def bind_operator(name: str, op: Any, function: Callable[..., Any]) -> None:
    """Sets an operator on Tensor: ``add``, ``iadd``."""
    bound.operators[name] = op
    setattr(Tensor, f"__{name}__", named(function, f"__{name}__", op))
