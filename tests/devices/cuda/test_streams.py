"""Streams, events, pinned copies, memory and graphs, with the fake driver, which does nothing until
somebody waits for it."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha import nn
from antorcha.runtime.memory.device_copies import BY_STACK
from tests.devices.cuda.fake_driver import FakeLibrary

F = nn.functional


def test_calls_return_before_the_work_is_done(library: FakeLibrary) -> None:
    x = torch.arange(8.0).cuda()
    default = torch.cuda.current_stream()
    y = x * 2
    assert library.waiting(default.cuda_stream) > 0
    assert not default.query()
    torch.cuda.synchronize()
    assert library.waiting(default.cuda_stream) == 0
    assert default.query()
    (y + 1).sum()
    assert library.waiting(default.cuda_stream) > 0
    assert (y + 1).sum().item() == 64


def test_streams_are_independent_and_ordered_by_events(library: FakeLibrary) -> None:
    side, default = torch.cuda.Stream(), torch.cuda.current_stream()
    assert (default.cuda_stream, side.cuda_stream != 0, side != default) == (0, True, True)
    assert default == torch.cuda.default_stream()
    x = torch.arange(8.0).cuda()
    x.add_(1)
    event = default.record_event()
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        side.wait_event(event)
        y = x * 2
        assert torch.equal(y.cpu(), (torch.arange(8.0) + 1) * 2)  # the other stream went first
    assert torch.cuda.current_stream() == default
    with side:
        z = y + 1
    default.wait_stream(side)
    assert torch.equal((z * 1).cpu(), (torch.arange(8.0) + 1) * 2 + 1)
    high = torch.cuda.Stream(priority=-100)
    assert high.priority == -5
    assert torch.cuda.ExternalStream(side.cuda_stream) == side
    assert side.__cuda_stream__() == (0, side.cuda_stream)
    with torch.cuda.stream(None):
        assert torch.cuda.current_stream() == default
    there = torch.cuda.Stream(device=1)
    with there:
        assert torch.cuda.current_device() == 1
        assert torch.ones(2, device="cuda").device.index == 1
    assert torch.cuda.current_device() == 0
    assert len({torch.cuda.Stream().cuda_stream for _ in range(100)}) <= 33


def test_a_backward_pass_runs_on_the_stream_of_its_root(library: FakeLibrary) -> None:
    """As in PyTorch it finds what the forward pass has left, and whoever called it waits for it."""
    side = torch.cuda.Stream()
    w, x = torch.ones(8, device="cuda", requires_grad=True), torch.arange(8.0).cuda() / 8
    big = torch.ones(1 << 19, device="cuda", requires_grad=True)  # (a large block is the driver's)
    torch.cuda.synchronize()
    right = (x.cpu().exp() * (1 + x.cpu())).tolist()
    for _ in range(3):
        w.grad = big.grad = None
        with torch.cuda.stream(side):
            loss = ((w * x).exp() * w).sum()
            wide = (big * 2).exp()
        loss.backward()
        wide.backward(torch.ones_like(wide))
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
        assert w.grad.tolist() == pytest.approx(right)
        assert big.grad[:2].tolist() == pytest.approx([2 * np.exp(2)] * 2)


def test_the_current_stream_is_the_threads(library: FakeLibrary) -> None:
    found = []

    def run() -> None:
        found.append(torch.cuda.current_stream())
        found.append((torch.ones(3).cuda() + 1).cpu())

    with torch.cuda.stream(torch.cuda.Stream()):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert found[0] == torch.cuda.default_stream()
    assert torch.equal(found[1], torch.full((3,), 2.0))


def test_events(library: FakeLibrary) -> None:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    assert start.query()
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(end)
    start.record()
    torch.ones(4, device="cuda").exp()
    end.record()
    assert not end.query()
    with pytest.raises(RuntimeError, match="must be completed"):
        start.elapsed_time(end)
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) > 0
    with pytest.raises(ValueError, match="enable_timing"):
        start.elapsed_time(torch.cuda.Event())
    with pytest.raises(RuntimeError, match="does not match recording stream"):
        start.record(torch.cuda.Stream(device=1))
    with pytest.raises(NotImplementedError):
        torch.cuda.Event(interprocess=True)
    assert torch.Event("cuda").query()
    assert isinstance(torch.Stream("cuda"), torch.cuda.Stream)


def test_pinned_memory_and_copies_that_do_not_wait(library: FakeLibrary) -> None:
    n = BY_STACK // 4 + 1  # (fewer are read at once, wherever they are)
    x = torch.arange(float(n))
    assert not x.is_pinned()
    pinned = x.pin_memory()
    assert pinned.is_pinned()
    assert pinned[2:].is_pinned()
    assert pinned.pin_memory() is pinned
    assert torch.equal(pinned, x)
    assert torch.zeros(3, pin_memory=True).is_pinned()
    assert torch.tensor([1, 2], pin_memory=True).is_pinned()
    early = pinned.to("cuda", non_blocking=True)  # not read yet
    late = x.to("cuda", non_blocking=True)  # not pinned: read at once
    waits = pinned.cuda()
    again = pinned.cuda(non_blocking=True)
    pinned.fill_(7)
    x.fill_(7)
    assert torch.equal(late.cpu(), torch.arange(float(n)))
    assert torch.equal(waits.cpu(), torch.arange(float(n)))
    assert torch.equal(early.cpu(), torch.arange(float(n)))  # `waits` has had it done
    assert torch.equal(again.cpu(), torch.full((n,), 7.0))
    target = torch.zeros(n, device="cuda")
    target.copy_(pinned, non_blocking=True)
    pinned.fill_(9)
    assert target.cpu().eq(9).all()
    back = target.to("cpu", non_blocking=True)
    assert back.is_pinned()
    torch.cuda.synchronize()
    assert back.eq(9).all()
    turned = torch.arange(6.0, device="cuda").view(2, 3).t()[:2]
    back = turned.to("cpu", non_blocking=True)
    torch.cuda.current_stream().synchronize()
    assert torch.equal(back, torch.arange(6.0).view(2, 3).t()[:2])
    with pytest.raises(RuntimeError, match="only dense CPU tensors"):
        target.pin_memory()


def test_pinned_memory_is_kept_until_copies_are_done(library: FakeLibrary) -> None:
    pinned = torch.arange(2048.0).pin_memory()
    address = pinned.data_ptr()
    x = pinned.cuda(non_blocking=True)
    del pinned
    other = torch.zeros(2048).pin_memory()  # must not be the same memory: it is still to be read
    assert other.data_ptr() != address
    assert torch.equal(x.cpu(), torch.arange(2048.0))
    assert torch.zeros(2048).pin_memory().data_ptr() == address


def test_pinned_memory_is_had_by_any_thread(library: FakeLibrary) -> None:
    """The first thing that a process asks of the GPU, and one that a thread asks."""
    found: list[Any] = []

    x = torch.arange(5.0)

    def pin() -> None:
        found.append(x.pin_memory())

    assert torch.equal(x.pin_memory(), x)
    thread = threading.Thread(target=pin)
    thread.start()
    thread.join()
    assert torch.equal(found[0].cuda(non_blocking=True).cpu(), x)
    found.clear()
    thread = threading.Thread(target=torch.accelerator.empty_host_cache)
    thread.start()
    thread.join()
    assert library.calls.count("cuMemFreeHost") >= 1


def test_batches_in_pinned_memory(library: FakeLibrary) -> None:
    data = [{"x": torch.ones(3), "y": (k, "a")} for k in range(4)]
    for batch in torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True):
        assert batch["x"].is_pinned()
        assert batch["y"][0].is_pinned()
        assert batch["y"][1] == ["a", "a"] or batch["y"][1] == ("a", "a")


def test_memory_goes_back_in_the_streams_order(library: FakeLibrary) -> None:
    torch.ones(1, device="cuda")
    torch.cuda.synchronize()
    gc.collect()
    before = torch.cuda.memory_allocated()
    x = torch.ones(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() == before + (4 << 20)
    y = x + 1
    del x
    assert torch.cuda.memory_allocated() == before + (4 << 20)
    assert library.used[0] >= 8 << 20  # the sum is still to be made
    assert y[:3].tolist() == [2, 2, 2]
    assert library.used[0] < 8 << 20
    assert torch.cuda.max_memory_allocated() >= before + (8 << 20)
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()
    stats = torch.cuda.memory_stats()
    assert stats["allocated_bytes.all.current"] == torch.cuda.memory_allocated()
    assert stats["allocation.all.current"] >= 1
    assert torch.cuda.memory_reserved() == library.used[0]
    free, total = torch.cuda.mem_get_info()
    assert total - free == library.used[0] == torch.cuda.device_memory_used()
    assert "tensors" in torch.cuda.memory_summary()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        z = y * 2
    y.record_stream(side)
    del y
    assert z[:2].tolist() == [4, 4]
    torch.cuda.empty_cache()
    address = torch.cuda.caching_allocator_alloc(1000)
    torch.cuda.caching_allocator_delete(address)


def test_out_of_memory_says_what_holds_it(library: FakeLibrary) -> None:
    library.capacity = 64 << 20
    held = torch.ones(8 << 20, device="cuda")
    with pytest.raises(torch.OutOfMemoryError) as raised:
        torch.ones(10 << 20, device="cuda")
    text = str(raised.value)
    for part in ("Tried to allocate 40.00 MiB", "GPU 0", "capacity of 64.00 MiB", "hold 32.00 MiB",
                 "smaller batch"):  # fmt: skip
        assert part in text, text
    assert isinstance(raised.value, RuntimeError)
    assert raised.value.error_code == 2
    assert torch.cuda.memory_stats()["num_ooms"] == 1
    del held
    torch.ones(10 << 20, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.set_per_process_memory_fraction(0.25)
    with pytest.raises(torch.cuda.OutOfMemoryError, match=r"this process may use 16\.00 MiB"):
        torch.ones(5 << 20, device="cuda")


def test_a_gpu_without_a_pool(library: FakeLibrary) -> None:
    library.attributes[115] = 0
    x = torch.ones(1000, device="cuda") + 1
    assert x.sum().item() == 2000
    assert "cuMemAllocAsync" not in library.calls
    assert torch.cuda.memory_reserved() == torch.cuda.memory_allocated() > 0


def test_graphs(library: FakeLibrary) -> None:
    x = torch.zeros(8, device="cuda")
    weight = torch.full((8,), 2.0, device="cuda")
    (x * weight + 1).exp()  # compiled before
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        y = (x * weight + 1).exp()
        z = y + 1
    assert not torch.cuda.is_current_stream_capturing()
    for value in (0.0, 0.5, 1.0):
        x.fill_(value)
        graph.replay()
        assert np.allclose(z.cpu().numpy(), np.exp(2 * value + 1) + 1)
    other = torch.cuda.CUDAGraph()
    with torch.cuda.graph(other, pool=graph.pool()):
        late = z * 2
    other.replay()
    assert np.allclose(late.tolist(), 2 * (np.exp(3) + 1))
    with (
        pytest.raises(RuntimeError, match="already owns a captured graph"),
        torch.cuda.graph(graph),
    ):
        pass
    held = torch.cuda.memory_allocated()
    graph.reset()
    del y, z
    assert torch.cuda.memory_allocated() < held


def test_an_older_graphs_memory_goes_during_a_capture(library: FakeLibrary) -> None:
    x = torch.ones(8, device="cuda")
    x + 1
    for _ in range(3):
        graph = torch.cuda.CUDAGraph()  # (the one before goes here)
        with torch.cuda.graph(graph):
            y = x + 1  # (and the tensor that held its memory here)
        graph.replay()
        assert y.sum().item() == 16
    freed = library.calls.count("cuMemFree_v2")
    assert freed >= 2


def test_what_a_graph_cannot_hold_is_refused(library: FakeLibrary) -> None:
    x = torch.ones(8, device="cuda")
    x.sum().item()
    wrong = {
        "reads": lambda: (x + 1).sum().item(),
        "makes": lambda: torch.tensor([1.0, 2.0], device="cuda"),
        "on the host": lambda: torch.linalg.eigvals(x.view(2, 4)[:, :2]),
        "waits": lambda: torch.cuda.current_stream().synchronize(),
    }
    for name, call in wrong.items():
        graph = torch.cuda.CUDAGraph()
        with pytest.raises(NotImplementedError, match="graph"), torch.cuda.graph(graph):
            call()
        with pytest.raises(RuntimeError):
            graph.replay()
        assert (x + 1).sum().item() == 16, name
    with pytest.raises(RuntimeError, match="non-default stream"):
        torch.cuda.CUDAGraph().capture_begin()
    with pytest.raises(NotImplementedError):
        torch.cuda.make_graphed_callables(torch.nn.Linear(2, 2), (x,))


def test_a_graph_draws_other_numbers_each_time(library: FakeLibrary) -> None:
    """Those that the same calls draw one after the other, whichever kind they are."""
    own = torch.Generator(device="cuda").manual_seed(9)

    def draw() -> list[torch.Tensor]:
        x = torch.ones(20, device="cuda")
        return [
            F.dropout(x, 0.5), torch.rand(5, device="cuda", generator=own),
            torch.poisson(x * 30), torch.randn(3, device="cuda"),
            torch.multinomial(x, 4, replacement=True), torch.randperm(7, device="cuda"),
        ]  # fmt: skip

    draw()
    torch.cuda.manual_seed(5)
    own.manual_seed(9)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(own)
    with torch.cuda.graph(graph):
        kept = draw()
    found = []
    for seed in (None, None, 7):
        if seed is not None:
            torch.cuda.manual_seed(seed)
        graph.replay()
        found.append([x.tolist() for x in kept])
    torch.cuda.manual_seed(5)
    own.manual_seed(9)
    wanted = [[x.tolist() for x in draw()] for _ in range(2)]
    torch.cuda.manual_seed(7)
    wanted.append([x.tolist() for x in draw()])
    assert found == wanted
    assert found[0] != found[1]
    x = torch.ones(50, device="cuda", requires_grad=True)

    def step() -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.utils.checkpoint.checkpoint(nn.Dropout(0.5), x, use_reentrant=False)
        return y.detach(), torch.autograd.grad(y.sum(), x)[0]

    step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y, g = step()
    for _ in range(2):
        graph.replay()
        assert torch.equal(y.cpu(), g.cpu())  # what is computed again draws the same numbers

    def reseeded() -> None:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.rand(3, device="cuda")
            torch.cuda.manual_seed(6)
            torch.rand(3, device="cuda")

    with pytest.raises(NotImplementedError, match="manual_seed while a CUDA graph"):
        reseeded()


def test_draws_with_parameters_of_each_elements_own_do_not_wait(library: FakeLibrary) -> None:
    """What is wrong with the parameters is told at the next wait."""
    x = torch.full((6,), 0.5, device="cuda")
    draws: dict[str, Any] = {
        "p_in": torch.bernoulli, "Poisson rate": torch.poisson,
        "std": lambda p: torch.normal(0.0, p), "element < 0": lambda p: torch.multinomial(p, 2),
    }  # fmt: skip
    for text, draw in draws.items():
        draw(x)
        library.calls.clear()
        draw(x)
        waits = {"cuStreamSynchronize", "cuMemcpyDtoHAsync_v2", "cuCtxSynchronize"}
        assert not waits & set(library.calls), text
        draw(-x)
        with pytest.raises(RuntimeError, match=text):
            torch.cuda.synchronize()


def test_a_training_step_as_a_graph(library: FakeLibrary) -> None:
    w = torch.ones(4, device="cuda", requires_grad=True)
    x = torch.ones(4, device="cuda")

    def step() -> torch.Tensor:
        loss = ((w * x) ** 2).sum()
        (g,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w.sub_(g * 0.125)
        return loss.detach()

    for _ in range(2):
        step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    losses = []
    for _ in range(3):
        graph.replay()
        losses.append(loss.item())
    want, value = [], 0.75**2
    for _ in range(3):
        want.append(4 * value**2)
        value *= 0.75
    assert np.allclose(losses, want), (losses, want)


def test_an_optimizer_in_a_graph_counts_its_steps(library: FakeLibrary) -> None:
    """As many steps as replays, with a learning rate that changes between them."""
    ways: dict[str, Any] = {
        "adam": (torch.optim.Adam, {}), "nadam": (torch.optim.NAdam, {}),
        "asgd": (torch.optim.ASGD, {"lambd": 0.1}), "radam": (torch.optim.RAdam, {}),
    }  # fmt: skip
    rates = [0.1, 0.1, 0.05, 0.2]
    for name, (make, options) in ways.items():
        found = []
        for device in ("cpu", "cuda"):
            params = [torch.ones(n, device=device, requires_grad=True) for n in (3, 5)]
            lr: Any = 0.1
            if device == "cuda":
                lr, options = torch.tensor(0.1, device="cuda"), {**options, "capturable": True}
            optimizer = make(params, lr=lr, **options)

            def step() -> None:
                for p in params:  # noqa: B023
                    p.grad.copy_(p.detach() * 3)
                optimizer.step()  # noqa: B023

            for p in params:
                p.grad = torch.zeros_like(p)
            if device == "cpu":
                for rate in rates:
                    optimizer.param_groups[0]["lr"] = rate
                    step()
            else:
                with pytest.warns(UserWarning, match="running without CUDA graph capture"):
                    step()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    step()
                for rate in rates[1:]:
                    lr.fill_(rate)
                    graph.replay()
                assert optimizer.state[params[0]]["step"].item() == 4
            found.append([x for p in params for x in p.tolist()])
        assert found[1] == pytest.approx(found[0], rel=1e-5), name
    p = torch.ones(3, device="cuda", requires_grad=True)
    p.grad = torch.ones(3, device="cuda")
    plain = torch.optim.Adam([p])
    plain.step()
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="capturable is False"), torch.cuda.graph(graph):
        plain.step()
