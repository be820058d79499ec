"""Making tensors: filled, empty, ranges, identity. One record per op.

Every creation op takes PyTorch's ``dtype=``, ``layout=``, ``device=``, ``requires_grad=`` and
``pin_memory=``: ``creating`` adds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any as _Any

from antorcha.core import dtypes, modes
from antorcha.core.device import CPU, as_device, backend
from antorcha.core.hooks import hooks
from antorcha.core.shapes import contiguous_strides, is_symbol
from antorcha.errors import ArgumentError, DtypeError, ShapeError, ValueRangeError, warn
from antorcha.lang.kernels import Range, TrianglePlaces
from antorcha.ops.kinds.kernel import Planned, kernel
from antorcha.ops.kinds.operands import as_word, held
from antorcha.ops.kinds.params import parameters, to_real
from antorcha.ops.kinds.record import Composite, T, composite, sparse_create
from antorcha.ops.kinds.types import (
    Any,
    DeviceArg,
    Dtype,
    EndNumber,
    Float,
    Int,
    Ints,
    Shape,
    StaticNumber,
    Str,
    Tensor,
)
from antorcha.ops.memory import strides_of_format
from antorcha.runtime.call import tape as tapes
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor as TensorType
from antorcha.runtime.tensor import bare


def finish(tensor: TensorType, requires_grad: bool) -> TensorType:
    """Applies ``requires_grad=`` to a fresh tensor."""
    if requires_grad:
        if tensor._layout.dtype.kind not in "fc":
            raise DtypeError(
                "Only Tensors of floating point and complex dtype can require gradients, not "
                "{0.dtype}",
                reason="int grad", operands=(tensor._layout,),
            )  # fmt: skip
        tensor._rg = True
    if modes.busy and modes.state.word & modes.INFERENCE:
        hooks.mark_inference(tensor)
    return tensor


def memory_for(layout: L.Layout) -> _Any:
    """A storage for a tensor, on its device, which may lack the dtype."""
    where: _Any = backend(layout.device)
    if layout.device is not CPU and hasattr(where, "check_dtype"):
        where.check_dtype(layout.dtype)
    return where.allocate(layout.nbytes)


def unwritten(shape: _Any, dtype: _Any, device: _Any, strides: _Any = None) -> TensorType:
    """A tensor over fresh memory that holds anything, to which ops alone write: a tape says so."""
    layout = (
        L.contiguous(shape, dtype, device)
        if strides is None
        else (L.layout(shape, strides, dtype, device))
    )
    without: _Any = None  # what is only planned has no memory, and sizes that may be any
    planned = modes.busy and modes.state.word & modes.SYMBOLS
    result = bare(layout, without if planned else memory_for(layout))
    if modes.busy and tapes.current.tape is not None:
        tapes.current.tape.note_memory(result)
    return result


def number_dtype(value: _Any) -> dtypes.dtype:
    """The dtype of a tensor made from a Python number."""
    if isinstance(value, bool):
        return dtypes.bool_
    if isinstance(value, int):
        return dtypes.int64
    if isinstance(value, complex):
        return dtypes.get_default_complex_dtype()
    return dtypes.get_default_dtype()


def scalar_like(value: _Any, like: TensorType) -> TensorType:
    """A 0-dim tensor of a Python number, to stand where an op wants a tensor first."""
    layout = like._layout
    vectors, scalars = ([layout.dtype], []) if layout.ndim else ([], [layout.dtype])
    result = dtypes.result_type(vectors, scalars, [type(value)])
    return T.full_layout((), value, result, layout.device)  # type: ignore[no-any-return]


def check_format(layout: _Any) -> None:
    if layout is not None and str(layout) not in ("torch.strided", "strided"):
        raise NotImplementedError(
            f"layout={layout}: only torch.zeros and torch.empty make sparse tensors; "
            "others are made dense, and converted by .to_sparse()"
        )


def is_sparse_format(layout: _Any) -> bool:
    """Is another layout than ``torch.strided`` asked for?"""
    return layout is not None and str(layout).startswith("torch.sparse")


_KEYWORDS: dict[str, tuple[str, _Any]] = {  # name -> kind, default
    "generator": ("Any", None),
    "out": ("Any", None),
    "dtype": ("Dtype", None),
    "layout": ("Any", None),
    "device": ("DeviceArg", None),
    "requires_grad": ("Bool", False),
    "pin_memory": ("Bool", False),
    "memory_format": ("Str", "preserve"),
}
USUAL = "dtype layout device requires_grad pin_memory"
USUAL_LIKE = "dtype layout device requires_grad memory_format pin_memory"


def _taking(fn: _Any, own: _Any, keywords: str) -> _Any:
    """``fn`` as what a record of ``own`` calls: it gets ``own``'s arguments, and the keywords."""
    fn.parameters = [p for p in parameters(own) if not p[3]]
    defaults = own.__kwdefaults__ or {}
    for name in keywords.split():
        kind, default = _KEYWORDS[name]
        fn.parameters.append((name, kind, defaults.get(name, default), True))
    fn.__name__, fn.__doc__ = own.__name__, own.__doc__
    return fn


