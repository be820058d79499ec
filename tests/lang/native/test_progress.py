"""What a terminal shows while kernels are compiled, and what is left on it afterwards."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from antorcha import config
from antorcha.lang.native import progress
from tests.patience import PATIENCE

pty = pytest.importorskip("pty", reason="no terminals on this system")
SRC = str(Path(__file__).parents[3] / "src")

PROGRAM = """\
import sys, threading
from antorcha.lang.native import progress
progress.AFTER, progress.PAUSE = 0, 1e9
import antorcha as torch
stop = threading.Event()
threads = [threading.Thread(target=stop.wait) for _ in range({threads})]
for each in threads:
    each.start()
print("half a line", end=" ", flush=True)
x = torch.arange(6.0)
for f in (torch.exp, torch.sin, torch.cos):
    f(x)
print("and the other", flush=True)
torch.tanh(x)
print("end", flush=True)
stop.set()
"""


def _on_a_terminal(tmp_path: Path, *, threads: int = 0, **environ: str) -> str:
    """All that a terminal gets from the program, whose kernels are not on disk."""
    main, terminal = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(threads=threads)],
        stdout=terminal, stderr=terminal, stdin=subprocess.DEVNULL, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": SRC, "ANTORCHA_CACHE": str(tmp_path / "cache"),
             "TERM": "xterm", **environ},
    )  # fmt: skip
    os.close(terminal)
    said = b""
    while True:
        try:
            part = os.read(main, 4096)
        except OSError:  # Linux says so when the last writer has gone
            break
        if not part:
            break
        said += part
    os.close(main)
    assert child.wait(timeout=PATIENCE) == 0, said.decode()
    return said.decode()


def _screen(said: str, width: int = 80) -> list[str]:
    """The lines that a terminal shows in the end (of the codes it knows those that we send)."""
    rows, row, column, saved = [[" "] * width], 0, 0, (0, 0)
    for code in re.findall(r"\x1b\[\??\d*[a-zA-Z]|\x1b[78]|.", said, re.DOTALL):
        if code == "\x1b7":
            saved = row, column
        elif code == "\x1b8":
            row, column = saved
        elif code == "\x1b[K":
            rows[row][column:] = [" "] * (width - column)
        elif code == "\r":
            column = 0
        elif code == "\n":
            row += 1
            rows += [[" "] * width] * (row == len(rows))
        elif len(code) == 1:
            if column == width:
                row, column = row + 1, 0
                rows += [[" "] * width] * (row == len(rows))
            rows[row][column] = code
            column += 1
    return ["".join(each).rstrip() for each in rows]


def test_it_counts_and_leaves_nothing(tmp_path: Path) -> None:
    said = _on_a_terminal(tmp_path)
    counts = [int(n) for n in re.findall(r"compiling kernels, once \((\d+)\)", said)]
    assert len(counts) > 3
    assert counts == sorted(counts)
    assert _screen(said) == ["half a line and the other", "end", ""]


def test_other_threads_get_a_whole_line(tmp_path: Path) -> None:
    said = _on_a_terminal(tmp_path, threads=1)
    assert said.count("compiling kernels") == 1
    screen = [line for line in _screen(said) if line]
    assert "antorcha: compiling kernels, once; later runs find them on disk" in screen
    assert [line for line in screen if "antorcha" not in line][-1] == "end"


def test_a_setting_turns_it_off(tmp_path: Path) -> None:
    said = _on_a_terminal(tmp_path, ANTORCHA_PROGRESS="off")
    assert said.split() == "half a line and the other end".split()


class Terminal(io.StringIO):
    """Stands for a terminal that a program has put in the place of its standard error."""

    def isatty(self) -> bool:
        return True


def test_half_a_second_and_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(config, "progress", True)
    shown = progress.Progress()

    def compile_for(seconds: float) -> bool:
        before = len(sys.stderr.getvalue())  # type: ignore[attr-defined]
        with shown.compiling(), shown.compiling():  # one for the sake of another
            clock[0] += seconds
        return len(sys.stderr.getvalue()) > before  # type: ignore[attr-defined]

    assert [compile_for(0.3) for _ in range(4)] == [False, False, True, False]
    assert shown.count == 8
    clock[0] += 2  # a pause: what is compiled now and then is not worth a word
    assert [compile_for(0.1) for _ in range(5)] == [False] * 5
    with pytest.raises(KeyError), shown.compiling():
        raise KeyError
    assert shown.depth == 0


@pytest.mark.parametrize("stream", [None, io.StringIO(), object()])
def test_where_is_no_terminal_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, stream: object
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "AFTER", 0)
    monkeypatch.setattr(config, "progress", True)
    with progress.Progress().compiling():
        pass
    assert not isinstance(stream, io.StringIO) or stream.getvalue() == ""
