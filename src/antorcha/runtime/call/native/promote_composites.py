"""Functions made of ops: what they run, found by running them on tensors without memory.

A function such as ``zeros`` or ``where`` looks at its arguments and calls ops. With tensors without
memory it does the same, nothing is computed, and a tape notes it (``runtime.call.tape``,
``modes.SYMBOLS``). Where it runs one plan, that plan serves its calls; where it runs several, they
are one sequence, for calls that no graph records; where it runs none, it gives what it was given,
or memory as it is. With symbols for sizes, what was asked of sizes is noted, too, and the plan's
outline serves calls at sizes never met.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from antorcha.core import modes
from antorcha.core.memo import keep
from antorcha.core.shapes import is_symbol
from antorcha.core.symbols import Trace, Untold
from antorcha.runtime.call import plan as plans
from antorcha.runtime.call import tape
from antorcha.runtime.call.native.places import ALL, FIRST, ONE
from antorcha.runtime.call.native.promote import (
    Call,
    Itself,
    place_for_kind,
    place_of,
    same,
    tensors_of,
)
from antorcha.runtime.call.native.promote_sizes import kind_of
from antorcha.runtime.call.node import saved_by
from antorcha.runtime.call.outline import Outline
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.call.protocols import OpRecord
from antorcha.runtime.call.sizes import (
    MOST_FAMILIES,
    MOST_MISSES,
    MOST_OUTLINES,
    SINGLY,
    Family,
    numbers_of,
    refused,
    replaced,
)
from antorcha.runtime.counted import CountedLaunch
from antorcha.runtime.memory.layout import Layout, form_of
from antorcha.runtime.memory.storage import Storage
from antorcha.runtime.tensor import Tensor, bare

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Ran:
    """What a composite ran, as a call of a plan; how its results are packed."""

    def __init__(self, alone: CallAlone, call: Call | Itself, pack: Any) -> None:
        self.call, self.pack = call, pack
        self.arguments = alone.arguments
        self.outline: Outline | None = None

    def facts(self) -> Any:
        """What must be the same for calls by one place."""
        assert isinstance(self.call, Call)
        given = tensors_of(self.arguments)
        at = [-1 if o is None else place_of(o, given) for o in self.call.operands]
        numbers = [(type(n), n) for n in self.call.flat if n is not None]
        return self.call.packed, at, numbers, type(self.pack)


class CompositeFamily(Family):
    """The outlines of a composite's calls that differ in their sizes only."""

    __slots__ = ("facts",)
    facts: Any

    def add(self, found: Ran | None) -> None:
        """Keeps what a call ran; nothing from now on, where it is nothing, or quite another thing
        than before."""
        facts = None if found is None else found.facts()
        if found is None or (self.outlines and facts != self.facts):
            self.misses, self.outlines = MOST_MISSES, []
            return
        self.facts = facts
        assert found.outline is not None
        self.outlines = [*self.outlines, found.outline][-MOST_OUTLINES:]


class CompositeSizes:
    """What a composite's calls of each form run."""

    def __init__(self, op: OpRecord) -> None:
        self.op = op
        self.families: dict[tuple[int, ...], CompositeFamily] = {}
        plans.on_flush(self.families.clear)

    def place(self, words: Sequence[int], args: Arguments) -> Storage | None:
        """The place for the calls that differ from this one in sizes only; None: nobody knows yet.
        words: of their key."""
        if modes.profiled:  # a profile would show what is only planned
            return None
        key = tuple(words)
        family = self.families.get(key)
        if family is None:
            family = keep(self.families, key, CompositeFamily(), MOST_FAMILIES)
        family.misses += 1
        if not SINGLY <= family.misses <= MOST_MISSES:
            return None
        found = outlined(self.op, args)
        family.add(found)
        kind = kind_of(family)
        if kind is None:
            return None
        if found is None or isinstance(found.call, Itself):
            return place_for_kind(words, (*args[0], *args[1], *args[1].values()), None, kind, ONE)
        return place_for_kind(words, found.arguments, found.call, kind, found.pack)


