"""Subclasses of Tensor, and ``__torch_function__``: classes that have a say in what ops do.

A class with ``__torch_function__(cls, func, types, args, kwargs)`` is asked whenever one of its
instances is an argument of a torch function. A subclass of Tensor inherits one that computes as
usual and gives the results its own class. Modes (``TorchFunctionMode``) are asked before all.

The native path serves Tensors and Parameters alone, and leaves calls with other arguments to
Python. There the methods and properties of Tensor that it serves ask by themselves (`asking`). The
others do so from the first instance of such a class, or the first mode, on (`_watch_methods`):
machine code looks at their arguments, and runs them at once where nobody is to be asked. So plain
tensors are served alike, whatever classes there are.

While there are instances or modes, and no longer, calls in Python look at their arguments
(`hooks.override`). A class that is no Tensor may come with any call: it makes them look for good.
While there are modes, which hear of all, Python serves all calls.
"""

from __future__ import annotations

import functools
import threading
import types as python_types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError, MissingFeature
from antorcha.ops.kinds.record import InPlace, Op, T
from antorcha.runtime.call import bound
from antorcha.runtime.tensor import Parameter, Tensor, take_fields

native = lazy("antorcha.runtime.call.native")


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
    assert hooks.overload_of is not None
    stack = _state.dispatch
    types = tuple({type(value): None for value in _flat(args) if isinstance(value, Tensor)})
    _state.dispatch = stack[:-1]
    try:
        return stack[-1].__torch_dispatch__(
            hooks.overload_of(func, args, kwargs), types, args, kwargs
        )
    finally:
        _state.dispatch = stack


def foreign(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same after a call has failed on an argument that is no tensor: perhaps its class has
    ``__torch_function__`` and nobody has looked yet."""
    asked = relevant((*args, *kwargs.values()))
    if not asked:
        return NotImplemented
    if any(not getattr(type(value), "__torch_function_symbolic__", False) for value in asked):
        _watch_methods()
        modes.look_at_arguments(1)  # for good
    return ask(func, asked, args, kwargs)


_instances: dict[int, weakref.ref[Any]] = {}


def note_instance(result: Any) -> None:
    """Calls look at their arguments while this tensor lives, if its class wants to be asked."""
    found = getattr(type(result), "__torch_function__", None)
    if getattr(found, "__func__", found) is disabled_torch_function or id(result) in _instances:
        return
    _watch_methods()
    native.serve_operators(type(result))
    modes.look_at_arguments(1)
    key = id(result)

    def gone(ref: Any) -> None:
        del _instances[key]
        modes.look_at_arguments(-1)

    _instances[key] = weakref.ref(result, gone)


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
        modes.hear_every_call(1)
        _state.stack = (*_state.stack, self)
        return self

    def __exit__(self, *_: object) -> None:
        _state.stack = _state.stack[:-1]
        modes.hear_every_call(-1)


# ------------------------------------------------------------------------------- methods that ask
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


def asking(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A method for Tensor, which asks the arguments' classes first."""
    bound.methods[name] = result = _asked(method, name)
    return result


def asking_property(
    name: str, get: Callable[..., Any], put: Callable[..., Any] | None = None
) -> property:
    """A property for Tensor, which asks the tensor's class first."""
    bound.methods[name] = read = _asked(get, name, "__get__")
    return property(read, put and _asked(put, name, "__set__"), doc=get.__doc__)


def _asked(method: Callable[..., Any], name: str, descend: str = "") -> Callable[..., Any]:
    """descend: which method of what Tensor has by that name the classes are told of."""

    @functools.wraps(method)
    def asked(*args: Any, **kwargs: Any) -> Any:
        if not modes.subclasses:
            return method(*args, **kwargs)
        func = Tensor.__dict__[_CALLED.get(name, name)]
        try:
            done = override(getattr(func, descend) if descend else func, args, kwargs)
        except ArgumentError:
            if name not in _BINARY or _is_plain(args[-1]):
                raise
            return NotImplemented  # of an operator: the other side may have an answer
        return method(*args, **kwargs) if done is NotImplemented else done

    return asked


def _is_plain(value: Any) -> bool:
    return isinstance(value, (Tensor, bool, int, float, complex)) and not overrides(value)


_UNWATCHED = {
    "__new__", "__init__", "__init_subclass__", "__torch_function__", "__class__", "__dict__",
    "__hash__", "__getattribute__", "__setattr__", "__doc__", "__module__", "__slots__",
    "__weakref__", "__annotations__", "__array_priority__", "as_subclass", "_make_subclass",
    "_make_wrapper_subclass", "_is_view", "_repr_html_", "__iter__", "__class_getitem__",
    "__subclasshook__",
}  # fmt: skip
_watched: dict[str, Any] = {}
"""What Tensor had before it was watched, by name."""


def _watch_methods() -> None:
    """Has the methods and properties ask that do not by themselves; once."""
    if _watched:
        return
    for name, value in Tensor.__dict__.items():
        served_natively = type(value).__name__ == "Method"  # of runtime.call.native
        if name in _UNWATCHED or bound.is_bound(name):
            continue
        if served_natively or isinstance(value, (python_types.FunctionType, property)):
            _watched[name] = value
    _put_watched()


def _put_watched() -> None:
    """Puts what looks at the arguments in the place of what has been there."""
    for name, value in _watched.items():
        if isinstance(value, property):
            assert value.fget is not None
            asked = _asked(value.fget, name, "__get__")
            read = native.watched_method(value.fget, asked) or asked
            put = value.fset and _asked(value.fset, name, "__set__")
            setattr(Tensor, name, property(read, put, value.fdel, value.__doc__))
        else:
            asked = _asked(value, name)
            asked.__name__, asked.__qualname__ = name, f"Tensor.{name}"
            result = native.watched_method(value, asked) or _WatchedMethod(value, asked)
            setattr(Tensor, name, result)


class _WatchedMethod:
    """A method that asks first, where Python does all. It equals the method that it replaces: a
    class may keep methods in a set, ``{torch.Tensor.clone, ..}``, before they are replaced, and
    look there for its ``func``. (So do those of the native path, ``native.method``.)
    """

    __name__: str

    def __init__(self, method: Callable[..., Any], asked: Callable[..., Any]) -> None:
        functools.update_wrapper(self, asked)
        self._method, self._asked = method, asked

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else python_types.MethodType(self._asked, instance)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._asked(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._method

    def __hash__(self) -> int:
        return hash(self._method)

    def __repr__(self) -> str:
        return repr(self._method)

    def __reduce__(self) -> Any:
        return getattr, (Tensor, self.__name__)


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


def as_subclass(self: Tensor, cls: type) -> Any:
    """The same tensor (sharing memory and history) as an instance of a subclass of Tensor."""
    check_class(cls)
    if self._rg and self._fn is None:
        with DisableTorchFunction():
            self = T.view_as(self, self)  # the history of what is done to it leads to this leaf
    result: Any = object.__new__(cls)
    take_fields(result, self)
    note_instance(result)
    return result


def bind() -> None:
    """Sets the protocol on Tensor."""
    Tensor.as_subclass = as_subclass  # type: ignore[assignment,method-assign]
    Tensor.__torch_function__ = classmethod(torch_function)  # type: ignore[attr-defined]
    Parameter.__torch_function__ = classmethod(disabled_torch_function)  # type: ignore[attr-defined]
    hooks.override = override
    hooks.foreign = foreign
    hooks.native_runs = _put_watched
