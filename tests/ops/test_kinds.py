"""Ops are of one class: what one does otherwise is a planner, or data of its record."""

from __future__ import annotations

from collections.abc import Iterator

from antorcha.ops.kinds.record import Op

MOST = 6


def classes(base: type) -> Iterator[type]:
    for each in base.__subclasses__():
        yield each
        yield from classes(each)


def test_few_classes_of_ops() -> None:
    found = sorted(each.__name__ for each in classes(Op) if each.__module__.startswith("antorcha."))
    assert len(found) <= MOST, f"give the new one's record a planner, or an option: {found}"
