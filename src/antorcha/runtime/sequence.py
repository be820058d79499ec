"""Sequences: several kernels, one after another, behind the same two builtins as a single launch.

What takes more than one kernel (a product whose operand must be copied first, a loss and its total,
all the gradients of an op) is a short program without branches. It has *places*: first the
arguments it is called with, then constants, then what its steps make (storages, offsets). A step
runs a kernel on places, allocates, or moves an offset; what no later step reads is dropped at once.

``Sequence`` writes such a program, ``perform`` is the machine that runs it. What a step calls may
be a launch, which then runs without going through the interpreter, or any other callable.

Invariants: a place is written once; the program's owner holds every object that its words name;
whoever runs one holds its arguments meanwhile (a step may run any code, and other threads run
beside it), and drops them and what it made, also when a step fails.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from collections.abc import Sequence as Several
from typing import Any

from antorcha.core.shapes import is_symbol
from antorcha.core.symbols import Ratio, Symbol, Untold, symbols_in, traces
from antorcha.errors import ArgumentError
from antorcha.lang.native import bind, i64, local, native, ptr, raw, struct, void
from antorcha.runtime.cpython import (
    NONE,
    Py_DecRef,
    Py_IncRef,
    PyLong_FromLongLong,
    PyObject_Vectorcall,
    PyTuple_New,
    PyTuple_SetItem,
    complain,
    complaint,
    drop_all,
    failed,
    fast_def,
    integer,
)
from antorcha.runtime.launch import py_launch, storage_of
from antorcha.runtime.launched import PendingLaunch
from antorcha.runtime.memory.alloc import allocate, release
from antorcha.runtime.memory.storage import (
    NO_MEMORY,
    Storage,
    StorageObject,
    make_storage,
    rooms,
)
from antorcha.runtime.objects import words_in_memory


@struct
class SequenceProgram:
    """The head of a program; the constants follow, then the code."""

    given: i64  # places that are arguments
    places: i64  # of all kinds
    constants: i64
    words: i64  # of code
    most: i64  # arguments of a step
    results: i64  # whose places follow the code
    packed: i64  # does a call give a tuple, also of one result or none?


RUN, INTO, CALL, ALLOCATE, MOVE, DROP, UNLESS, WROTE = range(8)
"""Steps, as words: RUN launch, place, n, *places; INTO launch, n, *places; CALL callable, place or
-1, n, *places; ALLOCATE bytes, place; MOVE from, distance, place; DROP place; UNLESS storage,
offset, storage, offset, n: the next n words are left out where those are the same memory; WROTE
storage: a write to it is counted."""
SMALL = 48  # places and arguments that fit on the machine's stack


# ---- the machine
@native
def begin(program: ptr[SequenceProgram], places: ptr[raw]) -> void:
    """Prepares the places, of which the arguments are set, and holds these."""
    constants = ptr[raw](program + 1)
    at = program.given
    for k in range(at):
        Py_IncRef(places[k])
    for k in range(program.constants):
        places[at + k] = constants[k]
    for k in range(at + program.constants, program.places):
        places[k] = None


@native
def end(program: ptr[SequenceProgram], places: ptr[raw]) -> void:
    """Drops what the steps have made, and nobody has taken, and the arguments."""
    result = program.given + program.constants
    drop_all(places + result, program.places - result)
    drop_all(places, program.given)


@native
def places_for(program: ptr[SequenceProgram], small: ptr[raw]) -> ptr[raw]:
    """Where a program's places are, and then its arguments: in `small`, which has room for SMALL,
    or in a block, which `let_go_of` gives back. Null with an exception."""
    count = program.places + program.most
    if count <= SMALL:
        return small
    block = allocate(8 * count)
    if block is None:
        complain(NO_MEMORY, NONE, NONE, 8 * count)
    return ptr[raw](block)


@native
def let_go_of(places: ptr[raw], small: ptr[raw]) -> void:
    if places != small:
        release(raw(places))


@native
def gather(args: ptr[raw], places: ptr[raw], code: ptr[i64], count: i64) -> void:
    for k in range(count):
        args[k] = places[code[k]]


@native
def moved(o: raw, distance: i64) -> raw:
    """An offset and a distance, as an object; null with an exception."""
    offset = integer(o)
    if offset == -1 and failed():
        return None
    return PyLong_FromLongLong(offset + distance)


@native(export=True, level="O2")
def perform(program: ptr[SequenceProgram], places: ptr[raw]) -> bool:
    """Runs the steps; False with an exception. There is room for `most` objects after the places,
    which `begin` has prepared; `end` is to be called either way."""
    code = ptr[i64](program + 1) + program.constants
    args = places + program.places
    at = i64(0)
    while at < program.words:
        what = code[at]
        result = raw(0)
        if what == RUN:
            count = code[at + 3]
            gather(args, places, code + (at + 4), count)
            result = py_launch(raw(code[at + 1]), args, count, FRESH=True)
            places[code[at + 2]] = result
            at += 4 + count
        elif what == INTO:
            count = code[at + 2]
            gather(args, places, code + (at + 3), count)
            result = py_launch(raw(code[at + 1]), args, count, FRESH=False)
            if result is not None:
                Py_DecRef(result)
            at += 3 + count
        elif what == CALL:
            count = code[at + 3]
            gather(args, places, code + (at + 4), count)
            result = PyObject_Vectorcall(raw(code[at + 1]), args, count, None)
            if code[at + 2] >= 0:
                places[code[at + 2]] = result
            elif result is not None:
                Py_DecRef(result)
            at += 4 + count
        elif what == ALLOCATE:
            result = make_storage(code[at + 1])
            places[code[at + 2]] = result
            at += 3
        elif what == MOVE:
            result = moved(places[code[at + 1]], code[at + 2])
            places[code[at + 3]] = result
            at += 4
        elif what == UNLESS:
            result = places[code[at + 1]]
            same = result == places[code[at + 3]]
            if same and integer(places[code[at + 2]]) == integer(places[code[at + 4]]):
                at += code[at + 5]
            at += 6
        elif what == WROTE:
            result = places[code[at + 1]]
            ptr[StorageObject](result).version += 1
            at += 2
        else:
            result = places[code[at + 1]]
            places[code[at + 1]] = None
            Py_DecRef(result)
            at += 2
        if result is None:
            return False
    return True


@native
def result_places(program: ptr[SequenceProgram]) -> ptr[i64]:
    return ptr[i64](program + 1) + (program.constants + program.words)


@native
def result_of(program: ptr[SequenceProgram], places: ptr[raw]) -> raw:
    at = result_places(program)
    result = raw(NONE)
    if program.packed != 0:
        result = PyTuple_New(program.results)
        if result is not None:
            for k in range(program.results):
                Py_IncRef(places[at[k]])
                PyTuple_SetItem(result, k, places[at[k]])
        return result
    if program.results > 0:
        result = places[at[0]]
    Py_IncRef(result)
    return result


@native(export=True)
def play(self: raw, args: ptr[raw], nargs: i64) -> raw:
    """Runs a sequence, whose storage is `self`; its result, or null with an exception."""
    program = ptr[SequenceProgram](ptr[StorageObject](self).ptr)
    if nargs != program.given:
        complain(WRONG_COUNT, self, NONE, nargs)
        return None
    small = local(raw, SMALL)
    places = places_for(program, small)
    if places is None:
        return None
    for k in range(nargs):
        places[k] = args[k]
    begin(program, places)
    result = raw(0)
    if perform(program, places):
        result = result_of(program, places)
    end(program, places)
    let_go_of(places, small)
    return result


def _wrong_count(program: Any, _second: Any, given: int) -> BaseException:
    words = memoryview(program).cast("B").cast("q")
    return ArgumentError(f"this sequence takes {words[0]} arguments, not {given}")


WRONG_COUNT = complaint(_wrong_count)


@functools.cache
def _play() -> Any:
    doc = "play(storage, offset, ..): runs the sequence's steps."
    return fast_def("play", play.spec().addr, doc)


def sequence_of(function: Any) -> Storage | None:
    """The storage of a sequence's builtin; None for anything else."""
    words = getattr(function, "__self__", None)
    return words if type(words) is Storage and function.__name__ == "play" else None


