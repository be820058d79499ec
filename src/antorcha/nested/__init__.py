"""Nested tensors: batches whose components have different sizes, without padding.

Source: https://docs.pytorch.org/docs/2.13/nested.html
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from antorcha.core.absent import names
from antorcha.errors import ArgumentError, ShapeError
from antorcha.nested._internal.nested_tensor import NestedTensor, from_tensors, wrap
from antorcha.nested._internal.packing import check_dims
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor import layouts
from antorcha.tensor.create import tensor as make

__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged",
    "to_padded_tensor",
]  # fmt: skip

__getattr__ = names("torch.nested", globals())


def _layout(op: str, layout: Any) -> Any:
    if layout is None:
        return layouts.strided
    if layout not in (layouts.strided, layouts.jagged):
        raise ShapeError(f"{op}: the layout is torch.strided or torch.jagged, not {layout}")
    return layout


def nested_tensor(
    tensor_list: Sequence[Any], *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A nested tensor, a leaf of the graph, with copies of tensors (or lists) as components.

    >>> nt = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(1, 3)])
    >>> nt.dim(), nt.size(2)
    (3, 3)
    """
    kind = _layout("nested_tensor", layout)
    if not isinstance(tensor_list, (list, tuple)):
        raise ArgumentError(f"nested_tensor: a list of tensors is needed, not {tensor_list!r:.80}")
    made = [
        (each.detach() if isinstance(each, Tensor) else make(each)).to(dtype=dtype, device=device)
        for each in tensor_list
    ]
    check_dims(made)
    return from_tensors(made, kind).requires_grad_(requires_grad)


def as_nested_tensor(
    ts: Tensor | Sequence[Tensor], dtype: Any = None, device: Any = None, layout: Any = None
) -> Tensor:
    """A nested tensor of tensors, or of a tensor along its first dim, that stays in their graph."""
    kind = _layout("as_nested_tensor", layout)
    if isinstance(ts, NestedTensor):
        return ts
    if not (isinstance(ts, Tensor) or all(isinstance(each, Tensor) for each in ts)):
        raise ArgumentError("as_nested_tensor(): Expected first argument to be a tensor or a list "
                            "of tensors")  # fmt: skip
    given = list(ts.unbind() if isinstance(ts, Tensor) else ts)
    given = [each.to(dtype=dtype, device=device) for each in given]
    check_dims(given)
    return from_tensors(given, kind)


def to_padded_tensor(
    input: Tensor, padding: float, output_size: Any = None, out: Tensor | None = None
) -> Tensor:
    """A plain tensor, each component filled up with ``padding`` to the greatest size of each dim.

    >>> nt = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    >>> torch.nested.to_padded_tensor(nt, 0.)
    tensor([[1., 1., 0.],
            [1., 1., 1.]])
    """
    if not isinstance(input, NestedTensor):
        raise ShapeError("to_padded_tensor: a nested tensor is needed")
    result = input.to_padded_tensor(padding, output_size)
    return result if out is None else out.resize_(result.shape).copy_(result)


def nested_tensor_from_jagged(
    values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None,
    jagged_dim: int | None = None, min_seqlen: int | None = None, max_seqlen: int | None = None,
) -> Tensor:  # fmt: skip
    """A jagged nested tensor over ``values``, whose components follow one another along the dim
    ``jagged_dim`` (of the batch: 1 unless given). ``offsets``: where each begins, and the end;
    ``lengths``: how long each is.
    """
    if offsets is None and lengths is None:
        raise ShapeError(
            "nested_tensor_from_jagged(): At least one of offsets or lengths is required."
        )
    given = None if offsets is None else [int(x) for x in offsets.tolist()]
    sizes = None if lengths is None else [int(x) for x in lengths.tolist()]
    if given is None:
        assert sizes is not None
        given = [sum(sizes[:k]) for k in range(len(sizes) + 1)]
    if sizes is None:
        sizes = [b - a for a, b in pairwise(given)]
    dim = (jagged_dim or 1) - 1
    parts = [values.narrow(dim, start, n) for start, n in zip(given, sizes, strict=False)]
    whole = dim == 0 and given[0] == 0 and sum(sizes) == values.shape[0]
    shapes = [tuple(each.shape) for each in parts]
    packed = values.reshape(-1) if whole else T.cat([each.reshape(-1) for each in parts])
    both = offsets is not None and lengths is not None
    return wrap(packed, shapes, layouts.jagged, ragged=dim + 1, lengths=lengths if both else None)


def narrow(
    tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: Any = None
) -> Tensor:
    """A nested tensor of a part of each row: ``length[k]`` elements from ``start[k]`` on along
    ``dim``, which must be 1 for the jagged layout."""
    kind = _layout("narrow", layout)
    rows = tensor.shape[0]

    def numbers(x: Any) -> list[int]:
        return [int(v) for v in x.tolist()] if isinstance(x, Tensor) else [int(x)] * rows

    if dim < 1 or (kind is layouts.jagged and dim != 1):
        raise ShapeError(f"narrow: jagged layout needs dim=1, not {dim}")
    parts = [
        row.narrow(dim - 1, first, n)
        for row, first, n in zip(tensor.unbind(), numbers(start), numbers(length), strict=True)
    ]
    return from_tensors(parts, kind)


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """A jagged nested tensor of what the mask chooses of each last dim's row.

    >>> x, mask = torch.arange(4.).view(2, 2), torch.tensor([[True, False], [True, True]])
    >>> torch.nested.masked_select(x, mask).unbind()
    (tensor([0.]), tensor([2., 3.]))
    """
    if tensor.layout is not layouts.strided:
        raise ShapeError(
            f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}"
        )
    data, chosen = T.broadcast_tensors(tensor, mask)
    rows, kept = data.reshape(-1, data.shape[-1]), chosen.reshape(-1, data.shape[-1])
    shapes = [(int(n),) for n in kept.sum(-1).tolist()]
    return wrap(rows.masked_select(kept), shapes, layouts.jagged)
