"""Proxy: stands for a value while a function is traced, and records what is done to it."""

from __future__ import annotations

import copy
import dis
import enum
import operator
import sys
import traceback
import weakref
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn

from antorcha._ops import OpOverload
from antorcha.core import modes
from antorcha.core.device import Device
from antorcha.core.dtypes import dtype
from antorcha.core.shapes import Size
from antorcha.errors import explain_missing, ours
from antorcha.fx.codegen import MAGIC, REFLECTABLE
from antorcha.fx.functions import as_pytorch_calls, public_form, qualified_name
from antorcha.fx.graph import Graph
from antorcha.fx.node import Node, map_aggregate, map_arg
from antorcha.runtime.tensor import Tensor

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "Scope",
           "ScopeContextManager", "TraceError", "TracerBase", "assert_fn"]  # fmt: skip

_CONSTANTS = (str, int, float, bool, complex, dtype, Tensor, Device, enum.Enum, OpOverload,
              type(None), type(...))  # fmt: skip


class TraceError(ValueError):
    """What the traced function does depends on a value that is not known."""


def assert_fn(x: Any) -> None:
    """An assertion, as a step of a graph."""
    if not x:
        raise AssertionError("Assertion failed")


class Scope:
    """The module that is being traced: its path and its class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Inside, ``scope`` is another one."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._before = Scope(scope.module_path, scope.module_type)
        scope.module_path = current_scope.module_path
        scope.module_type = current_scope.module_type
        self._scope = scope

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *_: object) -> None:
        self._scope.module_path = self._before.module_path
        self._scope.module_type = self._before.module_type


class TracerBase:
    """What a Proxy asks to add a node to the graph; subclass :class:`Tracer` rather than this."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: OrderedDict[str, Any]
    node_name_to_scope: dict[str, Any]

    def create_node(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Adds a node to the graph; override it to check or change what is recorded."""
        if kind == "call_function" and self.check_mutable_operations:
            changes = str(getattr(target, "__name__", ""))
            if changes.endswith("_") and not changes.endswith("__"):
                raise RuntimeError(
                    f"Tried to trace mutable operation {changes}. FX only supports functional code,"
                    " so operations that mutate operands in-place (e.g. via `out` arguments) are "
                    "not supported"
                )
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if self.module_stack:
            node.meta["nn_module_stack"] = self.module_stack.copy()
        if self.record_stack_traces:
            node.stack_trace = _user_stack()
        return node

    def proxy(self, node: Node) -> Proxy:
        """The Proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        name: str | None = None, type_expr: Any = None, proxy_factory_fn: Any = None,
    ) -> Proxy:  # fmt: skip
        """Adds a node whose arguments may hold proxies, and gives its Proxy."""
        node = self.create_node(
            kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr
        )
        found: Proxy = self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)
        return found

    def create_arg(self, a: Any) -> Any:
        """A value as an argument of a node: proxies become nodes; override it for more types."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and not isinstance(a, Size):
            values = [self.create_arg(each) for each in a]
            return type(a)(*values) if hasattr(a, "_fields") else type(a)(values)
        if isinstance(a, Size):
            return tuple([self.create_arg(each) for each in a])
        if isinstance(a, list):
            return [self.create_arg(each) for each in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(*[self.create_arg(each) for each in (a.start, a.stop, a.step)])
        if isinstance(a, range):
            return range(*[self.create_arg(each) for each in (a.start, a.stop, a.step)])
        if isinstance(a, _CONSTANTS):
            return a
        if is_dataclass(a) and not isinstance(a, type):
            given = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", type(a), (), given)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        def refuse(node: Node) -> NoReturn:
            raise RuntimeError(
                f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}"
            )

        return key if isinstance(key, str) else map_arg(self.create_arg(key), refuse)

    def to_bool(self, obj: Proxy) -> bool:
        """What ``if proxy:`` asks; override it where the value is known."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """What ``for x in proxy:`` asks; override it where the length is known."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. See the torch.fx docs on pytorch.org"
            " for a more detailed explanation of what types of control flow can be traced, and "
            "check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """What ``**proxy`` asks."""
        return Attribute(obj, "keys")()


def _user_stack() -> str | None:
    """The program's frames from the first ``forward`` on, as a traceback's text."""
    frame: Any = sys._getframe(2)
    found = []
    while frame is not None:
        if not ours(frame):
            found.append(frame)
        frame = frame.f_back
    names = [f.f_code.co_name for f in reversed(found)]
    if "forward" not in names:
        return None
    wanted = list(reversed(found))[names.index("forward") :]
    summary = traceback.StackSummary.extract((f, f.f_lineno) for f in wanted)
    return "".join(summary.format()).strip()


class GraphAppendingTracer(TracerBase):
    """The tracer of proxies that add to a graph while nothing is traced."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.scope = graph, Scope("", None)
        modes.look_at_arguments(1)  # its proxies may be the arguments of any call
        weakref.finalize(self, modes.look_at_arguments, -1)
        self.module_stack, self.node_name_to_scope = OrderedDict(), {}


