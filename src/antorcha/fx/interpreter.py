"""Interpreter: runs a graph node by node. Transformer: makes a new graph on the way."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from antorcha.errors import explain_missing
from antorcha.fx._symbolic_trace import Tracer
from antorcha.fx.graph import Graph
from antorcha.fx.graph_module import GraphModule
from antorcha.fx.node import Node, map_aggregate, map_arg
from antorcha.fx.proxy import Proxy
from antorcha.nn.module import Module

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a GraphModule node by node; override its methods to do more, or something else.

    Args:
        module (GraphModule): what to run
        garbage_collect_values (bool): let go of each value after its last use. Default: True
        graph (Graph, optional): another graph to run, with the module's attributes

    See https://docs.pytorch.org/docs/stable/fx.html#torch.fx.Interpreter.

    >>> class Sines(torch.fx.Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         target = torch.sin if target is torch.cos else target
    ...         return super().call_function(target, args, kwargs)
    >>> Sines(torch.fx.symbolic_trace(lambda x: torch.cos(x))).run(torch.zeros(2))
    tensor([0., 0.])
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node._input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:  # fmt: skip
        """Runs the graph on these arguments; ``initial_env`` has values of nodes not to run."""
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                self._explain(node, error)
                raise
            for used in self.user_to_last_uses.get(node, ()):
                del self.env[used]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Runs the graph on a list of arguments, which is emptied."""
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args, enable_io_processing=False)

    def _explain(self, node: Node, error: Exception) -> None:
        text = f"While executing {node.format_node()}"
        if self.extra_traceback and node.stack_trace:
            text += f"\nOriginal traceback:\n{node.stack_trace}"
        error.add_note(text)

    def run_node(self, n: Node) -> Any:
        """The value of one node: of the method named like its ``op``."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument, or its default."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The module's attribute of that dotted name."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function's result."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a module."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph gives."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The module's attribute of that dotted name."""
        found: Any = self.module
        atoms = target.split(".")
        for k, atom in enumerate(atoms):
            if not hasattr(found, atom):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(atoms[: k + 1])}")
            found = getattr(found, atom)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A node's arguments, the values that nodes stand for in their place."""
        args, kwargs = self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)
        return args, dict(kwargs)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """An argument, the values that nodes stand for in their place."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose "
                    "such issues"
                )
            return self.env[node]

        return _plain(map_arg(args, value))


def _plain(value: Any) -> Any:
    """Lists and dicts as calls get them: they may be changed."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple([_plain(each) for each in value])
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if type(value).__name__ == "immutable_dict":
        return {key: _plain(each) for key, each in value.items()}
    return value


class Transformer(Interpreter):
    """Runs a graph on proxies, and so makes a new one; override its methods to change calls.

    See https://docs.pytorch.org/docs/stable/fx.html#torch.fx.Transformer.

    >>> class Swap(torch.fx.Transformer):
    ...     def call_method(self, target, args, kwargs):
    ...         return super().call_method('exp' if target == 'log' else target, args, kwargs)
    >>> gm = torch.fx.symbolic_trace(lambda x: x.log())
    >>> Swap(gm).transform()(torch.zeros(1))
    tensor([1.])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            def __init__(self, graph: Graph) -> None:
                super().__init__()
                self.graph = graph
                self.root = Module()

            def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
                return True

        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """A placeholder of the new graph."""
        default = args[0] if args else inspect.Signature.empty
        given = () if default is inspect.Signature.empty else (default,)
        return Proxy(self.new_graph.create_node("placeholder", target, given), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """The reading of an attribute in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a module in the new graph."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a function in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new GraphModule."""
        result = super().run(enable_io_processing=False)
        if result is not None:

            def stripped(a: Any) -> Any:
                return a.node if isinstance(a, Proxy) else a

            old = self.graph.output_node()
            made = self.new_graph.output(map_aggregate(result, stripped))
            made.meta = dict(old.meta)
        return _new_module(self.module, self.new_graph)


def _new_module(module: Any, graph: Graph) -> GraphModule:
    return GraphModule(module, graph, type(module).__name__)


explain_missing("torch.fx.interpreter", globals())
