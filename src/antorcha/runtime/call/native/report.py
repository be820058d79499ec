"""What the native path has served, and what it has left to Python, and why: for people to read."""

from __future__ import annotations

from typing import NamedTuple

from antorcha.runtime.call.native import methods, places

WHY = {
    "arguments": "arguments that have no key",
    "mode": "a mode that is Python's",
    "new": "shapes that were new",
}


class Served(NamedTuple):
    """An op's calls. `why` says of those by Python what the commonest reason was."""

    name: str
    native: int
    python: int
    why: str


def served() -> list[Served]:
    """The ops that were called, those that Python served most often first."""
    found: dict[str, list[int]] = {}
    first = places.Quick.fields["counts"][0] // 8
    for name, memory in methods.quicks:
        _add(found, name, list(memory[first : first + len(places.COUNTED)]))
    rows = []
    for name, counts in found.items():
        of = dict(zip(places.COUNTED, counts, strict=True))
        native = of.pop("native")
        python = sum(of.values())
        most = max(of, key=lambda reason: of[reason])
        why = WHY.get(most) or methods.reasons.get(name, "the graph, or a view of it")
        if native or python:
            rows.append(Served(name, native, python, why if python else ""))
    return sorted(rows, key=lambda row: (-row.python, -row.native, row.name))


def _add(found: dict[str, list[int]], name: str, counts: list[int]) -> None:
    before = found.get(name, [0] * len(counts))
    found[name] = [a + b for a, b in zip(before, counts, strict=True)]
