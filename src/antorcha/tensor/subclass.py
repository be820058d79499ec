"""Subclasses of Tensor, and ``__torch_function__``: classes that have a say in what ops do.

A class with ``__torch_function__(cls, func, types, args, kwargs)`` is asked whenever one of its
instances is an argument of a torch function. A subclass of Tensor inherits one that computes as
usual and gives the results its own class. Modes (``TorchFunctionMode``) are asked before all.

Until the first instance of such a class or the first mode, nothing here costs anything: then the
methods and properties of Tensor, of which the class must hear too, are replaced by ones that look
(`_watch_methods`). While there are instances or modes, and no longer, the call path looks at its
arguments (`path.override`). A class that is no Tensor may come with any call: it makes them look
for good.
"""

from __future__ import annotations

import functools
import threading
import types as python_types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from antorcha import modes
from antorcha.errors import ArgumentError, MissingFeature
from antorcha.ops.record import InPlace, Op, T
from antorcha.runtime.call import path
from antorcha.runtime.tensor import Parameter, Tensor

overload_of: Any = None  # set by utils._python_dispatch: PyTorch's operator for a call


class _State(threading.local):
    disabled = False  # inside DisableTorchFunctionSubclass
    modes_off = False  # inside DisableTorchFunction
    stack: tuple[Any, ...] = ()  # the active modes
    dispatch: tuple[Any, ...] = ()  # the active modes that are told of ops, TorchDispatchMode


_state = _State()


def leave_modes() -> None:
    """This thread is in no mode any more, whatever was entered and never left."""
    _state.disabled, _state.modes_off, _state.stack = False, False, ()
    _state.dispatch = ()


