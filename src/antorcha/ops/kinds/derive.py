"""Derivative rules: from what an op's record says to what the autograd engine calls.

A rule is a function whose parameter names say what it needs::

    @mul.derivative
    def _(g, input, other): return g * other, g * input

``g`` is the gradient of the result (a tuple for several results, None where there is none); ``out``
the result (``outs`` all); a tensor parameter of the op is saved for it; ``<parameter>_layout`` is
its layout, without saving it; any other parameter of the op is passed by value; ``needs`` is a
tuple of bools, which operands want a gradient. It returns a gradient (or None) for each tensor
operand.

The rules of pointwise ops are expressions too: see ``pointwise.PointwiseRule``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.errors import GraphError
from antorcha.ops.kinds.params import NUMBER, OPERAND, OPTIONAL, STATIC, TENSOR, TENSORS
from antorcha.ops.kinds.record import T
from antorcha.runtime.call import tape as tapes
from antorcha.runtime.call.node import RELEASED, Node, Saved
from antorcha.runtime.tensor import Tensor, bare

if TYPE_CHECKING:
    from antorcha.ops.kinds.record import Op
    from antorcha.runtime.call.plan import Plan
    from antorcha.runtime.memory.layout import Layout


class Rule:
    """How to compute the gradients of an op."""

    mask: int = -1  # which operands can have a gradient
    replays = False  # is what it computes known from layouts (and looked at by the tape where not)?
    replays_numbers = False  # and from which numbers, by ops with `numbers_given`?

    def saves(self, plan: Plan, mask: int) -> tuple[int, ...]:
        """What to keep when the operands in ``mask`` want gradients: k for operand k, -1 - k for
        result k."""
        raise NotImplementedError

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        """The gradient of each operand. With ``create`` they are recorded in their turn."""
        raise NotImplementedError


def saved_items(node: Node) -> Any:
    """What the node kept; a clear error when it was freed."""
    kept = node.saved
    if kept is RELEASED:
        raise GraphError(
            "{node}: Trying to backward through the graph a second time (or directly "
            "access saved tensors after they have already been freed). Saved intermediate values "
            "of the graph are freed when you call .backward() or autograd.grad(). Specify "
            "{fix} if you need to backward through the graph a second time.",
            reason="second", node=node.op.node_name, fix="retain_graph=True",
        )  # fmt: skip
    return kept


def check_version(node: Node, item: Saved, position: int) -> None:
    """Refuses a saved tensor that was written to since."""
    layout, storage, _, version = item
    if storage.version != version:
        what = f"operand {position}" if position >= 0 else f"output {-1 - position}"
        origin = ""
        if node.stack:
            origin = f" It was called here:\n{node.stack}"
        raise GraphError(
            "one of the variables needed for gradient computation has been modified by an inplace "
            "operation: [{0.dtype} {shape}], which is {what} of {node}, is at version {version}; "
            "expected version {expected} instead. Use an out-of-place op, or clone() before "
            "writing.{origin}",
            reason="overwritten", operands=(layout,), shape=list(layout.shape), what=what,
            node=node.op.node_name, version=storage.version, expected=version,
            origin=origin or " torch.autograd.set_detect_anomaly(True) shows where it was saved.",
        )  # fmt: skip


def unpack(node: Node, position: int, item: Any, create: bool) -> Tensor:
    """The saved tensor again; with ``create`` in its place in the graph."""
    if type(item) is tuple:
        check_version(node, item, position)
        tensor = bare(*item[:3])
        if modes.busy:
            tape = tapes.current.tape
            if tape is not None and position in tape.saved:
                tape.put(tensor, *tape.saved[position])
    else:
        tensor = hooks.unpack(item, create)
    if create:
        if position >= 0:
            edge = node.edges[position]
            if edge is not None:
                if isinstance(edge, Tensor) and edge._storage is tensor._storage:
                    return edge
                return _linked(tensor, *(edge if type(edge) is tuple else (edge, 0)))
        elif tensor._layout.dtype.kind in "fc":
            return _linked(tensor, node, -1 - position)
    return tensor


def _linked(tensor: Tensor, fn: Any, nr: int) -> Tensor:
    tensor._rg, tensor._fn, tensor._nr = True, fn, nr
    return tensor


class TensorRule(Rule):
    """A rule that calls ops on tensors."""

    replays = True

    def __init__(self, op: Op, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.getters: list[Callable[[_Context], Any]] = []
        wanted: set[int] = set()
        positions: dict[str, int] = {}
        params = {p.name: p for p in op.signature.params}
        for p in op.signature.params:
            if p.code in (TENSOR, OPTIONAL, OPERAND):
                positions[p.name] = len(positions)
        self.list_at = -1  # the first operand of the list of tensors, which is the last operand
        for p in op.signature.params:
            if p.code == TENSORS:
                self.list_at = len(positions)
        for name in fn.__code__.co_varnames[: fn.__code__.co_argcount]:
            getter = self._getter(op, name, params, positions, wanted)
            self.getters.append(getter)
        self.kept = tuple(sorted(wanted, reverse=True))

    def _getter(
        self, op: Op, name: str, params: Any, positions: dict[str, int], wanted: set[int]
    ) -> Callable[[_Context], Any]:
        if name == "g":
            return lambda c: c.grads[0] if len(c.grads) == 1 else tuple(c.grads)
        if name == "needs":
            return lambda c: c.needs
        if name == "create":
            return lambda c: c.create
        if name == "layouts":
            return lambda c: c.node.plan.tensors  # type: ignore[union-attr]
        if name == "out":
            wanted.add(-1)
            return lambda c: c.saved(-1)
        if name.startswith("out") and name[3:].isdigit():
            position = -1 - int(name[3:])
            wanted.add(position)
            return lambda c: c.saved(position)
        if name.endswith("_layout") and name[:-7] in positions:
            where = positions[name[:-7]]
            return lambda c: c.node.plan.tensors[where]  # type: ignore[union-attr]
        if name in op.planned_names:
            return lambda c: c.value(name)
        if name not in params:
            raise ValueError(f"{op.name}: its rule wants {name!r}, which is nothing of the op")
        code = params[name].code
        if code in (STATIC, NUMBER):
            return lambda c: c.value(name)
        if code == TENSORS:
            wanted.add(_ALL)
            first = self.list_at
            return lambda c: tuple([c.saved(k) for k in range(first, len(c.node.edges))])
        at = positions[name]
        wanted.add(at)
        if code == OPERAND:
            return lambda c: (
                c.value(name) if c.node.plan.tensors[at] is None  # type: ignore[union-attr]
                else c.saved(at)
            )  # fmt: skip
        return lambda c: c.saved(at)

    def saves(self, plan: Plan, mask: int) -> tuple[int, ...]:
        if self.list_at >= 0 and _ALL in self.kept:
            rest = [k for k in self.kept if k != _ALL]
            return (*rest, *range(self.list_at, len(plan.tensors)))
        return self.kept

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        assert node.plan is not None
        context = _Context(node, grads, create, self.saves(node.plan, node.mask))
        gradients = self.fn(*[get(context) for get in self.getters])
        if not isinstance(gradients, (tuple, list)):
            gradients = (gradients,)
        return fit(node, gradients)


_ALL = 1 << 30


class _Context:
    """What the getters of one backward call read from."""

    __slots__ = ("create", "grads", "items", "node")

    def __init__(self, node: Node, grads: list[Any], create: bool, kept: tuple[int, ...]) -> None:
        self.node, self.grads, self.create = node, grads, create
        self.items = dict(zip(kept, saved_items(node))) if kept else {}
        if not kept:
            saved_items(node)

    @property
    def needs(self) -> tuple[bool, ...]:
        mask = self.node.mask
        return tuple([bool(mask >> k & 1) for k in range(len(self.node.edges))])

    def saved(self, position: int) -> Tensor | None:
        item = self.items[position]
        return None if item is None else unpack(self.node, position, item, self.create)

    def value(self, name: str) -> Any:
        plan = self.node.plan
        assert plan is not None
        if name in plan.statics:
            return plan.statics[name]
        return self.node.values[plan.post_names.index(name)]


def fit(node: Node, gradients: Any) -> list[Tensor | None]:
    """Gives each gradient its operand's shape and dtype."""
    fitted: list[Tensor | None] = []
    plan = node.plan
    assert plan is not None
    for gradient, layout, edge in zip(gradients, plan.tensors, node.edges):
        if gradient is None or edge is None or layout is None:
            fitted.append(None)
        else:
            fitted.append(fit_one(gradient, layout))
    return fitted


