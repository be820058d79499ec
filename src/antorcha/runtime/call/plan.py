"""Plans: what a call of an op on arguments like these does. Made once, found by key, replayed.

A plan's key is the op and a word per argument: the layout of a tensor, the type of a run-time
number, the value of anything else (a dim, a shape, a dtype). The plan says which kernel runs, how
the result lies and which derivative rule records it; nothing of it depends on a tensor's contents.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from antorcha.core import dtypes, switches
from antorcha.core.device import backend
from antorcha.core.lazy import lazy, without_collecting
from antorcha.runtime.memory import layout as layouts
from antorcha.runtime.tensor import PLAIN, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from antorcha.runtime.call.node import Node
    from antorcha.runtime.call.outline import Outline
    from antorcha.runtime.call.protocols import GradientRule, Planner
    from antorcha.runtime.call.sizes import Family
    from antorcha.runtime.memory.layout import Layout

native_path = lazy("antorcha.runtime.call.native")
objects = lazy("antorcha.runtime.objects")  # (compiled: importing antorcha is not to)
LIMIT = 20_000  # plans kept before all are dropped
_tables: list[dict[Any, Plan]] = []
_others: list[Callable[[], Any]] = []
_count = 0


UNKNOWN = "unknown"


class Plan:
    """How to run one op on one kind of arguments."""

    __slots__ = (
        "allocate", "delta", "family", "fresh", "into", "keeps", "kind", "makers", "numbers", "op",
        "out", "outline", "outs", "post", "post_names", "record", "replays", "rule", "run",
        "sequence", "statics", "tensors", "vjp",
    )  # fmt: skip
    op: Planner
    kind: int  # FRESH, MANY, VIEW, HOST or VIEWS
    outs: tuple[Layout, ...]  # of the results
    out: Layout  # of the first
    fresh: Callable[..., Any]  # (storage, offset, .., numbers ..) -> Storage of the one result
    into: Callable[..., None]  # (out storage, out offset, .., inputs as above)
    sequence: Any  # of HOST: all that it runs, which gives a storage and an offset for each result;
    # None: nobody can say it; UNKNOWN: it will be known
    allocate: Callable[[int], Any]  # of several results: a storage of so many bytes
    delta: int  # of a view: what to add to the offset
    tensors: tuple[Layout | None, ...]  # the tensor operands' layouts
    rule: GradientRule | None  # how to record it; None when it has no derivative
    run: Callable[..., Tensor]  # the one result: fresh, and a tensor around it
    makers: tuple[Callable[..., Tensor], ...]  # of several results: of its storage, each
    record: Callable[..., Node] | None  # makes the nodes that record it; None: not found yet
    statics: dict[str, Any]  # the arguments that are in the key by value
    replays: Any  # of its gradients, as the native engine reads them
    keeps: dict[int, tuple[int, ...]]  # operands that want gradients -> what their rule saves
    family: Family | None  # of calls that differ in sizes only
    outline: Outline | None  # that it was made by, from its `numbers`
    numbers: tuple[int, ...]
    vjp: dict[Any, Any]  # cache: plans of this plan's gradient kernels
    post: Any  # family's own
    post_names: tuple[str, ...]  # parameters of the run-time numbers, in order


FRESH, MANY, VIEW, HOST, VIEWS = range(5)


def make(
    op: Planner,
    kind: int,
    outs: tuple[Layout, ...],
    *,
    fresh: Callable[..., Any] | None = None,
    into: Callable[..., None] | None = None,
    delta: int = 0,
    tensors: tuple[Layout | None, ...] = (),
    rule: GradientRule | None = None,
    statics: dict[str, Any] | None = None,
    post: Any = None,
    post_names: tuple[str, ...] = (),
) -> Plan:
    """A plan; what it does not say is found when it is wanted."""
    plan = Plan()
    plan.op, plan.kind, plan.outs = op, kind, outs
    plan.out = outs[0] if outs else None  # type: ignore[assignment]
    if fresh is not None:
        plan.fresh = fresh
    if into is not None:
        plan.into = into
    plan.delta, plan.tensors, plan.rule = delta, tensors, rule
    plan.statics = {} if statics is None else statics
    plan.post, plan.post_names = post, post_names
    plan.record, plan.keeps, plan.replays, plan.vjp = None, {}, None, {}
    plan.family = plan.outline = plan.sequence = None
    plan.numbers = ()
    if kind == FRESH and fresh is not None:
        plan.run = _running()(fresh, plan.out)
    elif kind == VIEW:
        _running()  # so that a program that begins with views goes natively, too
    elif kind == MANY:
        plan.makers = tuple([tensor_maker(out) for out in outs])
        plan.allocate = backend(plan.out.device).allocate
    return plan


@functools.cache
def _running() -> Callable[..., Any]:
    with without_collecting():
        native_path.wake()  # (the first op, whatever it is, wakes it)
    running: Callable[..., Any] = native_path.running
    return running


def tensor_maker(layout: Layout) -> Callable[..., Tensor]:
    """What makes tensors of that layout, in no graph, of a storage."""
    return functools.partial(_fresh_maker(), layout)


@functools.cache
def _fresh_maker() -> Callable[..., Tensor]:
    given = ("_layout", "_storage")
    fixed = {k: value for k, value in PLAIN.items() if k not in given}
    found: Callable[..., Tensor] = objects.maker(Tensor, given, fixed)
    return found


def table() -> dict[Any, Plan]:
    """A new table of plans, flushed with all others."""
    result: dict[Any, Plan] = {}
    _tables.append(result)
    return result


def remember(where: dict[Any, Plan], key: Any, plan: Plan) -> Plan:
    """Keeps a plan; when there are too many, forgets all of them, and the layouts, first."""
    global _count
    if _count >= LIMIT:
        flush()
    _count += 1
    where[key] = plan
    return plan


def flush() -> None:
    """Forgets every plan and layout. Tensors keep theirs; the next calls plan again."""
    global _count
    for each in _tables:
        each.clear()
    for forget in _others:
        forget()
    layouts.flush_table()
    _count = 0


dtypes.on_new_default.append(flush)
switches.on_change.append(flush)


def on_flush(forget: Callable[[], Any]) -> None:
    """Calls `forget` whenever the tables are flushed: plans are kept elsewhere, too."""
    _others.append(forget)


def count() -> int:
    return _count
