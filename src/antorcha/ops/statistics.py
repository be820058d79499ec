"""Spread and size of data: var, std, norms, histograms, covariance. One record per op.

The variance is two passes over the operand (its mean, then the squared distances from it) and no
temporary of its size.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterator
from typing import Any as _Any

from antorcha.core import dtypes
from antorcha.core.shapes import normalize_dim
from antorcha.core.structs import replace
from antorcha.errors import ArgumentError, DtypeError, MissingFeature, ShapeError
from antorcha.lang import expr as E
from antorcha.ops.extrema import NONE
from antorcha.ops.kinds.params import to_real
from antorcha.ops.kinds.pointwise import pointwise
from antorcha.ops.kinds.record import Op, T, composite
from antorcha.ops.kinds.reduction import ElementKind, Folding, reduction
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.types import (
    Any,
    Bool,
    Dim,
    Dims,
    Dtype,
    Float,
    Int,
    Number,
    OptTensor,
    StaticNumber,
    Tensor,
)
from antorcha.ops.reduce import beside, count_of
from antorcha.runtime.tensor import Tensor as TensorType


# ------------------------------------------------------------------------------------ var and std
def old_spread(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """PyTorch's old forms of var and its kin, ``var(x, unbiased)``."""
    if len(args) == 2 and type(args[-1]) is bool:
        input, unbiased = args
        args, kwargs = (input,), {**kwargs, "unbiased": unbiased}
    if "correction" in kwargs and "unbiased" in kwargs:
        raise ArgumentError(f"{op.name}: give correction or unbiased, not both")
    return args, kwargs


def correction_of(unbiased: bool | None, correction: Any) -> float:
    """How much less than the count the squares are divided by."""
    if unbiased is not None:
        return 1.0 if unbiased else 0.0
    return 1.0 if correction is None else float(to_real("var", "correction", correction))


def squares(input: ElementKind, correction: float, root: bool, give_mean: bool) -> Folding:
    """The fold of squared distances from the mean to a variance, or its root."""
    if input.dtype.kind not in "fc":
        raise DtypeError(
            "std and var only support floating point and complex dtypes, got {dtype}; cast "
            "first, e.g. {fix}",
            reason="needs float", op="var", dtype=input.dtype, fix="x.float()",
        )  # fmt: skip
    real = input.dtype.to_real()
    wide = dtypes.complex128 if input.dtype.kind == "c" else dtypes.float64

    def lift(x: E.Expr, mean: E.Expr, i: E.Expr) -> E.Expr:
        d = E.cast(x, wide) - E.cast(mean, wide)
        return d.real() * d.real() + d.imag() * d.imag() if d.dtype.kind == "c" else d * d

    def finish(total: E.Expr, n: E.Expr) -> E.Expr:
        found = total / E.maximum(E.cast(n, dtypes.float64) - correction, 0)
        return E.sqrt(found) if root else found

    return Folding(
        before=Folding(
            start=0, lift=lambda x, i: E.cast(x, wide), merge=lambda a, b: a + b,
            finish=lambda s, n: s / E.cast(n, wide), state=(wide,),
        ),
        start=0, lift=lift, merge=lambda a, b: a + b, finish=finish, state=(dtypes.float64,),
        outs=(real, None) if give_mean else (real,), give_before=give_mean,
        acc=dtypes.float32 if real.itemsize == 2 else input.dtype,
    )  # fmt: skip


def spread_gradient(
    g: Tensor, input: Tensor, dims: tuple[int, ...], keepdim: bool, correction: float,
    root: OptTensor = None,
) -> Tensor:  # fmt: skip
    """The gradient of a variance; with ``root``, of that standard deviation."""
    layout = input._layout
    count = count_of(layout, dims)
    scale = 2 / builtins.max(count - correction, 0) if count > correction else math.inf
    mean = T.mean(input, dims, True) if dims else input
    g = beside(g, layout, dims, keepdim)
    if root is None:
        return T.var_backward(g, input, mean, scale)
    return T.std_backward(g, input, mean, beside(root, layout, dims, keepdim), scale)


@pointwise(function=False, method=False)
def var_backward(g: Tensor, input: Tensor, mean: Tensor, scale: Number):
    """The gradient of a variance."""
    return g * scale * (input - mean)


