"""The templates of Gather and Scatter.

``blocks``: index tensors choose positions along some dims of a big tensor; the block of its other
dims at each position is read, written or added to. ``elements``: an index as large as the result
says, element by element, where along one dim.

Every index is checked before anything is written. A bad one is returned as the kernel's status,
together with which index tensor it is in; ``bad_index`` takes it apart again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.structs import replace, struct
from antorcha.devices.cpu.emit import NUMBERS, WORDS, Unsupported
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.lang.kernels import Gather, Launch, Scatter
from antorcha.lang.native import (
    f64,
    i32,
    i64,
    inline,
    memcpy,
    native,
    ptr,
    raw,
    static,
)
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout

GET, SET, ADD, FILL = "get", "set", "add", "fill"
NOTHING = -(1 << 62)  # no index: none is skipped
BIAS = 1 << 51
MOST = 1 << 50


@inline
def status(index, k):
    """A bad index, in the k-th index tensor, as a number that is not 0."""
    kept = index
    if kept > MOST:
        kept = i64(MOST)
    if kept < -MOST:
        kept = i64(-MOST)
    return (kept + BIAS) * 16 + k


def bad_index(code: int) -> tuple[int, int]:
    """The index and the number of its tensor, of a status."""
    return code // 16 - BIAS, code % 16


@inline
def put(a, v, MODE, LOGICAL):
    """One element: a is the big tensor's, v the other's."""
    if MODE == "get":
        v[0] = a[0]
    elif MODE == "set":
        a[0] = v[0]
    elif LOGICAL:
        a[0] = a[0] | v[0]
    else:
        a[0] = a[0] + v[0]


@inline
def line(a, v, n, step_a, step_v, T, MODE, LOGICAL):
    """n elements, at steps of their own; the common case of both 1 is a copy, or a loop of its
    own."""
    if step_a == 1 and step_v == 1 and MODE == "get":
        memcpy(raw(v), raw(a), n * T.size)
    elif step_a == 1 and step_v == 1:
        for j in range(n):
            put(a + j, v + j, MODE, LOGICAL)
    else:
        for j in range(n):
            put(a + j * step_a, v + j * step_v, MODE, LOGICAL)


@inline
def outer_offset(row, desc, dims, at):
    """The offset of the row-th line: dims (size, step..) triples at ``at`` but the last."""
    rest = row + 0
    offset = i64(0)
    for back in range(dims - 1):
        d = dims - 2 - back
        size = desc[3 * d]
        offset += rest % size * desc[3 * d + at]
        rest = rest // size
    return offset


@native
def blocks(
    bufs: ptr[raw], desc: ptr[i64], *, T, I, K, AT, VALUES, INDEX, MODE, LOGICAL, NEGATIVE
) -> i64:
    """desc: positions, step of the values per position, lines a block, dims of a block, skipped
    index (or -1), then (size, step) per index tensor, then (size, step in the big tensor, step in
    the values) per dim."""
    count = desc[0]
    step = desc[1]
    lines = desc[2]
    dims = desc[3]
    skipped = desc[4]
    where = desc + 5
    block = desc + 5 + 2 * K
    for k in static(range(K)):
        index = ptr[I](bufs[INDEX + k])
        size = where[2 * k]
        for b in range(count):
            i = i64(index[b])
            if i < (-size if NEGATIVE else 0) or i >= size:
                return status(i, k)
    big = ptr[T](bufs[AT])
    values = ptr[T](bufs[VALUES])
    n = block[3 * dims - 3]
    step_a = block[3 * dims - 2]
    step_v = block[3 * dims - 1]
    for b in range(count):
        a = big + 0
        keep = True
        for k in static(range(K)):
            i = i64(ptr[I](bufs[INDEX + k])[b])
            if i == skipped:
                keep = False
            if i < 0:
                i += where[2 * k]
            a = a + i * where[2 * k + 1]
        if keep:
            v = values + b * step
            for row in range(lines):
                line(
                    a + outer_offset(row, block, dims, 1),
                    v + outer_offset(row, block, dims, 2),
                    n,
                    step_a,
                    step_v,
                    T,
                    MODE,
                    LOGICAL,
                )
    return 0


@inline
def number(at, T, N, LOGICAL):
    """The Python number at an address as an element."""
    value = ptr[N](at)[0]
    if LOGICAL:
        return T(1) if value != N(0) else T(0)
    return T(value)


@native
def elements(
    bufs: ptr[raw], desc: ptr[i64], *, T, I, AT, VALUES, INDEX, MODE, LOGICAL, N=i64
) -> i64:
    """Mode "fill" writes one number of type N. desc: lines, dims, size and step along the dim, then
    (size, step in the big tensor, step in the values, step in the index) per dim of the index."""
    lines = desc[0]
    dims = desc[1]
    size = desc[2]
    step = desc[3]
    walk = desc + 4
    last = walk + 4 * (dims - 1)
    n = last[0]
    step_a = last[1]
    step_v = last[2]
    step_i = last[3]
    index = ptr[I](bufs[INDEX])
    for row in range(lines):
        rest = row + 0
        p = index + 0
        for back in range(dims - 1):
            d = 4 * (dims - 2 - back)
            p = p + rest % walk[d] * walk[d + 3]
            rest = rest // walk[d]
        for j in range(n):
            i = i64(p[j * step_i])
            if i < 0 or i >= size:
                return status(i, 0)
    big = ptr[T](bufs[AT])
    values = ptr[T](bufs[VALUES])
    for row in range(lines):
        rest = row + 0
        p = index + 0
        a = big + 0
        v = values + 0
        for back in range(dims - 1):
            d = 4 * (dims - 2 - back)
            place = rest % walk[d]
            p = p + place * walk[d + 3]
            a = a + place * walk[d + 1]
            v = v + place * walk[d + 2]
            rest = rest // walk[d]
        for j in range(n):
            i = i64(p[j * step_i])
            if MODE == "fill":
                a[i * step + j * step_a] = number(bufs[VALUES], T, N, LOGICAL)
            else:
                put(a + i * step + j * step_a, v + j * step_v, MODE, LOGICAL)
    return 0


# ------------------------------------------------------------------------------- descriptions
@struct
class BadIndex:
    """The exception for a kernel's status."""

    refuse: Callable[[int, int], BaseException]

    def __call__(self, status: int) -> BaseException:
        return self.refuse(*bad_index(status))


