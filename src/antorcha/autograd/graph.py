"""``torch.autograd.graph``: nodes, gradient edges, hooks on several gradients and on saved tensors.

See https://docs.pytorch.org/docs/stable/autograd.html#autograd-graph.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from antorcha.autograd.engine import Walk, running
from antorcha.autograd.hooks import RemovableHandle
from antorcha.autograd.node import AccumulateGrad, shown
from antorcha.autograd.saved import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from antorcha.core.forks import held_over_forks
from antorcha.errors import GraphError, ValueRangeError, explain_missing
from antorcha.runtime.call.node import Edge, Node, edge_of
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
    "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu",
    "saved_tensors_hooks",
]  # fmt: skip


class _Edge(NamedTuple):
    node: Node
    output_nr: int
    ownership_token: Any = None


class GradientEdge(_Edge):
    """A place in the graph where a gradient arrives: result ``output_nr`` of ``node``.

    ``autograd.grad`` and ``autograd.backward`` take it where they take a tensor.
    """

    __slots__ = ()

    @property
    def edge(self) -> Edge:
        """The engine's form of it."""
        if isinstance(self.node, AccumulateGrad):
            return self.node.variable
        return (self.node, self.output_nr) if self.output_nr else self.node

    @property
    def layout(self) -> Layout:
        """How the tensor lies whose gradient it is."""
        if isinstance(self.node, AccumulateGrad):
            return self.node.variable._layout
        assert self.node.plan is not None
        return self.node.plan.outs[self.output_nr]


def get_gradient_edge(tensor: Tensor | GradientEdge) -> GradientEdge:
    """The edge of the graph to which a tensor's gradient goes."""
    if isinstance(tensor, GradientEdge):
        return tensor
    edge = edge_of(tensor)
    if edge is None:
        raise GraphError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    return GradientEdge(*shown(edge))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Says that a tensor was written to by something that autograd does not see."""
    for each in [tensor] if isinstance(tensor, Tensor) else tensor:
        each._storage.version += 1


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Calls ``fn`` when the gradients of several tensors are computed.

    ``mode="all"``: once a backward pass has computed all that it will, with a list of them (None
    where there is none); ``mode="any"``: with the first, ``fn(grad)``.
    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.register_multi_grad_hook.
    """
    if mode not in ("all", "any"):
        raise ValueRangeError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = held_over_forks(threading.Lock())
    passes: WeakKeyDictionary[Walk, _Seen] = WeakKeyDictionary()

    def hook_for(k: int) -> Callable[[Tensor], None]:
        def hook(g: Tensor) -> None:
            walk = running.walk
            with lock:
                seen = passes.get(walk)
                first = seen is None
                if seen is None:
                    expected = sum([walk.will_reach(edge_of(t)) for t in tensors])
                    seen = passes[walk] = _Seen([None] * len(tensors), expected)
                seen.grads[k] = g
                seen.missing -= 1
            if mode == "any" and first:
                fn(g)
            elif mode == "all" and seen.missing == 0:
                fn(seen.grads)

        return hook

    handles = [t.register_hook(hook_for(k)) for k, t in enumerate(tensors)]
    return _Handles(handles)


class _Seen:
    """The gradients that one backward pass has brought so far."""

    def __init__(self, grads: list[Tensor | None], missing: int) -> None:
        self.grads, self.missing = grads, missing


class _Handles(RemovableHandle):
    """Several handles as one."""

    def __init__(self, handles: list[RemovableHandle]) -> None:
        super().__init__(OrderedDict())
        self.handles = handles

    def remove(self) -> None:
        for each in self.handles:
            each.remove()


explain_missing("torch.autograd.graph", globals())
