"""Questions about symbolic sizes: plain ints are always known."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

import antorcha

NAME = "fx.experimental.symbolic_shapes"
ASKED: list[tuple[str, tuple[Any, ...]]] = [
    ("guard_int", (3,)), ("guard_int", (True,)), ("guard_float", (2.5,)), ("guard_float", (1,)),
    ("guard_scalar", (2,)), ("guard_scalar", ("x",)), ("guard_bool", (True,)), ("guard_bool", (1,)),
    ("guard_or_false", (True,)), ("guard_or_false", (0,)), ("guard_or_true", (False,)),
    ("guard_size_oblivious", (True,)), ("statically_known_true", (False,)),
    ("statically_known_false", (False,)), ("statically_known_true", (1,)),
    ("guarding_hint_or_throw", (4,)), ("optimization_hint", (4,)), ("optimization_hint", (4, 7)),
    ("sym_and", (True,)), ("sym_and", (True, True, False)), ("sym_or", (False, True)),
    ("sym_eq", (2, 2)), ("sym_eq", ((1, [2]), [1, (3,)])), ("sym_eq", ((1,), (1, 2))),
    ("sym_eq", (1, "a")), ("has_free_symbols", ((1, 2),)), ("has_free_unbacked_symbols", (3,)),
    ("free_symbols", (3,)), ("free_unbacked_symbols", ([3, 4],)), ("has_static_value", (2.0,)),
    ("has_static_value", ("x",)), ("is_symbolic", (3,)), ("is_nested_int", (3,)),
    ("is_concrete_int", (3,)), ("is_concrete_int", (3.0,)), ("is_concrete_bool", (True,)),
    ("is_concrete_bool", (1,)), ("is_concrete_float", (1.0,)), ("is_concrete_float", (1,)),
]  # fmt: skip


def _answer(module: Any, name: str, args: tuple[Any, ...]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = getattr(module, name)(*args)
        except AssertionError:
            return AssertionError
    return set(found) if name.startswith("free") else (type(found), found)


@pytest.mark.oracle
def test_answers_are_those_of_pytorch() -> None:
    pytest.importorskip("torch")
    theirs, ours = (importlib.import_module(f"{root}.{NAME}") for root in ("torch", "antorcha"))
    for name, args in ASKED:
        assert _answer(ours, name, args) == _answer(theirs, name, args), (name, args)


def test_what_keeps_symbols_is_absent() -> None:
    shapes = importlib.import_module(f"antorcha.{NAME}")
    assert shapes is antorcha.fx.experimental.symbolic_shapes
    assert issubclass(shapes.GuardOnDataDependentSymNode, RuntimeError)
    with pytest.raises(NotImplementedError, match="sizes are plain ints"):
        shapes.ShapeEnv()
    with pytest.raises(AttributeError):
        shapes.guard_integer
