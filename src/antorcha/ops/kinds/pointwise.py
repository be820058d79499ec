"""Pointwise ops: the record's function computes one element, and is traced into an expression.

The same text serves the forward kernel, its fused gradients, and (with ``create_graph``) gradients
of gradients: a rule is traced into an expression per operand, each a pointwise op in its turn whose
own derivative is found symbolically.

Type rules (``types=``) say what the element function is computed in and what the result is:

========== ============================ =====================================
rule       operands are cast to         the result has
========== ============================ =====================================
promote    their common dtype           that dtype
float      the same, integers -> float  that dtype
floating   the same, floats only        that dtype
inexact    the same, floats or complex  that dtype
compare    their common dtype           bool
predicate  nothing                      bool
where      all but the condition alike  that dtype
masked     nothing (a bool mask second) the first operand's dtype
copy       nothing                      the first operand's dtype
own        nothing                      the expression's own dtype
bits       their common dtype, no float that dtype
========== ============================ =====================================

Run-time numbers stay float32 beside half precision operands, so that ``x * 0.1`` rounds once.
Parameters of kind Number (``alpha``) have no say in the common dtype; they must fit it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from antorcha.core import dtypes, modes
from antorcha.core.memo import kept
from antorcha.errors import ArgumentError, DtypeError
from antorcha.lang import expr as E
from antorcha.ops.kinds.operands import common_dtype, plan_exprs
from antorcha.ops.kinds.params import NUMBER, static_key
from antorcha.ops.kinds.pointwise_rule import PointwiseRule
from antorcha.ops.kinds.record import Op
from antorcha.runtime.call import tape as tapes
from antorcha.runtime.call.plan import Plan, remember
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.core.dtypes import dtype as DType
    from antorcha.ops.kinds.arguments import Arguments
    from antorcha.ops.kinds.operands import Guard
    from antorcha.runtime.memory.layout import Layout


class PointwiseOp(Op):
    """An op whose function gives one element of the result from the operands' elements."""

    any_size = True
    numbers_alone = False  # may all its operands be Python numbers?

    def __init__(
        self, fn: Callable[..., Any], types: str | Callable[[Any], str] = "promote",
        row_major: str = "", not_into: str = "", **options: Any,
    ) -> None:  # fmt: skip
        """row_major: the kinds of dtypes whose fresh result is, however the operands lie.
        not_into: those that it is not written over, nor into as ``out=``."""
        super().__init__(fn, **options)
        self.row_major, self.not_into = row_major, not_into
        self.types = types
        self.derive_fn: Callable[..., Any] | None = None
        self.check: Callable[..., None] | None = None
        self.guard: Guard | None = None
        self.traced: dict[Any, Traced] = {}  # see `_traced_once`
        never = types in ("compare", "predicate", "bits")
        self.rule = None if never else PointwiseRule(self)

    def derivative(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        self.derive_fn = fn
        self.rule = PointwiseRule(self)
        return fn

    def accepts(self, fn: Callable[..., None]) -> Callable[..., None]:
        """Decorates a check of the bound values, run when a call is planned, which may look at
        dtypes, numbers of dims and the types of numbers: other sizes are not checked again."""
        self.check = fn
        return fn

    def accepts_values(self, fn: Callable[..., None]) -> Callable[..., None]:
        """Decorates a check of the bound values that may look at numbers: run before every call
        in Python. (Natively, calls with other numbers are other calls.)"""
        bind = self.signature.bind

        def checked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            bound = bind(args, kwargs)
            fn(*bound[4])
            return bound

        self.use_bind(checked)
        return fn

    def computed_in(
        self,
        rule: str,
        values: list[Any],
        extra: dict[int, str] | None = None,
        fixed: Sequence[Any] = (),
    ) -> tuple[list[DType], DType | None]:
        """The dtype that each operand is cast to, and the result's (None: the expression's).

        ``extra`` are the places and names of Number parameters: they follow the common dtype.
        ``fixed`` are the types of numbers that are part of the plan (``x ** 2``).
        """
        extra = extra or {}
        own = [v.dtype if isinstance(v, L.Layout) else _number_dtype(v) for v in values]
        if rule in ("predicate", "own"):
            return own, dtypes.bool_ if rule == "predicate" else None
        if rule == "copy":
            return own, own[0]
        if rule == "masked":
            if own[1].kind != "b":
                raise DtypeError(
                    "{op}: masked_fill_ only supports boolean masks, but got mask with dtype "
                    "{dtype}; compare with 0 first: {fix}.",
                    reason="needs mask", op=self.name, dtype=own[1], fix="mask != 0",
                )  # fmt: skip
            return own, own[0]
        if rule == "where":
            if own[0].name not in ("bool", "uint8"):
                raise DtypeError(
                    "{op}: expected condition to be a boolean tensor, but got a tensor with dtype "
                    "{dtype}; compare with 0 first: {fix}.",
                    reason="needs mask", op=self.name, dtype=own[0], fix="condition != 0",
                )  # fmt: skip
            common = common_dtype(values[1:])
            return [dtypes.bool_, *[_beside(common, v) for v in values[1:]]], common
        common = common_dtype([*[v for k, v in enumerate(values) if k not in extra], *fixed])
        for k, name in extra.items():
            self._check_number(name, values[k], common)
        if rule == "float" and common.kind in "bui":
            common = dtypes.get_default_dtype()
        refused = {"floating": "buic", "inexact": "bui", "bits": "fc"}.get(rule, "")
        if common.kind in refused:
            raise UnsupportedDtype(
                "{op}: not implemented for {dtype}", op=self.name, dtype=common,
                reason="bits" if rule == "bits" else "needs float",
            )  # fmt: skip
        if rule == "compare":
            return [common] * len(values), dtypes.bool_
        return [_beside(common, v) for v in values], common

    def _check_number(self, name: str, kind: Any, common: DType) -> None:
        if kind is float and common.kind in "bui" and name == "alpha":
            raise DtypeError(
                f"{self.name}: For integral input tensors, argument alpha must not be a floating "
                "point number."
            )
        if kind is complex and common.kind != "c":
            raise DtypeError(
                f"{self.name}: For non-complex input tensors, argument {name} must not be a "
                "complex number."
            )

    def into(self, outs: Sequence[Tensor], operands: Sequence[Tensor]) -> None:
        """Writes the results over tensors that the caller has made, and nobody else has seen yet:
        nothing is checked, recorded, nor a new version of them."""
        key = ("into", *[t._layout for t in outs], *[t._layout for t in operands])
        plan = self.plans.get(key)
        if plan is None:
            layouts = tuple([t._layout for t in outs])
            plan = remember(self.plans, key, self.make_plan(list(operands), layouts))
        flat: list[Any] = []
        for t in (*outs, *operands):
            flat += (t._storage, t._offset)
        plan.into(*flat)
        if modes.busy and tapes.current.tape is not None:
            tapes.current.tape.note_into(plan, outs, operands)

    def make_plan(self, values: list[Any], outs: tuple[Layout, ...] | None) -> Plan:
        if self.check is not None:
            self.check(*values)
        return super().make_plan(values, outs)

    def plan(self, given: Arguments, outs: tuple[Layout, ...] | None) -> Plan:
        if not (self.numbers_alone or given.layouts):
            raise ArgumentError(
                f"{self.name}(): expected a Tensor among the operands, got numbers alone; make one "
                "with torch.tensor(..)"
            )
        params = self.signature.params
        where, statics = given.places, given.statics
        extra = {where[p.name]: p.name for p in params if p.code == NUMBER and p.name in where}
        fixed = [type(statics[p.name]) for p in params if p.static and p.name in statics]
        traced = self._traced_once(where, given.ins, statics, extra, fixed)
        if outs is not None and outs[0].dtype.kind in self.not_into:
            raise DtypeError(
                f"{self.name}_: In-place {self.name} is not supported for tensors of "
                f"{outs[0].dtype}"
            )
        row_major = traced.types[0].kind in self.row_major
        plan = plan_exprs(self, traced.made, given.ins, outs, self.guard, row_major)
        plan.post = traced
        return plan

    def _traced_once(
        self, where: dict[str, int], ins: list[Any], statics: dict[str, Any], extra: dict[int, str],
        fixed: list[Any],
    ) -> Traced:  # fmt: skip
        """What ``_trace`` gives, traced once for all shapes: only whether an operand has dims
        matters to it."""
        kinds = [(i.dtype, not i.ndim) if isinstance(i, L.Layout) else i for i in ins]
        values = [static_key(v) for v in statics.values()]
        usual = dtypes.get_default_dtype()  # of the floats that integers give
        key = (usual, tuple(kinds), tuple(where), tuple(statics), tuple(values), tuple(fixed))
        try:
            hash(key)
        except TypeError:  # an argument that cannot be in a key
            return self._trace(where, ins, statics, extra, fixed)

        def trace(_: Any) -> Traced:
            return self._trace(where, ins, statics, extra, fixed)

        return kept(self.traced, key, trace, _MOST_TRACED)

    def _trace(
        self, where: dict[str, int], ins: list[Any], statics: dict[str, Any], extra: dict[int, str],
        fixed: list[Any],
    ) -> Traced:  # fmt: skip
        """The record's function as expressions over the operands."""
        rule = self.types(statics) if callable(self.types) else self.types
        types, out_dtype = self.computed_in(rule, ins, extra, fixed)
        args = {n: E.input_(k, types[k]) for n, k in where.items()}
        try:
            result = self.fn(**args, **statics)
        except DtypeError as error:  # from the scalar ops' own type rules
            if isinstance(error, UnsupportedDtype) or "defined for" not in str(error):
                raise
            raise UnsupportedDtype(str(error)) from None
        return Traced(where, types, results_of(result, out_dtype or types[0], out_dtype))


def results_of(result: Any, usual: DType, wanted: DType | None) -> tuple[E.Expr, ...]:
    """What an element function gave, one value or several, as expressions: a number has the dtype
    ``usual``, all are cast to ``wanted`` where that is given."""
    values = result if isinstance(result, (tuple, list)) else (result,)
    exprs = [v if isinstance(v, E.Expr) else E.const(v, usual) for v in values]
    return tuple([e if wanted is None else E.cast(e, wanted) for e in exprs])


class Traced:
    """An op's function as expressions, for operands and arguments of one kind."""

    __slots__ = ("gradients", "made", "types", "where")

    def __init__(
        self, where: dict[str, int], types: list[DType], result: tuple[E.Expr, ...]
    ) -> None:
        self.where = where  # parameter -> which input of the expressions it is
        self.types = types  # the dtypes that the inputs are loaded as
        self.made = result  # an expression for each result
        self.gradients: dict[Any, Any] = {}  # of operands, as the rule has worked them out


_MOST_TRACED = 1000


class UnsupportedDtype(DtypeError, NotImplementedError):
    """The op has no meaning for these dtypes; PyTorch's ``"op" not implemented for 'Bool'``."""


def _number_dtype(kind: Any) -> DType:
    """The dtype in which a kernel gets a Python number that is not converted."""
    wide = {float: dtypes.float64, complex: dtypes.complex128}.get(kind)
    return wide or dtypes.scalar_dtype(kind)


def _beside(common: DType, value: Any) -> DType:
    """What an operand is loaded as: numbers beside halves keep float32's precision."""
    if common.name in ("float16", "bfloat16") and not isinstance(value, L.Layout):
        return dtypes.float32
    return common


def pointwise(
    types: str | Callable[[Any], str] = "promote", **options: Any
) -> Callable[[Any], PointwiseOp]:
    """Decorates an element function as a pointwise op."""
    return lambda fn: PointwiseOp(fn, types, **options)
