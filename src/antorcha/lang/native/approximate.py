"""Instructions of GPUs that round less exactly, or more at once, than the language's operations.

As in ``grid``, each name has three forms: PTX's instruction, the simulator's, and plain Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from antorcha.lang.native import grid
from antorcha.lang.native.function import native
from antorcha.lang.native.intrinsics import bitcast
from antorcha.lang.native.semantics import convert
from antorcha.lang.native.types import f16, f32, i32, u16, u32
from antorcha.lang.native.values import V, intrinsic
from antorcha.lang.native.vectors import fma, roundeven, select

EXP2 = (1.5403530e-4, 1.3333558e-3, 9.6181291e-3, 5.5504109e-2, 2.4022651e-1, 6.9314718e-1, 1.0)
"""Taylor's coefficients of 2**x, the highest first."""


@native
def exp2_series(x: f32) -> f32:
    """2**x within 2e-7 of itself; 0 where the result would be denormal."""
    near = roundeven(min(max(x, -127.0), 128.0))
    r = x - near
    total = f32(EXP2[0])
    total = fma(total, r, EXP2[1])
    total = fma(total, r, EXP2[2])
    total = fma(total, r, EXP2[3])
    total = fma(total, r, EXP2[4])
    total = fma(total, r, EXP2[5])
    total = fma(total, r, EXP2[6])
    found = total * bitcast(f32, (i32(near) + 127) << 23)
    found = select(x >= 128.0, float("inf"), found)
    found = select(x < -126.0, 0.0, found)
    return x if x != x else found


def _python_exp2(x: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.float32(0) if x < -126 else np.exp2(np.float32(x))


@intrinsic(_python_exp2)
def exp2_near(g: Any, node: Any, x: Any) -> V:
    """2**x of an f32 within two units in the last place; 0 where the result would be denormal."""
    grid._in_kernel(g, node, "exp2_near")
    x = g.rt(x, node, f32)
    if g.target.grid != "ptx":
        return g.call(exp2_series, [x], {}, node)  # type: ignore[no-any-return]
    return g.intr("llvm.nvvm.ex2.approx.ftz.f", f32, [f"float {x.ref}"])  # type: ignore[no-any-return]


def _python_pack(T: Any, low: Any, high: Any) -> Any:
    bits = [int(bitcast(u16, convert(T, np.float32(x)))) for x in (low, high)]
    return np.uint32(bits[0] | bits[1] << 16)


@intrinsic(_python_pack)
def pack_pair(g: Any, node: Any, T: Any, low: Any, high: Any) -> V:
    """Two f32 rounded to the half type T, in one u32."""
    grid._in_kernel(g, node, "pack_pair")
    low, high = g.rt(low, node, f32), g.rt(high, node, f32)
    if g.target.grid != "ptx":
        bits = [g.cast(u32, g.bitcast(u16, g.narrow(T, x), node), node) for x in (low, high)]
        return g.v(u32, f"or i32 {bits[0].ref}, {g.op(f'shl i32 {bits[1].ref}, 16')}")  # type: ignore[no-any-return]
    kind, name = ("half", "ff2f16x2") if T is f16 else ("bfloat", "ff2bf16x2")
    full = f"llvm.nvvm.{name}.rn"
    g.declare(full, f"declare <2 x {kind}> @{full}(float, float)")
    both = g.op(f"call <2 x {kind}> @{full}(float {high.ref}, float {low.ref})")
    return g.v(u32, f"bitcast <2 x {kind}> {both} to i32")  # type: ignore[no-any-return]


__all__ = ["exp2_near", "pack_pair"]