# ---- writing a program
class Sequence:
    """A program being written. Places are numbers: the arguments are 0 to ``given - 1``."""

    def __init__(self, given: int) -> None:
        self.given = given
        self.constants: list[Any] = []
        self.made = 0
        self.steps: list[tuple[int, list[Any], list[int], list[int]]] = []
        """Kind and, in the order of the words: numbers, places written, places read. A number is
        an int, a symbol, or what is to be called (Pending)."""
        self.owners: list[Any] = []

    def constant(self, value: Any) -> int:
        """The place of an object that is always the same."""
        for k, have in enumerate(self.constants):
            if have is value:
                return -1 - k
        self.constants.append(value)
        return -len(self.constants)

    def _new(self) -> int:
        self.made += 1
        return self.given + self.made - 1

    def run(self, fresh: Callable[..., Any], *places: int) -> int:
        """``fresh(*places)``; the place of its result."""
        draft = _drafted(fresh)
        if draft is not None and len(draft.results) == 1 and not draft.packed:
            out = self._splice(draft.sequence, draft.results[0], places)
            assert out is not None
            return out
        out = self._new()
        self._call(RUN, fresh, "fresh", [out], places)
        return out

    def into(self, into: Callable[..., Any], *places: int) -> None:
        """``into(*places)``: it writes to places that are there."""
        draft = _drafted(into)
        if draft is not None:
            self._splice(draft.sequence, None, places)
            return
        self._call(INTO, into, "into", [], places)

    def unless_same(self, *places: int) -> None:
        """The next step is left out where two tensors, each a storage's place and an offset's,
        begin at the same memory."""
        self.steps.append((UNLESS, [], [], list(places)))

    def wrote(self, storage: int) -> None:
        """Counts a write to a storage."""
        self.steps.append((WROTE, [], [], [storage]))

    def forget_writes(self, storage: int) -> None:
        """Does not count the writes to a storage so far."""
        self.steps = [s for s in self.steps if s[0] != WROTE or s[3] != [storage]]

    def _splice(self, inner: Sequence, result: int | None, places: Several[int]) -> int | None:
        """The steps of another sequence, with these arguments; where its result is."""
        self.owners += inner.owners
        known = dict(enumerate(places))

        def place(at: int) -> int:
            if at not in known:
                known[at] = self.constant(inner.constants[-1 - at]) if at < 0 else self._new()
            return known[at]

        for kind, numbers, written, read in inner.steps:
            self.steps.append((kind, numbers, [*map(place, written)], [*map(place, read)]))
        return None if result is None else place(result)

    def _call(
        self, kind: int, what: Callable[..., Any], name: str, outs: list[int], places: Several[int]
    ) -> None:
        """A step that calls a launch's builtin of that name, or anything else."""
        launch = storage_of(what, name)
        self.owners.append(what)
        native = launch is not None
        word: Any = id(what if launch is None else launch)
        if isinstance(what, PendingLaunch):
            word = what
            native = native or what.form == name
        self.steps.append((kind if native else CALL, [word], outs, list(places)))

    def allocate(self, nbytes: int, how: Callable[[int], Any]) -> int:
        """Fresh memory, of the device whose allocator it is."""
        if how not in rooms:
            return self.run(how, self.constant(nbytes))
        out = self._new()
        more = rooms[how]  # (a symbol stays what it is on the host)
        self.steps.append((ALLOCATE, [nbytes + more if more else nbytes], [out], []))
        return out

    def move(self, offset: int, distance: int) -> int:
        """An offset that much further."""
        if distance == 0:
            return offset
        out = self._new()
        self.steps.append((MOVE, [distance], [out], [offset]))
        return out

    def finish(self, results: Several[int], packed: bool = False) -> tuple[list[Any], list[Any]]:
        """The words of a Program and what they rely on. What is no result is dropped after its last
        use."""
        last: dict[int, int] = {}
        for k, (_, _, written, read) in enumerate(self.steps):
            for place in (*written, *read):
                last[place] = k
        code: list[Any] = []
        for k, (kind, numbers, written, read) in enumerate(self.steps):
            if kind == UNLESS:
                numbers = [len(self._words(*self.steps[k + 1]))]
            code += self._words(kind, numbers, written, read)
            for place in sorted({*written, *read}):
                if last[place] == k and place >= self.given and place not in results:
                    code += (DROP, self._at(place))
        places = self.given + len(self.constants) + self.made
        most = max([len(read) for _, _, _, read in self.steps], default=0)
        head = [self.given, places, len(self.constants), len(code), most, len(results), int(packed)]
        at = [self._at(place) for place in results]
        constants = [Boxed(c) if is_symbol(c) else id(c) for c in self.constants]
        words = [*head, *constants, *code, *at]
        return words, [*self.owners, *[c for c in self.constants if not is_symbol(c)]]

    def _words(
        self, kind: int, numbers: list[Any], written: list[int], read: list[int]
    ) -> list[Any]:
        out, ins = [self._at(p) for p in written], [self._at(p) for p in read]
        if kind == MOVE:
            return [kind, *ins, *numbers, *out]
        if kind in (UNLESS, WROTE):
            return [kind, *ins, *numbers]
        if kind == ALLOCATE:
            return [kind, *numbers, *out]
        if kind == CALL and not out:
            out = [-1]
        return [kind, *numbers, *out, len(ins), *ins]

    def _at(self, place: int) -> int:
        """Where a place lies among all."""
        if place < 0:
            return self.given - 1 - place
        return place if place < self.given else place + len(self.constants)

    def bound(self, *results: int, packed: bool = False) -> Callable[..., Any]:
        """The builtin that runs it: it gives the result, or a tuple of them."""
        words, owners = self.finish(results, packed)
        inside = [c for c in self.constants if not is_symbol(c)]
        if traces and symbols_in(inside):  # (such as scratch memory on the meta device)
            raise Untold("a size that may be any number is a constant of a sequence")
        if traces and symbols_in([o for o in self.owners if not isinstance(o, PendingLaunch)]):
            raise Untold("a size that may be any number is inside of what a sequence calls")
        if traces and any([type(word) in (Symbol, PendingLaunch, Boxed) for word in words]):
            return PendingLaunch(SequenceDraft(words, owners, self, results, packed), "play")
        return playing(words, owners)


