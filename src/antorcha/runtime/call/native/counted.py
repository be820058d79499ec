"""Calls whose results' sizes are counted first (``runtime.counted``), without the interpreter.

Invariants: what is negative, or too large, is left to Python. Making layouts may run any code, so
the operands are read again before the second kernel; that they are what they were when they were
counted is for the kernel to check.
"""

from __future__ import annotations

from typing import Any

from antorcha.lang.native import array, i64, local, native, ptr, raw, struct, void
from antorcha.runtime.call.native.layout_sizes import MOST_DIMS, LayoutObject, Sizes, lie_row_major
from antorcha.runtime.call.native.layouts import layout_of
from antorcha.runtime.call.native.places import Place
from antorcha.runtime.call.native.sized import MOST_RESULTS
from antorcha.runtime.call.native.tensors import new_tensor
from antorcha.runtime.counted import Count, CountedLaunch
from antorcha.runtime.cpython import drop_all, drop_one, int_value, zero
from antorcha.runtime.launch import py_launch
from antorcha.runtime.launch import storage_of as launch_of
from antorcha.runtime.memory.storage import Storage, make_storage
from antorcha.runtime.objects import padded, words_in_memory

MOST_SCRATCH = 2


@struct
class Counting:
    """A CountedLaunch as words."""

    count: raw  # the storage of a launch
    write: raw  # the same
    scratch: i64
    nbytes: array[i64, MOST_SCRATCH]
    first: i64
    refuses: i64  # is a first number below 0 refused?
    dims: ptr[i64]  # of each result: how many, and of each dim a Count's numbers, or -1, 0, a size


@native
def scratch_of(c: ptr[Counting], args: ptr[raw]) -> bool:
    """Makes the scratch memory, as the first arguments; False with an exception."""
    ok = True
    for k in range(c.scratch):
        args[2 * k] = None
        args[2 * k + 1] = zero[0]
        if ok:
            args[2 * k] = make_storage(c.nbytes[k])
            ok = args[2 * k] is not None
    return ok


@native
def sizes_counted(dims: ptr[i64], numbers: ptr[i64], sizes: ptr[Sizes]) -> ptr[i64]:
    """Puts a result's sizes there; where the next result's are said."""
    sizes.ndim = dims[0]
    at = dims + 1
    for d in range(sizes.ndim):
        n = at[2]
        if at[0] >= 0:
            n = max(numbers[at[0]] + at[1], n)
        sizes.shape[d] = n
        at = at + 3
    lie_row_major(sizes)
    return at


@native
def make_results(
    place: ptr[Place], c: ptr[Counting], numbers: ptr[i64], layouts: ptr[raw], args: ptr[raw]
) -> bool:  # fmt: skip
    """Layouts and memory for the results, the latter as the first arguments; False with or without
    an exception."""
    sizes = local(Sizes)
    dims = c.dims
    ok = True
    for k in range(place.results):
        layouts[k] = None
        args[2 * k] = None
        args[2 * k + 1] = zero[0]
        if ok:
            sizes.like = place.layouts[k]
            dims = sizes_counted(dims, numbers, sizes)
            layouts[k] = layout_of(sizes)
            ok = layouts[k] is not None
        if ok:
            args[2 * k] = make_storage(int_value(ptr[LayoutObject](layouts[k]).nbytes))
            ok = args[2 * k] is not None
    return ok


@native
def launched(launch: raw, args: ptr[raw], count: i64) -> bool:
    done = py_launch(launch, args, count, FRESH=False)
    drop_one(done)  # None
    return done is not None


@native
def tensors_around(
    layouts: ptr[raw], args: ptr[raw], count: i64, ok: bool, outs: ptr[raw]
) -> bool:  # fmt: skip
    """The results; what was made for them is dropped where there are none."""
    for k in range(count):
        outs[k] = None
        if ok:
            outs[k] = new_tensor(layouts[k], args[2 * k])
            ok = outs[k] is not None
        else:
            drop_one(args[2 * k])
    drop_all(layouts, count)
    return ok


@native
def drop_scratch(c: ptr[Counting], args: ptr[raw]) -> void:
    for k in range(c.scratch):
        drop_one(args[2 * k])


# ---- learning
def words_of(launch: Any) -> Storage | None:
    """A CountedLaunch as machine code reads it; None: it is none, or not for here."""
    if not isinstance(launch, CountedLaunch):
        return None
    count, write = launch_of(launch.count, "into"), launch_of(launch.write, "into")
    few = len(launch.scratch) <= MOST_SCRATCH and len(launch.shapes) <= MOST_RESULTS
    if count is None or write is None or not few or max(map(len, launch.shapes)) > MOST_DIMS:
        return None
    dims: list[int] = []
    for shape in launch.shapes:
        dims.append(len(shape))
        for n in shape:
            dims += [n.at, n.more, n.least] if isinstance(n, Count) else [-1, 0, n]
    held = words_in_memory(dims)
    nbytes = padded(launch.scratch, MOST_SCRATCH)
    words = [id(count), id(write), len(launch.scratch), *nbytes, launch.first,
             int(launch.refuse is not None), held.ptr]  # fmt: skip
    return words_in_memory(words, count, write, held)
