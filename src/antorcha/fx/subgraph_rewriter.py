"""Rewriting of graphs: where a pattern occurs, something else is put."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from antorcha.errors import explain_missing
from antorcha.fx._symbolic_trace import symbolic_trace
from antorcha.fx.graph import Graph
from antorcha.fx.graph_module import GraphModule, _copy_attr
from antorcha.fx.node import Node, map_arg
from antorcha.nn.module import Module

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place where the pattern was: the node of its result, and the node for each of its own."""

    anchor: Node
    nodes_map: dict[Node, Node]


class ReplacedPatterns(NamedTuple):
    """A match with what was put there."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Puts ``replacement`` wherever ``pattern`` occurs in a module's graph; gives the places.

    Args:
        gm (GraphModule): what is changed
        pattern (Callable, Module or GraphModule): what to look for; its arguments match anything
        replacement (Callable, Module or GraphModule): what to put there, of the same arguments

    A pattern matches where all its steps occur, applied to one another in the same way, and nobody
    else uses what is computed between. Matches do not overlap.
    See https://docs.pytorch.org/docs/stable/fx.html#torch.fx.replace_pattern.

    >>> gm = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    >>> _ = torch.fx.replace_pattern(gm, lambda x: torch.relu(x), lambda x: torch.sigmoid(x))
    >>> gm(torch.zeros(1))
    tensor([1.5000])
    """
    return [Match(m.anchor, m.nodes_map) for m in _replace(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Any, replacement: Any = None, match_filters: Any = None,
    ignore_literals: bool = False, replacement_callback: Any = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:  # fmt: skip
    """As :func:`replace_pattern`, with a say about each place.

    ``match_filters``: each ``(match, graph, pattern_graph) -> bool`` must accept it;
    ``ignore_literals``: do numbers and the like match any others?;
    ``replacement_callback``: ``(match, graph, pattern_graph) -> Graph`` gives what is put there.
    """
    return _replace(gm, pattern, replacement, match_filters or (), ignore_literals,
                    replacement_callback)  # fmt: skip


def _graph_of(pattern: Any) -> Graph:
    if isinstance(pattern, GraphModule):
        return pattern.graph
    return pattern if isinstance(pattern, Graph) else symbolic_trace(pattern).graph


def _replace(
    gm: GraphModule, pattern: Any, replacement: Any, filters: Any = (),
    ignore_literals: bool = False, callback: Callable[..., Any] | None = None,
) -> list[ReplacedPatterns]:  # fmt: skip
    wanted = _graph_of(pattern)
    found = _Matcher(wanted, ignore_literals).search(gm)
    found = [m for m in found if all(f(m, gm.graph, wanted) for f in filters)]
    changed: dict[Node, Node] = {}  # where a later match begins with what an earlier one replaced
    result = []
    for match in found:
        new = _graph_of(callback(match, gm.graph, wanted) if callback else replacement)
        result.append(_put(gm, wanted, match, new, changed))
    gm.recompile()
    if isinstance(replacement, Module):
        _add_attributes(gm, replacement)
    return result


class _Matcher:
    def __init__(self, pattern: Graph, ignore_literals: bool) -> None:
        self.pattern, self.ignore_literals = pattern, ignore_literals
        self.placeholders = [n for n in pattern.nodes if n.op == "placeholder"]
        output = pattern.output_node().args[0]
        self.results: list[Node] = []
        map_arg(output, self.results.append)
        if not self.results:
            raise ValueError("the pattern gives nothing that could be looked for")

    def search(self, gm: GraphModule) -> list[Match]:
        """The places, first ones first, none that overlaps an earlier one."""
        self.gm = gm
        anchor = self.results[0]
        matches, taken = [], set[Node]()
        for node in gm.graph.nodes:
            nodes_map: dict[Node, Node] = {}
            if not self._matches(anchor, node, nodes_map):
                continue
            if not self._other_results(nodes_map) or not self._closed(nodes_map):
                continue
            inner = {g for p, g in nodes_map.items() if p.op not in ("placeholder", "output")}
            if not inner & taken:
                taken |= inner
                matches.append(Match(node, nodes_map))
        return matches

    def _other_results(self, nodes_map: dict[Node, Node]) -> bool:
        """Are the pattern's other results there, too?"""
        for result in self.results[1:]:
            if result not in nodes_map and not any(
                self._matches(result, node, nodes_map) for node in self.gm.graph.nodes
            ):
                return False
        return True

    def _closed(self, nodes_map: dict[Node, Node]) -> bool:
        """Does nobody else use what is computed between?"""
        inside = set(nodes_map.values())
        for p, g in nodes_map.items():
            inner = p.op not in ("placeholder", "get_attr") and p not in self.results
            if inner and any(user not in inside for user in g.users):
                return False
        return True

    def _matches(self, p: Any, g: Any, nodes_map: dict[Node, Node]) -> bool:
        if not isinstance(p, Node) or not isinstance(g, Node):
            if isinstance(p, Node):
                return p.op == "placeholder" and self._bind(p, g, nodes_map)
            return not isinstance(g, Node) and self._same_value(p, g, nodes_map)
        if p in nodes_map:
            return nodes_map[p] is g
        if p.op == "placeholder":
            nodes_map[p] = g
            return True
        if p.op != g.op or not self._same_target(p, g) or g in nodes_map.values():
            return False
        before = dict(nodes_map)
        nodes_map[p] = g
        if len(p.args) == len(g.args) and set(p.kwargs) == set(g.kwargs):
            pairs = [*zip(p.args, g.args, strict=True)]
            pairs += [(p.kwargs[name], g.kwargs[name]) for name in p.kwargs]
            if all(self._matches(a, b, nodes_map) for a, b in pairs):
                return True
        nodes_map.clear()
        nodes_map.update(before)
        return False

    def _bind(self, p: Node, value: Any, nodes_map: dict[Node, Any]) -> bool:
        if p in nodes_map:
            return bool(nodes_map[p] == value)
        nodes_map[p] = value
        return True

    def _same_value(self, p: Any, g: Any, nodes_map: dict[Node, Node]) -> bool:
        if isinstance(p, (tuple, list)) and isinstance(g, (tuple, list)):
            return len(p) == len(g) and all(
                self._matches(a, b, nodes_map) for a, b in zip(p, g, strict=True)
            )
        if isinstance(p, slice) and isinstance(g, slice):
            return self._same_value((p.start, p.stop, p.step), (g.start, g.stop, g.step), nodes_map)
        return self.ignore_literals or (type(p) is type(g) and bool(p == g))

    def _same_target(self, p: Node, g: Node) -> bool:
        if p.op not in ("call_module", "get_attr"):
            return bool(p.target == g.target)
        owner = p.graph.owning_module
        if owner is None:
            return bool(p.target.rpartition(".")[2] == g.target.rpartition(".")[2])
        return type(_at(owner, p.target)) is type(_at(self.gm, g.target))


def _at(module: Any, target: str) -> Any:
    for atom in target.split("."):
        module = getattr(module, atom, None)
    return module


def _put(
    gm: GraphModule, pattern: Graph, match: Match, new: Graph, changed: dict[Node, Node]
) -> ReplacedPatterns:
    """Puts a copy of a graph in the place of a match."""
    placeholders = [n for n in pattern.nodes if n.op == "placeholder"]
    own = [n for n in new.nodes if n.op == "placeholder"]
    if len(placeholders) != len(own):
        raise AssertionError("the pattern and the replacement differ in the number of arguments")
    values: dict[Node, Any] = {}
    for mine, theirs in zip(own, placeholders, strict=True):
        value = match.nodes_map.get(theirs)
        values[mine] = changed.get(value, value) if isinstance(value, Node) else value
    inner = [match.nodes_map[p] for p in pattern.nodes
             if p.op not in ("placeholder", "output") and p in match.nodes_map]  # fmt: skip
    order = {node: k for k, node in enumerate(gm.graph.nodes)}
    first_user = min(
        [u for node in inner for u in node.users if u not in inner] or [match.anchor.next],
        key=lambda n: order.get(n, len(order)),
    )
    copied: list[Node] = []
    with gm.graph.inserting_before(first_user):
        result: Any = None
        for node in new.nodes:
            if node.op == "placeholder":
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: values[n])
                break
            values[node] = gm.graph.node_copy(node, lambda n: values[n])
            copied.append(values[node])
    olds: list[Node] = []
    map_arg(pattern.output_node().args[0], lambda p: olds.append(match.nodes_map[p]))
    news: list[Any] = list(result) if isinstance(result, (tuple, list)) else [result]
    for old, made in zip(olds, news, strict=True):
        old.replace_all_uses_with(made)
        changed[old] = made
    for node in sorted(inner, key=lambda n: order[n], reverse=True):
        if not node.users:
            gm.graph.erase_node(node)
    return ReplacedPatterns(match.anchor, match.nodes_map, copied)


def _add_attributes(gm: GraphModule, replacement: Module) -> None:
    """Puts the replacement's modules and tensors on the module whose graph now names them."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr") and _at(gm, node.target) is None:
            if _at(replacement, node.target) is None:
                raise RuntimeError(
                    "Attempted to create a `get_attr` or `call_module` node during subgraph "
                    f"rewriting with target {node.target}, but the referenced attribute does not "
                    "exist in either the original GraphModule `gm` or the replacement GraphModule "
                    "`replacement`"
                )
            _copy_attr(replacement, gm, node.target)
    gm.graph.lint()


explain_missing("torch.fx.subgraph_rewriter", globals())
