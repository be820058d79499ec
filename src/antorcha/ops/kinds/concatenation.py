"""Results put together from copies of parts of the operands: cat, stack, roll, repeat, diag_embed.

The record's function gives ``Pieces``: the result's layout, and for the layout that the result has
in the end (``out=`` may have another) the copies that fill it. Each copy is one launch that reads a
strided part of an operand and writes it, cast, into a strided part of the result: nothing is
written twice, and no operand is made contiguous first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from antorcha.core.device import backend
from antorcha.core.structs import struct
from antorcha.lang import expr as E
from antorcha.lang.kernels import Launch, Pointwise
from antorcha.ops.kinds.arguments import Arguments
from antorcha.ops.kinds.operands import check_outs, common_device
from antorcha.ops.kinds.record import Op
from antorcha.ops.kinds.steps import Steps, in_steps
from antorcha.runtime.call.plan import FRESH, Plan, make
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout


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


def plan_pieces(op: Op, given: Arguments, outs: tuple[Layout, ...] | None) -> Plan:
    """Plans a result made of copies of parts of the operands."""
    common_device(op.name, given.tensors)
    pieces: Pieces = op.apply_fn(given.seen)
    out = pieces.out if outs is None else outs[0]
    check_outs(op.name, (pieces.out,), (out,))
    launch = compile_copies(pieces, out, given.layouts)
    return make(op, FRESH, (out,), fresh=launch.fresh, into=launch.into)


def compile_copies(pieces: Pieces, out: Layout, tensors: Sequence[Layout]) -> Launch:
    """The launches of all copies as one."""
    where = backend(out.device)
    clear = None
    if pieces.rest is not None:
        clear = where.compile(Pointwise((E.const(pieces.rest, out.dtype),)), (out,), ())
    copies = []
    for each in pieces.copies(out):
        layout = tensors[each.source]
        if 0 in each.shape:
            continue
        part = L.layout(each.shape, each.write, out.dtype, out.device)
        read = L.layout(each.shape, each.read, layout.dtype, layout.device)
        launch = where.compile(Pointwise((E.input_(0, layout.dtype),)), (part,), (read,))
        copies.append((launch, each.write_at, 2 * each.source, each.read_at))

    def write(steps: Steps, outs: list[int], ins: list[int]) -> None:
        if clear is not None:
            steps.into(clear, *outs)
        for launch, write_at, at, read_at in copies:
            source = steps.moved(ins[at : at + 2], read_at)
            steps.into(launch, *steps.moved(outs, write_at), *source)

    return in_steps(where, 1, out.nbytes, 2 * len(tensors), write)


def pieces(**options: Any) -> Callable[[Callable[..., Any]], Op]:
    """Decorates a function of layouts that gives ``Pieces`` as an op."""
    return lambda fn: Op(fn, plan_pieces, **options)
