"""Planning a matrix product: any operands of two dims and more, seen as stacks of matrices.

A device multiplies stacks that one stride walks. Here broadcast and strided batches become that:
a batch beside one matrix (a linear layer) is folded into more rows; the dims of other batches are
merged; only what no single stride can walk is copied to scratch memory first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from antorcha.core import dtypes
from antorcha.core.device import backend
from antorcha.core.loops import collapse, dense_strides
from antorcha.core.shapes import broadcast_shapes
from antorcha.core.structs import replace, struct
from antorcha.errors import DtypeError, MissingFeature, ShapeError
from antorcha.lang import expr as E
from antorcha.lang.kernels import Launch, MatMul, Pointwise
from antorcha.ops.kinds.operands import common_device, expanded, held
from antorcha.ops.kinds.record import Op
from antorcha.ops.kinds.steps import Steps, in_steps
from antorcha.runtime.call.plan import FRESH, Plan, make
from antorcha.runtime.memory import layout as L

if TYPE_CHECKING:
    from antorcha.core.dtypes import dtype as DType
    from antorcha.lang.kernels import Backend
    from antorcha.ops.kinds.arguments import Arguments
    from antorcha.runtime.memory.layout import Layout

Ints = tuple[int, ...]


@struct
class Product:
    """What a product op's function answers: the operands as (..., m, k) and (..., k, n)."""

    a: Layout
    b: Layout
    bias: Layout | None = None  # broadcasts to the result
    alpha: complex = 1
    beta: complex = 1
    hide: Ints = ()  # which of the result's last two dims, -2 and -1, the caller does not see
    node: str = ""  # the grad_fn's name, where it depends on the operands
    order: Ints = (0, 1, 2)  # places of a, b and the bias among the op's tensors


def plan_matmul(op: Op, given: Arguments, outs: tuple[Layout, ...] | None) -> Plan:
    """Plans one matrix product."""
    operands = given.layouts
    device = common_device(op.name, operands)
    check_dtypes(op.name, operands)
    product: Product = op.apply_fn(given.seen)
    for number in (product.alpha, product.beta):
        if number.imag and product.a.dtype.kind != "c":
            raise DtypeError(
                f"{op.name}: alpha and beta must be real numbers for operands of "
                f"{product.a.dtype}, not {number}; make the operands complex first"
            )
    dtype = product.a.dtype
    wide = dtypes.float32 if dtype.kind == "f" and dtype.itemsize == 2 else dtype
    alpha, beta = [held(op.name, wide, number) for number in (product.alpha, product.beta)]
    product = replace(product, alpha=alpha, beta=beta)
    if product.beta == 0:  # a bias of weight 0 is not read: NaN in it does not count
        product = replace(product, bias=None)
    out, launch = plan_product(op.name, product, backend(device), outs)
    order = product.order[: 2 if product.bias is None else 3]
    if order != tuple(range(len(operands))):
        launch = reordered(launch, order, len(operands), out, backend(device))
    shown = op.form(product.node) if product.node else op
    return make(shown, FRESH, (out,), fresh=launch.fresh, into=launch.into)


def product_op(**options: Any) -> Callable[[Any], Op]:
    """Decorates a function of layouts that gives a Product."""
    return lambda fn: Op(fn, plan_matmul, **options)


def check_dtypes(op: str, operands: Sequence[Layout]) -> None:
    """All operands of a product have one dtype, and not bool."""
    first = operands[0].dtype
    for layout in operands[1:]:
        if layout.dtype is not first:
            raise DtypeError(
                "{op}: expected all operands to have the same dtype, but got: {0.dtype} and "
                "{1.dtype} (shapes {0.shape} and {1.shape}). Convert one of them, e.g. {fix}.",
                reason="dtype", op=op, operands=(operands[0], layout),
                fix=_conversion(op, first, layout.dtype),
            )  # fmt: skip
    if first.kind == "b":
        raise MissingFeature(f"{op}: not implemented for bool; use x.to(torch.int64)")


def _conversion(op: str, first: DType, second: DType) -> str:
    """Of two dtypes, the conversion that loses least: integers become floats, data what the weights
    are; otherwise the second becomes what the first is."""
    whole = [dtype.kind in "bui" for dtype in (first, second)]
    if op == "linear" and not whole[1]:
        return f"input.to({second})"
    return f"a.to({second})" if whole == [True, False] else f"b.to({first})"


def reordered(launch: Launch, order: Ints, given: int, out: Layout, device: Backend) -> Launch:
    """A launch whose inputs are these of the caller's, in this order."""

    def write(steps: Steps, outs: list[int], ins: list[int]) -> None:
        steps.into(launch, *outs, *[ins[at] for k in order for at in (2 * k, 2 * k + 1)])

    return in_steps(device, 1, out.nbytes, 2 * given, write)