def creating(
    keywords: str = USUAL, sparse: bool = False, **options: _Any
) -> Callable[[Callable[..., TensorType]], Composite]:
    """Decorates what makes a tensor as the op that takes these keywords too, in this order.

    What is decorated names those that it wants: ``dtype`` is that asked for or None, ``device`` a
    Device. The others are seen to here. ``sparse``: may another layout than strided be asked for?
    """

    def decorate(make: Callable[..., TensorType]) -> Composite:
        wanted = [name for name, _, _, keyword_only in parameters(make) if keyword_only]

        def fn(*args: _Any, **how: _Any) -> TensorType:
            layout, requires_grad = how["layout"], how["requires_grad"]
            if sparse and is_sparse_format(layout):
                return sparse_create.without_elements(  # type: ignore[no-any-return]
                    args[0], how["dtype"], how["device"], layout, requires_grad
                )
            check_format(layout)
            how["device"] = as_device(how["device"])
            result = make(*args, **{name: how[name] for name in wanted})
            return finish(result.pin_memory() if how.get("pin_memory") else result, requires_grad)

        return Composite(_taking(fn, make, keywords), method=False, **options)

    return decorate


@creating()
def full(size: Shape, fill_value: StaticNumber, *, dtype: _Any, device: _Any):
    """A tensor of shape ``size`` filled with ``fill_value``, whose type gives the default dtype.

    >>> torch.full((2, 3), 3.5)
    tensor([[3.5000, 3.5000, 3.5000],
            [3.5000, 3.5000, 3.5000]])
    """
    chosen = dtype or number_dtype(fill_value)
    return T.full_layout(size, as_word(held("full", chosen, fill_value)), chosen, device)


@full.samples
def _(make):
    yield (2, 3), 2.5
    yield (0,), 1


@creating(sparse=True)
def zeros(size: Shape, *, dtype: _Any, device: _Any):
    """A tensor of zeros of shape ``size`` (given as a tuple or as loose numbers).

    >>> torch.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return T.full_layout(size, 0, dtype or dtypes.get_default_dtype(), device)


@creating()
def ones(size: Shape, *, dtype: _Any, device: _Any):
    """A tensor of ones of shape ``size``.

    >>> torch.ones(2)
    tensor([1., 1.])
    """
    return T.full_layout(size, 1, dtype or dtypes.get_default_dtype(), device)


@zeros.samples
@ones.samples
def _(make):
    yield ((2, 3),)


@creating(USUAL + " memory_format", sparse=True)
def empty(size: Shape, *, dtype: _Any, device: _Any, memory_format: Str = "contiguous"):
    """A tensor of shape ``size`` over memory as it is: its values are arbitrary until written.

    >>> torch.empty(2, 3).shape
    torch.Size([2, 3])
    """
    strides = None if memory_format == "contiguous" else strides_of_format(size, (), memory_format)
    return unwritten(size, dtype or dtypes.get_default_dtype(), device, strides)


@creating(out=False)
def empty_strided(size: Ints, stride: Ints, *, dtype: _Any, device: _Any):
    """A tensor of given shape and strides over memory as it is.

    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    if len(size) != len(stride):
        raise ShapeError(f"empty_strided: {len(size)} sizes and {len(stride)} strides")
    return unwritten(size, dtype or dtypes.get_default_dtype(), device, stride)


