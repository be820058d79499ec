"""Symbolic tracing: a function is run on proxies, and the graph of what it did is given."""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
import math
import operator
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from antorcha.basics import _assert
from antorcha.core import modes
from antorcha.errors import MissingFeature, explain_missing, warn
from antorcha.fx._compatibility import compatibility  # noqa: F401  (libraries take it from here)
from antorcha.fx.functions import FUNCTIONAL, as_pytorch_calls, is_ours
from antorcha.fx.graph import Graph
from antorcha.fx.graph_module import GraphModule
from antorcha.fx.node import base_types, map_aggregate
from antorcha.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase
from antorcha.nn import functional as F
from antorcha.nn.containers import Sequential
from antorcha.nn.module import Module
from antorcha.runtime.tensor import Parameter, Tensor

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

_Fn = TypeVar("_Fn")
_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_module_getattr, _module_call = Module.__getattr__, Module.__call__
_tracing = 0
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_proxyable_classes: set[type] = set()


def is_fx_tracing() -> bool:
    """Is a function being traced?"""
    return _tracing > 0


class PHBase:
    """Marks, in ``concrete_args``, what stays an argument."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class ProxyableClassMeta(type):
    """The metaclass of classes whose construction is a step of the graph."""

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        _proxyable_classes.add(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance: Any = cls.__new__(cls)  # type: ignore[call-overload]
        if not is_fx_tracing():
            cls.__init__(instance, *args, **kwargs)  # type: ignore[misc]
            return instance
        found = _find_proxy(args, kwargs)
        if found is not None:
            return found.tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(instance, *args, **kwargs)  # type: ignore[misc]
        return instance


class Tracer(TracerBase):
    """Traces modules and functions; override its methods to trace in another way.

    Args:
        autowrap_modules (tuple of modules): their functions are not traced through, but recorded as
            calls. Default: ``(math,)``
        autowrap_functions (tuple of Callable): more such functions
        param_shapes_constant (bool): is the shape of a parameter known while tracing?

    See https://docs.pytorch.org/docs/stable/fx.html#torch.fx.Tracer.
    """

    def __init__(
        self, autowrap_modules: Any = None, autowrap_functions: Any = (),
        param_shapes_constant: bool = False,
    ) -> None:  # fmt: skip

        modules = (math,) if autowrap_modules is None else autowrap_modules
        self._autowrap_function_ids = {
            id(value) for module in modules for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        }  # fmt: skip
        self._autowrap_function_ids |= {id(fn) for fn in autowrap_functions}
        self._autowrap_search = list(modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}
        self.tensor_attrs: dict[int, str] = {}

    # --------------------------------------------------------------------------- for overriding
    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Is a module called as a whole, not traced through? The layers of ``torch.nn`` are."""
        return m.__module__.startswith("antorcha.nn") and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The dotted name of a module below the root; NameError if it is not there."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, found in self.root.named_modules():
            if found is mod:
                return str(name)
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What the call of a module does: a node for a leaf, else its ``forward`` is traced."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = calls + 1
            if self.is_leaf_module(m, path):
                result: Any = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            self.module_stack.popitem(last=True)
        return result

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """What the reading of a module's attribute gives: a Proxy for a parameter."""
        if isinstance(attr_val, Parameter):
            named = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            named = self.root.named_buffers()
        else:
            return attr_val
        for name, found in named:
            if found is attr_val:
                if name not in parameter_proxy_cache:
                    parameter_proxy_cache[name] = self._parameter_proxy(name, attr_val)
                return parameter_proxy_cache[name]
        return attr_val

    def _parameter_proxy(self, name: str, value: Any) -> Proxy:
        if not self.param_shapes_constant:
            return self.create_proxy("get_attr", name, (), {})
        return self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=lambda node: (
            ParameterProxy(self, node, name, value)))  # fmt: skip

    def create_arg(self, a: Any) -> Any:
        """A value as an argument: tensors and modules are read from the root, or put there."""
        if isinstance(a, Parameter):
            for name, found in self.root.named_parameters():
                if a is found:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, found in self.root.named_buffers():
                if a is found:
                    return self.create_node("get_attr", name, (), {})
            path = self.tensor_attrs.get(id(a))
            if path is None:
                path = self.tensor_attrs[id(a)] = self.get_fresh_qualname("_tensor_constant")
                setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, Module):
            for name, found in self.root.named_modules():
                if a is found:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            values = tuple([self.create_arg(each) for each in a])
            return self.create_node("call_function", type(a), values, {})
        if type(a) in _proxyable_classes:
            path = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        return super().create_arg(a)

    def get_fresh_qualname(self, prefix: str) -> str:
        """An attribute's name that the root does not have."""
        k = 0
        while hasattr(self.root, f"{prefix}{k}"):
            k += 1
        return f"{prefix}{k}"

    # ------------------------------------------------------------------------------------- tracing
    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's ``forward``, or of a function.

        Args:
            root (Module or Callable): what to trace
            concrete_args (dict, optional): arguments by name that are these values
        """
        is_module = isinstance(root, Module)
        if is_module:
            self.root = root
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, fn = Module(), root
        if not isinstance(fn, types.FunctionType):
            raise AssertionError(f"Expected FunctionType, got {type(fn)}")
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {}
        self._collect_tensors(self.root, ())
        names = fn.__globals__
        called, args = self.create_args_for_root(fn, is_module, concrete_args)
        with self._patched() as patcher:
            _autowrap_check(patcher, names, self._autowrap_function_ids)
            for module in self._autowrap_search:
                _autowrap_check(patcher, module.__dict__, self._autowrap_function_ids)
            result = called(*args)
            hints = {} if is_ours(fn) else inspect.get_annotations(inspect.unwrap(fn))
            self.create_node("output", "output", (self.create_arg(result),), {},
                             type_expr=hints.get("return"))  # fmt: skip
        self.submodule_paths = None
        return self.graph

    def _collect_tensors(self, module: Module, path: tuple[str, ...]) -> None:
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                self.tensor_attrs[id(value)] = ".".join((*path, name))
        for name, child in module.named_children():
            self._collect_tensors(child, (*path, name))

    @contextmanager
    def _patched(self) -> Iterator[_Patcher]:
        """While this lasts, modules, ``nn.functional`` and wrapped functions record themselves."""
        global _tracing
        cache: dict[str, Proxy] = {}

        def read(module: Module, attr: str) -> Any:
            return self.getattr(attr, _module_getattr(module, attr), cache)

        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _module_call(module, *args, **kwargs)

            names = getattr(getattr(module, "forward", module), "__globals__", {})
            _autowrap_check(patcher, names, self._autowrap_function_ids)
            return self.call_module(module, forward, args, kwargs)

        _tracing += 1
        modes.look_at_arguments(1)
        with _Patcher() as patcher:
            try:
                patcher.patch_method(Module, "__getattr__", functools.wraps(_module_getattr)(read))
                patcher.patch_method(Module, "__call__", functools.wraps(_module_call)(call))
                for name, fn in [*FUNCTIONAL.items(), ("sigmoid", F.sigmoid), ("tanh", F.tanh)]:
                    patcher.patch(vars(F), name, _recording(name, fn))
                _patch_wrapped_functions(patcher)
                yield patcher
            finally:
                _tracing -= 1
                modes.look_at_arguments(-1)

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """Adds the placeholders; gives the function to call and its arguments."""
        fn = inspect.unwrap(root_fn)
        code = fn.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        args: list[Any] = [self.root] if is_module else []
        if is_module and total == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        own = names[len(args) : total]
        if isinstance(concrete_args, tuple):
            if len(own) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(own)} arguments but got {len(concrete_args)} concrete "
                    "arguments"
                )
            concrete_args = dict(zip(own, concrete_args, strict=True))
        signature = inspect.signature(fn)
        hints = {} if is_ours(fn) else getattr(fn, "__annotations__", {})
        args += [self._placeholder(name, concrete_args, signature, hints) for name in own]
        if code.co_kwonlyargcount or code.co_flags & _VARIADIC:
            rest = iter(names[total:])
            if code.co_flags & inspect.CO_VARARGS:
                args.append(self._placeholder(f"*{next(rest)}", concrete_args, signature, hints))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(self._placeholder(f"**{next(rest)}", concrete_args, signature, hints))
            root_fn = _all_positional(root_fn, len(args))
        return root_fn, args

    def _placeholder(self, name: str, concrete: Any, signature: Any, hints: Any) -> Any:
        default: tuple[Any, ...] = ()
        if not name.startswith("*"):
            given = signature.parameters[name].default
            default = () if given is inspect.Parameter.empty else (given,)
        if concrete is None or name not in concrete:
            return self.create_proxy("placeholder", name, default, {}, type_expr=hints.get(name))
        value = concrete[name]
        if isinstance(value, (tuple, list, dict)):
            raise MissingFeature(f"concrete_args[{name!r}]: only single values, not {type(value)}")
        out = self.create_proxy("placeholder", f"{name}_1", default, {})
        if isinstance(value, PHBase):
            return out
        if isinstance(value, base_types):
            text = f"{name} has been specialized to have value {value} but got another value"
            self.create_proxy("call_function", _assert, (operator.eq(out, value), text), {})
        elif value is None:
            text = f"{name} has been specialized to have value None but got another value"
            self.create_proxy("call_function", _assert_is_none, (out, text), {})
        else:
            warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized "
                "function. It is up to the user to make sure that your inputs match the inputs you "
                "specialized the function with."
            )
        return value

    def __deepcopy__(self, memo: Any) -> Tracer:
        result = type(self).__new__(type(self))
        for name, value in self.__dict__.items():
            shallow = name == "_autowrap_search"
            result.__dict__[name] = copy.copy(value) if shallow else copy.deepcopy(value, memo)
        return result


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


def _all_positional(fn: Any, count: int) -> Any:
    """The function with all its parameters, ``*args`` and ``**kwargs`` too, as positional ones: it
    gets a Proxy for each."""
    code = fn.__code__
    result = code.replace(
        co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0,
        co_flags=code.co_flags & ~_VARIADIC,
    )  # fmt: skip
    return types.FunctionType(result, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


# ------------------------------------------------------------------------------ functions as leaves
class _Patcher:
    """Puts functions in the place of others, and them back at the end."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], None]] = []
        self.visited: set[int] = set()

    def __enter__(self) -> _Patcher:
        return self

    def __exit__(self, *_: object) -> None:
        while self.undo:
            self.undo.pop()()

    def patch(self, names: dict[str, Any], name: str, new: Any) -> None:
        """Puts ``new`` in the place of ``names[name]``, or of the builtin of that name."""
        if name not in names:
            self.undo.append(lambda: names.pop(name, None))
        else:
            old = names[name]
            if getattr(old, "_fx_recording", False):
                return
            self.undo.append(lambda: names.__setitem__(name, old))
        new._fx_recording = True
        names[name] = new

    def patch_method(self, cls: type, name: str, new: Any) -> None:
        """Puts ``new`` in the place of a method."""
        old = getattr(cls, name)
        self.undo.append(lambda: setattr(cls, name, old))
        setattr(cls, name, new)


