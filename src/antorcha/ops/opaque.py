"""Ops that run other ops, but are one node of the graph with a derivative of its own.

The function takes tensors and calls ops, as a composite's does; what it calls is not recorded. Its
results are fresh tensors. The rule below it is the op's derivative::

    @opaque(node="native_group_norm")
    def native_group_norm(input: Tensor, ...): ...

    @native_group_norm.derivative
    def _(g, input, ...): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from antorcha.ops.operands import common_device
from antorcha.ops.params import NUMBER, TENSORS, is_default
from antorcha.ops.record import Op, T
from antorcha.ops.sampler import unrecorded
from antorcha.runtime.call.plan import HOST, Plan, make
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

        def fresh(*flat: Any) -> list[tuple[Layout, Storage]]:
            args, at = list(given), 0
            for k, value in enumerate(given):
                if isinstance(value, Layout):
                    args[k] = bare(value, flat[at], flat[at + 1])
                    at += 2
                elif k in numbers:
                    args[k] = flat[at]
                    at += 1
            with unrecorded():
                found = self.apply_fn(args)
            results = found if isinstance(found, tuple) else (found,)
            made = [_whole(each) for each in results]
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


def _whole(result: Tensor) -> tuple[Layout, Storage]:
    """A result's layout over a storage that begins with it."""
    if result._offset or result._base is not None:
        result = T.clone(result)
    return result._layout, result._storage


def opaque(**options: Any) -> Callable[[Callable[..., Any]], OpaqueOp]:
    """Decorates a function of tensors as an op of one node."""
    return lambda fn: OpaqueOp(fn, **options)
