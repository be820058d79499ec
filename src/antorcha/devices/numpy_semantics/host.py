"""Running a description with NumPy over storages in host memory.

Slow and obvious: the ``reference`` device is this and nothing else, and the CPU device uses it for
what it has no kernel for. Every launch reads its operands as NumPy arrays that share the storages'
memory, computes, and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from antorcha.core import dtypes, float8
from antorcha.core.memo import keep
from antorcha.devices.numpy_semantics.attention import (
    compute_attention,
    compute_attention_gradient,
)
from antorcha.devices.numpy_semantics.conv import compute_conv, compute_unfold
from antorcha.devices.numpy_semantics.ctc import compute_ctc
from antorcha.devices.numpy_semantics.draw import compute_draw
from antorcha.devices.numpy_semantics.fourier import compute_fourier
from antorcha.devices.numpy_semantics.gather import compute_bags, compute_gather, compute_scatter
from antorcha.devices.numpy_semantics.grid_sample import compute_grid_sample
from antorcha.devices.numpy_semantics.pooling import compute_pooling
from antorcha.devices.numpy_semantics.resample import compute_resample
from antorcha.devices.numpy_semantics.select import compute_bins, compute_replace, compute_select
from antorcha.devices.numpy_semantics.sort import compute_distinct, compute_search, compute_sort
from antorcha.lang import expr as E
from antorcha.lang.kernels import (
    Arrange,
    Attention,
    AttentionGradient,
    Bags,
    Bins,
    Check,
    Conv,
    Description,
    Distinct,
    Draw,
    Folds,
    Fourier,
    Gather,
    Host,
    Launch,
    MatMul,
    Matrices,
    Pointwise,
    Pooling,
    Range,
    Reduce,
    Replace,
    Resample,
    Rows,
    Scan,
    Scatter,
    Search,
    Select,
    Sort,
    TrianglePlaces,
    Unfold,
    Updates,
    is_dynamic,
)
from antorcha.lang.layer_kernels import Ctc, GridSample
from antorcha.runtime.call import plan as plans
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage, as_numpy, new_storage
from antorcha.runtime.sequence import Sequence as Steps

Array = np.ndarray[Any, Any]
Compute = Callable[[list[Any]], Sequence[Any]]


def view(layout: Layout, storage: Storage, offset: int) -> Array:
    """The elements as an array that shares the storage's memory."""
    if layout.numel == 0:
        return np.empty(tuple(layout.shape), layout.dtype.np)
    size = layout.itemsize
    L.check_inside(layout, storage.nbytes, offset)  # NumPy takes 0 bytes for a buffer of any size
    parts = _parts.get(layout)
    if parts is None:
        parts = tuple(layout.shape), _order(layout), layout.dtype.np
        keep(_parts, layout, parts, MOST_KNOWN)
    shape, order, dtype = parts
    if isinstance(order, tuple):
        return as_numpy(storage, offset * size, shape, order, dtype)
    try:
        flat: Array = np.frombuffer(memoryview(storage), dtype, layout.numel, offset * size)
    except ValueError:  # a collection's finalizers have made the storage smaller meanwhile
        L.check_inside(layout, storage.nbytes, offset)
        raise
    return flat if len(shape) == 1 else flat.reshape(shape, order=order)


def _order(layout: Layout) -> Literal["C", "F"] | tuple[int, ...]:
    """Elements by rows ("C") or by columns ("F"), or else the strides in bytes."""
    if layout.contiguous:
        return "C"
    if layout.ndim == 2 and tuple(layout.strides) == (1, layout.shape[0]):
        return "F"
    return tuple([step * layout.itemsize for step in layout.strides])


_parts: dict[
    Layout, tuple[tuple[int, ...], Any, Any]
] = {}  # of arrays: shape, order, NumPy's dtype
plans.on_flush(_parts.clear)
MOST_KNOWN = 4096


