"""Calls at sizes never met: the words of kernels worked out from sizes, without the interpreter.

An ``outline`` says how a plan depends on sizes: steps of integer arithmetic, questions, and which
words of which kernels and layouts they give. ``Sized`` is that as numbers. A call evaluates the
steps; where every question has the answer that the outline was made with, it fills copies of the
kernels' words, finds the results' layouts, and runs. Anything else (another answer, a number too
large, an error from the kernel) is left to Python, which plans for just that size.

Invariants: the block of a ``Sized`` never changes, and lives as long as the place that names it,
which the caller holds. What is filled is the call's own: other threads may run the same one beside
it. All that may run code (making layouts and blocks) comes before the operands' addresses are read.
"""

from __future__ import annotations

from antorcha.lang.native import array, bind, f64, i64, local, native, ptr, raw, ref, struct, void
from antorcha.runtime.call.native.keys import (
    ANY_SIZE,
    FORM,
    GRAD,
    GRAD_FORM,
    SIZE,
    Key,
    add_word,
    begin_key,
    mixed_with,
)
from antorcha.runtime.call.native.keys import TENSOR as TENSOR_WORD
from antorcha.runtime.call.native.layout_sizes import LayoutObject, Sizes, has_dims, number_at
from antorcha.runtime.call.native.layouts import MOST_NUMBERS, add_form, layout_of
from antorcha.runtime.call.native.plans import History
from antorcha.runtime.call.sizes import MOST_OUTLINES
from antorcha.runtime.cpython import (
    NONE,
    Py_DecRef,
    PyErr_Clear,
    PyFloat_FromDouble,
    drop_all,
    drop_one,
    failed,
    fast_def,
    int_object,
    int_value,
    new_reference,
    tuple_of,
    tuple_size,
    zero,
)
from antorcha.runtime.launch import py_launch
from antorcha.runtime.memory.storage import Storage, StorageObject, make_storage
from antorcha.runtime.sequence import play

MOST_VALUES = 96  # those, and what the steps add to them
MOST_WORDS = 640  # of all kernels and layouts of a call
MOST_PARTS = 16  # kernels, sequences and numbers as objects
MOST_RESULTS = 8
DIVIDE, REST, EQUAL, LESS = range(4)
"""Steps: kind, a number, and two sums. The number is of no use, or the answer that is wanted."""
MOST = float(1 << 58)
"""Products are less than this in size, so that sums of some fit a word."""
FRESH, MANY, VIEWS, PACKED, WRITTEN = range(5)
"""What a call makes: a kernel's one result; several results, in memory made for them; views; what
a sequence gives, a storage and an offset each; a result over the first tensor."""


@struct
class Box:
    """A number as an object that follows from a size."""

    at: i64  # the word that is its address
    size: i64  # the word that is the size
    divides: i64  # is it another number by that?
    over: f64


@struct
class Part:
    """A kernel's launch, or a sequence: its words are `count` from `first` on."""

    first: i64
    count: i64
    start: i64  # where a launch's description begins among them; -1: it is a sequence
    calls: i64
    call_at: ptr[i64]  # for each launch that a sequence calls: which word says so, which part it is
    boxes: i64
    box_at: ptr[Box]  # the numbers among its constants that follow from sizes


@struct
class Result:
    """How a result lies: the words with its sizes and its strides."""

    like: raw  # a layout of its dtype and device
    ndim: i64
    shape: i64
    strides: i64


@struct
class Sized:
    """A plan for any sizes that give the same answers."""

    kind: i64  # FRESH to WRITTEN
    given: i64  # numbers
    steps: i64
    filled: i64  # words that are worked out
    words: i64
    template: ptr[i64]  # all words, for the sizes of the example
    code: ptr[i64]  # the steps, and then for each word that is filled: which one, and its sum
    parts: i64
    part: ptr[Part]  # in the order in which they are made; the last one runs
    results: i64
    result: ptr[Result]
    deltas: i64  # where the words begin with what each view adds to the offset
    recorded: i64  # is there something that a graph records? -1: that is not for here
    history: ptr[History]


@struct
class Kind:
    """All that is known of the calls that differ in sizes only."""

    closed: i64  # will there be no more?
    count: i64
    sized: array[ptr[Sized], MOST_OUTLINES]


@struct
class OutlineWork:
    """A call's own: all words, and what was made of them."""

    words: array[i64, MOST_WORDS]
    values: array[i64, MOST_VALUES]
    parts: array[raw, MOST_PARTS]  # and the numbers, from the end
    boxes: i64


# ---- the key
@native
def sizes_of(numbers: raw, found: ptr[i64]) -> i64:
    """The numbers of a tuple; how many they are, -1: too many."""
    count = tuple_size(numbers)
    if count > MOST_NUMBERS:
        return -1
    for k in range(count):
        found[k] = number_at(numbers, k)
    return count


