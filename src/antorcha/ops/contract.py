"""Sums over named dims: einsum, tensordot, and chains of products. All are made of matmul.

Gradients follow from the products, sums and views that these ops call.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TypeAlias

from antorcha.core.shapes import normalize_dims
from antorcha.errors import ArgumentError, ShapeError
from antorcha.ops.kinds.arguments import listed
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Int, Tensor, Tensors
from antorcha.runtime.tensor import Tensor as TensorType

Label: TypeAlias = str | int
"""A letter; a negative number for a dim under ``...``, counted from the end."""
Labels: TypeAlias = tuple[Label, ...]
Labelled: TypeAlias = tuple[Tensor, Labels]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


# ---------------------------------------------------------------------------------------- einsum
@composite(method=False, out=False, rewrite=listed)
def einsum(equation: Any, operands: Tensors):
    """Sums products of the operands over the dims that ``equation`` names, Einstein's way.

    ``"ij,jk->ik"`` is a matrix product: a letter in several operands joins their dims, one that is
    not in the result is summed over. ``...`` stands for dims that broadcast. Without ``->`` the
    result has the letters that occur once, in order. The other form gives a list of dim numbers
    after each operand: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    >>> torch.einsum("ij,jk->ik", torch.tensor([[1., 2.]]), torch.tensor([[3.], [4.]]))
    tensor([[11.]])
    """
    if isinstance(equation, TensorType):
        equation, operands = from_lists((equation, *operands))
    if not isinstance(equation, str):
        raise ArgumentError(f"einsum: the equation must be a str, not {type(equation).__name__}")
    if not operands:
        raise ShapeError("einsum(): must provide at least one operand")
    terms, result = parse(equation, operands)
    sizes = sizes_of(terms, operands)
    parts: list[tuple[Any, Any]] = [
        simplified(x, labels, sizes) for x, labels in zip(operands, terms, strict=True)
    ]
    while len(parts) > 1:
        a, b = cheapest(parts, result, sizes)
        second, first = parts.pop(b), parts.pop(a)
        others = {each for _x, labels in parts for each in labels}
        parts.append(contract(*first, *second, others | set(result)))
    return arranged(*parts[0], result)


def from_lists(args: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """The form with a list of dims after each operand, as an equation."""
    operands, texts = list(args[0::2]), list(args[1::2])
    result = None
    if len(args) % 2:
        result = operands.pop()

    def text(dims: Sequence[Any]) -> str:
        return "".join(["..." if d is Ellipsis else LETTERS[d] for d in dims])

    equation = ",".join([text(each) for each in texts])
    return equation if result is None else f"{equation}->{text(result)}", tuple(operands)


def parse(equation: str, operands: Sequence[Any]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the result; dims under ``...`` count from the end."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(operands):
        raise ShapeError(
            f"einsum(): {equation!r} names {len(texts)} operands, but {len(operands)} were given"
        )
    terms, widest = [], 0
    for k, (text, x) in enumerate(zip(texts, operands, strict=True)):
        head, dots, tail = text.partition("...")
        check_letters(equation, head + tail)
        ndim = x._layout.ndim
        rest = ndim - len(head) - len(tail)
        if rest < 0 or (rest and not dots):
            raise ShapeError(
                f"einsum(): the number of subscripts in {text!r} does not match the dimensions of "
                f"operand {k}, whose shape is {tuple(x._layout.shape)}"
            )
        widest = max(widest, rest)
        terms.append((*head, *range(-rest, 0), *tail))
    every = tuple(range(-widest, 0))
    if not arrow:
        letters = [each for each in left if each.isalpha()]
        once = sorted([each for each in letters if letters.count(each) == 1])
        return terms, (*every, *once)
    head, dots, tail = right.partition("...")
    check_letters(equation, head + tail)
    result = (*head, *(every if dots else ()), *tail)
    known = {each for labels in terms for each in labels}
    for each in result:
        if result.count(each) > 1 or each not in known:
            why = "appears more than once" if result.count(each) > 1 else "is in no operand"
            raise ShapeError(f"einsum(): output subscript {each} of {equation!r} {why}")
    return terms, result


def check_letters(equation: str, text: str) -> None:
    for each in text:
        if each not in LETTERS:
            raise ShapeError(
                f"einsum(): invalid subscript {each!r} in {equation!r}; letters a-z and A-Z, "
                "'...', ',' and '->' are allowed"
            )


def sizes_of(terms: Sequence[Labels], operands: Sequence[Any]) -> dict[Label, int]:
    """The size of each label; 1 broadcasts."""
    sizes: dict[Label, int] = {}
    for k, (labels, x) in enumerate(zip(terms, operands, strict=True)):
        for label, n in zip(labels, x._layout.shape, strict=True):
            have = sizes.get(label, 1)
            if have != n and have != 1 and n != 1:
                raise ShapeError(
                    "einsum(): subscript {letter} has size {two} for operand {number} which does "
                    "not broadcast with previously seen size {one}",
                    reason="letter", op="einsum", letter=label, two=n, number=k, one=have,
                )  # fmt: skip
            sizes[label] = n if have == 1 else have
    return sizes


def simplified(x: Tensor, labels: Labels, sizes: dict[Label, int]) -> Labelled:
    """An operand with each label once and no dim that only broadcasts."""
    left = list(labels)
    for label in dict.fromkeys(labels):
        while left.count(label) > 1:  # "ii": the diagonal, whose dim comes last
            first = left.index(label)
            second = left.index(label, first + 1)
            x = T.diagonal(x, 0, first, second)
            del left[second], left[first]
            left.append(label)
    shape = x._layout.shape
    narrow = tuple([d for d, each in enumerate(left) if shape[d] == 1 and sizes[each] != 1])
    if narrow:
        x = T.squeeze(x, narrow)
        left = [each for d, each in enumerate(left) if d not in narrow]
    return x, tuple(left)


def cheapest(parts: Sequence[Labelled], result: Labels, sizes: dict[Label, int]) -> tuple[int, int]:
    """The two operands whose product shrinks the whole the most (the first two of two)."""
    if len(parts) == 2:
        return 0, 1
    options = []
    for a, b in itertools.combinations(range(len(parts)), 2):
        left, right = parts[a][1], parts[b][1]
        others = {e for k, (_x, labels) in enumerate(parts) if k not in (a, b) for e in labels}
        kept = (set(left) | set(right)) & (others | set(result))
        grown = math.prod([sizes[e] for e in kept]) - sum(
            [math.prod([sizes[e] for e in labels]) for labels in (left, right)]
        )
        cost = (grown, math.prod([sizes[e] for e in set(left) | set(right)]))
        options.append((cost, a, b))
    _, a, b = min(options)
    return a, b


def contract(x: Tensor, left: Labels, y: Tensor, right: Labels, kept: set[Label]) -> Labelled:
    """The product of two operands, summed over the labels that nobody else wants."""
    x, left = summed(x, left, kept | set(right))
    y, right = summed(y, right, kept | set(left))
    shared = [e for e in left if e in right]
    batch = [e for e in shared if e in kept]
    inner = [e for e in shared if e not in kept]
    rows = [e for e in left if e not in shared]
    columns = [e for e in right if e not in shared]
    x, row_sizes, _inner = merged(x, left, batch, rows, inner)
    y, _inner, column_sizes = merged(y, right, batch, inner, columns)
    result = T.matmul(x, y) if inner else T.mul(x, y)
    shape = (*result._layout.shape[: len(batch)], *row_sizes, *column_sizes)
    if tuple(result._layout.shape) != shape:
        result = T.reshape(result, shape)
    return result, (*batch, *rows, *columns)


def summed(x: Tensor, labels: Labels, kept: set[Label]) -> Labelled:
    """The operand summed over the labels that are not kept."""
    dims = tuple([d for d, each in enumerate(labels) if each not in kept])
    if not dims:
        return x, tuple(labels)
    return T.sum(x, dims), tuple([each for each in labels if each in kept])


def merged(
    x: Tensor, labels: Labels, batch: Sequence[Label], rows: Sequence[Label],
    columns: Sequence[Label],
) -> tuple[Tensor, tuple[int, ...], tuple[int, ...]]:  # fmt: skip
    """The operand as (batch.., rows, columns), each of the last two one dim; and their sizes."""
    order = tuple([labels.index(each) for each in (*batch, *rows, *columns)])
    if order != tuple(range(len(order))):
        x = T.permute(x, order)
    shape = x._layout.shape
    b, r = len(batch), len(rows)
    row_sizes, column_sizes = shape[b : b + r], shape[b + r :]
    target = (*shape[:b], math.prod(row_sizes), math.prod(column_sizes))
    if tuple(shape) != target:
        x = T.reshape(x, target)
    return x, row_sizes, column_sizes


def arranged(x: Tensor, labels: Labels, result: Labels) -> Tensor:
    """The last operand, summed and permuted to the result's labels."""
    x, labels = summed(x, labels, set(result))
    order = tuple([labels.index(each) for each in result])
    return x if order == tuple(range(len(order))) else T.permute(x, order)


