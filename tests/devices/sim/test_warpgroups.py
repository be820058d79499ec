"""Products by warpgroups from tiles that are copied whole: the instructions, and the template."""

from __future__ import annotations

import re
from itertools import product as every
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.core import switches
from antorcha.devices.gpu import product_copies
from antorcha.devices.gpu.frame import planning
from antorcha.devices.gpu.launcher import launch_of
from antorcha.devices.gpu.matmul import matrix_product
from antorcha.devices.gpu.product import ProductCut, plan_product
from antorcha.devices.sim import backend
from antorcha.errors import NativeError
from antorcha.lang.kernels import MatMul
from antorcha.lang.native import (
    bf16,
    bitcast,
    f16,
    f32,
    i32,
    i64,
    native,
    ptr,
    static,
    u32,
    u64,
    void,
)
from antorcha.lang.native.bulk_copies import (
    copy_tile,
    phase_arrive,
    phase_barrier,
    phase_barriers_made,
    phase_wait,
    publish_map,
    tensor_map,
)
from antorcha.lang.native.grid import (
    barrier,
    device_pointer,
    dynamic_shared,
    run_grid,
    shared,
    thread,
)
from antorcha.lang.native.machine import nvptx
from antorcha.lang.native.warpgroups import (
    matrix_descriptor,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)
from antorcha.runtime.tensor import Tensor
from tests.devices.sim.test_matmul import described, report, run, values, wide
from tests.devices.sim.test_tensor_cores import launch

CUTS = [
    ProductCut("bulk", 128, 256, 64, 384, stages=4, parts=1),
    ProductCut("bulk", 128, 128, 64, 384, stages=3, parts=2),
    ProductCut("bulk", 64, 64, 64, 256, stages=2, parts=1),
]
SINGLE_CUTS = [
    ProductCut("bulk", 128, 256, 32, 384, stages=4, parts=1),
    ProductCut("bulk", 128, 128, 32, 384, stages=3, parts=2),
    ProductCut("bulk", 64, 64, 32, 256, stages=2, parts=1),
]


