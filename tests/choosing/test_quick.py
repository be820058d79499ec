"""The rules of the quick suite, on tests that are only names, parameters and markers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.choosing import order, quick


def case(name: str, function: Any = None, markers: str = "", **params: Any) -> Any:
    """A test as pytest would have collected it, as far as the rules look at it."""
    shown = "-".join([str(value) for value in params.values()])
    return SimpleNamespace(
        nodeid=f"tests/{name}[{shown}]" if params else f"tests/{name}",
        callspec=SimpleNamespace(params=params),
        function=function,
        get_closest_marker=lambda marker: marker in markers.split() or None,
    )


def chosen(*cases: Any) -> list[str]:
    return [item.nodeid.partition("::")[2] for item in quick.choose(cases)]


def test_what_is_slow_is_left_out() -> None:
    cases = [case("test_a.py::test_x"), case("test_a.py::test_y", markers="slow")]
    assert chosen(*cases) == ["test_x"]


def test_a_family_keeps_one_dtype() -> None:
    floats = [case("test_a.py::test_f", dtype=name) for name in ("float64", "float32", "float16")]
    whole = [case("test_a.py::test_i", dtype=name) for name in ("int8", "int64")]
    two = [case("test_a.py::test_two", a=a, b="int8") for a in ("float64", "float32")]
    assert chosen(*floats, *whole, *two) == [
        "test_f[float32]", "test_i[int8]", "test_two[float64-int8]", "test_two[float32-int8]",
    ]  # fmt: skip


def test_a_family_keeps_its_first_and_a_few_that_stay_the_same() -> None:
    cases = [case("test_a.py::test_n", n=n) for n in range(100)]
    names = chosen(*cases)
    assert len(names) == quick.FEW
    assert names[0] == "test_n[0]"
    assert chosen(cases[0], *reversed(cases[1:])) == names
    without = [each for each in cases if not each.nodeid.endswith(f"::{names[1]}")]
    assert set(names) - set(chosen(*without)) == {names[1]}
    assert names == ["test_n[0]", "test_n[85]", "test_n[95]"]  # as on every machine


def test_a_family_of_ops_keeps_all_of_them() -> None:
    cases = [case("test_a.py::test_op", markers="each_op", op=str(k), dtype=dtype)
             for k in range(20) for dtype in ("float64", "float32")]  # fmt: skip
    assert chosen(*cases) == [f"test_op[{k}-float32]" for k in range(20)]


def starts() -> None:
    subprocess.run([sys.executable])


def uses_a_helper() -> None:
    helper()


def helper() -> None:
    inner: list[Callable[[], None]] = [lambda: starts()]
    inner[0]()


def plain() -> None:
    chosen()


@pytest.mark.parametrize(("function", "found"), [(starts, 1), (uses_a_helper, 1), (plain, 0)])
def test_what_starts_processes_is_found_in_the_code(function: Any, found: int) -> None:
    assert quick.starts_processes(case("test_a.py::test_x", function)) == bool(found)


def test_a_file_keeps_one_test_at_least() -> None:
    cases = [case("test_a.py::test_x", markers="skip slow"), case("test_a.py::test_y", starts),
             case("test_a.py::test_z", starts), case("test_b.py::test_n", markers="skip slow"),
             case("test_c.py::test_x", starts), case("test_c.py::test_y")]  # fmt: skip
    kept = [item.nodeid for item in quick.choose(cases)]
    assert kept == ["tests/test_a.py::test_y", "tests/test_c.py::test_y"]


def test_long_files_begin_first_and_keep_their_order() -> None:
    files = {"test_few.py": [case("test_few.py::test_a"), case("test_few.py::test_b")],
             "test_many.py": [case(f"test_many.py::test_x[{k}]") for k in range(30)],
             "test_starts.py": [case("test_starts.py::test_a", starts)],
             "test_off.py": [case("test_off.py::test_a", markers="skip slow")],
             "test_slow.py": [case("test_slow.py::test_a"),
                              case("test_slow.py::test_b", markers="slow")]}  # fmt: skip
    ordered = order.longest_first([item for items in files.values() for item in items])
    names = ["test_slow.py", "test_starts.py", "test_many.py", "test_few.py", "test_off.py"]
    assert ordered == [item for name in names for item in files[name]]
