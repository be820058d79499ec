"""Operands as large as programs have, on a GPU beside the CPU in float64: what the records' samples
are too small for (tiles, stages of copies, parts of a sum that blocks share)."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import antorcha as torch

F = torch.nn.functional
TOLERANCE = {"float32": 4e-6, "float16": 2e-3, "bfloat16": 1.6e-2}
"""Of the norm of the difference over the norm of the right result. Float32: the gradients of
convolutions' weights by cuDNN err by up to 3.1e-6; what else there is, by less than 1e-6."""
Operands = list[torch.Tensor]
Case = tuple[str, list[tuple[int, ...]], Callable[..., Any]]


def product_cases() -> Iterator[Case]:
    """Sizes that tiles divide and that they do not, every order in memory, with a bias or not."""
    for m, n, k in ((1024, 1024, 1024), (1000, 777, 333), (130, 2048, 4096), (72, 80, 8200)):
        for a_turned, b_turned in itertools.product((False, True), repeat=2):
            a = (k, m) if a_turned else (m, k)
            b = (n, k) if b_turned else (k, n)

            def multiply(x: Any, y: Any, turns: Any = (a_turned, b_turned)) -> Any:
                return (x.t() if turns[0] else x) @ (y.t() if turns[1] else y)

            yield f"({m}, {k}) @ ({k}, {n}), turned {a_turned}, {b_turned}", [a, b], multiply
        yield f"linear {m, n, k}", [(m, k), (n, k), (n,)], F.linear
        yield (
            f"addmm {m, n, k}",
            [(m, n), (m, k), (k, n)],
            lambda c, x, y: torch.addmm(c, x, y, beta=0.5, alpha=2),
        )
    yield "bmm", [(12, 256, 200), (12, 200, 264)], torch.bmm
    yield "a stack and a factor", [(6, 256, 200), (200, 264)], torch.matmul


def convolution_cases() -> Iterator[Case]:
    """Strides, padding, groups, one to three dims."""
    for name, image, weight, options in (
        ("3x3", (4, 64, 28, 30), (48, 64, 3, 3), {"padding": 1}),
        ("strided", (3, 33, 31, 29), (40, 33, 5, 3), {"stride": 2, "padding": 2}),
        ("1x1", (4, 128, 17, 19), (64, 128, 1, 1), {}),
        ("groups", (2, 32, 20, 20), (64, 8, 3, 3), {"groups": 4, "dilation": 2}),
    ):
        yield f"conv {name}", [image, weight], lambda x, w, o=options: F.conv2d(x, w, **o)
        yield (
            f"conv {name}, channels last",
            [image, weight],
            lambda x, w, o=options: F.conv2d(
                x.contiguous(memory_format=torch.channels_last), w, **o
            ),
        )
    yield "conv1d", [(4, 40, 500), (64, 40, 7)], lambda x, w: F.conv1d(x, w, padding=3)
    yield "conv3d", [(2, 16, 9, 10, 11), (24, 16, 3, 3, 3)], lambda x, w: F.conv3d(x, w, padding=1)


def attention_cases() -> Iterator[Case]:
    """Head sizes, lengths that tiles do not divide, causal and not, heads between the tokens."""
    for size, queries, keys in ((64, 512, 512), (128, 200, 333), (96, 130, 130), (32, 65, 257)):
        shapes = [(2, 3, queries, size), (2, 3, keys, size), (2, 3, keys, size)]
        for causal in (False, True):
            if causal and queries != keys:
                continue
            yield (
                f"attention {size, queries, keys, causal}",
                shapes,
                lambda q, k, v, c=causal: F.scaled_dot_product_attention(q, k, v, is_causal=c),
            )
    between = [(2, 300, 4, 64)] * 3
    yield (
        "attention, heads inside",
        between,
        lambda *given: F.scaled_dot_product_attention(
            *[t.transpose(1, 2) for t in given], is_causal=True
        ),
    )


def row_cases() -> Iterator[Case]:
    """Rows that are gathered and added to, folds, normalised rows, sorted ones."""
    ids = torch.randint(0, 5000, (3000,), generator=torch.Generator().manual_seed(1))

    def embedded(table: Any) -> Any:
        return F.embedding(ids.to(table.device), table)

    yield "embedding", [(5000, 384)], embedded
    yield "index_select", [(60, 5000)], lambda x: x.index_select(1, ids.to(x.device))
    yield (
        "layer_norm",
        [(600, 1500), (1500,), (1500,)],
        lambda x, w, b: F.layer_norm(x, (1500,), w, b),
    )
    yield "softmax", [(300, 4099)], lambda x: x.softmax(1)
    yield "sums", [(3000, 1100)], lambda x: torch.cat([x.sum(0), x.sum(1), x.mean()[None]])
    yield "cumsum", [(50, 9000)], lambda x: (x / 90).cumsum(1)
    yield "sort", [(30, 9001)], lambda x: x.sort(1).values


def difference(case: Case, dtype: str, on: str) -> str:
    """How results and gradients on the GPU differ from those of the CPU; empty if they do not."""
    name, shapes, compute = case
    kind, generator = getattr(torch, dtype), torch.Generator().manual_seed(len(name))
    given = [torch.randn(shape, generator=generator).to(kind) for shape in shapes]
    found = []
    for device, wanted in ((on, kind), ("cpu", torch.float64)):
        leaves = [t.detach().to(wanted).to(device).clone().requires_grad_() for t in given]
        out = compute(*leaves)
        seed = torch.Generator().manual_seed(5)
        out.backward(torch.randn(out.shape, generator=seed).to(kind).to(wanted).to(device))
        grads = [t.grad for t in leaves if t.grad is not None]
        found.append([t.detach().cpu().double() for t in (out, *grads)])
    errors = [((a - b).norm() / (b.norm() + 1e-30)).item() for a, b in zip(*found, strict=True)]
    if all([error <= TOLERANCE[dtype] for error in errors]):
        return ""
    return f"{name} {dtype}: errors {[float(f'{error:.2e}') for error in errors]}"


GROUPS: tuple[Callable[[], Iterator[Case]], ...] = (
    product_cases, convolution_cases, attention_cases, row_cases,
)  # fmt: skip


def compare_large(number: int, count: int, on: str = "cuda", small: bool = False) -> dict[str, Any]:
    """Part ``number`` of ``count`` of the cases, in three dtypes; products without TF32."""
    cases = [
        (case, dtype) for group in GROUPS for case in group() for dtype in TOLERANCE
    ][number::count]  # fmt: skip
    before, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False
    try:
        found = [told(case, dtype, on) for case, dtype in (cases[:1] if small else cases)]
    finally:
        torch.backends.cudnn.allow_tf32 = before
    return {"cases": len(cases), "wrong": [text for text in found if text]}


def told(case: Case, dtype: str, on: str) -> str:
    """`difference`, or the error's text."""
    try:
        return difference(case, dtype, on)
    except Exception:
        return f"{case[0]} {dtype}: {traceback.format_exc(limit=-2)}"
