"""The launcher: one native routine that runs any kernel on storages.

A plan says how a kernel is called: its address, its description words, and a slot per operand.
`make_launch` makes of a plan two Python builtins, `fresh` (allocates the output) and `into` (writes
an output that exists), which share that one routine.  Before a kernel runs, every argument has been
checked here: a storage of the exact type, its offset and extent inside the memory, a number that
converts.  What goes wrong raises, and leaves nothing behind.  From the reading of the first address
to the kernel's end nobody else's code runs, no finalizer and no number's ``__float__``: it could
free what the address leads to.

A kernel is func[i64, ptr[raw], ptr[i64]]: kernel(bufs, desc), where bufs holds the address of each
output, then of each input; a Python number arrives as the address of an f64, an i64, or two f64.
It returns 0, or an error code that the plan's `fail` turns into an exception; or AGAIN, when it has
done nothing yet: then the first word of `desc` is a Python callable, which prepares what it needs
(a device's kernels are compiled, its driver made ready for this thread), and it is run once more.

From `gil_threshold` elements on, the interpreter lock is released while the kernel runs; the
storages are then held and pinned.  Versions are the caller's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.shapes import is_symbol
from antorcha.core.symbols import traces
from antorcha.errors import ArgumentError
from antorcha.lang.native import (
    ExternData,
    Global,
    atomic_add,
    atomic_sub,
    bind,
    f64,
    func,
    i64,
    inline,
    local,
    native,
    ptr,
    raw,
    ref,
    struct,
    u8,
    void,
)
from antorcha.runtime.buffers import CHECKED
from antorcha.runtime.cpython import (
    FALSE,
    NONE,
    TRUE,
    Py_DecRef,
    Py_IncRef,
    PyComplex_ImagAsDouble,
    PyComplex_RealAsDouble,
    PyEval_RestoreThread,
    PyEval_SaveThread,
    PyFloat_AsDouble,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    PyObject_Vectorcall,
    complain,
    failed,
    fast_def,
    float_type,
    int_type,
    integer,
    new_reference,
    pair_of,
    raise_object,
    type_of,
    zero,
)
from antorcha.runtime.launch_errors import (
    LEFT_OUT,
    NOT_A_STORAGE,
    NOT_AN_OFFSET,
    OUTSIDE,
    READ_ONLY,
    WRONG_COUNT,
)
from antorcha.runtime.launched import (
    LaunchDraft,
    LaunchWithOwner,
    Owner,
    PendingLaunch,
    Slot,
    register,
)
from antorcha.runtime.memory.alloc import LARGEST, allocate, release
from antorcha.runtime.memory.device_memory import DEVICE_SIZES
from antorcha.runtime.memory.storage import (
    LOCKED,
    NO_MEMORY,
    Storage,
    StorageObject,
    make_storage,
    storage_type,
    wrap,
)

kernel_t = func[i64, ptr[raw], ptr[i64]]


@struct
class Operand:
    kind: i64
    itemsize: i64
    low: i64
    high: i64


@struct
class LaunchPlan:
    """The head of a plan; its operands follow."""

    kernel: kernel_t
    desc: ptr[i64]
    outs: i64
    count: i64  # operands
    nargs: i64  # arguments of fresh
    nargs_into: i64
    work: i64
    out_nbytes: i64
    fail: raw  # Python: code -> exception; the plan's owner holds it


AGAIN = -(1 << 40)
TENSOR, F64, I64, C128 = 0, 1, 2, 3
KINDS = {"f64": F64, "i64": I64, "c128": C128}
SMALL = 12
"""Operands that fit on the machine's stack; more take a block from the allocator."""
MAX_OPERANDS = 1 << 16
UNWRITTEN = 1
"""No buffer's address: what the buffers hold first in ``ANTORCHA_CALL=checked``."""
threshold = Global("antorcha_gil_threshold", i64)
refused = Global("antorcha_refused", i64)  # 1 since a kernel refused what it was given
complex_type = ExternData("PyComplex_Type", u8)
unicode_type = ExternData("PyUnicode_Type", u8)


@native(export=True)
def count_error(self: raw, nargs: i64, fresh: i64) -> void:
    given = PyLong_FromLongLong(nargs)
    if given is not None:
        complain(WRONG_COUNT, self, given, fresh)
        Py_DecRef(given)


@native(export=True)
def outside_error(self: raw, args: ptr[raw], k: i64) -> void:
    """args: the storage and its offset."""
    pair = pair_of(new_reference(args[0]), new_reference(args[1]))
    if pair is not None:
        complain(OUTSIDE, self, pair, k)
        Py_DecRef(pair)


