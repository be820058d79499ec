"""utils.benchmark: what is measured, printed and compared; the texts are PyTorch's."""

from __future__ import annotations

import importlib
import itertools
import re
from typing import Any

import pytest

import antorcha
from antorcha.utils import benchmark

LIBRARIES = ["antorcha", pytest.param("torch", marks=pytest.mark.oracle)]


@pytest.fixture(params=LIBRARIES)
def lib(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip(request.param)
    return importlib.import_module(f"{request.param}.utils.benchmark")


def measurements(lib: Any) -> list[Any]:
    def task(**kwargs: Any) -> Any:
        return lib.TaskSpec(stmt="x @ y", setup="pass", **kwargs)

    times = [
        [1e-5, 1.1e-5, 1.05e-5, 1.07e-5, 1.02e-5],
        [2e-4, 2.5e-4, 3.1e-4, 2.2e-4, 2.1e-4],
        [3.14159e-6] * 6,
        [7e-5, 7.1e-5],
        [1.2e-3, 1.21e-3, 1.19e-3, 1.205e-3],
        [9e-6, 9.1e-6, 9.2e-6],
    ]
    where = [("mul", "small"), ("mul", "large"), ("add", "small"), ("add", "large"),
             ("mul", "small"), ("sub", "small")]  # fmt: skip
    made = [
        lib.Measurement(
            10, [10 * t for t in each],
            task(label="ops", sub_label=sub, description=what, num_threads=1 + (k == 4)),
        )
        for k, (each, (sub, what)) in enumerate(zip(times, where, strict=True))
    ]  # fmt: skip
    other = task(label="ops", sub_label="mul", description="small")
    made.append(lib.Measurement(1, [1e-5], other))
    made.append(lib.Measurement(100, [0.5, 0.6], task(label="rest", description="only")))
    return made


@pytest.mark.oracle
def test_tables_are_pytorchs() -> None:
    theirs = importlib.import_module("torch.utils.benchmark")
    for trim, highlight, color in itertools.product((0, 1), (0, 1), (None, False, True)):
        texts = []
        for lib in (benchmark, theirs):
            table = lib.Compare(measurements(lib))
            if trim:
                table.trim_significant_figures()
            if highlight:
                table.highlight_warnings()
            if color is not None:
                table.colorize(rowwise=color)
            texts.append(str(table))
        assert texts[0] == texts[1]


@pytest.mark.oracle
def test_measurements_are_printed_as_pytorch_does() -> None:
    theirs = importlib.import_module("torch.utils.benchmark")
    for a, b in zip(measurements(benchmark), measurements(theirs), strict=True):
        left, right = [repr(each).split("\n", 1)[1] for each in (a, b)]
        assert left == right
        assert (a.median, a.mean, a.iqr) == pytest.approx((b.median, b.mean, b.iqr))
        assert (a.significant_figures, a.has_warnings) == (b.significant_figures, b.has_warnings)
    for setup in ("pass", "a = 1", "a = 1\nb = 2"):
        for stmt, label in (("a", None), ("a\nb", None), ("a\nb", "l")):
            specs = [
                lib.TaskSpec(stmt=stmt, setup=setup, label=label, sub_label="s", description="d")
                for lib in (benchmark, theirs)
            ]
            assert specs[0].summarize() == specs[1].summarize()


def test_environments_have_their_rows() -> None:
    made = measurements(benchmark)[:2]
    tasks = [
        benchmark.TaskSpec("s", "pass", label="l", sub_label="r", description="c", env=env)
        for env in ("one", None)
    ]
    text = str(benchmark.Compare([benchmark.Measurement(1, m.times, t)
                                  for m, t in zip(made, tasks, strict=True)]))  # fmt: skip
    assert "(one)" in text
    assert "(Unspecified env)" in text


def test_statements_are_measured(lib: Any) -> None:
    count = [0]

    def call() -> None:
        count[0] += 1

    timer = lib.Timer("call()", "\n  a = 1\n", globals={"call": call}, label="l", num_threads=2)
    m = timer.timeit(50)
    assert count[0] == 52
    assert (m.number_per_run, len(m.times), m.num_threads, m.stmt) == (50, 1, 2, "call()")
    assert (m.label, m.setup, m.env) == ("l", "  a = 1".strip(), None)
    heard: list[Any] = []
    m = timer.blocked_autorange(lambda number, time: heard.append(number), min_run_time=0.001)
    assert m.number_per_run == heard[0]
    assert len(m.times) == len(heard)
    m = timer.adaptive_autorange(threshold=10.0, min_run_time=0.001, max_run_time=1.0)
    assert len(m.times) >= 4
    assert m.median > 0
    assert re.search(r"Median: [\d.]+ .s", repr(m))
    seen = lib.Timer("out.append(torch.__name__)", globals={"out": heard}).timeit(1)
    assert heard[-1] in ("torch", "antorcha")
    assert seen.raw_times[0] > 0


def test_wrong_use(lib: Any) -> None:
    for call in (
        lambda: lib.Timer(3),
        lambda: lib.Timer(language="fortran"),
        lambda: lib.Timer(global_setup="#include"),
        lambda: lib.Compare([1]),
    ):
        with pytest.raises(ValueError, match=r"."):
            call()
    with pytest.raises(NotImplementedError, match="blocked_autorange"):
        lib.Timer().repeat()
    with pytest.raises(AttributeError):
        measurements(lib)[0].nothing


def test_what_is_not_there() -> None:
    with pytest.raises(NotImplementedError, match=r"C\+\+"):
        benchmark.Timer(language="c++")
    with pytest.raises(NotImplementedError, match="not counted"):
        benchmark.Timer().collect_callgrind()
    threads = antorcha.get_num_threads()
    with benchmark.set_torch_threads(1):
        assert antorcha.get_num_threads() == 1
    assert antorcha.get_num_threads() == threads


def test_numbers(lib: Any) -> None:
    assert [lib.select_unit(t)[0] for t in (3.0, 2e-3, 5e-5, 4e-8)] == ["s", "ms", "us", "ns"]
    assert lib.unit_to_english("us") == "microsecond"
    assert lib.trim_sigfig(3.14159, 2) == pytest.approx(3.1)
    assert lib.ordered_unique([3, 1, 3]) == [3, 1]
