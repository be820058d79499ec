"""NVIDIA's libraries without a GPU: cuBLASLt and cuDNN, and all of them installed (see
``fake_functions``)."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from antorcha.devices.cuda.libraries import cublaslt, cudnn, loader
from antorcha.devices.numpy_semantics.conv import compute_conv
from antorcha.lang.kernels import Conv
from tests.devices.cuda.fake_cufft import FakeCufft
from tests.devices.cuda.fake_driver import FakeLibrary
from tests.devices.cuda.fake_functions import TYPES, FakeFunctions
from tests.devices.cuda.fake_solvers import FakeCublas, FakeCusolver


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
    "cufft": FakeCufft,
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
