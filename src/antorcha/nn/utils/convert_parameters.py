"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antorcha.errors import ArgumentError, ShapeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """All elements of all parameters, in a row.

    >>> torch.nn.utils.parameters_to_vector([torch.zeros(2), torch.ones(1, 1)])
    tensor([0., 0., 1.])
    """
    return T.cat(tuple([p.reshape(-1) for p in parameters]))


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Gives each parameter its part of the vector (shared, not copied)."""
    if not isinstance(vec, Tensor):
        raise ArgumentError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    at = 0
    for p in parameters:
        end = at + p.numel()
        if end > vec._layout.numel:
            raise ShapeError(
                f"vector_to_parameters: the vector has {vec._layout.numel} elements, the "
                "parameters have more"
            )
        p.data = T.slice(vec, 0, at, end).view_as(p).data
        at = end
