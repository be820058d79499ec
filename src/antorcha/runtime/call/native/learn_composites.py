"""Functions made of ops at sizes never met: what they run, found by running them with symbols.

A function such as ``zeros`` or ``where`` looks at its arguments and calls ops. With tensors without
memory and symbols for sizes it does the same, and a tape notes it (``runtime.call.tape``,
``modes.SYMBOLS``); what it asked of sizes is noted, too. Where it runs one plan, that plan's
outline serves its calls; where it runs several, they are one sequence, for calls that no graph
records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from antorcha import modes
from antorcha.memo import keep
from antorcha.runtime.call import plan as plans
from antorcha.runtime.call import tape
from antorcha.runtime.call.native.learn import Call, place_for_kind, tensors_of
from antorcha.runtime.call.native.learn_sizes import kind_of
from antorcha.runtime.call.native.places import ALL, ONE
from antorcha.runtime.call.outline import Outline
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.call.sizes import (
    MOST_FAMILIES,
    MOST_MISSES,
    MOST_OUTLINES,
    SINGLY,
    Family,
    numbers_of,
    refused,
)
from antorcha.runtime.layout import Layout, form_of
from antorcha.runtime.storage import Storage
from antorcha.runtime.tensor import Tensor, bare
from antorcha.shapes import is_symbol
from antorcha.symbols import Trace, Untold

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Found:
    """What a composite ran: an outline; the call of it, of the tensors given; how the results are
    packed."""

    def __init__(self, outline: Outline, call: Call, pack: Any) -> None:
        self.outline, self.call, self.pack = outline, call, pack

    def facts(self, given: list[Tensor]) -> Any:
        """What must be the same for calls by one place."""
        at = [-1 if o is None else _place(o, given) for o in self.call.operands]
        numbers = [(type(n), n) for n in self.call.flat if n is not None]
        return self.outline.packed, at, numbers, type(self.pack)


class CompositeFamily(Family):
    """The outlines of a composite's calls that differ in their sizes only."""

    __slots__ = ("facts",)
    facts: Any

    def add(self, found: Found | None, given: list[Tensor]) -> None:
        """Keeps what a call ran; nothing from now on, where it is nothing, or quite another thing
        than before."""
        facts = None if found is None else found.facts(given)
        if found is None or (self.outlines and facts != self.facts):
            self.misses, self.outlines = MOST_MISSES, []
            return
        self.facts = facts
        self.outlines = [*self.outlines, found.outline][-MOST_OUTLINES:]


