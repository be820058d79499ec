"""Schemas of operators: ``f(Tensor x, int[] dims=[0, 1], *, float? eps=None) -> (Tensor, Tensor)``.

Read from text, or inferred from a Python function's type hints. The grammar is that of PyTorch's
native functions (aten/src/ATen/native/README.md), as far as Python programs write it.
"""

from __future__ import annotations

import ast
import collections.abc
import inspect
import numbers
import re
import typing
from collections.abc import Callable, Iterable
from typing import Any

from antorcha.core import dtypes
from antorcha.core.device import Device
from antorcha.errors import GraphError
from antorcha.runtime.tensor import Tensor

_PYTHON = {"SymInt": "int", "Scalar": "number", "ScalarType": "ScalarType"}


class Argument:
    """One argument, or result, of a schema."""

    def __init__(
        self, name: str, kind: str, default: Any = inspect.Parameter.empty, kwarg_only: bool = False
    ) -> None:
        alias = re.search(r"\(([^)]*)\)", kind)
        self.name, self.kwarg_only = name, kwarg_only
        self.declared = kind
        self.type = re.sub(r"\([^)]*\)", "", kind)
        self.alias_info = alias[1] if alias else None
        self.is_out = kwarg_only and self.is_write
        self.default_value = None if default is inspect.Parameter.empty else default
        self._has_default = default is not inspect.Parameter.empty

    @property
    def is_write(self) -> bool:
        """Is it changed in place?"""
        return self.alias_info is not None and "!" in self.alias_info

    def has_default_value(self) -> bool:
        """May it be left out?"""
        return self._has_default

    def __str__(self) -> str:
        text = f"{self.declared} {self.name}".rstrip()
        return f"{text}={_default_text(self.default_value)}" if self._has_default else text

    def accepts(self, value: Any) -> bool:
        """Is the value of the argument's type? Types that Python programs do not check pass."""
        kind = self.type
        if kind.endswith("?"):
            return value is None or Argument("", kind[:-1]).accepts(value)
        if kind.endswith("]"):
            inner = Argument("", kind[: kind.rindex("[")])
            if isinstance(value, (list, tuple)):
                return all(inner.accepts(each) for each in value)
            return kind[-2].isdigit() and inner.accepts(value)
        wanted = _CLASSES.get(kind)
        return wanted is None or isinstance(value, wanted)


_CLASSES: dict[str, Any] = {
    "Tensor": Tensor,
    "int": numbers.Integral, "SymInt": numbers.Integral, "float": numbers.Real,
    "bool": numbers.Integral, "str": str, "Scalar": numbers.Number,
}  # fmt: skip


def _default_text(value: Any) -> str:
    if isinstance(value, dtypes.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, (str, Device)):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join([_default_text(each) for each in value])}]"
    return str(value)


