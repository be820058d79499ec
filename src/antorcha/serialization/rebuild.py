"""Tensors from what a checkpoint says of them, and what it says by an attribute's name.

Everything is checked before memory is looked at.
"""

from __future__ import annotations

import enum
import types
from typing import Any

import numpy as np

from antorcha.core.device import META, Device, as_device
from antorcha.core.dtypes import dtype as DType
from antorcha.core.dtypes import uint8
from antorcha.core.lazy import imported, lazy
from antorcha.core.shapes import INT64_MAX, MOST_DIMS
from antorcha.errors import shown
from antorcha.ops.kinds.record import T
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.storage import Storage
from antorcha.runtime.tensor import Parameter, Tensor, bare
from antorcha.serialization import homes
from antorcha.serialization.errors import UnpicklingError
from antorcha.serialization.names import StorageType
from antorcha.tensor import layouts
from antorcha.tensor.interop import share
from antorcha.tensor.storages import UntypedStorage
from antorcha.tensor.typed_storage import TypedStorage

nn_module = lazy("antorcha.nn.module")
sparse_compressed = lazy("antorcha.tensor.sparse.compressed")
sparse_create = lazy("antorcha.tensor.sparse.create")
serialization_names = lazy("antorcha.serialization.names")


class Loaded(TypedStorage):
    """A storage read from a checkpoint."""

    __slots__ = ("kind",)

    def __init__(self, storage: Storage, kind: StorageType, device: Device) -> None:
        super().__init__(
            wrap_storage=UntypedStorage._of(storage, device), dtype=kind.dtype or uint8
        )
        self.kind = kind

    @property
    def storage(self) -> Storage:
        """The memory."""
        return self._untyped._storage


def _sizes(what: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, tuple) or not all(
        type(n) is int and 0 <= n <= INT64_MAX for n in value
    ):
        raise UnpicklingError(f"load: a tensor's {what} is {shown(value)}: the file is damaged")
    if len(value) > MOST_DIMS:
        raise UnpicklingError(
            f"load: a tensor of {len(value)} dims; {MOST_DIMS} is the most that one may have"
        )
    return tuple(value)


def _over(
    loaded: Any, dtype: DType, offset: Any, size: Any, stride: Any, requires_grad: Any
) -> Tensor:
    """A tensor over a loaded storage, if it lies inside it."""
    if not isinstance(loaded, Loaded):
        raise UnpicklingError("load: a tensor without a storage: the file is damaged")
    shape, strides = _sizes("size", size), _sizes("stride", stride)
    if len(shape) != len(strides) or type(offset) is not int or not 0 <= offset <= INT64_MAX:
        raise UnpicklingError(
            f"load: a tensor of size {shape}, stride {strides}, offset {shown(offset)}: damaged "
            "file"
        )
    layout = L.layout(shape, strides, dtype, loaded.device)
    if (offset + layout.high) * layout.itemsize > loaded.storage.nbytes and layout.numel:
        raise UnpicklingError(
            f"load: a tensor of size {shape}, stride {strides} at offset {offset} does not fit its "
            f"storage of {loaded.storage.nbytes} bytes: the file is damaged"
        )
    result = bare(layout, loaded.storage, offset)
    result._rg = bool(requires_grad) and dtype.kind in "fc"
    return result


def tensor_v1(storage: Any, storage_offset: Any, size: Any, stride: Any) -> Tensor:
    """As files of PyTorch 0.3 say it."""
    return tensor(storage, storage_offset, size, stride, False)


