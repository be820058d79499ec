"""Forks of a process whose threads are in the middle of something, and their first calls."""

from __future__ import annotations

import ast
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import antorcha
from antorcha import config
from antorcha.core.lazy import BY_NAME
from tests.patience import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
ROOT = pathlib.Path(antorcha.__file__).parent


def _run(program: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), *arguments],
        capture_output=True, text=True, timeout=PATIENCE, env=environment, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _imported_by_name() -> set[str]:
    """Modules that functions import by ``core.lazy.imported``, and those that attributes import."""
    calls = [
        node
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "imported"
    ]
    names = {each.value for node in calls for each in node.args if isinstance(each, ast.Constant)}
    return {*names, *BY_NAME}


def test_what_is_imported_by_name_is_loaded_before_a_fork():
    missing = _run(
        """
        import sys
        import antorcha
        from antorcha.core.lazy import load_deferred
        load_deferred()
        print(*[name for name in sys.argv[1:] if name not in sys.modules])
        """,
        *_imported_by_name(),
    ).split()
    assert not missing


def test_no_call_imports_a_module_once_all_is_loaded():
    _run(
        """
        import sys
        import antorcha as torch
        from antorcha.core.lazy import load_deferred
        load_deferred()
        have = set(sys.modules)
        import tests.ops.records as R
        have |= {name for name in sys.modules if not name.startswith("antorcha")}
        late = {}
        def note(what):
            for name in set(sys.modules) - have:
                late[name] = what
                have.add(name)
        for op in R.records():
            for (args, kwargs), _ in zip(R.samples(op, torch.float32), range(2)):
                for each in R.results(op(*args, **kwargs)):
                    repr(each)
                    if each.requires_grad:
                        each.sum().backward()
                note(op.name)
        for wrong in (lambda: torch.ones(2) @ torch.ones(3), lambda: torch.ones(2).sun,
                      lambda: torch.nn.Linear(2, 2)(torch.ones(3)), lambda: torch.tensor([[1], 2])):
            try:
                wrong()
            except Exception as error:
                str(error)
            note("an error")
        w = torch.ones(3, requires_grad=True)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.eye(3)), 2, True)
        for (batch,) in loader:
            torch.nn.functional.cross_entropy(batch * w, batch).backward()
        torch.optim.Adam([w]).step()
        str(torch.ones(2).bfloat16())
        torch.ones(2, device="meta") + 1
        note("a step")
        assert not late, late
        """
    )


PAUSED = """
import importlib.machinery, os, signal, sys, threading, time
import antorcha as torch

module, work, patience = sys.argv[1:]
inside, forking = threading.Event(), threading.Event()
execute = importlib.machinery.SourceFileLoader.exec_module
def paused(self, what):
    if what.__name__ == module and not inside.is_set():
        inside.set()
        forking.wait()
        time.sleep(0.2)  # the main thread forks now, or waits for us
    return execute(self, what)
importlib.machinery.SourceFileLoader.exec_module = paused

def call():
    exec(work, {"torch": torch})
thread = threading.Thread(target=call)
thread.start()
while not inside.is_set() and thread.is_alive():
    time.sleep(0.001)
assert inside.is_set(), f"{module} is not imported by that"
forking.set()
child = os.fork()
if child == 0:
    signal.alarm(int(patience))
    call()
    os._exit(0)
thread.join()
status = os.waitpid(child, 0)[1]
assert status == 0, f"the child ended with {status}"
"""

FIRST = {
    "antorcha.devices.cpu": "torch.ones(3) + 1",
    "antorcha.runtime.memory.storage": "torch.tensor([1., 2.])",
    "antorcha.runtime.sequence": "torch.arange(6.).reshape(2, 3) @ torch.ones(3, 2)",
    "antorcha.runtime.call.native.walk": "torch.ones(3, requires_grad=True).sum().backward()",
    "antorcha.devices.cpu.sort": "torch.tensor([3., 1., 2.]).sort()",
    "antorcha.devices.cpu.select": "torch.tensor([3., 0., 2.]).nonzero()",
    "antorcha.devices.cpu.pooling": "torch.nn.functional.max_pool2d(torch.ones(1, 1, 4, 4), 2)",
    "antorcha.runtime.random": "torch.rand(3)",
    "antorcha.nn": "torch.nn.Linear(2, 2)(torch.ones(3, 2))",
    "antorcha.devices.meta": "torch.ones(3, device='meta') + 1",
    "scipy.linalg": "torch.linalg.matrix_exp(torch.eye(2))",
    "difflib": "try: torch.device('cppu')\nexcept RuntimeError as error: str(error)",
    "numpy": "torch.ones(2).numpy()",
}


