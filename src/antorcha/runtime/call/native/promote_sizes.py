"""Outlines as machine code reads them: the words of a ``sized.Sized``."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from antorcha.core.symbols import Ratio, Symbol, Terms, symbols_in
from antorcha.runtime.call import plan as plans
from antorcha.runtime.call.native import record, sized
from antorcha.runtime.call.native.layout_sizes import MOST_DIMS
from antorcha.runtime.call.outline import Outline
from antorcha.runtime.call.sizes import MOST_OUTLINES, Family
from antorcha.runtime.launched import LaunchDraft, PendingLaunch, _unexplained
from antorcha.runtime.memory.storage import Storage, new_storage
from antorcha.runtime.objects import padded, words_in_memory
from antorcha.runtime.sequence import Boxed, SequenceDraft, sequence_of

_STEPS = {"//": sized.DIVIDE, "%": sized.REST, "==": sized.EQUAL, "<": sized.LESS}
_KINDS = {plans.FRESH: sized.FRESH, plans.MANY: sized.MANY,
          plans.VIEW: sized.VIEWS, plans.VIEWS: sized.VIEWS}  # fmt: skip


class Unsaid(Exception):
    """Machine code cannot do it."""


class Words:
    """The words of all parts of an outline, in order."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.words: list[Any] = []  # ints and symbols
        self.parts: list[list[int]] = []  # first, count, start, and the calls
        self.calls: list[list[int]] = []
        self.boxes: list[list[int]] = []  # of parts: their numbers, as `sized.Box`es
        self.places: dict[int, int] = {}  # of drafts: which part it is

    def add(self, words: Sequence[Any]) -> int:
        """Where those words begin."""
        first = len(self.words)
        self.words.extend(words)
        return first

    def check(self) -> None:
        """Refuses more than there is room for."""
        boxes = sum([len(each) // 4 for each in self.boxes])
        if len(self.words) > sized.MOST_WORDS or len(self.parts) + boxes > sized.MOST_PARTS:
            raise Unsaid

    def part(self, pending: Any, form: str) -> int:
        """Which part a launch or a sequence is that is made of this, or is this."""
        if isinstance(pending, PendingLaunch):
            draft = pending.source if pending.form == form else None
        else:
            draft = sequence_of(pending)  # which has no sizes in it
        if id(draft) in self.places:
            return self.places[id(draft)]
        calls: list[int] = []
        boxes: list[int] = []
        if isinstance(draft, LaunchDraft):
            words, start = [*draft.words], draft.start
            words[8] = id(_unexplained)
        elif isinstance(draft, SequenceDraft):
            words, start = [*draft.words], -1
            for at, called in self.outline.calls[id(draft)]:
                if called.form not in ("fresh", "into"):
                    raise Unsaid
                calls += [at, self.part(called, called.form)]
                words[at] = 0
            for at, word in enumerate(words):
                if isinstance(word, Boxed):
                    boxes += [at, self.add([word.symbol]), *_quotient(word.number)]
                    words[at] = 0
        elif isinstance(draft, Storage):
            words, start = list(memoryview(draft).cast("B").cast("q")), -1
        else:
            raise Unsaid
        place = self.places[id(draft)] = len(self.parts)
        self.parts.append([self.add(words), len(words), start])
        self.calls.append(calls)
        self.boxes.append(boxes)
        return place


def _quotient(number: Any) -> list[int]:
    """Of a number that follows from a size: is it one by that, and the bits of which?"""
    if not isinstance(number, Ratio):
        return [0, 0]
    return [1, int.from_bytes(struct.pack("<d", number.over), "little", signed=True)]


def _sum(terms: Terms) -> list[int]:
    """A sum as `sized.total` reads it."""
    words = [len(terms)]
    for atoms, factor in terms.items():
        words += [factor, len(atoms), *atoms]
    return words


def kind_of(family: Family) -> Storage | None:
    """What is known of a family's calls, a `sized.Kind`; None: nothing yet. (The operands of a call
    are the tensors of its plan, or it is recorded by Python.)"""
    found = [each for each in map(sized_of, family.outlines) if each is not None]
    if not found and not family.closed:
        return None
    at = padded([each.ptr for each in found], MOST_OUTLINES)
    return words_in_memory([int(family.closed), len(found), *at], *found)


def sized_of(outline: Outline) -> Storage | None:
    """The Sized that says what the outline says, and what is known by now of recording it; None:
    machine code cannot do it."""
    known = len(outline.keeps)
    if outline.machine is None or outline.machine[0] != known:
        try:
            outline.machine = known, _sized(outline)
        except (Unsaid, OverflowError):
            outline.machine = known, None
    found: Storage | None = outline.machine[1]
    return found


def _sized(outline: Outline) -> Storage:
    plan = outline.plan
    if plan.kind not in _KINDS or len(outline.values) > sized.MOST_VALUES:
        raise Unsaid
    found = Words(outline)
    kind, deltas, outs = _KINDS[plan.kind], 0, plan.outs
    if outline.call is not None and outline.call.write:
        if plan.kind != plans.FRESH:
            raise Unsaid
        kind, outs = sized.WRITTEN, ()
        found.part(plan.into, "play" if _is_sequence(plan.into) else "into")
    elif plan.kind == plans.VIEW:
        deltas = found.add([plan.delta])
    elif plan.kind == plans.VIEWS:
        deltas = found.add(plan.post)
    elif plan.kind == plans.FRESH:
        runs = plan.fresh
        found.part(runs, "play" if _is_sequence(runs) else "fresh")
    elif outline.packed:
        kind = sized.PACKED
        found.part(plan.into, "play")
    else:
        if plan.allocate is not new_storage:
            raise Unsaid
        runs = plan.into
        found.part(runs, "play" if _is_sequence(runs) else "into")
    if len(outs) > sized.MOST_RESULTS or any([out.ndim > MOST_DIMS for out in outs]):
        raise Unsaid
    results: list[int] = []
    for out in outs:
        results += [id(out), out.ndim, found.add(out.shape), found.add(out.strides)]
    views = (deltas, int(plan.kind == plans.VIEWS)) if kind == sized.VIEWS else (-1, 0)
    recorded, history = _history(outline, found, views)
    found.check()
    tail = [deltas, recorded, 0 if history is None else history.ptr]
    return _in_memory(outline, found, kind, results, tail, history)


def _history(outline: Outline, found: Words, views: tuple[int, int]) -> tuple[int, Storage | None]:
    """How calls are recorded: see ``Sized.recorded`` and ``plans.History``."""
    plan = outline.plan
    if plan.rule is None:
        return 0, None
    if outline.packed or outline.call is None or outline.call.write:
        return -1, None
    given = outline.known[: outline.operands]
    tensors = [layout for layout in plan.tensors if layout is not None]
    post = None if views[1] else plan.post
    same = len(given) == len(tensors) and all([a is b for a, b in zip(given, tensors, strict=True)])
    if not same or symbols_in((post, plan.post_names)):
        return -1, None
    how = record.storage_of(plan)
    assert how is not None
    statics: list[int] = []
    for name, value in plan.statics.items():
        if isinstance(value, Symbol):
            statics += [id(name), found.add([value]), -1]
        elif type(value) is tuple and all([type(n) in (int, Symbol) for n in value]):
            if symbols_in(value):
                statics += [id(name), found.add(value), len(value)]
        elif symbols_in(value):
            return -1, None
    held = words_in_memory(statics or [0])
    words = [id(how), id(plan), len(plan.tensors), len(statics) // 3, held.ptr, *views]
    return 1, words_in_memory(words, how, plan, held)


def _is_sequence(runs: Any) -> bool:
    source = runs.source if isinstance(runs, PendingLaunch) else sequence_of(runs)
    return isinstance(source, (SequenceDraft, Storage))


def _in_memory(
    outline: Outline, found: Words, kind: int, results: list[int], tail: list[int], history: Any
) -> Storage:
    """The Sized, and all that it points to."""
    code: list[int] = []
    for what, one, other, number in outline.steps:
        code += [_STEPS[what], number, *_sum(one), *_sum(other)]
    symbols = [(k, word) for k, word in enumerate(found.words) if isinstance(word, Symbol)]
    for k, symbol in symbols:
        code += [k, *_sum(symbol.terms)]
    template = [w.value if isinstance(w, Symbol) else int(w) for w in found.words]
    held: list[Storage] = []
    parts: list[int] = []
    for part, calls, boxes in zip(found.parts, found.calls, found.boxes, strict=True):
        held += [words_in_memory(calls or [0]), words_in_memory(boxes or [0])]
        parts += [*part, len(calls) // 2, held[-2].ptr, len(boxes) // 4, held[-1].ptr]
    blocks = [words_in_memory(each or [0]) for each in (template, code, parts, results)]
    at = [block.ptr for block in blocks]
    return words_in_memory(
        [kind, outline.given, len(outline.steps), len(symbols), len(template), at[0], at[1],
         len(found.parts), at[2], len(results) // 4, at[3], *tail],
        outline, history, *held, *blocks,
    )  # fmt: skip
