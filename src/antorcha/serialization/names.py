"""The names in a checkpoint's pickle, and what they stand for here.

A pickle names classes and functions as ``module name``. A checkpoint that PyTorch can read must use
PyTorch's names; one that PyTorch wrote has them. This file says what each means, and nothing else
is ever looked up: no module is imported, no attribute fetched, because a file says so.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from typing import Any

from antorcha.core import dtypes
from antorcha.core.device import Device
from antorcha.core.dtypes import dtype as DType
from antorcha.core.lazy import lazy
from antorcha.core.shapes import Size
from antorcha.errors import ArgumentError, ValueRangeError
from antorcha.runtime.tensor import Parameter, Tensor
from antorcha.serialization.homes import torch_module

serialization_rebuild = lazy("antorcha.serialization.rebuild")

STORAGE_NAMES = {
    "float32": "FloatStorage", "float64": "DoubleStorage", "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage", "int64": "LongStorage", "int32": "IntStorage",
    "int16": "ShortStorage", "int8": "CharStorage", "uint8": "ByteStorage", "bool": "BoolStorage",
    "complex64": "ComplexFloatStorage", "complex128": "ComplexDoubleStorage",
}  # fmt: skip


class GlobalName:
    """A name to be written into a pickle."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> Any:
        """Never called: the pickler insists that what it writes as a function could be."""
        raise NotImplementedError(f"{self.module}.{self.name}")


class StorageType:
    """A storage class as a pickle names it: the dtype of its elements, None for plain bytes."""

    __slots__ = ("dtype", "written")

    def __init__(self, dtype: DType | None, written: GlobalName) -> None:
        self.dtype, self.written = dtype, written

    @property
    def itemsize(self) -> int:
        return 1 if self.dtype is None else self.dtype.itemsize


_QUANTIZED = ("QInt8", "QUInt8", "QInt32", "QUInt4x2", "QUInt2x4")
REFUSED = {
    "torch._utils._rebuild_qtensor": "quantized tensors",
    "torch._utils._rebuild_nested_tensor": "nested tensors",
    "torch._utils._rebuild_wrapper_subclass": "wrapper subclasses in checkpoints",
    **{f"torch.{name}Storage": "quantized tensors" for name in _QUANTIZED},
    **{f"torch.storage.{name}Storage": "quantized tensors" for name in _QUANTIZED},
    **{f"torch.{name.lower()}": "quantized tensors" for name in _QUANTIZED},
}
"""What PyTorch saves and antorcha does not have, by the names in the pickle."""
_by_name = {d.name: d for d in dtypes.ALL}
UNTYPED = StorageType(None, GlobalName("torch.storage", "UntypedStorage"))
STORAGE_TYPES = {
    name: StorageType(_by_name[name], GlobalName("torch", shown))
    for name, shown in STORAGE_NAMES.items()
}
DTYPES = {d: GlobalName("torch", d.name) for d in dtypes.ALL + dtypes.NAMES_ONLY}

# written
REBUILD_TENSOR = GlobalName("torch._utils", "_rebuild_tensor_v2")
REBUILD_SPARSE = GlobalName("torch._utils", "_rebuild_sparse_tensor")
LAYOUT = GlobalName("torch.serialization", "_get_layout")
REBUILD_TENSOR_3 = GlobalName("torch._utils", "_rebuild_tensor_v3")
REBUILD_META = GlobalName("torch._utils", "_rebuild_meta_tensor_no_storage")
REBUILD_PARAMETER = GlobalName("torch._utils", "_rebuild_parameter")
REBUILD_PARAMETER_STATE = GlobalName("torch._utils", "_rebuild_parameter_with_state")
REBUILD_TYPE = GlobalName("torch._tensor", "_rebuild_from_type_v2")
TENSOR = GlobalName("torch", "Tensor")
SIZE = GlobalName("torch", "Size")
DEVICE = GlobalName("torch", "device")
GENERATOR = GlobalName("torch._C", "Generator")
FORMATS = {
    f"torch.{name}": GlobalName("torch", name)
    for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
}