def _find_proxy(*values: Any) -> Proxy | None:
    found: list[Proxy] = []

    def find(value: Any) -> Any:
        if isinstance(value, Proxy):
            found.append(value)
        return value

    map_aggregate(values, find)
    return found[-1] if found else None


def _recording(name: str, fn: Any) -> Any:
    """A function of ``nn.functional`` that records calls with proxies."""

    def recording(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return fn(*args, **kwargs)
        if name in ("sigmoid", "tanh"):
            return getattr(args[0] if args else kwargs["input"], name)()
        args, kwargs = as_pytorch_calls(name, args, kwargs)
        shown = proxy.tracer.graph._target_to_str(fn.__name__)
        return proxy.tracer.create_proxy("call_function", fn, args, kwargs, name=shown)

    return recording


def _create_wrapped_func(fn: Any) -> Any:
    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return fn(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", fn, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Any:
    method = getattr(cls, name)

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return method(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    for (_, name), names in _wrapped_fns_to_patch.copy().items():
        fn = names[name] if name in names else getattr(builtins, name)
        patcher.patch(names, name, _create_wrapped_func(fn))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _autowrap_check(patcher: _Patcher, names: dict[str, Any], ids: set[int]) -> None:
    """Has the functions among these globals that are to be leaves record themselves."""
    if id(names) in patcher.visited:
        return
    patcher.visited.add(id(names))
    recorded = {id(fn): name for name, fn in FUNCTIONAL.items()}
    for name, value in list(names.items()):
        if name.startswith("_") or not callable(value):
            continue
        if id(value) in ids:
            patcher.patch(names, name, _create_wrapped_func(value))
        elif id(value) in recorded and names is not vars(F):
            patcher.patch(names, name, _recording(recorded[id(value)], value))


def wrap(fn_or_name: _Fn) -> _Fn:
    """Has a function of the calling module (given, or by name) be a leaf of traces.

    Called at the module's top level, or as a decorator there: tracing records a call of the
    function instead of what it does.
    See https://docs.pytorch.org/docs/stable/fx.html#torch.fx.wrap.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__code__.co_name  # type: ignore[attr-defined]
    frame: Any = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A GraphModule that does what a module or function does, with the graph of it.

    Args:
        root (Module or Callable): what to trace
        concrete_args (dict, optional): arguments by name that are these values, so that what
            depends on them can be traced

    The function is run once, on proxies. What it does must not depend on their values: an ``if`` on
    one raises :class:`TraceError`.
    See https://docs.pytorch.org/docs/stable/fx.html#torch.fx.symbolic_trace.

    >>> def f(x, y):
    ...     return torch.relu(x) + y.neg()
    >>> g = torch.fx.symbolic_trace(f)
    >>> print(g.code.strip())
    def forward(self, x, y):
        relu = torch.relu(x);  x = None
        neg = y.neg();  y = None
        add = relu + neg;  relu = neg = None
        return add
    >>> g(torch.tensor([-1., 2.]), torch.ones(2))
    tensor([-1.,  1.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


explain_missing("torch.fx._symbolic_trace", globals())