class Proxy:
    """Stands for a node's value: operators, methods and torch functions add nodes to the graph.

    It cannot say its value: ``if proxy``, ``for x in proxy`` and ``len(proxy)`` raise.
    See https://docs.pytorch.org/docs/stable/fx.html#torch.fx.Proxy.

    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder('x'))
    >>> (torch.relu(x) + 1).sum()
    Proxy(sum_1)
    """

    __torch_function_symbolic__ = True  # no call need look for it: it is found where calls fail

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: Any) -> Proxy:
        return Proxy(copy.deepcopy(self.node, memo), copy.deepcopy(self.tracer, memo))

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        found = _instruction(sys._getframe(1))
        if found.opname == "UNPACK_SEQUENCE":
            return iter([self[k] for k in range(found.argval)])  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _asserts(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """What ``**proxy`` asks."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None
    ) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def find(a: Any) -> Any:
            if isinstance(a, Proxy):
                tracers[a.tracer] = None
            return a

        map_aggregate((args, kwargs), find)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations"
                f" {orig_method}"
            )
        tracer = next(iter(tracers))
        orig_method = public_form(orig_method)
        shown = qualified_name(orig_method)
        if shown.startswith("torch.Tensor."):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        if shown.startswith("torch.nn.functional."):
            args, kwargs = as_pytorch_calls(orig_method.__name__, args, kwargs)
        elif shown.startswith("torch.functional."):
            args, kwargs = as_pytorch_calls(f"torch.{orig_method.__name__}", args, kwargs)
        name = tracer.graph._target_to_str(orig_method.__name__)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


def _instruction(frame: Any) -> Any:
    """The instruction that a frame is at."""
    found = list(dis.get_instructions(frame.f_code))
    return found[bisect_left(found, frame.f_lasti, key=lambda each: each.offset)]


def _asserts(frame: Any) -> bool:
    """Is the frame at the test of an ``assert``?"""
    found = list(dis.get_instructions(frame.f_code))
    at = bisect_left(found, frame.f_lasti, key=lambda each: each.offset)
    for each in found[at : at + 4]:
        if each.opname.startswith("POP_JUMP") and "TRUE" in each.opname:
            after = found[found.index(each) + 1 :][:2]
            return any("ASSERTION" in one.opname or one.argval is AssertionError for one in after)
    return False


class Attribute(Proxy):
    """An attribute of a Proxy: a node of its own only where it is not called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads it, added when somebody needs it."""
        if self._node is None:
            result = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = result.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A Proxy of a parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's shape."""
        return self.param.shape

    @property
    def ndim(self) -> Any:
        """How many dims it has."""
        return self.param.ndim

    def size(self, *dim: int) -> Any:
        """Its shape, or the size of one dim."""
        return self.param.size(*dim)

    def dim(self) -> Any:
        """How many dims it has."""
        return self.param.dim()

    def numel(self) -> Any:
        """How many elements it has."""
        return self.param.numel()

    nelement = numel


def _operator(name: str) -> Any:
    target = getattr(operator, name)

    def method(*args: Any) -> Proxy:
        return args[0].tracer.create_proxy("call_function", target, args, {})  # type: ignore[no-any-return]

    method.__name__ = name
    return method


def _reflected(name: str) -> Any:
    target = getattr(operator, name)

    def method(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    method.__name__ = f"__r{name.strip('_')}__"
    return method


for _name in MAGIC:
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name))
for _name in REFLECTABLE:
    if _name != "getitem":
        setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_name))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]  # (== is recorded)


explain_missing("torch.fx.proxy", globals())
