"""Reductions: the record's function says how elements fold into a state, and states into one.

    @reduction("sum")
    def sum(input: Tensor, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None):
        \"\"\"The sum of the elements ...\"\"\"
        return Fold(start=0, merge=lambda a, b: a + b)

``lift(x, i)`` makes the state of one element (default: itself) from its value and its position in
the reduced dims; ``merge`` joins two states; ``finish(state.., n)`` gives the results. A state of
several values is a tuple. Type rules: ``sum`` (integers and bools to int64), ``float`` (floats
only), ``same``, ``bool``. Half precision is accumulated in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antorcha import dtypes
from antorcha.device import backend
from antorcha.errors import DtypeError, ShapeError
from antorcha.lang import expr as E
from antorcha.lang.kernels import Reduce
from antorcha.ops.record import Op
from antorcha.runtime import layout as L
from antorcha.runtime.call.plan import FRESH, MANY, Plan, make
from antorcha.runtime.tensor import Tensor
from antorcha.shapes import dense_strides, normalize_dims

if TYPE_CHECKING:
    from antorcha.dtypes import dtype as DType
    from antorcha.runtime.layout import Layout


@dataclass
class Fold:
    """How to reduce: see the module's docstring."""

    start: Any
    merge: Callable[..., Any]
    lift: Callable[..., Any] | None = None
    finish: Callable[..., Any] | None = None
    state: tuple[DType | None, ...] = (None,)  # None: the accumulation dtype
    outs: tuple[DType | None, ...] = (None,)  # None: the result dtype
    empty: str = ""  # why there is no result over no elements; "" when there is


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


class ReductionOp(Op):
    """An op that folds the elements along its ``dim`` argument (all, when it is None or absent)."""

    planned_names = ("dims",)

    def __init__(self, fn: Callable[..., Any], types: str = "same", **options: Any) -> None:
        super().__init__(fn, **options)
        self.types = types

    def result_dtype(self, dtype: DType, asked: DType | None) -> DType:
        if asked is not None:
            return asked
        if self.types == "sum" and dtype.kind in "bui":
            return dtypes.int64
        if self.types == "float" and dtype.kind not in "fc":
            raise DtypeError(
                f"{self.name}(): could not infer output dtype. Input dtype must be either a "
                f"floating point or complex dtype. Got: {dtype}; cast first, e.g. x.float()."
            )
        return dtypes.bool_ if self.types == "bool" else dtype

    def make_plan(self, values: list[Any], outs: tuple[Layout, ...] | None) -> Plan:
        statics = dict(zip(self.signature.names, values, strict=True))
        lays = [v._layout for v in values if isinstance(v, Tensor)]
        lay = lays[0]
        keepdim = bool(statics.get("keepdim", False))
        dims = normalize_dims(statics.get("dim"), lay.ndim, op=self.name)
        if statics.get("dim") == () and "dim" in statics:
            dims = tuple(range(lay.ndim))
        dtype = self.result_dtype(lay.dtype, statics.get("dtype"))
        fold: Fold = self.apply_fn([v._layout if isinstance(v, Tensor) else v for v in values])
        self._check_empty(lay, dims, fold)
        kept = [d for d in range(lay.ndim) if d not in dims]
        made = tuple(
            [self.out_layout(lay, kept, dims, keepdim, out or dtype) for out in fold.outs]
        )
        if outs is not None:
            made = outs
        what = describe(fold, lays, dims, self.accumulate_in(lay.dtype, dtype), self.name)
        full = [self.expand(o, lay, kept, keepdim) for o in made]
        device = backend(lay.device)
        launch = device.compile(what, full, lays)
        rest = {k: v for k, v in statics.items() if not isinstance(v, Tensor)}
        rest["dims"] = dims
        tensors = tuple(lays)
        plan = make(
            self, FRESH if len(made) == 1 else MANY, made, fresh=launch.fresh, into=launch.into,
            statics=rest, tensors=tensors, post=device.allocate,
        )  # fmt: skip
        if self.rule is not None and made[0].dtype.kind in "fc":
            plan.rule = self.rule
        return plan

    def accumulate_in(self, own: DType, result: DType) -> DType:
        if self.types in ("same", "bool"):
            return dtypes.bool_ if self.types == "bool" else own
        return dtypes.float32 if result.name in ("float16", "bfloat16") else result

    def _check_empty(self, lay: Layout, dims: tuple[int, ...], fold: Fold) -> None:
        if not fold.empty:
            return
        for d in dims:
            if lay.shape[d] == 0:
                kind = IndexError if lay.ndim and len(dims) == 1 else ShapeError
                raise _EMPTY[kind](
                    f"{self.name}(): {fold.empty} over dim {d} of shape {tuple(lay.shape)}, "
                    "which has no elements. Specify another dim, or check numel() first."
                )

    def out_layout(
        self, lay: Layout, kept: list[int], dims: tuple[int, ...], keepdim: bool, dtype: DType
    ) -> Layout:
        if lay.contiguous:
            shape = tuple(
                [1 if d in dims else lay.shape[d] for d in range(lay.ndim)]
                if keepdim else [lay.shape[d] for d in kept]
            )  # fmt: skip
            return L.contiguous(shape, dtype, lay.device)
        small = tuple([lay.shape[d] for d in kept])
        strides = dense_strides(small, tuple([lay.strides[d] for d in kept]))
        if not keepdim:
            return L.layout(small, tuple(strides), dtype, lay.device)
        by_dim = dict(zip(kept, strides, strict=True))
        shape = tuple([1 if d in dims else lay.shape[d] for d in range(lay.ndim)])
        filled: list[int] = [0] * lay.ndim
        for d in reversed(range(lay.ndim)):
            inner = filled[d + 1] * shape[d + 1] if d + 1 < lay.ndim else 1
            filled[d] = by_dim.get(d, max(inner, 1))
        return L.layout(shape, tuple(filled), dtype, lay.device)

    def expand(self, out: Layout, lay: Layout, kept: list[int], keepdim: bool) -> Layout:
        """The result's layout seen with the input's shape: stride 0 along the reduced dims."""
        strides = [0] * lay.ndim
        for k, d in enumerate(kept):
            strides[d] = out.strides[d if keepdim else k]
        return L.layout(lay.shape, tuple(strides), out.dtype, out.device)


