"""What ``torch.jit.script`` and ``trace`` give: functions and modules that run their Python.

A scripted module is a copy of the module that shares its parameters and buffers, as in PyTorch:
``state_dict`` keys, ``train()``, ``to()`` and hooks work as they do there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import antorcha.nn  # noqa: F401  (whole: another thread may be importing it)
from antorcha.autograd import no_grad
from antorcha.errors import ArgumentError, GraphError, MissingFeature
from antorcha.futures import Future
from antorcha.nn.module import Module


def _no_language(what: str) -> NoReturn:
    raise MissingFeature(
        f"{what}: there is no TorchScript in antorcha; scripts and traces run their Python code. "
        "Keep a model as torch.save(model.state_dict(), file)"
    )


class _NoGraph:
    """What scripted things lack: the graph, its code and its file."""

    def save(self, f: Any, **kwargs: Any) -> None:
        """Raises NotImplementedError: there is no TorchScript to write."""
        _no_language("torch.jit.save")

    def save_to_buffer(self, *args: Any, **kwargs: Any) -> bytes:
        """Raises NotImplementedError: there is no TorchScript to write."""
        _no_language("save_to_buffer")

    def graph_for(self, *args: Any, **kwargs: Any) -> Any:
        """Raises NotImplementedError: there is no graph."""
        _no_language("graph_for")

    @property
    def graph(self) -> Any:
        """Raises NotImplementedError: there is no graph."""
        _no_language("graph")

    @property
    def inlined_graph(self) -> Any:
        """Raises NotImplementedError: there is no graph."""
        _no_language("inlined_graph")

    @property
    def code(self) -> str:
        """Raises NotImplementedError: there is no TorchScript."""
        _no_language("code")


class ScriptFunction(_NoGraph):
    """A function that `script` or `trace` was given: calling it runs the function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.name = getattr(function, "__name__", type(function).__name__)
        self.qualified_name = f"__torch__.{self.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)  # type: ignore[attr-defined]


class ScriptModule(_NoGraph, Module):
    """A module in TorchScript; here one that runs its Python. Subclasses are ordinary modules, and
    ``@torch.jit.script_method`` marks their methods."""


class RecursiveScriptModule(ScriptModule):
    """What `script` makes of a module."""

    @property
    def original_name(self) -> str:
        """The class that was scripted."""
        return _original(type(self)).__name__

    def _get_name(self) -> str:
        return next(k for k in type(self).__mro__ if k.__module__ == __name__).__name__

    def extra_repr(self) -> str:
        """``original_name=Linear``"""
        return f"original_name={self.original_name}"


class TracedModule(RecursiveScriptModule):
    """What `trace` makes of a module's parts."""


class TopLevelTracedModule(TracedModule):
    """What `trace` makes of a module."""


def _original(cls: type) -> type:
    return next(k for k in cls.__mro__ if not issubclass(k, _NoGraph))


@functools.cache
def _derived(kind: type, cls: type) -> type:
    """The class of scripted modules of class `cls`."""
    return type(kind.__name__, (kind, cls), {"__doc__": cls.__doc__})


def _copy(module: Module, kind: type, memo: dict[int, Any]) -> Any:
    """The module and those in it, with the same tensors, as scripted modules."""
    if isinstance(module, ScriptModule):
        return module
    if id(module) not in memo:
        cls: Any = type(module)
        result: Any = object.__new__(_derived(kind, cls))
        memo[id(module)] = result
        own = {k: v.copy() if type(v) in (dict, list, set) or (k[:1] == "_" and hasattr(v, "copy")
               and not callable(v)) else v for k, v in vars(module).items()}  # fmt: skip
        vars(result).update(own)
        inner = TracedModule if issubclass(kind, TracedModule) else kind
        for name, child in module._modules.items():
            result._modules[name] = None if child is None else _copy(child, inner, memo)
    return memo[id(module)]


