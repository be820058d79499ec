"""The reference device: every description interpreted with NumPy. The oracle of the others."""

from __future__ import annotations

from antorcha.devices.numpy_semantics.host import HostBackend

backend = HostBackend("reference")
