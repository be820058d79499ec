"""A check's verdict: what the learner reads, whatever their code did."""

from __future__ import annotations

from typing import Any

import pytest

import antorcha as torch
from antorcha.lab.check import Verdict, check_step
from antorcha.lab.lesson import Step


def verdict(check: str, lang: str = "en", **names: Any) -> Verdict:
    return check_step(Step("", ("",), "", check, lang), names)


def test_right_and_wrong() -> None:
    check = 'assert x == 2, f"x is {x}, not 2"'
    assert verdict(check, x=2) == Verdict(True, "Right.")
    assert verdict(check, "es", x=2) == Verdict(True, "¡Correcto!")
    assert verdict(check, x=3) == Verdict(False, "x is 3, not 2")


def test_an_assert_in_a_function_of_the_check() -> None:
    check = 'def near(a):\n    assert a < 1, "far"\nnear(x)'
    assert verdict(check, x=3) == Verdict(False, "far")


@pytest.mark.parametrize(("lang", "words"), [("en", "not defined"), ("es", "no está definido")])
def test_a_name_that_is_missing(lang: str, words: str) -> None:
    said = verdict('assert F_new is not None, "?"', lang)
    assert not said.ok
    assert "`F_new`" in said.message
    assert words in said.message


def test_an_unknown_language_is_answered_in_english() -> None:
    assert verdict('assert True, "?"', "fr").message == "Right."


def test_an_error_in_the_learners_function() -> None:
    names: dict[str, Any] = {"torch": torch}
    exec(compile("def f(x):\n    return x @ torch.ones(3, 2)", "mine.py", "exec"), names)
    said = verdict('assert f(torch.ones(3, 2)) is None, "?"', **names)
    assert said.message.startswith("Your code raised ShapeError when it was tried: matmul: (3, 2)")
    exec(compile("def g():\n    assert False\ndef h():\n    quit()", "mine.py", "exec"), names)
    assert verdict("assert g(), '?'", **names).message.startswith("Your code raised AssertionError")
    names["quit"] = exit_now
    assert verdict("assert h(), '?'", **names).message.startswith("Your code raised SystemExit")


def exit_now() -> None:
    raise SystemExit(3)


def test_a_value_of_another_kind_stops_the_check() -> None:
    said = verdict('assert x.shape == (2,), "?"', x=None)
    assert said.message.startswith("The check could not go on: AttributeError")
    said = verdict('assert torch.allclose(x, torch.ones(3)), "?"', x=torch.ones(2))
    assert said.message.startswith("The check could not go on: ShapeError")


def test_the_learners_names_stay_theirs() -> None:
    names: dict[str, Any] = {"x": 1, "torch": "a word"}
    check = 'x = 5\ny = 1\nassert torch.ones(1).sum() == 1, "?"'
    assert check_step(Step("", ("",), "", check), names).ok
    assert names == {"x": 1, "torch": "a word"}
