"""Learning: what Python has found out about a call, as a place for the native path.

A place is made of words in the order of ``places.Place``. It can say what a plan does whose
operands are among the call's tensors and whose numbers are the call's own, in any order; everything
else is left to Python, and a place says that, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.device import depends_on_thread
from antorcha.core.shapes import may_overlap
from antorcha.runtime.call import plan as plans
from antorcha.runtime.call.native import record
from antorcha.runtime.call.native.counted import words_of
from antorcha.runtime.call.native.flat import flat_of
from antorcha.runtime.call.native.keys import MOST as WORDS
from antorcha.runtime.call.native.places import (
    ALL,
    CONSTANT,
    FLAT,
    FRESH,
    LOOSE,
    MANY,
    MOST_ARGUMENTS,
    NEVER,
    ONE,
    OUT,
    PACKED,
    SAME,
    SIZED,
    SIZES_COUNTED,
    VIEWS,
    WRITE,
    Place,
)
from antorcha.runtime.call.native.promote_sizes import kind_of
from antorcha.runtime.call.native.record import MOST_OPERANDS
from antorcha.runtime.call.native.sized import MOST_RESULTS
from antorcha.runtime.call.native.tensors import making_of
from antorcha.runtime.call.node import saved_by
from antorcha.runtime.call.plan import Plan
from antorcha.runtime.launch import storage_of
from antorcha.runtime.memory.layout import form_of
from antorcha.runtime.memory.storage import Storage, rooms
from antorcha.runtime.objects import padded, words_in_memory
from antorcha.runtime.sequence import sequence_of
from antorcha.runtime.tensor import Tensor

_NUMBERS = (int, float, bool, complex)


class Call:
    """What a plan was run with: the operands, the kernel's arguments, the numbers of the node; and
    which of the numbers other calls by the same key may have others for (``keys.add_loose``)."""

    def __init__(
        self,
        plan: Plan,
        operands: Sequence[Any],
        flat: Sequence[Any],
        numbers: tuple[Any, ...],
        loose: Sequence[Any] = (),
        writes: bool = False,
        packed: bool = False,
        out: Tensor | None = None,
    ) -> None:
        self.plan, self.operands, self.flat, self.numbers = plan, operands, flat, numbers
        self.loose = loose
        self.writes = writes  # over its first operand, as `plan` is made for
        self.out = out  # the tensor given for the result, as `plan` is made for
        self.packed = packed  # is what it runs a sequence that gives places of results?


class Itself:
    """In a Call's place: nothing runs, the result is one of the call's tensors."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def tensors_of(args: Sequence[Any]) -> list[Tensor]:
    """The tensors among the arguments, in the order of a key."""
    found: list[Tensor] = []
    for each in args:
        if isinstance(each, (tuple, list)):
            found += [item for item in each if isinstance(item, Tensor)]
        elif isinstance(each, Tensor):
            found.append(each)
    return found


def place_for(
    words: Sequence[int],
    args: Sequence[Any],
    call: Call | Itself | str,
    pack: Callable[..., Any] | int = ONE,
) -> tuple[Storage, str]:
    """The place for a key (``py_words``) of a call with these arguments, the names of keywords
    among them; and why it leaves the call to Python, if it does. pack: what makes the caller's
    result of several, or ALL, FIRST, ONE."""
    given = tensors_of(args)
    objects = _objects(args)
    owners: list[Any] = [[t._layout for t in given], *objects]
    body: list[int] | None
    if any([depends_on_thread(each) for each in objects]):
        call = "its device is the thread's current one"
    if isinstance(call, str):
        why, body = call, None
    elif isinstance(call, Itself):
        at = place_of(call.tensor, given)
        why, body = "", [SAME, 0, 0, 0, 1, *padded([at], MOST_OPERANDS)]
    else:
        why, body = "Python computes it, or moves its arguments", _body(call, given, pack, owners)
    return _found_by(words, body or [NEVER], owners), "" if body else why


def place_for_any_size(words: Sequence[int], args: Sequence[Any], call: Call) -> Storage:
    """The place for the calls that differ in nothing but their size."""
    given = tensors_of(args)
    at = _positions(call.operands, given)
    arguments = None if at is None else _arguments(call, at)
    body, owners = [NEVER], _objects(args)
    if at is not None and arguments is not None and len(arguments) <= MOST_ARGUMENTS:
        flat = flat_of(call.plan, [t._layout for t in given])
        owners += [flat, call.numbers, [each for each, _ in arguments]]
        body = [FLAT, id(flat), 0, 0, 0, *[0] * MOST_OPERANDS, *_given(arguments)]
    return _found_by(words, body, owners)


