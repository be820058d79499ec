"""How tensors, storages and parameters are pickled for another process: by their shared memory.

Importing ``torch.multiprocessing`` registers them with the pickler of ``multiprocessing``.
"""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

from antorcha.core.device import Device
from antorcha.core.dtypes import dtype as DType
from antorcha.errors import GraphError, explain_missing
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory import shared
from antorcha.runtime.memory.shared import Segment
from antorcha.runtime.memory.storage import Storage, null_storage
from antorcha.runtime.tensor import Parameter, Tensor, bare
from antorcha.tensor.storages import UntypedStorage
from antorcha.tensor.typed_storage import TypedStorage

__all__ = [
    "init_reductions", "rebuild_storage", "rebuild_tensor", "rebuild_typed_storage",
    "reduce_storage", "reduce_tensor", "reduce_typed_storage",
]  # fmt: skip


def reduce_tensor(tensor: Tensor) -> Any:
    """A tensor: its class, its storage and its layout.

    Its gradient stays behind, and one that a graph has computed is refused (RuntimeError).
    """
    if tensor._fn is not None:
        raise GraphError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd "
            "does not support crossing process boundaries.  If you just want to transfer the data, "
            "call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    layout = tensor._layout
    place = _place(tensor._storage)
    rest = dict(tensor.__dict__) if tensor.__dict__ else None
    shape, strides = tuple(layout.shape), tuple(layout.strides)
    what = (type(tensor), *place, layout.device, layout.dtype, shape, strides, tensor._offset,
            tensor._rg, rest)  # fmt: skip
    return rebuild_tensor, what


def rebuild_tensor(
    cls: type, segment: Segment | None, start: int, nbytes: int, device: Device, dtype: DType,
    shape: tuple[int, ...], strides: tuple[int, ...], offset: int, requires_grad: bool,
    rest: dict[str, Any] | None,
) -> Tensor:  # fmt: skip
    """The tensor, over the memory that the sender sees."""
    storage = _storage_at(segment, start, nbytes)
    result = bare(L.layout(shape, strides, dtype, device), storage, offset)
    if cls is not Tensor:
        result = result.as_subclass(cls)
    result._rg = requires_grad
    if rest:
        result.__dict__.update(rest)
    return result


def _place(storage: Storage) -> tuple[Segment | None, int, int]:
    if not storage.ptr and storage.nbytes:  # a meta tensor's, which has no memory
        return None, 0, storage.nbytes
    segment, start = shared.sendable(storage)
    return segment, start, storage.nbytes


def _storage_at(segment: Segment | None, start: int, nbytes: int) -> Storage:
    return null_storage(nbytes) if segment is None else segment.storage(start, nbytes)


def reduce_storage(storage: UntypedStorage) -> Any:
    """A storage: its memory."""
    return rebuild_storage, (*_place(storage._storage), storage.device)


def rebuild_storage(
    segment: Segment | None, start: int, nbytes: int, device: Device
) -> UntypedStorage:
    """The storage, over the memory that the sender sees."""
    return UntypedStorage._of(_storage_at(segment, start, nbytes), device)


def reduce_typed_storage(storage: TypedStorage) -> Any:
    """A storage with a dtype: its bytes and the dtype."""
    return rebuild_typed_storage, (storage.untyped(), storage.dtype)


def rebuild_typed_storage(storage: UntypedStorage, dtype: DType) -> TypedStorage:
    """The storage, over the memory that the sender sees."""
    return TypedStorage(wrap_storage=storage, dtype=dtype)


def init_reductions() -> None:
    """Registers them with the pickler of ``multiprocessing``."""
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(Parameter, reduce_tensor)
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(TypedStorage, reduce_typed_storage)


explain_missing("torch.multiprocessing.reductions", globals())
