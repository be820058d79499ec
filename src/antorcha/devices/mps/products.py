"""MatMul, Conv, Attention and Fourier on arrays of MLX's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from antorcha.devices.emit import Unsupported
from antorcha.devices.mps.expressions import TABLE, Array, Compute
from antorcha.devices.mps.library import kind, mx
from antorcha.lang.kernels import Attention, Conv, Fourier, MatMul
from antorcha.runtime.memory.layout import Layout

MOST_TERMS = 1 << 22  # of a product of integers, all of which are there at once
HALVES = ("float16", "bfloat16")


# ---- products of matrices
def compute_matmul(what: MatMul, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    """The operands are read by the description's strides (see ``device.reading``)."""
    t = ins[0].dtype
    if t.kind in "biu" and what.batch * what.m * what.n * what.k > MOST_TERMS:
        raise Unsupported("a large product of integers")
    plain = what.alpha == 1 and what.bias is None
    multiply = {"f": mx.matmul, "c": _complex_product}.get(t.kind, _integer_product)

    def compute(values: list[Any]) -> list[Array]:
        a, b, *bias = values
        wide = t.name in HALVES and not plain
        result = multiply(*[v.astype(mx.float32) if wide else v for v in (a, b)])
        if what.alpha != 1:
            result = _scaled(result, what.alpha)
        if bias:
            result = result + _scaled(bias[0].astype(result.dtype), what.beta)
        return [result.reshape(outs[0].shape)]

    return compute


def _scaled(x: Array, factor: complex) -> Array:
    if factor == 1:
        return x
    if x.dtype != mx.complex64:
        return x * mx.array(factor.real, x.dtype)
    return TABLE["complex"](
        mx.real(x) * factor.real - mx.imag(x) * factor.imag,
        mx.real(x) * factor.imag + mx.imag(x) * factor.real,
    )


def _complex_product(a: Array, b: Array) -> Array:
    ar, ai, br, bi = mx.real(a), mx.imag(a), mx.real(b), mx.imag(b)
    return TABLE["complex"](ar @ br - ai @ bi, ar @ bi + ai @ br)


def _integer_product(a: Array, b: Array) -> Array:
    if a.dtype == mx.bool_:
        return mx.any(mx.logical_and(a[..., None], b[..., None, :, :]), -2)
    return mx.sum(a[..., None] * b[..., None, :, :], -2).astype(a.dtype)


