"""Copies of whole tiles to shared memory, as a simulated block's threads have begun them."""

from __future__ import annotations

from antorcha.devices.sim.memory import reach
from antorcha.lang.native import bitcast, f32, i64, native, ptr, raw, static, u8, u32, u64, void
from antorcha.lang.native.bulk_copies import (
    ADDRESS,
    BOX,
    BYTES,
    MAP_BYTES,
    SIZE,
    SIZES,
    STRIDES,
    phase_ends,
)
from antorcha.lang.native.grid import MOST_TILES, GridThread
from antorcha.lang.native.tensor_cores import round_bits
from antorcha.lang.native.warpgroups import SWIZZLE, UNALIGNED


@native
def end_tiles(t: ptr[GridThread]) -> i64:
    """Does a thread's copies that are on their way; how many they were."""
    count = t.tiles_begun - t.tiles_done
    while t.tiles_done < t.tiles_begun:
        at = t.tiles_done % MOST_TILES * 6
        tensor = ptr[i64](reach(raw(t.tiles[at + 1]), MAP_BYTES))
        place = t.tiles[at] - i64(t.shared)
        copy_rows(t, place, tensor, t.tiles[at + 3], t.tiles[at + 4], t.tiles[at + 5])
        bar = ptr[u64](raw(t.tiles[at + 2]))
        nbytes = tensor[BOX] * tensor[BOX + 1] * tensor[SIZE]
        bar[0] = bar[0] - (u64(nbytes) << static(BYTES))
        phase_ends(bar)
        t.tiles_done += 1
    return count


@native
def copy_rows(t: ptr[GridThread], start: i64, tensor: ptr[i64], x: i64, y: i64, z: i64) -> void:
    """Copies the tile at three indices to where it begins in shared memory, swizzled."""
    size, wide, high = tensor[SIZE], tensor[BOX], tensor[BOX + 1]
    source = tensor[ADDRESS]
    if source % 16 != 0 or tensor[STRIDES] % 16 != 0 or start % static(8 * SWIZZLE) != 0:
        source = i64(UNALIGNED)
    if wide * size != SWIZZLE or tensor[STRIDES + 1] % 16 != 0:
        source = i64(UNALIGNED)
    for row in range(high):
        for column in range(wide):
            place = start + row * SWIZZLE + column * size
            place = place ^ (place >> 7 & 7) << 4
            inside = x + column < tensor[SIZES] and y + row < tensor[SIZES + 1]
            inside = inside and x + column >= 0 and y + row >= 0 and z < tensor[SIZES + 2]
            element = source + (x + column) * size + (y + row) * tensor[STRIDES]
            element += z * tensor[STRIDES + 1]
            to = ptr[u8](raw(i64(t.shared) + place))
            for k in range(size):
                to[k] = u8(0)
            if inside:
                there = ptr[u8](reach(raw(element), size))
                for k in range(size):
                    to[k] = there[k]
                if size == 4:
                    word = ptr[u32](raw(to))
                    word[0] = round_bits(bitcast(f32, word[0]))
