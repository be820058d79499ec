"""NumPy and buffers: ``from_numpy``, ``frombuffer``, ``asarray``, and NumPy's protocols.

Memory is shared wherever both sides can have it. Memory that must not be written (a read-only
array, ``bytes``) becomes a read-only storage: whatever would write to it raises before it does.
DLPack is in `dlpack`, loaded when it is first used.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from antorcha.core import dtypes
from antorcha.core.device import CPU
from antorcha.core.hooks import hooks
from antorcha.core.lazy import Array, lazy, np
from antorcha.core.memo import keep
from antorcha.errors import ArgumentError, GraphError, ValueRangeError, warn
from antorcha.ops.kinds.params import to_device, to_dtype, to_int
from antorcha.ops.kinds.record import T
from antorcha.runtime.call import plan as plans
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor, bare
from antorcha.tensor.methods import set_methods
from antorcha.tensor.storages import UntypedStorage
from antorcha.tensor.typed_storage import TypedStorage

if TYPE_CHECKING:
    from antorcha.runtime.memory import arrays
    from antorcha.runtime.memory import storage as S
else:
    S = lazy("antorcha.runtime.memory.storage")
    arrays = lazy("antorcha.runtime.memory.arrays")

array_api = lazy("antorcha.array_api")
tensor_create = lazy("antorcha.tensor.create")
tensor_dlpack = lazy("antorcha.tensor.dlpack")

_READ_ONLY = (
    "The given {} is not writable. A tensor over it can be read, and raises when something would "
    "write to it. {}"
)


# ---------------------------------------------------------------------------- arrays to tensors
_checked: dict[Any, dtypes.dtype] = {}  # by an array's dtype, shape and strides
_layouts: dict[Any, L.Layout] = {}  # the same: of the tensor that shares its memory
plans.on_flush(_layouts.clear)
MOST_ARRAYS = 4096  # that are known


def dtype_of(array: Array) -> dtypes.dtype:
    """The array's dtype as ours; raises what PyTorch raises when there is none."""
    try:
        return dtypes.from_numpy(array.dtype.newbyteorder("="))
    except (TypeError, KeyError, ValueError):
        raise ArgumentError(
            f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. The only "
            "supported types are: float64, float32, float16, complex64, complex128, int64, int32, "
            "int16, int8, uint64, uint32, uint16, uint8, and bool."
        ) from None


def check_array(array: Array) -> dtypes.dtype:
    """The array's dtype as ours; refuses arrays that no tensor can share memory with."""
    key = array.dtype, array.shape, array.strides
    return _checked.get(key) or keep(_checked, key, _check_array(array), MOST_ARRAYS)


def _check_array(array: Array) -> dtypes.dtype:
    dtype = dtype_of(array)
    if any(s < 0 for s in array.strides):
        raise ValueRangeError(
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not currently supported. (You can probably work around this by making a "
            "copy of your array with {fix}.)",
            reason="backwards", strides=array.strides, fix="array.copy()",
        )  # fmt: skip
    size = dtype.itemsize
    if any(s % size for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        raise ValueRangeError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy "
            "array to reallocate the memory: array.copy()."
        )
    if not array.dtype.isnative:
        raise ValueRangeError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported: use "
            "array.astype(array.dtype.newbyteorder('='))."
        )
    return dtype


def from_numpy(ndarray: Array) -> Tensor:
    """A tensor that shares the array's memory: a write to one shows in the other.

    Raises TypeError for dtypes without a counterpart; ValueError for negative strides, another
    byte order, and strides that are no multiple of the element's size. Of a read-only array the
    tensor is read-only.
    See https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html.

    >>> a = np.array([1, 2, 3])
    >>> t = torch.from_numpy(a)
    >>> t[0] = -1
    >>> a
    array([-1,  2,  3])
    """
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentError(
            f"from_numpy: expected np.ndarray (got {type(ndarray).__module__.partition('.')[0]}."
            f"{type(ndarray).__name__}); torch.tensor(...) takes lists and numbers"
        )
    result = share(ndarray)
    if not ndarray.flags.writeable and result._layout.numel:
        advice = "Copy the array first if the tensor is to be written: torch.tensor(array)."
        warn(_READ_ONLY.format("NumPy array", advice), UserWarning)
    return result


