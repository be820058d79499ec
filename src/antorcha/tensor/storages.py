"""What users see of a storage: ``UntypedStorage`` (bytes); ``typed_storage`` has the elements.

Both are faces of a runtime `Storage`, which is the memory itself: made when asked for, equal when
the memory is the same. Writing through a face counts as a write: a graph that has saved the
elements notices. Every index and size is checked; a tensor over a storage that has become too
small raises when it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from antorcha.core import dtypes
from antorcha.core.device import Device, as_device, backend
from antorcha.core.lazy import Array, lazy, np
from antorcha.errors import ArgumentError, GraphError, MissingFeature, OutOfRange
from antorcha.ops.kinds.params import to_int
from antorcha.ops.kinds.record import T
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor, bare
from antorcha.tensor.methods import set_methods

if TYPE_CHECKING:
    from antorcha.runtime.memory import shared as H
    from antorcha.runtime.memory import storage as S
else:
    H, S = lazy("antorcha.runtime.memory.shared"), lazy("antorcha.runtime.memory.storage")
cuda_driver = lazy("antorcha.devices.cuda.driver")
cuda_memory = lazy("antorcha.devices.cuda.memory")
sim_memory = lazy("antorcha.devices.sim.memory")
storage_changes = lazy("antorcha.runtime.memory.storage_changes")


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
        result = object.__new__(cls)
        result._storage, result._device = storage, device
        return result

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
        """Do other processes, once they have it, see what is written to it?"""
        return H.is_shared(self._storage)

    def share_memory_(self) -> UntypedStorage:
        """Moves the bytes to memory that processes share; every tensor over them goes along.

        BufferError where an array or a running kernel uses the memory.
        """
        H.share(self._storage)
        return self

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> UntypedStorage:
        if as_device(device).type != "cpu":
            raise MissingFeature(f"_new_shared: not available on {device}")
        return cls._of(H.new_shared(to_int("_new_shared", "size", size)), as_device(device))

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file, mapped into memory.

        Args:
            filename: the file.
            shared: do writes go to the file, which is made or grows where it must? Otherwise they
                stay in this process, and a file that is too small is an error.
            nbytes: how many bytes.

        Raises RuntimeError if the file cannot be opened or is too small.
        """
        size = to_int("from_file", "nbytes", nbytes)
        if size < 0:
            raise GraphError(f"from_file: the size, {size} bytes, is negative")
        return cls._of(H.map_file(filename, bool(shared), size), as_device("cpu"))

    @property
    def filename(self) -> str | None:
        """The file that was mapped; None for other memory."""
        segment = H.segment_of(self._storage)
        return None if segment is None else segment.filename

    def is_pinned(self, device: Any = None) -> bool:
        """Is it memory that a GPU copies from by itself?"""
        return is_pinned(self._storage)

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """A copy in pinned memory; the storage itself where it is, or where there is no GPU."""
        if self.is_pinned() or self._device.type != "cpu" or not has_gpu():
            return self
        return UntypedStorage._of(new_pinned(self.nbytes()), self._device).copy_(self)

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
        found: list[int] = elements(self._readable(), dtypes.uint8, "tolist").tolist()
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
            return UntypedStorage._of(
                S.part(self._storage, start, max(stop - start, 0)), self._device
            )
        at = place_of(index, self.nbytes())
        return int(elements(self._readable(), dtypes.uint8, "storage[]")[at])

    def __setitem__(self, index: Any, value: Any) -> None:
        count = self.nbytes()
        where = index if isinstance(index, slice) else place_of(index, count)
        number = to_int("storage[]", "value", value) & 255
        writable(self._storage, dtypes.uint8, "storage[]")[where] = number

    def fill_(self, value: Any) -> UntypedStorage:
        """Sets every byte."""
        number = to_int("fill_", "value", value) & 255
        if self._storage.flags & S.ELSEWHERE:
            T.fill_(self._flat(), number)
            return self
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
        if not (backend(source._device).host_memory and backend(self._device).host_memory):
            T.copy_(self._flat(), source._flat())
            return self
        theirs = elements(source._storage, dtypes.uint8, "copy_")
        writable(self._storage, dtypes.uint8, "copy_")[:] = theirs
        return self

    def clone(self) -> UntypedStorage:
        """A copy."""
        copied = UntypedStorage(self.nbytes(), device=self._device)
        return copied if self._device.type == "meta" else copied.copy_(self)

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        """A copy; of what tensors share, one copy that their copies share."""
        found = memo.setdefault("torch", {})  # type: ignore[call-overload]  # PyTorch's place
        if id(self._storage) not in found:
            found[id(self._storage)] = self.clone()._storage
        return UntypedStorage._of(found[id(self._storage)], self._device)

    def __reduce__(self) -> Any:
        return _untyped_of, (bytes(memoryview(self._readable())),)

    def byteswap(self, dtype: dtypes.dtype) -> None:
        """Reverses the bytes of each number of that dtype, in place."""
        width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        numbers = writable(self._storage, dtypes.uint8, "byteswap")
        if len(numbers) % width:
            raise GraphError(
                f"byteswap: {len(numbers)} bytes are no whole number of elements of {dtype}"
            )
        numbers = numbers.reshape(-1, width)
        numbers[:] = numbers[:, ::-1].copy()

    def new(self) -> UntypedStorage:
        """An empty storage on the same device."""
        return UntypedStorage(0, device=self._device)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The type's name."""
        if dtype is None:
            return "torch.storage.UntypedStorage"
        return self if dtype is UntypedStorage else dtype(wrap_storage=self)

    def resizable(self) -> bool:
        """Can the memory be given another size (is it not another object's)?"""
        return S.is_owned(self._storage)

    def get_device(self) -> int:
        """The number of the device; -1 on the CPU."""
        return -1 if self._device.index is None else self._device.index

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """The bytes on another device; the storage itself if it is there already."""
        place = as_device(device)
        if place is self._device:
            return self
        return UntypedStorage._of(T.to_device(self._flat(), place)._storage, place)

    def _readable(self) -> S.Storage:
        """The storage, or a copy in the host's memory."""
        return self.cpu()._storage if self._storage.flags & S.ELSEWHERE else self._storage

    def _flat(self) -> Tensor:
        """The bytes as a tensor."""
        return bare(L.contiguous((self.nbytes(),), dtypes.uint8, self._device), self._storage)

    def cpu(self) -> UntypedStorage:
        """The storage on the CPU; itself if it is there already."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """The storage on a CUDA device."""
        return self.to(device="cuda" if device is None else device)

    def resize_(self, size: Any) -> UntypedStorage:
        """Another size; the contents stay. Tensors that need more than is left raise when used."""
        storage_changes.resize(self._storage, to_int("resize_", "size", size))
        return self

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self


def _untyped_of(content: bytes) -> UntypedStorage:
    """A storage that was pickled."""
    result = UntypedStorage(len(content))
    if content:
        elements(result._storage, dtypes.uint8, "pickle")[:] = np.frombuffer(content, np.uint8)
    return result


def place_of(index: Any, count: int) -> int:
    place = to_int("storage[]", "index", index)
    if not -count <= place < count:
        raise OutOfRange(f"index {place} out of range for storage of size {count}")
    return place % count if count else 0


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The bytes that the tensor, and every view of it, is made of."""
    return UntypedStorage._of(self._storage, self._layout.device)


