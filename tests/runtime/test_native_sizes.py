"""Calls at sizes never met, served natively: the results of the Python path, and nothing left."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import antorcha as torch
from antorcha.ops.kinds.record import REGISTRY
from antorcha.runtime.call import native, plan, sizes
from antorcha.runtime.call.native import checking, methods, promote_sizes, sized
from antorcha.runtime.call.native.places import Quick
from antorcha.runtime.memory.alloc import stats
from antorcha.runtime.sequence import sequence_of
from tests.ops.test_sizes import CASES
from tests.runtime.watch import functions_run

pytestmark = pytest.mark.skipif(not native.ACTIVE, reason=native.why_not())
F = torch.nn.functional
SIZES = (*range(2, 40), 64, 65, 100, 257, 1, 3000)
ONE_BY_ONE = {
    "grad",
    "linear",
    "cross entropy",
    "convolution",
    "in place",
    "assigned",
    "var",
    "index_add",
}
"""Cases that record, write in place, or are made of several ops."""
MORE: dict[str, tuple[Callable[..., Any], list[Callable[[int], Any]]]] = {
    "view": (lambda a, n: a.view(n, 2, 4), [lambda n: torch.rand(n, 8), lambda n: n]),
    "view by the rest": (lambda a: a.view(-1, 4), [lambda n: torch.rand(n, 8)]),
    "reshape": (lambda a, n: a.t().reshape(n, 8), [lambda n: torch.rand(n, 8), lambda n: n]),
    "permute": (lambda a: a.permute(2, 0, 1), [lambda n: torch.rand(n, 8, 3)]),
    "expand": (lambda a, n: a.expand(n, 8), [lambda n: torch.rand(8), lambda n: n]),
    "chunk": (lambda a: a.chunk(2, 1), [lambda n: torch.rand(n, 8)]),
    "split": (lambda a: a.split(2), [lambda n: torch.rand(n, 3)]),
    "tensor_split": (lambda a: a.tensor_split(3), [lambda n: torch.rand(n, 3)]),
    "two results": (lambda a: a.max(0), [lambda n: torch.rand(n, 8)]),
    "topk": (lambda a: a.topk(2), [lambda n: torch.rand(n, 8)]),
    "tril": (torch.tril, [lambda n: torch.rand(n, n)]),
    "number": (lambda a: torch.clamp(a.t(), 0.25, 0.5), [lambda n: torch.rand(n, 8)]),
    "mean": (lambda a: a[:, :, 1:].mean(0), [lambda n: torch.rand(3, 4, n)]),
    "operator": (lambda a, b: a[:, :3] - b, [lambda n: torch.rand(n, 8), lambda n: torch.rand(3)]),
    "half": (lambda a: a.softmax(-1), [lambda n: torch.rand(n, 8).half()]),
    "addmm": (
        torch.addmm,
        [lambda n: torch.rand(5), lambda n: torch.rand(n, 8), lambda n: torch.rand(8, 5)],
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    plan.flush()
    yield
    plan.flush()


def native_calls() -> int:
    at = Quick.fields["counts"][0] // 8
    return sum([memory[at] for _, memory in methods.quicks])


def facts(made: Any) -> list[Any]:
    several = made if isinstance(made, (tuple, list)) else [made]
    return [
        (
            t.nan_to_num(7).tolist(),
            t.shape,
            t.stride(),
            t.storage_offset(),
            t.dtype,
            t._base is None,
        )
        for t in several
    ]


EVERY = {**{name: case for name, case in CASES.items() if name not in ONE_BY_ONE}, **MORE}


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What outlines are for machine code."""
    found: list[Any] = []
    sized_of = promote_sizes.sized_of

    def noted(outline: Any) -> Any:
        found.append(sized_of(outline))
        return found[-1]

    monkeypatch.setattr(promote_sizes, "sized_of", noted)
    return found


