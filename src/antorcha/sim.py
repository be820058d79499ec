"""The simulated GPU, from outside: what its launches did, and launches of kernels of one's own.

Tensors go there by ``x.to("sim")``."""

from antorcha.devices.sim.by_hand import launch
from antorcha.devices.sim.recording import (
    ElementAccess,
    LaunchedOperand,
    SimulatedLaunch,
    recording,
)

__all__ = ["ElementAccess", "LaunchedOperand", "SimulatedLaunch", "launch", "recording"]
