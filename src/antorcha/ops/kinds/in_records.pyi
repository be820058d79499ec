"""What a type checker takes the parameters and results of records' functions for, by the names
that tools/record_types.py gives them.

What a tensor is depends on the stage in which a function runs: the classes below. ``X | Any`` is an
X, or what some calls give instead of it: a number, a tuple of them, None.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from antorcha.core.dtypes import dtype
from antorcha.lang.expr.graph import Expr
from antorcha.ops.kinds.concatenation import Pieces as Pieces
from antorcha.ops.kinds.kernel import Planned as Planned
from antorcha.ops.kinds.product import Product as Product
from antorcha.ops.kinds.record import InPlace, Op
from antorcha.ops.kinds.reduction import ElementKind
from antorcha.ops.kinds.reduction import Folding as Folding
from antorcha.ops.kinds.rows import Row as Row
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorObject
from antorcha.tensor.batched import Batch as Batch

T = TypeVar("T")
OptTensor: TypeAlias = T | None
Tensors: TypeAlias = tuple[T, ...]
Operand: TypeAlias = T | Any

class Elements:
    """Functions that are traced into an expression: pointwise ops, and their rules."""

    Tensor: TypeAlias = Expr
    Number: TypeAlias = Expr | Any

class Layouts:
    """Functions that plan, from layouts."""

    Tensor: TypeAlias = Layout
    Number: TypeAlias = Any

class Foldings:
    """Functions that say how to fold, whatever the shape."""

    Tensor: TypeAlias = ElementKind
    Number: TypeAlias = Any

class Drawings:
    """Functions that draw: tensors on the host are given as NumPy's arrays."""

    Tensor: TypeAlias = Any
    Number: TypeAlias = Any

class Composites:
    """Functions that call ops: composites, the rules of all but pointwise ops."""

    Tensor: TypeAlias = TensorObject
    Number: TypeAlias = Any

class Make(Protocol):
    """What makes the tensors of samples."""

    def __call__(
        self, *shape: int, low: float = ..., high: float | None = ..., dtype: Any = ...
    ) -> TensorObject: ...
    def ints(self, shape: Any, high: int, low: int = ..., dtype: Any = ...) -> TensorObject: ...
    def bools(self, shape: Any) -> TensorObject: ...

Samples: TypeAlias = Iterator[tuple[Any, ...]]
Draw: TypeAlias = Callable[[Any], None]
View: TypeAlias = tuple[Sequence[int], Sequence[int], int]
Views: TypeAlias = Sequence[View]
Recast: TypeAlias = tuple[Sequence[int], Sequence[int], dtype, int]
Sizes: TypeAlias = Sequence[int] | None
Run: TypeAlias = Op | InPlace
Needs: TypeAlias = tuple[bool, ...]
Create: TypeAlias = bool
Dims: TypeAlias = tuple[int, ...]
