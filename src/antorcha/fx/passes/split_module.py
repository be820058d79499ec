"""split_module: a graph in several modules, called one after another."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from antorcha.errors import explain_missing
from antorcha.fx.graph import Graph
from antorcha.fx.graph_module import GraphModule, _copy_attr
from antorcha.fx.node import Node, map_arg
from antorcha.nn.module import Module

__all__ = ["split_module"]


class _Partition:
    """The nodes of one part: a graph of its own."""

    def __init__(self, name: Any) -> None:
        self.name = f"submod_{name}"
        self.nodes: list[Node] = []
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.needs: dict[Any, None] = {}


def split_module(
    m: GraphModule, root_m: Module | None = None, split_callback: Callable[[Node], Any] = id,
    qualname_map: dict[str, str] | None = None, keep_original_order: bool = False,
    keep_original_node_name: bool = False, **_: Any,
) -> GraphModule:  # fmt: skip
    """A module whose children ``submod_<k>`` are the parts of ``m``'s graph.

    Args:
        m (GraphModule): what is split
        root_m (Module, optional): where its attributes are. Default: ``m``
        split_callback (Callable): gives the part, a number or a name, that a node belongs to
        qualname_map (dict, optional): gets, for each module's new dotted name, its old one
        keep_original_order (bool): accepted; parts are called in the order of their first nodes
            unless one needs another
        keep_original_node_name (bool): accepted; nodes keep their names

    Parts must not need one another both ways.

    >>> from antorcha.fx.passes.split_module import split_module
    >>> gm = torch.fx.symbolic_trace(lambda x: (x.exp() + 1).log())
    >>> parts = split_module(gm, gm, lambda node: int(node.target == 'log'))
    >>> [name for name, _ in parts.named_children()], parts(torch.zeros(1))
    (['submod_0', 'submod_1'], tensor([0.6931]))
    """
    root = m if root_m is None else root_m
    parts: dict[Any, _Partition] = {}
    where: dict[Node, Any] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        key = where[node] = split_callback(node)
        parts.setdefault(key, _Partition(key)).nodes.append(node)
    for node in m.graph.nodes:
        for used in node.all_input_nodes:
            _note_use(used, node, where, parts)
    return _assembled(m, root, parts, where, qualname_map)


def _note_use(used: Node, node: Node, where: dict[Node, Any], parts: dict[Any, _Partition]) -> None:
    """A value that one part makes and another, or the output, uses passes between them."""
    source, place = where.get(used), where.get(node)
    if used in where and (node not in where or source != place):
        parts[source].outputs[used] = None
    if node in where and (used not in where or source != place) and used.op != "get_attr":
        parts[place].inputs[used] = None
        if used in where:
            parts[place].needs[source] = None


def _ordered(parts: dict[Any, _Partition]) -> list[Any]:
    """The parts, each after those that it needs."""
    done: list[Any] = []
    while len(done) < len(parts):
        ready = [k for k in parts if k not in done and all(n in done for n in parts[k].needs)]
        if not ready:
            raise RuntimeError("cycle exists between partitions!")
        done.append(ready[0])
    return done


def _assembled(
    m: GraphModule, root: Module, parts: dict[Any, _Partition], where: dict[Node, Any],
    qualname_map: dict[str, str] | None,
) -> GraphModule:  # fmt: skip
    base, modules = Graph(), Module()
    values: dict[Node, Any] = {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            values[node] = base.node_copy(node)

    def in_base(node: Node) -> Any:
        if node not in values:  # an attribute: read where it is used
            values[node] = base.node_copy(node)
            _copy_attr(root, modules, node.target)
        return values[node]

    for key in _ordered(parts):
        part = parts[key]
        setattr(modules, part.name, _part_module(root, part, qualname_map))
        call = base.call_module(part.name, tuple([in_base(node) for node in part.inputs]))
        outputs = list(part.outputs)
        if len(outputs) == 1:
            values[outputs[0]] = call
        for k, node in enumerate(outputs if len(outputs) > 1 else ()):
            values[node] = _item(base, call, k)
    output = m.graph.output_node()
    base.output(map_arg(output.args[0], in_base), output.type)
    return GraphModule(modules, base)


def _item(graph: Graph, node: Node, k: int) -> Node:

    return graph.call_function(operator.getitem, (node, k))


def _part_module(
    root: Module, part: _Partition, qualname_map: dict[str, str] | None
) -> GraphModule:
    graph, result = Graph(), {}
    for node in part.inputs:
        result[node] = graph.placeholder(node.name, type_expr=node.type)

    def inside(node: Node) -> Any:
        if node not in result:  # an attribute
            result[node] = graph.node_copy(node)
        return result[node]

    for node in part.nodes:
        result[node] = graph.node_copy(node, inside)
        if qualname_map is not None and node.op == "call_module":
            qualname_map[f"{part.name}.{node.target}"] = node.target
    outputs = tuple([result[node] for node in part.outputs])
    graph.output(outputs[0] if len(outputs) == 1 else outputs)
    return GraphModule(root, graph)


explain_missing("torch.fx.passes.split_module", globals())
