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
from antorcha.runtime.call.node import attach_to
from antorcha.runtime.call.path import call, call_inplace, writer
from antorcha.runtime.call.plan import FRESH, VIEW, Plan, remember
from antorcha.runtime.tensor import Tensor


def general(op: Any, args: tuple[Any, ...]) -> Any:
    """The general way, for what has no plan here yet; from now on it has one, if it can."""
    result = call(op, args, {})
    _learn(op, args)
    return result


def binary(op: Any, otherwise: Callable[..., Any] = general) -> Callable[..., Any]:
    """``op(a, b)`` for two tensors, or a tensor and a number, by the shortest way; ``otherwise``
    serves what has no plan yet, or cannot have one."""
    plans = op.short_plans

    def short(a: Any, b: Any) -> Any:
        kind = type(b)
        if kind is float or kind is int:
            return _binary_number(op, a, b, otherwise)
        try:
            plan = plans[a._layout, b._layout]
        except (KeyError, AttributeError):
            plan = None  # (an error of the general way shall not seem to come from this one)
        if plan is None:
            return otherwise(op, (a, b))
        if modes.busy:
            return call(op, (a, b), {})
        made = plan.run(a._storage, a._offset, b._storage, b._offset)
        if (a._rg or b._rg) and plan.rule is not None:
            attach_to(plan, a, b, (), made)
        return made

    return short


def _binary_number(op: Any, a: Any, b: Any, otherwise: Callable[..., Any]) -> Any:
    """The case of a Python number on the right."""
    try:
        if op.static_number:
            plan = op.short_plans[a._layout, type(b), b]
        else:
            plan = op.short_plans[a._layout, type(b)]
    except (KeyError, AttributeError):
        plan = None
    if plan is None:
        return otherwise(op, (a, b))
    if modes.busy:
        return call(op, (a, b), {})
    numbers = () if op.static_number else (b,)
    made = plan.run(a._storage, a._offset, *numbers)
    if a._rg and plan.rule is not None:
        attach_to(plan, a, None, numbers, made)
    return made


def unary(op: Any) -> Callable[..., Any]:
    """``op(a)`` with every other argument at its default, by the shortest way."""
    plans = op.short_plans

    def short(a: Any) -> Any:
        try:
            plan = plans[a._layout]
        except (KeyError, AttributeError):
            plan = None
        if plan is None:
            return general(op, (a,))
        if modes.busy:
            return call(op, (a,), {})
        made = plan.run(a._storage, a._offset)
        if a._rg and plan.rule is not None:
            attach_to(plan, a, None, (), made)
        return made

    return short


def view(op: Any) -> Callable[..., Any]:
    """``op(a, 2, 5)`` for a view op and numbers by value, by the shortest way."""
    plans = op.short_plans

    def short(a: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            plan = plans[a._layout, *args]
        except (KeyError, TypeError, AttributeError):
            plan = None
        if modes.busy or kwargs:
            return op(a, *args, **kwargs)
        if plan is None:
            result = op(a, *args, **kwargs)
            _learn_view(op, a, args)
            return result
        return quick_view(a, plan)

    return short


def quick_view(source: Tensor, plan: Plan) -> Tensor:
    """``execute`` of a view's plan, in the default mode."""
    storage = source._storage
    base = source._base
    seen = storage.version
    if base is None:
        base = source
        try:
            source._seen += 1
        except AttributeError:
            source._seen = 1
    else:
        base._seen += 1
        if source._seen < 0:
            seen = source._seen
    made = plan.run(storage, source._offset + plan.delta, base, seen)
    if source._rg and plan.rule is not None:
        attach_to(plan, source, None, (), made)
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
        except (KeyError, TypeError, AttributeError):
            plan = None
        if modes.busy or kwargs:
            return op(a, *args, **kwargs)
        if plan is None:
            result = op(a, *args, **kwargs)
            if all([type(e) in (int, bool, tuple) for e in args]):
                _learn_valued(op, a, args)
            return result
        made = plan.run(a._storage, a._offset)
        if a._rg and plan.rule is not None:
            attach_to(plan, a, None, (), made)
        return made

    return short


def _learn_valued(op: Any, a: Any, args: tuple[Any, ...]) -> None:
    """Keeps the plan of a call by value. True and 1 are one key, and mean the same here."""
    if modes.subclasses or not isinstance(a, Tensor):
        return
    plan = op.plans.get(op.bind((a, *args), {})[0])
    if plan is not None and plan.kind == FRESH:
        remember(op.short_plans, (a._layout, *args) if args else a._layout, plan)


def inplace(op: Any) -> Callable[..., Any]:
    """``a.op_(b)`` for a tensor, or a number, where nothing is recorded and nothing overlaps."""
    writers = op.write_plans

    def short(a: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not (kwargs or modes.busy):
            (b,) = args
            kind = type(b)
            try:
                if kind is float or kind is int:
                    write = writers[a._layout, kind]
                    done = not (a._rg or a._base is not None) and write(a._storage, a._offset, b)
                else:
                    write = writers[a._layout, b._layout]
                    done = not (
                        a._rg or b._rg or a._base is not None or b._base is not None
                    ) and write(a._storage, a._offset, b._storage, b._offset)
            except (KeyError, AttributeError):
                write = done = None
            if done:
                return a
            if write is None:
                result = call_inplace(op, (a, b), {})
                _learn_inplace(op, a, b)
                return result
        return call_inplace(op, (a, *args), kwargs)

    return short


def _learn_inplace(op: Any, a: Any, b: Any) -> None:
    """Keeps how to write, for a target that has no element twice."""
    number = type(b) is float or type(b) is int
    if not isinstance(a, Tensor) or not (number or isinstance(b, Tensor)):
        return
    if modes.subclasses or op.static_number or not a._layout.contiguous:
        return
    plan = op.plans.get(("in place", *op.bind((a, b), {})[0]))
    if plan is not None and plan.kind == FRESH:
        key = (a._layout, type(b) if number else b._layout)
        remember(op.write_plans, key, writer(plan))
