"""Linear algebra by cuSOLVER: factorisations, and what is computed from them.

Matrices are copied to scratch memory, column by column, factored there one after the other, and
what is asked for is copied from there. An error in a matrix is found by waiting for the GPU, as in
PyTorch, and before a result is written.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from antorcha.core import dtypes
from antorcha.core.shapes import contiguous_strides
from antorcha.devices.cuda.libraries import cusolver
from antorcha.devices.cuda.libraries.cusolver import Cusolver, function_name, type_of
from antorcha.devices.cuda.libraries.launching import copying, strided
from antorcha.devices.cuda.libraries.many import ManyMatrices
from antorcha.devices.emit import Unsupported
from antorcha.lang import expr as E
from antorcha.lang.kernels import Arrange, Launch, Matrices, Pointwise, Reduce
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage

FEW, LARGE = 8, 128
"""Stacks of up to so many matrices, or of matrices of so many rows, are worth a call for each."""
Flat = Sequence[Any]


def are_many(matrices: Layout) -> bool:
    """Is a stack one of many small matrices?"""
    *batch, m, n = matrices.shape
    return math.prod(batch) > FEW and min(m, n) < LARGE


def seen_matrices(layout: Layout, turned: bool, vectors: bool) -> Layout:
    """A stack as its matrices are to be seen: rows for columns, vectors as matrices of one."""
    shape, strides = list(layout.shape), list(layout.strides)
    if vectors:
        shape, strides = [*shape, 1], [*strides, 1]
    if turned:
        shape[-2:], strides[-2:] = shape[:-3:-1], strides[:-3:-1]
    return strided(shape, strides, layout)


def by_columns(like: Layout, rows: int, columns: int) -> Layout:
    """A stack of matrices that lie column by column, as many as another has."""
    steps = contiguous_strides((*like.shape[:-2], columns, rows))
    return strided((*like.shape[:-2], rows, columns), (*steps[:-2], 1, rows), like)


class Decomposition:
    """What all kinds share: A's copy, and the factorisations of each matrix of it."""

    MATRIX = 0  # the number of the input A
    TAKES_MANY = False  # is there a way for many small matrices?

    def __init__(
        self, device: Any, solver: Cusolver, what: Matrices, outs: Sequence[Layout],
        ins: Sequence[Layout],
    ) -> None:  # fmt: skip
        self.device, self.solver, self.what, self.outs, self.ins = device, solver, what, outs, ins
        self.matrix = ins[self.MATRIX]
        self.dtype = self.matrix.dtype
        self.type, self.itemsize = type_of(self.dtype.name), self.dtype.itemsize
        self.m, self.n = self.matrix.shape[-2:]
        self.batch = tuple(self.matrix.shape[:-2])
        self.count = math.prod(self.batch)
        self.factors = by_columns(self.matrix, self.m, self.n)
        self.copy_in = copying(device, self.factors, self.matrix)
        self.many = None
        if are_many(self.matrix):
            self.many = ManyMatrices(device, solver, self.dtype, self.matrix.device)
        self.copies: list[Callable[..., None]] = []
        self.host_room = ctypes.create_string_buffer(1)
        self.prepare()

    # ---- what a kind says
    def prepare(self) -> None:
        """Compiles the kernels that the kind needs beside the library."""

    def run(self, flat: Flat) -> None:
        """Gives all work to the current stream."""
        raise NotImplementedError

    # ---- pieces of it
    def out(self, k: int) -> Layout:
        """Output number k as its matrices are to be seen."""
        return seen_matrices(self.outs[k], self.what.transposed, self.what.vectors)

    def operand(self, flat: Flat, k: int) -> tuple[Storage, int]:
        """The storage and the offset of input number k."""
        at = 2 * (len(self.outs) + k)
        return flat[at], flat[at + 1]

    def copied(self, flat: Flat) -> Storage:
        """A's matrices, in scratch memory."""
        storage: Storage = self.device.allocate(self.factors.nbytes)
        self.copy_in(storage, 0, *self.operand(flat, self.MATRIX))
        return storage

    def scratch(self, count: int, itemsize: int) -> Storage:
        """Scratch memory for so many numbers."""
        storage: Storage = self.device.allocate(max(count, 1) * itemsize)
        return storage

    def each(self, storage: Storage, elements: int, itemsize: int = 0) -> list[int]:
        """The addresses of the parts of a stack that belong to each of A's matrices."""
        step = elements * (itemsize or self.itemsize)
        return [storage.ptr + k * step for k in range(self.count)]

    def newer(
        self, name: str, sizes: tuple[int, ...], arrays: Sequence[Sequence[Any]], infos: Storage,
        own: tuple[Any, ...] | None = None,
    ) -> None:  # fmt: skip
        """Calls a function that takes the type as an argument, for each matrix: ``arrays`` has its
        arguments from the matrix on; ``own``: those of the first for which room is asked."""
        solver, gpu = self.solver, self.device.gpu
        with solver.lock:
            handle, options = solver.begin(gpu), solver.options
            rooms = ctypes.c_size_t(), ctypes.c_size_t()
            asked = arrays[0] if own is None else own
            refs = [ctypes.byref(room) for room in rooms]
            solver.call(
                f"cusolverDnX{name}_bufferSize", handle, options, *sizes, *asked, self.type, *refs
            )
            on_gpu, on_host = (room.value for room in rooms)
            if on_host > len(self.host_room):
                self.host_room = ctypes.create_string_buffer(on_host)
            scratch = self.scratch(on_gpu, 1)
            for k, given in enumerate(arrays):
                solver.call(
                    f"cusolverDnX{name}", handle, options, *sizes, *given, self.type, scratch.ptr,
                    on_gpu, self.host_room, on_host, infos.ptr + 4 * k,
                )  # fmt: skip

    def older(
        self, name: str, sizes: tuple[int, ...], arrays: Sequence[Sequence[Any]], infos: Storage,
        *last: Any,
    ) -> None:  # fmt: skip
        """Calls a function that exists for each type, for each matrix."""
        solver, full = self.solver, function_name(name, self.dtype.name)
        with solver.lock:
            handle, room = solver.begin(self.device.gpu), ctypes.c_int()
            asked = ctypes.byref(room)
            solver.call(f"{full}_bufferSize", handle, *sizes, *arrays[0], asked, *last)
            scratch = self.scratch(room.value, self.itemsize)
            for k, given in enumerate(arrays):
                solver.call(
                    full, handle, *sizes, *given, scratch.ptr, room.value, infos.ptr + 4 * k, *last
                )

    @property
    def pivot_dtype(self) -> Any:
        """The type of the pivots."""
        return dtypes.int64 if self.many is None else dtypes.int32

    def lu(self, flat: Flat) -> tuple[Storage, Storage, Storage]:
        """LU factors with partial pivoting, the pivots, from 1, info."""
        k = min(self.m, self.n)
        factors, infos = self.copied(flat), self.scratch(self.count, 4)
        pivots = self.scratch(self.count * k, self.pivot_dtype.itemsize)
        if self.many is not None:
            self.many.lu(self.count, self.n, factors.ptr, pivots.ptr, infos.ptr)
            return factors, pivots, infos
        places = zip(self.each(factors, self.m * self.n), self.each(pivots, k, 8))
        arrays = [(self.type, a, self.m, p) for a, p in places]
        self.newer("getrf", (self.m, self.n), arrays, infos, arrays[0][:3])
        return factors, pivots, infos

    def qr(self, flat: Flat) -> tuple[Storage, Storage]:
        """R and the vectors of reflectors in one matrix, and the reflectors' factors."""
        m, n, k = self.m, self.n, min(self.m, self.n)
        factors, infos = self.copied(flat), self.scratch(self.count, 4)
        scales = self.scratch(self.count * k, self.itemsize)
        places = zip(self.each(factors, m * n), self.each(scales, k))
        arrays = [(self.type, a, m, self.type, t) for a, t in places]
        self.newer("geqrf", (m, n), arrays, infos)
        return factors, scales

    def refuse(self, infos: Storage) -> None:
        """Raises for the first matrix that the algorithm could not work on; waits for the GPU."""
        if self.what.refuse is None:
            return
        found = np.empty(self.count, np.int32)
        stream = self.device.gpu.stream
        if stream.capture is None:
            stream.call("cuMemcpyDtoHAsync_v2", found.ctypes.data, infos.ptr, found.nbytes)
        stream.synchronize()  # (which raises during a capture)
        wrong = np.flatnonzero(found)
        if len(wrong):
            raise self.what.refuse(int(wrong[0]), int(found[wrong[0]]))

    def info_copy(self, k: int) -> Callable[..., None]:
        """Copies infos to output number k."""
        return copying(self.device, self.outs[k], self.plain(self.batch, dtypes.int32))

    def plain(self, shape: Sequence[int], dtype: Any) -> Layout:
        """A layout in row-major order, here."""
        return L.contiguous(tuple(shape), dtype, self.matrix.device)

    def triangle(self, out: Layout, source: Layout, part: str) -> Callable[..., None]:
        """Copies a triangle of each matrix; the rest is zero."""
        what = Arrange(tuple(range(out.ndim)), (), part)
        launch: Launch = self.device.compile(what, (out,), (source,))
        return launch.into


