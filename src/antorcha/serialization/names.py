"""What a checkpoint may name, and what that is here.

A pickle names classes and functions. `CALLABLES` and `VALUES` are the whole of what a file gets by
its names: a name is looked up here and nowhere else, so no file makes Python import or run anything.
What the user registers (`add_safe_globals`) comes on top. The same tables, read backwards, give the
names that `save` writes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from antorcha import dtypes
from antorcha.device import Device
from antorcha.errors import ArgumentError, ValueRangeError
from antorcha.runtime.tensor import Parameter, Tensor
from antorcha.serialization import rebuild
from antorcha.shapes import Size
from antorcha.tensor.legacy import STORAGE_NAMES


class StorageKind:
    """``torch.FloatStorage`` in a file: no more than the dtype; None for plain bytes."""

    def __init__(self, name: str, dtype: dtypes.dtype | None) -> None:
        self.name = name
        self.dtype = dtype


UNTYPED = StorageKind("torch.storage.UntypedStorage", None)
KIND_OF = {
    dtypes.by_name(dtype): StorageKind(f"torch.{name}", dtypes.by_name(dtype))
    for name, dtype in STORAGE_NAMES.items()
}

CALLABLES: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": rebuild.rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild.rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": rebuild.rebuild_tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild.rebuild_meta,
    "torch._utils._rebuild_parameter": rebuild.rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild.rebuild_parameter_with_state,
    "torch._tensor._rebuild_from_type_v2": rebuild.rebuild_from_type,
    "torch.serialization._get_layout": rebuild.make_layout,
    "torch.Size": rebuild.make_size,
    "torch.device": rebuild.make_device,
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "builtins.set": set,
    "builtins.frozenset": frozenset,
    "builtins.complex": complex,
    "builtins.bytearray": rebuild.make_bytearray,
    "_codecs.encode": rebuild.make_bytes,
}

VALUES: dict[str, Any] = {
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Parameter": Parameter,
    **{f"torch.{dtype.name}": dtype for dtype in dtypes.ALL},
    **{kind.name: kind for kind in (*KIND_OF.values(), UNTYPED)},
    **{kind.name.replace("torch.", "torch.cuda."): kind for kind in KIND_OF.values()},
    "torch.UntypedStorage": UNTYPED,
    "torch.storage._UntypedStorage": UNTYPED,
}

ABSENT = {
    "torch._utils._rebuild_sparse_tensor": "sparse tensors",
    "torch._utils._rebuild_qtensor": "quantized tensors",
    "torch._utils._rebuild_nested_tensor": "nested tensors",
    "torch._utils._rebuild_wrapper_subclass": "tensor subclasses without data",
    "torch._utils._rebuild_device_tensor_from_numpy": "tensors of XLA and its like",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": "tensors of XLA and its like",
    **{f"torch.{name}Storage": "quantized tensors"
       for name in ("QInt8", "QUInt8", "QInt32", "QUInt4x2", "QUInt2x4")},
    **{f"torch.{name}": f"the dtype {name}" for name in (
        "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
        "float4_e2m1fn_x2", "complex32", "qint8", "quint8", "qint32", "bits8", "bits16")},
}  # fmt: skip
"""What PyTorch's own files may hold and antorcha has not."""

WRITTEN: dict[int, str] = {
    id(thing): name
    for table in (VALUES, CALLABLES)
    for name, thing in reversed(table.items())  # the first name of a thing is the one to write
    if name.startswith("torch.")
}
WRITTEN.update({id(Size): "torch.Size", id(Device): "torch.device", id(Tensor): "torch.Tensor"})


# ------------------------------------------------------------------------------ what users allow
_BLOCKED_MODULES = {"sys", "os", "posix", "nt", "subprocess", "importlib", "runpy", "ctypes"}
_BLOCKED = {f"builtins.{name}" for name in (
    "eval", "exec", "compile", "open", "__import__", "getattr", "setattr", "delattr", "globals",
    "input", "breakpoint", "vars")}  # fmt: skip

Global = Callable[..., Any] | tuple[Callable[..., Any], str]
_registered: dict[Global, None] = {}


def _named(entry: Global) -> tuple[str, Any]:
    if not isinstance(entry, tuple):
        return f"{entry.__module__}.{entry.__qualname__}", entry
    if len(entry) != 2:
        raise ValueRangeError(
            "add_safe_globals: expected tuple of length 2 (global, str of callable full path), but "
            f"got tuple of length: {len(entry)}"
        )
    if type(entry[1]) is not str:
        raise ArgumentError(
            "add_safe_globals: expected second item in tuple to be str of callable full path, but "
            f"got: {type(entry[1])}"
        )
    return entry[1], entry[0]


def add_safe_globals(safe_globals: Iterable[Global]) -> None:
    """Lets checkpoints name these classes and functions.

    An object of such a class is rebuilt from what the file says: the class is called, and its
    attributes are set. ``(thing, "module.name")`` registers a thing under another name.
    See https://docs.pytorch.org/docs/stable/notes/serialization.html.
    """
    _registered.update(dict.fromkeys(safe_globals))


def get_safe_globals() -> list[Global]:
    """What has been registered."""
    return list(_registered)


def clear_safe_globals() -> None:
    """Forgets all that has been registered."""
    _registered.clear()


class safe_globals:
    """A context in which checkpoints may name these classes and functions.

    >>> class Options: ...
    >>> with torch.serialization.safe_globals([Options]):
    ...     len(torch.serialization.get_safe_globals())
    1
    """

    def __init__(self, safe_globals: Iterable[Global]) -> None:
        self.safe_globals = list(safe_globals)

    def __enter__(self) -> None:
        self.added = [entry for entry in self.safe_globals if entry not in _registered]
        add_safe_globals(self.added)

    def __exit__(self, *_: object) -> None:
        for entry in self.added:
            _registered.pop(entry, None)


def registered() -> dict[str, Any]:
    """The registered things by the names that files have for them."""
    return {
        name: thing
        for name, thing in map(_named, _registered)
        if not is_blocked(name) and not is_blocked(_named_thing(thing))
    }


def _named_thing(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"


def is_blocked(name: str) -> bool:
    """Names that no registration opens: with them a file could do anything."""
    return name in _BLOCKED or name.split(".")[0] in _BLOCKED_MODULES
