"""Damaged checkpoints, many thousands of them: run as a program, which says what was not refused.

``python damage.py FILE SEED COUNT``: each file is loaded in this process, under a bound of memory;
a death of the process is its parent's to notice. Every third one is trusted (``weights_only``), and
every third one mapped.
"""

from __future__ import annotations

import functools
import io
import pickle
import random
import resource
import struct
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import antorcha
from antorcha.errors import AntorchaError

ROOM = 1 << 31  # bytes that loading may take, beyond what the process has
VALUES = (0, 1, 0x2E, 0x28, 0x7F, 0x80, 0x85, 0xFF)


def damaged(whole: bytes, rng: random.Random) -> bytes:
    """The bytes with something wrong."""
    at = rng.randrange(len(whole))
    kind = rng.randrange(8)
    if kind == 0:
        return whole[:at]
    if kind == 1:  # a bit
        return _with(whole, at, bytes([whole[at] ^ (1 << rng.randrange(8))]))
    if kind == 2:
        return _with(whole, at, bytes([rng.choice(VALUES)]))
    if kind == 3:  # a number that means much more
        return _with(
            whole, at, struct.pack("<q", rng.choice((-1, 1 << 31, 1 << 40, (1 << 63) - 1)))
        )
    if kind == 4:  # bytes left out
        return whole[:at] + whole[at + rng.choice((1, 2, 4, 50)) :]
    if kind == 5:  # bytes twice
        length = rng.choice((1, 3, 60))
        return whole[: at + length] + whole[at:]
    if kind == 6:  # bytes of elsewhere
        other = rng.randrange(len(whole))
        return _with(whole, at, whole[other : other + rng.choice((1, 4, 30))])
    for _ in range(rng.choice((2, 8, 30))):
        whole = _with(whole, rng.randrange(len(whole)), bytes([rng.randrange(256)]))
    return whole


def _with(whole: bytes, at: int, part: bytes) -> bytes:
    return whole[:at] + part + whole[at + len(part) :]


def variants(whole: bytes, rng: random.Random) -> Iterator[bytes]:
    """Damaged files; of a zip file also such that have sound sums around a damaged pickle."""
    while True:
        yield damaged(whole, rng)
        if whole[:2] == b"PK":
            yield _repacked(whole, rng)


def _repacked(whole: bytes, rng: random.Random) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive, zipfile.ZipFile(made, "w") as target:
        for info in archive.infolist():
            content = archive.read(info)
            if info.filename.endswith("data.pkl") or (rng.random() < 0.05 and content):
                content = damaged(content, rng)
            target.writestr(info.filename, content)
    return made.getvalue()


def use(value: Any) -> None:
    """Looks at what was loaded: a tensor that should not be may be found only then."""
    if isinstance(value, antorcha.Tensor):
        if value.numel() < 1000 and not value.is_meta:
            value.tolist()
    elif isinstance(value, dict):
        for each in list(value.values()):
            use(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            use(each)


def outcome(load: Callable[[], Any]) -> str:
    """What became of it: "loaded", a refusal, or what should not be."""
    try:
        loaded = load()
    except (RuntimeError, pickle.UnpicklingError) as error:
        if isinstance(error, AntorchaError):
            return "refused"
        return f"{type(error).__name__}: {error}"[:200]
    except EOFError:
        return "refused"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:200]
    try:
        use(loaded)
    except BaseException as error:
        return f"used: {type(error).__name__}: {error}"[:200]
    return "loaded"


def main(path: str, seed: str, count: str) -> None:
    warnings.simplefilter("ignore")
    whole = Path(path).read_bytes()
    use(antorcha.load(io.BytesIO(whole), weights_only=False))
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        limit = pages * resource.getpagesize() + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    rng = random.Random(int(seed))
    found: Counter[str] = Counter()
    for k, content in zip(range(int(count)), variants(whole, rng)):
        last = Path(f"{path}.last")
        last.write_bytes(content)  # (for whoever wants to know what ended the process)
        mapped = k % 3 == 2 and content[:2] == b"PK"
        load = functools.partial(antorcha.load, last if mapped else io.BytesIO(content),
                                 weights_only=k % 3 != 1, mmap=mapped)  # fmt: skip
        found[outcome(load)] += 1
    print("\n".join(f"{times} {what}" for what, times in found.most_common()))


if __name__ == "__main__":
    main(*sys.argv[1:])
