"""What names of a program stand for, looked up without running anything of the program's.

Names, attributes that are plain fields, and constant subscripts of lists, tuples and dictionaries;
of tensors and modules what their fields say. No property, no ``__getattr__``, no ``__repr__`` is
called: whatever else a value is, it is not looked into.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import FrameType, ModuleType
from typing import Any

from antorcha.core.lazy import np
from antorcha.inspector.forms import cut, shape_text
from antorcha.inspector.naming import field, has_plain_locals, is_tensor, module_fields, names_of
from antorcha.ops.kinds.record import Op
from antorcha.runtime.tensor import Parameter, Tensor

_SHORT = 40  # characters of a value


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = _Unknown()


@dataclass(frozen=True)
class Fact:
    """What is known of a tensor; nothing keeps the tensor itself. `key` tells it from others."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    device: Any
    requires_grad: bool
    is_leaf: bool
    is_parameter: bool
    key: int
    is_inference: bool = False

    @property
    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    def __str__(self) -> str:
        where = "" if self.device.type == "cpu" else f" on {self.device}"
        return f"{shape_text(self.shape)} {self.dtype.name}{where}"


def fact_of(value: Any) -> Fact | None:
    """Of a tensor; of a Fact itself; None of anything else."""
    if type(value) is Fact:
        return value
    if not is_tensor(value):
        return None
    layout = field(value, "_layout")
    return Fact(
        tuple([int(size) for size in layout.shape]), tuple(layout.strides), layout.dtype,
        layout.device, bool(field(value, "_rg")), field(value, "_fn") is None,
        issubclass(type(value), Parameter), id(value), field(value, "_storage").version < 0,
    )  # fmt: skip


class Names:
    """The names that a frame sees."""

    def __init__(self, frame: FrameType | None) -> None:
        self.known: dict[Any, Any] = {}
        if frame is not None:
            self.known = names_of(frame) if has_plain_locals(frame) else dict(frame.f_globals)

    def get(self, name: str) -> Any:
        """A variable, or UNKNOWN."""
        if name in self.known:
            return self.known[name]
        return vars(builtins).get(name, UNKNOWN)


def value_of(node: ast.AST, names: Names) -> Any:
    """The value of an expression of names, fields and constants; UNKNOWN of any other."""
    steps: list[ast.AST] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        steps.append(node)
        node = node.value
    if isinstance(node, ast.Name):
        value = names.get(node.id)
    else:
        value = constant_of(node)
        if value is UNKNOWN and isinstance(node, (ast.List, ast.Tuple)):
            value = [value_of(each, names) for each in node.elts[:100]] if not steps else UNKNOWN
    for step in reversed(steps):
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(step, ast.Attribute):
            value = _field(value, step.attr)
        elif isinstance(step, ast.Subscript):
            value = _item(value, constant_of(step.slice))
    return value


