"""``tensor(data)``, ``as_tensor``, ``from_numpy``: tensors from Python and NumPy data."""

from __future__ import annotations

import functools
import math
from typing import Any

from antorcha.core import dtypes, float8, modes
from antorcha.core.device import CPU, Device, as_device, backend
from antorcha.core.lazy import Array, lazy, np
from antorcha.core.shapes import nested_items, nested_shape
from antorcha.errors import ArgumentError, DtypeError, ValueRangeError, shown, warn
from antorcha.ops.create import finish, number_dtype
from antorcha.ops.kinds.operands import as_word
from antorcha.ops.kinds.params import to_device, to_dtype
from antorcha.ops.kinds.record import T
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor, bare
from antorcha.tensor.interop import check_array, from_numpy, share

tensor_dlpack = lazy("antorcha.tensor.dlpack")
alloc, arrays = lazy("antorcha.runtime.memory.alloc"), lazy("antorcha.runtime.memory.arrays")
convert = lazy("antorcha.tensor.convert")


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor with a copy of ``data``: a number, nested lists or tuples, an array, a tensor.

    The dtype is inferred: Python floats give the default dtype, ints int64, bools bool.
    See https://docs.pytorch.org/docs/stable/generated/torch.tensor.html.

    >>> torch.tensor([[1., -1.], [1., -1.]])
    tensor([[ 1., -1.],
            [ 1., -1.]])
    """
    if isinstance(data, Tensor):
        warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or sourceTensor.detach().clone().requires_grad_(True), "
            "rather than torch.tensor(sourceTensor).",
        )
        result = T.clone(data.detach())
        result = T.contiguous(result)
        where = data._layout.device if device is None else device
        return finish(_convert(result, dtype, where), requires_grad)
    result = _from_data(data, dtype, device)
    return finish(result.pin_memory() if pin_memory else result, requires_grad)


def _convert(result: Tensor, dtype: Any, device: Any) -> Tensor:
    if dtype is not None:
        want = to_dtype("tensor", "dtype", dtype)
        if want is not result._layout.dtype:
            result = T.to_dtype(result, want)
    if device is not None:
        to = to_device("tensor", "device", device)
        if to is not result._layout.device:
            result = result.to(to)
    return result


def _from_data(data: Any, dtype: Any, device: Any) -> Tensor:
    want = None if dtype is None else to_dtype("tensor", "dtype", dtype)
    where = as_device(None) if device is None else to_device("tensor", "device", device)
    result = _of_numbers(data, want) if type(data) is list else None
    if result is not None:
        return result if where is CPU else convert.move(result, where)
    if type(data) is np.ndarray and want is None and where is CPU and not modes.busy:
        return T.clone(share(data), memory_format="contiguous")  # type: ignore[no-any-return]
    if isinstance(data, (np.ndarray, np.generic)) or hasattr(data, "__array_interface__"):
        array = np.asarray(data)
        own = check_array(array)
        return from_array(array, want or own, where)
    if isinstance(data, (bool, int, float, complex)):
        own = want or number_dtype(data)
        _check_number(data, own)
        return T.full_layout((), _fitting(data, own), own, where)  # type: ignore[no-any-return]
    if isinstance(data, (str, bytes)):
        raise ArgumentError(f"tensor: new(): invalid data type '{type(data).__name__}'")
    there = _on_gpu(data)
    if there is not None:
        return T.clone(_convert(there, dtype, device))  # type: ignore[no-any-return]
    flat, shape, kinds = flatten(data, want)
    own = want or _infer(kinds)
    array = _fill(flat, own).reshape(shape)
    return from_array(array, own, where)


def from_array(array: Array, dtype: dtypes.dtype, device: Device) -> Tensor:
    """A tensor with a copy of an array, as ``dtype``."""
    layout = L.contiguous(array.shape, dtype, device)
    if array.dtype == dtype.np:
        return bare(layout, backend(device).from_host(array, layout))
    with np.errstate(all="ignore"):
        if array.dtype.kind == "c" and dtype.kind not in "cb":
            array = array.real
        converted = float8.cast(array, dtype.np)
        return bare(layout, backend(device).from_host(converted, layout))


def _of_numbers(data: list[Any], want: dtypes.dtype | None) -> Tensor | None:
    """The common case by a shorter way, in the host's memory: a list of Python floats, or ints, or
    of lists of them."""
    kind = arrays.kind_of(data)
    own = want or (dtypes.int64 if kind == arrays.INTS else dtypes.get_default_dtype())
    if not kind or own.name not in arrays.FILLED:
        return None
    if kind == arrays.FLOATS and own.kind != "f":  # each is checked
        return None
    shape = (len(data), len(data[0])) if type(data[0]) is list else (len(data),)
    layout = L.contiguous(shape, own, CPU)
    result = bare(layout, backend(CPU).allocate(layout.nbytes))
    filled = arrays.fill(data, shape, kind, own.name, result._storage.ptr)
    return result if filled else None


def flatten(
    data: Any, want: dtypes.dtype | None = None
) -> tuple[list[Any], tuple[int, ...], set[Any]]:
    """Nested sequences as a flat list, a shape, and what the numbers are: Python's types, dtypes of
    NumPy's and of tensors. Raises ValueError when they are ragged. A tensor in a list is a number,
    but for one that stands where a list does."""
    kinds: set[Any] = set()
    shape, last = nested_shape("tensor", data, _holds_others)
    alloc.check_plausible(8 * math.prod(shape))
    if isinstance(last, np.ndarray):  # an empty one
        kinds.add(_dtype_of(last))
    flat = nested_items("tensor", data, shape, _is_sequence)
    return [_number(k, item, kinds, want) for k, item in enumerate(flat)], shape, kinds


def _number(k: int, item: Any, kinds: set[Any], want: dtypes.dtype | None) -> Any:
    """The item at `k` as a number; its kind is added to the kinds."""
    if isinstance(item, Tensor) and item._layout.numel != 1:
        whole = (want or item._layout.dtype).kind in "iu" and item._layout.numel
        raise (ArgumentError if whole else ValueRangeError)(  # the classes are PyTorch's
            "tensor: only one element tensors can be converted to Python scalars, not one of "
            f"shape {tuple(item.shape)}; torch.stack makes one tensor of several"
        )
    if (
        isinstance(item, Tensor)
        or (isinstance(item, np.generic) and not isinstance(item, str))
        or (isinstance(item, np.ndarray) and item.ndim == 0)
    ):
        kinds.add(_dtype_of(item))
        return _item(item)
    if isinstance(item, (bool, int, float, complex)):
        kinds.add(next(kind for kind in _PYTHON if isinstance(item, kind)))
        return item
    kind = type(item).__name__
    if isinstance(item, str) and k == 0:
        raise ValueRangeError(f"tensor: too many dimensions 'str': {item[:30]!r} is no number")
    if isinstance(item, (str, bytes)):
        raise ArgumentError(f"tensor: new(): invalid data type '{kind}': {item[:30]!r}")
    if _is_sequence(item):
        raise ValueRangeError(
            f"tensor: too many nested sequences: a {kind} of {len(item)} elements stands where a "
            "number is expected (the lists are ragged)"
        )
    if want is None:
        raise DtypeError(f"tensor: Could not infer dtype of {kind} ({shown(item)}): no number")
    raise ArgumentError(f"tensor: must be real number, not {kind} ({shown(item)})")


_PYTHON = (bool, int, float, complex)


def _dtype_of(value: Any) -> dtypes.dtype:
    """The dtype of a tensor, or of one of NumPy's scalars or arrays."""
    found: dtypes.dtype = value._layout.dtype if isinstance(value, Tensor) else check_array(value)
    return found


