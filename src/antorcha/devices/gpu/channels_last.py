"""Copies of images whose channels are to lie together, filled up with zeros to whole pieces.

A block turns a tile of 64 channels by 128 bytes of places in shared memory. What it reads and
writes are words of 4 bytes: two halves, or a number.
"""

from __future__ import annotations

from typing import Any

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.devices.emit import MOST_KEPT, WORDS
from antorcha.devices.gpu.frame import THREADS, GridStep, GridTemplate, blocks_for, index_type
from antorcha.lang.native import i64, inline, native, ptr, static, u32, void
from antorcha.lang.native.grid import WARP, barrier, block, device_pointer, shared, thread
from antorcha.runtime.memory.layout import Layout

CHANNELS = 64  # of a tile
ROWS = THREADS // WARP  # channels that a block reads at once
PITCH = WARP + 1  # words from channel to channel: their banks differ


class ChannelsGrid(GridTemplate):
    """What a copy is compiled for."""

    def __init__(self, out: Layout, x: Layout, index: Any, even: bool) -> None:
        super().__init__((out,), (x,), index)
        self.unit, self.each, self.even = WORDS[out.itemsize], 4 // out.itemsize, even

    def __native_key__(self) -> str:
        return f"{self.unit}|{self.I}|{self.even}"


@inline
def read_words(P, x, first, step, channels, left):
    """Words of places, of every eighth channel from an offset on: zeros where there is no channel,
    or place. All are on their way before the first is used."""
    count = static(CHANNELS // ROWS)
    found = [u32(0) for r in static(range(count))]
    if static(P.each == 1 or P.even) and i64(x) % 4 == 0:
        for r in static(range(count)):
            if channels > static(r * ROWS) and left > 0:
                found[r] = ptr[u32](x + (first + static(r * ROWS) * step))[0]
    else:
        for r in static(range(count)):
            for e in static(range(P.each)):
                if channels > static(r * ROWS) and left > e:
                    one = u32(x[first + static(r * ROWS) * step + e])
                    found[r] = found[r] | one << static(16 * e)
    return found


@native
def pack_channels(words: ptr[i64], *, P) -> void:
    """Words: channels of the input and of the output, places, tiles along both, the input's strides
    from image to image and from channel to channel."""
    channels, filled, places, tiles_c, tiles_p, image, step = [
        P.I(words[static(2 + k)]) for k in static(range(7))
    ]
    left = P.I(block())
    low_p = left % tiles_p * static(WARP * P.each)
    left = left // tiles_p
    low_c = left % tiles_c * CHANNELS
    n = left // tiles_c
    out = device_pointer(P.unit, words[0]) + n * filled * places
    x = device_pointer(P.unit, words[1]) + n * image
    tile = shared(u32, static(CHANNELS * PITCH))
    lane, row = P.I(thread()) % WARP, P.I(thread()) // WARP
    p = low_p + lane * static(P.each)
    first = (low_c + row) * step + p
    found = read_words(P, x, first, step, channels - low_c - row, places - p)
    for r in static(range(CHANNELS // ROWS)):
        tile[(row + static(r * ROWS)) * PITCH + lane] = found[r]
    barrier()
    for r in static(range(0, WARP, ROWS)):
        column = row + r
        if P.each == 1:
            for c in static(range(0, CHANNELS, WARP)):
                if low_p + column < places and low_c + lane + c < filled:
                    at = (low_p + column) * filled + low_c + lane + c
                    out[at] = tile[(lane + c) * PITCH + column]
        else:
            one, other = tile[lane * 2 * PITCH + column], tile[(lane * 2 + 1) * PITCH + column]
            q = low_p + column * 2
            at = q * filled + low_c + lane * 2
            if low_c + lane * 2 < filled:
                if q < places:
                    ptr[u32](out + at)[0] = one & 0xFFFF | other << 16
                if q + 1 < places:
                    ptr[u32](out + (at + filled))[0] = one >> 16 | other & 0xFFFF0000


def packing_step(out: Layout, x: Layout) -> GridStep | None:
    """The kernel that copies images to a layout in one piece, whose channels (an even number, of
    which the last may be of no image) lie together. None where the images' places do not."""
    sizes, (strides,) = collapse(x.shape[2:], [x.strides[2:]])
    if out.itemsize not in (2, 4) or tuple(strides) != (1,):
        return None
    (places,) = sizes
    count, channels, filled = x.shape[0], x.shape[1], out.shape[1]
    even = not any(s % 2 for s in (places, x.strides[0], x.strides[1]))
    index = index_type((out, x), out.numel)
    key = out.dtype, index, even
    template = kept(_templates, key, lambda _: ChannelsGrid(out, x, index, even), MOST_KEPT)
    tiles = -(-filled // CHANNELS), -(-places // (WARP * template.each))
    words = channels, filled, places, *tiles, x.strides[0], x.strides[1]
    blocks = blocks_for(count * tiles[0] * tiles[1], 1)
    return GridStep(pack_channels, {"P": template}, blocks, THREADS, (0, 1), words)


_templates: dict[Any, ChannelsGrid] = {}
