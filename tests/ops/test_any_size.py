"""Calls of sizes that were never met: what serves any size is what plans each of them anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import antorcha as torch
from antorcha.ops.kinds.record import Op
from antorcha.runtime.call import native
from antorcha.runtime.launch import gil_threshold
from antorcha.runtime.tensor import Tensor
from tests.ops.records import map_tensors, records, samples, tensors_in
from tests.ops.test_native_records import looks, outcome, same_elements
from tests.ops.test_records import is_random

pytestmark = pytest.mark.skipif(not native.ACTIVE, reason="the native path does not run")
SIZES = 7


def resized(value: Any, more: int) -> Any:
    """The arguments with every dim of two and more lengthened, their elements going round."""

    def one(t: Tensor) -> Tensor:
        shape = [n + more if n > 1 else n for n in t.shape]
        count = torch.Size(shape).numel()
        if not t.numel():
            return t
        turns = torch.arange(count) % t.numel()
        return t.flatten().index_select(0, turns).reshape(shape)

    return map_tensors(value, one)


@pytest.mark.parametrize("op", [op for op in records() if op.any_size], ids=lambda op: str(op.name))
def test_ops(op: Op) -> None:
    """Each op, on one size after the other."""
    if is_random(op) or op.random:
        pytest.skip("random")
    for args, kwargs in samples(op, torch.float32):
        for more in range(SIZES):
            given, named = resized((args, kwargs), more)
            what = f"{op.name}{[tuple(t.shape) for t in tensors_in((given, named))]}{named}"
            result = outcome(lambda: op(*given, **named))  # noqa: B023
            with native.off():
                expected = outcome(lambda: op(*given, **named))  # noqa: B023
            if isinstance(expected, type):
                assert result is expected, what
                continue
            assert looks(result) == looks(expected), what
            same_elements(result, expected, what)


def test_what_is_not_for_any_size() -> None:
    """Other shapes of as many dims, rows, gradients, other layouts: each as it is planned."""
    calls: list[Callable[..., Any]] = [
        lambda a: a + a[0], lambda a: a * a[:, :1], lambda a: a.sum(0), lambda a: a.sum(1),
        lambda a: a[:, ::2] + a[:, ::2], lambda a: a[:, ::2].sum(), lambda a: a[:1].sum(0),
        lambda a: a[:1].sum(1), lambda a: a.t() + a.t(), lambda a: a.t().exp(),
        lambda a: (a * 2).requires_grad_().exp(), lambda a: a + a.double(), lambda a: a == a,
        lambda a: a.max(1).values, lambda a: torch.where(a > 0.5, a, a),
    ]  # fmt: skip
    for n in range(400, 412):
        a = torch.rand(3, n)
        results = [call(a) for call in calls]
        with native.off():
            expected = [call(a) for call in calls]
        for found, wanted in zip(results, expected, strict=True):
            assert looks(found) == looks(wanted)
            same_elements(found, wanted, f"{tuple(wanted.shape)}")


def test_gradients() -> None:
    for n in range(420, 432):
        a = torch.rand(3, n, requires_grad=True)
        (a * 2).exp().sum().backward()
        same_elements(a.grad, 2 * (a.detach() * 2).exp(), "gradient")


def test_around_the_largest() -> None:
    """Sizes on both sides of the one from which kernels run without the interpreter lock."""
    largest = gil_threshold()
    for n in range(largest - 4, largest + 4):
        a = torch.arange(n, dtype=torch.int64)
        assert int((a + a)[-1]) == 2 * (n - 1)
        assert int(a.sum()) == n * (n - 1) // 2
        assert int(a.neg()[-1]) == 1 - n


def test_memory_that_went_away() -> None:
    """A tensor whose storage has become too small, of a size not met: the usual error."""
    for n in range(500, 506):
        torch.rand(n).exp() + 1.0
    for n in range(506, 512):
        a = torch.rand(n)
        a.untyped_storage().resize_(16)
        for call in (lambda t: t + 1.0, lambda t: t.exp(), lambda t: t.sum(), lambda t: t + t):
            with pytest.raises((RuntimeError, IndexError)):
                call(a)


def test_numbers_that_do_not_fit() -> None:
    """Numbers that the kernel cannot be given raise what Python raises."""
    for n in range(600, 606):
        torch.arange(n) + 1
    for n in range(606, 612):
        with pytest.raises((RuntimeError, OverflowError)):
            torch.arange(n) + 2**70


def test_written_with_itself() -> None:
    """``x.mul_(x)`` reads what it writes, element by element; a shifted view is copied first."""
    for n in range(700, 706):
        x, y = torch.arange(float(n)) % 3, torch.arange(float(n)) % 3
        x.mul_(x)
        assert x.tolist() == [float(k % 3) ** 2 for k in range(n)]
        y[2:].add_(y[2:])
        assert y.tolist() == [float(k % 3) * (2 if k > 1 else 1) for k in range(n)]
        with pytest.raises(RuntimeError, match="single memory location"):
            y[1:].add_(y[:-1])


INDICES: list[Callable[[int, int], Any]] = [
    lambda i, j: i, lambda i, j: slice(i, j), lambda i, j: (i, j), lambda i, j: (slice(None), j),
    lambda i, j: (slice(i, j), i), lambda i, j: (i, slice(j, None)), lambda i, j: slice(None, -j),
    lambda i, j: (slice(i, i + 2), slice(j, j + 2)), lambda i, j: (slice(i, j), slice(j, i)),
    lambda i, j: slice(i, j, 1), lambda i, j: slice(i, j, 2), lambda i, j: (None, i),
    lambda i, j: (..., j), lambda i, j: (i, j, 0), lambda i, j: True, lambda i, j: (i, True),
]  # fmt: skip


@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("recorded", [False, True])
def test_views_that_begin_anywhere(wants: bool, recorded: bool) -> None:
    """Integers and slices of all kinds, in and out of range, of dense and strided tensors."""
    whole = torch.arange(60.0).view(3, 4, 5).requires_grad_(wants)
    for x in (whole, whole[:, 1:3], whole.permute(2, 0, 1), whole[0], whole.detach()[1, 2]):
        for index in INDICES:
            for i in range(-4, 5):
                for j in range(-3, 4):
                    where = index(i, j)
                    with torch.set_grad_enabled(recorded):
                        result = outcome(lambda: x[where])  # noqa: B023
                        with native.off():
                            expected = outcome(lambda: x[where])  # noqa: B023
                    if isinstance(expected, type):
                        assert result is expected, where
                        continue
                    assert looks(result) == looks(expected), where
                    same_elements(result, expected, str(where))


def test_views_that_begin_anywhere_share_and_are_counted() -> None:
    x = torch.zeros(50, 3)
    for i in range(50):
        x[i].add_(i)
    assert x[:, 1].tolist() == list(range(50))
    y = x[7]
    x.mul_(2)
    assert y.tolist() == [14, 14, 14]
    assert (y._base is x, y._version, x._version) == (True, 51, 51)