def share(array: Array) -> Tensor:
    """A tensor over the array's memory, without a warning."""
    result = None if hooks.share_array is None else hooks.share_array(array)
    if result is not None:
        return result
    key = array.dtype, array.shape, array.strides
    layout = _layouts.get(key) or keep(_layouts, key, _layout_of(array), MOST_ARRAYS)
    address = arrays.address_of(array) if layout.numel else 0
    return bare(layout, S.wrap(address, layout.nbytes, array, readonly=not array.flags.writeable))


def _layout_of(array: Array) -> L.Layout:
    """How a tensor over the array's memory lies."""
    dtype = check_array(array)
    strides = tuple([s // dtype.itemsize if n > 1 else 1
                     for s, n in zip(array.strides, array.shape, strict=True)])  # fmt: skip
    layout = L.layout(tuple(array.shape), strides, dtype, CPU)
    return L.contiguous(tuple(array.shape), dtype, CPU) if layout.contiguous else layout


def address_of(view: memoryview) -> int:
    """Where a contiguous buffer lies; 0 for an empty one."""
    if not view.nbytes:
        return 0
    found: int = arrays.address_of(np.frombuffer(view, np.uint8))
    return found


def frombuffer(
    buffer: Any,
    *,
    dtype: Any = None,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """A 1-D tensor over the memory of an object that has Python's buffer protocol.

    ``count`` elements (all when it is negative), from byte ``offset`` on. Of a read-only buffer
    (``bytes``) the tensor is read-only.
    See https://docs.pytorch.org/docs/stable/generated/torch.frombuffer.html.

    >>> torch.frombuffer(bytearray([1, 0, 2, 0]), dtype=torch.int16)
    tensor([1, 2], dtype=torch.int16)
    """
    if dtype is None:
        raise ArgumentError('frombuffer() missing 1 required positional arguments: "dtype"')
    kind = to_dtype("frombuffer", "dtype", dtype)
    count, offset = to_int("frombuffer", "count", count), to_int("frombuffer", "offset", offset)
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueRangeError("object does not implement Python buffer protocol.") from None
    if not view.contiguous:
        raise ValueRangeError("frombuffer: the buffer is not contiguous: use bytes(buffer)")
    length, size = view.nbytes, kind.itemsize
    if length == 0 or count == 0:
        raise ValueRangeError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueRangeError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({length} bytes) minus 1"
        )
    if count < 0:
        if (length - offset) % size:
            raise ValueRangeError(
                f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a "
                f"multiple of element size ({size})"
            )
        count = (length - offset) // size
    elif offset + count * size > length:
        raise ValueRangeError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must "
            f"not be greater than actual buffer length ({length} bytes)"
        )
    if view.readonly:
        advice = "Pass a bytearray if the tensor is to be written."
        warn(_READ_ONLY.format("buffer", advice), UserWarning)
    layout = L.contiguous((count,), kind, CPU)
    result = bare(
        layout, S.wrap(address_of(view) + offset, layout.nbytes, view, readonly=view.readonly)
    )
    return result.requires_grad_() if requires_grad else result


def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """``obj`` as a tensor, sharing its memory where that is possible and allowed.

    Tensors, NumPy arrays, DLPack capsules and objects, and buffers share; scalars and sequences are
    copied. ``copy=True`` always copies; ``copy=False`` raises ValueError where it would have to.
    See https://docs.pytorch.org/docs/stable/generated/torch.asarray.html.

    >>> torch.asarray([1, 2, 3])
    tensor([1, 2, 3])
    """
    want = None if dtype is None else to_dtype("asarray", "dtype", dtype)
    where = None if device is None else to_device("asarray", "device", device)
    shared = _shared(obj, want, copy)
    if shared is None:
        if copy is False:
            raise ValueRangeError("can't alias arbitrary sequence into a tensor.")
        found: Tensor = tensor_create.tensor(
            obj, dtype=want, device=where, requires_grad=requires_grad
        )
        return found
    return _as_wanted(shared, want, where, copy, requires_grad)


