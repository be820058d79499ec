"""Two GPUs, with the fake driver: which one is meant, what goes from one to the other, and what is
refused."""

from __future__ import annotations

import copy
import io
import pickle
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest

import antorcha as torch
from antorcha import nn
from tests.devices.cuda.fake_driver import FakeLibrary
from tests.ops.test_two_devices import not_refused

pytestmark = [
    pytest.mark.usefixtures("library"), pytest.mark.filterwarnings("ignore::UserWarning"),
]  # fmt: skip
ZERO, ONE = torch.device("cuda", 0), torch.device("cuda", 1)


def test_operands_on_two_gpus_are_refused() -> None:
    wrong = not_refused("cuda:0", "cuda:1")
    assert not wrong, "\n".join(wrong)
    x, y = torch.ones(2, 3, device=ZERO), torch.ones(2, 3, device=ONE)
    p, at = nn.Parameter(x.clone()), torch.tensor([0], device=ONE)
    calls: dict[str, Callable[[], Any]] = {
        r"same device as the indexed tensor \(cuda:0\), not on cuda:1": lambda: x[at],
        "indices should be": lambda: x.__setitem__(at, 1.0), "mask|indices": lambda: x[y > 0],
        "at least two devices, cuda:0 and cuda:1": lambda: nn.Linear(3, 2).cuda(1)(x),
        "have device cuda:0, but got cuda:1": lambda: torch.add(x, x, out=y),
        "expected device cuda:0 but got cuda:1": lambda: (p * 2).backward(y),
        "on a different device: cuda:1 for a tensor on cuda:0": lambda: setattr(p, "grad", y),
        "devices must match": lambda: x.set_(y), "no cuda:2": lambda: x.to("cuda:2"),
        "this machine has 2: cuda:0, cuda:1": lambda: torch.cuda.set_device(5),
    }  # fmt: skip
    for text, call in calls.items():
        with pytest.raises(RuntimeError, match=text):
            call()


def test_tensors_go_from_one_to_the_other() -> None:
    x = torch.arange(24.0, device=ZERO).view(4, 6)
    views = (x, x.t(), x[1:, ::2], x[:0], x[:1].expand(3, 6), x.to(torch.complex64).conj())
    for v in views:
        for moved in (v.to("cuda:1"), v.cuda(1), v.to(ONE, non_blocking=True)):
            assert moved.device == ONE
            assert torch.equal(moved.cpu(), v.cpu())
        assert torch.equal(v.to(ONE, torch.complex128).cpu(), v.cpu().to(torch.complex128))
        for like in (v, v.t() if v.ndim == 2 else v):
            target = torch.zeros(v.shape, dtype=like.dtype, device=ONE)
            target.copy_(v)
            assert torch.equal(target.cpu(), v.cpu())
    pinned = torch.arange(8.0).pin_memory()
    y = pinned.to("cuda:1", non_blocking=True)
    back = y.to("cpu", non_blocking=True)
    torch.cuda.synchronize(1)
    assert (y.device, torch.equal(back, pinned)) == (ONE, True)
    file = io.BytesIO()
    torch.save({"y": y}, file)
    for where, there in ((None, ONE), ("cuda:0", ZERO), ({"cuda:1": "cuda:0"}, ZERO)):
        file.seek(0)
        assert torch.load(file, map_location=where)["y"].device == there
    for same in (copy.deepcopy(y), pickle.loads(pickle.dumps(y)), torch.from_dlpack(y)):
        assert (same.device, same.tolist()) == (ONE, y.tolist())
    model = nn.Linear(2, 2).cuda(1)
    model.load_state_dict({k: v.cuda(0) for k, v in nn.Linear(2, 2).state_dict().items()})
    assert model.weight.device == ONE


