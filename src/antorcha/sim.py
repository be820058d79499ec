"""The simulated GPU, from outside: what its launches did, and launches of kernels of one's own.

Tensors go there by ``x.to("sim")``. Streams and events are those of ``torch.cuda``, and strict: see
:class:`Stream`."""

from antorcha.devices.sim.by_hand import launch
from antorcha.devices.sim.recording import (
    ElementAccess,
    LaunchedOperand,
    SimulatedLaunch,
    recording,
)
from antorcha.devices.sim.streams import (
    Event,
    Stream,
    current_stream,
    default_stream,
    stream,
    synchronize,
)

__all__ = [
    "ElementAccess", "Event", "LaunchedOperand", "SimulatedLaunch", "Stream", "current_stream",
    "default_stream", "launch", "recording", "stream", "synchronize",
]  # fmt: skip
