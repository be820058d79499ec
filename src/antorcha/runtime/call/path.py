"""The call path: from ``op(args)`` to the result, one way for every op.

The life of a call: the arguments are bound to the op's parameters and become a *key*; the key finds
a *plan* (a miss asks the op to make one); the plan's kernel runs over the operands' storages; the
result gets its node if an operand wants a gradient.

This is the general way, for any op and any arguments, and the reference for the native path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antorcha.core import modes
from antorcha.core.float8 import check_known
from antorcha.core.hooks import hooks
from antorcha.core.lazy import lazy
from antorcha.core.shapes import is_dense, may_overlap
from antorcha.errors import ArgumentError, GraphError, MissingFeature, ShapeError
from antorcha.runtime.call import tape as tapes
from antorcha.runtime.call.node import CONSTANT, attach, check_view, edge_of, node_of
from antorcha.runtime.call.plan import FRESH, HOST, MANY, VIEW, VIEWS, Plan, remember
from antorcha.runtime.tensor import Tensor, bare

if TYPE_CHECKING:
    from antorcha.runtime.call.protocols import OpRecord, Planner
    from antorcha.runtime.memory.storage import Storage


launch_with = lazy("antorcha.runtime.launch_with")  # (compiled: importing antorcha is not to)
sizes = lazy("antorcha.runtime.call.sizes")  # (runs kernels)
_NUMBERS = (int, float, bool, complex)
_UNRECORDED = modes.NO_GRAD | modes.INFERENCE
_CAREFUL = modes.INFERENCE | modes.ANOMALY | modes.SAVED_HOOKS


def call(op: Planner, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs an op on any arguments."""
    word = 0
    if modes.others_asked():
        done = asked(op, args, kwargs)
        if done is not NotImplemented:
            return done
    if modes.busy:
        word = modes.state.word
    try:
        if word & modes.AUTOCAST:
            return hooks.autocast(
                op, args, kwargs, lambda args, kwargs: _careful(op, args, kwargs, word)
            )
        if word & _CAREFUL or modes.profiled:
            return _careful(op, args, kwargs, word)
        return run(op, args, kwargs, not word & _UNRECORDED)
    except ArgumentError:
        done = hooks.foreign(op, args, kwargs)
        if done is NotImplemented:
            raise
        return done


