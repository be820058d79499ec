"""Writing a checkpoint: PyTorch's zip format, version 3, and the format from before 1.6.

The archive holds ``data.pkl`` (the objects, storages by number), ``data/<number>`` (each storage's
bytes, once, aligned to 64) and a few small records. Records are not compressed, and are written
from the tensors' own memory.
"""

from __future__ import annotations

import functools
import io
import pickle
import struct
import sys
import types
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha.basics import memory_format
from antorcha.core.device import CPU, Device, backend
from antorcha.core.dtypes import dtype as DType
from antorcha.core.dtypes import uint8
from antorcha.core.shapes import Size
from antorcha.errors import MissingFeature
from antorcha.ops.kinds.record import Op
from antorcha.random import DeviceGenerator, Generator
from antorcha.runtime.memory.layout import contiguous
from antorcha.runtime.memory.storage import Storage
from antorcha.runtime.tensor import Parameter, Tensor, bare
from antorcha.serialization import names, options
from antorcha.serialization.archive import Archive, checksums, write_all
from antorcha.serialization.errors import CheckpointError
from antorcha.serialization.homes import is_torch, torch_module
from antorcha.serialization.reader import MAGIC, OLD_VERSION
from antorcha.tensor.layouts import layout
from antorcha.tensor.storages import UntypedStorage
from antorcha.tensor.typed_storage import TypedStorage


class _Stored:
    """A storage in a pickle: what ``persistent_load`` is asked for."""

    __slots__ = ("id",)

    def __init__(self, id: tuple[Any, ...]) -> None:
        self.id = id


_PythonPickler: Any = pickle._Pickler  # the C one writes no names