# ---- arguments
@native
def take_tensor(
    self: raw, k: i64, slot: ptr[Operand], args: ptr[raw], bufs: ptr[raw], written: bool
) -> bool:
    """Checks a storage and its offset and puts the address in bufs[k]; False with an exception."""
    o = args[0]
    if type_of(o) != storage_type[0]:
        complain(NOT_A_STORAGE, self, o, k)
        return False
    s = ptr[StorageObject](o)
    whole = args[1] == zero[0] and slot.low == 0 and slot.high <= s.nbytes and s.ptr is not None
    if whole and (s.flags & LOCKED == 0 or not written):  # as most operands are
        bufs[k] = s.ptr
        return True
    if type_of(args[1]) != raw(int_type):  # another's __index__ would run
        complain(NOT_AN_OFFSET, self, args[1], k)
        return False
    offset = integer(args[1])
    if offset == -1 and failed():
        return False
    start = offset * slot.itemsize
    if slot.high > slot.low:
        if (
            offset < 0
            or offset > LARGEST
            or start + slot.low < 0
            or start + slot.high > s.nbytes
            or s.ptr is None
        ):
            outside_error(self, args, k)
            return False
        if written and s.flags & LOCKED != 0:
            complain(READ_ONLY, self, o, k)
            return False
        bufs[k] = s.ptr + start
    else:
        bufs[k] = s.ptr
    return True


@native
def is_number(o: raw) -> bool:
    """Is it one of Python's own, whose value is read without running any code?"""
    kind = type_of(o)
    if kind == raw(float_type) or kind == raw(int_type) or kind == raw(complex_type):
        return True
    return o == raw(TRUE) or o == raw(FALSE)


@native(export=True)
def take_complex(o: raw, at: ptr[f64]) -> bool:
    """A complex from any number; what has only __complex__ goes through complex()."""
    held = raw(0)
    if not is_number(o) and type_of(o) != raw(unicode_type):
        arg = local(raw)
        arg[0] = o
        held = PyObject_Vectorcall(raw(complex_type), arg, 1, None)
        if held is None:
            return False
        o = held
    at[0] = PyComplex_RealAsDouble(o)
    ok = True
    if at[0] == -1.0 and failed():
        ok = False
    else:
        at[1] = PyComplex_ImagAsDouble(o)
    if held is not None:
        Py_DecRef(held)
    return ok


@native
def take_number(o: raw, kind: i64, at: ptr[f64]) -> bool:
    if kind == F64:
        x = PyFloat_AsDouble(o)
        at[0] = x
        return not (x == -1.0 and failed())
    if kind == I64:
        n = PyLong_AsLongLong(o)
        ptr[i64](at)[0] = n
        return not (n == -1 and failed())
    return take_complex(o, at)


@native
def take_arguments(
    self: raw, args: ptr[raw], bufs: ptr[raw], numbers: ptr[f64], first: i64
) -> bool:
    """Fills bufs from operand `first` on; False with an exception."""
    plan = ptr[LaunchPlan](ptr[StorageObject](self).ptr)
    slots = ptr[Operand](plan + 1)
    at = 0
    strange = False
    for k in range(first, plan.count):
        slot = slots + k
        if slot.kind == TENSOR:
            if not take_tensor(self, k, slot, args + at, bufs, k < plan.outs):
                return False
            at += 2
        else:
            number = numbers + 2 * k
            if not take_number(args[at], slot.kind, number):
                return False
            strange = strange or not is_number(args[at])
            bufs[k] = raw(number)
            at += 1
    return not strange or take_tensors(self, args, bufs, first)


@native(export=True)
def take_tensors(self: raw, args: ptr[raw], bufs: ptr[raw], first: i64) -> bool:
    """The tensors' addresses once more, after a number has run code of its own."""
    plan = ptr[LaunchPlan](ptr[StorageObject](self).ptr)
    slots = ptr[Operand](plan + 1)
    at = 0
    for k in range(first, plan.count):
        slot = slots + k
        if slot.kind == TENSOR:
            if not take_tensor(self, k, slot, args + at, bufs, k < plan.outs):
                return False
            at += 2
        else:
            at += 1
    return True


@native
def are_written(self: raw, bufs: ptr[raw]) -> bool:
    """Has every buffer been given its address? False with an exception."""
    plan = ptr[LaunchPlan](ptr[StorageObject](self).ptr)
    for k in range(plan.count):
        if bufs[k] == raw(UNWRITTEN):
            complain(LEFT_OUT, self, NONE, k)
            return False
    return True


# ---- the routine
@inline
def hold(args, nargs):
    for i in range(nargs):
        if type_of(args[i]) == storage_type[0]:
            Py_IncRef(args[i])
            atomic_add(ref(ptr[StorageObject](args[i]).pins), 1)


