"""``opcheck``: does an operator keep what its schema and its registrations say?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.autograd import grad
from antorcha.errors import ArgumentError, GraphError
from antorcha.library.custom import overload_behind
from antorcha.library.operators import PythonOverload, tensors_in
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

_ALL = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


class OpCheckError(Exception):
    """A check of an operator failed."""


def opcheck(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *,
    test_utils: str | Sequence[str] = _ALL, raise_exception: bool = True, atol: Any = None,
    rtol: Any = None,
) -> dict[str, str]:  # fmt: skip
    """Runs an operator on arguments and checks what was registered for it.

    Args:
        op (CustomOpDef or OpOverload): the operator
        args (tuple): sample arguments
        kwargs (dict, optional): sample keyword arguments
        test_utils (str or sequence of str): which checks: ``test_schema`` (only the arguments that
            the schema says are changed, no result is an argument's memory),
            ``test_autograd_registration``, ``test_faketensor`` (the fake results have the real
            ones' shapes and dtypes), ``test_aot_dispatch_dynamic`` (gradients can be computed)
        raise_exception (bool): raise at the first failure. Default: True

    Returns:
        for each check ``"SUCCESS"``, or the exception

    See https://docs.pytorch.org/docs/stable/library.html#torch.library.opcheck.
    """
    found = overload_behind(op)
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    results: dict[str, Any] = {}
    for name in names:
        if name not in _CHECKS:
            raise ValueError(f"opcheck: there is no check {name!r}; there are {', '.join(_ALL)}")
        try:
            _CHECKS[name](found, args, kwargs or {})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = error
    return results


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return T.clone(value.detach()).requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)([_copied(each) for each in value])
    return value


def _copies(args: Any, kwargs: Any) -> tuple[Any, Any]:
    return tuple([_copied(a) for a in args]), {name: _copied(v) for name, v in kwargs.items()}


def _schema(op: PythonOverload, args: Any, kwargs: Any) -> None:
    args, kwargs = _copies(args, kwargs)
    values, only = op.schema.bind(args, kwargs)
    before = [_copied(value) for value in (*values, *only.values())]
    result = op(*args, **kwargs)
    for argument, old, new in zip(op.schema.arguments, before, (*values, *only.values()), strict=True):  # fmt: skip  # noqa: E501
        for a, b in zip(tensors_in((old,)), tensors_in((new,)), strict=True):
            if not argument.is_write and not T.equal(a, b.detach()):
                raise GraphError(
                    f"Argument {argument.name} is not defined as mutable but was mutated"
                )
    op._check_new(result, tensors_in((*values, *only.values())))


def _autograd(op: PythonOverload, args: Any, kwargs: Any) -> None:
    """A derivative is registered where an argument requires a gradient; PyTorch asks no more."""
    if op.backward is None and {"autograd", "implicit"}.isdisjoint(op.kernels):
        tensors = tensors_in((*args, *kwargs.values()))
        if any([t.requires_grad for t in tensors]) and not op.is_functional:
            raise GraphError(f"{op}: no derivative is registered; use register_autograd")


def _fake(op: PythonOverload, args: Any, kwargs: Any) -> None:
    args, kwargs = _copies(args, kwargs)
    real = tensors_in((op(*args, **kwargs),))
    meta = [_on_meta(value) for value in args], {n: _on_meta(v) for n, v in kwargs.items()}
    fake = tensors_in((op(*meta[0], **meta[1]),))
    if [(t.shape, t.dtype) for t in real] != [(t.shape, t.dtype) for t in fake]:
        raise GraphError(
            f"{op}: the fake results have other shapes or dtypes than the real ones: "
            f"{[(tuple(t.shape), t.dtype) for t in fake]} and "
            f"{[(tuple(t.shape), t.dtype) for t in real]}"
        )


def _on_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().to("meta")
    if isinstance(value, (list, tuple)):
        return type(value)([_on_meta(each) for each in value])
    return value


def _gradients(op: PythonOverload, args: Any, kwargs: Any) -> None:
    inputs = [t for t in tensors_in((*args, *kwargs.values())) if t.requires_grad]
    if not inputs:
        return
    results = [t for t in tensors_in((op(*args, **kwargs),)) if t.requires_grad]
    if not results:
        raise ArgumentError(f"{op}: no result requires a gradient")
    grad(results, inputs, [T.ones_like(t) for t in results], allow_unused=True)


_CHECKS = {"test_schema": _schema, "test_autograd_registration": _autograd,
           "test_faketensor": _fake, "test_aot_dispatch_dynamic": _gradients}  # fmt: skip
