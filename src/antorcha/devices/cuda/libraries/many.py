"""Linear algebra on stacks of many small matrices: the libraries' functions of whole stacks.

Most of them take an array, on the GPU, of the matrices' addresses.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha.core import dtypes
from antorcha.devices.cuda.libraries import cublas, cusolver
from antorcha.devices.cuda.libraries.cublas import Cublas
from antorcha.devices.cuda.libraries.cusolver import Cusolver, function_name
from antorcha.devices.cuda.libraries.loader import library
from antorcha.devices.emit import Unsupported
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.storage import Storage


class ManyMatrices:
    """Functions of stacks of matrices of one type, which lie column by column."""

    def __init__(self, device: Any, solver: Cusolver, dtype: Any, place: Any) -> None:
        found: Cublas | None = library(Cublas)
        if found is None:
            raise Unsupported("cuBLAS is not installed")
        self.device, self.solver, self.blas = device, solver, found
        self.dtype, self.place = dtype, place
        self.letter = cusolver.LETTERS[dtype.name]
        self.type = cusolver.type_of(dtype.name)
        self.one = np.ones(1, dtype.np)

    def addresses(self, start: int, count: int, elements: int) -> Storage:
        """An array of the addresses of the stack's parts, which have so many elements."""
        places = start + np.arange(count, dtype=np.int64) * (elements * self.dtype.itemsize)
        layout = L.contiguous((count,), dtypes.int64, self.place)
        storage: Storage = self.device.from_host(places, layout)
        return storage

    def lu(self, count: int, n: int, factors: int, pivots: int, infos: int) -> None:
        """Puts LU factors in the place of square matrices; the pivots are int32."""
        blas, places = self.blas, self.addresses(factors, count, n * n)
        with blas.lock:
            handle = blas.begin(self.device.gpu)
            function = f"cublas{self.letter}getrfBatched"
            blas.call(function, handle, n, places.ptr, n, pivots, infos, count)

    def solve_with_lu(
        self, count: int, sizes: tuple[int, int], factors: int, pivots: int, found: int,
        operation: int,
    ) -> None:  # fmt: skip
        """Puts solutions in the place of right sides, as many as matrices."""
        n, columns = sizes
        blas, info = self.blas, ctypes.c_int()
        left, right = (
            self.addresses(factors, count, n * n),
            self.addresses(found, count, n * columns),
        )
        with blas.lock:
            handle = blas.begin(self.device.gpu)
            blas.call(
                f"cublas{self.letter}getrsBatched", handle, operation, n, columns, left.ptr, n,
                pivots, right.ptr, n, ctypes.byref(info), count,
            )  # fmt: skip

    def solve_triangular(
        self, count: int, sizes: tuple[int, int], factors: int, found: int, upper: int, unit: int
    ) -> None:
        """Puts solutions in the place of right sides, as many as matrices."""
        n, columns = sizes
        blas = self.blas
        left, right = (
            self.addresses(factors, count, n * n),
            self.addresses(found, count, n * columns),
        )
        with blas.lock:
            handle = blas.begin(self.device.gpu)
            blas.call(
                f"cublas{self.letter}trsmBatched", handle, cublas.LEFT, upper, 0, unit, n, columns,
                self.one.ctypes.data, left.ptr, n, right.ptr, n, count,
            )  # fmt: skip

    def cholesky(self, count: int, n: int, factors: int, infos: int) -> None:
        """Puts the lower factors in the place of the matrices' lower triangles."""
        solver, places = self.solver, self.addresses(factors, count, n * n)
        with solver.lock:
            handle = solver.begin(self.device.gpu)
            function = function_name("potrfBatched", self.dtype.name)
            solver.call(function, handle, cusolver.LOWER, n, places.ptr, n, infos, count)

    def eigen(
        self, count: int, n: int, upper: int, factors: int, values: tuple[int, int], infos: int
    ) -> None:
        """Puts eigenvectors in the place of matrices; ``values``: the type of the eigenvalues, and
        where they go."""
        solver = self.solver
        given: Sequence[Any] = (
            cusolver.WITH_VECTORS, upper, n, self.type, factors, n, *values, self.type,
        )  # fmt: skip
        with solver.lock:
            handle, options = solver.begin(self.device.gpu), solver.options
            rooms = ctypes.c_size_t(), ctypes.c_size_t()
            refs = [ctypes.byref(room) for room in rooms]
            solver.call("cusolverDnXsyevBatched_bufferSize", handle, options, *given, *refs, count)
            on_gpu, on_host = (room.value for room in rooms)
            scratch = self.device.allocate(max(on_gpu, 1))
            on_the_host = ctypes.create_string_buffer(max(on_host, 1))
            solver.call(
                "cusolverDnXsyevBatched", handle, options, *given, scratch.ptr, on_gpu, on_the_host,
                on_host, infos, count,
            )  # fmt: skip
