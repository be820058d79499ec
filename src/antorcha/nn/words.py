"""What a module says: its printed lines, the names of types, an attribute that is not there."""

from __future__ import annotations

from typing import Any

from antorcha.errors import did_you_mean
from antorcha.runtime.tensor import Tensor


class MissingAttributeError(AttributeError):
    """A name that a module does not have. The advice is worked out only when it is read, because
    ``hasattr`` raises this too."""

    def __init__(self, owner: Any, missing: str) -> None:
        text = f"{type(owner).__name__!r} object has no attribute {missing!r}"
        super().__init__(text, name=missing, obj=owner)

    def __str__(self) -> str:
        text = str(self.args[0])
        if self.obj is None or self.name is None:
            return text
        names = [n for n in dir(self.obj) if not n.startswith("__")]
        owner: Any = self.obj
        own = [n for n in names if n in owner._modules or n in owner._parameters]
        hint = did_you_mean(self.name, names) or _one_letter_off(self.name, own)
        return f"{text}.{hint}" if hint else text


def _one_letter_off(name: str, own: list[str]) -> str:
    """Short names such as fc1 are too short to be near each other, but for the module's own."""
    near = [n for n in own if len(n) == len(name)
            and sum([a != b for a, b in zip(n, name, strict=True)]) == 1]  # fmt: skip
    return f" Did you mean {near[0]!r}?" if near else ""


def indented(text: str, spaces: int) -> str:
    """All lines but the first moved to the right."""
    first, *rest = text.split("\n")
    return "\n".join([first, *[" " * spaces + line for line in rest]])


def typename(value: Any) -> str:
    """A value's type as error messages name it: ``torch.FloatTensor``, ``int``."""
    if isinstance(value, Tensor):
        return str(value.type())
    kind = type(value)
    module = kind.__module__
    return (
        kind.__qualname__
        if module in ("builtins", "__builtin__")
        else (f"{module}.{kind.__qualname__}")
    )
