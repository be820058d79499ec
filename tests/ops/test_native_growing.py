"""Every op at sizes that grow from call to call: natively what the Python path gives or refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.ops.kinds.record import Op
from antorcha.runtime.call import native, plan
from antorcha.runtime.tensor import Tensor
from tests.ops.records import everything, map_tensors, results, samples
from tests.ops.test_native_records import gradients, is_random, looks, outcome, same_elements

pytestmark = pytest.mark.skipif(not native.ACTIVE, reason=native.why_not())
TIMES = range(1, 8)
UNEVEN = ("gru_sequence", "lstm_sequence")
"""They are told the sizes of their steps, and leave what is beyond as it was."""


def grown(value: Any, times: int, wants: bool) -> Any:
    """Arguments whose tensors are so many times as long, in every dim of more than one element."""

    def one(t: Tensor) -> Tensor:
        array = np.tile(t.detach().numpy(), [times if n > 1 else 1 for n in t.shape])
        made = antorcha.tensor(array, dtype=t.dtype)
        if t.ndim > 1 and not t.is_contiguous():
            made = made.transpose(-1, -2).contiguous().transpose(-1, -2)
        return made.requires_grad_(wants and made.dtype.is_floating_point)

    return map_tensors(value, one)


def ran(op: Op, sample: Any, times: int, wants: bool) -> Any:
    """The result, and the gradients; or the error's class."""
    args, kwargs = grown(sample, times, wants)
    inputs = [t for t in results([*args, *kwargs.values()]) if t.requires_grad]

    def run() -> Any:
        result = op(*args, **kwargs)
        return result, gradients(result, inputs, False)

    return outcome(run)


@everything
def test_growing_sizes(op: Op) -> None:
    if is_random(op) or op.random or op.name in UNEVEN:
        pytest.skip("random, or with sizes as an argument")
    plan.flush()
    for sample in samples(op, antorcha.float32):
        for wants in (False, True):
            for times in TIMES:
                what = f"{op.name}{sample} times {times}"
                ours = ran(op, sample, times, wants)
                with native.off():
                    theirs = ran(op, sample, times, wants)
                if not isinstance(theirs, tuple):
                    assert ours is theirs, what
                    continue
                assert isinstance(ours, tuple), (what, ours)
                assert looks(ours[0]) == looks(theirs[0]), what
                same_elements(ours[0], theirs[0], what)
                assert [g is None for g in ours[1]] == [g is None for g in theirs[1]], what
                for a, b in zip(ours[1], theirs[1], strict=True):
                    if a is not None:
                        assert a.stride() == b.stride(), what
                        same_elements(a, b, what)
