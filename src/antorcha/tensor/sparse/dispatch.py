"""Which rule serves an op that is given a sparse tensor; a clear refusal where none does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from antorcha.core import modes
from antorcha.errors import ArgumentError, GraphError, MissingFeature
from antorcha.ops.kinds.record import node_name
from antorcha.runtime.call import tape
from antorcha.tensor.sparse.parts import named
from antorcha.tensor.sparse.tensor import FORMATS, SparseTensor, replace

RULES: dict[str, Callable[..., Any]] = {}
"""By the op's name: what computes it where an argument is sparse."""


def rule(*names: str) -> Callable[[Any], Any]:
    """Decorates the rule of these ops."""

    def register(fn: Any) -> Any:
        for name in names:
            RULES[name] = fn
        return fn

    return register


def first_sparse(args: Iterable[Any], deep: int = 2) -> SparseTensor | None:
    """The first sparse tensor among arguments, or in a list among them (no op takes tensors from
    deeper than so many lists)."""
    for value in args:
        if isinstance(value, SparseTensor):
            return value
        if deep and type(value) in (tuple, list):
            found = first_sparse(value, deep - 1)
            if found is not None:
                return found
    return None


def dispatch(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of an op with a sparse tensor among its arguments; NotImplemented: none is."""
    found = first_sparse((*args, *kwargs.values()))
    if found is None:
        return NotImplemented
    tape.spoil("sparse tensors")
    name = op.name
    fn = RULES.get(name)
    if fn is not None:
        try:
            return named(fn(*args, **kwargs), node_name(name))
        except AttributeError as error:
            if error.name not in SparseTensor.__slots__:
                raise
            return refuse(name, found)  # the rule wants another of the arguments to be sparse
    if name.endswith("_") and isinstance(args[0], SparseTensor):
        return in_place(name, args, kwargs)
    return refuse(name, found)


def in_place(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``x.mul_(2)``: the result of ``mul`` becomes the tensor's contents."""
    target = args[0]
    fn = RULES.get(name[:-1])
    if fn is None:
        refuse(name, target)
    recorded = modes.grad_enabled()
    if recorded and target._rg and target._fn is None:
        raise GraphError(
            "{op}: a leaf Variable that requires grad is being used in an in-place operation. Do "
            "it inside `with torch.no_grad():`, or on a copy: {fix}.",
            reason="leaf", op=name, fix="x.clone()",
        )  # fmt: skip
    result = fn(*args, **kwargs)
    if not isinstance(result, SparseTensor):
        raise ArgumentError(f"{name}: the result is not sparse, and cannot be written to one")
    replace(target, result)
    if recorded:
        target._fn, target._nr, target._rg = result._fn, result._nr, result._rg
    return target


def refuse(name: str, x: SparseTensor) -> NoReturn:
    """Says which op has no rule for which layout."""
    raise MissingFeature(
        f"{name}: not implemented for tensors of layout {FORMATS[x._format]}; x.to_dense() gives "
        "a dense tensor"
    )
