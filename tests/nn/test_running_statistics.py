"""Buffers that a layer writes for itself: running it again before backward is no error."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest

LAYERS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "batch 1d": ("BatchNorm1d", (4, 3), {}),
    "batch 1d, sequence": ("BatchNorm1d", (4, 3, 5), {}),
    "batch 2d": ("BatchNorm2d", (4, 3, 2, 2), {}),
    "batch 2d, cumulative": ("BatchNorm2d", (4, 3, 2, 2), {"momentum": None}),
    "batch 3d, no weight": ("BatchNorm3d", (4, 3, 2, 2, 1), {"affine": False}),
    "instance": ("InstanceNorm1d", (4, 3, 5), {"affine": True, "track_running_stats": True}),
}


@pytest.fixture(params=["antorcha", pytest.param("torch", marks=pytest.mark.oracle)])
def lib(request: pytest.FixtureRequest) -> Any:
    if importlib.util.find_spec(request.param) is None:
        pytest.skip("PyTorch is not installed")
    return importlib.import_module(request.param)


def layer_of(lib: Any, name: str) -> tuple[Any, Any, Any]:
    """A layer in float64, and two batches for it."""
    kind, shape, options = LAYERS[name]
    lib.manual_seed(0)
    layer = getattr(lib.nn, kind)(3, **options, dtype=lib.float64)
    one, two = [lib.randn(shape, dtype=lib.float64, requires_grad=True) for _ in range(2)]
    return layer, one, two


def gradient(lib: Any, layer: Any, x: Any) -> Any:
    return lib.autograd.grad(layer(x).pow(3).sum(), x)[0]


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_runs_twice_before_backward(lib: Any, name: str) -> None:
    layer, one, two = layer_of(lib, name)
    expected = [gradient(lib, layer, one), gradient(lib, layer, two)]
    (layer(one).pow(3).sum() + layer(two).pow(3).sum()).backward()
    for x, wanted in zip((one, two), expected):
        assert lib.allclose(x.grad, wanted)
    if name != "instance":  # (which works on copies)
        assert layer.running_mean._version == 1


@pytest.mark.parametrize("name", LAYERS)
def test_a_second_derivative_after_the_layer_ran_again(lib: Any, name: str) -> None:
    layer, one, two = layer_of(lib, name)
    results = []
    for again in (False, True):
        (g,) = lib.autograd.grad(layer(one).pow(3).sum(), one, create_graph=True)
        if again:
            layer(two)
        results.append(lib.autograd.grad(g.pow(2).sum(), one)[0])
    assert lib.allclose(*results)


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "instance"])
@pytest.mark.parametrize("training", [True, False])
def test_a_write_of_the_user_is_refused(lib: Any, name: str, training: bool) -> None:
    layer, one, _ = layer_of(lib, name)
    layer.train(training)
    y = layer(one).pow(3).sum()
    layer.running_mean.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("name", LAYERS)
def test_evaluation_has_the_gradient_of_its_own_statistics(name: str) -> None:
    """Training between forward and backward moves the statistics: PyTorch's gradient is of the new
    ones, ours of those that the result was made with."""
    torch: Any = importlib.import_module("antorcha")
    layer, one, two = layer_of(torch, name)
    layer(two)
    layer.eval()
    expected = gradient(torch, layer, one)
    y = layer(one).pow(3).sum()
    layer.train()
    layer(two)
    y.backward()
    assert torch.equal(one.grad, expected)
    layer.eval()
    assert torch.autograd.gradgradcheck(layer, (one,))
