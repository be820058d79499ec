"""What programs do on a GPU besides training: other libraries, copies, streams, threads, memory,
errors."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import traceback
import warnings
from pathlib import Path
from typing import Any

import antorcha as torch
from antorcha import config
from tools import gpu_draws, gpu_training
from tools.gpu_checks import CHECKS, check, near, peer, raised

nn, F = torch.nn, torch.nn.functional
NO_PEER = "PyTorch with CUDA is not installed here"
ROOT = Path(__file__).resolve().parents[1]
OTHERS = gpu_draws, gpu_training  # (whose checks belong to the table)


def run_checks(number: int = 0, count: int = 1, small: bool = False) -> dict[str, str]:
    """A share of the checks: by name "ok", with a remark where there is one, or what was raised."""
    return {name: ask(name, small) for name in list(CHECKS)[number::count]}


def ask(name: str, small: bool = False) -> str:
    """What a check says."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = CHECKS[name](small)
            torch.cuda.synchronize()
        return f"ok: {said}" if said else "ok"
    except Exception:
        torch.cuda.empty_cache()
        return traceback.format_exc(limit=-4)


# ---- other libraries
@check
def tensors_of_pytorch(small: bool) -> str | None:
    """PyTorch's tensors here, and ours there: by DLPack and by the CUDA array interface."""
    theirs = peer()
    if theirs is None:
        return NO_PEER
    dtypes = ("float32", "float16", "bfloat16", "float64", "int64", "uint8", "bool", "complex64")
    for name in dtypes:
        x = (theirs.arange(24).reshape(4, 6) % 5).to(getattr(theirs, name)).cuda()
        for view in (x, x.t()[1:, ::2], x[:1].expand(3, 6), x[:0]):
            ours = torch.from_dlpack(view)
            assert (ours.is_cuda, str(ours.dtype)[6:]) == (True, name), (name, ours.dtype)
            assert ours.data_ptr() == view.data_ptr() or not view.numel(), name
            same = ours.cpu() == torch.from_dlpack(view.cpu().contiguous())
            assert bool(same.all()), f"from PyTorch, {name}"
        mine = (torch.arange(24).reshape(4, 6) % 5).to(getattr(torch, name)).cuda()
        for seen in (mine, mine.t()[1:, ::2], mine[:0]):
            there = theirs.from_dlpack(seen)
            assert (there.is_cuda, str(there.dtype)[6:]) == (True, name), (name, there.dtype)
            assert there.tolist() == seen.tolist(), f"to PyTorch, {name}"
        if name != "bfloat16":  # (which that interface has not)
            there = theirs.as_tensor(mine.t(), device="cuda")
            assert there.data_ptr() == mine.data_ptr(), name
            assert there.tolist() == mine.t().tolist(), name
            back = torch.as_tensor(x.t(), device="cuda")
            assert back.tolist() == x.t().tolist(), name
    return shared_with_pytorch(theirs)


def shared_with_pytorch(theirs: Any) -> None:
    """Both write to one memory, on streams of their own; memory outlives whoever made it."""
    n = 1 << 24
    x = theirs.zeros(n, device="cuda")
    ours = torch.from_dlpack(x)
    side = theirs.cuda.Stream()
    with theirs.cuda.stream(side):
        y = theirs.zeros(n, device="cuda")
        for _ in range(20):
            y += 1
        late = torch.from_dlpack(y)  # our stream waits for theirs
    assert late.sum().item() == 20 * n, "what is given by DLPack was not waited for"
    ours += 2
    torch.cuda.synchronize()
    assert x.sum().item() == 2 * n
    with torch.cuda.stream(torch.cuda.Stream()):
        z = torch.zeros(n, device="cuda")
        for _ in range(20):
            z += 1
        there = theirs.from_dlpack(z)
    assert there.sum().item() == 20 * n, "what PyTorch gets by DLPack was not waited for"
    kept = torch.from_dlpack(theirs.full((n,), 3.0, device="cuda"))
    given = theirs.from_dlpack(torch.full((n,), 4.0, device="cuda"))
    gc.collect()
    more = [theirs.zeros(n, device="cuda"), torch.zeros(n, device="cuda")]
    assert (kept.sum().item(), given.sum().item()) == (3 * n, 4 * n), "memory went too early"
    del more
    with torch.cuda.stream(torch.cuda.ExternalStream(side.cuda_stream)):
        assert torch.ones(5, device="cuda").sum().item() == 5


