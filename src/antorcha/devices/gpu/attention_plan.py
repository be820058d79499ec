"""How attention and its gradient become kernels: which ones, their words, and how work is cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.devices.emit import MOST_KEPT, Unsupported
from antorcha.devices.gpu.attention_cores import LN_2, ForwardCode, attention_cores
from antorcha.devices.gpu.attention_frame import PLANES, PlanesCode, attention_planes, padded
from antorcha.devices.gpu.attention_gradient_cores import (
    SOURCES,
    SUM,
    GradientCode,
    attention_gradient_cores,
)
from antorcha.devices.gpu.frame import GridPlan, GridStep, blocks_for, dim_words, index_type
from antorcha.lang.kernels import Attention, AttentionGradient
from antorcha.runtime.memory.layout import Layout

LEAST = 2.0**-126  # a scale: by any such a hidden score is -inf
MOST_FEATURES = {"float16": 256, "bfloat16": 256, "float32": 112}
"""Features, at most, that a warp's registers and a block's shared memory have room for."""
MOST_DERIVED = {"float16": 128, "bfloat16": 128, "float32": 64}
"""The same of the gradient."""
MOST_DIMS = 6  # of heads, whose strides are a launch's words
_codes: dict[Any, Any] = {}


def bits_of(x: float) -> int:
    """A float64's bits, as a word."""
    return int(np.array([x], np.float64).view(np.int64)[0])


def forward_cut(depth: int, wide: int, split: bool) -> tuple[int, int, int]:
    """Warps, fragments of rows of each, and keys of a tile in shared memory."""
    most = max(depth, wide)
    if split:
        return 4, 1, 16
    if most <= 64:
        return 4, 2, 64
    return (4, 1, 32) if most <= 128 else (4, 1, 16)


def gradient_cuts(depth: int, wide: int, split: bool) -> list[tuple[str, tuple[int, int, int]]]:
    """What each kernel finds; warps, fragments of rows of each, and rows of a tile beside."""
    most = max(depth, wide)
    if split:
        return [("query", (4, 1, 16)), ("key value", (4, 1, 16))]
    if most <= 64:
        return [("query", (4, 2, 32)), ("key value", (4, 1, 64))]
    if most <= 96:
        return [("query", (4, 1, 32)), ("key value", (4, 1, 32))]
    return [(finds, (4, 1, 32)) for finds in ("query", "key", "value")]


def _same(code: Any) -> Any:
    """The code that is kept for all of its key."""
    return kept(_codes, (type(code), code.__native_key__()), lambda _: code, MOST_KEPT)


