"""The facts of a tensor: right for every kind, bounded, and gathered without leaving a trace."""

from __future__ import annotations

import contextlib
import doctest
import gc
import importlib
import json
import math
import subprocess
import sys
import threading
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.core import modes
from antorcha.errors import ArgumentError
from antorcha.inspector.reading import Elements, steps_for
from antorcha.inspector.tensor.facts import TensorFacts, gather
from antorcha.inspector.tensor.memory import Gap, MemoryPicture, _MemoryView
from antorcha.runtime.memory.layout import table_size
from tests.patience import PATIENCE


def memory(t: Any) -> MemoryPicture:
    found = gather(t).memory
    assert found is not None
    return found


def read_by(t: Any) -> dict[int, int]:
    """Cell -> place in the view's order, as the picture has it."""
    return {c.position: c.order for c in memory(t).shown() if c.order is not None}


def reads(t: Any) -> dict[int, int]:
    """The same by walking over all indices."""
    found: dict[int, int] = {}
    for order, index in enumerate(np.ndindex(*t.shape)):
        cell = t.storage_offset() + sum(i * s for i, s in zip(index, t.stride(), strict=True))
        found.setdefault(cell, order)
    return found


VIEWS = {
    "whole": lambda x: x,
    "transposed": lambda x: x.t(),
    "view of a view": lambda x: x.t()[1:3, ::2],
    "every other": lambda x: x[:, 1::2],
    "one element": lambda x: x[2, 3],
    "expanded": lambda x: x[1].expand(3, 6),
    "windows": lambda x: x.view(-1).unfold(0, 4, 1),
    "diagonal": lambda x: x.diagonal(),
    "nothing": lambda x: x[:0],
    "permuted": lambda x: x.view(2, 3, 4).permute(2, 0, 1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_the_cells_of_a_view(name: str) -> None:
    view = VIEWS[name](torch.arange(24.0).view(4, 6))
    drawn = memory(view)
    assert drawn.whole
    assert [cell.value for cell in drawn.shown()] == [f"{k}.0" for k in range(24)]
    assert read_by(view) == reads(view)
    assert drawn.read == len(reads(view))
    assert drawn.repeats == (len(reads(view)) < view.numel())
    for cell in drawn.shown():
        if cell.index is not None:
            assert view[cell.index].item() == float(cell.value)


def test_how_often_a_cell_is_read() -> None:
    x = torch.arange(6.0)
    assert [c.readers for c in memory(x[:2].expand(3, 2)).shown()] == [3, 3, 0, 0, 0, 0]
    assert [c.readers for c in memory(x.unfold(0, 3, 1)).shown()] == [1, 2, 3, 3, 2, 1]


def test_a_large_storage_is_drawn_in_parts() -> None:
    x = torch.arange(100_000.0).view(100, 1000)[:, 10:]
    drawn = memory(x)
    assert not drawn.whole
    assert len(drawn.shown()) < 60
    at = 0
    for part in drawn.parts:  # cells and gaps, one after the other, are the whole storage
        first = part.first if isinstance(part, Gap) else part[0].position
        assert first == at
        at += part.count if isinstance(part, Gap) else len(part)
    assert at == drawn.cells == 100_000
    cells = {cell.position: cell for cell in drawn.shown()}
    assert cells[0].order is None
    assert cells[10].order == 0
    assert cells[1010].index == (1, 0)
    assert cells[99_999].index == (99, 989)
    assert cells[1010].value == "1010.0"
    assert [(s.dim, s.stride, s.target) for s in drawn.steps] == [(0, 1000, 1010), (1, 1, 11)]


def test_overlapping_windows_are_bounded() -> None:
    drawn = memory(torch.zeros(3000).unfold(0, 1000, 1))
    assert drawn.read is None
    assert drawn.repeats is None
    assert max(cell.readers for cell in drawn.shown()) <= 100


def test_entangled_strides_take_no_time() -> None:
    # Which of these dims lead to a cell is the problem of the subset with a given sum.
    strides = [(k * 7919) % 10007 + 500 for k in range(1, 31)]
    x = torch.zeros(200_000).as_strided((2,) * 30, strides)
    view = _MemoryView(x.shape, x.stride(), 0)
    cells = [view.cell(sum(strides[:k]) + k % 2, "") for k in range(30)]
    assert [cell.readers for cell in cells if cell.readers is None]  # too long to say, and said
    for cell in cells:
        if cell.index is not None:
            assert sum(i * s for i, s in zip(cell.index, strides, strict=True)) == cell.position


LAYOUTS = [
    (lambda: torch.zeros(2, 3), "contiguous"),
    (lambda: torch.zeros(2, 3).t(), "permuted"),
    (lambda: torch.zeros(4, 3)[::2], "strided"),
    (lambda: torch.zeros(3).expand(2, 3), "overlapping"),
    (lambda: torch.zeros(6).unfold(0, 3, 1), "overlapping"),
    (lambda: torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last), "channels_last"),
]


@pytest.mark.parametrize(("make", "word"), LAYOUTS)
def test_the_layout_has_a_word(make: Any, word: str) -> None:
    facts = gather(make())
    assert facts.layout == word
    assert facts.axes is None  # nobody has told them, and strides do not tell them for certain


KINDS: list[Any] = [
    torch.tensor(3.5),
    torch.zeros(0, 3),
    torch.tensor([True, False]),
    torch.tensor([1 + 2j, complex("nan"), complex("inf")]),
    torch.tensor([0.1, float("nan"), float("-inf")], dtype=torch.bfloat16),
    torch.ones(3).half(),
    torch.tensor([2**63 - 1, -(2**63)]),
    torch.tensor([1e308, -1e308], dtype=torch.float64),
    torch.ones(2, 3, device="meta"),
    torch.ones(2, 3, device="reference"),
    torch.conj(torch.tensor([[1 + 2j]])).T,
    torch.nn.Parameter(torch.ones(2)),
    torch.from_numpy(np.arange(3)[::1]),
    torch.rand(2, 3, 9, 9),
    torch.zeros(()).expand(2, 2, 2, 2, 2),
]


@pytest.mark.parametrize("k", range(len(KINDS)))
@pytest.mark.parametrize("brief", [False, True])
def test_every_kind_has_facts_that_json_takes(k: int, brief: bool) -> None:
    facts = gather(KINDS[k], brief=brief)
    found = json.loads(json.dumps(facts.as_dict(), allow_nan=False))
    assert found["shape"] == list(KINDS[k].shape)
    assert found["dtype"] == str(KINDS[k].dtype).removeprefix("torch.")
    assert (facts.statistics is None) == (facts.why_no_values != "") == KINDS[k].is_meta


def statistics(t: Any) -> Any:
    found = gather(t).statistics
    assert found is not None
    return found


def test_statistics_are_those_of_the_ops() -> None:
    torch.manual_seed(0)
    x = torch.randn(300, 70)[:, 3:].t()
    found = statistics(x)
    assert found.count == found.looked_at == x.numel()
    assert (found.min, found.max) == (x.min().item(), x.max().item())
    assert found.mean == pytest.approx(x.double().mean().item(), abs=1e-12)
    assert found.std == pytest.approx(x.double().std().item(), rel=1e-12)
    counts, _ = np.histogram(x.numpy(), 20)
    assert sum(found.histogram.counts) == x.numel()
    assert np.abs(np.array(found.histogram.counts) - counts).max() <= 1  # rounding at the edges


def test_what_is_not_finite_is_counted() -> None:
    inf, nan = math.inf, math.nan
    found = statistics(torch.tensor([nan, inf, inf, -inf, 0.0, -0.0, 2.0]))
    assert (found.nan, found.posinf, found.neginf, found.zeros, found.finite) == (1, 2, 1, 2, 3)
    assert (found.min, found.max) == (0, 2)
    nothing = statistics(torch.tensor([nan]))
    assert (nothing.min, nothing.mean, nothing.std, nothing.histogram) == (None,) * 4


def test_numbers_at_the_limits() -> None:
    integers = statistics(torch.tensor([2**63 - 1, -(2**63)]))
    assert (integers.min, integers.max) == (-(2**63), 2**63 - 1)
    assert sum(integers.histogram.counts) == 2
    huge = statistics(torch.tensor([1.7e308, -1.7e308], dtype=torch.float64))
    assert huge.mean == 0
    assert huge.histogram.counts == (1, *[0] * 18, 1)
    tiny = statistics(torch.tensor([5e-324, 0.0], dtype=torch.float64))
    assert sum(tiny.histogram.counts) == 2
    assert statistics(torch.tensor([3, 5, 5])).histogram.counts == (1, 0, 2)
    assert statistics(torch.tensor([True, True, False])).histogram.counts == (1, 2)


def test_complex_values_count_by_magnitude() -> None:
    found = statistics(torch.tensor([3 + 4j, 0j]))
    assert found.of_magnitude
    assert (found.min, found.max, found.zeros) == (0, 5, 1)


def test_a_large_tensor_is_sampled_in_bounded_memory() -> None:
    big = torch.empty(1 << 28)  # 1 GiB of addresses: memory that nobody has written to costs none
    before = table_size()
    torch.inspect(big).html()  # what is imported and compiled once is not its own
    tracemalloc.start()
    try:
        for view in (big, big.view(1 << 14, 1 << 14).t()[1:, ::3]):
            tracemalloc.reset_peak()
            start = tracemalloc.get_traced_memory()[0]
            facts = gather(view)
            torch.inspect(view).html()
            assert tracemalloc.get_traced_memory()[1] - start < 1 << 20
            assert facts.statistics is not None
            assert 0 < facts.statistics.looked_at <= 1 << 15
            assert facts.statistics.sampled
    finally:
        tracemalloc.stop()
    assert table_size() <= before + 4  # of the views here; plans of the program are not pushed out


def test_a_sample_is_spread_over_all_dims() -> None:
    assert steps_for((1 << 14, 1 << 14), 1 << 15) == (91, 91)
    assert steps_for((3, 1 << 20), 300) == (1, 10487)
    x = torch.zeros(1 << 11, 1 << 11)
    x[:, ::2] = 1
    found = statistics(x)
    assert found.sampled
    assert 0.45 < found.mean < 0.55


def test_a_freed_storage() -> None:
    x = torch.arange(6.0)
    y = x[3:]
    x.untyped_storage().resize_(0)
    facts = gather(y)
    assert (facts.why_no_values, facts.storage.nbytes, facts.storage.needed) == ("freed", 0, 24)
    assert facts.memory is not None
    assert facts.memory.shown() == []
    x.untyped_storage().resize_(16)
    assert len(memory(y).shown()) == 4


def test_no_elements_need_no_memory() -> None:
    x = torch.arange(5.0)
    end = x[5:]
    x.untyped_storage().resize_(0)
    facts = gather(end)
    assert facts.why_no_values == ""
    assert facts.statistics is not None
    assert facts.statistics.count == 0


def test_nothing_changes() -> None:
    x = torch.arange(6.0).requires_grad_()
    y = (x * 2).view(2, 3)
    node, version, word = y.grad_fn, y._version, modes.state.word
    for context in (torch.no_grad(), torch.enable_grad(), torch.inference_mode()):
        with context:
            inside = modes.state.word
            gather(y)
            assert modes.state.word == inside
    assert y.grad_fn is node
    assert (y._version, modes.state.word) == (version, word)
    y.sum().backward()
    assert x.grad is not None


def autograd(t: Any) -> Any:
    return gather(t).autograd


def test_the_place_in_the_graph() -> None:
    x = torch.ones(3, requires_grad=True)
    assert autograd(x).requires_grad
    assert autograd(x).is_leaf
    assert autograd(x).grad is None
    y = x.exp()
    y.retain_grad()
    assert (autograd(y).grad_fn, autograd(y).is_leaf, autograd(y).retains_grad) == (
        "ExpBackward0", False, True,
    )  # fmt: skip
    y.sum().backward()
    grad = autograd(x).grad
    assert grad.shape == (3,)
    assert grad.statistics.mean == pytest.approx(math.e, rel=1e-6)
    with torch.inference_mode():
        z = torch.ones(2)
    assert autograd(z).is_inference
    assert gather(z).storage.version is None


def test_the_version_counts_writes() -> None:
    x = torch.zeros(3)
    x.add_(1)
    x[0] = 2
    assert gather(x[1:]).storage.version == 2


def test_a_view_in_the_graph() -> None:
    view = (torch.ones(4, requires_grad=True) * 2).view(2, 2)
    assert autograd(view).grad_fn == view.grad_fn.name() == "ViewBackward0"
    with torch.no_grad():
        part = view[0]
    assert (autograd(part).grad_fn, autograd(part).requires_grad) == ("", False)


def test_a_stale_view_stays_stale() -> None:
    base = torch.ones(4)
    view = base[:2]
    base.mul_(torch.ones(4, requires_grad=True))
    fn, seen = view._fn, view._seen
    found = autograd(view)
    assert (view._fn, view._seen) == (fn, seen)  # nothing was made afresh
    assert found.requires_grad is view.requires_grad is True
    assert found.grad_fn == view.grad_fn.name() == "AsStridedBackward0"
    assert autograd(view) == found


def test_a_view_whose_history_cannot_be_told() -> None:
    base = torch.ones(4, requires_grad=True) * 1
    first, _ = base.unbind()[:2]
    base.add_(1)
    with pytest.raises(RuntimeError, match="modified inplace"):
        _ = first.grad_fn
    assert "modified inplace" in autograd(first).problem


def test_subclasses_in_a_process_of_their_own() -> None:
    # The first subclass makes every later call of the process look closer.
    cases = Path(__file__).with_name("subclass_cases.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(cases)],
        capture_output=True, text=True, timeout=PATIENCE, cwd=cases.parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.parametrize("wrong", [None, 3, [1.0], np.ones(2), torch.Tensor, "x"])
def test_what_is_no_tensor_is_refused(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="inspect: a tensor is needed"):
        gather(wrong)


def test_a_tensor_without_fields_is_refused() -> None:
    with pytest.raises(TypeError, match=r"object.__new__"):
        gather(object.__new__(torch.Tensor))


def test_axes() -> None:
    x = torch.zeros(2, 3)
    assert gather(x, axes=("rows", "columns")).axes == ("rows", "columns")
    assert gather(x, axes="NC").axes == ("N", "C")
    for wrong, text in (("NCHW", "names 1 dims"), (("a",), "names 1"), (3, "must be names")):
        with pytest.raises(TypeError, match=text):
            gather(x, axes=wrong)  # type: ignore[arg-type]


def image(t: Any, axes: Any = None) -> Any:
    return gather(t, axes=axes).image


def test_what_is_a_picture() -> None:
    torch.manual_seed(0)
    assert image(torch.rand(3, 20, 30)).width == 30
    assert image(torch.rand(1, 20, 30)).height == 20
    assert image(torch.randint(0, 256, (5, 3, 9, 9), dtype=torch.uint8)).of_batch == 0
    assert image(torch.rand(20, 30, 3), axes="HWC").width == 30
    assert image(torch.rand(3, 1000, 400)).step == 8
    for other in (
        torch.randn(3, 20, 30), torch.rand(20, 30), torch.rand(3, 4, 4), torch.zeros(3, 20, 30),
        torch.rand(4, 20, 30), torch.rand(3, 20, 0), torch.randint(0, 9, (3, 9, 9)),
    ):  # fmt: skip
        assert image(other) is None
    assert image(torch.rand(3, 20, 30), axes=("classes", "x", "y")) is None
    assert image(torch.rand(3, 20, 30), axes="CHW").stretched is None
    assert image(torch.tensor([[[float("nan")] * 9] * 9]), axes="CHW") is None


def test_a_picture_of_other_values_is_stretched_where_axes_say_that_it_is_one() -> None:
    plt = pytest.importorskip("matplotlib.pyplot", reason="reads the PNG with matplotlib")
    import io

    x = torch.linspace(-3, 2, 80).view(1, 8, 10)
    found = image(x, axes="CHW")
    assert found.stretched == (-3.0, 2.0)
    read = np.rint(plt.imread(io.BytesIO(found.png)) * 255)
    assert np.array_equal(read, np.rint((x[0].numpy().astype(float) + 3) / 5 * 255))
    html = torch.inspect(x, axes="CHW", name="x").html()
    assert "10 x 8 pixels; from -3.0, black, to 2.0, white" in html


def test_a_picture_is_a_png_of_its_pixels() -> None:
    plt = pytest.importorskip("matplotlib.pyplot", reason="reads the PNG with matplotlib")
    import io

    x = torch.arange(3 * 8 * 10, dtype=torch.uint8).view(3, 8, 10)
    read = plt.imread(io.BytesIO(image(x).png))
    assert np.array_equal(np.rint(read * 255), x.permute(1, 2, 0).numpy())


def test_a_device_whose_memory_is_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.arange(12.0, device="reference").view(3, 4)
    here = gather(x.t())
    from antorcha.core.device import backend

    monkeypatch.setattr(backend(x.device), "host_memory", False)
    assert gather(x.t()) == here


def test_another_thread_writes() -> None:
    x = torch.zeros(40_000)
    stop = threading.Event()

    def write() -> None:
        k = 0
        while not stop.is_set():
            x.numpy()[:] = [k, 1e30, math.nan][k % 3]
            k += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            json.dumps(gather(x).as_dict(), allow_nan=False)
    finally:
        stop.set()
        writer.join()


def test_another_thread_takes_the_memory_away(monkeypatch: pytest.MonkeyPatch) -> None:
    # The storage shrinks at every moment at which it is looked at.
    block, moments = Elements.block, 0
    for moment in range(1, 9):
        x = torch.arange(6.0)
        x.grad = torch.ones(6)
        seen: list[int] = []

        def at_a_bad_moment(
            self: Any, *args: Any, x: Any = x, at: int = moment, n: Any = seen
        ) -> Any:
            n.append(1)
            if len(n) == at:
                for each in (x, x.grad):
                    each.untyped_storage().resize_(4)
            return block(self, *args)

        monkeypatch.setattr(Elements, "block", at_a_bad_moment)
        facts = gather(x)
        json.dumps(facts.as_dict(), allow_nan=False)
        if len(seen) >= moment:
            moments += 1
            assert "freed" in (facts.why_no_values, facts.autograd.grad.why_not) or (
                facts.memory.shown()[0].value == ""
            )
    assert moments >= 3


def test_threads_resize_while_it_is_looked_at() -> None:
    x = torch.zeros(5000)
    stop = threading.Event()

    def resize() -> None:
        while not stop.is_set():
            for size in (0, 20_000):
                with contextlib.suppress(BufferError):  # while it is being read it stays
                    x.untyped_storage().resize_(size)

    thread = threading.Thread(target=resize)
    thread.start()
    try:
        for _ in range(50):
            assert gather(x).why_no_values in ("", "freed")
    finally:
        stop.set()
        thread.join()


def test_facts_hold_no_tensor() -> None:
    x = torch.ones(3)
    y = x.view(3)
    refs = [weakref.ref(x), weakref.ref(y)]
    facts = gather(x, names={"x": x, "y": y})
    assert facts.sharing.others[0].name == "y"
    del x, y
    assert [ref() for ref in refs] == [None, None]
    assert isinstance(facts, TensorFacts)


MODULES = [
    f"antorcha.inspector.{name}" for name in ("numbers", "reading", "tensor.facts", "tensor.values")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), globs=None).failed == 0


def test_gathering_leaves_nothing_behind() -> None:
    x = torch.ones(100, 100)
    gather(x)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        gather(x)
    gc.collect()
    assert len(gc.get_objects()) - before < 50
