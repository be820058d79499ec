"""LLVM's back ends of GPUs, in a process that may end: an abort of LLVM is an error here."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from antorcha.errors import NativeError

if TYPE_CHECKING:
    from antorcha.lang.native.machine import Target

LEVEL = 2
_CHILD = Path(__file__).with_name("backend_child.py")


class BackendProcess:
    """The child; started at the first job, and again after one that has ended it."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self.complaints: Any = None

    def compile(self, name: str, ir: str, to: Target) -> bytes:
        """The target's image of a module; NativeError where LLVM refuses, or ends."""
        data = ir.encode()
        spirv, kind = to.grid == "spirv", to.cpu or to.arch
        job = {
            "cpu": to.cpu, "features": to.feature_text, "level": LEVEL, "size": len(data),
            # LLVM 22's generator of SPIR-V mixes integers of 32 and 64 bits where it combines
            "generator": 0 if spirv else LEVEL, "text": not spirv,
        }  # fmt: skip
        child = self._started()
        jobs, answers = _pipes(child)
        try:
            jobs.write(json.dumps(job).encode() + b"\n" + data)
            jobs.flush()
            line = answers.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            raise NativeError(f"{name}: LLVM's back end for {kind} ended: {self._last_words()}")
        answer = json.loads(line)
        image = answers.read(answer["size"])
        if spirv:
            self.close()  # (it has kept numbers of this module's labels, and would use them again)
        if answer["error"]:
            raise NativeError(f"{name}: LLVM's back end for {kind}: {answer['error']}")
        return image

    def close(self) -> None:
        """Ends the child."""
        child, self.child = self.child, None
        if child is None:
            return
        for pipe in _pipes(child):
            pipe.close()
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        self.complaints.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self.child is None or self.child.poll() is not None:
            self.close()
            self.complaints = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the child)
            self.child = subprocess.Popen(
                [sys.executable, "-P", str(_CHILD)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints,
            )  # fmt: skip
        return self.child

    def _last_words(self) -> str:
        assert self.child is not None
        code = self.child.wait()
        self.complaints.seek(0)
        lines = self.complaints.read().decode(errors="replace").strip().splitlines()
        self.close()
        return next((line for line in reversed(lines) if line), f"exit status {code}")


def _pipes(child: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert child.stdin is not None
    assert child.stdout is not None
    return child.stdin, child.stdout


process = BackendProcess()
atexit.register(process.close)
