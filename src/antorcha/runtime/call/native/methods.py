"""Ops, methods and ``x[i]`` get builtins of their own in front of their Python functions.

An op is upgraded once, when it is called for the second time: ``op.native`` and its methods then go
by ``calls.py_quick``. ``teach`` is what a builtin calls when it has met a key twice: it has Python
serve the call, and makes a place of what that did.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from antorcha import modes
from antorcha.errors import ArgumentError
from antorcha.lang.native import METH_FASTCALL, METH_KEYWORDS, bind, method_def
from antorcha.runtime import trace
from antorcha.runtime.call import path, short
from antorcha.runtime.call import plan as plans
from antorcha.runtime.call.native import elements, keys
from antorcha.runtime.call.native.calls import py_flush, py_put, py_quick, py_words
from antorcha.runtime.call.native.learn import (
    Call,
    place_for,
    place_for_any_size,
    place_for_sizes,
)
from antorcha.runtime.call.native.learn_composites import (
    CompositeSizes,
    Function,
    Ran,
    planned,
)
from antorcha.runtime.call.native.method import call_natively, element_method_of, method_of
from antorcha.runtime.call.native.places import (
    ALL,
    ALL_SIZES,
    NOTHING_LEFT_OUT,
    ONE,
    THE_SIZE,
    Quick,
)
from antorcha.runtime.cpython import fast_def
from antorcha.runtime.storage import Storage, wrap
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
    index: bool = False,
    loose: int = 0,
    shapes: int = 0,
    any_size: bool = False,
    sizes: Sizes | None = None,
    label: str = "",
) -> Callable[..., Any]:
    """A builtin in front of `python`, which knows nothing yet.

    ``serve(args, kwargs)`` serves a call and says what there is to learn of it. `index`: the call
    is ``x[i]``. `loose`, `shapes`: see ``keys.read_call``. `any_size`: sizes make no difference
    to it. `sizes`: what finds a place for all calls that differ in sizes only. `label`: its name in
    a profile, if not `name`.
    """
    memory = (ctypes.c_int64 * (Quick.size // 8))()

    def teach(*args: Any, **kwargs: Any) -> Any:
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

    memory[:6] = id(python), id(teach), loose, shapes, int(any_size), int(sizes is not None)
    memory[Quick.fields["label"][0] // 8] = id(trace.label_of(label or name))
    quicks.append((name, memory))
    storage = wrap(ctypes.addressof(memory), Quick.size, (memory, python, teach))
    put = bind(_put_def(), storage)
    words = functools.cache(lambda without: bind(_words_def(index, without), storage))
    plans.on_flush(bind(_flush_def(), storage))
    made: Callable[..., Any] = bind(
        method_def(name, py_quick.spec(INDEX=index).addr, _NAMED), storage
    )
    return made


@functools.cache
def _flush_def() -> Any:
    return fast_def("flush", py_flush.spec().addr, "Empties the table.")


@functools.cache
def _put_def() -> Any:
    return fast_def("put", py_put.spec().addr, "Puts a place into the table.")


@functools.cache
def _words_def(index: bool, without: int) -> Any:
    return method_def("words", py_words.spec(INDEX=index, WITHOUT=without).addr, _NAMED)


# ---- what there is to learn
def by_plans(
    form: Any, args: tuple[Any, ...], kwargs: dict[str, Any], call: Call | str, pack: Any
) -> Storage | None:
    """The place for all sizes of a call by one plan."""
    if isinstance(call, str):
        return None
    return place_for_sizes(form, (*args, *kwargs, *kwargs.values()), call, pack)


def by_tapes(op: Any) -> Sizes:
    """What finds the place for all sizes of a composite's call."""
    known = CompositeSizes(op)
    return lambda form, args, kwargs, call, pack: known.place(form, (args, kwargs))


