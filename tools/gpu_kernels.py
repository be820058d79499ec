"""What GPU kernels become: registers, spills, shared memory and PTX of each, by NVIDIA's assembler.

    python -m tools.gpu_kernels          # compiles the kernels of docs/gpu_kernels.md, writes it
    python -m tools.gpu_kernels --print  # prints the page instead
    python -m tools.gpu_kernels --all    # every kernel that the records' samples make: minutes

The kernels are those that ops launch on the device ``sim``; they are compiled for sm_80 and sm_90.
Needs ptxas: on the PATH, or of ``pip install nvidia-cuda-nvcc``.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from antorcha.devices.gpu import templates
from antorcha.devices.gpu.frame import GridStep
from antorcha.errors import NativeError
from antorcha.lang.native.machine import nvptx
from tests.devices.sim.sweep import DTYPES, sweep
from tests.ops.records import records

CAPABILITIES = (80, 90)
PAGE = Path(__file__).parents[1] / "docs" / "gpu_kernels.md"
EACH = 3  # kernels of a template that the page has
_HEAD = """# What GPU kernels become

Registers of a thread, bytes of spilled registers, of a thread's stack and of shared memory, as
NVIDIA's assembler counts them, and bytes of PTX: the first {each} kernels of each template
that the records' samples make in float32. Written by `python -m tools.gpu_kernels`; a test notices
what grows.

| kernel | made by | sm_80: registers, spilled, stack, shared, PTX | sm_90 |
|---|---|---|---|
"""


class AssembledKernel(NamedTuple):
    """What ptxas says of a kernel, and the bytes of its PTX."""

    registers: int
    spilled: int
    stack: int
    shared: int
    ptx: int

    def __str__(self) -> str:
        return ", ".join(map(str, self))


def ptxas() -> str | None:
    """The assembler's path."""
    found = shutil.which("ptxas")
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        found = found or next(map(str, Path(folder).glob("*/bin/ptxas")), None)
    return found


def assembled(step: GridStep, sm: int, program: str) -> AssembledKernel:
    """Compiles a step's kernel; NativeError where LLVM or ptxas refuses it."""
    image = step.kernel.on_grid(nvptx(sm), step.threads, **step.static).image
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(image)
        words = [program, f"-arch=sm_{sm}", "-v", str(path), "-o", str(path.with_suffix(".cubin"))]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NativeError(f"{step.kernel.__name__}: ptxas: {done.stderr[-500:]}")

    def number(pattern: str) -> int:
        found = re.search(pattern, done.stderr)
        return int(found[1]) if found else 0

    return AssembledKernel(
        number(r"Used (\d+) registers"), number(r"(\d+) bytes spill stores"),
        number(r"(\d+) bytes stack frame"), number(r"(\d+) bytes smem"), len(image),
    )  # fmt: skip


def noting(found: dict[Any, GridStep]) -> Callable[[], None]:
    """Notes the steps that planners give from now on; returns what ends that."""
    before = dict(templates.PLANNERS)

    def noted(planner: Any) -> Any:
        def plan(*args: Any) -> Any:
            result = planner(*args)
            for step in _steps_of(result):
                host = step.kernel.spec(**step.static)
                found.setdefault((step.kernel.__name__, host.key, step.threads), step)
            return result

        return plan

    templates.PLANNERS.update({kind: noted(planner) for kind, planner in before.items()})
    return lambda: templates.PLANNERS.update(before)


def _steps_of(plan: Any) -> Sequence[GridStep]:
    steps: Sequence[GridStep] = getattr(plan, "steps", None) or getattr(plan, "first", ())
    return steps


def steps_of(op: Any, dtypes: Sequence[str] = ("float32",), grad: bool = True) -> list[GridStep]:
    """The distinct kernels that an op's samples launch, in order."""
    found: dict[Any, GridStep] = {}
    end = noting(found)
    try:
        sweep([op], dtypes, grad=grad)
    finally:
        end()
    return list(found.values())


def chosen() -> Iterator[tuple[str, str, GridStep]]:
    """The page's kernels: the template's name, the op that made it, the step."""
    counts: dict[str, int] = {}
    seen: set[Any] = set()
    for op in records():
        for step in steps_of(op):
            name = step.kernel.__name__
            key = name, step.kernel.spec(**step.static).key
            if key not in seen and counts.get(name, 0) < EACH:
                seen.add(key)
                counts[name] = counts.get(name, 0) + 1
                yield name, op.name, step


def rows(program: str) -> Iterator[tuple[str, str, list[AssembledKernel]]]:
    for name, op, step in chosen():
        yield name, op, [assembled(step, sm, program) for sm in CAPABILITIES]


def page(program: str) -> str:
    """The text of docs/gpu_kernels.md. Which kernels it has depends on what the process has planned
    before, so it is made in a process of its own."""
    lines = [f"| `{name}` | {op} | {a} | {b} |" for name, op, (a, b) in sorted(rows(program))]
    return _HEAD.format(each=EACH) + "\n".join(lines) + "\n"


def check_all(program: str) -> int:
    """Compiles every kernel of every sample; prints what is refused or spills; counts it."""
    wrong = count = 0
    seen: set[Any] = set()
    for op in records():
        for step in steps_of(op, DTYPES):
            key = step.kernel.__name__, step.kernel.spec(**step.static).key, step.threads
            if key in seen:
                continue
            seen.add(key)
            for sm in CAPABILITIES:
                count += 1
                try:
                    found = assembled(step, sm, program)
                except NativeError as error:
                    wrong += 1
                    print(f"{op.name}: {str(error)[:300]}", flush=True)
                    continue
                if found.spilled:
                    wrong += 1
                    print(f"{op.name}: {step.kernel.__name__} sm_{sm} spills: {found}", flush=True)
    print(f"{count} compiled, {wrong} refused or spilling")
    return wrong


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="every kernel of every sample")
    parser.add_argument("--print", action="store_true", help="print the page, write nothing")
    options = parser.parse_args(words)
    program = ptxas()
    if program is None:
        print("no ptxas: pip install nvidia-cuda-nvcc", file=sys.stderr)
        return 1
    if options.all:
        return 1 if check_all(program) else 0
    text = page(program)
    if options.print:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
