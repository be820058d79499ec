"""Results, gradients among them, are the same bits at any number of threads.

The samples of all records are made so large that threads share the work: examples in front, or
their dims repeated. Whether threads see the whole work differently, a product that is cut into
parts for instance, shows in the last bits.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import antorcha as torch
from antorcha.ops.kinds.record import Op
from antorcha.runtime.tensor import Tensor
from tests.choosing import quick
from tests.ops.records import all_samples, map_tensors, records, results, tensors_in

CHUNKS = 6
THREADS = (1, 2, 3, 8)
SAMPLES = 2  # of a record
SIZE, SIDES, LARGEST = 100_000, 20_000, 1_000_000
"""Elements of the largest operand, of one of whose dims all grow, and of any result."""
HEAVY = {"fold_bags", "index_fill", "index_put", "largest_of_bags", "nuclear_norm", "ormqr",
         "pdist", "pinverse", "weigh_bags"}  # fmt: skip
"""What takes long for its size, as all of ``linalg`` does: it gets smaller operands."""
UNWRITTEN = ("empty", "gru_sequence", "lstm_sequence")
"""What leaves some of its fresh memory as it is (a sequence: steps beyond those it was told of)."""
MANY = ("combinations", "split_copy", "unbind_copy")
"""What gives too many results for large operands."""
WAYS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "more in front": lambda t, k: t.expand((k, *t.shape)).clone(),
    "first dim": lambda t, k: t.repeat(k, *[1] * (t.ndim - 1)) if t.ndim else t,
    "last dim": lambda t, k: t.repeat(*[1] * (t.ndim - 1), k) if t.ndim else t,
    "all dims": lambda t, k: t.repeat(*[k] * t.ndim) if t.ndim else t,
}

Digests = dict[tuple[str, int, str], tuple[bytes, ...]]


def enlarged(given: Any, way: str, size: int, sides: int) -> Any:
    """The arguments with larger tensors; None where they cannot be made larger so."""
    shapes = [tuple(t.shape) for t in tensors_in(given)]
    most = max([t.numel() for t in tensors_in(given)], default=0)
    ndim = max(map(len, shapes), default=0)
    if not most or (not ndim and way != "more in front"):
        return None
    times = round((sides / most) ** (1 / ndim)) if way == "all dims" else size // most
    return map_tensors(given, lambda t: WAYS[way](t, times)) if times > 1 else None


def is_heavy(op: Op) -> bool:
    return op.name in HEAVY or op.name.startswith("linalg_")


def is_small(op: Op, args: Any, kwargs: Any) -> bool:
    """Are the results no larger than they have to be? (Those of ``outer``, say, would be.)"""
    there = map_tensors((args, kwargs), lambda t: t.to("meta"))
    try:
        found = results(op(*there[0], **there[1]))
    except NotImplementedError:  # it depends on the elements
        return True
    return len(found) < 10 and all(t.numel() <= LARGEST for t in found)


def calls(ops: list[Op]) -> Iterator[tuple[tuple[str, int, str], Op, Any]]:
    for op in ops:
        sizes = (SIZE // 20, SIDES // 8) if is_heavy(op) else (SIZE, SIDES)
        for k, given in enumerate(
            itertools.islice(all_samples(op), 1 if quick.active else SAMPLES)
        ):
            for way in WAYS:
                larger = enlarged(given, way, *sizes)
                if larger is not None:
                    yield (op.name, k, way), op, larger


def digests(op: Op, args: Any, kwargs: Any) -> tuple[bytes, ...]:
    """The bits of the results and of the gradients."""
    torch.manual_seed(3)

    def leaf(t: Tensor) -> Tensor:
        smooth = t.dtype.is_floating_point or t.dtype.is_complex
        return t.clone().requires_grad_(smooth and op.differentiable)

    args, kwargs = map_tensors((args, kwargs), leaf)
    found = results(op(*args, **kwargs))
    leaves = [t for t in tensors_in((args, kwargs)) if t.requires_grad]
    roots = [t for t in found if t.requires_grad]
    if leaves and roots:
        seeds = [torch.cos(torch.arange(t.numel())).reshape(t.shape).to(t.dtype) for t in roots]
        with contextlib.suppress(NotImplementedError, RuntimeError):  # it may have no derivative
            found += torch.autograd.grad(roots, leaves, seeds, allow_unused=True)
    return tuple([digest(t.detach()) for t in found if t is not None])


def digest(t: Tensor) -> bytes:
    flat = t.contiguous().reshape(-1)
    return hashlib.sha1(flat.view(torch.uint8).numpy().tobytes()).digest() if t.numel() else b""


def sweep(ops: list[Op], threads: int, refused: set[tuple[str, int, str]]) -> Digests:
    """What the records give on so many threads. On one it is noted which calls are refused, as
    those whose other arguments say sizes are."""
    torch.set_num_threads(threads)
    found: Digests = {}
    for key, op, (args, kwargs) in calls(ops):
        if key in refused:
            continue
        try:
            if threads > 1 or is_small(op, args, kwargs):
                found[key] = digests(op, args, kwargs)
                continue
        except Exception:
            if threads > 1:
                raise
        refused.add(key)
    return found


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_records(chunk: int, threads: None) -> None:
    ops = [op for op in records()[chunk::CHUNKS] if not op.name.startswith(UNWRITTEN + MANY)]
    if quick.active:
        ops = ops[::8]
    refused: set[tuple[str, int, str]] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, *others = [sweep(ops, n, refused) for n in THREADS]
    wrong = [f"{key} on {n} threads" for n, found in zip(THREADS[1:], others, strict=True)
             for key in first if found[key] != first[key]]  # fmt: skip
    assert not wrong, "\n".join(wrong)
    assert len({name for name, *_ in first}) > 0.8 * len(ops)


def products(threads: int) -> dict[tuple[Any, ...], bytes]:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    found: dict[tuple[Any, ...], bytes] = {}
    for m, n, k in itertools.product((1, 3, 14, 15, 40, 300), (1, 7, 33, 300), (5, 384, 700, 1500)):
        for turned in itertools.product((False, True), repeat=2):
            a = torch.randn(k, m).t() if turned[0] else torch.randn(m, k)
            b = torch.randn(n, k).t() if turned[1] else torch.randn(k, n)
            found[m, n, k, *turned] = digest(a @ b)
            found[m, n, k, *turned, "added"] = digest(torch.addmm(torch.randn(m, n), a, b))
    return found


def test_products_of_all_shapes(threads: None) -> None:
    """How a product is computed depends on its shape, not on the shape of a thread's part."""
    first, *others = [products(n) for n in THREADS]
    assert not [key for found in others for key in first if found[key] != first[key]]


def test_gradients_of_images_that_go_together(threads: None) -> None:
    """Where tiles of pixels are added up, the order is that of the images together."""

    def gradient(n: int) -> bytes:
        torch.set_num_threads(n)
        torch.manual_seed(0)
        images, weights = torch.randn(12, 8, 31, 31, requires_grad=True), torch.randn(8, 8, 3, 3)
        result = torch.nn.functional.conv2d(images, weights, stride=2)
        (found,) = torch.autograd.grad(result, images, torch.randn(result.shape))
        return digest(found)

    assert len({gradient(n) for n in THREADS}) == 1
