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
from typing import TYPE_CHECKING, Any

from antorcha import modes
from antorcha.ops.operands import common_device
from antorcha.ops.params import NUMBER, TENSORS, is_default
from antorcha.ops.record import Op, T
from antorcha.ops.sampler import unrecorded
from antorcha.runtime.call import tape as tapes
from antorcha.runtime.call.plan import HOST, Plan, make
from antorcha.runtime.call.tape import Tape, running
from antorcha.runtime.layout import Layout
from antorcha.runtime.tensor import Tensor, bare

if TYPE_CHECKING:
    from antorcha.runtime.storage import Storage


class OpaqueOp(Op):
    """See the module's docstring."""

    outlined = False  # its plans are Python's

    def __init__(self, fn: Callable[..., Any], **options: Any) -> None:
        super().__init__(fn, out=False, **options)
        assert all([p.code != TENSORS for p in self.signature.params]), "no lists of tensors"

    def make_plan(self, values: list[Any], outs: tuple[Layout, ...] | None) -> Plan:
        params = self.signature.params
        given = [v._layout if isinstance(v, Tensor) else v for v in values]
        tensors = tuple(
            [v if isinstance(v, Layout) else None
             for v, p in zip(given, params, strict=True) if p.code < NUMBER]
        )  # fmt: skip
        common_device(self.name, tensors)
        numbers = [
            k for k, p in enumerate(params)
            if p.code == NUMBER and given[k] is not None and not is_default(p, given[k])
        ]  # fmt: skip

        def compute(flat: Sequence[Any], noted: Tape | None = None) -> list[Tensor]:
            """The results; what runs is noted."""
            args: list[Any] = list(given)
            at = 0
            for k, value in enumerate(given):
                if isinstance(value, Layout):
                    args[k] = tensor = bare(value, flat[at], flat[at + 1])
                    if noted is not None:
                        noted.put(tensor, at, at + 1)
                    at += 2
                elif k in numbers:
                    args[k] = flat[at]
                    at += 1
            with unrecorded():
                found = self.apply_fn(args)
                return [_whole(t) for t in (found if isinstance(found, tuple) else (found,))]

        def fresh(*flat: Any) -> list[tuple[Layout, Storage]]:
            if plan.outs and not numbers and _is_plain():
                return _note(plan, flat, compute)
            made = [(t._layout, t._storage) for t in compute(flat)]
            if not plan.outs:  # the engine asks how many results there are, and their layouts
                plan.outs = tuple([lay for lay, _ in made])
                plan.out = plan.outs[0]
            return made

        statics = {
            p.name: v for k, (p, v) in enumerate(zip(params, given, strict=True))
            if k not in numbers and not isinstance(v, Layout)
        }  # fmt: skip
        plan = make(
            self, HOST, (), fresh=fresh, tensors=tensors, statics=statics, rule=self.rule,
            post_names=tuple([params[k].name for k in numbers]),
        )  # fmt: skip
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

    def plainly(*flat: Any) -> list[tuple[Layout, Storage]]:
        return [(t._layout, t._storage) for t in compute(flat)]

    if noted.why:
        plan.fresh = plainly
    else:
        play = noted.steps.bound(*[p[0] for p in places if p is not None], packed=True)

        def replay(*flat: Any) -> list[tuple[Layout, Storage]]:
            if _is_plain():
                return list(zip(plan.outs, play(*flat)))
            return plainly(*flat)

        plan.fresh = replay
    return [(t._layout, t._storage) for t in results]


def _is_plain() -> bool:
    """Would the op's Python call the same kernels as ever? Not under autocast; and a profile, or a
    tape, is to see what they are."""
    return not (modes.watched or modes.state.word & ~(modes.NO_GRAD | modes.INFERENCE))


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


def opaque(**options: Any) -> Callable[[Callable[..., Any]], OpaqueOp]:
    """Decorates a function of tensors as an op of one node."""
    return lambda fn: OpaqueOp(fn, **options)