def constant_of(node: ast.AST) -> Any:
    """A literal number, text, None, or tuple of them; UNKNOWN of anything else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = constant_of(node.operand) if isinstance(node.operand, ast.Constant) else UNKNOWN
        if type(inner) in (int, float):
            return -inner
    if isinstance(node, ast.Tuple):
        parts = [constant_of(each) for each in node.elts if not isinstance(each, ast.Tuple)]
        if len(parts) == len(node.elts) and UNKNOWN not in parts:
            return tuple(parts)
    return UNKNOWN


def _field(value: Any, name: str) -> Any:
    fact = fact_of(value)
    if fact is not None:
        return _of_tensor(value, fact, name)
    fields = module_fields(value)
    if fields is not None:
        tables = (fields, fields["_parameters"], fields["_modules"], fields.get("_buffers"))
        for table in tables:
            if isinstance(table, dict) and name in table:
                return table[name]
        return UNKNOWN
    if type(value) is ModuleType:
        return vars(value).get(name, UNKNOWN)
    return plain_field(value, name)


def plain_field(value: Any, name: str) -> Any:
    """A field that is stored in an object or in its class, and not computed."""
    if issubclass(type(value), type):
        return UNKNOWN
    for cls in type.mro(type(value)):
        found = type.__dict__["__dict__"].__get__(cls).get(name, UNKNOWN)
        if found is not UNKNOWN and hasattr(type(found), "__set__"):
            return UNKNOWN  # a property, or a slot
    try:
        fields = object.__getattribute__(value, "__dict__")
    except Exception:
        return UNKNOWN
    return fields.get(name, UNKNOWN) if type(fields) is dict else UNKNOWN


def _of_tensor(value: Any, fact: Fact, name: str) -> Any:
    """What can be told of an attribute of a tensor without computing it."""
    shape, strides = fact.shape, fact.strides
    if name in ("T", "H"):
        return replace(fact, shape=shape[::-1], strides=strides[::-1], key=0)
    if name in ("mT", "mH") and len(shape) > 1:
        return replace(
            fact, shape=(*shape[:-2], shape[-1], shape[-2]),
            strides=(*strides[:-2], strides[-1], strides[-2]), key=0,
        )  # fmt: skip
    if name == "data":
        return replace(fact, requires_grad=False, key=0)
    known = {"shape": shape, "dtype": fact.dtype, "device": fact.device, "ndim": len(shape)}
    if name in known:
        return known[name]
    if name == "grad" and issubclass(type(value), Tensor):
        return field(value, "_grad")
    return UNKNOWN


def _item(value: Any, key: Any) -> Any:
    fact = fact_of(value)
    if fact is not None:
        if type(key) is int and fact.shape and -fact.shape[0] <= key < fact.shape[0]:
            return replace(fact, shape=fact.shape[1:], strides=fact.strides[1:], key=0)
        return UNKNOWN
    if type(value) in (list, tuple) and type(key) is int and -len(value) <= key < len(value):
        return value[key]
    if type(value) is dict and type(key) in (str, int):
        return value.get(key, UNKNOWN)
    return UNKNOWN


# ---------------------------------------------------------------------------------------- as text
def short_text(value: Any) -> str:
    """A value in a few words: exact for numbers and texts, a description for all else."""
    fact = fact_of(value)
    if fact is not None:
        kind = "Tensor" if type(value) is Fact else type_name(value)
        grad = ", requires_grad" if fact.requires_grad else ""
        return f"{kind} {fact}{grad}"
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return _literal(value)
    if type(value) in (tuple, list) and len(value) <= 6:
        plain = (int, float, bool, str, type(None))
        if all(type(each) in plain and type(each) is not str for each in value):
            return cut(repr(value), _SHORT)
    if type(value) in (list, tuple, dict, set, frozenset):
        return f"{type(value).__name__} of {len(value)}"
    if type(value) is np.ndarray:
        return f"ndarray {value.shape} {value.dtype}"
    return type_name(value)


def _literal(value: Any) -> str:
    if type(value) is int and value.bit_length() > 200:
        return f"int of {value.bit_length():,} bits"
    if type(value) in (str, bytes):
        value = value[: _SHORT + 2]
    return cut(repr(value), _SHORT)


def type_name(value: Any) -> str:
    """The name of a value's type, whatever its metaclass says."""
    return str(type.__dict__["__name__"].__get__(type(value)))


def is_worth_telling(value: Any) -> bool:
    """Would a reader want to know this value of a line? (Not of functions, classes, packages.)"""
    return not (
        value is UNKNOWN
        or issubclass(type(value), (type, ModuleType))
        or type_name(value)
        in (
            "function",
            "builtin_function_or_method",
            "method",
            "LazyModule",
            "ufunc",
            "_ArrayFunctionDispatcher",
        )
        or issubclass(type(value), Op)
    )


def keys_of(value: Any) -> Mapping[str, Any]:
    """The names that a value has, read from its fields and classes."""
    found: dict[str, Any] = {}
    for cls in type.mro(value if issubclass(type(value), type) else type(value)):
        found.update(type.__dict__["__dict__"].__get__(cls))
    fields = module_fields(value)
    if fields is not None:
        for table in ("_parameters", "_buffers", "_modules"):
            found.update(fields.get(table) or {})
    try:
        own = object.__getattribute__(value, "__dict__")
        found.update(own if type(own) is dict else {})
    except Exception:
        pass
    return {name: None for name in found if type(name) is str}