@einsum.samples
def _(make):
    yield "ij,jk->ik", (make(3, 4), make(4, 5))
    yield "bij,bjk->bik", (make(2, 3, 4), make(2, 4, 5))
    yield "ij->ji", (make(3, 4),)
    yield "ii->i", (make(4, 4),)
    yield "...ij,...jk", (make(2, 3, 4), make(4, 5))
    yield "i,j->ij", (make(3), make(4))
    yield "ij,jk,kl->il", (make(2, 3), make(3, 4), make(4, 5))
    yield ("ij,jk->ik", (make(2, 3), make(2, 3))), {}, RuntimeError, "does not broadcast"
    yield ("ij,jk", (make(2, 3),)), {}, RuntimeError, "operands"


# ------------------------------------------------------------------------------------- tensordot
@composite(method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2):
    """Sums the products over dims of ``a`` and ``b``: the last and first ``dims`` of them, or those
    in the two lists ``dims``.

    >>> torch.tensordot(torch.tensor([[1., 2.]]), torch.tensor([[3.], [4.]]), dims=1)
    tensor([[11.]])
    """
    left, right = a._layout, b._layout
    if isinstance(dims, TensorType):
        dims = dims.tolist()
    if isinstance(dims, int):
        if not 0 <= dims <= min(left.ndim, right.ndim):
            raise ShapeError(
                f"tensordot: dims={dims} must lie in 0..{min(left.ndim, right.ndim)} for shapes "
                f"{tuple(left.shape)} and {tuple(right.shape)}"
            )
        ours, theirs = tuple(range(left.ndim - dims, left.ndim)), tuple(range(dims))
    else:
        first, second = dims
        ours = normalize_dims(first, left.ndim, op="tensordot")
        theirs = normalize_dims(second, right.ndim, op="tensordot")
    if len(ours) != len(theirs):
        raise ShapeError(f"tensordot: both dimension lists should have same length, got {dims}")
    for d, e in zip(ours, theirs, strict=True):
        if left.shape[d] == 1 != right.shape[e]:  # one element is repeated: sum what it meets
            b = T.sum(b, (e,), True, dtype=right.dtype)
        elif right.shape[e] == 1 != left.shape[d]:
            a = T.sum(a, (d,), True, dtype=left.dtype)
        elif left.shape[d] != right.shape[e]:
            raise ShapeError(
                f"tensordot: contracted dimensions need to match, but first has size "
                f"{left.shape[d]} in dim {d} and second has size {right.shape[e]} in dim {e}"
            )
    left, right = a._layout, b._layout
    rows = [d for d in range(left.ndim) if d not in ours]
    columns = [d for d in range(right.ndim) if d not in theirs]
    k = math.prod([left.shape[d] for d in ours])
    if not rows and not columns:
        return T.dot(T.reshape(T.permute(a, ours), (k,)), T.reshape(T.permute(b, theirs), (k,)))
    m, n = [left.shape[d] for d in rows], [right.shape[d] for d in columns]
    x = T.reshape(T.permute(a, (*rows, *ours)), (math.prod(m), k))
    y = T.reshape(T.permute(b, (*theirs, *columns)), (k, math.prod(n)))
    return T.reshape(T.mm(x, y), (*m, *n))