@pytest.mark.parametrize("name", EVERY)
def test_results_are_those_of_the_python_path(name: str, machines: list[Any]) -> None:
    run, makers = EVERY[name]
    for n in SIZES:
        if n == 3000 and name in ("tril", "transposed", "matmul", "bmm"):
            n = 300
        args = [make(n) for make in makers]
        known = list(args[0]) if name == "zeros" else args
        for _ in range(2 if n < 6 else 1):
            ours = facts(run(*known))
        with native.off():
            assert ours == facts(run(*known)), n
    assert any([each is not None for each in machines]), sizes.refused


def test_a_size_that_was_never_met_needs_no_python() -> None:
    x = torch.rand(5000, 8)
    calls = [lambda n: x[:n].softmax(-1), lambda n: x[:n].cumsum(0), lambda n: x[:n].view(n, 2, 4),
             lambda n: x[:n].t(), lambda n: torch.cat((x[:n], x[:1]))]  # fmt: skip
    for call in calls:
        for n in range(1000, 1060):
            call(n)
        before = native_calls()
        planned = plan.count()
        for n in range(2000, 2400):
            call(n)
        # (The first of those that some question has another answer for are planned.)
        assert native_calls() - before >= 790
        assert plan.count() <= planned + 40


def test_a_recorded_function_of_one_op_needs_no_python() -> None:
    x, classes = torch.rand(5000, 8), torch.zeros(5000, dtype=torch.int64)
    w = torch.rand(8, 8).requires_grad_()
    for n in range(1000, 1060):
        F.cross_entropy(x[:n] @ w, classes[:n])
    before = native_calls()
    for n in range(2000, 2400):
        F.cross_entropy(x[:n] @ w, classes[:n])
    assert native_calls() - before >= 4 * 395  # two slices, a product and the function


def test_assigning_to_a_slice_never_met_needs_no_plan() -> None:
    x, y = torch.zeros(5000), torch.ones(5000)
    for n in range(1000, 1010):
        x[1:n] = y[1:n]
    planned = plan.count()
    for n in range(2000, 2100):
        x[1:n] = y[1:n]
    assert plan.count() <= planned + 10


def test_words_are_those_of_the_outline() -> None:
    """What machine code works out is what Python's program gives, wherever either does."""
    for n in range(3, 30):
        for case, makers in EVERY.values():
            args = [make(n) for make in makers]
            case(*(args[0] if isinstance(args[0], tuple) else args))
    compared = 0
    for family in sizes._families.values():
        for outline in family.outlines:
            block = promote_sizes.sized_of(outline)
            if block is None:
                continue
            for n in (2, 3, 7, 31, 64, 1000):
                numbers = [n + k % 2 for k in range(outline.given)]
                ours, theirs = sized.evaluated(block, *numbers), outline.program(*numbers)
                assert (ours is None) == (theirs is None), (outline.plan.op, numbers)
                if ours is not None:
                    every = {*numbers, *[word for group in theirs for word in group]}
                    held = sequence_of(getattr(outline.plan, "fresh", None))
                    if held is not None:  # one without sizes in it
                        every |= {*memoryview(held).cast("B").cast("q")}
                    for value in outline.plan.statics.values():  # what a node's plan says of them
                        every |= (
                            {n for n in value if type(n) is int} if type(value) is tuple else set()
                        )
                    assert set(ours) - every <= {0, id(promote_sizes._unexplained), *ours[:2]}
                    compared += 1
    assert compared > 100


def test_a_key_with_sizes_is_none_without() -> None:
    """Sizes of 2 are also the example of many sizes."""
    for n in (3, 4, 5, 6, 2, 2, 2, 2, 7):
        for shape in ((n,), (n, n), (2, n), (n, 2, 2)):
            assert torch.zeros(shape).shape == shape
            assert torch.zeros(8 * n).view(n, 4, 2).shape == (n, 4, 2)
            assert torch.ones(1).expand(shape).shape == shape


def test_numbers_too_large_are_left_to_python() -> None:
    known: list[Any] = []
    for _ in range(3):  # (what is refused for a moment, or emptied on the way, is asked for again)
        plan.flush()
        for n in range(3, 12):
            torch.rand(n, 8).t().softmax(-1)
        ours = [f for key, f in sizes._families.items() if key[0] is REGISTRY["softmax"]]
        known = [family for family in ours if family.outlines]
        if known:
            break
    assert len(known) == 1, sizes.refused.get("softmax")
    (family,) = known
    block = promote_sizes.sized_of(family.outlines[0])
    assert block is not None
    assert sized.evaluated(block, *[1 << 40] * family.outlines[0].given) is None


