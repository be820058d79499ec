"""Where a draw goes. The function of a sampler's record gives what fills one of these.

In the host's memory samplers write to an address, with the Mersenne Twister. A device with memory
of its own gets descriptions, and the seed and offset of its generator (``runtime.philox``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from antorcha.core import dtypes
from antorcha.core.device import Device, backend
from antorcha.core.lazy import Array, lazy, np
from antorcha.core.memo import kept
from antorcha.core.shapes import broadcast_strides
from antorcha.core.symbols import Untold
from antorcha.errors import ArgumentError, MissingFeature, ShapeError
from antorcha.lang.kernels import Check, Draw, Launch
from antorcha.ops.kinds.record import T
from antorcha.runtime.call import plan as plans
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor, bare

if TYPE_CHECKING:
    from antorcha.runtime.memory.storage import Storage
    from antorcha.runtime.philox import PhiloxGenerator
    from antorcha.runtime.random import Generator

runtime = lazy("antorcha.runtime.random")
philox = lazy("antorcha.runtime.philox")
storages = lazy("antorcha.runtime.memory.storage")


def draws_by_counting(device: Device) -> bool:
    """Is it a device whose memory is its own, so that its kernels draw?"""
    where = backend(device)
    return not where.host_memory and where.name != "meta"


class MemoryTarget:
    """Where a draw goes: a layout over a storage, and the generator to draw from."""

    def __init__(
        self, name: str, layout: Layout, storage: Storage, offset: int, generator: Any,
        inplace: bool,
    ) -> None:  # fmt: skip
        self.name, self.layout, self.storage, self.offset = name, layout, storage, offset
        self.generator, self.inplace = generator, inplace

    def fill(self, distribution: str, *parameters: Any, kinds: str = "fc") -> None:
        """Fills it with numbers of a distribution, named as in a ``Draw``."""
        raise NotImplementedError

    def tensor(self) -> Tensor:
        """The target as a tensor, to compute on after a draw."""
        return bare(self.layout, self.storage, self.offset)

    def drawn(self, distribution: str, shape: Any, dtype: Any, *parameters: Any) -> Tensor:
        """A new tensor of numbers from the same generator."""
        layout = L.contiguous(tuple(shape), dtype, self.layout.device)
        storage = backend(layout.device).allocate(layout.nbytes)
        target = type(self)(self.name, layout, storage, 0, self.generator, False)
        target.fill(distribution, *parameters, kinds="fiub")
        return target.tensor()

    def write(self, values: Tensor) -> None:
        """Copies a tensor to the target."""
        T.copy_(self.tensor(), values)


class DrawTarget(MemoryTarget):
    """Where a draw goes in the host's memory."""

    on_host = True
    generator: Generator

    def array(self) -> Array:
        """The elements, to compute on after a draw."""
        return backend(self.layout.device).to_host(self.layout, self.storage, self.offset)

    def require(self, good: Any, refuse: Callable[[int], BaseException]) -> None:
        """Raises ``refuse(0)`` unless a flag is set."""
        if not good.item():
            raise refuse(0)

    def fill(self, distribution: str, *parameters: Any, kinds: str = "fc") -> None:
        """Fills it with numbers of a distribution, named as in a ``Draw``."""
        check_kind(self.name, self.layout, kinds)

        def sampler(address: int, count: int, name: str, contiguous: bool) -> None:
            runtime.fill(distribution, self.generator, address, count, name, parameters, contiguous)

        self._fill_memory(sampler)

    def fill_with(self, sampler: Callable[..., None], *args: Any, kinds: str = "fc") -> None:
        """Fills it with ``sampler(generator, address, count, dtype name, *args)``."""
        check_kind(self.name, self.layout, kinds)
        self._fill_memory(
            lambda address, count, name, _: sampler(self.generator, address, count, name, *args)
        )

    def _fill_memory(self, sampler: Callable[[int, int, str, bool], None]) -> None:
        layout = self.layout
        count, name = layout.numel, layout.dtype.name
        if count and layout.contiguous:
            address = self.storage.ptr + self.offset * layout.itemsize
            sampler(address, count, name, True)
            return
        side = np.empty(count, layout.dtype.np)
        sampler(side.ctypes.data, count, name, False)
        if count:
            order = memory_order(layout)
            target = np.transpose(self.array(), order)
            target[...] = side.reshape(target.shape)


