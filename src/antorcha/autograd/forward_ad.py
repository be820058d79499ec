"""``torch.autograd.forward_ad``: derivatives along a direction, worked out beside the values.

A dual tensor has a tangent: how it changes in the direction. Ops look for dual tensors among their
arguments, and give results with tangents. An op that is another look at memory is the same look at
the tangent's; of others the product of the Jacobian with the tangents is found with the op's own
derivative, by differentiating twice: ``u -> J^T u`` is linear, and so is its derivative, J.

See https://docs.pytorch.org/docs/stable/autograd.html#forward-mode-automatic-differentiation.

>>> import antorcha.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(torch.tensor(3.), torch.tensor(1.))
...     fwAD.unpack_dual(x * x).tangent
tensor(6.)
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import antorcha.autograd as autograd
from antorcha.autograd.modes import enable_grad
from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.errors import DtypeError, GraphError, ValueRangeError, explain_missing
from antorcha.ops.kinds.batching import call, instances_in, record_of
from antorcha.ops.kinds.record import InPlace, Op, T
from antorcha.runtime.tensor import Tensor, take_fields
from antorcha.tensor.subclass import disabled_torch_function

__all__ = ["dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class Dual(Tensor):
    """A tensor with a tangent. Its memory is the primal's."""

    __slots__ = ()
    __torch_function__ = classmethod(disabled_torch_function)
    _tangent: Tensor

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]  # (the stub's has no names)
        return f"{primal_of(self)!r}"[:-1] + f", tangent={self._tangent!r})"

    def detach(self) -> Tensor:
        return primal_of(self).detach()


class _DualLevel(threading.local):
    """The level that a thread is in, and the dual tensors of it."""

    duals: list[weakref.ref[Dual]] | None = None


_level = _DualLevel()


class UnpackedDualTensor(NamedTuple):
    """What ``unpack_dual`` gives: the values, and the tangent, None where there is none."""

    primal: Tensor
    tangent: Tensor | None


def primal_of(tensor: Tensor) -> Tensor:
    """The tensor without its tangent: the same memory, and the same history."""
    if type(tensor) is not Dual:
        return tensor
    result: Tensor = object.__new__(Tensor)
    take_fields(result, tensor)
    return result


def _become_dual(tensor: Tensor, tangent: Tensor) -> Dual:
    """Gives a tensor a tangent, which lies as it does."""
    if tangent._layout.strides != tensor._layout.strides:
        tangent = T.copy_(T.empty_like(tensor), tangent)
    tensor.__class__ = Dual
    dual: Any = tensor
    dual._tangent = tangent
    assert _level.duals is not None
    _level.duals.append(weakref.ref(dual))
    return dual  # type: ignore[no-any-return]


# --------------------------------------------------------------------------------------- levels
def enter_dual_level() -> int:
    """Begins a level, in which there are dual tensors. There is one at a time."""
    if _level.duals is not None:
        raise GraphError("Nested forward mode AD is not supported at the moment")
    _level.duals = []
    modes.count_duals(1)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the level: its dual tensors lose their tangents."""
    if _level.duals is None:
        raise GraphError("Trying to exit a forward AD level that was not the last one that was "
                         "created: there is none")  # fmt: skip
    for each in _level.duals:
        dual = each()
        if dual is not None:
            del dual.__dict__["_tangent"]
            dual.__class__ = Tensor  # type: ignore[assignment]
    _level.duals = None
    modes.count_duals(-1)


class dual_level:
    """A context in which there are dual tensors; afterwards they have no tangents."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *_: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor with a tangent, which has its shape and dtype.

    Args:
        tensor (Tensor): the values, of a floating or complex dtype
        tangent (Tensor): how they change in the direction
        level (int, optional): the level; there is one

    >>> import antorcha.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.ones(2), torch.tensor([1., 0.]))
    ...     fwAD.unpack_dual(x.sum())
    UnpackedDualTensor(primal=tensor(2.), tangent=tensor(1.))
    """
    if _level.duals is None:
        raise GraphError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for name, each in (("primal", tensor), ("tangent", tangent)):
        if each._layout.dtype.kind not in "fc":
            raise ValueRangeError(
                f"Expected {name} to be floating point or complex, but got: {each._layout.dtype}"
            )
    if type(tensor) is Dual:
        raise GraphError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level 0 is not supported."
        )
    if tensor._layout.shape != tangent._layout.shape:
        raise GraphError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor._layout.shape)} while "
            f"the given forward gradient is of size {list(tangent._layout.shape)}."
        )
    if tensor._layout.dtype is not tangent._layout.dtype:
        raise DtypeError(
            f"make_dual: a tensor of {tensor._layout.dtype} and its tangent of "
            f"{tangent._layout.dtype} must have one dtype"
        )
    return _become_dual(T.alias(tensor), tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The values and the tangent of a tensor; its tangent is None where it has none.

    Outside of a level no tensor has one.
    """
    tangent = tensor._tangent if type(tensor) is Dual else None
    return UnpackedDualTensor(T.alias(primal_of(tensor)), tangent)


