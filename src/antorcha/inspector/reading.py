"""Reading a tensor's elements for somebody who only looks: in small blocks, and nothing else.

Everything is asked of the device as a *block*: a layout over the tensor's own storage with steps
between its elements. In host memory a block is a view of what is there, so a gigabyte costs as
much as the few elements that are looked at. No op runs: nothing is recorded, no version moves, and
the mode of the thread plays no part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from antorcha.core import modes
from antorcha.core.device import backend
from antorcha.core.lazy import Array, lazy, np
from antorcha.core.shapes import extent
from antorcha.runtime.call import tape
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.runtime.memory import storage as S
    from antorcha.runtime.memory.layout import Layout
else:
    S = lazy("antorcha.runtime.memory.storage")

CHUNK = 8192  # elements that are converted at a time

META, FREED, ELSEWHERE = "meta", "freed", "elsewhere"
"""Why there are no values: no memory at all, less of it than the tensor needs, out of reach."""


class Gone(IndexError):
    """The storage has become too small since it was looked at: another thread has resized it."""


class Elements:
    """A tensor's place, read once: what another thread does to the tensor later changes nothing.

    ``why_not`` is empty, or says why there are no values.
    """

    def __init__(self, tensor: Tensor) -> None:
        if modes.busy:
            tape.spoil("contents are looked at")
        self.layout: Layout = tensor._layout
        self.storage: S.Storage = tensor._storage
        self.offset: int = tensor._offset
        self.why_not = self._why_not()

    def _why_not(self) -> str:
        if self.layout.device.type == "meta":
            return META
        if self.layout.numel and self.needed_bytes > self.storage.nbytes:
            return FREED
        try:
            backend(self.layout.device)
        except (RuntimeError, AssertionError):
            return ELSEWHERE
        return ""

    @property
    def needed_bytes(self) -> int:
        """How long the storage must be."""
        return (self.offset + self.layout.high) * self.layout.itemsize if self.layout.numel else 0

    @property
    def cells(self) -> int:
        """How many elements of the tensor's dtype the storage has room for."""
        return self.storage.nbytes // self.layout.itemsize

    def block(self, shape: Sequence[int], strides: Sequence[int], first: int) -> Array:
        """The cells ``first + sum(index * strides)``; raises Gone outside of the storage."""
        if 0 in shape:
            return np.empty(shape, self.layout.dtype.np)
        last = extent(shape, strides)[1] + 1
        if first + last > self.cells:
            raise Gone(f"cells {first}..{first + last} of {self.cells}")
        layout, where = self.layout, backend(self.layout.device)
        if where.host_memory:  # (no Layout: the table of them is for what the program computes)
            size = layout.itemsize
            bytewise = tuple([s * size for s in strides])
            try:
                return S.as_numpy(
                    self.storage, first * size, tuple(shape), bytewise, layout.dtype.np
                )
            except (TypeError, ValueError):  # NumPy's check, with the memory held in its place
                raise Gone(f"cells {first}..{first + last} of {self.cells}") from None
        wanted = L.layout(tuple(shape), tuple(strides), layout.dtype, layout.device)
        return where.to_host(wanted, self.storage, first)

    def run(self, first: int, count: int) -> Array:
        """Neighbouring cells of the storage."""
        return self.block((count,), (1,), first)

    def thinned(self, steps: Sequence[int], start: Sequence[int] = ()) -> Array:
        """Of each dim every ``steps``-th index, from ``start`` on."""
        layout = self.layout
        start = start or (0,) * layout.ndim
        shape = [-(-(n - s) // k) for n, s, k in zip(layout.shape, start, steps, strict=True)]
        strides = [s * k for s, k in zip(layout.strides, steps, strict=True)]
        first = self.offset + sum(s * k for s, k in zip(layout.strides, start, strict=True))
        return self.block(shape, strides, first)


def steps_for(shape: Sequence[int], limit: int) -> tuple[int, ...]:
    """One step per dim so that at most ``limit`` elements are left; long dims are thinned first.

    A step above 1 is odd: what repeats with a power of two is not met at one place only.

    >>> steps_for((4, 1000), 100)
    (1, 41)
    >>> steps_for((10, 10), 100)
    (1, 1)
    """
    low, high = 1, max(shape, default=1)
    while low < high:  # the longest length that all dims may keep
        middle = (low + high + 1) // 2
        if math.prod([min(n, middle) for n in shape]) <= limit:
            low = middle
        else:
            high = middle - 1
    steps = [1 if n <= low else -(-n // low) for n in shape]
    return tuple([k + 1 if k > 1 and k % 2 == 0 else k for k in steps])


def chunks(block: Array) -> Iterator[Array]:
    """The elements of a block as flat arrays of at most CHUNK, in the order of memory."""
    if not block.size:
        return
    flags = ["external_loop", "buffered", "zerosize_ok"]
    with np.nditer(block, flags=flags, order="K", buffersize=CHUNK) as walk:  # type: ignore[call-overload]
        yield from walk
