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
from antorcha.runtime.call.path import call, call_inplace, execute, writer
from antorcha.runtime.call.plan import FRESH, VIEW, Plan, remember
from antorcha.runtime.tensor import Tensor

ANY = 1 << 30
_OPERANDS = ("Tensor", "Operand", "Power")
operators: dict[str, Any] = {}
"""The ops behind Tensor's operators, ``add`` of ``__add__``, that are ``binary``."""
forms: dict[str, Any] = {}
"""Tensor's operators as they were bound, by name: ``__add__``, ``__radd__``, ``__lt__``."""
methods: dict[str, list[tuple[str, Any]]] = {}
"""Tensor's methods: by their op's name (or its in-place form's), theirs, and the functions."""
reading: tuple[Callable[..., Any], Callable[..., Any]] | None = None
"""``x[i]``, and what finds the plan of such a call; set by tensor.indexing."""
upgrade: Callable[[Any, bool], None] | None = None
"""Set by the native path: an op that is called, or (True) whose ``form`` has found a plan, may get
a builtin of its own."""


def form(op: Any) -> tuple[Callable[..., Any], int, int] | None:
    """The shortest way for the commonest calls of an op: without keywords, and the fewest and the
    most arguments that it takes."""
    if hasattr(op, "view_plan"):
        return view(op), 1, ANY
    signature = op.signature
    if signature.positional and signature.params[0].kind in ("Tensor", "Operand"):
        if signature.positional == 1 or signature.required == 1:
            return valued(op), 1, ANY
        kinds = [p.kind for p in signature.params]
        tensors = sum([kind in _OPERANDS or kind in ("OptTensor", "Tensors") for kind in kinds])
        if op.short_binary and signature.required == 2 == tensors and kinds[1] in _OPERANDS:
            return binary(op), 2, 2
    return None


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
    if not b and op.own_bind:  # x // 0
        return otherwise(op, (a, b))
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


def view(op: Any) -> Callable[..., Any]:
    """``op(a, 2, 5)`` for a view op and numbers by value, by the shortest way."""
    plans = op.short_plans

    def short(a: Any, *args: Any, **kwargs: Any) -> Any:
        plain = not (modes.busy or kwargs)
        for each in args:  # 1.0 would be the same key as 1
            if type(each) is not int and not (type(each) is tuple and _all_int(each)):
                plain = False
        if not plain:  # the native path serves such calls, too
            if upgrade is not None:
                upgrade(op, False)
            return op.slow(a, *args, **kwargs)
        try:
            plan = plans[a._layout, *args]
        except (KeyError, AttributeError):
            plan = None
        if plan is None:
            result = op.slow(a, *args)
            _learn_view(op, a, args)
            return result
        return quick_view(a, plan)

    return short


def _all_int(sizes: tuple[Any, ...]) -> bool:
    return [each for each in sizes if type(each) is not int] == []


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


def _keep(op: Any, key: Any, plan: Plan) -> None:
    """Keeps a plan for the short cuts."""
    remember(op.short_plans, key, plan)
    if upgrade is not None:
        upgrade(op, True)


def _learn_view(op: Any, a: Tensor, args: tuple[Any, ...]) -> None:
    """Lets the short cut find the plan of a view next time, if its arguments are its key."""
    plan = op.view_plan(a, args)
    if plan is not None and plan.kind == VIEW:
        _keep(op, (a._layout, *args), plan)


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
        _keep(op, key[0], plan)
    elif isinstance(args[0], Tensor):
        _keep(op, tuple(key), plan)


def valued(op: Any) -> Callable[..., Any]:
    """``op(a, 0)`` for one tensor and integers by value (a dim)."""
    plans = op.short_plans

    def short(a: Any, *args: Any, **kwargs: Any) -> Any:
        for each in args:  # 1.0 and True would be the same key as 1
            if type(each) is not int:
                return op.slow(a, *args, **kwargs) if kwargs else _numbered(op, a, args)
        try:
            plan = plans[a._layout, *args] if args else plans[a._layout]
        except (KeyError, AttributeError):
            plan = None
        if modes.busy or kwargs:
            return op.slow(a, *args, **kwargs)
        if plan is None:
            return _numbered(op, a, args)
        made = plan.run(a._storage, a._offset)
        if a._rg and plan.rule is not None:
            attach_to(plan, a, None, (), made)
        return made

    return short


def _numbered(op: Any, a: Any, args: tuple[Any, ...]) -> Any:
    """``op(a, 0.5, 1)``: arguments that are numbers which the kernel gets, or floats and flags by
    value; ops of several results; and all that has no plan."""
    if modes.busy:
        return op.slow(a, *args)
    kinds = tuple([type(each) for each in args])
    for each in args:
        if type(each) is tuple and not _all_int(each):
            return op.slow(a, *args)
    plans = op.short_plans
    try:
        plan = plans.get((a._layout, kinds))
        numbers = args if plan is not None else ()
        if plan is None:
            plan = plans.get((a._layout, kinds, args))
    except (TypeError, AttributeError):
        plan = None
    if plan is None:
        result = op.slow(a, *args)
        if all([kind in _BY_VALUE for kind in kinds]):
            _learn_valued(op, a, args, kinds)
        return result
    operands = (a,) + (None,) * (len(plan.tensors) - 1)
    return execute(plan, operands, [a._storage, a._offset, *numbers], numbers, True)


_BY_VALUE = (int, float, bool, tuple, str, type(None))


def _learn_valued(op: Any, a: Any, args: tuple[Any, ...], kinds: tuple[type, ...]) -> None:
    """Keeps the plan of a call by value."""
    if modes.subclasses or not isinstance(a, Tensor):
        return
    key, operands, _, numbers, _ = op.bind((a, *args), {})
    plan = op.plans.get(key)
    if plan is None or len(operands) != len(plan.tensors):
        return
    if len(numbers) == len(args) and numbers:  # the kernel's arguments: clamp(0, 1)
        _keep(op, (a._layout, kinds), plan)
    elif numbers or operands[1:] != [None] * (len(operands) - 1):
        return
    elif plan.kind == FRESH and len(operands) == 1 and all([k is int for k in kinds]):
        _keep(op, (a._layout, *args) if args else a._layout, plan)
    elif len(operands) == 1:
        _keep(op, (a._layout, kinds, args), plan)


def inplace(op: Any) -> Callable[..., Any]:
    """``a.op_(b)`` for a tensor, or a number, where nothing is recorded and nothing overlaps."""
    writers = op.write_plans

    def short(a: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not (kwargs or modes.busy):
            (b,) = args
            kind = type(b)
            try:
                if kind is float or kind is int:
                    if not b and op.own_bind:
                        return call_inplace(op, (a, b), {})
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
    if not number and b._layout.device is not a._layout.device:  # it was moved first
        return
    if number and not op.signature.number_mask & 2:  # a number by value: logit_(0.1)
        return
    plan = op.plans.get(("in place", *op.bind((a, b), {})[0]))
    if plan is not None and plan.kind == FRESH:
        key = (a._layout, type(b) if number else b._layout)
        remember(op.write_plans, key, writer(plan))
