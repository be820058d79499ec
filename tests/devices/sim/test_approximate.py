"""Approximate instructions on the simulator and in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.devices.gpu.frame import GridStep
from antorcha.devices.sim.device import grid_runner, target
from antorcha.lang.native import bf16, f16, f32, i64, native, ptr, u32, void
from antorcha.lang.native.approximate import exp2_near, pack_pair
from antorcha.lang.native.grid import PARAMETER_WORDS, device_pointer, run_grid, thread
from antorcha.lang.native.machine import nvptx

NUMBERS = [0.0, -0.0, 1.0, -1.5, 10.25, 126.9, -125.5, -130.0, 200.0, np.inf, -np.inf, np.nan]


@native
def near(words: ptr[i64], *, T) -> void:
    """2**x of each thread's number, and its bits below those of 1."""
    i = thread()
    x = device_pointer(f32, words[2])[i]
    device_pointer(f32, words[0])[i] = exp2_near(x)
    device_pointer(u32, words[1])[i] = pack_pair(T, x, f32(1))


def simulated(x: Any, T: Any) -> tuple[Any, Any]:
    there = [antorcha.tensor(a).to("sim") for a in (x, x, x)]
    words = np.zeros(PARAMETER_WORDS, np.int64)
    words[:3] = [t._storage.ptr for t in there]
    step = GridStep(near, {"T": T}, (1,), len(x), ())
    grid_runner().launch("near", near.on_grid(target(), len(x), T=T).addr, words, step)
    return there[0].cpu().numpy(), there[1].cpu().numpy().view(np.uint32)


def in_python(x: Any, T: Any) -> tuple[Any, Any]:
    held = [np.empty_like(x), np.empty_like(x), x]
    words = np.array([a.ctypes.data for a in held] + [0] * 5, np.int64)
    run_grid(near, words, (1,), (len(x),), T=T)
    return held[0], held[1].view(np.uint32)


@pytest.mark.parametrize("T", [bf16, f16], ids=["bf16", "f16"])
def test_approximations(T: Any) -> None:
    x = np.resize(np.array(NUMBERS, np.float32), 32)
    x[len(NUMBERS) :] = np.random.default_rng(0).uniform(-40, 40, 32 - len(NUMBERS))
    wanted = np.exp2(np.clip(x.astype(np.float64), -np.inf, 128))
    wanted = np.where(x < -126, 0, np.where(x >= 128, np.inf, wanted))
    kind = antorcha.float16 if T is f16 else antorcha.bfloat16
    low = antorcha.tensor(x).to(kind).view(antorcha.int16).numpy().view(np.uint16)
    bits = low.astype(np.uint32) | np.uint32((0x3C00 if T is f16 else 0x3F80) << 16)
    number = ~np.isnan(x)
    for run in (simulated, in_python):
        powers, pairs = run(x, T)
        np.testing.assert_allclose(powers, wanted, rtol=4e-7, err_msg=run.__name__)
        assert np.array_equal(pairs[number], bits[number]), run.__name__


def test_instructions() -> None:
    """What a GPU is given."""
    for T, word in ((bf16, "cvt.rn.bf16x2.f32"), (f16, "cvt.rn.f16x2.f32")):
        text = near.on_grid(nvptx(80), 32, T=T).image
        assert word in text
        assert "ex2.approx.ftz.f32" in text
