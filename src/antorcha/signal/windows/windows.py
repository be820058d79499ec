"""``torch.signal.windows``: weights for the frames of a signal, at most 1 each.

A window of ``M`` numbers is symmetric; with ``sym=False`` it is the symmetric one of ``M + 1``
without its last, as a Fourier transform wants it, which takes what it sees for one period. All take
``dtype`` (float32 or float64), ``layout``, ``device`` and ``requires_grad`` besides.

See https://docs.pytorch.org/docs/stable/signal.html.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from antorcha.core.dtypes import float32, float64, get_default_dtype
from antorcha.errors import ArgumentError, ValueRangeError, explain_missing
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.layouts import strided

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


class _Form:
    """How many numbers a window has, and of what kind they are."""

    def __init__(self, name: str, M: int, sym: bool, how: dict[str, Any]) -> None:
        unknown = how.keys() - {"dtype", "layout", "device", "requires_grad"}
        if unknown:
            raise ArgumentError(f"{name}() got an unexpected keyword argument {min(unknown)!r}")
        dtype, layout = how.get("dtype") or get_default_dtype(), how.get("layout", strided)
        if M < 0:
            raise ValueRangeError(f"{name} requires non-negative window length, got M={M}")
        if layout is not strided:
            raise ValueRangeError(f"{name} is implemented for strided tensors only, got: {layout}")
        if dtype not in (float32, float64):
            raise ValueRangeError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
        self.count, self.periodic = M, not sym
        self.how = {"dtype": dtype, "device": how.get("device"),
                    "requires_grad": how.get("requires_grad", False)}  # fmt: skip

    def length(self, more: int = 0) -> int:
        """The length of the symmetric window, and so many more; at least 1."""
        return self.count + more + 1 if self.periodic and self.count > 1 else self.count + more

    def ones(self) -> Tensor:
        """The window of no number, or of one."""
        return T.ones((self.count,), **self.how)  # type: ignore[no-any-return]

    def line(self, start: float, step: float) -> Tensor:
        """``start``, ``start + step``, and so on."""
        end = start + (self.count - 1) * step
        return T.linspace(start, end, self.count, **self.how)  # type: ignore[no-any-return]


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **how: Any
) -> Tensor:
    r"""The exponential window: :math:`\exp(-|k - center| / \tau)` for k = 0 .. M - 1.

    >>> torch.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    form = _Form("exponential", M, sym, how)
    if tau <= 0:
        raise ValueRangeError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueRangeError("Center must be None for symmetric windows")
    if M == 0:
        return form.ones()
    middle = (form.length() - 1) / 2 if center is None else center
    return T.exp(-T.abs(form.line(-middle / tau, 1 / tau)))  # type: ignore[no-any-return]


def cosine(M: int, *, sym: bool = True, **how: Any) -> Tensor:
    r"""Half a period of a sine: :math:`\sin(\pi (k + 1/2) / M)`.

    >>> torch.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    form = _Form("cosine", M, sym, how)
    if M == 0:
        return form.ones()
    step = math.pi / form.length()
    return T.sin(form.line(0.5 * step, step))  # type: ignore[no-any-return]


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **how: Any) -> Tensor:
    r"""The bell curve: :math:`\exp(-(k - center)^2 / (2 \sigma^2))`.

    >>> torch.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    form = _Form("gaussian", M, sym, how)
    if std <= 0:
        raise ValueRangeError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return form.ones()
    step = 1 / (std * math.sqrt(2))
    return T.exp(-(form.line(-(form.length() - 1) / 2 * step, step) ** 2))  # type: ignore[no-any-return]


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **how: Any) -> Tensor:
    r"""The Kaiser window: :math:`I_0(\beta \sqrt{1 - x^2}) / I_0(\beta)` for x from -1 to 1.

    >>> torch.signal.windows.kaiser(3, beta=2.)
    tensor([0.4387, 1.0000, 0.4387])
    """
    form = _Form("kaiser", M, sym, how)
    if beta < 0:
        raise ValueRangeError(f"beta must be non-negative, got: {beta} instead.")
    if M < 2:
        return form.ones()
    dtype, device = form.how["dtype"], form.how["device"]
    width = T.full((), beta, dtype=dtype, device=device)
    x = form.line(float(-width), float(2 * width / (form.length() - 1)))
    inside = T.clamp(width * width - x * x, 0)  # (rounding may go beyond the end)
    return T.i0(T.sqrt(inside)) / T.i0(width)  # type: ignore[no-any-return]


def bartlett(M: int, *, sym: bool = True, **how: Any) -> Tensor:
    r"""The triangle: :math:`1 - |2 k / (M - 1) - 1|`.

    >>> torch.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    form = _Form("bartlett", M, sym, how)
    if M < 2:
        return form.ones()
    return 1 - T.abs(form.line(-1, 2 / (form.length() - 1)))  # type: ignore[no-any-return]


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **how: Any) -> Tensor:
    r"""A sum of cosines: :math:`\sum_i (-1)^i a_i \cos(2 \pi i k / (M - 1))`.

    >>> torch.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    form = _Form("general_cosine", M, sym, how)
    if M < 2:
        return form.ones()
    if not isinstance(a, Iterable):
        raise ArgumentError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueRangeError("Coefficients cannot be empty")
    k = form.line(0, 2 * math.pi / (form.length() - 1))
    terms = [(-1) ** i * weight * T.cos(i * k) for i, weight in enumerate(weights)]
    return T.sum(T.stack(terms), 0)  # type: ignore[no-any-return]


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **how: Any) -> Tensor:
    r""":math:`\alpha - (1 - \alpha) \cos(2 \pi k / (M - 1))`.

    >>> torch.signal.windows.general_hamming(3, alpha=0.5)
    tensor([0., 1., 0.])
    """
    return general_cosine(M, a=[alpha, 1 - alpha], sym=sym, **how)


def _sum_of_cosines(name: str, weights: list[float], doc: str) -> Callable[..., Tensor]:
    def window(M: int, *, sym: bool = True, **how: Any) -> Tensor:
        _Form(name, M, sym, how)  # (errors name the window)
        return general_cosine(M, a=weights, sym=sym, **how)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = doc
    return window


hamming = _sum_of_cosines("hamming", [0.54, 0.46], r"""The Hamming window:
    :math:`0.54 - 0.46 \cos(2 \pi k / (M - 1))`.

    >>> torch.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """)  # fmt: skip
hann = _sum_of_cosines("hann", [0.5, 0.5], r"""The Hann window:
    :math:`(1 - \cos(2 \pi k / (M - 1))) / 2`.

    >>> torch.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """)  # fmt: skip
blackman = _sum_of_cosines("blackman", [0.42, 0.5, 0.08], r"""The Blackman window:
    :math:`0.42 - 0.5 \cos(2 \pi k / (M - 1)) + 0.08 \cos(4 \pi k / (M - 1))`.

    >>> torch.signal.windows.blackman(4)
    tensor([-1.4901e-08,  6.3000e-01,  6.3000e-01, -1.4901e-08])
    """)  # fmt: skip
nuttall = _sum_of_cosines("nuttall", [0.3635819, 0.4891775, 0.1365995, 0.0106411],
    r"""The minimum 4-term Blackman-Harris window of Nuttall.

    >>> torch.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """)  # fmt: skip

explain_missing("torch.signal.windows.windows", globals())
