"""Ops that run other ops, but are one node of the graph with a derivative of its own.

The function takes tensors and calls ops, as a composite's does; what it calls is not recorded. Its
results are fresh tensors. The rule below it is the op's derivative::

    @opaque(node="native_group_norm")
    def native_group_norm(input: Tensor, ...): ...

    @native_group_norm.derivative
    def _(g, input, ...): ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from antorcha.core import modes
from antorcha.ops.kinds.operands import common_device
from antorcha.ops.kinds.record import Op, T
from antorcha.ops.kinds.sampler import unrecorded
from antorcha.runtime.call import tape as tapes
from antorcha.runtime.call.plan import HOST, UNKNOWN, Plan, make
from antorcha.runtime.call.tape import Tape, running
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor, bare

if TYPE_CHECKING:
    from antorcha.ops.kinds.arguments import Arguments
    from antorcha.runtime.memory.storage import Storage


def plan_opaque(writes: tuple[str, ...], op: Op, given: Arguments, outs: Any) -> Plan:
    """Plans a call of the function of tensors; writes: see ``opaque``."""
    common_device(op.name, given.tensors)
    seen = list(zip(op.signature.names, given.seen, strict=True))
    numbers = given.numbers

    def compute(flat: Sequence[Any], noted: Tape | None = None) -> list[Tensor]:
        """The results; what runs is noted."""
        args: list[Any] = []
        at = 0
        for name, value in seen:
            args.append(value)
            if isinstance(value, Layout):
                args[-1] = tensor = bare(value, flat[at], flat[at + 1])
                if noted is not None:
                    noted.put(tensor, at, at + 1)
                    if name in writes:
                        noted.writable.add(at)
                at += 2
            elif name in numbers:
                args[-1] = flat[at]
                if noted is not None:
                    noted.put_float(flat[at], at)
                at += 1
        with unrecorded():
            found = op.apply_fn(args)
            return [_whole(t) for t in (found if isinstance(found, tuple) else (found,))]

    def fresh(*flat: Any) -> list[tuple[Layout, Storage]]:
        if plan.outs and _is_plain():
            return _note(plan, flat, compute)
        result = [(t._layout, t._storage) for t in compute(flat)]
        if not plan.outs:  # the engine asks how many results there are, and their layouts
            plan.outs = tuple([layout for layout, _ in result])
            plan.out = plan.outs[0]
        return result

    plan = make(op, HOST, (), fresh=fresh)
    plan.sequence = UNKNOWN  # until its second call
    return plan


def _note(plan: Plan, flat: Sequence[Any], compute: Any) -> list[tuple[Layout, Storage]]:
    """The results of a plan's second call, whose kernels are noted on a tape. Where a tape can say
    what runs, the following calls run that, without the op's Python."""
    noted = Tape(len(flat))
    with running(noted):
        results = compute(flat, noted)
    places = [noted.places.get(id(t)) for t in results]
    if None in places:
        noted.fail("a result from elsewhere")
    if noted.unused:
        noted.fail("a number that is not handed on as it is")

    def plainly(*flat: Any) -> list[tuple[Layout, Storage]]:
        return [(t._layout, t._storage) for t in compute(flat)]

    if noted.why:
        plan.fresh, plan.sequence = plainly, None
    else:
        play = noted.steps.bound(*[p[0] for p in places if p is not None], packed=True)
        whole = [at for place in places if place is not None for at in place]
        plan.sequence = noted.steps.bound(*whole, packed=True)

        def replay(*flat: Any) -> list[tuple[Layout, Storage]]:
            if _is_plain():
                return list(zip(plan.outs, play(*flat)))
            return plainly(*flat)

        plan.fresh = replay
    return [(t._layout, t._storage) for t in results]


def _is_plain() -> bool:
    """Would the op's Python call the same kernels as ever? Not under autocast; and a profile, or a
    tape, is to see what they are."""
    return not (modes.profiled or modes.state.word & ~(modes.NO_GRAD | modes.INFERENCE))


def _whole(result: Tensor) -> Tensor:
    """A result at the beginning of a storage of its own, whose versions begin here."""
    if result._offset or result._base is not None:
        copied: Tensor = T.clone(result)
        return copied
    if result._storage.version > 0:
        result._storage.version = 0
        if tapes.current.tape is not None:
            tapes.current.tape.forget_writes(result)
    return result


def custom_vjp(writes: Sequence[str] = (), **options: Any) -> Callable[[Callable[..., Any]], Op]:
    """Decorates a function of tensors as an op of one node. writes: the tensors, no lists of them,
    that it writes to without a new version of them."""
    planner = partial(plan_opaque, tuple(writes))
    return lambda fn: Op(fn, planner, out=False, outlined=False, **options)  # (planned in Python)
