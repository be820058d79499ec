"""The end of a process: with workers, with live storages, from threads, while kernels run."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
import weakref

import pytest

from antorcha.lang.native import Global, i64
from antorcha.lang.native.values import _globals
from tests.patience import PATIENCE

START = """
import os, sys, threading, time
import numpy as np
from antorcha.lang.native import i32, i64, Extern, atomic_store, native, ptr, raw, void
from antorcha.runtime import pool, random
from antorcha.runtime.memory import alloc
from antorcha.runtime.launch import make_launch
from antorcha.runtime.memory.storage import new_storage, wrap, as_numpy
from antorcha.runtime.pool import pool_run
usleep = Extern("usleep", i32, i32)

@native
def piece(lo: i64, hi: i64, args: raw) -> void:
    for i in range(lo, hi):
        ptr[i64](args)[i] = i

@native
def job(data: raw, n: i64) -> void:
    pool_run(piece, n, 1, data)

unlocked = job.spec().cfunc

@native
def slow(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    atomic_store(ptr[i64](bufs[1]), 1)
    usleep(i32(desc[0]))
    return 0

pool.set_num_threads(3)
data = np.zeros(10_000, np.int64)
job(data.ctypes.data, 10_000)
assert data[9_999] == 9_999
plan = make_launch(slow.spec().addr, [300_000], [(8, 0, 8)], [(8, 0, 8)], 1 << 40)
inside = np.zeros(1, np.int64)  # is a kernel running, in the background?
flag = wrap(inside.ctypes.data, 8, inside)
def background(work):
    def run():
        while True: work()
    threading.Thread(target=run, daemon=True).start()
    while not inside[0]: time.sleep(0.001)
storage = new_storage(1 << 20)
print("begun", flush=True)
"""

ENDS = {
    "live objects": "keep = [storage, as_numpy(storage, 0, (8,), (1,), np.uint8), plan]",
    "a cycle": "class C: pass\nc = C(); c.s = wrap(data.ctypes.data, 80, c); c.launch = plan",
    "objects in modules": (
        "import builtins\nsys.keep = storage; sys.plan = plan; builtins.k = new_storage(9)"
    ),
    "a daemon thread in a kernel": ("background(lambda: plan.fresh(flag, 0))"),
    "a daemon thread in the pool": (
        "def spin(): unlocked(data.ctypes.data, 10_000); inside[0] = 1\nbackground(spin)"
    ),
    "a thread that outlives main": (
        "def outlive(): threading.main_thread().join(); job(data.ctypes.data, 10_000)\n"
        "threading.Thread(target=outlive).start()"
    ),
    "at exit": (
        "import atexit\n"
        "atexit.register(lambda: (plan.fresh(flag, 0), job(data.ctypes.data, 10_000)))"
    ),
    "a finaliser": (
        "class D:\n    def __del__(self): new_storage(100)\nd = D(); d.me = d; sys.d = D()"
    ),
    "sys.exit in a fork": (
        "child = os.fork()\n"
        "if child == 0:\n"
        "    job(data.ctypes.data, 10_000); x = plan.fresh(flag, 0); sys.exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0"
    ),
    "many forks": (
        "for _ in range(20):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        job(data.ctypes.data, 10_000); os._exit(0)\n"
        "    assert os.waitpid(child, 0)[1] == 0"
    ),
    "os._exit": "os._exit(0)",
    "fewer threads": "pool.set_num_threads(1)",
    "a generator in use": (
        "g = random.Generator(3)\n"
        "big = np.zeros(1 << 22)\n"
        "def draw(): inside[0] = 1; random.fill_normal(g, big.ctypes.data, 1 << 22, 'float64')\n"
        "background(draw)"
    ),
    "multiprocessing": (
        "import multiprocessing as mp\n"
        "def child(q): job(data.ctypes.data, 10_000); q.put(int(data[5]))\n"
        "context = mp.get_context('fork'); q = context.Queue()\n"
        "p = context.Process(target=child, args=(q,)); p.start(); assert q.get() == 5\n"
        "p.join(); assert p.exitcode == 0"
    ),
}


LATE = """
import antorcha as torch
import sklearn.datasets  # keeps modules, and so what they hold, beyond the end of all modules
from antorcha.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.ones(10, 2)), 2, shuffle=True)
for batch in loader:
    pass
print("begun", flush=True)
"""
# Freed memory is overwritten at once: a lock in it stays locked, and the process does not end.
DEBUG = {**os.environ, "PYTHONMALLOC": "debug"}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_a_process_ends_well(tmp_path, end):
    _ends_well(tmp_path, START + end + "\n")


def test_storages_may_be_the_last_to_go(tmp_path):
    pytest.importorskip("sklearn", reason="needs antorcha[demo]")
    _ends_well(tmp_path, LATE)


def test_what_native_code_points_to_is_never_freed():
    shared = Global("antorcha_test_forever", i64)
    buffer = weakref.ref(shared.buf)
    assert _globals.pop("antorcha_test_forever")[1] is shared
    del shared
    gc.collect()
    assert buffer() is not None


def _ends_well(tmp_path, program):
    script = tmp_path / "script.py"
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-X", "faulthandler", str(script)],
        env=DEBUG,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "begun\n", "")


def _interrupted(process):
    """The exit status after as many interrupts as it takes: CPython 3.11 can lose one that comes
    just as a thread takes the interpreter lock (``COMPUTE_EVAL_BREAKER`` is no atomic step)."""
    end = time.monotonic() + PATIENCE
    while True:
        process.send_signal(signal.SIGINT)
        try:
            return process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            assert time.monotonic() < end, "interrupts are ignored"


def test_an_interrupt_ends_a_process(tmp_path):
    script = tmp_path / "script.py"
    # a shell's background job is born with SIGINT ignored, and so would be this child of it
    listen = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    script.write_text(listen + START + "while True: job(data.ctypes.data, 10_000)\n")
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    try:
        assert _interrupted(process) != 0
    finally:
        process.kill()  # one that did not end must not go on computing
    process.communicate()
