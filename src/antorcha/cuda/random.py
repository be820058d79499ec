"""``torch.cuda.random``: the state of each GPU's generator.

A generator's state is a seed and an offset, how far its stream has come (Philox4x32-10 counts).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from antorcha.core import dtypes
from antorcha.core.device import CPU, Device
from antorcha.core.lazy import np
from antorcha.cuda.devices import current_device, device_count, index_of, is_available
from antorcha.errors import GraphError
from antorcha.random import Generator
from antorcha.runtime import philox
from antorcha.runtime.philox import PhiloxGenerator
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import from_array


def stream_of(index: int) -> PhiloxGenerator:
    """A GPU's default generator, by the GPU's number."""
    return philox.default(Device("cuda", index))


def default_generators() -> tuple[Generator, ...]:
    """Each GPU's default generator, as an object; none without one."""
    found = []
    for index in range(device_count()):
        generator = Generator(Device("cuda", index))
        generator.stream = stream_of(index)
        found.append(generator)
    return tuple(found)


def manual_seed(seed: int) -> None:
    """Seeds the current GPU's generator; nothing to do without one."""
    if is_available():
        stream_of(current_device()).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds every GPU's generator; nothing to do without one."""
    for index in range(device_count()):
        stream_of(index).manual_seed(seed)


def seed() -> None:
    """Seeds the current GPU's generator with a number that nobody knows."""
    manual_seed(secrets.randbits(63))


def seed_all() -> None:
    """Seeds every GPU's generator with one number that nobody knows."""
    manual_seed_all(secrets.randbits(63))


def initial_seed() -> int:
    """The number that the current GPU's generator was seeded with."""
    return stream_of(current_device()).initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """A GPU's generator as a tensor of 16 bytes on the CPU."""
    array = np.frombuffer(stream_of(index_of(device)).get_state(), np.uint8)
    return from_array(array, dtypes.uint8, CPU)


def get_rng_state_all() -> list[Tensor]:
    """Each GPU's; none without one."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Sets a GPU's generator to what ``get_rng_state`` gave."""
    if new_state.dtype is not dtypes.uint8:
        raise GraphError("RNG state must be a torch.ByteTensor: a uint8 tensor on the CPU")
    stream_of(index_of(device)).set_state(bytes(new_state.tolist()))


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Sets each GPU's."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
