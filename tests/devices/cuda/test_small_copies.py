"""Elements as numbers and small copies by machine code, with the fake driver."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import antorcha as torch
from antorcha.devices.cuda.gpu import gpu
from antorcha.devices.cuda.streams import MOST_ENDED, reports
from antorcha.runtime.memory.device_copies import BY_STACK, MOST_SENT, WINDOW
from tests.devices.cuda.fake_driver import FakeLibrary

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "bool", "uint8", "int8", "int16", "int32",
    "int64", "uint16", "complex64",
)  # fmt: skip
READS = ["cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"]
BY_PYTHON = ("uint16", "complex64")


def _calls(library: FakeLibrary, run: Any) -> tuple[Any, list[str]]:
    start = len(library.calls)
    return run(), library.calls[start:]


def test_an_element_is_read_as_on_the_cpu(library: FakeLibrary) -> None:
    wrong = []
    for name in DTYPES:
        for value in (0, 1, 100):
            x = torch.tensor([5, value, 7], dtype=getattr(torch, name))
            y = x.cuda()[1]
            for ask in (torch.Tensor.item, bool, *([] if name == "complex64" else [float, int])):
                found, calls = _calls(library, lambda y=y, ask=ask: ask(y))
                right = ask(x[1])
                if found != right or type(found) is not type(right):
                    wrong.append(f"{ask} of {name}: {found!r} is not {right!r}")
                if calls != READS and name not in BY_PYTHON:
                    wrong.append(f"{ask} of {name} asked for {calls}")
    assert not wrong, "\n".join(wrong)


def test_copies_are_one_call_of_the_driver(library: FakeLibrary) -> None:
    torch.ones(1).cuda().cpu()
    edges = [n + d for n in (BY_STACK, MOST_SENT, WINDOW) for d in (-1, 0, 1)]
    for shape in ((), (3, 5), *[(n,) for n in (*range(20), *edges)]):
        x = torch.randint(0, 256, shape, dtype=torch.uint8)
        y, sent = _calls(library, x.cuda)
        z, read = _calls(library, y.cpu)
        assert torch.equal(x, z), shape
        if x.numel():
            sent = [each for each in sent if each != "cuMemAllocAsync"]
            assert sent[0] == "cuMemcpyHtoDAsync_v2", (shape, sent)
            # (the fake's pinned memory may lie before and behind other memory)
            assert len(sent) == 1 or (sent[1:] == READS[1:] and x.nbytes > BY_STACK), (shape, sent)
            assert read == READS, (shape, read)
    x = torch.randn(4, 6)
    for each in (x.t(), x[1:, 2:], x[::2], x[1].expand(3, 6), x.t()[1:]):
        assert torch.equal(each.cuda().cpu(), each)
        assert torch.equal(each.to("cuda", torch.float64).to("cpu", torch.float32), each)
    with torch.cuda.device(1):
        assert torch.equal(x.cuda().cpu(), x)
        assert x.cuda().device.index == 1


def test_lists_become_tensors_of_the_gpu(library: FakeLibrary) -> None:
    torch.ones(1).cuda()
    for data, dtype in (
        ([1.0, 2.0], None), ([1, 2], None), ([[1, 2], [3, 4]], torch.float32),
        ([True, False], None), ([], None), ([1.5], torch.int64), ([2.0], torch.bfloat16),
    ):  # fmt: skip
        found = torch.tensor(data, dtype=dtype, device="cuda")
        right = torch.tensor(data, dtype=dtype)
        assert found.device.type == "cuda"
        assert found.dtype is right.dtype, data
        assert torch.equal(found.cpu(), right), data
    x = torch.tensor([1.0, 2.0], device="cuda", requires_grad=True)
    (x * x).sum().backward()
    assert x.is_leaf
    assert x.grad.cpu().tolist() == [2, 4]


def test_what_was_sent_may_change(library: FakeLibrary) -> None:
    for nbytes in (8, BY_STACK, BY_STACK + 1, MOST_SENT, MOST_SENT + 1):
        for pinned in (False, True):
            for early in (False, True)[: 1 + (nbytes <= BY_STACK or not pinned)]:
                x = torch.ones(nbytes, dtype=torch.uint8)
                x = x.pin_memory() if pinned else x
                sent = x.to("cuda", non_blocking=early)
                x.fill_(7)
                assert torch.equal(sent.cpu(), torch.ones_like(x)), (nbytes, pinned, early)


def test_what_kernels_report_is_raised_and_forgotten(library: FakeLibrary) -> None:
    x, good = torch.arange(4.0).cuda(), torch.tensor([1, 2]).cuda()
    bad = torch.tensor([1, 9]).cuda()
    reads: list[Any] = [lambda y: y[0].item(), lambda y: y.cpu().tolist()[0]]
    for read in reads:
        for _ in range(3):
            y, calls = _calls(library, lambda read=read: read(x[good]))
            assert y == 1
            assert calls.count("cuStreamSynchronize") == 1
            with pytest.raises(IndexError, match="9"):
                read(x[bad])
        page = gpu(0).stream.page
        assert page is not None
        assert page.used == 0


def test_reports_that_ended_are_forgotten(library: FakeLibrary) -> None:
    x, before = torch.arange(4.0).cuda(), len(reports.known)
    for _ in range(3 * MOST_ENDED):
        torch.bincount(torch.tensor([1, 2]).cuda(), minlength=3)
        x[0].item()
    assert len(reports.known) - before < 3 * MOST_ENDED


def test_a_driver_that_fails_is_heard(library: FakeLibrary) -> None:
    x = torch.ones(2).cuda()
    for name in READS:
        library.failing[name] = 719
        for read in (lambda: x[0].item(), x.cpu):
            with pytest.raises(RuntimeError, match="launch failure"):
                read()
        library.failing.clear()
        assert x[0].item() == 1
        assert x.cpu().tolist() == [1, 1]
    library.failing["cuMemcpyHtoDAsync_v2"] = 1
    with pytest.raises(RuntimeError, match="invalid argument"):
        torch.ones(2).cuda()
    library.failing.clear()


def test_captures_refuse_copies(library: FakeLibrary) -> None:
    x, host = torch.ones(2).cuda(), torch.ones(2)
    attempts: list[Any] = [
        x.cpu, lambda: x[0].item(), host.cuda, lambda: torch.tensor([1.0], device="cuda")
    ]  # fmt: skip
    for run in attempts:
        run()
        graph = torch.cuda.CUDAGraph()
        with pytest.raises(NotImplementedError, match="graph"), torch.cuda.graph(graph):
            run()
        run()


def test_threads_read_at_once(library: FakeLibrary) -> None:
    tensors = [torch.full((3,), float(k)).cuda() for k in range(4)]
    found: dict[int, Any] = {}

    def read(k: int) -> None:
        found[k] = [(tensors[k][1].item(), tensors[k].cpu().sum().item()) for _ in range(20)]

    threads = [threading.Thread(target=read, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: [(k, 3.0 * k)] * 20 for k in range(4)}
    assert np.array_equal(tensors[2].cpu().numpy(), [2, 2, 2])
