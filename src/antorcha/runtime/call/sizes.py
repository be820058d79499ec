"""Planning for sizes that change: an op that meets a third size of one kind is outlined.

A *family* is what has one key but for its tensors' numbers: the op, the arguments, and each
operand's form (dtype, device, dims, where a size or a stride is 0 or 1, whether it is row-major).
Its first two sizes (a data set's batches, and its last) are planned as any call. With the third,
which costs some milliseconds once, the op is planned with symbols for the numbers; the outline
serves all sizes that give the same answers to what was asked meanwhile. Sizes with other answers
get outlines of their own, up to a bound. What cannot be planned with symbols is planned size by
size, as if there were no outlines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from antorcha.core.memo import keep
from antorcha.core.symbols import Trace, Untold, hold_no_sizes
from antorcha.errors import NativeError
from antorcha.runtime.call import plan as plans
from antorcha.runtime.call.outline import Outline
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.memory.layout import Layout, form_of
from antorcha.runtime.tensor import Tensor, bare

if TYPE_CHECKING:
    from antorcha.runtime.call.protocols import Planner

SINGLY = 2  # sizes of a family that are planned one by one
MOST_OUTLINES = 4  # of a family; the first goes when there are more
MOST_MISSES = 12  # sizes of a family that were planned, after which no more outlines are made
MOST_FAMILIES = 5_000
compared = False
"""Is every plan that an outline gives compared with one made for the size itself? For tests."""
refused: dict[str, str] = {}
"""Why an op could not be outlined, the last time."""


class Family:
    """The outlines of calls that differ in their sizes only."""

    __slots__ = ("misses", "outlines")

    def __init__(self) -> None:
        self.outlines: list[Outline] = []
        self.misses = 0  # sizes that were planned

    @property
    def closed(self) -> bool:
        """Will there be no more outlines?"""
        return self.misses >= MOST_MISSES


_families: dict[Any, Family] = {}
plans.on_flush(_families.clear)


def planned(op: Planner, key: Any, operands: Sequence[Any], values: list[Any], write: bool) -> Plan:
    """The plan of a call with these bound values, found or made. key: as ``op.bind`` gives it, the
    operands' layouts in it. write: it writes over its first operand."""
    given = [o._layout for o in operands if o is not None]
    outs = (given[0],) if write else None
    shapes = [values[k] for k in shapes_in(op, values)] if op.outlined else []
    numbers = numbers_of(given, shapes) if op.outlined else ()
    if not numbers:
        alone: Plan = op.make_plan(values, outs)
        return alone
    family = family_of(op, without_sizes(key, shapes), given, write)
    for outline in family.outlines:
        found = outline.plan_for(given, numbers)
        if found is not None:
            if compared:
                compare(op, found, op.make_plan(values, outs))
            found.family = family
            return found
    plan: Plan = op.make_plan(values, outs)  # (refuses what it refuses)
    family.misses += 1
    if SINGLY < family.misses <= MOST_MISSES:
        result = outlined(op, values, operands, numbers, write)
        if result is None:
            family.misses = MOST_MISSES
        else:
            result.plan.family = family
            family.outlines = [*family.outlines, result][-MOST_OUTLINES:]
    plan.family = family
    return plan


