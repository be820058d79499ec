"""The thread pool: every index once, any number of threads, nesting, concurrency, forks."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from antorcha.lang.native import Global, atomic_add, i64, native, ptr, raw, ref, void
from antorcha.runtime import pool
from antorcha.runtime.pool import pool_run

pieces = Global("test_pool_pieces", i64, 1)


@native
def add_index(lo: i64, hi: i64, args: raw) -> void:
    """args[i] += i, and counts the pieces."""
    data = ptr[i64](args)
    for i in range(lo, hi):
        data[i] = data[i] + i
    atomic_add(ref(pieces[0]), 1)


@native
def nested_piece(lo: i64, hi: i64, args: raw) -> void:
    """Each index runs a job of its own on a row of 100."""
    for i in range(lo, hi):
        pool_run(add_index, 100, 1, raw(ptr[i64](args) + 100 * i))


@native
def add_indices(data: raw, n: i64, grain: i64, times: i64) -> void:
    for _ in range(times):
        pool_run(add_index, n, grain, data)


@native
def nested(data: raw, rows: i64) -> void:
    pool_run(nested_piece, rows, 1, data)


@native
def take_pieces() -> i64:
    n = pieces[0]
    pieces[0] = 0
    return n


def unlocked(*args):
    """add_indices without the interpreter lock."""
    add_indices.spec().cfunc(*args)


@pytest.fixture(params=[1, 2, 3, 9])
def threads(request):
    """So many threads, then as before.  More than cores is allowed."""
    before = pool.get_num_threads()
    pool.set_num_threads(request.param)
    yield request.param
    pool.set_num_threads(before)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 63, 64, 1000, 4097, 100_003])
@pytest.mark.parametrize("grain", [1, 50, 1 << 40])
def test_every_index_once(threads, n, grain):
    data = np.zeros(n + 1, np.int64)
    add_indices(data.ctypes.data, n, grain, 20)
    assert (data[:n] == 20 * np.arange(n)).all()
    assert data[n] == 0
    assert pool.get_num_threads() == threads


def test_negative_counts_do_nothing():
    data = np.zeros(1, np.int64)
    add_indices(data.ctypes.data, -5, 1, 1)
    assert data[0] == 0


def test_small_work_is_not_split(threads):
    data = np.zeros(1000, np.int64)
    take_pieces()
    add_indices(data.ctypes.data, 1000, 1000, 1)
    assert take_pieces() == 1
    add_indices(data.ctypes.data, 1000, 10, 1)
    assert (take_pieces() > 1) == (threads > 1)


def test_nested_calls_run_inline(threads):
    data = np.zeros((50, 100), np.int64)
    nested(data.ctypes.data, 50)
    assert (data == np.arange(100)).all()


def test_many_python_threads(threads):
    rows = np.zeros((8, 5000), np.int64)
    workers = [
        threading.Thread(target=unlocked, args=(row.ctypes.data, 5000, 1, 200)) for row in rows
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (rows == 200 * np.arange(5000)).all()


def test_resizing_under_load():
    before = pool.get_num_threads()
    data = np.zeros(5000, np.int64)
    load = threading.Thread(target=unlocked, args=(data.ctypes.data, 5000, 1, 3000))
    load.start()
    for k in range(60):
        pool.set_num_threads(1 + k % 5)
        assert pool.pool_alive() <= 4
    load.join()
    assert (data == 3000 * np.arange(5000)).all()
    pool.set_num_threads(1)
    assert pool.pool_alive() == 0
    pool.set_num_threads(before)


def test_a_forked_child_computes():
    before = pool.get_num_threads()
    pool.set_num_threads(3)
    data = np.zeros(5000, np.int64)
    add_indices(data.ctypes.data, 5000, 1, 3)
    stop = threading.Event()

    def load():
        other = np.zeros(5000, np.int64)
        while not stop.is_set():
            unlocked(other.ctypes.data, 5000, 1, 10)

    thread = threading.Thread(target=load)  # the fork comes while a job runs
    thread.start()
    for _ in range(5):
        child = os.fork()
        if child == 0:
            mine = np.zeros(5000, np.int64)
            idle = pool.pool_alive() == 0
            add_indices(mine.ctypes.data, 5000, 1, 10)
            good = idle and (mine == 10 * np.arange(5000)).all() and pool.pool_alive() == 2
            os._exit(0 if good else 1)
        assert os.waitpid(child, 0)[1] == 0
    stop.set()
    thread.join()
    pool.set_num_threads(before)


@pytest.mark.parametrize("bad", [0, -1])
def test_thread_counts_are_checked(bad):
    with pytest.raises(RuntimeError, match="set_num_threads"):
        pool.set_num_threads(bad)


@pytest.mark.parametrize("bad", [1.5, "2", True, None])
def test_thread_counts_are_ints(bad):
    with pytest.raises(TypeError, match="set_num_threads"):
        pool.set_num_threads(bad)