def place_for_sizes(
    words: Sequence[int], args: Sequence[Any], call: Call, pack: Callable[..., Any] | int
) -> Storage | None:
    """The place for the calls that differ in sizes only, as far as outlines go. None: nobody knows
    yet. (The numbers of a key are the operands' and the shapes', in order, as an outline's are;
    where a shape comes by keyword there are fewer, and no outline fits.)"""
    family = call.plan.family
    run = None
    if family is not None and same(tensors_of(args), [o for o in call.operands if o is not None]):
        run = kind_of(family)
        if run is None:
            return None
    return place_for_kind(words, args, call, run, pack)


def place_for_kind(
    words: Sequence[int], args: Sequence[Any], call: Call | None, run: Storage | None,
    pack: Callable[..., Any] | int,
) -> Storage:  # fmt: skip
    """The place for the calls that a `sized.Kind` is for; without one, they are left to Python."""
    given = tensors_of(args)
    owners: list[Any] = [[form_of(t._layout) for t in given], *_objects(args)]
    body = None
    if run is not None and call is not None:
        body = _sized_body(call, run, given, pack, owners)
    return _found_by(words, body or [NEVER], owners)


def _sized_body(
    call: Call, run: Storage, given: list[Tensor], pack: Callable[..., Any] | int,
    owners: list[Any],
) -> list[int] | None:  # fmt: skip
    """The words after the key of a place for many sizes; None: machine code cannot do it."""
    plan = call.plan
    at = _positions(call.operands, given)
    arguments = None if at is None else _arguments(call, at)
    if at is None or arguments is None or len(arguments) > MOST_ARGUMENTS:
        return None
    if call.writes and at[0] != 0:
        return None
    if [layout is None for layout in plan.tensors] != [o is None for o in call.operands]:
        return None
    if len(at) > MOST_OPERANDS:
        if plan.outline is None or not plan.outline.packed:
            return None
        at = []  # which only a graph asks for
    owners += [run, pack, call.numbers, [each for each, _ in arguments]]
    return [
        SIZED, id(run), 0, 0, len(at), *padded(at, MOST_OPERANDS), *_given(arguments),
        0 if call.loose else id(call.numbers),
        0, *padded([], MOST_RESULTS), *padded([], MOST_RESULTS),
        pack if isinstance(pack, int) else ALL, 0 if isinstance(pack, int) else id(pack),
    ]  # fmt: skip