@dataclass
class AttentionShape:
    """What the steps of a plan have in common; ``sums`` is the place of the logarithms among the
    operands."""

    what: Any
    outs: Sequence[Layout]
    ins: Sequence[Layout]
    sums: int | None
    sources: tuple[int, ...]  # operands that are multiplied: queries, keys, values, gradient

    def __post_init__(self) -> None:
        self.operands = (*self.outs, *self.ins)
        query, value = self.ins[0], self.ins[2]
        self.queries, self.features = query.shape[-2:]
        self.keys, self.width = value.shape[-2:]
        self.widths = padded(self.features), padded(self.width)
        self.count = math.prod(query.shape[:-2])
        self.sizes, self.columns = collapse(query.shape[:-2], [
            o.strides[: -1 if k == self.sums else -2] for k, o in enumerate(self.operands)
        ])  # fmt: skip
        if len(self.sizes) > MOST_DIMS:
            raise Unsupported(f"attention over {len(self.sizes)} dims of heads")
        self.split = query.dtype.itemsize == 4
        most = max(self.queries, self.keys) * max(self.widths) * self.count
        self.index = index_type(self.operands, most * (PLANES if self.split else 1))
        self.strides = [
            s for k, o in enumerate(self.operands)
            for s in ((0, o.strides[-1]) if k == self.sums else o.strides[-2:])
        ]  # fmt: skip

    def code(self, kind: Any, *args: Any) -> Any:
        """The code of a kernel, of which there is one."""
        rest = (self.outs, self.ins, self.index, self.what.causal, len(self.sizes), self.widths)
        return _same(kind(*args[:-1], *rest, args[-1]))

    def words(self, tiles: int, *more: int) -> tuple[int, ...]:
        """A step's words: sizes, what is its own, strides, dims."""
        return (
            self.count, self.queries, self.keys, self.features, self.width, tiles, *more,
            *self.strides, *dim_words(self.sizes, self.columns),
        )  # fmt: skip

    def step(
        self, kernel: Any, code: Any, tiles: int, buffers: tuple[int, ...], words: tuple[int, ...]
    ) -> GridStep:
        """A kernel with a block for every tile of every head."""
        blocks = blocks_for(self.count * tiles, 1)
        return GridStep(kernel, {"P": code}, blocks, code.threads, buffers, words)

    def planes(self, first: int) -> tuple[list[GridStep], list[int]]:
        """The steps that write the operands' planes, to temporaries from buffer ``first`` on, and
        the bytes of these."""
        steps: list[GridStep] = []
        temporaries: list[int] = []
        if not self.split:
            return steps, temporaries
        for n, k in enumerate(self.sources):
            of = self.operands[k]
            rows, features = of.shape[-2:]
            depth = padded(features)
            code = _same(PlanesCode(of, self.index, len(self.sizes), depth))
            words = (
                self.count, rows, features, *of.strides[-2:],
                *dim_words(self.sizes, [self.columns[k]]),
            )  # fmt: skip
            pairs = self.count * rows * depth // 2
            steps.append(
                GridStep(attention_planes, {"P": code}, blocks_for(pairs), code.threads,
                         (k, first + n), words)
            )  # fmt: skip
            temporaries.append(4 * PLANES * pairs)
        return steps, temporaries


def plan_cores(what: Attention, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    """Attention by tensor cores."""
    first = len(outs)
    of = AttentionShape(what, outs, ins, 1 if first > 1 else None, (first, first + 1, first + 2))
    code = of.code(ForwardCode, forward_cut(*of.widths, of.split))
    tiles = -(-of.queries // code.rows)
    scale = max(abs(what.scale), LEAST) / LN_2
    signs = 0x80008000 if what.scale < 0 else 0
    steps, temporaries = of.planes(len(of.operands))
    buffers = tuple(range(len(of.operands) + len(temporaries)))
    words = of.words(tiles, bits_of(scale), signs)
    steps.append(of.step(attention_cores, code, tiles, buffers, words))
    return GridPlan(tuple(steps), tuple(temporaries))


def takes_cores(out: Layout, ins: Sequence[Layout], most: dict[str, int]) -> bool:
    """Are these operands of one type, and of so many features at most?"""
    query, value = ins[0], ins[2]
    kinds = {o.dtype for o in (out, *ins)}
    features = query.shape[-1], value.shape[-1]
    return len(kinds) == 1 and min(features) > 0 and max(features) <= most.get(query.dtype.name, 0)


def plan_gradient(what: AttentionGradient, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    """The gradient of attention."""
    if not takes_cores(ins[3], [*ins[:3], ins[5]], MOST_DERIVED):
        raise Unsupported(f"the gradient of attention of {ins[0].dtype}")
    if not all([o.numel for o in ins]):
        raise Unsupported("the gradient of attention to nothing")
    of = AttentionShape(what, outs, ins, SUM, SOURCES)
    steps, temporaries = of.planes(len(of.operands) + 1)
    buffers = tuple(range(len(of.operands) + 1 + len(temporaries)))
    for finds, cut in gradient_cuts(*of.widths, of.split):
        code = of.code(GradientCode, finds, cut)
        tiles = -(-(of.queries if code.by_query else of.keys) // code.rows)
        words = of.words(tiles, bits_of(what.scale))
        steps.append(of.step(attention_gradient_cores, code, tiles, buffers, words))
    return GridPlan(tuple(steps), (8 * max(of.count * of.queries, 1), *temporaries))