def asked(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a call gives whose arguments are of classes that have a say in it, examples of a batch,
    dual tensors, or sparse; NotImplemented where they are not."""
    done = NotImplemented
    for name, wanted in (
        ("override", modes.subclasses), ("batch", modes.batched), ("dual", modes.duals),
        ("sparse", modes.sparse),
    ):  # fmt: skip
        if wanted and done is NotImplemented:
            done = getattr(hooks, name)(op, args, kwargs)
    return done


def _careful(op: Planner, args: tuple[Any, ...], kwargs: dict[str, Any], word: int) -> Any:
    """The call in a mode where somebody else has a say."""
    record = not word & _UNRECORDED
    if modes.profiled:
        result = hooks.observe_call(op, args, kwargs, run, op, args, kwargs, record)
    else:
        result = run(op, args, kwargs, record)
    if word & modes.INFERENCE:
        hooks.mark_inference(result)
    return result


def run(op: Planner, args: tuple[Any, ...], kwargs: dict[str, Any], record: bool) -> Any:
    """Binds, plans and executes; ``record`` says whether gradients may be recorded."""
    if modes.busy and modes.state.word & modes.SYMBOLS:
        return plan_alone(op, args, kwargs)
    quick = op.quick_bind(args, kwargs)
    if quick is not None:
        plan = op.plans.get(quick[0])
        if plan is not None:
            return execute(plan, quick[1], quick[2], quick[3], record)
    key, operands, flat, numbers, bound = op.bind(args, kwargs)
    plan = op.plans.get(key)
    if plan is None:
        plan = remember(op.plans, key, planned(op, key, operands, bound, False))
    if quick is not None:
        remember(op.plans, quick[0], plan)
    return execute(plan, operands, flat, numbers, record)


def check_runs(name: str) -> None:
    """Refuses what has effects, such as drawing random numbers, where calls are only planned."""
    if modes.busy and modes.state.word & modes.SYMBOLS:
        raise GraphError(f"{name}: it is not known before it runs")


def plan_alone(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], write: bool = False) -> Any:
    """Binds and plans, with symbols for sizes or without, and notes it on the tape: nothing is run,
    and nothing kept. The results have no memory. write: over the first operand."""
    tape = tapes.current.tape
    assert tape is not None
    if op.random and write:
        drawing, filled = op.plan_write(args, kwargs)
        tape.note_write(drawing, [filled], ())
        return filled
    if op.random:
        check_runs(op.name)
    key, operands, flat, numbers, values = op.bind(args, kwargs)
    examples = {id(n): n.value for n in numbers if type(n) not in _NUMBERS}  # symbols
    values = [examples.get(id(v), v) for v in values]
    if write:
        target: Tensor = operands[0]
        plan = op.make_plan(values, (target._layout,))
        tape.note_write(plan, operands, flat)
        target._rg = target._rg or _wants(plan, operands)
        return target
    plan = op.plans.get(key) if tape.finds_plans else None
    if plan is None:
        plan = op.make_plan(values, None)
    outs = tuple([bare(layout, None) for layout in plan.outs])
    if plan.kind in (VIEW, VIEWS):
        source = operands[0]
        for out in outs:
            out._base = source if source._base is None else source._base
    if _wants(plan, operands):
        for out in outs:  # who is asked whether gradients are wanted says it
            out._rg = out._layout.dtype.kind in "fc"
    tape.note(plan, operands, flat, numbers, outs)
    return outs[0] if plan.kind == FRESH or plan.kind == VIEW else plan.op.pack(outs)


def _wants(plan: Plan, operands: Any) -> bool:
    """Would a node be made of this call, for an operand that wants a gradient?"""
    if plan.rule is None or modes.state.word & _UNRECORDED:
        return False
    return any([o is not None and o._rg for o in operands])


def execute(plan: Plan, operands: Any, flat: list[Any], numbers: Any, record: bool) -> Any:
    """Runs a plan on operands that fit its key."""
    if modes.busy and modes.state.word & modes.INTERCEPT:
        outs = hooks.intercept(plan, operands, lambda: results_of(plan, operands, flat, record))
    else:
        outs = results_of(plan, operands, flat, record)
    result = outs[0] if plan.kind == FRESH or plan.kind == VIEW else plan.op.pack(outs)
    if modes.busy and modes.state.word & modes.TAPE:
        tape = tapes.current.tape
        if tape is not None:
            tape.note(plan, operands, flat, numbers, outs)
    if record and plan.rule is not None:
        for operand in operands:
            if operand is not None and (
                operand._rg or (operand._base is not None and operand._base._rg)
            ):
                attach(plan, operands, numbers, outs)
                break
    return result


def results_of(plan: Plan, operands: Any, flat: list[Any], record: bool) -> tuple[Tensor, ...]:
    """What a plan makes of operands that fit its key, before it has a history."""
    kind = plan.kind
    if kind == FRESH:
        return (plan.run(*flat),)
    if kind == VIEW:
        return (view_of(operands[0], plan, record),)
    if kind == MANY:
        allocate = plan.allocate
        outs = tuple([make(allocate(o.nbytes)) for make, o in zip(plan.makers, plan.outs)])
        places: list[Any] = []
        for out in outs:
            places += (out._storage, 0)
        plan.into(*places, *flat)
        return outs
    if kind == VIEWS:
        return views_of(operands[0], plan, record)
    return tuple([bare(layout, storage) for layout, storage in plan.fresh(*flat)])


def planned(op: Planner, key: Any, operands: Any, values: list[Any], write: bool) -> Plan:
    """The plan of a call, found by its sizes or made; see ``sizes``."""
    for operand in operands:
        if operand is not None and operand._layout.sparse:
            raise MissingFeature(f"{op.name}: not implemented for sparse tensors")
    check_known(op, [None if o is None else o._layout for o in operands])
    plan: Plan = sizes.planned(op, key, operands, values, write)
    check_known(op, plan.outs)
    return plan


def view_of(source: Tensor, plan: Plan, record: bool) -> Tensor:
    """A view by plan: the same storage, another layout."""
    result = bare(plan.out, source._storage, source._offset + plan.delta)
    join(result, source, record)
    return result


def views_of(source: Tensor, plan: Plan, record: bool) -> tuple[Tensor, ...]:
    """The parts of a tensor, by plan: several views; ``plan.post`` has what each adds to the
    offset."""
    storage, offset = source._storage, source._offset
    outs = tuple([bare(layout, storage, offset + d) for layout, d in zip(plan.outs, plan.post)])
    for out in outs:
        join(out, source, record)
    return outs


def join(view: Tensor, source: Tensor, record: bool) -> None:
    """Makes a new tensor a view of another, or of that one's base. Made where nothing is recorded
    it is a constant, and may not be written to where something is: nobody could say what is meant.
    """
    base = source._base
    version = source._storage.version
    view._seen = version
    if base is None:
        base = source
    elif source._seen < 0:
        view._seen = source._seen
    view._base = base
    base._seen = getattr(base, "_seen", 0) + 1  # how many views there have been
    if not record and version >= 0:  # (of an inference tensor it is below 0)
        view._seen = CONSTANT if source._rg or base._rg else ~version


def was_viewed(base: Tensor) -> bool:
    """Has there been a view of this tensor, which is none itself?"""
    seen: int = getattr(base, "_seen", 0)
    return seen > 0


# ------------------------------------------------------------------------------- in place and out=
def call_inplace(op: OpRecord, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``op_`` : the result is written over the first operand."""
    word = 0
    if modes.others_asked():
        done = asked(op.inplace, args, kwargs)
        if done is not NotImplemented:
            return done
    if modes.busy:
        word = modes.state.word
        if modes.profiled:
            record = not word & _UNRECORDED
            return hooks.observe_call(
                op.inplace, args, kwargs, run_inplace, op, args, kwargs, record
            )
    return run_inplace(op, args, kwargs, not word & _UNRECORDED)


def run_inplace(op: OpRecord, args: tuple[Any, ...], kwargs: dict[str, Any], record: bool) -> Any:
    if modes.busy and modes.state.word & modes.SYMBOLS:
        return plan_alone(op, args, kwargs, write=True)
    name = op.name + "_"
    key, operands, flat, numbers, bound = op.bind(args, kwargs)
    target = operands[0]
    if target is None:
        raise ArgumentError(f"{name}: the first argument must be a Tensor, not {args[0]!r:.60}")
    storage = target._storage
    wants = False
    if record:
        wants = any(
            [o is not None and (o._rg or (o._base is not None and o._base._rg)) for o in operands]
        )
    if storage.version < 0:
        check_inference(name)
    if wants:
        check_inplace(name, target)
    edges = tuple([None if o is None else edge_of(o) for o in operands]) if wants else ()
    spoilt = check_overlap(name, target, operands)
    if spoilt:
        args, kwargs = with_copies(op, args, kwargs, spoilt)
        key, operands, flat, numbers, bound = op.bind(args, kwargs)
    key = ("in place", *key)
    plan = op.plans.get(key)
    if plan is None:
        plan = remember(op.plans, key, planned(op, key, operands, bound, True))
    kept = before_write(plan, target, operands, edges) if wants else ()
    plan.into(storage, target._offset, *flat)
    storage.version += 1
    if modes.busy and tapes.current.tape is not None:
        tapes.current.tape.note_write(plan, operands, flat)
    if wants:
        record_write(plan, target, kept, numbers, edges)
    return target


def writer(plan: Plan) -> Any:
    """``write(storage, offset, ..)``: the plan over its own first operand, where that is simple."""
    return launch_with.writing(plan.into)


def check_inplace(name: str, target: Tensor) -> None:
    """Refuses writes whose history could not be told: to a leaf that collects gradients, to a view
    made where nothing is recorded."""
    if target._base is not None:
        check_view(target, "is being modified inplace")
    leaf = leaf_written(target)
    if leaf:
        raise GraphError(
            "{op}: {leaf} that requires grad is being used in an in-place operation. Do it inside "
            "`with torch.no_grad():`, or on a copy: {fix}.",
            reason="leaf", op=name, operands=(target._layout,), leaf=leaf, fix="x.clone()",
        )  # fmt: skip


def leaf_written(target: Tensor) -> str:
    """Which leaf would lose its gradient if the write to ``target`` were recorded; "" if none. (A
    leaf may itself be a view: then its base requires no gradient, and has no history either.)"""
    base = target._base
    if base is not None and base._fn is None and (base._rg or target._rg):
        return "a view of a leaf Variable"
    return "a leaf Variable" if target._rg and edge_of(target) is target else ""


def check_inference(name: str) -> None:
    """Refuses to write to an inference tensor outside of inference mode."""
    if not modes.state.word & modes.INFERENCE:
        raise GraphError(
            f"{name}: Inplace update to inference tensor outside InferenceMode is not allowed. You "
            "can make a clone to get a normal tensor before doing inplace update. See "
            "https://github.com/pytorch/rfcs/pull/17 for more details."
        )


_ONE_VALUE = ("fill_", "zero_")  # what they write does not depend on the order of the elements


def check_overlap(name: str, target: Tensor, operands: Any) -> list[Tensor]:
    """Refuses writes whose result would depend on the order of the elements. Gives the operands
    that must be copied first: they reach into the target's memory in a way of their own."""
    layout = target._layout
    if (
        not layout.contiguous
        and name not in _ONE_VALUE
        and may_overlap(layout.shape, layout.strides)
    ):
        raise ShapeError(
            f"{name}: unsupported operation: more than one element of the written-to tensor "
            f"(shape {tuple(layout.shape)}, strides {layout.strides}) refers to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )
    spoilt = []
    storage, low, high = target._storage, target._offset, target._offset + layout.high
    for other in operands[1:]:
        if other is None or not shared(other._storage, storage):
            continue
        theirs = other._layout
        if other._offset == low and (
            (theirs.shape == layout.shape and theirs.strides == layout.strides)
            or theirs.numel == layout.numel == 1
        ):
            continue
        if other._offset >= high or low >= other._offset + theirs.high:
            continue
        if is_dense(layout.shape, layout.strides) and is_dense(theirs.shape, theirs.strides):
            raise ShapeError(
                f"{name}: unsupported operation: some elements of the input tensor and the "
                "written-to tensor refer to a single memory location. Please clone() the tensor "
                "before performing the operation."
            )
        spoilt.append(other)
    return spoilt


def with_copies(
    op: OpRecord, args: tuple[Any, ...], kwargs: dict[str, Any], spoilt: list[Tensor]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a write with copies of those that it would change while it reads them."""
    copies = {id(each): op.copy_of(each) for each in spoilt}
    changed = tuple([copies.get(id(a), a) for a in args[1:]])
    return (args[0], *changed), {name: copies.get(id(a), a) for name, a in kwargs.items()}


def shared(a: Storage, b: Storage) -> bool:
    """Are they the same memory? (``x.data`` has a storage of its own over that of ``x``.)"""
    return a is b or (a.ptr == b.ptr and a.ptr != 0)


def before_write(plan: Plan, target: Tensor, operands: Any, edges: Any) -> list[Tensor | None]:
    """The operands as backward needs them: copies of those that the write is going to change."""
    rule = plan.rule
    kept = list(operands)
    if rule is not None:
        mask = 0
        for k, edge in enumerate(edges):
            if edge is not None:
                mask |= 1 << k
        for k in rule.saves(plan, mask & rule.mask):
            if k >= 0 and kept[k] is not None and shared(kept[k]._storage, target._storage):
                kept[k] = plan.op.copy_of(kept[k])  # type: ignore[attr-defined]  # an op's plan
    return kept


def record_write(plan: Plan, target: Tensor, operands: Any, numbers: Any, edges: Any) -> None:
    """Gives a tensor that was just overwritten its new history."""
    node = node_of(plan, operands, edges, numbers, (target,))
    if target._base is not None:
        hooks.rebase(target, node)
    elif node is not None:
        if not target._rg and was_viewed(target):
            modes.note_stale_views(target)
        target._fn, target._nr, target._rg = node, 0, True
        if target._extra is not None and target._extra.retains is not None:
            hooks.retain(target)
    else:
        target._fn, target._nr, target._rg = None, 0, False


def check_outs(name: str, outs: Any) -> None:
    """Refuses an ``out=`` that is no tensor."""
    for each in outs:
        if not isinstance(each, Tensor):
            raise ArgumentError(
                "{op}(): argument '{name}' must be Tensor, not {kind}", reason="tensor wanted",
                op=name, name="out", kind=type(each).__name__,
            )  # fmt: skip


def call_out(op: OpRecord, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``op(..., out=t)``: the result is written to ``t``, which is resized if it does not fit."""
    outs = out if isinstance(out, (tuple, list)) else (out,)
    check_outs(op.name, outs)
    if modes.sparse and hooks.sparse(op, (*args, *outs), kwargs) is not NotImplemented:
        raise ArgumentError(f"{op.name}(): out= is not supported with sparse tensors")
    if modes.busy:
        tapes.spoil(f"{op.name} writes to out=")
    key, operands, flat, _, bound = op.bind(args, kwargs)
    if modes.grad_enabled() and any([o is not None and o._rg for o in (*operands, *outs)]):
        raise GraphError(
            f"{op.name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    plan = op.plans.get(key)
    if plan is None:
        check_known(op, [each._layout for each in (*operands, *outs) if each is not None])
        plan = remember(op.plans, key, op.make_plan(bound, None))
    if any([each._storage.version < 0 for each in outs]):
        check_inference(op.name)  # before anything is resized
    op.fit_outs(plan, outs)
    written = tuple([each._layout for each in outs])
    if plan.kind in (FRESH, MANY) and not any(
        [shared(each._storage, o._storage) for each in outs for o in operands if o is not None]
    ):
        key = ("out", written, *key)
        exact = op.plans.get(key)
        if exact is None:
            exact = remember(op.plans, key, op.make_plan(bound, written))
        places: list[Any] = []
        for each in outs:
            places += (each._storage, each._offset)
        exact.into(*places, *flat)
        for each in outs:
            each._storage.version += 1
    else:
        results = execute(plan, operands, flat, (), False)
        for each, result in zip(outs, results if len(outs) > 1 else (results,), strict=True):
            op.copy_into(each, result)
    return op.pack(tuple(outs)) if len(outs) > 1 else outs[0]


__all__ = ["FRESH", "HOST", "MANY", "VIEW", "VIEWS", "call", "call_inplace", "call_out"]
