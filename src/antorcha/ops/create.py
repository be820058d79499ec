"""Making tensors: filled, empty, ranges, identity. One record per op.

Every creation op takes PyTorch's ``dtype=``, ``layout=``, ``device=``, ``requires_grad=`` and
``pin_memory=``: ``creating`` adds them. The last is accepted and has nothing to do here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any as _Any

from antorcha import dtypes, modes
from antorcha.device import as_device, backend
from antorcha.errors import ArgumentError, DtypeError, ShapeError, ValueRangeError
from antorcha.lang.kernels import Host, Range
from antorcha.lazy import np
from antorcha.ops.kernel import Planned, kernel
from antorcha.ops.memory import strides_of_format
from antorcha.ops.operands import held
from antorcha.ops.params import parameters, to_real
from antorcha.ops.record import Composite, T, sparse_create
from antorcha.ops.types import (
    DeviceArg,
    Dtype,
    Int,
    Ints,
    Shape,
    StaticNumber,
    Str,
    Tensor,
)
from antorcha.runtime import layout as L
from antorcha.runtime.call import path
from antorcha.runtime.call import tape as tapes
from antorcha.runtime.tensor import Tensor as TensorType
from antorcha.runtime.tensor import bare
from antorcha.shapes import is_symbol


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
    if modes.state.word & modes.INFERENCE:
        path.mark_inference(tensor)
    return tensor


def unwritten(shape: _Any, dtype: _Any, device: _Any, strides: _Any = None) -> TensorType:
    """A tensor over fresh memory that holds anything, to which ops alone write: a tape says so."""
    lay = (
        L.contiguous(shape, dtype, device)
        if strides is None
        else (L.layout(shape, strides, dtype, device))
    )
    without: _Any = None  # what is only planned has no memory, and sizes that may be any
    planned = modes.busy and modes.state.word & modes.SYMBOLS
    made = bare(lay, without if planned else backend(device).allocate(lay.nbytes))
    if modes.busy and tapes.current.tape is not None:
        tapes.current.tape.note_memory(made)
    return made


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
    lay = like._layout
    made = dtypes.result_type([lay.dtype] if lay.ndim else [], [] if lay.ndim else [lay.dtype],
                              [type(value)])  # fmt: skip
    return T.full_layout((), value, made, lay.device)  # type: ignore[no-any-return]


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
    keywords: str = USUAL, kind: type[Composite] = Composite, sparse: bool = False, **options: _Any
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
            return finish(make(*args, **{name: how[name] for name in wanted}), requires_grad)

        return kind(_taking(fn, make, keywords), method=False, **options)

    return decorate


@creating()
def full(size: Shape, fill_value: StaticNumber, *, dtype: _Any, device: _Any):
    """A tensor of shape ``size`` filled with ``fill_value``, whose type gives the default dtype.

    >>> torch.full((2, 3), 3.5)
    tensor([[3.5000, 3.5000, 3.5000],
            [3.5000, 3.5000, 3.5000]])
    """
    chosen = dtype or number_dtype(fill_value)
    return T.full_layout(size, held("full", chosen, fill_value), chosen, device)


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


def empty_as(input: TensorType, dtype: _Any, device: _Any, memory_format: str) -> TensorType:
    """A tensor over fresh memory: as another one where nothing else is asked for."""
    lay = input._layout
    strides = strides_of_format(lay.shape, lay.strides, memory_format)
    where = lay.device if device is None else as_device(device)
    return unwritten(lay.shape, dtype or lay.dtype, where, strides)


def _full_as(
    input: TensorType, value: _Any, dtype: _Any, device: _Any, memory_format: str
) -> TensorType:
    """A tensor full of one number: as another one where nothing else is asked for."""
    lay = input._layout
    strides = None
    if memory_format != "contiguous" and not (lay.contiguous and memory_format == "preserve"):
        strides = strides_of_format(lay.shape, lay.strides, memory_format)
    where = lay.device if device is None else as_device(device)
    chosen = dtype or lay.dtype
    return T.full_layout(  # type: ignore[no-any-return]
        lay.shape, held("full_like", chosen, value), chosen, where, strides
    )


def like(
    keywords: str = USUAL_LIKE, kind: type[Composite] = Composite
) -> Callable[[Callable[..., _Any]], Composite]:
    """Decorates what gives the elements of a new tensor that is like ``input``: their value, a
    function that writes them, or None for any."""

    def decorate(elements: Callable[..., _Any]) -> Composite:
        wanted = [name for name, _, _, keyword_only in parameters(elements) if keyword_only]

        def fn(input: TensorType, *args: _Any, **how: _Any) -> TensorType:
            value = elements(input, *args, **{name: how[name] for name in wanted})
            kept = how["dtype"], how["device"], how["memory_format"]
            if value is None or callable(value):
                made = empty_as(input, *kept)
                if value is not None:
                    value(made)
            else:
                made = _full_as(input, value, *kept)
            return finish(made, how["requires_grad"])

        return kind(_taking(fn, elements, keywords), method=False, out=False)

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
def linspace_kernel(start: StaticNumber, end: StaticNumber, steps: Int, dtype: Dtype,
                    device: DeviceArg = None):  # fmt: skip
    """``steps`` evenly spaced numbers; the second half counted from the end, as PyTorch does."""
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    what = Range(start, step, end if steps > 1 else None)
    return Planned(what, [L.contiguous((steps,), dtype, device)])


@creating()
def linspace(start: StaticNumber, end: StaticNumber, steps: Int, *, dtype: _Any, device: _Any):
    """``steps`` numbers evenly spaced from ``start`` to ``end``, both included.

    >>> torch.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    for each in (start, end):
        if isinstance(each, TensorType) and each._layout.ndim:
            raise ShapeError(
                "linspace only supports 0-dimensional start and end tensors, but got one of shape "
                f"{tuple(each._layout.shape)}"
            )
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


@kernel(function=False, method=False, out=False)
def eye_kernel(n: Int, m: Int, dtype: Dtype, device: DeviceArg = None):
    """Ones on the diagonal, zeros elsewhere."""
    return Planned(Host(lambda: np.eye(n, m)), [L.contiguous((n, m), dtype, device)])


@creating()
def eye(n: Int, m: Int = None, *, dtype: _Any, device: _Any):
    """The identity matrix of ``n`` rows and ``m`` columns (``n`` if left out).

    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if n < 0 or (m is not None and m < 0):
        raise ShapeError(f"eye: n and m must be greater or equal to 0, got {n} and {m}")
    return T.eye_kernel(n, n if m is None else m, dtype or dtypes.get_default_dtype(), device)


@eye.samples
def _(make):
    yield (3,)
    yield 2, 3
