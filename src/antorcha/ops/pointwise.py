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

from antorcha import dtypes, modes
from antorcha.device import CPU, backend
from antorcha.errors import DeviceError, DtypeError, ShapeError
from antorcha.lang import expr as E
from antorcha.lang.kernels import Pointwise
from antorcha.ops.derive import Rule, bits, check_version, fit_one, saved_items, unpack
from antorcha.ops.params import NUMBER, OPERAND, STATIC
from antorcha.ops.record import Op
from antorcha.runtime import layout as L
from antorcha.runtime.call import path
from antorcha.runtime.call.node import Node
from antorcha.runtime.call.plan import FRESH, Plan, make, remember, table
from antorcha.runtime.tensor import Tensor, bare
from antorcha.shapes import broadcast_shapes, broadcast_strides, result_strides

if TYPE_CHECKING:
    from antorcha.dtypes import dtype as DType
    from antorcha.lang.expr import Expr
    from antorcha.runtime.layout import Layout

__all__ = ["ExprOp", "PointwiseOp", "common_device", "pointwise"]


def common_device(op: str, layouts: Sequence[Layout | None]) -> Any:
    """The one device of the operands; a 0-dim tensor on the CPU goes with any."""
    found: Layout | None = None
    for lay in layouts:
        if lay is None:
            continue
        if found is None or (found.ndim == 0 and found.device is CPU and lay.device is not CPU):
            if found is not None and found.ndim:
                _two_devices(op, found, lay)
            found = lay
        elif lay.device is not found.device and not (lay.ndim == 0 and lay.device is CPU):
            _two_devices(op, found, lay)
    return CPU if found is None else found.device


def _two_devices(op: str, a: Layout, b: Layout) -> None:
    raise DeviceError(
        f"{op}: Expected all tensors to be on the same device, but found at least two devices, "
        f"{a.device} and {b.device}! The operands are {tuple(a.shape)} on {a.device} and "
        f"{tuple(b.shape)} on {b.device}: move one with .to({str(a.device)!r})."
    )


def common_dtype(values: Sequence[Any]) -> DType:
    """PyTorch's result_type of layouts and Python numbers' types."""
    sized: list[DType] = []
    zero_dim: list[DType] = []
    numbers: list[Any] = []
    for value in values:
        if isinstance(value, L.Layout):
            (sized if value.ndim else zero_dim).append(value.dtype)
        else:
            numbers.append(value)
    return dtypes.result_type(sized, zero_dim, numbers)


def result_layout(shape: tuple[int, ...], dtype: DType, device: Any, ins: Any) -> Layout:
    """How a fresh result lies: as its operands do where they agree (PyTorch's TensorIterator)."""
    operands = [lay for lay in ins if isinstance(lay, L.Layout)]
    if all([lay.contiguous for lay in operands if lay.shape == shape]):
        return L.contiguous(shape, dtype, device)
    strides = result_strides(
        shape, [(i.shape, i.strides) if isinstance(i, L.Layout) else ((), ()) for i in ins]
    )
    return L.layout(shape, strides, dtype, device)


def expanded(lay: Layout, shape: tuple[int, ...]) -> Layout:
    """The layout broadcast to a shape (stride 0 where it repeats)."""
    if lay.shape == shape:
        return lay
    return L.layout(shape, tuple(broadcast_strides(lay.shape, lay.strides, shape)), lay.dtype,
                    lay.device)  # fmt: skip


def plan_exprs(
    op: Any,
    exprs: tuple[Expr, ...],
    ins: Sequence[Any],
    out_dtype: DType,
    outs: tuple[Layout, ...] | None,
    **fields: Any,
) -> Plan:
    """A plan that computes an expression over layouts and number types, broadcast together."""
    tensors = [lay for lay in ins if isinstance(lay, L.Layout)]
    shape = broadcast_shapes(*[lay.shape for lay in tensors], op=op.name)
    device = common_device(op.name, tensors)
    if outs is None:
        out = result_layout(tuple(shape), out_dtype, device, ins)
    else:
        (out,) = outs
        if not dtypes.can_cast(out_dtype, out.dtype):
            raise DtypeError(
                f"{op.name}: result type {out_dtype} can't be cast to the desired output type "
                f"{out.dtype}"
            )
        if tuple(out.shape) != tuple(shape):
            raise ShapeError(
                f"{op.name}: output with shape {list(out.shape)} doesn't match the broadcast shape "
                f"{list(shape)}"
            )
    wide = [expanded(i, out.shape) if isinstance(i, L.Layout) else i for i in ins]
    launch = backend(device).compile(Pointwise(exprs), (out,), wide)
    return make(op, FRESH, (out,), fresh=launch.fresh, into=launch.into, **fields)