@pointwise(function=False, method=False)
def std_backward(g: Tensor, input: Tensor, mean: Tensor, out: Tensor, scale: Number):
    """The gradient of a standard deviation; 0 where it is 0."""
    return E.where(out == 0, 0, g / (out * 2)) * scale * (input - mean)


def _gradient(
    g: Any, input: Tensor, dims: tuple[int, ...], keepdim: bool, correction: float,
    root: OptTensor = None,
) -> OptTensor:  # fmt: skip
    """The gradient of a measure of spread, given alone or with the mean."""
    of_spread, of_mean = g if isinstance(g, tuple) else (g, None)
    found = None
    if of_spread is not None:
        found = spread_gradient(of_spread, input, dims, keepdim, correction, root)
    if of_mean is not None:
        layout = input._layout
        share = T.expand(beside(of_mean, layout, dims, keepdim), layout.shape)
        share = share / builtins.max(count_of(layout, dims), 1)
        found = share if found is None else found + share
    return found


def _spread(name: str, root: bool, give_mean: bool, doc: str, **options: Any) -> Op:
    """The op of the variance, or of its ``root``, given alone or with the mean."""

    def fn(
        input: Tensor, dim: Dims = None, unbiased: Bool = None, keepdim: Bool = False, *,
        correction: StaticNumber = None,
    ) -> Folding:  # fmt: skip
        return squares(input, correction_of(unbiased, correction), root, give_mean)

    def of_variance(
        g: Any, input: TensorType, dims: tuple[int, ...], keepdim: bool, unbiased: bool | None,
        correction: StaticNumber,
    ) -> OptTensor:  # fmt: skip
        return _gradient(g, input, dims, keepdim, correction_of(unbiased, correction))

    def of_root(
        g: Any, input: TensorType, out0: TensorType, dims: tuple[int, ...], keepdim: bool,
        unbiased: bool | None, correction: StaticNumber,
    ) -> OptTensor:  # fmt: skip
        return _gradient(g, input, dims, keepdim, correction_of(unbiased, correction), out0)

    fn.__doc__ = doc
    op = reduction(name=name, rewrite=old_spread, **options)(fn)
    op.derivative(of_root if root else of_variance)
    return op


var = _spread(
    "var", False, False,
    """The variance of all elements, or along ``dim``.

    The sum of squared distances from the mean is divided by ``n - correction`` (1 by default;
    ``unbiased=False`` means 0).

    >>> torch.var(torch.tensor([[1., 2., 3.], [2., 4., 6.]]), dim=1)
    tensor([1., 4.])
    """,
)  # fmt: skip
std = _spread(
    "std", True, False,
    """The standard deviation of all elements, or along ``dim``: the root of ``var``.

    >>> torch.std(torch.tensor([[1., 2., 3.], [2., 4., 6.]]), dim=1)
    tensor([1., 2.])
    """,
)  # fmt: skip
var_mean = _spread(
    "var_mean", False, True,
    """The variance and the mean, as (var, mean).

    >>> torch.var_mean(torch.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """,
    method=False, out=False,
)  # fmt: skip
std_mean = _spread(
    "std_mean", True, True,
    """The standard deviation and the mean, as (std, mean).

    >>> torch.std_mean(torch.tensor([1., 2., 3.]))
    (tensor(1.), tensor(2.))
    """,
    method=False, out=False,
)  # fmt: skip


def _spread_samples(make: Callable[..., Tensor]) -> Iterator[Any]:
    yield (make(3, 4),)
    yield make(3, 4), 1
    yield (make(3, 4), (0, 1)), {"keepdim": True}
    yield (make(2, 3, 4), (0, 2)), {"correction": 0}
    yield (make(3, 4), 0), {"unbiased": False}


def _spread_errors(make: Callable[..., Tensor]) -> Iterator[Any]:
    yield (make(3).long(),), {}, RuntimeError, "only support floating point"


for _op in (var, std, var_mean, std_mean):
    _op.samples(_spread_samples)
    _op.errors(_spread_errors)