def inner_sizes_differ(op: str, a: Ints, b: Ints) -> ShapeError:
    """The error of a product whose inner sizes differ, with what would fit."""
    k, other = a[-1], b[-2] if len(b) > 1 else b[0]
    text = "{op}: {0.shape} @ {1.shape}: inner sizes {one} and {other} differ."
    fits = []
    if len(a) == 2 and len(b) == 2:
        if a[1] == b[1]:
            fits.append(f"a @ b.T gives {(a[0], b[0])}")
        if a[0] == b[0]:
            fits.append(f"a.T @ b gives {(a[1], b[1])}")
        if b[1] == a[0]:
            fits.append(f"b @ a gives {(b[0], a[1])}")
        if len(fits) == 3:  # two are enough to remind
            fits.pop()
    reason = "vectors" if len(a) == len(b) == 1 else "matmul"
    return ShapeError(
        text + " {fits}." if fits else text, reason=reason, op=op, operands=(a, b), one=k,
        other=other, fits="; ".join(fits), fix=fits[0].partition(" gives ")[0] if fits else "",
    )  # fmt: skip


def plan_product(
    op: str, p: Product, device: Backend, outs: tuple[Layout, ...] | None
) -> tuple[Layout, Launch]:
    """The result's layout, and a launch over (a, b[, bias])."""
    (m, k), n = p.a.shape[-2:], p.b.shape[-1]
    if p.b.shape[-2] != k:
        raise inner_sizes_differ(op, tuple(p.a.shape), tuple(p.b.shape))
    batch = tuple(broadcast_shapes(p.a.shape[:-2], p.b.shape[:-2], op=op))
    full = (*batch, m, n)
    shown = tuple([s for d, s in enumerate(full, -len(full)) if d not in p.hide])
    fresh = L.contiguous(shown, p.a.dtype, p.a.device)
    out = fresh if outs is None else outs[0]
    if tuple(out.shape) != shown:
        raise ShapeError(f"{op}: output has shape {tuple(out.shape)}, the result {shown}")
    if out.numel == 0:
        return out, Launch(lambda *flat: device.allocate(0), lambda *flat: None)
    if k == 0:
        return out, no_terms(p, out, device)
    bias = None if p.bias is None else expanded(p.bias, shown)
    operands = [expanded(p.a, (*batch, m, k)), expanded(p.b, (*batch, k, n))]
    if bias is not None:
        operands.append(unhidden(bias, full, p.hide))
    target = unhidden(out, full, p.hide)
    what, copied = walkable(p, operands, target)
    scratch: Layout | None = None
    if what is None:  # the caller's out= lies so that it must be written by a copy
        scratch = L.contiguous(full, out.dtype, out.device)
        what, copied = walkable(p, operands, scratch)
    assert what is not None
    half = p.a.dtype.kind == "f" and p.a.dtype.itemsize == 2
    if half and not device.multiplies(what, p.a.dtype):
        return out, in_float32(op, p, out, device)
    launch = device.compile(what, (fresh if scratch else out,), [
        p.a if not copied[0] else copied[0], p.b if not copied[1] else copied[1],
        *([] if bias is None else [copied[2] or p.bias]),
    ])  # fmt: skip
    if any(copied):
        launch = with_copies(launch, operands, copied, fresh if scratch else out, device)
    if scratch is not None:
        launch = through_scratch(launch, fresh, out, 2 * len(operands), device)
    return out, launch


def in_float32(op: str, p: Product, out: Layout, device: Backend) -> Launch:
    """A product of halves: of float32 copies of the operands, rounded once."""
    given = [layout for layout in (p.a, p.b, p.bias) if layout is not None]
    wide = [
        L.layout(
            layout.shape, dense_strides(layout.shape, layout.strides), dtypes.float32, layout.device
        )
        for layout in given
    ]
    bias = None if p.bias is None else wide[2]
    result, product = plan_product(op, replace(p, a=wide[0], b=wide[1], bias=bias), device, None)
    widen = [
        device.compile(Pointwise((E.cast(E.input_(0, layout.dtype), to.dtype),)), (to,), (layout,))
        for layout, to in zip(given, wide, strict=True)
    ]
    rounded = E.cast(E.input_(0, result.dtype), out.dtype)
    narrow = device.compile(Pointwise((rounded,)), (out,), (result,))

    def write(steps: Steps, outs: list[int], ins: list[int]) -> None:
        copies: list[int] = []
        for k, copy in enumerate(widen):
            copies += steps.fresh(copy, ins[2 * k], ins[2 * k + 1])
        steps.into(narrow, *outs, *steps.fresh(product, *copies))

    return in_steps(device, 1, out.nbytes, 2 * len(given), write)