def numbers_of(given: Sequence[Layout], shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """What a family's members differ in."""
    numbers: tuple[int, ...] = ()
    for layout in given:
        form_of(layout)
        numbers += layout.numbers
    for shape in shapes:
        numbers += tuple([n for n in shape if n > 1])
    return numbers


def family_of(op: Planner, key: Any, given: Sequence[Layout], write: bool) -> Family:
    """The family of a call, a new one if need be."""
    whole = (op, write, key, *[layout.form for layout in given])
    family = _families.get(whole)
    return keep(_families, whole, Family(), MOST_FAMILIES) if family is None else family


def shapes_in(op: Planner, values: list[Any]) -> list[int]:
    """Which of an op's bound values are shapes, whose sizes may be any numbers as those of operands
    are: what is one tuple with another argument is left as it is."""
    found = []
    for k in op.shapes:
        value = values[k]
        if type(value) is tuple and sum([value is other for other in values]) == 1:
            found.append(k)
    return found


def without_sizes(key: Any, shapes: Sequence[Any]) -> Any:
    """A key without what the operands' forms say of it, and with forms in the place of shapes."""
    if type(key) is tuple:
        if any([key is shape for shape in shapes]):
            return ("shape", *[min(n, 2) for n in key])
        return tuple([without_sizes(item, shapes) for item in key])
    return Layout if type(key) is Layout else key


def outlined(
    op: Planner, values: list[Any], operands: Sequence[Any], numbers: Sequence[int], write: bool
) -> Outline | None:
    """The outline of a call; None: it cannot be planned with symbols."""
    for part in (op, op.rule):
        if part is not None:
            hold_no_sizes(type(part).__mro__[-2])  # what all ops, or rules, are
    trace = Trace(numbers)
    try:
        call = SymbolicCall(op, values, operands, write)
        plan, given = call.plan(iter(trace.symbols))
        return Outline(trace, plan, given, call)
    except Exception as error:  # whatever it is, the op is planned size by size
        refused[op.name] = f"{type(error).__name__}: {error}"
        return None
    finally:
        trace.close()


class SymbolicCall:
    """A call to be planned with symbols: its bound values, with tensors without memory in the place
    of its own."""

    __slots__ = ("forms", "op", "shapes", "stand_ins", "values", "write")

    def __init__(
        self, op: Planner, values: list[Any], operands: Sequence[Any], write: bool
    ) -> None:
        self.op, self.write = op, write
        found = [o for o in operands if o is not None]
        self.forms = [form_of(o._layout) for o in found]
        self.stand_ins = [bare(o._layout, None) for o in found]
        stand_ins = iter(self.stand_ins)
        self.values = replaced(values, iter(found), stand_ins)
        self.shapes = shapes_in(op, values)
        if next(stand_ins, None) is not None:
            raise Untold("its operands are not its arguments")

    def plan(self, symbols: Iterator[Any]) -> tuple[Plan, list[Layout]]:
        """The plan with these symbols in the place of the call's numbers, and the operands' layouts
        that it is for."""
        given = [form.layout(symbols) for form in self.forms]
        others = iter([bare(layout, None) for layout in given])
        bound = replaced(self.values, iter(self.stand_ins), others)
        for k in self.shapes:
            bound[k] = tuple([next(symbols) if n > 1 else n for n in bound[k]])
        return self.op.make_plan(bound, (given[0],) if self.write else None), given


def replaced(values: Sequence[Any], found: Iterator[Any], others: Iterator[Any]) -> list[Any]:
    """Bound values with the stand-ins in the place of their tensors."""
    result: list[Any] = []
    for value in values:
        if isinstance(value, Tensor):
            if next(found, None) is not value:
                raise Untold("its operands are not its arguments, in order")
            result.append(next(others))
        elif isinstance(value, (tuple, list)) and any([isinstance(v, Tensor) for v in value]):
            items = replaced(value, found, others)
            result.append(tuple(items) if type(value) is tuple else items)
        else:
            result.append(value)
    return result


# ---- checking
def compare(op: Planner, found: Plan, result: Plan) -> None:
    """Refuses a plan by outline that is not what planning gives."""
    for name in ("kind", "outs", "delta", "tensors", "rule", "post_names"):
        if getattr(found, name) != getattr(result, name):
            raise NativeError(
                f"{op.name}: an outline's plan has {name} {getattr(found, name)}, where planning "
                f"gives {getattr(result, name)}"
            )
    for name in ("fresh", "into"):
        one, other = getattr(found, name, None), getattr(result, name, None)
        texts = [described(each) for each in (one, other)]
        if texts[0] != texts[1]:
            raise NativeError(
                f"{op.name}: an outline's kernel is {texts[0]}, where planning gives {texts[1]}"
            )


def described(function: Any) -> Any:
    """What a launch or a sequence runs, without its addresses."""
    owner = getattr(getattr(function, "__self__", None), "owner", None)
    if owner is None:
        return type(function).__name__
    words = getattr(owner, "words", None)
    if words is not None:
        kept = list(words)
        kept[1] = kept[8] = 0
        what = re.sub(r" at 0x[0-9a-f]+", "", repr(owner.what))
        return kept, re.sub(r"<function ([^>]*>?[^>]*)>", r"'\1'", what)  # f, or f.<locals>.g
    held, *owners = owner
    return len(held), [described(each) for each in owners]
