"""MaskedTensor beside PyTorch's: what is printed, what is refused, gradients. (The functions of
``torch.masked`` are in tests/ops/test_pytorch_samples.py.)"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import antorcha

pytestmark = pytest.mark.oracle

Call = Callable[[Any, Any, Any], Any]
SHOWN: dict[str, Call] = {
    "the tensor": lambda lib, x, y: x,
    "operators": lambda lib, x, y: x + y * 2 - y / 3,
    "a function": lambda lib, x, y: lib.sin(x).exp(),
    "a comparison": lambda lib, x, y: x < 2,
    "a view": lambda lib, x, y: x.t()[1:],
    "an element": lambda lib, x, y: x[0, 1],
    "stack": lambda lib, x, y: lib.stack([x, y], 1),
    "cat": lambda lib, x, y: lib.cat([x, y]),
    "sum": lambda lib, x, y: x.sum(),
    "mean along a dim": lambda lib, x, y: lib.mean(x, 0),
    "amax": lambda lib, x, y: x.amax(1, keepdim=True),
    "argmin": lambda lib, x, y: x.argmin(0),
    "prod": lambda lib, x, y: x.prod(1),
    "std": lambda lib, x, y: x.std(1),
    "all": lambda lib, x, y: x.all(),
    "in place": lambda lib, x, y: x.add_(1),
    "to_tensor": lambda lib, x, y: x.to_tensor(9),
    "data and mask": lambda lib, x, y: (x.get_data(), x.get_mask()),
    "integers": lambda lib, x, y: lib.masked.masked_tensor(lib.arange(6).reshape(2, 3), MASK(lib)),
    "a number": lambda lib, x, y: lib.masked.masked_tensor(lib.tensor(1.5), lib.tensor(False)),
    "a gradient": lambda lib, x, y: ((x * 2).sum().backward(), x.grad)[1],
}
REFUSED: dict[str, Call] = {
    "other masks": lambda lib, x, y: x + lib.masked.masked_tensor(y.get_data(), ~y.get_mask()),
    "other shapes": lambda lib, x, y: lib.masked.masked_tensor(y.get_data(), y.get_mask()[0]),
    "a mask of floats": lambda lib, x, y: lib.masked.masked_tensor(y.get_data(), y.get_data()),
    "no tensor": lambda lib, x, y: lib.masked.masked_tensor(1, y.get_mask()),
}


def MASK(lib: Any) -> Any:
    return lib.tensor([[True, False, True], [False, False, True]])


def done(name: str, call: Call) -> Any:
    lib = importlib.import_module(name)
    importlib.import_module(f"{name}.masked")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = lib.arange(6.0).reshape(2, 3)
        x = lib.masked.masked_tensor(data, MASK(lib), requires_grad=True)
        y = lib.masked.masked_tensor(data, MASK(lib))
        return call(lib, y if call is SHOWN["in place"] else x, y)


@pytest.mark.parametrize("name", SHOWN)
def test_it_looks_as_pytorchs_does(name: str) -> None:
    texts = [repr(done(lib, SHOWN[name])) for lib in ("antorcha", "torch")]
    assert texts[0].partition(", grad_fn")[0] == texts[1].partition(", grad_fn")[0]


@pytest.mark.parametrize("name", REFUSED)
def test_what_pytorch_refuses(name: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        done("torch", REFUSED[name])
    with pytest.raises(caught.type):
        done("antorcha", REFUSED[name])


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(NotImplementedError, match=r"matmul: .*get_data\(\)"):
        done("antorcha", lambda lib, x, y: x @ y.t())
    assert done("antorcha", lambda lib, x, y: lib.masked.is_masked_tensor(x))
    assert not antorcha.masked.is_masked_tensor(antorcha.zeros(2))
    with pytest.warns(UserWarning, match="prototype"):
        antorcha.masked.MaskedTensor(antorcha.zeros(2), antorcha.tensor([True, False]))


def test_gradients_flow_to_the_data() -> None:
    data = antorcha.arange(3.0).requires_grad_()
    masked = antorcha.masked.as_masked_tensor(data, antorcha.tensor([True, False, True]))
    (masked * masked).sum().backward()
    assert data.grad.tolist() == [0.0, 0.0, 4.0]
