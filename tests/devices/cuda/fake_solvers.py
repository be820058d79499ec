"""cuSOLVER and cuBLAS without a GPU, by SciPy's LAPACK (see ``fake_functions``)."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
import scipy.linalg

from antorcha.devices.cuda.libraries import cublas, cusolver
from tests.devices.cuda.fake_driver import FakeLibrary
from tests.devices.cuda.fake_functions import TYPES, FakeFunctions


class FakeCusolver(FakeFunctions):
    """cuSOLVER, by SciPy's LAPACK."""

    PROTOTYPES = cusolver.PROTOTYPES
    ROOM, HOST_ROOM = 640, 320

    def __init__(self, driver: FakeLibrary) -> None:
        super().__init__(driver)
        self.stream = 0
        for dtype, letter in cusolver.LETTERS.items():
            batched = cusolver.function_name("potrfBatched", dtype)
            self.own[batched] = functools.partial(self.potrf_batched, np.dtype(dtype))
            for name in ("orgqr", "ormqr", "gesvdj"):
                full = cusolver.function_name(name, dtype)
                self.typed(full, name, np.dtype(dtype))
                assert f"Dn{letter}" in full

    def typed(self, full: str, name: str, dtype: Any) -> None:
        """Binds the functions of a type."""

        def do(_: Any, *args: Any) -> None:
            getattr(self, name)(dtype, *args)

        def room(_: Any, *args: Any) -> None:
            out = args[-2] if name == "gesvdj" else args[-1]
            ctypes.c_int.from_address(out).value = self.ROOM

        self.own[full], self.own[f"{full}_bufferSize"] = do, room

    def do_cusolverGetProperty(self, which: int, out: int) -> None:
        ctypes.c_int.from_address(out).value = (12, 1, 0)[which]

    def do_cusolverDnCreate(self, out: int) -> None:
        self.made(out, "handle")

    def do_cusolverDnCreateParams(self, out: int) -> None:
        self.made(out, "params")

    def do_cusolverDnCreateGesvdjInfo(self, out: int) -> None:
        self.made(out, "gesvdj")

    def do_cusolverDnSetStream(self, handle: int, stream: int) -> None:
        assert self.objects[handle] == "handle"
        self.stream = stream

    def rooms(self, on_gpu: int, on_host: int) -> None:
        ctypes.c_size_t.from_address(on_gpu).value = self.ROOM
        ctypes.c_size_t.from_address(on_host).value = self.HOST_ROOM

    def begun(self, handle: int, params: int, *rooms: Any) -> None:
        assert (self.objects[handle], self.objects[params]) == ("handle", "params")
        if rooms:
            scratch, nbytes, host, host_bytes = rooms
            assert (nbytes, host_bytes) == (self.ROOM, self.HOST_ROOM)
            self.driver.check(scratch, nbytes)
            self.driver.host(host, host_bytes)[:] = 0

    def matrix(self, address: int, dtype: Any, rows: int, columns: int, step: int) -> Any:
        assert step >= rows
        return self.array(address, dtype, (rows, columns), (1, step))

    def put_info(self, address: int, value: int) -> None:
        self.array(address, np.int32, (1,), (1,))[0] = value

    def do_cusolverDnXpotrf_bufferSize(self, *args: Any) -> None:
        self.rooms(*args[-2:])

    def do_cusolverDnXpotrf(
        self, handle: int, params: int, upper: int, n: int, kind: int, a: int, step: int,
        compute: int, *rest: int,
    ) -> None:  # fmt: skip
        self.begun(handle, params, *rest[:4])
        assert kind == compute
        assert upper == cusolver.LOWER

        def work() -> None:
            found = self.matrix(a, TYPES[kind], n, n, step)
            (run,) = scipy.linalg.get_lapack_funcs(("potrf",), dtype=found.dtype)
            factor, info = run(found, lower=1, clean=0)
            found[...] = factor
            self.put_info(rest[4], info)

        self.give(self.stream, work)

    def potrf_batched(
        self, dtype: Any, _: Any, handle: int, upper: int, n: int, a: int, step: int, infos: int,
        count: int,
    ) -> None:  # fmt: skip
        (run,) = scipy.linalg.get_lapack_funcs(("potrf",), dtype=dtype)
        assert upper == cusolver.LOWER

        def work() -> None:
            for k, place in enumerate(self.array(a, np.int64, (count,), (1,)).tolist()):
                found = self.matrix(place, dtype, n, n, step)
                found[...], info = run(found, lower=1, clean=0)
                self.put_info(infos + 4 * k, info)

        self.give(self.stream, work)

    def do_cusolverDnXsyevBatched_bufferSize(self, *args: Any) -> None:
        self.rooms(*args[-3:-1])

    def do_cusolverDnXsyevBatched(self, *args: Any) -> None:
        *given, infos, count = args
        handle, params, vectors, upper, n, kind, a, step, real, values, compute, *rooms = given
        size, wide = np.dtype(TYPES[kind]).itemsize, np.dtype(TYPES[real]).itemsize
        for k in range(count):
            place, where = a + k * n * step * size, values + k * n * wide
            self.do_cusolverDnXsyevd(
                handle, params, vectors, upper, n, kind, place, step, real, where, compute, *rooms,
                infos + 4 * k,
            )  # fmt: skip

    def do_cusolverDnXgetrf_bufferSize(self, *args: Any) -> None:
        self.rooms(*args[-2:])

    def do_cusolverDnXgetrf(
        self, handle: int, params: int, m: int, n: int, kind: int, a: int, step: int, pivots: int,
        compute: int, *rest: int,
    ) -> None:  # fmt: skip
        self.begun(handle, params, *rest[:4])
        assert kind == compute

        def work() -> None:
            found = self.matrix(a, TYPES[kind], m, n, step)
            (run,) = scipy.linalg.get_lapack_funcs(("getrf",), dtype=found.dtype)
            found[...], pivot, info = run(found)
            self.array(pivots, np.int64, (min(m, n),), (1,))[:] = pivot + 1
            self.put_info(rest[4], info)

        self.give(self.stream, work)

    def do_cusolverDnXgetrs(
        self, handle: int, params: int, turned: int, n: int, columns: int, kind: int, a: int,
        step: int, pivots: int, other: int, b: int, b_step: int, info: int,
    ) -> None:  # fmt: skip
        self.begun(handle, params)
        assert kind == other

        def work() -> None:
            factors = self.matrix(a, TYPES[kind], n, n, step)
            right = self.matrix(b, TYPES[kind], n, columns, b_step)
            pivot = self.array(pivots, np.int64, (n,), (1,))
            (run,) = scipy.linalg.get_lapack_funcs(("getrs",), dtype=right.dtype)
            right[...] = run(factors, pivot.astype(np.int32) - 1, right, trans=turned)[0]
            self.put_info(info, 0)

        self.give(self.stream, work)

    def do_cusolverDnXpotrs(
        self, handle: int, params: int, upper: int, n: int, columns: int, kind: int, a: int,
        step: int, other: int, b: int, b_step: int, info: int,
    ) -> None:  # fmt: skip
        self.begun(handle, params)
        assert kind == other

        def work() -> None:
            factors = self.matrix(a, TYPES[kind], n, n, step)
            right = self.matrix(b, TYPES[kind], n, columns, b_step)
            right[...] = scipy.linalg.cho_solve((factors, not upper), right)
            self.put_info(info, 0)

        self.give(self.stream, work)

    def do_cusolverDnXgeqrf_bufferSize(self, *args: Any) -> None:
        self.rooms(*args[-2:])

    def do_cusolverDnXgeqrf(
        self, handle: int, params: int, m: int, n: int, kind: int, a: int, step: int, other: int,
        scales: int, compute: int, *rest: int,
    ) -> None:  # fmt: skip
        self.begun(handle, params, *rest[:4])
        assert kind == other == compute

        def work() -> None:
            found = self.matrix(a, TYPES[kind], m, n, step)
            (run,) = scipy.linalg.get_lapack_funcs(("geqrf",), dtype=found.dtype)
            found[...], tau = run(found)[:2]
            self.array(scales, found.dtype, (min(m, n),), (1,))[:] = tau
            self.put_info(rest[4], 0)

        self.give(self.stream, work)

    def orgqr(
        self, dtype: Any, handle: int, m: int, n: int, k: int, a: int, step: int, scales: int,
        scratch: int, room: int, info: int,
    ) -> None:  # fmt: skip
        assert m >= n >= k
        assert room == self.ROOM
        self.driver.check(scratch, room * dtype.itemsize)

        def work() -> None:
            found = self.matrix(a, dtype, m, n, step)
            name = "ungqr" if dtype.kind == "c" else "orgqr"
            (run,) = scipy.linalg.get_lapack_funcs((name,), dtype=dtype)
            found[...] = run(found, self.array(scales, dtype, (k,), (1,)))[0]
            self.put_info(info, 0)

        self.give(self.stream, work)

    def ormqr(
        self, dtype: Any, handle: int, side: int, turned: int, m: int, n: int, k: int, a: int,
        step: int, scales: int, c: int, c_step: int, scratch: int, room: int, info: int,
    ) -> None:  # fmt: skip
        self.driver.check(scratch, room * dtype.itemsize)
        turn = {0: "N", 1: "T", 2: "C"}[turned]

        def work() -> None:
            vectors = self.matrix(a, dtype, n if side else m, k, step)
            found = self.matrix(c, dtype, m, n, c_step)
            name = "unmqr" if dtype.kind == "c" else "ormqr"
            (run,) = scipy.linalg.get_lapack_funcs((name,), dtype=dtype)
            tau = self.array(scales, dtype, (k,), (1,))
            found[...] = run("LR"[side], turn, vectors, tau, found, lwork=room)[0]
            self.put_info(info, 0)

        self.give(self.stream, work)

    def do_cusolverDnXsyevd_bufferSize(self, *args: Any) -> None:
        self.rooms(*args[-2:])

    def do_cusolverDnXsyevd(
        self, handle: int, params: int, vectors: int, upper: int, n: int, kind: int, a: int,
        step: int, real: int, values: int, compute: int, *rest: int,
    ) -> None:  # fmt: skip
        self.begun(handle, params, *rest[:4])
        assert (kind, vectors) == (compute, 1)

        def work() -> None:
            found = self.matrix(a, TYPES[kind], n, n, step)
            w, v = np.linalg.eigh(found, "U" if upper else "L")
            found[...] = v
            self.array(values, TYPES[real], (n,), (1,))[:] = w
            self.put_info(rest[4], 0)

        self.give(self.stream, work)

    def gesvdj(
        self, dtype: Any, handle: int, vectors: int, thin: int, m: int, n: int, a: int, step: int,
        values: int, u: int, u_step: int, v: int, v_step: int, scratch: int, room: int, info: int,
        params: int,
    ) -> None:  # fmt: skip
        assert self.objects[params] == "gesvdj"
        assert (vectors, room) == (1, self.ROOM)

        def work() -> None:
            found = self.matrix(a, dtype, m, n, step)
            wrong = not np.isfinite(found).all()
            left, s, right = np.linalg.svd(np.where(wrong, 0, found), full_matrices=not thin)
            self.matrix(u, dtype, *left.shape, u_step)[...] = left
            self.matrix(v, dtype, *right.shape[::-1], v_step)[...] = right.conj().T
            self.array(values, s.dtype, s.shape, (1,))[:] = s
            self.put_info(info, min(m, n) + 1 if wrong else 0)

        self.give(self.stream, work)


