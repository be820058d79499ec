"""NVIDIA's libraries without a GPU: the functions that antorcha uses, over NumPy.

Each is a library object for ``devices/cuda/libraries/loader.py``: every function is a C function of
the type that ``PROTOTYPES`` gives, so that arguments go through C. Matrices are read and written in
the simulator's memory, and the work is done when the stream of the fake driver is waited for.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import scipy.linalg

from antorcha.devices.cuda.libraries import cublas, cublaslt, cudnn, cusolver, loader
from antorcha.devices.numpy_semantics.conv import compute_conv
from antorcha.devices.sim.memory import memory as arena
from antorcha.lang.kernels import Conv
from tests.devices.cuda.fake_driver import FakeLibrary

TYPES: dict[int, Any] = {
    0: np.float32, 1: np.float64, 2: np.float16, 4: np.complex64, 5: np.complex128,
    14: ml_dtypes.bfloat16,
}  # fmt: skip


class FakeFunctions:
    """The functions of a library: methods ``do_<name>`` of a subclass."""

    PROTOTYPES: Mapping[str, tuple[Any, ...]] = {}
    RESULTS: Mapping[str, Any] = {}
    BROKEN = 99  # the status of a function that raised

    def __init__(self, driver: FakeLibrary) -> None:
        self.driver = driver
        self.own: dict[str, Any] = {}
        self.calls: list[str] = []
        self.failing: dict[str, int] = {}
        self.objects: dict[int, Any] = {}
        self.kept: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        own = self.own.get(name) or getattr(type(self), "do_" + name, None)
        if name not in self.PROTOTYPES or own is None:
            raise AttributeError(name)
        result = self.RESULTS.get(name, ctypes.c_int)

        def run(*args: Any) -> Any:
            self.calls.append(name)
            if name in self.failing:
                return self.failing[name]
            try:
                return own(self, *args) or 0
            except BaseException as error:  # (C cannot pass it on: the fixture raises it)
                self.driver.errors.append(error)
                return self.BROKEN

        if result is ctypes.c_char_p:  # a callback cannot give one: the text is kept here

            def text(*args: Any) -> int:
                buffer = ctypes.create_string_buffer(own(self, *args))
                self.kept.append(buffer)
                return ctypes.addressof(buffer)

            found: Any = ctypes.CFUNCTYPE(ctypes.c_void_p, *self.PROTOTYPES[name])(text)
            address = ctypes.cast(found, ctypes.c_void_p).value
            self.kept.append(found)
            found = ctypes.CFUNCTYPE(ctypes.c_char_p, *self.PROTOTYPES[name])(address)
        else:
            found = ctypes.CFUNCTYPE(result, *self.PROTOTYPES[name])(run)
        self.kept.append(found)
        return found

    def made(self, out: int, thing: Any) -> None:
        """Leaves a handle of a new object where it goes."""
        number = 0x5000 + 16 * len(self.objects)
        self.objects[number] = thing
        ctypes.c_void_p.from_address(out).value = number

    def dropped(self, handle: int) -> None:
        assert self.objects[handle] is not None, "it is given back twice"
        self.objects[handle] = None

    def give(self, stream: int | None, work: Any) -> None:
        """Work for a stream of the current GPU."""

        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                self.driver.errors.append(error)

        self.driver.give(self.driver.stream(stream), guarded)

    def array(
        self, address: int, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> Any:
        """The elements at an address of the simulator's; strides in elements."""
        size = np.dtype(dtype).itemsize
        reach = sum([s * (n - 1) for n, s in zip(shape, strides, strict=True)]) + 1
        self.driver.check(address, reach * size)
        data = arena.bytes_at(address, reach * size)
        return np.ndarray(shape, dtype, data, 0, tuple([s * size for s in strides]))


