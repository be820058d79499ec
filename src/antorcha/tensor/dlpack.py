"""DLPack: sharing memory with other libraries (NumPy, PyTorch, JAX, CuPy, ...), both ways.

What travels is a C structure in a capsule. A tensor that is exported lives in an `Export`: the
structure, and what keeps the memory alive and in its place. The structure owns one reference to
its Export; its deleter (machine code, so that it works from any thread, with or without the
interpreter lock, and does nothing once the interpreter is gone) drops it. A structure that is
imported lives in an `Import`, the owner of the storage, which calls the producer's deleter once.

Capsules come in two kinds: "dltensor" (before version 1.0) and "dltensor_versioned", which can say
that the memory is read-only. A consumer renames the capsule when it takes the structure over.
"""

# ruff: noqa: N815  (DLPack's own names)
from __future__ import annotations

import ctypes
import enum
from typing import Any

from antorcha.core import dtypes
from antorcha.core.device import CPU, Device, as_device, backend
from antorcha.core.lazy import lazy, np
from antorcha.core.shapes import extent, numel
from antorcha.errors import ArgumentError, GraphError, ValueRangeError
from antorcha.lang.native import Extern, cstr, func, i32, native, ptr, raw, void
from antorcha.ops.kinds.record import T
from antorcha.runtime.cpython import Py_DecRef
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory import storage as S
from antorcha.runtime.tensor import Tensor, bare

cuda_gpu = lazy("antorcha.devices.cuda.gpu")

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """Kinds of devices, by DLPack's numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


_DEVICES = {"cpu": DLDeviceType.kDLCPU, "cuda": DLDeviceType.kDLCUDA, "mps": DLDeviceType.kDLMetal}
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_NAMED_CODES = {
    "bfloat16": 4, "float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12,
    "float8_e5m2fnuz": 13, "float8_e8m0fnu": 14,
}  # fmt: skip
READ_ONLY, IS_COPIED = 1, 2
VERSION = (1, 0)


class _Array(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("array", _Array), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("array", _Array),
    )  # fmt: skip


# ---- machine code: what C calls when a consumer has done
Py_IsInitialized = Extern("Py_IsInitialized", i32)
PyGILState_Ensure = Extern("PyGILState_Ensure", i32)
PyGILState_Release = Extern("PyGILState_Release", void, i32)
PyCapsule_IsValid = Extern("PyCapsule_IsValid", i32, raw, raw)
PyCapsule_GetPointer = Extern("PyCapsule_GetPointer", raw, raw, raw)
deleter_t = func[void, raw]


@native
def drop(export: raw) -> void:
    """Gives back the reference that a structure has to its Export."""
    if Py_IsInitialized() != 0:
        state = PyGILState_Ensure()
        Py_DecRef(export)
        PyGILState_Release(state)


@native
def delete_plain(managed: raw) -> void:
    drop(ptr[raw](managed)[6])


@native
def delete_versioned(managed: raw) -> void:
    drop(ptr[raw](managed)[1])


@native
def capsule_ended(capsule: raw) -> void:
    """The capsule's destructor: if nobody took the structure over, it goes now."""
    if PyCapsule_IsValid(capsule, raw(cstr("dltensor"))) != 0:
        delete_plain(PyCapsule_GetPointer(capsule, raw(cstr("dltensor"))))
    elif PyCapsule_IsValid(capsule, raw(cstr("dltensor_versioned"))) != 0:
        delete_versioned(PyCapsule_GetPointer(capsule, raw(cstr("dltensor_versioned"))))


_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"
_USED = {_PLAIN: b"used_dltensor", _VERSIONED: b"used_dltensor_versioned"}
_api = ctypes.PyDLL(None) if not hasattr(ctypes, "pythonapi") else ctypes.pythonapi


def _c_function(name: str, result: Any, *arguments: Any) -> Any:
    made = ctypes.PYFUNCTYPE(result, *arguments)((name, _api))
    return made


