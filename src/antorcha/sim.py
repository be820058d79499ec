"""The simulated GPU, from outside: what its launches did. Tensors go there by ``x.to("sim")``."""

from antorcha.devices.sim.recording import (
    ElementAccess,
    LaunchedOperand,
    SimulatedLaunch,
    recording,
)

__all__ = ["ElementAccess", "LaunchedOperand", "SimulatedLaunch", "recording"]