class _Writing:
    """Writes tensors as PyTorch does, and collects their storages (a mixin of picklers)."""

    old = False
    """Is it the format from before version 1.6?"""
    storages: list[tuple[Storage, Device, int]]
    numbers: dict[int, tuple[str, DType | None]]
    write: Any
    memoize: Any
    save: Any

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _Stored):
            return obj.id
        if isinstance(obj, (TypedStorage, UntypedStorage)):
            dtype = obj.dtype if isinstance(obj, TypedStorage) else None
            return self._stored(obj._storage, obj.device, dtype).id
        return None

    def _stored(self, storage: Storage, device: Device, dtype: DType | None) -> _Stored:
        found = self.numbers.get(id(storage))
        if found is None:
            found = self.numbers[id(storage)] = str(len(self.storages)), dtype
            self.storages.append((storage, device, 1 if dtype is None else dtype.itemsize))
        key, before = found
        if before is not dtype and before is not None and dtype is not None:
            raise CheckpointError(
                "save: Cannot save multiple tensors or storages that view the same data as "
                f"different types: {before} and {dtype}; clone() one of them"
            )
        kind = names.UNTYPED if dtype is None else names.STORAGE_TYPES[dtype.name]
        where = place(UntypedStorage._of(storage, device))
        id_ = ("storage", kind.written, key, where, storage.nbytes // kind.itemsize)
        return _Stored((*id_, None) if self.old else id_)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            return self._tensor(obj)
        kind = type(obj)
        if kind is Size:
            return names.SIZE, (tuple(obj),)
        if kind is Device:
            return names.DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if kind is layout:
            return names.LAYOUT, (repr(obj),)
        if isinstance(obj, Op):
            return obj.name  # a function of PyTorch's, by its name
        if kind is Generator or kind is DeviceGenerator:
            offset = None if obj.stream is None else obj.stream.offset
            state = (obj.initial_seed(), offset, obj.get_state())
            return names.GENERATOR, (obj.device,), state
        return NotImplemented

    def _tensor(self, t: Tensor) -> Any:
        own = type(t).__reduce_ex__
        if own is not Tensor.__reduce_ex__ and not t._layout.sparse:
            return own(t, 2)  # a subclass that says itself how it is saved
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

    def _plain(self, t: Tensor) -> tuple[names.GlobalName, tuple[Any, ...]]:
        layout = t._layout
        size, strides = tuple(layout.shape), tuple(layout.strides)
        if layout.device.type == "meta":
            return names.REBUILD_META, (layout.dtype, size, strides, t._rg)
        if layout.dtype.name in names.STORAGE_TYPES:
            stored = self._stored(t._storage, layout.device, layout.dtype)
            return names.REBUILD_TENSOR, (stored, t._offset, size, strides, t._rg, OrderedDict())
        stored = self._stored(t._storage, layout.device, None)
        return names.REBUILD_TENSOR_3, (stored, t._offset, size, strides, t._rg, OrderedDict(),
                                        layout.dtype)  # fmt: skip

    def save_global(self, obj: Any, name: Any = None) -> None:
        """A class or function by its name: antorcha's by PyTorch's."""
        module = getattr(obj, "__module__", None)
        if not isinstance(module, str) or not is_torch(module):
            super().save_global(obj, name)  # type: ignore[misc]
            return
        self._write_name(torch_module(obj), name or obj.__qualname__)
        self.memoize(obj)

    def _write_name(self, module: str, name: str) -> None:
        self.write(b"c" + f"{module}\n{name}\n".encode())

    def _sparse(self, t: Any) -> tuple[names.GlobalName, tuple[Any, ...]]:
        size = Size(t._layout.shape)
        if t.layout.name == "sparse_coo":
            return names.REBUILD_SPARSE, (t.layout, (*t._parts, size, t._coalesced))
        return names.REBUILD_SPARSE, (t.layout, (*t._parts, size))

    def _save_name(self, obj: names.GlobalName) -> None:
        self._write_name(obj.module, obj.name)
        self.memoize(obj)

    def _save_dtype(self, obj: DType) -> None:
        self.save(names.DTYPES[obj])

    def _save_format(self, obj: memory_format) -> None:
        self.save(names.FORMATS[str(obj)])


@functools.cache
def _pickler(base: Any) -> Any:
    """The class of picklers that write checkpoints in the way of a module's pickler."""
    ours = _Writing

    def save_function(pickler: Any, obj: Any) -> None:
        own = is_torch(str(getattr(obj, "__module__", "")))
        (ours.save_global if own else base.dispatch[types.FunctionType])(pickler, obj)

    dispatch = {
        **base.dispatch, names.GlobalName: ours._save_name, DType: ours._save_dtype,
        memory_format: ours._save_format, types.FunctionType: save_function,
    }  # fmt: skip
    return type("Pickler", (ours, base), {"dispatch": dispatch})


def _pickled(obj: Any, protocol: int, module: Any, old: bool = False) -> tuple[bytes, Any]:
    """The object's pickle, and the pickler, which has the storages."""
    base = _PythonPickler if module is None or module is pickle else module.Pickler
    if not (isinstance(base, type) and issubclass(base, _PythonPickler)):
        raise MissingFeature(
            f"save: the pickler of {module.__name__} is not written in Python (as pickle._Pickler "
            "is), and cannot be taught PyTorch's names"
        )
    data = io.BytesIO()
    pickler = _pickler(base)(data, protocol)
    pickler.storages, pickler.numbers, pickler.old = [], {}, old
    pickler.dump(obj)
    return data.getvalue(), pickler


def place(storage: UntypedStorage) -> str:
    """Where a storage is, as PyTorch (or a registered package) names the place."""
    for _, tagger, _ in options.packages:
        found = tagger(storage)
        if found is not None:
            return found
    return str(storage.device)


def write(obj: Any, file: Any, name: str, protocol: int = 2, module: Any = None,
          byteorder: bool = True) -> None:  # fmt: skip
    """Writes a checkpoint of ``obj`` into a binary file; ``name`` is the archive's folder."""
    data, pickler = _pickled(obj, protocol, module)
    archive = Archive(file, name)
    archive.add("data.pkl", data)
    # From 1 on, storages lie where PyTorch can compute it, behind a descriptor each.
    archive.add(".format_version", b"0")
    archive.add(".storage_alignment", str(archive.alignment).encode())
    if byteorder:
        archive.add("byteorder", sys.byteorder.encode())
    if options.local.skip_data:
        for k, (storage, _, _) in enumerate(pickler.storages):
            archive.leave(f"data/{k}", storage.nbytes)
    else:
        _add_storages(archive, pickler.storages)
    archive.add("version", b"3\n")
    serial = int.from_bytes(archive.digest.digest(), "big") % 10**40
    archive.add(".data/serialization_id", f"{serial:040d}".encode())
    archive.close()


def _add_storages(archive: Archive, storages: Sequence[tuple[Storage, Device, int]]) -> None:
    """Writes the storages' records; at most one of those brought to the host is held."""
    hosts = [memoryview(storage) for storage, device, _ in storages if device is CPU]
    with checksums(hosts) as sums:
        for k, (storage, device, _) in enumerate(storages):
            total = next(sums) if device is CPU else None
            archive.add(f"data/{k}", _bytes_of(storage, device), total)


def write_old(obj: Any, file: Any, protocol: int = 2, module: Any = None) -> None:
    """Writes a checkpoint in the format from before version 1.6."""
    if options.local.skip_data:
        raise CheckpointError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    data, pickler = _pickled(obj, protocol, module, old=True)
    sizes = {"short": 2, "int": 4, "long": 4}
    system = {"protocol_version": OLD_VERSION, "little_endian": sys.byteorder == "little",
              "type_sizes": sizes}  # fmt: skip
    for each in (MAGIC, OLD_VERSION, system):
        write_all(file, pickle.dumps(each, protocol))
    write_all(file, data)
    keys = sorted(str(k) for k in range(len(pickler.storages)))
    write_all(file, pickle.dumps(keys, protocol))
    for key in keys:
        storage, device, itemsize = pickler.storages[int(key)]
        write_all(file, struct.pack("<q", storage.nbytes // itemsize))
        write_all(file, _bytes_of(storage, device))


def _bytes_of(storage: Storage, device: Device) -> Any:
    """A storage's memory, brought to the host."""
    if device is CPU:
        return memoryview(storage)
    layout = contiguous((storage.nbytes,), uint8, device)
    array: Any = np.ascontiguousarray(backend(device).to_host(layout, storage, 0))
    return memoryview(array)