def fit_one(gradient: Tensor, layout: Layout) -> Tensor:
    """Sums over the dims that were broadcast, and casts to the operand's dtype."""
    have = gradient._layout
    if have is layout:
        return gradient

    if have.shape != layout.shape:
        gradient = T.sum_to_size(gradient, layout.shape)
    if have.dtype is not layout.dtype:
        if have.dtype.kind == "c" and layout.dtype.kind != "c":
            gradient = T.real(gradient)
        gradient = T.to_dtype(gradient, layout.dtype)
    if have.device is not layout.device:  # (a number on the CPU beside a device's tensor)
        gradient = T.to_device(gradient, layout.device)
    return gradient


@cache
def bits(mask: int) -> tuple[int, ...]:
    """The positions of the one bits."""
    return tuple([k for k in range(mask.bit_length()) if mask >> k & 1])


def in_grad_mode(create: bool) -> int:
    """Enters the mode in which a backward pass runs, without autocast; gives the word to restore.

    Without ``create`` nothing that rules compute with requires a gradient, so nothing is recorded
    whatever the mode. Only what the user wrote (hooks, custom functions) must see it off.
    """
    word = modes.state.word
    wanted = word & ~(modes.AUTOCAST | modes.NO_GRAD if create else modes.AUTOCAST)
    return word if wanted == word else modes.set_word(wanted)


def in_users_mode(create: bool) -> int:
    """Enters the mode in which a backward pass runs what the user wrote."""
    word = modes.state.word
    return word if create else modes.set_word(word | modes.NO_GRAD)
