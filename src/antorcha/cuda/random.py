"""``torch.cuda.random``: the state of each GPU's generator.

A generator's state is a seed and an offset, how many numbers it has given (Philox4x32-10 counts
them). ``states`` holds them; samplers on GPUs read and move them on.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from antorcha.core import dtypes
from antorcha.core.device import CPU
from antorcha.core.lazy import np
from antorcha.cuda.devices import current_device, device_count, index_of, is_available
from antorcha.errors import GraphError
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import from_array

DEFAULT_SEED = 67280421310721  # PyTorch's
STATE_BYTES = 16
_MASK = (1 << 64) - 1


class PhiloxState:
    """A generator's seed, and how many numbers it has given."""

    def __init__(self) -> None:
        self.seed, self.offset = DEFAULT_SEED, 0


states: dict[int, PhiloxState] = {}
"""Of each GPU, by its number; one that is not here begins with the default seed."""


def state_of(index: int) -> PhiloxState:
    """A GPU's generator."""
    return states.setdefault(index, PhiloxState())


def manual_seed(seed: int) -> None:
    """Seeds the current GPU's generator; nothing to do without one."""
    if is_available():
        _seed(current_device(), seed)


def manual_seed_all(seed: int) -> None:
    """Seeds every GPU's generator; nothing to do without one."""
    for index in range(device_count()):
        _seed(index, seed)


def _seed(index: int, seed: int) -> None:
    state = state_of(index)
    state.seed, state.offset = int(seed) & _MASK, 0


def seed() -> None:
    """Seeds the current GPU's generator with a number that nobody knows."""
    manual_seed(secrets.randbits(63))


def seed_all() -> None:
    """Seeds every GPU's generator with one number that nobody knows."""
    manual_seed_all(secrets.randbits(63))


def initial_seed() -> int:
    """The number that the current GPU's generator was seeded with."""
    return state_of(current_device()).seed


def get_rng_state(device: Any = "cuda") -> Tensor:
    """A GPU's generator as a tensor of 16 bytes on the CPU."""
    state = state_of(index_of(device))
    array = np.array([state.seed, state.offset], np.uint64).view(np.uint8)
    return from_array(array, dtypes.uint8, CPU)


def get_rng_state_all() -> list[Tensor]:
    """Each GPU's; none without one."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Sets a GPU's generator to what ``get_rng_state`` gave."""
    index = index_of(device)
    words = np.array(new_state.tolist(), np.uint8)
    if new_state.dtype is not dtypes.uint8 or words.size not in (8, STATE_BYTES):
        raise GraphError("RNG state is wrong size: it is a uint8 tensor of 16 bytes, on the CPU")
    numbers = words.view(np.uint64).tolist()
    state = state_of(index)
    state.seed, state.offset = numbers[0], numbers[1] if len(numbers) > 1 else 0


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Sets each GPU's."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
