"""A graph as boxes in boxes: operations inside of the calls of modules that made them.

Every edge is split where it crosses the border of a group: at the outer level it ends at the
group's box, inside it begins at a port on the border.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from antorcha.inspector.graph.facts import GraphFacts, OperandSource, Operation
from antorcha.inspector.graph.layered import Cycle, Edge, GraphBox, layers_of

Item = tuple[Any, ...]
"""("operation", index), ("leaf", index), ("group", serial), ("in", source) or ("out", source)."""
Link = tuple[Item, Item, Any]
"""From an item to an item: the value that flows, as (kind, index, result)."""
TOP = 0  # the outermost level; the serials of calls begin at 1


@dataclass
class Group:
    """One call of a module. `path`: the module's dotted name in its model."""

    serial: int
    parent: int
    depth: int
    path: str
    kind: str
    module: int = 0  # its id, to tell calls of one module
    nth: int = 1  # which call of this module
    of: int = 1  # how many calls of it there are
    items: list[Item] = field(default_factory=list)
    links: dict[Link, None] = field(default_factory=dict)  # in order, each once
    operations: int = 0  # in it and in its groups
    first: int = 0  # the index of the first
    results: dict[Any, None] = field(default_factory=dict)  # what is used outside
    short: str = ""  # the last part of the path

    @property
    def title(self) -> str:
        """Its name, and which call it is where there are several."""
        name = self.short or self.path or self.kind
        return name if self.of == 1 else f"{name} (call {self.nth} of {self.of})"


class Nest:
    """The groups of a graph, by serial; ``groups[TOP]`` is the outermost level."""

    def __init__(self, facts: GraphFacts, model: Any, flat: bool = False) -> None:
        self.facts = facts
        self.groups: dict[int, Group] = {TOP: Group(TOP, TOP, 0, "", "")}
        self.chains: list[tuple[int, ...]] = []  # of each operation, outermost first
        names: dict[int, str] = {}
        for op in facts.operations:
            calls = () if flat else op.calls
            self.chains.append((TOP, *[call.serial for call in calls]))
            for depth, call in enumerate(calls):
                if call.serial not in self.groups:
                    self._open(call, self.chains[-1][depth], depth + 1, model, names)
            self._count(op)
        self._number_calls()
        self._place_leaves()
        for op in facts.operations:
            self.groups[self.chains[op.index][-1]].items.append(("operation", op.index))
        for serial, group in self.groups.items():
            if serial != TOP:
                self.groups[group.parent].items.append(("group", serial))
        self._link()

    def _open(self, call: Any, parent: int, depth: int, model: Any, names: dict[int, str]) -> None:
        module = call.module()
        kind = "module" if module is None else type(module).__name__
        if module is not None and id(module) not in names:
            for owner in (model, module) if depth == 1 else (model,):
                _note_names(owner, names)
            names.setdefault(id(module), "")
        path = names.get(id(module), "") if module is not None else ""
        above = self.groups[parent].path
        short = path[len(above) + 1 :] if above and path.startswith(above + ".") else path
        known = 0 if module is None else id(module)
        self.groups[call.serial] = Group(call.serial, parent, depth, path, kind, known, short=short)

    def _count(self, op: Operation) -> None:
        for serial in self.chains[op.index]:
            group = self.groups[serial]
            group.first = group.first if group.operations else op.index
            group.operations += 1

    def _number_calls(self) -> None:
        """Calls of one module inside of one call are told apart by number."""
        same = defaultdict(list)
        for group in self.groups.values():
            if group.module:
                same[group.parent, group.module].append(group)
        for groups in same.values():
            for nth, group in enumerate(groups):
                group.nth, group.of = nth + 1, len(groups)

    def _place_leaves(self) -> None:
        """A parameter stands in the innermost group that has all its uses; other leaves outside."""
        self.leaf_chains: list[tuple[int, ...]] = [(TOP,)] * len(self.facts.leaves)
        uses: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        for op in self.facts.operations:
            for source in op.operands:
                if source is not None and source.kind == "leaf":
                    uses[source.index].append(self.chains[op.index])
        for leaf in self.facts.leaves:
            chains = uses.get(leaf.index)
            if chains and leaf.parameter:
                self.leaf_chains[leaf.index] = _common(chains)
            self.groups[self.leaf_chains[leaf.index][-1]].items.append(("leaf", leaf.index))

    def _link(self) -> None:
        for op in self.facts.operations:
            target: Item = ("operation", op.index)
            for source in op.operands:
                if source is not None:
                    self._link_one(source, target, self.chains[op.index])

    def _link_one(self, source: OperandSource, target: Item, inner: tuple[int, ...]) -> None:
        value = (source.kind, source.index, source.result)
        chains = self.chains if source.kind == "operation" else self.leaf_chains
        outer = chains[source.index]
        shared = len(_common([outer, inner]))
        tail: Item = (source.kind, source.index)
        for serial in reversed(outer[shared:]):  # out of the source's groups
            group = self.groups[serial]
            group.links[tail, ("out", value), value] = None
            group.results[value] = None
            tail = ("group", serial)
        head = target
        for serial in reversed(inner[shared:]):  # into the target's groups
            self.groups[serial].links[("in", value), head, value] = None
            head = ("group", serial)
        self.groups[inner[shared - 1]].links[tail, head, value] = None

    def can_be_drawn(self) -> bool:
        """Does every edge lead onwards, at each level? (Not where operations of one call of a
        module wait for others outside, as they can between threads.)"""
        for group in self.groups.values():
            numbers: dict[Item, int] = {}
            edges = [
                Edge(numbers.setdefault(tail, len(numbers)), numbers.setdefault(head, len(numbers)))
                for tail, head, _ in group.links
            ]
            try:
                layers_of([GraphBox(0, 0) for _ in numbers], edges)
            except Cycle:
                return False
        return True

    # ------------------------------------------------------------------------------ what to show
    def opened(self, budget: int, inside: int = TOP, least: int = 1) -> set[int]:
        """Which groups to show open: the outermost ones, as long as there are not more boxes than
        `budget`; and no group with fewer than `least` operations."""
        found: set[int] = set()
        boxes = len(self.groups[inside].items)
        waiting = [inside]
        while waiting:
            below: list[int] = []
            for serial in waiting:
                for kind, child, *_ in self.groups[serial].items:
                    if kind == "group":
                        more = len(self.groups[child].items) - 1
                        if boxes + more <= budget and self.groups[child].operations >= least:
                            boxes += more
                            found.add(child)
                            below.append(child)
            waiting = below
        return found


def _common(chains: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The longest beginning that all have."""
    first = chains[0]
    length = min(map(len, chains))
    for chain in chains:
        while chain[:length] != first[:length]:
            length -= 1
    return first[:length]


def _note_names(owner: Any, names: dict[int, str]) -> None:
    """The dotted names of a module's parts."""
    if owner is not None:
        for name, module in owner.named_modules():
            names.setdefault(id(module), name)
