"""``torch._dynamo``: the names that libraries use of PyTorch's compiler; ops run eagerly here.

Marks and decorators change nothing; what needs a captured graph (``explain``, ``export``) raises.
"""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
    set_stance,
    substitute_in_graph,
)
from antorcha.compiler.eager import OptimizedModule, check_backend, wrapped
from antorcha.errors import ArgumentError, MissingFeature, no_such_name
from antorcha.runtime.tensor import Tensor

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph",
    "explain", "export", "forbid_in_graph", "graph_break", "is_compiling", "is_dynamo_supported",
    "is_inductor_supported", "list_backends", "lookup_backend", "mark_dynamic", "mark_static",
    "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace", "on_compile_end",
    "on_compile_start", "optimize", "optimize_assert", "register_backend", "reset", "run",
    "set_stance", "substitute_in_graph",
]  # fmt: skip
_LAZY = ("config", "eval_frame", "utils", "exc", "external_utils", "backends", "decorators",
         "_trace_wrapped_higher_order_op")  # fmt: skip


def is_dynamo_supported() -> bool:
    """False: programs are not captured."""
    return False


def is_inductor_supported() -> bool:
    """False: graphs are not compiled; each op's kernel is."""
    return False


def optimize(backend: Any = "inductor", **options: Any) -> Any:
    """The older form of ``torch.compile``: a decorator."""
    check_backend(backend)
    return wrapped


optimize_assert = optimize


def run(fn: Any = None) -> Any:
    """The function, as it is."""
    return fn if fn is not None else lambda each: each


def disallow_in_graph(fn: Any) -> Any:
    """A decorator: the function stays as it is."""
    return fn


def forbid_in_graph(fn: Any) -> Any:
    """A decorator: the function stays as it is."""
    return fn


def nonstrict_trace(fn: Any) -> Any:
    """A decorator: the function stays as it is."""
    return fn


def graph_break(msg: str = "") -> None:
    """Nothing to break: there is no graph."""


def mark_dynamic(t: Any, index: Any, **options: Any) -> None:
    """Nothing to mark: sizes are never assumed."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Nothing to mark: sizes are never assumed."""


def mark_static(t: Any, index: Any = None) -> None:
    """Nothing to mark: sizes are never assumed."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Nothing to mark: there are no CUDA graphs. Raises TypeError for what is no tensor."""
    if not isinstance(t, Tensor):
        raise ArgumentError(f"mark_static_address expects a tensor but received {type(t)}")


def on_compile_start(callback: Any) -> Any:
    """A decorator of what is called when something is captured, which never happens."""
    return callback


on_compile_end = on_compile_start


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Any = ()) -> Any:
    """A decorator of a backend. It stays as it is, and cannot be asked for: there is no graph."""
    return compiler_fn if compiler_fn is not None else lambda fn: fn


def lookup_backend(compiler_fn: Any) -> Any:
    """Raises NotImplementedError: a backend is given graphs, and there are none."""
    raise MissingFeature(f"lookup_backend: there are no graphs to compile with {compiler_fn!r}")


def explain(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError: programs are not captured."""
    raise MissingFeature("torch._dynamo.explain: antorcha runs programs eagerly; there is no graph")


def export(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Raises NotImplementedError: programs are not captured."""
    raise MissingFeature("torch._dynamo.export: antorcha runs programs eagerly; there is no graph")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise no_such_name("torch._dynamo", name, globals())
