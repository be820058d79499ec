"""Results put together from copies of parts of the operands: cat, stack, roll, repeat, diag_embed.

The record's function gives ``Pieces``: the result's layout, and for the layout that the result has
in the end (``out=`` may have another) the copies that fill it. Each copy is one launch that reads a
strided part of an operand and writes it, cast, into a strided part of the result: nothing is
written twice, and no operand is made contiguous first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from antorcha.device import backend
from antorcha.lang import expr as E
from antorcha.lang.kernels import Launch, Pointwise
from antorcha.ops.operands import check_outs, common_device
from antorcha.ops.params import TENSORS
from antorcha.ops.record import Op
from antorcha.ops.steps import Steps, in_steps
from antorcha.runtime import layout as L
from antorcha.runtime.call.plan import FRESH, Plan, make
from antorcha.runtime.layout import Layout
from antorcha.runtime.tensor import Tensor
from antorcha.structs import struct


class Copy(NamedTuple):
    """A part of operand ``source`` and where it goes: strides and offsets count elements."""

    source: int
    shape: tuple[int, ...]
    read: tuple[int, ...]
    read_at: int
    write: tuple[int, ...]
    write_at: int


@struct
class Pieces:
    """The result's layout; the copies that fill a result of a layout of that shape; and what stands
    where no copy reaches (None: they reach everywhere)."""

    out: Layout
    copies: Callable[[Layout], Sequence[Copy]]
    rest: complex | None = None


class PiecesOp(Op):
    """An op whose result is made of copies of parts of its operands."""

    def make_plan(self, values: list[Any], outs: tuple[Layout, ...] | None) -> Plan:
        seen: list[Any] = []
        tensors: list[Layout] = []
        statics: dict[str, Any] = {}
        for param, value in zip(self.signature.params, values, strict=True):
            if isinstance(value, Tensor):
                tensors.append(value._layout)
                seen.append(value._layout)
            elif param.code == TENSORS:
                lays = tuple([v._layout for v in value])
                tensors += lays
                seen.append(lays)
            else:
                statics[param.name] = value
                seen.append(value)
        common_device(self.name, tensors)
        pieces: Pieces = self.apply_fn(seen)
        out = pieces.out if outs is None else outs[0]
        check_outs(self.name, (pieces.out,), (out,))
        launch = compile_copies(pieces, out, tensors)
        rule = self.rule if out.dtype.kind in "fc" else None
        return make(
            self, FRESH, (out,), fresh=launch.fresh, into=launch.into, tensors=tuple(tensors),
            statics=statics, rule=rule,
        )  # fmt: skip


def compile_copies(pieces: Pieces, out: Layout, tensors: Sequence[Layout]) -> Launch:
    """The launches of all copies as one."""
    where = backend(out.device)
    clear = None
    if pieces.rest is not None:
        clear = where.compile(Pointwise((E.const(pieces.rest, out.dtype),)), (out,), ())
    copies = []
    for each in pieces.copies(out):
        lay = tensors[each.source]
        if 0 in each.shape:
            continue
        part = L.layout(each.shape, each.write, out.dtype, out.device)
        read = L.layout(each.shape, each.read, lay.dtype, lay.device)
        launch = where.compile(Pointwise((E.input_(0, lay.dtype),)), (part,), (read,))
        copies.append((launch, each.write_at, 2 * each.source, each.read_at))

    def write(steps: Steps, outs: list[int], ins: list[int]) -> None:
        if clear is not None:
            steps.into(clear, *outs)
        for launch, write_at, at, read_at in copies:
            source = steps.moved(ins[at : at + 2], read_at)
            steps.into(launch, *steps.moved(outs, write_at), *source)

    return in_steps(where, 1, out.nbytes, 2 * len(tensors), write)


def pieces(**options: Any) -> Callable[[Callable[..., Any]], PiecesOp]:
    """Decorates a function of layouts that gives ``Pieces`` as an op."""
    return lambda fn: PiecesOp(fn, **options)