def compile_host(what: Description, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    """A launch that computes ``what`` with NumPy."""
    compute = computes(what, outs, ins)
    if isinstance(what, Reduce):
        outs = results_of(what, outs)
    tensor = [isinstance(i, L.Layout) for i in ins]

    def read(flat: Sequence[Any]) -> list[Any]:
        values: list[Any] = []
        at = 0
        for is_tensor, what_in in zip(tensor, ins, strict=True):
            if is_tensor:
                values.append(view(what_in, flat[at], flat[at + 1]))
                at += 2
            else:
                values.append(flat[at])
                at += 1
        return values

    def into(*flat: Any) -> None:
        count = len(outs) * 2
        results = compute(read(flat[count:]))
        for k, (layout, result) in enumerate(zip(outs, results, strict=True)):
            write(view(layout, flat[2 * k], flat[2 * k + 1]), result)

    if is_dynamic(what):
        return Launch(_dynamic(compute, outs, read), into)
    return launch_of(into, outs, ins)


def write(target: Array, value: Any) -> None:
    """Copies what was computed into a result, whose dtype it may not have."""
    if getattr(value, "dtype", None) == target.dtype:
        target[...] = value
        return
    with np.errstate(all="ignore"):
        target[...] = cast_array(np.asarray(value), target.dtype)


def launch_of(into: Callable[..., None], outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    """The launch of a Python function that writes to storages on the host: a sequence of one step,
    which the native call path runs without going through the interpreter before and after it."""
    given = sum([2 if isinstance(i, L.Layout) else 1 for i in ins])
    if len(outs) == 1:
        return in_steps(lambda steps, to, of: steps.into(into, *to, *of), outs[0], given)
    written = Steps(2 * len(outs) + given)
    written.into(into, *range(2 * len(outs) + given))
    return Launch(_no_fresh, written.bound())


def in_steps(
    write: Callable[[Steps, Sequence[int], Sequence[int]], None], out: Layout, given: int
) -> Launch:
    """The launch of the steps that ``write`` adds to a sequence, for the places of the one result
    and of what is given."""
    into, fresh = Steps(2 + given), Steps(given)
    write(into, (0, 1), range(2, 2 + given))
    room = fresh.allocate(out.nbytes, new_storage)
    write(fresh, (room, fresh.constant(0)), range(given))
    return Launch(fresh.bound(room), into.bound())


def _no_fresh(*flat: Any) -> Any:
    raise AssertionError("a launch of several results has no fresh one")


def computes(what: Description, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    """The function of the inputs (arrays, numbers) that gives the outputs as arrays."""
    compute: Compute = _COMPUTE[type(what)](what, outs, ins)
    return compute


def results_of(what: Reduce, outs: Sequence[Layout]) -> list[Layout]:
    """A reduction's outputs as they are written: one element along the reduced dims."""
    return [
        o.like(tuple([1 if d in what.dims else n for d, n in enumerate(o.shape)]), o.strides)
        for o in outs
    ]


def cast_array(array: Array, to: np.dtype[Any]) -> Array:
    """Casts as the kernels do: complex to real drops the imaginary part, bool is != 0."""
    if array.dtype == to:
        return array
    if array.dtype.kind == "c" and to.kind != "c" and to.kind != "b":
        array = array.real
    if array.dtype.kind in "fV" and to.kind in "ui":
        wide = array.astype(np.float64)
        return (
            np.where(np.isfinite(wide), wide, 0).astype(np.int64).astype(to)
            if (to.itemsize < 8)
            else wide.astype(to)
        )
    result: np.ndarray[Any, Any] = float8.cast(array, to)
    return result


def _dynamic(compute: Compute, outs: Sequence[Layout], read: Any) -> Callable[..., Any]:
    def fresh(*flat: Any) -> list[tuple[Layout, Storage]]:
        made = []
        for layout, result in zip(outs, compute(read(flat)), strict=True):
            array = np.ascontiguousarray(result).reshape(np.shape(result))
            out = L.contiguous(array.shape, layout.dtype, layout.device)
            storage = new_storage(out.nbytes)
            view(out, storage, 0)[...] = array
            made.append((out, storage))
        return made

    return fresh


# ------------------------------------------------------------------------------ what is computed
def _pointwise(what: Pointwise, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    exprs = [E.opmath(e) for e in what.exprs]
    shape = outs[0].shape

    def compute(values: list[Any]) -> list[Any]:
        return [np.broadcast_to(E.evaluate(e, values), shape) for e in exprs]

    return compute


def _updates(what: Updates, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    exprs = [E.opmath(e) for e in what.exprs]
    count = len(exprs)
    shapes = [o.shape for o in outs[::count]]

    def compute(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for k, shape in enumerate(shapes):
            own = [*values[what.inputs_of(k)], *values[what.shared]]
            found += [np.broadcast_to(E.evaluate(e, own), shape) for e in exprs]
        return found

    return compute


def _reduce(what: Reduce, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    shape = ins[0].shape
    dims, ndim = what.dims, len(shape)
    kept = [d for d in range(ndim) if d not in dims]
    rows = int(np.prod([shape[d] for d in kept], dtype=np.int64)) if kept else 1
    count = int(np.prod([shape[d] for d in dims], dtype=np.int64)) if dims else 1

    def compute(values: list[Any]) -> list[Any]:
        flat = [
            np.transpose(np.broadcast_to(v, shape), (*kept, *dims)).reshape(rows, count)
            for v in values
        ]
        position = np.broadcast_to(np.arange(count, dtype=np.int64), (rows, count))
        lifted = [np.broadcast_to(E.evaluate(e, [*flat, position]), (rows, count))
                  for e in what.lift]  # fmt: skip
        state = fold_tree(what, lifted, rows)
        n = np.full(rows, count, np.int64)
        small = tuple([1 if d in dims else shape[d] for d in range(ndim)])
        return [np.reshape(E.evaluate(e, [*state, n]), small) if rows == 1 or kept
                else E.evaluate(e, [*state, n]) for e in what.finish]  # fmt: skip

    return compute


def _folds(what: Folds, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    def compute(values: list[Any]) -> list[Any]:
        found = []
        for value in values:
            lifted = [np.atleast_2d(E.evaluate(e, [np.ravel(value)])) for e in what.lift]
            count = np.full(1, np.size(value), np.int64)
            state = fold_tree(what, lifted, 1)
            found.append([E.evaluate(e, [*state, count])[0] for e in what.finish])
        return [np.array(column) for column in zip(*found, strict=True)]

    return compute


def fold_tree(what: Reduce | Folds, state: list[Array], rows: int) -> list[Array]:
    """Merges columns pairwise until one is left."""
    while state[0].shape[1] > 1:
        n = state[0].shape[1]
        half = n // 2
        a = [s[:, : 2 * half : 2] for s in state]
        b = [s[:, 1 : 2 * half : 2] for s in state]
        merged = [np.asarray(E.evaluate(e, [*a, *b])) for e in what.merge]
        if n % 2:
            merged = [np.concatenate([m, s[:, -1:]], 1) for m, s in zip(merged, state, strict=True)]
        state = merged
    if state[0].shape[1] == 0:
        return [np.full(rows, s, e.dtype.np) for s, e in zip(what.start, what.lift, strict=True)]
    return [s[:, 0] for s in state]


def _rows(what: Rows, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    program = what.program.opmath()
    single = len(program.outputs) == 1

    def compute(values: list[Any]) -> list[Any]:
        if not (what.length and all([layout.numel for layout in outs])):
            return [np.zeros(layout.shape, layout.dtype.np) for layout in outs]
        given = [
            v if i.is_row or not isinstance(v, np.ndarray) else v[..., 0]
            for v, i in zip(values, program.inputs, strict=True)
        ]
        found = program.evaluate(given, length=what.length)
        results = [found] if single else list(found)
        return [
            r if is_row else r[..., None] for r, is_row in zip(results, program.rows, strict=True)
        ]

    return compute


def _scan(what: Scan, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    def compute(values: list[Any]) -> list[Any]:
        lines = [np.moveaxis(np.atleast_1d(v), what.dim, -1) for v in values]
        n = lines[0].shape[-1]
        position = np.broadcast_to(np.arange(n, dtype=np.int64), lines[0].shape)
        state = [np.broadcast_to(E.evaluate(e, [*lines, position]), lines[0].shape)
                 for e in what.lift]  # fmt: skip
        if what.reverse:
            state = [s[..., ::-1] for s in state]
        state = [s.copy() for s in state]
        start = [np.full(s.shape[:-1], x, s.dtype) for s, x in zip(state, what.start, strict=True)]
        for i in range(n):
            element = [s[..., i] for s in state]
            start = [np.asarray(E.evaluate(e, [*start, *element])) for e in what.merge]
            for s, each in zip(state, start, strict=True):
                s[..., i] = each
        result = [np.broadcast_to(E.evaluate(e, state), lines[0].shape) for e in what.finish]
        if what.reverse:
            result = [m[..., ::-1] for m in result]
        return [np.moveaxis(m, -1, what.dim).reshape(layout.shape)
                for m, layout in zip(result, outs, strict=True)]  # fmt: skip

    return compute


def _host(what: Host | Matrices, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    run = what.run if isinstance(what, Matrices) else what.fn

    def compute(values: list[Any]) -> list[Any]:
        with np.errstate(all="ignore"):
            results = run(*values)
        return list(results) if isinstance(results, tuple) else [results]

    return compute


def _matmul(what: MatMul, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    half = ins[0].dtype.name in ("float16", "bfloat16")
    sizes = [(what.batch, what.m, what.k), (what.batch, what.k, what.n),
             (what.batch, what.m, what.n)]  # fmt: skip
    steps = [what.a, what.b, what.bias]

    def stack(array: Array, shape: tuple[int, ...], strides: Any) -> Array:
        size = array.itemsize
        result = np.lib.stride_tricks.as_strided(array, shape, [s * size for s in strides])
        return result.astype(np.float32) if half else result

    def compute(values: list[Any]) -> list[Any]:
        a, b, *rest = [stack(v, n, s) for v, n, s in zip(values, sizes, steps, strict=False)]
        result = np.matmul(a, b)
        if what.alpha != 1:
            result = result * result.dtype.type(what.alpha)
        if rest:
            result = result + rest[0] * result.dtype.type(what.beta)
        return [result.reshape(outs[0].shape)]

    return compute


def _conv(what: Conv, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    return compute_conv(what, ins[0].dtype.name in ("float16", "bfloat16"))


def _arrange(what: Arrange, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    kept = {"lower": np.tril, "upper": np.triu}.get(what.triangle)

    def compute(values: list[Any]) -> list[Any]:
        result = np.transpose(np.flip(values[0], what.backwards), what.order)
        return [result if kept is None else kept(result, what.diagonal)]

    return compute


def _range(what: Range, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    start, step, end, n = what.start, what.step, what.end, outs[0].numel
    wide: Any = np.int64 if isinstance(start, int) and isinstance(step, int) else np.float64

    def compute(values: list[Any]) -> list[Any]:
        k = np.arange(n, dtype=wide)
        result = wide(start) + k * wide(step)
        if end is not None:
            result = np.where(k < n // 2, result, wide(end) - (n - 1 - k) * wide(step))
        return [result]

    return compute


def _triangle_places(what: TrianglePlaces, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    find: Any = np.tril_indices if what.side == "lower" else np.triu_indices
    return lambda values: [np.stack(find(what.rows, what.diagonal, what.columns))]


def _check(what: Check, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    def compute(values: list[Any]) -> list[Any]:
        (v,) = values
        wrong = v[(v != what.besides) & ((v < what.low) | (v >= what.high))]
        if wrong.size:
            raise what.refuse(int(wrong.flat[0]))
        return []

    return compute


def _of_outs(compute: Callable[[Any, Sequence[Layout]], Compute]) -> Callable[..., Compute]:
    return lambda what, outs, ins: compute(what, outs)


_COMPUTE: dict[type, Callable[..., Compute]] = {
    Pointwise: _pointwise, Updates: _updates, Reduce: _reduce, Folds: _folds, Rows: _rows,
    Scan: _scan, Host: _host, Matrices: _host, Fourier: _of_outs(compute_fourier), MatMul: _matmul,
    Conv: _conv, Pooling: _of_outs(compute_pooling), Gather: _of_outs(compute_gather),
    Scatter: _of_outs(compute_scatter), Bags: _of_outs(compute_bags), Sort: _of_outs(compute_sort),
    Search: _of_outs(compute_search), Select: _of_outs(compute_select),
    Replace: _of_outs(compute_replace), Distinct: _of_outs(compute_distinct),
    Bins: _of_outs(compute_bins), Arrange: _arrange, Range: _range, Check: _check,
    TrianglePlaces: _triangle_places,
    Unfold: _of_outs(compute_unfold), Resample: _of_outs(compute_resample),
    Attention: _of_outs(compute_attention),
    AttentionGradient: _of_outs(compute_attention_gradient), Draw: compute_draw,
    Ctc: _of_outs(compute_ctc), GridSample: _of_outs(compute_grid_sample),
}  # fmt: skip


class HostBackend:
    """A device in host memory that computes everything with NumPy."""

    host_memory = True

    def __init__(self, name: str) -> None:
        self.name = name

    def compile(self, what: Description, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
        return compile_host(what, outs, ins)

    allocate = staticmethod(new_storage)

    def multiplies(self, what: MatMul, dtype: dtypes.dtype) -> bool:
        return False

    def attends(self, dtype: dtypes.dtype, features: int, gradient: bool) -> bool:
        return False

    def from_host(self, array: Array, out: Layout) -> Storage:
        storage = new_storage(out.nbytes)
        view(out, storage, 0)[...] = array
        return storage

    def to_host(self, layout: Layout, storage: Storage, offset: int) -> Array:
        return view(layout, storage, offset)


_ = dtypes
