"""Running sums, products and extrema along a dim, and their opposite, differences.

Each is a Scan: how elements join the running state, traced into expressions. The gradient of a sum
from the start is one from the end (``reverse``), those of products are linear recurrences: no
flipped copies, and nothing divided.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.core.lazy import np
from antorcha.core.shapes import normalize_dim
from antorcha.errors import DtypeError, MissingFeature, OutOfRange, ShapeError
from antorcha.lang import expr as E
from antorcha.lang.kernels import Host, Scan
from antorcha.ops.extrema import check_ordered
from antorcha.ops.kinds import return_types
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.types import Bool, Dim, Dtype, Int, OptTensor, StaticNumber, Tensor
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType


def scan(
    dim: int,
    types: Sequence[dtypes.dtype],
    lift: Callable[..., Any],
    merge: Callable[..., Any],
    start: Sequence[float],
    states: Sequence[dtypes.dtype],
    finish: Callable[..., Any] | None = None,
    reverse: bool = False,
    run: int = 0,
) -> Scan:
    """A Scan of plain functions: ``lift(x.., position)``, ``merge(a.., b..)``, ``finish(a..)``.

    ``types`` are the operands' dtypes, ``states`` those of the state's values.
    """
    ins = [E.input_(k, t) for k, t in enumerate([*types, dtypes.int64])]
    both = [E.input_(k, t) for k, t in enumerate([*states, *states])]

    def typed(values: Any) -> tuple[E.Expr, ...]:
        values = values if isinstance(values, tuple) else (values,)
        return E.simplify_all([
            E.cast(v if isinstance(v, E.Expr) else E.const(v, t), t)
            for v, t in zip(values, states, strict=True)
        ])  # fmt: skip

    state = both[: len(states)]
    found = finish(*state) if finish is not None else tuple(state)
    results = E.simplify_all(found if isinstance(found, tuple) else (found,))
    return Scan(dim, tuple(start), typed(lift(*ins)), typed(merge(*both)), results, reverse, run)


def wide_dtype(dtype: dtypes.dtype) -> dtypes.dtype:
    """The dtype to accumulate in: floats in double and halves in float, as PyTorch does."""
    if dtype.kind == "f":
        return dtypes.float32 if dtype.itemsize == 2 else dtypes.float64
    return dtypes.complex128 if dtype.kind == "c" else dtypes.int64


def along(array: Any, d: int, reverse: bool, accumulate: Callable[..., Any]) -> Any:
    """``accumulate(array, axis)`` in NumPy, from the end when ``reverse``: for complex numbers."""
    array = array.astype(np.complex128)
    if not array.ndim:
        return accumulate(array.reshape(1), 0).reshape(())
    return np.flip(accumulate(np.flip(array, d), d), d) if reverse else accumulate(array, d)


def sum_dtype(dtype: dtypes.dtype, asked: dtypes.dtype | None) -> dtypes.dtype:
    return asked or (dtypes.int64 if dtype.kind in "bui" else dtype)


# ------------------------------------------------------------------------------- cumsum, cumprod
def _sums(input: Layout, dim: int, dtype: dtypes.dtype, reverse: bool) -> Planned:
    d = normalize_dim(dim, input.ndim, op="cumsum")
    acc = wide_dtype(dtype)
    what = scan(
        d, [input.dtype], lambda x, i: E.cast(E.cast(x, dtype), acc), lambda a, b: a + b,
        (0,), (acc,), reverse=reverse,
    )  # fmt: skip
    return Planned(what, [(input.shape, dtype)])


@kernel(function=False, method=False, out=False, node="cumsum")
def running_sum(input: Tensor, dim: Dim, dtype: Dtype, reverse: Bool):
    """The running sums along a dim, from the start or from the end."""
    return _sums(input, dim, dtype, reverse)


running_sum.derivative(lambda g, dim, reverse: T.running_sum(g, dim, g._layout.dtype, not reverse))


@kernel(inplace=True, out_decides_dtype=True)
def cumsum(input: Tensor, dim: Dim, *, dtype: Dtype = None):
    """The running sum along ``dim``: ``y_i = x_1 + ... + x_i``; integers give int64.

    >>> torch.cumsum(torch.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])
    """
    return _sums(input, dim, sum_dtype(input.dtype, dtype), False)


cumsum.derivative(lambda g, dim: T.running_sum(g, dim, g._layout.dtype, True))


@cumsum.samples
def _(make):
    yield make(3, 4), 0
    yield make(3, 4), -1
    yield make(), 0
    yield make(2, 19, 3), 1
    yield make(2, 19).t(), -2
    yield make(0, 3), 0
    yield make(3, 0), 0
    yield (make(3, 21), -1), {"dtype": dtypes.float64}
    yield make.ints((2, 5), 9), 1
    yield make.ints((2, 5), 9, dtype=dtypes.uint8), 0
    yield make.bools((3, 5)), 1
    yield (make(3), 1), {}, IndexError, "out of range"


@kernel(inplace=True, out_decides_dtype=True)
def cumprod(input: Tensor, dim: Dim, *, dtype: Dtype = None):
    """The running product along ``dim``; integers give int64.

    >>> torch.cumprod(torch.tensor([1, 2, 3]), 0)
    tensor([1, 2, 6])
    """
    d = normalize_dim(dim, input.ndim, op="cumprod")
    dtype = sum_dtype(input.dtype, dtype)
    acc = wide_dtype(dtype)
    # What comes after a zero may overflow by itself, and 0 * inf is not 0: in order, but for
    # single floats, of which no 8 overflow in double.
    run = 0 if dtype.kind in "bui" else 8 if acc.itemsize > dtype.itemsize > 2 else 1
    what = scan(
        d, [input.dtype], lambda x, i: E.cast(E.cast(x, dtype), acc), lambda a, b: a * b,
        (1,), (acc,), run=run,
    )  # fmt: skip
    return Planned(what, [(input.shape, dtype)])


@cumprod.derivative
def _(g, input, dim):
    # grad_i = (product of all before i) * r_i,  r_i = g_i + x_{i+1} r_{i+1}: nothing is divided,
    # so zeros need no care
    layout = input._layout
    if not layout.ndim or not layout.numel:
        return g
    if layout.dtype is not g._layout.dtype:
        g = T.to_dtype(g, layout.dtype)
    factor = T.conj(input) if layout.dtype.kind == "c" else input
    return T.exclusive_cumprod(factor, dim, False) * T.recurrence(g, factor, dim, True)


@cumprod.samples
def _(make):
    yield make(3, 4), 0
    yield make(3, 4), -1
    yield make(), 0
    yield make(2, 9, 3), 1
    yield make(2, 9).t(), -2
    yield make(0, 3), 0
    yield (make(3, 9), -1), {"dtype": dtypes.float64}
    yield make.ints((2, 5), 9), 1
    yield make.ints((2, 5), 9, dtype=dtypes.int8), 0
    yield make.bools((3, 5)), 1


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
    products = T.cumprod(T.narrow(input, d, 0, n - 1), d, dtype=input._layout.dtype)
    return T.cat((ones, products), d)


@kernel(function=False, method=False, out=False)
def recurrence(input: Tensor, factor: Tensor, dim: Dim, reverse: Bool):
    """``y_i = x_i + a_i y_{i-1}``; in reverse ``y_i = x_i + a_{i+1} y_{i+1}``. ``a_0`` is not read.

    The gradients of running products are these, and a recurrence's are recurrences again.
    """
    d = normalize_dim(dim, input.ndim)
    acc = wide_dtype(input.dtype)

    # the state: the latest factor, and y
    def lift(x: E.Expr, a: E.Expr, i: E.Expr) -> tuple[E.Expr, E.Expr]:
        a = E.cast(a, acc)
        return (a if reverse else E.where(i == 0, 0.0, a)), E.cast(x, acc)

    def merge(a: E.Expr, y: E.Expr, later_a: E.Expr, x: E.Expr) -> tuple[E.Expr, E.Expr]:
        return later_a, x + (a if reverse else later_a) * y

    what = scan(
        d, [input.dtype, factor.dtype], lift, merge, (0, 0), (acc, acc), lambda a, y: y,
        reverse=reverse, run=1,
    )  # fmt: skip
    return Planned(what, [(input.shape, input.dtype)])


@recurrence.derivative
def _(g, factor, out, dim, reverse):
    if factor._layout.dtype.kind == "c":
        factor, out = T.conj(factor), T.conj(out)
    of_x = T.recurrence(g, factor, dim, not reverse)
    return of_x, before(of_x, dim) * out if reverse else of_x * before(out, dim)


def before(x: Tensor, dim: int) -> Tensor:
    """The element before each one along a dim; 0 before the first."""
    d = normalize_dim(dim, x._layout.ndim)
    n = x._layout.shape[d]
    first = T.zeros_like(T.narrow(x, d, 0, 1).detach())
    return T.cat((first, T.narrow(x, d, 0, n - 1)), d)


# -------------------------------------------------------------------------------- cummax, cummin
def _running_extreme(op: str, input: Layout, dim: int, sign: int) -> Planned:
    """``sign``: 1 for the greatest, -1 for the least."""
    check_ordered(op, input)
    d = normalize_dim(dim, input.ndim, op=op)
    dtype = input.dtype
    value = {"b": dtypes.uint8, "f": wide_dtype(dtype)}.get(dtype.kind, dtype)
    if dtype.name == "float32":
        value = dtype
    if value.kind == "f":
        start = -sign * builtins.float("inf")
    else:
        info = dtypes.iinfo(value)
        start = info.min if sign > 0 else info.max

    def merge(a: E.Expr, i: E.Expr, b: E.Expr, j: E.Expr) -> tuple[E.Expr, E.Expr]:
        """The later of equal values, and the latest NaN."""
        later = b >= a if sign > 0 else b <= a
        if value.kind == "f":
            later = E.isnan(b) | (~E.isnan(a) & later)
        return E.where(later, b, a), E.where(later, j, i)

    what = scan(d, [dtype], lambda x, i: (x, i), merge, (start, 0), (value, dtypes.int64))
    return Planned(what, [(input.shape, dtype), (input.shape, dtypes.int64)])


def _to_running(g: Any, input_layout: Layout, dim: int, out1: Tensor) -> OptTensor:
    value = g[0] if isinstance(g, tuple) else g
    if value is None or not input_layout.ndim:
        return value
    return T.put_along(value, out1, dim, input_layout.shape[dim])


@kernel(returns=return_types.cummax)
def cummax(input: Tensor, dim: Dim):
    """The running maximum along ``dim`` and the (last) index of each, as (values, indices).

    >>> torch.cummax(torch.tensor([1, 3, 2]), 0)
    torch.return_types.cummax(
    values=tensor([1, 3, 3]),
    indices=tensor([0, 1, 1]))
    """
    return _running_extreme("cummax", input, dim, 1)


@kernel(returns=return_types.cummin)
def cummin(input: Tensor, dim: Dim):
    """The running minimum along ``dim`` and the (last) index of each, as (values, indices).

    >>> torch.cummin(torch.tensor([3, 1, 2]), 0)
    torch.return_types.cummin(
    values=tensor([3, 1, 1]),
    indices=tensor([0, 1, 1]))
    """
    return _running_extreme("cummin", input, dim, -1)


cummax.derivative(_to_running)
cummin.derivative(_to_running)


@cummax.samples
@cummin.samples
def _(make):
    yield make(3, 4), 0
    yield make(3, 4), 1
    yield make(), -1
    yield make(2, 19, 3), -2
    yield make(2, 19).t(), 0
    yield make(2, 0), 1
    yield make.ints((3, 21), 4), 1
    yield make.bools((3, 5)), 0


# --------------------------------------------------------------------------------- logcumsumexp
@kernel()
def logcumsumexp(input: Tensor, dim: Dim):
    """The logarithm of the running sum of exponentials along ``dim``.

    >>> torch.logcumsumexp(torch.tensor([0., 0.]), 0)
    tensor([0.0000, 0.6931])
    """
    if input.dtype.kind not in "fc":
        raise MissingFeature.of_dtype("logcumsumexp", input.dtype)
    d = normalize_dim(dim, input.ndim, op="logcumsumexp")
    if input.dtype.kind == "c":
        logs = Host(lambda x: along(x, d, False, _complex_running_log))
        return Planned(logs, [(input.shape, input.dtype)])
    acc = wide_dtype(input.dtype)
    low = -700.0 if acc.itemsize == 8 else -87.0

    def merge(m: E.Expr, t: E.Expr, later_m: E.Expr, later_t: E.Expr) -> tuple[E.Expr, E.Expr]:
        """The sum is ``exp(m) * (1 + t)``: m the greatest so far, t what the others add to it."""
        gap = -E.abs(m - later_m)
        share = E.where(gap < low, 0.0, E.exp(E.maximum(gap, low)))  # no slow denormals
        share = E.where(m == later_m, 1.0, share)
        more = E.where(m >= later_m, t + (1 + later_t) * share, later_t + (1 + t) * share)
        return E.maximum(m, later_m), more

    what = scan(
        d, [input.dtype], lambda x, i: (E.cast(x, acc), 0.0), merge, (-np.inf, 0), (acc, acc),
        lambda m, t: m + E.log1p(t),
    )  # fmt: skip
    return Planned(what, [(input.shape, input.dtype)])


def _complex_running_log(x: np.ndarray[Any, Any], d: int) -> np.ndarray[Any, Any]:
    """The running log of the sum of exponentials: the number with the larger real part, plus what
    the other adds."""
    rows = np.moveaxis(np.array(x), d, 0)
    for k in range(1, len(rows)):
        larger = rows[k - 1].real >= rows[k].real
        top, low = np.where(larger, rows[k - 1 : k + 1], rows[k - 1 : k + 1][::-1])
        with np.errstate(all="ignore"):
            rows[k] = np.where(np.isneginf(top.real), top, top + np.log1p(np.exp(low - top)))
    return np.moveaxis(rows, 0, d)


@logcumsumexp.derivative
def _(g, input, out, dim):
    # grad_i = exp(x_i - y_i) s_i,  s_i = g_i + exp(y_i - y_{i+1}) s_{i+1}: no factor exceeds 1
    if not input._layout.ndim or not input._layout.numel:
        return g
    empty = T.eq(T.real(out), -np.inf)  # nothing but -inf so far: no share
    factor = T.exp(T.where(empty, 0.0, before(out, dim) - out))
    share = T.exp(T.where(empty, -np.inf, input - out))
    return T.conj(share) * T.recurrence(g, T.conj(factor), dim, True)


@logcumsumexp.samples
def _(make):
    yield make(3, 4), 0
    yield make(3, 4), 1
    yield make(), 0
    yield make(2, 19, 3), 1
    yield make(0, 3), 1


# ------------------------------------------------------------------------- differences, areas
@composite()
def diff(
    input: Tensor, n: Int = 1, dim: Dim = -1, prepend: OptTensor = None, append: OptTensor = None
):
    """The ``n``-th differences of neighbours along ``dim``: ``x[i + 1] - x[i]``.

    >>> torch.diff(torch.tensor([1, 3, 2]))
    tensor([ 2, -1])
    """
    if not input._layout.ndim:
        raise ShapeError("diff: diff expects input to be at least one-dimensional")
    if n < 0:
        raise ShapeError(f"diff: order must be non-negative but got {n}")
    d = normalize_dim(dim, input._layout.ndim, op="diff")
    if n == 0:
        return T.clone(input)  # as PyTorch: without what stands before and after
    parts = [each for each in (prepend, input, append) if each is not None]
    found = T.cat(parts, d) if len(parts) > 1 else input
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


def _steps(name: str, y: Tensor, x: OptTensor, dx: Any, dim: int) -> tuple[Tensor, Any, int]:
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


def _points(name: str, y: Tensor, x: Any, dx: Any, dim: int) -> tuple[OptTensor, Any]:
    """(x, dx) of a call that may give the spacing in the place of the points."""
    if y._layout.dtype.kind == "b":
        raise DtypeError(f"{name}: received a bool input for `y`, but bool is not supported")
    if not y._layout.ndim:
        raise OutOfRange(f"{name}: Dimension specified as {dim} but tensor has no dimensions")
    return (x, dx) if x is None or isinstance(x, TensorType) else (None, x)


def _area(
    name: str, y: Tensor, x: OptTensor, dx: Any, dim: int, combine: Callable[[Tensor, int], Tensor]
) -> Tensor:
    pairs, width, d = _steps(name, y, x, dx, dim)
    if x is None:
        return combine(pairs, d) * (width / 2)
    return combine(pairs * width, d) / 2.0


@composite(method=False, out=False, aliases=("trapz",))
def trapezoid(y: Tensor, x: OptTensor = None, *, dx: StaticNumber = None, dim: Dim = -1):
    """The area under ``y`` along ``dim`` by the trapezoidal rule, at ``x`` or with spacing ``dx``.

    >>> torch.trapezoid(torch.tensor([1., 5., 10.]))
    tensor(10.5000)
    """
    x, dx = _points("trapezoid", y, x, dx, dim)
    if x is None and y._layout.numel:
        d = normalize_dim(dim, y._layout.ndim, op="trapezoid")
        ends = T.select(y, d, 0) + T.select(y, d, -1)
        return (T.sum(y, d) - ends * 0.5) * (1 if dx is None else dx)
    return _area("trapezoid", y, x, dx, dim, lambda v, d: T.sum(v, d))


@composite(method=False, out=False, samples=of_shapes((3, 5)))
def cumulative_trapezoid(y: Tensor, x: OptTensor = None, *, dx: StaticNumber = None, dim: Dim = -1):
    """The running area under ``y`` along ``dim`` by the trapezoidal rule.

    >>> torch.cumulative_trapezoid(torch.tensor([1., 5., 10.]))
    tensor([ 3.0000, 10.5000])
    """
    x, dx = _points("cumulative_trapezoid", y, x, dx, dim)
    return _area("cumulative_trapezoid", y, x, dx, dim, lambda v, d: T.cumsum(v, d))


@trapezoid.samples
def _(make):
    yield (make(3, 5),)
    yield make(3, 5), make(5)
    yield (make(3, 5),), {"dx": 0.5, "dim": 0}