@tensordot.samples
def _(make):
    yield make(3, 4), make(4, 5), 1
    yield make(2, 3, 4), make(3, 4, 5), 2
    yield make(2, 3, 4), make(4, 2, 5), ((0, 2), (1, 0))
    yield make(2, 3), make(3, 2), ((0, 1), (1, 0))


@composite()
def kron(input: Tensor, other: Tensor):
    """The Kronecker product: each element of ``input`` times the whole of ``other``.

    >>> torch.kron(torch.tensor([1., 10.]), torch.tensor([1., 2.]))
    tensor([ 1.,  2., 10., 20.])
    """
    n = max(input._layout.ndim, other._layout.ndim)
    a = (1,) * (n - input._layout.ndim) + tuple(input._layout.shape)
    b = (1,) * (n - other._layout.ndim) + tuple(other._layout.shape)
    wide = tuple([size for s in a for size in (s, 1)])
    inner = tuple([size for s in b for size in (1, s)])
    result = T.mul(T.reshape(input, wide), T.reshape(other, inner))
    return T.reshape(result, tuple([p * q for p, q in zip(a, b, strict=True)]))


@kron.samples
def _(make):
    yield make(2, 3), make(3, 2)
    yield make(3), make(2, 2)


# ------------------------------------------------------------------------------------------ chains
@composite(method=False, rewrite=listed)
def chain_matmul(matrices: Tensors):
    """The product of several matrices, in the cheapest order; see ``linalg.multi_dot``.

    >>> torch.chain_matmul(torch.ones(1, 2), torch.ones(2, 3), torch.ones(3, 1))
    tensor([[6.]])
    """
    return T.clone(matrices[0]) if len(matrices) == 1 else multi_dot(matrices)


