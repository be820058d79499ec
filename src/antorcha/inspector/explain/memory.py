"""Why memory ran out: what was asked for, what holds the rest."""

from __future__ import annotations

import gc
import os
from typing import Any

from antorcha.inspector.explain.case import Case, Finding, rule
from antorcha.inspector.explain.values import fact_of
from antorcha.inspector.forms import cut, shape_text
from antorcha.inspector.naming import field, is_tensor, named_tensors, names_around
from antorcha.inspector.numbers import memory_size
from antorcha.runtime.tensor import Tensor

_LARGEST = 5
_LEAST = 1 << 10  # bytes of a tensor that is told


@rule("memory")
def out_of_memory(case: Case) -> Finding:
    """An allocation that was refused, by antorcha or by Python."""
    return refused(case)


def refused(case: Case, of_array: str = "") -> Finding:
    """What was asked for (for an array, in NumPy's words), and what holds the rest."""
    asked = case.facts.more.get("asked", 0)
    size = memory_size(asked) if asked else of_array
    held, largest = _largest(case)
    held = case.facts.more.get("held", held)
    key = "memory asked" if size else "memory"
    rule = case.say(key, asked=size, held=memory_size(held))
    has = _machine()
    if has and asked > has:
        rule += f" {case.say('memory machine', has=memory_size(has))}"
    else:
        rule += f" {case.say('memory less', torch=case.torch)}"
    notes = [case.say("largest"), *largest] if largest else []
    return Finding(rule, notes=notes)


def _machine() -> int:
    """Bytes of memory that the machine has; 0 where that is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def _largest(case: Case) -> tuple[int, list[str]]:
    """The bytes of all tensors, and a line for each of the largest, by the names they have."""
    found: dict[int, tuple[int, str, str]] = {}
    covered: dict[int, int] = {}  # storage -> elements of its tensor that is told, the largest
    known = {**names_around(case.site.frame), **case.names.known}
    for label, tensor in [*named_tensors(known), *_nameless()]:
        storage, fact = field(tensor, "_storage"), fact_of(tensor)
        if fact is None or fact.device.type == "meta":
            continue
        if fact.numel > covered.get(id(storage), -1) and (label or id(storage) not in found):
            covered[id(storage)] = fact.numel
            text = f"{shape_text(fact.shape)} {fact.dtype.name}"
            found[id(storage)] = (storage.nbytes, label or case.say("no name"), text)
    known.clear()
    rows = sorted([row for row in found.values() if row[0] >= _LEAST], key=lambda row: -row[0])
    rows = rows[:_LARGEST]
    wide = max([len(cut(label, 40)) for _, label, _ in rows], default=0)
    lines = [
        f"  {cut(label, 40):<{wide}}  {memory_size(size)}  {what}" for size, label, what in rows
    ]
    return sum([size for size, _, _ in found.values()]), lines


def _nameless() -> list[tuple[str, Any]]:
    """Every tensor that the collector knows."""
    return [
        ("", each)
        for each in gc.get_objects()
        if issubclass(type(each), Tensor) and is_tensor(each)
    ]
