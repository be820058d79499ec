"""Graph: a list of nodes, and the Python code that it stands for."""

from __future__ import annotations

import builtins
import copy
import importlib
import keyword
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from antorcha.core.device import Device
from antorcha.errors import explain_missing
from antorcha.fx.codegen import CodeGen, PythonCode
from antorcha.fx.functions import TORCH
from antorcha.fx.node import Node, map_arg
from antorcha.nn.module import Module

__all__ = ["CodeGen", "Graph", "PythonCode"]

_BUILTINS = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": TORCH,
             "device": Device}  # fmt: skip
"""The globals of all generated code."""
_NAME = re.compile(r"^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$")
_TAKEN: dict[str, Any] = {
    **{name: object() for name in keyword.kwlist}, **vars(builtins), **_BUILTINS,
    "fx_pytree": object(), "pytree": object(),
}  # fmt: skip


class _Namespace:
    """Gives each object a name of its own."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any = None) -> str:
        """A name like ``candidate`` that nobody has; an object keeps its name."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        match = _NAME.match(candidate)
        if match is None:
            candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
            candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
            match = _NAME.match(candidate)
            assert match is not None
        base, digits = match.group(1, 2)
        if digits is None or candidate in self._used_names:
            number = self._base_count.get(base, 0)
            if _TAKEN.get(candidate, obj) is not obj:
                number += 1
                candidate = f"{base}_{number}"
        else:
            number = int(digits)
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Notes the name that an object has."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        self._obj_to_name[obj] = name
        self._used_names.add(name)


