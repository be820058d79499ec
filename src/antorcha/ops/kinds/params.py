"""Parameters of ops: what each kind accepts, and how arguments become a plan's key.

An op is declared as a Python function whose annotations name the kinds below::

    def sum(input: Tensor, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None): ...

Tensors enter the key by layout, run-time numbers by type, everything else by value. A number that
equals its parameter's default is a constant of the plan, so ``alpha=1`` costs nothing.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.core.device import Device, as_device
from antorcha.core.memo import keep
from antorcha.core.shapes import is_symbol
from antorcha.errors import (
    ArgumentError,
    NumberOverflow,
    ShapeError,
    ValueRangeError,
    did_you_mean,
    nearest,
    shown,
    warn,
)
from antorcha.runtime.tensor import Tensor

TENSOR, OPTIONAL, OPERAND, NUMBER, TENSORS, STATIC = range(6)
SPELLINGS = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other",
             "axis0": "dim0", "axis1": "dim1", "tensor": "input", "train": "training",
             "split_size_or_sections": "split_size", "input2": "tau", "input3": "other",
             **dict.fromkeys(("indices", "sections", "tensor_indices_or_sections"),
                             "indices_or_sections")}  # fmt: skip
_MISSING: Any = type("_Missing", (), {"__repr__": lambda self: "<no default>"})()


def _text(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, Tensor):
        return f"{kind} (shape {tuple(value._layout.shape)})"
    return f"{kind} ({shown(value, 60)})"


def to_int(op: str, name: str, value: Any) -> int:
    if type(value) is int or is_symbol(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, (bool, float)):
        raise _no_int(op, name, value)
    try:
        return int(operator.index(value))
    except TypeError:
        raise _no_int(op, name, value) from None


def _no_int(op: str, name: str, value: Any) -> ArgumentError:
    return ArgumentError(
        "{op}: {name} must be an int, not {text}", reason="int wanted", op=op, name=name,
        kind=type(value).__name__, text=_text(value),
    )  # fmt: skip


def to_long(op: str, name: str, value: Any) -> int:
    """An int of 64 bits, as PyTorch's ops take them."""
    found = to_int(op, name, value)
    if is_symbol(found):
        return found
    if not -_BIG <= found < _BIG:
        raise ValueRangeError(
            f"{op}: {name}: Overflow when unpacking long long: an int of {found.bit_length()} bits"
        )
    return found


_BIG = 1 << 63
# What the numbers of the deprecated forms are: torch.addmm(beta, input, alpha, mat1, mat2).
_OLDER_FORMS = {
    **dict.fromkeys(("add", "sub"), ("alpha",)),
    **dict.fromkeys(("addcmul", "addcdiv"), ("value",)),
    **dict.fromkeys(("addmm", "addmv", "addr", "addbmm", "baddbmm"), ("beta", "alpha")),
}


def to_real(op: str, name: str, value: Any) -> Any:
    """Refuses a number with an imaginary part where a real one is computed with."""
    if isinstance(value, complex):
        if value.imag:
            raise NumberOverflow(
                f"{op}: {name}: value cannot be converted to type double without overflow: {value}"
            )
        return value.real
    return value


def to_float(op: str, name: str, value: Any) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentError(f"{op}: {name} must be a number, not {_text(value)}") from None


def to_bool(op: str, name: str, value: Any) -> bool:
    if type(value) is bool:
        return value
    if isinstance(value, int) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise ArgumentError(f"{op}: {name} must be a bool, not {_text(value)}")