def _shared(obj: Any, want: dtypes.dtype | None, copy: bool | None) -> Tensor | None:
    """A tensor over the object's own memory, if it has any."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, (UntypedStorage, TypedStorage)):
        kind = obj.dtype if isinstance(obj, TypedStorage) else want or dtypes.get_default_dtype()
        layout = L.contiguous((obj.nbytes() // kind.itemsize,), kind, obj.device)
        return bare(layout, obj._storage)
    if isinstance(obj, np.ndarray):
        return share(obj) if copy else from_numpy(obj)
    if isinstance(obj, np.generic):
        if copy is False:
            raise GraphError(
                "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray."
            )
        return share(np.array(obj))
    if type(obj).__name__ == "PyCapsule" or hasattr(obj, "__dlpack__"):
        found: Tensor | None = tensor_dlpack.from_dlpack(obj)
        return found
    if hasattr(obj, "__cuda_array_interface__"):
        found = tensor_dlpack.from_cuda_array(obj)
        return found
    try:
        memoryview(obj)
    except TypeError:
        return None
    if copy:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return frombuffer(obj, dtype=want or dtypes.get_default_dtype())
    return frombuffer(obj, dtype=want or dtypes.get_default_dtype())


def _as_wanted(
    shared: Tensor, want: Any, where: Any, copy: bool | None, requires_grad: bool
) -> Tensor:
    """The tensor of the object's memory, converted as asked."""
    layout = shared._layout
    if copy is False:
        if where is not None and where is not layout.device:
            raise ValueRangeError(f"can't alias tensor from device '{layout.device}' to '{where}'.")
        if want is not None and want is not layout.dtype:
            raise ValueRangeError(
                f"can't alias tensor with dtype '{layout.dtype}' into dtype '{want}'."
            )
    result = shared
    if where is not None and where is not layout.device:
        result = T.to_device(result, where)
    if want is not None and want is not result._layout.dtype:
        result = T.to_dtype(result, want)
    if result is shared and copy:
        result = T.clone(shared)
    if requires_grad and not result.requires_grad:
        result.requires_grad_()
    return result


# ------------------------------------------------------------------------- tensors to arrays
def array_protocol(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Array:
    """``np.asarray(tensor)``: shares memory unless another dtype, or a copy, is asked for."""
    array: Array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueRangeError(
                f"Unable to avoid copy while creating an array of {np.dtype(dtype)} from a tensor "
                f"of {self._layout.dtype}"
            )
        return array.astype(dtype)
    return array.copy() if copy else array


def array_wrap(
    self: Tensor, array: Any, context: Any = None, return_scalar: bool = False
) -> Tensor:
    """The result of a NumPy function of tensors as a tensor again: ``np.sin(tensor)``.

    Results of comparisons are uint8, as PyTorch gives them.
    """
    array = np.asarray(array)
    return share(array.astype(np.uint8) if array.dtype == np.bool_ else array)


def _dlpack(
    self: Tensor, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None,
    copy: bool | None = None,
) -> Any:  # fmt: skip
    return tensor_dlpack.dlpack(
        self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
    )


def _dlpack_device(self: Tensor) -> Any:
    return tensor_dlpack.dlpack_device(self)


def array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The functions of the array API standard for this tensor: ``antorcha.array_api``.

    >>> torch.ones(2).__array_namespace__().__name__
    'antorcha.array_api'
    """
    known = array_api.VERSIONS
    if api_version is not None and api_version not in known:
        raise ValueRangeError(
            f"__array_namespace__: there is no api_version {api_version!r}; there are "
            f"{', '.join(known)}"
        )
    return array_api.itself()


def bind() -> None:
    """Sets the protocols of this file on Tensor."""
    set_methods({
        "__array__": array_protocol, "__array_wrap__": array_wrap, "__dlpack__": _dlpack,
        "__dlpack_device__": _dlpack_device, "__array_namespace__": array_namespace,
    })  # fmt: skip
