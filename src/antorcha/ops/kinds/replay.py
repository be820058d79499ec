"""Gradients by replay: a rule's kernels, noted once and then run as one sequence.

A rule computes the same things for all nodes of one plan, with one set of operands that want
gradients, when what arrives and what was saved lie alike. The second such node has its rule noted
on a tape (``runtime.call.tape``); the following ones run what the tape says, without the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.core.lazy import lazy
from antorcha.ops.kinds.derive import check_version
from antorcha.runtime.call import tape
from antorcha.runtime.call.node import RELEASED, Node
from antorcha.runtime.tensor import Tensor, bare

if TYPE_CHECKING:
    from antorcha.runtime.memory.layout import Layout

runtime_sequence = lazy("antorcha.runtime.sequence")

Grads = list[Tensor | None]
MET, NEVER = "met", "never"
"""In place of a Replay: the next such node makes one; none can be made."""


class Replay:
    """A rule's sequence, for nodes of one plan and mask and gradients that lie alike.

    layouts: of what was saved, in order (None: nothing there). gradients: for each operand None,
    the number of one of the results' gradients, or the layout of what the sequence gives next.
    """

    __slots__ = ("gradients", "layouts", "run", "sequence")

    def __init__(
        self, steps: Any, layouts: list[Layout | None], gradients: list[Any], results: list[int]
    ) -> None:
        self.layouts, self.gradients = layouts, gradients
        self.run = steps.bound(*results, packed=True)
        self.sequence = runtime_sequence.sequence_of(self.run)

    def __call__(self, node: Node, grads: Grads, kept: Any) -> Grads | None:
        """The gradients; None where something was saved that lies otherwise than the call's own
        operand: a write in place keeps copies of what it is going to change."""
        flat: list[Any] = []
        for g in grads:
            if g is not None:
                flat += (g._storage, g._offset)
        for k, item in enumerate(kept):
            if item is not None:
                layout, storage, offset, version = item
                if layout is not self.layouts[k]:
                    return None
                if storage.version != version:
                    assert node.plan is not None
                    positions = node.op.rule.saves(node.plan, node.mask)
                    check_version(node, item, positions[k])
                flat += (storage, offset)
        flat += node.values
        made = self.run(*flat)
        result: Grads = []
        k = 0
        for what in self.gradients:
            if what is None:
                result.append(None)
            elif type(what) is int:
                result.append(grads[what])
            else:
                result.append(bare(what, made[k], made[k + 1]))
                k += 2
        return result


def gradients_of(node: Node, grads: Grads, create: bool) -> Any:
    """The gradients of a node's operands, by its rule or by replay."""
    kept, plan, rule = node.saved, node.plan, node.op.rule
    busy = modes.busy and modes.busy != modes.profiled
    if create or busy or not rule.replays or kept is RELEASED or plan is None:
        return rule.backward(node, grads, create)
    if type(kept) is not list and kept:  # packed by the user's hooks
        return rule.backward(node, grads, create)
    key = (node.mask, *[None if g is None else g._layout for g in grads])
    found = plan.vjp.get(key)
    if type(found) is Replay:
        result = found(node, grads, kept)
        if result is not None:
            return result
    elif found is None:
        plan.vjp[key] = MET
    elif found is MET:
        return _note(node, grads, kept, key)
    if plan.outline is not None and hooks.meet_size is not None:
        hooks.meet_size(node, grads)
    return rule.backward(node, grads, create)


def _note(node: Node, grads: Grads, kept: Any, key: Any) -> Any:
    """The gradients by the node's rule, noted for the next time."""
    plan = node.plan
    assert plan is not None
    found, noted, gradients, results = note(node, grads, kept)
    plan.vjp[key] = NEVER
    if not noted.why:
        layouts = [None if item is None else item[0] for item in kept]
        plan.vjp[key] = Replay(noted.steps, layouts, gradients, results)
        if hooks.new_replay is not None:
            hooks.new_replay(plan)
    return found


def note(
    node: Node, grads: Grads, kept: Any, more: int = 0
) -> tuple[Any, tape.Tape, list[Any], list[int]]:
    """The gradients by the node's rule; the tape that its kernels were noted on, which says why not
    where it is of no use; the gradients as a Replay has them; and their places on the tape. more:
    modes to be in meanwhile."""
    plan = node.plan
    assert plan is not None
    given = [g for g in grads if g is not None]
    saved = [item for item in kept if item is not None]
    noted = tape.Tape(2 * (len(given) + len(saved)) + len(node.values))
    at = 0
    for g in given:
        noted.put(g, at, at + 1)
        at += 2
    for position, item in zip(node.op.rule.saves(plan, node.mask), kept, strict=True):
        if item is not None:
            noted.saved[position] = at, at + 1
            at += 2
    for number in node.values:
        noted.put_number(number, at)
        at += 1
    if node.values and not node.op.rule.replays_numbers:
        noted.fail("its numbers may go anywhere")
    with tape.running(noted, more):
        found = node.op.rule.backward(node, grads, False)
    gradients: list[Any] = []
    results: list[int] = []
    for edge, g in zip(node.edges, found):
        if g is None or edge is None:
            gradients.append(None)
        elif any([g is each for each in grads]):
            gradients.append([g is each for each in grads].index(True))
        else:
            place = noted.places.get(id(g))
            if place is None:
                noted.fail("a gradient from elsewhere")
                break
            gradients.append(g._layout)
            results += place
    return found, noted, gradients, results
