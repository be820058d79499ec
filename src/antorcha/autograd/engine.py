"""The backward engine: walks a graph from its roots and adds gradients up at its leaves.

It knows nodes, never ops: a node's rule gives the gradient of each operand, and the node's edges
say where each goes. Nodes are taken from a heap, newest first; an edge always leads to an older
node, so every contribution to a node has arrived when its turn comes. The walk is a loop: a chain
of 200,000 operations needs no stack. Leaves get their sums at the end, all of them or, after an
error, none.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from antorcha.autograd.accumulate import accumulate, plus, sum_of
from antorcha.autograd.hooks import (
    run_accumulated_hooks,
    run_leaf_hooks,
    run_post_hooks,
    run_pre_hooks,
    run_tensor_hooks,
)
from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError, DeviceError, GraphError, ShapeError
from antorcha.ops.kinds.derive import in_grad_mode, in_users_mode
from antorcha.ops.kinds.record import T
from antorcha.ops.kinds.replay import gradients_of
from antorcha.runtime.call.node import RELEASED, Edge, Node, edge_of
from antorcha.runtime.call.plan import remember, table
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Parameter, Tensor

native_path = lazy("antorcha.runtime.call.native")
native_nodes = lazy("antorcha.runtime.call.native.nodes")
replay_sizes = lazy("antorcha.ops.kinds.replay_sizes")


_here = contextlib.nullcontext()


def on_stream_of(roots: Sequence[Any]) -> Any:
    """A context for a pass: a device with streams works on the one that the first root was made on,
    so that the pass finds what the forward pass has left, whoever calls it."""
    if hooks.stream_of and roots and isinstance(roots[0], Tensor):
        enter = hooks.stream_of.get(roots[0]._layout.device.type)
        if enter is not None:
            return enter(roots[0])
    return _here


def backward(
    roots: Sequence[Any],
    seeds: Sequence[Tensor | None],
    retain_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] | None = None,
) -> None:
    """Adds the gradients of the roots to the leaves (or to ``inputs`` only)."""
    with on_stream_of(roots):
        plain = not modes.busy or modes.busy == modes.profiled  # the default mode is the right one
        if plain and inputs is None:
            native = None if create_graph else _native()
            if native is not None:
                rest = native(bool(retain_graph), *first_gradients(roots, seeds, False))
                if rest is None:
                    return
                walk = Walk(retain_graph, create_graph)
                walk.resume(*rest)
                del rest  # (a gradient with no other owner may be taken, not copied)
            else:
                walk = Walk(retain_graph, create_graph)
                walk.start(roots, seeds)
            walk.finish()
            return
        walk = Walk(retain_graph, create_graph)
        word = in_grad_mode(create_graph)
        try:
            walk.start(roots, seeds)
            if inputs is None:
                walk.run()
            else:
                walk.run_to([_target(t) for t in inputs])
            walk.deliver(inputs)
        finally:
            modes.set_word(word)


def backward_from(root: Tensor, keep: Any) -> bool:
    """The commonest ``backward``: from one number, no view, in the default mode, natively. False,
    and nothing done: it is another."""
    if modes.busy or not _engine or _engine[0] is None or _engine[1]:
        return False
    layout, fn = root._layout, root._fn
    if hooks.stream_of and layout.device.type in hooks.stream_of:
        return False
    if fn is None or root._base is not None or layout.numel != 1 or layout.dtype.kind != "f":
        return False
    rest = _engine[0](bool(keep), (fn, root._nr) if root._nr else fn, ones(layout))
    if rest is not None:
        walk = Walk(keep, False)
        walk.resume(*rest)
        del rest  # (a gradient with no other owner may be taken, not copied)
        walk.finish()
    return True


def gradients(
    roots: Sequence[Any],
    seeds: Sequence[Tensor | None],
    inputs: Sequence[Any],
    retain_graph: bool,
    create_graph: bool,
) -> list[Tensor | None]:
    """The gradients of the roots with respect to ``inputs``; the leaves' ``grad`` stays."""
    with on_stream_of(roots):
        word = in_grad_mode(create_graph)
        try:
            walk = Walk(retain_graph, create_graph)
            walk.start(roots, seeds)
            targets = [_target(t) for t in inputs]
            walk.run_to(targets)
            found = {_key(t): walk.captured(t) for t in targets}
            return [found[_key(t)] for t in targets]
        finally:
            modes.set_word(word)


