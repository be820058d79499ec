"""Window functions: weights for the frames of a signal, as ``torch.hann_window`` gives them.

A periodic window of n numbers is the symmetric one of n + 1 without its last: made for a Fourier
transform, which takes what it sees as one period. Computed as PyTorch computes them
(aten/src/ATen/native/TensorFactories.cpp), within the rounding of a cosine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.device import as_device
from antorcha.core.lazy import np
from antorcha.errors import MissingFeature, ShapeError
from antorcha.lang.kernels import Host
from antorcha.ops.create import creating
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.record import T
from antorcha.ops.kinds.types import Bool, DeviceArg, Dtype, Float, Int
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor as TensorType

_creating = creating("dtype layout device pin_memory requires_grad")


def _made(
    name: str, length: int, periodic: bool, result: Callable[[TensorType, int], TensorType],
    dtype: _Any, device: _Any,
) -> TensorType:  # fmt: skip
    """A window: ``made(0, 1, 2, .., of n numbers; n)``, symmetric."""
    chosen = dtype or dtypes.get_default_dtype()
    if chosen.kind not in "fc":
        raise ShapeError(f"{name} expects floating point dtypes, got: {chosen}")
    if chosen.kind == "c":
        raise MissingFeature(f"{name}: not implemented for complex dtypes, got: {chosen}")
    if length < 0:
        raise ShapeError(f"{name} requires non-negative window_length, got window_length={length}")
    if length < 2:
        return T.full_layout((length,), 1, chosen, device)  # type: ignore[no-any-return]
    count = length + 1 if periodic else length
    found = result(T.arange(count, dtype=chosen, device=device), count)
    return found[:length].clone() if periodic else found


def window(result: Callable[[TensorType, int], TensorType]) -> _Any:
    """Decorates a symmetric window, ``made(0, 1, 2, .., of n numbers; n)``, as the op of its name
    that has no parameters of its own."""

    def op(window_length: Int, periodic: Bool = True, *, dtype: _Any, device: _Any) -> TensorType:
        return _made(result.__name__, window_length, periodic, result, dtype, device)

    op.__name__, op.__doc__ = result.__name__, result.__doc__
    return _creating(op)


def _cosines(k: TensorType, n: int, alpha: float, beta: float) -> TensorType:
    return alpha - beta * (k * (2 * math.pi / (n - 1))).cos()


@window
def hann_window(k: TensorType, n: int) -> TensorType:
    r"""The Hann window: :math:`\frac{1}{2} (1 - \cos(2 \pi k / (N - 1)))` for k = 0 .. N - 1.

    ``periodic``: without the last of the window of N + 1, for a Fourier transform.

    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _cosines(k, n, 0.5, 0.5)


@_creating
def hamming_window(
    window_length: Int, periodic: Bool = True, alpha: Float = 0.54, beta: Float = 0.46, *,
    dtype: _Any, device: _Any,
):  # fmt: skip
    r"""The Hamming window: :math:`\alpha - \beta \cos(2 \pi k / (N - 1))` for k = 0 .. N - 1.

    ``periodic``: without the last of the window of N + 1, for a Fourier transform.

    >>> torch.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _made("hamming_window", window_length, periodic,
                 lambda k, n: _cosines(k, n, alpha, beta), dtype, device)  # fmt: skip


@window
def blackman_window(k: TensorType, n: int) -> TensorType:
    r"""The Blackman window:
    :math:`0.42 - 0.5 \cos(2 \pi k / (N - 1)) + 0.08 \cos(4 \pi k / (N - 1))` for k = 0 .. N - 1.

    ``periodic``: without the last of the window of N + 1, for a Fourier transform.

    >>> torch.blackman_window(5, periodic=False)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """
    k = k * (math.pi / (n - 1))
    return (k * 4).cos() * 0.08 - (k * 2).cos() * 0.5 + 0.42


@window
def bartlett_window(k: TensorType, n: int) -> TensorType:
    r"""The Bartlett window, a triangle: :math:`1 - |2 k / (N - 1) - 1|` for k = 0 .. N - 1.

    ``periodic``: without the last of the window of N + 1, for a Fourier transform.

    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    k = k * (2 / (n - 1))
    late = T.arange(n, device=k.device) > (n - 1) // 2
    return T.where(late, 2 - k, k)  # type: ignore[no-any-return]


@kernel(function=False, method=False, out=False)
def kaiser_kernel(count: Int, beta: Float, dtype: Dtype, device: DeviceArg = None):
    """The symmetric Kaiser window of ``count`` numbers."""

    def compute() -> _Any:
        return np.kaiser(count, beta)

    return Planned(Host(compute), [L.contiguous((count,), dtype, as_device(device))])


@_creating
def kaiser_window(
    window_length: Int, periodic: Bool = True, beta: Float = 12.0, *, dtype: _Any, device: _Any
):
    r"""The Kaiser window: :math:`I_0(\beta \sqrt{1 - (2 k / (N - 1) - 1)^2}) / I_0(\beta)` for
    k = 0 .. N - 1, with the modified Bessel function :math:`I_0`.

    ``periodic``: without the last of the window of N + 1, for a Fourier transform.

    >>> torch.kaiser_window(4)
    tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01])
    """
    return _made("kaiser_window", window_length, periodic,
                 lambda k, n: T.kaiser_kernel(n, beta, k.dtype, k.device),
                 dtype, device)  # fmt: skip


def _samples(make: _Any) -> _Any:
    yield (7,)
    yield 8, False


def _errors(make: _Any) -> _Any:
    yield (-1,), {}, RuntimeError, "non-negative"
    yield (4,), {"dtype": dtypes.int64}, RuntimeError, "floating point"


for _op in (hann_window, hamming_window, blackman_window, bartlett_window, kaiser_window):
    _op.samples(_samples)
    _op.errors(_errors)