class Cholesky(Decomposition):
    """The lower factor, and info."""

    TAKES_MANY = True

    def prepare(self) -> None:
        self.copy_out = self.triangle(self.out(0), self.factors, "lower")
        self.copies = [self.info_copy(1)] if len(self.outs) > 1 else []

    def run(self, flat: Flat) -> None:
        factors, infos = self.copied(flat), self.scratch(self.count, 4)
        if self.many is not None:
            self.many.cholesky(self.count, self.n, factors.ptr, infos.ptr)
        else:
            arrays = [(self.type, a, self.n) for a in self.each(factors, self.n * self.n)]
            self.newer("potrf", (cusolver.LOWER, self.n), arrays, infos)
        self.refuse(infos)
        self.copy_out(flat[0], flat[1], factors, 0)
        for copy in self.copies:
            copy(flat[2], flat[3], infos, 0)


class LowerUpper(Decomposition):
    """The LU factors, the pivots, and info."""

    TAKES_MANY = True

    def prepare(self) -> None:
        if self.many is not None and self.m != self.n:
            raise Unsupported("many matrices that are not square")
        pivots = self.plain((*self.batch, min(self.m, self.n)), self.pivot_dtype)
        self.copies = [
            copying(self.device, self.out(0), self.factors),
            copying(self.device, self.outs[1], pivots), self.info_copy(2),
        ]  # fmt: skip

    def run(self, flat: Flat) -> None:
        found = self.lu(flat)
        self.refuse(found[2])
        for k, (copy, storage) in enumerate(zip(self.copies, found)):
            copy(flat[2 * k], flat[2 * k + 1], storage, 0)


