"""The kernels of grid_sample are its definition in ops, in every mode, with gradients."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import antorcha
from antorcha.autograd import gradgradcheck
from antorcha.ops.kinds.record import T

SIZES = [((2, 3, 5, 7), (4, 9)), ((1, 18, 1, 6), (5, 5)), ((2, 2, 5, 3, 4), (3, 2, 5)),
         ((0, 2, 3, 4), (2, 2)), ((2, 0, 3, 4), (2, 2)), ((2, 1, 3, 4), (0, 2))]  # fmt: skip
MODES = list(itertools.product(range(3), range(3), (True, False)))


def _results(device: str, x: Any, places: Any, mode: tuple[int, int, bool]) -> list[Any]:
    images = antorcha.tensor(x, device=device, requires_grad=True)
    grid = antorcha.tensor(places, device=device, requires_grad=True)
    y = antorcha.grid_sampler(images, grid, *mode)
    weights = np.random.default_rng(1).standard_normal(tuple(y.shape)).astype(x.dtype)
    (y * antorcha.tensor(weights, device=device)).sum().backward()
    return [t.detach().cpu().numpy() for t in (y, images.grad, grid.grad)]


def test_kernels_and_definition() -> None:
    random, wrong = np.random.default_rng(0), []
    for (shape, out), mode in itertools.product(SIZES, MODES):
        if mode[0] == 2 and len(shape) == 5:
            continue
        for dtype in ("float32", "float64"):
            x = random.standard_normal(shape).astype(dtype)
            places = random.uniform(-2, 2, (shape[0], *out, len(out))).astype(dtype)
            places.reshape(-1)[::5] = 1  # on the border, where a gradient ends
            near = {"rtol": 1e-4, "atol": 1e-4} if dtype == "float32" else {"atol": 1e-11}
            pairs = zip(*[_results(d, x, places, mode) for d in ("cpu", "reference")], strict=True)
            for what, (a, b) in zip(("values", "images", "places"), pairs, strict=True):
                if a.shape != b.shape or not np.allclose(a, b, **near):
                    wrong.append(f"{what} of {shape} at {out}, modes {mode}, {dtype}")
    assert not wrong, "\n".join(wrong)


def test_kernels_are_interpreted() -> None:
    random, wrong = np.random.default_rng(0), []
    for (shape, out), mode in itertools.product(SIZES[:3], MODES):
        if mode[0] == 2 and len(shape) == 5:
            continue
        x, g = random.standard_normal(shape), random.standard_normal((*shape[:2], *out))
        places = random.uniform(-2, 2, (shape[0], *out, len(out)))

        def run(device: str, x: Any = x, g: Any = g, places: Any = places, mode: Any = mode) -> Any:
            images, grad, grid = (antorcha.tensor(a, device=device) for a in (x, g, places))
            found = [
                T.grid_sampled(images, grid, *mode),
                T.grid_sampled_images(grad, grid, x.shape[2:], *mode),
                T.grid_sampled_places(grad, images, grid, *mode),
            ]
            return [t.cpu().numpy() for t in found]

        pairs = zip(run("cpu"), run("reference"), strict=True)
        wrong += [f"{shape} {mode}" for a, b in pairs if not np.allclose(a, b, atol=1e-11)]
    assert not wrong, "\n".join(wrong)


def test_places_that_are_no_numbers() -> None:
    x = antorcha.arange(12.0).reshape(1, 1, 3, 4)
    x[0, 0, 0, 0] = antorcha.inf  # is read by nobody who lies outside
    places = antorcha.tensor([[[[antorcha.nan, 0], [antorcha.inf, 0], [5, 5], [-9, 0]]]])
    for mode in range(2):
        assert antorcha.grid_sampler(x, places, mode, 0, True).eq(0).all()
    assert antorcha.grid_sampler(x, places, 1, 1, True).tolist() == [[[[4, 7, 11, 4]]]]


def test_second_order() -> None:
    antorcha.manual_seed(0)
    x = antorcha.randn(1, 2, 4, 5, dtype=antorcha.float64, requires_grad=True)
    places = (antorcha.rand(1, 2, 3, 2, dtype=antorcha.float64) * 2 - 1).requires_grad_()
    fixed = places.detach()
    for mode in (0, 2):

        def sample(x: Any, places: Any = fixed, mode: int = mode) -> Any:
            return antorcha.grid_sampler(x, places, mode, 0, False)

        assert gradgradcheck(sample, (x, places))
        assert gradgradcheck(sample, (x,))
