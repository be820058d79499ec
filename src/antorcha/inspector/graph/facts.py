"""What is known of an autograd graph: its operations and leaves, read once, newest first.

Nothing is run but a norm of small gradients, nothing is written, no tensor is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from antorcha.autograd.origin import ModuleCall, Origin, SourceLine
from antorcha.core.device import backend
from antorcha.core.lazy import np
from antorcha.inspector.forms import shape_text
from antorcha.inspector.graph.words import GraphWords
from antorcha.inspector.naming import field as field_of
from antorcha.inspector.naming import named_in_module, named_tensors
from antorcha.inspector.numbers import memory_size
from antorcha.runtime.call.node import RELEASED, Edge, Node, edge_of
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Parameter, Tensor

MOST = 20_000  # operations read
_NORM = 1_000_000  # elements of a gradient whose norm is taken


@dataclass
class Saved:
    """A value that an operation keeps for its derivative. `state`: "kept", "packed" (by the user's
    hooks), "overwritten" (written to since: backward would refuse) or "freed"."""

    name: str
    shape: tuple[int, ...] | None
    dtype: str
    nbytes: int
    state: str

    def told(self, say: GraphWords) -> str:
        """Name, shape and, where it is not simply kept, the state."""
        shape = "" if self.shape is None else f" {shape_text(self.shape)}"
        state = "" if self.state == "kept" else f" ({say(f'state {self.state}')})"
        return self.name + shape + state

    def __str__(self) -> str:
        return self.told(GraphWords())


@dataclass
class OperandSource:
    """Where an operand comes from: result `result` of an operation, or a leaf, by its number."""

    kind: str  # "operation" or "leaf"
    index: int
    result: int = 0


@dataclass
class OperationResult:
    """What an operation made. `names`: the caller's variables that hold it; `gradient`: what
    backward has left there, where ``retain_grad`` was asked."""

    shape: tuple[int, ...]
    dtype: str
    names: list[str] = field(default_factory=list)
    gradient: str = ""


@dataclass
class Operation:
    """A node of the graph."""

    index: int
    name: str
    sequence: int
    results: list[OperationResult]
    operands: list[OperandSource | None] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    line: SourceLine | None = None
    lines: tuple[SourceLine, ...] = ()
    calls: tuple[ModuleCall, ...] = ()


@dataclass
class GraphLeaf:
    """A tensor whose gradient is collected."""

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    parameter: bool
    gradient: str  # what has been collected; empty where there is none


@dataclass
class GraphFacts:
    """A graph. `operations` are in the order in which they ran; `more`: older ones exist, which
    were not read."""

    operations: list[Operation]
    leaves: list[GraphLeaf]
    roots: list[OperandSource]
    root_names: list[str]
    more: bool
    recorded: bool  # does any operation know its line?
    freed: bool  # has backward freed what was kept?
    saved_bytes: int  # kept for backward: of each memory once, without that of the leaves
    say: GraphWords = field(default_factory=GraphWords)  # the words that it is told with


def read(
    roots: Sequence[Tensor],
    names: Mapping[str, Tensor],
    model: Any,
    variables: Mapping[str, Any],
    most: int = MOST,
) -> GraphFacts:
    """Reads the graph that leads to the roots."""
    edges = [edge_of(root) for root in roots]
    reader = _GraphReader(most)
    for edge in edges:
        reader.see(edge)
    reader.run()
    reader.give_names(names.items())
    if model is not None:
        reader.give_names(named_in_module("", model))
    reader.give_names(named_tensors(variables))
    return reader.facts(edges, roots, names, variables)


class _GraphReader:
    def __init__(self, most: int) -> None:
        self.most = most
        self.heap: list[tuple[int, Node]] = []
        self.nodes: dict[Node, Operation] = {}
        self.leaves: dict[int, tuple[Tensor, GraphLeaf]] = {}
        self.more = False

    def see(self, edge: Edge) -> None:
        node = edge[0] if type(edge) is tuple else edge
        if isinstance(node, Node):
            if node not in self.nodes:
                self.nodes[node] = Operation(0, "", node.seq, [])
                heappush(self.heap, (-node.seq, node))
        elif node is not None and id(node) not in self.leaves:
            layout = node._layout
            leaf = GraphLeaf(
                0, "", tuple(layout.shape), layout.dtype.name, str(layout.device),
                isinstance(node, Parameter), gradient_text(node._grad),
            )  # fmt: skip
            self.leaves[id(node)] = (node, leaf)

    def run(self) -> None:
        """Takes nodes newest first, so that what is left out of a long graph is its beginning."""
        taken = 0
        while self.heap:
            if taken == self.most:
                self.more = True
                for _, node in self.heap:
                    del self.nodes[node]
                break
            taken += 1
            node = heappop(self.heap)[1]
            for edge in node.edges:
                self.see(edge)
            describe(self.nodes[node], node)

    def source(self, edge: Edge) -> OperandSource | None:
        """Where an edge leads, by number."""
        node, result = edge if type(edge) is tuple else (edge, 0)
        if node is None:
            return None
        if isinstance(node, Node):
            found = self.nodes.get(node)
            return None if found is None else OperandSource("operation", found.index, result)
        return OperandSource("leaf", self.leaves[id(node)][1].index)

    def _saved_bytes(self) -> int:
        mine = {id(leaf._storage) for leaf, _ in self.leaves.values()}
        found: dict[int, int] = {}
        for node in self.nodes:
            for item in node.saved if isinstance(node.saved, (list, tuple)) else ():
                kept = getattr(item, "item", item)
                if type(kept) is tuple and len(kept) == 4 and id(kept[1]) not in mine:
                    found[id(kept[1])] = kept[1].nbytes
        return sum(found.values())

    def give_names(self, named: Iterable[tuple[str, Any]]) -> None:
        """Names leaves, each by the first name it gets, and results, by all their variables; by
        the way through a list, a module or the like where they have no other name."""
        for name, tensor in named:
            known = self.leaves.get(id(tensor))
            if known is not None:
                known[1].name = known[1].name or name
                continue
            node, place = field_of(tensor, "_fn"), field_of(tensor, "_nr")
            if node in self.nodes:
                results = self.nodes[node].results
                have = results[place].names if place < len(results) else [name]
                if name not in have and (name.isidentifier() or not have):
                    have.append(name)

    def facts(
        self, edges: list[Edge], roots: Sequence[Tensor], *named: Mapping[str, Any]
    ) -> GraphFacts:
        operations = sorted(self.nodes.values(), key=lambda op: op.sequence)
        for index, op in enumerate(operations):
            op.index = index
        leaves = [leaf for _, leaf in reversed(self.leaves.values())]
        for index, leaf in enumerate(leaves):
            leaf.index = index
        for node, op in self.nodes.items():
            op.operands = [self.source(edge) for edge in node.edges]
        _name_the_nameless(leaves)
        sources = [found for found in map(self.source, edges) if found is not None]
        return GraphFacts(
            operations, leaves, sources, [_name_of(root, named) for root in roots], self.more,
            any(op.line is not None for op in operations),
            any(s.state == "freed" for op in operations for s in op.saved), self._saved_bytes(),
        )  # fmt: skip


def _name_the_nameless(leaves: list[GraphLeaf]) -> None:
    """A leaf without a name is told by what it is."""
    for leaf in leaves:
        if not leaf.name:
            leaf.name = "(a parameter)" if leaf.parameter else "(a tensor)"


def _name_of(tensor: Tensor, named: Sequence[Mapping[str, Any]]) -> str:
    for names in named:
        for name, value in names.items():
            if value is tensor:
                return name
    return ""


# ------------------------------------------------------------------------------------- one node
def describe(op: Operation, node: Node) -> None:
    """Fills in what a node says of itself."""
    op.name = str(node.op.node_name)
    plan = node.plan
    outs: tuple[Layout | None, ...] = plan.outs if plan is not None else ()
    op.results = [
        OperationResult((), "none") if layout is None
        else OperationResult(tuple(layout.shape), layout.dtype.name)
        for layout in outs
    ]  # fmt: skip
    if isinstance(node.stack, Origin):
        op.lines, op.calls = node.stack.lines, node.stack.calls
        op.line = op.lines[-1] if op.lines else None
    if node.hooks is not None:
        for k, ref in node.hooks.retains.items():
            tensor = ref()
            if tensor is not None and k < len(op.results):
                op.results[k].gradient = gradient_text(tensor._grad)
    op.saved = saved_of(node)
    if plan is not None:
        op.settings = {
            name: text for name, value in plan.statics.items() if (text := _setting(value))
        }


def _setting(value: Any) -> str:
    """An argument that is no tensor, where its text is short."""
    if type(value) not in (int, float, bool, str, tuple, list) or value in ((), []):
        return ""
    text = repr(value)
    return text if len(text) <= 24 else ""


def saved_of(node: Node) -> list[Saved]:
    """What a node keeps, with the names of the op's own arguments."""
    plan, kept = node.plan, node.saved
    if plan is None or not kept:
        return []
    places = plan.keeps.get(node.mask, ())
    if kept is RELEASED:
        return [_freed(plan, place) for place in sorted(places, key=_rank)] or [
            Saved("values", None, "", 0, "freed")
        ]
    found = []
    for k, item in enumerate(kept):
        place = places[k] if k < len(places) else None
        if item is not None:
            saved = _saved(_name_at(plan, place, k), item, _layout_at(plan, place))
            found.append((_rank(k if place is None else place), saved))
    return [saved for _, saved in sorted(found, key=lambda pair: pair[0])]


