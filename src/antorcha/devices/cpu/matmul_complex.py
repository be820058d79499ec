"""Products of complex matrices, by the kernel for real ones.

A complex matrix in memory is a real one with twice as many columns. With a right factor in which
below each row b stands the row i * b, of twice as many rows and columns, the real product of the
two is the complex one: re(c) = re(a) re(b) - im(a) im(b) and im(c) = re(a) im(b) + im(a) re(b) are
its sums, and no operation is in vain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.structs import replace
from antorcha.devices.cpu.matmul import (
    block_words,
    few_as_rows,
    kernel_for,
    rows_in_order,
    shape_of,
    split,
)
from antorcha.devices.cpu.pointwise import compile_pointwise
from antorcha.devices.cpu.template import launch
from antorcha.devices.emit import Unsupported
from antorcha.lang import expr as E
from antorcha.lang.kernels import Launch, MatMul, Pointwise
from antorcha.lang.native import f32, f64
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import new_storage
from antorcha.runtime.sequence import Sequence as Steps

TYPES: dict[str, Any] = {"complex64": f32, "complex128": f64}
Place = tuple[int, int]


def compile_complex(what: MatMul, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    (out,), T = outs, TYPES.get(outs[0].dtype.name)
    if T is None or what.bias is not None:
        raise Unsupported("a complex product with a third operand")
    what, swapped = rows_in_order(what)
    batch, m, n, k = what.batch, what.m, what.n, what.k
    dtype, device = out.dtype, out.device
    a = L.layout((batch, m, k), what.a, dtype, device)
    b = L.layout((batch, k, n), what.b, dtype, device)
    copied = L.contiguous((batch, m, k), dtype, device)
    wide = L.contiguous((batch, k, 2, n), dtype, device)
    left = a if what.a[2] == 1 or k == 1 else copied
    real = replace(
        what, n=2 * n, k=2 * k, a=_twice(left.strides), b=(4 * k * n, 2 * n, 1),
        out=_twice(what.out), alpha=1.0, beta=1.0,
    )  # fmt: skip
    real, turned = few_as_rows(real)
    words = block_words(real, split(real.m, real.n, real.k, batch, shape_of(T)))
    work = batch * m * n * k // 16
    product = launch(kernel_for(T, turned), words, [out], [left, wide], work, what)
    copies = _copied(copied, a) if left is copied else None
    rows = [_scaled(wide, b, factor * what.alpha) for factor in (1, 1j)]

    def write(steps: Steps, out: Place, first: Place, second: Place) -> None:
        x, y = (second, first) if swapped else (first, second)
        start = steps.constant(0)
        room = steps.allocate(wide.nbytes, new_storage)
        steps.into(rows[0].into, room, start, *y)
        steps.into(rows[1].into, room, steps.move(start, n), *y)
        if copies is not None:
            x, source = (steps.allocate(copied.nbytes, new_storage), start), x
            steps.into(copies.into, *x, *source)
        steps.into(product.into, *out, *x, room, start)

    into, fresh = Steps(6), Steps(4)
    write(into, (0, 1), (2, 3), (4, 5))
    result = fresh.allocate(out.nbytes, new_storage), fresh.constant(0)
    write(fresh, result, (0, 1), (2, 3))
    return Launch(fresh.bound(result[0]), into.bound())


def _twice(strides: Sequence[int]) -> tuple[int, int, int]:
    """Strides of complex numbers, rows side by side, as those of real numbers."""
    return 2 * strides[0], 2 * strides[1], 1


def _copied(to: Layout, source: Layout) -> Launch:
    return compile_pointwise(Pointwise((E.input_(0, source.dtype),)), (to,), (source,))


def _scaled(wide: Layout, source: Layout, factor: complex) -> Launch:
    """Every second row of the wide factor: the source's rows times a number."""
    batch, k, n = source.shape
    to = L.layout((batch, k, n), (2 * k * n, 2 * n, 1), wide.dtype, wide.device)
    value = E.input_(0, source.dtype)
    if factor == 1j:  # exactly, for what is no number as well
        value = E.complex(-E.imag(value), E.real(value))
    elif factor != 1:
        value = value * factor
    return compile_pointwise(Pointwise((E.cast(value, wide.dtype),)), (to,), (source,))
