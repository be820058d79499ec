"""Discrete Fourier transforms: ``torch.fft``. One record per op.

Three kernels do the work: complex to complex, real to complex, and back to real. The public ops pad
or trim their signals, and name dims and the norm as PyTorch does; gradients are transforms again.
``norm`` says in which direction the sums are multiplied by one over their length n: "backward" (the
default: the inverse is), "forward", or "ortho" (both are, by its root).
See https://docs.pytorch.org/docs/stable/fft.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.shapes import normalize_dim, strides_in_order
from antorcha.errors import DtypeError, MissingFeature, ShapeError
from antorcha.lang.kernels import Fourier
from antorcha.ops.create import creating
from antorcha.ops.index import kept
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.samples import Samples
from antorcha.ops.kinds.types import Bool, Dim, Dims, Float, Int, Ints, OptInt, Str, Tensor
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType

FFT = "fft"
_SCALES = {None: ("none", "all"), "backward": ("none", "all"), "ortho": ("root", "root"),
           "forward": ("all", "none")}  # fmt: skip
"""What the sums of the forward transform and of its inverse are multiplied by."""


# ------------------------------------------------------------------------------------- the kernels
def _laid(input: _Any, dims: _Any, shape: _Any, dtype: _Any, last: bool = False) -> Layout:
    """How PyTorch's result lies: the other dims outside, the longest strides first, then those that
    are transformed, also so (but the last of them where it is ``last``)."""
    strides = input.strides
    batch = sorted([d for d in range(input.ndim) if d not in dims], key=lambda d: -strides[d])
    inner = sorted(dims[: len(dims) - last], key=lambda d: -strides[d])
    order = [*batch, *inner, *dims[len(dims) - last :]]
    strides = strides_in_order(shape, order[::-1])
    return L.layout(tuple(shape), strides, dtype, input.device)


@kernel(function=False, method=False, out=False, batching="numbered")
def fourier_complex(input: Tensor, dims: Ints, forward: Bool, scale: Str):
    """Complex numbers to complex numbers, along ``dims``; ``scale`` as ``kernels.Fourier.norm``."""
    out = _laid(input, dims, input.shape, input.dtype) if dims else kept(input)
    return Planned(Fourier("complex", dims, forward, scale), [out])


@fourier_complex.derivative
def _(g, dims, forward, scale):
    return T.fourier_complex(g, dims, not forward, scale)


@fourier_complex.samples
def _(make):
    z = T.complex(make(3, 4), make(3, 4))
    yield z, (1,), True, "none"
    yield z, (0, 1), False, "root"


@kernel(function=False, method=False, out=False, batching="numbered")
def fourier_real(input: Tensor, dims: Ints, forward: Bool, scale: Str, onesided: Bool):
    """Real numbers to complex ones; ``onesided``: those along the last dim that say the rest."""
    shape = [*input.shape]
    if onesided:
        shape[dims[-1]] = shape[dims[-1]] // 2 + 1
    what = Fourier("real", dims, forward, scale, onesided)
    return Planned(what, [_laid(input, dims, shape, input.dtype.to_complex(), True)])


@fourier_real.derivative
def _(g, input_layout, dims, forward, scale, onesided):
    if onesided:  # what was left out gets no gradient
        g = _resized(g, dims[-1:], [input_layout.shape[dims[-1]]])
    return T.real(T.fourier_complex(g, dims, not forward, scale))


@fourier_real.samples
def _(make):
    yield make(3, 4), (1,), True, "none", True
    yield make(3, 5), (0, 1), True, "root", True
    yield make(3, 4), (0,), False, "all", False


@kernel(function=False, method=False, out=False, batching="numbered")
def fourier_to_real(input: Tensor, dims: Ints, length: Int, scale: Str):
    """Half of the numbers that real ones were transformed to, back to ``length`` real ones."""
    shape = [*input.shape]
    shape[dims[-1]] = length
    what = Fourier("to real", dims, False, scale, True, length)
    between = _laid(input, dims[:-1], input.shape, input.dtype) if dims[1:] else input
    return Planned(what, [_laid(between, dims[-1:], shape, input.dtype.to_real())])


@fourier_to_real.derivative
def _(g, dims, length, scale):
    half = T.fourier_real(g, dims, True, scale, True)
    n, layout = half._layout.shape[dims[-1]], g._layout
    alone = 1 + (length % 2 == 0 and length > 1)  # the first, and the last of an even number

    def repeated(value: int, count: int) -> TensorType:
        return T.full_layout(  # type: ignore[no-any-return]
            (count,), value, layout.dtype, layout.device
        )

    # the others stand for one that was left out, too
    weights = T.cat([repeated(1, 1), repeated(2, n - alone), repeated(1, alone - 1)], 0)
    return half * T.reshape(weights, (n, *[1] * (half._layout.ndim - 1 - dims[-1])))


@fourier_to_real.samples
def _(make):
    z = T.complex(make(3, 4), make(3, 4))
    yield z, (1,), 6, "all"
    yield z, (1,), 7, "none"
    yield z, (0, 1), 6, "root"


# ------------------------------------------------------------------------------- what is asked for
def _signal(op: str, input: TensorType, complex_too: bool = True) -> TensorType:
    """The input as floats or complex numbers."""
    dtype = input._layout.dtype
    if dtype.name in ("float16", "bfloat16"):
        raise MissingFeature(f"{op}: Unsupported dtype {dtype}; use x.float()")
    if dtype.kind == "c" and not complex_too:
        raise DtypeError(f"{op} expects a real input tensor, but got {dtype}")
    if dtype.kind in "fc":
        return input
    return T.to_dtype(input, dtypes.get_default_dtype())  # type: ignore[no-any-return]


def _as_complex(input: TensorType) -> TensorType:
    dtype = input._layout.dtype
    return input if dtype.kind == "c" else T.to_dtype(input, dtype.to_complex())


def _scale(op: str, norm: str | None, forward: bool) -> str:
    if norm not in _SCALES:
        raise ShapeError(
            f'{op}: Invalid normalization mode: "{norm}"; choose "backward", "forward" or "ortho"'
        )
    return _SCALES[norm][not forward]


def _checked_length(op: str, n: int) -> int:
    if n < 1:
        raise ShapeError(f"{op}: Invalid number of data points ({n}) specified")
    return n


def _resized(input: TensorType, dims: _Any, sizes: _Any) -> TensorType:
    """The signals with so many elements along the dims: the first of theirs, or zeros behind."""
    for d, n in zip(dims, sizes, strict=True):
        if n < input._layout.shape[d]:
            input = T.narrow(input, d, 0, n)
    shape = input._layout.shape
    if all([shape[d] == n for d, n in zip(dims, sizes, strict=True)]):
        return input
    pad = [0, 0] * len(shape)
    for d, n in zip(dims, sizes, strict=True):
        pad[2 * (len(shape) - 1 - d) + 1] = n - shape[d]
    return T.constant_pad_nd(input, pad, 0)  # type: ignore[no-any-return]


def _dim_of(op: str, input: TensorType, dim: int) -> int:
    return normalize_dim(dim, input._layout.ndim, op=op)


def _named_dims(op: str, input: TensorType, dim: int | tuple[int, ...]) -> list[int]:
    return [_dim_of(op, input, d) for d in ((dim,) if isinstance(dim, int) else dim)]


def _dims_of(
    op: str, input: TensorType, s: tuple[int, ...] | None, dim: tuple[int, ...] | None
) -> tuple[tuple[int, ...], list[int]]:
    """The dims, and the number of elements along each; -1 in ``s`` is as many as there are."""
    shape = input._layout.shape
    ndim = len(shape)
    if s is not None and dim is None and len(s) > ndim:
        raise ShapeError(f"{op}: Got shape with {len(s)} values but input tensor only has {ndim} "
                         "dimensions.")  # fmt: skip
    if dim is None:
        count = ndim if s is None else len(s)
        dims = tuple(range(ndim - count, ndim))
    else:
        dims = tuple(_named_dims(op, input, dim))
    if len({*dims}) != len(dims):
        raise ShapeError(f"{op}: FFT dims must be unique")
    if s is not None and len(s) != len(dims):
        raise ShapeError(f"{op}: When given, dim and shape arguments must have the same length")
    sizes = [shape[d] if s is None or s[k] == -1 else s[k] for k, d in enumerate(dims)]
    return dims, [_checked_length(op, n) for n in sizes]


def _complex_n(op: str, input: _Any, s: _Any, dim: _Any, norm: _Any, forward: bool) -> TensorType:
    signal = _signal(op, input)
    dims, sizes = _dims_of(op, signal, s, dim)
    scale = _scale(op, norm, forward)
    signal = _resized(signal, dims, sizes)
    if signal._layout.dtype.kind == "f" and dims:
        return T.fourier_real(signal, dims, forward, scale, False)  # type: ignore[no-any-return]
    return T.fourier_complex(_as_complex(signal), dims, forward, scale)  # type: ignore[no-any-return]


def _half_n(op: str, input: _Any, s: _Any, dim: _Any, norm: _Any, forward: bool) -> TensorType:
    """Real to half of the complex numbers; not forward: of their conjugates' transform."""
    signal = _signal(op, input, complex_too=False)
    dims, sizes = _dims_of(op, signal, s, dim)
    if not dims:
        raise ShapeError(f"{op} must transform at least one axis")
    scale = _scale(op, norm, forward)
    signal = _resized(signal, dims, sizes)
    if forward:
        return T.fourier_real(signal, dims, True, scale, True)  # type: ignore[no-any-return]
    half: TensorType = T.conjugate(T.fourier_real(signal, dims[-1:], True, scale, True))
    if dims[1:]:
        half = T.fourier_complex(half, dims[:-1], False, scale)
    return half


