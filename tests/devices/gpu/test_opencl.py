"""A sample of the kernels that the records' samples launch, as SPIR-V on Intel's OpenCL for CPUs.

What it writes is what the simulator writes, byte for byte.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.lang.native import i64, mulhi, native, ptr, static, u64, void
from antorcha.lang.native.grid import block, device_pointer, thread, threads
from antorcha.lang.native.machine import spirv
from tests.devices.gpu.opencl import OpenCLProcess, SecondOpinion, library, second_opinion
from tests.devices.sim.sweep import sweep
from tests.ops.records import records

pytestmark = pytest.mark.slow

OPS = {
    "float32": (
        "add", "sin", "sum", "argmax", "cumsum", "index_add", "scatter_add", "topk", "mm",
        "unique", "nonzero", "searchsorted",
    ),
    "float64": ("exp", "lgamma", "prod"),
    "bfloat16": ("mul", "layer_norm"),
    "complex64": ("div", "mean"),
    "int64": ("remainder", "cumprod"),
}  # fmt: skip
GRADIENTS = "softmax", "sort", "gather", "max_pool2d", "avg_pool2d", "conv2d"
KERNELS = {
    "draw_grid", "fourier_grid", "gather_grid", "line_grid", "pointwise_grid", "product_columns",
    "product_tiles", "reduce_grid", "rejection_grid", "rows_grid", "scan_grid", "search_grid",
    "segment_grid", "sort_tiles_grid", "window_grid", "window_gradient_grid",
}  # fmt: skip
"""Templates whose kernels must have been compared."""
ON_TENSOR_CORES = {"product_cores", "attention_cores"}
"""The kernels that have no form for OpenCL."""


@pytest.fixture
def installed() -> Path:
    found = library()
    if found is None:
        pytest.skip("needs Intel's OpenCL: pip install intel-opencl-rt intel-cmplr-lib-rt")
    return found


def more() -> Iterator[Callable[[], Any]]:
    """Launches that no record's samples make: draws, larger products, long reductions."""
    torch.manual_seed(0)
    yield lambda: torch.randn(1000, device="sim")
    yield lambda: torch.randperm(1000, device="sim")
    yield lambda: torch.poisson(torch.full((100,), 3.0, device="sim"))
    yield lambda: torch._standard_gamma(torch.full((100,), 2.5, device="sim"))
    yield lambda: torch.fft.fft(torch.randn(64).to("sim"))
    for dtype in (torch.float32, torch.float64, torch.complex64, torch.float16):
        x = torch.randn(150, 130).to(dtype).to("sim")
        yield lambda x=x: x @ x.T
    x = torch.randn(20_000).to("sim")
    yield lambda: x.cumsum(0) + x.sum() + x.sort()[0]
    q = torch.randn(1, 2, 64, 32).to("sim")
    yield lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    yield lambda: (torch.randn(100, dtype=torch.float64) * 1e10).to("sim").sin()


def test_kernels_write_what_the_simulator_writes(installed: Path) -> None:
    ops = {op.name: op for op in records()}
    wrong = []
    with warnings.catch_warnings(), second_opinion(installed) as opinion:
        warnings.simplefilter("ignore")
        for dtype, names in OPS.items():
            wrong += sweep([ops[name] for name in names], (dtype,))
        wrong += sweep([ops[name] for name in GRADIENTS], grad=True)
        for launches in more():
            launches()
    wrong += opinion.wrong
    assert not wrong, "\n".join(wrong)
    assert set(opinion.left) <= ON_TENSOR_CORES, opinion.left
    assert set(opinion.agreed) >= KERNELS, sorted(KERNELS - set(opinion.agreed))


@native
def add_k(words: ptr[i64], *, K) -> void:
    """Adds K to every number; 256 threads a block."""
    x = device_pointer(i64, words[0])
    i = block() * threads() + thread()
    x[i] = x[i] + static(K)


@native
def upper_halves(words: ptr[i64], *, T) -> void:
    """Upper halves of products of 64-bit integers."""
    out, i = device_pointer(T, words[0]), thread()
    a, b = device_pointer(T, words[1]), device_pointer(T, words[2])
    out[i] = mulhi(a[i], b[i])


@pytest.mark.parametrize("T", [i64, u64])
def test_upper_halves_of_products(installed: Path, T: Any) -> None:
    kind = np.dtype(T.np)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    rng = np.random.default_rng(0)
    a, b = rng.integers(low, high, (2, 64), kind, endpoint=True)
    a[:6], b[:6] = [low, low, high, high, 1, 0], [low, high, high, low, high, low]
    spec = upper_halves.on_grid(spirv(), 64, T=T)
    job = {
        "name": spec.symbol, "blocks": (1, 1, 1), "threads": 64, "words": [0] * 128,
        "places": [(0, 0, 0), (1, 1, 0), (2, 2, 0)],
    }  # fmt: skip
    process = OpenCLProcess(installed)
    try:
        found = process.launch(job, spec.binary, [bytes(512), a.tobytes(), b.tobytes()])
    finally:
        process.close()
    exact = [int(x) * int(y) >> 64 for x, y in zip(a, b, strict=True)]
    assert np.frombuffer(found[0], kind).tolist() == exact


def test_a_difference_and_a_refusal_are_noticed(installed: Path) -> None:
    process = OpenCLProcess(installed)
    words = np.zeros(128, np.int64)
    job = {"blocks": (2, 1, 1), "threads": 256, "words": words.tolist(), "places": [(0, 0, 8)]}
    x = np.arange(513)
    try:
        spec = add_k.on_grid(spirv(), 256, K=3)
        found = process.launch({**job, "name": spec.symbol}, spec.binary, [x.tobytes()])
        assert np.array_equal(np.frombuffer(found[0], np.int64), x + 3 * (x > 0))
        with pytest.raises(torch.errors.NativeError, match="clCreateKernel gave"):
            process.launch({**job, "name": "none"}, spec.binary, [x.tobytes()])
    finally:
        process.close()

    def another(self: SecondOpinion, step: Any) -> tuple[str, bytes]:
        other = add_k.on_grid(spirv(), 256, K=4)
        return other.symbol, other.binary

    with pytest.MonkeyPatch.context() as patch, second_opinion(installed) as opinion:
        patch.setattr(SecondOpinion, "image_of", another)
        torch.sim.launch(add_k, 2, 256, torch.zeros(512, dtype=torch.int64).to("sim"), K=3)
    assert "512 of 4096 bytes, at 0 0400000000000000 is not 0300000000000000" in opinion.wrong[0]
