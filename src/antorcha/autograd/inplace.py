"""In-place writes in the graph, where views are concerned.

A write to a view changes what its base, and every other view of it, was computed from. The base
gets a ``CopySlices`` node: the old history for the part outside of the view, the write's node for
the part inside. A view's own ``grad_fn`` is stale then (its ``_seen`` is not the storage's version)
and is made afresh when somebody asks: the base's history, seen through the view's strides.
"""

from __future__ import annotations

from typing import Any

from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.ops.kinds.derive import Rule, fit_one, saved_items
from antorcha.ops.kinds.record import T
from antorcha.runtime.call import node as nodes
from antorcha.runtime.call.node import (
    CONSTANT,
    Edge,
    Node,
    check_view,
    edge_of,
    node_type,
)
from antorcha.runtime.call.plan import FRESH, make
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor, new


class CopySlicesRule(Rule):
    """Splits the base's gradient: outside of the view it passes, inside it goes through the write.

    The write's node is kept in ``saved``, so that it goes when the graph is freed.
    """

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        (g,) = grads
        assert g is not None
        assert node.plan is not None
        (written,) = saved_items(node)
        place: ViewPlace = node.values
        whole = _copy_laid_as(g, node.plan.out)
        part = place.of(whole)
        results = [None] * len(node.edges)
        inside = None
        if written is not None:
            inside = written.op.rule.backward(written, [T.clone(part)], create)
            results[1:] = inside[1:]
        if node.edges[0] is None:
            return results
        if inside is not None and inside[0] is not None:
            T.copy_(part, fit_one(inside[0], place.view))
        else:
            T.fill_(part, 0)
        results[0] = whole  # type: ignore[call-overload]
        return results


class ViewPlace:
    """Where a view lies in its base: its layout and first element, counted in its own dtype."""

    __slots__ = ("base", "delta", "view")

    def __init__(self, base: Tensor, view: Tensor) -> None:
        self.base, self.view = base._layout, view._layout
        self.delta = view._offset - base._offset * self.per_element

    @property
    def per_element(self) -> int:
        """2 for the real parts of a complex base, else 1."""
        return self.base.itemsize // self.view.itemsize

    @property
    def counted(self) -> Layout:
        """The base's layout in elements of the view."""
        base = self.base
        if self.per_element == 1:
            return base
        strides = (*[2 * s for s in base.strides], 1)
        return L.layout((*base.shape, 2), strides, self.view.dtype, base.device)

    def of(self, whole: Tensor) -> Tensor:
        """The view's part of a tensor that lies as the base does."""
        if self.per_element == 2:
            whole = T.view_as_real(whole)
        return T.as_strided(whole, self.view.shape, self.view.strides, self.delta)  # type: ignore[no-any-return]

    def spread(self, g: Tensor) -> Tensor:
        """Zeros as the base, with ``g`` at the view's places."""
        result = T.as_strided_backward(g, self.counted, self.view.strides, self.delta)
        if self.per_element == 2:
            result = T.view_as_complex(T.contiguous(result))
        return result  # type: ignore[no-any-return]


def _copy_laid_as(g: Tensor, base: Layout) -> Tensor:
    """A copy of the gradient with the base's strides: the view's strides fit it too."""
    if base.contiguous:
        copied: Tensor = T.clone(g, memory_format="contiguous")
        return copied
    result = T.empty_strided(tuple(base.shape), base.strides, dtype=base.dtype, device=base.device)
    T.copy_(result, g)
    return result  # type: ignore[no-any-return]


class _CopySlices:
    name = "copy_slices"
    node_name = "CopySlices"
    full_name = "torch::autograd::CopySlices"
    rule = CopySlicesRule()


class AsStridedRule(Rule):
    """A view's gradient as the base's: zeros with the gradient at the view's places."""

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        assert grads[0] is not None
        return [node.values.spread(grads[0])]


class _AsStrided:
    name = "as_strided"
    node_name = "AsStridedBackward0"
    rule = AsStridedRule()


def _node(op: Any, edges: tuple[Edge, ...], place: ViewPlace, saved: Any, out: Layout) -> Node:
    node = new(node_type(op.node_name))
    node.op, node.edges, node.values, node.saved = op, edges, place, saved
    node.plan = make(op, FRESH, (out,), tensors=(place.base,) + (None,) * (len(edges) - 1))
    node.mask = (1 << len(edges)) - 1
    node.hooks, node.stack = None, nodes.where()
    node.seq = nodes.next_seq()
    return node


def rebase(view: Tensor, written: Node | None) -> None:
    """After ``view`` was overwritten by the op of node ``written`` (None: by something without a
    gradient): gives its base the new history."""
    base = view._base
    assert base is not None
    old: Edge = base._fn if base._fn is not None else (base if base._rg else None)
    if base._fn is not None and base._nr:
        old = (base._fn, base._nr)
    if old is None and written is None:
        return
    rest = () if written is None else written.edges[1:]
    if not base._rg and base._seen > 1:  # there have been other views
        modes.note_stale_views(base)
    node = _node(_CopySlices, (old, *rest), ViewPlace(base, view), [written], base._layout)
    base._fn, base._nr, base._rg = node, 0, True
    _retained(base)
    regenerate(view)


def regenerate(view: Tensor) -> None:
    """Makes a stale view's history afresh from its base's."""
    base = view._base
    assert base is not None
    version = view._storage.version
    if version < 0 or view._seen == ~version or view._seen == CONSTANT:
        return  # an inference tensor, or a view made in no_grad mode
    if view._seen != version:
        check_view(view, "its base or another view of its base has been modified inplace")
    view._seen = version
    edge = edge_of(base)
    if edge is None:
        return
    view._fn = _node(_AsStrided, (edge,), ViewPlace(base, view), [], view._layout)
    view._nr, view._rg = 0, True
    _retained(view)


def _retained(tensor: Tensor) -> None:
    if tensor._extra is not None and tensor._extra.retains is not None:
        hooks.retain(tensor)


hooks.rebase = rebase
hooks.regenerate = regenerate
