"""Writing a checkpoint: PyTorch's zip format, version 3.

The archive holds ``data.pkl`` (the objects, storages by number), ``data/<number>`` (each storage's
bytes, once, aligned to 64) and a few small records. Records are not compressed.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import struct
import sys
import zipfile
from collections import OrderedDict
from typing import Any, ClassVar

import numpy as np

from antorcha.device import Device, backend
from antorcha.dtypes import dtype as DType
from antorcha.runtime.layout import contiguous
from antorcha.runtime.storage import Storage
from antorcha.runtime.tensor import Parameter, Tensor, bare
from antorcha.serialization import names
from antorcha.serialization.errors import CheckpointError
from antorcha.shapes import Size
from antorcha.tensor.layouts import layout

ALIGNMENT = 64
_LARGE = (1 << 31) - 1  # a record from this size on has a zip64 header


class _Stored:
    """A storage in a pickle: what ``persistent_load`` is asked for."""

    __slots__ = ("id",)

    def __init__(self, id: tuple[Any, ...]) -> None:
        self.id = id


_PythonPickler: Any = pickle._Pickler  # the C one writes no names


class _Pickler(_PythonPickler):  # type: ignore[misc]
    """Writes tensors as PyTorch does, and collects their storages."""

    dispatch: ClassVar[dict[Any, Any]] = dict(_PythonPickler.dispatch)

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol=protocol)
        self.storages: list[tuple[Storage, Device]] = []
        self.numbers: dict[int, tuple[str, DType | None]] = {}

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _Stored):
            return obj.id
        if type(obj).__name__ in ("UntypedStorage", "TypedStorage") and hasattr(obj, "_storage"):
            return self._public_storage(obj)
        return None

    def _public_storage(self, obj: Any) -> Any:
        untyped = obj if type(obj).__name__ == "UntypedStorage" else obj._storage
        dtype = None if untyped is obj else obj.dtype
        found = untyped._storage if hasattr(untyped, "_storage") else untyped
        return self._stored(found, untyped.device, dtype).id

    def _stored(self, storage: Storage, device: Device, dtype: DType | None) -> _Stored:
        found = self.numbers.get(id(storage))
        if found is None:
            found = self.numbers[id(storage)] = str(len(self.storages)), dtype
            self.storages.append((storage, device))
        key, before = found
        if before is not dtype and before is not None and dtype is not None:
            raise CheckpointError(
                "save: Cannot save multiple tensors or storages that view the same data as "
                f"different types: {before} and {dtype}; clone() one of them"
            )
        kind = names.UNTYPED if dtype is None else names.STORAGE_TYPES[dtype.name]
        return _Stored(("storage", kind.written, key, str(device), storage.nbytes // kind.itemsize))

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            return self._tensor(obj)
        if type(obj) is Size:
            return names.SIZE, (tuple(obj),)
        if type(obj) is layout:
            return names.LAYOUT, (repr(obj),)
        if type(obj) is Device:
            return names.DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)
        return NotImplemented

    def _tensor(self, t: Tensor) -> Any:
        state = dict(t.__dict__.items())
        if isinstance(t, Parameter):
            data = bare(t._layout, t._storage, t._offset)
            if state:
                return names.REBUILD_PARAMETER_STATE, (data, t._rg, OrderedDict(), state)
            return names.REBUILD_PARAMETER, (data, t._rg, OrderedDict())
        function, args = self._sparse(t) if t._layout.sparse else self._plain(t)
        plain = type(t) is Tensor or t._layout.sparse
        if plain and not state:
            return function, args
        kind = names.TENSOR if plain else type(t)
        return names.REBUILD_TYPE, (function, kind, args, state)

    def _plain(self, t: Tensor) -> tuple[names.Global, tuple[Any, ...]]:
        lay = t._layout
        size, strides = tuple(lay.shape), tuple(lay.strides)
        if lay.device.type == "meta":
            return names.REBUILD_META, (lay.dtype, size, strides, t._rg)
        if lay.dtype.name in names.STORAGE_TYPES:
            stored = self._stored(t._storage, lay.device, lay.dtype)
            return names.REBUILD_TENSOR, (stored, t._offset, size, strides, t._rg, OrderedDict())
        stored = self._stored(t._storage, lay.device, None)
        return names.REBUILD_TENSOR_3, (stored, t._offset, size, strides, t._rg, OrderedDict(),
                                        lay.dtype)  # fmt: skip

    def _sparse(self, t: Any) -> tuple[names.Global, tuple[Any, ...]]:
        size = Size(t._layout.shape)
        if t.layout.name == "sparse_coo":
            return names.REBUILD_SPARSE, (t.layout, (*t._parts, size, t._coalesced))
        return names.REBUILD_SPARSE, (t.layout, (*t._parts, size))

    def _save_name(self, obj: names.Global) -> None:
        self.write(b"c" + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    def _save_dtype(self, obj: DType) -> None:
        self.save(names.DTYPES[obj])

    dispatch[names.Global] = _save_name
    dispatch[DType] = _save_dtype


def write(obj: Any, file: Any, name: str, protocol: int = 2) -> None:
    """Writes a checkpoint of ``obj`` into a seekable file; ``name`` is the archive's folder."""
    data = io.BytesIO()
    pickler = _Pickler(data, protocol)
    pickler.dump(obj)
    digest = hashlib.sha256()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:

        def record(path: str, content: Any) -> None:
            _write_record(archive, f"{name}/{path}", content)
            digest.update(archive.filelist[-1].CRC.to_bytes(4, "little"))

        record("data.pkl", data.getvalue())
        record(".format_version", b"1")
        record(".storage_alignment", str(ALIGNMENT).encode())
        record("byteorder", sys.byteorder.encode())
        for k, (storage, device) in enumerate(pickler.storages):
            record(f"data/{k}", _bytes_of(storage, device))
        record("version", b"3\n")
        serial = int.from_bytes(digest.digest(), "big") % 10**40
        record(".data/serialization_id", f"{serial:040d}".encode())


def _bytes_of(storage: Storage, device: Device) -> Any:
    """A storage's memory, brought to the host."""
    from antorcha.dtypes import uint8

    lay = contiguous((storage.nbytes,), uint8, device)
    array: Any = np.ascontiguousarray(backend(device).to_host(lay, storage, 0))
    return memoryview(array)


def _write_record(archive: zipfile.ZipFile, name: str, content: Any) -> None:
    """One record, its content aligned by padding in the header's extra field."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.external_attr = 0o644 << 16
    large = len(content) > _LARGE
    start = archive.fp.tell() + 30 + len(name.encode()) + (20 if large else 0) + 4  # type: ignore[union-attr]
    padding = -start % ALIGNMENT
    info.extra = struct.pack("<HH", 0x4246, padding) + b"Z" * padding
    info.file_size = len(content)
    with archive.open(info, "w", force_zip64=large) as target:
        for at in range(0, len(content), 1 << 24):
            target.write(content[at : at + (1 << 24)])
