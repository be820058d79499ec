"""Sparse gradients: how they add up, and those of lookups."""

from __future__ import annotations

from antorcha.core import modes
from antorcha.core.dtypes import int64
from antorcha.errors import GraphError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.sparse import rules
from antorcha.tensor.sparse.parts import from_values
from antorcha.tensor.sparse.tensor import SparseTensor, replace


def total(a: Tensor, b: Tensor) -> Tensor:
    """The sum of two gradients of which one is sparse at least: sparse if both are."""
    if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        a, b = b, a
    return T.add(a, b)  # type: ignore[no-any-return]


def accumulate(leaf: Tensor, g: Tensor, create: bool) -> None:
    """Adds a gradient to ``leaf.grad``, where one of the two is sparse."""
    old = leaf._grad
    word = modes.set_word(modes.state.word if create else modes.state.word | modes.NO_GRAD)
    try:
        if old is None:
            leaf._grad = g if create and g._rg else T.clone(g)
        elif create or (isinstance(old, SparseTensor) and not isinstance(g, SparseTensor)):
            leaf._grad = total(old, g)
        elif isinstance(old, SparseTensor):
            replace(old, total(old, g))  # type: ignore[arg-type]
        else:
            rules.add_into(old, g)  # type: ignore[arg-type]
    finally:
        modes.set_word(word)


def of_embedding(
    g: Tensor, indices: Tensor, shape: tuple[int, ...], padding_idx: int, by_freq: bool
) -> SparseTensor:
    """The gradient of a table from that of the rows taken: a row for each index."""
    if by_freq:
        raise GraphError(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
        )
    at = T.to_dtype(T.reshape(indices, (-1,)), int64)
    values = T.reshape(g, (-1, shape[1]))
    if padding_idx != -1:
        kept = T.ne(at, padding_idx)
        at, values = at[kept], values[kept]
    return from_values(values, (at.unsqueeze(0),), shape)


def of_gather(g: Tensor, index: Tensor, shape: tuple[int, ...], dim: int) -> SparseTensor:
    """The gradient of what ``gather`` took its elements from: an element for each index."""
    sizes = tuple(index._layout.shape)
    values = T.reshape(g, (-1,))
    if not shape:
        return from_values(values, (T.zeros((0, 1), dtype=int64),), shape)
    rows = []
    for d, n in enumerate(sizes):
        own = T.arange(n).view(*[n if k == d else 1 for k in range(len(sizes))])
        rows.append(T.reshape(index if d == dim % len(shape) else T.expand(own, sizes), (-1,)))
    return from_values(values, (T.to_dtype(T.stack(rows), int64),), shape)
