"""The backward engine: walks a graph from its roots and adds gradients up at its leaves.

It knows nodes, never ops: a node's rule gives the gradient of each operand, and the node's edges say
where each goes. Nodes are taken from a heap, newest first; an edge always leads to an older node, so
every contribution to a node has arrived when its turn comes. The walk is a loop: a chain of 200,000
operations needs no stack. Leaves get their sums at the end, all of them or, after an error, none.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from antorcha import modes
from antorcha.errors import GraphError, ShapeError
from antorcha.ops.derive import in_grad_mode
from antorcha.ops.record import T
from antorcha.runtime.call import path
from antorcha.runtime.call.node import RELEASED, Edge, Node, edge_of
from antorcha.runtime.layout import same
from antorcha.runtime.tensor import Tensor, bare
from antorcha.shapes import is_dense

_accumulating = threading.RLock()
check_nan: Callable[[Node, Any], None] | None = None  # set by anomaly mode


class NodeHooks:
    """The hooks of a node: on its results' gradients, and around its own run."""

    __slots__ = ("post", "pre", "retains", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, dict[int, Any]] = {}  # result -> Tensor.register_hook hooks
        self.retains: dict[int, Any] = {}  # result -> weakref of a tensor that retains its grad
        self.pre: dict[int, Any] = {}
        self.post: dict[int, Any] = {}


def backward(
    roots: Sequence[Tensor],
    seeds: Sequence[Tensor | None],
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Tensor] | None = None,
) -> None:
    """Adds the gradients of the roots to the leaves (or to ``inputs`` only)."""
    word = in_grad_mode(create_graph)
    try:
        walk = Walk(retain_graph, create_graph)
        walk.start(roots, seeds)
        if inputs is not None:
            walk.limit_to([_target(t) for t in inputs])
        walk.run()
        walk.deliver(None if inputs is None else inputs)
    finally:
        modes.set_word(word)


def gradients(
    roots: Sequence[Tensor],
    seeds: Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    retain_graph: bool,
    create_graph: bool,
) -> list[Tensor | None]:
    """The gradients of the roots with respect to ``inputs``; the leaves' ``grad`` stays."""
    word = in_grad_mode(create_graph)
    try:
        walk = Walk(retain_graph, create_graph)
        walk.start(roots, seeds)
        targets = [_target(t) for t in inputs]
        walk.limit_to(targets)
        walk.run()
        return [walk.captured(t) for t in targets]
    finally:
        modes.set_word(word)


def _target(tensor: Tensor) -> Edge:
    edge = edge_of(tensor)
    if edge is None:
        raise GraphError(
            "One of the differentiated Tensors does not require grad: set requires_grad=True on it "
            "before it is used."
        )
    return edge


