"""Outlines as machine code reads them: the words of a ``sized.Sized``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.runtime.call import plan as plans
from antorcha.runtime.call.native import sized
from antorcha.runtime.call.native.layouts import MOST_DIMS
from antorcha.runtime.call.outline import Outline
from antorcha.runtime.call.sizes import MOST_OUTLINES, Family
from antorcha.runtime.launched import Draft, Pending, _unexplained
from antorcha.runtime.objects import padded, words_in_memory
from antorcha.runtime.sequence import Draft as SequenceDraft
from antorcha.runtime.storage import Storage, new_storage
from antorcha.symbols import Symbol, Terms

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
        self.places: dict[int, int] = {}  # of drafts: which part it is

    def add(self, words: Sequence[Any]) -> int:
        """Where those words begin."""
        first = len(self.words)
        self.words.extend(words)
        return first

    def part(self, pending: Any, form: str) -> int:
        """Which part a launch or a sequence is that is made of this."""
        draft = pending.source if isinstance(pending, Pending) else None
        if draft is None or pending.form != form:
            raise Unsaid
        if id(draft) in self.places:
            return self.places[id(draft)]
        calls: list[int] = []
        if isinstance(draft, Draft):
            words, start = [*draft.words], draft.start
            words[8] = id(_unexplained)
        elif isinstance(draft, SequenceDraft):
            words, start = [*draft.words], -1
            for at, called in self.outline.calls[id(draft)]:
                if called.form not in ("fresh", "into"):
                    raise Unsaid
                calls += [at, self.part(called, called.form)]
                words[at] = 0
        else:
            raise Unsaid
        place = self.places[id(draft)] = len(self.parts)
        self.parts.append([self.add(words), len(words), start])
        self.calls.append(calls)
        return place


def _sum(terms: Terms) -> list[int]:
    """A sum as `sized.total` reads it."""
    words = [len(terms)]
    for atoms, factor in terms.items():
        words += [factor, len(atoms), *atoms]
    return words


def kind_of(family: Family) -> Storage | None:
    """What is known of a family's calls, a `sized.Kind`; None: nothing yet."""
    found = [each for each in map(sized_of, family.outlines) if each is not None]
    if not found and not family.closed:
        return None
    at = padded([each.ptr for each in found], MOST_OUTLINES)
    return words_in_memory([int(family.closed), len(found), *at], *found)


def sized_of(outline: Outline) -> Storage | None:
    """The Sized that says what the outline says; None: machine code cannot do it."""
    if outline.machine is None:
        try:
            outline.machine = _sized(outline)
        except (Unsaid, OverflowError):
            outline.machine = False
    return outline.machine or None


def _sized(outline: Outline) -> Storage:
    plan = outline.plan
    if plan.kind not in _KINDS or len(outline.values) > sized.MOST_VALUES:
        raise Unsaid
    found = Words(outline)
    kind, deltas = _KINDS[plan.kind], 0
    if plan.kind == plans.VIEW:
        deltas = found.add([plan.delta])
    elif plan.kind == plans.VIEWS:
        deltas = found.add(plan.post)
    elif plan.kind == plans.FRESH:
        runs = plan.fresh
        found.part(runs, "play" if isinstance(_source(runs), SequenceDraft) else "fresh")
    else:
        if plan.allocate is not new_storage:
            raise Unsaid
        runs = plan.into
        found.part(runs, "play" if isinstance(_source(runs), SequenceDraft) else "into")
    if len(plan.outs) > sized.MOST_RESULTS or any([out.ndim > MOST_DIMS for out in plan.outs]):
        raise Unsaid
    results: list[int] = []
    for out in plan.outs:
        results += [id(out), out.ndim, found.add(out.shape), found.add(out.strides)]
    if len(found.words) > sized.MOST_WORDS or len(found.parts) > sized.MOST_PARTS:
        raise Unsaid
    return _in_memory(outline, found, kind, deltas, results)


def _source(runs: Any) -> Any:
    return getattr(runs, "source", None)


def _in_memory(
    outline: Outline, found: Words, kind: int, deltas: int, results: list[int]
) -> Storage:
    """The Sized, and all that it points to."""
    code: list[int] = []
    for what, one, other, number in outline.steps:
        code += [_STEPS[what], number, *_sum(one), *_sum(other)]
    symbols = [(k, word) for k, word in enumerate(found.words) if isinstance(word, Symbol)]
    for k, symbol in symbols:
        code += [k, *_sum(symbol.terms)]
    template = [w.value if isinstance(w, Symbol) else int(w) for w in found.words]
    calls = [words_in_memory(each or [0]) for each in found.calls]
    parts: list[int] = []
    for part, each, held in zip(found.parts, found.calls, calls, strict=True):
        parts += [*part, len(each) // 2, held.ptr]
    blocks = [words_in_memory(each or [0]) for each in (template, code, parts, results)]
    at = [block.ptr for block in blocks]
    return words_in_memory(
        [kind, outline.given, len(outline.steps), len(symbols), len(template), at[0], at[1],
         len(found.parts), at[2], len(outline.plan.outs), at[3], deltas],
        outline, *calls, *blocks,
    )  # fmt: skip
