"""``torch._foreach_add`` and its like: an op over lists of tensors, as optimizers call it.

An argument that is a list goes along with the tensors, one for each; any other is for all. Forms in
place write to the tensors and give the list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.errors import ShapeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "pow": "pow"}
_BOUNDS = {"clamp_max": "minimum", "clamp_min": "maximum", "maximum": "maximum",
           "minimum": "minimum"}  # fmt: skip


def _rows(tensors: Sequence[Any], *arguments: Any) -> list[tuple[Any, ...]]:
    """For each tensor, it and its arguments."""
    if not tensors:
        raise ShapeError("Tensor list must have at least one tensor.")
    columns = []
    for each in arguments:
        along = isinstance(each, (list, tuple))
        if along and len(each) != len(tensors):
            raise ShapeError(
                "Tensor lists must have the same number of tensors, got "
                f"{len(tensors)} and {len(each)}"
            )
        columns.append(each if along else [each] * len(tensors))
    return list(zip(tensors, *columns, strict=True))


def _numbers(value: Any) -> Any:
    """A tensor that holds a number for each tensor of a list, as a list."""
    return value.tolist() if isinstance(value, Tensor) and value._layout.ndim else value


def _bound(name: str, x: Any, other: Any) -> Any:
    if isinstance(other, Tensor):
        return getattr(T, name)(x, other)
    return T.clamp(x, **{"max" if name == "minimum" else "min": other})


def _make(name: str, compute: Callable[..., Any]) -> None:
    """Registers ``_foreach_<name>``, and the form in place, which copies the result."""

    def new(self: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return tuple(compute(self, *args, **kwargs))

    def inplace(self: Any, *args: Any, **kwargs: Any) -> Any:
        for x, result in zip(self, compute(self, *args, **kwargs), strict=True):
            T.copy_(x, result)
        return self

    for function, mark in ((new, ""), (inplace, "_")):
        full = f"_foreach_{name}{mark}"
        function.__name__ = function.__qualname__ = full
        function.__doc__ = f"``{name}`` of each tensor of a list{', in place' if mark else ''}."
        globals()[full] = function


def _make_all() -> None:
    for name in _UNARY:
        _make(name, _unary(getattr(T, name)))
    for name, op in _BINARY.items():
        _make(name, _binary(getattr(T, op)))
    for name, op in _BOUNDS.items():
        _make(name, lambda self, other, op=op: [_bound(op, x, y) for x, y in _rows(self, other)])
    for name in ("addcmul", "addcdiv"):
        _make(name, _ternary(getattr(T, name)))
    _make("lerp", lambda self, tensors1, weight: [
        T.lerp(x, y, w) for x, y, w in _rows(self, tensors1, weight)
    ])  # fmt: skip


def _unary(op: Any) -> Callable[..., Any]:
    return lambda self: [op(x) for (x,) in _rows(self)]


def _binary(op: Any) -> Callable[..., Any]:
    def compute(self: Any, other: Any, *, alpha: Any = None) -> list[Any]:
        if not isinstance(self, (list, tuple)):  # `_foreach_pow(2, exponents)`
            return [op(self, each) for each in other]
        options = {} if alpha is None else {"alpha": alpha}
        return [op(x, y, **options) for x, y in _rows(self, other)]

    return compute


def _ternary(op: Any) -> Callable[..., Any]:
    def compute(
        self: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None
    ) -> list[Any]:
        values = _numbers(value if scalars is None else scalars)
        return [op(x, a, b, value=v) for x, a, b, v in _rows(self, tensor1, tensor2, values)]

    return compute


_make_all()


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Any, ...]:
    """The norm of each tensor of a list."""
    return tuple([T.linalg_vector_norm(x, ord, dtype=dtype) for (x,) in _rows(self)])


def _foreach_max(self: Any) -> tuple[Any, ...]:
    """The largest element of each tensor of a list."""
    return tuple([T.amax(x) for (x,) in _rows(self)])


def _foreach_clone(self: Any, *, memory_format: Any = None) -> tuple[Any, ...]:
    """A copy of each tensor of a list."""
    return tuple([T.clone(x) for (x,) in _rows(self)])


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copies the tensors of `src` into those of a list."""
    for x, y in _rows(self, src):
        T.copy_(x, y)
    return self


def _foreach_zero_(self: Any) -> Any:
    """Sets all elements of a list's tensors to 0."""
    for (x,) in _rows(self):
        T.zero_(x)
    return self
