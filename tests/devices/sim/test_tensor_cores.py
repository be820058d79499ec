"""Tensor cores in the simulator and in plain Python: layouts of fragments, copies on their way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.devices.gpu.frame import GridStep
from antorcha.devices.sim.device import grid_runner, target
from antorcha.devices.sim.memory import memory
from antorcha.errors import OutOfRange
from antorcha.lang.native import bf16, bitcast, f16, f32, i32, i64, native, ptr, static, u32, void
from antorcha.lang.native.grid import (
    PARAMETER_WORDS,
    barrier,
    device_pointer,
    run_grid,
    shared,
    thread,
)
from antorcha.lang.native.machine import nvptx
from antorcha.lang.native.tensor_cores import (
    commit_copies,
    copy_piece,
    load_matrices,
    mma,
    to_tf32,
    wait_copies,
)


@native
def small_product(words: ptr[i64], *, T, left, right) -> void:
    """c = a @ b of 16 x 16 and 16 x 8 by a warp; ``left``, ``right``: is a, b stored by columns?"""
    lane = thread()
    room_a, room_b = shared(T, 256), shared(T, 128)
    a, b = device_pointer(T, words[1]), device_pointer(T, words[2])
    copy_piece(room_a + lane * 8, a + lane * 8, i32(16))
    if lane < 16:
        copy_piece(room_b + lane * 8, b + lane * 8, i32(16))
    commit_copies()
    wait_copies(0)
    barrier()
    if left:
        x = load_matrices(room_a + ((lane % 8 + lane // 16 * 8) * 16 + lane // 8 % 2 * 8), True)
    else:
        x = load_matrices(room_a + (lane % 16 * 16 + lane // 16 * 8))
    if right:  # (lanes from 16 on give the addresses of matrices that nobody reads)
        y = load_matrices(room_b + (lane % 8 * 16 + lane // 8 % 2 * 8))
    else:
        y = load_matrices(room_b + lane % 16 * 8, True)
    c = mma(T, x, [y[0], y[1]], [f32(1), f32(2), f32(3), f32(4)])
    out = device_pointer(f32, words[0])
    for k in static(range(4)):
        out[(lane // 4 + static(k // 2 * 8)) * 8 + lane % 4 * 2 + static(k % 2)] = c[k]


@native
def small_product_of_f32(words: ptr[i64], *, right) -> void:
    """c = a @ b of 16 x 8 and 8 x 8 by a warp; ``right``: is b stored by columns?"""
    lane = thread()
    room_a, room_b = shared(f32, 128), shared(f32, 64)
    a, b = device_pointer(f32, words[1]), device_pointer(f32, words[2])
    copy_piece(room_a + lane * 4, a + lane * 4, i32(16))
    if lane < 16:
        copy_piece(room_b + lane * 4, b + lane * 4, i32(16))
    commit_copies()
    wait_copies(0)
    barrier()
    x = load_matrices(room_a + (lane % 16 * 8 + lane // 16 * 4))
    if right:
        y = load_matrices(room_b + (lane % 8 * 8 + lane // 8 % 2 * 4))
    else:
        y = [bitcast(u32, room_b[(lane % 4 + 4 * k) * 8 + lane // 4]) for k in static(range(2))]
    c = mma(f32, x, [y[0], y[1]], [f32(1), f32(2), f32(3), f32(4)])
    out = device_pointer(f32, words[0])
    for k in static(range(4)):
        out[(lane // 4 + static(k // 2 * 8)) * 8 + lane % 4 * 2 + static(k % 2)] = c[k]


@native
def rounded(words: ptr[i64]) -> void:
    out, x = device_pointer(u32, words[0]), device_pointer(f32, words[1])
    out[thread()] = to_tf32(x[thread()])


@native
def read_early(words: ptr[i64], *, groups, left, shift) -> void:
    """Copies a piece for each group, waits for all but ``left``, and shows what is there."""
    room = shared(u32, static(4 * groups + 4))
    source = device_pointer(u32, words[1])
    for g in static(range(groups)):
        copy_piece(room + static(4 * g + shift), source + static(4 * g), i32(16 if g else 8))
        commit_copies()
    wait_copies(left)
    out = device_pointer(u32, words[0])
    for k in static(range(4 * groups)):
        out[k] = room[k]


def launch(kernel: Any, threads: int, arrays: list[Any], **static_values: Any) -> Any:
    """Runs a block on the simulator; the first array is what it writes."""
    there = [antorcha.tensor(a).to("sim") for a in arrays]
    words = np.zeros(PARAMETER_WORDS, np.int64)
    words[: len(there)] = [t._storage.ptr for t in there]
    spec = kernel.on_grid(target(), threads, **static_values)
    step = GridStep(kernel, static_values, (1,), threads, ())
    grid_runner().launch("test", spec.addr, words, step)
    return there[0].cpu().numpy()


def small_case(T: Any, left: bool, right: bool) -> tuple[list[Any], Any]:
    rng = np.random.default_rng(5)
    a, b = rng.integers(-8, 9, (16, 16)) / 4, rng.integers(-8, 9, (16, 8)) / 4
    start = np.tile([[1.0, 2.0], [3.0, 4.0]], (1, 4)).repeat(8, 0)
    stored = [a.T if left else a, b.T if right else b]
    kind = antorcha.float16 if T is f16 else antorcha.bfloat16
    bits = [
        antorcha.tensor(np.ascontiguousarray(x)).to(kind).view(antorcha.int16).numpy()
        for x in stored
    ]
    return [np.zeros((16, 8), np.float32), *bits], a @ b + start


@pytest.mark.parametrize("T", [bf16, f16], ids=["bf16", "f16"])
def test_fragments(T: Any) -> None:
    for left in (False, True):
        for right in (False, True):
            arrays, wanted = small_case(T, left, right)
            options = {"T": T, "left": left, "right": right}
            found = launch(small_product, 32, arrays, **options)
            assert np.array_equal(found, wanted), options
            held = [np.array(a) for a in arrays]
            words = np.array([a.ctypes.data for a in held] + [0] * 5, np.int64)
            run_grid(small_product, words, (1,), (32,), **options)
            assert np.array_equal(held[0], wanted), (options, "plain Python")


def test_sums_are_cut_off() -> None:
    """As tensor cores do it, not rounded to the nearest."""
    a, b = np.zeros((16, 16)), np.zeros((16, 8))
    a[:, 0] = a[:, 1] = [1, -1] * 8
    b[0], b[1] = 16, 1.75 * 2.0**-20
    start = np.zeros((16, 8)) + np.tile([[1.0, 2.0], [3.0, 4.0]], (1, 4)).repeat(8, 0)
    exact = a @ b + start
    near = exact.astype(np.float32)
    wanted = np.where(np.abs(near) > np.abs(exact), np.nextafter(near, np.float32(0)), near)
    assert not np.array_equal(wanted, near)
    bits = [antorcha.tensor(x).to(antorcha.bfloat16).view(antorcha.int16).numpy() for x in (a, b)]
    arrays, options = [np.zeros((16, 8), np.float32), *bits], {"T": bf16, "left": False,
                                                               "right": False}  # fmt: skip
    assert np.array_equal(launch(small_product, 32, arrays, **options), wanted)
    words = np.array([x.ctypes.data for x in arrays] + [0] * 5, np.int64)
    run_grid(small_product, words, (1,), (32,), **options)
    assert np.array_equal(arrays[0], wanted), "plain Python"


def test_fragments_of_tf32() -> None:
    """Their 10 bits of mantissa are read, the rest is not."""
    rng = np.random.default_rng(6)
    a, b = rng.integers(-1023, 1024, (16, 8)) / 4, rng.integers(-15, 16, (8, 8)) / 4
    start = np.tile([[1.0, 2.0], [3.0, 4.0]], (1, 4)).repeat(8, 0)
    noise = rng.integers(0, 1 << 13, (16, 8), np.uint32)
    for right in (False, True):
        noisy = (a.astype(np.float32).view(np.uint32) | noise).view(np.float32)
        stored = np.ascontiguousarray(b.T if right else b, np.float32)
        arrays = [np.zeros((16, 8), np.float32), noisy, stored]
        found = launch(small_product_of_f32, 32, arrays, right=right)
        assert np.array_equal(found, a @ b + start), right
        words = np.array([x.ctypes.data for x in arrays] + [0] * 5, np.int64)
        run_grid(small_product_of_f32, words, (1,), (32,), right=right)
        assert np.array_equal(arrays[0], a @ b + start), (right, "plain Python")


def test_rounding_to_tf32() -> None:
    x = np.array([1.0, 1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-11 - 2**-23, -3.3, 3e38, np.inf, -np.inf,
                  np.nan, -0.0, 1e-40], np.float32)  # fmt: skip
    bits = np.append(x, np.array([0x7F800001, 0x7F7FFFFF], np.uint32).view(np.float32))
    words = [int(w) for w in bits.view(np.uint32)]
    even = [w + 0xFFF + (w >> 13 & 1) & 0xFFFFE000 for w in words]
    wanted = np.where(np.isnan(bits), 0x7FFFFFFF, np.where(np.isinf(bits), words, even))
    arrays = [np.zeros(13, np.int32), bits]
    assert np.array_equal(launch(rounded, 13, arrays).view(np.uint32), wanted)
    words = np.array([a.ctypes.data for a in arrays] + [0] * 5, np.int64)
    run_grid(rounded, words, (1,), (13,))
    assert np.array_equal(arrays[0].view(np.uint32), wanted), "plain Python"
    assert "cvt.rna.tf32.f32" in rounded.on_grid(nvptx(80), 32).image
    assert "cvt.rn.tf32.f32" in rounded.on_grid(nvptx(90), 32).image


def test_copies_are_done_when_they_are_waited_for() -> None:
    source = np.arange(1, 13, dtype=np.int32)
    whole = np.array([1, 2, 0, 0, *range(5, 13)])
    for left in range(4):
        found = launch(
            read_early, 1, [np.zeros(12, np.int32), source], groups=3, left=left, shift=0
        )
        done = 4 * (3 - left)
        assert np.array_equal(found[:done], whole[:done]), left
        assert (found[done:] == -1).all(), left


def test_a_copy_to_no_multiple_of_16_bytes_is_reported() -> None:
    with pytest.raises(OutOfRange, match="outside of all tensors"):
        launch(read_early, 1, [np.zeros(4, np.int32), np.arange(4, dtype=np.int32)], groups=1,
               left=0, shift=1)  # fmt: skip
    assert memory.take_fault() is None


def test_instructions() -> None:
    """What a GPU is given."""
    options = {"T": bf16, "left": True, "right": True}
    text = small_product.on_grid(nvptx(80), 32, **options).image
    for word in ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "cp.async.cg.shared",
                 "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "cp.async.commit_group",
                 "cp.async.wait_group"):  # fmt: skip
        assert word in text, word
