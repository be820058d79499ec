"""Products of matrices by cuBLASLt.

Its matrices lie column by column, with a stride from one column to the next; of a product whose
rows lie together the transpose is computed, ``out.T = b.T @ a.T``. What lies otherwise is left to
the kernels of ``devices/gpu``. Which way of computing is the best the library says for the sizes
and the operands' alignment; it is asked once, and the answer kept.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from ctypes import c_int64, c_size_t
from dataclasses import dataclass
from typing import Any

import numpy as np

from antorcha import config
from antorcha.core import switches
from antorcha.core.forks import held_over_forks
from antorcha.devices.cuda.libraries import cublaslt, product_launch
from antorcha.devices.cuda.libraries.cublaslt import CublasLt, LtHeuristic, LtObject
from antorcha.devices.cuda.libraries.launching import (
    address_of,
    copying,
    library_launch,
    strided,
)
from antorcha.devices.cuda.libraries.loader import library
from antorcha.devices.emit import Unsupported
from antorcha.lang.kernels import Launch, MatMul
from antorcha.runtime.memory.layout import Layout

LEAST = 1 << 18
"""Fewer multiplications are left to our own kernels: asking the library takes longer."""
WORKSPACE = 32 << 20  # bytes, at most; as PyTorch has them on an H100
ALIGNED = 256  # bytes; more makes no difference to the library
Strides = tuple[int, int, int]


@dataclass(frozen=True)
class ColumnMatrices:
    """A stack of matrices as cuBLASLt sees it: where ``transposed``, the product's factor is the
    transpose of what is described."""

    rows: int
    columns: int
    step: int  # from one column to the next
    stack: int
    transposed: bool = False


def by_columns(rows: int, columns: int, strides: Strides) -> ColumnMatrices | None:
    """Matrices that lie column by column; None where they do not."""
    stack, row, column = strides
    if (row == 1 or rows == 1) and (columns == 1 or column >= rows):
        return ColumnMatrices(rows, columns, column if columns > 1 else rows, stack)
    return None


def factor(rows: int, columns: int, strides: Strides) -> ColumnMatrices | None:
    """A factor that lies column by column, or row by row."""
    found = by_columns(rows, columns, strides)
    if found is None:
        stack, row, column = strides
        turned = by_columns(columns, rows, (stack, column, row))
        if turned is not None:
            found = ColumnMatrices(turned.rows, turned.columns, turned.step, stack, True)
    return found


def swapped(strides: Strides) -> Strides:
    """Those of the transposes."""
    return strides[0], strides[2], strides[1]


@dataclass(frozen=True)
class LtProduct:
    """``out = alpha * a @ b + beta * bias`` in the library's terms. ``turned``: its a is the
    description's b. ``bias``: "none", "vector" (a number for each row), "matrix", or "copied": it
    is copied to the result first."""

    a: ColumnMatrices
    b: ColumnMatrices
    out: ColumnMatrices
    added: ColumnMatrices | None
    turned: bool
    bias: str
    bias_stack: int


def product_of(what: MatMul, real: bool) -> LtProduct | None:
    """A description as cuBLASLt can compute it; None where it cannot."""
    m, n, k = what.m, what.n, what.k
    a, b, out, bias = what.a, what.b, what.out, what.bias
    turned = by_columns(m, n, out) is None
    if turned:
        m, n, a, b, out = n, m, swapped(b), swapped(a), swapped(out)
        bias = None if bias is None else swapped(bias)
    left, right, result = factor(m, k, a), factor(k, n, b), by_columns(m, n, out)
    if left is None or right is None or result is None:
        return None
    if bias is None:
        return LtProduct(left, right, result, None, turned, "none", 0)
    if real and what.beta == 1 and (bias[1] == 1 or m == 1) and (bias[2] == 0 or n == 1):
        return LtProduct(left, right, result, None, turned, "vector", bias[0])
    added = by_columns(m, n, bias)
    kind = "copied" if added is None else "matrix"
    return LtProduct(left, right, result, added, turned, kind, 0)


def plan_products(
    device: Any, what: MatMul, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch:  # fmt: skip
    """A launch of cuBLASLt; Unsupported where it cannot, or is not to, compute the product."""
    lt: CublasLt | None = library(CublasLt) if switches.libraries.blas != "antorcha" else None
    if lt is None:
        raise Unsupported("cuBLASLt is not used")
    names = [each.dtype.name for each in (*outs, *ins)]
    if not set(names) <= set(cublaslt.DATA_TYPES) or names[1] != names[2]:
        raise Unsupported(f"cuBLASLt has no product of {', '.join(names)}")
    if what.batch * what.m * what.n * what.k < max(LEAST, 1):
        raise Unsupported("a small product")
    real = ins[0].dtype.kind == "f" and ins[0].dtype.itemsize < 8
    found = product_of(what, real and len(set(names)) == 1)
    if found is None:
        raise Unsupported("matrices whose rows and columns both lie apart")
    if found.bias == "copied" and any(s < 0 for s in what.out):
        raise Unsupported("a result that lies backwards")
    product = LtLaunch(device, lt, what, found, outs[0], ins)
    if config.sync or found.bias == "copied":
        return product.launch()
    native = product_launch.bound(product, what, outs, ins)
    return Launch(native.fresh, native.into, native)


class LtLaunch:
    """A product on a GPU: the library's descriptions of it, and the ways it was told to compute."""

    def __init__(
        self, device: Any, lt: CublasLt, what: MatMul, product: LtProduct, out: Layout,
        ins: Sequence[Layout],
    ) -> None:  # fmt: skip
        self.device, self.lt, self.what, self.product = device, lt, what, product
        self.layouts = (out, *ins)
        self.lock = held_over_forks(threading.Lock())
        self.ways: dict[int, LtHeuristic] = {}  # by the operands' alignment
        device.gpu.use()
        self.handle = lt.handle_of(device.gpu)
        self._describe(out, ins)
        self.copy = None
        if product.bias == "copied" and what.bias is not None:
            shape = (what.batch, what.m, what.n)
            seen = strided(shape, what.bias, ins[2])
            self.copy = copying(device, strided(shape, what.out, out), seen)
        if self.way(0) is None:
            raise Unsupported("cuBLASLt has no way to compute it")

    def _describe(self, out: Layout, ins: Sequence[Layout]) -> None:
        lt, product, name = self.lt, self.product, ins[0].dtype.name
        double = name in ("float64", "complex128")
        compute = cublaslt.COMPUTE_64F if double else cublaslt.COMPUTE_32F
        if name in ("float32", "complex64") and switches.matmul.allow_tf32:
            compute = cublaslt.COMPUTE_TF32
        scale = name if name in ("float64", "complex64", "complex128") else "float32"
        self.job = LtObject(lt, "MatmulDesc", compute, cublaslt.DATA_TYPES[scale])
        if product.a.transposed:
            self.job.set(cublaslt.TRANSPOSE_A, cublaslt.OPERATION_T)
        if product.b.transposed:
            self.job.set(cublaslt.TRANSPOSE_B, cublaslt.OPERATION_T)
        if product.bias == "vector":
            self.job.set(cublaslt.EPILOGUE, cublaslt.EPILOGUE_BIAS)
            if self.what.batch > 1:
                self.job.set(cublaslt.BIAS_STACK, product.bias_stack, c_int64)
        self.a, self.b = (self._matrices(each, name) for each in (product.a, product.b))
        self.out = self._matrices(product.out, out.dtype.name)
        self.added = self.out
        if product.bias == "matrix" and product.added is not None:
            self.added = self._matrices(product.added, ins[2].dtype.name)
        added = product.bias in ("matrix", "copied")
        numbers = np.array([self.what.alpha, self.what.beta if added else 0])
        self.weights = (numbers if "complex" in scale else numbers.real).astype(scale)
        start = self.weights.ctypes.data
        self.alpha, self.beta = start, start + self.weights.itemsize

    def _matrices(self, seen: ColumnMatrices, dtype: str) -> LtObject:
        sizes = cublaslt.DATA_TYPES[dtype], seen.rows, seen.columns, seen.step
        found = LtObject(self.lt, "MatrixLayout", *sizes)
        if self.what.batch > 1:
            found.set(cublaslt.BATCH_COUNT, self.what.batch)
            found.set(cublaslt.BATCH_STRIDE, seen.stack, c_int64)
        return found

    # ---- running
    def launch(self) -> Launch:
        """The launch."""
        return library_launch(self.device, "MatMul", self.layouts[:1], self.run)

    def run(self, flat: Sequence[Any]) -> None:
        """Gives the work to the current stream."""
        product, layouts = self.product, self.layouts
        out = address_of(layouts[0], flat[0], flat[1])
        a = address_of(layouts[1], flat[2], flat[3])
        b = address_of(layouts[2], flat[4], flat[5])
        if product.turned:
            a, b = b, a
        if product.bias == "none":
            self._multiply(a, b, out, out, 0)
            return
        bias = address_of(layouts[3], flat[6], flat[7])
        if product.bias == "matrix":
            self._multiply(a, b, bias, out, 0)
        elif self.copy is not None:
            self.copy(flat[0], flat[1], flat[6], flat[7])
            self._multiply(a, b, out, out, 0)
        else:
            with self.lock:  # (the vector's address is a part of the description)
                self.job.set(cublaslt.BIAS_POINTER, bias, ctypes.c_void_p)
                self._multiply(a, b, out, out, bias)

    def _multiply(self, a: int, b: int, added: int, out: int, vector: int) -> None:
        lt, gpu = self.lt, self.device.gpu
        way = self.way((a | b | added | out | vector) & (ALIGNED - 1))
        if way is None:
            raise lt.error("cublasLtMatmulAlgoGetHeuristic", cublaslt.NOT_SUPPORTED)
        room = way.workspace
        scratch = lt.workspace(self.device, room) if room else None
        status = lt.multiply(
            self.handle, self.job.handle, self.alpha, a, self.a.handle, b, self.b.handle, self.beta,
            added, self.added.handle, out, self.out.handle, ctypes.addressof(way),
            0 if scratch is None else scratch.ptr, room, gpu.stream.handle,
        )  # fmt: skip
        if status:
            raise lt.error("cublasLtMatmul", status)

    def way(self, low: int) -> LtHeuristic | None:
        """How to compute where the operands lie: ``low`` are the last bits of all addresses."""
        alignment = low & -low or ALIGNED
        found = self.ways.get(alignment)
        if found is None:
            found = self._asked(alignment)
            if found is not None:
                self.ways[alignment] = found
        return found

    def _asked(self, alignment: int) -> LtHeuristic | None:
        preference = LtObject(self.lt, "MatmulPreference")
        preference.set(cublaslt.MOST_WORKSPACE, WORKSPACE, c_size_t)
        name = self.layouts[1].dtype.name.replace("bfloat", "bf").replace("float", "fp")
        if not vars(switches.matmul).get(f"allow_{name}_reduced_precision_reduction", True):
            preference.set(cublaslt.REDUCTIONS, cublaslt.EXACT_REDUCTIONS)
        for attribute in cublaslt.ALIGNMENTS:
            preference.set(attribute, alignment)
        operands = tuple([
            each.handle for each in (self.job, self.a, self.b, self.added, self.out)
        ])  # fmt: skip
        return self.lt.heuristic(self.handle, operands, preference.handle)