# ---- convolutions
def compute_conv(what: Conv, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    if ins[0].dtype.kind not in "fc":
        raise Unsupported(f"a convolution of {ins[0].dtype}")
    if what.groups > 1 and len(what.stride) > 2:
        raise Unsupported("a convolution in groups over three dims")
    if not (math.prod(what.x) and math.prod(what.w) and math.prod(what.y)):
        raise Unsupported("a convolution of nothing")
    compute = {"forward": _forward, "data": _data, "weight": _weight}[what.kind](what)
    if ins[0].dtype.kind == "c":
        return _in_parts(compute)
    if kind() == "cpu" and ins[0].dtype.name in HALVES:  # (MLX adds halves in halves there)
        return lambda values: compute([v.astype(mx.float32) for v in values])
    return compute


def _in_parts(compute: Compute) -> Compute:
    """A convolution of complex numbers: of their parts."""

    def of_complex(values: list[Any]) -> list[Array]:
        a, b, *rest = [(mx.real(v), mx.imag(v)) for v in values]
        (re,), (cross,) = compute([a[0], b[0]]), compute([a[1], b[1]])
        (left,), (right,) = compute([a[0], b[1]]), compute([a[1], b[0]])
        re, im = re - cross, left + right
        if rest:
            over = (-1, *[1] * (re.ndim - 2))
            re, im = re + rest[0][0].reshape(over), im + rest[0][1].reshape(over)
        return [TABLE["complex"](re, im)]

    return of_complex


def _last(x: Array) -> Array:
    """The channels (dim 1) as the last dim, where MLX has them."""
    return mx.moveaxis(x, 1, -1)


def _high_padding(what: Conv) -> list[int]:
    return [
        (o - 1) * s + (t - 1) * d + 1 - p - n
        for n, o, t, s, p, d in zip(
            what.x[2:], what.y[2:], what.w[2:], what.stride, what.padding, what.dilation,
            strict=True,
        )
    ]  # fmt: skip


def _cropped(x: Array, high: list[int]) -> Array:
    """x (channels last) without the elements that a negative padding cuts off."""
    if min(high) >= 0:
        return x
    inside = [slice(0, n + min(h, 0)) for n, h in zip(x.shape[1:-1], high, strict=True)]
    return x[(slice(None), *inside)]


def _with_bias(y: Array, rest: list[Array]) -> list[Array]:
    """The result with channels at dim 1 again, and a bias for each."""
    if rest:
        y = y + rest[0].astype(y.dtype)
    return [mx.moveaxis(y, -1, 1)]


def _forward(what: Conv) -> Compute:
    high = _high_padding(what)
    padding = list(what.padding), [max(h, 0) for h in high]

    def compute(values: list[Any]) -> list[Array]:
        x, w, *rest = values
        y = mx.conv_general(
            _cropped(_last(x), high), _last(w), list(what.stride), padding, list(what.dilation),
            1, what.groups,
        )  # fmt: skip
        return _with_bias(y, rest)

    return compute


def _data(what: Conv) -> Compute:
    """The transposed convolution: of y with gaps, by the weights the other way round."""
    g = what.groups
    taps, sizes = what.w[2:], what.x[2:]
    low = [(t - 1) * d - p for t, d, p in zip(taps, what.dilation, what.padding, strict=True)]
    high = [
        n + (t - 1) * d - (o - 1) * s - 1 - k
        for n, t, d, o, s, k in zip(
            sizes, taps, what.dilation, what.y[2:], what.stride, low, strict=True
        )
    ]
    padding = [max(k, 0) for k in low], [max(h, 0) for h in high]
    inside = [slice(max(-k, 0), max(-k, 0) + n) for k, n in zip(low, sizes, strict=True)]

    def compute(values: list[Any]) -> list[Array]:
        y, w, *rest = values
        swapped = mx.swapaxes(w.reshape(g, what.w[0] // g, *what.w[1:]), 1, 2)
        kernel = _last(swapped.reshape(what.x[1], what.w[0] // g, *taps))
        x = mx.conv_general(
            _last(y), kernel, 1, padding, list(what.dilation), list(what.stride), g, True
        )
        return _with_bias(x[(slice(None), *inside)], rest)

    return compute


def _weight(what: Conv) -> Compute:
    """The convolution of x by y over the batch, for each group; stride and dilation swap places."""
    g, high = what.groups, _high_padding(what)
    c, k = what.w[1], what.w[0] // g
    padding = list(what.padding), [max(h, 0) for h in high]
    taps = [slice(0, t) for t in what.w[2:]]

    def of_group(x: Array, y: Array) -> Array:
        images = _cropped(mx.moveaxis(mx.swapaxes(x, 0, 1), 1, -1), high)
        kernels = mx.moveaxis(mx.swapaxes(y, 0, 1), 1, -1)
        w = mx.conv_general(
            images, kernels, list(what.dilation), padding, list(what.stride), 1, 1
        )[(slice(None), *taps)]  # fmt: skip
        return mx.swapaxes(mx.moveaxis(w, -1, 1), 0, 1)

    def compute(values: list[Any]) -> list[Array]:
        x, y = values
        found = [of_group(x[:, j * c : (j + 1) * c], y[:, j * k : (j + 1) * k]) for j in range(g)]
        return [found[0] if g == 1 else mx.concatenate(found, 0)]

    return compute


# ---- attention
def compute_attention(what: Attention, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    if ins[0].dtype.kind != "f":
        raise Unsupported(f"attention of {ins[0].dtype}")
    if len(outs) > 1:
        raise Unsupported("attention that keeps its sums")

    def compute(values: list[Any]) -> list[Array]:
        query, key, value = values
        scores = (query @ mx.swapaxes(key, -2, -1)).astype(mx.float32) * what.scale
        if what.causal:
            rows = mx.arange(scores.shape[-2])[:, None]
            scores = mx.where(mx.arange(scores.shape[-1]) <= rows, scores, -math.inf)
        top = mx.max(scores, -1, keepdims=True)
        if what.causal:
            top = mx.where(top == -math.inf, 0.0, top)
        weights = mx.exp(scores - top)
        total = mx.sum(weights, -1, keepdims=True)
        weights = weights / (mx.where(total == 0, 1.0, total) if what.causal else total)
        return [weights.astype(query.dtype) @ value]

    if not all([each.numel for each in (*outs, *ins)]):
        raise Unsupported("attention to nothing")
    return compute


# ---- Fourier transforms
def compute_fourier(what: Fourier, outs: Sequence[Layout], ins: Sequence[Any]) -> Compute:
    layout = ins[0]
    if layout.dtype.name not in ("float32", "complex64") or not what.dims or not layout.numel:
        raise Unsupported(f"a transform of {layout.dtype} along {what.dims}")
    if layout.dtype.kind == "c" and what.kind == "real":
        raise Unsupported("a transform of real numbers, of complex ones")
    dims = list(what.dims)
    sizes = [layout.shape[d] for d in dims]
    if what.kind == "to real":
        sizes[-1] = what.length
    total = math.prod(sizes)
    factor = {"none": 1.0, "root": total**-0.5, "all": 1 / total}[what.norm]

    def compute(values: list[Any]) -> list[Array]:
        (x,) = values
        if what.kind == "to real":
            x = TABLE["complex"](mx.real(x), -mx.imag(x)) if what.forward else x
            return [mx.fft.irfftn(x, sizes, dims) * (factor * total)]
        if what.onesided:
            found = mx.fft.rfftn(x, axes=dims)
            if not what.forward:
                found = TABLE["complex"](mx.real(found), -mx.imag(found))
            return [_scaled(found, complex(factor))]
        if what.kind == "real":
            x = TABLE["complex"](x, mx.zeros_like(x))
        if what.forward:
            return [_scaled(mx.fft.fftn(x, axes=dims), complex(factor))]
        return [_scaled(mx.fft.ifftn(x, axes=dims), complex(factor * total))]

    return compute
