"""Worker processes of a loader: what they give, how they fail, and that nothing is left behind.

Programs that end in unusual ways run in a child of their own (`leaves_nothing`).
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import antorcha as torch
from tests.data.side_by_side import same
from tests.patience import PATIENCE

D = torch.utils.data
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]
LIMIT = 10.0  # seconds that no failure may take to be told


def left() -> tuple[str, int, list[str]]:
    """This process's children, open files, and the names of shared memory."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return children, len(os.listdir("/proc/self/fd")), sorted(os.listdir("/dev/shm"))


@pytest.fixture
def clean():
    list(D.DataLoader(range(2), num_workers=1))  # what is opened once
    before = left()
    yield
    assert left()[:2] == before[:2]


class Numbers(D.Dataset):
    """Row i is filled with i; something may happen at row 9."""

    def __init__(self, happens=lambda: None, rows=40):
        self.happens, self.rows = happens, rows

    def __len__(self):
        return self.rows

    def __getitem__(self, i):
        if i == 9:
            self.happens()
        return torch.full((3,), i)


def failing(error):
    def happens():
        raise error

    return Numbers(happens)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_batches_come_in_order_and_in_shared_memory(method):
    if method != "fork":
        data = D.TensorDataset(torch.arange(40).reshape(40, 1).expand(40, 3).contiguous())
        loader = D.DataLoader(data, 3, num_workers=2, multiprocessing_context=method)
        batches = [batch for (batch,) in loader]
    else:
        batches = list(D.DataLoader(Numbers(), 3, num_workers=3, multiprocessing_context=method))
    assert [int(row) for batch in batches for row in batch[:, 0]] == list(range(40))
    assert all(batch.is_shared() for batch in batches)
    batches[0].add_(1)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {"persistent_workers": True, "prefetch_factor": 1},
        {"in_order": False},
    ],
    ids=str,
)
def test_numbers_drawn_in_workers_are_pytorchs(options):
    def program(torch):
        class Drawn(torch.utils.data.Dataset):
            def __len__(self):
                return 11

            def __getitem__(self, i):
                return i, torch.rand(2), random.random(), np.random.rand(2)

        def said(worker):
            info = torch.utils.data.get_worker_info()
            assert (info.id, info.num_workers) == (worker, 3)
            assert info.seed == torch.initial_seed()

        loader = torch.utils.data.DataLoader(
            Drawn(), batch_size=2, num_workers=3, worker_init_fn=said, **options
        )
        epochs = [[[part.tolist() for part in batch] for batch in loader] for _ in range(2)]
        return [sorted(epoch) for epoch in epochs] if options.get("in_order") is False else epochs

    same(program)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options",
    [{"batch_size": 2}, {"batch_size": 2, "persistent_workers": True}, {"batch_size": None},
     {"batch_size": 4, "drop_last": True}],
    ids=str,
)  # fmt: skip
def test_streams_are_pytorchs(options):
    def program(torch):
        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                worker = torch.utils.data.get_worker_info()
                return iter(range(10 * worker.id, 10 * worker.id + 7))

        loader = torch.utils.data.DataLoader(Stream(), num_workers=2, **options)
        return [[torch.as_tensor(batch).tolist() for batch in loader] for _ in range(2)]

    same(program)


