"""Layouts: how a tensor lies in its storage. Interned, so that one pointer says all of it.

A layout is (shape, strides, dtype, device); strides count elements. Tensors hold one and plans are
found by it. Identity is only a short cut: the table is bounded and flushed whole (with the plans,
see ``call.plan.flush``), after which two equal layouts may be two objects. Nothing may conclude
from ``a is not b`` that they differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antorcha.errors import OutOfRange, ShapeError
from antorcha.shapes import Size, contiguous_strides, extent, is_contiguous, numel

if TYPE_CHECKING:
    from antorcha.device import Device
    from antorcha.dtypes import dtype as DType

_MAX_BYTES = 1 << 62
_table: dict[tuple[object, ...], Layout] = {}
_families: dict[tuple[object, ...], object] = {}


class Layout:
    """Shape, strides, dtype and device of a tensor, and what follows from them."""

    __slots__ = (
        "contiguous", "device", "dtype", "family", "high", "itemsize", "low", "nbytes", "ndim",
        "numel", "shape", "strides",
    )  # fmt: skip
    shape: Size
    strides: tuple[int, ...]
    dtype: DType
    device: Device
    numel: int
    ndim: int
    itemsize: int
    contiguous: bool
    family: object  # of two elements and more in row-major order: what all such share, or None
    low: int  # lowest element touched, relative to the offset (0, strides being >= 0)
    high: int  # one past the highest element touched; 0 when there is none
    nbytes: int  # of a fresh storage that holds just this

    def __repr__(self) -> str:
        return f"Layout({tuple(self.shape)}, {self.strides}, {self.dtype}, {self.device})"

    def like(
        self,
        shape: tuple[int, ...] | None = None,
        strides: tuple[int, ...] | None = None,
        dtype: DType | None = None,
        device: Device | None = None,
    ) -> Layout:
        """This layout with some of its parts replaced; a new shape alone is contiguous."""
        if strides is None:
            strides = self.strides if shape is None else contiguous_strides(shape)
        return layout(
            self.shape if shape is None else shape, strides, dtype or self.dtype,
            device or self.device,
        )  # fmt: skip


def layout(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, device: Device
) -> Layout:
    """The one layout with these parts."""
    key = (shape, strides, dtype, device)
    found = _table.get(key)
    return found if found is not None else _make(key, shape, strides, dtype, device)


def _make(
    key: tuple[object, ...], shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType,
    device: Device,
) -> Layout:  # fmt: skip
    made = Layout()
    made.shape, made.strides = Size(shape), tuple(strides)
    made.dtype, made.device = dtype, device
    made.numel, made.ndim, made.itemsize = numel(shape), len(shape), dtype.itemsize
    made.contiguous = is_contiguous(shape, strides)
    made.family = None
    if made.numel > 1 and strides == contiguous_strides(shape):
        kind = (dtype, device, made.ndim)
        made.family = _families.setdefault(kind, kind)
    low, high = extent(shape, strides)
    made.low, made.high = (low, high + 1) if made.numel else (0, 0)
    made.nbytes = made.high * made.itemsize
    if made.nbytes > _MAX_BYTES or low < 0:
        raise ShapeError(f"a tensor of shape {tuple(shape)} {dtype} is too large to address")
    _table[key] = made
    return made


def contiguous(shape: tuple[int, ...], dtype: DType, device: Device) -> Layout:
    """The row-major layout of that shape."""
    return layout(shape, contiguous_strides(shape), dtype, device)


def same(a: Layout, b: Layout) -> bool:
    """Whether two layouts say the same (they need not be the same object after a flush)."""
    return a is b or (
        a.shape == b.shape and a.strides == b.strides and a.dtype is b.dtype
        and a.device is b.device
    )  # fmt: skip


def check_inside(lay: Layout, nbytes: int, offset: int) -> None:
    """Refuses what reaches outside of a storage of so many bytes (it may have been resized)."""
    size = lay.itemsize
    if lay.numel and not (offset + lay.low >= 0 and (offset + lay.high) * size <= nbytes):
        raise OutOfRange(
            f"a tensor of shape {tuple(lay.shape)} at offset {offset} lies outside its storage: it "
            f"reaches bytes {(offset + lay.low) * size} to {(offset + lay.high) * size} of {nbytes}"
        )


def table_size() -> int:
    return len(_table)


def flush_table() -> None:
    """Forgets all; called by ``call.plan.flush`` only, which forgets the plans too."""
    _table.clear()
