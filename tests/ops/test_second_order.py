"""PyTorch's samples of its operators: gradients of gradients are what finite differences say."""

from __future__ import annotations

import warnings
import zlib
from typing import Any

import pytest

import antorcha
from antorcha.autograd import gradgradcheck
from tests.choosing import quick
from tests.ops import samples
from tests.ops.records import map_tensors
from tests.ops.test_pytorch_samples import PARTLY, held

pytestmark = pytest.mark.oracle

CHUNKS = {"float64": 4, "complex128": 2}
MOST = 2  # samples of an entry
ONE_OF = 25  # entries, in the quick suite

COARSE = {
    "bfloat16": "finite differences vanish in its digits",
    "half": "finite differences vanish in its digits",
    "float": "finite differences lose most of their digits in its",
    "cfloat": "finite differences lose most of their digits in its",
}
"""Entries whose results are too coarse for finite differences."""


def is_known_to_pytorch(entry: Any, kind: Any) -> bool:
    """Does PyTorch leave this entry out of its own test of second order?"""
    from torch.testing._internal.opinfo.core import DecorateInfo

    name = "test_fn_gradgrad"
    return any(
        isinstance(each, DecorateInfo) and each.test_name == name
        and each.is_active("TestBwdGradients", name, "cpu", kind, {})
        for each in (*entry.decorators, *entry.skips)
    )  # fmt: skip


def entries(dtype: str) -> list[Any]:
    """The entries that PyTorch says have gradients of gradients in a dtype."""
    import torch

    kind = getattr(torch, dtype)
    return [
        entry for entry in held()
        if entry.supports_autograd and entry.supports_gradgrad and kind in entry.backward_dtypes
        and kind in entry.dtypes and samples.title(entry) not in {*PARTLY, *COARSE}
        and not is_known_to_pytorch(entry, kind)
    ]  # fmt: skip


def check(entry: Any, sample: Any) -> str:
    """What finite differences say against a sample's second order; the empty string: nothing."""
    _, ours = samples.both(entry, True)
    process = sample.output_process_fn_grad and samples.on_antorcha(sample.output_process_fn_grad)
    arguments = samples.converted(([sample.input, *sample.args], sample.kwargs))
    leaves = [t for t in samples.tensors_in(arguments, antorcha.Tensor) if t.requires_grad]

    def call(*given: Any) -> tuple[Any, ...]:
        queue = list(given)
        args, kwargs = map_tensors(arguments, lambda t: queue.pop(0) if t.requires_grad else t)
        antorcha.manual_seed(5)
        outs = ours(*args, **kwargs)
        outs = process(outs) if process else outs
        return tuple([t for t in samples.tensors_in(outs, antorcha.Tensor) if t.requires_grad])

    try:
        if leaves and call(*leaves):
            gradgradcheck(call, tuple(leaves), atol=1e-4, fast_mode=True)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize(
    ("dtype", "chunk"), [(d, k) for d, count in CHUNKS.items() for k in range(count)]
)
def test_second_order(dtype: str, chunk: int) -> None:
    import torch

    wrong = []
    chosen = entries(dtype)[chunk :: CHUNKS[dtype]]
    if quick.active:
        chosen = [e for e in chosen if zlib.crc32(samples.title(e).encode()) % ONE_OF == 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for entry in chosen:
            given = entry.sample_inputs("cpu", getattr(torch, dtype), requires_grad=True)
            for k, sample in samples.spread(given, 1 if quick.active else MOST):
                found = check(entry, sample)
                if found:
                    wrong.append(f"{samples.title(entry)} sample {k}: {found[:300]}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong)


def test_most_entries_have_a_second_order() -> None:
    assert len(entries("float64")) >= 490
    assert len(entries("complex128")) > 300
