"""Kernels of grids: in plain Python, in the simulator, and as PTX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from antorcha.devices.gpu.frame import GridStep
from antorcha.devices.sim import device as sim
from antorcha.devices.sim.memory import POISON, memory
from antorcha.errors import NativeError, OutOfRange
from antorcha.lang.native import (
    atomic_add,
    bf16,
    constant,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    native,
    ptr,
    static,
    u8,
    u64,
    void,
)
from antorcha.lang.native import backend as backend_module
from antorcha.lang.native.grid import (
    PARAMETER_WORDS,
    barrier,
    block,
    blocks,
    device_pointer,
    run_grid,
    shared,
    swap_lanes,
    thread,
    threads,
)
from antorcha.lang.native.machine import nvptx, spirv

KINDS = {"f32": f32, "f64": f64, "f16": f16, "bf16": bf16, "i8": i8, "i16": i16, "i32": i32,
         "i64": i64, "u8": u8, "u64": u64}  # fmt: skip


@native
def turn_block(words: ptr[i64]) -> void:
    """Each block's numbers backwards, through shared memory."""
    out, x = device_pointer(i64, words[0]), device_pointer(i64, words[1])
    room = shared(i64, 64)
    t, n = i64(thread()), i64(threads())
    at = i64(block()) * n
    room[t] = x[at + t]
    barrier()
    out[at + t] = room[n - 1 - t] + i64(blocks())


@native
def exchange(words: ptr[i64], *, T) -> void:
    out, x = device_pointer(T, words[0]), device_pointer(T, words[1])
    t = thread()
    v = x[t]
    for mask in static((1, 2, 4, 8, 16)):
        v = swap_lanes(v, mask)
    out[t] = v


@native
def table_and_count(words: ptr[i64]) -> void:
    total = device_pointer(i64, words[0])
    atomic_add(total, constant(i64, (3, 5, 7))[thread() % 3])


@native
def parted(words: ptr[i64]) -> void:
    if thread() < 40:
        barrier()
    device_pointer(i64, words[0])[thread()] = i64(1)


@native
def beyond(words: ptr[i64]) -> void:
    out = device_pointer(i64, words[0])
    out[i64(thread()) + words[1]] = i64(1)


@native
def unset_shared(words: ptr[i64]) -> void:
    room = shared(i64, 64)
    if thread() < 32:
        room[thread()] = i64(2)
    barrier()
    device_pointer(i64, words[0])[thread()] = room[thread()]


@native
def helper_that_waits() -> void:
    barrier()


@native
def waits_in_a_call(words: ptr[i64]) -> void:
    helper_that_waits()
    device_pointer(i64, words[0])[0] = i64(1)


@native
def on_the_cpu(x: ptr[i64]) -> void:
    x[0] = i64(thread())


def launch(
    kernel: Any, words: list[int], blocks: int = 1, threads: int = 64, **static: Any
) -> None:
    given = np.zeros(PARAMETER_WORDS, np.int64)
    given[: len(words)] = words
    step = GridStep(kernel, static, (blocks,), threads, ())
    address = kernel.on_grid(sim.target(), threads, **static).addr
    sim.grid_runner().launch("test", address, given, step)


