"""Reading a checkpoint: PyTorch's zip format, and the format from before version 1.6.

Storages are read as the pickle asks for them, each once, into memory of their own.
"""

from __future__ import annotations

import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from antorcha.device import CPU, Device, as_device, backend
from antorcha.dtypes import uint8
from antorcha.errors import MissingFeature, shown
from antorcha.ops.record import T
from antorcha.runtime.layout import contiguous
from antorcha.runtime.storage import Storage, as_numpy, new_storage
from antorcha.runtime.tensor import bare
from antorcha.serialization.errors import CheckpointError, UnpicklingError
from antorcha.serialization.names import StorageType
from antorcha.serialization.rebuild import Loaded
from antorcha.serialization.unpickle import Unpickler

MAGIC = 0x1950A86A20F9469CFC6C
# what zipfile may raise over a damaged file
_READ_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ArithmeticError,
                LookupError, TypeError, ValueError, struct.error)  # fmt: skip
_NO_CUDA = (
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If "
    "you are running on a CPU-only machine, please use torch.load with "
    "map_location=torch.device('cpu') to map your storages to the CPU."
)


def read(file: Any, map_location: Any) -> Any:
    """The object in a seekable binary file."""
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    if not head:
        raise EOFError("load: Ran out of input: the file is empty")
    if head[:2] == b"PK":
        return _read_zip(file, map_location)
    if head[:1] != b"\x80":
        raise _no_checkpoint()
    return _OldFile(file.read(), map_location).read()


def _no_checkpoint() -> UnpicklingError:
    return UnpicklingError(
        "load: Invalid magic number; corrupt file? This is no checkpoint: it is neither a zip "
        "archive nor in PyTorch's old format"
    )


class _Room:
    """What storages may take. They lie in the file one beside the other, so together they are no
    larger: a file that says otherwise is damaged, and is not to take the machine's memory."""

    def __init__(self, nbytes: int) -> None:
        self.left = nbytes

    def take(self, name: str, nbytes: int) -> None:
        self.left -= nbytes
        if self.left < 0:
            raise CheckpointError(
                f"load: the file is truncated or damaged: it has no room for {name} of "
                f"{nbytes:,} bytes"
            )


# -------------------------------------------------------------------------------------- zip format
_DEFLATED: Final = 1032  # how much smaller zlib makes anything, at the most


def _read_zip(file: Any, map_location: Any) -> Any:
    try:
        room = _Room(file.seek(0, 2))
        file.seek(0)
        archive = zipfile.ZipFile(file)
    except _READ_ERRORS as error:
        raise CheckpointError(
            "load: PytorchStreamReader failed reading zip archive: the file is truncated or "
            f"damaged ({error})"
        ) from None
    with archive:
        entries = {info.filename: info for info in archive.infolist()}
        found = [name for name in entries if name.endswith("/data.pkl") and name.count("/") == 1]
        if not found:
            raise CheckpointError("load: the zip file is no checkpoint: it has no data.pkl")
        prefix = found[0][: -len("data.pkl")]
        if f"{prefix}constants.pkl" in entries:
            raise MissingFeature("load: TorchScript archives are not supported")
        swap = False
        if f"{prefix}byteorder" in entries:
            swap = _record(archive, entries[f"{prefix}byteorder"], room).strip() != (
                sys.byteorder.encode()
            )

        def fetch(kind: StorageType, key: str, numel: int) -> Storage:
            entry = entries.get(f"{prefix}data/{key}")
            if entry is None or entry.file_size != numel * kind.itemsize:
                raise CheckpointError(
                    f"load: storage {key} of {numel * kind.itemsize} bytes is not in the file: it "
                    "is truncated or damaged"
                )
            return _storage(archive, entry, kind, swap, room)

        storages = _Storages(fetch, map_location)
        return Unpickler(_record(archive, entries[found[0]], room), storages.load).load()


def _damaged(name: str, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"load: PytorchStreamReader failed reading file {name}: the file is truncated or damaged "
        f"({error})"
    )


def _check_sizes(info: zipfile.ZipInfo, room: _Room) -> None:
    """Before memory is asked for: is there so much in the file?"""
    if info.compress_type == zipfile.ZIP_STORED and info.compress_size != info.file_size:
        raise _damaged(info.filename, ValueError("two sizes"))
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _damaged(info.filename, ValueError(f"compressed in way {info.compress_type}"))
    room.take(info.filename, info.compress_size)
    if info.file_size > _DEFLATED * (info.compress_size + 1):
        raise _damaged(info.filename, ValueError(f"{info.file_size:,} bytes are not in it"))


def _record(archive: zipfile.ZipFile, info: zipfile.ZipInfo, room: _Room) -> bytes:
    _check_sizes(info, room)
    try:
        return archive.read(info)
    except _READ_ERRORS as error:
        raise _damaged(info.filename, error) from None


def _storage(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, kind: StorageType, swap: bool, room: _Room
) -> Storage:
    """A record's bytes, read into a new storage."""
    _check_sizes(info, room)
    made = new_storage(info.file_size)
    memory = as_numpy(made, 0, (info.file_size,), (1,), np.uint8) if info.file_size else None
    try:
        with archive.open(info) as source:
            at = 0
            while memory is not None and at < len(memory):
                count = source.readinto(memory[at:])  # type: ignore[attr-defined]
                if not count:
                    raise EOFError("it ends too early")
                at += count
            source.read(1)  # checks the sum
    except _READ_ERRORS as error:
        raise _damaged(info.filename, error) from None
    if swap and memory is not None:
        _swap(memory, kind)
    return made


