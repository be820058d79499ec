"""The older ways to make a tensor: ``torch.Tensor(2, 3)``, ``torch.FloatTensor``, ``x.new``.

``Tensor.__new__`` is the constructor of user's calls and of subclasses alone: ops make their
results with ``object.__new__`` (`runtime.tensor.new`), which never comes here.
"""

from __future__ import annotations

from typing import Any

from antorcha.core import dtypes
from antorcha.core.device import CPU, as_device
from antorcha.core.shapes import Size
from antorcha.errors import ArgumentError, DeviceError, MissingFeature, ShapeError
from antorcha.ops.kinds.params import to_int
from antorcha.ops.kinds.record import T
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor, bare
from antorcha.tensor.create import tensor
from antorcha.tensor.storages import UntypedStorage
from antorcha.tensor.subclass import as_subclass, check_class
from antorcha.tensor.typed_storage import TypedStorage

TYPE_NAMES = {
    "FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16", "LongTensor": "int64", "IntTensor": "int32",
    "ShortTensor": "int16", "CharTensor": "int8", "ByteTensor": "uint8", "BoolTensor": "bool",
    "ComplexFloatTensor": "complex64", "ComplexDoubleTensor": "complex128",
}  # fmt: skip
STORAGE_NAMES = {name.replace("Tensor", "Storage"): t for name, t in TYPE_NAMES.items()}


def construct(args: tuple[Any, ...], dtype: dtypes.dtype, device: Any, size: Any = None) -> Tensor:
    """What the older constructors make of their arguments: sizes, data, a storage or a tensor."""
    where = CPU if device is None else as_device(device)
    if where is not CPU:
        raise DeviceError(
            f"legacy constructor expects device type: cpu but device type: {where.type} was passed"
        )
    if size is not None:
        return _sized(tuple(size), dtype)
    if not args:
        return _sized((0,), dtype)
    first = args[0]
    if len(args) == 1:
        if isinstance(first, Tensor):
            return _share(first, dtype)
        if isinstance(first, (UntypedStorage, TypedStorage)):
            return _over(first, dtype)
        if isinstance(first, Size):
            return _sized(first, dtype)
        # (arrays have __index__, too)
        if not hasattr(first, "__index__") or getattr(first, "ndim", None):
            return _from(first, dtype)
    return _sized(tuple([_one_size(each, k) for k, each in enumerate(args)]), dtype)


def _one_size(value: Any, position: int) -> int:
    if isinstance(value, (float, str)) or not hasattr(value, "__index__"):
        raise ArgumentError(
            f"new(): argument 'size' failed to unpack the object at pos {position + 1}: it must be "
            f"an int, not {type(value).__name__}"
        )
    return to_int("new()", "size", value)


def _sized(shape: tuple[int, ...], dtype: dtypes.dtype) -> Tensor:
    if any(n < 0 for n in shape):
        raise ShapeError(f"Trying to create tensor with negative dimension: {list(shape)}")
    result: Tensor = T.empty(shape, dtype=dtype)
    return result


def _share(tensor: Tensor, dtype: dtypes.dtype) -> Tensor:
    if tensor._layout.dtype is not dtype:
        raise ArgumentError(
            f"the older constructor for {dtype} cannot take a tensor of {tensor._layout.dtype}: "
            f"use tensor.to({dtype})"
        )
    return bare(tensor._layout, tensor._storage, tensor._offset)


def _over(storage: UntypedStorage | TypedStorage, dtype: dtypes.dtype) -> Tensor:
    count = storage.nbytes() // dtype.itemsize
    return bare(L.contiguous((count,), dtype, storage.device), storage._storage)


def _from(data: Any, dtype: dtypes.dtype) -> Tensor:
    if isinstance(data, (str, bytes)):
        raise ArgumentError(f"new(): invalid data type '{type(data).__name__}'")
    if not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        raise ArgumentError(f"new(): data must be a sequence (got {type(data).__name__})")
    if dtype.kind != "c":
        probe = tensor(data)
        if probe._layout.dtype.kind == "c":
            raise ArgumentError("new(): must be real number, not complex")
    return tensor(data, dtype=dtype)


