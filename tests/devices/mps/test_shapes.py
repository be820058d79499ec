"""Convolutions, windows, lines and folds of many shapes, with gradients, as on the CPU."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import antorcha as torch

F = torch.nn.functional


def results(f: Callable[..., Any], device: str, given: tuple[Any, ...]) -> list[Any]:
    leaves = [x.detach().clone().to(device) for x in given]
    for x in leaves:
        if x.dtype.is_floating_point:
            x.requires_grad_()
    found = f(*leaves)
    found = list(found) if isinstance(found, (tuple, list)) else [found]
    ends = [(r * r).sum() for r in found if r.requires_grad]
    if ends:
        sum(ends).backward()
    found += [x.grad for x in leaves if x.grad is not None]
    return [np.asarray(r.detach().cpu().tolist()) for r in found]


def differs(f: Callable[..., Any], *given: Any) -> bool:
    ours, theirs = [results(f, device, given) for device in ("cpu", "mps")]
    assert len(ours) == len(theirs)
    return not all([
        x.shape == y.shape and np.allclose(x, y, 2e-4, 2e-4 * max(1, np.abs(x).max(initial=0)))
        for x, y in zip(ours, theirs, strict=True)
    ])  # fmt: skip


def test_differences_are_seen() -> None:
    x = torch.ones(3)
    assert differs(lambda x: x * (1 + 0.01 * x.is_mps), x)
    assert not differs(lambda x: x * 2, x)


def test_convolutions() -> None:
    turn = random.Random(0)
    wrong = []
    for _ in range(14):
        nd, groups = turn.randint(1, 3), turn.randint(1, 3)
        c, k = groups * turn.randint(1, 2), groups * turn.randint(1, 3)
        pick = [[turn.randint(*bounds) for _ in range(nd)]
                for bounds in ((1, 3), (1, 3), (0, 2), (1, 2), (5, 9))]  # fmt: skip
        taps, stride, padding, dilation, size = pick
        x, bias = torch.randn(2, c, *size), torch.randn(k)
        forward = [F.conv1d, F.conv2d, F.conv3d][nd - 1]
        back = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][nd - 1]
        more = [turn.randint(0, max(s, d) - 1) for s, d in zip(stride, dilation, strict=True)]

        def convolve(x: Any, w: Any, b: Any, f: Any = forward, how: Any = (
            stride, padding, dilation, groups)) -> Any:  # fmt: skip
            return f(x, w, b, *how)

        def transposed(x: Any, w: Any, b: Any, f: Any = back, how: Any = (
            stride, padding, more, groups, dilation)) -> Any:  # fmt: skip
            return f(x, w, b, *how)

        if differs(convolve, x, torch.randn(k, c // groups, *taps), bias):
            wrong.append(f"forward {pick} {groups}")
        if differs(transposed, x, torch.randn(c, k // groups, *taps), bias):
            wrong.append(f"transposed {pick} {more} {groups}")
    assert not wrong, wrong


WINDOWS: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
    "max, hanging over": lambda x: F.max_pool2d(x, 2, 3, ceil_mode=True),
    "average": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
    "adaptive max": lambda x: F.adaptive_max_pool2d(x, (3, 2)),
    "blocks": lambda x: F.fold(F.unfold(x, 2, 2, 1), x.shape[2:], 2, 2, 1),
    "bilinear": lambda x: F.interpolate(x, size=(7, 5), mode="bilinear"),
    "nearest": lambda x: F.interpolate(x, scale_factor=1.7),
}


def test_windows() -> None:
    wrong = [
        f"{name} {shape}" for name, f in WINDOWS.items() for shape in ((2, 3, 8, 5), (1, 2, 9, 9))
        if differs(f, torch.randn(*shape))
    ]  # fmt: skip
    assert not wrong, wrong


LINES: dict[str, Callable[[Any, int], Any]] = {
    "sum": lambda x, d: x.sum(d), "std": lambda x, d: x.std(d), "amax": lambda x, d: x.amax(d),
    "argmax": lambda x, d: x.argmax(d), "cumsum": lambda x, d: x.cumsum(d),
    "cummax": lambda x, d: x.cummax(d), "cumprod": lambda x, d: x.cumprod(d),
    "softmax": lambda x, d: x.softmax(d), "sort": lambda x, d: x.sort(d, descending=True),
    "topk": lambda x, d: x.topk(2, d), "median": lambda x, d: x.median(d),
    "mode": lambda x, d: (x * 3).round().mode(d), "norm": lambda x, d: x.norm(dim=d),
    "unique": lambda x, d: (x.detach() * 3).round().unique(return_inverse=True, return_counts=True),
    "nonzero": lambda x, d: (x > 0).nonzero(), "masked": lambda x, d: x[x > 0],
    "layer norm": lambda x, d: F.layer_norm(x, x.shape[-1:]),
}  # fmt: skip


def test_lines() -> None:
    wrong = []
    for shape in ((37,), (5, 70), (9, 2, 33)):
        for name, f in LINES.items():
            for d in range(len(shape)):
                x = torch.randn(*shape)
                if differs(lambda x, f=f, d=d: f(x, d), x):
                    wrong.append(f"{name} {shape} {d}")
                if differs(lambda x, f=f, d=d: f(x.transpose(0, -1), d), x):
                    wrong.append(f"{name} {shape} {d}, transposed")
    assert not wrong, wrong


def test_integers() -> None:
    x = torch.randint(-1000, 1000, (23, 8))

    def work(x: Any) -> list[Any]:
        low = torch.zeros(3, dtype=torch.int64, device=x.device)
        return [
            x.sum(0), x.cumsum(0), x // 7, x % -5, x.unique(), torch.bincount(x.abs().flatten()),
            x.prod(0), (x * 2**40).sum(), x @ x.t(), x.index_add(0, low, x[:1].expand(3, -1)),
            x.scatter_reduce(0, x[:4].abs() % 23, x[:4], "mean"), x << 3, x >> 2, x**2,
        ]  # fmt: skip

    assert not differs(work, x)


SPECIAL = ("erfc", "lgamma", "digamma", "special_erfcx", "special_i0e", "special_i1",
           "special_modified_bessel_k0", "special_ndtr")  # fmt: skip


def test_special_functions() -> None:
    x = torch.cat([torch.linspace(-9, 9, 401), torch.tensor([0.0, 1, 2, 30, float("inf")])])
    wrong = []
    for name in SPECIAL:
        f = getattr(torch.special, name[8:]) if name[:8] == "special_" else getattr(torch, name)
        ours, theirs = [np.asarray(f(x.to(d)).tolist()) for d in ("cpu", "mps")]
        if not np.allclose(ours, theirs, 1e-5, 1e-6, equal_nan=True):
            wrong.append(name)
    assert not wrong, wrong