def edge_to(root: Any) -> Edge:
    """Where gradients of a tensor, or of a GradientEdge, go."""
    return edge_of(root) if isinstance(root, Tensor) else root.edge


def _target(root: Any) -> Edge:
    edge = edge_to(root)
    if edge is None:
        raise GraphError(
            "One of the differentiated Tensors does not require grad: set requires_grad=True on it "
            "before it is used."
        )
    return edge


class _Running(threading.local):
    walk: Any = None
    limited: bool = False
    inside: bool = False


running = _Running()
"""Of this thread: ``walk``, the pass whose hooks run now; ``limited``, is it one to some inputs?
``inside``, does a pass run that is not the native engine's?"""


class Walk:
    """One pass over a graph."""

    needed: set[Node] | None = None  # when limited: the nodes worth running
    current: Node | None = None  # the last node with hooks
    reach: set[Any] | None = None  # the keys of every edge of the graph, once asked for

    def __init__(self, keep: bool, create: bool) -> None:
        self.keep, self.create = keep, create
        self.heap: list[tuple[int, Node]] = []
        self.pending: dict[Node, Any] = {}  # a gradient, or a dict of them for several results
        self.leaves: dict[int, list[Any]] = {}  # id -> [leaf, sum of gradients]
        self.wanted: dict[Any, Tensor | None] = {}  # (node, k) or leaf id -> captured

    def start(self, roots: Sequence[Any], seeds: Sequence[Tensor | None]) -> None:
        """Brings the first gradients to the roots."""
        flat = first_gradients(roots, seeds, self.create)
        flat.reverse()
        while flat:  # (a gradient with no other owner may be taken, not copied)
            edge, g = flat.pop(), flat.pop()
            self.add(edge, g)

    def resume(self, nodes: Any, leaves: Any, more: Any) -> None:
        """Takes over a pass of the native engine."""
        for node, grads in nodes:
            heappush(self.heap, (-node.seq, node))
            several = {k: g for k, g in enumerate(grads) if g is not None}
            self.pending[node] = several[0] if list(several) == [0] else several
        for leaf, g in leaves:
            self.leaves[id(leaf)] = [leaf, g]
        for edge, g in more:
            self.add(edge, g)

    def add(self, edge: Edge, g: Tensor) -> None:
        """Brings a gradient to where an edge leads."""
        nr = 0
        if type(edge) is tuple:
            edge, nr = edge
        if type(edge) is not Node and not isinstance(edge, Node):
            entry = self.leaves.get(id(edge))
            if entry is None:
                self.leaves[id(edge)] = [edge, g]
            else:
                entry[1] = plus(entry[1], g) if self.create else sum_of(entry[1], g)
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
                self.pending[edge] = plus(have, g) if self.create else sum_of(have, g)
                return
            self.pending[edge] = have = {0: have}
        old = have.get(nr)
        have[nr] = g if old is None else plus(old, g)

    def run_to(self, targets: Sequence[Edge]) -> None:
        """Runs what leads to the targets; a custom function may ask whether the pass is such."""
        self.limit_to(targets)
        before, running.limited = running.limited, True
        try:
            self.run()
        finally:
            running.limited = before

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
                if isinstance(target, Node) and target not in seen:
                    seen.add(target)
                    stack.append(target)
        for node in sorted(order, key=lambda n: n.seq):
            leads[node] = any(
                (target in goals or leads[target])
                if isinstance(target, Node)
                else target is not None and id(target) in goals
                for target in [e[0] if type(e) is tuple else e for e in node.edges]
            )
        self.needed = {node for node, useful in leads.items() if useful}

    def run(self) -> None:
        before, running.inside = running.inside, True
        try:
            self._run()
        finally:
            running.inside = before

    def _run(self) -> None:
        heap, pending, leaves = self.heap, self.pending, self.leaves
        keep, create, add = self.keep, self.create, self.add
        profiled = modes.busy and (modes.profiled or modes.state.word & modes.ANOMALY)
        special = bool(profiled or self.needed is not None)
        while heap:
            node = heappop(heap)[1]
            g = pending.pop(node)
            count = len(node.plan.outs)  # type: ignore[union-attr]
            if type(g) is dict:
                grads = [g.get(k) for k in range(count)]
            else:
                grads = [g] if count == 1 else [g] + [None] * (count - 1)
            if special or node.hooks is not None:
                results = self.run_special(node, grads, profiled)
                if results is None:
                    continue
            else:
                results = gradients_of(node, grads, create)
                if not keep and node.saved:
                    node.saved = RELEASED
            k = 0
            for edge in node.edges:  # (zip(strict=True) costs more than the rest of the loop)
                g = results[k]
                k += 1
                if edge is None or g is None:
                    continue
                kind = type(edge)
                if kind is Tensor or kind is Parameter:
                    if id(edge) not in leaves:
                        leaves[id(edge)] = [edge, g]
                        continue
                elif kind is Node and edge not in pending:
                    heappush(heap, (-edge.seq, edge))
                    pending[edge] = g
                    continue
                add(edge, g)
            results = g = None
            grads = []  # a gradient with no other owner may be taken, not copied

    def finish(self) -> None:
        self.run()
        self.deliver(None)

    def run_special(self, node: Node, grads: list[Any], profiled: int) -> Any:
        """Runs a node that has hooks, or in a pass that is limited or looked upon; None when the
        pass goes no further here."""
        hooks, needed = node.hooks, self.needed
        if hooks is not None:
            self.current = node
            self.with_hooks(run_tensor_hooks, hooks, grads)
        if needed is not None:
            self.capture(node, grads)
            if node not in needed:
                return None
        if hooks is not None and hooks.pre:
            grads = self.with_hooks(run_pre_hooks, hooks, grads)
        if profiled:
            results = profiled_backward(node, grads, self.create)
        else:
            results = gradients_of(node, grads, self.create)
        if not self.keep and node.saved:
            node.saved = RELEASED
        if hooks is not None and hooks.post:
            results = self.with_hooks(run_post_hooks, hooks, results, grads)
        return results

    def with_hooks(self, run: Callable[..., Any], *args: Any) -> Any:
        """Runs hooks, in their grad mode; they may want to know of what pass they are part."""
        before, running.walk = running.walk, self
        word = in_users_mode(self.create)
        try:
            return run(*args)
        finally:
            modes.set_word(word)
            running.walk = before

    def will_reach(self, edge: Edge) -> bool:
        """Does a gradient come, or has one come, along this edge?"""
        node = edge[0] if type(edge) is tuple else edge
        if self.needed is not None and node not in self.needed:
            ends = [key[0] if isinstance(key, tuple) else key for key in self.wanted]
            if node not in ends and id(node) not in ends:
                return False
        return node in self._reachable()

    def _reachable(self) -> set[Any]:
        if self.reach is None:
            self.reach = set()
            stack = [*self.pending, *[entry[0] for entry in self.leaves.values()]]
            stack += [self.current] if self.current is not None else []
            while stack:
                node = stack.pop()
                if node in self.reach:
                    continue
                self.reach.add(node)
                if isinstance(node, Node):
                    stack += [e[0] if type(e) is tuple else e for e in node.edges if e is not None]
        return self.reach

    def capture(self, node: Node, grads: Sequence[Tensor | None]) -> None:
        for k, g in enumerate(grads):
            if (node, k) in self.wanted:
                self.wanted[node, k] = g

    def captured(self, target: Edge) -> Tensor | None:
        """What has arrived at a target."""
        key = _key(target)
        if isinstance(key, tuple):
            return self.wanted[key]
        entry = self.leaves.get(key)
        return None if entry is None else self.with_hooks(run_leaf_hooks, *entry)

    def deliver(self, only: Sequence[Any] | None) -> None:
        """Adds the sums to the leaves: first every hook that may fail or change one, then all."""
        leaves: Any = self.leaves.values()
        if only is not None:
            targets = {_key(edge_to(t)): t for t in only}
            leaves = [entry for entry in leaves if id(entry[0]) in targets]
            for key, g in self.wanted.items():
                if isinstance(key, tuple) and g is not None and isinstance(targets[key], Tensor):
                    accumulate(targets[key], g, self.create)
        for entry in leaves:
            if entry[0]._extra is not None:
                entry[1] = self.with_hooks(run_leaf_hooks, *entry)
        for entry in leaves:
            leaf, g = entry
            entry[1] = None
            if modes.profiled:
                hooks.observe_block(
                    "torch::autograd::AccumulateGrad", accumulate, leaf, g, self.create
                )
            else:
                accumulate(leaf, g, self.create)
            if leaf._extra is not None:
                self.with_hooks(run_accumulated_hooks, leaf, g)


