"""Whether a fix holds: its code is tried on stand-ins, before anybody is told of it.

The fixed expression is interpreted, never handed to Python: names, constants, operators, and calls
of what is antorcha's own. A tensor of the program is replaced by a stand-in of its shape, strides,
dtype and place in the graph: first on the meta device, where nothing is computed, then, where all
operands are small, by a copy with its values. Nothing of the program is run or written to, and
where code says anything else, nobody knows whether it holds.
"""

from __future__ import annotations

import ast
import operator
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from antorcha.core import modes
from antorcha.core.device import Device
from antorcha.core.dtypes import dtype
from antorcha.core.lazy import np
from antorcha.core.shapes import Size
from antorcha.inspector.explain.values import UNKNOWN, Fact, Names, fact_of
from antorcha.inspector.naming import field, is_tensor, module_fields
from antorcha.inspector.reading import Elements
from antorcha.ops.kinds.record import Op
from antorcha.runtime.tensor import Tensor, bare

_SMALL = 1 << 18  # elements of all operands together, and of a result, that are computed
_DEEP = 50  # expressions within expressions

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.MatMult: operator.matmul, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_IN_PLACE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.iadd, ast.Sub: operator.isub, ast.Mult: operator.imul,
    ast.Div: operator.itruediv, ast.FloorDiv: operator.ifloordiv, ast.Mod: operator.imod,
    ast.Pow: operator.ipow, ast.MatMult: operator.imatmul, ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior, ast.BitXor: operator.ixor,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
    ast.Not: operator.not_,
}  # fmt: skip
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip

_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(...), dtype, Device, Size)
_BUILTINS = (int, float, bool, str, len, list, tuple, abs, sum, max, min)
_OF_ARRAYS = ("copy", "reshape", "astype", "transpose", "ravel", "flatten", "squeeze")
_OF_MODULES = ("parameters", "state_dict", "load_state_dict", "eval", "train")
_FUNCTIONS = ("tensor", "as_tensor", "from_numpy", "asarray", "deepcopy")
_NOT_TRIED = ("register_hook", "share_memory_", "cuda", "tofile", "module_load", "storage")


class Unknown(Exception):
    """The code says something that is not tried."""


@dataclass(frozen=True)
class TrialVerdict:
    """Whether code holds: True, False, or None where nobody knows; and what it gives."""

    holds: bool | None
    shape: tuple[int, ...] | None = None


def try_code(code: str, names: Names, parts: Mapping[ast.AST, Any]) -> TrialVerdict:
    """Does an expression (or an assignment to a part) hold? `parts` are values of some of its
    parts: what was computed on the way to the error."""
    statement = _parsed(code.strip()) or _parsed(f"({code.strip()})")  # (it may have several lines)
    if statement is None:
        return TrialVerdict(None)
    return _tried(lambda trial: trial.statement(statement), names, parts)


def _parsed(code: str) -> ast.stmt | None:
    try:
        (statement,) = ast.parse(code).body
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return statement


def try_layer(code: str, given: Sequence[Any], names: Names) -> TrialVerdict:
    """Does a layer that this code makes take these arguments?"""
    call = ast.parse(code, mode="eval").body
    return _tried(
        lambda trial: trial.module(trial.value(call), [trial.stand_in(x) for x in given], {}),
        names, {},
    )  # fmt: skip


def _tried(
    work: Callable[[_Trial], Any], names: Names, parts: Mapping[ast.AST, Any]
) -> TrialVerdict:
    """First by shapes; then with values, where the operands are few and the result is small."""
    if modes.state.word & modes.TAPE:  # (what is tried would be noted)
        return TrialVerdict(None)
    by_shape = _run(work, _Trial(names, parts, real=False))
    if by_shape.holds is False:
        return by_shape
    trial = _Trial(names, parts, real=True)
    if by_shape.holds is None:
        trial.left = 2048  # (the result may be as large as their square)
    elif by_shape.shape is not None and _count(by_shape.shape) > _SMALL:
        return by_shape
    by_value = _run(work, trial)
    return by_shape if by_value.holds is None else by_value


