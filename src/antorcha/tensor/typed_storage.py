"""``TypedStorage``: a storage as elements of a dtype, the older face of what ``storages`` shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from antorcha.core import dtypes, float8
from antorcha.core.device import Device
from antorcha.core.lazy import lazy, np
from antorcha.errors import GraphError, warn
from antorcha.ops.kinds.params import to_int
from antorcha.ops.kinds.record import T
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor, bare
from antorcha.tensor.storages import UntypedStorage, elements, place_of, untyped_storage, writable

if TYPE_CHECKING:
    from antorcha.runtime.memory import storage as S

tensor_create = lazy("antorcha.tensor.create")
tensor_legacy = lazy("antorcha.tensor.legacy")


class TypedStorage:
    """The elements that tensors share: ``tensor.storage()``, the older face of a storage.

    >>> torch.tensor([1., 2.]).storage().tolist()
    [1.0, 2.0]
    """

    __slots__ = ("__weakref__", "_untyped", "dtype")
    _untyped: UntypedStorage
    dtype: dtypes.dtype
    is_sparse = False

    def __init__(
        self, *args: Any, wrap_storage: UntypedStorage | None = None, dtype: Any = None,
        device: Any = None, _internal: bool = False,
    ) -> None:  # fmt: skip
        self.dtype = dtypes.get_default_dtype() if dtype is None else dtype
        if wrap_storage is not None:
            self._untyped = wrap_storage
            return
        data = args[0] if args else 0
        size = self.dtype.itemsize
        if not isinstance(data, (list, tuple)):
            self._untyped = UntypedStorage(
                to_int("TypedStorage", "size", data) * size, device=device
            )
            return
        result = tensor_create.tensor(data, dtype=self.dtype)
        self._untyped = UntypedStorage._of(result._storage, result._layout.device)

    @property
    def device(self) -> Device:
        """Where the memory is."""
        return self._untyped.device

    @property
    def is_cuda(self) -> bool:
        """Is the memory a CUDA device's?"""
        return self._untyped.is_cuda

    @property
    def _storage(self) -> S.Storage:
        return self._untyped._storage

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped

    def element_size(self) -> int:
        """The bytes of one element."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """The size in bytes."""
        return self._untyped.nbytes()

    def __len__(self) -> int:
        return self._untyped.nbytes() // self.dtype.itemsize

    size = __len__

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped.data_ptr()

    def is_shared(self) -> bool:
        """Do other processes, once they have it, see what is written to it?"""
        return self._untyped.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Moves the elements to memory that processes share; tensors over them go along."""
        self._untyped.share_memory_()
        return self

    @property
    def filename(self) -> str | None:
        """The file that was mapped; None for other memory."""
        return self._untyped.filename

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """The storage itself."""
        return self

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        array = elements(self._storage, self.dtype, "tolist")
        if self.dtype.name in dtypes.BEYOND_NUMPY:
            array = array.astype(np.float32)
        found: list[Any] = array.tolist()
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise GraphError("slices are only supported in UntypedStorage.__getitem__")
        return self.tolist()[place_of(index, len(self))]

    def __setitem__(self, index: Any, value: Any) -> None:
        where = index if isinstance(index, slice) else place_of(index, len(self))
        number = float8.cast(np.array(value), self.dtype.np)
        writable(self._storage, self.dtype, "storage[]")[where] = number

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every element."""
        self[0 : len(self)] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Copies the elements of a storage of the same size."""
        self._untyped.copy_(source)
        return self

    def clone(self) -> TypedStorage:
        """A copy."""
        return TypedStorage(wrap_storage=self._untyped.clone(), dtype=self.dtype)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        copied = self._untyped.__deepcopy__(memo)
        return TypedStorage(wrap_storage=copied, dtype=self.dtype)

    def __reduce__(self) -> Any:
        return _typed_of, (self._untyped, self.dtype)

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self._untyped

    @classmethod
    def from_file(
        cls, filename: Any, shared: bool = False, size: int = 0, *, dtype: Any = None
    ) -> TypedStorage:
        """The first elements of a file as memory; see `UntypedStorage.from_file`."""
        kind = dtypes.get_default_dtype() if dtype is None else dtype
        count = to_int("from_file", "size", size) * kind.itemsize
        return cls(wrap_storage=UntypedStorage.from_file(filename, shared, count), dtype=kind)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The type's name, as ``'torch.FloatStorage'``; with a class, the elements converted."""
        if dtype is None:
            names = {kind: name for name, kind in tensor_legacy.STORAGE_NAMES.items()}
            return f"torch.{names.get(self.dtype.name, 'storage.TypedStorage')}"
        return self._cast(dtypes.by_name(tensor_legacy.STORAGE_NAMES[dtype.rsplit(".", 1)[-1]])
                          if isinstance(dtype, str) else dtype.dtype)  # fmt: skip

    def _cast(self, dtype: dtypes.dtype) -> TypedStorage:
        """The elements in another dtype; itself where it has that."""
        if dtype is self.dtype:
            return self
        flat = bare(L.contiguous((len(self),), self.dtype, self.device), self._storage)
        result = T.to_dtype(flat, dtype)
        return TypedStorage(wrap_storage=untyped_storage(result), dtype=dtype)

    def resizable(self) -> bool:
        """Can the memory be given another size (is it not another object's)?"""
        return self._untyped.resizable()

    def get_device(self) -> int:
        """The number of the device; -1 on the CPU."""
        return self._untyped.get_device()

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """The elements on another device; the storage itself if it is there already."""
        moved = self._untyped.to(device=device)
        return self if moved is self._untyped else TypedStorage(wrap_storage=moved,
                                                                dtype=self.dtype)  # fmt: skip

    def cpu(self) -> TypedStorage:
        """The storage on the CPU; itself if it is there already."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """The storage on a CUDA device."""
        return self.to(device="cuda" if device is None else device)

    def resize_(self, size: Any) -> TypedStorage:
        """Another number of elements; the contents stay."""
        self._untyped.resize_(to_int("resize_", "size", size) * self.dtype.itemsize)
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._untyped == other._untyped

    def __hash__(self) -> int:
        return hash(self._untyped)

    def __repr__(self) -> str:
        tail = (
            f"[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size "
            f"{len(self)}]"
        )
        if self.device.type == "meta":
            return f"...\n{tail}"
        return "\n".join([f" {value}" for value in self.tolist()]) + f"\n{tail}"


def _typed_of(untyped: UntypedStorage, dtype: dtypes.dtype) -> TypedStorage:
    """A storage that was pickled."""
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def _caster(name: str) -> Any:
    dtype = dtypes.by_name(name)

    def cast(self: UntypedStorage | TypedStorage) -> TypedStorage:
        if isinstance(self, UntypedStorage):
            self = TypedStorage(wrap_storage=self, dtype=dtypes.uint8)
        return self._cast(dtype)

    cast.__doc__ = f"The elements (bytes, of an untyped storage) as {name}."
    return cast


_CASTS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
          "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8",
          "bool": "bool", "complex_float": "complex64", "complex_double": "complex128"}  # fmt: skip
for _cls in (UntypedStorage, TypedStorage):
    _cls.__module__ = "torch.storage"
    for _name, _kind in _CASTS.items():
        setattr(_cls, _name, _caster(_kind))

_warned = False


def storage(self: Tensor) -> TypedStorage:
    """The memory as elements of the tensor's dtype; ``untyped_storage`` is the newer face."""
    global _warned
    if not _warned:
        _warned = True
        warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will "
            "be the only storage class. This should only matter to you if you are using storages "
            "directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of "
            "tensor.storage()",
        )
    return TypedStorage(wrap_storage=untyped_storage(self), dtype=self._layout.dtype)


def bind() -> None:
    """Sets the methods of this file on Tensor."""
    setattr(Tensor, "storage", storage)  # noqa: B010  (the stub says what it is)
