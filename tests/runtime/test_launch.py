"""The launcher: results, every refusal, nothing leaked, threads, forks."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from antorcha.lang.native import (
    Extern,
    atomic_load,
    atomic_store,
    f32,
    f64,
    i32,
    i64,
    native,
    ptr,
    raw,
)
from antorcha.runtime import launch
from antorcha.runtime.cpython import HAS_GIL
from antorcha.runtime.launch import make_launch
from antorcha.runtime.memory import alloc
from antorcha.runtime.memory.storage import as_numpy, new_storage, null_storage, wrap
from antorcha.runtime.memory.storage_changes import resize

pytestmark = pytest.mark.usefixtures("no_collection")

usleep = Extern("usleep", i32, i32)


@native
def add(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    o = ptr[f32](bufs[0])
    a = ptr[f32](bufs[1])
    b = ptr[f32](bufs[2])
    for i in range(desc[0]):
        o[i] = a[i] + b[i]
    return 0


@native
def scale(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    """o = a * number"""
    o = ptr[f64](bufs[0])
    a = ptr[f64](bufs[1])
    k = ptr[f64](bufs[2])
    for i in range(desc[0]):
        o[i] = a[i] * k[0]
    return 0


@native
def numbers(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    """o = the float, the int and the complex given; the result is desc[0]."""
    o = ptr[f64](bufs[0])
    o[0] = ptr[f64](bufs[1])[0]
    ptr[i64](bufs[0])[1] = ptr[i64](bufs[2])[0]
    o[2] = ptr[f64](bufs[3])[0]
    o[3] = ptr[f64](bufs[3])[1]
    return desc[0]


@native
def total(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    """o[0] = the sum of desc[0] one-element inputs."""
    t = 0.0
    for k in range(desc[0]):
        t += ptr[f64](bufs[1 + k])[0]
    ptr[f64](bufs[0])[0] = t
    return 0


@native
def swap(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    """Two outputs: the inputs, exchanged."""
    ptr[f64](bufs[0])[0] = ptr[f64](bufs[3])[0]
    ptr[f64](bufs[1])[0] = ptr[f64](bufs[2])[0]
    return 0


@native
def handshake(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    """The input's first word says that this runs; it ends once another thread has set the second.
    Where none does so in desc[0] naps, the result is 1."""
    words = ptr[i64](bufs[1])
    atomic_store(words, 1)
    for _ in range(desc[0]):
        if atomic_load(words + 1) != 0:
            return 0
        usleep(i32(1000))
    return 1


def of(values):
    return wrap(values.ctypes.data, values.nbytes, values)


def read(storage, dtype):
    n = storage.nbytes // np.dtype(dtype).itemsize
    return as_numpy(storage, 0, (n,), (np.dtype(dtype).itemsize,), dtype)


def adder(n, work=0, **kwargs):
    slot = (4, 0, 4 * n)
    return make_launch(add.spec().addr, [n], [slot], [slot, slot], work, **kwargs)


def number_launch(code=0, work=0, fail=None):
    return make_launch(
        numbers.spec().addr, [code], [(8, 0, 32)], ["f64", "i64", "c128"], work, fail
    )


def test_fresh_and_into():
    a, b = np.arange(10, dtype=np.float32), np.full(10, 0.5, np.float32)
    plan = adder(10)
    out = plan.fresh(of(a), 0, of(b), 0)
    assert out.nbytes == 40
    assert out.version == 0
    assert out.owner is None
    assert (read(out, np.float32) == a + b).all()
    assert plan.into(out, 0, out, 0, of(b), 0) is None
    assert (read(out, np.float32) == a + 2 * b).all()
    assert out.version == 0


def test_offsets():
    a = np.arange(20, dtype=np.float32)
    plan = adder(10)
    out = plan.fresh(of(a), 10, of(a), 3)
    assert (read(out, np.float32) == a[10:] + a[3:13]).all()
    target = np.zeros(20, np.float32)
    plan.into(of(target), 7, of(a), 10, of(a), 3)
    assert (target[7:17] == a[10:] + a[3:13]).all()
    assert target.sum() == target[7:17].sum()


def test_extents_below_the_offset():
    a = np.arange(4.0)
    slot = (8, -16, 8)
    plan = make_launch(total.spec().addr, [1], [(8, 0, 8)], [slot], 1)
    assert read(plan.fresh(of(a), 3), np.float64)[0] == 3
    with pytest.raises(IndexError, match=r"offset 1 .* bytes -8 to 16 of 32"):
        plan.fresh(of(a), 1)


def test_two_outputs():
    slot = (8, 0, 8)
    plan = make_launch(swap.spec().addr, [], [slot, slot], [slot, slot], 1)
    a, b, c, d = (np.array([x]) for x in (1.0, 2.0, 3.0, 4.0))
    plan.into(of(a), 0, of(b), 0, of(c), 0, of(d), 0)
    assert (a[0], b[0]) == (4, 3)
    with pytest.raises(TypeError, match="one output"):
        plan.fresh(of(c), 0, of(d), 0)


@pytest.mark.parametrize("count", [1, 11, 12, 13, 200])
def test_many_operands(count):
    slot = (8, 0, 8)
    plan = make_launch(total.spec().addr, [count], [slot], [slot] * count, 1)
    values = np.arange(count, dtype=np.float64)
    args = [x for k in range(count) for x in (of(values), k)]
    live = alloc.stats().live
    out = plan.fresh(*args)
    assert read(out, np.float64)[0] == values.sum()
    args[-1] = count
    with pytest.raises(IndexError, match=f"input {count - 1} "):
        plan.fresh(*args)
    del out
    assert alloc.stats().live == live


class OnlyComplex:
    def __complex__(self):
        return 3 + 4j


class OnlyFloat:
    def __float__(self):
        return 2.5


class OnlyIndex:
    def __index__(self):
        return 7


class Fails:
    def __float__(self):
        raise KeyError("float")

    def __index__(self):
        raise KeyError("index")

    def __complex__(self):
        raise KeyError("complex")


@pytest.mark.parametrize(
    "args",
    [
        (1.5, 7, 2 + 3j),
        (True, False, True),
        (3, -(1 << 63), 1.5),
        (OnlyFloat(), OnlyIndex(), OnlyComplex()),
        (OnlyIndex(), np.int32(-5), OnlyFloat()),
        (np.float32(1.5), np.uint8(9), np.complex64(1 + 2j)),
        (-1.0, -1, -1 - 1j),
        (float("inf"), (1 << 63) - 1, complex(0.0, -0.0)),
    ],
)
def test_numbers(args):
    out = number_launch().fresh(*args)
    x, n, z = args
    assert read(out, np.float64)[0] == float(x)
    assert read(out, np.int64)[1] == n.__index__()
    assert read(out, np.complex128)[1] == complex(z)


BAD_NUMBERS = [
    (("a", 1, 1), TypeError, "real number"),
    ((None, 1, 1), TypeError, "real number"),
    ((1j, 1, 1), TypeError, "real number"),
    ((1 << 5000, 1, 1), OverflowError, "too large"),
    ((1, 2.5, 1), TypeError, "integer"),
    ((1, "2", 1), TypeError, "integer"),
    ((1, 1 << 63, 1), OverflowError, "too big|too large"),
    ((1, 1, "1+2j"), TypeError, "real number"),
    ((1, 1, object()), TypeError, "complex|number"),
    ((Fails(), 1, 1), KeyError, "float"),
    ((1, Fails(), 1), KeyError, "index"),
    ((1, 1, Fails()), KeyError, "complex"),
    ((1, 1), TypeError, "takes 3 arguments, not 2"),
    ((1, 1, 1, 1), TypeError, "takes 3 arguments, not 4"),
    ((), TypeError, "takes 3 arguments, not 0"),
]


@pytest.mark.parametrize(("args", "error", "words"), BAD_NUMBERS)
def test_bad_numbers(args, error, words):
    plan = number_launch()
    live = alloc.stats().live
    with pytest.raises(error, match=words):
        plan.fresh(*args)
    assert alloc.stats().live == live


def bad_calls():
    """(call, error, words) with tensors that must not be touched."""
    a = of(np.zeros(10, np.float32))
    short = of(np.zeros(9, np.float32))
    fixed = np.zeros(10, np.float32)
    locked = wrap(fixed.ctypes.data, 40, fixed, readonly=True)
    meta = null_storage(40)
    f, into = adder(10).fresh, adder(10).into
    huge = make_launch(add.spec().addr, [0], [(4, 0, 1 << 45)], [(4, 0, 0)] * 2, 0).fresh
    return [
        (lambda: f(a, 0, short, 0), IndexError, r"input 1 .* bytes 0 to 40 of 36"),
        (lambda: f(a, 1, a, 0), IndexError, "input 0"),
        (lambda: f(a, -1, a, 0), IndexError, "bytes -4 to 36"),
        (lambda: f(a, 1 << 62, a, 0), IndexError, "offset 4611686018427387904"),
        (lambda: f(a, -(1 << 62), a, 0), IndexError, "offset -4611686018427387904"),
        (lambda: f(a, 1 << 64, a, 0), OverflowError, None),
        (lambda: f(a, 1.0, a, 0), TypeError, "integer"),
        (lambda: f(a, None, a, 0), TypeError, "integer"),
        (lambda: f(np.zeros(10), 0, a, 0), TypeError, "input 0 must be a Storage, not ndarray"),
        (lambda: f(None, 0, a, 0), TypeError, "not NoneType"),
        (lambda: f(0, 0, a, 0), TypeError, "not int"),
        (lambda: f(meta, 0, a, 0), TypeError, "meta storage"),
        (lambda: f(a, 0, a), TypeError, "takes 4 arguments, not 3"),
        (lambda: into(a, 0, a, 0), TypeError, "takes 6 arguments, not 4"),
        (lambda: into(locked, 0, a, 0, a, 0), TypeError, "output 0 is read-only"),
        (lambda: into(short, 0, a, 0, a, 0), IndexError, "output 0"),
        (lambda: into(meta, 0, a, 0, a, 0), TypeError, "meta"),
        (lambda: f(a, offset=0), TypeError, "keyword"),
        (lambda: huge(a, 0, a, 0), MemoryError, "cannot allocate"),
    ]


@pytest.mark.parametrize("k", range(len(bad_calls())))
def test_bad_tensors(k):
    call, error, words = bad_calls()[k]
    live = alloc.stats().live
    with pytest.raises(error, match=words):
        call()
    assert alloc.stats().live == live


class Frees:
    """A number that frees a storage's memory when it is asked for its value."""

    def __init__(self, storage):
        self.storage = storage

    def __float__(self):
        resize(self.storage, 0)
        return 2.0

    __complex__ = __float__
    __index__ = __float__


