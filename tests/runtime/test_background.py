"""The native call path is compiled in the background: calls before, while and after it is put in
place; forks, errors and the end of the process meanwhile. Each in a process with an empty cache."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.patience import PATIENCE

START = """
import os, sys, threading, time, warnings
import antorcha as torch
from antorcha.core import modes
from antorcha.lang.native import ahead, engine
from antorcha.runtime.call import native

ahead.PAUSE = 1e9  # nothing is compiled ahead until `go`

def go():
    ahead.PAUSE = 0

def until(holds):
    end = time.monotonic() + float(sys.argv[1])
    while not holds():
        assert time.monotonic() < end, (native.ACTIVE, native._reason)
        time.sleep(0.001)

"""


def run(cache: Path, program: str, *, stderr: str = "", **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", START + textwrap.dedent(program),
         str(PATIENCE / 2)],
        env={
            **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONMALLOC": "debug",
            "ANTORCHA_CACHE": str(cache), "ANTORCHA_CALL": "auto", **environment,
        },
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, stderr), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the whole native path, compiled in the background by one process."""
    cache = tmp_path_factory.mktemp("filled")
    run(cache, IN_EVERY_STATE)
    return cache


IN_EVERY_STATE = """
from antorcha.runtime.call.native.report import served

a = torch.arange(6.).reshape(2, 3)
w = torch.nn.Parameter(torch.full((3,), 2.))

class Owner(torch.nn.Module):
    def forward(self, x):
        return (x * w + 1).relu().sum()

def work(expected=(36.0, [3., 5., 7.])):
    w.grad = None
    loss = Owner()(a)
    loss.backward()
    assert (loss.item(), w.grad.tolist()) == expected, (loss, w.grad)
    b = a.clone()
    b += 1
    b[0].mul_(2)
    b.T.add_(1)
    assert b.tolist() == [[3., 5., 7.], [5., 6., 7.]], b
    with torch.no_grad():
        assert not (w * 2).requires_grad
    assert (w * 2).requires_grad and modes.busy == 0
    assert torch.stack([a, a]).sum(0)[1, 2].item() == 10.0
    assert repr(a[1, :2]) == "tensor([3., 4.])"

xor = torch.Tensor.__xor__
torch.Tensor.__xor__ = lambda self, other: "patched"

for _ in range(3):
    work()
assert not native.ACTIVE and native.is_awaited()
graph = (a * w).exp().log().sum()  # made by the Python path, differentiated by the native one
hooked = (a * w).sum()
seen = []
w.register_hook(lambda g: seen.append(g.tolist()))
block = torch.no_grad()
block.__enter__()
kept = [torch.ones(k + 1) for k in range(100)]
view, base_sum = kept[9][2:], kept[9].sum()

stop = threading.Event()
errors = []
def others():
    try:
        while not stop.is_set():
            x = torch.ones(4, requires_grad=True)
            with torch.no_grad():
                assert not (x + 1).requires_grad
            (x * 3).sum().backward()
            assert x.grad.tolist() == [3.] * 4
            time.sleep(0.0005)
    except BaseException as error:
        errors.append(error)
threads = [threading.Thread(target=others) for _ in range(2)]
for thread in threads:
    thread.start()
go()
while not native.ACTIVE and not native._reason:
    assert not (w + 1).requires_grad  # in the block that was entered before
    time.sleep(0.0005)
stop.set()
for thread in threads:
    thread.join()
assert not errors, errors
assert native.ACTIVE, native.why_not()
assert not torch.is_grad_enabled()
block.__exit__(None, None, None)
assert torch.is_grad_enabled() and modes.busy == 0, modes.busy

compiled = []
compile_spec = engine.compile_spec
def noted(spec):
    compiled.append(spec.native.__module__)
    return compile_spec(spec)
engine.compile_spec = noted
w.grad = None
graph.backward()
hooked.backward()
assert seen == [[3.0, 5.0, 7.0]] * 2, seen
assert torch.allclose(w.grad, torch.tensor([6., 10., 14.]))
view += 1
assert kept[9].sum().item() == base_sum.item() + 8
del kept, view, graph, hooked
seen.clear()
for _ in range(12):
    work()
assert not [name for name in compiled if ".call.native" in name], compiled
for _ in range(9):
    assert (torch.ones(2).bool() ^ torch.ones(2).bool()) == "patched"
by_name = {row.name: row for row in served()}
assert by_name["mul"].native > 10 and by_name["sum"].native > 10, by_name
"""


def test_an_op_is_called_in_every_state(filled):
    assert any(filled.rglob("*.o"))


def test_what_is_on_the_disk_runs_at_once(filled):
    run(filled, "torch.ones(3) + 1\nassert native.ACTIVE and not engine.compiled")


def test_an_error_is_told_once_and_python_goes_on(tmp_path):
    run(
        tmp_path,
        """
        def broken(spec):
            raise OSError("no more room")
        ahead.compile_ahead = broken
        go()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            x = torch.ones(3, requires_grad=True)
            (x + 1).sum().backward()
            until(lambda: told)
            until(lambda: not native._ahead.running)
            for size in range(2, 9):
                assert (torch.ones(size) * 2).sum().item() == 2 * size
            x.sum().backward()
        assert len(told) == 1 and "OSError: no more room" in str(told[0].message), told
        assert not native.ACTIVE and not native._ahead.running
        assert "no more room" in native.why_not()
        """,
    )


def test_a_process_may_end_while_it_compiles(tmp_path):
    run(
        tmp_path,
        """
        torch.ones(3) + 1
        go()
        until(lambda: len(engine._ahead) > 3)
        assert not native.ACTIVE
        """,
    )
    assert len(list(tmp_path.rglob("*.o"))) > 3  # where the next process goes on
    run(tmp_path, "torch.ones(3) + 1\nassert not native.ACTIVE and native._ahead.running")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_while_it_compiles(tmp_path):
    run(
        tmp_path,
        """
        torch.ones(3) + 1
        go()
        children = []
        for met in (3, 6):
            until(lambda: len(engine._ahead) > met)
            children.append(os.fork())
            if children[-1] == 0:
                assert not native._ahead.running
                w = torch.ones(5, requires_grad=True)
                (w * 2).sum().backward()  # a plan is made: it goes on here, too
                assert w.grad.tolist() == [2.] * 5 and native._ahead.running
                until(lambda: met == 6 or native.ACTIVE)
                assert (w * 3).sum().item() == 15
                os._exit(0)
            assert native._ahead.running
        for child in children:
            assert os.waitpid(child, 0)[1] == 0
        until(lambda: native.ACTIVE)
        assert (torch.ones(3) + 1).tolist() == [2.] * 3
        """,
    )


def test_who_cannot_wait_has_it_compiled_at_once(tmp_path, filled):
    program = """
        torch.ones(3) + 1
        assert not native.ACTIVE
        go()
        assert native.watch() is not None and native.ACTIVE  # a profile begins
        assert (torch.ones(3) * 2).tolist() == [2.] * 3
    """
    run(tmp_path, program)
    run(filled, "torch.ones(3) + 1\nassert native.ACTIVE", ANTORCHA_CALL="native")