def _rank(place: int) -> tuple[bool, int]:
    """Operands in their order, then results."""
    return place < 0, abs(place)


def _saved(name: str, item: Any, layout: Layout | None) -> Saved:
    item = getattr(item, "item", item)  # of a custom function: see autograd.function.Kept
    if isinstance(item, Node):
        return Saved(f"the write, {item.op.node_name}", None, "", 0, "kept")
    if type(item) is tuple and len(item) == 4:
        layout, storage, _, version = item
        state = "kept" if storage.version == version else "overwritten"
    else:
        state = "packed"
    if layout is None:
        return Saved(name, None, "", 0, state)
    return Saved(
        name, tuple(layout.shape), layout.dtype.name, layout.numel * layout.itemsize, state
    )


def _freed(plan: Any, place: int) -> Saved:
    layout = _layout_at(plan, place)
    name = _name_at(plan, place, place)
    if layout is None:
        return Saved(name, None, "", 0, "freed")
    return Saved(
        name, tuple(layout.shape), layout.dtype.name, layout.numel * layout.itemsize, "freed"
    )


def _name_at(plan: Any, place: int | None, k: int) -> str:
    """The name of the operand (or, below 0, the result) at a place."""
    if place is None:
        return f"saved {k}"
    if place < 0:
        return "result" if len(plan.outs) == 1 else f"result {-1 - place}"
    signature = getattr(plan.op, "signature", None)
    operands = [p.name for p in signature.params if p.code < 3] if signature is not None else []
    return operands[place] if place < len(operands) else f"operand {place}"


def _layout_at(plan: Any, place: int | None) -> Layout | None:
    if place is None:
        return None
    layouts = plan.outs if place < 0 else plan.tensors
    at = -1 - place if place < 0 else place
    return layouts[at] if at < len(layouts) else None


def gradient_text(grad: Tensor | None) -> str:
    """A gradient in a few words: the number, or the norm where there are not too many of them."""
    if grad is None:
        return ""
    layout = grad._layout
    if layout.device.type == "meta" or not layout.numel:
        return shape_text(layout.shape)
    if layout.numel > _NORM:
        return f"{shape_text(layout.shape)}, {memory_size(layout.numel * layout.itemsize)}"
    try:
        array = backend(layout.device).to_host(layout, grad._storage, grad._offset)
        size = np.abs(array.astype(np.complex128 if layout.dtype.kind == "c" else np.float64))
        if layout.numel == 1 and layout.dtype.kind != "c":
            return f"{float(array.reshape(())):.4g}"
        return f"norm {float(np.sqrt((size * size).sum())):.4g}"
    except Exception:  # its memory was given back
        return shape_text(layout.shape)