def _new(cls: type, *args: Any, device: Any = None, size: Any = None, **kwargs: Any) -> Any:
    """A tensor of the default dtype: of these sizes (uninitialised), or with this data.

    ``torch.tensor`` (for data) and ``torch.empty`` (for sizes) say which of both is meant.
    """
    own = cls is Tensor or getattr(cls, "__init__", None) is object.__init__
    if kwargs and own:
        raise ArgumentError(f"{cls.__name__}() got an unexpected keyword {next(iter(kwargs))!r}")
    only = args[0] if len(args) == 1 else None
    dtype = dtypes.get_default_dtype()
    if isinstance(only, Tensor):
        dtype = only._layout.dtype
    elif isinstance(only, TypedStorage):
        dtype = only.dtype
    result = construct(args, dtype, device, size)
    return result if cls is Tensor else as_subclass(result, cls)


def new(self: Tensor, *args: Any, device: Any = None, size: Any = None) -> Tensor:
    """As ``torch.Tensor(...)``, with this tensor's dtype. ``new_empty`` and ``new_tensor`` are the
    newer names."""
    return construct(args, self._layout.dtype, device, size)


class tensortype(type):
    """The type of ``torch.FloatTensor`` and its like: stands for a dtype on the CPU."""

    dtype: dtypes.dtype
    is_cuda = False
    is_sparse = False

    def __call__(cls, *args: Any, device: Any = None, size: Any = None) -> Any:
        return construct(args, cls.dtype, device, size)

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance._layout.dtype is cls.dtype
            and instance._layout.device.type == "cpu"
        )

    @property
    def layout(cls) -> Any:
        """Always ``torch.strided``."""
        return T.empty(0).layout


tensortype.__module__ = "torch"


class _storagetype(type):
    """The type of ``torch.FloatStorage`` and its like."""

    dtype: dtypes.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return TypedStorage(*args, dtype=cls.dtype, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype


def classes(names: dict[str, str], kind: Any, module: str = "torch") -> dict[str, Any]:
    """A class of that kind for each name and dtype, as `module` shows them."""
    result = {}
    for name, dtype in names.items():
        body = {"__module__": module, "dtype": dtypes.by_name(dtype), "__slots__": ()}
        body["__doc__"] = f"The older name for {body['dtype']}: a constructor, and a class."
        result[name] = kind(name, (), body)
    return result


TENSOR_TYPES: dict[str, Any] = classes(TYPE_NAMES, tensortype)
STORAGE_TYPES: dict[str, Any] = classes(STORAGE_NAMES, _storagetype)


def make_subclass(cls: type, data: Any, require_grad: bool = False, **_: Any) -> Any:
    """The elements of ``data`` (shared) as a leaf of a subclass."""
    check_class(cls)
    if not isinstance(data, Tensor):
        raise ArgumentError(
            "_make_subclass(): argument '{name}' (position 2) must be Tensor, not {kind}",
            reason="tensor wanted", op="_make_subclass", name="data", kind=type(data).__name__,
        )  # fmt: skip
    result = as_subclass(bare(data._layout, data._storage, data._offset), cls)
    if require_grad:
        result.requires_grad_(True)
    return result


def make_wrapper_subclass(cls: type, *args: Any, **kwargs: Any) -> Any:
    """Tensors without memory of their own are not supported: raises NotImplementedError."""
    raise MissingFeature(
        "_make_wrapper_subclass: subclasses that replace the dispatcher (__torch_dispatch__) are "
        "not supported; write __torch_function__ on a subclass, or a class with its own data"
    )


def storage_type(self: Tensor) -> Any:
    """The class of ``self.storage()`` by its older name."""
    name = next(n for n, t in TYPE_NAMES.items() if t == self._layout.dtype.name)
    return STORAGE_TYPES[name.replace("Tensor", "Storage")]


def bind() -> None:
    """Gives Tensor its constructor."""
    Tensor.__new__ = staticmethod(_new)  # type: ignore[method-assign]
    Tensor.new = new  # type: ignore[assignment,method-assign]
    Tensor.storage_type = storage_type  # type: ignore[assignment,method-assign]
    Tensor._make_subclass = staticmethod(make_subclass)  # type: ignore[attr-defined]
    Tensor._make_wrapper_subclass = staticmethod(make_wrapper_subclass)  # type: ignore[attr-defined]
