"""Reductions: the record's function says how elements fold into a state, and states into one.

    @reduction("sum")
    def sum(input: Tensor, dim: Dims = None, keepdim: Bool = False, *, dtype: Dtype = None):
        \"\"\"The sum of the elements ...\"\"\"
        return Folding(start=0, merge=lambda a, b: a + b)

``lift(x, i)`` makes the state of one element (default: itself) from its value and its position in
the reduced dims; ``merge`` joins two states; ``finish(state.., n)`` gives the results. A state of
several values is a tuple. Type rules: ``sum`` (integers and bools to int64), ``float`` (floats
only), ``tofloat`` (integers to the default dtype), ``same``, ``bool``. Half precision is
accumulated in float32.

With ``before``, a first pass folds the same dims to one statistic (the mean, the maximum), and
``lift`` gets it as its second argument: two passes over the operand, no temporary of its size.
Further tensor parameters broadcast to the first and come next.

The function is asked once for all shapes: a tensor has a dtype for it, and nothing else.

``nodes`` names grad_fn when ``dim`` is None and when it is given, where PyTorch's differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from antorcha.core import dtypes
from antorcha.core.device import backend
from antorcha.core.memo import kept
from antorcha.core.shapes import normalize_dims
from antorcha.core.structs import struct
from antorcha.errors import DtypeError, ShapeError
from antorcha.lang import expr as E
from antorcha.lang.kernels import Launch, Pointwise, Reduce
from antorcha.ops.kinds.operands import common_device, expanded
from antorcha.ops.kinds.params import static_key
from antorcha.ops.kinds.record import Op
from antorcha.ops.kinds.steps import Steps, in_steps
from antorcha.runtime.call.plan import FRESH, MANY, Plan, make
from antorcha.runtime.memory import layout as L

if TYPE_CHECKING:
    from antorcha.core.dtypes import dtype as DType
    from antorcha.lang.kernels import Backend
    from antorcha.ops.kinds.arguments import Arguments
    from antorcha.runtime.memory.layout import Layout


@struct
class Folding:
    """How to reduce: see the module's docstring."""

    start: Any
    merge: Callable[..., Any]
    lift: Callable[..., Any] | None = None
    finish: Callable[..., Any] | None = None
    state: tuple[DType | None, ...] = (None,)  # None: the accumulation dtype
    outs: tuple[DType | None, ...] = (None,)  # None: the result dtype
    empty: str = ""  # why there is no result over no elements; "" when there is
    acc: DType | None = None  # the dtype that the operand is cast to, when the type rule errs
    before: Folding | None = None  # a first pass, whose one result `lift` gets after the element
    give_before: bool = False  # is that statistic the last result, too?
    append: Callable[..., Any] | None = None  # `merge` where the second state's elements come later


@struct
class ElementKind:
    """What a reduction's function may know of a tensor."""

    dtype: DType


_MOST_FOLDS = 1000
_MOST_DIMS = 64  # of a tensor that is reduced along some of them


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