def _real_n(op: str, input: _Any, s: _Any, dim: _Any, norm: _Any, forward: bool) -> TensorType:
    """Half of the complex numbers back to real ones; forward: of their conjugates."""
    signal = _as_complex(_signal(op, input))
    given = signal._layout.shape
    last = None if s is None else s[-1]
    dims, sizes = _dims_of(op, signal, s, dim)
    if not dims:
        raise ShapeError(f"{op} must transform at least one axis")
    length = 2 * (given[dims[-1]] - 1) if last in (None, -1) else sizes[-1]
    _checked_length(op, length)
    scale = _scale(op, norm, forward)
    signal = _resized(signal, dims, [*sizes[:-1], length // 2 + 1])
    signal = T.conjugate(signal) if forward else signal
    return T.fourier_to_real(signal, dims, length, scale)  # type: ignore[no-any-return]


def _one(n: int | None, dim: int) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
    """One dim's arguments as those of several."""
    return None if n is None else (n,), (dim,)


# ---------------------------------------------------------------------------------- one dimension
def _checked_n(op: str, n: int | None) -> None:
    if n is not None:
        _checked_length(op, n)


@composite(name="fft_fft", namespace=FFT, method=False, function=False)
def fft(input: Tensor, n: OptInt = None, dim: Dim = -1, norm: Str = None):
    """The Fourier transform of signals along a dim, trimmed or padded with zeros to ``n``.

    >>> torch.fft.fft(torch.tensor([1., 2., 3., 4.]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    _checked_n("fft", n)
    return _complex_n("fft", input, *_one(n, dim), norm, True)


@composite(name="fft_ifft", namespace=FFT, method=False, function=False)
def ifft(input: Tensor, n: OptInt = None, dim: Dim = -1, norm: Str = None):
    """The inverse of ``fft``.

    >>> torch.fft.ifft(torch.tensor([10 + 0j, -2 + 2j, -2 + 0j, -2 - 2j]))
    tensor([1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j])
    """
    _checked_n("ifft", n)
    return _complex_n("ifft", input, *_one(n, dim), norm, False)


@composite(name="fft_rfft", namespace=FFT, method=False, function=False)
def rfft(input: Tensor, n: OptInt = None, dim: Dim = -1, norm: Str = None):
    """``fft`` of real numbers, without the half that is the conjugate of the other.

    >>> torch.fft.rfft(torch.tensor([1., 2., 3., 4.]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    _checked_n("rfft", n)
    return _half_n("rfft", input, *_one(n, dim), norm, True)


@composite(name="fft_irfft", namespace=FFT, method=False, function=False)
def irfft(input: Tensor, n: OptInt = None, dim: Dim = -1, norm: Str = None):
    """The inverse of ``rfft``: ``n`` real numbers, an even number where it is not said.

    >>> torch.fft.irfft(torch.tensor([10 + 0j, -2 + 2j, -2 + 0j]))
    tensor([1., 2., 3., 4.])
    """
    _checked_n("irfft", n)
    return _real_n("irfft", input, *_one(n, dim), norm, False)


@composite(name="fft_hfft", namespace=FFT, method=False, function=False)
def hfft(input: Tensor, n: OptInt = None, dim: Dim = -1, norm: Str = None):
    """``fft`` of a signal that is Hermitian, of which one half is given: real numbers.

    >>> torch.fft.hfft(torch.tensor([1 + 0j, 2 + 0j, 3 + 0j]))
    tensor([ 8., -2.,  0., -2.])
    """
    _checked_n("hfft", n)
    return _real_n("hfft", input, *_one(n, dim), norm, True)


@composite(name="fft_ihfft", namespace=FFT, method=False, function=False)
def ihfft(input: Tensor, n: OptInt = None, dim: Dim = -1, norm: Str = None):
    """The inverse of ``hfft``: one half of what is Hermitian.

    >>> torch.fft.ihfft(torch.tensor([8., -2., 0., -2.]))
    tensor([1.-0.j, 2.-0.j, 3.-0.j])
    """
    _checked_n("ihfft", n)
    return _half_n("ihfft", input, *_one(n, dim), norm, False)


# ----------------------------------------------------------------------------- several dimensions
_SEVERAL = {
    "fft": (_complex_n, True, "The Fourier transform along several dims (all, unless said)."),
    "ifft": (_complex_n, False, "The inverse of ``{fft}``."),
    "rfft": (_half_n, True, "``{fft}`` of real numbers; along the last dim the half that says the "
             "rest."),
    "irfft": (_real_n, False, "The inverse of ``{rfft}``: real numbers."),
    "hfft": (_real_n, True, "``{fft}`` of a signal that is Hermitian, of which one half along the "
             "last dim is given: real numbers."),
    "ihfft": (_half_n, False, "The inverse of ``{hfft}``."),
}  # fmt: skip
_EXAMPLES = {
    "fft": ("torch.eye(2)", "tensor([[2.+0.j, 0.+0.j],\n            [0.+0.j, 2.+0.j]])"),
    "ifft": ("2 * torch.eye(2)", "tensor([[1., 0.],\n            [0., 1.]])"),
    "rfft": ("torch.eye(2)", "tensor([[2.+0.j, 0.+0.j],\n            [0.+0.j, 2.+0.j]])"),
    "irfft": ("2 * torch.eye(2)", "tensor([[1., 0.],\n            [0., 1.]])"),
    "hfft": ("torch.eye(2)", "tensor([[2., 0.],\n            [0., 2.]])"),
    "ihfft": ("2 * torch.eye(2)", "tensor([[1., 0.],\n            [0., 1.]])"),
}


def _declare(name: str, ending: str) -> None:
    run, forward, says = _SEVERAL[name]
    full = name + ending

    if ending == "2":

        def op(input: Tensor, s: Ints = None, dim: Dims = (-2, -1), norm: Str = None) -> Tensor:
            return run(full, input, s, dim, norm, forward)
    else:

        def op(input: Tensor, s: Ints = None, dim: Dims = None, norm: Str = None) -> Tensor:
            return run(full, input, s, dim, norm, forward)

    text = says.format(fft=f"fft{ending}", rfft=f"rfft{ending}", hfft=f"hfft{ending}")
    if ending == "2":
        text = text.replace("several dims (all, unless said)", "two dims (the last, unless said)")
    given, printed = _EXAMPLES[name]
    op.__name__, op.__module__ = full, __name__
    part = ".real" if name in ("ifft", "ihfft") else ""  # (zeros below 0 are printed so)
    op.__doc__ = f"{text}\n\n    >>> torch.fft.{full}({given}){part}\n    {printed}\n    "
    record = composite(name=f"fft_{full}", namespace=FFT, method=False, function=False)(op)
    record.samples(_samples_of(name))


def _samples_of(name: str) -> Samples:
    def samples(make: _Any) -> Iterator[_Any]:
        x = make(4, 3, 6)
        z = x if name in ("rfft", "ihfft") else T.complex(x, make(4, 3, 6))
        yield (z,)
        yield (z, (3, 4)), {"dim": (2, 0)}
        yield (z,), {"dim": (0, 1), "norm": "ortho"}
        yield (z,), {"s": (5, 4), "dim": (-2, -1), "norm": "forward"}
        yield (z, (2,)), {"dim": (0, 1)}, RuntimeError, "same length"
        yield (z,), {"dim": (0, 0)}, RuntimeError, "unique"

    return samples


for _name in _SEVERAL:
    for _ending in ("2", "n"):
        _declare(_name, _ending)


for _each in (fft, ifft, rfft, irfft, hfft, ihfft):

    @_each.samples
    def _(make, real: bool = _each in (rfft, ihfft)):
        x = make(3, 6)
        z = x if real else T.complex(x, make(3, 6))
        yield (z,)
        yield z, 4
        yield z, 9, 0
        yield (z,), {"norm": "ortho"}
        yield (z,), {"norm": "forward", "dim": 0}
        yield (z, 0), {}, RuntimeError, "Invalid number of data points"
        yield (z, None, 2), {}, IndexError, "out of range"
        yield (z,), {"norm": "none"}, RuntimeError, "Invalid normalization mode"


# ------------------------------------------------------------------------------------ frequencies
@creating("dtype layout device pin_memory requires_grad", name="fft_fftfreq", namespace=FFT,
          function=False)  # fmt: skip
def fftfreq(n: Int, d: Float = 1.0, *, dtype: _Any, device: _Any):
    """The frequencies of what ``fft`` gives for n samples, ``d`` apart.

    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    _checked_length("fftfreq", n)
    k = T.arange(n, dtype=dtype or dtypes.get_default_dtype(), device=device)
    return T.where(k >= (n + 1) // 2, k - n, k) * (1.0 / (n * d))


@creating("dtype layout device pin_memory requires_grad", name="fft_rfftfreq", namespace=FFT,
          function=False)  # fmt: skip
def rfftfreq(n: Int, d: Float = 1.0, *, dtype: _Any, device: _Any):
    """The frequencies of what ``rfft`` gives for n samples, ``d`` apart.

    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    _checked_length("rfftfreq", n)
    return T.arange(n // 2 + 1, dtype=dtype or dtypes.get_default_dtype(), device=device) * (
        1.0 / (n * d)
    )


@composite(name="fft_fftshift", namespace=FFT, method=False, function=False, out=False)
def fftshift(input: Tensor, dim: Dims = None):
    """The elements rolled so that the frequency 0 stands in the middle, along all dims or some.

    >>> torch.fft.fftshift(torch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    dims = _shifted_dims("fftshift", input, dim)
    return T.roll(input, [input._layout.shape[d] // 2 for d in dims], dims)


@composite(name="fft_ifftshift", namespace=FFT, method=False, function=False, out=False)
def ifftshift(input: Tensor, dim: Dims = None):
    """The inverse of ``fftshift``.

    >>> torch.fft.ifftshift(torch.tensor([-0.5, -0.25, 0., 0.25]))
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    dims = _shifted_dims("ifftshift", input, dim)
    return T.roll(input, [(input._layout.shape[d] + 1) // 2 for d in dims], dims)


def _shifted_dims(op: str, input: TensorType, dim: Dims) -> list[int]:
    ndim = input._layout.ndim
    return [*range(ndim)] if dim is None else _named_dims(op, input, dim)


for _each in (fftshift, ifftshift):

    @_each.samples
    def _(make):
        yield (make(5, 4),)
        yield make(5, 4), 0
        yield make(5, 4), (1, 0)
        yield (make(3), 1), {}, IndexError, "out of range"
