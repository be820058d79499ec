"""Products of matrices and vectors: matmul and its kin. One record per op.

Each is one ``MatMul`` over the operands' own strides (see ``product``): transposed, sliced and
broadcast operands are read where they lie. Gradients are products with transposed views.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from antorcha.core import dtypes
from antorcha.errors import DtypeError, ShapeError
from antorcha.ops.kinds.lapack import adjoint
from antorcha.ops.kinds.product import Product, inner_sizes_differ, product_op
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.types import Any, OptTensor, StaticNumber, Tensor
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout

NN = "nn.functional"


# ----------------------------------------------------------------------------------- seeing layouts
def row(layout: Layout) -> Layout:
    """A vector as a matrix of one row."""
    return L.layout((1, *layout.shape), (0, *layout.strides), layout.dtype, layout.device)


def column(layout: Layout) -> Layout:
    """A vector as a matrix of one column."""
    return L.layout((*layout.shape, 1), (*layout.strides, 0), layout.dtype, layout.device)


def turned(layout: Layout) -> Layout:
    """A matrix with its last two dims exchanged."""
    shape = (*layout.shape[:-2], layout.shape[-1], layout.shape[-2])
    strides = (*layout.strides[:-2], layout.strides[-1], layout.strides[-2])
    return L.layout(shape, strides, layout.dtype, layout.device)


def want_dims(op: str, name: str, layout: Layout, ndim: int) -> None:
    if layout.ndim != ndim:
        raise ShapeError(
            "{op}: {name} must be a {wanted}D tensor, but it has shape {0.shape}",
            reason="two dims", op=op, operands=(layout,), name=name, wanted=ndim,
        )  # fmt: skip


def conjugate(x: Tensor) -> Tensor:
    return T.conj(x) if x._layout.dtype.kind == "c" else x


# ---------------------------------------------------------------------------------------- matmul
@product_op()
def matmul(input: Tensor, other: Tensor):
    """The matrix product ``input @ other``; leading dims are batches and broadcast.

    Two vectors give their dot product; a vector on the left is a row, on the right a column, and
    the dim that makes it one does not show in the result. Integers multiply in their own dtype.

    >>> torch.matmul(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 10.]))
    tensor([21., 43.])
    """
    if input.ndim == 0 or other.ndim == 0:
        raise ShapeError(
            "matmul: both arguments to matmul need to be at least 1D, but they are {one}D and "
            "{two}D. Use {fix} to scale.",
            reason="scale", op="matmul", operands=(input, other), one=input.ndim, two=other.ndim,
            fix="a * b",
        )  # fmt: skip
    a = row(input) if input.ndim == 1 else input
    b = column(other) if other.ndim == 1 else other
    if a.shape[-1] != b.shape[-2]:
        raise inner_sizes_differ("matmul", tuple(input.shape), tuple(other.shape))
    hide = (*((-2,) if input.ndim == 1 else ()), *((-1,) if other.ndim == 1 else ()))
    node = MATMUL_NODES.get((input.ndim, other.ndim), "unsafe_view")
    return Product(a, b, hide=hide, node=node)


MATMUL_NODES = {(1, 1): "dot", (2, 1): "mv", (1, 2): "SqueezeBackward4", (2, 2): "mm"}


@matmul.derivative
def _(g, input, other, needs):
    left, right = input._layout.ndim, other._layout.ndim
    if left == 2 and right == 2:
        return _of_matrices(g, input, other, needs)
    if left == 1 and right == 1:
        return g * conjugate(other), g * conjugate(input)
    a = T.unsqueeze(input, 0) if left == 1 else input
    b = T.unsqueeze(other, -1) if right == 1 else other
    if left == 1:
        g = T.unsqueeze(g, -2)
    if right == 1:
        g = T.unsqueeze(g, -1)
    of_a = of_b = None
    if needs[0]:
        of_a = T.sum_to_size(T.matmul(g, adjoint(b)), a._layout.shape)
        of_a = T.squeeze(of_a, 0) if left == 1 else of_a
    if needs[1]:
        if b._layout.ndim == 2 and a._layout.ndim > 2:  # a batch times one matrix: one product
            rows = T.reshape(a, (-1, a._layout.shape[-1])) if a._layout.numel else a
            if a._layout.numel and g._layout.numel:
                of_b = T.mm(adjoint(rows), T.reshape(g, (-1, g._layout.shape[-1])))
        if of_b is None:
            of_b = T.sum_to_size(T.matmul(adjoint(a), g), b._layout.shape)
        of_b = T.squeeze(of_b, -1) if right == 1 else of_b
    return of_a, of_b


@matmul.batches
def _(batch, run, input, other):
    a, b = input._layout.ndim, other._layout.ndim
    if not batch.has(other) and b <= 2:  # one matrix, or vector, beside many rows
        return T.matmul(batch.whole(input), other)
    left = input if a > 1 else T.unsqueeze(input, 0)
    right = other if b > 1 else T.unsqueeze(other, 1)
    ndim = max(a, b, 2)
    result = T.matmul(batch.beside(left, ndim), batch.beside(right, ndim))
    result = result if a > 1 else T.squeeze(result, -2)
    return result if b > 1 else T.squeeze(result, -1)


def _of_matrices(
    g: Tensor, input: Tensor, other: Tensor, needs: Sequence[bool]
) -> tuple[OptTensor, OptTensor]:
    """The gradients of a product of two matrices."""
    return (
        T.mm(g, adjoint(other)) if needs[0] else None,
        T.mm(adjoint(input), g) if needs[1] else None,
    )


@matmul.samples
def _(make):
    yield make(3, 4), make(4, 5)
    yield make(4), make(4)
    yield make(3, 4), make(4)
    yield make(4), make(4, 5)
    yield make(2, 3, 4), make(4, 5)
    yield make(2, 3, 4), make(2, 4, 5)
    yield make(2, 1, 3, 4), make(5, 4, 2)
    yield make(2, 3, 4), make(4)
    yield make(4), make(2, 4, 3)
    yield make(4, 3).t(), make(5, 4).t()
    yield make(3, 0), make(0, 2)
    yield (make(3, 2), make(3, 2)), {}, RuntimeError, "inner sizes 2 and 3 differ"
    yield (make(), make(3)), {}, RuntimeError, "at least 1D"
    yield (make(2, 3, 4), make(3, 4, 5)), {}, RuntimeError, "do not broadcast"
    yield (make(2, 2).float(), make(2, 2).double()), {}, RuntimeError, "same dtype"


@product_op()
def mm(input: Tensor, mat2: Tensor):
    """The product of two matrices, (n, m) and (m, p); see ``matmul``.

    >>> torch.mm(torch.tensor([[1., 2.]]), torch.tensor([[3.], [4.]]))
    tensor([[11.]])
    """
    want_dims("mm", "self", input, 2)
    want_dims("mm", "mat2", mat2, 2)
    return Product(input, mat2)


mm.derivative(lambda g, input, mat2, needs: _of_matrices(g, input, mat2, needs))


@mm.samples
def _(make):
    yield make(3, 4), make(4, 5)
    yield make(4, 3).t(), make(5, 4).t()


@product_op()
def bmm(input: Tensor, mat2: Tensor):
    """The products of two stacks of matrices, (b, n, m) and (b, m, p); no broadcasting.

    >>> torch.bmm(torch.ones(2, 1, 3), torch.ones(2, 3, 1))
    tensor([[[3.]],
    <BLANKLINE>
            [[3.]]])
    """
    want_dims("bmm", "batch1", input, 3)
    want_dims("bmm", "batch2", mat2, 3)
    if input.shape[0] != mat2.shape[0]:
        raise ShapeError(
            f"bmm: {tuple(input.shape)} @ {tuple(mat2.shape)}: the batches of {input.shape[0]} and "
            f"{mat2.shape[0]} differ. matmul broadcasts batches of 1."
        )
    return Product(input, mat2)


@bmm.derivative
def _(g, input, mat2, needs):
    return (
        T.bmm(g, adjoint(mat2)) if needs[0] else None,
        T.bmm(adjoint(input), g) if needs[1] else None,
    )


@bmm.samples
def _(make):
    yield make(2, 3, 4), make(2, 4, 5)
    yield make(2, 4, 3).transpose(1, 2), make(2, 4, 5)


@product_op(samples=of_shapes((3, 4), (4,)))
def mv(input: Tensor, vec: Tensor):
    """A matrix (n, m) times a vector (m).

    >>> torch.mv(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 10.]))
    tensor([21., 43.])
    """
    want_dims("mv", "input", input, 2)
    want_dims("mv", "vec", vec, 1)
    return Product(input, column(vec), hide=(-1,))


@mv.derivative
def _(g, input, vec, needs):
    return (
        T.mul(T.unsqueeze(g, 1), conjugate(vec)) if needs[0] else None,
        T.mv(adjoint(input), g) if needs[1] else None,
    )


@product_op(samples=of_shapes((4,), (4,)))
def dot(input: Tensor, tensor: Tensor):
    """The dot product of two vectors of equal size.

    >>> torch.dot(torch.tensor([2., 3.]), torch.tensor([2., 1.]))
    tensor(7.)
    """
    want_dims("dot", "input", input, 1)
    want_dims("dot", "tensor", tensor, 1)
    if input.numel != tensor.numel:
        raise ShapeError(
            "dot: the vectors have {one} and {other} elements", reason="vectors", op="dot",
            operands=(input, tensor), one=input.numel, other=tensor.numel,
        )  # fmt: skip
    return Product(row(input), column(tensor), hide=(-2, -1))


dot.derivative(lambda g, input, tensor: (g * conjugate(tensor), g * conjugate(input)))


@composite(samples=of_shapes((4,), (4,)))
def vdot(input: Tensor, other: Tensor):
    """The dot product of two vectors, the first conjugated.

    >>> torch.vdot(torch.tensor([2., 3.]), torch.tensor([2., 1.]))
    tensor(7.)
    """
    return T.dot(conjugate(input), other)


@composite()
def inner(input: Tensor, other: Tensor):
    """The products along the last dim of both: every row of one with every row of the other.

    >>> torch.inner(torch.tensor([1., 2., 3.]), torch.tensor([0., 2., 1.]))
    tensor(7.)
    """
    a, b = input._layout, other._layout
    if a.ndim == 0 or b.ndim == 0:
        return T.mul(input, other)
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            f"inner: the last dimensions {a.shape[-1]} and {b.shape[-1]} of {tuple(a.shape)} and "
            f"{tuple(b.shape)} must match"
        )
    return T.tensordot(input, other, ((-1,), (-1,)))


@inner.samples
def _(make):
    yield make(4), make(4)
    yield make(2, 4), make(3, 4)


@composite(aliases=("ger",), samples=of_shapes((3,), (4,)))
def outer(input: Tensor, vec2: Tensor):
    """Every element of one vector times every element of the other: (n, m).

    >>> torch.outer(torch.tensor([1., 2.]), torch.tensor([1., 10.]))
    tensor([[ 1., 10.],
            [ 2., 20.]])
    """
    want_dims("outer", "input", input._layout, 1)
    want_dims("outer", "vec2", vec2._layout, 1)
    return T.mul(T.unsqueeze(input, 1), vec2)


def _is_matmul(*ndims: int) -> Any:
    """The batching rule of an op that is matmul of operands of so many dims."""

    def rule(batch: Any, run: Any, *operands: Tensor) -> Tensor:
        for name, operand, ndim in zip(run.signature.names, operands, ndims, strict=True):
            want_dims(run.name, name, operand._layout, ndim)
        return T.matmul(*operands)

    return rule


mm.batches(_is_matmul(2, 2))
bmm.batches(_is_matmul(3, 3))
mv.batches(_is_matmul(2, 1))
dot.batches(_is_matmul(1, 1))


# ------------------------------------------------------------------------- products that are added
def _sum_of_product(
    batch: Any, run: Any, input: Tensor, a: Tensor, b: Tensor, beta: Any, alpha: Any
) -> Tensor:
    """The batching rule of addmm and its like: a product, and a sum."""
    result = _scaled(T.matmul(a, b), alpha)
    result = result if beta == 0 else T.add(_scaled(input, beta), result)
    return T.copy_(input, result) if run.is_inplace else result


def _scaled(x: Tensor, by: complex) -> Tensor:
    return x if by == 1 else x * by


def _conjugate(number: Any) -> complex:
    return number.conjugate() if isinstance(number, complex) else number


@product_op(inplace=True)
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: StaticNumber = 1, alpha: StaticNumber = 1
):
    """``beta * input + alpha * (mat1 @ mat2)``; ``input`` broadcasts. With ``beta=0`` it is not
    read.

    >>> torch.addmm(torch.tensor([100.]), torch.tensor([[1., 2.]]), torch.tensor([[3.], [4.]]))
    tensor([[111.]])
    """
    want_dims("addmm", "mat1", mat1, 2)
    want_dims("addmm", "mat2", mat2, 2)
    return Product(mat1, mat2, input, alpha, beta, order=(1, 2, 0))


@addmm.derivative
def _(g, mat1, mat2, beta, alpha, needs):
    beta, scaled = _conjugate(beta), _scaled(g, _conjugate(alpha))
    return _scaled(g, beta) if needs[0] else None, *_of_matrices(scaled, mat1, mat2, needs[1:])


@addmm.samples
def _(make):
    yield make(3, 5), make(3, 4), make(4, 5)
    yield (make(5), make(3, 4), make(4, 5)), {"alpha": 0.5, "beta": 2}


@product_op(inplace=True)
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: StaticNumber = 1, alpha: StaticNumber = 1
):
    """``beta * input + alpha * (mat @ vec)``.

    >>> torch.addmv(torch.tensor([100.]), torch.tensor([[1., 2.]]), torch.tensor([3., 4.]))
    tensor([111.])
    """
    want_dims("addmv", "mat", mat, 2)
    want_dims("addmv", "vec", vec, 1)
    return Product(mat, column(vec), input, alpha, beta, hide=(-1,), order=(1, 2, 0))


@addmv.derivative
def _(g, mat, vec, beta, alpha):
    beta, scaled = _conjugate(beta), _scaled(g, _conjugate(alpha))
    return (
        _scaled(g, beta), T.mul(T.unsqueeze(scaled, 1), conjugate(vec)), T.mv(adjoint(mat), scaled)
    )  # fmt: skip


@addmv.samples
def _(make):
    yield make(3), make(3, 4), make(4)
    yield (make(3), make(3, 4), make(4)), {"alpha": 0.5, "beta": 2}


@product_op(inplace=True)
def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: StaticNumber = 1,
    alpha: StaticNumber = 1,
):
    """``beta * input + alpha * (batch1 @ batch2)`` for stacks of matrices.

    >>> torch.baddbmm(torch.ones(1), torch.ones(1, 1, 3), torch.ones(1, 3, 1))
    tensor([[[4.]]])
    """
    want_dims("baddbmm", "batch1", batch1, 3)
    want_dims("baddbmm", "batch2", batch2, 3)
    if batch1.shape[0] != batch2.shape[0]:
        raise ShapeError(
            f"baddbmm: the batches of {tuple(batch1.shape)} and {tuple(batch2.shape)} differ"
        )
    return Product(batch1, batch2, input, alpha, beta, order=(1, 2, 0))


@baddbmm.derivative
def _(g, batch1, batch2, beta, alpha):
    beta, scaled = _conjugate(beta), _scaled(g, _conjugate(alpha))
    return (
        _scaled(g, beta), T.bmm(scaled, adjoint(batch2)), T.bmm(adjoint(batch1), scaled)
    )  # fmt: skip


@baddbmm.samples
def _(make):
    yield make(2, 3, 5), make(2, 3, 4), make(2, 4, 5)
    yield (make(5), make(2, 3, 4), make(2, 4, 5)), {"alpha": 0.5, "beta": 2}


@composite(samples=of_shapes((3, 5), (2, 3, 4), (2, 4, 5)))
def addbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: StaticNumber = 1,
    alpha: StaticNumber = 1,
):
    """``beta * input + alpha * sum_b (batch1[b] @ batch2[b])``.

    >>> torch.addbmm(torch.ones(1, 1), torch.ones(2, 1, 3), torch.ones(2, 3, 1))
    tensor([[7.]])
    """
    want_dims("addbmm", "batch1", batch1._layout, 3)
    want_dims("addbmm", "batch2", batch2._layout, 3)
    # side by side, the stacks are two matrices whose product is the sum
    n = batch1._layout.shape[1]
    wide = T.reshape(T.transpose(batch1, 0, 1), (n, -1))
    tall = T.reshape(batch2, (-1, batch2._layout.shape[2]))
    return T.addmm(input, wide, tall, beta=beta, alpha=alpha)


@composite()
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: StaticNumber = 1, alpha: StaticNumber = 1
):
    """``beta * input + alpha * outer(vec1, vec2)``.

    >>> torch.addr(torch.zeros(2, 2), torch.tensor([1., 2.]), torch.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    result = _scaled(T.outer(vec1, vec2), alpha)
    kinds = {t._layout.dtype.kind for t in (input, vec1, vec2)}
    for name, number in (("beta", beta), ("alpha", alpha)):
        if not kinds & {"f", "c"} and isinstance(number, (float, complex)):
            raise DtypeError(
                f"addr: For integral input tensors, argument {name} must not be a floating point "
                f"number, but is {number}."
            )
    result = result if beta == 0 else T.add(_scaled(input, beta), result)
    if kinds == {"b"} and result._layout.dtype.kind != "b":
        return T.to_dtype(result, dtypes.bool_)  # the numbers do not take part in the promotion
    return result


@addr.samples
def _(make):
    yield make(3, 4), make(3), make(4)
    yield (make(3, 4), make(3), make(4)), {"alpha": 2, "beta": 0.5}


for _each in (addmm, addmv, baddbmm):
    _each.batches(_sum_of_product)


# ------------------------------------------------------------------------------------ nn.functional
@product_op(namespace=NN)
def linear(input: Tensor, weight: Tensor, bias: OptTensor = None):
    """``input @ weight.T + bias``: a linear layer, in one pass.

    Shapes: input (..., in), weight (out, in), bias (out); the result is (..., out).

    >>> torch.nn.functional.linear(torch.ones(1, 2), torch.tensor([[1., 2.]]), torch.tensor([3.]))
    tensor([[6.]])
    """
    if weight.ndim not in (1, 2) or input.ndim == 0:
        raise ShapeError(
            f"linear: input (..., in) and weight (out, in) are needed, not {tuple(input.shape)} "
            f"and {tuple(weight.shape)}"
        )
    if input.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            "linear: input {0.shape} has {got} features, weight {1.shape} takes {wanted}: inner "
            "sizes differ.",
            reason="linear", op="linear", operands=(input, weight), got=input.shape[-1],
            wanted=weight.shape[-1],
        )  # fmt: skip
    out = weight.shape[0] if weight.ndim == 2 else None
    if bias is not None and out is not None and tuple(bias.shape) not in ((out,), (1,), ()):
        raise ShapeError(
            f"linear: bias {tuple(bias.shape)} must have shape ({out},), for weight "
            f"{tuple(weight.shape)}"
        )
    hide = (-2,) if input.ndim == 1 else ()
    if weight.ndim == 1:
        hide = (*hide, -1)
    a = row(input) if input.ndim == 1 else input
    b = column(weight) if weight.ndim == 1 else turned(weight)
    flat = "addmm" if bias is not None else "mm"
    node = flat if input.ndim == 2 else "view" if bias is not None else "unsafe_view"
    return Product(a, b, bias, hide=hide, node=node)


