"""Sizes that stand for any number: whatever is computed with them holds, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antorcha.core.structs import struct
from antorcha.core.symbols import Symbol, Trace, Untold, filled, symbols_in, traces

Function = Callable[..., Any]


def traced(function: Function, *examples: int) -> Function:
    """The function's program, as planning with symbols finds it."""
    trace = Trace(examples)
    try:
        result = function(*trace.symbols)
    finally:
        trace.close()
    program = trace.program([[result]])

    def run(*numbers: int) -> int | None:
        found = program(*numbers)
        return None if found is None else found[0][0]

    return run


# ---- random functions of three sizes
def leaf() -> st.SearchStrategy[Function]:
    sizes = st.integers(0, 2).map(lambda k: lambda *n: n[k])
    return st.one_of(sizes, st.integers(-3, 40).map(lambda c: lambda *n: c))


def safe_divisor(x: Any) -> Any:
    return x if x > 0 else 1


def extended(inner: st.SearchStrategy[Function]) -> st.SearchStrategy[Function]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        pair.map(lambda f: lambda *n: f[0](*n) + f[1](*n)),
        pair.map(lambda f: lambda *n: f[0](*n) - f[1](*n)),
        pair.map(lambda f: lambda *n: f[0](*n) * f[1](*n)),
        pair.map(lambda f: lambda *n: f[0](*n) // safe_divisor(f[1](*n))),
        pair.map(lambda f: lambda *n: f[0](*n) % safe_divisor(f[1](*n))),
        pair.map(lambda f: lambda *n: min(f[0](*n), f[1](*n))),
        pair.map(lambda f: lambda *n: max(f[0](*n), abs(f[1](*n)))),
        pair.map(lambda f: lambda *n: f[0](*n) if f[0](*n) == f[1](*n) else -f[1](*n)),
        pair.map(lambda f: lambda *n: f[0](*n) if f[0](*n) >= f[1](*n) else 7),
        inner.map(lambda f: lambda *n: f(*n) or 5),
        inner.map(lambda f: lambda *n: [*range(12)][f(*n) % 12]),  # an index: it must be known
    )


functions = st.recursive(leaf(), extended, max_leaves=9)
sizes = st.tuples(*[st.integers(2, 30)] * 3)


@settings(max_examples=400, deadline=None)
@given(functions, sizes, st.lists(sizes, min_size=1, max_size=12))
def test_a_program_gives_what_the_function_does_or_nothing(
    function: Function, example: tuple[int, ...], others: list[tuple[int, ...]]
) -> None:
    program = traced(function, *example)
    assert program(*example) == function(*example)
    for numbers in others:
        assert program(*numbers) in (None, function(*numbers))


# ---- what is asked, and what need not be
def test_what_holds_for_all_sizes_is_not_asked() -> None:
    trace = Trace([5, 7])
    n, m = trace.symbols
    assert all([n > 1, n != 0, n >= 2, n * m > 3, n + m != 1, not n < 2, bool(n)])
    same = n
    assert all([n == same, n * m == m * n, n + n == 2 * n, n * m // m == n, n * m % n == 0])
    assert type(n - n) is int
    assert trace.steps == []
    trace.close()


def test_no_product_of_bounds_below_0_is_a_bound() -> None:
    trace = Trace([5, 7])
    n, m = trace.symbols
    tiles = -(-n // 4) * -(-m // 4)
    assert tiles < 1 << 31
    assert not tiles > 1 << 31
    trace.close()


def test_what_differs_between_sizes_is_asked_once() -> None:
    trace = Trace([5, 7])
    n, m = trace.symbols
    for _ in range(3):
        assert all([n < m, n != m, n * 2 > m])
    assert len(trace.steps) == 3
    trace.close()


def test_an_int_is_known_from_then_on() -> None:
    for use in (int, float, str, range, lambda n: [0] * n, lambda n: 2**n, lambda n: f"{n}"):
        trace = Trace([5])
        (n,) = trace.symbols
        use(n)
        trace.close()
        program = trace.program([[n + 1]])
        assert program(5) == ((6,),)
        assert program(6) is None


def test_what_cannot_be_noted_is_refused() -> None:
    trace = Trace([5])
    (n,) = trace.symbols
    with pytest.raises(Untold, match="has no hash"):
        {n: 1}
    with pytest.raises(Untold, match="no number"):
        n < "a"  # noqa: B015
    with pytest.raises(TypeError):
        n + "a"
    with pytest.raises(ZeroDivisionError):
        n // 0
    trace.close()
    with pytest.raises(Untold, match="outlived"):
        n > 6  # noqa: B015


def test_traces_are_known_while_they_are_open() -> None:
    before = set(traces)
    trace = Trace([3])
    assert traces - before == {trace}
    trace.close()
    assert set(traces) == before


# ---- inside of other things
@struct
class Pair:
    first: Any
    second: Any = 0


class Slotted:
    __slots__ = ("inner",)

    def __init__(self, inner: Any) -> None:
        self.inner = inner


def test_symbols_are_found_wherever_they_are() -> None:
    import functools

    trace = Trace([5])
    (n,) = trace.symbols
    holders: list[Any] = [
        n, (1, n), [[n]], {"a": n}, Pair(1, n), Slotted(n), lambda: n, functools.partial(min, n),
        Slotted((1, n)).inner.__len__, (lambda a=n: a),
    ]  # fmt: skip
    for holder in holders:
        assert symbols_in(holder), holder
    for other in (1, "n", None, Pair(1), Slotted(2), lambda: 3, functools.partial(min, 3), int):
        assert not symbols_in(other)
    trace.close()


def test_symbols_are_filled_in() -> None:
    trace = Trace([5])
    (n,) = trace.symbols
    thing = {"a": (n, [n * 2, "x"]), "b": Pair(n, None), "c": Pair(1)}

    def nothing(part: Any) -> Any:
        return None

    made = filled(thing, lambda symbol: symbol.value + 100, nothing)
    assert made["a"] == (105, [110, "x"])
    assert made["b"].first == 105
    assert made["c"] is thing["c"]
    with pytest.raises(Untold, match="Slotted"):
        filled(Slotted(n), lambda symbol: symbol.value, nothing)
    assert filled(Slotted(n), lambda symbol: 0, lambda part: "other") == "other"
    trace.close()


def test_a_symbol_shows_what_it_is() -> None:
    trace = Trace([5, 7])
    n, m = trace.symbols
    assert repr(n * m + 1) == "<1 + a0*a1, e.g. 36>"
    assert isinstance(n * m, Symbol)
    trace.close()
