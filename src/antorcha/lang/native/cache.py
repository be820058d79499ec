"""Compiled code on disk: one file a function, named by the hash of everything it depends on.

A file is a header line (magic, checksum, the outside symbols the code needs) and an object file. It
is written under a unique name and then renamed, so readers and other writers see whole files only.
Whatever is wrong with a file or with the folder costs a compilation, never an error: LLVM crashes
on a truncated object file, hence the checksum.
"""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile

from antorcha import config
from antorcha.lang.native.digest import digest_of

_MAGIC = b"antorcha-native-1"


def folder() -> str:
    return os.path.join(config.cache_dir, "native")


def read(symbol: str) -> tuple[list[str], bytes] | None:
    """The outside symbols and the object file, or None when there is no sound file."""
    try:
        with open(os.path.join(folder(), symbol + ".o"), "rb") as file:
            blob = file.read()
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
    blob = _MAGIC + b" " + digest_of(rest).encode() + b"\n" + rest
    temporary = ""
    try:
        os.makedirs(folder(), exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=symbol + ".", dir=folder())
        with os.fdopen(handle, "wb") as file:
            file.write(blob)
        os.replace(temporary, os.path.join(folder(), symbol + ".o"))
    except OSError:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


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