class FakeCublas(FakeFunctions):
    """cuBLAS's solver of triangular systems."""

    PROTOTYPES, RESULTS = cublas.PROTOTYPES, cublas.RESULTS

    def __init__(self, driver: FakeLibrary) -> None:
        super().__init__(driver)
        self.stream = 0
        for dtype, letter in cusolver.LETTERS.items():
            for name in ("trsm_v2", "trsmBatched", "getrfBatched", "getrsBatched"):
                do = getattr(self, name.split("_")[0])
                self.own[f"cublas{letter}{name}"] = functools.partial(do, np.dtype(dtype))

    def do_cublasCreate_v2(self, out: int) -> None:
        self.made(out, "handle")

    def do_cublasSetStream_v2(self, handle: int, stream: int) -> None:
        assert self.objects[handle] == "handle"
        self.stream = stream

    def do_cublasGetProperty(self, which: int, out: int) -> None:
        ctypes.c_int.from_address(out).value = (13, 1, 0)[which]

    def do_cublasGetStatusName(self, status: int) -> bytes:
        return b"CUBLAS_STATUS_?"

    def do_cublasGetStatusString(self, status: int) -> bytes:
        return b"the words of the library"

    def trsm(
        self, dtype: Any, _: Any, handle: int, side: int, upper: int, turned: int, unit: int,
        m: int, n: int, alpha: int, a: int, a_step: int, b: int, b_step: int,
    ) -> None:  # fmt: skip
        assert (side, turned) == (0, 0)
        assert self.driver.host(alpha, dtype.itemsize).view(dtype)[0] == 1
        self.give(
            self.stream,
            lambda: self.solve(dtype, upper, turned, unit, m, n, a, a_step, b, b_step),
        )

    def solve(
        self, dtype: Any, upper: int, turned: int, unit: int, m: int, n: int, a: int, a_step: int,
        b: int, b_step: int,
    ) -> None:  # fmt: skip
        assert not turned
        factors = self.array(a, dtype, (m, m), (1, a_step))
        right = self.array(b, dtype, (m, n), (1, b_step))
        right[...] = scipy.linalg.solve_triangular(
            factors, right, lower=not upper, unit_diagonal=bool(unit)
        )

    def trsmBatched(self, dtype: Any, _: Any, handle: int, *args: int) -> None:
        *how, a, a_step, b, b_step, count = args

        def work() -> None:
            for left, right in zip(self.places(a, count), self.places(b, count)):
                self.solve(dtype, *how[1:6], left, a_step, right, b_step)

        assert self.driver.host(how[-1], dtype.itemsize).view(dtype)[0] == 1
        self.give(self.stream, work)

    def places(self, at: int, count: int) -> list[int]:
        """The addresses in an array."""
        return self.array(at, np.int64, (count,), (1,)).tolist()  # type: ignore[no-any-return]

    def getrfBatched(
        self, dtype: Any, _: Any, handle: int, n: int, a: int, step: int, pivots: int, infos: int,
        count: int,
    ) -> None:  # fmt: skip
        (run,) = scipy.linalg.get_lapack_funcs(("getrf",), dtype=dtype)

        def work() -> None:
            for k, place in enumerate(self.places(a, count)):
                found = self.array(place, dtype, (n, n), (1, step))
                found[...], pivot, info = run(found)
                self.array(pivots + 4 * k * n, np.int32, (n,), (1,))[:] = pivot + 1
                self.array(infos + 4 * k, np.int32, (1,), (1,))[0] = info

        self.give(self.stream, work)

    def getrsBatched(
        self, dtype: Any, _: Any, handle: int, turned: int, n: int, columns: int, a: int,
        step: int, pivots: int, b: int, b_step: int, info: int, count: int,
    ) -> None:  # fmt: skip
        (run,) = scipy.linalg.get_lapack_funcs(("getrs",), dtype=dtype)
        self.driver.host(info, 4)[:] = 0

        def work() -> None:
            for k, places in enumerate(zip(self.places(a, count), self.places(b, count))):
                factors = self.array(places[0], dtype, (n, n), (1, step))
                right = self.array(places[1], dtype, (n, columns), (1, b_step))
                pivot = self.array(pivots + 4 * k * n, np.int32, (n,), (1,))
                right[...] = run(factors, pivot - 1, right, trans=turned)[0]

        self.give(self.stream, work)
