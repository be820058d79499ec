"""``torch.random``: seeds, generators and their states.

Each device has a default generator, which every draw there without ``generator=`` uses. The CPU's
is a Mersenne Twister, with a state of 5056 bytes; devices that draw in parallel count (Philox), and
have one of 16. States are ByteTensors, as PyTorch's: they may be exchanged with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from antorcha.core import dtypes
from antorcha.core.device import CPU, Device, as_device, backend
from antorcha.core.lazy import np
from antorcha.errors import ArgumentError, ShapeError, explain_missing
from antorcha.ops.kinds.record import T
from antorcha.ops.memory import constant
from antorcha.runtime import philox
from antorcha.runtime import random as runtime
from antorcha.runtime.tensor import Tensor


class Generator(runtime.Generator):
    """A stream of random numbers: hand it to a draw as ``generator=``.

    >>> g = torch.Generator().manual_seed(0)
    >>> torch.rand(2, generator=g)
    tensor([0.4963, 0.7682])
    """

    device: Device
    stream: Any = None  # what a device that draws by counting draws from

    def __new__(cls, device: Any = "cpu") -> Generator:
        chosen = cls if as_device(device) is CPU or cls is not Generator else DeviceGenerator
        return object.__new__(chosen)

    def __init__(self, device: Any = "cpu") -> None:
        self.device = as_device(device)
        if self.device is not CPU:
            raise ShapeError(f"Generator: this class is the CPU's, not device {self.device}'s")
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
        return _restore, (bytes(_bytes_of(self.get_state())), str(self.device))

    def __setstate__(self, state: Any) -> None:
        """Goes on from what PyTorch pickles: seed, offset, state."""
        _, _, numbers = state
        self.set_state(numbers)


class DeviceGenerator(Generator):
    """A ``Generator`` of a device that draws by counting: a seed, and an offset that draws move."""

    def __init__(self, device: Any = "cpu") -> None:
        self.device = place = as_device(device)
        if not _draws_by_counting(place):
            raise ShapeError(f"Generator: there is no generator on device {place} yet; use 'cpu'")
        self.stream = philox.PhiloxGenerator(runtime.DEFAULT_SEED)

    def manual_seed(self, seed: int) -> DeviceGenerator:
        """Starts the stream that belongs to ``seed``."""
        self.stream.manual_seed(seed)
        return self

    def seed(self) -> int:
        """Seeds from the system's randomness; gives the seed."""
        return self.stream.seed()  # type: ignore[no-any-return]

    def initial_seed(self) -> int:
        """The seed that this stream started from."""
        return self.stream.initial_seed()  # type: ignore[no-any-return]

    def get_state(self) -> Any:
        """The state: a tensor of 16 bytes, the seed and the offset."""
        return constant(np.frombuffer(self.stream.get_state(), np.uint8), CPU)

    def set_state(self, state: Any) -> None:
        """Goes on from a state that ``get_state`` gave, here or in PyTorch for CUDA."""
        self.stream.set_state(_bytes_of(state) if isinstance(state, Tensor) else bytes(state))


def _draws_by_counting(place: Device) -> bool:
    """Is there such a device, whose kernels draw?"""
    try:
        where = backend(place)
    except (AssertionError, RuntimeError):
        return False
    return not where.host_memory and where.name != "meta"


def _restore(state: bytes, device: str = "cpu") -> Generator:
    result = Generator(device)
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
    """Starts the streams of all devices' default generators that belong to ``seed``; gives the
    CPU's generator.

    >>> torch.manual_seed(42).initial_seed()
    42
    """
    default_generator.manual_seed(seed)
    philox.seed_all(seed)
    return default_generator


def seed() -> int:
    """Seeds the default generators from the system's randomness; gives the seed."""
    chosen = default_generator.seed()
    philox.seed_all(chosen)
    return chosen


def initial_seed() -> int:
    """The seed that the default generator's stream started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """The default generator's state, as a ByteTensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Puts the default generator into a state that ``get_rng_state`` gave."""
    default_generator.set_state(_bytes_of(new_state))


def get_all_states() -> Any:
    """The states of all devices' default generators, to compare and to put back."""
    return runtime.Generator.get_state(default_generator), philox.get_states()


def set_all_states(states: Any) -> None:
    """Puts all devices' default generators into states that ``get_all_states`` gave."""
    default_generator.set_state(states[0])
    philox.set_states(states[1])


@contextlib.contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, _caller: str = "fork_rng",
    _devices_kw: str = "devices", device_type: str | None = None,
) -> Iterator[None]:  # fmt: skip
    """What is drawn inside leaves no trace: the states are put back at the end.

    >>> with torch.random.fork_rng():
    ...     _ = torch.manual_seed(0)
    ...     x = torch.rand(2)

    ``enabled=False`` and ``device_type="meta"`` do nothing. ``devices`` are those whose generators
    are put back beside the CPU's, as devices or as numbers of the ``device_type``; by default all.
    """
    if not enabled or device_type == "meta":
        yield
        return
    before = get_all_states()
    try:
        yield
    finally:
        default_generator.set_state(before[0])
        chosen = None if devices is None else [_device_of(d, device_type) for d in devices]
        philox.set_states(before[1], chosen)


def _device_of(named: Any, device_type: str | None) -> Device:
    """A device of ``fork_rng``: a number is one of the type."""
    return Device(device_type or "cuda", named) if isinstance(named, int) else as_device(named)


def thread_safe_generator() -> Generator | None:
    """The generator of the DataLoader's thread that calls; None elsewhere, which stands for the
    default one. (Workers are processes here.)"""
    return None


__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
           "set_rng_state", "thread_safe_generator"]  # fmt: skip

explain_missing("torch.random", globals())
