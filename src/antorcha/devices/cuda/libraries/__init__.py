"""NVIDIA's libraries: used by themselves where they are installed, and nothing needs them.

``loader``      finds a library, binds its functions, tells what a status means
``launching``   what all launches of libraries share
``cublaslt``    its functions; ``products``: products of matrices by it
``cusolver``    its functions, and ``cublas`` those of triangular systems; ``matrices``: linear
                algebra by them, in ``decompositions`` and ``systems``
``cudnn``       its functions; ``convolutions``: convolutions by it
``cufft``       its functions; ``transforms``: Fourier transforms by it

``pip install antorcha[cuda]`` installs them. What a library cannot do, and everything where it is
missing, is done by the kernels of ``devices/gpu``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.device import CPU
from antorcha.core.lazy import lazy
from antorcha.devices.cuda.libraries import loader
from antorcha.devices.emit import Unsupported
from antorcha.errors import AcceleratorError
from antorcha.lang import kernels
from antorcha.lang.kernels import Description, Launch
from antorcha.runtime.memory.layout import Layout

Planner = Callable[[Any, Any, Sequence[Layout], Sequence[Any]], Launch]
_here = "antorcha.devices.cuda.libraries"
_PLANNERS: dict[type, tuple[Any, str]] = {
    kernels.MatMul: (lazy(f"{_here}.products"), "plan_products"),
    kernels.Conv: (lazy(f"{_here}.convolutions"), "plan_convolution"),
    kernels.Matrices: (lazy(f"{_here}.matrices"), "plan_matrices"),
    kernels.Fourier: (lazy(f"{_here}.transforms"), "plan_transform"),
}
_LIBRARIES: dict[str, tuple[Any, str]] = {
    "cublasLt": (lazy(f"{_here}.cublaslt"), "CublasLt"),
    "cublas": (lazy(f"{_here}.cublas"), "Cublas"),
    "cusolver": (lazy(f"{_here}.cusolver"), "Cusolver"),
    "cudnn": (lazy(f"{_here}.cudnn"), "Cudnn"),
    "cufft": (lazy(f"{_here}.cufft"), "Cufft"),
}
noted: dict[str, str] = {}
"""The kinds of descriptions that no library computed since somebody cleared this, and why."""


def compile_by_library(
    device: Any, what: Description, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch | None:
    """A launch of a library's function; None where no library computes it."""
    found = _PLANNERS.get(type(what))
    if found is None or any([isinstance(i, Layout) and i.device is CPU for i in ins]):
        return None
    try:
        planner: Planner = getattr(*found)
        return planner(device, what, outs, ins)
    except (Unsupported, AcceleratorError) as error:  # (a library that does not start, too)
        noted[type(what).__name__] = str(error)
        return None


def version_of(name: str) -> int | None:
    """The version of the library lib<name>; None where it is not used."""
    kind = _LIBRARIES[name]
    found = loader.library(getattr(*kind))
    return None if found is None else int(found.version)


def used() -> list[str]:
    """The libraries that are used, with their versions."""
    found = [loader.library(getattr(*kind)) for kind in _LIBRARIES.values()]
    return [f"{each.name} {each.version}" for each in found if each is not None]