class _NodeList:
    """The nodes in order, forward or reversed."""

    def __init__(self, graph: Graph, direction: str = "next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        forward = self.direction == "next"
        node = root._next if forward else root._prev
        while node is not root:
            if not node._erased:
                yield node
            node = node._next if forward else node._prev

    def __reversed__(self) -> _NodeList:
        return _NodeList(self.graph, "prev" if self.direction == "next" else "next")


class _InsertPoint:
    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.graph._insert = self.orig_insert


def _snake_case(text: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", text).lower()


class Graph:
    """The steps of a function: placeholders, calls, and one output.

    Usually a tracer makes it (:func:`symbolic_trace`); it can also be built by hand.
    See https://docs.pytorch.org/docs/stable/fx.html#torch.fx.Graph.

    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder('x')
    >>> y = graph.call_function(torch.relu, (x,))
    >>> _ = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(
        self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> Any:
        """The GraphModule that runs it."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> _NodeList:
        """The nodes in order; ``reversed(graph.nodes)`` is the other way round."""
        return _NodeList(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of that kind, and with that target if one is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """The node that gives the results."""
        return next(iter(reversed(self.nodes)))

    # -------------------------------------------------------------------------------- adding nodes
    def create_node(
        self, op: str, target: Any, args: Any = None, kwargs: Any = None, name: str | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Adds a node at the insertion point."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        name = self._graph_namespace.create_name(candidate, None)
        node = Node(self, name, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Any) -> str:
        text = target if isinstance(target, str) else target.__name__
        if not isinstance(target, str) and text.startswith("__") and text.endswith("__"):
            text = text[2:-2]
        return _snake_case(text)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Adds an argument of the graph."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Adds the reading of a parameter, buffer or module of the owning module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """Adds a call of a module of the owning module."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """Adds a call of a method of ``args[0]``."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Any, args: Any = None, kwargs: Any = None, type_expr: Any = None,
        name: str | None = None,
    ) -> Node:  # fmt: skip
        """Adds a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Adds the result."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Adds a copy of another graph's node; ``arg_transform`` gives this graph's node for each
        of its arguments."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        result = self.create_node(node.op, node.target, args, dict(kwargs), node.name, node.type)
        result.meta = copy.copy(node.meta)
        return result

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Adds copies of all of ``g``'s nodes but the output, whose value it gives."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        memo = {} if memo is None else memo
        made = Graph(tracer_cls=self._tracer_cls)
        values = memo.setdefault("_fx_nodes", {}).setdefault(id(self), {})
        result = made.graph_copy(self, values, return_output_node=True)
        made._codegen = copy.copy(self._codegen)
        made._co_fields = dict(self._co_fields)
        if result is not None:
            value, old = result
            node = made.output(value, type_expr=old.type)
            node.meta = copy.copy(old.meta)
        return made

    # ------------------------------------------------------------------------------ changing nodes
    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """A context (or from now on) in which new nodes go before ``n``; None: to the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """A context (or from now on) in which new nodes go after ``n``; None: to the end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Takes out a node that nobody uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs((), {})

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Takes out what nobody uses and has no effect; says whether something was."""
        self.lint()
        changed = False
        for node in reversed(self.nodes):
            impure = is_impure_node(node) if is_impure_node is not None else node.is_impure()
            if not impure and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    # -------------------------------------------------------------------------------------- checks
    def lint(self) -> None:
        """Checks that arguments are made before they are used, names differ, targets exist."""
        names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for arg in node._input_nodes:
                _check_argument(self, arg, node, seen)
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                _check_target(self.owning_module, node)

    # ---------------------------------------------------------------------------------------- text
    def python_code(
        self, root_module: str, *, verbose: bool = False, include_stride: bool = False,
        include_device: bool = False, colored: bool = False, expanded_def: bool = False,
        **_: Any,
    ) -> PythonCode:  # fmt: skip
        """The graph as the source of a function ``forward``, and the globals that it needs."""
        namespace = _Namespace()

        # (a node's name, as generated code shows it)
        def shown(node: Node) -> str:
            return namespace.create_name(node.name, node)

        before = {node: node._repr_fn for node in self.nodes}
        for node in self.nodes:
            node._repr_fn = shown
        try:
            return self._codegen._gen_python_code(
                list(self.nodes), root_module, namespace, _BUILTINS, verbose=verbose,
                include_stride=include_stride, include_device=include_device,
            )  # fmt: skip
        finally:
            for node, fn in before.items():
                node._repr_fn = fn

    def __str__(self) -> str:
        names: list[str] = []
        lines = [node.format_node(names) for node in self.nodes]
        head = f"graph({', '.join(names)}):"
        return head + "".join([f"\n    {line}" for line in lines if line])

    def print_tabular(self) -> None:
        """Prints a table of the nodes; needs the package ``tabulate``."""
        try:
            tabulate = importlib.import_module("tabulate").tabulate
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on "
                "this machine. Run `pip install tabulate` to install the library."
            )
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    # ------------------------------------------------------------------------------ generated code
    def set_codegen(self, codegen: CodeGen) -> None:
        """Has another object write the code."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """The inputs as the placeholders take them."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The outputs as the function gives them."""
        return self._codegen.process_outputs(out)

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> _Restored:
        """Has a function change the code's lines: it gets the present transformer (or None) and
        gives another. A context, or for good."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        return _Restored(self._codegen, before)


class _Restored:
    """Puts a transformer of the code back at the end of a block."""

    def __init__(self, codegen: CodeGen, before: Any) -> None:
        self.codegen, self.before = codegen, before

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.codegen._body_transformer = self.before


def _check_argument(graph: Graph, arg: Node, node: Node, seen: set[Node]) -> None:
    if arg.graph is not graph:
        raise RuntimeError(
            f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an "
            "argument! If you are copying nodes from another graph, make sure to use "
            f"``arg_transform`` on node_copy() to remap values\n{graph}"
        )
    if arg not in seen:
        raise RuntimeError(
            f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check "
            f"that Nodes in the graph are topologically ordered\n{graph}"
        )


def _check_target(owner: Any, node: Node) -> None:
    found = owner
    for atom in node.target.split("."):
        if not hasattr(found, atom):
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute {atom} of "
                f"{type(found).__name__}"
            )
        found = getattr(found, atom)

    if node.op == "call_module" and not isinstance(found, Module):
        raise RuntimeError(
            f"Node {node} target {node.target} {node.target.rpartition('.')[2]} of "
            f"{type(owner).__name__} does not reference an nn.Module"
        )


explain_missing("torch.fx.graph", globals())