@creating(out=False)
def empty_permuted(size: Ints, physical_layout: Ints, *, dtype: _Any, device: _Any):
    """A tensor over memory as it is, whose dims lie there in the order ``physical_layout``, the
    outermost first.

    >>> torch.empty_permuted((2, 3, 5), (0, 2, 1)).stride()
    (15, 1, 3)
    """
    ndim = len(size)
    if len(physical_layout) != ndim:
        raise ShapeError(
            "empty_permuted: Number of dimensions in size does not match the length of the "
            f"physical_layout; i.e. len(size) = {ndim} is not equal to len(physical_layout) = "
            f"{len(physical_layout)}"
        )
    for k, d in enumerate(physical_layout):
        if not 0 <= d < ndim:
            raise ShapeError(
                f"empty_permuted: Dimension out of range (expected to be between 0 and {ndim - 1}, "
                f"but got {d} at index {k}). Negative dims are not supported."
            )
    if len({*physical_layout}) != ndim:
        raise ShapeError(f"empty_permuted: Duplicate dim not allowed: {physical_layout}")
    strides = [0] * ndim
    for d, stride in zip(
        physical_layout, contiguous_strides([size[d] for d in physical_layout]), strict=True
    ):
        strides[d] = stride
    return unwritten(size, dtype or dtypes.get_default_dtype(), device, tuple(strides))


def empty_as(input: TensorType, dtype: _Any, device: _Any, memory_format: str) -> TensorType:
    """A tensor over fresh memory: as another one where nothing else is asked for."""
    layout = input._layout
    strides = strides_of_format(layout.shape, layout.strides, memory_format)
    where = layout.device if device is None else as_device(device)
    return unwritten(layout.shape, dtype or layout.dtype, where, strides)


def _full_as(
    input: TensorType, value: _Any, dtype: _Any, device: _Any, memory_format: str
) -> TensorType:
    """A tensor full of one number: as another one where nothing else is asked for."""
    layout = input._layout
    strides = None
    if memory_format != "contiguous" and not (layout.contiguous and memory_format == "preserve"):
        strides = strides_of_format(layout.shape, layout.strides, memory_format)
    where = layout.device if device is None else as_device(device)
    chosen = dtype or layout.dtype
    return T.full_layout(  # type: ignore[no-any-return]
        layout.shape, as_word(held("full_like", chosen, value)), chosen, where, strides
    )


def like(keywords: str = USUAL_LIKE, **options: _Any) -> Callable[[Callable[..., _Any]], Composite]:
    """Decorates what gives the elements of a new tensor that is like ``input``: their value, a
    function that writes them, or None for any."""

    def decorate(elements: Callable[..., _Any]) -> Composite:
        wanted = [name for name, _, _, keyword_only in parameters(elements) if keyword_only]

        def fn(input: TensorType, *args: _Any, **how: _Any) -> TensorType:
            value = elements(input, *args, **{name: how[name] for name in wanted})
            kept = how["dtype"], how["device"], how["memory_format"]
            if value is None or callable(value):
                result = empty_as(input, *kept)
                if value is not None:
                    value(result)
            else:
                result = _full_as(input, value, *kept)
            return finish(result, how["requires_grad"])

        return Composite(_taking(fn, elements, keywords), method=False, out=False, **options)

    return decorate


@like()
def zeros_like(input: Tensor):
    """Zeros with the shape, dtype and device of ``input``.

    >>> torch.zeros_like(torch.ones(2))
    tensor([0., 0.])
    """
    return 0


@like()
def ones_like(input: Tensor):
    """Ones with the shape, dtype and device of ``input``.

    >>> torch.ones_like(torch.zeros(2))
    tensor([1., 1.])
    """
    return 1


@like()
def full_like(input: Tensor, fill_value: StaticNumber):
    """``fill_value`` everywhere, with the shape, dtype and device of ``input``.

    >>> torch.full_like(torch.zeros(2), 7)
    tensor([7., 7.])
    """
    return fill_value


