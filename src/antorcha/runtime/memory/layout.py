"""Layouts: how a tensor lies in its storage. Interned, so that one pointer says all of it.

A layout is (shape, strides, dtype, device); strides count elements. Tensors hold one and plans are
found by it. Identity is only a short cut: the table is bounded and flushed whole (with the plans,
see ``call.plan.flush``), after which two equal layouts may be two objects. Nothing may conclude
from ``a is not b`` that they differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from antorcha.core.hooks import hooks
from antorcha.core.shapes import Size, contiguous_strides, extent, is_contiguous, is_symbol, numel
from antorcha.errors import MissingFeature, OutOfRange, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antorcha.core.device import Device
    from antorcha.core.dtypes import dtype as DType

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


def _interned(key: tuple[object, ...], result: Layout) -> Layout:
    """Puts a new layout into the table, and its family into it; or the one that machine code, or
    another thread, has made of the same sizes meanwhile."""
    if result.numel > 1 and result.strides == contiguous_strides(result.shape):
        result.family = family_of(result)
    known = None if hooks.recent_layout is None else hooks.recent_layout(result)
    return _table.setdefault(key, result if known is None else known)


def family_of(layout: Layout) -> object:
    """What a layout shares with all row-major ones of its dtype, device and number of dims."""
    kind = (layout.dtype, layout.device, layout.ndim)
    return _families.setdefault(kind, kind)


def _make(shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, device: Device) -> Layout:
    if dtype.code < 0:
        raise MissingFeature(
            f"tensors of {dtype} (quantized, of few bits, or complex of halves) are not "
            "supported: antorcha knows the dtype's name only"
        )
    result = Layout()
    result.shape, result.strides = Size(shape), tuple(strides)
    result.dtype, result.device = dtype, device
    result.numel, result.ndim, result.itemsize = numel(shape), len(shape), dtype.itemsize
    result.contiguous = is_contiguous(shape, strides)
    result.family = result.form = None
    low, high = extent(shape, strides)
    result.low, result.high = (low, high + 1) if result.numel else (0, 0)
    result.nbytes = result.high * result.itemsize
    if result.nbytes > _MAX_BYTES or low < 0:
        raise ShapeError(f"a tensor of shape {tuple(shape)} {dtype} is too large to address")
    return result


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
    result = Layout()
    result.shape, result.strides = tuple.__new__(Size, shape), strides
    result.dtype, result.device = dtype, device
    result.numel, result.ndim, result.itemsize = numel, len(shape), dtype.itemsize
    result.contiguous, result.low, result.high = contiguous, low, high
    result.nbytes = high * result.itemsize
    result.family = result.form = None
    return _interned(key, result)


class Form:
    """What layouts share that differ in their `numbers` only. Compared by identity."""

    __slots__ = ("device", "dtype", "row_major", "shape", "strides")

    def __init__(self, layout: Layout, row_major: bool) -> None:
        self.dtype, self.device, self.row_major = layout.dtype, layout.device, row_major
        self.shape = tuple([n if n < 2 else -1 for n in layout.shape])
        self.strides = tuple([n if n < 2 else -1 for n in layout.strides])

    def layout(self, numbers: Iterator[Any]) -> Layout:
        """The layout of this form that has these numbers, or symbols."""
        shape = tuple([next(numbers) if n == -1 else n for n in self.shape])
        if self.row_major:
            return contiguous(shape, self.dtype, self.device)
        strides = tuple([next(numbers) if n == -1 else n for n in self.strides])
        return layout(shape, strides, self.dtype, self.device)


def form_of(layout: Layout) -> Any:
    """A layout's form; its `numbers` are set from now on, too. Sizes and strides of 0 and 1 are
    part of the form: too much depends on them."""
    if layout.form is None:
        shape, strides = layout.shape, layout.strides
        row_major = strides == contiguous_strides(shape)
        numbers = [n for n in shape if n > 1]
        kind: tuple[object, ...] = (layout.dtype, layout.device, tuple([min(n, 2) for n in shape]))
        if not row_major:
            numbers += [n for n in strides if n > 1]
            kind = (*kind, tuple([min(n, 2) for n in strides]))
        found = _forms.get(kind)
        if found is None:
            found = _forms[kind] = Form(layout, row_major)
        layout.numbers, layout.form = tuple(numbers), found
    return layout.form


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


def lies_alike(one: Layout, other: Layout) -> bool:
    """Do two tensors have the same elements at the same distances, in one piece? (The other one's
    elements do not overlap.)"""
    if one.shape != other.shape or one.high - one.low != one.numel:
        return False
    pairs = zip(one.shape, one.strides, other.strides, strict=True)
    return all([n == 1 or a == b for n, a, b in pairs])


def same(a: Layout, b: Layout) -> bool:
    """Whether two layouts say the same (they need not be the same object after a flush)."""
    return a is b or (
        a.shape == b.shape and a.strides == b.strides and a.dtype is b.dtype
        and a.device is b.device
    )  # fmt: skip


def check_inside(layout: Layout, nbytes: int, offset: int) -> None:
    """Refuses what reaches outside of a storage of so many bytes (it may have been resized)."""
    size = layout.itemsize
    if layout.numel and not (offset + layout.low >= 0 and (offset + layout.high) * size <= nbytes):
        raise OutOfRange(
            f"a tensor of shape {tuple(layout.shape)} at offset {offset} lies outside its "
            f"storage: it reaches bytes {(offset + layout.low) * size} to "
            f"{(offset + layout.high) * size} of {nbytes}"
        )


def table_size() -> int:
    return len(_table)


def flush_table() -> None:
    """Forgets all; called by ``call.plan.flush`` only, which forgets the plans too."""
    _table.clear()
    _forms.clear()
