"""Launches in machine code: which there are, on whose stream, in whose memory, and their errors."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import pytest

import antorcha as torch
from antorcha.devices.cuda.device import CudaBackend
from antorcha.devices.cuda.gpu import gpu
from antorcha.runtime.memory.storage import POOLED, new_storage, rooms
from tests.devices.cuda.fake_driver import FakeLibrary

F = torch.nn.functional


def results(x: torch.Tensor, c: torch.Tensor, i: torch.Tensor) -> list[torch.Tensor]:
    """Kernels with numbers of each kind, several results, temporaries, constants, checked data;
    over what is there; gradients."""
    w = x.detach().clone().requires_grad_()
    loss = F.cross_entropy(F.layer_norm(w @ w, (4,)), i[:4]) + torch.cat([w, w.exp()]).sum()
    loss.backward()
    out, y = torch.empty_like(x), x.clone()
    torch.mul(x, 3, out=out)
    y.add_(2.5)
    assert w.grad is not None
    return [
        x + 1.5, x + 1, c * (2 + 3j), x.softmax(1), *x.max(1), *x.sort(1), x[i[:3]], x.cumsum(0),
        x.t().contiguous(), out, y, loss.detach(), w.grad, torch.where(x > 0, x, 0.0),
        F.embedding(i, x), x.index_add(0, i[:4], x), torch.linalg.vector_norm(x),
        x.view(2, 8) * x[0, 0],
    ]  # fmt: skip


def operands(device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    x = torch.arange(16.0).view(4, 4).sin()
    return x.to(device), torch.complex(x, -x).to(device), torch.tensor([2, 0, 1, 3, 1]).to(device)


def test_no_launch_is_pythons(library: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def launch(self: CudaBackend, name: str, *_: Any) -> None:
        asked.append(name)

    monkeypatch.setattr(CudaBackend, "launch", launch)
    expected, given = results(*operands("cpu")), operands("cuda")
    before = library.calls.count("cuLaunchKernel")
    for _ in range(3):
        wrong = [
            k
            for k, (a, b) in enumerate(zip(expected, results(*given), strict=True))
            if not torch.allclose(a, b.cpu(), atol=1e-6)
        ]
        assert not wrong
    assert not asked
    assert library.calls.count("cuLaunchKernel") > before + 60


def test_each_thread_launches_on_its_stream(library: FakeLibrary) -> None:
    """Two threads in turns: what is ready for one is not for the other."""
    turns = [threading.Event(), threading.Event()]
    found: dict[int, list[int]] = {}
    turns[0].set()

    def work(which: int) -> None:
        device = f"cuda:{which}"
        side = torch.cuda.Stream(device=device)
        with torch.cuda.stream(side):
            x = torch.ones(4, device=device)
            for _ in range(5):
                assert turns[which].wait(60)
                turns[which].clear()
                before = library.waiting(side.cuda_stream)
                x = x + 1
                found.setdefault(which, []).append(library.waiting(side.cuda_stream) - before)
                turns[1 - which].set()
            assert x.cpu().tolist() == [6] * 4

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert found == {0: [1] * 5, 1: [1] * 5}


def test_blocks_are_kept_for_their_stream(library: FakeLibrary) -> None:
    x = torch.ones(100, device="cuda")
    assert x._storage.flags & POOLED
    first = x.data_ptr()
    del x
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert torch.empty(100, device="cuda").data_ptr() != first
    again = torch.empty(101, device="cuda")
    assert again.data_ptr() == first  # of the same class, with nothing asked of the driver
    with torch.cuda.stream(side):
        again.record_stream(side)
        assert not again._storage.flags & POOLED
        again + 1
    events = library.calls.count("cuStreamWaitEvent")
    del again
    assert library.calls.count("cuStreamWaitEvent") == events + 1  # before the block is another's
    assert torch.empty(100, device="cuda").data_ptr() == first
    held = torch.cuda.memory_allocated()
    big = torch.empty(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() == held + (4 << 20)
    given_back = library.calls.count("cuMemFreeAsync")
    del big
    assert library.calls.count("cuMemFreeAsync") == given_back + 1
    assert torch.cuda.memory_allocated() == held
    torch.cuda.empty_cache()
    assert library.calls.count("cuMemFreeAsync") > given_back + 1
    assert torch.empty(100, device="cuda").fill_(2).sum().item() == 200


def test_what_is_dropped_elsewhere_goes_back(library: FakeLibrary) -> None:
    """A large block that a thread drops for which the driver is not ready, and one of a capture."""
    x = torch.ones(1 << 20, device="cuda")
    kept: list[torch.Tensor] = [x]
    del x
    thread = threading.Thread(target=kept.clear)
    before = library.calls.count("cuMemFreeAsync")
    thread.start()
    thread.join()
    torch.ones(1 << 20, device="cuda")
    assert library.calls.count("cuMemFreeAsync") > before
    y, graph = torch.ones(1 << 20, device="cuda"), torch.cuda.CUDAGraph()
    before = library.calls.count("cuMemFreeAsync")
    with torch.cuda.graph(graph):
        z = torch.zeros(4, device="cuda") + 1
        assert not z._storage.flags & POOLED
        del y
        assert library.calls.count("cuMemFreeAsync") == before
    graph.replay()
    assert z.cpu().tolist() == [1] * 4


def test_a_launch_that_fails(library: FakeLibrary) -> None:
    x = torch.ones(4, device="cuda")
    x + 1
    held = torch.cuda.memory_allocated()
    library.failing["cuLaunchKernel"] = 719
    for call in (lambda: x + 1, lambda: x.add_(1), lambda: x.max(0), lambda: x.cumsum(0)):
        with pytest.raises(RuntimeError, match=r"unspecified launch failure.*ran last"):
            call()
        gc.collect()
        assert torch.cuda.memory_allocated() == held
    del library.failing["cuLaunchKernel"]
    assert (x + 1).cpu().tolist() == [2] * 4


def test_memory_that_ends_natively(library: FakeLibrary) -> None:
    x = torch.ones(1 << 26, device="cuda")
    kept = [x.exp() for _ in range(2)]
    with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 256\.00 MiB"):
        kept += [x + 1 for _ in range(9)]
    kept.clear()
    assert (x + 1)[0].item() == 2
    torch.cuda.set_per_process_memory_fraction(0.3)
    try:
        with pytest.raises(torch.OutOfMemoryError, match="this process may use"):
            x + 1
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert (x + 1)[0].item() == 2


def test_a_size_says_whose_memory_it_is(library: FakeLibrary) -> None:
    torch.ones(1, device="cuda:1")
    found = [room for allocate, room in rooms.items() if getattr(allocate, "__self__", None)]
    storages = [new_storage(1000 + room) for room in found if room]
    assert {s.nbytes for s in storages} == {1000}
    used = [gpu(k).memory.bytes.current for k in range(2)]
    assert sum(used) >= 1024 * len(storages)
    for nbytes in (
        1 << 47,
        (1 << 48) + 8,
        (3 << 48) + 8,
        (1 << 63) - 1,
    ):  # the host's
        with pytest.raises(MemoryError):
            new_storage(nbytes)
    with pytest.raises(ValueError, match="negative"):
        new_storage(-8)


def test_an_error_names_the_line_that_asked(library: FakeLibrary) -> None:
    """Of functions, of modules, and of what a backward pass does; frames are let go of."""
    table = torch.ones(4, 3, device="cuda", requires_grad=True)
    good, bad = torch.tensor([1, 2]).cuda(), torch.tensor([1, 7]).cuda()
    ids, module = torch.tensor([0, 1, 2, 9]).cuda(), torch.nn.Embedding(4, 3).to("cuda")
    for _ in range(3):
        F.embedding(good, table)
        module(good)
    calls = {
        "F.embedding(bad, table)": lambda: F.embedding(bad, table),
        "module(bad)": lambda: module(bad),
        "table[bad]": lambda: table[bad],
        "F.cross_entropy(table, ids)": lambda: F.cross_entropy(table, ids),
    }
    wrong = []
    for text, call in calls.items():
        call()
        with pytest.raises((IndexError, RuntimeError)) as raised:
            torch.cuda.synchronize()
        note = "".join(raised.value.__notes__)
        if f"{__file__}:" not in note or text not in note:
            wrong.append((text, note))
    assert not wrong


def test_noted_frames_are_let_go_of(library: FakeLibrary) -> None:
    x, good = torch.arange(4.0).cuda(), torch.tensor([1, 2]).cuda()
    code = compile("found = x[good]", "<made>", "exec")
    before = sys.getrefcount(code)
    for _ in range(50):
        exec(code, {"x": x, "good": good})
    assert sys.getrefcount(code) > before  # until the page is written anew, or ends
    for _ in range(5000):
        x[good]
    torch.cuda.synchronize()
    assert sys.getrefcount(code) == before


def test_dynamic_shared_memory_is_asked_for(library: FakeLibrary) -> None:
    """Products by warpgroups, which the fake GPU has: by Python's launch, and by machine code's."""
    a = torch.arange(72 * 80.0).view(72, 80).sin().bfloat16()
    b = torch.arange(80 * 88.0).view(80, 88).cos().bfloat16()
    there = a.cuda(), b.cuda()
    expected = (a.float() @ b.float()).bfloat16()
    for _ in range(3):
        assert torch.allclose((there[0] @ there[1]).cpu().float(), expected.float(), atol=0.1)
    needed = [nbytes for nbytes in library.shared_bytes if nbytes]
    assert needed == [6 * 2 * 64 * (128 + 128)] * 3
