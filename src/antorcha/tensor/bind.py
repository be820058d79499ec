"""Gives Tensor its methods and operators, from the op records.

A record named ``add`` with a method and an in-place form becomes ``Tensor.add`` and
``Tensor.add_``; the operators are short cuts to the same ops. Nothing here computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha import modes
from antorcha.errors import ArgumentError
from antorcha.ops.pointwise import PointwiseOp
from antorcha.ops.record import REGISTRY, Op
from antorcha.runtime.call import path, short
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.methods import set_methods

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
    """The op as a method; the shortest way for the commonest forms of its call."""
    quick = getattr(op, "quick", None)
    if quick is not None:  # one of the method's own: it carries the method's name
        quick = short.form(op)[0]  # type: ignore[index]
    if hasattr(op, "view_plan") and quick is None:
        made: Callable[..., Any] = short.view(op)
    elif quick is not None and op.most > 2:
        made = quick
    elif quick is not None:
        two_tensors: Any = quick

        def two(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            if kwargs or len(args) != 1:
                return op(self, *args, **kwargs)
            return two_tensors(self, *args)

        made = two
    else:

        def any_form(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            return op(self, *args, **kwargs)

        made = any_form
    short.methods.setdefault(op.name, []).append((name, made))
    return named(made, name, op)


def named(fn: Callable[..., Any], name: str, op: Any) -> Callable[..., Any]:
    fn.__name__ = name
    fn.__qualname__ = f"Tensor.{name}"
    fn.__module__ = "antorcha"
    fn.__doc__ = op.__doc__
    return fn


def is_operand(value: Any) -> bool:
    """May the value stand beside a tensor in an expression?"""
    return isinstance(value, (Tensor, bool, int, float, complex)) or (
        getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    )


def operator(op: Any, name: str) -> Callable[..., Any]:
    """``a <op> b``; other types get their chance to answer."""
    if op.short_binary:
        # the operator itself is the short cut: what is no operand ends in ArgumentError here
        def otherwise(op: Any, args: tuple[Any, ...]) -> Any:
            if not isinstance(args[0], Tensor):
                raise ArgumentError(
                    f"descriptor '__{name}__' for 'Tensor' objects doesn't apply to a "
                    f"{type(args[0]).__name__!r} object"
                )
            try:
                native = op.native
                return short.general(op, args) if native is None else native(*args)
            except ArgumentError:
                tensor, other = args
                if is_operand(other):
                    raise
                if name in ("eq", "ne") and hasattr(other, "__array_interface__"):
                    return compared(op, tensor, other)
                return NotImplemented

        short.operators[name] = op
        if name == "sub":  # a number less a tensor
            short.operators["rsub"] = REGISTRY["rsub"]
        return named(short.binary(op, otherwise), f"__{name}__", op)

    def left(self: Tensor, other: Any) -> Any:
        if type(other) is Tensor or is_operand(other):
            return op(self, other)
        if modes.subclasses and hasattr(other, "__torch_function__"):
            return op(self, other)
        return NotImplemented

    return named(left, f"__{name}__", op)


def compared(op: Any, tensor: Tensor, array: Any) -> Any:
    """``tensor == array``, element by element, if the array can be a tensor."""
    from antorcha.tensor.interop import share

    try:
        other = share(array)
    except ArgumentError:
        return NotImplemented
    return op(tensor, other)


def reflected(op: Any, name: str) -> Callable[..., Any]:
    def right(self: Tensor, other: Any) -> Any:
        if is_operand(other):
            return op(other, self) if isinstance(other, Tensor) else number_first(op, other, self)
        return NotImplemented

    return named(right, f"__r{name}__", op)


def number_first(op: Any, number: Any, tensor: Tensor) -> Any:
    """``number <op> tensor`` for ops whose record wants a tensor first."""
    if op.name == "sub":
        return REGISTRY["rsub"](tensor, number)
    if op.name == "div" and isinstance(number, (int, float)) and not isinstance(number, bool):
        return REGISTRY["mul"](REGISTRY["reciprocal"](tensor), number)
    if op.name == "pow":
        return op(number, tensor)
    from antorcha.ops.create import scalar_like

    return op(scalar_like(number, tensor), tensor)


def inplace_operator(op: Op, name: str) -> Callable[..., Any]:
    inplace: Any = op.inplace
    if isinstance(op, PointwiseOp):
        inplace.in_python = short.inplace(op)

    def write(self: Tensor, other: Any) -> Any:
        if not is_operand(other):
            return NotImplemented
        return inplace(self, other)

    return named(write, f"__i{name}__", op)


def bind_methods() -> None:
    """Sets every method that comes from a record on Tensor; called once, at import."""
    for name, op in list(REGISTRY.items()):
        if op.is_method and name not in Tensor.__dict__:
            set_methods({name: op.is_method if callable(op.is_method) else method(op, name)})
        inplace = op.inplace if op.namespace == "torch" else None
        if inplace is not None and f"{name}_" not in Tensor.__dict__:
            setattr(Tensor, f"{name}_", inplace_method(inplace, f"{name}_"))
    for name, target in BINARY.items():
        found = REGISTRY.get(target)
        if found is None:
            continue
        setattr(Tensor, f"__{name}__", operator(found, name))
        commutes = name in COMMUTES and isinstance(found, PointwiseOp)
        right = operator(found, name) if commutes else reflected(found, name)
        set_methods({f"__r{name}__": right})
        if found.inplace is not None:
            setattr(Tensor, f"__i{name}__", inplace_operator(found, name))
    for name in COMPARE:
        if name in REGISTRY:
            setattr(Tensor, f"__{name}__", operator(REGISTRY[name], name))
    names = [f"__{side}{name}__" for name in (*BINARY, *COMPARE) for side in ("", "r")]
    short.forms.update({name: Tensor.__dict__[name] for name in names if name in Tensor.__dict__})
    for name, target in UNARY.items():
        if target in REGISTRY:
            setattr(Tensor, f"__{name}__", method(REGISTRY[target], f"__{name}__"))
    set_methods({"__pos__": lambda self: self})
    Tensor.__hash__ = object.__hash__  # type: ignore[method-assign]


def inplace_method(inplace: Any, name: str) -> Callable[..., Any]:
    op = inplace.op
    if isinstance(op, PointwiseOp) or op.name == "fill":
        made = inplace.in_python = short.inplace(op)
    else:

        def made(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            return path.call_inplace(op, (self, *args), kwargs)

    short.methods.setdefault(f"{op.name}_", []).append((name, made))
    return named(made, name, inplace)
