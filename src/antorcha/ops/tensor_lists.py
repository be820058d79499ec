"""What is asked of many tensors at once: their norms, whether they are finite; to scale or clear
them.

A device that can does it in few launches; on others these are a loop over ops. None waits for a
device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.core.device import backend
from antorcha.core.shapes import may_overlap
from antorcha.lang import expr as E
from antorcha.lang.kernels import Folds
from antorcha.ops.kinds.record import T
from antorcha.ops.kinds.reduction import Folding
from antorcha.ops.statistics import norm_fold
from antorcha.ops.update_step import CountStep, UpdateSet, runs_together
from antorcha.runtime.call.plan import remember, table
from antorcha.runtime.memory.layout import lies_alike
from antorcha.runtime.tensor import Tensor

_plans: dict[Any, Any] = table()


def norms(tensors: Sequence[Tensor], ord: float) -> list[Tensor]:
    """The norm of each tensor, as elements of one or more 1-dim tensors, in no order."""
    found: list[Tensor] = []
    for group in groups_of(tensors):
        dtype = group[0]._layout.dtype
        if takes_together(group) and not any(
            [t._layout.numel == 0 for t in group]
        ):  # (the greatest of no elements is an error)
            kind = dtypes.promote_types(dtype, dtypes.float32)
            found.append(_folded(("norm", ord), norm_fold(dtype, ord), group, kind, dtype))
        else:
            found += [T.reshape(T.linalg_vector_norm(t, ord), (1,)) for t in group]
    return found


def overflows(tensors: Sequence[Tensor]) -> Tensor:
    """1.0 where some element is infinite or NaN, else 0.0; float32, on the first one's device."""
    found: list[Any] = []
    for group in groups_of(tensors):
        if takes_together(group):
            dtype = group[0]._layout.dtype
            found.append(_folded(("overflow",), OVERFLOW, group, dtype, dtypes.float32))
        else:
            finite = [T.all(T.isfinite(t)) for t in group]
            found += [T.reshape(T.to_dtype(T.logical_not(f), dtypes.float32), (1,)) for f in finite]
    return T.amax(T.cat(tuple(found))) if len(found) > 1 else T.amax(found[0])  # type: ignore[no-any-return]


@CountStep
def scaled(x, factor):
    """``x * factor``, rounded once."""
    return E.cast(x, factor.dtype) * factor


@CountStep
def divided(x, factor):
    """``x / factor``, rounded once."""
    return E.cast(x, factor.dtype) / factor


@CountStep
def cleared(x):
    """0."""
    return E.const(0, x.dtype)


scaled.wide = divided.wide = True


def scale(tensors: Sequence[Tensor], factor: Tensor) -> None:
    """Multiplies tensors in place by a tensor of one element; all are of one device and dtype."""
    if takes_together(tensors):
        scaled.together([UpdateSet((t,)) for t in tensors], (factor,), 0)
    else:
        for t in tensors:
            T.mul_(t, factor)


def divide(tensors: Sequence[Tensor], factor: Tensor) -> None:
    """Divides tensors in place by a tensor of one element; all are of one device and dtype."""
    if takes_together(tensors):
        divided.together([UpdateSet((t,)) for t in tensors], (factor,), 0)
    else:
        for t in tensors:
            T.div_(t, factor)


def clear(tensors: Sequence[Tensor]) -> None:
    """Fills tensors with 0."""
    for group in groups_of(tensors):
        if takes_together(group):
            cleared.together([UpdateSet((t,)) for t in group], (), 0)
        else:
            for t in group:
                T.zero_(t)


@CountStep
def scale_step(scale, tracker, found, growth, backoff, interval):
    """A gradient scaler's scale and its number of steps in a row, after a step; ``found``: above 0
    where a gradient overflowed. The scale never becomes inf."""
    steps = tracker + 1
    grown = scale * growth
    whole = steps == interval
    kept = E.where(whole & E.isfinite(grown), grown, scale)
    scale = E.where(found > 0, scale * backoff, kept)
    return scale, E.where((found > 0) | whole, 0, steps)


def groups_of(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """The tensors by device and dtype."""
    found: dict[Any, list[Tensor]] = defaultdict(list)
    for t in tensors:
        found[t._layout.device, t._layout.dtype].append(t)
    return list(found.values())


def takes_together(tensors: Sequence[Tensor]) -> bool:
    """Are these real tensors that a device works on at once?"""
    first = tensors[0]._layout
    if len(tensors) < 2 or first.dtype.kind != "f" or not runs_together(first.device):
        return False
    layouts = [t._layout for t in tensors]
    if any([o.sparse for o in layouts]):
        return False
    return all([lies_alike(o, o) and not may_overlap(o.shape, o.strides) for o in layouts])


OVERFLOW = Folding(
    start=0.0, lift=lambda x, i: E.cast(~E.isfinite(x), dtypes.float32), merge=E.maximum,
    state=(dtypes.float32,), outs=(dtypes.float32,),
)  # fmt: skip


def _folded(
    name: tuple[Any, ...], fold: Folding, tensors: Sequence[Tensor], kind: dtypes.dtype,
    dtype: dtypes.dtype,
) -> Tensor:  # fmt: skip
    """A fold of every tensor, read as ``kind``, to ``dtype``; a state has one value."""
    device = tensors[0]._layout.device
    out: Tensor = T.empty((len(tensors),), dtype=dtype, device=device)
    key = (*name, *[t._layout for t in tensors])
    launch: Any = _plans.get(key)
    if launch is None:
        state = fold.state[0]
        assert state is not None
        assert fold.lift is not None
        lift = E.cast(fold.lift(E.input_(0, kind), None), state)
        merge = fold.merge(E.input_(0, state), E.input_(1, state))
        whole, count = E.input_(0, state), E.input_(1, dtypes.int64)
        finish = whole if fold.finish is None else fold.finish(whole, count)
        what = Folds((fold.start,), (lift,), (merge,), (E.cast(finish, dtype),))
        launch = backend(device).compile(what, (out._layout,), [t._layout for t in tensors])
        launch = remember(_plans, key, launch)
    flat = [each for t in tensors for each in (t._storage, t._offset)]
    launch.into(out._storage, out._offset, *flat)
    return out
