"""Error classes, and that the examples in the docstrings of floor 0 are true."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from antorcha import config, dtypes, errors, indexing, shapes
from antorcha.tensor import printing


@pytest.mark.parametrize(
    "module", [config, dtypes, errors, indexing, shapes, printing], ids=lambda m: m.__name__
)
def test_examples(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.ShapeError, RuntimeError),
        (errors.DtypeError, RuntimeError),
        (errors.DeviceError, RuntimeError),
        (errors.GraphError, RuntimeError),
        (errors.OutOfRange, IndexError),
        (errors.ArgumentError, TypeError),
        (errors.ValueRangeError, ValueError),
        (errors.NativeError, TypeError),
        (errors.MissingFeature, NotImplementedError),
    ],
)
def test_classes(error: type[errors.AntorchaError], builtin: type[Exception]) -> None:
    assert issubclass(error, builtin)
    assert issubclass(error, errors.AntorchaError)
    assert error.__doc__
    assert "Example:" in error.__doc__


def test_words() -> None:
    assert errors.operand((3, 2), dtypes.float32) == "(3, 2) float32"
    assert errors.operand([2], dtypes.int64, "cuda:0") == "(2,) int64 cuda:0"
    assert errors.listed(["a"]) == "a"
    assert errors.listed(["a", "b", "c"], "or") == "a, b or c"
    assert (
        errors.did_you_mean("channel_last", ["channels_last"]) == " Did you mean 'channels_last'?"
    )
    assert errors.did_you_mean("qqq", ["channels_last"]) == ""