class Solve(Decomposition):
    """The solutions of systems, and info. B's stack, and A's, broadcast to the results'."""

    TAKES_MANY = True
    RIGHT = 1  # the number of the input B

    def prepare(self) -> None:
        out = self.out(0)
        self.solutions = by_columns(out, *out.shape[-2:])
        self.copies = [copying(self.device, out, self.solutions)]
        if len(self.outs) > 1:
            self.copies.append(self.info_copy(1))
        numbers = np.arange(self.count).reshape(self.batch)
        self.factor_of = np.broadcast_to(numbers, tuple(out.shape[:-2])).ravel().tolist()
        if self.many is not None and len(self.factor_of) != self.count:
            raise Unsupported("many matrices of several systems each")
        self.begin_solutions()

    def begin_solutions(self) -> None:
        """Prepares the copy of the right sides."""
        right, shape = self.ins[self.RIGHT], self.solutions.shape
        lead = len(shape) - right.ndim
        if lead < 0:
            raise Unsupported("right sides of more dims than the results")
        steps = [
            0 if size == 1 else step for size, step in zip(right.shape, right.strides, strict=True)
        ]
        self.copy_right = copying(
            self.device, self.solutions, strided(shape, (*[0] * lead, *steps), right)
        )

    def right_sides(self, flat: Flat) -> Storage:
        """A copy of them, which the solutions replace."""
        storage = self.scratch(self.solutions.numel, self.itemsize)
        self.copy_right(storage, 0, *self.operand(flat, self.RIGHT))
        return storage

    def run(self, flat: Flat) -> None:
        factors, pivots, infos = self.lu(flat)
        self.refuse(infos)
        found = self.right_sides(flat)
        self.solve_with_lu(factors, pivots, found)
        for k, (copy, storage) in enumerate(zip(self.copies, (found, infos))):
            copy(flat[2 * k], flat[2 * k + 1], storage, 0)

    def pairs(self, factors: Storage, found: Storage) -> list[tuple[int, int, int]]:
        """For each system: the number of its matrix, where its factors, and its right sides are."""
        n, columns = self.solutions.shape[-2:]
        size = self.itemsize
        return [
            (of, factors.ptr + of * n * n * size, found.ptr + k * n * columns * size)
            for k, of in enumerate(self.factor_of)
        ]

    def solve_with_lu(
        self, factors: Storage, pivots: Storage, found: Storage, operation: int = 0
    ) -> None:
        """Puts the solutions in the place of the right sides."""
        n, columns = self.solutions.shape[-2:]
        solver, unused = self.solver, self.scratch(1, 4)
        if self.many is not None:
            self.many.solve_with_lu(
                self.count, (n, columns), factors.ptr, pivots.ptr, found.ptr, operation
            )
            return
        with solver.lock:
            handle = solver.begin(self.device.gpu)
            for of, a, b in self.pairs(factors, found):
                solver.call(
                    "cusolverDnXgetrs", handle, solver.options, operation, n, columns, self.type,
                    a, n, pivots.ptr + of * n * 8, self.type, b, n, unused.ptr,
                )  # fmt: skip


