"""Streams of the simulated GPU: who waits finds the results, who forgets to finds out."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import antorcha as torch
from antorcha.devices.sim import streams

F = torch.nn.functional
HERE = torch.arange(8.0)


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    """Neither before the test nor after it."""
    assert not streams.is_delayed()
    yield
    torch.sim.synchronize()
    gc.collect()
    assert not streams.is_delayed()


def unwritten(x: torch.Tensor) -> bool:
    return bool(torch.isnan(x.cpu()).all())


def test_work_of_a_side_stream_is_done_when_somebody_waits() -> None:
    x = HERE.to("sim")
    side, default = torch.sim.Stream(), torch.sim.current_stream()
    assert (side.query(), side.device, default == torch.sim.default_stream()) == (
        True, torch.device("sim"), True
    )  # fmt: skip
    waits: dict[str, Any] = {
        "a stream": lambda event: default.wait_stream(side),
        "an event": lambda event: event.wait(),
        "an event, by the stream": lambda event: default.wait_event(event),
        "a synchronise of the stream": lambda event: side.synchronize(),
        "a synchronise of the event": lambda event: event.synchronize(),
        "a synchronise of the device": lambda event: torch.sim.synchronize(),
    }
    for name, wait in waits.items():
        with torch.sim.stream(side):
            assert torch.sim.current_stream() == side
            y = (x * 2).exp()
            event = side.record_event()
        assert torch.sim.current_stream() == default
        assert unwritten(y), name
        assert not event.query(), name
        wait(event)
        assert torch.equal(y.cpu(), (HERE * 2).exp()), name
        assert event.query(), name
    with side:
        y = x + 1
        assert torch.equal(y.cpu(), HERE + 1)  # what reads waits for the current stream
        assert y.sum().item() == 36
    assert torch.sim.Event().query()
    with pytest.raises(NotImplementedError, match="no clock"):
        torch.sim.Event().elapsed_time(torch.sim.Event())


def test_the_order_on_a_stream_is_kept_and_no_other() -> None:
    first, second = torch.Stream("sim"), torch.Stream("sim")
    x = HERE.to("sim")  # (on the default stream, for which nobody waits)
    with first:
        lost = x + 1
    first.synchronize()
    assert unwritten(lost), "a stream does not wait for what another was given"
    first.wait_stream(torch.sim.current_stream())
    with first:
        y = x + 1
        y = y * 2
        y.add_(3)
        event = torch.Event("sim")
        event.record()
        y.mul_(0)  # after the event
    with second:
        event.wait()
        z = y.clone()
        late = y - 1
    second.synchronize()
    assert torch.equal(z.cpu(), (HERE + 1) * 2 + 3)
    assert torch.equal(late.cpu(), (HERE + 1) * 2 + 2)
    torch.sim.synchronize()
    assert y.eq(0).all().item()


def test_copies_that_do_not_wait() -> None:
    x = HERE.to("sim")
    back = (x * 3).to("cpu", non_blocking=True)
    assert back.is_pinned()
    assert unwritten(back)
    torch.sim.synchronize()
    assert torch.equal(back, HERE * 3)
    turned = x.view(2, 4).t().to("cpu", non_blocking=True)
    event = torch.sim.current_stream().record_event()
    event.synchronize()
    assert torch.equal(turned, HERE.view(2, 4).t())
    assert not HERE.pin_memory().is_pinned()
    pinned = HERE.pin_memory("sim")
    assert (pinned.is_pinned(), pinned[2:].is_pinned()) == (True, True)
    assert pinned.pin_memory("sim") is pinned
    late = pinned.to("sim", non_blocking=True)
    now, plain = pinned.to("sim"), HERE.clone()  # (which waits for what came before)
    early = plain.to("sim", non_blocking=True)  # not pinned: read at once
    again = pinned.to("sim", non_blocking=True)
    pinned.fill_(7)  # too early
    plain.fill_(7)
    assert torch.equal(early.cpu(), HERE)
    assert torch.equal(now.cpu(), HERE)
    assert again.eq(7).all().item()
    assert torch.equal(late.cpu(), HERE)
    target = torch.zeros(8).to("sim")
    target.copy_(pinned, non_blocking=True)
    pinned.fill_(9)
    assert target.eq(9).all().item()


def test_memory_goes_back_in_its_streams_order() -> None:
    x = HERE.to("sim")
    side = torch.sim.Stream()
    torch.sim.synchronize()
    with torch.sim.stream(side):
        y = x + 1  # reads x later
    del x  # which goes before
    torch.sim.current_stream().synchronize()
    with pytest.raises(IndexError, match="outside of all tensors' memory"):
        side.synchronize()
    x = HERE.to("sim")
    torch.sim.synchronize()
    with torch.sim.stream(side):
        y = x + 1
    x.record_stream(side)
    del x
    torch.sim.current_stream().synchronize()
    side.synchronize()
    assert torch.equal(y.cpu(), HERE + 1)
    for k in range(20):  # (memory is used again, by the same stream and by others)
        with torch.sim.stream(side):
            y = torch.full((8,), float(k)).to("sim") * 2
            z = y.sum()
        assert unwritten(z)
        side.synchronize()
        assert z.item() == 16 * k


def test_errors_come_with_the_wait_and_the_rest_goes_on() -> None:
    x = HERE.to("sim")
    side = torch.sim.Stream()
    torch.sim.synchronize()
    with torch.sim.stream(side):
        bad = torch.tensor([3, 9]).to("sim")
        x[bad]
        y = x + 1
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        side.synchronize()
    side.synchronize()
    assert torch.equal(y.cpu(), HERE + 1)
    del side, bad
    gc.collect()
    torch.sim.synchronize()
    with pytest.raises(IndexError, match="index 9"):  # at once, where nothing waits
        x[torch.tensor([9]).to("sim")]


def test_training_on_a_side_stream() -> None:
    """The same steps on a stream of their own, beside another, as on the default one."""

    def losses(steps: int) -> list[float]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 3))
        model.to("sim")
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        x, target = torch.randn(6, 4).to("sim"), torch.tensor([0, 1, 2, 0, 1, 2]).to("sim")
        found = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            found.append(loss.detach())
        return [loss.item() for loss in found]

    right = losses(3)
    with torch.sim.stream(torch.sim.Stream()):
        assert losses(3) == right
    assert right[2] < right[0]


def test_a_backward_pass_runs_on_the_stream_of_its_root() -> None:
    """As in PyTorch it finds what the forward pass has left, and whoever called it waits for it."""
    side = torch.sim.Stream()
    w, x = torch.ones(8).to("sim").requires_grad_(), HERE.to("sim") / 8
    torch.sim.synchronize()
    ways: dict[str, Any] = {
        "backward": lambda loss: loss.backward(),
        "with a gradient": lambda loss: loss.backward(torch.ones(()).to("sim")),
        "of a view": lambda loss: loss.view(1)[0].backward(),
        "torch.autograd.backward": lambda loss: torch.autograd.backward([loss]),
        "grad": lambda loss: setattr(w, "grad", torch.autograd.grad(loss, w)[0]),
    }
    for name, run in ways.items():
        w.grad = None
        with torch.sim.stream(side):
            loss = ((w * x).exp() * w).sum()
        run(loss)
        assert torch.sim.current_stream() == torch.sim.default_stream()
        right = (HERE / 8).exp() * (1 + HERE / 8)
        assert torch.allclose(w.grad.cpu(), right), (name, w.grad)


def test_the_current_stream_is_the_threads() -> None:
    seen: list[Any] = []

    def work() -> None:
        seen.append(torch.sim.current_stream())
        with torch.sim.stream(torch.sim.Stream()):
            seen.append((HERE.to("sim") * 2).cpu())

    with torch.sim.stream(torch.sim.Stream()):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen[0] == torch.sim.default_stream()
    assert torch.equal(seen[1], HERE * 2)
    seen.clear()