@linear.batches
def _(batch, run, input, weight, bias):
    if not batch.has(weight) and not batch.has(bias) and weight._layout.ndim == 2:
        return T.linear(batch.whole(input), weight, bias)
    result = T.matmul(input, T.t(weight))
    return result if bias is None else T.add(result, bias)


@linear.derivative
def _(g, input, weight, bias_layout, needs):
    if weight._layout.ndim == 1:
        of_weight = T.mv(adjoint(T.reshape(input, (-1, input._layout.shape[-1]))),
                         T.reshape(g, (-1,)))  # fmt: skip
        of_input = T.mul(T.unsqueeze(g, -1), conjugate(weight))
        return of_input, of_weight, g if bias_layout is not None else None
    flat = g if g._layout.ndim == 2 else T.reshape(g, (-1, weight._layout.shape[0]))
    of_input = of_weight = of_bias = None
    if needs[0]:
        of_input = T.matmul(g, conjugate(weight))
    if needs[1]:
        rows = input if input._layout.ndim == 2 else T.reshape(input, (-1, weight._layout.shape[1]))
        of_weight = T.mm(T.t(flat), conjugate(rows))
    if bias_layout is not None and needs[2]:
        of_bias = T.sum(flat, 0)
    return of_input, of_weight, of_bias