class DeviceArray:
    """An array in the simulator's memory."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.dtype, self.nbytes = array.dtype, array.nbytes
        self.address = memory.allocate(array.nbytes)
        memory.bytes_at(self.address, array.nbytes)[:] = array.view(np.uint8)

    def get(self) -> np.ndarray[Any, Any]:
        return memory.bytes_at(self.address, self.nbytes).view(self.dtype).copy()


def test_barriers_and_shared_memory_simulated_and_in_python() -> None:
    x = np.arange(3 * 64)
    expected = x.reshape(3, 64)[:, ::-1].ravel() + 3
    there, out = DeviceArray(x), DeviceArray(np.zeros_like(x))
    for _ in range(20):  # another order of threads each time
        launch(turn_block, [out.address, there.address], blocks=3)
        assert (out.get() == expected).all()
    result = np.zeros_like(x)
    words = np.zeros(PARAMETER_WORDS, np.int64)
    words[:2] = result.ctypes.data, x.ctypes.data
    run_grid(turn_block, words, (3,), (64,))
    assert (result == expected).all()


def test_lanes_of_every_type_exchange_values() -> None:
    for name, T in KINDS.items():
        x = (np.arange(64) % 50).astype(T.np)
        expected = x.reshape(2, 32)[:, ::-1].ravel()
        there, out = DeviceArray(x), DeviceArray(np.zeros_like(x))
        launch(exchange, [out.address, there.address], T=T)
        assert (out.get() == expected).all(), name
        result = np.zeros_like(x)
        words = np.zeros(PARAMETER_WORDS, np.int64)
        words[:2] = result.ctypes.data, x.ctypes.data
        run_grid(exchange, words, (1,), (64,), T=T)
        assert (result == expected).all(), name


def test_tables_and_atomics() -> None:
    total = DeviceArray(np.zeros(1, np.int64))
    launch(table_and_count, [total.address], blocks=2, threads=96)
    assert total.get()[0] == 2 * 32 * 15


def test_what_a_gpu_would_do_wrong_silently_is_an_error() -> None:
    out = DeviceArray(np.zeros(64, np.int64))
    with pytest.raises(NativeError, match="block 0 some threads wait at a barrier"):
        launch(parted, [out.address])
    with pytest.raises(OutOfRange, match=r"3 accesses outside .* 8 bytes, is (0|8|16) bytes after"):
        launch(beyond, [out.address, 3])
    with pytest.raises(OutOfRange, match="64 accesses outside"):
        launch(beyond, [out.address, 1 << 40])
    launch(unset_shared, [out.address])
    poisoned = np.full(8, POISON, np.uint8).view(np.int64)[0]
    assert out.get().tolist() == [2] * 32 + [poisoned] * 32


def test_what_has_no_place_is_refused() -> None:
    with pytest.raises(NativeError, match="stands in the kernel itself"):
        waits_in_a_call.on_grid(sim.target(), 64).addr
    with pytest.raises(NativeError, match="is for kernels of GPUs"):
        on_the_cpu.spec().addr
    with pytest.raises(RuntimeError, match="run_grid"):
        thread()


def test_the_same_kernel_as_ptx() -> None:
    text = turn_block.on_grid(nvptx(80), 64).image
    for part in (".target sm_80", ".maxntid 64", "bar.sync", "ld.global", "st.global", ".shared"):
        assert part in text, part
    assert "ld.local" not in text
    assert "shfl.sync" in exchange.on_grid(nvptx(90), 64, T=f64).image
    assert "sm_90" in exchange.on_grid(nvptx(90), 64, T=f64).image
    specs = [turn_block.on_grid(nvptx(sm), n) for sm in (80, 90) for n in (64, 128)]
    keys = {spec.symbol for spec in specs} | {turn_block.on_grid(sim.target(), 64).symbol}
    assert len(keys) == 5


def test_the_same_kernel_as_spirv() -> None:
    specs = [turn_block.on_grid(spirv(), 64), exchange.on_grid(spirv(), 64, T=f64)]
    for spec in specs:
        words = np.frombuffer(spec.binary, np.uint32)
        assert words[0] == 0x07230203
        assert spec.symbol.encode() in spec.binary
    ir = specs[1].ir
    assert "sub_group_shuffle_xor" in ir
    assert "!intel_reqd_sub_group_size !1" in ir
    assert "intel_reqd" not in specs[0].ir
    with pytest.raises(NativeError, match="PTX and SPIR-V are images"):
        _ = turn_block.on_grid(sim.target(), 64).binary


def test_a_back_end_that_ends_is_an_error_and_starts_again() -> None:
    process = backend_module.BackendProcess()
    to = nvptx(80)
    try:
        good = turn_block.on_grid(to, 64).ir
        with pytest.raises(NativeError, match="k: LLVM's back end for sm_80"):
            process.compile("k", "this is no IR", to)
        # an intrinsic of another machine: the back end cannot select it, and aborts
        foreign = (
            'target triple = "nvptx64-nvidia-cuda"\n'
            "declare void @llvm.amdgcn.s.barrier()\n"
            "define ptx_kernel void @k() {\n call void @llvm.amdgcn.s.barrier()\n ret void\n}\n"
        )
        with pytest.raises(NativeError, match="k: LLVM's back end for sm_80 ended"):
            process.compile("k", foreign, to)
        assert b".entry turn_block" in process.compile("turn_block", good, to)
    finally:
        process.close()