def of_op(op: Any, python: Callable[..., Any]) -> Callable[..., Learnt]:
    """Serves calls of an op that binds its arguments to one plan."""

    def serve(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Learnt:
        result = python(*args, **kwargs)
        if "out" in kwargs:
            return result, "out=", ONE
        try:
            key, operands, flat, numbers, _ = op.bind(args, kwargs)
        except ArgumentError:  # what else the Python function takes
            return result, "another form of the call", ONE
        plan = op.plans.get(key)
        if plan is None:
            return result, "no plan of its own", ONE
        if plan.sequence is plans.UNKNOWN:
            return result, "", None
        call = Call(plan, operands, flat, numbers, _loose(op, args))
        return result, call, packing(plan, result)

    return serve


def _loose(op: Any, args: tuple[Any, ...]) -> list[Any]:
    """The arguments of which a key has only the type (``keys.add_loose``)."""
    mask = op.signature.number_mask
    return [a for k, a in enumerate(args) if mask >> k & 1 and type(a) in (int, float)]


def packing(plan: Any, result: Any) -> Any:
    """How ``path.execute`` packs a plan's results: ALL, ONE, or a function."""
    if plan.kind in (plans.FRESH, plans.VIEW):
        return ONE
    if type(result) is tuple and len(result) == len(plan.outs):
        return ALL
    op = plan.op
    return op.returns or (lambda *outs: op.pack(outs))


def of_composite(op: Any) -> Callable[..., Learnt]:
    """Serves calls of a function made of ops; what it runs is found by planning it alone."""

    def serve(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Learnt:
        if modes.watched:  # a profile would show what is only planned
            return op.in_python(*args, **kwargs), "", None
        found = planned(op, (args, kwargs))  # before the call, which may change its arguments
        return op.in_python(*args, **kwargs), found, ONE

    return serve


def of_write(op: Any, python: Callable[..., Any]) -> Callable[..., Learnt]:
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
_met: set[int] = set()


def upgrade(op: Any, planned: bool) -> None:
    """Gives an op that has been called twice, or has a plan, its builtin, and its methods."""
    if op.native is not None or op.own_bind or modes.subclasses:
        return
    if op.__module__ != "antorcha" or not op.upgradable or (op.random and not op.is_composite):
        return
    if id(op) not in _met and not planned:
        _met.add(id(op))
        return
    serve = of_composite(op) if op.is_composite else of_op(op, op.in_python)
    loose = 0 if op.is_composite else op.signature.number_mask
    sizes = by_tapes(op) if op.is_composite else by_plans if op.outlined else None
    quick = op.native = quick_of(
        op.name, op.in_python, serve, loose=loose, any_size=op.any_size and not op.is_composite,
        shapes=op.signature.shape_mask, sizes=sizes,
    )  # fmt: skip
    call_natively(type(op))
    _replace_methods(op.name, quick)


def upgrade_write(op: Any) -> None:
    """Gives an op's in-place form, which has been called, its builtin, and its methods."""
    form = op.inplace
    if form.native is not None or (op.own_bind and not op.random) or modes.subclasses:
        return
    if op.random:
        quick = quick_of(form.name, form.in_python, of_draw(op, form.in_python))
    else:
        quick = quick_of(
            form.name, form.in_python, of_write(op, form.in_python),
            loose=op.signature.number_mask, sizes=by_plans if op.outlined else None,
        )  # fmt: skip
    form.native = quick
    _replace_methods(form.name, quick)


def _replace_methods(name: str, quick: Callable[..., Any]) -> None:
    """Puts the builtin in the place of an op's methods, where nobody has set others."""
    for method, old in short.methods.get(name, ()):
        if Tensor.__dict__.get(method) is old:
            setattr(Tensor, method, method_of(quick, old))


def upgrade_property(name: str) -> None:
    """Puts a builtin in front of a property that is made of ops, such as ``x.T``, when it is read
    for the first time."""
    found = Tensor.__dict__.get(name)
    if type(found) is not property or found.fget is None or modes.subclasses:
        return
    python = found.fget
    label = {"T": "numpy_T", "H": "matrix_H"}.get(name, name)

    @functools.wraps(python)
    def first(tensor: Tensor) -> Any:
        if Tensor.__dict__.get(name) is waiting and not modes.subclasses:
            quick = quick_of(name, python, of_composite(Function(name, python)), label=label)
            setattr(Tensor, name, property(quick, found.fset, found.fdel, found.__doc__))
        return python(tensor)

    waiting = property(first, found.fset, found.fdel, found.__doc__)
    setattr(Tensor, name, waiting)


def upgrade_index() -> None:
    """Puts a builtin in front of ``x[i]``, when it is called for the first time."""
    python, find = short.reading or (None, None)
    if python is None or find is None or Tensor.__dict__.get("__getitem__") is not python:
        return

    @functools.wraps(python)
    def first(tensor: Tensor, index: Any) -> Any:
        if Tensor.__dict__.get("__getitem__") is first and not modes.subclasses:
            quick = quick_of("__getitem__", python, of_index(python, find), index=True)
            setattr(Tensor, "__getitem__", method_of(quick, python, True))  # noqa: B010
        return python(tensor, index)

    setattr(Tensor, "__getitem__", first)  # noqa: B010


def upgrade_element(name: str, kind: int) -> None:
    """Puts machine code in front of a method that gives a tensor's only element, when it is called
    for the first time."""
    python = Tensor.__dict__.get(name)
    if not isinstance(python, FunctionType) or not python.__module__.startswith("antorcha."):
        return

    @functools.wraps(python)
    def first(tensor: Tensor) -> Any:
        if Tensor.__dict__.get(name) is first:
            setattr(Tensor, name, element_method_of(python, kind))
        return python(tensor)

    setattr(Tensor, name, first)


def install() -> None:
    """Tells the short cuts, and puts builtins in front of ``x[i]`` and what reads an element."""
    keys.install()
    elements.install()
    for name, kind in elements.METHODS.items():
        upgrade_element(name, kind)
    short.upgrade, path.upgrade_write = upgrade, upgrade_write
    for name in ("T", "mT", "H", "mH", "real", "imag"):
        upgrade_property(name)
    upgrade_index()