@like()
def empty_like(input: Tensor):
    """Arbitrary values, with the shape, dtype and device of ``input``.

    >>> torch.empty_like(torch.zeros(2)).shape
    torch.Size([2])
    """
    return None


@kernel(function=False, method=False, out=False)
def arange_kernel(count: Int, start: StaticNumber, step: StaticNumber, dtype: Dtype,
                  device: DeviceArg = None):  # fmt: skip
    """``start + k * step`` for k = 0 .. count - 1."""
    return Planned(Range(start, step), [L.contiguous((count,), dtype, as_device(device))])


@creating(sizes=("start", "end"))
def arange(
    start: StaticNumber, end: StaticNumber = None, step: StaticNumber = 1, *, dtype: _Any,
    device: _Any,
):  # fmt: skip
    """The numbers from ``start`` (0 if left out) to before ``end``, ``step`` apart.

    Integers give int64, floats the default dtype.

    >>> torch.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    if end is None:
        start, end = 0, start
    start, end, step = [
        to_real("arange", name, each)
        for name, each in (("start", start), ("end", end), ("step", step))
    ]
    whole = all([isinstance(each, int) or is_symbol(each) for each in (start, end, step)])
    if step != step or (isinstance(step, int) and not -(1 << 63) <= step < 1 << 63):
        raise ArgumentError(f"arange: step must be a finite number, not {step}")
    if step == 0:
        raise ShapeError("arange: step must be nonzero")
    if not whole and not (math.isfinite(start) and math.isfinite(end)):
        raise ShapeError(f"arange: unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise ShapeError(
            f"arange: upper bound and lower bound inconsistent with step sign: {start}, {end}, "
            f"step {step}"
        )
    chosen = dtype or (dtypes.int64 if whole else dtypes.get_default_dtype())
    if chosen is dtypes.int64 and not whole:  # as PyTorch counts them: in whole numbers
        start, end, step, whole = int(start), int(end), int(step), True
        if step == 0:
            raise ValueRangeError("arange: step must be nonzero, but as an int64 it is 0")
    if whole:
        count = -((start - end) // step) if step > 0 else -((end - start) // -step)
        count = max(count, 0)
    else:
        count = max(math.ceil((end - start) / step), 0)
        if chosen.kind in "iu":
            start, step = int(start), int(step)
    return T.arange_kernel(count, start, step, chosen, device)


@arange.samples
def _(make):
    yield (5,)
    yield 1, 10, 3
    yield 1.0, 2.5, 0.5


@kernel(function=False, method=False, out=False)
def triangle_places(row: Int, col: Int, side: Str, offset: Int, dtype: Dtype = None,
                    device: DeviceArg = None):  # fmt: skip
    """What ``tril_indices`` and ``triu_indices`` run."""
    if row < 0 or col < 0:
        raise ShapeError(f"row and col must be non-negative, got {row} and {col}")
    result = dtype or dtypes.int64
    if result.name not in ("int32", "int64"):
        raise DtypeError(f"tril_indices/triu_indices: not implemented for {result}")
    count = _count_below(row, col, offset - (side == "upper"))
    count = count if side == "lower" else row * col - count
    out = L.contiguous((2, count), result, as_device(device))
    return Planned(TrianglePlaces(row, col, side, offset), [out])


def _count_below(row: int, col: int, offset: int) -> int:
    """How many elements a lower triangle has: the sum of r + offset + 1, within 0 and col."""
    ends = row + offset, row + offset - col, offset, offset - col
    a, b, c, d = [n * (n + 1) // 2 if n > 0 else 0 for n in ends]
    return a - b - c + d


@composite(method=False, out=False)
def tril_indices(
    row: Int, col: Int, offset: Int = 0, *, dtype: Dtype = None, device: DeviceArg = None,
    layout: Any = None,
):  # fmt: skip
    """Rows and columns of the elements of a lower triangle, in order: a (2, n) tensor.

    >>> torch.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return T.triangle_places(row, col, "lower", offset, dtype, device)


