"""Padding layers: the input surrounded by a constant, its mirror image, its edge, or itself."""

from __future__ import annotations

from typing import Any

from antorcha.errors import ValueRangeError
from antorcha.nn import functional as F
from antorcha.nn.module import Module


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
        if self.mode == "circular" and input.dim() not in (self.ndim + 1, self.ndim + 2):
            raise ValueRangeError(
                f"{type(self).__name__}: expected {self.ndim + 1}D or {self.ndim + 2}D input (got "
                f"{input.dim()}D input)"
            )
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    __constants__ = ["padding", "value"]  # noqa: RUF012

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        """The input with the constant around it."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


_WHAT = {
    "Constant": ("with a constant", _ConstantPad, "constant", "2, 3.5"),
    "Zero": ("with zeros", _ZeroPad, "constant", "2"),
    "Reflection": ("with its mirror image, the edge not repeated", _Pad, "reflect", "2"),
    "Replication": ("with its edge, repeated", _Pad, "replicate", "2"),
    "Circular": ("with itself, as if it repeated for ever", _Pad, "circular", "2"),
}
_DOC = """Pads the last {d} dims of the input {how}.

Args:
    padding (int or tuple): how much on every side; {n} numbers are (before, after) for each dim,
        the last dim first{more}

Shape: ``(N, C, *)`` or ``(C, *)``; each of the last {d} dims grows by its padding.
See https://docs.pytorch.org/docs/stable/generated/torch.nn.{name}.html.

>>> torch.nn.{name}({example})(torch.zeros({shape})).shape
torch.Size([{result}])
"""


def _make(kind: str, d: int) -> type[_Pad]:
    how, base, mode, example = _WHAT[kind]
    name = f"{kind}Pad{d}d"
    more = "\n    value (float): the constant" if kind == "Constant" else ""
    doc = _DOC.format(d=d, how=how, n=2 * d, more=more, name=name, example=example,
                      shape=", ".join(["1", "1", *["4"] * d]),
                      result=", ".join(["1", "1", *["8"] * d]))  # fmt: skip
    return type(name, (base,), {"__doc__": doc, "__module__": __name__, "ndim": d, "mode": mode})


ConstantPad1d, ConstantPad2d, ConstantPad3d = [_make("Constant", d) for d in (1, 2, 3)]
ZeroPad1d, ZeroPad2d, ZeroPad3d = [_make("Zero", d) for d in (1, 2, 3)]
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = [_make("Reflection", d) for d in (1, 2, 3)]
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = [_make("Replication", d) for d in (1, 2, 3)]
CircularPad1d, CircularPad2d, CircularPad3d = [_make("Circular", d) for d in (1, 2, 3)]