def _found_by(words: Sequence[int], body: Sequence[int], owners: Sequence[Any]) -> Storage:
    """A place: its key, as ``py_words`` gives it, and what it says."""
    count, mixed = words[:2]
    kinds, values = words[2 : 2 + count], words[2 + count :]
    key = [count, mixed, *padded(kinds, WORDS), *padded(values, WORDS)]
    return words_in_memory(padded([*key, *body], Place.size // 8), *owners)


def _objects(args: Sequence[Any]) -> list[Any]:
    """What a key names by its address: it must live as long as the key."""
    found: list[Any] = []
    for each in args:
        if isinstance(each, (tuple, list)):
            found += _objects(each)
        elif not isinstance(each, Tensor):
            found.append(each)
    return found


def _body(
    call: Call, given: list[Tensor], pack: Callable[..., Any] | int, owners: list[Any]
) -> list[int] | None:
    """The words after the key; None: a place cannot say it."""
    plan = call.plan
    runs = _runs(plan, call.packed)
    if call.writes or call.out is not None:
        runs = _writes(call)
    if runs is None or len(plan.tensors) > MOST_OPERANDS or len(plan.outs) > MOST_RESULTS:
        return None
    what, run = runs
    at = _positions(call.operands, given, call.out)
    if at is None or len(at) != len(plan.tensors) or (call.writes and at[0] != 0):
        return None
    arguments = _arguments(call, at)
    if arguments is None or len(arguments) > MOST_ARGUMENTS:
        return None
    owners += [plan, run, call.numbers, pack, [each for each, _ in arguments]]
    recording = None if what in (WRITE, OUT) else _recording(call)
    owners.append(recording)
    sizes: Sequence[int] = [layout.nbytes for layout in plan.outs]
    if plan.kind == plans.VIEW:
        sizes = [plan.delta]
    elif plan.kind == plans.VIEWS:
        sizes = plan.post
    elif plan.kind == plans.MANY and plan.allocate in rooms:
        sizes = [nbytes + rooms[plan.allocate] for nbytes in sizes]
    return [
        what,
        0 if run is None else id(run),
        int(what in (MANY, WRITE, OUT) and sequence_of(plan.into) is not None),
        0 if recording is None else id(recording),
        len(at), *padded(at if what != OUT else [place_of(call.out, given)], MOST_OPERANDS),
        *_given(arguments),
        0 if call.loose else id(call.numbers),
        len(plan.outs), *padded([id(layout) for layout in plan.outs], MOST_RESULTS),
        *padded(sizes, MOST_RESULTS),
        pack if isinstance(pack, int) else ALL, 0 if isinstance(pack, int) else id(pack),
        int(what == FRESH and _is_straight(call, at, arguments)),
    ]  # fmt: skip


def _is_straight(call: Call, at: list[int], arguments: list[tuple[Any, int]]) -> bool:
    """Is it a call with an operand and another, or a number that a node keeps, in this order?"""
    which = [place for _, place in arguments]
    if which == [0, 1]:
        return at[:2] == [0, 1] and not call.numbers
    return which == [0, LOOSE] and at[0] == 0 and len(call.numbers) == 1


def _recording(call: Call) -> Storage | None:
    """How a graph records the call: at least where these operands want gradients."""
    rule, mask = call.plan.rule, 0
    for k, operand in enumerate(call.operands):
        if operand is not None and operand._rg:
            mask |= 1 << k
    if rule is not None and mask & rule.mask:
        saved_by(call.plan, mask & rule.mask)
    return record.storage_of(call.plan)


def place_of(tensor: Tensor | None, given: list[Tensor]) -> int:
    """Which of the tensors given it is."""
    return [each is tensor for each in given].index(True)


def _given(arguments: list[tuple[Any, int]]) -> list[int]:
    """The words of a kernel's arguments."""
    return [
        len(arguments), *padded([which for _, which in arguments], MOST_ARGUMENTS),
        *padded([id(value) for value, _ in arguments], MOST_ARGUMENTS),
    ]  # fmt: skip


def _runs(plan: Plan, packed: bool) -> tuple[int, Storage | None] | None:
    """What a place says of a plan's kind, and what it runs; None where that is Python."""
    if plan.kind in (plans.VIEW, plans.VIEWS):
        return VIEWS, None
    if plan.kind == plans.FRESH:
        making = making_of(plan.run)
        return None if making is None else (FRESH, making)
    if plan.kind == plans.HOST:
        sequence, counted = sequence_of(plan.sequence), words_of(plan.fresh)
        if counted is not None:
            return SIZES_COUNTED, counted
        return None if sequence is None else (PACKED, sequence)
    if plan.kind != plans.MANY:
        return None
    if packed:
        return PACKED, sequence_of(plan.into)
    return _run_into(plan, MANY) if plan.allocate in rooms else None


def _writes(call: Call) -> tuple[int, Storage | None] | None:
    """The same of a write, to a target that has no element twice."""
    plan, target = call.plan, call.operands[0] if call.out is None else call.out
    if plan.kind != plans.FRESH or target is None:
        return None
    if may_overlap(target._layout.shape, target._layout.strides):
        return None
    return _run_into(plan, WRITE if call.out is None else OUT)


def _run_into(plan: Plan, what: int) -> tuple[int, Storage] | None:
    """What writes to results that are there, if it is machine code."""
    run = storage_of(plan.into, "into") or sequence_of(plan.into)
    return None if run is None else (what, run)


def same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """The same objects?"""
    return len(a) == len(b) and all([x is y for x, y in zip(a, b, strict=True)])


def _positions(
    operands: Sequence[Any], given: list[Tensor], out: Tensor | None = None
) -> list[int] | None:
    """Which of the call's tensors each operand is; -1: there is none. None where some are not, or
    where one tensor is two arguments, which other calls need not have. out: one that is none."""
    if out is not None:
        given = [t for t in given if t is not out]  # (it follows the operands: a keyword's)
    present = [o for o in operands if o is not None]
    if len(present) != len(given):
        return None
    identities = [id(t) for t in given]
    if len(set(identities)) < len(identities):
        if any([o is not t for o, t in zip(present, given, strict=True)]):
            return None
        numbers = iter(range(len(given)))
        return [-1 if o is None else next(numbers) for o in operands]
    if {id(o) for o in present} != set(identities):
        return None
    return [-1 if o is None else identities.index(id(o)) for o in operands]


def _arguments(call: Call, at: list[int]) -> list[tuple[Any, int]] | None:
    """The kernel's arguments: (None, which tensor), or (a number, which of the call's)."""
    found: list[tuple[Any, int]] = []
    numbers = 0
    which = iter([place for place in at if place >= 0])
    k = 0
    while k < len(call.flat):
        if type(call.flat[k]) in _NUMBERS:
            found.append((call.flat[k], LOOSE - numbers if call.loose else CONSTANT))
            numbers += 1
            k += 1
        else:
            place = next(which, None)
            if place is None:
                return None
            found.append((None, place))
            k += 2
    given = [value for value, _ in found if value is not None]
    return None if call.loose and not same(call.loose, given) else found
