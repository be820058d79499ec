"""In-place writes in the graph, where views are concerned.

A write to a view changes what its base, and every other view of it, was computed from. The base gets
a ``CopySlices`` node: the old history for the part outside of the view, the write's node for the
part inside. A view's own ``grad_fn`` is stale then (its ``_seen`` is not the storage's version) and
is made afresh when somebody asks: the base's history, seen through the view's strides.
"""

from __future__ import annotations

from typing import Any

from antorcha import modes
from antorcha.ops.derive import Rule, fit_one
from antorcha.ops.record import T
from antorcha.runtime.call import node as nodes
from antorcha.runtime.call import path
from antorcha.runtime.call.node import Node, edge_of, next_seq
from antorcha.runtime.call.plan import FRESH, make
from antorcha.runtime.layout import Layout
from antorcha.runtime.tensor import Tensor, new


class CopySlicesRule(Rule):
    """Splits the base's gradient: outside of the view it passes, inside it goes through the write."""

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        (g,) = grads
        inner, lay, delta = node.values
        whole = _copy_laid_as(g, node.plan.out)  # type: ignore[union-attr, arg-type]
        part = T.as_strided(whole, lay.shape, lay.strides, delta)
        results = [None] * len(node.edges)
        if inner is None:
            T.fill_(part, 0)
        else:
            inside = inner.op.rule.backward(inner, [T.clone(part)], create)
            for k, each in enumerate(inside[1:], 1):
                results[k] = each
            if inside[0] is not None:
                T.copy_(part, fit_one(inside[0], lay))
            else:
                T.fill_(part, 0)
        results[0] = whole
        return results


def _copy_laid_as(g: Tensor, base: Layout) -> Tensor:
    """A copy of the gradient with the base's strides: the view's strides fit it too."""
    if base.contiguous:
        copied: Tensor = T.clone(g, memory_format="contiguous")
        return copied
    made = T.empty_strided(tuple(base.shape), base.strides, dtype=base.dtype, device=base.device)
    T.copy_(made, g)
    return made  # type: ignore[no-any-return]


class _CopySlices:
    name = "copy_slices"
    node_name = "CopySlices"
    rule = CopySlicesRule()


class AsStridedRule(Rule):
    """A view's gradient as the base's: zeros with the gradient at the view's places."""

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        base, lay, delta = node.values
        return [T.as_strided_backward(grads[0], base, lay.strides, delta)]


class _AsStrided:
    name = "as_strided"
    node_name = "AsStridedBackward0"
    rule = AsStridedRule()


def _node(op: Any, edges: tuple[Any, ...], values: Any, out: Layout) -> Node:
    node = new(Node)
    node.op, node.edges, node.values = op, edges, values
    node.plan = make(op, FRESH, (out,), tensors=(out,) + (None,) * (len(edges) - 1))
    node.mask = (1 << len(edges)) - 1
    node.saved, node.hooks, node.stack = [], None, None
    node.seq = next_seq()
    return node


def rebase(view: Tensor, written: Node | None) -> None:
    """After ``view`` was overwritten by the op of node ``written`` (None: by something without a
    gradient): gives its base the new history."""
    base = view._base
    assert base is not None
    old = base._fn if base._fn is not None else (base if base._rg else None)
    if isinstance(old, Node) and base._nr:
        old = (old, base._nr)  # type: ignore[assignment]
    if old is None and written is None:
        return
    rest = () if written is None else written.edges[1:]
    delta = view._offset - base._offset
    if not base._rg:
        modes.note_rebase()
    base._fn = _node(_CopySlices, (old, *rest), (written, view._layout, delta), base._layout)
    base._nr, base._rg = 0, True
    regenerate(view)


def regenerate(view: Tensor) -> None:
    """Makes a stale view's history afresh from its base's."""
    base = view._base
    assert base is not None
    view._seen = view._storage.version
    edge = edge_of(base)
    if edge is None:
        return
    if edge is base:
        return  # a leaf is written to only where nothing is recorded: the view's history holds
    values = (base._layout, view._layout, view._offset - base._offset)
    view._fn = _node(_AsStrided, (edge,), values, view._layout)
    view._fn.plan.tensors = (base._layout,)  # type: ignore[union-attr]
    view._nr, view._rg = 0, True


path.rebase = rebase
nodes.regenerate = regenerate
