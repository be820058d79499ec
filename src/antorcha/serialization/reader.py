"""Reading a checkpoint: PyTorch's zip format, and the format from before version 1.6.

Storages are read as the pickle asks for them, each once, straight into memory of their own; or the
file is mapped, and they are parts of it. Their sums are not checked, as PyTorch does not: it takes
longer than reading.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from antorcha.core.device import CPU, Device, as_device, backend
from antorcha.core.dtypes import uint8
from antorcha.errors import AntorchaError, ArgumentError, MissingFeature, ValueRangeError, shown
from antorcha.ops.kinds.record import T
from antorcha.runtime.memory.layout import contiguous
from antorcha.runtime.memory.shared import map_file
from antorcha.runtime.memory.storage import Storage, is_owned, new_storage, part
from antorcha.runtime.tensor import bare
from antorcha.serialization import options
from antorcha.serialization.errors import CheckpointError, UnpicklingError
from antorcha.serialization.names import StorageType
from antorcha.serialization.rebuild import Loaded
from antorcha.serialization.unpickle import NameScanner, Scanner, Unpickler
from antorcha.tensor.storages import UntypedStorage

MAGIC = 0x1950A86A20F9469CFC6C
OLD_VERSION = 1001
# what zipfile may raise over a damaged file
_READ_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ArithmeticError,
                LookupError, TypeError, ValueError, struct.error)  # fmt: skip
_NO_CUDA = (
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If "
    "you are running on a CPU-only machine, please use torch.load with "
    "map_location=torch.device('cpu') to map your storages to the CPU."
)


class Wanted(NamedTuple):
    """How a checkpoint is to be read."""

    map_location: Any = None
    trust: bool = False
    encoding: str = "utf-8"
    path: str | None = None
    """Of the file, if it is to be mapped."""


def read(file: Any, wanted: Wanted) -> Any:
    """The object in a seekable binary file."""
    start = file.tell()
    head = file.read(262)
    file.seek(start)
    if not head:
        raise EOFError("load: Ran out of input: the file is empty")
    if head[:2] == b"PK":
        return _ZipFile(file, wanted).read()
    if head[257:262] == b"ustar":
        raise MissingFeature("load: tar archives, the format before PyTorch 0.1.10, are not read")
    if head[:1] != b"\x80":
        raise _no_checkpoint()
    if wanted.path is not None:
        raise CheckpointError(
            "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization"
            "=True), please torch.save your checkpoint with this option in order to use mmap."
        )
    return _OldFile(file.read(), wanted).read()


def unsafe_names(file: Any) -> list[str]:
    """The names in a checkpoint's pickle that ``weights_only`` does not allow."""
    start = file.tell()
    magic = file.read(4)
    file.seek(start)
    if magic != b"PK\x03\x04":
        raise ValueRangeError("Expected input to be a checkpoint returned by torch.save")
    scanner = NameScanner(_ZipFile(file, Wanted()).pickle())
    scanner.load()
    return list(scanner.unsafe)


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
_CHUNK: Final = 1 << 20
_DEFLATED: Final = 1032  # how much smaller zlib makes anything, at the most


