"""Which elements are among others: ``isin``."""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.lazy import Array, np
from antorcha.errors import ArgumentError
from antorcha.lang.kernels import Host
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.operands import common_dtype
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Bool, Tensor
from antorcha.ops.memory import constant
from antorcha.runtime.tensor import Tensor as TensorType


def found_in(elements: _Any, tests: _Any, invert: bool) -> _Any:
    """What ``isin`` runs: bisection in the sorted tests."""
    dtype = common_dtype([elements._layout, tests._layout])
    if dtype.kind == "c":
        return T.complex_member(elements, tests, invert)
    if dtype.kind == "b" or dtype.itemsize == 2:
        dtype = dtypes.uint8 if dtype.kind == "b" else dtypes.float32
    shape, count = tuple(elements._layout.shape), tests._layout.numel
    if not count:
        return T.full_layout(shape, invert, dtypes.bool_, elements._layout.device)
    compared = T.ne if invert else T.eq
    x, lines = [T.to_dtype(T.reshape(each, (-1,)), dtype) for each in (elements, tests)]
    if count > 1:
        lines = T.sort(lines)[0]
        places = T.places_in(lines, T.contiguous(x), False, False, None)
        lines = T.take(lines, T.clamp(places, max=count - 1))
    return T.reshape(compared(x, lines), shape)


@kernel(function=False, method=False)
def complex_member(elements: Tensor, tests: Tensor, invert: Bool):
    """What ``isin`` runs for complex numbers, which have no order."""

    def run(x: Array, y: Array) -> Array:
        return np.isin(x, y, invert=invert)

    return Planned(Host(run), [(tuple(elements.shape), dtypes.bool_)])


@complex_member.batches
def _(batch, run, elements, tests, invert):
    if not batch.has(tests):
        return run(batch.whole(elements), tests, invert)
    found = T.any(T.eq(T.unsqueeze(elements, -1), T.reshape(tests, (-1,))), -1)
    return T.logical_not(found) if invert else found


@composite(method=False)
def isin(elements: Any, test_elements: Any, *, assume_unique: Bool = False, invert: Bool = False):
    """Whether each element is one of ``test_elements``.

    >>> torch.isin(torch.tensor([[1, 2], [3, 4]]), torch.tensor([2, 3]))
    tensor([[False,  True],
            [ True, False]])
    """
    for each in (elements, test_elements):
        if not isinstance(each, (TensorType, int, float, complex)):
            raise ArgumentError(f"isin(): expected a Tensor or a number, not {each!r:.60}")
    if not (isinstance(elements, TensorType) or isinstance(test_elements, TensorType)):
        raise ArgumentError("isin(): expected a Tensor among elements and test_elements")
    some = elements if isinstance(elements, TensorType) else test_elements
    layout = some._layout
    pair = [
        each if isinstance(each, TensorType) else constant(np.asarray(each), layout.device)
        for each in (elements, test_elements)
    ]
    return found_in(pair[0].detach(), pair[1].detach(), invert)


@isin.samples
def _(make):
    yield make.ints((3, 4), 5), make.ints((2,), 5)
