"""How tensors come out of a file: the functions that PyTorch's pickles call by name.

They are called with whatever the file says, so nothing is believed: sizes and strides must be
counts, and what a tensor covers must lie inside its storage.
"""

from __future__ import annotations

from typing import Any

from antorcha import dtypes
from antorcha.device import META, Device
from antorcha.errors import MissingFeature
from antorcha.ops.record import T
from antorcha.runtime import layout as L
from antorcha.runtime.storage import null_storage
from antorcha.runtime.tensor import Parameter, Tensor, bare
from antorcha.serialization.errors import CorruptFile
from antorcha.shapes import Size
from antorcha.tensor.storages import TypedStorage, UntypedStorage

_LARGEST = 1 << 62


def _counts(what: str, values: Any) -> tuple[int, ...]:
    found = tuple(values) if isinstance(values, (tuple, list)) else None
    if found is None or not all([type(n) is int and 0 <= n < _LARGEST for n in found]):
        raise CorruptFile(f"load: a tensor's {what} in the file makes no sense: {str(values)[:80]}")
    return found


def _layout(size: Any, stride: Any, dtype: Any, device: Device) -> L.Layout:
    shape, strides = _counts("size", size), _counts("stride", stride)
    if len(shape) != len(strides) or not isinstance(dtype, dtypes.dtype):
        raise CorruptFile(f"load: a tensor in the file has size {shape} and stride {strides}")
    return L.layout(shape, strides, dtype, device)


def _leaf(made: Tensor, requires_grad: Any) -> Tensor:
    if requires_grad is True:
        made.requires_grad_(True)  # type: ignore[attr-defined]  # checks the dtype
    return made


def _over(
    storage: Any, dtype: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, metadata: Any
) -> Tensor:
    """A tensor over a storage, once it is known to lie inside it."""
    lay = _layout(size, stride, dtype, storage.device)
    (start,) = _counts("offset", (offset,))
    memory = storage._storage
    if lay.numel and (start + lay.high) * lay.itemsize > memory.nbytes:
        raise CorruptFile(
            f"load: a tensor of size {tuple(lay.shape)} and stride {lay.strides} at element "
            f"{start} does not fit in its storage, which has {memory.nbytes} bytes"
        )
    made = bare(lay, memory, start)
    for flag in ("conj", "neg"):
        if isinstance(metadata, dict) and metadata.get(flag):
            # PyTorch left the work for later; here it is done now, in memory of the tensor's own.
            if lay.numel * lay.itemsize > memory.nbytes:
                raise MissingFeature(f"load: an expanded tensor with the {flag} flag")
            made = T.neg(made) if flag == "neg" else T.conj(made)
    return _leaf(made, requires_grad)


def rebuild_tensor(storage: TypedStorage, offset: Any, size: Any, stride: Any) -> Tensor:
    """A tensor as PyTorch 0.1 wrote it."""
    return rebuild_tensor_v2(storage, offset, size, stride, False, None)


def rebuild_tensor_v2(
    storage: TypedStorage, offset: Any, size: Any, stride: Any, requires_grad: Any,
    hooks: Any, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor whose dtype is its storage's."""
    if not isinstance(storage, TypedStorage):
        raise CorruptFile("load: a tensor in the file has no storage of a known dtype")
    return _over(storage, storage.dtype, offset, size, stride, requires_grad, metadata)


def rebuild_tensor_v3(
    storage: UntypedStorage | TypedStorage, offset: Any, size: Any, stride: Any,
    requires_grad: Any, hooks: Any, dtype: Any, metadata: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor over plain bytes, which says its dtype itself."""
    if not isinstance(storage, (UntypedStorage, TypedStorage)):
        raise CorruptFile("load: a tensor in the file has no storage")
    return _over(storage, dtype, offset, size, stride, requires_grad, metadata)


def rebuild_meta(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A tensor without data."""
    lay = _layout(size, stride, dtype, META)
    return _leaf(bare(lay, null_storage(lay.nbytes)), requires_grad)


def rebuild_parameter(data: Any, requires_grad: Any, hooks: Any) -> Parameter:
    """A parameter over the elements of ``data``."""
    from antorcha.nn.parameter import Parameter as Made  # gives the class its constructor

    if not isinstance(data, Tensor):
        raise CorruptFile("load: a Parameter in the file has no tensor")
    return Made(data, requires_grad is True)  # type: ignore[call-arg]


def rebuild_parameter_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Parameter:
    """A parameter with attributes that somebody gave it."""
    made = rebuild_parameter(data, requires_grad, hooks)
    set_state(made, state)
    return made


def rebuild_from_type(func: Any, kind: Any, args: Any, state: Any) -> Tensor:
    """A tensor of a subclass, or with attributes; the caller has checked ``func`` and ``kind``."""
    made = func(*args)
    if not (isinstance(made, Tensor) and isinstance(kind, type) and issubclass(kind, Tensor)):
        raise CorruptFile("load: what the file calls a tensor is none")
    if type(made) is not kind:
        made = made.as_subclass(kind)  # type: ignore[attr-defined]
    set_state(made, state)
    return made


def set_state(target: Any, state: Any) -> None:
    """Gives an object its attributes, as pickle does; of a tensor never the fields that antorcha
    relies on to stay inside the memory."""
    own = getattr(target, "__setstate__", None)
    if own is not None:
        own(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    for part in (state, slots):
        if part and not (isinstance(part, dict) and all([isinstance(key, str) for key in part])):
            raise CorruptFile(f"load: the attributes of a {type(target).__name__} are no dict")
    if slots and isinstance(target, (Tensor, type)):
        raise MissingFeature(f"load: a {type(target).__name__} with __slots__: {list(slots)[:5]}")
    if state:
        target.__dict__.update(state)
    for key, value in (slots or {}).items():
        setattr(target, key, value)


# -------------------------------------------------------------------------------- small values
def make_size(*args: Any) -> Size:
    """``torch.Size``."""
    return Size(_counts("size", args[0] if args else ()))


def make_device(*args: Any) -> Device:
    """``torch.device``."""
    return Device(*args)


def make_layout(name: str) -> Any:
    """``torch.strided``, the only layout there is here."""
    if name != "torch.strided":
        raise MissingFeature(f"load: tensors of layout {str(name)[:40]} are not supported")
    return T.empty(0).layout


def make_bytes(text: str, encoding: str = "latin1") -> bytes:
    """Bytes as protocol 2 writes them: text and an encoding."""
    if encoding not in ("latin1", "latin-1", "ascii", "utf-8", "utf8"):
        raise CorruptFile(f"load: bytes in the file are encoded as {str(encoding)[:40]!r}")
    return text.encode(encoding)


def make_bytearray(content: Any = b"", encoding: Any = None) -> bytearray:
    """A bytearray from its content: never from a size, which could say anything."""
    if isinstance(content, str):
        return bytearray(make_bytes(content, encoding))
    if not isinstance(content, bytes):
        raise CorruptFile("load: a bytearray in the file has no bytes")
    return bytearray(content)