class _ZipFile:
    """The format since PyTorch 1.6."""

    def __init__(self, file: Any, wanted: Wanted) -> None:
        self.file, self.wanted = file, wanted
        try:
            self.size = file.seek(0, 2)
            self.room = _Room(self.size)
            file.seek(0)
            self.archive = zipfile.ZipFile(file)
        except _READ_ERRORS as error:
            raise CheckpointError(
                "load: PytorchStreamReader failed reading zip archive: the file is truncated or "
                f"damaged ({error})"
            ) from None
        self.entries = {info.filename: info for info in self.archive.infolist()}
        names = self.entries
        found = [name for name in names if name.endswith("/data.pkl") and name.count("/") == 1]
        if not found:
            raise CheckpointError("load: the zip file is no checkpoint: it has no data.pkl")
        self.prefix = found[0][: -len("data.pkl")]
        if f"{self.prefix}constants.pkl" in names:
            raise MissingFeature("load: TorchScript archives are not supported")
        self.mapped: Storage | None = None

    def pickle(self) -> bytes:
        return self._record("data.pkl")

    def read(self) -> Any:
        wanted = self.wanted
        self.swap = self._byteorder() != sys.byteorder
        if wanted.path is not None:
            shared = options.get_default_mmap_options() == getattr(mmap, "MAP_SHARED", None)
            size = os.path.getsize(wanted.path)
            self.mapped = map_file(wanted.path, shared, size)
        storages = _Storages(self._fetch, wanted.map_location)
        return Unpickler(
            self.pickle(), storages.load, trust=wanted.trust, encoding=wanted.encoding
        ).load()

    def _byteorder(self) -> str:
        if f"{self.prefix}byteorder" not in self.entries:
            order = options.get_default_load_endianness()
            if order is options.LoadEndianness.NATIVE:
                return sys.byteorder
            return "big" if order is options.LoadEndianness.BIG else "little"
        found = self._record("byteorder").strip()
        if found not in (b"little", b"big"):
            raise CheckpointError(f"load: Unknown endianness type: {shown(found)}")
        return found.decode()

    def _record(self, name: str) -> bytes:
        """A small record."""
        info = self.entries[self.prefix + name]
        _check_sizes(info, self.room)
        if not info.CRC:  # (it was saved without its sum)
            info.CRC = None  # type: ignore[assignment]
        try:
            return self.archive.read(info)
        except _READ_ERRORS as error:
            raise _damaged(info.filename, error) from None

    def _fetch(self, kind: StorageType, key: str, numel: int) -> Storage:
        """A storage's bytes."""
        info = self.entries.get(f"{self.prefix}data/{key}")
        if info is None or info.file_size != numel * kind.itemsize:
            raise CheckpointError(
                f"load: storage {key} of {numel * kind.itemsize} bytes is not in the file: it is "
                "truncated or damaged"
            )
        _check_sizes(info, self.room)
        if options.local.skip_data or _is_meta(self.wanted.map_location):
            return new_storage(info.file_size)
        try:
            found = self._content(info)
        except _READ_ERRORS as error:
            if isinstance(error, AntorchaError):
                raise
            raise _damaged(info.filename, error) from None
        if self.swap and info.file_size:
            if kind.dtype is None:
                raise CheckpointError(
                    "load: a storage without a dtype was saved on a machine of the other byte order"
                )
            found = _own(found)
            UntypedStorage._of(found, CPU).byteswap(kind.dtype)
        return found

    def _content(self, info: zipfile.ZipInfo) -> Storage:
        if info.compress_type != zipfile.ZIP_STORED:
            info.CRC = None  # type: ignore[assignment]
            with self.archive.open(info) as source:
                return _filled(source, info.file_size)
        start = self._start(info)
        if self.mapped is not None:
            return part(self.mapped, start, info.file_size)
        self.file.seek(start)
        return _filled(self.file, info.file_size)

    def _start(self, info: zipfile.ZipInfo) -> int:
        """Where a record's bytes lie: behind its header and fields whose lengths that has."""
        self.file.seek(info.header_offset)
        head = self.file.read(30)
        if len(head) < 30 or head[:4] != b"PK\x03\x04":
            raise ValueError("its header is no header")
        start: int = info.header_offset + 30 + sum(struct.unpack_from("<HH", head, 26))
        if start + info.file_size > self.size:
            raise EOFError("it ends too early")
        return start


def _filled(source: Any, nbytes: int) -> Storage:
    """A new storage with the next bytes of a file, read into its memory."""
    result = new_storage(nbytes)
    memory = memoryview(result)
    at, readinto = 0, getattr(source, "readinto", None)
    while at < nbytes:
        if readinto is not None:
            count = readinto(memory[at:])
        else:
            part = source.read(min(nbytes - at, _CHUNK))
            count = len(part)
            memory[at : at + count] = part
        if not count:
            raise EOFError("it ends too early")
        at += count
    return result


def _own(storage: Storage) -> Storage:
    """The storage, copied if its memory is a file's."""
    return storage if is_owned(storage) else UntypedStorage._of(storage, CPU).clone()._storage


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
    if isinstance(map_location, dict):
        location = map_location.get(location, location)
    elif isinstance(map_location, (str, bytes)):
        location = map_location if isinstance(map_location, str) else map_location.decode()
    elif isinstance(map_location, Device):
        location = str(map_location)
    elif map_location is not None:
        answer = map_location(UntypedStorage._of(storage, CPU), location)
        if answer is not None:
            return _of_face(answer)
    return _restored(storage, str(location))


def _of_face(found: Any) -> tuple[Storage, Device]:
    untyped = getattr(found, "_untyped_storage", found)
    if not isinstance(untyped, UntypedStorage):
        raise ArgumentError(f"load: expected a storage, not {type(found).__name__}")
    return untyped._storage, untyped.device


