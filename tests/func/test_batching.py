"""Every record under vmap gives what it gives for one example after another, gradients too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    "batch_norm_node", "counts_of", "fold_bags", "gru_sequence", "histc", "largest_of_bags",
    "lstm_sequence", "nonzero_columns", "rnn_relu_sequence", "rnn_tanh_sequence", "selected",
    "unique_parts", "weigh_bags",
}  # fmt: skip
"""The ops of some of whose calls the examples are run one by one."""
LOOKED_AT = {
    "binary_cross_entropy", "gaussian_nll_loss", "istft", "max_unpool1d", "max_unpool2d",
    "max_unpool3d", "repeat_interleave", "repeat_places", "segment_reduce", "unique_consecutive",
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


def own_indices() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Calls with another index for each example, in place and with what samples do not have."""
    x, index = torch.rand(3, 4, 5), torch.tensor([[0, 1], [3, 1], [3, 0]])
    source, scalars, one = torch.rand(3, 2, 5), torch.rand(3), torch.zeros(3, 1, dtype=torch.int64)
    mask = x > 0.5
    return {
        "add": (lambda x, i, s: x.index_add_(0, i, s, alpha=2), (x, index, source)),
        "add at -1": (lambda x, i, s: x.index_add(-1, i, s), (x.mT, index, source.mT)),
        "add to a scalar": (lambda x, i, s: x.index_add(0, i, s), (scalars, one, torch.rand(3, 1))),
        "add, int32": (lambda i, s: x[0].index_add(0, i, s), (index.int(), source)),
        "copy": (lambda x, i, s: x.index_copy_(0, i, s), (x, index, source)),
        "fill": (lambda x, i: x.index_fill_(0, i - 4, 2.5), (x, index)),
        "fill by a tensor": (lambda x, i, v: x.index_fill_(0, i, v), (x, index, scalars)),
        "fill at the same": (lambda x, v: x.index_fill(0, index[0], v), (x, scalars)),
        "select of a scalar": (lambda x, i: x.index_select(0, i), (scalars, one)),
        "put": (lambda x, i, s: x.put_(i - 5, s), (x, index, source[..., 0])),
        "put, transposed": (lambda x, i, s: x.t().put_(i, s, True), (x, index, source[..., 0])),
        "take": (lambda i: x.take(i - 5), (index,)),
        "masks": (lambda x, m, s: x.masked_scatter_(m, s), (x, mask, torch.rand(3, 21))),
        "a mask that broadcasts": (lambda m: x[0].masked_scatter(m, x[1]), (mask[:, :1],)),
    }


def others() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Calls in which some arguments are the same for all examples, and ops of state."""
    x, values = torch.rand(3, 6).sort(1)[0], torch.rand(3, 2, 2)
    images, mean = torch.rand(3, 6, 4, 2), torch.zeros(3, 4)
    sequences, ints = torch.rand(3, 5, 2, 4), torch.tensor([[1, 2], [3, 4], [0, 1]])

    def norm(x: Tensor, mean: Tensor, var: Tensor) -> Any:
        y = torch.nn.functional.batch_norm(x, mean, var, training=True)
        return y, mean, var

    found: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "sorted by the example": (torch.searchsorted, (x, values)),
        "one sorted": (lambda v: torch.searchsorted(x[0], v, right=True), (values,)),
        "one value": (lambda x: torch.searchsorted(x, values[0]), (x,)),
        "sorter": (lambda x, v, s: torch.searchsorted(x, v, sorter=s), (x, values, x.argsort(1))),
        "is in": (torch.isin, (ints, ints + 1)),
        "is not in one": (lambda i: torch.isin(i, ints[0], invert=True), (ints,)),
        "statistics": (norm, (images, mean, mean + 1)),
        "no statistics": (lambda x: norm(x, None, None)[0], (images,)),
    }
    for cell in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        net = cell(4, 3, 2, bidirectional=True)
        found[cell.__name__] = (lambda s, net=net: net(s)[0], (sequences,))
    return found


@pytest.fixture
def doubles() -> Iterator[None]:
    """The numbers of this test are float64, and the same in each run."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", [*own_indices(), *others()])
def test_arguments_of_their_own(name: str, doubles: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(batch: Any, run: Any, values: Any) -> Any:
        raise AssertionError(f"{run.name} ran one by one")

    call, given = {**own_indices(), **others()}[name]
    each = [results(call(*[t[k].clone() for t in given])) for k in range(3)]
    monkeypatch.setattr(batched.Batch, "one_by_one", refused)
    monkeypatch.setattr(MappedCall, "_one_by_one", refused)
    found = results(torch.vmap(call)(*[t.clone() for t in given]))
    assert not different(found, [torch.stack(c, 0) for c in zip(*each, strict=True)], [])


def test_indices_of_examples_are_checked() -> None:
    x, index = torch.rand(3, 4), torch.tensor([[0, 1], [3, 1], [3, 0]])
    select = torch.vmap(lambda x, i: x.index_select(0, i))
    for wrong in (index + 1, index - 1):
        with pytest.raises(IndexError, match="out of bounds"):
            select(x, wrong)
    with pytest.raises(RuntimeError, match="supposed to be a vector"):
        select(x, index.unsqueeze(1))
    with pytest.raises(RuntimeError, match="Expected dtype"):
        select(x, index.float())
    with pytest.raises(RuntimeError, match="Number of indices"):
        torch.vmap(lambda x, i: x.index_add(0, i, x))(x, index)
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.vmap(lambda x, s: x.masked_scatter(x >= 0, s))(x, x[:, :2])


def test_statistics_of_all_examples(doubles: None) -> None:
    """Running statistics that the examples share move once for each of them."""
    images = torch.rand(3, 6, 4)
    ours, theirs = torch.zeros(4), torch.zeros(4)

    def call(x: Tensor, mean: Tensor) -> Tensor:
        return torch.nn.functional.batch_norm(x, mean, torch.ones(4), training=True)

    torch.vmap(call, in_dims=(0, None))(images, ours)
    for each in images:
        call(each, theirs)
    assert ours.tolist() == theirs.tolist()


def test_what_is_listed_is_there() -> None:
    assert set(REGISTRY) >= ONE_BY_ONE | LOOKED_AT
