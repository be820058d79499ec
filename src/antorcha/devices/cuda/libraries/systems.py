"""Linear algebra from factors that are given: triangular systems, and products of reflectors."""

from __future__ import annotations

import numpy as np

from antorcha.devices.cuda.libraries import cublas, cusolver
from antorcha.devices.cuda.libraries.cublas import Cublas
from antorcha.devices.cuda.libraries.decompositions import Decomposition, Flat, Solve, by_columns
from antorcha.devices.cuda.libraries.launching import copying
from antorcha.devices.cuda.libraries.loader import library
from antorcha.devices.emit import Unsupported
from antorcha.runtime.memory.storage import Storage


class TriangularSolve(Solve):
    """The solutions of systems whose matrices are triangular."""

    def prepare(self) -> None:
        super().prepare()
        self.blas: Cublas | None = library(Cublas)
        if self.blas is None:
            raise Unsupported("cuBLAS is not installed")
        words = self.what.kind.split()
        self.upper, self.unit = int("upper" in words), int("unit" in words)
        self.one = np.ones(1, self.dtype.np)

    def run(self, flat: Flat) -> None:
        blas, found, factors = self.blas, self.right_sides(flat), self.copied(flat)
        assert blas is not None
        n, columns = self.solutions.shape[-2:]
        if self.many is not None:
            sizes, places = (n, columns), (factors.ptr, found.ptr)
            self.many.solve_triangular(self.count, sizes, *places, self.upper, self.unit)
            self.copies[0](flat[0], flat[1], found, 0)
            return
        function = f"cublas{cusolver.LETTERS[self.dtype.name]}trsm_v2"
        how = (cublas.LEFT, self.upper, 0, self.unit, n, columns, self.one.ctypes.data)
        with blas.lock:
            handle = blas.begin(self.device.gpu)
            for _, a, b in self.pairs(factors, found):
                blas.call(function, handle, *how, a, n, b, n)
        self.copies[0](flat[0], flat[1], found, 0)


class CholeskySolve(Solve):
    """The solutions of systems, from the Cholesky factors of their matrices."""

    MATRIX, RIGHT = 1, 0
    TAKES_MANY = False

    def run(self, flat: Flat) -> None:
        found, factors, unused = self.right_sides(flat), self.copied(flat), self.scratch(1, 4)
        n, columns = self.solutions.shape[-2:]
        upper = int(self.what.kind.endswith("upper"))
        solver, kind = self.solver, self.type
        with solver.lock:
            handle = solver.begin(self.device.gpu)
            for _, a, b in self.pairs(factors, found):
                solver.call(
                    "cusolverDnXpotrs", handle, solver.options, upper, n, columns, kind, a, n, kind,
                    b, n, unused.ptr,
                )  # fmt: skip
        self.copies[0](flat[0], flat[1], found, 0)


class LuSolve(Solve):
    """The solutions of systems, from the LU factors of their matrices, and the pivots."""

    RIGHT = 2

    def prepare(self) -> None:
        super().prepare()
        pivots = self.ins[1]
        self.pivots = self.plain(pivots.shape, self.pivot_dtype)
        self.copy_pivots = copying(self.device, self.pivots, pivots)
        self.operation = cusolver.ADJOINT if self.what.kind.endswith("adjoint") else 0

    def run(self, flat: Flat) -> None:
        self.check_pivots(flat)
        pivots = self.scratch(self.pivots.numel, self.pivot_dtype.itemsize)
        self.copy_pivots(pivots, 0, *self.operand(flat, 1))
        found = self.right_sides(flat)
        self.solve_with_lu(self.copied(flat), pivots, found, self.operation)
        self.copies[0](flat[0], flat[1], found, 0)

    def check_pivots(self, flat: Flat) -> None:
        """Rows to exchange, counted from 1: the library would read anywhere. Waits for the GPU."""
        found = self.device.to_host(self.ins[1], *self.operand(flat, 1))
        if self.what.refuse is not None and not (found.min() >= 1 and found.max() <= self.n):
            raise self.what.refuse(0, 0)


class Reflectors(Decomposition):
    """R and the vectors of reflectors, in one matrix, and the reflectors' factors."""

    def prepare(self) -> None:
        factors = self.plain((*self.batch, min(self.m, self.n)), self.dtype)
        self.copies = [
            copying(self.device, self.out(0), self.factors),
            copying(self.device, self.outs[1], factors),
        ]

    def run(self, flat: Flat) -> None:
        for k, (copy, storage) in enumerate(zip(self.copies, self.qr(flat))):
            copy(flat[2 * k], flat[2 * k + 1], storage, 0)


class ReflectorProduct(Decomposition):
    """The first columns of products of reflectors."""

    def prepare(self) -> None:
        self.count_of = self.ins[1].shape[-1]
        self.copy_scales = copying(
            self.device, self.plain(self.ins[1].shape, self.dtype), self.ins[1]
        )
        self.copies = [copying(self.device, self.out(0), self.factors)]

    def scales(self, flat: Flat) -> Storage:
        """A copy of the reflectors' factors, one matrix's after the other's."""
        storage = self.scratch(self.count * self.count_of, self.itemsize)
        self.copy_scales(storage, 0, *self.operand(flat, 1))
        return storage

    def run(self, flat: Flat) -> None:
        m, n, k = self.m, self.n, self.count_of
        found, scales, infos = self.copied(flat), self.scales(flat), self.scratch(self.count, 4)
        places = zip(self.each(found, m * n), self.each(scales, k))
        self.older("orgqr", (m, n, k), [(a, m, t) for a, t in places], infos)
        self.copies[0](flat[0], flat[1], found, 0)


class Reflected(ReflectorProduct):
    """Products of reflectors with matrices: from the left, or from the right."""

    def prepare(self) -> None:
        super().prepare()
        words, other = self.what.kind.split(), self.ins[2]
        self.side = int("right" in words)
        adjoint = cusolver.ADJOINT if self.dtype.kind == "c" else cusolver.TRANSPOSED
        self.operation = adjoint if "adjoint" in words else 0
        self.results = by_columns(other, *other.shape[-2:])
        self.copy_other = copying(self.device, self.results, other)
        self.copies = [copying(self.device, self.out(0), self.results)]

    def run(self, flat: Flat) -> None:
        rows, columns = self.results.shape[-2:]
        factors, scales, infos = self.copied(flat), self.scales(flat), self.scratch(self.count, 4)
        found = self.scratch(self.results.numel, self.itemsize)
        self.copy_other(found, 0, *self.operand(flat, 2))
        places = zip(
            self.each(factors, self.m * self.n), self.each(scales, self.count_of),
            self.each(found, rows * columns),
        )  # fmt: skip
        sizes = (self.side, self.operation, rows, columns, self.count_of)
        self.older("ormqr", sizes, [(a, self.m, t, c, rows) for a, t, c in places], infos)
        self.copies[0](flat[0], flat[1], found, 0)