class TwoArguments(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


@pytest.mark.parametrize(
    ("error", "raised"),
    [(KeyError("k"), KeyError), (MemoryError("m"), MemoryError), (ValueError("v"), ValueError),
     (TwoArguments(1, 2), RuntimeError)],
    ids=repr,
)  # fmt: skip
def test_an_exception_is_raised_here_with_its_traceback(error, raised, clean):
    with pytest.raises(raised) as caught:
        list(D.DataLoader(failing(error), 2, num_workers=2))
    text = str(caught.value)
    assert text.startswith(f"Caught {type(error).__name__} in DataLoader worker process 0.\n")
    assert "Original Traceback (most recent call last):\n" in text
    assert "raise error" in text
    del caught


def test_batches_after_an_exception_still_come():
    batches = iter(D.DataLoader(failing(ValueError("v")), 2, num_workers=2))
    seen = []
    for _ in range(20):
        try:
            seen += next(batches)[:, 0].tolist()
        except ValueError:
            seen.append("raised")
    assert seen == [*range(8), "raised", *range(10, 40)]


def test_failures_to_start_and_to_send(clean):
    def fails(worker):
        raise OSError("no")

    with pytest.raises(OSError, match="Caught OSError in DataLoader worker process 0"):
        list(D.DataLoader(Numbers(), num_workers=1, worker_init_fn=fails))
    with pytest.raises(AttributeError, match="pickle"):
        list(D.DataLoader(Numbers(), num_workers=1, collate_fn=lambda rows: lambda: rows))


def test_what_spawn_cannot_pickle_is_told():
    loader = D.DataLoader(Numbers(), num_workers=1, multiprocessing_context="spawn")
    with pytest.raises(Exception, match="pickle"), pytest.warns(UserWarning, match="pickle error"):
        iter(loader)


@pytest.mark.parametrize(
    ("happens", "why"),
    [(lambda: os._exit(3), "exit code 3"), (lambda: sys.exit(4), "exit code 4"),
     (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by signal: Killed")],
    ids=["_exit", "sys.exit", "kill -9"],
)  # fmt: skip
def test_a_worker_that_dies(happens, why, clean):
    start = time.monotonic()
    said = r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"
    batches = iter(D.DataLoader(Numbers(happens), 2, num_workers=2))
    with pytest.raises(RuntimeError, match=said) as caught:
        list(batches)
    assert why in str(caught.value.__cause__)
    with pytest.raises(RuntimeError, match=said):
        next(batches)
    assert time.monotonic() - start < LIMIT
    del caught


def test_a_worker_that_hangs(clean):
    start = time.monotonic()
    loader = D.DataLoader(Numbers(lambda: time.sleep(1000)), 2, num_workers=2, timeout=1)
    with pytest.raises(RuntimeError, match="DataLoader timed out after 1 seconds"):
        list(loader)
    assert time.monotonic() - start < LIMIT


def test_an_epoch_that_is_left_early(clean):
    for _ in D.DataLoader(Numbers(), num_workers=2):
        break
    batches = iter(D.DataLoader(Numbers(), num_workers=2, persistent_workers=True))
    next(batches)
    del batches


def kill_one_of_eight(seed: int) -> None:
    choose = random.Random(seed)
    batches = iter(D.DataLoader(Numbers(rows=10**9), 4, num_workers=8))
    taken = choose.choice([0, 1, 30, 200])
    for i in range(taken):
        assert int(next(batches)[0, 0]) == 4 * i
    victim = choose.choice(batches._workers).process.pid
    os.kill(victim, choose.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV]))
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=rf"\(pid\(s\) {victim}\) exited"):
        list(itertools.islice(batches, 10**6))
    assert time.monotonic() - start < LIMIT


@pytest.mark.slow
def test_killed_workers():
    """In a process of its own, which is small: to fork this one takes far longer."""
    program = (
        "from tests.data.test_workers import D, kill_one_of_eight, left\n"
        "list(D.DataLoader(range(2), num_workers=1))\n"
        "before = left()\n"
        "for seed in range(20):\n"
        "    kill_one_of_eight(seed)\n"
        "assert left()[:2] == before[:2]\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=Path(__file__).parents[2],
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]


def test_one_killed_worker(clean):
    kill_one_of_eight(1)


ENDS = {
    "returns": "",
    "raises": "raise ValueError",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "interrupted": "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)",
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_the_end_of_the_main_process_ends_its_workers(end):
    program = (
        "import os, signal, sys, time\n"
        "import antorcha as torch\n"
        "loader = torch.utils.data.DataLoader(range(100), num_workers=2)\n"
        "batches = iter(loader)\n"
        "next(batches)\n"
        "print(*[worker.process.pid for worker in batches._workers], flush=True)\n"
        f"{end}\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
    deadline = time.monotonic() + LIMIT
    for pid in map(int, done.stdout.split()):
        while os.path.exists(f"/proc/{pid}/stat") and time.monotonic() < deadline:
            if ") Z " in Path(f"/proc/{pid}/stat").read_text():
                break  # nobody has asked for its exit code: in a container there may be no init
            time.sleep(0.01)
        assert time.monotonic() < deadline


@pytest.mark.oracle
def test_settings_are_refused_as_pytorch_refuses_them():
    def program(torch):
        said = []
        for options in (
            {"multiprocessing_context": "fork"},
            {"num_workers": 1, "multiprocessing_context": "threads"},
            {"num_workers": 1, "multiprocessing_context": 3},
            {"num_workers": 1, "prefetch_factor": -1},
            {"persistent_workers": True},
            {"timeout": -1},
        ):
            try:
                torch.utils.data.DataLoader([1, 2], **options)
            except Exception as error:
                said.append([isinstance(error, (ValueError, TypeError)), str(error)])
        loader = torch.utils.data.DataLoader([1, 2], num_workers=1)
        return said, loader.prefetch_factor, loader.multiprocessing_context

    same(program)