def script(
    obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:  # fmt: skip
    """The module, function or class, to be used as in PyTorch: a module gives a ScriptModule with
    the same parameters, a function a ScriptFunction; both run the Python they were made from.

    See https://docs.pytorch.org/docs/stable/generated/torch.jit.script.html.

    >>> @torch.jit.script
    ... def double(x):
    ...     return x + x
    >>> double(torch.ones(2))
    tensor([2., 2.])
    >>> torch.jit.script(torch.nn.Linear(2, 1))
    RecursiveScriptModule(original_name=Linear)
    """
    if isinstance(obj, (ScriptModule, ScriptFunction, type, list, dict)):
        return obj
    if isinstance(obj, Module):
        return _copy(obj, RecursiveScriptModule, {})
    if callable(obj):
        return ScriptFunction(obj)
    raise ArgumentError(f"script: a module or a function is needed, not {type(obj).__name__}")


def trace(
    func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True,
    check_inputs: Any = None, check_tolerance: float = 1e-5, strict: bool = True,
    _force_outplace: bool = False, _module_class: Any = None, _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None, _store_inputs: bool = True,
) -> Any:  # fmt: skip
    """Runs the function or module once with the examples, and gives what runs it again.

    Nothing is recorded: conditions and loops are decided anew at each call, where PyTorch's trace
    keeps what the examples decided.

    See https://docs.pytorch.org/docs/stable/generated/torch.jit.trace.html.

    >>> traced = torch.jit.trace(torch.nn.ReLU(), torch.ones(2))
    >>> traced(torch.tensor([-1., 1.]))
    tensor([0., 1.])
    """
    if isinstance(func, (ScriptModule, ScriptFunction)):
        return func
    if (example_inputs is None) == (example_kwarg_inputs is None):
        raise GraphError(
            "trace: give one of example_inputs and example_kwarg_inputs, the arguments to run with"
        )
    if example_kwarg_inputs is not None:
        args: Any = ()
        kwargs = dict(example_kwarg_inputs)
    else:
        args = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
        kwargs = {}
    with no_grad():
        func(*args, **kwargs)
    return _copy(func, TopLevelTracedModule, {}) if isinstance(func, Module) \
        else ScriptFunction(func)  # fmt: skip


def trace_module(mod: Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Runs the methods named in `inputs` once with their examples; gives a module to run again."""
    for name, given in inputs.items():
        with no_grad():
            getattr(mod, name)(*(given if isinstance(given, tuple) else (given,)))
    return _copy(mod, TopLevelTracedModule, {})


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """The scripted module: constants are folded in graphs only, and there are none.

    Raises RuntimeError for a module that is no ScriptModule, or that is in training mode.
    """
    if not isinstance(mod, ScriptModule):
        raise GraphError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or "
            "torch.jit.trace to script your 'nn.Module'."
        )
    if mod.training:
        raise GraphError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() "
            "on your module before freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """The scripted module, in eval mode: there is no graph to optimise."""
    return freeze(mod.eval())


def run_frozen_optimizations(mod: Any, *args: Any, **kwargs: Any) -> None:
    """Nothing: there is no graph to optimise."""


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Runs the function at once, as PyTorch does outside TorchScript.

    >>> torch.jit.wait(torch.jit.fork(torch.neg, torch.ones(1)))
    tensor([-1.])
    """
    result: Future[Any] = Future()
    result.set_result(func(*args, **kwargs))
    return result


def wait(future: Future[Any]) -> Any:
    """The result of a `fork`."""
    return future.wait()


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Raises NotImplementedError: there is no TorchScript to write."""
    _no_language("torch.jit.save")


def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError: files of TorchScript hold code that antorcha cannot run."""
    _no_language("torch.jit.load")


def save_jit_module_to_flatbuffer(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Raises NotImplementedError: there is no TorchScript to write."""
    _no_language("torch.jit.save_jit_module_to_flatbuffer")


def jit_module_from_flatbuffer(f: Any) -> Any:
    """Raises NotImplementedError: files of TorchScript hold code that antorcha cannot run."""
    _no_language("torch.jit.jit_module_from_flatbuffer")


def export_opnames(m: Any) -> list[str]:
    """Raises NotImplementedError: there is no graph."""
    _no_language("torch.jit.export_opnames")


def last_executed_optimized_graph() -> Any:
    """Raises NotImplementedError: there is no graph."""
    _no_language("torch.jit.last_executed_optimized_graph")


class CompilationUnit:
    """Source text of TorchScript: making one raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_language("torch.jit.CompilationUnit")