def _run(work: Callable[[_Trial], Any], trial: _Trial) -> TrialVerdict:
    torch: Any = sys.modules["antorcha"]
    numbers = torch.get_rng_state()  # (what draws them gives them back)
    word = modes.set_word(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = work(trial)
    except (Unknown, MemoryError, RecursionError):
        return TrialVerdict(None)
    except Exception as error:
        # (what the meta device does not do, another may)
        lacks = isinstance(error, NotImplementedError) or "meta" in str(error)
        return TrialVerdict(None if lacks and not trial.real else False)
    finally:
        modes.set_word(word)
        torch.set_rng_state(numbers)
    shaped = fact_of(result) or (result if type(result) is np.ndarray else None)
    return TrialVerdict(True, None if shaped is None else shaped.shape)


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


class _Trial:
    """One run of the code, on the meta device or (`real`) on copies."""

    def __init__(self, names: Names, parts: Mapping[ast.AST, Any], real: bool) -> None:
        self.names, self.real = names, real
        self.left = _SMALL  # elements that may still be copied
        self._parts: dict[str, Any] = {}
        for node, value in parts.items():
            text = ast.dump(node)
            if text in self._parts and not _alike(self._parts[text], value):
                value = UNKNOWN  # (next(batches) @ next(batches))
            self._parts[text] = value
        self._made: dict[int, Any] = {}
        self._deep = 0

    # ------------------------------------------------------------------------------ the code
    def statement(self, node: ast.stmt) -> Any:
        """What a statement gives."""
        if isinstance(node, ast.Expr):
            return self.value(node.value)
        if isinstance(node, ast.AugAssign) and type(node.op) in _IN_PLACE:
            target, other = self.value(_read(node.target)), self.value(node.value)
            return _IN_PLACE[type(node.op)](target, other)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            part = node.targets[0]
            target, index = self.value(part.value), self.value(part.slice)
            new = self.value(node.value)
            if not isinstance(target, Tensor):
                raise Unknown
            target[index] = new
            return target[index]
        raise Unknown

    def value(self, node: ast.AST) -> Any:
        """What an expression gives."""
        self._deep += 1
        if self._deep > _DEEP:
            raise Unknown
        try:
            known = self._parts.get(ast.dump(node), UNKNOWN)
            if known is not UNKNOWN and type(known) is not Fact:
                return self.stand_in(known)
            work = getattr(self, f"_{type(node).__name__.lower()}", None)
            if work is None:
                raise Unknown
            return work(node)
        finally:
            self._deep -= 1

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        return self.stand_in(self.names.get(node.id))

    def _tuple(self, node: ast.Tuple) -> Any:
        return tuple([self.value(each) for each in node.elts])

    def _list(self, node: ast.List) -> Any:
        return [self.value(each) for each in node.elts]

    def _binop(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        known = _is_array(left) or _is_array(right) or isinstance(node.op, (ast.Add, ast.Sub))
        if not known:
            raise Unknown  # (10 ** 10 ** 10, "a" * 10 ** 10)
        return _BINARY[type(node.op)](left, right)

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        return _UNARY[type(node.op)](self.value(node.operand))

    def _compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1 or type(node.ops[0]) not in _COMPARED:
            raise Unknown
        return _COMPARED[type(node.ops[0])](self.value(node.left), self.value(node.comparators[0]))

    def _subscript(self, node: ast.Subscript) -> Any:
        return self.value(node.value)[self.value(node.slice)]

    def _slice(self, node: ast.Slice) -> Any:
        parts = (node.lower, node.upper, node.step)
        return slice(*[None if part is None else self.value(part) for part in parts])

    def _attribute(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, Tensor):
            if node.attr.startswith("_") or isinstance(vars(Tensor).get(node.attr), FunctionType):
                raise Unknown
            return getattr(owner, node.attr)
        if type(owner) is ModuleType:
            return self.stand_in(getattr(owner, node.attr, UNKNOWN))
        if isinstance(owner, tuple) and node.attr in getattr(type(owner), "_fields", ("values",)):
            return getattr(owner, node.attr)
        if type(owner) is np.ndarray and node.attr in ("T", "shape", "dtype", "ndim", "size"):
            return getattr(owner, node.attr)
        fields = module_fields(owner)
        if fields is not None:
            for table in (fields, fields["_parameters"], fields["_modules"], fields["_buffers"]):
                if node.attr in table:
                    return table[node.attr]
        raise Unknown

    def _call(self, node: ast.Call) -> Any:
        args = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                raise Unknown
            args.append(self.value(each))
        kwargs = {word.arg: self.value(word.value) for word in node.keywords if word.arg}
        if len(kwargs) < len(node.keywords):
            raise Unknown
        func = node.func
        if isinstance(func, ast.Attribute):
            owner = self.value(func.value)
            if type(owner) is not ModuleType:
                return self._method(owner, func.attr, args, kwargs)
            return self._function(getattr(owner, func.attr, UNKNOWN), args, kwargs)
        return self._function(self.value(func), args, kwargs)

    # ------------------------------------------------------------------------------ calls
    def _method(self, owner: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if isinstance(owner, Tensor):
            if name.startswith("_") or name in _NOT_TRIED:
                raise Unknown
            if name == "numpy" and not self.real:
                raise Unknown
            return getattr(owner, name)(*args, **kwargs)
        if type(owner) is np.ndarray and name in _OF_ARRAYS:
            return getattr(owner, name)(*args, **kwargs)
        if module_fields(owner) is not None:
            if name in _OF_MODULES:
                return getattr(owner, name)(*args, **kwargs)
            if name in module_fields(owner)["_modules"]:  # type: ignore[index]
                return self.module(getattr(owner, name), args, kwargs)
        raise Unknown

    def _function(self, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if module_fields(fn) is not None:
            return self.module(self.stand_in(fn), args, kwargs)
        if any(fn is each for each in _BUILTINS):
            return fn(*args, **kwargs)
        if issubclass(type(fn), type) and fn in _classes():
            return self._constructed(fn, args, kwargs)
        if not _is_ours(fn):
            raise Unknown
        if not self.real and not any(map(_holds_tensor, [*args, *kwargs.values()])):
            kwargs = {**kwargs, "device": "meta"} if _takes_device(fn) else kwargs
        elif self.real and any(type(each) is int and abs(each) > _SMALL for each in args):
            raise Unknown  # (torch.zeros(10**12))
        result = fn(*args, **kwargs)
        return result if self.real or not isinstance(result, Tensor) else result.to("meta")

    def _constructed(self, kind: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A layer, a loss or an optimizer."""
        numbers = [each for each in [*args, *kwargs.values()] if type(each) is int]
        if self.real and _count([max(each, 1) for each in numbers]) > _SMALL:
            raise Unknown
        if not self.real and _takes_device(kind.__init__):
            kwargs = {**kwargs, "device": "meta"}
        return kind(*args, **kwargs)

    def module(self, layer: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A call of a layer's stand-in."""
        if module_fields(layer) is None:
            raise Unknown
        return type(layer).forward(layer, *args, **kwargs)

    # ------------------------------------------------------------------------------ stand-ins
    def stand_in(self, value: Any) -> Any:
        """What takes the place of a value of the program's."""
        kind = type(value)
        if value is UNKNOWN or kind is Fact:
            raise Unknown
        if kind in _PLAIN:
            return value
        if kind is ModuleType and value.__name__.startswith(("antorcha", "numpy")):
            return value
        if id(value) in self._made:
            return self._made[id(value)]
        result = self._copied(value, kind)
        self._made[id(value)] = result
        return result

    def _copied(self, value: Any, kind: type) -> Any:
        if is_tensor(value):
            return self._tensor(value)
        if kind in (list, tuple) and len(value) <= 1000:
            return kind([self.stand_in(each) for each in value])
        if kind is dict and len(value) <= 1000:
            return {name: self.stand_in(each) for name, each in value.items()}
        if issubclass(kind, tuple) and kind.__module__ == "torch.return_types":
            return kind([self.stand_in(each) for each in value])
        if kind is np.ndarray:
            return self._array(value)
        if module_fields(value) is not None:
            return self._layer(value)
        if any(value is each for each in _BUILTINS) or _is_ours(value):
            return value
        if issubclass(kind, type) and value in _classes():
            return value
        raise Unknown

    def _array(self, value: Any) -> Any:
        self._take(value.size)
        if self.real and value.dtype.kind in "biufc" and min(value.strides, default=0) >= 0:
            return np.array(value, order="K")
        seen = value.view()  # (nothing is written to it)
        seen.flags.writeable = False
        return seen

    def _take(self, count: int) -> None:
        self.left -= count
        if self.real and self.left < 0:
            raise Unknown

    def _tensor(self, value: Any) -> Tensor:
        torch: Any = sys.modules["antorcha"]

        fact = fact_of(value)
        assert fact is not None
        self._take(fact.numel)
        with torch.inference_mode(fact.is_inference):
            if not self.real or fact.device.type == "meta":
                result: Any = torch.empty_strided(
                    fact.shape, fact.strides, dtype=fact.dtype, device="meta"
                )
            else:
                if Elements(value).why_not:
                    raise Unknown
                layout, storage = field(value, "_layout"), field(value, "_storage")
                result = bare(layout, storage, field(value, "_offset")).clone()
        if fact.requires_grad and not fact.is_inference:
            result.requires_grad_()
            result = result if fact.is_leaf else result.view_as(result) * 1
        parameter = fact.is_parameter and fact.is_leaf
        whole: Tensor = torch.nn.Parameter(result) if parameter else result
        return whole

    def _layer(self, layer: Any) -> Any:
        """A layer of antorcha's own, without hooks: the same fields, stand-ins for its tensors."""
        fields = module_fields(layer)
        assert fields is not None
        kind = type(layer)
        if kind not in _classes() or any(fields.get(name) for name in fields if "hooks" in name):
            raise Unknown
        result = object.__new__(kind)
        own = dict(fields)
        for table in ("_parameters", "_buffers", "_modules"):
            own[table] = {
                name: None if each is None else self.stand_in(each)
                for name, each in fields[table].items()
            }
        object.__setattr__(result, "__dict__", own)
        return result


def _alike(one: Any, two: Any) -> bool:
    a, b = fact_of(one), fact_of(two)
    if a is None or b is None:
        return one is two
    return (a.shape, a.dtype, a.device) == (b.shape, b.dtype, b.device)


def _read(node: ast.expr) -> ast.expr:
    """The target of ``x[0] += 1`` as what it reads."""
    return ast.parse(ast.unparse(node), mode="eval").body


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor) or type(value) is np.ndarray


def _holds_tensor(value: Any) -> bool:
    inside = value if type(value) in (list, tuple) else ()
    return isinstance(value, Tensor) or any(map(_holds_tensor, inside))


def _is_ours(fn: Any) -> bool:
    """Is it one of the functions that compute, of antorcha's or NumPy's?"""
    if isinstance(fn, Op) or fn is np.dot or fn is np.matmul:
        return True
    if type(fn) is not FunctionType:
        return False
    where = fn.__module__
    known = where.startswith("antorcha.") and fn.__name__ in _FUNCTIONS
    return known or where == "antorcha.nn.functional"


def _takes_device(fn: Any) -> bool:
    """Does a function make tensors where its argument ``device`` says?"""
    if isinstance(fn, Op):
        return "device" in fn.signature.names
    code = getattr(fn, "__code__", None)
    if code is None:
        return False
    return "device" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _classes() -> set[type]:
    """The layers, losses and optimizers of antorcha."""
    found: set[type] = set()
    for name in ("antorcha.nn", "antorcha.optim"):
        package = sys.modules.get(name)
        for value in list(vars(package).values()) if package is not None else ():
            if issubclass(type(value), type) and value.__module__.startswith(name):
                found.add(value)
    data = sys.modules.get("antorcha.data.dataset")
    if data is not None:
        found.add(data.TensorDataset)
    return found