def _encode(text: str, encoding: str) -> bytes:
    """How protocol 2 writes bytes."""
    if encoding not in ("latin1", "latin-1"):
        raise ValueError(f"bytes in encoding {encoding!r}")
    return text.encode("latin-1")


def _table() -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that names stand for, and the functions that may be called."""
    values: dict[str, Any] = {
        "torch.Tensor": Tensor, "torch.nn.parameter.Parameter": Parameter,
        "torch.storage.UntypedStorage": UNTYPED,
    }  # fmt: skip
    for each in dtypes.ALL + dtypes.NAMES_ONLY:
        values[f"torch.{each.name}"] = each
    for kind in STORAGE_TYPES.values():
        values[f"torch.{kind.written.name}"] = kind
        values[f"torch.storage.{kind.written.name}"] = kind
    functions: dict[str, Any] = {
        "torch._utils._rebuild_tensor": serialization_rebuild.tensor_v1,
        "torch._utils._rebuild_tensor_v2": serialization_rebuild.tensor,
        "torch._utils._rebuild_tensor_v3": serialization_rebuild.tensor_of_bytes,
        "torch._utils._rebuild_meta_tensor_no_storage": serialization_rebuild.meta_tensor,
        "torch._utils._rebuild_parameter": serialization_rebuild.parameter,
        "torch._utils._rebuild_parameter_with_state": serialization_rebuild.parameter_with_state,
        "torch._utils._rebuild_sparse_tensor": serialization_rebuild.sparse,
        "torch.serialization._get_layout": serialization_rebuild.layout_of,
        "torch._tensor._rebuild_from_type_v2": serialization_rebuild.from_type,
        "torch._utils._rebuild_device_tensor_from_cpu_tensor": serialization_rebuild.on_device,
        "torch._utils._rebuild_device_tensor_from_numpy": serialization_rebuild.from_array,
        "torch.Size": Size, "torch.device": Device, "_codecs.encode": _encode,
        "collections.OrderedDict": OrderedDict, "collections.Counter": Counter,
        "collections.defaultdict": defaultdict,
    }  # fmt: skip
    for builtins in ("__builtin__", "builtins"):
        functions[f"{builtins}.getattr"] = serialization_rebuild.attribute
        for result in (set, frozenset, complex, bytearray, slice):
            functions[f"{builtins}.{result.__name__}"] = result
        for factory in (list, dict, int, float, str, bool, tuple):  # for defaultdict
            values[f"{builtins}.{factory.__name__}"] = factory
    return values, functions


_tables: tuple[dict[str, Any], dict[str, Any]] | None = None


def known() -> tuple[dict[str, Any], dict[str, Any]]:
    """(values, functions) by full name."""
    global _tables
    if _tables is None:
        _tables = _table()
    return _tables


# ---- what the user adds
_added: list[Any] = []


def added() -> Iterator[tuple[str, Any]]:
    """The user's additions, by the names under which a pickle asks for them."""
    for each in _added:
        if not isinstance(each, tuple):
            name = each.__qualname__
            yield f"{each.__module__}.{name}", each
            yield f"{torch_module(each)}.{name}", each
        elif len(each) != 2:
            raise ValueRangeError(
                "Expected tuple of length 2 (global, str of callable full path), but got tuple of "
                f"length: {len(each)}"
            )
        elif type(each[1]) is not str:
            raise ArgumentError(
                "Expected second item in tuple to be str of callable full path, but got: "
                f"{type(each[1])}"
            )
        else:
            yield each[1], each[0]


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets checkpoints use these classes and functions: ``load`` may then call them.

    Args:
        safe_globals (list): classes or functions, or pairs (object, full name in the file)
    """
    _added.extend(each for each in safe_globals if each not in _added)


def clear_safe_globals() -> None:
    """Takes all additions back."""
    _added.clear()


def get_safe_globals() -> list[Any]:
    """The additions."""
    return list(_added)


class safe_globals:
    """A context in which checkpoints may use these classes and functions.

    >>> with torch.serialization.safe_globals([set]):
    ...     pass
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self.more = safe_globals

    def __enter__(self) -> None:
        self.before = list(_added)
        add_safe_globals(self.more)

    def __exit__(self, *_: object) -> None:
        _added[:] = self.before