class Inverse(Solve):
    """The inverses: the solutions for the columns of the identity."""

    def begin_solutions(self) -> None:
        like, n = self.solutions, self.n
        diagonal = strided((self.count, n), (n * n, n + 1), like)
        one = Pointwise((E.const(1, self.dtype),))
        self.write_ones = self.device.compile(one, (diagonal,), ()).into

    def right_sides(self, flat: Flat) -> Storage:
        storage = self.scratch(self.solutions.numel, self.itemsize)
        self.device.gpu.stream.call("cuMemsetD8Async", storage.ptr, 0, self.solutions.nbytes)
        self.write_ones(storage, 0)
        return storage


class Determinant(Decomposition):
    """The determinants, from LU factors, as products of numbers of double precision."""

    TAKES_MANY = True

    def prepare(self) -> None:
        n, wide = self.n, dtypes.float64
        if self.dtype.kind == "c":
            wide = dtypes.complex128
        self.diagonal = strided((self.count, n), (n * n, n + 1), self.factors)
        self.pivots = self.plain((self.count, n), self.pivot_dtype)
        x, pivot = E.input_(0, wide), E.input_(1, dtypes.int64)
        signed = E.where(pivot != E.input_(2, dtypes.int64) + 1, -x, x)
        self.fold = self.folding(signed, wide)

    def folding(self, signed: Any, wide: Any) -> Callable[..., None]:
        """The kernel that makes the outputs of the diagonal and the pivots."""
        a, b = E.input_(0, wide), E.input_(1, wide)
        return self.reduced(Reduce((1,), (1.0,), (signed,), (a * b,), (a,)))

    def reduced(self, what: Reduce) -> Callable[..., None]:
        """A fold over the diagonals to outputs of one number a matrix."""
        outs = [
            strided((self.count, self.n), (1, 0), self.plain((self.count,), out.dtype))
            for out in self.outs
        ]
        launch: Launch = self.device.compile(what, outs, (self.diagonal, self.pivots))
        self.copies = [
            copying(self.device, out, self.plain(self.batch, out.dtype)) for out in self.outs
        ]
        return launch.into

    def run(self, flat: Flat) -> None:
        factors, pivots, _ = self.lu(flat)
        found = [self.scratch(self.count, out.itemsize) for out in self.outs]
        given = [each for storage in found for each in (storage, 0)]
        self.fold(*given, factors, 0, pivots, 0)
        for k, (copy, storage) in enumerate(zip(self.copies, found)):
            copy(flat[2 * k], flat[2 * k + 1], storage, 0)


class Logarithm(Determinant):
    """The determinants' signs, and the logarithms of their magnitudes."""

    def folding(self, signed: Any, wide: Any) -> Callable[..., None]:
        size = E.abs(signed)
        real = dtypes.float64
        sign = E.where(size > 0, signed / E.where(size > 0, E.cast(size, wide), 1), signed)
        a, p = E.input_(0, wide), E.input_(1, real)
        b, q = E.input_(2, wide), E.input_(3, real)
        return self.reduced(Reduce((1,), (1.0, 0.0), (sign, E.log(size)), (a * b, p + q), (a, p)))


