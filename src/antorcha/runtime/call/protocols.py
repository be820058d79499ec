"""What the call path reads of an op's record and of its derivative rule.

The records and the rules themselves are in ``antorcha.ops``, a floor above.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from antorcha.runtime.call.node import Node
    from antorcha.runtime.call.plan import Plan
    from antorcha.runtime.memory.layout import Layout
    from antorcha.runtime.tensor import Tensor


class GradientRule(Protocol):
    """How the gradients of an op are computed."""

    mask: int  # which operands can have a gradient
    replays: bool  # is what it computes known from layouts?
    replays_numbers: bool  # and from which numbers, by ops with ``numbers_given``?

    def saves(self, plan: Plan, mask: int) -> tuple[int, ...]:
        """What to keep when the operands in ``mask`` want gradients: k for operand k, -1 - k for
        result k."""

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        """The gradient of each operand. With ``create`` they are recorded in their turn."""


class CallSignature(Protocol):
    """An op's parameters."""

    positional: int  # how many there are before the keyword-only ones
    required: int  # how many have no default
    number_mask: int  # a bit for each argument that may be a number for the kernel
    shape_mask: int  # a bit for each argument that is a shape, or a part of one

    @property
    def params(self) -> Sequence[Any]: ...


class InPlaceForm(Protocol):
    """An op's in-place form."""

    name: str
    native: Any  # what the native path serves calls with; None: not yet

    @property
    def in_python(self) -> Callable[..., Any]: ...


class NodeSource(Protocol):
    """What a node is of: an op, or a function with a ``backward`` of the user's."""

    name: str
    node_name: str

    @property
    def rule(self) -> GradientRule: ...


class Planner(Protocol):
    """What binds arguments and plans calls: an op, or a user's row program."""

    name: str
    node_name: str
    plans: dict[Any, Plan]
    random: bool  # do two calls with the same arguments differ?
    any_size: bool  # does its plan say the same for operands of any size?
    outlined: bool  # is it planned with symbols where sizes change?
    numbers_given: bool  # of gradients: are its numbers those of the call that they are of?
    static_number: bool  # is a number part of its plans' keys?

    @property
    def rule(self) -> GradientRule | None: ...
    @property
    def shapes(self) -> Sequence[int]:
        """The parameters that are shapes."""

    @property
    def bind(self) -> Callable[..., Any]: ...
    @property
    def quick_bind(self) -> Callable[..., Any]: ...
    def make_plan(self, values: list[Any], outs: tuple[Layout, ...] | None) -> Plan: ...
    def pack(self, outs: tuple[Tensor, ...]) -> Any: ...


class OpRecord(Planner, Protocol):
    """An op's record."""

    native: Any  # what the native path serves calls with; None: not yet
    is_composite: bool  # is it made of other ops?
    own_bind: bool  # does it look at its arguments' values before every call?
    upgradable: bool  # may the native path serve it?

    @property
    def signature(self) -> CallSignature: ...
    @property
    def inplace(self) -> InPlaceForm | None: ...
    def in_python(self, *args: Any, **kwargs: Any) -> Any: ...
    def copy_of(self, tensor: Tensor) -> Tensor: ...
    def copy_into(self, out: Tensor, result: Tensor) -> None: ...
    def fit_outs(self, plan: Plan, outs: Sequence[Tensor]) -> None: ...
