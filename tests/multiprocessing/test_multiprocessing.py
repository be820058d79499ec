"""Tensors in shared memory, and between processes: the same memory on both sides, nothing left."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import antorcha as torch
import antorcha.multiprocessing as mp
from antorcha.runtime.memory import shared

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
METHODS = ("fork", "spawn", "forkserver")
PATIENCE = 60


def segments() -> int:
    gc.collect()
    maps = Path("/proc/self/maps").read_text()
    return maps.count("memfd:antorcha")


# ---- one process


def test_a_tensor_moves_with_its_views():
    whole = torch.arange(6.0).reshape(2, 3)
    part, version = whole.t(), whole._version
    assert not whole.is_shared()
    assert whole.share_memory_() is whole
    assert whole.is_shared()
    assert part.untyped_storage().is_shared()
    assert whole.data_ptr() == part.data_ptr()
    assert whole._version == version
    part.add_(1)
    assert whole.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_leaf_moves_with_its_data_and_keeps_its_graph():
    x = torch.ones(3, requires_grad=True)
    product = (x * x).sum()
    data = x.data
    data.share_memory_()
    data.mul_(2)
    assert x.is_shared()
    assert x.tolist() == [2, 2, 2]
    product.backward()
    assert x.grad.tolist() == [4, 4, 4]
    assert not x.grad.is_shared()


def test_memory_in_use_does_not_move():
    x = torch.ones(3)
    array = x.numpy()
    with pytest.raises(BufferError, match="in use by a NumPy array"):
        x.share_memory_()
    queue = mp.SimpleQueue()
    queue.put(x)  # a copy goes over
    array[0] = 5
    assert queue.get().tolist() == [1, 1, 1]
    with pytest.raises(BufferError, match="cannot become 100 bytes"):
        torch.ones(2).share_memory_().untyped_storage().resize_(100)


def test_a_module_moves_whole():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    assert model.share_memory() is model
    assert all(t.is_shared() for t in model.state_dict().values())


def test_the_memory_goes_with_the_last_tensor():
    before = segments(), len(os.listdir("/proc/self/fd"))
    x = torch.ones(1 << 20).share_memory_()
    view = x[5:]
    del x
    assert segments() == before[0] + 1
    assert view[0] == 1
    del view
    assert (segments(), len(os.listdir("/proc/self/fd"))) == before


def test_small_tensors_lie_in_one_segment():
    many = [torch.full((10,), i).share_memory_() for i in range(3000)]
    assert len({id(shared.segment_of(t._storage)) for t in many}) <= 3
    assert all(t[0] == i for i, t in enumerate(many))


def test_storages():
    made = torch.UntypedStorage._new_shared(8)
    assert made.is_shared()
    assert made.tolist() == [0] * 8
    assert made.filename is None
    assert torch.UntypedStorage(0).share_memory_().is_shared()
    with pytest.raises(NotImplementedError):
        torch.ones(2, device="meta").share_memory_()


def test_files(tmp_path):
    name = str(tmp_path / "numbers")
    written = torch.from_file(name, shared=True, size=4, dtype=torch.int32)
    written.copy_(torch.arange(4))
    assert Path(name).stat().st_size == 16
    assert written.untyped_storage().filename == name
    private = torch.from_file(name, size=2, dtype=torch.int32)
    private.add_(10)
    assert torch.from_file(name, size=4, dtype=torch.int32).tolist() == [0, 1, 2, 3]
    storage = torch.UntypedStorage.from_file(name, True, 8)
    storage[4] = 7
    assert written.tolist() == [0, 7, 2, 3]
    assert storage.is_shared()
    with pytest.raises(RuntimeError, match="size <16> is smaller than"):
        torch.UntypedStorage.from_file(name, False, 17)
    with pytest.raises(RuntimeError, match=r"unable to open file <.*> in read-write mode: No such"):
        torch.UntypedStorage.from_file(str(tmp_path / "no" / "file"), True, 17)
    queue = mp.SimpleQueue()
    queue.put((written, private))
    same, copy = queue.get()
    same.add_(1)
    assert written.tolist() == [1, 8, 3, 4]
    assert copy.tolist() == [10, 11]


def test_strategies():
    assert mp.get_sharing_strategy() == "file_descriptor"
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError, match="invalid sharing strategy 'other'"):
        mp.set_sharing_strategy("other")


# ---- several


def doubles(inbox, outbox, direct):
    direct.add_(1)
    for _ in range(3):
        x = inbox.get()
        x.mul_(2)
        outbox.put((x, torch.ones(300, 300), torch.nn.Parameter(torch.ones(2)), os.getpid()))


@pytest.mark.parametrize("method", METHODS)
def test_queues(method):
    ctx = mp.get_context(method)
    assert isinstance(ctx, multiprocessing.context.BaseContext)
    kinds = (ctx.Queue, ctx.SimpleQueue, ctx.JoinableQueue)
    for kind in kinds if method == "fork" else kinds[:1]:
        inbox, outbox, direct = kind(), kind(), torch.zeros(3).share_memory_()
        process = ctx.Process(target=doubles, args=(inbox, outbox, direct))
        process.start()
        mine = [torch.full((2,), i) for i in range(3)]
        for x in mine:
            inbox.put(x)
        process.join(PATIENCE)  # what it put in is there although it has ended
        assert process.exitcode == 0
        assert direct.tolist() == [1, 1, 1]
        for i, x in enumerate(mine):
            back, large, parameter, pid = outbox.get()
            assert back.data_ptr() == x.data_ptr()
            assert x.tolist() == [2 * i, 2 * i]
            assert large.is_shared()
            assert large.sum() == 90000
            assert pid == process.pid
            assert type(parameter) is torch.nn.Parameter
            assert parameter.requires_grad


def total(x):
    return x.sum(), x.add_(1)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pools(method):
    parts = [torch.full((3,), i) for i in range(5)]
    with mp.get_context(method).Pool(2) as pool:
        answers = pool.map(total, parts)
    assert [int(s) for s, _ in answers] == [0, 3, 6, 9, 12]
    assert [int(p[0]) for p in parts] == [1, 2, 3, 4, 5]


def test_pipes_and_queues_of_the_standard_library():
    for near, far in (mp.Pipe(), mp.Pipe(duplex=False)[::-1]):
        x = torch.ones(2)
        near.send({"x": x, "twice": [x, x[1:]]})
        got = far.recv()
        assert got["x"].data_ptr() == x.data_ptr()
        assert got["twice"][1].tolist() == [1]
        near.close()
        with pytest.raises(EOFError):
            far.recv()
    queue = multiprocessing.Queue()
    queue.put(x)
    queue.get(timeout=PATIENCE).add_(1)
    assert x.tolist() == [2, 2]
    queue.close()


def test_many_segments_in_one_message():
    near, far = mp.Pipe()
    parts = [torch.full((70_000,), i) for i in range(300)]
    near.send(parts)
    assert all(a.data_ptr() == b.data_ptr() for a, b in zip(parts, far.recv(), strict=True))


def test_what_is_sent():
    near, far = mp.Pipe()

    def sent(x):
        near.send(x)
        return far.recv()

    leaf = torch.ones(2, requires_grad=True)
    leaf.grad = torch.ones(2)
    assert sent(leaf).requires_grad
    assert sent(leaf).grad is None
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        near.send(leaf * 2)
    strided = sent(torch.arange(6).reshape(2, 3).t()[1:])
    assert strided.tolist() == [[1, 4], [2, 5]]
    assert strided.stride() == (1, 3)
    assert sent(torch.empty(0, 3)).shape == (0, 3)
    assert sent(torch.tensor(1.5)).item() == 1.5
    assert sent(torch.empty(2, device="meta")).device.type == "meta"
    storage = torch.ones(2).untyped_storage()
    assert sent(storage).data_ptr() == storage.data_ptr()
    typed = sent(torch.TypedStorage([1.0, 1.0]))
    assert typed.tolist() == [1, 1]
    assert typed.dtype is torch.float32
    model = torch.nn.Linear(2, 2)
    assert sent(model).weight.data_ptr() == model.weight.data_ptr()


def ends(i, tensor, how):
    tensor[i] += 1
    if i == 1 and how == "raise":
        raise ValueError("that is why")
    if i == 1 and how == "exit":
        os._exit(7)
    if i == 1 and how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_start_processes(method):
    counts = torch.zeros(3).share_memory_()
    assert mp.start_processes(ends, (counts, ""), nprocs=3, start_method=method) is None
    assert counts.tolist() == [1, 1, 1]
    if method != "fork":
        return
    with pytest.raises(mp.ProcessRaisedException) as raised:
        mp.start_processes(ends, (counts, "raise"), nprocs=2, start_method=method)
    assert "-- Process 1 terminated with the following error:\nTraceback" in str(raised.value)
    assert "ValueError: that is why" in str(raised.value)
    assert raised.value.error_index == 1
    with pytest.raises(mp.ProcessExitedException, match="process 1 terminated with exit code 7"):
        mp.start_processes(ends, (counts, "exit"), nprocs=2, start_method=method)
    with pytest.raises(mp.ProcessExitedException, match="terminated with signal SIGKILL") as killed:
        mp.start_processes(ends, (counts, "kill"), nprocs=2, start_method=method)
    assert killed.value.exit_code == -9
    assert killed.value.signal_name == "SIGKILL"


def test_spawn_without_join():
    counts = torch.zeros(2)
    context = mp.spawn(ends, (counts, ""), nprocs=2, join=False)
    assert len(context.pids()) == 2
    while not context.join(PATIENCE):
        pass
    assert counts.tolist() == [1, 1]


HOGWILD = """
import sys, torch
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

def train(rank, model, data, workers):
    torch.manual_seed(1 + rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    for _ in range(4):
        for x, y in DataLoader(data, batch_size=16, shuffle=True, num_workers=workers):
            optimizer.zero_grad()
            F.nll_loss(F.log_softmax(model(x), 1), y).backward()
            optimizer.step()

if __name__ == "__main__":
    mp.set_start_method(sys.argv[1], force=True)
    torch.manual_seed(1)
    x = torch.randn(256, 20)
    data = TensorDataset(x, (x[:, 0] > 0).long())
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 2))
    model.share_memory()
    workers = int(sys.argv[1] == "fork")
    processes = [mp.Process(target=train, args=(rank, model, data, workers)) for rank in range(2)]
    for process in processes: process.start()
    for process in processes: process.join()
    print((model(x).argmax(1) == data.tensors[1]).float().mean().item() > 0.9)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_several_processes_train_one_model(method, tmp_path):
    script = tmp_path / "hogwild.py"
    script.write_text(HOGWILD)
    done = subprocess.run(
        [sys.executable, "-m", "antorcha", "run", str(script), method],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout == "True\n", done.stderr
    assert "Error" not in done.stderr
