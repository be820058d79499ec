"""Outlines: what is left of a plan when sizes are taken out; with other sizes, a plan again.

An op is planned once with symbols for sizes (``symbols``). What comes out is a plan whose layouts
and kernels' words have symbols in them, and a list of what was asked of the sizes on the way. An
``Outline`` keeps both as one function from sizes to words: a plan for other sizes costs that
function and the making of its parts, and nothing is decided again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.device import Device
from antorcha.core.dtypes import dtype
from antorcha.core.structs import replace
from antorcha.core.symbols import Symbol, Trace, Untold, filled, hold_no_sizes, symbols_in
from antorcha.lang.expr import Expr
from antorcha.lang.expr.rows import RowProgram
from antorcha.lang.native.function import Native, Spec
from antorcha.lang.native.types import Ty
from antorcha.runtime import launch as launches
from antorcha.runtime import sequence as sequences
from antorcha.runtime.call.plan import HOST, Plan, make
from antorcha.runtime.launched import LaunchDraft, LaunchWithOwner, PendingLaunch
from antorcha.runtime.memory import layout as layouts
from antorcha.runtime.memory.layout import Layout

hold_no_sizes(dtype, Device, Expr, RowProgram, Native, Spec, Ty)
Made = list[Any]
"""What a plan is being made of: layouts and launches."""
Build = Callable[[Made, Any], Any]
"""Makes a part of those before it, and of the words for these sizes."""


class Outline:
    """A plan for sizes of which only some answers are known."""

    def __init__(self, trace: Trace, plan: Plan, given: Sequence[Layout], call: Any = None) -> None:
        """given: the operands' layouts, in order, as the plan was made for. call: the call that it
        is of (`sizes.SymbolicCall`), to plan it again with other symbols."""
        self.plan, self.call = plan, call
        self.gradients: dict[Any, Any] = {}  # of its plans' nodes: see ops.kinds.replay_sizes
        plan.outline = self
        self.keeps = plan.keeps  # of all its plans: what a rule saves does not depend on sizes
        self.groups: list[Sequence[Any]] = []  # of words
        self.builds: list[Build] = []
        self.places: dict[int, int] = {}  # id of a layout or a draft -> which of Made it is
        self.known: list[Any] = [*given]  # whose ids those are
        self.operands = len(given)
        self.packed = False  # is what it runs a sequence that gives places of results?
        self.calls: dict[int, list[tuple[int, Any]]] = {}  # of sequences: words that are pending
        for k, layout in enumerate(given):
            self.places.setdefault(id(layout), k)
        if plan.kind == HOST:
            raise Untold("what runs on the host is not outlined")
        if symbols_in((plan.op, plan.rule)):
            raise Untold("a size is part of the op")
        self.outs = [self._layout(layout) for layout in plan.outs]
        self.tensors = [None if layout is None else self._layout(layout) for layout in plan.tensors]
        self.fresh = self._filler(getattr(plan, "fresh", None))
        self.into = self._filler(getattr(plan, "into", None))
        self.rest = self._filler((plan.delta, plan.statics, plan.post, plan.post_names))
        trace.close()
        self.given, self.steps, self.values = trace.count, trace.steps, trace.values
        self.machine: Any = None  # the same as the native path reads it; see native.learn_sizes
        self.program = trace.program(self.groups)

    # ---- taking apart
    def _add(self, thing: Any, build: Build) -> int:
        place = self.places[id(thing)] = len(self.known)
        self.known.append(thing)
        self.builds.append(build)
        return place

    def _layout(self, layout: Layout) -> int:
        """Which of what is made a layout is."""
        place = self.places.get(id(layout))
        if place is not None:
            return place
        if not symbols_in((layout.shape, layout.strides)):
            return self._add(layout, lambda result, words: layout)
        group = len(self.groups)
        self.groups += [layout.shape, layout.strides, (layout.numel, layout.low, layout.high)]
        dtype, device, contiguous = layout.dtype, layout.device, layout.contiguous

        def build(result: Made, words: Any) -> Layout:
            count, low, high = words[group + 2]
            return layouts.from_parts(
                words[group], words[group + 1], dtype, device, count, contiguous, low, high
            )

        return self._add(layout, build)

    def _filler(self, thing: Any) -> Build:
        """How to make something again with numbers in it."""
        if not symbols_in(thing):
            return lambda result, words: thing
        symbols: list[Symbol] = []

        def note(symbol: Symbol) -> int:
            symbols.append(symbol)
            return symbol.value

        def find(part: Any) -> Any:
            """A layout or a draft, which has its place from now on."""
            if isinstance(part, Layout):
                self._layout(part)
                return part
            if isinstance(part, PendingLaunch):
                self._draft(part.source)
                return part
            return None

        filled(thing, note, find)
        group = len(self.groups)
        self.groups.append(symbols)
        places = self.places

        def build(result: Made, words: Any) -> Any:
            numbers = iter(words[group])

            def part_of(part: Any) -> Any:
                if isinstance(part, Layout):
                    return result[places[id(part)]]
                if isinstance(part, PendingLaunch):
                    return getattr(result[places[id(part.source)]], part.form)
                return None

            return filled(thing, lambda _: next(numbers), part_of)

        if isinstance(thing, PendingLaunch):
            place, form = places[id(thing.source)], thing.form
            return lambda result, words: getattr(result[place], form)
        return build

    def _draft(self, draft: Any) -> int:
        place = self.places.get(id(draft))
        if place is not None:
            return place
        if isinstance(draft, LaunchDraft):
            return self._add(draft, self._launch(draft))
        return self._add(draft, self._sequence(draft))

    def _launch(self, draft: LaunchDraft) -> Build:
        group = len(self.groups)
        self.groups.append(draft.words)
        start, outs, sizes = draft.start, draft.outs, draft.sizes
        fail, about = self._filler(draft.fail), _shown(draft.what)
        tell, tells = self._filler(about), symbols_in(about)

        def build(result: Made, words: Any) -> LaunchWithOwner:
            # (a copy: `result` will have the launch itself)
            told = functools.partial(tell, [*result], words) if tells else about
            return launches.launch_of(words[group], start, outs, fail(result, words), told, sizes)

        return build

    def _sequence(self, draft: sequences.SequenceDraft) -> Build:
        pending = [
            (k, word) for k, word in enumerate(draft.words) if isinstance(word, PendingLaunch)
        ]
        boxed = [(k, w) for k, w in enumerate(draft.words) if isinstance(w, sequences.Boxed)]
        self.calls[id(draft)] = pending
        calls = [(k, self._filler(word), word.form != "play") for k, word in pending]
        owners = [self._filler(owner) for owner in draft.owners]
        group = len(self.groups)
        numbers = [
            word.symbol if isinstance(word, sequences.Boxed) else word for word in draft.words
        ]
        self.groups.append([0 if isinstance(word, PendingLaunch) else word for word in numbers])

        def build(result: Made, words: Any) -> Any:
            code = list(words[group])
            for at, find, launched in calls:
                called = find(result, words)
                code[at] = id(called.__self__ if launched else called)
            held = [find(result, words) for find in owners]
            for at, box in boxed:
                held.append(box.made(code[at]))
                code[at] = id(held[-1])
            return Playing(sequences.playing(code, held))

        return build

    # ---- putting together
    def plan_for(self, given: Sequence[Layout], numbers: Sequence[int]) -> Plan | None:
        """The plan for operands of these layouts, which have these numbers; None: something that
        was asked has another answer."""
        words = self.program(*numbers)
        if words is None:
            return None
        result: Made = list(given)
        for build in self.builds:
            result.append(build(result, words))
        plan = self.plan
        delta, statics, post, names = self.rest(result, words)
        found = make(
            plan.op, plan.kind, tuple([result[k] for k in self.outs]),
            fresh=self.fresh(result, words), into=self.into(result, words), delta=delta,
            tensors=tuple([None if k is None else result[k] for k in self.tensors]),
            rule=plan.rule, statics=statics, post=post, post_names=names,
        )  # fmt: skip
        found.outline, found.numbers = self, tuple(numbers)
        found.keeps, found.replays = self.keeps, self.plan.replays
        return found


def _shown(what: Any) -> Any:
    """A description for people to read: functions that have sizes in them by their names."""
    if getattr(type(what), "__fields__", None) is None:
        return what
    fields = {name: getattr(what, name) for name in what.__fields__}
    hidden = {n: f for n, f in fields.items() if hasattr(f, "__code__") and symbols_in(f)}
    return replace(what, **{n: f.__qualname__ for n, f in hidden.items()})


class Playing:
    """A sequence's builtin, found as a launch's are."""

    __slots__ = ("play",)

    def __init__(self, play: Callable[..., Any]) -> None:
        self.play = play