def share_memory_(self: Tensor) -> Tensor:
    """Moves the storage to memory that processes share; gives the tensor.

    Every view of it goes along. Forked children and those that get it through a queue of
    ``torch.multiprocessing`` then see what is written to it. BufferError where a NumPy array or a
    running kernel uses the memory.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.share_memory_.html.

    >>> torch.ones(2).share_memory_().is_shared()
    True
    """
    H.share(self._storage)
    return self


def from_file(
    filename: Any, shared: bool | None = None, size: int | None = 0, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool | None = False,
) -> Tensor:  # fmt: skip
    """A tensor over the first elements of a file, which is mapped into memory.

    Args:
        filename: the file; it holds the elements and nothing else.
        shared: do writes go to the file, which is made or grows where it must? Otherwise they stay
            in this process, and a file that is too small is an error.
        size: how many elements.
        dtype: of the elements; by default the default dtype.
        layout, device: strided, on the CPU.
        pin_memory: accepted; changes nothing.

    Raises RuntimeError if the file cannot be opened or is too small.
    See https://docs.pytorch.org/docs/stable/generated/torch.from_file.html.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     torch.from_file(file.name, shared=True, size=3).fill_(2)
    tensor([2., 2., 2.])
    """
    where = as_device(device)
    if where.type != "cpu":
        raise MissingFeature(f"from_file: files are mapped on the CPU, not on {where}")
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    count = to_int("from_file", "size", 0 if size is None else size)
    file = UntypedStorage.from_file(filename, bool(shared), count * kind.itemsize)
    return bare(L.contiguous((count,), kind, where), file._storage)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """A copy in pinned memory, which a GPU copies from by itself, while the program goes on
    (``non_blocking=True``); the tensor itself where it is pinned, or where there is no GPU: a
    program that asks for it runs the same without. ``device="sim"`` pins it for the simulated one.
    """
    layout = self._layout
    if layout.device.type != "cpu":
        raise GraphError(f"only dense CPU tensors can be pinned: this one is on {layout.device}")
    simulated = device is not None and Device(device).type == "sim"
    if is_pinned(self._storage) or not (simulated or has_gpu()):
        return self
    whole = L.contiguous(tuple(layout.shape), layout.dtype, layout.device)
    new = sim_memory.new_pinned if simulated else new_pinned
    result = bare(whole, new(whole.nbytes))
    T.copy_(result, self.detach())
    return result


def has_gpu() -> bool:
    """Is there a GPU to pin memory for?"""
    return cuda_driver.found() is not None and not cuda_driver.in_forked_child()


def is_pinned(storage: S.Storage) -> bool:
    """Is it pinned memory, or a part of it? (Without a GPU, none is, but for the simulated one.)"""
    if "antorcha.devices.sim.memory" in sys.modules and sim_memory.is_pinned(storage):
        return True
    if "antorcha.devices.cuda.memory" not in sys.modules or not storage.ptr:
        return False
    return not storage.flags & S.ELSEWHERE and cuda_memory.pinned.block_at(storage.ptr) is not None


def new_pinned(nbytes: int) -> S.Storage:
    """A storage in pinned memory."""
    block = cuda_memory.pinned.allocate(nbytes)
    return S.wrap(block.address, nbytes, block)


def bind() -> None:
    """Sets the methods of this file on Tensor."""
    for fn in (untyped_storage, share_memory_, pin_memory):
        setattr(Tensor, fn.__name__, fn)
    set_methods({
        "is_shared": lambda self: H.is_shared(self._storage),
        "is_pinned": lambda self, device=None: is_pinned(self._storage),
    })  # fmt: skip