class FakeCublasLt(FakeFunctions):
    """cuBLASLt."""

    PROTOTYPES, RESULTS = cublaslt.PROTOTYPES, cublaslt.RESULTS
    KINDS = {cublaslt.BIAS_POINTER: ctypes.c_void_p, cublaslt.BIAS_STACK: ctypes.c_int64}
    WORKSPACE = 1024

    def __init__(self, driver: FakeLibrary) -> None:
        super().__init__(driver)
        self.jobs: list[dict[Any, Any]] = []  # the products that were asked for

    def do_cublasLtGetVersion(self) -> int:
        return 130200

    def do_cublasLtGetStatusName(self, status: int) -> bytes:
        return {7: b"CUBLAS_STATUS_INVALID_VALUE", 13: b"CUBLAS_STATUS_EXECUTION_FAILED"}.get(
            status, b"CUBLAS_STATUS_?"
        )

    def do_cublasLtGetStatusString(self, status: int) -> bytes:
        return b"the words of the library"

    def do_cublasLtCreate(self, out: int) -> None:
        self.made(out, "handle")

    # ---- descriptions
    def do_cublasLtMatmulDescCreate(self, out: int, compute: int, scale: int) -> None:
        self.made(out, {"compute": compute, "scale": scale})

    def do_cublasLtMatmulDescSetAttribute(self, job: int, which: int, at: int, size: int) -> None:
        kind = self.KINDS.get(which, ctypes.c_int32)
        assert size == ctypes.sizeof(kind), f"attribute {which} has {size} bytes"
        self.objects[job][which] = kind.from_address(at).value

    def do_cublasLtMatrixLayoutCreate(
        self, out: int, dtype: int, rows: int, columns: int, step: int
    ) -> None:
        assert rows > 0
        assert columns > 0
        assert step >= rows, f"columns of {rows} elements lie {step} apart"
        self.made(out, {"type": dtype, "sizes": (rows, columns), "step": step})

    def do_cublasLtMatrixLayoutSetAttribute(
        self, matrices: int, which: int, at: int, size: int
    ) -> None:
        kind = {5: ctypes.c_int32, 6: ctypes.c_int64}[which]
        assert size == ctypes.sizeof(kind)
        self.objects[matrices][which] = kind.from_address(at).value

    def do_cublasLtMatmulPreferenceCreate(self, out: int) -> None:
        self.made(out, {})

    def do_cublasLtMatmulPreferenceSetAttribute(
        self, preference: int, which: int, at: int, size: int
    ) -> None:
        kind: Any = ctypes.c_size_t if which == 1 else ctypes.c_int32
        assert size == ctypes.sizeof(kind)
        self.objects[preference][which] = kind.from_address(at).value

    def do_cublasLtMatmulDescDestroy(self, handle: int) -> None:
        self.dropped(handle)

    def do_cublasLtMatrixLayoutDestroy(self, handle: int) -> None:
        self.dropped(handle)

    def do_cublasLtMatmulPreferenceDestroy(self, handle: int) -> None:
        self.dropped(handle)

    # ---- products
    def do_cublasLtMatmulAlgoGetHeuristic(
        self, handle: int, job: int, a: int, b: int, c: int, d: int, preference: int, wanted: int,
        result: int, count: int,
    ) -> int:  # fmt: skip
        given = self.objects[preference]
        assert given[1] == 32 << 20
        self._check(job, a, b, c, d)
        found = cublaslt.LtHeuristic.from_address(result)
        found.algorithm[0] = min([given[k] for k in cublaslt.ALIGNMENTS])
        found.workspace, found.state = self.WORKSPACE, 0
        ctypes.c_int.from_address(count).value = wanted
        return 0

    def _check(self, *handles: int) -> tuple[int, int, int]:
        """The sizes fit one another."""
        job, a, b, c, d = [self.objects[h] for h in handles]
        m, k = a["sizes"][::-1] if job.get(cublaslt.TRANSPOSE_A) else a["sizes"]
        k2, n = b["sizes"][::-1] if job.get(cublaslt.TRANSPOSE_B) else b["sizes"]
        assert k == k2
        assert (m, n) == c["sizes"] == d["sizes"]
        assert a["type"] == b["type"]
        assert c["type"] == d["type"]
        assert len({x.get(5, 1) for x in (a, b, c, d)}) == 1
        return m, n, k

    def _matrices(self, address: int, seen: dict[Any, Any], lowest: int) -> Any:
        dtype = TYPES[seen["type"]]
        assert address % min(lowest, 256) == 0, "it is not aligned as was said"
        shape = (seen.get(5, 1), *seen["sizes"])
        return self.array(address, dtype, shape, (seen.get(6, 0), 1, seen["step"]))

    def do_cublasLtMatmul(
        self, handle: int, job: int, alpha: int, a: int, a_seen: int, b: int, b_seen: int,
        beta: int, c: int, c_seen: int, d: int, d_seen: int, algorithm: int, workspace: int,
        room: int, stream: int,
    ) -> None:  # fmt: skip
        assert self.objects[handle] == "handle"
        self._check(job, a_seen, b_seen, c_seen, d_seen)
        lowest = cublaslt.LtHeuristic.from_address(algorithm).algorithm[0]
        assert room == self.WORKSPACE
        self.driver.check(workspace, room)
        given = dict(self.objects[job])
        seen = [dict(self.objects[handle]) for handle in (a_seen, b_seen, c_seen, d_seen)]
        self.jobs.append(given)
        scale = np.dtype(TYPES[given["scale"]])
        weights = [self.driver.host(x, scale.itemsize).view(scale)[0].copy() for x in (alpha, beta)]

        def work() -> None:
            left = self._matrices(a, seen[0], lowest)
            right = self._matrices(b, seen[1], lowest)
            result = self._matrices(d, seen[3], lowest)
            left = left.swapaxes(1, 2) if given.get(cublaslt.TRANSPOSE_A) else left
            right = right.swapaxes(1, 2) if given.get(cublaslt.TRANSPOSE_B) else right
            total = weights[0] * (left.astype(scale) @ right.astype(scale))
            if weights[1]:
                total = total + weights[1] * self._matrices(c, seen[2], lowest).astype(scale)
            if given.get(cublaslt.EPILOGUE) == cublaslt.EPILOGUE_BIAS:
                steps = given.get(cublaslt.BIAS_STACK, 0), 1
                vector = self.array(given[8], result.dtype, total.shape[:2], steps)
                total = total + vector.astype(scale)[:, :, None]
            result[...] = total.astype(result.dtype)

        self.give(stream, work)