class PointwiseOp(Op):
    """An op whose function gives one element of the result from the operands' elements."""

    def __init__(
        self, fn: Callable[..., Any], types: str | Callable[[Any], str] = "promote", **options: Any
    ) -> None:
        super().__init__(fn, **options)
        self.types = types
        self.derive_fn: Callable[..., Any] | None = None
        self.check: Callable[..., None] | None = None
        never = types in ("compare", "predicate", "bits")
        self.rule = None if never else PointwiseRule(self)

    def derivative(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        self.derive_fn = fn
        self.rule = PointwiseRule(self)
        return fn

    def no_derivative(self) -> None:
        self.rule = None

    def accepts(self, fn: Callable[..., None]) -> Callable[..., None]:
        """Decorates a check of the bound values, run when a call is planned: by layout and type."""
        self.check = fn
        return fn

    def computed_in(
        self, rule: str, values: list[Any], extra: dict[int, str] | None = None,
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
                    f"{self.name}: masked_fill_ only supports boolean masks, but got mask with "
                    f"dtype {own[1]}; compare with 0 first: mask != 0."
                )
            return own, own[0]
        if rule == "where":
            if own[0].name not in ("bool", "uint8"):
                raise DtypeError(
                    f"{self.name}: expected condition to be a boolean tensor, but got a tensor "
                    f"with dtype {own[0]}; compare with 0 first: condition != 0."
                )
            common = common_dtype(values[1:])
            return [dtypes.bool_, *[_beside(common, v) for v in values[1:]]], common
        common = common_dtype([*[v for k, v in enumerate(values) if k not in extra], *fixed])
        for k, name in extra.items():
            self._check_number(name, values[k], common)
        if rule == "float" and common.kind in "bui":
            common = dtypes.get_default_dtype()
        refused = {"floating": "buic", "inexact": "bui", "bits": "fc"}.get(rule, "")
        if common.kind in refused:
            raise UnsupportedDtype(f"{self.name}: not implemented for {common}")
        if rule == "compare":
            mixed = common.kind in "ui" and any([v is int for v in values])
            return [dtypes.int64 if mixed else common] * len(values), dtypes.bool_
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

    def make_plan(self, values: list[Any], outs: tuple[Layout, ...] | None) -> Plan:
        if self.check is not None:
            self.check(*values)
        ins: list[Any] = []  # what the kernel gets, in order
        where: dict[str, int] = {}  # parameter -> its place among them
        statics: dict[str, Any] = {}
        tensors: list[Layout | None] = []
        numbers: list[str] = []
        extra: dict[int, str] = {}
        fixed: list[Any] = []
        for param, value in zip(self.signature.params, values, strict=True):
            if isinstance(value, Tensor):
                where[param.name] = len(ins)
                ins.append(value._layout)
                tensors.append(value._layout)
            elif (param.code == OPERAND and not param.static and value is not None) or (
                param.code == NUMBER and not _is_default(param, value)
            ):
                where[param.name] = len(ins)
                if param.code == NUMBER:
                    extra[len(ins)] = param.name
                ins.append(type(value))
                numbers.append(param.name)
                if param.code == OPERAND:
                    tensors.append(None)
            else:
                statics[param.name] = value
                if param.static:
                    fixed.append(type(value))
                if param.code != STATIC and param.code != NUMBER:
                    tensors.append(None)
        rule = self.types(statics) if callable(self.types) else self.types
        types, out_dtype = self.computed_in(rule, ins, extra, fixed)
        args = {n: E.input_(k, types[k]) for n, k in where.items()}
        try:
            made = self.fn(**args, **statics)
        except DtypeError as error:  # from the scalar ops' own type rules
            if isinstance(error, UnsupportedDtype) or "defined for" not in str(error):
                raise
            raise UnsupportedDtype(str(error)) from None
        made = made if isinstance(made, E.Expr) else E.const(made, out_dtype or types[0])
        if out_dtype is not None:
            made = E.cast(made, out_dtype)
        plan = plan_exprs(
            self, (made,), ins, made.dtype, outs, statics=statics, tensors=tuple(tensors)
        )
        plan.post_names = tuple(numbers)
        plan.post = (where, types, made)
        if plan.out.dtype.kind in "fc" and self.rule is not None:
            plan.rule = self.rule
        return plan


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


def _is_default(param: Any, value: Any) -> bool:
    return type(value) is type(param.default) and bool(value == param.default)


class PointwiseRule(Rule):
    """Gradients of a pointwise op: one fused kernel for each operand that wants one."""

    def __init__(self, op: PointwiseOp) -> None:
        self.op = op

    def names(self) -> list[str]:
        """The parameters that are operands, in order."""
        return [p.name for p in self.op.signature.params if p.code < NUMBER]

    def expressions(self, args: dict[str, Expr], rest: dict[str, Any], n: int) -> list[Any]:
        """The gradient of each operand over Inputs: operands and numbers 0..n-1, the result n,
        the result's gradient n + 1."""
        result = self.op.fn(**args, **rest)
        if not isinstance(result, E.Expr):
            return [None] * n
        common = result.dtype
        out, g = E.input_(n, common), E.input_(n + 1, common)
        fn = self.op.derive_fn
        operands = self.names()
        if fn is None:
            found = gradients(result, n, g, out)
            return [found[_place(args[name])] if name in args else None for name in operands]
        given = {**args, **rest, "out": out, "g": g}
        wanted = fn.__code__.co_varnames[: fn.__code__.co_argcount]
        made = fn(**{name: given[name] for name in wanted})
        made = made if isinstance(made, (tuple, list)) else (made,)
        return [m if m is None or isinstance(m, E.Expr) else E.const(m, common) for m in made]

    def saves(self, plan: Plan, mask: int) -> tuple[int, ...]:
        key = ("saves", mask)
        found: tuple[int, ...] | None = plan.vjp.get(key)
        if found is None:
            wanted: set[int] = set()
            for k in bits(mask):
                wanted.update(self.vjp(plan, k).sources)
            found = plan.vjp[key] = tuple([k for k in sorted(wanted, reverse=True) if k >= -1])
        return found

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        (g,) = grads
        plan = node.plan
        assert plan is not None
        assert g is not None
        kept = saved_items(node)
        result: list[Tensor | None] = [None] * len(node.edges)
        for k in bits(node.mask):
            result[k] = self.vjp(plan, k).gradient(node, g, kept, create)
        return result

    def vjp(self, plan: Plan, k: int) -> GradientOp:
        """The op that computes the gradient of operand k of this plan."""
        found: GradientOp | None = plan.vjp.get(k)
        if found is None:
            found = plan.vjp[k] = self._make_vjp(plan, k)
        return found

    def _make_vjp(self, plan: Plan, k: int) -> GradientOp:
        where, types, _made = plan.post
        n = len(types)
        args = {name: E.input_(j, types[j]) for name, j in where.items()}
        params = self.names()
        gradient = self.expressions(args, plan.statics, n)[k]
        lay = plan.tensors[k]
        assert lay is not None
        if gradient is None or (isinstance(gradient, E.Expr) and _is_zero(gradient)):
            gradient = E.const(0, lay.dtype)
        if lay.dtype.kind != "c" and gradient.dtype.kind == "c":
            gradient = E.real(gradient)
        # kernel input -> operand position (-1 result, -2 g, -10-j number)
        source: dict[int, int] = {}
        for name, j in where.items():
            source[j] = params.index(name) if name in params else 0
        for number, name in enumerate(plan.post_names):
            source[where[name]] = -10 - number
        source[n], source[n + 1] = -1, -2
        return GradientOp(self.op, k, gradient, source, lay)


def _place(leaf: Expr) -> int:
    """Which input a leaf stands for: its payload."""
    assert isinstance(leaf.payload, int)
    return leaf.payload


def gradients(
    result: Expr, count: int, seed: Expr, out: Expr | None = None
) -> list[Expr | None]:
    """The gradient of each of ``count`` inputs. Where the result itself is part of one (``exp``,
    ``tanh``), ``out`` stands for it: the saved result saves computing it again."""
    leaves = {
        _place(e): e
        for e in E.walk(result)
        if e.op == "input" and e.dtype.kind in "fc"
    }
    found: list[Expr | None] = [None] * count
    slopes = E.vjp((result,), (seed,), tuple(leaves.values()))
    for place, slope in zip(leaves, slopes, strict=True):
        if place < count and slope is not None:
            found[place] = E.simplify(slope)
    if out is not None and result.op not in E.LEAVES and result.op != "cast":
        found = [None if e is None else E.simplify(E.substitute(e, {result: out})) for e in found]
    return found


def _is_zero(e: Expr) -> bool:
    return e.op == "const" and e.payload == 0


class ExprOp:
    """A nameless pointwise op made of an expression; its derivative is found symbolically."""

    has_out = False
    inplace = None
    default_numbers = ()

    def __init__(self, name: str, expr: Expr) -> None:
        self.name = self.__name__ = name
        self.node_name = "".join([p.capitalize() for p in name.split("_")]) + "Backward0"
        self.expr = expr
        self.plans = table()
        self.rule = ExprRule(self)
        used = E.inputs_used(expr)
        self.arity = max(used) + 1 if used else 0

    def __call__(self, *operands: Any) -> Any:
        return path.call(self, operands, {})

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        key: list[Any] = []
        operands: list[Tensor | None] = []
        flat: list[Any] = []
        numbers: list[Any] = []
        for value in args:
            if isinstance(value, Tensor):
                key.append(value._layout)
                operands.append(value)
                flat += (value._storage, value._offset)
            else:
                key.append(type(value))
                operands.append(None)
                numbers.append(value)
                flat.append(value)
        return tuple(key), operands, flat, tuple(numbers), list(args)

    def pack(self, outs: tuple[Tensor, ...]) -> Any:
        return outs[0]

    def make_plan(self, values: list[Any], outs: Any) -> Plan:
        ins = [v._layout if isinstance(v, Tensor) else type(v) for v in values]
        return self.plan_for(tuple(ins), outs)

    def plan_for(self, ins: tuple[Any, ...], outs: Any = None) -> Plan:
        plan = plan_exprs(
            self, (self.expr,), ins, self.expr.dtype, outs,
            tensors=tuple([i if isinstance(i, L.Layout) else None for i in ins]),
        )  # fmt: skip
        plan.post_names = ()
        if plan.out.dtype.kind in "fc":
            plan.rule = self.rule
        return plan

    def raw(self, key: tuple[Any, ...], flat: list[Any]) -> Tensor:
        """Runs outside of any graph on (layouts, launch arguments)."""
        plan = self.plans.get(key)
        if plan is None:
            plan = remember(self.plans, key, self.plan_for(key))
        return bare(plan.out, plan.fresh(*flat))


class ExprRule(Rule):
    """Gradients of an ExprOp, each an ExprOp of (operands.., result's gradient)."""

    def __init__(self, op: ExprOp) -> None:
        self.op = op
        self.ops: list[ExprOp | None] | None = None

    def _ops(self) -> list[ExprOp | None]:
        if self.ops is None:
            op = self.op
            n = op.arity
            seed = E.input_(n, op.expr.dtype)
            made: list[ExprOp | None] = []
            for k, e in enumerate(gradients(op.expr, n, seed)):
                if e is None or _is_zero(e):
                    made.append(None)
                else:
                    made.append(ExprOp(f"{op.name}_vjp{k}", e))
            self.ops = made
        return self.ops

    def saves(self, plan: Plan, mask: int) -> tuple[int, ...]:
        return tuple(range(self.op.arity))

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        kept = saved_items(node)
        plan = node.plan
        assert plan is not None
        numbers = iter(node.values or ())
        operands: list[Any] = []
        for k, lay in enumerate(plan.tensors):
            operands.append(next(numbers) if lay is None else unpack(node, k, kept[k], create))
        operands.append(grads[0])
        result: list[Tensor | None] = [None] * len(node.edges)
        ops = self._ops()
        for k in bits(node.mask):
            op = ops[k]
            lay = plan.tensors[k]
            if op is not None and lay is not None:
                result[k] = fit_one(op(*operands[: op.arity]), lay)
        return result


class GradientOp:
    """The gradient of one operand of a pointwise op: an expression over some of what was saved."""

    def __init__(
        self, op: Op, k: int, gradient: Expr, source: dict[int, int], lay: Layout
    ) -> None:
        used = E.inputs_used(gradient)
        inputs = enumerate(_typed(gradient))
        renumbered = E.substitute(
            gradient, {E.input_(j, dt): E.input_(i, dt) for i, (j, dt) in inputs}
        )
        self.sources = [source[j] for j in used]
        self.lay = lay
        self.identity = renumbered.op == "input" and self.sources == [-2]
        if renumbered.dtype is not lay.dtype and lay.dtype.kind in "fc":
            renumbered = E.cast(renumbered, lay.dtype)
            self.identity = False
        self.op = ExprOp(f"{op.name}_backward", renumbered)
        self.constant = not used
        self.quick_plans: dict[tuple[int, Layout], tuple[list[tuple[int, int]], Plan]] = {}

    def gradient(self, node: Node, g: Tensor, kept: Any, create: bool) -> Tensor:
        if self.identity:
            return fit_one(g, self.lay)
        if self.constant:
            return constant_like(self.op.expr, self.lay, g)
        if not create:
            found = self.quick_plans.get((node.mask, g._layout))
            if found is not None and not modes.busy:
                return self.quick(node, g, kept, *found)
        plan = node.plan
        assert plan is not None
        assert plan.rule is not None
        places = plan.rule.saves(plan, node.mask)
        operands: list[Any] = []
        key: list[Any] = []
        flat: list[Any] = []
        for s in self.sources:
            if s <= -10:
                number = node.values[-10 - s]
                operands.append(number)
                key.append(type(number))
                flat.append(number)
                continue
            tensor = g if s == -2 else unpack(node, s, kept[places.index(s)], create)
            operands.append(tensor)
            key.append(tensor._layout)
            flat += (tensor._storage, tensor._offset)
        if create:
            return fit_one(self.op(*operands), self.lay)
        made = self.op.raw(tuple(key), flat)
        recipe = [
            (2, 0) if s == -2 else (1, -10 - s) if s <= -10 else (0, places.index(s))
            for s in self.sources
        ]
        self.quick_plans[node.mask, g._layout] = recipe, self.op.plans[tuple(key)]
        return fit_one(made, self.lay)

    def quick(
        self, node: Node, g: Tensor, kept: Any, recipe: list[tuple[int, int]], plan: Plan
    ) -> Tensor:
        """The same by a known plan: the saved tensors' layouts are those of the forward plan."""
        flat: list[Any] = []
        for kind, at in recipe:
            if kind == 2:
                flat.append(g._storage)
                flat.append(g._offset)
            elif kind == 1:
                flat.append(node.values[at])
            else:
                _, storage, offset, version = item = kept[at]
                if storage.version != version:
                    check_version(node, item, self.sources[recipe.index((kind, at))])
                flat.append(storage)
                flat.append(offset)
        made = bare(plan.out, plan.fresh(*flat))
        return made if plan.out is self.lay else fit_one(made, self.lay)


def _typed(e: Expr) -> list[tuple[int, DType]]:
    found = {int(n.payload): n.dtype for n in E.walk(e) if n.op == "input"}  # type: ignore[arg-type]
    return sorted(found.items())


def constant_like(e: Expr, lay: Layout, g: Tensor) -> Tensor:
    from antorcha.ops.record import T

    made: Tensor = T.full_layout(lay.shape, e.payload, lay.dtype, lay.device)
    return made


def pointwise(
    types: str | Callable[[Any], str] = "promote", **options: Any
) -> Callable[[Any], PointwiseOp]:
    """Decorates an element function as a pointwise op."""
    return lambda fn: PointwiseOp(fn, types, **options)