def test_a_number_runs_its_code_before_addresses_are_read():
    plan = make_launch(scale.spec().addr, [9], [(8, 0, 72)], [(8, 0, 72), "f64"], 9)
    x = new_storage(72)
    with pytest.raises(IndexError, match=r"input 0 .* of 0"):
        plan.fresh(x, 0, Frees(x))
    x = new_storage(72)
    with pytest.raises(IndexError, match=r"output 0 .* of 0"):
        plan.into(x, 0, new_storage(72), 0, Frees(x))
    x = new_storage(72)
    with pytest.raises(TypeError, match="input 0: an offset must be an integer"):
        plan.fresh(x, Frees(x), 1.0)
    assert x.nbytes == 72


def test_read_only_inputs_are_fine():
    fixed = np.ones(10, np.float32)
    locked = wrap(fixed.ctypes.data, 40, fixed, readonly=True)
    assert read(adder(10).fresh(locked, 0, locked, 0), np.float32).tolist() == [2] * 10


def test_empty():
    plan = make_launch(add.spec().addr, [0], [(4, 0, 0)], [(4, 0, 0)] * 2, 0)
    empty = new_storage(0)
    assert plan.fresh(empty, 0, empty, 0).nbytes == 0
    assert plan.fresh(empty, 5, of(np.zeros(3)), 1).nbytes == 0


