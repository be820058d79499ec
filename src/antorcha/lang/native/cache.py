"""Compiled code on disk: one file a function, named by the hash of everything it depends on.

A file is a header line (magic, checksum), a line with its own symbol and the outside symbols that
the code needs, and an object file. It is written under a unique name and then renamed, so readers
and other writers see whole files only. Whatever is wrong with a file or with the folder costs a
compilation, never an error: LLVM crashes on a truncated object file, hence the checksum.

What is read here runs in this process. So a file is used only if nobody but this user (or root) can
have written it, and only from folders in which nobody else can replace it. In a sticky folder, such
as ``/tmp``, others may make files, which are theirs; they cannot replace ours.

Files lie in sixteen folders, by the last digit of their hash. Each is bounded, to a sixteenth of
``config.cache_size``: a file's time of modification says when it was last used, to the hour, and
now and then, after a store, the files of that folder that were unused for longest are deleted.
Nobody needs a lock for that: a reader that has opened a file keeps it, one that comes too late
compiles, and two that delete at once want the same files gone.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import sys
import tempfile
import time

from antorcha import config
from antorcha.errors import warn
from antorcha.lang.native.digest import digest_of

_MAGIC = b"antorcha-native-2"
_LARGEST = 1 << 28  # bytes; no function has so much code
SHARDS = 16
_HOUR = 3600.0
_ABANDONED = 24 * _HOUR  # a file still under its temporary name by then has lost its writer
_SELDOM = 256  # one store in so many looks at its folder's size
_warned = False


def folder() -> str:
    """Where compiled code lies; empty where it has no place."""
    return config.cache_dir and os.path.join(config.cache_dir, "native")


def shard(symbol: str) -> str:
    """The folder of a symbol's file."""
    return os.path.join(folder(), symbol[-1])


def holds(symbol: str) -> bool:
    """Is there a file for a symbol, sound or not?"""
    return bool(folder()) and os.path.exists(os.path.join(shard(symbol), symbol + ".o"))


def read(symbol: str) -> tuple[list[str], bytes] | None:
    """The outside symbols and the object file, or None when there is no sound file."""
    if not folder():
        return None
    path = os.path.join(shard(symbol), symbol + ".o")
    try:
        with open(path, "rb", opener=_at_once) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
                return None
            if not (_is_private(found, path) and _folders_are_private(symbol)):
                return None
            blob = file.read()
            if time.time() - found.st_mtime > _HOUR:
                with contextlib.suppress(OSError):  # a cache that may only be read
                    os.utime(path)
    except OSError:
        return None
    return _parse(symbol, blob)


def _parse(symbol: str, blob: bytes) -> tuple[list[str], bytes] | None:
    head, _, rest = blob.partition(b"\n")
    words = head.split(b" ")
    if len(words) != 2 or words[0] != _MAGIC or words[1] != digest_of(rest).encode():
        return None
    names, _, code = rest.partition(b"\n")
    itself, *needs = names.decode(errors="replace").split(" ")
    return (needs, code) if itself == symbol else None  # another's, under this name


def write(symbol: str, needs: list[str], code: bytes) -> None:
    if not folder():
        return
    rest = " ".join([symbol, *needs]).encode() + b"\n" + code
    check = digest_of(rest)
    blob = _MAGIC + b" " + check.encode() + b"\n" + rest
    home, temporary = shard(symbol), ""
    try:
        _make_folders(symbol)
        if not _folders_are_private(symbol):
            return
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


# ---- who else may write here
def _at_once(path: str, flags: int) -> int:
    """Opens a file; does not wait for a writer where somebody has put a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _make_folders(symbol: str) -> None:
    """Makes the folders that are missing; ours are for nobody else, whatever the umask says."""
    os.makedirs(os.path.dirname(config.cache_dir), exist_ok=True)
    for path in (config.cache_dir, folder(), shard(symbol)):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)


def _folders_are_private(symbol: str) -> bool:
    ours = (config.cache_dir, folder(), shard(symbol))
    return all([_is_private(os.stat(path), path) for path in ours])


def _is_private(found: os.stat_result, path: str) -> bool:
    """Is a file or folder one that only this user, or root, may change? If not, warns."""
    if not hasattr(os, "geteuid"):  # Windows: a user's folders are private
        return True
    sticky = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    if found.st_uid not in (0, os.geteuid()):
        _warn_once(path, "belongs to another user; set ANTORCHA_CACHE to a folder of yours")
        return False
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not sticky:
        _warn_once(path, f"may be written by others; `chmod -R go-w {config.cache_dir}` ends that")
        return False
    return True


def _warn_once(path: str, why: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warn(f"the cache of compiled kernels is not used: {path} {why}")


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
    found = _symbols(code)
    return None if found is None else [name for name, defined in found if not defined]


def is_what_it_says(symbol: str, needs: list[str], code: bytes) -> bool:
    """Does an object file define that symbol, and need no others? LLVM ends the process over one
    that it does not find. Of files that are not ELF it is believed."""
    try:
        found = _symbols(code)
    except (struct.error, IndexError, ValueError):
        return False
    if found is None:
        return sys.platform != "linux"
    wanted = {name for name, defined in found if not defined}
    return (symbol, True) in found and wanted <= set(needs)


def _symbols(code: bytes) -> list[tuple[str, bool]] | None:
    """The named symbols of an ELF object file: are they defined in it?"""
    if code[:6] != b"\x7fELF\x02\x01":
        return None
    (table,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + k * size) for k in range(count)]
    found = []
    for section in sections:
        if section[1] != 2:  # the symbol table
            continue
        strings = sections[section[6]]
        for at in range(section[4] + 24, section[4] + section[5], 24):
            name, _, _, home = struct.unpack_from("<IBBH", code, at)
            if name:
                start = strings[4] + name
                found.append((code[start : code.index(b"\0", start)].decode(), home != 0))
    return found