class Walk:
    """One pass over a graph."""

    __slots__ = ("create", "heap", "keep", "leaves", "needed", "pending", "wanted")

    def __init__(self, keep: bool, create: bool) -> None:
        self.keep, self.create = keep, create
        self.heap: list[tuple[int, Node]] = []
        self.pending: dict[Node, Any] = {}  # a gradient, or a list of them for several results
        self.leaves: dict[int, list[Any]] = {}  # id -> [leaf, sum of gradients]
        self.needed: set[Node] | None = None  # when limited: the nodes worth running
        self.wanted: dict[Any, Tensor | None] = {}  # (node, k) or leaf id -> captured

    def start(self, roots: Sequence[Tensor], seeds: Sequence[Tensor | None]) -> None:
        for root, seed in zip(roots, seeds, strict=True):
            edge = edge_of(root)
            if edge is None:
                raise GraphError(
                    "element 0 of tensors does not require grad and does not have a grad_fn: none "
                    "of what it was computed from has requires_grad=True (or it was computed under "
                    "torch.no_grad())."
                )
            self.add(edge, first_gradient(root, seed))

    def add(self, edge: Edge, g: Tensor) -> None:
        """Brings a gradient to where an edge leads."""
        nr = 0
        if type(edge) is tuple:
            edge, nr = edge
        if type(edge) is not Node:
            entry = self.leaves.get(id(edge))
            if entry is None:
                self.leaves[id(edge)] = [edge, g]
            else:
                entry[1] = T.add(entry[1], g) if self.create else sum_of(entry[1], g)
            return
        have = self.pending.get(edge)
        if have is None:
            heappush(self.heap, (-edge.seq, edge))
            if nr == 0:
                self.pending[edge] = g
                return
            self.pending[edge] = have = {}
        elif type(have) is not dict:
            if nr == 0:
                self.pending[edge] = T.add(have, g) if self.create else sum_of(have, g)
                return
            self.pending[edge] = have = {0: have}
        old = have.get(nr)
        have[nr] = g if old is None else T.add(old, g)

    def limit_to(self, targets: Sequence[Edge]) -> None:
        """Runs only what leads to the targets, and captures what arrives there."""
        goals: set[Any] = set()
        for target in targets:
            key = _key(target)
            self.wanted[key] = None
            goals.add(key[0] if isinstance(key, tuple) else key)
        leads: dict[Node, bool] = {}
        stack = [node for _, node in self.heap]
        order: list[Node] = []
        seen: set[Node] = set(stack)
        while stack:
            node = stack.pop()
            order.append(node)
            for edge in node.edges:
                target = edge[0] if type(edge) is tuple else edge
                if type(target) is Node and target not in seen:
                    seen.add(target)
                    stack.append(target)
        for node in sorted(order, key=lambda n: n.seq):
            leads[node] = any(
                [
                    (target in goals or leads[target])
                    if type(target) is Node
                    else target is not None and id(target) in goals
                    for target in [e[0] if type(e) is tuple else e for e in node.edges]
                ]
            )
        self.needed = {node for node, useful in leads.items() if useful}

    def run(self) -> None:
        heap, pending, needed = self.heap, self.pending, self.needed
        keep, create, add = self.keep, self.create, self.add
        while heap:
            node = heappop(heap)[1]
            grads = pending.pop(node)
            if type(grads) is dict:
                grads = [grads.get(k) for k in range(max(grads) + 1)]
                count = len(node.plan.outs) if node.plan is not None else len(grads)
                grads += [None] * (count - len(grads))
            elif node.plan is not None and len(node.plan.outs) > 1:
                grads = [grads] + [None] * (len(node.plan.outs) - 1)
            else:
                grads = [grads]
            hooks = node.hooks
            if hooks is not None:
                grads = run_hooks(node, hooks, grads)
            if needed is not None:
                self.capture(node, grads)
                if node not in needed:
                    continue
            results = node.op.rule.backward(node, grads, create)
            if not keep and node.saved:
                node.saved = RELEASED
            if hooks is not None and hooks.post:
                results = run_post_hooks(hooks, results, grads)
            if check_nan is not None:
                check_nan(node, results)
            for edge, g in zip(node.edges, results, strict=True):
                if edge is not None and g is not None:
                    add(edge, g)
            results = grads = g = None  # a gradient with no other owner may be taken, not copied

    def capture(self, node: Node, grads: Sequence[Tensor | None]) -> None:
        for k, g in enumerate(grads):
            if (node, k) in self.wanted:
                self.wanted[node, k] = g

    def captured(self, target: Edge) -> Tensor | None:
        key = _key(target)
        if isinstance(key, tuple):
            return self.wanted[key]
        entry = self.leaves.get(key)
        if entry is None:
            return None
        return leaf_hooks(entry[0], entry[1])

    def deliver(self, only: Sequence[Tensor] | None) -> None:
        """Adds the sums to the leaves."""
        if only is not None:
            for t in only:
                edge = edge_of(t)
                key = _key(edge)
                if isinstance(key, tuple) and self.wanted.get(key) is not None:
                    accumulate(t, self.wanted[key], self.create)  # type: ignore[arg-type]
            allowed = {id(t) for t in only}
        for key in list(self.leaves):
            leaf, g = self.leaves.pop(key)
            if only is not None and key not in allowed:
                continue
            extra = leaf._extra
            if extra is None:
                accumulate(leaf, g, self.create)
                continue
            g = leaf_hooks(leaf, g)
            accumulate(leaf, g, self.create)
            for hook in list((extra.accumulate_hooks or {}).values()):
                hook(leaf)


def _key(edge: Edge) -> Any:
    if type(edge) is tuple:
        return edge
    return (edge, 0) if type(edge) is Node else id(edge)


def first_gradient(root: Tensor, seed: Tensor | None) -> Tensor:
    """The gradient to start with: ones for a single number, else what the user gave."""
    lay = root._layout
    if seed is None:
        if lay.numel != 1:
            raise GraphError(
                "grad can be implicitly created only for scalar outputs: this one has shape "
                f"{tuple(lay.shape)}. Reduce it first (y.sum().backward()), or pass gradient=, a "
                "tensor of that shape."
            )
        if lay.dtype.kind not in "f":
            raise GraphError(
                f"grad can be implicitly created only for real scalar outputs but got {lay.dtype}"
            )
        return T.full_layout(tuple(lay.shape), 1, lay.dtype, lay.device)  # type: ignore[no-any-return]
    if not isinstance(seed, Tensor):
        raise GraphError(f"gradients must be Tensors or None, not {type(seed).__name__}")
    if seed._layout.shape != lay.shape:
        raise ShapeError(
            f"Mismatch in shape: grad_output has a shape of {tuple(seed._layout.shape)} and output "
            f"has a shape of {tuple(lay.shape)}."
        )
    if seed._layout.dtype is not lay.dtype:
        seed = T.to_dtype(seed, lay.dtype)
    return seed