def test_errors_are_pythons() -> None:
    table = torch.rand(5, 3)
    for n in range(3, 60):
        F.embedding(torch.arange(n) % 5, table)
        table.index_select(0, torch.arange(n) % 5)
        torch.rand(n, 8) @ torch.rand(8, n)
    for n in (70, 71, 72):
        bad = torch.arange(n) % 6
        with pytest.raises(IndexError, match="out of range"):
            F.embedding(bad, table)
        with pytest.raises(IndexError, match="size 5"):
            table.index_select(0, bad)
        with pytest.raises(RuntimeError, match=f"inner sizes {n} and 8"):
            torch.rand(2, n) @ torch.rand(8, n)


def test_nothing_is_left() -> None:
    x = torch.rand(9000, 8)

    def round_of(first: int) -> None:
        for n in range(first, first + 600):
            x[:n].softmax(-1)
            x[:n].sort(0)
            x[:n].t().contiguous()

    round_of(1000)
    plan.flush()
    gc.collect()
    before = stats().live
    round_of(3000)
    plan.flush()
    gc.collect()
    assert abs(stats().live - before) < 10_000


@pytest.mark.skipif(checking.CHECKED, reason="tables are checked while other threads change them")
def test_threads_meet_sizes_at_once() -> None:
    failures: list[BaseException] = []
    x = torch.ones(4000, 8)

    def work(seed: int) -> None:
        try:
            for n in range(100 + seed, 1500, 3):
                assert x[:n].cumsum(0)[-1, 0].item() == n
                assert x[:n].t().contiguous().shape == (8, n)
                if n % 200 == 0:
                    plan.flush()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_what_warns_warns_each_time() -> None:
    """A function that warns is not served without its warning, and planning it warns nobody."""
    f = torch.nn.functional
    a, b = torch.rand(3, 4), torch.rand(3, 4)
    for _ in range(8):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            f.kl_div(a, b)
            f.dropout2d(torch.ones(3, 4))
        assert len(said) == 2


def test_a_function_that_gives_its_argument_gives_that() -> None:
    x, w = torch.ones(3, 4), torch.ones(3, 4, requires_grad=True)
    for t in (x, w, x.t(), torch.nn.Parameter(x)):
        for _ in range(8):
            assert t.contiguous() is t or not t.is_contiguous()
            assert torch.nn.functional.dropout(t, training=False) is t


def test_one_tensor_may_be_two_arguments() -> None:
    x, m = torch.arange(4.0), torch.arange(9.0).view(3, 3)
    expected = torch.outer(x, x).tolist(), torch.einsum("ij,jk->ik", m, m).tolist()
    for _ in range(8):
        found = torch.outer(x, x).tolist(), torch.einsum("ij,jk->ik", m, m).tolist()
        assert found == expected
        other = torch.outer(x, x + 1)
        assert other.tolist() == [[a * (b + 1) for b in range(4)] for a in range(4)]


def test_what_is_met_once_is_not_learnt_as_if_it_were_met_again() -> None:
    """A layout lies where one lay that is gone: that is not the same call once more."""
    base = torch.rand(1100, 32)
    calls: dict[str, Callable[[int], Any]] = {
        "index": lambda n: base[torch.arange(n)],
        "embedding": lambda n: F.embedding(torch.arange(n), base),
        "view": lambda n: base[:n].view(n, 4, 8).permute(2, 0, 1),
        "copied": lambda n: base[:n].view(n, 4, 8).transpose(0, 1).contiguous(),
    }
    learnt = {}
    for name, call in calls.items():
        for n in range(2, 300):
            call(n)

        def run(call: Callable[[int], Any] = call) -> None:
            for n in range(300, 1000):
                call(n)

        learnt[name] = [f for file, f in functions_run(run) if file.endswith("promote.py")]
    # (A few hashes are the same by accident.)
    assert not {name: len(names) for name, names in learnt.items() if len(names) > 40}
