"""What no template covers, computed by NumPy on copies in the host's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha.devices.numpy_semantics.host import cast_array, computes, results_of
from antorcha.lang.kernels import Description, Launch, MatMul, Reduce, is_dynamic
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage

noted: dict[str, str] = {}
"""The kinds of descriptions that were left to the host since somebody cleared this, and why."""


def compile_on_host(
    device: Any, what: Description, outs: Sequence[Layout], ins: Sequence[Any], why: str = ""
) -> Launch:
    """A launch that copies the inputs to the host, computes, and copies the results back.
    ``device``: a backend with ``to_host``, ``from_host`` and ``write``."""
    noted[type(what).__name__] = why
    compute = computes(what, outs, ins)
    if isinstance(what, Reduce):
        outs = results_of(what, outs)

    def read(flat: Sequence[Any]) -> list[Any]:
        values: list[Any] = []
        at = 0
        for each in ins:
            if isinstance(each, Layout):
                array = device.to_host(each, flat[at], flat[at + 1])
                values.append(in_strides_of(each, array) if type(what) is MatMul else array)
                at += 2
            else:
                values.append(flat[at])
                at += 1
        return values

    def into(*flat: Any) -> None:
        results = compute(read(flat[2 * len(outs) :]))
        for k, (layout, result) in enumerate(zip(outs, results, strict=True)):
            with np.errstate(all="ignore"):
                array = cast_array(np.asarray(result), layout.dtype.np)
            device.write(array, layout, flat[2 * k], flat[2 * k + 1])

    def fresh(*flat: Any) -> Storage:
        storage: Storage = device.allocate(outs[0].nbytes)
        into(storage, 0, *flat)
        return storage

    def fresh_of_any_size(*flat: Any) -> list[tuple[Layout, Storage]]:
        found = []
        for layout, result in zip(outs, compute(read(flat)), strict=True):
            array = np.asarray(result)
            out = L.contiguous(array.shape, layout.dtype, layout.device)
            found.append((out, device.from_host(array, out)))
        return found

    return Launch(fresh_of_any_size if is_dynamic(what) else fresh, into)


def in_strides_of(layout: Layout, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements in memory with the layout's strides: a product sees its operands' memory through
    strides of its own."""
    if not layout.numel:
        return array
    size = layout.itemsize
    room = np.zeros(layout.high - layout.low, array.dtype)
    steps = tuple([s * size for s in layout.strides])
    result = np.ndarray(tuple(layout.shape), array.dtype, room, -layout.low * size, steps)
    result[...] = array
    return result
