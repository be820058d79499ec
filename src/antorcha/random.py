"""``torch.random``: seeds, generators and their states.

The CPU's default generator is the one every draw without ``generator=`` uses. Its state is a
ByteTensor of 5056 bytes, as PyTorch's: states may be exchanged with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from antorcha.core import dtypes
from antorcha.core.device import CPU, Device, as_device
from antorcha.core.lazy import np
from antorcha.errors import ArgumentError, ShapeError, explain_missing
from antorcha.ops.kinds.record import T
from antorcha.ops.memory import constant
from antorcha.runtime import random as runtime
from antorcha.runtime.tensor import Tensor


class Generator(runtime.Generator):
    """A stream of random numbers: hand it to a draw as ``generator=``.

    >>> g = torch.Generator().manual_seed(0)
    >>> torch.rand(2, generator=g)
    tensor([0.4963, 0.7682])
    """

    def __init__(self, device: Any = "cpu") -> None:
        place = as_device(device)
        if place.type != "cpu":
            raise ShapeError(f"Generator: there is no generator on device {place} yet; use 'cpu'")
        self.device: Device = place
        super().__init__()

    def get_state(self) -> Any:
        """The state: a tensor of 5056 bytes."""
        return constant(np.frombuffer(super().get_state(), np.uint8), CPU)

    def set_state(self, state: Any) -> None:
        """Goes on from a state that ``get_state`` gave, here or in PyTorch."""
        if isinstance(state, Tensor):
            state = _bytes_of(state)
            if len(state) != runtime.STATE_BYTES:
                raise ShapeError(
                    f"set_state: a CPU generator's state has {runtime.STATE_BYTES} bytes, but this "
                    f"one has {len(state)}"
                )
        super().set_state(state)

    def clone_state(self) -> Generator:
        """A generator that will draw the same numbers."""
        return self.clone()

    def clone(self) -> Generator:
        """A generator that will draw the same numbers."""
        other = Generator(self.device)
        other.set_state(self.get_state())
        return other

    def __reduce__(self) -> Any:
        return _restore, (bytes(_bytes_of(self.get_state())),)

    def __setstate__(self, state: Any) -> None:
        """Goes on from what PyTorch pickles: seed, offset, state."""
        _, _, numbers = state
        self.set_state(numbers)


def _restore(state: bytes) -> Generator:
    result = Generator()
    result.set_state(state)
    return result


def _bytes_of(state: Any) -> bytes:
    if not isinstance(state, Tensor) or state._layout.dtype is not dtypes.uint8:
        raise ArgumentError("RNG state must be a torch.ByteTensor (dtype uint8, on the CPU)")
    whole = T.contiguous(state)
    array: Any = whole.numpy()
    return array.tobytes()  # type: ignore[no-any-return]


default_generator = Generator()
default_generator.share(runtime.default_generator)  # whose state machine code knows
runtime.default_generator = default_generator  # the one that every draw finds


def manual_seed(seed: int) -> Generator:
    """Starts the default generator's stream that belongs to ``seed``; gives the generator.

    >>> torch.manual_seed(42).initial_seed()
    42
    """
    default_generator.manual_seed(seed)
    return default_generator


def seed() -> int:
    """Seeds the default generator from the system's randomness; gives the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator's stream started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """The default generator's state, as a ByteTensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Puts the default generator into a state that ``get_rng_state`` gave."""
    default_generator.set_state(_bytes_of(new_state))


@contextlib.contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, _caller: str = "fork_rng",
    _devices_kw: str = "devices", device_type: str | None = None,
) -> Iterator[None]:  # fmt: skip
    """What is drawn inside leaves no trace: the state is put back at the end.

    >>> with torch.random.fork_rng():
    ...     _ = torch.manual_seed(0)
    ...     x = torch.rand(2)

    ``enabled=False`` and ``device_type="meta"`` do nothing. ``devices`` name GPUs, of which there
    are none.
    """
    if not enabled or device_type == "meta":
        yield
        return
    before = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(before)


def thread_safe_generator() -> Generator | None:
    """The generator of the DataLoader's thread that calls; None elsewhere, which stands for the
    default one. (Workers are processes here.)"""
    return None


__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
           "set_rng_state", "thread_safe_generator"]  # fmt: skip

explain_missing("torch.random", globals())
