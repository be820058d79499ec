"""Short-time Fourier transforms: ``torch.stft`` and its inverse, of frames and ``torch.fft``."""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core.shapes import contiguous_strides
from antorcha.errors import DtypeError, MissingFeature, ShapeError, warn
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Any, Bool, Int, OptInt, OptTensor, Str, Tensor
from antorcha.runtime.tensor import Tensor as TensorType

SMALLEST = 1e-11  # that the windows may add up to where they are divided by


def _refused(op: str, input: TensorType, n_fft: int, hop: int, win: int, why: str) -> ShapeError:
    shape = list(input._layout.shape)
    return ShapeError(f"{op}(input of shape {shape}, n_fft={n_fft}, hop_length={hop}, "
                      f"win_length={win}): {why}")  # fmt: skip


def _lengths(
    op: str, input: TensorType, n_fft: int, hop: int | None, win: int | None, window: _Any
) -> tuple[int, int]:
    """The lengths of steps and of windows, checked."""
    hop = n_fft // 4 if hop is None else hop
    win = n_fft if win is None else win
    if hop <= 0:
        raise _refused(op, input, n_fft, hop, win, f"expected hop_length > 0, but got {hop}")
    if not 0 < win <= n_fft:
        raise _refused(
            op, input, n_fft, hop, win, f"expected 0 < win_length <= n_fft, but got {win}"
        )
    if window is not None and tuple(window._layout.shape) != (win,):
        got = list(window._layout.shape)
        raise _refused(
            op, input, n_fft, hop, win,
            f"expected a 1D window tensor of size equal to win_length={win}, but got window with "
            f"size {got}",
        )  # fmt: skip
    return hop, win


def _window(n_fft: int, win: int, window: TensorType | None, like: TensorType) -> TensorType:
    """The window, with zeros on both sides up to n_fft."""
    layout = like._layout
    if window is None:
        dtype = layout.dtype.to_real() if layout.dtype.kind == "c" else layout.dtype
        window = T.full_layout((win,), 1, dtype, layout.device)
    left = (n_fft - win) // 2
    if win == n_fft:
        return window
    return T.constant_pad_nd(window, [left, n_fft - win - left], 0)  # type: ignore[no-any-return]


def _frames(x: TensorType, count: int, n_fft: int, hop: int) -> TensorType:
    """(batch, frames, n_fft), a view: each frame begins ``hop`` after the one before."""
    batch, step = x._layout.strides
    return T.as_strided(  # type: ignore[no-any-return]
        x, (x._layout.shape[0], count, n_fft), (batch, hop * step, step), None
    )