def outlined(op: OpRecord, args: Arguments) -> Ran | None:
    """What a call runs, with symbols for its sizes; None: that cannot be told."""
    trace = None
    try:
        call = CallAlone(op, args)
        if not call.numbers:
            raise Untold("it has no sizes")
        trace = Trace(call.numbers)
        found = call.ran(iter(trace.symbols))
        if isinstance(found.call, Itself):
            raise Untold("its result is its argument")
        _learn_saved(found.call, call)
        layouts = [t._layout for t in call.given]
        found.outline = Outline(trace, found.call.plan, layouts, call)
        found.outline.packed = found.call.packed
        return found
    except Exception as error:  # whatever it is, Python serves such calls
        refused[op.name] = f"{type(error).__name__}: {error}"
        return None
    finally:
        if trace is not None:
            trace.close()


def _learn_saved(call: Call, alone: CallAlone) -> None:
    """Has the plan say what its node saves, if one is made: it will only run at other sizes."""
    wanting = [t for t, wanted in zip(alone.tensors, alone.wanted, strict=True) if wanted]
    if call.plan.rule is None or not wanting:
        return
    mask = sum([1 << k for k, o in enumerate(call.operands) if any([o is t for t in wanting])])
    if mask & call.plan.rule.mask:
        saved_by(call.plan, mask & call.plan.rule.mask)


def planned(op: OpRecord | Function, args: Arguments) -> Ran | str:
    """What a call runs, at its own sizes; or why nobody can say it."""
    try:
        return CallAlone(op, args).ran(None)
    except Exception as error:  # whatever it is, Python serves such calls
        return str(error) or type(error).__name__


class Function:
    """A Python function made of ops that is no op: all that is asked of one here."""

    names: tuple[str, ...] = ()
    shape_mask = 0

    def __init__(self, name: str, python: Callable[..., Any]) -> None:
        self.name, self.in_python, self.signature = name, python, self