def playing(words: Several[int], owners: Several[Any]) -> Callable[..., Any]:
    """The builtin that runs a program of these words, which rely on these objects."""
    result: Callable[..., Any] = bind(_play(), words_in_memory(words, *owners))
    return result


class Boxed:
    """A word of a draft: the address of a number, which follows from sizes."""

    __slots__ = ("number",)

    def __init__(self, number: Symbol | Ratio) -> None:
        self.number = number

    @property
    def symbol(self) -> Symbol:
        """What it follows from."""
        return self.number.under if isinstance(self.number, Ratio) else self.number

    def made(self, size: int) -> float:
        """The number, for a size."""
        return self.number.over / size if isinstance(self.number, Ratio) else size


class SequenceDraft:
    """A program with symbols, or launches that have some, among its words."""

    def __init__(
        self, words: list[Any], owners: list[Any], sequence: Sequence, results: Several[int],
        packed: bool,
    ) -> None:  # fmt: skip
        self.words, self.owners = words, owners
        self.sequence, self.results, self.packed = sequence, results, packed


def _drafted(what: Any) -> SequenceDraft | None:
    """The draft of a sequence that is pending; None for anything else."""
    source = what.source if isinstance(what, PendingLaunch) else None
    return source if isinstance(source, SequenceDraft) else None