def _swap(memory: Any, kind: StorageType) -> None:
    """Turns the bytes of each number round."""
    if kind.dtype is None:
        raise CheckpointError(
            "load: a storage without a dtype was saved on a machine of the other byte order"
        )
    width = kind.itemsize // 2 if kind.dtype.kind == "c" else kind.itemsize
    numbers = memory.reshape(-1, width)
    numbers[:] = numbers[:, ::-1].copy()


# ----------------------------------------------------------------------------------------- storages
class _Storages:
    """Gives storages by the ids in a pickle."""

    def __init__(
        self, fetch: Callable[[StorageType, str, int], Storage], map_location: Any
    ) -> None:
        self.fetch, self.map_location = fetch, map_location
        self.loaded: dict[str, Loaded] = {}

    def load(self, id: Any) -> Loaded:
        if not (isinstance(id, tuple) and len(id) >= 5 and id[0] == "storage"):
            raise UnpicklingError(f"load: an unknown persistent id {shown(id, 60)}")
        _, kind, key, location, numel = id[:5]
        if not isinstance(kind, StorageType) or type(numel) is not int or numel < 0:
            raise UnpicklingError("load: a storage of unknown type: the file is damaged")
        if type(key) not in (str, int) or type(location) is not str:
            raise UnpicklingError("load: a storage of unknown place: the file is damaged")
        key = str(key)
        found = self.loaded.get(key)
        if found is None:
            storage = self.fetch(kind, key, numel)
            storage, device = placed(storage, location, self.map_location)
            found = self.loaded[key] = Loaded(storage, kind, device)
        if found.kind is not kind:  # the same bytes under another type
            return Loaded(found.storage, kind, found.device)
        return found


def placed(storage: Storage, location: str, map_location: Any) -> tuple[Storage, Device]:
    """A storage, moved to where ``map_location`` wants it (None: where it was saved)."""
    if callable(map_location) and not isinstance(map_location, Device):
        from antorcha.tensor.storages import UntypedStorage

        answer = map_location(UntypedStorage._of(storage, CPU), location)
        if answer is not None:
            inner = getattr(answer, "_untyped_storage", answer)
            return inner._storage, inner.device
        wanted: Any = location
    elif isinstance(map_location, dict):
        wanted = map_location.get(location, location)
    else:
        wanted = location if map_location is None else map_location
    if map_location is None and location.startswith("cuda") and not _has_cuda():
        raise CheckpointError(f"load: {_NO_CUDA}")
    device = as_device(wanted)
    if device is CPU:
        return storage, CPU
    flat = bare(contiguous((storage.nbytes,), uint8, CPU), storage)
    return T.to_device(flat, device)._storage, device


def _has_cuda() -> bool:
    try:
        backend(as_device("cuda"))
    except (AssertionError, RuntimeError):
        return False
    return True


# -------------------------------------------------------------------------------------- old format
class _OldFile:
    """The format before PyTorch 1.6: pickles one after the other, then the storages."""

    def __init__(self, data: bytes, map_location: Any) -> None:
        self.data, self.at = data, 0
        self.room = _Room(len(data))
        self.waiting: dict[str, tuple[Storage, int]] = {}  # for their bytes: storage, itemsize
        self.storages = _Storages(self._fetch, None if callable(map_location) else "cpu")

    def read(self) -> Any:
        if self._part() != MAGIC:
            raise _no_checkpoint()
        if self._part() != 1001:
            raise UnpicklingError("load: Invalid protocol version of an old checkpoint")
        self._part()  # the writer's byte order and word sizes
        result = self._part(self._load)
        keys = self._part()
        if not isinstance(keys, list) or not all(type(key) in (str, int) for key in keys):
            raise CheckpointError("load: the file is damaged: the list of its storages is none")
        for key in map(str, keys):
            self._fill(key)
        if self.waiting:
            raise CheckpointError(
                f"load: the file is truncated or damaged: {len(self.waiting)} storages are not in "
                "it"
            )
        return result

    def _part(self, load: Callable[[Any], Any] | None = None) -> Any:
        """The next pickle's object."""
        machine = Unpickler(self.data, load or _no_storage, self.at)
        value = machine.load()
        self.at = machine.at
        return value

    def _load(self, id: Any) -> Loaded:
        if isinstance(id, tuple) and len(id) == 6 and id[5] is not None:
            raise MissingFeature("load: views of storages in an old checkpoint are not supported")
        return self.storages.load(id)

    def _fetch(self, kind: StorageType, key: str, numel: int) -> Storage:
        """A storage whose bytes come later."""
        size = numel * kind.itemsize
        self.room.take(f"storage {key}", size)
        made = new_storage(size)
        self.waiting[key] = made, kind.itemsize
        return made

    def _fill(self, key: str) -> None:
        """Reads a storage's bytes."""
        if key not in self.waiting:
            raise CheckpointError(
                f"load: the file is damaged: no tensor has storage {key}, or it is there twice"
            )
        made, itemsize = self.waiting.pop(key)
        end = self.at + 8 + made.nbytes
        if (
            end > len(self.data)
            or struct.unpack_from("<q", self.data, self.at)[0] * itemsize != made.nbytes
        ):
            raise CheckpointError(f"load: the file is truncated or damaged at storage {key}")
        if made.nbytes:
            memory = as_numpy(made, 0, (made.nbytes,), (1,), np.uint8)
            memory[:] = np.frombuffer(self.data, np.uint8, made.nbytes, self.at + 8)
        self.at = end


def _no_storage(id: Any) -> Any:
    raise UnpicklingError(f"load: an unknown persistent id {shown(id, 60)}")
