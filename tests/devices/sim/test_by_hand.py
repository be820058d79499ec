"""``antorcha.sim.launch``: kernels of one's own, thread by thread."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from typing import Any

import pytest

import antorcha as torch
from antorcha.devices.sim import by_hand
from antorcha.errors import NativeError, OutOfRange
from antorcha.lang.native import f32, i64, native, ptr, void
from antorcha.lang.native.grid import barrier, block, device_pointer, shared, thread, threads


@native
def scaled(words: ptr[i64], *, guarded) -> void:
    out, x = device_pointer(f32, words[0]), device_pointer(f32, words[1])
    i = i64(block() * threads() + thread())
    if not guarded or i < words[2]:
        out[i] = f32(words[3]) * x[i]


@native
def turned(words: ptr[i64], *, waits) -> void:
    x = device_pointer(f32, words[0])
    board = shared(f32, 64)
    board[thread()] = x[thread()]
    if waits:
        barrier()
    x[thread()] = board[63 - thread()]


@native
def stuck(words: ptr[i64]) -> void:
    if thread() < 7:
        barrier()


def test_the_example_shows_what_is_printed() -> None:
    result = doctest.testmod(by_hand, extraglobs={"torch": torch})
    assert result.attempted
    assert not result.failed


def test_a_kernel_runs_over_its_grid_and_is_recorded() -> None:
    x = torch.arange(50.0).to("sim")
    part = torch.zeros(60, device="sim")[7:]
    with torch.sim.recording() as launches:
        torch.sim.launch(scaled, 2, 32, part, x, 50, 3, guarded=True)
    assert part.tolist() == [3.0 * k for k in range(50)] + [0.0] * 3
    (launch,) = launches
    assert (launch.kernel, launch.blocks, launch.threads) == ("scaled", (2,), 32)
    assert [operand.name for operand in launch.operands] == ["operand0", "operand1"]
    assert [(a.operand, a.element, a.write) for a in launch.of(block=1, thread=3)] == [
        ("operand1", 35, False), ("operand0", 35, True),
    ]  # fmt: skip
    assert launch.of(block=1, thread=18) == []


def test_mistakes_are_found() -> None:
    x, out = torch.arange(50.0).to("sim"), torch.empty(50, device="sim")
    with pytest.raises(OutOfRange, match="scaled: 28 accesses outside"):
        torch.sim.launch(scaled, 2, 32, out, x, 50, 3, guarded=False)
    for waits, early in ((True, 0), (False, 32)):
        board = torch.arange(64.0).to("sim")
        torch.sim.launch(turned, 1, 64, board, waits=waits)
        assert int(board.isnan().sum()) == early
    with pytest.raises(NativeError, match="wait at a barrier"):
        torch.sim.launch(stuck, 1, 32)


def test_refusals() -> None:
    x = torch.ones(3, device="sim")
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: torch.sim.launch(stuck, 0, 32), "blocks=0 must be one to three numbers"),
        (lambda: torch.sim.launch(stuck, (1, 1, 1, 1), 32), r"blocks=\(1, 1, 1, 1\)"),
        (lambda: torch.sim.launch(stuck, 1, 1025), "threads=1025 must be a number from 1 to 1024"),
        (lambda: torch.sim.launch(stuck, 1, 32, x, torch.ones(3)), "operand 1 is a tensor on cpu"),
        (lambda: torch.sim.launch(stuck, 1, 32, 2.5), "operand 0 is float"),
        (lambda: torch.sim.launch(len, 1, 32), "a function with @native above it, not builtin"),
        (lambda: torch.sim.launch(stuck, 1, 32, *[1] * 129), "129 operands; at most 128"),
    ]  # fmt: skip
    for call, message in wrong:
        with pytest.raises(TypeError, match=message):
            call()