@native
def forms_of(key: ptr[Key], sized: ptr[Key], found: ptr[i64]) -> i64:
    """The words of a key, with forms in the place of layouts and nothing in that of sizes; how many
    numbers it was, in `found`: the tensors' first. 0: it is not for here."""
    begin_key(sized)
    counted = local(i64)
    counted[0] = 0
    ok = True
    for k in range(key.count):
        kind, value = key.kinds[k], key.values[k]
        if kind == TENSOR_WORD or kind == GRAD:  # noqa: SIM109 (not in the kernel language)
            form = raw(0)
            if ok and has_dims(raw(value)):
                form = add_form(raw(value), found, counted)
            if form is None:
                return 0
            form_kind = GRAD_FORM if kind == GRAD else FORM  # who wants gradients may run other ops
            ok = ok and add_word(sized, form_kind, i64(form))
        elif kind == SIZE and value > 1:
            ok = ok and add_word(sized, ANY_SIZE, 0)
        else:
            ok = ok and add_word(sized, kind, value)
        if not ok:
            return 0
    count = counted[0]
    for k in range(key.count):
        if key.kinds[k] == SIZE and key.values[k] > 1:
            if count >= MOST_NUMBERS:
                return 0
            found[count] = key.values[k]
            count += 1
    return count


@native
def lasting_hash(key: ptr[Key]) -> i64:
    """A hash of a key that says the same when the call is met again, and else hardly ever: its own
    has the layouts' addresses, where others lie once these are gone."""
    mixed = i64(0)
    for k in range(key.count):
        kind, value = key.kinds[k], key.values[k]
        is_tensor = kind == TENSOR_WORD
        is_tensor = is_tensor or kind == GRAD
        if is_tensor and has_dims(raw(value)):
            layout = ptr[LayoutObject](raw(value))
            mixed = mixed_with(mixed, kind, i64(layout.dtype))
            for d in range(tuple_size(layout.shape)):
                mixed = mixed_with(mixed, number_at(layout.shape, d), number_at(layout.strides, d))
        else:
            mixed = mixed_with(mixed, kind, value)
    if failed():  # a size of more than 64 bits
        PyErr_Clear()
    return mixed


# ---- the steps
@native
def total(code: ptr[i64], at: ptr[i64], values: ptr[i64], largest: ptr[f64]) -> i64:
    """The sum whose words begin at `at`: how many products, and each one's factor, how many atoms,
    and which."""
    k = at[0]
    products = code[k]
    k += 1
    found = i64(0)
    for _ in range(products):
        product = code[k]
        size = f64(product)
        atoms = code[k + 1]
        k += 2
        for each in range(atoms):
            value = values[code[k + each]]
            product *= value
            size *= f64(value)
        k += atoms
        found += product
        if atoms > 0:
            largest[0] = max(largest[0], max(size, -size))
    at[0] = k
    return found


@native
def fitting(kind: ptr[Kind], work: ptr[OutlineWork], count: i64) -> ptr[Sized]:
    """The one whose questions have these answers, with the words filled; null: there is none."""
    for k in range(kind.count):
        sized = kind.sized[k]
        if sized.given == count and evaluate(sized, work):
            return sized
    return ptr[Sized](raw(0))


@native(export=True, level="O2")
def evaluate(sized: ptr[Sized], work: ptr[OutlineWork]) -> bool:
    """Fills the words from the values that are given; False: a question has another answer, or a
    number is too large."""
    at = local(i64)
    largest = local(f64)
    at[0] = 0
    largest[0] = 0.0
    values, code = ref(work.values[0]), sized.code
    count = sized.given
    for _ in range(sized.steps):
        what, wanted = code[at[0]], code[at[0] + 1]
        at[0] += 2
        a = total(code, at, values, largest)
        b = total(code, at, values, largest)
        if what == EQUAL:
            if i64(a == b) != wanted:
                return False
        elif what == LESS:
            if i64(a < b) != wanted:
                return False
        elif b == 0:
            return False
        else:
            values[count] = a // b if what == DIVIDE else a % b
            count += 1
    for k in range(sized.words):
        work.words[k] = sized.template[k]
    for _ in range(sized.filled):
        place = code[at[0]]
        at[0] += 1
        work.words[place] = total(code, at, values, largest)
    return largest[0] < MOST


