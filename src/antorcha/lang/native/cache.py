"""Compiled code on disk: one file a function, named by the hash of everything it depends on.

A file is a header line (magic, checksum, the outside symbols the code needs) and an object file. It
is written under a unique name and then renamed, so readers and other writers see whole files only.
Whatever is wrong with a file or with the folder costs a compilation, never an error: LLVM crashes
on a truncated object file, hence the checksum.

Files lie in sixteen folders, by the last digit of their hash. Each is bounded, to a sixteenth of
``config.cache_size``: a file's time of modification says when it was last used, to the hour, and
now and then, after a store, the files of that folder that were unused for longest are deleted.
Nobody needs a lock for that: a reader that has opened a file keeps it, one that comes too late
compiles, and two that delete at once want the same files gone.
"""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
import time

from antorcha import config
from antorcha.lang.native.digest import digest_of

_MAGIC = b"antorcha-native-1"
SHARDS = 16
_HOUR = 3600.0
_ABANDONED = 24 * _HOUR  # a file still under its temporary name by then has lost its writer
_SELDOM = 256  # one store in so many looks at its folder's size


def folder() -> str:
    return os.path.join(config.cache_dir, "native")


def shard(symbol: str) -> str:
    """The folder of a symbol's file."""
    return os.path.join(folder(), symbol[-1])


def read(symbol: str) -> tuple[list[str], bytes] | None:
    """The outside symbols and the object file, or None when there is no sound file."""
    path = os.path.join(shard(symbol), symbol + ".o")
    try:
        with open(path, "rb") as file:
            blob = file.read()
            if time.time() - os.fstat(file.fileno()).st_mtime > _HOUR:
                with contextlib.suppress(OSError):  # a cache that may only be read
                    os.utime(path)
    except OSError:
        return None
    head, _, rest = blob.partition(b"\n")
    words = head.split(b" ")
    if len(words) != 2 or words[0] != _MAGIC or words[1] != digest_of(rest).encode():
        return None
    names, _, code = rest.partition(b"\n")
    return names.decode().split(), code


def write(symbol: str, needs: list[str], code: bytes) -> None:
    rest = " ".join(needs).encode() + b"\n" + code
    check = digest_of(rest)
    blob = _MAGIC + b" " + check.encode() + b"\n" + rest
    home, temporary = shard(symbol), ""
    try:
        os.makedirs(home, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=symbol + ".", dir=home)
        with os.fdopen(handle, "wb") as file:
            file.write(blob)
        os.replace(temporary, os.path.join(home, symbol + ".o"))
    except OSError:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        return
    if int(check[:8], 16) % _SELDOM == 0:  # a hash is as good as a die, and needs no counter
        trim(home, config.cache_size // SHARDS)


def contents(home: str) -> list[tuple[float, int, str]]:
    """Each file's last use, size and path, whole or being written; vanished ones are left out."""
    found = []
    try:
        with os.scandir(home) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_file(follow_symlinks=False):
                        stat = entry.stat(follow_symlinks=False)
                        found.append((stat.st_mtime, stat.st_size, entry.path))
    except OSError:
        pass
    return found


def trim(home: str, limit: int) -> None:
    """Where a folder holds more than `limit` bytes (0: any number), deletes what was unused for
    longest, down to three quarters of that; and what writers that are gone have left."""
    now = time.time()
    kept = []
    for used, size, path in sorted(contents(home)):
        if path.endswith(".o"):
            kept.append((size, path))
        elif now - used > _ABANDONED:
            _delete(path)
    total = sum([size for size, _ in kept])
    if not 0 < limit < total:
        return
    for size, path in kept:
        if total <= limit // 4 * 3:
            break
        if _delete(path):
            total -= size


def _delete(path: str) -> bool:
    """Deletes a file; says whether it is gone, through us or another."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def undefined_symbols(code: bytes) -> list[str] | None:
    """The symbols that an ELF object file expects from outside; None if it is not such a file.

    The code generator may add calls of its own (memcpy, fmodf, ...) that no IR mentions; linking
    would leave them null without a word.
    """
    if code[:6] != b"\x7fELF\x02\x01":
        return None
    (table,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + k * size) for k in range(count)]
    names = []
    for section in sections:
        if section[1] != 2:  # the symbol table
            continue
        strings = sections[section[6]]
        for at in range(section[4] + 24, section[4] + section[5], 24):
            name, _, _, home = struct.unpack_from("<IBBH", code, at)
            if home == 0 and name:
                start = strings[4] + name
                names.append(code[start : code.index(b"\0", start)].decode())
    return names
