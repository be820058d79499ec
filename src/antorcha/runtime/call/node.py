"""Nodes of the autograd graph: which op ran, on whose results, and what it kept.

A node never holds its own output: what an op saves is (layout, storage, offset, version), from
which a tensor is made again when the derivative wants it. So the graph has no reference cycle and
memory goes back when the last user drops it.

An *edge* says where the gradient of an operand goes: ``None`` (nowhere), a leaf Tensor (add to its
``grad``), a Node (to its first result), or ``(node, k)`` (to its k-th result).

``seq`` grows with time: an edge always leads to a smaller one, so a heap on it is a topological
order and the engine needs no counting of dependencies.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING, Any

from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.core.lazy import lazy
from antorcha.errors import GraphError
from antorcha.runtime.call.plan import VIEW
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antorcha.runtime.call.plan import Plan
    from antorcha.runtime.call.protocols import NodeSource
    from antorcha.runtime.memory.layout import Layout
    from antorcha.runtime.memory.storage import Storage

objects = lazy("antorcha.runtime.objects")  # (compiled: importing antorcha is not to)
Edge = Any  # None | Tensor | Node | tuple[Node, int]
next_seq = itertools.count(1).__next__  # (the native path puts another in its place)


Saved = tuple["Layout", "Storage", int, int]
"""A tensor kept for backward: its place, and the version its storage had. A plain tuple, which
nothing else in ``Node.saved`` is."""


class Node:
    """One recorded operation.

    What users see has a class named as PyTorch names the node, ``AddBackward0``: it is given when
    somebody looks (``named``). Until then all nodes are of this one class, for which the
    interpreter's own look-up of fields is at its fastest.
    """

    __slots__ = (
        "__weakref__", "edges", "hooks", "mask", "op", "plan", "saved", "seq", "stack", "values",
    )  # fmt: skip
    op: NodeSource  # the op's record; its ``rule`` computes the gradients
    plan: Plan | None
    edges: tuple[Edge, ...]
    mask: int  # bit k: operand k wants a gradient
    saved: Any  # list of Saved (or packed by hooks); None once released
    values: Any  # the run-time numbers of the call, in operand order
    seq: int
    hooks: Any  # None or the hooks of this node, see autograd.hooks
    stack: Any  # where the op was called, if that is noted: see autograd.origin


@cache
def node_type(name: str) -> type[Node]:
    """The class of the nodes of that name."""
    return type(name, (Node,), {"__slots__": (), "__module__": "torch.autograd"})


def named(node: Node) -> Node:
    """The node, its class named after the op."""
    if type(node) is Node:
        node.__class__ = node_type(node.op.node_name)
    return node


def recorder(plan: Plan) -> Any:
    """What makes a plan's nodes: a builtin that takes FIELDS."""
    plan.record = objects.maker(Node, FIELDS, {"op": plan.op, "hooks": None, "stack": None})
    return plan.record


FIELDS = ("plan", "edges", "mask", "saved", "values", "seq")


class Released:
    """Stands in ``Node.saved`` after backward has freed what was kept."""


class PackedItems(list[Any]):
    """``Node.saved`` of which the user's hooks have a say. (Where nobody has, it is a list.)"""


RELEASED: Any = Released()
CONSTANT = -(1 << 62)  # ``_seen`` of a view made in no_grad mode of what required a gradient


def edge_of(tensor: Tensor) -> Edge:
    """Where the gradient of ``tensor`` goes; None when it wants none."""
    base = tensor._base
    if base is not None and (tensor._rg or base._rg) and tensor._seen != tensor._storage.version:
        hooks.regenerate(tensor)
    if not tensor._rg:
        return None
    fn = tensor._fn
    if fn is None:
        return tensor
    return (fn, tensor._nr) if tensor._nr else fn


