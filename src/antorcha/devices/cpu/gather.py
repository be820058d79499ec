"""The templates of Gather and Scatter: what the walk of ``gather_walk`` is told."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from antorcha.core import dtypes
from antorcha.core.loops import collapse
from antorcha.core.shapes import broadcast_strides
from antorcha.core.structs import replace, struct
from antorcha.devices.cpu.gather_walk import (
    FILL,
    FOLDS,
    GET,
    NOTHING,
    SET,
    GatherWalk,
    bad_index,
    walk_kernel,
)
from antorcha.devices.cpu.native import NativeKernel, compile_native
from antorcha.devices.cpu.pointwise import compile_pointwise
from antorcha.devices.cpu.template import words_of
from antorcha.devices.emit import Unsupported
from antorcha.lang import expr as E
from antorcha.lang.kernels import Gather, Launch, Pointwise, Scatter
from antorcha.lang.native import f64, i64
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import new_storage
from antorcha.runtime.sequence import Sequence as Steps


@struct
class BadIndex:
    """The exception for a kernel's status."""

    refuse: Callable[[int, int], BaseException]

    def __call__(self, status: int) -> BaseException:
        return self.refuse(*bad_index(status))


def compile_gather(what: Gather, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    kernel = gather_kernel(what, outs, ins)
    over = compile_native(what, kernel, outs, ins)
    fresh = compile_native(what, replace(kernel, desc=(0, *kernel.desc[1:])), outs, ins)
    return Launch(fresh.fresh, over.into, (fresh, over))


def compile_scatter(what: Scatter, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    if what.fold == "mean":
        return compile_mean(what, outs, ins)
    return compile_native(what, scatter_kernel(what, outs, ins), outs, ins)


def compile_mean(what: Scatter, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    """A sum, divided by the number of what has arrived at each element."""
    (out,), (x, index, _) = outs, ins
    if what.at is not None or what.source != 2 or x.dtype.kind not in "fiu":
        raise Unsupported
    wide, many = dtypes.int64, L.contiguous(out.shape, dtypes.int64, out.device)
    one = L.contiguous((1,), wide, out.device)
    ones = L.layout(index.shape, (0,) * index.ndim, wide, out.device)
    copy = compile_pointwise(Pointwise((E.input_(0, x.dtype),)), outs, [x])
    add = replace(what, fold="add")
    count = replace(add, own=True)
    add_up = compile_native(add, over_first(scatter_kernel(add, outs, ins)), outs, ins)
    counted = [many], [many, index, ones]
    count_up = compile_native(count, over_first(scatter_kernel(count, *counted)), *counted)
    begin, each = [
        compile_pointwise(Pointwise((E.const(number, wide),)), [layout], [])
        for number, layout in ((int(what.own), many), (1, one))
    ]
    work = x.dtype
    if work.itemsize < 8:
        work = wide if work.kind != "f" else dtypes.float32 if work.itemsize < 4 else work
    total, n = E.input_(0, work), E.cast(E.maximum(E.input_(1, wide), 1), work)
    mean = total / n if work.kind == "f" else total // n
    divide = compile_pointwise(Pointwise((mean,)), outs, [out, many])

    def write(steps: Steps, to: list[int], given: list[int]) -> None:
        start = steps.constant(0)
        counts = [steps.allocate(many.nbytes, new_storage), start]
        single = [steps.allocate(one.nbytes, new_storage), start]
        if out.shape == x.shape and out.strides == x.strides:
            steps.unless_same(*to, *given[:2])
        steps.into(copy.into, *to, *given[:2])
        steps.into(add_up.into, *to, *given)
        steps.into(begin.into, *counts)
        steps.into(each.into, *single)
        steps.into(count_up.into, *counts, *counts, *given[2:4], *single)
        steps.into(divide.into, *to, *to, *counts)

    into, fresh = Steps(8), Steps(6)
    write(into, [0, 1], [*range(2, 8)])
    room = fresh.allocate(out.nbytes, new_storage)
    write(fresh, [room, fresh.constant(0)], [*range(6)])
    return Launch(fresh.bound(room), into.bound())


def over_first(kernel: NativeKernel) -> NativeKernel:
    """The kernel for a first output that has the first input's elements already."""
    return replace(kernel, preload=False)


def gather_kernel(what: Gather, outs: Sequence[Layout], ins: Sequence[Any]) -> NativeKernel:
    if not what.dims:
        return gather_kernel(replace(what, dims=(0,)), flattened(outs), flattened(ins))
    x, *indices = ins
    buffers: dict[str, Any] = {"at": 1, "values": 0, "first": 2}
    if what.at is None:
        return element_kernel(GET, what, x, indices[0], outs[0], buffers)
    return block_kernel(GET, what, x, indices, outs[0], buffers)


def scatter_kernel(what: Scatter, outs: Sequence[Layout], ins: Sequence[Any]) -> NativeKernel:
    if what.fold not in (SET, *FOLDS):
        raise Unsupported
    if not what.dims:
        return scatter_kernel(replace(what, dims=(0,)), flattened(outs), flattened(ins))
    indices = [*ins[1:]]
    source = indices.pop(what.source - 1)
    buffers: dict[str, Any] = {
        "at": 0,
        "values": 1 + what.source,
        "first": 2 if what.source > 1 else 3,
    }
    if what.at is None:
        mode = FILL if isinstance(source, type) else what.fold
        return element_kernel(mode, what, outs[0], indices[0], source, buffers)
    if isinstance(source, type) or not what.own:
        raise Unsupported
    return block_kernel(what.fold, what, outs[0], indices, source, buffers)


def flattened(layouts: Sequence[Layout]) -> list[Layout]:
    """Layouts seen as one dim."""
    if not all([layout.contiguous for layout in layouts]):
        raise Unsupported
    return [L.contiguous((layout.numel,), layout.dtype, layout.device) for layout in layouts]


def block_kernel(
    mode: str, what: Gather | Scatter, big: Layout, indices: Sequence[Layout], values: Layout,
    buffers: dict[str, Any],
) -> NativeKernel:  # fmt: skip
    """The kernel for blocks of the big tensor at positions that index tensors say together."""
    dtype = indices[0].dtype
    spanned = values.ndim - (max(big.ndim, 1) - len(what.dims))  # dims of the index in the values
    alike = all([i.dtype is dtype and i.ndim <= max(spanned, 0) for i in indices])
    if not alike or what.at is None or spanned < 0 or len(indices) > 15:
        raise Unsupported
    at, end = what.at, what.at + spanned
    common = tuple(values.shape[at:end])
    kept = [s for d, s in enumerate(big.strides) if d not in what.dims]
    columns = [[*kept[:at], *[0] * spanned, *kept[at:]], values.strides]
    for index in indices:
        steps = broadcast_strides(index.shape, index.strides, common)
        columns.append([*[0] * at, *steps, *[0] * (values.ndim - end)])
    skipped = getattr(what, "skipped", None)
    template = partial(GatherWalk, mode, big, indices[0], len(indices), negative=what.negative,
                       skips=skipped is not None, **buffers)  # fmt: skip
    places = [(big.shape[d], big.strides[d]) if big.ndim else (1, 0) for d in what.dims]
    work = max(values.numel, *[index.numel for index in indices])
    return walk(template, what, values.shape, columns, (at, end), places, work)


def element_kernel(
    mode: str, what: Gather | Scatter, big: Layout, index: Layout, values: Layout | type,
    buffers: dict[str, Any],
) -> NativeKernel:  # fmt: skip
    """The kernel for an index that says for each element where it is; ``values`` is the type of a
    number in mode "fill"."""
    if big.ndim == 0 or index.ndim == 0 or not index.numel:
        raise Unsupported
    kind = None
    if isinstance(values, type):
        if values is complex:
            raise Unsupported
        kind = f64 if values is float else i64
        steps: Any = (0,) * index.ndim
    elif values.ndim == 0:
        raise Unsupported
    else:
        steps = values.strides
    dim = what.dims[0]
    across = [0 if d == dim else s for d, s in enumerate(big.strides)]
    template = partial(GatherWalk, mode, big, index, 1, negative=what.negative, number=kind,
                       own=getattr(what, "own", True), **buffers)  # fmt: skip
    places = [(big.shape[dim], big.strides[dim])]
    columns = [across, steps, index.strides]
    return walk(template, what, index.shape, columns, (dim, dim + 1), places, index.numel)


def walk(
    template: Callable[..., GatherWalk], what: Gather | Scatter, shape: Sequence[int],
    columns: Sequence[Any], indexed: tuple[int, int], places: Sequence[tuple[int, int]], work: int,
) -> NativeKernel:  # fmt: skip
    """The kernel that walks over a shape. ``columns``: the steps of the big tensor, the values and
    the index tensors; ``indexed``: which dims are those of the index tensors; ``places``: the sizes
    and steps of the dims that these stand for."""
    if 0 in shape:  # there may be indices to check all the same
        raise Unsupported
    at, end = indexed
    groups = [
        collapse(shape[a:b], [column[a:b] for column in columns])
        for a, b in ((0, at), (at, end), (end, len(shape)))
    ]
    sizes = [size for each, _ in groups for size in each]
    steps = [[s for _, merged in groups for s in merged[k]] for k in range(len(columns))]
    together = math.prod(sizes[len(groups[0][0]) : -1])
    if not sizes:
        sizes, steps = [1], [[0] for _ in columns]
    inner = [each[-1] for each in steps]
    P = template(row=not any(inner[2:]), cut=bool(groups[2][0]) or not groups[1][0])
    skipped = getattr(what, "skipped", None)
    desc = [1, len(sizes) - 1, sizes[-1], together, NOTHING if skipped is None else skipped, *inner]
    for place in places:
        desc += place
    desc += words_of(sizes[:-1], [each[:-1] for each in steps])
    return NativeKernel(walk_kernel, {"P": P}, tuple(desc), BadIndex(what.refuse), work,
                        preload=P.mode != GET)  # fmt: skip
