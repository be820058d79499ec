"""Fourier transforms with SciPy's pocketfft, on as many threads as kernels may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from antorcha.core.lazy import lazy
from antorcha.lang.kernels import Fourier
from antorcha.runtime import pool
from antorcha.runtime.memory.layout import Layout

if TYPE_CHECKING:
    from scipy import fft
else:
    fft = lazy("scipy.fft")

Array = np.ndarray[Any, Any]
Compute = Callable[[list[Any]], list[Array]]

# SciPy names the direction that is multiplied; its inverses are multiplied where nothing is said.
_FORWARD = {"none": "backward", "root": "ortho", "all": "forward"}
_INVERSE = {"none": "forward", "root": "ortho", "all": "backward"}


def compute_fourier(what: Fourier, outs: Sequence[Layout]) -> Compute:
    shape, dtype = tuple(outs[0].shape), outs[0].dtype.np
    norm = (_FORWARD if what.forward else _INVERSE)[what.norm]

    def compute(values: list[Any]) -> list[Array]:
        (x,) = values
        workers = int(pool.get_num_threads())
        if not x.size or not what.dims:
            return [np.broadcast_to(x, shape).astype(dtype)]
        if what.kind == "to real":
            sizes = [*[x.shape[d] for d in what.dims[:-1]], what.length]
            # (the inverse of a transform that goes forward is that of the conjugate)
            return [fft.irfftn(x, sizes, what.dims, norm, workers=workers)]
        if what.onesided:
            return [fft.rfftn(x, None, what.dims, norm, workers=workers)]
        if what.kind == "real":
            half = fft.rfftn(x, None, what.dims, _FORWARD[what.norm], workers=workers)
            whole = _completed(half, x.shape, what.dims)
            return [whole if what.forward else whole.conj()]
        transform = fft.fftn if what.forward else fft.ifftn
        return [transform(x, None, what.dims, norm, workers=workers)]

    return compute


def _completed(half: Array, shape: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    """The whole transform of real numbers: at minus a frequency stands the conjugate."""
    last, n = dims[-1], shape[dims[-1]]
    whole = np.empty(shape, half.dtype)
    of_last: list[Any] = [slice(None)] * len(shape)
    of_last[last] = slice(0, n // 2 + 1)
    whole[tuple(of_last)] = half
    of_last[last] = slice((n - 1) // 2, 0, -1)
    rest = half[tuple(of_last)]
    for d in dims[:-1]:
        rest = np.take(rest, -np.arange(shape[d]) % shape[d], d)
    of_last[last] = slice(n // 2 + 1, n)
    np.conjugate(rest, out=whole[tuple(of_last)])
    return whole