# ----------------------------------------------------------------------------------------- calls
def run_dual(op: Op | InPlace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call with dual tensors among its arguments; NotImplemented where there are none, or the op
    is made of others."""
    record = record_of(op)
    given = instances_in((*args, *kwargs.values()), Dual)
    duals = list({id(each): each for each in given}.values())
    if not duals or record.is_composite:
        return NotImplemented
    values = record.bind(args, kwargs)[4]
    if isinstance(op, InPlace):
        return _write(op, args[0], values, duals)
    if record.only_moves and len(duals) == 1 and values[0] is duals[0]:
        result = call(op, [primal_of(values[0]), *values[1:]])
        return _paired(result, call(op, [values[0]._tangent, *values[1:]]))
    if record.random:  # what is drawn does not change smoothly with anything
        return call(op, [_with(v, primal_of) for v in values])
    return _paired(*_with_tangents(record, values, duals))


def _with(value: Any, change: Any) -> Any:
    """A bound value with its tensors changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (tuple, list)):
        items = [_with(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _paired(result: Any, tangent: Any) -> Any:
    """Results with their tangents."""
    if isinstance(result, Tensor):
        return result if tangent is None else _become_dual(result, tangent)
    if isinstance(result, (tuple, list)):
        for one, other in zip(result, tangent, strict=True):
            _paired(one, other)
    return result


def _with_tangents(record: Op, values: Sequence[Any], duals: Sequence[Dual]) -> tuple[Any, Any]:
    """The results of an op, and their tangents: the products of its Jacobian with the operands'."""
    with enable_grad():
        leaves = {id(each): _variable(each) for each in duals}
        outputs = call(record, [_with(v, lambda t: leaves.get(id(t), t)) for v in values])
        several = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        wanted = [isinstance(each, Tensor) and each.requires_grad for each in several]
        roots = [each for each, w in zip(several, wanted, strict=True) if w]
        found = iter(_push(roots, duals, [leaves[id(d)] for d in duals]))
    tangents = [next(found) if w else None for w in wanted]
    if not any([each._rg for each in duals]):
        outputs = _with(outputs, lambda t: t.detach() if t.requires_grad else t)
    return outputs, tangents if isinstance(outputs, (tuple, list)) else tangents[0]


def _variable(dual: Dual) -> Tensor:
    primal = primal_of(dual)
    if primal.requires_grad:
        return T.alias(primal)  # type: ignore[no-any-return]
    return primal.detach().requires_grad_()


def _push(roots: list[Tensor], duals: Sequence[Dual], leaves: list[Tensor]) -> list[Tensor | None]:
    """For each root the product of its Jacobian by the leaves with the tangents."""
    tangents = [each._tangent for each in duals]
    keeps = any([d._rg or t.requires_grad for d, t in zip(duals, tangents, strict=True)])
    result: list[Tensor | None] = []
    for root in roots:
        dummy = T.zeros_like(root).requires_grad_()
        back = autograd.grad(
            root, leaves, dummy, retain_graph=True, create_graph=True, allow_unused=True
        )
        pairs = [(g, t) for g, t in zip(back, tangents, strict=True)
                 if g is not None and g.requires_grad]  # fmt: skip
        if not pairs:
            result.append(None)
            continue
        (push,) = autograd.grad(
            [g for g, _ in pairs], [dummy], [t for _, t in pairs], create_graph=keeps,
            allow_unused=True,
        )  # fmt: skip
        push = T.zeros_like(root) if push is None else push
        push = push if keeps else push.detach()
        # (a tangent that is handed on must not be another's memory: it may be written to)
        shared = any([push._storage is each._storage for each in tangents])
        result.append(T.clone(push) if shared else push)
    return result


def _write(op: InPlace, target: Tensor, values: list[Any], duals: list[Dual]) -> Tensor:
    """A write with dual tensors among its operands: the tensor has a tangent from then on."""
    tangent = None if op.op.random else _with_tangents(op.op, values, duals)[1]
    if type(target) is not Dual and tangent is not None:
        _give_tangent(target)
    primal = primal_of(target)
    call(op, [primal, *[_with(v, primal_of) for v in values[1:]]])
    take_fields(target, primal)
    if type(target) is Dual:
        own = target._tangent
        T.copy_(own, T.zeros_like(own) if tangent is None else tangent)
    return target


def _give_tangent(target: Tensor) -> None:
    """A tangent of zeros; of a view it is a view of its base's, which has one, too."""
    base = target._base
    if base is None:
        _become_dual(target, T.zeros_like(primal_of(target)))
        return
    if type(base) is not Dual:
        _give_tangent(base)
    whole: Tensor = base._tangent  # type: ignore[attr-defined]  # a Dual has one
    if whole._layout.strides != base._layout.strides:
        raise GraphError("a write to a view of a tensor whose tangent lies otherwise: clone() it")
    layout = target._layout
    _become_dual(target, T.strided_view(
        whole, tuple(layout.shape), tuple(layout.strides), target._offset - base._offset
    ))  # fmt: skip


hooks.dual = run_dual
explain_missing("torch.autograd.forward_ad", globals())