class CallAlone:
    """A call of a composite that is only planned: its arguments, with tensors without memory in the
    place of its own."""

    write = False

    def __init__(self, op: OpRecord | Function, args: Arguments) -> None:
        self.op = op
        if "out" in args[1]:
            raise Untold("it writes")
        given = tensors_of((*args[0], *args[1].values()))
        self.layouts = [t._layout for t in given]
        self.forms = [form_of(layout) for layout in self.layouts]
        self.wanted = [t._rg for t in given]  # gradients
        shapes = [a for k, a in enumerate(args[0]) if op.signature.shape_mask >> k & 1]
        sizes = [a if isinstance(a, tuple) else (a,) for a in shapes]
        self.numbers = numbers_of(self.layouts, sizes)
        without: Any = None  # memory
        self.tensors = [bare(layout, without) for layout in self.layouts]
        for stand_in, wanted in zip(self.tensors, self.wanted, strict=True):
            stand_in._rg = wanted
        self.args, self.kwargs = _of(*args, iter(given), iter(self.tensors))
        self.arguments = (*self.args, *self.kwargs, *self.kwargs.values())
        self.given: list[Tensor] = []  # what it was run with last

    def run(self, symbols: Iterator[Any] | None) -> tuple[tape.Tape, Any]:
        """The tape and the result. symbols: for its sizes; None: they are what they are."""
        without: Any = None
        layouts = self.layouts if symbols is None else [f.layout(symbols) for f in self.forms]
        self.given = [bare(layout, without) for layout in layouts]
        for stand_in, wanted in zip(self.given, self.wanted, strict=True):
            stand_in._rg = wanted
        args, kwargs = _of(self.args, self.kwargs, iter(self.tensors), iter(self.given))
        if symbols is not None:
            for k, value in enumerate(args):
                if self.op.signature.shape_mask >> k & 1:
                    args[k] = _symbols_for(value, symbols)
        noted = tape.Tape(2 * len(self.given), finds_plans=symbols is None)
        for k, tensor in enumerate(self.given):
            noted.put(tensor, 2 * k, 2 * k + 1)
        with warnings.catch_warnings(record=True) as said, tape.running(noted, modes.SYMBOLS):
            warnings.simplefilter("always")
            result = self.op.in_python(*args, **kwargs)
        if said:
            raise Untold("it warns")
        if noted.why and not (symbols is None and (_counts_alone(noted) or _writes_alone(noted))):
            raise Untold(noted.why)
        return noted, result

    def plan(self, symbols: Iterator[Any]) -> tuple[Plan, list[Layout]]:
        """The one plan that it runs, and the layouts of what it is given: as ``sizes.SymbolicCall``
        has it."""
        noted, _ = self.run(symbols)
        return noted.calls[0][0], [t._layout for t in self.given]

    def ran(self, symbols: Iterator[Any] | None) -> Ran:
        """What it runs."""
        noted, result = self.run(symbols)
        results, pack = packing_of(result)
        if any([t._rg for t in results]) and not any(self.wanted):
            raise Untold("its result is made to want gradients")
        at = {id(t): k for k, t in enumerate(self.given)}
        if not noted.calls and id(result) in at:
            return Ran(self, Itself(self.tensors[at[id(result)]]), pack)
        if len(noted.calls) == 1:
            plan, operands, flat, numbers, outs = noted.calls[0]
            if len(results) == 1 < len(outs) and results[0] is outs[0]:
                results, pack = list(outs), FIRST
            whole = same(outs, results) and not any(map(is_symbol, flat))
            if whole and _once_each(operands, at):
                mine = [None if o is None else self.tensors[at[id(o)]] for o in operands]
                writes = noted.writes > 0
                return Ran(self, Call(plan, mine, flat, numbers, writes=writes), pack)
        if noted.why:
            raise Untold(noted.why)
        return self._several(noted, results, pack)

    def _several(self, noted: tape.Tape, results: list[Tensor], pack: Any) -> Ran:
        """All that it runs as one sequence, whose results are memory of their own."""
        once = {noted.places[id(each)][0] for each in results if noted.is_fresh(each)}
        if len(once) < len(results):
            raise Untold("a result is a view, from elsewhere, or given twice")
        if any([t._rg for t in results]):
            raise Untold("a graph records several kernels")
        result = [at for each in results for at in noted.places[id(each)]]
        run = noted.steps.bound(*result, packed=True)
        outs = tuple([t._layout for t in results])
        layouts = tuple([t._layout for t in self.given])
        op: Any = self.op  # a function serves: the plan is for machine code, which asks no op
        plan = plans.make(op, plans.MANY, outs, into=run, tensors=layouts)
        places = [None, None] * len(layouts)  # storages and offsets
        return Ran(self, Call(plan, self.tensors, places, (), packed=True), pack)


def _counts_alone(noted: tape.Tape) -> bool:
    """Has just one plan run, whose results' sizes depend on the data?"""
    return len(noted.calls) == 1 and isinstance(noted.calls[0][0].fresh, CountedLaunch)


def _writes_alone(noted: tape.Tape) -> bool:
    """Has nothing run but a plan over its first operand?"""
    return len(noted.calls) == noted.writes == 1


def _once_each(operands: Sequence[Any], at: dict[int, int]) -> bool:
    """Is every operand one of the tensors given, each of them once?"""
    present = [id(o) for o in operands if o is not None]
    return sorted(present) == sorted(at)


def packing_of(result: Any) -> tuple[list[Tensor], Any]:
    """The tensors of a result, and how they are packed (``learn.place_for``)."""
    several = list(result) if isinstance(result, tuple) else [result]
    if not all([isinstance(t, Tensor) for t in several]) or not several:
        raise Untold("its result is no tensor")
    if type(result) is tuple:
        return several, ALL
    if isinstance(result, tuple):
        kind: Any = type(result)
        return several, lambda *outs: kind(*outs)
    return several, ONE


def _of(
    args: Sequence[Any], kwargs: dict[str, Any], found: Iterator[Any], others: Iterator[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """A call's arguments with other tensors in the place of its own."""
    return replaced(args, found, others), dict(
        zip(kwargs, replaced([*kwargs.values()], found, others), strict=True)
    )


def _symbols_for(value: Any, symbols: Iterator[Any]) -> Any:
    """A size, or a tuple of them, with symbols for those that are more than 1."""
    if isinstance(value, tuple):
        return tuple([_symbols_for(n, symbols) for n in value])
    return next(symbols) if type(value) is int and value > 1 else value
