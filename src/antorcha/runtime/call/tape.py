"""Tapes: what a piece of Python computed, written down as a sequence of kernels.

A rule or a function written in ops does the same kernels for all tensors that lie alike. While a
tape runs in a thread, every call goes the general way, and ``path.execute`` notes its plan there:
which of the tensors known to the tape it read, and what it made. What a tape cannot say (contents
that were looked at, a write in place, sizes that depend on data, random numbers, a tensor from
elsewhere) makes it useless, and ``why`` says so; then the Python goes on running each time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from antorcha.core import modes
from antorcha.core.device import backend
from antorcha.core.lazy import lazy
from antorcha.core.shapes import is_symbol
from antorcha.errors import GraphError
from antorcha.runtime.call.plan import FRESH, HOST, MANY, VIEW, Plan
from antorcha.runtime.tensor import Tensor

runtime_sequence = lazy("antorcha.runtime.sequence")
_NUMBERS = (int, float, bool, complex)


class Tape:
    """A sequence being written by running it. ``given`` arguments, see ``runtime.sequence``."""

    def __init__(self, given: int, finds_plans: bool = False) -> None:
        self.steps = runtime_sequence.Sequence(given)
        self.finds_plans = finds_plans  # does what is planned alone look for plans there are?
        self.start = self.steps.constant(0)
        self.places: dict[int, tuple[int, int]] = {}  # by identity of a tensor
        self.fresh: set[int] = set()  # identities of tensors over memory of their own
        self.rooms: set[int] = set()  # the places of that memory
        self.saved: dict[int, tuple[int, int]] = {}  # by position: what the rule may unpack
        self.numbers: dict[int, int] = {}  # by identity of a number among the arguments
        self.floats: dict[int, int] = {}  # the same of those that any op may be given
        self.unused: set[int] = set()  # identities of those that none has been given yet
        self.writable: set[int] = set()  # arguments: storages that what runs may write to
        self.held: list[Any] = []  # an identity is one only while its object lives
        self.calls: list[Any] = []
        """What ran: plan, operands, the kernel's arguments, the numbers, the results."""
        self.writes = 0  # how many of them are to memory from elsewhere
        self.why = ""

    def put(self, tensor: Tensor, storage: int, offset: int) -> None:
        """Says where a tensor is."""
        if id(tensor) in self.places:
            self.fail("one tensor is two arguments")
        self.places[id(tensor)] = storage, offset
        self.held.append(tensor)

    def put_fresh(self, tensor: Tensor, storage: int) -> None:
        """Says where a tensor is that has memory of its own."""
        self.put(tensor, storage, self.start)
        self.fresh.add(id(tensor))
        self.rooms.add(storage)

    def is_fresh(self, tensor: Tensor) -> bool:
        """Is it over memory of its own, as it is or seen in another way by nobody else?"""
        if id(tensor) in self.fresh:
            return True
        place = self.places.get(id(tensor))
        return place is not None and tensor._base is None and place[0] in self.rooms

    def put_number(self, number: Any, place: int) -> None:
        if id(number) in self.numbers:
            self.fail("one number is two arguments")
        self.numbers[id(number)] = place
        self.held.append(number)

    def put_float(self, number: float, place: int) -> None:
        """Says where a float is which the noted Python hands to ops as it is. (An int may be one
        object with another that has nothing to do with it.)"""
        if type(number) is not float:
            self.fail("a number that is no float")
        self.floats[id(number)] = place
        self.unused.add(id(number))
        self.held.append(number)

    def fail(self, why: str) -> None:
        self.why = self.why or why

    def note(
        self, plan: Plan, operands: Any, flat: Sequence[Any], numbers: Any, outs: Sequence[Tensor]
    ) -> None:
        """A plan has run."""
        self.calls.append((plan, operands, flat, numbers, outs))
        if plan.kind == HOST or plan.op.random or self.why:
            self.fail(f"{plan.op.name}: its results are not known from its operands' layouts")
            return
        if plan.kind in (FRESH, MANY):
            ins = self._arguments(plan, operands, flat)
            if ins is None:
                return
            if plan.kind == FRESH:
                self.put_fresh(outs[0], self.steps.run(plan.fresh, *ins))
                return
            rooms = [self.steps.allocate(layout.nbytes, plan.allocate) for layout in plan.outs]
            self.steps.into(plan.into, *[at for room in rooms for at in (room, self.start)], *ins)
            for out, room in zip(outs, rooms, strict=True):
                self.put_fresh(out, room)
            return
        source = self.places.get(id(operands[0]))
        if source is None:
            self.fail(f"{plan.op.name}: a tensor from elsewhere")
            return
        distances = (plan.delta,) if plan.kind == VIEW else plan.post
        for out, distance in zip(outs, distances, strict=True):
            self.put(out, source[0], self.steps.move(source[1], distance))

    def note_write(self, plan: Plan, operands: Any, flat: Sequence[Any]) -> None:
        """A plan has written over its first operand: to memory that the tape has made itself, or
        nobody can say what the next time should write to."""
        found = self.places.get(id(operands[0]))
        if plan.op.random and not modes.state.word & modes.SYMBOLS:  # Python has drawn
            self.fail(f"{plan.op.name}_ draws random numbers")
            return
        ins = None if found is None else self._arguments(plan, operands, flat)
        if found is None or ins is None or not self._may_write(found[0]):
            self.fail(f"{plan.op.name}_ writes in place")
            self.writes += 1
            self.calls.append((plan, operands, flat, (), (operands[0],)))
            return
        self.calls.append((plan, operands, flat, (), ()))
        self.steps.into(plan.into, *found, *ins)
        if found[0] not in self.writable:
            self.steps.wrote(found[0])

    def _may_write(self, storage: int) -> bool:
        """May what runs write there: to what it has made, or was given for that?"""
        return storage >= self.steps.given or storage in self.writable

    def forget_writes(self, tensor: Tensor) -> None:
        """The writes to its storage so far were a part of making it: nobody counts them."""
        found = self.places.get(id(tensor))
        if found is not None:
            self.steps.forget_writes(found[0])

    def note_memory(self, result: Tensor) -> None:
        """Memory has been allocated for a tensor, to which ops are going to write."""
        layout = result._layout
        self.put_fresh(result, self.steps.allocate(layout.nbytes, backend(layout.device).allocate))

    def note_into(self, plan: Plan, outs: Sequence[Tensor], operands: Sequence[Tensor]) -> None:
        """A plan has written over tensors that the noted Python made for it."""
        places = [self.places.get(id(t)) for t in (*outs, *operands)]
        flat: list[int] = []
        for k, found in enumerate(places):
            if found is None or (k < len(outs) and found[0] < self.steps.given):
                self.fail(f"{plan.op.name} writes into memory from elsewhere")
                return
            flat += found
        self.calls.append((plan, operands, flat, (), ()))
        self.steps.into(plan.into, *flat)

    def _arguments(self, plan: Plan, operands: Any, flat: Sequence[Any]) -> list[int] | None:
        """The places of a launch's arguments; None when one is not known."""
        tensors = iter([each for each in operands if each is not None])
        ins: list[int] = []
        k = 0
        while k < len(flat):
            if type(flat[k]) not in _NUMBERS and not is_symbol(flat[k]):  # a storage, its offset
                found = self.places.get(id(next(tensors)))
                if found is None:
                    self.fail(f"{plan.op.name}: a tensor from elsewhere")
                    return None
                ins += found
                k += 2
                continue
            known = self.numbers if plan.op.numbers_given else self.floats
            place = known.get(id(flat[k]))
            self.unused.discard(id(flat[k]))
            if plan.op.numbers_given and place is None and not is_symbol(flat[k]):
                self.fail(f"{plan.op.name}: a number from elsewhere")
                return None
            ins.append(self.steps.constant(flat[k]) if place is None else place)
            k += 1
        return ins


class _Current(threading.local):
    tape: Tape | None = None


current = _Current()


@contextmanager
def running(tape: Tape, more: int = 0) -> Iterator[None]:
    """Notes what this thread computes on the tape. more: other modes to be in meanwhile."""
    before, current.tape = current.tape, tape
    word = modes.set_word(modes.state.word | modes.TAPE | more)
    try:
        yield
    finally:
        modes.set_word(word)
        current.tape = before


def spoil(why: str) -> None:
    """Tells the tape of this thread, if there is one, that it cannot say what happens."""
    if modes.state.word & modes.SYMBOLS:
        raise GraphError(f"a tensor without memory: {why}")
    if current.tape is not None:
        current.tape.fail(why)
