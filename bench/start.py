"""What starting costs: the import, the first use of a kernel, and the size of the installation.

Each is measured in processes of its own, and held against a bound rather than against PyTorch
(except the size, which must stay under half of PyTorch's).
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

RUNS = 7

_IMPORT = """
import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)
"""

_FIRST_USE = """
import time
import antorcha as torch
a = torch.arange(1000.) + 1
start = time.perf_counter(); torch.erf(a); first = time.perf_counter() - start
start = time.perf_counter(); torch.erf(a); print(first - (time.perf_counter() - start))
"""

_SINCE_START = "import os, time; print(time.monotonic() - float(os.environ['STARTED']))"

_FIRST_SUM = """
import antorcha as torch
a, b = torch.ones(3), torch.ones(3)
a + b
"""

_TRAINING = """
import antorcha as torch
from antorcha import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = torch.randn(64, 20), torch.randint(0, 3, (64,))
loss = nn.functional.cross_entropy(model(x), y)
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""

_COMPILED = "from antorcha.runtime.call import native; native.finish(); print(native.ACTIVE)"

_HEAVY = (
    "import antorcha, sys; print([m for m in ('scipy', 'torch', 'sklearn') if m in sys.modules])"
)


@dataclass
class Started:
    """One figure; `bound` is the most it may be, in the same unit."""

    name: str
    value: float
    bound: float | None
    unit: str
    pytorch: float | None = None

    @property
    def reached(self) -> bool | None:
        """Whether the bound is kept; None when there is none."""
        return None if self.bound is None else self.value <= self.bound


def measure(with_pytorch: bool) -> list[Started]:
    """All figures of this file."""
    return [
        _import_time(with_pytorch), _heavy_modules(), *_first_use(), *_first_minute(),
        _size(with_pytorch),
    ]  # fmt: skip


def _import_time(with_pytorch: bool) -> Started:
    ours = statistics.median(_timed(_IMPORT.format(module="antorcha")) for _ in range(RUNS))
    theirs = _timed(_IMPORT.format(module="torch")) if with_pytorch else None
    return Started("import, warm", ours, 0.12, "s", theirs)


def _heavy_modules() -> Started:
    loaded = _output(_HEAVY).count("'") // 2
    return Started("optional packages loaded by the import", loaded, 0, "")


def _first_use() -> list[Started]:
    """A kernel that nobody has compiled yet; then, in a new process, from the cache on disk."""
    cold, warm = [], []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_timed(_FIRST_USE, ANTORCHA_CACHE=cache))
            warm.append(_timed(_FIRST_USE, ANTORCHA_CACHE=cache))
    return [
        Started("first use of a kernel", statistics.median(cold), 0.025, "s"),
        Started("first use, from the disk cache", statistics.median(warm), 0.001, "s"),
    ]


def _first_minute() -> list[Started]:
    """Small programs from the start of their process: with nothing compiled, and with all."""
    sums, cold, warm = [], [], []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as cache:
            sums.append(_since_start(_FIRST_SUM, cache))
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_since_start(_TRAINING, cache))
            _output(_TRAINING + _COMPILED, ANTORCHA_CACHE=cache)
            warm.append(_since_start(_TRAINING, cache))
    return [
        Started("first a + b, from an empty cache", statistics.median(sums), 0.8, "s"),
        Started("first training step, from an empty cache", statistics.median(cold), 2.0, "s"),
        Started("first training step, from the disk cache", statistics.median(warm), 0.25, "s"),
    ]


def _since_start(program: str, cache: str) -> float:
    """Seconds from before the process began to the program's last line."""
    return _timed(program + _SINCE_START, ANTORCHA_CACHE=cache, STARTED=repr(time.monotonic()))


def _size(with_pytorch: bool) -> Started:
    ours = _installed_bytes("antorcha") / 2**20
    theirs = _installed_bytes("torch") / 2**20 if with_pytorch else None
    return Started("installed size", ours, theirs / 2 if theirs else None, "MiB", theirs)


def _installed_bytes(package: str) -> int:
    """The files of a distribution and of all that it needs, extras apart, each once."""
    total = 0
    done: set[str] = set()
    pending = [package]
    while pending:
        name = re.sub(r"[-_.]+", "-", pending.pop()).lower()
        if name in done:
            continue
        done.add(name)
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if name == "antorcha":
                raise
            continue  # a dependency for another system or Python
        total += sum(_file_size(str(found.locate_file(path))) for path in found.files or ())
        for requirement in found.requires or ():
            needed = re.match(r"[\w.-]+", requirement)
            if needed and "extra ==" not in requirement:
                pending.append(needed[0])
    return total + (_source_bytes() if package == "antorcha" else 0)


def _source_bytes() -> int:
    """The sources, which an editable installation does not list as its files."""
    import antorcha

    folder = os.path.dirname(str(antorcha.__file__))
    if "site-packages" in folder:
        return 0
    return sum(
        _file_size(os.path.join(place, name))
        for place, _, names in os.walk(folder)
        for name in names
        if name.endswith((".py", ".pyi"))
    )


def _file_size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _timed(program: str, **environment: str) -> float:
    return float(_output(program, **environment))


def _output(program: str, **environment: str) -> str:
    """What the program prints last, in an environment where Python keeps its bytecode, as it does
    for anybody who does not forbid it."""
    ours = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**ours, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout.strip().splitlines()[-1]