class CompositeSizes:
    """What a composite's calls of each form run."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self.families: dict[tuple[int, ...], CompositeFamily] = {}
        plans.on_flush(self.families.clear)

    def place(self, words: Sequence[int], args: Arguments) -> Storage | None:
        """The place for the calls that differ from this one in sizes only; None: nobody knows yet.
        words: of their key."""
        if modes.watched:  # a profile would show what is only planned
            return None
        key = tuple(words)
        family = self.families.get(key)
        if family is None:
            family = keep(self.families, key, CompositeFamily(), MOST_FAMILIES)
        family.misses += 1
        if not SINGLY <= family.misses <= MOST_MISSES:
            return None
        found = outlined(self.op, args)
        family.add(found, tensors_of((*args[0], *args[1].values())))
        kind = kind_of(family)
        given = (*args[0], *args[1], *args[1].values())
        if kind is None:
            return None
        call, pack = (None, ()) if found is None else (found.call, found.pack)
        return place_for_kind(words, given, call, kind, pack)


def outlined(op: Any, args: Arguments) -> Found | None:
    """What a call runs, with symbols for its sizes; None: that cannot be told."""
    trace = None
    try:
        call = SymbolicComposite(op, args)
        trace = Trace(call.numbers)
        found = call.found(trace)
        call.tensors = []  # (the outline keeps the call)
        return found
    except Exception as error:  # whatever it is, Python serves such calls
        refused[op.name] = f"{type(error).__name__}: {error}"
        return None
    finally:
        if trace is not None:
            trace.close()


class SymbolicComposite:
    """A call of a composite to be run with symbols: its arguments, with tensors without memory in
    the place of its own."""

    write = False

    def __init__(self, op: Any, args: Arguments) -> None:
        self.op = op
        if "out" in args[1] or "generator" in op.signature.names:
            raise Untold("it writes, or draws random numbers")
        self.tensors = tensors_of((*args[0], *args[1].values()))
        if len({id(t) for t in self.tensors}) < len(self.tensors):
            raise Untold("one tensor is two arguments")
        self.forms = [form_of(t._layout) for t in self.tensors]
        self.wanted = [t._rg for t in self.tensors]  # gradients
        shapes = [a for k, a in enumerate(args[0]) if op.signature.shape_mask >> k & 1]
        sizes = [a if isinstance(a, tuple) else (a,) for a in shapes]
        self.numbers = numbers_of([t._layout for t in self.tensors], sizes)
        without: Any = None  # memory
        stand_ins = iter([bare(t._layout, without) for t in self.tensors])
        self.args = tuple([_with(a, stand_ins) for a in args[0]])
        self.kwargs = {name: _with(a, stand_ins) for name, a in args[1].items()}
        if not self.numbers:
            raise Untold("it has no sizes")

    def run(self, symbols: Iterator[Any]) -> tuple[tape.Tape, Any, list[Tensor]]:
        """The tape, the result, and the tensors that it was run with."""
        without: Any = None
        given = [bare(form.layout(symbols), without) for form in self.forms]
        for stand_in, wanted in zip(given, self.wanted, strict=True):
            stand_in._rg = wanted
        stand_ins = iter(given)
        args = [_with(a, stand_ins) for a in self.args]
        kwargs = {name: _with(a, stand_ins) for name, a in self.kwargs.items()}
        for k, value in enumerate(args):
            if self.op.signature.shape_mask >> k & 1:
                args[k] = _symbols_for(value, symbols)
        noted = tape.Tape(2 * len(given))
        for k, tensor in enumerate(given):
            noted.put(tensor, 2 * k, 2 * k + 1)
        with tape.running(noted, modes.SYMBOLS):
            result = self.op.in_python(*args, **kwargs)
        if noted.why or not noted.calls:
            raise Untold(noted.why or "it runs nothing")
        return noted, result, given

    def plan(self, symbols: Iterator[Any]) -> tuple[Plan, list[Layout]]:
        """The one plan that it runs, and the layouts of what it is given: as ``sizes.SymbolicCall``
        has it."""
        noted, _, given = self.run(symbols)
        return noted.calls[0][0], [t._layout for t in given]

    def found(self, trace: Trace) -> Found:
        """What it runs."""
        noted, result, given = self.run(iter(trace.symbols))
        results, pack = _packing(result)
        if any([t._rg for t in results]) and not any(self.wanted):
            raise Untold("its result is made to want gradients")
        layouts = [t._layout for t in given]
        plan, operands, flat, numbers, outs = noted.calls[0]
        whole = len(noted.calls) == 1 and len(outs) == len(results)
        if whole and all([a is b for a, b in zip(outs, results, strict=True)]):
            at = {id(t): k for k, t in enumerate(given)}
            if not any(map(is_symbol, flat)) and _once_each(operands, at):
                mine = [None if o is None else self.tensors[at[id(o)]] for o in operands]
                outline = Outline(trace, plan, layouts, self)
                return Found(outline, Call(plan, mine, flat, numbers), pack)
        return self._several(trace, noted, results, layouts, pack)

    def _several(
        self, trace: Trace, noted: tape.Tape, results: list[Tensor], layouts: list[Layout],
        pack: Any,
    ) -> Found:  # fmt: skip
        """All that it runs as one sequence, whose results are memory of their own."""
        whole = [
            id(out) for plan, _, _, _, outs in noted.calls
            if plan.kind in (plans.FRESH, plans.MANY) for out in outs
        ]  # fmt: skip
        if not {id(each) for each in results} <= {*whole} or len({*map(id, results)}) < len(
            results
        ):
            raise Untold("a result is a view, from elsewhere, or given twice")
        places = [at for each in results for at in noted.places[id(each)]]
        run = noted.steps.bound(*places, packed=True)
        outs = tuple([t._layout for t in results])
        plan = plans.make(self.op, plans.MANY, outs, into=run, tensors=tuple(layouts))
        if any([each[0].rule is not None for each in noted.calls]):
            plan.rule = _Recorded
        outline = Outline(trace, plan, layouts)
        outline.packed = True
        return Found(outline, Call(plan, self.tensors, [None, None] * len(layouts), ()), pack)


class _Recorded:
    """In the place of a rule: something of what is run has one."""

    mask = -1


def _place(tensor: Tensor, given: list[Tensor]) -> int:
    """Which of the tensors given it is."""
    return [each is tensor for each in given].index(True)


def _once_each(operands: Sequence[Any], at: dict[int, int]) -> bool:
    """Is every operand one of the tensors given, each of them once?"""
    present = [id(o) for o in operands if o is not None]
    return sorted(present) == sorted(at)


def _packing(result: Any) -> tuple[list[Tensor], Any]:
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


def _with(value: Any, stand_ins: Iterator[Tensor]) -> Any:
    """An argument with the next stand-ins in the place of its tensors."""
    if isinstance(value, Tensor):
        return next(stand_ins)
    if isinstance(value, (tuple, list)) and any([isinstance(v, Tensor) for v in value]):
        items = [next(stand_ins) if isinstance(v, Tensor) else v for v in value]
        return tuple(items) if type(value) is tuple else items
    return value


def _symbols_for(value: Any, symbols: Iterator[Any]) -> Any:
    """A size, or a tuple of them, with symbols for those that are more than 1."""
    if isinstance(value, tuple):
        return tuple([_symbols_for(n, symbols) for n in value])
    return next(symbols) if type(value) is int and value > 1 else value
