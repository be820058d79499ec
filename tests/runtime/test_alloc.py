"""The caching allocator: classes, reuse, the bound, failure, threads and forks."""

from __future__ import annotations

import ctypes
import os
import random
import threading

import pytest

from antorcha.runtime.memory import alloc

pytestmark = pytest.mark.usefixtures("no_collection")


@pytest.fixture
def limit():
    """Restores the bound on what is kept."""
    before = alloc.stats().limit
    yield before
    alloc.set_cache_limit(before)


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 80, 81, 4095, 4097, 1 << 20, (4 << 20) + 1])
def test_a_block_is_aligned_and_large_enough(nbytes):
    before = alloc.stats()
    block = alloc.allocate_block(nbytes)
    size = alloc.stats().live - before.live
    assert block % 64 == 0
    assert max(nbytes, 64) <= size <= max(64, nbytes * 5 // 4 + 64)
    ctypes.memset(block, 1, size)
    alloc.release_block(block)
    assert alloc.stats().live == before.live


def test_a_freed_block_is_used_again():
    first = alloc.allocate_block(10_000)
    alloc.release_block(first)
    hits = alloc.stats().hits
    assert alloc.allocate_block(10_001) == first
    assert alloc.stats().hits == hits + 1
    alloc.release_block(first)


def test_peak_and_reset():
    alloc.reset_peak()
    base = alloc.stats().live
    block = alloc.allocate_block(1 << 20)
    alloc.release_block(block)
    assert alloc.stats().peak == base + (1 << 20)
    alloc.reset_peak()
    assert alloc.stats().peak == base


def test_empty_cache_gives_everything_back():
    alloc.release_block(alloc.allocate_block(1 << 20))
    assert alloc.stats().cached > 0
    alloc.empty_cache()
    assert alloc.stats().cached == 0


def test_what_is_kept_is_bounded(limit):
    alloc.empty_cache()
    alloc.set_cache_limit(1 << 20)
    blocks = [alloc.allocate_block(300_000) for _ in range(8)]
    for block in blocks:
        alloc.release_block(block)
        assert alloc.stats().cached <= 1 << 20
    assert alloc.stats().cached > 0
    big = alloc.allocate_block(2 << 20)  # larger than the bound: never kept
    alloc.release_block(big)
    assert alloc.stats().cached <= 1 << 20
    alloc.set_cache_limit(0)
    assert alloc.stats().cached == 0


def test_new_sizes_replace_old_ones_in_a_full_cache(limit):
    alloc.empty_cache()
    alloc.set_cache_limit(1 << 20)
    alloc.release_block(alloc.allocate_block(1_000_000))
    small = alloc.allocate_block(100_000)
    alloc.release_block(small)
    assert alloc.allocate_block(100_000) == small
    alloc.release_block(small)


@pytest.mark.parametrize("nbytes", [-1, -(1 << 62), 1 << 46, 1 << 62, 1 << 45])
def test_impossible_sizes_give_null(nbytes):
    before = alloc.stats()
    assert not alloc.allocate_block(nbytes)
    assert alloc.stats().live == before.live


@pytest.mark.parametrize("nbytes", [-1, 1 << 46])
def test_the_bound_is_checked(nbytes):
    with pytest.raises(ValueError, match="set_cache_limit"):
        alloc.set_cache_limit(nbytes)


def test_the_error_says_what_is_held():
    error = alloc.out_of_memory(1 << 50)
    assert isinstance(error, MemoryError)
    assert isinstance(error, RuntimeError)
    assert "1,125,899,906,842,624 bytes" in str(error)


def test_many_threads_without_the_interpreter_lock():
    before = alloc.stats().live
    wrong = []
    allocate = alloc.allocate_block.spec().cfunc  # ctypes lets go of the lock
    release = alloc.release_block.spec().cfunc

    def work(seed):
        rng = random.Random(seed)
        held = {}
        for _ in range(3000):
            if len(held) > 20 or (held and rng.random() < 0.5):
                block, (size, mark) = held.popitem()
                if ctypes.string_at(block, size) != bytes([mark]) * size:
                    wrong.append(block)
                release(block)
            else:
                size, mark = rng.randint(1, 3000), rng.randint(0, 255)
                block = allocate(size)
                ctypes.memset(block, mark, size)
                held[block] = (size, mark)
        for block in held:
            release(block)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert alloc.stats().live == before


def test_a_forked_child_allocates():
    block = alloc.allocate_block(5000)
    child = os.fork()
    if child == 0:
        ok = True
        for size in (100, 5000, 1 << 21):
            mine = alloc.allocate_block(size)
            ok = ok and mine and mine != block
            alloc.release_block(mine)
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    alloc.release_block(block)