# ---- the instructions
@native
def tile_product(words: ptr[i64], *, T, left, right) -> void:
    """c = a @ b of 60 x 61 and 61 x 16 by a warpgroup; ``left``, ``right``: does a, b lie along its
    rows, its columns? Rows in memory have 64 elements."""
    t = thread()
    room, scratch, bar = dynamic_shared(T, 8192), shared(u64, 32, 128), shared(u64, 1)
    a, b = device_pointer(T, words[1]), device_pointer(T, words[2])
    maps = device_pointer(u64, words[3])
    if t == 0:
        phase_barrier(bar, i32(1))
        phase_barriers_made()
        a_sizes = [i64(60), i64(61), i64(1)] if left else [i64(61), i64(60), i64(1)]
        b_sizes = [i64(16), i64(61), i64(1)] if right else [i64(61), i64(16), i64(1)]
        tensor_map(scratch, a, T, a_sizes, [i64(64), i64(8)], static((64, 64)))
        tensor_map(scratch + 16, b, T, b_sizes, [i64(64), i64(8)], static((64, 64)))
    barrier()
    if t < 32:
        publish_map(maps, scratch)
        publish_map(maps + 16, scratch + 16)
    if t == 0:
        phase_arrive(bar, i32(16384))
        copy_tile(room, maps, [i32(0), i32(0), i32(0)], bar)
        copy_tile(room + 4096, maps + 16, [i32(0), i32(0), i32(0)], bar)
    phase_wait(bar, i32(0))
    totals = wgmma_fence([f32(1) for c in static(range(8))])
    x = matrix_descriptor(room, static(8192 * left))
    y = matrix_descriptor(room + 4096, static(8192 * right))
    for d in static(range(4)):
        to_a, to_b = static(d * (128 if left else 2)), static(d * (128 if right else 2))
        totals = wgmma(T, x + u64(to_a), y + u64(to_b), totals, static((left, right)))
    wgmma_commit()
    totals = wgmma_wait(0, totals)
    out = device_pointer(f32, words[0])
    for k in static(range(8)):
        row = t // 32 * 16 + t % 32 // 4 + static(k % 4 // 2 * 8)
        out[row * 16 + t % 4 * 2 + static(k // 4 * 8 + k % 2)] = totals[k]


@native
def tile_product_of_f32(words: ptr[i64], *, registers) -> void:
    """c = a @ b of 60 x 29 and 29 x 16 by a warpgroup, of f32 that become TF32 on their way. b lies
    along its depth; ``registers``: a lies along its rows. Rows in memory have 64 elements."""
    t = thread()
    room, scratch, bar = dynamic_shared(f32, 3072), shared(u64, 32, 128), shared(u64, 1)
    maps = device_pointer(u64, words[3])
    if t == 0:
        phase_barrier(bar, i32(1))
        phase_barriers_made()
        sizes = [i64(60), i64(29), i64(1)] if registers else [i64(29), i64(60), i64(1)]
        a, b = device_pointer(f32, words[1]), device_pointer(f32, words[2])
        tensor_map(scratch, a, f32, sizes, [i64(64), i64(8)], static((32, 32)))
        tensor_map(scratch + 16, b, f32, [i64(29), i64(16), i64(1)], [i64(64), i64(8)], (32, 32))
    barrier()
    if t < 32:
        publish_map(maps, scratch)
        publish_map(maps + 16, scratch + 16)
    if t == 0:
        phase_arrive(bar, i32(12288))
        for j in static(range(2)):
            x, y = static((32 * j, 0) if registers else (0, 32 * j))
            copy_tile(room + static(1024 * j), maps, [i32(x), i32(y), i32(0)], bar)
        copy_tile(room + 2048, maps + 16, [i32(0), i32(0), i32(0)], bar)
    phase_wait(bar, i32(0))
    totals = wgmma_fence([f32(1) for c in static(range(8))])
    row = t // 32 * 16 + t % 32 // 4
    for d in static(range(4)):
        left = matrix_descriptor(room, 0) + u64(static(2 * d))
        if registers:
            rows, depths = [row, row + 8], [t % 4 + static(8 * d), t % 4 + static(8 * d + 4)]
            left = [
                bitcast(u32, room[r // 32 * 1024 + k * 32 + ((r % 32 // 4 ^ k % 8) * 4 + r % 4)])
                for k in depths for r in rows
            ]  # fmt: skip
        right = matrix_descriptor(room + 2048, 0) + u64(static(2 * d))
        totals = wgmma(f32, left, right, totals, static((False, False)))
    wgmma_commit()
    totals = wgmma_wait(0, totals)
    out = device_pointer(f32, words[0])
    for k in static(range(8)):
        column = t % 4 * 2 + static(k // 4 * 8 + k % 2)
        out[(row + static(k % 4 // 2 * 8)) * 16 + column] = totals[k]


@native
def misuse(words: ptr[i64], *, how) -> void:
    """Shows a tile before its phase has ended; or waits for one that nobody ends."""
    room, scratch, bar = dynamic_shared(f16, 4096), shared(u64, 16, 128), shared(u64, 1)
    maps = device_pointer(u64, words[1])
    if thread() == 0:
        phase_barrier(bar, i32(2 if how == "wait" else 1))
        sizes = [i64(64), i64(64), i64(1)]
        place = device_pointer(f16, words[2])
        tensor_map(scratch, place, f16, sizes, [i64(64), i64(8)], static((64, 64)))
    barrier()
    publish_map(maps, scratch)
    if thread() == 0:
        phase_arrive(bar, i32(8192))
        copy_tile(room, maps, [i32(0), i32(0), i32(0)], bar)
    if how == "wait":
        phase_wait(bar, i32(0))
    device_pointer(u32, words[0])[thread()] = ptr[u32](room)[thread()]


def bits(x: Any, T: Any) -> Any:
    kind = antorcha.float16 if T is f16 else antorcha.bfloat16
    return antorcha.tensor(np.ascontiguousarray(x)).to(kind).view(antorcha.int16).numpy()


def test_tiles_and_their_products() -> None:
    """Layouts in shared memory, zeros outside of the tensors, and fragments, in both forms."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(-8, 9, (60, 61)) / 4, rng.integers(-8, 9, (61, 16)) / 4
    wanted = np.ones((64, 16))
    wanted[:60] += a @ b
    for T, (left, right) in zip((bf16, f16) * 2, every((False, True), repeat=2), strict=True):
        rooms = [np.full((64, 64), np.nan) for _ in range(2)]
        for room, x in zip(rooms, (a.T if left else a, b if right else b.T), strict=True):
            room[: x.shape[0], : x.shape[1]] = x
        arrays = [np.zeros((64, 16), np.float32), *[bits(room, T) for room in rooms],
                  np.zeros(32, np.int64)]  # fmt: skip
        options = {"T": T, "left": left, "right": right}
        assert np.array_equal(launch(tile_product, 128, arrays, **options), wanted), options
        held = [np.array(x) for x in arrays]
        words = np.array([x.ctypes.data for x in held] + [0] * 4, np.int64)
        run_grid(tile_product, words, (1,), (128,), **options)
        assert np.array_equal(held[0], wanted), (options, "plain Python")


def as_tf32(x: Any) -> Any:
    """Rounded to 10 bits of mantissa, the even one of two that are as near."""
    whole = np.asarray(x, np.float32).view(np.uint32)
    return (whole + 0xFFF + (whole >> 13 & 1) & 0xFFFFE000).view(np.float32).astype(np.float64)


def test_tiles_of_tf32_and_their_products() -> None:
    rng = np.random.default_rng(6)
    a, b = [rng.standard_normal(s).astype(np.float32) for s in ((60, 29), (29, 16))]
    wanted = np.ones((64, 16))
    wanted[:60] += as_tf32(a) @ as_tf32(b)
    for registers in (False, True):
        rooms = [np.full((64, 64), np.nan, np.float32) for _ in range(2)]
        for room, x in zip(rooms, (a.T if registers else a, b.T), strict=True):
            room[: x.shape[0], : x.shape[1]] = x
        arrays = [np.zeros((64, 16), np.float32), *rooms, np.zeros(32, np.int64)]
        found = launch(tile_product_of_f32, 128, arrays, registers=registers)
        assert np.abs(found - wanted).max() < 1e-5, registers
        held = [np.array(x) for x in arrays]
        words = np.array([x.ctypes.data for x in held] + [0] * 4, np.int64)
        run_grid(tile_product_of_f32, words, (1,), (128,), registers=registers)
        assert np.abs(held[0] - wanted).max() < 1e-5, (registers, "plain Python")


def test_a_tile_is_there_when_its_phase_has_ended() -> None:
    arrays = [np.zeros(32, np.int32), np.zeros(16, np.int64), np.ones((64, 64), np.int16)]
    assert (launch(misuse, 32, arrays, how="read") == -1).all()
    with pytest.raises(NativeError, match="others never reach"):
        launch(misuse, 32, arrays, how="wait")


def test_instructions() -> None:
    """What a GPU is given, and that no other GPU is given it."""
    options = {"T": bf16, "left": True, "right": False}
    text = tile_product.on_grid(nvptx(90, True), 128, **options).image
    words = (
        ".target sm_90a", "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16",
        "cp.async.bulk.tensor.3d.shared::cluster.global", "mbarrier.try_wait.parity",
        "tensormap.replace.tile.global_stride", ".extern .shared .align 1024",
    )  # fmt: skip
    for word in words:
        assert word in text, word
    for registers, left in ((False, r"%rd\d+"), (True, r"\{%r\d+(, %r\d+){3}\}")):
        text = tile_product_of_f32.on_grid(nvptx(90, True), 128, registers=registers).image
        wanted = r"m64n16k8\.f32\.tf32\.tf32 \{[^}]*\}, " + left + r", %rd\d+, 1, 1, 1;"
        assert re.search(wanted, text), wanted
    with pytest.raises(NativeError, match="of sm_90a alone, not of sm_90"):
        _ = tile_product.on_grid(nvptx(90), 128, **options).image


# ---- the template
def lies(t: Tensor, how: str) -> Tensor:
    """The same matrix on the simulator, its rows (or columns) at multiples of 16 bytes, or not."""
    rows, columns = t.shape
    if how == "columns":
        return lies(t.mT, "rows").mT
    first = 3 if how == "between" else 0
    room = antorcha.full((rows, -(-columns // 8) * 8 + 8), float("nan"), dtype=t.dtype).to("sim")
    room[:, first : first + columns] = t.to("sim")
    return room[:, first : first + columns]


def test_layouts_and_edges() -> None:
    """Sizes that fill no tile; blocks that take several; parts of the depth."""
    rng = np.random.default_rng(0)
    wrong: list[str] = []
    backend.plan_here()
    hows = [*every(("rows", "columns"), repeat=2), ("between", "rows")]
    for number, ((m, n, k), (one, other)) in enumerate(
        zip(((130, 264, 200), (300, 137, 401), (64, 264, 64), (72, 137, 401), (70, 90, 130)), hows,
            strict=True)
    ):  # fmt: skip
        dtype = ("bfloat16", "float16")[number % 2]
        a, b = values(rng, dtype, m, k), values(rng, dtype, k, n)
        there = lies(a, one), lies(b, other)
        cut = CUTS[number % 3]
        found = run(described(*there), *there, None, cut)
        wrong += report(found, wide(a) @ wide(b), dtype, (dtype, m, n, k, one, other, cut))
    assert not wrong, "\n".join(wrong)


def test_layouts_of_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    """A factor that lies across goes through registers, another one is copied."""
    monkeypatch.setattr(switches.matmul, "allow_tf32", True)
    rng = np.random.default_rng(4)
    wrong: list[str] = []
    backend.plan_here()
    hows = [*every(("rows", "columns"), repeat=2), ("between", "rows"), ("columns", "between")]
    sizes = ((130, 264, 70), (137, 90, 201), (72, 137, 101), (130, 264, 64), (70, 90, 130),
             (72, 84, 40))  # fmt: skip
    for number, ((m, n, k), (one, other)) in enumerate(zip(sizes, hows, strict=True)):
        a, b = values(rng, "float32", m, k), values(rng, "float32", k, n)
        there = lies(a, one), lies(b, other)
        wanted = as_tf32(wide(a)) @ as_tf32(wide(b))
        for cut in SINGLE_CUTS[number % 3 :: 2]:
            found = run(described(*there), *there, None, cut)
            wrong += report(found, wanted, "float32", (m, n, k, one, other, cut))
    assert not wrong, "\n".join(wrong)


def test_copies_of_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Factors whose rows do not lie at multiples of 16 bytes, or that repeat a row, are copied."""
    monkeypatch.setattr(switches.matmul, "allow_tf32", True)
    monkeypatch.setattr(product_copies, "ENOUGH_TO_COPY", 0)
    rng = np.random.default_rng(8)
    wrong: list[str] = []
    backend.plan_here()
    for one, other in every(("rows", "columns", "one"), ("rows", "columns")):
        a, b = values(rng, "float32", 71, 45), values(rng, "float32", 45, 83)
        there = [t.mT.to("sim").contiguous().mT if how == "columns" else t.to("sim")
                 for t, how in ((a, one), (b, other))]  # fmt: skip
        if one == "one":
            there[0] = there[0][:1].expand(71, 45)
        found = run(described(*there), *there, None, SINGLE_CUTS[1])
        wanted = as_tf32(wide(there[0])) @ as_tf32(wide(b))
        wrong += report(found, wanted, "float32", (one, other))
    assert not wrong, "\n".join(wrong)


def test_stacks_and_what_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switches.matmul, "allow_tf32", True)
    rng = np.random.default_rng(1)
    wrong: list[str] = []
    for dtype, cut, one, other, stacks, down in (
        ("bfloat16", CUTS[1], "rows", "rows", (3, 1), False),
        ("bfloat16", CUTS[2], "rows", "rows", (3, 1), False),
        ("float32", SINGLE_CUTS[1], "rows", "columns", (3, 1), False),
        ("float32", SINGLE_CUTS[2], "rows", "rows", (2, 2), False),
        ("float32", SINGLE_CUTS[2], "columns", "columns", (2, 1), True),
        ("float32", SINGLE_CUTS[1], "columns", "rows", (1, 2), False),
        ("float32", SINGLE_CUTS[2], "columns", "rows", (2, 2), True),
    ):
        a, b = values(rng, dtype, stacks[0], 76, 72), values(rng, dtype, stacks[1], 72, 88)
        c = values(rng, dtype, 88)
        sides = [t.mT.to("sim").contiguous().mT if how == "columns" else t.to("sim")
                 for t, how in ((a, one), (b, other))]  # fmt: skip
        there = [*sides, c.to("sim")]
        shape = (max(stacks), 88, 76) if down else (max(stacks), 76, 88)
        out = antorcha.empty(*shape, dtype=a.dtype, device="sim")
        out = out.mT if down else out
        steps = [(0 if t.shape[0] == 1 else t.stride(0), *t.stride()[1:]) for t in sides]
        what = MatMul(max(stacks), 76, 88, 72, *steps, out.stride(), (0, 0, 1), 2.0, 3.0)
        layouts = [t._layout for t in there]
        plan = plan_product(matrix_product(what), [out._layout], layouts, cut)
        flat = [x for t in (out, *there) for x in (t._storage, t._offset)]
        launch_of(backend, "MatMul", plan, [out._layout], layouts).into(*flat)
        rounded = as_tf32 if dtype == "float32" else np.asarray
        wanted = 2 * (rounded(wide(a)) @ rounded(wide(b))) + 3 * wide(c)
        wrong += report(out, wanted, dtype, (dtype, cut, one, other, stacks, down))
    assert not wrong, "\n".join(wrong)


def test_wide_offsets() -> None:
    rng = np.random.default_rng(2)
    a, b = values(rng, "float16", 70, 72).to("sim"), values(rng, "float16", 72, 88).to("sim")
    what = MatMul(1, 70, 88, 72, (1 << 31, 72, 1), (0, 88, 1), (0, 88, 1))
    found = run(what, a, b, None, CUTS[2])
    assert not report(found, wide(a) @ wide(b), "float16", "wide offsets")


@pytest.fixture
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The simulator takes these instructions; the names of the kernels that it runs."""
    ran: list[str] = []
    plain = type(backend).launch

    def plan_here(self: Any) -> None:
        planning.capability, planning.multiprocessors = 90, 4

    def noted(self: Any, name: str, kernel: int, words: Any, step: Any) -> None:
        ran.append(step.kernel.__name__)
        plain(self, name, kernel, words, step)

    monkeypatch.setattr(planning, "capability", 0)  # (as it shall be afterwards)
    monkeypatch.setattr(type(backend), "plan_here", plan_here)
    monkeypatch.setattr(type(backend), "launch", noted)
    monkeypatch.setattr(switches.matmul, "allow_tf32", True)
    return ran


def test_a_layer_and_its_gradients(on_hopper: list[str]) -> None:
    """What ops ask for, on a device with these instructions."""
    rng = np.random.default_rng(3)
    for dtype, kernels in (
        ("bfloat16", ["product_bulk"] * 3), ("float32", ["product_bulk"] * 3 + ["transpose_grid"])
    ):  # fmt: skip
        given = [values(rng, dtype, *s) for s in ((2, 72, 104), (88, 104), (88,), (2, 72, 88))]
        results = []
        on_hopper.clear()
        for device in ("cpu", "sim"):
            x, w, b, g = [t.detach().to(device).requires_grad_() for t in given]
            y = antorcha.nn.functional.linear(x, w, b)
            y.backward(g)
            results.append([t.detach().float().cpu().numpy() for t in (y, x.grad, w.grad, b.grad)])
        for ours, theirs in zip(*results, strict=True):
            assert np.abs(ours - theirs).max() < 2e-2 * np.abs(theirs).max(), dtype
        wanted = [name for name in on_hopper if name in ("product_bulk", "transpose_grid")]
        assert sorted(wanted) == kernels, (dtype, on_hopper)


def test_a_convolution_of_one_tap(on_hopper: list[str]) -> None:
    """Images whose channels lie together are a factor."""
    rng = np.random.default_rng(7)
    x, w = values(rng, "float32", 2, 96, 6, 7), values(rng, "float32", 72, 96, 1, 1)
    there = x.to("sim").to(memory_format=antorcha.channels_last), w.to("sim")
    found = antorcha.nn.functional.conv2d(*there)
    wanted = np.einsum("nchw,dcij->ndhw", as_tf32(wide(x)), as_tf32(wide(w)))
    assert not report(found, wanted, "float32", "convolution")
    assert on_hopper.count("product_bulk") == 1, on_hopper


def test_which_products_are_cut_so(monkeypatch: pytest.MonkeyPatch) -> None:
    backend.plan_here()

    def kind(m: int, n: int, k: int, dtype: Any = antorcha.bfloat16, pitch: int = 0) -> Any:
        a, b, out = [
            antorcha.empty(1, dtype=dtype, device="sim").expand(s) for s in ((m, k), (k, n), (m, n))
        ]
        what = MatMul(1, m, n, k, (0, pitch or k, 1), (0, n, 1), (0, n, 1))
        plan = plan_product(matrix_product(what), [out._layout], [a._layout, b._layout])
        cuts = [getattr(step.static["P"], "cut", None) for step in plan.steps]
        return next(cut for cut in cuts if cut is not None)

    assert kind(4096, 4096, 4096).kind == "cores"
    monkeypatch.setattr(planning, "capability", 90)
    monkeypatch.setattr(planning, "multiprocessors", 132)
    assert (kind(4096, 4096, 4096).columns, kind(4096, 4096, 4096).parts) == (256, 1)
    assert (kind(1024, 1024, 1024).columns, kind(1024, 1024, 1024).parts) == (128, 1)
    assert kind(768, 768, 8192).parts > 1
    assert kind(4096, 4096, 4096, antorcha.float32).kind == "tiles"
    monkeypatch.setattr(switches.matmul, "allow_tf32", True)
    assert kind(4096, 4096, 4096, antorcha.float32).kind == "bulk"
    assert kind(1024, 1024, 1024, antorcha.float32).columns == 64
    assert kind(4096, 4096, 4098, antorcha.float32).kind == "bulk"  # of copies
    assert kind(512, 512, 514, antorcha.float32).kind == "tiles"
    assert kind(4096, 4096, 4096, pitch=4097).kind == "cores"  # no pieces of 16 bytes
    assert kind(64, 4096, 4096).kind == "cores"
