"""Operators of a tensor and another, or a number: machine code in the slots of Tensor's type.

An operator goes by the table of its op (``calls.try_call``), or of the op's in-place form, once
that has a builtin; before, and where the call is not for there, Python serves it as CPython would.

Invariants: the operator's slot in the types of Tensor, Parameter and subclasses that have instances
holds machine code, or what the interpreter has put there since, for whoever sets ``__add__`` anew.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from antorcha.lang.native import (
    Global,
    Spec,
    func,
    i32,
    i64,
    inline,
    local,
    make_immortal,
    native,
    ptr,
    raw,
)
from antorcha.runtime.call import bound
from antorcha.runtime.call.native import slots
from antorcha.runtime.call.native.calls import serve_operands
from antorcha.runtime.call.native.checking import CHECKED, checked
from antorcha.runtime.call.native.places import NOT_KNOWN, SERVED, Quick
from antorcha.runtime.call.native.tensors import parameter_type, tensor_type
from antorcha.runtime.cpython import PyObject_Vectorcall, type_of
from antorcha.runtime.memory.storage import StorageObject
from antorcha.runtime.tensor import Parameter, Tensor

COMMUTE = ("add", "mul", "and", "or", "xor")  # with a number on the left, too
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "and", "or", "xor")
INPLACE = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "iand", "ior", "ixor")
COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")  # in the order of CPython's own numbers
"""Those of two operands. (``**`` has a third, which no tensor takes.)"""
NAMES = BINARY + INPLACE + COMPARISONS + ("rsub",)
FIRST_COMPARISON = len(BINARY + INPLACE)
RSUB = len(NAMES) - 1  # a number less a tensor: an op of its own

compare_t = func[raw, raw, raw, i32]
quicks = Global("antorcha_operator_quicks", raw, len(NAMES))
"""The storages of the builtins' memory (a Quick); null: there is none yet."""
python_operators = Global("antorcha_python_operators", raw, FIRST_COMPARISON)  # `_in_python`
python_compare = Global("antorcha_python_compare", compare_t)


@inline
def is_tensor(kind):
    return kind == tensor_type[0] or kind == parameter_type[0]


@native(noinline=True)
def call_pair(function: raw, a: raw, b: raw) -> raw:
    args = local(raw, 2)
    args[0] = a
    args[1] = b
    return PyObject_Vectorcall(function, args, 2, None)


@native
def learnt(quick: raw, a: raw, b: raw) -> raw:
    """The result by Python, of a call which is to be learnt."""
    return call_pair(ptr[Quick](ptr[StorageObject](quick).ptr).promote, a, b)


@native
def binary(a: raw, b: raw, *, OP, SWAPPED) -> raw:
    """``a <operator> b``; SWAPPED: which operator does the same of b and a; -1: none does."""
    result = local(raw)
    first, second, quick = a, b, quicks[OP]
    if SWAPPED >= 0 and not is_tensor(type_of(a)):  # 2.0 * x
        first, second, quick = b, a, quicks[SWAPPED]
    if quick is not None:
        what = serve_operands(quick, first, second, result)
        if what == SERVED:
            return checked(result[0]) if CHECKED else result[0]
        if what == NOT_KNOWN:
            return learnt(quick, first, second)
    return call_pair(python_operators[OP], a, b)


@native
def compare(a: raw, b: raw, op: i32) -> raw:
    result = local(raw)
    quick = quicks[i64(op) + FIRST_COMPARISON]
    if quick is not None:
        what = serve_operands(quick, a, b, result)
        if what == SERVED:
            return checked(result[0]) if CHECKED else result[0]
        if what == NOT_KNOWN:
            return learnt(quick, a, b)
    return python_compare[0](a, b, op)


# ---- in Python
def _in_python(name: str) -> Callable[[Any, Any], Any]:
    """``a <operator> b`` of classes written in Python, as CPython's ``slot_nb_add`` does it."""
    forward, backward = f"__{name}__", f"__r{name}__"

    def operate(a: Any, b: Any) -> Any:
        first, second = type(a), type(b)
        reflects = first is not second and isinstance(b, Tensor)
        if isinstance(a, Tensor):
            if reflects and issubclass(second, first):
                reflected = getattr(second, backward)
                if reflected is not getattr(first, backward):
                    result = reflected(b, a)
                    if result is not NotImplemented:
                        return result
                    reflects = False
            result = getattr(first, forward)(a, b)
            if result is not NotImplemented or not reflects:
                return result
        return getattr(second, backward)(b, a) if reflects else NotImplemented

    def write(a: Any, b: Any) -> Any:
        return getattr(type(a), forward)(a, b)

    return write if name in INPLACE else operate


# ---- setting up
def _spec_of(operator: str) -> Spec:
    """The function for the slot of an operator."""
    k = NAMES.index(operator)
    swapped = k if operator in COMMUTE else RSUB if operator == "sub" else -1
    return binary.spec(OP=k, SWAPPED=swapped)


def placed() -> list[Spec]:
    """The functions that `install` puts in place."""
    return [*map(_spec_of, BINARY + INPLACE), compare.spec()]


def use(op: Any, quick: Any) -> None:
    """Has operators that are this op, or in-place form of one, served by its builtin."""
    for k, name in enumerate(NAMES):
        if bound.operators.get(name) is op:
            slots.word(quicks.addr + slots.WORD * k).value = id(quick)


_served: weakref.WeakSet[type[Tensor]] = weakref.WeakSet()


def serve(cls: type[Tensor]) -> None:
    """Puts `binary` into a class's type, but where somebody has set an operator on Tensor."""
    if cls in _served:
        return
    _served.add(cls)
    for name in BINARY:
        if bound.is_bound(f"__{name}__") and bound.is_bound(f"__r{name}__"):
            slots.word(slots.number_slot(cls, name)).value = _spec_of(name).addr


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)


def install() -> None:
    """Puts `binary` and `compare` into the types, but where somebody has set an operator."""
    for k, name in enumerate(BINARY + INPLACE):
        at = python_operators.addr + slots.WORD * k
        slots.word(at).value = id(make_immortal(_in_python(name)))
    serve(Tensor)
    for cls in _subclasses(Tensor):
        serve(cls)
    compares = all([bound.is_bound(f"__{name}__") for name in COMPARISONS])
    slots.word(python_compare.addr).value = slots.word(id(Tensor) + slots.RICHCOMPARE).value
    for cls in (Tensor, Parameter):
        for name in INPLACE:
            if bound.is_bound(f"__{name}__"):
                slots.word(slots.number_slot(cls, name)).value = _spec_of(name).addr
        if compares:
            slots.word(id(cls) + slots.RICHCOMPARE).value = compare.spec().addr