@inline
def let_go(args, nargs):
    for i in range(nargs):
        if type_of(args[i]) == storage_type[0]:
            atomic_sub(ref(ptr[StorageObject](args[i]).pins), 1)
            Py_DecRef(args[i])


@native(export=True)
def run_unlocked(plan: ptr[LaunchPlan], args: ptr[raw], nargs: i64, bufs: ptr[raw]) -> i64:
    """Runs the kernel without the interpreter lock."""
    hold(args, nargs)
    token = PyEval_SaveThread()
    code = plan.kernel(bufs, plan.desc)
    PyEval_RestoreThread(token)
    let_go(args, nargs)
    return code


@native(export=True)
def kernel_error(plan: ptr[LaunchPlan], code: i64) -> void:
    if failed():  # (it has raised what is wrong)
        return
    arg = local(raw)
    arg[0] = PyLong_FromLongLong(code)
    if arg[0] is not None:
        raise_object(PyObject_Vectorcall(plan.fail, arg, 1, None))
        Py_DecRef(arg[0])
    refused[0] = 1


@native(export=True)
def prepare(plan: ptr[LaunchPlan]) -> bool:
    """What a kernel asks for that is to be run again; False with an exception."""
    done = PyObject_Vectorcall(ptr[raw](plan.desc)[0], ptr[raw](0), 0, None)
    if done is None:
        return False
    Py_DecRef(done)
    return True


@inline
def run(plan, args, nargs, bufs):
    if plan.work >= threshold[0]:
        return run_unlocked(plan, args, nargs, bufs)
    return plan.kernel(bufs, plan.desc)


@native
def with_output(self: raw, args: ptr[raw], nargs: i64, bufs: ptr[raw], numbers: ptr[f64]) -> raw:
    """fresh, once there is room for the operands."""
    plan = ptr[LaunchPlan](ptr[StorageObject](self).ptr)
    out = raw(0)
    if plan.out_nbytes < DEVICE_SIZES:  # (that may run Python: it comes first)
        out = make_storage(plan.out_nbytes)
        if out is None:
            return None
    if not take_arguments(self, args, bufs, numbers, 1):
        if out is not None:
            Py_DecRef(out)
        return None
    if out is None:
        out = make_storage(plan.out_nbytes)
        if out is None:
            return None
    bufs[0] = ptr[StorageObject](out).ptr
    if CHECKED and not are_written(self, bufs):
        Py_DecRef(out)
        return None
    code = run(plan, args, nargs, bufs)
    while code == AGAIN:
        if not prepare(plan) or not take_arguments(self, args, bufs, numbers, 1):
            Py_DecRef(out)
            return None
        code = run(plan, args, nargs, bufs)
    if code != 0:
        Py_DecRef(out)
        kernel_error(plan, code)
        return None
    return out


@native
def in_place(self: raw, args: ptr[raw], nargs: i64, bufs: ptr[raw], numbers: ptr[f64]) -> raw:
    """into, once there is room for the operands."""
    plan = ptr[LaunchPlan](ptr[StorageObject](self).ptr)
    if not take_arguments(self, args, bufs, numbers, 0):
        return None
    if CHECKED and not are_written(self, bufs):
        return None
    code = run(plan, args, nargs, bufs)
    while code == AGAIN:
        if not prepare(plan) or not take_arguments(self, args, bufs, numbers, 0):
            return None
        code = run(plan, args, nargs, bufs)
    if code != 0:
        kernel_error(plan, code)
        return None
    Py_IncRef(NONE)
    return raw(NONE)


@native(export=True, level="O2")
def py_launch(self: raw, args: ptr[raw], nargs: i64, *, FRESH) -> raw:
    plan = ptr[LaunchPlan](ptr[StorageObject](self).ptr)
    if nargs != (plan.nargs if FRESH else plan.nargs_into):
        count_error(self, nargs, 1 if FRESH else 0)
        return None
    bufs = local(raw, SMALL)
    numbers = local(f64, 2 * SMALL)
    room = raw(0)
    if plan.count > SMALL:
        room = allocate(24 * plan.count)
        if room is None:
            complain(NO_MEMORY, NONE, NONE, 24 * plan.count)
            return None
        numbers = ptr[f64](room)
        bufs = ptr[raw](room + 16 * plan.count)
    if CHECKED:
        for k in range(plan.count):
            bufs[k] = raw(UNWRITTEN)
    if FRESH:
        result = with_output(self, args, nargs, bufs, numbers)
    else:
        result = in_place(self, args, nargs, bufs, numbers)
    if room is not None:
        release(room)
    return result