# ---------------------------------------------------------------------------------- who is asked
def disabled_torch_function(
    cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """A ``__torch_function__`` that changes nothing: what has it is never asked."""
    return func(*args, **(kwargs or {}))


def overrides(value: Any) -> bool:
    """Does this argument want to be asked?"""
    kind = type(value)
    if kind is Tensor or kind is Parameter or isinstance(value, type):
        return False
    found = getattr(kind, "__torch_function__", None)
    if found is None:
        return False
    if getattr(found, "__func__", found) is disabled_torch_function:
        return False
    return not (_state.disabled and isinstance(value, Tensor))


def _flat(args: Iterable[Any]) -> Iterable[Any]:
    for value in args:
        if type(value) in (tuple, list):
            yield from value
        else:
            yield value


def relevant(args: Iterable[Any]) -> list[Any]:
    """The arguments to ask, one of each class, subclasses first."""
    found: list[Any] = []
    seen: list[type] = []
    for value in _flat(args):
        if overrides(value) and type(value) not in seen:
            seen.append(type(value))
            place = len(found)
            for k, other in enumerate(found):
                if issubclass(type(value), type(other)):
                    place = k
                    break
            found.insert(place, value)
    return found


def ask(func: Any, asked: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The answer of the first mode or argument that has one."""
    types = tuple([type(value) for value in asked])
    if _state.stack and not _state.modes_off:
        stack = _state.stack
        _state.stack = stack[:-1]
        try:
            result = stack[-1].__torch_function__(func, types, args, kwargs)
        finally:
            _state.stack = stack
        if result is not NotImplemented:
            return result
    for value in asked:
        result = type(value).__torch_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{getattr(func, '__module__', 'torch')}.{getattr(func, '__name__', func)}"
    raise ArgumentError(
        f"no implementation found for '{name.replace('antorcha', 'torch')}' on types that "
        f"implement __torch_function__: {list(types)}"
    )


def override(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the arguments' classes make of the call; NotImplemented when none of them cares."""
    asked = relevant(args)
    if kwargs:
        asked = asked or relevant(kwargs.values())
    if not asked and (not _state.stack or _state.modes_off):
        return dispatch(func, args, kwargs) if _state.dispatch else NotImplemented
    return ask(func, asked, args, kwargs)


def dispatch(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the innermost TorchDispatchMode makes of an op; NotImplemented for what is none, or is
    made of others."""
    if not isinstance(func, (Op, InPlace)) or getattr(func, "is_composite", False):
        return NotImplemented
    assert overload_of is not None
    stack = _state.dispatch
    types = tuple({type(value): None for value in _flat(args) if isinstance(value, Tensor)})
    _state.dispatch = stack[:-1]
    try:
        return stack[-1].__torch_dispatch__(overload_of(func, args, kwargs), types, args, kwargs)
    finally:
        _state.dispatch = stack


def foreign(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same after a call has failed on an argument that is no tensor: perhaps its class has
    ``__torch_function__`` and nobody has looked yet."""
    asked = relevant((*args, *kwargs.values()))
    if not asked:
        return NotImplemented
    if any(not getattr(type(value), "__torch_function_symbolic__", False) for value in asked):
        note()
    return ask(func, asked, args, kwargs)


_noted = False


def note() -> None:
    """From now on everybody looks."""
    _watch_methods()
    modes.note_subclass()


_instances: dict[int, weakref.ref[Any]] = {}


def note_instance(made: Any) -> None:
    """Calls look at their arguments while this tensor lives, if its class wants to be asked."""
    found = getattr(type(made), "__torch_function__", None)
    if getattr(found, "__func__", found) is disabled_torch_function or id(made) in _instances:
        return
    _watch_methods()
    modes.look_at_arguments(1)
    key = id(made)

    def gone(ref: Any) -> None:
        del _instances[key]
        modes.look_at_arguments(-1)

    _instances[key] = weakref.ref(made, gone)


# ------------------------------------------------------------------------- the Tensor's own answer
def convert(value: Any, cls: type) -> Any:
    """The result with its tensors as instances of ``cls``."""
    if cls is Tensor:
        return value
    if isinstance(value, Tensor):
        return value if isinstance(value, cls) else as_subclass(value, cls)
    if isinstance(value, (tuple, list)) and not _is_plain_tuple(value):
        return type(value)([convert(each, cls) for each in value])
    return value


def _is_plain_tuple(value: Any) -> bool:
    return not any(isinstance(each, (Tensor, tuple, list)) for each in value)


def torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Computes as usual; results are instances of the subclass.

    Override it in a subclass to see every call: ``func`` is the torch function or method, ``types``
    the classes among the arguments. Call ``super().__torch_function__`` to compute.
    See https://docs.pytorch.org/docs/stable/notes/extending.html.
    """
    if not all(issubclass(cls, each) for each in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if func in default_nowrap_functions() else convert(result, cls)


@functools.lru_cache(None)
def default_nowrap_functions() -> set[Any]:
    """What gives plain tensors also for subclasses."""
    return {Tensor._base.__get__, Tensor.grad.__get__, Tensor._grad.__get__}  # type: ignore[union-attr]


class _Off:
    """A context in which nobody is asked."""

    modes_too = False

    def __enter__(self) -> None:
        self.before = (_state.disabled, _state.modes_off)
        _state.disabled = True
        _state.modes_off = _state.modes_off or self.modes_too

    def __exit__(self, *_: object) -> None:
        _state.disabled, _state.modes_off = self.before


class DisableTorchFunctionSubclass(_Off):
    """A context in which subclasses of Tensor are treated as plain tensors (modes still hear)."""


class DisableTorchFunction(_Off):
    """A context in which neither subclasses of Tensor nor modes are asked."""

    modes_too = True


class TorchFunctionMode:
    """A context whose ``__torch_function__(self, func, types, args, kwargs)`` sees every call.

    >>> class Count(torch.overrides.TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Count() as mode:
    ...     x = torch.ones(2).exp()
    >>> mode.calls
    2
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError("a TorchFunctionMode needs a __torch_function__")

    def __enter__(self) -> Any:
        _watch_methods()
        modes.look_at_arguments(1)
        _state.stack = (*_state.stack, self)
        return self

    def __exit__(self, *_: object) -> None:
        _state.stack = _state.stack[:-1]
        modes.look_at_arguments(-1)


# ------------------------------------------------------------------------------ methods that look
_UNWATCHED = {
    "__new__", "__init__", "__init_subclass__", "__torch_function__", "__class__", "__dict__",
    "__hash__", "__getattribute__", "__setattr__", "__doc__", "__module__", "__slots__",
    "__weakref__", "__annotations__", "__array_priority__", "as_subclass", "_make_subclass",
    "_make_wrapper_subclass", "_is_view", "_repr_html_", "__iter__", "__class_getitem__",
    "__subclasshook__",
}  # fmt: skip


def _watch_methods() -> None:
    """Replaces Tensor's methods and properties, once, by ones that ask the arguments' classes
    first."""
    global _noted
    if _noted:
        return
    _noted = True
    for name, value in list(Tensor.__dict__.items()):
        if name in _UNWATCHED:
            continue
        served_natively = type(value).__name__ == "Method"  # of runtime.call.native
        if isinstance(value, python_types.FunctionType) or served_natively:
            setattr(Tensor, name, _WatchedMethod(value, name))
        elif isinstance(value, property):
            setattr(Tensor, name, _watched_property(value))


# What an operator is called towards the classes: the method that it is short for.
_CALLED = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_",
    "__mul__": "mul", "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "div",
    "__mod__": "remainder",
    "__imod__": "remainder_", "__pow__": "pow", "__ipow__": "pow_", "__matmul__": "matmul",
    "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__neg__": "neg",
    "__abs__": "abs", "__invert__": "bitwise_not",
}  # fmt: skip
_BINARY = {f"__{prefix}{name}__" for prefix in ("", "r", "i") for name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
    "lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge")}  # fmt: skip


class _WatchedMethod:
    """A method that asks first. It equals the method that it replaces: a class may keep methods in
    a set, ``{torch.Tensor.clone, ..}``, before they are replaced, and look there for its ``func``.
    """

    def __init__(self, method: Callable[..., Any], name: str) -> None:
        functools.update_wrapper(self, method)
        self.__name__, self.__qualname__ = name, f"Tensor.{name}"
        self._method, self._run = method, _watched(self, method, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else python_types.MethodType(self._run, instance)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._method

    def __hash__(self) -> int:
        return hash(self._method)

    def __repr__(self) -> str:
        return repr(self._method)

    def __reduce__(self) -> Any:
        return getattr, (Tensor, self.__name__)


def _watched(made: Any, method: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def watched(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if type(value) is not Tensor and type(value) is not int:
                break
        else:
            if not kwargs and not _state.stack:
                return method(*args)
        func = Tensor.__dict__.get(_CALLED.get(name, name), made)
        done = override(func, args, kwargs)
        if done is not NotImplemented:
            return done
        return method(*args, **kwargs)

    watched.__name__, watched.__qualname__ = name, f"Tensor.{name}"
    if name not in _BINARY:
        return watched

    def operator(self: Tensor, other: Any) -> Any:
        try:
            return watched(self, other)
        except ArgumentError:
            if isinstance(other, (Tensor, bool, int, float, complex)) and not overrides(other):
                raise
            return NotImplemented

    return functools.wraps(watched)(operator)


def _watched_property(found: property) -> property:
    get, put = found.fget, found.fset
    assert get is not None

    def watched_get(self: Tensor) -> Any:
        if type(self) is Tensor and not _state.stack:
            return get(self)
        done = override(made.__get__, (self,), {})
        return get(self) if done is NotImplemented else done

    def watched_put(self: Tensor, value: Any) -> Any:
        assert put is not None
        done = override(made.__set__, (self, value), {})
        if done is NotImplemented:
            put(self, value)

    made = property(watched_get, None if put is None else watched_put, found.fdel, found.__doc__)
    return made


# ------------------------------------------------------------------------------- making subclasses
def check_class(cls: Any) -> None:
    """Refuses classes that are no subclass of Tensor."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise ArgumentError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
            f"possible. Make sure your class inherits from Tensor: {cls!r}"
        )
    if getattr(cls, "__torch_dispatch__", None) is not None:
        raise MissingFeature(
            f"{cls.__name__}.__torch_dispatch__: subclasses of Tensor are asked through "
            "__torch_function__ alone; a TorchDispatchMode is told of every op"
        )


_FIELDS = ("_layout", "_storage", "_offset", "_rg", "_fn", "_nr", "_grad", "_base", "_extra")


def as_subclass(self: Tensor, cls: type) -> Any:
    """The same tensor (sharing memory and history) as an instance of a subclass of Tensor."""
    check_class(cls)
    if self._rg and self._fn is None:
        with DisableTorchFunction():
            self = T.view_as(self, self)  # the history of what is done to it leads to this leaf
    made: Any = object.__new__(cls)
    for name in _FIELDS:
        setattr(made, name, getattr(self, name))
    if self._base is not None:
        made._seen = self._seen
    note_instance(made)
    return made


def bind() -> None:
    """Sets the protocol on Tensor."""
    Tensor.as_subclass = as_subclass  # type: ignore[assignment,method-assign]
    Tensor.__torch_function__ = classmethod(torch_function)  # type: ignore[attr-defined]
    Parameter.__torch_function__ = classmethod(disabled_torch_function)  # type: ignore[attr-defined]
    path.override = override
    path.foreign = foreign
