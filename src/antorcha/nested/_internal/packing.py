"""How components of several sizes lie in one tensor: one after the other, in row-major order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.errors import ShapeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

Shape = tuple[int, ...]
_names = iter(range(1, 1 << 62))


class NestedInt(int):
    """The size of a ragged dim: ``j1``. Where it is the same object the sizes are the same; as a
    number it is -1, which ``view`` works out by itself."""

    name: str

    def __new__(cls) -> NestedInt:
        result = super().__new__(cls, -1)
        result.name = f"j{next(_names)}"
        return result

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return hash(self.name)


def bounds(shapes: Sequence[Shape]) -> list[int]:
    """Where each component begins, and the end, in elements."""
    found = [0]
    for shape in shapes:
        found.append(found[-1] + math.prod(shape))
    return found


def pieces(packed: Tensor, shapes: Sequence[Shape]) -> list[Tensor]:
    """The components: views of the tensor in which they lie."""
    ends = bounds(shapes)
    return [
        packed[start:stop].view(shape)
        for start, stop, shape in zip(ends, ends[1:], shapes, strict=False)
    ]


def join(tensors: Sequence[Tensor]) -> Tensor:
    """The components copied to one tensor of one dim, in their graph."""
    joined: Tensor = T.cat([each.reshape(-1) for each in tensors])
    return joined


def ragged_dims(shapes: Sequence[Shape]) -> list[int]:
    """The components' dims in which they differ."""
    if not shapes:
        return []
    return [d for d in range(len(shapes[0])) if len({shape[d] for shape in shapes}) > 1]


def check_dims(tensors: Sequence[Any]) -> None:
    """Refuses components with different numbers of dims, or dtypes."""
    for k, each in enumerate(tensors):
        if each.dim() != tensors[0].dim():
            raise ShapeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{each.dim()} for Tensor at index {k} and dimension {tensors[0].dim()} for Tensor "
                "at index 0."
            )
        if each.dtype != tensors[0].dtype:
            raise ShapeError(
                f"nested_tensor: Tensor at index {k} is {each.dtype}, that at index 0 is "
                f"{tensors[0].dtype}; convert them to one dtype"
            )
