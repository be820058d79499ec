"""Draws: a sampler over a generator's state, launched as any kernel.

``runtime.random`` says which sampler draws a distribution, and with which numbers. Machine code
draws only while nobody else does. Where a thread is in the middle of a draw or of setting the state
(it may have let go of the interpreter lock), the kernel says BUSY, and Python, which waits for the
generator's lock, serves the call. Python draws what takes more than one run of a sampler, or long.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Sequence
from typing import Any

from antorcha.core.symbols import Untold
from antorcha.devices.cpu.template import launch
from antorcha.errors import RandomError
from antorcha.lang.kernels import Draw, Launch
from antorcha.lang.native import f64, i64, native, ptr, raw, u64
from antorcha.runtime import random
from antorcha.runtime.integer_bounds import HALVES
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


def _noted(what: Draw, out: Layout) -> random.NotedDraw:
    """The one run of a sampler that a draw is; Untold where it is something else."""
    if not out.contiguous or out.dtype.name in HALVES or not out.numel < random.MANY:
        raise Untold("Python draws it")
    notes: Any = random.DrawNotes()
    random.fill(what.distribution, notes, 0, out.numel, out.dtype.name, what.parameters)
    if len(notes.found) != 1 or notes.found[0].out != 0:
        raise Untold("it is not one draw")
    found: random.NotedDraw = notes.found[0]
    return found


def compile_draw(what: Draw, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
    """The launch of a draw from the default generator; it keeps the interpreter lock, whatever the
    count."""
    noted = _noted(what, outs[0])
    a, b, u = packing.unpack("<3q", packing.pack("<2dQ", noted.a, noted.b, noted.u))
    desc = (noted.sampler, random.default().address, noted.n, a, b, u, noted.i)
    return launch(draw_kernel.spec(), desc, outs, ins, 1, what, _fail)