def to_str(op: str, name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ArgumentError(f"{op}: {name} must be a str, not {_text(value)}")
    return value


def to_ints(op: str, name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, Tensor) and value._layout.ndim == 1:
        value = value.tolist()
    if isinstance(value, (tuple, list)):
        return tuple([v if type(v) is int else to_int(op, name, v) for v in value])
    return (to_int(op, name, value),)


def to_dims(op: str, name: str, value: Any) -> tuple[int, ...] | int:
    return (
        to_int(op, name, value)
        if not isinstance(value, (tuple, list))
        else to_ints(op, name, value)
    )


def to_dtype(op: str, name: str, value: Any) -> dtypes.dtype:
    if isinstance(value, dtypes.dtype):
        return value
    kinds = {float: dtypes.float64, int: dtypes.int64, bool: dtypes.bool_}
    found = kinds.get(value) if isinstance(value, type) else None
    if found is None:
        raise ArgumentError(
            "{op}: {name} must be a dtype such as torch.float32, not {text}", reason="dtype object",
            op=op, name=name, text=_text(value), given=value if type(value) is str else "",
        )  # fmt: skip
    return dtypes.get_default_dtype() if value is float else found


def to_device(op: str, name: str, value: Any) -> Device:
    if isinstance(value, (Device, str, int)) and not isinstance(value, bool):
        return as_device(value)
    raise ArgumentError(f"{op}: {name} must be a device such as 'cpu', not {_text(value)}")


_PLAIN: tuple[Any, ...] = (bool, int, float, complex)


def to_number(op: str, name: str, value: Any) -> Any:
    for plain in _PLAIN:
        if isinstance(value, plain):  # (np.float64 is a float, an IntEnum an int)
            return value if type(value) is plain else plain(value)
    if is_symbol(value):
        return value
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "ndim", 1) == 0:
        if not getattr(value, "requires_grad", False):
            return item()
        raise ArgumentError(
            f"{op}: {name} must be a number, not a tensor that requires grad: no gradient would "
            "reach it; use .item()"
        )
    raise ArgumentError(f"{op}: {name} must be a number, not {_text(value)}")


def to_end(op: str, name: str, value: Any) -> Any:
    if isinstance(value, Tensor) and value._layout.ndim:
        raise ShapeError(
            f"{op} only supports 0-dimensional start and end tensors, but got {name} with "
            f"{value._layout.ndim} dimension(s)"
        )
    return to_number(op, name, value)


def _beyond(op: str, name: str, value: int, operands: list[Tensor | None]) -> float:
    """An int that is none of 64 bits: a parameter such as ``alpha`` is a float beside these floats,
    else it is refused."""
    if any([each is not None and each._layout.dtype.kind in "fc" for each in operands]):
        with contextlib.suppress(OverflowError):
            return float(value)
    raise NumberOverflow(
        f"{op}: {name}: value cannot be converted to type int64 without overflow: an int of "
        f"{value.bit_length()} bits is too big to convert"
    )


def to_scalars(op: str, name: str, value: Any) -> tuple[float, ...]:
    if isinstance(value, (tuple, list)):
        return tuple([to_float(op, name, v) for v in value])
    return (to_float(op, name, value),)


