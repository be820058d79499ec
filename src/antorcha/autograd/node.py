"""The public face of nodes: what a program sees of ``y.grad_fn``.

The graph leads straight to its leaves; PyTorch's ``AccumulateGrad`` node of a leaf is made when
somebody looks for it (``next_functions``), and stays the same object while it is held.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

from antorcha.autograd.hooks import NodeHooks, RemovableHandle, hooks_of, register
from antorcha.ops.kinds.derive import saved_items, unpack
from antorcha.runtime.call.node import RELEASED, Edge, Node, named
from antorcha.runtime.tensor import Tensor, extra, new


class AccumulateGrad(Node):
    """Where a leaf's gradients are added up; ``variable`` is the leaf."""

    __slots__ = ("variable",)
    variable: Tensor

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    @property
    def next_functions(self) -> tuple[Any, ...]:
        return ()

    @property
    def _hooks(self) -> NodeHooks:
        kept = extra(self.variable)
        if kept.node_hooks is None:
            kept.node_hooks = NodeHooks()
        return kept.node_hooks  # type: ignore[no-any-return]


# Not in the leaf's `_extra`, whose gradients no backward pass adds up natively. A node holds its
# leaf, so that the leaf's id is its own for as long as the entry.
_accumulators: WeakValueDictionary[int, AccumulateGrad] = WeakValueDictionary()


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The leaf's AccumulateGrad node: the same one while anybody holds it."""
    found = _accumulators.get(id(leaf))
    if found is None:
        found = new(AccumulateGrad)
        found.variable = leaf
        found.edges, found.hooks, found.seq, found.mask = (), None, 1 << 62, 0
        found.op = None  # type: ignore[assignment]  # it has no rule
        found.plan = found.saved = found.values = found.stack = None
        _accumulators[id(leaf)] = found
    return found


def shown(edge: Edge) -> tuple[Any, int]:
    """An edge as PyTorch shows it: (node, result number)."""
    if edge is None:
        return None, 0
    if type(edge) is tuple:
        return named(edge[0]), edge[1]
    return (named(edge) if isinstance(edge, Node) else accumulator(edge)), 0


def name(self: Node) -> str:
    """The node's name, e.g. ``'MulBackward0'``."""
    return getattr(self.op, "full_name", self.op.node_name)


def next_functions(self: Node) -> tuple[Any, ...]:
    """Where the gradients go: for each operand a pair (node, which of its results)."""
    return tuple([shown(edge) for edge in self.edges])


def metadata(self: Node) -> dict[Any, Any]:
    """A dictionary for the user's own use."""
    return self._hooks.metadata  # type: ignore[attr-defined, no-any-return]


def register_hook(self: Node, fn: Any) -> RemovableHandle:
    """Calls ``fn(grad_inputs, grad_outputs)`` after the node has run; may replace ``grad_inputs``.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.register_hook.html.
    """
    return register(self._hooks.post, fn)  # type: ignore[attr-defined]


def register_prehook(self: Node, fn: Any) -> RemovableHandle:
    """Calls ``fn(grad_outputs)`` before the node runs; may replace them."""
    return register(self._hooks.pre, fn)  # type: ignore[attr-defined]


def _repr(self: Node) -> str:
    return f"<{type(self).__name__} object at {id(self):#x}>"


SAVED = ("self", "other", "result", "exponent", "dim", "keepdim", "mat1", "mat2", "weight", "alpha")


def _saved_property(wanted: str) -> property:
    """``_saved_self``, ``_saved_result``..: what the node kept. (Not by ``__getattr__``: that would
    slow down every look at a node.)"""

    def get(self: Node) -> Any:
        found = _NOTHING if self.plan is None else _saved(self, wanted)
        if found is _NOTHING:
            kind = type(self).__name__
            raise AttributeError(f"{kind!r} object has no attribute '_saved_{wanted}'")
        return found

    return property(get)


_NOTHING = object()


def _saved(node: Node, wanted: str) -> Any:
    plan = node.plan
    assert plan is not None
    wanted = "input" if wanted == "self" else wanted
    if wanted in plan.statics:
        return plan.statics[wanted]
    if wanted in plan.post_names:
        return node.values[plan.post_names.index(wanted)]
    signature = getattr(plan.op, "signature", None)
    if signature is None or plan.rule is None:
        return _NOTHING
    operands = [p.name for p in signature.params if p.code < 3]
    position = -1 if wanted == "result" else operands.index(wanted) if wanted in operands else None
    kept = plan.rule.saves(plan, node.mask)
    if position is None or position not in kept:
        return _NOTHING
    return unpack(node, position, saved_items(node)[kept.index(position)], True)


def bind() -> None:
    """Sets this file's methods on Node."""
    for method in (name, register_hook, register_prehook):
        setattr(Node, method.__name__, method)
    for get in (next_functions, metadata):
        setattr(Node, get.__name__, property(get, doc=get.__doc__))
    Node._hooks = property(hooks_of)  # type: ignore[attr-defined]
    Node._sequence_nr = lambda self: self.seq  # type: ignore[attr-defined]
    Node.requires_grad = property(lambda self: True)  # type: ignore[attr-defined]
    Node.__repr__ = _repr  # type: ignore[method-assign, assignment]
    for wanted in SAVED:
        setattr(Node, f"_saved_{wanted}", _saved_property(wanted))


__all__ = ["RELEASED", "AccumulateGrad", "Node", "accumulator", "bind", "shown"]
