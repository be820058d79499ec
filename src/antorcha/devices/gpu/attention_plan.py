"""How attention and its gradient become kernels: which ones, their words, and how work is cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from antorcha.core.loops import collapse
from antorcha.core.memo import kept
from antorcha.devices.emit import MOST_KEPT, Unsupported
from antorcha.devices.gpu.attention_cores import CORE_WORDS, LN_2, attention_cores
from antorcha.devices.gpu.attention_frame import AttentionCode, last_strides, padded
from antorcha.devices.gpu.attention_gradient_cores import (
    SUM,
    GradientCode,
    attention_gradient_cores,
)
from antorcha.devices.gpu.frame import GridPlan, GridStep, blocks_for, dim_words, index_type
from antorcha.lang.kernels import Attention, AttentionGradient
from antorcha.runtime.memory.layout import Layout

MOST_FEATURES = 256  # whose sums a warp's registers hold
MOST_GRADIENT_FEATURES = 128
_codes: dict[Any, AttentionCode] = {}


def bits_of(x: float) -> int:
    """A float64's bits, as a word."""
    return int(np.array([x], np.float64).view(np.int64)[0])


def heads_of(operands: Sequence[Layout], rows: Sequence[bool]) -> tuple[Any, Any]:
    """The dims before matrices, or rows of numbers: sizes, and each operand's strides."""
    lead = operands[0].shape[:-2]
    columns = [o.strides[: -2 if r else -1] for o, r in zip(operands, rows, strict=True)]
    return collapse(lead, columns)


def forward_cut(depth: int, wide: int) -> tuple[int, int, int]:
    """Warps, fragments of rows of each, and keys of a tile in shared memory."""
    most = max(depth, wide)
    if most <= 64:
        return 4, 2, 64
    return (4, 1, 32) if most <= 128 else (4, 1, 16)


def plan_cores(what: Attention, outs: Sequence[Layout], ins: Sequence[Any]) -> GridPlan:
    """Attention of halves."""
    operands = (*outs, *ins)
    query, key, value = ins
    *heads, queries, features = query.shape
    keys, width = value.shape[-2:]
    rows = [True, *[False] * (len(outs) - 1), True, True, True]
    sizes, columns = heads_of(operands, rows)
    widths = padded(features), padded(width)
    index, dims = index_type(operands, outs[0].numel), len(sizes)
    code = AttentionCode(
        outs, ins, index, what.causal, dims, widths, forward_cut(*widths), CORE_WORDS
    )
    code = kept(_codes, code.__native_key__(), lambda _: code, MOST_KEPT)
    count, tiles = math.prod(heads), -(-queries // code.rows)
    scale = max(abs(what.scale), np.finfo(np.float32).tiny) / LN_2
    signs = 0x80008000 if what.scale < 0 else 0
    strides = [s for o, r in zip(operands, rows, strict=True) for s in last_strides(o, r)]
    words = (
        count, queries, keys, features, width, tiles, bits_of(scale), signs, *strides,
        *dim_words(sizes, columns),
    )  # fmt: skip
    step = GridStep(
        attention_cores, {"P": code}, blocks_for(count * tiles, 1), code.threads,
        tuple(range(len(operands))), words,
    )  # fmt: skip
    return GridPlan((step,))


def takes_cores(outs: Sequence[Layout], ins: Sequence[Layout], most: int = MOST_FEATURES) -> bool:
    """Are these halves of one type, of so many features at most?"""
    query, value = ins[0], ins[2]
    kinds = {o.dtype for o in (outs[0], *ins[:3])}
    half = len(kinds) == 1 and query.dtype.name in ("float16", "bfloat16")
    return half and 0 < query.shape[-1] <= most and value.shape[-1] <= most


# ------------------------------------------------------------------------------------ gradients
def gradient_cuts(depth: int, wide: int) -> list[tuple[str, tuple[int, int, int]]]:
    """What each kernel finds; warps, fragments of rows of each, and rows of a tile beside."""
    most = max(depth, wide)
    if most <= 64:
        return [("query", (4, 1, 64)), ("key value", (4, 1, 64))]
    if most <= 96:
        return [("query", (4, 1, 32)), ("key value", (4, 1, 32))]
    return [(finds, (4, 1, 32)) for finds in ("query", "key", "value")]


def plan_gradient(
    what: AttentionGradient, outs: Sequence[Layout], ins: Sequence[Any]
) -> GridPlan:
    """The gradient of attention."""
    if not takes_cores([ins[3]], ins, MOST_GRADIENT_FEATURES):
        raise Unsupported(f"the gradient of attention of {ins[0].dtype}")
    operands = (*outs, *ins)
    *heads, queries, features = ins[0].shape
    keys, width = ins[2].shape[-2:]
    rows = [k != SUM for k in range(len(operands))]
    sizes, columns = heads_of(operands, rows)
    widths = padded(features), padded(width)
    count = math.prod(heads)
    index, dims = index_type(operands, ins[3].numel), len(sizes)
    strides = [s for o, r in zip(operands, rows, strict=True) for s in last_strides(o, r)]
    steps = []
    for finds, cut in gradient_cuts(*widths):
        code = GradientCode(finds, outs, ins, index, what.causal, dims, widths, cut)
        code = kept(_codes, code.__native_key__(), lambda _, code=code: code, MOST_KEPT)
        tiles = -(-(queries if code.by_query else keys) // code.rows)
        words = (
            count, queries, keys, features, width, tiles, bits_of(what.scale), *strides,
            *dim_words(sizes, columns),
        )  # fmt: skip
        steps.append(
            GridStep(
                attention_gradient_cores, {"P": code}, blocks_for(count * tiles, 1), code.threads,
                tuple(range(len(operands) + 1)), words,
            )  # fmt: skip
        )
    return GridPlan(tuple(steps), (4 * max(count * queries, 1),))