_capsule_new = _c_function(
    "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
_capsule_is_valid = _c_function(
    "PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p
)
_capsule_pointer = _c_function(
    "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p
)
_capsule_rename = _c_function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_keep = _c_function("Py_IncRef", None, ctypes.py_object)
_unkeep = _c_function("Py_DecRef", None, ctypes.py_object)
for _name in (*_USED, *_USED.values()):
    _keep(_name)  # capsules point to their names, perhaps until after this module is gone
_call_deleter = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


# -------------------------------------------------------------------------------------- exporting
class Export:
    """A tensor that another library may be using: the C structure and what it points to."""

    def __init__(self, tensor: Tensor, versioned: bool, flags: int) -> None:
        layout, storage, offset = tensor._layout, tensor._storage, tensor._offset
        elsewhere = storage.flags & S.ELSEWHERE
        self.pinned = storage if elsewhere else memoryview(storage)  # it stays where it is
        L.check_inside(layout, storage.nbytes, offset)
        self.words = (ctypes.c_int64 * max(2 * layout.ndim, 1))(*layout.shape, *_strides(layout))
        self.managed: Any = _Versioned() if versioned else _Managed()
        array = self.managed.array
        array.data = storage.ptr + offset * layout.itemsize if layout.numel else None
        array.device_type, array.device_id = dlpack_device(tensor)
        array.ndim = layout.ndim
        array.code = _code_of(layout.dtype)
        array.bits, array.lanes = 8 * layout.itemsize, 1
        at = ctypes.addressof(self.words)
        array.shape = ctypes.cast(at, ctypes.POINTER(ctypes.c_int64))
        array.strides = ctypes.cast(at + 8 * layout.ndim, ctypes.POINTER(ctypes.c_int64))
        self.managed.context = id(self)
        deleter = delete_versioned if versioned else delete_plain
        self.managed.deleter = deleter.spec().addr
        if versioned:
            self.managed.major, self.managed.minor = VERSION
            self.managed.flags = flags

    def capsule(self, name: bytes) -> Any:
        """A capsule that owns this export until somebody takes it over."""
        _keep(self)
        try:
            return _capsule_new(ctypes.addressof(self.managed), name, capsule_ended.spec().addr)
        except BaseException:
            _unkeep(self)
            raise


def _strides(layout: L.Layout) -> tuple[int, ...]:
    """As PyTorch gives them: 1 along dims of size 1."""
    return tuple([1 if n <= 1 else s for n, s in zip(layout.shape, layout.strides, strict=True)])


def dlpack_device(self: Tensor) -> tuple[DLDeviceType, int]:
    """The device as DLPack numbers it: (kind, index)."""
    device = self._layout.device
    kind = _DEVICES.get(device.type)
    if kind is None:
        raise ValueRangeError(f"Unknown device type {device.type} for Dlpack")
    return kind, device.index or 0


def dlpack(
    self: Tensor,
    *,
    stream: Any = -1,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule that shares the tensor's memory; ``from_dlpack`` of the other library calls
    this.

    Raises BufferError for tensors that require gradients or have no data, and where read-only
    memory cannot be told to a consumer of before version 1.0.
    """
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if stream is not None and type(stream) is not int:
        raise ArgumentError("stream must be ``int`` or ``none``")
    layout = self._layout
    if layout.device.type not in _DEVICES:
        raise BufferError(f"Cannot pack tensors on {layout.device}: they have no data")
    if layout.device is CPU and stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")
    if layout.device.type == "cuda" and stream != -1:
        _let_wait(stream, layout.device)
    flags = 0
    if dl_device is not None:
        kind, index = int(dl_device[0]), dl_device[1]
        if (kind, index) != dlpack_device(self):
            raise BufferError(
                f"a tensor on {layout.device} cannot be exported to DLPack device {(kind, index)}"
            )
    if copy:
        self, flags = T.clone(self), IS_COPIED
    versioned = max_version is not None and next(iter(max_version)) >= 1
    if S.is_readonly(self._storage):
        if not versioned:
            raise BufferError(
                "Cannot export a read-only tensor: DLPack before version 1.0 cannot say that it is "
                "read-only. Use clone()."
            )
        flags |= READ_ONLY
    return Export(self, versioned, flags).capsule(_VERSIONED if versioned else _PLAIN)


def _let_wait(stream: int | None, device: Device) -> None:
    """What comes next in a consumer's stream (1 or None: the default one) waits for the current
    stream."""
    gpu = cuda_gpu.gpu(device.index)
    if stream == 2:
        raise BufferError("per-thread default stream is not supported.")
    theirs = gpu.default if stream in (None, 1) else gpu.stream_at(stream)
    if theirs is not gpu.stream:
        theirs.wait_for_stream(gpu.stream)


def to_dlpack(tensor: Tensor) -> Any:
    """The older form of ``tensor.__dlpack__()``: an opaque capsule for ``from_dlpack``.

    See https://docs.pytorch.org/docs/stable/dlpack.html.
    """
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"to_dlpack: expected a Tensor, not {type(tensor).__name__}")
    return dlpack(tensor.detach())


# -------------------------------------------------------------------------------------- importing
class Import:
    """A structure taken over from another library; calls its deleter when nobody needs it."""

    def __init__(self, managed: Any) -> None:
        self.managed = managed

    def __del__(self) -> None:
        managed, self.managed = self.managed, None
        if managed is not None and managed.deleter:
            _call_deleter(managed.deleter)(ctypes.addressof(managed))


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's array (or of a DLPack capsule).

    ``ext_tensor`` has ``__dlpack__`` and ``__dlpack_device__``, or is a capsule, which can be used
    once. With ``copy=True`` the memory is copied. Writing to a tensor over read-only memory raises.
    See https://docs.pytorch.org/docs/stable/generated/torch.from_dlpack.html.

    >>> t = torch.arange(4)
    >>> t2 = torch.from_dlpack(t)
    >>> t2[:2] = -1
    >>> t
    tensor([-1, -1,  2,  3])
    """
    where = None if device is None else as_device(device)
    capsule = ext_tensor
    if hasattr(ext_tensor, "__dlpack__"):
        capsule = _ask(ext_tensor)
    result = take(capsule)
    elsewhere = where is not None and where is not result._layout.device
    if elsewhere and copy is False:
        raise ValueRangeError(
            f"cannot move DLPack tensor from device {result._layout.device} to {where} without "
            "copying. Set copy=None or copy=True."
        )
    if elsewhere:
        result = result.to(where)
    elif copy:
        result = T.clone(result)
    return result


def _ask(producer: Any) -> Any:
    """The producer's capsule, of the newest kind that it can make."""
    how: dict[str, Any] = {}
    if producer.__dlpack_device__()[0] == DLDeviceType.kDLCUDA:  # it waits for their work
        index = producer.__dlpack_device__()[1]
        how["stream"] = cuda_gpu.gpu(index).stream.handle or 1
    try:
        return producer.__dlpack__(max_version=VERSION, **how)
    except TypeError:
        return producer.__dlpack__(**how)


def take(capsule: Any) -> Tensor:
    """The tensor in a capsule, which is marked as used."""
    name = _PLAIN
    if type(capsule).__name__ == "PyCapsule" and _capsule_is_valid(capsule, _VERSIONED):
        name = _VERSIONED
    elif type(capsule).__name__ != "PyCapsule" or not _capsule_is_valid(capsule, _PLAIN):
        raise GraphError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed "
            "only once, so you might have already constructed a tensor from it once."
        )
    address = _capsule_pointer(capsule, name)
    managed: Any = (_Versioned if name is _VERSIONED else _Managed).from_address(address)
    if name is _VERSIONED and managed.major > VERSION[0]:
        raise BufferError(
            f"from_dlpack: the capsule is of DLPack {managed.major}.{managed.minor}; "
            f"{VERSION[0]} is supported"
        )
    layout, low = _layout_of(managed.array)
    _capsule_rename(capsule, _USED[name])
    owner = Import(managed)
    readonly = name is _VERSIONED and bool(managed.flags & READ_ONLY)
    start = (managed.array.data or 0) + managed.array.byte_offset
    start = start if layout.numel else 0
    if layout.device is CPU:
        storage = S.wrap(start, layout.nbytes, owner, readonly=readonly)
    else:
        storage = S.wrap_elsewhere(start, layout.nbytes, owner)
    return bare(layout, storage, -low)


def _layout_of(array: Any) -> tuple[L.Layout, int]:
    """What a DLTensor says of its elements, checked."""
    device = CPU
    if array.device_type == DLDeviceType.kDLCUDA:
        device = Device("cuda", array.device_id)
        backend(device)  # raises where it is not there
    elif array.device_type not in (DLDeviceType.kDLCPU, DLDeviceType.kDLCUDAHost):
        kinds = {int(kind): name for name, kind in _DEVICES.items()}
        name = kinds.get(array.device_type, f"of kind {array.device_type}")
        raise BufferError(f"from_dlpack: cannot use the memory of a {name} device")
    dtype = _dtype_of(array.code, array.bits, array.lanes)
    ndim = array.ndim
    if not 0 <= ndim <= 1 << 16:
        raise BufferError(f"from_dlpack: {ndim} dims")
    shape = tuple(array.shape[:ndim]) if ndim else ()
    if any(n < 0 for n in shape):
        raise BufferError(f"from_dlpack: the shape {shape} has a negative size")
    if array.strides and ndim:
        strides = tuple([1 if n <= 1 else s for n, s in zip(shape, array.strides[:ndim])])
    else:
        strides = L.contiguous(shape, dtype, CPU).strides
    if any(s < 0 for s in strides) and numel(shape):
        raise ValueRangeError(
            f"from_dlpack: the strides {strides} of shape {shape} are negative, which tensors "
            "cannot have. Make a copy of the array first: array.copy()."
        )
    low, _ = extent(shape, strides)
    return L.layout(shape, strides, dtype, device), low


def _code_of(dtype: dtypes.dtype) -> int:
    return _NAMED_CODES.get(dtype.name) or _CODES[dtype.kind]


def _dtype_of(code: int, bits: int, lanes: int) -> dtypes.dtype:
    if lanes == 1:
        for dtype in dtypes.ALL:
            if _code_of(dtype) == code and 8 * dtype.itemsize == bits:
                return dtype
    raise BufferError(
        f"from_dlpack: there is no dtype for DLPack code {code} with {bits} bits and {lanes} lanes"
    )


def from_cuda_array(array: Any) -> Tensor:
    """A tensor that shares the memory of an object with ``__cuda_array_interface__``: Numba's, say.

    See https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html.
    """
    seen = array.__cuda_array_interface__
    if seen.get("mask") is not None:
        raise ArgumentError("__cuda_array_interface__: masked arrays are not supported")
    gpu = cuda_gpu.gpu()
    if seen.get("stream") is not None:  # (1: the default one)
        theirs = gpu.default if seen["stream"] == 1 else gpu.stream_at(seen["stream"])
        gpu.stream.wait_for_stream(theirs)
    dtype, shape = dtypes.from_numpy(np.dtype(seen["typestr"])), tuple(seen["shape"])
    layout = L.contiguous(shape, dtype, Device("cuda", gpu.index))
    if seen.get("strides") is not None:
        steps = tuple([step // dtype.itemsize for step in seen["strides"]])
        layout = layout.like(shape, steps)
    start = seen["data"][0] if layout.numel else 0
    return bare(layout, S.wrap_elsewhere(start, layout.nbytes, array), 0)