class Orthogonal(Decomposition):
    """Q and R, or R alone."""

    def prepare(self) -> None:
        m, n = self.m, self.n
        self.with_q = self.what.kind == "qr"
        r = self.out(1)
        rows = r.shape[-2]
        self.q_columns = self.out(0).shape[-1] if self.with_q else 0
        steps = self.factors.strides
        upper = strided((*self.batch, min(rows, m), n), steps, self.factors)
        self.copy_r = self.triangle(r, upper, "upper")
        if not self.with_q:
            return
        self.vectors = by_columns(self.matrix, m, self.q_columns)
        both = (*self.batch, m, min(n, self.q_columns))
        self.copy_vectors = copying(
            self.device, strided(both, self.vectors.strides, self.vectors),
            strided(both, steps, self.factors),
        )  # fmt: skip
        self.copies = [copying(self.device, self.out(0), self.vectors)]

    def run(self, flat: Flat) -> None:
        m, k, columns = self.m, min(self.m, self.n), self.q_columns
        factors, scales = self.qr(flat)
        if self.with_q:
            q, infos = self.scratch(self.vectors.numel, self.itemsize), self.scratch(self.count, 4)
            self.copy_vectors(q, 0, factors, 0)
            places = zip(self.each(q, m * columns), self.each(scales, k))
            given = [(a, m, t) for a, t in places]
            self.older("orgqr", (m, columns, min(k, columns)), given, infos)
            self.copies[0](flat[0], flat[1], q, 0)
        self.copy_r(flat[2], flat[3], factors, 0)


class Eigen(Decomposition):
    """The eigenvalues and eigenvectors of symmetric and Hermitian matrices, or the values alone."""

    TAKES_MANY = True

    def prepare(self) -> None:
        if self.many is not None and cusolver.NEWER[0] not in self.solver.functions:
            raise Unsupported("many matrices: this cuSOLVER is too old")
        self.upper = cusolver.UPPER if self.what.kind.endswith("upper") else cusolver.LOWER
        self.real = self.dtype.to_real()
        values = self.plain((*self.batch, self.n), self.real)
        self.copies = [copying(self.device, self.outs[0], values)]
        if len(self.outs) > 1:
            self.copies.append(copying(self.device, self.out(1), self.factors))

    def run(self, flat: Flat) -> None:
        n, size, real = self.n, self.real.itemsize, type_of(self.real.name)
        factors, infos = self.copied(flat), self.scratch(self.count, 4)
        values = self.scratch(self.count * n, size)
        if self.many is not None:
            where = real, values.ptr
            self.many.eigen(self.count, n, self.upper, factors.ptr, where, infos.ptr)
        else:
            places = zip(self.each(factors, n * n), self.each(values, n, size))
            arrays = [(self.type, a, n, real, w) for a, w in places]
            self.newer("syevd", (cusolver.WITH_VECTORS, self.upper, n), arrays, infos)
        self.refuse(infos)
        for k, (copy, storage) in enumerate(zip(self.copies, (values, factors))):
            copy(flat[2 * k], flat[2 * k + 1], storage, 0)


class Singular(Decomposition):
    """U, the singular values and V^H, or the values alone, by one-sided Jacobi rotations."""

    def prepare(self) -> None:
        m, n, like = self.m, self.n, self.matrix
        self.alone = len(self.outs) == 1
        least = min(m, n), min(m, n)
        self.columns = least if self.alone else (self.out(0).shape[-1], self.out(2).shape[-2])
        self.left, self.right = (by_columns(like, r, c) for r, c in zip((m, n), self.columns))
        self.real = self.dtype.to_real()
        values = self.plain((*self.batch, min(m, n)), self.real)
        if self.alone:
            self.copies = [copying(self.device, self.outs[0], values)]
            return
        turned = seen_matrices(self.right, True, False)
        conjugate = Pointwise((E.conj(E.input_(0, self.dtype)),))
        self.copies = [
            copying(self.device, self.out(0), self.left),
            copying(self.device, self.outs[1], values),
            self.device.compile(conjugate, (self.out(2),), (turned,)).into,
        ]

    def run(self, flat: Flat) -> None:
        m, n, k, size = self.m, self.n, min(self.m, self.n), self.real.itemsize
        factors, infos = self.copied(flat), self.scratch(self.count, 4)
        left, right = (self.scratch(x.numel, self.itemsize) for x in (self.left, self.right))
        values = self.scratch(self.count * k, size)
        places = zip(
            self.each(factors, m * n), self.each(values, k, size),
            self.each(left, m * self.columns[0]), self.each(right, n * self.columns[1]),
        )  # fmt: skip
        arrays = [(a, m, s, u, m, v, n) for a, s, u, v in places]
        thin = int(self.columns == (k, k))
        sizes = (cusolver.WITH_VECTORS, thin, m, n)
        self.older("gesvdj", sizes, arrays, infos, self.solver.of_gesvdj)
        self.refuse(infos)
        results = (values,) if self.alone else (left, values, right)
        for j, (copy, storage) in enumerate(zip(self.copies, results)):
            copy(flat[2 * j], flat[2 * j + 1], storage, 0)