@linear.samples
def _(make):
    yield make(3, 4), make(5, 4), make(5)
    yield make(3, 4), make(5, 4)
    yield make(2, 3, 4), make(5, 4), make(5)
    yield make(4), make(5, 4), make(5)
    yield (make(3, 4), make(5, 3)), {}, RuntimeError, "inner sizes differ"
    yield (make(3, 4), make(5, 4), make(4)), {}, RuntimeError, "bias"


@composite(namespace=NN, samples=of_shapes((3, 4), (3, 5), (2, 4, 5), (2,)))
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: OptTensor = None):
    """``input1 @ weight[k] @ input2`` for each output k, plus ``bias``.

    Shapes: (..., in1), (..., in2), weight (out, in1, in2); the result is (..., out).

    >>> torch.nn.functional.bilinear(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2, 2))
    tensor([[4.]])
    """
    one, other, whole = input1.shape, input2.shape, weight.shape
    if one[:-1] != other[:-1] or tuple(whole[1:]) != (one[-1], other[-1]):
        raise ShapeError(
            "bilinear: expected inputs (..., in1) and (..., in2) with the same leading dims and a "
            f"weight (out, in1, in2), got {tuple(one)}, {tuple(other)} and {tuple(whole)}"
        )
    flat = input1.ndim == 2
    rows = input1 if flat else T.reshape(input1, (math.prod(one[:-1]), one[-1]))
    columns = T.unsqueeze(input2 if flat else T.reshape(input2, (rows.shape[0], other[-1])), -1)
    seen = T.transpose(T.matmul(rows, weight), 0, 1)  # (rows, out, in2)
    result = T.squeeze(T.matmul(seen, columns), -1)  # (rows, out)
    result = result if flat else T.reshape(result, (*one[:-1], whole[0]))
    return result if bias is None else T.add(result, bias)
