"""``index_put`` and what index tensors, masks and lists become before an index op runs."""

from __future__ import annotations

from typing import Any as _Any

from antorcha.errors import ArgumentError, OutOfRange
from antorcha.ops.record import T, composite
from antorcha.ops.types import Any, Bool, Tensor
from antorcha.runtime.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType


def mask_indices(mask: TensorType, sizes: tuple[int, ...], dim: int) -> tuple[TensorType, ...]:
    """A mask as the index tensors that choose the same elements."""
    shape = tuple(mask._layout.shape)
    if shape != sizes:
        raise OutOfRange(
            f"The shape of the mask {list(shape)} at index {dim} does not match the shape of the "
            f"indexed tensor {list(sizes)} at index {dim}"
        )
    if mask._layout.dtype.name != "bool":
        warn_byte()
    return T.nonzero(mask, as_tuple=True)  # type: ignore[no-any-return]


def warn_byte() -> None:
    import warnings

    warnings.warn(
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
        UserWarning,
        stacklevel=6,
    )


def standing(
    lay: Layout, indices: _Any
) -> tuple[list[TensorType], tuple[int, ...]]:
    """The integer tensors of ``index_put``'s list and the dims at which they stand."""
    if not isinstance(indices, (tuple, list)):
        raise ArgumentError(
            f"index_put(): argument 'indices' must be tuple of Tensors, not {type(indices).__name__}"
        )
    tensors: list[TensorType] = []
    dims: list[int] = []
    at = 0
    for each in indices:
        if each is None:
            at += 1
            continue
        if not isinstance(each, TensorType):
            raise ArgumentError(
                "index_put(): argument 'indices' must be a tuple of Tensors or None, not "
                f"{type(each).__name__}"
            )
        if each._layout.dtype.name in ("bool", "uint8"):
            span = each._layout.ndim
            found = mask_indices(each, tuple(lay.shape[at : at + span]), at)
        else:
            span, found = 1, (each,)
        tensors += found
        dims += range(at, at + span)
        at += span
    if at > lay.ndim:
        raise OutOfRange(
            f"too many indices for tensor of dimension {lay.ndim} (got {at}): index_put on shape "
            f"{tuple(lay.shape)}"
        )
    return tensors, tuple(dims)


@composite(out=False)
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: Bool = False):
    """``input`` with ``values`` written at ``input[indices]``; ``accumulate`` adds them.

    ``indices`` is a tuple of integer tensors, masks or None, one per dim; they broadcast together,
    and ``values`` broadcasts to what they choose.
    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html.

    >>> x = torch.zeros(3)
    >>> torch.index_put(x, (torch.tensor([0, 0]),), torch.tensor([1., 2.]), accumulate=True)
    tensor([3., 0., 0.])
    """
    tensors, dims = standing(input._layout, indices)
    return T.index_put_at(input, values, tensors, dims, accumulate)


@index_put.samples
def _(make):
    yield make(3, 4), (make.ints((2,), 3),), make(4)
    yield make(3, 4), (make.ints((2,), 3), make.ints((2,), 4)), make(2), True


@index_put.errors
def _(make):
    yield (make(3), (make.ints((2,), 1) + 3,), make(2)), {}, IndexError, "index 3 is out of bounds"


@composite(out=False, name="index_put_")
def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: Bool = False):
    """In-place form of :func:`antorcha.index_put`; gives the changed tensor."""
    tensors, dims = standing(input._layout, indices)
    return T.index_put_at_(input, values, tensors, dims, accumulate)
