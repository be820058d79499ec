"""Layers that change the shape: Flatten, Unflatten."""

from __future__ import annotations

from typing import Any

from antorcha.errors import ArgumentError
from antorcha.nn.module import Module
from antorcha.nn.words import showing
from antorcha.ops.kinds.record import T


class Flatten(Module):
    """Makes one dim of several.

    Args:
        start_dim (int): the first of them. Default: 1
        end_dim (int): the last of them. Default: -1

    >>> torch.nn.Flatten()(torch.zeros(32, 1, 5, 5)).shape
    torch.Size([32, 25])
    """

    __constants__ = ["start_dim", "end_dim"]  # noqa: RUF012

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Any:
        """The input with these dims as one (a view where that is possible)."""
        return T.flatten(input, self.start_dim, self.end_dim)

    extra_repr = showing("start_dim=", "end_dim=")


class Unflatten(Module):
    """Makes several dims of one.

    Args:
        dim (int): which dim
        unflattened_size (tuple of int): what it becomes

    >>> torch.nn.Unflatten(1, (2, 5, 5))(torch.zeros(2, 50)).shape
    torch.Size([2, 2, 5, 5])
    """

    __constants__ = ["dim", "unflattened_size"]  # noqa: RUF012

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise ArgumentError("invalid argument type for dim parameter")
        if not isinstance(unflattened_size, (tuple, list)):
            raise ArgumentError(
                "unflattened_size must be a tuple of ints, but found type "
                f"{type(unflattened_size).__name__}"
            )
        for k, each in enumerate(unflattened_size):
            if not isinstance(each, int):
                raise ArgumentError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(each).__name__} at pos {k}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Any) -> Any:
        """The input with this dim as several."""
        return T.unflatten(input, self.dim, self.unflattened_size)

    extra_repr = showing("dim=", "unflattened_size=")