@pytest.mark.parametrize("work", [0, 1 << 40])
def test_a_kernel_that_fails(work):
    asked = []

    def fail(code):
        asked.append(code)
        return IndexError(f"index out of range, code {code}")

    live = alloc.stats().live
    with pytest.raises(IndexError, match="code 3"):
        number_launch(3, work, fail).fresh(1, 1, 1)
    assert asked == [3]
    with pytest.raises(TypeError, match="failed with code -7"):
        number_launch(-7, work).fresh(1, 1, 1)
    with pytest.raises(TypeError, match="not an exception"):
        number_launch(1, work, lambda code: code).fresh(1, 1, 1)
    with pytest.raises(ZeroDivisionError):
        number_launch(1, work, lambda code: 1 // 0).fresh(1, 1, 1)
    out = new_storage(32)
    with pytest.raises(IndexError, match="code 4"):
        number_launch(4, work, fail).into(out, 0, 1, 1, 1)
    del out
    assert alloc.stats().live == live


@pytest.mark.parametrize(
    "bad",
    [
        lambda: make_launch(0, [], [(8, 0, 8)], [], 0),
        lambda: make_launch(1, [], ["f64"], [], 0),
        lambda: make_launch(1, [], [(8, 0, 8)], ["f32"], 0),
        lambda: make_launch(1, [], [(0, 0, 8)], [], 0),
        lambda: make_launch(1, [], [(8, -8, 8)], [], 0),
        lambda: make_launch(1, [], [(8, 0, 1 << 60)], [], 0),
    ],
)
def test_plans_are_checked(bad):
    with pytest.raises(TypeError, match="make_launch"):
        bad()


def test_a_builtin_owns_its_plan():
    a = np.ones(10, np.float32)
    fresh = adder(10).fresh
    gc.collect()
    assert read(fresh(of(a), 0, of(a), 0), np.float32).tolist() == [2] * 10


def test_a_plan_goes_without_the_collector():
    gc.disable()
    try:
        plan = number_launch(1, 0, lambda code: ValueError(code))
        w = weakref.ref(plan.fresh.__self__)
        del plan
        assert w() is None
    finally:
        gc.enable()


def test_a_plan_in_a_cycle_is_collected():
    class Fail:
        def __call__(self, code):
            return ValueError(code)

    fail = Fail()
    fail.launch = number_launch(1, 0, fail)
    fail.builtin = fail.launch.fresh
    w = weakref.ref(fail)
    del fail
    gc.collect()
    assert w() is None


def test_memory_and_references_stay_flat_without_the_collector():
    a, b = of(np.ones(10, np.float32)), of(np.ones(10, np.float32))
    calls = [call for call, _, _ in bad_calls()]
    f = adder(10).fresh
    unlocked = adder(10, work=1 << 40).fresh
    gc.disable()
    try:
        for call in calls:
            with pytest.raises((ValueError, TypeError, LookupError, ArithmeticError, MemoryError)):
                call()
        live, references = alloc.stats().live, (sys.getrefcount(a), sys.getrefcount(None))
        alloc.reset_peak()
        for k in range(100_000):
            f(a, 0, b, 0)
            unlocked(a, 0, b, 0)
            if k % 20 == 0:
                with contextlib.suppress(Exception):
                    calls[k // 20 % len(calls)]()
        assert alloc.stats().live == live
        assert alloc.stats().peak < live + 1000
        assert sys.getrefcount(a) == references[0]
        assert abs(sys.getrefcount(None) - references[1]) < 100
    finally:
        gc.enable()


def shake_hands(work, naps):
    """What resize says of the output while a kernel of that much work runs, and what the launch
    says where nothing else could run meanwhile (in words: an exception would hold this frame)."""
    words, out, refused, errors = np.zeros(2, np.int64), new_storage(8), "", ""
    plan = make_launch(handshake.spec().addr, [naps], [(8, 0, 8)], [(8, 0, 16)], work)

    def run():
        nonlocal errors
        try:
            plan.into(out, 0, of(words), 0)
        except BaseException as error:
            errors = repr(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not words[0] and thread.is_alive():
        time.sleep(0.001)
    try:
        resize(out, 100_000)
    except BufferError as error:
        refused = str(error)
    words[1] = 1
    thread.join()
    resize(out, 1 << 20)
    return refused, errors


def test_the_interpreter_lock_is_released_for_large_work():
    refused, errors = shake_hands(launch.gil_threshold(), naps=60_000)
    assert not errors, "nothing else ran while the kernel did: the lock was kept"
    assert "a running kernel" in refused


@pytest.mark.skipif(not HAS_GIL, reason="this interpreter has no lock to keep")
def test_the_interpreter_lock_is_kept_for_small_work():
    _, errors = shake_hands(launch.gil_threshold() - 1, naps=50)
    assert "failed with code 1" in errors


def test_the_threshold_can_be_set():
    before = launch.gil_threshold()
    launch.set_gil_threshold(5)
    assert launch.gil_threshold() == 5
    launch.set_gil_threshold(before)
    with pytest.raises(TypeError, match="set_gil_threshold"):
        launch.set_gil_threshold(-1)


def test_many_threads_launch_large_kernels():
    n = 50_000
    plan = adder(n, work=n)
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        a, b = rng.random(n, np.float32), rng.random(n, np.float32)
        sa, sb, expected = of(a), of(b), a + b
        for _ in range(60):
            out = read(plan.fresh(sa, 0, sb, 0), np.float32)
            wrong.extend(np.nonzero(out != expected)[0].tolist())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    live = alloc.stats().live
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert alloc.stats().live == live


def test_a_forked_child_launches():
    a = np.ones(10, np.float32)
    plan = adder(10)
    plan.fresh(of(a), 0, of(a), 0)
    child = os.fork()
    if child == 0:
        good = read(plan.fresh(of(a), 0, of(a), 0), np.float32).tolist() == [2] * 10
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_scalar_argument():
    a = np.arange(5.0)
    slot = (8, 0, 40)
    plan = make_launch(scale.spec().addr, [5], [slot], [slot, "f64"], 5)
    assert read(plan.fresh(of(a), 0, 2), np.float64).tolist() == [0, 2, 4, 6, 8]