def profiled_backward(node: Node, grads: list[Any], create: bool) -> Any:
    """Runs a node where anomaly mode or a profiler looks on."""
    word = modes.state.word
    try:
        if modes.profiled:
            results = hooks.observe_node(node, gradients_of, node, grads, create)
        else:
            results = node.op.rule.backward(node, grads, create)
    except Exception:
        if word & modes.ANOMALY:
            hooks.tell_origin(node)
        raise
    if word & modes.ANOMALY:
        hooks.check_nan(node, results)
    return results


def _key(edge: Edge) -> Any:
    if type(edge) is tuple:
        return edge
    return (edge, 0) if isinstance(edge, Node) else id(edge)


def first_gradients(
    roots: Sequence[Any], seeds: Sequence[Tensor | None], create: bool
) -> list[Any]:
    """Where gradients of the roots go, each followed by the first that does."""
    flat: list[Any] = []
    for k, root in enumerate(roots):
        edge = edge_of(root) if isinstance(root, Tensor) else root.edge
        if edge is None:
            raise GraphError(
                "element {number} of tensors does not require grad and does not have a grad_fn: "
                "none of what it was computed from has requires_grad=True (or it was computed "
                "under torch.no_grad()).",
                reason="no graph", number=k,
            )  # fmt: skip
        flat += (edge, first_gradient(root, seeds[k], k, create))
    return flat


