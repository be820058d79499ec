"""Complaints: the numbers that machine code knows errors by are the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from antorcha.errors import NativeError
from antorcha.runtime.cpython import complaint
from tests.patience import PATIENCE

SYMBOLS = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(f"antorcha.runtime.{name}")
from antorcha.runtime.call.native import mode
from antorcha.runtime.launch import py_launch
from antorcha.runtime.sequence import play
print(py_launch.spec(FRESH=True).symbol, play.spec().symbol, mode.put_word.spec().symbol)
"""


def _symbols(*first: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", SYMBOLS, *first],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ANTORCHA_CALL": "auto"},
        capture_output=True, text=True, timeout=PATIENCE, check=True,
    ).stdout  # fmt: skip


def test_code_on_disk_is_found_whatever_was_imported_before() -> None:
    assert _symbols("random", "sequence") == _symbols("memory.storage") != ""


def _too_many(_first: Any, _second: Any, number: int) -> BaseException:
    return ValueError(number)


def test_a_number_is_that_of_one_name() -> None:
    number = complaint(_too_many)
    assert complaint(_too_many) == number

    def other(_first: Any, _second: Any, number: int) -> BaseException:
        return TypeError(number)

    other.__qualname__ = _too_many.__qualname__
    with pytest.raises(NativeError, match="two complaints"):
        complaint(other)
