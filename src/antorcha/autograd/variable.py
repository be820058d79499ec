"""``torch.autograd.Variable``: what programs of before 2018 call a Tensor."""

from __future__ import annotations

from typing import Any

from antorcha.errors import ArgumentError, explain_missing
from antorcha.runtime.tensor import Tensor

__all__ = ["Variable"]


class _VariableMeta(type):
    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)

    def __call__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Tensor:
        """The tensor's elements as a new leaf."""
        if not isinstance(data, Tensor):
            raise ArgumentError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        result: Tensor = data.detach()
        result.requires_grad_(requires_grad)
        return result


class Variable(metaclass=_VariableMeta):
    """Deprecated: a Tensor does all of it."""


explain_missing("torch.autograd.variable", globals())