# ---- what is made of the words
@native
def make_part(work: ptr[OutlineWork], part: ptr[Part]) -> raw:
    """A launch or a sequence, in memory of its own; null with an exception."""
    result = make_storage(8 * part.count)
    if result is None:
        return result
    memory = ptr[StorageObject](result).ptr
    words = ptr[i64](memory)
    for k in range(part.count):
        words[k] = work.words[part.first + k]
    if part.start >= 0:
        words[1] = i64(memory + 8 * part.start)
    for k in range(part.calls):
        words[part.call_at[2 * k]] = i64(work.parts[part.call_at[2 * k + 1]])
    for k in range(part.boxes):
        box = part.box_at + k
        size = work.words[box.size]
        if box.divides == 0:
            number = int_object(size)
        else:
            number = PyFloat_FromDouble(box.over / f64(size))
        if number is None:
            Py_DecRef(result)
            return number
        work.boxes += 1
        work.parts[MOST_PARTS - work.boxes] = number
        words[box.at] = i64(number)
    return result


@native
def drop_parts(work: ptr[OutlineWork]) -> void:
    """Lets go of all that `prepare` has made but layouts."""
    drop_all(ref(work.parts[0]), MOST_PARTS)


@native
def make_parts(sized: ptr[Sized], work: ptr[OutlineWork]) -> bool:
    ok = True
    for k in range(sized.parts):
        if ok:
            work.parts[k] = make_part(work, sized.part + k)
            ok = work.parts[k] is not None
    return ok


@native
def find_layout(sized: ptr[Sized], work: ptr[OutlineWork], k: i64) -> raw:
    """The layout of a result; null with or without an exception."""
    result = sized.result + k
    sizes = local(Sizes)
    sizes.like = result.like
    sizes.ndim = result.ndim
    for d in range(result.ndim):
        sizes.shape[d] = work.words[result.shape + d]
        sizes.strides[d] = work.words[result.strides + d]
    return layout_of(sizes)


@native(export=True, level="O2")
def prepare(sized: ptr[Sized], work: ptr[OutlineWork], layouts: ptr[raw]) -> bool:
    """Makes all that a call needs but its results, of words that are filled: `work.parts`, and a
    layout for each result, all of them held. False: nothing is made, and no exception set."""
    work.boxes = 0
    for k in range(MOST_PARTS):
        work.parts[k] = None
    for k in range(sized.results):
        layouts[k] = None
    ok = True
    for k in range(sized.results):
        if ok:
            layouts[k] = find_layout(sized, work, k)
            ok = layouts[k] is not None
    ok = ok and make_parts(sized, work)
    if not ok:
        drop_all(layouts, sized.results)
        drop_parts(work)
    if failed():
        PyErr_Clear()
    return ok


# ---- running it
@native
def run_parts(
    sized: ptr[Sized], work: ptr[OutlineWork], args: ptr[raw], count: i64, *, FRESH
) -> raw:
    """Runs the last part on the arguments; what it gives, or null with an exception."""
    last = sized.parts - 1
    storage = work.parts[last]
    if (sized.part + last).start < 0:
        return play(storage, args, count)
    return py_launch(storage, args, count, FRESH=FRESH)


@native
def fill_results(
    sized: ptr[Sized], work: ptr[OutlineWork], layouts: ptr[raw], args: ptr[raw], outs: ptr[raw]
) -> bool:
    """Makes room for several results: in `outs`, and as the first arguments of what fills them."""
    ok = True
    for k in range(sized.results):
        if ok:
            outs[k] = make_storage(int_value(ptr[LayoutObject](layouts[k]).nbytes))
            ok = outs[k] is not None
        args[2 * k] = outs[k]
        args[2 * k + 1] = zero[0]
    return ok


@native
def run_filled(sized: ptr[Sized], work: ptr[OutlineWork], args: ptr[raw], count: i64) -> bool:
    """Fills the results, where `count` arguments follow them; False with an exception."""
    done = run_parts(sized, work, args, count + 2 * sized.results, FRESH=False)
    drop_one(done)  # None
    return done is not None


@native
def py_evaluate(self: raw, args: ptr[raw], nargs: i64) -> raw:
    """The words for these numbers, or None."""
    sized = ptr[Sized](ptr[StorageObject](self).ptr)
    work = local(OutlineWork)
    for k in range(min(nargs, i64(MOST_NUMBERS))):
        work.values[k] = int_value(args[k])
    if failed():
        return None
    if nargs != sized.given or not evaluate(sized, work):
        return new_reference(raw(NONE))
    return tuple_of(ref(work.words[0]), sized.words)


def evaluated(sized: Storage, *numbers: int) -> tuple[int, ...] | None:
    """The words that a Sized works out for these numbers; None: it is not for them. For tests."""
    evaluate_def = fast_def("evaluate", py_evaluate.spec().addr)
    found: tuple[int, ...] | None = bind(evaluate_def, sized)(*numbers)
    return found
