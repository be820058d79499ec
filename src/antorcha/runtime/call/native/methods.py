"""Ops, methods and ``x[i]`` get builtins of their own in front of their Python functions.

An op is upgraded once, when it is called for the first time: ``op.native`` and its methods then go
by ``calls.py_quick``. ``promote`` is what a builtin calls when it meets a key for which there is no
place: it has Python serve the call, and makes a place of what that did.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from types import BuiltinMethodType, FunctionType
from typing import Any

from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.core.shapes import Size
from antorcha.errors import AntorchaError
from antorcha.lang.native import METH_FASTCALL, METH_KEYWORDS, bind, method_def
from antorcha.runtime import trace
from antorcha.runtime.call import bound
from antorcha.runtime.call import plan as plans
from antorcha.runtime.call.native import arrays, elements, facts, keys, operators
from antorcha.runtime.call.native.calls import py_flush, py_put, py_quick, py_words
from antorcha.runtime.call.native.method import (
    array_method_of,
    call_natively,
    element_method_of,
    fact_method_of,
    method_of,
)
from antorcha.runtime.call.native.places import (
    ALL,
    ALL_SIZES,
    NOTHING_LEFT_OUT,
    ONE,
    THE_SIZE,
    Quick,
)
from antorcha.runtime.call.native.promote import (
    Call,
    place_for,
    place_for_any_size,
    place_for_sizes,
)
from antorcha.runtime.call.native.promote_composites import (
    CompositeSizes,
    Function,
    Ran,
    planned,
)
from antorcha.runtime.call.protocols import OpRecord
from antorcha.runtime.cpython import fast_def
from antorcha.runtime.memory.storage import Storage, wrap
from antorcha.runtime.tensor import Tensor

Learnt = tuple[Any, Call | Ran | str, Any]
"""A call's result, what it ran (or why no place can say it), how results are packed (None: there is
nothing to learn this time)."""
Sizes = Callable[[Any, tuple[Any, ...], dict[str, Any], Any, Any], "Storage | None"]
"""The place for all sizes of a call: of the words of its key without sizes, its arguments, what it
ran, and the packing."""
quicks: list[tuple[str, Any]] = []
"""Every builtin's name and memory (a Quick)."""
reasons: dict[str, str] = {}
"""Why a builtin has left a call to Python for good, the last time."""
_NAMED = METH_FASTCALL | METH_KEYWORDS