_fresh = fast_def(
    "fresh",
    py_launch.spec(FRESH=True).addr,
    "fresh(storage, offset, ..., number, ...): runs the kernel into a new storage and returns it.",
)
_into = fast_def(
    "into",
    py_launch.spec(FRESH=False).addr,
    "into(out_storage, out_offset, ..., storage, offset, ..., number, ...): writes the outputs.",
)


def storage_of(function: Any, name: str) -> Storage | None:
    """The plan behind a launch's builtin of that name (`fresh`, `into`); None for anything else."""
    plan = getattr(function, "__self__", None)
    return plan if type(plan) is Storage and function.__name__ == name else None


def _operand(slot: Slot) -> tuple[int, int, int, int]:
    if isinstance(slot, str):
        if slot not in KINDS:
            raise ArgumentError(f"make_launch: a number is 'f64', 'i64' or 'c128', not {slot!r}")
        return KINDS[slot], 0, 0, 0
    itemsize, low, high = slot
    if is_symbol(high):  # (of a layout, which has checked it)
        return TENSOR, itemsize, low, high
    if not (0 < itemsize <= 1 << 16 and abs(low) <= LARGEST and abs(high) <= LARGEST):
        raise ArgumentError(f"make_launch: {slot!r} is not (itemsize, lowest, one past highest)")
    return TENSOR, itemsize, low, high


def make_launch(
    kernel_addr: int,
    desc: Sequence[int],
    outs: Sequence[Slot],
    ins: Sequence[Slot],
    work: int,
    fail: Callable[[int], BaseException] | None = None,
    what: Any = None,
    sizes: Sequence[int] = (),
    room: int = 0,
) -> LaunchWithOwner:
    """Plans calls of the kernel at `kernel_addr`.

    desc: the int64 words it receives (copied; they live as long as the Launch).
    work: elements it handles; from `gil_threshold()` on it runs without the interpreter lock.
    fail: the exception for an error code.
    what: what the kernel computes (a description of ``lang.kernels``), for people to read.
    sizes: where `desc` has the number of elements, if nothing else in it depends on their number
    (as long as there are two at least, and fewer than `gil_threshold()`).
    room: of a device, what is added to the bytes of a fresh output (``storage.rooms``).
    """
    slots = (*outs, *ins)
    if kernel_addr <= 0 or len(slots) > MAX_OPERANDS or any([isinstance(s, str) for s in outs]):
        raise ArgumentError(
            "make_launch: a kernel's address, and at most 65536 operands, are needed"
        )
    words, start = _words(kernel_addr, desc, slots, len(outs), work, room)
    if traces and any([is_symbol(word) for word in words]):
        draft = LaunchDraft(words, start, len(outs), fail, what, sizes)
        return LaunchWithOwner(PendingLaunch(draft, "fresh"), PendingLaunch(draft, "into"))
    return launch_of(words, start, len(outs), fail, what, sizes)


def _words(
    kernel_addr: int, desc: Sequence[int], slots: Sequence[Slot], outs: int, work: int, room: int
) -> tuple[list[int], int]:
    """A launch's words, and where among them the description is; the addresses are filled in by
    ``Owner.hold``."""
    given = 0
    operands: list[int] = []
    for k, slot in enumerate(slots):
        operand = _operand(slot)
        operands += operand
        if k >= outs:
            given += 2 if operand[0] == TENSOR else 1
    one = outs == 1
    if one and operands[2] < 0:
        raise ArgumentError("make_launch: a fresh output begins at byte 0")
    head = [
        kernel_addr, 0, outs, len(slots), given if one else -1, given + 2 * outs, work,
        operands[3] + room if one and room else operands[3] if one else 0, 0,
    ]  # fmt: skip
    return [*head, *operands, kernel_addr, *desc], len(head) + len(operands) + 1


def launch_of(
    words: Sequence[int],
    start: int,
    outs: int,
    fail: Callable[[int], BaseException] | None,
    about: Any,
    sizes: Sequence[int],
) -> LaunchWithOwner:
    """The launch that has these words, as `_words` gives them."""
    owner = Owner(outs, fail, about, sizes)
    owner.hold(words, start)
    register(owner)
    address, length = owner.words.buffer_info()
    plan = wrap(address, 8 * length, owner, readonly=True)
    return LaunchWithOwner(bind(_fresh, plan), bind(_into, plan))


def gil_threshold() -> int:
    """Kernels on at least this many elements run without the interpreter lock."""
    return int(threshold.np[0])


def set_gil_threshold(elements: int) -> None:
    """Sets `gil_threshold`; releasing the lock costs about 50 ns, and more when threads compete."""
    if elements < 0:
        raise ArgumentError(f"set_gil_threshold: {elements} is not a number of elements")
    threshold.np[0] = min(elements, LARGEST)


set_gil_threshold(32_768)