@composite(method=False, out=False)
def triu_indices(
    row: Int, col: Int, offset: Int = 0, *, dtype: Dtype = None, device: DeviceArg = None,
    layout: Any = None,
):  # fmt: skip
    """Rows and columns of the elements of an upper triangle, in order: a (2, n) tensor.

    >>> torch.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return T.triangle_places(row, col, "upper", offset, dtype, device)


@kernel(function=False, method=False, out=False)
def linspace_kernel(start: StaticNumber, end: StaticNumber, steps: Int, dtype: Dtype,
                    device: DeviceArg = None):  # fmt: skip
    """``steps`` evenly spaced numbers; the second half counted from the end, as PyTorch does."""
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    what = Range(start, step, end if steps > 1 else None)
    return Planned(what, [L.contiguous((steps,), dtype, as_device(device))])


@creating()
def linspace(start: EndNumber, end: EndNumber, steps: Int, *, dtype: _Any, device: _Any):
    """``steps`` numbers evenly spaced from ``start`` to ``end``, both included.

    >>> torch.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    if steps < 0:
        raise ShapeError("linspace: number of steps must be non-negative")
    chosen = dtype or dtypes.get_default_dtype()
    if chosen.kind in "iu":  # as PyTorch: the ends are whole numbers too
        start, end = int(start), int(end)
    return T.linspace_kernel(start, end, steps, chosen, device)


@linspace.samples
def _(make):
    yield 0, 1, 5
    yield -2.0, 3.0, 4


@creating()
def logspace(
    start: EndNumber, end: EndNumber, steps: Int, base: Float = 10.0, *, dtype: _Any, device: _Any
):  # fmt: skip
    """``base`` to the power of ``steps`` numbers evenly spaced from ``start`` to ``end``.

    >>> torch.logspace(0, 3, 4)
    tensor([   1.,   10.,  100., 1000.])
    """
    chosen = dtype or dtypes.get_default_dtype()
    exact = chosen if chosen.kind in "fc" and chosen.itemsize > 2 else dtypes.float64
    if chosen.kind in "iu":  # as PyTorch: the ends are whole numbers too
        start, end = int(start), int(end)
    powers = T.linspace(start, end, steps, dtype=exact, device=device)
    return T.to_dtype(T.pow(base, powers), chosen)


@logspace.samples
def _(make):
    yield 0, 3, 4
    yield (-1.0, 2.0, 5), {"base": 2.0}


@creating(sizes=("start", "end"), name="range")
def range_(
    start: StaticNumber, end: StaticNumber, step: StaticNumber = 1, *, dtype: _Any, device: _Any
):
    """The numbers from ``start`` to ``end`` itself, ``step`` apart. Deprecated: use ``arange``.

    >>> torch.range(1, 4)
    tensor([1., 2., 3., 4.])
    """
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end)."
    )
    start, end, step = [
        to_real("range", name, each)
        for name, each in (("start", start), ("end", end), ("step", step))
    ]
    if step == 0:
        raise ShapeError("range: step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise ShapeError(f"range: unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise ShapeError(
            f"range: upper bound and lower bound inconsistent with step sign: {start}, {end}, "
            f"step {step}"
        )
    chosen = dtype or dtypes.get_default_dtype()
    if chosen.kind in "iu":
        start, step = int(start), int(step)
    return T.arange_kernel(int((end - start) / step) + 1, start, step, chosen, device)


@range_.samples
def _(make):
    yield 1, 4
    yield 0.0, 1.0, 0.25


@creating()
def eye(n: Int, m: Int = None, *, dtype: _Any, device: _Any):
    """The identity matrix of ``n`` rows and ``m`` columns (``n`` if left out).

    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if n < 0 or (m is not None and m < 0):
        raise ShapeError(f"eye: n and m must be greater or equal to 0, got {n} and {m}")
    columns = n if m is None else m
    side = min(n, columns)
    ones = T.full_layout((side,), 1, dtype or dtypes.get_default_dtype(), device)
    square = T.diag_embed(ones)
    return T.constant_pad_nd(square, (0, columns - side, 0, n - side)) if columns != n else square


@eye.samples
def _(make):
    yield (3,)
    yield 2, 3