class EmptyReduction(ShapeError, IndexError):
    """A reduction without identity over no elements."""


_EMPTY: dict[type, Any] = {IndexError: EmptyReduction, ShapeError: ShapeError}


def describe(
    fold: Fold, lays: list[Layout], dims: tuple[int, ...], acc: DType, name: str
) -> Reduce:
    """The fold's functions traced into expressions."""
    states = [s or acc for s in fold.state]
    starts = as_tuple(fold.start)
    ins = [E.input_(k, acc if k == 0 else lay.dtype) for k, lay in enumerate(lays)]
    position = E.input_(len(lays), dtypes.int64)
    lifted = as_tuple(fold.lift(*ins, position) if fold.lift else ins[0])
    a = [E.input_(k, s) for k, s in enumerate(states)]
    b = [E.input_(len(states) + k, s) for k, s in enumerate(states)]
    merged = as_tuple(fold.merge(*a, *b))
    count = E.input_(len(states), dtypes.int64)
    finished = as_tuple(fold.finish(*a, count) if fold.finish else tuple(a))

    def typed(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            [E.cast(_expr(v, s), s) for v, s in zip(values, states, strict=True)]
        )

    return Reduce(
        dims, tuple(starts), typed(lifted), typed(merged),
        tuple([_expr(v, acc) for v in finished]), name,
    )  # fmt: skip


def _expr(value: Any, dtype: DType) -> Any:
    return value if isinstance(value, E.Expr) else E.const(value, dtype)


def reduction(types: str = "same", **options: Any) -> Callable[[Any], ReductionOp]:
    """Decorates a function that gives a Fold as a reduction."""
    return lambda fn: ReductionOp(fn, types, **options)
