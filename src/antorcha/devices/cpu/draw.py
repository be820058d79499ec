"""Draws: a sampler over a generator's state, launched as any kernel.

Machine code draws only while nobody else does. Where a thread is in the middle of a draw or of
setting the state (it may have let go of the interpreter lock), the kernel says BUSY, and Python,
which waits for the generator's lock, serves the call.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Sequence
from typing import Any

from antorcha.devices.cpu.template import launch
from antorcha.errors import RandomError
from antorcha.lang.kernels import Draw, Launch
from antorcha.lang.native import f64, i64, native, ptr, raw, u64
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.mt19937 import Twister
from antorcha.runtime.random import sampler_t

BUSY = 1


@native
def draw_kernel(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    state = ptr[Twister](raw(desc[1]))
    if state.held != 0:
        return BUSY
    reals = ptr[f64](raw(desc))
    sampler = sampler_t(desc[0])
    sampler(state, bufs[0], desc[2], reals[3], reals[4], u64(desc[5]), desc[6])
    return 0


def _fail(_status: int) -> BaseException:
    return RandomError("the generator is in use by another thread")


def compile_draw(what: Draw, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    """The launch of a draw; it keeps the interpreter lock, whatever the count."""
    a, b, u = packing.unpack("<3q", packing.pack("<2dQ", what.a, what.b, what.u))
    desc = (what.sampler, what.state, what.count, a, b, u, what.i)
    return launch(draw_kernel.spec(), desc, outs, ins, 1, what, _fail)
