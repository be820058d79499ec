"""Random numbers by counting, for devices that draw in parallel: Philox4x32-10.

A block of four words is a function of a counter of 128 bits and a key of 64 (J. Salmon, M. Moraes,
R. Dror, D. Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011). As in PyTorch for CUDA the
key is the seed; the counter's low half is a quarter of the generator's offset plus the number of
the block, its high half the *lane* that draws. A generator is the seed and the offset; a draw takes
both along and moves the offset past the blocks that it uses.

PyTorch's lanes are the threads of its grid, so its numbers depend on the GPU. Here there are always
LANES, those of a GPU with 132 multiprocessors of 2048 threads (H100). Number k of a draw comes from
lane k % LANES: its first blocks give the numbers k // LANES = 0, 1, ..., four of 32 bits each, or
two of 64. So it depends on the seed, the offset and k, and on nothing else.
"""

from __future__ import annotations

import os
import struct
import threading
from typing import TYPE_CHECKING, Any

from antorcha.core.forks import held_over_forks
from antorcha.errors import RandomError
from antorcha.runtime.integer_bounds import bounds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antorcha.core.device import Device
    from antorcha.lang.kernels import Draw
    from antorcha.runtime.memory.layout import Layout

LANES = 132 * 2048
ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
KEY_STEPS = 0x9E3779B9, 0xBB67AE85
REJECTING = ("gamma", "poisson", "binomial")
WORD = 0xFFFFFFFF
WORDS = 4  # of a block; an offset counts words
STATE_BYTES = 16


def block_of(counter: Any, key: Any) -> tuple[Any, Any, Any, Any]:
    """The block of four counter words and two key words: numbers of Python, or arrays of uint64."""
    a, b, c, d = counter
    low, high = key
    for _ in range(ROUNDS):
        first, second = a * MULTIPLIERS[0], c * MULTIPLIERS[1]
        a, b, c, d = (
            (second >> 32) ^ b ^ low, second & WORD, (first >> 32) ^ d ^ high, first & WORD
        )  # fmt: skip
        low, high = (low + KEY_STEPS[0]) & WORD, (high + KEY_STEPS[1]) & WORD
    return a, b, c, d


def numbers_of_block(what: Draw, dtype_name: str) -> int:
    """How many numbers of a draw a block gives: 4 of 32 bits, or 2 of 64; 1 where a number may need
    more blocks, which differ in the counter's last word."""
    if what.distribution in REJECTING:
        return 1
    if what.distribution == "random":
        return 2 if bounds_of(dtype_name, *what.parameters)[2] else 4
    return 2 if dtype_name in ("float64", "complex128") else 4


def words_used(what: Draw, layout: Layout) -> int:
    """By how much a draw moves the offset."""
    count = layout.numel * (2 if layout.dtype.kind == "c" else 1)
    each = LANES * numbers_of_block(what, layout.dtype.name)
    return -(-count // each) * WORDS


class PhiloxGenerator:
    """A stream of random numbers that devices draw from, with PyTorch's seeds and states."""

    def __init__(self, seed: int) -> None:
        self.lock = held_over_forks(threading.Lock())
        self._seed = self._offset = 0
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> None:
        """Starts the stream that belongs to a seed; negative seeds count from 2**64 - 1 down."""
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise RandomError(f"manual_seed: {seed} is outside -2**63 to 2**64 - 1")
        with self.lock:
            self._seed = seed + (1 << 64) - 1 if seed < 0 else seed
            self._offset = 0

    def seed(self) -> int:
        """Seeds from the system's randomness; gives the seed (53 bits, as PyTorch's)."""
        seed = int.from_bytes(os.urandom(8), "little") & ((1 << 53) - 1)
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed that this stream started from."""
        return self._seed

    @property
    def offset(self) -> int:
        """How far the stream has come, in words of each lane."""
        return self._offset

    def get_state(self) -> bytes:
        """The seed and the offset, in the 16 bytes of PyTorch's CUDA generator."""
        with self.lock:
            return struct.pack("<2Q", self._seed, self._offset)

    def set_state(self, state: bytes) -> None:
        """Goes on from a saved state."""
        if len(state) != STATE_BYTES:
            raise RandomError(
                f"set_state: the state of a device's generator has {STATE_BYTES} bytes, not "
                f"{len(state)}"
            )
        seed, offset = struct.unpack("<2Q", state)
        if offset % WORDS:
            raise RandomError(f"set_state: an offset is a multiple of {WORDS}, not {offset}")
        with self.lock:
            self._seed, self._offset = seed, offset

    def take(self, words: int) -> tuple[int, int]:
        """The seed and the offset of a draw that uses so many words of each lane, both as integers
        with a sign, as launches take them."""
        with self.lock:
            seed, offset = self._seed, self._offset
            self._offset = (offset + words) % (1 << 64)
        return _signed(seed), _signed(offset)

    def rewind(self, offset: int) -> None:
        """Goes back to an offset: what was drawn since was noted, and is drawn later."""
        with self.lock:
            self._offset = offset % (1 << 64)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


# ---- the devices' default generators
_generators: dict[tuple[str, int], PhiloxGenerator] = {}
_seed: int | None = None
"""What every device's generator starts from that is made from now on; None: something random."""


def default(device: Device) -> PhiloxGenerator:
    """A device's generator of draws that name none, made when it is first asked for."""
    key = device.type, device.index or 0
    found = _generators.get(key)
    if found is None:
        made = PhiloxGenerator(_seed or 0)
        if _seed is None:
            made.seed()
        found = _generators.setdefault(key, made)
    return found


def seed_all(seed: int) -> None:
    """Seeds the default generators of all devices, those to come too."""
    global _seed
    for generator in list(_generators.values()):
        generator.manual_seed(seed)
    _seed = seed


States = tuple[int | None, dict[tuple[str, int], bytes]]


def get_states() -> States:
    """The states of all default generators, to compare and to put back."""
    return _seed, {key: generator.get_state() for key, generator in _generators.items()}


def set_states(states: States, devices: Sequence[Device] | None = None) -> None:
    """Puts the default generators back, of these devices or of all. Those made since start from
    the seed, if there is one."""
    global _seed
    _seed, before = states
    chosen = None if devices is None else [(d.type, d.index or 0) for d in devices]
    for key, generator in list(_generators.items()):
        if chosen is not None and key not in chosen:
            continue
        if key in before:
            generator.set_state(before[key])
        elif _seed is not None:
            generator.manual_seed(_seed)
