"""Padding layers: the input surrounded by a constant, its mirror image, its edge, or itself."""

from __future__ import annotations

from typing import Any

from antorcha.errors import ValueRangeError
from antorcha.nn import functional as F
from antorcha.nn.module import Module
from antorcha.nn.words import showing


class _Pad(Module):
    __constants__ = ["padding"]  # noqa: RUF012
    ndim: int = 0
    mode: str = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        n = 2 * self.ndim
        self.padding = (padding,) * n if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != n:
            raise ValueError(f"{type(self).__name__}: padding must be an int or {n} of them")

    def forward(self, input: Any) -> Any:
        """The input with more around it."""
        return F.pad(input, self.padding, self.mode)

    extra_repr = showing("padding")


class _ConstantPadNd(_Pad):
    __constants__ = ["padding", "value"]  # noqa: RUF012

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        """The input with the constant around it."""
        return F.pad(input, self.padding, "constant", self.value)

    extra_repr = showing("padding=", "value=")


class _ReflectionPadNd(_Pad):
    mode = "reflect"


class _ReplicationPadNd(_Pad):
    mode = "replicate"


class _CircularPadNd(_Pad):
    mode = "circular"

    def forward(self, input: Any) -> Any:
        """The input with more around it."""
        self._check_input_dim(input)
        return super().forward(input)

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() not in (self.ndim + 1, self.ndim + 2):
            raise ValueRangeError(
                f"{type(self).__name__}: expected {self.ndim + 1}D or {self.ndim + 2}D input (got "
                f"{input.dim()}D input)"
            )


class _ZeroPad:
    """Goes before a ConstantPad."""

    padding: tuple[int, ...]

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)  # type: ignore[call-arg]

    extra_repr = showing("padding")


_DOC = """Pads the last {d} dims of the input {how}.

Args:
    padding (int or tuple): how much on every side; {n} numbers are (before, after) for each dim,
        the last dim first{more}

Shape: ``(N, C, *)`` or ``(C, *)``; each of the last {d} dims grows by its padding.

>>> torch.nn.{name}({example})(torch.zeros({shape})).shape
torch.Size([{result}])
"""


def _make(kind: str, how: str, example: str, d: int, *bases: type) -> Any:
    name = f"{kind}Pad{d}d"
    more = "\n    value (float): the constant" if kind == "Constant" else ""
    doc = _DOC.format(d=d, how=how, n=2 * d, more=more, name=name, example=example,
                      shape=", ".join(["1", "1", *["4"] * d]),
                      result=", ".join(["1", "1", *["8"] * d]))  # fmt: skip
    return type(name, bases, {"__doc__": doc, "__module__": __name__, "ndim": d})


ConstantPad1d, ConstantPad2d, ConstantPad3d = [
    _make("Constant", "with a constant", "2, 3.5", d, _ConstantPadNd) for d in (1, 2, 3)
]
ZeroPad1d, ZeroPad2d, ZeroPad3d = [
    _make("Zero", "with zeros", "2", d, _ZeroPad, base)
    for d, base in enumerate((ConstantPad1d, ConstantPad2d, ConstantPad3d), 1)
]
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = [
    _make("Reflection", "with its mirror image, the edge not repeated", "2", d, _ReflectionPadNd)
    for d in (1, 2, 3)
]
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = [
    _make("Replication", "with its edge, repeated", "2", d, _ReplicationPadNd) for d in (1, 2, 3)
]
CircularPad1d, CircularPad2d, CircularPad3d = [
    _make("Circular", "with itself, as if it repeated for ever", "2", d, _CircularPadNd)
    for d in (1, 2, 3)
]
