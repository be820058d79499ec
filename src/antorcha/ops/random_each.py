"""Draws whose every number has parameters of its own: gamma, Dirichlet, Poisson and binomial.

They are what ``torch.distributions`` draws from. On the CPU the numbers are PyTorch's, bit for bit,
after the same ``manual_seed``. They reject and draw again, there one after the other; devices that
draw by counting have kernels for them.
"""

from __future__ import annotations

from antorcha.core import dtypes
from antorcha.core.lazy import lazy, np
from antorcha.errors import DtypeError, MissingFeature, RandomError, ShapeError
from antorcha.ops.kinds.draw_targets import DeviceTarget, DrawTarget, memory_order
from antorcha.ops.kinds.record import T
from antorcha.ops.kinds.sampler import sampler
from antorcha.ops.kinds.types import Any, Tensor
from antorcha.runtime.memory.layout import Layout

R = lazy("antorcha.runtime.random")


def _fill(out: DrawTarget, name: str, *parameters: Any) -> None:
    """Draws with a native sampler; the parameters lie in the order of the result's memory."""
    layout = out.layout
    if layout.dtype.name not in ("float32", "float64"):
        raise MissingFeature.of_dtype(out.name, layout.dtype, "use float32 or float64")
    order = memory_order(layout)
    spread = [
        np.transpose(np.broadcast_to(each, tuple(layout.shape)), order).ravel()
        for each in parameters
    ]
    side = np.stack(spread, -1).astype(layout.dtype.np)
    out.fill_with(R.fill_from_parameters, name, side.ctypes.data, kinds="f")


def _fill_there(out: DeviceTarget, name: str, *parameters: Tensor) -> None:
    """Draws by a kernel, on a device that draws by counting."""
    if out.layout.dtype.name not in ("float32", "float64"):
        raise MissingFeature.of_dtype(out.name, out.layout.dtype, "use float32 or float64")
    out.fill(name, *parameters, kinds="f")


@sampler(method=False, out=False)
def _standard_gamma(input: Tensor, generator: Any = None):
    """Gamma numbers, each of the shape that ``input`` has at that place, of rate 1.

    >>> (torch._standard_gamma(torch.full((100,), 2.0)) > 0).all()
    tensor(True)
    """

    def draw(out: Any) -> None:
        if out.on_host:
            _fill(out, "fill_gamma", input)
        else:
            _fill_there(out, "gamma", input)

    return draw


_standard_gamma.derivative(lambda g, input, out: T.mul(g, T._standard_gamma_grad(input, out)))


@sampler(method=False, out=False)
def _sample_dirichlet(input: Tensor, generator: Any = None):
    """A point of the simplex for each row of concentrations.

    The gamma numbers are drawn in float64 whatever the dtype, and divided by their sum.

    >>> torch._sample_dirichlet(torch.ones(4)).sum().round()
    tensor(1.)
    """

    def draw(out: Any) -> None:
        kind = out.layout.dtype
        if kind.name not in ("float32", "float64"):
            raise MissingFeature.of_dtype(out.name, kind, "use float32 or float64")
        if not out.on_host:
            _dirichlet_there(out, input)
            return
        shapes = np.ascontiguousarray(input, np.float64)
        gammas = np.empty(shapes.shape, np.float64)
        R.fill_from_parameters(
            out.generator, gammas.ctypes.data, gammas.size, "float64", "fill_gamma",
            shapes.ctypes.data,
        )  # fmt: skip
        least = np.finfo(kind.np).tiny
        most = np.nextafter(kind.np.type(1), kind.np.type(0))
        share = (gammas / gammas.sum(-1, keepdims=True)).astype(kind.np)
        out.array()[...] = np.clip(share, least, most)

    return draw


def _dirichlet_there(out: DeviceTarget, input: Tensor) -> None:
    kind = out.layout.dtype
    wide = T.to_dtype(input, dtypes.float64)
    gammas = out.drawn("gamma", input._layout.shape, dtypes.float64, wide)
    share = T.to_dtype(T.div(gammas, T.sum(gammas, -1, True)), kind)
    least = np.finfo(kind.np).tiny
    most = np.nextafter(kind.np.type(1), kind.np.type(0))
    out.write(T.clamp(share, float(least), float(most)))


@_sample_dirichlet.derivative
def _(g, input, out):
    total = T.expand(T.sum(input, -1, True), input._layout.shape)
    share = T.sum(T.mul(out, g), -1, True)
    return T.mul(T._dirichlet_grad(out, input, total), T.sub(g, share))


def _negative_rate(found: int = 0) -> RandomError:
    return RandomError("poisson: invalid Poisson rate, expected rate to be non-negative")


@sampler(method=False, out=False)
def poisson(input: Tensor, generator: Any = None):
    """Poisson numbers, each of the rate that ``input`` has at that place.

    >>> torch.poisson(torch.zeros(3))
    tensor([0., 0., 0.])
    """

    def draw(out: Any) -> None:
        if not out.on_host:
            out.require(T.all(T.ge(input, 0)), _negative_rate)
            _fill_there(out, "poisson", input)
            return
        if not np.min(input, initial=0) >= 0:  # (NaN where there is one)
            raise _negative_rate()
        _fill(out, "fill_poisson", input)

    return draw


@poisson.errors
def _(make):
    yield (make(3, low=-2, high=-1),), {}, RuntimeError, "non-negative"


def _binomial_result(
    count: Layout, prob: Layout, generator: Any
) -> tuple[tuple[int, ...], dtypes.dtype]:
    if count.dtype is not prob.dtype:
        raise DtypeError(
            "binomial: count and prob must have the same dtype, got {0.dtype} and {1.dtype}",
            reason="dtype", op="binomial", operands=(count, prob),
        )  # fmt: skip
    if count.dtype.kind != "f":
        raise DtypeError(f"binomial: takes floating-point tensors, got {count.dtype}")
    if tuple(count.shape) != tuple(prob.shape):
        raise ShapeError(
            f"binomial: count and prob must have the same shape, got {tuple(count.shape)} and "
            f"{tuple(prob.shape)}; expand one of them"
        )
    return count.shape, count.dtype


@sampler(method=False, out=False, result=_binomial_result, page=False)
def binomial(count: Tensor, prob: Tensor, generator: Any = None):
    """How many of ``count`` tries hit, where each hits with probability ``prob``.

    >>> torch.binomial(torch.tensor([5., 5.]), torch.tensor([0., 1.]))
    tensor([0., 5.])
    """

    def draw(out: Any) -> None:
        if out.on_host:
            _fill(out, "fill_binomial", count, prob)
        else:
            _fill_there(out, "binomial", count, prob)

    return draw


@binomial.errors
def _(make):
    yield (make(3), make(4)), {}, RuntimeError, "same shape"
