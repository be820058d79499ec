"""Error classes, and that the examples in the docstrings of floor 0 are true."""

from __future__ import annotations

import doctest
import pickle
import traceback
import warnings
from types import ModuleType

import pytest

import antorcha
from antorcha import config, errors
from antorcha.core import dtypes, indexing, shapes
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
    assert "fft" not in errors.did_you_mean("fft", ["fft"])  # the name itself is no hint


@pytest.mark.parametrize("name", ["fft", "special", "amp", "distributed", "profiler", "sofmax"])
def test_a_missing_name_of_the_package(name: str) -> None:
    if name in dir(antorcha):
        pytest.skip("it is there")
    with pytest.raises(AttributeError) as raised:
        getattr(antorcha, name)
    said = "".join(traceback.format_exception_only(raised.value))
    assert said.startswith("AttributeError: ")
    assert f"Did you mean: {name!r}" not in said
    assert f"Did you mean {name!r}" not in said
    assert said.count("Did you mean") == (name == "sofmax")
    assert type(pickle.loads(pickle.dumps(raised.value))) is AttributeError


@pytest.mark.parametrize("owner", ["nn.Linaer", "nn.functional.relo", "optim.SDG", "nn.ReLU().fo"])
def test_a_missing_name_is_an_attribute_error_to_see(owner: str) -> None:
    with pytest.raises(AttributeError) as raised:
        eval(f"antorcha.{owner}")
    said = "".join(traceback.format_exception_only(raised.value))
    assert said.startswith("AttributeError: ")
    assert said.count("Did you mean") <= 1


@pytest.mark.parametrize(
    ("device", "kind", "when"), [("cuda", AssertionError, "here"), ("mps", RuntimeError, "here")]
)
def test_a_device_that_is_not_here(device: str, kind: type[Exception], when: str) -> None:
    if getattr(antorcha, device).is_available():
        pytest.skip("there is one")
    text = f"no device '{device}' {when}.*nothing .*to install.*device='cpu'"
    with pytest.raises(kind, match=text):
        antorcha.ones(2, device=device)


def test_warnings_point_at_the_program() -> None:
    F, nn = antorcha.nn.functional, antorcha.nn
    a, b = antorcha.ones(3), antorcha.ones(3, 1)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        F.mse_loss(a, b)
        nn.L1Loss()(a, b)
        F.kl_div(a, a)
        nn.MSELoss(size_average=True)
        F.mse_loss(a, a, size_average=True)
        list(antorcha.utils.data.DataLoader([1, 2], pin_memory=True))
    assert len(found) == 6
    assert {each.filename for each in found} == {__file__}
