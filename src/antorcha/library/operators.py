"""Operators written in Python: what a call of ``torch.ops.ns.name`` runs.

An operator has a schema, kernels by device type (``default`` for all devices, ``implicit`` for one
that is differentiated through), a fake implementation for tensors without data (``meta``), and
maybe a derivative. A kernel runs where nothing is recorded; where an argument requires a gradient
the call is one node of the graph, and its backward is the derivative that was registered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha._C.dispatch_keys import is_excluded
from antorcha._ops import OpOverload, OpOverloadPacket, ops, overridden
from antorcha.autograd import no_grad
from antorcha.autograd.function import Function
from antorcha.core import modes
from antorcha.errors import GraphError
from antorcha.library.schema import FunctionSchema
from antorcha.runtime.tensor import Tensor

_UNRECORDED = modes.NO_GRAD | modes.INFERENCE


class PythonOverload(OpOverload):
    """An overload that a program has defined."""

    def __init__(self, packet: OpOverloadPacket, schema: FunctionSchema) -> None:
        super().__init__(packet, schema.overload_name or "default")
        self.schema = schema
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.fake: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.is_functional = False  # made by custom_op: its results are new tensors
        self.shown: Any = self  # how messages name it
        self._node: Any = None
        self._op = self.__call__

    @property
    def _schema(self) -> FunctionSchema:
        return self.schema

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        done = overridden(self, args, kwargs)
        if done is not NotImplemented:
            return done
        values, only = self.schema.bind(args, kwargs)
        cast = self.kernels.get("autocastcpu") if modes.state.word & modes.AUTOCAST_CPU else None
        if cast is not None and not is_excluded("AutocastCPU"):
            given, named = self.schema.without_defaults(values, only)
            return cast(*given, **named)
        kernel = self.kernels.get("autograd")
        if kernel is not None:
            return kernel(*self.schema.without_defaults(values, only)[0], **only)
        tensors = tensors_in((*values, *only.values()))
        if "implicit" in self.kernels and self._device(tensors) not in self.kernels:
            given, named = self.schema.without_defaults(values, only)
            return self.kernels["implicit"](*given, **named)
        recorded = not modes.state.word & _UNRECORDED
        recorded = recorded and not self.schema.is_mutable
        if recorded and any([t.requires_grad for t in tensors_in(values)]):
            return self._recorded(values, only)
        return self.run(values, only)

    # ------------------------------------------------------------------------------------- kernels
    def _device(self, tensors: list[Tensor]) -> str:
        return tensors[0].device.type if tensors else "cpu"

    def run(self, values: tuple[Any, ...], only: dict[str, Any]) -> Any:
        """Runs the kernel for the arguments' device; nothing is recorded."""
        tensors = tensors_in((*values, *only.values()))
        kernel = self._kernel(self._device(tensors))
        given, named = self.schema.without_defaults(values, only)
        with no_grad():
            result = kernel(*given, **named)
        if self.is_functional:
            self._check_new(result, tensors)
        for argument, value in zip(self.schema.arguments, (*values, *only.values()), strict=True):
            if argument.is_write:
                for each in tensors_in((value,)):
                    each._storage.version += 1
        return result

    def _kernel(self, device: str) -> Callable[..., Any]:
        if device == "meta" and self.fake is not None:
            return self.fake
        found = self.kernels.get(device)
        if found is not None:
            return found
        if device == "meta" and self.is_functional:
            raise GraphError(
                f"There was no fake impl registered for {self.shown}. This is necessary for "
                "torch.compile/export/fx tracing to work. Please use "
                f"`{self._opname}.register_fake` to add an fake impl."
            )
        for key in ("default", "implicit"):
            if key in self.kernels:
                return self.kernels[key]
        have = ", ".join(sorted(self.kernels)) or "none"
        raise NotImplementedError(
            f"Could not run '{self.name()}' with arguments from the '{device.upper()}' backend: no "
            f"kernel was registered for it (there are: {have})"
        )

    def _check_new(self, result: Any, tensors: list[Tensor]) -> None:
        for each in tensors_in((result,)):
            if any([each is t or _same_memory(each, t) for t in tensors]):
                raise GraphError(
                    f"{self.name()}: The output of this custom operator (1) must not also be an "
                    "input to this custom operator and (2) may not alias any inputs to this custom "
                    "operator or other returns. The most common way to trigger this error is if we "
                    "have y = custom_op(x) and y and x are the same Tensor. Please instead return "
                    "a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor "
                    "the custom operator to not return y."
                )

    # ---------------------------------------------------------------------------------- derivative
    def _recorded(self, values: tuple[Any, ...], only: dict[str, Any]) -> Any:
        if self._node is None:
            name = f"GeneratedBackwardFor_{self.namespace}_{self._opname}_{self._overloadname}"
            self._node = type(name, (_Node,), {"op": self})
        flat: list[Any] = []
        shape: list[int | None] = []  # of each argument: how many tensors, None: no list
        for value in values:
            if isinstance(value, (list, tuple)) and tensors_in((value,)):
                shape.append(len(value))
                flat += value
            else:
                shape.append(None)
                flat.append(value)
        result = self._node.apply(_OperatorCall(values, only, shape), *flat)
        if len(self.schema.returns) == 1 and self.schema.returns[0].type == "Tensor[]":
            return list(result)
        return result


