"""Layouts: how a tensor lies in its storage. Interned, so that one pointer says all of it.

A layout is (shape, strides, dtype, device); strides count elements. Tensors hold one and plans are
found by it. Identity is only a short cut: the table is bounded and flushed whole (with the plans,
see ``call.plan.flush``), after which two equal layouts may be two objects. Nothing may conclude
from ``a is not b`` that they differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antorcha.errors import MissingFeature, OutOfRange, ShapeError
from antorcha.shapes import Size, contiguous_strides, extent, is_contiguous, is_symbol, numel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antorcha.device import Device
    from antorcha.dtypes import dtype as DType

_MAX_BYTES = 1 << 62
_table: dict[tuple[object, ...], Layout] = {}
_families: dict[tuple[object, ...], object] = {}
_forms: dict[tuple[object, ...], Form] = {}


class Layout:
    """Shape, strides, dtype and device of a tensor, and what follows from them."""

    __slots__ = (
        "contiguous", "device", "dtype", "family", "form", "high", "itemsize", "low", "nbytes",
        "ndim", "numbers", "numel", "shape", "strides",
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
    form: object  # what it shares with those that differ in `numbers` only; None until `form_of`
    numbers: tuple[int, ...]  # the sizes, and the strides that do not follow, other than 0 and 1
    low: int  # lowest element touched, relative to the offset (0, strides being >= 0)
    high: int  # one past the highest element touched; 0 when there is none
    nbytes: int  # of a fresh storage that holds just this
    sparse = False  # is it the layout of a sparse tensor, which no kernel reads?

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
    try:
        found = _table.get(key)
    except TypeError:
        return _any_size(shape, strides, dtype, device)
    return _interned(key, _make(shape, strides, dtype, device)) if found is None else found


def _interned(key: tuple[object, ...], made: Layout) -> Layout:
    """Puts a new layout into the table, and its family into it."""
    if made.numel > 1 and made.strides == contiguous_strides(made.shape):
        made.family = family_of(made)
    _table[key] = made
    return made


def family_of(lay: Layout) -> object:
    """What a layout shares with all row-major ones of its dtype, device and number of dims."""
    kind = (lay.dtype, lay.device, lay.ndim)
    return _families.setdefault(kind, kind)


def _make(shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, device: Device) -> Layout:
    if dtype.code < 0:
        raise MissingFeature(
            f"tensors of {dtype} (quantized, or of few bits) are not supported: antorcha knows the "
            "dtype's name only"
        )
    made = Layout()
    made.shape, made.strides = Size(shape), tuple(strides)
    made.dtype, made.device = dtype, device
    made.numel, made.ndim, made.itemsize = numel(shape), len(shape), dtype.itemsize
    made.contiguous = is_contiguous(shape, strides)
    made.family = made.form = None
    low, high = extent(shape, strides)
    made.low, made.high = (low, high + 1) if made.numel else (0, 0)
    made.nbytes = made.high * made.itemsize
    if made.nbytes > _MAX_BYTES or low < 0:
        raise ShapeError(f"a tensor of shape {tuple(shape)} {dtype} is too large to address")
    return made


def _any_size(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, device: Device
) -> Layout:
    """The same with symbols among the sizes: known to their trace only."""
    sizes: tuple[Any, ...] = (*shape, *strides)
    trace = next((n.trace for n in sizes if is_symbol(n)), None)
    if trace is None:
        raise TypeError(f"a layout's sizes are ints, not {sizes}")
    key = (trace.key(shape), trace.key(strides), dtype, device)
    found: Layout | None = trace.layouts.get(key)
    if found is None:
        found = trace.layouts[key] = _make(shape, strides, dtype, device)
    return found


def from_parts(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, device: Device, numel: int,
    contiguous: bool, low: int, high: int,
) -> Layout:  # fmt: skip
    """What ``layout`` gives, where all that it would work out is known, and checked."""
    key = (shape, strides, dtype, device)
    found = _table.get(key)
    if found is not None:
        return found
    made = Layout()
    made.shape, made.strides = tuple.__new__(Size, shape), strides
    made.dtype, made.device = dtype, device
    made.numel, made.ndim, made.itemsize = numel, len(shape), dtype.itemsize
    made.contiguous, made.low, made.high = contiguous, low, high
    made.nbytes = high * made.itemsize
    made.family = made.form = None
    return _interned(key, made)


class Form:
    """What layouts share that differ in their `numbers` only. Compared by identity."""

    __slots__ = ("device", "dtype", "row_major", "shape", "strides")

    def __init__(self, lay: Layout, row_major: bool) -> None:
        self.dtype, self.device, self.row_major = lay.dtype, lay.device, row_major
        self.shape = tuple([n if n < 2 else -1 for n in lay.shape])
        self.strides = tuple([n if n < 2 else -1 for n in lay.strides])

    def layout(self, numbers: Iterator[Any]) -> Layout:
        """The layout of this form that has these numbers, or symbols."""
        shape = tuple([next(numbers) if n == -1 else n for n in self.shape])
        if self.row_major:
            return contiguous(shape, self.dtype, self.device)
        strides = tuple([next(numbers) if n == -1 else n for n in self.strides])
        return layout(shape, strides, self.dtype, self.device)


def form_of(lay: Layout) -> Any:
    """A layout's form; its `numbers` are set from now on, too. Sizes and strides of 0 and 1 are
    part of the form: too much depends on them."""
    if lay.form is None:
        shape, strides = lay.shape, lay.strides
        row_major = strides == contiguous_strides(shape)
        numbers = [n for n in shape if n > 1]
        kind: tuple[object, ...] = (lay.dtype, lay.device, tuple([min(n, 2) for n in shape]))
        if not row_major:
            numbers += [n for n in strides if n > 1]
            kind = (*kind, tuple([min(n, 2) for n in strides]))
        found = _forms.get(kind)
        if found is None:
            found = _forms[kind] = Form(lay, row_major)
        lay.numbers, lay.form = tuple(numbers), found
    return lay.form


def contiguous(shape: tuple[int, ...], dtype: DType, device: Device) -> Layout:
    """The row-major layout of that shape."""
    key = (shape, dtype, device)
    try:
        found = _table.get(key)
    except TypeError:  # sizes that may be any
        return _any_size(shape, contiguous_strides(shape), dtype, device)
    if found is None:
        found = _table[key] = layout(shape, contiguous_strides(shape), dtype, device)
    return found


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
    _forms.clear()
