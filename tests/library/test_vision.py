"""``torch.ops.torchvision``: regions of interest, nms, deformed convolutions."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.lang.native import interpreted
from tests.patience import PATIENCE

vision = torch.ops.torchvision
PROGRAM = Path(__file__).with_name("program_torchvision.py")


def rois() -> Any:
    return torch.tensor(
        [[0, 0.5, 0.5, 3.2, 4.1], [1, -1.0, 2.0, 6.0, 9.0], [0, 3.0, 3.0, 3.0, 3.0]],
        dtype=torch.float64,
    )


def image(channels: int = 4) -> Any:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(2, channels, 6, 5, generator=generator, dtype=torch.float64)


CALLS: dict[str, Any] = {
    "roi_align": lambda x: vision.roi_align(x, rois(), 1.0, 2, 2, 2, True),
    "roi_align, adaptive": lambda x: vision.roi_align(x, rois(), 0.5, 2, 3, -1, False),
    "ps_roi_align": lambda x: vision.ps_roi_align(x, rois(), 1.0, 2, 2, 2)[0],
    "roi_pool": lambda x: vision.roi_pool(x, rois(), 1.0, 2, 2)[0],
    "ps_roi_pool": lambda x: vision.ps_roi_pool(x, rois(), 1.0, 2, 2)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_gradients_of_regions(name: str) -> None:
    x = image().requires_grad_()
    assert torch.autograd.gradcheck(CALLS[name], (x,))


def test_averages_of_a_plane() -> None:
    # a bilinear sample of a plane a * y + b * x is the plane there, so a bin's mean is its centre
    y, x = torch.meshgrid(torch.arange(8.0), torch.arange(9.0), indexing="ij")
    plane = (2 * y + 3 * x)[None, None]
    box = torch.tensor([[0.0, 1.0, 2.0, 5.0, 6.0]])
    bins = vision.roi_align(plane, box, 1.0, 2, 2, 2, False)
    assert bins.flatten().tolist() == [2 * y + 3 * x for y in (3, 5) for x in (2, 4)]
    ours = vision.roi_pool(plane, box, 1.0, 1, 1)
    assert ours[0].item() == 2 * 6 + 3 * 5
    assert ours[1].item() == 6 * 9 + 5


def test_nms() -> None:
    boxes = torch.tensor([[0, 0, 4, 4], [0, 0, 4, 3.9], [5, 5, 9, 9], [5, 6, 9, 10.0]])
    scores = torch.tensor([0.5, 0.9, 0.3, 0.8])
    assert vision.nms(boxes, scores, 0.5).tolist() == [1, 3]
    assert vision.nms(boxes, scores, 0.99).tolist() == [1, 3, 0, 2]
    assert vision.nms(boxes[:0], scores[:0], 0.5).tolist() == []
    with interpreted():
        assert vision.nms(boxes, scores, 0.5).tolist() == [1, 3]
    for wrong in ((boxes[:, :3], scores), (boxes, scores[:2]), (boxes, scores[:, None])):
        with pytest.raises(RuntimeError, match="nms"):
            vision.nms(*wrong, 0.5)


def test_under_autocast_a_kernel_may_cast_first() -> None:
    lib = torch.library.Library("vision_test", "DEF")
    lib.define("dtype(Tensor x) -> Tensor")
    lib.impl("dtype", lambda x: x.clone(), "CPU")
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
    op = torch.ops.vision_test.dtype

    def cast(x: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return op(x.double())

    lib.impl("dtype", cast, "AutocastCPU")
    assert op(torch.ones(1)).dtype is torch.float32
    with torch.autocast("cpu"):
        assert op(torch.ones(1)).dtype is torch.float64
    with pytest.raises(NotImplementedError, match="AutogradCPU"):
        torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradCPU))


def deform(groups: int, offset_groups: int, use_mask: bool) -> Any:
    def run(x: Any, weight: Any, offset: Any, mask: Any, bias: Any) -> Any:
        return vision.deform_conv2d(
            x, weight, offset, mask, bias, 1, 2, 1, 0, 1, 1, groups, offset_groups, use_mask
        )

    return run


@pytest.mark.parametrize(("groups", "offset_groups", "masked"), [(1, 1, True), (2, 2, False)])
def test_deformed_convolutions(groups: int, offset_groups: int, masked: bool) -> None:
    generator = torch.Generator().manual_seed(1)

    def rand(*shape: int) -> Any:
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    x, weight, bias = rand(2, 4, 4, 5), rand(2, 4 // groups, 3, 2), rand(2)
    taps = offset_groups * 6
    mask = rand(2, taps, 4, 2)
    run = deform(groups, offset_groups, masked)
    straight = run(x, weight, torch.zeros(2, 2 * taps, 4, 2).double(), torch.ones_like(mask), bias)
    expected = torch.nn.functional.conv2d(x, weight, bias, (1, 2), (1, 0), groups=groups)
    assert torch.allclose(straight, expected)
    offset = (rand(2, 2 * taps, 4, 2) - 0.5) * 3
    operands = [each.requires_grad_() for each in (x, weight, offset, mask, bias)]
    assert torch.autograd.gradcheck(run, operands)
    with pytest.raises(RuntimeError, match="offset"):
        run(x, weight, offset[:, 1:], mask, bias)


def test_refusals() -> None:
    with pytest.raises(RuntimeError, match="same type"):
        vision.roi_align(image().float(), rois(), 1.0, 2, 2, 2, True)
    with pytest.raises(NotImplementedError, match="float16"):
        vision.roi_align(image().half(), rois().half(), 1.0, 2, 2, 2, True)
    with pytest.raises(RuntimeError, match="rois"):
        vision.roi_pool(image(1)[:1], rois(), 1.0, 2, 2)
    with pytest.raises(NotImplementedError, match=r"torch\.ops\.image\.decode_png"):
        torch.ops.image.decode_png(torch.zeros(4, dtype=torch.uint8), 0)
    with pytest.raises(NotImplementedError, match="quantized"):
        vision.qnms(rois()[:, 1:], rois()[:, 0], 0.5)


def test_the_wheels_library_is_served(tmp_path: Path) -> None:
    torch.ops.load_library(str(tmp_path / "torchvision" / "_C_stable.so"))
    with pytest.raises(OSError, match="cannot be loaded"):
        torch.ops.load_library(str(tmp_path / "other" / "_C_stable.so"))
    data = torch.arange(5, dtype=torch.uint8)
    torch.ops.image.write_file(str(tmp_path / "x"), data)
    assert np.array_equal(torch.ops.image.read_file(str(tmp_path / "x")), data)


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torchvision", "timm")),
    reason="torchvision and timm are not installed",
)
def test_torchvision_and_timm_run_unchanged() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "antorcha", "run", str(PROGRAM)],
        capture_output=True, text=True, timeout=PATIENCE, env={**os.environ},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert "resnet18 trained" in done.stdout
    assert "timm vit_tiny_patch16_224 ran" in done.stdout
