"""Short cuts to the call path, behind operators and methods: same plans, same results, fewer steps.

Each is a closure over an op's ``short_plans``: plans found by the arguments themselves (layouts,
the types of run-time numbers, the values of the rest) without binding them to parameters. What has
no plan there yet, and every call in an unusual mode, goes the general way (``path.call``), which
then lets the short cut find its plan (``_learn``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha import modes
from antorcha.runtime.call.node import attach
from antorcha.runtime.call.path import call, call_inplace, shared
from antorcha.runtime.call.plan import FRESH, VIEW, Plan, remember
from antorcha.runtime.tensor import Tensor, bare, new


def binary(op: Any) -> Callable[..., Any]:
    """``op(a, b)`` for two tensors, or a tensor and a number, by the shortest way."""
    plans = op.short_plans

    def short(a: Any, b: Any) -> Any:
        try:
            plan = plans[a._layout, b._layout]
            if modes.busy:
                return call(op, (a, b), {})
        except (KeyError, AttributeError):
            return _binary_number(op, a, b)
        made = new(Tensor)
        made._storage = plan.fresh(a._storage, a._offset, b._storage, b._offset)
        made._layout = plan.out
        made._offset = made._nr = 0
        made._fn = made._grad = made._base = made._extra = None
        made._rg = False
        if (a._rg or b._rg) and plan.rule is not None:
            attach(plan, (a, b), (), (made,))
        return made

    return short


def _binary_number(op: Any, a: Any, b: Any) -> Any:
    """The case of a Python number on the right, and all that has no plan yet."""
    kind = type(b)
    if (kind is float or kind is int) and not modes.busy:
        plan = None
        if isinstance(a, Tensor):
            if op.static_number:
                plan = op.short_plans.get((a._layout, kind, b))
                if plan is not None:
                    made = bare(plan.out, plan.fresh(a._storage, a._offset))
                    if a._rg and plan.rule is not None:
                        attach(plan, (a, None), (), (made,))
                    return made
            plan = op.short_plans.get((a._layout, kind))
        if plan is not None:
            made = bare(plan.out, plan.fresh(a._storage, a._offset, b))
            if a._rg and plan.rule is not None:
                attach(plan, (a, None), (b,), (made,))
            return made
    result = call(op, (a, b), {})
    _learn(op, (a, b))
    return result


def unary(op: Any) -> Callable[..., Any]:
    """``op(a)`` with every other argument at its default, by the shortest way."""
    plans = op.short_plans

    def short(a: Any) -> Any:
        try:
            plan = plans[a._layout]
            if modes.busy:
                return call(op, (a,), {})
        except (KeyError, AttributeError):
            result = call(op, (a,), {})
            _learn(op, (a,))
            return result
        made = bare(plan.out, plan.fresh(a._storage, a._offset))
        if a._rg and plan.rule is not None:
            attach(plan, (a,), (), (made,))
        return made

    return short


def view(op: Any) -> Callable[..., Any]:
    """``op(a, 2, 5)`` for a view op and numbers by value, by the shortest way."""
    plans = op.short_plans

    def short(a: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            plan = plans[a._layout, *args]
            if modes.busy or kwargs:
                return op(a, *args, **kwargs)
        except (KeyError, TypeError, AttributeError):
            result = op(a, *args, **kwargs)
            if not kwargs and not modes.subclasses:
                _learn_view(op, a, args)
            return result
        return quick_view(a, plan)

    return short


def quick_view(source: Tensor, plan: Plan) -> Tensor:
    """``execute`` of a view's plan, in the default mode."""
    made = new(Tensor)
    storage = made._storage = source._storage
    made._layout = plan.out
    made._offset = source._offset + plan.delta
    made._nr = 0
    made._fn = made._grad = made._extra = None
    made._rg = False
    base = source._base
    if base is None:
        made._base = source
        made._seen = storage.version
        try:
            source._seen += 1
        except AttributeError:
            source._seen = 1
    else:
        made._base = base
        base._seen += 1
        version = storage.version
        made._seen = version if source._seen >= 0 else source._seen
    if source._rg and plan.rule is not None:
        attach(plan, (source,), (), (made,))
    return made


