"""Views by integers and slices: ``x[i]``, ``x[i:j]``, ``x[:, ::2]``, for any sizes and any i and j.

Nothing has to be known of such a call: how the result lies follows from the layout and the index,
and its layout is found or made natively (``layouts``). An index outside, and everything else than
integers, slices and ``...``, is left to Python.
"""

from __future__ import annotations

from antorcha.lang.native import i64, local, native, ptr, raw
from antorcha.runtime.call.native.keys import DOTS, INT, MODE, NOTHING, SLICE, TUPLE_END, Key
from antorcha.runtime.call.native.layout_sizes import Sizes, has_dims, read_sizes
from antorcha.runtime.call.native.layouts import layout_of
from antorcha.runtime.call.native.tensors import TensorObject
from antorcha.runtime.call.native.views import has_counts, new_view
from antorcha.runtime.cpython import Py_DecRef, Py_IncRef, PyErr_Clear


@native
def bound(kind: i64, value: i64, size: i64, missing: i64) -> i64:
    """A slice's bound as a place from 0 to `size`; -1: it is not for here."""
    if kind == NOTHING:
        return missing
    if kind != INT:
        return -1
    if value < 0:
        value = max(value + size, 0)
    return min(value, size)


@native
def words_of(kind: i64) -> i64:
    """How many words of a key an item of an index takes."""
    return i64(4) if kind == SLICE else i64(1)


@native
def dims_taken(key: ptr[Key]) -> i64:
    """Of how many dims an index says something; -1: it is not for here."""
    taken = i64(0)
    dots = i64(0)
    k = i64(1)
    while k < key.count:
        kind = key.kinds[k]
        if kind == INT or kind == SLICE:  # noqa: SIM109 (not in the kernel language)
            taken += 1
        elif kind == DOTS:
            dots += 1
        elif kind != TUPLE_END and kind != MODE:
            return -1
        k += words_of(kind)
    return taken if taken > 0 and dots <= 1 else i64(-1)


@native
def take_slice(key: ptr[Key], k: i64, sizes: ptr[Sizes], dim: i64, out: i64) -> i64:
    """Puts a slice of a dim into the sizes of the result; what it adds to the offset, or -1: it is
    not for here."""
    size, stride = sizes.shape[dim], sizes.strides[dim]
    first = bound(key.kinds[k + 1], key.values[k + 1], size, 0)
    last = bound(key.kinds[k + 2], key.values[k + 2], size, size)
    step = i64(1)
    if key.kinds[k + 3] == INT:
        step = key.values[k + 3]
    elif key.kinds[k + 3] != NOTHING:
        return -1
    if first < 0 or last < 0 or step < 1 or step > size:
        return -1
    sizes.shape[out] = (max(last - first, i64(0)) + step - 1) // step
    sizes.strides[out] = stride * step
    return first * stride


@native
def index_sizes(key: ptr[Key], sizes: ptr[Sizes]) -> i64:
    """The sizes of ``x[i]`` in the place of those of x; what it adds to the offset, or -1: it is
    not for here."""
    taken = dims_taken(key)
    if taken < 0 or taken > sizes.ndim:
        return -1
    delta = i64(0)
    dim, out = i64(0), i64(0)  # (out <= dim: what is written has been read)
    k = i64(1)
    rest = sizes.ndim - taken  # dims that ``...``, or the end, leaves as they are
    while k < key.count:
        kind = key.kinds[k]
        if kind == INT:
            value = key.values[k]
            if value < 0:
                value += sizes.shape[dim]
            if value < 0 or value >= sizes.shape[dim]:
                return -1
            delta += value * sizes.strides[dim]
            dim += 1
        elif kind == SLICE:
            more = take_slice(key, k, sizes, dim, out)
            if more < 0:
                return -1
            delta += more
            dim += 1
            out += 1
        elif kind == DOTS:
            for _ in range(rest):
                sizes.shape[out] = sizes.shape[dim]
                sizes.strides[out] = sizes.strides[dim]
                dim += 1
                out += 1
        k += words_of(kind)
    for at in range(dim, sizes.ndim):
        sizes.shape[out] = sizes.shape[at]
        sizes.strides[out] = sizes.strides[at]
        out += 1
    sizes.ndim = out
    return delta


@native(export=True, level="O2")
def view_by_index(key: ptr[Key], recorded: bool, result: ptr[raw]) -> bool:
    """``x[i]`` for any i, in `result` (null with an exception); False: it is not for here."""
    source = key.given[0]
    layout = ptr[TensorObject](source).layout
    if not has_counts(source) or not has_dims(layout):
        return False
    sizes = local(Sizes)
    delta = i64(-1)
    Py_IncRef(layout)
    if read_sizes(layout, sizes):
        delta = index_sizes(key, sizes)
    found = raw(0)
    if delta >= 0:
        found = layout_of(sizes)
    Py_DecRef(layout)
    if found is None:
        PyErr_Clear()
        return False
    same = ptr[TensorObject](source).layout == layout and has_counts(source)  # code may have run
    if same:
        result[0] = new_view(source, found, delta, recorded)
    Py_DecRef(found)
    return same
