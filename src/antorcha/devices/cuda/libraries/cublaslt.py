"""cuBLASLt's functions: products of matrices.

Its matrices lie column by column. A product is described by objects of the library's own
(:class:`LtObject`), which are given back when they go.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

from antorcha.devices.cuda.libraries.loader import NvidiaLibrary
from antorcha.runtime.memory.storage import Storage

_OUT, _HANDLE, _POINTER = c_void_p, c_void_p, c_void_p
_ATTRIBUTE = (_HANDLE, c_int, c_void_p, c_size_t)

PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (_OUT,),
    "cublasLtGetVersion": (),
    "cublasLtGetStatusName": (c_int,),
    "cublasLtGetStatusString": (c_int,),
    "cublasLtMatmulDescCreate": (_OUT, c_int, c_int),
    "cublasLtMatmulDescSetAttribute": _ATTRIBUTE,
    "cublasLtMatmulDescDestroy": (_HANDLE,),
    "cublasLtMatrixLayoutCreate": (_OUT, c_int, c_uint64, c_uint64, c_int64),
    "cublasLtMatrixLayoutSetAttribute": _ATTRIBUTE,
    "cublasLtMatrixLayoutDestroy": (_HANDLE,),
    "cublasLtMatmulPreferenceCreate": (_OUT,),
    "cublasLtMatmulPreferenceSetAttribute": _ATTRIBUTE,
    "cublasLtMatmulPreferenceDestroy": (_HANDLE,),
    "cublasLtMatmulAlgoGetHeuristic": (*[_HANDLE] * 7, c_int, _OUT, _OUT),
    "cublasLtMatmul": (
        _HANDLE, _HANDLE, _POINTER, _POINTER, _HANDLE, _POINTER, _HANDLE, _POINTER, _POINTER,
        _HANDLE, _POINTER, _HANDLE, _POINTER, _POINTER, c_size_t, _HANDLE,
    ),
}  # fmt: skip
"""What is used of cuBLASLt: the functions' names, and the types of their arguments."""
RESULTS = {
    "cublasLtGetVersion": c_size_t, "cublasLtGetStatusName": c_char_p,
    "cublasLtGetStatusString": c_char_p,
}  # fmt: skip
"""The functions that give something else than a status."""

NOT_SUPPORTED = 15
DATA_TYPES = {
    "float32": 0, "float64": 1, "float16": 2, "complex64": 4, "complex128": 5, "bfloat16": 14,
}  # fmt: skip
"""Numbers of ``cudaDataType``."""
COMPUTE_32F, COMPUTE_64F, COMPUTE_TF32 = 68, 70, 77
"""Numbers of ``cublasComputeType_t``."""
TRANSPOSE_A, TRANSPOSE_B, EPILOGUE, BIAS_POINTER, BIAS_STACK = 3, 4, 7, 8, 10
"""Numbers of ``cublasLtMatmulDescAttributes_t``."""
OPERATION_T, EPILOGUE_BIAS = 1, 4
BATCH_COUNT, BATCH_STRIDE = 5, 6
"""Numbers of ``cublasLtMatrixLayoutAttribute_t``."""
MOST_WORKSPACE, REDUCTIONS, ALIGNMENTS = 1, 3, (5, 6, 7, 8)
"""Numbers of ``cublasLtMatmulPreferenceAttributes_t``."""
EXACT_REDUCTIONS = 0 | 2
"""Of the ways to add the parts of a sum up: none, and in the type that it is computed in."""


class LtHeuristic(ctypes.Structure):
    """A way to compute a product: ``cublasLtMatmulHeuristicResult_t``."""

    _fields_ = (
        ("algorithm", c_uint64 * 8), ("workspace", c_size_t), ("state", c_int),
        ("waves", ctypes.c_float), ("reserved", c_int * 4),
    )  # fmt: skip


class CublasLt(NvidiaLibrary):
    """cuBLASLt, and a handle of it for each GPU."""

    STEM = "cublasLt"

    def __init__(self, handle: Any) -> None:
        super().__init__("cuBLASLt", handle, PROTOTYPES, RESULTS)
        self.version = int(self.functions["cublasLtGetVersion"]())
        self.multiply = self.functions["cublasLtMatmul"]
        self.handles: dict[int, int] = {}
        self.workspaces: dict[tuple[int, int], Storage] = {}

    def text(self, status: int) -> str:
        name = self.functions["cublasLtGetStatusName"](status) or b"unknown status"
        words = self.functions["cublasLtGetStatusString"](status) or b""
        return f"{name.decode()} ({words.decode()})"

    def handle_of(self, gpu: Any) -> int:
        """The handle of a GPU, whose context is current."""
        found = self.handles.get(gpu.index)
        if found is None:
            found = self.handles.setdefault(gpu.index, self.made("cublasLtCreate"))
        return found

    def workspace(self, device: Any, nbytes: int) -> Storage:
        """Scratch memory for the current stream, which is kept: what one product leaves in it, the
        stream's next overwrites. A graph has its own, as it may run beside the stream."""
        stream = device.gpu.stream
        if stream.capture is not None:
            storage: Storage = device.allocate(nbytes)
            return storage
        key = device.gpu.index, stream.handle
        found = self.workspaces.get(key)
        if found is None or found.nbytes < nbytes:
            found = self.workspaces[key] = device.allocate(nbytes)
        return found

    def heuristic(
        self, handle: int, operands: tuple[int, ...], preference: int
    ) -> LtHeuristic | None:
        """The way that the library takes for the best; None where it has none."""
        result, count = LtHeuristic(), c_int()
        function = "cublasLtMatmulAlgoGetHeuristic"
        status = self.functions[function](
            handle, *operands, preference, 1, ctypes.byref(result), ctypes.byref(count)
        )
        if status not in (0, NOT_SUPPORTED):
            raise self.error(function, status)
        return result if not status and count.value and not result.state else None


class LtObject:
    """A descriptor of the library's: ``kind`` is MatmulDesc, MatrixLayout or MatmulPreference."""

    def __init__(self, lt: CublasLt, kind: str, *args: Any) -> None:
        self.lt, self.kind = lt, kind
        self.handle = lt.made(f"cublasLt{kind}Create", *args)

    def set(self, attribute: int, value: int, type: Any = c_int32) -> None:
        """Sets an attribute."""
        given = type(value)
        self.lt.call(
            f"cublasLt{self.kind}SetAttribute", self.handle, attribute, ctypes.byref(given),
            ctypes.sizeof(given),
        )  # fmt: skip

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            self.lt.functions[f"cublasLt{self.kind}Destroy"](self.handle)
