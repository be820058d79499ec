"""A GPU that runs on the CPU: the kernels of ``devices/gpu``, thread by thread.

It is slow, always there, and strict: its memory is of its own, filled with a pattern before it is
written and checked at every access; the threads of a block run in an order that changes; a barrier
that some threads do not reach is an error. What passes here is right on a GPU but for what only
hardware has: races within a warp, memory order, and speed.
"""

from __future__ import annotations

from antorcha.devices.sim.device import SimulatedBackend

backend = SimulatedBackend()