class FakeCusolver(FakeFunctions):
    """cuSOLVER, by SciPy's LAPACK."""

    PROTOTYPES = cusolver.PROTOTYPES
    ROOM, HOST_ROOM = 640, 320

    def __init__(self, driver: FakeLibrary) -> None:
        super().__init__(driver)
        self.stream = 0
        for dtype, letter in cusolver.LETTERS.items():
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
            self.own[f"cublas{letter}trsm_v2"] = functools.partial(self.trsm, np.dtype(dtype))

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

        def work() -> None:
            factors = self.array(a, dtype, (m, m), (1, a_step))
            right = self.array(b, dtype, (m, n), (1, b_step))
            right[...] = scipy.linalg.solve_triangular(
                factors, right, lower=not upper, unit_diagonal=bool(unit)
            )

        self.give(self.stream, work)


class FakeCudnn(FakeFunctions):
    """cuDNN's graphs of one convolution."""

    PROTOTYPES, RESULTS = cudnn.PROTOTYPES, cudnn.RESULTS
    DATA = {0: np.float32, 1: np.float64, 2: np.float16, 9: ml_dtypes.bfloat16}

    def __init__(self, driver: FakeLibrary) -> None:
        super().__init__(driver)
        # what is said of the ways that the heuristic ranks: the first cannot be planned
        self.ways: list[list[int]] = [[-1], [cudnn.NOT_DETERMINISTIC], [cudnn.TENSOR_CORE], [9]]
        self.ran: list[tuple[str, list[int]]] = []
        self.ticks: dict[int, int] = {}  # how long ways take, by what is said of them
        self.stream = 0

    def do_cudnnGetVersion(self) -> int:
        return 91300

    def do_cudnnGetErrorString(self, status: int) -> bytes:
        return {3000: b"CUDNN_STATUS_NOT_SUPPORTED", 5000: b"CUDNN_STATUS_EXECUTION_FAILED"}.get(
            status, b"CUDNN_STATUS_?"
        )

    def do_cudnnGetLastErrorString(self, text: int, size: int) -> None:
        ctypes.memmove(text, b"no engine\0", 10)

    def do_cudnnCreate(self, out: int) -> None:
        self.made(out, "handle")

    def do_cudnnSetStream(self, handle: int, stream: int) -> None:
        assert self.objects[handle] == "handle"
        self.stream = stream

    def do_cudnnBackendCreateDescriptor(self, kind: int, out: int) -> None:
        self.made(out, {"kind": kind, "done": False})

    def do_cudnnBackendDestroyDescriptor(self, handle: int) -> None:
        self.dropped(handle)

    def do_cudnnBackendSetAttribute(
        self, handle: int, attribute: int, kind: int, count: int, values: int
    ) -> None:
        given = self.objects[handle]
        assert not given["done"], "an attribute of a finalised descriptor"
        (ctype,) = [c for number, c in cudnn.TYPES.values() if number == kind]
        given[attribute] = list((ctype * count).from_address(values))
        if kind == cudnn.TYPES["descriptor"][0]:
            given[attribute] = [self.objects[h] for h in given[attribute]]
            assert all([each["done"] for each in given[attribute]]), "it is not finalised"

    def do_cudnnBackendFinalize(self, handle: int) -> int:
        given = self.objects[handle]
        given["done"] = True
        if given["kind"] == cudnn.HEURISTIC:
            given[202] = self.ways if given[200] == [cudnn.BY_MODEL] else []
        if given["kind"] == cudnn.PLAN:
            given[402] = [768]
            if given[401][0]["notes"] == [-1]:
                return 3000
        return 0

    def do_cudnnBackendGetAttribute(
        self, handle: int, attribute: int, kind: int, wanted: int, count: int, values: int
    ) -> None:
        given = self.objects[handle]
        number = ctypes.c_int64.from_address(count)
        if attribute == 202:
            number.value = len(given[202])
            for k in range(wanted):
                made = self.objects[(ctypes.c_void_p * wanted).from_address(values)[k]]
                made.update(done=True, notes=given[202][k], graph=given[201][0])
        elif attribute == 300:
            number.value = 1
            made = self.objects[ctypes.c_void_p.from_address(values).value]
            made.update(done=True, notes=given["notes"])
        else:
            found = given["notes"] if attribute == 1303 else given[attribute]
            number.value = len(found)
            ctype = ctypes.c_int if attribute == 1303 else ctypes.c_int64
            (ctype * wanted).from_address(values)[: len(found)] = found

    def _tensor(self, seen: dict[Any, Any], places: dict[int, int]) -> Any:
        address = places[seen[906][0]]
        assert address % seen[900][0] == 0, "it is not aligned as was said"
        dtype = self.DATA[seen[901][0]]
        return self.array(address, dtype, tuple(seen[902]), tuple(seen[903]))

    def do_cudnnBackendExecute(self, handle: int, plan: int, pack: int) -> None:
        way, where = self.objects[plan][401][0], dict(self.objects[pack])
        (job,) = way["graph"][801]
        kind, at = {10: ("forward", 702), 12: ("data", 708), 11: ("weight", 714)}[job["kind"]]
        how = job[at][0]
        self.driver.check(where[1003][0], 768)
        places = dict(zip(where[1000], where[1001], strict=True))
        self.ran.append((kind, way["notes"]))
        assert how[101] == [cudnn.CROSS_CORRELATION]

        def work() -> None:
            self.driver.clock += self.ticks.get(way["notes"][0], 0)
            w, x, y = (self._tensor(job[at + k][0], places) for k in (1, 2, 3))
            for n, t, o, before, after, step, dilation in zip(
                x.shape[2:], w.shape[2:], y.shape[2:], how[105], how[104], how[103], how[102],
                strict=True,
            ):  # fmt: skip
                assert (n + before + after - (t - 1) * dilation - 1) // step + 1 == o
            what = Conv(
                kind, x.shape, w.shape, y.shape, tuple(how[103]), tuple(how[105]), tuple(how[102]),
                x.shape[1] // w.shape[1],
            )  # fmt: skip
            out, *given = {"forward": (y, x, w), "data": (x, y, w), "weight": (w, x, y)}[kind]
            out[...] = compute_conv(what, out.dtype.itemsize == 2)(given)[0].astype(out.dtype)

        self.give(self.stream, work)


FAKES: dict[str, Any] = {
    "cublasLt": FakeCublasLt,
    "cublas": FakeCublas,
    "cusolver": FakeCusolver,
    "cudnn": FakeCudnn,
}


def install(monkeypatch: Any, driver: FakeLibrary, *names: str) -> dict[str, FakeFunctions]:
    """Puts fakes in the place of the libraries named; the others are not installed."""
    loader.forget()
    found = {name: FAKES[name](driver) for name in names}

    def open_library(name: str) -> FakeFunctions:
        if name not in found:
            raise OSError(f"lib{name}.so: cannot open shared object file")
        return found[name]

    monkeypatch.setattr(loader, "open_library", open_library)
    return found