def quick_of(
    name: str,
    python: Callable[..., Any],
    serve: Callable[..., Learnt],
    *,
    form: int = keys.FUNCTION,
    loose: int = 0,
    shapes: int = 0,
    any_size: bool = False,
    sizes: Sizes | None = None,
    label: str = "",
    modes_told: int = 0,
) -> BuiltinMethodType:
    """A builtin in front of `python`, which knows nothing yet.

    ``serve(args, kwargs)`` serves a call and says what there is to learn of it. `form`: how its
    arguments are read (`keys`). `loose`, `shapes`: see there. `any_size`: sizes make no difference
    to it. `sizes`: what finds a place for all calls that differ in sizes only. `label`: its name in
    a profile, if not `name`. `modes_told`: the bits of the mode that make a difference to it: a
    function may do other things where nothing is recorded.
    """
    memory = (ctypes.c_int64 * (Quick.size // 8))()

    def promote(*args: Any, **kwargs: Any) -> Any:
        # before the call, which may change what it is about
        key = words(NOTHING_LEFT_OUT)(*args, **kwargs)
        family = words(THE_SIZE)(*args, **kwargs) if any_size else None
        form = words(ALL_SIZES)(*args, **kwargs) if sizes is not None else None
        result, ran, pack = serve(args, kwargs)
        given: tuple[Any, ...] = (*args, *kwargs, *kwargs.values())
        call = ran.call if isinstance(ran, Ran) else ran
        if isinstance(ran, Ran):
            given, pack = ran.arguments, ran.pack
        if key is not None and pack is not None:
            place, why = place_for(key, given, call, pack)
            put(place)
            if why:
                reasons[name] = why
            if family is not None and isinstance(call, Call):
                put(place_for_any_size(family, given, call))
            known = None if form is None or sizes is None else sizes(form, args, kwargs, call, pack)
            if known is not None:
                put(known)
        return result

    memory[:7] = [
        id(python), id(promote), loose, shapes, int(any_size), int(sizes is not None), modes_told,
    ]  # fmt: skip
    memory[Quick.fields["label"][0] // 8] = id(trace.label_of(label or name))
    quicks.append((name, memory))
    storage = wrap(ctypes.addressof(memory), Quick.size, (memory, python, promote))
    put = bind(_put_def(), storage)
    words = functools.cache(lambda without: bind(_words_def(form, without), storage))
    plans.on_flush(bind(_flush_def(), storage))
    made: BuiltinMethodType = bind(method_def(name, py_quick.spec(FORM=form).addr, _NAMED), storage)
    return made


@functools.cache
def _flush_def() -> Any:
    return fast_def("flush", py_flush.spec().addr, "Empties the table.")


@functools.cache
def _put_def() -> Any:
    return fast_def("put", py_put.spec().addr, "Puts a place into the table.")


@functools.cache
def _words_def(form: int, without: int) -> Any:
    return method_def("words", py_words.spec(FORM=form, WITHOUT=without).addr, _NAMED)


# ---- what there is to learn
def by_plans(
    form: Any, args: tuple[Any, ...], kwargs: dict[str, Any], call: Call | str, pack: Any
) -> Storage | None:
    """The place for all sizes of a call by one plan."""
    if isinstance(call, str) or call.out is not None:
        return None
    return place_for_sizes(form, (*args, *kwargs, *kwargs.values()), call, pack)


def by_tapes(op: OpRecord) -> Sizes:
    """What finds the place for all sizes of a composite's call."""
    known = CompositeSizes(op)
    return lambda form, args, kwargs, call, pack: known.place(form, (args, kwargs))


def of_op(op: OpRecord, python: Callable[..., Any]) -> Callable[..., Learnt]:
    """Serves calls of an op that binds its arguments to one plan."""

    def serve(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Learnt:
        if kwargs.get("out") is not None:
            return written(op, python, args, kwargs)
        result = python(*args, **kwargs)
        try:
            key, operands, flat, numbers, _ = op.bind(args, kwargs)
        except AntorchaError:  # what else the Python function takes
            return result, "another form of the call", ONE
        plan = op.plans.get(key)
        if plan is None:
            return result, "no plan of its own", ONE
        if plan.sequence is plans.UNKNOWN:
            return result, "", None
        call = Call(plan, operands, flat, numbers, _loose(op, args))
        return result, call, packing(plan, result)

    return serve


def written(
    op: Any, python: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Learnt:
    """Serves a call with ``out=``."""
    out = kwargs["out"]
    rest = {name: value for name, value in kwargs.items() if name != "out"}
    before = out._layout if isinstance(out, Tensor) else None
    result = python(*args, **kwargs)
    plan = None
    if before is not None and before is out._layout and next(reversed(kwargs)) == "out":
        key, operands, flat, numbers, _ = op.bind(args, rest)
        plan = op.plans.get(("out", (before,), *key))
    if plan is None:
        return result, "out= that is resized, or of several tensors", ONE
    return result, Call(plan, operands, flat, numbers, _loose(op, args), out=out), ONE


def _loose(op: Any, args: tuple[Any, ...]) -> list[Any]:
    """The arguments of which a key has only the type (``keys.add_loose``)."""
    mask = _loose_mask(op)
    return [a for k, a in enumerate(args) if mask >> k & 1 and type(a) in (int, float)]


def packing(plan: Any, result: Any) -> Any:
    """How ``path.execute`` packs a plan's results: ALL, ONE, or a function."""
    if plan.kind in (plans.FRESH, plans.VIEW):
        return ONE
    if type(result) is tuple and len(result) == len(plan.outs):
        return ALL
    op = plan.op
    return op.returns or (lambda *outs: op.pack(outs))


def of_composite(op: OpRecord | Function) -> Callable[..., Learnt]:
    """Serves calls of a function made of ops; what it runs is found by planning it alone."""

    def serve(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Learnt:
        if modes.profiled:  # a profile would show what is only planned
            return op.in_python(*args, **kwargs), "", None
        found = planned(op, (args, kwargs))  # before the call, which may change its arguments
        return op.in_python(*args, **kwargs), found, ONE

    return serve


def of_write(op: OpRecord, python: Callable[..., Any]) -> Callable[..., Learnt]:
    """Serves calls of an op's in-place form."""

    def serve(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Learnt:
        result = python(*args, **kwargs)
        key, operands, flat, numbers, _ = op.bind(args, kwargs)
        plan = op.plans.get(("in place", *key))
        if plan is None:
            return result, "", None
        call = Call(plan, operands, flat, numbers, _loose(op, args), writes=True)
        return result, call, ONE

    return serve


def of_draw(op: Any, python: Callable[..., Any]) -> Callable[..., Learnt]:
    """Serves calls that fill a tensor with random numbers."""

    def serve(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Learnt:
        call: Call | str
        try:
            plan, target = op.plan_write(args, kwargs)
            call = Call(plan, [target], (), (), writes=True)
        except Exception as error:  # whatever it is, Python serves such calls
            call = str(error) or type(error).__name__
        return python(*args, **kwargs), call, ONE

    return serve


def of_index(
    python: Callable[..., Any], find: Callable[..., plans.Plan | None]
) -> Callable[..., Learnt]:
    """Serves ``x[i]``."""
    by_tensors = of_composite(Function("__getitem__", python))

    def serve(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Learnt:
        index = args[1] if isinstance(args[1], tuple) else (args[1],)
        if any([isinstance(item, Tensor) for item in index]):
            return by_tensors(args, kwargs)
        result = python(*args)
        plan = find(*args)
        if plan is None or plan.kind != plans.VIEW:
            return result, "", None  # (what is not known now may be known soon)
        source = args[0]
        return result, Call(plan, [source], [source._storage, source._offset], ()), ONE

    return serve


# ---- putting builtins in place
def upgrade(op: Any) -> Callable[..., Any] | None:
    """Gives an op, or the in-place form of one, which is called for the first time, its builtin,
    and its methods and operators; None: it is served by Python."""
    quick = _quick_of_write(op) if op.is_inplace else _quick_of_op(op)
    if quick is not None:
        op.native = quick
        operators.use(op, quick.__self__)
        for name in op.methods:
            if bound.is_bound(name):
                setattr(Tensor, name, method_of(quick, bound.methods[name]))
    return quick


def _quick_of_op(op: Any) -> BuiltinMethodType | None:
    if op.__module__ != "antorcha" or not op.upgradable or (op.random and not op.is_composite):
        return None
    call_natively(type(op))
    if op.is_composite:
        return quick_of(
            op.name, op.in_python, of_composite(op), shapes=op.signature.shape_mask,
            sizes=by_tapes(op), modes_told=modes.NO_GRAD,
        )  # fmt: skip
    return quick_of(
        op.name, op.in_python, of_op(op, op.in_python), loose=_loose_mask(op),
        any_size=op.any_size and not op.own_bind, shapes=op.signature.shape_mask, sizes=_sizes(op),
    )  # fmt: skip


def _quick_of_write(form: Any) -> BuiltinMethodType:
    op, python = form.op, form.in_python
    if op.random:
        return quick_of(form.name, python, of_draw(op, python))
    serve = of_write(op, python)
    return quick_of(form.name, python, serve, loose=_loose_mask(op), sizes=_sizes(op))


def _loose_mask(op: Any) -> int:
    """Which arguments are numbers whose values make no difference. (What binds its arguments in a
    way of its own may look at them, and at how tensors lie.)"""
    return 0 if op.own_bind else op.signature.number_mask


def _sizes(op: Any) -> Sizes | None:
    return by_plans if op.outlined and not op.own_bind else None


def upgrade_property(name: str) -> None:
    """Puts a builtin in front of a property that is made of ops, such as ``x.T``, when it is read
    for the first time."""
    found = Tensor.__dict__.get(name)
    if type(found) is not property or found.fget is None:
        return
    python = found.fget
    label = {"T": "numpy_T", "H": "matrix_H"}.get(name, name)

    @functools.wraps(python)
    def first(tensor: Tensor) -> Any:
        if Tensor.__dict__.get(name) is waiting:
            of_ops = of_composite(Function(name, python))
            quick = quick_of(name, python, of_ops, label=label, modes_told=modes.NO_GRAD)
            setattr(Tensor, name, property(quick, found.fset, found.fdel, found.__doc__))
            return quick(tensor)
        return python(tensor)

    waiting = property(first, found.fset, found.fdel, found.__doc__)
    setattr(Tensor, name, waiting)


def upgrade_index() -> None:
    """Puts a builtin in front of ``x[i]``, when it is called for the first time."""
    name, find = "__getitem__", hooks.plan_of_view
    if not bound.is_bound(name):
        return
    python = bound.methods[name]

    @functools.wraps(python)
    def first(tensor: Tensor, index: Any) -> Any:
        if Tensor.__dict__.get(name) is first:
            quick = quick_of(
                name, python, of_index(python, find), form=keys.INDEX, modes_told=modes.NO_GRAD
            )
            setattr(Tensor, name, method_of(quick, python, keys.INDEX))
            return quick(tensor, index)
        return python(tensor, index)

    setattr(Tensor, name, first)


def upgrade_reader(cls: type, name: str, result: Callable[[Any, int], Any], kind: int) -> None:
    """Puts machine code in front of a method that reads an element, or what a layout says, when it
    is called for the first time. ``result(python, kind)`` gives the method."""
    python = cls.__dict__.get(name)
    if not isinstance(python, FunctionType) or not python.__module__.startswith("antorcha."):
        return

    @functools.wraps(python)
    def first(*args: Any, **kwargs: Any) -> Any:
        if cls.__dict__.get(name) is first:
            setattr(cls, name, result(python, kind))
        return python(*args, **kwargs)

    setattr(cls, name, first)


def install() -> None:
    """Tells the Python path, and puts builtins in front of ``x[i]`` and what reads an element, or
    what a layout says."""
    keys.install()
    elements.install()
    for name, kind in elements.METHODS.items():
        upgrade_reader(Tensor, name, element_method_of, kind)
    for name, kind in facts.METHODS.items():
        upgrade_reader(Tensor, name, fact_method_of, kind)
    upgrade_reader(Size, "__getitem__", fact_method_of, facts.ITEM)
    upgrade_reader(Tensor, "numpy", array_method_of, 0)
    hooks.upgrade, hooks.share_array = upgrade, arrays.share
    for name in ("T", "mT", "H", "mH", "real", "imag"):
        upgrade_property(name)
    upgrade_index()
