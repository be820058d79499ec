"""``@antorcha.kernel``: a user's fused, differentiable op from a plain Python function of scalars.

    @antorcha.kernel
    def swish(x, beta=1.0):
        return x * torch.sigmoid(beta * x)

    y = swish(torch.randn(1000, requires_grad=True))  # one pass over memory; y.backward works

The function is run once for every kind of arguments, on expressions for numbers; what it computes
becomes one kernel; its gradients, of every order, are found symbolically, a kernel each.

Inside, operators, methods (``x.exp()``), ``torch.*`` functions that work element by element
(``torch.where``, ``torch.nn.functional.silu``), other kernels, and the functions of
``antorcha.lang.expr`` may be used. Python's ``if`` on a value may not: ``torch.where``.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from antorcha.core import dtypes, modes
from antorcha.core.device import CPU
from antorcha.core.hooks import hooks
from antorcha.core.shapes import broadcast_shapes, normalize_dim
from antorcha.errors import ArgumentError, GraphError, MissingFeature
from antorcha.lang import expr as E
from antorcha.lang.expr import Expr, RowInput, trace_rows
from antorcha.lang.expr.graph import METHODS
from antorcha.ops.kinds.operands import common_dtype
from antorcha.ops.kinds.params import NUMBER, OPERAND, STATIC, static_key, to_number
from antorcha.ops.kinds.pointwise import PointwiseOp, results_of
from antorcha.ops.kinds.record import Composite, T
from antorcha.ops.kinds.row_programs import ProgramOp, ProgramRule
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.core.dtypes import dtype as DType
    from antorcha.runtime.memory.layout import Layout

_VARIADIC = 0x04 | 0x08  # code flags: *args, **kwargs


class Declared:
    """A user's function with the annotations of a record: what `Signature` reads."""

    def __init__(self, fn: Callable[..., Any], name: str | None) -> None:
        code = getattr(fn, "__code__", None)
        if code is None or code.co_flags & _VARIADIC:
            raise ArgumentError(
                "antorcha.kernel: a Python function with named parameters is needed, not "
                f"{getattr(fn, '__name__', repr(fn))!r} with *args or **kwargs"
            )
        self.fn = fn
        self.__name__ = name or (fn.__name__ if fn.__name__ != "<lambda>" else "kernel")
        self.__doc__ = fn.__doc__
        self.__code__ = code
        self.__defaults__, self.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
        count, only = code.co_argcount, code.co_kwonlyargcount
        self.operands = code.co_varnames[:count]
        self.__annotations__ = dict.fromkeys(self.operands, "Operand")
        for option in code.co_varnames[count : count + only]:
            default = (fn.__kwdefaults__ or {}).get(option)
            is_number = isinstance(default, (bool, int, float, complex))
            self.__annotations__[option] = "StaticNumber" if is_number else "Any"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            result = self.fn(*args, **kwargs)
        except GraphError as error:
            raise GraphError(f"{self.__name__}: {self.where(error)}{error}") from None
        if result is None or (isinstance(result, (tuple, list)) and not result):
            raise GraphError(
                f"{self.__name__}: it returns {result!r}; a kernel returns a value, or several"
            )
        return result

    def where(self, error: BaseException) -> str:
        """The line of the user's function that could not be traced."""
        found = None
        trace = error.__traceback__
        while trace is not None:
            frame = trace.tb_frame
            if "antorcha" not in str(frame.f_globals.get("__name__", "")).split(".")[:1]:
                found = (frame.f_code.co_filename, trace.tb_lineno)
            trace = trace.tb_next
        if found is None:
            return ""
        text = linecache.getline(*found).strip()
        return f"line {found[1]} of {found[0]}" + (f", `{text}`: " if text else ": ")