def _item(value: Any) -> Any:
    return value.item()


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (list, tuple, range)):
        return True
    if isinstance(value, (str, bytes, dict, set)):
        return False
    if isinstance(value, (Tensor, np.ndarray)):
        return bool(value.ndim)
    return hasattr(value, "__len__") and hasattr(value, "__getitem__")


def _holds_others(value: Any) -> bool:
    return not isinstance(value, Tensor) and _is_sequence(value)


def _infer(kinds: set[Any]) -> dtypes.dtype:
    """The dtype to which all the numbers promote, each like a tensor of its own."""
    if not kinds:
        return dtypes.get_default_dtype()
    each = [number_dtype(kind()) if isinstance(kind, type) else kind for kind in kinds]
    return functools.reduce(dtypes.promote_types, each)


def _check_number(value: Any, dtype: dtypes.dtype) -> None:
    if dtype.kind in "iu" and isinstance(value, int) and not isinstance(value, bool):
        info = dtypes.iinfo(dtype)
        if dtype.kind == "u" and dtype.itemsize == 8:
            fits = -(1 << 63) <= value < 1 << 64
        elif dtype.kind == "u":
            fits = value <= info.max and value >= -(1 << 63)
        else:
            fits = -(1 << 63) <= value < 1 << 63
        if not fits:
            raise DtypeError(f"tensor: value cannot be converted to type {dtype} without overflow:"
                             f" {value}")  # fmt: skip
        if not -(1 << 63) <= value < 1 << 64:
            raise DtypeError(f"tensor: Overflow when unpacking long long: {value}")
    if dtype.kind in "iu" and isinstance(value, float) and value - value != 0:
        raise ValueRangeError(f"tensor: cannot convert float {value} to integer")


def _fitting(value: Any, dtype: dtypes.dtype) -> Any:
    if dtype.kind in "iu":
        return as_word(int(value.real if isinstance(value, complex) else value))
    return value


def _fill(flat: list[Any], dtype: dtypes.dtype) -> Array:
    """The numbers as an array of one dtype, with PyTorch's conversions."""
    if dtype.kind in "iu":
        for value in flat:
            _check_number(value, dtype)
        wide = np.array([int(v.real if isinstance(v, complex) else v) for v in flat], dtype=object)
        mask = (1 << 64) - 1
        return np.array([int(v) & mask for v in wide], dtype=np.uint64).astype(dtype.np)
    with np.errstate(all="ignore"):
        if dtype.kind == "c":
            return np.array(flat, dtype=np.complex128).astype(dtype.np)
        if dtype.kind == "b":
            return np.array([bool(v) for v in flat], dtype=np.bool_)
        wide = np.array([float(v.real if isinstance(v, complex) else v) for v in flat],
                        dtype=np.float64)  # fmt: skip
        result: Array = float8.cast(wide, dtype.np)
        return result


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """``data`` as a tensor, without a copy when it is a tensor or array of that dtype and device.

    >>> torch.as_tensor(np.array([1, 2]))
    tensor([1, 2])
    """
    if isinstance(data, Tensor):
        return _convert(data, dtype, device)
    if isinstance(data, np.ndarray) and (device is None or as_device(device) is CPU):
        return _convert(from_numpy(data), dtype, None)
    there = _on_gpu(data)
    return _from_data(data, dtype, device) if there is None else _convert(there, dtype, device)


def _on_gpu(data: Any) -> Tensor | None:
    """Another library's array on an NVIDIA GPU as a tensor over its memory; None for all else."""
    if type(data) in (list, tuple) or not hasattr(data, "__cuda_array_interface__"):
        return None
    if hasattr(data, "__dlpack__"):
        return tensor_dlpack.from_dlpack(data)  # type: ignore[no-any-return]
    return tensor_dlpack.from_cuda_array(data)  # type: ignore[no-any-return]
