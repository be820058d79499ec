"""Making instances of our own slotted classes: allocation and every field in one native call.

``maker(Tensor, ("_storage",), {"_offset": 0, ...})`` is a builtin that takes the given fields in
order and returns an object with those and the constant ones set, as ``object.__new__`` and an
assignment per field would leave it, at a third of their price. A plan has one for its results and
one for its nodes.

What it relies on is checked once, below: where a member descriptor keeps its field's offset, and
that the type's general allocator makes a whole object. Where that does not hold, ``maker`` gives
the same thing in Python.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import weakref
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from antorcha.errors import ArgumentError
from antorcha.lang.native import Extern, bind, i64, native, ptr, raw, struct
from antorcha.runtime.cpython import HEADER, NONE, Py_IncRef, complain, complaint, fast_def
from antorcha.runtime.memory.storage import Storage, StorageObject, wrap

PyType_GenericAlloc = Extern("PyType_GenericAlloc", raw, raw, i64)
OBJECT_SLOT = 16  # the kind of a field made by __slots__ (C's T_OBJECT_EX)


@struct
class Recipe:
    """The head of a recipe; the fields follow: an offset per argument, then (offset, value)s."""

    kind: raw  # the class
    given: i64  # fields whose values are arguments
    constant: i64  # fields whose values are always the same


def _wrong_fields(_first: Any, _second: Any, wanted: int) -> BaseException:
    return ArgumentError(f"this maker takes {wanted} fields")


WRONG_FIELDS = complaint(_wrong_fields)


@native
def build(recipe: ptr[Recipe], args: ptr[raw]) -> raw:
    """A new object by a recipe; null with an exception."""
    o = PyType_GenericAlloc(recipe.kind, 0)
    if o is None:
        return o
    words = ptr[i64](recipe + 1)
    for k in range(recipe.given):
        Py_IncRef(args[k])
        ptr[raw](o + words[k])[0] = args[k]
    words = words + recipe.given
    for k in range(recipe.constant):
        value = raw(words[2 * k + 1])
        Py_IncRef(value)
        ptr[raw](o + words[2 * k])[0] = value
    return o


@native
def py_make(self: raw, args: ptr[raw], nargs: i64) -> raw:
    recipe = ptr[Recipe](ptr[StorageObject](self).ptr)
    if nargs != recipe.given:
        complain(WRONG_FIELDS, NONE, NONE, recipe.given)
        return None
    return build(recipe, args)


_make = fast_def("make", py_make.spec().addr, "make(field, ...): a new object by a recipe.")


def field_offset(cls: type, name: str) -> int:
    """Where in its object a slot is. The descriptor's last word points to C's PyMemberDef:
    name, kind, offset, flags, doc."""
    descriptor = cls.__dict__[name]
    member = ctypes.c_void_p.from_address(id(descriptor) + HEADER + 24).value
    assert member is not None
    if ctypes.c_int.from_address(member + 8).value != OBJECT_SLOT:
        raise ArgumentError(f"{cls.__name__}.{name} is not a slot")
    return ctypes.c_ssize_t.from_address(member + 16).value


@functools.cache
def _place_of(cls: type, name: str) -> int:
    """``field_offset`` of a slot of the class, or of one that it is derived from."""
    return field_offset(next(each for each in cls.__mro__ if name in each.__dict__), name)


def recipe_words(cls: type, given: Sequence[str], constants: Mapping[str, Any]) -> list[int]:
    """A recipe as words. Whoever keeps them keeps the class and the constants too."""
    words = [id(cls), len(given), len(constants)]
    words += [_place_of(cls, name) for name in given]
    for name, value in constants.items():
        words += (_place_of(cls, name), id(value))
    return words


def padded(words: Sequence[int], count: int) -> list[int]:
    """Words followed by as many zeros as it takes to have `count`."""
    return [*words, *[0] * (count - len(words))]


def words_in_memory(words: Sequence[int], *owners: object) -> Storage:
    """Words as native code sees them, which live, with what they point to, as the result does."""
    held = array("q", words)
    address, count = held.buffer_info()
    return wrap(address, 8 * count, (held, *owners), readonly=True)


def native_maker(
    cls: type, given: Sequence[str], constants: Mapping[str, Any]
) -> Callable[..., Any]:
    words = recipe_words(cls, given, constants)
    result: Callable[..., Any] = bind(_make, words_in_memory(words, cls, *constants.values()))
    return result


def python_maker(
    cls: type, given: Sequence[str], constants: Mapping[str, Any]
) -> Callable[..., Any]:
    """The same, readable."""

    def make(*fields: Any) -> Any:
        result: Any = object.__new__(cls)
        for name, value in zip(given, fields, strict=True):
            setattr(result, name, value)
        for name, value in constants.items():
            setattr(result, name, value)
        return result

    return make


class _Sample:
    __slots__ = ("__dict__", "__weakref__", "first", "second", "third")
    first: Any
    second: Any
    third: Any
    other: Any  # an attribute without a slot


class _Heir(_Sample):
    __slots__ = ()


def is_supported() -> bool:
    """Does this interpreter make objects as ``build`` expects?"""
    mark = object()
    for cls in (_Sample, _Heir):
        try:
            make = native_maker(cls, ("second", "first"), {"third": mark})
            made_by = [cls]
            result: Any = make(1.5, made_by)
        except (ArgumentError, AssertionError, KeyError):
            return False
        reference = weakref.ref(result)
        if (type(result) is not cls or result.first is not made_by or result.second != 1.5
                or result.third is not mark or not gc.is_tracked(result)):  # fmt: skip
            return False
        result.other = mark  # an attribute of its own
        if result.__dict__ != {"other": mark}:
            return False
        del result
        if reference() is not None:
            return False
    return True


NATIVE = is_supported()
maker = native_maker if NATIVE else python_maker
