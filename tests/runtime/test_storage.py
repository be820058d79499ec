"""Storage objects: life, cycles, errors, sharing with NumPy, resizing."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

from antorcha.runtime.memory import alloc, storage
from antorcha.runtime.memory.storage import (
    Storage,
    as_numpy,
    new_storage,
    null_storage,
    wrap,
)
from antorcha.runtime.memory.storage_changes import resize

pytestmark = pytest.mark.usefixtures("no_collection")


def borrowed(values):
    return wrap(values.ctypes.data, values.nbytes, values)


def test_fields():
    s = new_storage(1000)
    assert type(s) is Storage
    assert (s.nbytes, s.version, s.owner) == (1000, 0, None)
    assert s.ptr % 64 == 0
    assert s.ptr > 0
    assert storage.is_owned(s)
    assert not storage.is_readonly(s)
    s.version += 3
    assert s.version == 3
    for name in ("ptr", "nbytes", "owner", "flags"):
        with pytest.raises(AttributeError):
            setattr(s, name, 1)
    with pytest.raises(TypeError):
        s.version = "new"


def test_memory_goes_back_at_once():
    before = alloc.stats().live
    s = new_storage(1 << 20)
    assert alloc.stats().live == before + (1 << 20)
    del s
    assert alloc.stats().live == before


def test_only_native_code_makes_storages():
    with pytest.raises(TypeError, match="cannot create"):
        Storage()
    with pytest.raises(TypeError):
        Storage.__new__(Storage)
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Mine", (Storage,), {})
    with pytest.raises(TypeError):
        Storage.color = 1


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ((), TypeError, "one argument"),
        ((1, 2), TypeError, "one argument"),
        (("x",), TypeError, "integer"),
        ((1.5,), TypeError, "integer"),
        ((-5,), ValueError, "negative"),
        ((1 << 45,), MemoryError, "cannot allocate 35,184,372,088,832 bytes"),
        ((1 << 45,), RuntimeError, "cannot allocate"),
        ((1 << 70,), OverflowError, "too big"),
    ],
)
def test_bad_sizes(args, error, words):
    before = alloc.stats().live
    with pytest.raises(error, match=words):
        new_storage(*args)
    assert alloc.stats().live == before


def test_weak_references():
    s = new_storage(8)
    gone = []
    w = weakref.ref(s, gone.append)
    assert w() is s
    del s
    assert w() is None
    assert gone == [w]
    assert weakref.getweakrefcount(new_storage(8)) == 0  # a reused object starts afresh


def test_borrowed_memory_is_kept_alive():
    class Owner:
        pass

    values, owner = np.arange(3.0), Owner()
    w = weakref.ref(owner)
    s = wrap(values.ctypes.data, 24, owner)
    assert s.owner is owner
    del owner
    assert w() is not None
    del s
    assert w() is None


def test_a_cycle_through_the_owner_is_collected():
    class Owner:
        pass

    values, owner = np.arange(3.0), Owner()
    owner.storage = wrap(values.ctypes.data, 24, owner)
    w, ws = weakref.ref(owner), weakref.ref(owner.storage)
    del owner
    gc.collect()
    assert w() is None
    assert ws() is None


def test_what_a_collection_has_cleared_is_used_again_untracked():
    owner: dict[str, object] = {}  # not tracked yet: the storage will be cleared first
    values = np.ones(4)
    owner["storage"] = wrap(values.ctypes.data, values.nbytes, owner)
    assert gc.is_tracked(owner["storage"])
    del owner
    gc.collect()
    assert not any([gc.is_tracked(s) for s in [null_storage(8) for _ in range(20)]])


def test_only_storages_with_owners_are_tracked():
    assert not gc.is_tracked(new_storage(8))
    assert gc.is_tracked(borrowed(np.zeros(3)))


def test_null_storage():
    s = null_storage(100)
    assert (s.ptr, s.nbytes) == (0, 100)
    with pytest.raises(BufferError, match="meta"):
        memoryview(s)
    with pytest.raises(BufferError, match="meta"):
        as_numpy(s, 0, (1,), (1,), np.uint8)
    resize(s, 200)
    assert s.nbytes == 200


@pytest.mark.parametrize("bad", [(0, 5), (-8, 5), (64, -1)])
def test_wrap_checks(bad):
    with pytest.raises(ValueError, match="wrap"):
        wrap(*bad, None)
    with pytest.raises(ValueError, match="negative"):
        null_storage(-1)


def test_numpy_shares_memory_and_keeps_it():
    s = new_storage(100)
    a = as_numpy(s, 4, (2, 3), (12, 4), np.float32)
    a[:] = np.arange(6).reshape(2, 3)
    assert as_numpy(s, 8, (5,), (4,), np.float32).tolist() == [1, 2, 3, 4, 5]
    address = s.ptr
    del s
    new_storage(100)
    assert a.ctypes.data == address + 4
    assert a[1, 2] == 5
    live = alloc.stats().live
    del a
    assert alloc.stats().live < live


def test_numpy_strides_backwards_broadcast_and_empty():
    s = borrowed(np.arange(6, dtype=np.int64))
    assert as_numpy(s, 40, (6,), (-8,), np.int64).tolist() == [5, 4, 3, 2, 1, 0]
    assert as_numpy(s, 8, (2, 2), (0, 8), np.int64).tolist() == [[1, 2], [1, 2]]
    assert as_numpy(s, 0, (0, 3), (24, 8), np.int64).shape == (0, 3)
    assert as_numpy(new_storage(0), 0, (0,), (8,), np.int64).shape == (0,)
    assert as_numpy(s, 16, (), (), np.int64) == 2


@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [(8, (6,), (8,)), (-8, (1,), (8,)), (0, (2,), (48,)), (0, (2,), (-8,)), (0, (1 << 60,), (8,))],
)
def test_numpy_views_stay_inside(offset, shape, strides):
    s = borrowed(np.arange(6, dtype=np.int64))
    with pytest.raises((ValueError, TypeError)):
        as_numpy(s, offset, shape, strides, np.int64)


def test_read_only_memory():
    text = np.frombuffer(b"12345678", np.uint8)
    s = wrap(text.ctypes.data, 8, text, readonly=True)
    assert storage.is_readonly(s)
    a = as_numpy(s, 0, (8,), (1,), np.uint8)
    assert not a.flags.writeable
    assert memoryview(s).readonly


def test_resize_keeps_the_contents():
    s = new_storage(1000)
    as_numpy(s, 0, (1000,), (1,), np.uint8)[:] = np.arange(1000) % 251
    for size in (1001, 50_000, 700, 10, 5000):
        resize(s, size)
        assert s.nbytes == size
        kept = min(size, 10)
        assert as_numpy(s, 0, (kept,), (1,), np.uint8).tolist() == list(range(kept))
    for size in (0, 1000):
        resize(s, size)
        assert s.nbytes == size
    before = alloc.stats().live
    with pytest.raises(MemoryError):
        resize(s, 1 << 45)
    assert alloc.stats().live == before
    assert s.nbytes == 1000


def test_resize_refuses_memory_in_use_and_borrowed():
    s = new_storage(100)
    a = as_numpy(s, 0, (10,), (1,), np.uint8)
    b = a[3:5]
    del a
    with pytest.raises(BufferError, match="in use"):
        resize(s, 5000)
    del b
    resize(s, 5000)
    with pytest.raises(BufferError, match="belongs to another"):
        resize(borrowed(np.zeros(3)), 100)
    with pytest.raises(ValueError, match="negative"):
        resize(s, -1)
    with pytest.raises(TypeError, match="Storage"):
        resize(np.zeros(3), 1)


def test_memory_stays_flat_without_the_collector():
    gc.disable()
    try:
        values = np.zeros(3)
        references = sys.getrefcount(values)
        alloc.reset_peak()
        base = alloc.stats().live
        for k in range(100_000):
            s = new_storage(k % 5000)
            if k % 10 == 0:
                as_numpy(s, 0, (k % 5000,), (1,), np.uint8)
                borrowed(values)
        del s
        assert alloc.stats().live == base
        assert alloc.stats().peak <= base + 20_000
        assert sys.getrefcount(values) == references
    finally:
        gc.enable()