class ReductionOp(Op):
    """An op that folds the elements along its ``dim`` argument (all, when it is None or absent)."""

    planned_names = ("dims",)
    any_size = True

    def __init__(
        self, fn: Callable[..., Any], types: str = "same", nodes: tuple[str, str] = ("", ""),
        empty_dims_are_all: bool = True, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(fn, nodes=self.node_by_dim if any(nodes) else None, **options)
        self.types, self.dim_nodes = types, nodes
        self.folds: dict[Any, Folding] = {}
        self.empty_dims_are_all = empty_dims_are_all  # what dim=() means

    def result_dtype(self, dtype: DType, asked: DType | None) -> DType:
        if asked is not None:
            if self.types == "float" and asked.kind not in "fc":
                raise DtypeError(
                    "{op}(): could not infer output dtype. Optional dtype must be either a "
                    "floating point or complex dtype. Got: {dtype}",
                    reason="needs float", op=self.name, dtype=asked,
                )  # fmt: skip
            return asked
        if self.types == "sum" and dtype.kind in "bui":
            return dtypes.int64
        if self.types == "tofloat" and dtype.kind in "bui":
            return dtypes.get_default_dtype()
        if self.types == "float" and dtype.kind not in "fc":
            raise DtypeError(
                "{op}(): could not infer output dtype. Input dtype must be either a floating point "
                "or complex dtype. Got: {dtype}; cast first, e.g. {fix}.",
                reason="needs float", op=self.name, dtype=dtype, fix="x.float()",
            )  # fmt: skip
        return dtypes.bool_ if self.types == "bool" else dtype

    def node_by_dim(self, values: list[Any], inplace: bool) -> str:
        """The node's name, which ``dim`` decides."""
        given = values[self.signature.names.index("dim")] is not None
        return self.dim_nodes[given] or self.node_name

    def plan(self, given: Arguments, outs: tuple[Layout, ...] | None) -> Plan:
        statics = given.statics
        where = common_device(self.name, given.layouts)
        layout = given.layouts[0].like(device=where)
        layouts = [expanded(each, layout.shape) for each in given.layouts]
        dims = self.reduced(statics, layout)
        dtype = self.result_dtype(layout.dtype, statics.get("dtype"))
        fold = self.fold_of(given.seen)
        self._check_empty(layout, dims, fold, statics)
        kept = [d for d in range(layout.ndim) if d not in dims]
        keepdim = bool(statics.get("keepdim", False))
        result = outs or tuple(
            [self.out_layout(layout, kept, keepdim, out or dtype) for out in fold.outs]
        )
        full = [self.expand(o, layout, kept, keepdim) for o in result]
        device = backend(where)
        acc = fold.acc or self.accumulate_in(layout.dtype, dtype)
        if fold.before is None:
            launch = device.compile(describe(fold, layouts, dims, acc, self.name), full, layouts)
        else:
            launch = self.two_passes(device, fold, layouts, dims, acc, full)
        statics["dims"] = dims  # which the rules ask for
        kind = FRESH if len(result) == 1 else MANY
        return make(self, kind, result, fresh=launch.fresh, into=launch.into)

    def fold_of(self, given: list[Any]) -> Folding:
        """What the function gives, asked once for operands and arguments of one kind."""
        seen = [ElementKind(v.dtype) if isinstance(v, L.Layout) else v for v in given]
        kinds = [v.dtype if isinstance(v, ElementKind) else static_key(v) for v in seen]
        key = (dtypes.get_default_dtype(), *kinds)
        return kept(self.folds, key, lambda _: self.apply_fn(seen), _MOST_FOLDS)

    def reduced(self, statics: dict[str, Any], layout: Layout) -> tuple[int, ...]:
        """The dims to reduce, normalised."""
        dim = statics.get("dim")
        if dim == () and self.empty_dims_are_all:
            dim = None
        if layout.ndim > _MOST_DIMS and dim is not None:
            raise ShapeError(
                f"{self.name}: only tensors with up to {_MOST_DIMS} dims are supported, not "
                f"{layout.ndim}; flatten some with x.flatten()"
            )
        dims = normalize_dims(dim, layout.ndim, op=self.name)
        return tuple(dims) if layout.ndim else ()

    def two_passes(
        self, device: Backend, fold: Folding, layouts: list[Layout], dims: tuple[int, ...],
        acc: DType, full: list[Layout],
    ) -> Launch:  # fmt: skip
        """A launch that folds the statistic into scratch, then reads it beside each element."""
        assert fold.before is not None
        layout = layouts[0]
        kept = [d for d in range(layout.ndim) if d not in dims]
        small = L.contiguous(tuple([layout.shape[d] for d in kept]), acc, full[0].device)
        wide = self.expand(small, layout, kept, False)
        results = full[:-1] if fold.give_before else full
        first = device.compile(
            describe(fold.before, layouts[:1], dims, acc, self.name), [wide], layouts[:1]
        )
        second = device.compile(
            describe(fold, [layout, wide, *layouts[1:]], dims, acc, self.name), results,
            [layout, wide, *layouts[1:]],
        )  # fmt: skip
        last = None
        if fold.give_before:
            shape = tuple([1 if d in dims else n for d, n in enumerate(layout.shape)])
            target, source = [
                L.layout(shape, each.strides, each.dtype, each.device) for each in (full[-1], wide)
            ]
            last = device.compile(Pointwise((E.input_(0, acc),)), [target], [source])
        places = 2 * len(results)

        def write(steps: Steps, outs: list[int], ins: list[int]) -> None:
            statistic = steps.room(small.nbytes)
            steps.into(first, *statistic, *ins[:2])
            steps.into(second, *outs[:places], *ins[:2], *statistic, *ins[2:])
            if last is not None:
                steps.into(last, *outs[places:], *statistic)

        nbytes = small.numel * full[0].itemsize
        return in_steps(device, len(full), nbytes, 2 * len(layouts), write)

    def accumulate_in(self, own: DType, result: DType) -> DType:
        if self.types in ("same", "bool"):
            return dtypes.bool_ if self.types == "bool" else own
        return dtypes.float32 if result.name in ("float16", "bfloat16") else result

    def _check_empty(
        self, layout: Layout, dims: tuple[int, ...], fold: Folding, statics: dict[str, Any]
    ) -> None:
        if not fold.empty:
            return
        for d in dims:
            if layout.shape[d] == 0:
                over = f"dim {d} of shape" if statics.get("dim") is not None else "shape"
                raise EmptyReduction(
                    f"{self.name}(): {fold.empty} over {over} {tuple(layout.shape)}, which has no "
                    "elements. Specify another dim, or check numel() first."
                )

    def out_layout(self, layout: Layout, kept: list[int], keepdim: bool, dtype: DType) -> Layout:
        """Fresh results of reductions are row-major, however the operand lies."""
        shape = tuple(
            [layout.shape[d] if d in kept else 1 for d in range(layout.ndim)] if keepdim
            else [layout.shape[d] for d in kept]
        )  # fmt: skip
        return L.contiguous(shape, dtype, layout.device)

    def expand(self, out: Layout, layout: Layout, kept: list[int], keepdim: bool) -> Layout:
        """The result's layout seen with the input's shape: stride 0 along the reduced dims."""
        strides = [0] * layout.ndim
        for k, d in enumerate(kept):
            strides[d] = out.strides[d if keepdim else k]
        return L.layout(layout.shape, tuple(strides), out.dtype, out.device)


class EmptyReduction(ShapeError, IndexError):
    """A reduction without identity over no elements; PyTorch raises one class or the other."""


def describe(
    fold: Folding, layouts: list[Layout], dims: tuple[int, ...], acc: DType, name: str
) -> Reduce:
    """The fold's functions as expressions, traced once for operands of one kind."""
    key = (fold, acc, *[layout.dtype for layout in layouts])
    start, lifted, merged, finished, appended = kept(_traced, key, _trace, _MOST_FOLDS)
    return Reduce(dims, start, lifted, merged, finished, name, appended)


_traced: dict[Any, tuple[tuple[Any, ...], ...]] = {}


def _trace(key: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
    """start, lift, merge, finish and append of (fold, dtype of the state, operands' dtypes ..)."""
    fold, acc, *own = key
    states = [s or acc for s in fold.state]
    ins = [E.input_(k, acc if k == 0 else dtype) for k, dtype in enumerate(own)]
    position = E.input_(len(own), dtypes.int64)
    lifted = as_tuple(fold.lift(*ins, position) if fold.lift else ins[0])
    a = [E.input_(k, s) for k, s in enumerate(states)]
    b = [E.input_(len(states) + k, s) for k, s in enumerate(states)]
    merged = as_tuple(fold.merge(*a, *b))
    appended = as_tuple(fold.append(*a, *b)) if fold.append else ()
    count = E.input_(len(states), dtypes.int64)
    finished = as_tuple(fold.finish(*a, count) if fold.finish else tuple(a))

    def typed(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([E.cast(_expr(v, s), s) for v, s in zip(values, states, strict=True)])

    appended = typed(appended) if appended else ()

    finished = tuple([_expr(v, acc) for v in finished])
    return as_tuple(fold.start), typed(lifted), typed(merged), finished, appended


def _expr(value: Any, dtype: DType) -> Any:
    return value if isinstance(value, E.Expr) else E.const(value, dtype)


def reduction(types: str = "same", **options: Any) -> Callable[[Any], ReductionOp]:
    """Decorates a function that gives a Folding as a reduction."""
    return lambda fn: ReductionOp(fn, types, **options)