def tensor(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    """A tensor of its storage's dtype."""
    kind = storage.kind.dtype if isinstance(storage, Loaded) else None
    if kind is None:
        raise UnpicklingError("load: a tensor over a storage without a dtype: the file is damaged")
    result = _over(storage, kind, storage_offset, size, stride, requires_grad)
    return _with_bits(result, metadata)


def tensor_of_bytes(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor whose dtype has no storage class (uint16, uint32, uint64)."""
    if not isinstance(dtype, DType):
        raise UnpicklingError(f"load: a tensor of dtype {shown(dtype)}: the file is damaged")
    result = _over(storage, dtype, storage_offset, size, stride, requires_grad)
    return _with_bits(result, metadata)


def _with_bits(result: Tensor, metadata: Any) -> Tensor:
    """PyTorch's lazy conjugate and negative, made real."""
    bits = metadata if isinstance(metadata, dict) else {}
    if not (bits.get("conj") or bits.get("neg")):
        return result
    layout, storage = result._layout, result._storage
    # The storage's numbers, each once: an expanded tensor may have any number of elements.
    numbers = bare(
        L.contiguous((storage.nbytes // layout.itemsize,), layout.dtype, layout.device), storage
    )
    if bits.get("conj"):
        numbers = T.conjugate(numbers)
    if bits.get("neg"):
        numbers = T.neg(numbers)
    turned = bare(layout, numbers._storage, result._offset)
    turned._rg = result._rg
    return turned


def meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A tensor without data."""
    if not isinstance(dtype, DType):
        raise UnpicklingError(f"load: a tensor of dtype {shown(dtype)}: the file is damaged")
    result: Tensor = T.empty_strided(
        _sizes("size", size), _sizes("stride", stride), dtype=dtype, device=META
    )
    result._rg = bool(requires_grad) and dtype.kind in "fc"
    return result


def layout_of(name: Any) -> Any:
    """A layout by its name, ``torch.sparse_coo``."""
    found = [each for each in layouts.ALL if repr(each) == name]
    if not found:
        raise UnpicklingError(f"load: there is no layout {shown(name)}: the file is damaged")
    return found[0]


def sparse(layout: Any, data: Any) -> Tensor:
    """A sparse tensor of its parts; its indices are checked, whatever the program's setting."""
    formats = {"sparse_coo": (3, 4), "sparse_csr": (4,), "sparse_csc": (4,), "sparse_bsr": (4,),
               "sparse_bsc": (4,)}  # fmt: skip
    name = getattr(layout, "name", "")
    if not isinstance(data, tuple) or len(data) not in formats.get(name, ()):
        raise UnpicklingError("load: a sparse tensor without its parts: the file is damaged")
    count = 2 if name == "sparse_coo" else 3
    parts, size = data[:count], _sizes("size", tuple(data[count]))
    if not all(type(part) is Tensor for part in parts):
        raise UnpicklingError("load: a sparse tensor without its parts: the file is damaged")
    try:
        if count == 2:
            coalesced = len(data) == 4 and data[3] is True
            result = sparse_create.make_coo((*parts, size), None, None, False, True, coalesced)
            sparse_create.check_coalesced(result)
        else:
            result = sparse_compressed.make_compressed(
                name.removeprefix("sparse_"), parts[0], parts[1], parts[2], size, None, None, False
            )
    except (RuntimeError, TypeError, IndexError) as error:
        raise UnpicklingError(f"load: a sparse tensor whose parts do not fit: {error}") from None
    found: Tensor = result
    return found


def parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Tensor:
    """A Parameter over a tensor."""
    imported("antorcha.nn.parameter")  # gives Parameter its constructor
    if not isinstance(data, Tensor):
        raise UnpicklingError("load: a parameter without a tensor: the file is damaged")
    result: Tensor = Parameter(data, requires_grad=bool(requires_grad))  # type: ignore[call-arg]
    return result


def parameter_with_state(data: Any, requires_grad: Any, backward_hooks: Any, state: Any) -> Tensor:
    """A Parameter with attributes."""
    return _with_state(parameter(data, requires_grad, backward_hooks), state)


def from_type(function: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
    """A tensor of a subclass, or with attributes."""
    if function not in serialization_names.known()[1].values() or not isinstance(arguments, tuple):
        raise UnpicklingError("load: a tensor that is not rebuilt as tensors are: damaged file")
    result = function(*arguments)
    if not (isinstance(result, Tensor) and isinstance(kind, type) and issubclass(kind, Tensor)):
        raise UnpicklingError("load: a tensor of a type that is none: the file is damaged")
    if kind is not type(result) and not (kind is Parameter and isinstance(result, Parameter)):
        result = result.as_subclass(kind)
    return _with_state(result, state)


def _with_state(result: Tensor, state: Any) -> Tensor:
    """Sets attributes that the user gave a tensor (never the tensor's own fields)."""
    if isinstance(state, tuple):
        state = state[0]  # the other part is for __slots__
    if state:
        if not isinstance(state, dict) or not all(isinstance(k, str) for k in state):
            raise UnpicklingError(f"load: a tensor's attributes are {type(state).__name__}")
        result.__dict__.update(state)
    return result


def on_device(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Tensor:
    """A tensor of a device whose storages cannot be saved, from its copy on the CPU."""
    if not isinstance(data, Tensor) or not isinstance(dtype, DType):
        raise UnpicklingError("load: a tensor without a tensor: the file is damaged")
    result: Tensor = data.to(device=as_device(device), dtype=dtype)
    return result.requires_grad_() if requires_grad else result


def from_array(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Tensor:
    """A tensor of a device whose storages cannot be saved, from its copy as a NumPy array."""
    return on_device(share(np.array(data)), dtype, device, requires_grad)


class VariableFunctions:
    """``torch._C._VariableFunctionsClass``, which holds PyTorch's ops."""


def attribute(owner: Any, name: Any) -> Any:
    """``getattr`` as pickles use it: for PyTorch's ops, for hooks that are methods of their module,
    and, before Python 3.11.4, for the members of an Enum. The owner is one that the file may name.
    """
    imported("antorcha.nn")  # (whole: another thread may be importing it)
    found = None
    if type(name) is not str:
        pass
    elif isinstance(owner, enum.EnumMeta):
        found = owner.__members__.get(name)
    elif owner is VariableFunctions:
        found = homes.resolve("torch", name)
    elif isinstance(owner, nn_module.Module):
        method = getattr(type(owner), name, None)
        found = method.__get__(owner) if isinstance(method, types.FunctionType) else None
    if found is None:
        raise UnpicklingError(f"load: getattr of {name!r} is not allowed")
    return found