class UserKernel(PointwiseOp):
    """An op made of a user's function of scalars; see `kernel`."""

    def __init__(self, fn: Callable[..., Any], types: str, name: str | None) -> None:
        self.declared = Declared(fn, name)
        super().__init__(self.declared, types, register=False, method=False, function=False,
                         out=True)  # fmt: skip
        self.__module__ = fn.__module__
        self.__wrapped__ = fn

    def derivative(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates an explicit derivative: ``g`` is the result's gradient, ``out`` the result,
        other parameters are the kernel's own; it returns a gradient for each operand."""
        known = {"g", "out", *self.signature.names}
        strange = [p for p in Declared(fn, None).__code__.co_varnames[: fn.__code__.co_argcount]
                   if p not in known]  # fmt: skip
        if strange:
            raise ArgumentError(
                f"{self.name}.derivative: {strange[0]!r} is neither g, out nor one of "
                f"{', '.join(self.signature.names)}"
            )
        self.traced.clear()  # it knows the gradients that were worked out
        self.plans.clear()
        return super().derivative(fn)

    def computed_in(
        self, rule: str, values: list[Any], extra: Any = (), fixed: Any = ()
    ) -> tuple[list[DType], DType | None]:
        if rule != "result":
            return super().computed_in(rule, values, extra, fixed)
        common = common_dtype([*values, *fixed]) if values else dtypes.get_default_dtype()
        return [common] * len(values), None

    def __repr__(self) -> str:
        return f"<kernel {self.signature}>"

    def __reduce__(self) -> Any:
        return self.__qualname__


class RowKernel:
    """A user's function of rows: one program for every kind of operands; see `kernel`."""

    def __init__(self, fn: Callable[..., Any], name: str | None) -> None:
        declared = Declared(fn, name)
        self.fn = self.__wrapped__ = fn
        self.declared = declared
        self.name = self.__name__ = self.__qualname__ = declared.__name__
        self.__doc__, self.__module__ = fn.__doc__, fn.__module__
        self.derive_fn: Callable[..., Any] | None = None
        self.ops: dict[Any, ProgramOp] = {}

    def derivative(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates an explicit derivative, itself a function of rows: parameters ``g``,
        ``out`` and the kernel's own; it returns a gradient for each operand. For kernels of one
        result."""
        self.derive_fn = fn
        self.ops.clear()
        return fn

    def __call__(self, *args: Any, dim: int = -1, **options: Any) -> Any:
        if modes.subclasses:
            done = hooks.override(self, args, {"dim": dim, **options})
            if done is not NotImplemented:
                return done
        count = len(self.declared.operands)
        if len(args) != count or not all(isinstance(a, Tensor) for a in args):
            if any(isinstance(a, Expr) for a in args):
                return self.fn(*args, **options)
            raise ArgumentError(
                f"{self.name}(): a kernel of rows takes {count} tensors "
                f"({', '.join(self.declared.operands)}), got "
                f"({', '.join([type(a).__name__ for a in args])})"
            )
        layouts = [a._layout for a in args]
        shape = tuple(broadcast_shapes(*[layout.shape for layout in layouts], op=self.name))
        at = normalize_dim(dim, len(shape), op=self.name) - len(shape) if shape else -1
        kinds = self._kinds(layouts, shape, at)
        given = tuple([(name, self._option(name, options[name])) for name in sorted(options)])
        key = (tuple([(k.dtype, k.is_row) for k in kinds]), at, dtypes.get_default_dtype(), given)
        op = self.ops.get(key)
        if op is None:
            op = self.ops[key] = self._make(kinds, at, options)
        result = op(*args)
        results = result if isinstance(result, tuple) else (result,)
        results = tuple([
            out if is_row else T.squeeze(out, at)
            for out, is_row in zip(results, op.program.rows, strict=True)
        ])  # fmt: skip
        return results if len(results) > 1 else results[0]

    def _kinds(self, layouts: list[Layout], shape: tuple[int, ...], at: int) -> tuple[Any, ...]:
        """Of each operand: the dtype it is computed in, and whether it is a row."""
        if not shape:
            raise GraphError(f"{self.name}: a kernel of rows needs a dim, not 0-dim tensors")
        common = common_dtype(list(layouts))
        floats = common.kind in "fc"
        kinds = []
        for layout in layouts:
            single = layout.ndim < -at or layout.shape[at] == 1
            dtype = common if floats and layout.dtype.kind in "fc" else layout.dtype
            kinds.append(RowInput(dtype, not single or shape[at] == 1))
        return tuple(kinds)

    def _option(self, name: str, value: Any) -> Any:
        """What a keyword argument, which is compiled in, is in the key of a program."""
        kind = self.declared.__annotations__.get(name, "Operand")
        if kind == "Operand":
            raise ArgumentError(f"{self.name}() got an unexpected keyword argument {name!r}")
        if kind == "StaticNumber":
            value = to_number(self.name, name, value)
        try:
            hash(value)
        except TypeError:
            raise ArgumentError(
                f"{self.name}: {name} is compiled in, so it must be a number, a string or another "
                f"value with a hash, not {type(value).__name__}"
            ) from None
        return static_key(value)

    def _make(self, kinds: tuple[Any, ...], at: int, options: dict[str, Any]) -> ProgramOp:
        fn = self._traced(self.fn, options)
        op = ProgramOp(self.name, trace_rows(fn, kinds), at)
        if self.derive_fn is not None and op.rule is not None:
            op.rule = ProgramRule(op, self._derivative(op, kinds, options))
        return op

    def _traced(self, fn: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
        def traced(*rows: Any) -> Any:
            try:
                result = fn(*rows, **options)
            except GraphError as error:
                raise GraphError(f"{self.name}: {self.declared.where(error)}{error}") from None
            return tuple(result) if isinstance(result, list) else result

        traced.__name__ = self.name
        return traced

    def _derivative(self, op: ProgramOp, kinds: tuple[Any, ...], options: dict[str, Any]) -> Any:
        fn = self.derive_fn
        assert fn is not None
        if len(op.program.outputs) != 1:
            raise MissingFeature(f"{self.name}: explicit derivatives are for kernels of one result")
        result = RowInput(op.program.outputs[0].dtype, op.program.rows[0])
        names = ("g", *self.declared.operands, "out")
        wanted = fn.__code__.co_varnames[: fn.__code__.co_argcount]

        def chosen(*rows: Any) -> Any:
            by_name = dict(zip(names, rows, strict=True))
            given = {**options, **by_name}
            made = fn(**{name: given[name] for name in wanted})
            made = made if isinstance(made, (tuple, list)) else (made,)
            return tuple([E.const(0, k.dtype) if m is None else m
                          for m, k in zip(made, kinds, strict=True)])  # fmt: skip

        return trace_rows(self._traced(chosen, {}), (result, *kinds, result))

    def __repr__(self) -> str:
        return f"<kernel of rows {self.name}({', '.join(self.declared.operands)})>"


def kernel(
    fn: Callable[..., Any] | None = None,
    *,
    rows: bool = False,
    types: str = "result",
    name: str | None = None,
) -> Any:
    """Makes a fused, differentiable op of a function of scalars (or, with ``rows``, of rows).

    Positional parameters are the operands: tensors (broadcast, promoted as PyTorch does) or
    numbers. Keyword-only parameters are compiled in: each value makes a kernel of its own. It may
    return several values. ``out=`` works.

    Args:
        rows: the function is of whole rows, along ``dim=-1`` of the call: reductions (``x.sum()``,
            ``x.max()``, ``x.mean()``, ``x.var()``) give one value a row. What is one value a row in
            the end has no such dim any more.
        types: what is computed in, and the result's dtype. ``"result"``: the operands' common
            dtype, and what the function makes of it; ``"promote"``: the common dtype; ``"float"``:
            the same, integers made floats; ``"compare"``: bool.
        name: the op's name, for messages and ``grad_fn``.

    The gradient is found symbolically. ``@f.derivative`` gives an explicit one instead: a function
    of ``g`` (the result's gradient), ``out`` (the result) and any of the parameters that returns a
    gradient for each operand.

    >>> @antorcha.kernel
    ... def leaky(x, slope=0.1):
    ...     return torch.where(x > 0, x, slope * x)
    >>> leaky(torch.tensor([-1., 2.]))
    tensor([-0.1000,  2.0000])
    >>> x = torch.tensor([-1., 2.], requires_grad=True)
    >>> leaky(x, 0.5).sum().backward()
    >>> x.grad
    tensor([0.5000, 1.0000])
    >>> @antorcha.kernel(rows=True)
    ... def softmax(x):
    ...     e = (x - x.max().detach()).exp()
    ...     return e / e.sum()
    >>> softmax(torch.tensor([[0., 0.], [1., 1.]]))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    if fn is None:
        return lambda given: kernel(given, rows=rows, types=types, name=name)
    if rows:
        return RowKernel(fn, name)
    return UserKernel(fn, types, name)


# ------------------------------------------------------------- torch functions inside of a kernel
def inline(op: PointwiseOp, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A pointwise op called on expressions: its own expression, with its own type rules."""
    values = op.signature.fill(args, kwargs)
    places: dict[str, int] = {}
    ins: list[Any] = []
    given: list[Any] = []
    statics: dict[str, Any] = {}
    extra: dict[int, str] = {}
    fixed: list[Any] = []
    for param, value in zip(op.signature.params, values, strict=True):
        number = isinstance(value, (bool, int, float, complex)) and param.code in (OPERAND, NUMBER)
        if number and param.code == NUMBER and type(value) is type(param.default):
            number = value != param.default
        if isinstance(value, Expr) or (number and not param.static):
            places[param.name] = len(ins)
            if param.code == NUMBER:
                extra[len(ins)] = param.name
            ins.append(L.contiguous((1,), value.dtype, CPU) if isinstance(value, Expr)
                       else type(value))  # fmt: skip
            given.append(value)
            continue
        if param.code == STATIC and value is not param.default and value is not None:
            assert param.check is not None
            value = param.check(op.name, param.name, value)
        if param.static:
            fixed.append(type(value))
        statics[param.name] = value
    rule = op.types(statics) if callable(op.types) else op.types
    types, out = op.computed_in(rule, ins, extra, fixed)
    exprs = [E.cast(v, t) if isinstance(v, Expr) else E.const(v, t)
             for v, t in zip(given, types, strict=True)]  # fmt: skip
    result = op.fn(**{n: exprs[k] for n, k in places.items()}, **statics)
    results = results_of(result, out or types[0], out)
    return results if isinstance(result, (tuple, list)) else results[0]


def on_expressions(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """``torch.exp`` and its like inside of a kernel: builds the expression."""
    kwargs = kwargs or {}
    if isinstance(func, PointwiseOp):
        return inline(func, args, kwargs)
    name = getattr(func, "name", "")
    found = METHODS.get(name)
    if found is not None:
        return found(*args, **kwargs)
    if isinstance(func, Composite):
        try:
            return func.apply_fn(func.signature.fill(args, kwargs))
        except AttributeError:
            pass
    raise GraphError(
        f"torch.{name or getattr(func, '__name__', func)} is not available in a kernel: it does "
        "not work element by element"
    )


Expr.__torch_function__ = classmethod(on_expressions)  # type: ignore[attr-defined]
Expr.__torch_function_symbolic__ = True  # type: ignore[attr-defined]  # no reason to watch calls

_OTHER_NAMES = {"cast": "to_dtype"}


def on_tensors(name: str, args: tuple[Any, ...]) -> Any:
    """``expr.exp`` and its like on tensors: the op of that name."""
    if name == "detach":
        return args[0].detach()
    if name == "trunc_divide":
        return T.div(*args, rounding_mode="trunc")
    return getattr(T, _OTHER_NAMES.get(name, name))(*args)


E.set_dispatch(on_tensors)
