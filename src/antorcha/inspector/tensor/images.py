"""Tensors that are pictures, as PNG (https://www.w3.org/TR/png-3/), thinned to a small size."""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass

from antorcha.core.lazy import Array, np
from antorcha.inspector.reading import Elements
from antorcha.inspector.tensor.values import Statistics

LARGEST = 128  # pixels on a side that are shown
_SMALLEST = 8  # what is smaller is hardly a picture


@dataclass(frozen=True)
class Image:
    """A picture: the PNG's bytes, its size in pixels, every how many pixels it was taken,
    which of a batch it is (None: there is no batch), and the values that are shown as black and
    as white (None: 0 and 1, or bytes as they are)."""

    png: bytes
    height: int
    width: int
    step: int
    of_batch: int | None
    stretched: tuple[float, float] | None = None


def as_image(
    elements: Elements, statistics: Statistics, axes: tuple[str, ...] | None
) -> Image | None:
    """The tensor as a picture, if it is one: C x H x W or N x C x H x W with 1 or 3 channels
    (or in the order that `axes` tells), bytes or floats from 0 to 1 that are not all the same.
    Where `axes` says that it is one, floats may have any values."""
    layout = elements.layout
    dims = _dims(tuple(layout.shape), axes)
    if dims is None or not _plausible(layout.dtype.name, statistics, axes is not None):
        return None
    c, h, w = dims
    height, width = layout.shape[h], layout.shape[w]
    step = -(-max(height, width) // LARGEST)
    steps = [step if d in (h, w) else 1 for d in range(layout.ndim)]
    batch = next((d for d in range(layout.ndim) if d not in dims), None)
    if batch is not None:
        steps[batch] = max(layout.shape[batch], 1)
    pixels = np.moveaxis(elements.thinned(steps), (h, w, c), (-3, -2, -1))
    pixels = pixels.reshape(pixels.shape[-3:])
    stretched = None
    if layout.dtype.name != "uint8":
        low, high = statistics.min or 0.0, statistics.max or 0.0
        stretched = (low, high) if low < 0 or high > 1 else None
        real = np.nan_to_num(pixels.astype(np.float64))
        if stretched is not None:
            real = real / (high - low) - low / (high - low)
        pixels = np.rint(real.clip(0, 1) * 255).astype(np.uint8)
    rows, columns = pixels.shape[:2]
    return Image(png(pixels), rows, columns, step, None if batch is None else 0, stretched)


def _dims(shape: tuple[int, ...], axes: tuple[str, ...] | None) -> tuple[int, int, int] | None:
    """Which dims are channels, height and width; None where it cannot be a picture."""
    if axes is not None:
        if not {"C", "H", "W"} <= set(axes) or len(axes) > 4:
            return None
        c, h, w = axes.index("C"), axes.index("H"), axes.index("W")
    elif len(shape) in (3, 4):
        c, h, w = len(shape) - 3, len(shape) - 2, len(shape) - 1
    else:
        return None
    fits = shape[c] in (1, 3) and min(shape[h], shape[w]) >= _SMALLEST and 0 not in shape
    return (c, h, w) if fits else None


def _plausible(dtype: str, statistics: Statistics, is_told: bool) -> bool:
    """Do the values look like a picture's? (Any do, where somebody says that it is one.)"""
    if statistics.finite < statistics.looked_at or statistics.min == statistics.max:
        return False
    if dtype == "uint8":
        return True
    if "float" not in dtype or statistics.min is None or statistics.max is None:
        return False
    if is_told:
        return math.isfinite(statistics.max - statistics.min)
    return statistics.min >= 0 and statistics.max <= 1


def png(pixels: Array) -> bytes:
    """Bytes of shape (height, width, 1 or 3) as a PNG file."""
    height, width, channels = pixels.shape
    colour = 2 if channels == 3 else 0
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    rows = b"".join([b"\0" + row.tobytes() for row in pixels])  # filter 0 before each row
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join([_chunk(kind, data) for kind, data in parts])


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)