# ----------------------------------------------------------------------------------------- norms
def norm_fold(real: dtypes.dtype, ord: float) -> Folding:
    """The fold to a vector norm, over magnitudes in the real dtype."""
    state = dtypes.float32 if real.itemsize == 2 else real

    def magnitude(x: Tensor) -> Tensor:
        return E.cast(E.abs(x), state)

    if ord == math.inf or ord == -math.inf:
        least = ord < 0
        return Folding(
            start=math.inf if least else 0.0, lift=lambda x, i: magnitude(x),
            merge=E.minimum if least else E.maximum, state=(state,), outs=(real,),
            empty=NONE,
        )  # fmt: skip
    if ord == 0:
        return Folding(
            start=0, lift=lambda x, i: E.cast(x != 0, state), merge=lambda a, b: a + b,
            state=(state,), outs=(real,),
        )  # fmt: skip
    if ord == 1:
        return Folding(
            start=0, lift=lambda x, i: magnitude(x), merge=lambda a, b: a + b, state=(state,),
            outs=(real,),
        )  # fmt: skip
    if ord == 2:
        return Folding(
            start=0, merge=lambda a, b: a + b, finish=lambda s, n: E.sqrt(s), state=(state,),
            lift=lambda x, i: x * x if x.dtype.kind != "c" else (
                x.real() * x.real() + x.imag() * x.imag()
            ), outs=(real,),
        )  # fmt: skip
    return Folding(
        start=0, lift=lambda x, i: magnitude(x) ** ord, merge=lambda a, b: a + b,
        finish=lambda s, n: E.cast(s, dtypes.float64) ** (1 / ord), state=(state,), outs=(real,),
    )  # fmt: skip


@reduction(name="linalg_vector_norm", namespace="linalg")
def vector_norm(
    input: Tensor,
    ord: Float = 2.0,
    dim: Dims = None,
    keepdim: Bool = False,
    *,
    dtype: Dtype = None,
):
    """The ``ord``-norm of the elements along ``dim`` (all, by default), seen as one vector.

    ``sum(abs(x) ** ord) ** (1 / ord)``; ``inf`` and ``-inf`` give the greatest and the least
    magnitude, 0 the count of what is not zero. The result is real.

    >>> torch.linalg.vector_norm(torch.tensor([3., 4.]))
    tensor(5.)
    """
    chosen = dtype or input.dtype
    if input.dtype.kind not in "fc":
        raise DtypeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            "{dtype}; cast first, e.g. {fix}",
            reason="needs float", op="linalg.vector_norm", dtype=input.dtype, fix="x.float()",
        )  # fmt: skip
    half = chosen.name in ("float16", "bfloat16")
    return replace(norm_fold(chosen.to_real(), ord), acc=dtypes.float32 if half else chosen)


@vector_norm.derivative
def _(g, input, out, ord, dims, keepdim):
    if ord == 0:  # a count
        return None
    layout = input._layout
    g, out = beside(g, layout, dims, keepdim), beside(out, layout, dims, keepdim)
    if ord in (math.inf, -math.inf):
        size = T.abs(input)
        return T.norm_extreme_backward(g, input, size, out, T.count_equal(size, out, dims, True))
    return T.norm_backward(g, input, out, ord)


@vector_norm.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1, 1
    yield make(3, 4), 3.0, (0, 1), True
    yield make(3, 4), math.inf, 0
    yield make(3, 4), -math.inf, 1
    yield make(3, 4), 0, 1


@pointwise(function=False, method=False)
def norm_backward(g: Tensor, input: Tensor, out: Tensor, ord: Float):
    """The gradient of a vector norm; 0 where the norm is 0."""
    if ord == 0:
        return g * 0
    if ord == 1:
        return g * E.sgn(input)
    if ord == 2:
        return E.where(out == 0, 0, g * (input / out))
    size = E.abs(input)
    if ord < 2:
        part = E.where(input == 0, 0, E.sgn(input) * size ** (ord - 1))
    else:
        part = input * size ** (ord - 2)
    return part * E.where(out == 0, 0, g / out ** (ord - 1))


@pointwise(function=False, method=False)
def norm_extreme_backward(g: Tensor, input: Tensor, size: Tensor, out: Tensor, count: Tensor):
    """The gradient of an inf norm: shared evenly by the elements of that magnitude."""
    equal = (size == out) | (E.isnan(size) & E.isnan(out))
    return E.where(equal, g * E.sgn(input) / count, 0)