class FunctionSchema:
    """An operator's name, arguments and results."""

    def __init__(
        self, name: str, overload_name: str, arguments: list[Argument], returns: list[Argument],
        packed: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.overload_name = name, overload_name
        self.arguments, self.returns = arguments, returns
        self.returns_tuple = packed  # are the results written in parentheses?

    @property
    def is_mutable(self) -> bool:
        """Does it change an argument?"""
        return any(argument.is_write for argument in self.arguments)

    def __str__(self) -> str:
        texts, only = [], False
        for argument in self.arguments:
            if argument.kwarg_only and not only:
                texts.append("*")
                only = True
            texts.append(str(argument))
        results = ", ".join([str(each) for each in self.returns])
        if self.returns_tuple:
            results = f"({results})"
        name = f"{self.name}.{self.overload_name}" if self.overload_name else self.name
        return f"{name}({', '.join(texts)}) -> {results}"

    __repr__ = __str__

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword-only values, checked, defaults filled in."""
        positional = [a for a in self.arguments if not a.kwarg_only]
        if len(args) > len(positional):
            raise GraphError(
                f"{self.name}() expected at most {len(positional)} argument(s) but received "
                f"{len(args)} argument(s). Declaration: {self}"
            )
        left, values, only = dict(kwargs), [], {}
        for k, argument in enumerate(self.arguments):
            if k < len(args) and not argument.kwarg_only:
                value = args[k]
            elif argument.name in left:
                value = left.pop(argument.name)
            elif argument.has_default_value():
                value = argument.default_value
            else:
                raise GraphError(
                    f"{self.name}() is missing value for argument '{argument.name}'. Declaration: "
                    f"{self}"
                )
            if not argument.accepts(value):
                raise GraphError(
                    f"{self.name}() Expected a value of type '{_shown_type(argument)}' for "
                    f"argument '{argument.name}' but instead found type '{type(value).__name__}'."
                    f"\nPosition: {k}\nValue: {value!r}\nDeclaration: {self}"
                )
            if argument.kwarg_only:
                only[argument.name] = value
            else:
                values.append(value)
        if left:
            raise GraphError(
                f"Unknown keyword argument '{next(iter(left))}' for operator '{self.name}'. "
                f"Schema: {self}"
            )
        return tuple(values), only

    def without_defaults(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What a kernel gets of bound values: no trailing arguments that are their defaults."""
        count = len(args)
        while count and _is_default(self.arguments[count - 1], args[count - 1]):
            count -= 1
        named = {a.name: a for a in self.arguments}
        return args[:count], {n: v for n, v in kwargs.items() if not _is_default(named[n], v)}


def _is_default(argument: Argument, value: Any) -> bool:
    if not argument.has_default_value() or isinstance(value, Tensor):
        return False
    default = argument.default_value
    return value is default or (type(value) is type(default) and bool(value == default))


def _shown_type(argument: Argument) -> str:
    kind = argument.type
    if kind.endswith("?"):
        return f"Optional[{_shown_type(Argument('', kind[:-1]))}]"
    if kind.endswith("]"):
        return f"List[{_shown_type(Argument('', kind[: kind.rindex('[')]))}]"
    return _PYTHON.get(kind, kind)


# ---------------------------------------------------------------------------------------- from text
_HEAD = re.compile(r"^\s*(?P<name>[\w:]*)(?:\.(?P<overload>\w+))?\s*\(")
_ARGUMENT = re.compile(r"^(?P<kind>\w+(?:\([^)]*\))?[\w\[\]?]*)(?:\s+(?P<name>\w+))?\s*(?:=(?P<default>.*))?$")  # fmt: skip  # noqa: E501


def parse_schema(text: str) -> FunctionSchema:
    """The schema that a text declares; RuntimeError where it cannot be read.

    >>> parse_schema("f(Tensor x, int[] d=[1, 2], *, str? s=None) -> (Tensor, Tensor)")
    f(Tensor x, int[] d=[1, 2], *, str? s=None) -> (Tensor, Tensor)
    """
    head = _HEAD.match(text)
    if head is None or "->" not in text:
        raise GraphError(f"expected a schema such as 'f(Tensor x) -> Tensor', got {text!r}")
    inside, after = _balanced(text, head.end())
    arguments, only = [], False
    for part in _split(inside):
        if part == "*":
            only = True
            continue
        arguments.append(_argument(part, only, text))
    results = after.partition("->")[2].strip()
    packed = results.startswith("(")
    if packed:
        results = _balanced(results, 1)[0]
    returns = [_argument(part, False, text) for part in _split(results)]
    return FunctionSchema(head["name"], head["overload"] or "", arguments, returns, packed)


def _balanced(text: str, start: int) -> tuple[str, str]:
    """What stands in the parentheses that were opened before ``start``, and what follows."""
    depth = 1
    for k in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[k], 0)
        if not depth:
            return text[start:k], text[k + 1 :]
    raise GraphError(f"a parenthesis is not closed in the schema {text!r}")


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for k, letter in enumerate(text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append(text[start:k].strip())
            start = k + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _argument(part: str, only: bool, text: str) -> Argument:
    found = _ARGUMENT.match(part)
    if found is None:
        raise GraphError(f"cannot read {part!r} in the schema {text!r}")
    default: Any = inspect.Parameter.empty
    if found["default"] is not None:
        default = _value(found["default"].strip())
    return Argument(found["name"] or "", found["kind"], default, only)


def _value(text: str) -> Any:
    """A default's value."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        found = getattr(dtypes, text, None)
        if isinstance(found, dtypes.dtype):
            return found
        words = {"true": True, "false": False, "Mean": 1, "contiguous_format": None}
        if text in words:
            return words[text]
        raise GraphError(f"cannot read the default value {text!r} of a schema") from None


# ----------------------------------------------------------------------------------- from the hints
_BASES: dict[Any, tuple[str, bool, bool, bool]] = {
    # Python's type -> the schema's, and which lists there are: T[], T?[], T[]?
    Tensor: ("Tensor", True, True, False),
    int: ("SymInt", True, False, True),
    float: ("float", True, False, True),
    bool: ("bool", True, False, True),
    str: ("str", False, False, False),
    numbers.Number: ("Scalar", True, False, False),
    int | float | bool: ("Scalar", True, False, False),
    dtypes.dtype: ("ScalarType", False, False, False),
    Device: ("Device", False, False, False),
}
_RETURNS = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool",
            int | float | bool: "Scalar", numbers.Number: "Scalar"}  # fmt: skip


def _schema_type(hint: Any) -> str | None:
    """The schema's type of a Python type; None if there is none."""
    if isinstance(hint, typing.Hashable) and hint in _BASES:
        return _BASES[hint][0]
    inner = _optional(hint)
    if inner is not None:
        found = _schema_type(inner)
        element = _element(inner)
        listed = element is not None and _BASES.get(element, ("", 0, 0, False))[3]
        return f"{found}?" if found and (inner in _BASES or listed) else None
    element = _element(hint)
    if element is None:
        return None
    if element in _BASES and _BASES[element][1]:
        return f"{_BASES[element][0]}[]"
    inner = _optional(element)
    if inner in _BASES and _BASES[inner][2]:
        return f"{_BASES[inner][0]}?[]"
    return None


def _optional(hint: Any) -> Any:
    """T of ``T | None``; None for other types."""
    if type(None) not in typing.get_args(hint):
        return None
    rest = tuple([each for each in typing.get_args(hint) if each is not type(None)])
    return typing.Union[rest]  # noqa: UP007  (of a tuple of types)


def _element(hint: Any) -> Any:
    if typing.get_origin(hint) in (list, collections.abc.Sequence):
        return typing.get_args(hint)[0]
    return None


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str],
    op_name: str | None = None,
) -> str:  # fmt: skip
    """The schema of a function with type hints, as text.

    Args:
        prototype_function (Callable): every parameter and the result have a type hint
        mutates_args (iterable of str, or "unknown"): the names of the tensors that it changes;
            "unknown" says all
        op_name (str, optional): the name in the schema

    Raises:
        ValueError: a hint is missing or has no place in a schema

    See https://docs.pytorch.org/docs/stable/library.html#torch.library.infer_schema.

    >>> def f(x: torch.Tensor, n: int = 2) -> torch.Tensor: ...
    >>> torch.library.infer_schema(f, mutates_args=(), op_name='f')
    'f(Tensor x, SymInt n=2) -> Tensor'
    """
    signature = inspect.signature(prototype_function)

    def fail(what: str) -> typing.NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    hints = _hints(prototype_function, signature, fail)
    unknown = mutates_args == "unknown"
    if isinstance(mutates_args, str) and not unknown:
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated "
            "or the string 'unknown'. "
        )
    changed = set() if unknown else set(mutates_args)
    texts, only = [], False
    for place, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            fail("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind == parameter.KEYWORD_ONLY and not only:
            texts.append("*")
            only = True
        if parameter.annotation is inspect.Parameter.empty:
            fail(f"Parameter {name} must have a type annotation.")
        kind = _schema_type(hints[name])
        if kind is None:
            fail(f"Parameter {name} has unsupported type {parameter.annotation}.")
        if name in changed and not kind.startswith("Tensor"):
            fail(
                f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors "
                "can be mutated"
            )
        if name in changed or (unknown and kind.startswith("Tensor")):
            kind = f"Tensor(a{place}!){kind.removeprefix('Tensor')}"
        texts.append(_parameter_text(parameter, kind, fail))
    strange = changed - set(signature.parameters)
    if strange:
        fail(
            f"{strange} in mutates_args were not found in the custom op's signature. mutates_args "
            "should contain the names of all args that the custom op mutates, or just the string "
            "'unknown' if you don't know."
        )
    return f"{op_name or ''}({', '.join(texts)}) -> {_return_text(hints, fail)}"


def _hints(fn: Any, signature: Any, fail: Any) -> dict[str, Any]:
    """The annotations as types; those that are text are evaluated."""
    found = {}
    every = {name: p.annotation for name, p in signature.parameters.items()}
    every["return"] = signature.return_annotation
    for name, hint in every.items():
        if isinstance(hint, str):
            try:
                hint = eval(hint, getattr(fn, "__globals__", {}))
            except Exception as error:
                fail(f"Unsupported type annotation {hint}. It is not a type. ({error})")
        found[name] = hint
    return found


def _parameter_text(parameter: Any, kind: str, fail: Any) -> str:
    default = parameter.default
    if default is inspect.Parameter.empty:
        return f"{kind} {parameter.name}"
    if default is not None and not isinstance(default, (int, float, str, dtypes.dtype, Device)):
        fail(f"Parameter {parameter.name} has an unsupported default value type {type(default)}.")
    return f"{kind} {parameter.name}={_default_text(default)}"


def _return_text(hints: dict[str, Any], fail: Any) -> str:
    hint = hints["return"]
    if hint is inspect.Parameter.empty:
        fail("No return type annotation was provided. Please add one.")
    if hint is None or hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        kinds = [_RETURNS.get(each) for each in typing.get_args(hint)]
        if None not in kinds:
            inner = ", ".join([str(kind) for kind in kinds])
            return f"(({inner}))" if len(kinds) == 1 else f"({inner})"
    found = _RETURNS.get(hint)
    if found is None and _element(hint) is Tensor:
        found = "Tensor[]"
    if found is None:
        fail(f"Return has unsupported type {hint}.")
    return str(found)