def _restored(storage: Storage, location: str) -> tuple[Storage, Device]:
    """A storage, at the place of that name."""
    for priority, _, deserializer in options.packages:
        if priority >= options.BUILT_IN and _is_device(location):
            break
        found = deserializer(UntypedStorage._of(storage, CPU), location)
        if found is not None:
            return _of_face(found)
    if not _is_device(location):
        raise CheckpointError(
            "load: don't know how to restore data location of torch.storage.UntypedStorage "
            f"(tagged with {shown(location, 60)})"
        )
    if location.startswith("cuda") and not _has_cuda():
        raise CheckpointError(f"load: {_NO_CUDA}")
    device = as_device(location)
    if device is CPU:
        return storage, CPU
    flat = bare(contiguous((storage.nbytes,), uint8, CPU), storage)
    return T.to_device(flat, device)._storage, device


def _is_device(location: str) -> bool:
    try:
        as_device(location)
    except (RuntimeError, ValueError, TypeError):
        return False
    return True


def _is_meta(map_location: Any) -> bool:
    """Is nothing of the storages to be read?"""
    return isinstance(map_location, (str, Device)) and str(map_location) == "meta"


def _has_cuda() -> bool:
    try:
        backend(as_device("cuda"))
    except (AssertionError, RuntimeError):
        return False
    return True


# -------------------------------------------------------------------------------------- old format
class _OldFile:
    """The format before PyTorch 1.6: pickles one after the other, then the storages.

    The objects come before the storages that they need: their pickle is run twice, first to learn
    which storages there are.
    """

    def __init__(self, data: bytes, wanted: Wanted) -> None:
        self.data, self.at, self.wanted = data, 0, wanted
        self.room = _Room(len(data))
        self.waiting: dict[str, tuple[Storage, int]] = {}  # for their bytes: storage, itemsize
        self.storages: dict[str, Storage] = {}

    def read(self) -> Any:
        if self._part() != MAGIC:
            raise _no_checkpoint()
        if self._part() != OLD_VERSION:
            raise UnpicklingError("load: Invalid protocol version of an old checkpoint")
        self._part()  # the writer's byte order and word sizes; the storages' is little
        start = self.at
        self._part(_Storages(self._fetch, "cpu"), Scanner)
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
        self.at = start
        return self._part(
            _Storages(lambda kind, key, numel: self.storages[key], self.wanted.map_location)
        )

    def _part(self, storages: _Storages | None = None, machine: type[Unpickler] = Unpickler) -> Any:
        """The next pickle's object."""

        def load(id: Any) -> Any:
            return _no_storage(id) if storages is None else self._load(storages, id)

        trust = self.wanted.trust and storages is not None
        run = machine(self.data, load, self.at, trust, self.wanted.encoding)
        value = run.load()
        self.at = run.at
        return value

    def _load(self, storages: _Storages, id: Any) -> Any:
        if isinstance(id, tuple) and len(id) == 4 and id[0] == "module":
            return id[1]  # the class; its file and source are of no use
        found = storages.load(id)
        view = id[5] if len(id) == 6 else None
        if view is None:
            return found
        if not isinstance(view, tuple) or [type(each) for each in view[1:]] != [int, int]:
            raise UnpicklingError("load: a view of a storage that is none: the file is damaged")
        at, nbytes = (each * found.kind.itemsize for each in view[1:])
        if min(at, nbytes) < 0 or at + nbytes > found.storage.nbytes:
            raise UnpicklingError("load: a view beyond its storage: the file is damaged")
        return Loaded(part(found.storage, at, nbytes), found.kind, found.device)

    def _fetch(self, kind: StorageType, key: str, numel: int) -> Storage:
        """A storage whose bytes come later."""
        size = numel * kind.itemsize
        self.room.take(f"storage {key}", size)
        result = self.storages[key] = new_storage(size)
        self.waiting[key] = result, kind.itemsize
        return result

    def _fill(self, key: str) -> None:
        """Reads a storage's bytes."""
        if key not in self.waiting:
            raise CheckpointError(
                f"load: the file is damaged: no tensor has storage {key}, or it is there twice"
            )
        result, itemsize = self.waiting.pop(key)
        end = self.at + 8 + result.nbytes
        if (
            end > len(self.data)
            or struct.unpack_from("<q", self.data, self.at)[0] * itemsize != result.nbytes
        ):
            raise CheckpointError(f"load: the file is truncated or damaged at storage {key}")
        if not options.local.skip_data:
            memory = memoryview(result)
            memory[:] = memoryview(self.data)[self.at + 8 : end]
        self.at = end


def _no_storage(id: Any) -> Any:
    raise UnpicklingError(f"load: an unknown persistent id {shown(id, 60)}")