@composite(out=False)
def norm(
    input: Tensor, p: Any = "fro", dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None
):
    """The ``p``-norm of the elements, of all or along ``dim``; see ``linalg.vector_norm``.

    ``p="fro"`` is the 2-norm, ``p="nuc"`` the sum of a matrix's singular values.

    >>> torch.norm(torch.tensor([3., 4.]))
    tensor(5.)
    """
    if p == "nuc":
        found = T.linalg_matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim)
        return found if dtype is None else T.to_dtype(found, dtype)
    if isinstance(p, str) and p != "fro":
        raise ShapeError(f"norm: p must be a number, 'fro' or 'nuc', not {p!r}")
    order = 2.0 if p == "fro" or p is None else float(p)
    return T.linalg_vector_norm(input, order, dim, keepdim, dtype=dtype)


@norm.samples
def _(make):
    yield (make(3, 4),)
    yield make(3, 4), 1, 1
    yield make(3, 4), "fro", (0, 1), True


@composite(out=False)
def dist(input: Tensor, other: Tensor, p: Float = 2.0):
    """The ``p``-norm of ``input - other``.

    >>> torch.dist(torch.tensor([1., 5.]), torch.tensor([4., 1.]))
    tensor(5.)
    """
    return T.linalg_vector_norm(input - other, p)


@dist.samples
def _(make):
    yield make(3, 4), make(3, 4)
    yield make(3, 4), make(4), 1


@composite()
def renorm(input: Tensor, p: StaticNumber, dim: Dim, maxnorm: StaticNumber):
    """``input`` whose slices along ``dim`` are scaled down to the ``p``-norm ``maxnorm`` where it
    is greater.

    >>> torch.renorm(torch.tensor([[3., 4.], [0., 1.]]), 2, 0, 1.)
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]])
    """
    layout = input._layout
    if isinstance(p, complex) or isinstance(maxnorm, complex):
        raise ShapeError("renorm: p must be real-valued, and so must maxnorm")
    if p <= 0:
        raise ShapeError(f"renorm: non-positive-norm not supported, got p={p}")
    if maxnorm < 0:
        raise ShapeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if layout.ndim < 2:
        raise ShapeError(f"renorm: input needs at least 2 dimensions, got {layout.ndim} dimensions")
    d = normalize_dim(dim, layout.ndim, op="renorm")
    others = tuple([k for k in range(layout.ndim) if k != d])
    input = T.contiguous(input)
    size = T.linalg_vector_norm(input, p, others, True)
    return input * T.where(size > maxnorm, T.reciprocal(size + 1e-7) * maxnorm, 1)


@renorm.samples
def _(make):
    yield make(3, 4), 2, 0, 1.0
    yield make(3, 4), 1, -1, 2.0
    yield (make(3), 2, 0, 1.0), {}, RuntimeError, "at least 2 dimensions"


# ------------------------------------------------------------------------------------- histograms
@pointwise("own", function=False, method=False, out=False)
def part_of_range(input: Tensor, low: Number, high: Number, parts: Number):
    """Which of so many equal parts of ``low``..``high`` a number is in; ``parts``: in none."""
    x, none = E.cast(input, dtypes.float64), E.cast(parts, dtypes.int64)
    inside = (x >= low) & (x <= high)
    place = E.where(inside, (x - low) / (high - low) * parts, 0.0)
    return E.where(inside, E.minimum(E.cast(place, dtypes.int64), none - 1), none)


part_of_range.gives_constants()