_engine: list[Any] = []  # once somebody has asked: the native engine, or None; the path's `offs`


def _native() -> Any:
    """The native engine's ``walk``; None where it does not run."""
    if not _engine:
        walk = native_path.engine(gradients_of, accumulate, sum_of)
        if walk is None and native_path.is_awaited():
            return None
        _engine.extend((walk, native_path.offs))
        if _engine[0] is not None:
            hooks.new_replay, hooks.meet_size = native_nodes.promote, replay_sizes.meet
            hooks.new_gradient_outline = native_nodes.promote_kind
    if _engine[0] is None or _engine[1]:
        return None
    return hooks.profiled_backward if modes.profiled else _engine[0]


def first_gradient(root: Any, seed: Tensor | None, position: int, create: bool) -> Tensor:
    """The gradient to start with: ones for a single number, else what the user gave."""
    layout = root._layout if isinstance(root, Tensor) else root.layout
    if seed is None:
        if layout.numel == 1 and layout.dtype.kind == "f":
            return ones(layout)
        if layout.numel != 1:
            raise GraphError(
                "grad can be implicitly created only for scalar outputs: this one has shape "
                "{0.shape}. Reduce it first ({fix}), or pass gradient=, a tensor of that shape.",
                reason="scalar", operands=(layout,), count=layout.numel, fix="y.sum().backward()",
            )  # fmt: skip
        raise GraphError(
            f"grad can be implicitly created only for real scalar outputs but got {layout.dtype}"
        )
    if not isinstance(seed, Tensor):
        raise ArgumentError(
            f"gradients can be either Tensors or None, but got {type(seed).__name__}"
        )
    if seed._layout.shape != layout.shape:
        raise ShapeError(
            "Mismatch in shape: grad_output[{number}] has a shape of {1.shape} and "
            "output[{number}] has a shape of {0.shape}.",
            reason="gradient shape", operands=(layout, seed._layout), number=position,
        )  # fmt: skip
    if (seed._layout.dtype.kind == "c") != (layout.dtype.kind == "c"):
        raise GraphError(
            "For complex Tensors, both grad_output and output are required to have the same dtype."
            f" Mismatch in dtype: grad_output[{position}] has a dtype of {seed._layout.dtype} and "
            f"output[{position}] has a dtype of {layout.dtype}."
        )
    if seed._layout.device is not layout.device and seed._layout.ndim:
        raise DeviceError(
            f"invalid gradient at index {position} - expected device {layout.device} but got "
            f"{seed._layout.device}"
        )
    if seed._rg and not create:
        seed = seed.detach()
    if seed._layout.device is not layout.device:
        seed = T.to_device(seed, layout.device)
    if seed._layout.dtype is not layout.dtype:
        seed = T.to_dtype(seed, layout.dtype)
    return seed


_ones = table()


def ones(layout: Layout) -> Tensor:
    """A tensor of ones, as the gradient of a number by itself."""
    plan = _ones.get(layout)
    if plan is None:
        args = (tuple(layout.shape), 1, layout.dtype, layout.device)
        plan = remember(
            _ones, layout, T.full_layout.make_plan(T.full_layout.bind(args, {})[4], None)
        )
    return plan.run(1)
