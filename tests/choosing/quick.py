"""The quick suite: the part of all tests that ``./run test`` runs.

It has something of every test file, and every op record once. It is chosen by rules that hold for
any test, so that a new test has its place without being entered anywhere:

1. What is marked ``slow`` is left out, and what starts processes: each start of Python costs as
   much as hundreds of small tests. (A test starts some if it, a fixture or a helper of it says one
   of ``STARTERS``.)
2. A family, which is a test function with all its cases, keeps one dtype: float32 where it has
   that, otherwise its first. (Cases that combine several dtypes are about the combinations.)
3. A family then keeps ``FEW`` cases: the first, and those whose names have the smallest checksums.
   They are the same on every machine, and stay when other cases come or go.
4. A family marked ``each_op`` keeps all cases that rule 2 leaves, with one sample of each op
   (``active``).
5. A file of which nothing is left keeps its first test that this machine can run.
"""

from __future__ import annotations

import functools
import inspect
import types
import zlib
from collections.abc import Sequence
from typing import Any

import pytest

FEW = 3
STARTERS = frozenset("subprocess Popen multiprocessing fork Process num_workers Child".split())
"""Names of what starts processes; ``Child`` is the lab's."""
LEFT_OUT = ("slow", "exhaustive")
DTYPES = frozenset(
    "float32 float64 float16 bfloat16 complex64 complex128 complex32 int8 int16 int32 int64 uint8 "
    "uint16 uint32 uint64 bool f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64".split()
)
PREFERRED = ("float32", "f32")

active = False
"""Is this run the quick suite? Set before tests are collected; tests of records then take the first
sample only."""


def choose(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The quick ones of all tests."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(file_of(item), []).append(item)
    return [item for tests in files.values()
            for item in _of_a_file(tests) or _first_that_runs(tests)]  # fmt: skip


def file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _family(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def starts_processes(item: pytest.Item) -> bool:
    """Does a test start processes, by itself, its fixtures, or helpers among the tests?"""
    fixtures = getattr(item, "_fixtureinfo", None)
    defined = fixtures.name2fixturedefs.values() if fixtures else ()
    functions = [getattr(item, "function", None), *[each.func for defs in defined for each in defs]]
    waiting = [each for each in functions if _is_of_tests(each)]
    seen: set[Any] = set()
    while waiting:
        function = waiting.pop()
        if function not in seen:
            seen.add(function)
            if not STARTERS.isdisjoint(_names(function.__code__)):
                return True
            waiting += _uses(function)
    return False


@functools.cache
def _names(code: types.CodeType) -> frozenset[str]:
    """The names in a function's code, and the keywords of its calls."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    keywords = [word for each in code.co_consts if isinstance(each, tuple) for word in each]
    words = [word for word in keywords if isinstance(word, str)]
    return frozenset(code.co_names).union(words, *[_names(each) for each in inner])


@functools.cache
def _uses(function: Any) -> list[Any]:
    """The functions of the tests that one uses: of its own file, or of a helper's."""
    space = function.__globals__
    names = _names(function.__code__)
    found = [space[name] for name in names if name in space]
    helpers = [each for each in found if isinstance(each, types.ModuleType)]
    found += [vars(module)[name] for module in helpers for name in names if name in vars(module)]
    methods = [each for cls in found if isinstance(cls, type) for each in vars(cls).values()]
    return [inspect.unwrap(each) for each in (*found, *methods) if _is_of_tests(each)]


def _is_of_tests(value: Any) -> bool:
    plain = isinstance(value, types.FunctionType) or hasattr(value, "__wrapped__")
    return plain and str(getattr(value, "__module__", "")).startswith("tests.")


def _of_a_file(tests: Sequence[pytest.Item]) -> list[pytest.Item]:
    families: dict[str, list[pytest.Item]] = {}
    for item in tests:
        if not (
            any([item.get_closest_marker(each) for each in LEFT_OUT]) or starts_processes(item)
        ):
            families.setdefault(_family(item), []).append(item)
    return [item for family in families.values() for item in _of_a_family(family)]


def _of_a_family(family: list[pytest.Item]) -> list[pytest.Item]:
    alike = of_one_dtype(family)
    return alike if family[0].get_closest_marker("each_op") else thin(alike)


def of_one_dtype(family: list[pytest.Item]) -> list[pytest.Item]:
    """The cases of one dtype, if each case has exactly one."""
    dtypes = [_dtypes(item) for item in family]
    if any([len(names) != 1 for names in dtypes]):
        return family
    found = [names[0] for names in dtypes]
    wanted = next((name for name in PREFERRED if name in found), found[0])
    return [item for item, name in zip(family, found, strict=True) if name == wanted]


def _dtypes(item: pytest.Item) -> list[str]:
    """The dtypes among a case's parameters, given as themselves or by name."""
    callspec = getattr(item, "callspec", None)
    values = [] if callspec is None else callspec.params.values()
    names = [str(value).rpartition(".")[2] for value in values
             if isinstance(value, str) or type(value).__name__ == "dtype"]  # fmt: skip
    return [name for name in names if name in DTYPES]


def thin(family: list[pytest.Item]) -> list[pytest.Item]:
    """The first case, and those with the smallest checksums of their names."""
    first, *others = family
    others.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
    return [first, *others[: FEW - 1]]


def _first_that_runs(tests: Sequence[pytest.Item]) -> list[pytest.Item]:
    able = [item for item in tests if not item.get_closest_marker("skip")]
    return able[:1]