class PlannedTarget:
    """Where a draw would go that is only planned: it takes one distribution."""

    on_host = True
    inplace = True

    def __init__(self, name: str, layout: Layout) -> None:
        self.name, self.layout = name, layout
        self.found: list[Draw] = []

    def array(self) -> Array:
        raise Untold("what was drawn is looked at")

    def fill(self, distribution: str, *parameters: Any, kinds: str = "fc") -> None:
        """Notes what is asked for."""
        check_kind(self.name, self.layout, kinds)
        self.found.append(Draw(distribution, parameters))

    def fill_with(self, *_: Any, **__: Any) -> None:
        raise Untold("Python draws it")

    def draw(self) -> Draw:
        """What was asked for."""
        if len(self.found) != 1:
            raise Untold("it is not one draw")
        return self.found[0]


class DeviceTarget(MemoryTarget):
    """Where a draw goes on a device that draws by counting."""

    on_host = False
    generator: PhiloxGenerator

    def fill(self, distribution: str, *parameters: Any, kinds: str = "fc") -> None:
        """Fills it with numbers of a distribution. A parameter may be a tensor, which broadcasts to
        the target."""
        layout = self.layout
        check_kind(self.name, layout, kinds)
        if layout.dtype.itemsize == 1 and layout.dtype.kind == "f":
            raise MissingFeature(f"{self.name} does not fill {layout.dtype}")
        tensors = [p for p in parameters if isinstance(p, Tensor)]
        numbers = tuple([None if isinstance(p, Tensor) else p for p in parameters])
        what = Draw(distribution, numbers)
        ins = [_expanded(p._layout, layout) for p in tensors]
        words = philox.words_used(what, layout)
        seed, offset = self.generator.take(words)
        hold = getattr(backend(layout.device), "held_state", None)
        held = None if hold is None else hold(self.generator, seed, offset, words)
        where, *state = (int, seed, offset) if held is None else held
        key = distribution, repr(numbers), layout, where, *ins
        launch = kept(_launches, key, lambda _: _compiled(what, layout, where, ins), MOST_LAUNCHES)
        if layout.numel:
            flat = [part for p in tensors for part in (p._storage, p._offset)]
            launch.into(self.storage, self.offset, *state, *flat)

    def require(self, good: Tensor, refuse: Callable[[int], BaseException]) -> None:
        """Stops what runs on the device unless a flag is set: ``refuse(0)`` is raised at once, or
        when the device is next waited for."""
        flag = L.contiguous((1,), dtypes.uint8, good._layout.device)
        launch = kept(_launches, (refuse, flag), lambda _: _stop(flag, refuse), MOST_LAUNCHES)
        launch.into(good._storage, good._offset)


_launches: dict[Any, Launch] = {}
MOST_LAUNCHES = 1024
plans.on_flush(_launches.clear)


def _compiled(what: Draw, layout: Layout, seed: Any, ins: list[Layout]) -> Launch:
    return backend(layout.device).compile(what, (layout,), (seed, int, *ins))


def _stop(flag: Layout, refuse: Callable[[int], BaseException]) -> Launch:
    return backend(flag.device).compile(Check(1, 2, refuse), (), (flag,))


def _expanded(layout: Layout, like: Layout) -> Layout:
    """A parameter's layout, with the target's shape."""
    return layout.like(like.shape, broadcast_strides(layout.shape, layout.strides, like.shape))


def check_kind(name: str, layout: Layout, kinds: str) -> None:
    """Refuses dtypes that a distribution has no numbers of."""
    if layout.dtype.kind not in kinds:
        raise MissingFeature.of_dtype(name, layout.dtype, "draw floats and cast them")


def check_place(name: str, layout: Layout, storage: Storage, offset: int) -> None:
    """Refuses memory that must not be written, or that does not hold the elements (any more): the
    samplers write to an address."""
    if storages.is_readonly(storage):
        raise ArgumentError(f"{name}: the tensor is over read-only memory; clone() it first")
    start, stop = (offset + layout.low) * layout.itemsize, (offset + layout.high) * layout.itemsize
    if layout.numel and (start < 0 or stop > storage.nbytes or not storage.ptr):
        raise ShapeError(
            f"{name}: a tensor of shape {tuple(layout.shape)} needs bytes {start} to {stop} of a "
            f"storage of {storage.nbytes} bytes"
        )


def memory_order(layout: Layout) -> list[int]:
    """The dims from the largest stride to the smallest."""
    return sorted(range(layout.ndim), key=lambda d: (-layout.strides[d], d))
