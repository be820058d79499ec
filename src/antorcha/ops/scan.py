"""Running sums, products and extrema along a dim, and their opposite, differences.

The gradient of a sum from the start is one from the end (``reverse``), those of products are linear
recurrences: no flipped copies, and nothing divided.
"""

from __future__ import annotations

import builtins

from antorcha import dtypes
from antorcha.errors import MissingFeature, ShapeError
from antorcha.lang.kernels import Host
from antorcha.lazy import np
from antorcha.ops import return_types
from antorcha.ops.extrema import check_ordered
from antorcha.ops.kernel import Planned, kernel
from antorcha.ops.record import T, composite
from antorcha.ops.types import Bool, Dim, Dtype, Int, OptTensor, StaticNumber, Tensor
from antorcha.shapes import normalize_dim


def along(array, d, reverse, scan):
    """``scan(array, axis)``, from the end when ``reverse``."""
    if not array.ndim:
        return scan(array.reshape(1), 0).reshape(())
    return np.flip(scan(np.flip(array, d), d), d) if reverse else scan(array, d)


def wide(array):
    """The array in a dtype to accumulate in: floats in double, as PyTorch does."""
    kind = array.dtype.kind
    return array.astype(np.float64 if kind in "fV" else np.complex128 if kind == "c" else np.int64)


def sum_dtype(dtype, asked):
    return asked or (dtypes.int64 if dtype.kind in "bui" else dtype)


# ------------------------------------------------------------------------------- cumsum, cumprod
@kernel(function=False, method=False, node="cumsum")
def running_sum(input: Tensor, dim: Dim, dtype: Dtype, reverse: Bool):
    """The running sums along a dim, from the start or from the end."""
    d = normalize_dim(dim, input.ndim, op="cumsum")
    as_ = dtype.np

    def run(a):
        return along(wide(a.astype(as_)), d, reverse, lambda x, axis: np.cumsum(x, axis))

    return Planned(Host(run), [(input.shape, dtype)])


@running_sum.derivative
def _(g, dim, reverse):
    return T.running_sum(g, dim, g._layout.dtype, not reverse)


@composite(inplace=False)
def cumsum(input: Tensor, dim: Dim, *, dtype: Dtype = None):
    """The running sum along ``dim``: ``y_i = x_1 + ... + x_i``; integers give int64.

    See https://docs.pytorch.org/docs/stable/generated/torch.cumsum.html.

    >>> torch.cumsum(torch.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])
    """
    return T.running_sum(input, dim, sum_dtype(input._layout.dtype, dtype), False)


@cumsum.samples
def _(make):
    yield make(3, 4), 0
    yield make(3, 4), -1
    yield make(), 0


@kernel(function=False, method=False, node="cumprod")
def running_product(input: Tensor, dim: Dim, dtype: Dtype):
    """The running products along a dim."""
    d = normalize_dim(dim, input.ndim, op="cumprod")
    as_ = dtype.np

    def run(a):
        return along(wide(a.astype(as_)), d, False, lambda x, axis: np.cumprod(x, axis))

    return Planned(Host(run), [(input.shape, dtype)])


@running_product.derivative
def _(g, input, dim):
    # grad_i = (product of all before i) * r_i,  r_i = g_i + x_{i+1} r_{i+1}: nothing is divided,
    # so zeros need no care
    lay = input._layout
    if not lay.ndim or not lay.numel:
        return g
    if lay.dtype is not g._layout.dtype:
        input = T.to_dtype(input, g._layout.dtype)
    factor = T.conj(input) if lay.dtype.kind == "c" else input
    return T.exclusive_cumprod(factor, dim, False) * T.recurrence(g, factor, dim, True)


@composite(out=False, function=False, method=False)
def exclusive_cumprod(input: Tensor, dim: Dim, reverse: Bool):
    """The product of all elements before each one (after it, when ``reverse``)."""
    d = normalize_dim(dim, input._layout.ndim)
    n = input._layout.shape[d]
    if not n:
        return input
    if reverse:
        return T.flip(exclusive_cumprod(T.flip(input, (d,)), d, False), (d,))
    ones = T.ones_like(T.narrow(input, d, 0, 1).detach())
    products = T.running_product(T.narrow(input, d, 0, n - 1), d, input._layout.dtype)
    return T.cat((ones, products), d)


@kernel(function=False, method=False, out=False)
def recurrence(input: Tensor, factor: Tensor, dim: Dim, reverse: Bool):
    """``y_i = x_i + a_i y_{i-1}``; in reverse ``y_i = x_i + a_{i+1} y_{i+1}``. ``a_0`` is not read.

    The gradients of running products are these, and a recurrence's are recurrences again.
    """
    d = normalize_dim(dim, input.ndim)

    def run(x, a):
        x, a = np.moveaxis(wide(x), d, 0), np.moveaxis(wide(a), d, 0)
        y = np.array(x)
        if reverse:
            for k in range(len(y) - 2, -1, -1):
                y[k] += a[k + 1] * y[k + 1]
        else:
            for k in range(1, len(y)):
                y[k] += a[k] * y[k - 1]
        return np.moveaxis(y, 0, d)

    return Planned(Host(run), [(input.shape, input.dtype)])