def unhidden(layout: Layout, full: Ints, hide: Ints) -> Layout:
    """A layout with the hidden dims (of size 1) put back."""
    strides = list(layout.strides)
    for d in sorted(hide):
        strides.insert(len(strides) + d + 1 + sum(h > d for h in hide), 0)
    return L.layout(full, tuple(strides), layout.dtype, layout.device)


def walkable(
    p: Product, operands: list[Layout], out: Layout
) -> tuple[MatMul | None, list[Layout | None]]:
    """The description over one stack stride per operand, and which operands to copy for it."""
    for which in ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        if which and which[-1] >= len(operands):
            continue
        copied: list[Layout | None] = [None] * 3
        seen = list(operands)
        for k in which:
            layout = operands[k]
            seen[k] = copied[k] = L.contiguous(layout.shape, layout.dtype, layout.device)
        what = describe(p, seen, out)
        if what is not None:
            return what, copied
    return None, [None] * 3


def describe(p: Product, operands: list[Layout], out: Layout) -> MatMul | None:
    """The operands as stacks of matrices, if every batch can be walked by one stride."""
    a, b, *rest = operands
    *batch, m, n = out.shape
    k = a.shape[-1]
    count = math.prod(batch)
    lead = len(batch)
    alpha, beta = weight(p, p.alpha), weight(p, p.beta)
    if count > 1 and not any(b.strides[:lead]):  # a batch times one matrix: more rows
        rows = [each.strides[:-1] for each in (a, out, *rest)]
        size, steps = collapse((*batch, m), rows)
        if len(size) == 1:
            seen: list[Any] = [
                (0, s[0], each.strides[-1]) for s, each in zip(steps, (a, out, *rest), strict=True)
            ]
            column: Any = (0, *b.strides[-2:])
            bias = seen[2] if rest else None
            return MatMul(1, size[0], n, k, seen[0], column, seen[1], bias, alpha, beta)
    size, steps = collapse(batch, [each.strides[:lead] for each in (a, b, out, *rest)])
    if len(size) > 1:
        return None
    step = [s[0] if s else 0 for s in steps]
    stacks: list[Any] = [
        (s, *each.strides[-2:]) for s, each in zip(step, (a, b, out, *rest), strict=True)
    ]
    bias = stacks[3] if rest else None
    return MatMul(count, m, n, k, stacks[0], stacks[1], stacks[2], bias, alpha, beta)


def weight(p: Product, number: complex) -> complex:
    """``alpha`` or ``beta``: a complex number only where the operands are complex."""
    return complex(number) if p.a.dtype.kind == "c" else float(number.real)


def with_copies(
    launch: Launch, operands: list[Layout], copied: list[Layout | None], out: Layout,
    device: Backend,
) -> Launch:  # fmt: skip
    """The launch, after copying some of its operands to scratch memory."""
    makers = [
        None
        if to is None
        else device.compile(Pointwise((E.input_(0, layout.dtype),)), (to,), (layout,))
        for layout, to in zip(operands, copied, strict=False)
    ]

    def write(steps: Steps, outs: list[int], ins: list[int]) -> None:
        read = list(ins)
        for k, maker in enumerate(makers):
            if maker is not None:
                read[2 * k : 2 * k + 2] = steps.fresh(maker, ins[2 * k], ins[2 * k + 1])
        steps.into(launch, *outs, *read)

    return in_steps(device, 1, out.nbytes, 2 * len(operands), write)


def through_scratch(
    launch: Launch, result: Layout, out: Layout, given: int, device: Backend
) -> Launch:
    """The launch into fresh memory, then copied to where the caller wants it."""
    copy = device.compile(Pointwise((E.input_(0, result.dtype),)), (out,), (result,))

    def write(steps: Steps, outs: list[int], ins: list[int]) -> None:
        steps.into(copy, *outs, *steps.fresh(launch, *ins))

    return Launch(launch.fresh, in_steps(device, 1, out.nbytes, given, write).into)


def no_terms(p: Product, out: Layout, device: Backend) -> Launch:
    """A product over no terms: zeros, or the bias."""
    if p.bias is None:
        zero = device.compile(Pointwise((E.const(0, out.dtype),)), (out,), ())
        return in_steps(device, 1, out.nbytes, 4, lambda steps, outs, _: steps.into(zero, *outs))
    value = E.input_(0, out.dtype)
    scaled = value if p.beta == 1 else value * p.beta
    copy = device.compile(Pointwise((E.cast(scaled, out.dtype),)), (out,),
                          (expanded(p.bias, out.shape),))  # fmt: skip

    def write(steps: Steps, outs: list[int], ins: list[int]) -> None:
        steps.into(copy, *outs, *ins[4:6])

    return in_steps(device, 1, out.nbytes, 6, write)