def _learn_view(op: Any, a: Tensor, args: tuple[Any, ...]) -> None:
    """Lets the short cut find the plan of a view next time, if its arguments are its key."""
    for each in args:
        if type(each) is not int and type(each) is not tuple:
            return
        if type(each) is tuple and not all([type(e) is int for e in each]):
            return
    plan = op.view_plan(a, args)
    if plan is not None and plan.kind == VIEW:
        remember(op.short_plans, (a._layout, *args), plan)


def _learn(op: Any, args: tuple[Any, ...]) -> None:
    """After the general way has served a call: lets the short cut find its plan next time."""
    if modes.subclasses:
        return
    try:
        plan = op.plans.get(op.bind(args, {})[0])
    except TypeError:
        return
    if plan is None or plan.kind != FRESH:
        return
    key: list[Any] = [a._layout if isinstance(a, Tensor) else type(a) for a in args]
    if op.static_number and not isinstance(args[-1], Tensor):
        key.append(args[-1])
    if len(args) == 1:
        op.short_plans[key[0]] = plan
    elif isinstance(args[0], Tensor):
        op.short_plans[tuple(key)] = plan


def valued(op: Any) -> Callable[..., Any]:
    """``op(a, 0, True)`` for one tensor and arguments by value (a dim, a flag)."""
    plans = op.short_plans

    def short(a: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            plan = plans[a._layout, *args] if args else plans[a._layout]
            if modes.busy or kwargs:
                return op(a, *args, **kwargs)
        except (KeyError, TypeError, AttributeError):
            result = op(a, *args, **kwargs)
            if not kwargs and all([type(e) in (int, bool, tuple) for e in args]):
                _learn_valued(op, a, args)
            return result
        made = bare(plan.out, plan.fresh(a._storage, a._offset))
        if a._rg and plan.rule is not None:
            attach(plan, (a,), (), (made,))
        return made

    return short


def _learn_valued(op: Any, a: Any, args: tuple[Any, ...]) -> None:
    """Keeps the plan of a call by value. True and 1 are one key, and mean the same here."""
    if modes.subclasses or not isinstance(a, Tensor):
        return
    plan = op.plans.get(op.bind((a, *args), {})[0])
    if plan is not None and plan.kind == FRESH:
        remember(op.short_plans, (a._layout, *args) if args else a._layout, plan)


_NONE: Any = object()


def inplace(op: Any) -> Callable[..., Any]:
    """``a.op_(b)`` for a tensor, or a number, where nothing is recorded and nothing overlaps."""
    plans = op.write_plans

    def short(a: Any, b: Any = _NONE, *rest: Any, **kwargs: Any) -> Any:
        if rest or kwargs or modes.busy:
            return call_inplace(op, (a, *(() if b is _NONE else (b,)), *rest), kwargs)
        try:
            plan = plans[a._layout, b._layout]
        except (KeyError, AttributeError):
            return _inplace_number(op, a, b)
        storage, other = a._storage, b._storage
        if a._rg or b._rg or a._base is not None or b._base is not None or (
            a is not b and shared(other, storage)
        ):
            return call_inplace(op, (a, b), {})
        version = storage.version
        if version < 0:
            return call_inplace(op, (a, b), {})
        offset = a._offset
        plan.into(storage, offset, storage, offset, other, b._offset)
        storage.version = version + 1
        return a

    return short


def _inplace_number(op: Any, a: Any, b: Any) -> Any:
    """The case of a number, and all that has no plan yet."""
    if b is _NONE:
        return call_inplace(op, (a,), {})
    kind = type(b)
    number = kind is float or kind is int
    if number and isinstance(a, Tensor) and not (a._rg or a._base is not None):
        plan = op.write_plans.get((a._layout, kind))
        storage = a._storage
        if plan is not None and storage.version >= 0:
            plan.into(storage, a._offset, storage, a._offset, b)
            storage.version += 1
            return a
    result = call_inplace(op, (a, b), {})
    if isinstance(a, Tensor) and (number or isinstance(b, Tensor)):
        _learn_inplace(op, a, b, number)
    return result


def _learn_inplace(op: Any, a: Any, b: Any, number: bool) -> None:
    """Keeps an in-place plan whose target has no element twice."""
    if modes.subclasses or op.static_number or not a._layout.contiguous:
        return
    plan = op.plans.get(("in place", *op.bind((a, b), {})[0]))
    if plan is not None and plan.kind == FRESH:
        remember(op.write_plans, (a._layout, type(b) if number else b._layout), plan)
