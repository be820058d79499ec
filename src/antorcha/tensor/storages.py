"""What users see of a storage: ``UntypedStorage`` (bytes) and ``TypedStorage`` (elements).

Both are faces of a runtime `Storage`, which is the memory itself: made when asked for, equal when
the memory is the same. Writing through a face counts as a write: a graph that has saved the
elements notices. Every index and size is checked; a tensor over a storage that has become too
small raises when it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from antorcha import dtypes, float8
from antorcha.device import Device, as_device, backend
from antorcha.errors import ArgumentError, GraphError, MissingFeature, OutOfRange, warn
from antorcha.lazy import Array, lazy, np
from antorcha.ops.params import to_int
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.methods import set_methods

if TYPE_CHECKING:
    from antorcha.runtime import storage as S
else:
    S = lazy("antorcha.runtime.storage")

_SHARING = (
    "share_memory_: memory shared between processes is not in this version of antorcha. A forked "
    "child sees the tensors of its parent as they were; send others through files or pipes."
)


def elements(storage: S.Storage, dtype: dtypes.dtype, op: str) -> Array:
    """The whole memory as an array."""
    if not storage.ptr and storage.nbytes:
        raise MissingFeature(f"{op}: not available for a meta storage, which has no data")
    count = storage.nbytes // dtype.itemsize
    return S.as_numpy(storage, 0, (count,), (dtype.itemsize,), dtype.np)


def writable(storage: S.Storage, dtype: dtypes.dtype, op: str) -> Array:
    """The same, to be written to: the write is counted."""
    if S.is_readonly(storage):
        raise GraphError(f"{op}: the storage is read-only: so is the object whose memory it is")
    array = elements(storage, dtype, op)
    storage.version += 1 if storage.version >= 0 else 0
    return array


class UntypedStorage:
    """The bytes that tensors share: ``tensor.untyped_storage()``.

    ``UntypedStorage(8)`` has 8 bytes, uninitialised; ``UntypedStorage([1, 2])`` holds these.
    See https://docs.pytorch.org/docs/stable/storage.html.

    >>> torch.ones(2).untyped_storage().nbytes()
    8
    """

    __slots__ = ("__weakref__", "_device", "_storage")
    _storage: S.Storage
    _device: Device
    is_sparse = is_sparse_csr = False

    def __init__(self, size: Any = 0, *, device: Any = None) -> None:
        self._device = as_device("cpu" if device is None else device)
        memory = backend(self._device)
        if isinstance(size, (list, tuple)):
            self._storage = memory.allocate(len(size))
            try:
                values = bytes([int(each) & 255 for each in size])
            except (TypeError, ValueError):
                raise GraphError(
                    "torch.UntypedStorage(): tried to construct a storage from a sequence, but one "
                    "of the items was no number"
                ) from None
            writable(self._storage, dtypes.uint8, "UntypedStorage")[:] = np.frombuffer(
                values, np.uint8
            )
            return
        if isinstance(size, str):
            raise GraphError("torch.UntypedStorage(): a size or a sequence of bytes is needed")
        nbytes = to_int("UntypedStorage", "size", size)
        if nbytes < 0:
            raise GraphError(f"UntypedStorage: the size, {nbytes} bytes, is negative")
        self._storage = memory.allocate(nbytes)

    @classmethod
    def _of(cls, storage: S.Storage, device: Device) -> UntypedStorage:
        made = object.__new__(cls)
        made._storage, made._device = storage, device
        return made

    # ---- what it says of itself
    @property
    def device(self) -> Device:
        """Where the memory is."""
        return self._device

    @property
    def is_cuda(self) -> bool:
        """Is the memory a CUDA device's?"""
        return self._device.type == "cuda"

    def nbytes(self) -> int:
        """The size in bytes."""
        return self._storage.nbytes

    size = __len__ = nbytes

    def element_size(self) -> int:
        """1: the elements are bytes."""
        return 1

    def data_ptr(self) -> int:
        """The address of the first byte: two storages with the same one are the same memory."""
        return self._storage.ptr

    @property
    def _cdata(self) -> int:
        return id(self._storage)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and (
            self._storage is other._storage
            or (self._storage.ptr != 0 and self._storage.ptr == other._storage.ptr)
        )

    def __hash__(self) -> int:
        return hash(self._storage.ptr or id(self._storage))

    def is_shared(self) -> bool:
        """False: the memory is this process's own."""
        return False

    def share_memory_(self) -> UntypedStorage:
        """Not there yet: raises NotImplementedError."""
        raise MissingFeature(_SHARING)

    def is_pinned(self, device: Any = None) -> bool:
        """False: there is no pinned memory."""
        return False

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """The storage itself: memory that no GPU copies from need not be pinned."""
        return self

    def __repr__(self) -> str:
        head = ""
        if self._device.type != "meta":
            head = "\n".join([f" {value}" for value in self.tolist()]) + "\n"
        return (
            f"{head}[torch.storage.UntypedStorage(device={self._device}) of size {self.nbytes()}]"
        )

    # ---- its bytes
    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        found: list[int] = elements(self._storage, dtypes.uint8, "tolist").tolist()
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        """A byte; of a slice a storage that shares the memory."""
        if isinstance(index, slice):
            start, stop, step = index.indices(self.nbytes())
            if step != 1:
                raise GraphError(f"Trying to slice with a step of {step}, but only a step of 1 is "
                                 "supported")  # fmt: skip
            length = max(stop - start, 0)
            storage = self._storage
            pinned = memoryview(storage)  # type: ignore[arg-type]  # before the address is read
            length = max(min(length, storage.nbytes - start), 0)
            address = storage.ptr + start if length else 0
            part = S.wrap(address, length, pinned, S.is_readonly(storage))
            return UntypedStorage._of(part, self._device)
        return int(elements(self._storage, dtypes.uint8, "storage[]")[_place(index, self.nbytes())])

    def __setitem__(self, index: Any, value: Any) -> None:
        count = self.nbytes()
        where = index if isinstance(index, slice) else _place(index, count)
        number = to_int("storage[]", "value", value) & 255
        writable(self._storage, dtypes.uint8, "storage[]")[where] = number

    def fill_(self, value: Any) -> UntypedStorage:
        """Sets every byte."""
        number = to_int("fill_", "value", value) & 255
        writable(self._storage, dtypes.uint8, "fill_")[:] = number
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Copies the bytes of a storage of the same size."""
        source = getattr(source, "_untyped", source)
        if not isinstance(source, UntypedStorage):
            raise ArgumentError(f"copy_: expected a storage, not {type(source).__name__}")
        if source.nbytes() != self.nbytes():
            raise GraphError(
                f"size does not match, self was {self.nbytes()} bytes but src was "
                f"{source.nbytes()} bytes"
            )
        theirs = elements(source._storage, dtypes.uint8, "copy_")
        writable(self._storage, dtypes.uint8, "copy_")[:] = theirs
        return self

    def clone(self) -> UntypedStorage:
        """A copy."""
        return UntypedStorage(self.nbytes(), device=self._device).copy_(self)

    def cpu(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def resize_(self, size: Any) -> UntypedStorage:
        """Another size; the contents stay. Tensors that need more than is left raise when used."""
        S.resize(self._storage, to_int("resize_", "size", size))
        return self

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self


def _place(index: Any, count: int) -> int:
    place = to_int("storage[]", "index", index)
    if not -count <= place < count:
        raise OutOfRange(f"index {place} out of range for storage of size {count}")
    return place % count if count else 0


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
        from antorcha.tensor.create import tensor

        made = tensor(data, dtype=self.dtype)
        self._untyped = UntypedStorage._of(made._storage, made._layout.device)

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
        """False: the memory is this process's own."""
        return False

    def share_memory_(self) -> TypedStorage:
        """Not there yet: raises NotImplementedError."""
        raise MissingFeature(_SHARING)

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
        return self.tolist()[_place(index, len(self))]

    def __setitem__(self, index: Any, value: Any) -> None:
        where = index if isinstance(index, slice) else _place(index, len(self))
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

    def cpu(self) -> TypedStorage:
        """The storage itself."""
        return self

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


for _cls in (UntypedStorage, TypedStorage):
    _cls.__module__ = "torch.storage"

_warned = False


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes that the tensor, and every view of it, is made of."""
    return UntypedStorage._of(self._storage, self._layout.device)


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


def share_memory_(self: Tensor) -> Tensor:
    """Not there yet: raises NotImplementedError."""
    raise MissingFeature(_SHARING)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor itself.

    Pinned memory speeds up copies to a GPU; nothing else is to be had from it, and a program that
    asks for it runs the same without.
    """
    return self


def bind() -> None:
    """Sets the methods of this file on Tensor."""
    for fn in (untyped_storage, storage, share_memory_, pin_memory):
        setattr(Tensor, fn.__name__, fn)
    set_methods({
        "is_shared": lambda self: False,
        "is_pinned": lambda self, device=None: False,
    })  # fmt: skip