def save(tensor: Tensor | None) -> Saved | None:
    """What a node keeps of a tensor."""
    if tensor is None:
        return None
    storage = tensor._storage
    version = storage.version
    if version < 0:
        raise GraphError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
            "inference mode in computation tracked by autograd. To work around this, you can make "
            "a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
            "instead of `torch.inference_mode()`.",
            reason="inference", operands=(tensor._layout,), fix="x.clone()",
        )  # fmt: skip
    return tensor._layout, storage, tensor._offset, version


def check_view(view: Tensor, happened: str) -> None:
    """Refuses what would give a view a history that nobody can tell: ``happened`` is a write to it,
    or its use after a write to its base."""
    fn = view._fn
    if view._seen < 0:
        raise GraphError(
            f"A view was created in no_grad (or inference) mode and {happened} with grad mode "
            "enabled. Given that this use case is ambiguous and error-prone, it is forbidden. You "
            "can clarify your code by moving both the view and the inplace either both inside the "
            "no_grad block (if you don't want the inplace to be tracked) or both outside (if you "
            "want the inplace to be tracked)."
        )
    while fn is not None and fn.plan is not None:
        reason = getattr(fn.op, "why_not_written", "")
        if reason:
            name = fn.op.node_name.partition("Backward")[0]
            raise GraphError(f"Output {view._nr} of {name} is a view and {happened}. {reason}")
        source = fn.edges[0] if fn.edges and fn.plan.kind == VIEW else None  # a view of a view
        source = source[0] if type(source) is tuple else source
        fn = source if isinstance(source, Node) else None


def attach(
    plan: Plan, operands: tuple[Tensor | None, ...], values: Any, outs: tuple[Tensor, ...]
) -> None:
    """Records the call on its results, if an operand wants a gradient."""
    edges = tuple([None if each is None else edge_of(each) for each in operands])
    node = node_of(plan, operands, edges, values, outs)
    if node is None:
        return
    for k, out in enumerate(outs):  # a plan with a rule has at least one differentiable result
        if len(outs) == 1 or out._layout.dtype.kind in "fc":
            out._rg = True
            out._fn = node
            out._nr = k


def node_of(
    plan: Plan, operands: Sequence[Tensor | None], edges: tuple[Edge, ...], values: Any,
    outs: tuple[Tensor, ...],
) -> Node | None:  # fmt: skip
    """The node of a call with these edges; None: no gradient is wanted."""
    if plan.rule is None:
        return None
    mask = 0
    for k, edge in enumerate(edges):
        if edge is not None:
            mask |= 1 << k
    mask &= plan.rule.mask
    if not mask:
        return None
    kept = saved_by(plan, mask)
    saved = [save(operands[k] if k >= 0 else outs[-1 - k]) for k in kept] if kept else kept
    record = plan.record or recorder(plan)
    node: Node = record(plan, edges, mask, saved, values, next_seq())
    if modes.busy:
        in_other_modes(node, kept, operands, outs)
    return node


def saved_by(plan: Plan, mask: int) -> tuple[int, ...]:
    """What the plan's rule saves for gradients of the operands in ``mask``."""
    kept: tuple[int, ...] | None = plan.keeps.get(mask)
    if kept is None:
        kept = plan.keeps[mask] = plan.rule.saves(plan, mask)  # type: ignore[union-attr]  # as above
    return kept


def in_other_modes(node: Node, kept: Any, operands: Any, outs: Any) -> None:
    """What a node gets besides where saved tensors are packed, or errors are to be traced."""
    word = modes.state.word
    if word & modes.SAVED_HOOKS:
        node.saved = PackedItems(
            [
                hooks.pack(item, operands[k] if k >= 0 else outs[-1 - k])
                for k, item in zip(kept, node.saved, strict=True)
            ]
        )
    if word & _NOTED:
        node.stack = hooks.origin()


_NOTED = modes.ANOMALY | modes.ORIGINS


def where() -> Any:
    """Where the program is, for a node's ``stack``: None where that is not noted."""
    return hooks.origin() if modes.busy and modes.state.word & _NOTED else None