@pytest.mark.parametrize("module", FIRST)
def test_a_fork_while_a_thread_is_in_its_first_call(module):
    if module.endswith("native.walk") and config.call_path == "python":
        pytest.skip("the native path does not run")
    _run(PAUSED, module, FIRST[module], str(int(PATIENCE / 2)))


LOCKS = """
import os, signal, sys, threading, time
import antorcha as torch
from antorcha.core import forks, modes
from antorcha.autograd import accumulate, graph
from antorcha.profiler import session
from antorcha.lang.expr import graph as expressions
from antorcha.lang.native import engine

torch.rand(3)
locks = {
    "engine": engine.LOCK, "modes": modes._lock, "expressions": expressions._lock,
    "sums": accumulate._accumulating, "profiles": session._lock,
    "generator": torch.default_generator.lock,
}
for name, lock in locks.items():
    held, ended = threading.Event(), threading.Event()
    def hold():
        with lock:
            held.set()
            time.sleep(0.05)  # the fork waits for that
            ended.set()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(600)
        for other in locks.values():
            with other:
                pass
        os._exit(0 if ended.is_set() else 7)
    thread.join()
    status = os.waitpid(child, 0)[1]
    assert status == 0, (name, status)
    for other in locks.values():
        assert other.acquire(timeout=600)
        other.release()
"""


def test_a_child_finds_every_lock_free():
    _run(LOCKS)


MODES = """
import threading
import antorcha as torch
from antorcha.core import modes

count = modes.count
def paused(more, special):
    count(more, special)
    modes.count = count
    other = threading.Thread(target=lambda: torch.ones(2) + 1)  # puts native modes in place
    other.start()
    other.join()
modes.count = paused
with torch.no_grad():
    assert not torch.is_grad_enabled()
    assert modes.busy == 1, modes.busy
assert torch.is_grad_enabled()
assert modes.busy == 0, modes.busy
modes._set_word(modes.NO_GRAD)
assert modes._set_word(0) == modes.NO_GRAD and modes.busy == 0
"""


def test_a_first_call_while_a_thread_enters_a_mode():
    _run(MODES)


MANY = """
import os, random, signal, sys, threading, time
import antorcha as torch

works = [
    lambda: torch.ones(3) + 1, lambda: torch.rand(4).sort(), lambda: torch.randperm(9),
    lambda: torch.nn.functional.max_pool2d(torch.ones(1, 1, 4, 4), 2),
    lambda: torch.eye(3).nonzero(),
    lambda: torch.eye(3) @ torch.eye(3), lambda: torch.ones(3, requires_grad=True).sum().backward(),
    lambda: torch.linalg.matrix_exp(torch.eye(2)), lambda: torch.ones(9).cumsum(0),
    lambda: torch.nn.Linear(2, 2)(torch.ones(3, 2)).sum().backward(), lambda: repr(torch.ones(3)),
    lambda: torch.tensor([1, 2, 3])[torch.tensor([0, 2])], lambda: torch.arange(9).flip(0),
]
order = random.Random(int(sys.argv[1]))
def run(mine):
    for work in mine:
        work()
threads = []
for _ in range(3):
    mine = order.sample(works, len(works))
    threads.append(threading.Thread(target=run, args=(mine,)))
children = []
for thread in threads:
    thread.start()
for _ in range(8):
    time.sleep(order.random() * 0.03)
    child = os.fork()
    if child == 0:
        signal.alarm(600)
        run(order.sample(works, len(works)))
        os._exit(0)
    children.append(child)
for thread in threads:
    thread.join()
statuses = [os.waitpid(child, 0)[1] for child in children]
assert not any(statuses), statuses
"""


@pytest.mark.parametrize("seed", range(3))
def test_children_of_a_process_full_of_first_calls_end(seed):
    _run(MANY, str(seed))
