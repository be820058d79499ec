"""Convolutions and their gradients on the simulator beside the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.core import switches
from antorcha.devices.gpu import conv_pieces, fallback
from antorcha.ops.kinds.record import T
from antorcha.runtime.call import plan
from antorcha.runtime.tensor import Tensor

F = antorcha.nn.functional
CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 4, 9), (6, 4, 3), {}),
    ((2, 4, 9, 8), (6, 4, 3, 3), {"padding": 1}),
    ((2, 4, 9, 8), (6, 2, 3, 3), {"padding": (1, 0), "stride": 2, "groups": 2}),
    ((2, 6, 11, 8), (6, 1, 3, 3), {"padding": 1, "groups": 6, "dilation": 2}),
    ((1, 16, 12, 12), (32, 16, 1, 1), {}),
    ((1, 16, 12, 12), (32, 16, 1, 1), {"stride": 2, "padding": 1}),
    ((1, 12, 12, 12), (40, 12, 3, 2), {"stride": (1, 2), "padding": 1}),
    ((1, 3, 5, 6, 7), (4, 3, 2, 3, 2), {"stride": (1, 2, 1), "padding": 1}),
    ((3, 20, 20, 20), (70, 20, 3, 3), {"padding": 1, "stride": 2}),
    ((1, 4, 30, 30), (8, 1, 5, 5), {"groups": 4, "padding": 2}),
]
IN_PIECES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 16, 9), (24, 16, 3), {"padding": 2}),
    ((2, 8, 9, 8), (16, 8, 3, 3), {"padding": 1}),
    ((2, 16, 9, 10), (24, 8, 3, 3), {"padding": (1, 0), "stride": 2, "groups": 2}),
    ((1, 3, 12, 11), (16, 3, 5, 5), {"stride": 2, "padding": 2}),
    ((2, 11, 8, 7), (13, 11, 3, 2), {"dilation": 2, "padding": 2}),
    ((1, 16, 12, 12), (32, 16, 1, 1), {}),
    ((1, 8, 5, 6, 7), (16, 8, 2, 3, 2), {"stride": (1, 2, 1), "padding": 1}),
    ((3, 24, 20, 20), (72, 24, 3, 3), {"padding": 1, "stride": 2}),
    ((1, 64, 9, 9), (136, 64, 3, 3), {"padding": 1}),
]
CLOSE = {
    "tf32": 2e-3,
    "float32": 1e-5,
    "float64": 1e-12,
    "float16": 5e-3,
    "bfloat16": 2e-2,
    "complex64": 1e-5,
}


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test but one that says so multiplies TF32."""
    monkeypatch.setattr(switches.cudnn, "allow_tf32", False)


def lies(t: Tensor, order: str) -> Tensor:
    """The same elements in another order: channels last, or by every other element."""
    if order == "channels last":
        return t.transpose(1, -1).contiguous().transpose(1, -1)
    if order == "every other":
        return t.repeat_interleave(2, t.ndim - 1)[..., ::2]
    return t


def results(
    call: Any, operands: list[Tensor], device: str, order: str, options: Any
) -> list[Tensor]:
    """The result, and the gradients of all operands."""
    x, w, b = [lies(t.to(device), order if t.ndim > 1 else "").requires_grad_() for t in operands]
    y = call(x, w, b, **options)
    g = (antorcha.arange(y.numel()) * 5 % 8 - 3).reshape(y.shape)  # exact in all types
    found = antorcha.autograd.grad(y, (x, w, b), g.to(y.dtype).to(device))
    return [t.detach().cpu() for t in (y, *found)]


