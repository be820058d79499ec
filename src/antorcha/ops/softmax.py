"""softmax and its like: one pass over each row in cache, forward and backward. One record per op.

``dim`` may be any dim: see ``rows``. ``dtype=`` converts the input as it is read.
"""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core.dtypes import dtype as DType
from antorcha.core.shapes import normalize_dim
from antorcha.errors import warn
from antorcha.lang import expr as E
from antorcha.ops.kinds.pointwise import UnsupportedDtype
from antorcha.ops.kinds.record import T, composite, expose
from antorcha.ops.kinds.rows import Row, rows
from antorcha.ops.kinds.types import Bool, Dim, Dtype, Float, Int, Tensor


def _plan(name: str, row: _Any, input: _Any, dim: int, dtype: DType | None) -> Row:
    result = dtype or input.dtype
    d = normalize_dim(dim, input.ndim, op=name)
    if result.kind != "f":
        raise UnsupportedDtype(
            "{op}: not implemented for {dtype}; give {fix}, or cast the input.",
            reason="needs float", op=name, operands=(input,), dtype=result,
            fix="dtype=torch.float32",
        )  # fmt: skip
    return Row(row, d, tuple(input.shape), [(input, result)], [(tuple(input.shape), result)])


def _backward(name: str, row: _Any, grad: _Any, result: _Any, dim: int) -> Row:
    d = normalize_dim(dim, result.ndim, op=name)
    shape, dtype = tuple(result.shape), result.dtype
    return Row(row, d, shape, [(grad, dtype), (result, dtype)], [(shape, dtype)])


@rows()
def softmax(input: Tensor, dim: Dim, dtype: Dtype = None):
    """``exp(input) / exp(input).sum(dim)``, without overflow: the elements along ``dim`` sum to 1.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html.

    >>> torch.softmax(torch.tensor([1., 2., 3.]), 0)
    tensor([0.0900, 0.2447, 0.6652])
    """

    def row(x: E.Expr) -> E.Expr:
        e = E.exp(x - E.detach(x.amax()))
        return e / e.sum()

    return _plan("softmax", row, input, dim, dtype)


softmax.derivative(lambda g, out, dim: T.softmax_backward(g, out, dim))


@softmax.samples
def _(make):
    yield make(3, 4), 1
    yield make(3, 4), 0
    yield make(2, 3, 4), -2
    yield make(), 0
    yield (make(3, 4), 2), {}, IndexError, "out of range"
    yield (make(3).long(), 0), {}, RuntimeError, "not implemented"


@rows(function=False, method=False, out=False)
def softmax_backward(grad: Tensor, result: Tensor, dim: Dim):
    """The gradient of softmax, from its result: ``result * (grad - (grad * result).sum(dim))``."""

    def row(g: E.Expr, y: E.Expr) -> E.Expr:
        return y * (g - (g * y).sum())

    return _backward("softmax_backward", row, grad, result, dim)


@softmax_backward.derivative
def _(g, grad, result, dim):
    shared = T.sum(g * result, dim, True)
    to_result = g * (grad - T.sum(grad * result, dim, True)) - grad * shared
    return result * (g - shared), to_result


@rows()
def log_softmax(input: Tensor, dim: Dim, dtype: Dtype = None):
    """``log(softmax(input))``, computed without losing accuracy.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html.

    >>> torch.log_softmax(torch.tensor([1., 2., 3.]), 0)
    tensor([-2.4076, -1.4076, -0.4076])
    """

    def row(x: E.Expr) -> E.Expr:
        y = x - E.detach(x.amax())
        return y - E.log(E.exp(y).sum())

    return _plan("log_softmax", row, input, dim, dtype)


log_softmax.derivative(lambda g, out, dim: T.log_softmax_backward(g, out, dim))


@log_softmax.samples
def _(make):
    yield make(3, 4), 1
    yield make(3, 4), 0
    yield make(2, 3, 4), -2


@rows(function=False, method=False, out=False)
def log_softmax_backward(grad: Tensor, result: Tensor, dim: Dim):
    """The gradient of log_softmax, from its result: ``grad - exp(result) * grad.sum(dim)``."""

    def row(g: E.Expr, y: E.Expr) -> E.Expr:
        return g - E.exp(y) * g.sum()

    return _backward("log_softmax_backward", row, grad, result, dim)


@log_softmax_backward.derivative
def _(g, grad, result, dim):
    p = T.exp(result)
    to_grad = g - T.sum(g * p, dim, True)
    return to_grad, -(g * p) * T.sum(grad, dim, True)


def _chosen_dim(name: str, ndim: int) -> int:
    """PyTorch's old choice of the dim when none is given, with its warning."""
    warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument."
    )
    return 0 if ndim in (0, 1, 3) else 1


def _functional(name: str, op: _Any) -> None:
    """``torch.nn.functional.<name>``, whose ``dim`` may be left out and whose dtype is third."""

    def functional(
        input: _Any, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
    ) -> _Any:
        if dim is None:
            dim = _chosen_dim(name, input._layout.ndim)
        return op(input, dim, dtype)

    functional.__name__ = functional.__qualname__ = name
    functional.__doc__ = op.__doc__
    expose(f"nn.functional.{name}", functional)


@composite(function=False, method=False, out=False)
def softmin(input: Tensor, dim: Dim, dtype: Dtype = None):
    """``softmax(-input)``.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmin.html.

    >>> torch.nn.functional.softmin(torch.tensor([1., 2., 3.]), 0)
    tensor([0.6652, 0.2447, 0.0900])
    """
    return T.softmax(T.neg(input), dim, dtype)


@softmin.samples
def _(make):
    yield make(3, 4), 1


for _name, _op in (("softmax", softmax), ("log_softmax", log_softmax), ("softmin", softmin)):
    _functional(_name, _op)
expose("special.softmax", softmax)
expose("special.log_softmax", log_softmax)


@composite(namespace="nn.functional", out=False)
def gumbel_softmax(logits: Tensor, tau: Float = 1.0, hard: Bool = False, eps: Float = 1e-10,
                   dim: Int = -1):  # fmt: skip
    """A sample of the Gumbel-softmax distribution; ``hard`` makes it one-hot, with soft gradients.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.gumbel_softmax.html.
    """
    noise = T.neg(T.log(T.empty_like(logits).exponential_()))
    soft = T.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = T.argmax(soft.detach(), dim, True)
    one_hot = T.zeros_like(soft).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
