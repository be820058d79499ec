"""Functions of an element or two that an entry says all about: name, meaning and an example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.lang import expr as E
from antorcha.ops.kinds.pointwise import PointwiseOp


def function(
    name: str,
    meaning: str,
    given: str,
    gives: str,
    *,
    element: Callable[..., Any] | None = None,
    takes: tuple[str, ...] = ("Tensor",),
    types: str = "promote",
    **options: Any,
) -> PointwiseOp:
    """The record of a function, by default that of the same name in ``lang.expr``.

    ``takes`` are the kinds of ``input`` and ``other``. The example in its documentation reads
    ``torch.name(given)``, with its namespace, and the line ``gives``. The options are those of
    ``pointwise``.
    """
    compute = element or getattr(E, name)

    def of_one(input: Any) -> Any:
        return compute(input)

    def of_two(input: Any, other: Any) -> Any:
        return compute(input, other)

    fn = of_one if len(takes) == 1 else of_two
    fn.__annotations__ = dict(zip(("input", "other"), takes))
    space = options.get("namespace", "torch")
    shown = name if space == "torch" else f"{space}.{name}"
    fn.__doc__ = f"{meaning}\n\n>>> torch.{shown}({given})\n{gives}\n"
    return PointwiseOp(fn, types, name=name, **options)