@recurrence.derivative
def _(g, factor, out, dim, reverse):
    if factor._layout.dtype.kind == "c":
        factor, out = T.conj(factor), T.conj(out)
    of_x = T.recurrence(g, factor, dim, not reverse)
    return of_x, before(of_x, dim) * out if reverse else of_x * before(out, dim)


def before(x, dim):
    """The element before each one along a dim; 0 before the first."""
    d = normalize_dim(dim, x._layout.ndim)
    n = x._layout.shape[d]
    first = T.zeros_like(T.narrow(x, d, 0, 1).detach())
    return T.cat((first, T.narrow(x, d, 0, n - 1)), d)


@composite()
def cumprod(input: Tensor, dim: Dim, *, dtype: Dtype = None):
    """The running product along ``dim``; integers give int64.

    See https://docs.pytorch.org/docs/stable/generated/torch.cumprod.html.

    >>> torch.cumprod(torch.tensor([1, 2, 3]), 0)
    tensor([1, 2, 6])
    """
    return T.running_product(input, dim, sum_dtype(input._layout.dtype, dtype))


@cumprod.samples
def _(make):
    yield make(3, 4), 0
    yield make(3, 4), -1


# -------------------------------------------------------------------------------- cummax, cummin
def _running_extreme(op, input, dim, accumulate):
    check_ordered(op, input)
    d = normalize_dim(dim, input.ndim, op=op)

    def run(a):
        if not a.ndim:
            return a, np.zeros((), np.int64)
        x = a.astype(np.float32) if a.dtype.kind == "V" else a
        best = accumulate(x, d)
        nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
        at = np.arange(a.shape[d]).reshape([-1 if k == d else 1 for k in range(a.ndim)])
        index = np.maximum.accumulate(np.where((x == best) | nan, at, 0), d)
        return best, index

    return Planned(Host(run), [(input.shape, input.dtype), (input.shape, dtypes.int64)])


def _to_running(g, input_layout, dim, out1):
    value = g[0] if isinstance(g, tuple) else g
    if value is None or not input_layout.ndim:
        return value
    return T.put_along(value, out1, dim, input_layout.shape[dim])


@kernel()
def cummax(input: Tensor, dim: Dim):
    """The running maximum along ``dim`` and the (last) index of each, as (values, indices).

    See https://docs.pytorch.org/docs/stable/generated/torch.cummax.html.

    >>> torch.cummax(torch.tensor([1, 3, 2]), 0)
    torch.return_types.cummax(
    values=tensor([1, 3, 3]),
    indices=tensor([0, 1, 1]))
    """
    return _running_extreme("cummax", input, dim, np.maximum.accumulate)


@kernel()
def cummin(input: Tensor, dim: Dim):
    """The running minimum along ``dim`` and the (last) index of each, as (values, indices).

    See https://docs.pytorch.org/docs/stable/generated/torch.cummin.html.

    >>> torch.cummin(torch.tensor([3, 1, 2]), 0)
    torch.return_types.cummin(
    values=tensor([3, 1, 1]),
    indices=tensor([0, 1, 1]))
    """
    return _running_extreme("cummin", input, dim, np.minimum.accumulate)


cummax.returns, cummin.returns = return_types.cummax, return_types.cummin
cummax.derivative(_to_running)
cummin.derivative(_to_running)


@cummax.samples
def _(make):
    yield make(3, 4), 0
    yield make(3, 4), 1


@cummin.samples
def _(make):
    yield make(3, 4), 0
    yield make(3, 4), 1


# --------------------------------------------------------------------------------- logcumsumexp
@kernel()
def logcumsumexp(input: Tensor, dim: Dim):
    """The logarithm of the running sum of exponentials along ``dim``.

    See https://docs.pytorch.org/docs/stable/generated/torch.logcumsumexp.html.

    >>> torch.logcumsumexp(torch.tensor([0., 0.]), 0)
    tensor([0.0000, 0.6931])
    """
    if input.dtype.kind != "f":
        raise MissingFeature(f"logcumsumexp: not implemented for {input.dtype}")
    d = normalize_dim(dim, input.ndim, op="logcumsumexp")

    def run(a):
        return along(wide(a), d, False, lambda x, axis: np.logaddexp.accumulate(x, axis))

    return Planned(Host(run), [(input.shape, input.dtype)])