class _OperatorCall:
    """The arguments of a call as they were given; ``shape`` says how they were flattened."""

    def __init__(self, values: Any, only: Any, shape: list[int | None]) -> None:
        self.values, self.only, self.shape = values, only, shape

    def nested(self, flat: tuple[Any, ...]) -> tuple[Any, ...]:
        result, at = [], 0
        for count in self.shape:
            result.append(flat[at] if count is None else list(flat[at : at + count]))
            at += 1 if count is None else count
        return tuple(result)


class _Node(Function):
    """The call as one node of the graph."""

    op: PythonOverload

    @classmethod
    def forward(cls, ctx: Any, call: _OperatorCall, *flat: Any) -> Any:
        result = cls.op.run(call.values, call.only)
        ctx.call = call
        if cls.op.setup_context is not None:
            ctx.needs_input_grad = call.nested(ctx.needs_input_grad[1:])
            given = {"ctx": ctx, "inputs": call.values, "output": result}
            if any(argument.kwarg_only for argument in cls.op.schema.arguments):
                given["keyword_only_inputs"] = call.only
            cls.op.setup_context(**given)
        else:
            ctx.needs_input_grad = call.nested(ctx.needs_input_grad[1:])
        return tuple(result) if isinstance(result, list) else result

    @classmethod
    def backward(cls, ctx: Any, *grads: Any) -> Any:
        op = cls.op
        if op.backward is None:
            raise GraphError(
                f"Trying to backward through {op} but no autograd formula was registered. Please "
                "use register_autograd to add one."
            )
        returns = op.schema.returns
        is_list = len(returns) == 1 and returns[0].type == "Tensor[]"
        found = op.backward(ctx, list(grads)) if is_list else op.backward(ctx, *grads)
        given = found if isinstance(found, tuple) else (found,)
        flat: list[Any] = [None]
        for count, each in zip(ctx.call.shape, given, strict=False):
            flat += [each] if count is None else (each or [None] * count)
        flat += given[len(ctx.call.shape) :]
        return tuple(flat)


def tensors_in(values: tuple[Any, ...]) -> list[Tensor]:
    """The tensors among the values, and in lists among them."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [each for each in value if isinstance(each, Tensor)]
    return found


def _same_memory(a: Tensor, b: Tensor) -> bool:
    return a._storage is b._storage and a._layout.numel > 0


# -------------------------------------------------------------------------------------- definitions
def define(namespace: str, schema: FunctionSchema) -> PythonOverload:
    """Adds an operator, or an overload of one, to ``torch.ops``."""
    name = schema.name.rpartition("::")[2]
    qualname = f"{namespace}::{name}"
    schema.name = qualname
    space = getattr(ops, namespace)
    packet = space.__dict__.get(name)
    overload = schema.overload_name or "default"
    if packet is None:
        packet = OpOverloadPacket(qualname, {})
        space._add(name, packet)
    elif overload in packet._found:
        raise GraphError(
            f"Tried to register an operator ({schema}) with the same name and overload name "
            "multiple times."
        )
    result = packet._found[overload] = PythonOverload(packet, schema)
    return result


def forget(op: PythonOverload) -> None:
    """Takes an operator away again."""
    packet = op.overloadpacket
    packet._found.pop(op._overloadname, None)
    space = getattr(ops, op.namespace)
    if not packet._found and op._opname in space.__dict__:
        delattr(space, op._opname)
        space._dir.remove(op._opname)


def lookup(qualname: str) -> PythonOverload:
    """The operator ``"ns::name"`` or ``"ns::name.overload"`` that a program has defined."""
    namespace, colons, rest = qualname.partition("::")
    if not colons:
        raise ValueError(
            f"Expected `torch.library` names to have the form 'namespace::name', got {qualname!r}"
        )
    name, _, overload = rest.partition(".")
    packet = getattr(ops, namespace).__dict__.get(name)
    found = None if packet is None else packet._found.get(overload or "default")
    if not isinstance(found, PythonOverload):
        raise GraphError(f"operator {qualname} does not exist")
    return found
