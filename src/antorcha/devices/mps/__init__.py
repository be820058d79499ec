"""Apple's GPUs, by MLX: an optional package, imported when somebody first uses the device.

``library``      MLX, its stream and dtypes, and whether it is here
``memory``       storages: a flat array that every write replaces; strides are ours
``expressions``  expression graphs on arrays of MLX's
``folds``        reductions, row programs, scans
``products``     products, convolutions, attention, Fourier transforms
``indexing``     gather and scatter, what masks choose
``ordering``     sorting, searching
``windows``      pooling, sliding blocks, resampling
``moves``        elements in another order, ranges, checks
``device``       the device ``mps``: what is not described above is computed by NumPy on the host
"""

from __future__ import annotations

from antorcha.devices.mps.device import MLXBackend, backend_here

backend: MLXBackend


def __getattr__(name: str) -> MLXBackend:
    """``backend``: RuntimeError where there is no such GPU, or no MLX."""
    if name == "backend":
        return backend_here()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