def compile_gather(what: Gather, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    return compile_native(what, gather_kernel(what, outs, ins), outs, ins)


def compile_scatter(what: Scatter, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    return compile_native(what, scatter_kernel(what, outs, ins), outs, ins)


def gather_kernel(what: Gather, outs: Sequence[Layout], ins: Sequence[Any]) -> NativeKernel:
    if not what.dims:
        return gather_kernel(replace(what, dims=(0,)), flattened(outs), flattened(ins))
    x, *indices = ins
    buffers = {"AT": 1, "VALUES": 0, "INDEX": 2}
    if what.at is None:
        return element_kernel(GET, what, x, indices[0], outs[0], buffers)
    return block_kernel(GET, what, x, indices, outs[0], buffers)


def scatter_kernel(what: Scatter, outs: Sequence[Layout], ins: Sequence[Any]) -> NativeKernel:
    if what.fold not in (SET, ADD) or not what.own:
        raise Unsupported
    if not what.dims:
        return scatter_kernel(replace(what, dims=(0,)), flattened(outs), flattened(ins))
    indices = [*ins[1:]]
    source = indices.pop(what.source - 1)
    buffers = {"AT": 0, "VALUES": 1 + what.source, "INDEX": 2 if what.source > 1 else 3}
    if what.at is None:
        mode = FILL if isinstance(source, type) else what.fold
        return element_kernel(mode, what, outs[0], indices[0], source, buffers)
    if isinstance(source, type):
        raise Unsupported
    return block_kernel(what.fold, what, outs[0], indices, source, buffers)


def flattened(layouts: Sequence[Layout]) -> list[Layout]:
    """Layouts seen as one dim."""
    if not all([layout.contiguous for layout in layouts]):
        raise Unsupported
    return [L.contiguous((layout.numel,), layout.dtype, layout.device) for layout in layouts]


def options_of(mode: str, big: Layout, index: Layout, buffers: dict[str, int]) -> dict[str, Any]:
    """What fixes either kernel: moving needs no more than an element's size."""
    add = mode in (ADD, FILL)
    result = NUMBERS.get(big.dtype.name) if add else WORDS.get(big.itemsize)
    if result is None:
        raise Unsupported
    return {
        "T": result, "I": i32 if index.dtype.name == "int32" else i64, "MODE": mode,
        "LOGICAL": big.dtype.kind == "b", **buffers,
    }  # fmt: skip


def lines_of(sizes: tuple[int, ...]) -> int:
    """All dims but the last."""
    return 0 if 0 in sizes else math.prod(sizes[:-1])


def block_kernel(
    mode: str, what: Gather | Scatter, big: Layout, indices: Sequence[Layout], values: Layout,
    buffers: dict[str, int],
) -> NativeKernel:  # fmt: skip
    """The kernel ``blocks``, for index tensors that lie alike."""
    index = indices[0]
    alike = all([i.contiguous and i.shape == index.shape and i.dtype is index.dtype
                 for i in indices])  # fmt: skip
    spanned = values.ndim - (max(big.ndim, 1) - len(what.dims))  # dims of the index in the values
    if not alike or what.at is None or spanned < 0 or len(indices) > 15:
        raise Unsupported
    options = options_of(mode, big, index, buffers)
    first, end = what.at, what.at + spanned
    merged, (steps,) = collapse(values.shape[first:end], [values.strides[first:end]])
    if len(merged) > 1:
        raise Unsupported
    kept = [d for d in range(big.ndim) if d not in what.dims]
    rest = [d for d in range(values.ndim) if not first <= d < end]
    sizes, (big_steps, value_steps) = collapse(
        [big.shape[d] for d in kept],
        [[big.strides[d] for d in kept], [values.strides[d] for d in rest]],
    )
    if not sizes:
        sizes, big_steps, value_steps = (1,), (0,), (0,)
    skipped = getattr(what, "skipped", None)
    desc = [index.numel, steps[0] if steps else 0, lines_of(sizes), len(sizes),
            NOTHING if skipped is None else skipped]  # fmt: skip
    for d in what.dims:
        desc += (big.shape[d], big.strides[d]) if big.ndim else (1, 0)
    for each in zip(sizes, big_steps, value_steps, strict=True):
        desc += each
    options |= {"K": len(indices), "NEGATIVE": what.negative}
    return NativeKernel(
        blocks, options, tuple(desc), BadIndex(what.refuse), max(values.numel, index.numel),
        preload=mode != GET,
    )  # fmt: skip


def element_kernel(
    mode: str, what: Gather | Scatter, big: Layout, index: Layout, values: Layout | type,
    buffers: dict[str, int],
) -> NativeKernel:  # fmt: skip
    """The kernel ``elements``; ``values`` is the type of a number in mode "fill"."""
    if big.ndim == 0 or index.ndim == 0 or not index.numel:
        raise Unsupported
    options = options_of(mode, big, index, buffers)
    if isinstance(values, type):
        if values is complex:
            raise Unsupported
        options["N"] = f64 if values is float else i64
        value_steps: Any = (0,) * index.ndim
    elif values.ndim == 0:
        raise Unsupported
    else:
        value_steps = values.strides
    dim = what.dims[0]
    steps = tuple([0 if d == dim else s for d, s in enumerate(big.strides)])
    sizes, (a, v, i) = collapse(index.shape, [steps, value_steps, index.strides])
    if not sizes:
        sizes, a, v, i = (1,), (0,), (0,), (0,)
    desc = [lines_of(sizes), len(sizes), big.shape[dim], big.strides[dim]]
    for each in zip(sizes, a, v, i, strict=True):
        desc += each
    return NativeKernel(
        elements, options, tuple(desc), BadIndex(what.refuse), index.numel,
        preload=mode != GET,
    )  # fmt: skip
