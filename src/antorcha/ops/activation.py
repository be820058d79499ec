"""Activation functions, element by element. One record per op.

Those that exist in ``torch.nn.functional`` only are exposed there (``namespace=``), with PyTorch's
``inplace=`` argument where they have an in-place form. Gradients at the kinks are PyTorch's.
"""

from __future__ import annotations

import math
from typing import Any

from antorcha.core import dtypes
from antorcha.core.shapes import normalize_dim
from antorcha.errors import DtypeError, ShapeError, ValueRangeError
from antorcha.lang import expr as E
from antorcha.ops.elementwise import is_bool
from antorcha.ops.kinds.params import to_real
from antorcha.ops.kinds.pointwise import pointwise
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.samples import spread
from antorcha.ops.kinds.types import Bool, Dim, Float, Number, Str, Tensor

NN = "nn.functional"
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _no_bools(name: str, input: E.Expr) -> None:
    if is_bool(input):
        raise DtypeError(f"{name}: Bool inputs not supported for {name}")


@pointwise(inplace=True, aliases=("nn.functional.relu",), samples=spread())
def relu(input: Tensor):
    """``max(0, input)``, element by element; nan stays nan.

    >>> torch.relu(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    _no_bools("relu", input)
    return E.relu(input)


relu.derivative(lambda g, out: E.where(out <= 0, 0, g))


@pointwise(namespace=NN, inplace=True, samples=spread())
def hardtanh(input: Tensor, min_val: Number = -1.0, max_val: Number = 1.0):
    """``input`` limited to ``min_val``..``max_val``.

    >>> torch.nn.functional.hardtanh(torch.tensor([-2., 0.5]))
    tensor([-1.0000,  0.5000])
    """
    _no_bools("hardtanh", input)
    if input.dtype.kind == "u" and isinstance(min_val, (int, float)) and min_val < 0:
        raise DtypeError("hardtanh: cannot do hardtanh on an unsigned type with negative limits")
    return E.where(input < min_val, min_val, E.where(input > max_val, max_val, input))


@hardtanh.accepts_values
def _(input, min_val, max_val):
    if min_val > max_val:
        raise ValueRangeError(
            f"hardtanh: min_val cannot be greater than max_val, but {min_val} > {max_val}"
        )


@hardtanh.derivative
def _(g, input, min_val, max_val):
    return E.where((input <= min_val) | (input >= max_val), 0, g)


@pointwise(namespace=NN, inplace=True, node="hardtanh", samples=spread(-8, 8))
def relu6(input: Tensor):
    """``min(max(0, input), 6)``.

    >>> torch.nn.functional.relu6(torch.tensor([-2., 0.5, 8.]))
    tensor([0.0000, 0.5000, 6.0000])
    """
    _no_bools("hardtanh", input)
    return E.where(input < 0, 0, E.where(input > 6, 6, input))


relu6.derivative(lambda g, input: E.where((input <= 0) | (input >= 6), 0, g))


@pointwise("floating", namespace=NN, inplace=True)
def leaky_relu(input: Tensor, negative_slope: Number = 0.01):
    """``input`` where positive, else ``negative_slope * input``.

    >>> torch.nn.functional.leaky_relu(torch.tensor([-2., 0.5]))
    tensor([-0.0200,  0.5000])
    """
    return E.where(input > 0, input, input * negative_slope)


leaky_relu.derivative(lambda g, input, negative_slope: E.where(input > 0, g, g * negative_slope))


@leaky_relu.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 0.2


def _elu(x: Tensor, alpha: Any, scale: Any = 1.0, input_scale: Any = 1.0) -> Tensor:
    return E.where(x <= 0, E.expm1(x * input_scale) * (alpha * scale), x * scale)


def _elu_grad(g: Tensor, x: Tensor, alpha: Any, scale: Any = 1.0, input_scale: Any = 1.0) -> Tensor:
    below = g * (alpha * scale * input_scale) * E.exp(x * input_scale)
    return E.where(x <= 0, below, g * scale)


@pointwise("floating", namespace=NN, inplace=True)
def elu(input: Tensor, alpha: Number = 1.0):
    """``input`` where positive, else ``alpha * (exp(input) - 1)``.

    >>> torch.nn.functional.elu(torch.tensor([-2., 0.5]))
    tensor([-0.8647,  0.5000])
    """
    return _elu(input, alpha)


elu.derivative(lambda g, input, alpha: _elu_grad(g, input, alpha))


@elu.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 0.7


@pointwise(
    "floating",
    inplace=True,
    method=False,
    node="elu",
    aliases=("nn.functional.selu",),
    samples=spread(),
)
def selu(input: Tensor):
    """The scaled exponential linear unit (self-normalizing networks).

    >>> torch.selu(torch.tensor([-2., 0.5]))
    tensor([-1.5202,  0.5254])
    """
    return _elu(input, SELU_ALPHA, SELU_SCALE)


selu.derivative(lambda g, input: _elu_grad(g, input, SELU_ALPHA, SELU_SCALE))


@pointwise(
    "floating",
    inplace=True,
    method=False,
    node="elu",
    aliases=("nn.functional.celu",),
    samples=spread(),
)
def celu(input: Tensor, alpha: Number = 1.0):
    """``max(0, input) + min(0, alpha * (exp(input / alpha) - 1))``.

    >>> torch.celu(torch.tensor([-2., 0.5]), alpha=2.0)
    tensor([-1.2642,  0.5000])
    """
    return _elu(input, alpha, 1.0, 1.0 / alpha)


celu.derivative(lambda g, input, alpha: _elu_grad(g, input, alpha, 1.0, 1.0 / alpha))


@celu.accepts_values
def _(input, alpha):
    if alpha == 0:
        raise DtypeError("celu: ZeroDivisionError: alpha cannot be 0 for CELU")


# (P(X <= x) - 1/2) / x of normal X as a fraction of polynomials in x*x, |x| <= 5.7: by weighted
# least squares (I. Barrodale, J. Mason), within 1.2e-8
CDF_OVER = (
    0.3989422023296356, 0.034941162914037704, 0.0047408295795321465, 0.0001793941337382421,
    6.374190434144111e-06, 2.1580294884415707e-08,
)  # fmt: skip
CDF_UNDER = (
    1.0, 0.2542499601840973, 0.02926069125533104, 0.0019445540383458138, 7.676797395106405e-05,
    1.1649627822407638e-06,
)  # fmt: skip


def normal_cdf(x: Any) -> Any:
    """P(X <= x) for normal X. In float32 within 1.8e-7, of which 1e-7 is float32's own where the
    result is near 1; 0.5 * (1 + erf(..)), which this stands for, is no nearer in the left tail."""
    if x.dtype is dtypes.float64:
        return E.ndtr(x)
    near = E.where(x < 5.7, E.where(x > -5.7, x, -5.7), 5.7)
    square = near * near
    over, under = _horner(square, CDF_OVER), _horner(square, CDF_UNDER)
    found = 0.5 + near * over / under
    return E.where(x < -5.3, 0.0, E.where(found > 0, found, 0.0))


def _horner(x: Any, coefficients: tuple[float, ...]) -> Any:
    """The polynomial with these coefficients, lowest first."""
    result = E.fma(x, coefficients[-1], coefficients[-2])
    for coefficient in coefficients[-3::-1]:
        result = E.fma(x, result, coefficient)
    return result


@pointwise("floating", namespace=NN)
def gelu(input: Tensor, *, approximate: Str = "none"):
    """``input * P(X <= input)`` for normal X; ``approximate="tanh"`` by a formula with tanh.

    >>> torch.nn.functional.gelu(torch.tensor([-1., 2.]))
    tensor([-0.1587,  1.9545])
    """
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (input + 0.044715 * (input * input * input))
        return 0.5 * input * (1 + E.tanh(inner))
    if approximate != "none":
        raise ShapeError(
            f"gelu: approximate argument must be either none or tanh, not {approximate!r}."
        )
    return input * normal_cdf(input)


@gelu.derivative
def _(g, input, approximate):
    if approximate == "tanh":
        beta = math.sqrt(2 / math.pi)
        t = E.tanh(beta * (input + 0.044715 * (input * input * input)))
        slope = (1 - t * t) * (beta * (1 + 3 * 0.044715 * (input * input)))
        return g * (0.5 * (1 + t) + 0.5 * input * slope)
    cdf = normal_cdf(input)
    pdf = E.exp(-0.5 * (input * input)) * (1 / math.sqrt(2 * math.pi))
    return g * (cdf + input * pdf)


@gelu.samples
def _(make):
    yield (make(3, 4),)
    yield (make(3, 4),), {"approximate": "tanh"}


@pointwise("inexact", namespace=NN, inplace=True, samples=spread())
def silu(input: Tensor):
    """``input * sigmoid(input)``, also called swish.

    >>> torch.nn.functional.silu(torch.tensor([-1., 2.]))
    tensor([-0.2689,  1.7616])
    """
    if input.dtype.kind == "c":
        return input / (1 + E.exp(-input))
    return input_by_sigmoid(input, input)


def input_by_sigmoid(x: Any, at: Any) -> Any:
    """``x * sigmoid(at)``, where both have one sign. Below 0 by the exponential's root, which is
    normal wherever the result is not zero."""
    root = E.exp(-0.5 * E.abs(at))
    return E.where(at < 0, x * root * root, x) / (1 + root * root)


@silu.derivative
def _(g, input):
    s = E.sigmoid(input)
    return g * E.conj(s * (1 + input * (1 - s)))


@pointwise("floating", namespace=NN, inplace=True, samples=spread())
def mish(input: Tensor):
    """``input * tanh(softplus(input))``.

    >>> torch.nn.functional.mish(torch.tensor([-1., 2.]))
    tensor([-0.3034,  1.9440])
    """
    # with w = exp(input): tanh(log1p(w)) = w (w + 2) / (w (w + 2) + 2), which is 1 from 20 on
    root = E.exp(0.5 * E.minimum(input, 20))
    w = root * root
    share = input * root * (root * (w + 2)) / (w * (w + 2) + 2)
    return E.where(input > 20, input, share)


@mish.derivative
def _(g, input):
    t = E.tanh(E.log1p(E.exp(input)))
    return g * (t + input * E.sigmoid(input) * (1 - t * t))


@pointwise("floating", namespace=NN, inplace=True, samples=spread(-5, 5))
def hardswish(input: Tensor):
    """``input * relu6(input + 3) / 6``.

    >>> torch.nn.functional.hardswish(torch.tensor([-1., 2.]))
    tensor([-0.3333,  1.6667])
    """
    return input * E.minimum(E.maximum(input + 3, 0), 6) / 6


@hardswish.derivative
def _(g, input):
    return E.where(input <= -3, 0, E.where(input < 3, g * (input / 3 + 0.5), g))


@pointwise("floating", namespace=NN, inplace=True, samples=spread(-5, 5))
def hardsigmoid(input: Tensor):
    """``relu6(input + 3) / 6``.

    >>> torch.nn.functional.hardsigmoid(torch.tensor([-1., 4.]))
    tensor([0.3333, 1.0000])
    """
    return E.minimum(E.maximum(input + 3, 0), 6) / 6


hardsigmoid.derivative(lambda g, input: E.where((input > -3) & (input < 3), g * (1.0 / 6.0), 0))


@pointwise("floating", namespace=NN)
def softplus(input: Tensor, beta: Number = 1, threshold: Number = 20):
    """``log(1 + exp(beta * input)) / beta``; ``input`` where ``beta * input > threshold``.

    >>> torch.nn.functional.softplus(torch.tensor([-1., 2.]))
    tensor([0.3133, 2.1269])
    """
    x = input * beta
    return E.where(x > threshold, input, E.log1p(E.exp(x)) / beta)


@softplus.derivative
def _(g, input, beta, threshold):
    z = E.exp(input * beta)
    return E.where(input * beta > threshold, g, g * z / (z + 1))


@softplus.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 2.0, 1.0


@pointwise("float", namespace=NN, node="div", samples=spread())
def softsign(input: Tensor):
    """``input / (1 + abs(input))``.

    >>> torch.nn.functional.softsign(torch.tensor([-1., 3.]))
    tensor([-0.5000,  0.7500])
    """
    return input / (1 + E.abs(input))


@pointwise("floating", row_major="bufic", namespace=NN, node="log_sigmoid", samples=spread())
def logsigmoid(input: Tensor):
    """``log(sigmoid(input))``, without overflow.

    >>> torch.nn.functional.logsigmoid(torch.tensor([-1., 3.]))
    tensor([-1.3133, -0.0486])
    """
    return E.minimum(input, 0) - E.log1p(E.exp(-E.abs(input)))


@logsigmoid.derivative
def _(g, input):
    z = E.exp(-E.abs(input))
    share = z / (1 + z)
    return g * E.where(input < 0, 1 - share, share)


@pointwise("float", namespace=NN, node="sub", samples=spread())
def tanhshrink(input: Tensor):
    """``input - tanh(input)``.

    >>> torch.nn.functional.tanhshrink(torch.tensor([-1., 3.]))
    tensor([-0.2384,  2.0049])
    """
    return input - E.tanh(input)


@pointwise("floating", namespace=NN, samples=spread())
def softshrink(input: Tensor, lambd: Number = 0.5):
    """``input`` moved towards 0 by ``lambd``, 0 within.

    >>> torch.nn.functional.softshrink(torch.tensor([-1., 0.2, 3.]))
    tensor([-0.5000,  0.0000,  2.5000])
    """
    beyond = E.where(input < -lambd, input + lambd, input * 0)  # nan stays nan
    return E.where(input > lambd, input - lambd, beyond)


@softshrink.accepts_values
def _(input, lambd):
    if not to_real("softshrink", "lambd", lambd) >= 0:
        raise ShapeError(
            f"softshrink: lambda must be greater or equal to 0, but found to be {lambd}"
        )


softshrink.derivative(lambda g, input, lambd: E.where((input >= -lambd) & (input <= lambd), 0, g))


@pointwise("floating", aliases=("nn.functional.hardshrink",), samples=spread())
def hardshrink(input: Tensor, lambd: Number = 0.5):
    """``input`` outside of -``lambd``..``lambd``, 0 within.

    >>> torch.nn.functional.hardshrink(torch.tensor([-1., 0.2, 3.]))
    tensor([-1.,  0.,  3.])
    """
    return E.where((input >= -lambd) & (input <= lambd), 0, input)


@pointwise(method=False, inplace=True, aliases=("nn.functional.threshold",))
def threshold(input: Tensor, threshold: Number, value: Number):
    """``input`` where it is above ``threshold``, else ``value``.

    >>> torch.nn.functional.threshold(torch.tensor([-1., 0.2, 3.]), 0.5, 20.0)
    tensor([20., 20.,  3.])
    """
    return E.where(input <= threshold, value, input)


@threshold.samples
def _(make):
    yield make(3, 4), 0.1, 2.0


@pointwise("floating", function=False, method=False, node="prelu_kernel")
def prelu_kernel(input: Tensor, weight: Tensor):
    """The kernel of ``prelu``: ``weight`` broadcasts against ``input``."""
    return E.where(input > 0, input, weight * input)


@prelu_kernel.derivative
def _(g, input, weight):
    return E.where(input > 0, g, weight * g), E.where(input > 0, 0, input * g)


@composite(aliases=("nn.functional.prelu",))
def prelu(input: Tensor, weight: Tensor):
    """``input`` where positive, else ``weight * input``: one weight, or one per channel (dim 1).

    >>> torch.prelu(torch.tensor([-1., 3.]), torch.tensor([0.25]))
    tensor([-0.2500,  3.0000])
    """
    layout, own = input._layout, weight._layout
    if own.ndim > 1:
        raise ShapeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {own.ndim}"
        )
    if own.numel != 1:
        channels = layout.shape[1] if layout.ndim > 1 else 1
        if layout.ndim == 0 or channels != own.numel:
            raise ShapeError(
                "prelu: Mismatch of parameter numbers and input channel size. Found parameter "
                f"numbers = {own.numel} and channel size = {channels}."
            )
    if own.ndim == 1:
        tail = (1,) * (layout.ndim - 2)
        weight = T.view(
            weight, (own.numel, *tail) if layout.ndim > 1 else (own.numel,) * layout.ndim
        )
    return T.prelu_kernel(input, weight)


@prelu.samples
def _(make):
    yield make(3, 4), make(4)
    yield make(2, 3, 2), make(1)


@composite(namespace=NN, out=False, samples=spread())
def rrelu(input: Tensor, lower: Float = 0.125, upper: Float = 1.0 / 3, training: Bool = False,
          inplace: Bool = False):  # fmt: skip
    """``input`` where positive, else times a slope: random in training, the middle otherwise.

    >>> torch.nn.functional.rrelu(torch.tensor([-3., 3.]), 0.0, 0.5)
    tensor([-0.7500,  3.0000])
    """
    if not inplace:
        input = T.contiguous(input)
    if lower > upper:
        raise ShapeError(f"rrelu: Lower bound {lower} should be less than or equal to {upper}")
    if not training:
        slope = (lower + upper) / 2
        return T.leaky_relu_(input, slope) if inplace else T.leaky_relu(input, slope)
    # PyTorch draws for the elements that are not positive only, in double precision
    drops = T.le(input, 0)
    count = T.sum(drops).item()
    draws = T.empty((count,), dtype=dtypes.float64, device=input._layout.device)
    T.uniform_(draws, lower, upper)
    noise = T.masked_scatter(T.ones_like(input), drops, T.to_dtype(draws, input._layout.dtype))
    result = T.prelu_kernel(input, noise)
    return T.copy_(input, result) if inplace else result


@pointwise("inexact", function=False, method=False, node="glu")
def glu_kernel(input: Tensor, gate: Tensor):
    """``input * sigmoid(gate)``: the kernel of ``glu``."""
    return input * E.sigmoid(gate)


@composite(namespace=NN, out=False)
def glu(input: Tensor, dim: Dim = -1):
    """The first half of ``input`` along ``dim`` times the sigmoid of the second.

    >>> torch.nn.functional.glu(torch.tensor([1., 2., 0., 0.]))
    tensor([0.5000, 1.0000])
    """
    shape = input._layout.shape
    if not shape:
        raise ShapeError("glu does not support 0-dimensional tensors")
    d = normalize_dim(dim, len(shape), op="glu")
    if shape[d] % 2:
        raise ShapeError(
            f"glu: Halving dimension must be even, but dimension {d} is size {shape[d]}"
        )
    half = shape[d] // 2
    return T.glu_kernel(T.narrow(input, d, 0, half), T.narrow(input, d, half, half))


@glu.samples
def _(make):
    yield (make(3, 4),)
    yield make(4, 3), 0