@composite(out=False)
def stft(
    input: Tensor, n_fft: Int, hop_length: OptInt = None, win_length: OptInt = None,
    window: OptTensor = None, center: Any = True, pad_mode: Str = "reflect",
    normalized: Bool = False, onesided: Any = None, return_complex: Any = None,
    align_to_window: Any = None,
):  # fmt: skip
    """The Fourier transforms of windows along signals: ``(batch, frequencies, frames)``.

    ``input`` is a signal or a batch of them; frames of ``n_fft`` samples begin ``hop_length`` apart
    (a quarter of n_fft), and are multiplied by ``window``. With ``center`` frame t is around
    sample ``t * hop_length``, and the signal is padded. See
    https://docs.pytorch.org/docs/stable/generated/torch.stft.html.

    >>> torch.stft(torch.ones(8), 4, return_complex=True).real[0]
    tensor([4., 4., 4., 4., 4., 4., 4., 4., 4.])
    """
    hop, win = _lengths("stft", input, n_fft, hop_length, win_length, window)
    kinds = [t._layout.dtype.kind for t in (input, window) if t is not None]
    if kinds[0] not in "fc":
        raise DtypeError(f"stft: expected a tensor of floating point or complex values, but got "
                         f"{input._layout.dtype}")  # fmt: skip
    if return_complex is None and "c" not in kinds:
        raise ShapeError("stft requires the return_complex parameter be given for real inputs, and "
                         "will further require that return_complex=True in a future PyTorch "
                         "release.")  # fmt: skip
    if center and align_to_window is not None:
        raise ShapeError("stft: align_to_window should only be set when center = false.")
    ndim = input._layout.ndim
    if ndim not in (1, 2):
        raise _refused("stft", input, n_fft, hop, win, "expected a 1D or 2D tensor")
    x = T.unsqueeze(input, 0) if ndim == 1 else input
    if center:
        x = T.squeeze(T.pad(T.unsqueeze(x, 0), (n_fft // 2, n_fft // 2), pad_mode), 0)
    elif not align_to_window and win < n_fft and align_to_window is not None:
        raise MissingFeature("stft: align_to_window=False is not there yet; leave it out")
    length = x._layout.shape[1]
    if not 0 < n_fft <= length:
        raise _refused(
            "stft", input, n_fft, hop, win, f"expected 0 < n_fft < {length}, but got n_fft={n_fft}"
        )
    spectra = _spectra(x, n_fft, hop, win, window, "ortho" if normalized else None, onesided, kinds)
    spectra = T.transpose(spectra, 1, 2)
    spectra = T.squeeze(spectra, 0) if ndim == 1 else spectra
    return T.view_as_real(spectra) if return_complex is False else spectra


def _spectra(
    x: TensorType, n_fft: int, hop: int, win: int, window: TensorType | None, norm: str | None,
    onesided: bool | None, kinds: list[str],
) -> TensorType:  # fmt: skip
    """(batch, frames, frequencies)."""
    frames = _frames(x, (x._layout.shape[1] - n_fft) // hop + 1, n_fft, hop)
    if window is not None or win < n_fft:
        frames = frames * _window(n_fft, win, window, x)
    is_complex = "c" in kinds
    if onesided and is_complex:
        raise ShapeError("Cannot have onesided output if window or input is complex")
    half = not is_complex if onesided is None else onesided
    transform = T.fft_rfft if half else T.fft_fft
    return transform(frames, None, -1, norm)  # type: ignore[no-any-return]


@stft.samples
def _(make):
    yield (make(20), 6), {"return_complex": True}
    yield (make(2, 20), 8, 3, 5), {"return_complex": False, "window": make(5)}
    yield (make(2, 20), 8), {"center": False, "normalized": True, "return_complex": True}
    yield (make(20), 6), {"onesided": False, "pad_mode": "constant", "return_complex": True}
    yield (make(20), 6), {}, RuntimeError, "return_complex"
    yield (make(4), 6), {"center": False, "return_complex": True}, RuntimeError, "expected 0 < n_"
    yield (make(20), 6, 0), {"return_complex": True}, RuntimeError, "hop_length > 0"
    yield (make(20), 6, 2, 7), {"return_complex": True}, RuntimeError, "win_length <= n_fft"


@composite(out=False)
def istft(
    input: Tensor, n_fft: Int, hop_length: OptInt = None, win_length: OptInt = None,
    window: OptTensor = None, center: Bool = True, normalized: Bool = False, onesided: Any = None,
    length: OptInt = None, return_complex: Bool = False,
):  # fmt: skip
    """The inverse of ``stft``: frames overlapped and added, divided by what the windows add up to.

    See https://docs.pytorch.org/docs/stable/generated/torch.istft.html.

    >>> x = torch.stft(torch.arange(8.), 4, window=torch.ones(4), return_complex=True)
    >>> torch.istft(x, 4, window=torch.ones(4))
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    hop, win = _lengths("istft", input, n_fft, hop_length, win_length, window)
    layout = input._layout
    if layout.dtype.kind != "c":
        raise DtypeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    if layout.ndim not in (2, 3) or not layout.numel:
        raise _refused("istft", input, n_fft, hop, win, "expected a tensor with 2 or 3 dimensions "
                       "and elements")  # fmt: skip
    bins = layout.shape[-2]
    half = n_fft != bins if onesided is None else onesided
    if bins != (n_fft // 2 + 1 if half else n_fft):
        wanted = "n_fft / 2 + 1" if half else "n_fft"
        raise _refused("istft", input, n_fft, hop, win, f"expected the frequency dimension (3rd to "
                       f"the last) of the input tensor to match {wanted} when onesided={half}, "
                       f"but got {bins}")  # fmt: skip
    if half and return_complex:
        raise ShapeError("istft: cannot have onesided output if window or input is complex")
    x = T.unsqueeze(input, 0) if layout.ndim == 2 else input
    count = layout.shape[-1]
    if not return_complex and window is not None and window._layout.dtype.kind == "c":
        raise ShapeError("Complex windows are incompatible with return_complex=False")
    inverse = T.fft_ifft if return_complex else T.fft_irfft  # which reads half of them
    frames = inverse(T.transpose(x, 1, 2), n_fft, -1, "ortho" if normalized else None)
    taper = _window(n_fft, win, window, frames)
    whole = n_fft + hop * (count - 1)
    signal = _overlapped(frames * taper, whole, hop)
    weights = _overlapped(T.expand(taper * taper, (1, count, n_fft)), whole, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - start
    signal = T.narrow(signal, 1, start, min(end, whole) - start)
    weights = T.narrow(weights, 1, start, min(end, whole) - start)
    if not bool((T.abs(weights) > SMALLEST).all()):
        raise _refused("istft", input, n_fft, hop, win,
                       "window overlap add min: 1: windows leave samples out")  # fmt: skip
    signal = signal / weights
    if length is not None and end > whole:
        warn("The length of signal is shorter than the length parameter. Result is being padded "
             "with zeros in the tail. Please check your center and hop_length "
             "settings.")  # fmt: skip
        signal = T.constant_pad_nd(signal, [0, end - whole], 0)
    return T.squeeze(signal, 0) if layout.ndim == 2 else signal


def _overlapped(frames: TensorType, whole: int, hop: int) -> TensorType:
    """(batch, frames, n_fft) added where they lie in the signal: (batch, whole)."""
    layout = frames._layout
    plain = layout.like((layout.shape[0], whole), contiguous_strides((layout.shape[0], whole)))
    return T.as_strided_backward(  # type: ignore[no-any-return]
        frames, plain, (whole, hop, 1), 0
    )


@istft.samples
def _(make):
    spectra = T.stft(make(2, 20), 6, return_complex=True)
    yield (spectra, 6), {}
    yield (spectra, 6), {"length": 18, "window": make(6, low=0.5)}
    yield (T.stft(make(20), 6, 2, onesided=False, return_complex=True), 6, 2), {}
    yield (make(4, 3), 6), {}, RuntimeError, "complex-valued"
    yield (spectra, 8), {}, RuntimeError, "expected the frequency dimension"
