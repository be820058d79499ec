"""Files that are whole or not there."""

from __future__ import annotations

import gzip
import os


def write_whole(text: str, path: str) -> None:
    """Writes a text, compressed if the path ends in ``.gz``; where that fails, nothing is left."""
    half = f"{path}.{os.getpid()}.part"
    try:
        if path.endswith(".gz"):
            with gzip.open(half, "wt", encoding="utf-8") as packed:
                packed.write(text)
        else:
            with open(half, "w", encoding="utf-8") as file:
                file.write(text)
        os.replace(half, path)
    except BaseException:
        if os.path.exists(half):
            os.unlink(half)
        raise
