"""The device ``mps``: descriptions computed by MLX; NumPy does the rest, on copies on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.devices.emit import Unsupported
from antorcha.devices.gpu.fallback import compile_on_host
from antorcha.devices.gpu.host_numbers import compile_beside_host
from antorcha.devices.mps import memory
from antorcha.devices.mps.draws import compute_draw
from antorcha.devices.mps.expressions import Compute, cast, compute_pointwise
from antorcha.devices.mps.folds import compute_reduce, compute_rows, compute_scan
from antorcha.devices.mps.indexing import (
    compute_gather,
    compute_replace,
    compute_scatter,
    compute_select,
)
from antorcha.devices.mps.library import NAMES, check_dtype, require, running
from antorcha.devices.mps.moves import compute_arrange, compute_check, compute_range
from antorcha.devices.mps.ordering import (
    compute_bins,
    compute_distinct,
    compute_search,
    compute_sort,
)
from antorcha.devices.mps.products import (
    compute_attention,
    compute_conv,
    compute_fourier,
    compute_matmul,
)
from antorcha.devices.mps.windows import compute_pooling, compute_resample, compute_unfold
from antorcha.devices.numpy_semantics.host import results_of
from antorcha.lang.kernels import (
    Arrange,
    Attention,
    Bins,
    Check,
    Conv,
    Description,
    Distinct,
    Draw,
    Fourier,
    Gather,
    Launch,
    MatMul,
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
    Unfold,
    is_dynamic,
)
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage

COMPUTES: dict[type, Callable[..., Compute]] = {
    Pointwise: compute_pointwise, Reduce: compute_reduce, Rows: compute_rows, Scan: compute_scan,
    MatMul: compute_matmul, Conv: compute_conv, Attention: compute_attention,
    Fourier: compute_fourier, Gather: compute_gather, Scatter: compute_scatter,
    Select: compute_select, Replace: compute_replace, Sort: compute_sort, Search: compute_search,
    Arrange: compute_arrange, Range: compute_range, Check: compute_check,
    Pooling: compute_pooling, Unfold: compute_unfold, Resample: compute_resample,
    Distinct: compute_distinct, Bins: compute_bins, Draw: compute_draw,
}  # fmt: skip
"""What MLX computes, by description: (what, outs, ins) -> a function of arrays and numbers, or
Unsupported."""


class MLXBackend:
    """The device ``mps``."""

    name = "mps"
    host_memory = False

    def compile(self, what: Description, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
        beside = compile_beside_host(self, what, outs, ins)
        if beside is not None:
            return beside
        layouts = [each for each in (*outs, *ins) if isinstance(each, Layout)]
        for each in layouts:
            check_dtype(each.dtype)
        try:
            make = COMPUTES.get(type(what))
            if make is None:
                raise Unsupported("MLX has nothing for it")
            for each in layouts:
                if each.dtype.name not in NAMES:
                    raise Unsupported(each.dtype.name)
            with running():
                compute = make(what, outs, ins)
        except Unsupported as error:
            return compile_on_host(self, what, outs, ins, str(error))
        return launch_of(what, compute, outs, ins)

    def multiplies(self, what: MatMul, dtype: dtypes.dtype) -> bool:
        return True

    def attends(self, dtype: dtypes.dtype, features: int, gradient: bool) -> bool:
        return False

    def allocate(self, nbytes: int) -> Storage:
        return memory.new_storage(nbytes)

    check_dtype = staticmethod(check_dtype)
    from_host = staticmethod(memory.from_host)
    to_host = staticmethod(memory.to_host)
    write = staticmethod(memory.write_from_host)


_backend = MLXBackend()


def backend_here() -> MLXBackend:
    """The backend; RuntimeError where there is no such GPU, or no MLX."""
    require()
    return _backend


def reading(what: Description, ins: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
    """A function of a launch's flat arguments that gives the inputs: arrays and numbers."""
    forms: list[Any] = [(i.shape, i.strides) if isinstance(i, Layout) else None for i in ins]
    if isinstance(what, MatMul):
        sizes = [(what.batch, what.m, what.k), (what.batch, what.k, what.n),
                 (what.batch, what.m, what.n)]  # fmt: skip
        forms = [(n, s) for n, s in zip(sizes, (what.a, what.b, what.bias), strict=True)
                 if s is not None]  # fmt: skip

    def read(flat: Sequence[Any]) -> list[Any]:
        values: list[Any] = []
        at = 0
        for each, form in zip(ins, forms, strict=True):
            if form is None:
                values.append(flat[at])
                at += 1
                continue
            shape, strides = form
            values.append(
                memory.read_strided(each.dtype, shape, strides, flat[at], flat[at + 1])
                if isinstance(what, MatMul) else memory.read(each, flat[at], flat[at + 1])
            )  # fmt: skip
            at += 2
        return values

    return read


def launch_of(
    what: Description, compute: Compute, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch:
    """A launch that reads the inputs, notes what to compute, and puts it in the outputs' place."""
    read = reading(what, ins)
    if isinstance(what, Reduce):
        outs = results_of(what, outs)

    def into(*flat: Any) -> None:
        with running():
            results = compute(read(flat[2 * len(outs) :]))
            for k, (layout, result) in enumerate(zip(outs, results, strict=True)):
                memory.write(cast(result, layout.dtype), layout, flat[2 * k], flat[2 * k + 1])

    def fresh(*flat: Any) -> Storage:
        storage = memory.new_storage(outs[0].nbytes)
        into(storage, 0, *flat)
        return storage

    def fresh_of_any_size(*flat: Any) -> list[tuple[Layout, Storage]]:
        found = []
        with running():
            for layout, result in zip(outs, compute(read(flat)), strict=True):
                out = L.contiguous(tuple(result.shape), layout.dtype, layout.device)
                storage = memory.new_storage(out.nbytes)
                memory.write(cast(result, layout.dtype), out, storage, 0)
                found.append((out, storage))
        return found

    return Launch(fresh_of_any_size if is_dynamic(what) else fresh, into)