def test_which_gpu_is_meant() -> None:
    with torch.cuda.device(1):
        made = (torch.ones(1, device="cuda"), torch.ones(1).cuda(), torch.rand(2, device="cuda"))
        assert {x.device for x in made} == {ONE}
        with torch.cuda.device("cuda:0"):
            assert torch.tensor(1, device="cuda").device == ZERO
        assert torch.cuda.current_device() == 1
        x = torch.ones(3, device="cuda:0")
        y = x * 2 + x.sum()
        assert (y.device, y.tolist()) == (ZERO, [5, 5, 5])
        assert torch.cuda.current_stream().device == ONE
    with pytest.raises(KeyError), torch.cuda.device(1):
        raise KeyError
    assert torch.cuda.current_device() == 0
    y = torch.ones(2, 3, device=ONE)
    made = (
        y.new_zeros(2), torch.zeros_like(y), torch.rand_like(y), y.clone(), y.sum(), y[0],
        torch.tensor([1], device=1), y.nonzero(), y.max(1).values, y.sort().indices,
        torch.randperm(5, device=ONE), y.cumsum(0), torch.cat([y, y]), torch.fft.fft(y),
        torch.linalg.svd(y)[1], torch.multinomial(y, 1), nn.Linear(2, 2, device=ONE).weight,
    )  # fmt: skip
    assert {x.device for x in made} == {ONE}
    assert repr(y[0]) == "tensor([1., 1., 1.], device='cuda:1')"
    with torch.device("cuda:1"):
        assert torch.arange(3).device == ONE
    accelerator = torch.accelerator
    accelerator.set_device_index(1)
    assert (torch.cuda.current_device(), torch.ones(1, device="cuda").device) == (1, ONE)
    accelerator.set_device_index(0)
    assert accelerator.current_stream("cuda:1").device == ONE
    assert torch.cuda.can_device_access_peer(0, 1)
    assert not torch.cuda.can_device_access_peer(1, 1)


def test_threads_have_gpus_of_their_own() -> None:
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        try:
            before = torch.cuda.current_device()
            torch.cuda.set_device(k % 2)
            x = torch.ones(64, device="cuda")
            for _ in range(10):
                x = x + 1
            found[k] = before, x.sum().item(), x.device.index
        except BaseException:
            found[k] = traceback.format_exc()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: (0, 704, k % 2) for k in range(4)}
    assert torch.cuda.current_device() == 0


def test_a_model_over_two_gpus_trains() -> None:
    torch.manual_seed(0)
    first, second = nn.Linear(4, 8).cuda(0), nn.Linear(8, 2).cuda(1)
    params = [*first.parameters(), *second.parameters()]
    optimizer = torch.optim.AdamW(params, lr=0.01)
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = second(first(torch.ones(3, 4, device=ZERO)).relu().to(ONE)).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        assert nn.utils.clip_grad_norm_(params, 1.0).device == ZERO
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[2] < losses[0]
    assert (first.weight.grad.device, second.weight.grad.device) == (ZERO, ONE)


def test_streams_events_and_graphs_of_each() -> None:
    here, there = torch.cuda.Stream(device=0), torch.cuda.Stream(device=1)
    assert (here.device, torch.cuda.Stream(device="cuda:1").device) == (ZERO, ONE)
    x, event = torch.ones(100, device=ZERO), torch.cuda.Event()
    here.wait_stream(torch.cuda.current_stream(0))
    with torch.cuda.stream(here):
        y = x * 3
        event.record()
    with torch.cuda.stream(there):
        assert torch.cuda.current_device() == 1
        assert torch.cuda.current_stream(0) == torch.cuda.default_stream(0)
        event.wait()
        z = y.to(ONE) * 2
    torch.cuda.current_stream(1).wait_stream(there)
    assert (z.device, z.sum().item()) == (ONE, 600)
    mark = there.record_event()
    mark.synchronize()
    assert mark.device == ONE
    with pytest.raises(RuntimeError, match="device 1 does not match recording stream's device 0"):
        mark.record(here)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(1):
        q = torch.ones(4, device="cuda")
        q + 1
        with torch.cuda.graph(graph):
            r = q + 1
        q.fill_(5)
    graph.replay()
    assert r.tolist() == [6] * 4


def test_memory_and_generators_of_each(library: FakeLibrary) -> None:
    before = torch.cuda.memory_allocated(0), torch.cuda.memory_allocated(1)
    x = torch.empty(1 << 20, device=ONE)
    now = torch.cuda.memory_allocated(0), torch.cuda.memory_allocated(1)
    assert now == (before[0], before[1] + (4 << 20))
    assert torch.cuda.mem_get_info(1) != torch.cuda.mem_get_info(0)
    with pytest.raises(torch.OutOfMemoryError, match="GPU 1 has a total capacity"):
        torch.empty(library.capacity, device=ONE)
    ooms = [torch.cuda.memory_stats(k)["num_ooms"] for k in (0, 1)]
    assert (ooms, x.numel()) == ([0, 1], 1 << 20)
    torch.manual_seed(4)
    assert torch.rand(5, device=ZERO).tolist() == torch.rand(5, device=ONE).tolist()
    with torch.cuda.device(1):
        torch.cuda.manual_seed(9)
    assert [each.initial_seed() for each in torch.cuda.default_generators] == [4, 9]
    torch.cuda.default_generators[1].manual_seed(4)
    again = torch.rand(5, device=ONE)
    torch.cuda.manual_seed_all(4)
    assert torch.equal(torch.rand(5, device=ONE), again)