def anything(op: str, name: str, value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


KINDS: dict[str, tuple[int, Callable[[str, str, Any], Any] | None]] = {
    "Tensor": (TENSOR, None), "OptTensor": (OPTIONAL, None), "Operand": (OPERAND, None),
    "Power": (OPERAND, None), "Number": (NUMBER, to_number),
    "Tensors": (TENSORS, None), "Int": (STATIC, to_long), "OptInt": (STATIC, to_long),
    "Float": (STATIC, to_float), "Bool": (STATIC, to_bool), "Str": (STATIC, to_str),
    "Ints": (STATIC, to_ints), "Shape": (STATIC, to_ints), "Dim": (STATIC, to_long),
    "Dims": (STATIC, to_dims), "Dtype": (STATIC, to_dtype), "DeviceArg": (STATIC, to_device),
    "OptFloat": (STATIC, to_float), "Floats": (STATIC, to_scalars), "Any": (STATIC, anything),
    "StaticNumber": (STATIC, to_number), "EndNumber": (STATIC, to_end),
}  # fmt: skip

NEVER_TENSORS = frozenset(
    ("Bool", "Str", "Dtype", "DeviceArg", "StaticNumber", "EndNumber", "Int", "OptInt", "Dim")
)
"""Kinds of what not even a composite gets as a tensor; a 0-dim one may stand for a number."""
NONE_IS_A_VALUE = ("Any", "OptInt")  # kinds
NONE_IS_DEFAULT = frozenset(
    (
        "requires_grad",
        "pin_memory",
        "memory_format",
        "inplace",
        "return_indices",
        "full",
        "stable",
        "antialias",
    )
)
"""Parameters for which PyTorch takes None, as for sizes of which there are none by default."""


_OF_NUMBERS = (to_number, to_float, to_scalars)


def static_key(value: Any) -> Any:
    """What a value that is part of a plan is in the plan's key: of dictionary keys 1, 1.0 and True
    are one, 0.0 and -0.0 too, and nan is none."""
    if type(value) is tuple:
        return tuple([static_key(each) for each in value])
    plain = not isinstance(value, (float, complex)) or (value and value == value)
    return type(value), value if plain else repr(value)


def is_default(param: Param, value: Any) -> bool:
    """Is a number the parameter's default, of the same type?"""
    default = param.default
    return type(value) is type(default) and (
        value is default or static_key(value) == static_key(default)
    )


class Param:
    """One parameter: its name, kind, default and check."""

    __slots__ = (
        "check", "code", "default", "keyword_only", "kind", "name", "never_tensor", "optional",
        "static",
    )  # fmt: skip

    def __init__(self, name: str, kind: str, default: Any, keyword_only: bool) -> None:
        self.name, self.kind, self.default, self.keyword_only = name, kind, default, keyword_only
        self.code, self.check = KINDS[kind]
        self.never_tensor = kind in NEVER_TENSORS
        self.static = kind == "Power"  # a number here is part of the plan: x ** 2 is x * x
        self.optional = (  # may it be None?
            default is None
            or default == ()
            or kind in NONE_IS_A_VALUE
            or kind == "OptFloat"
            or (name in NONE_IS_DEFAULT and default is not _MISSING)
        )

    def checked(self, op: str, value: Any) -> Any:
        """An argument that is no operand, as the op gets it: of the parameter's kind. None, where
        it may be None, is the default, but where the kind says that it is a value of its own."""
        if value is None and self.optional:
            return None if self.kind in NONE_IS_A_VALUE else self.default
        assert self.check is not None
        return self.check(op, self.name, value)


def parameters(fn: Callable[..., Any]) -> list[tuple[str, str, Any, bool]]:
    """A function's parameters: name, annotation, default, keyword only. (What inspect.signature
    gives, at a tenth of its price: hundreds of records are made at import.) A function made by a
    decorator may say them in an attribute of that name."""
    said: list[tuple[str, str, Any, bool]] | None = getattr(fn, "parameters", None)
    if said is not None:
        return said
    code = fn.__code__
    count, only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames[: count + only]
    kinds = fn.__annotations__
    defaults = fn.__defaults__ or ()
    values = [_MISSING] * (count - len(defaults)) + list(defaults)
    keyword = fn.__kwdefaults__ or {}
    return [
        (name, kinds.get(name, "Any"), values[k] if k < count else keyword.get(name, _MISSING),
         k >= count)
        for k, name in enumerate(names)
    ]  # fmt: skip


_OPERAND, _VALUE, _SIZES, _NUMBER, _ABSENT, _NOTHING = range(6)
_KNOWN = frozenset((int, bool, float, complex, str, tuple, type(None), dtypes.dtype, Device))


def _treatment(param: Param, kind: Any, given: bool, loose: bool) -> int | None:
    """What ``Signature.quick_bind`` does with an argument of a type; None: ``bind`` must see it."""
    code = param.code
    if not given:
        if param.default is _MISSING or code == TENSORS:
            return None
        if code in (STATIC, NUMBER):
            return _NOTHING
        return _ABSENT if param.default is None else None
    if issubclass(kind, Tensor):
        return _OPERAND if code in (TENSOR, OPTIONAL, OPERAND) else None
    if kind not in _KNOWN or code in (TENSORS, NUMBER, TENSOR):
        return None
    if code == STATIC:
        if kind is bool and param.check in (to_long, to_ints, to_dims):
            return None
        if kind is tuple:
            return _SIZES
        return None if loose else _VALUE
    if kind is type(None):
        return _ABSENT if code == OPTIONAL or param.default is None else None
    plain = code == OPERAND and kind in _PLAIN and not param.static
    return _NUMBER if plain else None


def no_quick_bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """In place of ``Signature.quick_bind``: every call is bound in full."""
    return None


class Signature:
    """An op's parameters, and the binding of arguments to them."""

    def __init__(self, op: str, fn: Callable[..., Any], sizes: Sequence[str] = ()) -> None:
        """sizes: the parameters whose integers are sizes, beside shapes."""
        self.op = op
        self.params = []
        for name, kind, default, keyword_only in parameters(fn):
            self.params.append(Param(name, kind, default, keyword_only))
        self.names = [p.name for p in self.params]
        self.positional = sum(not p.keyword_only for p in self.params)
        self.defaults = [p.default for p in self.params]
        self.required = sum(p.default is _MISSING for p in self.params)
        # view(2, 3): a shape may be written as loose numbers when nothing else can follow it
        shapes = [k for k, p in enumerate(self.params) if p.kind in ("Shape", "Ints")]
        loose = bool(shapes) and shapes[0] == self.positional - 1 and shapes[0] <= 1
        self.loose = shapes[0] if loose else -1
        self.loose_name = self.params[self.loose].name if loose else None
        self.number_mask = 0  # a bit for each argument that may be a number for the kernel
        for k, p in enumerate(self.params[: self.positional]):
            number = p.code == NUMBER and (p.default is None or p.default is _MISSING)
            if k and (number or (p.code == OPERAND and not p.static)):
                self.number_mask |= 1 << k
        self.shape_mask = 0  # a bit for each argument that is a shape, or a part of one
        for k, p in enumerate(self.params[: self.positional]):
            if p.kind == "Shape" or p.name in sizes:
                self.shape_mask |= (1 << 62) - (1 << k) if k == self.loose else 1 << k
        self.recipes: dict[Any, list[tuple[int, int]]] = {}  # by argument types: see quick_bind
        self.shapes = [k for k, p in enumerate(self.params) if p.kind == "Shape"]
        self.plan_items = [(p.code, p.check, p.name, p.default) for p in self.params]

    def __str__(self) -> str:
        parts, star = [], False
        for p in self.params:
            if p.keyword_only and not star:
                parts.append("*")
                star = True
            parts.append(p.name if p.default is _MISSING else f"{p.name}={p.default!r}")
        return f"{self.op}({', '.join(parts)})"

    def fill(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Every parameter's argument, defaults included."""
        values = list(args)
        if self.loose >= 0 and len(values) > self.loose:
            loose = values[self.loose]
            if not isinstance(loose, (tuple, list)) and self.params[self.loose].name not in kwargs:
                values[self.loose :] = [tuple(values[self.loose :])]
        if len(values) > self.positional and self.op in _OLDER_FORMS:
            values, kwargs = self._from_older_form(values, kwargs)
        if len(values) > self.positional:
            raise ArgumentError(
                "{op}() takes {most} positional arguments but {given} were given; its signature is "
                "{signature}",
                reason="too many arguments", op=self.op, most=self.positional, given=len(values),
                signature=str(self),
            )  # fmt: skip
        given = len(values)
        values += self.defaults[given:]
        for name, value in kwargs.items():
            k = self.position(name)
            if k < given:
                raise ArgumentError(f"{self.op}() got multiple values for argument {name!r}")
            values[k] = value
        if given < self.required and any([v is _MISSING for v in values]):
            missing = [n for n, v in zip(self.names, values, strict=True) if v is _MISSING]
            raise ArgumentError(
                f"{self.op}() missing required argument {', '.join(map(repr, missing))}; "
                f"its signature is {self}"
            )
        return values

    def _from_older_form(
        self, values: list[Any], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """``x.add_(alpha, other)`` as ``x.add_(other, alpha=alpha)``; likewise the others that
        PyTorch once took with their numbers before the tensors."""
        tensors = [value for value in values if isinstance(value, Tensor)]
        numbers = [value for value in values if not isinstance(value, Tensor)]
        names = _OLDER_FORMS[self.op]
        if len(tensors) != self.positional or not 0 < len(numbers) <= len(names):
            return values, kwargs
        warn(
            f"{self.op}: numbers before the tensors are deprecated. The signature is {self}: "
            f"write {', '.join(f'{name}=' for name in names)} by name"
        )
        return tensors, {**dict(zip(names, numbers, strict=False)), **kwargs}

    def position(self, name: str) -> int:
        names = self.names
        if name in names:
            return names.index(name)
        other = SPELLINGS.get(name)
        if other in names:
            return names.index(other)
        if name == "self":
            return 0
        raise ArgumentError(
            "{op}() got an unexpected keyword argument {name!r}.{hint} Its signature is "
            "{signature}",
            reason="unexpected keyword", op=self.op, name=name, meant=nearest(name, names),
            hint=did_you_mean(name, names), signature=str(self),
        )  # fmt: skip

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """-> (key, tensor operands, launch arguments, run-time numbers, every bound value)."""
        values = self.fill(args, kwargs)
        key: list[Any] = []
        operands: list[Tensor | None] = []
        flat: list[Any] = []
        numbers: list[Any] = []
        op = self.op
        for k, (code, check, name, default) in enumerate(self.plan_items):
            value = values[k]
            if code == STATIC:
                if value is not default:
                    value = values[k] = self.params[k].checked(op, value)
                key.append(static_key(value) if check in _OF_NUMBERS else value)
            elif isinstance(value, Tensor):
                if code >= NUMBER:
                    if code == NUMBER and value._layout.numel == 1:
                        value = values[k] = value.item()
                        key.append(type(value))
                        numbers.append(value)
                        flat.append(value)
                        continue
                    raise ArgumentError(
                        "{op}: {name} must not be a tensor ({text})", reason="no tensor wanted",
                        op=op, name=name, text=_text(value),
                    )  # fmt: skip
                key.append(value._layout)
                operands.append(value)
                flat.append(value._storage)
                flat.append(value._offset)
            elif value is None and (code == OPTIONAL or default is None):
                key.append(None)  # an Operand that may be left out has the default None
                if code != NUMBER:
                    operands.append(None)
            elif code == TENSORS:
                if isinstance(value, list):
                    value = values[k] = tuple(value)  # which no other code changes
                key.append(self._bind_list(name, value, operands, flat))
            elif code == NUMBER and is_default(self.params[k], value):
                key.append(None)
            elif code in (NUMBER, OPERAND):
                value = to_number(op, name, value)
                if code == NUMBER and type(value) is int and not -_BIG <= value < _BIG:
                    value = _beyond(op, name, value, operands)
                values[k] = value
                if code == OPERAND:
                    operands.append(None)
                    if self.params[k].static:
                        key.append(static_key(value))
                        continue
                key.append(type(value))
                numbers.append(value)
                flat.append(value)
            else:
                raise ArgumentError(
                    "{op}(): argument {name!r} must be Tensor, not {text}", reason="tensor wanted",
                    op=op, name=name, kind=type(value).__name__, text=_text(value),
                )  # fmt: skip
        return tuple(key), operands, flat, tuple(numbers), values

    def quick_bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What ``bind`` gives, but for the bound values, of arguments whose types have been seen:
        nothing is converted or checked again. None where that is not enough. The key has the types
        in it: 1, 1.0 and True would be one."""
        if kwargs:
            values = (*args, *kwargs.values())
            kinds: tuple[Any, ...] = (*map(type, values), *kwargs)
        else:
            values, kinds = args, tuple(map(type, args))
        recipe = self.recipes.get(kinds)
        if recipe is None:
            recipe = self._recipe(kinds, len(args), tuple(kwargs))
        if not recipe:
            return None
        key: list[Any] = [kinds]
        operands: list[Tensor | None] = []
        flat: list[Any] = []
        numbers: tuple[Any, ...] = ()
        for what, at in recipe:
            if what == _OPERAND:
                tensor = values[at]
                key.append(tensor._layout)
                operands.append(tensor)
                flat.append(tensor._storage)
                flat.append(tensor._offset)
            elif what == _VALUE:
                value = values[at]
                key.append(static_key(value) if type(value) is float else value)
            elif what == _SIZES:
                value = values[at]
                for each in value:
                    if type(each) is not int:
                        return None
                key.append(value)
            else:
                operands.append(None)
                if what == _NUMBER:
                    numbers = (*numbers, values[at])
                    flat.append(values[at])
        return tuple(key), operands, flat, numbers

    def _recipe(self, kinds: tuple[Any, ...], positional: int, names: tuple[str, ...]) -> Any:
        """How ``quick_bind`` treats arguments of these types: (what, which of them) in the order of
        the parameters; empty where it must not."""
        given = {name: k for k, name in enumerate(self.names[:positional])}
        given.update({name: positional + k for k, name in enumerate(names)})
        simple = positional <= self.positional and all([name in self.names for name in names])
        recipe: list[tuple[int, int]] = []
        for param in self.params if simple and len(given) == positional + len(names) else ():
            at = given.get(param.name, -1)
            kind = type(param.default) if at < 0 else kinds[at]
            what = _treatment(param, kind, at >= 0, param.name == self.loose_name)
            if what is None:
                recipe = []
                break
            if what != _NOTHING:
                recipe.append((what, at))
        return keep(self.recipes, kinds, recipe, 1000)  # classes could be any number

    def _bind_list(
        self, name: str, value: Any, operands: list[Tensor | None], flat: list[Any]
    ) -> tuple[Any, ...]:
        if not isinstance(value, (tuple, list)):
            raise ArgumentError(
                f"{self.op}(): argument {name!r} must be a tuple or list of Tensors, "
                f"not {_text(value)}"
            )
        for each in value:
            if not isinstance(each, Tensor):
                raise ArgumentError(
                    f"{self.op}(): expected Tensor as element of argument {name!r}, "
                    f"but got {_text(each)}"
                )
            operands.append(each)
            flat.append(each._storage)
            flat.append(each._offset)
        return tuple([each._layout for each in value])
