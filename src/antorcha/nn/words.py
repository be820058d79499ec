"""What a module says: its printed lines, the names of types, an attribute that is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.errors import MissingName, nearest, not_yet
from antorcha.runtime.tensor import Tensor


def missing_attribute(owner: Any, name: str) -> AttributeError:
    """The error of a name that a module does not have."""

    def meant() -> str:
        names = [n for n in dir(owner) if not n.startswith("__")]
        own = [n for n in names if n in owner._modules or n in owner._parameters]
        return nearest(name, names) or _one_letter_off(name, own)

    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    return MissingName(text, name, meant, lambda: not_yet("torch.nn.Module", name))


def _one_letter_off(name: str, own: list[str]) -> str:
    """Short names such as fc1 are too short to be near each other, but for the module's own."""
    near = [n for n in own if len(n) == len(name)
            and sum([a != b for a, b in zip(n, name, strict=True)]) == 1]  # fmt: skip
    return near[0] if near else ""


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


def showing(*names: str) -> Callable[[Any], str]:
    """An ``extra_repr`` of these attributes: ``"groups"`` shows the value alone, ``"groups="`` the
    name too; of a bias, whether there is one."""

    def extra_repr(self: Any) -> str:
        values = {name: getattr(self, name.rstrip("=")) for name in names}
        if "bias=" in values:
            values["bias="] = self.bias is not None
        return ", ".join([f"{name if '=' in name else ''}{v}" for name, v in values.items()])

    return extra_repr