def differing(
    call: Any, operands: list[Tensor], order: str, options: Any, dtype: str, single: str = "float32"
) -> str:
    """Which of the results differ on the simulator; ``single``: how exact float32 is."""
    wide = antorcha.complex128 if operands[0].dtype.is_complex else antorcha.float64
    ours = results(call, [t.to(wide) for t in operands], "cpu", "", options)
    theirs = results(call, operands, "sim", order, options)
    found = []
    for name, p, q in zip(("y", "x", "w", "b"), ours, theirs, strict=True):
        error = float((p - q.to(wide)).abs().max() / p.abs().max())
        if not error < CLOSE[single if dtype == "float32" else dtype]:
            found.append(f"{name} by {error:.1e}")
    return ", ".join(found)


def test_convolutions() -> None:
    wrong = []
    antorcha.manual_seed(0)
    fallback.noted.clear()
    for dtype in list(CLOSE)[1:]:
        kind = getattr(antorcha, dtype)
        orders = ("", "channels last", "every other") if dtype == "float32" else ("",)
        for xs, ws, options in CASES if dtype in ("float32", "bfloat16") else CASES[2:9:3]:
            operands = [antorcha.randn(*s).to(kind) for s in (xs, ws, ws[:1])]
            call = getattr(F, f"conv{len(xs) - 2}d")
            for order in orders:
                text = differing(call, operands, order, options, dtype)
                if text:
                    wrong.append(f"{dtype} {xs} {ws} {options} {order}: {text}")
    assert not wrong
    assert "Conv" not in fallback.noted


def test_convolutions_by_tensor_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels in whole pieces of 16 bytes, or filled up to such; of f32 as TF32, and exactly."""
    monkeypatch.setattr(conv_pieces, "LEAST", 0)
    plan.flush()
    wrong = []
    antorcha.manual_seed(2)
    for name, few in (("tf32", 1), ("float32", 3), ("bfloat16", 1), ("float16", 5)):
        switches.cudnn.allow_tf32 = name == "tf32"
        dtype = "float32" if name == "tf32" else name
        for k, (xs, ws, options) in enumerate(IN_PIECES):
            operands = [antorcha.randn(*s).to(getattr(antorcha, dtype)) for s in (xs, ws, ws[:1])]
            call = getattr(F, f"conv{len(xs) - 2}d")
            order = "channels last" if (k + (name == "tf32")) % 2 else ""
            text = differing(call, operands, order, options, dtype, name) if k % few == 0 else ""
            if text:
                wrong.append(f"{name} {xs} {ws} {options} {order}: {text}")
    assert not wrong


def test_transposed_convolutions() -> None:
    wrong = []
    antorcha.manual_seed(1)
    for options in ({}, {"stride": 3, "output_padding": 2}, {"dilation": 2, "padding": 1},
                    {"groups": 2, "stride": 2}):  # fmt: skip
        for dtype in ("float32", "bfloat16"):
            kind, groups = getattr(antorcha, dtype), options.get("groups", 1)
            x = antorcha.randn(2, 4, 7, 6).to(kind)
            w, b = antorcha.randn(4, 5, 3, 3).to(kind), antorcha.randn(5 * groups).to(kind)
            text = differing(F.conv_transpose2d, [x, w, b], "", options, dtype)
            if text:
                wrong.append(f"{dtype} {options}: {text}")
    assert not wrong


def test_no_images() -> None:
    b = antorcha.arange(3, dtype=antorcha.float32, device="sim")
    what = antorcha.zeros(2, 1, 0, device="sim"), antorcha.ones(3, 1, 3, device="sim"), b
    found = T.conv_forward(*what, (2,), (1,), (2,), (1,), 1)  # of padding alone
    assert np.array_equal(found.cpu().numpy(), np.broadcast_to([[0], [1], [2]], (2, 3, 2)))
    x = antorcha.zeros(0, 3, 5, 5, device="sim")
    w = antorcha.ones(4, 3, 3, 3, device="sim", requires_grad=True)
    y = F.conv2d(x, w)
    assert tuple(y.shape) == (0, 4, 3, 3)
    (g,) = antorcha.autograd.grad(y.sum(), w)
    assert np.array_equal(g.cpu().numpy(), np.zeros((4, 3, 3, 3)))