@composite()
def histc(input: Tensor, bins: Int = 100, min: StaticNumber = 0, max: StaticNumber = 0):
    """How many elements fall into each of ``bins`` equal parts of ``min``..``max`` (by default the
    extremes of the data); what lies outside is not counted.

    >>> torch.histc(torch.tensor([1., 2., 1.]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    layout = input._layout
    if layout.dtype.kind != "f":
        raise MissingFeature(
            'histc: "histogram_cpu" not implemented for {0.dtype}', reason="needs float",
            op="histc", operands=(layout,),
        )  # fmt: skip
    if bins <= 0:
        raise ShapeError("histc: bins must be > 0")
    min, max = to_real("histc", "min", min), to_real("histc", "max", max)
    if max < min:
        raise ShapeError(f"histc: max must be larger than min, got {min} and {max}")
    if layout.device.type == "meta":
        return T.full_layout((bins,), 0, layout.dtype, layout.device)
    x = T.reshape(input.detach(), (-1,))
    low, high = float(min), float(max)
    if low == high and layout.numel:
        low, high = float(T.amin(x).item()), float(T.amax(x).item())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ShapeError(f"histc: range of [{low}, {high}] is not finite")
    if low == high:
        low, high = low - 1, high + 1
    counts = T.counts_of(T.part_of_range(x, low, high, bins), None, bins + 1)
    return T.to_dtype(T.narrow(counts, 0, 0, bins), layout.dtype)


@histc.samples
def _(make):
    yield make(20), 5, -1, 1


# ------------------------------------------------------------------------------------- covariance
@composite(out=False)
def cov(
    input: Tensor, *, correction: Int = 1, fweights: OptTensor = None, aweights: OptTensor = None
):
    """The covariance matrix of variables (rows) from their observations (columns).

    ``fweights`` (integers) says how often each observation counts, ``aweights`` how much.

    >>> torch.cov(torch.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    layout = input._layout
    if layout.ndim > 2:
        raise ShapeError(
            f"cov(): expected input to have two or fewer dimensions, got {layout.ndim}"
        )
    if layout.dtype.kind == "b":
        raise DtypeError("cov(): bool dtype is not supported for input; cast it first.")
    _check_cov_weights(input, fweights, aweights)
    rows = T.view(input, (1, -1)) if layout.ndim < 2 else input
    if layout.dtype.kind in "ui":
        rows = T.to_dtype(rows, dtypes.get_default_dtype())
    count = rows._layout.shape[1]
    weights = None
    for each in (fweights, aweights):
        if each is not None:
            weights = each if weights is None else weights * each
    total = count if weights is None else T.sum(weights)
    mean = T.sum(rows if weights is None else rows * weights, 1, True) / total
    if correction and weights is not None and aweights is not None:
        norm_by = total - correction * T.sum(weights * aweights) / total
    else:
        norm_by = total - correction
    norm_by = T.clamp(norm_by, 0) if weights is not None else builtins.max(norm_by, 0)
    centred = rows - mean
    other = centred if weights is None else centred * weights
    other = T.conj(other) if rows._layout.dtype.kind == "c" else other
    return T.squeeze(T.true_divide(T.mm(centred, T.t(other)), norm_by))


def _check_cov_weights(input: _Any, fweights: _Any, aweights: _Any) -> None:
    """Refuses weights that are not one number at least 0 for each observation."""
    count = input._layout.shape[-1] if input._layout.ndim else 1
    for name, each, kinds in (("fweights", fweights, "ui"), ("aweights", aweights, "f")):
        if each is None:
            continue
        layout = each._layout
        if layout.ndim > 1:
            raise ShapeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
                f"{layout.ndim} dimensions"
            )
        if layout.dtype.kind not in kinds:
            want = "integral" if kinds == "ui" else "floating point"
            raise DtypeError(
                f"cov(): expected {name} to have {want} dtype but got {name} with {layout.dtype}"
            )
        if layout.numel != count:
            raise ShapeError(
                f"cov(): expected {name} to have the same numel as there are observations in the "
                f"input but got {layout.numel} != {count}"
            )
        if layout.numel and T.min(each).item() < 0:
            raise ShapeError(f"cov(): {name} cannot be negative")


@cov.samples
def _(make):
    yield (make(3, 5),)
    yield (make(5),), {"correction": 0}


@composite(out=False, samples=of_shapes((3, 5)))
def corrcoef(input: Tensor):
    """The matrix of Pearson correlation coefficients of variables (rows), within -1..1.

    >>> torch.corrcoef(torch.tensor([[0., 1., 2.], [2., 1., 0.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    found = T.cov(input)
    if found._layout.ndim == 0:
        return found / found
    variances = T.diagonal(found)
    size = T.sqrt(T.real(variances) if found._layout.dtype.kind == "c" else variances)
    found = found / T.unsqueeze(size, -1) / T.unsqueeze(size, 0)
    if found._layout.dtype.kind == "c":
        return T.complex(T.clamp(T.real(found), -1, 1), T.clamp(T.imag(found), -1, 1))
    return T.clamp(found, -1, 1)
