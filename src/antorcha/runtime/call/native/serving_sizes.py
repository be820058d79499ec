"""Serving a call at sizes never met, by the words that were worked out from them (``sized``)."""

from __future__ import annotations

from antorcha.lang.native import (
    i64,
    local,
    native,
    ptr,
    raw,
    ref,
)
from antorcha.runtime.call.native.keys import (
    Key,
)
from antorcha.runtime.call.native.layout_sizes import Sizes, has_dims, read_sizes
from antorcha.runtime.call.native.places import (
    MOST_ARGUMENTS,
    NOT_HERE,
    NOT_KNOWN,
    SERVED,
    Place,
)
from antorcha.runtime.call.native.plans import new_plan
from antorcha.runtime.call.native.record import (
    MOST_OPERANDS,
    Recording,
    attach,
)
from antorcha.runtime.call.native.serving import (
    gather,
    mask_at,
    may_write,
    numbers_of,
    packed,
    run_packed,
    write,
)
from antorcha.runtime.call.native.sized import FRESH as SIZED_FRESH
from antorcha.runtime.call.native.sized import (
    MOST_RESULTS,
    OutlineWork,
    Sized,
    drop_parts,
    fill_results,
    prepare,
    run_filled,
    run_parts,
)
from antorcha.runtime.call.native.sized import PACKED as SIZED_PACKED
from antorcha.runtime.call.native.sized import VIEWS as SIZED_VIEWS
from antorcha.runtime.call.native.sized import WRITTEN as SIZED_WRITTEN
from antorcha.runtime.call.native.tensors import (
    TensorObject,
    new_tensor,
)
from antorcha.runtime.call.native.views import has_counts, new_views
from antorcha.runtime.cpython import (
    Py_DecRef,
    PyErr_Clear,
    drop_all,
    tuple_of,
)
from antorcha.runtime.memory.storage import StorageObject


@native
def may_overlap(layout: raw) -> bool:
    """May two of its elements be one? (Where ``shapes.may_overlap`` says not, this may.)"""
    sizes = local(Sizes)
    if not has_dims(layout) or not read_sizes(layout, sizes):
        return True
    for d in range(sizes.ndim):
        n, step, reach = sizes.shape[d], sizes.strides[d], i64(0)
        for e in range(sizes.ndim):
            inner = sizes.strides[e] < step or (sizes.strides[e] == step and e < d)
            if e != d and inner and sizes.shape[e] > 1:
                reach += (sizes.shape[e] - 1) * sizes.strides[e]
        if n > 1 and reach >= step:
            return True
    return False


@native
def attach_at(
    place: ptr[Place], sized: ptr[Sized], key: ptr[Key], work: ptr[OutlineWork], layouts: ptr[raw],
    operands: ptr[raw], mask: i64, outs: ptr[raw],
) -> bool:  # fmt: skip
    """Records a call on its results, by a plan made for its sizes; False with an exception."""
    history = sized.history
    numbers = tuple_of(ref(work.values[0]), sized.given)
    plan = raw(0)
    if numbers is not None:
        plan = new_plan(history, ref(work.words[0]), numbers, layouts, sized.results, operands)
    ok = plan is not None
    if ok:
        how = ptr[Recording](ptr[StorageObject](history.how).ptr)
        values = numbers_of(place, key)
        ok = values is not None
        ok = ok and attach(how, plan, operands, values, mask, outs, sized.results)
        Py_DecRef(plan)
    return ok


@native
def run_sizes(
    place: ptr[Place], sized: ptr[Sized], key: ptr[Key], work: ptr[OutlineWork], layouts: ptr[raw],
    recorded: bool, outs: ptr[raw],
) -> bool:  # fmt: skip
    """The results; False with an exception, or where it is not for here."""
    for k in range(sized.results):
        outs[k] = None
    args = local(raw, 2 * (MOST_RESULTS + MOST_ARGUMENTS))
    if sized.kind == SIZED_VIEWS:
        source = key.given[place.operand_at[0]]
        deltas = ref(work.words[sized.deltas])
        return has_counts(source) and new_views(
            source, layouts, deltas, sized.results, recorded, outs
        )  # fmt: skip
    if sized.kind == SIZED_FRESH:
        out = run_parts(sized, work, args, gather(place, key, args), FRESH=True)
        if out is not None:
            outs[0] = new_tensor(layouts[0], out)
        return outs[0] is not None
    if sized.kind == SIZED_PACKED:
        sequence = work.parts[sized.parts - 1]
        return run_packed(sequence, place, key, layouts, sized.results, outs)
    ok = fill_results(sized, work, layouts, args, outs) and run_filled(
        sized, work, args, gather(place, key, args + 2 * sized.results)
    )
    for k in range(sized.results):
        if ok:
            outs[k] = new_tensor(layouts[k], outs[k])
            ok = outs[k] is not None
    return ok


@native(export=True, level="O2")
def serve_sizes(
    place: ptr[Place], sized: ptr[Sized], key: ptr[Key], work: ptr[OutlineWork], recorded: bool,
    result: ptr[raw],
) -> i64:  # fmt: skip
    """Runs what a place says for sizes whose words are in `work`, as `try_call` says it."""
    operands = local(raw, MOST_OPERANDS)
    mask = i64(0)
    if sized.kind == SIZED_WRITTEN:
        target = ptr[TensorObject](key.given[0])
        if not may_write(key, 0, recorded, ALIKE=True) or may_overlap(target.layout):
            return NOT_HERE
        if not prepare(sized, work, local(raw)):
            return NOT_HERE
        result[0] = write(place, key, sized, work, SIZES=True)
        drop_parts(work)
        if result[0] is None:
            PyErr_Clear()
            return NOT_HERE
        return SERVED
    if recorded and sized.recorded != 0 and key.graph != 0:
        mask = i64(-2)
        if sized.recorded > 0:
            mask = mask_at(place, sized.history.how, key, operands)
        if mask < 0:
            return NOT_KNOWN if mask == -1 else NOT_HERE
    layouts = local(raw, MOST_RESULTS)
    outs = local(raw, MOST_RESULTS)
    if not prepare(sized, work, layouts):
        return NOT_HERE
    ok = run_sizes(place, sized, key, work, layouts, recorded, outs)
    if ok and mask != 0:
        ok = attach_at(place, sized, key, work, layouts, operands, mask, outs)
    drop_parts(work)
    drop_all(layouts, sized.results)
    if not ok:
        drop_all(outs, sized.results)
        PyErr_Clear()  # Python does it again, and says what is wrong
        return NOT_HERE
    result[0] = packed(place, outs, sized.results)
    return SERVED
