"""The CPU device: descriptions compiled to machine code with explicit vectors.

Each kind of description has a template, a native function in this folder. What no template covers
(complex numbers, rare functions) is computed by NumPy over the same memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.core.lazy import lazy
from antorcha.devices.cpu.convolution import compile_conv
from antorcha.devices.cpu.matmul import compile_matmul
from antorcha.devices.cpu.pointwise import compile_pointwise
from antorcha.devices.cpu.reduce import compile_reduce
from antorcha.devices.cpu.rows import compile_rows
from antorcha.devices.cpu.scan import compile_scan
from antorcha.devices.emit import Unsupported
from antorcha.devices.numpy_semantics.host import HostBackend, compile_host
from antorcha.lang.kernels import (
    Arrange,
    Attention,
    Bags,
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
)
from antorcha.lang.layer_kernels import Ctc, GridSample
from antorcha.runtime.memory.layout import Layout

Template = Callable[[Any, Sequence[Layout], Sequence[Any]], Launch]


def _deferred(module: str, name: str) -> Template:
    """A template whose module is imported when it is first needed."""
    found = lazy(f"antorcha.devices.cpu.{module}")

    def template(what: Any, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
        launch: Launch = getattr(found, name)(what, outs, ins)
        return launch

    return template


TEMPLATES: dict[type, Template] = {
    Pointwise: compile_pointwise,
    Reduce: compile_reduce,
    Rows: compile_rows,
    Scan: compile_scan,
    Draw: _deferred("draw", "compile_draw"),
    MatMul: compile_matmul,
    Fourier: _deferred("fourier", "compile_fourier"),
    Matrices: _deferred("small_linalg", "compile_matrices"),
    Conv: compile_conv,
    Attention: _deferred("attention", "compile_attention"),
    Pooling: _deferred("pooling", "compile_pooling"),
    Resample: _deferred("resample", "compile_resample"),
    Gather: _deferred("gather", "compile_gather"),
    Scatter: _deferred("gather", "compile_scatter"),
    Bags: _deferred("bags", "compile_bags"),
    Sort: _deferred("sort", "compile_sort"),
    Search: _deferred("search", "compile_search"),
    Select: _deferred("select", "compile_select"),
    Replace: _deferred("select", "compile_replace"),
    Distinct: _deferred("distinct", "compile_distinct"),
    Bins: _deferred("search", "compile_bins"),
    Arrange: _deferred("arrange", "compile_arrange"),
    Range: _deferred("ranges", "compile_range"),
    TrianglePlaces: _deferred("ranges", "compile_triangle_places"),
    Check: _deferred("check", "compile_check"),
    Ctc: _deferred("ctc", "compile_ctc"),
    GridSample: _deferred("grid_sample", "compile_grid_sample"),
}


class CpuBackend(HostBackend):
    """The CPU: templates first, NumPy for the rest."""

    samples_grids = True
    folds_bags = True

    def compile(self, what: Description, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
        template = TEMPLATES.get(type(what))
        if template is not None:
            try:
                return template(what, outs, ins)
            except Unsupported:
                pass
        return compile_host(what, outs, ins)

    def multiplies(self, what: MatMul, dtype: dtypes.dtype) -> bool:
        return bool(_pairs.has_pairs(what, dtype))


_pairs = lazy("antorcha.devices.cpu.matmul_pairs")
backend = CpuBackend("cpu")