# ---- copies, streams, threads
@check
def a_pinned_loader(small: bool) -> None:
    """Batches in pinned memory, copied without waiting while the last ones are computed on."""
    n, width = (24, 8) if small else (4000, 1024)
    data = torch.arange(float(n))[:, None].expand(n, width).contiguous()
    for workers in (0,) if small else (0, 2):
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(data), 8, pin_memory=True, num_workers=workers,
            multiprocessing_context="spawn" if workers else None,
        )  # fmt: skip
        found = []
        for (batch,) in loader:
            assert batch.is_pinned()
            x = batch.cuda(non_blocking=True)
            found.append((x * 2).sum(1))
        total = torch.cat(found).cpu()
        assert torch.equal(total, torch.arange(float(n)) * 2 * width), f"{workers} workers"


@check
def copies_that_do_not_wait(small: bool) -> None:
    """They are done at the wait; pinned memory is not used again before."""
    n = 1 << (8 if small else 24)
    x = torch.arange(float(n)).pin_memory()
    for k in range(6):
        there = x.to("cuda", non_blocking=True)
        back = (there + k).to("cpu", non_blocking=True)
        assert back.is_pinned()
        torch.cuda.current_stream().synchronize()
        assert torch.equal(back, x + k), k
    pieces = [
        torch.full((n // 8,), float(k)).pin_memory().cuda(non_blocking=True) for k in range(40)
    ]
    for k, each in enumerate(pieces):
        assert each.eq(k).all().item(), f"piece {k}: its memory was used again too early"
    target = torch.empty(n, pin_memory=True)
    target.copy_(torch.full((n,), 7.0, device="cuda"), non_blocking=True)
    torch.cuda.synchronize()
    assert target.eq(7).all()


@check
def streams_and_events_of_threads(small: bool) -> None:
    """Threads with streams of their own, whose results others take over by events."""
    n, rounds = (64, 2) if small else (1 << 20, 60)
    results: list[Any] = [None] * 4
    errors = []

    def work(k: int) -> None:
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                assert torch.cuda.current_stream() == stream
                x = torch.full((n,), float(k), device="cuda")
                for _ in range(rounds):
                    x = x * 1.0 + 1
                event = torch.cuda.Event()
                event.record()
            results[k] = x, event
        except BaseException:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    total = torch.zeros(n, device="cuda")
    for x, event in results:
        torch.cuda.current_stream().wait_event(event)
        total += x
    assert total.eq(6 + 4 * rounds).all().item()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    total.exp_()
    end.record()
    end.synchronize()
    assert (start.query(), end.query()) == (True, True)
    assert 0 < start.elapsed_time(end) < 1000


@check
def a_backward_pass_of_another_stream(small: bool) -> None:
    """It runs on the stream of the forward pass; who calls it, and reads, has waited."""
    n, rounds = (64, 2) if small else (1 << 22, 40)
    weight = torch.full((n,), 0.5, device="cuda", requires_grad=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    for _ in range(3):
        weight.grad = None
        with torch.cuda.stream(side):
            y = weight
            for _ in range(rounds):
                y = y * 1.0 + 0.5
            loss = (y * y).sum()
        loss.backward()
        more = [torch.zeros(n, device="cuda") for _ in range(4)]
        right = 2 * (0.5 + 0.5 * rounds)
        assert weight.grad.eq(right).all().item()
        del more, y, loss


@check
def backward_in_threads(small: bool) -> None:
    """Threads share a model's parameters, on streams of their own, and each has its gradients."""
    weight = torch.linspace(-1, 1, 32, device="cuda").requires_grad_()
    torch.cuda.synchronize()
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            (g,) = torch.autograd.grad(((weight * k) ** 2).sum(), weight)
            found[k] = g.cpu()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, g in found.items():
        near(g, 2 * k * k * weight.cpu(), 1e-6, f"thread {k}")
    assert len(found) == 4


@check
def numbers_of_the_cpu(small: bool) -> None:
    """Tensors of no dims on the CPU go with those of a GPU, and have their gradients there."""
    n = torch.tensor(2.0, requires_grad=True)
    x = torch.arange(6.0, device="cuda")
    calls: dict[str, Any] = {
        "x + n": lambda x: x + n, "n - x": lambda x: n - x, "x ** n": lambda x: x**n,
        "where": lambda x: torch.where(x > 2, x, n), "mse": lambda x: F.mse_loss(x, n.expand(6) * 1)
        if not x.is_cuda else F.mse_loss(x, n), "lerp": lambda x: torch.lerp(x, x + 1, n),
        "addmm": lambda x: torch.addmm(n, x.view(2, 3), x.view(3, 2)),
        "half": lambda x: x.half() * n, "int": lambda x: x + torch.tensor(7),
    }  # fmt: skip
    for name, call in calls.items():
        found = []
        for there in (x, x.cpu()):
            n.grad = None
            result = call(there)
            if result.requires_grad:
                result.float().sum().backward()
                assert n.grad.device.type == "cpu", name
            found.append([result, torch.zeros(()) if n.grad is None else n.grad])
        near(found[0][0], found[1][0], 1e-6, name)
        near(found[0][1], found[1][1], 1e-5, f"the gradient of {name}")
    for wrong in (lambda: F.mse_loss(x, x.cpu()), lambda: x + x.cpu(), lambda: x.cpu()[x.long()],
                  lambda: F.layer_norm(x, (6,), x.cpu())):  # fmt: skip
        assert "device" in str(raised(RuntimeError, wrong))


# ---- memory and errors
@check
def memory_counts(small: bool) -> str:
    """Counts go up and down, the most is kept, the pool gives back."""
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before, n = torch.cuda.memory_allocated(), 1 << (12 if small else 26)
    x = torch.empty(n, device="cuda")
    y = x + 1
    assert torch.cuda.memory_allocated() == before + 8 * n
    del x, y
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() >= before + 8 * n
    torch.cuda.synchronize()
    held = torch.cuda.memory_reserved()
    torch.cuda.empty_cache()
    assert small or torch.cuda.memory_reserved() < held
    stats = torch.cuda.memory_stats()
    for key in ("allocated_bytes.all.current", "allocation.all.peak", "reserved_bytes.all.peak",
                "num_ooms", "num_alloc_retries"):  # fmt: skip
        assert key in stats, key
    assert stats["allocated_bytes.all.current"] == before
    said = str(raised(NotImplementedError, torch.cuda.memory_snapshot))
    assert "reserved by the pool" in torch.cuda.memory_summary()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total
    return said


@check
def out_of_memory(small: bool) -> str:
    """The error says what was asked for and what there is; the GPU goes on."""
    total = torch.cuda.mem_get_info()[1]
    held = torch.ones(1 << 10, device="cuda")
    error = raised(torch.OutOfMemoryError, lambda: torch.empty(total // 2, device="cuda"))
    said = str(error)
    assert error.error_code == 2
    for part in ("Tried to allocate", "total capacity", "is free", "smaller batch"):
        assert part in said, said
    assert (held + 1).sum().item() == 2 << 10
    return said


BAD_INDICES = """
import antorcha as torch, sys, traceback
F = torch.nn.functional
x, bad = torch.arange(12.).view(4, 3).cuda(), torch.tensor([1, 7]).cuda()
big = torch.full((2, 3), 9).cuda()
calls = {
    "x[bad]": lambda: x[bad],
    "x[bad] = 0": lambda: x.__setitem__(bad, 0.0),
    "embedding": lambda: F.embedding(bad, x),
    "gather": lambda: torch.gather(x, 0, big),
    "scatter": lambda: x.clone().scatter_(0, big, 1.0),
    "index_add": lambda: x.clone().index_add_(0, bad, x[:2]),
    "index_select": lambda: x.index_select(0, bad),
    "take": lambda: x.take(bad * 3),
    "cross_entropy": lambda: F.cross_entropy(x[:2], bad),
    "one_hot": lambda: F.one_hot(bad, 4),
    "multinomial": lambda: torch.multinomial(-x[0] - 1, 1),
}
for name, call in calls.items():
    when = "at once"
    try:
        call()
        when = "later"
        torch.cuda.synchronize()
        print(name, "| no error")
    except Exception as error:
        notes = " ".join(getattr(error, "__notes__", []))
        kinds = " ".join(kind.__name__ for kind in type(error).__mro__[:-3])
        print(name, "|", when, "|", kinds, "|", " ".join(str(error).split()), "|", notes)
    assert (torch.ones(3, device="cuda") + 1).sum().item() == 6, "the GPU goes on"
"""


def in_a_process(code: str, **environment: str) -> str:
    """What a program prints in a process of its own."""
    path = os.pathsep.join([str(ROOT / "src"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return done.stdout


@check
def bad_indices(small: bool) -> str:
    """They are told, with the line that asked: at the next wait, or at once with ANTORCHA_SYNC."""
    if small:
        return "only in a process of its own"
    said = ""
    for sync, expected in (("0", ("later", True)), ("1", ("at once", False))):
        text = in_a_process(BAD_INDICES, ANTORCHA_SYNC=sync)
        said += f"\nANTORCHA_SYNC={sync}\n{text}"
        for line in text.splitlines():
            assert "no error" not in line, text
            _, when, kinds, _, notes = line.split(" | ")
            assert {"IndexError", "RuntimeError"} & set(kinds.split()), line
            assert (when, "asked for at <string>" in notes) == expected, line
    return said


@check
def a_forked_child(small: bool) -> str:
    """It is told that it cannot use the GPU, and how to; the parent goes on."""
    x = torch.ones(5, device="cuda")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        said = []
        ones = lambda: torch.ones(2, device="cuda")  # noqa: E731
        for call in (lambda: x + 1, ones, torch.cuda.synchronize, x.cpu):
            try:
                call()
                said.append("no error")
            except RuntimeError as error:
                said.append(str(error))
            except BaseException:
                said.append(traceback.format_exc())
        said.append(str(torch.cuda._is_in_bad_fork()))
        os.write(write, "|".join(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read().split("|")
    assert (len(said), said[-1]) == (5, "True"), said
    for text in said[:-1]:
        assert text.startswith("Cannot re-initialize CUDA in forked subprocess"), text
        assert "'spawn' start method" in text, text
    assert (x + 1).sum().item() == 10
    return str(said[0])


@check
def the_accelerator(small: bool) -> None:
    """torch.accelerator, and what a GPU says of itself."""
    a = torch.accelerator
    assert a.is_available()
    assert a.device_count() == torch.cuda.device_count() >= 1
    assert a.current_accelerator() == torch.device("cuda")
    assert a.current_device_index() == 0
    with a.device_index(0):
        a.synchronize()
    stream = torch.Stream("cuda")
    a.set_stream(stream)
    assert a.current_stream() == stream
    a.set_stream(torch.cuda.default_stream())
    event = torch.Event("cuda", enable_timing=True)
    event.record(stream)
    event.synchronize()
    assert torch.float64 in a.get_device_capability()["supported_dtypes"]
    assert a.memory_allocated() == torch.cuda.memory_allocated()
    assert a.get_memory_info()[1] == torch.cuda.mem_get_info()[1]
    a.empty_cache()
    a.empty_host_cache()
    with torch.device("cuda"):
        assert nn.Linear(2, 2).weight.is_cuda
    assert torch.cuda.get_device_properties(0).total_memory > 0
    assert not config.sync
