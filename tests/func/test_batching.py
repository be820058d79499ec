"""Every record under vmap gives what it gives for one example after another, gradients too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.func.vmap import MappedCall
from antorcha.ops.kinds.record import REGISTRY, Op
from antorcha.runtime.tensor import Tensor
from antorcha.tensor import batched
from tests.ops.records import map_tensors, records, results, samples, tensors_in

SIZE = 3
WAYS = ("all", "the first", "all but the first")
CHUNKS = 4
ONE_BY_ONE = {
    "batch_norm_node", "block_diag_list", "counts_of", "embedding", "gru_sequence", "histc",
    "index_add", "index_copy", "index_fill", "index_select", "lstm_sequence", "masked_scatter",
    "member", "nonzero_columns", "places_in", "put", "rnn_relu_sequence", "rnn_tanh_sequence",
    "selected", "take", "unique_parts",
}  # fmt: skip
"""The ops of some of whose calls the examples are run one by one."""
LOOKED_AT = {
    "binary_cross_entropy", "gaussian_nll_loss", "istft", "max_unpool1d", "max_unpool2d",
    "max_unpool3d", "segment_reduce", "unique_consecutive",
}  # fmt: skip
"""The functions that look at their arguments' contents."""


def example(x: Tensor, k: int) -> Tensor:
    """Another example: the same elements in another order, so in the same domain."""
    if x.ndim >= 2 and x.shape[-1] == x.shape[-2]:  # (of a matrix its properties stay)
        return x * (1 + 0.25 * k) if x.dtype.is_floating_point else x.clone()
    return torch.roll(x.reshape(-1), k).reshape(x.shape) if x.numel() > 1 else x.clone()


def batches(args: Any, kwargs: Any, way: str) -> list[Tensor | None]:
    """For each tensor among the arguments a batch of examples, or None."""
    found: list[Tensor | None] = []
    for k, each in enumerate(tensors_in((args, kwargs))):
        chosen = way == "all" or (k == 0) == (way == "the first")
        made = torch.stack([example(each, j) for j in range(SIZE)], 0) if chosen else None
        if made is not None and (made.dtype.is_floating_point or made.dtype.is_complex):
            made = made.detach().requires_grad_()
        found.append(made)
    return found


def filled(args: Any, kwargs: Any, given: list[Any]) -> Any:
    """The arguments with tensors in the place of theirs, where there are any."""
    queue = list(given)

    def other(tensor: Tensor) -> Tensor:
        found = queue.pop(0)
        return tensor if found is None else found

    return map_tensors((args, kwargs), other)


def outcome(run: Callable[[], Any]) -> tuple[list[Any], str]:
    """Tensors, or the class of an error."""
    try:
        return results(run()), ""
    except Exception as error:
        return [], type(error).__name__


def compare(op: Op, args: Any, kwargs: Any, way: str) -> str:
    """What differs; "" if nothing does."""
    whole = batches(args, kwargs, way)
    if not any(each is not None for each in whole):
        return ""

    def call(*given: Tensor) -> Any:
        values, named = filled(args, kwargs, list(given))
        return op(*values, **named)

    dims = tuple(None if each is None else 0 for each in whole)
    placed = [torch.ones(()) if each is None else each for each in whole]

    def at_once() -> Any:
        def one(*given: Any) -> Any:
            return call(*[None if d is None else g for g, d in zip(given, dims, strict=True)])

        return torch.vmap(one, in_dims=dims)(*placed)

    def in_turn() -> Any:
        each = [
            results(call(*[None if w is None else w[k].clone() for w in whole]))
            for k in range(SIZE)
        ]
        return tuple([torch.stack(column, 0) for column in zip(*each, strict=True)])

    ours, error = outcome(at_once)
    theirs, expected = outcome(in_turn)
    if error or expected:
        return "" if error and expected else f"{error or 'no error'}, not {expected or 'none'}"
    return different(ours, theirs, [w for w in whole if w is not None and w.requires_grad])


def different(ours: list[Any], theirs: list[Any], leaves: list[Tensor]) -> str:
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for a, b in zip(ours, theirs, strict=True):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"{a.dtype} {tuple(a.shape)}, not {b.dtype} {tuple(b.shape)}"
        if not np.allclose(a.detach().numpy(), b.detach().numpy(), equal_nan=True):
            return f"{a.detach().tolist()}, not {b.detach().tolist()}"
    grads = [gradients(each, leaves) for each in (ours, theirs)]
    if len(grads[0]) != len(grads[1]):
        return f"{len(grads[0])} gradients, not {len(grads[1])}"
    for a, b in zip(*grads, strict=True):
        if (a is None) != (b is None) or (a is not None and not np.allclose(a, b, equal_nan=True)):
            return f"gradients {a}, not {b}"
    return ""


def gradients(outs: list[Any], leaves: list[Tensor]) -> list[Any]:
    total = sum(
        [(o * o.detach().cos()).sum().real for o in outs if o.requires_grad], torch.zeros(())
    )
    if not leaves or not isinstance(total, Tensor) or not total.requires_grad:
        return []
    try:
        found = torch.autograd.grad(total, leaves, allow_unused=True)
    except NotImplementedError:
        return []
    return [None if g is None else g.numpy() for g in found]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_records(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    alone: set[str] = set()
    looked: set[str] = set()
    one_by_one, loop = batched.Batch.one_by_one, MappedCall._one_by_one

    def noting(batch: Any, run: Any, values: Any) -> Any:
        alone.add(run.name)
        return one_by_one(batch, run, values)

    def looped(given: MappedCall) -> Any:
        looked.add(op.name)
        return loop(given)

    monkeypatch.setattr(batched.Batch, "one_by_one", noting)
    monkeypatch.setattr(MappedCall, "_one_by_one", looped)
    failures = []
    for op in records()[chunk::CHUNKS]:
        if op.random:
            continue
        for k, (args, kwargs) in enumerate(samples(op)):
            for way in WAYS:
                found = compare(op, args, kwargs, way)
                if found:
                    failures.append(f"{op.name}, sample {k}, {way}: {found[:300]}")
    assert not failures, "\n".join(failures)
    assert not alone - ONE_BY_ONE
    assert not looked - LOOKED_AT


def test_what_is_listed_is_there() -> None:
    assert set(REGISTRY) >= ONE_BY_ONE | LOOKED_AT