_refs: Callable[[Any], int] = getattr(sys, "getrefcount", lambda _: 1 << 30)


def _own_refs() -> tuple[int, int]:
    """What getrefcount says, from inside ``accumulate``, of a gradient that nobody else holds."""

    def probe(g: Any, entry: Any) -> tuple[int, int]:
        return _refs(g), _refs(g._storage)

    class Box:
        __slots__ = ("_storage",)

    def make() -> Any:
        box = Box()
        box._storage = object()  # type: ignore[attr-defined]
        return [None, box]

    entry = make()
    _, g = entry
    entry = None
    return probe(g, None)


_OWN = _own_refs()


def sum_of(a: Tensor, b: Tensor) -> Tensor:
    """``a + b`` outside of any graph."""
    total: Tensor = path.run(T.add, (a, b), {}, False)
    return total


def accumulate(leaf: Tensor, g: Tensor, create: bool) -> None:
    """Adds a gradient to ``leaf.grad``."""
    with _accumulating:
        old = leaf._grad
        if old is None:
            lay, want = g._layout, leaf._layout
            fits = lay is want or same(lay, want) or (lay.contiguous and not _plain(want))
            if create and g._rg:
                leaf._grad = g if fits else T.clone(g)
            elif fits and _refs(g) <= _OWN[0] and _refs(g._storage) <= _OWN[1]:
                leaf._grad = g
            else:
                leaf._grad = copy_like(g, leaf)
        elif create:
            leaf._grad = T.add(old, g)
        else:
            path.run_inplace(T.add, (old, g), {}, False)


def _plain(lay: Any) -> bool:
    return bool(is_dense(lay.shape, lay.strides))


def copy_like(g: Tensor, leaf: Tensor) -> Tensor:
    """A copy of the gradient that lies as the leaf does."""
    lay = leaf._layout
    if lay.contiguous or not _plain(lay):
        copied: Tensor = path.run(T.clone, (g,), {"memory_format": "contiguous"}, False)
        return copied
    from antorcha.device import backend

    made = bare(lay, backend(lay.device).allocate(lay.nbytes))
    path.run_inplace(T.copy, (made, g), {}, False)
    made._storage.version = 0
    return made


# --------------------------------------------------------------------------------------- hooks
def checked(name: str, old: Tensor | None, made: Any) -> Tensor | None:
    """What a hook returned, if it may replace the gradient."""
    if made is None:
        return old
    if not isinstance(made, Tensor):
        raise TypeError(f"{name}: hook returned {type(made).__name__}, not a Tensor or None")
    if old is not None and made._layout.shape != old._layout.shape:
        raise ShapeError(
            f"{name}: hook has changed the size of value: {tuple(old._layout.shape)} became "
            f"{tuple(made._layout.shape)}"
        )
    return made


def run_hooks(node: Node, hooks: NodeHooks, grads: list[Any]) -> list[Any]:
    for k, table in hooks.tensor.items():
        for hook in list(table.values()):
            if k < len(grads) and grads[k] is not None:
                grads[k] = checked(node.op.node_name, grads[k], hook(grads[k]))
    for hook in list(hooks.pre.values()):
        made = hook(tuple(grads))
        if made is not None:
            grads = list(made) if isinstance(made, tuple) else [made]
    for k, ref in hooks.retains.items():
        tensor = ref()
        if tensor is not None and k < len(grads) and grads[k] is not None:
            old = tensor._grad
            tensor._grad = grads[k] if old is None else T.add(old, grads[k])
    return grads


def run_post_hooks(hooks: NodeHooks, results: Any, grads: list[Any]) -> Any:
    for hook in list(hooks.post.values()):
        made = hook(tuple(results), tuple(grads))
        if made is not None:
            results = made if isinstance(made, (tuple, list)) else (made,)
    return results


def leaf_hooks(leaf: Tensor, g: Tensor) -> Tensor:
    extra = leaf._extra
    if extra is not None and extra.hooks:
        for hook in list(extra.hooks.values()):
            g = checked("Tensor hook", g, hook(g))  # type: ignore[assignment]
    return g
