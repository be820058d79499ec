"""A second opinion on what the simulator does: the same kernels as SPIR-V, run by Intel's OpenCL.

The buffers of a launch on ``sim`` are copied before it; the kernel runs on the copies by OpenCL for
CPUs (``pip install intel-opencl-rt intel-cmplr-lib-rt``), and what both wrote is compared byte by
byte.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from antorcha.devices.gpu.frame import GridStep
from antorcha.devices.sim.device import GridRunner
from antorcha.devices.sim.memory import TAG, memory
from antorcha.errors import NativeError
from antorcha.lang.native.machine import spirv

_CHILD = Path(__file__).with_name("opencl_child.py")
_LIBRARY = "libintelocl.so"
Array = np.ndarray[Any, Any]


def library() -> Path | None:
    """Intel's OpenCL for CPUs, where pip installed it; None where it did not."""
    folders = [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), sysconfig.get_path("data")]
    for folder in filter(None, folders):
        for found in (Path(folder, _LIBRARY), Path(folder, "lib", _LIBRARY)):
            if found.exists():
                return found
    return None


class OpenCLProcess:
    """The child; started at the first launch, and again after one that has ended it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.child: subprocess.Popen[bytes] | None = None
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the child)

    def started(self) -> subprocess.Popen[bytes]:
        if self.child is None or self.child.poll() is not None:
            folders = f"{self.path.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}"
            self.child = subprocess.Popen(
                [sys.executable, "-P", str(_CHILD), str(self.path)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints,
                env={**os.environ, "LD_LIBRARY_PATH": folders},
            )  # fmt: skip
        return self.child

    def launch(self, job: dict[str, Any], image: bytes, given: list[bytes]) -> list[bytes]:
        """Runs a kernel on copies of buffers; gives their bytes afterwards."""
        child = self.started()
        assert child.stdin is not None
        assert child.stdout is not None
        job = {**job, "image": len(image), "sizes": [len(each) for each in given]}
        try:
            child.stdin.write(json.dumps(job).encode() + b"\n" + image + b"".join(given))
            child.stdin.flush()
            line = child.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            self.complaints.seek(0)
            words = self.complaints.read().decode(errors="replace").strip()[-300:]
            raise NativeError(f"OpenCL ended: exit status {child.wait()}: {words}")
        error = json.loads(line)["error"]
        if error:
            raise NativeError(error)
        return [child.stdout.read(len(each)) for each in given]

    def close(self) -> None:
        """Ends the child."""
        if self.child is not None:
            self.child.communicate()
            self.child = None
        self.complaints.close()


class SecondOpinion:
    """Compares the first launch of each kernel. ``agreed``: how many of each template's did,
    ``left``: why kernels were left out, ``wrong``: what differs."""

    def __init__(self, process: OpenCLProcess) -> None:
        self.process = process
        self.agreed: dict[str, int] = {}
        self.left: dict[str, str] = {}
        self.wrong: list[str] = []
        self.seen: set[str] = set()

    def image_of(self, step: GridStep) -> tuple[str, bytes] | None:
        """A step's kernel as SPIR-V, and its name; None if it was seen or is left out."""
        spec = step.kernel.on_grid(spirv(), step.threads, **step.static)
        if spec.symbol in self.seen:
            return None
        self.seen.add(spec.symbol)
        try:
            return spec.symbol, spec.binary
        except NativeError as error:
            self.left[step.kernel.__name__] = str(error)
            return None

    def launch(self, name: str, words: Array, step: GridStep, run: Any) -> None:
        """Runs a step by ``run``, on the simulator, and by OpenCL."""
        made = self.image_of(step)
        if made is None:
            run()
            return
        places, starts = buffers_of(words)
        given = [memory.bytes_at(a, n).tobytes() for a, n in starts]
        run()
        symbol, image = made
        job = {
            "name": symbol, "blocks": (*step.blocks, 1, 1)[:3], "threads": step.threads,
            "words": words.tolist(), "places": places,
        }  # fmt: skip
        kernel = step.kernel.__name__
        try:
            found = self.process.launch(job, image, given)
        except NativeError as error:
            self.wrong.append(f"{name}: {kernel}: {error}")
            return
        expected = [memory.bytes_at(a, n).tobytes() for a, n in starts]
        texts = [
            f"buffer {k}: {difference(np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8))}"
            for k, (a, b) in enumerate(zip(expected, found, strict=True))
            if a != b
        ]
        if texts:
            self.wrong.append(f"{name}: {kernel}: {'; '.join(texts)}")
        else:
            self.agreed[kernel] = self.agreed.get(kernel, 0) + 1


def buffers_of(words: Array) -> tuple[list[tuple[int, int, int]], list[tuple[int, int]]]:
    """Which words of a launch are addresses, of which buffer, at which byte of it; the buffers'
    addresses and bytes."""
    places, starts = [], []
    for k, word in enumerate(words.tolist()):
        start = memory.allocation_of(word) if word >= TAG else (0, 0)
        if start[0]:
            if start not in starts:
                starts.append(start)
            places.append((k, starts.index(start), word - start[0]))
    return places, starts


def difference(a: Array, b: Array) -> str:
    """Where bytes first differ, and in how many places."""
    where = np.flatnonzero(a != b)
    first = int(where[0]) // 8 * 8
    texts = [each[first : first + 8].tobytes().hex() for each in (a, b)]
    return f"{len(where)} of {len(a)} bytes, at {first} {texts[1]} is not {texts[0]}"


@contextlib.contextmanager
def second_opinion(path: Path) -> Iterator[SecondOpinion]:
    """Has the first launch of each kernel on ``sim`` run by OpenCL as well meanwhile."""
    process = OpenCLProcess(path)
    opinion = SecondOpinion(process)
    before = GridRunner.launch

    def launch(self: GridRunner, name: str, kernel: int, words: Array, step: GridStep) -> None:
        opinion.launch(name, words, step, lambda: before(self, name, kernel, words, step))

    GridRunner.launch = launch  # type: ignore[method-assign]
    try:
        yield opinion
    finally:
        GridRunner.launch = before  # type: ignore[method-assign]
        process.close()