@composite(name="linalg_multi_dot", namespace="linalg")
def multi_dot(tensors: Tensors):
    """The product of two or more matrices in the order of least work.

    The first and the last may be vectors: a row and a column.

    >>> torch.linalg.multi_dot([torch.ones(1, 2), torch.ones(2, 3), torch.ones(3)])
    tensor([6.])
    """
    if len(tensors) < 2:
        raise ShapeError(f"linalg.multi_dot: expected at least 2 tensors but got {len(tensors)}")
    chain = list(tensors)
    for k, each in enumerate(chain):
        if each._layout.ndim != 2 and not (each._layout.ndim == 1 and k in (0, len(chain) - 1)):
            raise ShapeError(
                f"linalg.multi_dot: tensor {k} must be a matrix, but it has shape "
                f"{tuple(each._layout.shape)}"
            )
    shapes = [tuple(each._layout.shape) for each in chain]
    first = 1 if len(shapes[0]) == 1 else shapes[0][0]
    sizes = [first, *[s[-1] for s in shapes[:-1]], 1 if len(shapes[-1]) == 1 else shapes[-1][1]]
    split = cheapest_order(sizes)

    def product(i: int, j: int) -> Tensor:
        if i == j:
            return chain[i]
        return T.matmul(product(i, split[i, j]), product(split[i, j] + 1, j))

    return product(0, len(chain) - 1)


def cheapest_order(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of a chain of matrices (Cormen et al., matrix-chain order)."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            cost[i, j], split[i, j] = min(options)
    return split


@multi_dot.samples
def _(make):
    yield ((make(2, 3), make(3, 4), make(4, 5)),)
    yield ((make(3), make(3, 4), make(4)),)


@composite(aliases=("linalg.matrix_power",))
def matrix_power(input: Tensor, n: Int):
    """A square matrix (or a stack) times itself ``n`` times; a negative ``n`` inverts it first.

    See https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_power.html.

    >>> torch.matrix_power(torch.tensor([[1., 1.], [0., 1.]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    layout = input._layout
    if layout.ndim < 2 or layout.shape[-1] != layout.shape[-2]:
        raise ShapeError(
            "linalg.matrix_power: A must be batches of square matrices, got {0.shape}",
            reason="square", op="linalg.matrix_power", operands=(layout,),
        )  # fmt: skip
    if n == 0:
        eye = T.eye(layout.shape[-1], dtype=layout.dtype, device=layout.device)
        result = T.clone(input, memory_format="contiguous")  # in the graph: its gradient is zero
        return T.copy_(result, T.expand(eye, layout.shape))
    base, found = (T.linalg_inv(input) if n < 0 else input), None
    n = abs(n)
    if n == 1:
        return T.clone(base)
    while n:
        if n % 2:
            found = base if found is None else T.matmul(found, base)
        n //= 2
        base = T.matmul(base, base) if n else base
    return found


@matrix_power.samples
def _(make):
    yield make(3, 3), 3
    yield make(2, 3, 3), 2
    yield make(3, 3), 0
    yield make(2, 3, 3).mT, 0
