"""Storages of the device: a flat array of MLX's that is replaced at every write.

MLX's arrays do not change. A storage's owner is an `MLXBuffer`, which holds the array that has the
storage's bytes now; a write makes another array and puts it there. All tensors over the storage,
and storages over parts of it, find the same buffer, so they see it. Strides stay ours: a tensor is
read by its strides over the flat array, and written by slices of it, or by a scatter.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha.core.dtypes import dtype
from antorcha.core.memo import keep
from antorcha.devices.mps.library import in_mlx, mx, note_written, running, to_mlx, to_numpy
from antorcha.errors import MissingFeature, OutOfRange
from antorcha.runtime.call import plan as plans
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage, wrap_elsewhere

FIRST_ADDRESS = 1 << 61
"""Addresses are names here: no process has memory there, so none is taken for memory."""
ALIGNED = 256
PADDED = 16  # bytes: the largest element

_next_address = FIRST_ADDRESS
_address_lock = threading.Lock()


class MLXBuffer:
    """The bytes of a storage, as the array of MLX's that has them now; None: never written."""

    __slots__ = ("__weakref__", "address", "array", "nbytes")

    def __init__(self, nbytes: int, array: Any = None) -> None:
        global _next_address
        with _address_lock:
            self.address = _next_address
            _next_address += -(-(nbytes + 1) // ALIGNED) * ALIGNED
        self.nbytes = nbytes
        self.array = array

    def flat(self, kind: Any) -> Any:
        """The bytes as elements of an MLX dtype, in one dim."""
        if self.array is None:
            return mx.zeros((-(-self.nbytes // kind.size),), kind)
        if self.array.dtype == kind:
            return self.array
        if self.array.nbytes % kind.size:
            count = PADDED - self.array.nbytes % PADDED
            tail = mx.zeros((count,), mx.uint8)
            return mx.concatenate([self.array.view(mx.uint8), tail]).view(kind)
        return self.array.view(kind)

    def replace(self, array: Any) -> None:
        """Puts other bytes in the place of what was there."""
        self.array = array
        note_written(self)


def new_storage(nbytes: int, array: Any = None) -> Storage:
    """A storage on the device, with a flat array's bytes, or not written yet (zeros)."""
    buffer = MLXBuffer(nbytes, array)
    return wrap_elsewhere(buffer.address, nbytes, buffer)


def buffer_of(storage: Storage) -> MLXBuffer:
    """The buffer that a storage lies in, whole or as a part."""
    owner = storage.owner
    while not isinstance(owner, MLXBuffer):
        owner = owner.owner
    return owner


def start_of(buffer: MLXBuffer, storage: Storage, offset: int, size: int) -> int:
    """Where an element of a storage is in its buffer, in elements of that size."""
    start, rest = divmod(storage.ptr - buffer.address, size)
    if rest:
        raise MissingFeature(
            f"mps: a view of elements of {size} bytes must begin at a multiple of {size} bytes"
        )
    return start + offset


def check_inside(layout: Layout, storage: Storage, offset: int) -> None:
    """OutOfRange for a tensor that reaches out of its storage."""
    size = layout.itemsize
    low, high = (offset + layout.low) * size, (offset + layout.high) * size
    if layout.numel and not 0 <= low <= high <= storage.nbytes:
        raise OutOfRange(
            f"a tensor of shape {tuple(layout.shape)} lies outside its storage: it reaches bytes "
            f"{low} to {high} of {storage.nbytes}"
        )


# ---- reading
def read(layout: Layout, storage: Storage, offset: int) -> Any:
    """A tensor's elements as an array of its shape."""
    check_inside(layout, storage, offset)
    return read_strided(layout.dtype, layout.shape, layout.strides, storage, offset)


def read_strided(
    t: dtype, shape: Sequence[int], strides: Sequence[int], storage: Storage, offset: int
) -> Any:
    """The elements that strides lead to from an offset."""
    kind = in_mlx(t)
    form = form_of(tuple(shape), tuple(strides))
    if not form.numel:
        return mx.zeros(form.shape, kind)
    buffer = buffer_of(storage)
    flat = buffer.flat(kind)
    start = start_of(buffer, storage, offset, kind.size)
    if form.order is None:
        return mx.as_strided(mx.contiguous(flat), form.shape, form.strides, start)
    if start or flat.size != form.numel:
        flat = flat[start : start + form.numel]
    if form.straight:
        return flat.reshape(form.shape)
    return flat.reshape(form.sizes).transpose(form.back)


class MemoryForm:
    """How a tensor lies, as reading and writing need it. ``order``: its dims from the outermost in
    memory, if it fills a piece of memory without gaps, else None."""

    __slots__ = ("back", "numel", "order", "shape", "sizes", "straight", "strides")

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.shape, self.strides = shape, strides
        self.numel = int(np.prod(shape, dtype=np.int64))
        order = sorted(range(len(shape)), key=lambda d: (shape[d] != 1, -strides[d]))
        expected = 1
        dense = True
        for d in reversed(order):
            dense = dense and (shape[d] == 1 or strides[d] == expected)
            expected *= shape[d]
        self.order = tuple(order) if dense else None
        of_size = [d for d in order if shape[d] != 1]
        self.straight = dense and of_size == sorted(of_size)
        self.sizes = tuple([shape[d] for d in order])
        self.back = tuple(int(k) for k in np.argsort(order))


def form_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> MemoryForm:
    """The MemoryForm of a shape and strides."""
    found = _forms.get((shape, strides))
    if found is None:
        found = MemoryForm(shape, strides)
        keep(_forms, (shape, strides), found, MOST_KNOWN)
    return found


_forms: dict[Any, MemoryForm] = {}
plans.on_flush(_forms.clear)
MOST_KNOWN = 4096


# ---- writing
def write(value: Any, layout: Layout, storage: Storage, offset: int) -> None:
    """Puts an array of the layout's dtype (and of a shape that broadcasts to the layout's) where a
    tensor lies."""
    check_inside(layout, storage, offset)
    if not layout.numel:
        return
    buffer = buffer_of(storage)
    kind = in_mlx(layout.dtype)
    start = start_of(buffer, storage, offset, kind.size)
    form = form_of(tuple(layout.shape), tuple(layout.strides))
    if tuple(value.shape) != form.shape:
        value = mx.broadcast_to(value, form.shape)
    if form.order is None:
        buffer.replace(_scattered(buffer.flat(kind), form, start, value))
        return
    if not form.straight:
        value = value.transpose(form.order)
    value = value.reshape(-1)
    if value.nbytes >= buffer.nbytes:
        buffer.replace(value)
        return
    flat = buffer.flat(kind)[:]  # (assigning changes what a Python object stands for: another one)
    flat[start : start + form.numel] = value
    buffer.replace(flat)


def _scattered(flat: Any, form: MemoryForm, start: int, value: Any) -> Any:
    """The flat array with a strided tensor's elements replaced."""
    reach = start + sum([(n - 1) * s for n, s in zip(form.shape, form.strides, strict=True)])
    kind = mx.int32 if reach < 1 << 31 else mx.int64
    places: Any = mx.array(start, kind)
    for d, (n, stride) in enumerate(zip(form.shape, form.strides, strict=True)):
        if n > 1 and stride:
            steps = (mx.arange(n, dtype=kind) * mx.array(stride, kind)).reshape(
                (n, *[1] * (len(form.shape) - d - 1))
            )
            places = places + steps
        elif n > 1:  # (where elements share a place, the last is kept)
            value = mx.take(value, mx.array([n - 1]), d)
    places = mx.broadcast_to(places, value.shape).reshape(-1)
    return replaced_at(flat, places, value.reshape(-1))


def replaced_at(flat: Any, places: Any, values: Any) -> Any:
    """The flat array with other values at different places."""
    if flat.dtype.size == 8:  # (Metal scatters elements of at most four bytes)
        pairs = flat.view(mx.uint32).reshape(-1, 2)[:]
        pairs[places] = values.view(mx.uint32).reshape(-1, 2)
        return pairs.reshape(-1).view(flat.dtype)
    flat = flat[:]
    flat[places] = values
    return flat


# ---- from and to the host
def from_host(array: np.ndarray[Any, Any], out: Layout) -> Storage:
    """A storage with a copy of an array, as a tensor of that layout."""
    in_mlx(out.dtype)  # (TypeError for what there is not)
    form = form_of(tuple(out.shape), tuple(out.strides))
    array = np.broadcast_to(np.asarray(array, out.dtype.np), form.shape)
    if form.order is not None:
        flat = np.ascontiguousarray(array.transpose(form.order)).reshape(-1)
    else:
        flat = np.zeros(out.high, out.dtype.np)
        steps = tuple([s * out.itemsize for s in out.strides])
        np.ndarray(form.shape, out.dtype.np, flat, 0, steps)[...] = array
    with running():
        return new_storage(out.nbytes, to_mlx(flat, out.dtype) if flat.size else None)


def to_host(layout: Layout, storage: Storage, offset: int) -> np.ndarray[Any, Any]:
    """A copy of a tensor's elements in the host's memory; waits for them."""
    with running():
        return to_numpy(read(layout, storage, offset), layout.dtype)


def write_from_host(array: Any, layout: Layout, storage: Storage, offset: int) -> None:
    """Copies an array of the host's to where a tensor lies."""
    with running():
        value = to_mlx(np.asarray(array, layout.dtype.np), layout.dtype)
        write(value, layout, storage, offset)