@logcumsumexp.derivative
def _(g, input, out, dim):
    # grad_i = exp(x_i - y_i) s_i,  s_i = g_i + exp(y_i - y_{i+1}) s_{i+1}: no factor exceeds 1
    if not input._layout.ndim or not input._layout.numel:
        return g
    empty = T.eq(out, -np.inf)  # nothing but -inf so far: no share
    factor = T.exp(T.where(empty, 0.0, before(out, dim) - out))
    share = T.exp(T.where(empty, -np.inf, input - out))
    return share * T.recurrence(g, factor, dim, True)


@logcumsumexp.samples
def _(make):
    yield make(3, 4), 0
    yield make(3, 4), 1


# ------------------------------------------------------------------------- differences, areas
@composite()
def diff(
    input: Tensor, n: Int = 1, dim: Dim = -1, prepend: OptTensor = None, append: OptTensor = None
):
    """The ``n``-th differences of neighbours along ``dim``: ``x[i + 1] - x[i]``.

    See https://docs.pytorch.org/docs/stable/generated/torch.diff.html.

    >>> torch.diff(torch.tensor([1, 3, 2]))
    tensor([ 2, -1])
    """
    if not input._layout.ndim:
        raise ShapeError("diff: diff expects input to be at least one-dimensional")
    if n < 0:
        raise ShapeError(f"diff: order must be non-negative but got {n}")
    d = normalize_dim(dim, input._layout.ndim, op="diff")
    parts = [each for each in (prepend, input, append) if each is not None]
    found = T.cat(parts, d) if len(parts) > 1 else input
    if n == 0:
        return T.clone(found) if len(parts) == 1 else found
    for _round in range(builtins.min(n, found._layout.shape[d])):
        size = found._layout.shape[d]
        later, earlier = T.slice(found, d, 1, size, 1), T.slice(found, d, 0, size - 1, 1)
        if found._layout.dtype.kind == "b":
            found = T.logical_xor(later, earlier)
        else:
            found = later - earlier
    return found


@diff.samples
def _(make):
    yield (make(3, 5),)
    yield make(3, 5), 2, 0
    yield (make(3, 5),), {"prepend": make(3, 1)}


def _steps(name, y, x, dx, dim):
    """(sum of neighbouring values, width of each step) along the last dim."""
    d = normalize_dim(dim, y._layout.ndim, op=name)
    size = y._layout.shape[d]
    pairs = T.slice(y, d, 1, size, 1) + T.slice(y, d, 0, size - 1, 1)
    if x is None:
        return pairs, 1 if dx is None else dx, d
    if x._layout.ndim == 1:
        if x._layout.shape[0] != size:
            raise ShapeError(
                f"{name}: There must be one `x` value for each sample point: x has "
                f"{x._layout.shape[0]}, dim {d} of y has {size}"
            )
        shape = [1] * y._layout.ndim
        shape[d] = size - 1
        return pairs, T.view(T.diff(x), tuple(shape)), d
    return pairs, T.diff(x, 1, d - y._layout.ndim), d


def _area(name, y, x, dx, dim, combine):
    from antorcha.runtime.tensor import Tensor as TensorType

    if x is not None and not isinstance(x, TensorType):
        x, dx = None, x
    pairs, width, d = _steps(name, y, x, dx, dim)
    if x is None:
        return combine(pairs, d) * (width / 2)
    return combine(pairs * width, d) / 2.0


@composite(method=False, out=False, aliases=("trapz",))
def trapezoid(y: Tensor, x: OptTensor = None, *, dx: StaticNumber = None, dim: Dim = -1):
    """The area under ``y`` along ``dim`` by the trapezoidal rule, at ``x`` or with spacing ``dx``.

    See https://docs.pytorch.org/docs/stable/generated/torch.trapezoid.html.

    >>> torch.trapezoid(torch.tensor([1., 5., 10.]))
    tensor(10.5000)
    """
    return _area("trapezoid", y, x, dx, dim, lambda v, d: T.sum(v, d))


@composite(method=False, out=False)
def cumulative_trapezoid(y: Tensor, x: OptTensor = None, *, dx: StaticNumber = None, dim: Dim = -1):
    """The running area under ``y`` along ``dim`` by the trapezoidal rule.

    See https://docs.pytorch.org/docs/stable/generated/torch.cumulative_trapezoid.html.

    >>> torch.cumulative_trapezoid(torch.tensor([1., 5., 10.]))
    tensor([ 3.0000, 10.5000])
    """
    return _area("cumulative_trapezoid", y, x, dx, dim, lambda v, d: T.cumsum(v, d))


@trapezoid.samples
def _(make):
    yield (make(3, 5),)
    yield make(3, 5), make(5)
    yield (make(3, 5),), {"dx": 0.5, "dim": 0}


@cumulative_trapezoid.samples
def _(make):
    yield (make(3, 5),)
