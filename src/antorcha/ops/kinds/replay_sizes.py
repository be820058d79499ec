"""Gradients by replay at sizes never met: a rule's kernels, planned with symbols for sizes.

What ``replay`` notes for tensors that lie alike is noted here for all that differ in their sizes
only. The rule runs on tensors without memory whose sizes are symbols (``antorcha.core.symbols``):
every op in it is planned, none is run, and the tape becomes an outline (``runtime.call.outline``).
The native engine works out what it says of a node's sizes; where it cannot, the rule runs.
"""

from __future__ import annotations

from typing import Any

from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.core.symbols import Trace, Untold
from antorcha.ops.kinds import replay
from antorcha.runtime.call.node import Node
from antorcha.runtime.call.outline import Outline
from antorcha.runtime.call.plan import MANY, VIEWS, Plan, make
from antorcha.runtime.call.sizes import numbers_of
from antorcha.runtime.memory.layout import Layout, form_of
from antorcha.runtime.memory.storage import new_storage
from antorcha.runtime.tensor import bare

SINGLY = 2  # nodes of a kind that are served by their rule
MOST_OUTLINES = 4  # of a kind; the first goes when there are more
MOST_MISSES = 12  # nodes of a kind without an outline, after which no more are made
refused: dict[str, str] = {}
"""Why the gradients of an op could not be outlined, the last time."""


class GradientOutline:
    """A rule's sequence, for nodes that differ in sizes only.

    saved: which operand (k) or result (-1 - k) each of what was saved is; None: nothing was.
    gradients: for each operand None, the number of one of the results' gradients, or the layout
    (with symbols) of what the sequence gives next.
    """

    __slots__ = ("gradients", "outline", "saved")

    def __init__(self, outline: Outline, saved: list[int | None], gradients: list[Any]) -> None:
        self.outline, self.saved, self.gradients = outline, saved, gradients


class GradientKind:
    """What is known of an outline's nodes, for one mask, and gradients of the same forms."""

    __slots__ = ("found", "misses")

    def __init__(self) -> None:
        self.found: list[GradientOutline] = []
        self.misses = 0


def meet(node: Node, grads: replay.Grads) -> None:
    """A node of a plan by outline has come to its rule: from the third on, its like need not."""
    plan = node.plan
    assert plan is not None
    outline = plan.outline
    assert outline is not None
    if outline.call is None or outline.call.write or modes.profiled:
        return  # (a profile would show what is only planned)
    key = (node.mask, *[None if g is None else form_of(g._layout) for g in grads])
    kind = outline.gradients.get(key)
    if kind is None:
        kind = outline.gradients[key] = GradientKind()
    kind.misses += 1
    if SINGLY < kind.misses <= MOST_MISSES:
        result = outlined(node, plan, grads)
        if result is None:
            kind.misses = MOST_MISSES
        else:
            kind.found = [*kind.found, result][-MOST_OUTLINES:]
            if hooks.new_gradient_outline is not None:
                hooks.new_gradient_outline(outline)


def outlined(node: Node, plan: Plan, grads: replay.Grads) -> GradientOutline | None:
    """The outline of a node's gradients; None: they cannot be planned with symbols."""
    numbers = plan.numbers + numbers_of([g._layout for g in grads if g is not None], [])
    trace = Trace(numbers, loose=True)
    try:
        return _outlined(node, plan, grads, trace)
    except Exception as error:  # whatever it is, the rule serves them
        refused[plan.op.name] = f"{type(error).__name__}: {error}"
        return None
    finally:
        trace.close()


def _outlined(node: Node, plan: Plan, grads: replay.Grads, trace: Trace) -> GradientOutline:
    assert plan.outline is not None
    symbols = iter(trace.symbols)
    symbolic, given = plan.outline.call.plan(symbols)
    forms = [None if g is None else form_of(g._layout) for g in grads]
    nothing = new_storage(0)
    arriving = [None if form is None else bare(form.layout(symbols), nothing) for form in forms]
    saved = _saved(node, plan, symbolic)
    twin = Node()
    twin.op, twin.plan, twin.edges, twin.mask = node.op, symbolic, node.edges, node.mask
    twin.values, twin.hooks, twin.stack = node.values, None, None
    layouts = [None if at is None else _layout_at(symbolic, at) for at in saved]
    twin.saved = [
        None if layout is None else (layout, nothing, 0, nothing.version) for layout in layouts
    ]
    _, noted, gradients, results = replay.note(twin, arriving, twin.saved, modes.SYMBOLS)
    if noted.why:
        raise Untold(noted.why)
    outs = tuple([g for g in gradients if isinstance(g, Layout)])
    if outs:
        run = noted.steps.bound(*results, packed=True)
        result = make(plan.op, MANY, outs, into=run)
    else:
        result = make(plan.op, VIEWS, (), post=())
    known = [*given, *[g._layout for g in arriving if g is not None]]
    outline = Outline(trace, result, known)
    outline.packed = bool(outs)
    return GradientOutline(outline, saved, gradients)


def _saved(node: Node, plan: Plan, symbolic: Plan) -> list[int | None]:
    """What a node has saved, by position; refuses what lies otherwise than its operand."""
    positions = node.op.rule.saves(plan, node.mask)
    if positions != node.op.rule.saves(symbolic, node.mask):
        raise Untold("what is saved depends on sizes")
    found: list[int | None] = []
    for at, item in zip(positions, node.saved, strict=True):
        if (None if item is None else item[0]) is not _layout_at(plan, at):
            raise Untold("what was saved lies otherwise than the operand")
        found.append(None if item is None else at)
    return found


def _layout_at(plan: Plan, at: int) -> Any:
    """The layout of an operand (k) or a result (-1 - k)."""
    return plan.tensors[at] if at >= 0 else plan.outs[-1 - at]
