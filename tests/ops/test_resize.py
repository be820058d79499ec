"""Images resampled: as PyTorch does in every mode and layout, forwards and backwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.devices.cpu.resample import resample_kernel_of
from antorcha.devices.numpy_semantics.resample import compute_resample
from antorcha.lang.native import interpreted
from antorcha.ops.kinds.record import REGISTRY
from antorcha.runtime.memory import layout as L
from tests.ops.parity import needs_torch, pair

MODES: list[tuple[str, dict[str, Any]]] = [
    ("nearest", {}),
    ("nearest-exact", {}),
    ("bilinear", {}),
    ("bilinear", {"align_corners": True}),
    ("bilinear", {"antialias": True}),
    ("bicubic", {}),
    ("bicubic", {"antialias": True}),
]
TAKEN = {
    "in order": lambda x: x,
    "channels last": lambda x: x.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1),
    "turned": lambda x: x.transpose(2, 3),
    "every other": lambda x: x[:, :, ::2, 1:],
}


@needs_torch
@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_images_and_gradients(mode: tuple[str, dict[str, Any]], taken: str) -> None:
    import torch

    x = np.random.default_rng(0).standard_normal((2, 3, 20, 37)).astype(np.float32)
    a, b = pair(x, grad=True)
    for size in ((31, 70), (9, 17), (20, 37)):
        found = []
        for lib, t in ((antorcha, a), (torch, b)):
            y = lib.nn.functional.interpolate(TAKEN[taken](t), size, mode=mode[0], **mode[1])
            weight = lib.linspace(-1, 1, y.numel()).reshape(y.shape)
            (g,) = lib.autograd.grad((y * weight).sum(), t)
            found.append((y.detach().numpy(), g.numpy(), y.stride()))
        for mine, theirs in zip(found[0][:2], found[1][:2], strict=True):
            np.testing.assert_allclose(mine, theirs, 1e-4, 1e-4)
        if taken != "turned":
            assert found[0][2] == found[1][2]


@needs_torch
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "uint8"])
def test_dtypes(dtype: str) -> None:
    import torch

    x = np.random.default_rng(1).uniform(0, 200, (1, 2, 12, 11)).astype(np.float32)
    a, b = pair(x, dtype)
    for mode in ("nearest", "bilinear", "bicubic"):
        y, z = (
            lib.nn.functional.interpolate(t, (20, 7), mode=mode).to(lib.float64).numpy()
            for lib, t in ((antorcha, a), (torch, b))
        )
        np.testing.assert_allclose(y, z, {"float64": 1e-12}.get(dtype, 0.02))


def test_what_is_no_number_stays_in_its_place() -> None:
    """An element is multiplied by no weight of a result that it does not go into."""
    x = antorcha.zeros(1, 1, 8, 1)
    x[0, 0, 3] = float("nan")
    y = antorcha.nn.functional.interpolate(x, (4, 1), mode="bilinear", antialias=True)
    assert y.isnan().flatten().tolist() == [False, True, True, False]
    g = antorcha.zeros(1, 1, 8, 9, requires_grad=True)
    z = antorcha.nn.functional.interpolate(g, (16, 9), mode="bilinear")
    weight = antorcha.ones(1, 1, 16, 9)
    weight[0, 0, 0, 0] = float("nan")
    z.backward(weight)
    assert g.grad is not None
    assert g.grad.isnan().nonzero().tolist() == [[0, 0, 0, 0], [0, 0, 1, 0]]


SAMPLES = [
    ((3, 5), -1, 40, "linear", False, False, False),
    ((3, 40), -1, 5, "linear", False, False, True),
    ((2, 5, 70), -2, 9, "bicubic", True, False, False),
    ((2, 9, 3), -2, 4, "bicubic", False, False, True),
    ((2, 5, 3), -2, 7, "nearest", False, False, False),
    ((2, 9), -1, 20, "nearest", False, False, True),
    ((2, 29, 3), -2, 4, "bilinear", False, True, False),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_give_what_numpy_gives(sample: tuple[Any, ...], dtype: str) -> None:
    shape, *rest = sample
    x = np.random.default_rng(2).standard_normal(shape).astype(dtype)
    source = L.contiguous(shape, getattr(antorcha, dtype), antorcha.device("cpu"))
    planned = REGISTRY["resample"].apply_fn([source, *rest, None])
    (out,) = planned.outs
    wanted = compute_resample(planned.what, [out])([x])[0].astype(dtype)
    kernel = resample_kernel_of(planned.what, out, source)
    for plain in (False, True):
        y = np.full(out.shape, 7, dtype)
        bufs, desc = np.array([y.ctypes.data, x.ctypes.data], np.uint64), np.array(kernel.desc)
        if plain:
            with interpreted():
                assert kernel.fn(bufs, desc, **kernel.static) == 0
        else:
            assert kernel.fn(bufs, desc, **kernel.static) == 0
        np.testing.assert_array_equal(y, wanted)
