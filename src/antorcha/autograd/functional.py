"""``torch.autograd.functional``: Jacobians, Hessians and their products with vectors.

See https://docs.pytorch.org/docs/stable/autograd.html#functional-higher-level-api.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.autograd import grad
from antorcha.autograd.modes import enable_grad
from antorcha.core.lazy import np
from antorcha.errors import ArgumentError, GraphError, MissingFeature, explain_missing
from antorcha.ops.kinds.record import T
from antorcha.runtime.call.node import edge_of
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.interop import from_numpy

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Tensor, ...]


def _as_tuple(value: Any, what: str, fn: str) -> tuple[bool, Tensors]:
    """Was it a tuple, and as a tuple of tensors."""
    many = isinstance(value, (tuple, list))
    listed = tuple(value) if many else (value,)
    for k, each in enumerate(listed):
        if not isinstance(each, Tensor):
            where = f" at index {k}" if many else ""
            raise ArgumentError(
                f"The {what} given to {fn} must be either a Tensor or a tuple of Tensors but the "
                f"value{where} has type {type(each).__name__}."
            )
    return many, listed


def _packed(many: bool, values: Sequence[Any]) -> Any:
    return tuple(values) if many else values[0]


def _prepared(inputs: Tensors, create_graph: bool) -> Tensors:
    """The inputs as the variables to differentiate by; still part of their graph if asked."""
    if create_graph:
        return tuple([T.alias(x) if edge_of(x) is not None else _variable(x) for x in inputs])
    return tuple([_variable(x) for x in inputs])


def _variable(x: Tensor) -> Tensor:
    return x.detach().requires_grad_()


def _finished(values: Sequence[Any], create_graph: bool) -> list[Any]:
    """Results, outside of the graph unless it was asked for."""
    return [v if create_graph or v is None else v.detach() for v in values]


def _check_graph(values: Sequence[Tensor], what: str, strict: bool) -> None:
    if strict:
        for k, each in enumerate(values):
            if edge_of(each) is None:
                raise GraphError(
                    f"Output {k} of {what} is independent of the inputs. This is not allowed in "
                    "strict mode."
                )


def _filled(
    found: Sequence[Tensor | None], inputs: Tensors, strict: bool, what: str
) -> list[Tensor]:
    """Gradients, zeros where there is none."""
    result = []
    for k, (g, x) in enumerate(zip(found, inputs, strict=True)):
        if g is None and strict:
            raise GraphError(
                f"The output of {what} is independent of input {k}. This is not allowed in strict "
                "mode."
            )
        result.append(T.zeros_like(x) if g is None else g)
    return result


def _vectors(v: Any, like: Tensors, what: str, fn: str) -> Tensors:
    """The vectors to multiply with, checked; ones for a single number."""
    if v is None:
        if len(like) != 1 or like[0]._layout.numel != 1:
            raise GraphError(
                f"The vector v can only be None if {what} is a single Tensor with a single element."
            )
        return (T.ones_like(like[0]),)
    listed = _as_tuple(v, "v", fn)[1]
    if len(listed) != len(like):
        raise GraphError(
            f"{fn}: v is a tuple of invalid length: should be {len(like)} but got {len(listed)}."
        )
    for k, (each, want) in enumerate(zip(listed, like, strict=True)):
        if each._layout.shape != want._layout.shape:
            raise GraphError(
                f"{fn}: entry {k} in v has invalid size: should be {tuple(want._layout.shape)} but "
                f"got {tuple(each._layout.shape)}."
            )
    return listed


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """(func(*inputs), the product of ``v`` with its Jacobian).

    >>> torch.autograd.functional.vjp(lambda x: x * x, torch.tensor([1., 2.]), torch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        many_in, given = _as_tuple(inputs, "inputs", "vjp")
        variables = _prepared(given, create_graph)
        many_out, outputs = _as_tuple(func(*variables), "outputs of func", "vjp")
        _check_graph(outputs, "the user-provided function", strict)
        vector = _vectors(v, outputs, "the user-provided function returns", "vjp")
        found = _gradients(outputs, variables, vector, create_graph)
        filled = _filled(found, variables, strict, "the user-provided function")
    return (
        _packed(many_out, _finished(outputs, create_graph)),
        _packed(many_in, _finished(filled, create_graph)),
    )


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """(func(*inputs), the product of its Jacobian with ``v``), by differentiating twice.

    >>> torch.autograd.functional.jvp(lambda x: x * x, torch.tensor([1., 2.]), torch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        _, given = _as_tuple(inputs, "inputs", "jvp")
        variables = _prepared(given, create_graph)
        vector = _vectors(v, variables, "the input to the user-provided function", "jvp")
        many_out, outputs = _as_tuple(func(*variables), "outputs of func", "jvp")
        _check_graph(outputs, "the user-provided function", strict)
        # u -> vjp(u) is linear: its own vjp with v is the jvp, for any u
        dummies = tuple([_variable(T.zeros_like(out)) for out in outputs])
        found = _gradients(outputs, variables, dummies, True)
        reached = [(g, w) for g, w in zip(found, vector, strict=True) if g is not None]
        products = _gradients(
            tuple([g for g, _ in reached]), dummies, tuple([w for _, w in reached]), create_graph
        )
        filled = _filled(products, outputs, strict, "the Jacobian")
    return (
        _packed(many_out, _finished(outputs, create_graph)),
        _packed(many_out, _finished(filled, create_graph)),
    )


def _gradients(
    outputs: Tensors, inputs: Tensors, vectors: Tensors, create_graph: bool
) -> Sequence[Tensor | None]:
    """``grad``, with None for what depends on nothing."""
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if edge_of(o) is not None]
    if not pairs:
        return [None] * len(inputs)
    return grad([o for o, _ in pairs], inputs, [v for _, v in pairs], retain_graph=True,
                create_graph=create_graph, allow_unused=True)  # fmt: skip


def _scalar(outputs: Tensors, fn: str) -> None:
    if len(outputs) != 1 or outputs[0]._layout.numel != 1:
        raise GraphError(
            f"The function given to {fn} should return a single Tensor with a single element"
        )


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """(func(*inputs), the product of ``v`` with its Hessian); ``func`` gives one number.

    >>> x, v = torch.tensor([1., 2.]), torch.ones(2)
    >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), x, v)
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        many_in, given = _as_tuple(inputs, "inputs", "vhp")
        variables = _prepared(given, create_graph)
        vector = _vectors(v, variables, "the input to the user-provided function", "vhp")
        outputs = _as_tuple(func(*variables), "outputs of func", "vhp")[1]
        _scalar(outputs, "vhp")
        _check_graph(outputs, "the user-provided function", strict)
        first = _filled(
            _gradients(outputs, variables, (T.ones_like(outputs[0]),), True), variables, strict,
            "the user-provided function",
        )  # fmt: skip
        _check_graph(first, "the Jacobian of the user-provided function", strict)
        products = _gradients(tuple(first), variables, vector, create_graph)
        filled = _filled(products, variables, strict, "the Jacobian")
    value = _finished(outputs, create_graph)[0]
    return value, _packed(many_in, _finished(filled, create_graph))


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """(func(*inputs), the product of its Hessian with ``v``): the Hessian is symmetric, so ``vhp``.

    >>> x, v = torch.tensor([1., 2.]), torch.ones(2)
    >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), x, v)
    (tensor(9.), tensor([ 6., 12.]))
    """
    return vhp(func, inputs, v, create_graph, strict)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian: for each output and input a tensor of shape (output's, input's).

    One tensor for one of each, a tuple for several inputs or outputs, a tuple of tuples for both.

    >>> torch.autograd.functional.jacobian(lambda x: x * x, torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy != "reverse-mode":
        raise MissingFeature("jacobian: antorcha has no forward-mode differentiation (yet)")
    with enable_grad():
        many_in, given = _as_tuple(inputs, "inputs", "jacobian")
        variables = _prepared(given, create_graph)
        many_out, outputs = _as_tuple(func(*variables), "outputs of func", "jacobian")
        _check_graph(outputs, "the user-provided function", strict)
        rows = [_jacobian_of(out, variables, create_graph, strict) for out in outputs]
    packed = [_packed(many_in, _finished(row, create_graph)) for row in rows]
    return _packed(many_out, packed)


def _jacobian_of(out: Tensor, variables: Tensors, create_graph: bool, strict: bool) -> list[Tensor]:
    layout = out._layout
    passes = []
    for seed in _units(out):
        found = _gradients((out,), variables, (seed,), create_graph)
        passes.append(_filled(found, variables, strict, "the user-provided function"))
    if not passes:
        return [T.reshape(T.zeros_like(x), (-1,)).new_zeros((*layout.shape, *x._layout.shape))
                for x in variables]  # fmt: skip
    return [
        T.reshape(T.stack(tuple(column)), (*layout.shape, *x._layout.shape))
        for column, x in zip(zip(*passes, strict=True), variables, strict=True)
    ]


def _units(out: Tensor) -> list[Tensor]:
    """For each element, the tensor that is 1 there and else 0."""
    layout = out._layout
    result = []
    for k in range(layout.numel):
        unit = np.zeros(layout.numel, layout.dtype.np)
        unit[k] = 1
        result.append(from_numpy(unit.reshape(tuple(layout.shape))).to(layout.device))
    return result


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function of one number: a tensor, or a tuple of tuples for several inputs.

    >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    many_in, given = _as_tuple(inputs, "inputs", "hessian")

    def first(*variables: Tensor) -> Any:
        outputs = _as_tuple(func(*variables), "outputs of func", "hessian")[1]
        _scalar(outputs, "hessian")
        rows = _jacobian_of(T.reshape(outputs[0], ()), variables, True, strict)
        _check_graph(rows, "the Jacobian of the user-provided function", strict)
        return tuple(rows)

    result = jacobian(first, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return result if many_in else result[0][0]


explain_missing("torch.autograd.functional", globals())
